/* What adapters hold, and merging them into models. Tests: test_lora.py. */
#include "specs.h"

#include "safetensors_adapter.h"
#include "safetensors_report.h"

#include <stdlib.h>

/* ── What an adapter holds ── */

static PyObject *number_or_none(bool known, double value) {
    return known ? PyFloat_FromDouble(value) : Py_NewRef(Py_None);
}

static PyObject *size_or_none(uint64_t value) {
    return value ? PyLong_FromUnsignedLongLong(value) : Py_NewRef(Py_None);
}

static PyObject *span_text(sft_span span) {
    return PyUnicode_DecodeUTF8(span.data, (Py_ssize_t)span.len, "surrogateescape");
}

static PyObject *module_dict(const sft_adapter_module *m, double norm) {
    return Py_BuildValue("{sN,ss,sN,sN,sd,sN,sN,sO,sN}", "name", span_text(m->name), "method",
                         m->method, "rank", size_or_none(m->rank), "alpha",
                         number_or_none(m->has_alpha, m->alpha), "scale", m->scale, "out",
                         size_or_none(m->out), "in", size_or_none(m->in), "dora",
                         m->dora ? Py_True : Py_False, "norm", number_or_none(norm >= 0, norm));
}

/* Appends and takes the reference. */
static bool append(PyObject *list, PyObject *item) {
    bool fine = item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return fine;
}

static PyObject *info_dict(pysft_state *state, const sft_adapter *adapter, bool norms,
                           const char *path) {
    PyObject *modules = PyList_New(0), *others = PyList_New(0);
    bool fine = modules && others;
    for (size_t i = 0; fine && i < sft_adapter_module_count(adapter); i++) {
        sft_error err = SFT_ERROR_INIT;
        sft_code code = SFT_OK;
        double norm = -1;
        Py_BEGIN_ALLOW_THREADS
        if (norms) code = sft_adapter_module_norm(adapter, i, &norm, &err);
        Py_END_ALLOW_THREADS
        if (code) pysft_fail(state, &err, path);
        fine = !code && PyErr_CheckSignals() == 0
            && append(modules, module_dict(sft_adapter_module_at(adapter, i), norm));
    }
    for (size_t i = 0; fine && i < sft_adapter_other_count(adapter); i++)
        fine = append(others, span_text(sft_adapter_other_at(adapter, i)));
    if (fine) return Py_BuildValue("{sN,sN}", "modules", modules, "other_tensors", others);
    Py_XDECREF(modules);
    Py_XDECREF(others);
    return NULL;
}

static PyObject *lora_info(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "path", "config", "norms", NULL };
    PyObject *path, *done = NULL;
    pysft_state *state = pysft_state_of(module);
    sft_adapter_options options = SFT_ADAPTER_OPTIONS_INIT;
    sft_adapter *adapter = NULL;
    const char *config = NULL;
    Py_ssize_t len = 0;
    int norms = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|z#p:lora_info", words, &path, &config, &len,
                                     &norms))
        return NULL;
    options.config = (sft_span){ config, config ? (size_t)len : 0 };
    pysft_store *store = pysft_model_open(state, path);
    if (!store) return NULL;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    Py_BEGIN_ALLOW_THREADS
    code = sft_adapter_open(pysft_store_set(store), &options, &adapter, &err);
    Py_END_ALLOW_THREADS
    if (code) pysft_fail(state, &err, pysft_store_path(store));
    else done = info_dict(state, adapter, norms != 0, pysft_store_path(store));
    sft_adapter_close(adapter);
    pysft_store_drop(store);
    return done;
}

/* ── Merging ── */

typedef struct merge_adapter {
    pysft_store *store;
    sft_adapter_use use;
} merge_adapter;

typedef struct merge_call {
    pysft_state *state;
    pysft_store *model;
    merge_adapter *adapters;
    size_t count;
    sft_adapter_merge_options options;
    pysft_path output;
    sft_path_options path;
} merge_call;

