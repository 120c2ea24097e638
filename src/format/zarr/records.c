/*
 * See records.h: the reading side. All lines of all journals go into one list in (epoch, part, line) order; a stable sort by
 * unit then leaves each unit's history together, and its last word holds.
 */
#include "format/zarr/records.h"
#include "base/crc32c.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "squall/array.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t JOURNAL_LIMIT_BYTES = (size_t)1 << 30;

/* One line about a unit: what was written or (is_staged) is about to be, that it no longer holds, or (why is set) that it was left. */
struct entry {
    size_t order;
    bool invalidates;
    const char *why;
    struct sq_record_unit unit;
};

struct replay {
    struct entry *entries;
    size_t entry_count, entry_capacity;
    struct sq_record_input *inputs;
    size_t input_count, input_capacity;
    size_t journal_count, line_count;
    struct sq_record_source source; /* of the journal at hand */
    const char *command;
    struct sq_arena *arena;
    struct sq_record_run last_run;
    struct sq_ranges planned;
};

char *sq_records_folder(const char *store)
{
    return sq_format("%s/chunk_exists/.squall", store);
}

static int malformed(struct squall_error *err, const char *what)
{
    return sq_error(err, SQUALL_ECORRUPT, "a record without a usable \"%s\"", what);
}

static int by_file(const void *a, const void *b)
{
    const struct sq_record_file *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order)
        return order;
    if (x->size_bytes != y->size_bytes)
        return x->size_bytes < y->size_bytes ? -1 : 1;
    return (x->mtime_ns > y->mtime_ns) - (x->mtime_ns < y->mtime_ns);
}

static int read_file(struct sq_arena *arena, const struct sq_json *v, struct sq_record_file *ret, struct squall_error *err)
{
    const char *name = sq_json_string(sq_json_at(v, 0));
    if (!name || !sq_json_uint(sq_json_at(v, 1), &ret->size_bytes) || !sq_json_int(sq_json_at(v, 2), &ret->mtime_ns))
        return malformed(err, "files");
    ret->name = sq_arena_strdup(arena, name);
    return ret->name ? 0 : sq_error_memory(err, strlen(name));
}

static int read_chunks(struct sq_arena *arena, const struct sq_json *v, struct sq_record_array *a, struct squall_error *err)
{
    a->chunk_count = sq_json_count(v);
    a->chunks = sq_arena_alloc(arena, (a->chunk_count + 1) * sizeof *a->chunks);
    if (!a->chunks)
        return sq_error_memory(err, a->chunk_count * sizeof *a->chunks);
    for (size_t i = 0; i < a->chunk_count; i++) {
        const struct sq_json *chunk = sq_json_at(v, i);
        uint64_t crc;
        if (sq_json_type(chunk) == SQ_JSON_NULL)
            continue;
        if (!sq_json_uint(sq_json_at(chunk, 0), &a->chunks[i].size_bytes) || !sq_json_uint(sq_json_at(chunk, 1), &crc) ||
            crc > UINT32_MAX || a->chunks[i].size_bytes == 0)
            return malformed(err, "chunks");
        a->chunks[i].crc32c = (uint32_t)crc;
    }
    return 0;
}

/* The set's ranges move into the arena, so that the records are freed in one piece. */
static int read_ranges(struct sq_arena *arena, const struct sq_json *v, struct sq_ranges *ret, struct squall_error *err)
{
    const char *text = sq_json_string(v);
    struct sq_ranges set = {0};
    if (!text)
        return malformed(err, "stored");
    SQ_TRY(sq_ranges_parse(text, &set, err));
    size_t count = set.count;
    struct sq_range *items = sq_arena_copy(arena, set.count ? set.items : (const void *)"", set.count * sizeof *set.items);
    sq_ranges_done(&set);
    if (!items)
        return sq_error_memory(err, count * sizeof *items);
    *ret = (struct sq_ranges){.items = items, .count = count};
    return 0;
}

