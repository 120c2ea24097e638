/*
 * Reading a box into numpy's memory, or anybody's: the library writes where the result lies, in its strides. Only texts and bytes of
 * variable length pass through a list of pointers, for they become Python objects.
 */
#include "_squall.h"
/* below the public interface: */
#include "base/error_internal.h"
#include "engine/context.h"
#include "sys/pool.h"
#include <stdlib.h>

static Py_ssize_t element_count(const struct sq_py_box *box)
{
    uint64_t count = 1;
    for (unsigned d = 0; d < box->result_rank; d++)
        if (box->result_shape[d] == 0)
            return 0;
    for (unsigned d = 0; d < box->result_rank; d++)
        if (__builtin_mul_overflow(count, box->result_shape[d], &count) || count > (uint64_t)PY_SSIZE_T_MAX / 16)
            return -1;
    return (Py_ssize_t)count;
}

/*
 * result_strides: of the result's dimensions, bytes; NULL: packed, C order. A dimension that runs backwards is read forwards into
 * strides that do. Without the GIL.
 */
static int read_place(const struct sq_py_array *a, const struct sq_py_box *box, char *dst, const Py_ssize_t *result_strides,
                      struct squall_error *err)
{
    int64_t strides[SQUALL_RANK_MAX], packed = (int64_t)a->info.element_bytes;
    bool plain = !result_strides;
    for (unsigned d = box->rank, r = box->result_rank; d-- > 0;) {
        const int64_t last = (int64_t)box->selection.count[d] - 1;
        strides[d] = box->dropped[d] ? packed : result_strides ? result_strides[--r] : packed;
        packed *= last + 1;
        if (box->backwards[d]) {
            dst += last * strides[d];
            strides[d] = -strides[d];
            plain = false;
        }
    }
    return squall_array_read(a->array, &box->selection, dst, plain ? NULL : strides, err);
}

static int read_box(struct sq_py_array *a, const struct sq_py_box *box, char *dst, const Py_ssize_t *result_strides)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_py_work work;
    sq_py_work_begin(&work, a->owner, SQ_PY_SHARED);
    int status = read_place(a, box, dst, result_strides, &err);
    sq_py_work_end(&work);
    if (status)
        sq_py_raise(&err, a->owner->path);
    return status || PyErr_Occurred() ? -1 : 0;
}

/* ---- Python objects ---------------------------------------------------------------------------------------------------------------- */

bool sq_py_holds_objects(const struct sq_py_array *a)
{
    return a->info.type == SQUALL_STRING || a->info.type == SQUALL_BYTES;
}

/* Structures with fields that are objects. */
static bool holds_structures(const struct sq_py_array *a)
{
    return a->info.type == SQUALL_BYTES && a->info.numpy_type[0] == '[';
}

/* Is an element made of parts of which some have no fixed size? */
static bool has_parts(const struct sq_py_array *a)
{
    const char *type = a->info.sequence_type;
    return type && (holds_structures(a) || strstr(type, "'text'") || strstr(type, "{'sequence'"));
}

static PyObject *reader_of(struct sq_py_array *a)
{
    if (!a->reader)
        a->reader = PyObject_CallFunction(sq_py.reader_of, "ss", a->info.numpy_type, a->info.sequence_type);
    return a->reader;
}

/* A sequence of such as a numpy array of its own. */
static PyObject *parts_at(struct sq_py_array *a, const struct squall_bytes *bytes)
{
    PyObject *reader = reader_of(a);
    return reader ? PyObject_CallFunction(reader, "y#", (const char *)bytes->data, (Py_ssize_t)bytes->size_bytes) : NULL;
}

