/*
 * See netcdf4.h. A dimension is a dataset that is a dimension scale, and a variable says on which it lies by references to them (DIMENSION_LIST).
 * Scales that are variables of several dimensions have no such list, but numbers of dimensions (_Netcdf4Coordinates), which other writers
 * than netCDF-C give out twice: one that does not fit is not taken.
 */
#include "format/hdf5/netcdf4.h"
#include "base/checked.h"
#include "base/memory.h"
#include "format/hdf5/heap.h"
#include "squall/array.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char ONLY_A_DIMENSION[] = "This is a netCDF dimension but not a netCDF variable";
static const char NO_COORDINATE[] = "_nc4_non_coord_"; /* before the name of a variable that is named like a dimension but lies on others */

enum key { BY_ADDRESS, BY_ID, BY_LENGTH, KEYS };

struct dimension {
    const char *name;
    uint64_t address; /* of its scale; SQ_HDF5_NOWHERE: it has none */
    size_t group;
    int64_t id;
    uint64_t scale_length, length; /* unlimited ones are as long as the longest variable on them */
    bool is_unlimited;
    struct dimension *next[KEYS]; /* with the same key */
};

struct chain {
    struct dimension *first, *last;
};

/* What is known of a dataset beside the tree. */
struct place {
    const struct sq_hdf5_attribute *class, *name, *list, *coordinates, *id;
    struct dimension *own;   /* what it is the scale of; NULL: none */
    struct dimension **dims; /* NULL where one is not known yet */
    bool is_hidden;
};

struct conventions {
    struct sq_hdf5_tree *tree;
    struct sq_hdf5_reader *r;
    struct place *places; /* one for each dataset */
    size_t *members;      /* datasets by group: those of group g are first[g] to first[g + 1] of them */
    size_t *first;
    struct sq_hdf5_table chains[KEYS];
    int64_t next_id;
};

/* ---- what attributes say ---- */

static bool text_begins(struct sq_hdf5_reader *r, const struct sq_hdf5_attribute *a, const char *text)
{
    const uint8_t *bytes = a ? a->value : NULL;
    size_t size = a ? a->size_bytes : 0;
    if (!a || a->space.is_null || a->space.element_count == 0)
        return false;
    if (a->type->class == SQ_HDF5_VLEN && a->type->is_string) {
        if (sq_hdf5_sequence_get(r, a->value, a->size_bytes, 1, &bytes, &size, NULL))
            return false;
    } else if (a->type->class != SQ_HDF5_STRING) {
        return false;
    }
    return size >= strlen(text) && memcmp(bytes, text, strlen(text)) == 0;
}

/* Number `index` of a list of whole numbers. */
static bool read_integer(const struct sq_hdf5_attribute *a, size_t index, int64_t *ret)
{
    if (!a || a->type->class != SQ_HDF5_INTEGER || a->space.is_null || index >= a->space.element_count ||
        (index + 1) * a->type->size_bytes > a->size_bytes)
        return false;
    *ret = (int64_t)sq_hdf5_type_integer(a->type, a->value + index * a->type->size_bytes);
    return *ret >= 0 && *ret <= INT32_MAX;
}

/* The scale of a dataset's dimension d: where there are several, the last one, as netCDF-C has it. */
static int read_reference(struct sq_hdf5_reader *r, const struct sq_hdf5_attribute *list, unsigned d, uint64_t *ret,
                          struct squall_error *err)
{
    const uint8_t *references = NULL;
    size_t count;
    *ret = SQ_HDF5_NOWHERE;
    if (!list || list->type->class != SQ_HDF5_VLEN || list->type->base->class != SQ_HDF5_REFERENCE || list->space.is_null ||
        d >= list->space.element_count || list->type->base->reference != SQ_HDF5_TO_OBJECT ||
        ((size_t)d + 1) * list->type->size_bytes > list->size_bytes)
        return 0;
    const size_t unit = list->type->base->size_bytes, element = list->type->size_bytes;
    SQ_TRY(sq_hdf5_sequence_get(r, list->value + d * element, element, unit, &references, &count, err));
    if (count > 0 && unit >= r->file->offset_bytes) {
        struct sq_cursor c = sq_cursor(references + (count - 1) * unit, unit);
        *ret = sq_hdf5_take_address(&c, r->file);
    }
    return 0;
}

