/* Reference-counted memory shared by handles, tensors, arrays and capsules. Counting needs no
 * GIL, because torch releases tensors on any thread. Tests: test_lifetime.py. */
#include "piece.h"

#include "host.h"
#include "remote.h"
#include "safetensors_convert.h"
#include "safetensors_import.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    char *base; /* of the data region, or NULL */
    bool writable;
} shard_memory;

typedef struct {
    sft_set *set;
    const sft_import *import; /* what the set is of, or NULL: safetensors */
    sft_conversion *values; /* that computes its tensors, or NULL: it is as it is stored */
    size_t stored;          /* tensors that they are computed from */
    PyObject *owner;  /* borrowed from view or from the set's source, or NULL */
    pysft_remote *remote; /* that the set's files are opened by, or NULL */
    Py_buffer view;   /* of an open buffer if view.obj is set */
    char *path;
    char *folder;     /* of a server, that the model was found in; or NULL */
    shard_memory *shards;
    size_t shard_count;
    bool copies; /* slices, from a map */
} opened_set;

struct pysft_store {
    atomic_size_t refs;
    opened_set *opened; /* NULL: a block */
    char *bytes;        /* of a block: in the same allocation, or kept.c's */
    size_t kept;        /* bytes of kept.c, or 0 */
};

#define BLOCK_ALIGNMENT ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)

/* How much of a block is to be in huge pages: with small ones, page faults would cost more time
 * than reading the bytes. The last one may lie beyond the end by an eighth. */
static size_t huge_bytes(size_t bytes) {
    size_t rest = bytes % HUGE_PAGE;
    return bytes - rest + (rest >= HUGE_PAGE / 8 * 7 ? HUGE_PAGE : 0);
}

/* A store before so many bytes. */
static pysft_store *store_new(size_t bytes) {
    pysft_store *store = bytes <= SIZE_MAX / 2 ? malloc(sizeof *store + bytes) : NULL;
    if (!store) return NULL;
    *store = (pysft_store){ .bytes = (char *)(store + 1) };
    atomic_init(&store->refs, 1);
    return store;
}

static pysft_store *kept_block_new(size_t len, bool *again) {
    pysft_store *store = store_new(0);
    char *bytes = store ? pysft_kept_take(len, again) : NULL;
    if (!bytes) {
        free(store);
        return NULL;
    }
    store->bytes = bytes;
    store->kept = len;
    return store;
}

/* *room: all its bytes. *again: they were another block's. The allocator has
 * memory where kept.c makes no more maps. */
static pysft_store *block_new(size_t bytes, uint64_t *room, bool *again) {
    size_t huge = huge_bytes(bytes), most = huge > bytes ? huge : bytes;
    size_t alignment = huge ? HUGE_PAGE : BLOCK_ALIGNMENT, len = pysft_kept_length(most);
    *again = false;
    *room = len ? len : most;
    pysft_store *store = len ? kept_block_new(len, again) : NULL;
    if (store) return store;
    *room = most;
    store = store_new(most + alignment);
    if (!store) return NULL;
    uintptr_t start = (uintptr_t)store->bytes + alignment - 1;
    store->bytes = (char *)(start / alignment * alignment);
    return store;
}

pysft_store *pysft_store_fresh_block(uint64_t bytes, uint64_t *room, bool *fresh) {
    bool again;
    if (bytes > SIZE_MAX / 2) return NULL;
    pysft_store *store = block_new((size_t)bytes, room, &again);
    *fresh = !again;
    return store;
}

pysft_store *pysft_store_block(uint64_t bytes) {
    uint64_t room;
    bool fresh;
    pysft_store *store = pysft_store_fresh_block(bytes, &room, &fresh);
    size_t huge = store && fresh ? huge_bytes((size_t)bytes) : 0;
    if (huge) pysft_host_ask_huge_pages(store->bytes, huge);
    return store;
}

char *pysft_store_bytes(pysft_store *block) {
    return block->bytes;
}

pysft_store *pysft_store_hold(pysft_store *store) {
    atomic_fetch_add_explicit(&store->refs, 1, memory_order_relaxed);
    return store;
}

static void opened_free(opened_set *opened) {
    sft_set_close(opened->set);
    pysft_remote_drop(opened->remote);
    if (opened->view.obj) PyBuffer_Release(&opened->view);
    free(opened->shards);
    free(opened->path);
    free(opened->folder);
    free(opened);
}

