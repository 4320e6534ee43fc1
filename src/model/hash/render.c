/* The result object of hash. Tests: test_hash.c. */
#include "base/result.h"
#include "hash/hash.h"
#include "safetensors_report.h"

static void put_computed(sfti_json_writer *w, const sft_hashes *hashes) {
    sfti_json_put_open(w, "computed", '{');
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++) {
        if (!(hashes->asked & SFT_HASH_BIT(i))) continue;
        sfti_json_put_cstr(w, sft_hash_name((sft_hash_algo)i),
                           sft_hashes_get(hashes, (sft_hash_algo)i));
    }
    sfti_json_close(w, '}');
}

sft_code sft_hash_json(const sft_hash_result *result, const char *path,
                       const sft_hash_claim *claims, size_t claim_count, sft_sink *sink,
                       sft_error *err) {
    sfti_json_writer w;
    if (result->error) return sft_error_json(result->error, path, sink, err);
    sfti_json_write(&w, sink, 0, err);
    sfti_result_begin(&w, path, true);
    sfti_json_put_known(&w, "bytes", result->bytes);
    sfti_json_put_bool(&w, "remembered", result->is_remembered);
    put_computed(&w, &result->hashes);
    sfti_result_error(&w, "model_error", result->model_error);
    if (claims) sfti_json_put_open(&w, "verified", '[');
    for (size_t i = 0; claims && i < claim_count; i++) {
        sfti_json_open(&w, '{');
        sfti_json_put_cstr(&w, "algo", sft_hash_name(claims[i].algo));
        sfti_json_key(&w, "claimed");
        sfti_json_span(&w, claims[i].text);
        sfti_json_put_cstr(&w, "computed", sft_hashes_get(&result->hashes, claims[i].algo));
        sfti_json_put_bool(&w, "agrees", sft_hash_agrees(&result->hashes, &claims[i]));
        sfti_json_close(&w, '}');
    }
    if (claims) sfti_json_close(&w, ']');
    if (result->shard_count > 0) sfti_json_put_open(&w, "shards", '[');
    for (size_t i = 0; i < result->shard_count; i++) {
        sfti_json_open(&w, '{');
        sfti_json_path(&w, result->shard_paths[i]);
        put_computed(&w, &result->shards[i]);
        sfti_json_close(&w, '}');
    }
    if (result->shard_count > 0) sfti_json_close(&w, ']');
    return sfti_result_end(&w);
}
