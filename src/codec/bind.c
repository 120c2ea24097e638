/*
 * Making a chain: from v3's or v2's metadata or from the command's words, and back into v3's metadata. All three read the same
 * tables of options (codec_internal.h); they differ in how a setting is spelt and in whom an error blames.
 */
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/chain.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct sq_stage_ops *const all_stages[] = {
    &sq_stage_blosc, &sq_stage_zstd, &sq_stage_gzip, &sq_stage_zlib, &sq_stage_lz4, &sq_stage_crc32c, NULL,
};

static const struct sq_stage_ops *stage_named(const char *name)
{
    static const char prefix[] = "numcodecs.";
    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    for (unsigned i = 0; all_stages[i]; i++)
        if (strcmp(all_stages[i]->name, name) == 0)
            return all_stages[i];
    return NULL;
}

void sq_codec_chain_free(struct sq_codec_chain *chain)
{
    if (!chain)
        return;
    sq_free(chain->text);
    sq_free(chain->identity);
    sq_free(chain);
}

static void chain_cleanup(struct sq_codec_chain **chain)
{
    sq_codec_chain_free(*chain);
}
#define CLEANUP_CHAIN __attribute__((cleanup(chain_cleanup)))

/* Fixed-length text is made of four-byte characters. */
static unsigned element_bytes(const struct sq_codec_chain *chain)
{
    if (chain->type == SQUALL_STRING)
        return chain->strings ? 1 : 4;
    return (unsigned)sq_type_size(chain->type);
}

static void set_byte_order(struct sq_codec_chain *chain, bool big_endian)
{
    bool machine_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    chain->big_endian = big_endian;
    chain->swap_width = big_endian != machine_is_big && element_bytes(chain) > 1 ? element_bytes(chain) : 0;
}

static int add_stage(struct sq_codec_chain *chain, const struct sq_stage_ops *ops, struct sq_stage **ret, struct squall_error *err)
{
    if (chain->stage_count == SQ_CHAIN_STAGES_MAX)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported chain of more than %d codecs", SQ_CHAIN_STAGES_MAX);
    struct sq_stage *stage = &chain->stages[chain->stage_count++];
    stage->ops = ops;
    for (unsigned i = 0; ops->options[i].name; i++)
        stage->value[i] = ops->options[i].standard;
    *ret = stage;
    return 0;
}

/* ---- what a chain is called ------------------------------------------------------------------------------------------------------- */

static void tell_value(const struct sq_stage_option *option, int value, struct sq_text *out)
{
    if (option->words && value >= 0)
        sq_text_add(out, option->words[value]);
    else
        sq_text_printf(out, "%d", value);
}

static void tell_stage(const struct sq_stage *stage, struct sq_text *out)
{
    const char *before = "(";
    sq_text_add(out, stage->ops->name);
    for (unsigned i = 0; stage->ops->options[i].name; i++) {
        if (!stage->ops->options[i].told)
            continue;
        sq_text_add(out, before);
        tell_value(&stage->ops->options[i], stage->value[i], out);
        before = ", ";
    }
    if (*before == ',')
        sq_text_add(out, ")");
}

static void identify_stage(const struct sq_stage *stage, struct sq_text *out)
{
    sq_text_add(out, stage->ops->name);
    for (unsigned i = 0; stage->ops->options[i].name; i++) {
        sq_text_printf(out, "%s%s=", i ? "," : ":", stage->ops->options[i].name);
        tell_value(&stage->ops->options[i], stage->value[i], out);
    }
}

/* Settle the stages and give the chain its names; with it the chain is complete. */
static int finish(struct sq_codec_chain *chain, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_CLEANUP_TEXT struct sq_text identity = SQ_TEXT_INIT;
    const char *front = chain->strings ? "vlen-utf8" : "bytes";
    sq_text_add(&text, front);
    sq_text_printf(&identity, "%s:%s", front, chain->big_endian ? "big" : "little");
    for (unsigned i = 0; i < chain->stage_count; i++) {
        struct sq_stage *stage = &chain->stages[i];
        if (stage->ops->settle)
            stage->ops->settle(stage, element_bytes(chain));
        sq_text_add(&text, " + ");
        tell_stage(stage, &text);
        sq_text_add(&identity, "+");
        identify_stage(stage, &identity);
    }
    chain->text = sq_text_release(&text);
    chain->identity = sq_text_release(&identity);
    return chain->text && chain->identity ? 0 : sq_error_memory(err, sizeof *chain);
}

