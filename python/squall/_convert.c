/*
 * _squall.Work: a conversion, a status or a check, done on the thread that calls its method while another thread asks how far it is, and
 * may end it. So no callback needs the GIL, and who waits in Python hears of a signal at once.
 */
#include "_squall.h"
#include <stdatomic.h>
#include <stdlib.h>

enum { NUMBER_COUNT = 4 }; /* units done, units, bytes in, bytes out */

struct work {
    PyObject_HEAD pthread_mutex_t lock;
    uint64_t numbers[NUMBER_COUNT]; /* under the lock: they belong together */
    atomic_bool cancelled;
};

static PyObject *new_work(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "", names))
        return NULL;
    struct work *w = (struct work *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (w)
        pthread_mutex_init(&w->lock, NULL);
    return (PyObject *)w;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    pthread_mutex_destroy(&((struct work *)self)->lock);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static void on_progress(void *user, uint64_t done, uint64_t total, uint64_t bytes_in, uint64_t bytes_out)
{
    struct work *w = user;
    pthread_mutex_lock(&w->lock);
    memcpy(w->numbers, (uint64_t[NUMBER_COUNT]){done, total, bytes_in, bytes_out}, sizeof w->numbers);
    pthread_mutex_unlock(&w->lock);
}

static int is_cancelled(void *user)
{
    return ((struct work *)user)->cancelled;
}

static PyObject *progress(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct work *w = (struct work *)self;
    unsigned long long n[NUMBER_COUNT];
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < NUMBER_COUNT; i++)
        n[i] = w->numbers[i];
    pthread_mutex_unlock(&w->lock);
    return Py_BuildValue("KKKK", n[0], n[1], n[2], n[3]);
}

static PyObject *cancel(PyObject *self, PyObject *unused)
{
    (void)unused;
    ((struct work *)self)->cancelled = true;
    Py_RETURN_NONE;
}

/* With the limits given, 0: those of set_defaults. NULL with the exception set. */
static squall_context *context_new(struct work *w, unsigned threads, unsigned long long memory_bytes)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_context *ctx = NULL;
    char *folder = NULL;
    if (sq_py_limit_to_workers() < 0 ||
        (sq_py_defaults.cache_folder && PyBytes_AsStringAndSize(sq_py_defaults.cache_folder, &folder, NULL) < 0))
        return NULL;
    const struct squall_context_options options = {
        .threads = threads ? threads : sq_py_defaults.threads,
        .memory_bytes = memory_bytes ? memory_bytes : sq_py_defaults.memory_bytes,
        .cancelled = is_cancelled,
        .user = w,
        .cache_folder = folder,
    };
    if (squall_context_new(&options, &ctx, &err))
        sq_py_raise(&err, Py_None);
    return ctx;
}

/* ---- converting -------------------------------------------------------------------------------------------------------------------- */

/* What comes of it; texts are free()d by outcome_done. */
struct outcome {
    struct squall_convert_result result; /* json and text alone where it is only planned */
    bool is_obstructed;                  /* a plan that cannot be carried out */
    struct squall_error obstacle;        /* why */
};

static int describe(const squall_convert_plan *plan, struct outcome *ret, struct squall_error *err)
{
    int status = squall_convert_plan_json(plan, &ret->result.json, err);
    if (!status)
        status = squall_convert_plan_text(plan, &ret->result.text, err);
    ret->is_obstructed = !status && squall_convert_plan_check(plan, &ret->obstacle) != 0;
    return status;
}

static int plan_and_run(struct work *w, squall_context *ctx, const struct squall_convert_options *options, bool dry_run,
                        struct outcome *ret, struct squall_error *err)
{
    const struct squall_convert_events events = {.progress = on_progress, .user = w}; /* no messages: the report has them all */
    squall_convert_plan *plan;
    int status = squall_convert_plan_new(ctx, options, &events, &plan, err);
    if (status)
        return status;
    status = dry_run ? describe(plan, ret, err) : squall_convert_run(plan, &ret->result, err);
    squall_convert_plan_free(plan);
    return status;
}

/* Of a tuple of bytes, which keeps them; PyMem_Free. NULL with the exception set. */
static const char **texts_of(PyObject *tuple, size_t *ret_count)
{
    const Py_ssize_t count = PyTuple_Size(tuple);
    const char **texts = PyMem_Malloc((size_t)(count + 1) * sizeof *texts);
    if (!texts)
        return (const char **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        char *text;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(tuple, i), &text, NULL) < 0) {
            PyMem_Free(texts);
            return NULL;
        }
        texts[i] = text;
    }
    *ret_count = (size_t)count;
    return texts;
}

static PyObject *run(struct work *w, const struct squall_convert_options *options, bool dry_run, squall_context *ctx)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct outcome o = {.obstacle = SQUALL_ERROR_INIT};
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = plan_and_run(w, ctx, options, dry_run, &o, &err);
    Py_END_ALLOW_THREADS;
    PyObject *path = PyUnicode_DecodeFSDefault(options->destination), *ret = NULL;
    if (path && status)
        sq_py_raise(&err, path);
    else if (path)
        ret = Py_BuildValue("(NNN)", sq_py_text(o.result.json), sq_py_text(o.result.text),
                            sq_py_text(o.is_obstructed ? o.obstacle.message : NULL));
    squall_convert_result_done(&o.result);
    Py_XDECREF(path);
    return ret;
}

