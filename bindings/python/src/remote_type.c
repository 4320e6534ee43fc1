/* Remote, and the one by which paths are opened. Tests: test_remote.py. */
#include "remote.h"

#include <math.h>

typedef struct {
    PyObject_HEAD
    atomic_flag busy;    /* held while `held` is accessed */
    pysft_remote *held;  /* NULL when closed */
    PyObject *weakrefs;
} RemoteObject;

static pysft_remote *swap_held(RemoteObject *self, bool take) {
    pysft_spin_lock(&self->busy);
    pysft_remote *held = self->held;
    if (take) self->held = NULL;
    else if (held) pysft_remote_hold(held);
    pysft_spin_unlock(&self->busy);
    return held;
}

/* New hold; NULL with an exception when the Remote is closed, or another process's. */
static pysft_remote *hold(pysft_state *state, PyObject *self) {
    pysft_remote *held = swap_held((RemoteObject *)self, false);
    if (held && pysft_remote_is_ours(held)) return held;
    const char *why = held ? "expected a Remote that this process made, found its parent's: make "
                             "another one after fork"
                           : "Remote is closed";
    pysft_remote_drop(held);
    (void)pysft_raise_code(state, SFT_BAD_ARGUMENT, why, NULL);
    return NULL;
}

static PyObject *make(PyTypeObject *type, pysft_remote *held) {
    RemoteObject *self = type && held ? (RemoteObject *)pysft_object_new(type) : NULL;
    if (!self) {
        pysft_remote_drop(held);
        return NULL;
    }
    atomic_flag_clear(&self->busy);
    self->held = held;
    return (PyObject *)self;
}

/* ── Making one ── */

static int milliseconds_of(PyObject *seconds, const char *what, uint64_t *out) {
    if (!seconds || seconds == Py_None) return 0;
    double value = PyFloat_AsDouble(seconds);
    if (value == -1.0 && PyErr_Occurred()) return -1;
    if (value >= 0.001 && value <= 1e9) {
        *out = (uint64_t)ceil(value * 1000);
        return 0;
    }
    return pysft_refuse(PyExc_ValueError, "%s: expected seconds, more than 0, found %R", what,
                        seconds);
}

static int count_of(int given, const char *what, int least, int most) {
    if (given >= least && given <= most) return 0;
    return pysft_refuse(PyExc_ValueError, "%s: expected %d to %d, found %d", what, least, most,
                        given);
}

static int text_of(PyObject *text, const char *what, const char **out) {
    sft_span span;
    if (!text || text == Py_None) return 0;
    if (pysft_span_of(text, what, &span) < 0) return -1;
    *out = span.data;
    return 0;
}

static PyObject *optional(PyObject *object) {
    return object == Py_None ? NULL : object;
}

static PyObject *remote_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "connections", "offline", "public_only", "anonymous", "whole",
                             "cache", "proxy", "connect_timeout", "timeout", "retries", "token",
                             "on_exchange", NULL };
    pysft_remote_options all = { SFT_REMOTE_OPTIONS_INIT, NULL, NULL };
    PyObject *cache = Py_None, *proxy = NULL, *connect = NULL, *stall = NULL, *made = NULL;
    int connections = 8, offline = 0, public_only = 0, anonymous = 0, whole = 0, retries = 4;
    const char *token;
    PyObject *folder = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$ippppOOOOiOO:Remote", words, &connections,
                                     &offline, &public_only, &anonymous, &whole, &cache, &proxy,
                                     &connect, &stall, &retries, &all.token, &all.on_exchange))
        return NULL;
    sft_remote_options *o = &all.options;
    all.token = optional(all.token);
    all.on_exchange = optional(all.on_exchange);
    if (count_of(connections, "connections", 1, 64) < 0
        || count_of(retries, "retries", 0, 1000) < 0 || text_of(proxy, "proxy", &o->proxy) < 0
        || text_of(all.token, "token", &token) < 0
        || milliseconds_of(connect, "connect_timeout", &o->connect_ms) < 0
        || milliseconds_of(stall, "timeout", &o->stall_ms) < 0)
        return NULL;
    if (all.on_exchange && !PyCallable_Check(all.on_exchange))
        return PyErr_Format(PyExc_TypeError, "on_exchange: expected a callable or None, found %R",
                            Py_TYPE(all.on_exchange));
    if (cache != Py_None && !PyUnicode_FSConverter(cache, &folder)) return NULL;
    o->connections = (uint32_t)connections;
    o->retries = retries ? (uint32_t)retries : UINT32_MAX;
    o->offline = offline;
    o->public_only = public_only;
    o->anonymous = anonymous;
    o->whole = whole;
    o->cache = folder ? PyBytes_AsString(folder) : NULL;
    made = make(type, pysft_remote_new(PyType_GetModuleState(type), &all));
    Py_XDECREF(folder);
    return made;
}

