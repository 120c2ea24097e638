/*
 * What the files of the extension share. They are compiled against CPython's limited API (3.11) and know numpy only as Python does:
 * results are made by calling numpy.empty and written through the buffer protocol. Glue: all work is the library's.
 */
#ifndef SQ_PYTHON_SQUALL_H
#define SQ_PYTHON_SQUALL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
/* after Python.h, which wants to be first */
#include "squall/squall.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Objects that are looked up once; they live as long as the process. */
struct sq_py_objects {
    PyObject *numpy_empty, *numpy_ndarray, *numpy_bool;
    PyObject *error_of, *dtype_of, *reader_of, *put_structures; /* of squall._errors and squall._types */
    PyObject *values_for;                                       /* of squall._values */
    PyObject *read_only_error;
    PyObject *read_advanced, *write_advanced; /* names of methods: "_read_advanced", … */
    PyObject *empty_tuple;
};
extern struct sq_py_objects sq_py;

/* Limits for datasets that are opened from now on; 0: the library's own. */
struct sq_py_defaults {
    unsigned threads;
    uint64_t memory_bytes;
    PyObject *cache_folder; /* bytes; NULL: none. A new object whenever it changes */
};
extern struct sq_py_defaults sq_py_defaults;

/* Readers and writers share it; who changes shapes, or reads to write, has it alone. */
struct sq_py_lock {
    pthread_rwlock_t lock;
    unsigned process; /* it is void in a child */
};

/* _squall.Dataset: an open path with the context under which it was opened. */
struct sq_py_dataset {
    PyObject_HEAD struct sq_py_context *shared;
    squall_context *context; /* shared's */
    squall_dataset *dataset;
    bool writable;
    struct squall_store_options options; /* where it is */
    struct sq_py_lock own_lock;          /* where it is only read; all that are written to share one */
    PyObject *path;                      /* str, as it was given */
    PyObject *changed;                   /* dict: names of nodes → their attributes, JSON, where they were changed since */
    PyObject *many;                      /* tuple: what it was opened with, where it is many files; else NULL */
    PyObject *identity;                  /* bytes: what its files were when it was opened; NULL: no file */
    PyObject *weak_references;
};

/* _squall.Array: the base of squall.Array. Keeps its dataset alive. */
struct sq_py_array {
    PyObject_HEAD struct sq_py_dataset *owner;
    squall_array *array;
    struct squall_array_info info;
    PyObject *dtype, *sequence_dtype; /* numpy.dtype, looked up at the first use; else NULL */
    PyObject *reader;                 /* the same: what makes an element of bytes that hold parts of no fixed size */
};

extern unsigned sq_py_process; /* another one in a child than in its parent */
extern PyType_Spec sq_py_dataset_spec, sq_py_array_spec, sq_py_memory_spec, sq_py_work_spec, sq_py_grib_spec;
extern PyTypeObject *sq_py_dataset_type, *sq_py_memory_type;

/* What each of the paths (bytes) is known by; NULL with the exception set. */
PyObject *sq_py_identities(PyObject *paths);
/* With nothing open yet; NULL with the exception set. */
struct sq_py_dataset *sq_py_dataset_alloc(PyTypeObject *type, PyObject *path);

/* ---- contexts and memory ------------------------------------------------------------------------------------------------------------ */

/* Of the settings that hold now; NULL with the exception set. sq_py_context_drop. */
struct sq_py_context *sq_py_context_take(void);
void sq_py_context_drop(struct sq_py_context *shared); /* NULL is accepted */
/* Where this process is a Dask worker, its threads are the slots. Other workers have the machine's other CPUs. 0, or -1 with the exception set. */
int sq_py_limit_to_workers(void);
squall_context *sq_py_context_of(const struct sq_py_context *shared);
/* A numpy array, uninitialised, of size_bytes; a large one lies in the context's memory. */
PyObject *sq_py_result_new(struct sq_py_context *shared, PyObject *shape, PyObject *dtype, size_t size_bytes);

/* ---- errors and texts ---------------------------------------------------------------------------------------------------------------- */

/* Sets the exception and returns NULL. */
PyObject *sq_py_raise(const struct squall_error *err, PyObject *path);
/* str, of any bytes; None for NULL. NULL with the exception set. */
PyObject *sq_py_text(const char *text);

/* ---- work without the GIL ---------------------------------------------------------------------------------------------------------- */

