/* See datatype.h. Types nest: a compound's members, what a sequence, an array or an enum is of; each message is parsed into a tree of them. */
#include "format/hdf5/datatype.h"
#include "base/checked.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NESTING_LIMIT = 32, OLD_DIMS = 4 };

struct parsing {
    struct sq_hdf5_reader *r;
    struct sq_cursor c;
    uint64_t address;
    unsigned version, nesting;
    uint32_t flags; /* the class bit field */
};

static int bad(const struct parsing *p, const char *what, struct squall_error *err)
{
    return SQ_HDF5_DAMAGED(p->r->file, p->address, err, "a datatype message with %s", what);
}

static int parse_type(struct parsing *p, const struct sq_hdf5_type **ret, struct squall_error *err);

/* A copy that lives as long as the type. */
static int keep(struct parsing *p, const uint8_t *bytes, size_t size_bytes, const uint8_t **ret, struct squall_error *err)
{
    uint8_t *copy;
    SQ_TRY(SQ_HDF5_ROOM(p->r, &copy, size_bytes, err));
    memcpy(copy, bytes, size_bytes);
    *ret = copy;
    return 0;
}

/* A name and its NUL; padded to a multiple of 8 before version 3. */
static int take_name(struct parsing *p, const char **ret, struct squall_error *err)
{
    const size_t left = sq_cursor_left(&p->c);
    const uint8_t *end = left ? memchr(p->c.next, 0, left) : NULL;
    if (!end)
        return bad(p, "a name that does not end", err);
    const size_t length = (size_t)(end - p->c.next) + 1;
    const uint8_t *name = sq_take(&p->c, p->version < 3 ? (length + 7) / 8 * 8 : length);
    if (!name)
        return bad(p, "a name that does not end", err);
    SQ_TRY(keep(p, name, length, &name, err));
    *ret = (const char *)name;
    return 0;
}

static int parse_bits(struct parsing *p, struct sq_hdf5_type *t, struct squall_error *err)
{
    t->bit_offset = sq_u16le(&p->c);
    t->precision = sq_u16le(&p->c);
    if (t->precision == 0 || (uint64_t)t->bit_offset + t->precision > 8 * (uint64_t)t->size_bytes)
        return bad(p, "more bits than bytes", err);
    return 0;
}

static int parse_integer(struct parsing *p, struct sq_hdf5_type *t, struct squall_error *err)
{
    t->big_endian = p->flags & 1;
    t->is_signed = t->class == SQ_HDF5_INTEGER && p->flags & 1 << 3;
    return parse_bits(p, t, err);
}

static int parse_float(struct parsing *p, struct sq_hdf5_type *t, struct squall_error *err)
{
    enum { ORDER_LOW = 1, ORDER_HIGH = 1 << 6 };
    t->big_endian = p->flags & ORDER_LOW;
    t->is_vax = p->flags & ORDER_HIGH;
    t->layout.normalization = p->flags >> 4 & 3;
    t->layout.sign_at = (uint8_t)(p->flags >> 8);
    SQ_TRY(parse_bits(p, t, err));
    t->layout.exponent_at = sq_u8(&p->c);
    t->layout.exponent_bits = sq_u8(&p->c);
    t->layout.mantissa_at = sq_u8(&p->c);
    t->layout.mantissa_bits = sq_u8(&p->c);
    t->layout.bias = sq_u32le(&p->c);
    const unsigned bits = t->size_bytes > 16 ? 0 : 8 * t->size_bytes;
    if (t->layout.sign_at >= bits || t->layout.exponent_at + t->layout.exponent_bits > bits || t->layout.exponent_bits > 31 ||
        t->layout.mantissa_at + t->layout.mantissa_bits > bits || t->layout.mantissa_bits == 0 || t->layout.exponent_bits == 0)
        return bad(p, "a float whose parts do not lie within it", err);
    return 0;
}

