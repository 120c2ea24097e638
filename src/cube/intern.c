/* See intern.h. Open addressing with linear probing; at most half of the slots are in use. */
#include "cube/intern.h"
#include "base/error_internal.h"
#include "base/hash.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOT_COUNT = 64 };

struct sq_intern sq_intern_make(size_t words)
{
    return (struct sq_intern){.words = words};
}

void sq_intern_done(struct sq_intern *table)
{
    sq_free(table->keys);
    sq_free(table->slots);
    *table = (struct sq_intern){.words = table->words};
}

static const int64_t *key_at(const struct sq_intern *table, uint32_t number)
{
    return table->keys + number * table->words;
}

/* The slot that holds the key, or the free one where it belongs. */
static size_t slot_of(const struct sq_intern *table, const int64_t *key)
{
    size_t bytes = table->words * sizeof *key, mask = table->slot_count - 1;
    size_t slot = (size_t)sq_hash_bytes(key, bytes).low & mask;
    while (table->slots[slot] && memcmp(key_at(table, table->slots[slot] - 1), key, bytes) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

static int make_room(struct sq_intern *table, struct squall_error *err)
{
    if (table->slots && table->count < table->slot_count / 2)
        return 0;
    if (table->count >= UINT32_MAX / 4)
        return sq_error(err, SQUALL_EUNSUPPORTED, "more than %u distinct values in one conversion: convert fewer files at a time",
                        table->count);
    struct sq_intern wider = *table;
    wider.slot_count = table->slot_count ? table->slot_count * 2 : FIRST_SLOT_COUNT;
    wider.slots = sq_alloc_zero(wider.slot_count, sizeof *wider.slots);
    if (!wider.slots)
        return sq_error_memory(err, wider.slot_count * sizeof *wider.slots);
    for (uint32_t i = 0; i < table->count; i++)
        wider.slots[slot_of(&wider, key_at(table, i))] = i + 1;
    sq_free(table->slots);
    *table = wider;
    return 0;
}

int sq_intern_add(struct sq_intern *table, const int64_t *key, uint32_t *ret, struct squall_error *err)
{
    SQ_TRY(make_room(table, err));
    size_t slot = slot_of(table, key);
    if (!table->slots[slot]) {
        SQ_TRY(SQ_GROW(table->keys, table->key_capacity, (table->count + (size_t)1) * table->words, err));
        memcpy(table->keys + table->count * table->words, key, table->words * sizeof *key);
        table->slots[slot] = ++table->count;
    }
    *ret = table->slots[slot] - 1;
    return 0;
}

uint32_t sq_intern_find(const struct sq_intern *table, const int64_t *key)
{
    size_t slot = table->slots ? slot_of(table, key) : 0;
    return table->slots && table->slots[slot] ? table->slots[slot] - 1 : UINT32_MAX;
}

void sq_axis_done(struct sq_axis *axis)
{
    sq_free(axis->values);
    *axis = (struct sq_axis){0};
}

static int compare_values(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

int sq_axis_from(struct sq_axis *axis, const struct sq_intern *table, struct squall_error *err)
{
    int64_t *values = sq_alloc(table->count, sizeof *values);
    if (!values)
        return sq_error_memory(err, table->count * sizeof *values);
    if (table->count)
        memcpy(values, table->keys, table->count * sizeof *values);
    qsort(values, table->count, sizeof *values, compare_values);
    sq_free(axis->values);
    *axis = (struct sq_axis){values, table->count};
    return 0;
}

uint32_t sq_axis_index(const struct sq_axis *axis, int64_t value)
{
    const int64_t *at = axis->count ? bsearch(&value, axis->values, axis->count, sizeof value, compare_values) : NULL;
    return at ? (uint32_t)(at - axis->values) : UINT32_MAX;
}
