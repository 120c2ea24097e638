/* Making a chain from the command's words: "blosc:cname=zstd,clevel=5+crc32c". Compressors and checksums only; elements are stored as they are. */
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

static const struct sq_stage_ops *compressor_named(const char *name)
{
    for (unsigned i = 0; sq_all_stages[i]; i++)
        if (sq_all_stages[i]->kind == SQ_STAGE_BYTES && strcmp(sq_all_stages[i]->name, name) == 0)
            return sq_all_stages[i];
    return NULL;
}

static int bad_codec(const char *word, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text list = SQ_TEXT_INIT;
    for (unsigned i = 0; sq_all_stages[i]; i++)
        if (sq_all_stages[i]->kind == SQ_STAGE_BYTES)
            sq_text_printf(&list, "%s, ", sq_all_stages[i]->name);
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

/* "blosc:cname=zstd,clevel=5" */
static int add_from_words(struct sq_codec_chain *chain, struct sq_stage_array *array, char *words, struct squall_error *err)
{
    struct sq_stage *stage = NULL;
    char *settings = strchr(words, ':');
    if (settings)
        *settings++ = 0;
    const struct sq_stage_ops *ops = compressor_named(words);
    if (!ops)
        return bad_codec(words, err);
    if (sq_chain_add(chain, ops, &stage, err))
        return sq_error(err, SQUALL_EINVAL, "more than %d codecs in a chain", SQ_CHAIN_STAGES_MAX);
    while (settings) {
        char *word = settings;
        settings = strchr(word, ',');
        if (settings)
            *settings++ = 0;
        SQ_TRY(read_setting(stage, word, err));
    }
    return sq_chain_bind(chain, stage, NULL, array, err);
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

int sq_codec_chain_parse(const char *spec, enum squall_type type, size_t chunk_bytes, struct sq_codec_chain **ret, struct squall_error *err)
{
    (void)chunk_bytes;
    struct sq_stage_array array = {.dtype = sq_dtype_of(type)};
    SQ_CLEANUP_CHAIN struct sq_codec_chain *chain = sq_chain_new(&array.dtype, err);
    SQ_CLEANUP_FREE char *words = sq_strdup(spec);
    if (!chain || !words)
        return sq_error_memory(err, sizeof *chain);
    SQ_TRY(add_front(chain, &array, err));
    for (char *word = strcmp(spec, "none") == 0 ? NULL : words; word;) {
        char *next = strchr(word, '+');
        if (next)
            *next++ = 0;
        SQ_TRY(add_from_words(chain, &array, word, err));
        word = next;
    }
    SQ_TRY(sq_chain_finish(chain, err));
    *ret = chain;
    chain = NULL;
    return 0;
}
