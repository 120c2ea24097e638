/*
 * cast_value (zarr-extensions): elements as another type by their values, with a stated rounding, a stated way with what does not
 * fit, and a map for single values, which comes first. Decoding is the same cast the other way round. A value that neither map
 * nor rule provides for is an error, never something else.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/number.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { OPTION_ROUNDING, OPTION_OUT_OF_RANGE };
enum rounding { NEAREST_EVEN, TOWARDS_ZERO, TOWARDS_POSITIVE, TOWARDS_NEGATIVE, NEAREST_AWAY };
enum { BEYOND_ERROR, BEYOND_CLAMP, BEYOND_WRAP };

static const char *const roundings[] = {"nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away", NULL};
static const char *const beyonds[] = {"error", "clamp", "wrap", NULL};

static const struct sq_stage_option options[] = {
    [OPTION_ROUNDING] = {"rounding", roundings, 0, 0, NEAREST_EVEN, .told = false},
    [OPTION_OUT_OF_RANGE] = {"out_of_range", beyonds, 0, 0, BEYOND_ERROR, .told = false},
    {0},
};

/* A number of any type; whole ones in `whole`. */
struct value {
    bool is_whole;
    double real;
    __int128 whole;
};

struct pair {
    struct value from, to;
};

struct cast {
    enum squall_type from, to;
    bool exact; /* every value of `from` is one of `to` */
    struct pair *map;
    size_t map_count;
};

struct casts {
    struct cast encode, decode;
};

static bool is_whole_type(enum squall_type type)
{
    enum sq_number_kind kind = sq_number_kind_of(type);
    return kind == SQ_SIGNED || kind == SQ_UNSIGNED;
}

/* Bits of the mantissa, the implied one included, and the exponent of the least normal number. */
static void float_format(enum squall_type type, int *ret_bits, int *ret_least_exponent)
{
    *ret_bits = type == SQUALL_FLOAT64 ? 53 : type == SQUALL_FLOAT32 ? 24 : type == SQUALL_FLOAT16 ? 11 : 8;
    *ret_least_exponent = type == SQUALL_FLOAT64 ? -1022 : type == SQUALL_FLOAT16 ? -14 : -126;
}

static double greatest_float(enum squall_type type)
{
    return type == SQUALL_FLOAT64 ? DBL_MAX : type == SQUALL_FLOAT32 ? FLT_MAX : type == SQUALL_FLOAT16 ? 65504 : 0x1.fep127;
}

/* ---- binding ---------------------------------------------------------------------------------------------------------------------- */

static bool is_exact(enum squall_type from, enum squall_type to)
{
    __int128 least = 0, greatest = 0, to_least = 0, to_greatest = 0;
    int bits, to_bits, exponent, to_exponent;
    if (is_whole_type(from))
        sq_number_range(from, &least, &greatest);
    if (is_whole_type(from) && is_whole_type(to)) {
        sq_number_range(to, &to_least, &to_greatest);
        return least >= to_least && greatest <= to_greatest;
    }
    if (is_whole_type(to))
        return false;
    float_format(to, &to_bits, &to_exponent);
    if (is_whole_type(from))
        return to != SQUALL_FLOAT16 && greatest < ((__int128)1 << to_bits);
    float_format(from, &bits, &exponent);
    return bits <= to_bits && exponent >= to_exponent;
}

static bool read_value(enum squall_type type, const struct sq_json *v, struct value *ret)
{
    __int128 least = 0, greatest = 0;
    int64_t number = 0;
    uint64_t natural = 0;
    *ret = (struct value){.is_whole = is_whole_type(type)};
    if (!ret->is_whole)
        return sq_float_from_json(v, type, &ret->real);
    if (sq_json_uint(v, &natural))
        ret->whole = natural;
    else if (sq_json_int(v, &number))
        ret->whole = number;
    else
        return false;
    sq_number_range(type, &least, &greatest);
    return ret->whole >= least && ret->whole <= greatest;
}

