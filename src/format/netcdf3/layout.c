/*
 * Where the variables of a NetCDF-3 file lie. Their sizes follow from their shapes; what the header says of them is not needed. Where it
 * says that one begins may be wrong in many ways, and each would read as numbers that nobody has stored: such a variable is listed, and its
 * data refused.
 */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "format/netcdf3/netcdf3.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sq_netcdf3_add_problem(struct sq_netcdf3 *f, struct squall_error *err, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    SQ_TRY(SQ_GROW(f->problems, f->problem_capacity, f->problem_count + 1, err));
    if (!(f->problems[f->problem_count] = sq_arena_strdup(f->memory, text)))
        return sq_error_memory(err, strlen(text));
    f->problem_count++;
    return 0;
}

/* The variable's data cannot be read: why, for whoever asks for them, and for whoever looks at the file. */
__attribute__((format(printf, 4, 5))) static int refuse(struct sq_netcdf3 *f, struct sq_netcdf3_variable *v, struct squall_error *err,
                                                        const char *format, ...)
{
    char text[256];
    va_list args;
    if (v->unsupported)
        return 0;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!(v->unsupported = sq_arena_strdup(f->memory, text)))
        return sq_error_memory(err, strlen(text));
    return sq_netcdf3_add_problem(f, err, "%s: byte %" PRIu64 ": variable %s: %s", sq_source_name(f->source), v->header_offset, v->name,
                                  text);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------------------------ */

static unsigned element_bytes(const struct sq_netcdf3 *f, const struct sq_netcdf3_variable *v)
{
    return sq_netcdf3_type_row(f->version, v->type)->size_bytes;
}

/* Of all of it, or of one record; false where that is beyond any file. */
static bool count_row(const struct sq_netcdf3 *f, struct sq_netcdf3_variable *v)
{
    v->row_bytes = element_bytes(f, v);
    for (unsigned d = v->is_record ? 1 : 0; d < v->rank; d++)
        if (!sq_mul_u64(v->row_bytes, v->shape[d], &v->row_bytes))
            return false;
    return v->row_bytes <= INT64_MAX;
}

static uint64_t padded(uint64_t bytes)
{
    return bytes + -bytes % 4;
}

/*
 * A record is one of each record variable, each padded to four bytes. But where there is only one record variable, nothing is padded: so the
 * format has been since its first version. False: too large for any file.
 */
static bool count_record(struct sq_netcdf3 *f)
{
    const struct sq_netcdf3_variable *last = NULL;
    for (size_t i = 0; i < f->variable_count; i++) {
        const struct sq_netcdf3_variable *v = &f->variables[i];
        if (!v->is_record)
            continue;
        last = v;
        if (!sq_add_u64(f->record_bytes, padded(v->row_bytes), &f->record_bytes) || f->record_bytes > INT64_MAX)
            return false;
    }
    if (last && f->record_bytes == padded(last->row_bytes))
        f->record_bytes = last->row_bytes;
    return true;
}

static int count_sizes(struct sq_netcdf3 *f, struct squall_error *err)
{
    bool records_fit = true;
    for (size_t i = 0; i < f->variable_count; i++) {
        struct sq_netcdf3_variable *v = &f->variables[i];
        if (count_row(f, v))
            continue;
        records_fit = records_fit && !v->is_record;
        SQ_TRY(refuse(f, v, err, "its dimensions make it larger than any file"));
    }
    records_fit = records_fit && count_record(f);
    for (size_t i = 0; i < f->variable_count && !records_fit; i++)
        if (f->variables[i].is_record)
            SQ_TRY(refuse(f, &f->variables[i], err, "records are larger than any file"));
    return 0;
}

/* ---- records ---------------------------------------------------------------------------------------------------------------------- */

static uint64_t first_record(const struct sq_netcdf3 *f)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < f->variable_count; i++)
        if (f->variables[i].is_record && f->variables[i].begin >= f->header_bytes && f->variables[i].begin < first)
            first = f->variables[i].begin;
    return first;
}

void sq_netcdf3_set_records(struct sq_netcdf3 *f, uint64_t count)
{
    f->record_count = count;
    for (size_t i = 0; i < f->dimension_count; i++)
        if (f->dimensions[i].is_record)
            f->dimensions[i].length = count;
    for (size_t i = 0; i < f->variable_count; i++)
        if (f->variables[i].is_record)
            ((uint64_t *)(uintptr_t)f->variables[i].shape)[0] = count;
}

/* A file that is being written to, or was by a program that never went back: as many records as there are whole. */
static uint64_t records_there(const struct sq_netcdf3 *f)
{
    const uint64_t first = first_record(f), file_bytes = sq_source_size(f->source);
    return f->record_bytes && first < file_bytes ? (file_bytes - first) / f->record_bytes : 0;
}

/* ---- places ----------------------------------------------------------------------------------------------------------------------- */

/* One behind the last byte; false where no file reaches that far. */
static bool end_of(const struct sq_netcdf3 *f, const struct sq_netcdf3_variable *v, uint64_t *ret)
{
    uint64_t end = v->begin, rows;
    if (v->is_record && f->record_count == 0) {
        *ret = end;
        return true;
    }
    const uint64_t apart = v->is_record ? f->record_count - 1 : 0;
    if (!sq_mul_u64(apart, f->record_bytes, &rows) || !sq_add_u64(end, rows, &end) || !sq_add_u64(end, v->row_bytes, &end))
        return false;
    *ret = end;
    return end <= INT64_MAX;
}

