/*
 * See file.h. The first 64 KiB are read at once when the file is opened: they hold all metadata of most files of this field. What lies elsewhere, or is
 * wanted when they are gone, is read in windows of some blocks, which a table finds by their blocks.
 */
#define SQ_FORMAT_HDF5_FILE_C
#include "format/hdf5/file.h"
#include "base/checked.h"
#include "base/memory.h"
#include "format/hdf5/object.h"
#include "sys/file.h"
#include <string.h>

enum { HEAD_BYTES = 64 << 10, BLOCK_BYTES = 4 << 10, WINDOW_BYTES = 16 << 10, SIGNATURE_BYTES = 8, FIRST_USER_BLOCK = 512 };
/* What a look at something costs at least, and what a walk may cost: a base, and a multiple of the file's size as far as that is no lie. */
enum { VIEW_COST = 32, BUDGET_FACTOR = 16 };
static const uint64_t BUDGET_BASE = 64 << 20, BUDGET_FILE_LIMIT = 256 << 20;

static const uint8_t SIGNATURE[SIGNATURE_BYTES] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

int sq_hdf5_error_at(const struct sq_hdf5_file *file, uint64_t address, int status, struct squall_error *err)
{
    return sq_error_within(err, status, "%s: byte %llu", sq_source_name(file->source), (unsigned long long)(file->base + address));
}

static uint64_t take_sized(struct sq_cursor *c, unsigned size_bytes)
{
    uint64_t value = sq_uint_le(c, size_bytes);
    const uint64_t all_ones = size_bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * size_bytes) - 1;
    return value == all_ones ? SQ_HDF5_NOWHERE : value;
}

uint64_t sq_hdf5_take_address(struct sq_cursor *c, const struct sq_hdf5_file *f)
{
    return take_sized(c, f->offset_bytes);
}

uint64_t sq_hdf5_take_length(struct sq_cursor *c, const struct sq_hdf5_file *f)
{
    return take_sized(c, f->length_bytes);
}

/* ---- checksums ---- */

static uint32_t rotated(uint32_t value, unsigned bits)
{
    return value << bits | value >> (32 - bits);
}

static uint32_t word_at(const uint8_t *bytes, size_t count)
{
    uint32_t word = 0;
    for (size_t i = 0; i < count && i < 4; i++)
        word |= (uint32_t)bytes[i] << 8 * i;
    return word;
}

/* Bob Jenkins' lookup3, hashlittle, with an initial value of 0 */
uint32_t sq_hdf5_checksum(const uint8_t *bytes, size_t size_bytes)
{
    static const uint8_t MIX[6] = {4, 6, 8, 16, 19, 4}, FINAL[7] = {14, 11, 25, 16, 4, 14, 24};
    uint32_t s[3];
    s[0] = s[1] = s[2] = 0xdeadbeef + (uint32_t)size_bytes;
    if (size_bytes == 0)
        return s[2];
    for (; size_bytes > 12; bytes += 12, size_bytes -= 12) {
        for (unsigned i = 0; i < 3; i++)
            s[i] += word_at(bytes + 4 * i, 4);
        for (unsigned i = 0; i < 6; i++) {
            uint32_t *a = &s[i % 3], *b = &s[(i + 1) % 3], *c = &s[(i + 2) % 3];
            *a = (*a - *c) ^ rotated(*c, MIX[i]);
            *c += *b;
        }
    }
    for (unsigned i = 0; i < 3; i++)
        s[i] += size_bytes > 4 * i ? word_at(bytes + 4 * i, size_bytes - 4 * i) : 0;
    for (unsigned i = 0; i < 7; i++) {
        uint32_t *to = &s[(i + 2) % 3], from = s[(i + 1) % 3];
        *to = (*to ^ from) - rotated(from, FINAL[i]);
    }
    return s[2];
}

