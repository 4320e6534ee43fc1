/* Models with their facts: opened by several threads, delivered in order. Tests: tests/cli/info. */
#include "support/models.h"

#include "base/result.h"
#include "base/tree.h"
#include "os/os.h"
#include "os/path.h"
#include "os/workers.h"
#include "safetensors_dataset.h"
#include "safetensors_io.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/remote.h"
#include "support/words.h"

#include <errno.h>
#include <string.h>

#define METADATA_CUT 4096 /* bytes of a metadata value */
#define THREADS_MOST 16
/* Models in one batch: of a thread, few, whose memory is used again for the next; if they are to be
 * hashed, of all threads, as files that differ in size share them. Each holds a file open. */
#define EACH_MOST 8
#define BATCH_HASHED_MOST 64

/* ── One model ── */

/* Remote data are not read unasked: each alpha would be a request. */
static sft_info_options info_options(const cli *c, const char *path) {
    sft_info_options options = SFT_INFO_OPTIONS_INIT;
    options.deep = c->set.deep != 0;
    options.alloc = &c->alloc;
    options.files = c->open.files;
    options.records = c->records;
    options.no_data = !c->set.deep && path && cli_is_remote(c, path);
    return options;
}

/* What the server says of a file that is open. */
static sft_code take_claim(cli *c, cli_model *model, const char *path, sft_info_options *options) {
    sft_remote_claim claim;
    if (!cli_remote_claim(c, path, &claim) || !*claim.sha256) return SFT_OK;
    sft_info_claim *kept = sfti_arena_take(&model->arena, sizeof *kept);
    char *digest = sfti_arena_copy(&model->arena, claim.sha256, strlen(claim.sha256));
    if (!kept || !digest) return sfti_fail_memory(&model->err, sizeof *kept);
    const char *source = strncmp(path, "hf://", 5) == 0 ? "hub" : "server";
    *kept = (sft_info_claim){ "sha256", sft_span_cstr(digest), sft_span_cstr(source), NULL };
    options->claims = kept;
    options->claim_count = 1;
    return SFT_OK;
}

static sft_code open_members(cli *c, cli_model *model) {
    size_t n = model->count;
    model->members = sfti_take(&c->alloc, n * sizeof *model->members);
    model->parts = sfti_take(&c->alloc, n * sizeof *model->parts);
    if (!model->members || !model->parts) {
        sfti_release(&c->alloc, model->members, n * sizeof *model->members);
        sfti_release(&c->alloc, model->parts, n * sizeof *model->parts);
        model->members = NULL;
        model->parts = NULL;
        return sfti_fail_memory(&model->err, n * sizeof *model->members);
    }
    memset(model->members, 0, n * sizeof *model->members);
    for (size_t i = 0; i < n; i++) {
        cli_member *member = &model->members[i];
        sft_info_options options = info_options(c, model->inputs[i]->path);
        member->path = model->inputs[i]->path;
        sft_import *import;
        sft_set_options how = cli_set_options(c);
        sft_code code = cli_open_path(c, model->inputs[i]->path, &how, &member->set, &import,
                                      &model->err);
        if (!code) code = take_claim(c, model, member->path, &options);
        /* sft_info_open lists no remote folder itself. */
        char folder[4096];
        sft_span above = cli_folder_of(member->path);
        if (!code && cli_is_remote(c, member->path) && above.len < sizeof folder) {
            memcpy(folder, above.data, above.len);
            folder[above.len] = '\0';
            code = sft_info_folder_open(folder, c->open.files, &c->alloc, &member->folder,
                                        &model->err);
        }
        if (!code)
            code = sft_info_open(member->set, member->path, member->folder, &options,
                                 &member->info,
                                 &model->err);
        if (code) return code;
    }
    return SFT_OK;
}

static sft_code open_pipeline(cli *c, cli_model *model, const sft_info_options *options) {
    sfti_arena arena = { .alloc = c->alloc };
    sft_code code = open_members(c, model);
    for (size_t i = 0; !code && i < model->count; i++) {
        /* The name of the folder a member lies in; it lives in the member's own path. */
        cli_member *member = &model->members[i];
        sft_span folder = sfti_path_name(cli_folder_of(member->path));
        char *name = sfti_take(&c->alloc, folder.len + 1);
        if (!name) code = sfti_fail_memory(&model->err, folder.len);
        if (!name) break;
        memcpy(name, folder.data, folder.len);
        name[folder.len] = 0;
        member->name = name;
        model->parts[i] = (sft_info_component){ name, member->set, member->info, member->path };
    }
    if (!code) {
        char *path = cli_join_path(&arena, sft_span_cstr(model->path), "model_index.json");
        code = path ? sft_info_open_components(model->parts, model->count, path, model->folder,
                                               options, &model->info, &model->err)
                    : sfti_fail_memory(&model->err, 1);
    }
    sfti_arena_free(&arena);
    return code;
}

