/*
 * See unit.h. The fields are taken by (file, offset), whatever their place in the store, so that files are read from front to
 * back and a message with several fields is read once. A group of chunks (slabs.h) has a place in memory if a field touches it; its slabs
 * without a field are filled afterwards.
 */
#include "convert/unit.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/field_worker.h"
#include "io/source.h"
#include "sys/mutex.h"
#include "sys/pool.h"
#include <stdlib.h>
#include <string.h>

/* Of a group that has no place in memory. */
static const uint64_t ABSENT = UINT64_MAX;

struct unit_array {
    uint8_t *slabs; /* enum sq_slab_state */
    size_t slab_count;
    uint64_t *groups; /* where in the unit's pages each begins, or ABSENT */
    uint64_t group_count, chunks_per_group;
    uint64_t first_group; /* among those of all arrays */
    size_t cell_bytes;
};

/* Places of one message, next to each other in `order`. */
struct message {
    size_t first, count;
};

struct sq_unit {
    struct sq_unit_setting setting;
    uint8_t *pages;
    size_t pages_bytes;
    struct unit_array *arrays;
    uint64_t group_count; /* of all arrays */
    struct sq_field_worker *workers;
    unsigned worker_count;
    const struct sq_cube_place **order; /* by (file, offset, field in message) */
    size_t order_capacity;
    struct message *messages;
    size_t message_count, message_capacity;
    uint64_t bytes_read;
    struct sq_mutex bad_lock;
    struct sq_unit_bad *bad;
    size_t bad_count, bad_capacity;
};

/* ---- made and freed -------------------------------------------------------------------------------------------------------------- */

static int make_array(const struct sq_layout *layout, size_t index, struct unit_array *u, struct squall_error *err)
{
    const struct sq_layout_array *a = &layout->arrays[index];
    const struct sq_slab_groups groups = sq_slab_groups(a);
    u->slab_count = a->slabs_per_init * layout->init_chunk;
    u->chunks_per_group = groups.chunks_per_group;
    u->cell_bytes = groups.cell_bytes;
    u->group_count = groups.count;
    u->slabs = sq_alloc(u->slab_count + 1, sizeof *u->slabs);
    u->groups = sq_alloc(u->group_count + 1, sizeof *u->groups);
    return u->slabs && u->groups ? 0 : sq_error_memory(err, u->slab_count + u->group_count * sizeof *u->groups);
}

int sq_unit_new(const struct sq_unit_setting *setting, struct sq_unit **ret, struct squall_error *err)
{
    const struct sq_layout *layout = setting->layout;
    struct sq_unit *unit = sq_alloc_zero(1, sizeof *unit);
    if (!unit)
        return sq_error_memory(err, sizeof *unit);
    unit->setting = *setting;
    sq_mutex_init(&unit->bad_lock);
    unit->worker_count = setting->ctx->threads;
    unit->arrays = sq_alloc_zero(layout->array_count + 1, sizeof *unit->arrays);
    unit->workers = sq_alloc_zero(unit->worker_count, sizeof *unit->workers);
    int status = unit->arrays && unit->workers ? 0 : sq_error_memory(err, layout->array_count * sizeof *unit->arrays);
    for (size_t i = 0; i < layout->array_count && !status; i++) {
        status = make_array(layout, i, &unit->arrays[i], err);
        unit->arrays[i].first_group = unit->group_count;
        unit->group_count += unit->arrays[i].group_count;
    }
    if (status) {
        sq_unit_free(unit);
        return status;
    }
    *ret = unit;
    return 0;
}

static void forget_bad(struct sq_unit *unit)
{
    for (size_t i = 0; i < unit->bad_count; i++)
        sq_free(unit->bad[i].message);
    unit->bad_count = 0;
}

