/* The layout as far as a store's own layout.json tells it (layout.h), for whoever works on the store without its sources. */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/layout.h"
#include "convert/store_state.h"

static int add_array(void *user, const char *name, const struct sq_json *v, struct squall_error *err)
{
    struct sq_layout *layout = user;
    struct sq_layout_array *a = &layout->arrays[layout->array_count++];
    const struct sq_json *shape = sq_json_get(v, "shape"), *made = sq_json_get(v, "made"), *shards = sq_json_get(v, "shards"),
                         *chunks = shards ? shards : sq_json_get(v, "chunks"); /* of the files */
    size_t rank = sq_json_count(chunks);
    bool good = rank >= 1 && rank <= SQ_LAYOUT_RANK_MAX && sq_json_count(shape) == rank - 1;
    a->name = name;
    a->leaves_fill = layout->of_arrays;
    a->rank = (unsigned)rank;
    a->chunks_per_unit = a->slabs_per_init = 1;
    a->outer_rank = (unsigned)sq_json_count(made); /* of one that has not grown nobody asks for more */
    good = good && a->outer_rank < rank;
    for (size_t d = 1; d < rank && good; d++) {
        good =
            sq_json_uint(sq_json_at(shape, d - 1), &a->shape[d]) && sq_json_uint(sq_json_at(chunks, d), &a->chunks[d]) && a->chunks[d] > 0;
        a->made[d] = a->shape[d];
        good = good && (d > a->outer_rank || sq_json_uint(sq_json_at(made, d - 1), &a->made[d]));
        a->grid[d] = good && a->shape[d] > 0 ? (a->shape[d] - 1) / a->chunks[d] + 1 : 0;
        good = good && sq_mul_u64(a->chunks_per_unit, a->grid[d], &a->chunks_per_unit) &&
               sq_mul_u64(a->slabs_per_init, a->shape[d] ? a->shape[d] : 1, &a->slabs_per_init);
    }
    return good ? 0 : sq_error(err, SQUALL_ECORRUPT, "layout.json: array %s has no usable shape; " SQ_RECORDS_DAMAGED, name);
}

int sq_layout_recorded(const struct sq_store_state *state, struct sq_layout *ret, struct squall_error *err)
{
    const struct sq_json *arrays = sq_json_get(state->layout, "arrays");
    struct sq_layout layout = {
        .of_arrays = state->of_arrays, .zarr_format = state->zarr_format, .init_chunk = state->init_chunk, .flag_chunk = state->flag_chunk};
    layout.arrays = sq_alloc_zero(sq_json_count(arrays) + 1, sizeof *layout.arrays);
    int status = layout.arrays ? sq_json_each(arrays, add_array, &layout, err) : sq_error_memory(err, sizeof *layout.arrays);
    if (status) {
        sq_layout_done(&layout);
        return status;
    }
    *ret = layout;
    return 0;
}
