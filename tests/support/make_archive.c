/*
 * Makes an archive of GRIB2 files shaped like the UK Met Office UKV model's: two files a run, runs six hours apart, hourly steps;
 * for the demo and the tests. Fields are smooth, move from step to step, and follow from their names and times, so that the same
 * options make the same archive. --traps puts in what real archives contain and lists it in OUT.traps.json.
 */
#include "base/json.h"
#include "base/text.h"
#include "support/grib2_writer.h"
#include "sys/ordered.h"
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] = "usage: make_archive OUT [--inits 4] [--steps 13] [--vars 17] [--packing simple|complex|ccsds] [--bits 12]\n"
                            "                    [--ny 704] [--nx 548] [--start 2022-01-01T00:00] [--traps]\n"
                            "--traps needs --inits 6 and --vars 9 or more: then each trap has a run of its own\n";

static const struct variable {
    const char *name;
    unsigned part, discipline, category, number, surface_type, level;
    double mean, spread, least, greatest;
    int decimal_scale;
    bool has_gaps;
} variables[] = {
    {"t", 1, 0, 0, 0, 103, 1, 283, 8, -INFINITY, INFINITY, 0, false},
    {"r", 1, 0, 1, 1, 103, 1, 75, 18, 0, 100, 0, false},
    {"dpt", 1, 0, 0, 6, 103, 1, 278, 6, -INFINITY, INFINITY, 0, false},
    {"si10", 1, 0, 2, 1, 103, 10, 6, 4, 0, INFINITY, 0, false},
    {"wdir10", 1, 0, 2, 0, 103, 10, 200, 90, 0, 359.9, 0, false},
    {"prmsl", 1, 0, 3, 1, 101, 0, 101325, 900, -INFINITY, INFINITY, 0, false},
    {"vis", 1, 0, 19, 0, 103, 1, 15000, 9000, 10, INFINITY, 0, false},
    {"prate", 1, 0, 1, 7, 1, 0, -2e-5, 8e-5, 0, INFINITY, 7, false},
    {"lcc", 2, 0, 6, 3, 1, 0, 40, 45, 0, 100, 0, false},
    {"mcc", 2, 0, 6, 4, 1, 0, 30, 45, 0, 100, 0, false},
    {"hcc", 2, 0, 6, 5, 1, 0, 30, 45, 0, 100, 0, false},
    {"dswrf", 2, 0, 4, 7, 1, 0, 250, 180, 0, INFINITY, 0, false},
    {"dlwrf", 2, 0, 5, 3, 1, 0, 310, 30, -INFINITY, INFINITY, 0, false},
    {"sde", 2, 0, 1, 11, 1, 0, -0.05, 0.08, 0, INFINITY, 4, false},
    {"cdcb", 2, 0, 6, 11, 2, 0, 900, 600, 0, INFINITY, 0, true},
    {"hcct", 2, 0, 6, 12, 3, 0, 5000, 2500, 0, INFINITY, 0, true},
    {"h", 2, 0, 3, 5, 4, 0, 1800, 700, 0, INFINITY, 0, false},
};
enum { VARIABLE_COUNT = sizeof variables / sizeof *variables, PARTS = 2 };

struct options {
    const char *out, *packing;
    unsigned inits, steps, vars, bits, ny, nx;
    time_t start;
    bool traps;
};

/* ---- fields ----------------------------------------------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* From 0 to 1, the n-th that belongs to the key. */
static double uniform(uint64_t key, uint64_t n)
{
    return (double)(mixed(key + mixed(n + 1)) >> 11) * 0x1p-53;
}

enum { WAVES = 20 };

/* Add one wave, amplitude · sin(row phase + column phase), to the field. */
static void add_wave(float *field, unsigned ny, unsigned nx, float amplitude, double phase, double per_row, double per_column)
{
    float *sine = malloc(2 * (size_t)nx * sizeof *sine), *cosine = sine ? sine + nx : NULL;
    for (unsigned x = 0; sine && x < nx; x++) {
        sine[x] = amplitude * (float)sin(per_column * x);
        cosine[x] = amplitude * (float)cos(per_column * x);
    }
    for (unsigned y = 0; sine && y < ny; y++) {
        const float s = (float)sin(phase + per_row * y), c = (float)cos(phase + per_row * y);
        float *row = field + (size_t)y * nx;
        for (unsigned x = 0; x < nx; x++)
            row[x] += s * cosine[x] + c * sine[x];
    }
    free(sine);
}

