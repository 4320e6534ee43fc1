/* Models in other formats: opened as a File, with what there is to say of them; and saved.
 * Tests: test_import.py. */
#include "tools.h"

#include "piece.h"
#include "safetensors_import.h"

#include <string.h>

#define CAPSULE "libsafetensors._core.import"

/* ── Options ── */

/* options.as: a callable of name and dtype, which returns another dtype's name or None. Called
 * without the GIL; what it raises stays set. */
static bool dtype_as(void *ctx, const sft_spec *spec, sft_dtype *dtype) {
    PyGILState_STATE gil = PyGILState_Ensure();
    bool told = false;
    PyObject *name = PyErr_Occurred() ? NULL : pysft_text(spec->name);
    PyObject *answer = name ? PyObject_CallFunction(ctx, "Os", name,
                                                    sft_dtype_describe(spec->dtype)->name)
                            : NULL;
    if (answer && answer != Py_None) told = pysft_dtype_of(answer, dtype) == 0;
    Py_XDECREF(answer);
    Py_XDECREF(name);
    PyGILState_Release(gil);
    return told;
}

/* The number of a word; 0 of none. */
static int choose(PyObject *text, const char *what, const char *const *names, int *out) {
    *out = 0;
    return text && text != Py_None ? pysft_choice_of(text, what, names, out) : 0;
}

/* ── Opening ── */

static void drop_capsule(PyObject *capsule) {
    pysft_store_drop(PyCapsule_GetPointer(capsule, CAPSULE));
}

static const pysft_store *store_of(PyObject *capsule) {
    return PyCapsule_GetPointer(capsule, CAPSULE);
}

static PyObject *report_of(pysft_state *state, const pysft_store *store) {
    const char *path = pysft_store_path(store);
    pysft_job job;
    (void)pysft_job_begin(&job, NULL);
    PYSFT_NO_GIL(job.code = sft_import_json(pysft_store_imported(store), path, &job.out, &job.err));
    return pysft_job_text(&job, state, path);
}

/* (File, capsule, report); consumes the store. */
static PyObject *opened(pysft_state *state, pysft_store *store) {
    PyObject *report = report_of(state, store), *capsule = NULL, *file = NULL, *all = NULL;
    if (report) capsule = PyCapsule_New(pysft_store_hold(store), CAPSULE, drop_capsule);
    if (report && !capsule) pysft_store_drop(store);
    if (capsule) file = pysft_file_new(state, store, NULL);
    else pysft_store_drop(store);
    if (file) all = PyTuple_Pack(3, file, capsule, report);
    Py_XDECREF(file);
    Py_XDECREF(capsule);
    Py_XDECREF(report);
    return all;
}

static PyObject *core_open_import(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "path",  "root",         "all",       "skip",       "shared",
                             "quantised", "sparse",   "dequantised", "as_",      "strip_prefix",
                             "separator", "max_output", "scalars", NULL };
    static const char *const sharing[] = { "alias", "copy", "refuse", NULL };
    static const char *const quantising[] = { "refuse", "parts", "values", NULL };
    static const char *const sparseness[] = { "refuse", "parts", "dense", NULL };
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    PyObject *path, *shared = NULL, *quantised = NULL, *sparse = NULL, *dequantised = NULL;
    PyObject *as = NULL, *most = NULL;
    int all = 0, skip = 0, scalars = 0, keep, integers, lists;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$zppOOOOOzzOp:open_import", names, &path,
                                     &options.root, &all, &skip, &shared, &quantised, &sparse,
                                     &dequantised, &as, &options.strip_prefix, &options.separator,
                                     &most, &scalars)
        || choose(shared, "shared", sharing, &keep) < 0
        || choose(quantised, "quantised", quantising, &integers) < 0
        || choose(sparse, "sparse", sparseness, &lists) < 0
        || (dequantised && pysft_dtype_of(dequantised, &options.dequantised) < 0)
        || (most && most != Py_None && pysft_uint_of(most, &options.max_output) < 0))
        return NULL;
    options.shared = (sft_import_shared_mode)keep;
    options.quantised = (sft_import_special)integers;
    options.sparse = (sft_import_special)lists;
    if (as && as != Py_None) options.as = dtype_as;
    options.as_ctx = as;
    options.all = all != 0;
    options.skip = skip != 0;
    options.scalars = scalars != 0;
    pysft_state *state = pysft_state_of(module);
    pysft_store *store = pysft_store_import(state, path, &options);
    return store ? opened(state, store) : NULL;
}

