/*
 * Names by ecCodes' rules. A text is looked for in a chain of links; a link is two folders of concepts read as one list (the
 * centre's own and WMO's), and the first link that has an entry gives the text. Each column goes its own way: a centre's own
 * short name may stand beside ECMWF's CF name.
 */
#include "format/grib/names.h"

#include "format/grib/keys.h"
#include "format/grib/names_tables.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LINK_FOLDERS = 2, CHAIN_LINKS = 3 };

/* Folders of concepts in ecCodes' order; SQ_GRIB_NO_LIST: none. */
struct link {
    uint8_t list[LINK_FOLDERS];
};

struct chain {
    unsigned variant;               /* MTG2Switch */
    unsigned links_for_cf_var_name; /* the first so many */
    struct link link[CHAIN_LINKS];
};

static unsigned condition_count(unsigned set)
{
    return sq_grib_condition_sets[set + 1] - sq_grib_condition_sets[set];
}

static bool holds(unsigned set, const struct sq_grib_keys *keys)
{
    const struct sq_grib_condition *c = sq_grib_conditions + sq_grib_condition_sets[set];
    const struct sq_grib_condition *end = sq_grib_conditions + sq_grib_condition_sets[set + 1];
    for (; c < end; c++)
        if (!keys->defined[c->key] || keys->value[c->key] != c->value)
            return false;
    return true;
}

/* --- small concepts: typeOfLevel, stepType, the switch --- */

struct choice {
    int conditions; /* -1: no entry so far */
    uint32_t value;
};

static void choose_among(struct sq_grib_range range, const struct sq_grib_keys *keys, struct choice *best)
{
    for (unsigned i = range.first; i < range.first + range.count; i++) {
        const struct sq_grib_choice *entry = &sq_grib_choices[i];
        int count = (int)condition_count(entry->conditions);
        if (count >= best->conditions && holds(entry->conditions, keys))
            *best = (struct choice){count, entry->value};
    }
}

static uint32_t choose(struct link link, unsigned concept, const struct sq_grib_keys *keys, uint32_t otherwise)
{
    struct choice best = {-1, otherwise};
    for (unsigned f = 0; f < LINK_FOLDERS; f++)
        if (link.list[f] != SQ_GRIB_NO_LIST)
            choose_among(sq_grib_lists[link.list[f]].choices[concept], keys, &best);
    return best.value;
}

/* --- parameters --- */

struct answer {
    struct choice column[SQ_GRIB_COLUMN_COUNT];
};

static const struct answer no_answer = {{{-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}}};

static uint32_t index_of(unsigned edition, const struct sq_grib_keys *keys)
{
    const int64_t *v = keys->value;
    if (edition == 1)
        return (uint32_t)(v[SQ_GRIB_KEY_table2Version] << 8 | v[SQ_GRIB_KEY_indicatorOfParameter]);
    return (uint32_t)(v[SQ_GRIB_KEY_discipline] << 16 | v[SQ_GRIB_KEY_parameterCategory] << 8 | v[SQ_GRIB_KEY_parameterNumber]);
}

