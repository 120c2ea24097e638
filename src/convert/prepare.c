/*
 * What makes an empty folder a store, and a store one that has room for more runs: layout.json first, so that a killed run is
 * known as one; then coordinates; then the arrays' metadata, the root's last. All of it is left alone where it says the same
 * already.
 */
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/flags.h"
#include "convert/plan.h"
#include "cube/array_damage.h"
#include "engine/variable.h"
#include "squall/version.h"
#include "store/zarr_writer.h"
#include <string.h>

enum { INIT_TIME_CHUNK = 4096, COORDINATE_RANK_MAX = 8 };

/* A chunk of a coordinate that is longer than this is cut. */
static const uint64_t COORDINATE_CHUNK_BYTES = (uint64_t)16 << 20;

static const char COORDINATE_CODEC[] = "zstd:level=3,checksum=true"; /* no record has their checksums: this one tells of a flipped bit */

/* A coordinate or flag with what its description points at. */
struct small_array {
    struct sq_store_array array;
    uint64_t chunks[COORDINATE_RANK_MAX];
    struct sq_codec_chain *codecs;
    struct sq_json *attributes; /* only the flags' own */
};

struct metadata {
    struct small_array *small;
    size_t small_count;
    struct sq_store_array *all;
    size_t count;
    struct sq_json **attributes; /* of the variables */
    size_t attribute_count;
};

static void metadata_done(struct metadata *m)
{
    for (size_t i = 0; i < m->small_count; i++) {
        sq_codec_chain_free(m->small[i].codecs);
        sq_json_free(m->small[i].attributes);
    }
    for (size_t i = 0; i < m->attribute_count; i++)
        sq_json_free(m->attributes[i]);
    sq_free(m->attributes);
    sq_free(m->small);
    sq_free(m->all);
}

static size_t bytes_of(enum squall_type type, unsigned rank, const uint64_t *chunks)
{
    size_t bytes = sq_type_size(type); /* 0 for strings, whose chunks have no fixed size */
    for (unsigned d = 0; d < rank; d++)
        bytes *= chunks[d];
    return bytes;
}

static int describe_coordinate(const struct sq_cube_coordinate *c, struct small_array *s, struct squall_error *err)
{
    if (c->rank > COORDINATE_RANK_MAX)
        return sq_error(err, SQUALL_EINVAL, "coordinate %s has %u dimensions", c->name, c->rank);
    for (unsigned d = 0; d < c->rank; d++)
        s->chunks[d] = c->along_init && d == 0 ? INIT_TIME_CHUNK : c->made[d] ? c->made[d] : c->shape[d] ? c->shape[d] : 1;
    for (unsigned d = 0; d < c->rank && bytes_of(c->type, c->rank, s->chunks) > COORDINATE_CHUNK_BYTES; d++)
        while (s->chunks[d] > 1 && bytes_of(c->type, c->rank, s->chunks) > COORDINATE_CHUNK_BYTES)
            s->chunks[d] = (s->chunks[d] + 1) / 2;
    s->array = (struct sq_store_array){
        .name = c->name,
        .type = c->type,
        .rank = c->rank,
        .shape = c->shape,
        .chunks = s->chunks,
        .dims = (const char *const *)c->dims,
        .attributes = c->attributes,
        .fill_value = c->fill_value,
    };
    SQ_TRY(sq_codec_chain_parse(COORDINATE_CODEC, c->type, NULL, &s->codecs, err));
    s->array.codecs = s->codecs;
    return 0;
}

static int describe_flag(const char *name, enum squall_type type, const char *long_name, const char *const *dims, const uint64_t *shape,
                         uint64_t chunk, struct small_array *s, struct squall_error *err)
{
    s->chunks[0] = chunk;
    s->attributes = sq_json_new_object();
    if (!s->attributes || sq_json_set_string(s->attributes, "long_name", long_name))
        return sq_error_memory(err, strlen(long_name));
    SQ_TRY(sq_codec_chain_parse("none", type, NULL, &s->codecs, err));
    s->array = (struct sq_store_array){
        .name = name,
        .type = type,
        .rank = 1,
        .shape = shape,
        .chunks = s->chunks,
        .dims = dims,
        .attributes = s->attributes,
        .codecs = s->codecs,
    };
    return 0;
}

