/*
 * --select and --rename. A selection is lines of terms, "name=t2m|d2m,level=850": a field is taken when every term of any line holds. Names are those before
 * --rename, and they do not depend on what is selected.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include "cube/texts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum select_key {
    KEY_NAME,
    KEY_SHORT_NAME,
    KEY_LEVEL,
    KEY_LEVEL_TYPE,
    KEY_STEP,
    KEY_STEP_TYPE,
    KEY_NUMBER,
    KEY_PARAM_ID,
    KEY_GRID,
    KEY_COUNT
};

static const char *const KEY_NAMES[KEY_COUNT] = {"name",     "shortName", "level",   "typeOfLevel", "step",
                                                 "stepType", "number",    "paramId", "grid"};

struct term {
    enum select_key key;
    size_t value_count;
    char **texts;
    double *numbers; /* level, step (seconds), number, paramId; NULL for the others */
};

struct line {
    size_t term_count;
    struct term *terms;
    size_t matches;
};

/* "6", "6h", "90min", "45s", "1d" in seconds; a bare number is hours. */
static bool parse_step(const char *text, double *ret)
{
    static const struct {
        const char *name;
        double seconds;
    } UNITS[] = {{"", 3600}, {"h", 3600}, {"min", 60}, {"m", 60}, {"s", 1}, {"d", 86400}};
    char *end;
    double number = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof UNITS / sizeof *UNITS; i++) {
        if (strcmp(end, UNITS[i].name) == 0 && isfinite(number)) {
            *ret = number * UNITS[i].seconds;
            return true;
        }
    }
    return false;
}

static bool parse_number(const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    return end != text && !*end && isfinite(*ret);
}

static int parse_values(struct sq_builder *b, const char *line, char *values, struct term *term, struct squall_error *err)
{
    bool numbers = term->key == KEY_LEVEL || term->key == KEY_STEP || term->key == KEY_NUMBER || term->key == KEY_PARAM_ID;
    size_t count = 1;
    for (const char *p = values; *p; p++)
        count += *p == '|';
    term->texts = sq_arena_alloc(b->arena, count * sizeof *term->texts);
    term->numbers = numbers ? sq_arena_alloc(b->arena, count * sizeof *term->numbers) : NULL;
    if (!term->texts || (numbers && !term->numbers))
        return sq_error_memory(err, count * sizeof *term->texts);
    for (char *value = values, *next; value; value = next) {
        next = strchr(value, '|');
        if (next)
            *next++ = 0;
        double *number = numbers ? &term->numbers[term->value_count] : NULL;
        if (!*value || (numbers && !(term->key == KEY_STEP ? parse_step(value, number) : parse_number(value, number))))
            return sq_error(err, SQUALL_EINVAL, "--select %s: \"%s\" is no value for %s%s", line, value, KEY_NAMES[term->key],
                            term->key == KEY_STEP ? ", which is hours, or like 90min" : "");
        term->texts[term->value_count++] = value;
    }
    return 0;
}

static int parse_term(struct sq_builder *b, const char *line, char *text, struct term *term, struct squall_error *err)
{
    char *equals = strchr(text, '=');
    if (equals)
        *equals = 0;
    for (term->key = 0; equals && term->key < KEY_COUNT; term->key++) {
        if (strcmp(text, KEY_NAMES[term->key]) == 0)
            return parse_values(b, line, equals + 1, term, err);
    }
    return sq_error(
        err, SQUALL_EINVAL,
        "--select %s: \"%s\" is none of name=, shortName=, level=, typeOfLevel=, step=, stepType=, number=, paramId=, grid=", line, text);
}