static sft_code open_model(cli *c, cli_model *model) {
    bool piped = model->input->kind == CLI_STDIN;
    sft_info_options options = info_options(c, piped ? NULL : model->path);
    options.header_only = piped;
    if (model->is_pipeline) return open_pipeline(c, model, &options);
    sft_set_options how = cli_set_options(c);
    sft_open_options open = c->open;
    bool is_file = model->input->kind == CLI_FILE && !model->inputs;
    sft_code code;
    if (model->inputs) {
        const char **paths = sfti_arena_array(&model->arena, model->count, sizeof *paths);
        if (!paths) return sfti_fail_memory(&model->err, model->count * sizeof *paths);
        for (size_t i = 0; i < model->count; i++) paths[i] = model->inputs[i]->path;
        code = cli_open_shards(c, paths, model->count, &how, &model->set, &model->import,
                               &model->err);
    } else if (piped) {
        code = cli_open_model(c, model->input, &model->set, &model->err);
    } else {
        /* The listing of its folder spares a look for the journal of an edit. */
        if (is_file && model->folder)
            SFT_OPEN_LISTED(&open, sft_info_folder_listed(model->folder, model->input->path));
        how.open = &open;
        code = cli_open_path(c, model->input->path, &how, &model->set, &model->import,
                             &model->err);
    }
    if (!code && is_file) code = take_claim(c, model, model->path, &options);
    if (code) return code;
    options.import = model->import;
    return sft_info_open(model->set, piped ? NULL : model->path, model->folder, &options,
                         &model->info, &model->err);
}

sft_code cli_render_model(cli *c, cli_model *model) {
    uint64_t cut = !c->wants_metadata ? SFT_NO_METADATA : c->set.full ? SFT_SIZE_UNKNOWN
                                                                      : METADATA_CUT;
    sft_tree_free(model->tree);
    sft_code code = sft_tree_new(&c->alloc, &model->tree, &model->err);
    if (!code)
        code = sft_info_tree(model->info, model->path, cut, model->tree, &model->err);
    sft_remote_claim claim;
    if (!code && cli_remote_claim(c, model->path, &claim)) {
        sfti_json_writer w;
        sfti_tree_reopen(model->tree);
        sfti_json_write_tree(&w, model->tree, &model->err);
        cli_put_remote(c, &w, model->path);
        sfti_tree_close(model->tree);
        code = sfti_json_done(&w);
    }
    if (!code) return SFT_OK;
    sft_tree_free(model->tree);
    model->tree = NULL;
    return code;
}

void cli_told_open(cli *c, const char *path, cli_told *out) {
    sft_set_options options = cli_set_options(c);
    sft_info_options how = SFT_INFO_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    memset(out, 0, sizeof *out);
    how.alloc = &c->alloc;
    how.records = c->records;
    sft_code code = cli_open_path(c, path, &options, &out->set, &out->import, &err);
    how.import = out->import;
    if (!code) code = sft_info_open(out->set, path, NULL, &how, &out->info, &err);
    if (!code) code = sft_tree_new(&c->alloc, &out->tree, &err);
    if (!code) code = sft_info_tree(out->info, path, SFT_NO_METADATA, out->tree, &err);
    if (code) cli_told_close(out);
    out->err = err;
}

void cli_told_close(cli_told *label) {
    sft_tree_free(label->tree);
    sft_info_close(label->info);
    sft_set_close(label->set);
    memset(label, 0, sizeof *label);
}

/* Memory is taken before the first byte is written: what fails has printed nothing. */
void cli_print_model_json(cli *c, cli_model *model) {
    sft_sink out = cli_result_sink(c);
    const sft_node *root = sft_tree_root(model->tree);
    /* A pipeline has little metadata, and may run out of memory with half of it written. */
    sft_buffer text = { .alloc = c->alloc };
    sft_sink memory = sft_sink_memory(&text);
    bool whole = c->set.full != 0;
    sft_code code;
    if (model->is_dataset)
        code = sft_node_json(root, NULL, NULL, &out, 0, NULL, &model->err);
    else
        code = sft_info_json(model->info, model->path, whole, model->is_pipeline ? &memory : &out,
                             &model->err);
    if (!code && model->is_pipeline)
        code = sft_sink_write(&out, 0, text.data, text.len, &model->err);
    sft_buffer_free(&text);
    if (code) cli_fail_result(c, model->path, &model->err);
}

