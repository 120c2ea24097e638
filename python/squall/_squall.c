/* The extension module: what is looked up once, limits, errors, and how work is done without the GIL. */
#include "_squall.h"
#include <time.h>

struct sq_py_objects sq_py;
struct sq_py_defaults sq_py_defaults;
PyTypeObject *sq_py_dataset_type, *sq_py_memory_type;

PyObject *sq_py_raise(const struct squall_error *err, PyObject *path)
{
    if (PyErr_Occurred()) /* a signal's, which is why the work was cancelled */
        return NULL;
    PyObject *message = PyUnicode_DecodeUTF8(err->message, (Py_ssize_t)strlen(err->message), "replace");
    PyObject *error = message ? PyObject_CallFunction(sq_py.error_of, "iiOO", (int)err->status, err->os_errno, message, path) : NULL;
    Py_XDECREF(message);
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

/* ---- work without the GIL ---------------------------------------------------------------------------------------------------------- */

enum { NS_BETWEEN_LOOKS = 50 * 1000 * 1000 };

static _Thread_local struct sq_py_work *current; /* of this thread, innermost */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

unsigned sq_py_process;

static void count_forks(void)
{
    sq_py_process++;
}

/* One array may be open for writing by several paths: all that are share a lock. */
static struct sq_py_lock *lock_of(struct sq_py_dataset *ds)
{
    static struct sq_py_lock of_writers = {.lock = PTHREAD_RWLOCK_INITIALIZER};
    return ds->writable ? &of_writers : &ds->own_lock;
}

/* Waits only without the GIL, so that who holds the lock can go on. */
static void lock(struct sq_py_lock *l, enum sq_py_use use)
{
    if (l->process != sq_py_process) {
        pthread_rwlock_init(&l->lock, NULL);
        l->process = sq_py_process;
    }
    (use == SQ_PY_SHARED ? pthread_rwlock_rdlock : pthread_rwlock_wrlock)(&l->lock);
}

void sq_py_work_begin(struct sq_py_work *work, struct sq_py_dataset *dataset, enum sq_py_use use)
{
    work->next_look_ns = now_ns() + NS_BETWEEN_LOOKS;
    work->dataset = dataset;
    work->nested = false;
    work->outer = current;
    for (const struct sq_py_work *w = current; w && dataset; w = w->outer)
        work->nested = work->nested || (w->dataset && lock_of(w->dataset) == lock_of(dataset));
    current = work;
    work->state = PyEval_SaveThread();
    if (dataset && !work->nested)
        lock(lock_of(dataset), use);
}

void sq_py_work_end(struct sq_py_work *work)
{
    if (work->dataset && !work->nested)
        pthread_rwlock_unlock(&lock_of(work->dataset)->lock);
    PyEval_RestoreThread(work->state);
    current = work->outer;
}

int sq_py_cancelled(void *unused)
{
    (void)unused;
    struct sq_py_work *work = current; /* helpers of the pool have none: the caller ends the work for all */
    if (!work || now_ns() < work->next_look_ns)
        return 0;
    PyEval_RestoreThread(work->state);
    int raised = PyErr_Occurred() || PyErr_CheckSignals();
    work->state = PyEval_SaveThread();
    work->next_look_ns = raised ? 0 : now_ns() + NS_BETWEEN_LOOKS;
    return raised;
}

/* ---- module ------------------------------------------------------------------------------------------------------------------------ */

static PyObject *set_defaults(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned threads;
    unsigned long long memory_bytes;
    PyObject *folder, *before = sq_py_defaults.cache_folder;
    if (!PyArg_ParseTuple(args, "IKO", &threads, &memory_bytes, &folder))
        return NULL;
    if (folder != Py_None && !PyBytes_Check(folder)) {
        PyErr_SetString(PyExc_TypeError, "the folder is given as bytes, or None");
        return NULL;
    }
    sq_py_defaults = (struct sq_py_defaults){threads, memory_bytes, folder == Py_None ? NULL : folder};
    Py_XINCREF(sq_py_defaults.cache_folder);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyObject *handles(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    const struct squall_handles h = squall_handles();
    return Py_BuildValue("nnKKK", (Py_ssize_t)h.open, (Py_ssize_t)h.limit, (unsigned long long)h.hits, (unsigned long long)h.opened,
                         (unsigned long long)h.evicted);
}

static PyObject *set_open_files(PyObject *module, PyObject *limit)
{
    (void)module;
    size_t wanted = PyLong_AsSize_t(limit);
    if (PyErr_Occurred())
        return NULL;
    return PyLong_FromSize_t(squall_handles_set_limit(wanted));
}

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(squall_version());
}

static PyMethodDef methods[] = {
    {"set_defaults", set_defaults, METH_VARARGS,
     "set_defaults(threads, memory_bytes, cache_folder): of datasets that are opened from now on; 0: automatic, None: no folder"},
    {"dataset_from_document", sq_py_dataset_from_document, METH_VARARGS, NULL},
    {"open_many", sq_py_open_many, METH_VARARGS, NULL},
    {"create_group", sq_py_create_group, METH_VARARGS, NULL},
    {"consolidate", sq_py_consolidate, METH_VARARGS, NULL},
    {"create_array", sq_py_create_array, METH_VARARGS, NULL},
    {"create_netcdf", sq_py_create_netcdf, METH_VARARGS, NULL},
    {"delete_node", sq_py_delete_node, METH_VARARGS, NULL},
    {"set_attributes", sq_py_set_attributes, METH_VARARGS, NULL},
    {"handles", handles, METH_NOARGS, "handles(): open, limit, hits, opened, evicted"},
    {"set_open_files", set_open_files, METH_O, "set_open_files(limit): most files that stay open; 0: automatic. Returns what holds"},
    {"version", version, METH_NOARGS, "version(): of the library"},
    {NULL, NULL, 0, NULL},
};

/* module.name, or NULL with the exception set */
static PyObject *look_up(const char *module, const char *name)
{
    PyObject *m = PyImport_ImportModule(module), *found = m ? PyObject_GetAttrString(m, name) : NULL;
    Py_XDECREF(m);
    return found;
}

static int find_objects(void)
{
    return (sq_py.numpy_empty = look_up("numpy", "empty")) && (sq_py.numpy_ndarray = look_up("numpy", "ndarray")) &&
                   (sq_py.numpy_bool = look_up("numpy", "bool_")) && (sq_py.error_of = look_up("squall._errors", "error_of")) &&
                   (sq_py.dtype_of = look_up("squall._types", "dtype_of")) && (sq_py.reader_of = look_up("squall._types", "reader_of")) &&
                   (sq_py.put_structures = look_up("squall._types", "put_structures")) &&
                   (sq_py.values_for = look_up("squall._values", "values_for")) &&
                   (sq_py.read_only_error = look_up("squall._errors", "ReadOnlyError")) &&
                   (sq_py.read_advanced = PyUnicode_InternFromString("_read_advanced")) &&
                   (sq_py.write_advanced = PyUnicode_InternFromString("_write_advanced")) && (sq_py.empty_tuple = PyTuple_New(0))
               ? 0
               : -1;
}

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **ret)
{
    PyObject *type = PyType_FromSpec(spec);
    if (!type)
        return -1;
    int status = PyModule_AddType(module, (PyTypeObject *)type);
    if (ret && !status)
        *ret = (PyTypeObject *)type; /* kept */
    else
        Py_DECREF(type);
    return status;
}

static int execute(PyObject *module)
{
    static bool counting;
    if (!counting)
        counting = pthread_atfork(NULL, NULL, count_forks) == 0;
    return find_objects() || add_type(module, &sq_py_dataset_spec, &sq_py_dataset_type) ||
                   add_type(module, &sq_py_memory_spec, &sq_py_memory_type) || add_type(module, &sq_py_array_spec, NULL) ||
                   add_type(module, &sq_py_work_spec, NULL) || add_type(module, &sq_py_grib_spec, NULL)
               ? -1
               : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)(uintptr_t)execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "squall._squall", .m_doc = "The library as the package sees it; private.",
    .m_methods = methods,  .m_slots = slots,
};

PyMODINIT_FUNC PyInit__squall(void);

PyMODINIT_FUNC PyInit__squall(void)
{
    return PyModuleDef_Init(&definition);
}
