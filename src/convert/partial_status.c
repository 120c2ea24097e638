/* See partial_status.h. */
#include "convert/partial_status.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/text.h"
#include "convert/summary.h"
#include "store/partial.h"
#include <inttypes.h>
#include <stdlib.h>

enum { BOXES_SHOWN = 8 };

static void add_box(struct sq_text *text, const struct sq_json *box)
{
    sq_text_add(text, "[");
    for (size_t d = 0; d < sq_json_count(box); d++) {
        uint64_t start = 0, stop = 0;
        (void)sq_json_uint(sq_json_at(sq_json_at(box, d), 0), &start);
        (void)sq_json_uint(sq_json_at(sq_json_at(box, d), 1), &stop);
        sq_text_printf(text, "%s%" PRIu64 ":%" PRIu64, d ? ", " : "", start, stop);
    }
    sq_text_add(text, "]");
}

static int add_variable(void *user, const char *name, const struct sq_json *boxes, struct squall_error *err)
{
    struct sq_text *text = user;
    const size_t count = sq_json_count(boxes);
    (void)err;
    sq_text_add(text, "  ");
    sq_text_add_visible(text, name);
    sq_text_add(text, ": nobody has written ");
    for (size_t i = 0; i < count && i < BOXES_SHOWN; i++) {
        sq_text_add(text, i ? ", " : "");
        add_box(text, sq_json_at(boxes, i));
    }
    if (count > BOXES_SHOWN)
        sq_text_printf(text, " and %zu more", count - BOXES_SHOWN);
    sq_text_add(text, "\n");
    return 0;
}

static int add_file(squall_context *ctx, const char *path, struct sq_text *text, struct sq_json *files, struct squall_error *err)
{
    struct sq_json *missing = NULL, *file = sq_json_new_object();
    int status = file ? sq_partial_missing(ctx, path, &missing, err) : sq_error_memory(err, 1);
    if (status) {
        sq_json_free(file);
        return status;
    }
    sq_text_add_visible(text, path);
    sq_text_add(text, ": begun, and not finished\n");
    if (sq_json_count(missing) == 0)
        sq_text_add(text, "  all is written; finish() of its squall.create_many gives it its name\n");
    status = sq_json_each(missing, add_variable, text, err);
    int failed = sq_json_set_string(file, "path", path), second = sq_json_set(file, "missing", missing);
    int third = sq_json_append(files, file);
    return status ? status : failed || second || third ? sq_error_memory(err, 1) : 0;
}

int sq_partial_status(squall_context *ctx, const char *where, const char *const *paths, size_t count, char **ret_text, char **ret_json,
                      struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_CLEANUP_JSON struct sq_json *report = sq_json_new_object();
    struct sq_json *files = sq_json_new_array();
    char *copy = NULL;
    int status = report && !sq_json_set(report, "unfinished", files) ? 0 : sq_error_memory(err, 1);
    if (count == 0) {
        sq_text_add_visible(&text, where);
        sq_text_add(&text, ": nothing of squall.create_many is unfinished\n");
    }
    for (size_t i = 0; i < count && !status; i++)
        status = add_file(ctx, paths[i], &text, files, err);
    if (!status && ret_text && !(copy = sq_text_for_caller(&text)))
        status = sq_error_memory(err, text.length);
    if (!status && ret_json)
        status = sq_json_for_caller(report, ret_json, err);
    if (status)
        free(copy);
    else if (ret_text)
        *ret_text = copy;
    return status;
}
