/* A conversion planned: what squall_convert_plan holds, and the parts of planning that have files of their own. */
#ifndef SQ_CONVERT_PLAN_H
#define SQ_CONVERT_PLAN_H

#include "convert/array_sources.h"
#include "convert/array_unit.h"
#include "convert/layout.h"
#include "convert/lock.h"
#include "convert/settings.h"
#include "convert/store_state.h"
#include "convert/unit.h"
#include "cube/sources.h"
#include "store/zarr_writer.h"
#include "sys/mutex.h"

enum sq_todo {
    SQ_TODO_NOTHING, /* its record says that all the sources' fields are there */
    SQ_TODO_WRITE,   /* no record: a new unit, or one that a killed run left */
    SQ_TODO_REDO,    /* recorded, but the sources hold more or something else */
    SQ_TODO_KEEP,    /* its record is lost or cannot be, and a redo would lose what is stored: left as it is */
    SQ_TODO_STRICT,  /* --strict: has a bad input */
    SQ_TODO_ANOTHER, /* another part's (--part) */
};

/* A unit of which the sources hold fields, or one that is to be mended. */
struct sq_planned_unit {
    uint64_t unit;
    size_t first_place, place_count; /* of the cube's */
    enum sq_todo todo;
    char *why;                           /* for REDO, KEEP and STRICT: a line for the user; else NULL */
    char *damage;                        /* of a chunk, which no record tells of yet; NULL: none was met */
    const struct sq_record_unit *record; /* NULL: none */
    bool carries;                        /* its record fits the layout: what it has stored and the sources lack is carried over */
    uint64_t carried;                    /* how many fields those are, as far as the plan knows */
};

static inline bool sq_is_to_do(const struct sq_planned_unit *unit)
{
    return unit->todo == SQ_TODO_WRITE || unit->todo == SQ_TODO_REDO;
}

/* What the packings say about an array's values and float16. */
enum sq_overflow_outlook { SQ_OUTLOOK_FITS, SQ_OUTLOOK_UNKNOWN, SQ_OUTLOOK_OVERFLOWS /* some may */ };

/* An input that is bad or ignored. */
struct sq_input {
    uint32_t file; /* sq_plan_file_path */
    char *what;
    uint64_t field_count; /* that are ignored for it; 0: damage */
    bool is_bad;          /* damage, as opposed to a field left out */
    bool known;           /* the records tell of it */
    bool said;            /* the user was warned of it when it was found */
};

struct sq_input_list {
    struct sq_input *items;
    size_t count, capacity;
};

struct squall_convert_plan {
    const struct squall_context *ctx;
    struct squall_convert_events events;
    struct sq_settings settings;
    struct sq_patience patience; /* with who holds the store */
    char *target;                /* where the store is built: the destination, or, to replace one, a folder beside it */
    char *replaced;              /* NULL, or the store that goes when the target is complete (no link to it) */
    struct sq_store_state state; /* of the target; its records speak of the units of the plan, see unit_move */
    struct sq_move unit_move;    /* where the plan has the units that are stored, once the run has moved them (rekey.h) */
    struct sq_source_list sources;
    struct sq_grib_index index;     /* of GRIB sources */
    struct sq_array_sources arrays; /* of others */
    struct sq_cube cube;
    struct sq_layout layout;
    struct sq_unit_setting setting;
    struct sq_planned_unit *units; /* ascending */
    size_t unit_count;
    enum sq_overflow_outlook *outlooks; /* of each array; FITS where it is no float16 */
    struct sq_input_list inputs;
    uint64_t bytes_in;       /* of the units to do: of GRIB messages, of arrays' elements */
    uint64_t bytes_out;      /* of their chunks in memory, before they are encoded */
    uint64_t unit_bytes;     /* of the chunks that are in memory at a time */
    uint64_t band_bytes;     /* room for those; of arrays see bricks */
    uint64_t band_count;     /* in how many bands the largest unit is made: 1 where there is room for all of it */
    size_t largest;          /* the array that the least room there must be is for */
    uint64_t peak_bytes;     /* of memory */
    size_t slot_count;       /* buffers for encoded chunks */
    struct sq_brick *bricks; /* of arrays: of each of the layout's; see array_unit.h */
    uint64_t batch_units;    /* of arrays: units that are written together */
    bool spread_chunks;      /* encode several chunks at a time; else one, its blocks in parallel */
    bool carried_out;
    struct sq_mutex say_lock; /* around every event and the numbers that they tell */
};

