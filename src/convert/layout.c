/* See layout.h. Chunk lengths come from the user's rules first; what they leave open follows the defaults of docs/convert.md. */
#include "convert/layout.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "format/zarr/fill.h"
#include "format/zarr/records.h"
#include <string.h>

static const uint64_t DEFAULT_CHUNK_BYTES = (uint64_t)16 << 20;

/* What a dimension may be called in options, beside its own name. */
static const char *kind_name(enum sq_cube_dim kind)
{
    switch (kind) {
    case SQ_DIM_INIT_TIME:
        return "init_time";
    case SQ_DIM_STEP:
        return "step";
    case SQ_DIM_NUMBER:
        return "number";
    case SQ_DIM_LEVEL:
        return "level";
    case SQ_DIM_Y:
        return "y";
    case SQ_DIM_X:
        return "x";
    case SQ_DIM_STACK:
        return "variable";
    case SQ_DIM_OTHER:
        return "";
    }
    return "";
}

/* ---- names in options that nothing has ------------------------------------------------------------------------------------------- */

static void add_name(struct sq_text *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = sq_text_string(list); (at = strstr(at, name)); at += length) {
        bool begins = at == list->data || at[-1] == ' ', ends = at[length] == 0 || at[length] == ',';
        if (begins && ends)
            return;
    }
    sq_text_printf(list, "%s%s", list->length ? ", " : "", name);
}

static bool has_dim(const struct sq_cube *cube, const char *name)
{
    for (size_t i = 0; i < cube->variable_count; i++)
        for (unsigned d = 0; d < cube->variables[i].rank; d++)
            if (!strcmp(cube->variables[i].dims[d], name) || !strcmp(kind_name(cube->variables[i].dim_kinds[d]), name))
                return true;
    return false;
}

/* Of arrays a rule may be for one that is kept as a coordinate: it has no effect, and is no mistake. */
static bool coordinate_has_dim(const struct sq_cube *cube, const char *name)
{
    for (size_t i = 0; i < cube->coordinate_count; i++)
        for (unsigned d = 0; d < cube->coordinates[i].rank; d++)
            if (!strcmp(cube->coordinates[i].dims[d], name))
                return true;
    return false;
}

static bool has_variable(const struct sq_cube *cube, const char *name)
{
    for (size_t i = 0; i < cube->variable_count; i++)
        if (!strcmp(cube->variables[i].name, name))
            return true;
    return false;
}

static int check_names(const struct sq_settings *s, const struct sq_cube *cube, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text names = SQ_TEXT_INIT;
    for (size_t i = 0; i < s->chunk_count; i++) {
        if (has_dim(cube, s->chunks[i].dim) || (cube->of_arrays && coordinate_has_dim(cube, s->chunks[i].dim)))
            continue;
        for (size_t v = 0; v < cube->variable_count; v++)
            for (unsigned d = 0; d < cube->variables[v].rank; d++)
                add_name(&names, cube->variables[v].dims[d]);
        return sq_error(err, SQUALL_EINVAL, "--chunks: there is no dimension \"%s\"; there are %s", s->chunks[i].dim,
                        sq_text_string(&names));
    }
    for (size_t i = 0; i < s->type_count; i++) {
        if (!s->types[i].variable || has_variable(cube, s->types[i].variable))
            continue;
        for (size_t v = 0; v < cube->variable_count; v++)
            add_name(&names, cube->variables[v].name);
        return sq_error(err, SQUALL_EINVAL, "--dtype: there is no variable \"%s\"; there are %s", s->types[i].variable,
                        sq_text_string(&names));
    }
    return 0;
}

/* ---- one array ------------------------------------------------------------------------------------------------------------------- */

static enum squall_type type_of(const struct sq_settings *s, const struct sq_cube_variable *v)
{
    enum squall_type type = v->type;
    for (size_t i = 0; i < s->type_count; i++) {
        if (!s->types[i].variable)
            type = sq_type_is_float(v->type) ? s->types[i].type : type; /* of all: integers stay what they are */
        else if (!strcmp(s->types[i].variable, v->name))
            return s->types[i].type;
    }
    return type;
}

