/*
 * The header of a NetCDF-3 file, read straight through. How long it is nobody says before its end: what is read of the file grows until it
 * is there. Lists of names and numbers only; where variables lie, and whether that makes sense, is layout.c's.
 */
#include "base/checked.h"
#include "base/cursor.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "format/netcdf3/netcdf3.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_READ_BYTES = 16 << 10, GROWTH = 8, HEADER_LIMIT_BYTES = 256 << 20 };
enum { TAG_DIMENSIONS = 10, TAG_VARIABLES = 11, TAG_ATTRIBUTES = 12 };
/* Internal to this file: more of the header has to be read. */
enum { NEED_MORE = 1 };

static const struct sq_netcdf3_type_row types[] = {
    [SQ_NETCDF3_BYTE] = {"|i1", SQUALL_INT8, 1, 0x81},
    [SQ_NETCDF3_CHAR] = {"|S1", SQUALL_RAW, 1, 0},
    [SQ_NETCDF3_SHORT] = {"<i2", SQUALL_INT16, 2, 0x8001},
    [SQ_NETCDF3_INT] = {"<i4", SQUALL_INT32, 4, 0x80000001},
    [SQ_NETCDF3_FLOAT] = {"<f4", SQUALL_FLOAT32, 4, 0x7cf00000},
    [SQ_NETCDF3_DOUBLE] = {"<f8", SQUALL_FLOAT64, 8, 0x479e000000000000},
    [SQ_NETCDF3_UBYTE] = {"|u1", SQUALL_UINT8, 1, 0xff},
    [SQ_NETCDF3_USHORT] = {"<u2", SQUALL_UINT16, 2, 0xffff},
    [SQ_NETCDF3_UINT] = {"<u4", SQUALL_UINT32, 4, 0xffffffff},
    [SQ_NETCDF3_INT64] = {"<i8", SQUALL_INT64, 8, 0x8000000000000002},
    [SQ_NETCDF3_UINT64] = {"<u8", SQUALL_UINT64, 8, 0xfffffffffffffffe},
};

const struct sq_netcdf3_type_row *sq_netcdf3_type_row(unsigned version, uint32_t type)
{
    const uint32_t last = version == 5 ? SQ_NETCDF3_UINT64 : SQ_NETCDF3_DOUBLE;
    return type >= SQ_NETCDF3_BYTE && type <= last ? &types[type] : NULL;
}

struct parsing {
    struct sq_netcdf3 *file;
    const uint8_t *bytes;
    struct sq_cursor c;
    unsigned count_bytes, offset_bytes; /* of the version's numbers */
    bool partial;                       /* the file goes on behind these bytes */
    struct squall_error *err;
};

static uint64_t here(const struct parsing *p)
{
    return (uint64_t)(p->c.next - p->bytes);
}

__attribute__((format(printf, 3, 4))) static int corrupt(const struct parsing *p, uint64_t at, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return sq_error(p->err, SQUALL_ECORRUPT, "%s: byte %" PRIu64 ": %s; the file is damaged", sq_source_name(p->file->source), at, text);
}

/* What was taken last went beyond the bytes that are here. */
static int too_short(const struct parsing *p, const char *what)
{
    return p->partial ? NEED_MORE : corrupt(p, here(p), "the file ends within its header, in %s", what);
}

static int take_number(struct parsing *p, unsigned size_bytes, const char *what, uint64_t *ret)
{
    const uint64_t at = here(p), value = sq_uint_be(&p->c, size_bytes);
    if (sq_cursor_failed(&p->c))
        return too_short(p, what);
    if (value > INT64_MAX)
        return corrupt(p, at, "%s is negative", what);
    *ret = value;
    return 0;
}

