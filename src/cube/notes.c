/*
 * What is told about fields that are not in the cube. Fields that are out for one reason are one line, with their number, their files' number and the
 * first of them; lines of one kind are bounded, so that an archive that is odd throughout does not fill the screen.
 */
#include "base/error_internal.h"
#include "base/hash.h"
#include "base/memory.h"
#include "cube/build.h"
#include "cube/texts.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_LIMIT = 20 }; /* of one kind */

/* Fields that one line tells of. */
struct out {
    enum sq_fate fate;
    size_t field_count, file_count;
    uint32_t last_file;
    uint32_t first; /* row of the index */
};

int sq_cube_note(struct sq_builder *b, bool warning, struct squall_error *err, const char *format, ...)
{
    struct sq_cube *cube = b->cube;
    char text[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *line = sq_arena_strdup(b->arena, text);
    if (!line)
        return sq_error_memory(err, sizeof text);
    if (warning) {
        SQ_TRY(SQ_GROW(cube->warnings, b->warning_capacity, cube->warning_count + 1, err));
        cube->warnings[cube->warning_count++] = line;
    } else {
        SQ_TRY(SQ_GROW(cube->notes, b->note_capacity, cube->note_count + 1, err));
        cube->notes[cube->note_count++] = line;
    }
    return 0;
}

static const char *path_of(const struct sq_builder *b, uint32_t field)
{
    return b->index->files[b->index->fields[field].file].path;
}

static unsigned long long offset_of(const struct sq_builder *b, uint32_t field)
{
    return b->index->fields[field].offset;
}

int sq_cube_note_conflict(struct sq_builder *b, uint32_t loser, uint32_t winner, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    if (b->conflict_count++ >= LINE_LIMIT)
        return 0;
    SQ_TRY(sq_cube_field_text(b->index, loser, &text, err));
    return sq_cube_note(b, true, err, "%s is there twice with other values: %s at byte %llu is ignored, %s at byte %llu is taken",
                        sq_text_string(&text), path_of(b, loser), offset_of(b, loser), path_of(b, winner), offset_of(b, winner));
}

static bool is_time(int64_t seconds)
{
    return seconds > -SQ_TIME_LIMIT_S && seconds < SQ_TIME_LIMIT_S;
}

const char *sq_cube_unsupported_reason(const struct sq_builder *b, size_t field)
{
    const struct sq_grib_field *f = &b->index->fields[field];
    const char *reason = b->index->products[f->product].unsupported;
    reason = reason ? reason : b->index->grids[f->grid].unsupported;
    reason = reason ? reason : b->index->packings[f->packing].unsupported;
    bool sound = is_time(f->times.reference_time_s) && is_time(f->times.step_begin_s) && is_time(f->times.step_end_s);
    return reason || sound ? reason : "a time beyond any calendar";
}

/* Fields with equal words share a line. */
static void line_words(const struct sq_builder *b, uint32_t field, int64_t words[3])
{
    const struct sq_grib_field *f = &b->index->fields[field];
    const struct sq_grib_names *names = &b->index->names[f->product];
    const char *reason;
    words[0] = b->fate[field];
    words[1] = words[2] = 0;
    switch (b->fate[field]) {
    case SQ_FATE_UNSUPPORTED:
        reason = sq_cube_unsupported_reason(b, field);
        words[1] = reason ? (int64_t)sq_hash_bytes(reason, strlen(reason)).low : 0;
        break;
    case SQ_FATE_OFF_CADENCE:
    case SQ_FATE_BEFORE_START:
        words[1] = f->times.reference_time_s;
        break;
    case SQ_FATE_OUTSIDE_VARIABLE: /* levels of one parameter together */
        words[1] = (int64_t)sq_hash_bytes(names->short_name, strlen(names->short_name)).low;
        words[2] = (int64_t)sq_hash_bytes(names->level_type, strlen(names->level_type)).low;
        break;
    case SQ_FATE_OUTSIDE_STEP:
    case SQ_FATE_OUTSIDE_LEVEL:
    case SQ_FATE_OUTSIDE_MEMBER:
    case SQ_FATE_OUTSIDE_INTERVAL:
    case SQ_FATE_NOT_IN_STACK:
        words[1] = b->variable_of[field];
        break;
    default:
        break;
    }
}

/* "24 fields in 2 files (the first in PATH at byte 0: t, …)" */
static int add_extent(const struct sq_builder *b, const struct out *out, struct sq_text *line, struct squall_error *err)
{
    sq_text_add_count(line, out->field_count, "field");
    sq_text_add(line, " in ");
    sq_text_add_count(line, out->file_count, "file");
    sq_text_printf(line, " ignored (the first: ");
    SQ_TRY(sq_cube_field_text(b->index, out->first, line, err));
    sq_text_printf(line, ", %s at byte %llu)", path_of(b, out->first), offset_of(b, out->first));
    return 0;
}

static const char *variable_name(const struct sq_builder *b, uint32_t field)
{
    uint32_t variable = b->variable_of[field];
    return variable == UINT32_MAX ? b->index->names[b->index->fields[field].product].cf_var_name : b->drafts[variable].name;
}

/* The first half of a line: why. */
static void add_reason(const struct sq_builder *b, const struct out *out, struct sq_text *line)
{
    const struct sq_grib_field *f = &b->index->fields[out->first];
    const bool grow = b->options->grow;
    switch (out->fate) {
    case SQ_FATE_UNSUPPORTED:
        sq_text_printf(line, "not read yet: %s: ", sq_cube_unsupported_reason(b, out->first));
        break;
    case SQ_FATE_OFF_CADENCE:
        sq_text_add(line, "run ");
        sq_text_add_time(line, f->times.reference_time_s);
        sq_text_add(line, " is off the cadence of ");
        sq_text_add_duration(line, b->spacing_s);
        sq_text_add(line, " from ");
        sq_text_add_time(line, b->start_s);
        sq_text_add(line, ": ");
        break;
    case SQ_FATE_BEFORE_START:
        sq_text_add(line, "run ");
        sq_text_add_time(line, f->times.reference_time_s);
        sq_text_add(line, " lies before the store's first, ");
        sq_text_add_time(line, b->start_s);
        sq_text_add(line, b->options->prepend ? ": " : " (--prepend adds it): ");
        break;
    case SQ_FATE_OUTSIDE_VARIABLE:
        sq_text_printf(line, "the store was made without %s (%s): ", variable_name(b, out->first), b->index->names[f->product].level_type);
        break;
    case SQ_FATE_OUTSIDE_STEP:
        sq_text_printf(line, "%s: the store was made without these steps%s: ", variable_name(b, out->first),
                       grow ? ", and takes others behind its last one only; convert into another store" : "");
        break;
    case SQ_FATE_OUTSIDE_LEVEL:
        sq_text_printf(line, "%s: the store was made without these levels%s: ", variable_name(b, out->first),
                       grow ? ", and with one alone, so without a dimension of them; convert into another store" : "");
        break;
    case SQ_FATE_OUTSIDE_MEMBER:
        sq_text_printf(line, "%s: the store was made without these members%s: ", variable_name(b, out->first),
                       grow ? ", and with one alone, so without a dimension of them; convert into another store" : "");
        break;
    case SQ_FATE_OUTSIDE_INTERVAL:
        sq_text_printf(line, "%s: the store has other intervals at these steps: ", variable_name(b, out->first));
        break;
    case SQ_FATE_NOT_IN_STACK:
        sq_text_printf(line, "%s does not fit the stack: ", variable_name(b, out->first));
        break;
    case SQ_FATE_IDENTICAL:
        sq_text_add(line, "there twice, with the same values: ");
        break;
    case SQ_FATE_NOT_SELECTED:
        sq_text_add(line, "not selected: ");
        break;
    default:
        break;
    }
}

static enum sq_cube_reason reason_of(enum sq_fate fate)
{
    switch (fate) {
    case SQ_FATE_IDENTICAL:
        return SQ_CUBE_IDENTICAL_DUPLICATE;
    case SQ_FATE_CONFLICTING:
        return SQ_CUBE_CONFLICTING_DUPLICATE;
    case SQ_FATE_OFF_CADENCE:
        return SQ_CUBE_OFF_CADENCE;
    case SQ_FATE_BEFORE_START:
        return SQ_CUBE_BEFORE_START;
    case SQ_FATE_NOT_IN_STACK:
        return SQ_CUBE_NOT_IN_STACK;
    case SQ_FATE_NOT_SELECTED:
        return SQ_CUBE_NOT_SELECTED;
    case SQ_FATE_UNSUPPORTED:
        return SQ_CUBE_UNSUPPORTED;
    case SQ_FATE_OUTSIDE_VARIABLE:
        return SQ_CUBE_OUTSIDE_VARIABLES;
    default:
        return SQ_CUBE_OUTSIDE_SCHEMA;
    }
}

static bool is_problem(enum sq_fate fate)
{
    return fate != SQ_FATE_IDENTICAL && fate != SQ_FATE_NOT_SELECTED;
}

static int tell(struct sq_builder *b, const struct out *outs, size_t count, struct squall_error *err)
{
    size_t lines[SQ_FATE_COUNT] = {0}, rest[SQ_FATE_COUNT] = {0};
    for (size_t i = 0; outs && i < count; i++) {
        SQ_CLEANUP_TEXT struct sq_text line = SQ_TEXT_INIT;
        if (outs[i].fate == SQ_FATE_CONFLICTING)
            continue; /* told one by one */
        if (lines[outs[i].fate]++ >= LINE_LIMIT) {
            rest[outs[i].fate] += outs[i].field_count;
            continue;
        }
        add_reason(b, &outs[i], &line);
        SQ_TRY(add_extent(b, &outs[i], &line, err));
        if (line.failed)
            return sq_error_memory(err, line.length);
        SQ_TRY(sq_cube_note(b, is_problem(outs[i].fate), err, "%s", sq_text_string(&line)));
    }
    for (int fate = 0; fate < SQ_FATE_COUNT; fate++) {
        if (rest[fate])
            SQ_TRY(sq_cube_note(b, is_problem(fate), err, "%s: %zu more fields ignored, in %zu groups like those above",
                                sq_cube_reason_text(reason_of(fate)), rest[fate], lines[fate] - LINE_LIMIT));
    }
    if (b->conflict_count > LINE_LIMIT)
        SQ_TRY(sq_cube_note(b, true, err, "%zu more fields are there twice with other values; the last in file order is taken",
                            b->conflict_count - LINE_LIMIT));
    return 0;
}

const char *sq_cube_reason_text(enum sq_cube_reason reason)
{
    static const char *const TEXTS[] = {
        [SQ_CUBE_IDENTICAL_DUPLICATE] = "identical duplicate",
        [SQ_CUBE_CONFLICTING_DUPLICATE] = "conflicting duplicate",
        [SQ_CUBE_OFF_CADENCE] = "off cadence",
        [SQ_CUBE_BEFORE_START] = "before the store's first run",
        [SQ_CUBE_OUTSIDE_SCHEMA] = "outside the store's schema",
        [SQ_CUBE_OUTSIDE_VARIABLES] = "outside the store's schema",
        [SQ_CUBE_NOT_IN_STACK] = "not in the stack",
        [SQ_CUBE_NOT_SELECTED] = "not selected",
        [SQ_CUBE_UNSUPPORTED] = "not supported",
        [SQ_CUBE_DIFFERENT] = "other than the store's",
        [SQ_CUBE_BEHIND] = "before the end of the store, which grows only there",
    };
    return TEXTS[reason];
}

static int add_out(const struct sq_builder *b, uint32_t field, struct sq_intern *table, struct out **outs, size_t *capacity,
                   struct squall_error *err)
{
    int64_t words[3];
    uint32_t row, known = table->count, file = b->index->fields[field].file;
    line_words(b, field, words);
    SQ_TRY(sq_intern_add(table, words, &row, err));
    SQ_TRY(SQ_GROW(*outs, *capacity, row + (size_t)1, err));
    struct out *out = &(*outs)[row];
    if (row == known)
        *out = (struct out){.fate = b->fate[field], .first = field, .last_file = UINT32_MAX};
    out->field_count++;
    out->file_count += out->last_file != file; /* fields of a file follow each other */
    out->last_file = file;
    return 0;
}

int sq_cube_account(struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_INTERN struct sq_intern table = sq_intern_make(3);
    SQ_CLEANUP_FREE struct out *outs = NULL;
    struct sq_cube *cube = b->cube;
    size_t capacity = 0, open = 0, ignored = 0;
    for (size_t i = 0; i < b->index->field_count; i++) {
        open += b->fate[i] == SQ_FATE_OPEN;
        ignored += b->fate[i] > SQ_FATE_PLACED;
    }
    if (open || cube->place_count + ignored != b->index->field_count)
        return sq_error(err, SQUALL_EINVAL, "%zu fields, but %zu placed and %zu ignored: a defect of squall's, please report it",
                        b->index->field_count, cube->place_count, ignored);
    cube->ignored = sq_alloc(ignored, sizeof *cube->ignored);
    if (!cube->ignored)
        return sq_error_memory(err, ignored * sizeof *cube->ignored);
    for (size_t i = 0; i < b->index->field_count; i++) {
        if (b->fate[i] <= SQ_FATE_PLACED)
            continue;
        cube->ignored[cube->ignored_count++] = (struct sq_cube_ignored){i, reason_of(b->fate[i]), NULL};
        SQ_TRY(add_out(b, (uint32_t)i, &table, &outs, &capacity, err));
    }
    return tell(b, outs, table.count, err);
}