static int read_map(struct cast *cast, const struct sq_json *pairs, struct squall_error *err)
{
    size_t count = sq_json_count(pairs);
    if (sq_json_type(pairs) <= SQ_JSON_NULL || count == 0)
        return 0;
    if (!(cast->map = sq_alloc_zero(count, sizeof *cast->map)))
        return sq_error_memory(err, count * sizeof *cast->map);
    cast->map_count = count;
    cast->exact = false;
    for (size_t i = 0; i < count; i++) {
        const struct sq_json *pair = sq_json_at(pairs, i);
        if (sq_json_count(pair) != 2 || !read_value(cast->from, sq_json_at(pair, 0), &cast->map[i].from) ||
            !read_value(cast->to, sq_json_at(pair, 1), &cast->map[i].to))
            return sq_error(err, SQUALL_ECORRUPT, "codec cast_value: entry %zu of its scalar map is no pair of a %s and a %s", i,
                            sq_type_name(cast->from), sq_type_name(cast->to));
    }
    return 0;
}

static bool is_usable(enum squall_type type)
{
    return sq_number_kind_of(type) != SQ_NO_NUMBER && type != SQUALL_BOOL && type != SQUALL_DATETIME64 && type != SQUALL_TIMEDELTA64;
}

static int bind(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    static const char *const SETTINGS[] = {"data_type", "rounding", "out_of_range", "scalar_map", NULL};
    static const char *const MAPS[] = {"encode", "decode", NULL};
    const struct sq_json *data_type = sq_json_get(configuration, "data_type"), *map = sq_json_get(configuration, "scalar_map");
    const char *name = sq_json_string(data_type) ? sq_json_string(data_type) : sq_json_string(sq_json_get(data_type, "name"));
    struct casts *c = stage->state = sq_alloc_zero(1, sizeof *c);
    enum squall_type from = array->dtype.type, to;
    if (!c)
        return sq_error_memory(err, sizeof *c);
    SQ_TRY(sq_stage_check_settings(stage, configuration, SETTINGS, err));
    SQ_TRY(sq_stage_check_settings(stage, map, MAPS, err));
    if (!name)
        return sq_error(err, SQUALL_ECORRUPT, "codec cast_value: its \"data_type\" has no name");
    if (!sq_type_from_name(name, &to) || !is_usable(to) || !is_usable(from))
        return sq_error(err, SQUALL_EUNSUPPORTED, "codec cast_value: unsupported from %s to %.60s", sq_type_name(from), name);
    if (stage->value[OPTION_OUT_OF_RANGE] == BEYOND_WRAP && !is_whole_type(to))
        return sq_error(err, SQUALL_ECORRUPT, "codec cast_value: \"wrap\" is for whole numbers, not %s", name);
    c->encode = (struct cast){from, to, is_exact(from, to), NULL, 0};
    c->decode = (struct cast){to, from, is_exact(to, from), NULL, 0};
    SQ_TRY(read_map(&c->encode, sq_json_get(map, "encode"), err));
    SQ_TRY(read_map(&c->decode, sq_json_get(map, "decode"), err));
    sq_stage_array_retype(array, to, false);
    return 0;
}

static void done(struct sq_stage *stage)
{
    struct casts *c = stage->state;
    if (!c)
        return;
    sq_free(c->encode.map);
    sq_free(c->decode.map);
    sq_free(c);
}

static void tell(const struct sq_stage *stage, struct sq_text *out)
{
    const struct casts *c = stage->state;
    sq_text_add(out, sq_type_name(c->encode.to));
}

/* ---- one value -------------------------------------------------------------------------------------------------------------------- */

static bool rounds_up(enum rounding rounding, bool negative, bool odd, int against_half, bool any_rest)
{
    switch (rounding) {
    case NEAREST_EVEN:
        return against_half > 0 || (against_half == 0 && odd);
    case NEAREST_AWAY:
        return against_half >= 0;
    case TOWARDS_POSITIVE:
        return any_rest && !negative;
    case TOWARDS_NEGATIVE:
        return any_rest && negative;
    default:
        return false;
    }
}

