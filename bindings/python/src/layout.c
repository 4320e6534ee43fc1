/* Models in another layout. Tests: test_layout.py. */
#include "specs.h"

#include "safetensors_layout.h"
#include "safetensors_report.h"

#include <stdlib.h>

#define SETS_MOST 64

typedef struct layout_call {
    pysft_state *state;
    pysft_store *stores[SETS_MOST];
    size_t count;
    sft_layout_options options;
    pysft_path output;
    sft_path_options path;
    bool dry_run;
} layout_call;

static bool open_components(layout_call *call, PyObject *paths) {
    Py_ssize_t count = PyTuple_Size(paths);
    if (count > SETS_MOST) {
        PyErr_Format(PyExc_ValueError, "expected at most %d files of a model, found %zd", SETS_MOST,
                     count);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        pysft_store *store = pysft_model_open(call->state, PyTuple_GetItem(paths, i));
        if (!store) return false;
        call->stores[call->count++] = store;
        const sft_files *files = pysft_store_files(store);
        if (files) call->options.files = files;
        uint32_t mode = sft_set_output_mode(pysft_store_set(store), NULL);
        call->path.mode = call->path.mode && mode ? call->path.mode & mode
                        : mode ? mode : call->path.mode;
    }
    return true;
}

static PyObject *span_text(sft_span span) {
    return PyUnicode_DecodeUTF8(span.data, (Py_ssize_t)span.len, "surrogateescape");
}

static PyObject *text_or_none(sft_span span) {
    return span.len ? span_text(span) : Py_NewRef(Py_None);
}

static PyObject *component_dict(const layout_call *call, const sft_layout_component *one) {
    return Py_BuildValue("{sN,sN,ss,sN,sn,sn,sn,sO}", "name", span_text(one->name), "layout",
                         span_text(one->layout), "was", one->diffusers ? "diffusers" : "original",
                         "path",
                         pysft_store_name(call->stores[one->set]),
                         "tensors_before", (Py_ssize_t)one->tensors_before, "tensors",
                         (Py_ssize_t)one->tensors, "kept", (Py_ssize_t)one->kept, "config",
                         one->config.len ? Py_True : Py_False);
}

static PyObject *told_dict(const layout_call *call, const sft_layout_conversion *conversion) {
    const sft_layout_facts *told = sft_layout_conversion_told(conversion);
    PyObject *components = PyList_New(0), *files = PyList_New(0), *unmatched = PyList_New(0),
             *lost = PyList_New(0), *needs = PyList_New(0);
    bool fine = components && files && unmatched && lost && needs, is_lost;
    const sft_layout_component *one;
    const sft_layout_file *file;
    sft_span note;
    for (size_t i = 0; fine && (one = sft_layout_conversion_component_at(conversion, i)); i++)
        fine = pysft_append(components, component_dict(call, one));
    for (size_t i = 0; fine && (file = sft_layout_conversion_file_at(conversion, i)); i++)
        fine = pysft_append(files, PyUnicode_DecodeFSDefault(file->path));
    for (size_t i = 0; fine && i < told->unmatched; i++)
        fine = pysft_append(unmatched,
                      span_text(sft_layout_conversion_unmatched_at(conversion, i, NULL)));
    for (size_t i = 0;
         fine && (note = sft_layout_conversion_note_at(conversion, i, &is_lost)).len; i++)
        fine = pysft_append(is_lost ? lost : needs, span_text(note));
    if (fine)
        return Py_BuildValue("{sN,sN,sN,sN,sN,sn,sN,sN}", "architecture",
                             text_or_none(told->architecture), "pipeline",
                             text_or_none(told->pipeline), "components", components, "files", files,
                             "unmatched", unmatched, "left_out", (Py_ssize_t)told->left_out, "lost",
                             lost, "needs", needs);
    Py_XDECREF(components);
    Py_XDECREF(files);
    Py_XDECREF(unmatched);
    Py_XDECREF(lost);
    Py_XDECREF(needs);
    return NULL;
}

