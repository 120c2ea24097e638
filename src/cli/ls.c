/* squall ls: a row per GRIB field or per array. The table of columns serves -p, -w, the header line and JSON. */
#include "commands.h"
#include "open.h"
#include "output.h"
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COLUMN_LIMIT = 40, CELL_BYTES = 256, ROWS_KEPT = 8192, TYPE_COLUMNS_MOST = 40 };

/* One row: a field, or an array where array is set. */
struct row {
    const struct squall_grib_field *field;
    const struct squall_array_info *array;
    uint64_t stored_bytes; /* of the array */
    bool stored_is_known;
    const char *path;
    size_t number; /* from 1, within the file */
};

struct column {
    const char *key;
    int width; /* at least; negative: left-aligned */
    bool is_text;
    void (*cell)(const struct row *r, char out[CELL_BYTES]);
    void (*json)(const struct row *r); /* NULL: the cell */
};

#define TEXT_CELL(name, expression)                                                                                                        \
    static void name(const struct row *r, char out[CELL_BYTES])                                                                            \
    {                                                                                                                                      \
        const char *text = (expression);                                                                                                   \
        snprintf(out, CELL_BYTES, "%s", text ? text : "-");                                                                                \
    }
#define NUMBER_CELL(name, expression)                                                                                                      \
    static void name(const struct row *r, char out[CELL_BYTES])                                                                            \
    {                                                                                                                                      \
        snprintf(out, CELL_BYTES, "%" PRId64, (int64_t)(expression));                                                                      \
    }

