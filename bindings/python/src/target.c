/* A Python object with write(), as a sink. */
#include "specs.h"

#define OBJECT_PIECE ((size_t)1 << 20) /* most bytes per write() of an object */

bool pysft_is_target(PyObject *object) {
    bool is_path = PyUnicode_Check(object) || PyBytes_Check(object)
                   || PyObject_HasAttrString(object, "__fspath__");
    return !is_path && PyObject_HasAttrString(object, "write");
}

/* How many of len bytes write() took, by its result; -1 with an exception. */
static Py_ssize_t bytes_taken(PyObject *answer, Py_ssize_t len) {
    if (!PyLong_Check(answer) || PyBool_Check(answer)) return len;
    Py_ssize_t taken = PyLong_AsSsize_t(answer);
    if (taken > 0 && taken <= len) return taken;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_OSError, "expected write() to take 1 to %zd bytes, found %zd", len,
                     taken);
    return -1;
}

static Py_ssize_t write_piece(PyObject *target, const char *bytes, size_t len) {
    Py_ssize_t most = (Py_ssize_t)(len < OBJECT_PIECE ? len : OBJECT_PIECE), taken = -1;
    PyObject *piece = PyBytes_FromStringAndSize(bytes, most);
    PyObject *answer = piece ? PyObject_CallMethod(target, "write", "O", piece) : NULL;
    if (answer) taken = bytes_taken(answer, most);
    Py_XDECREF(answer);
    Py_XDECREF(piece);
    return taken;
}

sft_code pysft_target_write(void *ctx, const void *bytes, size_t len, sft_error *err) {
    PyObject *target = ctx;
    Py_ssize_t taken = 0;
    PyGILState_STATE gil = PyGILState_Ensure();
    for (size_t done = 0; done < len && taken >= 0; done += (size_t)(taken < 0 ? 0 : taken))
        taken = write_piece(target, (const char *)bytes + done, len - done);
    PyGILState_Release(gil);
    if (taken >= 0) return SFT_OK;
    return sft_error_set(err, SFT_IO_WRITE, 0, "write() of the target failed");
}
