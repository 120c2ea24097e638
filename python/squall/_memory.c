/*
 * Contexts, shared by all datasets that were opened under the same settings, and memory for large results, which comes from the context
 * and goes back to it: the next result of the same size then needs no fresh pages. The GIL guards the counts.
 */
#include "_squall.h"

/* Smaller results are numpy's own. */
enum { LARGE_BYTES = 1 << 20 };

struct sq_py_context {
    squall_context *context;
    size_t users;
    struct sq_py_defaults defaults; /* under which it was made */
};

static struct sq_py_context *current; /* a user itself */

squall_context *sq_py_context_of(const struct sq_py_context *shared)
{
    return shared->context;
}

void sq_py_context_drop(struct sq_py_context *shared)
{
    if (!shared || --shared->users > 0)
        return;
    squall_context_free(shared->context);
    Py_XDECREF(shared->defaults.cache_folder);
    PyMem_Free(shared);
}

int sq_py_limit_to_workers(void)
{
    static unsigned limit;
    PyObject *modules = PySys_GetObject("modules"), *dask = modules ? PyDict_GetItemString(modules, "distributed.worker") : NULL;
    if (!dask)
        return 0;
    PyObject *settings = PyImport_ImportModule("squall._settings");
    PyObject *found = settings ? PyObject_CallMethod(settings, "threads_of_workers", "O", dask) : NULL;
    unsigned long threads = found ? PyLong_AsUnsignedLong(found) : 0;
    Py_XDECREF(settings);
    Py_XDECREF(found);
    if (PyErr_Occurred())
        return -1;
    if (threads != limit) {
        limit = (unsigned)threads;
        squall_threads_set_limit(limit);
        sq_py_context_drop(current); /* made under another limit */
        current = NULL;
    }
    return 0;
}

struct sq_py_context *sq_py_context_take(void)
{
    const struct sq_py_defaults *d = &sq_py_defaults;
    if (sq_py_limit_to_workers() < 0)
        return NULL;
    if (current && current->defaults.threads == d->threads && current->defaults.memory_bytes == d->memory_bytes &&
        current->defaults.cache_folder == d->cache_folder) {
        current->users++;
        return current;
    }
    char *folder = NULL;
    if (d->cache_folder && PyBytes_AsStringAndSize(d->cache_folder, &folder, NULL) < 0)
        return NULL;
    const struct squall_context_options options = {
        .threads = d->threads, .memory_bytes = d->memory_bytes, .cancelled = sq_py_cancelled, .cache_folder = folder};
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_py_context *shared = PyMem_Calloc(1, sizeof *shared);
    if (!shared)
        return (struct sq_py_context *)PyErr_NoMemory();
    if (squall_context_new(&options, &shared->context, &err)) {
        PyMem_Free(shared);
        return (struct sq_py_context *)sq_py_raise(&err, NULL);
    }
    shared->defaults = *d;
    Py_XINCREF(shared->defaults.cache_folder);
    shared->users = 2;
    sq_py_context_drop(current);
    current = shared;
    return shared;
}

/* ---- memory of a result, for numpy to lie over ------------------------------------------------------------------------------------- */

struct memory {
    PyObject_HEAD struct sq_py_context *shared;
    void *data;
    size_t size_bytes;
};

static void dealloc(PyObject *self)
{
    struct memory *m = (struct memory *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (m->data)
        squall_memory_free(m->shared->context, m->data, m->size_bytes);
    sq_py_context_drop(m->shared);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    struct memory *m = (struct memory *)self;
    return PyBuffer_FillInfo(view, self, m->data, (Py_ssize_t)m->size_bytes, 0, flags);
}

static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)(uintptr_t)dealloc},
    {Py_bf_getbuffer, (void *)(uintptr_t)get_buffer},
    {0, NULL},
};

PyType_Spec sq_py_memory_spec = {
    .name = "squall._squall.Memory",
    .basicsize = sizeof(struct memory),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyObject *sq_py_result_new(struct sq_py_context *shared, PyObject *shape, PyObject *dtype, size_t size_bytes)
{
    if (size_bytes < LARGE_BYTES)
        return PyObject_CallFunctionObjArgs(sq_py.numpy_empty, shape, dtype, NULL);
    struct memory *m = (struct memory *)((allocfunc)PyType_GetSlot(sq_py_memory_type, Py_tp_alloc))(sq_py_memory_type, 0);
    if (!m)
        return NULL;
    shared->users++;
    m->shared = shared;
    m->size_bytes = size_bytes;
    m->data = squall_memory_alloc(shared->context, size_bytes);
    PyObject *result = m->data ? PyObject_CallFunctionObjArgs(sq_py.numpy_ndarray, shape, dtype, (PyObject *)m, NULL) : PyErr_NoMemory();
    Py_DECREF((PyObject *)m);
    return result;
}
