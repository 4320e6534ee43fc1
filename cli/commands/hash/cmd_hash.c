/* hash: compute digests of models, and compare them with a list. Tests: tests/cli/hash. */
#include "commands/commands.h"

#include "base/files.h"
#include "base/portable.h"
#include "commands/hash/hash.h"
#include "os/io.h"
#include "os/path.h"
#include "support/files.h"
#include "support/hash.h"
#include "support/hints.h"
#include "support/remote.h"
#include "safetensors_index.h"

#include <inttypes.h>
#include <string.h>

#define STDIN_PIECE ((size_t)256 << 10)
#define AUTOV2_DIGITS 10
#define INDEX_MOST SFT_MAX_HEADER_BYTES

typedef struct hash_run {
    cli *c;
    cli_hash_run hashing;
    uint32_t algos;
    bool is_all;   /* asked for by "all": what a file cannot have is not missed */
    const cli_sums *sums;
    size_t offset; /* of this batch among the paths of sums */
    uint64_t differ;
} hash_run;

/* ── Digests that do not exist ── */

static const char *const no_digest[SFT_HASH_COUNT] = {
    [SFT_HASH_AUTOV1_CIVITAI] = "CivitAI has none for files under 2 MiB",
    [SFT_HASH_SSHS_LEGACY] = "the header without other metadata would pass 1 MiB, or the "
                             "tensors are not in the order of the official writer",
};

/* ── Results ── */

static void print_sums(const hash_run *run, const char *path, const sft_hashes *hashes) {
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++) {
        const char *digest = sft_hashes_get(hashes, (sft_hash_algo)i);
        if (digest)
            cli_sum_line(run->c, path, (sft_hash_algo)i, digest, !cli_is_one_algo(run->algos));
    }
}

static void json_result(cli *c, const char *path, const sft_hash_result *result,
                        const sft_hash_claim *claims, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink = cli_result_begin(c);
    cli_result_end(c, path, sft_hash_json(result, path, claims, count, &sink, &err), &err);
}

/* The digests that were asked for and are not there; those of JSON are null, and `model_error` says
 * why. */
static void tell_missing(const hash_run *run, const char *path, const sft_hash_result *result) {
    cli *c = run->c;
    bool is_text = !cli_is_json(c);
    uint32_t missing = sft_hashes_asked(&result->hashes) & ~sft_hashes_known(&result->hashes);
    if (result->shard_count > 0) missing &= SFT_HASH_BIT(SFT_HASH_CONTENT);
    if (run->is_all) missing = 0;
    if (result->model_error && missing & SFT_HASH_OF_MODEL) {
        if (is_text) cli_complain(c, path, result->model_error);
        else cli_status(c, CLI_FAILED);
        missing &= ~SFT_HASH_OF_MODEL;
    }
    if (missing) cli_status(c, CLI_NO);
    for (unsigned i = 0; is_text && i < SFT_HASH_COUNT; i++) {
        sft_error err = SFT_ERROR_INIT;
        if (!(missing & SFT_HASH_BIT(i))) continue;
        sfti_fail(&err, SFT_NOT_FOUND, "no %s: %s", sft_hash_name((sft_hash_algo)i),
                  no_digest[i] ? no_digest[i] : "not known for this file");
        cli_refuse(c, path, &err);
    }
}

static void show_result(const hash_run *run, const char *path, const sft_hash_result *result) {
    if (result->error) {
        cli_fail_input(run->c, path, result->error);
        return;
    }
    for (size_t i = 0; i < result->shard_count && !cli_is_json(run->c); i++)
        print_sums(run, result->shard_paths[i], &result->shards[i]);
    if (cli_is_json(run->c)) json_result(run->c, path, result, NULL, 0);
    else print_sums(run, path, &result->hashes);
    tell_missing(run, path, result);
}

static bool each_file(void *ctx, const sft_hash_result *result) {
    hash_run *run = ctx;
    cli_hash_run_quiet(&run->hashing);
    show_result(run, result->path, result);
    return !cli_is_over(run->c);
}

/* ── Standard input ── */

