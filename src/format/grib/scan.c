/*
 * Finding messages: look for "GRIB", walk the sections by their heads, and believe the message only where all of them fit, up to
 * the end mark. A believed message is jumped over whole, so that "GRIB" inside its data means nothing; after one that is not believed the
 * search goes on right behind its "GRIB", so that whole messages inside what it claimed are found. A window of the file is all that is read.
 */
#include "format/grib/scan.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    JUMP_BYTES = 4096,              /* read after a jump: a head, or an end mark and the next message's head */
    WINDOW_BYTES = 256 * 1024,      /* read where reading goes on where it ended */
    SECTION_LIMIT_BYTES = 16 << 20, /* descriptions are far smaller; a larger one is a lie */
    DATA_HEAD_BYTES = 64,           /* kept of sections 6 and 7 */
    TEXT_GAP_BYTES = 512,           /* text between messages up to this length: a bulletin's header or trailer */
    REPORT_LIMIT = 1000,            /* problems told one by one; the others are counted */
    WASTED_STEPS_FREE = 1 << 20,    /* section heads that may be read in vain, and one more … */
    BYTES_PER_WASTED_STEP = 16,     /* … for so many bytes of the file: hostile files end in linear time */
    QUOTE_BYTES = 24,
    TEXT_BYTES = 600,
};

/* A section's bytes, kept for the fields that inherit it. */
struct kept {
    uint8_t *bytes;
    size_t capacity;
    bool present;
};

/* What lies between messages, as far as it was looked at. */
struct gap {
    uint64_t start;
    uint64_t length;
    uint8_t first;
    bool uniform; /* one byte repeated: padding */
    bool text;    /* short and printable: a bulletin's header or trailer */
    bool told;    /* it follows a damaged message, whose report covers it */
};

struct scan {
    struct sq_source *source;
    const struct sq_grib_scan_events *events;
    uint64_t size_bytes; /* of the source */
    uint8_t *window;
    uint64_t window_at;
    size_t window_count, ahead_bytes; /* bytes in it; bytes that the last read asked for */
    struct kept kept[SQ_GRIB_SECTION_COUNT];
    struct kept bitmap; /* the head of the last section 6 that holds bits */
    struct gap gap;
    uint64_t message_count;
    uint64_t problem_count, last_problem;
    uint64_t wasted_steps;
};

/*
 * Have the window hold `want` bytes from offset on (at most JUMP_BYTES), fewer where the source ends; *ret_count: how many there are from there on, which may
 * be more. offset is within the source.
 */
static int look(struct scan *s, uint64_t offset, size_t want, const uint8_t **ret, size_t *ret_count, struct squall_error *err)
{
    uint64_t left = s->size_bytes - offset;
    if (want > left)
        want = (size_t)left;
    bool inside = offset >= s->window_at && offset - s->window_at <= s->window_count;
    if (!inside || s->window_count - (size_t)(offset - s->window_at) < want) {
        s->ahead_bytes = !inside || s->ahead_bytes == 0 ? JUMP_BYTES : s->ahead_bytes * 4;
        if (s->ahead_bytes > WINDOW_BYTES)
            s->ahead_bytes = WINDOW_BYTES;
        size_t count = s->ahead_bytes < left ? s->ahead_bytes : (size_t)left;
        s->window_count = 0;
        SQ_TRY(sq_source_read(s->source, offset, s->window, count, err));
        s->window_at = offset;
        s->window_count = count;
    }
    *ret = s->window + (offset - s->window_at);
    *ret_count = s->window_count - (size_t)(offset - s->window_at);
    return 0;
}

static int room(struct kept *k, size_t size, struct squall_error *err)
{
    return size <= k->capacity ? 0 : SQ_GROW(k->bytes, k->capacity, size, err);
}

/* Copy the section that lies at offset: whole, or its first bytes where it holds data. */
static int keep(struct scan *s, unsigned number, uint64_t offset, uint64_t section_bytes, struct squall_error *err)
{
    struct kept *k = &s->kept[number];
    uint64_t wanted = number >= 6 && section_bytes > DATA_HEAD_BYTES ? DATA_HEAD_BYTES : section_bytes;
    size_t count;
    const uint8_t *bytes;
    SQ_TRY(room(k, wanted > DATA_HEAD_BYTES ? (size_t)wanted : DATA_HEAD_BYTES, err));
    if (wanted <= JUMP_BYTES) {
        SQ_TRY(look(s, offset, (size_t)wanted, &bytes, &count, err));
        memcpy(k->bytes, bytes, (size_t)wanted);
    } else {
        SQ_TRY(sq_source_read(s->source, offset, k->bytes, (size_t)wanted, err));
    }
    k->present = true;
    return 0;
}

