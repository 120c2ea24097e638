/*
 * Reading boxes: a made-up format whose chunks lie one behind the other in a memory source, each byte inverted where it counts as
 * encoded, so that what is tested is the engine alone. The oracle computes every element from its index.
 */
#include "support/unit.h"

#include "array/bytes.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/array.h"
#include "engine/read.h"
#include "engine/worker.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum fake_kind { PLAIN, ENCODED, INLINE, APART /* in C order, byte-swapped, other things between rows, the last chunk cut */ };

struct fake {
    struct squall_array base;
    enum fake_kind kind;
    unsigned rank;
    uint64_t shape[4], chunks[4], grid[4];
    uint64_t chunk_elements, chunk_count;
    int32_t *elements;          /* every chunk whole, in C order of the grid */
    uint64_t row_bytes;         /* of APART */
    struct squall_bytes *texts; /* of a string array, as elements */
    uint8_t *stored;
    struct sq_source *source;
    uint64_t missing_every;     /* chunk numbers divisible by it are not there; 0: all are */
    uint64_t broken, short_one; /* chunk numbers whose decoding fails, whose stored size is wrong; UINT64_MAX: none */
    int32_t fill;
    struct squall_bytes fill_text;
    atomic_int scratches, decodes, shuffled;
    size_t range_bytes; /* of the last range */
};

static struct squall_context context = {.threads = 4, .memory_bytes = (uint64_t)1 << 30};
static struct squall_dataset *dataset;

static int32_t value_at(uint64_t number)
{
    return (int32_t)(number * 2654435761u);
}

static struct squall_bytes text_at(uint64_t number)
{
    char *text = sq_format("text %llu", (unsigned long long)number);
    return (struct squall_bytes){text, strlen(text)};
}

static struct fake *fake_of(const struct squall_array *a)
{
    return (struct fake *)(uintptr_t)a;
}

static uint64_t chunk_number(const struct fake *f, const uint64_t *chunk)
{
    uint64_t number = 0;
    for (unsigned d = 0; d < f->rank; d++) {
        assert_true(chunk[d] < f->grid[d]);
        number = number * f->grid[d] + chunk[d];
    }
    return number;
}

/* Bytes between neighbours along dimension d of APART. */
static uint64_t rows_stride(const struct fake *f, unsigned d)
{
    uint64_t stride = 4;
    for (unsigned e = f->rank; e-- > d + 1;)
        stride *= f->shape[e];
    return d == 0 ? f->row_bytes : stride;
}

static void locate_rows(const struct fake *f, const uint64_t *chunk, struct sq_location *ret)
{
    *ret = (struct sq_location){.source = f->source, .size_bytes = 4};
    for (unsigned d = 0; d < f->rank; d++) {
        const uint64_t begin = chunk[d] * f->chunks[d], left = f->shape[d] - begin;
        ret->offset += begin * rows_stride(f, d);
        ret->size_bytes += ((left < f->chunks[d] ? left : f->chunks[d]) - 1) * rows_stride(f, d);
    }
}

static int locate(const struct squall_array *a, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err)
{
    (void)err;
    struct fake *f = fake_of(a);
    uint64_t number = chunk_number(f, chunk), bytes = f->chunk_elements * 4;
    *ret = (struct sq_location){.source = f->source, .offset = number * bytes, .size_bytes = bytes, .param = number};
    if (f->missing_every && number % f->missing_every == 0)
        ret->state = SQ_CHUNK_MISSING;
    if (f->kind == APART && ret->state == SQ_CHUNK_PRESENT)
        locate_rows(f, chunk, ret);
    if (f->kind == INLINE) {
        ret->state = SQ_CHUNK_INLINE;
        ret->elements = f->texts ? (const void *)(f->texts + number * f->chunk_elements) : f->elements + number * f->chunk_elements;
    }
    if (number == f->short_one)
        ret->size_bytes--;
    return 0;
}

static void *scratch_new(const struct squall_array *a)
{
    void *scratch = sq_alloc(1, 1);
    if (scratch)
        fake_of(a)->scratches++;
    return scratch;
}

