/*
 * squall bench: read everything three times, report the best. A GRIB file is read field by field, all else array by array.
 * Programs read the JSON: its keys stay.
 */
#include "commands.h"
#include "open.h"
#include "output.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ROUNDS = 3 };

static bool is_faster(const struct squall_speed *a, const struct squall_speed *best)
{
    return best->seconds == 0 || a->seconds < best->seconds;
}

static int time_fields(squall_context *ctx, const struct arguments *a, struct squall_speed *ret)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_grib_list *list = NULL;
    int status = squall_grib_list_open(ctx, a->positional.items, 1, &list, &err);
    for (int round = 0; round < ROUNDS && !status; round++) {
        struct squall_speed speed;
        status = squall_grib_list_time(list, a->threads, &speed, &err);
        if (!status && is_faster(&speed, ret))
            *ret = speed;
    }
    squall_grib_list_close(list);
    return status ? fail_with(&err) : EXIT_DONE;
}

static bool has_group(const squall_dataset *ds, const char *name)
{
    for (size_t i = 0; i < squall_dataset_info(ds).array_count; i++)
        if (is_within(squall_array_info(squall_dataset_array_at(ds, i)).name, name))
            return true;
    return false;
}

/* Each array once: all that can be read, or those that are named. */
static int time_round(squall_dataset *ds, const struct arguments *a, struct squall_speed *sum, struct squall_error *err)
{
    size_t count = squall_dataset_info(ds).array_count;
    for (size_t i = 0; i < count; i++) {
        squall_array *array = squall_dataset_array_at(ds, i);
        struct squall_array_info info = squall_array_info(array);
        struct squall_speed speed;
        if (a->array ? strcmp(a->array, info.name) != 0 && !is_within(info.name, a->array) : info.unsupported != NULL)
            continue;
        int status = squall_array_time(array, a->threads, &speed, err);
        if (status)
            return status;
        sum->bytes += speed.bytes;
        sum->points += speed.points;
        sum->seconds += speed.seconds;
        sum->read_seconds += speed.read_seconds;
        sum->decode_seconds += speed.decode_seconds;
        sum->scatter_seconds += speed.scatter_seconds;
    }
    return 0;
}

static int time_arrays(squall_dataset *ds, const struct arguments *a, struct squall_speed *ret)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    int status = a->array && !has_group(ds, a->array) ? array_find(ds, a->array, &(squall_array *){NULL}, &err) : 0;
    for (int round = 0; round < ROUNDS && !status; round++) {
        struct squall_speed sum = {0};
        status = time_round(ds, a, &sum, &err);
        if (!status && is_faster(&sum, ret))
            *ret = sum;
    }
    return status ? fail_with(&err) : EXIT_DONE;
}

static void print_speed(const struct arguments *a, const struct squall_speed *s)
{
    double seconds = s->seconds > 0 ? s->seconds : 1e-9;
    if (a->json) {
        printf("{\"bytes\": %llu, \"points\": %llu, \"seconds\": %.6f, \"points_per_second\": %.1f, \"bytes_per_second\": %.1f,\n"
               " \"read_seconds\": %.6f, \"decode_seconds\": %.6f, \"scatter_seconds\": %.6f}\n",
               (unsigned long long)s->bytes, (unsigned long long)s->points, s->seconds, (double)s->points / seconds,
               (double)s->bytes / seconds, s->read_seconds, s->decode_seconds, s->scatter_seconds);
        return;
    }
    char size[SHORT_TEXT_BYTES], rate[SHORT_TEXT_BYTES];
    printf("%s, %.3f million points in %.4f s: %.1f million points/s, %s/s\n", size_text(s->bytes, size), (double)s->points / 1e6,
           s->seconds, (double)s->points / seconds / 1e6, size_text((uint64_t)((double)s->bytes / seconds), rate));
    printf("time of the threads: read %.4f s, decode %.4f s, scatter %.4f s\n", s->read_seconds, s->decode_seconds, s->scatter_seconds);
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

int run_bench(const struct arguments *a)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct squall_speed best = {0};
    const char *path = a->positional.items[0];
    squall_dataset *ds = NULL;
    squall_context *ctx = context_new(a);
    if (!ctx)
        return EXIT_FAILED;
    int code;
    if (dataset_open(ctx, a, a->positional.items, 1, &ds, &err))
        code = fail_with(&err);
    else if (!strcmp(squall_dataset_info(ds).format, "grib") && !a->array && !is_folder(path))
        code = time_fields(ctx, a, &best);
    else
        code = time_arrays(ds, a, &best);
    if (code == EXIT_DONE && best.points == 0) {
        complain("squall bench: %s: nothing in it can be read (squall info %s says why)", path, path);
        code = EXIT_FAILED;
    }
    if (code == EXIT_DONE)
        print_speed(a, &best);
    squall_dataset_close(ds);
    squall_context_free(ctx);
    return code;
}
