/* Shared by all files of the extension. All state is in the module's state or in objects; there
 * are no globals. Functions that return PyObject * or int set a Python exception on failure and
 * return NULL or -1, unless they say otherwise. All need the GIL except those marked "no GIL".
 * The library is called without the GIL wherever it reads or writes. */
#ifndef PYSFT_CORE_H
#define PYSFT_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "safetensors.h"
#include "safetensors_set.h"

#include <stdatomic.h>
#include <structmember.h>

typedef struct pysft_state pysft_state;

/* For a few instructions in which nothing waits. */
static inline void pysft_spin_lock(atomic_flag *flag) {
    while (atomic_flag_test_and_set_explicit(flag, memory_order_acquire)) {
    }
}
static inline void pysft_spin_unlock(atomic_flag *flag) {
    atomic_flag_clear_explicit(flag, memory_order_release);
}

/* Replaces *slot by value, whose reference is consumed and which may be NULL. */
static inline void pysft_replace(PyObject **slot, PyObject *value) {
    PyObject *old = *slot;
    *slot = value;
    Py_XDECREF(old);
}

/* Whether elements are in memory as in files. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
enum { pysft_little_endian = 0 };
#else
enum { pysft_little_endian = 1 };
#endif

/* Runs one statement of the library without the GIL. */
#define PYSFT_NO_GIL(...)  \
    do {                   \
        Py_BEGIN_ALLOW_THREADS \
        __VA_ARGS__;       \
        Py_END_ALLOW_THREADS \
    } while (0)

/* ── State ───────────────────────────────────────────────────────────────── */

/* The module's heap types, each made when it is first needed. */
typedef enum pysft_type {
    PYSFT_TYPE_FILE,
    PYSFT_TYPE_TENSOR,
    PYSFT_TYPE_MEMORY,
    PYSFT_TYPE_WRITER,
    PYSFT_TYPE_STREAM,
    PYSFT_TYPE_OPTIONS,
    PYSFT_TYPE_STORAGE,
    PYSFT_TYPE_SHARD,
    PYSFT_TYPE_COMMIT,
    PYSFT_TYPE_DATASET,
    PYSFT_TYPE_REMOTE,
    PYSFT_TYPE_PLAN,
    PYSFT_TYPE_READER,
    PYSFT_TYPE_COUNT
} pysft_type;

/* How a type is made. */
typedef struct pysft_type_row {
    PyType_Spec *spec;
    int (*register_type)(PyObject *type); /* what else there is to be done, or NULL */
} pysft_type_row;

/* The module's state. */
struct pysft_state {
    PyObject *module;             /* borrowed */
    const pysft_type_row *rows;   /* by pysft_type */
    PyObject *error;              /* libsafetensors.SafetensorError */
    PyObject *missing;            /* libsafetensors.TensorNotFoundError */
    _Atomic(PyTypeObject *) types[PYSFT_TYPE_COUNT]; /* NULL until made */
    PyObject *dtype_names[SFT_DTYPE_COUNT]; /* str */
    _Atomic(PyObject *) ndarray;     /* numpy's, NULL until loaded, as its dtypes (arrays.c) */
    _Atomic(PyObject *) numpy_dtypes[SFT_DTYPE_COUNT];
    _Atomic(PyObject *) from_dlpack; /* torch's, NULL until loaded (torch.c) */
    atomic_int torch_routes[SFT_DTYPE_COUNT];
    atomic_flag remote_busy;      /* held while `remote` is accessed */
    PyObject *remote;             /* the Remote that paths are opened by; NULL until needed */
};

/* State of the module; never NULL. */
static inline pysft_state *pysft_state_of(PyObject *module) {
    return PyModule_GetState(module);
}
/* State by an object of one of our types (all made by PyType_FromModuleAndSpec and final); never
 * NULL. */
static inline pysft_state *pysft_state_from(PyObject *self) {
    return PyType_GetModuleState(Py_TYPE(self));
}

/* The type, borrowed, which is made and added to the module if that was not done yet; NULL with an
 * exception. */
