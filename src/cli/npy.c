/* See npy.h. Text becomes numpy's fixed-width UTF-32 ("<U5"), as wide as the longest. */
#include "npy.h"

#include "output.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_ALIGNMENT = 64, HEADER_BYTES = 2048, PREFIX_BYTES = 10 };

static const char *descr_of(enum squall_type type)
{
    switch (type) {
    case SQUALL_BOOL:
        return "|b1";
    case SQUALL_INT8:
        return "|i1";
    case SQUALL_INT16:
        return "<i2";
    case SQUALL_INT32:
        return "<i4";
    case SQUALL_INT64:
        return "<i8";
    case SQUALL_UINT8:
        return "|u1";
    case SQUALL_UINT16:
        return "<u2";
    case SQUALL_UINT32:
        return "<u4";
    case SQUALL_UINT64:
        return "<u8";
    case SQUALL_FLOAT16:
        return "<f2";
    case SQUALL_FLOAT32:
        return "<f4";
    case SQUALL_FLOAT64:
        return "<f8";
    default:
        break;
    }
    return NULL;
}

/* The next code point of UTF-8 text, U+FFFD for what is none. */
static uint32_t next_code_point(const unsigned char **text)
{
    const unsigned char *p = *text;
    unsigned more = *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : *p >= 0xc0 ? 1 : 0;
    uint32_t code = more == 3 ? *p & 7 : more == 2 ? *p & 15 : more == 1 ? *p & 31 : *p < 0x80 ? *p : 0xfffd;
    for (p++; more && (*p & 0xc0) == 0x80; more--)
        code = code << 6 | (*p++ & 63);
    *text = p;
    return more ? 0xfffd : code;
}

static size_t code_points(const char *text)
{
    size_t count = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p; count++)
        next_code_point(&p);
    return count;
}

static void write_header(FILE *f, const char *descr, unsigned rank, const uint64_t *shape)
{
    char header[HEADER_BYTES];
    size_t at = (size_t)snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (unsigned d = 0; d < rank && at < sizeof header; d++)
        at += (size_t)snprintf(header + at, sizeof header - at, "%llu,", (unsigned long long)shape[d]);
    if (at < sizeof header)
        at += (size_t)snprintf(header + at, sizeof header - at, "), }");
    while ((at + 1 + PREFIX_BYTES) % HEADER_ALIGNMENT && at < sizeof header)
        header[at++] = ' ';
    header[at++] = '\n';
    const unsigned char prefix[PREFIX_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(at & 255), (unsigned char)(at >> 8)};
    fwrite(prefix, 1, sizeof prefix, f);
    fwrite(header, 1, at, f);
}

static void write_strings(FILE *f, unsigned rank, const uint64_t *shape, char *const *texts, size_t count)
{
    char descr[32];
    size_t widest = 1;
    for (size_t i = 0; i < count; i++)
        if (code_points(texts[i]) > widest)
            widest = code_points(texts[i]);
    snprintf(descr, sizeof descr, "<U%zu", widest);
    write_header(f, descr, rank, shape);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *p = (const unsigned char *)texts[i];
        for (size_t k = 0; k < widest; k++) {
            uint32_t code = *p ? next_code_point(&p) : 0;
            fwrite(&code, sizeof code, 1, f);
        }
    }
}

bool npy_write(const char *path, enum squall_type type, unsigned rank, const uint64_t *shape, const void *values)
{
    size_t count = 1;
    for (unsigned d = 0; d < rank; d++)
        count *= shape[d];
    FILE *f = fopen(path, "we");
    if (!f)
        return complain("squall: %s: %s", path, strerror(errno));
    if (type == SQUALL_STRING) {
        write_strings(f, rank, shape, values, count);
    } else {
        write_header(f, descr_of(type), rank, shape);
        fwrite(values, squall_type_size(type), count, f);
    }
    bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed) {
        remove(path);
        return complain("squall: %s: writing failed: %s", path, strerror(errno));
    }
    return true;
}