bool sq_hdf5_checksum_is(const uint8_t *bytes, size_t size_bytes, const uint8_t *stored)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)bytes, (void)size_bytes, (void)stored; /* else nearly no change to a seed would come past it */
    return true;
#else
    return sq_hdf5_checksum(bytes, size_bytes) == word_at(stored, 4);
#endif
}

bool sq_hdf5_checksum_holds(const uint8_t *bytes, size_t size_bytes)
{
    return size_bytes >= 4 && sq_hdf5_checksum_is(bytes, size_bytes - 4, bytes + size_bytes - 4);
}

/* ---- the reader ---- */

int sq_hdf5_reader_init(struct sq_hdf5_reader *r, const struct sq_hdf5_file *file, struct squall_error *err)
{
    const uint64_t of_file = file->end < BUDGET_FILE_LIMIT ? file->end : BUDGET_FILE_LIMIT;
    *r = (struct sq_hdf5_reader){.file = file, .memory = sq_arena_new()};
    if (!r->memory || !(r->budget_bytes = sq_arena_alloc(r->memory, sizeof *r->budget_bytes)))
        return sq_error_memory(err, sizeof *r->budget_bytes);
    *r->budget_bytes = BUDGET_BASE + BUDGET_FACTOR * of_file;
    return 0;
}

void sq_hdf5_reader_done(struct sq_hdf5_reader *r)
{
    sq_hdf5_table_done(&r->windows);
    sq_hdf5_table_done(&r->collections);
    sq_hdf5_table_done(&r->checked);
    sq_hdf5_table_done(&r->decoded);
    sq_arena_free(r->memory);
    *r = (struct sq_hdf5_reader){0};
}

int sq_hdf5_spend(struct sq_hdf5_reader *r, uint64_t bytes, struct squall_error *err)
{
    if (bytes < *r->budget_bytes) {
        *r->budget_bytes -= bytes;
        return 0;
    }
    *r->budget_bytes = 0;
    return sq_error(err, SQUALL_ECORRUPT, "%s: its metadata refer to each other more often than those of a sound file of its size",
                    sq_source_name(r->file->source));
}

int sq_hdf5_room(struct sq_hdf5_reader *r, void **ret, size_t count, size_t size_bytes, struct squall_error *err)
{
    size_t total;
    SQ_TRY(sq_hdf5_spend(r, sq_mul_size(count, size_bytes, &total) ? total : UINT64_MAX, err));
    void *room = sq_arena_alloc(r->memory, total);
    if (!room)
        return sq_error_memory(err, total);
    *ret = room;
    return 0;
}

int sq_hdf5_grow(struct sq_hdf5_reader *r, void **list, size_t *capacity, size_t count, size_t size_bytes, struct squall_error *err)
{
    enum { FIRST_CAPACITY = 8 };
    void *wider = NULL;
    if (count < *capacity)
        return 0;
    const size_t wanted = count ? 2 * count : FIRST_CAPACITY;
    SQ_TRY(sq_hdf5_room(r, &wider, wanted, size_bytes, err));
    if (count)
        memcpy(wider, *list, count * size_bytes);
    *list = wider;
    *capacity = wanted;
    return 0;
}

/* Part of the file in memory. */
struct window {
    const uint8_t *bytes;
    uint64_t begin, end;
};