/* About normal, mean 0 and spread 1: waves whose height falls with their number, drifting with the hours, and some noise. */
static float *make_field(uint64_t key, double hours, unsigned ny, unsigned nx)
{
    size_t points = (size_t)ny * nx;
    float *field = malloc(points * sizeof *field);
    if (!field)
        return NULL;
    uint64_t noise = mixed(key + (uint64_t)(hours * 3600) + 99);
    for (size_t i = 0; i < points; i++) {
        noise = noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        field[i] = 0.004F * ((float)(noise >> 40) * 0x1p-23F - 1);
    }
    for (unsigned w = 0; w < WAVES; w++) {
        double waves = 1 + 0.35 * w * w * uniform(key, 5 * w + 4); /* across the map */
        double direction = 6.283 * uniform(key, 5 * w);
        double drift = (0.05 + 0.3 * uniform(key, 5 * w + 1)) * hours;
        double per_point = 6.283 * waves / (ny + nx);
        add_wave(field, ny, nx, (float)(0.9 / (1 + 0.4 * w)), 6.283 * uniform(key, 5 * w + 2) + drift, per_point * sin(direction),
                 per_point * cos(direction));
    }
    return field;
}

struct message {
    const struct variable *variable;
    time_t init;
    unsigned step, level;
    uint64_t key; /* fields with different keys have nothing in common */
    bool is_probability;
};

static enum grib2_packing packing_of(const struct options *o, const struct variable *v)
{
    static const enum grib2_packing kinds[] = {GRIB2_COMPLEX_SECOND, GRIB2_COMPLEX_FIRST, GRIB2_COMPLEX};
    if (strcmp(o->packing, "complex") == 0)
        return kinds[(v - variables) % 3];
    return strcmp(o->packing, "ccsds") == 0 ? GRIB2_CCSDS : GRIB2_SIMPLE;
}

static void put_message(const struct options *o, const struct message *m, struct sq_text *out)
{
    const struct variable *v = m->variable;
    size_t points = (size_t)o->ny * o->nx;
    float *field = make_field(m->key, (double)m->init / 3600 + m->step, o->ny, o->nx);
    double *values = malloc(points * sizeof *values);
    for (size_t i = 0; field && values && i < points; i++) {
        values[i] = fmin(fmax(v->mean + v->spread * (double)field[i], v->least), v->greatest);
        if (v->has_gaps && field[i] > 0.4F)
            values[i] = NAN;
    }
    const struct grib2_field f = {.discipline = v->discipline,
                                  .category = v->category,
                                  .number = v->number,
                                  .surface_type = v->surface_type,
                                  .level = m->level,
                                  .reference_time = m->init,
                                  .step_minutes = 60 * m->step,
                                  .is_probability = m->is_probability,
                                  .nx = o->nx,
                                  .ny = o->ny,
                                  .values = values,
                                  .packing = packing_of(o, v),
                                  .decimal_scale = v->decimal_scale,
                                  .bits = o->bits};
    if (field && values)
        grib2_write(&f, out);
    else
        out->failed = true;
    free(field);
    free(values);
}

/* ---- files ------------------------------------------------------------------------------------------------------------------------ */

struct plan {
    const struct options *options;
    struct message *messages;
    size_t count;
    struct sq_text slots[SQ_ORDERED_SLOTS_MAX];
    FILE *file;
    bool truncated; /* the file ends within a message, two thirds on */
};

static int make_message(void *user, size_t index, unsigned worker, unsigned slot, struct squall_error *err)
{
    struct plan *p = user;
    (void)worker, (void)err;
    sq_text_clear(&p->slots[slot]);
    put_message(p->options, &p->messages[index], &p->slots[slot]);
    return p->slots[slot].failed ? SQUALL_ENOMEM : 0;
}

