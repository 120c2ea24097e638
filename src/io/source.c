/* See source.h. */
#include "io/source.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct sq_source {
    char *name;
    int fd;               /* -1: memory */
    const uint8_t *bytes; /* memory */
    struct sq_file_identity identity;
};

int sq_source_open_file(const char *path, struct sq_source **ret, struct squall_error *err)
{
    struct sq_source *s = sq_alloc_zero(1, sizeof *s);
    char *name = sq_strdup(path);
    int status = s && name ? sq_file_open(path, &s->fd, &s->identity, err) : sq_error_memory(err, sizeof *s);
    if (status) {
        sq_free(name);
        sq_free(s);
        return status;
    }
    s->name = name;
    *ret = s;
    return 0;
}

int sq_source_open_memory(const void *bytes, size_t size_bytes, const char *name, struct sq_source **ret, struct squall_error *err)
{
    struct sq_source *s = sq_alloc_zero(1, sizeof *s);
    char *copy = sq_strdup(name);
    if (!s || !copy) {
        sq_free(copy);
        sq_free(s);
        return sq_error_memory(err, sizeof *s);
    }
    *s = (struct sq_source){.name = copy, .fd = -1, .bytes = bytes, .identity.size_bytes = size_bytes};
    *ret = s;
    return 0;
}

void sq_source_close(struct sq_source *s)
{
    if (!s)
        return;
    sq_file_close(s->fd);
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
    if (s->fd >= 0)
        return sq_file_read_at(s->fd, s->name, offset, dst, size_bytes, err);
    if (size_bytes)
        memcpy(dst, s->bytes + offset, size_bytes);
    return 0;
}

void sq_source_prefetch(struct sq_source *s, uint64_t offset, uint64_t size_bytes)
{
    if (s->fd >= 0 && offset <= INT64_MAX && size_bytes <= INT64_MAX)
        (void)posix_fadvise(s->fd, (off_t)offset, (off_t)size_bytes, POSIX_FADV_WILLNEED);
}

int sq_source_check_unchanged(struct sq_source *s, struct squall_error *err)
{
    if (s->fd < 0)
        return 0;
    enum sq_file_kind kind;
    struct sq_file_identity now = {0};
    SQ_TRY(sq_file_stat(s->name, &kind, &now, err));
    if (kind == SQ_FILE_REGULAR && sq_file_identity_same(&now, &s->identity))
        return 0;
    return sq_error(err, SQUALL_EIO, "%s changed since it was opened; open it again", s->name);
}
