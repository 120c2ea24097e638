/* What the files of zip.h share: zip.c (members, by name and in the file) and zip_directory.c (what the archive says it has). */
#ifndef SQ_IO_ZIP_INTERNAL_H
#define SQ_IO_ZIP_INTERNAL_H

#include "io/zip.h"
#include <stdatomic.h>

/* APPNOTE 4.3.7, 4.3.16, 4.4.4, 4.4.5 */
enum { SQ_ZIP_LOCAL_BYTES = 30, SQ_ZIP_LOCAL = 0x04034b50, SQ_ZIP_END = 0x06054b50 };
enum { SQ_ZIP_ENCRYPTED = 1 << 0, SQ_ZIP_SIZES_BEHIND = 1 << 3, SQ_ZIP_STRONG = 1 << 6, SQ_ZIP_MASKED = 1 << 13 };
enum { SQ_ZIP_STORED = 0, SQ_ZIP_DEFLATED = 8 };

/* Why a member is not read. */
enum sq_zip_refusal {
    SQ_ZIP_GOOD,
    SQ_ZIP_BAD_NAME,
    SQ_ZIP_IS_ENCRYPTED,
    SQ_ZIP_METHOD,
    SQ_ZIP_LINK,
    SQ_ZIP_SPECIAL,
    SQ_ZIP_SIZES,
    SQ_ZIP_OUTSIDE,
    SQ_ZIP_OVERLAPS
};

struct sq_zip_member {
    uint64_t header; /* its own, in the file */
    uint64_t end;    /* where what lies behind it begins */
    uint64_t stored_bytes, size_bytes;
    _Atomic uint64_t data; /* where its bytes begin; 0: its own header has not been read */
    size_t name_at;        /* in names; in the directory's order */
    uint32_t crc32;
    uint16_t name_length;
    uint8_t refusal; /* enum sq_zip_refusal */
    bool deflated;
};

struct sq_zip {
    struct sq_source *source;
    struct sq_zip_member *members;
    size_t count, capacity;
    char *names;
    size_t names_bytes, names_capacity;
    char **problems;
    size_t problem_count, problem_capacity;
};

/*
 * Fill zip->members: in the order of names, each once (the last of a name counts), with the reason why one is not read. On failure too what is there is
 * sq_zip_close's.
 */
int sq_zip_directory_read(struct sq_zip *zip, struct squall_error *err) SQUALL_CHECK;

/* A field of the old record says what the new one does, or only that this one does. */
static inline bool sq_zip_field_agrees(uint64_t old, uint64_t old_max, uint64_t value)
{
    return old == value || old == old_max;
}

int sq_zip_compare_names(const char *a, size_t a_length, const char *b, size_t b_length);

#endif
