/* save_file and save_bytes: tensors to a file, an object or bytes. Tests: test_save.py. */
#include "specs.h"
#include "safetensors_io.h"

#include <string.h>

/* ── A save ── */

typedef struct save_call {
    pysft_state *state;
    pysft_parts parts;
    pysft_pairs metadata;
    sft_plan_options plan;
    pysft_job job;
} save_call;

static int save_begin(save_call *call, PyObject *specs, PyObject *metadata, PyObject *progress,
                      int align, int keep_order) {
    call->plan = (sft_plan_options)SFT_PLAN_OPTIONS_INIT;
    call->plan.align = (uint32_t)align;
    call->plan.keep_order = keep_order != 0;
    call->plan.has_metadata = metadata && metadata != Py_None;
    if (pysft_pairs_of(metadata, "metadata", &call->metadata) < 0) return -1;
    if (!pysft_parts_take(call->state, specs, true, &call->parts)) return -1;
    return pysft_job_begin(&call->job, progress);
}

static void save_end(save_call *call) {
    pysft_parts_drop(&call->parts);
    pysft_pairs_free(&call->metadata);
}

/* No GIL. */
static void save_parts(save_call *call, sft_sink sink) {
    call->job.code = sft_save_parts(call->parts.items, call->parts.specs.count, call->metadata.at,
                                    call->metadata.count, &call->plan, sink, &call->job.job,
                                    &call->job.err);
}

/* ── To a file ── */

/* To a path, atomically; or to an object in order, without a file that could be replaced: what
 * fails leaves what was written. */
static PyObject *save_to(save_call *call, PyObject *target, const char *path,
                         const sft_path_options *options) {
    pysft_job *job = &call->job;
    sft_sink sink;
    Py_BEGIN_ALLOW_THREADS
    job->code = path ? sft_sink_path(path, options, &sink, &job->err)
                     : sft_sink_callback(pysft_target_write, target, NULL, &sink, &job->err);
    bool limits = !job->code && path && call->parts.mode;
    if (limits) job->code = sft_sink_limit_mode(&sink, call->parts.mode, &job->err);
    if (limits && job->code) sft_sink_abandon(&sink);
    if (!job->code) save_parts(call, pysft_sink_gather(sink));
    Py_END_ALLOW_THREADS
    if (pysft_job_done(job, call->state, path) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *save_file(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "path", "specs", "metadata", "sync", "align", "keep_order", "spare",
                             "overwrite", "link", "progress", "in_place_unsafe", NULL };
    PyObject *target, *specs, *metadata = NULL, *link = NULL, *progress = NULL, *done = NULL;
    int sync = 1, align = 8, keep_order = 0, overwrite = 1, unsafe = 0;
    long long spare = 0;
    save_call call = { .state = pysft_state_of(module) };
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    pysft_path path = { NULL, NULL, NULL };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$pipLpOOp:save_file", words, &target,
                                     &specs, &metadata, &sync, &align, &keep_order, &spare,
                                     &overwrite, &link, &progress, &unsafe))
        return NULL;
    if (spare < 0) return PyErr_Format(PyExc_ValueError, "expected spare to be 0 or more");
    pysft_path_flags(&options, sync, overwrite, unsafe);
    bool is_target = pysft_is_target(target);
    if (pysft_link_of(link, &options.link) < 0) return NULL;
    if (!is_target && pysft_output_of(target, &path) < 0) return NULL;
    if (save_begin(&call, specs, metadata, progress, align, keep_order) == 0) {
        call.plan.spare = (uint64_t)spare;
        done = save_to(&call, target, path.text, &options);
    }
    save_end(&call);
    pysft_path_free(&path);
    return done;
}

/* ── To a folder ── */

typedef struct set_call {
    save_call save;
    sft_save_set_options options;
    uint32_t *shard_of;
    uint32_t shards;
    uint64_t max_bytes; /* of a shard; 0: there are `shards` of them */
    bool given;         /* shard_of is the caller's */
} set_call;

