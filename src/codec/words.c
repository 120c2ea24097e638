/*
 * Making a chain from the command's words: "bitround:keepbits=9+blosc:cname=zstd,clevel=5+crc32c". Compressors, checksums, and what only rounds;
 * how elements become bytes is not asked.
 */
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/chain.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static bool has_words(const struct sq_stage_ops *ops)
{
    return ops->kind == SQ_STAGE_BYTES || ops->only_encodes;
}

static const struct sq_stage_ops *stage_named(const char *name)
{
    for (unsigned i = 0; sq_all_stages[i]; i++)
        if (has_words(sq_all_stages[i]) && strcmp(sq_all_stages[i]->name, name) == 0)
            return sq_all_stages[i];
    return NULL;
}

static int bad_codec(const char *word, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text list = SQ_TEXT_INIT;
    for (unsigned i = 0; sq_all_stages[i]; i++)
        if (has_words(sq_all_stages[i]))
            sq_text_printf(&list, "%s, ", sq_all_stages[i]->name);
    return sq_error(err, SQUALL_EINVAL, "no codec is called \"%.60s\"; there are %sand none", word, sq_text_string(&list));
}

/* "clevel=5"; *ret: the number of the option. */
static int read_setting(struct sq_stage *stage, char *word, unsigned *ret, struct squall_error *err)
{
    char *value = strchr(word, '=');
    for (unsigned i = 0; value && stage->ops->options[i].name; i++) {
        const struct sq_stage_option *option = &stage->ops->options[i];
        size_t length = (size_t)(value - word);
        if (strlen(option->name) != length || strncmp(option->name, word, length) != 0)
            continue;
        *ret = i;
        if (option->words && sq_option_word(option, value + 1, &stage->value[i]))
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

static int read_settings(struct sq_stage *stage, char *settings, struct squall_error *err)
{
    unsigned given = 0; /* a bit an option */
    while (settings) {
        char *word = settings;
        unsigned option = 0;
        settings = strchr(word, ',');
        if (settings)
            *settings++ = 0;
        SQ_TRY(read_setting(stage, word, &option, err));
        given |= 1u << option;
    }
    for (unsigned i = 0; stage->ops->options && stage->ops->options[i].name; i++)
        if (stage->ops->options[i].required && !(given & 1u << i))
            return sq_error(err, SQUALL_EINVAL, "codec %s wants its %s, as in %s:%s=%d", stage->ops->name, stage->ops->options[i].name,
                            stage->ops->name, stage->ops->options[i].name, stage->ops->options[i].greatest / 8);
    return 0;
}

static int add_front(struct sq_codec_chain *chain, struct sq_stage_array *array, struct squall_error *err)
{
    struct sq_stage *stage = NULL;
    const struct sq_stage_ops *front = &sq_stage_bytes;
    if (sq_type_is_variable(array->dtype.type))
        front = array->dtype.type == SQUALL_STRING ? &sq_stage_vlen_utf8 : &sq_stage_vlen_bytes;
    SQ_TRY(sq_chain_add(chain, front, &stage, err));
    return sq_chain_bind(chain, stage, NULL, array, err);
}

/* "blosc:cname=zstd,clevel=5". *front: how elements become bytes is in the chain, which ends what works on elements. */
static int add_from_words(struct sq_codec_chain *chain, struct sq_stage_array *array, char *words, bool *front, struct squall_error *err)
{
    struct sq_stage *stage = NULL;
    char *settings = strchr(words, ':');
    if (settings)
        *settings++ = 0;
    const struct sq_stage_ops *ops = stage_named(words);
    if (!ops)
        return bad_codec(words, err);
    if (ops->kind != SQ_STAGE_BYTES && *front)
        return sq_error(err, SQUALL_EINVAL, "codec %s works on numbers, so it stands before those that work on bytes", ops->name);
    if (ops->kind == SQ_STAGE_BYTES && !*front) {
        SQ_TRY(add_front(chain, array, err));
        *front = true;
    }
    if (sq_chain_add(chain, ops, &stage, err))
        return sq_error(err, SQUALL_EINVAL, "more than %d codecs in a chain", SQ_CHAIN_STAGES_MAX);
    SQ_TRY(read_settings(stage, settings, err));
    struct squall_error failure = SQUALL_ERROR_INIT;
    int status = sq_chain_bind(chain, stage, NULL, array, &failure);
    return !status ? 0 : status == SQUALL_ENOMEM ? sq_error_memory(err, 1) : sq_error(err, SQUALL_EINVAL, "%s", failure.message);
}

int sq_codec_chain_parse(const char *spec, enum squall_type type, const void *fill, struct sq_codec_chain **ret, struct squall_error *err)
{
    struct sq_stage_array array = {.dtype = sq_dtype_of(type), .fill = fill};
    SQ_CLEANUP_CHAIN struct sq_codec_chain *chain = sq_chain_new(&array.dtype, err);
    SQ_CLEANUP_FREE char *words = sq_strdup(spec);
    if (!chain || !words)
        return sq_error_memory(err, sizeof *chain);
    bool front = false;
    for (char *word = strcmp(spec, "none") == 0 ? NULL : words; word;) {
        char *next = strchr(word, '+');
        if (next)
            *next++ = 0;
        SQ_TRY(add_from_words(chain, &array, word, &front, err));
        word = next;
    }
    if (!front)
        SQ_TRY(add_front(chain, &array, err));
    SQ_TRY(sq_chain_finish(chain, err));
    *ret = chain;
    chain = NULL;
    return 0;
}
