/* See source.h. */
#include "io/source.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "io/handles.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct sq_source {
    char *name;
    const uint8_t *bytes; /* memory; NULL: a file */
    struct sq_handle file;
    struct sq_file_identity identity;
};

struct sq_source *sq_source_of_file(const char *path, const struct sq_file_identity *identity)
{
    struct sq_source *s = sq_alloc_zero(1, sizeof *s);
    char *name = sq_strdup(path);
    if (!s || !name) {
        sq_free(name);
        sq_free(s);
        return NULL;
    }
    s->name = name;
    s->identity = *identity;
    sq_handle_init(&s->file, name, identity);
    return s;
}

int sq_source_open_file(const char *path, struct sq_source **ret, struct squall_error *err)
{
    static const struct sq_file_identity UNKNOWN;
    struct sq_source *s = sq_source_of_file(path, &UNKNOWN);
    int status = s ? sq_handle_open(&s->file, s->name, err) : sq_error_memory(err, sizeof *s);
    if (status) {
        sq_source_close(s);
        return status;
    }
    s->identity = s->file.identity;
    *ret = s;
    return 0;
}

int sq_source_open_memory(const void *bytes, size_t size_bytes, const char *name, struct sq_source **ret, struct squall_error *err)
{
    static const uint8_t NOTHING;
    struct sq_source *s = sq_alloc_zero(1, sizeof *s);
    char *copy = sq_strdup(name);
    if (!s || !copy) {
        sq_free(copy);
        sq_free(s);
        return sq_error_memory(err, sizeof *s);
    }
    *s = (struct sq_source){.name = copy, .bytes = bytes ? bytes : &NOTHING, .identity.size_bytes = size_bytes};
    *ret = s;
    return 0;
}

void sq_source_close(struct sq_source *s)
{
    if (!s)
        return;
    if (!s->bytes)
        sq_handle_done(&s->file);
    sq_free(s->name);
    sq_free(s);
}

uint64_t sq_source_size(const struct sq_source *s)
{
    return s->identity.size_bytes;
}

const char *sq_source_name(const struct sq_source *s)
{
    return s->name;
}

struct sq_file_identity sq_source_identity(const struct sq_source *s)
{
    return s->identity;
}

int sq_source_read(struct sq_source *s, uint64_t offset, void *dst, size_t size_bytes, struct squall_error *err)
{
    uint64_t total = s->identity.size_bytes;
    if (offset > total || size_bytes > total - offset)
        return sq_error(err, SQUALL_ECORRUPT, "%s: ends at byte %llu, but %zu bytes are wanted at %llu", s->name, (unsigned long long)total,
                        size_bytes, (unsigned long long)offset);
    if (s->bytes) {
        memcpy(dst, s->bytes + offset, size_bytes);
        return 0;
    }
    int fd = -1;
    SQ_TRY(sq_handle_pin(&s->file, &fd, err));
    int status = sq_file_read_at(fd, s->name, offset, dst, size_bytes, err);
    sq_handle_unpin(&s->file);
    return status;
}

void sq_source_prefetch(struct sq_source *s, uint64_t offset, uint64_t size_bytes)
{
    int fd = -1;
    if (s->bytes || offset > INT64_MAX || size_bytes > INT64_MAX || sq_handle_pin(&s->file, &fd, NULL))
        return;
    (void)posix_fadvise(fd, (off_t)offset, (off_t)size_bytes, POSIX_FADV_WILLNEED);
    sq_handle_unpin(&s->file);
}

void sq_source_expect_changes(struct sq_source *s)
{
    s->identity.mtime_ns = s->file.identity.mtime_ns = SQ_FILE_CHANGES;
}

void sq_source_set_size(struct sq_source *s, uint64_t size_bytes)
{
    s->identity.size_bytes = s->file.identity.size_bytes = size_bytes;
}

int sq_source_check_unchanged(struct sq_source *s, struct squall_error *err)
{
    if (s->bytes)
        return 0;
    enum sq_file_kind kind;
    struct sq_file_identity now = {0};
    SQ_TRY(sq_file_stat(s->name, &kind, &now, err));
    if (kind == SQ_FILE_NONE)
        return sq_error(err, SQUALL_EIO, "%s is gone since it was opened", s->name);
    if (kind == SQ_FILE_REGULAR && sq_file_identity_same(&now, &s->identity))
        return 0;
    return sq_error(err, SQUALL_EIO, "%s changed since it was opened; open it again", s->name);
}
