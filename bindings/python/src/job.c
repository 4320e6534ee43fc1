/* Long calls: progress, signals, cancellation, and how they end. Tests: test_signals.py. */
#include "core.h"

#include "host.h"

static const double check_interval = 0.1; /* seconds */

static int call_progress(pysft_job *job) {
    PyObject *total = job->total == SFT_SIZE_UNKNOWN ? Py_NewRef(Py_None)
                                                     : PyLong_FromUnsignedLongLong(job->total);
    PyObject *done = total ? PyLong_FromUnsignedLongLong(job->done) : NULL;
    PyObject *answer = done ? PyObject_CallFunctionObjArgs(job->progress, done, total, NULL)
                            : NULL;
    Py_XDECREF(done);
    Py_XDECREF(total);
    Py_XDECREF(answer);
    return answer ? 0 : -1;
}

/* Called by the library without the GIL, on the thread that called it. */
static bool tick(void *ctx, uint64_t done, uint64_t total) {
    pysft_job *job = ctx;
    double now = pysft_host_seconds();
    bool again = job->reported && job->done == done && job->total == total;
    /* The end is reported here, where raising can still undo the work. */
    bool ends = job->progress && done == total && !again;
    job->done = done;
    job->total = total;
    job->reported = again;
    if (!ends && now < job->next && now > job->next - 2 * check_interval) return true;
    job->next = now + check_interval;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = PyErr_Occurred() ? -1 : PyErr_CheckSignals(); /* of a source that was read here */
    if (rc == 0 && job->progress) rc = call_progress(job);
    job->reported = true;
    PyGILState_Release(gil);
    return rc == 0;
}

/* Called while the library waits for a pipe: false once a signal handler has raised. The
 * exception stays set and takes precedence over the read's error (pysft_raise). */
static bool keep_waiting(void *Py_UNUSED(ctx)) {
    if (!Py_IsInitialized()) return true;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = PyErr_Occurred() ? -1 : PyErr_CheckSignals();
    PyGILState_Release(gil);
    return rc == 0;
}

const sft_wait pysft_wait = { keep_waiting, NULL };
const sft_open_options pysft_opening = { .size = sizeof pysft_opening, .level = SFT_LEVEL_DEFAULT,
                                         .wait = &pysft_wait };

int pysft_job_begin(pysft_job *job, PyObject *progress) {
    *job = (pysft_job){ .job = SFT_JOB_INIT, .err = SFT_ERROR_INIT, .reported = true,
                        .next = pysft_host_seconds() + check_interval };
    job->job.tick = tick;
    job->job.ctx = job;
    pysft_text_sink_begin(&job->to, &job->text);
    job->out = job->to.sink;
    if (!progress || progress == Py_None) return 0;
    if (!PyCallable_Check(progress))
        return pysft_refuse(PyExc_TypeError, "progress: expected a callable or None, found %R",
                            Py_TYPE(progress));
    job->progress = progress;
    return 0;
}

int pysft_job_end(pysft_job *job) {
    if (PyErr_Occurred() || job->code) return -1;
    if (!job->progress || job->reported) return 0;
    if (job->total != SFT_SIZE_UNKNOWN) job->done = job->total;
    job->reported = true;
    return call_progress(job);
}

int pysft_job_done(pysft_job *job, pysft_state *state, const char *path) {
    return pysft_job_end(job) == 0 ? 0 : pysft_fail(state, &job->err, path);
}

PyObject *pysft_job_text(pysft_job *job, pysft_state *state, const char *path) {
    int status = pysft_job_done(job, state, path);
    PyObject *text = status < 0 ? NULL : pysft_text((sft_span){ job->text.data, job->text.len });
    sft_buffer_free(&job->text);
    return text;
}

/* ── Calls into Python ── */

pysft_callback pysft_callback_begin(void) {
    pysft_callback v = { .gil = PyGILState_Ensure() };
    PyErr_Fetch(&v.type, &v.value, &v.trace);
    return v;
}

void pysft_callback_end(const pysft_callback *v) {
    PyErr_Restore(v->type, v->value, v->trace);
    PyGILState_Release(v->gil);
}

/* ── One call at a time ── */

bool pysft_enter(atomic_flag *busy, const char *what) {
    if (!atomic_flag_test_and_set(busy)) return true;
    PyErr_Format(PyExc_RuntimeError, "expected one call of a %s at a time, found two", what);
    return false;
}

void pysft_leave(atomic_flag *busy) {
    atomic_flag_clear(busy);
}

bool pysft_stay(atomic_flag *busy, bool is_open, const char *closed) {
    if (is_open) return true;
    pysft_leave(busy);
    return pysft_refuse(PyExc_ValueError, "%s", closed) == 0;
}
