/* Help for tests that put together HDF5 files by hand, byte for byte (HDF5 File Format Specification). */
#ifndef SQ_TESTS_SUPPORT_HDF5_WRITER_H
#define SQ_TESTS_SUPPORT_HDF5_WRITER_H

#include "support/unit.h"

#include "format/hdf5/file.h"
#include <stdlib.h>
#include <string.h>

struct hdf5_bytes {
    uint8_t data[1 << 16];
    size_t size;
};

static inline void put(struct hdf5_bytes *b, uint64_t value, unsigned size_bytes)
{
    assert_true(b->size + size_bytes <= sizeof b->data);
    for (unsigned i = 0; i < size_bytes; i++)
        b->data[b->size++] = (uint8_t)(i < 8 ? value >> 8 * i : 0);
}

static inline void put_text(struct hdf5_bytes *b, const char *text)
{
    for (; *text; text++)
        put(b, (uint8_t)*text, 1);
}

/* The checksum of all from `begin` on. */
static inline void put_checksum(struct hdf5_bytes *b, size_t begin)
{
    put(b, sq_hdf5_checksum(b->data + begin, b->size - begin), 4);
}

/* II.A, version 2 or 3; 48 bytes. Addresses count from where it begins. */
static inline void put_superblock(struct hdf5_bytes *b, unsigned version, unsigned flags, uint64_t extension, uint64_t end, uint64_t root)
{
    const size_t begin = b->size;
    put(b, UINT64_C(0x0a1a0a0d46444889), 8);
    put(b, version, 1);
    put(b, 8, 1);
    put(b, 8, 1);
    put(b, flags, 1);
    put(b, 0, 8);
    put(b, extension, 8);
    put(b, end, 8);
    put(b, root, 8);
    put_checksum(b, begin);
}

enum { HDF5_SUPERBLOCK_BYTES = 48 };

/* IV.A.1.b: an object header whose messages are these bytes. */
static inline void put_object(struct hdf5_bytes *b, const struct hdf5_bytes *messages)
{
    const size_t begin = b->size;
    put_text(b, "OHDR");
    put(b, 2, 1);
    put(b, 1, 1); /* a size of two bytes */
    put(b, messages->size, 2);
    for (size_t i = 0; i < messages->size; i++)
        put(b, messages->data[i], 1);
    put_checksum(b, begin);
}

static inline void put_message(struct hdf5_bytes *b, unsigned type, unsigned flags, const struct hdf5_bytes *body)
{
    put(b, type, 1);
    put(b, body->size, 2);
    put(b, flags, 1);
    for (size_t i = 0; i < body->size; i++)
        put(b, body->data[i], 1);
}

/* A file in memory, of exactly these bytes. */
struct hdf5_in_memory {
    uint8_t *bytes;
    struct sq_hdf5_file *file;
};

static inline int hdf5_open(struct hdf5_in_memory *m, const void *bytes, size_t size_bytes, struct squall_error *err)
{
    struct sq_source *source;
    *m = (struct hdf5_in_memory){.bytes = malloc(size_bytes ? size_bytes : 1)};
    assert_non_null(m->bytes);
    memcpy(m->bytes, bytes, size_bytes);
    assert_int_equal(sq_source_open_memory(m->bytes, size_bytes, "x.h5", &source, NULL), 0);
    return sq_hdf5_file_open(source, &m->file, err);
}

static inline void hdf5_close(struct hdf5_in_memory *m)
{
    sq_hdf5_file_close(m->file);
    free(m->bytes);
}

#endif
