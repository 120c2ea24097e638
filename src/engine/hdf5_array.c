/*
 * HDF5's arrays for the engine: what each is, out of what its dataset's header says. Elements that lie together (contiguous) are cut into chunks here,
 * so that threads share them; those within the header (compact) are one chunk, in memory.
 */
#include "engine/hdf5_array.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/hdf5_internal.h"
#include "format/hdf5/attribute_json.h"
#include "format/hdf5/fill.h"
#include <string.h>

/* What contiguous elements are cut into. */
enum { CUT_BYTES = 1 << 20 };

/* ---- what an array is ------------------------------------------------------------------------------------------------------------- */

/* Whole along the last dimensions, so that each lies in one piece. */
static void cut(const uint64_t *shape, unsigned rank, uint64_t element_bytes, uint64_t *ret)
{
    uint64_t bytes = element_bytes;
    for (unsigned d = rank; d-- > 0;) {
        const uint64_t fitting = bytes < CUT_BYTES ? CUT_BYTES / bytes : 1;
        ret[d] = shape[d] == 0 ? 1 : shape[d] < fitting ? shape[d] : fitting;
        bytes = ret[d] == shape[d] ? bytes * ret[d] : CUT_BYTES; /* what comes before is cut into single ones */
    }
}

/* The grid in memory: the dataset's dimensions, and behind them those of an array type. */
static int set_grid(struct sq_hdf5_array *h, struct squall_error *err)
{
    const struct sq_hdf5_elements *e = &h->elements;
    if (h->rank + e->inner_rank > SQUALL_RANK_MAX)
        return sq_error(err, SQUALL_EUNSUPPORTED, "more than %d dimensions, with those of the type", SQUALL_RANK_MAX);
    h->base.info.rank = h->rank + e->inner_rank;
    for (unsigned d = 0; d < e->inner_rank; d++)
        h->shape[h->rank + d] = h->chunks[h->rank + d] = e->inner_shape[d];
    if (h->layout.kind != SQ_HDF5_CHUNKED) /* cannot grow */
        memcpy(h->shape, h->space.shape, h->space.rank * sizeof *h->shape);
    if (h->layout.kind == SQ_HDF5_CHUNKED)
        memcpy(h->chunks, h->layout.chunk, h->rank * sizeof *h->chunks);
    else if (h->layout.kind == SQ_HDF5_CONTIGUOUS)
        cut(h->shape, h->rank, e->stored_bytes, h->chunks);
    return 0;
}

/* A filter that is not known does no harm where each chunk is without it; only then is the index needed to say so. */
static int refuse_unknown(struct sq_hdf5_array *h, struct squall_error *err)
{
    const struct sq_hdf5_chunk_index *index;
    if (!sq_codec_chain_unknown_filter(h->filters, 0))
        return 0;
    SQ_TRY(sq_hdf5_array_index(h, &index, err));
    const char *unknown = sq_codec_chain_unknown_filter(h->filters, sq_hdf5_chunk_index_skip_mask(index));
    return unknown ? sq_error(err, SQUALL_EUNSUPPORTED, "%s is not supported; h5repack can write the file with another", unknown) : 0;
}

static int bind_filters(struct sq_hdf5_array *h, struct sq_hdf5_tree *tree, struct squall_error *err)
{
    const struct sq_hdf5_pipeline *pipeline = &h->pipeline;
    const struct sq_hdf5_elements *e = &h->elements;
    SQ_TRY(sq_hdf5_pipeline_parse(&tree->reader, &h->dataset->filters, &h->pipeline, err));
    if (pipeline->count == 0 || h->layout.kind != SQ_HDF5_CHUNKED)
        return 0;
    struct sq_codec_chunk chunk = {.dtype = e->dtype, .rank = h->base.info.rank, .shape = h->chunks, .big_endian = e->big_endian};
    if (!e->is_same) {
        chunk.dtype = (struct sq_dtype){SQUALL_RAW, e->stored_bytes, 1};
        chunk.rank = h->layout.rank;
    }
    SQ_TRY(sq_codec_chain_bind_hdf5(pipeline->filters, pipeline->count, &chunk, &h->filters, err));
    h->filters_id = sq_hash_bytes(h->dataset->filters.bytes, h->dataset->filters.size_bytes);
    h->filters_id = sq_hash_more(h->filters_id, &chunk.dtype, sizeof chunk.dtype);
    h->filters_id = sq_hash_more(h->filters_id, &chunk.big_endian, sizeof chunk.big_endian);
    h->filters_id = sq_hash_more(h->filters_id, chunk.shape, chunk.rank * sizeof *chunk.shape);
    return refuse_unknown(h, err);
}