/* The dimension's own name goes before that of its kind. NULL: no rule. */
static const struct sq_chunk_rule *rule_of(const struct sq_settings *s, const char *dim, enum sq_cube_dim kind)
{
    const struct sq_chunk_rule *found = NULL;
    for (size_t i = 0; i < s->chunk_count; i++) {
        if (!strcmp(s->chunks[i].dim, dim))
            return &s->chunks[i];
        if (!strcmp(s->chunks[i].dim, kind_name(kind)))
            found = &s->chunks[i];
    }
    return found;
}

static uint64_t default_length(enum sq_cube_dim kind, uint64_t length)
{
    bool one = kind == SQ_DIM_INIT_TIME || kind == SQ_DIM_NUMBER || kind == SQ_DIM_LEVEL;
    return one ? 1 : length;
}

static bool elements_of(const struct sq_layout_array *a, uint64_t *ret)
{
    *ret = 1;
    for (unsigned d = 0; d < a->rank; d++)
        if (!sq_mul_u64(*ret, a->chunks[d], ret))
            return false;
    return true;
}

/* Halve y and x, where no rule says what they are, until a chunk is no larger than the default. */
static void halve_slab(const struct sq_settings *s, struct sq_layout_array *a)
{
    for (;;) {
        uint64_t elements;
        bool halved = false;
        if (elements_of(a, &elements) && elements <= DEFAULT_CHUNK_BYTES / a->element_bytes)
            return;
        for (unsigned d = a->rank - a->slab_rank; d < a->rank; d++) {
            if (a->chunks[d] > 1 && !rule_of(s, a->dims[d], a->kinds[d])) {
                a->chunks[d] = (a->chunks[d] + 1) / 2;
                halved = true;
            }
        }
        if (!halved)
            return;
    }
}

/* init_chunk: the store's own; 0: a new store. */
static void cut(const struct sq_settings *s, uint64_t init_chunk, struct sq_layout_array *a)
{
    for (unsigned d = 0; d < a->rank; d++) {
        const struct sq_chunk_rule *rule = rule_of(s, a->dims[d], a->kinds[d]);
        uint64_t whole = d == 0 && init_chunk ? init_chunk : a->shape[d];
        uint64_t length = !rule ? default_length(a->kinds[d], a->shape[d]) : rule->length ? rule->length : whole;
        /* init_time grows, so a chunk of it may be longer than what there is now */
        a->chunks[d] = d > 0 && length > a->shape[d] ? a->shape[d] : length;
    }
    halve_slab(s, a);
}

/* Of arrays: what no rule says is the default's; the longest of it is halved until the chunk is no larger than others. */
static void cut_array(const struct sq_settings *s, const struct sq_cube_variable *v, uint64_t init_chunk, struct sq_layout_array *a)
{
    bool ruled = false;
    for (unsigned d = 0; d < a->rank; d++) {
        const struct sq_chunk_rule *rule = rule_of(s, a->dims[d], a->kinds[d]);
        const uint64_t whole = d == 0 && init_chunk ? init_chunk : a->shape[d];
        const uint64_t length = !rule ? v->default_chunks[d] : rule->length ? rule->length : whole;
        a->chunks[d] = d > 0 && length > a->shape[d] ? a->shape[d] : length;
        a->chunks[d] = a->chunks[d] ? a->chunks[d] : 1;
        ruled = ruled || rule;
    }
    for (uint64_t elements; ruled && !init_chunk && (!elements_of(a, &elements) || elements > DEFAULT_CHUNK_BYTES / a->element_bytes);) {
        unsigned longest = 0;
        for (unsigned d = 1; d < a->rank; d++)
            if (!rule_of(s, a->dims[d], a->kinds[d]) && (longest == 0 || a->chunks[d] > a->chunks[longest]))
                longest = d;
        if (longest == 0 || a->chunks[longest] <= 1)
            return;
        a->chunks[longest] = (a->chunks[longest] + 1) / 2;
    }
}