void sq_unit_free(struct sq_unit *unit)
{
    if (!unit)
        return;
    for (size_t i = 0; unit->arrays && i < unit->setting.layout->array_count; i++) {
        sq_free(unit->arrays[i].slabs);
        sq_free(unit->arrays[i].groups);
    }
    for (unsigned i = 0; unit->workers && i < unit->worker_count; i++)
        sq_field_worker_done(&unit->workers[i]);
    forget_bad(unit);
    sq_free(unit->bad);
    sq_free(unit->order);
    sq_free(unit->messages);
    sq_free(unit->arrays);
    sq_free(unit->workers);
    sq_pages_free(unit->pages, unit->pages_bytes);
    sq_mutex_done(&unit->bad_lock);
    sq_free(unit);
}

/* ---- which messages, in which order ---------------------------------------------------------------------------------------------- */

static int by_position(const void *a, const void *b, void *user)
{
    const struct sq_grib_index *index = user;
    const struct sq_grib_field *x = &index->fields[(*(const struct sq_cube_place *const *)a)->field];
    const struct sq_grib_field *y = &index->fields[(*(const struct sq_cube_place *const *)b)->field];
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->in_message > y->in_message) - (x->in_message < y->in_message);
}

static void put_in_order(const struct sq_grib_index *index, const struct sq_cube_place **order, size_t count)
{
    if (count)
        qsort_r(order, count, sizeof *order, by_position, (void *)(uintptr_t)index);
}

static int find_messages(struct sq_unit *unit, size_t place_count, struct squall_error *err)
{
    const struct sq_grib_field *last = NULL;
    unit->message_count = 0;
    unit->bytes_read = 0;
    for (size_t i = 0; i < place_count; i++) {
        const struct sq_grib_field *field = &unit->setting.index->fields[unit->order[i]->field];
        if (last && last->file == field->file && last->offset == field->offset) {
            unit->messages[unit->message_count - 1].count++;
            continue;
        }
        SQ_TRY(SQ_GROW(unit->messages, unit->message_capacity, unit->message_count + 1, err));
        unit->messages[unit->message_count++] = (struct message){i, 1};
        unit->bytes_read += field->size_bytes;
        last = field;
    }
    return 0;
}

/* ---- which chunks, and where they lie -------------------------------------------------------------------------------------------- */

/* The slab's group is wanted, where it is in the band: has it a place yet? */
static void want_group(struct sq_unit *unit, const struct sq_band *band, size_t array, uint64_t within_unit, uint64_t slab, uint64_t *bytes,
                       uint64_t *chunk_count)
{
    const struct sq_layout_array *a = &unit->setting.layout->arrays[array];
    struct unit_array *u = &unit->arrays[array];
    uint64_t cell, number = sq_slab_group(a, within_unit, slab, &cell), *group = &u->groups[number];
    const uint64_t of_all = u->first_group + number;
    if (*group != ABSENT || of_all < band->first || (band->end && of_all >= band->end))
        return;
    *group = *bytes;
    *bytes += u->chunks_per_group * a->chunk_bytes;
    *chunk_count += u->chunks_per_group;
}

uint64_t sq_unit_measure(struct sq_unit *unit, const struct sq_unit_fields *fields, uint64_t *ret_chunk_count)
{
    const struct sq_layout *layout = unit->setting.layout;
    uint64_t bytes = 0;
    *ret_chunk_count = 0;
    for (size_t i = 0; i < layout->array_count; i++)
        for (uint64_t g = 0; g < unit->arrays[i].group_count; g++)
            unit->arrays[i].groups[g] = ABSENT;
    for (size_t i = 0; i < fields->place_count; i++) {
        const struct sq_cube_place *p = &fields->places[i];
        want_group(unit, &fields->band, p->variable, p->init % layout->init_chunk, p->slab, &bytes, ret_chunk_count);
    }
    for (size_t i = 0; i < layout->array_count && fields->carry; i++) {
        const struct sq_ranges *stored = sq_carry_stored(fields->carry, i);
        const uint64_t per_init = layout->arrays[i].slabs_per_init;
        for (size_t k = 0; k < stored->count; k++)
            for (uint64_t slab = stored->items[k].first; slab <= stored->items[k].last; slab++)
                want_group(unit, &fields->band, i, slab / per_init, slab % per_init, &bytes, ret_chunk_count);
    }
    return bytes;
}

