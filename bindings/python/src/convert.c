/* Converts models and elements to other dtypes. Tests: test_tools.py. */
#include "specs.h"

#include "host.h"

#include "safetensors_convert.h"
#include "safetensors_report.h"

#include <stdlib.h>
#include <string.h>

/* ── Selected names ── */

static int compare_spans(const void *a, const void *b) {
    const sft_span *x = a, *y = b;
    size_t len = x->len < y->len ? x->len : y->len;
    int way = len > 0 ? memcmp(x->data, y->data, len) : 0;
    return way ? way : (x->len > y->len) - (x->len < y->len);
}

static bool is_wanted(void *ctx, const sft_tensor *tensor) {
    const pysft_names *names = ctx;
    return names->count > 0
           && bsearch(&tensor->name, names->items, names->count, sizeof *names->items,
                      compare_spans);
}

/* Sorted, for bsearch. */
static int wanted_of(pysft_state *state, const pysft_store *store, PyObject *names,
                     pysft_names *out) {
    sft_error err = SFT_ERROR_INIT;
    if (pysft_names_of(names, "names", out) < 0) return -1;
    for (size_t i = 0; i < out->count; i++) {
        if (sft_set_find(pysft_store_set(store), out->items[i], NULL)) continue;
        pysft_error_tensor(&err, SFT_TENSOR_NOT_FOUND, out->items[i],
                           "expected a tensor of the model, found none of that name");
        return pysft_fail(state, &err, pysft_store_path(store));
    }
    qsort(out->items, out->count, sizeof *out->items, compare_spans);
    return 0;
}

/* ── A model ── */

typedef struct convert_call {
    pysft_state *state;
    pysft_store *store;
    pysft_names names;
    sft_convert_options options;
    sft_dtype to;
    pysft_path output;
    sft_path_options path;
    bool dry_run;
} convert_call;

static bool ends_with(const char *text, const char *end) {
    size_t len = strlen(text), tail = strlen(end);
    return len > tail && strcmp(text + len - tail, end) == 0;
}

bool pysft_stays_set(const sft_set *set, const char *output, char stem[PYSFT_STEM],
                     sft_save_set_options *options) {
    if (sft_set_shard_count(set) < 2 || ends_with(output, ".safetensors")
        || ends_with(output, ".sft"))
        return false;
    const char *index = sft_set_index_path(set);
    const char *name = index ? pysft_host_base_name(index) : "";
    const char *end = strstr(name, ".safetensors.index");
    const size_t len = end ? (size_t)(end - name) : 0;
    *options = (sft_save_set_options)SFT_SAVE_SET_OPTIONS_INIT;
    if (len == 0 || len >= PYSFT_STEM) return true;
    memcpy(stem, name, len);
    stem[len] = '\0';
    options->stem = stem;
    return true;
}

/* No GIL. */
static sft_code save_model(const convert_call *call, sft_conversion *conversion,
                           const sft_job *job, sft_error *err) {
    sft_save_set_options options;
    sft_sink sink;
    char stem[PYSFT_STEM];
    const sft_set *set = pysft_store_set(call->store);
    sft_path_options path = call->path;
    if (pysft_stays_set(set, call->output.text, stem, &options)) {
        options.no_sync = path.no_sync;
        options.in_place_unsafe = path.in_place_unsafe;
        return sft_conversion_save_set(conversion, call->output.text, &options, job, err);
    }
    path.mode = sft_set_output_mode(set, call->output.text);
    sft_code code = sft_sink_path(call->output.text, &path, &sink, err);
    return code ? code : sft_conversion_save(conversion, sink, job, err);
}

static unsigned long long action_count(const sft_conversion *conversion,
                                       sft_convert_action action) {
    return sft_conversion_count(conversion, action);
}

static unsigned long long lost_count(const sft_conversion *conversion, sft_convert_loss what) {
    return sft_conversion_lost(conversion, SIZE_MAX, what);
}