PyTypeObject *pysft_type_of(pysft_state *state, pysft_type which);
/* Whether the object is of the type: all are final. */
bool pysft_is_a(pysft_state *state, PyObject *object, pysft_type which);

/* Members of a type whose objects may be weakly referenced: `field` is a PyObject *, NULL at
 * first, passed to pysft_weakrefs_clear before anything is released. */
#define PYSFT_WEAKREF_ROW(object_type, field) \
    { "__weaklistoffset__", T_PYSSIZET, offsetof(object_type, field), READONLY, NULL }
#define PYSFT_WEAKREFS(object_type, field) \
    { PYSFT_WEAKREF_ROW(object_type, field), { NULL, 0, 0, 0, NULL } }
static inline void pysft_weakrefs_clear(PyObject *object, PyObject *weakrefs) {
    if (weakrefs) PyObject_ClearWeakRefs(object);
}

/* Allocates a zeroed object in tp_new; frees it at the end of tp_dealloc. */
PyObject *pysft_object_new(PyTypeObject *type);
/* What tp_new returns: the object, or after a failure (-1) NULL, and the object goes. */
PyObject *pysft_object_made(void *object, int status);
void pysft_object_free(PyObject *object);

/* Each does one file's part of initialising the module; -1: with an exception. */
int pysft_error_add(PyObject *module);

/* What module.c makes when its name is first asked for. Types: */
extern PyType_Spec pysft_file_spec, pysft_tensor_spec, pysft_memory_spec, pysft_writer_spec;
extern PyType_Spec pysft_stream_spec, pysft_options_spec, pysft_storage_spec, pysft_shard_spec;
extern PyType_Spec pysft_commit_spec, pysft_dataset_spec, pysft_remote_spec, pysft_plan_spec;
extern PyType_Spec pysft_reader_spec;
/* isinstance(file, Mapping); match statements take it for one, too. */
int pysft_file_register(PyObject *type);
/* Functions: */
extern PyMethodDef pysft_open_functions[], pysft_save_functions[], pysft_tools_functions[];
extern PyMethodDef pysft_convert_functions[], pysft_edit_functions[], pysft_dataset_functions[],
    pysft_lora_functions[], pysft_merge_functions[], pysft_layout_functions[];
extern PyMethodDef pysft_import_functions[], pysft_remote_functions[], pysft_reader_functions[];
extern PyMethodDef pysft_transport_functions[]; /* transport.c */
/* DATASET_OPTIONS */
PyObject *pysft_options_table(pysft_state *state);

/* If threads made several at once, the first stays in the slot; returns that, borrowed. Consumes
 * made, which may be NULL after a failure: NULL. */
PyObject *pysft_once(_Atomic(PyObject *) *slot, PyObject *made);

/* ── Errors ──────────────────────────────────────────────────────────────── */

/* The text of a hint, in the package's words where it has some; NULL for none. */
const char *pysft_hint_text(sft_hint hint);
/* A sink into the buffer: hints in JSON that is written there are in the package's words. */
typedef struct pysft_text_sink {
    sft_sink sink;
    sft_sink_vtable table;
} pysft_text_sink;
void pysft_text_sink_begin(pysft_text_sink *sink, sft_buffer *into);
enum { PYSFT_HINT_URL = SFT_HINT_PROGRAM }; /* hints of this package alone */

/* Name of the exception of a code: "" of SFT_OK. */
const char *pysft_exception(sft_code code);

/* Raises err as the exception of its code, with all attributes. The message starts with path (in
 * the system's encoding; NULL: none). An exception that is already set, by a callback (progress,
 * source, sink, signal handler), is kept instead. Always NULL. */
PyObject *pysft_raise(pysft_state *state, const sft_error *err, const char *path);
/* The same from a code and a message. Always NULL. */
PyObject *pysft_raise_code(pysft_state *state, sft_code code, const char *text,
                           const char *path);

/* The same as a failure: -1. pysft_no_memory raises MemoryError. */
static inline int pysft_fail(pysft_state *state, const sft_error *err, const char *path) {
    (void)pysft_raise(state, err, path);
    return -1;
}
static inline int pysft_no_memory(void) {
    (void)PyErr_NoMemory();
    return -1;
}
/* Raises an exception of that kind, whose text is as of PyErr_Format; -1. */
int pysft_refuse(PyObject *kind, const char *format, ...);

