/* Zip archives for tests, right ones and wrong ones: a member at a time, each field of its two headers as the test says. */
#ifndef SQ_TESTS_SUPPORT_ZIP_WRITER_H
#define SQ_TESTS_SUPPORT_ZIP_WRITER_H

#include "support/unit.h"
#include <libdeflate.h>
#include <string.h>

struct zip_writer {
    uint8_t bytes[1 << 16], rows[1 << 15];
    size_t size, row_size, count;
};

/* What the headers of a member say; zip_member makes one that is right. */
struct zip_fields {
    const char *name;
    size_t name_length;
    unsigned host, flags, method;
    uint32_t crc32, stored_bytes, size_bytes, attributes;
};

static inline uint8_t *zip_put(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *to++ = (uint8_t)(value >> (8 * i));
    return to;
}

static inline struct zip_fields zip_member(const char *name, const void *bytes, size_t size)
{
    const uint32_t crc32 = libdeflate_crc32(0, bytes, size);
    return (struct zip_fields){.name = name,
                               .name_length = strlen(name),
                               .host = 3,
                               .crc32 = crc32,
                               .stored_bytes = (uint32_t)size,
                               .size_bytes = (uint32_t)size,
                               .attributes = 0100644u << 16};
}

/* The member's own header, and behind it its bytes as they are stored. Where that is, for zip_row. */
static inline size_t zip_local(struct zip_writer *z, const struct zip_fields *f, const void *stored, size_t stored_size)
{
    const size_t at = z->size;
    uint8_t *p = z->bytes + at;
    p = zip_put(zip_put(zip_put(zip_put(p, 0x04034b50, 4), 20, 2), f->flags, 2), f->method, 2);
    p = zip_put(zip_put(p, 0, 4), f->crc32, 4);
    p = zip_put(zip_put(zip_put(p, f->stored_bytes, 4), f->size_bytes, 4), f->name_length, 2);
    p = zip_put(p, 0, 2);
    memcpy(p, f->name, f->name_length);
    p += f->name_length;
    if (stored_size)
        memcpy(p, stored, stored_size);
    z->size = (size_t)(p - z->bytes) + stored_size;
    return at;
}

/* Its row in the directory. */
static inline void zip_row(struct zip_writer *z, const struct zip_fields *f, uint64_t at)
{
    uint8_t *p = z->rows + z->row_size;
    p = zip_put(zip_put(zip_put(p, 0x02014b50, 4), 20 | f->host << 8, 2), 20, 2);
    p = zip_put(zip_put(zip_put(p, f->flags, 2), f->method, 2), 0, 4);
    p = zip_put(zip_put(zip_put(p, f->crc32, 4), f->stored_bytes, 4), f->size_bytes, 4);
    p = zip_put(zip_put(zip_put(p, f->name_length, 2), 0, 4), 0, 4); /* extra field and comment; disk and internal attributes */
    p = zip_put(zip_put(p, f->attributes, 4), at, 4);
    memcpy(p, f->name, f->name_length);
    z->row_size = (size_t)(p - z->rows) + f->name_length;
    z->count++;
}

static inline void zip_add(struct zip_writer *z, const struct zip_fields *f, const void *stored)
{
    zip_row(z, f, zip_local(z, f, stored, f->stored_bytes));
}

static inline void zip_add_text(struct zip_writer *z, const char *name, const char *text)
{
    const struct zip_fields f = zip_member(name, text, strlen(text));
    zip_add(z, &f, text);
}

/* The directory and the end record, which say what the arguments say. */
static inline void zip_end_saying(struct zip_writer *z, size_t count, size_t directory_bytes, size_t directory_at)
{
    memcpy(z->bytes + z->size, z->rows, z->row_size);
    uint8_t *p = z->bytes + z->size + z->row_size;
    p = zip_put(zip_put(zip_put(zip_put(p, 0x06054b50, 4), 0, 4), count, 2), count, 2);
    p = zip_put(zip_put(zip_put(p, directory_bytes, 4), directory_at, 4), 0, 2);
    z->size = (size_t)(p - z->bytes);
}

static inline void zip_end(struct zip_writer *z)
{
    zip_end_saying(z, z->count, z->row_size, z->size);
}

#endif
