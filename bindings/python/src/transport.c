/* A transport in Python: an object whose send() is called for each exchange. Its answer comes back
 * through three functions of the module, which take the exchange as a capsule. Tests:
 * test_remote_transport.py. */
#include "remote.h"

#include <string.h>

#define CAPSULE "libsafetensors._core.exchange"
#define CAPSULE_ENDED "libsafetensors._core.exchange.ended"

typedef struct exchange {
    const sft_http_request *request;
    const sft_http_receiver *receiver;
} exchange;

static PyObject *pairs_list(const sft_pair *pairs, size_t count) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++)
        pysft_list_add(&list, Py_BuildValue("(NN)", pysft_text(pairs[i].key),
                                            pysft_text(pairs[i].value)));
    return list;
}

static sft_code send_exchange(void *ctx, const sft_http_request *r,
                              const sft_http_receiver *receiver, sft_error *err) {
    exchange now = { r, receiver };
    if (!Py_IsInitialized())
        return sft_error_set(err, SFT_CANCELLED, 0, "the interpreter has ended");
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *capsule = PyErr_Occurred() ? NULL : PyCapsule_New(&now, CAPSULE, NULL);
    PyObject *headers = capsule ? pairs_list(r->headers, r->header_count) : NULL;
    PyObject *args = NULL, *result = NULL;
    if (headers)
        args = Py_BuildValue("(OssNy#zzOddd)", capsule, r->method, r->url, headers,
                             r->body.data ? r->body.data : "", (Py_ssize_t)r->body.len, r->proxy,
                             r->ca_file, r->public_only ? Py_True : Py_False,
                             (double)r->connect_ms / 1000, (double)r->stall_ms / 1000,
                             (double)r->total_ms / 1000);
    PyObject *send = args ? PyObject_GetAttrString(ctx, "send") : NULL;
    if (send) result = PyObject_CallObject(send, args);
    /* The code, message and errno that it returned; what it raised stays set. */
    int told = SFT_CANCELLED, number = 0;
    const char *text = "the exchange was ended by an exception";
    if (result && !PyArg_ParseTuple(result, "is|i:send", &told, &text, &number))
        told = SFT_CANCELLED;
    sft_code code = told ? sft_error_set(err, (sft_code)told, number, text) : SFT_OK;
    if (capsule) (void)PyCapsule_SetName(capsule, CAPSULE_ENDED);
    Py_XDECREF(send);
    Py_XDECREF(args);
    Py_XDECREF(result);
    Py_XDECREF(capsule);
    PyGILState_Release(gil);
    return code;
}

static void close_transport(void *ctx) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *done = PyObject_CallMethod(ctx, "close", NULL);
    if (!done) PyErr_WriteUnraisable(ctx);
    Py_XDECREF(done);
    Py_DECREF((PyObject *)ctx);
    PyGILState_Release(gil);
}

static const sft_transport_vtable transport_vtable = {
    sizeof(sft_transport_vtable), send_exchange, close_transport
};

int pysft_transport_python(sft_transport *out) {
    PyObject *made = pysft_import_apply("libsafetensors._remote", "Transport", PyTuple_New(0));
    if (!made) return -1;
    *out = (sft_transport){ made, &transport_vtable };
    return 0;
}

/* ── What the answer is given to ── */

/* transport_head(exchange, status, headers): headers are bytes, name and value by turns. */
static PyObject *transport_head(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *capsule, *lines;
    int status;
    bool wanted = false;
    if (!PyArg_ParseTuple(args, "OiO!:transport_head", &capsule, &status, &PyTuple_Type, &lines))
        return NULL;
    const exchange *now = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!now) return NULL;
    size_t count = (size_t)PyTuple_Size(lines) / 2;
    sft_pair *pairs = PyMem_Calloc(count + 1, sizeof *pairs);
    if (!pairs) return PyErr_NoMemory();
    bool ready = true;
    for (size_t i = 0; ready && i < 2 * count; i++) {
        char *data;
        Py_ssize_t len;
        ready = PyBytes_AsStringAndSize(PyTuple_GetItem(lines, (Py_ssize_t)i), &data, &len) == 0;
        sft_span *to = i % 2 ? &pairs[i / 2].value : &pairs[i / 2].key;
        if (ready) *to = (sft_span){ data, (size_t)len };
    }
    if (ready) {
        PYSFT_NO_GIL(wanted = now->receiver->head(now->receiver->ctx, status, pairs, count));
    }
    PyMem_Free(pairs);
    return ready ? PyBool_FromLong(wanted) : NULL;
}

static PyObject *transport_body(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *capsule;
    Py_buffer view;
    bool wanted = false;
    if (!PyArg_ParseTuple(args, "Oy*:transport_body", &capsule, &view)) return NULL;
    const exchange *now = PyCapsule_GetPointer(capsule, CAPSULE);
    if (now) {
        PYSFT_NO_GIL(wanted = now->receiver->body(now->receiver->ctx, view.buf, (size_t)view.len));
    }
    PyBuffer_Release(&view);
    return now ? PyBool_FromLong(wanted) : NULL;
}

static PyObject *transport_go_on(PyObject *Py_UNUSED(module), PyObject *capsule) {
    bool more = true;
    const exchange *now = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!now) return NULL;
    if (PyErr_CheckSignals() < 0) return NULL;
    PYSFT_NO_GIL(if (now->request->go_on) more = now->request->go_on(now->request->go_on_ctx));
    return PyBool_FromLong(more);
}

PyMethodDef pysft_transport_functions[] = {
    { "transport_head", transport_head, METH_VARARGS,
      "transport_head($module, exchange, status, headers, /)\n--\n\n"
      "The status and the headers of an answer; returns whether its body is wanted." },
    { "transport_body", transport_body, METH_VARARGS,
      "transport_body($module, exchange, data, /)\n--\n\n"
      "More bytes of the body; returns whether more are wanted." },
    { "transport_go_on", transport_go_on, METH_O,
      "transport_go_on($module, exchange, /)\n--\n\nWhether to go on with an exchange." },
    { NULL, NULL, 0, NULL },
};
