/* The index of a shard: where each of its inner chunks lies. What it says is checked before anyone follows it. */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/shard_internal.h"
#include <stdlib.h>

static int check_entry(const struct sq_codec_shard *shard, uint64_t shard_bytes, size_t number, const uint64_t *entry,
                       struct squall_error *err)
{
    uint64_t end, offset = entry[0], size = entry[1];
    uint64_t index_at = shard->index_at_start ? 0 : shard_bytes - shard->index_bytes;
    if (offset == UINT64_MAX && size == UINT64_MAX)
        return 0;
    if (!sq_add_u64(offset, size, &end) || end > shard_bytes)
        return sq_error(
            err, SQUALL_ECORRUPT,
            "shard: the index has inner chunk %zu at byte %llu with %llu bytes, the shard ends at %llu; it is truncated or damaged", number,
            (unsigned long long)offset, (unsigned long long)size, (unsigned long long)shard_bytes);
    if (size > 0 && offset < index_at + shard->index_bytes && end > index_at)
        return sq_error(err, SQUALL_ECORRUPT,
                        "shard: the index has inner chunk %zu at byte %llu, where the index itself lies; it is damaged", number,
                        (unsigned long long)offset);
    return 0;
}

struct placed {
    uint64_t offset, end;
    size_t number;
};

static int by_offset(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Inner chunks that are the same may share their bytes; those that share some are damaged. */
static int refuse_overlap(const struct sq_codec_shard *shard, const uint64_t *entries, struct squall_error *err)
{
    size_t count = 0;
    SQ_CLEANUP_FREE struct placed *sorted = sq_alloc(shard->inner_total, sizeof *sorted);
    if (!sorted)
        return sq_error_memory(err, shard->inner_total * sizeof *sorted);
    for (size_t i = 0; i < shard->inner_total; i++)
        if (entries[2 * i] != UINT64_MAX && entries[2 * i + 1] > 0)
            sorted[count++] = (struct placed){entries[2 * i], entries[2 * i] + entries[2 * i + 1], i};
    qsort(sorted, count, sizeof *sorted, by_offset);
    for (size_t i = 1; i < count; i++)
        if (sorted[i].offset < sorted[i - 1].end && by_offset(&sorted[i - 1], &sorted[i]) != 0)
            return sq_error(err, SQUALL_ECORRUPT,
                            "shard: the index has inner chunk %zu at byte %llu, within inner chunk %zu; it is damaged", sorted[i].number,
                            (unsigned long long)sorted[i].offset, sorted[i - 1].number);
    return 0;
}

int sq_codec_shard_index(const struct sq_codec_shard *shard, struct sq_codec_scratch *scratch, const void *stored, uint64_t shard_bytes,
                         uint64_t *ret, struct squall_error *err)
{
    const struct sq_sharding *s = (const struct sq_sharding *)shard;
    size_t size = shard->inner_total * 2 * sizeof *ret;
    if (shard_bytes < shard->index_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "shard: %llu bytes are less than its index of %zu; it is truncated",
                        (unsigned long long)shard_bytes, shard->index_bytes);
    int status = sq_codec_decode(s->index, scratch, 1, stored, shard->index_bytes, ret, size, err);
    if (status)
        return sq_error_within(err, status, "shard index");
    bool in_order = true; /* as most write them */
    for (size_t i = 0, end = 0; i < shard->inner_total; i++) {
        const uint64_t *entry = ret + 2 * i;
        SQ_TRY(check_entry(shard, shard_bytes, i, entry, err));
        if (entry[0] == UINT64_MAX)
            continue;
        in_order = in_order && entry[0] >= end;
        end = entry[0] + entry[1];
    }
    return in_order ? 0 : refuse_overlap(shard, ret, err);
}

int sq_codec_shard_index_encode(const struct sq_codec_shard *shard, struct sq_codec_scratch *scratch, const uint64_t *entries, void *dst,
                                struct squall_error *err)
{
    const struct sq_sharding *s = (const struct sq_sharding *)shard;
    size_t size;
    return sq_codec_encode(s->index, scratch, 1, entries, shard->inner_total * 2 * sizeof *entries, dst, shard->index_bytes, &size, err);
}
