/* List the fields of a GRIB file:  list_fields FILE */
#include <inttypes.h>
#include <squall/squall.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_context *ctx = NULL;
    squall_grib_list *list = NULL;
    const char *paths[] = {argc > 1 ? argv[1] : ""};

    if (squall_context_new(NULL, &ctx, &err) || squall_grib_list_open(ctx, paths, 1, &list, &err)) {
        fprintf(stderr, "%s\n", err.message);
        squall_context_free(ctx);
        return 1;
    }
    for (size_t i = 0; i < squall_grib_list_count(list); i++) {
        struct squall_grib_field f = squall_grib_list_field(list, i);
        printf("%s %s %g +%" PRId64 " s\n", f.short_name, f.level_type, f.level, f.step_end_s);
    }
    size_t problems = squall_grib_list_problem_count(list);
    for (size_t i = 0; i < problems; i++)
        fprintf(stderr, "%s: %s\n", squall_grib_list_problem(list, i).path, squall_grib_list_problem(list, i).message);
    squall_grib_list_close(list);
    squall_context_free(ctx);
    return problems ? 1 : 0;
}
