/*
 * The header of a CDF-5 file. Its length depends on nothing but names, shapes and attributes, so it is written twice: to learn where the data
 * may begin, and with the places in it. Numbers are big-endian; everything is padded to four bytes.
 */
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "store/netcdf3.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TAG_DIMENSIONS = 10, TAG_VARIABLES = 11, TAG_ATTRIBUTES = 12 };
/* Variables of different processes share no page, where that can be. */
static const uint64_t PAGE_BYTES = 4096;

/* A variable on its way into the header. */
struct placed {
    const struct squall_netcdf_variable *variable;
    struct sq_json *attributes, *types;
    enum sq_netcdf3_type type;
    uint64_t dims[SQUALL_RANK_MAX]; /* their numbers */
    bool is_record;
    uint64_t row_bytes, begin;
};

struct making {
    const struct squall_netcdf_spec *spec;
    struct placed *variables;
    struct sq_json *attributes, *types;
    uint64_t record_count, record_bytes, file_bytes;
    struct sq_text *out;
};

static uint64_t padded(uint64_t bytes)
{
    return bytes + -bytes % 4;
}

static void put(struct sq_text *out, uint64_t value, unsigned size_bytes)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < size_bytes; i++)
        bytes[i] = (uint8_t)(value >> 8 * (size_bytes - 1 - i));
    sq_text_add_bytes(out, bytes, size_bytes);
}

static void put_padded(struct sq_text *out, const void *bytes, size_t size_bytes)
{
    sq_text_add_bytes(out, bytes, size_bytes);
    put(out, 0, (unsigned)(-size_bytes % 4));
}

static void put_name(struct sq_text *out, const char *name)
{
    put(out, strlen(name), 8);
    put_padded(out, name, strlen(name));
}

/* CDF-5: a list of nothing is tag 0 and 0. */
static void put_list(struct sq_text *out, uint32_t tag, uint64_t count)
{
    put(out, count ? tag : 0, 4);
    put(out, count, 8);
}

/* ---- names and types -------------------------------------------------------------------------------------------------------------- */

static int check_name(const char *what, const char *name, struct squall_error *err)
{
    if (!name || !name[0] || strchr(name, '/') || !sq_text_is_visible(name) || name[strlen(name) - 1] == ' ')
        return sq_error(err, SQUALL_EINVAL,
                        "%s \"%s\": NetCDF takes no such name: empty, with a slash or control character, or a space at its end", what,
                        name ? name : "");
    return 0;
}

/* numpy's spelling or ours; false: CDF-5 has no such type. */
static bool type_of(const char *name, enum sq_netcdf3_type *ret)
{
    enum squall_type type = SQUALL_BOOL;
    const bool named = sq_type_from_name(name, &type);
    for (uint32_t t = SQ_NETCDF3_BYTE; t <= SQ_NETCDF3_UINT64; t++) {
        const struct sq_netcdf3_type_row *row = sq_netcdf3_type_row(5, t);
        if (strcmp(name, row->numpy) == 0 || (named && type == row->type && type != SQUALL_RAW)) {
            *ret = (enum sq_netcdf3_type)t;
            return true;
        }
    }
    return false;
}

/* ---- attributes ------------------------------------------------------------------------------------------------------------------- */

static uint64_t bits_of_float(double value)
{
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return bits;
}

static uint64_t bits_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool fits(enum sq_netcdf3_type type, const struct sq_json *number, uint64_t *ret)
{
    static const struct {
        int64_t least;
        uint64_t greatest;
    } limits[] = {
        [SQ_NETCDF3_BYTE] = {INT8_MIN, INT8_MAX},    [SQ_NETCDF3_SHORT] = {INT16_MIN, INT16_MAX}, [SQ_NETCDF3_INT] = {INT32_MIN, INT32_MAX},
        [SQ_NETCDF3_UBYTE] = {0, UINT8_MAX},         [SQ_NETCDF3_USHORT] = {0, UINT16_MAX},       [SQ_NETCDF3_UINT] = {0, UINT32_MAX},
        [SQ_NETCDF3_INT64] = {INT64_MIN, INT64_MAX}, [SQ_NETCDF3_UINT64] = {0, UINT64_MAX},
    };
    double value;
    int64_t integer;
    if (type == SQ_NETCDF3_FLOAT || type == SQ_NETCDF3_DOUBLE) {
        if (!sq_json_double(number, &value))
            return false;
        *ret = type == SQ_NETCDF3_FLOAT ? bits_of_float(value) : bits_of_double(value);
        return true;
    }
    if (sq_json_int(number, &integer)) {
        *ret = (uint64_t)integer;
        return integer >= limits[type].least && (integer < 0 || (uint64_t)integer <= limits[type].greatest);
    }
    return sq_json_uint(number, ret) && *ret <= limits[type].greatest;
}

