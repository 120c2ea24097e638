/*
 * Chunk grids of v3: regular ones have one length a dimension; rectilinear ones (zarr-extensions, chunk-grids/rectilinear) may list the length of each
 * chunk, runs of equal ones as [length, count]. A dimension whose chunks are all alike becomes a regular one whatever it is spelt as.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "format/zarr/metadata.h"
#include <string.h>

/* A run of equal lengths takes a few bytes in a document: what it becomes in memory is bounded. */
enum { CHUNKS_LIMIT = 1 << 20 };

/* An entry of a dimension's list: a length, or [length, how many]. Both ≥ 1, within int64. */
static bool read_run(const struct sq_json *entry, uint64_t *ret_length, uint64_t *ret_count)
{
    const bool is_pair = sq_json_type(entry) == SQ_JSON_ARRAY;
    *ret_count = 1;
    if (is_pair && (sq_json_count(entry) != 2 || !sq_json_uint(sq_json_at(entry, 1), ret_count)))
        return false;
    return sq_json_uint(is_pair ? sq_json_at(entry, 0) : entry, ret_length) && *ret_length >= 1 && *ret_length <= INT64_MAX &&
           *ret_count >= 1;
}

/* How many chunks of a run begin before the dimension ends. */
static uint64_t chunks_needed(uint64_t shape, uint64_t offset, uint64_t length, uint64_t count)
{
    uint64_t needed = offset < shape ? (shape - offset - 1) / length + 1 : 0;
    return needed < count ? needed : count;
}

struct axis_summary {
    uint64_t chunk_count; /* that hold elements */
    uint64_t longest;
    bool alike;
};

static int summarize(const struct sq_json *list, unsigned d, uint64_t shape, struct axis_summary *ret, struct squall_error *err)
{
    struct axis_summary s = {.alike = true};
    uint64_t offset = 0, length, count;
    for (size_t i = 0; i < sq_json_count(list); i++) {
        if (!read_run(sq_json_at(list, i), &length, &count))
            return sq_error(err, SQUALL_ECORRUPT, "its chunk grid, dimension %u: entry %zu is neither a length above 0 nor [length, count]",
                            d + 1, i + 1);
        uint64_t needed = chunks_needed(shape, offset, length, count);
        if (needed == 0)
            continue;
        s.alike = s.alike && (s.longest == 0 || s.longest == length);
        s.longest = length > s.longest ? length : s.longest;
        s.chunk_count += needed;
        offset += needed * length; /* < shape + length: both within int64 */
    }
    if (offset < shape)
        return sq_error(err, SQUALL_ECORRUPT, "its chunk grid, dimension %u: its chunks have %llu elements, the array %llu", d + 1,
                        (unsigned long long)offset, (unsigned long long)shape);
    *ret = s;
    return 0;
}

/* edges: chunk_count + 1 of them */
static void fill_edges(const struct sq_json *list, uint64_t shape, uint64_t *edges)
{
    uint64_t offset = 0, length = 0, count = 0;
    size_t at = 0;
    edges[at++] = 0;
    for (size_t i = 0; i < sq_json_count(list); i++) {
        (void)read_run(sq_json_at(list, i), &length, &count); /* summarize has read it */
        for (uint64_t needed = chunks_needed(shape, offset, length, count); needed > 0; needed--)
            edges[at++] = offset += length;
    }
}

static int parse_axis(const struct sq_json *entry, unsigned d, struct sq_zarr_array *a, struct squall_error *err)
{
    struct axis_summary s = {0};
    uint64_t count;
    if (sq_json_type(entry) != SQ_JSON_ARRAY) {
        if (!read_run(entry, &a->chunks[d], &count))
            return sq_error(err, SQUALL_ECORRUPT, "its chunk grid, dimension %u is neither a length above 0 nor a list of lengths", d + 1);
        return 0;
    }
    SQ_TRY(summarize(entry, d, a->shape[d], &s, err));
    a->chunks[d] = s.longest ? s.longest : 1;
    if (s.alike)
        return 0;
    if (s.chunk_count > CHUNKS_LIMIT)
        return sq_zarr_unsupported(a, err, "unsupported chunk grid: more than %d chunks along a dimension", CHUNKS_LIMIT);
    if (!(a->edges[d] = sq_alloc((size_t)s.chunk_count + 1, sizeof *a->edges[d])))
        return sq_error_memory(err, (s.chunk_count + 1) * sizeof *a->edges[d]);
    a->edge_counts[d] = s.chunk_count + 1;
    fill_edges(entry, a->shape[d], a->edges[d]);
    return 0;
}

static int parse_rectilinear(const struct sq_json *axes, struct sq_zarr_array *a, struct squall_error *err)
{
    if (sq_json_type(axes) != SQ_JSON_ARRAY || sq_json_count(axes) != a->rank)
        return sq_error(err, SQUALL_ECORRUPT, "its chunk grid does not list chunks for each of %u dimensions", a->rank);
    for (unsigned d = 0; d < a->rank; d++)
        SQ_TRY(parse_axis(sq_json_at(axes, d), d, a, err));
    return 0;
}

/* zarr-python 3.2 wrote some rectilinear grids as regular ones with lists among the lengths. */
static bool has_lists(const struct sq_json *lengths)
{
    for (size_t i = 0; i < sq_json_count(lengths); i++)
        if (sq_json_type(sq_json_at(lengths, i)) == SQ_JSON_ARRAY)
            return true;
    return false;
}

int sq_zarr_parse_grid(const struct sq_json *grid, struct sq_zarr_array *a, struct squall_error *err)
{
    const char *name = sq_zarr_extension_name(grid), *kind = sq_json_string(sq_zarr_configured(grid, "kind"));
    const struct sq_json *lengths = sq_zarr_configured(grid, "chunk_shape");
    unsigned rank;
    if (!name)
        return sq_error(err, SQUALL_ECORRUPT, "its chunk grid has no name");
    if (!strcmp(name, "rectilinear") && kind && !strcmp(kind, "inline"))
        return parse_rectilinear(sq_zarr_configured(grid, "chunk_shapes"), a, err);
    if (strcmp(name, "regular") != 0) {
        memcpy(a->chunks, a->shape, sizeof a->chunks);
        return sq_zarr_unsupported(a, err, "unsupported chunk grid %.100s%s%.100s", name, kind ? " of kind " : "", kind ? kind : "");
    }
    if (has_lists(lengths))
        return parse_rectilinear(lengths, a, err);
    SQ_TRY(sq_zarr_parse_lengths(lengths, "its chunk shape", &rank, a->chunks, err));
    if (rank != a->rank)
        return sq_error(err, SQUALL_ECORRUPT, "its chunks have %u dimensions, the array has %u", rank, a->rank);
    return 0;
}
