/*
 * See elements.h. What becomes of an element is a list of moves, each for some bytes of it: copied, turned, or made a number of by its bits.
 */
#include "format/hdf5/elements.h"
#include "array/bytes.h"
#include "base/checked.h"
#include "base/half.h"
#include "base/json.h"
#include "base/memory.h"
#include "format/hdf5/heap.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum how { COPY, TURN, INTEGER, FLOAT, TEXT };

struct sq_hdf5_move {
    enum how how;
    const struct sq_hdf5_type *type; /* of a number or text */
    uint32_t from, to;               /* bytes in the stored element, in that in memory */
    uint32_t stored_bytes, bytes;    /* of one */
    uint32_t count;                  /* one behind the other */
};

enum { MOVES_MAX = 4096 };

struct making {
    struct sq_hdf5_move *moves;
    size_t count, capacity;
    uint32_t stored_bytes; /* of the whole element */
    uint32_t to;           /* bytes of the element in memory so far */
};

/* ---- what an element becomes ------------------------------------------------------------------------------------------------------ */

/* Of what numpy calls "<f4", "|S5" or "<M8[ns]". */
static uint32_t numpy_bytes(const char *numpy)
{
    return numpy[0] && numpy[1] ? (uint32_t)strtoul(numpy + 2, NULL, 10) : 0;
}

static bool is_whole_integer(const struct sq_hdf5_type *t)
{
    const bool power = t->size_bytes == 1 || t->size_bytes == 2 || t->size_bytes == 4 || t->size_bytes == 8;
    return power && t->bit_offset == 0 && t->precision == 8 * t->size_bytes;
}

static enum how how_of(const struct sq_hdf5_type *t)
{
    switch (t->class) {
    case SQ_HDF5_ENUM:
        return how_of(t->base);
    case SQ_HDF5_INTEGER:
    case SQ_HDF5_BITFIELD:
        return !is_whole_integer(t) ? INTEGER : t->big_endian && t->size_bytes > 1 ? TURN : COPY;
    case SQ_HDF5_FLOAT:
        return !sq_hdf5_type_is_ieee(t) ? FLOAT : t->big_endian ? TURN : COPY;
    case SQ_HDF5_STRING:
        return t->padding == SQ_HDF5_NUL_PADDED ? COPY : TEXT;
    default:
        return COPY;
    }
}

static int add_move(struct making *m, const struct sq_hdf5_type *type, uint32_t from, uint32_t bytes, uint64_t count,
                    struct squall_error *err)
{
    const enum how how = how_of(type);
    const uint32_t whole = m->stored_bytes;
    struct sq_hdf5_move *last = m->count ? &m->moves[m->count - 1] : NULL;
    uint64_t all = bytes * count;
    if (count > UINT32_MAX || all > UINT32_MAX - m->to)
        return sq_error(err, SQUALL_EUNSUPPORTED, "elements of more than 4 GiB");
    if (from > whole || count * type->size_bytes > whole - from)
        return sq_error(err, SQUALL_ECORRUPT, "a compound's member lies outside of it");
    if (last && last->how == COPY && how == COPY && last->from + last->bytes == from) {
        last->bytes = last->stored_bytes += (uint32_t)all;
    } else {
        if (m->count >= MOVES_MAX)
            return sq_error(err, SQUALL_EUNSUPPORTED, "a compound of more than %d parts", MOVES_MAX);
        SQ_TRY(SQ_GROW(m->moves, m->capacity, m->count + 1, err));
        m->moves[m->count] = (struct sq_hdf5_move){how, type, from, m->to, type->size_bytes, bytes, (uint32_t)count};
        if (how == COPY) {
            m->moves[m->count].bytes = m->moves[m->count].stored_bytes = (uint32_t)all;
            m->moves[m->count].count = 1;
        }
        m->count++;
    }
    m->to += (uint32_t)all;
    return 0;
}

