/*
 * Zip files (PKWARE's APPNOTE.TXT 6.3), read: their directory, and where a member's bytes lie. Members are never unpacked to disk, and a
 * stored one (method 0) is simply a range of the file. Whatever one program would read otherwise than another is refused: the
 * directory must be the one that the end record describes to the byte, and each member's own header must agree with it.
 */
#ifndef SQ_IO_ZIP_H
#define SQ_IO_ZIP_H

#include "io/source.h"
#include <stdbool.h>

struct sq_zip;

/* Where a member's bytes lie in the file. */
struct sq_zip_place {
    uint64_t offset, stored_bytes;
    uint64_t size_bytes; /* once it is unpacked; the same where it is not deflated */
    uint32_t crc32;      /* of the unpacked bytes */
    bool deflated;
};

/* Does the file begin as zip files do? false also where it cannot be read. */
bool sq_zip_is_zip(struct sq_source *source);

/*
 * Read the directory: memory for as many members as the file really lists. source stays the caller's and must outlive *ret (sq_zip_close).
 * Errors: SQUALL_ECORRUPT, SQUALL_EUNSUPPORTED (archives in several parts). A member that cannot be read is not one of them: it is
 * listed, told by sq_zip_problems, and refused by sq_zip_locate.
 */
int sq_zip_open(struct sq_source *source, struct sq_zip **ret, struct squall_error *err) SQUALL_CHECK;
void sq_zip_close(struct sq_zip *zip); /* NULL is accepted */

/*
 * Members are numbered in the byte order of their names, which are distinct: of several with one name the last in the directory counts, as
 * for Python's zipfile. Folders are no members.
 */
size_t sq_zip_count(const struct sq_zip *zip);
const char *sq_zip_name(const struct sq_zip *zip, size_t member, size_t *ret_length); /* no NUL behind it, and none in it */
uint64_t sq_zip_stored_bytes(const struct sq_zip *zip, size_t member);
/* Is the name a path that stays inside: parts between single slashes, none of them "." or "..", no backslash? */
bool sq_zip_name_is_path(const struct sq_zip *zip, size_t member);
/* The first member whose name is not before this text. */
size_t sq_zip_lower_bound(const struct sq_zip *zip, const char *text, size_t length);
bool sq_zip_find(const struct sq_zip *zip, const char *name, size_t *ret_member);

/* Errors name the archive, the member and the reason. Thread-safe; the member's own header is read the first time. */
int sq_zip_locate(struct sq_zip *zip, size_t member, struct sq_zip_place *ret, struct squall_error *err) SQUALL_CHECK;
/* A deflated member's stored bytes → dst, size_bytes; their checksum is compared. The error does not say which member. */
int sq_zip_inflate(const struct sq_zip_place *place, const void *stored, void *dst, struct squall_error *err) SQUALL_CHECK;
/* A stored member's bytes against their checksum; the error as above. */
int sq_zip_check(const struct sq_zip_place *place, const void *bytes, struct squall_error *err) SQUALL_CHECK;

/* A line for each member that is refused, the first of them; the last line counts the rest. */
const char *const *sq_zip_problems(const struct sq_zip *zip, size_t *ret_count);

#endif