static int describe_small(const struct squall_convert_plan *plan, const uint64_t *init_shape, struct metadata *m, struct squall_error *err)
{
    const struct sq_cube *cube = &plan->cube;
    for (size_t i = 0; i < cube->coordinate_count; i++)
        SQ_TRY(describe_coordinate(&cube->coordinates[i], &m->small[m->small_count++], err));
    const char *exists = cube->of_arrays ? "whether all that the sources held of the variables here is stored"
                                         : "whether all fields of the run that the sources held are stored";
    const char *count = cube->of_arrays ? "number of variables that are stored here" : "number of fields of the run that are stored";
    SQ_TRY(describe_flag(SQ_FLAG_EXISTS, SQUALL_BOOL, exists, &cube->append_dim, init_shape, plan->layout.flag_chunk,
                         &m->small[m->small_count++], err));
    return describe_flag(SQ_FLAG_COUNT, SQUALL_INT32, count, &cube->append_dim, init_shape, plan->layout.flag_chunk,
                         &m->small[m->small_count++], err);
}

/* The variable's, and how its values were rounded, as netCDF says it. *ret: the caller's. */
static int array_attributes(const struct sq_cube_variable *v, const struct sq_layout_array *a, struct sq_json **ret,
                            struct squall_error *err)
{
    const int keepbits = sq_codec_chain_keepbits(a->codecs);
    struct sq_json *attributes = v->attributes ? sq_json_copy(v->attributes) : sq_json_new_object();
    if (!attributes || (keepbits >= 0 && sq_json_set_int(attributes, "_QuantizeBitRoundNumberOfSignificantBits", keepbits))) {
        sq_json_free(attributes);
        return sq_error_memory(err, 1);
    }
    *ret = attributes;
    return 0;
}

static int describe_all(const struct squall_convert_plan *plan, const uint64_t *init_shape, struct metadata *m, struct squall_error *err)
{
    const struct sq_cube *cube = &plan->cube;
    m->small = sq_alloc_zero(cube->coordinate_count + 2, sizeof *m->small);
    m->all = sq_alloc_zero(cube->coordinate_count + 2 + plan->layout.array_count, sizeof *m->all);
    m->attributes = sq_alloc_zero(plan->layout.array_count + 1, sizeof *m->attributes);
    if (!m->small || !m->all || !m->attributes)
        return sq_error_memory(err, cube->coordinate_count * sizeof *m->small);
    SQ_TRY(describe_small(plan, init_shape, m, err));
    for (size_t i = 0; i < plan->layout.array_count; i++) {
        const struct sq_layout_array *a = &plan->layout.arrays[i];
        SQ_TRY(array_attributes(&cube->variables[i], a, &m->attributes[m->attribute_count], err));
        m->attribute_count++;
        m->all[m->count++] = (struct sq_store_array){
            .name = a->name,
            .type = a->type,
            .rank = a->rank,
            .shape = a->shape,
            .chunks = a->chunks,
            .dims = a->dims,
            .attributes = m->attributes[i],
            .fill_value = a->fill_value,
            .codecs = a->codecs,
        };
    }
    for (size_t i = 0; i < m->small_count; i++)
        m->all[m->count++] = m->small[i].array;
    return 0;
}

/* The cube's attributes and history: what made the bytes, without anything that would differ from run to run. */
static int root_attributes(const struct squall_convert_plan *plan, struct sq_json **ret, struct squall_error *err)
{
    const char *before = plan->cube.of_arrays ? sq_json_string(sq_json_get(plan->cube.attributes, "history")) : NULL;
    SQ_CLEANUP_FREE char *history = sq_format("squall %s: convert%s%s%s%s", SQUALL_VERSION, *plan->settings.text ? " " : "",
                                              plan->settings.text, before ? "\n" : "", before ? before : "");
    struct sq_json *attributes = sq_json_copy(plan->cube.attributes);
    if (attributes && plan->arrays.stored) { /* it has told of itself */
        *ret = attributes;
        return 0;
    }
    if (!history || !attributes || sq_json_set_string(attributes, "history", history)) {
        sq_json_free(attributes);
        return sq_error_memory(err, strlen(plan->settings.text));
    }
    *ret = attributes;
    return 0;
}