/* Fills an error about a tensor. Returns code. */
sft_code pysft_error_tensor(sft_error *err, sft_code code, sft_span name, const char *text);
/* Longest prefix of at most `most` bytes that does not split a UTF-8 character. */
size_t pysft_text_cut(const char *text, size_t len, size_t most);
/* Raises SFT_TENSOR_NOT_FOUND for a name that the set lacks. Always NULL. */
PyObject *pysft_not_found(pysft_state *state, PyObject *name, const sft_set *set,
                          const char *path);

/* ── Python's modules ────────────────────────────────────────────────────── */

/* New reference to an attribute of a module, which is imported if necessary. */
PyObject *pysft_import(const char *module, const char *name);
/* Calls a module's function with one argument, which is borrowed and may be NULL after a
 * failure. */
PyObject *pysft_import_call(const char *module, const char *name, PyObject *argument);
/* The same with a tuple of arguments, which is consumed and may be NULL after a failure. */
PyObject *pysft_import_apply(const char *module, const char *name, PyObject *args);
/* Answer of a function of os.path: "isfile", "isdir", "exists". False too when it fails; no
 * exception is set. */
bool pysft_path_is(const char *path, const char *what);

/* The package's own modules for what is said better in Python: conversions of arrays, and how
 * objects are shown and pickled. */
#define PYSFT_ARRAYS "libsafetensors._arrays"
#define PYSFT_DTYPES "libsafetensors._dtypes"
#define PYSFT_WRITER "libsafetensors._writer"
#define PYSFT_VIEWS "libsafetensors._views"

/* ── Arguments ───────────────────────────────────────────────────────────── */

/* What files of URLs are opened by; counted, like a store (remote.c). */
typedef struct pysft_remote pysft_remote;
/* No GIL. Dropping ends its threads. NULL is ignored by drop. */
pysft_remote *pysft_remote_hold(pysft_remote *remote);
void pysft_remote_drop(pysft_remote *remote);
/* For options.files; NULL of NULL. No GIL. */
const sft_files *pysft_remote_files(const pysft_remote *remote);

/* A path as the library takes it. Release with pysft_path_free, which accepts a zeroed one. */
typedef struct pysft_path {
    PyObject *bytes;
    const char *text;
    pysft_remote *remote; /* text is its name of a URL; NULL: a path of this machine */
} pysft_path;
/* From str, bytes or os.PathLike, without NUL; else TypeError or ValueError. */
int pysft_path_of(PyObject *object, pysft_path *out);
/* The same of what is read: a str may be a URL. Sends nothing. */
int pysft_input_of(pysft_state *state, PyObject *object, pysft_path *out);
/* The same of what is written: ValueError for a URL. */
int pysft_output_of(PyObject *object, pysft_path *out);
/* The name of a file object, for messages; text NULL: it has none. */
int pysft_name_of(PyObject *object, pysft_path *out);
/* Whether an object is a str with a URL. */
bool pysft_is_url(PyObject *object);
void pysft_path_free(pysft_path *path);

/* Turns the path of a folder into that of its one index, or, if it has none, of its one
 * .safetensors file; OSError otherwise. The library opens no folders: call this when it returned
 * SFT_IO_NOT_FILE. The path is freed on failure. */
int pysft_path_in(pysft_state *state, pysft_path *path);

/* UTF-8 of a str, valid as long as the str. TypeError (naming `what`) for other objects,
 * UnicodeEncodeError for lone surrogates. */
