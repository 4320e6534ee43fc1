/* Digests of models that go by: what is wanted of a batch is computed at once. */
#include "os/os.h"
#include "support/models.h"

/* ── Units ── */

static bool is_list(const cli_model *model) {
    return model->inputs && !model->is_pipeline;
}

size_t cli_unit_count(const cli_model *model) {
    if (model->input->kind > CLI_INDEX) return 0;
    return model->count + is_list(model);
}

const char *cli_unit_path(const cli_model *model, size_t unit) {
    if (!model->inputs) return model->input->path;
    return unit < model->count ? model->inputs[unit]->path : NULL;
}

sft_info *cli_unit_info(const cli_model *model, size_t unit) {
    if (model->is_pipeline) return model->members[unit].info;
    return is_list(model) && unit < model->count ? NULL : model->info;
}

bool cli_unit_is_set(const cli_model *model, size_t unit) {
    const char *path = cli_unit_path(model, unit);
    return !path || sft_path_is_index(path);
}

/* ── Progress ── */

static uint64_t unit_bytes(const cli_model *model) {
    uint64_t bytes = 0;
    os_info info;
    for (size_t i = 0; i < cli_unit_count(model); i++) {
        const char *path = cli_unit_path(model, i);
        if (path && sfti_os_info_path(path, true, &info) == 0 && info.kind == OS_FILE)
            bytes += info.size;
    }
    return bytes;
}

void cli_digests_count(cli_digests *digests, const cli_model *models, size_t count) {
    if (!sfti_os_terminal_escapes(2)) return;
    for (size_t i = 0; i < count; i++) digests->after += unit_bytes(&models[i]);
}

/* Tells the progress of all batches, as far as it is known. */
static bool tick_batch(void *ctx, uint64_t done, uint64_t total) {
    cli_digests *digests = ctx;
    const sft_job *job = &digests->hashing.job;
    if (total != SFT_SIZE_UNKNOWN) {
        digests->total = total;
        total += digests->before + digests->after;
    }
    return job->tick(job->ctx, done + digests->before, total);
}

/* ── One batch ── */

typedef struct digest_owner {
    size_t model, unit;
} digest_owner;

typedef struct digest_batch {
    cli *c;
    cli_digests *digests;
    sft_job job;
    cli_model *models;
    size_t count;
    sft_hash_request *asks;
    digest_owner *owners;
    size_t ask_count;
    cli_model_fn each;
    void *ctx;
    size_t delivered; /* models */
} digest_batch;

static bool is_readable(const cli_model *model) {
    return model->info && !model->err.code;
}

/* All models up to this one. */
static void deliver_up_to(digest_batch *b, size_t end) {
    for (; b->delivered < end; b->delivered++) {
        cli_model *model = &b->models[b->delivered];
        bool unnamed = is_list(model) && is_readable(model) && !cli_is_over(b->c);
        uint32_t algos = unnamed ? b->digests->wanted(b->digests->ctx, model, model->count) : 0;
        /* The set of a model without an index has no path: it is read where it is open. */
        sft_hash_result result = { .path = model->path };
        if (algos
            && !sft_hash_set(model->set, algos & SFT_HASH_BIT(SFT_HASH_CONTENT), &result.hashes,
                             &b->digests->hashing.job, &model->err))
            b->digests->answer(b->digests->ctx, model, model->count, &result);
        cli_hash_run_quiet(&b->digests->hashing);
        if (b->each) b->each(b->ctx, model);
    }
}

static bool take_answer(void *ctx, const sft_hash_result *result) {
    digest_batch *b = ctx;
    const digest_owner *owner = &b->owners[result->index];
    cli_model *model = &b->models[owner->model];
    bool last = result->index + 1 == b->ask_count
             || b->owners[result->index + 1].model != owner->model;
    if (result->error && !model->err.code) model->err = *result->error;
    if (!result->error) b->digests->answer(b->digests->ctx, model, owner->unit, result);
    if (last) deliver_up_to(b, owner->model + 1);
    return !cli_is_over(b->c);
}

void cli_digest_models(cli *c, cli_digests *digests, cli_model *models, size_t count,
                       cli_model_fn each, void *ctx) {
    digest_batch b = { .c = c, .digests = digests, .models = models, .count = count,
                       .each = each, .ctx = ctx, .job = digests->hashing.job };
    sfti_arena arena = { .alloc = c->alloc };
    sft_error err = SFT_ERROR_INIT;
    b.job.tick = tick_batch;
    b.job.ctx = digests;
    for (size_t i = 0; i < count && digests->after; i++) {
        uint64_t bytes = unit_bytes(&models[i]);
        digests->after -= bytes < digests->after ? bytes : digests->after;
    }
    size_t most = 0;
    for (size_t i = 0; i < count; i++) most += models[i].count;
    b.asks = sfti_arena_take(&arena, (most + 1) * sizeof *b.asks);
    b.owners = sfti_arena_take(&arena, (most + 1) * sizeof *b.owners);
    sft_code code = b.asks && b.owners ? SFT_OK : sfti_fail_memory(&err, count);
    for (size_t i = 0; !code && i < count; i++) {
        size_t units = is_readable(&models[i]) ? cli_unit_count(&models[i]) : 0;
        for (size_t unit = 0; unit < models[i].count && unit < units; unit++) {
            uint32_t algos = digests->wanted(digests->ctx, &models[i], unit);
            if (!algos) continue;
            b.asks[b.ask_count] = (sft_hash_request){ cli_unit_path(&models[i], unit), algos };
            b.owners[b.ask_count++] = (digest_owner){ i, unit };
        }
    }
    if (!code)
        code = sft_hash_paths(b.asks, b.ask_count, &digests->hashing.options, take_answer, &b,
                              &b.job, &err);
    /* What could not be computed for lack of memory is no answer. */
    for (size_t i = b.delivered; code && i < count; i++)
        if (is_readable(&models[i])) models[i].err = err;
    digests->before += digests->total;
    digests->total = 0;
    deliver_up_to(&b, count);
    sfti_arena_free(&arena);
}
