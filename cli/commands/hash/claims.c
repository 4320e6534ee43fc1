/* hash: what servers claim of files behind URLs. */
#include "commands/hash/hash.h"

#include "base/files.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/remote.h"

#include <string.h>

#define AUTOV2_DIGITS 10

static void show_claims(cli *c, const char *path, uint32_t algos, bool is_all) {
    sft_error err = SFT_ERROR_INIT;
    sft_remote_claim claim;
    sft_source source;
    /* a listing may have told it already; else the first request for the file does */
    if (!cli_remote_claim(c, path, &claim) || !*claim.sha256) {
        if (sft_source_path(path, &c->open, &source, &err)) {
            cli_fail_input(c, path, &err);
            return;
        }
        sft_source_close(&source);
        if (!cli_remote_claim(c, path, &claim)) memset(&claim, 0, sizeof claim);
    }
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++) {
        sft_hash_algo algo = (sft_hash_algo)i;
        bool known = *claim.sha256 && (algo == SFT_HASH_SHA256 || algo == SFT_HASH_AUTOV2);
        if (!(algos & SFT_HASH_BIT(i))) continue;
        if (known && !cli_is_json(c)) {
            char digest[SFT_HASH_TEXT_SIZE];
            memcpy(digest, claim.sha256, sizeof claim.sha256);
            if (algo == SFT_HASH_AUTOV2) digest[AUTOV2_DIGITS] = '\0';
            cli_sum_line(c, path, algo, digest, !cli_is_one_algo(algos));
        } else if (!known && (!is_all || algo == SFT_HASH_SHA256)) {
            sfti_fail(&err, SFT_NOT_FOUND, "no %s: the server claims none", sft_hash_name(algo));
            cli_hint(&err, CLI_HINT_URL_READ);
            cli_status(c, CLI_NO);
            cli_warn(c, path, &err);
        }
    }
    if (!cli_is_json(c)) return;
    /* nothing is computed; `remote` has the claim */
    sft_hash_result result = { .path = path, .hashes = SFT_HASHES_INIT(algos) };
    result.bytes = claim.bytes;
    sft_sink sink = cli_result_begin(c);
    cli_result_end(c, path, sft_hash_json(&result, path, NULL, 0, &sink, &err), &err);
}

/* What every file of a model claims. */
static sft_code show_shards(cli *c, const char *path, uint32_t algos, bool is_all,
                            sft_error *err) {
    sft_set_options options = cli_set_options(c);
    sfti_arena arena = { .alloc = c->alloc };
    sft_index *index = NULL;
    sft_code code = sft_index_open(path, &options, &index, err);
    if (code) return code;
    size_t count = sft_index_shard_count(index);
    sft_span folder = sft_span_cstr(sft_index_folder(index));
    const char **paths = sfti_arena_array(&arena, count, sizeof *paths);
    if (!paths) code = sfti_fail_memory(err, count * sizeof *paths);
    for (size_t i = 0; !code && i < count; i++) {
        paths[i] = cli_join_path(&arena, folder, sft_index_shard_at(index, i));
        if (!paths[i]) code = sfti_fail_memory(err, folder.len);
    }
    if (!code) sfti_files_expect(c->open.files, paths, count, folder.data);
    for (size_t i = 0; !code && i < count && !cli_is_over(c); i++)
        show_claims(c, paths[i], algos, is_all);
    sft_index_close(index);
    sfti_arena_free(&arena);
    return code;
}

void cli_hash_claims(cli *c, const cli_input *input, uint32_t algos, bool is_all) {
    sft_error err = SFT_ERROR_INIT;
    if (input->kind != CLI_INDEX) show_claims(c, input->path, algos, is_all);
    else if (show_shards(c, input->path, algos, is_all, &err)) cli_fail_input(c, input->path, &err);
}