/* Nothing of it is there that an earlier run may have left, and the schema says so. */
static int leave_coordinate(struct squall_convert_plan *plan, struct sq_cube_coordinate *c, const char *message, struct squall_error *err)
{
    const char *path = sq_plan_file_path(plan, c->file);
    SQ_CLEANUP_FREE char *why = sq_array_damage_text(path, message);
    if (!why)
        return sq_error_memory(err, strlen(message));
    if (plan->settings.strict)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %s", path, why);
    SQ_TRY(sq_store_remove_chunks(sq_plan_store(plan), c->name, err));
    c->failed = sq_arena_strdup(plan->cube.arena, why);
    if (!c->failed)
        return sq_error_memory(err, strlen(why));
    return sq_input_add_damage(plan, c->file, message, err);
}

/* Those that are not in memory are read one at a time. */
static int write_coordinate(struct squall_convert_plan *plan, const struct sq_store_array *array, struct sq_cube_coordinate *c,
                            struct squall_error *err)
{
    struct squall_error failure = SQUALL_ERROR_INIT;
    uint64_t count = 1;
    if (c->values)
        return sq_store_write_array(sq_plan_store(plan), array, c->values, err);
    for (unsigned d = 0; d < c->rank; d++)
        count *= c->shape[d];
    const struct squall_selection all = squall_selection_all(c->source);
    SQ_CLEANUP_FREE void *values = sq_alloc((size_t)count + 1, squall_type_size(c->type));
    if (!values)
        return sq_error_memory(err, count * squall_type_size(c->type));
    int status = squall_array_read(c->source, &all, values, NULL, &failure);
    if (sq_array_is_damage(status))
        return leave_coordinate(plan, c, failure.message, err);
    if (status)
        return sq_error(err, status, "%s", failure.message);
    status = sq_store_write_array(sq_plan_store(plan), array, values, err);
    sq_variable_free_packed(c->type, count, values);
    return status;
}

static int publish_state(const struct squall_convert_plan *plan, const struct sq_json *schema, struct squall_error *err)
{
    return sq_store_state_write(plan->state.records_folder, plan->layout.description, plan->layout.id, schema, &plan->cube,
                                plan->layout.init_chunk, err);
}

/* The schema tells of coordinates that could not be read from before they are touched until they are whole. */
int sq_plan_prepare(struct squall_convert_plan *plan, struct squall_error *err)
{
    struct sq_cube *cube = &plan->cube;
    __attribute__((cleanup(metadata_done))) struct metadata m = {0};
    const uint64_t init_shape[1] = {cube->init_count};
    struct sq_json *made = NULL;
    SQ_TRY(describe_all(plan, init_shape, &m, err));
    SQ_TRY(root_attributes(plan, &made, err));
    SQ_CLEANUP_JSON struct sq_json *attributes = made;
    made = NULL;
    if (cube->of_arrays)
        made = sq_json_share(cube->schema);
    else
        SQ_TRY(sq_cube_schema(cube, &made, err));
    SQ_CLEANUP_JSON struct sq_json *schema = made;
    bool changed = false;
    SQ_TRY(publish_state(plan, schema, err));
    for (size_t i = 0; i < cube->coordinate_count; i++) {
        struct sq_cube_coordinate *c = &cube->coordinates[i];
        if (c->values || c->source) /* else it is as the store has it */
            SQ_TRY(write_coordinate(plan, &m.small[i].array, c, err));
        changed = changed || c->failed || sq_schema_failed(schema, c->name);
        SQ_TRY(sq_schema_set_failed(schema, c->name, c->failed, c->failed_places, err));
    }
    if (changed)
        SQ_TRY(publish_state(plan, schema, err));
    SQ_TRY(sq_flags_prepare(sq_plan_store(plan), plan->layout.flag_chunk, cube->init_count, err));
    return sq_store_publish_metadata(sq_plan_store(plan), attributes, m.all, m.count, err);
}
