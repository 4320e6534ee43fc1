/* The header of a merge: how it was made, so that it can be made again. Tests: tests/merge. */
#include "merge/work.h"

#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"
#include "keys/digest_keys.h"
#include "os/path.h"
#include "safetensors_io.h"

#include <string.h>

#define ANCESTORS_MOST 256

sft_span sfti_merge_called(const char *path) {
    sft_span name = sfti_path_name(sft_span_cstr(path));
    sft_span above = sfti_path_name(sfti_path_above(sft_span_cstr(path)));
    bool whole = sfti_is(name, "model.safetensors")
              || sfti_is(name, "model.safetensors.index.json");
    return whole && above.len > 0 ? above : name;
}

sft_code sfti_merge_name(sft_span name, const sft_span *names, size_t count, sfti_arena *arena,
                         sft_span *out, sft_error *err) {
    *out = name;
    if (sfti_utf8_check(name.data, name.len) != name.len)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a model whose name is in UTF-8, for the "
                         "result's header has it, found other bytes");
    for (size_t k = 0, again = 1; k < count; k++) {
        if (!sft_span_equal(names[k], *out)) continue;
        char digits[SFTI_UINT_SIZE + 3] = " (";
        size_t len = sfti_uint_text(++again, 1, digits + 2) + 2;
        digits[len++] = ')';
        const char *other = sfti_arena_join(arena, name, (sft_span){ digits, len });
        if (!other) return sfti_fail_memory(err, name.len);
        *out = sft_span_cstr(other);
        k = SIZE_MAX; /* from the first on */
    }
    return SFT_OK;
}

static sft_span metadata_of(const sft_set *set, const char *key) {
    sft_span value = { NULL, 0 };
    (void)sft_file_metadata_get(sft_set_shard_at(set, 0), sft_span_cstr(key), &value);
    return value;
}

static bool has_origin(const sft_span *keys, size_t count, sft_span key) {
    size_t i = 0;
    while (i < count && !sft_span_equal(keys[i], key)) i++;
    return i < count;
}

static bool is_object(sft_span text) {
    sfti_json json;
    if (sfti_utf8_check(text.data, text.len) != text.len) return false;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return false;
    sfti_json_skip(&json);
    return json.type != SFTI_JSON_ERROR && sfti_json_next(&json) == SFTI_JSON_END;
}

/* As webui has them: each model by its SHA-256, with the recipes that it was made by, if it was;
 * then those that these were made of, from their headers. */
static sft_code write_ancestors(const sfti_merge_recipe *recipe, const sfti_merge_origin *origins,
                                sfti_arena *arena, sft_buffer *out, sft_error *err) {
    sft_sink sink = sft_sink_memory(out);
    size_t direct = recipe->count, count = 0;
    sft_span *keys = sfti_arena_array(arena, direct + ANCESTORS_MOST, sizeof *keys);
    sfti_json_writer w;
    const char *key;
    if (!keys) return sfti_fail_memory(err, ANCESTORS_MOST * sizeof *keys);
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    for (size_t i = 0; i < direct; i++) {
        sft_span made = metadata_of(origins[i].stored, SFTI_MERGE_RECIPE_KEY);
        if (!recipe->sha256[i].len || has_origin(keys, count, recipe->sha256[i])) continue;
        keys[count++] = recipe->sha256[i];
        sfti_json_key_span(&w, recipe->sha256[i]);
        sfti_json_open(&w, '{');
        sfti_json_put_text(&w, "name", origins[i].name);
        sfti_json_put_cstr(&w, "legacy_hash", origins[i].autov1);
        if (made.data) sfti_json_key(&w, SFTI_MERGE_RECIPE_KEY);
        if (made.data) sfti_json_text(&w, made);
        for (size_t k = 0; (key = sfti_recipe_key_at(k, true)) != NULL; k++) {
            made = metadata_of(origins[i].stored, key);
            if (made.data) sfti_json_key(&w, key);
            if (made.data) sfti_json_text(&w, made);
        }
        sfti_json_close(&w, '}');
    }
    for (size_t i = 0; i < direct; i++) {
        sft_span made = metadata_of(origins[i].stored, SFTI_MERGE_MODELS_KEY);
        sfti_json json;
        if (!made.data || !is_object(made)) continue;
        sfti_json_begin(&json, made.data, made.len);
        sfti_json_next(&json);
        while (sfti_json_next(&json) == SFTI_JSON_KEY) {
            sft_span digest = sfti_json_string(&json, arena);
            sfti_json_next(&json);
            const char *start = json.begin + json.start;
            sfti_json_skip(&json);
            if (!digest.data) return sfti_fail_memory(err, made.len);
            if (count == direct + ANCESTORS_MOST || has_origin(keys, count, digest)) continue;
            keys[count++] = digest;
            sfti_json_key_span(&w, digest);
            sfti_json_text(&w, (sft_span){ start, (size_t)(json.at - start) });
        }
    }
    sfti_json_close(&w, '}');
    return sfti_json_done(&w);
}

