/*
 * What the steps of building a cube share; private to this floor. The steps, in the order of sq_cube_build:
 *
 *   points.c      which of the index's grids are the same points
 *   variables.c   which fields make one variable (or schema.c: which variable of the store a field belongs to)
 *   naming.c      what the variables are called
 *   select.c      which fields are wanted, which names are changed
 *   stack.c       which variables go into one array
 *   times.c       which runs there are, the cadence, strays
 *   levels.c      steps, members, levels: a field's place as one number
 *   extend.c      steps, members and levels that a store's dimensions take at their ends
 *   places.c      places, duplicates
 *   bounds.c dims.c attributes.c coordinates.c dataset.c notes.c holes.c schema.c   the arrays, and what is told about it all
 *
 * A field keeps one byte of fate throughout, so that at the end every field is accounted for.
 */
#ifndef SQ_CUBE_BUILD_H
#define SQ_CUBE_BUILD_H

#include "cube/cube.h"
#include "cube/intern.h"

enum sq_fate {
    SQ_FATE_OPEN, /* not decided yet: takes part in what comes next */
    SQ_FATE_PLACED,
    SQ_FATE_UNSUPPORTED,
    SQ_FATE_NOT_SELECTED,
    SQ_FATE_NOT_IN_STACK,
    SQ_FATE_OUTSIDE_VARIABLE,
    SQ_FATE_OUTSIDE_INTERVAL,
    SQ_FATE_OUTSIDE_STEP,
    SQ_FATE_OUTSIDE_LEVEL,
    SQ_FATE_OUTSIDE_MEMBER,
    SQ_FATE_OFF_CADENCE,
    SQ_FATE_BEFORE_START,
    SQ_FATE_IDENTICAL,
    SQ_FATE_CONFLICTING,
    SQ_FATE_COUNT,
};

enum sq_kind { SQ_KIND_DETERMINISTIC, SQ_KIND_ENSEMBLE, SQ_KIND_DERIVED, SQ_KIND_PROBABILITY, SQ_KIND_PERCENTILE };

/* What always tells variables apart. */
struct sq_key {
    int32_t param_id;
    const char *parameter; /* of a parameter that no table knows, its short name; else "" */
    const char *level_type;
    const char *step_type;
    int statistic; /* code of a statistical process that has no name; -1: it has one */
    enum sq_kind kind;
    int derived, percentile, probability; /* -1: none */
    double lower, upper;                  /* of a probability; NaN: none */
    uint32_t grid;                        /* row of the builder's grids */
};

/* What tells variables apart only where their fields would otherwise meet. SQ_MARK_ANY where it is not needed. */
enum sq_mark {
    SQ_MARK_INTERVAL,
    SQ_MARK_ENSEMBLE,
    SQ_MARK_PROCESS,
    SQ_MARK_CENTRE,
    SQ_MARK_PRODUCT_HIGH,
    SQ_MARK_PRODUCT_LOW,
    SQ_MARK_COUNT
};
#define SQ_MARK_ANY INT64_MIN
/* values of SQ_MARK_INTERVAL below zero; others are lengths in seconds */
enum { SQ_INTERVAL_FROM_START = -1, SQ_INTERVAL_LATER = -2 };

/* The variables that have the same key; needed: bits 1 << enum sq_mark that tell them apart. */
struct sq_group {
    struct sq_key key;
    unsigned needed;
    bool by_length; /* SQ_MARK_INTERVAL tells lengths apart, not just whether the interval begins with the run */
};

/* One distinct pair of product and grid: all of a field that is no time and no member. */
struct sq_cell {
    uint32_t product;
    struct sq_key key;
    uint32_t group; /* UINT32_MAX: none of the store's */
};

/* Grids of the same points. */
struct sq_points {
    const struct sq_grib_grid *grid; /* the one that gives the orientation */
    bool northward;                  /* its rows run from south to north */
    bool turned;                     /* the store's rows run against its rows (--y-order) */
    uint32_t row;                    /* the same as a row of the index; UINT32_MAX: none of them */
    uint32_t first_field;            /* in file order, of those in the cube; UINT32_MAX: none yet */
    size_t field_count;
    uint32_t next;     /* another of this kind and size; UINT32_MAX: the last */
    unsigned number;   /* 1 has most fields; fixed by the store */
    uint32_t cube_row; /* UINT32_MAX: no variable of the cube lies on it */
    struct sq_grib_axes axes;
    const char *dims[2];        /* y and x; or values in [0] */
    const char *point_names[2]; /* latitude and longitude of every point; NULL: none */
    const char *mapping_name;   /* NULL: none */
};

#define SQ_BEGIN_UNKNOWN INT64_MIN

/* The interval that ends at each step. */
struct sq_bounds {
    const char *name; /* of the array */
    int64_t *begins;  /* SQ_BEGIN_UNKNOWN where no field has come yet */
    size_t user_count;
};

