/*
 * An HDF5 file open for parsing (HDF5 File Format Specification 4.0, section II), and reading of its metadata. Addresses in the file count from
 * its superblock; messages tell bytes of the file. Every view is charged to its reader's budget, so that no file, whatever its parts say of
 * each other, is walked for ever.
 */
#ifndef SQ_FORMAT_HDF5_FILE_H
#define SQ_FORMAT_HDF5_FILE_H

#include "base/arena.h"
#include "base/cursor.h"
#include "base/error_internal.h"
#include "format/hdf5/table.h"
#include "io/source.h"
#include <stdbool.h>

#define SQ_HDF5_NOWHERE UINT64_MAX /* the undefined address; of lengths: unlimited */

struct sq_hdf5_shared_index;

/* Immutable once it is open (and its head dropped), and shared by threads. */
struct sq_hdf5_file {
    struct sq_source *source;
    uint64_t base; /* byte of address 0: behind a user block */
    uint64_t end;  /* of addresses: where the file ends */
    uint64_t root; /* header of the root group */
    uint8_t superblock_version;
    uint8_t offset_bytes, length_bytes; /* of addresses and lengths in the file: 2, 4 or 8 */
    bool marked_open;                   /* its writer had not closed it */
    uint64_t stated_end;                /* `end` by its own account; beyond that: it was cut off */
    uint8_t *head;                      /* its first bytes, read when it was opened; NULL, and 0: not kept */
    size_t head_bytes;
    struct sq_hdf5_shared_index *shared; /* the table of shared messages (IV.A.2.p), a row each kind; NULL: none */
    unsigned shared_count;
};

struct sq_hdf5_shared_index {
    uint16_t message_types; /* bit n: messages of type n */
    uint64_t heap;          /* fractal heap that they lie in */
};

/* Does an HDF5 superblock lie at byte 0, 512, 1024, 2048, …? */
bool sq_hdf5_is_file(struct sq_source *source);
/* source: taken over, also on failure. *ret: sq_hdf5_file_close. Errors: SQUALL_ECORRUPT, SQUALL_EUNSUPPORTED (parts of a file in several files). */
int sq_hdf5_file_open(struct sq_source *source, struct sq_hdf5_file **ret, struct squall_error *err) SQUALL_CHECK;
void sq_hdf5_file_close(struct sq_hdf5_file *file); /* NULL is accepted */
/* Free the first bytes, into which views point: when its first reader is done, and before threads share it. What is read later is read by windows. */
void sq_hdf5_file_drop_head(struct sq_hdf5_file *file);

struct sq_hdf5_heap;

/* A walk over metadata by one thread: what it read, kept until it is done, and how much more it may look at. */
struct sq_hdf5_reader {
    const struct sq_hdf5_file *file;
    struct sq_arena *memory;
    uint64_t *budget_bytes;             /* in its memory, or another's that it spends with; 0: it is spent, and the walk is over */
    struct sq_hdf5_table windows;       /* what was read of the file, by block */
    struct sq_hdf5_table collections;   /* global heap collections, by address */
    struct sq_hdf5_table checked;       /* blocks whose checksum was found to hold, by address */
    struct sq_hdf5_table decoded;       /* blocks that had gone through filters, by address */
    struct sq_hdf5_heap **shared_heaps; /* of the file's shared messages, as its table has them; NULL: not opened yet */
};

int sq_hdf5_reader_init(struct sq_hdf5_reader *r, const struct sq_hdf5_file *file, struct squall_error *err) SQUALL_CHECK;
void sq_hdf5_reader_done(struct sq_hdf5_reader *r);

/*
 * size_bytes at an address, as long as the reader lives. Small reads are served from larger ones. Errors: SQUALL_ECORRUPT (beyond the file;
 * the budget is spent), SQUALL_EIO.
 */
int sq_hdf5_view(struct sq_hdf5_reader *r, uint64_t address, size_t size_bytes, const uint8_t **ret, struct squall_error *err) SQUALL_CHECK;
/* A cursor over what is at an address, and behind it: size_bytes, or fewer where the file ends. */
int sq_hdf5_view_up_to(struct sq_hdf5_reader *r, uint64_t address, size_t size_bytes, struct sq_cursor *ret,
                       struct squall_error *err) SQUALL_CHECK;
/* Charge work that reads nothing. */
int sq_hdf5_spend(struct sq_hdf5_reader *r, uint64_t bytes, struct squall_error *err) SQUALL_CHECK;
/* Room for `count` elements in the reader's memory, zeroed, and charged: what a file makes of its bytes is bounded, too. */
int sq_hdf5_room(struct sq_hdf5_reader *r, void **ret, size_t count, size_t size_bytes, struct squall_error *err) SQUALL_CHECK;
#define SQ_HDF5_ROOM(r, ret, count, err) sq_hdf5_room((r), (void **)(ret), (count), sizeof **(ret), (err))
/* The same, for one more in an array in the reader's memory that doubles: *list has room for *capacity of them. */
int sq_hdf5_grow(struct sq_hdf5_reader *r, void **list, size_t *capacity, size_t count, size_t size_bytes,
                 struct squall_error *err) SQUALL_CHECK;
#define SQ_HDF5_GROW(r, list, capacity, count, err) sq_hdf5_grow((r), (void **)&(list), &(capacity), (count), sizeof *(list), (err))

uint64_t sq_hdf5_take_address(struct sq_cursor *c, const struct sq_hdf5_file *f); /* all ones: SQ_HDF5_NOWHERE */
uint64_t sq_hdf5_take_length(struct sq_cursor *c, const struct sq_hdf5_file *f);  /* all ones: SQ_HDF5_NOWHERE */

/* Do the 4 bytes at the end hold the checksum of those before (Jenkins' lookup3, IV.A.1.b)? */
bool sq_hdf5_checksum_holds(const uint8_t *bytes, size_t size_bytes);
bool sq_hdf5_checksum_is(const uint8_t *bytes, size_t size_bytes, const uint8_t *stored); /* the one that is stored there */
uint32_t sq_hdf5_checksum(const uint8_t *bytes, size_t size_bytes);

/* Put "FILE: byte N: " before the message; returns err's status, or `status` where err is NULL. */
int sq_hdf5_error_at(const struct sq_hdf5_file *file, uint64_t address, int status, struct squall_error *err);
/* As in base/error_internal.h: static analysis must know that a recorded failure is never 0. */
#if defined(__clang_analyzer__) && !defined(SQ_FORMAT_HDF5_FILE_C)
#define sq_hdf5_error_at(file, address, status, err) ((void)(file), (void)(address), sq_error_within(err, status, "at"))
#endif
#define SQ_HDF5_DAMAGED(file, address, err, ...)     sq_hdf5_error_at(file, address, sq_error(err, SQUALL_ECORRUPT, __VA_ARGS__), err)
#define SQ_HDF5_UNSUPPORTED(file, address, err, ...) sq_hdf5_error_at(file, address, sq_error(err, SQUALL_EUNSUPPORTED, __VA_ARGS__), err)

#endif