static int parse_opaque(struct parsing *p, struct sq_hdf5_type *t, struct squall_error *err)
{
    const size_t length = p->flags & 0xff;
    const uint8_t *tag = sq_take(&p->c, length);
    t->tag = "";
    if (!length || !tag)
        return 0;
    char *copy;
    SQ_TRY(SQ_HDF5_ROOM(p->r, &copy, length + 1, err));
    memcpy(copy, tag, length);
    t->tag = copy;
    return 0;
}

/* An array type around `base`. */
static int make_array(struct parsing *p, struct sq_hdf5_type *t, unsigned rank, const uint64_t *shape, const struct sq_hdf5_type *base,
                      struct squall_error *err)
{
    uint64_t *copy, size = base->size_bytes;
    *t = (struct sq_hdf5_type){.class = SQ_HDF5_ARRAY, .base = base, .rank = rank, .element_count = 1};
    SQ_TRY(SQ_HDF5_ROOM(p->r, &copy, rank, err));
    for (unsigned d = 0; d < rank; d++) {
        copy[d] = shape[d];
        if (!sq_mul_u64(size, shape[d], &size) || shape[d] == 0)
            return bad(p, "an array type whose shape is none", err);
        t->element_count *= shape[d];
    }
    if (size > UINT32_MAX)
        return bad(p, "an array type of 4 GiB or more", err);
    t->shape = copy;
    t->size_bytes = (uint32_t)size;
    return 0;
}

/* Since version 2, without version 1's permutation of dimensions since 3. */
static int parse_array(struct parsing *p, struct sq_hdf5_type *t, struct squall_error *err)
{
    uint64_t shape[SQUALL_RANK_MAX];
    const struct sq_hdf5_type *base;
    const uint32_t size_bytes = t->size_bytes;
    const unsigned rank = sq_u8(&p->c), version = p->version;
    if (rank > SQUALL_RANK_MAX || rank == 0)
        return bad(p, "an array type of no possible rank", err);
    if (version < 3)
        sq_take(&p->c, 3);
    for (unsigned d = 0; d < rank; d++)
        shape[d] = sq_u32le(&p->c);
    if (version < 3)
        sq_take(&p->c, 4 * (size_t)rank);
    SQ_TRY(parse_type(p, &base, err));
    SQ_TRY(make_array(p, t, rank, shape, base, err));
    return t->size_bytes == size_bytes ? 0 : bad(p, "an array type of another size than its elements", err);
}

/* Version 1 has arrays in its members. */
static int parse_old_member(struct parsing *p, struct sq_hdf5_member *m, struct squall_error *err)
{
    uint64_t shape[OLD_DIMS];
    m->offset_bytes = sq_u32le(&p->c);
    const unsigned rank = sq_u8(&p->c);
    sq_take(&p->c, 3 + 4 + 4);
    for (unsigned d = 0; d < OLD_DIMS; d++)
        shape[d] = sq_u32le(&p->c);
    if (rank > OLD_DIMS)
        return bad(p, "a member of no possible rank", err);
    SQ_TRY(parse_type(p, &m->type, err));
    if (rank == 0)
        return 0;
    struct sq_hdf5_type *array;
    SQ_TRY(SQ_HDF5_ROOM(p->r, &array, 1, err));
    SQ_TRY(make_array(p, array, rank, shape, m->type, err));
    m->type = array;
    return 0;
}

static unsigned bytes_for(uint32_t limit)
{
    return limit < 1u << 8 ? 1 : limit < 1u << 16 ? 2 : limit < 1u << 24 ? 3 : 4;
}

static int check_member_names(struct parsing *p, const struct sq_hdf5_type *t, struct squall_error *err)
{
    SQ_TRY(sq_hdf5_spend(p->r, (uint64_t)t->member_count * t->member_count, err));
    for (unsigned i = 0; i < t->member_count; i++)
        for (unsigned k = 0; k < i; k++)
            if (!strcmp(t->members[i].name, t->members[k].name))
                return bad(p, "two members of one name", err);
    return 0;
}

