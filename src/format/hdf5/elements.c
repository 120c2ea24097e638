/*
 * See elements.h. What becomes of an element is a list of moves, each for some bytes of it: copied, turned, made a number of by its bits, or taken for
 * the place where a text or a sequence lies.
 */
#include "format/hdf5/elements.h"
#include "array/bytes.h"
#include "base/checked.h"
#include "base/half.h"
#include "base/json.h"
#include "base/memory.h"
#include "format/hdf5/heap.h"
#include "format/hdf5/reference.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum how {
    COPY,
    TURN,
    INTEGER,
    FLOAT,
    TEXT,
    /* from here on of no fixed size */
    STRING,
    PATH,
    SEQUENCE,
};

struct sq_hdf5_move {
    enum how how;
    const struct sq_hdf5_type *type;         /* of a number or text */
    uint32_t from, to;                       /* bytes in the stored element, in that in memory */
    uint32_t stored_bytes, bytes;            /* of one */
    uint32_t count;                          /* one behind the other */
    const struct sq_hdf5_elements *sequence; /* SEQUENCE: what it is of */
};

enum { MOVES_MAX = 4096 };

struct making {
    struct sq_hdf5_reader *r;
    struct sq_hdf5_move *moves;
    size_t count, capacity;
    uint32_t stored_bytes; /* of the whole element */
    uint32_t to;           /* bytes of the element in memory so far */
    bool varies;
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
    case SQ_HDF5_VLEN:
        return t->is_string ? STRING : SEQUENCE;
    case SQ_HDF5_REFERENCE:
        return PATH;
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
        m->moves[m->count] = (struct sq_hdf5_move){how, type, from, m->to, type->size_bytes, bytes, (uint32_t)count, NULL};
        if (how == COPY) {
            m->moves[m->count].bytes = m->moves[m->count].stored_bytes = (uint32_t)all;
            m->moves[m->count].count = 1;
        }
        m->count++;
    }
    m->to += (uint32_t)all;
    return 0;
}

/* A sequence, or a reference, as it is stored. */
static size_t place_bytes(const struct sq_hdf5_reader *r, const struct sq_hdf5_type *type)
{
    return type->class == SQ_HDF5_VLEN ? 2 * sizeof(uint32_t) + r->file->offset_bytes : r->file->offset_bytes;
}

static int add_variable(struct making *m, const struct sq_hdf5_type *type, uint32_t from, uint64_t count, struct squall_error *err)
{
    struct sq_hdf5_elements *sequence;
    if (type->size_bytes < place_bytes(m->r, type))
        return sq_error(err, SQUALL_ECORRUPT, "%" PRIu32 " bytes for a reference or an element of variable length", type->size_bytes);
    SQ_TRY(add_move(m, type, from, 0, count, err));
    m->varies = true;
    if (how_of(type) != SEQUENCE)
        return 0;
    SQ_TRY(SQ_HDF5_ROOM(m->r, &sequence, 1, err));
    SQ_TRY(sq_hdf5_elements_make(m->r, type->base, sequence, err));
    m->moves[m->count - 1].sequence = sequence;
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
    if (how_of(type) >= STRING)
        return add_variable(m, type, from, count, err);
    SQ_TRY(sq_hdf5_type_numpy(type, &numpy, err));
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
    if (m->to == 0 && !m->varies)
        return sq_error(err, SQUALL_EUNSUPPORTED, "elements without any bytes");
    SQ_TRY(SQ_HDF5_ROOM(r, &moves, m->count, err));
    memcpy(moves, m->moves, m->count * sizeof *moves);
    e->moves = moves;
    e->move_count = m->count;
    e->varies = m->varies;
    if (e->dtype.type == SQUALL_RAW)
        e->dtype.element_bytes = m->to;
    look_for_same(e, m, e->type->size_bytes);
    return 0;
}

