/* See output.h. */
#include "output.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t caught_signal;

static bool in_colour(void)
{
    const char *no_colour = getenv("NO_COLOR");
    return isatty(STDERR_FILENO) && !(no_colour && no_colour[0]);
}

#undef complain
bool complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return false;
}

void warn_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs(in_colour() ? "\033[33mwarning:\033[0m " : "warning: ", stderr);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

int fail_with(const struct squall_error *err)
{
    if (err->status == SQUALL_ECANCELLED && interrupted()) {
        complain("squall: interrupted");
        return EXIT_SIGNAL + interrupted();
    }
    complain("%ssquall:%s %s", in_colour() ? "\033[31m" : "", in_colour() ? "\033[0m" : "", err->message);
    if (err->status == SQUALL_EINVAL)
        return EXIT_USAGE;
    return err->status == SQUALL_EREFUSED ? EXIT_REFUSED : EXIT_FAILED;
}

void print_json_bytes(FILE *out, const void *text, size_t length)
{
    fputc('"', out);
    for (const unsigned char *p = text, *end = p + length; p < end; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p < 0x20)
            fprintf(out, "\\u%04x", *p);
        else
            fputc(*p, out);
    }
    fputc('"', out);
}

void print_json_string(FILE *out, const char *text)
{
    if (text)
        print_json_bytes(out, text, strlen(text));
    else
        fputs("null", out);
}

const char *number_text(double value, char buffer[SHORT_TEXT_BYTES])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buffer, SHORT_TEXT_BYTES, "%.*g", digits, value);
        if (strtod(buffer, NULL) == value)
            break;
    }
    return buffer;
}

const char *single_text(float value, char buffer[SHORT_TEXT_BYTES])
{
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(buffer, SHORT_TEXT_BYTES, "%.*g", digits, (double)value);
        if (strtof(buffer, NULL) == value)
            break;
    }
    return buffer;
}

void print_json_double(FILE *out, double value)
{
    char text[SHORT_TEXT_BYTES];
    fputs(isfinite(value) ? number_text(value, text) : "null", out);
}

const char *size_text(uint64_t bytes, char buffer[SHORT_TEXT_BYTES])
{
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof UNITS / sizeof *UNITS; unit++)
        value /= 1024;
    snprintf(buffer, SHORT_TEXT_BYTES, unit ? "%.1f %s" : "%.0f %s", value, UNITS[unit]);
    return buffer;
}

const char *time_text(int64_t seconds, char buffer[SHORT_TEXT_BYTES])
{
    time_t when = (time_t)seconds;
    struct tm parts;
    if (gmtime_r(&when, &parts))
        snprintf(buffer, SHORT_TEXT_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                 parts.tm_hour, parts.tm_min, parts.tm_sec);
    else
        snprintf(buffer, SHORT_TEXT_BYTES, "%lld", (long long)seconds);
    return buffer;
}

const char *duration_text(int64_t seconds, char buffer[SHORT_TEXT_BYTES])
{
    if (seconds % 3600 == 0)
        snprintf(buffer, SHORT_TEXT_BYTES, "%lld", (long long)(seconds / 3600));
    else if (seconds % 60 == 0)
        snprintf(buffer, SHORT_TEXT_BYTES, "%lldm", (long long)(seconds / 60));
    else
        snprintf(buffer, SHORT_TEXT_BYTES, "%llds", (long long)seconds);
    return buffer;
}

/* The first signal asks the work to stop; the second one ends the process as it would have without us. */
static void on_signal(int number)
{
    caught_signal = number;
    signal(number, SIG_DFL);
}

void catch_interrupts(void)
{
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
}

int interrupted(void)
{
    return caught_signal;
}

static int is_cancelled(void *user)
{
    (void)user;
    return caught_signal != 0;
}

