/* What the command prints: problems on stderr, sizes and times for people, JSON for programs, and a progress bar. */
#ifndef SQ_CLI_OUTPUT_H
#define SQ_CLI_OUTPUT_H

#include "options.h"
#include "squall/squall.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_INPUTS = 3,   /* finished, but some inputs were unreadable or ignored */
    EXIT_REFUSED = 4,  /* in use, or planned differently */
    EXIT_DAMAGE = 5,   /* verify found damage */
    EXIT_SIGNAL = 128, /* + the signal's number */
};

/* A line on stderr; always false, so that it can be the operand of `return`. */
__attribute__((format(printf, 1, 2))) bool complain(const char *format, ...);
__attribute__((format(printf, 1, 2))) void warn_line(const char *format, ...);
#if defined(__clang_analyzer__) /* it sees only this header: that complain is always false lets it follow callers */
#define complain(...) (fprintf(stderr, __VA_ARGS__), false)
#endif

/* "squall: MESSAGE" on stderr, and the exit code that the status stands for. */
int fail_with(const struct squall_error *err);

void print_json_string(FILE *out, const char *text);               /* with its quotes; NULL: null */
void print_json_bytes(FILE *out, const void *text, size_t length); /* a text that may have zero bytes */
void print_json_double(FILE *out, double value);                   /* shortest text that reads back; NaN and infinities as null */

enum { SHORT_TEXT_BYTES = 64 };
const char *size_text(uint64_t bytes, char buffer[SHORT_TEXT_BYTES]);      /* "163.2 MiB" */
const char *time_text(int64_t seconds, char buffer[SHORT_TEXT_BYTES]);     /* since 1970: "2022-01-01T06:00:00" */
const char *duration_text(int64_t seconds, char buffer[SHORT_TEXT_BYTES]); /* hours, or "90m", "45s" */
const char *single_text(float value, char buffer[SHORT_TEXT_BYTES]);
const char *number_text(double value, char buffer[SHORT_TEXT_BYTES]); /* shortest that reads back; "nan" */

double steady_s(void); /* a clock that nobody sets */

/* A context from the common options, which a signal (SIGINT, SIGTERM) cancels. Fails with a message: NULL. */
squall_context *context_new(const struct arguments *a);
int interrupted(void); /* the signal's number, 0: none yet */
void catch_interrupts(void);

/* Progress of long work: a bar on a terminal, else a line every ten seconds, JSON lines with --json, nothing with --quiet. */
struct progress {
    const struct arguments *arguments;
    const char *noun; /* what is counted: "runs" */
    bool only_reads;
    bool terminal;
    double started_s, shown_s;
    bool shown;
};
void progress_begin(struct progress *p, const struct arguments *a);
void progress_show(struct progress *p, uint64_t done, uint64_t total, uint64_t bytes_in, uint64_t bytes_out);
void progress_pause(struct progress *p); /* before another line is printed: the bar makes room */
void progress_end(struct progress *p);

#endif
