/* Sinks: a Python object with write(), and one that gathers small writes into large ones.
 * Tests: test_writer.py. */
#include "specs.h"
#include "safetensors_io.h"

#include <stdlib.h>
#include <string.h>

#define OBJECT_PIECE ((size_t)1 << 20) /* most bytes per write() of an object */

bool pysft_is_target(PyObject *object) {
    bool is_path = PyUnicode_Check(object) || PyBytes_Check(object)
                   || PyObject_HasAttrString(object, "__fspath__");
    return !is_path && PyObject_HasAttrString(object, "write");
}

/* 1: write() of this object returns None where it took nothing, since it would block. */
static int is_raw(PyObject *target) {
    PyObject *raw = pysft_import("io", "RawIOBase");
    int is = raw ? PyObject_IsInstance(target, raw) : -1;
    Py_XDECREF(raw);
    return is;
}

/* How many of len bytes write() took, by its result; -1 with an exception. */
static Py_ssize_t bytes_taken(PyObject *target, PyObject *answer, Py_ssize_t len) {
    if (answer == Py_None) {
        int raw = is_raw(target);
        if (raw > 0)
            PyErr_SetString(PyExc_BlockingIOError, "expected write() to take bytes, found a stream "
                                                   "that would block");
        return raw ? -1 : len;
    }
    if (!PyIndex_Check(answer) || PyBool_Check(answer)) return len;
    Py_ssize_t taken = PyNumber_AsSsize_t(answer, PyExc_OverflowError);
    if (taken > 0 && taken <= len) return taken;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_OSError, "expected write() to take 1 to %zd bytes, found %zd", len,
                     taken);
    return -1;
}

sft_code pysft_target_write(void *ctx, const void *bytes, size_t len, sft_error *err) {
    PyObject *target = ctx;
    Py_ssize_t taken = 0;
    PyGILState_STATE gil = PyGILState_Ensure();
    for (size_t done = 0; done < len && taken >= 0;) {
        size_t most = len - done < OBJECT_PIECE ? len - done : OBJECT_PIECE;
        PyObject *piece = PyBytes_FromStringAndSize((const char *)bytes + done, (Py_ssize_t)most);
        PyObject *answer = piece ? PyObject_CallMethod(target, "write", "O", piece) : NULL;
        taken = answer ? bytes_taken(target, answer, (Py_ssize_t)most) : -1;
        Py_XDECREF(answer);
        Py_XDECREF(piece);
        if (taken > 0) done += (size_t)taken;
    }
    PyGILState_Release(gil);
    if (taken >= 0) return SFT_OK;
    return sft_error_set(err, SFT_IO_WRITE, 0, "write() of the target failed");
}

/* ── Gathering ── */

#define GATHER_CAPACITY ((size_t)256 << 10) /* fits the processor's cache */
#define GATHER_LIMIT ((size_t)64 << 10)  /* larger pieces are passed on directly */

typedef struct gather_sink {
    sft_sink to;
    uint64_t at; /* offset of the first byte in buffer */
    size_t used;
    char buffer[GATHER_CAPACITY];
} gather_sink;

static sft_code expect_all(void *ctx, uint64_t total, sft_error *err) {
    const gather_sink *sink = ctx;
    return sft_sink_expect(&sink->to, total, err);
}

static sft_code flush(gather_sink *sink, sft_error *err) {
    size_t len = sink->used;
    sink->used = 0;
    return len > 0 ? sft_sink_write(&sink->to, sink->at, sink->buffer, len, err) : SFT_OK;
}

static sft_code gather(void *ctx, uint64_t offset, const void *bytes, size_t len,
                       sft_error *err) {
    gather_sink *sink = ctx;
    bool fits = len <= GATHER_CAPACITY - sink->used && offset == sink->at + sink->used;
    if (!fits || len > GATHER_LIMIT) {
        sft_code code = flush(sink, err);
        if (code) return code;
        sink->at = offset;
    }
    if (len > GATHER_LIMIT) return sft_sink_write(&sink->to, offset, bytes, len, err);
    if (len > 0) memcpy(sink->buffer + sink->used, bytes, len);
    sink->used += len;
    return SFT_OK;
}

static sft_code finish_gather(void *ctx, sft_error *err) {
    gather_sink *sink = ctx;
    sft_code code = flush(sink, err);
    if (!code) code = sft_sink_finish(&sink->to, err);
    else sft_sink_abandon(&sink->to);
    free(sink);
    return code;
}

static void abandon_gather(void *ctx) {
    gather_sink *sink = ctx;
    sft_sink_abandon(&sink->to);
    free(sink);
}

static sft_code limit_gathered(void *ctx, uint32_t mode, sft_error *err) {
    gather_sink *sink = ctx;
    return sft_sink_limit_mode(&sink->to, mode, err);
}

static const sft_sink_vtable gather_sink_vtable = {
    sizeof(sft_sink_vtable), expect_all, gather, finish_gather, abandon_gather, limit_gathered, NULL
};

sft_sink pysft_sink_gather(sft_sink to) {
    gather_sink *sink = malloc(sizeof *sink);
    if (!sink) return to;
    sink->to = to;
    sink->at = 0;
    sink->used = 0;
    return (sft_sink){ sink, &gather_sink_vtable, to.seekable };
}
