/* Arrays of a store in a zip file: stored and deflated members, shards in either, and what becomes of a read whose memory ends. */
#include "support/folder.h"
#include "support/zip_writer.h"

#include "base/memory.h"
#include "engine/chunk_cache.h"
#include "engine/zarr_array.h"
#include <utime.h>

#define DOCUMENT(codecs)                                                                                                                   \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[8],\"data_type\":\"int32\",\"fill_value\":7,"                                   \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"                                                       \
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"codecs\":[" codecs "]}"
#define PLAIN "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define SHARDED                                                                                                                            \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],\"codecs\":[" PLAIN "],\"index_codecs\":[" PLAIN "]}}"

static const int32_t CHUNK[4] = {1, 2, 3, 4};
static struct squall_context context = {.threads = 1, .memory_bytes = 1 << 30};

static void add(struct zip_writer *z, const char *name, const void *bytes, size_t size, bool deflated)
{
    struct zip_fields f = zip_member(name, bytes, size);
    uint8_t stored[4096];
    if (deflated) {
        struct libdeflate_compressor *deflater = libdeflate_alloc_compressor(6);
        f.method = 8;
        f.stored_bytes = (uint32_t)libdeflate_deflate_compress(deflater, bytes, size, stored, sizeof stored);
        libdeflate_free_compressor(deflater);
        assert_true(f.stored_bytes > 0);
        bytes = stored;
    }
    zip_add(z, &f, bytes);
}

/* Groups are not needed: "plain" and "sharded", of whose two chunks only the first is there. */
static int make_store(void **state)
{
    static struct zip_writer z;
    uint8_t shard[16 + 32];
    if (folder_make(state))
        return -1;
    memcpy(shard, CHUNK, 16);
    zip_put(zip_put(zip_put(zip_put(shard + 16, 8, 8), 8, 8), 0, 8), 8, 8); /* the second inner chunk comes first */
    for (int deflated = 0; deflated < 2; deflated++) {
        z = (struct zip_writer){.size = 0};
        add(&z, "zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\"}", 37, deflated);
        add(&z, "plain/zarr.json", DOCUMENT(PLAIN), strlen(DOCUMENT(PLAIN)), deflated);
        add(&z, "plain/c/0", CHUNK, sizeof CHUNK, deflated);
        add(&z, "sharded/zarr.json", DOCUMENT(SHARDED), strlen(DOCUMENT(SHARDED)), deflated);
        add(&z, "sharded/c/0", shard, sizeof shard, deflated);
        zip_end(&z);
        const char *path = in_folder(*state, deflated ? "deflated.zip" : "stored.zip");
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(z.bytes, 1, z.size, f) != z.size || fclose(f))
            return -1;
        if (utime(path, &(struct utimbuf){1, 1})) /* of what was written just now nothing is kept */
            return -1;
    }
    return (context.cache = sq_chunk_cache_new(1 << 20)) ? 0 : -1;
}

static int remove_store(void **state)
{
    sq_chunk_cache_free(context.cache);
    return folder_remove(state);
}

static void assert_elements(squall_array *a, uint64_t start, uint64_t count, const int32_t *elements)
{
    struct squall_selection s = squall_selection_all(a);
    struct squall_error err = SQUALL_ERROR_INIT;
    int32_t found[8] = {0};
    s.start[0] = start;
    s.count[0] = count;
    if (squall_array_read(a, &s, found, NULL, &err))
        fail_msg("%s", err.message);
    assert_memory_equal(found, elements, count * sizeof *found);
}

static void members_are_read_in_place_or_inflated_first(void **state)
{
    static const int32_t PLAIN_ELEMENTS[] = {1, 2, 3, 4, 7, 7, 7, 7}, SHARDED_ELEMENTS[] = {3, 4, 1, 2, 7, 7, 7, 7};
    for (int deflated = 0; deflated < 2; deflated++) {
        struct squall_dataset *ds;
        assert_int_equal(sq_zarr_dataset_open(&context, in_folder(*state, deflated ? "deflated.zip" : "stored.zip"), &ds, NULL), 0);
        for (int sharded = 0; sharded < 2; sharded++) {
            squall_array *a;
            uint64_t bytes;
            const int32_t *elements = sharded ? SHARDED_ELEMENTS : PLAIN_ELEMENTS;
            assert_int_equal(squall_dataset_array(ds, sharded ? "sharded" : "plain", &a, NULL), 0);
            assert_elements(a, 0, 8, elements);
            for (int twice = 0; twice < 2; twice++) /* the shard's index is kept */
                for (uint64_t i = 0; i < 8; i++)
                    assert_elements(a, i, 1, elements + i);
            assert_int_equal(squall_array_stored_bytes(a, &bytes, NULL), 0);
            assert_true(deflated || bytes == (sharded ? 48 : 16));
        }
        squall_dataset_close(ds);
    }
}

static void every_failed_allocation_is_an_error(void **state)
{
    for (int sharded = 0; sharded < 2; sharded++)
        for (long n = 0, done = 0; !done; n++) {
            struct squall_dataset *ds = NULL;
            squall_array *a;
            int32_t elements[8];
            struct squall_error err = SQUALL_ERROR_INIT;
            sq_fail_allocation(n);
            int status = sq_zarr_dataset_open(&context, in_folder(*state, "deflated.zip"), &ds, &err);
            if (!status)
                status = squall_dataset_array(ds, sharded ? "sharded" : "plain", &a, &err);
            if (!status) {
                const struct squall_selection all = squall_selection_all(a);
                status = squall_array_read(a, &all, elements, NULL, &err);
            }
            sq_fail_allocation(-1);
            squall_dataset_close(ds);
            done = status == 0;
            if (!done && status != SQUALL_ENOMEM)
                fail_msg("allocation %ld: %d %s", n, status, err.message);
            assert_true(!done || n > 30);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_read_in_place_or_inflated_first),
        cmocka_unit_test(every_failed_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_store, remove_store);
}