static int parse_compound(struct parsing *p, struct sq_hdf5_type *t, struct squall_error *err)
{
    const unsigned version = p->version;
    t->member_count = p->flags & 0xffff;
    if (t->member_count == 0 || t->member_count > sq_cursor_left(&p->c))
        return bad(p, "a compound that has not the members it says", err);
    SQ_TRY(SQ_HDF5_ROOM(p->r, &t->members, t->member_count, err));
    for (unsigned i = 0; i < t->member_count; i++) {
        struct sq_hdf5_member *m = &t->members[i];
        p->version = version;
        SQ_TRY(take_name(p, &m->name, err));
        if (version == 1) {
            SQ_TRY(parse_old_member(p, m, err));
        } else {
            m->offset_bytes = (uint32_t)sq_uint_le(&p->c, version == 2 ? 4 : bytes_for(t->size_bytes));
            SQ_TRY(parse_type(p, &m->type, err));
        }
        if (m->offset_bytes > t->size_bytes || m->type->size_bytes > t->size_bytes - m->offset_bytes)
            return bad(p, "a member that does not lie within its compound", err);
    }
    return check_member_names(p, t, err);
}

static int parse_enum(struct parsing *p, struct sq_hdf5_type *t, struct squall_error *err)
{
    const unsigned version = p->version;
    t->member_count = p->flags & 0xffff;
    SQ_TRY(parse_type(p, &t->base, err));
    if (t->base->class != SQ_HDF5_INTEGER || t->base->size_bytes != t->size_bytes)
        return bad(p, "an enum of something else than integers of its size", err);
    if (t->member_count > sq_cursor_left(&p->c))
        return bad(p, "an enum that has not the names it says", err);
    p->version = version;
    SQ_TRY(SQ_HDF5_ROOM(p->r, &t->names, t->member_count, err));
    for (unsigned i = 0; i < t->member_count; i++)
        SQ_TRY(take_name(p, &t->names[i], err));
    const size_t value_bytes = (size_t)t->member_count * t->size_bytes;
    const uint8_t *values = sq_take(&p->c, value_bytes);
    if (values)
        SQ_TRY(keep(p, values, value_bytes, &t->values, err));
    t->big_endian = t->base->big_endian;
    t->is_signed = t->base->is_signed;
    t->bit_offset = t->base->bit_offset;
    t->precision = t->base->precision;
    return 0;
}

static int parse_class(struct parsing *p, struct sq_hdf5_type *t, struct squall_error *err)
{
    switch (t->class) {
    case SQ_HDF5_INTEGER:
    case SQ_HDF5_BITFIELD:
        return parse_integer(p, t, err);
    case SQ_HDF5_FLOAT:
        return parse_float(p, t, err);
    case SQ_HDF5_TIME:
        t->big_endian = p->flags & 1;
        t->precision = sq_u16le(&p->c);
        return 0;
    case SQ_HDF5_STRING:
        t->padding = (enum sq_hdf5_padding)(p->flags & 0x0f);
        t->is_utf8 = (p->flags >> 4 & 0x0f) == 1;
        return t->padding <= SQ_HDF5_SPACE_PADDED ? 0 : bad(p, "a string whose padding is none", err);
    case SQ_HDF5_OPAQUE:
        return parse_opaque(p, t, err);
    case SQ_HDF5_COMPOUND:
        return parse_compound(p, t, err);
    case SQ_HDF5_REFERENCE:
        t->reference = (enum sq_hdf5_reference)(p->flags & 0x0f);
        return t->reference <= SQ_HDF5_TO_ATTRIBUTE ? 0 : bad(p, "a reference to something unknown", err);
    case SQ_HDF5_ENUM:
        return parse_enum(p, t, err);
    case SQ_HDF5_VLEN:
        t->is_string = (p->flags & 0x0f) == 1;
        t->padding = (enum sq_hdf5_padding)(p->flags >> 4 & 0x03);
        t->is_utf8 = (p->flags >> 8 & 0x0f) == 1;
        if (t->size_bytes != 8u + p->r->file->offset_bytes)
            return bad(p, "a variable length of another size than its place in a heap", err);
        return parse_type(p, &t->base, err);
    case SQ_HDF5_ARRAY:
        return parse_array(p, t, err);
    case SQ_HDF5_COMPLEX:
        SQ_TRY(parse_type(p, &t->base, err));
        return t->base->class == SQ_HDF5_FLOAT && t->size_bytes == 2 * (uint64_t)t->base->size_bytes
                   ? 0
                   : bad(p, "a complex number that is not two floats", err);
    }
    return bad(p, "a class that is unknown", err);
}