static void free_opened(void *opened) { /* no GIL */
    opened_free(opened);
}

void pysft_store_drop(pysft_store *store) {
    if (!store) return;
    if (atomic_fetch_sub_explicit(&store->refs, 1, memory_order_acq_rel) != 1) return;
    if (store->opened && store->opened->owner) {
        if (!Py_IsInitialized()) return; /* the interpreter has already released the objects */
        PyGILState_STATE gil = PyGILState_Ensure();
        opened_free(store->opened);
        PyGILState_Release(gil);
    } else if (store->opened && store->opened->remote) {
        pysft_remote_run(store->opened->remote, free_opened, store->opened);
    } else if (store->opened) {
        opened_free(store->opened);
    }
    if (store->kept) pysft_kept_give(store->bytes, store->kept);
    free(store);
}

sft_set *pysft_store_set(const pysft_store *store) {
    return store->opened->set;
}

const char *pysft_store_path(const pysft_store *store) {
    return store->opened->path;
}

PyObject *pysft_store_name(const pysft_store *store) {
    const char *path = store->opened->path;
    return PyUnicode_DecodeFSDefault(path ? path : "-");
}

const sft_files *pysft_store_files(const pysft_store *store) {
    return pysft_remote_files(store->opened->remote);
}

const char *pysft_store_folder(const pysft_store *store) {
    return store->opened->folder;
}

bool pysft_store_claim(const pysft_store *store, sft_remote_claim *out) {
    const pysft_remote *remote = store->opened->remote;
    return remote && sft_remote_claims(pysft_remote_of(remote), store->opened->path, out);
}

char *pysft_store_base(const pysft_store *store, size_t shard, bool *writable) {
    const shard_memory *memory = &store->opened->shards[shard];
    *writable = memory->writable;
    return memory->base;
}

bool pysft_store_local(const pysft_store *store) {
    const opened_set *opened = store->opened;
    return !opened->owner && !opened->remote && !opened->import && !opened->values;
}

bool pysft_store_copies(const pysft_store *store) {
    return store->opened->copies;
}

bool pysft_store_mapped(const pysft_store *store) {
    for (size_t i = 0; i < store->opened->shard_count; i++)
        if (!store->opened->shards[i].base) return false;
    return true;
}

/* The collector may count the owner as ours only if this is the one holder. */
int pysft_store_visit(const pysft_store *store, visitproc visit, void *arg) {
    if (store && store->opened->owner && atomic_load(&store->refs) == 1)
        Py_VISIT(store->opened->owner);
    return 0;
}

/* ── Opening ─────────────────────────────────────────────────────────────── */

/* Records which shards' memory can be shared: not a file's whose end was not checked. */
static int fill_shards(opened_set *opened, bool share, bool writable) {
    opened->shard_count = sft_set_shard_count(opened->set);
    opened->shards = calloc(opened->shard_count ? opened->shard_count : 1, sizeof *opened->shards);
    if (!opened->shards) return pysft_no_memory();
    for (size_t i = 0; i < opened->shard_count; i++) {
        const sft_file *file = sft_set_shard_at(opened->set, i);
        const char *base = sft_file_source(file).base;
        if (!share || !base || !sft_file_complete(file)) continue;
        opened->shards[i].base = (char *)(uintptr_t)base + sft_file_data_offset(file);
        opened->shards[i].writable = writable;
    }
    return 0;
}

static int keep_text(const char *text, char **out) {
    *out = strdup(text);
    return *out ? 0 : pysft_no_memory();
}

/* Falls back to reading if the system cannot map privately; options->mode tells. Where maps are
 * made only when asked for, one that cannot be made is an error. */
static sft_code try_open(opened_set *opened, const pysft_path *path, sft_open_options *options,
                         sft_error *err) {
    sft_set_options set = SFT_SET_OPTIONS_INIT;
    sft_code code;
    set.open = options;
    Py_BEGIN_ALLOW_THREADS
    code = sft_set_open(path->text, &set, &opened->set, err);
    if (code == SFT_IO_MAP && options->mode == SFT_MAP_COW && !pysft_host_commits_maps) {
        options->mode = SFT_READ;
        code = sft_set_open(path->text, &set, &opened->set, err);
    }
    Py_END_ALLOW_THREADS
    return code;
}

