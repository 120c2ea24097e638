/* The two editions' halves of product.c. */
#ifndef SQ_FORMAT_GRIB_PRODUCT_PARTS_H
#define SQ_FORMAT_GRIB_PRODUCT_PARTS_H

#include "format/grib/product.h"

/*
 * Read a field's times, and blank in the copies what differs along times and members.
 *
 * section1 …   copies of the sections (edition 1: the PDS as section1), as long as in the frame; section2 may be NULL
 * *ret         its number and reference time are set in any case (0 where it is no date)
 * *ret_dated   false: the times make no sense, and are not blanked
 */
int sq_grib1_part(const struct sq_grib_found *found, uint8_t *pds, struct sq_grib_times *ret, bool *ret_dated,
                  struct squall_error *err) SQUALL_CHECK;
int sq_grib2_part(const struct sq_grib_found *found, uint8_t *section1, uint8_t *section2, uint8_t *section4, struct sq_grib_times *ret,
                  bool *ret_dated, struct squall_error *err) SQUALL_CHECK;

/* Everything but raw, which is set. */
void sq_grib1_product_of(struct sq_arena *arena, struct sq_grib_product *p);
void sq_grib2_product_of(struct sq_arena *arena, struct sq_grib_product *p);

/* What ecCodes calls number and totalNumber in ECMWF's local part of a PDS, of fields that are no members, too; -1: it has no such. */
struct sq_grib1_ensemble {
    int32_t number, count;
};
struct sq_grib1_ensemble sq_grib1_ensemble_of(const struct sq_grib_raw *raw);

/* text, and the number behind it where the arena (which may be NULL) has room for that. */
const char *sq_grib_numbered(struct sq_arena *arena, const char *text, unsigned number);

#endif
