/* See distinct.h. Open addressing with linear probing; at most half of the slots are in use. */
#include "base/distinct.h"
#include "base/error_internal.h"
#include "base/hash.h"
#include "base/memory.h"
#include <stdbool.h>
#include <string.h>

enum { FIRST_SLOT_COUNT = 64 };

static bool is_row(const struct sq_distinct_row *row, const void *bytes, size_t count)
{
    return row->count == count && memcmp(row->bytes, bytes, count) == 0;
}

static void put(uint32_t *slots, size_t slot_count, uint64_t hash, uint32_t row)
{
    size_t slot = hash & (slot_count - 1);
    while (slots[slot])
        slot = (slot + 1) & (slot_count - 1);
    slots[slot] = row + 1;
}

static int make_room(struct sq_distinct *d, struct squall_error *err)
{
    if (d->slots && d->row_count < d->slot_count / 2)
        return 0;
    if (d->row_count >= UINT32_MAX / 4)
        return sq_error(err, SQUALL_ENOMEM, "more than %zu distinct descriptions: take fewer files at a time", d->row_count);
    size_t wider_count = d->slots ? d->slot_count * 2 : FIRST_SLOT_COUNT;
    uint32_t *wider = sq_alloc_zero(wider_count, sizeof *wider);
    if (!wider)
        return sq_error_memory(err, wider_count * sizeof *wider);
    for (size_t i = 0; i < d->row_count; i++)
        put(wider, wider_count, d->rows[i].hash, (uint32_t)i);
    sq_free(d->slots);
    d->slots = wider;
    d->slot_count = wider_count;
    return 0;
}

static uint32_t find(const struct sq_distinct *d, uint64_t hash, const void *bytes, size_t count)
{
    for (size_t slot = hash & (d->slot_count - 1); d->slots[slot]; slot = (slot + 1) & (d->slot_count - 1)) {
        uint32_t row = d->slots[slot] - 1;
        if (d->rows[row].hash == hash && is_row(&d->rows[row], bytes, count))
            return row;
    }
    return UINT32_MAX;
}

uint32_t sq_distinct_find(const struct sq_distinct *d, const void *bytes, size_t count)
{
    return d->slots ? find(d, sq_hash_bytes(bytes, count).low, bytes, count) : UINT32_MAX;
}

int sq_distinct_add(struct sq_distinct *d, const void *bytes, size_t count, uint32_t *ret, struct squall_error *err)
{
    if (d->row_count > 0 && is_row(&d->rows[d->last], bytes, count)) {
        *ret = d->last;
        return 0;
    }
    SQ_TRY(make_room(d, err));
    uint64_t hash = sq_hash_bytes(bytes, count).low;
    uint32_t known = find(d, hash, bytes, count);
    if (known != UINT32_MAX) {
        *ret = d->last = known;
        return 0;
    }
    SQ_TRY(SQ_GROW(d->rows, d->row_capacity, d->row_count + 1, err));
    const void *copy = sq_arena_copy(d->arena, bytes, count);
    if (!copy)
        return sq_error_memory(err, count);
    uint32_t row = (uint32_t)d->row_count++;
    d->rows[row] = (struct sq_distinct_row){copy, count, hash};
    put(d->slots, d->slot_count, hash, row);
    *ret = d->last = row;
    return 0;
}

void sq_distinct_done(struct sq_distinct *d)
{
    sq_free(d->rows);
    sq_free(d->slots);
    *d = (struct sq_distinct){.arena = d->arena};
}
