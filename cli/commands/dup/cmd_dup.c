/* dup: find duplicate models. Sizes, shapes and samples are compared first;
 * only what is alike in all of these is hashed. Tests: tests/cli/dup. */
#include "base/order.h"
#include "commands/commands.h"
#include "commands/dup/dup.h"
#include "os/io.h"
#include "support/hash.h"
#include "support/print.h"
#include "support/remote.h"

#include <inttypes.h>
#include <string.h>

static const char *const dup_names[DUP_KINDS] = { "file", "weights", "content", "tensors",
                                                   "data" };
static const sft_hash_algo dup_algos[DUP_KINDS] = { SFT_HASH_SHA256, SFT_HASH_SSHS_MODEL,
                                                    SFT_HASH_CONTENT, SFT_HASH_CONTENT,
                                                    SFT_HASH_SSHS_MODEL };

typedef struct dup_group {
    dup_by by;
    size_t first, count; /* in members */
    uint64_t wasted;
} dup_group;

typedef struct dup_run {
    cli *c;
    cli_hash_run hashing;
    sfti_arena arena;
    dup_model *models;
    uint32_t *order; /* twice as long: scratch behind */
    size_t count;
    sft_hash_request *asks;
    uint32_t *asked; /* models of the asks */
    size_t ask_count;
    dup_group *groups;
    uint32_t *members;
    size_t group_count, member_count;
    bool *beaten; /* another model of its group stands for it */
    dup_by sorted_by;
} dup_run;

static void *dup_take(dup_run *run, size_t count, size_t size) {
    void *at = count < SIZE_MAX / 4096 ? sfti_arena_take(&run->arena, count * size + 1) : NULL;
    if (at) memset(at, 0, count * size + 1);
    else cli_complain_memory(run->c, count);
    return at;
}

/* ── Groups of equal keys ── */

static int compare_keys(const void *ctx, uint32_t a, uint32_t b) {
    const dup_run *run = ctx;
    const dup_model *x = &run->models[a], *y = &run->models[b];
    int order = strcmp(x->key[run->sorted_by], y->key[run->sorted_by]);
    if (!order && run->sorted_by <= DUP_WEIGHTS) order = strcmp(x->layout, y->layout);
    return order || run->sorted_by >= DUP_TENSORS ? order : strcmp(x->meant, y->meant);
}

static void sort_models(dup_run *run, dup_by by) {
    for (size_t i = 0; i < run->count; i++) run->order[i] = (uint32_t)i;
    run->sorted_by = by;
    sfti_sort(run->order, run->order + run->count, run->count, compare_keys, run);
}

/* End of the run of equal keys that begins at order[first]. */
static size_t run_end(const dup_run *run, size_t first) {
    size_t end = first + 1;
    while (end < run->count && compare_keys(run, run->order[first], run->order[end]) == 0) end++;
    return end;
}

/* ── Hashing the candidates ── */

/* Whether content says more than weights of these: they are not all one file each with the
 * same data, tensors, other names and reading of them, as far as one can tell. */
static bool content_matters(const dup_run *run, size_t first, size_t end) {
    const dup_model *one = &run->models[run->order[first]];
    for (size_t i = first; i < end; i++) {
        const dup_model *other = &run->models[run->order[i]];
        if (!*other->key[DUP_WEIGHTS] || strcmp(other->meant, one->meant) != 0
            || strcmp(other->layout, one->layout) != 0
            || strcmp(other->key[DUP_WEIGHTS], one->key[DUP_WEIGHTS]) != 0)
            return true;
    }
    return false;
}

static bool each_hashed(void *ctx, const sft_hash_result *result) {
    dup_run *run = ctx;
    dup_model *model = &run->models[run->asked[result->index]];
    cli_hash_run_quiet(&run->hashing);
    if (result->error) cli_fail_input(run->c, result->path, result->error);
    for (int by = 0; by < DUP_KINDS; by++) {
        const char *digest = sft_hashes_get(&result->hashes, dup_algos[by]);
        if (by == DUP_CONTENT && model->holds_more) digest = NULL;
        memcpy(model->key[by], digest ? digest : "", digest ? strlen(digest) + 1 : 1);
    }
    return !cli_is_over(run->c);
}

