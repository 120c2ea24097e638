/*
 * write_hdf5 FILE: datasets behind HDF5's own filters nbit, szip and scaleoffset, made by the system's libhdf5. Integers of every size, order,
 * precision and offset, floats of few bits, decimal scales, with and without fill values, in layouts whose chunks fit, are cut, and were
 * never written. tests/python/test_hdf5_library.py reads them.
 */
#include <hdf5.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK_MAX = 3, ELEMENTS_MAX = 4096, NAME_MAX_BYTES = 64 };

static const struct layout {
    const char *name;
    unsigned rank;
    hsize_t shape[RANK_MAX], chunk[RANK_MAX], written[RANK_MAX];
} LAYOUTS[] = {
    {"line", 1, {128}, {128}, {128}},
    {"cut", 1, {100}, {32}, {70}}, /* the last chunk was never written, the one before in part */
    {"plane", 2, {13, 18}, {5, 8}, {13, 18}},
    {"box", 3, {3, 7, 9}, {2, 4, 5}, {3, 5, 9}},
};
enum { LAYOUT_COUNT = sizeof LAYOUTS / sizeof *LAYOUTS };

static hid_t good(hid_t id)
{
    if (id < 0)
        exit(1);
    return id;
}

static void done(herr_t status)
{
    if (status < 0)
        exit(1);
}

/* Repeatable, and the same on every machine. */
static uint64_t next_random(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 20;
}

/* ---- one dataset ---- */

/* values: in the machine's type `memory`; as many as the written part holds. */
static void put(hid_t group, const char *name, const struct layout *l, hid_t type, hid_t plist, hid_t memory, const void *values)
{
    static const hsize_t BEGIN[RANK_MAX];
    hid_t space = good(H5Screate_simple((int)l->rank, l->shape, NULL)), part = good(H5Screate_simple((int)l->rank, l->written, NULL));
    hid_t dataset = good(H5Dcreate2(group, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT));
    done(H5Sselect_hyperslab(space, H5S_SELECT_SET, BEGIN, NULL, l->written, NULL));
    done(H5Dwrite(dataset, memory, part, space, H5P_DEFAULT, values));
    done(H5Dclose(dataset));
    done(H5Sclose(part));
    done(H5Sclose(space));
}

static hid_t chunked(const struct layout *l)
{
    hid_t plist = good(H5Pcreate(H5P_DATASET_CREATE));
    done(H5Pset_chunk(plist, (int)l->rank, l->chunk));
    return plist;
}

/* Numbers of `bits` bits, of which the first is the sign's. */
static const long long *integers(unsigned bits, int is_signed)
{
    static long long values[ELEMENTS_MAX];
    for (unsigned i = 0; i < ELEMENTS_MAX; i++) {
        const uint64_t value = next_random() << 20 ^ next_random();
        values[i] = (long long)(value & (bits >= 63 ? INT64_MAX : (UINT64_C(1) << bits) - 1));
        if (is_signed)
            values[i] -= bits >= 63 ? INT64_MAX / 2 : (long long)(UINT64_C(1) << bits) / 2;
    }
    return values;
}

static double *floats(double scale)
{
    static double values[ELEMENTS_MAX];
    for (unsigned i = 0; i < ELEMENTS_MAX; i++)
        values[i] = scale * ((double)(next_random() % 4000) - 1500) / 16;
    return values;
}

/* ---- types ---- */

static const char ORDERS[] = "lb";

static hid_t integer_type(unsigned size_bytes, int is_signed, char order, unsigned precision, unsigned offset)
{
    hid_t type = good(H5Tcopy(is_signed ? H5T_STD_I64LE : H5T_STD_U64LE));
    done(H5Tset_precision(type, precision)); /* first: the size may not be less than the bits */
    done(H5Tset_size(type, size_bytes));
    done(H5Tset_offset(type, offset));
    done(H5Tset_order(type, order == 'b' ? H5T_ORDER_BE : H5T_ORDER_LE));
    return type;
}

/* A float of 20 bits in the middle of 4 bytes, as the library's manual has it for nbit. */
static hid_t short_float(char order)
{
    hid_t type = good(H5Tcopy(order == 'b' ? H5T_IEEE_F32BE : H5T_IEEE_F32LE));
    done(H5Tset_fields(type, 26, 20, 6, 7, 13));
    done(H5Tset_offset(type, 7));
    done(H5Tset_precision(type, 20));
    done(H5Tset_size(type, 4));
    done(H5Tset_ebias(type, 31));
    return type;
}

static hid_t float_type(unsigned size_bytes, char order)
{
    return good(H5Tcopy(size_bytes == 4 ? order == 'b' ? H5T_IEEE_F32BE : H5T_IEEE_F32LE : order == 'b' ? H5T_IEEE_F64BE : H5T_IEEE_F64LE));
}

/* ---- the filters ---- */

