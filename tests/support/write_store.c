/*
 * write_store FOLDER: a Zarr store with an array of every type and codec in awkward shapes, made by the library's own writer. What is
 * in it follows rules that check_store.py knows too: element i of every array comes from i alone.
 */
#include "base/memory.h"
#include "format/zarr/fill.h"
#include "store/zarr_writer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const CODECS[] = {
    "none",
    "zstd:level=3",
    "gzip:level=5",
    "blosc:cname=zstd,clevel=5,shuffle=shuffle",
    "blosc:cname=lz4,clevel=1,shuffle=bitshuffle",
    "blosc:cname=zstd,clevel=5,shuffle=shuffle,search=greedy",
};

static const struct {
    const char *name;
    unsigned rank;
    uint64_t shape[4], chunks[4];
} SHAPES[] = {
    {"scalar", 0, {0}, {0}},
    {"line", 1, {10}, {4}},
    {"plane", 2, {5, 7}, {2, 3}},
    {"padded", 2, {3, 4}, {8, 16}},
    {"box", 4, {2, 3, 4, 5}, {1, 3, 3, 2}},
    {"empty", 2, {0, 3}, {1, 3}},
};

/* As numpy casts them: i·7919 + 13, wrapped to the type; i/2 − 3 with NaN at every seventh; i divisible by 3. */
static void put_number(enum squall_type type, uint64_t i, void *to)
{
    uint64_t whole = i * 7919 + 13;
    double real = i % 7 == 6 ? (double)NAN : (double)i / 2 - 3;
    float single = (float)real;
    bool third = i % 3 == 0;
    if (type == SQUALL_BOOL) {
        memcpy(to, &third, 1);
    } else if (type == SQUALL_FLOAT64) {
        memcpy(to, &real, sizeof real);
    } else if (type == SQUALL_FLOAT32) {
        memcpy(to, &single, sizeof single);
    } else if (type == SQUALL_FLOAT16) {
        uint8_t half[SQ_ZARR_FILL_BYTES];
        struct sq_json *value = sq_json_new_double(real);
        if (!sq_zarr_fill_parse(type, value, half))
            exit(1);
        sq_json_free(value);
        memcpy(to, half, 2);
    } else {
        memcpy(to, &whole, squall_type_size(type)); /* little-endian: the low bytes */
    }
}

static struct squall_bytes text_at(uint64_t i)
{
    char *text = i % 4 == 0 ? sq_strdup("") : sq_format("text %llu of Zürich 🎉", (unsigned long long)i);
    return (struct squall_bytes){text, strlen(text)};
}

static void *values_of(enum squall_type type, uint64_t count)
{
    size_t size = squall_type_size(type);
    uint8_t *values = calloc(count + 1, size);
    for (uint64_t i = 0; i < count; i++)
        if (type == SQUALL_STRING)
            ((struct squall_bytes *)values)[i] = text_at(i);
        else
            put_number(type, i, values + i * size);
    return values;
}

static void free_values(enum squall_type type, uint64_t count, void *values)
{
    for (uint64_t i = 0; type == SQUALL_STRING && i < count; i++)
        sq_free(((struct squall_bytes *)values)[i].data);
    free(values);
}

struct entry {
    struct sq_store_array array;
    char name[64];
};

static int prepare(struct entry *e, enum squall_type type, size_t codec, size_t shape, struct squall_error *err)
{
    static const char *const DIMS[][4] = {{""}, {"line"}, {"y", "x"}, {"y3", "x4"}, {"time", "level", "lat", "lon"}, {"none", "three"}};
    struct sq_codec_chain *codecs;
    int status = sq_codec_chain_parse(CODECS[codec], type, NULL, &codecs, err);
    snprintf(e->name, sizeof e->name, "%s_%zu_%s", squall_type_name(type), codec, SHAPES[shape].name);
    if (!status)
        e->array = (struct sq_store_array){.name = e->name,
                                           .type = type,
                                           .rank = SHAPES[shape].rank,
                                           .shape = SHAPES[shape].shape,
                                           .chunks = SHAPES[shape].chunks,
                                           .dims = DIMS[shape],
                                           .codecs = codecs};
    return status;
}

static int write_values(const char *store, const struct sq_store_array *a, struct squall_error *err)
{
    uint64_t count = 1;
    for (unsigned d = 0; d < a->rank; d++)
        count *= a->shape[d];
    void *values = values_of(a->type, count);
    int status = sq_store_write_array((struct sq_store){store, 3}, a, values, err);
    free_values(a->type, count, values);
    return status;
}

int main(int argc, char **argv)
{
    enum {
        TYPES = SQUALL_STRING + 1,
        CODEC_COUNT = sizeof CODECS / sizeof *CODECS,
        SHAPE_COUNT = sizeof SHAPES / sizeof *SHAPES,
        CODECS_EACH = 2
    };
    static struct entry entries[TYPES * SHAPE_COUNT * CODECS_EACH];
    static struct sq_store_array arrays[TYPES * SHAPE_COUNT * CODECS_EACH];
    struct squall_error err = SQUALL_ERROR_INIT;
    size_t count = 0;
    int status = argc == 2 ? 0 : -1;
    for (size_t i = 0; i < TYPES * SHAPE_COUNT * CODECS_EACH && !status; i++) {
        size_t type = i / CODECS_EACH / SHAPE_COUNT, shape = i / CODECS_EACH % SHAPE_COUNT, turn = i % CODECS_EACH;
        status = prepare(&entries[i], (enum squall_type)type, (type + shape + turn * CODEC_COUNT / CODECS_EACH) % CODEC_COUNT, shape, &err);
        if (status)
            break;
        arrays[i] = entries[i].array;
        count++;
    }
    for (size_t i = 0; i < count && !status; i++)
        status = write_values(argv[1], &arrays[i], &err);
    if (!status)
        status = sq_store_publish_metadata((struct sq_store){argv[1], 3}, NULL, arrays, count, &err);
    for (size_t i = 0; i < count; i++)
        sq_codec_chain_free((struct sq_codec_chain *)(uintptr_t)arrays[i].codecs);
    if (status)
        fprintf(stderr, "write_store: %s\n", argc == 2 ? err.message : "usage: write_store FOLDER");
    return status ? 1 : 0;
}
