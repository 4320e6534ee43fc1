/* What adapters hold, merging them into models, other ranks and names. Tests: test_lora.py. */
#include "host.h"
#include "specs.h"

#include "safetensors_adapter.h"
#include "safetensors_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── PEFT's configuration ── */

#define CONFIG_MOST ((uint64_t)4 << 20)

#define CONFIG_NAME "adapter_config.json"

/* A name in the folder of a path; free() it. NULL: no memory. */
static char *beside(const char *path, const char *name) {
    size_t len = (size_t)(pysft_host_base_name(path) - path), size = strlen(name) + 1;
    char *whole = malloc(len + size);
    if (whole) snprintf(whole, len + size, "%.*s%s", (int)len, path, name);
    return whole;
}

/* No GIL. SFT_NOT_FOUND: there is none. */
static sft_code read_config(const char *path, const sft_files *files, sft_buffer *out,
                            sft_error *err) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_source source;
    options.files = files;
    options.wait = &pysft_wait;
    sft_code code = sft_source_path(path, &options, &source, err);
    if (code) return code;
    if (source.size > CONFIG_MOST) code = SFT_FILE_TOO_LARGE;
    else code = sft_copy(&source, 0, SFT_SIZE_UNKNOWN, sft_sink_memory(out), NULL, err);
    sft_source_close(&source);
    return code;
}

/* Finds the configuration beside an adapter's file on a server where the caller tells none, as
 * lora.py does in folders. `held` is to be freed after *config. 0, or -1 with an exception. */
static int find_config(pysft_state *state, const pysft_store *store, sft_span *config,
                       sft_buffer *held) {
    const sft_files *files = pysft_store_files(store);
    const sft_set *set = pysft_store_set(store);
    const char *path = sft_set_index_path(set) ? sft_set_index_path(set)
                                               : sft_set_shard_path(set, 0);
    if (config->data || !files || !path) return 0;
    char *found = beside(path, CONFIG_NAME);
    sft_error err = SFT_ERROR_INIT;
    sft_code code = SFT_OK;
    int rc = found ? 0 : pysft_no_memory();
    const char *name = pysft_host_base_name(path);
    bool peft = !strncmp(name, "adapter_model", 13) && (name[13] == '.' || strstr(name, "-of-"));
    if (found && peft) {
        Py_BEGIN_ALLOW_THREADS
        code = read_config(found, files, held, &err);
        Py_END_ALLOW_THREADS
        if (code == SFT_FILE_TOO_LARGE) {
            PyErr_SetString(PyExc_ValueError, "expected an adapter_config.json of at most 4 MiB, "
                                              "found a larger one");
            rc = -1;
        } else if (code && code != SFT_NOT_FOUND) {
            rc = pysft_fail(state, &err, found);
        } else if (!code) {
            *config = (sft_span){ (const char *)held->data, held->len };
        }
    }
    free(found);
    return rc < 0 ? -1 : 0;
}

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
            && pysft_append(modules, module_dict(sft_adapter_module_at(adapter, i), norm));
    }
    for (size_t i = 0; fine && i < sft_adapter_other_count(adapter); i++)
        fine = pysft_append(others, span_text(sft_adapter_other_at(adapter, i)));
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
    sft_buffer held = { 0 };
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    if (find_config(state, store, &options.config, &held) < 0) {
        pysft_store_drop(store);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    code = sft_adapter_open(pysft_store_set(store), &options, &adapter, &err);
    Py_END_ALLOW_THREADS
    if (code) pysft_fail(state, &err, pysft_store_path(store));
    else done = info_dict(state, adapter, norms != 0, pysft_store_path(store));
    sft_adapter_close(adapter);
    sft_buffer_free(&held);
    pysft_store_drop(store);
    return done;
}

/* ── Merging ── */

typedef struct merge_adapter {
    pysft_store *store;
    sft_buffer config; /* that was found */
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
    bool dry_run;
} merge_call;

/* Tuples of path, strength, blocks and config. The tuple owns their texts. finds: configurations
 * that are not told. */
static bool take_adapters(pysft_state *state, PyObject *rows, bool finds, merge_adapter **out,
                          size_t *taken) {
    size_t count = (size_t)PyTuple_Size(rows);
    *out = calloc(count ? count : 1, sizeof **out);
    if (!*out) return pysft_no_memory() == 0;
    for (; *taken < count; ++*taken) {
        merge_adapter *a = &(*out)[*taken];
        PyObject *row = PyTuple_GetItem(rows, (Py_ssize_t)*taken), *path;
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
        a->store = pysft_model_open(state, path);
        if (!a->store || (finds && find_config(state, a->store, &a->use.config, &a->config) < 0))
            return false;
    }
    return true;
}

