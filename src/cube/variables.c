/*
 * Which fields make one variable. Fields of one key (parameter, level type, step type, kind, grid) are a group. A group is one variable unless
 * its fields would meet: two intervals that end at the same step, or two definitions in one place. Then what keeps them apart becomes a mark of the variable.
 */
#include "base/error_internal.h"
#include "base/hash.h"
#include "base/memory.h"
#include "cube/build.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_ints(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_keys(const struct sq_key *a, const struct sq_key *b)
{
    int order = compare_ints(a->param_id, b->param_id);
    order = order ? order : strcmp(a->parameter, b->parameter);
    order = order ? order : compare_ints(a->kind, b->kind);
    order = order ? order : strcmp(a->step_type, b->step_type);
    order = order ? order : compare_ints(a->statistic, b->statistic);
    order = order ? order : strcmp(a->level_type, b->level_type);
    order = order ? order : compare_ints(a->derived, b->derived);
    order = order ? order : compare_ints(a->percentile, b->percentile);
    order = order ? order : compare_ints(a->probability, b->probability);
    order = order ? order : sq_compare_doubles(a->lower, b->lower);
    order = order ? order : sq_compare_doubles(a->upper, b->upper);
    return order ? order : compare_ints(a->grid, b->grid);
}

static enum sq_kind kind_of(const struct sq_grib_product *product)
{
    if (product->probability_type >= 0)
        return SQ_KIND_PROBABILITY;
    if (product->percentile >= 0)
        return SQ_KIND_PERCENTILE;
    if (product->derived_forecast >= 0)
        return SQ_KIND_DERIVED;
    return product->ensemble_kind >= 0 ? SQ_KIND_ENSEMBLE : SQ_KIND_DETERMINISTIC;
}

/* A level type without a name is called by its surfaces, so that two of them stay apart. */
static int level_type_of(struct sq_builder *b, uint32_t product, const char **ret, struct squall_error *err)
{
    const char *name = b->index->names[product].level_type;
    const struct sq_grib_product *p = &b->index->products[product];
    if (name && strcmp(name, "unknown") != 0) {
        *ret = name;
        return 0;
    }
    char text[32];
    if (p->second.type == 255)
        snprintf(text, sizeof text, "surface%u", p->first.type);
    else
        snprintf(text, sizeof text, "surface%u_%u", p->first.type, p->second.type);
    *ret = sq_arena_strdup(b->arena, text);
    return *ret ? 0 : sq_error_memory(err, sizeof text);
}

static int key_of(struct sq_builder *b, uint32_t product, uint32_t grid, struct sq_key *ret, struct squall_error *err)
{
    const struct sq_grib_product *p = &b->index->products[product];
    const struct sq_grib_names *names = &b->index->names[product];
    enum sq_kind kind = kind_of(p);
    struct sq_key key = {
        .param_id = names->param_id,
        .parameter = names->param_id ? "" : names->short_name,
        .step_type = sq_grib_step_type_name(p->step_type),
        .statistic = p->step_type == SQ_GRIB_OTHER_STATISTIC ? p->statistical_process : -1,
        .kind = kind,
        .derived = kind == SQ_KIND_DERIVED ? p->derived_forecast : -1,
        .percentile = kind == SQ_KIND_PERCENTILE ? p->percentile : -1,
        .probability = kind == SQ_KIND_PROBABILITY ? p->probability_type : -1,
        .lower = kind == SQ_KIND_PROBABILITY ? p->lower_limit : NAN,
        .upper = kind == SQ_KIND_PROBABILITY ? p->upper_limit : NAN,
        .grid = grid,
    };
    SQ_TRY(level_type_of(b, product, &key.level_type, err));
    *ret = key;
    return 0;
}

/*
 * What of a definition is not in its key and may still tell two fields apart. Versions of tables do not: they change with the centre's software. Nor
 * do most local sections, which hold time stamps; ECMWF's hold MARS' keys.
 */
