/*
 * Regions of arrays: whole chunks, parts of chunks from many threads at once, and what is in the store when something fails on the way.
 * What an array should hold is kept beside it, in plain memory.
 */
#include "support/unit.h"

#include "array/bytes.h"
#include "base/crc32c.h"
#include "base/memory.h"
#include "engine/context.h"
#include "squall/squall.h"
#include "support/zarr_files.h"
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 48, COLUMNS = 36 };

static squall_context *context_of(unsigned threads)
{
    const struct squall_context_options options = {.threads = threads, .memory_bytes = 1 << 30};
    squall_context *ctx = NULL;
    assert_int_equal(squall_context_new(&options, &ctx, NULL), 0);
    return ctx;
}

/* ROWS × COLUMNS in chunks of 16 × 8, or shards of 32 × 24 of these. */
static void make_array(squall_context *ctx, const char *path, const char *type, const char *codecs, bool sharded)
{
    const uint64_t shape[] = {ROWS, COLUMNS}, chunks[] = {16, 8}, shards[] = {32, 24};
    const struct squall_array_spec spec = {
        .type = type, .rank = 2, .shape = shape, .chunks = chunks, .shards = sharded ? shards : NULL, .codecs = codecs, .overwrite = 1};
    struct squall_error err = SQUALL_ERROR_INIT;
    must(squall_array_create(ctx, path, NULL, &spec, NULL, &err), &err);
}

static squall_array *open_array(squall_context *ctx, const char *path, const struct squall_store_options *options, squall_dataset **ret)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    must(squall_store_open(ctx, path, options, ret, &err), &err);
    return squall_dataset_array_at(*ret, 0);
}

/* An array of its own, open for writing in a store of one name. */
struct trial {
    squall_context *ctx;
    squall_dataset *ds;
    squall_array *array;
    char *path;
};

static struct trial begin(const char *name, unsigned threads, const char *codecs, bool sharded, const struct squall_store_options *options)
{
    struct trial t = {.ctx = context_of(threads), .path = in_test_folder(name)};
    make_array(t.ctx, t.path, "int32", codecs, sharded);
    t.array = open_array(t.ctx, t.path, options, &t.ds);
    return t;
}

static void end(const struct trial *t)
{
    squall_dataset_close(t->ds);
    squall_context_free(t->ctx);
    sq_free(t->path);
}

static struct squall_selection box(uint64_t row, uint64_t rows, uint64_t row_step, uint64_t column, uint64_t columns, uint64_t column_step)
{
    struct squall_selection s;
    memset(&s, 0, sizeof s);
    s.start[0] = row, s.count[0] = rows, s.step[0] = row_step;
    s.start[1] = column, s.count[1] = columns, s.step[1] = column_step;
    return s;
}

static void assert_holds(squall_array *a, const int32_t *expected)
{
    static int32_t got[ROWS * COLUMNS];
    struct squall_error err = SQUALL_ERROR_INIT;
    const struct squall_selection all = squall_selection_all(a);
    must(squall_array_read(a, &all, got, NULL, &err), &err);
    assert_memory_equal(got, expected, sizeof got);
}

static void a_part_that_was_read_and_written_again_is_read_anew(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *path = in_test_folder("again.zarr");
    squall_context *ctx = context_of(1);
    squall_dataset *ds = NULL;
    for (int sharded = 0; sharded < 2; sharded++) {
        make_array(ctx, path, "int32", "zstd:level=1", sharded);
        squall_array *a = open_array(ctx, path, NULL, &ds);
        const struct squall_selection one = box(3, 1, 1, 4, 1, 1), other = box(5, 1, 1, 4, 1, 1);
        for (int32_t i = 1; i < 300; i++) {
            int32_t got = 0;
            struct squall_error err = SQUALL_ERROR_INIT;
            must(squall_array_write(a, i % 2 ? &one : &other, &i, NULL, &err), &err);
            must(squall_array_read(a, i % 2 ? &one : &other, &got, NULL, &err), &err);
            assert_int_equal(got, i);
        }
        squall_dataset_close(ds);
    }
    squall_context_free(ctx);
}