static int make_moves(struct sq_hdf5_reader *r, struct sq_hdf5_elements *e, struct squall_error *err)
{
    struct making m = {.r = r, .stored_bytes = e->type->size_bytes};
    int status = add_moves(&m, e->type, 0, 1, err);
    if (!status)
        status = keep_moves(r, e, &m, err);
    sq_free(m.moves);
    return status;
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

/* Texts are the engine's; else elements are bytes, of which sequence_type tells. */
static int set_variable(struct sq_hdf5_reader *r, struct sq_hdf5_elements *e, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text parts = SQ_TEXT_INIT;
    const enum how how = e->moves[0].how;
    const bool is_structure = e->type->class == SQ_HDF5_COMPOUND;
    e->dtype = sq_dtype_of(!is_structure && how != SEQUENCE ? SQUALL_STRING : SQUALL_BYTES);
    if (e->dtype.type == SQUALL_STRING)
        return 0;
    SQ_TRY(sq_hdf5_type_parts(is_structure ? e->type : e->type->base, &parts, err));
    return keep_text(r, &parts, &e->sequence_type, err);
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
    const enum squall_type t = type_of_numpy(e.numpy_type);
    e.dtype = t == SQUALL_RAW ? (struct sq_dtype){SQUALL_RAW, 0, 1} : sq_dtype_of(t);
    SQ_TRY(make_moves(r, &e, err));
    if (e.varies)
        SQ_TRY(set_variable(r, &e, err));
    if (type->class == SQ_HDF5_ENUM && t != SQUALL_BOOL && type->values)
        SQ_TRY(keep_enum_names(r, &e, err));
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
    case STRING:
    case PATH:
    case SEQUENCE:
        break; /* put_variable */
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

struct fetching {
    struct sq_hdf5_reader *r;
    const struct sq_hdf5_tree *tree;
    struct sq_text bytes; /* of the element so far */
    uint64_t fetched_bytes;
};

/* Room for so many more bytes, which count. */
static int add_room(struct fetching *f, size_t size_bytes, uint8_t **ret, struct squall_error *err)
{
    f->fetched_bytes += size_bytes;
    if (size_bytes > FETCHED_BYTES_MAX || f->fetched_bytes > FETCHED_BYTES_MAX)
        return sq_error(err, SQUALL_ENOMEM, "elements of variable length: a chunk's take more than %" PRIu64 " bytes", FETCHED_BYTES_MAX);
    SQ_TRY(SQ_GROW(f->bytes.data, f->bytes.capacity, f->bytes.length + size_bytes + 1, err)); /* of none there is room for, too */
    *ret = (uint8_t *)f->bytes.data + f->bytes.length;
    f->bytes.length += size_bytes;
    return 0;
}

static int put_elements(struct fetching *f, const struct sq_hdf5_elements *e, const uint8_t *stored, size_t count,
                        struct squall_error *err);

static int put_string(struct fetching *f, const struct sq_hdf5_type *type, const uint8_t *stored, struct squall_error *err)
{
    const uint8_t *text = NULL;
    uint8_t *to = NULL;
    size_t length;
    SQ_TRY(sq_hdf5_sequence_get(f->r, stored, place_bytes(f->r, type), 1, &text, &length, err));
    length = length ? strnlen((const char *)text, length) : 0;
    SQ_TRY(add_room(f, length, &to, err));
    if (length)
        memcpy(to, text, length);
    return 0;
}

static int put_path(struct fetching *f, const struct sq_hdf5_type *type, const uint8_t *stored, struct squall_error *err)
{
    const size_t before = f->bytes.length;
    SQ_TRY(sq_hdf5_reference_text(f->r, f->tree, type, stored, &f->bytes, err));
    f->fetched_bytes += f->bytes.length - before;
    return 0;
}

static int put_sequence(struct fetching *f, const struct sq_hdf5_move *m, const uint8_t *stored, struct squall_error *err)
{
    const uint8_t *elements = NULL;
    size_t count;
    SQ_TRY(sq_hdf5_spend(f->r, place_bytes(f->r, m->type), err)); /* sequences may hold the same ones again and again */
    SQ_TRY(sq_hdf5_sequence_get(f->r, stored, place_bytes(f->r, m->type), m->sequence->stored_bytes, &elements, &count, err));
    return put_elements(f, m->sequence, elements, count * m->sequence->inner_count, err);
}

static int put_variable(struct fetching *f, const struct sq_hdf5_move *m, const uint8_t *stored, struct squall_error *err)
{
    return m->how == STRING ? put_string(f, m->type, stored, err)
           : m->how == PATH ? put_path(f, m->type, stored, err)
                            : put_sequence(f, m, stored, err);
}

/* As a part of something else: behind the number of its bytes. */
static int put_counted(struct fetching *f, const struct sq_hdf5_move *m, const uint8_t *stored, struct squall_error *err)
{
    uint8_t *to = NULL;
    uint64_t count;
    SQ_TRY(add_room(f, sizeof count, &to, err));
    const size_t begin = f->bytes.length;
    SQ_TRY(put_variable(f, m, stored, err));
    count = f->bytes.length - begin;
    memcpy(f->bytes.data + begin - sizeof count, &count, sizeof count);
    return 0;
}

static int put_move(struct fetching *f, const struct sq_hdf5_move *m, const uint8_t *stored, struct squall_error *err)
{
    uint8_t *to = NULL;
    if (m->how < STRING)
        SQ_TRY(add_room(f, (size_t)m->bytes * m->count, &to, err));
    for (uint32_t i = 0; i < m->count; i++, stored += m->stored_bytes)
        if (m->how < STRING)
            make_one(m, stored, to + (size_t)i * m->bytes);
        else
            SQ_TRY(put_counted(f, m, stored, err));
    return 0;
}

static int put_elements(struct fetching *f, const struct sq_hdf5_elements *e, const uint8_t *stored, size_t count, struct squall_error *err)
{
    size_t size_bytes;
    uint8_t *to = NULL;
    if (!e->varies) {
        if (!sq_mul_size(count, e->dtype.element_bytes, &size_bytes))
            return sq_error(err, SQUALL_ENOMEM, "a sequence of %zu elements", count);
        SQ_TRY(add_room(f, size_bytes, &to, err));
        sq_hdf5_elements_convert(e, stored, count, to);
        return 0;
    }
    for (size_t i = 0; i < count; i++, stored += e->type->size_bytes)
        for (size_t k = 0; k < e->move_count; k++)
            SQ_TRY(put_move(f, &e->moves[k], stored + e->moves[k].from, err));
    return 0;
}

/* A text or sequence is the element itself; else the element is made of such and others. */
static int fetch_one(struct fetching *f, const struct sq_hdf5_elements *e, const uint8_t *stored, struct squall_bytes *dst,
                     struct squall_error *err)
{
    f->bytes.length = 0;
    SQ_TRY(e->type->class == SQ_HDF5_COMPOUND ? put_elements(f, e, stored, 1, err) : put_variable(f, e->moves, stored, err));
    return sq_bytes_copy(f->bytes.data, f->bytes.length, dst, err);
}

int sq_hdf5_elements_fetch(const struct sq_hdf5_elements *e, struct sq_hdf5_reader *r, const struct sq_hdf5_tree *tree, const uint8_t *src,
                           size_t count, struct squall_bytes *dst, struct squall_error *err)
{
    struct fetching f = {.r = r, .tree = tree, .bytes = SQ_TEXT_INIT};
    int status = 0;
    size_t done = 0;
    for (; !status && done < count; src += e->type->size_bytes)
        if (!(status = fetch_one(&f, e, src, &dst[done], err)))
            done++;
    sq_text_done(&f.bytes);
    if (status)
        sq_bytes_free(dst, done);
    return status;
}
