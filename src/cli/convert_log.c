/*
 * See convert_log.h. Each line is one write to a file opened for appending, so that lines of several runs do not mix. A log that cannot be written
 * any more is told of once, and the conversion goes on: its data are worth more.
 */
#include "convert_log.h"

#include "output.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct line {
    FILE *out;
    char *text;
    size_t length;
};

/* A line that has its time and event, and waits for more. */
static bool line_begin(struct line *line, const struct convert_log *log, const char *event)
{
    char now[SHORT_TEXT_BYTES];
    *line = (struct line){0};
    if (log->fd < 0 || !(line->out = open_memstream(&line->text, &line->length)))
        return false;
    fprintf(line->out, "{\"time\": \"%sZ\", \"pid\": %ld, \"event\": \"%s\"", time_text((int64_t)time(NULL), now), (long)getpid(), event);
    return true;
}

static void line_end(struct line *line, struct convert_log *log)
{
    fputs("}\n", line->out);
    if (fclose(line->out) == 0) {
        ssize_t written = write(log->fd, line->text, line->length);
        if (written != (ssize_t)line->length) {
            warn_line("%s: %s; nothing more is logged", log->path, written < 0 ? strerror(errno) : "the file system is full");
            close(log->fd);
            log->fd = -1;
        }
    }
    free(line->text);
}

bool convert_log_begin(struct convert_log *log, const struct arguments *a)
{
    struct line line;
    *log = (struct convert_log){.path = a->log, .fd = -1, .started_s = steady_s()};
    log->shown_s = log->started_s;
    if (!a->log)
        return true;
    log->fd = open(a->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (log->fd < 0)
        return complain("squall: %s: %s; --log wants a file that can be written", a->log, strerror(errno));
    if (line_begin(&line, log, "start")) {
        fputs(", \"version\": ", line.out);
        print_json_string(line.out, squall_version());
        fputs(", \"sources\": [", line.out);
        for (size_t i = 0; i + 1 < a->positional.count; i++) {
            fputs(i ? ", " : "", line.out);
            print_json_string(line.out, a->positional.items[i]);
        }
        fputs("], \"destination\": ", line.out);
        print_json_string(line.out, a->positional.items[a->positional.count - 1]);
        line_end(&line, log);
    }
    return true;
}

void convert_log_message(struct convert_log *log, const char *event, const char *text)
{
    struct line line;
    if (!line_begin(&line, log, event))
        return;
    fputs(", \"text\": ", line.out);
    print_json_string(line.out, text);
    line_end(&line, log);
}

void convert_log_progress(struct convert_log *log, uint64_t done, uint64_t total, uint64_t bytes_in, uint64_t bytes_out)
{
    enum { PAUSE_S = 10 };
    const double now = steady_s();
    struct line line;
    if (log->fd < 0 || now - log->shown_s < PAUSE_S || !line_begin(&line, log, "progress"))
        return;
    log->shown_s = now;
    fprintf(line.out, ", \"units_done\": %llu, \"units\": %llu, \"bytes_in\": %llu, \"bytes_out\": %llu, \"seconds\": %.1f",
            (unsigned long long)done, (unsigned long long)total, (unsigned long long)bytes_in, (unsigned long long)bytes_out,
            now - log->started_s);
    line_end(&line, log);
}

/* Ends of lines stand between the report's tokens only: within texts they are escapes. Indents go with them. */
static void print_in_one_line(FILE *out, const char *json)
{
    while (*json) {
        size_t length = strcspn(json, "\n");
        fwrite(json, 1, length, out);
        json += length;
        json += strspn(json, "\n ");
    }
}

void convert_log_end(struct convert_log *log, int exit_code, const char *report_json)
{
    struct line line;
    if (line_begin(&line, log, "end")) {
        fprintf(line.out, ", \"exit_code\": %d, \"seconds\": %.3f", exit_code, steady_s() - log->started_s);
        if (report_json) {
            fputs(", \"report\": ", line.out);
            print_in_one_line(line.out, report_json);
        }
        line_end(&line, log);
    }
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
}