/* ---- threads ---------------------------------------------------------------------------------------------------------------------- */

enum { WRITERS = 8 };

struct writer {
    squall_array *array;
    int number;
    int status;
    struct squall_error err;
};

/* Every WRITERS-th row, a few columns at a time: each write cuts chunks that all others cut too. */
static void *write_rows(void *arg)
{
    struct writer *w = arg;
    for (int at = 0; at < COLUMNS && !w->status; at += 9) {
        int32_t values[ROWS / WRITERS][9];
        for (int r = 0; r < ROWS / WRITERS; r++)
            for (int c = 0; c < 9; c++)
                values[r][c] = 1000 * (w->number + r * WRITERS) + at + c;
        const struct squall_selection s = box((uint64_t)w->number, ROWS / WRITERS, WRITERS, (uint64_t)at, 9, 1);
        w->status = squall_array_write(w->array, &s, values, NULL, &w->err);
    }
    return NULL;
}

static void threads_that_cut_the_same_chunks_lose_nothing(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *path = in_test_folder("threads.zarr");
    squall_context *ctx = context_of(2);
    static int32_t expected[ROWS][COLUMNS];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            expected[r][c] = 1000 * r + c;
    for (int sharded = 0; sharded < 2; sharded++) {
        make_array(ctx, path, "int32", "zstd:level=1", sharded);
        struct writer writers[WRITERS];
        pthread_t threads[WRITERS];
        squall_dataset *ds[2]; /* two ways to the same array */
        squall_array *arrays[] = {open_array(ctx, path, NULL, &ds[0]), open_array(ctx, path, NULL, &ds[1])};
        for (int i = 0; i < WRITERS; i++) {
            writers[i] = (struct writer){.array = arrays[i % 2], .number = i};
            assert_int_equal(pthread_create(&threads[i], NULL, write_rows, &writers[i]), 0);
        }
        for (int i = 0; i < WRITERS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            must(writers[i].status, &writers[i].err);
        }
        assert_holds(arrays[0], &expected[0][0]);
        squall_dataset_close(ds[0]);
        squall_dataset_close(ds[1]);
    }
    squall_context_free(ctx);
}

#ifndef __SANITIZE_ADDRESS__ /* whose own allocator is left locked in a child of threads (gcc 12): other builds test this */
struct busy {
    squall_array *array;
    _Atomic bool stop;
};

static void *keep_writing(void *arg)
{
    struct busy *b = arg;
    const struct squall_selection s = box(0, ROWS, 1, 1, COLUMNS - 2, 1); /* cuts the chunks at both sides */
    static int32_t values[ROWS * COLUMNS];
    while (!atomic_load(&b->stop))
        assert_int_equal(squall_array_write(b->array, &s, values, NULL, NULL), 0);
    return NULL;
}

