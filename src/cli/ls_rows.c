/* The rows of squall ls: which columns -p chooses and which rows -w wants, and how they are printed. */
#include "ls_internal.h"
#include "open.h"
#include "output.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_KEPT = 8192, TYPE_COLUMNS_MOST = 40 };

static const struct column *find_column(const struct listing *l, const char *key, size_t length)
{
    for (size_t i = 0; i < l->known->count; i++)
        if (strlen(l->known->columns[i].key) == length && !strncmp(l->known->columns[i].key, key, length))
            return &l->known->columns[i];
    return NULL;
}

static bool unknown_key(const struct listing *l, const char *key, size_t length)
{
    fprintf(stderr, "squall ls: no key %.*s; there are", (int)length, key);
    for (size_t i = 0; i < l->known->count; i++)
        fprintf(stderr, " %s", l->known->columns[i].key);
    fputc('\n', stderr);
    return false;
}

static void add_column(struct listing *l, const struct column *c)
{
    l->widths[l->column_count] = (size_t)abs(c->width);
    l->columns[l->column_count++] = c;
}

bool ls_choose_columns(struct listing *l)
{
    const char *keys = l->arguments->print_keys;
    for (size_t i = 0; !keys && i < l->known->default_count; i++)
        add_column(l, &l->known->columns[i]);
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
        if (l->known == &ls_array_columns && !strcmp(l->columns[i]->key, "type") && !l->arguments->print_keys)
            cut(cell, TYPE_COLUMNS_MOST);
        size_t length = strlen(cell);
        if (length > l->widths[i])
            l->widths[i] = length;
        l->kept_bytes += length + 1;
    }
    l->kept_rows++;
    return true;
}

bool ls_add_row(struct listing *l, const struct row *r)
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

void ls_end_rows(struct listing *l)
{
    if (l->kept_rows)
        print_kept(l, l->rows == l->kept_rows);
    free(l->kept);
    l->kept = NULL;
}

bool ls_is_asked(const struct listing *l, const char *key)
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