NUMBER_CELL(cell_number, r->number)
NUMBER_CELL(cell_offset, r->field->offset)
NUMBER_CELL(cell_size, r->field->size_bytes)
NUMBER_CELL(cell_param_id, r->field->param_id)
NUMBER_CELL(cell_centre, r->field->centre)
NUMBER_CELL(cell_edition, r->field->edition)
NUMBER_CELL(cell_bits, r->field->bits_per_value)
NUMBER_CELL(cell_points, r->field->point_count)
TEXT_CELL(cell_short_name, r->field->short_name)
TEXT_CELL(cell_name, r->field->name)
TEXT_CELL(cell_units, r->field->units)
TEXT_CELL(cell_cf_name, r->field->cf_name)
TEXT_CELL(cell_level_type, r->field->level_type)
TEXT_CELL(cell_step_type, r->field->step_type)
TEXT_CELL(cell_packing, r->field->packing)
TEXT_CELL(cell_grid, r->field->grid)
TEXT_CELL(cell_reason, r->field->unsupported)
/* Cells are cut where they are very long; JSON has them whole. */
#define WHOLE_TEXT(name, expression)                                                                                                       \
    TEXT_CELL(cell_##name, expression)                                                                                                     \
    static void json_##name(const struct row *r)                                                                                           \
    {                                                                                                                                      \
        print_json_string(stdout, (expression));                                                                                           \
    }
WHOLE_TEXT(path, r->path)
WHOLE_TEXT(array_name, r->array->name)
WHOLE_TEXT(array_codecs, r->array->codecs)
WHOLE_TEXT(array_reason, r->array->unsupported)
WHOLE_TEXT(array_type, r->array->type_name)

static void cell_member(const struct row *r, char out[CELL_BYTES])
{
    snprintf(out, CELL_BYTES, r->field->number < 0 ? "-" : "%d", (int)r->field->number);
}

/* 850, or 0-10 for a layer */
static void cell_level(const struct row *r, char out[CELL_BYTES])
{
    char top[SHORT_TEXT_BYTES], bottom[SHORT_TEXT_BYTES];
    if (isnan(r->field->level))
        snprintf(out, CELL_BYTES, "-");
    else if (isnan(r->field->level_bottom))
        snprintf(out, CELL_BYTES, "%s", number_text(r->field->level, top));
    else
        snprintf(out, CELL_BYTES, "%s-%s", number_text(r->field->level, top), number_text(r->field->level_bottom, bottom));
}

/* hours, minutes (90m) or seconds (10s); an interval as 0-6 */
static void cell_step(const struct row *r, char out[CELL_BYTES])
{
    char begin[SHORT_TEXT_BYTES], end[SHORT_TEXT_BYTES];
    duration_text(r->field->step_end_s, end);
    if (r->field->step_begin_s == r->field->step_end_s)
        snprintf(out, CELL_BYTES, "%s", end);
    else
        snprintf(out, CELL_BYTES, "%s-%s", duration_text(r->field->step_begin_s, begin), end);
}

/* The first surface, and the second of a layer. */
static void json_level(const struct row *r)
{
    print_json_double(stdout, r->field->level);
    fputs(", \"bottomLevel\": ", stdout);
    print_json_double(stdout, r->field->level_bottom);
}

/* Hours: of the end, as ecCodes' step is, and of the beginning. */
static void json_step(const struct row *r)
{
    print_json_double(stdout, (double)r->field->step_end_s / 3600);
    fputs(", \"startStep\": ", stdout);
    print_json_double(stdout, (double)r->field->step_begin_s / 3600);
}

static void json_member(const struct row *r)
{
    if (r->field->number < 0)
        fputs("null", stdout);
    else
        printf("%d", (int)r->field->number);
}

static void cell_date(const struct row *r, char out[CELL_BYTES])
{
    char text[SHORT_TEXT_BYTES];
    snprintf(out, CELL_BYTES, "%s", time_text(r->field->reference_time_s, text));
}

static void list_lengths(const uint64_t *lengths, const char *const *dims, unsigned rank, char out[CELL_BYTES])
{
    size_t at = (size_t)snprintf(out, CELL_BYTES, "(");
    for (unsigned d = 0; d < rank && at < CELL_BYTES; d++)
        at += (size_t)snprintf(out + at, CELL_BYTES - at, "%s%s%s%" PRIu64, d ? ", " : "", dims ? dims[d] : "",
                               dims && dims[d][0] ? "=" : "", lengths[d]);
    if (at < CELL_BYTES)
        snprintf(out + at, CELL_BYTES - at, ")");
}

static void cell_array_shape(const struct row *r, char out[CELL_BYTES])
{
    list_lengths(r->array->shape, r->array->dims, r->array->rank, out);
}

static void cell_array_chunks(const struct row *r, char out[CELL_BYTES])
{
    list_lengths(r->array->chunks, NULL, r->array->rank, out);
}

static void json_lengths(const uint64_t *lengths, unsigned rank)
{
    putchar('[');
    for (unsigned d = 0; d < rank; d++)
        printf("%s%" PRIu64, d ? ", " : "", lengths[d]);
    putchar(']');
}

/* With the names, which the text form has in the same column. */
static void json_array_shape(const struct row *r)
{
    json_lengths(r->array->shape, r->array->rank);
    fputs(", \"dims\": [", stdout);
    for (unsigned d = 0; d < r->array->rank; d++) {
        fputs(d ? ", " : "", stdout);
        print_json_string(stdout, r->array->dims[d]);
    }
    putchar(']');
}

static void json_array_chunks(const struct row *r)
{
    json_lengths(r->array->chunks, r->array->rank);
}

/* In memory; elements of variable length are not known until they are read. */
static bool array_bytes(const struct row *r, uint64_t *ret)
{
    uint64_t bytes = r->array->element_bytes;
    for (unsigned d = 0; d < r->array->rank; d++)
        bytes *= r->array->shape[d];
    *ret = bytes;
    return !r->array->unsupported && r->array->type != SQUALL_STRING && r->array->type != SQUALL_BYTES;
}

static void cell_array_size(const struct row *r, char out[CELL_BYTES])
{
    uint64_t bytes = 0;
    const bool known = array_bytes(r, &bytes);
    snprintf(out, CELL_BYTES, known ? "%" PRIu64 : "-", bytes);
}

static void cell_array_stored(const struct row *r, char out[CELL_BYTES])
{
    snprintf(out, CELL_BYTES, r->stored_is_known ? "%" PRIu64 : "-", r->stored_bytes);
}

/* How many bytes in memory a stored one becomes. */
static void cell_array_ratio(const struct row *r, char out[CELL_BYTES])
{
    uint64_t bytes = 0;
    const bool known = array_bytes(r, &bytes) && r->stored_is_known && r->stored_bytes > 0;
    snprintf(out, CELL_BYTES, known ? "%.2f" : "-", known ? (double)bytes / (double)r->stored_bytes : 0);
}

static const struct column field_columns[] = {
    {"number", 6, false, cell_number, NULL},
    {"offset", 10, false, cell_offset, NULL},
    {"size", 9, false, cell_size, NULL},
    {"shortName", -10, true, cell_short_name, NULL},
    {"typeOfLevel", -20, true, cell_level_type, NULL},
    {"level", 7, true, cell_level, json_level},
    {"step", 6, true, cell_step, json_step},
    {"stepType", -8, true, cell_step_type, NULL},
    {"date", -19, true, cell_date, NULL},
    {"member", 6, true, cell_member, json_member},
    {"packing", -12, true, cell_packing, NULL},
    {"bits", 4, false, cell_bits, NULL},
    {"grid", -10, true, cell_grid, NULL},
    {"reason", -1, true, cell_reason, NULL}, /* these by default, the rest on request */
    {"name", -30, true, cell_name, NULL},
    {"paramId", 7, false, cell_param_id, NULL},
    {"units", -12, true, cell_units, NULL},
    {"cfName", -30, true, cell_cf_name, NULL},
    {"centre", 6, false, cell_centre, NULL},
    {"edition", 7, false, cell_edition, NULL},
    {"points", 9, false, cell_points, NULL},
    {"path", -1, true, cell_path, json_path},
};
enum { FIELD_COLUMNS = sizeof field_columns / sizeof *field_columns, FIELD_DEFAULTS = 14 };

static const struct column array_columns[] = {
    {"name", -12, true, cell_array_name, json_array_name},
    {"type", -8, true, cell_array_type, json_array_type},
    {"shape", -20, true, cell_array_shape, json_array_shape},
    {"chunks", -12, true, cell_array_chunks, json_array_chunks},
    {"codecs", -12, true, cell_array_codecs, json_array_codecs},
    {"size", 9, false, cell_array_size, NULL},
    {"stored", 9, false, cell_array_stored, NULL},
    {"ratio", 6, false, cell_array_ratio, NULL},
    {"reason", -1, true, cell_array_reason, json_array_reason},
    {"path", -1, true, cell_path, json_path},
};
enum { ARRAY_COLUMNS = sizeof array_columns / sizeof *array_columns, ARRAY_DEFAULTS = 9 };

/* Rows are kept, as text, until the columns are as wide as they must be. */
struct listing {
    const struct arguments *arguments;
    struct text_list paths;                     /* those that were given, patterns expanded */
    const struct column *columns[COLUMN_LIMIT]; /* to print */
    size_t widths[COLUMN_LIMIT];
    size_t column_count;
    const struct column *known;
    size_t known_count;
    size_t rows; /* so far */
    char *kept;  /* their cells, each with its \0 */
    size_t kept_bytes, kept_capacity, kept_rows;
};

static const struct column *find_column(const struct listing *l, const char *key, size_t length)
{
    for (size_t i = 0; i < l->known_count; i++)
        if (strlen(l->known[i].key) == length && !strncmp(l->known[i].key, key, length))
            return &l->known[i];
    return NULL;
}

static bool unknown_key(const struct listing *l, const char *key, size_t length)
{
    fprintf(stderr, "squall ls: no key %.*s; there are", (int)length, key);
    for (size_t i = 0; i < l->known_count; i++)
        fprintf(stderr, " %s", l->known[i].key);
    fputc('\n', stderr);
    return false;
}

static void add_column(struct listing *l, const struct column *c)
{
    l->widths[l->column_count] = (size_t)abs(c->width);
    l->columns[l->column_count++] = c;
}

/* Which columns to print, and whether every key of -w is one. */
static bool choose_columns(struct listing *l, size_t default_count)
{
    const char *keys = l->arguments->print_keys;
    for (size_t i = 0; !keys && i < default_count; i++)
        add_column(l, &l->known[i]);
    if (!keys && l->paths.count > 1 && !joins_files(l->arguments))
        add_column(l, find_column(l, "path", 4));
    while (keys && *keys) {
        size_t length = strcspn(keys, ",");
        const struct column *c = find_column(l, keys, length);
        if (!c || l->column_count == COLUMN_LIMIT)
            return unknown_key(l, keys, length);
        add_column(l, c);
        keys += length + (keys[length] == ',');
    }
    for (size_t i = 0; i < l->arguments->where.count; i++)
        for (const char *rule = l->arguments->where.items[i]; *rule;) {
            size_t length = strcspn(rule, ","), key = strcspn(rule, "=");
            if (key >= length)
                return complain("squall ls: -w %s: KEY=VALUE is wanted", rule);
            if (!find_column(l, rule, key))
                return unknown_key(l, rule, key);
            rule += length + (rule[length] == ',');
        }
    return true;
}

/* Is the cell one of a|b|c? Numbers are equal by value: level=500 finds 500.0. */
static bool cell_matches(const char *cell, const char *wanted, size_t length)
{
    for (const char *end = wanted + length; wanted < end;) {
        size_t part = strcspn(wanted, "|");
        if (part > (size_t)(end - wanted))
            part = (size_t)(end - wanted);
        if (strlen(cell) == part && !strncmp(cell, wanted, part))
            return true;
        char *cell_end, *wanted_end;
        double a = strtod(cell, &cell_end), b = strtod(wanted, &wanted_end);
        if (cell[0] && !*cell_end && wanted_end == wanted + part && part && a == b)
            return true;
        wanted += part + 1;
    }
    return false;
}

static bool row_is_wanted(const struct listing *l, const struct row *r)
{
    char cell[CELL_BYTES];
    for (size_t i = 0; i < l->arguments->where.count; i++)
        for (const char *rule = l->arguments->where.items[i]; *rule;) {
            size_t length = strcspn(rule, ","), key = strcspn(rule, "=");
            find_column(l, rule, key)->cell(r, cell);
            if (!cell_matches(cell, rule + key + 1, length - key - 1))
                return false;
            rule += length + (rule[length] == ',');
        }
    return true;
}

static void print_row_json(struct listing *l, const struct row *r)
{
    char cell[CELL_BYTES];
    fputs(l->rows ? ",\n {" : "[\n {", stdout);
    for (size_t i = 0; i < l->column_count; i++) {
        const struct column *c = l->columns[i];
        c->cell(r, cell);
        printf("%s\"%s\": ", i ? ", " : "", c->key);
        if (c->json)
            c->json(r);
        else if (c->is_text || !strcmp(cell, "-"))
            print_json_string(stdout, strcmp(cell, "-") ? cell : NULL);
        else
            fputs(cell, stdout);
    }
    fputc('}', stdout);
}

static void print_cell(const struct listing *l, size_t column, const char *cell, size_t length)
{
    static const char SPACES[CELL_BYTES + 1] = {[0 ... CELL_BYTES - 1] = ' '};
    size_t width = l->widths[column], padding = width > length ? width - length : 0;
    bool last = column + 1 == l->column_count, left = l->columns[column]->width < 0;
    if (!left)
        fwrite(SPACES, 1, padding, stdout);
    fwrite(cell, 1, length, stdout);
    if (left && !last)
        fwrite(SPACES, 1, padding, stdout);
    fputc(last ? '\n' : ' ', stdout);
}

static void print_kept(struct listing *l, bool first)
{
    const char *cell = l->kept;
    for (size_t i = 0; first && isatty(STDOUT_FILENO) && i < l->column_count; i++)
        print_cell(l, i, l->columns[i]->key, strlen(l->columns[i]->key));
    for (size_t row = 0; row < l->kept_rows; row++) {
        for (size_t i = 0; i < l->column_count; i++) {
            size_t length = strlen(cell);
            print_cell(l, i, cell, length);
            cell += length + 1;
        }
    }
    l->kept_rows = l->kept_bytes = 0;
}

/* Types of structures are long; -p type has them whole. */
static void cut(char *cell, size_t columns)
{
    if (strlen(cell) <= columns)
        return;
    for (size_t i = columns - 3; i < columns; i++)
        cell[i] = '.';
    cell[columns] = 0;
}

static bool keep_row(struct listing *l, const struct row *r)
{
    size_t most = l->kept_bytes + l->column_count * CELL_BYTES;
    if (most > l->kept_capacity) {
        size_t capacity = most + l->kept_capacity;
        char *grown = realloc(l->kept, capacity);
        if (!grown)
            return complain("squall: out of memory");
        l->kept = grown;
        l->kept_capacity = capacity;
    }
    for (size_t i = 0; i < l->column_count; i++) {
        char *cell = l->kept + l->kept_bytes;
        l->columns[i]->cell(r, cell);
        if (l->columns[i]->cell == cell_array_type && !l->arguments->print_keys)
            cut(cell, TYPE_COLUMNS_MOST);
        size_t length = strlen(cell);
        if (length > l->widths[i])
            l->widths[i] = length;
        l->kept_bytes += length + 1;
    }
    l->kept_rows++;
    return true;
}

/* false: out of memory */
static bool add_row(struct listing *l, const struct row *r)
{
    if (!row_is_wanted(l, r))
        return true;
    if (l->arguments->json)
        print_row_json(l, r);
    else if (!keep_row(l, r))
        return false;
    l->rows++;
    if (l->kept_rows == ROWS_KEPT)
        print_kept(l, l->rows == ROWS_KEPT);
    return true;
}

/* Behind the last row. */
static void end_rows(struct listing *l)
{
    if (l->kept_rows)
        print_kept(l, l->rows == l->kept_rows);
    free(l->kept);
    l->kept = NULL;
}

static bool is_asked(const struct listing *l, const char *key)
{
    const size_t length = strlen(key);
    for (size_t i = 0; i < l->column_count; i++)
        if (!strcmp(l->columns[i]->key, key))
            return true;
    for (size_t i = 0; i < l->arguments->where.count; i++)
        for (const char *rule = l->arguments->where.items[i]; rule; rule = strchr(rule, ',') ? strchr(rule, ',') + 1 : NULL)
            if (!strncmp(rule, key, length) && rule[length] == '=')
                return true;
    return false;
}

/* A store's chunks are looked at one by one: of very many only where -p or -w asks. */
static bool is_worth_counting(const struct listing *l, const squall_dataset *ds, const struct squall_array_info *info)
{
    enum { CHUNKS_MOST = 50000 };
    uint64_t chunks = 1;
    for (unsigned d = 0; d < info->rank; d++) {
        const uint64_t length = info->shards ? info->shards[d] : info->chunks[d];
        chunks *= length ? (info->shape[d] + length - 1) / length : 1;
        if (chunks > CHUNKS_MOST)
            break;
    }
    return l->arguments->print_keys || l->arguments->where.count || chunks <= CHUNKS_MOST ||
           strncmp(squall_dataset_info(ds).format, "zarr", 4) != 0;
}

static int list_arrays(struct listing *l, squall_dataset *ds, const char *path)
{
    size_t count = squall_dataset_info(ds).array_count;
    const bool with_stored = is_asked(l, "stored") || is_asked(l, "ratio");
    int code = EXIT_DONE;
    for (size_t i = 0; code != EXIT_FAILED && i < count; i++) {
        struct squall_error err = SQUALL_ERROR_INIT;
        const squall_array *array = squall_dataset_array_at(ds, i);
        struct squall_array_info info = squall_array_info(array);
        struct row row = {.array = &info, .path = path, .number = i + 1};
        if (with_stored && !info.unsupported && is_worth_counting(l, ds, &info)) {
            row.stored_is_known = !squall_array_stored_bytes(array, &row.stored_bytes, &err);
            if (!row.stored_is_known)
                warn_line("%s", err.message);
            code = row.stored_is_known ? code : EXIT_INPUTS;
        }
        code = add_row(l, &row) ? code : EXIT_FAILED;
    }
    return code;
}

/* Does the file begin as zip files or NetCDF-3 files do, or HDF5 files (also behind 512, 1024, … bytes of a user's)? */
static bool begins_as_arrays(FILE *file, off_t size_bytes)
{
    static const char BEGINNINGS[][5] = {"PK\3\4", "CDF\1", "CDF\2", "CDF\5"};
    enum { SIGNATURE_BYTES = 8, FIRST_BLOCK_BYTES = 512 };
    char bytes[SIGNATURE_BYTES];
    for (off_t at = 0; at < size_bytes; at = at ? 2 * at : FIRST_BLOCK_BYTES) {
        if (fseeko(file, at, SEEK_SET) || fread(bytes, 1, sizeof bytes, file) != sizeof bytes)
            return false;
        if (!memcmp(bytes, "\x89HDF\r\n\x1a\n", SIGNATURE_BYTES))
            return true;
        for (size_t i = 0; at == 0 && i < sizeof BEGINNINGS / sizeof *BEGINNINGS; i++)
            if (!memcmp(bytes, BEGINNINGS[i], 4))
                return true;
    }
    return false;
}

/* What is in it, the library finds out. */
static bool is_file_of_arrays(const char *path)
{
    struct stat s;
    FILE *file = stat(path, &s) == 0 && S_ISREG(s.st_mode) ? fopen(path, "rb") : NULL;
    const bool known = file && begins_as_arrays(file, s.st_size);
    if (file)
        fclose(file);
    return known;
}

/* Is this path a dataset of arrays, a Zarr store, an HDF5 or a NetCDF file? Then the rows are arrays. */
static bool holds_arrays(const char *path)
{
    char probe[4096];
    static const char *const MARKS[] = {"zarr.json", ".zgroup", ".zarray", ".zmetadata"};
    for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++) {
        snprintf(probe, sizeof probe, "%s/%s", path, MARKS[i]);
        if (access(probe, F_OK) == 0)
            return true;
    }
    return is_file_of_arrays(path);
}

