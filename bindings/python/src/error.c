/* Raises the library's errors as Python exceptions. Tests: test_errors.py. */
#include "core.h"

#include "safetensors_remote.h"

#include <errno.h>
#include <string.h>

static const char error_doc[] =
    "SafetensorError(*args)\n--\n\n"
    "An error of the library. str() is the path and the message.\n\n"
    "code: name of the error code as in docs/errors.md, such as \"data_truncated\".\n"
    "offset (byte of the file), tensor (its name), errno, path: None if unknown.\n"
    "hint: what to try next, or None; tracebacks show it below the message.\n\n"
    "Codes for which docs/errors.md names a built-in exception raise that one (OSError: the\n"
    "subclass of its errno) with the same attributes.";

static const char missing_doc[] =
    "TensorNotFoundError(*args)\n--\n\n"
    "No such tensor: a SafetensorError that is also a KeyError.";

static const char *const error_fields[] = { "code",  "offset", "tensor", "hint",
                                            "errno", "path",   NULL };

/* New exception class; inspect takes its signature from signed_doc. `fields` is consumed and may
 * be NULL after a failure. */
static PyObject *make_class(const char *name, const char *signed_doc, PyObject *bases,
                            PyObject *fields) {
    const char *doc = strstr(signed_doc, "--\n\n") + 4;
    PyObject *cls =
        fields ? PyErr_NewExceptionWithDoc(name, signed_doc, bases, fields) : NULL;
    PyObject *text = cls ? PyUnicode_FromString(doc) : NULL;
    if (!text || PyObject_SetAttrString(cls, "__doc__", text) < 0) Py_CLEAR(cls);
    Py_XDECREF(text);
    Py_XDECREF(fields);
    return cls;
}

int pysft_error_add(PyObject *module) {
    pysft_state *state = pysft_state_of(module);
    PyObject *fields = PyDict_New();
    for (size_t i = 0; fields && error_fields[i]; i++)
        if (PyDict_SetItemString(fields, error_fields[i], Py_None) < 0) Py_CLEAR(fields);
    state->error = make_class("libsafetensors.SafetensorError", error_doc, NULL, fields);
    PyObject *bases = state->error ? PyTuple_Pack(2, state->error, PyExc_KeyError) : NULL;
    if (!bases) return -1;
    /* KeyError.__str__ would show the repr of the message. */
    PyObject *show = PyObject_GetAttrString(PyExc_BaseException, "__str__");
    state->missing = make_class("libsafetensors.TensorNotFoundError", missing_doc, bases,
                                show ? Py_BuildValue("{sO}", "__str__", show) : NULL);
    Py_XDECREF(show);
    Py_DECREF(bases);
    if (!state->missing) return -1;
    if (PyModule_AddObjectRef(module, "SafetensorError", state->error) < 0) return -1;
    return PyModule_AddObjectRef(module, "TensorNotFoundError", state->missing);
}