int pysft_span_of(PyObject *text, const char *what, sft_span *out);
/* Fills out from a tuple of two integers. TypeError (naming `what`), OverflowError. */
int pysft_two_of(PyObject *pair, const char *what, int out[2]);
/* Integer of 0 or more. TypeError, OverflowError. */
int pysft_uint_of(PyObject *object, uint64_t *out);
/* The same for "O&" of PyArg_ParseTuple, into a uint64_t. */
int pysft_uint_arg(PyObject *object, void *out);
/* From the name in a header, "BF16". TypeError, ValueError. */
int pysft_dtype_of(PyObject *text, sft_dtype *out);
/* Index of the text in `names` (terminated by NULL); ValueError lists all of them. */
int pysft_choice_of(PyObject *text, const char *what, const char *const *names, int *out);
/* "compat", "default" or "strict"; NULL is "default". 0, or -1 with an exception. */
int pysft_level_of(PyObject *text, sft_level *out);
/* Thread count from a Python int, 0 or more. 0, or -1 with an exception. */
int pysft_threads_of(int threads, uint32_t *out);
/* New str from UTF-8 of a file; invalid bytes become U+FFFD. */
PyObject *pysft_text(sft_span span);
/* Steals value, which may be NULL after a failure. 0 or -1. */
int pysft_dict_put(PyObject *dict, const char *key, PyObject *value);
/* Fills an item of a new list, or appends one. Steals the item; a failure clears *list. */
void pysft_list_put(PyObject **list, size_t at, PyObject *item);
/* Appends to a list. Steals the item; both may be NULL after a failure. */
bool pysft_append(PyObject *list, PyObject *item);
void pysft_list_add(PyObject **list, PyObject *item);

/* Pairs of str from a mapping; none from None or NULL. `keep` holds the strings: release with
 * pysft_pairs_free, which accepts a zeroed one. TypeError for other objects. */
typedef struct pysft_pairs {
    sft_pair *at;
    size_t count;
    PyObject *keep;
} pysft_pairs;
int pysft_pairs_of(PyObject *mapping, const char *what, pysft_pairs *out);
void pysft_pairs_free(pysft_pairs *pairs);

/* Names from an iterable of str (a single str is refused). The spans point into `held`: release
 * with pysft_names_free, which accepts a zeroed one. TypeError names `what`. */
typedef struct pysft_names {
    PyObject *held; /* tuple of str */
    sft_span *items;
    size_t count;
} pysft_names;
int pysft_names_of(PyObject *names, const char *what, pysft_names *out);
void pysft_names_free(pysft_names *names);

/* ── Long calls ───────────────────────────────────────────────────────────── */

/* One long-running call of the library, or one that renders a text:
 *     pysft_job job;
 *     if (pysft_job_begin(&job, progress) < 0) return NULL;
 *     PYSFT_NO_GIL(job.code = sft_something(…, &job.out, &job.job, &job.err));
 *     return pysft_job_text(&job, state, path);
 * About ten times a second signals are checked and progress (None, NULL or a callable) is called;
 * what it raises stays set and cancels the work. job.job.threads may be set in between. */
typedef struct pysft_job {
    sft_job job;
    sft_code code;      /* of the call, and why it failed */
    sft_error err;
    pysft_text_sink to; /* of out */
    sft_sink out;       /* into text, which pysft_job_text takes */
    sft_buffer text;
    PyObject *progress; /* borrowed */
    double next;        /* when to check signals again, in seconds */
    uint64_t total;     /* last reported, as is done */
    uint64_t done;
    bool reported;
} pysft_job;
/* TypeError, -1, only for a progress that cannot be called. */
int pysft_job_begin(pysft_job *job, PyObject *progress);
/* 0 if the code is SFT_OK and no exception is set; progress has then been called with the end. */
int pysft_job_end(pysft_job *job);
/* The same; a failure is raised. */
int pysft_job_done(pysft_job *job, pysft_state *state, const char *path);
/* The same for a call that rendered a text, or NULL; the text is freed in every case. */
PyObject *pysft_job_text(pysft_job *job, pysft_state *state, const char *path);

/* A call into Python from the library, which may be cleaning up after an exception that is set:
 * that one is kept. */
typedef struct pysft_callback {
    PyGILState_STATE gil;
    PyObject *type, *value, *trace;
} pysft_callback;
pysft_callback pysft_callback_begin(void);
void pysft_callback_end(const pysft_callback *v);

