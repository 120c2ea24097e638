/*
 * What a chain is called: in words, as an identity for layouts, and as v3's metadata. A stage that was bound to a configuration
 * which its options do not cover gives that back as it was.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/chain.h"
#include <string.h>

static const struct sq_stage_option *options_of(const struct sq_stage *stage)
{
    static const struct sq_stage_option none[] = {{0}};
    return stage->ops->options ? stage->ops->options : none;
}

/* ---- in words --------------------------------------------------------------------------------------------------------------------- */

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
    const struct sq_stage_option *options = options_of(stage);
    sq_text_add(out, stage->ops->name);
    if (stage->ops->tell) {
        sq_text_add(out, before);
        stage->ops->tell(stage, out);
        before = ",";
    }
    for (unsigned i = 0; options[i].name && !stage->ops->tell; i++) {
        if (!options[i].told)
            continue;
        sq_text_add(out, before);
        tell_value(&options[i], stage->value[i], out);
        before = ", ";
    }
    if (*before == ',')
        sq_text_add(out, ")");
}

static int identify_stage(const struct sq_codec_chain *chain, const struct sq_stage *stage, struct sq_text *out, struct squall_error *err)
{
    const struct sq_stage_option *options = options_of(stage);
    sq_text_add(out, stage->ops->name);
    if (stage->ops->kind == SQ_STAGE_TO_BYTES && !stage->configuration) { /* all that there is to it is the byte order */
        sq_text_add(out, chain->big_endian ? ":big" : ":little");
        return 0;
    }
    if (stage->configuration) {
        sq_text_add(out, ":");
        return sq_json_write(stage->configuration, false, out, err);
    }
    for (unsigned i = 0; options[i].name; i++) {
        sq_text_printf(out, "%s%s=", i ? "," : ":", options[i].name);
        tell_value(&options[i], stage->value[i], out);
    }
    return 0;
}

int sq_chain_finish(struct sq_codec_chain *chain, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_CLEANUP_TEXT struct sq_text identity = SQ_TEXT_INIT;
    for (unsigned i = 0; i < chain->stage_count; i++) {
        const char *plus = i ? " + " : "";
        sq_text_add(&text, plus);
        tell_stage(&chain->stages[i], &text);
        sq_text_add(&identity, i ? "+" : "");
        SQ_TRY(identify_stage(chain, &chain->stages[i], &identity, err));
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

/* ---- as metadata ------------------------------------------------------------------------------------------------------------------ */

static int set_option(struct sq_json *configuration, const struct sq_stage_option *option, int value)
{
    if (option->words)
        return sq_json_set_string(configuration, option->name, option->words[value]);
    if (option->truth)
        return sq_json_set(configuration, option->name, sq_json_new_bool(value));
    return sq_json_set_int(configuration, option->name, value);
}

/* Elements of one byte have no order to tell. */
static bool has_no_order(const struct sq_codec_chain *chain, const struct sq_stage *stage)
{
    return stage->ops == &sq_stage_bytes && chain->stored_order_bytes <= 1;
}

static int make_configuration(const struct sq_codec_chain *chain, const struct sq_stage *stage, struct sq_json **ret)
{
    const struct sq_stage_option *options = options_of(stage);
    SQ_CLEANUP_JSON struct sq_json *configuration = NULL;
    if (stage->configuration) {
        *ret = sq_json_copy(stage->configuration);
        return *ret ? 0 : SQUALL_ENOMEM;
    }
    for (unsigned i = 0; options[i].name && !has_no_order(chain, stage); i++) {
        if (options[i].hidden)
            continue;
        if (!configuration && !(configuration = sq_json_new_object()))
            return SQUALL_ENOMEM;
        SQ_TRY(set_option(configuration, &options[i], stage->value[i]));
    }
    *ret = configuration;
    configuration = NULL;
    return 0;
}

static int append_stage(const struct sq_codec_chain *chain, const struct sq_stage *stage, struct sq_json *codecs)
{
    SQ_CLEANUP_JSON struct sq_json *codec = sq_json_new_object();
    struct sq_json *configuration = NULL;
    if (!codec)
        return SQUALL_ENOMEM;
    SQ_TRY(sq_json_set_string(codec, "name", stage->ops->name_v3));
    SQ_TRY(make_configuration(chain, stage, &configuration));
    if (configuration)
        SQ_TRY(sq_json_set(codec, "configuration", configuration));
    struct sq_json *done = codec;
    codec = NULL;
    return sq_json_append(codecs, done);
}

struct sq_json *sq_codec_chain_json_v3(const struct sq_codec_chain *chain, bool for_reading)
{
    struct sq_json *codecs = sq_json_new_array();
    int status = codecs ? 0 : SQUALL_ENOMEM;
    for (unsigned i = 0; i < chain->stage_count && !status; i++)
        if (!for_reading || !chain->stages[i].ops->only_encodes)
            status = append_stage(chain, &chain->stages[i], codecs);
    if (!status)
        return codecs;
    sq_json_free(codecs);
    return NULL;
}
