/*
 * Every field of a GRIB file, decoded: grib_values FILE OUT float32|float64 [plain] [flip]
 * The values go to OUT, raw and one field behind the other; a line a field goes to stdout: offset, number in the message, rows, columns (0 0:
 * not rectangular), points, scanning mode, or in place of the last four "error: message". plain: without the wide kernels.
 */
#include "base/memory.h"
#include "format/grib/decode.h"
#include "format/grib/scan.h"
#include "sys/cpu.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct sq_source *source;
    FILE *out;
    enum sq_grib_output output;
    bool flip;
    struct sq_grib_scratch *scratch;
};

static int decode(struct job *job, const struct sq_grib_found *found, const uint8_t *message, struct squall_error *err)
{
    struct sq_grib_grid grid = {0};
    struct sq_grib_packing packing;
    size_t width = job->output == SQ_GRIB_FLOAT32 ? 4 : 8;
    const struct sq_grib_section *grid_section = &found->frame.section[3];
    int status = sq_grib_grid_parse(found->frame.edition, 0, found->section[3], grid_section->size_bytes, &grid, err);
    if (status)
        return status;
    void *values = NULL;
    status = sq_grib_packing_of(found, &packing, err);
    if (!status)
        status = sq_grib_decode_check(&packing, &found->frame, &grid, err);
    if (!status) {
        values = malloc(grid.point_count * width + 1);
        status = sq_grib_decode(message, found->size_bytes, &found->frame, &grid, job->flip, job->scratch, job->output, values, err);
    }
    if (!status) {
        fwrite(values, width, grid.point_count, job->out);
        printf("%" PRIu32 " %" PRIu32 " %" PRIu64 " %u\n", grid.rectangular ? grid.rows : 0, grid.rectangular ? grid.columns : 0,
               grid.point_count, grid.scanning_mode);
    }
    free(values);
    sq_grib_grid_done(&grid);
    return status;
}

static int on_field(void *user, const struct sq_grib_found *found, struct squall_error *err)
{
    struct job *job = user;
    struct squall_error own = SQUALL_ERROR_INIT;
    uint8_t *message = malloc(found->size_bytes);
    int status = sq_source_read(job->source, found->offset, message, found->size_bytes, err);
    if (!status) {
        printf("%" PRIu64 " %u ", found->offset, found->frame.in_message);
        if (decode(job, found, message, &own))
            printf("error: %s\n", own.message);
    }
    free(message);
    return status;
}

static int on_problem(void *user, uint64_t offset, const char *what, struct squall_error *err)
{
    (void)user, (void)err;
    fprintf(stderr, "byte %" PRIu64 ": %s\n", offset, what);
    return 0;
}

int main(int argc, char **argv)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct job job = {.scratch = sq_grib_scratch_new()};
    if (argc < 4 || !job.scratch)
        return 2;
    job.output = strcmp(argv[3], "float64") == 0 ? SQ_GRIB_FLOAT64 : SQ_GRIB_FLOAT32;
    for (int i = 4; i < argc; i++)
        if (strcmp(argv[i], "plain") == 0)
            sq_cpu_limit(0);
        else
            job.flip = true;
    struct sq_grib_scan_events events = {on_field, on_problem, &job};
    job.out = fopen(argv[2], "wb");
    int status = job.out ? sq_source_open_file(argv[1], &job.source, &err) : -1;
    if (!status)
        status = sq_grib_scan(job.source, &events, &err);
    if (status)
        fprintf(stderr, "%s\n", err.message);
    sq_source_close(job.source);
    if (job.out)
        fclose(job.out);
    sq_grib_scratch_free(job.scratch);
    return status ? 1 : 0;
}