static int add_moves(struct making *m, const struct sq_hdf5_type *type, uint32_t from, uint64_t count, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text numpy = SQ_TEXT_INIT;
    if (type->class == SQ_HDF5_ARRAY && type->base->class != SQ_HDF5_COMPOUND) {
        if (!sq_mul_u64(count, type->element_count, &count))
            return sq_error(err, SQUALL_EUNSUPPORTED, "elements of more than 4 GiB");
        return add_moves(m, type->base, from, count, err);
    }
    for (uint64_t i = 0; type->class == SQ_HDF5_ARRAY && i < count * type->element_count; i++)
        SQ_TRY(add_moves(m, type->base, from + (uint32_t)i * type->base->size_bytes, 1, err));
    if (type->class == SQ_HDF5_ARRAY)
        return 0;
    for (uint64_t i = 0; type->class == SQ_HDF5_COMPOUND && i < count; i++)
        for (unsigned k = 0; k < type->member_count; k++)
            SQ_TRY(add_moves(m, type->members[k].type, from + (uint32_t)i * type->size_bytes + type->members[k].offset_bytes, 1, err));
    if (type->class == SQ_HDF5_COMPOUND)
        return 0;
    if (type->class == SQ_HDF5_COMPLEX)
        return add_moves(m, type->base, from, 2 * count, err);
    SQ_TRY(sq_hdf5_type_numpy(type, &numpy, err));
    if (!strcmp(sq_text_string(&numpy), "O"))
        return sq_error(err, SQUALL_EUNSUPPORTED, "elements of variable length, or references, within a compound");
    return add_move(m, type, from, numpy_bytes(sq_text_string(&numpy)), count, err);
}

/* Does the element stay as it is? Or is all of it turned by so many bytes? */
static void look_for_same(struct sq_hdf5_elements *e, const struct making *m, uint32_t stored_bytes)
{
    const struct sq_hdf5_move *only = m->moves;
    if (m->count != 1 || only->from != 0 || only->stored_bytes != only->bytes || (uint64_t)only->bytes * only->count != stored_bytes)
        return;
    e->is_same = only->how == COPY || (only->how == TURN && only->bytes == e->dtype.order_bytes);
    e->big_endian = e->is_same && only->how == TURN;
}

static enum squall_type type_of_numpy(const char *numpy)
{
    for (enum squall_type t = SQUALL_BOOL; t <= SQUALL_COMPLEX128; t++)
        if (t != SQUALL_STRING && !strcmp(numpy, sq_type_numpy(t)))
            return t;
    return !strncmp(numpy, "<M8", 3) ? SQUALL_DATETIME64 : !strncmp(numpy, "<m8", 3) ? SQUALL_TIMEDELTA64 : SQUALL_RAW;
}

/* The dimensions of an array type, and of arrays in it; *type becomes what they are arrays of. */
static int take_dimensions(struct sq_hdf5_reader *r, const struct sq_hdf5_type **type, struct sq_hdf5_elements *e, struct squall_error *err)
{
    uint64_t shape[SQUALL_RANK_MAX], *kept;
    e->inner_count = 1;
    for (; (*type)->class == SQ_HDF5_ARRAY; *type = (*type)->base) {
        if ((*type)->rank > SQUALL_RANK_MAX - e->inner_rank)
            return sq_error(err, SQUALL_EUNSUPPORTED, "an array type of more than %d dimensions", SQUALL_RANK_MAX);
        memcpy(shape + e->inner_rank, (*type)->shape, (*type)->rank * sizeof *shape);
        e->inner_rank += (*type)->rank;
        if ((*type)->element_count == 0 || !sq_mul_u64(e->inner_count, (*type)->element_count, &e->inner_count))
            return sq_error(err, SQUALL_EUNSUPPORTED, "an array type without elements, or with too many");
    }
    SQ_TRY(SQ_HDF5_ROOM(r, &kept, e->inner_rank, err));
    memcpy(kept, shape, e->inner_rank * sizeof *shape);
    e->inner_shape = kept;
    return 0;
}

