/* Totals of a set: bytes, dtypes, alignment. Tests: test_render.c. */
#include "base/checked.h"
#include "safetensors_report.h"
#include "set/set.h"

/* ── Linear in shards ── */

static uint64_t total_files(const sft_set *set, uint64_t (*of_file)(const sft_file *file)) {
    uint64_t sum = 0;
    for (size_t i = 0; i < sft_set_shard_count(set); i++)
        sfti_total_add(&sum, of_file(sft_set_shard_at(set, i)));
    return sum;
}

uint64_t sft_set_file_bytes(const sft_set *set) {
    return set->input_bytes ? set->input_bytes : total_files(set, sft_file_size);
}

uint64_t sft_set_header_bytes(const sft_set *set) {
    return total_files(set, sft_file_header_bytes);
}

uint64_t sft_set_data_bytes(const sft_set *set) {
    return total_files(set, sft_file_data_bytes);
}

uint32_t sft_set_alignment(const sft_set *set) {
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < sft_set_shard_count(set); i++) {
        uint32_t alignment = sft_file_alignment(sft_set_shard_at(set, i));
        if (alignment < least) least = alignment;
    }
    return least;
}

/* ── Linear in tensors ── */

uint64_t sft_set_parameters(const sft_set *set) {
    sft_dtype_sum sums[SFT_DTYPE_COUNT];
    size_t count = sft_set_dtypes(set, sums, SFT_DTYPE_COUNT);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sfti_total_add(&sum, sums[i].parameters);
    return sum;
}

uint64_t sft_set_unaligned_count(const sft_set *set) {
    uint64_t sum = 0;
    for (size_t i = 0; i < sft_set_tensor_count(set); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        sum += tensor->end > tensor->begin && !sft_tensor_aligned(tensor);
    }
    return sum;
}

size_t sft_set_dtypes(const sft_set *set, sft_dtype_sum *out, size_t cap) {
    uint64_t tensors[SFT_DTYPE_COUNT] = { 0 }, bytes[SFT_DTYPE_COUNT] = { 0 };
    size_t count = 0;
    for (size_t i = 0; i < sft_set_tensor_count(set); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        tensors[tensor->dtype]++;
        sfti_total_add(&bytes[tensor->dtype], tensor->end - tensor->begin);
    }
    for (size_t order = 0; order < SFT_DTYPE_COUNT; order++) {
        const sft_dtype_info *info = sft_dtype_at(order);
        uint64_t sum = bytes[info->dtype];
        if (tensors[info->dtype] == 0) continue;
        uint64_t elements; /* in so many bytes: a tensor has as many as its shape says */
        bool fits = sfti_mul(sum / info->bits, 8, &elements)
                 && sfti_add(elements, sum % info->bits * 8 / info->bits, &elements);
        if (!fits) elements = UINT64_MAX;
        if (count < cap)
            out[count] = (sft_dtype_sum){ info->dtype, tensors[info->dtype], elements, sum };
        count++;
    }
    return count;
}
