/*
 * What it costs to find an open file again: sq_handle_pin and sq_handle_unpin of handles in random order, of as many as there are open, on one thread
 * and on two that use the same handles. The best of the rounds, nanoseconds a look-up.
 *
 *   cc -O2 -D_GNU_SOURCE -Isrc -Iinclude bench/handle_lookup.c build/libsquall_private.a build/subprojects/zstd/libzstd.a -pthread -lm -ljson-c -llz4 \
 *      -ldeflate -lz -lopenjp2 -lblosc -laec -lbz2 -o build/handle_lookup && build/handle_lookup FILE [HANDLES]
 */
#include "io/handles.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LOOKUPS = 2000000, ROUNDS = 7 };

static struct sq_handle *handles;
static size_t handle_count;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *look_up(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed + 1;
    for (size_t i = 0; i < LOOKUPS; i++) {
        int fd;
        state = state * 6364136223846793005u + 1442695040888963407u;
        struct sq_handle *h = &handles[(state >> 33) % handle_count];
        if (sq_handle_pin(h, &fd, NULL))
            abort();
        sq_handle_unpin(h);
    }
    return NULL;
}

static double one_round(unsigned threads)
{
    pthread_t ids[2];
    const double start = now_ns();
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, look_up, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    return (now_ns() - start) / LOOKUPS;
}

int main(int argc, char **argv)
{
    handle_count = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
    handles = calloc(handle_count, sizeof *handles);
    if (argc < 2 || !handles)
        return 2;
    for (size_t i = 0; i < handle_count; i++)
        if (sq_handle_open(&handles[i], argv[1], NULL))
            return 1;
    for (unsigned threads = 1; threads <= 2; threads++) {
        double best = 1e30;
        for (int round = 0; round < ROUNDS; round++) {
            const double ns = one_round(threads);
            best = ns < best ? ns : best;
        }
        printf("%u thread%s, %zu handles: %.1f ns a look-up\n", threads, threads > 1 ? "s" : "", handle_count, best);
    }
    return 0;
}
