/*
 * Many GRIB fields → variables on common dimensions, by docs/convert.md's rules. Every field ends up placed, or in a list that says why not:
 * field_count = placed + duplicates + ignored, checked by sq_cube_build itself.
 */
#ifndef SQ_CUBE_CUBE_H
#define SQ_CUBE_CUBE_H

#include "base/arena.h"
#include "base/json.h"
#include "format/grib/index.h"
#include "squall/array.h"
#include <stdbool.h>

enum sq_cube_reason {
    SQ_CUBE_IDENTICAL_DUPLICATE,   /* same key, same bytes as the one that holds: counted */
    SQ_CUBE_CONFLICTING_DUPLICATE, /* same key, other values; a later one won */
    SQ_CUBE_OFF_CADENCE,           /* its init time is not on the cadence */
    SQ_CUBE_BEFORE_START,          /* its init time lies before the store's first */
    SQ_CUBE_OUTSIDE_SCHEMA,        /* the store was made without this step, level or member */
    SQ_CUBE_OUTSIDE_VARIABLES,     /* the store was made without this variable */
    SQ_CUBE_NOT_IN_STACK,          /* --stack: another grid, or no deterministic field */
    SQ_CUBE_NOT_SELECTED,          /* --select chose others: counted, not a problem */
    SQ_CUBE_UNSUPPORTED,           /* product, grid or packing that squall does not read yet; type that it does not write */
    SQ_CUBE_DIFFERENT,             /* without the append dimension, and other than the store's */
    SQ_CUBE_BEHIND,                /* its place along the append dimension lies before the store's last, which only grows at its end */
};

#define SQ_CUBE_NOWHERE UINT64_MAX

enum { SQ_INIT_COUNT_LIMIT = 20000000 }; /* beyond it one stray date lies decades away at a cadence of minutes */

/* Why a field is not placed. */
struct sq_cube_ignored {
    size_t field; /* row of the index; of arrays: of the source files */
    enum sq_cube_reason reason;
    const char *what; /* of arrays: in full, the arena's; NULL: sq_cube_reason_text */
};

/* Of arrays: a part of what is written whole, and not unit by unit, could not be read. */
struct sq_cube_damage {
    uint32_t file; /* of the source files */
    const char *what;
};

enum sq_cube_dim { SQ_DIM_INIT_TIME, SQ_DIM_STEP, SQ_DIM_NUMBER, SQ_DIM_LEVEL, SQ_DIM_Y, SQ_DIM_X, SQ_DIM_STACK, SQ_DIM_OTHER };

/* What the elements of an array stand for (CF conventions, 8.1): element × scale + offset. */
struct sq_cube_packing {
    enum squall_type type; /* as which elements are taken: of the source's size, but of the sign that _Unsigned says */
    double scale, offset;
    const char *unusable; /* an attribute that should be a number; NULL: none */
};

/* One output array, without its data. Dimensions in order: init_time, [stack], step, [number], [level], y, x (or values). */
struct sq_cube_variable {
    char *name;
    struct sq_json *attributes; /* CF and GRIB_* */
    enum squall_type type;      /* what its packing asks for: float32, or float64 for IEEE 64 bit */
    size_t grid;                /* row of cube->grids */
    unsigned rank;
    enum sq_cube_dim dim_kinds[8];
    const char *dims[8]; /* names; shared with the coordinates */
    uint64_t shape[8];
    uint64_t made[8]; /* of dimensions that have grown (extend.c), how long they were when the store took the variable in; 0: as they are */
    size_t field_count; /* fields placed */
    /* Of arrays: */
    struct squall_array *source;  /* what it is read from; NULL: the sources do not hold it */
    enum squall_type source_type; /* its elements */
    uint64_t default_chunks[8];
    struct sq_json *fill_value; /* as Zarr v3 spells it; NULL: the type's own */
    double *missing;            /* values that stand for missing ones; the arena's */
    size_t missing_count;
    struct sq_cube_packing packing;
};

/* Where one field goes. A field is one horizontal slab of one variable. Sorted by (init, variable, then C order of the slab). */
struct sq_cube_place {
    uint32_t field;    /* row of the index; of arrays: of the source files */
    uint32_t variable; /* row of variables */
    uint32_t init;     /* index along init_time */
    uint32_t slab;     /* index among the variable's slabs of one init time, C order over its dims between init_time and y */
    bool flip_rows;    /* the field's rows run against the variable's */
};

/* A coordinate or auxiliary array, ready to be written. */
struct sq_cube_coordinate {
    char *name;
    enum squall_type type;
    unsigned rank;
    char *dims[8];
    uint64_t shape[8];
    uint64_t made[8]; /* as a variable's */
    void *
        values; /* C order, as squall_array_read gives them; what texts point at is the arena's. NULL: they are read from source; or, where that is NULL, as the store has them */
    struct squall_array *source;
    uint32_t file; /* source's: of the source files */
    /* Of arrays, once it is written: why it could not be read, and at which places ("4-7"; NULL: all of it). NULL: it could. The arena's. */
    const char *failed, *failed_places;
    struct sq_json *attributes;
    struct sq_json *fill_value; /* as Zarr v3 spells it; NULL: the type's own */
    bool along_init;            /* its first dimension is the append dimension, so it grows with the store */
};

struct sq_cube_grid {
    uint32_t grid;          /* row of the index's grids that gives the orientation; UINT32_MAX: the store's, and no field has it */
    uint64_t rows, columns; /* before coarsening; rows 0: one dimension of `columns` values */
};

/* Places along init_time that are other ones now: N is N × stretch + by. */
struct sq_move {
    uint64_t stretch, by;
};

