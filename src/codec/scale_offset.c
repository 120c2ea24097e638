/*
 * scale_offset (zarr-extensions): (in − offset) × scale, in the array's own type. Nothing is lost silently: a whole number that leaves
 * the type, or does not divide, is an error in both directions.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/number.h"

struct scale_offset {
    enum squall_type type;
    double offset, scale;
    __int128 whole_offset, whole_scale;
};

static int read_constant(const struct sq_json *configuration, const char *key, enum squall_type type, int standard, double *ret,
                         __int128 *ret_whole, struct squall_error *err)
{
    const struct sq_json *v = sq_json_get(configuration, key);
    __int128 least = 0, greatest = 0;
    bool is_whole = sq_number_kind_of(type) == SQ_SIGNED || sq_number_kind_of(type) == SQ_UNSIGNED;
    int64_t number;
    uint64_t natural;
    *ret = standard;
    *ret_whole = standard;
    if (!v)
        return 0;
    if (!is_whole)
        return sq_float_from_json(v, type, ret)
                   ? 0
                   : sq_error(err, SQUALL_ECORRUPT, "codec scale_offset: its \"%s\" is no %s", key, sq_type_name(type));
    if (sq_json_uint(v, &natural))
        *ret_whole = natural;
    else if (sq_json_int(v, &number))
        *ret_whole = number;
    else
        return sq_error(err, SQUALL_ECORRUPT, "codec scale_offset: its \"%s\" is no whole number", key);
    sq_number_range(type, &least, &greatest);
    if (*ret_whole < least || *ret_whole > greatest)
        return sq_error(err, SQUALL_ECORRUPT, "codec scale_offset: its \"%s\" is no %s", key, sq_type_name(type));
    return 0;
}

static int bind(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    static const char *const SETTINGS[] = {"offset", "scale", NULL};
    struct scale_offset *s = stage->state = sq_alloc_zero(1, sizeof *s);
    if (!s)
        return sq_error_memory(err, sizeof *s);
    SQ_TRY(sq_stage_check_settings(stage, configuration, SETTINGS, err));
    s->type = array->dtype.type;
    if (!sq_type_is_integer(s->type) && !sq_type_is_float(s->type))
        return sq_error(err, SQUALL_EUNSUPPORTED, "codec scale_offset: unsupported on %s", sq_type_name(s->type));
    SQ_TRY(read_constant(configuration, "offset", s->type, 0, &s->offset, &s->whole_offset, err));
    SQ_TRY(read_constant(configuration, "scale", s->type, 1, &s->scale, &s->whole_scale, err));
    if (s->scale == 0 || s->whole_scale == 0)
        return sq_error(err, SQUALL_ECORRUPT, "codec scale_offset: its \"scale\" is 0");
    return 0;
}

static void done(struct sq_stage *stage)
{
    sq_free(stage->state);
}

static void tell(const struct sq_stage *stage, struct sq_text *out)
{
    const struct scale_offset *s = stage->state;
    if (sq_type_is_float(s->type))
        sq_text_printf(out, "%g, %g", s->offset, s->scale);
    else
        sq_text_printf(out, "%g, %g", (double)s->whole_offset, (double)s->whole_scale);
}

static void work_on_floats(const struct scale_offset *s, union sq_numbers *numbers, size_t count, bool decoding)
{
    if (s->type == SQUALL_FLOAT64) {
        for (size_t n = 0; n < count; n++)
            numbers->d[n] = decoding ? numbers->d[n] / s->scale + s->offset : (numbers->d[n] - s->offset) * s->scale;
        return;
    }
    const float scale = (float)s->scale, offset = (float)s->offset;
    for (size_t n = 0; n < count; n++)
        numbers->f[n] = decoding ? numbers->f[n] / scale : numbers->f[n] - offset;
    sq_numbers_round(s->type, numbers, count);
    for (size_t n = 0; n < count; n++)
        numbers->f[n] = decoding ? numbers->f[n] + offset : numbers->f[n] * scale;
    sq_numbers_round(s->type, numbers, count);
}

static int work_on_wholes(const struct scale_offset *s, union sq_numbers *numbers, size_t count, bool decoding, struct squall_error *err)
{
    __int128 least = 0, greatest = 0;
    bool is_signed = sq_number_kind_of(s->type) == SQ_SIGNED;
    sq_number_range(s->type, &least, &greatest);
    for (size_t n = 0; n < count; n++) {
        __int128 x = is_signed ? (__int128)numbers->i[n] : (__int128)numbers->u[n];
        if (decoding && x % s->whole_scale != 0)
            return sq_error(err, SQUALL_ECORRUPT, "scale_offset: a stored number does not divide by the scale; the chunk is damaged");
        /* of 65 bits by 64 at most: within 128, but for the last bit, which range checks do not need */
        bool beyond = !decoding && __builtin_mul_overflow(x - s->whole_offset, s->whole_scale, &x);
        if (decoding)
            x = x / s->whole_scale + s->whole_offset;
        if (beyond || x < least || x > greatest)
            return sq_error(err, decoding ? SQUALL_ECORRUPT : SQUALL_ERANGE, "scale_offset: a number does not fit %s",
                            sq_type_name(s->type));
        numbers->u[n] = (uint64_t)x;
    }
    return 0;
}

static int work(const struct sq_stage *stage, const uint8_t *src, size_t src_size, uint8_t *dst, bool decoding, struct squall_error *err)
{
    const struct scale_offset *s = stage->state;
    size_t width = sq_type_size(s->type), count = src_size / width;
    union sq_numbers numbers;
    for (size_t at = 0; at < count; at += SQ_NUMBERS) {
        size_t n = count - at < SQ_NUMBERS ? count - at : SQ_NUMBERS;
        sq_numbers_load(s->type, src + at * width, n, &numbers);
        if (sq_type_is_float(s->type))
            work_on_floats(s, &numbers, n, decoding);
        else
            SQ_TRY(work_on_wholes(s, &numbers, n, decoding, err));
        sq_numbers_store(s->type, &numbers, sq_number_kind_of(s->type), n, dst + at * width);
    }
    return 0;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads;
    if (src_size > capacity)
        return SQ_STAGE_NO_ROOM;
    SQ_TRY(work(stage, src, src_size, dst, true, err));
    *ret_size = src_size;
    return 0;
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)capacity;
    SQ_TRY(work(stage, src, src_size, dst, false, err));
    *ret_size = src_size;
    return 0;
}

const struct sq_stage_ops sq_stage_scale_offset = {.name = "scale_offset",
                                                   .name_v3 = "scale_offset",
                                                   .kind = SQ_STAGE_ARRAY,
                                                   .only_v3 = true,
                                                   .keeps_configuration = true,
                                                   .fixed = true,
                                                   .bind = bind,
                                                   .done = done,
                                                   .tell = tell,
                                                   .decode = decode,
                                                   .bound = sq_stage_same_size,
                                                   .encode = encode};