static hid_t nbit(const struct layout *l)
{
    hid_t plist = chunked(l);
    done(H5Pset_nbit(plist));
    return plist;
}

static void put_nbit_integers(hid_t group, unsigned size_bytes, int is_signed, char order)
{
    const unsigned bits = 8 * size_bytes;
    const unsigned precisions[] = {2, 5, bits / 2 + 1, bits - 1, bits};
    for (unsigned p = 0; p < sizeof precisions / sizeof *precisions; p++)
        for (unsigned k = 0; k < 3; k++) {
            const unsigned room = bits - precisions[p], offset = k == 0 ? 0 : k == 1 ? (room + 1) / 2 : room;
            const struct layout *l = &LAYOUTS[(p + k) % LAYOUT_COUNT];
            char name[NAME_MAX_BYTES];
            if (k > 0 && offset == (k == 1 ? 0 : (room + 1) / 2))
                continue;
            snprintf(name, sizeof name, "%c%u%c_%u_bits_at_%u_%s", is_signed ? 'i' : 'u', size_bytes, order, precisions[p], offset,
                     l->name);
            hid_t type = integer_type(size_bytes, is_signed, order, precisions[p], offset), plist = nbit(l);
            const long long fill = is_signed ? -2 : 3;
            if (k == 0)
                done(H5Pset_fill_value(plist, H5T_NATIVE_LLONG, &fill));
            put(group, name, l, type, plist, H5T_NATIVE_LLONG, integers(precisions[p], is_signed));
            done(H5Pclose(plist));
            done(H5Tclose(type));
        }
}

static void put_nbit_floats(hid_t group, char order)
{
    for (unsigned i = 0; i < LAYOUT_COUNT; i++) {
        char name[NAME_MAX_BYTES];
        snprintf(name, sizeof name, "f20%c_%s", order, LAYOUTS[i].name);
        hid_t type = short_float(order), plist = nbit(&LAYOUTS[i]);
        put(group, name, &LAYOUTS[i], type, plist, H5T_NATIVE_DOUBLE, floats(1));
        done(H5Tclose(type));
        done(H5Pclose(plist));
    }
}

/* {a: 12 bits of an int32 at 3, b: 9 bits of a big-endian int16, c: [3] of 5 bits of a uint8}, with gaps. */
static void put_nbit_compounds(hid_t group)
{
    static struct element {
        long long a, b, c[3];
    } values[ELEMENTS_MAX];
    static const hsize_t THREE = 3;
    hid_t memory = good(H5Tcreate(H5T_COMPOUND, sizeof *values)), type = good(H5Tcreate(H5T_COMPOUND, 16));
    hid_t list = good(H5Tarray_create2(H5T_NATIVE_LLONG, 1, &THREE)), stored_list;
    done(H5Tinsert(memory, "a", HOFFSET(struct element, a), H5T_NATIVE_LLONG));
    done(H5Tinsert(memory, "b", HOFFSET(struct element, b), H5T_NATIVE_LLONG));
    done(H5Tinsert(memory, "c", HOFFSET(struct element, c), list));
    stored_list = good(H5Tarray_create2(integer_type(1, 0, 'l', 5, 2), 1, &THREE));
    done(H5Tinsert(type, "a", 1, integer_type(4, 1, 'l', 12, 3)));
    done(H5Tinsert(type, "b", 6, integer_type(2, 1, 'b', 9, 0)));
    done(H5Tinsert(type, "c", 10, stored_list));
    for (unsigned i = 0; i < ELEMENTS_MAX; i++)
        values[i] = (struct element){(long long)i % 2048 - 1024, (long long)i % 256, {i % 32, i % 31, i % 30}};
    for (unsigned i = 0; i < LAYOUT_COUNT; i++) {
        char name[NAME_MAX_BYTES];
        snprintf(name, sizeof name, "compound_%s", LAYOUTS[i].name);
        put(group, name, &LAYOUTS[i], type, nbit(&LAYOUTS[i]), memory, values);
    }
}

static void put_szip(hid_t group, unsigned size_bytes, char kind, char order)
{
    static const unsigned PIXELS[] = {4, 8, 16, 32};
    for (unsigned i = 0; i < 2 * sizeof PIXELS / sizeof *PIXELS; i++) {
        const unsigned pixels = PIXELS[i / 2], mask = i % 2 ? H5_SZIP_NN_OPTION_MASK : H5_SZIP_EC_OPTION_MASK;
        const struct layout *l = &LAYOUTS[i % LAYOUT_COUNT];
        char name[NAME_MAX_BYTES];
        hsize_t elements = 1;
        for (unsigned d = 0; d < l->rank; d++)
            elements *= l->chunk[d];
        if (elements < pixels)
            continue;
        snprintf(name, sizeof name, "%c%u%c_%s_%u_%s", kind, size_bytes, order, i % 2 ? "nn" : "ec", pixels, l->name);
        hid_t type = kind == 'f' ? float_type(size_bytes, order) : integer_type(size_bytes, kind == 'i', order, 8 * size_bytes, 0);
        hid_t plist = chunked(l);
        done(H5Pset_szip(plist, mask, pixels));
        if (kind == 'f')
            put(group, name, l, type, plist, H5T_NATIVE_DOUBLE, floats(1));
        else
            put(group, name, l, type, plist, H5T_NATIVE_LLONG, integers(i / 2 % 2 ? 3 : 6, kind == 'i'));
        done(H5Pclose(plist));
        done(H5Tclose(type));
    }
}