static void hash_stdin(hash_run *run) {
    sft_error err = SFT_ERROR_INIT, no_model = SFT_ERROR_INIT;
    sft_hash_result result = { .path = "-" };
    sft_hasher *hasher = NULL;
    sft_code code = sft_hasher_new(run->algos, &run->c->alloc, &hasher, &err);
    char *buffer = sfti_take(&run->c->alloc, STDIN_PIECE);
    if (!code && !buffer) code = sfti_fail_memory(&err, STDIN_PIECE);
    for (size_t got = 1; !code && got > 0;) {
        int error = sfti_os_read(0, buffer, STDIN_PIECE, &got);
        if (error)
            code = sfti_io_fail(&err, sfti_os_stop_signal() ? SFT_CANCELLED : SFT_IO_READ, error,
                                "read standard input");
        else sft_hasher_update(hasher, buffer, got);
        result.bytes += error ? 0 : got;
    }
    sfti_release(&run->c->alloc, buffer, STDIN_PIECE);
    if (!code) sft_hasher_result(hasher, &result.hashes);
    if (code) result.error = &err;
    if (run->algos & SFT_HASH_OF_MODEL) {
        sfti_fail(&no_model, SFT_IO_NOT_FILE, "expected a file, found standard input");
        result.model_error = &no_model;
    }
    show_result(run, "-", &result);
    sft_hasher_free(hasher);
}

/* ── What servers claim of files behind URLs ── */

/* The digests that the server of a remote file claims; no data is read over the network. */
static void show_claims(hash_run *run, const char *path, bool is_shard) {
    cli *c = run->c;
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
    if (claim.local) { /* nobody is asked: the cache names its files, and does not look at them */
        sft_hash_request ask = { path, run->algos };
        if (is_shard) ask.algos &= ~SFT_HASH_BIT(SFT_HASH_CONTENT);
        if (is_shard && !run->is_all && run->algos & SFT_HASH_BIT(SFT_HASH_CONTENT)) {
            sfti_fail(&err, SFT_NOT_FOUND, "no content: it is that of all shards");
            cli_hint(&err, CLI_HINT_URL_READ);
            cli_status(c, CLI_NO);
            cli_warn(c, path, &err);
        }
        if (sft_hash_paths(&ask, 1, &run->hashing.options, each_file, run, &run->hashing.job, &err))
            cli_complain(c, path, &err);
        return;
    }
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++) {
        sft_hash_algo algo = (sft_hash_algo)i;
        bool known = *claim.sha256 && (algo == SFT_HASH_SHA256 || algo == SFT_HASH_AUTOV2);
        if (!(run->algos & SFT_HASH_BIT(i))) continue;
        if (known && !cli_is_json(c)) {
            char digest[SFT_HASH_TEXT_SIZE];
            memcpy(digest, claim.sha256, sizeof claim.sha256);
            if (algo == SFT_HASH_AUTOV2) digest[AUTOV2_DIGITS] = '\0';
            cli_sum_line(c, path, algo, digest, !cli_is_one_algo(run->algos));
        } else if (!known && (!run->is_all || algo == SFT_HASH_SHA256)) {
            sfti_fail(&err, SFT_NOT_FOUND, "no %s: the server claims none", sft_hash_name(algo));
            cli_hint(&err, CLI_HINT_URL_READ);
            cli_status(c, CLI_NO);
            cli_warn(c, path, &err);
        }
    }
    if (!cli_is_json(c)) return;
    /* nothing is computed; `remote` has the claim */
    sft_hash_result result = { .path = path, .hashes = SFT_HASHES_INIT(run->algos) };
    result.bytes = claim.bytes;
    json_result(c, path, &result, NULL, 0);
}

/* What every file of a model claims. */
static void show_shards(hash_run *run, const char *path) {
    cli *c = run->c;
    sft_error err = SFT_ERROR_INIT;
    sft_set_options options = cli_set_options(c);
    sfti_arena arena = { .alloc = c->alloc };
    sft_index *index = NULL;
    sft_code code = sft_index_open(path, &options, &index, &err);
    size_t count = code ? 0 : sft_index_shard_count(index);
    sft_span folder = sft_span_cstr(code ? "" : sft_index_folder(index));
    const char **paths = sfti_arena_array(&arena, count, sizeof *paths);
    if (!code && !paths) code = sfti_fail_memory(&err, count * sizeof *paths);
    for (size_t i = 0; !code && i < count; i++) {
        paths[i] = cli_join_path(&arena, folder, sft_index_shard_at(index, i));
        if (!paths[i]) code = sfti_fail_memory(&err, folder.len);
    }
    if (!code) sfti_files_expect(c->open.files, paths, count, folder.data);
    for (size_t i = 0; !code && i < count && !cli_is_over(c); i++) show_claims(run, paths[i], true);
    sft_index_close(index);
    sfti_arena_free(&arena);
    if (code) cli_fail_input(c, path, &err);
}

