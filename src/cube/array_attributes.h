/* Attributes and fill values of arrays, as a Zarr v3 store spells them for xarray and zarr-python. */
#ifndef SQ_CUBE_ARRAY_ATTRIBUTES_H
#define SQ_CUBE_ARRAY_ATTRIBUTES_H

#include "base/arena.h"
#include "base/json.h"
#include "cube/cube.h"
#include "engine/array.h"

/*
 * The array's attributes; `_FillValue` of floats as base64, and without one that the type cannot hold. Of Zarr v2 the fill value is one of them: there it says what is missing, and in v3 it does
 * not. *ret: the caller's.
 */
int sq_array_attributes(const struct squall_array *a, struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;
/* Its fill value; NULL where it is the type's own. *ret: the caller's. */
int sq_array_fill_value(const struct squall_array *a, struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;
/*
 * SQUALL_EREFUSED: units, scale, flags or another attribute that says what values mean, or what is missing, is another than in the store. Of
 * elements that are cast it does not matter what is missing, of those that are unpacked neither how they are packed.
 */
enum sq_array_meaning { SQ_MEANING_ALL, SQ_MEANING_CAST, SQ_MEANING_UNPACKED };
int sq_array_compare_meaning(const char *name, const struct sq_json *of_source, const struct sq_json *of_store, enum sq_array_meaning how,
                             struct squall_error *err) SQUALL_CHECK;
/* Has it a `_FillValue` that no element of its type can be? */
bool sq_array_fill_is_unusable(const struct squall_array *a);
/* The numbers that `_FillValue` and `missing_value` call missing. *ret: the arena's. */
int sq_array_missing_values(const struct squall_array *a, struct sq_arena *arena, double **ret, size_t *ret_count,
                            struct squall_error *err) SQUALL_CHECK;
/* Of integers: what they stand for. Missing values are told as elements of packing.type then. */
int sq_array_packing(const struct squall_array *a, struct sq_cube_packing *ret, double *missing, size_t missing_count,
                     struct squall_error *err) SQUALL_CHECK;
/* Removes what is true of packed elements only. */
void sq_array_drop_packing(struct sq_json *attributes);
/* Removes `_FillValue` and `missing_value`, where they are nothing but numbers, which sq_array_missing_values tells. */
void sq_array_drop_missing(struct sq_json *attributes);

#endif