static int decode(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_location *where, const void *bytes,
                  size_t size, void *dst, size_t dst_size, struct squall_error *err)
{
    (void)threads;
    struct fake *f = fake_of(a);
    f->decodes++;
    *(char *)scratch = 1; /* two threads with one scratch are a data race that the sanitizer sees */
    if (where->param == f->broken) {
        memset(dst, 0x5a, dst_size); /* what a decoder has written when it fails is nobody's */
        return sq_error(err, SQUALL_ECORRUPT, "broken on purpose");
    }
    if (f->texts) {
        for (uint64_t i = 0; i < f->chunk_elements; i++) {
            const struct squall_bytes *text = &f->texts[where->param * f->chunk_elements + i];
            if (sq_bytes_copy(text->data, text->size_bytes, (struct squall_bytes *)dst + i, err)) {
                sq_bytes_free(dst, i);
                return SQUALL_ENOMEM;
            }
        }
        return 0;
    }
    if (size != dst_size)
        return sq_error(err, SQUALL_ECORRUPT, "%zu bytes for %zu", size, dst_size);
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)dst)[i] = (uint8_t) ~((const uint8_t *)bytes)[i];
    return 0;
}

/* Where the elements may stay shuffled they do, in blocks of some five. */
static int decode_range(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_codec_input *input,
                        const struct sq_codec_range *range, void *dst, struct sq_shuffle_layout *ret_layout, struct squall_error *err)
{
    (void)scratch, (void)threads;
    fake_of(a)->range_bytes = range->count_bytes;
    fake_of(a)->shuffled += ret_layout != NULL;
    if (input->size_bytes != range->chunk_bytes || range->from_bytes + range->count_bytes > range->chunk_bytes)
        return sq_error(err, SQUALL_EINVAL, "%zu bytes from %zu of %zu", range->count_bytes, range->from_bytes, range->chunk_bytes);
    uint8_t *plain = malloc(range->count_bytes + 1), *at = dst;
    for (size_t i = 0; i < range->count_bytes; i++)
        plain[i] = (uint8_t)~input->bytes[range->from_bytes + i];
    if (ret_layout)
        *ret_layout = (struct sq_shuffle_layout){.block_bytes = 22, .width = 4};
    for (size_t i = 0; i < range->count_bytes && ret_layout; i += 22) {
        const size_t left = range->count_bytes - i;
        sq_shuffle(4, left < 22 ? left : 22, plain + i, at + i);
    }
    if (!ret_layout)
        memcpy(dst, plain, range->count_bytes);
    free(plain);
    return 0;
}

static void fake_free(struct squall_array *a)
{
    struct fake *f = fake_of(a);
    sq_source_close(f->source);
    for (uint64_t i = 0; f->texts && i < f->chunk_count * f->chunk_elements; i++)
        free(f->texts[i].data);
    free(f->texts);
    free(f->elements);
    free(f->stored);
    free(f);
}

static const struct sq_array_ops OPS = {.locate = locate,
                                        .scratch_new = scratch_new,
                                        .scratch_free = sq_free,
                                        .decode = decode,
                                        .decode_range = decode_range,
                                        .free = fake_free};

/* Where element `index` of the array lies among `elements`. */
static uint64_t place_of(const struct fake *f, const uint64_t *index)
{
    uint64_t number = 0, within = 0;
    for (unsigned d = 0; d < f->rank && f->kind == APART; d++)
        number = number * f->shape[d] + index[d];
    for (unsigned d = 0; d < f->rank && f->kind != APART; d++) {
        number = number * f->grid[d] + index[d] / f->chunks[d];
        within = within * f->chunks[d] + index[d] % f->chunks[d];
    }
    return f->kind == APART ? number : number * f->chunk_elements + within;
}

static struct fake *fake_new(enum fake_kind kind, bool strings, unsigned rank, const uint64_t *shape, const uint64_t *chunks)
{
    static const char *const dims[] = {"a", "b", "c", "d"};
    struct fake *f = calloc(1, sizeof *f);
    f->kind = kind;
    f->rank = rank;
    f->chunk_elements = f->chunk_count = 1;
    for (unsigned d = 0; d < rank; d++) {
        f->shape[d] = shape[d];
        f->chunks[d] = chunks[d];
        f->grid[d] = (shape[d] + chunks[d] - 1) / chunks[d];
        f->chunk_elements *= chunks[d];
        f->chunk_count *= f->grid[d];
    }
    uint64_t total = f->chunk_elements * f->chunk_count;
    f->elements = calloc(total + 1, 4);
    f->stored = calloc(total + 1, 4);
    f->texts = strings ? calloc(total + 1, sizeof *f->texts) : NULL;
    for (uint64_t i = 0; i < total; i++) {
        f->elements[i] = value_at(i);
        if (strings)
            f->texts[i] = text_at(i);
    }
    for (uint64_t i = 0; i < total * 4; i++)
        f->stored[i] = kind == PLAIN ? ((uint8_t *)f->elements)[i] : (uint8_t) ~((uint8_t *)f->elements)[i];
    assert_int_equal(sq_source_open_memory(f->stored, total * 4, "fake.bin", &f->source, NULL), 0);
    f->broken = f->short_one = UINT64_MAX;
    f->fill = -77;
    f->fill_text = (struct squall_bytes)TEXT("fill");
    f->base = (struct squall_array){.ops = &OPS, .plain = kind == PLAIN && !strings};
    f->base.fill = strings ? (const void *)&f->fill_text : &f->fill;
    f->base.info = (struct squall_array_info){
        .name = "fake", .type = strings ? SQUALL_STRING : SQUALL_INT32, .rank = rank, .shape = f->shape, .chunks = f->chunks, .dims = dims};
    assert_int_equal(sq_dataset_add(dataset, &f->base, NULL), 0);
    return f;
}

