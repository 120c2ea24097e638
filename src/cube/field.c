/* One field as stable bytes, for fingerprints, and as a line for a person. */
#include "base/error_internal.h"
#include "cube/cube.h"
#include "cube/texts.h"
#include <string.h>

static void add_le(struct sq_text *out, uint64_t value, unsigned size_bytes)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < size_bytes; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    sq_text_add_bytes(out, bytes, size_bytes);
}

static void add_section(struct sq_text *out, const uint8_t *bytes, uint32_t size_bytes)
{
    uint32_t size = bytes ? size_bytes : 0;
    add_le(out, size, 4);
    sq_text_add_bytes(out, bytes ? bytes : (const uint8_t *)"", size);
}

int sq_cube_field_key(const struct sq_grib_index *index, size_t field, struct sq_text *out, struct squall_error *err)
{
    const struct sq_grib_field *f = &index->fields[field];
    const struct sq_grib_raw *raw = &index->products[f->product].raw;
    const struct sq_grib_grid *grid = &index->grids[f->grid];
    add_le(out, raw->edition, 1);
    add_le(out, raw->discipline, 1);
    add_section(out, raw->section1, raw->section1_bytes);
    add_section(out, raw->section2, raw->section2_bytes);
    add_section(out, raw->section4, raw->section4_bytes);
    add_section(out, grid->section, grid->section_bytes);
    add_le(out, (uint64_t)f->times.reference_time_s, 8);
    add_le(out, (uint64_t)f->times.step_begin_s, 8);
    add_le(out, (uint64_t)f->times.step_end_s, 8);
    add_le(out, (uint64_t)(uint32_t)f->times.number, 4);
    return out->failed ? sq_error_memory(err, out->length) : 0;
}

int sq_cube_field_text(const struct sq_grib_index *index, size_t field, struct sq_text *out, struct squall_error *err)
{
    const struct sq_grib_field *f = &index->fields[field];
    const struct sq_grib_names *names = &index->names[f->product];
    const struct sq_grib_product *product = &index->products[f->product];
    sq_text_printf(out, "%s, ", names->cf_var_name);
    sq_text_add_time(out, f->times.reference_time_s);
    sq_text_add(out, " + ");
    if (f->times.step_begin_s != f->times.step_end_s) {
        sq_text_add_duration(out, f->times.step_begin_s);
        sq_text_add(out, " to ");
    }
    sq_text_add_duration(out, f->times.step_end_s);
    sq_text_add(out, ", ");
    sq_text_add_level(out, names->level_type, index->levels[f->product]);
    if (product->probability_type >= 0)
        sq_text_add(out, ", probability");
    if (product->percentile >= 0)
        sq_text_printf(out, ", percentile %d", product->percentile);
    if (f->times.number >= 0)
        sq_text_printf(out, ", member %d", f->times.number);
    return out->failed ? sq_error_memory(err, out->length) : 0;
}