/* int32 where all are and fit, int64, or float64. */
static enum sq_netcdf3_type usual_type(const struct sq_json *value)
{
    const bool is_list = sq_json_type(value) == SQ_JSON_ARRAY;
    enum sq_netcdf3_type type = SQ_NETCDF3_INT;
    uint64_t bits;
    for (size_t i = 0; i < (is_list ? sq_json_count(value) : 1); i++) {
        const struct sq_json *number = is_list ? sq_json_at(value, i) : value;
        if (sq_json_type(number) != SQ_JSON_INT)
            return SQ_NETCDF3_DOUBLE;
        if (!fits(SQ_NETCDF3_INT, number, &bits))
            type = fits(SQ_NETCDF3_INT64, number, &bits) ? SQ_NETCDF3_INT64 : SQ_NETCDF3_UINT64;
    }
    return type;
}

static int put_text(struct sq_text *out, const char *text)
{
    put(out, SQ_NETCDF3_CHAR, 4);
    put(out, strlen(text), 8);
    put_padded(out, text, strlen(text));
    return 0;
}

struct attribute_list {
    const struct sq_json *types;
    struct sq_text *out;
};

static int put_attribute(void *user, const char *name, const struct sq_json *value, struct squall_error *err)
{
    const struct attribute_list *list = user;
    struct sq_text *out = list->out;
    const char *type_name = sq_json_string(sq_json_get(list->types, name));
    const bool is_list = sq_json_type(value) == SQ_JSON_ARRAY;
    enum sq_netcdf3_type type = usual_type(value);
    SQ_TRY(check_name("attribute", name, err));
    put_name(out, name);
    if (sq_json_type(value) == SQ_JSON_STRING)
        return put_text(out, sq_json_string(value));
    if (type_name && (!type_of(type_name, &type) || type == SQ_NETCDF3_CHAR))
        return sq_error(err, SQUALL_EINVAL, "attribute %s: CDF-5 has no numbers of type %s", name, type_name);
    const struct sq_netcdf3_type_row *row = sq_netcdf3_type_row(5, type);
    const size_t count = is_list ? sq_json_count(value) : 1, begin = out->length;
    put(out, type, 4);
    put(out, count, 8);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = 0;
        if (!fits(type, is_list ? sq_json_at(value, i) : value, &bits))
            return sq_error(err, SQUALL_EINVAL,
                            "attribute %s: NetCDF-3 attributes are texts, and numbers within their type; this has others than %s", name,
                            row->numpy);
        put(out, bits, row->size_bytes);
    }
    put(out, 0, (unsigned)(-(out->length - begin) % 4));
    return 0;
}

static int put_attributes(struct sq_text *out, const struct sq_json *attributes, const struct sq_json *types, struct squall_error *err)
{
    struct attribute_list list = {types, out};
    put_list(out, TAG_ATTRIBUTES, sq_json_count(attributes));
    return sq_json_each(attributes, put_attribute, &list, err);
}

static int parse_object(const char *text, struct sq_json **ret, struct squall_error *err)
{
    if (!text)
        return 0;
    SQ_TRY(sq_json_parse(text, strlen(text), ret, err));
    return sq_json_type(*ret) == SQ_JSON_OBJECT ? 0 : sq_error(err, SQUALL_EINVAL, "attributes are a JSON object");
}

/* ---- what the spec says ----------------------------------------------------------------------------------------------------------- */

