/* What the files of the extension share. Everything lies in the module's state or in objects;
 * there are no globals. Functions that return PyObject * or int set a Python exception on
 * failure and give NULL or -1, unless they say otherwise; all want the GIL held but those
 * marked "no GIL". The library is called without the GIL wherever it reads or writes. */
#ifndef PYSFT_CORE_H
#define PYSFT_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "safetensors.h"
#include "safetensors_set.h"

#include <stdatomic.h>

typedef struct pysft_state pysft_state;

/* Put value, which is taken over and may be NULL, in place of what *slot holds. */
static inline void pysft_replace(PyObject **slot, PyObject *value) {
    PyObject *old = *slot;
    *slot = value;
    Py_XDECREF(old);
}

/* ── State ───────────────────────────────────────────────────────────────── */

/* Functions and dtypes of numpy and of torch, filled when first wanted: arrays.c, torch.c. */
typedef struct pysft_numpy pysft_numpy;
typedef struct pysft_torch pysft_torch;

/* Everything the module keeps. */
struct pysft_state {
    PyObject *error;              /* libsafetensors.SafetensorError */
    PyObject *missing;            /* libsafetensors.TensorNotFoundError */
    PyTypeObject *file_type;
    PyTypeObject *tensor_type;
    PyTypeObject *memory_type;
    PyTypeObject *writer_type;    /* set by pysft_writer_add */
    PyTypeObject *stream_type;    /* these by pysft_dataset_add */
    PyTypeObject *options_type;
    PyTypeObject *storage_type;
    PyTypeObject *shard_type;
    PyTypeObject *commit_type;
    PyTypeObject *dataset_type;
    PyObject *dtype_names[SFT_DTYPE_COUNT]; /* str */
    _Atomic(pysft_numpy *) numpy; /* NULL until then */
    _Atomic(pysft_torch *) torch;
};

/* Of the module; never NULL. */
pysft_state *pysft_state_of(PyObject *module);
/* Of an object of one of our types (PyType_FromModuleAndSpec, final); never NULL. */
pysft_state *pysft_state_from(PyObject *self);

/* Make a heap type of a spec, add it to the module under its name and put a new reference into
 * *slot (in the state; the module's traverse and clear know those listed there). */
int pysft_type_add(PyObject *module, PyType_Spec *spec, PyTypeObject **slot);

/* What tp_new begins with, zeroed, and what tp_dealloc ends with. */
PyObject *pysft_object_new(PyTypeObject *type);
void pysft_object_free(PyObject *object);

/* Each file adds its part to the module while it is made: 0, or -1 with an exception. Only
 * module.c calls these. */
int pysft_error_add(PyObject *module);
int pysft_hints_add(PyObject *module);   /* words of err.hint and of "hint" in results */
int pysft_wait_add(PyObject *module);    /* job.c */
int pysft_memory_add(PyObject *module);
int pysft_tensor_add(PyObject *module);
int pysft_file_add(PyObject *module);
int pysft_open_add(PyObject *module);
int pysft_save_add(PyObject *module);    /* save_file, save_bytes */
int pysft_writer_add(PyObject *module);  /* Writer */
int pysft_tools_add(PyObject *module);   /* info_json, check_json, hash_json, diff_json */
int pysft_convert_add(PyObject *module); /* convert, cast */
int pysft_edit_add(PyObject *module);    /* edit, recover */
int pysft_arrow_add(PyObject *module);   /* ArrowStream */
int pysft_options_add(PyObject *module); /* DatasetOptions, DATASET_OPTIONS */
int pysft_storage_add(PyObject *module); /* Storage */
int pysft_shard_add(PyObject *module);   /* ShardWriter */
int pysft_commit_add(PyObject *module);  /* Commit */
int pysft_dataset_add(PyObject *module); /* Dataset, dataset_verify, … */
/* Undo what was filled of numpy and torch. */
void pysft_numpy_clear(pysft_state *state);
void pysft_torch_clear(pysft_state *state);

/* ── Errors ──────────────────────────────────────────────────────────────── */

enum { PYSFT_HINT_URL = SFT_HINT_PROGRAM }; /* hints of this package alone */

/* Name of the exception of a code: "" of SFT_OK. */
const char *pysft_exception(sft_code code);

/* Raise what err tells as the exception its code names, with all attributes; the text begins
 * with path (bytes as the system has them; NULL: none). An exception that is set already (by
 * a callback of ours: progress, source, sink, a signal) stays and is what comes out.
 * Always NULL. */
PyObject *pysft_raise(pysft_state *state, const sft_error *err, const char *path);
/* The same from a code and a text of our own. Always NULL. */
PyObject *pysft_raise_code(pysft_state *state, sft_code code, const char *text,
                           const char *path);

/* Fill an error that is about a tensor. Returns code. */
sft_code pysft_error_tensor(sft_error *err, sft_code code, sft_span name, const char *text);
/* How many of len bytes of UTF-8 are at most `most`, and whole characters. */
size_t pysft_text_cut(const char *text, size_t len, size_t most);
/* SFT_TENSOR_NOT_FOUND of an open model. Always NULL. */
PyObject *pysft_not_found(pysft_state *state, PyObject *name, const char *path);

/* ── Arguments ───────────────────────────────────────────────────────────── */

/* A path as the library takes it. Release with pysft_path_free, which a zeroed one bears. */
typedef struct pysft_path {
    PyObject *bytes;
    const char *text;
} pysft_path;
/* str, bytes or os.PathLike; refuses NUL. TypeError else. */
int pysft_path_of(PyObject *object, pysft_path *out);
void pysft_path_free(pysft_path *path);