/* array_unit.c: in the place of overflow.c and memory.c, for arrays. */
int sq_plan_array_units(struct squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;
int sq_plan_refuse_arrays(const struct squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;

/* todo.c: fill plan->units. */
int sq_plan_units(struct squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;
/* carry: room for what the fields point at. */
struct sq_unit_fields sq_plan_unit_fields(const struct squall_convert_plan *plan, const struct sq_planned_unit *unit,
                                          struct sq_carry *carry);
/* Of the units of other parts, how many are not what the sources hold, by these records? */
int sq_plan_count_left(const struct squall_convert_plan *plan, const struct sq_records *now, uint64_t *ret,
                       struct squall_error *err) SQUALL_CHECK;
/* Does the record have a field stored that the unit, as it was loaded, lacks? slabs: of each array, enum sq_slab_state of the unit's. */
bool sq_plan_loses(const struct sq_record_unit *record, const struct sq_layout *layout, const uint8_t *const *slabs);
/* "a.grib2, b.grib2 and 3 more": of the files that the record was made of, those whose names the sources do not have; nothing: none. */
void sq_plan_files_gone(const struct squall_convert_plan *plan, const struct sq_record_unit *record, struct sq_text *out);

/* inputs.c: the damage that the scan met; the fields that the cube left out. */
int sq_plan_damage(struct squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;
int sq_plan_array_damage(struct squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;
int sq_plan_ignored(struct squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;
/* input.what is taken, whatever comes of it (NULL: out of memory); whether it is known is found here. */
int sq_input_add(struct squall_convert_plan *plan, struct sq_input input, struct squall_error *err) SQUALL_CHECK;
/* The same, of arrays; message: of a read that failed. The user is told at once. */
int sq_input_add_damage(struct squall_convert_plan *plan, uint32_t file, const char *message, struct squall_error *err) SQUALL_CHECK;
void sq_input_list_done(struct sq_input_list *list);
/* The source files, whatever they hold. */
size_t sq_plan_file_count(const struct squall_convert_plan *plan);
const char *sq_plan_file_path(const struct squall_convert_plan *plan, uint32_t file);
struct sq_record_file sq_plan_record_file(const struct squall_convert_plan *plan, uint32_t file);
uint32_t sq_plan_file_of(const struct squall_convert_plan *plan, size_t field); /* field: of a place of the cube's */

/* "FOLDER/.NAME.squall-WHAT": where a store that replaces FOLDER/NAME is built. sq_free; NULL: out of memory. */
char *sq_plan_beside(const char *store, const char *what) __attribute__((warn_unused_result));

/* overflow.c: fill plan->outlooks; SQUALL_ERANGE where a field's values all lie beyond its array's type. */
int sq_plan_overflow(struct squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;

/* memory.c: of tables, coordinates and records, and of what each thread's codecs need. */
uint64_t sq_plan_table_bytes(const struct squall_convert_plan *plan);
/* memory.c: of each thread an old chunk, stored and decoded, where any is carried over. */
uint64_t sq_plan_carry_bytes(const struct squall_convert_plan *plan);
/* memory.c: how much the plan needs. Whether that is more than the context allows: squall_convert_plan_check. */
int sq_plan_memory(struct squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;

/* prepare.c: publish layout.json, coordinates, flags and metadata. Of arrays what cannot be read is an input of its own, and told of in the schema. */
int sq_plan_prepare(struct squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;

/* plan.c: plan against the destination as it is now. What was found in GRIB files is kept, other sources are opened again. */
int sq_plan_again(struct squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;

static inline bool sq_plan_has_unit(const struct squall_convert_plan *plan, uint64_t unit)
{
    return sq_part_has(plan->settings.part, unit);
}

/* Where it writes. */
static inline struct sq_store sq_plan_store(const struct squall_convert_plan *plan)
{
    return (struct sq_store){plan->target, plan->settings.zarr_format};
}

/* Tell the user. */
__attribute__((format(printf, 3, 4), nonnull(3))) void sq_plan_say(struct squall_convert_plan *plan, enum squall_convert_event kind,
                                                                   const char *format, ...);

#endif
