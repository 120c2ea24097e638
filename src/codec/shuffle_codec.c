/* numcodecs' shuffle: the bytes of elements by their place, as in Blosc, but as a codec of its own. */
#include "base/error_internal.h"
#include "codec/codec_internal.h"
#include "codec/shuffle.h"

enum { OPTION_ELEMENTSIZE };
enum { OF_THE_ARRAY = -1 };

static const struct sq_stage_option options[] = {
    [OPTION_ELEMENTSIZE] = {"elementsize", NULL, 0, 1 << 20, OF_THE_ARRAY, .told = true},
    {0},
};

/* In v2 it is 4 unless it is said; in v3 the array's. */
static int bind(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    enum { NUMCODECS_STANDARD = 4 };
    (void)configuration, (void)err;
    int *size = &stage->value[OPTION_ELEMENTSIZE];
    if (*size == OF_THE_ARRAY)
        *size = array->from_numpy ? NUMCODECS_STANDARD : (int)array->dtype.element_bytes;
    stage->decode_copies = stage->encode_copies = *size <= 1;
    return 0;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads;
    size_t width = (size_t)stage->value[OPTION_ELEMENTSIZE];
    if (src_size % width != 0)
        return sq_error(err, SQUALL_ECORRUPT,
                        "shuffle: %zu bytes are not whole elements of %zu; the chunk is damaged or from another array", src_size, width);
    if (src_size > capacity)
        return SQ_STAGE_NO_ROOM;
    sq_unshuffle(width, src_size, src, dst);
    *ret_size = src_size;
    return 0;
}

static size_t decoded_size(const uint8_t *src, size_t src_size)
{
    (void)src;
    return src_size;
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)capacity;
    size_t width = (size_t)stage->value[OPTION_ELEMENTSIZE];
    if (src_size % width != 0)
        return sq_error(err, SQUALL_EINVAL, "shuffle: %zu bytes are not whole elements of %zu", src_size, width);
    sq_shuffle(width, src_size, src, dst);
    *ret_size = src_size;
    return 0;
}

const struct sq_stage_ops sq_stage_shuffle = {.name = "shuffle",
                                              .name_v3 = "numcodecs.shuffle",
                                              .fixed = true,
                                              .options = options,
                                              .bind = bind,
                                              .decode = decode,
                                              .decoded_size = decoded_size,
                                              .bound = sq_stage_same_size,
                                              .encode = encode};