static int keep_moves(struct sq_hdf5_reader *r, struct sq_hdf5_elements *e, const struct making *m, struct squall_error *err)
{
    struct sq_hdf5_move *moves;
    if (m->to == 0)
        return sq_error(err, SQUALL_EUNSUPPORTED, "elements without any bytes");
    SQ_TRY(SQ_HDF5_ROOM(r, &moves, m->count, err));
    memcpy(moves, m->moves, m->count * sizeof *moves);
    e->moves = moves;
    e->move_count = m->count;
    if (e->dtype.type == SQUALL_RAW)
        e->dtype.element_bytes = m->to;
    look_for_same(e, m, e->type->size_bytes);
    return 0;
}

static int make_moves(struct sq_hdf5_reader *r, struct sq_hdf5_elements *e, struct squall_error *err)
{
    struct making m = {.stored_bytes = e->type->size_bytes};
    int status = add_moves(&m, e->type, 0, 1, err);
    if (!status)
        status = keep_moves(r, e, &m, err);
    sq_free(m.moves);
    return status;
}

/* A sequence as it is stored. */
static size_t sequence_bytes(const struct sq_hdf5_reader *r)
{
    return 2 * sizeof(uint32_t) + r->file->offset_bytes;
}

/* The text in r's memory. */
static int keep_text(struct sq_hdf5_reader *r, const struct sq_text *text, const char **ret, struct squall_error *err)
{
    char *copy;
    if (text->failed)
        return sq_error_memory(err, text->length);
    SQ_TRY(SQ_HDF5_ROOM(r, &copy, text->length + 1, err));
    memcpy(copy, sq_text_string(text), text->length + 1);
    *ret = copy;
    return 0;
}

static int make_variable(struct sq_hdf5_reader *r, struct sq_hdf5_elements *e, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text numpy = SQ_TEXT_INIT;
    const struct sq_hdf5_type *t = e->type;
    e->dtype = sq_dtype_of(SQUALL_STRING);
    const size_t least = t->class == SQ_HDF5_REFERENCE ? r->file->offset_bytes : sequence_bytes(r);
    if (t->size_bytes < least)
        return sq_error(err, SQUALL_ECORRUPT, "%" PRIu32 " bytes for a reference or an element of variable length", t->size_bytes);
    if (t->class == SQ_HDF5_REFERENCE && t->reference != SQ_HDF5_TO_OBJECT)
        return sq_error(err, SQUALL_EUNSUPPORTED, "references to regions or attributes, or of HDF5 1.12's kind");
    if (t->class == SQ_HDF5_REFERENCE || t->is_string)
        return 0;
    struct sq_hdf5_elements *sequence;
    SQ_TRY(SQ_HDF5_ROOM(r, &sequence, 1, err));
    SQ_TRY(sq_hdf5_elements_make(r, t->base, sequence, err));
    if (sq_type_is_variable(sequence->dtype.type))
        return sq_error(err, SQUALL_EUNSUPPORTED, "sequences of elements of variable length");
    SQ_TRY(sq_hdf5_type_numpy(t->base, &numpy, err));
    SQ_TRY(keep_text(r, &numpy, &e->sequence_type, err));
    e->dtype = sq_dtype_of(SQUALL_BYTES);
    e->sequence = sequence;
    return 0;
}

/* Names and numbers of an enumeration. */
static int keep_enum_names(struct sq_hdf5_reader *r, struct sq_hdf5_elements *e, struct squall_error *err)
{
    const struct sq_hdf5_type *t = e->type;
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_CLEANUP_JSON struct sq_json *names = sq_json_new_object();
    if (!names)
        return sq_error_memory(err, t->member_count);
    for (unsigned i = 0; i < t->member_count; i++) {
        const uint64_t value = sq_hdf5_type_integer(t->base, t->values + (size_t)i * t->size_bytes);
        if (sq_json_set(names, t->names[i], t->is_signed ? sq_json_new_int((int64_t)value) : sq_json_new_uint(value)))
            return sq_error_memory(err, t->member_count);
    }
    SQ_TRY(sq_json_write(names, false, &text, err));
    return keep_text(r, &text, &e->enum_names, err);
}

