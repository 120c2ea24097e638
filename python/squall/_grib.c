/*
 * _squall.GribFiles: the fields of GRIB files for whoever puts them in order (_cfgrib.py): columns with a row for each field, tables of what they have
 * in common, and a dataset made of an arrangement.
 */
#include "_squall.h"
/* below the public interface: */
#include "cube/duplicates.h"
#include "cube/grib_fields.h"
#include "cube/grib_tables.h"
#include "engine/context.h"

struct files {
    PyObject_HEAD struct sq_py_context *shared;
    PyObject *paths, *identity;
    struct sq_grib_index index; /* empty once a dataset is made of it */
};

static void dealloc(PyObject *self)
{
    struct files *f = (struct files *)self;
    PyTypeObject *type = Py_TYPE(self);
    sq_grib_index_done(&f->index);
    sq_py_context_drop(f->shared);
    Py_XDECREF(f->paths);
    Py_XDECREF(f->identity);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int scan(struct files *f)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_py_work work;
    const Py_ssize_t count = PyTuple_Size(f->paths);
    const char **names = PyMem_Malloc((size_t)(count + 1) * sizeof *names);
    if (!names) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        names[i] = PyBytes_AsString(PyTuple_GetItem(f->paths, i));
    const squall_context *ctx = sq_py_context_of(f->shared);
    sq_py_work_begin(&work, NULL, SQ_PY_SHARED);
    int status = sq_grib_index_build(names, (size_t)count, ctx->threads, ctx->cancelled, ctx->user, &f->index, &err);
    sq_py_work_end(&work);
    PyMem_Free(names);
    if (status)
        sq_py_raise(&err, Py_None);
    return status || PyErr_Occurred() ? -1 : 0;
}

static PyObject *new_files(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"paths", NULL};
    PyObject *paths;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!", names, &PyTuple_Type, &paths))
        return NULL;
    PyObject *identity = sq_py_identities(paths); /* before they are opened, as of datasets */
    struct files *f = identity ? (struct files *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0) : NULL;
    if (!f) {
        Py_XDECREF(identity);
        return NULL;
    }
    Py_INCREF(paths);
    f->paths = paths;
    f->identity = identity;
    f->shared = sq_py_context_take();
    if (!f->shared || scan(f) < 0) {
        Py_DECREF((PyObject *)f);
        return NULL;
    }
    return (PyObject *)f;
}

/* A row of the columns; _cfgrib.py knows the layout. */
struct row {
    uint32_t product, grid, file;
    int32_t number;
    int64_t reference_time_s, step_begin_s, step_end_s;
};

static PyObject *get_columns(PyObject *self, void *unused)
{
    (void)unused;
    const struct sq_grib_index *index = &((struct files *)self)->index;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(index->field_count * sizeof(struct row)));
    char *next = bytes ? PyBytes_AsString(bytes) : NULL;
    for (size_t i = 0; next && i < index->field_count; i++, next += sizeof(struct row)) {
        const struct sq_grib_field *f = &index->fields[i];
        const struct row row = {f->product,         f->grid, f->file, f->times.number, f->times.reference_time_s, f->times.step_begin_s,
                                f->times.step_end_s};
        memcpy(next, &row, sizeof row);
    }
    return bytes;
}

static PyObject *get_tables(PyObject *self, void *unused)
{
    (void)unused;
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_text text = SQ_TEXT_INIT;
    PyObject *found = NULL;
    if (sq_grib_tables(&((struct files *)self)->index, &text, &err))
        sq_py_raise(&err, Py_None);
    else
        found = PyUnicode_DecodeUTF8(sq_text_string(&text), (Py_ssize_t)text.length, "surrogateescape");
    sq_text_done(&text);
    return found;
}

static PyObject *json_text(const struct sq_json *value, struct squall_error *err)
{
    if (!value)
        Py_RETURN_NONE;
    struct sq_text text = SQ_TEXT_INIT;
    PyObject *found = NULL;
    if (sq_json_write(value, false, &text, err))
        sq_py_raise(err, Py_None);
    else
        found = PyUnicode_DecodeUTF8(sq_text_string(&text), (Py_ssize_t)text.length, "replace");
    sq_text_done(&text);
    return found;
}

static PyObject *doubles(const double *values, size_t count)
{
    if (!values)
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)values, (Py_ssize_t)(count * sizeof *values));
}

static PyObject *axes_of(const struct sq_grib_axes *axes, uint64_t points, struct squall_error *err)
{
    PyObject *list = PyTuple_New((Py_ssize_t)axes->count);
    for (unsigned i = 0; list && i < axes->count; i++) {
        const struct sq_grib_axis *a = &axes->axis[i];
        PyObject *one = Py_BuildValue("(sNN)", a->name, doubles(a->values, a->length), json_text(a->attributes, err));
        if (!one || PyTuple_SetItem(list, (Py_ssize_t)i, one) < 0)
            Py_CLEAR(list);
    }
    return list ? Py_BuildValue("(NNNN)", list, doubles(axes->point_latitudes, points), doubles(axes->point_longitudes, points),
                                json_text(axes->grid_mapping, err))
                : NULL;
}

static PyObject *grid(PyObject *self, PyObject *number)
{
    const struct sq_grib_index *index = &((struct files *)self)->index;
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_grib_axes axes;
    size_t row = PyLong_AsSize_t(number);
    if (PyErr_Occurred())
        return NULL;
    if (row >= index->grid_count)
        return PyErr_Format(PyExc_IndexError, "grid %zu of %zu", row, index->grid_count);
    if (sq_grib_grid_axes(&index->grids[row], &axes, &err))
        return sq_py_raise(&err, Py_None);
    PyObject *found = axes_of(&axes, index->grids[row].point_count, &err);
    sq_grib_axes_done(&axes);
    return found;
}