static int remote_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    return pysft_remote_visit(((RemoteObject *)object)->held, visit, arg);
}

static int remote_clear(PyObject *object) {
    pysft_remote_drop(swap_held((RemoteObject *)object, true));
    return 0;
}

static void remote_dealloc(PyObject *object) {
    PyObject_GC_UnTrack(object);
    pysft_weakrefs_clear(object, ((RemoteObject *)object)->weakrefs);
    (void)remote_clear(object);
    pysft_object_free(object);
}

/* ── Methods ── */

static PyObject *remote_close(PyObject *object, PyObject *Py_UNUSED(args)) {
    (void)remote_clear(object);
    Py_RETURN_NONE;
}

static PyObject *remote_enter(PyObject *object, PyObject *Py_UNUSED(none)) {
    return Py_NewRef(object);
}

static PyObject *get_closed(PyObject *object, void *Py_UNUSED(closure)) {
    pysft_remote *held = swap_held((RemoteObject *)object, false);
    pysft_remote_drop(held);
    return PyBool_FromLong(!held);
}

static PyObject *get_sums(PyObject *object, void *Py_UNUSED(closure)) {
    pysft_remote *held = hold(pysft_state_from(object), object);
    sft_remote_sums sums;
    if (!held) return NULL;
    PYSFT_NO_GIL(sums = sft_remote_sums_of(pysft_remote_of(held)));
    pysft_remote_drop(held);
    return Py_BuildValue("{sK,sK,sK}", "requests", (unsigned long long)sums.requests, "bytes",
                         (unsigned long long)sums.bytes, "retries",
                         (unsigned long long)sums.retries);
}

PyObject *pysft_claim_dict(const sft_remote_claim *claim) {
    PyObject *bytes = claim->bytes == SFT_SIZE_UNKNOWN
                    ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(claim->bytes);
    if (!bytes) return NULL;
    return Py_BuildValue("{sN,sz,sz,sz,sO}", "bytes", bytes, "sha256",
                         *claim->sha256 ? claim->sha256 : NULL, "commit",
                         *claim->commit ? claim->commit : NULL, "etag",
                         *claim->etag ? claim->etag : NULL, "local",
                         claim->local ? Py_True : Py_False);
}

static PyObject *remote_claims(PyObject *object, PyObject *url) {
    pysft_state *state = pysft_state_from(object);
    sft_error err = SFT_ERROR_INIT;
    sft_remote_claim claim;
    const char *name;
    bool known = false;
    sft_span text;
    sft_code code;
    if (pysft_span_of(url, "url", &text) < 0) return NULL;
    pysft_remote *held = hold(state, object);
    if (!held) return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = sft_remote_name(pysft_remote_of(held), text.data, &name, &err);
    if (!code) known = sft_remote_claims(pysft_remote_of(held), name, &claim);
    Py_END_ALLOW_THREADS
    pysft_remote_drop(held);
    if (code) return pysft_raise(state, &err, NULL);
    return known ? pysft_claim_dict(&claim) : Py_NewRef(Py_None);
}

