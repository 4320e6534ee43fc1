/* Merging models by value. Tests: test_merge_models.py. */
#include "specs.h"

#include "safetensors_merge.h"
#include "safetensors_report.h"

#include <stdlib.h>

#define MODELS_MOST 32

typedef struct models_call {
    pysft_state *state;
    pysft_store *stores[MODELS_MOST];
    size_t count;
    const char *params[1024];
    sft_merge_options options;
    pysft_path output;
    sft_path_options path;
    bool dry_run;
} models_call;

static void drop_models(models_call *call) {
    for (size_t i = 0; i < call->count; i++) pysft_store_drop(call->stores[i]);
    call->count = 0;
}

static bool open_models(models_call *call, PyObject *paths) {
    Py_ssize_t count = PyTuple_Size(paths);
    if (count > MODELS_MOST) {
        PyErr_Format(PyExc_ValueError, "expected at most %d models, found %zd", MODELS_MOST, count);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        pysft_store *store = pysft_model_open(call->state, PyTuple_GetItem(paths, i));
        if (!store) return false;
        call->stores[call->count++] = store;
    }
    return true;
}

/* A text of a tuple, or NULL for None; false: an exception is set. */
static bool text_at(PyObject *texts, size_t i, const char **out) {
    PyObject *text = PyTuple_GetItem(texts, (Py_ssize_t)i);
    *out = NULL;
    if (!text || text == Py_None) return text != NULL;
    *out = PyUnicode_AsUTF8AndSize(text, NULL);
    return *out != NULL;
}

static bool take_params(models_call *call, PyObject *params) {
    size_t count = (size_t)PyTuple_Size(params);
    if (count > sizeof call->params / sizeof *call->params) {
        PyErr_SetString(PyExc_ValueError, "expected at most 1024 parameters, found more");
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (!text_at(params, i, &call->params[i])) return false;
    call->options.params = call->params;
    call->options.param_count = count;
    return true;
}

static PyObject *told_dict(const sft_merge_told *told) {
    return Py_BuildValue("{sn,sn,sn,sn,sn,sn,sn}", "merged", (Py_ssize_t)told->computed, "copied",
                         (Py_ssize_t)told->copied, "renamed", (Py_ssize_t)told->renamed, "cut",
                         (Py_ssize_t)told->cut, "missing", (Py_ssize_t)told->missing, "left_out",
                         (Py_ssize_t)told->left_out, "unlike", (Py_ssize_t)told->unlike);
}

static PyObject *save_models(const models_call *call, PyObject *weights, PyObject *progress) {
    const char *texts[MODELS_MOST];
    sft_merge *merge = NULL;
    PyObject *done = NULL;
    pysft_job job;
    for (size_t i = 0; i < call->count; i++)
        if (!text_at(weights, i, &texts[i])) return NULL;
    if (pysft_job_begin(&job, progress) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS
    job.code = sft_merge_new(&call->options, &merge, &job.err);
    for (size_t i = 0; !job.code && i < call->count; i++)
        job.code = sft_merge_add(merge, pysft_store_set(call->stores[i]), NULL, texts[i], &job.err);
    if (!job.code) job.code = sft_merge_plan(merge, &job.err);
    if (!job.code && !call->dry_run) {
        sft_sink sink;
        job.code = sft_sink_path(call->output.text, &call->path, &sink, &job.err);
        if (!job.code) job.code = sft_merge_save(merge, sink, &job.job, &job.err);
    }
    Py_END_ALLOW_THREADS
    size_t who = sft_merge_blames(merge);
    const char *path = who < call->count ? pysft_store_path(call->stores[who]) : call->output.text;
    if (!merge) path = NULL; /* of what was asked for, no file */
    if (pysft_job_done(&job, call->state, path) == 0) done = told_dict(sft_merge_notes(merge));
    sft_merge_free(merge);
    return done;
}

static PyObject *merge_models(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "models", "weights", "output", "method", "base", "params", "recipe",
                             "seed", "dtype", "ignore_missing", "overwrite", "sync", "threads",
                             "progress", "dry_run", "in_place_unsafe", NULL };
    PyObject *models, *weights, *output, *params, *seed, *dtype, *progress = NULL, *done = NULL;
    Py_ssize_t base = -1, len = 0;
    const char *recipe = NULL;
    int ignore = 0, overwrite = 0, sync = 1, asked = 0, dry_run = 0, unsafe = 0;
    sft_dtype to;
    models_call *call = calloc(1, sizeof *call);
    if (!call) return PyErr_NoMemory();
    call->state = pysft_state_of(module);
    call->options = (sft_merge_options)SFT_MERGE_OPTIONS_INIT;
    call->path = (sft_path_options)SFT_PATH_OPTIONS_INIT;
    bool ready = PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!OznO!z#OO|$pppiOpp:merge_models",
                                             words, &PyTuple_Type, &models, &PyTuple_Type, &weights,
                                             &output, &call->options.method, &base, &PyTuple_Type,
                                             &params, &recipe, &len, &seed, &dtype, &ignore,
                                             &overwrite, &sync, &asked, &progress, &dry_run,
                                             &unsafe)
              && pysft_threads_of(asked, &call->options.threads) >= 0;
    if (ready && base >= 0) call->options.base = (size_t)base;
    call->options.recipe = (sft_span){ recipe, recipe ? (size_t)len : 0 };
    call->options.ignore_missing = ignore != 0;
    call->dry_run = dry_run != 0;
    pysft_path_flags(&call->path, sync, overwrite, unsafe);
    if (ready && seed != Py_None) {
        call->options.has_seed = true;
        ready = pysft_uint_of(seed, &call->options.seed) == 0;
    }
    if (ready && dtype != Py_None) {
        ready = pysft_dtype_of(dtype, &to) >= 0;
        call->options.dtype = to;
    }
    ready = ready && take_params(call, params) && pysft_output_of(output, &call->output) == 0
         && open_models(call, models);
    for (size_t i = 0; ready && i < call->count; i++) {
        const sft_files *files = pysft_store_files(call->stores[i]);
        if (i == 0) call->options.files = files;
        ready = pysft_inherit(files ? NULL
                                    : sft_set_shard_path(pysft_store_set(call->stores[i]), 0),
                              call->output.text, false, &call->path) == 0;
    }
    if (ready) done = save_models(call, weights, progress);
    drop_models(call);
    pysft_path_free(&call->output);
    free(call);
    return done;
}