static int parse_line(struct sq_builder *b, const char *text, struct line *line, struct squall_error *err)
{
    char *copy = sq_arena_strdup(b->arena, text);
    size_t count = 1;
    for (const char *p = text; *p; p++)
        count += *p == ',';
    line->terms = sq_arena_alloc(b->arena, count * sizeof *line->terms);
    if (!copy || !line->terms)
        return sq_error_memory(err, count * sizeof *line->terms);
    for (char *term = copy, *next; term; term = next) {
        next = strchr(term, ',');
        if (next)
            *next++ = 0;
        SQ_TRY(parse_term(b, text, term, &line->terms[line->term_count++], err));
    }
    return 0;
}

static bool has_text(const struct term *term, const char *value)
{
    for (size_t i = 0; i < term->value_count; i++) {
        if (strcmp(term->texts[i], value) == 0)
            return true;
    }
    return false;
}

static bool has_number(const struct term *term, double value)
{
    for (size_t i = 0; i < term->value_count; i++) {
        if (fabs(term->numbers[i] - value) <= 1e-9 * fabs(value))
            return true;
    }
    return false;
}

static bool term_holds(const struct sq_builder *b, const struct term *term, size_t field)
{
    const struct sq_grib_field *f = &b->index->fields[field];
    const struct sq_grib_names *names = &b->index->names[f->product];
    const struct sq_key *key = &b->cells[b->cell_of[field]].key;
    uint32_t variable = b->variable_of[field];
    switch (term->key) {
    case KEY_NAME: /* a field that the store has no variable for is known by its CF short name */
        return has_text(term, variable == UINT32_MAX ? names->cf_var_name : b->drafts[variable].name);
    case KEY_SHORT_NAME:
        return has_text(term, names->short_name);
    case KEY_LEVEL:
        return has_number(term, b->product_levels[f->product][0]);
    case KEY_LEVEL_TYPE:
        return has_text(term, key->level_type);
    case KEY_STEP:
        return has_number(term, (double)f->times.step_end_s);
    case KEY_STEP_TYPE:
        return has_text(term, key->step_type);
    case KEY_NUMBER:
        return has_number(term, f->times.number);
    case KEY_PARAM_ID:
        return has_number(term, names->param_id);
    case KEY_GRID:
        return has_text(term, b->points[key->grid].grid->type_name);
    case KEY_COUNT:
        break;
    }
    return false;
}

static bool line_holds(const struct sq_builder *b, const struct line *line, size_t field)
{
    for (size_t i = 0; i < line->term_count; i++) {
        if (!term_holds(b, &line->terms[i], field))
            return false;
    }
    return true;
}

/* A selection that chooses nothing at all names what there is to choose from. */
static int nothing_selected(const struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text names = SQ_TEXT_INIT;
    size_t listed = 0;
    for (size_t i = 0; i < b->draft_count && names.length < 300; i++, listed++)
        sq_text_printf(&names, "%s%s", i ? ", " : "", b->drafts[i].name);
    if (names.failed)
        return sq_error_memory(err, names.length);
    return sq_error(err, SQUALL_EINVAL, "--select chooses none of %zu fields; the names are %s%s", b->index->field_count,
                    sq_text_string(&names), listed < b->draft_count ? ", …" : "");
}

int sq_cube_select(struct sq_builder *b, struct squall_error *err)
{
    size_t count = b->options->select_count, taken = 0;
    if (!count)
        return 0;
    SQ_CLEANUP_FREE struct line *lines = sq_alloc_zero(count, sizeof *lines);
    if (!lines)
        return sq_error_memory(err, count * sizeof *lines);
    for (size_t i = 0; i < count; i++)
        SQ_TRY(parse_line(b, b->options->select[i], &lines[i], err));
    for (size_t field = 0; field < b->index->field_count; field++) {
        if (b->fate[field] != SQ_FATE_OPEN)
            continue;
        bool any = false;
        for (size_t i = 0; i < count; i++) {
            bool holds = line_holds(b, &lines[i], field);
            lines[i].matches += holds;
            any |= holds;
        }
        if (!any)
            b->fate[field] = SQ_FATE_NOT_SELECTED;
        taken += any;
    }
    if (!taken && !b->options->schema)
        return nothing_selected(b, err);
    for (size_t i = 0; !b->options->schema && i < count; i++) {
        if (!lines[i].matches)
            SQ_TRY(sq_cube_note(b, true, err, "--select %s chooses no field", b->options->select[i]));
    }
    return 0;
}