uint64_t sq_unit_largest_group(const struct sq_unit *unit, size_t *ret_array)
{
    uint64_t most = 0;
    for (size_t i = 0; i < unit->setting.layout->array_count; i++) {
        const struct unit_array *u = &unit->arrays[i];
        const uint64_t bytes = u->chunks_per_group * unit->setting.layout->arrays[i].chunk_bytes;
        for (uint64_t g = 0; g < u->group_count && bytes > most; g++) {
            if (u->groups[g] == ABSENT)
                continue;
            most = bytes;
            *ret_array = i;
        }
    }
    return most;
}

bool sq_unit_next_band(struct sq_unit *unit, struct sq_unit_fields *fields, uint64_t room_bytes, uint64_t *ret_bytes)
{
    uint64_t count;
    fields->band = (struct sq_band){.first = fields->band.end};
    const uint64_t all = sq_unit_measure(unit, fields, &count); /* of what is left */
    *ret_bytes = 0;
    for (size_t i = 0; i < unit->setting.layout->array_count && all > room_bytes; i++) {
        const struct unit_array *u = &unit->arrays[i];
        const uint64_t bytes = u->chunks_per_group * unit->setting.layout->arrays[i].chunk_bytes;
        for (uint64_t g = 0; g < u->group_count; g++) {
            if (u->groups[g] == ABSENT)
                continue;
            if (*ret_bytes && (*ret_bytes > room_bytes || bytes > room_bytes - *ret_bytes)) {
                fields->band.end = u->first_group + g;
                return false;
            }
            *ret_bytes += bytes;
        }
    }
    fields->band.end = unit->group_count;
    *ret_bytes = all;
    return true;
}

int sq_unit_reserve(struct sq_unit *unit, uint64_t chunk_bytes, struct squall_error *err)
{
    if (unit->pages && chunk_bytes <= unit->pages_bytes)
        return 0;
    sq_pages_free(unit->pages, unit->pages_bytes);
    unit->pages_bytes = chunk_bytes;
    unit->pages = sq_pages_alloc(chunk_bytes);
    return unit->pages ? 0 : sq_error_memory(err, chunk_bytes);
}

/* ---- decode ---------------------------------------------------------------------------------------------------------------------- */

/* Where the slab's piece of the first chunk of its group lies; *ret_slab: its number among the unit's slabs. */
static uint8_t *plane_of(const struct sq_unit *unit, const struct sq_cube_place *place, size_t *ret_slab)
{
    const struct sq_layout_array *a = &unit->setting.layout->arrays[place->variable];
    const struct unit_array *u = &unit->arrays[place->variable];
    uint64_t within_unit = place->init % unit->setting.layout->init_chunk, cell;
    uint64_t group = sq_slab_group(a, within_unit, place->slab, &cell);
    *ret_slab = within_unit * a->slabs_per_init + place->slab;
    return unit->pages + u->groups[group] + cell * u->cell_bytes;
}

static int note_bad(struct sq_unit *unit, const struct sq_cube_place *place, const char *message, struct squall_error *err)
{
    char *copy = sq_strdup(message);
    if (!copy)
        return sq_error_memory(err, strlen(message));
    sq_mutex_lock(&unit->bad_lock);
    int status = SQ_GROW(unit->bad, unit->bad_capacity, unit->bad_count + 1, err);
    if (!status)
        unit->bad[unit->bad_count++] = (struct sq_unit_bad){place, copy};
    sq_mutex_unlock(&unit->bad_lock);
    if (status)
        sq_free(copy);
    return status;
}

static int decode_message(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    struct sq_unit *unit = user;
    struct sq_field_worker *w = &unit->workers[worker];
    const struct message *m = &unit->messages[index];
    if (sq_cancelled(unit->setting.ctx))
        return sq_error(err, SQUALL_ECANCELLED, "stopped");
    SQ_TRY(sq_field_worker_read(w, &unit->setting, &unit->setting.index->fields[unit->order[m->first]->field], err));
    for (size_t i = 0; i < m->count; i++) {
        const struct sq_cube_place *place = unit->order[m->first + i];
        struct squall_error damage = SQUALL_ERROR_INIT;
        bool damaged = false;
        size_t slab;
        uint8_t *plane = plane_of(unit, place, &slab);
        int status = sq_field_worker_place(w, &unit->setting, place, plane, &damaged, &damage);
        if (status) {
            if (err)
                *err = damage;
            return status;
        }
        if (damaged)
            SQ_TRY(note_bad(unit, place, damage.message, err));
        unit->arrays[place->variable].slabs[slab] = damaged ? SQ_SLAB_BAD : SQ_SLAB_STORED;
    }
    return 0;
}

