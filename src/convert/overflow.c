/*
 * Will the values fit float16? A packing's parameters bound what its bits can say, so for most fields that is known before any
 * data are read: either nothing can overflow, or everything must. What lies between is found when values are decoded.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/plan.h"

/* From here on a value rounds to more than the greatest, 65504. */
static const double FLOAT16_LIMIT = 65520;

struct range {
    bool known;
    double least, greatest;
};

static struct range range_of(const struct sq_grib_index *index, const struct sq_grib_field *field)
{
    struct sq_grib_packing packing = index->packings[field->packing];
    struct range r;
    packing.reference_value = field->reference_value; /* the rows of the table are without it */
    r.known = sq_grib_packing_range(&packing, &r.least, &r.greatest);
    return r;
}

static int refuse(const struct squall_convert_plan *plan, const struct sq_cube_place *place, const struct range *r,
                  struct squall_error *err)
{
    const struct sq_grib_field *field = &plan->index.fields[place->field];
    const char *name = plan->layout.arrays[place->variable].name;
    return sq_error(err, SQUALL_ERANGE,
                    "%s: its values, from %.6g to %.6g, do not fit float16, which ends at 65504 (%s, byte %llu); use --on-overflow inf or "
                    "clip, or --dtype %s=float32",
                    name, r->least, r->greatest, plan->index.files[field->file].path, (unsigned long long)field->offset, name);
}

/* One field's word on its array; refuses where every value overflows and that is to be an error. */
static int weigh(struct squall_convert_plan *plan, const struct sq_cube_place *place, struct squall_error *err)
{
    const struct sq_grib_field *field = &plan->index.fields[place->field];
    enum sq_overflow_outlook *outlook = &plan->outlooks[place->variable];
    struct range r = range_of(&plan->index, field);
    if (!r.known) {
        *outlook = *outlook == SQ_OUTLOOK_FITS ? SQ_OUTLOOK_UNKNOWN : *outlook;
        return 0;
    }
    bool all = r.least >= FLOAT16_LIMIT || r.greatest <= -FLOAT16_LIMIT;
    if (all && plan->settings.overflow == SQ_OVERFLOW_ERROR && !plan->index.packings[field->packing].has_bitmap)
        return refuse(plan, place, &r, err);
    if (r.greatest >= FLOAT16_LIMIT || r.least <= -FLOAT16_LIMIT)
        *outlook = SQ_OUTLOOK_OVERFLOWS;
    return 0;
}

int sq_plan_overflow(struct squall_convert_plan *plan, struct squall_error *err)
{
    plan->outlooks = sq_alloc_zero(plan->layout.array_count + 1, sizeof *plan->outlooks);
    if (!plan->outlooks)
        return sq_error_memory(err, plan->layout.array_count * sizeof *plan->outlooks);
    for (size_t i = 0; i < plan->unit_count; i++) {
        const struct sq_planned_unit *unit = &plan->units[i];
        if (!sq_is_to_do(unit))
            continue;
        for (size_t k = 0; k < unit->place_count; k++) {
            const struct sq_cube_place *place = &plan->cube.places[unit->first_place + k];
            if (plan->layout.arrays[place->variable].type == SQUALL_FLOAT16)
                SQ_TRY(weigh(plan, place, err));
        }
    }
    return 0;
}