/* ── Files ── */

/* Whether it is shown what a server claims, and nothing is read. */
static bool is_claimed(const hash_run *run, const cli_input *input) {
    return cli_input_is_path(input) && !run->c->set.read && cli_is_remote(run->c, input->path);
}

/* What is read of an input: of a SavedModel, which is found as a folder, the file that stands for
 * it. NULL: no memory. */
static const char *file_of(sfti_arena *arena, const cli_input *input) {
    os_info info;
    if (input->kind != CLI_FILE || sfti_os_info_path(input->path, true, &info) != 0
        || info.kind != OS_DIR)
        return input->path;
    return cli_join_path(arena, sft_span_cstr(input->path), "variables/variables.index");
}

static void hash_inputs(hash_run *run, cli_input_list *inputs) {
    sft_error err = SFT_ERROR_INIT;
    sft_hash_request *asks = sfti_arena_take(&inputs->arena, (inputs->count + 1) * sizeof *asks);
    if (!asks) {
        cli_complain_memory(run->c, inputs->count);
        return;
    }
    for (size_t i = 0; i < inputs->count && !cli_is_over(run->c);) {
        const cli_input *input = inputs->items[i];
        bool claimed = is_claimed(run, input), files = cli_input_is_path(input) && !claimed;
        size_t n = 0; /* inputs from here on that are files, up to one that is not */
        for (; files && i < inputs->count && cli_input_is_path(inputs->items[i])
               && !is_claimed(run, inputs->items[i]); i++) {
            const char *path = file_of(&inputs->arena, inputs->items[i]);
            if (!path) {
                cli_complain_memory(run->c, inputs->count);
                return;
            }
            asks[n++] = (sft_hash_request){ path, run->algos };
        }
        if (files && sft_hash_paths(asks, n, &run->hashing.options, each_file, run,
                                    &run->hashing.job, &err))
            cli_complain(run->c, NULL, &err);
        if (files) continue;
        if (claimed && input->kind == CLI_INDEX) show_shards(run, input->path);
        else if (claimed) show_claims(run, input->path, false);
        else if (input->kind == CLI_STDIN) hash_stdin(run);
        else cli_report_input(run->c, input);
        i++;
    }
}

/* ── -c: what a list says ── */

static bool each_claimed(void *ctx, const sft_hash_result *result) {
    hash_run *run = ctx;
    const cli_sums_of *of = &run->sums->paths[run->offset + result->index];
    const sft_hash_claim *claims = run->sums->claims + of->first;
    cli_hash_run_quiet(&run->hashing);
    if (result->error) {
        cli_fail_input(run->c, result->path, result->error);
        return !cli_is_over(run->c);
    }
    for (size_t i = 0; i < of->count; i++) {
        cli_out *out = &run->c->out;
        bool agrees = sft_hash_agrees(&result->hashes, &claims[i]);
        run->differ += !agrees;
        if (cli_is_json(run->c) || run->c->set.status_only) continue;
        if (agrees && run->c->set.quiet) continue;
        const char *found = sft_hashes_get(&result->hashes, claims[i].algo);
        cli_path(out, result->path, ": ");
        if (of->count > 1) cli_printf(out, "%s ", sft_hash_name(claims[i].algo));
        if (agrees) cli_text(out, "OK\n");
        if (agrees) continue;
        cli_styled(out, CLI_RED, "FAILED");
        cli_fill(out, ", expected %", claims[i].text);
        cli_printf(out, ", found %s\n", found ? found : "none");
    }
    if (cli_is_json(run->c)) json_result(run->c, result->path, result, claims, of->count);
    return !cli_is_over(run->c);
}

/* "\\host\share", "\\.\pipe\x", "\??\UNC\host": beyond this computer's files. "\\?\C:" is not. */
static bool is_beyond_drives(const char *path) {
    if (SFTI_OS_PATHS != SFTI_PATHS_WINDOWS || !sfti_is_separator(path[0])) return false;
    bool share = sfti_is_separator(path[1]), system = strncmp(path + 1, "??", 2) == 0;
    bool drive = share && path[2] == '?' && sfti_is_separator(path[3]) && path[4]
              && path[5] == ':';
    return system || (share && !drive);
}

/* A list may come from anybody: what has no end, or waits, is not read; nor is another share than
 * the list's, for Windows tells that computer who the user is. */