/* As the caller says, each from 0 to the greatest. */
static int take_shards(set_call *call, PyObject *given) {
    const size_t count = call->save.parts.specs.count;
    PyObject *list = PySequence_Tuple(given);
    int status = list ? 0 : -1;
    call->given = true;
    call->shards = 1;
    if (list && (size_t)PyTuple_Size(list) != count)
        status = pysft_refuse(PyExc_ValueError, "expected a shard for each tensor, found %R",
                              given);
    for (size_t i = 0; status == 0 && i < count; i++) {
        uint64_t shard = 0;
        status = pysft_uint_of(PyTuple_GetItem(list, (Py_ssize_t)i), &shard);
        if (status == 0 && shard >= count)
            status = pysft_refuse(PyExc_ValueError, "expected shards below %zu, found %R", count,
                                  given);
        call->shard_of[i] = (uint32_t)shard;
        if (shard >= call->shards) call->shards = (uint32_t)shard + 1;
    }
    Py_XDECREF(list);
    return status;
}

/* Name, tensors and bytes of each shard. */
static PyObject *shards_list(const set_call *call) {
    PyObject *list = PyList_New(0);
    const char *stem = call->options.stem ? call->options.stem : "model";
    for (uint32_t s = 0; list && s < call->shards; s++) {
        char name[512];
        Py_ssize_t tensors = 0;
        uint64_t bytes = 0;
        if (sft_shard_name(stem, s, call->shards, name, sizeof name) >= sizeof name) name[0] = '\0';
        for (size_t i = 0; i < call->save.parts.specs.count; i++) {
            const sft_spec *spec = &call->save.parts.specs.items[i];
            uint64_t own = 0;
            if (call->shard_of[i] != s) continue;
            if (!sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &own, NULL))
                bytes += own;
            tensors++;
        }
        PyObject *file = PyUnicode_DecodeFSDefault(name);
        PyObject *row = file ? Py_BuildValue("(OnK)", file, tensors, (unsigned long long)bytes)
                             : NULL;
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
        Py_XDECREF(file);
    }
    return list;
}

static PyObject *run_set(set_call *call, const char *folder, bool dry_run) {
    pysft_job *job = &call->save.job;
    const pysft_parts *parts = &call->save.parts;
    call->options.mode = parts->mode;
    call->options.plan = &call->save.plan;
    Py_BEGIN_ALLOW_THREADS
    if (!call->given)
        job->code = sft_cut_parts(parts->items, parts->specs.count, call->max_bytes, call->shard_of,
                                  &call->shards, &job->err);
    if (!job->code && !dry_run)
        job->code = sft_save_set(folder, parts->items, call->shard_of, parts->specs.count,
                                 call->shards, call->save.metadata.at, call->save.metadata.count,
                                 &call->options, &job->job, &job->err);
    Py_END_ALLOW_THREADS
    if (pysft_job_done(job, call->save.state, folder) < 0) return NULL;
    return shards_list(call);
}

static PyObject *save_set(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "folder", "specs", "metadata", "max_bytes", "count", "shards", "stem",
                             "index_metadata", "sync", "align", "keep_order", "dry_run", "progress",
                             "in_place_unsafe", NULL };
    PyObject *folder, *specs, *metadata = NULL, *shards = NULL, *progress = NULL, *done = NULL;
    const char *index = NULL;
    int count = 0, sync = 1, align = 8, keep_order = 0, dry_run = 0, unsafe = 0;
    set_call call = { .save.state = pysft_state_of(module), .options = SFT_SAVE_SET_OPTIONS_INIT };
    pysft_path path = { NULL, NULL, NULL };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$O&iOzzpippOp:save_set", words, &folder,
                                     &specs, &metadata, pysft_uint_arg, &call.max_bytes, &count,
                                     &shards,
                                     &call.options.stem, &index, &sync, &align, &keep_order,
                                     &dry_run, &progress, &unsafe)
        || pysft_output_of(folder, &path) < 0)
        return NULL;
    call.options.no_sync = !sync;
    call.options.in_place_unsafe = unsafe != 0;
    if (index) call.options.index_metadata = sft_span_cstr(index);
    if (save_begin(&call.save, specs, metadata, progress, align, keep_order) == 0) {
        call.shard_of = PyMem_Calloc(call.save.parts.specs.count + 1, sizeof *call.shard_of);
        call.shards = (uint32_t)count;
        int ready = !call.shard_of ? pysft_no_memory()
                  : shards && shards != Py_None ? take_shards(&call, shards) : 0;
        if (ready == 0) done = run_set(&call, path.text, dry_run != 0);
    }
    PyMem_Free(call.shard_of);
    save_end(&call.save);
    pysft_path_free(&path);
    return done;
}

