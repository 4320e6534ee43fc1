/* Metadata keys that hold digests of a model, and the official order of its tensors. Tests:
 * test_digest_keys.c, test_kept.c. */
#include "keys/digest_keys.h"

#include "base/error.h"
#include "base/order.h"

#include <string.h>

static const struct digest_row {
    const char *key; /* with * at its end: a prefix */
    sfti_digest_key bit;
} digest_rows[] = {
    { "sshs_model_hash", SFTI_DIGEST_SSHS_MODEL },
    { "sshs_legacy_hash", SFTI_DIGEST_SSHS_LEGACY },
    { "modelspec.hash_*", SFTI_DIGEST_MODELSPEC },
};
#define DIGEST_ROWS (sizeof digest_rows / sizeof *digest_rows)

unsigned sfti_digest_key_of(sft_span key) {
    for (size_t i = 0; i < DIGEST_ROWS; i++) {
        const char *name = digest_rows[i].key;
        size_t len = strlen(name);
        bool prefix = name[len - 1] == '*';
        if (prefix) len--;
        if ((prefix ? key.len > len : key.len == len) && memcmp(key.data, name, len) == 0)
            return digest_rows[i].bit;
    }
    return 0;
}

const char *sfti_digest_key_at(size_t i, unsigned *bit) {
    if (i >= DIGEST_ROWS) return NULL;
    *bit = digest_rows[i].bit;
    return digest_rows[i].key;
}

const char *sfti_reading_key_at(size_t i) {
    static const char *const keys[] = { SFTI_DECLARED_KEY, SFTI_QUANTISER_KEY,
                                        SFTI_LORA_CONFIG_KEY };
    return i < sizeof keys / sizeof *keys ? keys[i] : NULL;
}

bool sfti_is_reading_key(sft_span key) {
    const char *reads;
    for (size_t i = 0; (reads = sfti_reading_key_at(i)) != NULL; i++)
        if (sft_span_equal(key, sft_span_cstr(reads))) return true;
    return false;
}

static const char *const recipe_keys[] = {
    "sft_lora_merge", "sft_lora_resize", "sft_lora_stack", "sft_lora_extract", "sft_lora_simplify",
    "sft_merge", "sd_merge_recipe", "sd_merge_models", "modelspec.merged_from",
};
#define LORA_RECIPES 5

const char *sfti_recipe_key_at(size_t i, bool sft_lora_alone) {
    size_t count = sft_lora_alone ? LORA_RECIPES : sizeof recipe_keys / sizeof *recipe_keys;
    return i < count ? recipe_keys[i] : NULL;
}

bool sfti_is_recipe_key(sft_span key, bool sft_lora_alone) {
    const char *one;
    for (size_t i = 0; (one = sfti_recipe_key_at(i, sft_lora_alone)) != NULL; i++)
        if (sft_span_equal(key, sft_span_cstr(one))) return true;
    return false;
}

bool sfti_is_training_key(sft_span key) {
    return key.len >= 3 && memcmp(key.data, "ss_", 3) == 0;
}

const char *sfti_declared_prefix(size_t i) {
    static const char *const prefixes[] = { "", "model.diffusion_model.", "diffusion_model.",
                                            "net.", "transformer.", "unet." };
    return i < sizeof prefixes / sizeof *prefixes ? prefixes[i] : NULL;
}

/* ── Layout ── */

void sfti_layout_add(sfti_layout *layout, const sft_tensor *tensor) {
    if (tensor->begin == tensor->end) return;
    bool next = tensor->begin == layout->end;
    /* The official writer sorts by dtype, descending, then by name. */
    const sft_tensor *last = layout->last ? layout->last : tensor;
    uint32_t first = sft_dtype_describe(last->dtype)->order;
    uint32_t second = sft_dtype_describe(tensor->dtype)->order;
    bool sorted = !layout->last || first > second
                  || (first == second && sfti_bytes_compare(last->name, tensor->name) < 0);
    layout->differs = layout->differs || !next || !sorted;
    layout->end = tensor->end;
    layout->last = tensor;
}

bool sfti_layout_is_official(const sfti_layout *layout, uint64_t bytes) {
    return !layout->differs && layout->end == bytes;
}

bool sfti_has_official_layout(const sft_file *file) {
    sfti_layout layout = SFTI_LAYOUT_INIT;
    for (size_t i = 0; i < sft_file_tensor_count(file); i++)
        sfti_layout_add(&layout, sft_file_tensor_at(file, i));
    return sfti_layout_is_official(&layout, sft_file_data_bytes(file));
}

/* ── Metadata without stale digests ── */

unsigned sfti_digests_in(const sft_file *file, unsigned stale) {
    unsigned found = 0;
    for (size_t i = 0; i < sft_file_metadata_count(file); i++)
        found |= sfti_digest_key_of(sft_file_metadata_at(file, i).key) & stale;
    return found;
}

sft_code sfti_kept_pairs_of(const sft_file *file, unsigned stale, sfti_arena *arena,
                            sfti_kept_pairs *out, sft_error *err) {
    size_t most = sft_file_metadata_count(file);
    *out = (sfti_kept_pairs){ .file = file, .at = sfti_arena_array(arena, most, sizeof *out->at) };
    if (!out->at) return sfti_fail_memory(err, most * sizeof *out->at);
    for (size_t i = 0; i < most; i++) {
        if (!(sfti_digest_key_of(sft_file_metadata_at(file, i).key) & stale))
            out->at[out->count++] = i;
    }
    return SFT_OK;
}

sft_pair sfti_kept_pair(const void *kept, size_t i) {
    const sfti_kept_pairs *pairs = kept;
    return sft_file_metadata_at(pairs->file, pairs->at[i]);
}