static struct sq_hash definition_id(const struct sq_grib_product *p)
{
    enum { PDS_BYTES_OF_WMO = 28, CENTRE_ECMWF = 98, VERSIONS_AT = 9, VERSIONS_END = 11 };
    const struct sq_grib_raw *raw = &p->raw;
    uint32_t section1_bytes = raw->section1 ? raw->section1_bytes : 0;
    uint32_t section2_bytes = raw->section2 && p->centre == CENTRE_ECMWF ? raw->section2_bytes : 0;
    uint8_t head[2] = {raw->edition, raw->discipline};
    struct sq_hash id = sq_hash_bytes(head, sizeof head);
    if (raw->edition == 1) {
        bool whole = p->centre == CENTRE_ECMWF || section1_bytes < PDS_BYTES_OF_WMO;
        id = sq_hash_more(id, raw->section1, whole ? section1_bytes : PDS_BYTES_OF_WMO);
    } else if (section1_bytes > VERSIONS_END) {
        id = sq_hash_more(id, raw->section1, VERSIONS_AT);
        id = sq_hash_more(id, raw->section1 + VERSIONS_END, section1_bytes - VERSIONS_END);
    }
    id = sq_hash_more(id, raw->section2, section2_bytes);
    return sq_hash_more(id, raw->section4, raw->section4 ? raw->section4_bytes : 0);
}

static int64_t centre_mark(const struct sq_grib_product *p)
{
    return (int64_t)p->centre << 16 | p->subcentre;
}

static int64_t interval_mark(const struct sq_group *group, const struct sq_grib_times *times)
{
    if (times->step_begin_s == 0)
        return SQ_INTERVAL_FROM_START;
    int64_t length_s = times->step_end_s - times->step_begin_s;
    return !group->by_length ? SQ_INTERVAL_LATER : length_s < 0 ? 0 : length_s;
}

/* words: 1 + SQ_MARK_COUNT */
static void variable_words(const struct sq_builder *b, uint32_t group_row, size_t field, int64_t *words)
{
    const struct sq_group *group = &b->groups[group_row];
    const struct sq_grib_field *f = &b->index->fields[field];
    const struct sq_grib_product *p = &b->index->products[f->product];
    words[0] = group_row;
    for (int mark = 0; mark < SQ_MARK_COUNT; mark++)
        words[1 + mark] = SQ_MARK_ANY;
    if (!group->needed)
        return;
    if (group->needed & 1u << SQ_MARK_INTERVAL)
        words[1 + SQ_MARK_INTERVAL] = interval_mark(group, &f->times);
    if (group->needed & 1u << SQ_MARK_ENSEMBLE)
        words[1 + SQ_MARK_ENSEMBLE] = p->ensemble_kind;
    if (group->needed & 1u << SQ_MARK_PROCESS)
        words[1 + SQ_MARK_PROCESS] = p->generating_process;
    if (group->needed & 1u << SQ_MARK_CENTRE)
        words[1 + SQ_MARK_CENTRE] = centre_mark(p);
    if (group->needed & 1u << SQ_MARK_PRODUCT_HIGH) {
        struct sq_hash id = definition_id(p);
        words[1 + SQ_MARK_PRODUCT_HIGH] = (int64_t)id.high;
        words[1 + SQ_MARK_PRODUCT_LOW] = (int64_t)id.low;
    }
}

/* Each open field's cell. */
static int find_cells(struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_INTERN struct sq_intern table = sq_intern_make(2);
    size_t capacity = 0;
    for (size_t i = 0; i < b->index->field_count; i++) {
        const struct sq_grib_field *f = &b->index->fields[i];
        if (b->fate[i] != SQ_FATE_OPEN)
            continue;
        uint32_t grid = b->points_of[f->grid];
        int64_t words[2] = {f->product, grid};
        SQ_TRY(sq_intern_add(&table, words, &b->cell_of[i], err));
        if (table.count > b->cell_count) {
            SQ_TRY(SQ_GROW(b->cells, capacity, table.count, err));
            struct sq_cell *cell = &b->cells[b->cell_count];
            *cell = (struct sq_cell){.product = f->product};
            SQ_TRY(key_of(b, f->product, grid, &cell->key, err));
            b->cell_count++;
        }
        b->points[grid].field_count++;
    }
    return 0;
}

