/*
 * Chunks that are lost. In Zarr a chunk that is not there is fill; but a conversion records which ones it wrote, and one of these that is gone is
 * no fill value. The records are read when the first chunk is missed.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "format/zarr/records.h"
#include "format/zarr/zarr.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

/* Of a store that was opened as one array, the folder around it may be the whole. */
static char *root_of(const struct sq_zarr_array *array)
{
    const size_t name = array->name[0] ? strlen(array->name) : strlen(sq_path_name(array->folder));
    const size_t length = strlen(array->folder);
    return length > name + 1 ? sq_strndup(array->folder, length - name - 1) : sq_strdup(".");
}

static int load(const struct sq_zarr_array *array, struct sq_records **ret, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *root = root_of(array);
    SQ_CLEANUP_FREE char *folder = root ? sq_records_folder(root) : NULL;
    SQ_CLEANUP_FREE struct sq_records *records = sq_alloc_zero(1, sizeof *records);
    if (!folder || !records)
        return sq_error_memory(err, sizeof *records);
    SQ_TRY(sq_records_load(folder, records, err));
    *ret = records;
    records = NULL;
    return 0;
}

static int records_of(struct sq_zarr_store *store, const struct sq_zarr_array *array, const struct sq_records **ret,
                      struct squall_error *err)
{
    struct sq_records *loaded = NULL, *there = atomic_load(&store->records);
    if (!there) {
        SQ_TRY(load(array, &loaded, err));
        if (atomic_compare_exchange_strong(&store->records, &there, loaded)) {
            there = loaded;
        } else { /* another thread was sooner */
            sq_records_done(loaded);
            sq_free(loaded);
        }
    }
    *ret = there;
    return 0;
}

/* Within the unit, which has all chunks with one index along the first dimension; false: the array had none there when the record was written. */
static bool number_of(const struct sq_zarr_array *array, const struct sq_record_array *recorded, const uint64_t *chunk, uint64_t *ret)
{
    *ret = 0;
    for (unsigned d = 1; d < array->rank; d++) {
        const uint64_t length = d <= recorded->length_count ? recorded->lengths[d - 1] : array->shape[d];
        const uint64_t count = (length - 1) / array->chunks[d] + 1;
        if (chunk[d] >= count)
            return false;
        *ret = *ret * count + chunk[d];
    }
    return true;
}

int sq_zarr_check_recorded(struct sq_zarr_store *store, const struct sq_zarr_array *array, const uint64_t *chunk, struct squall_error *err)
{
    const struct sq_records *records;
    if (array->rank == 0)
        return 0;
    SQ_TRY(records_of(store, array, &records, err));
    const char *name = array->name[0] ? array->name : sq_path_name(array->folder);
    const struct sq_record_unit *unit = sq_records_unit(records, chunk[0]);
    const struct sq_record_array *recorded = unit && (unit->valid || unit->damage) ? sq_record_array_of(unit, name) : NULL;
    uint64_t number;
    if (!recorded || !number_of(array, recorded, chunk, &number) || number >= recorded->chunk_count ||
        recorded->chunks[number].size_bytes == 0)
        return 0;
    return sq_error(err, SQUALL_ECORRUPT,
                    "it is lost: by the records of the store's conversion it was written, with %" PRIu64
                    " bytes; convert the sources again",
                    recorded->chunks[number].size_bytes);
}
