/* Buffers of elements: what they hold, against the dtype that it is to be. */
#include "specs.h"
#include "tensor.h"

#include <string.h>

/* What numpy calls dtypes that no format of a buffer can tell. */
static const struct {
    const char *name;
    sft_dtype dtype;
} numpy_names[] = {
    { "bfloat16", SFT_BF16 },
    { "float8_e5m2", SFT_F8_E5M2 },
    { "float8_e4m3fn", SFT_F8_E4M3 },
    { "float8_e8m0fnu", SFT_F8_E8M0 },
    { "float8_e4m3fnuz", SFT_F8_E4M3FNUZ },
    { "float8_e5m2fnuz", SFT_F8_E5M2FNUZ },
};

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
enum { order_native_fits = 0 };
#else
enum { order_native_fits = 1 };
#endif

static bool is_one_of(char letter, const char *letters) {
    return letter != '\0' && strchr(letters, letter) != NULL;
}

/* Whether one letter (behind the sign of the byte order) says this kind of number. */
static bool letter_fits(const char *format, sft_dtype dtype) {
    sft_kind kind = sft_dtype_describe(dtype)->kind;
    bool single = format[0] != '\0' && format[1] == '\0';
    if (kind == SFT_KIND_COMPLEX) return strcmp(format, "Zf") == 0 || strcmp(format, "F") == 0;
    if (!single) return false;
    /* Without a letter of its own, it travels as its bits. */
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

/* Plain bytes hold anything; else it must be this dtype's elements as a file has them. */
static bool format_fits(const char *format, Py_ssize_t item, sft_dtype dtype) {
    bool order_fits = order_native_fits;
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
    (void)PyOS_snprintf(text, sizeof text,
                        "expected little-endian elements of %s or plain bytes, found elements of "
                        "\"%.80s\": convert them, or hand over their bytes",
                        wanted, found);
    if (name.data) (void)pysft_error_tensor(&err, SFT_BAD_ARGUMENT, name, text);
    else (void)sft_error_set(&err, SFT_BAD_ARGUMENT, 0, text);
    (void)pysft_raise(state, &err, NULL);
    return false;
}

/* str(object.dtype), of numpy's objects; NULL without an exception. */
static PyObject *dtype_text(PyObject *object) {
    PyObject *dtype = PyObject_GetAttrString(object, "dtype");
    PyObject *text = dtype ? PyObject_Str(dtype) : NULL;
    Py_XDECREF(dtype);
    PyErr_Clear();
    return text;
}

static bool name_fits(const char *name, sft_dtype dtype) {
    for (size_t i = 0; i < sizeof numpy_names / sizeof *numpy_names; i++)
        if (strcmp(numpy_names[i].name, name) == 0) return numpy_names[i].dtype == dtype;
    return false;
}

/* The exporter has no format for its elements: what it calls them must do. */
static bool unnamed_take(pysft_state *state, PyObject *object, int flags, sft_dtype dtype,
                         sft_span name, Py_buffer *view) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = dtype_text(object);
    const char *found = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    PyErr_Clear();
    bool known = found && PyObject_GetBuffer(object, view, flags & ~PyBUF_FORMAT) == 0;
    if (!known) PyErr_Restore(type, value, trace);
    else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        known = name_fits(found, dtype);
        if (!known) PyBuffer_Release(view);
        if (!known) (void)refuse_elements(state, found, dtype, name);
    }
    Py_XDECREF(text);
    return known;
}

bool pysft_elements_take(pysft_state *state, PyObject *object, int flags, sft_dtype dtype,
                         sft_span name, Py_buffer *view) {
    memset(view, 0, sizeof *view);
    if (Py_TYPE(object) == state->tensor_type) {
        sft_dtype own = pysft_tensor_dtype(object);
        if (own != dtype)
            return refuse_elements(state, sft_dtype_describe(own)->name, dtype, name);
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