/* A sequence as a numpy array of its own. */
static PyObject *sequence_at(struct sq_py_array *a, const struct squall_bytes *bytes)
{
    PyObject *dtype = sq_py_sequence_dtype(a);
    PyObject *size = dtype ? PyObject_GetAttrString(dtype, "itemsize") : NULL;
    const Py_ssize_t one = size ? PyLong_AsSsize_t(size) : 0;
    PyObject *memory = one > 0 ? PyByteArray_FromStringAndSize(bytes->data, (Py_ssize_t)bytes->size_bytes) : NULL;
    PyObject *array =
        memory ? PyObject_CallFunction(sq_py.numpy_ndarray, "(n)OO", (Py_ssize_t)bytes->size_bytes / one, dtype, memory) : NULL;
    Py_XDECREF(size);
    Py_XDECREF(memory);
    return array;
}

static PyObject *object_at(struct sq_py_array *a, const void *element)
{
    const struct squall_bytes *bytes = element;
    if (a->info.type == SQUALL_STRING)
        return PyUnicode_DecodeUTF8(bytes->data, (Py_ssize_t)bytes->size_bytes, "surrogateescape");
    if (has_parts(a))
        return parts_at(a, bytes);
    return a->info.sequence_type ? sequence_at(a, bytes) : PyBytes_FromStringAndSize(bytes->data, (Py_ssize_t)bytes->size_bytes);
}

/* Put the elements, packed, as Python objects into memory that holds such; the elements are freed in any case. */
static int put_objects(struct sq_py_array *a, const struct sq_py_box *box, const char *elements, Py_ssize_t count, char *dst,
                       const Py_ssize_t *strides)
{
    Py_ssize_t at[SQUALL_RANK_MAX] = {0};
    bool failed = false;
    for (Py_ssize_t i = 0; i < count; i++) {
        const char *element = elements + (size_t)i * a->info.element_bytes;
        PyObject *object = failed ? NULL : object_at(a, element), **place = (PyObject **)(void *)dst;
        free(((const struct squall_bytes *)(const void *)element)->data);
        failed = !object;
        if (object) {
            PyObject *old = *place;
            *place = object;
            Py_XDECREF(old);
        }
        for (unsigned d = box->result_rank; d-- > 0;) {
            dst += strides[d];
            if ((uint64_t)++at[d] < box->result_shape[d])
                break;
            dst -= at[d] * strides[d];
            at[d] = 0;
        }
    }
    return failed ? -1 : 0;
}

