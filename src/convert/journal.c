/*
 * A line of a journal carries its own checksum, so that replay tells a torn or damaged line from one that was
 * meant; a unit's line is complete in itself, so that replay needs no line before it.
 */
#include "convert/journal.h"
#include "base/crc32c.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "io/append_file.h"
#include "io/atomic_file.h"
#include "sys/file.h"
#include "sys/mutex.h"
#include <string.h>

struct sq_journal {
    struct sq_mutex lock;
    char *path;
    struct sq_text head;         /* its first line */
    struct sq_append_file *file; /* NULL: nothing has been said yet */
};

static void add_line(const struct sq_json *v, struct sq_text *out)
{
    SQ_CLEANUP_TEXT struct sq_text json = SQ_TEXT_INIT;
    if (!v || sq_json_write(v, false, &json, NULL)) {
        out->failed = true;
        return;
    }
    sq_text_printf(out, "%08x ", sq_crc32c(0, json.data, json.length));
    sq_text_add_bytes(out, json.data, json.length);
    sq_text_add(out, "\n");
}

/* Lock held. */
static int begin(struct sq_journal *journal, struct squall_error *err)
{
    if (journal->file)
        return 0;
    SQ_TRY(sq_append_file_new(journal->path, &journal->file, err));
    return sq_append_file_add(journal->file, journal->head.data, journal->head.length, err);
}

int sq_journal_begin(struct sq_journal *journal, struct squall_error *err)
{
    sq_mutex_lock(&journal->lock);
    int status = begin(journal, err);
    sq_mutex_unlock(&journal->lock);
    return status;
}

static int append(struct sq_journal *journal, const struct sq_text *lines, struct squall_error *err)
{
    if (lines->failed)
        return sq_error_memory(err, lines->length);
    sq_mutex_lock(&journal->lock);
    int status = begin(journal, err);
    if (!status)
        status = sq_append_file_add(journal->file, lines->data, lines->length, err);
    sq_mutex_unlock(&journal->lock);
    return status;
}

int sq_journal_new(const char *folder, struct sq_record_source source, const char *command, struct sq_journal **ret,
                   struct squall_error *err)
{
    if (source.epoch >= SQ_EPOCH_LIMIT)
        return sq_error(err, SQUALL_ECORRUPT, "%s: there is no number left for another journal; " SQ_RECORDS_DAMAGED, folder);
    struct sq_journal *journal = sq_alloc_zero(1, sizeof *journal);
    SQ_CLEANUP_JSON struct sq_json *head = sq_json_new_object();
    if (!journal)
        return sq_error_memory(err, sizeof *journal);
    sq_mutex_init(&journal->lock);
    journal->path = sq_format("%s/epoch-%06u-part-%u.journal", folder, source.epoch, source.part);
    bool failed = !head || sq_json_set_int(head, "format", SQ_RECORD_FORMAT) || sq_json_set_string(head, "command", command);
    if (!failed)
        add_line(head, &journal->head);
    if (failed || !journal->path || journal->head.failed) {
        sq_journal_close(journal);
        return sq_error_memory(err, strlen(command));
    }
    *ret = journal;
    return 0;
}

void sq_journal_close(struct sq_journal *journal)
{
    if (!journal)
        return;
    sq_append_file_close(journal->file);
    sq_text_done(&journal->head);
    sq_free(journal->path);
    sq_mutex_done(&journal->lock);
    sq_free(journal);
}

/* The constructors give NULL when memory is out, and append and set pass that on; one check at the end of each is enough. */
static struct sq_json *file_json(const struct sq_record_file *file)
{
    struct sq_json *v = sq_json_new_array();
    if (sq_json_append(v, sq_json_new_string(file->name)) || sq_json_append(v, sq_json_new_uint(file->size_bytes)) ||
        sq_json_append(v, sq_json_new_int(file->mtime_ns))) {
        sq_json_free(v);
        return NULL;
    }
    return v;
}

static struct sq_json *chunk_json(const struct sq_record_chunk *chunk)
{
    if (chunk->size_bytes == 0)
        return sq_json_new_null();
    struct sq_json *v = sq_json_new_array();
    if (sq_json_append(v, sq_json_new_uint(chunk->size_bytes)) || sq_json_append(v, sq_json_new_uint(chunk->crc32c))) {
        sq_json_free(v);
        return NULL;
    }
    return v;
}

static int set_ranges(struct sq_json *object, const char *key, const struct sq_ranges *set)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    sq_ranges_write(set, &text);
    return text.failed ? SQUALL_ENOMEM : sq_json_set_string(object, key, sq_text_string(&text));
}