static int read_lengths(struct sq_arena *arena, const struct sq_json *v, struct sq_record_array *a, struct squall_error *err)
{
    const size_t count = sq_json_count(v);
    if (count > SQUALL_RANK_MAX || !(a->lengths = sq_arena_alloc(arena, (count + 1) * sizeof *a->lengths)))
        return count > SQUALL_RANK_MAX ? malformed(err, "lengths") : sq_error_memory(err, count * sizeof *a->lengths);
    a->length_count = (unsigned)count;
    for (size_t i = 0; i < count; i++)
        if (!sq_json_uint(sq_json_at(v, i), &a->lengths[i]) || a->lengths[i] == 0)
            return malformed(err, "lengths");
    return 0;
}

struct array_visit {
    struct sq_arena *arena;
    struct sq_record_unit *unit;
};

static int read_array(void *user, const char *key, const struct sq_json *v, struct squall_error *err)
{
    struct array_visit *visit = user;
    struct sq_record_array *a = &visit->unit->arrays[visit->unit->array_count++];
    a->name = sq_arena_strdup(visit->arena, key);
    if (!a->name)
        return sq_error_memory(err, strlen(key));
    SQ_TRY(read_ranges(visit->arena, sq_json_get(v, "stored"), &a->stored, err));
    if (sq_json_get(v, "lengths"))
        SQ_TRY(read_lengths(visit->arena, sq_json_get(v, "lengths"), a, err));
    if (sq_json_get(v, "bad"))
        SQ_TRY(read_ranges(visit->arena, sq_json_get(v, "bad"), &a->bad, err));
    return read_chunks(visit->arena, sq_json_get(v, "chunks"), a, err);
}

static int read_unit(struct sq_arena *arena, const struct sq_json *v, struct sq_record_unit *unit, struct squall_error *err)
{
    const struct sq_json *files = sq_json_get(v, "files"), *arrays = sq_json_get(v, "arrays"), *counts = sq_json_get(v, "field_counts");
    unit->file_count = sq_json_count(files);
    unit->init_count = sq_json_count(counts);
    unit->valid = true;
    unit->files = sq_arena_alloc(arena, (unit->file_count + 1) * sizeof *unit->files);
    unit->arrays = sq_arena_alloc(arena, (sq_json_count(arrays) + 1) * sizeof *unit->arrays);
    unit->field_counts = sq_arena_alloc(arena, (unit->init_count + 1) * sizeof *unit->field_counts);
    if (!unit->files || !unit->arrays || !unit->field_counts)
        return sq_error_memory(err, unit->file_count * sizeof *unit->files);
    for (size_t i = 0; i < unit->file_count; i++)
        SQ_TRY(read_file(arena, sq_json_at(files, i), &unit->files[i], err));
    if (unit->file_count)
        qsort(unit->files, unit->file_count, sizeof *unit->files, by_file);
    for (size_t i = 0; i < unit->init_count; i++) {
        uint64_t count;
        if (!sq_json_uint(sq_json_at(counts, i), &count) || count > UINT32_MAX)
            return malformed(err, "field_counts");
        unit->field_counts[i] = (uint32_t)count;
    }
    if (sq_json_type(arrays) != SQ_JSON_OBJECT || unit->init_count == 0)
        return malformed(err, "arrays");
    struct array_visit visit = {arena, unit};
    return sq_json_each(arrays, read_array, &visit, err);
}

static int take_unit(struct replay *r, const struct sq_json *v, struct squall_error *err)
{
    const char *why = sq_json_string(sq_json_get(v, "why"));
    struct entry e = {.order = r->entry_count, .invalidates = sq_json_get(v, "invalid") != NULL, .unit.source = r->source};
    const bool is_staged = sq_json_get(v, "staged") != NULL;
    const char *key = e.invalidates ? "invalid" : why ? "left" : is_staged ? "staged" : "unit";
    if (!sq_json_uint(sq_json_get(v, key), &e.unit.unit))
        return malformed(err, key);
    const char *damage = e.invalidates ? sq_json_string(sq_json_get(v, "damage")) : NULL;
    if ((why && !(e.why = sq_arena_strdup(r->arena, why))) || (damage && !(e.unit.damage = sq_arena_strdup(r->arena, damage))))
        return sq_error_memory(err, strlen(why ? why : damage));
    if (!e.invalidates && !why)
        SQ_TRY(read_unit(r->arena, v, &e.unit, err));
    e.unit.is_staged = is_staged;
    e.unit.valid = e.unit.valid && !is_staged;
    SQ_TRY(SQ_GROW(r->entries, r->entry_capacity, r->entry_count + 1, err));
    r->entries[r->entry_count++] = e;
    return 0;
}