/* Folders are not walked: which of their files count is convert's business. */
static bool holds_fields(const char *path)
{
    struct stat s;
    const bool arrays = holds_arrays(path);
    if (!arrays && (stat(path, &s) || !S_ISDIR(s.st_mode)))
        return true;
    warn_line(arrays ? "%s: arrays, which are listed apart from GRIB fields" : "%s: a folder; name the files in it, such as %s/*", path,
              path);
    return false;
}

/* Where no path has any field: what there is of this one is no question of GRIB alone. false: nothing more is known. */
static bool tell_why(squall_context *ctx, const char *path)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_dataset *ds = NULL;
    const int status = squall_dataset_open(ctx, path, &ds, &err);
    squall_dataset_close(ds);
    if (status)
        complain("squall: %s", err.message);
    return status != 0;
}

static int list_paths(struct listing *l, squall_context *ctx, const char *const *paths, size_t path_count)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_grib_list *list;
    if (squall_grib_list_open(ctx, paths, path_count, &list, &err))
        return fail_with(&err);
    const char *path = NULL;
    bool whole = true;
    size_t number = 0, count = squall_grib_list_count(list), problems = squall_grib_list_problem_count(list);
    for (size_t i = 0; whole && i < count && !interrupted(); i++) {
        struct squall_grib_field field = squall_grib_list_field(list, i);
        number = field.path == path ? number + 1 : 1;
        path = field.path;
        whole = add_row(l, &(struct row){.field = &field, .path = path, .number = number});
    }
    end_rows(l);
    for (size_t i = 0; i < problems; i++) {
        struct squall_grib_problem p = squall_grib_list_problem(list, i);
        if (count > 0 || !tell_why(ctx, p.path))
            warn_line("%s: %s", p.path, p.message);
    }
    squall_grib_list_close(list);
    if (interrupted())
        return EXIT_SIGNAL + interrupted();
    return !whole ? EXIT_FAILED : !problems ? EXIT_DONE : count ? EXIT_INPUTS : EXIT_FAILED;
}