/* A number of things that take at least element_bytes each: no more than the file can hold. */
static int take_count(struct parsing *p, unsigned element_bytes, const char *what, uint64_t *ret)
{
    const uint64_t at = here(p);
    uint64_t count = 0;
    SQ_TRY(take_number(p, p->count_bytes, what, &count));
    const uint64_t in_file = sq_source_size(p->file->source) - here(p);
    if (count > in_file / element_bytes)
        return corrupt(p, at, "%s: a count of %" PRIu64 ", but the rest of the file has room for %" PRIu64, what, count,
                       in_file / element_bytes);
    if (count > sq_cursor_left(&p->c) / element_bytes)
        return NEED_MORE;
    *ret = count;
    return 0;
}

static int out_of_memory(const struct parsing *p, uint64_t bytes)
{
    return sq_error_memory(p->err, bytes);
}

/* size_bytes, and what fills them up to a multiple of four. */
static int take_padded(struct parsing *p, uint64_t size_bytes, const char *what, const uint8_t **ret)
{
    const uint64_t padding = -size_bytes % 4;
    const uint8_t *bytes = sq_take(&p->c, (size_t)size_bytes);
    if (!bytes || !sq_take(&p->c, padding))
        return too_short(p, what);
    *ret = bytes;
    return 0;
}

static int take_name(struct parsing *p, const char *what, const char **ret)
{
    const uint64_t at = here(p);
    uint64_t length = 0;
    const uint8_t *bytes = NULL;
    SQ_TRY(take_count(p, 1, what, &length));
    SQ_TRY(take_padded(p, length, what, &bytes));
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    sq_text_add_utf8(&text, bytes, (size_t)length);
    const char *name = text.failed ? NULL : sq_arena_strdup(p->file->memory, sq_text_string(&text));
    if (!name)
        return out_of_memory(p, length);
    if (!name[0])
        return corrupt(p, at, "%s is empty", what);
    *ret = name;
    return 0;
}

/* The head of a list: its tag and how many there are; a list of nothing may have tag 0. */
static int take_list(struct parsing *p, uint32_t tag, unsigned element_bytes, const char *what, size_t size_bytes, void **ret_list,
                     size_t *ret_count)
{
    const uint64_t at = here(p);
    uint64_t found = 0, count = 0;
    SQ_TRY(take_number(p, 4, what, &found));
    SQ_TRY(take_count(p, element_bytes, what, &count));
    if (found != tag && (found != 0 || count != 0))
        return corrupt(p, at, "tag %" PRIu64 " where %s should begin with %" PRIu32, found, what, tag);
    *ret_list = count ? sq_arena_alloc(p->file->memory, (size_t)count * size_bytes) : NULL;
    if (count && !*ret_list)
        return out_of_memory(p, count * size_bytes);
    *ret_count = (size_t)count;
    return 0;
}

static int take_type(struct parsing *p, const char *of, enum sq_netcdf3_type *ret)
{
    const uint64_t at = here(p);
    uint64_t type = 0;
    SQ_TRY(take_number(p, 4, "a type", &type));
    if (!sq_netcdf3_type_row(p->file->version, (uint32_t)type))
        return corrupt(p, at, "%s has type %" PRIu64 ", which CDF-%u has not", of, type, p->file->version);
    *ret = (enum sq_netcdf3_type)type;
    return 0;
}

static int take_dimensions(struct parsing *p)
{
    struct sq_netcdf3 *f = p->file;
    void *list = NULL;
    bool has_record = false;
    SQ_TRY(take_list(p, TAG_DIMENSIONS, 2 * p->count_bytes, "the dimensions", sizeof *f->dimensions, &list, &f->dimension_count));
    f->dimensions = list;
    for (size_t i = 0; i < f->dimension_count; i++) {
        struct sq_netcdf3_dimension *d = &f->dimensions[i];
        SQ_TRY(take_name(p, "a dimension's name", &d->name));
        const uint64_t at = here(p);
        SQ_TRY(take_number(p, p->count_bytes, "a dimension's length", &d->length));
        d->is_record = d->length == 0;
        if (d->is_record && has_record)
            return corrupt(p, at, "dimension %s has length 0, as another has that is the record dimension", d->name);
        has_record = has_record || d->is_record;
    }
    return 0;
}

