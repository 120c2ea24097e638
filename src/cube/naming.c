/*
 * What the variables are called (docs/cubes.md, "Names"). Of the variables with one CF short name, the one with most fields keeps it; each other adds
 * what sets it apart from that one, and, where that is not enough, what sets it apart from its namesakes.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include "cube/texts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a name can add, in the order in which it does. */
enum part {
    PART_PARAMETER,
    PART_KIND,
    PART_STEP_TYPE,
    PART_LEVEL_TYPE,
    PART_INTERVAL,
    PART_THRESHOLD,
    PART_ENSEMBLE,
    PART_PROCESS,
    PART_CENTRE,
    PART_GRID,
    PART_COUNT
};

struct candidate {
    uint32_t draft;
    const char *parts[PART_COUNT]; /* "" where there is nothing to add */
    unsigned added;                /* bits 1 << enum part */
    char *name;
};

enum { FAMILY_LINE_LIMIT = 20 };

/* To sort candidates by name without moving them. */
struct by_name {
    struct candidate *candidate;
};

/* Names that other arrays of the store have or may have. */
static const char *const RESERVED[] = {"init_time", "step",     "number", "valid_time",  "latitude",    "longitude",    "y",          "x",
                                       "values",    "variable", "bnds",   "spatial_ref", "step_bounds", "chunk_exists", "field_count"};

static const char *derived_text(int code)
{
    /* WMO code table 4.7 */
    static const char *const TEXTS[] = {"mean",        "weightedMean", "sd",  "normalizedSd", "spread",  "largeAnomalyIndex",
                                        "clusterMean", "iqr",          "min", "max",          "variance"};
    return code >= 0 && (size_t)code < sizeof TEXTS / sizeof *TEXTS ? TEXTS[code] : NULL;
}

static const char *ensemble_text(int64_t code)
{
    /* WMO code table 4.6 */
    static const char *const TEXTS[] = {"control", "lowResolutionControl", "negative", "positive", "multiModel"};
    if (code == -1)
        return "noEnsemble";
    return code >= 0 && (size_t)code < sizeof TEXTS / sizeof *TEXTS ? TEXTS[code] : NULL;
}

static const char *process_text(int64_t code)
{
    /* WMO code table 4.3 */
    static const char *const TEXTS[] = {"analysis",
                                        "initialization",
                                        "forecast",
                                        "biasCorrected",
                                        "ensembleForecast",
                                        "probabilityForecast",
                                        "forecastError",
                                        "analysisError",
                                        "observation",
                                        "climatology",
                                        "probabilityWeighted",
                                        "biasCorrectedEnsemble",
                                        "postProcessedAnalysis",
                                        "postProcessedForecast",
                                        "nowcast",
                                        "hindcast"};
    return code >= 0 && (size_t)code < sizeof TEXTS / sizeof *TEXTS ? TEXTS[code] : NULL;
}

/* A number within a name: "0p254", "minus5" */
static void add_name_number(struct sq_text *out, double value)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    sq_text_add_number(&text, fabs(value));
    if (value < 0)
        sq_text_add(out, "minus");
    for (const char *p = sq_text_string(&text); *p; p++) {
        if (*p == '.')
            sq_text_add(out, "p");
        else if (*p != '+')
            sq_text_add_bytes(out, *p == '-' ? "m" : p, 1);
    }
    out->failed |= text.failed;
}

static void add_kind(struct sq_text *out, const struct sq_key *key)
{
    const char *derived = derived_text(key->derived);
    if (key->kind == SQ_KIND_DETERMINISTIC)
        sq_text_add(out, "deterministic");
    else if (key->kind == SQ_KIND_ENSEMBLE)
        sq_text_add(out, "ensemble");
    else if (key->kind == SQ_KIND_PROBABILITY)
        sq_text_add(out, "probability");
    else if (key->kind == SQ_KIND_PERCENTILE)
        sq_text_printf(out, "p%d", key->percentile);
    else if (derived)
        sq_text_add(out, derived);
    else
        sq_text_printf(out, "derived%d", key->derived);
}

