/* All inputs of the command line in one list, and the options of hashing. */
#include "support/hash.h"

#include "safetensors_import.h"
#include "support/words.h"

#include <string.h>

#define THREADS_MOST 1000000

/* ── Inputs ── */

sft_code cli_list_inputs(cli *c, char **operands, size_t count, cli_input_list *out,
                         sft_error *err) {
    memset(out, 0, sizeof *out);
    out->arena.alloc = c->alloc;
    out->expanded = sfti_arena_take(&out->arena, (count + 1) * sizeof *out->expanded);
    if (!out->expanded) return sfti_fail_memory(err, count);
    for (size_t i = 0; i < count; i++) {
        cli_depth depth = (cli_depth)(c->set.recursive | c->others
                                      | (c->joins_shards ? CLI_JOIN_SHARDS : 0));
        sft_code code = cli_inputs_expand(operands[i], depth, c->set.output, &c->open,
                                          &out->expanded[out->expanded_count++], err);
        if (code) return code;
    }
    for (size_t i = 0; i < count; i++) out->count += out->expanded[i].count;
    out->items = sfti_arena_take(&out->arena, (out->count + 1) * sizeof *out->items);
    if (!out->items) return sfti_fail_memory(err, out->count);
    for (size_t i = 0, at = 0; i < count; i++)
        for (size_t j = 0; j < out->expanded[i].count; j++)
            out->items[at++] = out->expanded[i].items[j];
    return SFT_OK;
}

void cli_input_list_free(cli_input_list *list) {
    for (size_t i = 0; i < list->expanded_count; i++)
        cli_inputs_free(&list->expanded[i]);
    sfti_arena_free(&list->arena);
}

/* ── Options ── */

const cli_option cli_hash_run_options[] = {
    CLI_TAKES(0, "cache", "FILE", cache,
      "cache digests in this file, keyed by device, inode, size and modification times; cached "
      "files are not read again unless they are verified"),
    CLI_TAKES(0, "threads", "N", threads,
      "at most this many threads; 0 (the default): one per processor"),
    CLI_OPTIONS_END,
};

bool cli_parse_threads(cli *c, uint32_t *out) {
    sft_error err = SFT_ERROR_INIT;
    const char *text = c->set.threads;
    uint64_t value = 0;
    bool fine = !text || cli_parse_number(text, THREADS_MOST, &value);
    *out = fine ? (uint32_t)value : 0;
    if (fine) return true;
    cli_usage_error(&err, "expected a number for --threads, found \"%s\"", text);
    cli_complain(c, NULL, &err);
    c->no_results = true;
    return false;
}

unsigned cli_algo_named(sft_span name) {
    unsigned algo = 0;
    while (algo < SFT_HASH_COUNT
           && !cli_same_letters(name, sft_span_cstr(sft_hash_name((sft_hash_algo)algo))))
        algo++;
    return algo;
}

void cli_hash_run_begin(cli_hash_run *h, cli *c, const char *path) {
    static const sft_hash_options defaults = SFT_HASH_OPTIONS_INIT;
    h->c = c;
    h->cache = NULL;
    h->options = defaults;
    h->options.open = &c->open;
    h->options.open_other = sft_import_open_set;
    h->job = cli_progress_begin(&h->progress, c, path);
    sft_error err = SFT_ERROR_INIT;
    h->usable = cli_parse_threads(c, &h->job.threads);
    if (h->usable && c->set.cache)
        h->usable = !sft_hash_cache_open(c->set.cache, &c->alloc, &h->cache, &err);
    if (err.code) cli_complain(c, c->set.cache, &err);
    const sft_error *note = h->usable && h->cache ? sft_hash_cache_note(h->cache) : NULL;
    if (note) cli_warn(c, c->set.cache, note);
    bool verifies = c->set.sums || c->set.verify;
    h->options.cache = verifies ? NULL : h->cache;
}

void cli_hash_run_quiet(cli_hash_run *h) {
    cli_progress_end(&h->progress);
    h->progress.shown = 0;
}

void cli_hash_run_end(cli_hash_run *h) {
    sft_error err = SFT_ERROR_INIT;
    cli_progress_end(&h->progress);
    if (!h->cache) return;
    if (sft_hash_cache_save(h->cache, &err)) cli_complain(h->c, h->c->set.cache, &err);
    sft_hash_cache_close(h->cache);
}
