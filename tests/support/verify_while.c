/* verify_while STORE COMMAND: squall verify, on one thread, during which COMMAND runs: behind the first chunk, when the records have been read. */
#include <squall/squall.h>
#include <stdio.h>
#include <stdlib.h>

struct meanwhile {
    const char *command;
    int done;
};

static void progress(void *user, uint64_t chunks_done, uint64_t chunks, uint64_t bytes_in, uint64_t bytes_out)
{
    struct meanwhile *m = user;
    (void)chunks_done;
    (void)chunks;
    (void)bytes_in;
    (void)bytes_out;
    if (!m->done++ && system(m->command) != 0)
        fprintf(stderr, "verify_while: %s failed\n", m->command);
}

int main(int argc, char **argv)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    const struct squall_context_options options = {.threads = 1};
    struct squall_verify_result result = {0};
    squall_context *ctx = NULL;
    if (argc != 3)
        return 2;
    struct meanwhile m = {.command = argv[2]};
    const struct squall_convert_events events = {.progress = progress, .user = &m};
    int status = squall_context_new(&options, &ctx, &err);
    if (!status)
        status = squall_verify_report(ctx, argv[1], &events, &result, &err);
    if (status)
        fprintf(stderr, "%s\n", err.message);
    else
        fputs(result.text, stdout);
    const int code = status ? 1 : result.bad ? 5 : 0;
    free(result.text);
    free(result.json);
    squall_context_free(ctx);
    return code;
}
