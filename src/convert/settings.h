/*
 * What the user asked of a conversion, parsed: squall_convert_options' texts become rules that the layout applies. Names of
 * variables and dimensions are checked later, against the cube; here only the words themselves are.
 */
#ifndef SQ_CONVERT_SETTINGS_H
#define SQ_CONVERT_SETTINGS_H

#include "base/arena.h"
#include "base/text.h"
#include "convert/lock.h"
#include "cube/cube.h"
#include "engine/scatter.h"
#include "squall/convert.h"
#include "squall/many.h"

/* In every rule variable NULL: every variable that no other rule names. */
struct sq_chunk_rule {
    const char *variable, *dim;
    uint64_t length; /* 0: all of the dimension */
};

struct sq_chunk_rules {
    struct sq_chunk_rule *items;
    size_t count;
};

struct sq_type_rule {
    const char *variable;
    enum squall_type type;
};

struct sq_codec_rule {
    const char *variable;
    const char *spec;
};

struct sq_rounding_rule {
    const char *variable;
    unsigned keepbits;
};

/* What becomes of fields outside of the store's schema. */
enum sq_schema_policy { SQ_SCHEMA_IGNORE, SQ_SCHEMA_GROW, SQ_SCHEMA_STRICT };

struct sq_settings {
    const char *const *sources;
    size_t source_count;
    const char *const *given; /* by the user, in their place: for the command */
    size_t given_count;
    const char *destination; /* without trailing slashes */
    struct sq_chunk_rules chunks, shards;
    struct sq_type_rule *types;
    size_t type_count;
    enum sq_overflow overflow;
    struct sq_codec_rule *codecs; /* one of them with variable NULL */
    size_t codec_count;
    struct sq_rounding_rule *roundings;
    size_t rounding_count;
    const char *const *select; /* sorted */
    size_t select_count;
    const char *const *rename; /* sorted */
    size_t rename_count;
    unsigned coarsen_y, coarsen_x; /* 1: not coarsened */
    enum sq_y_order y_order;
    int zarr_format; /* 3 or 2 */
    int64_t every_s; /* 0: found from the data */
    bool stack;
    const char *stack_name;
    const char *append_dim, *concat_dim; /* NULL: not given */
    const char *group;                   /* without slashes at its ends; NULL: the root */
    enum squall_drift drift;
    enum sq_schema_policy schema;
    struct sq_part part; /* {0}: the whole */
    bool prepend, overwrite, strict;
    unsigned lock_timeout_s;
    struct sq_arena *arena; /* all of the above */
    const char *text;       /* the options that fix the stored bytes, as the command takes them: "--dtype float16" */
    const char *command;    /* the command, quoted for a shell, but for the destination, which comes last */
};

extern const char *const sq_y_order_names[]; /* of each enum sq_y_order; "": as it is */

/* *ret: sq_settings_done. Errors: SQUALL_EINVAL naming the option and what it takes. */
int sq_settings_parse(const struct squall_convert_options *options, struct sq_settings *ret, struct squall_error *err) SQUALL_CHECK;
void sq_settings_done(struct sq_settings *s);
/* A blank and the path, from the root on and quoted for a shell. */
void sq_settings_add_path(struct sq_text *command, const char *path);

#endif
