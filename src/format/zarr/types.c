/* See types.h. */
#include "format/zarr/types.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>

enum { FIELD_LIMIT = 1024 };

static const bool MACHINE_IS_BIG = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

void sq_zarr_type_done(struct sq_zarr_type *type)
{
    for (size_t i = 0; i < type->field_count; i++) {
        sq_free(type->fields[i].name);
        sq_free(type->fields[i].shape);
        sq_zarr_type_done(&type->fields[i].type);
    }
    sq_free(type->fields);
    sq_free(type->name);
    sq_free(type->numpy);
    *type = (struct sq_zarr_type){0};
}

const char *sq_zarr_extension_name(const struct sq_json *extension)
{
    const char *name = sq_json_string(extension);
    return name ? name : sq_json_string(sq_json_get(extension, "name"));
}

const struct sq_json *sq_zarr_configured(const struct sq_json *extension, const char *key)
{
    return sq_json_get(sq_json_get(extension, "configuration"), key);
}

/* ---- types that are no structures ------------------------------------------------------------------------------------------------- */

static int set_names(struct sq_zarr_type *t, char *name, char *numpy, struct squall_error *err)
{
    t->name = name;
    t->numpy = numpy;
    return name && numpy ? 0 : sq_error_memory(err, 1);
}

static int set_plain(enum squall_type type, struct sq_zarr_type *t, struct squall_error *err)
{
    t->dtype = sq_dtype_of(type);
    return set_names(t, sq_strdup(type == SQUALL_BYTES ? "bytes" : sq_type_name(type)), sq_strdup(sq_type_numpy(type)), err);
}

/* kind: numpy's letter, U, S or V; length in characters or bytes. */
static int set_fixed_length(char kind, uint64_t length, struct sq_zarr_type *t, struct squall_error *err)
{
    const unsigned unit = kind == 'U' ? 4 : 1;
    char *name = sq_format("%c%c%llu", kind == 'U' ? '<' : '|', kind, (unsigned long long)length);
    if (!name)
        return sq_error_memory(err, 1);
    t->name = name;
    if (length == 0 || length > SQ_ZARR_ELEMENT_LIMIT_BYTES / unit)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported data type %s", name);
    t->dtype = (struct sq_dtype){kind == 'U' ? SQUALL_TEXT : SQUALL_RAW, (uint32_t)length * unit, unit};
    t->zero_ended = kind == 'S';
    t->numpy = sq_strdup(name);
    return t->numpy ? 0 : sq_error_memory(err, 1);
}

static bool is_time_unit(const char *unit)
{
    static const char *const UNITS[] = {"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic"};
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (!strcmp(unit, UNITS[i]))
            return true;
    return false;
}

static bool is_micro(const char *unit)
{
    return !strcmp(unit, "\xce\xbcs") || !strcmp(unit, "\xc2\xb5s"); /* the Greek letter, and the sign */
}

/* scale × unit an element; false: numpy has no such type. */
static bool time_suffix(const char *unit, uint64_t scale, char **ret)
{
    if (is_micro(unit))
        unit = "us";
    if (!is_time_unit(unit) || scale == 0 || scale > INT32_MAX)
        return false;
    if (!strcmp(unit, "generic"))
        *ret = sq_strdup("");
    else
        *ret = scale == 1 ? sq_format("[%s]", unit) : sq_format("[%u%s]", (unsigned)scale, unit);
    return true;
}

/* suffix: "[10ms]", owned by the caller; NULL: out of memory. */
static int set_time(enum squall_type type, const char *suffix, struct sq_zarr_type *t, struct squall_error *err)
{
    bool is_date = type == SQUALL_DATETIME64;
    t->dtype = sq_dtype_of(type);
    if (!suffix)
        return sq_error_memory(err, 1);
    return set_names(t, sq_format("%s64%s", is_date ? "datetime" : "timedelta", suffix), sq_format("<%s%s", is_date ? "M8" : "m8", suffix),
                     err);
}

static int unsupported(const char *name, struct sq_zarr_type *t, struct squall_error *err)
{
    if (!(t->name = sq_strdup(name)))
        return sq_error_memory(err, strlen(name));
    return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported data type %.100s", name);
}