static int take_fill(const struct sq_cube_variable *v, struct sq_layout_array *a, struct squall_error *err)
{
    const bool cast = v->source && a->type != v->source_type; /* into floats, whose own is NaN */
    a->fill_value = cast ? NULL : v->fill_value;
    SQ_CLEANUP_JSON struct sq_json *nan = sq_json_new_string("NaN");
    if (!nan)
        return sq_error_memory(err, sizeof a->fill);
    const struct sq_json *fill = a->fill_value ? a->fill_value : sq_type_is_float(a->type) ? nan : NULL;
    return sq_zarr_fill_parse(a->type, fill, a->fill)
               ? 0
               : sq_error(err, SQUALL_EREFUSED,
                          "%s is %s in the sources, and its fill value in the store is none; convert them into another store", a->name,
                          sq_type_name(a->type));
}

static int count_up(struct sq_layout_array *a, struct squall_error *err)
{
    uint64_t elements;
    bool fits = elements_of(a, &elements) && sq_mul_size(elements, a->element_bytes, &a->chunk_bytes);
    a->slabs_per_init = a->chunks_per_unit = 1;
    for (unsigned d = 0; d < a->rank && fits; d++) {
        a->grid[d] = (a->shape[d] + a->chunks[d] - 1) / a->chunks[d];
        if (d > 0)
            fits = sq_mul_u64(a->chunks_per_unit, a->grid[d], &a->chunks_per_unit);
        if (d > 0 && d + a->slab_rank < a->rank)
            fits = fits && sq_mul_u64(a->slabs_per_init, a->shape[d], &a->slabs_per_init);
    }
    a->columns = a->shape[a->rank - 1];
    a->rows = a->slab_rank == 2 ? a->shape[a->rank - 2] : 1;
    return fits ? 0 : sq_error(err, SQUALL_EINVAL, "%s: a chunk is larger than any memory; give shorter --chunks", a->name);
}

/* Numbers are stored as they are, or cast to floats, integers after they were unpacked. */
static int check_cast(const struct sq_cube_variable *v, const struct sq_layout_array *a, struct squall_error *err)
{
    const bool can = v->source_type == SQUALL_FLOAT32 || v->source_type == SQUALL_FLOAT64 || sq_type_is_integer(v->source_type);
    if (a->type == v->source_type)
        return 0;
    if (!can)
        return sq_error(err, SQUALL_EINVAL, "--dtype %s=%s: it is %s, which is stored as it is; float32, float64 and integers can be cast",
                        a->name, sq_type_name(a->type), sq_type_name(v->source_type));
    if (sq_type_is_integer(v->source_type) && v->packing.unusable)
        return sq_error(err, SQUALL_EINVAL, "--dtype %s=%s: its %s is no number, so it cannot be unpacked", a->name, sq_type_name(a->type),
                        v->packing.unusable);
    return 0;
}

static int make_array(const struct sq_settings *s, const struct sq_cube *cube, size_t index, uint64_t init_chunk, struct sq_layout_array *a,
                      struct squall_error *err)
{
    const struct sq_cube_variable *v = &cube->variables[index];
    a->name = v->name;
    a->rank = v->rank;
    a->type = type_of(s, v);
    a->element_bytes = sq_type_size(a->type);
    a->leaves_fill = cube->of_arrays;
    a->slab_rank = cube->of_arrays ? v->rank - 1 : cube->grids[v->grid].rows ? 2 : 1;
    for (unsigned d = 0; d < v->rank; d++) {
        a->dims[d] = v->dims[d];
        a->kinds[d] = v->dim_kinds[d];
        a->shape[d] = v->shape[d];
    }
    if (cube->of_arrays) {
        SQ_TRY(check_cast(v, a, err));
        cut_array(s, v, init_chunk, a);
    } else {
        cut(s, init_chunk, a);
    }
    SQ_TRY(take_fill(v, a, err));
    SQ_TRY(count_up(a, err));
    int status = sq_codec_chain_parse(s->codec, a->type, a->chunk_bytes, &a->codecs, err);
    if (status)
        return status == SQUALL_EINVAL ? sq_error_within(err, status, "--codec") : status;
    size_t limit = sq_codec_chain_limit_bytes(a->codecs);
    if (a->chunk_bytes <= limit)
        return 0;
    return sq_error(err, SQUALL_EINVAL,
                    "%s: a chunk has %zu bytes, and the codec takes at most %zu; give shorter --chunks, such as %s=%llu", a->name,
                    a->chunk_bytes, limit, a->dims[a->rank - 1], (unsigned long long)(a->columns + 1) / 2);
}