static int compare_groups(const void *a, const void *b)
{
    return compare_keys(&((const struct sq_group *)a)->key, &((const struct sq_group *)b)->key);
}

/* Sort groups by key, one each. */
void sq_cube_settle_groups(struct sq_builder *b)
{
    size_t kept = 0;
    qsort(b->groups, b->group_count, sizeof *b->groups, compare_groups);
    for (size_t i = 0; i < b->group_count; i++) {
        if (kept && compare_groups(&b->groups[kept - 1], &b->groups[i]) == 0) {
            b->groups[kept - 1].needed |= b->groups[i].needed;
            b->groups[kept - 1].by_length |= b->groups[i].by_length;
        } else {
            b->groups[kept++] = b->groups[i];
        }
    }
    b->group_count = kept;
}

uint32_t sq_cube_group_of(const struct sq_builder *b, const struct sq_key *key)
{
    struct sq_group wanted = {.key = *key};
    const struct sq_group *found = b->group_count ? bsearch(&wanted, b->groups, b->group_count, sizeof wanted, compare_groups) : NULL;
    return found ? (uint32_t)(found - b->groups) : UINT32_MAX;
}

static int find_groups(struct sq_builder *b, struct squall_error *err)
{
    if (!b->options->schema) {
        b->groups = sq_alloc_zero(b->cell_count, sizeof *b->groups);
        if (!b->groups)
            return sq_error_memory(err, b->cell_count * sizeof *b->groups);
        for (size_t i = 0; i < b->cell_count; i++)
            b->groups[i].key = b->cells[i].key;
        b->group_count = b->cell_count;
        sq_cube_settle_groups(b);
    }
    for (size_t i = 0; i < b->cell_count; i++)
        b->cells[i].group = sq_cube_group_of(b, &b->cells[i].key);
    return 0;
}

/*
 * A variable has one interval for each step, whatever the run: groups where two end together are told apart by whether the interval begins at
 * the run's start, and where the others still differ, by length.
 */
static int find_intervals(struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_INTERN struct sq_intern table = sq_intern_make(3); /* group, end, begin */
    for (size_t i = 0; i < b->index->field_count; i++) {
        const struct sq_grib_times *times = &b->index->fields[i].times;
        uint32_t number;
        if (b->fate[i] == SQ_FATE_OPEN) {
            int64_t words[3] = {b->cells[b->cell_of[i]].group, times->step_end_s, times->step_begin_s};
            SQ_TRY(sq_intern_add(&table, words, &number, err));
        }
    }
    SQ_CLEANUP_FREE int64_t *triples = NULL;
    SQ_TRY(sq_intern_sorted(&table, &triples, err));
    for (size_t i = 0, end; i < table.count; i = end) {
        const int64_t *first = triples + 3 * i;
        size_t later = first[2] != 0;
        for (end = i + 1; end < table.count && memcmp(triples + 3 * end, first, 2 * sizeof *first) == 0; end++)
            later += triples[3 * end + 2] != 0;
        if (end - i > 1)
            b->groups[first[0]].needed |= 1u << SQ_MARK_INTERVAL;
        b->groups[first[0]].by_length |= later > 1;
    }
    return 0;
}

/* variable_of of the open fields; new rows of the table where there is no schema. */
static int assign(struct sq_builder *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->index->field_count; i++) {
        b->variable_of[i] = UINT32_MAX;
        uint32_t group = b->fate[i] == SQ_FATE_OPEN ? b->cells[b->cell_of[i]].group : UINT32_MAX;
        if (group == UINT32_MAX)
            continue;
        int64_t words[1 + SQ_MARK_COUNT];
        variable_words(b, group, i, words);
        if (b->options->schema)
            b->variable_of[i] = sq_intern_find(&b->variable_table, words);
        else
            SQ_TRY(sq_intern_add(&b->variable_table, words, &b->variable_of[i], err));
    }
    return 0;
}