static void a_child_of_a_fork_waits_for_no_lock_of_its_parent(void **state)
{
    (void)state;
    const struct trial t = begin("fork.zarr", 2, "zstd:level=1", false, NULL);
    struct busy busy = {.array = t.array};
    const struct squall_selection s = box(0, ROWS, 1, 1, COLUMNS - 2, 1);
    static const int32_t values[ROWS * COLUMNS];
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, keep_writing, &busy), 0);
    for (int i = 0; i < 30; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            _exit(squall_array_write(busy.array, &s, values, NULL, NULL) ? 1 : 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&busy.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    end(&t);
}
#endif

static void files_are_the_same_for_any_number_of_threads(void **state)
{
    (void)state;
    static const char *const CODECS[] = {"zstd:level=3", "blosc:cname=zstd,clevel=5,shuffle=shuffle"};
    enum { SIDE = 512 };
    /* one chunk in a shard; many; two in each of two shards */
    static const uint64_t CHUNKS[][2] = {{SIDE, SIDE}, {128, 64}, {SIDE / 2, SIDE / 2}};
    static const uint64_t SHARDS[][2] = {{SIDE, SIDE}, {SIDE, SIDE}, {SIDE, SIDE / 2}};
    static uint16_t values[SIDE * SIDE];
    for (size_t i = 0; i < SIDE * SIDE; i++)
        values[i] = (uint16_t)(i * i / 97);
    for (unsigned k = 0; k < 6; k++) {
        SQ_CLEANUP_FREE char *path = in_test_folder("same.zarr");
        SQ_CLEANUP_FREE char *first = NULL;
        size_t first_bytes = 0;
        for (unsigned threads = 1; threads <= 5; threads += 2) {
            squall_context *ctx = context_of(threads);
            squall_dataset *ds = NULL;
            struct squall_error err = SQUALL_ERROR_INIT;
            const uint64_t shape[] = {SIDE, SIDE};
            const struct squall_array_spec spec = {.type = "uint16",
                                                   .rank = 2,
                                                   .shape = shape,
                                                   .chunks = CHUNKS[k / 2],
                                                   .shards = SHARDS[k / 2],
                                                   .codecs = CODECS[k % 2],
                                                   .overwrite = 1};
            must(squall_array_create(ctx, path, NULL, &spec, NULL, &err), &err);
            squall_array *a = open_array(ctx, path, NULL, &ds);
            const struct squall_selection all = squall_selection_all(a), part = box(3, SIDE - 70, 1, 5, SIDE / 2 - 8, 2);
            must(squall_array_write(a, &all, values, NULL, &err), &err);
            must(squall_array_write(a, &part, values + 1, NULL, &err), &err);
            squall_dataset_close(ds);
            squall_context_free(ctx);
            size_t size;
            SQ_CLEANUP_FREE char *bytes = read_file("same.zarr/c/0/0", &size);
            if (first) {
                assert_int_equal(size, first_bytes);
                assert_memory_equal(bytes, first, size);
            } else {
                first = bytes;
                first_bytes = size;
                bytes = NULL;
            }
        }
    }
}

/* Chunks of the array, one after the other in an order of its own; every fourth is this process's. */
static int write_chunks_of(unsigned process, const char *path, const int32_t *values)
{
    enum { CHUNKS = 3 * 5 };
    const struct squall_store_options options = {.aligned_only = 1};
    const struct squall_context_options one = {.threads = 1};
    squall_context *own = NULL;
    squall_dataset *ds = NULL;
    if (squall_context_new(&one, &own, NULL) || squall_store_open(own, path, &options, &ds, NULL))
        return 1;
    int status = 0;
    for (unsigned i = 0; i < CHUNKS && !status; i++) {
        unsigned chunk = (i * 7 + process * 4) % CHUNKS;
        uint64_t row = chunk / 5 * 16, column = chunk % 5 * 8, columns = column + 8 < COLUMNS ? 8 : COLUMNS - column;
        const struct squall_selection s = box(row, 16, 1, column, columns, 1);
        if (chunk % 4 == process)
            status = squall_array_write(squall_dataset_array_at(ds, 0), &s, values + row * COLUMNS + column,
                                        (const int64_t[]){COLUMNS * sizeof *values, sizeof *values}, NULL);
    }
    squall_dataset_close(ds);
    squall_context_free(own);
    return status ? 1 : 0;
}

static void processes_that_write_whole_chunks_lose_nothing(void **state)
{
    (void)state;
    enum { PROCESSES = 4 };
    SQ_CLEANUP_FREE char *path = in_test_folder("processes.zarr");
    squall_context *ctx = context_of(1);
    squall_dataset *ds = NULL;
    static int32_t values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = 7 * i + 1;
    make_array(ctx, path, "int32", "zstd:level=1", false);
    pid_t children[PROCESSES];
    for (unsigned i = 0; i < PROCESSES; i++)
        if ((children[i] = fork()) == 0)
            _exit(write_chunks_of(i, path, values));
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_holds(open_array(ctx, path, NULL, &ds), values);
    squall_dataset_close(ds);
    squall_context_free(ctx);
}

struct waves {
    squall_array *array;
    _Atomic bool stop;
};

static void *write_waves(void *arg)
{
    struct waves *w = arg;
    const struct squall_selection chunk = box(0, 16, 1, 0, 8, 1);
    for (int32_t wave = 1; !atomic_load(&w->stop); wave++) {
        int32_t values[16 * 8];
        for (int i = 0; i < 16 * 8; i++)
            values[i] = wave;
        assert_int_equal(squall_array_write(w->array, &chunk, values, NULL, NULL), 0);
    }
    return NULL;
}

static void readers_find_a_chunk_old_or_new_and_never_in_part(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *path = in_test_folder("waves.zarr");
    squall_context *ctx = context_of(2);
    for (int plain = 0; plain < 2; plain++) {
        squall_dataset *ds = NULL, *read_only = NULL;
        struct squall_error err = SQUALL_ERROR_INIT;
        make_array(ctx, path, "int32", plain ? "none" : "zstd:level=1", false);
        struct waves waves = {.array = open_array(ctx, path, NULL, &ds)};
        must(squall_dataset_open(ctx, path, &read_only, &err), &err);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, write_waves, &waves), 0);
        const struct squall_selection whole = box(0, 16, 1, 0, 8, 1), part = box(3, 4, 2, 1, 3, 1);
        for (int i = 0, last = 0; i < 400; i++) {
            int32_t got[16 * 8];
            const int count = i % 2 ? 4 * 3 : 16 * 8;
            must(squall_array_read(squall_dataset_array_at(read_only, 0), i % 2 ? &part : &whole, got, NULL, &err), &err);
            for (int k = 1; k < count; k++)
                assert_int_equal(got[k], got[0]);
            assert_true(got[0] >= last);
            last = got[0];
        }
        atomic_store(&waves.stop, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        squall_dataset_close(read_only);
        squall_dataset_close(ds);
    }
    squall_context_free(ctx);
}

