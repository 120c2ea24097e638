/* What the fields of an index have in common, for whoever puts them in order. */
#ifndef SQ_CUBE_GRIB_TABLES_H
#define SQ_CUBE_GRIB_TABLES_H

#include "base/text.h"
#include "format/grib/index.h"

/*
 * JSON: {"products": [{ecCodes' keys}, …], "grids": [{cfgrib's attributes}, …], "problems": [a line, …]}; rows as in the index. cfgrib's names begin
 * with GRIB_ where other parts of this library know them so.
 */
int sq_grib_tables(const struct sq_grib_index *index, struct sq_text *out, struct squall_error *err) SQUALL_CHECK;

#endif