static int parse_type(struct parsing *p, const struct sq_hdf5_type **ret, struct squall_error *err)
{
    struct sq_hdf5_type *t;
    const unsigned first = sq_u8(&p->c);
    p->version = first >> 4;
    p->flags = (uint32_t)sq_uint_le(&p->c, 3);
    SQ_TRY(SQ_HDF5_ROOM(p->r, &t, 1, err));
    t->class = (enum sq_hdf5_class)(first & 0x0f);
    t->size_bytes = sq_u32le(&p->c);
    t->element_count = 1;
    if (sq_cursor_failed(&p->c) || t->size_bytes == 0)
        return bad(p, "fewer bytes than its class needs", err);
    if (p->version < 1 || p->version > 5 || (first & 0x0f) > SQ_HDF5_COMPLEX)
        return SQ_HDF5_UNSUPPORTED(p->r->file, p->address, err, "a datatype of class %u, version %u", first & 0x0f, p->version);
    if (++p->nesting > NESTING_LIMIT)
        return bad(p, "more types in each other than are read", err);
    SQ_TRY(parse_class(p, t, err));
    p->nesting--;
    if (sq_cursor_failed(&p->c))
        return bad(p, "fewer bytes than its class needs", err);
    *ret = t;
    return 0;
}

int sq_hdf5_type_parse(struct sq_hdf5_reader *r, const uint8_t *bytes, size_t size_bytes, uint64_t address, const struct sq_hdf5_type **ret,
                       struct squall_error *err)
{
    struct parsing p = {.r = r, .c = sq_cursor(bytes, size_bytes), .address = address};
    return parse_type(&p, ret, err);
}

/* ---- values ---- */

bool sq_hdf5_type_is_bool(const struct sq_hdf5_type *type)
{
    if (type->class != SQ_HDF5_ENUM || type->size_bytes != 1 || type->member_count != 2)
        return false;
    const unsigned is_true = !strcmp(type->names[1], "TRUE") ? 1 : 0;
    return !strcmp(type->names[is_true], "TRUE") && !strcmp(type->names[!is_true], "FALSE") && type->values[is_true] == 1 &&
           type->values[!is_true] == 0;
}

enum { NUMPY_TAG = 6 };

/* The tag is "NUMPY:<M8[10ms]". */
bool sq_hdf5_type_is_time(const struct sq_hdf5_type *type)
{
    if (type->class != SQ_HDF5_OPAQUE || type->size_bytes != 8 || strncmp(type->tag, "NUMPY:<", NUMPY_TAG + 1) != 0)
        return false;
    const char *const word = type->tag + NUMPY_TAG + 1;
    if (strncmp(word, "M8[", 3) != 0 && strncmp(word, "m8[", 3) != 0)
        return false;
    const size_t unit = strspn(word + 3, "0123456789YMWDhmsunpfa");
    return unit > 0 && !strcmp(word + 3 + unit, "]");
}

bool sq_hdf5_type_is_complex(const struct sq_hdf5_type *type)
{
    const bool is_pair = type->class == SQ_HDF5_COMPOUND && type->member_count == 2 && !strcmp(type->members[0].name, "r") &&
                         !strcmp(type->members[1].name, "i");
    const struct sq_hdf5_type *real = is_pair ? type->members[0].type : type->base;
    if (!is_pair && type->class != SQ_HDF5_COMPLEX)
        return false;
    if (!sq_hdf5_type_is_ieee(real) || real->size_bytes < 4 || type->size_bytes != 2 * real->size_bytes)
        return false;
    const struct sq_hdf5_type *imaginary = is_pair ? type->members[1].type : real;
    return sq_hdf5_type_is_ieee(imaginary) && imaginary->size_bytes == real->size_bytes && imaginary->big_endian == real->big_endian &&
           (!is_pair || (type->members[0].offset_bytes == 0 && type->members[1].offset_bytes == real->size_bytes));
}

