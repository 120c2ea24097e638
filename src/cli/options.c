/* The option table and the parser over it. See options.h. */
#include "options.h"

#include "config.h"
#include "output.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(struct arguments, member)

static const char *const COMMON[] = {"threads", "memory", "json", "quiet", "verbose", "help", NULL};

const struct option options[] = {
    {"where", 'w', OPTION_LIST, "KEY=VALUE,...", AT(where), "only rows whose keys have these values; a|b is either", NULL},
    {"print", 'p', OPTION_TEXT, "KEYS", AT(print_keys), "the columns, separated by commas", NULL},
    {"selection", 's', OPTION_LIST, "DIM=RANGE,...", AT(selection),
     "indices along dimensions (names, or 0 for the first): 3, 0:10, 0:10:2, -1; may be repeated", NULL},
    {"nearest", 0, OPTION_LIST, "COORD=VALUE,...", AT(nearest),
     "the index of the nearest value: lat=51.5,lon=0,init_time=2022-01-01T06:00,step=6h; may be repeated", NULL},
    {"field", 0, OPTION_COUNT, "N", AT(field), "one GRIB field by its number in `squall ls` (from 1)", NULL},
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), "FILE.npy, FILE.csv, or - for stdout (default): CSV, or JSON with --json", NULL},
    {"array", 0, OPTION_TEXT, "NAME", AT(array), "only this array, or the arrays in this group", NULL},
    {"concat-dim", 0, OPTION_TEXT, "NAME", AT(concat_dim),
     "the dimension along which several files follow each other, or a new one (default: the one in which the first two differ)", NULL},
    {"drift", 0, OPTION_TEXT, "WHAT", AT(drift),
     "several files that do not agree: stop; say how and go by the first; go by the first in silence (default error)", "error|warn|first"},
    {"group", 0, OPTION_TEXT, "NAME", AT(group), "the arrays of this group, and the coordinates above it (default: those of the root)",
     NULL},
    {"append-dim", 0, OPTION_TEXT, "NAME", AT(append_dim),
     "the dimension along which the store grows (default: that along which the files follow each other; GRIB: init_time)", NULL},
    {"chunks", 0, OPTION_TEXT, "DIM=N,...", AT(chunks),
     "chunk lengths; N or all; VARIABLE:DIM=N for one (default: GRIB: one init_time, all steps; else the source's; ≤ 16 MiB)", NULL},
    {"shards", 0, OPTION_TEXT, "DIM=N,...", AT(shards),
     "several chunks in one file: its lengths, multiples of the chunks' (default: a file a chunk)", NULL},
    {"dtype", 0, OPTION_TEXT, "[NAME=]TYPE,...", AT(dtype), "float16, float32 or float64, of one variable, or of all others", NULL},
    {"bitround", 0, OPTION_TEXT, "[NAME=]N,...", AT(bitround),
     "round to N bits of mantissa, which compresses better, of one variable, or of all others", NULL},
    {"on-overflow", 0, OPTION_TEXT, "WHAT", AT(on_overflow),
     "a value that the type cannot hold: stop, infinity, or the greatest (default error)", "error|inf|clip"},
    {"codec", 0, OPTION_TEXT, "[NAME=]CHAIN;...", AT(codec), "e.g. blosc:cname=zstd,clevel=5,shuffle=shuffle or zstd:level=3; chain with +",
     NULL},
    {"select", 0, OPTION_LIST, "KEY=VALUE,...", AT(select), "only these variables or fields: name=t2m|d2m,level=850; may be repeated",
     NULL},
    {"rename", 0, OPTION_LIST, "OLD=NEW", AT(rename), "another name for a variable, which --dtype then takes; may be repeated", NULL},
    {"coarsen", 0, OPTION_TEXT, "y=N,x=N", AT(coarsen), "GRIB: means over blocks of N points", NULL},
    {"y-order", 0, OPTION_TEXT, "WHICH", AT(y_order), "GRIB: rows from south to north, or north to south (default: as in the first field)",
     "ascending|descending"},
    {"every", 0, OPTION_TEXT, "TIME", AT(every), "GRIB: cadence of the runs, e.g. 6h (default: found from the runs)", NULL},
    {"stack", 0, OPTION_TEXT, "variable", AT(stack), "GRIB: one array with a dimension `variable` in place of one array a variable",
     "variable"},
    {"stack-name", 0, OPTION_TEXT, "NAME", AT(stack_name), "name of the stacked array (default data)", NULL},
    {"zarr-format", 0, OPTION_TEXT, "N", AT(zarr_format), "3, or 2, for readers that know no other (default 3)", "2|3"},
    {"schema", 0, OPTION_TEXT, "WHAT", AT(schema),
     "what the store was made without: leave it out; GRIB: add new variables, steps, levels and members; refuse to write anything (default "
     "ignore)",
     "ignore|grow|strict"},
    {"dry-run", 'n', OPTION_FLAG, NULL, AT(dry_run), "say what would be done, and do nothing", NULL},
    {"part", 0, OPTION_TEXT, "I/N", AT(part),
     "write every N-th unit from the I-th on, beside processes, here and on other machines, that write the other parts", NULL},
    {"finish", 0, OPTION_FLAG, NULL, AT(finish),
     "of DST alone: what the last part does when all are done, where it was killed; exit code 3 where units are missing", NULL},
    {"prepend", 0, OPTION_FLAG, NULL, AT(prepend), "GRIB: add runs before the store's first, too, instead of naming them", NULL},
    {"overwrite", 0, OPTION_FLAG, NULL, AT(overwrite), "replace a store that squall made", NULL},
    {"lock-timeout", 0, OPTION_COUNT, "SECONDS", AT(lock_timeout_s),
     "wait so long for another run that holds the store, then exit with 4 (default: do not wait)", NULL},
    {"strict", 0, OPTION_FLAG, NULL, AT(strict), "write no unit that has a bad input, and exit with 3", NULL},
    {"keep-going", 0, OPTION_FLAG, NULL, AT(keep_going), "a bad input costs only itself (default)", NULL},
    {"html", 0, OPTION_TEXT, "FILE", AT(html),
     "write a page with the calendar and how complete each variable is, which replaces FILE at once", NULL},
    {"log", 0, OPTION_TEXT, "FILE", AT(log), "add what happens to FILE, a JSON object a line", NULL},
    {"config", 0, OPTION_TEXT, "FILE", AT(config), "take settings from FILE (TOML), where the command line does not say otherwise", NULL},
    {"print-config", 0, OPTION_FLAG, NULL, AT(print_config), "print the settings as --config takes them, and do nothing", NULL},
    {"threads", 0, OPTION_COUNT, "N", AT(threads), "threads to work with (default: as many as there are CPUs)", NULL},
    {"memory", 0, OPTION_SIZE, "SIZE", AT(memory_bytes), "memory to keep to, e.g. 4G (default: half of what there is)", NULL},
    {"json", 0, OPTION_FLAG, NULL, AT(json), "results as JSON", NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), "no progress; only problems", NULL},
    {"verbose", 'v', OPTION_FLAG, NULL, AT(verbose), "say more", NULL},
    {"man", 0, OPTION_FLAG, NULL, AT(man), "the manual page, for man -l", NULL},
    {"help", 'h', OPTION_FLAG, NULL, AT(help), "this text", NULL},
};
const size_t option_count = sizeof options / sizeof *options;

