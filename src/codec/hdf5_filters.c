/*
 * HDF5's pipeline of filters as a chain: "bytes", which turns the file's byte order into the machine's, and a stage for each filter. A
 * filter that is not known, or whose settings make no sense, becomes a stage that refuses, because single chunks may be without it.
 */
#include "codec/hdf5_filters.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/blosc.h"
#include "codec/chain.h"
#include "codec/hdf5_stages.h"
#include "codec/shuffle.h"
#include <limits.h>
#include <string.h>

/* ---- filters that refuse ---------------------------------------------------------------------------------------------------------- */

struct refusal {
    int status;
    bool is_unknown;
    char *what;
};

/* Filters that other people's files have. */
static const struct {
    uint16_t id;
    const char *name;
} registered[] = {
    {305, "lzo"},   {32013, "zfp"}, {32017, "sz"},     {32018, "fcidecomp"}, {32019, "jpeg"},
    {32021, "vbz"}, {32024, "sz3"}, {32026, "blosc2"}, {32028, "sperr"},
};

/* what: taken over */
static int refuse(struct sq_stage *stage, int status, bool is_unknown, char *what, struct squall_error *err)
{
    struct refusal *r = stage->state = what ? sq_alloc_zero(1, sizeof *r) : NULL;
    if (!r) {
        sq_free(what);
        return sq_error_memory(err, sizeof *r);
    }
    sq_text_make_visible(what);
    *r = (struct refusal){status, is_unknown, what};
    return 0;
}

static int refuse_unknown(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err)
{
    const char *name = filter->name && *filter->name ? filter->name : "of no known name";
    for (size_t i = 0; i < sizeof registered / sizeof *registered; i++)
        if (registered[i].id == filter->id)
            name = registered[i].name;
    return refuse(stage, SQUALL_EUNSUPPORTED, true, sq_format("filter %u (%.100s)", filter->id, name), err);
}

static void done_refusal(struct sq_stage *stage)
{
    struct refusal *r = stage->state;
    if (r)
        sq_free(r->what);
    sq_free(r);
}

static void tell_refusal(const struct sq_stage *stage, struct sq_text *out)
{
    const struct refusal *r = stage->state;
    sq_text_add(out, r->what);
}

static int decode_refusal(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src,
                          size_t src_size, uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)src, (void)src_size, (void)dst, (void)capacity, (void)ret_size;
    const struct refusal *r = stage->state;
    return sq_error(err, r->status, "%s%s", r->is_unknown ? "unsupported HDF5 " : "", r->what);
}

static const struct sq_stage_ops stage_refusing = {
    .name = "unsupported", .done = done_refusal, .tell = tell_refusal, .decode = decode_refusal, .bound = sq_stage_same_size};

/* Of a chain's stages, of which the first is no filter. */
static bool is_skipped(uint32_t skip_mask, unsigned stage)
{
    return stage > 0 && skip_mask >> (stage - 1) & 1;
}

const char *sq_codec_chain_unknown_filter(const struct sq_codec_chain *chain, uint32_t skip_mask)
{
    for (unsigned i = 0; i < chain->stage_count; i++) {
        const struct refusal *r = chain->stages[i].state;
        if (chain->stages[i].ops == &stage_refusing && r->is_unknown && !is_skipped(skip_mask, i))
            return r->what;
    }
    return NULL;
}

/* ---- shuffle ---------------------------------------------------------------------------------------------------------------------- */

/* Unlike numcodecs' it takes any number of bytes: those that fill no element stay where they are. */
enum { OPTION_WIDTH };
static const struct sq_stage_option shuffle_options[] = {
    [OPTION_WIDTH] = {"elementsize", NULL, 1, INT_MAX, 1, .told = true},
    {0},
};

static int decode_shuffle(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src,
                          size_t src_size, uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)err;
    if (src_size > capacity)
        return SQ_STAGE_NO_ROOM;
    sq_unshuffle((size_t)stage->value[OPTION_WIDTH], src_size, src, dst);
    *ret_size = src_size;
    return 0;
}

static const struct sq_stage_ops stage_shuffle = {
    .name = "shuffle", .options = shuffle_options, .fixed = true, .decode = decode_shuffle, .bound = sq_stage_same_size};

/* libhdf5 does not tell it the size of elements whose length varies, and then leaves it out of each chunk. */
static int bind_shuffle(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err)
{
    uint32_t width = filter->value_count > 0 ? filter->values[0] : 0;
    if (width == 0 || width > INT_MAX)
        return sq_error(err, SQUALL_ECORRUPT, "filter shuffle: elements of %u bytes make no sense", width);
    stage->value[OPTION_WIDTH] = (int)width;
    stage->decode_copies = width == 1;
    return 0;
}

/* ---- codecs of Zarr's ------------------------------------------------------------------------------------------------------------- */

/* A setting that is only told, not needed: what makes no sense stays at its standard. */
static void set_option(struct sq_stage *stage, unsigned option, const struct sq_hdf5_filter *filter, unsigned index)
{
    const struct sq_stage_option *o = &stage->ops->options[option];
    if (index < filter->value_count && (int32_t)filter->values[index] >= o->least && (int32_t)filter->values[index] <= o->greatest)
        stage->value[option] = (int32_t)filter->values[index];
}

static int bind_level(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err)
{
    (void)err;
    set_option(stage, 0, filter, 0);
    return 0;
}