static struct sq_json *array_json(const struct sq_record_array *a)
{
    struct sq_json *v = sq_json_new_object(), *chunks = sq_json_new_array();
    int status = v && chunks ? 0 : SQUALL_ENOMEM;
    for (size_t i = 0; i < a->chunk_count && !status; i++)
        status = sq_json_append(chunks, chunk_json(&a->chunks[i]));
    if (status)
        sq_json_free(chunks);
    if (status || (a->length_count && sq_json_set(v, "lengths", sq_json_new_uints(a->lengths, a->length_count))) ||
        set_ranges(v, "stored", &a->stored) || (a->bad.count && set_ranges(v, "bad", &a->bad)) || sq_json_set(v, "chunks", chunks)) {
        sq_json_free(v);
        return NULL;
    }
    return v;
}

static int fill_unit(struct sq_json *v, const char *key, const struct sq_record_unit *unit)
{
    struct sq_json *files = sq_json_new_array(), *arrays = sq_json_new_object(), *counts = sq_json_new_array();
    int status = files && arrays && counts ? 0 : SQUALL_ENOMEM;
    for (size_t i = 0; i < unit->file_count && !status; i++)
        status = sq_json_append(files, file_json(&unit->files[i]));
    for (size_t i = 0; i < unit->array_count && !status; i++)
        status = sq_json_set(arrays, unit->arrays[i].name, array_json(&unit->arrays[i]));
    for (size_t i = 0; i < unit->init_count && !status; i++)
        status = sq_json_append(counts, sq_json_new_uint(unit->field_counts[i]));
    if (status) {
        sq_json_free(files);
        sq_json_free(arrays);
        sq_json_free(counts);
        return status;
    }
    /* each is the object's own once handed over, whatever comes of it */
    int first = sq_json_set(v, key, sq_json_new_uint(unit->unit));
    int second = sq_json_set(v, "files", files);
    int third = sq_json_set(v, "arrays", arrays);
    int fourth = sq_json_set(v, "field_counts", counts);
    return first || second || third || fourth ? SQUALL_ENOMEM : 0;
}

/* ---- lines ------------------------------------------------------------------------------------------------------------------------ */

static int unit_line(const char *key, const struct sq_record_unit *unit, struct sq_text *out, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    if (!v || fill_unit(v, key, unit))
        return sq_error_memory(err, sizeof *unit);
    add_line(v, out);
    return 0;
}

/* damage may be NULL. */
static int invalid_line(uint64_t unit, const char *damage, struct sq_text *out, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    if (!v || sq_json_set(v, "invalid", sq_json_new_uint(unit)) || (damage && sq_json_set_string(v, "damage", damage)))
        return sq_error_memory(err, sizeof unit);
    add_line(v, out);
    return 0;
}

static int left_line(uint64_t unit, const char *why, struct sq_text *out, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    if (!v || sq_json_set(v, "left", sq_json_new_uint(unit)) || sq_json_set_string(v, "why", why))
        return sq_error_memory(err, strlen(why));
    add_line(v, out);
    return 0;
}

static int input_lines(const struct sq_record_input *inputs, size_t count, struct sq_text *out, struct squall_error *err)
{
    for (size_t i = 0; i < count; i++) {
        SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
        if (!v || sq_json_set(v, "input", file_json(&inputs[i].file)) || sq_json_set_string(v, "what", inputs[i].what))
            return sq_error_memory(err, sizeof *inputs);
        add_line(v, out);
    }
    return 0;
}

static int run_line(const struct sq_record_run *run, struct sq_text *out, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    struct sq_json *of_run = sq_json_new_object();
    if (!v || sq_json_set(v, "run", of_run) || sq_json_set(of_run, "units", sq_json_new_uint(run->units)) ||
        sq_json_set(of_run, "bytes_in", sq_json_new_uint(run->bytes_in)) ||
        sq_json_set(of_run, "bytes_out", sq_json_new_uint(run->bytes_out)) ||
        sq_json_set(of_run, "milliseconds", sq_json_new_uint(run->milliseconds)) ||
        sq_json_set(of_run, "ended", sq_json_new_int(run->ended_s)))
        return sq_error_memory(err, sizeof *run);
    add_line(v, out);
    return 0;
}

static int planned_line(const struct sq_ranges *units, struct sq_text *out, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    if (!v || set_ranges(v, "planned", units))
        return sq_error_memory(err, units->count * sizeof *units->items);
    add_line(v, out);
    return 0;
}

/* ---- additions -------------------------------------------------------------------------------------------------------------------- */

int sq_journal_add_unit(struct sq_journal *journal, const struct sq_record_unit *unit, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text line = SQ_TEXT_INIT;
    SQ_TRY(unit_line("unit", unit, &line, err));
    return append(journal, &line, err);
}

int sq_journal_add_staged(struct sq_journal *journal, const struct sq_record_unit *unit, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text line = SQ_TEXT_INIT;
    SQ_TRY(unit_line("staged", unit, &line, err));
    return append(journal, &line, err);
}