static int by_begin(const void *a, const void *b)
{
    const struct sq_netcdf3_variable *x = *(struct sq_netcdf3_variable *const *)a, *y = *(struct sq_netcdf3_variable *const *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->header_offset < y->header_offset ? -1 : x->header_offset > y->header_offset;
}

/* No two share bytes: those without records, and the first record of the others. */
static int check_overlaps(struct sq_netcdf3 *f, struct sq_netcdf3_variable **sorted, size_t count, struct squall_error *err)
{
    const struct sq_netcdf3_variable *before = NULL;
    for (size_t i = 0; i < count; i++) {
        struct sq_netcdf3_variable *v = sorted[i];
        if (before && v->begin - before->begin < before->row_bytes)
            SQ_TRY(refuse(f, v, err, "it is said to begin at byte %" PRIu64 ", which is within variable %s", v->begin, before->name));
        if (!before || v->begin + v->row_bytes > before->begin + before->row_bytes)
            before = v;
    }
    return 0;
}

static int check_place(struct sq_netcdf3 *f, struct sq_netcdf3_variable *v, uint64_t first, struct squall_error *err)
{
    const uint64_t file_bytes = sq_source_size(f->source);
    uint64_t end;
    if (v->begin < f->header_bytes)
        return refuse(f, v, err, "it is said to begin at byte %" PRIu64 ", which is within the header", v->begin);
    if (!end_of(f, v, &end))
        return refuse(f, v, err, "it ends beyond any file");
    if (v->is_record && v->begin - first > f->record_bytes - v->row_bytes)
        return refuse(f, v, err, "it is said to begin at byte %" PRIu64 ", which is behind the first record", v->begin);
    if (!v->is_record && v->begin >= first && f->record_count > 0)
        return refuse(f, v, err, "it is said to begin at byte %" PRIu64 ", which is among the records", v->begin);
    if (end > v->begin && v->begin >= file_bytes)
        return refuse(f, v, err, "it is said to begin at byte %" PRIu64 ", but the file ends at %" PRIu64 "; it is truncated", v->begin,
                      file_bytes);
    if (end > file_bytes && end > v->begin)
        return sq_netcdf3_add_problem(f, err,
                                      "%s: variable %s goes on to byte %" PRIu64 ", but the file ends at %" PRIu64 "; it is truncated",
                                      sq_source_name(f->source), v->name, end, file_bytes);
    return 0;
}

int sq_netcdf3_lay_out(struct sq_netcdf3 *f, struct squall_error *err)
{
    SQ_TRY(count_sizes(f, err));
    sq_netcdf3_set_records(f, f->streaming ? records_there(f) : f->record_count);
    SQ_CLEANUP_FREE struct sq_netcdf3_variable **sorted = sq_alloc(f->variable_count + 1, sizeof(struct sq_netcdf3_variable *));
    size_t count = 0;
    if (!sorted)
        return sq_error_memory(err, f->variable_count * sizeof *sorted);
    const uint64_t first = first_record(f);
    for (size_t i = 0; i < f->variable_count; i++) {
        struct sq_netcdf3_variable *v = &f->variables[i];
        if (v->unsupported || v->row_bytes == 0)
            continue;
        SQ_TRY(check_place(f, v, first, err));
        if (!v->unsupported)
            sorted[count++] = v;
    }
    if (count)
        qsort(sorted, count, sizeof *sorted, by_begin);
    return check_overlaps(f, sorted, count, err);
}

/* ---- growth ----------------------------------------------------------------------------------------------------------------------- */

static int refuse_growth(const struct sq_netcdf3 *f, const struct sq_netcdf3_variable *v, const char *why, struct squall_error *err)
{
    return sq_error(err, SQUALL_EREFUSED, "%s: variable %s %s; a file like that is not made longer: copy it", sq_source_name(f->source),
                    v->name, why);
}

int sq_netcdf3_check_growth(const struct sq_netcdf3 *f, uint64_t count, uint64_t *ret_file_bytes, struct squall_error *err)
{
    const uint64_t first = first_record(f), file_bytes = sq_source_size(f->source), most = f->version == 5 ? INT64_MAX : INT32_MAX;
    uint64_t end;
    for (size_t i = 0; i < f->variable_count; i++) {
        const struct sq_netcdf3_variable *v = &f->variables[i];
        if (v->unsupported)
            return refuse_growth(f, v, v->unsupported, err);
        if (!end_of(f, v, &end) || (end > v->begin && end > file_bytes))
            return refuse_growth(f, v, "is truncated", err);
        if (!v->is_record && v->row_bytes > 0 && v->begin >= first)
            return refuse_growth(f, v, "lies where records would come", err);
    }
    if (count > most || !sq_mul_u64(count, f->record_bytes, &end) || !sq_add_u64(end, first, &end) || end > INT64_MAX)
        return sq_error(err, SQUALL_EINVAL, "%s: a CDF-%u file has no room for %" PRIu64 " records", sq_source_name(f->source), f->version,
                        count);
    *ret_file_bytes = end > file_bytes ? end : file_bytes;
    return 0;
}