/* ---- structures ------------------------------------------------------------------------------------------------------------------- */

/* A text of Python's. UTF-8 stays as it is. */
static void quote(const char *text, struct sq_text *out)
{
    sq_text_add(out, "'");
    for (const char *c = text; *c; c++) {
        if (*c == '\'' || *c == '\\')
            sq_text_printf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f)
            sq_text_printf(out, "\\x%02x", (unsigned char)*c);
        else
            sq_text_add_bytes(out, c, 1);
    }
    sq_text_add(out, "'");
}

/* A field's type with its byte order as it is stored: structures are never turned. */
static void tell_field(const struct sq_zarr_field *f, struct sq_text *out)
{
    sq_text_add(out, "(");
    quote(f->name, out);
    sq_text_add(out, ", ");
    if (f->type.fields)
        sq_text_add(out, f->type.numpy);
    else if (f->type.dtype.order_bytes > 1)
        sq_text_printf(out, "'%c%s'", f->type.big_endian ? '>' : '<', f->type.numpy + 1);
    else
        sq_text_printf(out, "'%s'", f->type.numpy);
    if (f->shape)
        sq_text_printf(out, ", %s", f->shape);
    sq_text_add(out, ")");
}

/* Fields are there: lay them out, and say what numpy calls it. */
static int finish_structure(struct sq_zarr_type *t, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text numpy = SQ_TEXT_INIT;
    uint64_t bytes = 0;
    for (size_t i = 0; i < t->field_count; i++) {
        const struct sq_zarr_field *f = &t->fields[i];
        for (size_t k = 0; k < i && f->name[0]; k++)
            if (!strcmp(t->fields[k].name, f->name))
                return sq_error(err, SQUALL_ECORRUPT, "two fields of its data type are called %.100s", f->name);
        bytes += (uint64_t)f->count * f->type.dtype.element_bytes; /* < 2^52 each, and few */
        sq_text_add(&numpy, i ? ", " : "[");
        tell_field(f, &numpy);
    }
    sq_text_add(&numpy, "]");
    if (bytes > SQ_ZARR_ELEMENT_LIMIT_BYTES)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported data type: elements of more than %d bytes", SQ_ZARR_ELEMENT_LIMIT_BYTES);
    t->dtype = (struct sq_dtype){SQUALL_RAW, (uint32_t)bytes, 1};
    t->numpy = sq_text_release(&numpy);
    return set_names(t, t->numpy ? sq_strdup(t->numpy) : NULL, t->numpy, err);
}

/* What a structure's field may be: of fixed size, and known to numpy. */
static int check_field(const struct sq_zarr_field *f, struct squall_error *err)
{
    enum squall_type type = f->type.dtype.type;
    bool fits = !sq_type_is_variable(type) && type != SQUALL_BFLOAT16 && !(type >= SQUALL_INT2 && type <= SQUALL_UINT4);
    return fits ? 0 : sq_error(err, SQUALL_EUNSUPPORTED, "unsupported data type: a structure with %.100s", f->type.name);
}

typedef int parse_field(const struct sq_json *field, const void *context, struct sq_zarr_field *ret, struct squall_error *err);

static int parse_structure(const struct sq_json *fields, parse_field *parse, const void *context, struct sq_zarr_type *t,
                           struct squall_error *err)
{
    size_t count = sq_json_count(fields);
    if (sq_json_type(fields) != SQ_JSON_ARRAY || count == 0)
        return sq_error(err, SQUALL_ECORRUPT, "its data type is a structure without fields");
    if (count > FIELD_LIMIT)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported data type: a structure with %zu fields", count);
    if (!(t->fields = sq_alloc_zero(count, sizeof *t->fields)))
        return sq_error_memory(err, count * sizeof *t->fields);
    t->field_count = count;
    for (size_t i = 0; i < count; i++) {
        t->fields[i].count = 1;
        SQ_TRY(parse(sq_json_at(fields, i), context, &t->fields[i], err));
        SQ_TRY(check_field(&t->fields[i], err));
    }
    return finish_structure(t, err);
}

