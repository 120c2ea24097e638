/* See table.h. Open addressing; addresses are spread by a multiplication (Fibonacci hashing), for many are multiples of 8. */
#include "format/hdf5/table.h"
#include "base/error_internal.h"
#include "base/memory.h"

enum { FIRST_CAPACITY = 32 };

static struct sq_hdf5_table_row *row_of(const struct sq_hdf5_table *t, uint64_t key)
{
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (t->capacity - 1);
    while (t->rows[at].value && t->rows[at].key != key)
        at = (at + 1) & (t->capacity - 1);
    return &t->rows[at];
}

void *sq_hdf5_table_get(const struct sq_hdf5_table *t, uint64_t key)
{
    return t->capacity ? row_of(t, key)->value : NULL;
}

static int widen(struct sq_hdf5_table *t, struct squall_error *err)
{
    struct sq_hdf5_table wider = {.count = t->count, .capacity = t->capacity ? 2 * t->capacity : FIRST_CAPACITY};
    wider.rows = sq_alloc_zero(wider.capacity, sizeof *wider.rows);
    if (!wider.rows)
        return sq_error_memory(err, wider.capacity * sizeof *wider.rows);
    for (size_t i = 0; i < t->capacity; i++)
        if (t->rows[i].value)
            *row_of(&wider, t->rows[i].key) = t->rows[i];
    sq_free(t->rows);
    *t = wider;
    return 0;
}

int sq_hdf5_table_put(struct sq_hdf5_table *t, uint64_t key, void *value, struct squall_error *err)
{
    if (2 * t->count >= t->capacity)
        SQ_TRY(widen(t, err));
    struct sq_hdf5_table_row *row = row_of(t, key);
    t->count += !row->value;
    *row = (struct sq_hdf5_table_row){key, value};
    return 0;
}

void sq_hdf5_table_done(struct sq_hdf5_table *t)
{
    sq_free(t->rows);
    *t = (struct sq_hdf5_table){0};
}