static int list_fields(struct listing *l, squall_context *ctx)
{
    const char **files = malloc(l->paths.count * sizeof *files);
    size_t count = 0;
    for (size_t i = 0; files && i < l->paths.count; i++)
        if (holds_fields(l->paths.items[i]))
            files[count++] = l->paths.items[i];
    int code = count ? list_paths(l, ctx, files, count) : EXIT_FAILED;
    free(files);
    return code == EXIT_DONE && count < l->paths.count ? EXIT_INPUTS : code;
}

/* What one path leads to, or all of them as one dataset. One of several that cannot be opened costs only itself. */
static int list_dataset(struct listing *l, squall_context *ctx, const char *const *paths, size_t count)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_dataset *ds;
    if (dataset_open(ctx, l->arguments, paths, count, &ds, &err)) {
        if (l->paths.count == count || err.status == SQUALL_ECANCELLED)
            return fail_with(&err);
        warn_line("%s", err.message);
        return EXIT_INPUTS;
    }
    int code = list_arrays(l, ds, paths[0]);
    const size_t problems = squall_dataset_info(ds).problem_count;
    for (size_t i = 0; i < problems; i++)
        warn_line("%s", squall_dataset_problem(ds, i));
    squall_dataset_close(ds);
    return code == EXIT_DONE && problems ? EXIT_INPUTS : code;
}

