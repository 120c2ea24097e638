/* Files that squall_netcdf_create makes: what Python says of them as the C interface wants it. */
#include "_squall.h"

/* Texts and lists that the spec points at; all PyMem_Free. */
struct parts {
    struct squall_netcdf_dimension *dimensions;
    struct squall_netcdf_variable *variables;
    const char **dims; /* of all variables, one behind the other */
};

static int take_dimensions(PyObject *list, struct parts *p, struct squall_netcdf_spec *spec)
{
    spec->dimension_count = (size_t)PyTuple_Size(list);
    for (size_t i = 0; i < spec->dimension_count; i++) {
        struct squall_netcdf_dimension *d = &p->dimensions[i];
        unsigned long long length;
        PyObject *one = PyTuple_GetItem(list, (Py_ssize_t)i);
        if (!PyTuple_Check(one) || !PyArg_ParseTuple(one, "sKp", &d->name, &length, &d->is_record))
            return -1;
        d->length = length;
    }
    return 0;
}

static int take_variables(PyObject *list, struct parts *p, struct squall_netcdf_spec *spec)
{
    const char **next = p->dims;
    spec->variable_count = (size_t)PyTuple_Size(list);
    for (size_t i = 0; i < spec->variable_count; i++) {
        struct squall_netcdf_variable *v = &p->variables[i];
        PyObject *one = PyTuple_GetItem(list, (Py_ssize_t)i), *dims;
        if (!PyTuple_Check(one) ||
            !PyArg_ParseTuple(one, "ssO!zz", &v->name, &v->type, &PyTuple_Type, &dims, &v->attributes, &v->attribute_types))
            return -1;
        v->rank = (unsigned)PyTuple_Size(dims);
        v->dims = next;
        for (unsigned d = 0; d < v->rank; d++)
            if (!(*next++ = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(dims, d), NULL)))
                return -1;
    }
    return 0;
}

/* How many names the variables' dimensions are together; -1: no such list. */
static Py_ssize_t count_dims(PyObject *variables)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(variables); i++) {
        PyObject *one = PyTuple_GetItem(variables, i);
        PyObject *dims = PyTuple_Check(one) && PyTuple_Size(one) > 2 ? PyTuple_GetItem(one, 2) : NULL;
        if (!dims || !PyTuple_Check(dims)) {
            PyErr_SetString(PyExc_TypeError, "a variable is (name, type, dimensions, attributes, their types)");
            return -1;
        }
        count += PyTuple_Size(dims);
    }
    return count;
}

static PyObject *create(PyObject *path, const struct squall_netcdf_spec *spec)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    const char *bytes = PyBytes_AsString(path);
    int status = squall_netcdf_create(bytes, spec, &err);
    if (!status)
        Py_RETURN_NONE;
    PyObject *text = PyUnicode_DecodeFSDefault(bytes);
    sq_py_raise(&err, text);
    Py_XDECREF(text);
    return NULL;
}

/* create_netcdf(path, dimensions, variables, attributes, attribute_types), see _squall.pyi */
PyObject *sq_py_create_netcdf(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *path, *dimensions, *variables, *done = NULL;
    struct squall_netcdf_spec spec = {0};
    struct parts p = {0};
    if (!PyArg_ParseTuple(args, "O&O!O!zz", PyUnicode_FSConverter, &path, &PyTuple_Type, &dimensions, &PyTuple_Type, &variables,
                          &spec.attributes, &spec.attribute_types))
        return NULL;
    const Py_ssize_t dims = count_dims(variables);
    if (dims >= 0) {
        p.dimensions = PyMem_Calloc((size_t)PyTuple_Size(dimensions) + 1, sizeof *p.dimensions);
        p.variables = PyMem_Calloc((size_t)PyTuple_Size(variables) + 1, sizeof *p.variables);
        p.dims = PyMem_Calloc((size_t)dims + 1, sizeof *p.dims);
        if (!p.dimensions || !p.variables || !p.dims)
            PyErr_NoMemory();
        else if (!take_dimensions(dimensions, &p, &spec) && !take_variables(variables, &p, &spec)) {
            spec.dimensions = p.dimensions;
            spec.variables = p.variables;
            done = create(path, &spec);
        }
    }
    PyMem_Free(p.dimensions);
    PyMem_Free(p.variables);
    PyMem_Free(p.dims);
    Py_DECREF(path);
    return done;
}