const char *pysft_exception(sft_code code) {
    static const struct {
        sft_code code;
        const char *name;
    } rows[] = { /* codes whose exception is not their class's */
        { SFT_OK, "" },
        { SFT_MANIFEST_MISSING, "FileNotFoundError" },
        { SFT_OUT_OF_MEMORY, "MemoryError" },
        { SFT_ADDRESS_SPACE, "MemoryError" },
        { SFT_NOT_FOUND, "FileNotFoundError" },
        { SFT_TENSOR_NOT_FOUND, "SafetensorError" },
        { SFT_SLICE_RANK, "IndexError" },
        { SFT_SLICE_BOUNDS, "IndexError" },
        { SFT_SLICE_PARTIAL_BYTE, "SafetensorError" },
        { SFT_NAME_RESERVED, "SafetensorError" },
        { SFT_CAST_DTYPE, "TypeError" },
        { SFT_COLUMN_TYPE, "TypeError" },
        { SFT_EXISTS, "FileExistsError" },
        { SFT_IS_LINK, "OSError" },
        { SFT_EDIT_INTERRUPTED, "OSError" },
        { SFT_EDIT_BUSY, "OSError" },
        { SFT_HARD_LINKS, "OSError" },
        { SFT_DATASET_BUSY, "OSError" },
        { SFT_DATASET_DISAGREES, "ValueError" },
        { SFT_DATASET_UNGUARDED, "OSError" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code) return rows[i].name;
    switch ((int)sft_code_describe(code)->cls) {
    case SFT_CLASS_IO: return "OSError";
    case SFT_CLASS_USAGE: return "ValueError";
    case SFT_CLASS_CANCELLED: return "KeyboardInterrupt";
    default: return "SafetensorError";
    }
}

/* The class of that name, borrowed. */
static PyObject *class_named(pysft_state *state, const char *name) {
    const struct {
        const char *name;
        PyObject *cls;
    } rows[] = {
        { "MemoryError", PyExc_MemoryError },
        { "OSError", PyExc_OSError },
        { "FileNotFoundError", PyExc_FileNotFoundError },
        { "FileExistsError", PyExc_FileExistsError },
        { "ValueError", PyExc_ValueError },
        { "TypeError", PyExc_TypeError },
        { "IndexError", PyExc_IndexError },
        { "KeyboardInterrupt", PyExc_KeyboardInterrupt },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0) return rows[i].cls;
    return state->error;
}

/* New reference to the exception class; for OSError the subclass of this errno. */
static PyObject *class_of(pysft_state *state, const sft_error *err, int number) {
    if (err->code == SFT_TENSOR_NOT_FOUND) return Py_NewRef(state->missing);
    PyObject *cls = class_named(state, pysft_exception(err->code));
    if (cls != PyExc_OSError || number == 0) return Py_NewRef(cls);
    PyObject *one = PyObject_CallFunction(cls, "is", number, "");
    if (!one) return NULL;
    cls = Py_NewRef((PyObject *)Py_TYPE(one));
    Py_DECREF(one);
    return cls;
}

/* "path: byte 12: tensor 'x': expected …, found …"; of a shard its path stands before the byte. */
static PyObject *full_text(const sft_error *err, PyObject *path, PyObject *tensor) {
    size_t len = (size_t)err->path_len, begin = len > 0 ? len + 2 : 0;
    PyObject *text = pysft_text(sft_span_cstr(err->message + begin));
    PyObject *shard = text && len > 0 ? pysft_text((sft_span){ err->message, len }) : NULL;
    unsigned long long offset = err->offset;
    if (text && tensor != Py_None)
        pysft_replace(&text, PyUnicode_FromFormat("tensor %R: %U", tensor, text));
    if (text && err->offset != SFT_NO_OFFSET)
        pysft_replace(&text, PyUnicode_FromFormat("byte %llu: %U", offset, text));
    if (text && shard) pysft_replace(&text, PyUnicode_FromFormat("%U: %U", shard, text));
    Py_XDECREF(shard);
    if (text && path != Py_None && PyUnicode_GetLength(path) > 0)
        pysft_replace(&text, PyUnicode_FromFormat("%U: %U", path, text));
    return text;
}

/* Steals value, which may be NULL after a failure. */
static int set_field(PyObject *exc, const char *name, PyObject *value) {
    int rc = value ? PyObject_SetAttrString(exc, name, value) : -1;
    Py_XDECREF(value);
    return rc;
}

static int set_fields(PyObject *exc, const sft_error *err, PyObject *path, PyObject *tensor,
                      int number) {
    const char *hint = pysft_hint_text(err->hint);
    bool placed = err->offset != SFT_NO_OFFSET;
    if (set_field(exc, "offset", placed ? PyLong_FromUnsignedLongLong(err->offset)
                                        : Py_NewRef(Py_None)) < 0
        || set_field(exc, "code", PyUnicode_FromString(sft_code_describe(err->code)->name)) < 0
        || set_field(exc, "tensor", Py_NewRef(tensor)) < 0
        || set_field(exc, "path", Py_NewRef(path)) < 0
        || set_field(exc, "errno", number ? PyLong_FromLong(number) : Py_NewRef(Py_None)) < 0
        || set_field(exc, "hint", hint ? PyUnicode_FromString(hint) : Py_NewRef(Py_None)) < 0)
        return -1;
    if (!hint || strstr(err->message, hint)) return 0;
    /* A note, which tracebacks show below the message. From Python 3.11 on. */
    if (!PyObject_HasAttrString(exc, "add_note")) return 0;
    PyObject *done = PyObject_CallMethod(exc, "add_note", "s", hint);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Whether a path is scheme://…, of a URL that is not read here. */
static bool is_foreign_url(const char *path) {
    const char *at = path;
    while ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
           (at > path && ((*at >= '0' && *at <= '9') || *at == '+' || *at == '.' || *at == '-')))
        at++;
    return at > path && strncmp(at, "://", 3) == 0 && !sft_remote_is_url(path);
}

PyObject *pysft_raise(pysft_state *state, const sft_error *err, const char *path) {
    PyObject *cls = NULL, *where = NULL, *tensor = NULL, *text = NULL, *exc = NULL;
    sft_error hinted;
    if (PyErr_Occurred()) return NULL;
    if ((err->code == SFT_NOT_FOUND || err->os_errno == ENOENT) && path && is_foreign_url(path)) {
        hinted = *err;
        hinted.hint = (sft_hint)PYSFT_HINT_URL;
        (void)PyOS_snprintf(hinted.message, sizeof hinted.message, "%.200s; %s", err->message,
                            pysft_hint_text(hinted.hint));
        err = &hinted;
    }
    int number = err->os_errno;
    if (!number && err->code == SFT_NOT_FOUND) number = ENOENT;
    if (!number && err->code == SFT_EXISTS) number = EEXIST;
    /* The library reports a folder without an errno. */
    if (!number && err->code == SFT_IO_NOT_FILE && path && pysft_path_is(path, "isdir"))
        number = EISDIR;
    cls = class_of(state, err, number);
    where = cls ? path ? PyUnicode_DecodeFSDefault(path) : Py_NewRef(Py_None) : NULL;
    if (where && err->tensor_len == SFT_NO_TENSOR) tensor = Py_NewRef(Py_None);
    else if (where) tensor = pysft_text((sft_span){ err->tensor, err->tensor_len });
    text = tensor ? full_text(err, where, tensor) : NULL;
    exc = text ? PyObject_CallFunctionObjArgs(cls, text, NULL) : NULL;
    if (exc && set_fields(exc, err, where, tensor, number) == 0)
        PyErr_SetObject((PyObject *)Py_TYPE(exc), exc);
    Py_XDECREF(exc);
    Py_XDECREF(text);
    Py_XDECREF(tensor);
    Py_XDECREF(where);
    Py_XDECREF(cls);
    return NULL;
}

PyObject *pysft_raise_code(pysft_state *state, sft_code code, const char *text,
                           const char *path) {
    sft_error err = SFT_ERROR_INIT;
    (void)sft_error_set(&err, code, 0, text);
    return pysft_raise(state, &err, path);
}

#define NEAR_MOST 3 /* bytes in which a near name differs, at one place */

/* Bytes of the longer name between what both have in common at the beginning and at the end. */
static size_t difference(sft_span a, sft_span b) {
    size_t most = a.len < b.len ? a.len : b.len, first = 0, last = 0;
    while (first < most && a.data[first] == b.data[first]) first++;
    while (last < most - first && a.data[a.len - 1 - last] == b.data[b.len - 1 - last]) last++;
    return (a.len > b.len ? a.len : b.len) - first - last;
}

/* Whether one name is the other behind levels of its own: "model.norm.weight" and "norm.weight". */
static bool is_behind(sft_span a, sft_span b) {
    sft_span longer = a.len > b.len ? a : b, end = a.len > b.len ? b : a;
    size_t more = longer.len - end.len;
    return end.len > 0 && more > 1 && longer.data[more - 1] == '.'
           && memcmp(longer.data + more, end.data, end.len) == 0;
}

/* The tensor whose name is nearest to one that is not there, or NULL. A pass over the names: what
 * asks for many names that may be missing must not wait for more. */
static const sft_tensor *near_name(const sft_set *set, sft_span name) {
    const sft_tensor *best = NULL, *behind = NULL;
    size_t least = NEAR_MOST + 1;
    for (size_t i = 0; i < sft_set_tensor_count(set); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        size_t between = difference(tensor->name, name);
        if (between < least && 2 * between < name.len) {
            best = tensor;
            least = between;
        }
        if (!behind && is_behind(tensor->name, name)) behind = tensor;
    }
    return best ? best : behind;
}

PyObject *pysft_not_found(pysft_state *state, PyObject *name, const sft_set *set,
                          const char *path) {
    sft_error err = SFT_ERROR_INIT;
    sft_span span = { NULL, 0 };
    if (pysft_span_of(name, "name", &span) < 0) PyErr_Clear();
    const sft_tensor *near = span.data ? near_name(set, span) : NULL;
    PyObject *known = near ? pysft_text(near->name) : NULL;
    PyObject *text = known ? PyUnicode_FromFormat("File does not contain tensor %U: did you mean "
                                                  "\"%U\"?", name, known)
                           : PyUnicode_FromFormat("File does not contain tensor %U", name);
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    Py_XDECREF(known);
    Py_XDECREF(text);
    if (!bytes) return NULL;
    (void)sft_error_set(&err, SFT_TENSOR_NOT_FOUND, 0, PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    (void)pysft_raise(state, &err, path);
    return NULL;
}

size_t pysft_text_cut(const char *text, size_t len, size_t most) {
    if (len <= most) return len;
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80) most--;
    return most;
}

sft_code pysft_error_tensor(sft_error *err, sft_code code, sft_span name, const char *text) {
    sft_error_set(err, code, 0, text);
    size_t len = pysft_text_cut(name.data, name.len, sizeof err->tensor);
    if (len > 0) memcpy(err->tensor, name.data, len);
    err->tensor_len = (uint32_t)len;
    return code;
}
