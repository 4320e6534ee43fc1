/* Changes metadata and tensor names of an existing file. Tests: test_edit.py. */
#include "specs.h"
#include "safetensors_edit.h"
#include "safetensors_index.h"

#include <string.h>

typedef struct edit_call {
    pysft_state *state;
    pysft_path path, output; /* output.text is NULL to edit in place */
    pysft_pairs set, rename;
    pysft_names removed;
    pysft_parts put;
    sft_edit_options options;
    sft_path_options saving;
    bool dry_run;
    sft_edit_report report;
} edit_call;

/* ── The changes ── */

/* The file's tensor must have the dtype and shape of the new one. */
static sft_code put_tensor(const edit_call *call, sft_edit *edit, size_t i, sft_error *err) {
    const sft_spec *spec = &call->put.specs.items[i];
    const sft_tensor *old = sft_file_find(sft_edit_file(edit), spec->name);
    bool fits = old && old->dtype == spec->dtype && old->rank == spec->rank;
    for (uint32_t d = 0; fits && d < spec->rank; d++) fits = old->shape[d] == spec->shape[d];
    if (old && !fits)
        return pysft_error_tensor(err, SFT_SIZE_MISMATCH, spec->name,
                                  "expected the dtype and shape that the file has, found others");
    return sft_edit_put(edit, spec->name, &call->put.sources[i], err);
}

static sft_code ask_changes(const edit_call *call, sft_edit *edit, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < call->removed.count; i++)
        code = sft_edit_remove(edit, call->removed.items[i], err);
    for (size_t i = 0; !code && i < call->set.count; i++)
        code = sft_edit_set(edit, call->set.at[i].key, call->set.at[i].value, err);
    for (size_t i = 0; !code && i < call->rename.count; i++)
        code = sft_edit_rename(edit, call->rename.at[i].key, call->rename.at[i].value, err);
    for (size_t i = 0; !code && i < call->put.specs.count; i++)
        code = put_tensor(call, edit, i, err);
    return code;
}

/* ── Applying them ── */

static PyObject *apply_edit(edit_call *call, sft_edit *edit, PyObject *progress) {
    const char *output = call->output.text;
    sft_edit_report *report = &call->report;
    pysft_job job;
    if (pysft_job_begin(&job, progress) < 0) return NULL;
    job.code = ask_changes(call, edit, &job.err);
    if (job.code) return pysft_raise(call->state, &job.err, call->path.text);
    Py_BEGIN_ALLOW_THREADS
    if (call->dry_run) job.code = sft_edit_plan(edit, report, &job.err);
    else if (output)
        job.code = sft_edit_save(edit, output, &call->saving, &job.job, report, &job.err);
    else job.code = sft_edit_apply(edit, &job.job, report, &job.err);
    Py_END_ALLOW_THREADS
    if (pysft_job_done(&job, call->state, output ? output : call->path.text) < 0) return NULL;
    return Py_BuildValue("{ss,sK,sK,sK,sK}",
                         "method", sft_edit_method_name(report->method),
                         "header_before", (unsigned long long)report->header_before,
                         "header_after", (unsigned long long)report->header_after,
                         "spare", (unsigned long long)report->spare,
                         "file_after", (unsigned long long)report->file_after);
}

static PyObject *run_edit(edit_call *call, PyObject *progress) {
    sft_error err = SFT_ERROR_INIT;
    sft_edit *edit = NULL;
    sft_code code;
    call->options.open = &pysft_opening;
    PYSFT_NO_GIL(code = sft_edit_open(call->path.text, &call->options, &edit, &err));
    if (code) return pysft_raise(call->state, &err, call->path.text);
    PyObject *done = NULL;
    bool copies = call->output.text && !call->dry_run;
    if (!copies || pysft_inherit(call->path.text, call->output.text, call->options.keep_mtime,
                                 &call->saving) == 0)
        done = apply_edit(call, edit, progress);
    sft_edit_close(edit);
    return done;
}

/* ── An index ── */

/* The pairs to set, then the keys to remove (without a value) that are not set; NULL with an
 * exception. */
static sft_pair *index_pairs(const edit_call *call, size_t *count) {
    sft_pair *pairs = PyMem_Calloc(call->set.count + call->removed.count + 1, sizeof *pairs);
    if (!pairs) return (void *)PyErr_NoMemory();
    if (call->set.count) memcpy(pairs, call->set.at, call->set.count * sizeof *pairs);
    *count = call->set.count;
    for (size_t i = 0; i < call->removed.count; i++) {
        sft_span key = call->removed.items[i];
        bool is_set = false;
        for (size_t k = 0; k < *count; k++) is_set |= sft_span_equal(pairs[k].key, key);
        if (!is_set) pairs[(*count)++].key = key;
    }
    return pairs;
}

