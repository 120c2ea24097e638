/* See zip.h: the members, of which zip_directory.c tells. */
#include "io/zip.h"
#include "base/cursor.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/zip_internal.h"
#include <libdeflate.h>
#include <string.h>

enum { PROBLEMS_SHOWN = 16 };

static const struct {
    enum squall_status status;
    const char *words;
} REFUSALS[] = {
    [SQ_ZIP_BAD_NAME] = {SQUALL_ECORRUPT, "its name leads out of the store"},
    [SQ_ZIP_IS_ENCRYPTED] = {SQUALL_EUNSUPPORTED, "it is encrypted"},
    [SQ_ZIP_METHOD] = {SQUALL_EUNSUPPORTED, "neither stored nor deflated, which are the methods that are read"},
    [SQ_ZIP_LINK] = {SQUALL_EUNSUPPORTED, "a symbolic link, which may lead out of the store"},
    [SQ_ZIP_SPECIAL] = {SQUALL_EUNSUPPORTED, "no regular file"},
    [SQ_ZIP_SIZES] = {SQUALL_ECORRUPT, "its size is not what its stored bytes can hold"},
    [SQ_ZIP_OUTSIDE] = {SQUALL_ECORRUPT, "it does not lie before the archive's directory"},
    [SQ_ZIP_OVERLAPS] = {SQUALL_ECORRUPT, "it overlaps another member"},
};

bool sq_zip_is_zip(struct sq_source *source)
{
    uint8_t bytes[4];
    if (sq_source_read(source, 0, bytes, sizeof bytes, NULL))
        return false;
    struct sq_cursor c = sq_cursor(bytes, sizeof bytes);
    const uint32_t signature = sq_u32le(&c);
    return signature == SQ_ZIP_LOCAL || signature == SQ_ZIP_END; /* the latter: an archive of nothing */
}

/* ---- what is refused ---------------------------------------------------------------------------------------------------------------- */

/* As messages tell it. */
static char *shown_name(const struct sq_zip *zip, const struct sq_zip_member *m)
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
        const struct sq_zip_member *m = &zip->members[i];
        if (m->refusal == SQ_ZIP_GOOD || refused++ >= PROBLEMS_SHOWN)
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
    struct sq_zip *zip = sq_alloc_zero(1, sizeof *zip);
    if (!zip)
        return sq_error_memory(err, sizeof *zip);
    zip->source = source;
    int status = sq_zip_directory_read(zip, err);
    if (!status)
        status = tell_problems(zip, err);
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
    return zip->members[member].refusal != SQ_ZIP_BAD_NAME;
}

size_t sq_zip_lower_bound(const struct sq_zip *zip, const char *text, size_t length)
{
    size_t low = 0, high = zip->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct sq_zip_member *m = &zip->members[middle];
        if (sq_zip_compare_names(zip->names + m->name_at, m->name_length, text, length) < 0)
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
static bool header_agrees(const struct sq_zip *zip, const struct sq_zip_member *m, const uint8_t *header, uint64_t *ret_data)
{
    struct sq_cursor c = sq_cursor(header, SQ_ZIP_LOCAL_BYTES + (size_t)m->name_length);
    uint32_t signature = sq_u32le(&c);
    (void)sq_u16le(&c); /* version needed */
    unsigned flags = sq_u16le(&c), method = sq_u16le(&c);
    (void)sq_u32le(&c); /* time and date */
    uint32_t crc32 = sq_u32le(&c), stored_bytes = sq_u32le(&c), size_bytes = sq_u32le(&c);
    size_t name_length = sq_u16le(&c), extra_bytes = sq_u16le(&c);
    const uint8_t *name = sq_take(&c, m->name_length);
    *ret_data = m->header + SQ_ZIP_LOCAL_BYTES + m->name_length + extra_bytes;
    if (signature != SQ_ZIP_LOCAL || name_length != m->name_length || memcmp(name, zip->names + m->name_at, name_length) != 0)
        return false;
    if (flags & (SQ_ZIP_ENCRYPTED | SQ_ZIP_STRONG | SQ_ZIP_MASKED) || method != (m->deflated ? SQ_ZIP_DEFLATED : SQ_ZIP_STORED))
        return false;
    if (flags & SQ_ZIP_SIZES_BEHIND) /* they were not known yet */
        return true;
    return crc32 == m->crc32 && sq_zip_field_agrees(stored_bytes, UINT32_MAX, m->stored_bytes) &&
           sq_zip_field_agrees(size_bytes, UINT32_MAX, m->size_bytes);
}

static int read_header(struct sq_zip *zip, const struct sq_zip_member *m, uint64_t *ret_data, struct squall_error *err)
{
    const size_t bytes = SQ_ZIP_LOCAL_BYTES + (size_t)m->name_length;
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
        return sq_error(err, SQUALL_ECORRUPT, "%s: %s: %s", sq_source_name(zip->source), name, REFUSALS[SQ_ZIP_OVERLAPS].words);
    *ret_data = data;
    return 0;
}

int sq_zip_locate(struct sq_zip *zip, size_t member, struct sq_zip_place *ret, struct squall_error *err)
{
    struct sq_zip_member *m = &zip->members[member];
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