/* Section 6 as the frame has it: a field whose bitmap is "as before" shows the head of the section that holds it. */
static int settle_bitmap(struct scan *s, bool own, struct squall_error *err)
{
    struct kept *from = own ? &s->kept[6] : &s->bitmap, *to = own ? &s->bitmap : &s->kept[6];
    SQ_TRY(room(to, DATA_HEAD_BYTES, err));
    SQ_TRY(room(from, DATA_HEAD_BYTES, err));
    memcpy(to->bytes, from->bytes, DATA_HEAD_BYTES);
    return 0;
}

static int emit(struct scan *s, uint64_t start, const struct sq_grib_walker *w, struct squall_error *err)
{
    struct sq_grib_found found = {.offset = start, .size_bytes = w->size_bytes, .frame = w->frame};
    for (unsigned i = 1; i < SQ_GRIB_SECTION_COUNT; i++)
        found.section[i] = s->kept[i].present ? s->kept[i].bytes : NULL;
    return s->events->field(s->events->user, &found, err);
}

/* Where a walk ended: at the end mark, or at what is wrong. */
struct verdict {
    bool sound;
    bool begun;     /* edition and length can be a message's */
    bool plausible; /* it looked like a message at least beyond its first section */
    struct squall_error why;
};

static bool is_cut_off(const struct scan *s, uint64_t start, const struct sq_grib_walker *w, struct verdict *v)
{
    uint64_t left = s->size_bytes - start;
    if (w->at <= left && (w->long_message || w->size_bytes <= left))
        return false;
    sq_error(&v->why, SQUALL_ECORRUPT, "it is cut off: it says %llu bytes, and the file has %llu from there on",
             (unsigned long long)w->size_bytes, (unsigned long long)left);
    return true;
}

/* Take one section; false: the walk ends here, soundly or not. */
static int step(struct scan *s, uint64_t start, struct sq_grib_walker *w, struct verdict *v, bool *ret_go_on, struct squall_error *err)
{
    const uint8_t *head;
    size_t count;
    unsigned number;
    uint64_t at = w->at;
    *ret_go_on = false;
    SQ_TRY(look(s, start + at, SQ_GRIB_HEAD_BYTES, &head, &count, err));
    uint8_t indicator = count > 5 ? head[5] : 0;
    if (sq_grib_walk_next(w, head, count, &number, &v->why))
        return 0;
    v->sound = number == SQ_GRIB_END;
    if (v->sound || is_cut_off(s, start, w, v))
        return 0;
    uint64_t section_bytes = w->at - at;
    if (number < 6 && section_bytes > SECTION_LIMIT_BYTES) {
        sq_error(&v->why, SQUALL_ECORRUPT, "at byte %llu of it: section %u says %llu bytes, more than any has", (unsigned long long)at,
                 number, (unsigned long long)section_bytes);
        return 0;
    }
    v->plausible = true;
    bool as_before = number == 6 && w->frame.section[6].offset != at;
    if (!as_before)
        SQ_TRY(keep(s, number, start + at, section_bytes, err));
    if (as_before || (number == 6 && indicator != 255 && w->frame.edition == 2))
        SQ_TRY(settle_bitmap(s, !as_before, err));
    *ret_go_on = true;
    return 0;
}

/* Walk the message at start; where `telling` is set, each of its fields is told. */
static int walk(struct scan *s, uint64_t start, bool telling, struct sq_grib_walker *w, struct verdict *v, struct squall_error *err)
{
    const uint8_t *head;
    size_t count;
    bool go_on = true;
    *v = (struct verdict){.sound = false};
    SQ_TRY(look(s, start, SQ_GRIB_HEAD_BYTES, &head, &count, err));
    s->wasted_steps++;
    v->begun = sq_grib_walk_begin(w, head, count, &v->why) == 0;
    if (!v->begun || is_cut_off(s, start, w, v))
        return 0;
    for (unsigned i = 0; i < SQ_GRIB_SECTION_COUNT; i++)
        s->kept[i].present = false;
    while (go_on) {
        s->wasted_steps++;
        SQ_TRY(step(s, start, w, v, &go_on, err));
        if (telling && go_on && w->last == 7)
            SQ_TRY(emit(s, start, w, err));
    }
    return 0;
}

