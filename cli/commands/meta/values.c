/* meta: what it reads: pairs of a model, pairs from JSON, pictures. */
#include "commands/meta/meta.h"

#include "keys/digest_keys.h"
#include "safetensors_info.h"
#include "support/cli.h"
#include "support/edit.h"
#include "support/files.h"
#include "support/raw.h"
#include "support/values.h"
#include "support/words.h"

#include <string.h>

#define JSON_FILE_MOST ((uint64_t)1 << 30)
#define PICTURE_MOST ((uint64_t)16 << 20)

/* ── Pairs of a model ── */

static sft_code read_file_pairs(meta_pairs *p, sft_error *err) {
    const sft_file *file = sft_set_shard_at(p->set, 0);
    size_t shards = sft_set_shard_count(p->set), most = 0;
    for (size_t s = 0; s < shards; s++)
        most += sft_file_metadata_count(sft_set_shard_at(p->set, s));
    if (shards == 1) {
        p->count = most;
        return SFT_OK;
    }
    p->items = sfti_arena_array(&p->arena, most, sizeof *p->items);
    if (!p->items) return sfti_fail_memory(err, most);
    for (size_t s = 0; s < shards; s++) {
        file = sft_set_shard_at(p->set, s);
        for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
            sft_pair pair = sft_file_metadata_at(file, i);
            bool known = false;
            sft_span value;
            for (size_t before = 0; before < s && !known; before++)
                known = sft_file_metadata_get(sft_set_shard_at(p->set, before), pair.key, &value);
            if (!known) p->items[p->count++] = pair;
        }
    }
    return SFT_OK;
}

/* Keys are decoded, values stay text. */
static sft_code read_index_pairs(meta_pairs *p, sft_error *err) {
    sft_span text = sft_set_index_metadata(p->set);
    cli_raw raw;
    size_t most = 0;
    if (text.len == 0) return SFT_OK;
    for (cli_raw_begin(&raw, text); cli_raw_next(&raw);) most++;
    p->items = sfti_arena_array(&p->arena, most, sizeof *p->items);
    if (!p->items) return sfti_fail_memory(err, most);
    for (cli_raw_begin(&raw, text); cli_raw_next(&raw);) {
        char *key = sfti_arena_take(&p->arena, raw.key.len + 1);
        if (!key) return sfti_fail_memory(err, raw.key.len);
        size_t len = sfti_json_decode(raw.key, key);
        p->items[p->count++] = (sft_pair){ { key, len }, raw.value };
    }
    return SFT_OK;
}

sft_code meta_read(cli *c, const cli_input *input, meta_pairs *out, sft_error *err) {
    memset(out, 0, sizeof *out);
    out->arena.alloc = c->alloc;
    sft_code code = cli_open_model(c, input, &out->set, err);
    if (code) return code;
    out->is_json = sft_set_index_path(out->set) != NULL && !c->set.each_shard;
    return out->is_json ? read_index_pairs(out, err) : read_file_pairs(out, err);
}

sft_pair meta_pair_at(const meta_pairs *pairs, size_t i) {
    return pairs->items ? pairs->items[i]
                        : sft_file_metadata_at(sft_set_shard_at(pairs->set, 0), i);
}

sft_span meta_value(meta_pairs *pairs, size_t i) {
    sft_span value = meta_pair_at(pairs, i).value;
    if (!pairs->is_json || value.data[0] != '"') return value;
    sft_span inside = { value.data + 1, value.len - 2 };
    char *text = sfti_arena_take(&pairs->arena, inside.len + 1);
    return text ? (sft_span){ text, sfti_json_decode(inside, text) } : value;
}

void meta_free(meta_pairs *pairs) {
    sfti_arena_free(&pairs->arena);
    sft_set_close(pairs->set);
    pairs->set = NULL;
}

/* ── Pairs of a JSON object ── */

