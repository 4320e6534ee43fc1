#include "base/checked.h"
#include "safetensors_set.h"

#include <string.h>

/* ── Linear in shards ── */

static uint64_t total_files(const sft_set *set, uint64_t (*of_file)(const sft_file *file)) {
    uint64_t sum = 0;
    for (size_t i = 0; i < sft_set_shard_count(set); i++)
        sfti_total_add(&sum, of_file(sft_set_shard_at(set, i)));
    return sum;
}

uint64_t sft_set_file_bytes(const sft_set *set) { return total_files(set, sft_file_size); }

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

static uint64_t total_elements(const sft_tensor *tensor) {
    uint64_t elements = 0;
    (void)!sft_shape_size(tensor->dtype, tensor->shape, tensor->rank, &elements, NULL, NULL);
    return elements;
}

uint64_t sft_set_parameters(const sft_set *set) {
    uint64_t sum = 0;
    for (size_t i = 0; i < sft_set_tensor_count(set); i++)
        sfti_total_add(&sum, total_elements(sft_set_tensor_at(set, i)));
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
    sft_dtype_sum sums[SFT_DTYPE_COUNT]; /* by place in the order */
    size_t count = 0;
    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i < sft_set_tensor_count(set); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        sft_dtype_sum *sum = &sums[sft_dtype_describe(tensor->dtype)->order];
        sum->dtype = tensor->dtype;
        sfti_total_add(&sum->tensors, 1);
        sfti_total_add(&sum->parameters, total_elements(tensor));
        sfti_total_add(&sum->bytes, tensor->end - tensor->begin);
    }
    for (size_t order = 0; order < SFT_DTYPE_COUNT; order++) {
        if (sums[order].tensors == 0) continue;
        if (count < cap) out[count] = sums[order];
        count++;
    }
    return count;
}
