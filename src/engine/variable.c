/* See variable.h. */
#include "engine/variable.h"
#include "array/bytes.h"
#include "array/dtype.h"
#include "base/error_internal.h"
#include "engine/scatter.h"

/* Return false for every element that could not be dealt with. */
typedef bool visit_element(void *element, bool failed_before);

static bool visit_all(unsigned rank, const uint64_t *count, void *box, const int64_t *strides, visit_element *visit)
{
    uint64_t index[SQUALL_RANK_MAX] = {0};
    uint8_t *at = box;
    bool failed = false, more;
    do {
        failed = !visit(at, failed) || failed;
        more = false;
        for (unsigned d = rank; d-- > 0 && !more;) { /* the next element, last dimension fastest */
            at += strides[d];
            more = ++index[d] < count[d];
            if (!more) {
                at -= (int64_t)count[d] * strides[d];
                index[d] = 0;
            }
        }
    } while (more);
    return !failed;
}

static bool free_element(void *element, bool failed_before)
{
    (void)failed_before;
    sq_bytes_free(element, 1);
    *(struct squall_bytes *)element = (struct squall_bytes){0};
    return true;
}

static bool copy_element(void *element, bool failed_before)
{
    const struct squall_bytes theirs = *(struct squall_bytes *)element;
    *(struct squall_bytes *)element = (struct squall_bytes){0};
    return !failed_before && !sq_bytes_copy(theirs.data, theirs.size_bytes, element, NULL);
}

void sq_variable_clear(enum squall_type type, unsigned rank, const uint64_t *count, void *box, const int64_t *strides)
{
    static const int64_t STAND_STILL[SQUALL_RANK_MAX];
    static const struct squall_bytes NOTHING;
    if (sq_type_is_variable(type))
        sq_scatter_copy(rank, count, squall_type_size(type), &NOTHING, STAND_STILL, box, strides, SQ_SCATTER_INTO_CACHES);
}

void sq_variable_free(enum squall_type type, unsigned rank, const uint64_t *count, void *box, const int64_t *strides)
{
    if (sq_type_is_variable(type))
        (void)visit_all(rank, count, box, strides, free_element);
}

void sq_variable_free_packed(enum squall_type type, uint64_t count, void *elements)
{
    const int64_t stride = (int64_t)squall_type_size(type);
    if (count > 0)
        sq_variable_free(type, 1, &count, elements, &stride);
}

int sq_variable_own(enum squall_type type, unsigned rank, const uint64_t *count, void *box, const int64_t *strides,
                    struct squall_error *err)
{
    if (!sq_type_is_variable(type) || visit_all(rank, count, box, strides, copy_element))
        return 0;
    sq_variable_free(type, rank, count, box, strides);
    return sq_error_memory(err, squall_type_size(type));
}
