/* A model of one matrix and an adapter for it, in memory. */
#ifndef ADAPTER_CASE_H
#define ADAPTER_CASE_H

#include "safetensors_adapter.h"
#include "unit/make_file.h"

#define ADAPTER_F32(name, shape, begin, end)                                                    \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

/* Of a weight 1 2 / 3 4. */
static inline test_file adapter_model(void) {
    static const float values[6] = { 1, 2, 3, 4, 5, 6 };
    return make_file("{" ADAPTER_F32("a.weight", "[2,2]", 0, 16) ","
                     ADAPTER_F32("b", "[2]", 16, 24) ",\"__metadata__\":{\"kept\":\"yes\"}}",
                     values, sizeof values);
}

/* Adds 0.5 * (1, 2) x (10, 20), 0.5 being alpha / rank. more: one of a layer that is not there. */
static inline test_file adapter_file(bool more) {
    static const float values[7] = { 0.5f, 10, 20, 1, 2, 0, 0 };
    return more ? make_file("{" ADAPTER_F32("a.alpha", "[]", 0, 4) ","
                            ADAPTER_F32("a.lora_down.weight", "[1,2]", 4, 12) ","
                            ADAPTER_F32("a.lora_up.weight", "[2,1]", 12, 20) ","
                            ADAPTER_F32("c.lora_down.weight", "[1,1]", 20, 24) ","
                            ADAPTER_F32("c.lora_up.weight", "[1,1]", 24, 28) "}",
                            values, sizeof values)
                : make_file("{" ADAPTER_F32("a.alpha", "[]", 0, 4) ","
                            ADAPTER_F32("a.lora_down.weight", "[1,2]", 4, 12) ","
                            ADAPTER_F32("a.lora_up.weight", "[2,1]", 12, 20) "}",
                            values, 20);
}

/* A fused layer of FLUX.1, of 6 rows, at alpha 0.5. */
static inline test_file adapter_of_flux(void) {
    static const float values[9] = { 0.5f, 10, 20, 1, 2, 3, 4, 5, 6 };
    return make_file("{\"__metadata__\":{\"kept\":\"yes\",\"sshs_model_hash\":\"ab\"},"
                     ADAPTER_F32("lora_unet_double_blocks_0_img_attn_qkv.alpha", "[]", 0, 4) ","
                     ADAPTER_F32("lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight", "[1,2]",
                                 4, 12) ","
                     ADAPTER_F32("lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight", "[6,1]",
                                 12, 36) "}", values, sizeof values);
}

/* Memory for so many allocations; those that follow fail. */
typedef struct short_memory {
    size_t left, taken;
} short_memory;

static inline void *short_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    short_memory *m = ctx;
    if (new_size > 0 && m->left-- == 0) {
        m->left = 0;
        return NULL;
    }
    m->taken += new_size - old_size;
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static inline sft_set *adapter_set(const test_file *f, const sft_allocator *alloc) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    sft_set *set;
    how.alloc = alloc;
    if (sft_open_memory(f->bytes, f->len, &how, &file, NULL)) return NULL;
    return sft_set_from_file(file, NULL, &set, NULL) ? NULL : set;
}

#endif
