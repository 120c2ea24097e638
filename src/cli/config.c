/*
 * See config.h. A key is an option's name, with - or _. What an option takes as NAME=VALUE,... may be a table, what it takes with
 * commas or several times an array.
 */
#include "config.h"

#include "output.h"
#include "toml.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_LIMIT_BYTES = 1 << 20 };

struct loading {
    const struct command *command;
    const char *path;
    struct arguments *arguments;
    struct text_list sources;
    const char *destination;
    bool *on_line, *seen;       /* of each option: the command line has given it, which wins; the file has */
    const struct option *table; /* whose table is being read; NULL: none */
    char *pairs;                /* what it has so far: "a=1,b=2" */
};

static bool complain_line(const struct loading *l, unsigned line, const char *what)
{
    return complain("squall: %s, line %u: %s", l->path, line, what);
}

static bool is_set(const struct option *o, const struct arguments *a)
{
    const void *at = (const char *)a + o->offset;
    switch (o->kind) {
    case OPTION_FLAG:
        return *(const bool *)at;
    case OPTION_TEXT:
        return *(const char *const *)at != NULL;
    case OPTION_LIST:
        return ((const struct text_list *)at)->count > 0;
    case OPTION_COUNT:
        return *(const unsigned *)at != 0;
    case OPTION_SIZE:
        return *(const uint64_t *)at != 0;
    }
    return false;
}

/* Those that ask for help or for settings are none. */
static bool may_be_set(const struct command *c, const struct option *o)
{
    return option_belongs(o, c) && strcmp(o->name, "help") != 0 && strcmp(o->name, "config") != 0 && strcmp(o->name, "print-config") != 0;
}

/* Does the key, which may have _ for -, name the option? */
static bool names(const char *key, const char *option)
{
    for (; *key && *option; key++, option++)
        if (*key != *option && !(*key == '_' && *option == '-'))
            return false;
    return !*key && !*option;
}

static const struct option *find(const struct loading *l, unsigned line, const char *key)
{
    const struct option *near = NULL;
    for (size_t i = 0; i < option_count; i++) {
        if (!may_be_set(l->command, &options[i]))
            continue;
        if (names(key, options[i].name))
            return &options[i];
        if (edit_distance(key, options[i].name) <= 2)
            near = &options[i];
    }
    if (near)
        complain("squall: %s, line %u: no setting %s; is %s meant?", l->path, line, key, near->name);
    else
        complain("squall: %s, line %u: no setting %s; squall convert --print-config lists them", l->path, line, key);
    return NULL;
}

/* The text is a's from now on, or freed. */
static bool keep(struct arguments *a, char *text)
{
    if (text && text_list_add(&a->config_texts, text))
        return true;
    free(text);
    return complain("squall: out of memory");
}

/* head, then the items with `between` between them; malloc'd, NULL: out of memory. */
static char *join(const char *head, const struct toml_entry *e, const char *between)
{
    size_t bytes = strlen(head) + 1;
    for (size_t i = 0; i < e->item_count; i++)
        bytes += strlen(e->items[i]) + strlen(between);
    char *text = malloc(bytes), *to = text;
    if (!text)
        return NULL;
    to = stpcpy(to, head);
    for (size_t i = 0; i < e->item_count; i++)
        to = stpcpy(stpcpy(to, i ? between : ""), e->items[i]);
    return text;
}

static bool set(struct loading *l, unsigned line, const struct option *o, const char *value)
{
    return option_set(l->command, o, value, l->arguments) || complain("squall: that is in %s, line %u", l->path, line);
}

static bool set_option(struct loading *l, const struct option *o, const struct toml_entry *e)
{
    if (o->kind == OPTION_FLAG) {
        if (e->kind != TOML_TRUTH)
            return complain_line(l, e->line, "true or false is wanted");
        *(bool *)(void *)((char *)l->arguments + o->offset) = !strcmp(e->items[0], "true");
        return true;
    }
    if (e->kind == TOML_TRUTH)
        return complain_line(l, e->line, "a value in quotes is wanted, not true or false");
    if (o->kind == OPTION_LIST) {
        for (size_t i = 0; i < e->item_count; i++)
            if (!set(l, e->line, o, e->items[i]))
                return false;
        return true;
    }
    if (e->kind != TOML_ARRAY)
        return set(l, e->line, o, e->items[0]);
    char *text = join("", e, !strcmp(o->name, "codec") ? "+" : ",");
    return keep(l->arguments, text) && set(l, e->line, o, text);
}