/*
 * Try the message at start. Its fields are told only once the whole of it is known to be sound; a single field, the usual case, is then still at
 * hand, for more the message is walked again.
 */
static int try_message(struct scan *s, uint64_t start, struct sq_grib_walker *w, struct verdict *v, struct squall_error *err)
{
    uint64_t wasted = s->wasted_steps;
    SQ_TRY(walk(s, start, false, w, v, err));
    if (!v->sound)
        return 0;
    s->wasted_steps = wasted;
    if (w->field_count == 1)
        return emit(s, start, w, err);
    SQ_TRY(walk(s, start, true, w, v, err));
    s->wasted_steps = wasted;
    return 0;
}

__attribute__((format(printf, 4, 5))) static int tell(struct scan *s, uint64_t offset, struct squall_error *err, const char *format, ...)
{
    s->last_problem = offset;
    if (s->problem_count++ >= REPORT_LIMIT)
        return 0;
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return s->events->problem(s->events->user, offset, text, err);
}

/* The source's first bytes from offset on, as text in quotes. */
static int quote(struct scan *s, uint64_t offset, uint64_t limit, char ret[4 * QUOTE_BYTES + 8], struct squall_error *err)
{
    const uint8_t *bytes;
    size_t count, at = 0;
    SQ_TRY(look(s, offset, QUOTE_BYTES, &bytes, &count, err));
    if (count > limit)
        count = (size_t)limit;
    ret[at++] = '"';
    for (size_t i = 0; i < count && i < QUOTE_BYTES; i++) {
        bool plain = bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '"' && bytes[i] != '\\';
        at += (size_t)snprintf(ret + at, 5, plain ? "%c" : "\\x%02x", bytes[i]);
    }
    snprintf(ret + at, 5, "%s\"", count > QUOTE_BYTES ? "…" : "");
    return 0;
}

static void open_gap(struct scan *s, uint64_t start, bool told)
{
    s->gap = (struct gap){.start = start, .uniform = true, .text = true, .told = told};
}

/* Take note of bytes that belong to no message. */
static void widen_gap(struct gap *g, const uint8_t *bytes, size_t count)
{
    if (count == 0)
        return;
    if (g->length == 0)
        g->first = bytes[0];
    g->length += count;
    g->uniform = g->uniform && bytes[0] == g->first && memcmp(bytes, bytes + 1, count - 1) == 0;
    g->text = g->text && g->length <= TEXT_GAP_BYTES;
    for (size_t i = 0; g->text && i < count; i++) {
        uint8_t c = bytes[i];
        g->text = (c >= 0x20 && c < 0x7f) || c <= 3 || (c >= '\t' && c <= '\r');
    }
}

/* The gap ends at `end`: padding and bulletin headers are nothing to tell, anything else is. */
static int close_gap(struct scan *s, uint64_t end, struct squall_error *err)
{
    const struct gap *g = &s->gap;
    uint64_t length = end - g->start;
    if (length == 0 || g->told || g->uniform || g->text)
        return 0;
    char begin[4 * QUOTE_BYTES + 8];
    SQ_TRY(quote(s, g->start, length, begin, err));
    return tell(s, g->start, err, "at byte %llu: %llu bytes that belong to no GRIB message; they begin with %s",
                (unsigned long long)g->start, (unsigned long long)length, begin);
}

/* "GRIB" in count ≥ 4 bytes; NULL: not there. A byte search is several times faster than memmem on what is usually padding. */
static const uint8_t *find_mark(const uint8_t *bytes, size_t count)
{
    const uint8_t *last = bytes + count - 4;
    for (const uint8_t *at = bytes; at <= last; at++) {
        at = memchr(at, 'G', (size_t)(last - at) + 1);
        if (!at || memcmp(at, "GRIB", 4) == 0)
            return at;
    }
    return NULL;
}

/* *ret: where the next "GRIB" is from offset on; the source's size where there is none. */
static int find(struct scan *s, uint64_t offset, uint64_t *ret, struct squall_error *err)
{
    const uint8_t *bytes;
    size_t count;
    while (s->size_bytes - offset >= 4) {
        SQ_TRY(look(s, offset, 4, &bytes, &count, err));
        const uint8_t *hit = find_mark(bytes, count);
        size_t passed = hit ? (size_t)(hit - bytes) : count - 3;
        widen_gap(&s->gap, bytes, passed);
        offset += passed;
        if (hit) {
            *ret = offset;
            return 0;
        }
    }
    if (s->size_bytes > offset) {
        SQ_TRY(look(s, offset, 4, &bytes, &count, err));
        widen_gap(&s->gap, bytes, count);
    }
    *ret = s->size_bytes;
    return 0;
}