static int list_datasets(struct listing *l, squall_context *ctx)
{
    int code = EXIT_DONE;
    const size_t at_once = joins_files(l->arguments) ? l->paths.count : 1;
    for (size_t i = 0; i < l->paths.count && (code == EXIT_DONE || code == EXIT_INPUTS) && !interrupted(); i += at_once) {
        const int found = list_dataset(l, ctx, l->paths.items + i, at_once);
        code = found == EXIT_DONE ? code : found;
    }
    end_rows(l);
    return interrupted() ? EXIT_SIGNAL + interrupted() : code;
}

/* GRIB may begin behind a bulletin's header. */
static bool looks_like_grib(const char *path)
{
    enum { LOOKED_AT_BYTES = 4096 };
    char bytes[LOOKED_AT_BYTES];
    struct stat s;
    FILE *file = stat(path, &s) == 0 && S_ISREG(s.st_mode) ? fopen(path, "rb") : NULL;
    const size_t count = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    return memmem(bytes, count, "GRIB", 4) != NULL;
}

/* Rows are of one kind: fields where some path has them, else arrays where some path has those. */
static bool rows_are_arrays(const struct text_list *paths)
{
    bool arrays = false;
    for (size_t i = 0; i < paths->count; i++) {
        const bool has_arrays = holds_arrays(paths->items[i]);
        if (!has_arrays && looks_like_grib(paths->items[i]))
            return false;
        arrays = arrays || has_arrays;
    }
    return arrays;
}