/* Dimensions that may grow. */
enum sq_growing { SQ_GROWS_STEPS, SQ_GROWS_MEMBERS, SQ_GROWS_LEVELS, SQ_GROWING_COUNT };

/* A variable in the making. */
struct sq_draft {
    uint32_t group;
    int64_t marks[SQ_MARK_COUNT];
    const char *base_name; /* CF short name; known while names are made */
    const char *name;      /* before --rename */
    size_t field_count;    /* of all that is supported: weighs names */
    size_t open_count;     /* of those that are still open */
    int64_t longest_s;     /* interval */
    uint32_t product;      /* that names and describes it; UINT32_MAX: it has no field */
    bool known;            /* of the schema */
    bool joins;            /* and it has just been added to that (grow.c) */
    bool stored;           /* not left out by --select or --stack */
    bool is_float64;
    bool has_members;
    size_t first_level, level_count; /* in the builder's levels */
    uint32_t made[SQ_GROWING_COUNT]; /* sq_cube_variable.made; 0: as they are */
    const char *level_dim;           /* NULL: at most one level */
    uint32_t bounds;                 /* row of the builder's; UINT32_MAX: no intervals */
    uint64_t slab_offset;            /* of its first slab within a run */
    uint32_t *entries;               /* --stack: by level, the entry along the stack */
    uint32_t cube_row;               /* UINT32_MAX: not in the cube */
    struct sq_json *attributes;
};

static inline bool sq_draft_in_cube(const struct sq_draft *draft)
{
    return draft->stored && (draft->known || draft->open_count);
}

struct sq_level {
    uint32_t draft;
    double first, second; /* NaN: none */
};

/* One along a stack. */
struct sq_entry {
    char *name;
    uint32_t draft, level;
};

/* A field's place as a number. */
struct sq_spot {
    uint64_t place;
    uint32_t field;
};

/* Where a field lies along the axes; UINT32_MAX where an axis does not have it, which only a schema's may lack. */
struct sq_where {
    uint32_t step, member, level;
};

/* More than GRIB's calendar can say, and so little that sums and differences of such times fit. */
#define SQ_TIME_LIMIT_S (INT64_C(1) << 44)

struct sq_builder {
    const struct sq_grib_index *index;
    const struct sq_cube_options *options;
    struct sq_cube *cube;
    struct sq_arena *arena; /* the cube's */

    uint8_t *fate;                   /* by field: enum sq_fate */
    uint32_t *cell_of, *variable_of; /* by field: row of cells; row of drafts or UINT32_MAX */
    uint32_t *file_rank;             /* by file: place in the order of path bytes */
    double (*product_levels)[2];     /* by product: surfaces, rounded so that equal ones compare equal */

    struct sq_cell *cells;
    size_t cell_count;
    struct sq_points *points;
    size_t points_count, points_capacity;
    uint32_t *points_of;              /* by the index's grid */
    bool *northward;                  /* by the index's grid: rows run from south to north */
    uint32_t *used_points;            /* rows of points, by the cube's grid */
    struct sq_grib_grid *known_grids; /* of the schema */
    unsigned *known_grid_numbers;
    size_t known_grid_count;

    struct sq_group *groups; /* sorted by key */
    size_t group_count;
    struct sq_intern variable_table; /* group and marks → row of drafts, until these are sorted by name */
    struct sq_draft *drafts;
    size_t draft_count;

    struct sq_axis runs; /* init times that open fields have */
    struct sq_axis steps, members;
    bool has_members;        /* more than one: a dimension */
    struct sq_level *levels; /* by draft, and along its dimension: ascending, but for those that joined a store later */
    size_t level_count;
    struct sq_bounds *bounds;
    size_t bounds_count, bounds_capacity;
    uint64_t slabs_a_run;  /* over all variables */
    uint64_t *row_offsets; /* by the cube's variable: slab_offset */
    struct sq_entry *entries;
    size_t entry_count;    /* --stack: sorted by name */
    struct sq_json *grown; /* from which init times on the store has had more, in seconds; NULL: it is as it was made */

    int64_t start_s, spacing_s, cadence_s; /* spacing 0: one run */
    uint64_t init_count;                   /* 0: not known yet */
    uint64_t known_init_count;             /* of the store; with what is before it, once that is known */
    struct sq_move move;                   /* of the store's places */

    bool *rename_used; /* by option */
    size_t conflict_count, note_capacity, warning_capacity, coordinate_capacity;
};

