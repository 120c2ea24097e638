/*
 * numcodecs' filters that change values: delta, fixedscaleoffset, quantize, astype. Each reckons in the type that numpy would, so that
 * the results are numcodecs' bit for bit; each works through a chunk in blocks (number.h).
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/number.h"
#include <math.h>
#include <string.h>

/* The element types on both sides, and what a filter reckons with. */
struct filter {
    enum squall_type decoded, encoded;
    double offset, scale;
    bool offset_is_whole, scale_is_whole; /* numpy keeps whole numbers whole */
    int64_t whole_offset, whole_scale;
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- binding ---------------------------------------------------------------------------------------------------------------------- */

static bool is_usable(const struct sq_stage *stage, enum squall_type type)
{
    if (stage->ops == &sq_stage_quantize)
        return sq_type_is_float(type);
    return type != SQUALL_BFLOAT16 && (stage->ops == &sq_stage_astype || type != SQUALL_BOOL);
}

static int bind_types(struct sq_stage *stage, const struct sq_json *configuration, const char *decoded_key, const char *encoded_key,
                      struct sq_stage_array *array, struct squall_error *err)
{
    struct filter *f = stage->state = sq_alloc_zero(1, sizeof *f);
    bool big;
    if (!f)
        return sq_error_memory(err, sizeof *f);
    SQ_TRY(sq_number_type(stage, configuration, decoded_key, array, true, &f->decoded, &big, err));
    SQ_TRY(sq_number_type(stage, configuration, encoded_key, array, false, &f->encoded, &big, err));
    if (!is_usable(stage, f->decoded) || !is_usable(stage, f->encoded))
        return sq_error(err, SQUALL_EUNSUPPORTED, "codec %s: unsupported on %s, stored as %s", stage->ops->name, sq_type_name(f->decoded),
                        sq_type_name(f->encoded));
    sq_stage_array_retype(array, f->encoded, big);
    stage->resizes = sq_type_size(f->decoded) != sq_type_size(f->encoded);
    return 0;
}

static int bind_delta(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    return bind_types(stage, configuration, "dtype", "astype", array, err);
}

static int bind_astype(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    SQ_TRY(bind_types(stage, configuration, "decode_dtype", "encode_dtype", array, err));
    const struct filter *f = stage->state;
    stage->decode_copies = stage->encode_copies = f->decoded == f->encoded;
    return 0;
}

static int read_number(const struct sq_stage *stage, const struct sq_json *configuration, const char *key, double *ret, bool *ret_is_whole,
                       int64_t *ret_whole, struct squall_error *err)
{
    const struct sq_json *v = sq_json_get(configuration, key);
    if (!sq_json_double(v, ret))
        return sq_error(err, SQUALL_ECORRUPT, "codec %s: its \"%s\" is no number", stage->ops->name, key);
    *ret_is_whole = sq_json_type(v) == SQ_JSON_INT && sq_json_int(v, ret_whole);
    return 0;
}

static int bind_scale(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    SQ_TRY(bind_types(stage, configuration, "dtype", "astype", array, err));
    struct filter *f = stage->state;
    SQ_TRY(read_number(stage, configuration, "offset", &f->offset, &f->offset_is_whole, &f->whole_offset, err));
    return read_number(stage, configuration, "scale", &f->scale, &f->scale_is_whole, &f->whole_scale, err);
}

enum { OPTION_DIGITS };
static const struct sq_stage_option quantize_options[] = {
    [OPTION_DIGITS] = {"digits", NULL, -300, 300, 0, .required = true},
    {0},
};

/* numcodecs' way from decimal digits to a power of two, rounding included. */
static int bind_quantize(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array,
                         struct squall_error *err)
{
    SQ_TRY(bind_types(stage, configuration, "dtype", "astype", array, err));
    struct filter *f = stage->state;
    double exponent = log10(pow(10, -stage->value[OPTION_DIGITS]));
    exponent = exponent < 0 ? floor(exponent) : ceil(exponent);
    f->scale = exp2(ceil(log2(pow(10, -exponent))));
    stage->decode_copies = f->decoded == f->encoded;
    return 0;
}

static void done(struct sq_stage *stage)
{
    sq_free(stage->state);
}

static void tell(const struct sq_stage *stage, struct sq_text *out)
{
    const struct filter *f = stage->state;
    if (stage->ops == &sq_stage_quantize)
        sq_text_printf(out, "%d digits, ", stage->value[OPTION_DIGITS]);
    if (stage->ops == &sq_stage_fixedscaleoffset)
        sq_text_printf(out, "%g, %g, ", f->offset, f->scale);
    sq_text_add(out, sq_type_name(f->encoded));
}

/* ---- one block -------------------------------------------------------------------------------------------------------------------- */

/* Whole numbers again as the type has them, after reckoning beyond its range. */
static void wrap(enum squall_type type, union sq_numbers *numbers, enum sq_number_kind kind, size_t count)
{
    uint64_t narrow[SQ_NUMBERS];
    if (sq_type_size(type) == 8)
        return;
    sq_numbers_store(type, numbers, kind, count, narrow);
    sq_numbers_load(type, narrow, count, numbers);
}

/* Running sums in the decoded type. */
static void sum_up(enum squall_type type, union sq_numbers *numbers, size_t count, union sq_numbers *carry)
{
    switch (sq_number_kind_of(type)) {
    case SQ_SINGLE:
        for (size_t n = 0; n < count; n++) {
            carry->f[0] += numbers->f[n];
            sq_numbers_round(type, carry, 1);
            numbers->f[n] = carry->f[0];
        }
        break;
    case SQ_DOUBLE:
        for (size_t n = 0; n < count; n++)
            numbers->d[n] = carry->d[0] += numbers->d[n];
        break;
    default:
        for (size_t n = 0; n < count; n++)
            numbers->u[n] = carry->u[0] += numbers->u[n];
    }
}

/* Differences from the one before. */
static void take_differences(enum squall_type type, union sq_numbers *numbers, size_t count, union sq_numbers *carry)
{
    enum sq_number_kind kind = sq_number_kind_of(type);
    for (size_t n = 0; n < count && kind == SQ_SINGLE; n++) {
        float value = numbers->f[n];
        numbers->f[n] = value - carry->f[0];
        carry->f[0] = value;
    }
    for (size_t n = 0; n < count && kind == SQ_DOUBLE; n++) {
        double value = numbers->d[n];
        numbers->d[n] = value - carry->d[0];
        carry->d[0] = value;
    }
    for (size_t n = 0; n < count && (kind == SQ_SIGNED || kind == SQ_UNSIGNED); n++) {
        uint64_t value = numbers->u[n];
        numbers->u[n] = value - carry->u[0];
        carry->u[0] = value;
    }
    if (kind == SQ_SINGLE)
        sq_numbers_round(type, numbers, count);
    else if (kind != SQ_DOUBLE)
        wrap(type, numbers, kind, count);
}

/* numbers ÷ scale + offset, in the kind that they are; type: whose precision each step has */
static enum sq_number_kind unscale(const struct filter *f, enum squall_type type, union sq_numbers *numbers, size_t count)
{
    enum sq_number_kind kind = sq_number_kind_of(type);
    if (kind == SQ_SINGLE) {
        union sq_numbers constants = {.f = {(float)f->scale, (float)f->offset}};
        sq_numbers_round(type, &constants, 2);
        for (size_t n = 0; n < count; n++)
            numbers->f[n] /= constants.f[0];
        sq_numbers_round(type, numbers, count);
        for (size_t n = 0; n < count; n++)
            numbers->f[n] += constants.f[1];
        sq_numbers_round(type, numbers, count);
        return SQ_SINGLE;
    }
    sq_numbers_convert(numbers, kind, SQ_DOUBLE, count);
    for (size_t n = 0; n < count; n++)
        numbers->d[n] = numbers->d[n] / f->scale + f->offset;
    return SQ_DOUBLE;
}

static void scale_singles(const struct filter *f, enum squall_type type, union sq_numbers *numbers, size_t count)
{
    union sq_numbers constants = {.f = {(float)f->scale, (float)f->offset}};
    sq_numbers_round(type, &constants, 2);
    for (size_t n = 0; n < count; n++)
        numbers->f[n] -= constants.f[1];
    sq_numbers_round(type, numbers, count);
    for (size_t n = 0; n < count; n++)
        numbers->f[n] *= constants.f[0];
    sq_numbers_round(type, numbers, count);
    for (size_t n = 0; n < count; n++)
        numbers->f[n] = rintf(numbers->f[n]);
}

/* (numbers − offset) × scale, rounded; whole numbers stay whole, and within their type, as long as they meet only such. */
static enum sq_number_kind rescale(const struct filter *f, enum squall_type type, union sq_numbers *numbers, size_t count)
{
    enum sq_number_kind kind = sq_number_kind_of(type);
    if (kind == SQ_SINGLE) {
        scale_singles(f, type, numbers, count);
        return kind;
    }
    if (kind != SQ_DOUBLE && f->offset_is_whole) {
        for (size_t n = 0; n < count; n++)
            numbers->u[n] -= (uint64_t)f->whole_offset;
        wrap(type, numbers, kind, count);
        if (f->scale_is_whole) {
            for (size_t n = 0; n < count; n++)
                numbers->u[n] *= (uint64_t)f->whole_scale;
            wrap(type, numbers, kind, count);
            return kind;
        }
    }
    bool subtracted = kind != SQ_DOUBLE && f->offset_is_whole;
    sq_numbers_convert(numbers, kind, SQ_DOUBLE, count);
    for (size_t n = 0; n < count; n++)
        numbers->d[n] = rint((subtracted ? numbers->d[n] : numbers->d[n] - f->offset) * f->scale);
    return SQ_DOUBLE;
}

static void quantize(const struct filter *f, enum squall_type type, union sq_numbers *numbers, size_t count)
{
    if (type == SQUALL_FLOAT64) {
        for (size_t n = 0; n < count; n++)
            numbers->d[n] = rint(f->scale * numbers->d[n]) / f->scale;
        return;
    }
    union sq_numbers scale = {.f = {(float)f->scale}};
    sq_numbers_round(type, &scale, 1);
    for (size_t n = 0; n < count; n++)
        numbers->f[n] *= scale.f[0];
    sq_numbers_round(type, numbers, count);
    for (size_t n = 0; n < count; n++)
        numbers->f[n] = rintf(numbers->f[n]) / scale.f[0];
    sq_numbers_round(type, numbers, count);
}

/* ---- whole chunks ----------------------------------------------------------------------------------------------------------------- */

/* src may be dst where elements keep their size. */
static void decode_all(const struct sq_stage *stage, const uint8_t *src, uint8_t *dst, size_t count)
{
    const struct filter *f = stage->state;
    size_t width = sq_type_size(f->decoded), stored_width = sq_type_size(f->encoded);
    union sq_numbers numbers, carry = {{0}};
    if (sq_number_kind_of(f->decoded) == SQ_SINGLE) /* adding to −0.0 gives any number itself */
        carry.f[0] = -0.0F;
    else if (sq_number_kind_of(f->decoded) == SQ_DOUBLE)
        carry.d[0] = -0.0;
    for (size_t at = 0; at < count; at += SQ_NUMBERS) {
        size_t n = least(SQ_NUMBERS, count - at);
        enum sq_number_kind kind = sq_number_kind_of(f->encoded);
        sq_numbers_load(f->encoded, src + at * stored_width, n, &numbers);
        if (stage->ops == &sq_stage_fixedscaleoffset)
            kind = unscale(f, f->encoded, &numbers, n);
        if (stage->ops == &sq_stage_delta) {
            if (f->decoded != f->encoded) {
                uint64_t cast[SQ_NUMBERS];
                sq_numbers_store(f->decoded, &numbers, kind, n, cast);
                sq_numbers_load(f->decoded, cast, n, &numbers);
                kind = sq_number_kind_of(f->decoded);
            }
            sum_up(f->decoded, &numbers, n, &carry);
        }
        sq_numbers_store(f->decoded, &numbers, kind, n, dst + at * width);
    }
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)err;
    const struct filter *f = stage->state;
    size_t count = src_size / sq_type_size(f->encoded);
    if (count * sq_type_size(f->decoded) > capacity)
        return SQ_STAGE_NO_ROOM;
    decode_all(stage, src, dst, count);
    *ret_size = count * sq_type_size(f->decoded);
    return 0;
}

