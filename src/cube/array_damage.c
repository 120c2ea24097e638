/* See array_damage.h. */
#include "cube/array_damage.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "sys/file.h"
#include <string.h>

bool sq_array_is_damage(int status)
{
    return status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED;
}

/* Take the path out of a message, wherever it names the file or what lies in it. */
static void take_out(char *message, const char *path)
{
    const size_t length = strlen(path);
    for (char *at = message; length && (at = strstr(at, path));) {
        const char *end = at + length;
        const bool begins = at == message || at[-1] == ' ';
        const size_t more = !strncmp(end, ": ", 2) ? 2 : *end == '/' ? 1 : 0;
        if (begins && more)
            memmove(at, end + more, strlen(end + more) + 1);
        else
            at++;
    }
}

char *sq_array_damage_text(const char *path, const char *message)
{
    SQ_CLEANUP_FREE char *absolute = sq_path_absolute(path);
    char *text = sq_strdup(message), *colon;
    if (!text || !absolute) {
        sq_free(text);
        return NULL;
    }
    take_out(text, path);
    take_out(text, absolute);
    /* "array t: array t, chunk 1/0" */
    for (; !strncmp(text, "array ", 6) && (colon = strstr(text, ": array ")); memmove(text, colon + 2, strlen(colon + 2) + 1))
        if (strncmp(text, colon + 2, (size_t)(colon - text)) != 0)
            break;
    return text;
}

int sq_schema_set_failed(struct sq_json *schema, const char *name, const char *why, const char *places, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *before = sq_json_share(sq_json_get(schema, "failed"));
    struct sq_json *failed = before ? sq_json_copy(before) : sq_json_new_object(), *one = why ? sq_json_new_object() : NULL;
    if (!why && !sq_json_get(before, name)) {
        sq_json_free(failed);
        return 0;
    }
    int status = failed && (one || !why) ? 0 : SQUALL_ENOMEM;
    if (!status && why)
        status = sq_json_set_string(one, "why", why);
    if (!status && why && places)
        status = sq_json_set_string(one, "places", places);
    if (status) {
        sq_json_free(failed);
        sq_json_free(one);
        return sq_error_memory(err, strlen(name));
    }
    if (why)
        status = sq_json_set(failed, name, one);
    else
        sq_json_remove(failed, name);
    if (!status && sq_json_count(failed) > 0)
        status = sq_json_set(schema, "failed", sq_json_share(failed));
    else if (!status)
        sq_json_remove(schema, "failed");
    sq_json_free(failed);
    return status ? sq_error_memory(err, strlen(name)) : 0;
}

const char *sq_schema_failed(const struct sq_json *schema, const char *name)
{
    return sq_json_string(sq_json_get(sq_json_get(sq_json_get(schema, "failed"), name), "why"));
}

const char *sq_schema_failed_places(const struct sq_json *schema, const char *name)
{
    return sq_json_string(sq_json_get(sq_json_get(sq_json_get(schema, "failed"), name), "places"));
}
