/*
 * Making a chain from v3's or v2's metadata. Both read the same tables of options (codec_internal.h); they differ in how a codec is
 * named, and in that v2 has no "bytes" and knows nothing of arrays: its order F and big-endian types become stages here.
 */
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/chain.h"
#include <string.h>

const struct sq_stage_ops *const sq_all_stages[] = {
    &sq_stage_blosc,
    &sq_stage_zstd,
    &sq_stage_gzip,
    &sq_stage_zlib,
    &sq_stage_lz4,
    &sq_stage_bz2,
    &sq_stage_shuffle,
    &sq_stage_crc32c,
    &sq_stage_crc32,
    &sq_stage_adler32,
    &sq_stage_fletcher32,
    &sq_stage_bytes,
    &sq_stage_vlen_utf8,
    &sq_stage_vlen_bytes,
    &sq_stage_packbits,
    &sq_stage_sharding,
    &sq_stage_transpose,
    &sq_stage_bitround,
    &sq_stage_delta,
    &sq_stage_fixedscaleoffset,
    &sq_stage_quantize,
    &sq_stage_astype,
    &sq_stage_packbits_numcodecs,
    &sq_stage_scale_offset,
    &sq_stage_cast_value,
    NULL,
};

static const char NUMCODECS[] = "numcodecs.";

/* v3 has names of its own, and numcodecs' with a prefix. */
static const struct sq_stage_ops *stage_named_v3(const char *name)
{
    bool prefixed = strncmp(name, NUMCODECS, sizeof NUMCODECS - 1) == 0;
    const char *id = prefixed ? name + sizeof NUMCODECS - 1 : name;
    for (unsigned i = 0; sq_all_stages[i]; i++)
        if (strcmp(sq_all_stages[i]->name_v3, name) == 0)
            return sq_all_stages[i];
    for (unsigned i = 0; sq_all_stages[i]; i++)
        if (!sq_all_stages[i]->only_v3 && strcmp(sq_all_stages[i]->name, id) == 0)
            return sq_all_stages[i];
    return NULL;
}

static const struct sq_stage_ops *stage_named_v2(const char *id)
{
    for (unsigned i = 0; sq_all_stages[i]; i++)
        if (!sq_all_stages[i]->only_v3 && strcmp(sq_all_stages[i]->name, id) == 0)
            return sq_all_stages[i];
    return NULL;
}

/* ---- a chain, step by step -------------------------------------------------------------------------------------------------------- */

struct sq_codec_chain *sq_chain_new(const struct sq_dtype *dtype, struct squall_error *err)
{
    struct sq_codec_chain *chain = sq_alloc_zero(1, sizeof *chain);
    if (chain)
        chain->dtype = *dtype;
    else
        (void)sq_error_memory(err, sizeof *chain);
    return chain;
}

void sq_codec_chain_free(struct sq_codec_chain *chain)
{
    if (!chain)
        return;
    for (unsigned i = 0; i < chain->stage_count; i++) {
        if (chain->stages[i].ops->done)
            chain->stages[i].ops->done(&chain->stages[i]);
        sq_json_free(chain->stages[i].configuration);
    }
    sq_free(chain->text);
    sq_free(chain->identity);
    sq_free(chain);
}

int sq_chain_add(struct sq_codec_chain *chain, const struct sq_stage_ops *ops, struct sq_stage **ret, struct squall_error *err)
{
    if (chain->stage_count == SQ_CHAIN_STAGES_MAX)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported chain of more than %d codecs", SQ_CHAIN_STAGES_MAX);
    struct sq_stage *stage = &chain->stages[chain->stage_count++];
    stage->ops = ops;
    for (unsigned i = 0; ops->options && ops->options[i].name; i++)
        stage->value[i] = ops->options[i].standard;
    chain->shaped = chain->shaped || ops->shaped;
    *ret = stage;
    return 0;
}

int sq_chain_bind(struct sq_codec_chain *chain, struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array,
                  struct squall_error *err)
{
    if (stage->ops->kind == SQ_STAGE_TO_BYTES)
        chain->stored_order_bytes = array->dtype.order_bytes;
    if (stage->ops->bind)
        SQ_TRY(stage->ops->bind(stage, configuration, array, err));
    if (stage->ops->kind == SQ_STAGE_TO_BYTES)
        chain->big_endian = array->big_endian;
    return 0;
}