bool sq_hdf5_type_is_ieee(const struct sq_hdf5_type *type)
{
    static const uint8_t EXPONENT_BITS[9] = {[2] = 5, [4] = 8, [8] = 11};
    const unsigned bits = 8 * type->size_bytes;
    if (type->class != SQ_HDF5_FLOAT || type->is_vax || bits > 64 || EXPONENT_BITS[type->size_bytes] == 0)
        return false;
    const unsigned exponent_bits = EXPONENT_BITS[type->size_bytes], mantissa_bits = bits - 1 - exponent_bits;
    return type->bit_offset == 0 && type->precision == bits && type->layout.normalization == 2 && type->layout.sign_at == bits - 1 &&
           type->layout.exponent_at == mantissa_bits && type->layout.exponent_bits == exponent_bits && type->layout.mantissa_at == 0 &&
           type->layout.mantissa_bits == mantissa_bits && type->layout.bias == (1u << (exponent_bits - 1)) - 1;
}

uint64_t sq_hdf5_type_integer(const struct sq_hdf5_type *type, const uint8_t *stored)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < type->size_bytes; i++)
        value = value << 8 | stored[type->big_endian ? i : type->size_bytes - 1 - i];
    value >>= type->bit_offset;
    if (type->precision >= 64)
        return value;
    const uint64_t sign = UINT64_C(1) << (type->precision - 1);
    value &= (sign << 1) - 1;
    return type->is_signed && value & sign ? value | ~((sign << 1) - 1) : value;
}

/* Bits of bytes that begin with the least, at most 64 of them. */
static uint64_t bits_of(const uint8_t *bytes, unsigned at, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = count; i-- > 0;)
        value = value << 1 | (bytes[(at + i) / 8] >> (at + i) % 8 & 1);
    return value;
}

double sq_hdf5_type_float(const struct sq_hdf5_type *type, const uint8_t *stored)
{
    uint8_t bytes[16] = {0};
    const unsigned size = type->size_bytes;
    for (unsigned i = 0; i < size; i++) /* VAX: words with the most first, bytes in them with the least */
        bytes[i] = stored[type->is_vax ? (size - 1 - i) ^ 1 : type->big_endian ? size - 1 - i : i];
    const unsigned kept = type->layout.mantissa_bits < 64 ? type->layout.mantissa_bits : 64;
    const uint64_t mantissa = bits_of(bytes, type->layout.mantissa_at + type->layout.mantissa_bits - kept, kept);
    const uint64_t exponent = bits_of(bytes, type->layout.exponent_at, type->layout.exponent_bits);
    const bool is_negative = bits_of(bytes, type->layout.sign_at, 1), has_hidden_bit = type->layout.normalization == 2;
    double magnitude;
    if (exponent == (UINT64_C(1) << type->layout.exponent_bits) - 1 && !type->is_vax) {
        magnitude = (has_hidden_bit ? mantissa : mantissa << 1) ? NAN : INFINITY; /* a bit that is stored says nothing there */
    } else {
        const int power = (int)((int64_t)(exponent ? exponent : 1) - (int64_t)type->layout.bias);
        const double fraction = ldexp((double)mantissa, has_hidden_bit ? -(int)kept : 1 - (int)kept);
        magnitude = ldexp(fraction + (has_hidden_bit && exponent ? 1 : 0), power);
    }
    return is_negative ? -magnitude : magnitude;
}

/* ---- names ---- */

static unsigned integer_bytes(uint32_t size_bytes)
{
    return size_bytes <= 2 ? size_bytes : size_bytes <= 4 ? 4 : 8;
}