int sq_journal_add_invalid(struct sq_journal *journal, uint64_t unit, const char *damage, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text line = SQ_TEXT_INIT;
    SQ_TRY(invalid_line(unit, damage, &line, err));
    return append(journal, &line, err);
}

int sq_journal_add_left(struct sq_journal *journal, uint64_t unit, const char *why, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text line = SQ_TEXT_INIT;
    SQ_TRY(left_line(unit, why, &line, err));
    return append(journal, &line, err);
}

int sq_journal_add_inputs(struct sq_journal *journal, const struct sq_record_input *inputs, size_t count, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text lines = SQ_TEXT_INIT;
    SQ_TRY(input_lines(inputs, count, &lines, err));
    return count ? append(journal, &lines, err) : 0;
}

int sq_journal_add_planned(struct sq_journal *journal, const struct sq_ranges *units, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text line = SQ_TEXT_INIT;
    SQ_TRY(planned_line(units, &line, err));
    return append(journal, &line, err);
}

int sq_journal_add_run(struct sq_journal *journal, const struct sq_record_run *run, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text line = SQ_TEXT_INIT;
    SQ_TRY(run_line(run, &line, err));
    return append(journal, &line, err);
}

/* ---- many journals into one ------------------------------------------------------------------------------------------------------- */

enum { JOURNALS_FEW = 64, LINES_FEW = 4096 };

static bool are_scattered(const struct sq_records *records)
{
    const size_t needed = records->unit_count + records->left_count + records->input_count;
    return records->journal_count > JOURNALS_FEW ||
           (records->line_count > LINES_FEW && (records->line_count - records->journal_count) / 2 > needed);
}

/* The last words: replayed behind any of the journals that they come from they say the same. */
static int all_lines(const struct sq_records *records, struct sq_text *out, struct squall_error *err)
{
    for (size_t i = 0; i < records->unit_count; i++) {
        const struct sq_record_unit *unit = &records->units[i];
        SQ_TRY(unit_line(unit->is_staged ? "staged" : "unit", unit, out, err));
        if (!unit->valid && !unit->is_staged)
            SQ_TRY(invalid_line(unit->unit, unit->damage, out, err));
    }
    for (size_t i = 0; i < records->left_count; i++)
        SQ_TRY(left_line(records->left[i].unit, records->left[i].why, out, err));
    SQ_TRY(input_lines(records->inputs, records->input_count, out, err));
    if (records->last_run.units)
        SQ_TRY(run_line(&records->last_run, out, err));
    if (records->planned.count)
        SQ_TRY(planned_line(&records->planned, out, err));
    return out->failed ? sq_error_memory(err, out->length) : 0;
}

/* All that came before it, by name. */
static int remove_others(const char *folder, const char *kept, struct squall_error *err)
{
    char **names;
    size_t count;
    int status = sq_folder_list(folder, &names, &count, err);
    if (status)
        return status;
    for (size_t i = 0; i < count && !status; i++) {
        if (strncmp(names[i], "epoch-", 6) != 0 || !strcmp(names[i], kept))
            continue;
        SQ_CLEANUP_FREE char *path = sq_path_join(folder, names[i]);
        status = path ? sq_file_remove(path, err) : sq_error_memory(err, strlen(folder));
    }
    sq_names_free(names, count);
    return status;
}

/* *ret_path: the caller's; NULL: there is such a journal already. */
static int write_all(const char *folder, const struct sq_records *records, char **ret_path, struct squall_error *err)
{
    struct sq_journal *journal = NULL;
    SQ_CLEANUP_TEXT struct sq_text lines = SQ_TEXT_INIT;
    bool made = false;
    const struct sq_record_source source = {records->last_epoch + 1, 0};
    SQ_TRY(sq_journal_new(folder, source, records->command ? records->command : "squall convert", &journal, err));
    sq_text_add_bytes(&lines, journal->head.data, journal->head.length);
    int status = all_lines(records, &lines, err);
    if (!status)
        status = sq_atomic_create(journal->path, lines.data, lines.length, &made, err);
    if (made) {
        *ret_path = journal->path;
        journal->path = NULL;
    }
    sq_journal_close(journal);
    return status;
}

int sq_journals_join(const char *folder, struct sq_records *records, struct squall_error *err)
{
    char *made = NULL;
    if (!are_scattered(records))
        return 0;
    int status = write_all(folder, records, &made, err);
    SQ_CLEANUP_FREE char *path = made;
    if (status || !path)
        return status;
    SQ_TRY(remove_others(folder, sq_path_name(path), err));
    records->last_epoch++;
    return 0;
}

int sq_journals_copy(const char *folder, const struct sq_records *records, struct squall_error *err)
{
    char *made = NULL;
    int status = write_all(folder, records, &made, err);
    SQ_CLEANUP_FREE char *path = made;
    return status || path ? status : sq_error(err, SQUALL_ECORRUPT, "%s: it has records already", folder);
}