/* Are all elements of an array type the same? */
static bool is_uniform(const struct sq_hdf5_elements *e, const uint8_t *elements)
{
    const size_t bytes = e->dtype.element_bytes, all = e->inner_count * bytes;
    return all <= bytes || memcmp(elements, elements + bytes, all - bytes) == 0;
}

/* As an attribute would tell it; NULL where that cannot be. Of an array type all elements, where they differ. */
static int tell_fill(struct sq_hdf5_array *h, struct sq_hdf5_tree *tree, const uint8_t *stored, struct squall_error *err)
{
    const struct sq_hdf5_type *type = h->fill_pattern ? h->dataset->type : h->elements.type;
    const struct sq_hdf5_attribute as_attribute = {
        .name = "fill value", .type = type, .space.element_count = 1, .value = stored, .size_bytes = type->size_bytes};
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_CLEANUP_TEXT struct sq_text numpy = SQ_TEXT_INIT;
    SQ_CLEANUP_JSON struct sq_json *value = NULL;
    if (h->elements.dtype.type == SQUALL_BYTES)
        return 0;
    SQ_TRY(sq_hdf5_attribute_json(tree, &as_attribute, &value, &numpy, err));
    SQ_TRY(sq_json_write(value, false, &text, err));
    h->fill_value = sq_text_release(&text);
    return h->fill_value ? 0 : sq_error_memory(err, 1);
}

/* Where the writer gave no value elements read as zeros, and texts as none. */
static int set_fill(struct sq_hdf5_array *h, struct sq_hdf5_tree *tree, struct squall_error *err)
{
    const struct sq_hdf5_elements *e = &h->elements;
    const size_t one = e->dtype.element_bytes, stored_bytes = h->dataset->type->size_bytes;
    struct sq_hdf5_fill fill;
    uint8_t *elements, *zeros;
    SQ_TRY(sq_hdf5_fill_parse(h->data->file, h->dataset, &fill, err));
    SQ_TRY(SQ_HDF5_ROOM(&tree->reader, &zeros, stored_bytes, err));
    SQ_TRY(SQ_HDF5_ROOM(&tree->kept, &elements, e->inner_count * one, err));
    const uint8_t *stored = fill.value ? fill.value : zeros;
    if (!(h->fill = sq_alloc_zero(one, 1)))
        return sq_error_memory(err, one);
    h->base.fill = h->fill;
    if (sq_type_is_variable(e->dtype.type)) {
        SQ_TRY(sq_hdf5_array_elements(h, stored, e->type->size_bytes, h->fill, one, err));
    } else {
        SQ_TRY(sq_hdf5_array_elements(h, stored, stored_bytes, elements, e->inner_count * one, err));
        memcpy(h->fill, elements, one);
        if (!is_uniform(e, elements)) {
            h->fill_pattern = elements;
            h->base.fill = NULL;
        }
    }
    return fill.is_undefined ? 0 : tell_fill(h, tree, stored, err);
}

/* Two datasets that make other elements of the same bytes differ in this. */
static uint64_t decoded_id(const struct sq_hdf5_array *h)
{
    struct sq_hash id = sq_hash_bytes(h->dataset->name, strlen(h->dataset->name));
    id = sq_hash_more(id, &h->elements.dtype, sizeof h->elements.dtype);
    id = sq_hash_more(id, h->chunks, h->base.info.rank * sizeof *h->chunks);
    return id.low ? id.low : 1;
}

/* The elements that lie within the header, as a source of their own. */
static int keep_compact(struct sq_hdf5_array *h, struct sq_hdf5_tree *tree, struct squall_error *err)
{
    const size_t size_bytes = (size_t)h->layout.size_bytes;
    uint8_t *copy;
    SQ_TRY(SQ_HDF5_ROOM(&tree->kept, &copy, size_bytes, err));
    memcpy(copy, h->layout.elements, size_bytes);
    h->layout.elements = copy;
    return sq_source_open_memory(copy, size_bytes, sq_source_name(h->data->file->source), &h->compact, err);
}

