/* The records of a label, a table of members for each. */
#include "label/render/render.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define EXAMPLES_MOST 10
#define SAME_MOST 16
#define MEMBERS(table) (table), SFTI_COUNT(table)

/* ── model ── */

static void put_facts(sfti_json_writer *w, const sft_info *info, sft_fact first, sft_fact last) {
    for (int i = (int)first; i <= (int)last; i++) {
        const sfti_fact *fact = info->facts[i];
        if (!sfti_put_open(w, sft_fact_name((sft_fact)i), '{', fact != NULL)) continue;
        sfti_put_candidate(w, fact);
        sfti_put_candidates(w, "others", fact->next);
        sfti_json_close(w, '}');
    }
}

static const sfti_member note_members[] = {
    { "text", AS_TEXT, offsetof(sfti_note, text) },
    { "source", AS_TEXT, offsetof(sfti_note, source) },
};

static const sfti_member component_members[] = {
    { "part", AS_CSTR, offsetof(sfti_component, part) },
    { "architecture", AS_CSTR, offsetof(sfti_component, architecture) },
    { "trust", AS_INDEX, offsetof(sfti_component, trust) },
    { "dtype", AS_CSTR, offsetof(sfti_component, dtype) },
    { "bytes", AS_UINT, offsetof(sfti_component, bytes) },
    { "parameters", AS_COUNT, offsetof(sfti_component, weights.known) },
};

static const sfti_member model_members[] = {
    { "precision", AS_CSTR, offsetof(sft_info, precision) },
    { "parameters", AS_COUNT, offsetof(sft_info, weights.known) },
    { "size", AS_CSTR, offsetof(sft_info, size) },
    { "vectors", AS_SOME, offsetof(sft_info, vectors) },
    { "negative", AS_ANSWER, offsetof(sft_info, negative) },
};

static const sfti_member llm_members[] = {
    { "layers", AS_SOME, offsetof(sft_info, llm.layers) },
    { "hidden", AS_SOME, offsetof(sft_info, llm.hidden) },
    { "heads", AS_SOME, offsetof(sft_info, llm.heads) },
    { "kv_heads", AS_SOME, offsetof(sft_info, llm.kv_heads) },
    { "vocab", AS_SOME, offsetof(sft_info, llm.vocab) },
};

static void put_about(sfti_json_writer *w, const sft_info *info) {
    static const char *const keys[] = { "min", "max" };
    sfti_json_put_open(w, "model", '{');
    put_facts(w, info, SFT_FACT_KIND, SFT_FACT_USAGE_HINT);
    sfti_put_list(w, "notes", &info->notes, MEMBERS(note_members));
    sfti_put_double(w, "rating", info->rating, false);
    if (info->favourite < 0) sfti_json_put_null(w, "favourite");
    else sfti_json_put_bool(w, "favourite", info->favourite > 0);
    put_facts(w, info, SFT_FACT_PREDICTION_TYPE, SFT_FACT_NSFW);
    sfti_json_put_known(w, "nsfw_level",
                        info->nsfw_level < 0 ? UINT64_MAX : (uint64_t)info->nsfw_level);
    put_facts(w, info, SFT_FACT_LANGUAGE, SFT_FACT_LANGUAGE);
    sfti_put_list(w, "components", &info->components, MEMBERS(component_members));
    put_facts(w, info, SFT_FACT_QUANTIZATION, SFT_FACT_FAMILY);
    sfti_put_members(w, MEMBERS(model_members), info);
    /* The range of preferred_weight; its source is that of the least, or the only, bound. */
    const sfti_fact *first = info->weight_bounds[0] ? info->weight_bounds[0]
                                                    : info->weight_bounds[1];
    bool ranged = sfti_put_open(w, "preferred_weight_range", '{', first != NULL);
    for (size_t i = 0; ranged && i < SFTI_COUNT(keys); i++) {
        const sfti_fact *bound = info->weight_bounds[i];
        sfti_json_key(w, keys[i]);
        if (bound) sfti_put_value(w, &bound->value);
        else sfti_json_null(w);
    }
    if (ranged) {
        sfti_put_text(w, "source", first->source);
        sfti_json_put_uint(w, "trust", (uint64_t)first->trust);
        sfti_json_close(w, '}');
    }
    if (info->has_llm) sfti_put_record(w, "llm", MEMBERS(llm_members), info);
    else sfti_json_put_null(w, "llm");
    sfti_put_texts(w, "evidence", &info->evidence);
    sfti_json_close(w, '}');
}

