/*
 * See zip.h. The directory is read through a window, so that a lie about its size costs no memory, into one row a member; rows are put into
 * the order of the file, which shows members that overlap, and then into that of names, which makes looking up and listing easy.
 */
#include "io/zip.h"
#include "base/checked.h"
#include "base/cursor.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include <libdeflate.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* APPNOTE 4.3.7, 4.3.12, 4.3.14, 4.3.15, 4.3.16 */
enum { LOCAL_BYTES = 30, MEMBER_BYTES = 46, END64_BYTES = 56, LOCATOR_BYTES = 20, END_BYTES = 22, COMMENT_BYTES = 65535 };
static const uint32_t LOCAL = 0x04034b50, MEMBER = 0x02014b50, END64 = 0x06064b50, LOCATOR = 0x07064b50, END = 0x06054b50;
enum { FLAG_ENCRYPTED = 1 << 0, FLAG_SIZES_BEHIND = 1 << 3, FLAG_STRONG = 1 << 6, FLAG_MASKED = 1 << 13 };
enum { METHOD_STORED = 0, METHOD_DEFLATED = 8 };
enum { EXTRA_ZIP64 = 1 };
enum { PROBLEMS_SHOWN = 16 };
/* The most that a byte of deflate can become: 258 bytes from two bits. */
enum { DEFLATE_RATIO = 1032 };

/* Why a member is not read. */
enum refusal { GOOD, BAD_NAME, ENCRYPTED, METHOD, LINK, SPECIAL, SIZES, OUTSIDE, OVERLAPS };
static const struct {
    enum squall_status status;
    const char *words;
} REFUSALS[] = {
    [BAD_NAME] = {SQUALL_ECORRUPT, "its name leads out of the store"},
    [ENCRYPTED] = {SQUALL_EUNSUPPORTED, "it is encrypted"},
    [METHOD] = {SQUALL_EUNSUPPORTED, "neither stored nor deflated, which are the methods that are read"},
    [LINK] = {SQUALL_EUNSUPPORTED, "a symbolic link, which may lead out of the store"},
    [SPECIAL] = {SQUALL_EUNSUPPORTED, "no regular file"},
    [SIZES] = {SQUALL_ECORRUPT, "its size is not what its stored bytes can hold"},
    [OUTSIDE] = {SQUALL_ECORRUPT, "it does not lie before the archive's directory"},
    [OVERLAPS] = {SQUALL_ECORRUPT, "it overlaps another member"},
};

struct member {
    uint64_t header; /* its own, in the file */
    uint64_t end;    /* where what lies behind it begins */
    uint64_t stored_bytes, size_bytes;
    _Atomic uint64_t data; /* where its bytes begin; 0: its own header has not been read */
    size_t name_at;        /* in names; in the directory's order */
    uint32_t crc32;
    uint16_t name_length;
    uint8_t refusal;
    bool deflated;
};

struct sq_zip {
    struct sq_source *source;
    struct member *members;
    size_t count, capacity;
    char *names;
    size_t names_bytes, names_capacity;
    char **problems;
    size_t problem_count, problem_capacity;
};

/* What the end of the archive says of its directory. */
struct directory {
    uint64_t offset, size_bytes, count;
};

static int damaged(const struct sq_source *s, uint64_t at, struct squall_error *err, const char *what)
{
    return sq_error(err, SQUALL_ECORRUPT, "%s: zip directory, byte %llu: %s", sq_source_name(s), (unsigned long long)at, what);
}