static void end_inputs(merge_adapter *inputs, size_t count) {
    for (size_t k = 0; inputs && k < count; k++) {
        sft_buffer_free(&inputs[k].config);
        pysft_store_drop(inputs[k].store);
    }
    free(inputs);
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
        options.in_place_unsafe = path.in_place_unsafe;
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
        fine = pysft_append(unmatched, span_text(sft_adapter_merge_unmatched_at(merge, k, i)));
    if (!fine) {
        Py_XDECREF(unmatched);
        return NULL;
    }
    return Py_BuildValue("{sN,sd,sn,sn,sN}", "path",
                         pysft_store_name(call->adapters[k].store),
                         "strength", call->adapters[k].use.strength, "modules",
                         (Py_ssize_t)sft_adapter_merge_modules(merge, k), "matched",
                         (Py_ssize_t)sft_adapter_merge_matched(merge, k), "unmatched", unmatched);
}

static PyObject *merged_dict(const merge_call *call, const sft_adapter_merge *merge) {
    uint64_t moved, lost;
    PyObject *adapters = PyList_New(0);
    bool fine = adapters != NULL;
    for (size_t k = 0; fine && k < call->count; k++)
        fine = pysft_append(adapters, adapter_dict(call, merge, k));
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
    if (!job.code)
        job.code = call->dry_run ? sft_adapter_merge_plan(merge, &job.err)
                                 : save_merged(call, merge, &job.job, &job.err);
    Py_END_ALLOW_THREADS
    if (!path) path = blamed(call, merge, job.code);
    if (pysft_job_done(&job, call->state, path) == 0) done = merged_dict(call, merge);
    sft_adapter_merge_free(merge);
    return done;
}

static PyObject *lora_merge(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "model", "adapters", "output", "dora", "stochastic",
                             "ignore_unmatched", "overwrite", "sync", "threads", "progress",
                             "dry_run", "in_place_unsafe", NULL };
    PyObject *model, *rows, *output, *seed = Py_None, *progress = NULL, *done = NULL;
    int dora = 0, ignore = 0, overwrite = 0, sync = 1, asked = 0, dry_run = 0, unsafe = 0;
    merge_call call = { .state = pysft_state_of(module),
                        .options = SFT_ADAPTER_MERGE_OPTIONS_INIT, .path = SFT_PATH_OPTIONS_INIT };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|$iOpppiOpp:lora_merge", words, &model,
                                     &rows, &output, &dora, &seed, &ignore, &overwrite, &sync,
                                     &asked, &progress, &dry_run, &unsafe)
        || pysft_threads_of(asked, &call.options.threads) < 0)
        return NULL;
    call.options.dora = (uint32_t)dora;
    call.options.stochastic = seed != Py_None;
    if (seed != Py_None && pysft_uint_of(seed, &call.options.seed) < 0) return NULL;
    call.options.ignore_unmatched = ignore != 0;
    call.dry_run = dry_run != 0;
    pysft_path_flags(&call.path, sync, overwrite, unsafe);
    PyObject *held = PySequence_Tuple(rows);
    bool ready = held && pysft_output_of(output, &call.output) == 0;
    if (ready) call.model = pysft_model_open(call.state, model);
    ready = ready && call.model && take_adapters(call.state, held, true, &call.adapters,
                                                         &call.count);
    if (ready) call.options.files = pysft_store_files(call.model);
    ready = ready
            && pysft_inherit(call.options.files
                                 ? NULL : sft_set_shard_path(pysft_store_set(call.model), 0),
                             call.output.text, false, &call.path) == 0;
    if (ready) done = run_merge(&call, progress);
    end_inputs(call.adapters, call.adapters ? (size_t)PyTuple_Size(held) : 0);
    pysft_store_drop(call.model);
    pysft_path_free(&call.output);
    Py_XDECREF(held);
    return done;
}

/* ── Factors of another rank ── */

/* A result of several inputs is readable by those who may read them all. */
static void share_mode(sft_path_options *path, const sft_set *set, const char *output) {
    uint32_t mode = sft_set_output_mode(set, output);
    path->mode = path->mode && mode ? path->mode & mode : mode ? mode : path->mode;
}

