/* See layout.h: all arrays together, what a store keeps of them, and records against them. */
#include "convert/layout.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "format/zarr/records.h"
#include <string.h>

/* ---- description ----------------------------------------------------------------------------------------------------------------- */

static int describe_settings(const struct sq_settings *s, struct sq_json *v)
{
    SQ_CLEANUP_FREE char *coarsen = sq_format("y=%u,x=%u", s->coarsen_y, s->coarsen_x);
    if (!coarsen || sq_json_set_int(v, "record_format", SQ_RECORD_FORMAT) ||
        sq_json_set(v, "select", sq_json_new_texts(s->select, s->select_count)) ||
        sq_json_set(v, "rename", sq_json_new_texts(s->rename, s->rename_count)) || sq_json_set_string(v, "coarsen", coarsen) ||
        sq_json_set_string(v, "stack", s->stack ? s->stack_name : "none"))
        return SQUALL_ENOMEM;
    if (s->zarr_format != 3 && sq_json_set_int(v, "zarr_format", s->zarr_format))
        return SQUALL_ENOMEM;
    return s->y_order == SQ_Y_AS_IT_IS ? 0 : sq_json_set_string(v, "y_order", sq_y_order_names[s->y_order]);
}

int sq_layout_describe_settings(const struct sq_settings *settings, struct sq_json **ret, struct squall_error *err)
{
    struct sq_json *v = sq_json_new_object();
    if (!v || describe_settings(settings, v)) {
        sq_json_free(v);
        return sq_error_memory(err, sizeof *settings);
    }
    *ret = v;
    return 0;
}

static bool has_grown(const struct sq_layout_array *a)
{
    return memcmp(a->made + 1, a->shape + 1, a->outer_rank * sizeof *a->made) != 0;
}

static struct sq_json *array_json(const struct sq_layout_array *a)
{
    const struct sq_codec_shard *shards = sq_codec_chain_shard(a->codecs);
    struct sq_json *v = sq_json_new_object();
    if (!v || sq_json_set(v, "dims", sq_json_new_texts(a->dims, a->rank)) ||
        sq_json_set(v, "shape", sq_json_new_uints(a->shape + 1, a->rank - 1)) ||
        (has_grown(a) && sq_json_set(v, "made", sq_json_new_uints(a->made + 1, a->outer_rank))) ||
        sq_json_set(v, "chunks", sq_json_new_uints(shards ? shards->inner_shape : a->chunks, a->rank)) ||
        (shards && sq_json_set(v, "shards", sq_json_new_uints(a->chunks, a->rank))) ||
        sq_json_set_string(v, "dtype", sq_type_name(a->type)) ||
        sq_json_set_string(v, "codec", sq_codec_chain_identity(shards ? shards->inner : a->codecs))) {
        sq_json_free(v);
        return NULL;
    }
    return v;
}