/* ---- description ----------------------------------------------------------------------------------------------------------------- */

static struct sq_json *numbers_json(const uint64_t *numbers, size_t count)
{
    struct sq_json *v = sq_json_new_array();
    for (size_t i = 0; v && i < count; i++) {
        if (sq_json_append(v, sq_json_new_uint(numbers[i]))) {
            sq_json_free(v);
            return NULL;
        }
    }
    return v;
}

static int describe_settings(const struct sq_settings *s, struct sq_json *v)
{
    SQ_CLEANUP_FREE char *coarsen = sq_format("y=%u,x=%u", s->coarsen_y, s->coarsen_x);
    if (!coarsen || sq_json_set_int(v, "record_format", SQ_RECORD_FORMAT) ||
        sq_json_set(v, "select", sq_json_new_texts(s->select, s->select_count)) ||
        sq_json_set(v, "rename", sq_json_new_texts(s->rename, s->rename_count)) || sq_json_set_string(v, "coarsen", coarsen) ||
        sq_json_set_string(v, "stack", s->stack ? s->stack_name : "none"))
        return SQUALL_ENOMEM;
    return 0;
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

static struct sq_json *array_json(const struct sq_layout_array *a)
{
    struct sq_json *v = sq_json_new_object();
    if (!v || sq_json_set(v, "dims", sq_json_new_texts(a->dims, a->rank)) ||
        sq_json_set(v, "shape", numbers_json(a->shape + 1, a->rank - 1)) || sq_json_set(v, "chunks", numbers_json(a->chunks, a->rank)) ||
        sq_json_set_string(v, "dtype", sq_type_name(a->type)) || sq_json_set_string(v, "codec", sq_codec_chain_identity(a->codecs))) {
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
    struct sq_layout layout = {0};
    SQ_TRY(check_names(settings, cube, err));
    layout.arrays = sq_alloc_zero(cube->variable_count + 1, sizeof *layout.arrays);
    if (!layout.arrays)
        return sq_error_memory(err, cube->variable_count * sizeof *layout.arrays);
    int status = 0;
    for (size_t i = 0; i < cube->variable_count && !status; i++) {
        layout.array_count++;
        status = make_array(settings, cube, i, init_chunk, &layout.arrays[i], err);
    }
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
    if (!r || r->chunk_count != a->chunks_per_unit)
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
    for (size_t i = 0; i < array_count; i++)
        if (!fits_array(&arrays[i], init_chunk, sq_record_array_of(record, arrays[i].name), &total))
            return false;
    for (size_t i = 0; i < record->init_count; i++)
        told += record->field_counts[i];
    return record->array_count == array_count && told == total;
}

bool sq_layout_is_whole(bool of_arrays, const struct sq_record_unit *record, size_t within_unit)
{
    for (size_t i = 0; i < record->array_count && of_arrays; i++) {
        const struct sq_ranges *bad = &record->arrays[i].bad; /* of arrays a slab is all of an init time */
        if (sq_ranges_beyond(bad, within_unit) > sq_ranges_beyond(bad, within_unit + 1))
            return false;
    }
    return true;
}

struct sq_flag sq_layout_flag(bool of_arrays, const struct sq_record_unit *record, size_t within_unit)
{
    const uint32_t count = record->field_counts[within_unit];
    return (struct sq_flag){count, count > 0 && sq_layout_is_whole(of_arrays, record, within_unit)};
}