static bool listed(const char *name, const char *const *names)
{
    for (; names && *names; names++)
        if (!strcmp(*names, name))
            return true;
    return false;
}

bool option_is_common(const struct option *o)
{
    return listed(o->name, COMMON);
}

bool option_belongs(const struct option *o, const struct command *c)
{
    return option_is_common(o) || listed(o->name, c->option_names);
}

const struct command *command_named(const char *name)
{
    for (size_t i = 0; i < command_count; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

/* "4G", "512MiB", "1.5T", "100000": bytes in powers of 1024; false where it is none. */
static bool size_parse(const char *text, uint64_t *ret_bytes)
{
    static const char UNITS[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    if (end == text || !(value >= 0))
        return false;
    const char *unit = *end ? strchr(UNITS, *end & ~0x20) : NULL;
    if (unit && *unit) {
        for (const char *u = UNITS; u <= unit; u++)
            value *= 1024;
        end++;
        if (*end == 'i')
            end++;
    }
    if (*end == 'B')
        end++;
    if (*end || value >= 18e18)
        return false;
    *ret_bytes = (uint64_t)value;
    return true;
}

bool text_list_add(struct text_list *list, const char *text)
{
    const char **grown = realloc(list->items, (list->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    list->items = grown;
    list->items[list->count++] = text;
    return true;
}

static bool is_choice(const char *choices, const char *value)
{
    size_t length = strlen(value);
    for (const char *c = choices; c; c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL)
        if (!strncmp(c, value, length) && (c[length] == '|' || !c[length]))
            return true;
    return false;
}

static bool set_flag(const struct option *o, struct arguments *a)
{
    *(bool *)(void *)((char *)a + o->offset) = true;
    return true;
}

bool option_set(const struct command *c, const struct option *o, const char *value, struct arguments *a)
{
    void *at = (char *)a + o->offset;
    if (o->choices && !is_choice(o->choices, value))
        return complain("squall %s: --%s %s: it takes %s", c->name, o->name, value, o->choices);
    switch (o->kind) {
    case OPTION_FLAG:
        break;        /* set_flag's business */
    case OPTION_TEXT: /* the last one would win, and what the first one said be lost unseen */
        if (*(const char **)at)
            return complain("squall %s: --%s is given twice (%s, %s); it takes one value, with commas where it is a list", c->name, o->name,
                            *(const char **)at, value);
        *(const char **)at = value;
        return true;
    case OPTION_LIST:
        return text_list_add(at, value) || complain("squall %s: out of memory", c->name);
    case OPTION_COUNT: {
        char *end;
        errno = 0;
        unsigned long count = strtoul(value, &end, 10);
        if (errno || *end || end == value || value[0] == '-' || count < 1 || count > 1000000000)
            return complain("squall %s: --%s %s: a whole number from 1 is wanted", c->name, o->name, value);
        *(unsigned *)at = (unsigned)count;
        return true;
    }
    case OPTION_SIZE:
        if (!size_parse(value, at) || *(uint64_t *)at == 0)
            return complain("squall %s: --%s %s: a size is wanted, such as 512M or 4G", c->name, o->name, value);
        return true;
    }
    return false;
}

static const struct option *option_lettered(const struct command *c, char letter)
{
    for (size_t i = 0; i < option_count; i++)
        if (options[i].letter == letter && option_belongs(&options[i], c))
            return &options[i];
    return NULL;
}

static const struct option *option_named(const struct command *c, const char *name, size_t length)
{
    for (size_t i = 0; i < option_count; i++)
        if (strlen(options[i].name) == length && !strncmp(options[i].name, name, length) && option_belongs(&options[i], c))
            return &options[i];
    return NULL;
}

/* One row of the table at a time. */
unsigned edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 32 };
    unsigned row[LONGEST + 1];
    size_t length = strlen(b);
    if (length > LONGEST)
        return LONGEST;
    for (unsigned k = 0; k <= length; k++)
        row[k] = k;
    for (unsigned i = 1; *a; a++, i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (size_t k = 1; k <= length; k++) {
            unsigned replaced = diagonal + (tolower((unsigned char)*a) != tolower((unsigned char)b[k - 1])),
                     shorter = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
            diagonal = row[k];
            row[k] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[length];
}

static bool unknown_option(const struct command *c, const char *text)
{
    const char *name = text + strspn(text, "-");
    for (size_t i = 0; text[1] == '-' && i < option_count; i++)
        if (option_belongs(&options[i], c) && edit_distance(name, options[i].name) <= 2)
            return complain("squall %s: no option %s; is --%s meant? (squall help %s)", c->name, text, options[i].name, c->name);
    return complain("squall %s: no option %s (squall help %s lists them)", c->name, text, c->name);
}

/* argv[*at] begins with "--". */
static bool parse_long(const struct command *c, int argc, char **argv, int *at, struct arguments *a)
{
    const char *name = argv[*at] + 2, *equals = strchr(name, '=');
    const struct option *o = option_named(c, name, equals ? (size_t)(equals - name) : strlen(name));
    if (!o)
        return unknown_option(c, argv[*at]);
    if (o->kind == OPTION_FLAG)
        return equals ? complain("squall %s: --%s takes no value", c->name, o->name) : set_flag(o, a);
    if (equals)
        return option_set(c, o, equals + 1, a);
    if (*at + 1 >= argc)
        return complain("squall %s: --%s wants %s", c->name, o->name, o->argument);
    return option_set(c, o, argv[++*at], a);
}

/* argv[*at] is one dash and letters: flags may be joined, a value may follow its letter at once. */
static bool parse_short(const struct command *c, int argc, char **argv, int *at, struct arguments *a)
{
    for (const char *letter = argv[*at] + 1; *letter; letter++) {
        const struct option *o = option_lettered(c, *letter);
        if (!o)
            return unknown_option(c, argv[*at]);
        if (o->kind == OPTION_FLAG) {
            set_flag(o, a);
            continue;
        }
        if (letter[1])
            return option_set(c, o, letter + 1, a);
        if (*at + 1 >= argc)
            return complain("squall %s: -%c wants %s", c->name, *letter, o->argument);
        return option_set(c, o, argv[++*at], a);
    }
    return true;
}

/* A shell that expanded a pattern gives many files to a command that takes one path. */
static bool too_much(const struct command *c, const char *const *given)
{
    const char *beyond = given[c->operands_most];
    if (!strncmp(c->operands, "PATH", 4) && access(given[1], F_OK) == 0)
        return complain("squall %s: too much is given: %s; many files are taken as one by a pattern in quotes: squall %s 'FOLDER/*.nc'%s",
                        c->name, beyond, c->name, c->operands_most > 1 ? " NAME" : "");
    return complain("squall %s: too much is given: %s (usage: squall %s %s)", c->name, beyond, c->name, c->operands);
}

bool arguments_parse(const struct command *c, int argc, char **argv, struct arguments *ret)
{
    *ret = (struct arguments){0};
    bool only_operands = false;
    for (int i = 0; i < argc; i++) {
        const char *text = argv[i];
        bool ok;
        if (only_operands || text[0] != '-' || !text[1])
            ok = text_list_add(&ret->positional, text);
        else if (!strcmp(text, "--"))
            ok = only_operands = true;
        else
            ok = text[1] == '-' ? parse_long(c, argc, argv, &i, ret) : parse_short(c, argc, argv, &i, ret);
        if (!ok)
            return false;
    }
    if (ret->config && !ret->help && !config_read(c, ret->config, ret))
        return false;
    const size_t count = ret->positional.count;
    if (ret->print_config)
        return true;
    if (!ret->help && count < (ret->finish ? 1 : c->operands_least))
        return complain("squall %s: something is missing (usage: squall %s %s)", c->name, c->name, c->operands);
    if (!ret->help && count > c->operands_most)
        return too_much(c, ret->positional.items);
    return true;
}

void arguments_done(struct arguments *a)
{
    free(a->positional.items);
    for (size_t i = 0; i < option_count; i++)
        if (options[i].kind == OPTION_LIST)
            free(((struct text_list *)(void *)((char *)a + options[i].offset))->items);
    for (size_t i = 0; i < a->config_texts.count; i++)
        free((void *)(uintptr_t)a->config_texts.items[i]);
    free(a->config_texts.items);
    *a = (struct arguments){0};
}