/* ---- shards ----------------------------------------------------------------------------------------------------------------------- */

/* Whatever parts it was changed in. */
static void a_shard_that_was_changed_in_parts_is_the_one_that_is_made_whole(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *parts = in_test_folder("parts.zarr");
    SQ_CLEANUP_FREE char *whole = in_test_folder("whole.zarr");
    squall_context *ctx = context_of(1);
    static int32_t values[ROWS][COLUMNS];
    for (int in = 0; in < 4; in++) {
        squall_dataset *ds[2];
        struct squall_error err = SQUALL_ERROR_INIT;
        const uint64_t shape[] = {ROWS, COLUMNS}, chunks[] = {16, 8}, shards[] = {32, 24};
        const struct squall_array_spec spec = {.type = "int32",
                                               .rank = 2,
                                               .shape = shape,
                                               .chunks = chunks,
                                               .shards = shards,
                                               .codecs = in < 2 ? "zstd:level=3" : "none",
                                               .index_at_start = in % 2,
                                               .overwrite = 1};
        must(squall_array_create(ctx, parts, NULL, &spec, NULL, &err), &err);
        must(squall_array_create(ctx, whole, NULL, &spec, NULL, &err), &err);
        squall_array *a = open_array(ctx, parts, NULL, &ds[0]), *b = open_array(ctx, whole, NULL, &ds[1]);
        memset(values, 0, sizeof values);
        for (int k = 0; k < 12; k++) {
            const uint64_t row = (uint64_t)(k * 17 % 40), column = (uint64_t)(k * 11 % 30);
            const struct squall_selection s = box(row, 4, 2, column, 3, 2);
            int32_t part[4][3];
            for (int r = 0; r < 4; r++)
                for (int c = 0; c < 3; c++)
                    part[r][c] = values[row + 2 * (uint64_t)r][column + 2 * (uint64_t)c] = k % 5 ? 100 * k + 3 * r + c : 0;
            must(squall_array_write(a, &s, part, NULL, &err), &err);
            assert_holds(a, &values[0][0]);
        }
        const struct squall_selection all = squall_selection_all(b);
        must(squall_array_write(b, &all, values, NULL, &err), &err);
        for (int k = 0; k < 4; k++) {
            static const char *const NAMES[][2] = {{"parts.zarr/c/0/0", "whole.zarr/c/0/0"},
                                                   {"parts.zarr/c/0/1", "whole.zarr/c/0/1"},
                                                   {"parts.zarr/c/1/0", "whole.zarr/c/1/0"},
                                                   {"parts.zarr/c/1/1", "whole.zarr/c/1/1"}};
            size_t sizes[2];
            SQ_CLEANUP_FREE char *one = read_file(NAMES[k][0], &sizes[0]);
            SQ_CLEANUP_FREE char *other = read_file(NAMES[k][1], &sizes[1]);
            assert_int_equal(sizes[0], sizes[1]);
            assert_memory_equal(one, other, sizes[0]);
        }
        memset(values, 0, sizeof values);
        const struct squall_selection rows = box(0, 40, 1, 0, COLUMNS, 1), rest = box(40, 8, 1, 0, COLUMNS, 1);
        must(squall_array_write(a, &rows, values, NULL, &err), &err);
        must(squall_array_write(a, &rest, values, NULL, &err), &err);
        for (int k = 0; k < 4; k++) {
            static const char *const GONE[] = {"parts.zarr/c/0/0", "parts.zarr/c/0/1", "parts.zarr/c/1/0", "parts.zarr/c/1/1"};
            assert_false(is_there(GONE[k]));
        }
        squall_dataset_close(ds[0]);
        squall_dataset_close(ds[1]);
    }
    squall_context_free(ctx);
}