static int describe(const struct sq_settings *s, struct sq_layout *layout, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_TRY(sq_layout_describe_settings(s, &layout->description, err));
    struct sq_json *arrays = sq_json_new_object();
    int status = arrays ? 0 : SQUALL_ENOMEM;
    for (size_t i = 0; i < layout->array_count && !status; i++)
        status = sq_json_set(arrays, layout->arrays[i].name, array_json(&layout->arrays[i]));
    if (status)
        sq_json_free(arrays);
    if (status || sq_json_set(layout->description, "arrays", arrays))
        return sq_error_memory(err, layout->array_count * sizeof *layout->arrays);
    SQ_TRY(sq_json_write(layout->description, false, &text, err));
    sq_hash_text(sq_hash_bytes(text.data, text.length), layout->id);
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------------- */

/* All of a unit is written together, so every variable is cut alike along the append dimension. */
static int check_units(const struct sq_layout_array *arrays, size_t count, struct squall_error *err)
{
    for (size_t i = 1; i < count; i++)
        if (arrays[i].chunks[0] != arrays[0].chunks[0])
            return sq_error(err, SQUALL_EINVAL, "%s: files of %llu along %s, but %s has %llu; give all variables the same there",
                            arrays[i].name, (unsigned long long)arrays[i].chunks[0], arrays[i].dims[0], arrays[0].name,
                            (unsigned long long)arrays[0].chunks[0]);
    return 0;
}

static int add_up(struct sq_layout *layout, struct squall_error *err)
{
    for (size_t i = 0; i < layout->array_count; i++) {
        const struct sq_layout_array *a = &layout->arrays[i];
        size_t bytes, bound = sq_codec_encode_bound(a->codecs, a->chunk_bytes);
        if (!sq_mul_size(a->chunk_bytes, a->chunks_per_unit, &bytes) || !sq_add_size(layout->unit_bytes, bytes, &layout->unit_bytes))
            return sq_error(err, SQUALL_EINVAL, "%s: a run of it is larger than any memory", a->name);
        if (a->chunk_bytes > layout->chunk_limit_bytes)
            layout->chunk_limit_bytes = a->chunk_bytes;
        if (bound > layout->encoded_limit_bytes)
            layout->encoded_limit_bytes = bound;
    }
    return 0;
}

int sq_layout_make(const struct sq_settings *settings, const struct sq_cube *cube, uint64_t init_chunk, struct sq_layout *ret,
                   struct squall_error *err)
{
    struct sq_layout layout = {.zarr_format = settings->zarr_format};
    SQ_TRY(sq_layout_check_names(settings, cube, err));
    layout.arrays = sq_alloc_zero(cube->variable_count + 1, sizeof *layout.arrays);
    if (!layout.arrays)
        return sq_error_memory(err, cube->variable_count * sizeof *layout.arrays);
    int status = 0;
    for (size_t i = 0; i < cube->variable_count && !status; i++) {
        layout.array_count++;
        status = sq_layout_make_array(settings, cube, i, init_chunk, &layout.arrays[i], err);
    }
    if (!status)
        status = check_units(layout.arrays, layout.array_count, err);
    if (!status)
        status = add_up(&layout, err);
    if (!status)
        status = describe(settings, &layout, err);
    if (status) {
        sq_layout_done(&layout);
        return status;
    }
    layout.of_arrays = cube->of_arrays;
    layout.init_chunk = layout.array_count ? layout.arrays[0].chunks[0] : 1;
    layout.flag_chunk = sq_flag_chunk(layout.of_arrays, layout.init_chunk);
    *ret = layout;
    return 0;
}

void sq_layout_done(struct sq_layout *layout)
{
    for (size_t i = 0; i < layout->array_count; i++)
        sq_codec_chain_free(layout->arrays[i].codecs);
    sq_free(layout->arrays);
    sq_json_free(layout->description);
    *layout = (struct sq_layout){0};
}

void sq_layout_chunk_index(const struct sq_layout_array *a, uint64_t unit, uint64_t chunk, uint64_t *ret)
{
    for (unsigned d = a->rank; d-- > 1;) {
        ret[d] = chunk % a->grid[d];
        chunk /= a->grid[d];
    }
    ret[0] = unit;
}

/* *total grows by the fields that it has. */
static bool fits_array(const struct sq_layout_array *a, uint64_t init_chunk, const struct sq_record_array *r, uint64_t *total)
{
    uint64_t slab_count;
    bool any_chunk = false;
    if (r->chunk_count != a->chunks_per_unit || r->length_count >= a->rank)
        return false;
    for (unsigned d = 1; d <= r->length_count; d++)
        if (r->lengths[d - 1] != a->shape[d])
            return false;
    if (sq_mul_u64(a->slabs_per_init, init_chunk, &slab_count) && sq_ranges_beyond(&r->stored, slab_count) > 0)
        return false;
    for (size_t k = 0; k < r->chunk_count && !any_chunk; k++)
        any_chunk = r->chunks[k].size_bytes > 0;
    return sq_add_u64(*total, sq_ranges_beyond(&r->stored, 0), total) && (any_chunk || a->leaves_fill || r->stored.count == 0);
}

bool sq_layout_fits(const struct sq_layout_array *arrays, size_t array_count, uint64_t init_chunk, const struct sq_record_unit *record)
{
    uint64_t total = 0, told = 0;
    size_t there = 0;
    for (size_t i = 0; i < array_count; i++) {
        const struct sq_record_array *r = sq_record_array_of(record, arrays[i].name);
        if (r && !fits_array(&arrays[i], init_chunk, r, &total)) /* NULL: the store was made without it, and has grown */
            return false;
        there += r != NULL;
    }
    for (size_t i = 0; i < record->init_count; i++)
        told += record->field_counts[i];
    return record->array_count == there && told == total;
}

bool sq_layout_is_whole(bool of_arrays, const struct sq_record_unit *record, size_t within_unit)
{
    for (size_t i = 0; i < record->array_count && of_arrays; i++) {
        struct sq_range here = {within_unit, within_unit}; /* of arrays a slab is all of an init time */
        const struct sq_ranges slab = {.items = &here, .count = 1};
        const struct sq_record_array *a = &record->arrays[i];
        if (sq_ranges_lacking(&slab, &a->stored, NULL) && !sq_ranges_lacking(&slab, &a->bad, NULL))
            return false;
    }
    return true;
}

struct sq_flag sq_layout_flag(bool of_arrays, const struct sq_record_unit *record, size_t within_unit)
{
    const uint32_t count = record->field_counts[within_unit];
    return (struct sq_flag){count, count > 0 && sq_layout_is_whole(of_arrays, record, within_unit)};
}
