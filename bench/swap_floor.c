/*
 * What reading big-endian values costs at least: pread of a file that is in the page cache, in turn straight to where the result lies; with its
 * 4-byte words turned there, piece by piece, while they are in the processor's cache; and through a buffer that stays in the cache, turned on the
 * way out of it by stores past the caches. Two threads take 4 MiB of the file at a time. `apart`: how many bytes further in its page the
 * destination lies than the source. The best of all rounds.
 *
 *   cc -O2 -mavx2 -pthread bench/swap_floor.c -o build/swap_floor && build/swap_floor FILE [ROUNDS]
 */
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, CHUNK_BYTES = 4 << 20, BUFFER_BYTES = 512 << 10, PAGE_BYTES = 4096 };
enum kind { STRAIGHT, IN_PLACE, THROUGH_BUFFER, BUFFER_ONLY };

static const struct {
    const char *name;
    enum kind kind;
    size_t piece_bytes;
} ways[] = {
    {"pread, 4 MiB at a time", STRAIGHT, CHUNK_BYTES},        {"pread, 256 KiB", STRAIGHT, 256 << 10},
    {"pread into a buffer, no more", BUFFER_ONLY, 256 << 10}, {"turned in place, 512 KiB", IN_PLACE, 512 << 10},
    {"turned in place, 256 KiB", IN_PLACE, 256 << 10},        {"turned in place, 64 KiB", IN_PLACE, 64 << 10},
    {"turned in place, 16 KiB", IN_PLACE, 16 << 10},          {"out of a buffer, 256 KiB", THROUGH_BUFFER, 256 << 10},
    {"out of a buffer, 64 KiB", THROUGH_BUFFER, 64 << 10},
};
enum { WAYS = sizeof ways / sizeof *ways };

static struct {
    int fd;
    uint8_t *to;
    size_t chunks, way;
    atomic_size_t next;
    pthread_barrier_t begin, end;
} job;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static __m256i turned(const uint8_t *from)
{
    const __m128i order = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    return _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)from), _mm256_broadcastsi128_si256(order));
}

static void turn_in_place(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i += 32)
        _mm256_storeu_si256((__m256i *)(bytes + i), turned(bytes + i));
}

/* Past the caches, from where a line of these begins. What is left at both ends would not be measured. */
static void turn_out(uint8_t *to, const uint8_t *from, size_t count)
{
    for (size_t i = -(uintptr_t)to % 32; i + 32 <= count; i += 32)
        _mm256_stream_si256((__m256i *)(to + i), turned(from + i));
    _mm_sfence();
}

static void fetch(uint8_t *to, size_t count, size_t at)
{
    if (pread(job.fd, to, count, (off_t)at) != (ssize_t)count)
        exit(1);
}

static void work(uint8_t *buffer)
{
    const enum kind kind = ways[job.way].kind;
    const size_t piece = ways[job.way].piece_bytes;
    for (size_t i; (i = atomic_fetch_add(&job.next, 1)) < job.chunks;)
        for (size_t at = i * CHUNK_BYTES; at < (i + 1) * CHUNK_BYTES; at += piece) {
            uint8_t *to = job.to + at;
            fetch(kind == STRAIGHT || kind == IN_PLACE ? to : buffer, piece, at);
            if (kind == IN_PLACE)
                turn_in_place(to, piece);
            else if (kind == THROUGH_BUFFER)
                turn_out(to, buffer, piece);
        }
}

static void *help(void *buffer)
{
    for (;;) {
        pthread_barrier_wait(&job.begin);
        work(buffer);
        pthread_barrier_wait(&job.end);
    }
    return NULL;
}

static double measure(size_t way, uint8_t *buffer)
{
    job.way = way;
    job.next = 0;
    const double begin = now_s();
    pthread_barrier_wait(&job.begin);
    work(buffer);
    pthread_barrier_wait(&job.end);
    return now_s() - begin;
}

static void measure_all(uint8_t *memory, size_t apart, unsigned rounds, uint8_t *buffer)
{
    double best[WAYS];
    job.to = memory + apart;
    for (unsigned round = 0; round < rounds; round++)
        for (size_t way = 0; way < WAYS; way++) {
            const double seconds = measure(way, buffer);
            if (round == 0 || seconds < best[way])
                best[way] = seconds;
        }
    printf("apart by %zu bytes\n", apart);
    for (size_t way = 0; way < WAYS; way++)
        printf("  %-30s %6.2f GiB/s  %.3f of pread\n", ways[way].name, (double)(job.chunks * CHUNK_BYTES) / best[way] / (1 << 30),
               best[0] / best[way]);
}

int main(int count, char **words)
{
    const unsigned rounds = count > 2 ? (unsigned)atoi(words[2]) : 20;
    struct stat s;
    if (count < 2 || (job.fd = open(words[1], O_RDONLY)) < 0 || fstat(job.fd, &s) != 0 || s.st_size < CHUNK_BYTES)
        return 2;
    job.chunks = (size_t)s.st_size / CHUNK_BYTES;
    const size_t size_bytes = job.chunks * CHUNK_BYTES + PAGE_BYTES;
    uint8_t *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *buffer = aligned_alloc(PAGE_BYTES, THREADS * BUFFER_BYTES);
    if (memory == MAP_FAILED || !buffer)
        return 1;
    (void)madvise(memory, size_bytes, MADV_HUGEPAGE);
    pthread_barrier_init(&job.begin, NULL, THREADS);
    pthread_barrier_init(&job.end, NULL, THREADS);
    for (size_t i = 1; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, help, buffer + i * BUFFER_BYTES))
            return 1;
    }
    for (size_t i = 0; i < 3; i++)
        measure_all(memory, (const size_t[]){0, 4, 16}[i], rounds, buffer);
    return 0;
}
