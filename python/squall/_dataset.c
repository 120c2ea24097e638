/* _squall.Dataset: a path, open. */
#include "_squall.h"
#include <stddef.h>
#include <structmember.h>
#include <sys/stat.h>

static void dealloc(PyObject *self)
{
    struct sq_py_dataset *ds = (struct sq_py_dataset *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_ClearWeakRefs(self);
    squall_dataset_close(ds->dataset);
    sq_py_context_drop(ds->shared);
    Py_XDECREF(ds->path);
    Py_XDECREF(ds->changed);
    Py_XDECREF(ds->many);
    Py_XDECREF(ds->identity);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

struct sq_py_dataset *sq_py_dataset_alloc(PyTypeObject *type, PyObject *path)
{
    struct sq_py_context *shared = sq_py_context_take();
    struct sq_py_dataset *ds = shared ? (struct sq_py_dataset *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0) : NULL;
    if (ds) {
        Py_INCREF(path);
        ds->path = path;
        ds->shared = shared;
        pthread_rwlock_init(&ds->own_lock.lock, NULL);
        ds->own_lock.process = sq_py_process;
        ds->context = sq_py_context_of(shared);
    } else {
        sq_py_context_drop(shared);
    }
    return ds;
}

/* What a file is known by, and where: IDENTITY_BYTES. Of folders, and what is not there, zeros. */
enum { IDENTITY_BYTES = 3 * sizeof(uint64_t) };

static void identify(const char *path, char *ret)
{
    struct stat state;
    uint64_t known[3] = {0};
    if (stat(path, &state) == 0 && S_ISREG(state.st_mode)) {
        known[0] = (uint64_t)state.st_ino;
        known[1] = (uint64_t)state.st_size;
        known[2] = (uint64_t)state.st_mtim.tv_sec * 1000000000u + (uint64_t)state.st_mtim.tv_nsec;
    }
    memcpy(ret, known, IDENTITY_BYTES);
}

PyObject *sq_py_identities(PyObject *paths)
{
    const Py_ssize_t count = PyTuple_Size(paths);
    PyObject *all = PyBytes_FromStringAndSize(NULL, count * IDENTITY_BYTES);
    for (Py_ssize_t i = 0; all && i < count; i++) {
        char *name;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(paths, i), &name, NULL) < 0)
            Py_CLEAR(all);
        else
            identify(name, PyBytes_AsString(all) + i * IDENTITY_BYTES);
    }
    return all;
}

/* path: bytes in the file system's encoding; options: NULL for reading */
static int open_path(struct sq_py_dataset *ds, const char *path, const struct squall_store_options *options)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_py_work work;
    char identity[IDENTITY_BYTES];
    sq_py_work_begin(&work, NULL, SQ_PY_SHARED);
    identify(path, identity); /* before it is opened: what is another file by then will be found to be one */
    int status = options ? squall_store_open(ds->context, path, options, &ds->dataset, &err)
                         : squall_dataset_open(ds->context, path, &ds->dataset, &err);
    sq_py_work_end(&work);
    ds->identity = PyBytes_FromStringAndSize(identity, IDENTITY_BYTES);
    ds->writable = options != NULL;
    if (options)
        ds->options = *options;
    if (status)
        sq_py_raise(&err, ds->path);
    return status || PyErr_Occurred() ? -1 : 0;
}

static PyObject *new_dataset(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"path", "write", "durability", "write_empty_chunks", "aligned_only", NULL};
    PyObject *path;
    int write = 0, durability = 0;
    struct squall_store_options options = {0};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|pipp", names, &path, &write, &durability, &options.write_empty_chunks,
                                     &options.aligned_only))
        return NULL;
    options.durability = (enum squall_durability)durability;
    PyObject *encoded = PyUnicode_EncodeFSDefault(path);
    struct sq_py_dataset *ds = encoded ? sq_py_dataset_alloc(type, path) : NULL;
    char *bytes;
    if (ds && (PyBytes_AsStringAndSize(encoded, &bytes, NULL) < 0 || open_path(ds, bytes, write ? &options : NULL) < 0)) {
        Py_DECREF((PyObject *)ds);
        ds = NULL;
    }
    Py_XDECREF(encoded);
    return (PyObject *)ds;
}

