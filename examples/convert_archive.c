/* Convert a folder of GRIB files into a Zarr store:  convert_archive FOLDER STORE */
#include <squall/squall.h>
#include <stdio.h>

static void show(void *user, enum squall_convert_event kind, const char *text)
{
    (void)user;
    if (kind == SQUALL_CONVERT_WARNING)
        fprintf(stderr, "warning: %s\n", text);
}

int main(int argc, char **argv)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_context *ctx = NULL;
    squall_convert_plan *plan = NULL;
    struct squall_convert_result result = {0};
    if (argc != 3) {
        fputs("usage: convert_archive FOLDER STORE\n", stderr);
        return 2;
    }
    const char *sources[] = {argv[1]};
    struct squall_convert_options options = {.sources = sources, .source_count = 1, .destination = argv[2]};
    struct squall_convert_events events = {.message = show};
    int failed = squall_context_new(NULL, &ctx, &err) || squall_convert_plan_new(ctx, &options, &events, &plan, &err) ||
                 squall_convert_run(plan, &result, &err);
    if (failed)
        fprintf(stderr, "%s\n", err.message);
    else
        fputs(result.text, stdout);
    squall_convert_result_done(&result);
    squall_convert_plan_free(plan);
    squall_context_free(ctx);
    return failed ? 1 : 0;
}
