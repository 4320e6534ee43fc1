/* Tensor.stats(). Tests: test_stats.py. File.stats() is in _views.py. */
#include "specs.h"
#include "tensor.h"

#include "safetensors_stats.h"

/* Null for what there is none of. */
static PyObject *number_of(double value) {
    return value == value ? PyFloat_FromDouble(value) : Py_NewRef(Py_None);
}

/* Extremes of integers are exact, and are in the bits. */
static PyObject *extreme_of(sft_dtype dtype, double value, uint64_t bits) {
    sft_kind kind = sft_dtype_describe(dtype)->kind;
    if (value != value || kind == SFT_KIND_FLOAT || kind == SFT_KIND_COMPLEX)
        return number_of(value);
    if (kind != SFT_KIND_INT) return PyLong_FromUnsignedLongLong(bits);
    PyObject *size = PyLong_FromUnsignedLongLong(bits >> 63 ? ~bits + 1 : bits);
    PyObject *out = size && bits >> 63 ? PyNumber_Negative(size) : Py_XNewRef(size);
    Py_XDECREF(size);
    return out;
}

/* [(exponent, negative, positive)] of the bins that are not empty. */
static PyObject *bins_of(const sft_histogram *histogram) {
    PyObject *bins = PyList_New(0);
    for (int i = 0; bins && i < SFT_HISTOGRAM_BINS; i++) {
        const unsigned long long negative = histogram->negative[i];
        const unsigned long long positive = histogram->positive[i];
        if (!negative && !positive) continue;
        pysft_list_add(&bins, Py_BuildValue("(iKK)", i - SFT_HISTOGRAM_BINS / 2, negative,
                                            positive));
    }
    return bins;
}

static PyObject *stats_dict(sft_dtype dtype, const sft_stats *stats) {
    PyObject *out = Py_BuildValue("{sK,sK,sK,sK,sN,sN,sN,sN,sN}", "values",
                                  (unsigned long long)stats->values, "zeros",
                                  (unsigned long long)stats->zeros, "nan",
                                  (unsigned long long)stats->nan, "inf",
                                  (unsigned long long)stats->inf, "min",
                                  extreme_of(dtype, stats->min, stats->min_bits), "max",
                                  extreme_of(dtype, stats->max, stats->max_bits), "mean",
                                  number_of(stats->mean), "std", number_of(stats->std), "abs_mean",
                                  number_of(stats->abs_mean));
    PyObject *bins = out && stats->histogram ? bins_of(stats->histogram) : NULL;
    if (out && stats->histogram
        && (!bins || PyDict_SetItemString(out, "histogram", bins) < 0))
        Py_CLEAR(out);
    Py_XDECREF(bins);
    return out;
}

/* The whole tensor in its file, or what was selected of it in memory. */
static int part_of(pysft_state *state, TensorObject *self, sft_source *source, sft_part *part) {
    Py_ssize_t strides[SFT_MAX_RANK];
    pysft_piece piece;
    if (!self->slice) {
        *source = sft_file_source(sft_set_shard_at(pysft_store_set(self->store), self->shard));
        *part = sft_part_of(self->facts, source);
        if (source->size != SFT_SIZE_UNKNOWN) return 0;
    }
    if (pysft_tensor_piece(state, self, want_packed, &piece, strides) < 0) return -1;
    *source = sft_source_memory(piece.data, (size_t)piece.bytes);
    *part = (sft_part){ { self->facts->name, self->facts->dtype, self->rank, self->shape },
                        source, 0 };
    return 0;
}

PyObject *pysft_tensor_stats(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "threads", "progress", "histogram", NULL };
    TensorObject *self = (TensorObject *)object;
    pysft_state *state = pysft_state_from(object);
    sft_statistics *statistics = NULL;
    PyObject *progress = NULL, *out = NULL;
    int asked = 0, histogram = 0;
    uint32_t threads;
    sft_statistics_options options = SFT_STATISTICS_OPTIONS_INIT;
    sft_source source;
    sft_part part;
    pysft_job job;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$iOp:stats", words, &asked, &progress,
                                     &histogram) ||
        pysft_threads_of(asked, &threads) < 0 ||
        part_of(state, self, &source, &part) < 0 || pysft_job_begin(&job, progress) < 0)
        return NULL;
    job.job.threads = threads;
    options.histogram = histogram != 0;
    PYSFT_NO_GIL(job.code = sft_statistics_new(&part, 1, &options, &job.job, &statistics,
                                               &job.err));
    if (pysft_job_done(&job, state, pysft_store_path(self->store)) == 0)
        out = stats_dict(self->facts->dtype, sft_statistics_at(statistics, 0));
    sft_statistics_free(statistics);
    return out;
}