/* magnitude × 2^exponent with a sign → what the float type holds of it, were its exponents without limit upwards. */
static double rounded_float(enum squall_type type, enum rounding rounding, bool negative, uint64_t magnitude, int exponent)
{
    int bits, least_exponent;
    float_format(type, &bits, &least_exponent);
    if (magnitude == 0)
        return negative ? -0.0 : 0.0;
    int top = 63 - __builtin_clzll(magnitude) + exponent;
    int unit = (top > least_exponent ? top : least_exponent) - (bits - 1);
    if (unit > exponent) {
        int cut = unit - exponent;
        uint64_t kept = cut >= 64 ? 0 : magnitude >> cut;
        uint64_t rest = cut >= 64 ? magnitude : magnitude & ((UINT64_C(1) << cut) - 1);
        uint64_t half = cut > 64 ? UINT64_MAX : UINT64_C(1) << (cut - 1);
        int against_half = cut > 64 || rest < half ? -1 : rest > half;
        magnitude = kept + rounds_up(rounding, negative, kept & 1, against_half, rest != 0);
        exponent = unit;
    }
    double value = ldexp((double)magnitude, exponent);
    return negative ? -value : value;
}

static double float_of(enum squall_type type, enum rounding rounding, const struct value *v)
{
    int exponent = 0;
    if (v->is_whole)
        return rounded_float(type, rounding, v->whole < 0, (uint64_t)(v->whole < 0 ? -v->whole : v->whole), 0);
    if (!(fabs(v->real) <= DBL_MAX))
        return v->real;
    double fraction = frexp(fabs(v->real), &exponent);
    return rounded_float(type, rounding, signbit(v->real), (uint64_t)ldexp(fraction, 53), exponent - 53);
}

static double rounded_whole(enum rounding rounding, double value)
{
    switch (rounding) {
    case NEAREST_EVEN:
        return rint(value);
    case NEAREST_AWAY:
        return round(value);
    case TOWARDS_POSITIVE:
        return ceil(value);
    case TOWARDS_NEGATIVE:
        return floor(value);
    default:
        return trunc(value);
    }
}

/* false: there is no such whole number */
static bool whole_of(enum squall_type type, const struct sq_stage *stage, const struct value *v, __int128 *ret)
{
    __int128 least = 0, greatest = 0, whole = v->whole;
    int beyond = stage->value[OPTION_OUT_OF_RANGE];
    sq_number_range(type, &least, &greatest);
    if (!v->is_whole) {
        double value = rounded_whole((enum rounding)stage->value[OPTION_ROUNDING], v->real);
        if (isnan(value) || (isinf(value) && beyond != BEYOND_CLAMP))
            return false;
        if (fabs(value) >= 0x1p100) /* beyond any type: only its sign, or its last bits, matter */
            value = beyond == BEYOND_WRAP ? fmod(value, 0x1p64) : copysign(0x1p100, value);
        if (beyond == BEYOND_ERROR && fabs(value) >= 0x1p100)
            return false;
        whole = (__int128)value;
    }
    if (whole < least || whole > greatest) {
        if (beyond == BEYOND_ERROR)
            return false;
        if (beyond == BEYOND_CLAMP)
            whole = whole < least ? least : greatest;
        else {
            __int128 modulus = greatest - least + 1;
            whole = ((whole - least) % modulus + modulus) % modulus + least;
        }
    }
    *ret = whole;
    return true;
}

static bool is_equal(const struct value *a, const struct value *b)
{
    if (a->is_whole)
        return a->whole == b->whole;
    return a->real == b->real || (isnan(a->real) && isnan(b->real));
}