/* The smallest of IEEE's floats that has its exponents and its digits, or the largest there is. */
static unsigned float_bytes(const struct sq_hdf5_type *t)
{
    if (sq_hdf5_type_is_ieee(t))
        return t->size_bytes;
    if (t->layout.exponent_bits <= 5 && t->layout.mantissa_bits <= 10)
        return 2;
    return t->layout.exponent_bits <= 8 && t->layout.mantissa_bits <= 23 ? 4 : 8;
}

/* A text as Python's literals spell it. */
static void add_quoted(struct sq_text *out, const char *text)
{
    sq_text_add(out, "'");
    for (; *text; text++)
        if (*text == '\'' || *text == '\\')
            sq_text_printf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20 || *text == 0x7f)
            sq_text_printf(out, "\\x%02x", (unsigned char)*text);
        else
            sq_text_add_bytes(out, text, 1);
    sq_text_add(out, "'");
}

static void add_shape(struct sq_text *out, const struct sq_hdf5_type *array)
{
    sq_text_add(out, "(");
    for (unsigned d = 0; d < array->rank; d++)
        sq_text_printf(out, "%s%llu", d ? ", " : "", (unsigned long long)array->shape[d]);
    sq_text_add(out, array->rank == 1 ? ",)" : ")");
}

/* numpy's texts that may end in zero bytes, as h5py stores them. */
static bool is_numpy_text(const struct sq_hdf5_type *t)
{
    char tag[32];
    (void)snprintf(tag, sizeof tag, "NUMPY:|S%u", t->size_bytes);
    return t->class == SQ_HDF5_OPAQUE && !strcmp(t->tag, tag);
}

static void add_sized(struct sq_text *out, const char *word, unsigned size)
{
    sq_text_add(out, word);
    sq_text_add_uint(out, size);
}

/* A type that numpy has a word for: neither compound nor array. */
static void add_word(const struct sq_hdf5_type *t, struct sq_text *out)
{
    if (sq_hdf5_type_is_bool(t))
        sq_text_add(out, "|b1");
    else if (t->class == SQ_HDF5_FLOAT)
        add_sized(out, "<f", float_bytes(t));
    else if (sq_hdf5_type_is_complex(t))
        add_sized(out, "<c", t->size_bytes);
    else if (t->class == SQ_HDF5_STRING || is_numpy_text(t))
        add_sized(out, "|S", t->size_bytes);
    else if (sq_hdf5_type_is_time(t))
        sq_text_add(out, t->tag + NUMPY_TAG);
    else if (t->class == SQ_HDF5_OPAQUE)
        add_sized(out, "|V", t->size_bytes);
    else if (t->class == SQ_HDF5_VLEN || t->class == SQ_HDF5_REFERENCE)
        sq_text_add(out, "O");
    else
        add_sized(out, t->size_bytes == 1 ? (t->is_signed ? "|i" : "|u") : t->is_signed ? "<i" : "<u", integer_bytes(t->size_bytes));
}

/* How elements whose size varies are spelled. */
enum spelling { AS_OBJECTS, AS_PARTS };

static void add_numpy(const struct sq_hdf5_type *t, bool within, enum spelling spelling, struct sq_text *out);

static void add_members(const struct sq_hdf5_type *t, enum spelling spelling, struct sq_text *out)
{
    sq_text_add(out, "[");
    for (unsigned i = 0; i < t->member_count; i++) {
        const struct sq_hdf5_type *of = t->members[i].type;
        sq_text_add(out, i ? ", (" : "(");
        add_quoted(out, t->members[i].name);
        sq_text_add(out, ", ");
        const struct sq_hdf5_type *array = of->class == SQ_HDF5_ARRAY && of->base->class != SQ_HDF5_ARRAY ? of : NULL;
        add_numpy(array ? array->base : of, true, spelling, out);
        if (array) {
            sq_text_add(out, ", ");
            add_shape(out, array);
        }
        sq_text_add(out, ")");
    }
    sq_text_add(out, "]");
}

