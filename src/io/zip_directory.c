/*
 * The directory of a zip file. It is read through a window, so that a lie about its size costs no memory, into one row a member; rows are put into the
 * order of the file, which shows members that overlap, and then into that of names, which makes looking up and listing easy.
 */
#include "base/checked.h"
#include "base/cursor.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "io/zip_internal.h"
#include <stdlib.h>
#include <string.h>

/* APPNOTE 4.3.12, 4.3.14, 4.3.15, 4.3.16 */
enum { MEMBER_BYTES = 46, END64_BYTES = 56, LOCATOR_BYTES = 20, END_BYTES = 22, COMMENT_BYTES = 65535 };
enum { MEMBER = 0x02014b50, END64 = 0x06064b50, LOCATOR = 0x07064b50 };
enum { EXTRA_ZIP64 = 1 };
/* The most that a byte of deflate can become: 258 bytes from two bits. */
enum { DEFLATE_RATIO = 1032 };

/* What the end of the archive says of its directory. */
struct directory {
    uint64_t offset, size_bytes, count;
};

static int damaged(const struct sq_source *s, uint64_t at, struct squall_error *err, const char *what)
{
    return sq_error(err, SQUALL_ECORRUPT, "%s: zip directory, byte %llu: %s", sq_source_name(s), (unsigned long long)at, what);
}

/* ---- the end of the archive --------------------------------------------------------------------------------------------------------- */

/* The last end record whose comment reaches exactly to the end of the file. */
static int find_end(struct sq_source *s, uint64_t *ret_at, uint8_t ret[END_BYTES], struct squall_error *err)
{
    const uint64_t total = sq_source_size(s);
    const size_t span = total < END_BYTES + COMMENT_BYTES ? (size_t)total : END_BYTES + COMMENT_BYTES;
    SQ_CLEANUP_FREE uint8_t *tail = sq_alloc(span + 1, 1);
    if (!tail)
        return sq_error_memory(err, span);
    SQ_TRY(sq_source_read(s, total - span, tail, span, err));
    for (size_t left = END_BYTES; left <= span; left++) {
        struct sq_cursor c = sq_cursor(tail + span - left, END_BYTES);
        if (sq_u32le(&c) != SQ_ZIP_END)
            continue;
        (void)sq_take(&c, END_BYTES - 4 - 2);
        if (sq_u16le(&c) != left - END_BYTES)
            continue;
        *ret_at = total - left;
        memcpy(ret, tail + span - left, END_BYTES);
        return 0;
    }
    return sq_error(err, SQUALL_ECORRUPT, "%s: no zip file, or a truncated one: its directory, which ends such files, is not there",
                    sq_source_name(s));
}

/* *ret as the old record has it → as the zip64 record does, where there is one; *end: where the directory has to end. */
static int read_end64(struct sq_source *s, uint64_t *end, struct directory *ret, struct squall_error *err)
{
    uint8_t bytes[END64_BYTES];
    const uint64_t locator_at = *end - LOCATOR_BYTES;
    if (*end < LOCATOR_BYTES + END64_BYTES)
        return 0;
    SQ_TRY(sq_source_read(s, locator_at, bytes, LOCATOR_BYTES, err));
    struct sq_cursor c = sq_cursor(bytes, LOCATOR_BYTES);
    if (sq_u32le(&c) != LOCATOR)
        return 0;
    (void)sq_u32le(&c);
    uint64_t at = sq_u64le(&c);
    if (at > locator_at - END64_BYTES)
        return damaged(s, locator_at, err, "the zip64 record lies behind its locator");
    SQ_TRY(sq_source_read(s, at, bytes, END64_BYTES, err));
    c = sq_cursor(bytes, END64_BYTES);
    uint32_t signature = sq_u32le(&c);
    uint64_t behind = sq_u64le(&c);
    (void)sq_u32le(&c); /* versions */
    uint32_t disk = sq_u32le(&c), directory_disk = sq_u32le(&c);
    uint64_t here = sq_u64le(&c), count = sq_u64le(&c), size_bytes = sq_u64le(&c), offset = sq_u64le(&c);
    if (signature != END64 || behind != locator_at - at - 12)
        return damaged(s, at, err, "no zip64 record where its locator says");
    if (disk != 0 || directory_disk != 0 || here != count)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s: a part of a zip archive in several parts", sq_source_name(s));
    if (!sq_zip_field_agrees(ret->count, UINT16_MAX, count) || !sq_zip_field_agrees(ret->size_bytes, UINT32_MAX, size_bytes) ||
        !sq_zip_field_agrees(ret->offset, UINT32_MAX, offset))
        return damaged(s, at, err, "the zip64 record contradicts the end record");
    *ret = (struct directory){offset, size_bytes, count};
    *end = at;
    return 0;
}

