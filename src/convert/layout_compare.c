/* Comparing the layout that a store has with the one that a run asks for (layout.h): the first difference, in the user's words. */
#include "base/error_internal.h"
#include "convert/layout.h"
#include <string.h>

/* A description's member → the option that sets it. */
static const struct {
    const char *key, *option;
} SETTINGS[] = {{"record_format", "record format"}, {"zarr_format", "--zarr-format"}, {"select", "--select"}, {"rename", "--rename"},
                {"coarsen", "--coarsen"},           {"y_order", "--y-order"},         {"stack", "--stack"}};

/* Chunks last: their defaults follow from the type. */
static const struct {
    const char *key, *option;
} ARRAY_SETTINGS[] = {{"dims", "dimensions"}, {"dtype", "--dtype"}, {"codec", "--codec"}, {"chunks", "--chunks"}, {"shards", "--shards"}};

static int differs(struct squall_error *err, const char *array, const char *option, const struct sq_json *stored,
                   const struct sq_json *asked)
{
    SQ_CLEANUP_TEXT struct sq_text was = SQ_TEXT_INIT;
    SQ_CLEANUP_TEXT struct sq_text is = SQ_TEXT_INIT;
    if (stored)
        SQ_TRY(sq_json_write(stored, false, &was, err));
    if (asked)
        SQ_TRY(sq_json_write(asked, false, &is, err));
    return sq_error(
        err, SQUALL_EREFUSED,
        "the store was made with other settings: %s%s%s is %.120s there and %.120s now; use the same (squall status shows them), or "
        "--overwrite, or another destination",
        array ? array : "", array ? ": " : "", option, stored ? was.data : "absent", asked ? is.data : "absent");
}

/* A dimension may be longer now, where the store grows. */
static bool same_shape(const struct sq_json *was, const struct sq_json *is, bool grows)
{
    bool same = sq_json_count(was) == sq_json_count(is);
    for (size_t d = 0; d < sq_json_count(was) && same; d++) {
        uint64_t before = 0, now = 0;
        same =
            sq_json_uint(sq_json_at(was, d), &before) && sq_json_uint(sq_json_at(is, d), &now) && (grows ? before <= now : before == now);
    }
    return same;
}

struct comparison {
    const struct sq_json *asked;
    bool grows;
};

static int compare_array(void *user, const char *name, const struct sq_json *stored, struct squall_error *err)
{
    const struct comparison *c = user;
    const struct sq_json *asked = sq_json_get(c->asked, name);
    if (!asked)
        return sq_error(err, SQUALL_EREFUSED, "the store has a variable %s that these settings would not make", name);
    for (size_t i = 0; i < sizeof ARRAY_SETTINGS / sizeof *ARRAY_SETTINGS; i++) {
        const struct sq_json *was = sq_json_get(stored, ARRAY_SETTINGS[i].key), *is = sq_json_get(asked, ARRAY_SETTINGS[i].key);
        if (!sq_json_equal(was, is))
            return differs(err, name, ARRAY_SETTINGS[i].option, was, is);
    }
    const struct sq_json *was = sq_json_get(stored, "shape"), *is = sq_json_get(asked, "shape");
    return same_shape(was, is, c->grows) ? 0 : differs(err, name, "shape", was, is);
}

int sq_layout_compare(const struct sq_json *stored, const struct sq_json *asked, bool grows, struct squall_error *err)
{
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++) {
        const struct sq_json *was = sq_json_get(stored, SETTINGS[i].key), *is = sq_json_get(asked, SETTINGS[i].key);
        if (!sq_json_equal(was, is))
            return differs(err, NULL, SETTINGS[i].option, was, is);
    }
    const struct sq_json *arrays = sq_json_get(asked, "arrays");
    if (!arrays)
        return 0;
    struct comparison c = {arrays, grows};
    SQ_TRY(sq_json_each(sq_json_get(stored, "arrays"), compare_array, &c, err));
    if (!grows && sq_json_count(arrays) != sq_json_count(sq_json_get(stored, "arrays")))
        return sq_error(err, SQUALL_EREFUSED, "these settings would make more variables than the store has");
    return 0;
}
