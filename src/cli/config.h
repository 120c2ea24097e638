/* Options of a command in a TOML file: --config reads them, --print-config writes them. */
#ifndef SQ_CLI_CONFIG_H
#define SQ_CLI_CONFIG_H

#include "options.h"
#include <stdio.h>

/*
 * Options, and sources and destination, that the command line has not given, from the file. Texts live in a->config_texts.
 * False after saying on stderr what is wrong, and in which line.
 */
bool config_read(const struct command *c, const char *path, struct arguments *a);
/* What is set, as config_read takes it; the command's other options follow as comments. */
void config_print(FILE *out, const struct command *c, const struct arguments *a);

#endif