static void read_attributes(const struct sq_hdf5_dataset *d, struct place *p)
{
    const struct {
        const char *name;
        const struct sq_hdf5_attribute **place;
    } known[] = {
        {"CLASS", &p->class},      {"NAME", &p->name}, {"DIMENSION_LIST", &p->list}, {"_Netcdf4Coordinates", &p->coordinates},
        {"_Netcdf4Dimid", &p->id},
    };
    for (size_t i = 0; i < d->attributes.count; i++)
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (strcmp(d->attributes.list[i].name, known[k].name) == 0)
                *known[k].place = &d->attributes.list[i];
}

/* ---- dimensions ---- */

/* Dimensions of one group, length and kind have the same; so have some others, seldom. */
static uint64_t length_key(size_t group, uint64_t length, bool is_unlimited)
{
    return (group * 2 + is_unlimited) * UINT64_C(0x9e3779b97f4a7c15) + length;
}

static int add_to_chain(struct conventions *c, enum key key, uint64_t value, struct dimension *dim, struct squall_error *err)
{
    struct chain *chain = sq_hdf5_table_get(&c->chains[key], value);
    if (!chain) {
        SQ_TRY(SQ_HDF5_ROOM(c->r, &chain, 1, err));
        SQ_TRY(sq_hdf5_table_put(&c->chains[key], value, chain, err));
        chain->first = dim;
    } else {
        chain->last->next[key] = dim;
    }
    chain->last = dim;
    return 0;
}

static struct dimension *first_of(const struct conventions *c, enum key key, uint64_t value)
{
    const struct chain *chain = sq_hdf5_table_get(&c->chains[key], value);
    return chain ? chain->first : NULL;
}

