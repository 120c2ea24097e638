/* CF grid mapping attributes (CF conventions, appendix F). */
#ifndef SQ_FORMAT_GRIB_GRID_MAPPING_H
#define SQ_FORMAT_GRIB_GRID_MAPPING_H

#include "format/grib/grid_plane.h"

int sq_grid_mapping_rotated(const struct sq_grid_definition *g, struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;
/* of a projection that is possible */
int sq_grid_mapping_projected(const struct sq_grid_projection *p, struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;

#endif
