/*
 * HDF5 files, read: of every array a few small boxes at its beginning and end, one with steps, and what its chunks take. So chunk indexes, filters
 * and elements meet bytes that nobody meant. What comes is elements, or an error that names the array, and of damage the file.
 * Checksums of metadata hold here whatever the bytes are.
 */
#include "base/memory.h"
#include "engine/hdf5_array.h"
#include "squall/squall.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BOX_ELEMENTS = 64, ELEMENT_BYTES_MAX = 1 << 16, ARRAYS_MAX = 64, PATH_BYTES = 32 };

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_status(int status, const char *path, const struct squall_error *err)
{
    require(status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED || status == SQUALL_ENOMEM);
    require(strstr(err->message, path) || (status != SQUALL_ECORRUPT && !strncmp(err->message, "array ", 6)));
}

/* At the end of each dimension, or at its beginning; as many elements as there is room for. */
static size_t choose_box(const struct squall_array_info *info, bool at_end, uint64_t step, struct squall_selection *s)
{
    size_t room = BOX_ELEMENTS, count = 1;
    for (unsigned d = info->rank; d-- > 0;) {
        const uint64_t length = info->shape[d], there = (length + step - 1) / step;
        s->step[d] = step;
        s->count[d] = there < room ? there : room;
        s->start[d] = at_end && s->count[d] ? length - 1 - (s->count[d] - 1) * step : 0;
        count *= (size_t)s->count[d];
        room /= s->count[d] ? (size_t)s->count[d] : 1;
    }
    return count;
}

static void read_box(const char *path, squall_array *a, bool at_end, uint64_t step)
{
    const struct squall_array_info info = squall_array_info(a);
    struct squall_error err = SQUALL_ERROR_INIT;
    struct squall_selection s;
    const size_t count = choose_box(&info, at_end, step, &s);
    uint8_t *elements = malloc(count * info.element_bytes + 1); /* exactly so many, for those who watch the heap */
    int status = squall_array_read(a, &s, elements, NULL, &err);
    if (status)
        check_status(status, path, &err);
    else if (info.type == SQUALL_STRING || info.type == SQUALL_BYTES)
        for (size_t i = 0; i < count; i++) {
            const struct squall_bytes *one = (const struct squall_bytes *)(const void *)elements + i;
            require(one->data && ((const char *)one->data)[one->size_bytes] == 0);
            free(one->data);
        }
    free(elements);
}

static void read_array(const char *path, squall_array *a)
{
    const struct squall_array_info info = squall_array_info(a);
    struct squall_error err = SQUALL_ERROR_INIT;
    uint64_t stored;
    require(info.name && info.type_name && info.numpy_type && info.codecs && info.attributes && info.fill_value);
    int status = squall_array_stored_bytes(a, &stored, &err);
    if (status)
        check_status(status, path, &err);
    if (info.element_bytes > ELEMENT_BYTES_MAX)
        return;
    read_box(path, a, false, 1);
    read_box(path, a, true, 1);
    read_box(path, a, true, 3);
}

static void read_file(const squall_context *ctx, const char *path)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_dataset *ds = NULL;
    struct sq_source *source;
    int status = sq_source_open_file(path, &source, &err);
    if (!status)
        status = sq_hdf5_dataset_open(ctx, source, &ds, &err);
    if (status) {
        check_status(status, path, &err);
        return;
    }
    const size_t count = squall_dataset_info(ds).array_count;
    for (size_t i = 0; i < count && i < ARRAYS_MAX; i++)
        read_array(path, squall_dataset_array_at(ds, i));
    squall_dataset_close(ds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct squall_context_options OPTIONS = {.threads = 1, .memory_bytes = 64 << 20};
    static squall_context *ctx;
    char path[PATH_BYTES];
    int fd = memfd_create("squall", MFD_CLOEXEC);
    require(ctx || !squall_context_new(&OPTIONS, &ctx, NULL));
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_file(ctx, path);
    close(fd);
    return 0;
}