static void decode_in_place(const struct sq_stage *stage, uint8_t *data, size_t size)
{
    const struct filter *f = stage->state;
    decode_all(stage, data, data, size / sq_type_size(f->decoded));
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    const struct filter *f = stage->state;
    return src_size / sq_type_size(f->decoded) * sq_type_size(f->encoded);
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)capacity, (void)err;
    const struct filter *f = stage->state;
    size_t width = sq_type_size(f->decoded), stored_width = sq_type_size(f->encoded), count = src_size / width;
    union sq_numbers numbers, carry = {{0}};
    for (size_t at = 0; at < count; at += SQ_NUMBERS) {
        size_t n = least(SQ_NUMBERS, count - at);
        enum sq_number_kind kind = sq_number_kind_of(f->decoded);
        sq_numbers_load(f->decoded, src + at * width, n, &numbers);
        if (stage->ops == &sq_stage_fixedscaleoffset)
            kind = rescale(f, f->decoded, &numbers, n);
        else if (stage->ops == &sq_stage_quantize)
            quantize(f, f->decoded, &numbers, n);
        else if (stage->ops == &sq_stage_delta)
            take_differences(f->decoded, &numbers, n, &carry);
        sq_numbers_store(f->encoded, &numbers, kind, n, dst + at * stored_width);
    }
    *ret_size = count * stored_width;
    return 0;
}

#define FILTER(id, how, ...)                                                                                                               \
    {                                                                                                                                      \
        .name = (id), .name_v3 = "numcodecs." id, .kind = SQ_STAGE_ARRAY, .keeps_configuration = true, .fixed = true, .bind = (how),       \
        .done = done, .tell = tell, .decode = decode, .decode_in_place = decode_in_place, .bound = bound, .encode = encode, __VA_ARGS__    \
    }

const struct sq_stage_ops sq_stage_delta = FILTER("delta", bind_delta, );
const struct sq_stage_ops sq_stage_astype = FILTER("astype", bind_astype, );
const struct sq_stage_ops sq_stage_fixedscaleoffset = FILTER("fixedscaleoffset", bind_scale, );
const struct sq_stage_ops sq_stage_quantize = FILTER("quantize", bind_quantize, .options = quantize_options);
