/* info --online: which files are looked up, and what becomes of the answers. */
#include "commands/info/online.h"

#include "os/os.h"
#include "support/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WEEK ((uint64_t)7 * 24 * 60 * 60)
/* ── Beginning ── */

bool cli_online_open(cli_online *online, cli *c, sft_hash_cache *cache) {
    memset(online, 0, sizeof *online);
    online->c = c;
    online->cache = cache;
    if (!cli_civitai_open(&online->site, c, c->set.dry_run != 0)) return false;
    int len = snprintf(online->mark, sizeof online->mark, "unknown to %s", online->site.url);
    if (len < 0 || (size_t)len >= sizeof online->mark) online->mark[0] = 0;
    return true;
}

void cli_online_close(cli_online *online) {
    cli_have_free(online);
    if (online->c) cli_civitai_close(&online->site);
}

/* ── Known digests ── */

void cli_online_begin(cli_online *online, cli_model *model) {
    sft_span claimed;
    bool is_single_file = model->input->kind == CLI_FILE && !model->inputs && model->info
                          && model->set && sft_set_shard_count(model->set) == 1;
    if (model->found || !is_single_file) return;
    cli_lookup *lookup = sfti_arena_take(&model->arena, sizeof *lookup);
    if (!lookup) sfti_fail_memory(&model->err, sizeof *lookup);
    if (!lookup) return;
    memset(lookup, 0, sizeof *lookup);
    lookup->ask.sha256 = lookup->ask.autov3 = (sft_span){ "", 0 };
    lookup->ask.version = lookup->ask.answer = (sft_span){ "", 0 };
    lookup->ask.model = (sft_span){ "", 0 };
    lookup->has_ids = online->c->set.updates && cli_update_ids(model, &lookup->ask);
    uint64_t then, now = sfti_os_time_s();
    lookup->is_skipped = !lookup->has_ids && online->cache && *online->mark
        && sft_hash_cache_marked(online->cache, model->path, online->mark, &then) && then <= now
        && now - then < WEEK;
    if (!lookup->has_ids && sft_info_sized_hash(model->info, "sha256", &claimed)) {
        lookup->is_claimed = true;
        lookup->ask.sha256 = claimed;
    }
    model->found = lookup;
}

static bool is_in_cache(const cli_online *online, const char *path, uint32_t algos) {
    sft_hashes known = SFT_HASHES_INIT(algos);
    if (!online->cache || online->c->set.verify) return false; /* it is read all the same */
    sft_hash_cache_find(online->cache, path, &known);
    return (sft_hashes_known(&known) & algos) == algos;
}

uint32_t cli_online_algos(const cli_online *online, const cli_model *model, uint32_t others) {
    const cli_lookup *lookup = model->found;
    uint32_t algos = others | CLI_ONLINE_ALGOS;
    if (online->again) return lookup && lookup->is_pending ? algos : 0;
    if (!lookup) return others;
    bool cached = is_in_cache(online, model->path, algos);
    if (lookup->has_ids) return others;
    /* Nothing is downloaded for a look-up alone. */
    bool needless = lookup->is_skipped || lookup->is_claimed
                 || cli_is_remote(online->c, model->path);
    if (needless && !cached && !others) algos = 0;
    return algos;
}

void cli_online_count(cli_online *online, const cli_model *model, const char *path,
                      uint32_t algos) {
    const cli_lookup *lookup = model->found;
    os_info info;
    if (lookup) {
        online->files++;
        online->skipped += lookup->is_skipped;
        online->claimed += !algos && lookup->is_claimed && !lookup->is_skipped;
    }
    if (!algos || !path || sfti_os_info_path(path, true, &info)) return;
    if (is_in_cache(online, path, algos)) {
        online->remembered++;
    } else {
        online->hashed++;
        online->bytes += info.size;
    }
}

void cli_online_learn(cli_model *model, const sft_hashes *hashes) {
    cli_lookup *lookup = model->found;
    if (!lookup) return;
    lookup->hashes = *hashes;
    sft_span sha256 = sft_span_cstr(sft_hashes_get(&lookup->hashes, SFT_HASH_SHA256));
    if (!sha256.len) return;
    bool same = lookup->is_claimed && sft_span_equal(lookup->ask.sha256, sha256);
    if (lookup->ask.state == CLI_ASK_UNKNOWN && !same) lookup->ask.state = CLI_ASK_OPEN;
    lookup->ask.sha256 = sha256;
    lookup->ask.autov3 = sft_span_cstr(sft_hashes_get(&lookup->hashes, SFT_HASH_AUTOV3));
    lookup->is_claimed = false;
}