/* False: out of memory. Pairs that cannot be read any more are not shown to be the same. */
static bool compare(const struct sq_grib_index *index, const uint32_t (*pairs)[2], size_t count, char *ret)
{
    struct squall_error unread = SQUALL_ERROR_INIT;
    struct sq_duplicates *reader = sq_duplicates_new(index);
    int status = reader ? 0 : SQUALL_ENOMEM;
    for (size_t i = 0; i < count && status != SQUALL_ENOMEM; i++) {
        bool alike = false;
        status = sq_duplicates_same(reader, pairs[i][0], pairs[i][1], &alike, &unread);
        ret[i] = status == 0 && alike;
    }
    sq_duplicates_free(reader);
    return status != SQUALL_ENOMEM;
}

static PyObject *same(PyObject *self, PyObject *pairs)
{
    const struct sq_grib_index *index = &((struct files *)self)->index;
    struct sq_py_work work;
    char *text;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(pairs, &text, &size) < 0)
        return NULL;
    const uint32_t(*rows)[2] = (const uint32_t(*)[2])(const void *)text;
    const size_t count = (size_t)size / sizeof *rows;
    for (size_t i = 0; i < count; i++)
        if (rows[i][0] >= index->field_count || rows[i][1] >= index->field_count)
            return PyErr_Format(PyExc_IndexError, "fields %u and %u of %zu", rows[i][0], rows[i][1], index->field_count);
    PyObject *found = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)count);
    if (!found)
        return NULL;
    sq_py_work_begin(&work, NULL, SQ_PY_SHARED);
    bool compared = compare(index, rows, count, PyBytes_AsString(found));
    sq_py_work_end(&work);
    if (!compared && !PyErr_Occurred())
        PyErr_NoMemory();
    if (PyErr_Occurred())
        Py_CLEAR(found);
    return found;
}

/* one: (name, lengths, dimensions, fields, grid, is_double) */
static int take_arrangement(PyObject *one, struct sq_grib_arrangement *ret)
{
    PyObject *shape, *dims;
    const char *fields;
    Py_ssize_t size;
    int is_double;
    if (!PyTuple_Check(one) || !PyArg_ParseTuple(one, "sO!O!y#Ip", &ret->name, &PyTuple_Type, &shape, &PyTuple_Type, &dims, &fields, &size,
                                                 &ret->grid, &is_double))
        return -1;
    const Py_ssize_t rank = PyTuple_Size(shape), all = PyTuple_Size(dims);
    if (all > SQUALL_RANK_MAX || all <= rank || all > rank + 2) {
        PyErr_SetString(PyExc_ValueError, "an arrangement has names for its own dimensions and the grid's");
        return -1;
    }
    ret->rank = (unsigned)rank;
    for (Py_ssize_t d = 0; d < rank; d++)
        ret->shape[d] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(shape, d));
    for (Py_ssize_t d = 0; d < all; d++)
        ret->dims[d] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(dims, d), NULL);
    ret->fields = (const int32_t *)(const void *)fields;
    ret->place_count = (size_t)size / sizeof *ret->fields;
    ret->type = is_double ? SQUALL_FLOAT64 : SQUALL_FLOAT32;
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *make_dataset(struct files *f, PyObject *path, const char *text, const struct sq_grib_arrangement *arrays, size_t count,
                              PyObject *many)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_py_dataset *ds = sq_py_dataset_alloc(sq_py_dataset_type, path);
    if (!ds)
        return NULL;
    if (sq_grib_fields_dataset(ds->context, text, &f->index, arrays, count, &ds->dataset, &err)) {
        sq_py_raise(&err, path);
        Py_DECREF((PyObject *)ds);
        return NULL;
    }
    Py_INCREF(f->identity);
    ds->identity = f->identity;
    Py_INCREF(many);
    ds->many = many;
    return (PyObject *)ds;
}

static PyObject *dataset(PyObject *self, PyObject *args)
{
    PyObject *path, *list, *many, *made = NULL;
    if (!PyArg_ParseTuple(args, "UO!O!", &path, &PyTuple_Type, &list, &PyTuple_Type, &many))
        return NULL;
    const Py_ssize_t count = PyTuple_Size(list);
    struct sq_grib_arrangement *arrays = PyMem_Calloc((size_t)count + 1, sizeof *arrays);
    PyObject *text = PyUnicode_EncodeFSDefault(path);
    if (!arrays)
        PyErr_NoMemory();
    bool failed = !arrays || !text;
    for (Py_ssize_t i = 0; i < count && !failed; i++)
        failed = take_arrangement(PyTuple_GetItem(list, i), &arrays[i]) < 0;
    if (!failed)
        made = make_dataset((struct files *)self, path, PyBytes_AsString(text), arrays, (size_t)count, many);
    PyMem_Free(arrays);
    Py_XDECREF(text);
    return made;
}

static PyMethodDef methods[] = {
    {"grid", grid, METH_O, "grid(row): see _squall.pyi"},
    {"same", same, METH_O, "same(pairs): see _squall.pyi"},
    {"dataset", dataset, METH_VARARGS, "dataset(path, arrangements, many): see _squall.pyi"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef members[] = {
    {"columns", get_columns, NULL, "a row for each field, bytes", NULL},
    {"tables", get_tables, NULL, "of products, grids and problems, JSON", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)(uintptr_t)new_files},
    {Py_tp_dealloc, (void *)(uintptr_t)dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, members},
    {Py_tp_doc, "GribFiles(paths): the fields of GRIB files."},
    {0, NULL},
};

PyType_Spec sq_py_grib_spec = {
    .name = "squall._squall.GribFiles",
    .basicsize = sizeof(struct files),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
