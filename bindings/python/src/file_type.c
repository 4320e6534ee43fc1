/* File: an open model. Tests: test_mapping.py. */
#include "piece.h"
#include "safetensors_report.h"

typedef struct {
    PyObject_HEAD
    atomic_flag busy;   /* held while `store` is accessed */
    pysft_store *store; /* NULL when closed */
    PyObject *how;      /* to open it again; or NULL */
    PyObject *weakrefs;
} FileObject;

static pysft_store *swap_store(FileObject *self, bool take) {
    pysft_spin_lock(&self->busy);
    pysft_store *store = self->store;
    if (take) self->store = NULL;
    else if (store) pysft_store_hold(store);
    pysft_spin_unlock(&self->busy);
    return store;
}

pysft_store *pysft_file_store(PyObject *self) {
    pysft_store *store = swap_store((FileObject *)self, false);
    if (!store)
        (void)pysft_raise_code(pysft_state_from(self), SFT_BAD_ARGUMENT, "File is closed", NULL);
    return store;
}

static bool is_closed(PyObject *self) {
    pysft_store *store = swap_store((FileObject *)self, false);
    pysft_store_drop(store);
    return store == NULL;
}

PyObject *pysft_file_new(pysft_state *state, pysft_store *store, PyObject *how) {
    PyTypeObject *type = pysft_type_of(state, PYSFT_TYPE_FILE);
    FileObject *self = type ? PyObject_GC_New(FileObject, type) : NULL;
    if (!self) {
        pysft_store_drop(store);
        return NULL;
    }
    atomic_flag_clear(&self->busy);
    self->store = store;
    self->how = how ? Py_NewRef(how) : NULL;
    self->weakrefs = NULL;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static int file_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((FileObject *)object)->how);
    return pysft_store_visit(((FileObject *)object)->store, visit, arg);
}

static int file_clear(PyObject *object) {
    pysft_store_drop(swap_store((FileObject *)object, true));
    Py_CLEAR(((FileObject *)object)->how);
    return 0;
}

static void file_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    pysft_weakrefs_clear(object, ((FileObject *)object)->weakrefs);
    (void)file_clear(object);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* ── Names ───────────────────────────────────────────────────────────────── */

/* 1: found; 0: no such name; -1: exception (not a str). */
static int find(const pysft_store *store, PyObject *name, const sft_tensor **out,
                size_t *shard) {
    sft_span span;
    *out = NULL;
    if (pysft_span_of(name, "name", &span) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeError)) return -1;
        PyErr_Clear(); /* names in files have no lone surrogates */
        return 0;
    }
    *out = sft_set_find(pysft_store_set(store), span, shard);
    return *out != NULL;
}

static Py_ssize_t file_len(PyObject *object) {
    pysft_store *store = pysft_file_store(object);
    if (!store) return -1;
    Py_ssize_t count = (Py_ssize_t)sft_set_tensor_count(pysft_store_set(store));
    pysft_store_drop(store);
    return count;
}

static int file_contains(PyObject *object, PyObject *name) {
    const sft_tensor *found;
    pysft_store *store = pysft_file_store(object);
    if (!store) return -1;
    int rc = PyUnicode_Check(name) ? find(store, name, &found, NULL) : 0;
    pysft_store_drop(store);
    return rc;
}

static PyObject *file_subscript(PyObject *object, PyObject *name) {
    pysft_state *state = pysft_state_from(object);
    pysft_store *store = pysft_file_store(object);
    const sft_tensor *facts;
    PyObject *tensor = NULL;
    size_t shard = 0;
    if (!store) return NULL;
    int rc = find(store, name, &facts, &shard);
    if (rc > 0) tensor = pysft_tensor_new(state, store, facts, shard, NULL);
    else if (rc == 0)
        (void)pysft_not_found(state, name, pysft_store_set(store), pysft_store_path(store));
    pysft_store_drop(store);
    return tensor;
}

static const char *const order_names[] = { "offset", "name", "natural", "header", NULL };

static PyObject *names_in(const sft_set *set, const uint32_t *order) {
    size_t count = sft_set_tensor_count(set);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++)
        pysft_list_put(&list, i, pysft_text(sft_set_tensor_at(set, order ? order[i] : i)->name));
    return list;
}

