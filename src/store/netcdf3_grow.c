/*
 * NetCDF-3 files made longer. What the file holds ends where the header's number of records says, so first there is room behind that, with fill
 * values in it, and only when that is on the disk the number changes: a growth that ends anywhere leaves the old file, with something
 * behind it that nobody reads.
 */
#include "base/error_internal.h"
#include "store/netcdf3.h"
#include "sys/file.h"
#include <inttypes.h>

enum { COUNT_OFFSET = 4, COUNT_BYTES_MAX = 8 };

struct growth {
    struct squall_dataset *ds;
    const struct sq_netcdf3 *file;
    const char *path;
    int fd;
    uint64_t before, after;            /* records */
    uint64_t bytes_before, file_bytes; /* of the file */
};

static int check_shape(const struct squall_array *a, const uint64_t *shape, struct squall_error *err)
{
    const struct sq_netcdf3_variable *v = sq_netcdf3_of_array(a);
    if (!a->dataset->writable)
        return sq_error(err, SQUALL_EREFUSED, "array %s was not opened for writing", a->info.name);
    for (unsigned d = 0; d < v->rank; d++) {
        if (shape[d] == v->shape[d])
            continue;
        if (d > 0 || !v->is_record)
            return sq_error(err, SQUALL_EUNSUPPORTED,
                            "array %s: dimension %s is not the record dimension, and keeps its length: write a new file", a->info.name,
                            v->dims[d]);
        if (shape[d] < v->shape[d])
            return sq_error(err, SQUALL_EUNSUPPORTED, "array %s: the records of a NetCDF-3 file do not become fewer: write a new file",
                            a->info.name);
    }
    return 0;
}

static unsigned count_bytes(const struct growth *g)
{
    return g->file->version == 5 ? 8 : 4;
}

/* Has another process made the file longer since it was opened? */
static int check_count(const struct growth *g, struct squall_error *err)
{
    uint8_t bytes[COUNT_BYTES_MAX];
    uint64_t count = 0;
    SQ_TRY(sq_file_read_at(g->fd, g->path, COUNT_OFFSET, bytes, count_bytes(g), err));
    for (unsigned i = 0; i < count_bytes(g); i++)
        count = count << 8 | bytes[i];
    if (g->file->streaming || count == g->before)
        return 0;
    return sq_error(err, SQUALL_EREFUSED, "%s has %" PRIu64 " records now, but had %" PRIu64 " when it was opened; open it again", g->path,
                    count, g->before);
}

/* The file that the dataset was opened as; where locks are not needed for writing, nobody else makes it longer meanwhile. */
static int open_file(struct growth *g, struct squall_error *err)
{
    const struct sq_file_identity known = sq_source_identity(g->file->source);
    struct sq_file_identity now = {0};
    SQ_TRY(sq_file_open_to_write(g->path, &g->fd, &now, err));
    if (!sq_file_identity_same(&known, &now))
        return sq_error(err, SQUALL_EIO, "%s is another file since it was opened; open it again", g->path);
    if (!sq_file_is_remote(g->fd))
        SQ_TRY(sq_file_hold_pages(g->fd, g->path, 0, COUNT_OFFSET + COUNT_BYTES_MAX, err));
    return check_count(g, err);
}

static int fill_records(const struct growth *g, struct squall_error *err)
{
    static const int64_t STAND_STILL[SQUALL_RANK_MAX];
    for (size_t i = 0; i < g->ds->array_count; i++) {
        struct squall_array *a = g->ds->arrays[i];
        struct squall_selection added = squall_selection_all(a);
        if (!sq_netcdf3_of_array(a)->is_record)
            continue;
        added.start[0] = g->before;
        added.count[0] = g->after - g->before;
        SQ_TRY(sq_netcdf3_region_write(a, &added, a->fill, STAND_STILL, err));
    }
    return sq_file_make_durable(g->fd, g->path, err);
}

static int write_count(const struct growth *g, struct squall_error *err)
{
    uint8_t bytes[COUNT_BYTES_MAX];
    for (unsigned i = 0; i < count_bytes(g); i++)
        bytes[i] = (uint8_t)(g->after >> 8 * (count_bytes(g) - 1 - i));
    return sq_file_write_at(g->fd, g->path, COUNT_OFFSET, bytes, count_bytes(g), err);
}

static int grow(struct growth *g, struct squall_error *err)
{
    SQ_TRY(open_file(g, err));
    SQ_TRY(sq_file_set_size(g->fd, g->path, g->file_bytes, err));
    sq_netcdf3_dataset_set_records(g->ds, g->after, g->file_bytes);
    int status = fill_records(g, err);
    if (!status)
        status = write_count(g, err);
    if (status) {
        const int stays = sq_file_set_size(g->fd, g->path, g->bytes_before, NULL); /* what is behind the records does no harm */
        sq_netcdf3_dataset_set_records(g->ds, g->before, stays ? g->file_bytes : g->bytes_before);
        return status;
    }
    return sq_file_make_durable(g->fd, g->path, err);
}

int sq_netcdf3_grow(struct squall_array *a, const uint64_t *shape, struct squall_error *err)
{
    struct growth g = {.ds = a->dataset, .file = sq_netcdf3_of_dataset(a->dataset), .path = a->dataset->path, .fd = -1};
    SQ_TRY(check_shape(a, shape, err));
    g.before = g.file->record_count;
    g.after = a->info.rank && sq_netcdf3_of_array(a)->is_record ? shape[0] : g.before;
    if (g.after == g.before)
        return 0;
    g.bytes_before = sq_source_size(g.file->source);
    SQ_TRY(sq_netcdf3_check_growth(g.file, g.after, &g.file_bytes, err));
    int status = grow(&g, err);
    if (status) {
        sq_file_close(g.fd);
        return sq_error_within(err, status, "array %s", a->info.name);
    }
    return sq_file_close_written(g.fd, g.path, err);
}