static PyGetSetDef remote_getset[] = {
    { "closed", get_closed, NULL, "Whether close() was called.", NULL },
    { "sums", get_sums, NULL,
      "Dict of the requests sent, the bytes of bodies that arrived, and the retries, so far.",
      NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef remote_methods[] = {
    { "claims", remote_claims, METH_O,
      "claims($self, url, /)\n--\n\n"
      "What the server says of a file that was opened: dict of bytes, sha256, commit, etag (None\n"
      "if it does not say) and local, whether it was in the Hub's cache here. None for a file\n"
      "that was not opened. Sends nothing; nothing of it was computed." },
    { "close", remote_close, METH_NOARGS,
      "close($self, /)\n--\n\n"
      "No more files are opened by it; those that are open stay so, and keep its connections\n"
      "until they are closed." },
    { "__enter__", remote_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nThe Remote itself." },
    { "__exit__", remote_close, METH_VARARGS,
      "__exit__($self, kind, value, trace, /)\n--\n\nClose it." },
    { NULL, NULL, 0, NULL },
};

static PyMemberDef remote_members[] = PYSFT_WEAKREFS(RemoteObject, weakrefs);

static PyType_Slot remote_slots[] = {
    { Py_tp_doc,
      "Remote(*, connections=8, offline=False, public_only=False, anonymous=False, whole=False,\n"
      "       cache=None, proxy=None, connect_timeout=10, timeout=30, retries=4, token=None,\n"
      "       on_exchange=None)\n--\n\n"
      "Connections, credentials and what servers told: what URLs are opened by after use(). Reads\n"
      "the environment and tokens now, and sends nothing. Any number of threads may use it.\n\n"
      "connections: at once, 1 to 64. offline: only caches are read. public_only: for services\n"
      "that open strangers' URLs, refuse addresses that are not public, and proxies. anonymous:\n"
      "no tokens, no signatures. whole: read files whole from servers that give no ranges.\n"
      "cache: a folder of headers, made if missing. proxy: a URL; None is what the environment\n"
      "says, \"\" is none. connect_timeout, timeout: seconds to connect, and without a byte.\n"
      "retries: of one exchange. token: of the Hub, instead of the environment's. on_exchange:\n"
      "called with a dict after each exchange, by whichever thread made it, one at a time;\n"
      "nothing in it is secret.\n\n"
      "ValueError, TypeError; OSError for the cache." },
    { Py_tp_new, remote_new },
    { Py_tp_dealloc, remote_dealloc },
    { Py_tp_traverse, remote_traverse },
    { Py_tp_clear, remote_clear },
    { Py_tp_members, remote_members },
    { Py_tp_getset, remote_getset },
    { Py_tp_methods, remote_methods },
    { 0, NULL },
};

PyType_Spec pysft_remote_spec = {
    .name = "libsafetensors._core.Remote",
    .basicsize = sizeof(RemoteObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = remote_slots,
};

/* ── The one in use ── */

/* Consumes next, which may be NULL. Returns the reference that was there, or NULL. */
static PyObject *exchange_default(pysft_state *state, PyObject *next) {
    pysft_spin_lock(&state->remote_busy);
    PyObject *old = state->remote;
    state->remote = next;
    pysft_spin_unlock(&state->remote_busy);
    return old;
}

static pysft_remote *make_default(pysft_state *state) {
    pysft_remote_options none = { SFT_REMOTE_OPTIONS_INIT, NULL, NULL };
    pysft_remote *held = pysft_remote_new(state, &none);
    PyObject *made = held ? make(pysft_type_of(state, PYSFT_TYPE_REMOTE), pysft_remote_hold(held))
                          : NULL;
    if (made) Py_XDECREF(exchange_default(state, made));
    else pysft_remote_drop(held);
    return made ? held : NULL;
}

pysft_remote *pysft_remote_default(pysft_state *state) {
    pysft_spin_lock(&state->remote_busy);
    PyObject *now = Py_XNewRef(state->remote);
    pysft_spin_unlock(&state->remote_busy);
    pysft_remote *held = now ? swap_held((RemoteObject *)now, false) : NULL;
    if (held && !pysft_remote_is_ours(held)) {
        pysft_remote_drop(held);
        held = NULL;
    }
    bool closed = now && !held && !((RemoteObject *)now)->held;
    Py_XDECREF(now);
    if (held) return held;
    if (!closed) return make_default(state);
    (void)pysft_raise_code(state, SFT_BAD_ARGUMENT, "the Remote in use is closed", NULL);
    return NULL;
}

static PyObject *remote_use(PyObject *module, PyObject *remote) {
    pysft_state *state = pysft_state_of(module);
    if (remote != Py_None && !pysft_is_a(state, remote, PYSFT_TYPE_REMOTE))
        return PyErr_Format(PyExc_TypeError, "expected a Remote or None, found %R",
                            Py_TYPE(remote));
    PyObject *old = exchange_default(state, remote == Py_None ? NULL : Py_NewRef(remote));
    return old ? old : Py_NewRef(Py_None);
}

static PyObject *is_url(PyObject *Py_UNUSED(module), PyObject *object) {
    return PyBool_FromLong(pysft_is_url(object));
}

PyMethodDef pysft_remote_functions[] = {
    { "remote_use", remote_use, METH_O,
      "remote_use($module, remote, /)\n--\n\nBy which URLs are opened; returns the former one." },
    { "is_url", is_url, METH_O,
      "is_url($module, path, /)\n--\n\nWhether it is a str with a URL that is read here." },
    { NULL, NULL, 0, NULL },
};
