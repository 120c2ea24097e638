/*
 * JSON over json-c, behind one small header: bounded when parsing (size, depth), keeps key order and numbers' own text,
 * takes uint64 above 2^63 and the bare NaN and Infinity that Zarr writes. A NULL value pointer means "not there" and is
 * accepted by every reader below, so that look-ups can be chained.
 */
#ifndef SQ_BASE_JSON_H
#define SQ_BASE_JSON_H

#include "base/text.h"
#include "squall/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sq_json_type {
    SQ_JSON_ABSENT, /* the pointer was NULL */
    SQ_JSON_NULL,
    SQ_JSON_BOOL,
    SQ_JSON_INT, /* an integer within int64 or uint64 */
    SQ_JSON_DOUBLE,
    SQ_JSON_STRING,
    SQ_JSON_ARRAY,
    SQ_JSON_OBJECT,
};

struct sq_json; /* one value; the root owns all below it */

#define SQ_JSON_LIMIT_BYTES ((size_t)128 << 20)
/* Integers that 64 bits do not hold become doubles. Limits for text from files: 64 levels, SQ_JSON_LIMIT_BYTES, 4 million values (some 70 bytes of memory each). Errors: SQUALL_ECORRUPT with the offset. *ret: free with sq_json_free. */
int sq_json_parse(const char *text, size_t length, struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;
void sq_json_free(struct sq_json *root);
/* A further owner of the value (reference count); each owner frees. */
struct sq_json *sq_json_share(const struct sq_json *value);

enum sq_json_type sq_json_type(const struct sq_json *v);
const struct sq_json *sq_json_get(const struct sq_json *object, const char *key); /* NULL: absent, or not an object */
const struct sq_json *sq_json_at(const struct sq_json *array, size_t index);
size_t sq_json_count(const struct sq_json *v);           /* members of an array or object, else 0 */
const char *sq_json_string(const struct sq_json *v);     /* NULL where it is no string */
size_t sq_json_string_bytes(const struct sq_json *v);    /* of a string: zero bytes may be among them */
bool sq_json_int(const struct sq_json *v, int64_t *ret); /* false where it is no integer within int64 */
bool sq_json_uint(const struct sq_json *v, uint64_t *ret);
bool sq_json_double(const struct sq_json *v, double *ret); /* any number */
bool sq_json_bool(const struct sq_json *v, bool *ret);
bool sq_json_equal(const struct sq_json *a, const struct sq_json *b);

/* Visit an object's members in their order; a non-zero return of visit ends the walk and is returned. */
typedef int sq_json_visit(void *user, const char *key, const struct sq_json *value, struct squall_error *err);
int sq_json_each(const struct sq_json *object, sq_json_visit *visit, void *user, struct squall_error *err) SQUALL_CHECK;

/* A member that is none of `known` (ended by NULL) and does not say "must_understand": false, as Zarr v3 has it; NULL: there is none. */
const char *sq_json_unknown_member(const struct sq_json *object, const char *const *known);

/*
 * Building. The constructors return NULL when memory is out; set and append take ownership of `value` whatever comes of
 * it, and pass a NULL value on as SQUALL_ENOMEM.
 */
struct sq_json *sq_json_new_object(void);
struct sq_json *sq_json_new_array(void);
struct sq_json *sq_json_new_string(const char *text);
struct sq_json *sq_json_new_int(int64_t value);
struct sq_json *sq_json_new_uint(uint64_t value);
struct sq_json *sq_json_new_double(double value); /* shortest text that reads back; NaN and infinities as bare NaN, Infinity, -Infinity */
struct sq_json *sq_json_new_bool(bool value);
struct sq_json *sq_json_new_null(void);
struct sq_json *sq_json_new_texts(const char *const *texts, size_t count); /* an array of them */
struct sq_json *sq_json_new_uints(const uint64_t *numbers, size_t count);
int sq_json_set(struct sq_json *object, const char *key, struct sq_json *value) SQUALL_CHECK; /* 0 or SQUALL_ENOMEM */
int sq_json_append(struct sq_json *array, struct sq_json *value) SQUALL_CHECK;
int sq_json_set_string(struct sq_json *object, const char *key, const char *text) SQUALL_CHECK;
int sq_json_set_int(struct sq_json *object, const char *key, int64_t value) SQUALL_CHECK;
int sq_json_set_double(struct sq_json *object, const char *key, double value) SQUALL_CHECK;
void sq_json_remove(struct sq_json *object, const char *key);
struct sq_json *sq_json_copy(const struct sq_json *v); /* deep */

/* Append the value's text: one line, or indented by two spaces. Deterministic: the same tree gives the same bytes. */
int sq_json_write(const struct sq_json *v, bool pretty, struct sq_text *out, struct squall_error *err) SQUALL_CHECK;

static inline void sq_json_cleanup(struct sq_json **v)
{
    sq_json_free(*v);
}
#define SQ_CLEANUP_JSON __attribute__((cleanup(sq_json_cleanup)))

#endif