/* within: as part of another type, where words are quoted */
static void add_numpy(const struct sq_hdf5_type *t, bool within, enum spelling spelling, struct sq_text *out)
{
    const bool varies = t->class == SQ_HDF5_VLEN || t->class == SQ_HDF5_REFERENCE;
    if (t->class == SQ_HDF5_COMPOUND && !sq_hdf5_type_is_complex(t)) {
        add_members(t, spelling, out);
    } else if (t->class == SQ_HDF5_ARRAY) {
        sq_text_add(out, "(");
        add_numpy(t->base, true, spelling, out);
        sq_text_add(out, ", ");
        add_shape(out, t);
        sq_text_add(out, ")");
    } else if (spelling == AS_PARTS && varies) {
        const bool is_sequence = t->class == SQ_HDF5_VLEN && !t->is_string;
        sq_text_add(out, is_sequence ? "{'sequence': " : "'text'");
        if (is_sequence) {
            add_numpy(t->base, true, spelling, out);
            sq_text_add(out, "}");
        }
    } else {
        sq_text_add(out, within ? "'" : "");
        add_word(t, out);
        sq_text_add(out, within ? "'" : "");
    }
}

/* What numpy has no type of: integers of more than 8 bytes, HDF5's times. */
static int check_known(const struct sq_hdf5_type *t, struct squall_error *err)
{
    const bool is_integer = t->class == SQ_HDF5_INTEGER || t->class == SQ_HDF5_ENUM || t->class == SQ_HDF5_BITFIELD;
    if (t->class == SQ_HDF5_TIME)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported data type: HDF5's time");
    if (is_integer && t->size_bytes > 8)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported data type: integers of %u bytes", t->size_bytes);
    if (t->class == SQ_HDF5_COMPLEX && !sq_hdf5_type_is_complex(t))
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported data type: complex numbers of %u bytes", t->size_bytes);
    for (unsigned i = 0; t->class == SQ_HDF5_COMPOUND && i < t->member_count; i++)
        SQ_TRY(check_known(t->members[i].type, err));
    return t->base ? check_known(t->base, err) : 0;
}

int sq_hdf5_type_numpy(const struct sq_hdf5_type *type, struct sq_text *out, struct squall_error *err)
{
    SQ_TRY(check_known(type, err));
    add_numpy(type, false, AS_OBJECTS, out);
    return out->failed ? sq_error_memory(err, out->length) : 0;
}

int sq_hdf5_type_parts(const struct sq_hdf5_type *type, struct sq_text *out, struct squall_error *err)
{
    SQ_TRY(check_known(type, err));
    add_numpy(type, false, AS_PARTS, out);
    return out->failed ? sq_error_memory(err, out->length) : 0;
}

