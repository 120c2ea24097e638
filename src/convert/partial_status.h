/* squall status of NetCDF files that are not finished: what nobody has written yet. */
#ifndef SQ_CONVERT_PARTIAL_STATUS_H
#define SQ_CONVERT_PARTIAL_STATUS_H

#include "squall/context.h"
#include <stddef.h>

/* where: what was asked about; paths: of it, as sq_partial_find finds them. text and json: as of squall_status_report. */
int sq_partial_status(squall_context *ctx, const char *where, const char *const *paths, size_t count, char **ret_text, char **ret_json,
                      struct squall_error *err) SQUALL_CHECK;

#endif
