/*
 * Dimensions that variables share: horizontal ones, by grid, and levels. The commonest has the plain name; others add the grid's number
 * ("latitude_2") or a variable ("isobaricInhPa_gh").
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include <stdlib.h>
#include <string.h>

enum { PLAIN_LIMIT = 16 };

/* Names that a grid has without its number. There are few, whatever the number of grids. */
struct plain_names {
    size_t count;
    struct {
        const char *name;
        unsigned number; /* of the grid that has it */
    } taken[PLAIN_LIMIT];
};

/* `name` where no grid before has it, else "name_NUMBER" */
static int claim(struct sq_builder *b, struct plain_names *plain, const char *name, unsigned number, const char **ret,
                 struct squall_error *err)
{
    size_t i = 0;
    while (i < plain->count && strcmp(plain->taken[i].name, name) != 0)
        i++;
    if (i == plain->count && plain->count < PLAIN_LIMIT) {
        plain->taken[plain->count].name = name;
        plain->taken[plain->count++].number = number;
    }
    bool first = i < PLAIN_LIMIT && plain->taken[i].number == number;
    SQ_CLEANUP_FREE char *text = first ? sq_strdup(name) : sq_format("%s_%u", name, number);
    const char *made = text ? sq_arena_strdup(b->arena, text) : NULL;
    if (!made)
        return sq_error_memory(err, strlen(name));
    *ret = sq_cube_renamed(b, made);
    return 0;
}

/* Axes without coordinates, for a grid whose own cannot be computed. */
static void bare_axes(const struct sq_grib_grid *grid, struct sq_grib_axes *ret)
{
    *ret = (struct sq_grib_axes){.count = grid->rectangular ? 2 : 1};
    memcpy(ret->axis[0].name, grid->rectangular ? "y" : "values", grid->rectangular ? 2 : 7);
    memcpy(ret->axis[1].name, "x", 2);
    ret->axis[0].length = grid->rectangular ? grid->rows : (size_t)grid->point_count;
    ret->axis[1].length = grid->columns;
}

/* Rows the way that was asked for: coordinates here, fields in sq_cube_turn_rows. */
static int turn_axis(struct sq_builder *b, struct sq_points *points, struct squall_error *err)
{
    double *y = points->axes.axis[0].values;
    const size_t count = points->axes.axis[0].length;
    if (b->options->y_order == SQ_Y_AS_IT_IS || points->axes.count < 2)
        return 0;
    if (!y)
        return sq_error(err, SQUALL_EINVAL, "--y-order: grid %u has no coordinates that would say how its rows run", points->number);
    points->turned = count > 1 && (y[1] > y[0]) != (b->options->y_order == SQ_Y_ASCENDING);
    for (size_t i = 0; points->turned && i < count / 2; i++) {
        double other = y[count - 1 - i];
        y[count - 1 - i] = y[i];
        y[i] = other;
    }
    return 0;
}

static int name_points(struct sq_builder *b, struct plain_names *plain, struct sq_points *points, struct squall_error *err)
{
    struct squall_error why = SQUALL_ERROR_INIT;
    int status = sq_grib_grid_axes(points->grid, &points->axes, &why);
    if (status == SQUALL_ENOMEM)
        return sq_error(err, status, "%s", why.message);
    if (status) {
        bare_axes(points->grid, &points->axes);
        SQ_TRY(sq_cube_note(b, true, err, "grid %u has no coordinates: %s", points->number, why.message));
    }
    SQ_TRY(turn_axis(b, points, err));
    if (points->axes.note)
        SQ_TRY(sq_cube_note(b, false, err, "grid %u: %s", points->number, points->axes.note));
    if (points->axes.count < 2 && (b->options->coarsen_y > 1 || b->options->coarsen_x > 1))
        return sq_error(err, SQUALL_EINVAL, "--coarsen: a %s grid has no rows and columns; --select what lies on others",
                        points->grid->type_name);
    for (unsigned d = 0; d < points->axes.count; d++)
        SQ_TRY(claim(b, plain, points->axes.axis[d].name, points->number, &points->dims[d], err));
    if (points->axes.point_latitudes) {
        SQ_TRY(claim(b, plain, "latitude", points->number, &points->point_names[0], err));
        SQ_TRY(claim(b, plain, "longitude", points->number, &points->point_names[1], err));
    }
    if (points->axes.grid_mapping)
        SQ_TRY(claim(b, plain, "spatial_ref", points->number, &points->mapping_name, err));
    return 0;
}

static int compare_points(const void *a, const void *b, void *builder)
{
    const struct sq_points *points = ((const struct sq_builder *)builder)->points;
    unsigned x = points[*(const uint32_t *)a].number, y = points[*(const uint32_t *)b].number;
    return x < y ? -1 : x > y;
}