/* ── adapter ── */

static const sfti_member range_members[] = {
    { "min", AS_DOUBLE, offsetof(sfti_bounds, min) },
    { "max", AS_DOUBLE, offsetof(sfti_bounds, max) },
    { "mode", AS_DOUBLE, offsetof(sfti_bounds, mode) },
};

static const sfti_member adapter_members[] = {
    { "type", AS_CSTR, offsetof(sfti_adapter, type) },
    { "dora", AS_BOOL, offsetof(sfti_adapter, dora) },
    { "rslora", AS_BOOL, offsetof(sfti_adapter, rslora) },
    { "format", AS_CSTR, offsetof(sfti_adapter, format) },
};

static const sfti_member adapter_sizes[] = {
    { "scale", AS_POSITIVE, offsetof(sfti_adapter, scale) },
    { "conv_rank", AS_SOME, offsetof(sfti_adapter, conv_rank) },
    { "modules", AS_COUNT, offsetof(sfti_adapter, modules) },
};

static void put_adapter(sfti_json_writer *w, const sft_info *info) {
    const sfti_adapter *adapter = &info->adapter;
    if (!sfti_put_open(w, "adapter", '{', adapter->present)) return;
    sfti_put_members(w, MEMBERS(adapter_members), adapter);
    if (sfti_put_open(w, "rank", '{', adapter->rank.known)) {
        sfti_put_members(w, MEMBERS(range_members), &adapter->rank);
        sfti_json_close(w, '}');
    }
    if (sfti_put_open(w, "alpha", '{', adapter->alpha.known)) {
        sfti_put_members(w, MEMBERS(range_members), &adapter->alpha);
        sfti_json_put_bool(w, "sampled", adapter->alpha_sampled);
        sfti_json_close(w, '}');
    }
    sfti_put_members(w, MEMBERS(adapter_sizes), adapter);
    sfti_put_list(w, "components", &adapter->components, MEMBERS(component_members));
    sfti_put_texts(w, "targets", &adapter->targets);
    sfti_put_texts(w, "blocks", &adapter->blocks);
    sfti_json_close(w, '}');
}

/* ── trigger_words, frequent_tags, example_prompts ── */

static const sfti_member trigger_members[] = {
    { "trust", AS_TRUST, offsetof(sfti_trigger, trust) },
    { "source", AS_TEXT, offsetof(sfti_trigger, source) },
    { "group", AS_INDEX, offsetof(sfti_trigger, group) },
    { "folder", AS_TEXT, offsetof(sfti_trigger, folder) },
    { "coverage", AS_POSITIVE, offsetof(sfti_trigger, coverage) },
};

