/*
 * One field as an attacker writes it, decoded by the plain kernels and by the widest: whatever the bytes, nothing outside of them is read, and
 * both say the same.
 * Input: flags, scanning mode, rows (2 bytes), columns (2), bytes of section 5 (edition 1: PDS) and of section 6, then sections 5, 6 and 7.
 * Flags: see the enum.
 */
#include "format/grib/decode.h"
#include "sys/cpu.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    EDITION_1 = 1,
    FLOAT64 = 2,
    FLIP = 4,
    NOT_RECTANGULAR = 8,
    COUNT_FITS = 16, /* set section 5's count to the bitmap's ones, or the points, so that mutations of the grid get past the first check */
    HEAD_BYTES = 8,
    MOST_POINTS = 1 << 16,
};

struct input {
    uint8_t *message; /* of exactly its size, so that a sanitizer sees every read behind it */
    size_t size_bytes;
    struct sq_grib_frame frame;
    struct sq_grib_grid grid;
    unsigned flags;
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void fit_count(struct input *in)
{
    const struct sq_grib_section *five = &in->frame.section[5], *six = &in->frame.section[6];
    uint64_t count = in->grid.point_count;
    if (five->size_bytes < 9)
        return;
    if (six->size_bytes > 6 && in->message[six->offset + 5] == 0) {
        count = 0;
        for (uint64_t i = 0; i < in->grid.point_count && i / 8 < six->size_bytes - 6; i++)
            count += in->message[six->offset + 6 + i / 8] >> (7 - i % 8) & 1;
    }
    for (unsigned i = 0; i < 4; i++)
        in->message[five->offset + 5 + i] = (uint8_t)(count >> 8 * (3 - i));
}

static bool read_input(const uint8_t *data, size_t size, struct input *in)
{
    if (size < HEAD_BYTES)
        return false;
    uint32_t rows = (uint32_t)(data[2] << 8 | data[3]), columns = (uint32_t)(data[4] << 8 | data[5]);
    size_t first = data[6], six = data[7];
    size -= HEAD_BYTES;
    if ((uint64_t)rows * columns > MOST_POINTS || first + six > size)
        return false;
    *in = (struct input){.size_bytes = size, .flags = data[0], .frame.edition = data[0] & EDITION_1 ? 1 : 2};
    in->message = malloc(size + !size);
    memcpy(in->message, data + HEAD_BYTES, size);
    in->frame.section[data[0] & EDITION_1 ? 1 : 5] = (struct sq_grib_section){0, first};
    in->frame.section[6] = (struct sq_grib_section){first, six};
    in->frame.section[7] = (struct sq_grib_section){first + six, size - first - six};
    in->grid = (struct sq_grib_grid){.type_name = "regular_ll",
                                     .rectangular = !(data[0] & NOT_RECTANGULAR),
                                     .rows = rows,
                                     .columns = columns,
                                     .point_count = (uint64_t)rows * columns,
                                     .scanning_mode = data[1]};
    if (data[0] & COUNT_FITS && !(data[0] & EDITION_1))
        fit_count(in);
    return true;
}

static int decode(const struct input *in, unsigned features, void *dst)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_grib_scratch *scratch = sq_grib_scratch_new();
    sq_cpu_limit(features);
    int status = sq_grib_decode(in->message, in->size_bytes, &in->frame, &in->grid, in->flags & FLIP, scratch,
                                in->flags & FLOAT64 ? SQ_GRIB_FLOAT64 : SQ_GRIB_FLOAT32, dst, &err);
    sq_grib_scratch_free(scratch);
    require(status == err.status && (status == 0) == (err.message[0] == 0));
    require(status == 0 || status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED || status == SQUALL_ENOMEM);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in;
    if (!read_input(data, size, &in))
        return 0;
    size_t bytes = (size_t)in.grid.point_count * (in.flags & FLOAT64 ? 8 : 4);
    uint8_t *plain = malloc(bytes + 1), *wide = malloc(bytes + 1);
    int status = decode(&in, 0, plain);
    require(decode(&in, ~0u, wide) == status);
    require(status || memcmp(plain, wide, bytes) == 0);
    free(plain);
    free(wide);
    free(in.message);
    return 0;
}