static int bind_checksum(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err)
{
    (void)filter;
    return stage->ops->bind(stage, NULL, NULL, err);
}

static int bind_blosc(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err)
{
    enum { VALUE_WIDTH = 2, VALUE_LEVEL = 4, VALUE_SHUFFLE, VALUE_COMPRESSOR };
    static const int cnames[] = {SQ_CNAME_BLOSCLZ, SQ_CNAME_LZ4, SQ_CNAME_LZ4HC, SQ_CNAME_SNAPPY, SQ_CNAME_ZLIB, SQ_CNAME_ZSTD};
    (void)err;
    set_option(stage, SQ_BLOSC_OPTION_TYPESIZE, filter, VALUE_WIDTH);
    set_option(stage, SQ_BLOSC_OPTION_CLEVEL, filter, VALUE_LEVEL);
    set_option(stage, SQ_BLOSC_OPTION_SHUFFLE, filter, VALUE_SHUFFLE);
    uint32_t compressor = filter->value_count > VALUE_COMPRESSOR ? filter->values[VALUE_COMPRESSOR] : 0;
    if (compressor < sizeof cnames / sizeof *cnames)
        stage->value[SQ_BLOSC_OPTION_CNAME] = cnames[compressor];
    return 0;
}

/* ---- the pipeline ----------------------------------------------------------------------------------------------------------------- */

struct known {
    uint16_t id;
    const struct sq_stage_ops *ops;
    int (*bind)(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err); /* NULL: nothing to read */
};

static const struct known known[] = {
    {1, &sq_stage_zlib, bind_level},
    {2, &stage_shuffle, bind_shuffle},
    {3, &sq_stage_fletcher32, bind_checksum},
    {4, &sq_stage_szip, sq_szip_bind},
    {5, &sq_stage_nbit, sq_nbit_bind},
    {6, &sq_stage_hdf5_scaleoffset, sq_hdf5_scaleoffset_bind},
    {307, &sq_stage_bz2, bind_level},
    {32000, &sq_stage_lzf, NULL},
    {32001, &sq_stage_blosc, bind_blosc},
    {32004, &sq_stage_hdf5_lz4, NULL},
    {32008, &sq_stage_hdf5_bitshuffle, sq_hdf5_bitshuffle_bind},
    {32015, &sq_stage_zstd, bind_level},
};

static int bind_known(struct sq_stage *stage, const struct known *as, const struct sq_hdf5_filter *filter, struct squall_error *err)
{
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status = as->bind ? as->bind(stage, filter, &reason) : 0;
    if (status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED) {
        if (stage->ops->done)
            stage->ops->done(stage);
        *stage = (struct sq_stage){.ops = &stage_refusing};
        return refuse(stage, status, false, sq_strdup(reason.message), err);
    }
    if (status && err)
        *err = reason;
    return status;
}

static int add_filter(struct sq_codec_chain *chain, const struct sq_hdf5_filter *filter, struct squall_error *err)
{
    struct sq_stage *stage = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].id == filter->id) {
            SQ_TRY(sq_chain_add(chain, known[i].ops, &stage, err));
            return bind_known(stage, &known[i], filter, err);
        }
    }
    SQ_TRY(sq_chain_add(chain, &stage_refusing, &stage, err));
    return refuse_unknown(stage, filter, err);
}

int sq_codec_chain_bind_hdf5(const struct sq_hdf5_filter *filters, size_t count, const struct sq_codec_chunk *chunk,
                             struct sq_codec_chain **ret, struct squall_error *err)
{
    struct sq_stage_array array = {.dtype = chunk->dtype, .big_endian = chunk->big_endian};
    struct sq_stage *stage = NULL;
    SQ_CLEANUP_CHAIN struct sq_codec_chain *chain = sq_chain_new(&chunk->dtype, err);
    if (!chain)
        return SQUALL_ENOMEM;
    SQ_TRY(sq_chain_add(chain, &sq_stage_bytes, &stage, err));
    SQ_TRY(sq_chain_bind(chain, stage, NULL, &array, err));
    for (size_t i = 0; i < count; i++)
        SQ_TRY(add_filter(chain, &filters[i], err));
    SQ_TRY(sq_chain_finish(chain, err));
    *ret = chain;
    chain = NULL;
    return 0;
}

size_t sq_codec_chain_shuffle_width(const struct sq_codec_chain *chain)
{
    enum { BYTES, FIRST_FILTER };
    const bool shuffles = chain->stage_count > FIRST_FILTER && chain->stages[FIRST_FILTER].ops == &stage_shuffle;
    return shuffles && chain->stages[BYTES].decode_copies ? (size_t)chain->stages[FIRST_FILTER].value[OPTION_WIDTH] : 0;
}

int sq_codec_decode_masked(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, uint32_t skip_mask,
                           const void *src, size_t src_size, void *dst, size_t dst_size, struct squall_error *err)
{
    if (skip_mask == 0)
        return sq_codec_decode(chain, scratch, threads, src, src_size, dst, dst_size, err);
    struct sq_codec_chain rest = *chain;
    rest.stage_count = 0;
    for (unsigned i = 0; i < chain->stage_count; i++)
        if (!is_skipped(skip_mask, i))
            rest.stages[rest.stage_count++] = chain->stages[i];
    return sq_codec_decode(&rest, scratch, threads, src, src_size, dst, dst_size, err);
}
