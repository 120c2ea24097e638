/* What squall verify found, told as it is found and in the report. */
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "convert/summary.h"
#include "convert/verify_internal.h"
#include <stdlib.h>

/* A store may claim more chunks than memory has room for lines. */
enum { LISTED_LIMIT = 100000 };

static void findings_done(struct sq_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        sq_free(findings->items[i].line);
    sq_free(findings->items);
}

void sq_verify_done(struct sq_verify *v)
{
    findings_done(&v->bad);
    findings_done(&v->absent);
    findings_done(&v->unchecked);
    sq_free(v->not_noted);
    sq_free(v->units);
    sq_mutex_done(&v->lock);
}

int sq_verify_add(struct sq_verify *v, struct sq_findings *list, size_t order, char *line, struct squall_error *err)
{
    if (!line)
        return sq_error_memory(err, sizeof *list->items);
    sq_text_make_visible(line);
    sq_mutex_lock(&v->lock);
    bool listed = list->count < LISTED_LIMIT;
    int status = listed ? SQ_GROW(list->items, list->capacity, list->count + 1, err) : 0;
    list->total += !status;
    if (!status && listed) {
        list->items[list->count++] = (struct sq_finding){order, line};
        if (v->events.message && !v->is_deferred)
            v->events.message(v->events.user, list == &v->absent ? SQUALL_CONVERT_NOTE : SQUALL_CONVERT_WARNING, line);
    }
    sq_mutex_unlock(&v->lock);
    if (status || !listed)
        sq_free(line);
    return status;
}

void sq_verify_chunk_done(struct sq_verify *v, uint64_t bytes)
{
    sq_mutex_lock(&v->lock);
    v->chunks_done++;
    v->bytes += bytes;
    if (v->events.progress && !v->at_the_rest)
        v->events.progress(v->events.user, v->chunks_done, v->chunk_count, v->bytes, 0);
    sq_mutex_unlock(&v->lock);
}

void sq_verify_forget(struct sq_verify *v)
{
    findings_done(&v->bad);
    findings_done(&v->unchecked);
    v->bad = v->unchecked = (struct sq_findings){0};
}

void sq_verify_tell(const struct sq_verify *v)
{
    for (size_t i = 0; i < v->bad.count && v->events.message; i++)
        v->events.message(v->events.user, SQUALL_CONVERT_WARNING, v->bad.items[i].line);
    for (size_t i = 0; i < v->unchecked.count && v->events.message; i++)
        v->events.message(v->events.user, SQUALL_CONVERT_WARNING, v->unchecked.items[i].line);
}

/* ---- report ---------------------------------------------------------------------------------------------------------------------- */

static int by_order(const void *a, const void *b)
{
    const struct sq_finding *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

static struct sq_json *lines_json(const struct sq_findings *findings)
{
    struct sq_json *v = sq_json_new_array();
    for (size_t i = 0; v && i < findings->count; i++) {
        if (sq_json_append(v, sq_json_new_string(findings->items[i].line))) {
            sq_json_free(v);
            return NULL;
        }
    }
    return v;
}

static void add_lines(const struct sq_findings *findings, struct sq_text *out)
{
    for (size_t i = 0; i < findings->count; i++)
        sq_text_printf(out, "%s\n", findings->items[i].line);
    if (findings->total > findings->count)
        sq_text_printf(out, "and %llu more\n", (unsigned long long)(findings->total - findings->count));
}

static void sort(struct sq_findings *findings)
{
    if (findings->count)
        qsort(findings->items, findings->count, sizeof *findings->items, by_order);
}

int sq_verify_write_report(struct sq_verify *v, bool recorded, char **ret_text, char **ret_json, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_CLEANUP_JSON struct sq_json *json = sq_json_new_object();
    char size[SQ_SIZE_TEXT_BYTES];
    sort(&v->bad);
    sort(&v->absent);
    sort(&v->unchecked);
    if (!json || sq_json_set_string(json, "store", v->store) || sq_json_set_string(json, "by", recorded ? "records" : "decoding") ||
        sq_json_set(json, "chunks", sq_json_new_uint(v->chunk_count)) || sq_json_set(json, "bytes", sq_json_new_uint(v->bytes)) ||
        sq_json_set(json, "bad", lines_json(&v->bad)) || sq_json_set(json, "absent", lines_json(&v->absent)) ||
        sq_json_set(json, "unchecked", lines_json(&v->unchecked)) || sq_json_set(json, "noted", sq_json_new_uint(v->noted)) ||
        sq_json_set(json, "not_noted", v->not_noted ? sq_json_new_string(v->not_noted) : sq_json_new_null()))
        return sq_error_memory(err, sizeof(void *));
    add_lines(&v->bad, &text);
    add_lines(&v->absent, &text);
    add_lines(&v->unchecked, &text);
    sq_size_text(v->bytes, size);
    sq_text_printf(&text, "%s: ", v->store);
    sq_text_add_count(&text, v->chunk_count, "chunk");
    sq_text_add(&text, recorded ? " compared with their records, " : " decoded");
    sq_text_printf(&text, "%s: %llu bad, %llu absent", recorded ? size : "", (unsigned long long)v->bad.total,
                   (unsigned long long)v->absent.total);
    if (v->unchecked.total) {
        sq_text_add(&text, "; ");
        sq_text_add_count(&text, v->unchecked.total, "array");
        sq_text_add(&text, " not checked");
    }
    sq_text_add(&text, "\n");
    if (v->noted) {
        sq_text_add_count(&text, v->noted, "unit");
        sq_text_add(&text, " noted as damaged: chunk_exists is false there until a conversion has written them anew\n");
    }
    if (v->not_noted) {
        sq_text_add(&text, "the damage is not noted in the store, which stays as it is: ");
        sq_text_add_visible(&text, v->not_noted);
        sq_text_add(&text, "\n");
    }
    if (recorded && v->bad.total)
        sq_text_printf(&text, "to mend it: %sgive the command that squall status tells, where the sources are\n",
                       v->noted ? "" : "remove the files of the store that are named, ");
    char *copy = sq_text_for_caller(&text);
    if (!copy)
        return sq_error_memory(err, text.length);
    int status = sq_json_for_caller(json, ret_json, err);
    if (status)
        free(copy);
    else
        *ret_text = copy;
    return status;
}
