/* Moves Arrow's C structs into and out of PyCapsules. Tests: test_dataset_write.py. */
#include "dataset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS_MOST 64 /* depth of a schema */

static const char schema_name[] = "arrow_schema";
static const char array_name[] = "arrow_array";
static const char stream_name[] = "arrow_array_stream";

/* ── Schemas ── */

static const struct ArrowSchema *schema_in(PyObject *capsule) {
    const struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, schema_name);
    if (!schema || schema->release) return schema;
    PyErr_SetString(PyExc_ValueError, "expected an Arrow schema, found one that is released");
    return NULL;
}

const struct ArrowSchema *pysft_schema_of(PyObject *object, PyObject **keep) {
    *keep = PyCapsule_IsValid(object, schema_name)
                ? Py_NewRef(object)
                : PyObject_CallMethod(object, "__arrow_c_schema__", NULL);
    return *keep ? schema_in(*keep) : NULL;
}

typedef struct {
    const struct ArrowSchema *schema;
    int64_t next; /* child; n_children is the dictionary */
} schema_level;

static int add_text(PyObject **all, const char *text) {
    PyObject *one = PyBytes_FromStringAndSize(text, (Py_ssize_t)strlen(text) + 1);
    if (one) PyBytes_ConcatAndDel(all, one);
    return one && *all ? 0 : -1;
}

static int add_schema(PyObject **all, const schema_level *above, const struct ArrowSchema *s) {
    char count[32];
    bool named = above && strcmp(above->schema->format, "+s") == 0;
    if (!s || !s->format || s->n_children < 0)
        return pysft_refuse(PyExc_ValueError,
                            "expected an Arrow schema, found one without a format");
    PyOS_snprintf(count, sizeof count, "%lld", (long long)s->n_children);
    if (named && add_text(all, s->name ? s->name : "") < 0) return -1;
    return add_text(all, s->format) < 0 ? -1 : add_text(all, count);
}

static int add_levels(PyObject **all, const struct ArrowSchema *top) {
    schema_level levels[LEVELS_MOST] = { { top, 0 } };
    size_t depth = 1;
    if (add_schema(all, NULL, top) < 0) return -1;
    while (depth) {
        schema_level *level = &levels[depth - 1];
        const struct ArrowSchema *here = level->schema, *below = NULL;
        const int64_t i = level->next++;
        if (i > here->n_children) depth--;
        else below = i < here->n_children ? here->children[i] : here->dictionary;
        if (!below) continue;
        if (depth == LEVELS_MOST)
            return pysft_refuse(PyExc_ValueError, "expected at most 64 levels in an Arrow schema");
        if (add_schema(all, level, below) < 0) return -1;
        levels[depth++] = (schema_level){ below, 0 };
    }
    return 0;
}

PyObject *pysft_schema_like(const struct ArrowSchema *schema) {
    PyObject *all = PyBytes_FromStringAndSize(NULL, 0);
    if (all && add_levels(&all, schema) == 0) return all;
    Py_XDECREF(all);
    return NULL;
}

/* ── Arrays ── */

static int move_array(PyObject *capsule, struct ArrowArray *out) {
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, array_name);
    if (!array) return -1;
    if (!array->release)
        return pysft_refuse(PyExc_ValueError,
                            "expected an Arrow array, found one that is released");
    *out = *array;
    array->release = NULL;
    return 0;
}

static int check_like(PyObject *schema, PyObject *expected) {
    const struct ArrowSchema *one = schema_in(schema);
    PyObject *like = one ? pysft_schema_like(one) : NULL;
    int same = like ? PyObject_RichCompareBool(like, expected, Py_EQ) : -1;
    Py_XDECREF(like);
    if (same == 0)
        PyErr_SetString(PyExc_ValueError, "expected batches of one schema, found another one");
    return same == 1 ? 0 : -1;
}

int pysft_array_of(PyObject *object, PyObject *expected, struct ArrowArray *out) {
    if (PyCapsule_IsValid(object, array_name)) return move_array(object, out);
    PyObject *pair = PyObject_CallMethod(object, "__arrow_c_array__", NULL);
    if (!pair) return -1;
    PyObject *schema = PySequence_GetItem(pair, 0);
    PyObject *array = schema ? PySequence_GetItem(pair, 1) : NULL;
    int status = array ? check_like(schema, expected) : -1;
    if (status == 0) status = move_array(array, out);
    Py_XDECREF(array);
    Py_XDECREF(schema);
    Py_DECREF(pair);
    return status;
}

/* ── Our own capsules, which release what nobody consumed ── */

static void drop_schema(PyObject *capsule) {
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, schema_name);
    if (schema && schema->release) schema->release(schema);
    free(schema);
}

static void drop_array(PyObject *capsule) {
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, array_name);
    if (array && array->release) array->release(array);
    free(array);
}