/* All that reading needs. SQUALL_EUNSUPPORTED, SQUALL_ECORRUPT: the array is listed, with the reason. */
static int make_readable(struct sq_hdf5_array *h, struct sq_hdf5_tree *tree, struct squall_error *err)
{
    const struct sq_hdf5_dataset *d = h->dataset;
    if (d->unsupported)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s", d->unsupported);
    if (d->external.bytes)
        return sq_error(err, SQUALL_EUNSUPPORTED, "its data lie in external files, which are not opened");
    SQ_TRY(sq_hdf5_elements_make(&tree->kept, d->type, &h->elements, err));
    if (h->space.is_null)
        h->layout = (struct sq_hdf5_layout){.kind = SQ_HDF5_CONTIGUOUS, .address = SQ_HDF5_NOWHERE};
    else
        SQ_TRY(sq_hdf5_layout_parse(h->data->file, d, &h->layout, err));
    if (h->layout.kind == SQ_HDF5_VIRTUAL)
        return sq_error(err, SQUALL_EUNSUPPORTED,
                        "a virtual dataset: its data lie in other datasets; open those, or their files as one (squall.open_many)");
    SQ_TRY(set_grid(h, err));
    SQ_TRY(bind_filters(h, tree, err));
    SQ_TRY(set_fill(h, tree, err));
    if (h->layout.kind == SQ_HDF5_COMPACT)
        SQ_TRY(keep_compact(h, tree, err));
    const bool variable = sq_type_is_variable(h->elements.dtype.type);
    h->base.grows = h->space.rank > 0 && h->space.maximum[0] == SQ_HDF5_NOWHERE;
    h->base.plain = !h->filters && h->elements.is_same;
    h->base.swap_bytes = h->base.plain && h->elements.big_endian ? h->elements.dtype.order_bytes : 0;
    const size_t width = h->filters && h->elements.is_same ? sq_codec_chain_shuffle_width(h->filters) : 0;
    h->base.keeps_shuffled = width > 1 && h->layout.size_bytes % width == 0;
    h->base.decoded_id = variable || h->compact ? 0 : decoded_id(h);
    return 0;
}

static const char *const LAYOUTS[] = {[SQ_HDF5_UNKNOWN] = "unknown",
                                      [SQ_HDF5_COMPACT] = "compact",
                                      [SQ_HDF5_CONTIGUOUS] = "contiguous",
                                      [SQ_HDF5_CHUNKED] = "chunked",
                                      [SQ_HDF5_VIRTUAL] = "virtual"};

/* What squall_array_storage tells. */
static int tell_storage(struct sq_hdf5_array *h, struct squall_error *err)
{
    const struct sq_hdf5_space *space = &h->dataset->space;
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    const char *comma = "";
    sq_text_add(&text, "{\"layout\": \"");
    sq_text_add(&text, LAYOUTS[h->layout.kind]);
    sq_text_add(&text, "\", \"unlimited\": [");
    for (unsigned d = 0; d < space->rank; d++)
        if (space->maximum && space->maximum[d] == SQ_HDF5_NOWHERE) {
            sq_text_add(&text, comma);
            sq_text_add_uint(&text, d);
            comma = ", ";
        }
    sq_text_add(&text, "], \"filters\": [");
    for (size_t i = 0; i < h->pipeline.count; i++) {
        const struct sq_hdf5_filter *f = &h->pipeline.filters[i];
        sq_text_add(&text, i ? ", [" : "[");
        sq_text_add_uint(&text, f->id);
        sq_text_add(&text, ", [");
        for (unsigned k = 0; k < f->value_count; k++) {
            sq_text_add(&text, k ? ", " : "");
            sq_text_add_uint(&text, f->values[k]);
        }
        sq_text_add(&text, "]]");
    }
    sq_text_add(&text, "]}");
    h->storage = sq_text_release(&text);
    return h->storage ? 0 : sq_error_memory(err, 1);
}

static void describe(struct sq_hdf5_array *h)
{
    struct squall_array_info *info = &h->base.info;
    info->name = h->variable->name;
    info->type = info->unsupported ? SQUALL_RAW : h->elements.dtype.type;
    info->type_name = h->elements.type_name ? h->elements.type_name : "unknown";
    info->numpy_type = h->elements.numpy_type ? h->elements.numpy_type : "|V";
    info->sequence_type = h->elements.sequence_type;
    info->enum_names = h->elements.enum_names;
    info->element_bytes = info->unsupported ? 1 : h->elements.dtype.element_bytes;
    info->shape = h->shape;
    info->chunks = h->chunks;
    info->dims = h->dims;
    info->codecs = h->filters ? sq_codec_chain_text(h->filters) : h->layout.kind == SQ_HDF5_CHUNKED ? "none" : LAYOUTS[h->layout.kind];
    info->attributes = h->attributes;
    info->attribute_types = h->attribute_types;
    info->fill_value = h->fill_value ? h->fill_value : "null";
}

/* Those of an array type are not known yet. A dataset without a shape (a null dataspace) is one without elements. */
static int set_shape(struct sq_hdf5_array *h, struct sq_hdf5_reader *kept, struct squall_error *err)
{
    const struct sq_hdf5_space *space = &h->space;
    const unsigned inner_rank = h->dataset->type && h->dataset->type->class == SQ_HDF5_ARRAY ? SQUALL_RANK_MAX - space->rank : 0;
    h->rank = space->is_null ? 1 : space->rank;
    const unsigned room = h->rank + inner_rank;
    SQ_TRY(SQ_HDF5_ROOM(kept, &h->shape, room, err));
    SQ_TRY(SQ_HDF5_ROOM(kept, &h->chunks, room, err));
    SQ_TRY(SQ_HDF5_ROOM(kept, &h->dims, room, err));
    for (unsigned d = 0; d < room; d++) {
        h->shape[d] = d < space->rank ? h->variable->shape[d] : 0;
        h->chunks[d] = h->shape[d] ? h->shape[d] : 1;
        h->dims[d] = d < space->rank ? h->variable->dims[d] : "";
    }
    h->base.info.rank = h->rank;
    return 0;
}