/* ---- carry over what the sources do not have -------------------------------------------------------------------------------------- */

struct carried_chunk {
    size_t array;
    uint64_t chunk;
};

struct carrying {
    struct sq_unit *unit;
    const struct sq_carry *carry;
    struct carried_chunk *chunks;
    size_t chunk_count, chunk_capacity;
    struct sq_codec_scratch **scratch; /* of each worker, as all below */
    void **old;
};

static void carrying_done(struct carrying *c)
{
    for (unsigned i = 0; i < c->unit->worker_count; i++) {
        if (c->scratch)
            sq_codec_scratch_free(c->scratch[i]);
        if (c->old)
            sq_free(c->old[i]);
    }
    sq_free(c->scratch);
    sq_free(c->old);
    sq_free(c->chunks);
}

/* Slabs of the band that are stored and that no field fills; the chunks that they lie in. */
static int find_carried(struct carrying *c, size_t array, struct squall_error *err)
{
    const struct sq_layout_array *a = &c->unit->setting.layout->arrays[array];
    struct unit_array *u = &c->unit->arrays[array];
    const struct sq_ranges *stored = sq_carry_stored(c->carry, array);
    SQ_CLEANUP_FREE bool *wanted = sq_alloc_zero(u->group_count + 1, sizeof *wanted);
    uint64_t cell;
    if (!wanted)
        return sq_error_memory(err, u->group_count);
    for (size_t k = 0; k < stored->count; k++) {
        for (uint64_t slab = stored->items[k].first; slab <= stored->items[k].last; slab++) {
            const uint64_t group = sq_slab_group(a, slab / a->slabs_per_init, slab % a->slabs_per_init, &cell);
            if (u->groups[group] == ABSENT)
                continue;
            u->slabs[slab] = sq_slab_carry(u->slabs[slab]);
            wanted[group] = wanted[group] || sq_slab_is_old(u->slabs[slab]);
        }
    }
    for (uint64_t chunk = 0; chunk < u->group_count * u->chunks_per_group; chunk++) {
        if (!wanted[chunk / u->chunks_per_group])
            continue;
        SQ_TRY(SQ_GROW(c->chunks, c->chunk_capacity, c->chunk_count + 1, err));
        c->chunks[c->chunk_count++] = (struct carried_chunk){array, chunk};
    }
    return 0;
}

static int carry_chunk(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    struct carrying *c = user;
    const struct carried_chunk *which = &c->chunks[index];
    const struct sq_layout_array *a = &c->unit->setting.layout->arrays[which->array];
    const struct unit_array *u = &c->unit->arrays[which->array];
    const uint64_t group = which->chunk / u->chunks_per_group;
    uint8_t *to = c->unit->pages + u->groups[group] + which->chunk % u->chunks_per_group * a->chunk_bytes;
    const uint8_t *old = c->old[worker];
    size_t slab;
    if (sq_cancelled(c->unit->setting.ctx))
        return sq_error(err, SQUALL_ECANCELLED, "stopped");
    SQ_TRY(sq_carry_chunk(c->carry, which->array, which->chunk, c->scratch[worker], c->old[worker], err));
    for (uint64_t at = 0, cell = 0; at < a->chunk_bytes; at += u->cell_bytes, cell++)
        if (sq_slab_of_cell(a, group, cell, &slab) && sq_slab_is_old(u->slabs[slab]))
            memcpy(to + at, old + at, u->cell_bytes);
    return 0;
}