/* Tuples of path, strength, blocks and config. The tuple owns their texts. */
static bool take_adapters(merge_call *call, PyObject *rows) {
    size_t count = (size_t)PyTuple_Size(rows);
    call->adapters = calloc(count ? count : 1, sizeof *call->adapters);
    if (!call->adapters) return pysft_no_memory() == 0;
    for (; call->count < count; call->count++) {
        merge_adapter *a = &call->adapters[call->count];
        PyObject *row = PyTuple_GetItem(rows, (Py_ssize_t)call->count), *path;
        const char *config;
        Py_ssize_t len;
        a->use = (sft_adapter_use)SFT_ADAPTER_USE_INIT;
        if (!PyTuple_Check(row)) {
            PyErr_SetString(PyExc_TypeError,
                            "expected tuples of path, strength, blocks and config");
            return false;
        }
        if (!PyArg_ParseTuple(row, "Odzz#", &path, &a->use.strength, &a->use.blocks, &config, &len))
            return false;
        a->use.config = (sft_span){ config, config ? (size_t)len : 0 };
        a->store = pysft_model_open(call->state, path);
        if (!a->store) return false;
    }
    return true;
}

/* No GIL. */
static sft_code save_merged(const merge_call *call, sft_adapter_merge *merge, const sft_job *job,
                            sft_error *err) {
    sft_save_set_options options;
    sft_sink sink;
    char stem[PYSFT_STEM];
    const sft_set *set = pysft_store_set(call->model);
    sft_path_options path = call->path;
    if (pysft_stays_set(set, call->output.text, stem, &options)) {
        options.no_sync = path.no_sync;
        return sft_adapter_merge_save_set(merge, call->output.text, &options, job, err);
    }
    path.mode = sft_set_output_mode(set, call->output.text);
    sft_code code = sft_sink_path(call->output.text, &path, &sink, err);
    return code ? code : sft_adapter_merge_save(merge, sink, job, err);
}

static PyObject *adapter_dict(const merge_call *call, const sft_adapter_merge *merge, size_t k) {
    PyObject *unmatched = PyList_New(0);
    bool fine = unmatched != NULL;
    for (size_t i = 0; fine && i < sft_adapter_merge_unmatched(merge, k); i++)
        fine = append(unmatched, span_text(sft_adapter_merge_unmatched_at(merge, k, i)));
    if (!fine) {
        Py_XDECREF(unmatched);
        return NULL;
    }
    return Py_BuildValue("{sN,sd,sn,sn,sN}", "path",
                         PyUnicode_DecodeFSDefault(pysft_store_path(call->adapters[k].store)),
                         "strength", call->adapters[k].use.strength, "modules",
                         (Py_ssize_t)sft_adapter_merge_modules(merge, k), "matched",
                         (Py_ssize_t)sft_adapter_merge_matched(merge, k), "unmatched", unmatched);
}

static PyObject *merged_dict(const merge_call *call, const sft_adapter_merge *merge) {
    uint64_t moved, lost;
    PyObject *adapters = PyList_New(0);
    bool fine = adapters != NULL;
    for (size_t k = 0; fine && k < call->count; k++)
        fine = append(adapters, adapter_dict(call, merge, k));
    if (!fine) {
        Py_XDECREF(adapters);
        return NULL;
    }
    sft_adapter_merge_lost(merge, &moved, &lost);
    return Py_BuildValue("{sn,sK,sK,sN}", "changed", (Py_ssize_t)sft_adapter_merge_changed(merge),
                         "narrow_values", (unsigned long long)moved, "narrow_lost",
                         (unsigned long long)lost, "adapters", adapters);
}

