/*
 * See unit.h. The fields are taken by (file, offset), whatever their place in the store, so that files are read from front to
 * back and a message with several fields is read once. Chunks come in groups (a *group*: the chunks that cut the same slabs, side
 * by side along y and x); a group has a place in memory if a field touches it, and its slabs without a field are filled afterwards.
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
    size_t cell_bytes; /* a slab's piece of a chunk */
};

/* Places of one message, next to each other in `order`. */
struct message {
    size_t first, count;
};

struct sq_unit {
    struct sq_unit_setting setting;
    uint64_t number;
    uint8_t *pages;
    size_t pages_bytes;
    struct unit_array *arrays;
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
    unsigned middle = a->rank - a->slab_rank;
    u->slab_count = a->slabs_per_init * layout->init_chunk;
    u->chunks_per_group = 1;
    u->cell_bytes = a->element_bytes;
    for (unsigned d = middle; d < a->rank; d++) {
        u->chunks_per_group *= a->grid[d];
        u->cell_bytes *= a->chunks[d];
    }
    u->group_count = u->chunks_per_group ? a->chunks_per_unit / u->chunks_per_group : 0;
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
    for (size_t i = 0; i < layout->array_count && !status; i++)
        status = make_array(layout, i, &unit->arrays[i], err);
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

/* order: room for place_count pointers. */
static void put_in_order(const struct sq_grib_index *index, const struct sq_cube_place *places, size_t place_count,
                         const struct sq_cube_place **order)
{
    for (size_t i = 0; i < place_count; i++)
        order[i] = &places[i];
    qsort_r(order, place_count, sizeof *order, by_position, (void *)(uintptr_t)index);
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

/* The group that the place's slab is in, and its cell in each of the group's chunks. */
static uint64_t group_of(const struct sq_layout_array *a, uint64_t within_unit, uint64_t slab, uint64_t *ret_cell)
{
    uint64_t group = 0, cell = 0, group_step = 1, cell_step = 1, rest = slab;
    for (unsigned d = a->rank - a->slab_rank; d-- > 1;) {
        uint64_t index = rest % a->shape[d];
        rest /= a->shape[d];
        group += index / a->chunks[d] * group_step;
        cell += index % a->chunks[d] * cell_step;
        group_step *= a->grid[d];
        cell_step *= a->chunks[d];
    }
    *ret_cell = cell + within_unit * cell_step;
    return group;
}

uint64_t sq_unit_measure(struct sq_unit *unit, const struct sq_cube_place *places, size_t place_count, uint64_t *ret_chunk_count)
{
    const struct sq_layout *layout = unit->setting.layout;
    uint64_t bytes = 0, cell;
    *ret_chunk_count = 0;
    for (size_t i = 0; i < layout->array_count; i++)
        for (uint64_t g = 0; g < unit->arrays[i].group_count; g++)
            unit->arrays[i].groups[g] = ABSENT;
    for (size_t i = 0; i < place_count; i++) {
        const struct sq_layout_array *a = &layout->arrays[places[i].variable];
        struct unit_array *u = &unit->arrays[places[i].variable];
        uint64_t *group = &u->groups[group_of(a, places[i].init % layout->init_chunk, places[i].slab, &cell)];
        if (*group != ABSENT)
            continue;
        *group = bytes;
        bytes += u->chunks_per_group * a->chunk_bytes;
        *ret_chunk_count += u->chunks_per_group;
    }
    return bytes;
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
    uint64_t group = group_of(a, within_unit, place->slab, &cell);
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

/* ---- fill what no field fills ---------------------------------------------------------------------------------------------------- */

struct group {
    size_t array;
    uint64_t group;
};

/* The slab of a cell of the group's chunks; false where the cell lies beyond the array's edge. */
static bool slab_of_cell(const struct sq_layout_array *a, uint64_t group, uint64_t cell, size_t *ret_slab)
{
    uint64_t slab = 0, slab_step = 1;
    for (unsigned d = a->rank - a->slab_rank; d-- > 1;) {
        uint64_t index = group % a->grid[d] * a->chunks[d] + cell % a->chunks[d];
        group /= a->grid[d];
        cell /= a->chunks[d];
        if (index >= a->shape[d])
            return false;
        slab += index * slab_step;
        slab_step *= a->shape[d];
    }
    *ret_slab = cell * a->slabs_per_init + slab; /* what is left of cell counts init times */
    return true;
}

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
        stored = slab_of_cell(a, group, cell, &slab) && u->slabs[slab] == SQ_SLAB_STORED;
    if (!stored)
        u->groups[group] = ABSENT;
    for (uint64_t cell = 0; cell < cells && stored; cell++) {
        if (slab_of_cell(a, group, cell, &slab) && u->slabs[slab] == SQ_SLAB_STORED)
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

int sq_unit_load(struct sq_unit *unit, uint64_t number, const struct sq_cube_place *places, size_t place_count, struct squall_error *err)
{
    const struct sq_unit_setting *s = &unit->setting;
    uint64_t chunk_count;
    unit->number = number;
    forget_bad(unit);
    for (size_t i = 0; i < s->layout->array_count; i++)
        memset(unit->arrays[i].slabs, SQ_SLAB_EMPTY, unit->arrays[i].slab_count);
    SQ_TRY(SQ_GROW(unit->order, unit->order_capacity, place_count, err));
    put_in_order(s->index, places, place_count, unit->order);
    SQ_TRY(find_messages(unit, place_count, err));
    SQ_TRY(sq_unit_reserve(unit, sq_unit_measure(unit, places, place_count, &chunk_count), err));
    int status = sq_parallel(unit->worker_count, unit->message_count, decode_message, unit, err);
    SQ_TRY(leave_files(unit, status, err));
    if (unit->bad_count)
        qsort(unit->bad, unit->bad_count, sizeof *unit->bad, by_place);
    return sq_parallel(unit->worker_count, s->layout->array_count, fill_groups, unit, err);
}

uint64_t sq_unit_number(const struct sq_unit *unit)
{
    return unit->number;
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
    put_in_order(setting->index, places, place_count, order);
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
