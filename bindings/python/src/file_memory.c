/* Bytes of an open file as a buffer: File.memory. */
#include "piece.h"

static PyObject *read_memory(pysft_state *state, const pysft_store *store, size_t shard,
                             uint64_t begin, uint64_t len) {
    const sft_file *file = sft_set_shard_at(pysft_store_set(store), shard);
    const uint64_t most = UINT64_C(8) << 20; /* between two looks at signals */
    sft_error err = SFT_ERROR_INIT;
    sft_code code = SFT_OK;
    pysft_store *block = pysft_store_block(len);
    if (!block) return PyErr_NoMemory();
    char *into = pysft_store_bytes(block);
    for (uint64_t done = 0; !code && done < len; done += most) {
        uint64_t now = len - done < most ? len - done : most;
        PYSFT_NO_GIL(code = sft_read_bytes(file, begin + done, into + done, (size_t)now, &err));
        if (!code && PyErr_CheckSignals() < 0) code = SFT_CANCELLED;
    }
    PyObject *memory = code ? pysft_raise(state, &err, pysft_store_path(store))
                            : pysft_memory_new(state, block, into, len, false);
    pysft_store_drop(block);
    return memory;
}

PyObject *pysft_file_memory(pysft_state *state, pysft_store *store, Py_ssize_t shard,
                            uint64_t begin, uint64_t end) {
    sft_set *set = pysft_store_set(store);
    if (shard < 0 || (size_t)shard >= sft_set_shard_count(set))
        return PyErr_Format(PyExc_IndexError, "there is no shard %zd", shard);
    const sft_file *file = sft_set_shard_at(set, (size_t)shard);
    uint64_t first = sft_file_data_offset(file), bytes = sft_file_data_bytes(file);
    if (begin > end || begin < first || end - first > bytes)
        return PyErr_Format(PyExc_ValueError,
                            "expected bytes from %llu to %llu, found %llu to %llu",
                            (unsigned long long)first, (unsigned long long)(first + bytes),
                            (unsigned long long)begin, (unsigned long long)end);
    bool writable;
    char *base = pysft_store_base(store, (size_t)shard, &writable);
    if (!base) return read_memory(state, store, (size_t)shard, begin, end - begin);
    return pysft_memory_new(state, store, base + (begin - first), end - begin, false);
}
