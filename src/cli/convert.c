/* squall convert, status and verify: the main job, and what has come of it. */
#include "commands.h"
#include "config.h"
#include "convert_log.h"
#include "output.h"
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct listener {
    const struct arguments *arguments;
    struct progress progress;
    struct convert_log *log; /* NULL: verify has none */
};

static void on_message(void *user, enum squall_convert_event kind, const char *text)
{
    struct listener *l = user;
    convert_log_message(l->log, kind == SQUALL_CONVERT_WARNING ? "warning" : "note", text);
    if (l->arguments->dry_run || (kind == SQUALL_CONVERT_NOTE && !l->arguments->verbose))
        return; /* a dry run's plan has them all */
    progress_pause(&l->progress);
    if (kind == SQUALL_CONVERT_WARNING)
        warn_line("%s", text);
    else
        complain("%s", text);
}

static void on_progress(void *user, uint64_t done, uint64_t total, uint64_t bytes_in, uint64_t bytes_out)
{
    struct listener *l = user;
    progress_show(&l->progress, done, total, bytes_in, bytes_out);
    if (l->log)
        convert_log_progress(l->log, done, total, bytes_in, bytes_out);
}

/* Paths of the sources, copies: globs are expanded, "-" reads a list from stdin. */
struct path_list {
    char **paths;
    size_t count;
};

static bool add_path(struct path_list *list, const char *path)
{
    char **grown = realloc(list->paths, (list->count + 1) * sizeof *grown);
    if (!grown)
        return complain("squall: out of memory");
    list->paths = grown;
    list->paths[list->count] = strdup(path);
    return list->paths[list->count++] != NULL || complain("squall: out of memory");
}

static void path_list_done(struct path_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
}

static bool add_from_stdin(struct path_list *list)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    bool ok = true;
    while (ok && (length = getline(&line, &capacity, stdin)) >= 0) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = 0;
        ok = length == 0 || add_path(list, line);
    }
    free(line);
    return ok;
}

/* A pattern that matches nothing stays as it is: the library then says that there is no such path. */
static bool add_glob(struct path_list *list, const char *pattern)
{
    glob_t found;
    int status = glob(pattern, GLOB_NOCHECK, NULL, &found);
    if (status)
        return complain("squall: %s: cannot be expanded", pattern);
    bool ok = true;
    for (size_t i = 0; ok && i < found.gl_pathc; i++)
        ok = add_path(list, found.gl_pathv[i]);
    globfree(&found);
    return ok;
}

/* given: what the user wrote, for the records; of a list on stdin its lines. */
static bool collect_sources(const struct arguments *a, struct path_list *ret, struct path_list *given)
{
    for (size_t i = 0; i + 1 < a->positional.count; i++) {
        const char *source = a->positional.items[i];
        bool is_glob = strpbrk(source, "*?[") && access(source, F_OK) != 0; /* a file may be called like one */
        const size_t before = ret->count;
        const bool is_list = !strcmp(source, "-");
        bool ok = is_list ? add_from_stdin(ret) : is_glob ? add_glob(ret, source) : add_path(ret, source);
        for (size_t k = is_list ? before : ret->count; ok && k < ret->count; k++)
            ok = add_path(given, ret->paths[k]);
        if (!ok || (!is_list && !add_path(given, source)))
            return false;
    }
    return ret->count > 0 || complain("squall convert: no source was named on stdin");
}

/* A plan that needs too much memory is shown too, before it is told. */
static int print_plan(const struct arguments *a, const squall_convert_plan *plan)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    char *text;
    int status = a->json ? squall_convert_plan_json(plan, &text, &err) : squall_convert_plan_text(plan, &text, &err);
    if (status)
        return fail_with(&err);
    fputs(text, stdout);
    fflush(stdout);
    free(text);
    return squall_convert_plan_check(plan, &err) ? fail_with(&err) : EXIT_DONE;
}

/* fail_with, and in the log, too. */
static int fail_logged(struct listener *listener, const struct squall_error *err)
{
    convert_log_message(listener->log, "error", err->message);
    return fail_with(err);
}

/* status: of what gave the result, which goes; *ret_report: JSON, the caller's; NULL where it came to none. */
static int tell_result(const struct arguments *a, int status, const struct squall_error *err, struct squall_convert_result result,
                       struct listener *listener, char **ret_report)
{
    progress_end(&listener->progress);
    if (status) {
        int code = fail_logged(listener, err);
        if (code >= EXIT_SIGNAL)
            complain("%s", err->message);
        return code;
    }
    if (a->json)
        fputs(result.json, stdout);
    else if (!a->quiet)
        fputs(result.text, stdout);
    bool all_good = !result.news && !result.units_failed && !(a->strict && result.bad_inputs);
    *ret_report = result.json;
    result.json = NULL;
    squall_convert_result_done(&result);
    return all_good ? EXIT_DONE : EXIT_INPUTS;
}

/* *ret_report: as above. */
static int carry_out(const struct arguments *a, squall_convert_plan *plan, struct listener *listener, char **ret_report)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct squall_convert_result result = {0};
    int status = squall_convert_run(plan, &result, &err);
    return tell_result(a, status, &err, result, listener, ret_report);
}

static int finish(const struct arguments *a, squall_context *ctx, struct listener *listener, char **ret_report)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct squall_convert_result result = {0};
    int status = squall_convert_finish(ctx, a->positional.items[a->positional.count - 1], a->lock_timeout_s, &result, &err);
    return tell_result(a, status, &err, result, listener, ret_report);
}

