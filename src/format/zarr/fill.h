/* Fill values: the spellings of Zarr v3 ("Fill value" of each data type) and v2 → one element in memory. */
#ifndef SQ_FORMAT_ZARR_FILL_H
#define SQ_FORMAT_ZARR_FILL_H

#include "base/json.h"
#include "squall/array.h"
#include <stdbool.h>
#include <stdint.h>

enum { SQ_ZARR_FILL_BYTES = 8 };

/*
 * Any type but strings. A NULL value or JSON null gives zero. Numbers; for floats also "NaN", "Infinity", "-Infinity" and
 * the bits, "0x7fc00000"; for bool true, false, 0 and 1. false: the value is none of the type's.
 */
bool sq_zarr_fill_parse(enum squall_type type, const struct sq_json *value, uint8_t ret[SQ_ZARR_FILL_BYTES]);
/* Strings: a text; a number's digits, as zarr-python takes v2's 0; NULL and null: "". *ret: sq_free. SQUALL_ECORRUPT: none of these. */
int sq_zarr_fill_text(const struct sq_json *value, char **ret, struct squall_error *err) SQUALL_CHECK;

#endif
