/* _squall.Array: an array of a dataset, the base of squall.Array. a[key] begins here. */
#include "_squall.h"
#include <stddef.h>
#include <stdlib.h>

static struct sq_py_array *array_of(PyObject *self)
{
    return (struct sq_py_array *)self;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF((PyObject *)array_of(self)->owner);
    Py_XDECREF(array_of(self)->dtype);
    Py_XDECREF(array_of(self)->sequence_dtype);
    Py_XDECREF(array_of(self)->reader);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *new_array(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"dataset", "name", NULL};
    PyObject *dataset, *name;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!U", names, sq_py_dataset_type, &dataset, &name))
        return NULL;
    struct sq_py_dataset *owner = (struct sq_py_dataset *)dataset;
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_array *array;
    PyObject *encoded = PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape");
    const char *text = encoded ? PyBytes_AsString(encoded) : NULL;
    int status = text ? squall_dataset_array(owner->dataset, text, &array, &err) : -1;
    if (text && status)
        sq_py_raise(&err, owner->path);
    PyObject *self = status ? NULL : ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self) {
        Py_INCREF(dataset);
        array_of(self)->owner = owner;
        array_of(self)->array = array;
        array_of(self)->info = squall_array_info(array);
    }
    Py_XDECREF(encoded);
    return self;
}

/* ---- what it is -------------------------------------------------------------------------------------------------------------------- */

