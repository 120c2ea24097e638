/*
 * Variables of NetCDF-3 files for the engine. What is stored is the elements, big-endian, so a chunk is any box of them that is one run of the
 * file, or rows of one distance: chunks are cut so that they are some MiB of the file, and threads have something to do.
 */
#include "engine/netcdf3_array.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include <inttypes.h>
#include <string.h>

/* A record, or several where they are small; of variables without records, as many rows as fit. */
static const uint64_t CHUNK_BYTES = 4 << 20;

struct netcdf3_array {
    struct squall_array base;
    const struct sq_netcdf3 *file;
    const struct sq_netcdf3_variable *variable;
    uint64_t chunks[SQUALL_RANK_MAX];
    uint64_t strides[SQUALL_RANK_MAX];               /* in the file: bytes to the next element along each dimension */
    uint64_t fill;                                   /* its first bytes are an element */
    char *attributes, *attribute_types, *fill_value; /* JSON texts */
};

static const struct netcdf3_array *netcdf3_array(const struct squall_array *a)
{
    return (const struct netcdf3_array *)a;
}

uint64_t sq_netcdf3_stride(const struct squall_array *a, unsigned d)
{
    return netcdf3_array(a)->strides[d];
}

uint64_t sq_netcdf3_element_offset(const struct squall_array *a, const uint64_t *index)
{
    const struct netcdf3_array *n = netcdf3_array(a);
    uint64_t offset = n->variable->begin;
    for (unsigned d = 0; d < a->info.rank; d++)
        offset += index[d] * n->strides[d];
    return offset;
}

static int locate(const struct squall_array *a, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err)
{
    const struct netcdf3_array *n = netcdf3_array(a);
    uint64_t begin[SQUALL_RANK_MAX], span = a->info.element_bytes;
    (void)err;
    for (unsigned d = 0; d < a->info.rank; d++) {
        begin[d] = sq_axis_begin(&a->grid[d], chunk[d]);
        span += (sq_axis_extent(&a->grid[d], chunk[d]) - 1) * n->strides[d];
    }
    *ret = (struct sq_location){.source = n->file->source, .offset = sq_netcdf3_element_offset(a, begin), .size_bytes = span};
    return 0;
}

/* Nothing is decoded. */
static void *scratch_new(const struct squall_array *a)
{
    (void)a;
    return sq_alloc(1, 1);
}

static int tell_storage(const struct squall_array *a, struct sq_text *out, struct squall_error *err)
{
    (void)err;
    sq_text_add(out, netcdf3_array(a)->variable->is_record ? "{\"unlimited\": [0]}" : "{}");
    return 0;
}

static int stored_bytes(const struct squall_array *a, uint64_t *ret, struct squall_error *err)
{
    const struct sq_netcdf3_variable *v = netcdf3_array(a)->variable;
    const uint64_t rows = v->is_record ? netcdf3_array(a)->file->record_count : 1;
    if (!sq_mul_u64(v->row_bytes, rows, ret))
        return sq_error(err, SQUALL_ECORRUPT, "array %s: larger than any file", a->info.name);
    return 0;
}

static void array_free(struct squall_array *a)
{
    struct netcdf3_array *n = (struct netcdf3_array *)a;
    sq_free(n->attributes);
    sq_free(n->attribute_types);
    sq_free(n->fill_value);
    sq_free(n);
}

static const struct sq_array_ops OPS = {
    .locate = locate,
    .scratch_new = scratch_new,
    .scratch_free = sq_free,
    .storage = tell_storage,
    .stored_bytes = stored_bytes,
    .free = array_free,
};

const struct sq_netcdf3_variable *sq_netcdf3_of_array(const struct squall_array *a)
{
    return a->ops == &OPS ? netcdf3_array(a)->variable : NULL;
}

/* ---- chunks ----------------------------------------------------------------------------------------------------------------------- */

/* layout.c has seen to it that the products fit, but for records that nobody can read. */
static void set_strides(struct netcdf3_array *n, size_t element_bytes)
{
    const struct sq_netcdf3_variable *v = n->variable;
    uint64_t stride = element_bytes;
    for (unsigned d = v->rank; d-- > 0;) {
        n->strides[d] = d == 0 && v->is_record ? n->file->record_bytes : stride;
        stride *= v->shape[d];
    }
}