static bool hash_candidates(dup_run *run) {
    sft_error err = SFT_ERROR_INIT;
    uint32_t *algos = dup_take(run, run->count, sizeof *algos);
    run->asks = dup_take(run, run->count, sizeof *run->asks);
    run->asked = dup_take(run, run->count, sizeof *run->asked);
    if (!algos || !run->asks || !run->asked) return false;
    /* bits of the digests that are worth computing, by model */
    for (int by = 0; by < DUP_KINDS; by++) {
        sort_models(run, (dup_by)by);
        for (size_t first = 0, end; first < run->count; first = end) {
            end = run_end(run, first);
            if (!*run->models[run->order[first]].key[by] || end - first < 2) continue;
            if (dup_algos[by] == SFT_HASH_CONTENT && !content_matters(run, first, end)) continue;
            for (size_t i = first; i < end; i++)
                algos[run->order[i]] |= SFT_HASH_BIT(dup_algos[by]);
        }
    }
    /* files of equal length whose data differ are not equal */
    uint32_t file = SFT_HASH_BIT(SFT_HASH_SHA256), weights = SFT_HASH_BIT(SFT_HASH_SSHS_MODEL);
    for (size_t i = 0; i < run->count; i++)
        if (*run->models[i].key[DUP_WEIGHTS] && !(algos[i] & weights)) algos[i] &= ~file;
    for (size_t i = 0; i < run->count; i++) {
        for (int by = 0; by < DUP_KINDS; by++) run->models[i].key[by][0] = '\0';
        if (!algos[i]) continue;
        run->asked[run->ask_count] = (uint32_t)i;
        run->asks[run->ask_count++] = (sft_hash_request){ run->models[i].at.path, algos[i] };
    }
    if (!sft_hash_paths(run->asks, run->ask_count, &run->hashing.options, each_hashed, run,
                        &run->hashing.job, &err))
        return true;
    cli_complain(run->c, NULL, &err);
    return false;
}

/* ── The groups ── */

/* One of each set of equals goes on, to be compared by what comes next. */
static void add_group(dup_run *run, dup_by by, size_t first, size_t end) {
    dup_group group = { by, run->member_count, 0, 0 };
    uint64_t most = 0;
    for (size_t i = first; i < end; i++) {
        const dup_model *model = &run->models[run->order[i]];
        if (run->beaten[run->order[i]]) continue;
        run->members[run->member_count++] = run->order[i];
        if (model->bytes > most) most = model->bytes;
        group.wasted += model->bytes;
        group.count++;
    }
    if (group.count < 2) {
        run->member_count = group.first;
        return;
    }
    for (size_t i = 1; i < group.count; i++) run->beaten[run->members[group.first + i]] = true;
    group.wasted = by >= DUP_TENSORS ? 0 : group.wasted - most; /* what differs is not wasted */
    run->groups[run->group_count++] = group;
}

/* By kind, then as their first models were named. */
static int compare_groups(const void *ctx, uint32_t a, uint32_t b) {
    const dup_run *run = ctx;
    const dup_group *x = &run->groups[a], *y = &run->groups[b];
    uint32_t first = run->members[x->first], second = run->members[y->first];
    if (x->by != y->by) return x->by < y->by ? -1 : 1;
    return first < second ? -1 : first > second;
}

/* ── Telling ── */

static void print_group(dup_run *run, const dup_group *group) {
    static const char *const says[DUP_KINDS] = {
        "the same file", "the same weights, different metadata",
        "the same content, different files or order",
        "the same tensors; other names or what else the files hold may differ",
        "the same data, but other names, shapes or dtypes of tensors",
    };
    char buffer[CLI_NUMBER_SIZE];
    cli_fit fit;
    cli_fit_begin(&fit, run->c, 4);
    cli_styled(&run->c->out, CLI_BOLD, says[group->by]);
    cli_printf(&run->c->out, ": %zu models", group->count);
    if (group->by < DUP_TENSORS)
        cli_printf(&run->c->out, ", %s wasted", cli_size_text(group->wasted, buffer));
    cli_text(&run->c->out, "\n");
    for (size_t i = 0; i < group->count; i++) {
        cli_text(&run->c->out, "  ");
        cli_path_text(&run->c->out,
                      sft_span_cstr(run->models[run->members[group->first + i]].at.path));
        cli_text(&run->c->out, "\n");
    }
    cli_fit_end(&fit);
}

/* Their tensors are equal; their files are not. */
static bool can_end(const dup_run *run, const dup_group *group) {
    return group->by == DUP_FILE || (group->by == DUP_WEIGHTS && run->c->set.by_weights);
}