/* sources and destination: true where the key is one of them. *ret_ok: was it right? */
static bool set_place(struct loading *l, const struct toml_entry *e, bool *ret_ok)
{
    if (!strcmp(e->key, "sources")) {
        *ret_ok = e->kind == TOML_TEXT || e->kind == TOML_ARRAY ||
                  complain_line(l, e->line, "sources wants a path in quotes, or an array of them");
        for (size_t i = 0; i < e->item_count && *ret_ok; i++)
            *ret_ok = text_list_add(&l->sources, e->items[i]) || complain("squall: out of memory");
        return true;
    }
    if (strcmp(e->key, "destination") != 0)
        return false;
    *ret_ok = e->kind == TOML_TEXT || complain_line(l, e->line, "destination wants a path in quotes");
    l->destination = e->items[0];
    return true;
}

/* The table that has been read becomes its option's value. */
static bool end_table(struct loading *l, unsigned line)
{
    const struct option *o = l->table;
    char *pairs = l->pairs;
    l->table = NULL;
    l->pairs = NULL;
    if (!o || !pairs)
        return true;
    return keep(l->arguments, pairs) && (l->on_line[o - options] || set(l, line, o, pairs));
}

static bool add_pair(struct loading *l, const struct toml_entry *e)
{
    char *values = join("", e, "|"), *text = NULL;
    if (values && asprintf(&text, "%s%s%s=%s", l->pairs ? l->pairs : "", l->pairs ? "," : "", e->key, values) < 0)
        text = NULL;
    free(values);
    if (!text)
        return complain("squall: out of memory");
    free(l->pairs);
    l->pairs = text;
    return true;
}

static bool visit_pair(struct loading *l, const struct toml_entry *e)
{
    const struct option *o = find(l, e->line, e->table);
    if (!o)
        return false;
    if (l->table != o) {
        if (!end_table(l, e->line))
            return false;
        if (l->seen[o - options])
            return complain_line(l, e->line, "this setting was given above");
        if (!o->argument || !strchr(o->argument, '='))
            return complain("squall: %s, line %u: %s is no table; write %s = ... above the first [table]", l->path, e->line, o->name,
                            o->name);
        l->seen[o - options] = true;
        l->table = o;
    }
    if (e->kind == TOML_TRUTH)
        return complain_line(l, e->line, "a text or number is wanted, not true or false");
    return add_pair(l, e);
}

static bool visit(void *user, const struct toml_entry *e)
{
    struct loading *l = user;
    bool ok = true;
    if (e->table)
        return visit_pair(l, e);
    if (set_place(l, e, &ok))
        return ok;
    const struct option *o = find(l, e->line, e->key);
    if (!o)
        return false;
    if (l->seen[o - options])
        return complain_line(l, e->line, "this setting was given above");
    l->seen[o - options] = true;
    return l->on_line[o - options] || set_option(l, o, e);
}

/* malloc'd. */
static char *read_file(const char *path, size_t *ret_length)
{
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(FILE_LIMIT_BYTES + 1) : NULL;
    size_t length = text ? fread(text, 1, FILE_LIMIT_BYTES + 1, file) : 0;
    bool good = text && !ferror(file);
    if (!good)
        complain("squall: %s: %s", path, file && !text ? "out of memory" : strerror(errno));
    else if (length > FILE_LIMIT_BYTES)
        good = complain("squall: %s: a file of settings has at most 1 MiB", path);
    if (file)
        fclose(file);
    if (!good) {
        free(text);
        return NULL;
    }
    *ret_length = length;
    return text;
}