/* The last dimensions whole, as far as a chunk goes; of the one before them a part. */
static void choose_chunks(struct netcdf3_array *n)
{
    const struct sq_netcdf3_variable *v = n->variable;
    bool whole = true;
    for (unsigned d = v->rank; d-- > 0;) {
        const uint64_t most = n->strides[d] ? CHUNK_BYTES / n->strides[d] : v->shape[d];
        n->chunks[d] = !whole || most == 0 ? 1 : most < v->shape[d] ? most : v->shape[d];
        whole = whole && n->chunks[d] == v->shape[d];
        if (n->chunks[d] == 0)
            n->chunks[d] = 1; /* of a dimension without elements */
    }
}

static void set_grid(struct netcdf3_array *n)
{
    choose_chunks(n);
    for (unsigned d = 0; d < n->variable->rank; d++)
        n->base.grid[d] = (struct sq_axis){.length = n->variable->shape[d], .chunk = n->chunks[d], .cut = true};
}

/* ---- descriptions ----------------------------------------------------------------------------------------------------------------- */

/* The attribute _FillValue, where it is one element of the variable's type, else what NetCDF fills with. */
static void set_fill(struct netcdf3_array *n, const struct sq_netcdf3_type_row *row)
{
    const struct sq_netcdf3_attributes *attributes = &n->variable->attributes;
    uint64_t bits = row->fill;
    for (size_t i = 0; i < attributes->count; i++) {
        const struct sq_netcdf3_attribute *a = &attributes->list[i];
        if (strcmp(a->name, "_FillValue") != 0 || a->type != n->variable->type || a->count != 1)
            continue;
        bits = 0;
        for (unsigned k = 0; k < row->size_bytes; k++)
            bits = bits << 8 | a->values[k];
    }
    const uint8_t byte = (uint8_t)bits;
    const uint16_t two = (uint16_t)bits;
    const uint32_t four = (uint32_t)bits;
    memcpy(&n->fill,
           row->size_bytes == 1   ? (const void *)&byte
           : row->size_bytes == 2 ? (const void *)&two
           : row->size_bytes == 4 ? (const void *)&four
                                  : (const void *)&bits,
           row->size_bytes);
}

static int json_text(const struct sq_json *value, char **ret, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_TRY(sq_json_write(value, false, &text, err));
    *ret = sq_text_release(&text);
    return *ret ? 0 : sq_error_memory(err, 1);
}

static int attributes_text(const struct sq_netcdf3_attributes *attributes, char **ret, char **ret_types, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *values = NULL;
    SQ_CLEANUP_JSON struct sq_json *types = NULL;
    SQ_TRY(sq_netcdf3_attributes_json(attributes, &values, err));
    SQ_TRY(sq_netcdf3_attributes_types(attributes, &types, err));
    SQ_TRY(json_text(values, ret, err));
    return json_text(types, ret_types, err);
}

/* The fill value as an attribute would tell it. */
static int fill_text(struct netcdf3_array *n, unsigned size_bytes, struct squall_error *err)
{
    uint8_t stored[8];
    const uint8_t *bytes = (const uint8_t *)&n->fill;
    for (unsigned i = 0; i < size_bytes; i++)
        stored[i] = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? bytes[i] : bytes[size_bytes - 1 - i];
    struct sq_netcdf3_attribute one = {.name = "fill", .type = n->variable->type, .count = 1, .values = stored};
    const struct sq_netcdf3_attributes all = {&one, 1};
    SQ_CLEANUP_JSON struct sq_json *object = NULL;
    SQ_TRY(sq_netcdf3_attributes_json(&all, &object, err));
    return json_text(sq_json_get(object, "fill"), &n->fill_value, err);
}