/* The path of a folder becomes that of its model. */
static int choose(pysft_state *state, opened_set *opened, pysft_path *path) {
    if (path->remote && keep_text(path->text, &opened->folder) < 0) return -1;
    return pysft_path_in(state, path);
}

static int open_file(pysft_state *state, opened_set *opened, pysft_path *path,
                     sft_open_options *options) {
    sft_error err = SFT_ERROR_INIT;
    bool folder = path->remote && sft_remote_is_folder(path->text);
    if (folder && choose(state, opened, path) < 0) return -1;
    sft_code code = try_open(opened, path, options, &err);
    /* Rather than a device or the like. */
    if (code == SFT_IO_NOT_FILE && !folder
        && (path->remote || !pysft_path_is(path->text, "exists")
            || pysft_path_is(path->text, "isdir"))) {
        if (choose(state, opened, path) < 0) return -1;
        code = try_open(opened, path, options, &err);
    }
    if (!code) return keep_text(path->text, &opened->path);
    return pysft_fail(state, &err, path->text);
}

static int refuse_mode(const char *expected, const char *found) {
    return pysft_refuse(PyExc_ValueError,
                        "mode: expected %s, found '%s', which is for files by their path", expected,
                        found);
}

static int open_path(pysft_state *state, opened_set *opened, PyObject *source,
                     const pysft_open_options *given) {
    static const sft_mode modes[] = { SFT_MAP_COW, SFT_MAP, SFT_MAP_COW, SFT_READ,
                                      SFT_READ };
    sft_open_options options = given->file;
    pysft_path path;
    options.wait = &pysft_wait;
    options.mode = modes[given->mode];
    /* On Windows nobody could cut or replace a mapped file. */
    opened->copies = given->mode == PYSFT_COPY && !pysft_host_commits_maps;
    if (given->mode == PYSFT_AUTO && pysft_host_commits_maps) options.mode = SFT_READ;
    if (pysft_input_of(state, source, &path) < 0) return -1;
    int rc = 0;
    if (path.remote && (given->mode == PYSFT_COW || given->mode == PYSFT_MAP))
        rc = refuse_mode("'auto' or 'read' for a URL", given->mode == PYSFT_COW ? "cow" : "map");
    /* A stream cannot be mapped and can be read only once, so it is not opened twice. */
    if (path.remote || (options.mode == SFT_MAP_COW && pysft_host_is_stream(path.text)))
        options.mode = SFT_READ;
    options.files = pysft_remote_files(path.remote);
    if (path.remote) opened->remote = pysft_remote_hold(path.remote);
    if (rc == 0) rc = open_file(state, opened, &path, &options);
    pysft_path_free(&path);
    return rc < 0 ? -1 : fill_shards(opened, true, options.mode == SFT_MAP_COW);
}

static int open_buffer(pysft_state *state, opened_set *opened, PyObject *source,
                       const pysft_open_options *given) {
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    sft_file *file = NULL;
    sft_open_options options = given->file;
    if (given->mode == PYSFT_COW)
        return refuse_mode("'auto', 'map' or 'read' for memory", "cow");
    if (PyObject_GetBuffer(source, &opened->view, PyBUF_SIMPLE) < 0) {
        opened->view.obj = NULL;
        return -1;
    }
    opened->owner = opened->view.obj;
    options.mode = SFT_READ;
    size_t len = (size_t)opened->view.len;
    Py_BEGIN_ALLOW_THREADS
    code = sft_open_memory(opened->view.buf, len, &options, &file, &err);
    if (!code) code = sft_set_from_file(file, NULL, &opened->set, &err);
    Py_END_ALLOW_THREADS
    if (!code)
        return fill_shards(opened, given->mode == PYSFT_MAP, !opened->view.readonly);
    return pysft_fail(state, &err, NULL);
}