static int check_dimensions(struct making *m, struct squall_error *err)
{
    bool has_record = false;
    for (size_t i = 0; i < m->spec->dimension_count; i++) {
        const struct squall_netcdf_dimension *d = &m->spec->dimensions[i];
        SQ_TRY(check_name("dimension", d->name, err));
        for (size_t k = 0; k < i; k++)
            if (!strcmp(d->name, m->spec->dimensions[k].name))
                return sq_error(err, SQUALL_EINVAL, "dimension %s is there twice", d->name);
        if (d->is_record && has_record)
            return sq_error(err, SQUALL_EINVAL, "dimension %s is a second record dimension; NetCDF-3 has one", d->name);
        if ((d->length == 0 && !d->is_record) || d->length > INT64_MAX)
            return sq_error(err, SQUALL_EINVAL, "dimension %s: length %" PRIu64 "; only the record dimension may have none", d->name,
                            d->length);
        has_record = has_record || d->is_record;
        if (d->is_record)
            m->record_count = d->length;
    }
    return 0;
}

static int find_dims(const struct squall_netcdf_spec *spec, struct placed *p, struct squall_error *err)
{
    const struct squall_netcdf_variable *v = p->variable;
    const struct sq_netcdf3_type_row *row = sq_netcdf3_type_row(5, p->type);
    p->row_bytes = row->size_bytes;
    for (unsigned d = 0; d < v->rank; d++) {
        size_t k = 0;
        while (k < spec->dimension_count && strcmp(spec->dimensions[k].name, v->dims[d]) != 0)
            k++;
        if (k == spec->dimension_count)
            return sq_error(err, SQUALL_EINVAL, "variable %s: there is no dimension %s", v->name, v->dims[d]);
        const struct squall_netcdf_dimension *dimension = &spec->dimensions[k];
        if (dimension->is_record && d > 0)
            return sq_error(err, SQUALL_EINVAL, "variable %s: the record dimension %s must be its first", v->name, v->dims[d]);
        p->dims[d] = k;
        p->is_record = p->is_record || dimension->is_record;
        if (!dimension->is_record && !sq_mul_u64(p->row_bytes, dimension->length, &p->row_bytes))
            return sq_error(err, SQUALL_EINVAL, "variable %s is larger than any file", v->name);
    }
    return p->row_bytes <= INT64_MAX ? 0 : sq_error(err, SQUALL_EINVAL, "variable %s is larger than any file", v->name);
}

static int take_variable(struct making *m, size_t index, struct squall_error *err)
{
    const struct squall_netcdf_variable *v = &m->spec->variables[index];
    struct placed *p = &m->variables[index];
    p->variable = v;
    SQ_TRY(check_name("variable", v->name, err));
    for (size_t k = 0; k < index; k++)
        if (!strcmp(v->name, m->spec->variables[k].name))
            return sq_error(err, SQUALL_EINVAL, "variable %s is there twice", v->name);
    if (v->rank > SQUALL_RANK_MAX)
        return sq_error(err, SQUALL_EINVAL, "variable %s: more than %d dimensions", v->name, SQUALL_RANK_MAX);
    if (!type_of(v->type, &p->type))
        return sq_error(err, SQUALL_EINVAL, "variable %s: CDF-5 has no type %s; it has integers of 1 to 8 bytes, float32, float64 and |S1",
                        v->name, v->type);
    int status = parse_object(v->attributes, &p->attributes, err);
    if (!status)
        status = parse_object(v->attribute_types, &p->types, err);
    return status ? sq_error_within(err, status, "variable %s", v->name) : find_dims(m->spec, p, err);
}

/* ---- places ----------------------------------------------------------------------------------------------------------------------- */

static bool add_pages(uint64_t *at, uint64_t bytes)
{
    return sq_add_u64(*at, bytes, at) && sq_add_u64(*at, PAGE_BYTES - 1, at) && (*at -= *at % PAGE_BYTES) <= INT64_MAX;
}