/* What goes into the first stage. */
static int array_of(const struct sq_codec_chunk *chunk, struct sq_stage_array *ret, size_t *ret_bytes, struct squall_error *err)
{
    size_t bytes = chunk->dtype.element_bytes;
    *ret = (struct sq_stage_array){.dtype = chunk->dtype, .rank = chunk->rank, .fill = chunk->fill, .big_endian = chunk->big_endian};
    if (bytes == 0)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported elements of no bytes");
    for (unsigned d = 0; d < chunk->rank; d++) {
        ret->shape[d] = chunk->shape[d];
        if (!sq_mul_size(bytes, chunk->shape[d], &bytes))
            return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported chunk size: more bytes than can be counted");
    }
    *ret_bytes = bytes;
    return 0;
}

/* ---- settings --------------------------------------------------------------------------------------------------------------------- */

bool sq_option_word(const struct sq_stage_option *option, const char *word, int *ret)
{
    for (int i = 0; option->words && word && option->words[i]; i++) {
        if (strcmp(option->words[i], word) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static int bad_word(const struct sq_stage_ops *ops, const struct sq_stage_option *option, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text words = SQ_TEXT_INIT;
    for (unsigned i = 0; option->words && option->words[i]; i++)
        sq_text_printf(&words, "%s\"%s\"", i ? ", " : "", option->words[i]);
    if (option->words)
        return sq_error(err, SQUALL_ECORRUPT, "codec %s: \"%s\" is none of %s", ops->name, option->name, sq_text_string(&words));
    return sq_error(err, SQUALL_ECORRUPT, "codec %s: \"%s\" is no %s", ops->name, option->name, option->truth ? "truth" : "whole number");
}

static int read_option(const struct sq_stage_ops *ops, const struct sq_stage_option *option, const struct sq_json *v, int *ret,
                       struct squall_error *err)
{
    enum sq_json_type type = sq_json_type(v);
    int64_t number = 0;
    bool truth = false;
    if (option->required && (type == SQ_JSON_ABSENT || type == SQ_JSON_NULL))
        return sq_error(err, SQUALL_ECORRUPT, "codec %s: its \"%s\" is missing", ops->name, option->name);
    if (type == SQ_JSON_ABSENT || type == SQ_JSON_NULL || sq_option_word(option, sq_json_string(v), ret))
        return 0;
    if (option->truth && sq_json_bool(v, &truth))
        number = truth;
    else if (!sq_json_int(v, &number) || option->least == option->greatest)
        return bad_word(ops, option, err);
    if (number < option->least || number > option->greatest)
        return sq_error(err, SQUALL_ECORRUPT, "codec %s: \"%s\" is %lld, not within %d to %d", ops->name, option->name, (long long)number,
                        option->least, option->greatest);
    *ret = (int)number;
    return 0;
}

int sq_stage_check_settings(const struct sq_stage *stage, const struct sq_json *settings, const char *const *known,
                            struct squall_error *err)
{
    const char *unknown = sq_json_unknown_member(settings, known);
    return unknown ? sq_error(err, SQUALL_EUNSUPPORTED, "codec %s: unsupported setting \"%.60s\"", stage->ops->name, unknown) : 0;
}

static int add_from_json(struct sq_codec_chain *chain, const struct sq_stage_ops *ops, const struct sq_json *configuration,
                         struct sq_stage_array *array, struct squall_error *err)
{
    struct sq_stage *stage = NULL;
    SQ_TRY(sq_chain_add(chain, ops, &stage, err));
    for (unsigned i = 0; ops->options && ops->options[i].name; i++)
        SQ_TRY(read_option(ops, &ops->options[i], sq_json_get(configuration, ops->options[i].name), &stage->value[i], err));
    if (ops->keeps_configuration && sq_json_type(configuration) == SQ_JSON_OBJECT && !(stage->configuration = sq_json_copy(configuration)))
        return sq_error_memory(err, 1);
    return sq_chain_bind(chain, stage, configuration, array, err);
}

/* ---- v3 --------------------------------------------------------------------------------------------------------------------------- */

/* v3's codecs are objects, or just a name. */
static const char *name_v3(const struct sq_json *codec)
{
    const char *name = sq_json_string(codec);
    return name ? name : sq_json_string(sq_json_get(codec, "name"));
}

/* Codecs go from arrays to bytes, once. */
static int check_place(const struct sq_codec_chain *chain, const struct sq_stage_ops *ops, struct squall_error *err)
{
    const struct sq_stage_ops *before = chain->stage_count ? chain->stages[chain->stage_count - 1].ops : NULL;
    bool on_array = !before || before->kind == SQ_STAGE_ARRAY;
    if (on_array && ops->kind == SQ_STAGE_BYTES)
        return sq_error(err, SQUALL_ECORRUPT, "codec %s comes before \"bytes\"", ops->name);
    if (!on_array && ops->kind != SQ_STAGE_BYTES)
        return sq_error(err, SQUALL_ECORRUPT, "codec %s comes after %s, which makes bytes already", ops->name, before->name);
    return 0;
}

/*
 * The fill value as it is where the chain has got to: a shard's inner chunks know no other. One element goes through the
 * stages as a chunk would. *ret: NULL for zero, else sq_free.
 */
static int encoded_fill(const struct sq_codec_chain *chain, const struct sq_codec_chunk *chunk, size_t element_bytes, void **ret,
                        struct squall_error *err)
{
    size_t size = chunk->dtype.element_bytes;
    uint8_t *fill = sq_alloc_zero(1, size);
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    int status = fill && scratch ? 0 : sq_error_memory(err, size);
    if (!status && chunk->fill)
        memcpy(fill, chunk->fill, size);
    for (unsigned i = 0; i < chain->stage_count && !status; i++) {
        const struct sq_stage *stage = &chain->stages[i];
        if (stage->encode_copies || stage->ops->shaped)
            continue;
        size_t room = stage->ops->bound(stage, size), got = 0;
        uint8_t *next = sq_alloc_zero(1, room);
        status = next ? stage->ops->encode(stage, scratch, 1, fill, size, next, room, &got, err) : sq_error_memory(err, room);
        sq_free(fill);
        fill = next;
        size = got;
    }
    sq_codec_scratch_free(scratch);
    if (status || size != element_bytes) { /* bits of several elements in one: of no use as a fill value */
        sq_free(fill);
        fill = NULL;
    }
    *ret = fill;
    return status;
}

static int add_v3(struct sq_codec_chain *chain, const struct sq_json *codec, const struct sq_codec_chunk *chunk,
                  struct sq_stage_array *array, struct squall_error *err)
{
    const char *name = name_v3(codec);
    const struct sq_stage_ops *ops = name ? stage_named_v3(name) : NULL;
    const struct sq_json *configuration = sq_json_get(codec, "configuration");
    SQ_CLEANUP_FREE void *fill = NULL;
    if (!name)
        return sq_error(err, SQUALL_ECORRUPT, "codec %u has no name", chain->stage_count);
    if (!ops)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported codec %.100s", name);
    if (configuration && sq_json_type(configuration) != SQ_JSON_OBJECT)
        return sq_error(err, SQUALL_ECORRUPT, "codec %s: its configuration is no object", ops->name);
    SQ_TRY(check_place(chain, ops, err));
    if (ops == &sq_stage_sharding && chain->stage_count > 0 && !sq_type_is_variable(chunk->dtype.type)) {
        SQ_TRY(encoded_fill(chain, chunk, array->dtype.element_bytes, &fill, err));
        array->fill = fill;
    }
    return add_from_json(chain, ops, configuration, array, err);
}

int sq_codec_chain_bind_v3(const struct sq_json *codecs, const struct sq_codec_chunk *chunk, struct sq_codec_chain **ret,
                           struct squall_error *err)
{
    struct sq_stage_array array;
    SQ_CLEANUP_CHAIN struct sq_codec_chain *chain = sq_chain_new(&chunk->dtype, err);
    if (!chain)
        return SQUALL_ENOMEM;
    SQ_TRY(array_of(chunk, &array, &chain->chunk_bytes, err));
    if (sq_json_type(codecs) != SQ_JSON_ARRAY || sq_json_count(codecs) == 0)
        return sq_error(err, SQUALL_ECORRUPT, "the list of codecs does not begin with a codec's name");
    for (size_t i = 0; i < sq_json_count(codecs); i++)
        SQ_TRY(add_v3(chain, sq_json_at(codecs, i), chunk, &array, err));
    if (chain->stages[chain->stage_count - 1].ops->kind == SQ_STAGE_ARRAY)
        return sq_error(err, SQUALL_ECORRUPT, "no codec makes bytes of the array: %s is the last",
                        chain->stages[chain->stage_count - 1].ops->name);
    SQ_TRY(sq_chain_finish(chain, err));
    *ret = chain;
    chain = NULL;
    return 0;
}

/* ---- v2 --------------------------------------------------------------------------------------------------------------------------- */

/* What v2 does not say: behind the filters that work on elements these are bytes. */
static int add_bytes_v2(struct sq_codec_chain *chain, struct sq_stage_array *array, struct squall_error *err)
{
    struct sq_stage *stage = NULL;
    SQ_TRY(sq_chain_add(chain, &sq_stage_bytes, &stage, err));
    SQ_TRY(sq_chain_bind(chain, stage, NULL, array, err));
    return 0;
}

/* v2 names a codec by "id" among its settings. */
static int add_v2(struct sq_codec_chain *chain, const struct sq_json *codec, struct sq_stage_array *array, bool *is_bytes,
                  struct squall_error *err)
{
    const char *id = sq_json_string(sq_json_get(codec, "id"));
    const struct sq_stage_ops *ops = id ? stage_named_v2(id) : NULL;
    if (!id)
        return sq_error(err, SQUALL_ECORRUPT, "a filter or compressor has no \"id\"");
    if (!ops)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported codec %.100s", id);
    if (*is_bytes && ops->kind != SQ_STAGE_BYTES)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported codec %s behind one that makes bytes", id);
    if (!*is_bytes && ops->kind == SQ_STAGE_BYTES)
        SQ_TRY(add_bytes_v2(chain, array, err));
    SQ_TRY(add_from_json(chain, ops, codec, array, err));
    if (ops->kind == SQ_STAGE_BYTES) /* numcodecs' codecs get nothing but a buffer from the one before */
        array->dtype = sq_dtype_of(SQUALL_UINT8);
    *is_bytes = ops->kind != SQ_STAGE_ARRAY;
    return 0;
}

int sq_codec_chain_bind_v2(const struct sq_json *filters, const struct sq_json *compressor, const struct sq_codec_chunk *chunk,
                           struct sq_codec_chain **ret, struct squall_error *err)
{
    struct sq_stage_array array;
    bool is_bytes = false;
    struct sq_stage *stage = NULL;
    SQ_CLEANUP_CHAIN struct sq_codec_chain *chain = sq_chain_new(&chunk->dtype, err);
    if (!chain)
        return SQUALL_ENOMEM;
    SQ_TRY(array_of(chunk, &array, &chain->chunk_bytes, err));
    array.from_numpy = true;
    if (chunk->column_major && chunk->rank > 1) {
        SQ_TRY(sq_chain_add(chain, &sq_stage_transpose, &stage, err));
        SQ_TRY(sq_transpose_bind_reversed(stage, &array, err));
    }
    for (size_t i = 0; i < sq_json_count(filters); i++)
        SQ_TRY(add_v2(chain, sq_json_at(filters, i), &array, &is_bytes, err));
    if (sq_json_type(compressor) > SQ_JSON_NULL)
        SQ_TRY(add_v2(chain, compressor, &array, &is_bytes, err));
    if (!is_bytes)
        SQ_TRY(add_bytes_v2(chain, &array, err));
    SQ_TRY(sq_chain_finish(chain, err));
    *ret = chain;
    chain = NULL;
    return 0;
}
