/*
 * Archive → Zarr: plan what a conversion would do, run it, look at what is there, check it.
 * What it promises is in docs/convert.md.
 */
#ifndef SQUALL_CONVERT_H
#define SQUALL_CONVERT_H

#include "squall/context.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Texts in the command's own syntax (squall help convert); NULL or 0: the default. All are copied. */
struct squall_convert_options {
    const char *const *sources; /* files and folders; globs and "-" are the command's business */
    size_t source_count;
    const char *const
        *given; /* what the user wrote for them, such as patterns, which the records keep for squall status; NULL: the sources */
    size_t given_count;
    const char *destination;
    const char *chunks;        /* "init_time=1,step=all,y=352,x=274,t2m:y=100" */
    const char *shards;        /* the same, of what holds several chunks in one file; NULL: none does */
    const char *dtype;         /* "float16" or "t2m=float32,float16" */
    const char *bitround;      /* bits that mantissas keep: "9" or "t2m=9,7" */
    const char *on_overflow;   /* "error", "inf", "clip" */
    const char *codec;         /* "blosc:cname=zstd,clevel=5,shuffle=shuffle"; chain with +; "t2m=zstd:level=3;none" for each */
    const char *const *select; /* each "name=t2m|d2m,level=850"; fields that match any are taken */
    size_t select_count;
    const char *const *rename; /* each "old=new" */
    size_t rename_count;
    const char *coarsen;    /* "y=2,x=2" */
    const char *y_order;    /* "ascending", "descending"; NULL: as in the first field */
    const char *every;      /* cadence of init_time: "6h", "30min", "1d" */
    const char *stack;      /* NULL, or "variable" */
    const char *stack_name; /* of the array that --stack makes; NULL: "data" */
    /* Of HDF5, NetCDF and Zarr sources: */
    const char
        *append_dim; /* along which the store grows; NULL: along which the files follow each other, or the largest variable's first */
    const char *concat_dim;  /* along which the files follow each other; NULL: append_dim, or that in which the first two differ */
    const char *drift;       /* "error", "warn", "first": what becomes of files that do not agree */
    const char *group;       /* whose arrays, and the coordinates above it: "forecast/surface"; NULL: the root's */
    const char *zarr_format; /* "3", or "2", which has no shards; NULL: 3 */
    const char *part;        /* "2/5": only the units of this part, beside processes that write the others; NULL: all */
    int prepend;             /* of GRIB: runs before the store's first are added, too: init_time then begins earlier */
    const char
        *schema; /* "ignore", "grow", "strict": what becomes of variables, steps, levels and members that the store lacks; NULL: ignore */
    int overwrite;
    int strict;
    unsigned lock_timeout_s; /* how long to wait for another run that holds the store; what is then held still is SQUALL_EREFUSED */
};

enum squall_convert_event {
    SQUALL_CONVERT_NOTE,    /* what it is doing: shown with -v */
    SQUALL_CONVERT_WARNING, /* an input that is bad, ignored or odd: always shown */
};

/*
 * What happens, as it happens. Called from the thread that runs the conversion, or under a lock from any other; texts are
 * one line. Any member may be NULL.
 */
struct squall_convert_events {
    void (*message)(void *user, enum squall_convert_event kind, const char *text);
    /* units done of all to do, bytes of GRIB read and of Zarr written so far */
    void (*progress)(void *user, uint64_t units_done, uint64_t units, uint64_t bytes_in, uint64_t bytes_out);
    void *user;
};

typedef struct squall_convert_plan squall_convert_plan;

/*
 * Scan, assemble and plan; the destination is read but not touched. *ret: squall_convert_plan_free.
 * Errors: SQUALL_EINVAL (an option's value, named), SQUALL_ENOTFOUND (a source), SQUALL_EREFUSED (the destination is
 * something else, in use, or was made with other settings: which), SQUALL_ERANGE (a field's values all lie beyond its type).
 */
int squall_convert_plan_new(squall_context *ctx, const struct squall_convert_options *options, const struct squall_convert_events *events,
                            squall_convert_plan **ret, struct squall_error *err) SQUALL_CHECK;
void squall_convert_plan_free(squall_convert_plan *plan);

/* The plan as JSON (one object) and as lines for a person. Both: free(). */
int squall_convert_plan_json(const squall_convert_plan *plan, char **ret, struct squall_error *err) SQUALL_CHECK;
int squall_convert_plan_text(const squall_convert_plan *plan, char **ret, struct squall_error *err) SQUALL_CHECK;

/* Can it be carried out? SQUALL_ENOMEM: it needs more memory than the context allows; the message says what would fit. */
int squall_convert_plan_check(const squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;

/* Carry the plan out, if squall_convert_plan_check finds no fault with it. */
struct squall_convert_result {
    uint64_t units_done, units_skipped, units_failed;
    uint64_t fields_written, fields_ignored, fields_duplicate;
    uint64_t bytes_in, bytes_out;
    uint64_t bad_inputs;   /* files or messages that could not be read */
    uint64_t partial_runs; /* init times with fewer fields than the usual count */
    int news;              /* a bad or ignored input that the store's records did not know yet: exit code 3 */
    char *json;            /* the whole report, free() */
    char *text;            /* the same for a person, free() */
};
int squall_convert_run(squall_convert_plan *plan, struct squall_convert_result *ret, struct squall_error *err) SQUALL_CHECK;
void squall_convert_result_done(struct squall_convert_result *result);

/*
 * What the last of several parts does when all are done, where it was killed or never came to it; no source is needed. Of *ret are set units_skipped, those that
 * the parts planned and are written, units_failed, those that are not, news where there are any, text and json. *ret: squall_convert_result_done.
 * SQUALL_EREFUSED where anybody is at work on the store, after lock_timeout_s; SQUALL_EINVAL where squall has begun none there.
 */
int squall_convert_finish(squall_context *ctx, const char *store, unsigned lock_timeout_s, struct squall_convert_result *ret,
                          struct squall_error *err) SQUALL_CHECK;

/*
 * What a store holds and lacks; or what nobody has written yet of a NetCDF file that squall.create_many has begun, or of all in a folder. text and
 * json: free(); NULL for the one that is not wanted. SQUALL_EINVAL where the store has no records of squall's.
 *
 * ret_unfinished (NULL: not wanted)  how many files squall.create_many has begun and not finished
 */
int squall_status_report(squall_context *ctx, const char *store, char **ret_text, char **ret_json, size_t *ret_unfinished,
                         struct squall_error *err) SQUALL_CHECK;

/* The same of a store as a page that stands alone. *ret: free(). SQUALL_EUNSUPPORTED where it is no store. */
int squall_status_html(squall_context *ctx, const char *store, char **ret, struct squall_error *err) SQUALL_CHECK;

/* Each that is counted is a line in the report. */
struct squall_verify_result {
    uint64_t bad;       /* damaged and missing chunks */
    uint64_t absent;    /* chunks that were never written, as far as anybody knows: they read as the fill value */
    uint64_t unchecked; /* arrays that squall cannot read, or that are too large for it: nothing is known of their chunks */
    char *text, *json;  /* free() */
};

/*
 * Check every chunk against its record (length, checksum); of a path without records, which may be a file or a pattern, decode every chunk. Damage by the
 * records is noted in the store, where that can be written and nobody is at work: its runs are off until a conversion has made them anew.
 */
int squall_verify_report(squall_context *ctx, const char *store, const struct squall_convert_events *events,
                         struct squall_verify_result *ret, struct squall_error *err) SQUALL_CHECK;

#ifdef __cplusplus
}
#endif
#endif
