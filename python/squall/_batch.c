/*
 * Batches of zarr-python's codec pipeline: for each chunk which box of it goes where in one piece of memory, or comes from there. Where
 * the boxes make up one box of the array, which they do for every slice, that is one read or write; else each is one, side by side.
 */
#include "_squall.h"
/* below the public interface: */
#include "engine/read.h"
#include "engine/zarr_array.h"
#include "store/region.h"
#include "sys/pool.h"
#include <stdlib.h>

struct part {
    uint64_t start[SQUALL_RANK_MAX], count[SQUALL_RANK_MAX], to[SQUALL_RANK_MAX]; /* in the array; in the memory's dimensions */
};

struct batch {
    struct sq_py_array *array;
    unsigned rank;
    size_t part_count;
    struct part *parts;
    uint64_t step[SQUALL_RANK_MAX];   /* common to all parts */
    uint64_t ends[SQUALL_RANK_MAX];   /* of the array zarr sees, as far as complete chunks tell; squall's has none */
    int64_t strides[SQUALL_RANK_MAX]; /* of the memory, by the array's dimensions */
    uint8_t *memory;                  /* destination of a read, source of a write */
    bool write, scalar;               /* a write of one element for all */
};

/* ---- from Python ------------------------------------------------------------------------------------------------------------------- */

enum taken { FAILED = -1, NOT_TAKEN, TAKEN };

/* An integer or a slice with a positive step of one chunk: *ret_dropped tells which. */
static enum taken take_selector(PyObject *selector, uint64_t chunk_index, uint64_t chunk, unsigned d, struct part *part, uint64_t *ret_step,
                                bool *ret_dropped)
{
    Py_ssize_t start, stop, step = 1;
    *ret_dropped = PyLong_CheckExact(selector);
    if (*ret_dropped) {
        start = PyLong_AsSsize_t(selector);
        stop = start + 1;
        if (start == -1 && PyErr_Occurred())
            return FAILED;
    } else if (!PySlice_Check(selector)) {
        return NOT_TAKEN;
    } else if (PySlice_Unpack(selector, &start, &stop, &step) < 0) {
        return FAILED;
    }
    if (start < 0 || step < 1 || start >= (Py_ssize_t)chunk)
        return NOT_TAKEN;
    if (stop > (Py_ssize_t)chunk)
        stop = (Py_ssize_t)chunk;
    if (stop <= start)
        return NOT_TAKEN;
    part->start[d] = chunk_index * chunk + (uint64_t)start;
    part->count[d] = ((uint64_t)(stop - start) + (uint64_t)step - 1) / (uint64_t)step;
    *ret_step = part->count[d] > 1 ? (uint64_t)step : 0; /* 0: any */
    return TAKEN;
}

/* Where it lies along one dimension of the memory: a slice of as many elements, of step 1. */
static enum taken take_place(PyObject *selector, Py_ssize_t length, uint64_t count, uint64_t *ret)
{
    Py_ssize_t start, stop, step;
    if (!PySlice_Check(selector))
        return NOT_TAKEN;
    if (PySlice_Unpack(selector, &start, &stop, &step) < 0)
        return FAILED;
    Py_ssize_t found = PySlice_AdjustIndices(length, &start, &stop, step);
    if (step != 1 || (uint64_t)found != count)
        return NOT_TAKEN;
    *ret = (uint64_t)start;
    return TAKEN;
}

/* tuple[i] as an integer ≥ 0; false with or without an exception */
static bool take_coordinate(PyObject *tuple, unsigned i, uint64_t *ret)
{
    PyObject *item = PyTuple_GetItem(tuple, i);
    *ret = item && PyLong_Check(item) ? PyLong_AsUnsignedLongLong(item) : UINT64_MAX;
    return *ret <= INT64_MAX;
}