typedef struct factors_call {
    pysft_state *state;
    sft_adapter_verb verb;
    sft_adapter_factors_options options;
    merge_adapter *inputs;
    size_t count;
    uint32_t threads;
    bool dry_run;
    pysft_path output;
    sft_path_options path;
} factors_call;

static PyObject *factor_dict(const sft_adapter_factor *one) {
    double error = one->norm > 0 ? one->lost / one->norm : 0;
    return Py_BuildValue("{sN,sN,sK,sN,sN,sN}", "name", span_text(one->name), "rank_before",
                         size_or_none(one->rank_before), "rank", (unsigned long long)one->rank,
                         "alpha", number_or_none(one->has_alpha, one->alpha), "norm",
                         number_or_none(one->norm >= 0, one->norm), "error",
                         number_or_none(one->norm >= 0, error));
}

static PyObject *factors_dict(const sft_adapter_factors *factors) {
    static const char *const notes[] = { "kept_whole", "kept_dora", "folded_alphas",
                                         "unknown_alphas", "left_convs", "left_others" };
    PyObject *modules = PyList_New(0), *unmatched = PyList_New(0), *told = NULL;
    bool fine = modules && unmatched;
    size_t left_out = 0;
    for (size_t i = 0; fine && i < sft_adapter_factors_count(factors); i++) {
        const sft_adapter_factor *one = sft_adapter_factors_at(factors, i);
        left_out += one->left_out;
        if (!one->left_out) fine = pysft_append(modules, factor_dict(one));
    }
    for (size_t i = 0; fine && i < sft_adapter_factors_unmatched(factors); i++)
        fine = pysft_append(unmatched, span_text(sft_adapter_factors_unmatched_at(factors, i)));
    if (fine)
        told = Py_BuildValue("{sO,sn,sO}", "modules", modules, "left_out", (Py_ssize_t)left_out,
                             "unmatched", unmatched);
    for (int i = 0; told && i < 6; i++) {
        size_t count = sft_adapter_factors_note(factors, (sft_adapter_note)i);
        PyObject *number = PyLong_FromSize_t(count);
        if (!number || PyDict_SetItemString(told, notes[i], number) < 0) Py_CLEAR(told);
        Py_XDECREF(number);
    }
    Py_XDECREF(modules);
    Py_XDECREF(unmatched);
    return told;
}

static PyObject *run_factors(factors_call *call, PyObject *progress) {
    sft_adapter_factors *factors = NULL;
    PyObject *done = NULL;
    sft_sink sink;
    pysft_job job;
    size_t who = SIZE_MAX;
    if (pysft_job_begin(&job, progress) < 0) return NULL;
    job.job.threads = call->threads;
    Py_BEGIN_ALLOW_THREADS
    job.code = sft_adapter_factors_new(call->verb, &call->options, &factors, &job.err);
    for (size_t k = 0; !job.code && k < call->count; k++)
        job.code = sft_adapter_factors_add(factors, pysft_store_set(call->inputs[k].store),
                                           &call->inputs[k].use, &job.err);
    if (!job.code) job.code = sft_adapter_factors_compute(factors, &job.job, &job.err);
    if (factors) who = sft_adapter_factors_blames(factors);
    if (!job.code && !call->dry_run) {
        job.code = sft_sink_path(call->output.text, &call->path, &sink, &job.err);
        if (!job.code) job.code = sft_adapter_factors_save(factors, sink, &job.job, &job.err);
    }
    Py_END_ALLOW_THREADS
    const char *about = who < call->count ? pysft_store_path(call->inputs[who].store)
                                          : call->output.text;
    if (pysft_job_done(&job, call->state, about) == 0) done = factors_dict(factors);
    sft_adapter_factors_free(factors);
    return done;
}

