/*
 * Do two fields with one full key hold the same data? Asked only when keys collide, so it reads the two messages: the same bytes, or, where their messages
 * differ elsewhere (another field in one of them, another date of creation), the same packing, bitmap and data sections.
 */
#include "cube/duplicates.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "format/grib/frame.h"
#include "io/source.h"
#include <string.h>

struct side {
    uint32_t file; /* of source; UINT32_MAX: none open */
    struct sq_source *source;
    uint8_t *bytes;
    size_t capacity;
};

struct sq_duplicates {
    const struct sq_grib_index *index;
    struct side sides[2];
};

struct sq_duplicates *sq_duplicates_new(const struct sq_grib_index *index)
{
    struct sq_duplicates *d = sq_alloc_zero(1, sizeof *d);
    if (d) {
        d->index = index;
        d->sides[0].file = d->sides[1].file = UINT32_MAX;
    }
    return d;
}

void sq_duplicates_free(struct sq_duplicates *d)
{
    for (int i = 0; d && i < 2; i++) {
        sq_source_close(d->sides[i].source);
        sq_free(d->sides[i].bytes);
    }
    sq_free(d);
}

static int load(struct sq_duplicates *d, struct side *side, const struct sq_grib_field *field, struct squall_error *err)
{
    if (side->file != field->file) {
        struct sq_source *source;
        SQ_TRY(sq_source_open_file(d->index->files[field->file].path, &source, err));
        sq_source_close(side->source);
        side->source = source;
        side->file = field->file;
    }
    if (field->size_bytes > sq_source_size(side->source))
        return sq_error(err, SQUALL_ECORRUPT, "%s is shorter than when it was scanned", d->index->files[field->file].path);
    SQ_TRY(SQ_GROW(side->bytes, side->capacity, (size_t)field->size_bytes, err));
    return sq_source_read(side->source, field->offset, side->bytes, (size_t)field->size_bytes, err);
}

/* Edition 1 keeps the decimal scale in the PDS, octets 27 and 28. */
static bool same_scale(const uint8_t *a, const struct sq_grib_frame *x, const uint8_t *b, const struct sq_grib_frame *y)
{
    if (x->edition != 1)
        return true;
    return x->section[1].size_bytes >= 28 && y->section[1].size_bytes >= 28 &&
           memcmp(a + x->section[1].offset + 26, b + y->section[1].offset + 26, 2) == 0;
}

static bool same_sections(const uint8_t *a, const struct sq_grib_frame *x, const uint8_t *b, const struct sq_grib_frame *y)
{
    if (x->edition != y->edition || !same_scale(a, x, b, y))
        return false;
    for (int s = 5; s <= 7; s++) {
        if (x->section[s].size_bytes != y->section[s].size_bytes)
            return false;
        if (memcmp(a + x->section[s].offset, b + y->section[s].offset, (size_t)x->section[s].size_bytes) != 0)
            return false;
    }
    return true;
}

int sq_duplicates_same(struct sq_duplicates *d, uint32_t a, uint32_t b, bool *ret, struct squall_error *err)
{
    const struct sq_grib_field *x = &d->index->fields[a], *y = &d->index->fields[b];
    struct sq_grib_frame p, q;
    if (x->grid != y->grid || x->packing != y->packing ||
        memcmp(&x->reference_value, &y->reference_value, sizeof x->reference_value) != 0) {
        *ret = false;
        return 0;
    }
    SQ_TRY(load(d, &d->sides[0], x, err));
    SQ_TRY(load(d, &d->sides[1], y, err));
    const uint8_t *left = d->sides[0].bytes, *right = d->sides[1].bytes;
    if (x->size_bytes == y->size_bytes && x->in_message == y->in_message && memcmp(left, right, (size_t)x->size_bytes) == 0) {
        *ret = true;
        return 0;
    }
    SQ_TRY(sq_grib_frame_of(left, (size_t)x->size_bytes, x->in_message, &p, err));
    SQ_TRY(sq_grib_frame_of(right, (size_t)y->size_bytes, y->in_message, &q, err));
    *ret = same_sections(left, &p, right, &q);
    return 0;
}