static PyObject *convert(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"sources",    "destination",    "select",   "rename",      "threads",    "memory_bytes",
                            "dry_run",    "lock_timeout_s", "prepend",  "overwrite",   "strict",     "chunks",
                            "shards",     "dtype",          "bitround", "on_overflow", "codec",      "coarsen",
                            "y_order",    "schema",         "every",    "stack",       "stack_name", "append_dim",
                            "concat_dim", "drift",          "group",    "zarr_format", "part",       NULL};
    struct squall_convert_options o = {0};
    PyObject *sources, *select, *rename, *ret = NULL;
    unsigned threads;
    unsigned long long memory_bytes;
    int dry_run;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!yO!O!IKpIppp|$zzzzzzzzzzzzzzzzzz", names, &PyTuple_Type, &sources, &o.destination,
                                     &PyTuple_Type, &select, &PyTuple_Type, &rename, &threads, &memory_bytes, &dry_run, &o.lock_timeout_s,
                                     &o.prepend, &o.overwrite, &o.strict, &o.chunks, &o.shards, &o.dtype, &o.bitround, &o.on_overflow,
                                     &o.codec, &o.coarsen, &o.y_order, &o.schema, &o.every, &o.stack, &o.stack_name, &o.append_dim,
                                     &o.concat_dim, &o.drift, &o.group, &o.zarr_format, &o.part))
        return NULL;
    o.sources = texts_of(sources, &o.source_count);
    o.select = o.sources ? texts_of(select, &o.select_count) : NULL;
    o.rename = o.select ? texts_of(rename, &o.rename_count) : NULL;
    squall_context *ctx = o.rename ? context_new((struct work *)self, threads, memory_bytes) : NULL;
    if (ctx)
        ret = run((struct work *)self, &o, dry_run, ctx);
    squall_context_free(ctx);
    PyMem_Free((void *)o.sources);
    PyMem_Free((void *)o.select);
    PyMem_Free((void *)o.rename);
    return ret;
}

/* ---- looking after a store --------------------------------------------------------------------------------------------------------- */

static PyObject *status_of(PyObject *self, PyObject *args)
{
    const char *store;
    char *text = NULL, *json = NULL;
    size_t unfinished = 0;
    struct squall_error err = SQUALL_ERROR_INIT;
    int status;
    if (!PyArg_ParseTuple(args, "y", &store))
        return NULL;
    squall_context *ctx = context_new((struct work *)self, 0, 0);
    PyObject *path = ctx ? PyUnicode_DecodeFSDefault(store) : NULL, *ret = NULL;
    if (path) {
        Py_BEGIN_ALLOW_THREADS;
        status = squall_status_report(ctx, store, &text, &json, &unfinished, &err);
        Py_END_ALLOW_THREADS;
        ret = status ? sq_py_raise(&err, path) : Py_BuildValue("(NNn)", sq_py_text(json), sq_py_text(text), (Py_ssize_t)unfinished);
    }
    free(text);
    free(json);
    Py_XDECREF(path);
    squall_context_free(ctx);
    return ret;
}

static PyObject *verify(PyObject *self, PyObject *args)
{
    const char *store;
    unsigned threads;
    unsigned long long memory_bytes;
    struct squall_verify_result result = {0};
    struct squall_error err = SQUALL_ERROR_INIT;
    int status;
    if (!PyArg_ParseTuple(args, "yIK", &store, &threads, &memory_bytes))
        return NULL;
    const struct squall_convert_events events = {.progress = on_progress, .user = self};
    squall_context *ctx = context_new((struct work *)self, threads, memory_bytes);
    PyObject *path = ctx ? PyUnicode_DecodeFSDefault(store) : NULL, *ret = NULL;
    if (path) {
        Py_BEGIN_ALLOW_THREADS;
        status = squall_verify_report(ctx, store, &events, &result, &err);
        Py_END_ALLOW_THREADS;
        ret = status ? sq_py_raise(&err, path)
                     : Py_BuildValue("(NNKK)", sq_py_text(result.json), sq_py_text(result.text), (unsigned long long)result.bad,
                                     (unsigned long long)result.unchecked);
    }
    free(result.text);
    free(result.json);
    Py_XDECREF(path);
    squall_context_free(ctx);
    return ret;
}

static PyMethodDef methods[] = {
    {"convert", (PyCFunction)(void (*)(void))convert, METH_VARARGS | METH_KEYWORDS, NULL},
    {"status", status_of, METH_VARARGS, NULL},
    {"verify", verify, METH_VARARGS, NULL},
    {"progress", progress, METH_NOARGS, "progress(): units done, units, bytes in, bytes out"},
    {"cancel", cancel, METH_NOARGS, "cancel(): end the work soon, from any thread"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)(uintptr_t)new_work},
    {Py_tp_dealloc, (void *)(uintptr_t)dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec sq_py_work_spec = {
    .name = "squall._squall.Work",
    .basicsize = sizeof(struct work),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