/* false: the value has no counterpart */
static bool cast_one(const struct sq_stage *stage, const struct cast *cast, struct value *v)
{
    for (size_t i = 0; i < cast->map_count; i++) {
        if (is_equal(v, &cast->map[i].from)) {
            *v = cast->map[i].to;
            return true;
        }
    }
    if (is_whole_type(cast->to)) {
        v->is_whole = whole_of(cast->to, stage, v, &v->whole);
        return v->is_whole;
    }
    bool was_finite = v->is_whole || fabs(v->real) <= DBL_MAX;
    v->real = float_of(cast->to, (enum rounding)stage->value[OPTION_ROUNDING], v);
    v->is_whole = false;
    if (was_finite && fabs(v->real) > greatest_float(cast->to)) {
        if (stage->value[OPTION_OUT_OF_RANGE] != BEYOND_CLAMP)
            return false;
        v->real = copysign(INFINITY, v->real);
    }
    return true;
}

/* ---- whole chunks ----------------------------------------------------------------------------------------------------------------- */

static struct value value_at(enum sq_number_kind kind, const union sq_numbers *numbers, size_t n)
{
    switch (kind) {
    case SQ_SIGNED:
        return (struct value){.is_whole = true, .whole = numbers->i[n]};
    case SQ_UNSIGNED:
        return (struct value){.is_whole = true, .whole = numbers->u[n]};
    case SQ_SINGLE:
        return (struct value){.real = numbers->f[n]};
    default:
        return (struct value){.real = numbers->d[n]};
    }
}

static int cast_block(const struct sq_stage *stage, const struct cast *cast, union sq_numbers *numbers, size_t count, bool decoding,
                      struct squall_error *err)
{
    enum sq_number_kind kind = sq_number_kind_of(cast->from);
    union sq_numbers result;
    for (size_t n = 0; n < count; n++) {
        struct value v = value_at(kind, numbers, n), before = v;
        if (!cast_one(stage, cast, &v))
            return sq_error(err, decoding ? SQUALL_ECORRUPT : SQUALL_ERANGE, "cast_value: %g has no place in %s",
                            before.is_whole ? (double)before.whole : before.real, sq_type_name(cast->to));
        if (v.is_whole)
            result.u[n] = (uint64_t)v.whole;
        else
            result.d[n] = v.real;
    }
    *numbers = result;
    return 0;
}

static int cast_all(const struct sq_stage *stage, const struct cast *cast, const uint8_t *src, size_t src_size, uint8_t *dst,
                    size_t capacity, bool decoding, size_t *ret_size, struct squall_error *err)
{
    size_t width = sq_type_size(cast->from), to_width = sq_type_size(cast->to), count = src_size / width;
    enum sq_number_kind kind = cast->exact ? sq_number_kind_of(cast->from) : is_whole_type(cast->to) ? SQ_SIGNED : SQ_DOUBLE;
    union sq_numbers numbers;
    if (count * to_width > capacity)
        return SQ_STAGE_NO_ROOM;
    for (size_t at = 0; at < count; at += SQ_NUMBERS) {
        size_t n = count - at < SQ_NUMBERS ? count - at : SQ_NUMBERS;
        sq_numbers_load(cast->from, src + at * width, n, &numbers);
        if (!cast->exact)
            SQ_TRY(cast_block(stage, cast, &numbers, n, decoding, err));
        sq_numbers_store(cast->to, &numbers, kind, n, dst + at * to_width);
    }
    *ret_size = count * to_width;
    return 0;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads;
    const struct casts *c = stage->state;
    return cast_all(stage, &c->decode, src, src_size, dst, capacity, true, ret_size, err);
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    const struct casts *c = stage->state;
    return src_size / sq_type_size(c->encode.from) * sq_type_size(c->encode.to);
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads;
    const struct casts *c = stage->state;
    return cast_all(stage, &c->encode, src, src_size, dst, capacity, false, ret_size, err);
}

const struct sq_stage_ops sq_stage_cast_value = {.name = "cast_value",
                                                 .name_v3 = "cast_value",
                                                 .kind = SQ_STAGE_ARRAY,
                                                 .only_v3 = true,
                                                 .keeps_configuration = true,
                                                 .fixed = true,
                                                 .options = options,
                                                 .bind = bind,
                                                 .done = done,
                                                 .tell = tell,
                                                 .decode = decode,
                                                 .bound = bound,
                                                 .encode = encode};