static int fill_array(struct squall_dataset *ds, struct sq_hdf5_array *h, struct squall_error *err)
{
    struct sq_hdf5_data *data = ds->format_data;
    struct squall_error reason = SQUALL_ERROR_INIT;
    h->base.dataset = ds;
    h->space = h->dataset->space;
    SQ_TRY(set_shape(h, &data->tree.kept, err));
    int status = make_readable(h, &data->tree, &reason);
    if (status == SQUALL_EUNSUPPORTED || status == SQUALL_ECORRUPT) {
        h->base.info.unsupported = sq_arena_strdup(data->tree.kept.memory, reason.message);
        if (!h->base.info.unsupported)
            return sq_error_memory(err, strlen(reason.message));
    } else if (status) {
        if (err)
            *err = reason;
        return status;
    }
    SQ_TRY(sq_hdf5_attributes_json(&data->tree, h->dataset->name, &h->dataset->attributes, &h->attributes, &h->attribute_types, err));
    SQ_TRY(tell_storage(h, err));
    describe(h);
    h->pipeline = (struct sq_hdf5_pipeline){0};
    h->variable = NULL;
    h->dataset = NULL;
    return 0;
}

static int add_array(struct squall_dataset *ds, const struct sq_netcdf4_variable *variable, struct squall_error *err)
{
    struct sq_hdf5_array *h = sq_alloc_zero(1, sizeof *h);
    if (!h)
        return sq_error_memory(err, sizeof *h);
    h->base.ops = &sq_hdf5_array_ops;
    h->data = ds->format_data;
    h->variable = variable;
    h->dataset = variable->dataset;
    int status = fill_array(ds, h, err);
    if (status) {
        sq_hdf5_array_free(&h->base);
        return status;
    }
    return sq_dataset_add(ds, &h->base, err);
}

/* ---- the dataset ------------------------------------------------------------------------------------------------------------------ */

static void data_free(void *user)
{
    struct sq_hdf5_data *data = user;
    sq_hdf5_tree_done(&data->tree);
    sq_hdf5_file_close(data->file);
    sq_free(data);
}

static int add_group(struct squall_dataset *ds, struct sq_hdf5_tree *tree, const struct sq_hdf5_group *group, struct squall_error *err)
{
    char *attributes, *types;
    SQ_TRY(sq_hdf5_attributes_json(tree, group->name, &group->attributes, &attributes, &types, err));
    if (group->name[0])
        return sq_dataset_add_group(ds, group->name, attributes, types, err);
    ds->attributes = attributes;
    ds->attribute_types = types;
    return 0;
}

static int fill_dataset(struct squall_dataset *ds, struct sq_source *source, struct squall_error *err)
{
    struct sq_hdf5_data *data = ds->format_data;
    struct sq_hdf5_tree *tree = &data->tree;
    struct sq_netcdf4 shown;
    SQ_TRY(sq_hdf5_file_open(source, &data->file, err));
    SQ_TRY(sq_hdf5_tree_read(data->file, tree, err));
    SQ_TRY(sq_netcdf4_read(tree, &shown, err));
    for (size_t i = 0; i < tree->group_count; i++)
        SQ_TRY(add_group(ds, tree, &tree->groups[i], err));
    for (size_t i = 0; i < shown.variable_count; i++)
        SQ_TRY(add_array(ds, &shown.variables[i], err));
    for (size_t i = 0; i < tree->problem_count; i++)
        SQ_TRY(sq_dataset_add_problem(ds, tree->problems[i], err));
    sq_hdf5_tree_walk_done(tree);
    sq_hdf5_file_drop_head(data->file);
    return 0;
}

int sq_hdf5_dataset_open(const struct squall_context *ctx, struct sq_source *source, struct squall_dataset **ret, struct squall_error *err)
{
    struct squall_dataset *ds = sq_dataset_new(ctx, sq_source_name(source), "hdf5", err);
    if (!ds || !(ds->format_data = sq_alloc_zero(1, sizeof(struct sq_hdf5_data)))) {
        squall_dataset_close(ds);
        sq_source_close(source);
        return sq_error_memory(err, sizeof(struct sq_hdf5_data));
    }
    ds->format_data_free = data_free;
    int status = fill_dataset(ds, source, err);
    if (status)
        squall_dataset_close(ds);
    else
        *ret = ds;
    return status;
}