bool sq_zip_is_zip(struct sq_source *source)
{
    uint8_t bytes[4];
    if (sq_source_read(source, 0, bytes, sizeof bytes, NULL))
        return false;
    struct sq_cursor c = sq_cursor(bytes, sizeof bytes);
    const uint32_t signature = sq_u32le(&c);
    return signature == LOCAL || signature == END; /* the latter: an archive of nothing */
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
        if (sq_u32le(&c) != END)
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

/* A field of the old record says what the new one does, or only that this one does. */
static bool agrees(uint64_t old, uint64_t old_max, uint64_t value)
{
    return old == value || old == old_max;
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
    if (!agrees(ret->count, UINT16_MAX, count) || !agrees(ret->size_bytes, UINT32_MAX, size_bytes) ||
        !agrees(ret->offset, UINT32_MAX, offset))
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

static enum refusal judge(const struct member *m, const char *name, unsigned flags, unsigned method, unsigned host, uint32_t attributes,
                          uint64_t directory_at)
{
    enum { HOST_UNIX = 3, HOST_MACOS = 19, KIND = 0170000, KIND_LINK = 0120000, KIND_FILE = 0100000 };
    const uint32_t kind = host == HOST_UNIX || host == HOST_MACOS ? attributes >> 16 & KIND : 0;
    uint64_t end;
    if (!is_path(name, m->name_length))
        return BAD_NAME;
    if (kind == KIND_LINK)
        return LINK;
    if (kind != 0 && kind != KIND_FILE)
        return SPECIAL;
    if (flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED))
        return ENCRYPTED;
    if (method != METHOD_STORED && method != METHOD_DEFLATED)
        return METHOD;
    if (m->deflated ? m->size_bytes / DEFLATE_RATIO + (m->size_bytes % DEFLATE_RATIO != 0) > m->stored_bytes
                    : m->size_bytes != m->stored_bytes)
        return SIZES;
    if (!sq_add_u64(m->header, LOCAL_BYTES + (uint64_t)m->name_length, &end) || !sq_add_u64(end, m->stored_bytes, &end) ||
        end > directory_at)
        return OUTSIDE;
    return GOOD;
}

/* Fields that did not fit are in the zip64 extra field (4.5.3), in this order. */
static bool read_zip64(struct sq_cursor extra, struct member *m)
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

static int add_member(struct sq_zip *zip, const struct member *m, const char *name, struct squall_error *err)
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
    struct member m = {.deflated = method == METHOD_DEFLATED, .crc32 = sq_u32le(&c)};
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
    const struct member *x = a, *y = b;
    return x->header < y->header ? -1 : x->header > y->header;
}

static int compare_names(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : a_length < b_length ? -1 : a_length > b_length;
}

static int by_name(const void *a, const void *b, void *names)
{
    const struct member *x = a, *y = b;
    const char *text = names;
    int order = compare_names(text + x->name_at, x->name_length, text + y->name_at, y->name_length);
    return order ? order : x->name_at < y->name_at ? -1 : 1;
}