static bool add_path(struct text_list *list, const char *path)
{
    const char **grown = realloc(list->items, (list->count + 1) * sizeof *grown);
    if (!grown)
        return complain("squall: out of memory");
    list->items = grown;
    list->items[list->count++] = path;
    return true;
}

/* matches has what patterns are expanded to: globfree. */
static bool expand(const char *pattern, struct text_list *ret, glob_t *matches)
{
    const size_t before = matches->gl_pathc;
    if (glob(pattern, GLOB_NOCHECK | (before ? GLOB_APPEND : 0), NULL, matches))
        return complain("squall ls: %s: cannot be expanded", pattern);
    for (size_t i = before; i < matches->gl_pathc; i++)
        if (!add_path(ret, matches->gl_pathv[i]))
            return false;
    return true;
}

/* A file may be called like a pattern; a pattern that matches nothing stays as it is: that there is no such file is told then. */
static bool find_paths(const struct text_list *given, struct text_list *ret, glob_t *matches)
{
    for (size_t i = 0; i < given->count; i++) {
        const bool is_pattern = strpbrk(given->items[i], "*?[") && access(given->items[i], F_OK) != 0;
        if (!(is_pattern ? expand(given->items[i], ret, matches) : add_path(ret, given->items[i])))
            return false;
    }
    return true;
}