static PyObject *merge_named(PyObject *module, PyObject *args) {
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_merge *merge = NULL;
    const char *text;
    Py_ssize_t len;
    if (!PyArg_ParseTuple(args, "s#:merge_named", &text, &len)) return NULL;
    options.recipe = (sft_span){ text, (size_t)len };
    if (sft_merge_new(&options, &merge, &err)) {
        pysft_fail(pysft_state_of(module), &err, NULL);
        return NULL;
    }
    PyObject *names = PyList_New(0);
    for (size_t i = 0; names && i < sft_merge_named(merge); i++) {
        sft_span name = sft_merge_named_at(merge, i);
        PyObject *one = PyUnicode_FromStringAndSize(name.data, (Py_ssize_t)name.len);
        pysft_list_add(&names, one);
    }
    sft_merge_free(merge);
    return names;
}

/* ── Mixtures ── */

static PyObject *block_dict(const sft_mixture_block *block, size_t models) {
    PyObject *weights = PyList_New((Py_ssize_t)models);
    for (size_t i = 0; weights && i < models; i++) {
        double w = block->weights[i];
        PyObject *one = w == w ? PyFloat_FromDouble(w) : Py_NewRef(Py_None);
        if (!one) Py_CLEAR(weights);
        else PyList_SetItem(weights, (Py_ssize_t)i, one);
    }
    if (!weights) return NULL;
    return Py_BuildValue("{ss#,sn,sK,sN,sd,sd,sd,sO}", "name",
                         block->name.data ? block->name.data : "", (Py_ssize_t)block->name.len,
                         "tensors", (Py_ssize_t)block->tensors, "elements",
                         (unsigned long long)block->elements, "weights", weights, "change",
                         block->change, "residual", block->residual, "rounding", block->rounding,
                         "fits", block->fits ? Py_True : Py_False);
}

static PyObject *merge_of(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "models", "progress", NULL };
    const sft_set *sets[MODELS_MOST];
    PyObject *paths, *progress = NULL, *blocks = NULL;
    sft_mixture *mixture = NULL;
    size_t who = SIZE_MAX;
    pysft_job job;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$O:merge_of", words, &PyTuple_Type, &paths,
                                     &progress))
        return NULL;
    models_call *call = calloc(1, sizeof *call);
    if (!call) return PyErr_NoMemory();
    call->state = pysft_state_of(module);
    if (open_models(call, paths) && pysft_job_begin(&job, progress) == 0) {
        for (size_t i = 0; i < call->count; i++) sets[i] = pysft_store_set(call->stores[i]);
        Py_BEGIN_ALLOW_THREADS
        job.code = sft_mixture_new(call->count ? sets[0] : NULL, sets + 1,
                                   call->count ? call->count - 1 : 0, &job.job, NULL, &mixture,
                                   &who, &job.err);
        Py_END_ALLOW_THREADS
        const char *path = who < call->count ? pysft_store_path(call->stores[who]) : NULL;
        if (pysft_job_done(&job, call->state, path) == 0) blocks = PyList_New(0);
    }
    for (size_t i = 0; blocks && i < sft_mixture_count(mixture); i++)
        pysft_list_add(&blocks, block_dict(sft_mixture_at(mixture, i), call->count - 1));
    PyObject *done = blocks ? Py_BuildValue("(Nn)", blocks,
                                            (Py_ssize_t)sft_mixture_left_out(mixture)) : NULL;
    sft_mixture_free(mixture);
    drop_models(call);
    free(call);
    return done;
}

PyMethodDef pysft_merge_functions[] = {
    { "merge_models", PYSFT_KEYWORDS(merge_models),
      "merge_models($module, /, models, weights, output, method, base, params, recipe, seed,\n"
      " dtype, *, ignore_missing=False, overwrite=False, sync=True, threads=0, progress=None,\n"
      " dry_run=False, in_place_unsafe=False)\n--\n\n" },
    { "merge_named", merge_named, METH_VARARGS, "merge_named($module, recipe, /)\n--\n\n" },
    { "merge_of", PYSFT_KEYWORDS(merge_of),
      "merge_of($module, /, models, *, progress=None)\n--\n\n" },
    { NULL, NULL, 0, NULL },
};
