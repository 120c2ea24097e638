/* See strings.h. */
#include "engine/strings.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/scatter.h"

/* Return false for every element that could not be dealt with. */
typedef bool visit_element(char **element, bool failed_before);

static bool visit_all(unsigned rank, const uint64_t *count, void *box, const int64_t *strides, visit_element *visit)
{
    uint64_t index[SQUALL_RANK_MAX] = {0};
    uint8_t *at = box;
    bool failed = false, more;
    do {
        failed = !visit((char **)(void *)at, failed) || failed;
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

static bool release(char **element, bool failed_before)
{
    (void)failed_before;
    sq_free(*element);
    *element = NULL;
    return true;
}

static bool duplicate(char **element, bool failed_before)
{
    *element = failed_before ? NULL : sq_strdup(*element);
    return *element != NULL;
}

void sq_strings_clear(unsigned rank, const uint64_t *count, void *box, const int64_t *strides)
{
    static const int64_t STAND_STILL[SQUALL_RANK_MAX];
    static const char *const NOTHING;
    sq_scatter_copy(rank, count, sizeof NOTHING, &NOTHING, STAND_STILL, box, strides, SQ_SCATTER_INTO_CACHES);
}

void sq_strings_free(unsigned rank, const uint64_t *count, void *box, const int64_t *strides)
{
    (void)visit_all(rank, count, box, strides, release);
}

int sq_strings_own(unsigned rank, const uint64_t *count, void *box, const int64_t *strides, struct squall_error *err)
{
    return visit_all(rank, count, box, strides, duplicate) ? 0 : sq_error_memory(err, sizeof(char *));
}