static int take_input(struct replay *r, const struct sq_json *v, struct squall_error *err)
{
    struct sq_record_input input = {0};
    const char *what = sq_json_string(sq_json_get(v, "what"));
    if (!what)
        return malformed(err, "what");
    SQ_TRY(read_file(r->arena, sq_json_get(v, "input"), &input.file, err));
    if (!(input.what = sq_arena_strdup(r->arena, what)))
        return sq_error_memory(err, strlen(what));
    SQ_TRY(SQ_GROW(r->inputs, r->input_capacity, r->input_count + 1, err));
    r->inputs[r->input_count++] = input;
    return 0;
}

static int take_run(struct replay *r, const struct sq_json *v, struct squall_error *err)
{
    struct sq_record_run *run = &r->last_run;
    const bool good = sq_json_uint(sq_json_get(v, "units"), &run->units) && sq_json_uint(sq_json_get(v, "bytes_in"), &run->bytes_in) &&
                      sq_json_uint(sq_json_get(v, "bytes_out"), &run->bytes_out) &&
                      sq_json_uint(sq_json_get(v, "milliseconds"), &run->milliseconds) &&
                      sq_json_int(sq_json_get(v, "ended"), &run->ended_s);
    return good ? 0 : malformed(err, "run");
}

static int take_head(struct replay *r, const struct sq_json *v, struct squall_error *err)
{
    int64_t format;
    const char *command = sq_json_string(sq_json_get(v, "command"));
    if (!sq_json_int(sq_json_get(v, "format"), &format) || !command)
        return malformed(err, "format");
    if (format != SQ_RECORD_FORMAT)
        return sq_error(err, SQUALL_EREFUSED, "written by another version of squall (record format %lld, this one's is %d)",
                        (long long)format, SQ_RECORD_FORMAT);
    r->command = sq_arena_strdup(r->arena, command);
    return r->command ? 0 : sq_error_memory(err, strlen(command));
}

/* *ret_torn: the line is none that was written whole. */
static int take_line(struct replay *r, const char *line, size_t length, bool *ret_torn, struct squall_error *err)
{
    enum { HEAD_BYTES = 9 };
    char *end;
    *ret_torn = length <= HEAD_BYTES || line[HEAD_BYTES - 1] != ' ';
    if (!*ret_torn) {
        unsigned long crc = strtoul(line, &end, 16);
        *ret_torn = end != line + HEAD_BYTES - 1 || crc != sq_crc32c(0, line + HEAD_BYTES, length - HEAD_BYTES);
    }
    if (*ret_torn)
        return 0;
    struct sq_json *parsed = NULL;
    SQ_TRY(sq_json_parse(line + HEAD_BYTES, length - HEAD_BYTES, &parsed, err));
    SQ_CLEANUP_JSON struct sq_json *v = parsed;
    if (sq_json_get(v, "input"))
        return take_input(r, v, err);
    if (sq_json_get(v, "run"))
        return take_run(r, sq_json_get(v, "run"), err);
    if (sq_json_get(v, "planned"))
        return read_ranges(r->arena, sq_json_get(v, "planned"), &r->planned, err);
    return sq_json_get(v, "format") ? take_head(r, v, err) : take_unit(r, v, err);
}