/* The bytes of each element, which are freed in any case. */
static PyObject *list_of_bytes(char *elements, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; i < count; i++) {
        struct squall_bytes *one = (struct squall_bytes *)(void *)elements + i;
        PyObject *bytes = list ? PyBytes_FromStringAndSize(one->data, (Py_ssize_t)one->size_bytes) : NULL;
        free(one->data);
        if (!bytes || PyList_SetItem(list, i, bytes) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* target: a numpy array, whose fields are objects: numpy itself puts them there. */
static int read_structures(struct sq_py_array *a, const struct sq_py_box *box, Py_ssize_t count, PyObject *target)
{
    char *elements = PyMem_Malloc((size_t)count * a->info.element_bytes);
    if (!elements) {
        PyErr_NoMemory();
        return -1;
    }
    PyObject *list = read_box(a, box, elements, NULL) ? NULL : list_of_bytes(elements, count), *reader = list ? reader_of(a) : NULL;
    PyObject *done = reader ? PyObject_CallFunctionObjArgs(sq_py.put_structures, target, reader, list, NULL) : NULL;
    PyMem_Free(elements);
    Py_XDECREF(list);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int read_objects(struct sq_py_array *a, const struct sq_py_box *box, Py_ssize_t count, char *dst, const Py_ssize_t *strides)
{
    char *elements = PyMem_Malloc((size_t)count * a->info.element_bytes);
    if (!elements) {
        PyErr_NoMemory();
        return -1;
    }
    int status = read_box(a, box, elements, NULL);
    if (!status)
        status = put_objects(a, box, elements, count, dst, strides);
    PyMem_Free(elements);
    return status;
}

/* ---- results ----------------------------------------------------------------------------------------------------------------------- */

static int read_view(struct sq_py_array *a, const struct sq_py_box *box, PyObject *target, Py_buffer *view, bool packed)
{
    Py_ssize_t count = element_count(box);
    if (count == 0)
        return 0;
    if (holds_structures(a))
        return read_structures(a, box, count, target);
    if (sq_py_holds_objects(a))
        return read_objects(a, box, count, view->buf, view->strides);
    return read_box(a, box, view->buf, packed ? NULL : view->strides);
}

PyObject *sq_py_shape(const struct sq_py_box *box)
{
    PyObject *shape = PyTuple_New(box->result_rank);
    for (unsigned d = 0; shape && d < box->result_rank; d++) {
        PyObject *length = PyLong_FromUnsignedLongLong(box->result_shape[d]);
        if (!length || PyTuple_SetItem(shape, d, length) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

/* A numpy array for the box's result, uninitialised. */
static PyObject *result_for(struct sq_py_array *a, const struct sq_py_box *box)
{
    const Py_ssize_t count = element_count(box);
    if (a->info.unsupported && count != 0) { /* its elements' size is not that of its type in numpy */
        struct squall_error err = SQUALL_ERROR_INIT;
        (void)sq_error(&err, SQUALL_EUNSUPPORTED, "array %s cannot be read: %s", a->info.name, a->info.unsupported);
        return sq_py_raise(&err, a->owner->path);
    }
    PyObject *dtype = sq_py_array_dtype(a), *shape = dtype ? sq_py_shape(box) : NULL;
    if (!shape)
        return NULL;
    if (count < 0) {
        Py_DECREF(shape);
        PyErr_SetString(PyExc_MemoryError, "the selection does not fit into memory");
        return NULL;
    }
    PyObject *result = sq_py_result_new(a->owner->shared, shape, dtype, sq_py_holds_objects(a) ? 0 : (size_t)count * a->info.element_bytes);
    Py_DECREF(shape);
    return result;
}

PyObject *sq_py_read_new(struct sq_py_array *a, const struct sq_py_box *box)
{
    PyObject *result = result_for(a, box);
    if (!result)
        return NULL;
    Py_buffer view;
    int status = PyObject_GetBuffer(result, &view, sq_py_holds_objects(a) ? PyBUF_STRIDES | PyBUF_WRITABLE : PyBUF_WRITABLE);
    if (!status) {
        status = read_view(a, box, result, &view, true);
        PyBuffer_Release(&view);
    }
    if (status) {
        Py_DECREF(result);
        return NULL;
    }
    if (!box->scalar)
        return result;
    PyObject *scalar = PyObject_GetItem(result, sq_py.empty_tuple);
    Py_DECREF(result);
    return scalar;
}

/* Of an element in memory that holds objects; -1 with the exception set. */
static Py_ssize_t object_bytes(struct sq_py_array *a)
{
    PyObject *dtype = sq_py_array_dtype(a), *size = dtype ? PyObject_GetAttrString(dtype, "itemsize") : NULL;
    const Py_ssize_t bytes = size ? PyLong_AsSsize_t(size) : -1;
    Py_XDECREF(size);
    return bytes;
}

int sq_py_read_into(struct sq_py_array *a, const struct sq_py_box *box, PyObject *out)
{
    Py_buffer view;
    if (PyObject_GetBuffer(out, &view, PyBUF_STRIDES | PyBUF_WRITABLE) < 0)
        return -1;
    bool same = view.ndim == (int)box->result_rank &&
                view.itemsize == (sq_py_holds_objects(a) ? object_bytes(a) : (Py_ssize_t)a->info.element_bytes);
    for (unsigned d = 0; d < box->result_rank && same; d++)
        same = (uint64_t)view.shape[d] == box->result_shape[d];
    int status = same ? read_view(a, box, out, &view, false) : -1;
    if (!same)
        PyErr_SetString(PyExc_ValueError, "the destination has another shape or element size than the selection");
    PyBuffer_Release(&view);
    return status;
}

/* ---- many boxes -------------------------------------------------------------------------------------------------------------------- */

struct many {
    struct sq_py_array *self; /* of the dataset that all lie in */
    struct one {
        struct sq_py_array *array;
        struct sq_py_box box;
        Py_buffer view; /* of the result */
    } * items;
    Py_ssize_t count, open;
};

static int read_one(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    const struct one *one = &((const struct many *)user)->items[index];
    (void)worker;
    return one->view.len ? read_place(one->array, &one->box, one->view.buf, NULL, err) : 0;
}

/* The array that the i-th key is of: self where no arrays are told; NULL with the exception set. */
static struct sq_py_array *array_at(const struct many *m, PyObject *arrays, Py_ssize_t i)
{
    PyObject *found = arrays == Py_None ? (PyObject *)m->self : PyList_GetItem(arrays, i);
    if (!found || Py_TYPE(found) != Py_TYPE((PyObject *)m->self) || ((struct sq_py_array *)found)->owner != m->self->owner ||
        sq_py_holds_objects((struct sq_py_array *)found)) {
        PyErr_SetString(PyExc_TypeError, "arrays of one dataset are wanted that hold no objects, as many as keys");
        return NULL;
    }
    return (struct sq_py_array *)found;
}

/* A result for each key, not yet read. */
static PyObject *open_results(struct many *m, PyObject *keys, PyObject *arrays)
{
    PyObject *results = PyList_New(m->count);
    for (Py_ssize_t i = 0; results && i < m->count; i++) {
        struct one *one = &m->items[i];
        PyObject *result = NULL;
        one->array = array_at(m, arrays, i);
        if (one->array &&
            sq_py_box_parse(PyList_GetItem(keys, i), one->array->info.rank, one->array->info.shape, &one->box) == SQ_PY_KEY_BASIC)
            result = result_for(one->array, &one->box);
        else if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "basic keys are wanted");
        if (!result || PyList_SetItem(results, i, result) < 0 || PyObject_GetBuffer(result, &one->view, PyBUF_WRITABLE) < 0)
            Py_CLEAR(results);
        else
            m->open++;
    }
    return results;
}

static PyObject *read_many(struct many *m, PyObject *keys, PyObject *arrays)
{
    PyObject *results = open_results(m, keys, arrays);
    if (results) {
        struct squall_error err = SQUALL_ERROR_INIT;
        struct sq_py_work work;
        sq_py_work_begin(&work, m->self->owner, SQ_PY_SHARED);
        int status = sq_parallel(m->self->owner->context->threads, (size_t)m->count, read_one, m, &err);
        sq_py_work_end(&work);
        if (status)
            sq_py_raise(&err, m->self->owner->path);
        if (PyErr_Occurred())
            Py_CLEAR(results);
    }
    while (m->open > 0)
        PyBuffer_Release(&m->items[--m->open].view);
    return results;
}

/* _read_boxes(keys, arrays) → a list of arrays, each what array[key] gives; side by side. arrays: of one dataset, or None: all are self. */
PyObject *sq_py_read_boxes(PyObject *self, PyObject *args)
{
    struct many m = {.self = (struct sq_py_array *)self};
    PyObject *keys, *arrays = Py_None;
    if (!PyArg_ParseTuple(args, "O!|O", &PyList_Type, &keys, &arrays))
        return NULL;
    if (arrays != Py_None && (!PyList_Check(arrays) || PyList_Size(arrays) != PyList_Size(keys)))
        return PyErr_Format(PyExc_TypeError, "arrays is a list of as many as keys, or None");
    m.count = PyList_Size(keys);
    m.items = PyMem_Malloc((size_t)(m.count + 1) * sizeof *m.items);
    PyObject *results = m.items ? read_many(&m, keys, arrays) : PyErr_NoMemory();
    PyMem_Free(m.items);
    return results;
}