/* paths: tuple of bytes */
static int open_files(struct sq_py_dataset *ds, PyObject *paths, const struct squall_many_options *options)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_py_work work;
    const Py_ssize_t count = PyTuple_Size(paths);
    const char **names = PyMem_Malloc((size_t)(count + 1) * sizeof *names);
    if (!names) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        char *name;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(paths, i), &name, NULL) < 0) {
            PyMem_Free(names);
            return -1;
        }
        names[i] = name;
    }
    ds->identity = PyBytes_FromStringAndSize(NULL, count * IDENTITY_BYTES);
    char *identities = ds->identity ? PyBytes_AsString(ds->identity) : NULL;
    if (!identities) {
        PyMem_Free(names);
        return -1;
    }
    sq_py_work_begin(&work, NULL, SQ_PY_SHARED);
    for (Py_ssize_t i = 0; i < count; i++)
        identify(names[i], identities + i * IDENTITY_BYTES);
    int status = squall_dataset_open_many(ds->context, names, (size_t)count, options, &ds->dataset, &err);
    sq_py_work_end(&work);
    PyMem_Free(names);
    if (status)
        sq_py_raise(&err, ds->path);
    return status || PyErr_Occurred() ? -1 : 0;
}

PyObject *sq_py_open_many(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *path, *paths;
    int order, drift;
    struct squall_many_options options = {0};
    if (!PyArg_ParseTuple(args, "UO!zii", &path, &PyTuple_Type, &paths, &options.concat_dim, &order, &drift))
        return NULL;
    options.order = (enum squall_order)order;
    options.drift = (enum squall_drift)drift;
    struct sq_py_dataset *ds = sq_py_dataset_alloc(sq_py_dataset_type, path);
    if (ds && open_files(ds, paths, &options) < 0) {
        Py_DECREF((PyObject *)ds);
        ds = NULL;
    }
    if (ds)
        ds->many = Py_BuildValue("(Ozii)", paths, options.concat_dim, order, drift);
    return (PyObject *)ds;
}

static PyObject *get_names(PyObject *self, void *unused)
{
    (void)unused;
    const squall_dataset *ds = ((struct sq_py_dataset *)self)->dataset;
    size_t count = squall_dataset_info(ds).array_count;
    PyObject *names = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; names && i < count; i++) {
        const char *text = squall_array_info(squall_dataset_array_at(ds, i)).name;
        PyObject *name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
        if (!name || PyTuple_SetItem(names, (Py_ssize_t)i, name) < 0)
            Py_CLEAR(names);
    }
    return names;
}

PyObject *sq_py_text(const char *text)
{
    if (!text)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

static PyObject *get_groups(PyObject *self, void *unused)
{
    (void)unused;
    const squall_dataset *ds = ((struct sq_py_dataset *)self)->dataset;
    size_t count = squall_dataset_info(ds).group_count;
    PyObject *groups = PyDict_New();
    for (size_t i = 0; groups && i < count; i++) {
        struct squall_group_info info = squall_dataset_group(ds, i);
        PyObject *name = sq_py_text(info.name);
        PyObject *attributes = Py_BuildValue("(NN)", sq_py_text(info.attributes), sq_py_text(info.attribute_types));
        if (!name || !attributes || PyDict_SetItem(groups, name, attributes) < 0)
            Py_CLEAR(groups);
        Py_XDECREF(name);
        Py_XDECREF(attributes);
    }
    return groups;
}

static PyObject *get_problems(PyObject *self, void *unused)
{
    (void)unused;
    const squall_dataset *ds = ((struct sq_py_dataset *)self)->dataset;
    size_t count = squall_dataset_info(ds).problem_count;
    PyObject *lines = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; lines && i < count; i++) {
        const char *text = squall_dataset_problem(ds, i);
        PyObject *line = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
        if (!line || PyTuple_SetItem(lines, (Py_ssize_t)i, line) < 0)
            Py_CLEAR(lines);
    }
    return lines;
}