static int read_end(struct sq_source *s, struct directory *ret, struct squall_error *err)
{
    uint8_t bytes[END_BYTES];
    uint64_t end = 0;
    SQ_TRY(find_end(s, &end, bytes, err));
    struct sq_cursor c = sq_cursor(bytes, END_BYTES);
    (void)sq_u32le(&c);
    uint16_t disk = sq_u16le(&c), directory_disk = sq_u16le(&c), here = sq_u16le(&c);
    struct directory d = {.count = sq_u16le(&c)};
    d.size_bytes = sq_u32le(&c);
    d.offset = sq_u32le(&c);
    bool in_parts = (disk != 0 && disk != UINT16_MAX) || (directory_disk != 0 && directory_disk != UINT16_MAX) || here != d.count;
    if (in_parts)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s: a part of a zip archive in several parts", sq_source_name(s));
    SQ_TRY(read_end64(s, &end, &d, err));
    if (d.offset > end || d.size_bytes != end - d.offset)
        return damaged(s, end, err, "the end record says another place or size of the directory than it has");
    if (d.count > d.size_bytes / MEMBER_BYTES)
        return damaged(s, end, err, "the end record counts more members than the directory can hold");
    *ret = d;
    return 0;
}

/* ---- the directory ------------------------------------------------------------------------------------------------------------------ */

enum { WINDOW_BYTES = 256 << 10 }; /* more than a member's row can have: 46 + 3 × 65535 */

/* The part of the directory that is in memory. */
struct window {
    struct sq_source *source;
    uint8_t *bytes; /* WINDOW_BYTES */
    size_t begin, end;
    uint64_t at, left; /* in the file, behind the window */
};

/* The next `count` bytes, which stay the next; NULL where the directory has fewer, or with *ret_status < 0. */
static const uint8_t *look(struct window *w, size_t count, int *ret_status, struct squall_error *err)
{
    *ret_status = 0;
    if (count > w->end - w->begin) {
        memmove(w->bytes, w->bytes + w->begin, w->end - w->begin);
        w->end -= w->begin;
        w->begin = 0;
        size_t more = WINDOW_BYTES - w->end;
        if (more > w->left)
            more = (size_t)w->left;
        if ((*ret_status = sq_source_read(w->source, w->at, w->bytes + w->end, more, err)))
            return NULL;
        w->end += more;
        w->at += more;
        w->left -= more;
    }
    return count <= w->end - w->begin ? w->bytes + w->begin : NULL;
}

/* Parts between single slashes that go down; Windows' backslash would be another way to write a slash. */
static bool is_path(const char *name, size_t length)
{
    size_t begin = 0;
    for (size_t i = 0; i <= length; i++) {
        if (i < length && name[i] == '\\')
            return false;
        if (i < length && name[i] != '/')
            continue;
        size_t part = i - begin;
        if (part == 0 || (part == 1 && name[begin] == '.') || (part == 2 && name[begin] == '.' && name[begin + 1] == '.'))
            return false;
        begin = i + 1;
    }
    return true;
}