/* item: (coordinates, chunk selection, memory's selection, complete: the selection is all of the chunk that lies in the array) */
static enum taken take_part(struct batch *b, PyObject *item, const uint64_t *outer, const Py_buffer *view, struct part *part)
{
    PyObject *coordinates, *selection, *places;
    int complete;
    if (!PyArg_ParseTuple(item, "O!OOp", &PyTuple_Type, &coordinates, &selection, &places, &complete))
        return FAILED;
    if (!PyTuple_Check(selection) || !PyTuple_Check(places) || PyTuple_Size(selection) != (Py_ssize_t)b->rank ||
        PyTuple_Size(coordinates) != (Py_ssize_t)b->rank || (!b->scalar && PyTuple_Size(places) != view->ndim))
        return NOT_TAKEN;
    int kept = 0;
    for (unsigned d = 0; d < b->rank; d++) {
        uint64_t index, step, length;
        bool dropped;
        if (!take_coordinate(coordinates, d, &index) || __builtin_mul_overflow(index, outer[d], &length))
            return PyErr_Occurred() ? FAILED : NOT_TAKEN;
        enum taken taken = take_selector(PyTuple_GetItem(selection, d), index, outer[d], d, part, &step, &dropped);
        if (taken != TAKEN)
            return taken;
        if (step && b->step[d] && step != b->step[d])
            return NOT_TAKEN;
        b->step[d] = step ? step : b->step[d];
        if (complete && part->count[d] < outer[d])
            b->ends[d] = part->start[d] + part->count[d];
        part->to[d] = 0;
        b->strides[d] = 0;
        if (dropped || b->scalar)
            continue;
        if (kept == view->ndim)
            return NOT_TAKEN;
        b->strides[d] = view->strides[kept];
        taken = take_place(PyTuple_GetItem(places, kept), view->shape[kept], part->count[d], &part->to[d]);
        if (taken != TAKEN)
            return taken;
        kept++;
    }
    return kept == view->ndim || b->scalar ? TAKEN : NOT_TAKEN;
}

static enum taken take_parts(struct batch *b, PyObject *items, const Py_buffer *view)
{
    const struct squall_array_info *info = &b->array->info;
    const uint64_t *outer = info->shards ? info->shards : info->chunks;
    for (size_t i = 0; i < b->part_count; i++) {
        enum taken taken = take_part(b, PyList_GetItem(items, (Py_ssize_t)i), outer, view, &b->parts[i]);
        if (taken != TAKEN)
            return taken;
    }
    for (unsigned d = 0; d < b->rank; d++)
        b->step[d] = b->step[d] ? b->step[d] : 1;
    return TAKEN;
}

/* ---- the work ----------------------------------------------------------------------------------------------------------------------- */

/*
 * Do the parts make up one box, each at its place? They are of different chunks, so they do not overlap: they fill the box around
 * them if they have as many elements.
 */
static bool one_box(const struct batch *b, struct squall_selection *ret, struct part *ret_first)
{
    *ret_first = b->parts[0];
    uint64_t last[SQUALL_RANK_MAX] = {0}, elements = 0, whole = 1;
    for (size_t i = 0; i < b->part_count; i++) {
        uint64_t product = 1;
        for (unsigned d = 0; d < b->rank; d++) {
            const struct part *p = &b->parts[i];
            ret_first->start[d] = p->start[d] < ret_first->start[d] ? p->start[d] : ret_first->start[d];
            ret_first->to[d] = p->to[d] < ret_first->to[d] ? p->to[d] : ret_first->to[d];
            last[d] = p->to[d] + p->count[d] > last[d] ? p->to[d] + p->count[d] : last[d];
            product *= p->count[d];
        }
        elements += product;
    }
    for (unsigned d = 0; d < b->rank; d++) {
        ret->start[d] = ret_first->start[d];
        ret->count[d] = last[d] - ret_first->to[d];
        ret->step[d] = b->step[d];
        whole *= ret->count[d];
        for (size_t i = 0; i < b->part_count; i++)
            if (b->parts[i].start[d] - ret->start[d] != (b->parts[i].to[d] - ret_first->to[d]) * b->step[d])
                return false;
    }
    return elements == whole;
}

static int do_box(const struct batch *b, const struct squall_selection *selection, const uint64_t *to, struct squall_error *err)
{
    uint8_t *memory = b->memory;
    for (unsigned d = 0; d < b->rank; d++)
        memory += (int64_t)to[d] * b->strides[d];
    return b->write ? sq_array_write(b->array->array, selection, b->ends, memory, b->strides, err)
                    : squall_array_read(b->array->array, selection, memory, b->strides, err);
}

