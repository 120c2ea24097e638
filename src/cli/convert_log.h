/* What a conversion did, for machines: a JSON object a line, added to a file that several runs may share. */
#ifndef SQ_CLI_CONVERT_LOG_H
#define SQ_CLI_CONVERT_LOG_H

#include "options.h"
#include <stdbool.h>
#include <stdint.h>

/* Members are this file's own. */
struct convert_log {
    const char *path;
    int fd; /* -1: none is wanted, or it can no longer be written */
    double started_s, shown_s;
};

/* Opens a->log, if it is given, and says that a run starts. False after saying on stderr why it cannot be written. */
bool convert_log_begin(struct convert_log *log, const struct arguments *a);
void convert_log_message(struct convert_log *log, const char *event, const char *text); /* event: "note", "warning", "error" */
void convert_log_progress(struct convert_log *log, uint64_t done, uint64_t total, uint64_t bytes_in, uint64_t bytes_out);
void convert_log_end(struct convert_log *log, int exit_code, const char *report_json /* NULL: the run came to none */);

#endif
