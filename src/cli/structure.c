/* See structure.h. */
#include "structure.h"

#include "element.h"
#include "output.h"
#include "squall/squall.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 1024, WORD_BYTES = 64 };

/* What a walk through a type does with each value. */
enum purpose { PRINT_JSON, PRINT_CSV, PRINT_NAMES, PASS };

struct walk {
    FILE *out;
    enum purpose purpose;
    const char *at;             /* in the type's text */
    const unsigned char *bytes; /* of the value there; of PRINT_NAMES none */
    char name[NAME_BYTES];      /* of the value, with those it lies within */
    bool begun;                 /* a cell was printed */
};

bool is_structure(const char *numpy_type)
{
    return numpy_type[0] == '[';
}

/* ---- the text of a type ----------------------------------------------------------------------------------------------------------- */

static const char *behind_quoted(const char *at)
{
    for (at++; *at && *at != '\''; at++)
        at += *at == '\\' && at[1];
    return at + (*at != 0);
}

/* A word may stand without quotes where it is all of the type. */
static const char *behind_type(const char *at)
{
    if (*at == '\'')
        return behind_quoted(at);
    if (!strchr("[({", *at))
        return at + strlen(at);
    for (unsigned depth = 0; *at;) {
        depth += strchr("[({", *at) != NULL;
        depth -= strchr("])}", *at) != NULL;
        at = *at == '\'' ? behind_quoted(at) : at + 1;
        if (depth == 0)
            break;
    }
    return at;
}

static const char *behind_comma(const char *at)
{
    return at + strspn(at, ", ");
}

/* "'a\'b'" → a'b */
static void unquote(const char *at, char *to, size_t size)
{
    size_t count = 0;
    for (at++; *at && *at != '\'' && count + 1 < size; at++) {
        unsigned code;
        at += *at == '\\' && at[1];
        if (at[-1] == '\\' && *at == 'x' && sscanf(at + 1, "%2x", &code) == 1) {
            to[count++] = (char)code;
            at += 2;
        } else {
            to[count++] = *at;
        }
    }
    to[count] = 0;
}

/* ---- values ----------------------------------------------------------------------------------------------------------------------- */

static enum squall_type type_of(char kind, size_t bytes)
{
    static const struct {
        char kind;
        size_t bytes;
        enum squall_type type;
    } TYPES[] = {
        {'b', 1, SQUALL_BOOL},      {'i', 1, SQUALL_INT8},        {'i', 2, SQUALL_INT16},   {'i', 4, SQUALL_INT32},
        {'i', 8, SQUALL_INT64},     {'u', 1, SQUALL_UINT8},       {'u', 2, SQUALL_UINT16},  {'u', 4, SQUALL_UINT32},
        {'u', 8, SQUALL_UINT64},    {'f', 2, SQUALL_FLOAT16},     {'f', 4, SQUALL_FLOAT32}, {'f', 8, SQUALL_FLOAT64},
        {'c', 8, SQUALL_COMPLEX64}, {'c', 16, SQUALL_COMPLEX128},
    };
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (TYPES[i].kind == kind && TYPES[i].bytes == bytes)
            return TYPES[i].type;
    return kind == 'M' ? SQUALL_DATETIME64 : kind == 'm' ? SQUALL_TIMEDELTA64 : kind == 'U' ? SQUALL_TEXT : SQUALL_RAW;
}

/* From the other byte order. */
static void swap(unsigned char *bytes, size_t count, size_t unit)
{
    for (size_t at = 0; unit > 1 && at + unit <= count; at += unit)
        for (size_t i = 0; i < unit / 2; i++) {
            const unsigned char kept = bytes[at + i];
            bytes[at + i] = bytes[at + unit - 1 - i];
            bytes[at + unit - 1 - i] = kept;
        }
}

static void begin_cell(struct walk *w)
{
    fputs(w->begun ? "," : "", w->out);
    w->begun = true;
}

/* What has no fixed size stands behind the number of its bytes. */
static size_t take_count(struct walk *w)
{
    uint64_t count = 0;
    if (w->purpose == PRINT_NAMES)
        return 0;
    memcpy(&count, w->bytes, sizeof count);
    w->bytes += sizeof count;
    return (size_t)count;
}

