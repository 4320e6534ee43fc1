#include "info/render/render.h"

#include <string.h>

#define LINKS_MOST 256
#define EXAMPLES_MOST 10

/* ── Words ── */

static void put_word_parts(sfti_json_writer *w, sft_span text) {
    sft_span piece;
    sfti_json_key(w, "words");
    sfti_json_open(w, '[');
    while (sfti_next_piece(&text, ',', &piece)) {
        piece = sfti_trim(piece);
        if (piece.len > 0) sfti_json_span(w, piece);
    }
    sfti_json_close(w, ']');
}

static void put_coverage(sfti_json_writer *w, double coverage) {
    sfti_put_double(w, "coverage", coverage >= 0 ? coverage : 1e12);
}

static void put_same_words(sfti_json_writer *w, const sfti_trigger *others) {
    sfti_json_key(w, "others");
    sfti_json_open(w, '[');
    for (size_t n = 0; others && n < 16; others = others->next, n++) {
        sfti_fact fact = { sfti_text_value(others->text), others->source, others->trust, NULL };
        sfti_json_open(w, '{');
        sfti_put_candidate(w, &fact);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void put_trigger(sfti_json_writer *w, const sfti_trigger *trigger) {
    sfti_json_open(w, '{');
    sfti_put_text(w, "text", trigger->text);
    sfti_put_text(w, "prompt", trigger->prompt);
    put_word_parts(w, trigger->text);
    sfti_put_uint(w, "trust", (uint64_t)trigger->trust);
    sfti_put_text(w, "source", trigger->source);
    sfti_json_key(w, "group");
    if (trigger->group < 0) sfti_json_null(w);
    else sfti_json_uint(w, (uint64_t)trigger->group);
    sfti_put_text(w, "folder", trigger->folder);
    put_coverage(w, trigger->coverage);
    put_same_words(w, trigger->others);
    sfti_json_close(w, '}');
}

static void put_tags(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "frequent_tags");
    sfti_json_open(w, '[');
    for (const sfti_tag *tag = info->tags.first; tag; tag = tag->next) {
        sfti_json_open(w, '{');
        sfti_put_text(w, "tag", tag->text);
        sfti_put_uint(w, "count", tag->count);
        put_coverage(w, tag->coverage);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void put_number_text(sfti_json_writer *w, const char *key, sft_span text) {
    sfti_value value = sfti_number_value(text);
    sfti_json_key(w, key);
    if (text.len == 0) sfti_json_null(w);
    else sfti_put_value(w, &value);
}

static void put_examples(sfti_json_writer *w, const sft_info *info) {
    size_t count = 0;
    sfti_json_key(w, "example_prompts");
    sfti_json_open(w, '[');
    for (const sfti_prompt *one = info->prompts.first; one && count < EXAMPLES_MOST;
         one = one->next, count++) {
        sfti_json_open(w, '{');
        sfti_put_text(w, "positive", one->positive);
        sfti_put_text(w, "negative", one->negative);
        put_number_text(w, "seed", one->seed);
        put_number_text(w, "steps", one->steps);
        sfti_put_text(w, "sampler", one->sampler);
        put_number_text(w, "cfg", one->cfg);
        sfti_put_text(w, "source", one->source);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

void sfti_render_words(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "trigger_words");
    sfti_json_open(w, '[');
    for (size_t i = 0; i < info->triggers.count; i++) put_trigger(w, info->ordered[i]);
    sfti_json_close(w, ']');
    put_tags(w, info);
    put_examples(w, info);
}

/* ── CivitAI ── */

/* The match of the sidecar a source names, or NULL. */
static const char *match_of(const sft_info *info, sft_span source) {
    if (info->online && sft_span_equal(source, info->online->source)) return info->online->match;
    if (!sfti_starts_with(source, "sidecar:")) return NULL;
    sft_span file = { source.data + 8, source.len - 8 };
    sft_span pointer = sfti_find_letters(file, ":/");
    if (pointer.data) file.len -= pointer.len;
    for (const sfti_sidecar *one = info->sidecars.first; one; one = one->next)
        if (one->path.len >= file.len
            && memcmp(one->path.data + one->path.len - file.len, file.data, file.len) == 0
            && (one->path.len == file.len || one->path.data[one->path.len - file.len - 1] == '/'))
            return one->match;
    return NULL;
}

static size_t put_digits(char *at, uint64_t value) {
    char digits[24];
    size_t n = sizeof digits;
    do digits[--n] = (char)('0' + value % 10);
    while (value /= 10);
    memcpy(at, digits + n, sizeof digits - n);
    return sizeof digits - n;
}

static size_t put_word(char *at, const char *word) {
    size_t len = strlen(word);
    memcpy(at, word, len);
    return len;
}

static void put_address(sfti_json_writer *w, uint64_t model, uint64_t version) {
    char url[128];
    size_t len = put_word(url, "https://civitai.com/");
    len += put_word(url + len, model ? "models/" : "model-versions/");
    len += put_digits(url + len, model ? model : version);
    if (model && version) {
        len += put_word(url + len, "?modelVersionId=");
        len += put_digits(url + len, version);
    }
    sfti_put_text(w, "url", (sft_span){ url, len });
}

static void put_matches(sfti_json_writer *w, const char *match) {
    bool yes = match && (strcmp(match, "sha256") == 0 || strcmp(match, "weights") == 0);
    bool no = match && strcmp(match, "differs") == 0;
    sfti_put_cstr(w, "match", match);
    sfti_put_maybe(w, "matches_file", yes ? 1 : no ? 0 : -1);
}

static void put_permissions(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "permissions");
    if (!info->permissions.known) {
        sfti_json_null(w);
        return;
    }
    sfti_json_open(w, '{');
    sfti_put_maybe(w, "credit", info->permissions.credit);
    sfti_json_key(w, "commercial");
    sfti_json_open(w, '[');
    for (const sfti_note *one = info->permissions.commercial.first; one; one = one->next)
        sfti_json_span(w, one->text);
    sfti_json_close(w, ']');
    sfti_put_maybe(w, "derivatives", info->permissions.derivatives);
    sfti_put_maybe(w, "relicense", info->permissions.relicense);
    sfti_json_close(w, '}');
}

static void put_links(sfti_json_writer *w, const sft_info *info) {
    size_t count = 0;
    sfti_json_key(w, "links");
    sfti_json_open(w, '[');
    for (const sfti_link *link = info->links.first; link && count < LINKS_MOST;
         link = link->next, count++) {
        sfti_json_open(w, '{');
        sfti_put_text(w, "url", link->url);
        sfti_put_text(w, "source", link->source);
        sfti_put_some(w, "model_id", link->model_id);
        sfti_put_some(w, "version_id", link->version_id);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

void sfti_render_civitai(sfti_json_writer *w, const sft_info *info) {
    const sfti_civitai *best = info->civitai.first;
    sfti_json_key(w, "civitai");
    if (best) {
        sfti_json_open(w, '{');
        sfti_put_some(w, "model_id", best->model_id);
        sfti_put_some(w, "version_id", best->version_id);
        sfti_put_text(w, "air", best->air);
        put_address(w, best->model_id, best->version_id);
        sfti_put_text(w, "source", best->source);
        sfti_put_uint(w, "trust", (uint64_t)(best->trust > 0 ? best->trust : 0));
        put_matches(w, match_of(info, best->source));
        sfti_put_text(w, "published_at", best->published_at);
        put_permissions(w, info);
        sfti_json_close(w, '}');
    } else {
        sfti_json_null(w);
    }
    put_links(w, info);
}

/* ── Where it comes from ── */

static void put_merge_source(sfti_json_writer *w, const sfti_merge_source *one) {
    sfti_json_open(w, '{');
    sfti_put_text(w, "name", one->name);
    sfti_put_text(w, "sha256", one->sha256);
    sfti_put_text(w, "autov1", one->autov1);
    put_number_text(w, "weight", one->weight);
    sfti_json_close(w, '}');
}

static void put_merge(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "merge");
    if (!info->has_merge && info->merge_sources.count == 0) {
        sfti_json_null(w);
        return;
    }
    sfti_json_open(w, '{');
    sfti_put_text(w, "tool", info->merge_tool);
    sfti_put_text(w, "method", info->merge_method);
    sfti_put_json(w, "recipe", info->merge_recipe);
    sfti_json_key(w, "sources");
    sfti_json_open(w, '[');
    for (const sfti_merge_source *one = info->merge_sources.first; one; one = one->next)
        put_merge_source(w, one);
    sfti_json_close(w, ']');
    sfti_json_close(w, '}');
}

static void put_provenance(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "provenance");
    if (!info->has_provenance && !info->has_workflow && !info->has_prompt_graph
        && info->loaders.count == 0) {
        sfti_json_null(w);
        return;
    }
    sfti_json_open(w, '{');
    sfti_put_bool(w, "workflow", info->has_workflow);
    sfti_put_bool(w, "prompt", info->has_prompt_graph);
    sfti_json_key(w, "loaders");
    sfti_json_open(w, '[');
    for (const sfti_loader *one = info->loaders.first; one; one = one->next) {
        sfti_json_open(w, '{');
        sfti_put_text(w, "type", one->type);
        sfti_put_text(w, "name", one->name);
        put_number_text(w, "strength_model", one->strength_model);
        put_number_text(w, "strength_clip", one->strength_clip);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_close(w, '}');
}

void sfti_render_origin(sfti_json_writer *w, const sft_info *info) {
    put_merge(w, info);
    put_provenance(w, info);
}

/* ── Hashes ── */

static const sfti_claim *claim_of(const sft_info *info, const char *algo, bool sidecar) {
    for (const sfti_claim *one = info->claims.first; one; one = one->next)
        if (strcmp(one->algo, algo) == 0
            && (!sidecar || sfti_starts_with(one->source, "sidecar:")))
            return one;
    return NULL;
}

/* The digest of that name in the JSON object of computed ones; empty if it is not there. */
static sft_span digest_of(sft_span computed, const char *algo) {
    sfti_json json;
    sfti_json_begin(&json, computed.data, computed.len);
    if (computed.len == 0 || sfti_json_next(&json) != SFTI_JSON_OBJECT)
        return (sft_span){ "", 0 };
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        bool wanted = sft_span_equal(json.text, sft_span_cstr(algo));
        if (sfti_json_next(&json) == SFTI_JSON_STRING && wanted) return json.text;
        sfti_json_skip(&json);
    }
    return (sft_span){ "", 0 };
}

static void put_recorded(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "recorded");
    sfti_json_open(w, '[');
    for (const sfti_claim *one = info->claims.first; one; one = one->next) {
        sfti_json_open(w, '{');
        sfti_put_cstr(w, "algo", one->algo);
        sfti_put_text(w, "value", one->value);
        sfti_put_text(w, "source", one->source);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void put_mismatches(sfti_json_writer *w, const sft_info *info, sft_span computed) {
    sfti_json_key(w, "mismatches");
    sfti_json_open(w, '[');
    for (const sfti_claim *one = info->claims.first; one; one = one->next) {
        sft_span digest = digest_of(computed, one->algo);
        if (digest.len == 0 || sft_span_equal(digest, one->value)) continue;
        if (strcmp(one->algo, "crc32_civitai") == 0 && sfti_same_crc(digest, one->value)) continue;
        sfti_json_open(w, '{');
        sfti_put_cstr(w, "algo", one->algo);
        sfti_put_text(w, "recorded", one->value);
        sfti_put_text(w, "computed", digest);
        sfti_put_text(w, "source", one->source);
        sfti_put_cstr(w, "known", one->known);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

/* What CivitAI knows the file by: its SHA-256, else the hash that survives new metadata. */
static sft_span lookup_hash(const sft_info *info, sft_span computed) {
    const sfti_claim *claim;
    sft_span digest = digest_of(computed, "sha256");
    if (digest.len > 0) return digest;
    if ((claim = claim_of(info, "sha256", true)) != NULL) return claim->value;
    digest = digest_of(computed, "autov3");
    if (digest.len > 0) return digest;
    if ((claim = claim_of(info, "autov3", false)) != NULL) return claim->value;
    claim = claim_of(info, "sshs_model", false);
    if (claim && !claim->known) return (sft_span){ claim->value.data, 12 };
    return digest;
}

void sfti_render_hashes(sfti_json_writer *w, const sft_info *info, sft_span computed) {
    char url[128];
    sft_span hash = lookup_hash(info, computed);
    size_t len = put_word(url, "https://civitai.com/api/v1/model-versions/by-hash/");
    sfti_json_key(w, "hashes");
    sfti_json_open(w, '{');
    put_recorded(w, info);
    sfti_json_key(w, "computed");
    sfti_json_raw(w, computed.len > 0 ? computed : sft_span_cstr("{}"));
    put_mismatches(w, info, computed);
    if (hash.len > 0 && hash.len < sizeof url - len) {
        memcpy(url + len, hash.data, hash.len);
        sfti_put_text(w, "lookup_url", (sft_span){ url, len + hash.len });
    } else {
        sfti_put_cstr(w, "lookup_url", NULL);
    }
    sfti_json_close(w, '}');
}

/* ── Files beside, privacy, conflicts ── */

static void put_span_path(sfti_json_writer *w, sft_span path) {
    sfti_put_text(w, "path", path);
}

static void put_previews(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "previews");
    sfti_json_open(w, '[');
    for (const sfti_preview *one = info->previews.first; one; one = one->next) {
        sfti_json_open(w, '{');
        put_span_path(w, one->path);
        sfti_put_text(w, "source", one->source);
        sfti_put_cstr(w, "media_type", one->media_type);
        sfti_put_uint(w, "bytes", one->bytes);
        sfti_put_some(w, "width", one->width);
        sfti_put_some(w, "height", one->height);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void put_sidecars(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "sidecars");
    sfti_json_open(w, '[');
    for (const sfti_sidecar *one = info->sidecars.first; one; one = one->next) {
        sfti_json_open(w, '{');
        put_span_path(w, one->path);
        sfti_put_cstr(w, "kind", one->kind);
        sfti_put_cstr(w, "match", one->match);
        sfti_put_text(w, "error", one->error);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void put_privacy(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "privacy");
    sfti_json_open(w, '[');
    for (const sfti_private *one = info->privates.first; one; one = one->next) {
        sfti_json_open(w, '{');
        sfti_json_key(w, "key");
        sfti_json_span(w, one->key);
        sfti_put_cstr(w, "what", one->what);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void put_conflicts(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "conflicts");
    sfti_json_open(w, '[');
    for (const sfti_conflict *one = info->conflicts.first; one; one = one->next) {
        sfti_json_open(w, '{');
        sfti_put_cstr(w, "field", one->field);
        sfti_json_key(w, "candidates");
        sfti_json_open(w, '[');
        for (const sfti_fact *fact = one->facts; fact; fact = fact->next) {
            sfti_json_open(w, '{');
            sfti_put_candidate(w, fact);
            sfti_json_close(w, '}');
        }
        sfti_json_close(w, ']');
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

void sfti_render_beside(sfti_json_writer *w, const sft_info *info) {
    put_previews(w, info);
    put_sidecars(w, info);
    put_privacy(w, info);
    put_conflicts(w, info);
}