static void leave_out_unread(cli *c, cli_sums *sums) {
    size_t kept = 0;
    sft_span own = { c->set.sums, sfti_root_len(c->set.sums) };
    for (size_t i = 0; i < sums->path_count; i++) {
        const char *path = sums->paths[i].ask.path, *found = NULL;
        sft_error err = SFT_ERROR_INIT;
        os_info info;
        sft_span root = { path, sfti_root_len(path) };
        if (is_beyond_drives(path) && sfti_name_compare_folded(root, own) != 0)
            found = "one of a network share, or a device";
        else if (sfti_os_info_path(path, true, &info) == 0 && info.kind != OS_FILE
                 && info.kind != OS_DIR)
            found = "a pipe, device or socket";
        if (!found) {
            sums->paths[kept++] = sums->paths[i];
            continue;
        }
        sfti_fail(&err, SFT_IO_NOT_FILE, "expected a file, found %s", found);
        cli_fail_input(c, path, &err);
    }
    sums->path_count = kept;
}

/* A list of a repository names its index among the files, and means that file. */
static void verify_text(hash_run *run, const sft_hash_request *ask) {
    sft_error err = SFT_ERROR_INIT;
    sft_hash_result result = { .path = ask->path };
    sft_hasher *hasher = NULL;
    sft_buffer text;
    sft_code code = cli_read_file(run->c, ask->path, INDEX_MOST, &text, &err);
    if (!code) code = sft_hasher_new(ask->algos, &run->c->alloc, &hasher, &err);
    if (code) {
        result.error = &err;
    } else {
        sft_hasher_update(hasher, text.data, text.len);
        sft_hasher_result(hasher, &result.hashes);
        result.bytes = text.len;
    }
    (void)each_claimed(run, &result);
    sft_hasher_free(hasher);
    sft_buffer_free(&text);
}

static void verify_sums(hash_run *run, cli_sums *sums) {
    sft_error err = SFT_ERROR_INIT;
    leave_out_unread(run->c, sums);
    sft_hash_request *asks = sfti_arena_take(&sums->arena, (sums->path_count + 1) * sizeof *asks);
    sft_code code = asks ? SFT_OK : sfti_fail_memory(&err, sums->path_count);
    for (size_t i = 0; asks && i < sums->path_count; i++) asks[i] = sums->paths[i].ask;
    run->sums = sums;
    for (size_t i = 0; !code && i < sums->path_count && !cli_is_over(run->c);) {
        size_t count = 0;
        run->offset = i;
        while (i + count < sums->path_count && !sums->paths[i + count].is_text) count++;
        if (count > 0)
            code = sft_hash_paths(asks + i, count, &run->hashing.options, each_claimed, run,
                                  &run->hashing.job, &err);
        else verify_text(run, &asks[i]);
        i += count ? count : 1;
    }
    if (code) cli_complain(run->c, NULL, &err);
    if (run->differ == 0) return;
    cli_status(run->c, CLI_NO);
    if (run->c->set.status_only) return;
    cli_flush(&run->c->out);
    cli_printf(&run->c->err, "safetensors: %" PRIu64 " of %zu digest%s differ%s\n", run->differ,
               sums->claim_count, sums->claim_count == 1 ? "" : "s",
               run->differ == 1 ? "s" : "");
}

static void hash_verify(hash_run *run) {
    cli *c = run->c;
    sft_error err = SFT_ERROR_INIT;
    cli_sums sums;
    unsigned algo = SFT_HASH_COUNT;
    if (c->set.algo.count > 0)
        for (algo = 0; !(run->algos >> algo & 1);) algo++;
    if (cli_sums_read(c, c->set.sums, algo, &sums, &err))
        cli_fail_input(c, c->set.sums, &err);
    else verify_sums(run, &sums);
    if (sums.bad_count > 0 && sums.claim_count > 0) {
        /* a warning, as sha256sum has it: what the other lines say decides the exit status */
        int status = c->status;
        cli_flush(&c->out);
        (void)cli_sums_bad(&sums, &err);
        cli_fail_input(c, c->set.sums, &err);
        c->status = status;
    }
    cli_sums_free(&sums);
}

/* ── The command ── */

