/*
 * Writing: a[key] = value for a box, straight from numpy's memory in its strides (broadcast values have strides of 0); what must be read
 * and changed first; and arrays, groups and attributes of stores.
 */
#include "_squall.h"

/* Of a dataset that was opened for reading: with the exception set. */
static bool is_writable(const struct sq_py_array *a)
{
    if (!a->owner->writable)
        PyErr_Format(sq_py.read_only_error, "array %s was opened for reading; open it with mode=\"r+\"", a->info.name);
    return a->owner->writable;
}

/* The source of a box, strides of its result dimensions → of the array's, and where the first element lies. */
static const char *source_of(const struct sq_py_box *box, const Py_buffer *view, int64_t *strides)
{
    const char *src = view->buf;
    for (unsigned d = box->rank, r = box->result_rank; d-- > 0;) {
        strides[d] = box->dropped[d] ? 0 : view->strides[--r];
        if (box->backwards[d]) {
            src += ((int64_t)box->selection.count[d] - 1) * strides[d];
            strides[d] = -strides[d];
        }
    }
    return src;
}

/* ---- Python objects ---------------------------------------------------------------------------------------------------------------- */

/* The element for an object; what it points at belongs to the object. */
static int element_of(PyObject *object, enum squall_type type, void *element)
{
    struct squall_bytes *ret = element;
    Py_ssize_t length;
    if (type == SQUALL_STRING) {
        const char *text = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &length) : NULL;
        if (!text && !PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "elements are texts; got %R", object ? object : Py_None);
        if (text)
            *ret = (struct squall_bytes){(void *)(uintptr_t)text, (size_t)length};
        return text ? 0 : -1;
    }
    char *bytes;
    if (!object || !PyBytes_Check(object)) {
        PyErr_Format(PyExc_TypeError, "elements are bytes; got %R", object ? object : Py_None);
        return -1;
    }
    if (PyBytes_AsStringAndSize(object, &bytes, &length) < 0)
        return -1;
    *ret = (struct squall_bytes){bytes, (size_t)length};
    return 0;
}

/* What the objects of a packed array stand for, packed; PyMem_Free. */
static void *elements_of(const struct sq_py_array *a, const Py_buffer *view)
{
    Py_ssize_t count = view->len / (Py_ssize_t)sizeof(PyObject *);
    PyObject *const *objects = view->buf;
    char *elements = PyMem_Malloc((size_t)(count + 1) * a->info.element_bytes);
    if (!elements)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++)
        if (element_of(objects[i], a->info.type, elements + (size_t)i * a->info.element_bytes) < 0) {
            PyMem_Free(elements);
            return NULL;
        }
    return elements;
}

/* ---- a box ------------------------------------------------------------------------------------------------------------------------- */

static int write_elements(struct sq_py_array *a, const struct sq_py_box *box, const void *src, const int64_t *strides)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_py_work work;
    sq_py_work_begin(&work, a->owner, SQ_PY_SHARED);
    int status = squall_array_write(a->array, &box->selection, src, strides, &err);
    sq_py_work_end(&work);
    if (status)
        sq_py_raise(&err, a->owner->path);
    return status || PyErr_Occurred() ? -1 : 0;
}

/* values: of the box's result shape and the array's type; objects packed */
static int write_values(struct sq_py_array *a, const struct sq_py_box *box, PyObject *values)
{
    Py_buffer view;
    if (PyObject_GetBuffer(values, &view, PyBUF_STRIDES) < 0)
        return -1;
    int64_t strides[SQUALL_RANK_MAX];
    int status = -1;
    if (sq_py_holds_objects(a)) {
        struct sq_py_box packed = *box;
        void *elements = elements_of(a, &view);
        if (elements) {
            Py_ssize_t stride = (Py_ssize_t)a->info.element_bytes, element_strides[SQUALL_RANK_MAX];
            for (unsigned r = box->result_rank; r-- > 0; stride *= (Py_ssize_t)box->result_shape[r])
                element_strides[r] = stride;
            const Py_buffer element_view = {.buf = elements, .strides = element_strides};
            const char *src = source_of(&packed, &element_view, strides);
            status = write_elements(a, box, src, strides);
            PyMem_Free(elements);
        }
    } else {
        const char *src = source_of(box, &view, strides);
        status = write_elements(a, box, src, strides);
    }
    PyBuffer_Release(&view);
    return status;
}

int sq_py_write(struct sq_py_array *a, const struct sq_py_box *box, PyObject *value)
{
    PyObject *dtype = is_writable(a) ? sq_py_array_dtype(a) : NULL, *shape = dtype ? sq_py_shape(box) : NULL;
    PyObject *values = shape ? PyObject_CallFunctionObjArgs(sq_py.values_for, value, dtype, shape, (PyObject *)a, NULL) : NULL;
    Py_XDECREF(shape);
    if (!values)
        return -1;
    bool empty = false;
    for (unsigned d = 0; d < box->result_rank; d++)
        empty = empty || box->result_shape[d] == 0;
    int status = empty ? 0 : write_values(a, box, values);
    Py_DECREF(values);
    return status;
}