static PyObject *tuple_of(const uint64_t *numbers, unsigned count)
{
    PyObject *tuple = PyTuple_New(count);
    for (unsigned i = 0; tuple && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(numbers[i]);
        if (!number || PyTuple_SetItem(tuple, i, number) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *text_or_none(const char *text)
{
    if (!text)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

static PyObject *look_up_dtype(PyObject **kept, const char *text)
{
    if (!*kept) {
        PyObject *name = text_or_none(text);
        *kept = name ? PyObject_CallFunctionObjArgs(sq_py.dtype_of, name, NULL) : NULL;
        Py_XDECREF(name);
    }
    return *kept;
}

PyObject *sq_py_array_dtype(struct sq_py_array *a)
{
    return look_up_dtype(&a->dtype, a->info.numpy_type);
}

PyObject *sq_py_sequence_dtype(struct sq_py_array *a)
{
    return look_up_dtype(&a->sequence_dtype, a->info.sequence_type);
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *dtype = sq_py_array_dtype(array_of(self));
    Py_XINCREF(dtype);
    return dtype;
}

static PyObject *get_shape(PyObject *self, void *unused)
{
    (void)unused;
    return tuple_of(array_of(self)->info.shape, array_of(self)->info.rank);
}

static PyObject *get_chunks(PyObject *self, void *unused)
{
    (void)unused;
    return tuple_of(array_of(self)->info.chunks, array_of(self)->info.rank);
}

static PyObject *get_shards(PyObject *self, void *unused)
{
    (void)unused;
    if (!array_of(self)->info.shards)
        Py_RETURN_NONE;
    return tuple_of(array_of(self)->info.shards, array_of(self)->info.rank);
}

static PyObject *get_ndim(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(array_of(self)->info.rank);
}

static PyObject *get_dims(PyObject *self, void *unused)
{
    (void)unused;
    const struct squall_array_info *info = &array_of(self)->info;
    PyObject *dims = PyTuple_New(info->rank);
    for (unsigned d = 0; dims && d < info->rank; d++) {
        PyObject *name = text_or_none(info->dims[d][0] ? info->dims[d] : NULL);
        if (!name || PyTuple_SetItem(dims, d, name) < 0)
            Py_CLEAR(dims);
    }
    return dims;
}

static PyObject *get_path(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *path = array_of(self)->owner->path;
    Py_INCREF(path);
    return path;
}

static PyObject *get_dataset(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *owner = (PyObject *)array_of(self)->owner;
    Py_INCREF(owner);
    return owner;
}

/* Texts of squall_array_info; closure: where the member lies in it. */
static PyObject *get_text(PyObject *self, void *offset)
{
    const char *info = (const char *)&array_of(self)->info;
    return text_or_none(*(const char *const *)(const void *)(info + (uintptr_t)offset));
}

static PyGetSetDef members[] = {
    {"shape", get_shape, NULL, "lengths of the dimensions, a tuple of int", NULL},
    {"ndim", get_ndim, NULL, "number of dimensions", NULL},
    {"dtype", get_dtype, NULL, "numpy.dtype of an element in memory, in the machine's byte order", NULL},
    {"chunks", get_chunks, NULL, "shape of a chunk, elements (of a rectilinear grid the longest); inside of shards: of an inner chunk",
     NULL},
    {"shards", get_shards, NULL, "shape of a shard, elements; None where chunks are objects of their own", NULL},
    {"dims", get_dims, NULL, "names of the dimensions; None for one without", NULL},
    {"name", get_text, NULL, "path within the dataset", (void *)offsetof(struct squall_array_info, name)},
    {"path", get_path, NULL, "of the dataset", NULL},
    {"codecs", get_text, NULL, "what chunks are stored by, in words", (void *)offsetof(struct squall_array_info, codecs)},
    {"type_name", get_text, NULL, "the format's own name of the type", (void *)offsetof(struct squall_array_info, type_name)},
    {"unsupported", get_text, NULL, "None, or why the data cannot be read", (void *)offsetof(struct squall_array_info, unsupported)},
    {"_numpy_type", get_text, NULL, NULL, (void *)offsetof(struct squall_array_info, numpy_type)},
    {"_attributes", get_text, NULL, NULL, (void *)offsetof(struct squall_array_info, attributes)},
    {"_attribute_types", get_text, NULL, NULL, (void *)offsetof(struct squall_array_info, attribute_types)},
    {"_enum_names", get_text, NULL, NULL, (void *)offsetof(struct squall_array_info, enum_names)},
    {"_fill_value", get_text, NULL, NULL, (void *)offsetof(struct squall_array_info, fill_value)},
    {"_dataset", get_dataset, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- a[key] ------------------------------------------------------------------------------------------------------------------------ */

static PyObject *get_item(PyObject *self, PyObject *key)
{
    struct sq_py_array *a = array_of(self);
    struct sq_py_box box;
    switch (sq_py_box_parse(key, a->info.rank, a->info.shape, &box)) {
    case SQ_PY_KEY_BASIC:
        return sq_py_read_new(a, &box);
    case SQ_PY_KEY_ADVANCED:
        return PyObject_CallMethodObjArgs(self, sq_py.read_advanced, key, NULL);
    default:
        return NULL;
    }
}

static int set_item(PyObject *self, PyObject *key, PyObject *value)
{
    struct sq_py_array *a = array_of(self);
    struct sq_py_box box;
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
        return -1;
    }
    switch (sq_py_box_parse(key, a->info.rank, a->info.shape, &box)) {
    case SQ_PY_KEY_BASIC:
        return sq_py_write(a, &box, value);
    case SQ_PY_KEY_ADVANCED: {
        PyObject *done = PyObject_CallMethodObjArgs(self, sq_py.write_advanced, key, value, NULL);
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    default:
        return -1;
    }
}

/* _read_into(key, out): a basic key, a buffer of the result's shape and of the array's type */
static PyObject *read_into(PyObject *self, PyObject *args)
{
    struct sq_py_array *a = array_of(self);
    struct sq_py_box box;
    PyObject *key, *out;
    if (!PyArg_ParseTuple(args, "OO", &key, &out))
        return NULL;
    enum sq_py_key kind = sq_py_box_parse(key, a->info.rank, a->info.shape, &box);
    if (kind == SQ_PY_KEY_ADVANCED)
        PyErr_SetString(PyExc_TypeError, "a basic key is wanted");
    if (kind != SQ_PY_KEY_BASIC || sq_py_read_into(a, &box, out) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* _parse(key) → None for an advanced key, else the shape of a basic one's result */
static PyObject *parse(PyObject *self, PyObject *key)
{
    struct sq_py_array *a = array_of(self);
    struct sq_py_box box;
    enum sq_py_key kind = sq_py_box_parse(key, a->info.rank, a->info.shape, &box);
    if (kind == SQ_PY_KEY_FAILED)
        return NULL;
    if (kind == SQ_PY_KEY_ADVANCED)
        Py_RETURN_NONE;
    return tuple_of(box.result_shape, box.result_rank);
}

/* What a missing chunk reads as: a bytes object with one element of the array's type; None where elements are objects or not read. */
static PyObject *get_fill(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct squall_array_info *info = &array_of(self)->info;
    if (!info->fill || info->unsupported || info->type == SQUALL_STRING || info->type == SQUALL_BYTES)
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize(info->fill, (Py_ssize_t)info->element_bytes);
}

static PyObject *get_storage(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct squall_error err = SQUALL_ERROR_INIT;
    char *text;
    if (squall_array_storage(array_of(self)->array, &text, &err))
        return sq_py_raise(&err, array_of(self)->owner->path);
    PyObject *storage = text_or_none(text);
    free(text);
    return storage;
}

static PyMethodDef methods[] = {
    {"_read_into", read_into, METH_VARARGS, NULL},
    {"_read_boxes", sq_py_read_boxes, METH_VARARGS, NULL},
    {"_parse", parse, METH_O, NULL},
    {"_update", sq_py_update, METH_VARARGS, NULL},
    {"_resize", sq_py_resize, METH_O, NULL},
    {"_read_batch", sq_py_read_batch, METH_VARARGS, NULL},
    {"_write_batch", sq_py_write_batch, METH_VARARGS, NULL},
    {"_storage", get_storage, METH_NOARGS, NULL},
    {"_fill", get_fill, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)(uintptr_t)new_array},
    {Py_tp_dealloc, (void *)(uintptr_t)dealloc},
    {Py_tp_getset, members},
    {Py_tp_methods, methods},
    {Py_mp_subscript, (void *)(uintptr_t)get_item},
    {Py_mp_ass_subscript, (void *)(uintptr_t)set_item},
    {Py_tp_doc, "Array(dataset, name): the base of squall.Array."},
    {0, NULL},
};

PyType_Spec sq_py_array_spec = {
    .name = "squall._squall.Array",
    .basicsize = sizeof(struct sq_py_array),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