/* ── A batch ── */

static void keep(void *ctx, cli_model *model) {
    (void)ctx, (void)model;
}

/* A recorded digest that the server does not know may be wrong: hash the file. */
static void hash_pending(cli_online *online, cli_digests *digests, cli_model *models,
                         size_t count) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        cli_lookup *lookup = models[i].found;
        if (!lookup || !lookup->is_claimed || lookup->ask.state != CLI_ASK_UNKNOWN) continue;
        if (cli_is_remote(online->c, models[i].path)) continue;
        lookup->is_pending = any = true;
    }
    if (!any || cli_is_over(online->c)) return;
    online->again = true;
    cli_digest_models(online->c, digests, models, count, keep, NULL);
    online->again = false;
}

/* The asks of a batch, one behind the other as the protocol takes them, and back. */
static void move_asks(cli_model *models, size_t count, cli_ask *asks, bool out) {
    for (size_t i = 0; i < count; i++) {
        cli_lookup *lookup = models[i].found;
        if (lookup && out) asks[i] = lookup->ask;
        else if (lookup) lookup->ask = asks[i];
        else memset(&asks[i], 0, sizeof asks[i]);
    }
}

static void ask_by_sha256(cli_online *online, cli_model *models, size_t count, cli_ask *asks,
                          bool again) {
    for (size_t i = 0; i < count; i++) {
        cli_lookup *lookup = models[i].found;
        asks[i] = (cli_ask){ .sha256 = { "", 0 } };
        if (lookup && !lookup->is_skipped && lookup->is_pending == again
            && lookup->ask.state == CLI_ASK_OPEN)
            asks[i] = lookup->ask;
    }
    cli_civitai_by_sha256(&online->site, asks, count);
    for (size_t i = 0; i < count; i++) {
        cli_lookup *lookup = models[i].found;
        if (lookup && asks[i].sha256.len > 0) lookup->ask = asks[i];
    }
}

/* One by one takes its time. */
static void show_asking(const cli_online *online, size_t done, size_t count) {
    cli_out *err = &online->c->err;
    if (!sfti_os_terminal_escapes(2)) return;
    cli_text(err, "\r\x1b[K");
    if (done < count)
        cli_path(err, online->site.url, ": asking for file %zu of %zu", done + 1, count);
    cli_flush(err);
}

static void ask_by_autov3(cli_online *online, cli_model *models, size_t count) {
    for (size_t i = 0; i < count; i++) {
        show_asking(online, i, count);
        cli_lookup *lookup = models[i].found;
        if (!lookup || lookup->is_skipped || lookup->ask.state != CLI_ASK_UNKNOWN) continue;
        if (lookup->ask.autov3.len > 0)
            cli_civitai_by_hash(&online->site, &lookup->ask, lookup->ask.autov3);
        bool computed = (sft_hashes_known(&lookup->hashes) & CLI_ONLINE_ALGOS) == CLI_ONLINE_ALGOS;
        if (lookup->ask.state == CLI_ASK_UNKNOWN && computed && online->cache && *online->mark)
            sft_hash_cache_mark(online->cache, models[i].path, online->mark, sfti_os_time_s());
    }
    show_asking(online, count, count);
}