int sq_hdf5_elements_make(struct sq_hdf5_reader *r, const struct sq_hdf5_type *type, struct sq_hdf5_elements *ret, struct squall_error *err)
{
    struct sq_hdf5_elements e = {.stored_bytes = type->size_bytes};
    SQ_CLEANUP_TEXT struct sq_text numpy = SQ_TEXT_INIT;
    SQ_CLEANUP_TEXT struct sq_text name = SQ_TEXT_INIT;
    SQ_TRY(take_dimensions(r, &type, &e, err));
    e.type = type;
    SQ_TRY(sq_hdf5_type_numpy(type, &numpy, err));
    sq_hdf5_type_describe(type, &name);
    SQ_TRY(keep_text(r, &numpy, &e.numpy_type, err));
    SQ_TRY(keep_text(r, &name, &e.type_name, err));
    if (type->size_bytes == 0)
        return sq_error(err, SQUALL_EUNSUPPORTED, "elements without any bytes");
    if (!strcmp(e.numpy_type, "O")) {
        SQ_TRY(make_variable(r, &e, err));
    } else {
        const enum squall_type t = type_of_numpy(e.numpy_type);
        e.dtype = t == SQUALL_RAW ? (struct sq_dtype){SQUALL_RAW, 0, 1} : sq_dtype_of(t);
        SQ_TRY(make_moves(r, &e, err));
        if (type->class == SQ_HDF5_ENUM && t != SQUALL_BOOL && type->values)
            SQ_TRY(keep_enum_names(r, &e, err));
    }
    *ret = e;
    return 0;
}

/* ---- making them ------------------------------------------------------------------------------------------------------------------ */

static void put_float(const struct sq_hdf5_move *m, const uint8_t *src, uint8_t *dst)
{
    const double value = sq_hdf5_type_float(m->type, src);
    const float single = (float)value;
    const uint16_t half = sq_half_from_double(value);
    memcpy(dst, m->bytes == sizeof value ? (const void *)&value : m->bytes == sizeof single ? (const void *)&single : &half, m->bytes);
}

static void put_integer(const struct sq_hdf5_move *m, const uint8_t *src, uint8_t *dst)
{
    uint64_t value = sq_hdf5_type_integer(m->type, src);
    for (uint32_t i = 0; i < m->bytes; i++, value >>= 8)
        dst[i] = (uint8_t)value;
}

/* As numpy has texts: no padding but NULs. One that ends at the first may have anything behind it. */
static void put_text(const struct sq_hdf5_move *m, const uint8_t *src, uint8_t *dst)
{
    size_t length = strnlen((const char *)src, m->bytes);
    if (m->type->padding == SQ_HDF5_SPACE_PADDED)
        for (length = m->bytes; length > 0 && src[length - 1] == ' ';)
            length--;
    memcpy(dst, src, length);
    memset(dst + length, 0, m->bytes - length);
}

static void turn(const uint8_t *src, uint8_t *dst, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        dst[i] = src[bytes - 1 - i];
}

static void make_one(const struct sq_hdf5_move *m, const uint8_t *src, uint8_t *dst)
{
    switch (m->how) {
    case COPY:
        memcpy(dst, src, m->bytes);
        break;
    case TURN:
        turn(src, dst, m->bytes);
        break;
    case INTEGER:
        put_integer(m, src, dst);
        break;
    case FLOAT:
        put_float(m, src, dst);
        break;
    case TEXT:
        put_text(m, src, dst);
        break;
    }
}