/* What is not touched is not decoded: damage stays where it is, and does not keep others from being written. */
static void inner_chunks_that_are_not_touched_keep_their_bytes(void **state)
{
    (void)state;
    struct squall_error err = SQUALL_ERROR_INIT;
    static int32_t values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = i;
    const struct trial t = begin("kept.zarr", 1, "zstd:level=1", true, NULL);
    squall_array *a = t.array;
    const struct squall_selection all = squall_selection_all(a), first = box(2, 3, 1, 2, 3, 1), second = box(2, 3, 1, 9, 3, 1);
    must(squall_array_write(a, &all, values, NULL, &err), &err);
    size_t size;
    SQ_CLEANUP_FREE char *shard = read_file("kept.zarr/c/0/0", &size);
    memset(shard, 0x55, 8); /* the first inner chunk's */
    put_bytes("kept.zarr/c/0/0", shard, size);
    int32_t got[9];
    must(squall_array_write(a, &second, values, NULL, &err), &err);
    must(squall_array_read(a, &second, got, NULL, &err), &err);
    assert_memory_equal(got, values, sizeof got);
    assert_int_equal(squall_array_read(a, &first, got, NULL, &err), SQUALL_ECORRUPT);
    assert_int_equal(squall_array_write(a, &first, values, NULL, &err), SQUALL_ECORRUPT);
    assert_ptr_equal(strstr(err.message, "array kept.zarr, shard 0/0: inner chunk 0/0: zstd: "), err.message);
    put_bytes("kept.zarr/c/0/0", shard, 20); /* less than an index */
    assert_int_equal(squall_array_write(a, &second, values, NULL, &err), SQUALL_ECORRUPT);
    assert_non_null(strstr(err.message, "shard 0/0"));
    end(&t);
}