static int do_part(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    (void)worker;
    const struct batch *b = user;
    struct squall_selection selection;
    for (unsigned d = 0; d < b->rank; d++) {
        selection.start[d] = b->parts[index].start[d];
        selection.count[d] = b->parts[index].count[d];
        selection.step[d] = b->step[d];
    }
    return do_box(b, &selection, b->parts[index].to, err);
}

static int do_batch(struct batch *b, struct squall_error *err)
{
    struct squall_selection selection;
    struct part first;
    if (!b->scalar && one_box(b, &selection, &first))
        return do_box(b, &selection, first.to, err);
    return sq_parallel(b->array->owner->context->threads, b->part_count, do_part, b, err);
}

static enum taken take_and_do(struct batch *b, PyObject *items, const Py_buffer *view)
{
    if (view->ndim > (int)b->rank || (size_t)view->itemsize != b->array->info.element_bytes)
        return NOT_TAKEN;
    b->parts = PyMem_Malloc((b->part_count + 1) * sizeof *b->parts);
    if (!b->parts) {
        PyErr_NoMemory();
        return FAILED;
    }
    enum taken taken = take_parts(b, items, view);
    if (taken == TAKEN && b->part_count > 0) {
        struct sq_py_dataset *owner = b->array->owner;
        struct squall_error err = SQUALL_ERROR_INIT;
        struct sq_py_work work;
        sq_py_work_begin(&work, owner, SQ_PY_SHARED);
        int status = do_batch(b, &err);
        sq_py_work_end(&work);
        if (status)
            sq_py_raise(&err, owner->path);
        taken = status || PyErr_Occurred() ? FAILED : TAKEN;
    }
    PyMem_Free(b->parts);
    return taken;
}

static PyObject *batch(PyObject *self, PyObject *args, bool write)
{
    struct sq_py_array *a = (struct sq_py_array *)self;
    PyObject *items, *memory;
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &items, &memory))
        return NULL;
    if (PyObject_GetBuffer(memory, &view, write ? PyBUF_STRIDES : PyBUF_STRIDES | PyBUF_WRITABLE) < 0)
        return NULL;
    struct batch b = {
        .array = a,
        .rank = a->info.rank,
        .part_count = (size_t)PyList_Size(items),
        .memory = view.buf,
        .write = write,
        .scalar = write && view.ndim == 0 && a->info.rank > 0,
    };
    memcpy(b.ends, a->info.shape, b.rank * sizeof *b.ends);
    enum taken taken = take_and_do(&b, items, &view);
    PyBuffer_Release(&view);
    return taken == FAILED ? NULL : PyBool_FromLong(taken == TAKEN);
}

PyObject *sq_py_read_batch(PyObject *self, PyObject *args)
{
    return batch(self, args, false);
}

PyObject *sq_py_write_batch(PyObject *self, PyObject *args)
{
    return batch(self, args, true);
}

/* ---- arrays of documents ----------------------------------------------------------------------------------------------------------- */

PyObject *sq_py_dataset_from_document(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *folder;
    int version, write_empty_chunks;
    const char *document;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "Uiy#p", &folder, &version, &document, &length, &write_empty_chunks))
        return NULL;
    PyObject *encoded = PyUnicode_EncodeFSDefault(folder);
    struct sq_py_dataset *ds = encoded ? sq_py_dataset_alloc(sq_py_dataset_type, folder) : NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (ds &&
        sq_zarr_dataset_from_document(ds->context, PyBytes_AsString(encoded), version, document, (size_t)length, &ds->dataset, &err) == 0) {
        ds->dataset->writable = ds->writable = true;
        ds->dataset->write_options.write_empty_chunks = ds->options.write_empty_chunks = write_empty_chunks;
        Py_DECREF(encoded);
        return (PyObject *)ds;
    }
    if (ds)
        sq_py_raise(&err, folder);
    Py_XDECREF((PyObject *)ds);
    Py_XDECREF(encoded);
    return NULL;
}
