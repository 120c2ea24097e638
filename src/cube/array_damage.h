/*
 * Damage of arrays' sources. What of it concerns variables is the units' business (convert/array_write.c); a variable that is written whole and could not be
 * read is told of in the store's schema, "failed": name → why, and of one along the append dimension at which places. So later runs try it again.
 */
#ifndef SQ_CUBE_ARRAY_DAMAGE_H
#define SQ_CUBE_ARRAY_DAMAGE_H

#include "base/json.h"
#include "squall/error.h"
#include <stdbool.h>

/* Is it the bytes' fault, so that everything else may be read? */
bool sq_array_is_damage(int status);
/* What a failed read says, without the path, and the array once. sq_free; NULL: out of memory */
char *sq_array_damage_text(const char *path, const char *message) __attribute__((warn_unused_result));

/* Of a schema. why NULL: it has not failed (any more). places: "4-7,9", NULL: all of it. */
int sq_schema_set_failed(struct sq_json *schema, const char *name, const char *why, const char *places,
                         struct squall_error *err) SQUALL_CHECK;
const char *sq_schema_failed(const struct sq_json *schema, const char *name); /* why; NULL: it has not */
const char *sq_schema_failed_places(const struct sq_json *schema, const char *name);

#endif