static void run_hash(cli *c, char **operands, size_t count) {
    hash_run run = { .c = c, .algos = c->set.algo.count > 0 ? 0 : SFT_HASH_BIT(SFT_HASH_SHA256) };
    sft_error err = SFT_ERROR_INIT;
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < c->set.algo.count; i++) {
        uint32_t more = 0;
        code = sft_hash_parse(sft_span_cstr(c->set.algo.items[i]), &more, &err);
        run.algos |= more;
    }
    const cli_settings *set = &c->set;
    const char *found = NULL;
    if (!set->sums && count == 0) found = "expected PATH..., found none";
    if (!set->sums && (set->quiet || set->status_only))
        found = "expected -c FILE with --quiet and --status, found none";
    if (set->sums && count > 0)
        found = "expected no PATH with -c FILE, whose lines name them, found one";
    if (set->sums && set->algo.count > 0 && !cli_is_one_algo(run.algos))
        found = "expected one algorithm for -c, that of a bare HEX, found several";
    if (!code && found) code = cli_usage_error(&err, "%s", found);
    if (code) {
        cli_fail_usage(c, &err);
        return;
    }
    run.is_all = run.algos == SFT_HASH_ALL;
    if (run.algos & SFT_HASH_BIT(SFT_HASH_CONTENT)) c->others = CLI_ELSE_OTHERS;
    cli_hash_run_begin(&run.hashing, c, count == 1 ? operands[0] : "hash");
    if (run.hashing.usable && c->set.sums) {
        hash_verify(&run);
    } else if (run.hashing.usable) {
        cli_input_list inputs;
        if (cli_list_inputs(c, operands, count, &inputs, &err)) cli_complain(c, NULL, &err);
        else hash_inputs(&run, &inputs);
        cli_input_list_free(&inputs);
    }
    cli_hash_run_end(&run.hashing);
}

const cli_command cli_hash_command = {
    "hash", "PATH...", "compute digests: SHA-256, AutoV1 to AutoV3, BLAKE3 and so on",
    "Computes all digests in one pass over the bytes, several files at a time. One algorithm is "
    "printed in the format of sha256sum, several as ALGO (PATH) = HEX. sha256, autov1, autov2, "
    "crc32 and blake3 apply to any file; autov3 and sshs_model cover the data of a model, which "
    "metadata does not change; sshs_legacy also depends on the metadata keys that begin with ss_; "
    "content covers names, shapes and values, whatever their order or the number of files, but "
    "not other names of a tensor, which the metadata records, nor what a file in another format "
    "holds beyond the tensors that are read.\n"
    "For a model with an index of safetensors files, content covers the whole model and the other "
    "digests are those of its files. With content, models in other formats count in a folder "
    "without any in safetensors. - is standard input.\n"
    "Of a URL, sha256 and autov2 are shown as the server claims them, and no data is read; "
    "--read reads the whole file and computes.\n"
    "With -c, the lines of a file are compared. A line for an index is compared with the index "
    "file itself, except for content. A bare HEX is of the kind that --algo names; without --algo "
    "it is sha256, autov3 or autov2, by its 64, 12 or 10 digits. Unreadable lines are reported "
    "and change the exit status only if there are no others. Files are read even if --cache knows "
    "them.",
    CLI_EXAMPLES(
        { "safetensors hash model.safetensors", "the output of sha256sum" },
        { "safetensors hash --algo sha256,autov3 *.safetensors", "the digests CivitAI uses" },
        { "safetensors hash --algo content model.safetensors.index.json",
          "independent of how the model is split into files" },
        { "safetensors hash -r ~/models > sums; safetensors hash -c sums",
          "has anything changed?" },
        { "safetensors hash --algo all --json --cache ~/.hashes ~/models",
          "all digests, cached for the next run" }),
    { CLI_OPTIONS(
        CLI_TAKES_MANY(0, "algo", "LIST", algo,
          "sha256 (the default), autov1, autov1_civitai, autov2, autov3, sshs_model, sshs_legacy, "
          "crc32, crc32_civitai, blake3, content, separated by commas, or all"),
        CLI_TAKES('c', "check", "FILE", sums,
          "compare with the lines of this file (- is standard input), in the format of hash or "
          "sha256sum"),
        CLI_ON(0, "quiet", quiet, "with -c: no line for what matches"),
        CLI_ON(0, "status", status_only,
          "with -c: print no line for any digest, only set the exit status"),
        CLI_ON(0, "read", read,
          "of URLs: read the whole file and compute, rather than show what the server claims")),
      cli_hash_run_options, cli_input_options, cli_json_options, cli_reading_options,
      cli_remote_options, cli_network_options, cli_common_options },
    { "every digest that --algo names was computed (all: those that the file has), and with -c "
      "matches",
      "a digest differs (-c), or a file has none of a kind that --algo names",
      "a file could not be read or is not a model, or a usage error" },
    0, SIZE_MAX, run_hash, CLI_URLS_ALL,
};
