/* References (IV.A.2.d, class 7) as texts: the path of what they lead to. */
#ifndef SQ_FORMAT_HDF5_REFERENCE_H
#define SQ_FORMAT_HDF5_REFERENCE_H

#include "format/hdf5/tree.h"

/*
 * "/group/t2m" of an object; "/group/t2m[0:3, 2:4]" of a region of one, with ";" between blocks or points where it has several; "/group/t2m:units" of an
 * attribute. Nothing is added where it leads nowhere, or into another file.
 */
int sq_hdf5_reference_text(struct sq_hdf5_reader *r, const struct sq_hdf5_tree *tree, const struct sq_hdf5_type *type,
                           const uint8_t *stored, struct sq_text *out, struct squall_error *err) SQUALL_CHECK;

#endif
