#include "base/checked.h"
#include "safetensors_set.h"

#include <string.h>

/* Sums stop at 2^64 - 1, which no real model reaches. */
static void total_add(uint64_t *sum, uint64_t more) {
    if (!sfti_add(*sum, more, sum)) *sum = UINT64_MAX;
}

static void total_tensor(sft_totals *out, const sft_tensor *tensor) {
    uint64_t elements, bytes = tensor->end - tensor->begin;
    if (sft_shape_size(tensor->dtype, tensor->shape, tensor->rank, &elements, NULL, NULL))
        elements = 0;
    total_add(&out->tensors, 1);
    total_add(&out->parameters, elements);
    if (bytes > 0 && !sft_tensor_aligned(tensor)) total_add(&out->unaligned, 1);
    total_add(&out->dtypes[tensor->dtype].tensors, 1);
    total_add(&out->dtypes[tensor->dtype].parameters, elements);
    total_add(&out->dtypes[tensor->dtype].bytes, bytes);
}

static void total_file(sft_totals *out, const sft_file *file) {
    uint64_t size = sft_file_size(file);
    uint32_t alignment = sft_file_alignment(file);
    if (size == SFT_SIZE_UNKNOWN) out->bytes = SFT_SIZE_UNKNOWN;
    else total_add(&out->bytes, size);
    total_add(&out->header_bytes, sft_file_header_bytes(file));
    total_add(&out->data_bytes, sft_file_data_bytes(file));
    if (alignment < out->alignment) out->alignment = alignment;
}

void sft_set_totals(const sft_set *set, sft_totals *out) {
    memset(out, 0, sizeof *out);
    out->alignment = UINT32_MAX;
    for (size_t i = 0; i < sft_set_shard_count(set); i++) total_file(out, sft_set_shard(set, i));
    for (size_t i = 0; i < sft_set_count(set); i++) total_tensor(out, sft_set_tensor(set, i));
}