static int make_drafts(struct sq_builder *b, struct squall_error *err)
{
    sq_free(b->drafts);
    b->draft_count = 0;
    b->drafts = sq_alloc_zero(b->variable_table.count, sizeof *b->drafts);
    if (!b->drafts)
        return sq_error_memory(err, b->variable_table.count * sizeof *b->drafts);
    b->draft_count = b->variable_table.count;
    for (size_t i = 0; i < b->draft_count; i++) {
        const int64_t *words = sq_intern_key(&b->variable_table, (uint32_t)i);
        b->drafts[i].group = (uint32_t)words[0];
        memcpy(b->drafts[i].marks, words + 1, sizeof b->drafts[i].marks);
        b->drafts[i].product = b->drafts[i].cube_row = b->drafts[i].bounds = UINT32_MAX;
        b->drafts[i].stored = true;
    }
    return 0;
}

/* How many fields of a variable are of one product. */
struct share {
    uint32_t draft, product;
    size_t field_count, same_names; /* the latter with all products of the variable that have these names */
};

/* The shorter first, which is the more general where the names of several intervals meet: "mx2t", "mx2t6". */
static int compare_texts(const char *a, const char *b)
{
    size_t left = a ? strlen(a) : 0, right = b ? strlen(b) : 0;
    return left != right ? (left < right ? -1 : 1) : left ? strcmp(a, b) : 0;
}

static int compare_product_names(const struct sq_grib_names *a, const struct sq_grib_names *b)
{
    int order = compare_texts(a->cf_var_name, b->cf_var_name);
    order = order ? order : compare_texts(a->short_name, b->short_name);
    order = order ? order : compare_texts(a->name, b->name);
    order = order ? order : compare_texts(a->units, b->units);
    return order ? order : compare_texts(a->cf_name, b->cf_name);
}

/* By variable, then names, then the product that speaks for those of its names. */
static int compare_shares(const void *a, const void *b, void *builder)
{
    const struct share *x = a, *y = b;
    const struct sq_grib_index *index = ((const struct sq_builder *)builder)->index;
    if (x->draft != y->draft)
        return x->draft < y->draft ? -1 : 1;
    int order = compare_product_names(&index->names[x->product], &index->names[y->product]);
    if (order)
        return order;
    if (x->field_count != y->field_count)
        return x->field_count > y->field_count ? -1 : 1;
    struct sq_hash left = definition_id(&index->products[x->product]), right = definition_id(&index->products[y->product]);
    if (left.high != right.high)
        return left.high < right.high ? -1 : 1;
    return left.low < right.low ? -1 : left.low > right.low;
}

static int count_shares(const struct sq_builder *b, struct share **ret, size_t *ret_count, struct squall_error *err)
{
    SQ_CLEANUP_INTERN struct sq_intern table = sq_intern_make(2);
    SQ_CLEANUP_FREE struct share *shares = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < b->index->field_count; i++) {
        uint32_t draft = b->variable_of[i], product = b->index->fields[i].product, row, known = table.count;
        if (b->fate[i] != SQ_FATE_OPEN || draft == UINT32_MAX)
            continue;
        SQ_TRY(sq_intern_add(&table, (const int64_t[]){draft, product}, &row, err));
        SQ_TRY(SQ_GROW(shares, capacity, table.count, err));
        if (row == known)
            shares[row] = (struct share){.draft = draft, .product = product};
        shares[row].field_count++;
    }
    *ret = shares;
    *ret_count = table.count;
    shares = NULL;
    return 0;
}

/*
 * The product that a variable is named and described by: of the names that its products have, those of most fields; of equally common ones the
 * shorter, then the first in the alphabet. So a variable is called alike whichever of its files comes first.
 */
static int choose_products(struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_FREE struct share *shares = NULL;
    size_t count = 0;
    SQ_TRY(count_shares(b, &shares, &count, err));
    if (!shares)
        return 0;
    qsort_r(shares, count, sizeof *shares, compare_shares, b);
    const struct share *best = NULL;
    for (size_t i = 0, end; i < count; i = end) {
        const struct sq_grib_names *names = &b->index->names[shares[i].product];
        for (end = i; end < count && shares[end].draft == shares[i].draft &&
                      compare_product_names(&b->index->names[shares[end].product], names) == 0;
             end++)
            shares[i].same_names += shares[end].field_count;
        if (!best || best->draft != shares[i].draft || shares[i].same_names > best->same_names)
            best = &shares[i];
        b->drafts[best->draft].product = best->product;
    }
    return 0;
}