/*
 * Between begin and end the GIL is not held. sq_py_cancelled, the callback of every context, takes it now and then on the thread that
 * called, to see whether a signal wants to end the work; the exception that its handler raised is then set when the work is done.
 */
enum sq_py_use { SQ_PY_SHARED, SQ_PY_EXCLUSIVE };
struct sq_py_work {
    PyThreadState *state;
    struct sq_py_dataset *dataset; /* that is locked meanwhile; NULL: none */
    bool nested;                   /* this thread had it locked already */
    int64_t next_look_ns;
    struct sq_py_work *outer; /* a signal handler may read arrays, too */
};
void sq_py_work_begin(struct sq_py_work *work, struct sq_py_dataset *dataset, enum sq_py_use use); /* dataset may be NULL */
void sq_py_work_end(struct sq_py_work *work);
int sq_py_cancelled(void *unused);

/* ---- keys -------------------------------------------------------------------------------------------------------------------------- */

/* A basic selection: a box, what of it runs backwards, and which dimensions are dropped for the result. */
struct sq_py_box {
    struct squall_selection selection;
    bool backwards[SQUALL_RANK_MAX];
    bool dropped[SQUALL_RANK_MAX]; /* by an integer */
    unsigned rank, result_rank;
    uint64_t result_shape[SQUALL_RANK_MAX];
    bool scalar; /* integers for all dimensions, and no Ellipsis: the result is a numpy scalar */
};

enum sq_py_key { SQ_PY_KEY_FAILED = -1, SQ_PY_KEY_BASIC, SQ_PY_KEY_ADVANCED };

/* key as in a[key]. ADVANCED: there are arrays, lists or masks in it, box is undefined. FAILED: the exception is set. */
enum sq_py_key sq_py_box_parse(PyObject *key, unsigned rank, const uint64_t *shape, struct sq_py_box *ret);

/* ---- reading ----------------------------------------------------------------------------------------------------------------------- */

/* A new numpy array, or scalar, of the box's shape. */
PyObject *sq_py_read_new(struct sq_py_array *a, const struct sq_py_box *box);
/* Into a buffer of the box's result shape; out's type was checked by the caller. 0, or -1 with the exception set. */
int sq_py_read_into(struct sq_py_array *a, const struct sq_py_box *box, PyObject *out);
PyObject *sq_py_read_boxes(PyObject *self, PyObject *args); /* see _squall.pyi */
bool sq_py_holds_objects(const struct sq_py_array *a);      /* texts or bytes of variable length */
PyObject *sq_py_shape(const struct sq_py_box *box);         /* of the result, a tuple */

/* ---- writing ----------------------------------------------------------------------------------------------------------------------- */

/* Any value, broadcast. 0, or -1 with the exception set. */
int sq_py_write(struct sq_py_array *a, const struct sq_py_box *box, PyObject *value);
/* Methods and functions: see _squall.pyi */
PyObject *sq_py_update(PyObject *self, PyObject *args);
PyObject *sq_py_resize(PyObject *self, PyObject *shape);
PyObject *sq_py_open_many(PyObject *module, PyObject *args);
PyObject *sq_py_create_group(PyObject *module, PyObject *args);
PyObject *sq_py_create_array(PyObject *module, PyObject *args);
PyObject *sq_py_consolidate(PyObject *module, PyObject *args);
PyObject *sq_py_create_netcdf(PyObject *module, PyObject *args);
PyObject *sq_py_delete_node(PyObject *module, PyObject *args);
PyObject *sq_py_set_attributes(PyObject *module, PyObject *args);
/* A tuple of `rank` lengths. 0, or -1 with the exception set. */
int sq_py_lengths(PyObject *item, const char *what, unsigned rank, uint64_t *ret);

/* ---- for zarr-python --------------------------------------------------------------------------------------------------------------- */

/* _read_batch(items, out) of squall.Array and dataset_from_document(folder, version, document) of the module: see _squall.pyi */
PyObject *sq_py_read_batch(PyObject *self, PyObject *args);
PyObject *sq_py_write_batch(PyObject *self, PyObject *args);
PyObject *sq_py_dataset_from_document(PyObject *module, PyObject *args);
/* Borrowed; NULL with the exception set. */
PyObject *sq_py_array_dtype(struct sq_py_array *a);
PyObject *sq_py_sequence_dtype(struct sq_py_array *a); /* of what a sequence holds, where an element is one */

#endif
