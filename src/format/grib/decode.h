/*
 * A field's values: unpack → scale → bitmap → scan order, in one pass where the packing allows.
 * value = (R + X·2^E)·10^−D in double, then cast to float (so float output is the cast of the double output, bit for bit).
 */
#ifndef SQ_FORMAT_GRIB_DECODE_H
#define SQ_FORMAT_GRIB_DECODE_H

#include "format/grib/frame.h"
#include "format/grib/grid.h"

struct sq_grib_scratch; /* buffers, libdeflate, OpenJPEG …; for one thread at a time, reused */
struct sq_grib_scratch *sq_grib_scratch_new(void);
void sq_grib_scratch_free(struct sq_grib_scratch *scratch);

/* How a field is packed: enough for a listing and for a plan. */
struct sq_grib_packing {
    uint16_t template_number; /* edition 2: 5.N; edition 1: 1000 simple, 1001 second order, 1002 other */
    uint8_t bits_per_value;
    bool has_bitmap;
    const char *name;                    /* ecCodes' packingType: "grid_simple"; static */
    const char *unsupported;             /* NULL, or why it cannot be decoded; static */
    uint64_t value_count;                /* packed values; edition 1: as many as the section can hold */
    double reference_value;              /* R */
    int16_t binary_scale, decimal_scale; /* E, D */
    bool is_float64;                     /* IEEE 64 bit: double output holds more than float */
};

/* From the heads alone (struct sq_grib_found, section pointers 5, 6, 7 with their first bytes; edition 1: 1, 6, 7). */
struct sq_grib_found;
int sq_grib_packing_of(const struct sq_grib_found *found, struct sq_grib_packing *ret, struct squall_error *err) SQUALL_CHECK;
/* The least and greatest value that the packing parameters allow; false where they bound nothing (IEEE, complex, JPEG 2000). */
bool sq_grib_packing_range(const struct sq_grib_packing *packing, double *ret_least, double *ret_greatest);

/* The most points that a field may have: so many that no message can make its reader ask for more than 4 GiB. */
#define SQ_GRIB_POINT_LIMIT (UINT64_C(1) << 29)

/*
 * Can the field be decoded, as far as its sections' heads and lengths tell? Packing, grid and counts must agree: point_count values
 * fit what the sections hold. To be asked before memory for a field is allocated; sq_grib_decode asks again.
 */
int sq_grib_decode_check(const struct sq_grib_packing *packing, const struct sq_grib_frame *frame, const struct sq_grib_grid *grid,
                         struct squall_error *err) SQUALL_CHECK;

enum sq_grib_output { SQ_GRIB_FLOAT32, SQ_GRIB_FLOAT64 };

/*
 * Decode one field of a message into dst: grid->point_count values, missing as NaN; for a rectangular grid rows × columns in C order with i
 * ascending (−i, boustrophedon and column-major order undone), rows in the file's order, or reversed where flip_rows is set.
 *
 * message, size   the whole message
 * frame           of the field (sq_grib_frame_of)
 * Errors: SQUALL_EUNSUPPORTED (named), SQUALL_ECORRUPT with the offset inside the message; dst may then be partly written.
 */
int sq_grib_decode(const uint8_t *message, size_t size, const struct sq_grib_frame *frame, const struct sq_grib_grid *grid, bool flip_rows,
                   struct sq_grib_scratch *scratch, enum sq_grib_output output, void *dst, struct squall_error *err) SQUALL_CHECK;

#endif