/* As a writer may make it that stores equal ones once. */
static void inner_chunks_that_share_their_bytes_are_changed_one_by_one(void **state)
{
    (void)state;
    enum { INNER_BYTES = 16 * 8 * 4, INNER = 6, INDEX_BYTES = INNER * 16 + 4 };
    struct squall_error err = SQUALL_ERROR_INIT;
    static int32_t values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = 7;
    const struct trial t = begin("shared.zarr", 1, "none", true, NULL);
    squall_array *a = t.array;
    const struct squall_selection all = squall_selection_all(a), part = box(2, 2, 1, 3, 2, 1);
    must(squall_array_write(a, &all, values, NULL, &err), &err);
    size_t size;
    SQ_CLEANUP_FREE char *shard = read_file("shared.zarr/c/0/0", &size);
    assert_int_equal(size, INNER * INNER_BYTES + INDEX_BYTES);
    char *index = shard + INNER_BYTES;
    memcpy(index, shard + INNER * INNER_BYTES, INDEX_BYTES);
    for (int i = 0; i < INNER; i++)
        memset(index + 16 * i, 0, 8); /* they all begin at byte 0 */
    const uint32_t crc = sq_crc32c(0, index, INNER * 16);
    memcpy(index + INNER * 16, &crc, sizeof crc);
    put_bytes("shared.zarr/c/0/0", shard, INNER_BYTES + INDEX_BYTES);
    assert_holds(a, values);
    const int32_t change[] = {1, 2, 3, 4};
    must(squall_array_write(a, &part, change, NULL, &err), &err);
    for (int i = 0; i < 4; i++)
        values[(2 + i / 2) * COLUMNS + 3 + i % 2] = change[i];
    assert_holds(a, values);
    end(&t);
}

/* ---- what is refused -------------------------------------------------------------------------------------------------------------- */

static void regions_that_cut_chunks_are_refused_where_that_was_asked_for(void **state)
{
    (void)state;
    const struct trial t = begin("aligned.zarr", 1, "none", true, &(struct squall_store_options){.aligned_only = 1});
    squall_array *a = t.array;
    squall_dataset *ds = NULL;
    static const int32_t values[ROWS * COLUMNS];
    const struct squall_selection cuts = box(32, 10, 1, 3, 22, 1), aligned = squall_selection_aligned(a, &cuts);
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_false(squall_selection_is_aligned(a, &cuts));
    assert_int_equal(squall_array_write(a, &cuts, values, NULL, &err), SQUALL_EREFUSED);
    assert_non_null(strstr(err.message, "[32:48, 0:36]"));
    assert_int_equal(aligned.start[0], 32);
    assert_int_equal(aligned.count[0], 16);
    assert_int_equal(aligned.count[1], 36);
    assert_true(squall_selection_is_aligned(a, &aligned));
    must(squall_array_write(a, &aligned, values, NULL, &err), &err);
    const struct squall_selection every_second = box(0, 24, 2, 0, 36, 1);
    assert_false(squall_selection_is_aligned(a, &every_second));
    const struct squall_selection outside = box(40, 10, 1, 0, 36, 1);
    assert_int_equal(squall_array_write(a, &outside, values, NULL, &err), SQUALL_EINVAL);

    must(squall_dataset_open(t.ctx, t.path, &ds, &err), &err);
    assert_int_equal(squall_array_write(squall_dataset_array_at(ds, 0), &aligned, values, NULL, &err), SQUALL_EREFUSED);
    assert_non_null(strstr(err.message, "not opened for writing"));
    squall_dataset_close(ds);
    end(&t);
}

