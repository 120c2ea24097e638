/*
 * From the order in which a file lists a grid's points (WMO flag table 3.4) to the one in which we give them: rows as the file has
 * them, each from west to east. Nothing but whole rows and columns moves.
 */
#include "format/grib/unpack.h"
#include <string.h>

enum {
    I_NEGATIVE = 0x80,
    COLUMN_MAJOR = 0x20,
    BOUSTROPHEDON = 0x10,
    TILE = 16, /* a tile of rows and columns stays in the first cache while it is transposed */
};

#define REVERSE(NAME, TYPE)                                                                                                                \
    static void NAME(TYPE *row, size_t count)                                                                                              \
    {                                                                                                                                      \
        for (size_t i = 0, k = count - 1; i < k; i++, k--) {                                                                               \
            TYPE kept = row[i];                                                                                                            \
            row[i] = row[k];                                                                                                               \
            row[k] = kept;                                                                                                                 \
        }                                                                                                                                  \
    }
REVERSE(reverse32, uint32_t)
REVERSE(reverse64, uint64_t)

static void reverse(void *row, size_t count, size_t value_bytes)
{
    if (count < 2)
        return;
    if (value_bytes == sizeof(uint32_t))
        reverse32(row, count);
    else
        reverse64(row, count);
}

/* from[column][row] → to[row][column]; every second column runs backwards where the file's order is boustrophedonic */
#define TRANSPOSE(NAME, TYPE)                                                                                                              \
    static void NAME(const TYPE *from, size_t rows, size_t columns, bool boustrophedon, TYPE *to)                                          \
    {                                                                                                                                      \
        for (size_t r0 = 0; r0 < rows; r0 += TILE)                                                                                         \
            for (size_t c0 = 0; c0 < columns; c0 += TILE)                                                                                  \
                for (size_t r = r0; r < rows && r < r0 + TILE; r++)                                                                        \
                    for (size_t c = c0; c < columns && c < c0 + TILE; c++)                                                                 \
                        to[r * columns + c] = from[c * rows + (boustrophedon && c % 2 ? rows - 1 - r : r)];                                \
    }
TRANSPOSE(transpose32, uint32_t)
TRANSPOSE(transpose64, uint64_t)

static void swap_rows(uint8_t *a, uint8_t *b, size_t row_bytes)
{
    uint8_t kept[4096];
    for (size_t at = 0; at < row_bytes; at += sizeof kept) {
        size_t part = row_bytes - at < sizeof kept ? row_bytes - at : sizeof kept;
        memcpy(kept, a + at, part);
        memcpy(a + at, b + at, part);
        memcpy(b + at, kept, part);
    }
}

void sq_grib_scan_order_apply(uint8_t scanning_mode, bool flip_rows, size_t rows, size_t columns, size_t value_bytes, const void *columnar,
                              void *dst)
{
    if (rows == 0 || columns == 0)
        return;
    bool alternate = scanning_mode & BOUSTROPHEDON, backwards = scanning_mode & I_NEGATIVE;
    size_t row_bytes = columns * value_bytes;
    uint8_t *row = dst;
    if (scanning_mode & COLUMN_MAJOR) {
        if (value_bytes == sizeof(uint32_t))
            transpose32(columnar, rows, columns, alternate, dst);
        else
            transpose64(columnar, rows, columns, alternate, dst);
        alternate = false;
    }
    if (alternate || backwards)
        for (size_t r = 0; r < rows; r++)
            if (backwards != (alternate && r % 2))
                reverse(row + r * row_bytes, columns, value_bytes);
    if (flip_rows)
        for (size_t r = 0, s = rows - 1; r < s; r++, s--)
            swap_rows(row + r * row_bytes, row + s * row_bytes, row_bytes);
}