/* "type" first, then the recipe's own members. */
static sft_code write_made(const sfti_merge_recipe *recipe, const sfti_merge_origin *origins,
                           sfti_merge_record *out, sft_error *err) {
    static const char type[] = "{\"type\":\"libsafetensors\",";
    sft_span names[SFTI_MERGE_MODELS];
    sft_sink sink = sft_sink_memory(&out->texts[0]);
    sfti_json_writer w;
    for (size_t i = 0; i < recipe->count; i++) names[i] = origins[i].name;
    sfti_json_write(&w, &sink, 0, err);
    sfti_merge_recipe_write(recipe, names, &w);
    sft_code code = sfti_json_done(&w);
    if (code) return code;
    const sft_buffer *record = &out->texts[0];
    bool fine = sfti_buffer_put(&out->texts[1], type, sizeof type - 1)
             && sfti_buffer_put(&out->texts[1], record->data + 1, record->len - 1);
    for (size_t i = 0; fine && i < recipe->count; i++)
        fine = (i == 0 || sfti_buffer_put(&out->texts[3], ", ", 2))
            && sfti_buffer_put(&out->texts[3], names[i].data, names[i].len);
    return fine ? SFT_OK : sfti_fail_memory(err, record->len);
}

sft_code sfti_merge_record_make(const sfti_merge_recipe *recipe, const sfti_merge_origin *origins,
                                sfti_arena *arena, sfti_merge_record *out, sft_error *err) {
    static const char *const keys[] = { SFTI_MERGE_FROM_KEY, SFTI_MERGE_MODELS_KEY,
                                        SFTI_MERGE_RECIPE_KEY, SFTI_MERGE_KEY };
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < SFTI_MERGE_PAIRS; i++) out->texts[i].alloc = arena->alloc;
    sft_code code = write_made(recipe, origins, out, err);
    if (!code) code = write_ancestors(recipe, origins, arena, &out->texts[2], err);
    for (size_t i = 0; i < SFTI_MERGE_PAIRS; i++) {
        const sft_buffer *text = &out->texts[SFTI_MERGE_PAIRS - 1 - i];
        out->pairs[i] = (sft_pair){ sft_span_cstr(keys[i]), { text->data, text->len } };
    }
    return code;
}

void sfti_merge_record_free(sfti_merge_record *record) {
    for (size_t i = 0; i < SFTI_MERGE_PAIRS; i++) sft_buffer_free(&record->texts[i]);
}

sft_code sfti_merge_record_put(const sfti_merge_record *before, const sfti_merge_record *now,
                               const sft_part *parts, size_t count, const sft_pair *pairs,
                               size_t pair_count, const sft_plan_options *options,
                               const sft_sink *sink, sfti_arena *arena, sft_error *err) {
    sft_spec *specs = sfti_arena_array(arena, count, sizeof *specs);
    sft_plan *plan = NULL;
    for (size_t i = 0; i < SFTI_MERGE_PAIRS; i++)
        if (before->texts[i].len != now->texts[i].len)
            return sfti_fail(err, SFT_IO_READ, "expected models that stay as they are while they "
                             "are merged, found others: nothing was written");
    if (!specs) return sfti_fail_memory(err, count * sizeof *specs);
    for (size_t i = 0; i < count; i++) specs[i] = parts[i].spec;
    sft_code code = sft_plan_new(specs, count, pairs, pair_count, options, &plan, err);
    if (code) return code;
    sft_span head = sft_plan_head(plan);
    code = sft_sink_write(sink, 0, head.data, head.len, err);
    sft_plan_free(plan);
    return code;
}
