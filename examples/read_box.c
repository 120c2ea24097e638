/* Read the first element along every dimension but the last two, and print the mean of what is left:  read_box PATH NAME */
#include <math.h>
#include <squall/squall.h>
#include <stdio.h>
#include <stdlib.h>

static double mean_of(const float *values, size_t count)
{
    double sum = 0;
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i])) {
            sum += (double)values[i];
            used++;
        }
    return used ? sum / (double)used : NAN;
}

int main(int argc, char **argv)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_context *ctx = NULL;
    squall_dataset *ds = NULL;
    squall_array *array = NULL;
    float *values = NULL;
    int failed = argc != 3 || squall_context_new(NULL, &ctx, &err) || squall_dataset_open(ctx, argv[1], &ds, &err) ||
                 squall_dataset_array(ds, argv[2], &array, &err);
    if (!failed) {
        struct squall_array_info info = squall_array_info(array);
        struct squall_selection box = squall_selection_all(array);
        size_t count = 1;
        for (unsigned d = 0; d < info.rank; d++) {
            if (d + 2 < info.rank)
                box.count[d] = 1;
            count *= box.count[d];
        }
        values = malloc(count * sizeof *values);
        failed = info.type != SQUALL_FLOAT32 || !values || squall_array_read(array, &box, values, NULL, &err);
        if (!failed)
            printf("%s: mean %g of %zu values\n", info.name, mean_of(values, count), count);
    }
    if (failed)
        fprintf(stderr, "%s\n", err.message[0] ? err.message : "usage: read_box PATH NAME (a float32 array)");
    free(values);
    squall_dataset_close(ds);
    squall_context_free(ctx);
    return failed;
}
