/*
 * One table of options yields parsing, help, the man page, shell completion and files of settings. A command names the options that it takes; each option says
 * where in struct arguments its value goes.
 */
#ifndef SQ_CLI_OPTIONS_H
#define SQ_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_list {
    const char **items;
    size_t count;
};

/* Everything that a command line can say, and a file of settings. Texts point into argv, or into config_texts. */
struct arguments {
    bool help, version, quiet, verbose, json, man;
    unsigned threads;      /* 0: all */
    uint64_t memory_bytes; /* 0: half of what there is */
    struct text_list positional;
    /* several files as one dataset: info, ls, get, bench */
    const char *concat_dim, *drift, *group;
    /* ls */
    struct text_list where;
    const char *print_keys;
    /* get */
    struct text_list selection, nearest;
    const char *output;
    unsigned field; /* 0: none */
    /* bench */
    const char *array;
    /* convert */
    const char *chunks, *shards, *dtype, *bitround, *on_overflow, *codec, *coarsen, *y_order, *schema, *every, *stack, *stack_name, *part,
        *zarr_format;
    const char *append_dim;
    struct text_list select, rename;
    bool dry_run, finish, prepend, overwrite, strict, keep_going, print_config;
    unsigned lock_timeout_s; /* 0: do not wait */
    const char *config, *log, *html;
    struct text_list config_texts; /* malloc'd: what other members point to that is of the file */
};

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_LIST, OPTION_COUNT, OPTION_SIZE };

struct option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum option_kind kind;
    const char *argument; /* what help calls the value; NULL for flags */
    size_t offset;        /* of its member in struct arguments */
    const char *help;
    const char *choices; /* "error|inf|clip"; NULL: anything */
};

struct command {
    const char *name;
    const char *operands; /* "SRC... DST" */
    size_t operands_least, operands_most;
    const char *summary; /* one line */
    const char *description;
    const char *const *option_names;       /* NULL-terminated, besides the common ones */
    int (*run)(const struct arguments *a); /* returns the exit code */
};

extern const struct command commands[];
extern const size_t command_count;
extern const struct option options[];
extern const size_t option_count;

const struct command *command_named(const char *name);                /* NULL: none */
bool option_belongs(const struct option *o, const struct command *c); /* common options belong to every command */
bool option_is_common(const struct option *o);

/* Letters to insert, delete or replace to come from a to b (Levenshtein), capital or not; many where b is long. */
unsigned edit_distance(const char *a, const char *b);

bool text_list_add(struct text_list *list, const char *text); /* false: out of memory */

/* The value of an option that is no flag. Returns false after saying on stderr what is wrong. */
bool option_set(const struct command *c, const struct option *o, const char *value, struct arguments *a);

/* Parse argv[0..argc) behind the command's name. Returns false after saying on stderr what is wrong (exit code 2). */
bool arguments_parse(const struct command *c, int argc, char **argv, struct arguments *ret);
void arguments_done(struct arguments *a);

#endif