/* dim: as it is to be; an id below zero is given out here. */
static int add_dimension(struct conventions *c, const struct dimension *dim, struct dimension **ret, struct squall_error *err)
{
    struct dimension *d;
    SQ_TRY(SQ_HDF5_ROOM(c->r, &d, 1, err));
    *d = *dim;
    if (d->id < 0)
        d->id = c->next_id;
    if (d->id >= c->next_id)
        c->next_id = d->id + 1;
    if (d->address != SQ_HDF5_NOWHERE)
        SQ_TRY(add_to_chain(c, BY_ADDRESS, d->address, d, err));
    SQ_TRY(add_to_chain(c, BY_ID, (uint64_t)d->id, d, err));
    SQ_TRY(add_to_chain(c, BY_LENGTH, length_key(d->group, d->scale_length, d->is_unlimited), d, err));
    *ret = d;
    return 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_unlimited(const struct sq_hdf5_space *space, unsigned d)
{
    return space->maximum && space->maximum[d] == SQ_HDF5_NOWHERE;
}

static int add_scale(struct conventions *c, const struct sq_hdf5_dataset *d, struct place *p, struct squall_error *err)
{
    int64_t id;
    read_attributes(d, p);
    if (d->space.is_null || d->space.rank == 0 || !text_begins(c->r, p->class, "DIMENSION_SCALE"))
        return 0;
    const struct dimension dim = {.name = last_part(d->name),
                                  .address = d->address,
                                  .group = d->group,
                                  .id = read_integer(p->id, 0, &id) ? id : -1,
                                  .scale_length = d->space.shape[0],
                                  .length = d->space.shape[0],
                                  .is_unlimited = is_unlimited(&d->space, 0)};
    p->is_hidden = text_begins(c->r, p->name, ONLY_A_DIMENSION);
    return add_dimension(c, &dim, &p->own, err);
}

/* ---- on which a dataset lies ---- */

/* How far above `group` the other is; false: it is not. */
static bool steps_up(const struct conventions *c, size_t group, size_t above, size_t *ret)
{
    for (size_t steps = 0;; steps++, group = c->tree->groups[group].parent) {
        *ret = steps;
        if (group == above)
            return true;
        if (group == 0)
            return false;
    }
}

/* Of a chain the dimension that is nearest in the groups from the dataset's own up. extent: that it must fit; NULL: any */
static int find_nearest(struct conventions *c, enum key key, uint64_t value, size_t group, const uint64_t *extent, struct dimension **ret,
                        struct squall_error *err)
{
    size_t nearest = SIZE_MAX, steps;
    for (struct dimension *d = first_of(c, key, value); d; d = d->next[key]) {
        SQ_TRY(sq_hdf5_spend(c->r, 1, err));
        bool fits = !extent || *extent == d->scale_length || d->is_unlimited;
        if (fits && steps_up(c, group, d->group, &steps) && steps < nearest) {
            nearest = steps;
            *ret = d;
        }
    }
    return 0;
}

static int find_dimension(struct conventions *c, const struct sq_hdf5_dataset *dataset, const struct place *p, unsigned d,
                          struct dimension **ret, struct squall_error *err)
{
    uint64_t scale;
    int64_t id;
    SQ_TRY(read_reference(c->r, p->list, d, &scale, err));
    if (scale != SQ_HDF5_NOWHERE)
        SQ_TRY(find_nearest(c, BY_ADDRESS, scale, dataset->group, NULL, ret, err));
    if (scale != SQ_HDF5_NOWHERE && !*ret) /* HDF5 lets scales lie anywhere */
        *ret = first_of(c, BY_ADDRESS, scale);
    if (!*ret && read_integer(p->coordinates, d, &id))
        SQ_TRY(find_nearest(c, BY_ID, (uint64_t)id, dataset->group, &dataset->space.shape[d], ret, err));
    return 0;
}

static int find_dimensions(struct conventions *c, const struct sq_hdf5_dataset *dataset, struct place *p, struct squall_error *err)
{
    const struct sq_hdf5_space *space = &dataset->space;
    SQ_TRY(SQ_HDF5_ROOM(c->r, &p->dims, space->rank + 1, err));
    for (unsigned d = 0; d < space->rank && !(p->own && space->rank == 1); d++)
        SQ_TRY(find_dimension(c, dataset, p, d, &p->dims[d], err));
    if (p->own && !p->dims[0])
        p->dims[0] = p->own;
    for (unsigned d = 0; d < space->rank; d++)
        if (p->dims[d] && p->dims[d]->is_unlimited && p->dims[d]->length < space->shape[d])
            p->dims[d]->length = space->shape[d];
    return 0;
}

/* ---- dimensions without scales ---- */

static bool is_among(const struct dimension *dim, struct dimension *const *dims, unsigned rank)
{
    for (unsigned d = 0; d < rank; d++)
        if (dims[d] == dim)
            return true;
    return false;
}

/* A dimension of the group that is as long, and that this dataset does not lie on yet; else a new one. */
static int find_phony(struct conventions *c, const struct sq_hdf5_dataset *dataset, struct place *p, unsigned d, struct squall_error *err)
{
    const struct sq_hdf5_space *space = &dataset->space;
    struct dimension new = {.address = SQ_HDF5_NOWHERE,
                            .group = dataset->group,
                            .id = -1,
                            .scale_length = space->shape[d],
                            .length = space->shape[d],
                            .is_unlimited = is_unlimited(space, d)};
    struct dimension *dim = first_of(c, BY_LENGTH, length_key(new.group, new.length, new.is_unlimited));
    while (dim && (dim->group != new.group || dim->scale_length != new.length || dim->is_unlimited != new.is_unlimited ||
                   is_among(dim, p->dims, space->rank)))
        dim = dim->next[BY_LENGTH];
    if (!dim) {
        enum { NAME_BYTES = 40 };
        char *name;
        SQ_TRY(SQ_HDF5_ROOM(&c->tree->kept, &name, NAME_BYTES, err));
        snprintf(name, NAME_BYTES, "phony_dim_%" PRId64, c->next_id);
        new.name = name;
        SQ_TRY(add_dimension(c, &new, &dim, err));
    }
    p->dims[d] = dim;
    return 0;
}

static int add_phony_of_group(struct conventions *c, size_t group, struct squall_error *err)
{
    for (size_t i = c->first[group]; i < c->first[group + 1]; i++) {
        const struct sq_hdf5_dataset *dataset = &c->tree->datasets[c->members[i]];
        struct place *p = &c->places[c->members[i]];
        for (unsigned d = 0; d < dataset->space.rank; d++)
            if (!p->dims[d])
                SQ_TRY(find_phony(c, dataset, p, d, err));
    }
    return 0;
}

/* netCDF-C numbers them group by group, those within a group before itself. */
static int add_phony(struct conventions *c, struct squall_error *err)
{
    const struct sq_hdf5_group *groups = c->tree->groups;
    size_t open = 0; /* the group that the walk is in */
    for (size_t i = 1; i < c->tree->group_count; i++) {
        for (; open != groups[i].parent; open = groups[open].parent)
            SQ_TRY(add_phony_of_group(c, open, err));
        open = i;
    }
    for (; open != 0; open = groups[open].parent)
        SQ_TRY(add_phony_of_group(c, open, err));
    return add_phony_of_group(c, 0, err);
}

/* ---- what is shown ---- */

/* Attributes that are shown come to the front of the list, and the list ends with them. */
static void hide_attributes(struct sq_hdf5_attributes *attributes, bool is_scale)
{
    static const char *const HIDDEN[] = {"DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Coordinates",
                                         "_Netcdf4Dimid",  "_NCProperties",  "_nc3_strict"};
    size_t kept = 0;
    for (size_t i = 0; i < attributes->count; i++) {
        const char *name = attributes->list[i].name;
        bool hidden = is_scale && (strcmp(name, "CLASS") == 0 || strcmp(name, "NAME") == 0);
        for (size_t k = 0; k < sizeof HIDDEN / sizeof *HIDDEN; k++)
            hidden = hidden || strcmp(name, HIDDEN[k]) == 0;
        if (!hidden)
            attributes->list[kept++] = attributes->list[i];
    }
    attributes->count = kept;
}

static bool is_taken(const struct conventions *c, size_t group, const char *name)
{
    for (size_t i = c->first[group]; i < c->first[group + 1]; i++)
        if (!c->places[c->members[i]].is_hidden && strcmp(last_part(c->tree->datasets[c->members[i]].name), name) == 0)
            return true;
    return false;
}

/* The name of a variable that had to be stored under another one. */
static int name_variable(struct conventions *c, const struct sq_hdf5_dataset *dataset, const char **ret, struct squall_error *err)
{
    const char *part = last_part(dataset->name);
    const size_t prefix = strlen(NO_COORDINATE), group_length = (size_t)(part - dataset->name);
    char *name;
    *ret = dataset->name;
    if (strncmp(part, NO_COORDINATE, prefix) != 0 || !part[prefix])
        return 0;
    SQ_TRY(sq_hdf5_spend(c->r, c->first[dataset->group + 1] - c->first[dataset->group], err));
    if (is_taken(c, dataset->group, part + prefix))
        return 0;
    SQ_TRY(SQ_HDF5_ROOM(&c->tree->kept, &name, strlen(dataset->name) + 1, err));
    memcpy(name, dataset->name, group_length);
    memcpy(name + group_length, part + prefix, strlen(part + prefix));
    *ret = name;
    return 0;
}

/* The lengths of its dimensions, but where that would be more elements than there can be. */
static int extend(struct conventions *c, const struct sq_hdf5_space *space, struct dimension *const *dims, const uint64_t **ret,
                  struct squall_error *err)
{
    uint64_t *shape, elements = 1;
    bool fits = true;
    SQ_TRY(SQ_HDF5_ROOM(c->r, &shape, space->rank + 1, err));
    for (unsigned d = 0; d < space->rank; d++) {
        shape[d] = dims[d]->is_unlimited && dims[d]->length > space->shape[d] ? dims[d]->length : space->shape[d];
        fits = fits && sq_mul_u64(elements, shape[d], &elements) && elements <= INT64_MAX;
    }
    *ret = fits ? shape : space->shape;
    return 0;
}

static int add_variable(struct conventions *c, size_t index, struct sq_netcdf4 *out, struct squall_error *err)
{
    const struct sq_hdf5_dataset *dataset = &c->tree->datasets[index];
    const struct place *p = &c->places[index];
    struct sq_netcdf4_variable v = {.dataset = dataset};
    SQ_TRY(name_variable(c, dataset, &v.name, err));
    SQ_TRY(extend(c, &dataset->space, p->dims, &v.shape, err));
    SQ_TRY(SQ_HDF5_ROOM(&c->tree->kept, &v.dims, dataset->space.rank, err));
    for (unsigned d = 0; d < dataset->space.rank; d++)
        v.dims[d] = p->dims[d]->name;
    out->variables[out->variable_count++] = v;
    return 0;
}

/* ---- the tree ---- */

static int sort_by_group(struct conventions *c, struct squall_error *err)
{
    const struct sq_hdf5_tree *t = c->tree;
    size_t *next;
    SQ_TRY(SQ_HDF5_ROOM(c->r, &c->members, t->dataset_count + 1, err));
    SQ_TRY(SQ_HDF5_ROOM(c->r, &c->first, t->group_count + 1, err));
    SQ_TRY(SQ_HDF5_ROOM(c->r, &next, t->group_count + 1, err));
    for (size_t i = 0; i < t->dataset_count; i++)
        c->first[t->datasets[i].group + 1]++;
    for (size_t g = 0; g < t->group_count; g++)
        next[g + 1] = c->first[g + 1] += c->first[g];
    for (size_t i = 0; i < t->dataset_count; i++)
        c->members[next[t->datasets[i].group]++] = i;
    return 0;
}

static int apply(struct conventions *c, struct sq_netcdf4 *out, struct squall_error *err)
{
    struct sq_hdf5_tree *t = c->tree;
    SQ_TRY(sort_by_group(c, err));
    SQ_TRY(SQ_HDF5_ROOM(c->r, &c->places, t->dataset_count + 1, err));
    SQ_TRY(SQ_HDF5_ROOM(c->r, &out->variables, t->dataset_count + 1, err));
    for (size_t i = 0; i < t->dataset_count; i++)
        SQ_TRY(add_scale(c, &t->datasets[c->members[i]], &c->places[c->members[i]], err));
    for (size_t i = 0; i < t->dataset_count; i++)
        SQ_TRY(find_dimensions(c, &t->datasets[i], &c->places[i], err));
    SQ_TRY(add_phony(c, err));
    for (size_t i = 0; i < t->dataset_count; i++) {
        if (!c->places[i].is_hidden)
            SQ_TRY(add_variable(c, i, out, err));
        hide_attributes(&t->datasets[i].attributes, c->places[i].own != NULL);
    }
    for (size_t g = 0; g < t->group_count; g++)
        hide_attributes(&t->groups[g].attributes, false);
    return 0;
}

int sq_netcdf4_read(struct sq_hdf5_tree *tree, struct sq_netcdf4 *ret, struct squall_error *err)
{
    struct conventions c = {.tree = tree, .r = &tree->reader};
    struct sq_netcdf4 out = {0};
    int status = apply(&c, &out, err);
    for (unsigned key = 0; key < KEYS; key++)
        sq_hdf5_table_done(&c.chains[key]);
    if (!status)
        *ret = out;
    return status;
}