/*
 * _update(key, local, values): box[local] = values, where box is what the basic key selects, and the box written back. Nobody else
 * uses the dataset meanwhile.
 */
PyObject *sq_py_update(PyObject *self, PyObject *args)
{
    struct sq_py_array *a = (struct sq_py_array *)self;
    PyObject *key, *local, *values, *elements = NULL;
    struct sq_py_box box;
    if (!PyArg_ParseTuple(args, "OOO", &key, &local, &values) || !is_writable(a))
        return NULL;
    if (sq_py_box_parse(key, a->info.rank, a->info.shape, &box) != SQ_PY_KEY_BASIC)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "a basic key is wanted");
    struct sq_py_work work;
    sq_py_work_begin(&work, a->owner, SQ_PY_EXCLUSIVE);
    PyEval_RestoreThread(work.state); /* the lock stays */
    box.scalar = false;
    elements = sq_py_read_new(a, &box);
    int status = elements ? PyObject_SetItem(elements, local, values) : -1;
    if (!status)
        status = write_values(a, &box, elements);
    Py_XDECREF(elements);
    work.state = PyEval_SaveThread();
    sq_py_work_end(&work);
    if (status)
        return NULL;
    Py_RETURN_NONE;
}

/* resize(shape): a tuple of as many lengths as there are dimensions */
PyObject *sq_py_resize(PyObject *self, PyObject *shape)
{
    struct sq_py_array *a = (struct sq_py_array *)self;
    uint64_t lengths[SQUALL_RANK_MAX];
    if (!is_writable(a) || sq_py_lengths(shape, "shape", a->info.rank, lengths) < 0)
        return NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_py_work work;
    sq_py_work_begin(&work, a->owner, SQ_PY_EXCLUSIVE);
    int status = work.nested ? -1 : squall_array_resize(a->array, lengths, &err);
    if (!status)
        a->info = squall_array_info(a->array);
    sq_py_work_end(&work);
    if (work.nested)
        return PyErr_Format(PyExc_RuntimeError, "array %s is in use by this very thread: a signal handler cannot resize it", a->info.name);
    if (status)
        return sq_py_raise(&err, a->owner->path);
    Py_RETURN_NONE;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------------------- */

/* item: None, or a tuple of `rank` lengths */
int sq_py_lengths(PyObject *item, const char *what, unsigned rank, uint64_t *ret)
{
    if (!PyTuple_Check(item) || PyTuple_Size(item) != (Py_ssize_t)rank) {
        PyErr_Format(PyExc_ValueError, "%s: %u lengths are wanted, one a dimension; got %R", what, rank, item);
        return -1;
    }
    for (unsigned d = 0; d < rank; d++) {
        long long length = PyLong_AsLongLong(PyTuple_GetItem(item, d));
        if (length == -1 && PyErr_Occurred())
            return -1;
        if (length < 0) {
            PyErr_Format(PyExc_ValueError, "%s: a length cannot be negative; got %R", what, item);
            return -1;
        }
        ret[d] = (uint64_t)length;
    }
    return 0;
}

/* Declares err and status; the call is made with ctx, without the GIL. path is dropped where there is no context. */
#define NODE_WORK(call)                                                                                                                    \
    struct sq_py_context *shared = sq_py_context_take();                                                                                   \
    if (!shared) {                                                                                                                         \
        Py_DECREF(path);                                                                                                                   \
        return NULL;                                                                                                                       \
    }                                                                                                                                      \
    squall_context *ctx = sq_py_context_of(shared);                                                                                        \
    struct squall_error err = SQUALL_ERROR_INIT;                                                                                           \
    struct sq_py_work work;                                                                                                                \
    sq_py_work_begin(&work, NULL, SQ_PY_SHARED);                                                                                           \
    int status = (call);                                                                                                                   \
    sq_py_work_end(&work);                                                                                                                 \
    sq_py_context_drop(shared)

static PyObject *finish(PyObject *path, int status, const struct squall_error *err)
{
    PyObject *text = PyUnicode_DecodeFSDefault(PyBytes_AsString(path));
    if (status && text)
        sq_py_raise(err, text);
    Py_XDECREF(text);
    Py_DECREF(path);
    if (status || PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* create_group(path, name, zarr_format, attributes, consolidated, overwrite, durability) */
PyObject *sq_py_create_group(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *path;
    const char *name;
    int durability;
    struct squall_group_spec spec = {0};
    if (!PyArg_ParseTuple(args, "O&sizppi", PyUnicode_FSConverter, &path, &name, &spec.zarr_format, &spec.attributes, &spec.consolidated,
                          &spec.overwrite, &durability))
        return NULL;
    const struct squall_store_options options = {.durability = (enum squall_durability)durability};
    const char *store = PyBytes_AsString(path);
    NODE_WORK(squall_group_create(ctx, store, name, &spec, &options, &err));
    return finish(path, status, &err);
}

/* consolidate(path, name) */
PyObject *sq_py_consolidate(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *path;
    const char *name;
    if (!PyArg_ParseTuple(args, "O&s", PyUnicode_FSConverter, &path, &name))
        return NULL;
    const char *store = PyBytes_AsString(path);
    NODE_WORK(squall_group_consolidate(ctx, store, name, NULL, &err));
    return finish(path, status, &err);
}

/* Names of dimensions: a tuple of str and None → UTF-8 that belongs to them. */
static int dimension_names(PyObject *dims, unsigned rank, const char **ret)
{
    if (!PyTuple_Check(dims) || PyTuple_Size(dims) != (Py_ssize_t)rank) {
        PyErr_Format(PyExc_ValueError, "dims: %u names are wanted, one a dimension; got %R", rank, dims);
        return -1;
    }
    for (unsigned d = 0; d < rank; d++) {
        PyObject *name = PyTuple_GetItem(dims, d);
        ret[d] = name == Py_None ? "" : PyUnicode_AsUTF8AndSize(name, NULL);
        if (!ret[d])
            return -1;
    }
    return 0;
}

/* create_array(path, name, {zarr_format, type, shape, …}): every member of struct squall_array_spec, see _squall.pyi */
PyObject *sq_py_create_array(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *path, *shape, *chunks, *shards, *dims;
    const char *name;
    int durability, separator;
    uint64_t lengths[3][SQUALL_RANK_MAX];
    const char *names[SQUALL_RANK_MAX];
    struct squall_array_spec spec = {0};
    if (!PyArg_ParseTuple(args, "O&sisO!OOzOzzzzzpCpppi", PyUnicode_FSConverter, &path, &name, &spec.zarr_format, &spec.type, &PyTuple_Type,
                          &shape, &chunks, &shards, &spec.chunk_shapes, &dims, &spec.fill_value, &spec.attributes, &spec.codecs,
                          &spec.filters, &spec.index_codecs, &spec.index_at_start, &separator, &spec.v2_keys, &spec.column_major,
                          &spec.overwrite, &durability))
        return NULL;
    Py_ssize_t rank = PyTuple_Size(shape);
    spec.rank = (unsigned)rank;
    spec.separator = separator == ' ' ? 0 : (char)separator;
    spec.shape = lengths[0];
    spec.chunks = chunks == Py_None ? NULL : lengths[1];
    spec.shards = shards == Py_None ? NULL : lengths[2];
    spec.dims = dims == Py_None ? NULL : names;
    if (rank > SQUALL_RANK_MAX)
        PyErr_Format(PyExc_ValueError, "%zd dimensions, but at most %d are possible", rank, SQUALL_RANK_MAX);
    if (rank > SQUALL_RANK_MAX || sq_py_lengths(shape, "shape", spec.rank, lengths[0]) < 0 ||
        (spec.chunks && sq_py_lengths(chunks, "chunks", spec.rank, lengths[1]) < 0) ||
        (spec.shards && sq_py_lengths(shards, "shards", spec.rank, lengths[2]) < 0) ||
        (spec.dims && dimension_names(dims, spec.rank, names) < 0)) {
        Py_DECREF(path);
        return NULL;
    }
    const struct squall_store_options options = {.durability = (enum squall_durability)durability};
    const char *store = PyBytes_AsString(path);
    NODE_WORK(squall_array_create(ctx, store, name, &spec, &options, &err));
    return finish(path, status, &err);
}

/* delete(path, name), set_attributes(path, name, attributes) */
static PyObject *change_node(PyObject *path, const char *name, const char *attributes)
{
    const char *store = PyBytes_AsString(path);
    NODE_WORK(attributes ? squall_node_set_attributes(ctx, store, name, attributes, NULL, &err)
                         : squall_node_delete(ctx, store, name, NULL, &err));
    return finish(path, status, &err);
}

PyObject *sq_py_delete_node(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *path;
    const char *name;
    return PyArg_ParseTuple(args, "O&s", PyUnicode_FSConverter, &path, &name) ? change_node(path, name, NULL) : NULL;
}

PyObject *sq_py_set_attributes(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *path;
    const char *name, *attributes;
    return PyArg_ParseTuple(args, "O&ss", PyUnicode_FSConverter, &path, &name, &attributes) ? change_node(path, name, attributes) : NULL;
}