static int write_message(void *user, size_t index, unsigned worker, unsigned slot, struct squall_error *err)
{
    struct plan *p = user;
    (void)worker, (void)err;
    size_t size = p->slots[slot].length, cut = p->count * 2 / 3;
    if (p->truncated && index >= cut)
        size = index == cut ? size / 2 : 0;
    return fwrite(p->slots[slot].data, 1, size, p->file) == size ? 0 : SQUALL_EIO;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void file_path(const struct options *o, time_t init, unsigned part, char *ret, size_t size)
{
    char stamp[32];
    struct tm t;
    gmtime_r(&init, &t);
    strftime(stamp, sizeof stamp, "%Y%m%d%H%M", &t);
    snprintf(ret, size, "%s/%s_u1096_ng_umqv_Wholesale%u.grib", o->out, stamp, part);
}

static void iso_time(time_t time, char ret[32])
{
    struct tm t;
    gmtime_r(&time, &t);
    strftime(ret, 32, "%Y-%m-%dT%H:%M:%S", &t);
}

static bool note(struct sq_json *traps, const char *name, const char *text)
{
    return sq_json_set_string(traps, name, text) == 0;
}

/* [text, name, number] */
static bool note_list(struct sq_json *traps, const char *name, const char *text, const char *variable, long number)
{
    struct sq_json *list = sq_json_new_array();
    bool done = sq_json_append(list, sq_json_new_string(text)) == 0 && sq_json_append(list, sq_json_new_string(variable)) == 0;
    if (number >= 0)
        done = done && sq_json_append(list, sq_json_new_int(number)) == 0;
    return sq_json_set(traps, name, list) == 0 && done;
}

static void add_variable(struct plan *p, unsigned run, time_t init, const struct variable *v, struct sq_json *traps)
{
    const struct options *o = p->options;
    char when[32];
    iso_time(init, when);
    uint64_t key = mixed((uint64_t)(v - variables));
    for (unsigned step = 0; step < o->steps; step++) {
        if (o->traps && run == 1 && strcmp(v->name, "r") == 0 && step == o->steps - 1) {
            note_list(traps, "step missing", when, v->name, step);
            continue;
        }
        p->messages[p->count++] = (struct message){v, init, step, v->level, key, false};
        if (o->traps && strcmp(v->name, "t") == 0 && run >= 2)
            p->messages[p->count++] = (struct message){v, init, step, 0, key + 1, false};
        if (o->traps && strcmp(v->name, "vis") == 0 && step == 0 && run == 0) {
            p->messages[p->count++] = (struct message){v, init, step, v->level, key, true};
            note_list(traps, "probability twin", when, v->name, -1);
        }
    }
}

static int finish_file(struct plan *p, const char *path)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    int status = sq_parallel_ordered(0, p->count, 16, make_message, write_message, p, &err);
    status |= fclose(p->file);
    if (status)
        fprintf(stderr, "make_archive: %s: could not be written\n", path);
    return status;
}

static int make_file(const struct options *o, unsigned run, time_t init, unsigned part, struct sq_json *traps)
{
    struct plan p = {.options = o, .messages = malloc((2 * (size_t)o->steps * VARIABLE_COUNT + 4) * sizeof *p.messages)};
    char path[4096];
    int status = 1;
    if (!p.messages)
        return 1;
    for (unsigned i = 0; i < o->vars; i++)
        if (variables[i].part == part)
            add_variable(&p, run, init, &variables[i], traps);
    file_path(o, init, part, path, sizeof path);
    if (o->traps && run == 0 && part == 1) {
        p.messages[p.count++] = p.messages[0];
        note(traps, "identical duplicate", base_name(path));
        p.messages[p.count++] = (struct message){&variables[0], init, 1, variables[0].level, mixed(4711), false};
        note_list(traps, "conflicting duplicate", base_name(path), variables[0].name, 1);
    }
    if (o->traps && run == 3 && part == 2) {
        note(traps, "file missing", base_name(path));
        p.count = 0;
    }
    p.truncated = o->traps && run == 4 && part == 1;
    if (p.truncated)
        note(traps, "truncated", base_name(path));
    p.file = p.count ? fopen(path, "wb") : NULL;
    if (p.file) {
        if (o->traps && run == 2 && part == 1) {
            fputs("\001\r\r\n123 \r\r\nHTUK85 EGRR 010000\r\r\n", p.file);
            note(traps, "bulletin header", base_name(path));
        }
        status = finish_file(&p, path);
    } else if (p.count) {
        fprintf(stderr, "make_archive: %s: %s\n", path, strerror(errno));
    } else {
        status = 0;
    }
    for (unsigned i = 0; i < SQ_ORDERED_SLOTS_MAX; i++)
        sq_text_done(&p.slots[i]);
    free(p.messages);
    return status;
}

static int write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    int status = !file || fputs(text, file) < 0;
    if (file)
        status |= fclose(file);
    if (status)
        fprintf(stderr, "make_archive: %s: %s\n", path, strerror(errno));
    return status;
}