/* What the probability is of: "above0p254", "nearNormal", "quantile1of10". */
static void add_threshold(struct sq_text *out, const struct sq_key *key)
{
    /* WMO code table 4.9, and which of the two limits each type speaks of */
    static const struct {
        const char *word;
        bool lower, upper;
    } TYPES[] = {{"below", true, false},        {"above", false, true},        {"between", true, true},       {"above", true, false},
                 {"below", false, true},        {"equal", true, false},        {"aboveNormal", false, false}, {"nearNormal", false, false},
                 {"belowNormal", false, false}, {"categorical", false, false}, {"quantile", true, true}};
    enum { QUANTILE = 10 };
    if (key->kind != SQ_KIND_PROBABILITY)
        return;
    bool known = key->probability >= 0 && (size_t)key->probability < sizeof TYPES / sizeof *TYPES;
    bool lower = !isnan(key->lower) && (!known || TYPES[key->probability].lower);
    bool upper = !isnan(key->upper) && (!known || TYPES[key->probability].upper);
    if (known)
        sq_text_add(out, TYPES[key->probability].word);
    else
        sq_text_printf(out, "type%d_", key->probability);
    if (lower)
        add_name_number(out, key->lower);
    if (lower && upper)
        sq_text_add(out, key->probability == QUANTILE ? "of" : "and");
    if (upper)
        add_name_number(out, key->upper);
}

static void add_coded(struct sq_text *out, const char *text, const char *word, int64_t code)
{
    if (text)
        sq_text_add(out, text);
    else
        sq_text_printf(out, "%s%lld", word, (long long)code);
}

static void add_part(struct sq_text *out, const struct sq_builder *b, const struct sq_draft *draft, enum part part)
{
    const struct sq_key *key = &b->groups[draft->group].key;
    const struct sq_grib_names *names = &b->index->names[draft->product];
    const int64_t *marks = draft->marks;
    switch (part) {
    case PART_PARAMETER:
        if (strcmp(names->short_name, names->cf_var_name) != 0)
            sq_text_add(out, names->short_name);
        else
            sq_text_printf(out, "param%d", key->param_id);
        break;
    case PART_KIND:
        add_kind(out, key);
        break;
    case PART_STEP_TYPE:
        sq_text_add(out, key->step_type);
        if (key->statistic >= 0)
            sq_text_printf(out, "%d", key->statistic);
        break;
    case PART_LEVEL_TYPE:
        sq_text_add(out, key->level_type);
        break;
    case PART_INTERVAL:
        if (marks[SQ_MARK_INTERVAL] == SQ_INTERVAL_FROM_START)
            sq_text_add(out, "fromStart");
        else if (marks[SQ_MARK_INTERVAL] != SQ_MARK_ANY)
            sq_text_add_compact_duration(out, draft->longest_s);
        break;
    case PART_THRESHOLD:
        add_threshold(out, key);
        break;
    case PART_ENSEMBLE:
        if (marks[SQ_MARK_ENSEMBLE] != SQ_MARK_ANY)
            add_coded(out, ensemble_text(marks[SQ_MARK_ENSEMBLE]), "ensemble", marks[SQ_MARK_ENSEMBLE]);
        break;
    case PART_PROCESS:
        if (marks[SQ_MARK_PROCESS] != SQ_MARK_ANY)
            add_coded(out, process_text(marks[SQ_MARK_PROCESS]), "process", marks[SQ_MARK_PROCESS]);
        break;
    case PART_CENTRE:
        if (marks[SQ_MARK_CENTRE] != SQ_MARK_ANY)
            sq_text_printf(out, "centre%lld_%lld", (long long)marks[SQ_MARK_CENTRE] >> 16, (long long)marks[SQ_MARK_CENTRE] & 0xffff);
        break;
    case PART_GRID:
        sq_text_printf(out, "grid%u", b->points[key->grid].number);
        break;
    case PART_COUNT:
        break;
    }
}

/* Letters, digits and underscores; anything else becomes an underscore. */
static void make_plain(char *name)
{
    for (; *name; name++) {
        bool letter = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z');
        if (!letter && !(*name >= '0' && *name <= '9'))
            *name = '_';
    }
}

static int make_parts(struct sq_builder *b, struct candidate *c, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    for (enum part part = 0; part < PART_COUNT; part++) {
        sq_text_clear(&text);
        add_part(&text, b, &b->drafts[c->draft], part);
        char *copy = text.failed ? NULL : sq_arena_strdup(b->arena, sq_text_string(&text));
        if (!copy)
            return sq_error_memory(err, text.length);
        make_plain(copy);
        c->parts[part] = copy;
    }
    return 0;
}

static int make_name(struct sq_builder *b, struct candidate *c, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    sq_text_add(&text, b->drafts[c->draft].base_name);
    for (enum part part = 0; part < PART_COUNT; part++) {
        if (c->added & 1u << part && *c->parts[part])
            sq_text_printf(&text, "_%s", c->parts[part]);
    }
    c->name = text.failed ? NULL : sq_arena_strdup(b->arena, sq_text_string(&text));
    return c->name ? 0 : sq_error_memory(err, text.length);
}

/* A percentile or a probability is one of several by its nature: the plain name would hide which. */
static bool may_be_plain(const struct sq_key *key)
{
    return key->kind != SQ_KIND_PERCENTILE && key->kind != SQ_KIND_PROBABILITY;
}