static PyObject *keys_of(pysft_state *state, const pysft_store *store, int order) {
    sft_set *set = pysft_store_set(store);
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    if (order == SFT_ORDER_OFFSET) return names_in(set, NULL);
    uint32_t *at = PyMem_Malloc((sft_set_tensor_count(set) + 1) * sizeof *at);
    if (!at) return PyErr_NoMemory();
    PYSFT_NO_GIL(code = sft_set_order(set, (sft_order)order, at, &err));
    PyObject *names = code ? pysft_raise(state, &err, pysft_store_path(store)) : names_in(set, at);
    PyMem_Free(at);
    return names;
}

static PyObject *order_argument(PyObject *args, PyObject *kwargs, const char *format,
                                int *order) {
    static char *names[] = { "order", NULL };
    PyObject *text = NULL;
    *order = SFT_ORDER_OFFSET;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, names, &text)) return NULL;
    if (text && pysft_choice_of(text, "order", order_names, order) < 0) return NULL;
    return Py_None;
}

static PyObject *file_keys(PyObject *object, PyObject *args, PyObject *kwargs) {
    int order;
    if (!order_argument(args, kwargs, "|O:keys", &order)) return NULL;
    pysft_store *store = pysft_file_store(object);
    PyObject *names = store ? keys_of(pysft_state_from(object), store, order) : NULL;
    pysft_store_drop(store);
    return names;
}

static PyObject *file_iter(PyObject *object) {
    pysft_store *store = pysft_file_store(object);
    PyObject *names = store ? names_in(pysft_store_set(store), NULL) : NULL;
    PyObject *iterator = names ? PyObject_GetIter(names) : NULL;
    Py_XDECREF(names);
    pysft_store_drop(store);
    return iterator;
}

/* ── As a mapping ────────────────────────────────────────────────────────── */

static PyObject *item_of(pysft_state *state, pysft_store *store, size_t number, bool with_name) {
    const sft_tensor *facts = sft_set_tensor_at(pysft_store_set(store), number);
    size_t shard = sft_set_tensor_shard(pysft_store_set(store), number);
    PyObject *tensor = pysft_tensor_new(state, store, facts, shard, NULL);
    PyObject *name = tensor && with_name ? pysft_text(facts->name) : NULL;
    if (!with_name) return tensor;
    PyObject *pair = name ? PyTuple_Pack(2, name, tensor) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(tensor);
    return pair;
}

static PyObject *list_items(PyObject *object, bool with_names) {
    pysft_store *store = pysft_file_store(object);
    if (!store) return NULL;
    size_t count = sft_set_tensor_count(pysft_store_set(store));
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++)
        pysft_list_put(&list, i, item_of(pysft_state_from(object), store, i, with_names));
    pysft_store_drop(store);
    return list;
}

static PyObject *file_items(PyObject *object, PyObject *Py_UNUSED(none)) {
    return list_items(object, true);
}

static PyObject *file_values(PyObject *object, PyObject *Py_UNUSED(none)) {
    return list_items(object, false);
}

static PyObject *file_get(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = { "name", "default", NULL };
    PyObject *name, *other = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:get", keywords, &name, &other))
        return NULL;
    int there = file_contains(object, name);
    if (there < 0) return NULL;
    return there ? file_subscript(object, name) : Py_NewRef(other);
}

static PyObject *dict_of(PyObject *mapping) {
    PyObject *dict = PyDict_New();
    if (dict && PyDict_Update(dict, mapping) < 0) Py_CLEAR(dict);
    return dict;
}

/* As mappings are compared, by names and Tensors: those of another File are others. */
static PyObject *file_compare(PyObject *object, PyObject *other, int op) {
    PyObject *one = NULL, *two = NULL, *answer = NULL;
    if (op != Py_EQ && op != Py_NE) return Py_NewRef(Py_NotImplemented);
    if (Py_TYPE(object) == Py_TYPE(other) || is_closed(object))
        return PyBool_FromLong((object == other) == (op == Py_EQ));
    if (!PyDict_Check(other) && !PyObject_HasAttrString(other, "items"))
        return Py_NewRef(Py_NotImplemented);
    one = dict_of(object);
    if (one) two = dict_of(other);
    if (two) answer = PyObject_RichCompare(one, two, op);
    Py_XDECREF(one);
    Py_XDECREF(two);
    return answer;
}

