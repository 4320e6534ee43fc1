/* Converts Python index expressions to slices, and composes slices of slices.
 * Tests: test_slices.py. */
#include "piece.h"

#include <string.h>

static int one_part(PyObject *item, sft_slice_part *out) {
    Py_ssize_t start, stop, step, value;
    memset(out, 0, sizeof *out);
    if (item == Py_Ellipsis) {
        out->kind = SFT_SLICE_PART_ELLIPSIS;
    } else if (PySlice_Check(item)) {
        if (PySlice_Unpack(item, &start, &stop, &step) < 0) return -1;
        out->kind = SFT_SLICE_PART_RANGE;
        out->start = start;
        out->stop = stop;
        out->step = step;
        out->has_start = out->has_stop = out->has_step = true;
    } else if (PyIndex_Check(item) && !PyBool_Check(item)) {
        value = PyNumber_AsSsize_t(item, PyExc_IndexError);
        if (value == -1 && PyErr_Occurred()) return -1;
        out->kind = SFT_SLICE_PART_INDEX;
        out->value = value;
    } else {
        return pysft_refuse(PyExc_TypeError,
                            "a tensor is indexed by integers, slices and an ellipsis, not by %R",
                            Py_TYPE(item));
    }
    return 0;
}

static int all_parts(PyObject *index, sft_slice_part *parts, size_t count) {
    int ellipses = 0;
    if (!PyTuple_Check(index)) return one_part(index, &parts[0]);
    for (size_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GetItem(index, (Py_ssize_t)i);
        if (!item || one_part(item, &parts[i]) < 0) return -1;
        ellipses += parts[i].kind == SFT_SLICE_PART_ELLIPSIS;
    }
    if (ellipses < 2) return 0;
    return pysft_refuse(PyExc_IndexError, "an index has at most one ellipsis, found several");
}

/* A range of a range. The step of fewer than two elements means nothing and is set to 1. */
static sft_range range_of(sft_range whole, sft_range part) {
    sft_range out = { whole.start, part.count, 1 };
    if (part.count == 0) return out;
    out.start = whole.start + part.start * (uint64_t)whole.step;
    if (part.count > 1) out.step = (int64_t)((uint64_t)whole.step * (uint64_t)part.step);
    return out;
}

/* `part` is resolved against the shape that `whole` selects. */
static void compose(const sft_slice *whole, const sft_slice *part, sft_slice *out) {
    uint32_t next = 0;
    *out = *whole;
    for (uint32_t d = 0; d < whole->rank; d++) {
        if (whole->dropped >> d & 1) continue;
        out->range[d] = range_of(whole->range[d], part->range[next]);
        if (part->dropped >> next & 1) out->dropped |= UINT64_C(1) << d;
        next++;
    }
}

int pysft_slice_of(pysft_state *state, PyObject *index, const sft_tensor *tensor,
                   const sft_slice *whole, sft_slice *out) {
    sft_slice_part parts[SFT_MAX_RANK + 1];
    sft_error err = SFT_ERROR_INIT;
    uint64_t shape[SFT_MAX_RANK];
    size_t count = 1;
    if (PyTuple_Check(index)) count = (size_t)PyTuple_Size(index);
    if (count > SFT_MAX_RANK + 1) count = SFT_MAX_RANK + 1; /* refused below */
    if (all_parts(index, parts, count) < 0) return -1;
    uint32_t rank = whole ? sft_slice_shape(whole, shape) : tensor->rank;
    sft_slice part;
    if (sft_slice_resolve(whole ? shape : tensor->shape, rank, parts, count, &part, &err))
        return pysft_fail(state, &err, NULL);
    if (whole) compose(whole, &part, out);
    else *out = part;
    return 0;
}