/* ── One dataset: its facts under `dataset`, told as those of a model are ── */

static void put_fact(sfti_json_writer *w, const char *key, sft_span value, uint64_t trust) {
    sfti_json_put_open(w, key, '{');
    sfti_json_put_text(w, "value", value);
    sfti_json_put_cstr(w, "source", "folder");
    sfti_json_put_uint(w, "trust", trust);
    sfti_json_put_open(w, "others", '[');
    sfti_json_close(w, ']');
    sfti_json_close(w, '}');
}

/* What every result has is told once. */
static sft_node_keep keep_own(void *ctx, const sft_node *node) {
    (void)ctx;
    if (!node->parent) return SFT_NODE_SOME;
    bool common = !node->parent->parent && (cli_is(node->key, "path") || cli_is(node->key, "ok")
                                            || cli_is(node->key, "path_bytes"));
    return common ? SFT_NODE_DROP : SFT_NODE_ALL;
}

static sft_code put_dataset(const char *folder, const sft_node *from, sft_tree *tree,
                            sft_error *err) {
    sft_span name = sfti_path_name(sfti_path_trimmed(sft_span_cstr(folder)));
    bool dots = cli_is(name, ".") || cli_is(name, "..");
    sfti_json_writer w;
    sft_buffer own = { .len = 0 };
    sft_sink sink = sft_sink_memory(&own);
    sft_code code = sft_node_json(from, keep_own, NULL, &sink, 0, NULL, err);
    sfti_json_write_tree(&w, tree, err);
    sfti_result_begin(&w, folder, true);
    sfti_json_put_open(&w, "file", '{');
    sfti_json_key(&w, "bytes");
    sfti_json_text(&w, sft_node_text(from, "bytes"));
    sfti_json_close(&w, '}');
    sfti_json_put_open(&w, "model", '{');
    put_fact(&w, "kind", sft_span_cstr("dataset"), 100);
    put_fact(&w, "name", dots ? (sft_span){ NULL, 0 } : name, 30);
    sfti_json_close(&w, '}');
    sfti_json_key(&w, "dataset");
    sfti_json_text(&w, (sft_span){ own.data, own.len });
    if (!code) code = sfti_result_end(&w);
    sft_buffer_free(&own);
    return code;
}

/* The result object of the dataset in a folder (docs/json-info.md, info). */
static sft_code dataset_tree(cli *c, const char *folder, sft_tree **out, sft_error *err) {
    sft_tree *facts = NULL, *tree = NULL;
    sft_storage storage = { NULL, NULL, false };
    sft_dataset *dataset = NULL;
    sft_code code = sft_tree_new(&c->alloc, &facts, err);
    if (!code) code = sft_storage_local(folder, true, &c->alloc, &storage, err);
    if (!code) code = sft_dataset_open(&storage, &c->alloc, NULL, NULL, &dataset, err);
    if (!code) code = sft_dataset_info_tree(dataset, folder, facts, err);
    sft_dataset_close(dataset);
    sft_storage_close(&storage);
    if (!code) code = sft_tree_new(&c->alloc, &tree, err);
    if (!code) code = put_dataset(folder, sft_tree_root(facts), tree, err);
    sft_tree_free(facts);
    if (!code) *out = tree;
    else sft_tree_free(tree);
    return code;
}

/* ── Either ── */

static void prepare_model(cli *c, cli_model *model) {
    bool is_model = model->input->kind <= CLI_STDIN;
    model->arena.alloc = c->alloc;
    if (model->is_dataset && !sfti_os_stop_signal()) {
        if (!dataset_tree(c, model->path, &model->tree, &model->err))
            model->err.code = SFT_OK;
        return;
    }
    if (!is_model || sfti_os_stop_signal()) return;
    if (model->missing_count > 0) {
        (void)cli_fail_missing(model->count, model->missing, model->missing_count, &model->err);
        return;
    }
    if (open_model(c, model)) return;
    if (!cli_render_model(c, model)) model->err.code = SFT_OK;
}

static void release_model(cli *c, cli_model *model) {
    sft_info_close(model->info);
    for (size_t i = 0; model->members && i < model->count; i++) {
        cli_member *member = &model->members[i];
        sft_info_close(member->info);
        sft_info_folder_close(member->folder);
        sft_set_close(member->set);
        if (member->name)
            sfti_release(&c->alloc, (char *)member->name, strlen(member->name) + 1);
    }
    if (model->members) {
        sfti_release(&c->alloc, model->members, model->count * sizeof *model->members);
        sfti_release(&c->alloc, model->parts, model->count * sizeof *model->parts);
    }
    sft_set_close(model->set);
    sft_tree_free(model->tree);
    model->tree = NULL;
    sfti_arena_free(&model->arena);
    model->info = NULL;
    model->set = NULL;
    model->import = NULL;
    model->members = NULL;
    model->parts = NULL;
}