static int step_type_rank(const char *step_type)
{
    return strcmp(step_type, "instant") == 0 ? 0 : 1;
}

/* By base name; of one, the variable first that is to keep it. Groups are in the order of their keys. */
static int compare_candidates(const void *a, const void *b, void *builder)
{
    const struct sq_builder *build = builder;
    const struct sq_draft *x = &build->drafts[((const struct candidate *)a)->draft],
                          *y = &build->drafts[((const struct candidate *)b)->draft];
    const struct sq_key *p = &build->groups[x->group].key, *q = &build->groups[y->group].key;
    int order = strcmp(x->base_name, y->base_name);
    if (order)
        return order;
    if (may_be_plain(p) != may_be_plain(q))
        return may_be_plain(p) ? -1 : 1;
    if (x->field_count != y->field_count)
        return x->field_count > y->field_count ? -1 : 1;
    order = step_type_rank(p->step_type) - step_type_rank(q->step_type);
    order = order ? order : (int)p->kind - (int)q->kind;
    unsigned left = build->points[p->grid].number, right = build->points[q->grid].number;
    order = order ? order : (left > right) - (left < right);
    order = order ? order : (x->group > y->group) - (x->group < y->group);
    for (int mark = 0; !order && mark < SQ_MARK_COUNT; mark++)
        order = (x->marks[mark] > y->marks[mark]) - (x->marks[mark] < y->marks[mark]);
    return order;
}

static int compare_names(const void *a, const void *b)
{
    const struct candidate *x = ((const struct by_name *)a)->candidate, *y = ((const struct by_name *)b)->candidate;
    int order = strcmp(x->name, y->name);
    return order ? order : x < y ? -1 : x > y;
}

/* The first part that not all of the namesakes have added and that is not the same for all; PART_COUNT: none. */
static enum part next_part(const struct by_name *same, size_t count)
{
    for (enum part part = 0; part < PART_COUNT; part++) {
        bool differs = false, added = true;
        for (size_t i = 0; i < count; i++) {
            differs |= strcmp(same[i].candidate->parts[part], same[0].candidate->parts[part]) != 0;
            added &= (same[i].candidate->added >> part & 1) != 0;
        }
        if (differs && !added)
            return part;
    }
    return PART_COUNT;
}

/* Those of `all`, sorted by name, that share one: add what sets them apart, or count them where nothing does. *any: something changed. */
static int part_namesakes(struct sq_builder *b, struct by_name *all, size_t count, bool *any, struct squall_error *err)
{
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && strcmp(all[end].candidate->name, all[i].candidate->name) == 0; end++)
            ;
        if (end - i == 1)
            continue;
        enum part part = next_part(all + i, end - i);
        *any = true;
        for (size_t k = i; k < end; k++) {
            all[k].candidate->added |= part < PART_COUNT ? 1u << part : 0;
            if (part < PART_COUNT)
                SQ_TRY(make_name(b, all[k].candidate, err));
        }
        for (size_t k = i + 1; part == PART_COUNT && k < end; k++) {
            SQ_CLEANUP_FREE char *numbered = sq_format("%s_%zu", all[k].candidate->name, k - i + 1);
            all[k].candidate->name = numbered ? sq_arena_strdup(b->arena, numbered) : NULL;
            if (!all[k].candidate->name)
                return sq_error_memory(err, 0);
        }
    }
    return 0;
}

/* Candidates of one base name, the one that may keep it first. */
static int name_family(struct sq_builder *b, struct candidate *family, size_t count, struct squall_error *err)
{
    bool has_plain = count == 1 || may_be_plain(&b->groups[b->drafts[family[0].draft].group].key);
    SQ_CLEANUP_FREE struct by_name *by_name = sq_alloc(count, sizeof *by_name);
    if (!by_name)
        return sq_error_memory(err, count * sizeof *by_name);
    for (size_t i = 0; i < count; i++) {
        SQ_TRY(make_parts(b, &family[i], err));
        for (enum part part = 0; has_plain && i > 0 && part < PART_COUNT; part++) {
            /* a threshold comes in when namesakes need it */
            if (part != PART_THRESHOLD && strcmp(family[i].parts[part], family[0].parts[part]) != 0)
                family[i].added |= 1u << part;
        }
        if (!has_plain)
            family[i].added = 1u << PART_KIND;
        SQ_TRY(make_name(b, &family[i], err));
        by_name[i].candidate = &family[i];
    }
    for (bool any = true; any;) {
        any = false;
        qsort(by_name, count, sizeof *by_name, compare_names);
        SQ_TRY(part_namesakes(b, by_name, count, &any, err));
    }
    return 0;
}