/* ── To bytes ── */

/* The bytes object is allocated at the file's size and filled in place. */
typedef struct bytes_sink {
    PyObject *bytes;
    char *at;
    uint64_t size;
} bytes_sink;

static sft_code expect_bytes(void *ctx, uint64_t total, sft_error *err) {
    bytes_sink *sink = ctx;
    PyGILState_STATE gil = PyGILState_Ensure();
    if (total <= (uint64_t)PY_SSIZE_T_MAX)
        sink->bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (sink->bytes) sink->at = PyBytes_AsString(sink->bytes);
    PyGILState_Release(gil);
    sink->size = total;
    if (sink->at) return SFT_OK;
    return sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "expected memory for all bytes, found less");
}

static sft_code write_bytes(void *ctx, uint64_t offset, const void *bytes, size_t len,
                            sft_error *err) {
    const bytes_sink *sink = ctx;
    if (offset > sink->size || len > sink->size - offset)
        return sft_error_set(err, SFT_BUFFER_SIZE, 0, "expected no more bytes, found some");
    if (len > 0) memcpy(sink->at + offset, bytes, len);
    return SFT_OK;
}

static sft_code finish_bytes(void *ctx, sft_error *err) {
    (void)ctx, (void)err;
    return SFT_OK;
}

static void abandon_bytes(void *Py_UNUSED(ctx)) {
}

static const sft_sink_vtable bytes_sink_vtable = {
    sizeof(sft_sink_vtable), expect_bytes, write_bytes, finish_bytes, abandon_bytes, NULL, NULL
};

static PyObject *save_to_bytes(save_call *call) {
    bytes_sink bytes = { NULL, NULL, 0 };
    sft_sink sink = { &bytes, &bytes_sink_vtable, true };
    PYSFT_NO_GIL(save_parts(call, sink));
    if (pysft_job_done(&call->job, call->state, NULL) == 0) return bytes.bytes;
    Py_XDECREF(bytes.bytes);
    return NULL;
}

static PyObject *save_bytes(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "specs", "metadata", "align", "keep_order", NULL };
    PyObject *specs, *metadata = NULL, *done = NULL;
    int align = 8, keep_order = 0;
    save_call call = { .state = pysft_state_of(module) };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$ip:save_bytes", words, &specs, &metadata,
                                     &align, &keep_order))
        return NULL;
    if (save_begin(&call, specs, metadata, NULL, align, keep_order) == 0)
        done = save_to_bytes(&call);
    save_end(&call);
    return done;
}

/* ── The module ── */

PyMethodDef pysft_save_functions[] = {
    { "save_file", PYSFT_KEYWORDS(save_file),
      "save_file($module, /, path, specs, metadata=None, *, sync=True, align=8,\n"
      " keep_order=False, spare=0, overwrite=True, link='replace', progress=None,\n"
      " in_place_unsafe=False)\n--\n\n" },
    { "save_bytes", PYSFT_KEYWORDS(save_bytes),
      "save_bytes($module, /, specs, metadata=None, *, align=8, keep_order=False)\n--\n\n" },
    { "save_set", PYSFT_KEYWORDS(save_set),
      "save_set($module, /, folder, specs, metadata=None, *, max_bytes=0, count=0,\n"
      " shards=None, stem=None, index_metadata=None, sync=True, align=8, keep_order=False,\n"
      " dry_run=False, progress=None, in_place_unsafe=False)\n--\n\n" },
    { NULL, NULL, 0, NULL },
};