static enum sq_zip_refusal judge(const struct sq_zip_member *m, const char *name, unsigned flags, unsigned method, unsigned host,
                                 uint32_t attributes, uint64_t directory_at)
{
    enum { HOST_UNIX = 3, HOST_MACOS = 19, KIND = 0170000, KIND_LINK = 0120000, KIND_FILE = 0100000 };
    const uint32_t kind = host == HOST_UNIX || host == HOST_MACOS ? attributes >> 16 & KIND : 0;
    uint64_t end;
    if (!is_path(name, m->name_length))
        return SQ_ZIP_BAD_NAME;
    if (kind == KIND_LINK)
        return SQ_ZIP_LINK;
    if (kind != 0 && kind != KIND_FILE)
        return SQ_ZIP_SPECIAL;
    if (flags & (SQ_ZIP_ENCRYPTED | SQ_ZIP_STRONG | SQ_ZIP_MASKED))
        return SQ_ZIP_IS_ENCRYPTED;
    if (method != SQ_ZIP_STORED && method != SQ_ZIP_DEFLATED)
        return SQ_ZIP_METHOD;
    if (m->deflated ? m->size_bytes / DEFLATE_RATIO + (m->size_bytes % DEFLATE_RATIO != 0) > m->stored_bytes
                    : m->size_bytes != m->stored_bytes)
        return SQ_ZIP_SIZES;
    if (!sq_add_u64(m->header, SQ_ZIP_LOCAL_BYTES + (uint64_t)m->name_length, &end) || !sq_add_u64(end, m->stored_bytes, &end) ||
        end > directory_at)
        return SQ_ZIP_OUTSIDE;
    return SQ_ZIP_GOOD;
}

/* Fields that did not fit are in the zip64 extra field (4.5.3), in this order. */
static bool read_zip64(struct sq_cursor extra, struct sq_zip_member *m)
{
    uint64_t *const fields[] = {&m->size_bytes, &m->stored_bytes, &m->header};
    bool wanted = false;
    for (size_t i = 0; i < 3; i++)
        wanted = wanted || *fields[i] == UINT32_MAX;
    while (wanted && sq_cursor_left(&extra) >= 4) {
        uint16_t id = sq_u16le(&extra), size = sq_u16le(&extra);
        const uint8_t *bytes = sq_take(&extra, size);
        if (!bytes || id != EXTRA_ZIP64)
            continue;
        struct sq_cursor c = sq_cursor(bytes, size);
        for (size_t i = 0; i < 3; i++)
            if (*fields[i] == UINT32_MAX)
                *fields[i] = sq_u64le(&c);
        return !sq_cursor_failed(&c);
    }
    return !wanted;
}

static int add_member(struct sq_zip *zip, const struct sq_zip_member *m, const char *name, struct squall_error *err)
{
    SQ_TRY(SQ_GROW(zip->members, zip->capacity, zip->count + 1, err));
    SQ_TRY(SQ_GROW(zip->names, zip->names_capacity, zip->names_bytes + m->name_length + 1, err)); /* a name may be empty */
    memcpy(zip->names + zip->names_bytes, name, m->name_length);
    zip->members[zip->count] = *m;
    zip->members[zip->count++].name_at = zip->names_bytes;
    zip->names_bytes += m->name_length;
    return 0;
}

/* The next row of the directory. */
static int read_member(struct sq_zip *zip, struct window *w, uint64_t directory_at, struct squall_error *err)
{
    const uint64_t at = w->at - (w->end - w->begin);
    int status;
    const uint8_t *row = look(w, MEMBER_BYTES, &status, err);
    if (!row)
        return status ? status : damaged(w->source, at, err, "it ends within a member's row");
    struct sq_cursor c = sq_cursor(row, MEMBER_BYTES);
    uint32_t signature = sq_u32le(&c);
    unsigned host = sq_u16le(&c) >> 8;
    (void)sq_u16le(&c); /* version needed */
    unsigned flags = sq_u16le(&c), method = sq_u16le(&c);
    (void)sq_u32le(&c); /* time and date */
    struct sq_zip_member m = {.deflated = method == SQ_ZIP_DEFLATED, .crc32 = sq_u32le(&c)};
    m.stored_bytes = sq_u32le(&c);
    m.size_bytes = sq_u32le(&c);
    m.name_length = sq_u16le(&c);
    size_t extra_bytes = sq_u16le(&c), comment_bytes = sq_u16le(&c);
    unsigned disk = sq_u16le(&c);
    (void)sq_u16le(&c); /* internal attributes */
    uint32_t attributes = sq_u32le(&c);
    m.header = sq_u32le(&c);
    if (signature != MEMBER)
        return damaged(w->source, at, err, "no member's row where one should be");
    if (disk != 0 && disk != UINT16_MAX)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s: a part of a zip archive in several parts", sq_source_name(w->source));
    size_t row_bytes = MEMBER_BYTES + m.name_length + extra_bytes + comment_bytes;
    if (!(row = look(w, row_bytes, &status, err)))
        return status ? status : damaged(w->source, at, err, "it ends within a member's row");
    w->begin += row_bytes;
    const char *name = (const char *)row + MEMBER_BYTES;
    if (memchr(name, 0, m.name_length))
        return damaged(w->source, at, err, "a member's name holds a NUL, where other programs would end it");
    if (!read_zip64(sq_cursor(row + MEMBER_BYTES + m.name_length, extra_bytes), &m))
        return damaged(w->source, at, err, "a member's sizes are in a zip64 field that is not there");
    if (m.name_length > 0 && name[m.name_length - 1] == '/') {
        m.name_length--; /* a folder, which is there because of what is in it; but where would it be? */
        if (is_path(name, m.name_length))
            return 0;
    }
    m.refusal = judge(&m, name, flags, method, host, attributes, directory_at);
    return add_member(zip, &m, name, err);
}

