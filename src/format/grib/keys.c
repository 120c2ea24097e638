/*
 * Keys out of section bytes. Sections 1 and 2 and edition 1's PDS have fixed places; section 4 is read by the layout that the
 * generated tables give for its template. Where a list repeats a key, the last one stands, as in ecCodes.
 */
#include "format/grib/keys.h"

#include "base/cursor.h"
#include "format/grib/keys_tables.h"

static void set(struct sq_grib_keys *keys, enum sq_grib_key key, int64_t value)
{
    keys->value[key] = value;
    keys->defined[key] = true;
}

static int64_t or_missing(uint64_t value, unsigned width)
{
    return value == UINT64_MAX >> (64 - 8 * width) ? SQ_GRIB_KEY_MISSING : (int64_t)value;
}

/* --- edition 1 (FM 92-IX Ext., section 1) --- */

/* Types whose two octets are the tops and bottoms of layers. */
static bool is_layer(unsigned type)
{
    static const uint8_t layers[] = {101, 104, 106, 108, 110, 112, 114, 116, 120, 121, 128, 141};
    for (size_t i = 0; i < sizeof layers; i++)
        if (layers[i] == type)
            return true;
    return false;
}

static void read_edition1(const struct sq_grib_raw *raw, struct sq_grib_keys *keys)
{
    const uint8_t *pds = raw->section1;
    if (!pds || raw->section1_bytes < 26)
        return;
    set(keys, SQ_GRIB_KEY_table2Version, pds[3]);
    set(keys, SQ_GRIB_KEY_centre, pds[4]);
    set(keys, SQ_GRIB_KEY_generatingProcessIdentifier, pds[5]);
    set(keys, SQ_GRIB_KEY_indicatorOfParameter, pds[8]);
    set(keys, SQ_GRIB_KEY_indicatorOfTypeOfLevel, pds[9]);
    set(keys, SQ_GRIB_KEY_timeRangeIndicator, pds[20]);
    set(keys, SQ_GRIB_KEY_subCentre, pds[25]);
    int64_t top = or_missing(pds[10], 1), bottom = or_missing(pds[11], 1);
    if (!is_layer(pds[9]))
        top = bottom = or_missing((uint64_t)pds[10] << 8 | pds[11], 2);
    set(keys, SQ_GRIB_KEY_level, top);
    set(keys, SQ_GRIB_KEY_topLevel, top);
    set(keys, SQ_GRIB_KEY_bottomLevel, bottom);
}

/* --- edition 2 --- */