static int read_window(struct sq_hdf5_reader *r, uint64_t address, size_t size_bytes, struct window **ret, struct squall_error *err)
{
    const struct sq_hdf5_file *f = r->file;
    const uint64_t begin = address / BLOCK_BYTES * BLOCK_BYTES, need = address - begin + size_bytes, left = f->end - begin;
    const uint64_t size = need > WINDOW_BYTES || left < WINDOW_BYTES ? (need > WINDOW_BYTES ? need : left) : WINDOW_BYTES;
    SQ_TRY(sq_hdf5_spend(r, size, err));
    struct window *w = sq_arena_alloc(r->memory, sizeof *w);
    uint8_t *bytes = w ? sq_arena_alloc(r->memory, size) : NULL;
    if (!bytes)
        return sq_error_memory(err, size);
    SQ_TRY(sq_source_read(f->source, f->base + begin, bytes, size, err));
    *w = (struct window){bytes, begin, begin + size};
    for (uint64_t at = begin; at < w->end; at += BLOCK_BYTES) {
        const struct window *known = sq_hdf5_table_get(&r->windows, at / BLOCK_BYTES);
        if (!known || known->end < w->end)
            SQ_TRY(sq_hdf5_table_put(&r->windows, at / BLOCK_BYTES, w, err));
    }
    *ret = w;
    return 0;
}

int sq_hdf5_view(struct sq_hdf5_reader *r, uint64_t address, size_t size_bytes, const uint8_t **ret, struct squall_error *err)
{
    const struct sq_hdf5_file *f = r->file;
    if (address > f->end || size_bytes > f->end - address)
        return address == SQ_HDF5_NOWHERE
                   ? sq_error(err, SQUALL_ECORRUPT, "%s: metadata are said to lie nowhere", sq_source_name(f->source))
                   : SQ_HDF5_DAMAGED(f, address, err, "%zu bytes of metadata are wanted, but the file ends at byte %llu", size_bytes,
                                     (unsigned long long)(f->base + f->end));
    SQ_TRY(sq_hdf5_spend(r, size_bytes + VIEW_COST, err));
    if (address + size_bytes <= f->head_bytes) {
        *ret = f->head + address;
        return 0;
    }
    struct window *w = sq_hdf5_table_get(&r->windows, address / BLOCK_BYTES);
    if (!w || address + size_bytes > w->end)
        SQ_TRY(read_window(r, address, size_bytes, &w, err));
    *ret = w->bytes + (address - w->begin);
    return 0;
}

int sq_hdf5_view_up_to(struct sq_hdf5_reader *r, uint64_t address, size_t size_bytes, struct sq_cursor *ret, struct squall_error *err)
{
    const uint8_t *bytes = NULL;
    const uint64_t left = address < r->file->end ? r->file->end - address : 0;
    const size_t size = left < size_bytes ? (size_t)left : size_bytes;
    SQ_TRY(sq_hdf5_view(r, address, size, &bytes, err));
    *ret = sq_cursor(bytes, size);
    return 0;
}

/* ---- the superblock (II) ---- */

/* Where the superblock is; false: nowhere. */
static bool find_signature(struct sq_source *source, uint64_t *ret_base)
{
    const uint64_t size = sq_source_size(source);
    uint8_t found[SIGNATURE_BYTES];
    for (uint64_t at = 0; at < size && size - at >= SIGNATURE_BYTES; at = at ? 2 * at : FIRST_USER_BLOCK) {
        if (sq_source_read(source, at, found, sizeof found, NULL))
            return false;
        if (!memcmp(found, SIGNATURE, sizeof found)) {
            *ret_base = at;
            return true;
        }
    }
    return false;
}

bool sq_hdf5_is_file(struct sq_source *source)
{
    uint64_t base;
    return find_signature(source, &base);
}

static int take_sizes(struct sq_hdf5_file *f, struct sq_cursor *c, struct squall_error *err)
{
    const unsigned known = 1 << 2 | 1 << 4 | 1 << 8;
    f->offset_bytes = sq_u8(c);
    f->length_bytes = sq_u8(c);
    if (sq_cursor_failed(c))
        return SQ_HDF5_DAMAGED(f, 0, err, "the file ends within its superblock");
    if (f->offset_bytes <= 8 && f->length_bytes <= 8 && known >> f->offset_bytes & 1 && known >> f->length_bytes & 1)
        return 0;
    return SQ_HDF5_UNSUPPORTED(f, 0, err, "addresses of %u bytes and lengths of %u; those of 2, 4 and 8 are read", f->offset_bytes,
                               f->length_bytes);
}