/* "old=new" → the place of '='; NULL: malformed. A name that a store can have has no slash and no leading dot. */
static const char *rename_equals(const char *text)
{
    const char *equals = strchr(text, '=');
    return equals && equals != text && equals[1] && equals[1] != '.' && !strpbrk(equals + 1, "/= \t") ? equals : NULL;
}

const char *sq_cube_renamed(struct sq_builder *b, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < b->options->rename_count; i++) {
        const char *text = b->options->rename[i], *equals = rename_equals(text);
        if (equals && (size_t)(equals - text) == length && memcmp(text, name, length) == 0) {
            b->rename_used[i] = true;
            return equals + 1;
        }
    }
    return name;
}

int sq_cube_check_renames(const struct sq_cube_options *options, struct squall_error *err)
{
    for (size_t i = 0; i < options->rename_count; i++) {
        const char *text = options->rename[i], *equals = rename_equals(text);
        if (!equals)
            return sq_error(err, SQUALL_EINVAL, "--rename %s: wants old=new, a name without slash, blank or leading dot", text);
        if (strncmp(text, "init_time=", 10) == 0)
            return sq_error(err, SQUALL_EINVAL, "--rename %s: init_time keeps its name, since appending goes by it", text);
        for (size_t j = 0; j < i; j++) {
            if (strncmp(options->rename[j], text, (size_t)(equals - text) + 1) == 0)
                return sq_error(err, SQUALL_EINVAL, "--rename %s: \"%.*s\" has another new name already", text, (int)(equals - text), text);
        }
    }
    return 0;
}

struct named {
    const char *name;
};

static int compare_named(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int nothing_to_rename(const struct sq_cube *cube, const char *rule, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text names = SQ_TEXT_INIT;
    size_t all = cube->variable_count + cube->coordinate_count, listed = 0;
    for (; listed < all && names.length < 300; listed++)
        sq_text_printf(&names, "%s%s", listed ? ", " : "",
                       listed < cube->variable_count ? cube->variables[listed].name
                                                     : cube->coordinates[listed - cube->variable_count].name);
    if (names.failed)
        return sq_error_memory(err, names.length);
    return sq_error(err, SQUALL_EINVAL, "--rename %s: there is no variable or coordinate of that name; there are %s%s", rule,
                    sq_text_string(&names), listed < all ? ", …" : "");
}

/* Every array of the cube has a name of its own, and every --rename had something to name. */
int sq_cube_check_names(const struct sq_builder *b, struct squall_error *err)
{
    const struct sq_cube *cube = b->cube;
    size_t count = 0, all = cube->variable_count + cube->coordinate_count;
    for (size_t i = 0; i < b->options->rename_count; i++) {
        if (!b->rename_used[i])
            return nothing_to_rename(cube, b->options->rename[i], err);
    }
    SQ_CLEANUP_FREE struct named *names = sq_alloc(all, sizeof *names);
    if (!names)
        return sq_error_memory(err, all * sizeof *names);
    for (size_t i = 0; i < cube->variable_count; i++)
        names[count++].name = cube->variables[i].name;
    for (size_t i = 0; i < cube->coordinate_count; i++)
        names[count++].name = cube->coordinates[i].name;
    qsort(names, count, sizeof *names, compare_named);
    for (size_t i = 1; i < count; i++) {
        if (compare_named(&names[i - 1], &names[i]) == 0)
            return sq_error(err, SQUALL_EINVAL, "two arrays would be called \"%s\": --rename one of them to another name", names[i].name);
    }
    return 0;
}