const char *sq_codec_chain_text(const struct sq_codec_chain *chain)
{
    return chain->text;
}

const char *sq_codec_chain_identity(const struct sq_codec_chain *chain)
{
    return chain->identity;
}

static struct sq_codec_chain *new_chain(enum squall_type type, struct squall_error *err)
{
    struct sq_codec_chain *chain = sq_alloc_zero(1, sizeof *chain);
    if (chain)
        chain->type = type;
    else
        (void)sq_error_memory(err, sizeof *chain);
    return chain;
}

/* ---- metadata --------------------------------------------------------------------------------------------------------------------- */

static bool word_index(const struct sq_stage_option *option, const char *word, int *ret)
{
    for (int i = 0; option->words && word && option->words[i]; i++) {
        if (strcmp(option->words[i], word) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static int read_option(const struct sq_stage_ops *ops, const struct sq_stage_option *option, const struct sq_json *v, int *ret,
                       struct squall_error *err)
{
    enum sq_json_type type = sq_json_type(v);
    int64_t number = 0;
    bool truth = false;
    if (type == SQ_JSON_ABSENT || type == SQ_JSON_NULL || word_index(option, sq_json_string(v), ret))
        return 0;
    if (option->truth && sq_json_bool(v, &truth))
        number = truth;
    else if (!sq_json_int(v, &number))
        return sq_error(err, SQUALL_ECORRUPT, "codec %s: \"%s\" is neither a number nor a word that it knows", ops->name, option->name);
    if (number < option->least || number > option->greatest)
        return sq_error(err, SQUALL_ECORRUPT, "codec %s: \"%s\" is %lld, not within %d to %d", ops->name, option->name, (long long)number,
                        option->least, option->greatest);
    *ret = (int)number;
    return 0;
}

static int add_from_json(struct sq_codec_chain *chain, const char *name, const struct sq_json *configuration, struct squall_error *err)
{
    const struct sq_stage_ops *ops = stage_named(name);
    struct sq_stage *stage = NULL;
    if (!ops)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported codec %.100s", name);
    SQ_TRY(add_stage(chain, ops, &stage, err));
    for (unsigned i = 0; ops->options[i].name; i++)
        SQ_TRY(read_option(ops, &ops->options[i], sq_json_get(configuration, ops->options[i].name), &stage->value[i], err));
    return 0;
}

/* v3's codecs are objects, or just a name. */
static const char *name_v3(const struct sq_json *codec)
{
    const char *name = sq_json_string(codec);
    return name ? name : sq_json_string(sq_json_get(codec, "name"));
}

static int bind_front_v3(struct sq_codec_chain *chain, const struct sq_json *codec, struct squall_error *err)
{
    const char *name = name_v3(codec);
    if (!name)
        return sq_error(err, SQUALL_ECORRUPT, "the list of codecs does not begin with a codec's name");
    if (strcmp(name, "vlen-utf8") == 0) {
        if (chain->type != SQUALL_STRING)
            return sq_error(err, SQUALL_ECORRUPT, "codec vlen-utf8 on an array of %s", sq_type_name(chain->type));
        chain->strings = true;
        return 0;
    }
    if (strcmp(name, "bytes") != 0) {
        if (stage_named(name))
            return sq_error(err, SQUALL_ECORRUPT, "codec %s comes before \"bytes\"", name);
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported codec %.100s", name);
    }
    const struct sq_json *endian = sq_json_get(sq_json_get(codec, "configuration"), "endian");
    const char *order = sq_json_string(endian);
    if (sq_json_type(endian) > SQ_JSON_NULL && (!order || (strcmp(order, "little") != 0 && strcmp(order, "big") != 0)))
        return sq_error(err, SQUALL_ECORRUPT, "codec bytes: \"endian\" is neither \"little\" nor \"big\"");
    set_byte_order(chain, order && strcmp(order, "big") == 0);
    return 0;
}

int sq_codec_chain_bind_v3(const struct sq_json *codecs, const struct sq_codec_chunk *chunk, struct sq_codec_chain **ret,
                           struct squall_error *err)
{
    CLEANUP_CHAIN struct sq_codec_chain *chain = new_chain(chunk->dtype.type, err);
    if (!chain)
        return SQUALL_ENOMEM;
    SQ_TRY(bind_front_v3(chain, sq_json_at(codecs, 0), err));
    for (size_t i = 1; i < sq_json_count(codecs); i++) {
        const struct sq_json *codec = sq_json_at(codecs, i);
        if (!name_v3(codec))
            return sq_error(err, SQUALL_ECORRUPT, "codec %zu has no name", i);
        SQ_TRY(add_from_json(chain, name_v3(codec), sq_json_get(codec, "configuration"), err));
    }
    SQ_TRY(finish(chain, err));
    *ret = chain;
    chain = NULL;
    return 0;
}

/* v2 names a codec by "id" among its settings. */
static int add_v2(struct sq_codec_chain *chain, const struct sq_json *codec, struct squall_error *err)
{
    const char *id = sq_json_string(sq_json_get(codec, "id"));
    if (!id)
        return sq_error(err, SQUALL_ECORRUPT, "a filter or compressor has no \"id\"");
    if (strcmp(id, "vlen-utf8") == 0 && chain->type == SQUALL_STRING && !chain->strings && chain->stage_count == 0) {
        chain->strings = true;
        return 0;
    }
    return add_from_json(chain, id, codec, err);
}

int sq_codec_chain_bind_v2(const struct sq_json *filters, const struct sq_json *compressor, const struct sq_codec_chunk *chunk,
                           struct sq_codec_chain **ret, struct squall_error *err)
{
    CLEANUP_CHAIN struct sq_codec_chain *chain = new_chain(chunk->dtype.type, err);
    if (!chain)
        return SQUALL_ENOMEM;
    for (size_t i = 0; i < sq_json_count(filters); i++)
        SQ_TRY(add_v2(chain, sq_json_at(filters, i), err));
    if (sq_json_type(compressor) > SQ_JSON_NULL)
        SQ_TRY(add_v2(chain, compressor, err));
    set_byte_order(chain, chunk->big_endian);
    SQ_TRY(finish(chain, err));
    *ret = chain;
    chain = NULL;
    return 0;
}

static int set_option(struct sq_json *configuration, const struct sq_stage_option *option, int value)
{
    if (option->words)
        return sq_json_set_string(configuration, option->name, option->words[value]);
    if (option->truth)
        return sq_json_set(configuration, option->name, sq_json_new_bool(value));
    return sq_json_set_int(configuration, option->name, value);
}

static int append_codec(struct sq_json *codecs, const char *name, struct sq_json **configuration)
{
    SQ_CLEANUP_JSON struct sq_json *codec = sq_json_new_object();
    if (!codec)
        return SQUALL_ENOMEM;
    SQ_TRY(sq_json_set_string(codec, "name", name));
    struct sq_json *given = *configuration;
    *configuration = NULL;
    if (given)
        SQ_TRY(sq_json_set(codec, "configuration", given));
    struct sq_json *done = codec;
    codec = NULL;
    return sq_json_append(codecs, done);
}

static int append_stage(struct sq_json *codecs, const struct sq_stage *stage)
{
    SQ_CLEANUP_JSON struct sq_json *configuration = NULL;
    for (unsigned i = 0; stage->ops->options[i].name; i++) {
        if (stage->ops->options[i].hidden)
            continue;
        if (!configuration && !(configuration = sq_json_new_object()))
            return SQUALL_ENOMEM;
        SQ_TRY(set_option(configuration, &stage->ops->options[i], stage->value[i]));
    }
    return append_codec(codecs, stage->ops->name_v3, &configuration);
}

static int append_front(struct sq_json *codecs, const struct sq_codec_chain *chain)
{
    SQ_CLEANUP_JSON struct sq_json *configuration = NULL;
    if (!chain->strings && element_bytes(chain) > 1) {
        configuration = sq_json_new_object();
        if (!configuration)
            return SQUALL_ENOMEM;
        SQ_TRY(sq_json_set_string(configuration, "endian", chain->big_endian ? "big" : "little"));
    }
    return append_codec(codecs, chain->strings ? "vlen-utf8" : "bytes", &configuration);
}

struct sq_json *sq_codec_chain_json_v3(const struct sq_codec_chain *chain)
{
    struct sq_json *codecs = sq_json_new_array();
    int status = codecs ? append_front(codecs, chain) : SQUALL_ENOMEM;
    for (unsigned i = 0; i < chain->stage_count && !status; i++)
        status = append_stage(codecs, &chain->stages[i]);
    if (!status)
        return codecs;
    sq_json_free(codecs);
    return NULL;
}

/* ---- the command's words ---------------------------------------------------------------------------------------------------------- */

static void list_settings(const struct sq_stage_ops *ops, struct sq_text *out)
{
    for (unsigned i = 0; ops->options[i].name; i++) {
        const struct sq_stage_option *option = &ops->options[i];
        sq_text_printf(out, "%s%s=", i ? ", " : "", option->name);
        for (unsigned k = 0; option->words && option->words[k]; k++)
            sq_text_printf(out, "%s%s", k ? "|" : "", option->words[k]);
        if (!option->words)
            sq_text_printf(out, "%d…%d", option->least, option->greatest);
    }
}

static int bad_setting(const struct sq_stage_ops *ops, const char *word, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text list = SQ_TEXT_INIT;
    list_settings(ops, &list);
    return sq_error(err, SQUALL_EINVAL, "codec %s does not take \"%.60s\"; it takes %s", ops->name, word, sq_text_string(&list));
}

static int bad_codec(const char *word, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text list = SQ_TEXT_INIT;
    for (unsigned i = 0; all_stages[i]; i++)
        sq_text_printf(&list, "%s, ", all_stages[i]->name);
    return sq_error(err, SQUALL_EINVAL, "no codec is called \"%.60s\"; there are %sand none", word, sq_text_string(&list));
}

/* "clevel=5" */
static int read_setting(struct sq_stage *stage, char *word, struct squall_error *err)
{
    char *value = strchr(word, '=');
    for (unsigned i = 0; value && stage->ops->options[i].name; i++) {
        const struct sq_stage_option *option = &stage->ops->options[i];
        size_t length = (size_t)(value - word);
        if (strlen(option->name) != length || strncmp(option->name, word, length) != 0)
            continue;
        if (option->words && word_index(option, value + 1, &stage->value[i]))
            return 0;
        if (option->truth && (strcmp(value + 1, "true") == 0 || strcmp(value + 1, "false") == 0)) {
            stage->value[i] = value[1] == 't';
            return 0;
        }
        char *end;
        errno = 0;
        long number = strtol(value + 1, &end, 10);
        if (option->words || end == value + 1 || *end || errno || number < option->least || number > option->greatest)
            break;
        stage->value[i] = (int)number;
        return 0;
    }
    return bad_setting(stage->ops, word, err);
}

/* "blosc:cname=zstd,clevel=5" */
static int add_from_words(struct sq_codec_chain *chain, char *words, struct squall_error *err)
{
    struct sq_stage *stage = NULL;
    char *settings = strchr(words, ':');
    if (settings)
        *settings++ = 0;
    const struct sq_stage_ops *ops = strchr(words, '.') ? NULL : stage_named(words);
    if (!ops)
        return bad_codec(words, err);
    if (add_stage(chain, ops, &stage, err))
        return sq_error(err, SQUALL_EINVAL, "more than %d codecs in a chain", SQ_CHAIN_STAGES_MAX);
    while (settings) {
        char *word = settings;
        settings = strchr(word, ',');
        if (settings)
            *settings++ = 0;
        SQ_TRY(read_setting(stage, word, err));
    }
    return 0;
}

int sq_codec_chain_parse(const char *spec, enum squall_type type, size_t chunk_bytes, struct sq_codec_chain **ret, struct squall_error *err)
{
    (void)chunk_bytes;
    CLEANUP_CHAIN struct sq_codec_chain *chain = new_chain(type, err);
    SQ_CLEANUP_FREE char *words = sq_strdup(spec);
    if (!chain || !words)
        return sq_error_memory(err, sizeof *chain);
    chain->strings = type == SQUALL_STRING;
    set_byte_order(chain, false);
    for (char *word = strcmp(spec, "none") == 0 ? NULL : words; word;) {
        char *next = strchr(word, '+');
        if (next)
            *next++ = 0;
        SQ_TRY(add_from_words(chain, word, err));
        word = next;
    }
    SQ_TRY(finish(chain, err));
    *ret = chain;
    chain = NULL;
    return 0;
}