static int open_object(pysft_state *state, opened_set *opened, PyObject *object,
                       const pysft_open_options *given) {
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    sft_file *file = NULL;
    sft_source source;
    pysft_path name;
    sft_open_options options = given->file;
    if (given->mode == PYSFT_COW || given->mode == PYSFT_MAP)
        return refuse_mode("'auto' or 'read' for an object that is read",
                           given->mode == PYSFT_COW ? "cow" : "map");
    if (pysft_name_of(object, &name) < 0) return -1;
    int kept = name.text ? keep_text(name.text, &opened->path) : 0;
    pysft_path_free(&name);
    if (kept < 0 || pysft_source_of(object, &source) < 0) return -1;
    PyObject *held = pysft_source_object(&source);
    options.mode = SFT_READ;
    Py_BEGIN_ALLOW_THREADS
    code = sft_open_source(source, &options, &file, &err);
    if (!code) code = sft_set_from_file(file, NULL, &opened->set, &err);
    Py_END_ALLOW_THREADS
    if (code) return pysft_fail(state, &err, opened->path);
    opened->owner = held;
    return fill_shards(opened, false, false);
}

/* A store whose set is not open yet; NULL with an exception. */
static pysft_store *opened_new(void) {
    pysft_store *store = pysft_store_block(0);
    if (store) store->opened = calloc(1, sizeof *store->opened);
    if (store && store->opened) return store;
    pysft_store_drop(store);
    return (void *)PyErr_NoMemory();
}

/* The store, or after a failure (-1) NULL with the exception that is set. */
static pysft_store *opened_end(pysft_store *store, int rc) {
    if (rc == 0) return store;
    pysft_callback v = pysft_callback_begin();
    pysft_store_drop(store);
    pysft_callback_end(&v);
    return NULL;
}

/* The set that is open becomes one of values. */
static int open_values(pysft_state *state, opened_set *opened) {
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_set *stored = opened->set;
    options.dequantize = options.partial = true;
    options.files = pysft_remote_files(opened->remote);
    opened->set = NULL;
    opened->stored = sft_set_tensor_count(stored);
    sft_code code;
    Py_BEGIN_ALLOW_THREADS
    code = sft_conversion_new(stored, SFT_F32, &options, &opened->values, &err);
    if (code) sft_set_close(stored);
    else code = sft_conversion_set(opened->values, stored, opened->path, &opened->set, &err);
    Py_END_ALLOW_THREADS
    if (code) return pysft_fail(state, &err, opened->path);
    free(opened->shards);
    return fill_shards(opened, false, false);
}

pysft_store *pysft_store_open(pysft_state *state, PyObject *source,
                              const pysft_open_options *given) {
    pysft_open_options how = *given;
    if (how.values && (how.mode == PYSFT_COW || how.mode == PYSFT_MAP)) {
        (void)pysft_refuse(PyExc_ValueError, "mode: expected 'auto' or 'read' for values, found "
                           "'%s'", how.mode == PYSFT_COW ? "cow" : "map");
        return NULL;
    }
    if (how.values) how.mode = PYSFT_READ;
    pysft_store *store = opened_new();
    if (!store) return NULL;
    int rc = PyObject_CheckBuffer(source) ? open_buffer(state, store->opened, source, &how)
           : pysft_is_source(source) ? open_object(state, store->opened, source, &how)
                                     : open_path(state, store->opened, source, &how);
    if (rc == 0 && how.values) rc = open_values(state, store->opened);
    return opened_end(store, rc);
}

/* Consumes the path. */
static int open_foreign(pysft_state *state, opened_set *opened, pysft_path *path,
                        const sft_import_options *options) {
    sft_import_options how = *options;
    sft_error err = SFT_ERROR_INIT;
    sft_import *import = NULL;
    sft_code code;
    how.files = pysft_remote_files(path->remote);
    how.wait = &pysft_wait;
    if (path->remote) opened->remote = pysft_remote_hold(path->remote);
    Py_BEGIN_ALLOW_THREADS
    code = sft_import_open(path->text, &how, &import, &err);
    if (!code) code = sft_import_set(import, path->text, &opened->set, &err);
    Py_END_ALLOW_THREADS
    if (!code) opened->import = import;
    int rc = code ? pysft_fail(state, &err, path->text) : keep_text(path->text, &opened->path);
    pysft_path_free(path);
    return rc < 0 ? -1 : fill_shards(opened, false, false);
}