/* Variables without records first, each from a page on; then the records, which the format wants without gaps. */
static bool place(struct making *m, uint64_t header_bytes)
{
    uint64_t at = 0, records;
    size_t record_variables = 0;
    const struct placed *last = NULL;
    bool fit = add_pages(&at, header_bytes);
    for (size_t i = 0; fit && i < m->spec->variable_count; i++)
        if (!m->variables[i].is_record) {
            m->variables[i].begin = at;
            fit = add_pages(&at, padded(m->variables[i].row_bytes));
        }
    m->record_bytes = 0;
    for (size_t i = 0; fit && i < m->spec->variable_count; i++) {
        struct placed *p = &m->variables[i];
        if (!p->is_record)
            continue;
        record_variables++;
        last = p;
        p->begin = at + m->record_bytes;
        fit = sq_add_u64(m->record_bytes, padded(p->row_bytes), &m->record_bytes) && m->record_bytes <= INT64_MAX / 2;
    }
    if (record_variables == 1) /* which the format does not pad */
        m->record_bytes = last->row_bytes;
    fit = fit && sq_mul_u64(m->record_bytes, m->record_count, &records) && sq_add_u64(at, records, &m->file_bytes);
    return fit && m->file_bytes <= INT64_MAX;
}

static int put_variable(struct sq_text *out, const struct placed *p, struct squall_error *err)
{
    put_name(out, p->variable->name);
    put(out, p->variable->rank, 8);
    for (unsigned d = 0; d < p->variable->rank; d++)
        put(out, p->dims[d], 8);
    int status = put_attributes(out, p->attributes, p->types, err);
    if (status)
        return sq_error_within(err, status, "variable %s", p->variable->name);
    put(out, p->type, 4);
    put(out, padded(p->row_bytes), 8);
    put(out, p->begin, 8);
    return 0;
}

static int put_header(const struct making *m, struct squall_error *err)
{
    const struct squall_netcdf_spec *spec = m->spec;
    sq_text_clear(m->out);
    sq_text_add(m->out, "CDF\5");
    put(m->out, m->record_count, 8);
    put_list(m->out, TAG_DIMENSIONS, spec->dimension_count);
    for (size_t i = 0; i < spec->dimension_count; i++) {
        put_name(m->out, spec->dimensions[i].name);
        put(m->out, spec->dimensions[i].is_record ? 0 : spec->dimensions[i].length, 8);
    }
    SQ_TRY(put_attributes(m->out, m->attributes, m->types, err));
    put_list(m->out, TAG_VARIABLES, spec->variable_count);
    for (size_t i = 0; i < spec->variable_count; i++)
        SQ_TRY(put_variable(m->out, &m->variables[i], err));
    return m->out->failed ? sq_error_memory(err, m->out->length) : 0;
}

static int make(struct making *m, struct squall_error *err)
{
    SQ_TRY(check_dimensions(m, err));
    SQ_TRY(parse_object(m->spec->attributes, &m->attributes, err));
    SQ_TRY(parse_object(m->spec->attribute_types, &m->types, err));
    for (size_t i = 0; i < m->spec->variable_count; i++)
        SQ_TRY(take_variable(m, i, err));
    SQ_TRY(put_header(m, err));
    if (!place(m, m->out->length))
        return sq_error(err, SQUALL_EINVAL, "the variables together are larger than any file");
    return put_header(m, err);
}

int sq_netcdf3_header_make(const struct squall_netcdf_spec *spec, struct sq_text *header, uint64_t *ret_file_bytes,
                           struct squall_error *err)
{
    struct making m = {.spec = spec, .out = header};
    if (!(m.variables = sq_alloc_zero(spec->variable_count + 1, sizeof *m.variables)))
        return sq_error_memory(err, spec->variable_count * sizeof *m.variables);
    int status = make(&m, err);
    for (size_t i = 0; i < spec->variable_count; i++) {
        sq_json_free(m.variables[i].attributes);
        sq_json_free(m.variables[i].types);
    }
    sq_json_free(m.attributes);
    sq_json_free(m.types);
    sq_free(m.variables);
    if (status)
        return status;
    *ret_file_bytes = m.file_bytes > header->length ? m.file_bytes : header->length;
    return 0;
}
