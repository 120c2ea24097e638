/* See npy.h. Text becomes numpy's fixed-width UTF-32 ("<U5"), as wide as the longest. */
#include "npy.h"

#include "output.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_ALIGNMENT = 64 };

/* The next code point of UTF-8 text that a zero byte ends, U+FFFD for what is none. */
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

static size_t code_points(const struct squall_bytes *text)
{
    size_t count = 0;
    for (const unsigned char *p = text->data, *end = p + text->size_bytes; p < end; count++)
        next_code_point(&p);
    return count;
}

static bool is_ascii(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80)
            return false;
    return true;
}

/* descr: as numpy_type, a type's name or a list of fields. Version 1 of the format; 2 where the header is too long for it, 3 where it is not ASCII. */
static bool write_header(FILE *f, const char *descr, unsigned rank, const uint64_t *shape)
{
    char *header = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&header, &size);
    if (!text)
        return false;
    const char *quote = descr[0] == '[' ? "" : "'";
    fprintf(text, "{'descr': %s%s%s, 'fortran_order': False, 'shape': (", quote, descr, quote);
    for (unsigned d = 0; d < rank; d++)
        fprintf(text, "%llu,", (unsigned long long)shape[d]);
    fputs("), }", text);
    bool failed = fclose(text) != 0;
    const int version = !is_ascii(descr) ? 3 : size + HEADER_ALIGNMENT > UINT16_MAX ? 2 : 1;
    const size_t prefix_bytes = version > 1 ? 12 : 10, padding = HEADER_ALIGNMENT - 1 - (prefix_bytes + size) % HEADER_ALIGNMENT;
    const size_t length = size + padding + 1;
    const unsigned char prefix[12] = {0x93,
                                      'N',
                                      'U',
                                      'M',
                                      'P',
                                      'Y',
                                      (unsigned char)version,
                                      0,
                                      (unsigned char)length,
                                      (unsigned char)(length >> 8),
                                      (unsigned char)(length >> 16),
                                      (unsigned char)(length >> 24)};
    fwrite(prefix, 1, prefix_bytes, f);
    fprintf(f, "%s%*s\n", header ? header : "", (int)padding, "");
    free(header);
    return !failed;
}

static bool write_strings(FILE *f, unsigned rank, const uint64_t *shape, const struct squall_bytes *texts, size_t count)
{
    char descr[32];
    size_t widest = 1;
    for (size_t i = 0; i < count; i++)
        if (code_points(&texts[i]) > widest)
            widest = code_points(&texts[i]);
    snprintf(descr, sizeof descr, "<U%zu", widest);
    if (!write_header(f, descr, rank, shape))
        return false;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *p = texts[i].data, *end = p + texts[i].size_bytes;
        for (size_t k = 0; k < widest; k++) {
            uint32_t code = p < end ? next_code_point(&p) : 0;
            fwrite(&code, sizeof code, 1, f);
        }
    }
    return true;
}

/* Bytes of any length as numpy's fixed-length ones, as wide as the longest. */
static bool write_bytes(FILE *f, unsigned rank, const uint64_t *shape, const struct squall_bytes *elements, size_t count)
{
    char descr[32];
    size_t widest = 1;
    for (size_t i = 0; i < count; i++)
        widest = elements[i].size_bytes > widest ? elements[i].size_bytes : widest;
    snprintf(descr, sizeof descr, "|S%zu", widest);
    if (!write_header(f, descr, rank, shape))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (elements[i].size_bytes > 0)
            fwrite(elements[i].data, 1, elements[i].size_bytes, f);
        for (size_t k = elements[i].size_bytes; k < widest; k++)
            fputc(0, f);
    }
    return true;
}

/* numpy itself has no bfloat16: the bits, as its extensions store them. */
static bool write_fixed(FILE *f, const struct squall_array_info *info, unsigned rank, const uint64_t *shape, const void *values,
                        size_t count)
{
    const char *descr = info->type == SQUALL_BFLOAT16 ? "<V2" : info->numpy_type;
    return write_header(f, descr, rank, shape) && fwrite(values, info->element_bytes, count, f) == count;
}

bool npy_write(const char *path, const struct squall_array_info *info, unsigned rank, const uint64_t *shape, const void *values)
{
    size_t count = 1;
    for (unsigned d = 0; d < rank; d++)
        count *= shape[d];
    FILE *f = fopen(path, "we");
    if (!f)
        return complain("squall: %s: %s", path, strerror(errno));
    bool written = info->type == SQUALL_STRING  ? write_strings(f, rank, shape, values, count)
                   : info->type == SQUALL_BYTES ? write_bytes(f, rank, shape, values, count)
                                                : write_fixed(f, info, rank, shape, values, count);
    bool failed = !written || ferror(f) != 0;
    if (fclose(f) != 0 || failed) {
        remove(path);
        return complain("squall: %s: writing failed: %s", path, strerror(errno));
    }
    return true;
}