static PyObject *core_recognise(PyObject *module, PyObject *object) {
    sft_error err = SFT_ERROR_INIT;
    sft_import_format format;
    pysft_path path;
    sft_code code;
    if (pysft_input_of(pysft_state_of(module), object, &path) < 0) return NULL;
    PYSFT_NO_GIL(code = sft_import_recognise(path.text, pysft_remote_files(path.remote), &format,
                                             &err));
    PyObject *name = NULL;
    if (code) name = pysft_raise(pysft_state_of(module), &err, path.text);
    else if (format == SFT_IMPORT_NONE) name = Py_NewRef(Py_None);
    else name = PyUnicode_FromString(sft_import_format_describe(format)->name);
    pysft_path_free(&path);
    return name;
}

/* ── Saving ── */

static PyObject *run_import(pysft_state *state, const pysft_store *store, const char *output,
                            const sft_path_options *options, PyObject *progress) {
    pysft_job job;
    if (pysft_job_begin(&job, progress) < 0) return NULL;
    const sft_import *import = pysft_store_imported(store);
    sft_sink sink;
    bool begun = !output;
    Py_BEGIN_ALLOW_THREADS
    if (output) {
        job.code = sft_sink_path(output, options, &sink, &job.err);
        begun = !job.code;
        if (begun) job.code = sft_import_save(import, sink, NULL, &job.job, &job.err);
    } else {
        job.code = sft_import_verify(import, &job.job, &job.err);
    }
    Py_END_ALLOW_THREADS
    const sft_code code = job.code;
    if (pysft_job_end(&job) == 0) Py_RETURN_NONE;
    bool of_output = !begun || code == SFT_IO_WRITE || code == SFT_IO_SYNC
                     || code == SFT_IO_PUBLISH || code == SFT_EXISTS || code == SFT_IS_LINK;
    return pysft_raise(state, &job.err, of_output ? output : pysft_store_path(store));
}

static PyObject *core_import_save(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "capsule", "output", "overwrite", "sync", "progress", NULL };
    PyObject *capsule, *output, *progress = NULL, *done = NULL;
    int overwrite = 0, sync = 1;
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    pysft_path path;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$ppO:import_save", names, &capsule,
                                     &output, &overwrite, &sync, &progress))
        return NULL;
    const pysft_store *store = store_of(capsule);
    if (!store || pysft_output_of(output, &path) < 0) return NULL;
    const char *from = pysft_store_path(store);
    options.no_sync = !sync;
    options.no_clobber = !overwrite;
    if (from && !pysft_path_is(from, "isfile")) from = NULL;
    if (pysft_inherit(from, path.text, false, &options) == 0)
        done = run_import(pysft_state_of(module), store, path.text, &options, progress);
    pysft_path_free(&path);
    return done;
}

static PyObject *core_import_verify(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "capsule", "progress", NULL };
    PyObject *capsule, *progress = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O:import_verify", names, &capsule,
                                     &progress))
        return NULL;
    const pysft_store *store = store_of(capsule);
    return store ? run_import(pysft_state_of(module), store, NULL, NULL, progress) : NULL;
}

PyMethodDef pysft_import_functions[] = {
    { "open_import", PYSFT_KEYWORDS(core_open_import),
      "open_import($module, /, path, *, root=None, all=False, skip=False, shared='alias',\n"
      "            quantised='refuse', sparse='refuse', dequantised='F16', as_=None,\n"
      "            strip_prefix=None, separator=None, max_output=None, scalars=False)\n--\n\n" },
    { "recognise", core_recognise, METH_O, "recognise($module, path, /)\n--\n\n" },
    { "import_save", PYSFT_KEYWORDS(core_import_save),
      "import_save($module, /, capsule, output, *, overwrite=False, sync=True,\n"
      "            progress=None)\n--\n\n" },
    { "import_verify", PYSFT_KEYWORDS(core_import_verify),
      "import_verify($module, /, capsule, *, progress=None)\n--\n\n" },
    { NULL, NULL, 0, NULL },
};
