/* info, check, hash, diff: the library's JSON as text. fits: a verdict and its reason.
 * Tests: test_tools.py. */
#include "tools.h"

#include "remote.h"

#include "safetensors_diff.h"
#include "safetensors_hash.h"
#include "safetensors_import.h"
#include "safetensors_info.h"
#include "safetensors_scan.h"

#include <stdlib.h>
#include <string.h>

/* ── info ── */

typedef struct described {
    sft_info *info;
    sft_info_folder *folder; /* of a server: sft_info_open lists none itself */
    sft_remote_claim claim;
    sft_info_claim digest;   /* of the claim */
} described;

/* No GIL. Free with describe_end in every case. */
static sft_code describe(const pysft_store *store, bool deep, const sft_records *records,
                         described *model, sft_error *err) {
    sft_info_options options = SFT_INFO_OPTIONS_INIT;
    const char *folder = pysft_store_folder(store);
    sft_code code = SFT_OK;
    *model = (described){ .info = NULL };
    options.deep = deep;
    options.records = records;
    options.files = pysft_store_files(store);
    options.no_data = options.files && !deep; /* each alpha would be a request */
    if (pysft_store_claim(store, &model->claim) && *model->claim.sha256) {
        bool hub = strncmp(pysft_store_path(store), "hf://", 5) == 0;
        model->digest = (sft_info_claim){ "sha256", sft_span_cstr(model->claim.sha256),
                                          sft_span_cstr(hub ? "hub" : "server"), NULL };
        options.claims = &model->digest;
        options.claim_count = 1;
    }
    if (folder) code = sft_info_folder_open(folder, options.files, NULL, &model->folder, err);
    return code ? code : sft_info_open(pysft_store_set(store), pysft_store_path(store),
                                       model->folder, &options, &model->info, err);
}

static void describe_end(described *model) {
    sft_info_close(model->info);
    sft_info_folder_close(model->folder);
}

/* (text, what the server says of the file, or None). A model without a path is called "-", as in
 * the command for a pipe. */
static PyObject *info_of_store(pysft_state *state, const pysft_store *store, bool full,
                               bool deep, const sft_records *records) {
    const char *path = pysft_store_path(store);
    sft_remote_claim claim;
    described model;
    bool known;
    pysft_job job;
    (void)pysft_job_begin(&job, NULL);
    Py_BEGIN_ALLOW_THREADS
    job.code = describe(store, deep, records, &model, &job.err);
    if (!job.code)
        job.code = sft_info_json(model.info, path ? path : "-", full, &job.out, &job.err);
    describe_end(&model);
    known = pysft_store_claim(store, &claim);
    Py_END_ALLOW_THREADS
    PyObject *text = pysft_job_text(&job, state, path);
    if (!text) return NULL;
    return Py_BuildValue("(NN)", text, known ? pysft_claim_dict(&claim) : Py_NewRef(Py_None));
}

/* Bytes are the contents of a file here, not a path. */
static pysft_store *open_source(pysft_state *state, PyObject *source) {
    pysft_open_options options = PYSFT_OPEN_OPTIONS_INIT;
    bool is_path = !PyObject_CheckBuffer(source) && !pysft_is_source(source);
    options.mode = PYSFT_READ;
    return is_path ? pysft_model_open(state, source) : pysft_store_open(state, source, &options);
}

/* ── Records: a capsule ── */

#define RECORDS_NAME "libsafetensors.records"

static void free_records(PyObject *capsule) {
    sft_records_close(PyCapsule_GetPointer(capsule, RECORDS_NAME));
}

/* [(name, bytes)] */
static PyObject *open_records(PyObject *module, PyObject *args) {
    pysft_state *state = pysft_state_of(module);
    sft_error err = SFT_ERROR_INIT;
    sft_records *records = NULL;
    PyObject *list, *done = NULL;
    if (!PyArg_ParseTuple(args, "O!:open_records", &PyList_Type, &list)) return NULL;
    Py_ssize_t count = PyList_Size(list);
    sft_records_text *texts = calloc((size_t)count + 1, sizeof *texts);
    if (!texts) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *bytes;
        char *data;
        Py_ssize_t len;
        PyObject *pair = PyList_GetItem(list, i);
        if (!PyTuple_Check(pair)) {
            PyErr_SetString(PyExc_TypeError, "open_records() takes pairs of a name and bytes");
            free(texts);
            return NULL;
        }
        if (!PyArg_ParseTuple(pair, "sO!", &texts[i].name, &PyBytes_Type, &bytes)
            || PyBytes_AsStringAndSize(bytes, &data, &len) < 0) {
            free(texts);
            return NULL;
        }
        texts[i].text = (sft_span){ data, (size_t)len };
    }
    if (sft_records_open(texts, (size_t)count, NULL, &records, &err))
        (void)pysft_raise(state, &err, NULL);
    else done = PyCapsule_New(records, RECORDS_NAME, free_records);
    if (!done) sft_records_close(records);
    free(texts);
    return done;
}