/* What the fields say of their variables. */
static int describe_drafts(struct sq_builder *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->index->field_count; i++) {
        const struct sq_grib_field *f = &b->index->fields[i];
        if (b->fate[i] != SQ_FATE_OPEN || b->variable_of[i] == UINT32_MAX)
            continue;
        struct sq_draft *draft = &b->drafts[b->variable_of[i]];
        int64_t length_s = f->times.step_end_s - f->times.step_begin_s;
        draft->field_count++;
        if (length_s > draft->longest_s)
            draft->longest_s = length_s;
        if (!draft->known)
            draft->is_float64 |= b->index->packings[f->packing].is_float64;
    }
    return choose_products(b, err);
}

/* The first mark that tells two definitions of one group apart; SQ_MARK_COUNT: none. */
static enum sq_mark what_differs(const struct sq_grib_product *a, const struct sq_grib_product *b)
{
    if (a->ensemble_kind != b->ensemble_kind)
        return SQ_MARK_ENSEMBLE;
    if (a->generating_process != b->generating_process)
        return SQ_MARK_PROCESS;
    if (centre_mark(a) != centre_mark(b))
        return SQ_MARK_CENTRE;
    struct sq_hash x = definition_id(a), y = definition_id(b);
    return x.high != y.high || x.low != y.low ? SQ_MARK_PRODUCT_HIGH : SQ_MARK_COUNT;
}

/* Look for fields of different definitions in one place, and note in their groups what keeps them apart. */
static int find_meetings(struct sq_builder *b, bool *ret_any, struct squall_error *err)
{
    SQ_CLEANUP_FREE struct sq_spot *spots = NULL;
    size_t count = 0;
    bool any = false;
    SQ_TRY(sq_cube_find_axes(b, err));
    SQ_TRY(sq_cube_find_spots(b, &spots, &count, err));
    for (size_t i = 1; i < count; i++) {
        if (spots[i].place != spots[i - 1].place)
            continue;
        uint32_t before = b->index->fields[spots[i - 1].field].product, here = b->index->fields[spots[i].field].product;
        enum sq_mark mark = before == here ? SQ_MARK_COUNT : what_differs(&b->index->products[before], &b->index->products[here]);
        if (mark == SQ_MARK_COUNT)
            continue;
        unsigned *needed = &b->groups[b->drafts[b->variable_of[spots[i].field]].group].needed;
        any |= !(*needed & 1u << mark);
        *needed |= 1u << mark;
    }
    *ret_any = any;
    return 0;
}

int sq_cube_find_variables(struct sq_builder *b, struct squall_error *err)
{
    SQ_TRY(find_cells(b, err));
    SQ_TRY(find_groups(b, err));
    if (!b->options->schema)
        SQ_TRY(find_intervals(b, err));
    for (bool meeting = !b->options->schema; meeting;) {
        sq_intern_done(&b->variable_table);
        SQ_TRY(assign(b, err));
        SQ_TRY(make_drafts(b, err));
        SQ_TRY(find_meetings(b, &meeting, err));
    }
    if (b->options->schema)
        SQ_TRY(assign(b, err));
    return describe_drafts(b, err);
}

int sq_cube_know_variable(struct sq_builder *b, uint32_t draft, struct squall_error *err)
{
    int64_t words[1 + SQ_MARK_COUNT] = {b->drafts[draft].group};
    uint32_t row;
    memcpy(words + 1, b->drafts[draft].marks, sizeof b->drafts[draft].marks);
    SQ_TRY(sq_intern_add(&b->variable_table, words, &row, err));
    return row == draft ? 0 : sq_error(err, SQUALL_ECORRUPT, "the store's schema names one variable twice");
}