static Py_hash_t file_hash(PyObject *object) {
    Py_hash_t at = (Py_hash_t)((uintptr_t)object / sizeof(void *));
    return at == -1 ? -2 : at;
}

/* ── Header ──────────────────────────────────────────────────────────────── */

/* The value of a key that is there already stays. */
static int add_metadata(PyObject *dict, const sft_file *file) {
    size_t count = sft_file_metadata_count(file);
    for (size_t i = 0; i < count; i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        PyObject *key = pysft_text(pair.key), *value = pysft_text(pair.value);
        int rc = key && value ? PyDict_Contains(dict, key) : -1;
        if (rc == 0) rc = PyDict_SetItem(dict, key, value);
        Py_XDECREF(key);
        Py_XDECREF(value);
        if (rc < 0) return -1;
    }
    return 0;
}

static PyObject *metadata_of(const sft_set *set) {
    PyObject *dict = NULL;
    for (size_t i = 0; i < sft_set_shard_count(set); i++) {
        const sft_file *file = sft_set_shard_at(set, i);
        if (!sft_file_has_metadata(file)) continue;
        if (!dict) dict = PyDict_New();
        if (!dict || add_metadata(dict, file) < 0) {
            Py_XDECREF(dict);
            return NULL;
        }
    }
    return dict ? dict : Py_NewRef(Py_None);
}

static PyObject *file_metadata(PyObject *object, PyObject *Py_UNUSED(none)) {
    pysft_store *store = pysft_file_store(object);
    PyObject *dict = store ? metadata_of(pysft_store_set(store)) : NULL;
    pysft_store_drop(store);
    return dict;
}

static PyObject *file_header(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "shard", NULL };
    Py_ssize_t shard = 0;
    PyObject *bytes = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|n:header", names, &shard)) return NULL;
    pysft_store *store = pysft_file_store(object);
    if (!store) return NULL;
    sft_set *set = pysft_store_set(store);
    if (shard >= 0 && (size_t)shard < sft_set_shard_count(set)) {
        sft_span text = sft_file_header(sft_set_shard_at(set, (size_t)shard));
        bytes = PyBytes_FromStringAndSize(text.data, (Py_ssize_t)text.len);
    } else {
        PyErr_Format(PyExc_IndexError, "there is no shard %zd", shard);
    }
    pysft_store_drop(store);
    return bytes;
}

static PyObject *ls_of(pysft_state *state, const pysft_store *store, int order) {
    const char *path = pysft_store_path(store);
    pysft_job job;
    (void)pysft_job_begin(&job, NULL);
    PYSFT_NO_GIL(job.code = sft_set_ls_json(pysft_store_set(store), path ? path : "",
                                            (sft_order)order, NULL, NULL, &job.out, &job.err));
    return pysft_job_text(&job, state, path);
}

static PyObject *file_ls_json(PyObject *object, PyObject *args, PyObject *kwargs) {
    int order;
    if (!order_argument(args, kwargs, "|O:ls_json", &order)) return NULL;
    pysft_store *store = pysft_file_store(object);
    PyObject *text = store ? ls_of(pysft_state_from(object), store, order) : NULL;
    pysft_store_drop(store);
    return text;
}

static PyObject *file_index(PyObject *object, PyObject *Py_UNUSED(ignored)) {
    pysft_store *store = pysft_file_store(object);
    if (!store) return NULL;
    const sft_set *set = pysft_store_set(store);
    const char *path = sft_set_index_path(set);
    sft_span text = sft_set_index_metadata(set);
    PyObject *done = path ? Py_BuildValue("(Ns#)", PyUnicode_DecodeFSDefault(path),
                                          text.len ? text.data : "", (Py_ssize_t)text.len)
                          : Py_NewRef(Py_None);
    pysft_store_drop(store);
    return done;
}

/* ── Arrays ──────────────────────────────────────────────────────────────── */

/* Whether a name that the file lacks may be a pattern. */
static bool is_pattern(PyObject *object, PyObject *name) {
    static const char signs[] = "*?[";
    if (!PyUnicode_Check(name) || file_contains(object, name) != 0) return false;
    for (const char *sign = signs; *sign; sign++)
        if (PyUnicode_FindChar(name, (Py_UCS4)*sign, 0, PyUnicode_GetLength(name), 1) >= 0)
            return true;
    return false;
}