/* Where the command line names any place, it names all. */
static bool take_places(struct loading *l)
{
    struct arguments *a = l->arguments;
    if (a->positional.count > 0)
        return true;
    if ((l->sources.count > 0) != (l->destination != NULL))
        return complain("squall: %s: sources and destination go together", l->path);
    for (size_t i = 0; i < l->sources.count; i++)
        if (!text_list_add(&a->positional, l->sources.items[i]))
            return complain("squall: out of memory");
    return !l->destination || text_list_add(&a->positional, l->destination) || complain("squall: out of memory");
}

bool config_read(const struct command *c, const char *path, struct arguments *a)
{
    size_t length;
    void *memory = NULL;
    struct toml_error wrong = {0};
    char *text = read_file(path, &length);
    if (!text)
        return false;
    struct loading l = {.command = c, .path = path, .arguments = a};
    l.on_line = calloc(2 * option_count, sizeof *l.on_line);
    bool ok = l.on_line != NULL || complain("squall: out of memory");
    l.seen = l.on_line + option_count;
    for (size_t i = 0; ok && i < option_count; i++)
        l.on_line[i] = is_set(&options[i], a);
    if (ok) {
        ok = toml_read(text, length, visit, &l, &memory, &wrong);
        if (!ok && wrong.what)
            complain_line(&l, wrong.line, wrong.what);
        ok = ok && end_table(&l, wrong.line) && take_places(&l);
    }
    free(l.pairs);
    free(l.sources.items);
    free(l.on_line);
    free(text);
    return memory ? keep(a, memory) && ok : ok;
}

/* ---- writing --------------------------------------------------------------------------------------------------------------------- */

static void print_text(FILE *out, const char *text)
{
    if (!strpbrk(text, "'\n\r\t\b\f")) {
        fprintf(out, strpbrk(text, "\"\\") ? "'%s'" : "\"%s\"", text);
        return;
    }
    fputc('"', out);
    for (const char *p = text; *p; p++)
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if ((unsigned char)*p < 0x20)
            fprintf(out, "\\u%04x", *p);
        else
            fputc(*p, out);
    fputc('"', out);
}

static void print_array(FILE *out, const char *const *items, size_t count)
{
    fputc('[', out);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : "", out);
        print_text(out, items[i]);
    }
    fputs("]\n", out);
}

static void print_value(FILE *out, const struct option *o, const struct arguments *a)
{
    const void *at = (const char *)a + o->offset;
    fprintf(out, "%s = ", o->name);
    switch (o->kind) {
    case OPTION_FLAG:
        fputs("true\n", out);
        break;
    case OPTION_TEXT:
        print_text(out, *(const char *const *)at);
        fputc('\n', out);
        break;
    case OPTION_LIST:
        print_array(out, (const char *const *)((const struct text_list *)at)->items, ((const struct text_list *)at)->count);
        break;
    case OPTION_COUNT:
        fprintf(out, "%u\n", *(const unsigned *)at);
        break;
    case OPTION_SIZE:
        fprintf(out, "%llu\n", (unsigned long long)*(const uint64_t *)at);
        break;
    }
}

void config_print(FILE *out, const struct command *c, const struct arguments *a)
{
    fprintf(out, "# settings of squall %s; squall %s --config FILE takes them\n", c->name, c->name);
    const size_t count = a->positional.count;
    if (count > 1) {
        fputs("sources = ", out);
        print_array(out, a->positional.items, count - 1);
    } else {
        fputs("# sources = [\"archive\"]\n", out);
    }
    if (count > 0) {
        fputs("destination = ", out);
        print_text(out, a->positional.items[count - 1]);
        fputc('\n', out);
    } else {
        fputs("# destination = \"store.zarr\"\n", out);
    }
    for (int set = 1; set >= 0; set--)
        for (size_t i = 0; i < option_count; i++) {
            const struct option *o = &options[i];
            if (!may_be_set(c, o) || is_set(o, a) != set)
                continue;
            if (set)
                print_value(out, o, a);
            else if (o->kind == OPTION_FLAG)
                fprintf(out, "# %s = true    # %s\n", o->name, o->help);
            else
                fprintf(out, "# %s = \"%s\"    # %s\n", o->name, o->argument, o->help);
        }
}