static int carry_over(struct sq_unit *unit, const struct sq_carry *carry, struct squall_error *err)
{
    __attribute__((cleanup(carrying_done))) struct carrying c = {.unit = unit, .carry = carry};
    for (size_t i = 0; i < unit->setting.layout->array_count; i++)
        SQ_TRY(find_carried(&c, i, err));
    c.scratch = sq_alloc_zero(unit->worker_count, sizeof(void *));
    c.old = sq_alloc_zero(unit->worker_count, sizeof *c.old);
    if (!c.scratch || !c.old)
        return sq_error_memory(err, unit->worker_count * sizeof(void *));
    for (unsigned i = 0; i < unit->worker_count && c.chunk_count; i++)
        if (!(c.scratch[i] = sq_codec_scratch_new()) || !(c.old[i] = sq_alloc(unit->setting.layout->chunk_limit_bytes, 1)))
            return sq_error_memory(err, unit->setting.layout->chunk_limit_bytes);
    return sq_parallel(unit->worker_count, c.chunk_count, carry_chunk, &c, err);
}

/* ---- fill what no field fills ---------------------------------------------------------------------------------------------------- */

static void fill_nan(const struct sq_layout_array *a, void *dst, size_t bytes)
{
    static const uint16_t nan16 = 0x7e00;
    static const uint32_t nan32 = 0x7fc00000;
    static const uint64_t nan64 = UINT64_C(0x7ff8000000000000);
    const void *nan = a->element_bytes == 2 ? (const void *)&nan16 : a->element_bytes == 4 ? (const void *)&nan32 : &nan64;
    sq_scatter_fill(dst, bytes / a->element_bytes, a->element_bytes, nan);
}

/* A group that only damaged fields touch becomes absent. */
static void fill_group(struct sq_unit *unit, size_t array, uint64_t group)
{
    const struct sq_layout_array *a = &unit->setting.layout->arrays[array];
    struct unit_array *u = &unit->arrays[array];
    uint64_t cells = a->chunk_bytes / u->cell_bytes;
    uint8_t *chunks = unit->pages + u->groups[group];
    bool stored = false;
    size_t slab;
    for (uint64_t cell = 0; cell < cells && !stored; cell++)
        stored = sq_slab_of_cell(a, group, cell, &slab) && sq_slab_has_values(u->slabs[slab]);
    if (!stored)
        u->groups[group] = ABSENT;
    for (uint64_t cell = 0; cell < cells && stored; cell++) {
        if (sq_slab_of_cell(a, group, cell, &slab) && sq_slab_has_values(u->slabs[slab]))
            continue;
        for (uint64_t k = 0; k < u->chunks_per_group; k++)
            fill_nan(a, chunks + k * a->chunk_bytes + cell * u->cell_bytes, u->cell_bytes);
    }
}