/* bits of each number: few, many, as many as it has; the least number of bits given, or for the library to find. */
static void put_scaled_integers(hid_t group, unsigned size_bytes, int is_signed, char order)
{
    const unsigned spreads[] = {0, 3, 4 * size_bytes + 1, 8 * size_bytes - 1};
    for (unsigned i = 0; i < sizeof spreads / sizeof *spreads; i++)
        for (unsigned k = 0; k < 4; k++) {
            const int has_fill = k % 2 != 0, has_bits = k / 2 != 0;
            const struct layout *l = &LAYOUTS[(i + k) % LAYOUT_COUNT];
            const long long fill = is_signed ? -7 : 9;
            char name[NAME_MAX_BYTES];
            snprintf(name, sizeof name, "%c%u%c_%u_bits%s%s_%s", is_signed ? 'i' : 'u', size_bytes, order, spreads[i],
                     has_fill ? "_fill" : "", has_bits ? "_given" : "", l->name);
            hid_t type = integer_type(size_bytes, is_signed, order, 8 * size_bytes, 0), plist = chunked(l);
            done(H5Pset_scaleoffset(plist, H5Z_SO_INT, has_bits ? (int)spreads[i] + 1 : H5Z_SO_INT_MINBITS_DEFAULT));
            if (has_fill)
                done(H5Pset_fill_value(plist, H5T_NATIVE_LLONG, &fill));
            put(group, name, l, type, plist, H5T_NATIVE_LLONG, integers(spreads[i], is_signed));
            done(H5Pclose(plist));
            done(H5Tclose(type));
        }
}

static void put_scaled_floats(hid_t group, unsigned size_bytes, char order)
{
    for (int digits = 0; digits <= 6; digits++)
        for (int has_fill = 0; has_fill < 2; has_fill++) {
            const struct layout *l = &LAYOUTS[(digits + has_fill) % LAYOUT_COUNT];
            const double fill = -1234.5;
            char name[NAME_MAX_BYTES];
            snprintf(name, sizeof name, "f%u%c_%d_digits%s_%s", size_bytes, order, digits, has_fill ? "_fill" : "", l->name);
            hid_t type = float_type(size_bytes, order), plist = chunked(l);
            done(H5Pset_scaleoffset(plist, H5Z_SO_FLOAT_DSCALE, digits));
            if (has_fill)
                done(H5Pset_fill_value(plist, H5T_NATIVE_DOUBLE, &fill));
            double *values = floats(digits % 3 ? 1 : 100);
            for (unsigned i = 0; has_fill && i < ELEMENTS_MAX; i += 5)
                values[i] = fill;
            put(group, name, l, type, plist, H5T_NATIVE_DOUBLE, values);
            done(H5Pclose(plist));
            done(H5Tclose(type));
        }
}

int main(int argc, char **argv)
{
    static const unsigned SIZES[] = {1, 2, 4, 8};
    if (argc != 2)
        return 2;
    hid_t file = good(H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    hid_t nbit_group = good(H5Gcreate2(file, "nbit", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    hid_t szip_group = good(H5Gcreate2(file, "szip", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    hid_t scale_group = good(H5Gcreate2(file, "scaleoffset", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const int has_szip = H5Zfilter_avail(H5Z_FILTER_SZIP) > 0;
    for (unsigned o = 0; o < 2; o++) {
        for (unsigned i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
            for (int is_signed = 0; is_signed < 2; is_signed++) {
                put_nbit_integers(nbit_group, SIZES[i], is_signed, ORDERS[o]);
                put_scaled_integers(scale_group, SIZES[i], is_signed, ORDERS[o]);
                if (has_szip)
                    put_szip(szip_group, SIZES[i], is_signed ? 'i' : 'u', ORDERS[o]);
            }
        for (unsigned i = 2; i < sizeof SIZES / sizeof *SIZES; i++) {
            put_scaled_floats(scale_group, SIZES[i], ORDERS[o]);
            if (has_szip)
                put_szip(szip_group, SIZES[i], 'f', ORDERS[o]);
        }
        put_nbit_floats(nbit_group, ORDERS[o]);
    }
    put_nbit_compounds(nbit_group);
    done(H5Fclose(file));
    return 0;
}