static PyObject *lora_factors(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "verb", "inputs", "output", "rank", "conv_rank", "rule", "value",
                             "kohya", "dtype", "norms", "names", "min_diff", "clamp_quantile",
                             "ignore_unmatched", "dry_run", "overwrite", "sync", "threads",
                             "progress", "architecture", "in_place_unsafe", NULL };
    PyObject *rows, *output, *dtype = Py_None, *progress = NULL, *done = NULL;
    int verb, rule = 0, kohya = 0, norms = 0, names = 0, ignore = 0, dry_run = 0, overwrite = 0;
    int sync = 1, asked = 0, unsafe = 0;
    factors_call call = { .state = pysft_state_of(module),
                          .options = SFT_ADAPTER_FACTORS_OPTIONS_INIT,
                          .path = SFT_PATH_OPTIONS_INIT };
    sft_adapter_factors_options *o = &call.options;
    sft_dtype found;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iOO|$O&O&idpOpiddppppiOzp:lora_factors",
                                     words, &verb, &rows, &output, pysft_uint_arg, &o->rank,
                                     pysft_uint_arg, &o->conv_rank, &rule, &o->value, &kohya,
                                     &dtype, &norms, &names, &o->min_diff, &o->clamp_quantile,
                                     &ignore, &dry_run, &overwrite, &sync, &asked, &progress,
                                     &o->architecture, &unsafe)
        || pysft_threads_of(asked, &call.threads) < 0)
        return NULL;
    if (dtype != Py_None) {
        if (pysft_dtype_of(dtype, &found) < 0) return NULL;
        o->dtype = found;
    }
    call.verb = (sft_adapter_verb)verb;
    o->rule = (uint32_t)rule, o->names = (uint32_t)names;
    o->kohya = kohya != 0, o->norms = norms != 0;
    o->ignore_unmatched = ignore != 0;
    o->measure = call.dry_run = dry_run != 0;
    pysft_path_flags(&call.path, sync, overwrite, unsafe);
    PyObject *held = PySequence_Tuple(rows);
    size_t most = held ? (size_t)PyTuple_Size(held) : 0;
    bool ready = held && pysft_output_of(output, &call.output) == 0
              && take_adapters(call.state, held, verb != SFT_ADAPTER_EXTRACT, &call.inputs,
                               &call.count);
    if (ready) {
        o->scratch = beside(call.output.text, ".");
        for (size_t k = 0; k < call.count; k++)
            share_mode(&call.path, pysft_store_set(call.inputs[k].store), call.output.text);
        done = run_factors(&call, progress);
        free((char *)o->scratch);
    }
    end_inputs(call.inputs, most);
    pysft_path_free(&call.output);
    Py_XDECREF(held);
    return done;
}

/* ── Other names ── */

static PyObject *conversion_dict(const sft_adapter_conversion *conversion) {
    const sft_adapter_conversion_facts *told = sft_adapter_conversion_told(conversion);
    sft_span config = sft_adapter_conversion_config(conversion);
    PyObject *unmatched = PyList_New(0);
    bool fine = unmatched != NULL;
    for (size_t i = 0; fine && i < sft_adapter_conversion_unmatched(conversion); i++)
        fine = pysft_append(unmatched,
                            span_text(sft_adapter_conversion_unmatched_at(conversion, i)));
    if (!fine) {
        Py_XDECREF(unmatched);
        return NULL;
    }
    return Py_BuildValue("{ss,sn,sn,sn,sn,sN,sN}", "architecture", told->architecture, "modules",
                         (Py_ssize_t)told->modules, "split", (Py_ssize_t)told->split, "joined",
                         (Py_ssize_t)told->joined, "folded", (Py_ssize_t)told->folded,
                         "unmatched", unmatched, "config",
                         config.len ? span_text(config) : Py_NewRef(Py_None));
}

typedef struct conversion_call {
    pysft_state *state;
    pysft_store *adapter, *model;
    sft_adapter_conversion_options options;
    pysft_path output;
    sft_path_options path;
    bool dry_run;
    bool alone; /* set: the output is there, new, and its adapter_config.json is not */
} conversion_call;

/* adapter_config.json appears beside the output when that is there. No GIL. */
static sft_code save_converted(conversion_call *call,
                               const sft_adapter_conversion *conversion, const sft_job *job,
                               sft_error *err) {
    sft_span text = sft_adapter_conversion_config(conversion);
    sft_sink config, sink;
    sft_code code = SFT_OK;
    char *path = text.len ? beside(call->output.text, CONFIG_NAME) : NULL;
    bool begun = false;
    if (path) {
        code = sft_sink_path(path, &call->path, &config, err);
        begun = !code;
        if (!code) code = sft_sink_write(&config, 0, text.data, text.len, err);
    } else if (text.len) {
        code = SFT_OUT_OF_MEMORY;
    }
    if (!code) code = sft_sink_path(call->output.text, &call->path, &sink, err);
    if (!code) code = sft_adapter_conversion_save(conversion, sink, job, err);
    bool written = begun && !code;
    if (written) code = sft_sink_finish(&config, err);
    else if (begun) sft_sink_abandon(&config);
    call->alone = written && code && call->path.no_clobber;
    free(path);
    return code;
}

