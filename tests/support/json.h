/* A JSON text that a test takes for granted. */
#ifndef SQ_TESTS_SUPPORT_JSON_H
#define SQ_TESTS_SUPPORT_JSON_H

#include "base/error_internal.h"
#include "base/json.h"
#include <string.h>

static struct sq_json *parsed(const char *text)
{
    struct sq_json *v = NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_json_parse(text, strlen(text), &v, &err))
        fail_msg("%s: %s", text, err.message);
    return v;
}

#endif
