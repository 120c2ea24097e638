/*
 * One array of a layout: its type, chunks, shards and codecs. The user's rules come first; what they leave open follows the defaults of
 * docs/convert.md.
 */
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/layout.h"
#include "format/zarr/fill.h"
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

static int check_dim(const char *option, const char *dim, const struct sq_cube *cube, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text names = SQ_TEXT_INIT;
    if (has_dim(cube, dim) || (cube->of_arrays && coordinate_has_dim(cube, dim)))
        return 0;
    for (size_t v = 0; v < cube->variable_count; v++)
        for (unsigned d = 0; d < cube->variables[v].rank; d++)
            add_name(&names, cube->variables[v].dims[d]);
    return sq_error(err, SQUALL_EINVAL, "%s: there is no dimension \"%s\"; there are %s", option, dim, sq_text_string(&names));
}

static int check_variable(const char *option, const char *variable, const struct sq_cube *cube, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text names = SQ_TEXT_INIT;
    if (!variable || has_variable(cube, variable))
        return 0;
    for (size_t v = 0; v < cube->variable_count; v++)
        add_name(&names, cube->variables[v].name);
    return sq_error(err, SQUALL_EINVAL, "%s: there is no variable \"%s\"; there are %s", option, variable, sq_text_string(&names));
}

static int check_lengths(const char *option, const struct sq_chunk_rules *rules, const struct sq_cube *cube, struct squall_error *err)
{
    for (size_t i = 0; i < rules->count; i++) {
        SQ_TRY(check_variable(option, rules->items[i].variable, cube, err));
        SQ_TRY(check_dim(option, rules->items[i].dim, cube, err));
    }
    return 0;
}