pysft_store *pysft_store_import(pysft_state *state, PyObject *path,
                                const struct sft_import_options *options) {
    pysft_path given;
    if (pysft_input_of(state, path, &given) < 0) return NULL;
    pysft_store *store = opened_new();
    if (!store) pysft_path_free(&given);
    return store ? opened_end(store, open_foreign(state, store->opened, &given, options)) : NULL;
}

const struct sft_import *pysft_store_imported(const pysft_store *store) {
    return store->opened->import;
}

struct sft_conversion *pysft_store_values(const pysft_store *store, size_t *count) {
    *count = store->opened->stored;
    return store->opened->values;
}

/* ── Memory objects: the base of numpy arrays ──────────────────────────────── */

typedef struct {
    PyObject_HEAD
    pysft_store *store;
    char *data;
    Py_ssize_t len;
    bool writable;
} MemoryObject;

PyObject *pysft_memory_new(pysft_state *state, pysft_store *store, char *data, uint64_t len,
                           bool writable) {
    if (len > PY_SSIZE_T_MAX) return PyErr_NoMemory();
    PyTypeObject *type = pysft_type_of(state, PYSFT_TYPE_MEMORY);
    MemoryObject *self = type ? PyObject_New(MemoryObject, type) : NULL;
    if (!self) return NULL;
    self->store = pysft_store_hold(store);
    self->data = data;
    self->len = (Py_ssize_t)len;
    self->writable = writable;
    return (PyObject *)self;
}

static PyObject *read_memory(pysft_state *state, const pysft_store *store, const sft_file *file,
                             uint64_t begin, uint64_t len) {
    const uint64_t most = UINT64_C(8) << 20; /* between two looks at signals */
    sft_error err = SFT_ERROR_INIT;
    sft_code code = SFT_OK;
    pysft_store *block = pysft_store_block(len);
    if (!block) return PyErr_NoMemory();
    char *into = pysft_store_bytes(block);
    for (uint64_t done = 0; !code && done < len; done += most) {
        uint64_t now = len - done < most ? len - done : most;
        PYSFT_NO_GIL(code = sft_read_bytes(file, begin + done, into + done, (size_t)now, &err));
        if (!code && PyErr_CheckSignals() < 0) code = SFT_CANCELLED;
    }
    PyObject *memory = code ? pysft_raise(state, &err, pysft_store_path(store))
                            : pysft_memory_new(state, block, into, len, false);
    pysft_store_drop(block);
    return memory;
}

PyObject *pysft_memory_of(pysft_state *state, pysft_store *store, Py_ssize_t shard,
                          uint64_t begin, uint64_t end) {
    sft_set *set = pysft_store_set(store);
    if (shard < 0 || (size_t)shard >= sft_set_shard_count(set))
        return PyErr_Format(PyExc_IndexError, "there is no shard %zd", shard);
    const sft_file *file = sft_set_shard_at(set, (size_t)shard);
    unsigned long long first = sft_file_data_offset(file), bytes = sft_file_data_bytes(file);
    if (begin > end || begin < first || end - first > bytes)
        return PyErr_Format(PyExc_ValueError,
                            "expected bytes from %llu to %llu, found %llu to %llu", first,
                            first + bytes, (unsigned long long)begin, (unsigned long long)end);
    bool writable;
    char *base = pysft_store_base(store, (size_t)shard, &writable);
    if (!base) return read_memory(state, store, file, begin, end - begin);
    return pysft_memory_new(state, store, base + (begin - first), end - begin, false);
}

static void memory_dealloc(PyObject *object) {
    MemoryObject *self = (MemoryObject *)object;
    PyTypeObject *type = Py_TYPE(object);
    pysft_store_drop(self->store);
    PyObject_Free(object);
    Py_DECREF(type);
}

static int memory_buffer(PyObject *object, Py_buffer *view, int flags) {
    MemoryObject *self = (MemoryObject *)object;
    return PyBuffer_FillInfo(view, object, self->data, self->len, !self->writable, flags);
}

static PyType_Slot memory_slots[] = {
    { Py_tp_dealloc, memory_dealloc },
    { Py_bf_getbuffer, memory_buffer },
    { Py_tp_doc, "Memory of an open file or of a tensor, kept as long as arrays use it." },
    { 0, NULL },
};

PyType_Spec pysft_memory_spec = {
    .name = "libsafetensors._core._Memory",
    .basicsize = sizeof(MemoryObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = memory_slots,
};
