/* Tensor.stats(). Tests: test_stats.py. */
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

static PyObject *stats_dict(sft_dtype dtype, const sft_stats *stats) {
    return Py_BuildValue("{sK,sK,sK,sK,sN,sN,sN,sN,sN}", "values",
                         (unsigned long long)stats->values, "zeros",
                         (unsigned long long)stats->zeros, "nan", (unsigned long long)stats->nan,
                         "inf", (unsigned long long)stats->inf, "min",
                         extreme_of(dtype, stats->min, stats->min_bits), "max",
                         extreme_of(dtype, stats->max, stats->max_bits), "mean",
                         number_of(stats->mean), "std", number_of(stats->std), "abs_mean",
                         number_of(stats->abs_mean));
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
    static char *words[] = { "threads", "progress", NULL };
    TensorObject *self = (TensorObject *)object;
    pysft_state *state = pysft_state_from(object);
    sft_statistics *statistics = NULL;
    PyObject *progress = NULL, *out = NULL;
    int asked = 0;
    uint32_t threads;
    sft_source source;
    sft_part part;
    pysft_job job;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$iO:stats", words, &asked, &progress) ||
        pysft_threads_of(asked, &threads) < 0 ||
        part_of(state, self, &source, &part) < 0 || pysft_job_begin(&job, progress) < 0)
        return NULL;
    job.job.threads = threads;
    PYSFT_NO_GIL(job.code = sft_statistics_new(&part, 1, NULL, &job.job, &statistics, &job.err));
    if (pysft_job_done(&job, state, pysft_store_path(self->store)) == 0)
        out = stats_dict(self->facts->dtype, sft_statistics_at(statistics, 0));
    sft_statistics_free(statistics);
    return out;
}