int sq_layout_check_names(const struct sq_settings *s, const struct sq_cube *cube, struct squall_error *err)
{
    SQ_TRY(check_lengths("--chunks", &s->chunks, cube, err));
    SQ_TRY(check_lengths("--shards", &s->shards, cube, err));
    for (size_t i = 0; i < s->type_count; i++)
        SQ_TRY(check_variable("--dtype", s->types[i].variable, cube, err));
    for (size_t i = 0; i < s->rounding_count; i++)
        SQ_TRY(check_variable("--bitround", s->roundings[i].variable, cube, err));
    for (size_t i = 0; i < s->codec_count; i++)
        SQ_TRY(check_variable("--codec", s->codecs[i].variable, cube, err));
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

/* One of the variable goes before one of all, the dimension's own name before that of its kind. NULL: no rule. */
static const struct sq_chunk_rule *rule_of(const struct sq_chunk_rules *rules, const struct sq_layout_array *a, unsigned d)
{
    const struct sq_chunk_rule *found = NULL;
    int best = 0;
    for (size_t i = 0; i < rules->count; i++) {
        const struct sq_chunk_rule *r = &rules->items[i];
        const bool own = !strcmp(r->dim, a->dims[d]);
        const int fit = (own || !strcmp(r->dim, kind_name(a->kinds[d]))) + own + 2 * (r->variable != NULL);
        if ((!own && strcmp(r->dim, kind_name(a->kinds[d])) != 0) || (r->variable && strcmp(r->variable, a->name) != 0) || fit <= best)
            continue;
        found = r;
        best = fit;
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
            if (a->chunks[d] > 1 && !rule_of(&s->chunks, a, d)) {
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
        const struct sq_chunk_rule *rule = rule_of(&s->chunks, a, d);
        uint64_t whole = d == 0 && init_chunk ? init_chunk : a->made[d];
        uint64_t length = !rule ? default_length(a->kinds[d], a->made[d]) : rule->length ? rule->length : whole;
        /* init_time grows, so a chunk of it may be longer than what there is now */
        a->chunks[d] = d > 0 && length > a->made[d] ? a->made[d] : length;
    }
    halve_slab(s, a);
}

/* Of arrays: what no rule says is the default's; the longest of it is halved until the chunk is no larger than others. */
static void cut_array(const struct sq_settings *s, const struct sq_cube_variable *v, uint64_t init_chunk, struct sq_layout_array *a)
{
    bool ruled = false;
    for (unsigned d = 0; d < a->rank; d++) {
        const struct sq_chunk_rule *rule = rule_of(&s->chunks, a, d);
        const uint64_t whole = d == 0 && init_chunk ? init_chunk : a->shape[d];
        const uint64_t length = !rule ? v->default_chunks[d] : rule->length ? rule->length : whole;
        a->chunks[d] = d > 0 && length > a->shape[d] ? a->shape[d] : length;
        a->chunks[d] = a->chunks[d] ? a->chunks[d] : 1;
        ruled = ruled || rule;
    }
    for (uint64_t elements; ruled && !init_chunk && (!elements_of(a, &elements) || elements > DEFAULT_CHUNK_BYTES / a->element_bytes);) {
        unsigned longest = 0;
        for (unsigned d = 1; d < a->rank; d++)
            if (!rule_of(&s->chunks, a, d) && (longest == 0 || a->chunks[d] > a->chunks[longest]))
                longest = d;
        if (longest == 0 || a->chunks[longest] <= 1)
            return;
        a->chunks[longest] = (a->chunks[longest] + 1) / 2;
    }
}

/* Shards around the chunks, of whole ones. What no rule says is as long as they are. */
static int shard(const struct sq_settings *s, uint64_t init_chunk, struct sq_layout_array *a, struct squall_error *err)
{
    if (s->shards.count == 0)
        return 0;
    a->sharded = true;
    for (unsigned d = 0; d < a->rank; d++) {
        const struct sq_chunk_rule *rule = rule_of(&s->shards, a, d);
        const uint64_t chunk = a->chunks[d], whole = d == 0 && init_chunk ? init_chunk : a->made[d];
        uint64_t length = !rule ? chunk : rule->length ? rule->length : whole;
        if (rule && rule->length && length % chunk != 0)
            return sq_error(err, SQUALL_EINVAL, "--shards: %s=%llu is no multiple of %s's chunks, which have %llu there; give both",
                            rule->dim, (unsigned long long)length, a->name, (unsigned long long)chunk);
        const uint64_t chunks_there = (whole + chunk - 1) / chunk, limit = d > 0 ? chunks_there : UINT64_MAX;
        uint64_t count = (length + chunk - 1) / chunk;
        count = count > limit ? limit : count;
        a->inner[d] = chunk;
        if (!sq_mul_u64(count, chunk, &a->chunks[d]))
            return sq_error(err, SQUALL_EINVAL, "--shards: %s is too long", a->dims[d]);
    }
    return 0;
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
    return fits ? 0
                : sq_error(err, SQUALL_EINVAL, "%s: a chunk is larger than any memory; give shorter %s", a->name, sq_layout_file_option(a));
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

/* ---- its codecs ------------------------------------------------------------------------------------------------------------------ */

static const char *chain_of(const struct sq_settings *s, const char *name, bool *ret_own)
{
    const char *spec = NULL;
    *ret_own = false;
    for (size_t i = 0; i < s->codec_count; i++) {
        const struct sq_codec_rule *r = &s->codecs[i];
        if (r->variable ? !strcmp(r->variable, name) : !spec)
            spec = r->spec;
        *ret_own = *ret_own || (r->variable && !strcmp(r->variable, name));
    }
    return spec;
}

/* NULL: none. */
static const struct sq_rounding_rule *rounding_of(const struct sq_settings *s, const char *name)
{
    const struct sq_rounding_rule *found = NULL;
    for (size_t i = 0; i < s->rounding_count; i++) {
        const struct sq_rounding_rule *r = &s->roundings[i];
        if (r->variable ? !strcmp(r->variable, name) : !found)
            found = r;
    }
    return found;
}

/* The chain's words for the array: floats are rounded, integers only if they are named, which is a mistake. *ret: sq_free. */
static int chain_words(const struct sq_settings *s, const struct sq_layout_array *a, char **ret, struct squall_error *err)
{
    static const char ROUND[] = "bitround:";
    bool own;
    const char *spec = chain_of(s, a->name, &own);
    const struct sq_rounding_rule *rounding = rounding_of(s, a->name);
    const bool in_chain = !strncmp(spec, ROUND, strlen(ROUND)), is_float = sq_type_is_float(a->type);
    if (!is_float && ((rounding && rounding->variable) || (in_chain && own)))
        return sq_error(err, SQUALL_EINVAL, "%s is %s: only floats can be rounded", a->name, sq_type_name(a->type));
    if (is_float && rounding && in_chain)
        return sq_error(err, SQUALL_EINVAL, "%s would be rounded twice: give --bitround, or bitround in --codec", a->name);
    if (!is_float && in_chain) {
        const char *rest = strchr(spec, '+');
        spec = rest ? rest + 1 : "none";
    }
    if (is_float && rounding)
        *ret = sq_format("bitround:keepbits=%u%s%s", rounding->keepbits, strcmp(spec, "none") ? "+" : "", strcmp(spec, "none") ? spec : "");
    else
        *ret = sq_strdup(spec);
    return *ret ? 0 : sq_error_memory(err, strlen(spec));
}

static int check_limit(const struct sq_layout_array *a, size_t chunk_bytes, struct squall_error *err)
{
    size_t limit = sq_codec_chain_limit_bytes(a->codecs);
    if (chunk_bytes <= limit)
        return 0;
    return sq_error(err, SQUALL_EINVAL,
                    "%s: a chunk has %zu bytes, and the codec takes at most %zu; give shorter --chunks, such as %s=%llu", a->name,
                    chunk_bytes, limit, a->dims[a->rank - 1], (unsigned long long)(a->columns + 1) / 2);
}

static int choose_codecs(const struct sq_settings *s, struct sq_layout_array *a, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *words = NULL;
    size_t inner_bytes = a->chunk_bytes;
    SQ_TRY(chain_words(s, a, &words, err));
    for (unsigned d = 0; d < a->rank && a->sharded; d++)
        inner_bytes = inner_bytes / a->chunks[d] * a->inner[d];
    int status = sq_codec_chain_parse(words, a->type, a->fill, &a->codecs, err);
    if (status)
        return status == SQUALL_EINVAL ? sq_error_within(err, status, "--codec") : status;
    SQ_TRY(check_limit(a, inner_bytes, err));
    if (!a->sharded)
        return 0;
    struct sq_codec_chain *inner = a->codecs;
    const struct sq_codec_chunk shard = {.dtype = sq_dtype_of(a->type), .rank = a->rank, .shape = a->chunks, .fill = a->fill};
    a->codecs = NULL;
    return sq_codec_chain_shards(inner, &shard, a->inner, &a->codecs, err);
}

int sq_layout_make_array(const struct sq_settings *s, const struct sq_cube *cube, size_t index, uint64_t init_chunk,
                         struct sq_layout_array *a, struct squall_error *err)
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
        a->made[d] = v->made[d] ? v->made[d] : v->shape[d];
    }
    a->outer_rank = a->rank - 1 - a->slab_rank;
    if (cube->of_arrays) {
        SQ_TRY(check_cast(v, a, err));
        cut_array(s, v, init_chunk, a);
    } else {
        cut(s, init_chunk, a);
    }
    SQ_TRY(shard(s, init_chunk, a, err));
    SQ_TRY(take_fill(v, a, err));
    const struct sq_store_array told = {.type = a->type, .attributes = v->attributes, .fill_value = a->fill_value};
    a->keeps_fill = !sq_store_tells_fill(&told, s->zarr_format);
    SQ_TRY(count_up(a, err));
    return choose_codecs(s, a, err);
}