static void walk_text(struct walk *w)
{
    static const struct squall_array_info TEXT = {.type = SQUALL_STRING, .numpy_type = "O", .element_bytes = sizeof(struct squall_bytes)};
    const size_t count = take_count(w);
    const struct squall_bytes text = {(void *)(uintptr_t)w->bytes, count};
    if (w->purpose == PRINT_JSON || w->purpose == PRINT_CSV)
        element_print(w->out, &TEXT, &text, 0, w->purpose == PRINT_JSON ? ELEMENT_JSON : ELEMENT_CSV);
    w->bytes += count;
}

/* A word such as "<f4". */
static void walk_word(struct walk *w)
{
    char word[WORD_BYTES];
    if (*w->at == '\'')
        unquote(w->at, word, sizeof word);
    else
        snprintf(word, sizeof word, "%s", w->at);
    w->at = behind_type(w->at);
    if (!strcmp(word, "text")) {
        walk_text(w);
        return;
    }
    const char kind = word[0] ? word[1] : 0;
    size_t bytes = kind ? strtoul(word + 2, NULL, 10) : 0;
    bytes *= kind == 'U' ? sizeof(uint32_t) : 1;
    const struct squall_array_info info = {.type = type_of(kind, bytes), .numpy_type = word, .element_bytes = bytes};
    if (w->purpose == PRINT_JSON || w->purpose == PRINT_CSV) {
        unsigned char *aligned = malloc(bytes + 1);
        if (aligned)
            memcpy(aligned, w->bytes, bytes);
        if (aligned && word[0] == '>')
            swap(aligned, bytes, kind == 'c' ? bytes / 2 : kind == 'U' ? sizeof(uint32_t) : kind == 'S' || kind == 'V' ? 1 : bytes);
        if (aligned)
            element_print(w->out, &info, aligned, 0, w->purpose == PRINT_JSON ? ELEMENT_JSON : ELEMENT_CSV);
        free(aligned);
    }
    w->bytes += w->purpose == PRINT_NAMES ? 0 : bytes;
}

static void walk_type(struct walk *w);

/* Values of one type in lists, by a shape such as "(2, 3)" or "(3,)" in the text. */
static void walk_list(struct walk *w, const char *type, const char *shape)
{
    char *end;
    const size_t count = strtoul(shape + strspn(shape, "(, "), &end, 10);
    const char *inner = end + strspn(end, ", ");
    fputs(w->purpose == PRINT_JSON ? "[" : "", w->out);
    for (size_t i = 0; i < count; i++) {
        fputs(w->purpose == PRINT_JSON && i ? ", " : "", w->out);
        if (*inner && *inner != ')') {
            walk_list(w, type, inner);
        } else {
            w->at = type;
            walk_type(w);
        }
    }
    fputs(w->purpose == PRINT_JSON ? "]" : "", w->out);
}

/* "{'sequence': '<f4'}" */
static void walk_sequence(struct walk *w)
{
    const char *const type = w->at + strlen("{'sequence': "), *const behind = behind_type(w->at);
    const size_t count = take_count(w);
    const unsigned char *const end = w->bytes + count;
    fputs(w->purpose == PRINT_JSON ? "[" : "", w->out);
    for (bool first = true; count && w->bytes < end; first = false) {
        fputs(w->purpose == PRINT_JSON && !first ? ", " : "", w->out);
        w->at = type;
        walk_type(w);
    }
    fputs(w->purpose == PRINT_JSON ? "]" : "", w->out);
    w->at = behind;
}

/* A list in one cell; shape NULL: the type is one of sequences. */
static void walk_list_cell(struct walk *w, const char *type, const char *shape)
{
    char *text = NULL;
    size_t length = 0;
    FILE *cell = open_memstream(&text, &length), *out = w->out;
    if (!cell)
        return;
    w->out = cell;
    w->purpose = PRINT_JSON;
    w->at = type;
    if (shape)
        walk_list(w, type, shape);
    else
        walk_type(w);
    w->purpose = PRINT_CSV;
    w->out = out;
    if (fclose(cell) == 0)
        print_csv_text(out, text, length);
    free(text);
}