static int replay_journal(struct replay *r, const char *path, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *text = NULL;
    size_t size = 0, number = 1;
    SQ_TRY(sq_file_read_all(path, JOURNAL_LIMIT_BYTES, &text, &size, err));
    for (char *line = text, *end = text + size; line < end; number++) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        bool torn = true;
        if (!newline) /* a crash's last line */
            break;
        int status = take_line(r, line, (size_t)(newline - line), &torn, err);
        if (status)
            return sq_error_within(err, status, "%s, line %zu", path, number);
        if (torn && newline + 1 < end)
            return sq_error(err, SQUALL_ECORRUPT, "%s, line %zu: checksum does not match; " SQ_RECORDS_DAMAGED, path, number);
        line = newline + 1;
        r->line_count++;
    }
    return 0;
}

static int by_unit(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->unit.unit != y->unit.unit)
        return x->unit.unit < y->unit.unit ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int by_input(const void *a, const void *b)
{
    const struct sq_record_input *x = a, *y = b;
    int order = by_file(&x->file, &y->file);
    return order ? order : strcmp(x->what, y->what);
}

/* The entries of one unit, in their order: *ret_has_record, *ret_why set where the last word is that it was left. */
static void settle_unit(const struct entry *entries, size_t count, struct sq_record_unit *unit, bool *ret_has_record, const char **ret_why)
{
    *ret_has_record = false;
    *ret_why = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct entry *e = &entries[i];
        *ret_why = e->why;
        if (e->why)
            continue;
        if (e->invalidates) { /* what was stored before is still what must not be lost */
            unit->valid = unit->is_staged = false;
            unit->damage = e->unit.damage;
            unit->source = e->unit.source;
            continue;
        }
        *unit = e->unit;
        *ret_has_record = true;
    }
}

static int settle(struct replay *r, struct sq_records *records, struct squall_error *err)
{
    records->units = sq_arena_alloc(r->arena, (r->entry_count + 1) * sizeof *records->units);
    records->left = sq_arena_alloc(r->arena, (r->entry_count + 1) * sizeof *records->left);
    if (!records->units || !records->left)
        return sq_error_memory(err, r->entry_count * sizeof *records->units);
    if (r->entry_count)
        qsort(r->entries, r->entry_count, sizeof *r->entries, by_unit);
    if (r->input_count)
        qsort(r->inputs, r->input_count, sizeof *r->inputs, by_input);
    for (size_t i = 0, end; i < r->entry_count; i = end) {
        uint64_t number = r->entries[i].unit.unit;
        bool has_record;
        const char *why;
        for (end = i; end < r->entry_count && r->entries[end].unit.unit == number; end++)
            continue;
        settle_unit(&r->entries[i], end - i, &records->units[records->unit_count], &has_record, &why);
        records->unit_count += has_record;
        if (why)
            records->left[records->left_count++] = (struct sq_record_left){number, why};
    }
    return 0;
}

struct journal_name {
    struct sq_record_source source;
    const char *name;
};

/* "epoch-000012-part-0.journal"; false where it is not written so, since then its place among the others is unknown. */
static bool is_journal(const char *name, struct sq_record_source *ret)
{
    char again[sizeof "epoch-999999999-part-999999999.journal"];
    if (sscanf(name, "epoch-%9u-part-%9u.journal", &ret->epoch, &ret->part) != 2 || ret->epoch == 0 || ret->epoch >= SQ_EPOCH_LIMIT)
        return false;
    snprintf(again, sizeof again, "epoch-%06u-part-%u.journal", ret->epoch, ret->part);
    return !strcmp(name, again);
}

static int by_source(const void *a, const void *b)
{
    const struct sq_record_source *x = &((const struct journal_name *)a)->source, *y = &((const struct journal_name *)b)->source;
    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

/* The journals among the names, in their order. */
static int sort_journals(const char *folder, char *const *names, size_t count, struct journal_name *ret, size_t *ret_count,
                         struct squall_error *err)
{
    *ret_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], "epoch-", 6) != 0)
            continue;
        if (!is_journal(names[i], &ret[*ret_count].source))
            return sq_error(err, SQUALL_ECORRUPT, "%s/%s: no name that a journal has; the records are damaged: rename or remove it", folder,
                            names[i]);
        ret[(*ret_count)++].name = names[i];
    }
    if (*ret_count)
        qsort(ret, *ret_count, sizeof *ret, by_source);
    return 0;
}