static void a_damaged_chunk_is_replaced_whole_but_not_changed_in_part(void **state)
{
    (void)state;
    const struct trial t = begin("damaged.zarr", 1, "zstd:level=1", false, NULL);
    squall_array *a = t.array;
    put_file("damaged.zarr/c/0/0", "this is no zstd frame");
    int32_t values[16 * 8];
    for (int i = 0; i < 16 * 8; i++)
        values[i] = i;
    const struct squall_selection part = box(0, 2, 1, 0, 8, 1), whole = box(0, 16, 1, 0, 8, 1);
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(squall_array_write(a, &part, values, NULL, &err), SQUALL_ECORRUPT);
    assert_ptr_equal(strstr(err.message, "array damaged.zarr, chunk 0/0: "), err.message);
    assert_null(strstr(err.message + 1, "array damaged.zarr"));
    must(squall_array_write(a, &whole, values, NULL, &err), &err);
    must(squall_array_write(a, &part, values, NULL, &err), &err);
    end(&t);
}

static void chunks_of_nothing_but_fill_are_removed_unless_wanted(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *path = in_test_folder("empty.zarr");
    squall_context *ctx = context_of(1);
    static const int32_t zeros[ROWS * COLUMNS];
    static int32_t ones[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ones[i] = 1;
    make_array(ctx, path, "int32", "none", false);
    for (int wanted = 0; wanted < 2; wanted++) {
        squall_dataset *ds = NULL;
        struct squall_error err = SQUALL_ERROR_INIT;
        squall_array *a = open_array(ctx, path, &(struct squall_store_options){.write_empty_chunks = wanted}, &ds);
        const struct squall_selection all = squall_selection_all(a), half = box(0, 8, 1, 0, 8, 1), rest = box(8, 8, 1, 0, 8, 1);
        must(squall_array_write(a, &all, ones, NULL, &err), &err);
        assert_true(is_there("empty.zarr/c/2/4"));
        must(squall_array_write(a, &half, zeros, NULL, &err), &err);
        assert_true(is_there("empty.zarr/c/0/0"));
        must(squall_array_write(a, &rest, zeros, NULL, &err), &err);
        assert_int_equal(is_there("empty.zarr/c/0/0"), wanted);
        must(squall_array_write(a, &all, zeros, NULL, &err), &err);
        assert_int_equal(is_there("empty.zarr/c/2/4"), wanted); /* at the edge, where the chunk reaches beyond the array */
        assert_holds(a, zeros);
        squall_dataset_close(ds);
    }
    squall_context_free(ctx);
}

/* ---- failures --------------------------------------------------------------------------------------------------------------------- */

/* Each chunk is as it was, or as it is to be. */
static void every_failed_allocation_leaves_whole_chunks(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *path = in_test_folder("memory.zarr");
    squall_context *ctx = context_of(1);
    make_array(ctx, path, "int32", "zstd:level=1", true);
    static int32_t old[ROWS * COLUMNS], new[ROWS * COLUMNS], got[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        old[i] = 1 + i;
        new[i] = -1 - i;
    }
    long failures = 0;
    for (long at = 0;; at++) {
        squall_dataset *ds = NULL;
        struct squall_error err = SQUALL_ERROR_INIT;
        squall_array *a = open_array(ctx, path, NULL, &ds);
        const struct squall_selection all = squall_selection_all(a), part = box(0, 40, 1, 0, COLUMNS, 1);
        must(squall_array_write(a, &all, old, NULL, &err), &err);
        squall_dataset_close(ds);
        a = open_array(ctx, path, NULL, &ds); /* without the buffers of the write before */
        sq_fail_allocation(at);
        int status = squall_array_write(a, &part, new, NULL, &err);
        sq_fail_allocation(-1);
        must(squall_array_read(a, &all, got, NULL, &err), &err);
        for (int i = 0; i < ROWS * COLUMNS; i++)
            assert_true(got[i] == old[i] || (got[i] == new[i] && i < 40 * COLUMNS));
        squall_dataset_close(ds);
        if (!status)
            break;
        assert_int_equal(status, SQUALL_ENOMEM);
        failures++;
    }
    assert_true(failures > 10);
    squall_context_free(ctx);
}

static void every_failed_allocation_leaves_whole_texts(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *path = in_test_folder("texts.zarr");
    squall_context *ctx = context_of(1);
    make_array(ctx, path, "string", "zstd:level=1", false);
    static const struct squall_bytes SOME = TEXT("a text");
    struct squall_bytes texts[ROWS * COLUMNS] = {{NULL, 0}}, got[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        if (i % 3)
            texts[i] = SOME;
    long failures = 0;
    for (long at = 0;; at += 1 + at / 40) {
        squall_dataset *ds = NULL;
        struct squall_error err = SQUALL_ERROR_INIT;
        squall_array *a = open_array(ctx, path, NULL, &ds);
        const struct squall_selection all = squall_selection_all(a), part = box(1, 40, 1, 0, COLUMNS, 1);
        sq_fail_allocation(at);
        int status = squall_array_write(a, &part, texts, NULL, &err);
        sq_fail_allocation(-1);
        must(squall_array_read(a, &all, got, NULL, &err), &err);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            bool inside = i >= COLUMNS && i < 41 * COLUMNS;
            assert_true(got[i].size_bytes == 0 || (inside && sq_bytes_equal(&got[i], &texts[i - COLUMNS])));
        }
        sq_bytes_free(got, ROWS * COLUMNS);
        squall_dataset_close(ds);
        if (!status)
            break;
        assert_int_equal(status, SQUALL_ENOMEM);
        failures++;
    }
    assert_true(failures > 10);
    squall_context_free(ctx);
}

/* What an array claims to have costs nothing before there is something to put there. */
static void texts_that_are_not_there_touch_no_memory(void **state)
{
    (void)state;
    enum { CLAIMED = 1 << 26 };
    SQ_CLEANUP_FREE char *path = in_test_folder("claims.zarr");
    squall_context *ctx = context_of(1);
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_dataset *ds = NULL;
    const struct squall_array_spec spec = {.type = "string", .rank = 1, .shape = (const uint64_t[]){CLAIMED}, .codecs = "none"};
    must(squall_array_create(ctx, path, NULL, &spec, NULL, &err), &err);
    put_bytes("claims.zarr/c/0", "\3\0\0\0", 4);
    must(squall_dataset_open(ctx, path, &ds, &err), &err);
    squall_array *a = squall_dataset_array_at(ds, 0);
    const struct squall_selection all = squall_selection_all(a);
    struct rusage before, after;
    void *room = calloc(CLAIMED, sizeof(struct squall_bytes));
    assert_non_null(room);
    getrusage(RUSAGE_SELF, &before);
    assert_int_not_equal(squall_array_read(a, &all, room, NULL, NULL), 0);
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 50 << 10); /* KiB */
    free(room);
    squall_dataset_close(ds);
    squall_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_that_was_read_and_written_again_is_read_anew),
        cmocka_unit_test(threads_that_cut_the_same_chunks_lose_nothing),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(a_child_of_a_fork_waits_for_no_lock_of_its_parent),
#endif
        cmocka_unit_test(processes_that_write_whole_chunks_lose_nothing),
        cmocka_unit_test(readers_find_a_chunk_old_or_new_and_never_in_part),
        cmocka_unit_test(files_are_the_same_for_any_number_of_threads),
        cmocka_unit_test(a_shard_that_was_changed_in_parts_is_the_one_that_is_made_whole),
        cmocka_unit_test(inner_chunks_that_are_not_touched_keep_their_bytes),
        cmocka_unit_test(inner_chunks_that_share_their_bytes_are_changed_one_by_one),
        cmocka_unit_test(regions_that_cut_chunks_are_refused_where_that_was_asked_for),
        cmocka_unit_test(a_damaged_chunk_is_replaced_whole_but_not_changed_in_part),
        cmocka_unit_test(chunks_of_nothing_but_fill_are_removed_unless_wanted),
        cmocka_unit_test(every_failed_allocation_leaves_whole_chunks),
        cmocka_unit_test(texts_that_are_not_there_touch_no_memory),
        cmocka_unit_test(every_failed_allocation_leaves_whole_texts),
    };
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