/*
 * The message at start is not whole. That is told where it looks like a message, or begins where one must: behind another one, padding or a
 * header. Four letters in the midst of something else are no message.
 */
static int tell_damage(struct scan *s, uint64_t start, const struct verdict *v, struct squall_error *err)
{
    bool due = start == s->gap.start || (!s->gap.told && (s->gap.uniform || (s->gap.text && v->begun)));
    if (v->plausible || due) {
        SQ_TRY(close_gap(s, start, err));
        open_gap(s, start, true);
        SQ_TRY(tell(s, start, err, "at byte %llu: a damaged GRIB message: %s", (unsigned long long)start, v->why.message));
    }
    widen_gap(&s->gap, (const uint8_t *)"GRIB", 4);
    return 0;
}

/* NULL: nothing that is known. */
static const char *format_of(const uint8_t *bytes, size_t count)
{
    if (count >= 8 && !memcmp(bytes, "\x89HDF\r\n\x1a\n", 8))
        return "an HDF5 or NetCDF-4 file";
    return count >= 4 && !memcmp(bytes, "CDF", 3) && (bytes[3] == 1 || bytes[3] == 2 || bytes[3] == 5) ? "a NetCDF-3 file" : NULL;
}

static int tell_rest(struct scan *s, struct squall_error *err)
{
    if (s->size_bytes == 0)
        return tell(s, 0, err, "the file is empty");
    if (s->message_count == 0 && s->problem_count == 0) {
        char begin[4 * QUOTE_BYTES + 8];
        const uint8_t *bytes;
        size_t count;
        SQ_TRY(look(s, 0, 8, &bytes, &count, err));
        const char *format = format_of(bytes, count);
        if (format)
            return tell(s, 0, err, "%s, not GRIB", format);
        SQ_TRY(quote(s, 0, s->size_bytes, begin, err));
        return tell(s, 0, err, "no GRIB message in %llu bytes; the file begins with %s", (unsigned long long)s->size_bytes, begin);
    }
    SQ_TRY(close_gap(s, s->size_bytes, err));
    if (s->problem_count <= REPORT_LIMIT)
        return 0;
    uint64_t more = s->problem_count - REPORT_LIMIT;
    s->problem_count = 0;
    return tell(s, s->last_problem, err, "and %llu more places like these, the last at byte %llu", (unsigned long long)more,
                (unsigned long long)s->last_problem);
}

static int scan(struct scan *s, struct squall_error *err)
{
    uint64_t offset = 0, start = 0;
    uint64_t wasted_limit = WASTED_STEPS_FREE + s->size_bytes / BYTES_PER_WASTED_STEP;
    open_gap(s, 0, false);
    while (offset < s->size_bytes) {
        SQ_TRY(find(s, offset, &start, err));
        if (start == s->size_bytes)
            break;
        if (s->wasted_steps > wasted_limit) {
            s->problem_count = 0;
            return tell(s, start, err, "damage everywhere: what follows byte %llu was not looked at", (unsigned long long)start);
        }
        struct sq_grib_walker w;
        struct verdict v;
        SQ_TRY(try_message(s, start, &w, &v, err));
        if (!v.sound) {
            SQ_TRY(tell_damage(s, start, &v, err));
            offset = start + 4;
            continue;
        }
        s->message_count++;
        SQ_TRY(close_gap(s, start, err));
        offset = start + w.size_bytes;
        open_gap(s, offset, false);
    }
    return tell_rest(s, err);
}

int sq_grib_scan(struct sq_source *source, const struct sq_grib_scan_events *events, struct squall_error *err)
{
    struct scan s = {.source = source, .events = events, .size_bytes = sq_source_size(source), .window = sq_alloc(1, WINDOW_BYTES)};
    if (!s.window)
        return sq_error_memory(err, WINDOW_BYTES);
    int status = scan(&s, err);
    for (unsigned i = 0; i < SQ_GRIB_SECTION_COUNT; i++)
        sq_free(s.kept[i].bytes);
    sq_free(s.bitmap.bytes);
    sq_free(s.window);
    return status;
}