static inline bool sq_moves(const struct sq_move *move)
{
    return move->stretch > 1 || move->by > 0;
}

static inline uint64_t sq_moved(const struct sq_move *move, uint64_t place)
{
    return place * move->stretch + move->by;
}

/* Which one was it? false: none, it is new. */
static inline bool sq_move_back(const struct sq_move *move, uint64_t place, uint64_t *ret)
{
    *ret = place < move->by ? 0 : (place - move->by) / move->stretch;
    return place >= move->by && (place - move->by) % move->stretch == 0;
}

struct sq_cube {
    bool of_arrays; /* made of arrays (array_cube.h), not of GRIB fields */
    struct sq_cube_variable *variables;
    size_t variable_count;
    struct sq_cube_place *places;
    size_t place_count;
    struct sq_cube_ignored *ignored;
    size_t ignored_count;
    struct sq_cube_damage *damage;
    size_t damage_count;
    struct sq_cube_coordinate *coordinates; /* in the order in which they are to be listed */
    size_t coordinate_count;
    struct sq_cube_grid *grids;
    size_t grid_count;
    const char *append_dim; /* "init_time"; of arrays any dimension, whose indices are then called init times */
    /* Seconds since 1970; with a schema at least those that the store has. Of GRIB regular and contiguous; of arrays NULL where they are no such times. */
    int64_t *init_times_s;
    const char *calendar; /* of arrays, in which these are counted; NULL: proleptic_gregorian */
    size_t init_count;
    uint64_t *source_index;     /* of arrays: where each init time lies along the sources' dimension, or SQ_CUBE_NOWHERE */
    struct sq_move move;        /* of places along init_time: from where the schema has them */
    int64_t cadence_s;          /* 0: open (fewer than three runs and no --every) */
    size_t holes;               /* places of the cube that no field fills, over init times that have any field */
    struct sq_json *attributes; /* of the dataset: Conventions, institution, GRIB_centre, … (not history) */
    char **notes;               /* lines for the user: odd grids, renamed variables, conflicting duplicates by name, holes, … */
    size_t note_count;
    char **warnings; /* lines for the user that make exit code 3 when new: off cadence, outside the schema, conflicts … */
    size_t warning_count;
    struct sq_json *schema; /* see sq_cube_schema */
    struct sq_arena *arena; /* names and lines */
};

/* How y (latitude) runs. */
enum sq_y_order { SQ_Y_AS_IT_IS /* as in the first field */, SQ_Y_ASCENDING, SQ_Y_DESCENDING };

struct sq_cube_options {
    const char *const *
        select; /* each "name=t2m|d2m,level=850": keys name, shortName, level, typeOfLevel, step (hours or 90min), stepType, number, paramId, grid; any of the lines */
    size_t select_count;
    const char *const *rename; /* "old=new" */
    size_t rename_count;
    int64_t every_s;               /* cadence; 0: found from the data */
    bool stack;                    /* --stack variable */
    const char *stack_name;        /* NULL: "data" */
    enum sq_y_order y_order;       /* of grids with rows */
    unsigned coarsen_y, coarsen_x; /* ≥ 1: coordinates are block means, shapes divided (rounded up) */
    const struct sq_json *schema;  /* of an existing store (sq_cube_schema); NULL: a new one */
    uint64_t prepend;   /* with a schema, runs before its first are placed, too; init_time begins a multiple of this earlier. 0: not */
    bool grow;          /* with a schema, steps, levels and members that it lacks join it where they come behind those that it has */
    bool respace;       /* with a schema whose cadence is open, its places may move so that the step is a part of what it was */
    const bool *fields; /* of the index: those that take part, the others are not selected; NULL: all */
};

/*
 * *ret: sq_cube_done. Errors: SQUALL_EINVAL (a malformed select, rename, …; a rename that names nothing or collides), SQUALL_EREFUSED (the cadence that the new
 * runs would settle contradicts the coordinates that the store has), SQUALL_ENOTFOUND (no field is left, and there is no schema), SQUALL_ECORRUPT (the
 * schema), SQUALL_EUNSUPPORTED (more coordinates or places than can be counted).
 */
int sq_cube_build(const struct sq_grib_index *index, const struct sq_cube_options *options, struct sq_cube *ret,
                  struct squall_error *err) SQUALL_CHECK;
void sq_cube_done(struct sq_cube *cube);

/*
 * What a store must remember so that tomorrow's files give the same names and places: variables with their keys, steps, levels,
 * members, grids, init_time start, count and cadence (a store only grows: build with this schema never gives fewer init times).
 * Deterministic. The caller's.
 */
int sq_cube_schema(const struct sq_cube *cube, struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;

/*
 * grow.c: the schema of options, and behind its variables those that the index has beside them. names: of these, with commas. *ret: the caller's.
 * SQUALL_EREFUSED: a stack, which cannot grow.
 */
int sq_cube_schema_grow(const struct sq_grib_index *index, const struct sq_cube_options *options, struct sq_json **ret,
                        struct sq_text *names, struct squall_error *err) SQUALL_CHECK;

/* A field's full key as stable bytes, the same in every process (for fingerprints), and one line for a person: "t2m, 2022-01-01T00:00 + 6 h, 2 m". */
int sq_cube_field_key(const struct sq_grib_index *index, size_t field, struct sq_text *out, struct squall_error *err) SQUALL_CHECK;
int sq_cube_field_text(const struct sq_grib_index *index, size_t field, struct sq_text *out, struct squall_error *err) SQUALL_CHECK;

const char *sq_cube_reason_text(enum sq_cube_reason reason); /* "off cadence" */

#endif