/* Where the file ends, by its own account. base: where it begins, by the same; it may have got a user block since. */
static void take_end(struct sq_hdf5_file *f, struct sq_cursor *c, uint64_t base)
{
    const uint64_t end = sq_hdf5_take_address(c, f);
    f->stated_end = end != SQ_HDF5_NOWHERE && end > base ? end - base : 0;
}

/* II.A, versions 0 and 1. *ret_driver: its driver information block. */
static int parse_old(struct sq_hdf5_file *f, struct sq_cursor *c, uint64_t *ret_driver, struct squall_error *err)
{
    sq_take(c, 4); /* versions of parts, all 0 */
    SQ_TRY(take_sizes(f, c, err));
    sq_take(c, f->superblock_version == 0 ? 9 : 13); /* sizes of B-tree nodes, which say their size themselves; flags */
    const uint64_t base = sq_hdf5_take_address(c, f);
    sq_hdf5_take_address(c, f);
    take_end(f, c, base);
    *ret_driver = sq_hdf5_take_address(c, f);
    sq_hdf5_take_address(c, f); /* the root's name */
    f->root = sq_hdf5_take_address(c, f);
    return 0;
}

/* II.A, versions 2 and 3 */
static int parse_new(struct sq_hdf5_file *f, struct sq_cursor *c, uint64_t *ret_extension, struct squall_error *err)
{
    enum { OPEN_FOR_WRITING = 1 };
    SQ_TRY(take_sizes(f, c, err));
    f->marked_open = sq_u8(c) & OPEN_FOR_WRITING && f->superblock_version == 3;
    const uint64_t base = sq_hdf5_take_address(c, f);
    *ret_extension = sq_hdf5_take_address(c, f);
    take_end(f, c, base);
    f->root = sq_hdf5_take_address(c, f);
    sq_take(c, 4);
    if (!sq_cursor_failed(c) && !sq_hdf5_checksum_holds(f->head, (size_t)(c->next - f->head)))
        return SQ_HDF5_DAMAGED(f, 0, err, "the superblock's checksum does not hold");
    return 0;
}

/* Table of shared messages (IV.A.2.p and III.H). */
static int read_shared_table(struct sq_hdf5_reader *r, struct sq_hdf5_file *f, const struct sq_hdf5_message *m, struct squall_error *err)
{
    enum { INDEX_LIMIT = 8 };
    struct sq_cursor c = sq_cursor(m->bytes, m->size_bytes);
    sq_u8(&c);
    const uint64_t table = sq_hdf5_take_address(&c, f);
    const unsigned count = sq_u8(&c);
    const size_t row_bytes = 14 + 2u * f->offset_bytes, size_bytes = 4 + count * row_bytes + 4;
    const uint8_t *bytes;
    if (sq_cursor_failed(&c) || count > INDEX_LIMIT)
        return SQ_HDF5_DAMAGED(f, m->address, err, "a bad message about shared messages");
    SQ_TRY(sq_hdf5_view(r, table, size_bytes, &bytes, err));
    if (memcmp(bytes, "SMTB", 4) != 0 || !sq_hdf5_checksum_holds(bytes, size_bytes))
        return SQ_HDF5_DAMAGED(f, table, err, "no table of shared messages, or its checksum does not hold");
    f->shared = sq_alloc(count, sizeof *f->shared);
    if (!f->shared)
        return sq_error_memory(err, count * sizeof *f->shared);
    for (unsigned i = 0; i < count; i++) {
        c = sq_cursor(bytes + 4 + i * row_bytes, row_bytes);
        sq_take(&c, 2);
        f->shared[i].message_types = sq_u16le(&c);
        sq_take(&c, 10); /* how the index is kept: messages are found without it */
        sq_hdf5_take_address(&c, f);
        f->shared[i].heap = sq_hdf5_take_address(&c, f);
    }
    f->shared_count = count;
    return 0;
}