/* JSON: before the group's last brace. */
static void end_group(dup_run *run, const dup_group *group, sfti_json_writer *w) {
    sfti_arena arena = { .alloc = run->c->alloc };
    if (!can_end(run, group)) return;
    dup_path *paths = sfti_arena_array(&arena, group->count, sizeof *paths);
    for (size_t i = 0; paths && i < group->count; i++)
        paths[i] = run->models[run->members[group->first + i]].at;
    if (!paths || !dup_end(run->c, paths, group->count, group->by == DUP_FILE,
                           &arena, w))
        cli_complain_memory(run->c, group->count);
    sfti_arena_free(&arena);
}

static void json_group(dup_run *run, const dup_group *group) {
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink = cli_result_sink(run->c);
    sfti_json_writer w;
    sfti_json_write(&w, &sink, 0, &err);
    sfti_json_open(&w, '{');
    sfti_json_put_cstr(&w, "by", dup_names[group->by]);
    sfti_json_put_open(&w, "paths", '[');
    for (size_t i = 0; i < group->count; i++)
        sfti_json_cstr(&w, run->models[run->members[group->first + i]].at.path);
    sfti_json_close(&w, ']');
    sfti_json_put_uint(&w, "bytes_wasted", group->wasted);
    if (dup_ends(&run->c->set)) {
        sfti_json_put_bool(&w, "dry_run", run->c->set.yes == 0);
        end_group(run, group, &w);
    }
    sfti_json_close(&w, '}');
    if (sfti_json_done(&w)) cli_complain(run->c, NULL, &err);
}

static void tell_groups(dup_run *run) {
    cli_out *out = &run->c->out;
    uint64_t wasted = 0;
    cli_results_begin(run->c);
    run->c->no_results = true; /* what follows them is ours */
    if (run->c->set.format == CLI_JSON)
        cli_printf(out, "%s],\"groups\":[", run->c->results ? "\n" : "");
    for (size_t i = 0; i < run->group_count; i++) run->order[i] = (uint32_t)i;
    if (run->group_count > 0)
        sfti_sort(run->order, run->order + run->count, run->group_count, compare_groups, run);
    for (size_t i = 0; i < run->group_count; i++) {
        const dup_group *group = &run->groups[run->order[i]];
        wasted += group->wasted;
        if (run->c->set.format == CLI_JSON) cli_text(out, i ? ",\n" : "\n");
        if (cli_is_json(run->c)) json_group(run, group);
        else if (run->c->set.format != CLI_TSV) print_group(run, group);
        if (i == 0 && run->c->set.format == CLI_TSV)
            cli_text(out, "group\tby\tbytes_wasted\tpath\n");
        for (size_t k = 0; run->c->set.format == CLI_TSV && k < group->count; k++) {
            cli_printf(out, "%zu\t%s\t%" PRIu64 "\t", i + 1, dup_names[group->by], group->wasted);
            cli_cell(run->c, sft_span_cstr(run->models[run->members[group->first + k]].at.path));
            cli_text(out, "\n");
        }
        if (run->c->set.format == CLI_JSONL) cli_text(out, "\n");
    }
    if (run->c->set.format == CLI_JSON)
        cli_printf(out, "%s],\"bytes_wasted\":%" PRIu64 ",\"models\":%zu}\n",
                   run->group_count ? "\n" : "", wasted, run->count);
    if (run->group_count > 0 && run->groups[run->order[0]].by < DUP_TENSORS)
        cli_status(run->c, CLI_NO);
}

/* ── The command ── */

typedef struct dup_place {
    uint64_t device, inode;
    const char *url; /* of a remote file, whose device and inode are 0 */
    int error; /* 0: it is known */
    bool is_link, again;
    const char *link;
} dup_place;