/* ── Several at once ── */

typedef struct model_queue {
    cli *c;
    cli_model *models;
    size_t next, count;
} model_queue;

static bool prepare_step(sfti_workers *workers, size_t thread, uint64_t *done, sft_error *err) {
    model_queue *all = workers->ctx;
    (void)thread, (void)done, (void)err;
    sfti_workers_lock(workers);
    size_t i = all->next < all->count ? all->next++ : all->count;
    sfti_workers_unlock(workers);
    if (i < all->count) prepare_model(all->c, &all->models[i]);
    return i < all->count;
}

/* ── All ── */

typedef struct listed_folder {
    struct listed_folder *next;
    sft_span path;
    sft_info_folder *folder;
} listed_folder;

typedef struct operand_models {
    cli_models models;
    cli_inputs *inputs; /* of each operand */
    size_t operand_count;
    listed_folder *folders;
} operand_models;

/* The listing of a model's folder, made once; NULL when there is none. */
static const sft_info_folder *folder_of_model(cli *c, operand_models *all, const cli_model *model) {
    bool remote = cli_is_remote(c, model->path);
    sft_span path = model->is_pipeline ? sft_span_cstr(model->path) : cli_folder_of(model->path);
    if (model->input->kind > CLI_INDEX || model->is_dataset) return NULL;
    /* A file that was named alone stands alone: its folder is not asked for. */
    bool listed = false;
    for (size_t i = 0; remote && i < all->operand_count; i++)
        listed = listed || cli_was_listed(&all->inputs[i], path);
    if (remote ? !listed : model->is_pipeline) return NULL;
    for (listed_folder *f = all->folders; f; f = f->next) {
        if (sft_span_equal(f->path, path)) return f->folder;
    }
    listed_folder *f = sfti_arena_take(&all->models.arena, sizeof *f);
    char *name = sfti_arena_take(&all->models.arena, path.len + 2);
    if (!f || !name) return NULL;
    bool root = path.len == 0 && sfti_is_separator(model->path[0]);
    memcpy(name, path.len ? path.data : root ? "/" : ".", path.len ? path.len : 1);
    name[path.len ? path.len : 1] = 0;
    *f = (listed_folder){ all->folders, path, NULL };
    all->folders = f;
    if (sft_info_folder_open(name, c->open.files, &c->alloc, &f->folder, NULL)) f->folder = NULL;
    return f->folder;
}

static bool list_models(cli *c, operand_models *all, char **operands, size_t count) {
    all->inputs = sfti_arena_take(&all->models.arena, count * sizeof *all->inputs);
    if (!all->inputs) return false;
    int depth = c->set.recursive ? CLI_ALL_LEVELS : CLI_WITH_PARTS;
    cli_depth how = (cli_depth)(depth | CLI_AND_OTHERS | (c->others & CLI_FILES_ONLY));
    for (size_t i = 0; i < count; i++) {
        cli_inputs *in = &all->inputs[all->operand_count++];
        if (cli_inputs_expand(operands[i], how, NULL, &c->open, in, NULL))
            return false;
        cli_count_passed(c, in);
        /* A folder's models have longer paths than it has. */
        bool found = in->count > 0 && strcmp(in->items[0]->path, operands[i]) != 0;
        if (!cli_group_inputs(&all->models, in, found)) return false;
    }
    for (size_t i = 0; i < all->models.count; i++) {
        cli_model *model = &all->models.items[i];
        model->err = (sft_error)SFT_ERROR_INIT;
        if (model->inputs && !model->is_pipeline
            && !cli_find_missing(model, &c->open, &all->models.arena))
            return false;
    }
    return true;
}

typedef struct delivery {
    cli *c;
    operand_models *all;
    cli_model_fn each;
    void *ctx;
} delivery;

static void deliver_model(void *ctx, cli_model *model) {
    const delivery *hand = ctx;
    if (model->err.code == SFT_INDEX_SHARD_MISSING && !model->missing)
        (void)cli_find_missing(model, &hand->c->open, &hand->all->models.arena);
    hand->c->tried++;
    if (!cli_is_over(hand->c)) hand->each(hand->ctx, model);
    release_model(hand->c, model);
}

/* Models of a batch that can be open together, leaving descriptors for as many files more: the
 * others are closed, to be opened again. */