/* points.c, dims.c */
int sq_cube_find_points(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
int sq_cube_number_points(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
int sq_cube_name_points(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
int sq_cube_name_levels(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;

/* variables.c, naming.c */
int sq_cube_find_variables(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
int sq_cube_name_variables(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
void sq_cube_settle_groups(struct sq_builder *b); /* sorts them by key, one each */
uint32_t sq_cube_group_of(const struct sq_builder *b, const struct sq_key *key);
int sq_cube_know_variable(struct sq_builder *b, uint32_t draft, struct squall_error *err) SQUALL_CHECK; /* a row of the schema */

/* select.c */
int sq_cube_select(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
int sq_cube_check_renames(const struct sq_cube_options *options, struct squall_error *err) SQUALL_CHECK;
const char *sq_cube_renamed(struct sq_builder *b, const char *name); /* as long as `name` and the options live */
int sq_cube_check_names(const struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;

/* stack.c, times.c */
int sq_cube_choose_stack(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
int sq_cube_lay_stack(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
int sq_cube_find_runs(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
/* With a store whose cadence is settled: strays are strays, whatever else the store has no place for. So they are told alike in every run. */
void sq_cube_leave_strays(struct sq_builder *b);
int sq_cube_advise_cadence(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK; /* a warning, where another would take more runs */

/* levels.c */
int sq_compare_doubles(double a, double b);          /* NaN last, and equal to itself */
int sq_compare_levels(const void *a, const void *b); /* of struct sq_level: by draft, first, second */
int sq_cube_round_levels(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
int sq_cube_find_axes(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK; /* of the open fields */
void sq_cube_settle_levels(struct sq_builder *b);
uint64_t sq_cube_slab_count(const struct sq_builder *b, const struct sq_draft *draft); /* of a run; UINT64_MAX where it is no number */
struct sq_where sq_cube_where(const struct sq_builder *b, size_t field);
/* Is field a after the other in the order of path bytes, offset, number in the message? */
bool sq_cube_is_later(const struct sq_builder *b, uint32_t a, uint32_t other);
/* The places of the open fields, sorted; of one place in file order. *ret: sq_free. */
int sq_cube_find_spots(struct sq_builder *b, struct sq_spot **ret, size_t *ret_count, struct squall_error *err) SQUALL_CHECK;

/* extend.c: as options->grow says, before what a store lacks is outside of it. */
int sq_cube_extend(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;

/* places.c, bounds.c, holes.c */
int sq_cube_place_fields(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
void sq_cube_turn_rows(struct sq_builder *b); /* of what has been placed, on points that are turned */
int sq_cube_find_bounds(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
/* Every table gets room for steps behind the first `count`. */
int sq_cube_extend_bounds(struct sq_builder *b, uint32_t count, struct squall_error *err) SQUALL_CHECK;
/* With a schema: does the field's interval agree with what the store has for the step? A step without one takes it. */
int sq_cube_check_bounds(struct sq_builder *b, size_t field, uint32_t step, bool *ret, struct squall_error *err) SQUALL_CHECK;
int sq_cube_count_holes(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;

/* attributes.c, coordinates.c, dataset.c */
unsigned sq_cube_coarsening(const struct sq_builder *b, unsigned which); /* 0: y, 1: x, 2: values */
int sq_cube_make_variables(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
int sq_cube_make_coordinates(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
int sq_cube_describe_dataset(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
int sq_cube_put_centre(struct sq_json *attributes, unsigned centre,
                       struct squall_error *err) SQUALL_CHECK; /* GRIB_centre, …, institution */
int sq_cube_put(struct sq_json *object, const char *key, struct sq_json *value, struct squall_error *err) SQUALL_CHECK;
int sq_cube_put_string(struct sq_json *object, const char *key, const char *text, struct squall_error *err) SQUALL_CHECK;
int sq_cube_put_int(struct sq_json *object, const char *key, int64_t value, struct squall_error *err) SQUALL_CHECK;

/* schema.c, schema_read.c */
extern const char *const sq_kind_names[SQ_KIND_PERCENTILE + 1];
extern const char *const sq_mark_names[SQ_MARK_COUNT];
int sq_cube_schema_read(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;
/* One of its grids and the number that it has there. *ret: sq_grib_grid_done. */
int sq_cube_schema_read_grid(const struct sq_json *g, struct sq_grib_grid *ret, unsigned *ret_number,
                             struct squall_error *err) SQUALL_CHECK;
int sq_cube_check_places(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK; /* has the store a place for each open field? */
int sq_cube_schema_write(struct sq_builder *b, struct squall_error *err) SQUALL_CHECK;

/* notes.c */
__attribute__((format(printf, 4, 5))) int sq_cube_note(struct sq_builder *b, bool warning, struct squall_error *err, const char *format,
                                                       ...) SQUALL_CHECK;
int sq_cube_note_conflict(struct sq_builder *b, uint32_t loser, uint32_t winner, struct squall_error *err) SQUALL_CHECK;
const char *sq_cube_unsupported_reason(const struct sq_builder *b, size_t field); /* NULL: it can be read */
int sq_cube_account(struct sq_builder *b,
                    struct squall_error *err) SQUALL_CHECK; /* every field is placed or ignored; tells of the latter */

#endif