static int compare_places(const void *ctx, uint32_t a, uint32_t b) {
    const dup_place *x = (const dup_place *)ctx + a, *y = (const dup_place *)ctx + b;
    if (!x->url != !y->url) return x->url ? 1 : -1;
    if (x->url) return strcmp(x->url, y->url);
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* Among the names of one file, the first that is no link stands for it, rather one in the folder
 * of --keep; a link that leads to it is told, likewise. */
static void choose_name(dup_run *run, dup_place *places, const uint32_t *names, size_t count,
                        const cli_input_list *inputs) {
    uint32_t best[2] = { UINT32_MAX, UINT32_MAX };
    for (size_t i = 0; i < count; i++) {
        dup_place *place = &places[names[i]];
        uint32_t *one = &best[place->is_link];
        place->again = true;
        if (*one == UINT32_MAX
            || (dup_keeps(run->c, inputs->items[names[i]]->path)
                && !dup_keeps(run->c, inputs->items[*one]->path)))
            *one = names[i];
    }
    uint32_t stands = best[best[0] == UINT32_MAX];
    places[stands].again = false;
    if (stands != best[1] && best[1] != UINT32_MAX)
        places[stands].link = inputs->items[best[1]]->path;
}

/* The same file by another name wastes nothing: it is passed over. */
static void mark_again(dup_run *run, dup_place *places, uint32_t *order,
                       const cli_input_list *inputs) {
    os_info info;
    for (size_t i = 0; i < inputs->count; i++) {
        const char *path = inputs->items[i]->path;
        bool remote = cli_is_remote(run->c, path);
        int error = remote ? 0 : sfti_os_info_path(path, false, &info);
        bool is_link = !remote && !error && info.kind == OS_LINK;
        if (is_link) error = sfti_os_info_path(path, true, &info);
        if (remote) places[i] = (dup_place){ .url = path };
        else if (error) places[i].error = error;
        else places[i] = (dup_place){ info.device, info.inode, .is_link = is_link };
        order[i] = (uint32_t)i;
    }
    sfti_sort(order, order + inputs->count, inputs->count, compare_places, places);
    for (size_t first = 0, end; first < inputs->count; first = end) {
        for (end = first + 1; end < inputs->count; end++)
            if (compare_places(places, order[first], order[end]) != 0) break;
        if (end > first + 1 && places[order[first]].error == 0)
            choose_name(run, places, order + first, end - first, inputs);
    }
}

static bool look_at_all(dup_run *run, const cli_input_list *inputs) {
    dup_place *places = dup_take(run, inputs->count, sizeof *places);
    run->models = dup_take(run, inputs->count, sizeof *run->models);
    run->order = dup_take(run, 2 * inputs->count, sizeof *run->order);
    if (!places || !run->models || !run->order || inputs->count > UINT32_MAX / 4) return false;
    mark_again(run, places, run->order, inputs);
    for (size_t i = 0; i < inputs->count && !cli_is_over(run->c); i++) {
        const cli_input *input = inputs->items[i];
        sft_error err = SFT_ERROR_INIT;
        if (places[i].again) continue;
        run->c->tried++;
        if (places[i].error && cli_input_is_path(input)) {
            sfti_io_fail(&err, SFT_IO_OPEN, places[i].error, "open");
            cli_fail_found(run->c, input, input->path, &err);
        } else if (cli_input_is_path(input)) {
            run->models[run->count].at.link = places[i].link;
            run->count += dup_look_at(run->c, &run->arena, &run->models[run->count], input);
        } else if (input->kind == CLI_STDIN) {
            sfti_fail(&err, SFT_IO_NOT_FILE, "expected a file, found standard input");
            cli_fail_input(run->c, input->path, &err);
        } else {
            cli_report_input(run->c, input);
        }
    }
    return !cli_is_over(run->c);
}

static void run_dup(cli *c, char **operands, size_t count) {
    dup_run run = { .c = c, .arena = { .alloc = c->alloc } };
    sft_error err = SFT_ERROR_INIT;
    cli_input_list inputs;
    c->others = CLI_AND_OTHERS | CLI_FILES_ONLY;
    c->counts_unread = true;
    sft_code code = dup_end_check(c, &run.arena, &err);
    if (code) {
        if (code == SFT_BAD_ARGUMENT) cli_fail_usage(c, &err);
        else cli_fail_input(c, c->set.keep_which, &err);
        sfti_arena_free(&run.arena);
        return;
    }
    cli_hash_run_begin(&run.hashing, c, "dup");
    if (cli_list_inputs(c, operands, count, &inputs, &err)) {
        cli_complain(c, NULL, &err);
    } else if (run.hashing.usable && look_at_all(&run, &inputs) && hash_candidates(&run)) {
        run.groups = dup_take(&run, run.count, sizeof *run.groups);
        run.members = dup_take(&run, 2 * run.count, sizeof *run.members);
        run.beaten = dup_take(&run, run.count, sizeof *run.beaten);
    }
    for (int by = 0; run.groups && run.members && run.beaten && by < DUP_KINDS; by++) {
        sort_models(&run, (dup_by)by);
        for (size_t first = 0, end; first < run.count; first = end) {
            end = run_end(&run, first);
            if (*run.models[run.order[first]].key[by]) add_group(&run, (dup_by)by, first, end);
        }
    }
    tell_groups(&run);
    cli_hash_run_end(&run.hashing);
    bool ends = dup_ends(&c->set), any = false, by_weights = false;
    for (size_t i = 0; ends && !cli_is_json(c) && i < run.group_count && !cli_is_over(c); i++) {
        const dup_group *group = &run.groups[run.order[i]];
        any = any || can_end(&run, group);
        by_weights = by_weights || group->by == DUP_WEIGHTS;
        end_group(&run, group, NULL);
    }
    if (ends && c->status == CLI_NO) c->status = CLI_OK;
    if (ends && run.group_count > 0 && !cli_is_json(c) && (!any || !c->set.yes))
        cli_text(dup_says(c), any ? "nothing was changed: add --yes to do it\n"
                 : by_weights && c->set.remove
                 ? "nothing was changed: add --weights to include models with other metadata\n"
                 : "nothing was changed: none of these is the same file as another\n");
    cli_input_list_free(&inputs);
    sfti_arena_free(&run.arena);
}

const cli_command cli_dup_command = {
    "dup", "PATH...", "find duplicate models, even with different metadata",
    "Lists groups of models that are the same file, that have the same weights with different "
    "metadata, or the same content (names, shapes and values) in another order or split into "
    "other files. Only one model of each group takes part in the next comparison, so the wasted "
    "bytes of all groups can be added up. Models in two last kinds of group may be no duplicates, "
    "and stay. Those with the same tensors: other names of a tensor differ, or what metadata or "
    "adapter_config.json say of reading them (alphas of adapters, quantised layers), or a file in "
    "another format holds more than tensors (the nodes of an ONNX model, the epoch of a "
    "checkpoint), which is not compared. And those with the same data, which their headers give "
    "to tensors with other names, shapes or dtypes, as in an adapter whose names were converted.\n"
    "Sizes, shapes and a few samples are compared first; only models that agree in these are "
    "read. A file with several names (links) counts once. A file that is not a valid model is "
    "compared as a file.\n"
    "Nothing is changed unless --yes comes with one of: --remove, which moves all but one of each "
    "group of the same file to the trash; --link, which makes them names of one file; --reflink, "
    "which lets them share their bytes on file systems that can. --weights does so for the same "
    "weights with different metadata, too (--remove only). --keep says which one stays: by "
    "default one that a link found here leads to, the one with the most beside it, the one with "
    "the shortest path. --remove leaves what such a link leads to. Right before, all bytes are "
    "compared once more. Sidecars and pictures that only the one that goes has stay, "
    "under the name of the one that remains; those that both have and that differ go to the trash, "
    "with --delete too.\n"
    "After --link, a program that writes into one of these files changes all of them; this "
    "command never does.",
    CLI_EXAMPLES(
        { "safetensors dup -r ~/models", "all duplicates in a tree" },
        { "safetensors dup --json --cache ~/.hashes -r ~/models ~/downloads",
          "for programs; fast the second time" },
        { "safetensors dup -r ~/models --remove", "which would go? --yes does it" }),
    { CLI_OPTIONS(
        CLI_ON(0, "remove", remove,
          "with --yes: move all but one of each group to the trash"),
        CLI_ON(0, "link", link,
          "with --yes: make all of a group names of one file (hard links)"),
        CLI_ON(0, "reflink", reflink,
          "with --yes: let all of a group share their bytes, where the file system can"),
        CLI_TAKES(0, "keep", "WHICH", keep_which,
          "the one that stays: described (the default), oldest, newest, shortest, or the one in "
          "a folder"),
        CLI_ON(0, "weights", by_weights,
          "also those with the same weights and different metadata"),
        CLI_ON(0, "delete", erase, "with --remove: delete them, and keep nothing in the trash"),
        CLI_ON(0, "yes", yes, "do it")),
      cli_unread_options, cli_hash_run_options, cli_input_options, cli_json_options,
      cli_table_options, cli_reading_options, cli_remote_options, cli_network_options,
      cli_common_options },
    { "there are no duplicates; with --remove, --link or --reflink: all was done, or reported",
      "there are duplicates, not only models with the same tensors or data",
      CLI_UNREAD_STATUS ", or a usage error" },
    1, SIZE_MAX, run_dup, CLI_URLS_ALL,
};