static int take_attributes(struct parsing *p, struct sq_netcdf3_attributes *ret)
{
    void *list = NULL;
    size_t count = 0;
    SQ_TRY(take_list(p, TAG_ATTRIBUTES, 2 * p->count_bytes + 4, "the attributes", sizeof *ret->list, &list, &count));
    struct sq_netcdf3_attribute *attributes = list;
    for (size_t i = 0; i < count; i++) {
        struct sq_netcdf3_attribute *a = &attributes[i];
        SQ_TRY(take_name(p, "an attribute's name", &a->name));
        SQ_TRY(take_type(p, a->name, &a->type));
        const unsigned size_bytes = types[a->type].size_bytes;
        SQ_TRY(take_count(p, size_bytes, "an attribute's values", &a->count));
        SQ_TRY(take_padded(p, a->count * size_bytes, "an attribute's values", &a->values));
    }
    *ret = (struct sq_netcdf3_attributes){attributes, count};
    return 0;
}

static int take_shape(struct parsing *p, struct sq_netcdf3_variable *v)
{
    const struct sq_netcdf3 *f = p->file;
    const uint64_t at = here(p);
    uint64_t rank = 0;
    SQ_TRY(take_count(p, p->count_bytes, "a variable's dimensions", &rank));
    if (rank > UINT16_MAX)
        return corrupt(p, at, "variable %s has %" PRIu64 " dimensions", v->name, rank);
    uint64_t *shape = sq_arena_alloc(f->memory, (rank + 1) * sizeof *shape);
    const char **dims = sq_arena_alloc(f->memory, (rank + 1) * sizeof *dims);
    if (!shape || !dims)
        return out_of_memory(p, rank * sizeof *shape);
    for (unsigned d = 0; d < rank; d++) {
        const uint64_t id_at = here(p);
        uint64_t id = 0;
        SQ_TRY(take_number(p, p->count_bytes, "a variable's dimension", &id));
        if (id >= f->dimension_count)
            return corrupt(p, id_at, "variable %s has dimension %" PRIu64 ", of %zu", v->name, id, f->dimension_count);
        if (f->dimensions[id].is_record && d > 0)
            return corrupt(p, id_at, "variable %s has the record dimension behind another", v->name);
        v->is_record = v->is_record || f->dimensions[id].is_record;
        shape[d] = f->dimensions[id].length;
        dims[d] = f->dimensions[id].name;
    }
    v->rank = (unsigned)rank;
    v->shape = shape;
    v->dims = dims;
    return 0;
}

static int take_variables(struct parsing *p)
{
    struct sq_netcdf3 *f = p->file;
    const unsigned least_bytes = 4 * p->count_bytes + 8 + p->offset_bytes;
    void *list = NULL;
    SQ_TRY(take_list(p, TAG_VARIABLES, least_bytes, "the variables", sizeof *f->variables, &list, &f->variable_count));
    f->variables = list;
    for (size_t i = 0; i < f->variable_count; i++) {
        struct sq_netcdf3_variable *v = &f->variables[i];
        uint64_t stated_bytes = 0; /* does not hold what large variables have, and follows from the shape: not used */
        v->header_offset = here(p);
        SQ_TRY(take_name(p, "a variable's name", &v->name));
        SQ_TRY(take_shape(p, v));
        SQ_TRY(take_attributes(p, &v->attributes));
        SQ_TRY(take_type(p, v->name, &v->type));
        SQ_TRY(take_number(p, p->count_bytes, "a variable's size", &stated_bytes));
        SQ_TRY(take_number(p, p->offset_bytes, "a variable's place", &v->begin));
    }
    return 0;
}