int sq_cube_name_points(struct sq_builder *b, struct squall_error *err)
{
    struct plain_names plain = {0};
    size_t count = 0;
    b->used_points = sq_arena_alloc(b->arena, b->points_count * sizeof *b->used_points);
    b->cube->grids = sq_arena_alloc(b->arena, b->points_count * sizeof *b->cube->grids);
    if (!b->cube->grids || !b->used_points)
        return sq_error_memory(err, b->points_count * sizeof *b->cube->grids);
    for (size_t i = 0; i < b->draft_count; i++) {
        uint32_t row = b->groups[b->drafts[i].group].key.grid;
        if (sq_draft_in_cube(&b->drafts[i]) && b->points[row].cube_row == UINT32_MAX) {
            b->points[row].cube_row = 0;
            b->used_points[count++] = row;
        }
    }
    qsort_r(b->used_points, count, sizeof *b->used_points, compare_points, b);
    for (size_t i = 0; i < count; i++) {
        struct sq_points *points = &b->points[b->used_points[i]];
        const struct sq_grib_grid *grid = points->grid;
        points->cube_row = (uint32_t)i;
        b->cube->grids[i] =
            (struct sq_cube_grid){points->row, grid->rectangular ? grid->rows : 0, grid->rectangular ? grid->columns : grid->point_count};
        SQ_TRY(name_points(b, &plain, points, err));
    }
    b->cube->grid_count = count;
    return 0;
}

/* A variable with several levels, to be sorted so that equal sets of one level type are neighbours. */
struct level_user {
    uint32_t draft;
    uint32_t same_count; /* of the first of each set: how many variables have it */
};

static const char *level_type_of(const struct sq_builder *b, uint32_t draft)
{
    return b->groups[b->drafts[draft].group].key.level_type;
}

static int compare_sets(const struct sq_builder *b, uint32_t left, uint32_t right)
{
    const struct sq_draft *x = &b->drafts[left], *y = &b->drafts[right];
    int order = strcmp(level_type_of(b, left), level_type_of(b, right));
    if (order || x->level_count != y->level_count)
        return order ? order : x->level_count > y->level_count ? -1 : 1;
    for (size_t i = 0; !order && i < x->level_count; i++) {
        const struct sq_level *p = &b->levels[x->first_level + i], *q = &b->levels[y->first_level + i];
        order = sq_compare_doubles(p->first, q->first);
        order = order ? order : sq_compare_doubles(p->second, q->second);
    }
    return order;
}

static int compare_users(const void *a, const void *b, void *builder)
{
    const struct level_user *x = a, *y = b;
    int order = compare_sets(builder, x->draft, y->draft);
    return order ? order : x->draft < y->draft ? -1 : x->draft > y->draft;
}

/* users: of one level type, sorted. The set that most variables share has the type's name; where none is shared and there are several, none has. */
static int name_sets(struct sq_builder *b, struct level_user *users, size_t count, struct squall_error *err)
{
    size_t plain = 0, sets = 0;
    for (size_t i = 0, end; i < count; i = end, sets++) {
        for (end = i + 1; end < count && compare_sets(b, users[i].draft, users[end].draft) == 0; end++)
            ;
        users[i].same_count = (uint32_t)(end - i);
        if (users[i].same_count > users[plain].same_count)
            plain = i;
    }
    bool has_plain = sets == 1 || users[plain].same_count > 1;
    for (size_t i = 0; i < count; i += users[i].same_count) {
        const char *type = level_type_of(b, users[i].draft);
        SQ_CLEANUP_FREE char *text = has_plain && i == plain ? sq_strdup(type) : sq_format("%s_%s", type, b->drafts[users[i].draft].name);
        const char *name = text ? sq_arena_strdup(b->arena, text) : NULL;
        if (!name)
            return sq_error_memory(err, strlen(type));
        for (size_t k = i; k < i + users[i].same_count; k++)
            b->drafts[users[k].draft].level_dim = name;
    }
    return 0;
}

int sq_cube_name_levels(struct sq_builder *b, struct squall_error *err)
{
    size_t count = 0;
    SQ_CLEANUP_FREE struct level_user *users = sq_alloc(b->draft_count, sizeof *users);
    if (!users)
        return sq_error_memory(err, b->draft_count * sizeof *users);
    for (size_t i = 0; i < b->draft_count; i++) {
        if (sq_draft_in_cube(&b->drafts[i]) && b->drafts[i].level_count > 1)
            users[count++] = (struct level_user){.draft = (uint32_t)i};
    }
    qsort_r(users, count, sizeof *users, compare_users, b);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && strcmp(level_type_of(b, users[i].draft), level_type_of(b, users[end].draft)) == 0; end++)
            ;
        SQ_TRY(name_sets(b, users + i, end - i, err));
    }
    return 0;
}
