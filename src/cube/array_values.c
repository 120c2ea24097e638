/* See array_values.h. */
#include "cube/array_values.h"
#include "array/bytes.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>

struct sq_array_form sq_array_form_of(const struct squall_array *a)
{
    const struct squall_array_info *i = &a->info;
    struct sq_array_form f = {.type = i->type, .rank = i->rank, .element_bytes = i->element_bytes};
    f.can = i->type <= SQUALL_FLOAT64 || i->type == SQUALL_STRING;
    if (i->type != SQUALL_RAW || !i->numpy_type || strncmp(i->numpy_type, "|S", 2) != 0)
        return f;
    f.can = true;
    f.type = SQUALL_STRING;
    f.element_bytes = sizeof(struct squall_bytes);
    f.letters = i->element_bytes;
    if (i->element_bytes == 1 && i->rank > 0) {
        f.letters = i->shape[i->rank - 1];
        f.rank--;
    }
    return f;
}

/* Of so many indices of the first dimension. */
static bool count_elements(const struct squall_array *a, uint64_t indices, unsigned rank, uint64_t *ret)
{
    *ret = 1;
    for (unsigned d = 0; d < rank; d++)
        if (!sq_mul_u64(*ret, d ? a->info.shape[d] : indices, ret))
            return false;
    return *ret <= SIZE_MAX / 64;
}

/* Texts move into the arena, which outlives the values. */
static int keep_texts(struct squall_bytes *texts, uint64_t count, struct sq_arena *arena, struct squall_error *err)
{
    int status = 0;
    for (uint64_t i = 0; i < count; i++) {
        void *data = texts[i].data;
        texts[i].data = sq_arena_copy(arena, data ? data : "", texts[i].size_bytes + 1);
        if (!texts[i].data)
            status = sq_error_memory(err, texts[i].size_bytes);
        free(data);
    }
    return status;
}

/* NULs at the end are no letters; what is no UTF-8 is taken for Latin 1. */
static int join_letters(const char *letters, uint64_t each, uint64_t count, struct sq_arena *arena, struct squall_bytes *ret,
                        struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    for (uint64_t i = 0; i < count; i++) {
        size_t length = (size_t)each;
        while (length > 0 && letters[i * each + length - 1] == 0)
            length--;
        sq_text_clear(&text);
        sq_text_add_utf8(&text, letters + i * each, length);
        ret[i] = (struct squall_bytes){sq_arena_copy(arena, sq_text_string(&text), text.length + 1), text.length};
        if (text.failed || !ret[i].data)
            return sq_error_memory(err, length);
    }
    return 0;
}

int sq_array_values_read(struct squall_array *a, struct sq_arena *arena, void **ret, struct squall_error *err)
{
    return sq_array_values_read_part(a, 0, a->info.rank ? a->info.shape[0] : 1, arena, ret, err);
}

int sq_array_values_read_part(struct squall_array *a, uint64_t first, uint64_t indices, struct sq_arena *arena, void **ret,
                              struct squall_error *err)
{
    const struct sq_array_form form = sq_array_form_of(a);
    struct squall_selection selection = squall_selection_all(a);
    uint64_t count, whole;
    selection.start[0] = first;
    selection.count[0] = indices;
    if (!count_elements(a, indices, form.rank, &count) || !count_elements(a, indices, a->info.rank, &whole))
        return sq_error_memory(err, SIZE_MAX);
    SQ_CLEANUP_FREE void *values = sq_alloc((size_t)count + 1, form.element_bytes);
    SQ_CLEANUP_FREE void *letters = form.letters ? sq_alloc((size_t)whole + 1, a->info.element_bytes) : NULL;
    if (!values || (form.letters && !letters))
        return sq_error_memory(err, count * form.element_bytes);
    SQ_TRY(squall_array_read(a, &selection, form.letters ? letters : values, NULL, err));
    if (form.letters)
        SQ_TRY(join_letters(letters, form.letters, count, arena, values, err));
    else if (sq_type_is_variable(form.type))
        SQ_TRY(keep_texts(values, count, arena, err));
    *ret = values;
    values = NULL;
    return 0;
}

int sq_array_values_same(struct squall_array *a, struct squall_array *b, uint64_t limit_bytes, bool *ret, struct squall_error *err)
{
    const struct sq_array_form form = sq_array_form_of(a);
    struct sq_arena *arena = sq_arena_new();
    void *mine = NULL, *other = NULL;
    uint64_t count = 0;
    *ret = true;
    int status = arena ? 0 : sq_error_memory(err, sizeof form);
    const bool small = count_elements(a, form.rank ? a->info.shape[0] : 1, form.rank, &count) && count <= limit_bytes / form.element_bytes;
    if (!status && small)
        status = sq_array_values_read(a, arena, &mine, err);
    if (!status && small)
        status = sq_array_values_read(b, arena, &other, err);
    if (!status && small && sq_type_is_variable(form.type))
        for (uint64_t i = 0; i < count && *ret; i++)
            *ret = sq_bytes_equal((struct squall_bytes *)mine + i, (struct squall_bytes *)other + i);
    else if (!status && small)
        *ret = memcmp(mine, other, (size_t)count * form.element_bytes) == 0;
    sq_free(mine);
    sq_free(other);
    sq_arena_free(arena);
    return status;
}