static PyObject *get_format(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(squall_dataset_info(((struct sq_py_dataset *)self)->dataset).format);
}

static PyObject *get_attributes(PyObject *self, void *unused)
{
    (void)unused;
    const struct squall_dataset_info info = squall_dataset_info(((struct sq_py_dataset *)self)->dataset);
    return Py_BuildValue("(NN)", sq_py_text(info.attributes), sq_py_text(info.attribute_types));
}

static PyObject *get_path(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *path = ((struct sq_py_dataset *)self)->path;
    Py_INCREF(path);
    return path;
}

static PyObject *get_is_array(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(squall_dataset_info(((struct sq_py_dataset *)self)->dataset).is_array);
}

static PyMemberDef offsets[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct sq_py_dataset, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* What makes one like it: Dataset(path, *options). */
static PyObject *get_options(PyObject *self, void *unused)
{
    (void)unused;
    const struct sq_py_dataset *ds = (struct sq_py_dataset *)self;
    return Py_BuildValue("(NiNN)", PyBool_FromLong(ds->writable), (int)ds->options.durability,
                         PyBool_FromLong(ds->options.write_empty_chunks), PyBool_FromLong(ds->options.aligned_only));
}

static PyObject *get_many(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *many = ((struct sq_py_dataset *)self)->many;
    many = many ? many : Py_None;
    Py_INCREF(many);
    return many;
}

static PyObject *get_identity(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *identity = ((struct sq_py_dataset *)self)->identity;
    identity = identity ? identity : Py_None;
    Py_INCREF(identity);
    return identity;
}

static PyObject *get_durability(PyObject *self, void *unused)
{
    static const char *const NAMES[] = {"none", "data", "full"};
    (void)unused;
    return PyUnicode_FromString(NAMES[((struct sq_py_dataset *)self)->options.durability]);
}

static PyObject *get_changed(PyObject *self, void *unused)
{
    (void)unused;
    struct sq_py_dataset *ds = (struct sq_py_dataset *)self;
    if (!ds->changed)
        ds->changed = PyDict_New();
    Py_XINCREF(ds->changed);
    return ds->changed;
}

static PyObject *get_writable(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct sq_py_dataset *)self)->writable);
}

static PyGetSetDef members[] = {
    {"path", get_path, NULL, "as it was given", NULL},
    {"format", get_format, NULL, "\"zarr v3\", \"grib\", …", NULL},
    {"names", get_names, NULL, "of the arrays, as paths within the dataset", NULL},
    {"groups", get_groups, NULL, "groups below the root: name → attributes, as the root's", NULL},
    {"attributes", get_attributes, NULL, "(JSON, their types as JSON or None)", NULL},
    {"problems", get_problems, NULL, "what could not be read, a line each", NULL},
    {"options", get_options, NULL, "Dataset(path, *options) opens it again", NULL},
    {"many", get_many, NULL, "(paths, concat_dim, order, drift) of many files; None: one path", NULL},
    {"identity", get_identity, NULL, "what its files were when it was opened, some bytes each; zeros of folders", NULL},
    {"durability", get_durability, NULL, "\"none\", \"data\" or \"full\"", NULL},
    {"changed", get_changed, NULL, "names of nodes whose attributes were changed since → JSON", NULL},
    {"writable", get_writable, NULL, "was it opened for writing?", NULL},
    {"is_array", get_is_array, NULL, "is the path one array, not a group of them?", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)(uintptr_t)new_dataset},
    {Py_tp_dealloc, (void *)(uintptr_t)dealloc},
    {Py_tp_getset, members},
    {Py_tp_members, offsets},
    {Py_tp_doc, "Dataset(path): what is at a path, open for reading."},
    {0, NULL},
};

PyType_Spec sq_py_dataset_spec = {
    .name = "squall._squall.Dataset",
    .basicsize = sizeof(struct sq_py_dataset),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