/* No GIL. */
static sft_code save_layout(const layout_call *call, sft_layout_conversion *conversion,
                            const sft_job *job, sft_error *err) {
    sft_save_set_options folder = SFT_SAVE_SET_OPTIONS_INIT;
    sft_sink sink;
    folder.no_sync = call->path.no_sync;
    folder.in_place_unsafe = call->path.in_place_unsafe;
    folder.mode = call->path.mode;
    if (call->options.to != SFT_LAYOUT_SINGLE)
        return sft_layout_conversion_save_folder(conversion, call->output.text, &folder, job, err);
    sft_code code = sft_sink_path(call->output.text, &call->path, &sink, err);
    return code ? code : sft_layout_conversion_save(conversion, sink, job, err);
}

static PyObject *run_layout(const layout_call *call, PyObject *progress) {
    const sft_set *sets[SETS_MOST];
    sft_layout_conversion *conversion = NULL;
    PyObject *done = NULL;
    size_t who = SIZE_MAX;
    pysft_job job;
    if (pysft_job_begin(&job, progress) < 0) return NULL;
    for (size_t i = 0; i < call->count; i++) sets[i] = pysft_store_set(call->stores[i]);
    Py_BEGIN_ALLOW_THREADS
    job.code = sft_layout_conversion_new(sets, call->count, &call->options, &conversion, &who,
                                         &job.err);
    if (!job.code && !call->dry_run)
        job.code = save_layout(call, conversion, &job.job, &job.err);
    Py_END_ALLOW_THREADS
    bool of_input = job.code == SFT_TENSOR_NOT_FOUND || job.code == SFT_IO_READ
                    || job.code == SFT_IO_SHRUNK;
    if (who >= call->count && of_input) who = 0;
    const char *path = who < call->count ? pysft_store_path(call->stores[who]) : call->output.text;
    if (pysft_job_done(&job, call->state, path) == 0) done = told_dict(call, conversion);
    sft_layout_conversion_free(conversion);
    return done;
}

static PyObject *layout(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "paths", "output", "to", "architecture", "ignore_unmatched",
                             "max_bytes", "dry_run", "overwrite", "sync", "progress",
                             "in_place_unsafe", NULL };
    PyObject *paths, *output, *progress = NULL, *done = NULL;
    int to = 0, ignore = 0, dry_run = 0, overwrite = 0, sync = 1, in_place_unsafe = 0;
    layout_call *call = calloc(1, sizeof *call);
    if (!call) return PyErr_NoMemory();
    call->state = pysft_state_of(module);
    call->options = (sft_layout_options)SFT_LAYOUT_OPTIONS_INIT;
    call->path = (sft_path_options)SFT_PATH_OPTIONS_INIT;
    bool ready = PyArg_ParseTupleAndKeywords(args, kwargs, "O!Oi|$zpO&pppOp:layout", words,
                                             &PyTuple_Type, &paths, &output, &to,
                                             &call->options.architecture, &ignore, pysft_uint_arg,
                                             &call->options.max_bytes, &dry_run, &overwrite, &sync,
                                             &progress, &in_place_unsafe);
    call->options.to = (uint32_t)to;
    call->options.ignore_unmatched = ignore != 0;
    call->dry_run = dry_run != 0;
    pysft_path_flags(&call->path, sync, overwrite, in_place_unsafe);
    ready = ready && pysft_output_of(output, &call->output) == 0 && open_components(call, paths);
    if (ready) done = run_layout(call, progress);
    for (size_t i = 0; i < call->count; i++) pysft_store_drop(call->stores[i]);
    pysft_path_free(&call->output);
    free(call);
    return done;
}

PyMethodDef pysft_layout_functions[] = {
    { "layout", PYSFT_KEYWORDS(layout),
      "layout($module, /, paths, output, to, *, architecture=None, ignore_unmatched=False,\n"
      " max_bytes=0, dry_run=False, overwrite=False, sync=True, progress=None,\n"
      " in_place_unsafe=False)\n--\n\n" },
    { NULL, NULL, 0, NULL },
};