/* One value, of a type and perhaps in a shape; w->at stays behind the type. shape NULL: it is one. */
static void walk_value(struct walk *w, const char *type, const char *shape)
{
    const bool nested = !shape && *type == '[';
    if (!nested && (w->purpose == PRINT_CSV || w->purpose == PRINT_NAMES))
        begin_cell(w);
    if (w->purpose == PRINT_NAMES && !nested) {
        print_csv_text(w->out, w->name, strlen(w->name));
    } else if ((shape || *type == '{') && w->purpose == PRINT_CSV) {
        walk_list_cell(w, type, shape);
    } else if (shape) {
        walk_list(w, type, shape);
    } else {
        w->at = type;
        walk_type(w);
    }
}

/* A field without a name is room between others. */
static void walk_field(struct walk *w, bool *first)
{
    const char *name = w->at + 1, *type = behind_comma(behind_quoted(name)), *behind = behind_type(type);
    const char *shape = *behind == ',' ? behind_comma(behind) : NULL;
    const size_t outer = strlen(w->name);
    const enum purpose purpose = w->purpose;
    if (outer + 1 < sizeof w->name) {
        memcpy(w->name + outer, ".", 2);
        unquote(name, w->name + outer + 1, sizeof w->name - outer - 1);
    }
    if (!w->name[outer + 1])
        w->purpose = PASS;
    if (w->purpose == PRINT_JSON) {
        fputs(*first ? "" : ", ", w->out);
        print_json_string(w->out, w->name + outer + 1);
        fputs(": ", w->out);
    }
    *first = *first && w->purpose == PASS;
    walk_value(w, type, shape);
    w->purpose = purpose;
    w->name[outer] = 0;
    w->at = shape ? behind_type(shape) : behind;
    w->at += *w->at == ')';
}

static void walk_type(struct walk *w)
{
    bool first = true;
    if (*w->at == '(') { /* a type and its shape */
        const char *type = w->at + 1, *behind = behind_type(w->at);
        walk_list(w, type, behind_comma(behind_type(type)));
        w->at = behind;
        return;
    }
    if (*w->at != '[') {
        (*w->at == '{' ? walk_sequence : walk_word)(w);
        return;
    }
    fputs(w->purpose == PRINT_JSON ? "{" : "", w->out);
    for (w->at++; *w->at == '('; w->at = behind_comma(w->at))
        walk_field(w, &first);
    fputs(w->purpose == PRINT_JSON ? "}" : "", w->out);
    w->at += *w->at == ']';
}

void structure_print_json(FILE *out, const char *numpy_type, const void *element)
{
    struct walk w = {.out = out, .purpose = PRINT_JSON, .at = numpy_type, .bytes = element};
    walk_type(&w);
}

void structure_print_csv(FILE *out, const char *numpy_type, const void *element)
{
    struct walk w = {.out = out, .purpose = PRINT_CSV, .at = numpy_type, .bytes = element};
    walk_type(&w);
}

void structure_print_names(FILE *out, const char *numpy_type, const char *name)
{
    struct walk w = {.out = out, .purpose = PRINT_NAMES, .at = numpy_type};
    snprintf(w.name, sizeof w.name, "%s", name);
    walk_type(&w);
}

void sequence_print_json(FILE *out, const char *numpy_type, const void *elements, size_t size_bytes)
{
    const unsigned char *end = (const unsigned char *)elements + size_bytes, *before = NULL;
    struct walk w = {.out = out, .purpose = PRINT_JSON, .bytes = elements};
    fputc('[', out);
    while (w.bytes < end && w.bytes != before) {
        fputs(before ? ", " : "", out);
        before = w.bytes;
        w.at = numpy_type;
        walk_type(&w);
    }
    fputc(']', out);
}

void sequence_print_csv(FILE *out, const char *numpy_type, const void *elements, size_t size_bytes)
{
    char *text = NULL;
    size_t length = 0;
    FILE *cell = open_memstream(&text, &length);
    if (!cell)
        return;
    sequence_print_json(cell, numpy_type, elements, size_bytes);
    if (fclose(cell) == 0)
        print_csv_text(out, text, length);
    free(text);
}
