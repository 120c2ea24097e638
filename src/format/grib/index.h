/*
 * Every field of many files, compactly: a row a field (≤ 128 bytes), and tables of the distinct products, grids and files
 * that the rows point into. Made by scanning files in parallel; the order is (path as given, offset, field in message)
 * whatever the number of threads, and so are the rows of the tables: by the first field that has them.
 */
#ifndef SQ_FORMAT_GRIB_INDEX_H
#define SQ_FORMAT_GRIB_INDEX_H

#include "base/arena.h"
#include "format/grib/decode.h"
#include "format/grib/names.h"
#include "format/grib/product.h"

struct sq_grib_field {
    uint64_t offset;     /* of the message in the file */
    uint64_t size_bytes; /* of the message */
    uint32_t file;       /* row of files */
    uint32_t product;    /* row of products */
    uint32_t grid;       /* row of grids */
    uint32_t packing;    /* row of packings: distinct but for reference_value and value_count */
    uint16_t in_message;
    struct sq_grib_times times;
    double reference_value; /* R of the packing */
};

struct sq_grib_file {
    char *path;
    struct sq_file_identity identity; /* zero where it could not be opened */
    uint64_t field_count;
};

struct sq_grib_index_problem {
    uint32_t file;
    uint64_t offset;
    char *message; /* one line, without the path */
};

struct sq_grib_index {
    struct sq_grib_field *fields;
    size_t field_count;
    struct sq_grib_product *products;
    struct sq_grib_names *names; /* of each product */
    double (*levels)[2];         /* of each product: sq_grib_levels_of */
    size_t product_count;
    struct sq_grib_grid *grids;
    size_t grid_count;
    struct sq_grib_packing *packings; /* reference_value and value_count are 0 */
    size_t packing_count;
    struct sq_grib_file *files;
    size_t file_count;
    struct sq_grib_index_problem *problems; /* in (file, offset) order */
    size_t problem_count;
    struct sq_arena *arena; /* raw bytes of the products */
};

/*
 * Scan the files on `threads` threads. Files that cannot be opened, are empty, or hold no GRIB are problems; so is damage, and each field whose
 * description contradicts itself. cancelled (nullable) is asked between files. *ret: sq_grib_index_done.
 */
int sq_grib_index_build(const char *const *paths, size_t path_count, unsigned threads, int (*cancelled)(void *), void *user,
                        struct sq_grib_index *ret, struct squall_error *err) SQUALL_CHECK;
void sq_grib_index_done(struct sq_grib_index *index);

#endif