static PyObject *info_json(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "source", "full", "deep", "records", NULL };
    pysft_state *state = pysft_state_of(module);
    PyObject *source, *done, *capsule = Py_None;
    sft_records *records = NULL;
    int full = 1, deep = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|ppO:info_json", words, &source, &full,
                                     &deep, &capsule))
        return NULL;
    if (capsule != Py_None && !(records = PyCapsule_GetPointer(capsule, RECORDS_NAME)))
        return NULL;
    pysft_store *store = open_source(state, source);
    if (!store) return NULL;
    done = info_of_store(state, store, full != 0, deep != 0, records);
    pysft_store_drop(store);
    return done;
}

/* ── fits ── */

#define REASON_SIZE 512

static PyObject *fits(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "a", "b", NULL };
    pysft_state *state = pysft_state_of(module);
    PyObject *a, *b, *done = NULL;
    described first, second = { .info = NULL };
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    sft_fit fit = SFT_FIT_NONE;
    char reason[REASON_SIZE] = "";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:fits", words, &a, &b)) return NULL;
    pysft_store *one = open_source(state, a), *two = one ? open_source(state, b) : NULL;
    if (two) {
        Py_BEGIN_ALLOW_THREADS
        code = describe(one, false, NULL, &first, &err);
        if (!code) code = describe(two, false, NULL, &second, &err);
        if (!code) fit = sft_info_fits(first.info, second.info, reason, sizeof reason);
        describe_end(&first);
        describe_end(&second);
        Py_END_ALLOW_THREADS
        if (code) (void)pysft_raise(state, &err, NULL);
        else done = Py_BuildValue("(sN)", sft_fit_name(fit), pysft_text(sft_span_cstr(reason)));
    }
    pysft_store_drop(one);
    pysft_store_drop(two);
    return done;
}

/* ── check ── */

static PyObject *check_json(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "path", "level", "deep", "progress", NULL };
    pysft_state *state = pysft_state_of(module);
    PyObject *target, *text = NULL, *progress = NULL, *done = NULL;
    int deep = 0;
    sft_level level;
    pysft_readable what;
    pysft_job job;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OpO:check_json", words, &target, &text,
                                     &deep, &progress)
        || pysft_level_of(text, &level) < 0 || pysft_job_begin(&job, progress) < 0)
        return NULL;
    if (pysft_readable_of(state, target, &what) == 0) {
        PYSFT_NO_GIL(job.code = pysft_check(&what, level, deep != 0, &job));
        done = pysft_job_text(&job, state, what.path.text);
    }
    pysft_path_free(&what.path);
    return done;
}

/* ── hash ── */

/* Called without the GIL. */
static bool take_hashes(void *ctx, const sft_hash_result *result) {
    pysft_job *job = ctx;
    if (result->error) {
        job->err = *result->error;
        job->code = result->error->code;
    } else {
        job->code = sft_hash_json(result, result->path, NULL, 0, &job->out, &job->err);
    }
    return true;
}

/* No GIL. */
static void hash_path(const pysft_path *path, uint32_t algos, pysft_job *job) {
    sft_hash_request ask = { path->text, algos };
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    sft_open_options open = pysft_opening;
    open.files = pysft_remote_files(path->remote);
    options.open = &open;
    options.open_other = sft_import_open_set;
    sft_code code = sft_hash_paths(&ask, 1, &options, take_hashes, job, &job->job, &job->err);
    if (code) job->code = code;
}

/* Digests of whole files alone, of what is no model. No GIL. */
static sft_code hash_bytes(const sft_source *source, sft_hash_result *result, const sft_job *job,
                           sft_error *err) {
    uint32_t algos = sft_hashes_asked(&result->hashes);
    sft_hasher *hasher = NULL;
    size_t got = 1, piece = (size_t)1 << 20;
    char *bytes = malloc(piece);
    sft_code code = bytes ? sft_hasher_new(algos, NULL, &hasher, err)
                          : sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "out of memory");
    result->bytes = 0;
    while (!code && got > 0) {
        code = sft_source_read(source, result->bytes, bytes, piece, &got, err);
        if (!code) sft_hasher_update(hasher, bytes, got);
        if (!code) result->bytes += got;
        if (!code && job->tick && !job->tick(job->ctx, result->bytes, source->size))
            code = sft_error_set(err, SFT_CANCELLED, 0, "the reading was ended");
    }
    if (!code) sft_hasher_result(hasher, &result->hashes);
    sft_hasher_free(hasher);
    free(bytes);
    return code;
}

/* A model's digests, or, if it is none, those of its bytes; *broken says why. No GIL. */
static sft_code hash_source(sft_source model, const sft_source *again, sft_hash_result *result,
                            sft_error *broken, const sft_job *job, sft_error *err) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    uint32_t algos = sft_hashes_asked(&result->hashes);
    sft_file *file = NULL;
    sft_set *set = NULL;
    options.mode = SFT_READ;
    sft_code code = sft_open_source(model, &options, &file, broken);
    if (code >= 100 && code < 300) {
        sft_diagnose(again, broken);
        if (algos & SFT_HASH_OF_MODEL) result->model_error = broken;
        return hash_bytes(again, result, job, err);
    }
    if (code) {
        *err = *broken;
        return code;
    }
    code = sft_set_from_file(file, NULL, &set, err);
    if (!code) code = sft_hash_set(set, algos, &result->hashes, job, err);
    sft_set_close(set);
    return code;
}

