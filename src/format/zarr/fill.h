/* Fill values: the spellings of Zarr v3 ("Fill value" of each data type) and v2 → one element in memory. */
#ifndef SQ_FORMAT_ZARR_FILL_H
#define SQ_FORMAT_ZARR_FILL_H

#include "base/json.h"
#include "format/zarr/types.h"
#include "squall/array.h"
#include <stdbool.h>
#include <stdint.h>

enum { SQ_ZARR_FILL_BYTES = 16 };

/*
 * Types that leave nothing open and are not of variable length. A NULL value or JSON null gives zero, of times "not a time". Numbers, also as texts;
 * for floats "NaN", "Infinity", "-Infinity" and the bits, "0x7fc00000"; for complex numbers a pair of these; for bool true, false, 0 and 1; for times
 * "NaT". false: the value is none of the type's.
 */
bool sq_zarr_fill_parse(enum squall_type type, const struct sq_json *value, uint8_t ret[SQ_ZARR_FILL_BYTES]);
/*
 * Any type; ret has its element_bytes. Bytes and structures: base64, or v3's list of bytes, or an object with a value for each field; texts: a text, or a
 * number's digits. Of types of variable length ret is a struct squall_bytes, whose memory is the caller's: sq_zarr_fill_done.
 * SQUALL_ECORRUPT: the value is none of the type's.
 */
int sq_zarr_fill_element(const struct sq_zarr_type *type, const struct sq_json *value, void *ret, struct squall_error *err) SQUALL_CHECK;
void sq_zarr_fill_done(enum squall_type type, void *element); /* what it points at */

#endif