/* New reference to the names (one is a str) without patterns, each of which becomes the names that
 * match it. */
static PyObject *names_without_patterns(PyObject *object, PyObject *names) {
    if (names == Py_None) return Py_NewRef(names);
    PyObject *given = PyUnicode_Check(names) ? PyTuple_Pack(1, names) : PySequence_Tuple(names);
    for (Py_ssize_t i = 0; given && i < PyTuple_Size(given); i++) {
        if (!is_pattern(object, PyTuple_GetItem(given, i))) continue;
        pysft_replace(&given, pysft_import_apply(PYSFT_ARRAYS, "matching",
                                                 Py_BuildValue("(OO)", object, given)));
        break;
    }
    return given;
}

static PyObject *arrays_of(PyObject *object, PyObject *names, PyObject *progress,
                           pysft_batch_kind kind) {
    PyObject *dict = NULL;
    pysft_store *store = pysft_file_store(object);
    PyObject *chosen = store ? names_without_patterns(object, names) : NULL;
    if (chosen) dict = pysft_batch(pysft_state_from(object), store, chosen, kind, progress);
    Py_XDECREF(chosen);
    pysft_store_drop(store);
    return dict;
}

static PyObject *file_numpy(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = { "names", "progress", "dtype", NULL };
    PyObject *names = Py_None, *progress = Py_None, *dtype = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO$O:numpy", keywords, &names, &progress,
                                     &dtype))
        return NULL;
    if (dtype == Py_None) return arrays_of(object, names, progress, PYSFT_NUMPY);
    return pysft_import_apply(PYSFT_ARRAYS, "numpy_arrays",
                              Py_BuildValue("(OOOO)", object, names, progress, dtype));
}

static PyObject *file_torch(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = { "names", "progress", "device", "dtype", "copy", NULL };
    PyObject *names = Py_None, *progress = Py_None, *device = Py_None, *dtype = Py_None;
    int copy = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO$OOp:torch", keywords, &names, &progress,
                                     &device, &dtype, &copy))
        return NULL;
    if (device == Py_None && dtype == Py_None)
        return arrays_of(object, names, progress, copy ? PYSFT_TORCH_COPY : PYSFT_TORCH);
    return pysft_import_apply(PYSFT_ARRAYS, "torch_tensors",
                              Py_BuildValue("(OOOOOO)", object, names, progress, device, dtype,
                                            copy ? Py_True : Py_False));
}

/* ── Memory ──────────────────────────────────────────────────────────────── */

static PyObject *file_memory(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "begin", "end", "shard", NULL };
    PyObject *from, *to;
    uint64_t begin, end;
    Py_ssize_t shard = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|n:memory", names, &from, &to, &shard) ||
        pysft_uint_of(from, &begin) < 0 || pysft_uint_of(to, &end) < 0)
        return NULL;
    pysft_store *store = pysft_file_store(object);
    PyObject *memory =
        store ? pysft_memory_of(pysft_state_from(object), store, shard, begin, end) : NULL;
    pysft_store_drop(store);
    return memory;
}

/* ── The handle ──────────────────────────────────────────────────────────── */

static PyObject *get_closed(PyObject *object, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(is_closed(object));
}

static PyObject *get_mapped(PyObject *object, void *Py_UNUSED(closure)) {
    pysft_store *store = pysft_file_store(object);
    if (!store) return NULL;
    bool mapped = pysft_store_mapped(store);
    pysft_store_drop(store);
    return PyBool_FromLong(mapped);
}

static PyObject *get_paths(PyObject *object, void *Py_UNUSED(closure)) {
    pysft_store *store = pysft_file_store(object);
    PyObject *list = store ? PyList_New(0) : NULL;
    const char *path;
    for (size_t i = 0; list && (path = sft_set_shard_path(pysft_store_set(store), i)); i++)
        pysft_list_add(&list, PyUnicode_DecodeFSDefault(path));
    pysft_store_drop(store);
    return list;
}

static PyObject *get_layouts(PyObject *object, void *Py_UNUSED(closure)) {
    pysft_store *store = pysft_file_store(object);
    PyObject *dict = store ? pysft_layouts_of(store) : NULL;
    pysft_store_drop(store);
    return dict;
}