static struct squall_convert_options options_of(const struct arguments *a, const struct path_list *sources, const struct path_list *given)
{
    return (struct squall_convert_options){
        .sources = (const char *const *)sources->paths,
        .source_count = sources->count,
        .given = (const char *const *)given->paths,
        .given_count = given->count,
        .destination = a->positional.items[a->positional.count - 1],
        .chunks = a->chunks,
        .shards = a->shards,
        .dtype = a->dtype,
        .bitround = a->bitround,
        .on_overflow = a->on_overflow,
        .codec = a->codec,
        .select = a->select.items,
        .select_count = a->select.count,
        .rename = a->rename.items,
        .rename_count = a->rename.count,
        .coarsen = a->coarsen,
        .y_order = a->y_order,
        .schema = a->schema,
        .every = a->every,
        .stack = a->stack,
        .stack_name = a->stack_name,
        .append_dim = a->append_dim,
        .concat_dim = a->concat_dim,
        .drift = a->drift,
        .group = a->group,
        .zarr_format = a->zarr_format,
        .part = a->part,
        .prepend = a->prepend,
        .overwrite = a->overwrite,
        .strict = a->strict,
        .lock_timeout_s = a->lock_timeout_s,
    };
}

/* What goes together, and what does not. */
static bool check_options(const struct arguments *a)
{
    if (a->stack_name && !a->stack)
        return complain("squall convert: --stack-name goes with --stack variable");
    if (a->strict && a->keep_going)
        return complain("squall convert: --strict and --keep-going exclude each other");
    if (!a->finish)
        return true;
    if (a->part || a->dry_run || a->overwrite || a->prepend)
        return complain("squall convert: --finish and --%s exclude each other", a->part        ? "part"
                                                                                : a->dry_run   ? "dry-run"
                                                                                : a->overwrite ? "overwrite"
                                                                                               : "prepend");
    return a->positional.count == 1 || a->config || complain("squall convert: --finish takes the store alone: squall convert --finish DST");
}

int run_convert(const struct arguments *a)
{
    if (a->print_config) {
        config_print(stdout, command_named("convert"), a);
        return EXIT_DONE;
    }
    if (!check_options(a))
        return EXIT_USAGE;
    int code = EXIT_FAILED;
    struct path_list sources = {0}, given = {0};
    squall_convert_plan *plan = NULL;
    squall_context *ctx = a->finish || collect_sources(a, &sources, &given) ? context_new(a) : NULL;
    struct convert_log log;
    struct listener listener = {.arguments = a, .log = &log};
    char *report = NULL;
    progress_begin(&listener.progress, a);
    bool ready = convert_log_begin(&log, a) && ctx;
    if (ready && a->finish) {
        code = finish(a, ctx, &listener, &report);
    } else if (ready) {
        struct squall_convert_options wanted = options_of(a, &sources, &given);
        struct squall_convert_events events = {.message = on_message, .progress = on_progress, .user = &listener};
        struct squall_error err = SQUALL_ERROR_INIT;
        if (squall_convert_plan_new(ctx, &wanted, &events, &plan, &err))
            code = fail_logged(&listener, &err);
        else
            code = a->dry_run ? print_plan(a, plan) : carry_out(a, plan, &listener, &report);
    }
    convert_log_end(&log, code, report);
    free(report);
    squall_convert_plan_free(plan);
    squall_context_free(ctx);
    path_list_done(&sources);
    path_list_done(&given);
    return code;
}

static void print_report(const struct arguments *a, char *text, char *json)
{
    fputs(a->json ? json : text, stdout);
    free(text);
    free(json);
}

/* Whoever looks at the page meanwhile sees the old one or the new one. */
static bool write_page(const char *path, const char *html)
{
    char *temporary = NULL;
    if (asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) < 0)
        return complain("squall: out of memory");
    FILE *file = fopen(temporary, "wx");
    bool ok = file && fputs(html, file) >= 0;
    if (file)
        ok = !fclose(file) && ok && !rename(temporary, path);
    if (!ok) {
        complain("squall: %s: %s", path, strerror(errno));
        if (file)
            unlink(temporary);
    }
    free(temporary);
    return ok;
}

static int make_page(squall_context *ctx, const struct arguments *a)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    char *html = NULL;
    if (squall_status_html(ctx, a->positional.items[0], &html, &err))
        return fail_with(&err);
    int code = write_page(a->html, html) ? EXIT_DONE : EXIT_FAILED;
    free(html);
    return code;
}

int run_status(const struct arguments *a)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    char *text = NULL, *json = NULL;
    size_t unfinished = 0;
    squall_context *ctx = context_new(a);
    if (!ctx)
        return EXIT_FAILED;
    int status = squall_status_report(ctx, a->positional.items[0], a->json ? NULL : &text, a->json ? &json : NULL, &unfinished, &err);
    int code = status ? fail_with(&err) : unfinished ? EXIT_INPUTS : EXIT_DONE;
    if (!status)
        print_report(a, text, json);
    if (!status && a->html && make_page(ctx, a))
        code = EXIT_FAILED;
    squall_context_free(ctx);
    return code;
}

int run_verify(const struct arguments *a)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct squall_verify_result result;
    squall_context *ctx = context_new(a);
    if (!ctx)
        return EXIT_FAILED;
    struct listener listener = {.arguments = a};
    progress_begin(&listener.progress, a);
    listener.progress.noun = "chunks";
    listener.progress.only_reads = true;
    struct squall_convert_events events = {.progress = on_progress, .user = &listener}; /* no messages: the report has them all */
    int status = squall_verify_report(ctx, a->positional.items[0], &events, &result, &err);
    progress_end(&listener.progress);
    int code = status ? fail_with(&err) : result.bad ? EXIT_DAMAGE : result.unchecked ? EXIT_INPUTS : EXIT_DONE;
    if (!status)
        print_report(a, result.text, result.json);
    squall_context_free(ctx);
    return code;
}