static void put_trigger(sfti_json_writer *w, const sfti_trigger *trigger) {
    sft_span rest = trigger->text, piece;
    sfti_json_open(w, '{');
    sfti_put_text(w, "text", trigger->text);
    sfti_put_text(w, "prompt", trigger->prompt);
    sfti_json_put_open(w, "words", '[');
    while (sfti_next_piece(&rest, ',', &piece)) {
        piece = sfti_trim(piece);
        if (piece.len > 0) sfti_json_span(w, piece);
    }
    sfti_json_close(w, ']');
    sfti_put_members(w, MEMBERS(trigger_members), trigger);
    sfti_json_put_open(w, "others", '[');
    const sfti_trigger *other = trigger->others;
    for (size_t n = 0; other && n < SAME_MOST; other = other->next, n++) {
        sfti_fact fact = { sfti_text_value(other->text), other->source, other->trust, NULL, false,
                           false, NULL };
        sfti_json_open(w, '{');
        sfti_put_candidate(w, &fact);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_close(w, '}');
}

static const sfti_member tag_members[] = {
    { "tag", AS_TEXT, offsetof(sfti_tag, text) },
    { "count", AS_UINT, offsetof(sfti_tag, count) },
    { "coverage", AS_POSITIVE, offsetof(sfti_tag, coverage) },
};

static const sfti_member prompt_members[] = {
    { "positive", AS_TEXT, offsetof(sfti_prompt, positive) },
    { "negative", AS_TEXT, offsetof(sfti_prompt, negative) },
    { "seed", AS_NUMBER, offsetof(sfti_prompt, seed) },
    { "steps", AS_NUMBER, offsetof(sfti_prompt, steps) },
    { "sampler", AS_TEXT, offsetof(sfti_prompt, sampler) },
    { "cfg", AS_NUMBER, offsetof(sfti_prompt, cfg) },
    { "source", AS_TEXT, offsetof(sfti_prompt, source) },
};

static const sfti_member line_members[] = {
    { "a1111", AS_TEXT, offsetof(sft_info, a1111) },
    { "comfy", AS_TEXT, offsetof(sft_info, comfy) },
};

/* ── civitai, links ── */

/* The match of the sidecar a source names, or NULL. */
static const char *match_of(const sft_info *info, sft_span source) {
    if (info->online && sft_span_equal(source, info->online->source)) return info->online->match;
    if (!sfti_skip(&source, "sidecar:")) return NULL;
    source.len -= sfti_find_letters(source, ":/").len;
    for (const sfti_sidecar *one = info->sidecars.first; one; one = one->next) {
        size_t before = one->path.len - source.len;
        if (one->path.len >= source.len
            && sft_span_equal(sfti_from(one->path, before), source)
            && (before == 0 || one->path.data[before - 1] == '/'))
            return one->match;
    }
    return NULL;
}

#define SITE "https://civitai.com/"

static const sfti_member id_members[] = {
    { "model_id", AS_SOME, offsetof(sfti_civitai, model_id) },
    { "version_id", AS_SOME, offsetof(sfti_civitai, version_id) },
    { "air", AS_TEXT, offsetof(sfti_civitai, air) },
};

static const sfti_member claim_members[] = {
    { "source", AS_TEXT, offsetof(sfti_civitai, source) },
    { "trust", AS_TRUST, offsetof(sfti_civitai, trust) },
};

static const sfti_member permission_members[] = {
    { "derivatives", AS_ANSWER, offsetof(sft_info, permissions.derivatives) },
    { "relicense", AS_ANSWER, offsetof(sft_info, permissions.relicense) },
};

static const sfti_member credit_members[] = {
    { "credit", AS_ANSWER, offsetof(sft_info, permissions.credit) },
};

static const sfti_member link_members[] = {
    { "url", AS_TEXT, offsetof(sfti_link, url) },
    { "source", AS_TEXT, offsetof(sfti_link, source) },
    { "model_id", AS_SOME, offsetof(sfti_link, model_id) },
    { "version_id", AS_SOME, offsetof(sfti_link, version_id) },
};

static void put_civitai(sfti_json_writer *w, const sft_info *info) {
    const sfti_civitai *best = info->civitai.first;
    if (sfti_put_open(w, "civitai", '{', best != NULL)) {
        unsigned long long model = best->model_id, version = best->version_id;
        char url[128];
        (void)snprintf(url, sizeof url, model ? SITE "models/%llu" : SITE "model-versions/%llu",
                       model ? model : version);
        if (model && version)
            (void)snprintf(url, sizeof url, SITE "models/%llu?modelVersionId=%llu", model, version);
        sfti_put_members(w, MEMBERS(id_members), best);
        sfti_json_put_cstr(w, "url", url);
        sfti_put_members(w, MEMBERS(claim_members), best);
        const char *match = match_of(info, best->source);
        bool yes = match && (strcmp(match, "sha256") == 0 || strcmp(match, "weights") == 0);
        sfti_json_put_cstr(w, "match", match);
        if (yes || (match && strcmp(match, "differs") == 0))
            sfti_json_put_bool(w, "matches_file", yes);
        else sfti_json_put_null(w, "matches_file");
        sfti_put_text(w, "published_at", best->published_at);
        if (sfti_put_open(w, "permissions", '{', info->permissions.known)) {
            sfti_put_members(w, MEMBERS(credit_members), info);
            sfti_put_texts(w, "commercial", &info->permissions.commercial);
            sfti_put_members(w, MEMBERS(permission_members), info);
            sfti_json_close(w, '}');
        }
        sfti_json_close(w, '}');
    }
    sfti_put_list(w, "links", &info->links, MEMBERS(link_members));
}

/* ── training ── */

static void put_slot(sfti_json_writer *w, const sft_info *info, int which) {
    const sfti_fact_value *slot = &info->training[which];
    sfti_json_key(w, sfti_training_slots[which].name);
    if (which == TRAIN_NETWORK_ARGS) sfti_json_text(w, slot->text);
    else if (slot->text.len == 0 && slot->count == 0) sfti_json_null(w);
    else if (slot->type != SFTI_LIST) sfti_put_value(w, slot);
    else {
        /* Numbers: text encoders' learning rates. */
        sfti_json_open(w, '[');
        for (size_t i = 0; i < slot->count; i++) {
            sfti_fact_value one = sfti_number_value(slot->items[i]);
            sfti_put_value(w, &one);
        }
        sfti_json_close(w, ']');
    }
}

static void put_file_of(sfti_json_writer *w, const char *key, const sft_info *info, int file) {
    sfti_json_put_open(w, key, '{');
    for (int i = file; i < file + 3; i++) put_slot(w, info, i);
    sfti_json_close(w, '}');
}

static const sfti_member dataset_members[] = {
    { "folder", AS_TEXT, offsetof(sfti_dataset, folder) },
    { "images", AS_COUNT, offsetof(sfti_dataset, images) },
    { "repeats", AS_COUNT, offsetof(sfti_dataset, repeats) },
    { "class_tokens", AS_TEXT, offsetof(sfti_dataset, class_tokens) },
    { "regularisation", AS_ANSWER, offsetof(sfti_dataset, regularisation) },
    { "resolution", AS_TEXT, offsetof(sfti_dataset, resolution) },
};

static const sfti_member bucket_members[] = {
    { "resolution", AS_TEXT, offsetof(sfti_bucket, resolution) },
    { "count", AS_UINT, offsetof(sfti_bucket, count) },
};

/* ── merge, provenance ── */

static const sfti_member source_members[] = {
    { "name", AS_TEXT, offsetof(sfti_merge_source, name) },
    { "sha256", AS_TEXT, offsetof(sfti_merge_source, sha256) },
    { "autov1", AS_TEXT, offsetof(sfti_merge_source, autov1) },
    { "weight", AS_NUMBER, offsetof(sfti_merge_source, weight) },
    { "ancestor", AS_BOOL, offsetof(sfti_merge_source, ancestor) },
    { "method", AS_TEXT, offsetof(sfti_merge_source, method) },
    { "made_from", AS_TEXT, offsetof(sfti_merge_source, made_from) },
};

static const sfti_member graph_members[] = {
    { "workflow", AS_BOOL, offsetof(sft_info, has_workflow) },
    { "prompt", AS_BOOL, offsetof(sft_info, has_prompt_graph) },
};

static const sfti_member loader_members[] = {
    { "type", AS_TEXT, offsetof(sfti_loader, type) },
    { "name", AS_TEXT, offsetof(sfti_loader, name) },
    { "strength_model", AS_NUMBER, offsetof(sfti_loader, strength_model) },
    { "strength_clip", AS_NUMBER, offsetof(sfti_loader, strength_clip) },
};

/* ── hashes ── */

/* The computed digest that a claim is of; empty if it was not computed. */
static sft_span digest_of(const sft_info *info, const char *algo) {
    for (size_t i = 0; i < SFT_HASH_COUNT; i++)
        if (strcmp(sft_hash_name((sft_hash_algo)i), algo) == 0) return info->computed.text[i];
    return (sft_span){ "", 0 };
}

static const sfti_member recorded_members[] = {
    { "algo", AS_CSTR, offsetof(sfti_claim, algo) },
    { "value", AS_TEXT, offsetof(sfti_claim, value) },
    { "source", AS_TEXT, offsetof(sfti_claim, source) },
};

/* Whether the sidecar that claims it was found to be another file's. */
static bool is_of_another(const sft_info *info, const sfti_claim *claim) {
    const char *match = match_of(info, claim->source);
    return match && strcmp(match, "differs") == 0;
}

static void put_hashes(sfti_json_writer *w, const sft_info *info) {
    /* What CivitAI knows the file by: its SHA-256, else the hash that survives new metadata. */
    static const char *const algos[] = { "sha256", "autov3", "sshs_model" };
    char url[128];
    sft_span hash = { "", 0 };
    for (size_t i = 0; i < SFTI_COUNT(algos) && hash.len == 0; i++) {
        const sfti_claim *claim = info->claims.first;
        /* a SHA-256 that a sidecar, or who asks, claims: what a header has is of other files */
        while (claim && (strcmp(claim->algo, algos[i]) != 0 || is_of_another(info, claim)
                         || (i == 0 && !sfti_starts_with(claim->source, "sidecar:")
                             && !sfti_is_given_claim(info, claim))))
            claim = claim->next;
        if (i < 2) hash = digest_of(info, algos[i]);
        if (hash.len == 0 && claim && (i < 2 || !claim->known))
            hash = (sft_span){ claim->value.data, i < 2 ? claim->value.len : 12 };
    }
    (void)snprintf(url, sizeof url, SITE "api/v1/model-versions/by-hash/%.*s", (int)hash.len,
                   hash.data);
    sfti_json_put_open(w, "hashes", '{');
    sfti_put_list(w, "recorded", &info->claims, MEMBERS(recorded_members));
    sfti_json_put_open(w, "computed", '{');
    for (size_t i = 0; i < SFT_HASH_COUNT; i++)
        if (info->computed.asked & SFT_HASH_BIT(i))
            sfti_put_text(w, sft_hash_name((sft_hash_algo)i), info->computed.text[i]);
    sfti_json_close(w, '}');
    sfti_json_put_open(w, "mismatches", '[');
    for (const sfti_claim *one = info->claims.first; one; one = one->next) {
        sft_span digest = digest_of(info, one->algo);
        if (digest.len == 0 || sft_span_equal(digest, one->value)) continue;
        if (strcmp(one->algo, "crc32_civitai") == 0 && sfti_same_crc(digest, one->value)) continue;
        sfti_json_open(w, '{');
        sfti_json_put_cstr(w, "algo", one->algo);
        sfti_put_text(w, "recorded", one->value);
        sfti_put_text(w, "computed", digest);
        sfti_put_text(w, "source", one->source);
        sfti_json_put_cstr(w, "known", sfti_claim_known(info, one));
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_put_cstr(w, "lookup_url", hash.len > 0 ? url : NULL);
    sfti_json_close(w, '}');
}

/* ── previews, sidecars, privacy, conflicts ── */

static const sfti_member preview_members[] = {
    { "path", AS_TEXT, offsetof(sfti_preview, path) },
    { "source", AS_TEXT, offsetof(sfti_preview, source) },
    { "media_type", AS_CSTR, offsetof(sfti_preview, media_type) },
    { "bytes", AS_UINT, offsetof(sfti_preview, bytes) },
    { "width", AS_SOME32, offsetof(sfti_preview, width) },
    { "height", AS_SOME32, offsetof(sfti_preview, height) },
    { "nsfw_level", AS_SOME32, offsetof(sfti_preview, nsfw_level) },
};

static const sfti_member sidecar_members[] = {
    { "path", AS_TEXT, offsetof(sfti_sidecar, path) },
    { "kind", AS_CSTR, offsetof(sfti_sidecar, kind) },
    { "match", AS_CSTR, offsetof(sfti_sidecar, match) },
    { "error", AS_TEXT, offsetof(sfti_sidecar, error) },
};

static const sfti_member private_members[] = {
    { "key", AS_SPAN, offsetof(sfti_private, key) },
    { "what", AS_CSTR, offsetof(sfti_private, what) },
};

void sfti_render_sections(sfti_json_writer *w, const sft_info *info) {
    if (info->shard_of > 0) { /* a shard that was opened alone */
        sfti_json_put_open(w, "set", '{');
        sfti_put_text(w, "index", info->shard_index);
        sfti_json_put_uint(w, "shard", info->shard);
        sfti_json_put_uint(w, "of", info->shard_of);
        sfti_json_close(w, '}');
    }
    put_about(w, info);
    put_adapter(w, info);
    size_t examples = 0;
    sfti_json_put_open(w, "trigger_words", '[');
    for (size_t i = 0; i < info->triggers.count; i++) put_trigger(w, info->ordered[i]);
    sfti_json_close(w, ']');
    sfti_put_record(w, "prompts", MEMBERS(line_members), info);
    sfti_put_list(w, "frequent_tags", &info->tags, MEMBERS(tag_members));
    sfti_json_put_open(w, "example_prompts", '[');
    for (const sfti_prompt *one = info->prompts.first; one && examples < EXAMPLES_MOST;
         one = one->next, examples++) {
        sfti_json_open(w, '{');
        sfti_put_members(w, MEMBERS(prompt_members), one);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    put_civitai(w, info);
    bool trained = info->has_training || info->datasets.count > 0 || info->buckets.count > 0;
    if (sfti_put_open(w, "training", '{', trained)) {
        for (int i = 0; i < TRAIN_BASE_FILE; i++) put_slot(w, info, i);
        put_file_of(w, "base", info, TRAIN_BASE_FILE);
        put_file_of(w, "vae", info, TRAIN_VAE_FILE);
        sfti_put_list(w, "datasets", &info->datasets, MEMBERS(dataset_members));
        sfti_put_list(w, "buckets", &info->buckets, MEMBERS(bucket_members));
        sfti_json_close(w, '}');
    }
    bool merged = info->has_merge || info->merge_sources.count > 0;
    if (sfti_put_open(w, "merge", '{', merged)) {
        sfti_put_text(w, "tool", info->merge_tool);
        sfti_put_text(w, "method", info->merge_method);
        sfti_json_key(w, "recipe");
        sfti_json_text(w, info->merge_recipe);
        sfti_put_list(w, "sources", &info->merge_sources, MEMBERS(source_members));
        sfti_json_close(w, '}');
    }
    bool graph = info->has_provenance || info->has_workflow || info->has_prompt_graph
              || info->loaders.count > 0;
    if (sfti_put_open(w, "provenance", '{', graph)) {
        sfti_put_members(w, MEMBERS(graph_members), info);
        sfti_put_list(w, "loaders", &info->loaders, MEMBERS(loader_members));
        sfti_json_close(w, '}');
    }
    put_hashes(w, info);
    sfti_put_list(w, "previews", &info->previews, MEMBERS(preview_members));
    sfti_put_list(w, "sidecars", &info->sidecars, MEMBERS(sidecar_members));
    sfti_put_list(w, "privacy", &info->privates, MEMBERS(private_members));
    sfti_json_put_open(w, "conflicts", '[');
    for (const sfti_conflict *one = info->conflicts.first; one; one = one->next) {
        sfti_json_open(w, '{');
        sfti_json_put_cstr(w, "field", one->field);
        sfti_put_candidates(w, "candidates", one->facts);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}
