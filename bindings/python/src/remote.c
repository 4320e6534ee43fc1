/* What files of URLs are opened by: a remote of the library, its transport and callbacks.
 * Tests: test_remote.py. */
#include "remote.h"

#include "host.h"

#include <stdlib.h>
#include <string.h>

struct pysft_remote {
    atomic_size_t refs;
    uint64_t process; /* that made it */
    sft_remote *remote;
    sft_transport transport;
    PyObject *on_exchange; /* or NULL */
};

/* ── Callbacks ── */

typedef struct environment {
    PyObject *token; /* bytes, or NULL */
    PyObject *value; /* bytes: the last one that was asked for */
} environment;

/* New bytes of os.environ[name]; NULL, without an exception, if there is none. */
static PyObject *variable(const char *name) {
    PyObject *all = pysft_import("os", "environ");
    PyObject *text = all ? PyObject_CallMethod(all, "get", "s", name) : NULL;
    PyObject *bytes = NULL;
    if (text && PyUnicode_Check(text)) bytes = PyUnicode_EncodeFSDefault(text);
    Py_XDECREF(all);
    Py_XDECREF(text);
    PyErr_Clear();
    return bytes;
}

/* Called without the GIL. */
static const char *variable_text(void *ctx, const char *name) {
    environment *all = ctx;
    PyGILState_STATE gil = PyGILState_Ensure();
    bool token = all->token && strcmp(name, "HF_TOKEN") == 0;
    pysft_replace(&all->value, token ? Py_NewRef(all->token) : variable(name));
    const char *text = all->value ? PyBytes_AsString(all->value) : NULL;
    PyGILState_Release(gil);
    return text;
}

static PyObject *exchange_dict(const sft_exchange *e) {
    PyObject *begin = NULL, *end = NULL, *dict = NULL;
    begin = e->end ? PyLong_FromUnsignedLongLong(e->begin) : Py_NewRef(Py_None);
    end = e->end ? PyLong_FromUnsignedLongLong(e->end) : Py_NewRef(Py_None);
    if (begin && end)
        dict = Py_BuildValue("{ss,ss,sO,sO,si,ss,sK,sK,sI}", "method", e->method, "url", e->url,
                             "begin", begin, "end", end, "status", e->status, "code",
                             sft_code_describe(e->code)->name, "bytes",
                             (unsigned long long)e->bytes, "ms", (unsigned long long)e->ms,
                             "attempt", e->attempt);
    Py_XDECREF(begin);
    Py_XDECREF(end);
    return dict;
}

/* Called without the GIL. What the function raises is told to sys.unraisablehook: nobody waits
 * for this thread. */
static void tell_exchange(void *ctx, const sft_exchange *exchange) {
    if (!Py_IsInitialized()) return;
    pysft_callback v = pysft_callback_begin();
    PyObject *dict = exchange_dict(exchange), *answer = NULL;
    if (dict) answer = PyObject_CallFunctionObjArgs(ctx, dict, NULL);
    if (!answer) PyErr_WriteUnraisable(ctx);
    Py_XDECREF(dict);
    Py_XDECREF(answer);
    pysft_callback_end(&v);
}

/* ── The life of one ── */

static sft_code open_remote(pysft_remote *self, const pysft_remote_options *given,
                            PyObject *token, sft_error *err) {
    sft_remote_options options = given->options;
    environment all = { token, NULL };
    sft_code code;
    options.transport = &self->transport;
    options.environment = variable_text;
    options.environment_ctx = &all;
    if (self->on_exchange) options.on_exchange = tell_exchange;
    options.exchange_ctx = self->on_exchange;
    options.wait = &pysft_wait;
    PYSFT_NO_GIL(code = sft_remote_open(&options, &self->remote, err));
    Py_XDECREF(all.value);
    return code;
}

static void close_all(void *ctx) {
    pysft_remote *self = ctx;
    if (self->remote) sft_remote_close(self->remote);
    if (self->transport.vtable) self->transport.vtable->close(self->transport.ctx);
}

pysft_remote *pysft_remote_new(pysft_state *state, const pysft_remote_options *given) {
    pysft_remote *self = calloc(1, sizeof *self);
    sft_error err = SFT_ERROR_INIT;
    PyObject *token = NULL;
    sft_code code = SFT_OK;
    if (!self) return (pysft_remote *)PyErr_NoMemory();
    atomic_init(&self->refs, 1);
    self->process = pysft_host_process();
    self->on_exchange = Py_XNewRef(given->on_exchange);
    bool ready = !given->token || (token = PyUnicode_EncodeFSDefault(given->token)) != NULL;
    if (ready) { /* libcurl, or else Python's own modules */
        PyObject *wanted = variable("LIBSAFETENSORS_TRANSPORT");
        bool python = wanted && strcmp(PyBytes_AsString(wanted), "python") == 0;
        Py_XDECREF(wanted);
        ready = (!python && !sft_transport_curl(NULL, &self->transport, &err))
                || pysft_transport_python(&self->transport) == 0;
        err = (sft_error)SFT_ERROR_INIT;
    }
    if (ready) code = open_remote(self, given, token, &err);
    Py_XDECREF(token);
    if (ready && !code) return self;
    if (code) (void)pysft_raise(state, &err, NULL);
    pysft_remote_drop(self);
    return NULL;
}

pysft_remote *pysft_remote_hold(pysft_remote *self) {
    atomic_fetch_add_explicit(&self->refs, 1, memory_order_relaxed);
    return self;
}

void pysft_remote_run(const pysft_remote *self, void (*function)(void *), void *ctx) {
    if (!Py_IsInitialized() || self->process != pysft_host_process()) return;
    /* Its threads may want the GIL before they end, and whoever is here may have it. */
    pysft_callback v = pysft_callback_begin();
    PYSFT_NO_GIL(function(ctx));
    pysft_callback_end(&v);
}

void pysft_remote_drop(pysft_remote *self) {
    if (!self || atomic_fetch_sub_explicit(&self->refs, 1, memory_order_acq_rel) != 1) return;
    if (!Py_IsInitialized() || self->process != pysft_host_process()) return;
    pysft_remote_run(self, close_all, self);
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_XDECREF(self->on_exchange);
    PyGILState_Release(gil);
    free(self);
}

int pysft_remote_visit(const pysft_remote *self, visitproc visit, void *arg) {
    if (self && atomic_load(&self->refs) == 1) Py_VISIT(self->on_exchange);
    return 0;
}

const sft_files *pysft_remote_files(const pysft_remote *self) {
    return self ? sft_remote_files(self->remote) : NULL;
}

sft_remote *pysft_remote_of(const pysft_remote *self) {
    return self->remote;
}

bool pysft_remote_is_ours(const pysft_remote *self) {
    return self->process == pysft_host_process();
}

bool pysft_is_url(PyObject *object) {
    if (!PyUnicode_Check(object)) return false;
    const char *text = PyUnicode_AsUTF8AndSize(object, NULL);
    if (!text) PyErr_Clear(); /* lone surrogates: bytes of a path that are no UTF-8 */
    return text && sft_remote_is_url(text);
}