/* Chunks are rows together, or a part of one; what lies between rows is 0xee. */
static struct fake *rows_new(unsigned rank, const uint64_t *shape, const uint64_t *chunks, uint64_t between_bytes)
{
    struct fake *f = fake_new(APART, false, rank, shape, chunks);
    uint64_t row_elements = 1, bytes;
    for (unsigned d = 1; d < rank; d++)
        row_elements *= shape[d];
    f->row_bytes = row_elements * 4 + between_bytes;
    bytes = f->row_bytes * (rank ? shape[0] : 1);
    free(f->stored);
    f->stored = malloc(bytes);
    memset(f->stored, 0xee, bytes);
    for (uint64_t row = 0; row < (rank ? shape[0] : 1); row++)
        for (uint64_t i = 0; i < row_elements; i++) {
            const uint32_t swapped = __builtin_bswap32((uint32_t)value_at(row * row_elements + i));
            memcpy(f->stored + row * f->row_bytes + 4 * i, &swapped, 4);
        }
    sq_source_close(f->source);
    assert_int_equal(sq_source_open_memory(f->stored, bytes, "fake.bin", &f->source, NULL), 0);
    f->base.plain = true;
    f->base.swap_bytes = 4;
    f->base.row_bytes = between_bytes ? f->row_bytes : 0;
    for (unsigned d = 0; d < rank; d++)
        f->base.grid[d].cut = true;
    return f;
}

static int open_dataset(void **state)
{
    (void)state;
    dataset = sq_dataset_new(&context, "fake", "fake", NULL);
    return dataset ? 0 : -1;
}