static PyObject *run_conversion(conversion_call *call, PyObject *progress) {
    sft_adapter_conversion *conversion = NULL;
    PyObject *done = NULL;
    pysft_job job;
    bool read = false;
    if (pysft_job_begin(&job, progress) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS
    job.code = sft_adapter_conversion_new(pysft_store_set(call->adapter), &call->options,
                                          &conversion, &job.err);
    read = !job.code && (call->options.ignore_unmatched
                         || sft_adapter_conversion_unmatched(conversion) == 0);
    if (!job.code && !call->dry_run)
        job.code = save_converted(call, conversion, &job.job, &job.err);
    Py_END_ALLOW_THREADS
    const char *about = read ? call->output.text : pysft_store_path(call->adapter);
    if (call->alone) {
        PyObject *path = PyUnicode_DecodeFSDefault(call->output.text);
        PyObject *gone = pysft_import_call("os", "unlink", path);
        if (!gone) PyErr_Clear();
        Py_XDECREF(gone);
        Py_XDECREF(path);
    }
    if (pysft_job_done(&job, call->state, about) == 0) done = conversion_dict(conversion);
    sft_adapter_conversion_free(conversion);
    return done;
}

static PyObject *lora_convert(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "path", "output", "to", "architecture", "model", "config",
                             "ignore_unmatched", "overwrite", "sync", "progress", "dry_run",
                             "in_place_unsafe", NULL };
    PyObject *path, *output, *model = Py_None, *progress = NULL, *done = NULL;
    int to, ignore = 0, overwrite = 0, sync = 1, dry_run = 0, unsafe = 0;
    const char *config = NULL;
    Py_ssize_t len = 0;
    sft_buffer found = { 0 };
    conversion_call call = { .state = pysft_state_of(module),
                             .options = SFT_ADAPTER_CONVERSION_OPTIONS_INIT,
                             .path = SFT_PATH_OPTIONS_INIT };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOi|$zOz#pppOpp:lora_convert", words, &path,
                                     &output, &to, &call.options.architecture, &model, &config,
                                     &len, &ignore, &overwrite, &sync, &progress, &dry_run,
                                     &unsafe))
        return NULL;
    call.options.to = (uint32_t)to;
    call.options.config = (sft_span){ config, config ? (size_t)len : 0 };
    call.options.ignore_unmatched = ignore != 0;
    call.dry_run = dry_run != 0;
    pysft_path_flags(&call.path, sync, overwrite, unsafe);
    bool ready = pysft_output_of(output, &call.output) == 0;
    if (ready) call.adapter = pysft_model_open(call.state, path);
    ready = ready && call.adapter
         && find_config(call.state, call.adapter, &call.options.config, &found) == 0;
    if (ready && model != Py_None) call.model = pysft_model_open(call.state, model);
    ready = ready && (call.model || model == Py_None);
    if (ready) {
        if (call.model) call.options.model = pysft_store_set(call.model);
        share_mode(&call.path, pysft_store_set(call.adapter), call.output.text);
        done = run_conversion(&call, progress);
    }
    sft_buffer_free(&found);
    pysft_store_drop(call.adapter);
    pysft_store_drop(call.model);
    pysft_path_free(&call.output);
    return done;
}

PyMethodDef pysft_lora_functions[] = {
    { "lora_info", PYSFT_KEYWORDS(lora_info),
      "lora_info($module, /, path, config=None, norms=True)\n--\n\n" },
    { "lora_merge", PYSFT_KEYWORDS(lora_merge),
      "lora_merge($module, /, model, adapters, output, *, dora=0, stochastic=None,\n"
      " ignore_unmatched=False, overwrite=False, sync=True, threads=0, progress=None,\n"
      " dry_run=False, in_place_unsafe=False)\n--\n\n" },
    { "lora_factors", PYSFT_KEYWORDS(lora_factors),
      "lora_factors($module, /, verb, inputs, output, *, rank=0, conv_rank=0, rule=0, value=0.0,\n"
      " kohya=False, dtype=None, norms=False, names=0, min_diff=0.0, clamp_quantile=0.0,\n"
      " ignore_unmatched=False, dry_run=False, overwrite=False, sync=True, threads=0,\n"
      " progress=None, architecture=None, in_place_unsafe=False)\n--\n\n" },
    { "lora_convert", PYSFT_KEYWORDS(lora_convert),
      "lora_convert($module, /, path, output, to, *, architecture=None, model=None, config=None,\n"
      " ignore_unmatched=False, overwrite=False, sync=True, progress=None, dry_run=False,\n"
      " in_place_unsafe=False)\n--\n\n" },
    { NULL, NULL, 0, NULL },
};