void sq_hdf5_elements_convert(const struct sq_hdf5_elements *e, const uint8_t *src, size_t count, void *dst)
{
    uint8_t *to = dst;
    const size_t from_stride = e->type->size_bytes;
    for (size_t i = 0; i < count; i++, src += from_stride, to += e->dtype.element_bytes)
        for (size_t k = 0; k < e->move_count; k++) {
            const struct sq_hdf5_move *m = &e->moves[k];
            for (uint32_t j = 0; j < m->count; j++)
                make_one(m, src + m->from + (size_t)j * m->stored_bytes, to + m->to + (size_t)j * m->bytes);
        }
}

/* ---- of variable length ----------------------------------------------------------------------------------------------------------- */

/* What the texts and sequences of one chunk may take: more is no chunk that anyone wrote on purpose. */
static const uint64_t FETCHED_BYTES_MAX = UINT64_C(1) << 30;

static int fetch_text(struct sq_hdf5_reader *r, const uint8_t *stored, struct squall_bytes *dst, struct squall_error *err)
{
    const uint8_t *bytes = NULL;
    size_t length;
    SQ_TRY(sq_hdf5_sequence_get(r, stored, sequence_bytes(r), 1, &bytes, &length, err));
    return sq_bytes_copy(bytes, length ? strnlen((const char *)bytes, length) : 0, dst, err);
}

static int fetch_path(struct sq_hdf5_reader *r, const struct sq_hdf5_tree *tree, const uint8_t *stored, struct squall_bytes *dst,
                      struct squall_error *err)
{
    struct sq_cursor c = sq_cursor(stored, r->file->offset_bytes);
    const char *path = sq_hdf5_tree_path(tree, sq_hdf5_take_address(&c, r->file));
    return sq_bytes_copy(path, path ? strlen(path) : 0, dst, err);
}

static int fetch_sequence(const struct sq_hdf5_elements *s, struct sq_hdf5_reader *r, const uint8_t *stored, struct squall_bytes *dst,
                          struct squall_error *err)
{
    const uint8_t *bytes = NULL;
    size_t count, size_bytes;
    SQ_TRY(sq_hdf5_sequence_get(r, stored, sequence_bytes(r), s->stored_bytes, &bytes, &count, err));
    count *= s->inner_count;
    if (!sq_mul_size(count, s->dtype.element_bytes, &size_bytes) || size_bytes > FETCHED_BYTES_MAX)
        return sq_error(err, SQUALL_ENOMEM, "a sequence of %zu elements", count);
    uint8_t *data = sq_alloc(size_bytes + 1, 1);
    if (!data)
        return sq_error_memory(err, size_bytes);
    sq_hdf5_elements_convert(s, bytes, count, data);
    data[size_bytes] = 0;
    *dst = (struct squall_bytes){data, size_bytes};
    return 0;
}

int sq_hdf5_elements_fetch(const struct sq_hdf5_elements *e, struct sq_hdf5_reader *r, const struct sq_hdf5_tree *tree, const uint8_t *src,
                           size_t count, struct squall_bytes *dst, struct squall_error *err)
{
    uint64_t fetched = 0;
    for (size_t i = 0; i < count; i++, src += e->type->size_bytes) {
        int status = e->sequence                           ? fetch_sequence(e->sequence, r, src, &dst[i], err)
                     : e->type->class == SQ_HDF5_REFERENCE ? fetch_path(r, tree, src, &dst[i], err)
                                                           : fetch_text(r, src, &dst[i], err);
        const size_t done = status ? i : i + 1;
        fetched += status ? 0 : dst[i].size_bytes;
        if (!status && fetched > FETCHED_BYTES_MAX)
            status =
                sq_error(err, SQUALL_ENOMEM, "elements of variable length: a chunk's take more than %" PRIu64 " bytes", FETCHED_BYTES_MAX);
        if (status) {
            sq_bytes_free(dst, done);
            return status;
        }
    }
    return 0;
}