static sft_code json_pairs_of(sft_span text, sfti_arena *arena, meta_json *out,
                              sft_error *err) {
    cli_raw raw;
    size_t most = 0;
    for (cli_raw_begin(&raw, text); cli_raw_next(&raw);) most++;
    out->pairs = sfti_arena_array(arena, most, sizeof *out->pairs);
    if (!out->pairs) return sfti_fail_memory(err, most);
    for (cli_raw_begin(&raw, text); cli_raw_next(&raw);) {
        sft_pair *pair = &out->pairs[out->count];
        char *key = sfti_arena_take(arena, raw.key.len + 1);
        if (*raw.value.data != '"' && !out->other.data) out->other = raw.value;
        if (!key) return sfti_fail_memory(err, raw.key.len);
        pair->key = (sft_span){ key, sfti_json_decode(raw.key, key) };
        pair->value = (sft_span){ NULL, 0 };
        out->count++;
        if (*raw.value.data == 'n') continue; /* null */
        char *copy = sfti_arena_take(arena, raw.value.len + 1);
        if (!copy) return sfti_fail_memory(err, raw.value.len);
        sft_span inside = { raw.value.data + 1, raw.value.len - 2 };
        bool string = *raw.value.data == '"';
        if (!string) memcpy(copy, raw.value.data, raw.value.len);
        pair->value = (sft_span){ copy, string ? sfti_json_decode(inside, copy) : raw.value.len };
    }
    return SFT_OK;
}

sft_code meta_json_text(sft_span text, sfti_arena *arena, meta_json *out, sft_error *err) {
    while (text.len && memchr(" \t\r\n", *text.data, 4)) text.data++, text.len--;
    if (cli_raw_check(text) && *text.data == '{') return json_pairs_of(text, arena, out, err);
    return cli_usage_error(err, "expected a JSON object, found %s",
                           cli_raw_check(text) ? "another value" : "invalid JSON");
}

sft_code meta_json_read(cli *c, const char *path, sfti_arena *arena, meta_json *out,
                        sft_error *err) {
    sft_code code = cli_read_file(c, path, JSON_FILE_MOST, &out->text, err);
    if (code) return code;
    return meta_json_text(cli_read_text(&out->text), arena, out, err);
}

/* ── Pictures ── */

/* Pictures that programs show as a thumbnail. */
sft_code meta_thumbnail(cli *c, const char *path, sfti_arena *arena, sft_pair *out,
                        sft_error *err) {
    static const char *const known[] = { "image/jpeg", "image/png", "image/webp", "image/gif" };
    sft_buffer bytes;
    const char *type = NULL;
    bool fine = false;
    sft_code code = cli_read_file(c, path, PICTURE_MOST, &bytes, err);
    sft_span content = { bytes.data, bytes.len };
    out->key = sft_span_cstr("modelspec.thumbnail");
    if (!code) type = sft_info_image_type(content, NULL, NULL);
    for (size_t i = 0; type && i < sizeof known / sizeof *known; i++)
        fine = fine || strcmp(type, known[i]) == 0;
    if (!code && !fine)
        code = cli_usage_error(err,
                               "expected a JPEG, PNG, WebP or GIF picture, found something else");
    if (!code) out->value = cli_data_url(type, content, arena);
    if (!code && !out->value.data) code = sfti_fail_memory(err, bytes.len);
    sft_buffer_free(&bytes);
    return code;
}

/* ── Scrubbing ── */

bool meta_scrub_pair(const cli *c, sft_span key, sft_span value, sfti_arena *arena,
                     cli_scrubbed *out) {
    *out = (cli_scrubbed){ NULL, { NULL, 0 } };
    return cli_matches_any(&c->set.keep, key) || sfti_is_reading_key(key)
        || cli_scrub(key, value, arena, out);
}

sft_code meta_sha256(cli *c, const char *path, char out[SFT_HASH_TEXT_SIZE], sft_error *err) {
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    sft_hashes hashes;
    cli_progress progress;
    options.open = &c->open;
    sft_job job = cli_progress_begin(&progress, c, path);
    sft_code code =
        sft_hash_path(path, SFT_HASH_BIT(SFT_HASH_SHA256), &options, &hashes, &job, err);
    cli_progress_end(&progress);
    if (!code) memcpy(out, sft_hashes_get(&hashes, SFT_HASH_SHA256), 65);
    return code;
}
