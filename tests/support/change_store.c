/*
 * change_store make|change|check STORE: a store with consolidated metadata and an array; a region written over it, attributes changed, an array
 * added; whether each chunk has its old content or its new, whatever happened on the way. tests/python/test_store_faults.py makes it fail.
 */
#include <squall/squall.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 12, CHUNK = 5 };

static squall_context *ctx;
static struct squall_error err = SQUALL_ERROR_INIT;
static const struct squall_store_options options = {.durability = SQUALL_DURABILITY_FULL};

static int make_array(const char *store, const char *name)
{
    const uint64_t shape[] = {SIDE, SIDE}, chunks[] = {CHUNK, CHUNK};
    const struct squall_array_spec spec = {.type = "int32", .rank = 2, .shape = shape, .chunks = chunks, .codecs = "zstd:level=1"};
    return squall_array_create(ctx, store, name, &spec, &options, &err);
}

static int write_rows(const char *store, uint64_t first, uint64_t count, int32_t sign)
{
    int32_t values[SIDE * SIDE];
    squall_dataset *ds = NULL;
    squall_array *a = NULL;
    struct squall_selection s;
    for (int i = 0; i < SIDE * SIDE; i++)
        values[i] = sign * (i + 1);
    int status = squall_store_open(ctx, store, &options, &ds, &err);
    if (!status)
        status = squall_dataset_array(ds, "t", &a, &err);
    if (!status) {
        s = squall_selection_all(a);
        s.start[0] = first;
        s.count[0] = count;
        status = squall_array_write(a, &s, values + first * SIDE, NULL, &err);
    }
    squall_dataset_close(ds);
    return status;
}

static int make(const char *store)
{
    const struct squall_group_spec group = {.attributes = "{\"run\": 1}", .consolidated = 1};
    int status = squall_group_create(ctx, store, NULL, &group, &options, &err);
    if (!status)
        status = make_array(store, "t");
    return status ? status : write_rows(store, 0, SIDE, 1);
}

static int change(const char *store)
{
    int status = write_rows(store, 2, SIDE - 4, -1);
    if (!status)
        status = squall_node_set_attributes(ctx, store, NULL, "{\"run\": 2}", &options, &err);
    return status ? status : make_array(store, "g/u");
}

/* Of each chunk all selected elements are new, or none is; the rest is old. */
static int check_values(const int32_t *got)
{
    for (int i = 0; i < SIDE * SIDE; i++) {
        int row = i / SIDE, column = i % SIDE, inside = row >= 2 && row < SIDE - 2;
        int top = row / CHUNK * CHUNK, first = (top < 2 ? 2 : top) * SIDE + column / CHUNK * CHUNK; /* the chunk's first row that changes */
        int is_new = inside && got[first] < 0;
        if (got[i] != (is_new ? -1 : 1) * (i + 1)) {
            fprintf(stderr, "element %d of row %d is %d\n", column, row, (int)got[i]);
            return 1;
        }
    }
    return 0;
}

static int check(const char *store)
{
    int32_t got[SIDE * SIDE];
    squall_dataset *ds = NULL;
    squall_array *a = NULL;
    int status = squall_dataset_open(ctx, store, &ds, &err);
    if (!status)
        status = squall_dataset_array(ds, "t", &a, &err);
    if (!status) {
        const struct squall_selection all = squall_selection_all(a);
        status = squall_array_read(a, &all, got, NULL, &err);
    }
    if (!status && (squall_dataset_info(ds).problem_count || check_values(got)))
        status = 1;
    squall_dataset_close(ds);
    return status;
}

int main(int argc, char **argv)
{
    const struct squall_context_options one = {.threads = 1};
    int status = argc != 3 ? SQUALL_EINVAL : squall_context_new(&one, &ctx, &err);
    if (!status)
        status = !strcmp(argv[1], "make") ? make(argv[2]) : !strcmp(argv[1], "change") ? change(argv[2]) : check(argv[2]);
    if (status)
        fprintf(stderr, "%s\n", err.message);
    squall_context_free(ctx);
    return status ? 1 : 0;
}
