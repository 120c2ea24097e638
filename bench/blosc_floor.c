/*
 * What Zstandard alone takes to decode a Blosc chunk on two threads, each block by one ZSTD_decompressDCtx into a buffer that stays in the
 * processor's cache: no reader that decodes blocks with this libzstd reads a point series in less. The threads spin, so that nobody is woken.
 * Chunks are taken at random, 600 of them, from memory and then from their files.
 *
 *   cc -O2 -pthread bench/blosc_floor.c -lzstd -o build/blosc_floor && find STORE/c -type f | xargs build/blosc_floor
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

enum { ROUNDS = 600, HEADER_BYTES = 16 };

static struct {
    const uint8_t *chunk; /* in memory; of a file only the header and the table of blocks are looked at */
    int fd;               /* −1: from memory */
    uint32_t blocks, block_bytes, chunk_bytes;
    atomic_uint next, begun, done;
} job;

static uint32_t word(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void work(ZSTD_DCtx *decoder, uint8_t *decoded, uint8_t *stored)
{
    for (unsigned i; (i = atomic_fetch_add(&job.next, 1)) < job.blocks;) {
        const uint8_t *starts = job.chunk + HEADER_BYTES;
        const uint32_t at = word(starts + 4 * i), end = i + 1 < job.blocks ? word(starts + 4 * i + 4) : job.chunk_bytes;
        const uint8_t *block = job.fd < 0 ? job.chunk + at : stored;
        if (job.fd >= 0 && pread(job.fd, stored, end - at, at) != (ssize_t)(end - at))
            exit(1);
        if (ZSTD_isError(ZSTD_decompressDCtx(decoder, decoded, job.block_bytes, block + 4, word(block))))
            exit(1);
    }
    atomic_fetch_add(&job.done, 1);
}

static void *help(void *bytes)
{
    ZSTD_DCtx *decoder = ZSTD_createDCtx();
    uint8_t *decoded = malloc((size_t)bytes), *stored = malloc((size_t)bytes);
    for (unsigned seen = 0;; seen++) {
        while (atomic_load(&job.begun) == seen)
            ;
        work(decoder, decoded, stored);
    }
    return NULL;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    enum { BUFFER_BYTES = 4 << 20 };
    uint8_t **chunks = malloc((size_t)argc * sizeof *chunks), *decoded = malloc(BUFFER_BYTES), *stored = malloc(BUFFER_BYTES);
    ZSTD_DCtx *decoder = ZSTD_createDCtx();
    pthread_t helper;
    for (int i = 1; i < argc; i++) {
        struct stat about;
        int fd = open(argv[i], O_RDONLY);
        if (fd < 0 || fstat(fd, &about) || !(chunks[i] = malloc((size_t)about.st_size)) ||
            read(fd, chunks[i], (size_t)about.st_size) < HEADER_BYTES)
            return 1;
        close(fd);
    }
    if (argc < 2 || pthread_create(&helper, NULL, help, (void *)(intptr_t)BUFFER_BYTES))
        return 1;
    for (int from_file = 0; from_file < 2; from_file++) {
        double taken_ms[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) {
            const int which = 1 + rand() % (argc - 1);
            const double begin = now_ms();
            job.fd = from_file ? open(argv[which], O_RDONLY) : -1;
            job.chunk = chunks[which];
            job.block_bytes = word(job.chunk + 8);
            job.chunk_bytes = word(job.chunk + 12);
            job.blocks = (word(job.chunk + 4) + job.block_bytes - 1) / job.block_bytes;
            job.next = job.done = 0;
            atomic_fetch_add(&job.begun, 1);
            work(decoder, decoded, stored);
            while (atomic_load(&job.done) < 2)
                ;
            if (from_file)
                close(job.fd);
            taken_ms[i] = now_ms() - begin;
        }
        qsort(taken_ms, ROUNDS, sizeof *taken_ms, by_size);
        printf("%s: %.3f ms a chunk (median), %.3f (a tenth took less)\n", from_file ? "from files" : "from memory", taken_ms[ROUNDS / 2],
               taken_ms[ROUNDS / 10]);
    }
    return 0;
}