/* No GIL. Closes the sources. */
static void hash_object(pysft_readable *what, uint32_t algos, pysft_job *job) {
    const char *name = what->path.text;
    sft_hash_result result = { .path = name, .bytes = what->again.size,
                               .hashes = SFT_HASHES_INIT(algos) };
    sft_error broken = SFT_ERROR_INIT;
    job->code = hash_source(what->first, &what->again, &result, &broken, &job->job, &job->err);
    if (!job->code) job->code = sft_hash_json(&result, name, NULL, 0, &job->out, &job->err);
    sft_source_close(&what->again);
}

static PyObject *hash_json(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "path", "algos", "threads", "progress", NULL };
    pysft_state *state = pysft_state_of(module);
    PyObject *target, *progress = NULL, *done = NULL;
    const char *list = "sha256";
    int asked = 0;
    uint32_t algos, threads;
    pysft_readable what;
    pysft_job job;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|siO:hash_json", words, &target, &list,
                                     &asked, &progress)
        || pysft_threads_of(asked, &threads) < 0 || pysft_job_begin(&job, progress) < 0)
        return NULL;
    if (sft_hash_parse(sft_span_cstr(list), &algos, &job.err))
        return pysft_raise(state, &job.err, NULL);
    if (pysft_readable_of(state, target, &what) == 0) {
        if (!what.is_object) job.job.threads = threads;
        Py_BEGIN_ALLOW_THREADS
        if (what.is_object) hash_object(&what, algos, &job);
        else hash_path(&what.path, algos, &job);
        Py_END_ALLOW_THREADS
        done = pysft_job_text(&job, state, what.path.text);
    }
    pysft_path_free(&what.path);
    return done;
}

/* ── diff ── */

static int tolerance_of(PyObject *number, const char *what, sft_diff_options *options,
                        double *out) {
    if (!number || number == Py_None) return 0;
    options->has_tolerance = true;
    *out = PyFloat_AsDouble(number);
    if (*out == -1.0 && PyErr_Occurred()) return -1;
    if (*out >= 0 && *out - *out == 0) return 0;
    return pysft_refuse(PyExc_ValueError, "expected %s to be a number such as 1e-5, found %R", what,
                        number);
}

static PyObject *diff_json(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "a", "b", "atol", "rtol", "header", "metadata", "progress", NULL };
    pysft_state *state = pysft_state_of(module);
    PyObject *a, *b, *atol = NULL, *rtol = NULL, *progress = NULL, *done = NULL;
    int header = 0, metadata = 1;
    sft_diff_options options = SFT_DIFF_OPTIONS_INIT;
    sft_diff *diff = NULL;
    pysft_job job;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOppO:diff_json", words, &a, &b, &atol,
                                     &rtol, &header, &metadata, &progress)
        || tolerance_of(atol, "atol", &options, &options.atol) < 0
        || tolerance_of(rtol, "rtol", &options, &options.rtol) < 0)
        return NULL;
    options.header_only = header != 0;
    options.no_metadata = !metadata;
    pysft_store *one = pysft_model_open(state, a);
    pysft_store *two = one ? pysft_model_open(state, b) : NULL;
    if (two && pysft_job_begin(&job, progress) == 0) {
        const char *path = pysft_store_path(one), *other = pysft_store_path(two);
        Py_BEGIN_ALLOW_THREADS
        job.code = sft_diff_new(pysft_store_set(one), pysft_store_set(two), &options, &job.job,
                                &diff, &job.err);
        if (!job.code) job.code = sft_diff_json(diff, path, other, &job.out, &job.err);
        sft_diff_free(diff);
        Py_END_ALLOW_THREADS
        done = pysft_job_text(&job, state, path);
    }
    pysft_store_drop(one);
    pysft_store_drop(two);
    return done;
}

/* ── The module ── */

#define FUNCTION(name, text) \
    { #name, PYSFT_KEYWORDS(name), text }

PyMethodDef pysft_tools_functions[] = {
    FUNCTION(info_json,
             "info_json($module, /, source, full=True, deep=False, records=None)\n--\n\n"),
    { "open_records", open_records, METH_VARARGS, "open_records($module, texts, /)\n--\n\n" },
    FUNCTION(fits, "fits($module, /, a, b)\n--\n\n"),
    FUNCTION(check_json,
             "check_json($module, /, path, level='default', deep=False, progress=None)\n--\n\n"),
    FUNCTION(hash_json,
             "hash_json($module, /, path, algos='sha256', threads=0, progress=None)\n--\n\n"),
    FUNCTION(diff_json,
             "diff_json($module, /, a, b, atol=None, rtol=None, header=False,\n"
             " metadata=True, progress=None)\n--\n\n"),
    { NULL, NULL, 0, NULL },
};