static void drop_stream(PyObject *capsule) {
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, stream_name);
    if (stream && stream->release) stream->release(stream);
    free(stream);
}

/* New capsule with a copy of the struct; on NULL the caller still owns the struct. */
static PyObject *capsule_of(const void *value, size_t size, const char *name,
                            PyCapsule_Destructor drop) {
    void *copy = malloc(size);
    if (!copy) return PyErr_NoMemory();
    memcpy(copy, value, size);
    PyObject *capsule = PyCapsule_New(copy, name, drop);
    if (!capsule) free(copy);
    return capsule;
}

PyObject *pysft_stream_capsule(struct ArrowArrayStream *stream) {
    PyObject *capsule = capsule_of(stream, sizeof *stream, stream_name, drop_stream);
    if (!capsule) stream->release(stream);
    return capsule;
}

/* ── Streams to read ── */

typedef struct stream_object {
    PyObject_HEAD
    struct ArrowArrayStream stream; /* release NULL: none */
    atomic_flag busy;
} stream_object;

static PyObject *stream_failed(stream_object *self, int failed) {
    const char *own_text = self->stream.get_last_error
                           ? self->stream.get_last_error(&self->stream) : NULL;
    const char *text = own_text ? own_text : strerror(failed);
    if (PyErr_Occurred()) return NULL;
    if (failed == ENOMEM) return PyErr_NoMemory();
    if (failed == EINVAL) return PyErr_Format(PyExc_ValueError, "%s", text);
    PyObject *values = Py_BuildValue("is", failed, text);
    if (values) PyErr_SetObject(PyExc_OSError, values);
    Py_XDECREF(values);
    return NULL;
}

static PyObject *stream_schema(PyObject *object, PyObject *Py_UNUSED(unused)) {
    stream_object *self = (stream_object *)object;
    struct ArrowSchema schema = { .release = NULL };
    PyObject *capsule = NULL;
    int failed;
    if (!pysft_enter(&self->busy, "ArrowStream")) return NULL;
    PYSFT_NO_GIL(failed = self->stream.get_schema(&self->stream, &schema));
    if (failed) (void)stream_failed(self, failed);
    else capsule = capsule_of(&schema, sizeof schema, schema_name, drop_schema);
    if (!failed && !capsule && schema.release) schema.release(&schema);
    pysft_leave(&self->busy);
    return capsule;
}

static PyObject *stream_next(PyObject *object) {
    stream_object *self = (stream_object *)object;
    struct ArrowArray array = { .release = NULL };
    PyObject *capsule = NULL;
    int failed;
    if (!pysft_enter(&self->busy, "ArrowStream")) return NULL;
    PYSFT_NO_GIL(failed = self->stream.get_next(&self->stream, &array));
    if (failed) (void)stream_failed(self, failed);
    else if (array.release) capsule = capsule_of(&array, sizeof array, array_name, drop_array);
    if (!failed && !capsule && array.release) array.release(&array);
    pysft_leave(&self->busy);
    return capsule;
}

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "source", NULL };
    PyObject *source;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:ArrowStream", words, &source)) return NULL;
    PyObject *capsule = PyCapsule_IsValid(source, stream_name)
                            ? Py_NewRef(source)
                            : PyObject_CallMethod(source, "__arrow_c_stream__", NULL);
    struct ArrowArrayStream *stream =
        capsule ? PyCapsule_GetPointer(capsule, stream_name) : NULL;
    if (stream && !stream->release) {
        PyErr_SetString(PyExc_ValueError, "expected an Arrow stream, found one that is released");
        stream = NULL;
    }
    stream_object *self = stream ? (stream_object *)pysft_object_new(type) : NULL;
    if (self) {
        atomic_flag_clear(&self->busy);
        self->stream = *stream;
        stream->release = NULL;
    }
    Py_XDECREF(capsule);
    return (PyObject *)self;
}

static void stream_dealloc(PyObject *object) {
    stream_object *self = (stream_object *)object;
    if (self->stream.release) self->stream.release(&self->stream);
    pysft_object_free(object);
}

static PyMethodDef stream_methods[] = {
    { "schema", stream_schema, METH_NOARGS, "schema($self, /)\n--\n\n" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot stream_slots[] = {
    { Py_tp_doc, "ArrowStream(source)\n--\n\n"
      "Iterates over the batches of an Arrow stream, each a capsule 'arrow_array'." },
    { Py_tp_new, stream_new },
    { Py_tp_dealloc, stream_dealloc },
    { Py_tp_iter, PyObject_SelfIter },
    { Py_tp_iternext, stream_next },
    { Py_tp_methods, stream_methods },
    { 0, NULL },
};

PyType_Spec pysft_stream_spec = {
    "libsafetensors._core.ArrowStream", sizeof(stream_object), 0, Py_TPFLAGS_DEFAULT,
    stream_slots,
};