static int fill_groups(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    struct sq_unit *unit = user;
    (void)worker, (void)err;
    for (uint64_t group = 0; group < unit->arrays[index].group_count; group++)
        if (unit->arrays[index].groups[group] != ABSENT)
            fill_group(unit, index, group);
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const struct sq_unit_bad *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

static int leave_files(struct sq_unit *unit, int status, struct squall_error *err)
{
    for (unsigned i = 0; i < unit->worker_count; i++) {
        int left = sq_field_worker_leave(&unit->workers[i], status ? NULL : err);
        if (!status && left) {
            if (err)
                err->status = SQUALL_EIO;
            status = SQUALL_EIO;
        }
    }
    return status;
}

/* Those of the fields that lie in the groups that were measured. *ret: how many. */
static int order_fields(struct sq_unit *unit, const struct sq_unit_fields *fields, size_t *ret, struct squall_error *err)
{
    const struct sq_layout *layout = unit->setting.layout;
    *ret = 0;
    SQ_TRY(SQ_GROW(unit->order, unit->order_capacity, fields->place_count + 1, err));
    for (size_t i = 0; i < fields->place_count; i++) {
        const struct sq_cube_place *p = &fields->places[i];
        uint64_t cell;
        const uint64_t group = sq_slab_group(&layout->arrays[p->variable], p->init % layout->init_chunk, p->slab, &cell);
        if (unit->arrays[p->variable].groups[group] != ABSENT)
            unit->order[(*ret)++] = p;
    }
    put_in_order(unit->setting.index, unit->order, *ret);
    return 0;
}

int sq_unit_load(struct sq_unit *unit, const struct sq_unit_fields *fields, struct squall_error *err)
{
    const struct sq_unit_setting *s = &unit->setting;
    uint64_t chunk_count;
    size_t field_count;
    if (fields->band.first == 0) {
        forget_bad(unit);
        for (size_t i = 0; i < s->layout->array_count; i++)
            memset(unit->arrays[i].slabs, SQ_SLAB_EMPTY, unit->arrays[i].slab_count);
    }
    SQ_TRY(sq_unit_reserve(unit, sq_unit_measure(unit, fields, &chunk_count), err));
    SQ_TRY(order_fields(unit, fields, &field_count, err));
    SQ_TRY(find_messages(unit, field_count, err));
    int status = sq_parallel(unit->worker_count, unit->message_count, decode_message, unit, err);
    SQ_TRY(leave_files(unit, status, err));
    if (unit->bad_count)
        qsort(unit->bad, unit->bad_count, sizeof *unit->bad, by_place);
    if (fields->carry)
        SQ_TRY(carry_over(unit, fields->carry, err));
    return sq_parallel(unit->worker_count, s->layout->array_count, fill_groups, unit, err);
}

const void *sq_unit_chunk(const struct sq_unit *unit, size_t array, uint64_t chunk)
{
    const struct unit_array *u = &unit->arrays[array];
    uint64_t group = u->groups[chunk / u->chunks_per_group];
    if (group == ABSENT)
        return NULL;
    return unit->pages + group + chunk % u->chunks_per_group * unit->setting.layout->arrays[array].chunk_bytes;
}

const uint8_t *sq_unit_slabs(const struct sq_unit *unit, size_t array)
{
    return unit->arrays[array].slabs;
}

uint64_t sq_unit_bytes_read(const struct sq_unit *unit)
{
    return unit->bytes_read;
}

size_t sq_unit_bad(const struct sq_unit *unit, const struct sq_unit_bad **ret)
{
    *ret = unit->bad;
    return unit->bad_count;
}

/* ---- before and beside it -------------------------------------------------------------------------------------------------------- */

void sq_unit_prefetch(const struct sq_unit_setting *setting, const struct sq_cube_place *places, size_t place_count)
{
    struct sq_source *source = NULL;
    uint32_t file = 0;
    const struct sq_cube_place **order = sq_alloc(place_count, sizeof *order);
    if (!order)
        return;
    for (size_t i = 0; i < place_count; i++)
        order[i] = &places[i];
    put_in_order(setting->index, order, place_count);
    for (size_t i = 0; i < place_count; i++) {
        const struct sq_grib_field *field = &setting->index->fields[order[i]->field];
        if (!source || file != field->file) {
            sq_source_close(source);
            source = NULL;
            file = field->file;
            if (sq_source_open_file(setting->index->files[file].path, &source, NULL))
                break; /* the unit's own reading will say why */
        }
        sq_source_prefetch(source, field->offset, field->size_bytes);
    }
    sq_source_close(source);
    sq_free(order);
}

uint64_t sq_unit_other_bytes(const struct sq_unit_setting *setting)
{
    const struct sq_layout *layout = setting->layout;
    uint64_t message = 0, points = 0, width = 4, tables = 0;
    for (size_t i = 0; i < setting->cube->place_count; i++) {
        const struct sq_grib_field *field = &setting->index->fields[setting->cube->places[i].field];
        uint64_t of_field = setting->index->grids[field->grid].point_count;
        message = field->size_bytes > message ? field->size_bytes : message;
        points = of_field > points ? of_field : points;
    }
    for (size_t i = 0; i < layout->array_count; i++) {
        const struct sq_layout_array *a = &layout->arrays[i];
        width = a->type == SQUALL_FLOAT64 ? 8 : width;
        tables += a->slabs_per_init * layout->init_chunk + a->chunks_per_unit * sizeof(uint64_t);
    }
    /* the worker's buffers have half as much again in reserve; a decoder has buffers of a field's size too */
    return tables + setting->ctx->threads * (message + message / 2 + points * (width + 4) + points * width / 2);
}