static PyObject *totals_dict(const sft_conversion *c) {
    return Py_BuildValue("{sK,sK,sK,sK,sK,sK,sK,sK,sK,sK,s{sK,sK,sK,sK}}",
                         "cast", action_count(c, SFT_CONVERT_CAST),
                         "same", action_count(c, SFT_CONVERT_SAME),
                         "other", action_count(c, SFT_CONVERT_OTHER),
                         "scaled", action_count(c, SFT_CONVERT_SCALED),
                         "scale", action_count(c, SFT_CONVERT_SCALE),
                         "dequantize", action_count(c, SFT_CONVERT_DEQUANTIZE),
                         "drop", action_count(c, SFT_CONVERT_DROP),
                         "kept", action_count(c, SFT_CONVERT_KEPT),
                         "bytes_before", (unsigned long long)sft_conversion_bytes_before(c),
                         "bytes_after", (unsigned long long)sft_conversion_bytes_after(c), "lost",
                         "values", lost_count(c, SFT_LOSS_OF), "zero", lost_count(c, SFT_LOSS_ZERO),
                         "infinite", lost_count(c, SFT_LOSS_INFINITE),
                         "saturated", lost_count(c, SFT_LOSS_SATURATED));
}

static PyObject *run_convert(const convert_call *call, uint32_t threads, PyObject *progress) {
    const sft_set *set = pysft_store_set(call->store);
    sft_conversion *conversion = NULL;
    PyObject *done = NULL;
    pysft_job job;
    if (pysft_job_begin(&job, progress) < 0) return NULL;
    job.job.threads = threads;
    Py_BEGIN_ALLOW_THREADS
    job.code = sft_conversion_new(set, call->to, &call->options, &conversion, &job.err);
    if (!job.code && !call->dry_run)
        job.code = save_model(call, conversion, &job.job, &job.err);
    Py_END_ALLOW_THREADS
    const sft_code code = job.code;
    bool of_input = code == SFT_CAST_VALUE || code == SFT_CAST_DTYPE || code == SFT_IO_READ
                    || code == SFT_IO_SHRUNK || code == SFT_SIZE_PARTIAL_BYTE;
    const char *path = of_input ? pysft_store_path(call->store) : call->output.text;
    if (pysft_job_done(&job, call->state, path) == 0) done = totals_dict(conversion);
    sft_conversion_free(conversion);
    return done;
}

static PyObject *convert(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "path", "output", "dtype", "names", "saturate", "overrule_scales",
                             "overwrite", "sync", "threads", "progress", "dequantize", "lossy",
                             "dry_run", "in_place_unsafe", NULL };
    PyObject *path, *output, *dtype, *names = NULL, *progress = NULL, *done = NULL;
    int saturate = 0, overrule = 0, overwrite = 0, sync = 1, asked = 1, dequantize = 0;
    int lossy = 0, dry_run = 0, in_place_unsafe = 0;
    uint32_t threads;
    convert_call call = { .state = pysft_state_of(module), .options = SFT_CONVERT_OPTIONS_INIT,
                          .path = SFT_PATH_OPTIONS_INIT };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|$OppppiOpppp:convert", words, &path,
                                     &output, &dtype, &names, &saturate, &overrule, &overwrite,
                                     &sync, &asked, &progress, &dequantize, &lossy, &dry_run,
                                     &in_place_unsafe)
        || pysft_threads_of(asked, &threads) < 0 || pysft_dtype_of(dtype, &call.to) < 0)
        return NULL;
    call.options.saturate = saturate != 0;
    call.options.scaled = overrule != 0;
    call.options.dequantize = dequantize != 0;
    call.options.lossy = lossy != 0;
    call.dry_run = dry_run != 0;
    pysft_path_flags(&call.path, sync, overwrite, in_place_unsafe);
    bool ready = pysft_output_of(output, &call.output) == 0;
    if (ready) call.store = pysft_model_open(call.state, path);
    ready = ready && call.store;
    if (ready) call.options.files = pysft_store_files(call.store);
    ready = ready
            && pysft_inherit(pysft_store_files(call.store)
                                 ? NULL : sft_set_shard_path(pysft_store_set(call.store), 0),
                             call.output.text, false, &call.path) == 0;
    if (ready && names && names != Py_None) {
        ready = wanted_of(call.state, call.store, names, &call.names) == 0;
        call.options.match = is_wanted;
        call.options.match_ctx = &call.names;
    }
    if (ready) done = run_convert(&call, threads, progress);
    pysft_names_free(&call.names);
    pysft_store_drop(call.store);
    pysft_path_free(&call.output);
    return done;
}

