/* See group.h. Arrays keep what they read; names are shortened, and what lies outside is dropped. */
#include "cube/group.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "cube/many.h"
#include "cube/many_compare.h"
#include <string.h>

/* Its name within the group, NULL: it lies outside. */
static const char *name_within(const char *name, const char *group)
{
    const size_t length = strlen(group);
    return !strncmp(name, group, length) && name[length] == '/' ? name + length + 1 : NULL;
}

/* Does it lie in a group above? The root is above all. */
static bool is_above(const char *name, const char *group)
{
    const char *slash = strrchr(name, '/');
    const size_t length = slash ? (size_t)(slash - name) : 0;
    return length == 0 || (length < strlen(group) && !strncmp(name, group, length) && group[length] == '/');
}

static const char *last_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Has the group an array that lies along this coordinate, and none of its name? */
static bool is_inherited(const struct squall_dataset *ds, const struct squall_array *coordinate, const char *group)
{
    const char *dim = last_of(coordinate->info.name);
    bool along = false;
    for (size_t i = 0; i < ds->array_count; i++) {
        const struct squall_array *a = ds->arrays[i];
        const char *name = name_within(a->info.name, group);
        if (!name || strchr(name, '/'))
            continue;
        const int d = sq_dimension_of(a, dim);
        along = along || (d >= 0 && a->info.shape[d] == coordinate->info.shape[0]);
        if (!strcmp(name, dim))
            return false;
    }
    return along;
}

/* Of coordinates of one name the one in the nearest group above. */
static bool is_nearest(const struct squall_dataset *ds, const struct squall_array *coordinate, const char *group)
{
    const char *dim = last_of(coordinate->info.name);
    for (size_t i = 0; i < ds->array_count; i++) {
        const struct squall_array *a = ds->arrays[i];
        if (a != coordinate && is_above(a->info.name, group) && !strcmp(last_of(a->info.name), dim) &&
            strlen(a->info.name) > strlen(coordinate->info.name))
            return false;
    }
    return true;
}

static const char *new_name(const struct squall_dataset *ds, const struct squall_array *a, const char *group)
{
    const char *name = name_within(a->info.name, group);
    if (!name && is_above(a->info.name, group) && sq_is_coordinate(a) && is_inherited(ds, a, group) && is_nearest(ds, a, group))
        name = last_of(a->info.name);
    return name;
}

static void name_arrays(struct squall_dataset *ds, const char **names)
{
    for (size_t i = ds->array_count; i-- > 0;) {
        if (names[i])
            ds->arrays[i]->info.name = names[i]; /* within its old one */
        else
            sq_dataset_drop(ds, i);
    }
}

/* The groups below stay, and its own attributes are the dataset's. */
static void name_groups(struct squall_dataset *ds, const char *group)
{
    size_t kept = 0;
    sq_free(ds->attributes);
    sq_free(ds->attribute_types);
    ds->attributes = ds->attribute_types = NULL;
    for (size_t i = 0; i < ds->group_count; i++) {
        const struct squall_group_info *g = &ds->groups[i];
        char *name = (char *)(uintptr_t)g->name, *attributes = (char *)(uintptr_t)g->attributes;
        char *types = (char *)(uintptr_t)g->attribute_types;
        const char *within = name_within(name, group);
        if (within) {
            memmove(name, within, strlen(within) + 1);
            ds->groups[kept++] = *g;
            continue;
        }
        if (!strcmp(name, group)) {
            ds->attributes = attributes;
            ds->attribute_types = types;
        } else {
            sq_free(attributes);
            sq_free(types);
        }
        sq_free(name);
    }
    ds->group_count = kept;
}

static int refuse_missing(const struct squall_dataset *ds, const char *group, struct squall_error *err)
{
    enum { SHOWN = 10 };
    SQ_CLEANUP_TEXT struct sq_text groups = SQ_TEXT_INIT;
    size_t shown = 0;
    for (size_t i = 0; i < ds->array_count && shown < SHOWN; i++) {
        const char *name = ds->arrays[i]->info.name, *slash = strrchr(name, '/');
        const size_t length = slash ? (size_t)(slash - name) : 0;
        bool known = length == 0;
        for (size_t k = 0; k < i && !known; k++)
            known = !strncmp(ds->arrays[k]->info.name, name, length + 1) && !strchr(ds->arrays[k]->info.name + length + 1, '/');
        if (!known)
            sq_text_printf(&groups, "%s%.*s", shown++ ? ", " : "", (int)length, name);
    }
    if (groups.failed)
        return sq_error_memory(err, groups.length);
    return sq_error(err, SQUALL_ENOTFOUND, "%s: no group \"%s\" with arrays in it; %s%s", ds->path, group,
                    shown ? "there are " : "it has no groups with arrays", sq_text_string(&groups));
}

static int enter(struct squall_dataset *ds, const char *group, struct squall_error *err)
{
    size_t own = 0;
    SQ_CLEANUP_FREE const char **names = sq_alloc(ds->array_count + 1, sizeof *names);
    if (!names)
        return sq_error_memory(err, ds->array_count * sizeof *names);
    for (size_t i = 0; i < ds->array_count; i++) {
        names[i] = new_name(ds, ds->arrays[i], group);
        own += name_within(ds->arrays[i]->info.name, group) != NULL;
    }
    if (own == 0)
        return refuse_missing(ds, group, err);
    name_arrays(ds, names);
    name_groups(ds, group);
    return 0;
}

int sq_open_group(const struct squall_context *ctx, const char *path, const char *group, struct squall_dataset **ret,
                  struct squall_error *err)
{
    struct squall_dataset *ds;
    SQ_TRY(sq_open_path(ctx, path, &ds, err));
    int status = group ? enter(ds, group, err) : 0;
    if (status)
        squall_dataset_close(ds);
    else
        *ret = ds;
    return status;
}