int run_ls(const struct arguments *a)
{
    squall_context *ctx = context_new(a);
    if (!ctx)
        return EXIT_FAILED;
    static char buffer[1 << 16];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    struct listing l = {.arguments = a, .known = field_columns, .known_count = FIELD_COLUMNS};
    glob_t matches = {0};
    int code = find_paths(&a->positional, &l.paths, &matches) ? EXIT_USAGE : EXIT_FAILED;
    const bool arrays = code == EXIT_USAGE && rows_are_arrays(&l.paths);
    if (arrays) {
        l.known = array_columns;
        l.known_count = ARRAY_COLUMNS;
    }
    struct squall_error err = SQUALL_ERROR_INIT;
    if (code == EXIT_USAGE && !arrays && l.paths.count > 0 && joins_files(a) && looks_like_grib(l.paths.items[0])) {
        refuse_joining(a, l.paths.items[0], &err);
        code = fail_with(&err);
    } else if (code == EXIT_USAGE && choose_columns(&l, arrays ? ARRAY_DEFAULTS : FIELD_DEFAULTS))
        code = arrays ? list_datasets(&l, ctx) : list_fields(&l, ctx);
    if (a->json && code != EXIT_USAGE && code != EXIT_FAILED)
        fputs(l.rows ? "\n]\n" : "[]\n", stdout);
    free(l.paths.items);
    globfree(&matches);
    squall_context_free(ctx);
    return code;
}
