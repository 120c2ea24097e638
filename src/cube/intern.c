/* See intern.h. */
#include "cube/intern.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

struct sq_intern sq_intern_make(size_t words)
{
    return (struct sq_intern){.words = words};
}

void sq_intern_done(struct sq_intern *table)
{
    sq_distinct_done(&table->table);
    sq_arena_free(table->arena);
    *table = sq_intern_make(table->words);
}

int sq_intern_add(struct sq_intern *table, const int64_t *key, uint32_t *ret, struct squall_error *err)
{
    if (!table->arena)
        table->table.arena = table->arena = sq_arena_new();
    if (!table->arena)
        return sq_error_memory(err, sizeof(void *));
    SQ_TRY(sq_distinct_add(&table->table, key, table->words * sizeof *key, ret, err));
    table->count = (uint32_t)table->table.row_count;
    return 0;
}

uint32_t sq_intern_find(const struct sq_intern *table, const int64_t *key)
{
    return sq_distinct_find(&table->table, key, table->words * sizeof *key);
}

const int64_t *sq_intern_key(const struct sq_intern *table, uint32_t number)
{
    return table->table.rows[number].bytes;
}

static int compare_keys(const void *a, const void *b, void *words)
{
    const int64_t *x = a, *y = b;
    for (size_t i = 0; i < *(const size_t *)words; i++) {
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    }
    return 0;
}

int sq_intern_sorted(const struct sq_intern *table, int64_t **ret, struct squall_error *err)
{
    size_t words = table->words;
    int64_t *keys = sq_alloc(table->count, words * sizeof *keys);
    if (!keys)
        return sq_error_memory(err, table->count * words * sizeof *keys);
    for (uint32_t i = 0; i < table->count; i++)
        memcpy(keys + i * words, sq_intern_key(table, i), words * sizeof *keys);
    qsort_r(keys, table->count, words * sizeof *keys, compare_keys, &words);
    *ret = keys;
    return 0;
}

void sq_axis_done(struct sq_axis *axis)
{
    sq_free(axis->values);
    *axis = (struct sq_axis){0};
}

int sq_axis_from(struct sq_axis *axis, const struct sq_intern *table, struct squall_error *err)
{
    int64_t *values = NULL;
    SQ_TRY(sq_intern_sorted(table, &values, err));
    sq_free(axis->values);
    *axis = (struct sq_axis){values, table->count, false};
    return 0;
}

int sq_axis_take(struct sq_axis *axis, const int64_t *values, uint32_t count, struct squall_error *err)
{
    struct sq_axis taken = {.values = sq_alloc(count, sizeof *values), .count = count};
    if (!taken.values)
        return sq_error_memory(err, count * sizeof *values);
    for (uint32_t i = 0; i < count; i++) {
        taken.values[i] = values[i];
        taken.is_unsorted = taken.is_unsorted || (i > 0 && values[i] < values[i - 1]);
    }
    sq_axis_done(axis);
    *axis = taken;
    return 0;
}

static uint32_t find_along(const struct sq_axis *axis, int64_t value)
{
    for (uint32_t i = 0; i < axis->count; i++)
        if (axis->values[i] == value)
            return i;
    return UINT32_MAX;
}

uint32_t sq_axis_index(const struct sq_axis *axis, int64_t value)
{
    uint32_t low = 0, high = axis->count;
    if (axis->is_unsorted)
        return find_along(axis, value);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (axis->values[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < axis->count && axis->values[low] == value ? low : UINT32_MAX;
}