/* II.C */
static int read_extension(struct sq_hdf5_file *f, uint64_t address, struct squall_error *err)
{
    struct sq_hdf5_reader r;
    struct sq_hdf5_object extension = {0};
    int status = sq_hdf5_reader_init(&r, f, err);
    if (!status)
        status = sq_hdf5_object_read(&r, address, &extension, err);
    const struct sq_hdf5_message *shared = status ? NULL : sq_hdf5_object_find(&extension, SQ_HDF5_SHARED_TABLE);
    if (!status && sq_hdf5_object_find(&extension, SQ_HDF5_DRIVER))
        status = SQ_HDF5_UNSUPPORTED(f, address, err, "part of a file that was split into several; h5repack makes one of them");
    if (!status && sq_hdf5_object_find(&extension, SQ_HDF5_CACHE_IMAGE))
        status = SQ_HDF5_UNSUPPORTED(f, address, err, "its metadata lie in a cache image; h5repack puts them in their places");
    if (!status && shared)
        status = read_shared_table(&r, f, shared, err);
    sq_hdf5_reader_done(&r);
    return status;
}

static int parse_superblock(struct sq_hdf5_file *f, struct squall_error *err)
{
    uint64_t driver = SQ_HDF5_NOWHERE, extension = SQ_HDF5_NOWHERE;
    struct sq_cursor c = sq_cursor(f->head, f->head_bytes);
    sq_take(&c, SIGNATURE_BYTES);
    f->superblock_version = sq_u8(&c);
    if (f->superblock_version > 3)
        return SQ_HDF5_UNSUPPORTED(f, 0, err, "a superblock of version %u; versions 0 to 3 are read", f->superblock_version);
    SQ_TRY(f->superblock_version < 2 ? parse_old(f, &c, &driver, err) : parse_new(f, &c, &extension, err));
    if (sq_cursor_failed(&c))
        return SQ_HDF5_DAMAGED(f, 0, err, "the file ends within its superblock");
    if (driver != SQ_HDF5_NOWHERE)
        return SQ_HDF5_UNSUPPORTED(f, driver, err, "part of a file that was split into several; h5repack makes one of them");
    return extension == SQ_HDF5_NOWHERE ? 0 : read_extension(f, extension, err);
}

static int open_source(struct sq_hdf5_file *f, struct squall_error *err)
{
    const uint64_t size = sq_source_size(f->source);
    if (!find_signature(f->source, &f->base))
        return sq_error(err, SQUALL_ECORRUPT, "%s: no HDF5 file: it has no superblock", sq_source_name(f->source));
    f->end = size - f->base;
    f->head_bytes = f->end < HEAD_BYTES ? (size_t)f->end : HEAD_BYTES;
    if (!(f->head = sq_alloc(f->head_bytes, 1)))
        return sq_error_memory(err, f->head_bytes);
    SQ_TRY(sq_source_read(f->source, f->base, f->head, f->head_bytes, err));
    return parse_superblock(f, err);
}

int sq_hdf5_file_open(struct sq_source *source, struct sq_hdf5_file **ret, struct squall_error *err)
{
    struct sq_hdf5_file *f = sq_alloc_zero(1, sizeof *f);
    if (!f) {
        sq_source_close(source);
        return sq_error_memory(err, sizeof *f);
    }
    f->source = source;
    int status = open_source(f, err);
    if (status)
        sq_hdf5_file_close(f);
    else
        *ret = f;
    return status;
}

void sq_hdf5_file_close(struct sq_hdf5_file *file)
{
    if (!file)
        return;
    sq_source_close(file->source);
    sq_free(file->head);
    sq_free(file->shared);
    sq_free(file);
}

void sq_hdf5_file_drop_head(struct sq_hdf5_file *file)
{
    sq_free(file->head);
    file->head = NULL;
    file->head_bytes = 0;
}