static int parse(struct parsing *p)
{
    struct sq_netcdf3 *f = p->file;
    const uint8_t *magic = sq_take(&p->c, 4);
    if (!magic)
        return too_short(p, "its first bytes");
    f->version = magic[3];
    if (memcmp(magic, "CDF", 3) != 0 || (f->version != 1 && f->version != 2 && f->version != 5))
        return sq_error(p->err, SQUALL_EUNSUPPORTED, "%s: no NetCDF-3 file: it does not begin with CDF and 1, 2 or 5",
                        sq_source_name(f->source));
    p->count_bytes = f->version == 5 ? 8 : 4;
    p->offset_bytes = f->version == 1 ? 4 : 8;
    f->record_count = sq_uint_be(&p->c, p->count_bytes);
    f->streaming = f->record_count == (f->version == 5 ? UINT64_MAX : UINT32_MAX);
    if (sq_cursor_failed(&p->c))
        return too_short(p, "the number of records");
    if (!f->streaming && f->record_count > INT64_MAX)
        return corrupt(p, 4, "the number of records is negative");
    SQ_TRY(take_dimensions(p));
    SQ_TRY(take_attributes(p, &f->attributes));
    SQ_TRY(take_variables(p));
    f->header_bytes = here(p);
    return 0;
}

/* Forget what an attempt found. */
static int begin_again(struct sq_netcdf3 *f, struct squall_error *err)
{
    struct sq_source *source = f->source;
    sq_arena_free(f->memory);
    *f = (struct sq_netcdf3){.source = source, .memory = sq_arena_new()};
    return f->memory ? 0 : sq_error_memory(err, sizeof *f);
}

/* Attributes point into the bytes, which are in the arena therefore. */
static int parse_beginning(struct sq_netcdf3 *f, size_t size_bytes, struct squall_error *err)
{
    SQ_TRY(begin_again(f, err));
    uint8_t *bytes = sq_arena_alloc(f->memory, size_bytes);
    if (!bytes)
        return sq_error_memory(err, size_bytes);
    SQ_TRY(sq_source_read(f->source, 0, bytes, size_bytes, err));
    struct parsing p = {.file = f, .bytes = bytes, .c = sq_cursor(bytes, size_bytes), .err = err};
    p.partial = size_bytes < sq_source_size(f->source);
    return parse(&p);
}

static int read_header(struct sq_netcdf3 *f, struct squall_error *err)
{
    const uint64_t file_bytes = sq_source_size(f->source);
    uint64_t size_bytes = FIRST_READ_BYTES;
    for (;;) {
        if (size_bytes > file_bytes)
            size_bytes = file_bytes;
        int status = parse_beginning(f, (size_t)size_bytes, err);
        if (status != NEED_MORE)
            return status;
        if (size_bytes == HEADER_LIMIT_BYTES)
            return sq_error(err, SQUALL_ECORRUPT, "%s: the header does not end within %d bytes; the file is damaged",
                            sq_source_name(f->source), HEADER_LIMIT_BYTES);
        size_bytes = size_bytes * GROWTH < HEADER_LIMIT_BYTES ? size_bytes * GROWTH : HEADER_LIMIT_BYTES;
    }
}

int sq_netcdf3_open(struct sq_source *source, struct sq_netcdf3 **ret, struct squall_error *err)
{
    struct sq_netcdf3 *f = sq_alloc_zero(1, sizeof *f);
    if (!f) {
        sq_source_close(source);
        return sq_error_memory(err, sizeof *f);
    }
    f->source = source;
    int status = read_header(f, err);
    if (!status)
        status = sq_netcdf3_lay_out(f, err);
    if (status)
        sq_netcdf3_close(f);
    else
        *ret = f;
    return status;
}

void sq_netcdf3_close(struct sq_netcdf3 *f)
{
    if (!f)
        return;
    sq_source_close(f->source);
    sq_arena_free(f->memory);
    sq_free(f->problems);
    sq_free(f);
}

bool sq_netcdf3_is_file(struct sq_source *source)
{
    uint8_t bytes[4];
    return !sq_source_read(source, 0, bytes, sizeof bytes, NULL) && memcmp(bytes, "CDF", 3) == 0 &&
           (bytes[3] == 1 || bytes[3] == 2 || bytes[3] == 5);
}
