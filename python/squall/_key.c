/*
 * Keys: what stands between the brackets of a[...], as numpy's basic indexing has it. Integers, slices and an Ellipsis become a box
 * here; arrays, lists and masks are for Python's part.
 */
#include "_squall.h"

/* What one item of a key is. */
enum item { ITEM_INTEGER, ITEM_SLICE, ITEM_ELLIPSIS, ITEM_ADVANCED, ITEM_WRONG };

/* Of a numpy array: one without dimensions stands for its integer. */
static enum item kind_of_array(PyObject *array)
{
    PyObject *integer = PyNumber_Index(array);
    if (!integer)
        PyErr_Clear();
    Py_XDECREF(integer);
    return integer ? ITEM_INTEGER : ITEM_ADVANCED;
}

static enum item kind_of(PyObject *item)
{
    if (PyLong_CheckExact(item))
        return ITEM_INTEGER;
    if (PySlice_Check(item))
        return ITEM_SLICE;
    if (item == Py_Ellipsis)
        return ITEM_ELLIPSIS;
    if (PyBool_Check(item) || PyList_Check(item) || PyTuple_Check(item))
        return ITEM_ADVANCED;
    if (item == Py_None || PyUnicode_Check(item) || PyBytes_Check(item) || PyFloat_Check(item))
        return ITEM_WRONG;
    if (PyObject_IsInstance(item, sq_py.numpy_ndarray) == 1)
        return kind_of_array(item);
    if (PyObject_IsInstance(item, sq_py.numpy_bool) == 1)
        return ITEM_ADVANCED;
    return PyIndex_Check(item) ? ITEM_INTEGER : ITEM_ADVANCED;
}

static int put_integer(PyObject *item, unsigned d, uint64_t length, struct sq_py_box *box)
{
    Py_ssize_t index = PyNumber_AsSsize_t(item, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred())
        return -1;
    if (index >= (Py_ssize_t)length || index < -(Py_ssize_t)length) {
        PyErr_Format(PyExc_IndexError, "index %zd is out of bounds for axis %u with size %llu", index, d, (unsigned long long)length);
        return -1;
    }
    box->selection.start[d] = (uint64_t)(index < 0 ? index + (Py_ssize_t)length : index);
    box->selection.count[d] = box->selection.step[d] = 1;
    box->backwards[d] = false;
    box->dropped[d] = true;
    return 0;
}

static void put_range(Py_ssize_t start, Py_ssize_t step, uint64_t count, unsigned d, struct sq_py_box *box)
{
    box->backwards[d] = step < 0;
    box->dropped[d] = false;
    box->selection.count[d] = count;
    box->selection.step[d] = count > 1 ? (uint64_t)(step < 0 ? -step : step) : 1;
    box->selection.start[d] = count == 0 ? 0 : (uint64_t)(step < 0 ? start + (Py_ssize_t)(count - 1) * step : start);
    box->result_shape[box->result_rank++] = count;
}

static int put_slice(PyObject *item, unsigned d, uint64_t length, struct sq_py_box *box)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(item, &start, &stop, &step) < 0)
        return -1;
    Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)length, &start, &stop, step);
    put_range(start, step, (uint64_t)count, d, box);
    return 0;
}

static int wrong_item(PyObject *item)
{
    PyErr_Format(PyExc_IndexError,
                 item == Py_None ? "numpy.newaxis (None) is no selection of stored data: index the result with it; got %R"
                                 : "only integers, slices, Ellipsis, integer arrays and boolean masks select elements; got %R",
                 item);
    return -1;
}

static int too_many(unsigned rank, Py_ssize_t count)
{
    PyErr_Format(PyExc_IndexError, "too many indices for array: array is %u-dimensional, but %zd were indexed", rank, count);
    return -1;
}

/* Kinds are known, none is wrong or advanced, at most one Ellipsis. */
static int put_items(PyObject *const *items, const enum item *kinds, Py_ssize_t count, unsigned rank, const uint64_t *shape,
                     struct sq_py_box *box)
{
    unsigned d = 0;
    bool ellipsis = false;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (kinds[i] == ITEM_ELLIPSIS) {
            ellipsis = true;
            for (unsigned left = rank - (unsigned)(count - 1); left > 0; left--, d++)
                put_range(0, 1, shape[d], d, box);
        } else if ((kinds[i] == ITEM_INTEGER ? put_integer : put_slice)(items[i], d, shape[d], box) < 0) {
            return -1;
        } else {
            d++;
        }
    }
    for (; d < rank; d++)
        put_range(0, 1, shape[d], d, box);
    box->scalar = box->result_rank == 0 && !ellipsis;
    return 0;
}

static enum sq_py_key parse_items(PyObject *const *items, Py_ssize_t count, unsigned rank, const uint64_t *shape, struct sq_py_box *box)
{
    enum item kinds[SQUALL_RANK_MAX + 1];
    Py_ssize_t ellipses = 0;
    bool advanced = false;
    for (Py_ssize_t i = 0; i < count; i++) {
        enum item kind = kind_of(items[i]);
        if (kind == ITEM_WRONG)
            return wrong_item(items[i]);
        if (i < SQUALL_RANK_MAX + 1)
            kinds[i] = kind;
        advanced = advanced || kind == ITEM_ADVANCED;
        ellipses += kind == ITEM_ELLIPSIS;
    }
    if (advanced)
        return SQ_PY_KEY_ADVANCED; /* a mask may stand for several dimensions: not counted here */
    if (ellipses > 1) {
        PyErr_SetString(PyExc_IndexError, "an index can only have a single ellipsis ('...')");
        return SQ_PY_KEY_FAILED;
    }
    if (count - ellipses > (Py_ssize_t)rank)
        return too_many(rank, count - ellipses);
    return put_items(items, kinds, count, rank, shape, box) < 0 ? SQ_PY_KEY_FAILED : SQ_PY_KEY_BASIC;
}

enum sq_py_key sq_py_box_parse(PyObject *key, unsigned rank, const uint64_t *shape, struct sq_py_box *ret)
{
    enum { ITEMS_MAX = 2 * SQUALL_RANK_MAX };
    PyObject *items[ITEMS_MAX];
    ret->rank = rank;
    ret->result_rank = 0;
    if (!PyTuple_Check(key))
        return parse_items(&key, 1, rank, shape, ret);
    Py_ssize_t count = PyTuple_Size(key);
    if (count > ITEMS_MAX)
        return too_many(rank, count);
    for (Py_ssize_t i = 0; i < count; i++)
        items[i] = PyTuple_GetItem(key, i); /* borrowed; the caller holds the key */
    return parse_items(items, count, rank, shape, ret);
}