/* Where no structure came of it, people still want to see that it is one. */
static int name_structure(int status, struct sq_zarr_type *t, struct squall_error *err)
{
    if (status != SQUALL_EUNSUPPORTED)
        return status;
    sq_zarr_type_done(t);
    t->name = sq_strdup("struct");
    return t->name ? status : sq_error_memory(err, 1);
}

static int set_field_name(const struct sq_json *name, struct sq_zarr_field *f, struct squall_error *err)
{
    const char *text = sq_json_string(name);
    if (!text)
        return sq_error(err, SQUALL_ECORRUPT, "a field of its data type has no name");
    f->name = sq_strdup(text);
    return f->name ? 0 : sq_error_memory(err, strlen(text));
}

/* ---- version 3 -------------------------------------------------------------------------------------------------------------------- */

static const struct alias {
    const char *name;
    enum squall_type type;
} ALIASES[] = {
    {"bytes", SQUALL_BYTES},
    {"binary", SQUALL_BYTES},
    {"variable_length_utf8", SQUALL_STRING},
    {"complex_float32", SQUALL_COMPLEX64},
    {"complex_float64", SQUALL_COMPLEX128},
};

static bool plain_type_v3(const char *name, enum squall_type *ret)
{
    for (size_t i = 0; i < sizeof ALIASES / sizeof *ALIASES; i++) {
        if (!strcmp(name, ALIASES[i].name)) {
            *ret = ALIASES[i].type;
            return true;
        }
    }
    if (!sq_type_from_name(name, ret))
        return false;
    return *ret != SQUALL_RAW && *ret != SQUALL_TEXT && *ret != SQUALL_DATETIME64 && *ret != SQUALL_TIMEDELTA64;
}

/* numpy's letter of the types that have a length in bytes; 0: it is none of them. */
static char fixed_length_kind(const char *name)
{
    static const struct {
        const char *name;
        char kind;
    } KINDS[] = {{"fixed_length_utf32", 'U'}, {"null_terminated_bytes", 'S'}, {"raw_bytes", 'V'}};
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (!strcmp(name, KINDS[i].name))
            return KINDS[i].kind;
    return 0;
}

static int parse_fixed_length(char kind, const struct sq_json *type, struct sq_zarr_type *t, struct squall_error *err)
{
    uint64_t bytes;
    if (!sq_json_uint(sq_zarr_configured(type, "length_bytes"), &bytes) || bytes == 0 || (kind == 'U' && bytes % 4 != 0))
        return sq_error(err, SQUALL_ECORRUPT, "its data type %s has no length_bytes above 0%s", sq_zarr_extension_name(type),
                        kind == 'U' ? " that are a multiple of 4" : "");
    return set_fixed_length(kind, kind == 'U' ? bytes / 4 : bytes, t, err);
}

static bool is_number(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && length < 10 && strspn(text, "0123456789") == length;
}

/* "r16": so many bits. */
static int parse_raw_bits(const char *name, struct sq_zarr_type *t, struct squall_error *err)
{
    unsigned long bits = strtoul(name + 1, NULL, 10);
    if (bits == 0 || bits % 8 != 0)
        return sq_error(err, SQUALL_ECORRUPT, "its data type %s is no whole number of bytes", name);
    return set_fixed_length('V', bits / 8, t, err);
}

static int parse_time_v3(const struct sq_json *type, enum squall_type time, struct sq_zarr_type *t, struct squall_error *err)
{
    const struct sq_json *factor = sq_zarr_configured(type, "scale_factor");
    const char *unit = sq_json_string(sq_zarr_configured(type, "unit"));
    uint64_t scale = 1;
    char *made = NULL;
    if (!unit || (factor && !sq_json_uint(factor, &scale)) || !time_suffix(unit, scale, &made))
        return sq_error(err, SQUALL_ECORRUPT, "its data type %s has no unit of time that is known, or no scale from 1 to 2^31 - 1",
                        sq_zarr_extension_name(type));
    SQ_CLEANUP_FREE char *suffix = made;
    return set_time(time, suffix, t, err);
}

static int parse_any_v3(const struct sq_json *type, bool big_endian, struct sq_zarr_type *t, struct squall_error *err);