static int replay_all(struct replay *r, const char *folder, char *const *names, size_t count, struct squall_error *err)
{
    SQ_CLEANUP_FREE struct journal_name *journals = sq_alloc(count + 1, sizeof *journals);
    if (!journals)
        return sq_error_memory(err, count * sizeof *journals);
    SQ_TRY(sort_journals(folder, names, count, journals, &r->journal_count, err));
    for (size_t i = 0; i < r->journal_count; i++) {
        SQ_CLEANUP_FREE char *path = sq_path_join(folder, journals[i].name);
        if (!path)
            return sq_error_memory(err, strlen(folder));
        r->source = journals[i].source;
        SQ_TRY(replay_journal(r, path, err));
    }
    return 0;
}

static int replay_folder(struct replay *r, const char *folder, struct squall_error *err)
{
    char **names;
    size_t count;
    SQ_TRY(sq_folder_list_if_there(folder, &names, &count, err));
    int status = replay_all(r, folder, names, count, err);
    sq_names_free(names, count);
    return status;
}

static int load_once(const char *folder, struct sq_records *ret, struct squall_error *err)
{
    struct replay r = {.arena = sq_arena_new()};
    struct sq_records records = {.arena = r.arena};
    if (!r.arena)
        return sq_error_memory(err, sizeof r);
    int status = replay_folder(&r, folder, err);
    if (!status)
        status = settle(&r, &records, err);
    sq_free(r.entries);
    if (status) {
        sq_free(r.inputs);
        sq_arena_free(r.arena);
        return status;
    }
    records.inputs = r.inputs;
    records.input_count = r.input_count;
    records.journal_count = r.journal_count;
    records.line_count = r.line_count;
    records.last_epoch = r.source.epoch;
    records.command = r.command;
    records.last_run = r.last_run;
    records.planned = r.planned;
    *ret = records;
    return 0;
}

int sq_records_load(const char *folder, struct sq_records *ret, struct squall_error *err)
{
    enum { TRIES = 10 };
    int status =
        SQUALL_ENOTFOUND; /* journals that were listed and are gone: another process has put them together, or replaced the store */
    for (int i = 0; i < TRIES && status == SQUALL_ENOTFOUND; i++)
        status = load_once(folder, ret, err);
    return status;
}

void sq_records_done(struct sq_records *records)
{
    sq_free(records->inputs);
    sq_arena_free(records->arena);
    *records = (struct sq_records){0};
}

static int find_unit(const void *key, const void *member)
{
    uint64_t x = *(const uint64_t *)key, y = ((const struct sq_record_unit *)member)->unit;
    return (x > y) - (x < y);
}

const struct sq_record_unit *sq_records_unit(const struct sq_records *records, uint64_t unit)
{
    return records->unit_count ? bsearch(&unit, records->units, records->unit_count, sizeof *records->units, find_unit) : NULL;
}

static int find_left(const void *key, const void *member)
{
    uint64_t x = *(const uint64_t *)key, y = ((const struct sq_record_left *)member)->unit;
    return (x > y) - (x < y);
}

const char *sq_records_left(const struct sq_records *records, uint64_t unit)
{
    const struct sq_record_left *found =
        records->left_count ? bsearch(&unit, records->left, records->left_count, sizeof *records->left, find_left) : NULL;
    return found ? found->why : NULL;
}

const struct sq_record_array *sq_record_array_of(const struct sq_record_unit *unit, const char *name)
{
    for (size_t i = 0; i < unit->array_count; i++)
        if (!strcmp(unit->arrays[i].name, name))
            return &unit->arrays[i];
    return NULL;
}

bool sq_record_has_file(const struct sq_record_unit *unit, const struct sq_record_file *file)
{
    return unit->file_count && bsearch(file, unit->files, unit->file_count, sizeof *unit->files, by_file) != NULL;
}

bool sq_records_know_input(const struct sq_records *records, const struct sq_record_input *input)
{
    return records->input_count && bsearch(input, records->inputs, records->input_count, sizeof *records->inputs, by_input) != NULL;
}
