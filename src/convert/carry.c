/* See carry.h. */
#include "convert/carry.h"
#include "base/crc32c.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/scatter.h"
#include "store/zarr_writer.h"
#include "sys/file.h"
#include <string.h>

int sq_carry_read(const char *path, const struct sq_record_chunk *chunk, char **ret, struct squall_error *err)
{
    struct sq_file_identity identity;
    enum sq_file_kind kind;
    size_t size;
    SQ_TRY(sq_file_stat(path, &kind, &identity, err));
    if (kind == SQ_FILE_NONE)
        return sq_error(err, SQUALL_ENOTFOUND, "%s: missing", path);
    if (kind != SQ_FILE_REGULAR || identity.size_bytes != chunk->size_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %llu bytes, its record says %llu", path, (unsigned long long)identity.size_bytes,
                        (unsigned long long)chunk->size_bytes);
    SQ_TRY(sq_file_read_all(path, (size_t)chunk->size_bytes, ret, &size, err));
    if (size == chunk->size_bytes && sq_crc32c(0, *ret, size) == chunk->crc32c)
        return 0;
    sq_free(*ret);
    *ret = NULL;
    return sq_error(err, SQUALL_ECORRUPT, "%s: its bytes do not match their checksum", path);
}

int sq_carry_chunk(const struct sq_carry *c, size_t array, uint64_t chunk, struct sq_codec_scratch *scratch, void *dst,
                   struct squall_error *err)
{
    const struct sq_layout_array *a = &c->layout->arrays[array];
    const struct sq_record_array *r = sq_record_array_of(c->record, a->name);
    uint64_t index[SQ_LAYOUT_RANK_MAX];
    char *read = NULL;
    sq_layout_chunk_index(a, c->record->unit, chunk, index);
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(c->store, a->name, a->rank, index);
    if (!path)
        return sq_error_memory(err, strlen(a->name));
    if (!r || chunk >= r->chunk_count || (r->chunks[chunk].size_bytes == 0 && !a->leaves_fill))
        return sq_error(err, SQUALL_ECORRUPT, "%s: its record does not tell of it", path);
    if (r->chunks[chunk].size_bytes == 0) {
        sq_scatter_fill(dst, a->chunk_bytes / a->element_bytes, a->element_bytes, a->fill);
        return 0;
    }
    SQ_TRY(sq_carry_read(path, &r->chunks[chunk], &read, err));
    SQ_CLEANUP_FREE char *bytes = read;
    int status = sq_codec_decode(a->codecs, scratch, 1, bytes, (size_t)r->chunks[chunk].size_bytes, dst, a->chunk_bytes, err);
    return status ? sq_error_within(err, status, "%s", path) : 0;
}

const struct sq_ranges *sq_carry_stored(const struct sq_carry *c, size_t array)
{
    static const struct sq_ranges none = {0};
    const struct sq_record_array *r = sq_record_array_of(c->record, c->layout->arrays[array].name);
    return r ? &r->stored : &none;
}