static PyObject *get_nbytes(PyObject *object, void *Py_UNUSED(closure)) {
    pysft_store *store = pysft_file_store(object);
    if (!store) return NULL;
    uint64_t sum = 0;
    sft_set *set = pysft_store_set(store);
    for (size_t i = 0; i < sft_set_shard_count(set); i++)
        sum += sft_file_data_bytes(sft_set_shard_at(set, i));
    pysft_store_drop(store);
    return PyLong_FromUnsignedLongLong(sum);
}

static PyObject *file_close(PyObject *object, PyObject *Py_UNUSED(args)) {
    pysft_store *store = swap_store((FileObject *)object, true);
    PYSFT_NO_GIL(pysft_store_drop(store));
    return Py_NewRef(Py_None);
}

static PyObject *file_enter(PyObject *object, PyObject *Py_UNUSED(none)) {
    pysft_store *store = pysft_file_store(object);
    if (!store) return NULL;
    pysft_store_drop(store);
    return Py_NewRef(object);
}

static PyObject *file_repr(PyObject *object) {
    pysft_store *store = swap_store((FileObject *)object, false);
    if (!store) return PyUnicode_FromString("<File, closed>");
    const char *path = pysft_store_path(store);
    PyObject *where = path ? PyUnicode_DecodeFSDefault(path) : PyUnicode_FromString("");
    size_t count = sft_set_tensor_count(pysft_store_set(store));
    PyObject *text = where ? PyUnicode_FromFormat("<File %R, %zu tensors>", where, count) : NULL;
    Py_XDECREF(where);
    pysft_store_drop(store);
    return text;
}

static PyObject *file_stats(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "names", "histogram", "threads", "progress", NULL };
    PyObject *names = Py_None, *progress = Py_None;
    int histogram = 0, threads = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$piO:stats", words, &names, &histogram,
                                     &threads, &progress))
        return NULL;
    return pysft_import_apply("libsafetensors._stats", "file_stats",
                              Py_BuildValue("(OONiO)", object, names,
                                            PyBool_FromLong(histogram), threads, progress));
}

static PyObject *file_html(PyObject *object, PyObject *Py_UNUSED(none)) {
    return pysft_import_call(PYSFT_VIEWS, "file_html", object);
}

static PyObject *file_reduce(PyObject *object, PyObject *Py_UNUSED(none)) {
    PyObject *how = ((FileObject *)object)->how;
    return pysft_import_apply(PYSFT_VIEWS, "reduce_file",
                              Py_BuildValue("(OO)", object, how ? how : Py_None));
}