void cli_online_ask(cli_online *online, cli_digests *digests, cli_model *models, size_t count) {
    cli_ask *asks = sfti_arena_array(&online->site.arena, count, sizeof *asks);
    sft_error err = SFT_ERROR_INIT;
    if (online->c->set.dry_run) {
        uint64_t asked = 0, known = 0;
        for (size_t i = 0; i < count; i++) {
            const cli_lookup *lookup = models[i].found;
            asked += lookup && !lookup->is_skipped && !lookup->has_ids;
            known += lookup && lookup->has_ids;
        }
        online->posts += (asked + CLI_CIVITAI_HASHES - 1) / CLI_CIVITAI_HASHES;
        online->gets += asked;
        online->pages += (asked + known + CLI_CIVITAI_MODELS - 1) / CLI_CIVITAI_MODELS;
        online->singles += online->c->set.updates ? asked + known : 0;
    } else if (!asks) {
        sfti_fail_memory(&err, count);
        cli_complain(online->c, NULL, &err);
    } else {
        cli_hash_run_quiet(&digests->hashing);
        ask_by_sha256(online, models, count, asks, false);
        hash_pending(online, digests, models, count);
        ask_by_sha256(online, models, count, asks, true);
        ask_by_autov3(online, models, count);
        move_asks(models, count, asks, true);
        if (online->c->set.updates) {
            cli_civitai_models(&online->site, asks, count);
            cli_civitai_confirm(&online->site, asks, count);
            for (size_t i = 0; i < count; i++)
                if (models[i].found && !models[i].err.code)
                    cli_update_learn(online, &models[i], &asks[i]);
        } else {
            cli_civitai_complete(&online->site, asks, count);
            move_asks(models, count, asks, false);
            for (size_t i = 0; i < count; i++) {
                const cli_lookup *lookup = models[i].found;
                sft_error *failed = &models[i].err;
                if (!lookup || lookup->ask.state != CLI_ASK_KNOWN || failed->code) continue;
                failed->code = sft_info_add_civitai(models[i].info, lookup->ask.answer, failed);
                if (!failed->code && online->c->set.save)
                    cli_save_answer(online, &models[i], lookup->ask.answer);
            }
        }
    }
    cli_civitai_forget(&online->site);
}

/* ── --dry-run ── */

static void summary_json(const cli_online *online) {
    const struct { const char *key; uint64_t value; } rows[] = {
        { "files", online->files }, { "remembered", online->remembered },
        { "recorded", online->claimed }, { "unknown", online->skipped },
        { "hashed", online->hashed }, { "bytes", online->bytes },
        { "requests_by_sha256", online->posts }, { "requests_by_autov3_most", online->gets },
        { "requests_for_models_most", online->pages },
        { "requests_one_by_one_most", online->singles },
    };
    cli *c = online->c;
    cli_results_begin(c);
    c->no_results = true; /* what follows them is ours */
    if (c->set.format == CLI_JSON) cli_text(&c->out, c->results ? "\n],\"online\":{"
                                                                : "],\"online\":{");
    else cli_text(&c->out, "{\"schema\":1,\"command\":\"info\",\"online\":{");
    for (size_t i = 0; i < sizeof rows / sizeof *rows - !c->set.updates; i++)
        cli_printf(&c->out, "%s\"%s\":%" PRIu64, i ? "," : "", rows[i].key, rows[i].value);
    cli_text(&c->out, "}}\n");
}

static const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

void cli_online_summary(const cli_online *online) {
    char buffer[CLI_NUMBER_SIZE];
    cli_out *out = &online->c->out;
    if (cli_is_json(online->c)) {
        summary_json(online);
        return;
    }
    cli_printf(out, "would look up %" PRIu64 " file%s on ", online->files - online->skipped,
               plural(online->files - online->skipped));
    cli_path(out, online->site.url,
             "\nwould hash %" PRIu64 " file%s, %s (%" PRIu64 " bytes)\n", online->hashed,
             plural(online->hashed), cli_size_text(online->bytes, buffer), online->bytes);
    cli_printf(out, "without hashing: %" PRIu64 " cached, %" PRIu64
               " recorded in a sidecar, %" PRIu64 " unknown to the server this week\n",
               online->remembered, online->claimed, online->skipped);
    cli_printf(out, "would send %" PRIu64 " request%s by SHA-256, then at most %" PRIu64
               " by AutoV3 and %" PRIu64 " for models", online->posts,
               plural(online->posts), online->gets, online->pages);
    if (online->c->set.updates)
        cli_printf(out, ", and %" PRIu64 " for what they do not answer", online->singles);
    cli_text(out, "\n");
}

/* ── Options ── */

const cli_option cli_online_options[] = {
    CLI_ON(0, "online", online,
      "look the files up on CivitAI; computes their SHA-256 and AutoV3 digests and sends them"),
    CLI_TAKES(0, "civitai-url", "URL", civitai_url,
      "use another server (default: " CLI_CIVITAI_URL ")"),
    CLI_OPTIONS_END,
};