/* Which file an error is about. */
static const char *blamed(const merge_call *call, const sft_adapter_merge *merge, sft_code code) {
    size_t who = merge ? sft_adapter_merge_blames(merge) : SIZE_MAX;
    if (who < call->count) return pysft_store_path(call->adapters[who].store);
    bool of_input = code == SFT_CAST_VALUE || code == SFT_CAST_DTYPE || code == SFT_IO_READ
                    || code == SFT_IO_SHRUNK || code == SFT_BAD_ARGUMENT;
    return of_input ? pysft_store_path(call->model) : call->output.text;
}

static PyObject *run_merge(const merge_call *call, PyObject *progress) {
    sft_adapter_merge *merge = NULL;
    PyObject *done = NULL;
    const char *path = NULL;
    pysft_job job;
    if (pysft_job_begin(&job, progress) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS
    job.code = sft_adapter_merge_new(pysft_store_set(call->model), &call->options, &merge,
                                     &job.err);
    for (size_t k = 0; !job.code && k < call->count; k++) {
        const merge_adapter *a = &call->adapters[k];
        job.code = sft_adapter_merge_add(merge, pysft_store_set(a->store), &a->use, &job.err);
        if (job.code) path = pysft_store_path(a->store);
    }
    if (!job.code) job.code = save_merged(call, merge, &job.job, &job.err);
    Py_END_ALLOW_THREADS
    if (!path) path = blamed(call, merge, job.code);
    if (pysft_job_done(&job, call->state, path) == 0) done = merged_dict(call, merge);
    sft_adapter_merge_free(merge);
    return done;
}

static PyObject *lora_merge(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "model", "adapters", "output", "dora", "stochastic",
                             "ignore_unmatched", "overwrite", "sync", "threads", "progress", NULL };
    PyObject *model, *rows, *output, *seed = Py_None, *progress = NULL, *done = NULL;
    int dora = 0, ignore = 0, overwrite = 0, sync = 1, asked = 0;
    merge_call call = { .state = pysft_state_of(module),
                        .options = SFT_ADAPTER_MERGE_OPTIONS_INIT, .path = SFT_PATH_OPTIONS_INIT };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|$iOpppiO:lora_merge", words, &model, &rows,
                                     &output, &dora, &seed, &ignore, &overwrite, &sync, &asked,
                                     &progress)
        || pysft_threads_of(asked, &call.options.threads) < 0)
        return NULL;
    call.options.dora = (uint32_t)dora;
    call.options.stochastic = seed != Py_None;
    if (seed != Py_None) call.options.seed = PyLong_AsUnsignedLongLong(seed);
    if (PyErr_Occurred()) return NULL;
    call.options.ignore_unmatched = ignore != 0;
    call.path.no_sync = !sync;
    call.path.no_clobber = !overwrite;
    PyObject *held = PySequence_Tuple(rows);
    bool ready = held && pysft_output_of(output, &call.output) == 0;
    if (ready) call.model = pysft_model_open(call.state, model);
    ready = ready && call.model && take_adapters(&call, held);
    if (ready) call.options.files = pysft_store_files(call.model);
    ready = ready
            && pysft_inherit(call.options.files
                                 ? NULL : sft_set_shard_path(pysft_store_set(call.model), 0),
                             call.output.text, false, &call.path) == 0;
    if (ready) done = run_merge(&call, progress);
    for (size_t k = 0; call.adapters && k <= call.count && k < (size_t)PyTuple_Size(held); k++)
        pysft_store_drop(call.adapters[k].store);
    free(call.adapters);
    pysft_store_drop(call.model);
    pysft_path_free(&call.output);
    Py_XDECREF(held);
    return done;
}

PyMethodDef pysft_lora_functions[] = {
    { "lora_info", PYSFT_KEYWORDS(lora_info),
      "lora_info($module, /, path, config=None, norms=True)\n--\n\n" },
    { "lora_merge", PYSFT_KEYWORDS(lora_merge),
      "lora_merge($module, /, model, adapters, output, *, dora=0, stochastic=None,\n"
      " ignore_unmatched=False, overwrite=False, sync=True, threads=0, progress=None)\n--\n\n" },
    { NULL, NULL, 0, NULL },
};
