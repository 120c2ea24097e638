/* See settings.h. Every option is a list of words between commas (chains of codecs: semicolons); `each_part` walks them, one visitor an option. */
#include "convert/settings.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "sys/file.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char DEFAULT_CODEC[] = "blosc:cname=zstd,clevel=5,shuffle=shuffle,search=greedy";

/* word is NUL-terminated and the visitor's to cut up; it lives in the arena. */
typedef int word_visitor(struct sq_settings *s, char *word, struct squall_error *err);

static int each_part(struct sq_settings *s, const char *text, char separator, word_visitor *visit, struct squall_error *err)
{
    char *copy = sq_arena_strdup(s->arena, text);
    if (!copy)
        return sq_error_memory(err, strlen(text));
    for (char *next = copy; next;) {
        char *word = next, *end = strchr(word, separator);
        next = end ? end + 1 : NULL;
        if (end)
            *end = 0;
        SQ_TRY(visit(s, word, err));
    }
    return 0;
}

static int each_word(struct sq_settings *s, const char *text, word_visitor *visit, struct squall_error *err)
{
    return text ? each_part(s, text, ',', visit, err) : 0;
}

/* Not fewer than each_part makes; none where there is no text. */
static size_t part_count(const char *text, char separator)
{
    size_t count = text != NULL;
    for (; text && *text; text++)
        count += *text == separator;
    return count;
}

