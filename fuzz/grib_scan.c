/*
 * A file as an attacker writes it: scanned, and everything that is found described, as the field index does it.
 * Input: the file.
 */
#include "format/grib/decode.h"
#include "format/grib/grid.h"
#include "format/grib/names.h"
#include "format/grib/product.h"
#include "format/grib/scan.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct state {
    uint64_t size_bytes;
    uint64_t end; /* of the last message */
    uint64_t last;
    struct sq_text key;
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void describe(struct state *s, const struct sq_grib_found *found)
{
    struct sq_grib_times times;
    struct sq_grib_product product;
    struct sq_grib_names names;
    struct sq_grib_packing packing;
    struct sq_grib_grid grid;
    double level, bottom;
    if (!sq_grib_product_part(found, &s->key, &times, NULL)) {
        sq_grib_product_of(s->key.data, NULL, &product);
        sq_grib_names_of(&product, &names);
        sq_grib_levels_of(&product, &names, &level, &bottom);
        require(names.short_name[0] && names.level_type && sq_grib_step_type_name(product.step_type));
    }
    if (!sq_grib_packing_of(found, &packing, NULL))
        require(packing.name);
    if (!sq_grib_grid_parse(found->frame.edition, 98, found->section[3], (size_t)found->frame.section[3].size_bytes, &grid, NULL))
        sq_grib_grid_done(&grid);
}

static int on_field(void *user, const struct sq_grib_found *found, struct squall_error *err)
{
    struct state *s = user;
    (void)err;
    /* messages lie behind each other, within the file, and their sections within them */
    require(found->frame.in_message > 0 ? found->offset == s->last : found->offset >= s->end);
    require(found->size_bytes <= s->size_bytes && found->offset <= s->size_bytes - found->size_bytes);
    for (unsigned i = 1; i < SQ_GRIB_SECTION_COUNT; i++) {
        const struct sq_grib_section *section = &found->frame.section[i];
        require(section->offset + section->size_bytes <= found->size_bytes);
        require((found->section[i] != NULL) == (section->size_bytes > 0));
    }
    s->last = found->offset;
    s->end = found->offset + found->size_bytes;
    describe(s, found);
    return 0;
}

static int on_problem(void *user, uint64_t offset, const char *what, struct squall_error *err)
{
    struct state *s = user;
    (void)err;
    require(what[0] && offset <= s->size_bytes);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct state s = {.size_bytes = size, .key = SQ_TEXT_INIT};
    const struct sq_grib_scan_events events = {on_field, on_problem, &s};
    struct sq_source *source;
    require(!sq_source_open_memory(data, size, "input", &source, NULL));
    require(!sq_grib_scan(source, &events, NULL));
    sq_source_close(source);
    sq_text_done(&s.key);
    return 0;
}