void sq_hdf5_type_describe(const struct sq_hdf5_type *t, struct sq_text *out)
{
    const char *const sign = t->is_signed ? "" : "u";
    switch (t->class) {
    case SQ_HDF5_INTEGER:
        add_sized(out, t->is_signed ? "int" : "uint", 8 * t->size_bytes);
        break;
    case SQ_HDF5_FLOAT:
        add_sized(out, "float", 8 * t->size_bytes);
        if (!sq_hdf5_type_is_ieee(t))
            sq_text_printf(out, "(%u+%u)", t->layout.exponent_bits, t->layout.mantissa_bits);
        break;
    case SQ_HDF5_TIME:
        sq_text_printf(out, "time%u", 8 * t->size_bytes);
        break;
    case SQ_HDF5_STRING:
        sq_text_printf(out, "string(%u)", t->size_bytes);
        break;
    case SQ_HDF5_BITFIELD:
        sq_text_printf(out, "bitfield%u", 8 * t->size_bytes);
        break;
    case SQ_HDF5_OPAQUE:
        sq_text_printf(out, "opaque(%u)", t->size_bytes);
        break;
    case SQ_HDF5_REFERENCE:
        sq_text_add(out, t->reference == SQ_HDF5_TO_REGION || t->reference == SQ_HDF5_TO_REGION_2 ? "region reference" : "reference");
        break;
    case SQ_HDF5_COMPOUND:
        sq_text_add(out, "compound{");
        for (unsigned i = 0; i < t->member_count; i++) {
            sq_text_add(out, i ? ", " : "");
            sq_text_add_visible(out, t->members[i].name);
            sq_text_add(out, ": ");
            sq_hdf5_type_describe(t->members[i].type, out);
        }
        sq_text_add(out, "}");
        break;
    case SQ_HDF5_ENUM:
        if (sq_hdf5_type_is_bool(t)) {
            sq_text_add(out, "bool");
            break;
        }
        sq_text_printf(out, "enum(%sint%u)", sign, 8 * t->size_bytes);
        break;
    case SQ_HDF5_VLEN:
        if (t->is_string) {
            sq_text_add(out, "string");
            break;
        }
        sq_text_add(out, "vlen(");
        sq_hdf5_type_describe(t->base, out);
        sq_text_add(out, ")");
        break;
    case SQ_HDF5_ARRAY:
        sq_hdf5_type_describe(t->base, out);
        for (unsigned d = 0; d < t->rank; d++)
            sq_text_printf(out, "%s%llu", d ? ", " : "[", (unsigned long long)t->shape[d]);
        sq_text_add(out, "]");
        break;
    case SQ_HDF5_COMPLEX:
        sq_text_printf(out, "complex%u", 8 * t->size_bytes);
        break;
    }
}

/* ---- dataspaces (IV.A.2.b) ---- */

static int take_shape(struct sq_hdf5_reader *r, struct sq_cursor *c, unsigned rank, const uint64_t **ret, struct squall_error *err)
{
    uint64_t *shape;
    SQ_TRY(SQ_HDF5_ROOM(r, &shape, rank, err));
    for (unsigned d = 0; d < rank; d++)
        shape[d] = sq_hdf5_take_length(c, r->file);
    *ret = shape;
    return 0;
}

int sq_hdf5_space_parse(struct sq_hdf5_reader *r, const uint8_t *bytes, size_t size_bytes, uint64_t address, struct sq_hdf5_space *ret,
                        struct squall_error *err)
{
    enum { HAS_MAXIMUM = 1, KIND_NULL = 2 };
    struct sq_hdf5_space s = {.element_count = 1};
    struct sq_cursor c = sq_cursor(bytes, size_bytes);
    const unsigned version = sq_u8(&c);
    s.rank = sq_u8(&c);
    const unsigned flags = sq_u8(&c), kind = sq_u8(&c);
    if (version == 1)
        sq_take(&c, 4);
    if (!sq_cursor_failed(&c) && version != 1 && version != 2)
        return SQ_HDF5_UNSUPPORTED(r->file, address, err, "a dataspace of version %u", version);
    if (s.rank > SQUALL_RANK_MAX)
        return SQ_HDF5_UNSUPPORTED(r->file, address, err, "%u dimensions; up to %d are read", s.rank, SQUALL_RANK_MAX);
    SQ_TRY(take_shape(r, &c, s.rank, &s.shape, err));
    s.maximum = s.shape;
    if (flags & HAS_MAXIMUM)
        SQ_TRY(take_shape(r, &c, s.rank, &s.maximum, err));
    if (sq_cursor_failed(&c))
        return SQ_HDF5_DAMAGED(r->file, address, err, "a dataspace that ends early");
    for (unsigned d = 0; d < s.rank; d++)
        if (s.shape[d] > INT64_MAX)
            return SQ_HDF5_DAMAGED(r->file, address, err, "a dimension of %llu elements", (unsigned long long)s.shape[d]);
        else if (!sq_mul_u64(s.element_count, s.shape[d], &s.element_count) || s.element_count > INT64_MAX)
            return SQ_HDF5_DAMAGED(r->file, address, err, "more elements than there can be");
    s.is_null = version == 2 && kind == KIND_NULL;
    if (s.is_null)
        s.element_count = 0;
    *ret = s;
    return 0;
}