/* {"name", "data_type"}, or zarr-python's older [name, data_type]. context: the byte order */
static int parse_field_v3(const struct sq_json *field, const void *context, struct sq_zarr_field *f, struct squall_error *err)
{
    bool is_pair = sq_json_type(field) == SQ_JSON_ARRAY;
    SQ_TRY(set_field_name(is_pair ? sq_json_at(field, 0) : sq_json_get(field, "name"), f, err));
    return parse_any_v3(is_pair ? sq_json_at(field, 1) : sq_json_get(field, "data_type"), *(const bool *)context, &f->type, err);
}

static int parse_any_v3(const struct sq_json *type, bool big_endian, struct sq_zarr_type *t, struct squall_error *err)
{
    const char *name = sq_zarr_extension_name(type);
    enum squall_type plain;
    if (!name)
        return sq_error(err, SQUALL_ECORRUPT, "its data type has no name");
    t->big_endian = big_endian;
    if (plain_type_v3(name, &plain))
        return set_plain(plain, t, err);
    if (fixed_length_kind(name))
        return parse_fixed_length(fixed_length_kind(name), type, t, err);
    if (name[0] == 'r' && is_number(name + 1))
        return parse_raw_bits(name, t, err);
    if (!strcmp(name, "numpy.datetime64") || !strcmp(name, "numpy.timedelta64"))
        return parse_time_v3(type, name[6] == 'd' ? SQUALL_DATETIME64 : SQUALL_TIMEDELTA64, t, err);
    if (!strcmp(name, "struct") || !strcmp(name, "structured")) {
        int status = parse_structure(sq_zarr_configured(type, "fields"), parse_field_v3, &big_endian, t, err);
        return name_structure(status, t, err);
    }
    return unsupported(name, t, err);
}

/* Does the chain's "bytes" codec say big endian? It may lie within a shard's chain. */
static bool says_big_endian(const struct sq_json *codecs)
{
    for (size_t i = 0; i < sq_json_count(codecs); i++) {
        const struct sq_json *codec = sq_json_at(codecs, i);
        const char *name = sq_zarr_extension_name(codec);
        if (name && !strcmp(name, "bytes")) {
            const char *endian = sq_json_string(sq_zarr_configured(codec, "endian"));
            return endian ? !strcmp(endian, "big") : MACHINE_IS_BIG;
        }
        if (name && !strcmp(name, "sharding_indexed"))
            return says_big_endian(sq_zarr_configured(codec, "codecs"));
    }
    return false;
}

int sq_zarr_type_parse_v3(const struct sq_json *type, const struct sq_json *codecs, struct sq_zarr_type *ret, struct squall_error *err)
{
    *ret = (struct sq_zarr_type){0};
    return parse_any_v3(type, says_big_endian(codecs), ret, err);
}

/* ---- version 2 -------------------------------------------------------------------------------------------------------------------- */

static const struct alias CODES[] = {
    /* behind the byte order */
    {"b1", SQUALL_BOOL},    {"i1", SQUALL_INT8},    {"i2", SQUALL_INT16},     {"i4", SQUALL_INT32},       {"i8", SQUALL_INT64},
    {"u1", SQUALL_UINT8},   {"u2", SQUALL_UINT16},  {"u4", SQUALL_UINT32},    {"u8", SQUALL_UINT64},      {"f2", SQUALL_FLOAT16},
    {"f4", SQUALL_FLOAT32}, {"f8", SQUALL_FLOAT64}, {"c8", SQUALL_COMPLEX64}, {"c16", SQUALL_COMPLEX128},
};

/* "[10ms]", or nothing; false: it is neither. */
static bool time_suffix_v2(const char *text, char **ret)
{
    char unit[8] = "generic";
    char *end = NULL;
    unsigned long scale = 1;
    if (!*text)
        return time_suffix(unit, 1, ret);
    if (*text++ != '[')
        return false;
    if (*text >= '0' && *text <= '9')
        scale = strtoul(text, &end, 10);
    text = end ? end : text;
    size_t length = strcspn(text, "]");
    if (strcmp(text + length, "]") != 0 || length >= sizeof unit)
        return false;
    memcpy(unit, text, length);
    unit[length] = 0;
    return time_suffix(unit, scale, ret);
}