static int close_dataset(void **state)
{
    (void)state;
    squall_dataset_close(dataset);
    return 0;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static uint64_t below(uint64_t *state, uint64_t limit)
{
    return next_random(state) % limit;
}

static bool next_index(unsigned rank, const uint64_t *count, uint64_t *index)
{
    for (unsigned d = rank; d-- > 0;) {
        if (++index[d] < count[d])
            return true;
        index[d] = 0;
    }
    return false;
}

static bool is_missing(const struct fake *f, const uint64_t *index)
{
    uint64_t chunk[4];
    for (unsigned d = 0; d < f->rank; d++)
        chunk[d] = index[d] / f->chunks[d];
    return f->missing_every && chunk_number(f, chunk) % f->missing_every == 0;
}

/* Read the box into a larger buffer with these strides, and look at every byte of it. */
static void check_read(struct fake *f, const struct squall_selection *s, const int64_t *strides, size_t buffer_bytes, size_t first)
{
    uint8_t *buffer = malloc(buffer_bytes + 1);
    memset(buffer, 0xa5, buffer_bytes);
    struct squall_error err = SQUALL_ERROR_INIT;
    if (squall_array_read(&f->base, s, buffer + first, strides, &err))
        fail_msg("%s", err.message);
    uint64_t at[4] = {0}, total = 1;
    for (unsigned d = 0; d < f->rank; d++)
        total *= s->count[d];
    if (total > 0)
        do {
            uint64_t index[4];
            int64_t place = (int64_t)first;
            for (unsigned d = 0; d < f->rank; d++) {
                index[d] = s->start[d] + at[d] * s->step[d];
                place += (int64_t)at[d] * strides[d];
            }
            int32_t got, expected = is_missing(f, index) ? f->fill : value_at(place_of(f, index));
            memcpy(&got, buffer + place, 4);
            assert_int_equal(got, expected);
            memset(buffer + place, 0xa5, 4);
        } while (next_index(f->rank, s->count, at));
    for (size_t i = 0; i < buffer_bytes; i++) /* and nothing else was written */
        assert_int_equal(buffer[i], 0xa5);
    free(buffer);
}

/* Strides of a C-ordered, reversed, padded or transposed destination. */
static size_t random_strides(uint64_t *random, unsigned rank, const uint64_t *count, int64_t *strides, size_t *first)
{
    unsigned order[4] = {0, 1, 2, 3};
    size_t bytes = 4;
    *first = 0;
    if (rank > 1 && below(random, 3) == 0) {
        unsigned a = (unsigned)below(random, rank), swapped = order[a];
        order[a] = order[rank - 1];
        order[rank - 1] = swapped;
    }
    for (unsigned i = rank; i-- > 0;) {
        unsigned d = order[i];
        bool reversed = below(random, 6) == 0;
        size_t stride = bytes + (below(random, 6) == 0 ? 4 : 0);
        strides[d] = reversed ? -(int64_t)stride : (int64_t)stride;
        if (reversed && count[d] > 0)
            *first += (count[d] - 1) * stride;
        bytes = stride * (count[d] ? count[d] : 1);
    }
    return bytes;
}

/* One of up to 7 elements along each dimension, or all of them. */
static void check_reads(struct fake *f, int reads, uint64_t *random)
{
    for (int i = 0; i < reads; i++) {
        struct squall_selection s = squall_selection_all(&f->base);
        int64_t strides[4];
        size_t first;
        for (unsigned d = 0; d < f->rank && i > 0; d++) {
            s.start[d] = below(random, f->shape[d]);
            s.step[d] = 1 + below(random, 3);
            s.count[d] = below(random, 2 + (f->shape[d] - s.start[d] - 1) / s.step[d]);
        }
        size_t bytes = random_strides(random, f->rank, s.count, strides, &first);
        check_read(f, &s, strides, bytes, first);
    }
}

static void any_box_of_any_array_is_right(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (int round = 0; round < 600; round++) {
        unsigned rank = (unsigned)below(&random, 5);
        uint64_t shape[4], chunks[4];
        for (unsigned d = 0; d < rank; d++) {
            shape[d] = 1 + below(&random, 7);
            chunks[d] = 1 + below(&random, 9);
        }
        struct fake *f = fake_new((enum fake_kind)below(&random, 3), false, rank, shape, chunks);
        f->missing_every = f->kind == INLINE ? 0 : below(&random, 4);
        f->base.has_range = below(&random, 2);
        check_reads(f, 5, &random);
    }
}

static void any_box_of_rows_that_lie_apart_is_right(void **state)
{
    (void)state;
    uint64_t random = 8;
    for (int round = 0; round < 400; round++) {
        static const uint64_t between[] = {0, 0, 1, 3, 4, 100, 9000, 300000};
        unsigned rank = (unsigned)below(&random, 5), cut = rank ? (unsigned)below(&random, rank) : 0;
        uint64_t shape[4], chunks[4];
        for (unsigned d = 0; d < rank; d++) {
            shape[d] = 1 + below(&random, round % 50 == 0 ? 40 : 7);
            chunks[d] = d < cut ? 1 : d > cut ? shape[d] : 1 + below(&random, 9);
        }
        struct fake *f = rows_new(rank, shape, chunks, between[below(&random, sizeof between / sizeof *between)]);
        check_reads(f, 5, &random);
        f->missing_every = below(&random, 4);
        check_reads(f, 2, &random);
    }
}

/* More than is read at a time: every piece is turned in its place. */
static void a_large_run_in_the_other_byte_order_is_right(void **state)
{
    (void)state;
    static const uint64_t shape[] = {3, 300001}, chunks[] = {2, 300001}, within[] = {1, 170000};
    uint64_t random = 9;
    check_reads(rows_new(2, shape, chunks, 0), 3, &random);
    check_reads(rows_new(2, shape, chunks, 2), 3, &random);
    check_reads(rows_new(2, shape, within, 2), 3, &random);
}

static void a_small_run_of_a_chunk_is_decoded_alone_where_that_can_be(void **state)
{
    (void)state;
    const uint64_t shape[] = {16, 10}, chunks[] = {16, 10};
    struct fake *f = fake_new(ENCODED, false, 2, shape, chunks);
    f->base.has_range = true;
    struct squall_selection row = {.start = {5, 0}, .count = {1, 10}, .step = {1, 1}},
                            column = {.start = {0, 5}, .count = {16, 1}, .step = {1, 1}};
    int32_t values[16];
    assert_int_equal(squall_array_read(&f->base, &row, values, NULL, NULL), 0);
    assert_int_equal(f->range_bytes, 10 * 4);
    assert_int_equal(squall_array_read(&f->base, &column, values, NULL, NULL), 0);
    assert_int_equal(f->range_bytes, 160 * 4);
    assert_int_equal(f->shuffled, 0);
}

static void a_few_elements_are_picked_out_of_a_chunk_that_stays_shuffled(void **state)
{
    (void)state;
    const uint64_t shape[] = {64, 100}, chunks[] = {64, 100};
    const struct squall_selection boxes[] = {
        {.start = {3, 7}, .count = {60, 1}, .step = {1, 1}},
        {.start = {0, 95}, .count = {5, 5}, .step = {15, 1}},
        {.start = {1, 2}, .count = {5, 5}, .step = {15, 20}},
    };
    struct fake *f = fake_new(ENCODED, false, 2, shape, chunks);
    f->base.has_range = true;
    for (unsigned i = 0; i < sizeof boxes / sizeof *boxes; i++) {
        const int64_t strides[] = {-80, 12};
        const size_t bytes = 80 * boxes[i].count[0] + 12 * boxes[i].count[1];
        check_read(f, &boxes[i], strides, bytes, 80 * (boxes[i].count[0] - 1));
        check_read(f, &boxes[i], (const int64_t[]){(int64_t)boxes[i].count[1] * 4, 4}, bytes, 0);
    }
    assert_int_equal(f->decodes, 0);
    assert_true(f->shuffled >= 4);
}

static void without_strides_the_box_is_packed(void **state)
{
    (void)state;
    const uint64_t shape[] = {5, 7}, chunks[] = {2, 3};
    struct fake *f = fake_new(ENCODED, false, 2, shape, chunks);
    struct squall_selection s = squall_selection_all(&f->base);
    int32_t values[35];
    assert_int_equal(squall_array_read(&f->base, &s, values, NULL, NULL), 0);
    for (uint64_t y = 0; y < 5; y++)
        for (uint64_t x = 0; x < 7; x++)
            assert_int_equal(values[7 * y + x], value_at(place_of(f, (uint64_t[]){y, x})));
}

static void large_chunks_are_read_by_threads_that_keep_their_scratch(void **state)
{
    (void)state;
    enum { ROWS = 16, COLUMNS = 1 << 17 };
    const uint64_t shape[] = {ROWS, COLUMNS}, chunks[] = {2, COLUMNS - 5};
    struct squall_dataset *kept = dataset;
    dataset = sq_dataset_new(&context, "large", "fake", NULL);
    struct fake *f = fake_new(ENCODED, false, 2, shape, chunks);
    struct squall_selection s = squall_selection_all(&f->base);
    int32_t *values = malloc(sizeof *values * ROWS * COLUMNS);
    enum { READS = 5 };
    for (int i = 0; i < READS; i++) {
        memset(values, 0, sizeof *values * ROWS * COLUMNS);
        assert_int_equal(sq_array_read(&f->base, &s, values, NULL, 1, NULL, NULL), 0);
        assert_int_equal(f->scratches, 1);
    }
    for (int i = 0; i < READS; i++) {
        memset(values, 0, sizeof *values * ROWS * COLUMNS);
        assert_int_equal(squall_array_read(&f->base, &s, values, NULL, NULL), 0);
        for (uint64_t y = 0; y < ROWS; y++)
            for (uint64_t x = 0; x < COLUMNS; x++)
                assert_true(values[y * COLUMNS + x] == value_at(place_of(f, (uint64_t[]){y, x})));
    }
    assert_in_range(f->scratches, 1, READS * context.threads); /* who comes when the idle ones are looked through makes one */
    free(values);
    squall_dataset_close(dataset);
    dataset = kept;
}

/* A single large chunk is fetched by all threads, a piece each. */
static void one_large_chunk_is_fetched_in_pieces(void **state)
{
    (void)state;
    enum { ROWS = 9, COLUMNS = (1 << 17) + 3 };
    const uint64_t shape[] = {ROWS, COLUMNS}, chunks[] = {ROWS, COLUMNS};
    struct squall_dataset *kept = dataset;
    dataset = sq_dataset_new(&context, "large", "fake", NULL);
    struct fake *f = fake_new(ENCODED, false, 2, shape, chunks);
    struct squall_selection all = squall_selection_all(&f->base), column = {.start = {0, 77}, .count = {ROWS, 1}, .step = {1, 1}};
    int32_t *values = calloc((size_t)ROWS * COLUMNS, sizeof *values), few[ROWS];
    struct squall_speed speed = {0};
    assert_int_equal(sq_array_read(&f->base, &all, values, NULL, 4, &speed, NULL), 0);
    assert_int_equal(speed.bytes, (uint64_t)ROWS * COLUMNS * 4);
    for (uint64_t i = 0; i < (uint64_t)ROWS * COLUMNS; i++)
        assert_true(values[i] == value_at(i));
    assert_int_equal(squall_array_read(&f->base, &column, few, NULL, NULL), 0);
    for (uint64_t y = 0; y < ROWS; y++)
        assert_int_equal(few[y], value_at(y * COLUMNS + 77));
    free(values);
    squall_dataset_close(dataset);
    dataset = kept;
}

struct reader {
    struct fake *f;
    uint64_t seed;
    bool right;
};

/* Many small boxes, as the threads of a task scheduler read them. */
static void *read_boxes(void *user)
{
    struct reader *r = user;
    r->right = true;
    for (int i = 0; i < 300; i++) {
        struct squall_selection s = {.start = {below(&r->seed, 20), below(&r->seed, 20)}, .count = {3, 4}, .step = {1, 1}};
        int32_t values[12];
        r->right = r->right && squall_array_read(&r->f->base, &s, values, NULL, NULL) == 0;
        for (uint64_t y = 0; y < 3; y++)
            for (uint64_t x = 0; x < 4; x++)
                r->right = r->right && values[4 * y + x] == value_at(place_of(r->f, (uint64_t[]){s.start[0] + y, s.start[1] + x}));
    }
    return NULL;
}

static void threads_read_one_array_at_the_same_time(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    const uint64_t shape[] = {24, 24}, chunks[] = {5, 7};
    struct squall_dataset *kept = dataset;
    dataset = sq_dataset_new(&context, "shared", "fake", NULL);
    struct fake *f = fake_new(ENCODED, false, 2, shape, chunks);
    struct reader readers[THREADS];
    pthread_t threads[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){.f = f, .seed = i};
        assert_int_equal(pthread_create(&threads[i], NULL, read_boxes, &readers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(readers[i].right);
    }
    squall_dataset_close(dataset);
    dataset = kept;
}

static void a_chunk_that_does_not_decode_is_named(void **state)
{
    (void)state;
    const uint64_t shape[] = {6, 6}, chunks[] = {2, 2};
    struct fake *f = fake_new(ENCODED, false, 2, shape, chunks);
    struct squall_selection s = squall_selection_all(&f->base);
    struct squall_error err = SQUALL_ERROR_INIT;
    int32_t values[36];
    f->broken = 5;
    assert_int_equal(squall_array_read(&f->base, &s, values, NULL, &err), SQUALL_ECORRUPT);
    assert_string_equal(err.message, "array fake, chunk 1/2: fake.bin: broken on purpose");
    s.count[0] = 2; /* without that chunk the read is well */
    assert_int_equal(squall_array_read(&f->base, &s, values, NULL, &err), 0);
}

static void a_chunk_of_another_size_is_refused(void **state)
{
    (void)state;
    const uint64_t shape[] = {6, 6}, chunks[] = {2, 2};
    struct squall_error err = SQUALL_ERROR_INIT;
    int32_t values[36];
    for (enum fake_kind kind = PLAIN; kind <= ENCODED; kind++) {
        struct fake *f = fake_new(kind, false, 2, shape, chunks);
        struct squall_selection s = squall_selection_all(&f->base);
        f->short_one = 3;
        assert_int_equal(squall_array_read(&f->base, &s, values, NULL, &err), SQUALL_ECORRUPT);
        assert_non_null(strstr(err.message, "array fake, chunk 1/0: fake.bin: 15 bytes"));
    }
}

static void unsupported_data_is_refused_with_its_reason(void **state)
{
    (void)state;
    const uint64_t shape[] = {2}, chunks[] = {2};
    struct fake *f = fake_new(PLAIN, false, 1, shape, chunks);
    struct squall_selection s = squall_selection_all(&f->base);
    struct squall_error err = SQUALL_ERROR_INIT;
    int32_t values[2];
    f->base.info.unsupported = "unsupported codec pcodec";
    assert_int_equal(squall_array_read(&f->base, &s, values, NULL, &err), SQUALL_EUNSUPPORTED);
    assert_string_equal(err.message, "array fake cannot be read: unsupported codec pcodec");
}

static void a_selection_outside_names_the_array(void **state)
{
    (void)state;
    const uint64_t shape[] = {2}, chunks[] = {2};
    struct fake *f = fake_new(PLAIN, false, 1, shape, chunks);
    struct squall_selection s = {.start = {1}, .count = {2}, .step = {1}};
    struct squall_error err = SQUALL_ERROR_INIT;
    int32_t values[2];
    assert_int_equal(squall_array_read(&f->base, &s, values, NULL, &err), SQUALL_EINVAL);
    assert_non_null(strstr(err.message, "array fake: dimension 0"));
}

static void chunks_larger_than_the_memory_budget_are_refused(void **state)
{
    (void)state;
    const uint64_t shape[] = {1000}, chunks[] = {1000};
    struct fake *f = fake_new(ENCODED, false, 1, shape, chunks);
    struct squall_selection part = {.start = {1}, .count = {2}, .step = {1}};
    struct squall_error err = SQUALL_ERROR_INIT;
    int32_t values[2];
    context.memory_bytes = 7999;
    assert_int_equal(squall_array_read(&f->base, &part, values, NULL, &err), SQUALL_ENOMEM);
    assert_non_null(strstr(err.message, "needs 8000 bytes of memory, more than the 7999"));
    context.memory_bytes = 8000;
    assert_int_equal(squall_array_read(&f->base, &part, values, NULL, &err), 0);
    context.memory_bytes = (uint64_t)1 << 30;
}

static int cancel_after_three(void *user)
{
    return atomic_fetch_add((atomic_int *)user, 1) >= 3;
}

static void a_cancelled_read_ends(void **state)
{
    (void)state;
    const uint64_t shape[] = {100}, chunks[] = {1};
    struct fake *f = fake_new(ENCODED, false, 1, shape, chunks);
    struct squall_selection s = squall_selection_all(&f->base);
    atomic_int asked = 0;
    int32_t values[100];
    context.cancelled = cancel_after_three;
    context.user = &asked;
    assert_int_equal(squall_array_read(&f->base, &s, values, NULL, NULL), SQUALL_ECANCELLED);
    assert_in_range(f->decodes, 1, 3);
    context.cancelled = NULL;
}

static void check_texts(struct fake *f, const struct squall_selection *s, struct squall_bytes *texts)
{
    uint64_t at[4] = {0}, i = 0;
    do {
        uint64_t index[4];
        for (unsigned d = 0; d < f->rank; d++)
            index[d] = s->start[d] + at[d] * s->step[d];
        struct squall_bytes expected = text_at(place_of(f, index));
        assert_true(sq_bytes_equal(&texts[i], is_missing(f, index) ? &f->fill_text : &expected));
        sq_bytes_free(&expected, 1);
        sq_bytes_free(&texts[i++], 1);
    } while (next_index(f->rank, s->count, at));
}

static void strings_are_the_callers_own(void **state)
{
    (void)state;
    const uint64_t shape[] = {5, 7}, chunks[] = {2, 3};
    for (enum fake_kind kind = PLAIN; kind <= INLINE; kind++) {
        struct fake *f = fake_new(kind, true, 2, shape, chunks);
        f->missing_every = kind == INLINE ? 0 : 3;
        struct squall_selection all = squall_selection_all(&f->base);
        struct squall_selection some = {.start = {1, 1}, .count = {2, 3}, .step = {3, 2}};
        struct squall_bytes texts[35];
        assert_int_equal(squall_array_read(&f->base, &all, texts, NULL, NULL), 0);
        check_texts(f, &all, texts);
        assert_int_equal(squall_array_read(&f->base, &some, texts, NULL, NULL), 0);
        check_texts(f, &some, texts);
    }
}

static void after_a_failure_no_string_is_left(void **state)
{
    (void)state;
    const uint64_t shape[] = {5, 7}, chunks[] = {2, 3};
    struct fake *f = fake_new(ENCODED, true, 2, shape, chunks);
    struct squall_selection s = squall_selection_all(&f->base);
    struct squall_bytes texts[35];
    memset(texts, 0, sizeof texts); /* what is not read is not touched */
    f->missing_every = 2;
    f->broken = 7;
    assert_int_equal(squall_array_read(&f->base, &s, texts, NULL, NULL), SQUALL_ECORRUPT);
    for (size_t i = 0; i < 35; i++)
        assert_null(texts[i].data);
}

/* Fail the first allocation, then the second, …, until a read gets through. */
static void every_failed_allocation_is_an_error(void **state)
{
    (void)state;
    const uint64_t shape[] = {5, 7}, chunks[] = {2, 3};
    context.threads = 1;
    for (int kind = 0; kind < 6; kind++) {
        struct fake *f = fake_new((enum fake_kind)(kind % 3), kind >= 3, 2, shape, chunks);
        struct squall_selection s = {.start = {0, 1}, .count = {5, 3}, .step = {1, 2}};
        union {
            struct squall_bytes texts[15];
            int32_t values[15];
        } dst = {.texts = {{0}}};
        f->missing_every = kind % 3 == INLINE ? 0 : 3;
        for (long n = 0;; n++) {
            struct squall_error err = SQUALL_ERROR_INIT;
            sq_workers_free(dataset->idle_workers);
            dataset->idle_workers = NULL;
            sq_fail_allocation(n);
            int status = squall_array_read(&f->base, &s, &dst, NULL, &err);
            sq_fail_allocation(-1);
            if (!status) {
                assert_true(n > 0);
                break;
            }
            assert_int_equal(status, SQUALL_ENOMEM);
            for (size_t i = 0; kind >= 3 && i < 15; i++)
                assert_null(dst.texts[i].data);
        }
        for (size_t i = 0; kind >= 3 && i < 15; i++)
            free(dst.texts[i].data);
    }
    context.threads = 4;
}

static void an_unknown_array_is_answered_with_those_there_are(void **state)
{
    (void)state;
    struct squall_dataset *ds = sq_dataset_new(&context, "x.zarr", "fake", NULL), *kept = dataset;
    const uint64_t shape[] = {2}, chunks[] = {2};
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_array *a;
    assert_int_equal(squall_dataset_array(ds, "t2m", &a, &err), SQUALL_ENOTFOUND);
    assert_string_equal(err.message, "x.zarr: no array t2m; there is no array at all");
    dataset = ds;
    fake_new(PLAIN, false, 1, shape, chunks);
    dataset = kept;
    assert_int_equal(squall_dataset_array(ds, "t2m", &a, &err), SQUALL_ENOTFOUND);
    assert_string_equal(err.message, "x.zarr: no array t2m; there is fake");
    assert_int_equal(squall_dataset_array(ds, "fake", &a, &err), 0);
    squall_dataset_close(ds);
}

static void a_timed_read_counts_every_point_once(void **state)
{
    (void)state;
    const uint64_t shape[] = {9, 10, 11}, chunks[] = {2, 3, 4};
    const uint64_t budgets[] = {2, 200, 2000, 100000}; /* in elements of the buffer: one chunk to all */
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        struct fake *f = fake_new(ENCODED, false, 3, shape, chunks);
        struct squall_speed speed;
        context.memory_bytes = 2 * 4 * budgets[i] + 1000;
        assert_int_equal(squall_array_time(&f->base, 2, &speed, NULL), 0);
        assert_int_equal(speed.points, 9 * 10 * 11);
        assert_int_equal(speed.bytes, f->chunk_count * f->chunk_elements * 4);
        assert_true(speed.seconds > 0 && speed.decode_seconds > 0);
    }
    context.memory_bytes = (uint64_t)1 << 30;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_box_of_any_array_is_right),
        cmocka_unit_test(any_box_of_rows_that_lie_apart_is_right),
        cmocka_unit_test(a_large_run_in_the_other_byte_order_is_right),
        cmocka_unit_test(a_small_run_of_a_chunk_is_decoded_alone_where_that_can_be),
        cmocka_unit_test(a_few_elements_are_picked_out_of_a_chunk_that_stays_shuffled),
        cmocka_unit_test(without_strides_the_box_is_packed),
        cmocka_unit_test(large_chunks_are_read_by_threads_that_keep_their_scratch),
        cmocka_unit_test(one_large_chunk_is_fetched_in_pieces),
        cmocka_unit_test(threads_read_one_array_at_the_same_time),
        cmocka_unit_test(a_chunk_that_does_not_decode_is_named),
        cmocka_unit_test(a_chunk_of_another_size_is_refused),
        cmocka_unit_test(unsupported_data_is_refused_with_its_reason),
        cmocka_unit_test(a_selection_outside_names_the_array),
        cmocka_unit_test(chunks_larger_than_the_memory_budget_are_refused),
        cmocka_unit_test(a_cancelled_read_ends),
        cmocka_unit_test(strings_are_the_callers_own),
        cmocka_unit_test(after_a_failure_no_string_is_left),
        cmocka_unit_test(every_failed_allocation_is_an_error),
        cmocka_unit_test(an_unknown_array_is_answered_with_those_there_are),
        cmocka_unit_test(a_timed_read_counts_every_point_once),
    };
    return cmocka_run_group_tests(tests, open_dataset, close_dataset);
}
