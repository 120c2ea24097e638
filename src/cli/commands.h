/* The commands' entry points, one file each. All return the exit code. */
#ifndef SQ_CLI_COMMANDS_H
#define SQ_CLI_COMMANDS_H

#include "options.h"
#include <stdio.h>

int run_info(const struct arguments *a);
int run_ls(const struct arguments *a);
int run_get(const struct arguments *a);
int run_convert(const struct arguments *a);
int run_status(const struct arguments *a);
int run_verify(const struct arguments *a);
int run_bench(const struct arguments *a);
int run_completion(const struct arguments *a);
int run_help(const struct arguments *a);

void print_usage(FILE *out);                                 /* squall help */
void print_command_help(FILE *out, const struct command *c); /* squall help COMMAND */

#endif