static size_t first_row(struct sq_grib_range rows, uint32_t index)
{
    size_t low = rows.first, high = (size_t)rows.first + rows.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (sq_grib_rows[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void search_list(const struct sq_grib_list *list, uint32_t index, unsigned variant, const struct sq_grib_keys *keys,
                        struct answer *answer)
{
    size_t end = (size_t)list->rows.first + list->rows.count;
    for (size_t i = first_row(list->rows, index); i < end && sq_grib_rows[i].index == index; i++) {
        const struct sq_grib_row *row = &sq_grib_rows[i];
        if (!(row->variants >> variant & 1) || !holds(row->conditions, keys))
            continue;
        int count = (int)condition_count(row->conditions);
        for (unsigned column = 0; column < SQ_GRIB_COLUMN_COUNT; column++) {
            uint32_t value = sq_grib_records[row->record].value[column];
            if (value != SQ_GRIB_SILENT && count >= answer->column[column].conditions)
                answer->column[column] = (struct choice){count, value};
        }
    }
}

static struct answer search(const struct chain *chain, uint32_t index, const struct sq_grib_keys *keys)
{
    struct answer all = no_answer;
    for (unsigned l = 0; l < CHAIN_LINKS; l++) {
        struct answer of_link = no_answer;
        for (unsigned f = 0; f < LINK_FOLDERS; f++)
            if (chain->link[l].list[f] != SQ_GRIB_NO_LIST)
                search_list(&sq_grib_lists[chain->link[l].list[f]], index, chain->variant, keys, &of_link);
        for (unsigned column = 0; column < SQ_GRIB_COLUMN_COUNT; column++)
            if (all.column[column].conditions < 0 && (column != SQ_GRIB_CF_VAR_NAME || l < chain->links_for_cf_var_name))
                all.column[column] = of_link.column[column];
    }
    return all;
}

/* --- which folders count for a product --- */

static uint8_t local_list(unsigned edition, int64_t centre)
{
    for (size_t i = 0; i < sq_grib_local_count; i++)
        if (sq_grib_locals[i].edition == edition && sq_grib_locals[i].centre == centre)
            return sq_grib_locals[i].list;
    return SQ_GRIB_NO_LIST;
}

/* Old and new names (ecCodes' MTG2Switch): MARS data go by the tables version, all others have the new ones. */
static unsigned variant_of(struct link link, const struct sq_grib_keys *keys)
{
    enum { OLD, NEW, NEW_CHEMICALS, CLASS_MC = 19, CLASS_CR = 36 };
    uint32_t usual = NEW;
    if (choose(link, SQ_GRIB2_SWITCH_BY_VERSION, keys, 0)) {
        int64_t class = keys->value[SQ_GRIB_KEY_marsClass];
        if (keys->value[SQ_GRIB_KEY_tablesVersion] <= SQ_GRIB_LAST_BEFORE_SWITCH)
            usual = OLD;
        else if (class == CLASS_MC || class == CLASS_CR)
            usual = NEW_CHEMICALS;
    }
    return choose(link, SQ_GRIB2_SWITCH, keys, usual);
}

static struct chain chain_of_edition1(const struct sq_grib_keys *keys)
{
    uint8_t local = local_list(1, keys->value[SQ_GRIB_KEY_centre]);
    return (struct chain){
        .links_for_cf_var_name = 2,
        .link = {{{local, SQ_GRIB1_MASTER}}, {{SQ_GRIB1_ECMWF, SQ_GRIB1_MASTER}}, {{SQ_GRIB_NO_LIST, SQ_GRIB_NO_LIST}}},
    };
}

static struct chain chain_of_edition2(const struct sq_grib_keys *keys)
{
    struct choice dataset = {-1, 0};
    choose_among(sq_grib_datasets, keys, &dataset);
    struct link own = {{local_list(2, keys->value[SQ_GRIB_KEY_centre]), SQ_GRIB2_MASTER}};
    if (dataset.value)
        own = (struct link){{SQ_GRIB2_MASTER, (uint8_t)dataset.value}};
    return (struct chain){
        .variant = variant_of(own, keys),
        .links_for_cf_var_name = 1,
        .link = {own, {{SQ_GRIB2_ECMWF, SQ_GRIB2_MASTER}}, {{SQ_GRIB2_ECMWF_LEGACY, SQ_GRIB2_MASTER_LEGACY}}},
    };
}

/* --- what the tables lack --- */

/*
 * The Met Office writes wind on its own numbers 192 to 195 (u, v, direction, speed), which no table lists: they are WMO's
 * 2, 3, 0 and 1.
 */
static bool is_met_office_wind(const struct sq_grib_keys *keys)
{
    enum { MET_OFFICE = 74, MOMENTUM = 2 };
    const int64_t *v = keys->value;
    return v[SQ_GRIB_KEY_centre] == MET_OFFICE && v[SQ_GRIB_KEY_discipline] == 0 && v[SQ_GRIB_KEY_parameterCategory] == MOMENTUM &&
           v[SQ_GRIB_KEY_parameterNumber] >= 192 && v[SQ_GRIB_KEY_parameterNumber] <= 195;
}

static struct answer search_met_office_wind(const struct chain *chain, const struct sq_grib_keys *keys)
{
    static const uint8_t wmo_number[] = {2, 3, 0, 1};
    struct sq_grib_keys as_wmo = *keys;
    as_wmo.value[SQ_GRIB_KEY_parameterNumber] = wmo_number[keys->value[SQ_GRIB_KEY_parameterNumber] - 192];
    return search(chain, index_of(2, &as_wmo), &as_wmo);
}

/*
 * A table's name, else the short name, else "p<paramId>" where that begins with a digit or is "~": ecCodes' rule. Other signs become
 * underscores.
 */
static void make_variable_name(const char *from_table, struct sq_grib_names *names)
{
    const char *name = from_table ? from_table : names->short_name;
    if (!from_table && names->param_id > 0 && !isalpha((unsigned char)name[0]))
        snprintf(names->cf_var_name, sizeof names->cf_var_name, "p%d", names->param_id);
    else
        snprintf(names->cf_var_name, sizeof names->cf_var_name, "%s", name);
    for (char *c = names->cf_var_name; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
}

static void name_unknown(const struct sq_grib_product *product, struct sq_grib_names *ret)
{
    if (product->raw.edition == 1)
        snprintf(ret->short_name, sizeof ret->short_name, "param_%u_%u", product->category, product->number);
    else
        snprintf(ret->short_name, sizeof ret->short_name, "param_%u_%u_%u", product->raw.discipline, product->category, product->number);
}

static const char *text_of(const struct answer *answer, enum sq_grib_column column, const char *otherwise)
{
    const struct choice *choice = &answer->column[column];
    return choice->conditions < 0 ? otherwise : sq_grib_texts + choice->value;
}

void sq_grib_names_of(const struct sq_grib_product *product, struct sq_grib_names *ret)
{
    unsigned edition = product->raw.edition;
    struct sq_grib_keys keys;
    sq_grib_keys_read(&product->raw, &keys);
    struct chain chain = edition == 1 ? chain_of_edition1(&keys) : chain_of_edition2(&keys);
    if (edition == 1) {
        keys.value[SQ_GRIB_KEY_stepType] = choose(chain.link[0], SQ_GRIB1_STEP_TYPE, &keys, 0);
        keys.defined[SQ_GRIB_KEY_stepType] = true;
    }

    struct answer answer = search(&chain, index_of(edition, &keys), &keys);
    if (answer.column[SQ_GRIB_SHORT_NAME].conditions < 0 && is_met_office_wind(&keys))
        answer = search_met_office_wind(&chain, &keys);
    *ret = (struct sq_grib_names){
        .param_id = answer.column[SQ_GRIB_PARAM_ID].conditions < 0 ? 0 : (int32_t)answer.column[SQ_GRIB_PARAM_ID].value,
        .name = text_of(&answer, SQ_GRIB_NAME, "unknown"),
        .units = text_of(&answer, SQ_GRIB_UNITS, "unknown"),
        .cf_name = text_of(&answer, SQ_GRIB_CF_NAME, NULL),
    };
    const char *short_name = text_of(&answer, SQ_GRIB_SHORT_NAME, NULL);
    if (short_name && *short_name)
        snprintf(ret->short_name, sizeof ret->short_name, "%s", short_name);
    else
        name_unknown(product, ret);
    make_variable_name(text_of(&answer, SQ_GRIB_CF_VAR_NAME, NULL), ret);

    unsigned concept = edition == 1 ? SQ_GRIB1_LEVEL_TYPE : SQ_GRIB2_LEVEL_TYPE;
    uint32_t level = choose(chain.link[0], concept, &keys, SQ_GRIB_SILENT);
    if (level == SQ_GRIB_SILENT && edition == 1)
        level = choose(chain.link[1], concept, &keys, SQ_GRIB_SILENT);
    ret->level_type = level == SQ_GRIB_SILENT ? "unknown" : sq_grib_texts + level;
}