static int read_directory(struct sq_zip *zip, const struct directory *d, struct squall_error *err)
{
    SQ_CLEANUP_FREE uint8_t *bytes = sq_alloc(WINDOW_BYTES, 1);
    struct window w = {.source = zip->source, .bytes = bytes, .at = d->offset, .left = d->size_bytes};
    if (!bytes)
        return sq_error_memory(err, WINDOW_BYTES);
    for (uint64_t i = 0; i < d->count; i++)
        SQ_TRY(read_member(zip, &w, d->offset, err));
    if (w.left > 0 || w.end > w.begin)
        return damaged(zip->source, w.at - (w.end - w.begin), err, "it goes on behind the members that the end record counts");
    return 0;
}

/* ---- order -------------------------------------------------------------------------------------------------------------------------- */

static int by_header(const void *a, const void *b)
{
    const struct sq_zip_member *x = a, *y = b;
    return x->header < y->header ? -1 : x->header > y->header;
}

int sq_zip_compare_names(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : a_length < b_length ? -1 : a_length > b_length;
}

static int by_name(const void *a, const void *b, void *names)
{
    const struct sq_zip_member *x = a, *y = b;
    const char *text = names;
    int order = sq_zip_compare_names(text + x->name_at, x->name_length, text + y->name_at, y->name_length);
    return order ? order : x->name_at < y->name_at ? -1 : 1;
}

/* Members in the file's order: what lies behind each, and which of them overlap. */
static void find_overlaps(struct sq_zip *zip, uint64_t directory_at)
{
    struct sq_zip_member *widest = NULL; /* of those before, which reaches farthest */
    uint64_t reach = 0, end;
    for (size_t i = 0; i < zip->count; i++) {
        struct sq_zip_member *m = &zip->members[i];
        m->end = i + 1 < zip->count && zip->members[i + 1].header < directory_at ? zip->members[i + 1].header : directory_at;
        if (m->refusal == SQ_ZIP_OUTSIDE || !sq_add_u64(m->header, SQ_ZIP_LOCAL_BYTES + (uint64_t)m->name_length, &end) ||
            !sq_add_u64(end, m->stored_bytes, &end))
            continue;
        if (widest && m->header < reach) {
            m->refusal = m->refusal ? m->refusal : SQ_ZIP_OVERLAPS;
            widest->refusal = widest->refusal ? widest->refusal : SQ_ZIP_OVERLAPS;
        }
        if (end > reach) {
            reach = end;
            widest = m;
        }
    }
}

static void sort_members(struct sq_zip *zip, uint64_t directory_at)
{
    size_t kept = 0;
    if (zip->count == 0)
        return;
    qsort(zip->members, zip->count, sizeof *zip->members, by_header);
    find_overlaps(zip, directory_at);
    qsort_r(zip->members, zip->count, sizeof *zip->members, by_name, zip->names);
    for (size_t i = 0; i < zip->count; i++) {
        const struct sq_zip_member *m = &zip->members[i], *next = m + 1;
        bool superseded = i + 1 < zip->count && m->name_length == next->name_length &&
                          !memcmp(zip->names + m->name_at, zip->names + next->name_at, m->name_length);
        if (!superseded)
            zip->members[kept++] = *m;
    }
    zip->count = kept;
}

int sq_zip_directory_read(struct sq_zip *zip, struct squall_error *err)
{
    struct directory d = {0};
    SQ_TRY(read_end(zip->source, &d, err));
    SQ_TRY(read_directory(zip, &d, err));
    sort_members(zip, d.offset);
    return 0;
}