/* A whole positive number below 2^53; false where the text is anything else. */
static bool positive(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    size_t length = strlen(text);
    if (length == 0 || length > 15)
        return false;
    for (; *text; text++) {
        if (!isdigit((unsigned char)*text))
            return false;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    *ret = value;
    return value > 0;
}

/* "*" is every variable that no other rule names. */
static const char *variable_of(const char *name)
{
    return strcmp(name, "*") ? name : NULL;
}

static bool same_variable(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* "y=352", or "t2m:y=352". option: "--chunks" or "--shards". */
static int length_word(const char *option, struct sq_chunk_rules *rules, char *word, struct squall_error *err)
{
    char *equals = strchr(word, '='), *colon = strchr(word, ':');
    struct sq_chunk_rule rule = {.dim = word};
    if (equals && colon && colon < equals) {
        *colon = 0;
        rule.variable = variable_of(word);
        rule.dim = colon + 1;
    }
    if (!equals || equals == rule.dim || (rule.dim != word && !*word))
        return sq_error(err, SQUALL_EINVAL,
                        "%s: \"%s\" is not DIMENSION=LENGTH, such as init_time=1,step=all,y=352,x=274, or VARIABLE:DIMENSION=LENGTH",
                        option, word);
    *equals = 0;
    if (strcmp(equals + 1, "all") != 0 && !positive(equals + 1, &rule.length))
        return sq_error(err, SQUALL_EINVAL, "%s: %s=\"%s\" is neither a whole number from 1 on nor \"all\"", option, rule.dim, equals + 1);
    for (size_t i = 0; i < rules->count; i++)
        if (!strcmp(rules->items[i].dim, rule.dim) && same_variable(rules->items[i].variable, rule.variable))
            return sq_error(err, SQUALL_EINVAL, "%s: %s is given twice", option, rule.dim);
    rules->items[rules->count++] = rule;
    return 0;
}

static int chunk_word(struct sq_settings *s, char *word, struct squall_error *err)
{
    return length_word("--chunks", &s->chunks, word, err);
}

static int shard_word(struct sq_settings *s, char *word, struct squall_error *err)
{
    return length_word("--shards", &s->shards, word, err);
}

static int type_word(struct sq_settings *s, char *word, struct squall_error *err)
{
    char *equals = strchr(word, '=');
    struct sq_type_rule rule = {0};
    const char *type = equals ? equals + 1 : word;
    if (equals) {
        *equals = 0;
        rule.variable = variable_of(word);
    }
    if (equals == word || !sq_type_from_name(type, &rule.type))
        return sq_error(err, SQUALL_EINVAL, "--dtype: \"%s\" is no type; float16, float32 and float64 are", type);
    if (!sq_type_is_float(rule.type))
        return sq_error(err, SQUALL_EINVAL, "--dtype: %s is not written yet; float16, float32 and float64 are", type);
    for (size_t i = 0; i < s->type_count; i++)
        if (same_variable(s->types[i].variable, rule.variable))
            return sq_error(err, SQUALL_EINVAL, "--dtype: two types for %s", rule.variable ? rule.variable : "all other variables");
    s->types[s->type_count++] = rule;
    return 0;
}

static int rounding_word(struct sq_settings *s, char *word, struct squall_error *err)
{
    char *equals = strchr(word, '=');
    struct sq_rounding_rule rule = {0};
    uint64_t bits;
    if (equals) {
        *equals = 0;
        rule.variable = variable_of(word);
    }
    if (equals == word || !positive(equals ? equals + 1 : word, &bits) || bits > 52)
        return sq_error(err, SQUALL_EINVAL,
                        "--bitround: \"%s\" is no number of bits; a mantissa keeps 1 to 10 of float16, 23 of float32, 52 of float64",
                        equals ? equals + 1 : word);
    rule.keepbits = (unsigned)bits;
    for (size_t i = 0; i < s->rounding_count; i++)
        if (same_variable(s->roundings[i].variable, rule.variable))
            return sq_error(err, SQUALL_EINVAL, "--bitround: %s is given twice",
                            rule.variable ? rule.variable : "a number for all variables");
    s->roundings[s->rounding_count++] = rule;
    return 0;
}

/* "zstd:level=3", or "t2m=zstd:level=3": what stands before the first = of a chain has a colon. */
static int codec_word(struct sq_settings *s, char *word, struct squall_error *err)
{
    char *equals = strchr(word, '=');
    struct sq_codec_rule rule = {.spec = word};
    if (equals && equals > word && strcspn(word, ":+,=") == (size_t)(equals - word)) {
        *equals = 0;
        rule.variable = variable_of(word);
        rule.spec = equals + 1;
    }
    for (size_t i = 0; i < s->codec_count; i++)
        if (same_variable(s->codecs[i].variable, rule.variable))
            return sq_error(err, SQUALL_EINVAL, "--codec: two chains for %s", rule.variable ? rule.variable : "all other variables");
    s->codecs[s->codec_count++] = rule;
    return 0;
}

static int coarsen_word(struct sq_settings *s, char *word, struct squall_error *err)
{
    char *equals = strchr(word, '=');
    uint64_t factor;
    if (!equals || !positive(equals + 1, &factor) || factor > 65535)
        return sq_error(err, SQUALL_EINVAL, "--coarsen: \"%s\" is not DIMENSION=FACTOR, such as y=2,x=2", word);
    *equals = 0;
    if (!strcmp(word, "y") || !strcmp(word, "latitude"))
        s->coarsen_y = (unsigned)factor;
    else if (!strcmp(word, "x") || !strcmp(word, "longitude"))
        s->coarsen_x = (unsigned)factor;
    else
        return sq_error(err, SQUALL_EINVAL, "--coarsen: %s is no horizontal dimension; y and x (or latitude and longitude) are", word);
    return 0;
}

static int parse_every(struct sq_settings *s, const char *text, struct squall_error *err)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } UNITS[] = {{"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}};
    char *end;
    long long count = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : 0;
    for (size_t i = 0; count > 0 && i < sizeof UNITS / sizeof *UNITS; i++)
        if (!strcmp(end, UNITS[i].name) && sq_mul_i64(count, UNITS[i].seconds, &s->every_s))
            return 0;
    return sq_error(err, SQUALL_EINVAL, "--every: \"%s\" is no span of time, such as 30min, 6h or 1d", text);
}

/* ---- options that are one word of a few --------------------------------------------------------------------------------------------- */

static const char *const OVERFLOWS[] = {[SQ_OVERFLOW_ERROR] = "error", [SQ_OVERFLOW_INF] = "inf", [SQ_OVERFLOW_CLIP] = "clip"};
static const char *const SCHEMAS[] = {[SQ_SCHEMA_IGNORE] = "ignore", [SQ_SCHEMA_GROW] = "grow", [SQ_SCHEMA_STRICT] = "strict"};
static const char *const DRIFTS[] = {[SQUALL_DRIFT_ERROR] = "error", [SQUALL_DRIFT_WARN] = "warn", [SQUALL_DRIFT_FIRST] = "first"};
static const char *const FORMATS[] = {"3", "2"};
const char *const sq_y_order_names[] = {[SQ_Y_AS_IT_IS] = "", [SQ_Y_ASCENDING] = "ascending", [SQ_Y_DESCENDING] = "descending"};

#define COUNT_OF(words) (sizeof(words) / sizeof *(words))

static bool find_word(const char *text, const char *const *words, size_t count, size_t *ret)
{
    for (size_t i = 0; i < count; i++)
        if (*text && !strcmp(text, words[i])) {
            *ret = i;
            return true;
        }
    return false;
}

static int parse_choices(struct sq_settings *s, const struct squall_convert_options *o, struct squall_error *err)
{
    size_t overflow = s->overflow, schema = s->schema, drift = s->drift, y_order = s->y_order, older = 0;
    if (o->on_overflow && !find_word(o->on_overflow, OVERFLOWS, COUNT_OF(OVERFLOWS), &overflow))
        return sq_error(err, SQUALL_EINVAL, "--on-overflow: \"%s\" is none of error, inf, clip", o->on_overflow);
    if (o->schema && !find_word(o->schema, SCHEMAS, COUNT_OF(SCHEMAS), &schema))
        return sq_error(err, SQUALL_EINVAL, "--schema: \"%s\" is none of ignore, grow, strict", o->schema);
    if (o->y_order && !find_word(o->y_order, sq_y_order_names, COUNT_OF(sq_y_order_names), &y_order))
        return sq_error(err, SQUALL_EINVAL, "--y-order: \"%s\" is neither ascending nor descending", o->y_order);
    if (o->drift && !find_word(o->drift, DRIFTS, COUNT_OF(DRIFTS), &drift))
        return sq_error(err, SQUALL_EINVAL, "--drift: \"%s\" is none of error, warn, first", o->drift);
    if (o->zarr_format && !find_word(o->zarr_format, FORMATS, COUNT_OF(FORMATS), &older))
        return sq_error(err, SQUALL_EINVAL, "--zarr-format: \"%s\" is neither 3 nor 2", o->zarr_format);
    s->overflow = (enum sq_overflow)overflow;
    s->schema = (enum sq_schema_policy)schema;
    s->y_order = (enum sq_y_order)y_order;
    s->zarr_format = 3 - (int)older;
    if (s->zarr_format == 2 && o->shards)
        return sq_error(err, SQUALL_EINVAL, "--shards: Zarr v2 has none; leave out --shards, or --zarr-format 2");
    s->drift = (enum squall_drift)drift;
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int copy_texts(struct sq_settings *s, const char *const *texts, size_t count, bool sorted, const char *const **ret,
                      struct squall_error *err)
{
    const char **copy = sq_arena_alloc(s->arena, (count + 1) * sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        if (!(copy[i] = sq_arena_strdup(s->arena, texts[i])))
            copy = NULL;
    if (!copy)
        return sq_error_memory(err, count * sizeof *texts);
    if (sorted)
        qsort(copy, count, sizeof *copy, by_text);
    *ret = copy;
    return 0;
}

/* Taken for a path, "s3://bucket/x.zarr" would be a store in a folder "s3:", and the user look for it elsewhere. */
static int refuse_url(const char *path, struct squall_error *err)
{
    size_t scheme = 0;
    while (isalnum((unsigned char)path[scheme]) || (path[scheme] && strchr("+-.", path[scheme])))
        scheme++;
    if (scheme < 2 || strncmp(path + scheme, "://", 3) != 0)
        return 0;
    return sq_error(err, SQUALL_EUNSUPPORTED,
                    "%s: only files and folders are read and written; copy it here, or the store there, with rclone", path);
}

static int check_places(const struct squall_convert_options *o, struct squall_error *err)
{
    if (o->source_count == 0)
        return sq_error(err, SQUALL_EINVAL, "no source to convert");
    if (!o->destination || !*o->destination)
        return sq_error(err, SQUALL_EINVAL, "no destination to convert to");
    for (size_t i = 0; i < o->source_count; i++) {
        if (!*o->sources[i])
            return sq_error(err, SQUALL_EINVAL, "a source has an empty name");
        SQ_TRY(refuse_url(o->sources[i], err));
    }
    return refuse_url(o->destination, err);
}

static int parse_places(struct sq_settings *s, const struct squall_convert_options *o, struct squall_error *err)
{
    SQ_TRY(check_places(o, err));
    char *destination = sq_arena_strdup(s->arena, o->destination);
    if (!destination)
        return sq_error_memory(err, strlen(o->destination));
    for (size_t length = strlen(destination); length > 1 && destination[length - 1] == '/'; length--)
        destination[length - 1] = 0;
    const char *name = sq_path_name(destination);
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return sq_error(err, SQUALL_EINVAL, "%s: a store needs a name of its own", destination);
    s->destination = destination;
    SQ_TRY(copy_texts(s, o->sources, o->source_count, false, &s->sources, err));
    s->given = s->sources;
    s->given_count = s->source_count;
    if (!o->given)
        return 0;
    s->given_count = o->given_count;
    return copy_texts(s, o->given, o->given_count, false, &s->given, err);
}

static int parse_stack(struct sq_settings *s, const struct squall_convert_options *o, struct squall_error *err)
{
    const char *name = o->stack_name ? o->stack_name : "data";
    if (o->stack && strcmp(o->stack, "variable") != 0)
        return sq_error(err, SQUALL_EINVAL, "--stack: only variable can be stacked, not \"%s\"", o->stack);
    if (o->stack_name && !o->stack)
        return sq_error(err, SQUALL_EINVAL, "--stack-name: there is no stack to name; add --stack variable");
    if (!*name || *name == '.' || strchr(name, '/'))
        return sq_error(err, SQUALL_EINVAL, "--stack-name: \"%s\" cannot be an array's name", name);
    s->stack = o->stack != NULL;
    s->stack_name = sq_arena_strdup(s->arena, name);
    return s->stack_name ? 0 : sq_error_memory(err, strlen(name));
}

/* "/forecast/surface/" is forecast/surface; "/" the root. */
static int parse_group(struct sq_settings *s, const struct squall_convert_options *o, struct squall_error *err)
{
    const char *begin = o->group ? o->group + strspn(o->group, "/") : "";
    size_t length = strlen(begin);
    while (length > 0 && begin[length - 1] == '/')
        length--;
    if (length == 0)
        return 0;
    char *group = sq_arena_strdup(s->arena, begin);
    if (!group)
        return sq_error_memory(err, length);
    group[length] = 0;
    s->group = group;
    return 0;
}

static int parse_arrays(struct sq_settings *s, const struct squall_convert_options *o, struct squall_error *err)
{
    s->append_dim = o->append_dim ? sq_arena_strdup(s->arena, o->append_dim) : NULL;
    s->concat_dim = o->concat_dim ? sq_arena_strdup(s->arena, o->concat_dim) : NULL;
    if ((o->append_dim && !s->append_dim) || (o->concat_dim && !s->concat_dim))
        return sq_error_memory(err, sizeof *o);
    return parse_group(s, o, err);
}

/* ---- back into words ------------------------------------------------------------------------------------------------------------- */

static void add_quoted(struct sq_text *t, const char *word)
{
    bool plain = *word != 0;
    for (const char *p = word; *p; p++)
        plain = plain && (isalnum((unsigned char)*p) || strchr("_-./=,:+@%", *p));
    if (plain) {
        sq_text_add(t, word);
        return;
    }
    sq_text_add(t, "'");
    for (const char *p = word; *p; p++)
        if (*p == '\'')
            sq_text_add(t, "'\\''");
        else
            sq_text_add_bytes(t, p, 1);
    sq_text_add(t, "'");
}

static void add_option(struct sq_text *t, const char *name, const char *value)
{
    if (!value)
        return;
    sq_text_printf(t, "%s%s ", t->length ? " " : "", name);
    add_quoted(t, value);
}

void sq_settings_add_path(struct sq_text *t, const char *path)
{
    SQ_CLEANUP_FREE char *absolute = sq_path_absolute(path);
    sq_text_add(t, " ");
    if (!absolute)
        t->failed = true;
    else
        add_quoted(t, absolute);
}

/* Paths from the root on: it is run again from wherever one looks at the store, which may have been moved. A list of many files is not repeated. */
static void put_command(const struct sq_settings *s, const struct sq_text *options, struct sq_text *command)
{
    enum { SOURCES_SHOWN = 8 };
    bool all = s->given_count <= SOURCES_SHOWN;
    sq_text_add(command, "squall convert");
    if (options->length)
        sq_text_printf(command, " %s", sq_text_string(options));
    if (s->prepend)
        sq_text_add(command, " --prepend");
    if (s->schema != SQ_SCHEMA_IGNORE)
        sq_text_printf(command, " --schema %s", SCHEMAS[s->schema]);
    if (s->strict)
        sq_text_add(command, " --strict");
    if (s->lock_timeout_s)
        sq_text_printf(command, " --lock-timeout %u", s->lock_timeout_s);
    for (size_t i = 0; i < (all ? s->given_count : 1); i++)
        sq_settings_add_path(command, s->given[i]);
    if (!all)
        sq_text_printf(command, " [and %zu more sources]", s->given_count - 1);
}

/* Both texts, into the arena. */
static int put_in_words(struct sq_settings *s, const struct squall_convert_options *o, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text options = SQ_TEXT_INIT;
    SQ_CLEANUP_TEXT struct sq_text command = SQ_TEXT_INIT;
    add_option(&options, "--chunks", o->chunks);
    add_option(&options, "--shards", o->shards);
    add_option(&options, "--dtype", o->dtype);
    add_option(&options, "--bitround", o->bitround);
    add_option(&options, "--on-overflow", o->on_overflow);
    add_option(&options, "--codec", o->codec);
    for (size_t i = 0; i < s->select_count; i++)
        add_option(&options, "--select", s->select[i]);
    for (size_t i = 0; i < s->rename_count; i++)
        add_option(&options, "--rename", s->rename[i]);
    add_option(&options, "--coarsen", o->coarsen);
    add_option(&options, "--y-order", o->y_order);
    add_option(&options, "--every", o->every);
    add_option(&options, "--stack", o->stack);
    add_option(&options, "--stack-name", o->stack_name);
    add_option(&options, "--append-dim", o->append_dim);
    add_option(&options, "--concat-dim", o->concat_dim);
    add_option(&options, "--drift", o->drift);
    add_option(&options, "--group", s->group);
    add_option(&options, "--zarr-format", s->zarr_format == 3 ? NULL : "2");
    put_command(s, &options, &command);
    s->text = options.failed ? NULL : sq_arena_strdup(s->arena, sq_text_string(&options));
    s->command = command.failed ? NULL : sq_arena_strdup(s->arena, sq_text_string(&command));
    return s->text && s->command ? 0 : sq_error_memory(err, command.length);
}

/* For as many rules as there are words. */
static int make_room(struct sq_settings *s, const struct squall_convert_options *o, struct squall_error *err)
{
    s->chunks.items = sq_arena_alloc(s->arena, (part_count(o->chunks, ',') + 1) * sizeof *s->chunks.items);
    s->shards.items = sq_arena_alloc(s->arena, (part_count(o->shards, ',') + 1) * sizeof *s->shards.items);
    s->types = sq_arena_alloc(s->arena, (part_count(o->dtype, ',') + 1) * sizeof *s->types);
    s->roundings = sq_arena_alloc(s->arena, (part_count(o->bitround, ',') + 1) * sizeof *s->roundings);
    s->codecs = sq_arena_alloc(s->arena, (part_count(o->codec, ';') + 1) * sizeof *s->codecs);
    bool all = s->chunks.items && s->shards.items && s->types && s->roundings && s->codecs;
    return all ? 0 : sq_error_memory(err, sizeof *s->types);
}

/* There is always a rule for the variables that no other one names. */
static int parse_codecs(struct sq_settings *s, const char *text, struct squall_error *err)
{
    if (text)
        SQ_TRY(each_part(s, text, ';', codec_word, err));
    for (size_t i = 0; i < s->codec_count; i++)
        if (!s->codecs[i].variable)
            return 0;
    s->codecs[s->codec_count++] = (struct sq_codec_rule){.spec = DEFAULT_CODEC};
    return 0;
}

static int parse_part(struct sq_settings *s, const char *text, struct squall_error *err)
{
    char again[sizeof "999999999/999999999"];
    if (s->overwrite)
        return sq_error(err, SQUALL_EINVAL, "--part and --overwrite exclude each other: no part may remove what others write");
    if (s->prepend)
        return sq_error(err, SQUALL_EINVAL,
                        "--part and --prepend exclude each other: no part may move what others write; add the early runs first");
    bool good = sscanf(text, "%9u/%9u", &s->part.number, &s->part.count) == 2 && s->part.number >= 1 && s->part.number <= s->part.count;
    if (good) {
        snprintf(again, sizeof again, "%u/%u", s->part.number, s->part.count);
        good = !strcmp(text, again);
    }
    return good ? 0
                : sq_error(err, SQUALL_EINVAL, "--part %s: wanted is I/N, the part's number from 1 on and how many there are, such as 2/5",
                           text);
}

static int parse_into(struct sq_settings *s, const struct squall_convert_options *o, struct squall_error *err)
{
    SQ_TRY(parse_places(s, o, err));
    SQ_TRY(copy_texts(s, o->select, o->select_count, true, &s->select, err));
    SQ_TRY(copy_texts(s, o->rename, o->rename_count, true, &s->rename, err));
    SQ_TRY(parse_stack(s, o, err));
    SQ_TRY(parse_arrays(s, o, err));
    SQ_TRY(make_room(s, o, err));
    SQ_TRY(each_word(s, o->chunks, chunk_word, err));
    SQ_TRY(each_word(s, o->shards, shard_word, err));
    SQ_TRY(each_word(s, o->dtype, type_word, err));
    SQ_TRY(each_word(s, o->bitround, rounding_word, err));
    SQ_TRY(each_word(s, o->coarsen, coarsen_word, err));
    SQ_TRY(parse_codecs(s, o->codec, err));
    SQ_TRY(parse_choices(s, o, err));
    if (o->every)
        SQ_TRY(parse_every(s, o->every, err));
    if (o->part)
        SQ_TRY(parse_part(s, o->part, err));
    return put_in_words(s, o, err);
}

int sq_settings_parse(const struct squall_convert_options *options, struct sq_settings *ret, struct squall_error *err)
{
    struct sq_settings s = {
        .source_count = options->source_count,
        .select_count = options->select_count,
        .rename_count = options->rename_count,
        .coarsen_y = 1,
        .coarsen_x = 1,
        .prepend = options->prepend != 0,
        .overwrite = options->overwrite != 0,
        .strict = options->strict != 0,
        .lock_timeout_s = options->lock_timeout_s,
        .arena = sq_arena_new(),
    };
    if (!s.arena)
        return sq_error_memory(err, sizeof s);
    int status = parse_into(&s, options, err);
    if (status) {
        sq_settings_done(&s);
        return status;
    }
    *ret = s;
    return 0;
}

void sq_settings_done(struct sq_settings *s)
{
    sq_arena_free(s->arena);
    *s = (struct sq_settings){0};
}