static bool is_reserved(const char *name)
{
    for (size_t i = 0; i < sizeof RESERVED / sizeof *RESERVED; i++) {
        if (strcmp(RESERVED[i], name) == 0)
            return true;
    }
    return strcmp(sq_grib_level_attributes(name)->long_name, "level") != 0;
}

static int find_base_names(struct sq_builder *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->draft_count; i++) {
        struct sq_draft *draft = &b->drafts[i];
        const char *name = b->index->names[draft->product].cf_var_name;
        if (is_reserved(name)) {
            SQ_CLEANUP_FREE char *other = sq_format("%s_field", name);
            name = other ? sq_arena_strdup(b->arena, other) : NULL;
            if (!name)
                return sq_error_memory(err, 0);
        }
        draft->base_name = name;
    }
    return 0;
}

/* Families are named each for itself; where one of a family now has the name of another's, both say more. */
static int part_families(struct sq_builder *b, struct candidate *candidates, struct squall_error *err)
{
    size_t count = b->draft_count;
    SQ_CLEANUP_FREE struct by_name *by_name = sq_alloc(count, sizeof *by_name);
    if (!by_name)
        return sq_error_memory(err, count * sizeof *by_name);
    for (size_t i = 0; i < count; i++)
        by_name[i].candidate = &candidates[i];
    for (bool any = true; any;) {
        any = false;
        qsort(by_name, count, sizeof *by_name, compare_names);
        SQ_TRY(part_namesakes(b, by_name, count, &any, err));
    }
    return 0;
}

/* Tell of each family that is more than one variable. */
static int tell_family(struct sq_builder *b, const struct candidate *family, size_t count, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text names = SQ_TEXT_INIT;
    size_t listed = 0;
    for (; listed < count && names.length < 300; listed++)
        sq_text_printf(&names, "%s%s", listed ? ", " : "", family[listed].name);
    if (names.failed)
        return sq_error_memory(err, names.length);
    return sq_cube_note(b, false, err, "%s is %zu variables: %s%s", b->drafts[family[0].draft].base_name, count, sq_text_string(&names),
                        listed < count ? ", …" : "");
}

static int compare_drafts(const void *a, const void *b)
{
    return strcmp(((const struct sq_draft *)a)->name, ((const struct sq_draft *)b)->name);
}

/* Rows of drafts in the order of names, which is the order of the store's arrays. */
static int sort_drafts(struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_FREE uint32_t *row = sq_alloc(b->draft_count, sizeof *row);
    if (!row)
        return sq_error_memory(err, b->draft_count * sizeof *row);
    for (size_t i = 0; i < b->draft_count; i++)
        b->drafts[i].cube_row = (uint32_t)i;
    qsort(b->drafts, b->draft_count, sizeof *b->drafts, compare_drafts);
    for (size_t i = 0; i < b->draft_count; i++) {
        row[b->drafts[i].cube_row] = (uint32_t)i;
        b->drafts[i].cube_row = UINT32_MAX;
    }
    for (size_t i = 0; i < b->index->field_count; i++) {
        if (b->variable_of[i] != UINT32_MAX)
            b->variable_of[i] = row[b->variable_of[i]];
    }
    return 0;
}

/* How many candidates from the first on have its base name. */
static size_t family_count(const struct sq_builder *b, const struct candidate *candidates, size_t first)
{
    const char *base = b->drafts[candidates[first].draft].base_name;
    size_t end = first + 1;
    while (end < b->draft_count && strcmp(b->drafts[candidates[end].draft].base_name, base) == 0)
        end++;
    return end - first;
}

int sq_cube_name_variables(struct sq_builder *b, struct squall_error *err)
{
    size_t count = b->draft_count;
    SQ_CLEANUP_FREE struct candidate *candidates = sq_alloc_zero(count, sizeof *candidates);
    if (!candidates)
        return sq_error_memory(err, count * sizeof *candidates);
    SQ_TRY(find_base_names(b, err));
    for (size_t i = 0; i < count; i++)
        candidates[i].draft = (uint32_t)i;
    qsort_r(candidates, count, sizeof *candidates, compare_candidates, b);
    for (size_t i = 0; i < count; i += family_count(b, candidates, i))
        SQ_TRY(name_family(b, candidates + i, family_count(b, candidates, i), err));
    SQ_TRY(part_families(b, candidates, err));
    for (size_t i = 0, told = 0; i < count && told < FAMILY_LINE_LIMIT; i += family_count(b, candidates, i)) {
        if (family_count(b, candidates, i) == 1)
            continue;
        told++;
        SQ_TRY(tell_family(b, candidates + i, family_count(b, candidates, i), err));
    }
    for (size_t i = 0; i < count; i++)
        b->drafts[candidates[i].draft].name = candidates[i].name;
    return sort_drafts(b, err);
}
