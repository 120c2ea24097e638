/* Make a Zarr store with a field a time step, and write the steps from four threads at once:  write_regions STORE */
#include <math.h>
#include <pthread.h>
#include <squall/squall.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 24, ROWS = 90, COLUMNS = 180, THREADS = 4 };

struct part {
    squall_array *array;
    int first; /* this step, and every THREADS-th from it */
    int failed;
    struct squall_error err;
};

static void *write_steps(void *arg)
{
    static const float PI = 3.14159265F;
    struct part *part = arg;
    float field[ROWS][COLUMNS];
    for (int step = part->first; step < STEPS && !part->failed; step += THREADS) {
        for (int y = 0; y < ROWS; y++)
            for (int x = 0; x < COLUMNS; x++)
                field[y][x] = 288.0F - 40.0F * cosf(PI * (float)y / ROWS) + 5.0F * sinf(PI * (float)(x + 7 * step) / COLUMNS);
        struct squall_selection box = squall_selection_all(part->array);
        box.start[0] = (uint64_t)step;
        box.count[0] = 1;
        part->failed = squall_array_write(part->array, &box, field, NULL, &part->err);
    }
    return NULL;
}

static int write_all(squall_array *array, struct squall_error *err)
{
    struct part parts[THREADS];
    pthread_t threads[THREADS];
    int failed = 0, started = 0;
    memset(parts, 0, sizeof parts);
    for (; started < THREADS && !failed; started++) {
        parts[started].array = array;
        parts[started].first = started;
        failed = pthread_create(&threads[started], NULL, write_steps, &parts[started]);
    }
    for (int i = 0; i < started; i++) {
        if (failed && i == started - 1)
            continue; /* the one that did not start */
        (void)pthread_join(threads[i], NULL);
        if (parts[i].failed) {
            failed = parts[i].failed;
            *err = parts[i].err;
        }
    }
    return failed;
}

int main(int argc, char **argv)
{
    const uint64_t shape[] = {STEPS, ROWS, COLUMNS}, chunks[] = {6, ROWS, COLUMNS}; /* a chunk has steps of all threads */
    const char *const dims[] = {"step", "latitude", "longitude"};
    const struct squall_array_spec spec = {.type = "float32",
                                           .rank = 3,
                                           .shape = shape,
                                           .chunks = chunks,
                                           .dims = dims,
                                           .fill_value = "\"NaN\"",
                                           .attributes = "{\"units\": \"K\"}"};
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_context *ctx = NULL;
    squall_dataset *ds = NULL;
    squall_array *array = NULL;
    int failed = argc != 2 || squall_context_new(NULL, &ctx, &err) || squall_array_create(ctx, argv[1], "t2m", &spec, NULL, &err) ||
                 squall_store_open(ctx, argv[1], NULL, &ds, &err) || squall_dataset_array(ds, "t2m", &array, &err) ||
                 write_all(array, &err);
    if (failed)
        fprintf(stderr, "%s\n", err.message[0] ? err.message : "usage: write_regions STORE");
    else
        printf("t2m: %d fields written\n", STEPS);
    squall_dataset_close(ds);
    squall_context_free(ctx);
    return failed != 0;
}
