/* What is computed and asked while models go by. */
#include "commands/info/online.h"

#include "os/os.h"
#include "support/words.h"

bool cli_compute_only_counts(const cli *c) { return c->set.dry_run && c->set.online; }

/* ── One model ── */

/* Whether nothing that digests may change says no: then they need not be computed. */
static bool may_be_wanted(const cli_compute *run, const cli_model *model) {
    const sft_node *root = model->tree ? sft_tree_root(model->tree) : NULL;
    bool fits = true;
    for (size_t i = 0; root && i < run->where.count; i++) {
        sft_span field = run->where.items[i].field;
        size_t len = 0;
        while (len < field.len && field.data[len] != '.') len++;
        field.len = len;
        bool changes = cli_is(field, "hashes")
                    || cli_is(field, "sidecars")
                    || cli_is(field, "civitai");
        fits = fits && (changes || cli_where_fits(run->c, &run->where.items[i], root));
    }
    return fits;
}

/* What --hash names, what is recorded, and what looking it up takes. */
static uint32_t unit_algos(const cli_compute *run, const cli_model *model, const sft_info *info) {
    sft_info_claim claim;
    uint32_t algos = run->algos, bit;
    for (size_t i = 0; run->c->set.verify && sft_info_claim_at(info, i, &claim); i++)
        if (!sft_hash_parse(sft_span_cstr(claim.algo), &bit, NULL)) algos |= bit;
    return run->c->set.online ? cli_online_algos(&run->online, model, algos) : algos;
}

/* hashes NULL: nothing of it is known. model->err says what goes wrong. */
static void tell_digests(cli_model *model, sft_info *info, uint32_t algos,
                         const sft_hashes *hashes) {
    sft_code code = sft_info_set_computed(info, algos, hashes, &model->err);
    if (code) model->err.code = code;
}

static uint32_t wanted_digests(void *ctx, cli_model *model, size_t unit) {
    cli_compute *run = ctx;
    sft_info *info = cli_unit_info(model, unit);
    if (!info || !may_be_wanted(run, model)) return 0;
    if (run->c->set.online) cli_online_begin(&run->online, model);
    uint32_t algos = unit_algos(run, model, info);
    if (cli_compute_only_counts(run->c)) {
        cli_online_count(&run->online, model, cli_unit_path(model, unit), algos);
        return 0;
    }
    if (!algos || !cli_unit_is_set(model, unit)) return algos;
    tell_digests(model, info, algos, NULL);
    return model->err.code ? 0 : algos & SFT_HASH_BIT(SFT_HASH_CONTENT);
}

static void take_digests(void *ctx, cli_model *model, size_t unit,
                         const sft_hash_result *result) {
    cli_compute *run = ctx;
    sft_info *info = cli_unit_info(model, unit);
    tell_digests(model, info, unit_algos(run, model, info), &result->hashes);
    if (run->c->set.online) cli_online_learn(model, &result->hashes);
}

static void ask_batch(void *ctx, cli_model *models, size_t count) {
    cli_compute *run = ctx;
    cli_online_ask(&run->online, &run->digests, models, count);
}

/* ── Options ── */

sft_code cli_compute_read(cli_compute *run, cli *c, sft_error *err) {
    const char *list = c->set.hash;
    os_info info;
    run->c = c;
    if (c->set.hash || c->set.verify || c->set.online) {
        run->digests.wanted = wanted_digests;
        run->digests.answer = take_digests;
        run->digests.ctx = run;
    }
    if (c->set.online) {
        run->digests.batch = ask_batch;
        run->digests.batch_size = CLI_ONLINE_BATCH;
    }
    sft_code code = list ? sft_hash_parse(sft_span_cstr(list), &run->algos, err) : SFT_OK;
    /* a forgotten LIST takes the file for it */
    if (code && sfti_os_info_path(list, true, &info) == 0)
        code = cli_usage_error(err, "expected --hash LIST of algorithms, found the file \"%s\": "
                               "try --hash all %s", list, list);
    if (!code && c->set.online && c->set.offline && !c->set.dry_run)
        code = cli_usage_error(err, "expected --online or --offline, found both");
    return code;
}

/* ── All models ── */

bool cli_compute_begin(cli_compute *run, const char *path) {
    cli_hash_run_begin(&run->digests.hashing, run->c, path);
    if (!run->digests.hashing.usable) return false;
    return !run->c->set.online
        || cli_online_open(&run->online, run->c, run->digests.hashing.cache);
}

bool cli_compute_has_tree(const cli_compute *run, cli_model *model) {
    if (run->digests.wanted && model->info && !model->err.code
        && !cli_render_model(run->c, model)) model->err.code = SFT_OK;
    return model->tree && !model->err.code;
}

void cli_compute_end(cli_compute *run) {
    if (run->c->set.online) cli_online_close(&run->online);
    cli_hash_run_end(&run->digests.hashing);
}
