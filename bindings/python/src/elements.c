/* Checks that a buffer holds elements of an expected dtype. Tests: test_elements.py. */
#include "specs.h"
#include "tensor.h"

#include <string.h>

static bool is_one_of(char letter, const char *letters) {
    return letter != '\0' && strchr(letters, letter) != NULL;
}

/* Whether a format letter (after the byte-order sign) is this kind of number. */
static bool letter_fits(const char *format, sft_dtype dtype) {
    sft_kind kind = sft_dtype_describe(dtype)->kind;
    bool single = format[0] != '\0' && format[1] == '\0';
    if (kind == SFT_KIND_COMPLEX) return strcmp(format, "Zf") == 0 || strcmp(format, "F") == 0;
    if (!single) return false;
    /* BF16 has no letter: it is passed as 16-bit integers. */
    if (dtype == SFT_BF16) return is_one_of(*format, "hH");
    switch (kind) {
    case SFT_KIND_BOOL: return *format == '?';
    case SFT_KIND_INT: return is_one_of(*format, "hilqn");
    case SFT_KIND_UINT: return is_one_of(*format, "HILQN");
    case SFT_KIND_FLOAT: return is_one_of(*format, "efd");
    case SFT_KIND_COMPLEX: return false;
    }
    return false;
}

/* Plain bytes match every dtype; otherwise the elements must be those of the dtype, in file
 * order. */
static bool format_fits(const char *format, Py_ssize_t item, sft_dtype dtype) {
    bool order_fits = pysft_little_endian;
    if (!format) return true;
    if (is_one_of(*format, "<>!=@")) {
        if (*format == '<') order_fits = true;
        if (is_one_of(*format, ">!")) order_fits = false;
        format++;
    }
    bool single = format[0] != '\0' && format[1] == '\0';
    if (single && is_one_of(*format, "bBc")) return true;
    if (!order_fits && item > 1) return false;
    return letter_fits(format, dtype)
           && (uint64_t)item * 8 == sft_dtype_describe(dtype)->bits;
}

static bool refuse_elements(pysft_state *state, const char *found, sft_dtype dtype,
                            sft_span name) {
    sft_error err = SFT_ERROR_INIT;
    char text[256];
    const char *wanted = sft_dtype_describe(dtype)->name;
    const char *packed = sft_dtype_describe(dtype)->bits < 8 ? "packed " : "";
    (void)PyOS_snprintf(text, sizeof text,
                        "expected little-endian elements of %s or plain bytes, found elements of "
                        "\"%.80s\": convert them, or hand over their %sbytes",
                        wanted, found, packed);
    if (name.data) (void)pysft_error_tensor(&err, SFT_BAD_ARGUMENT, name, text);
    else (void)sft_error_set(&err, SFT_BAD_ARGUMENT, 0, text);
    (void)pysft_raise(state, &err, NULL);
    return false;
}

/* numpy has no buffer format for these elements: the name of the dtype decides. */
static bool unnamed_take(pysft_state *state, PyObject *object, int flags, sft_dtype dtype,
                         sft_span name, Py_buffer *view) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *kind = PyObject_GetAttrString(object, "dtype");
    PyObject *text = kind ? PyObject_Str(kind) : NULL;
    Py_XDECREF(kind);
    const char *found = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    PyErr_Clear();
    bool known = found && PyObject_GetBuffer(object, view, flags & ~PyBUF_FORMAT) == 0;
    if (!known) PyErr_Restore(type, value, trace);
    else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        /* Below 8 bits, ml_dtypes has one element per byte, a file packs them: those never fit. */
        const char *own = pysft_ml_name(dtype);
        known = own && sft_dtype_describe(dtype)->bits >= 8 && strcmp(own, found) == 0;
        if (!known) PyBuffer_Release(view);
        if (!known) (void)refuse_elements(state, found, dtype, name);
    }
    Py_XDECREF(text);
    return known;
}

bool pysft_elements_take(pysft_state *state, PyObject *object, int flags, sft_dtype dtype,
                         sft_span name, Py_buffer *view) {
    memset(view, 0, sizeof *view);
    if (pysft_is_a(state, object, PYSFT_TYPE_TENSOR)) {
        sft_dtype own = pysft_tensor_dtype(object);
        if (own != dtype)
            return refuse_elements(state, sft_dtype_describe(own)->name, dtype, name);
        return PyObject_GetBuffer(object, view, flags & ~PyBUF_FORMAT) == 0;
    }
    if (PyObject_GetBuffer(object, view, flags | PyBUF_FORMAT) < 0) {
        memset(view, 0, sizeof *view);
        if (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_BufferError))
            return unnamed_take(state, object, flags, dtype, name, view);
        return false;
    }
    if (format_fits(view->format, view->itemsize, dtype)) return true;
    (void)refuse_elements(state, view->format, dtype, name);
    PyBuffer_Release(view);
    memset(view, 0, sizeof *view);
    return false;
}
