/* What the header tells of a merge. Tests: tests/adapter, tests/cli/lora. */
#include "adapter/merge.h"

#include "base/error.h"
#include "keys/digest_keys.h"
#include "safetensors_hash.h"

#include <string.h>

#define MORE 8 /* pairs that callers add */

sft_code sfti_recipe_pairs(const sft_set *set, sfti_arena *work, const char *const *without,
                           size_t without_count, sfti_recipe_drop dropped, sft_pair **out,
                           size_t *count, sft_error *err) {
    size_t shards = sft_set_shard_count(set), most = MORE;
    for (size_t s = 0; s < shards; s++) most += sft_file_metadata_count(sft_set_shard_at(set, s));
    *count = 0;
    *out = sfti_arena_array(work, most, sizeof **out);
    if (!*out) return sfti_fail_memory(err, most * sizeof **out);
    for (size_t s = 0; s < shards; s++) {
        const sft_file *file = sft_set_shard_at(set, s);
        for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
            sft_pair pair = sft_file_metadata_at(file, i);
            sft_span before;
            bool again = (sfti_digest_key_of(pair.key) & SFTI_DIGESTS_OF_DATA) != 0;
            again = again || (dropped && sfti_is_recipe_key(pair.key, dropped == SFTI_DROPS_LORA));
            for (size_t k = 0; k < without_count && !again; k++)
                again = sfti_is(pair.key, without[k]);
            for (size_t b = 0; b < s && !again; b++) {
                again = sft_file_metadata_get(sft_set_shard_at(set, b), pair.key, &before);
                if (again && sfti_is_reading_key(pair.key)
                    && !sft_span_equal(pair.value, before))
                    return sfti_fail(err, SFT_CAST_DTYPE,
                                     "expected one %.*s, which says how tensors are read, in all "
                                     "shards, found different ones", SFTI_CLIP(pair.key, 40));
            }
            if (!again) (*out)[(*count)++] = pair;
        }
    }
    return SFT_OK;
}

static sft_span pair_named(const sft_set *set, const char *key) {
    sft_span value = { NULL, 0 };
    for (size_t s = 0; s < sft_set_shard_count(set) && !value.data; s++)
        (void)sft_file_metadata_get(sft_set_shard_at(set, s), sft_span_cstr(key), &value);
    return value;
}

sft_code sfti_recipe_adapter(sfti_json_writer *w, const sfti_merge_input *input, bool digests,
                             sft_error *err) {
    uint32_t algos = SFT_HASH_BIT(SFT_HASH_SHA256) | SFT_HASH_BIT(SFT_HASH_CONTENT);
    sft_hashes hashes = SFT_HASHES_INIT(0);
    sft_code code = digests ? sft_hash_set(input->stored, algos, &hashes, NULL, err) : SFT_OK;
    if (code) return code;
    sfti_json_open(w, '{');
    sfti_json_put_text(w, "name", input->name);
    sfti_json_put_double(w, "strength", input->strength);
    if (input->blocks.data) sfti_json_put_text(w, "blocks", input->blocks);
    sfti_json_put_cstr(w, "sha256", sft_hashes_get(&hashes, SFT_HASH_SHA256));
    sfti_json_put_cstr(w, "content", sft_hashes_get(&hashes, SFT_HASH_CONTENT));
    sfti_json_close(w, '}');
    return SFT_OK;
}

void sfti_recipe_model(sfti_json_writer *w, const sft_set *set, sft_span name) {
    sfti_json_open(w, '{');
    sfti_json_put_text(w, "name", name);
    sfti_json_put_text(w, "recorded_sha256", pair_named(set, "modelspec.hash_sha256"));
    sfti_json_put_text(w, "recorded_sshs", pair_named(set, "sshs_model_hash"));
    sfti_json_close(w, '}');
}

void sfti_recipe_before(sfti_json_writer *w, const sft_set *set, const char *verb,
                        bool lora_alone) {
    sft_span before = pair_named(set, verb);
    const char *key;
    bool any = false;
    if (before.data) sfti_json_key(w, "before");
    if (before.data) sfti_json_text(w, before);
    for (size_t i = 0; (key = sfti_recipe_key_at(i, lora_alone)) != NULL; i++) {
        before = pair_named(set, key);
        if (!before.data || strcmp(key, verb) == 0 || strcmp(key, SFTI_MERGE_NAMES) == 0) continue;
        if (!any) sfti_json_put_open(w, "before_others", '{');
        any = true;
        sfti_json_key(w, key);
        sfti_json_text(w, before);
    }
    if (any) sfti_json_close(w, '}');
}

sft_code sfti_adapter_recipe(sft_adapter_merge *merge, sft_span model, bool digests,
                             sft_error *err) {
    merge->recipe.len = merge->names.len = 0;
    sft_sink sink = sft_sink_memory(&merge->recipe);
    sfti_json_writer w;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    sfti_json_key(&w, "model");
    sfti_recipe_model(&w, merge->model, model);
    sfti_json_put_open(&w, "adapters", '[');
    bool fine = sfti_buffer_put(&merge->names, model.data, model.len);
    for (size_t i = 0; i < merge->count; i++) {
        sft_span name = merge->inputs[i]->name;
        sft_code code = sfti_recipe_adapter(&w, merge->inputs[i], digests, err);
        merge->blames = i;
        if (code) return code;
        fine = fine && sfti_buffer_put(&merge->names, ", ", 2)
            && sfti_buffer_put(&merge->names, name.data, name.len);
    }
    merge->blames = SIZE_MAX;
    sfti_json_close(&w, ']');
    bool comfy = merge->options.dora == SFT_ADAPTER_DORA_COMFY;
    sfti_json_put_cstr(&w, "dora", comfy ? "comfy" : "exact");
    if (merge->options.stochastic) sfti_json_put_uint(&w, "stochastic", merge->options.seed);
    sfti_recipe_before(&w, merge->model, SFTI_MERGE_RECIPE, false);
    sfti_json_close(&w, '}');
    return fine ? sfti_json_done(&w) : sfti_fail_memory(err, merge->names.len);
}
