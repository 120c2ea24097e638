/*
 * Files of settings. Each entry has a key and texts that end within the block that the reader made; what it refuses has a line of the text and
 * words, whatever the bytes are.
 */
#include "cli/toml.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct tally {
    size_t bytes, lines; /* of all texts, with their zero bytes */
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static bool visit(void *user, const struct toml_entry *e)
{
    struct tally *t = user;
    require(e->key && e->line >= 1 && e->line <= t->lines);
    require(e->kind == TOML_ARRAY || e->item_count == 1);
    t->bytes += strlen(e->key) + 1;
    for (size_t i = 0; i < e->item_count; i++)
        t->bytes += strlen(e->items[i]) + 1;
    if (e->kind == TOML_TRUTH)
        require(!strcmp(e->items[0], "true") || !strcmp(e->items[0], "false"));
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tally t = {.lines = 1};
    struct toml_error wrong;
    void *memory;
    for (size_t i = 0; i < size; i++)
        t.lines += data[i] == '\n';
    bool ok = toml_read((const char *)data, size, visit, &t, &memory, &wrong);
    require(memory && t.bytes <= size + 2);
    require(ok == !wrong.what);
    require(wrong.line >= 1 && wrong.line <= t.lines);
    free(memory);
    return 0;
}