/* Of a folder: its one index, or without one its one .safetensors file. The library opens no
 * folders: this is for when it said SFT_IO_NOT_FILE. OSError else. */
int pysft_path_in(pysft_state *state, PyObject *folder, pysft_path *out);

/* UTF-8 of a str, which it belongs to. TypeError (naming `what`) for another object,
 * UnicodeEncodeError for lone surrogates. */
int pysft_span_of(PyObject *text, const char *what, sft_span *out);
/* A tuple of two integers, of which out is filled. TypeError names `what`; OverflowError. */
int pysft_two_of(PyObject *pair, const char *what, int out[2]);
/* Number from 0 on. TypeError, OverflowError. */
int pysft_uint_of(PyObject *object, uint64_t *out);
/* dtype by its header name, "BF16". TypeError, ValueError. */
int pysft_dtype_of(PyObject *text, sft_dtype *out);
/* One of `names` (ends with NULL) by its place in the list; ValueError tells all of them. */
int pysft_choice_of(PyObject *text, const char *what, const char *const *names, int *out);
/* A number of threads. 0, or -1 with an exception. */
int pysft_threads_of(int threads, uint32_t *out);
/* New str from UTF-8 of a file; bytes that are not UTF-8 become U+FFFD. */
PyObject *pysft_text(sft_span span);
/* New str (or bytes) of a buffer, which is freed in every case. */
PyObject *pysft_text_take(sft_buffer *buffer);
PyObject *pysft_bytes_take(sft_buffer *buffer);
/* A sink into *text, which is to be freed in every case; and its end after what gave code. No
 * GIL. */
sft_sink pysft_text_sink(sft_buffer *text);
sft_code pysft_sink_end(sft_sink *sink, sft_code code, sft_error *err);
/* Steals value, which may be NULL with an exception. 0 or -1. */
int pysft_dict_put(PyObject *dict, const char *key, PyObject *value);

/* Pairs of str of a mapping, or None or NULL for none. `keep` holds the strings: release by
 * pysft_pairs_free, which a zeroed one bears. TypeError for what is not str. */
typedef struct pysft_pairs {
    sft_pair *at;
    size_t count;
    PyObject *keep;
} pysft_pairs;
int pysft_pairs_of(PyObject *mapping, const char *what, pysft_pairs *out);
void pysft_pairs_free(pysft_pairs *pairs);

/* ── Long work ───────────────────────────────────────────────────────────── */

/* One long call of the library:
 *     pysft_job job;
 *     if (pysft_job_begin(&job, progress) < 0) return NULL;
 *     Py_BEGIN_ALLOW_THREADS
 *     code = sft_something(…, &job.job, &err);
 *     Py_END_ALLOW_THREADS
 *     if (pysft_job_end(&job, code) < 0) return pysft_raise(state, &err, path);
 * About ten times a second signals are looked at and progress (None, NULL or a callable) is
 * called; what it raises stays set and ends the work. job.job.threads may be set between. */
typedef struct pysft_job {
    sft_job job;
    PyObject *progress; /* borrowed */
    double next;        /* seconds of a clock when to look again */
    uint64_t total;     /* last told, and done */
    uint64_t done;
    bool told;
} pysft_job;
int pysft_job_begin(pysft_job *job, PyObject *progress);
/* 0 if code is SFT_OK and no exception is set: then progress has been told the end. */
int pysft_job_end(pysft_job *job, sft_code code);

/* One call at a time of an object: RuntimeError names `what`. */
bool pysft_enter(atomic_flag *busy, const char *what);
void pysft_leave(atomic_flag *busy);

/* ── Where bytes come from ───────────────────────────────────────────────── */

/* Library's source over an object with read and seek, or size and read_at. It holds the object
 * till its close is called (which takes the GIL, as its reads do). Not for several threads of
 * a job. What the object raises stays set in the thread that read. */
int pysft_source_of(PyObject *object, sft_source *out);
/* Whether an object is that (has read_at or read), and no path and no buffer. */
bool pysft_is_source(PyObject *object);

/* Counted memory of a handle: an open set with the buffer it lies in, or a block of its own.
 * Objects, arrays and DLPack capsules each hold it; the last one gone frees it. */
typedef struct pysft_store pysft_store;
/* Both: no GIL needed (it is taken if Python objects must be released). */
pysft_store *pysft_store_hold(pysft_store *store);
void pysft_store_drop(pysft_store *store); /* NULL is ignored */
/* The set of a store that pysft_store_open made. */
sft_set *pysft_store_set(const pysft_store *store);
/* Path for texts, or NULL. */
const char *pysft_store_path(const pysft_store *store);

/* What open() takes but the source. A zeroed one with level default is open's defaults. */
typedef enum pysft_mode {
    PYSFT_AUTO = 0,
    PYSFT_MAP = 1,
    PYSFT_COW = 2,
    PYSFT_READ = 3
} pysft_mode;
typedef struct pysft_open_options {
    pysft_mode mode;
    sft_level level;
    bool legacy, header_only;
    uint64_t max_header_bytes;
    const char *beneath; /* as in sft_open_options, or NULL */
} pysft_open_options;
#define PYSFT_OPEN_OPTIONS_INIT { PYSFT_AUTO, SFT_LEVEL_DEFAULT, false, false, 0, NULL }
/* Open a path, buffer or source (see open in _core.pyi); NULL with an exception. */
pysft_store *pysft_store_open(pysft_state *state, PyObject *source,
                              const pysft_open_options *given);
/* A model by its path, for reading; bytes are a path, too. NULL with an exception. */
pysft_store *pysft_model_open(pysft_state *state, PyObject *path);

/* A function that takes keywords, for a row of PyMethodDef. */
#define PYSFT_KEYWORDS(function) \
    (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

#endif