static const struct sq_grib_template *template_of(unsigned number)
{
    size_t low = 0, high = sq_grib_template_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (sq_grib_templates[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sq_grib_template_count && sq_grib_templates[low].number == number ? &sq_grib_templates[low] : NULL;
}

static void read_field(struct sq_cursor *c, const struct sq_grib_layout_op *op, struct sq_grib_keys *keys)
{
    if (op->key == SQ_GRIB_KEY_NONE) {
        sq_take(c, op->width);
        return;
    }
    uint64_t raw = sq_uint_be(c, op->width);
    if (sq_cursor_failed(c))
        return;
    int64_t value = (int64_t)raw;
    uint64_t sign = UINT64_C(1) << (8 * op->width - 1);
    if (op->flags & SQ_GRIB_OP_MISSING && or_missing(raw, op->width) == SQ_GRIB_KEY_MISSING)
        value = SQ_GRIB_KEY_MISSING;
    else if (op->flags & SQ_GRIB_OP_SIGNED && raw & sign)
        value = -(int64_t)(raw & (sign - 1));
    set(keys, op->key, value);
}

/* The pair of two time ranges, which some conditions name as a whole. */
static void note_time_range(unsigned turn, struct sq_grib_keys *keys)
{
    int64_t process = keys->value[SQ_GRIB_KEY_typeOfStatisticalProcessing];
    int64_t *pair = &keys->value[SQ_GRIB_KEY_typeOfStatisticalProcessingPair];
    *pair = turn == 0 ? process : *pair << 8 | process;
    keys->defined[SQ_GRIB_KEY_typeOfStatisticalProcessingPair] = turn == 1;
}

static void read_list(struct sq_cursor *c, const struct sq_grib_layout_op *list, struct sq_grib_keys *keys)
{
    int64_t count = keys->value[list->key];
    for (int64_t turn = 0; turn < count && !sq_cursor_failed(c); turn++) {
        for (unsigned i = 1; i <= list->width; i++)
            read_field(c, &list[i], keys);
        if (list->key == SQ_GRIB_KEY_numberOfTimeRanges && turn < 3)
            note_time_range((unsigned)turn, keys);
    }
}

static void read_fragment(struct sq_cursor *c, unsigned fragment, unsigned section_bytes, struct sq_grib_keys *keys)
{
    const struct sq_grib_layout_op *op = sq_grib_layout_ops + sq_grib_fragments[fragment];
    const struct sq_grib_layout_op *end = sq_grib_layout_ops + sq_grib_fragments[fragment + 1];
    for (; op < end && !sq_cursor_failed(c); op++) {
        if (op->flags & SQ_GRIB_OP_LIST) {
            read_list(c, op, keys);
            op += op->width;
        } else if (op->flags & SQ_GRIB_OP_SAME) {
            set(keys, op->key, keys->value[op[-1].key]);
        } else if (op->flags & SQ_GRIB_OP_FORECAST_TIME_44) {
            /* 45 bytes without the vertical coordinates: as WMO has it */
            sq_take(c, section_bytes - 4 * keys->value[SQ_GRIB_KEY_NV] == 45 ? 2 : 4);
        } else {
            read_field(c, op, keys);
        }
    }
}

/*
 * ecCodes gives pressures below 1 hPa in Pa: those that integer division by 100 makes 0, once the scale factor has been used
 * up. A value of 0 keeps its scale factor.
 */
static bool is_in_pascal(int64_t scale, int64_t value)
{
    if (value == SQ_GRIB_KEY_MISSING || scale == SQ_GRIB_KEY_MISSING || value == 0)
        return value == 0 && scale == 0;
    double pascal = (double)value;
    for (; scale < 0; scale++)
        pascal *= 10;
    for (; scale > 0; scale--)
        pascal /= 10;
    return pascal < 100;
}

static void compute_edition2(struct sq_grib_keys *keys, unsigned is)
{
    for (unsigned bit = 0; bit < 5; bit++)
        set(keys, SQ_GRIB_KEY_is_chemical + bit, is >> bit & 1);
    const int64_t *v = keys->value;
    set(keys, SQ_GRIB_KEY_pressureUnits,
        v[SQ_GRIB_KEY_typeOfFirstFixedSurface] == 100 &&
            is_in_pascal(v[SQ_GRIB_KEY_scaleFactorOfFirstFixedSurface], v[SQ_GRIB_KEY_scaledValueOfFirstFixedSurface]));
    set(keys, SQ_GRIB_KEY_genVertHeightCoords, v[SQ_GRIB_KEY_typeOfFirstFixedSurface] == 150);
    int64_t ranges = v[SQ_GRIB_KEY_numberOfTimeRanges];
    set(keys, SQ_GRIB_KEY_stepType, (ranges == 1 || ranges == 2) && v[SQ_GRIB_KEY_typeOfStatisticalProcessing] == 1);
}

static void read_section4(const struct sq_grib_raw *raw, struct sq_grib_keys *keys)
{
    struct sq_cursor c = sq_cursor(raw->section4, raw->section4_bytes);
    sq_take(&c, 5);
    set(keys, SQ_GRIB_KEY_NV, sq_u16be(&c));
    unsigned number = sq_u16be(&c);
    set(keys, SQ_GRIB_KEY_productDefinitionTemplateNumber, number);
    if (number >= 32768 && keys->value[SQ_GRIB_KEY_centre] != 98 && keys->value[SQ_GRIB_KEY_subCentre] != 98)
        return; /* another centre's own */
    const struct sq_grib_template *template = template_of(number);
    if (!template)
        return;
    for (unsigned i = 0; i < template->fragment_count; i++)
        read_fragment(&c, sq_grib_template_fragments[template->first + i], raw->section4_bytes, keys);
    compute_edition2(keys, template->is);
}

/*
 * ECMWF's local section. Productions with a status of their own (TIGGE, S2S, UERRA, Destination Earth, …) have one class for all, which no
 * condition asks for.
 */
static void read_section2(const struct sq_grib_raw *raw, struct sq_grib_keys *keys)
{
    enum { TIGGE = 4, DESTINATION_EARTH = 12, DESTINATION_EARTH_TEST = 13, WPMIP_TEST = 17, CLIMATE_DT = 1 };
    int64_t status = keys->value[SQ_GRIB_KEY_productionStatusOfProcessedData];
    const uint8_t *s = raw->section2;
    bool is_ecmwf = keys->value[SQ_GRIB_KEY_centre] == 98 || keys->value[SQ_GRIB_KEY_subCentre] == 98;
    if (is_ecmwf && (status < TIGGE || status > WPMIP_TEST) && raw->section2_bytes >= 13 && (s[5] || s[6]))
        set(keys, SQ_GRIB_KEY_marsClass, s[7] << 8 | s[8]);
    if ((status == DESTINATION_EARTH || status == DESTINATION_EARTH_TEST) && raw->section2_bytes >= 14 && (s[7] << 8 | s[8]) == CLIMATE_DT)
        set(keys, SQ_GRIB_KEY_generation, s[13]);
}

static void read_edition2(const struct sq_grib_raw *raw, struct sq_grib_keys *keys)
{
    const uint8_t *s = raw->section1;
    set(keys, SQ_GRIB_KEY_discipline, raw->discipline);
    if (s && raw->section1_bytes >= 21) {
        set(keys, SQ_GRIB_KEY_centre, s[5] << 8 | s[6]);
        set(keys, SQ_GRIB_KEY_subCentre, s[7] << 8 | s[8]);
        set(keys, SQ_GRIB_KEY_tablesVersion, s[9]);
        set(keys, SQ_GRIB_KEY_localTablesVersion, s[10]);
        set(keys, SQ_GRIB_KEY_productionStatusOfProcessedData, s[19]);
    }
    if (raw->section2)
        read_section2(raw, keys);
    if (raw->grid_reference) {
        set(keys, SQ_GRIB_KEY_gridDefinitionTemplateNumber, 101);
        set(keys, SQ_GRIB_KEY_numberOfGridInReference, raw->grid_reference);
    }
    if (raw->section4 && raw->section4_bytes >= 9)
        read_section4(raw, keys);
}

void sq_grib_keys_read(const struct sq_grib_raw *raw, struct sq_grib_keys *ret)
{
    *ret = (struct sq_grib_keys){0};
    set(ret, SQ_GRIB_KEY_always, 1);
    if (raw->edition == 1)
        read_edition1(raw, ret);
    else
        read_edition2(raw, ret);
}
