/*
 * Fields parted into product and times. A product's key is one run of bytes: a head of fixed size, then the sections with the times blanked; so
 * telling products apart is one comparison, and everything else about a product is computed once a row, from its key.
 */
#include "format/grib/product.h"
#include "base/error_internal.h"
#include "format/grib/product_parts.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct key_head {
    uint8_t edition, discipline, undated, grid_reference;
    uint32_t section1_bytes, section2_bytes, section4_bytes;
};

/* Grid template 3.101 (unstructured): which of its grid's kinds of points, octet 19. */
static uint8_t grid_reference_of(const struct sq_grib_found *found)
{
    const uint8_t *s = found->section[3];
    bool unstructured = found->frame.edition == 2 && s && found->frame.section[3].size_bytes >= 19 && s[12] == 0 && s[13] == 101;
    return unstructured ? s[18] : 0;
}

static uint32_t size_of(const struct sq_grib_found *found, unsigned number)
{
    return found->section[number] ? (uint32_t)found->frame.section[number].size_bytes : 0;
}

int sq_grib_product_part(const struct sq_grib_found *found, struct sq_text *key, struct sq_grib_times *ret, struct squall_error *err)
{
    struct key_head head = {
        .edition = found->frame.edition,
        .discipline = found->frame.discipline,
        .grid_reference = grid_reference_of(found),
        .section1_bytes = size_of(found, 1),
        .section2_bytes = size_of(found, 2),
        .section4_bytes = size_of(found, 4),
    };
    sq_text_clear(key);
    sq_text_add_bytes(key, &head, sizeof head);
    sq_text_add_bytes(key, found->section[1], head.section1_bytes);
    sq_text_add_bytes(key, found->section[2], head.section2_bytes);
    sq_text_add_bytes(key, found->section[4], head.section4_bytes);
    if (key->failed)
        return sq_error_memory(err, sizeof head + head.section1_bytes + head.section2_bytes + head.section4_bytes);

    uint8_t *section1 = (uint8_t *)key->data + sizeof head;
    uint8_t *section2 = section1 + head.section1_bytes, *section4 = section2 + head.section2_bytes;
    bool dated = false;
    if (head.edition == 1)
        SQ_TRY(sq_grib1_part(found, section1, ret, &dated, err));
    else
        SQ_TRY(sq_grib2_part(found, section1, head.section2_bytes ? section2 : NULL, section4, ret, &dated, err));
    head.undated = !dated;
    memcpy(key->data, &head, sizeof head);
    return 0;
}

/* The sections in a key; pointers into it. */
static struct sq_grib_raw raw_at(const void *key)
{
    struct key_head head;
    memcpy(&head, key, sizeof head);
    const uint8_t *section1 = (const uint8_t *)key + sizeof head;
    const uint8_t *section2 = section1 + head.section1_bytes, *section4 = section2 + head.section2_bytes;
    return (struct sq_grib_raw){
        .edition = head.edition,
        .discipline = head.discipline,
        .undated = head.undated,
        .grid_reference = head.grid_reference,
        .section1 = section1,
        .section2 = head.section2_bytes ? section2 : NULL,
        .section4 = head.section4_bytes ? section4 : NULL,
        .section1_bytes = head.section1_bytes,
        .section2_bytes = head.section2_bytes,
        .section4_bytes = head.section4_bytes,
    };
}

void sq_grib_product_of(const void *key, struct sq_arena *arena, struct sq_grib_product *ret)
{
    const struct sq_grib_surface none = {.type = 255, .scale = -127};
    struct sq_grib_product p = {
        .raw = raw_at(key),
        .generating_process = 255,
        .step_type = SQ_GRIB_INSTANT,
        .statistical_process = 255,
        .first = none,
        .second = none,
        .ensemble_kind = -1,
        .derived_forecast = -1,
        .probability_type = -1,
        .lower_limit = NAN,
        .upper_limit = NAN,
        .percentile = -1,
    };
    if (p.raw.edition == 1)
        sq_grib1_product_of(arena, &p);
    else
        sq_grib2_product_of(arena, &p);
    if (p.raw.undated && !p.unsupported)
        p.unsupported = "its date, or its unit of time, does not exist";
    *ret = p;
}

const char *sq_grib_numbered(struct sq_arena *arena, const char *text, unsigned number)
{
    char line[120];
    snprintf(line, sizeof line, "%s: %u", text, number);
    const char *copy = arena ? sq_arena_strdup(arena, line) : NULL;
    return copy ? copy : text;
}

const char *sq_grib_step_type_name(enum sq_grib_step_type type)
{
    static const char *const NAMES[] = {
        [SQ_GRIB_INSTANT] = "instant", [SQ_GRIB_AVG] = "avg",
        [SQ_GRIB_ACCUM] = "accum",     [SQ_GRIB_MAX] = "max",
        [SQ_GRIB_MIN] = "min",         [SQ_GRIB_DIFF] = "diff",
        [SQ_GRIB_RMS] = "rms",         [SQ_GRIB_SD] = "sd",
        [SQ_GRIB_COV] = "cov",         [SQ_GRIB_RATIO] = "ratio",
        [SQ_GRIB_SDIFF] = "sdiff",     [SQ_GRIB_STDANOM] = "stdanom",
        [SQ_GRIB_SUM] = "sum",         [SQ_GRIB_SEVERITY] = "severity",
        [SQ_GRIB_MODE] = "mode",       [SQ_GRIB_AVGD] = "avgd",
        [SQ_GRIB_AVGFC] = "avgfc",     [SQ_GRIB_AVGUA] = "avgua",
        [SQ_GRIB_AVGIA] = "avgia",     [SQ_GRIB_AVGAS] = "avgas",
        [SQ_GRIB_AVGAD] = "avgad",     [SQ_GRIB_AVGID] = "avgid",
        [SQ_GRIB_VARAS] = "varas",     [SQ_GRIB_VARAD] = "varad",
        [SQ_GRIB_VARINS] = "varins",   [SQ_GRIB_OTHER_STATISTIC] = "statistic",
    };
    return NAMES[type];
}