/* |O: what its elements are, the filter says. Pickles are never read. */
static int parse_object(const char *filter, struct sq_zarr_type *t, struct squall_error *err)
{
    if (filter && !strcmp(filter, "vlen-utf8"))
        return set_plain(SQUALL_STRING, t, err);
    if (filter && !strcmp(filter, "vlen-bytes"))
        return set_plain(SQUALL_BYTES, t, err);
    SQ_CLEANUP_FREE char *name = filter ? sq_format("|O of %.40s", filter) : sq_strdup("|O");
    return name ? unsupported(name, t, err) : sq_error_memory(err, 1);
}

static int parse_string_v2(const char *name, const char *object_filter, struct sq_zarr_type *t, struct squall_error *err)
{
    const char *code = name + 1;
    char *suffix = NULL;
    if (!name[0] || !strchr("<>|", name[0]))
        return unsupported(name, t, err);
    t->big_endian = name[0] == '>';
    for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++)
        if (!strcmp(code, CODES[i].name))
            return set_plain(CODES[i].type, t, err);
    if (code[0] && strchr("USV", code[0]) && is_number(code + 1))
        return set_fixed_length(code[0], strtoul(code + 1, NULL, 10), t, err);
    if ((!strncmp(code, "M8", 2) || !strncmp(code, "m8", 2)) && time_suffix_v2(code + 2, &suffix)) {
        SQ_CLEANUP_FREE char *owned = suffix;
        return set_time(code[0] == 'M' ? SQUALL_DATETIME64 : SQUALL_TIMEDELTA64, owned, t, err);
    }
    return strcmp(code, "O") ? unsupported(name, t, err) : parse_object(object_filter, t, err);
}

/* The third member of a field, [2, 3]: how many elements, and Python's words for it. */
static int parse_field_shape(const struct sq_json *shape, struct sq_zarr_field *f, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    uint64_t count = 1, length = 0;
    const bool is_list = sq_json_type(shape) == SQ_JSON_ARRAY;
    sq_text_add(&text, "(");
    for (size_t i = 0; i < (is_list ? sq_json_count(shape) : 1); i++) {
        if (!sq_json_uint(is_list ? sq_json_at(shape, i) : shape, &length))
            return sq_error(err, SQUALL_ECORRUPT, "the shape of a field of its data type is no list of lengths");
        if (length == 0 || length > SQ_ZARR_ELEMENT_LIMIT_BYTES || (count *= length) > SQ_ZARR_ELEMENT_LIMIT_BYTES)
            return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported data type: a field with no elements, or more than %d",
                            SQ_ZARR_ELEMENT_LIMIT_BYTES);
        sq_text_printf(&text, "%llu, ", (unsigned long long)length);
    }
    sq_text_add(&text, ")");
    f->count = (uint32_t)count;
    f->shape = sq_text_release(&text);
    return f->shape ? 0 : sq_error_memory(err, 1);
}

static int parse_any_v2(const struct sq_json *type, const char *object_filter, struct sq_zarr_type *t, struct squall_error *err);

/* [name, type] or [name, type, shape] */
static int parse_field_v2(const struct sq_json *field, const void *context, struct sq_zarr_field *f, struct squall_error *err)
{
    (void)context;
    SQ_TRY(set_field_name(sq_json_at(field, 0), f, err));
    SQ_TRY(parse_any_v2(sq_json_at(field, 1), NULL, &f->type, err));
    return sq_json_count(field) > 2 ? parse_field_shape(sq_json_at(field, 2), f, err) : 0;
}

static int parse_any_v2(const struct sq_json *type, const char *object_filter, struct sq_zarr_type *t, struct squall_error *err)
{
    const char *name = sq_json_string(type);
    if (name)
        return parse_string_v2(name, object_filter, t, err);
    if (sq_json_type(type) != SQ_JSON_ARRAY)
        return sq_error(err, SQUALL_ECORRUPT, "its dtype is neither a text nor a list of fields");
    return name_structure(parse_structure(type, parse_field_v2, NULL, t, err), t, err);
}

int sq_zarr_type_parse_v2(const struct sq_json *type, const char *object_filter, struct sq_zarr_type *ret, struct squall_error *err)
{
    *ret = (struct sq_zarr_type){0};
    return parse_any_v2(type, object_filter, ret, err);
}