static PyObject *run_index(edit_call *call) {
    sft_index_changes changes = SFT_INDEX_CHANGES_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    bool changed = false;
    if (call->put.specs.count)
        return pysft_raise_code(call->state, SFT_BAD_ARGUMENT,
                                "expected one file whose tensors to replace, found an index",
                                call->path.text);
    if (call->rename.count)
        return pysft_raise_code(call->state, SFT_BAD_ARGUMENT,
                                "expected one file whose tensors to rename, found an index, which "
                                "the command \"safetensors rename\" takes",
                                call->path.text);
    const char *target = call->output.text ? call->output.text : call->path.text;
    if (pysft_inherit(call->path.text, target, call->options.keep_mtime, &call->saving) < 0)
        return NULL;
    sft_pair *pairs = index_pairs(call, &changes.metadata_count);
    if (!pairs) return NULL;
    changes.metadata = pairs;
    changes.dry_run = call->dry_run;
    if (!call->output.text) call->saving.no_clobber = false;
    PYSFT_NO_GIL(code = sft_index_rewrite(call->path.text, &changes, call->output.text,
                                          &call->saving, &changed, &err));
    PyMem_Free(pairs);
    if (code) return pysft_raise(call->state, &err, target);
    return Py_BuildValue("{ss}", "method", changed ? "copy" : "none");
}

/* ── The functions ── */

static int edit_begin(edit_call *call, PyObject *path, PyObject *set, PyObject *removed,
                      PyObject *rename, PyObject *output) {
    if (pysft_is_url(path)) return pysft_output_of(path, &call->path);
    if (pysft_model_path_of(call->state, path, &call->path) < 0) return -1;
    if (output && output != Py_None && pysft_output_of(output, &call->output) < 0) return -1;
    if (pysft_pairs_of(set, "set", &call->set) < 0) return -1;
    if (removed && removed != Py_None && pysft_names_of(removed, "remove", &call->removed) < 0)
        return -1;
    return pysft_pairs_of(rename, "rename", &call->rename);
}

static PyObject *edit(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "path", "set", "remove", "rename", "output", "safe", "sync",
                             "keep_mtime", "force", "link", "dry_run", "progress", "put",
                             "in_place_unsafe", NULL };
    PyObject *path, *set = NULL, *removed = NULL, *rename = NULL, *output = NULL, *link = NULL;
    PyObject *progress = NULL, *put = NULL, *done = NULL;
    int safe = 0, sync = 1, keep_mtime = 0, force = 0, dry_run = 0, in_place_unsafe = 0;
    edit_call call = { .state = pysft_state_of(module), .options = SFT_EDIT_OPTIONS_INIT,
                       .saving = SFT_PATH_OPTIONS_INIT };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOOppppOpOOp:edit", words, &path, &set,
                                     &removed, &rename, &output, &safe, &sync, &keep_mtime,
                                     &force, &link, &dry_run, &progress, &put, &in_place_unsafe)
        || pysft_link_of(link, &call.options.link) < 0)
        return NULL;
    call.options.safe = safe != 0;
    call.options.no_sync = call.saving.no_sync = !sync;
    call.options.in_place_unsafe = call.saving.in_place_unsafe = in_place_unsafe != 0;
    call.options.keep_mtime = keep_mtime != 0;
    call.options.force = force != 0;
    call.options.no_recover = dry_run != 0;
    call.saving.link = call.options.link;
    call.saving.no_clobber = !force;
    call.dry_run = dry_run != 0;
    if (edit_begin(&call, path, set, removed, rename, output) == 0
        && (!put || pysft_parts_take(call.state, put, false, &call.put))) {
        /* The input is not changed, so its hard links and symbolic links do not matter. */
        if (call.output.text) call.options.force = true;
        if (call.output.text) call.options.link = SFT_LINK_FOLLOW;
        done = sft_path_is_index(call.path.text) ? run_index(&call) : run_edit(&call, progress);
    }
    pysft_path_free(&call.path);
    pysft_path_free(&call.output);
    pysft_pairs_free(&call.set);
    pysft_pairs_free(&call.rename);
    pysft_names_free(&call.removed);
    pysft_parts_drop(&call.put);
    return done;
}

static PyObject *recover(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "path", "force", "sync", NULL };
    static const char *const states[] = { "clean", "old", "new" };
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_edit_found found = SFT_EDIT_CLEAN;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    PyObject *target, *done;
    int force = 0, sync = 1;
    pysft_path path;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$pp:recover", words, &target, &force, &sync)
        || pysft_output_of(target, &path) < 0)
        return NULL;
    options.force = force != 0;
    options.no_sync = !sync;
    PYSFT_NO_GIL(code = sft_edit_recover(path.text, &options, &found, &err));
    done = code ? pysft_raise(pysft_state_of(module), &err, path.text)
                : PyUnicode_FromString(states[found]);
    pysft_path_free(&path);
    return done;
}

PyMethodDef pysft_edit_functions[] = {
    { "edit", PYSFT_KEYWORDS(edit),
      "edit($module, /, path, *, set=None, remove=(), rename=None, output=None,\n"
      " safe=False, sync=True, keep_mtime=False, force=False, link='replace',\n"
      " dry_run=False, progress=None, put=(), in_place_unsafe=False)\n--\n\n" },
    { "recover", PYSFT_KEYWORDS(recover),
      "recover($module, /, path, *, force=False, sync=True)\n--\n\n" },
    { NULL, NULL, 0, NULL },
};
