/*
 * The part of TOML 1.0 that settings need: keys, one level of tables, texts, whole numbers, truths, and arrays of texts and
 * numbers. Everything else is refused by name and line.
 */
#ifndef SQ_CLI_TOML_H
#define SQ_CLI_TOML_H

#include <stdbool.h>
#include <stddef.h>

enum toml_kind { TOML_TEXT, TOML_NUMBER, TOML_TRUTH, TOML_ARRAY };

struct toml_entry {
    unsigned line;
    const char *table; /* NULL: before the first one */
    const char *key;
    enum toml_kind kind;
    const char *const *items; /* texts, numbers as they are written, "true" or "false"; of an array its elements, else one */
    size_t item_count;
};

struct toml_error {
    unsigned line;
    const char *what; /* a constant */
};

/*
 * Each entry in its order; *ret_memory holds their texts: free() it when they are no longer wanted, whatever this returns. Strings of entries end
 * with a zero byte and contain none. False: *ret_error says where and what, or the visitor returned false (what: NULL).
 */
bool toml_read(const char *text, size_t length, bool (*visit)(void *user, const struct toml_entry *entry), void *user, void **ret_memory,
               struct toml_error *ret_error);

#endif