/* ── Elements ── */

/* How many elements that many bytes hold, and the bytes they take after the cast. */
static int cast_sizes(pysft_state *state, size_t bytes, sft_dtype from, sft_dtype to,
                      uint64_t *count, Py_ssize_t *out) {
    uint64_t from_bits = sft_dtype_describe(from)->bits, to_bits = sft_dtype_describe(to)->bits;
    if (bytes > (size_t)PY_SSIZE_T_MAX / 16) return pysft_no_memory();
    *count = (uint64_t)bytes * 8 / from_bits;
    *out = (Py_ssize_t)(*count * to_bits / 8);
    if (*count * from_bits == (uint64_t)bytes * 8 && *count * to_bits % 8 == 0) return 0;
    pysft_raise_code(state, SFT_SIZE_PARTIAL_BYTE,
                     "expected elements that fill whole bytes in both dtypes", NULL);
    return -1;
}

static PyObject *cast_view(pysft_state *state, const Py_buffer *view, sft_dtype from,
                           sft_dtype to, bool saturate) {
    uint32_t from_bits = sft_dtype_describe(from)->bits, to_bits = sft_dtype_describe(to)->bits;
    sft_cast_options options = SFT_CAST_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    uint64_t count;
    Py_ssize_t bytes;
    options.saturate = saturate;
    if (cast_sizes(state, (size_t)view->len, from, to, &count, &bytes) < 0) return NULL;
    PyObject *out = PyByteArray_FromStringAndSize(NULL, bytes);
    if (!out) return NULL;
    char *at = PyByteArray_AsString(out);
    const char *in = view->buf;
    const uint64_t part = UINT64_C(4) << 20; /* elements, of whole bytes */
    int rc = 0;
    code = SFT_OK;
    for (uint64_t done = 0; rc == 0 && !code && done < count; done += part) {
        uint64_t now = count - done < part ? count - done : part;
        Py_BEGIN_ALLOW_THREADS
        code = sft_cast(from, in + done / 8 * from_bits, to, at + done / 8 * to_bits, now,
                        &options, NULL, &err);
        Py_END_ALLOW_THREADS
        rc = PyErr_CheckSignals();
    }
    if (rc == 0 && !code) return out;
    Py_DECREF(out);
    return pysft_raise(state, &err, NULL);
}

static PyObject *cast(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "data", "source", "target", "saturate", NULL };
    PyObject *data, *source, *target;
    int saturate = 0;
    sft_dtype from, to;
    Py_buffer view;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|p:cast", words, &data, &source, &target,
                                     &saturate)
        || pysft_dtype_of(source, &from) < 0 || pysft_dtype_of(target, &to) < 0)
        return NULL;
    if (!pysft_elements_take(pysft_state_of(module), data, PyBUF_CONTIG_RO, from,
                             (sft_span){ NULL, 0 }, &view))
        return NULL;
    PyObject *out = cast_view(pysft_state_of(module), &view, from, to, saturate != 0);
    PyBuffer_Release(&view);
    return out;
}

/* ── The module ── */

PyMethodDef pysft_convert_functions[] = {
    { "convert", PYSFT_KEYWORDS(convert),
      "convert($module, /, path, output, dtype, *, names=None, saturate=False,\n"
      " overrule_scales=False, overwrite=False, sync=True, threads=1, progress=None,\n"
      " dequantize=False, lossy=False, dry_run=False, in_place_unsafe=False)\n--\n\n" },
    { "cast", PYSFT_KEYWORDS(cast),
      "cast($module, /, data, source, target, saturate=False)\n--\n\n"
      "Convert elements, packed as in a file; returns a bytearray." },
    { NULL, NULL, 0, NULL },
};
