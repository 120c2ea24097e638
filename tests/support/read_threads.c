/*
 * Read files on many threads at once, for the thread sanitizer: read_threads FILE... Every thread goes through all files, each from another one on, and
 * reads all arrays; in turn of a dataset that all threads share and of one that it opens and closes itself. Fewer files stay open than there
 * are, so they are closed and opened again all the time. What is read must be what one thread read before. Prints how many reads were the same.
 */
#include "base/hash.h"
#include "squall/squall.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 6, ROUNDS = 4, OPEN_FILES = 3, CONTEXT_THREADS = 3 };

struct file {
    const char *path;
    squall_dataset *shared; /* opened anew each round */
    size_t array_count;
    struct sq_hash *sums; /* of each array, as one thread read it; 0: it is refused */
};

static struct file *files;
static size_t file_count;
static squall_context *ctx;
static pthread_barrier_t together;
static atomic_ulong same;

static void fail(const char *path, const char *what)
{
    fprintf(stderr, "%s: %s\n", path, what);
    exit(1);
}

static squall_dataset *opened(const char *path)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_dataset *ds = NULL;
    if (squall_dataset_open(ctx, path, &ds, &err))
        fail(path, err.message);
    return ds;
}

static struct sq_hash sum_of(const char *path, squall_array *a)
{
    const struct squall_array_info info = squall_array_info(a);
    const struct squall_selection all = squall_selection_all(a);
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_hash sum = {0};
    size_t count = 1;
    for (unsigned d = 0; d < info.rank; d++)
        count *= (size_t)info.shape[d];
    if (info.unsupported)
        return sum;
    unsigned char *elements = malloc(count * info.element_bytes + 1);
    if (!elements || squall_array_read(a, &all, elements, NULL, &err))
        fail(path, err.message);
    if (info.type != SQUALL_STRING && info.type != SQUALL_BYTES) {
        sum = sq_hash_bytes(elements, count * info.element_bytes);
    } else {
        for (size_t i = 0; i < count; i++) {
            const struct squall_bytes *one = (const struct squall_bytes *)(const void *)elements + i;
            sum = sq_hash_more(sum, one->data, one->size_bytes + 1);
            free(one->data);
        }
    }
    free(elements);
    return sum;
}

static void check_file(const struct file *f, squall_dataset *ds)
{
    for (size_t i = 0; i < f->array_count; i++) {
        const struct sq_hash sum = sum_of(f->path, squall_dataset_array_at(ds, i));
        if (sum.low != f->sums[i].low || sum.high != f->sums[i].high)
            fail(f->path, "other values than one thread reads");
        atomic_fetch_add(&same, 1);
    }
}

static void *read_all(void *number)
{
    const size_t first = (size_t)(uintptr_t)number;
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&together);
        if (first == 0)
            for (size_t i = 0; i < file_count; i++)
                files[i].shared = opened(files[i].path);
        pthread_barrier_wait(&together); /* all need the same indexes at the same time */
        for (size_t i = 0; i < file_count; i++) {
            const struct file *f = &files[round % 2 ? (first + i) % file_count : i];
            squall_dataset *own = (first + i) % 2 ? opened(f->path) : NULL;
            check_file(f, own ? own : f->shared);
            squall_dataset_close(own);
        }
        pthread_barrier_wait(&together);
        if (first == 0)
            for (size_t i = 0; i < file_count; i++)
                squall_dataset_close(files[i].shared);
    }
    return NULL;
}

static void read_alone(struct file *f, const char *path)
{
    squall_dataset *ds = opened(path);
    f->path = path;
    f->array_count = squall_dataset_info(ds).array_count;
    f->sums = calloc(f->array_count + 1, sizeof *f->sums);
    for (size_t i = 0; f->sums && i < f->array_count; i++)
        f->sums[i] = sum_of(path, squall_dataset_array_at(ds, i));
    squall_dataset_close(ds);
}

int main(int argc, char **argv)
{
    static const struct squall_context_options OPTIONS = {.threads = CONTEXT_THREADS};
    pthread_t threads[THREADS];
    file_count = (size_t)argc - 1;
    files = calloc(file_count + 1, sizeof *files);
    if (!files || file_count == 0 || squall_context_new(&OPTIONS, &ctx, NULL) || pthread_barrier_init(&together, NULL, THREADS))
        return 2;
    for (size_t i = 0; i < file_count; i++)
        read_alone(&files[i], argv[1 + i]);
    squall_handles_set_limit(OPEN_FILES);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, read_all, (void *)(uintptr_t)i))
            return 2;
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < file_count; i++)
        free(files[i].sums);
    free(files);
    squall_context_free(ctx);
    printf("%lu\n", atomic_load(&same));
    return 0;
}