static PyGetSetDef file_getset[] = {
    { "closed", get_closed, NULL, "Whether close() was called.", NULL },
    { "mapped", get_mapped, NULL, "Whether all tensors are in memory already.", NULL },
    { "paths", get_paths, NULL, "Paths of the shards; empty for a buffer or an object.", NULL },
    { "nbytes", get_nbytes, NULL, "Total bytes of all tensors.", NULL },
    { "layouts", get_layouts, NULL,
      "Of open(values=True): how each quantised tensor is stored, by its name; None: its values\n"
      "cannot be computed.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef file_methods[] = {
    { "keys", PYSFT_KEYWORDS(file_keys),
      "keys($self, /, order='offset')\n--\n\n"
      "List of names, in the order of 'offset', 'name', 'natural' (x2 before x10) or 'header'." },
    { "items", file_items, METH_NOARGS,
      "items($self, /)\n--\n\nList of (name, Tensor), in the order of the data." },
    { "values", file_values, METH_NOARGS,
      "values($self, /)\n--\n\nList of Tensors, in the order of the data." },
    { "get", PYSFT_KEYWORDS(file_get),
      "get($self, /, name, default=None)\n--\n\nThe Tensor of that name, or default." },
    { "metadata", file_metadata, METH_NOARGS,
      "metadata($self, /)\n--\n\n"
      "Dict of str to str, or None without __metadata__. If shards disagree, the first one wins." },
    { "numpy", PYSFT_KEYWORDS(file_numpy),
      "numpy($self, /, names=None, progress=None, *, dtype=None)\n--\n\n"
      "Dict of name -> numpy array, for all tensors or those in names, which may be patterns\n"
      "('*', '?', '[a-z]', '[!a-z]'). Arrays share the memory of a mapped file, private to this\n"
      "process; otherwise the data is read, once per call.\n"
      "dtype: of numpy or torch, or a name ('BF16', 'bfloat16'), to which tensors of its kind\n"
      "are converted: floats to a float, integers to an integer.\n"
      "progress: called with bytes done and total about ten times a second, or None.\n"
      "TensorNotFoundError; SafetensorError or OSError if reading fails." },
    { "torch", PYSFT_KEYWORDS(file_torch),
      "torch($self, /, names=None, progress=None, *, device=None, dtype=None, copy=False)\n"
      "--\n\n"
      "Dict of name -> torch tensor, on the CPU or on a device that torch knows; see numpy.\n"
      "copy=True: each in memory of its own." },
    { "ls_json", PYSFT_KEYWORDS(file_ls_json),
      "ls_json($self, /, order='offset')\n--\n\nWhat \"safetensors ls --json\" prints." },
    { "_index", file_index, METH_NOARGS,
      "_index($self, /)\n--\n\nPath of the index, and its metadata as JSON; None without one." },
    { "header", PYSFT_KEYWORDS(file_header),
      "header($self, /, shard=0)\n--\n\nBytes of a shard's header as stored." },
    { "memory", PYSFT_KEYWORDS(file_memory),
      "memory($self, /, begin, end, shard=0)\n--\n\n"
      "Read-only buffer of bytes begin to end of the file, which must be inside its data: the\n"
      "memory of a mapped file, else a copy. For reading adjacent tensors at once.\n"
      "ValueError, IndexError." },
    { "stats", PYSFT_KEYWORDS(file_stats),
      "stats($self, /, names=None, *, histogram=False, threads=0, progress=None)\n--\n\n"
      "Dict of name -> Tensor.stats() of all tensors, or those in names, which may be patterns.\n"
      "Reads them; in notebooks a table, with histograms if they were asked for." },
    { "close", file_close, METH_NOARGS,
      "close($self, /)\n--\n\n"
      "Close this handle. Tensors and arrays made from it keep the memory." },
    { "__enter__", file_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nThe File itself." },
    { "__exit__", file_close, METH_VARARGS,
      "__exit__($self, kind, value, trace, /)\n--\n\nClose it." },
    { "__reduce__", file_reduce, METH_NOARGS,
      "__reduce__($self, /)\n--\n\n"
      "Pickled by its path. Where it is unpickled the headers must be the same (ValueError).\n"
      "TypeError for a buffer or an object." },
    { "_repr_html_", file_html, METH_NOARGS,
      "_repr_html_($self, /)\n--\n\nA table of the tensors, for notebooks." },
    { NULL, NULL, 0, NULL },
};

static PyMemberDef file_members[] = PYSFT_WEAKREFS(FileObject, weakrefs);

static PyType_Slot file_slots[] = {
    { Py_tp_doc, "An open model: one file, or all shards of one; made by open().\n\n"
      "An immutable mapping of names to Tensors, in the order of the data. Any number of\n"
      "threads may use it. Tensors and arrays made from it keep its memory after close()." },
    { Py_tp_dealloc, file_dealloc },
    { Py_tp_traverse, file_traverse },
    { Py_tp_clear, file_clear },
    { Py_tp_repr, file_repr },
    { Py_tp_richcompare, file_compare },
    { Py_tp_hash, file_hash },
    { Py_tp_iter, file_iter },
    { Py_tp_members, file_members },
    { Py_tp_getset, file_getset },
    { Py_tp_methods, file_methods },
    { Py_mp_length, file_len },
    { Py_mp_subscript, file_subscript },
    { Py_sq_contains, file_contains },
    { 0, NULL },
};

PyType_Spec pysft_file_spec = {
    .name = "libsafetensors._core.File",
    .basicsize = sizeof(FileObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = file_slots,
};

int pysft_file_register(PyObject *type) {
    PyObject *mapping = pysft_import("_collections_abc", "Mapping");
    PyObject *done = mapping ? PyObject_CallMethod(mapping, "register", "O", type) : NULL;
    Py_XDECREF(mapping);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
