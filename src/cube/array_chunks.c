/* See array_chunks.h. The largest variable decides how many places along the append dimension a chunk has. */
#include "cube/array_chunks.h"
#include "engine/array.h"

/* Smaller chunks cost more to find than to read; larger ones are more than most reads want. */
static const double LEAST_BYTES = (double)(4 << 20), MOST_BYTES = (double)(16 << 20);

/* Of a chunk at one place along the append dimension. */
static double bytes_at_a_place(const struct sq_cube_variable *v, const uint64_t *chunks)
{
    double bytes = (double)v->source->info.element_bytes;
    for (unsigned d = 1; d < v->rank; d++)
        bytes *= (double)chunks[d];
    return bytes;
}

/* Halve the longest of the other dimensions until `places` of them fit. */
static void cut(struct sq_cube_variable *v, uint64_t places)
{
    for (;;) {
        unsigned longest = 1;
        if (v->rank < 2 || bytes_at_a_place(v, v->default_chunks) * (double)places <= MOST_BYTES)
            return;
        for (unsigned d = 2; d < v->rank; d++)
            if (v->default_chunks[d] > v->default_chunks[longest])
                longest = d;
        if (v->default_chunks[longest] <= 1)
            return;
        v->default_chunks[longest] = (v->default_chunks[longest] + 1) / 2;
    }
}

static uint64_t places_of(const struct sq_cube_variable *v, uint64_t length, uint64_t file_length)
{
    uint64_t places = v->source->info.chunks[0] < length ? v->source->info.chunks[0] : length;
    const double bytes = bytes_at_a_place(v, v->default_chunks);
    places = places ? places : 1;
    while (places > 1 && bytes * (double)places > MOST_BYTES)
        places = (places + 1) / 2;
    if (bytes > 0 && bytes * (double)places < LEAST_BYTES) {
        const double times = LEAST_BYTES / (bytes * (double)places);
        const double joined = (double)places * (double)((uint64_t)times + (times > (double)(uint64_t)times));
        places = joined < (double)length ? (uint64_t)joined : length;
        if (file_length > 0 && places > file_length)
            places = (places + file_length - 1) / file_length * file_length;
        places = places < length ? places : length;
    }
    return places ? places : 1;
}

void sq_array_default_chunks(struct sq_cube_variable *variables, size_t count, uint64_t length, uint64_t file_length)
{
    const struct sq_cube_variable *largest = NULL;
    double most = -1;
    for (size_t i = 0; i < count; i++) {
        struct sq_cube_variable *v = &variables[i];
        for (unsigned d = 1; d < v->rank; d++) {
            const uint64_t chunk = v->source->info.chunks[d];
            v->default_chunks[d] = chunk == 0 || chunk > v->shape[d] ? v->shape[d] : chunk;
            v->default_chunks[d] = v->default_chunks[d] ? v->default_chunks[d] : 1;
        }
        cut(v, 1);
        const double bytes = bytes_at_a_place(v, v->shape);
        if (bytes > most) {
            most = bytes;
            largest = v;
        }
    }
    const uint64_t places = largest ? places_of(largest, length, file_length) : 1;
    for (size_t i = 0; i < count; i++) {
        variables[i].default_chunks[0] = places;
        cut(&variables[i], places);
    }
}