/* Allows one call of an object at a time; RuntimeError names `what`. */
bool pysft_enter(atomic_flag *busy, const char *what);
/* Within a call: leaves it with a ValueError of that text unless the object is open. */
bool pysft_stay(atomic_flag *busy, bool is_open, const char *closed);
void pysft_leave(atomic_flag *busy);

/* ── Sources and stores ────────────────────────────────────────────────────── */

/* A source over an object with read and seek, or with size and read_at. It holds a reference to
 * the object until it is closed (reading and closing take the GIL). Not for several threads of a
 * job. What the object raises stays set in the thread that read. */
int pysft_source_of(PyObject *object, sft_source *out);
/* The object that such a source holds: the one given, or what was made of it. Borrowed. */
PyObject *pysft_source_object(const sft_source *source);
/* Whether an object is such a source (has read_at or read, or is a file, or a pair of a file
 * system and a path, of the libraries that _sources.py knows) and neither a path nor a buffer. */
bool pysft_is_source(PyObject *object);

/* Reference-counted memory: an open set with its buffer, or a block of its own. Objects, arrays
 * and DLPack capsules each hold it; the last holder frees it. */
typedef struct pysft_store pysft_store;
/* No GIL (drop takes it if it must release Python objects). */
pysft_store *pysft_store_hold(pysft_store *store);
void pysft_store_drop(pysft_store *store); /* NULL is ignored */
/* The set of a store made by pysft_store_open. */
sft_set *pysft_store_set(const pysft_store *store);
/* Path for messages, or NULL. */
const char *pysft_store_path(const pysft_store *store);
/* Path for results: "-" without one, as in the command for a pipe. */
PyObject *pysft_store_name(const pysft_store *store);
/* Where files beside the model are opened, as in sft_open_options. */
const sft_files *pysft_store_files(const pysft_store *store);
/* The folder of a server that the model was found in, or NULL: a file alone, or of this machine. */
const char *pysft_store_folder(const pysft_store *store);
/* What a server says of the model's file; false: nothing, or it is of this machine. No GIL. */
struct sft_remote_claim;
bool pysft_store_claim(const pysft_store *store, struct sft_remote_claim *out);

/* The options of open(). */
typedef enum pysft_mode {
    PYSFT_AUTO = 0,
    PYSFT_MAP = 1,
    PYSFT_COW = 2,
    PYSFT_READ = 3,
    PYSFT_COPY = 4 /* PYSFT_READ, and slices are copied from a map */
} pysft_mode;
typedef struct pysft_open_options {
    pysft_mode mode;
    sft_open_options file; /* without mode and files */
    bool values;           /* of quantised tensors, as sft_conversion_set has them */
} pysft_open_options;
#define PYSFT_OPEN_OPTIONS_INIT { PYSFT_AUTO, SFT_OPEN_OPTIONS_INIT, false }
/* What the package opens, waits until a signal handler raises. job.c */
extern const sft_wait pysft_wait;
extern const sft_open_options pysft_opening; /* the defaults with it */
/* Opens a path, buffer or source (see open in _core.pyi); NULL with an exception. */
pysft_store *pysft_store_open(pysft_state *state, PyObject *source,
                              const pysft_open_options *given);
/* Opens a model in another format by its path (safetensors_import.h); NULL with an exception. What
 * the set of its store is of; NULL of other stores. */
struct sft_import;
struct sft_import_options;
pysft_store *pysft_store_import(pysft_state *state, PyObject *path,
                                const struct sft_import_options *options);
const struct sft_import *pysft_store_imported(const pysft_store *store);
/* What computes the values of a store opened so, of *count tensors; NULL of other stores. */
struct sft_conversion;
struct sft_conversion *pysft_store_values(const pysft_store *store, size_t *count);
/* The store of a File, to be dropped; NULL with an exception when it is closed. */
pysft_store *pysft_file_store(PyObject *file);
/* Opens a model by its path for reading, or takes that of a File; bytes are a path, too. NULL with
 * an exception. */
pysft_store *pysft_model_open(pysft_state *state, PyObject *path);

/* Function and flags of a PyMethodDef whose function takes keywords. */
#define PYSFT_KEYWORDS(function) \
    (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

#endif