/* What many files have in their headers is kept where users keep what programs can find out again: the XDG base directory specification. */
static const char *cache_folder(char *buffer, size_t size)
{
    const char *off = getenv("SQUALL_INDEX_CACHE"), *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool given = caches && caches[0] == '/'; /* a relative one is none */
    if ((off && !strcmp(off, "0")) || (!given && (!home || home[0] != '/')))
        return NULL;
    const int length = snprintf(buffer, size, "%s%s/squall", given ? caches : home, given ? "" : "/.cache");
    return length > 0 && (size_t)length < size ? buffer : NULL;
}

squall_context *context_new(const struct arguments *a)
{
    enum { PATH_BYTES = 4096 };
    char folder[PATH_BYTES];
    struct squall_context_options wanted = {.threads = a->threads,
                                            .memory_bytes = a->memory_bytes,
                                            .cancelled = is_cancelled,
                                            .cache_folder = cache_folder(folder, sizeof folder)};
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_context *ctx = NULL;
    if (squall_context_new(&wanted, &ctx, &err))
        complain("squall: %s", err.message);
    return ctx;
}

double steady_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(struct progress *p, const struct arguments *a)
{
    *p = (struct progress){.arguments = a, .noun = "units", .terminal = isatty(STDERR_FILENO) && !a->json, .started_s = steady_s()};
    p->shown_s = p->started_s;
}

static void show_json(double seconds, uint64_t done, uint64_t total, uint64_t bytes_in, uint64_t bytes_out)
{
    fprintf(
        stderr,
        "{\"event\": \"progress\", \"units_done\": %llu, \"units\": %llu, \"bytes_in\": %llu, \"bytes_out\": %llu, \"seconds\": %.1f}\n",
        (unsigned long long)done, (unsigned long long)total, (unsigned long long)bytes_in, (unsigned long long)bytes_out, seconds);
}

static void show_line(const struct progress *p, double seconds, uint64_t done, uint64_t total, uint64_t bytes_in, uint64_t bytes_out)
{
    enum { WIDTH = 24 };
    char in[SHORT_TEXT_BYTES], out[SHORT_TEXT_BYTES], rate[SHORT_TEXT_BYTES], bar[WIDTH + 1];
    unsigned filled = total ? (unsigned)(done * WIDTH / total) : WIDTH;
    memset(bar, '.', WIDTH);
    memset(bar, '#', filled);
    bar[WIDTH] = 0;
    long left = done ? lround(seconds / (double)done * (double)(total - done)) : -1;
    fprintf(stderr, p->terminal ? "\r\033[K[%s] " : "[%s] ", bar);
    fprintf(stderr, "%llu/%llu %s  ", (unsigned long long)done, (unsigned long long)total, p->noun);
    fprintf(stderr, p->only_reads ? "%s" : "%s in  %s out", size_text(bytes_in, in), size_text(bytes_out, out));
    fprintf(stderr, "  %s/s", size_text(seconds > 0 ? (uint64_t)((double)bytes_in / seconds) : 0, rate));
    if (left >= 0 && done < total)
        fprintf(stderr, "  %ld:%02ld left", left / 60, left % 60);
    if (!p->terminal)
        fputc('\n', stderr);
    fflush(stderr);
}

void progress_show(struct progress *p, uint64_t done, uint64_t total, uint64_t bytes_in, uint64_t bytes_out)
{
    double now = steady_s(), pause_s = p->terminal ? 0.1 : 10;
    if (p->arguments->quiet || total == 0 || (now - p->shown_s < pause_s && !(p->terminal && done == total)))
        return;
    p->shown_s = now;
    p->shown = true;
    if (p->arguments->json)
        show_json(now - p->started_s, done, total, bytes_in, bytes_out);
    else
        show_line(p, now - p->started_s, done, total, bytes_in, bytes_out);
}

void progress_pause(struct progress *p)
{
    if (p->terminal && p->shown)
        fputs("\r\033[K", stderr);
}

void progress_end(struct progress *p)
{
    if (p->terminal && p->shown)
        fputc('\n', stderr);
    p->shown = false;
}
