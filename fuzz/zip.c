/*
 * Zip directories. Members have distinct names in order; what is located lies in the file before its directory, and no two members that can
 * be read share a byte; small ones are unpacked. Whatever the bytes are: an error with words, or these promises.
 */
#include "io/zip.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNPACKED_BYTES = 1 << 16, MEMBERS = 64 };

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_name(const struct sq_zip *zip, size_t i)
{
    size_t length, before_length, found;
    const char *name = sq_zip_name(zip, i, &length);
    require(!memchr(name, 0, length));
    if (sq_zip_name_is_path(zip, i)) {
        char *copy = sq_strndup(name, length);
        require(copy && sq_zip_find(zip, copy, &found) && found == i);
        require(copy[0] != '/' && !strstr(copy, "//") && strncmp(copy, "../", 3) != 0 && !strstr(copy, "/../"));
        sq_free(copy);
    }
    if (i == 0)
        return;
    const char *before = sq_zip_name(zip, i - 1, &before_length);
    int order = memcmp(before, name, before_length < length ? before_length : length);
    require(order < 0 || (order == 0 && before_length < length));
}

static void unpack(struct sq_source *source, const struct sq_zip_place *place)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    uint8_t *stored = malloc(place->stored_bytes + 1), *bytes = malloc(place->size_bytes + 1);
    require(stored && bytes);
    require(!sq_source_read(source, place->offset, stored, place->stored_bytes, NULL));
    int status = place->deflated ? sq_zip_inflate(place, stored, bytes, &err) : sq_zip_check(place, stored, &err);
    require(!status || (status == SQUALL_ECORRUPT && err.message[0]));
    free(stored);
    free(bytes);
}

static void check_members(struct sq_source *source, struct sq_zip *zip)
{
    struct sq_zip_place places[MEMBERS];
    size_t good = 0;
    for (size_t i = 0; i < sq_zip_count(zip); i++) {
        struct squall_error err = SQUALL_ERROR_INIT;
        struct sq_zip_place place;
        check_name(zip, i);
        int status = sq_zip_locate(zip, i, &place, &err);
        require(!status || ((status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED) && err.message[0]));
        if (status)
            continue;
        require(sq_zip_name_is_path(zip, i));
        require(place.offset <= sq_source_size(source) && place.stored_bytes <= sq_source_size(source) - place.offset);
        for (size_t k = 0; k < good; k++)
            require(place.offset + place.stored_bytes <= places[k].offset || places[k].offset + places[k].stored_bytes <= place.offset);
        if (good < MEMBERS)
            places[good++] = place;
        if (place.size_bytes <= UNPACKED_BYTES)
            unpack(source, &place);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_source *source;
    struct sq_zip *zip;
    if (sq_source_open_memory(data, size, "x.zip", &source, NULL))
        return 0;
    int status = sq_zip_open(source, &zip, &err);
    if (status) {
        require((status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED) && err.message[0]);
    } else {
        check_members(source, zip);
        sq_zip_close(zip);
    }
    sq_source_close(source);
    return 0;
}
