/* What attributes hold, as JSON, and what numpy is to make of it where JSON does not tell. */
#ifndef SQ_FORMAT_HDF5_ATTRIBUTE_JSON_H
#define SQ_FORMAT_HDF5_ATTRIBUTE_JSON_H

#include "base/json.h"
#include "format/hdf5/tree.h"

/*
 * The value. An array of one dimension and one element is given as that element, one without elements as [], of texts as "". References are the
 * path of what they refer to, null where that is nothing; other values as squall_array_info has them. Texts that are no UTF-8 are taken
 * for Latin-1. numpy_type is added to: as sq_hdf5_type_numpy has it; nothing for texts, sequences and references, which JSON tells.
 *
 * *ret: sq_json_free. Errors: SQUALL_ECORRUPT, SQUALL_EUNSUPPORTED: this attribute cannot be told, others can.
 */
int sq_hdf5_attribute_json(struct sq_hdf5_tree *tree, const struct sq_hdf5_attribute *attribute, struct sq_json **ret,
                           struct sq_text *numpy_type, struct squall_error *err) SQUALL_CHECK;

/*
 * Those of a group or dataset of this name, as two objects: name → value, and name → numpy's type. One that cannot be told is added to the
 * tree's problems. *ret, *ret_types: sq_free.
 */
int sq_hdf5_attributes_json(struct sq_hdf5_tree *tree, const char *name, const struct sq_hdf5_attributes *attributes, char **ret,
                            char **ret_types, struct squall_error *err) SQUALL_CHECK;

#endif