static size_t fit_batch(cli *c, cli_model *models, size_t count) {
    size_t fit = 0;
    while (fit < count && models[fit].err.os_errno != EMFILE
           && models[fit].err.os_errno != ENFILE)
        fit++;
    if (fit == count) return count;
    fit /= 2;
    for (size_t i = fit; i < count; i++) {
        release_model(c, &models[i]);
        models[i].err = (sft_error)SFT_ERROR_INIT;
    }
    if (fit > 0) return fit;
    prepare_model(c, &models[0]);
    return 1;
}

/* By batches that grow: the first answers come at once. */
static void deliver_models(cli *c, operand_models *all, cli_digests *digests, cli_model_fn each,
                    void *ctx) {
    delivery hand = { c, all, each, ctx };
    bool together = digests && digests->batch;
    size_t threads = digests ? digests->hashing.job.threads : 0, done = 0;
    if (!threads) threads = sfti_os_cpu_count();
    if (threads > THREADS_MOST) threads = THREADS_MOST;
    size_t batch = together ? digests->batch_size : threads;
    size_t most = digests && digests->wanted ? BATCH_HASHED_MOST : threads * EACH_MOST;
    while (done < all->models.count && !cli_is_over(c)) {
        size_t left = all->models.count - done, count = batch < left ? batch : left;
        cli_model *models = &all->models.items[done];
        for (size_t i = 0; i < count; i++) models[i].folder = folder_of_model(c, all, &models[i]);
        model_queue queue = { c, models, 0, count };
        sfti_workers workers = { .step = prepare_step, .ctx = &queue };
        if (count == 1) prepare_model(c, models);
        else (void)sfti_workers_run(&workers, threads < count ? threads : count, NULL);
        size_t fit = fit_batch(c, models, count);
        if (fit < count) most = batch = count = fit;
        if (together) {
            cli_digest_models(c, digests, models, count, NULL, NULL);
            if (!cli_is_over(c)) digests->batch(digests->ctx, models, count);
        }
        if (digests && digests->wanted && !together)
            cli_digest_models(c, digests, models, count, deliver_model, &hand);
        else
            for (size_t i = 0; i < count; i++) deliver_model(&hand, &models[i]);
        done += count;
        if (batch < most && !together) batch *= 2;
    }
}

void cli_each_model(cli *c, char **operands, size_t operand_count, size_t *count,
                    cli_digests *digests, cli_model_fn each, void *ctx) {
    operand_models all = { .folders = NULL };
    all.models.arena.alloc = c->alloc;
    if (list_models(c, &all, operands, operand_count)) {
        *count = all.models.count;
        if (digests && digests->wanted)
            cli_digests_count(digests, all.models.items, all.models.count);
        deliver_models(c, &all, digests, each, ctx);
    } else {
        cli_complain_memory(c, sizeof(cli_model));
    }
    for (listed_folder *f = all.folders; f; f = f->next) sft_info_folder_close(f->folder);
    for (size_t i = 0; i < all.operand_count; i++) cli_inputs_free(&all.inputs[i]);
    sfti_arena_free(&all.models.arena);
}

/* ── Failures ── */

void cli_fail_model(cli *c, const cli_model *model) {
    bool none = model->input->kind == CLI_EMPTY || model->input->kind == CLI_BLOCKED;
    if (none && !model->is_dataset) {
        cli_report_input(c, model->input);
    } else if (!cli_is_json(c) || model->missing_count == 0) {
        cli_fail_found(c, model->input, model->path, &model->err);
    } else {
        sft_buffer buffer = { .alloc = c->alloc };
        sft_sink memory = sft_sink_memory(&buffer);
        sft_sink_vtable worded = *memory.vtable;
        worded.words = cli_sink_words;
        memory.vtable = &worded;
        cli_complain_found(c, model->input, model->path, &model->err);
        sft_sink out = cli_result_begin(c);
        if (!sft_error_json(&model->err, model->path, &memory, NULL)) {
            sfti_json_writer w;
            (void)!sft_sink_write(&out, 0, buffer.data, buffer.len - 1, NULL);
            sfti_json_write(&w, &out, buffer.len - 1, NULL);
            w.comma = true;
            sfti_json_put_open(&w, "missing", '[');
            for (size_t i = 0; i < model->missing_count; i++)
                sfti_json_cstr(&w, model->missing[i]);
            sfti_json_close(&w, ']');
            (void)sfti_json_done(&w);
            cli_text(&c->out, "}");
        }
        sft_buffer_free(&buffer);
        cli_result_end(c, model->path, SFT_OK, NULL);
    }
}