/* The files that are no GRIB, and the list of traps beside the archive. */
static int finish_traps(const struct options *o, time_t last, struct sq_json *traps)
{
    char path[4096], other[4096];
    struct sq_text text = SQ_TEXT_INIT;
    file_path(o, last, 9, path, sizeof path);
    note(traps, "empty", base_name(path));
    file_path(o, last, 8, other, sizeof other);
    note(traps, "not GRIB", base_name(other));
    int status = write_text(path, "") || write_text(other, "<html>503 Service Unavailable</html>\n");
    snprintf(path, sizeof path, "%s.traps.json", o->out);
    status |= sq_json_write(traps, true, &text, NULL);
    if (!status)
        status = write_text(path, sq_text_string(&text));
    sq_text_done(&text);
    return status;
}

static int make_archive(const struct options *o)
{
    enum { CADENCE_S = 6 * 3600, STRAY_S = 2 * 3600 };
    struct sq_json *traps = sq_json_new_object();
    char when[32], text[80];
    int status = !traps;
    if (mkdir(o->out, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "make_archive: %s: %s\n", o->out, strerror(errno));
        status = 1;
    }
    time_t last = o->start + (time_t)(o->inits - 1) * CADENCE_S;
    unsigned runs = o->inits + (o->traps ? 1 : 0);
    for (unsigned run = 0; run < runs && !status; run++) {
        time_t init = run < o->inits ? o->start + (time_t)run * CADENCE_S : last + STRAY_S;
        for (unsigned part = 1; part <= PARTS && !status; part++)
            status = make_file(o, run, init, part, traps);
        iso_time(init, when);
        if (run == o->inits)
            note(traps, "off cadence", when);
        snprintf(text, sizeof text, "t at 0 m and 1 m from %s", when);
        if (o->traps && run == 2)
            note(traps, "two heights", text);
    }
    if (!status && o->traps)
        status = finish_traps(o, last, traps);
    sq_json_free(traps);
    return status;
}

/* ---- options ---------------------------------------------------------------------------------------------------------------------- */

static bool read_number(const char *text, unsigned least, unsigned greatest, unsigned *ret)
{
    char *end;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;
    if (!text || end == text || *end || value < least || value > greatest)
        return false;
    *ret = (unsigned)value;
    return true;
}

static bool read_start(const char *text, time_t *ret)
{
    struct tm t = {0};
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M", &t) : NULL;
    if (!end || *end)
        return false;
    *ret = timegm(&t);
    return true;
}

static bool read_option(const char *name, const char *value, struct options *o)
{
    if (strcmp(name, "--inits") == 0)
        return read_number(value, 1, 100000, &o->inits);
    if (strcmp(name, "--steps") == 0)
        return read_number(value, 1, 1000, &o->steps);
    if (strcmp(name, "--vars") == 0)
        return read_number(value, 1, VARIABLE_COUNT, &o->vars);
    if (strcmp(name, "--bits") == 0)
        return read_number(value, 1, 24, &o->bits);
    if (strcmp(name, "--ny") == 0)
        return read_number(value, 1, 10000, &o->ny);
    if (strcmp(name, "--nx") == 0)
        return read_number(value, 1, 10000, &o->nx);
    if (strcmp(name, "--start") == 0)
        return read_start(value, &o->start);
    if (strcmp(name, "--packing") == 0 && value) {
        o->packing = value;
        return strcmp(value, "simple") == 0 || strcmp(value, "complex") == 0 || strcmp(value, "ccsds") == 0;
    }
    return false;
}

int main(int argc, char **argv)
{
    struct options o = {.packing = "simple", .inits = 4, .steps = 13, .vars = VARIABLE_COUNT, .bits = 12, .ny = 704, .nx = 548};
    bool fine = read_start("2022-01-01T00:00", &o.start);
    for (int i = 1; i < argc && fine; i++) {
        if (strcmp(argv[i], "--traps") == 0)
            o.traps = true;
        else if (strncmp(argv[i], "--", 2) != 0 && !o.out)
            o.out = argv[i];
        else if (read_option(argv[i], argv[i + 1], &o))
            i++;
        else
            fine = false;
    }
    if (!fine || !o.out || (o.traps && (o.inits < 6 || o.vars < 9))) {
        fputs(usage, stderr);
        return 2;
    }
    return make_archive(&o) ? 1 : 0;
}