/* Members in the file's order: what lies behind each, and which of them overlap. */
static void find_overlaps(struct sq_zip *zip, uint64_t directory_at)
{
    struct member *widest = NULL; /* of those before, which reaches farthest */
    uint64_t reach = 0, end;
    for (size_t i = 0; i < zip->count; i++) {
        struct member *m = &zip->members[i];
        m->end = i + 1 < zip->count && zip->members[i + 1].header < directory_at ? zip->members[i + 1].header : directory_at;
        if (m->refusal == OUTSIDE || !sq_add_u64(m->header, LOCAL_BYTES + (uint64_t)m->name_length, &end) ||
            !sq_add_u64(end, m->stored_bytes, &end))
            continue;
        if (widest && m->header < reach) {
            m->refusal = m->refusal ? m->refusal : OVERLAPS;
            widest->refusal = widest->refusal ? widest->refusal : OVERLAPS;
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
        const struct member *m = &zip->members[i], *next = m + 1;
        bool superseded = i + 1 < zip->count && m->name_length == next->name_length &&
                          !memcmp(zip->names + m->name_at, zip->names + next->name_at, m->name_length);
        if (!superseded)
            zip->members[kept++] = *m;
    }
    zip->count = kept;
}

/* ---- what is refused ---------------------------------------------------------------------------------------------------------------- */

/* As messages tell it. */
static char *shown_name(const struct sq_zip *zip, const struct member *m)
{
    enum { SHOWN_BYTES = 300 };
    size_t length = m->name_length < SHOWN_BYTES ? m->name_length : SHOWN_BYTES;
    char *name = sq_strndup(zip->names + m->name_at, length);
    if (name)
        sq_text_make_visible(name);
    return name;
}

static int add_problem(struct sq_zip *zip, char *line, struct squall_error *err)
{
    int status = line ? SQ_GROW(zip->problems, zip->problem_capacity, zip->problem_count + 1, err) : sq_error_memory(err, 1);
    if (status)
        sq_free(line);
    else
        zip->problems[zip->problem_count++] = line;
    return status;
}

static int tell_problems(struct sq_zip *zip, struct squall_error *err)
{
    size_t refused = 0;
    for (size_t i = 0; i < zip->count; i++) {
        const struct member *m = &zip->members[i];
        if (m->refusal == GOOD || refused++ >= PROBLEMS_SHOWN)
            continue;
        SQ_CLEANUP_FREE char *name = shown_name(zip, m);
        if (!name)
            return sq_error_memory(err, m->name_length);
        SQ_TRY(
            add_problem(zip, sq_format("%s: %s cannot be read: %s", sq_source_name(zip->source), name, REFUSALS[m->refusal].words), err));
    }
    if (refused <= PROBLEMS_SHOWN)
        return 0;
    return add_problem(zip, sq_format("%s: %zu more members cannot be read", sq_source_name(zip->source), refused - PROBLEMS_SHOWN), err);
}

const char *const *sq_zip_problems(const struct sq_zip *zip, size_t *ret_count)
{
    *ret_count = zip->problem_count;
    return (const char *const *)zip->problems;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------------------ */

int sq_zip_open(struct sq_source *source, struct sq_zip **ret, struct squall_error *err)
{
    struct directory d = {0};
    struct sq_zip *zip = sq_alloc_zero(1, sizeof *zip);
    if (!zip)
        return sq_error_memory(err, sizeof *zip);
    zip->source = source;
    int status = read_end(source, &d, err);
    if (!status)
        status = read_directory(zip, &d, err);
    if (!status) {
        sort_members(zip, d.offset);
        status = tell_problems(zip, err);
    }
    if (status)
        sq_zip_close(zip);
    else
        *ret = zip;
    return status;
}

void sq_zip_close(struct sq_zip *zip)
{
    if (!zip)
        return;
    sq_free(zip->members);
    sq_free(zip->names);
    sq_names_free(zip->problems, zip->problem_count);
    sq_free(zip);
}

size_t sq_zip_count(const struct sq_zip *zip)
{
    return zip->count;
}

const char *sq_zip_name(const struct sq_zip *zip, size_t member, size_t *ret_length)
{
    *ret_length = zip->members[member].name_length;
    return zip->names + zip->members[member].name_at;
}

uint64_t sq_zip_stored_bytes(const struct sq_zip *zip, size_t member)
{
    return zip->members[member].stored_bytes;
}

bool sq_zip_name_is_path(const struct sq_zip *zip, size_t member)
{
    return zip->members[member].refusal != BAD_NAME;
}

size_t sq_zip_lower_bound(const struct sq_zip *zip, const char *text, size_t length)
{
    size_t low = 0, high = zip->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct member *m = &zip->members[middle];
        if (compare_names(zip->names + m->name_at, m->name_length, text, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool sq_zip_find(const struct sq_zip *zip, const char *name, size_t *ret_member)
{
    const size_t length = strlen(name), i = sq_zip_lower_bound(zip, name, length);
    if (i == zip->count || zip->members[i].name_length != length || memcmp(zip->names + zip->members[i].name_at, name, length) != 0)
        return false;
    *ret_member = i;
    return true;
}

/* ---- members ------------------------------------------------------------------------------------------------------------------------ */

/* Does the member's own header (4.3.7) say what the directory does? *ret_data: where its bytes begin. */
static bool header_agrees(const struct sq_zip *zip, const struct member *m, const uint8_t *header, uint64_t *ret_data)
{
    struct sq_cursor c = sq_cursor(header, LOCAL_BYTES + (size_t)m->name_length);
    uint32_t signature = sq_u32le(&c);
    (void)sq_u16le(&c); /* version needed */
    unsigned flags = sq_u16le(&c), method = sq_u16le(&c);
    (void)sq_u32le(&c); /* time and date */
    uint32_t crc32 = sq_u32le(&c), stored_bytes = sq_u32le(&c), size_bytes = sq_u32le(&c);
    size_t name_length = sq_u16le(&c), extra_bytes = sq_u16le(&c);
    const uint8_t *name = sq_take(&c, m->name_length);
    *ret_data = m->header + LOCAL_BYTES + m->name_length + extra_bytes;
    if (signature != LOCAL || name_length != m->name_length || memcmp(name, zip->names + m->name_at, name_length) != 0)
        return false;
    if (flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED) || method != (m->deflated ? METHOD_DEFLATED : METHOD_STORED))
        return false;
    if (flags & FLAG_SIZES_BEHIND) /* they were not known yet */
        return true;
    return crc32 == m->crc32 && agrees(stored_bytes, UINT32_MAX, m->stored_bytes) && agrees(size_bytes, UINT32_MAX, m->size_bytes);
}

static int read_header(struct sq_zip *zip, const struct member *m, uint64_t *ret_data, struct squall_error *err)
{
    const size_t bytes = LOCAL_BYTES + (size_t)m->name_length;
    SQ_CLEANUP_FREE uint8_t *header = sq_alloc(bytes, 1);
    SQ_CLEANUP_FREE char *name = shown_name(zip, m);
    uint64_t data;
    if (!header || !name)
        return sq_error_memory(err, bytes);
    SQ_TRY(sq_source_read(zip->source, m->header, header, bytes, err));
    if (!header_agrees(zip, m, header, &data))
        return sq_error(err, SQUALL_ECORRUPT, "%s: %s: its own header, at byte %llu, contradicts the directory",
                        sq_source_name(zip->source), name, (unsigned long long)m->header);
    if (data > m->end || m->stored_bytes > m->end - data)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %s: %s", sq_source_name(zip->source), name, REFUSALS[OVERLAPS].words);
    *ret_data = data;
    return 0;
}

int sq_zip_locate(struct sq_zip *zip, size_t member, struct sq_zip_place *ret, struct squall_error *err)
{
    struct member *m = &zip->members[member];
    if (m->refusal) {
        SQ_CLEANUP_FREE char *name = shown_name(zip, m);
        return sq_error(err, REFUSALS[m->refusal].status, "%s: %s: %s", sq_source_name(zip->source), name ? name : "a member",
                        REFUSALS[m->refusal].words);
    }
    uint64_t data = atomic_load_explicit(&m->data, memory_order_relaxed);
    if (data == 0) {
        SQ_TRY(read_header(zip, m, &data, err));
        atomic_store_explicit(&m->data, data, memory_order_relaxed);
    }
    *ret = (struct sq_zip_place){data, m->stored_bytes, m->size_bytes, m->crc32, m->deflated};
    return 0;
}

int sq_zip_check(const struct sq_zip_place *place, const void *bytes, struct squall_error *err)
{
    uint32_t crc32 = libdeflate_crc32(0, bytes, place->size_bytes);
    if (crc32 == place->crc32)
        return 0;
    return sq_error(err, SQUALL_ECORRUPT, "the bytes have checksum %08x, but %08x was stored; they are damaged", crc32, place->crc32);
}

int sq_zip_inflate(const struct sq_zip_place *place, const void *stored, void *dst, struct squall_error *err)
{
    struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
    size_t used = 0, got = 0;
    if (!inflater)
        return sq_error_memory(err, sizeof(void *));
    enum libdeflate_result result =
        libdeflate_deflate_decompress_ex(inflater, stored, place->stored_bytes, dst, place->size_bytes, &used, &got);
    libdeflate_free_decompressor(inflater);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE || (result == LIBDEFLATE_SUCCESS && got != place->size_bytes))
        return sq_error(err, SQUALL_ECORRUPT, "deflated in it are %s than the %llu bytes that the directory says",
                        result == LIBDEFLATE_SUCCESS ? "fewer" : "more", (unsigned long long)place->size_bytes);
    if (result != LIBDEFLATE_SUCCESS)
        return sq_error(err, SQUALL_ECORRUPT, "its deflated bytes are damaged");
    if (used != place->stored_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "%llu bytes of something else follow its deflated bytes",
                        (unsigned long long)(place->stored_bytes - used));
    return sq_zip_check(place, dst, err);
}
