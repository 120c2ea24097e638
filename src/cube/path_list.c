#include "cube/path_list.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "sys/file.h"
#include <string.h>

int sq_is_pattern(const char *path, bool *ret, struct squall_error *err)
{
    enum sq_file_kind kind = SQ_FILE_REGULAR;
    const bool could_be = strpbrk(path, "*?[") != NULL;
    if (could_be)
        SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    *ret = could_be && kind == SQ_FILE_NONE;
    return 0;
}

void sq_path_list_done(struct sq_path_list *list)
{
    sq_names_free(list->paths, list->count);
}

static int add_path(struct sq_path_list *list, const char *path, struct squall_error *err)
{
    SQ_TRY(SQ_GROW(list->paths, list->capacity, list->count + 1, err));
    if (!(list->paths[list->count] = sq_strdup(path)))
        return sq_error_memory(err, strlen(path));
    list->count++;
    return 0;
}

static int add_matching(struct sq_path_list *list, const char *pattern, struct squall_error *err)
{
    char **paths = NULL;
    size_t count = 0;
    SQ_TRY(sq_paths_matching(pattern, &paths, &count, err));
    int status = count ? 0 : sq_error(err, SQUALL_ENOTFOUND, "%s: no file has such a name", pattern);
    for (size_t i = 0; i < count && !status; i++)
        status = add_path(list, paths[i], err);
    sq_names_free(paths, count);
    return status;
}

int sq_path_list_add(struct sq_path_list *list, const char *const *paths, size_t count, struct squall_error *err)
{
    bool is_pattern;
    for (size_t i = 0; i < count; i++) {
        SQ_TRY(sq_is_pattern(paths[i], &is_pattern, err));
        SQ_TRY(is_pattern ? add_matching(list, paths[i], err) : add_path(list, paths[i], err));
    }
    return 0;
}
