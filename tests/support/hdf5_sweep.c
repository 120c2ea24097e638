/*
 * Damage small HDF5 files in every way that one change makes, for tests: hdf5_sweep FILE... Each byte is changed in turn, eight bytes are set to
 * all ones and to zero, the file is cut off at every length. Each time its tree is read, with all attributes and NetCDF's conventions: what
 * comes is a message that names the file, or a tree. Of a file that was cut off, a tree says so. Prints how often each came of it; ends
 * with 1, and says where, where a promise does not hold.
 */
#include "base/memory.h"
#include "format/hdf5/attribute_json.h"
#include "format/hdf5/netcdf4.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long refused, with_problems, whole;

static bool names_file(const char *message)
{
    return !strncmp(message, "x.h5: ", 6) && sq_text_is_visible(message);
}

static int tell_attributes(struct sq_hdf5_tree *tree, const char *name, const struct sq_hdf5_attributes *attributes,
                           struct squall_error *err)
{
    char *values, *types;
    SQ_TRY(sq_hdf5_attributes_json(tree, name, attributes, &values, &types, err));
    sq_free(values);
    sq_free(types);
    return 0;
}

static int tell(struct sq_hdf5_tree *tree, struct squall_error *err)
{
    struct sq_netcdf4 shown;
    for (size_t i = 0; i < tree->group_count; i++)
        SQ_TRY(tell_attributes(tree, tree->groups[i].name, &tree->groups[i].attributes, err));
    for (size_t i = 0; i < tree->dataset_count; i++)
        SQ_TRY(tell_attributes(tree, tree->datasets[i].name, &tree->datasets[i].attributes, err));
    SQ_TRY(sq_netcdf4_read(tree, &shown, err));
    return 0;
}

/* false: a promise does not hold. */
static bool try_bytes(const uint8_t *bytes, size_t size, bool is_cut)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_source *source;
    struct sq_hdf5_file *file = NULL;
    struct sq_hdf5_tree tree = {0};
    if (sq_source_open_memory(bytes, size, "x.h5", &source, NULL))
        return false;
    int status = sq_hdf5_file_open(source, &file, &err);
    if (!status)
        status = sq_hdf5_tree_read(file, &tree, &err);
    if (!status)
        status = tell(&tree, &err);
    bool good = !status || ((status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED) && names_file(err.message));
    if (!status && is_cut)
        good = tree.problem_count > 0 && strstr(tree.problems[0], "cut off");
    for (size_t i = 0; i < tree.problem_count; i++)
        good = good && names_file(tree.problems[i]);
    ++*(status ? &refused : tree.problem_count ? &with_problems : &whole);
    sq_hdf5_tree_done(&tree);
    sq_hdf5_file_close(file);
    return good;
}

static bool sweep_byte(uint8_t *bytes, size_t size, size_t at)
{
    static const uint8_t CHANGES[] = {0x01, 0x80, 0xff};
    const size_t count = size - at < 8 ? size - at : 8;
    uint8_t kept[8];
    bool good = true;
    memcpy(kept, bytes + at, count);
    for (size_t i = 0; i < sizeof CHANGES; i++) {
        bytes[at] = kept[0] ^ CHANGES[i];
        good = good && try_bytes(bytes, size, false);
    }
    for (int fill = 0; fill <= 0xff; fill += 0xff) {
        memset(bytes + at, fill, count);
        good = good && try_bytes(bytes, size, false);
    }
    memcpy(bytes + at, kept, count);
    uint8_t *cut = malloc(at + 1); /* of exactly these bytes, for those who watch the heap */
    if (!cut)
        return false;
    memcpy(cut, bytes, at);
    good = good && try_bytes(cut, at, true);
    free(cut);
    return good;
}

static int sweep_file(const char *path)
{
    static uint8_t bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    const size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    for (size_t at = 0; at < size; at++)
        if (!sweep_byte(bytes, size, at)) {
            printf("%s: a change of byte %zu is not told as it should be\n", path, at);
            return 1;
        }
    return size == 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (sweep_file(argv[i]))
            return 1;
    printf("%lu refused, %lu with problems, %lu whole\n", refused, with_problems, whole);
    return 0;
}