static int describe(struct netcdf3_array *n, struct squall_error *err)
{
    const struct sq_netcdf3_variable *v = n->variable;
    const struct sq_netcdf3_type_row *row = sq_netcdf3_type_row(n->file->version, v->type);
    SQ_TRY(attributes_text(&v->attributes, &n->attributes, &n->attribute_types, err));
    set_fill(n, row);
    SQ_TRY(fill_text(n, row->size_bytes, err));
    set_strides(n, row->size_bytes);
    if (!(n->base.grid = sq_alloc(v->rank + 1, sizeof *n->base.grid)))
        return sq_error_memory(err, v->rank * sizeof *n->base.grid);
    set_grid(n);
    n->base.fill = &n->fill;
    n->base.grows = v->is_record;
    n->base.plain = true;
    n->base.swap_bytes = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ || row->size_bytes == 1 ? 0 : row->size_bytes;
    n->base.row_bytes = v->is_record ? n->file->record_bytes : 0;
    n->base.info = (struct squall_array_info){
        .name = v->name,
        .type = row->type,
        .type_name = row->type == SQUALL_RAW ? row->numpy : squall_type_name(row->type),
        .numpy_type = row->numpy,
        .element_bytes = row->size_bytes,
        .rank = v->rank,
        .shape = v->shape,
        .chunks = n->chunks,
        .dims = v->dims,
        .codecs = v->is_record ? "records" : "contiguous",
        .attributes = n->attributes,
        .attribute_types = n->attribute_types,
        .fill_value = n->fill_value,
        .unsupported = v->unsupported,
    };
    return 0;
}

static int add_array(struct squall_dataset *ds, const struct sq_netcdf3_variable *v, struct squall_error *err)
{
    struct sq_netcdf3 *file = ds->format_data;
    if (v->rank > SQUALL_RANK_MAX)
        return sq_netcdf3_add_problem(file, err, "%s: byte %" PRIu64 ": variable %s left out: %u dimensions, of which squall knows %d",
                                      ds->path, v->header_offset, v->name, v->rank, SQUALL_RANK_MAX);
    struct netcdf3_array *n = sq_alloc_zero(1, sizeof *n);
    if (!n)
        return sq_error_memory(err, sizeof *n);
    n->base.ops = &OPS;
    n->file = file;
    n->variable = v;
    int status = describe(n, err);
    if (!status)
        return sq_dataset_add(ds, &n->base, err);
    sq_free(n->base.grid);
    array_free(&n->base);
    return status;
}

static int fill_dataset(struct squall_dataset *ds, struct squall_error *err)
{
    const struct sq_netcdf3 *file = ds->format_data;
    ds->format = file->version == 1 ? "netcdf3 (CDF-1)" : file->version == 2 ? "netcdf3 (CDF-2)" : "netcdf3 (CDF-5)";
    SQ_TRY(attributes_text(&file->attributes, &ds->attributes, &ds->attribute_types, err));
    SQ_TRY(SQ_GROW(ds->arrays, ds->array_capacity, file->variable_count, err));
    for (size_t i = 0; i < file->variable_count; i++)
        SQ_TRY(add_array(ds, &file->variables[i], err));
    for (size_t i = 0; i < file->problem_count; i++)
        SQ_TRY(sq_dataset_add_problem(ds, file->problems[i], err));
    return 0;
}

static void file_free(void *data)
{
    sq_netcdf3_close(data);
}

const struct sq_netcdf3 *sq_netcdf3_of_dataset(const struct squall_dataset *ds)
{
    return ds->format_data_free == file_free ? ds->format_data : NULL;
}

void sq_netcdf3_dataset_set_records(struct squall_dataset *ds, uint64_t count, uint64_t file_bytes)
{
    struct sq_netcdf3 *file = ds->format_data;
    sq_netcdf3_set_records(file, count);
    sq_source_set_size(file->source, file_bytes);
    for (size_t i = 0; i < ds->array_count; i++)
        set_grid((struct netcdf3_array *)ds->arrays[i]);
}

int sq_netcdf3_dataset_open(const struct squall_context *ctx, struct sq_source *source, struct squall_dataset **ret,
                            struct squall_error *err)
{
    struct sq_netcdf3 *file;
    SQ_TRY(sq_netcdf3_open(source, &file, err));
    struct squall_dataset *ds = sq_dataset_new(ctx, sq_source_name(source), "netcdf3", err);
    if (!ds) {
        sq_netcdf3_close(file);
        return SQUALL_ENOMEM;
    }
    ds->format_data = file;
    ds->format_data_free = file_free;
    int status = fill_dataset(ds, err);
    if (status)
        squall_dataset_close(ds);
    else
        *ret = ds;
    return status;
}
