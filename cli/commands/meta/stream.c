/* meta set, rm and scrub with -o -: a changed copy on standard output. */
#include "commands/meta/meta.h"

#include "base/glob.h"
#include "keys/digest_keys.h"
#include "support/adapters.h"
#include "support/beside.h"
#include "support/edit.h"
#include "support/hints.h"
#include "support/output.h"
#include "support/words.h"

#include <string.h>

typedef struct stream_run {
    cli *c;
    const meta_request *ask;
    cli_parts parts;
    sft_pair *pairs; /* of the copy */
    size_t count;
    bool *used, *exact; /* by request; exact: the file has this very key, so it is no glob */
    unsigned stale; /* digests */
    bool changed;
    sft_span *removed, *rewritten, *kept; /* keys, for --json */
    size_t removed_count, rewritten_count, kept_count;
} stream_run;

/* What becomes of a pair of the file: of several requests the last counts. */
static sft_code change_pair(stream_run *r, sft_pair pair, sft_error *err) {
    cli *c = r->c;
    cli_scrubbed found = { NULL, { NULL, 0 } };
    sft_span before = pair.value;
    if (r->ask->is_scrub && !meta_scrub_pair(c, pair.key, pair.value, &r->parts.arena, &found))
        return sfti_fail_memory(err, pair.value.len);
    bool goes = found.reason && !found.value.data;
    if (found.value.data) pair.value = found.value;
    for (size_t i = 0; i < r->ask->count; i++) {
        const sft_pair *asked = &r->ask->pairs[i];
        bool same = asked->value.data || r->exact[i] ? sft_span_equal(asked->key, pair.key)
                                                     : sfti_glob_match(asked->key, pair.key);
        if (!same) continue;
        r->used[i] = true;
        goes = !r->ask->pairs[i].value.data;
        if (!goes) pair.value = r->ask->pairs[i].value;
    }
    if (!goes) r->pairs[r->count++] = pair;
    if (sfti_is_training_key(pair.key) && (goes || !sft_span_equal(pair.value, before)))
        r->stale |= SFTI_DIGESTS_OF_NAMES;
    bool told = goes || found.reason;
    const char *kept = r->ask->is_scrub && !goes ? meta_kept_reason(pair.key, pair.value) : NULL;
    if (kept) r->kept[r->kept_count++] = pair.key;
    if (goes) r->removed[r->removed_count++] = pair.key;
    else if (told) r->rewritten[r->rewritten_count++] = pair.key;
    if (cli_is_json(c)) return SFT_OK;
    if (kept) cli_fill(&c->out, "kept %", pair.key);
    if (kept) cli_printf(&c->out, ": %s\n", kept);
    if (!told) return SFT_OK;
    cli_fill(&c->out, goes ? "removed %" : "rewritten %", pair.key);
    if (found.reason) cli_printf(&c->out, ": %s", found.reason);
    cli_text(&c->out, "\n");
    return SFT_OK;
}

/* A key that the file lacks; set twice, its last value counts. */
static void add_pair(stream_run *r, size_t before, sft_pair pair) {
    for (size_t i = before; i < r->count; i++) {
        if (!sft_span_equal(r->pairs[i].key, pair.key)) continue;
        r->pairs[i].value = pair.value;
        return;
    }
    r->pairs[r->count++] = pair;
    if (sfti_is_training_key(pair.key)) r->stale |= SFTI_DIGESTS_OF_NAMES;
}

static sft_code change_pairs(stream_run *r, sft_error *err) {
    cli_parts *p = &r->parts;
    const meta_request *ask = r->ask;
    uint64_t most = (uint64_t)p->metadata_count + ask->count;
    r->pairs = sfti_arena_array(&p->arena, most, sizeof *r->pairs);
    r->used = sfti_arena_array(&p->arena, ask->count, sizeof *r->used);
    r->exact = sfti_arena_array(&p->arena, ask->count, sizeof *r->exact);
    r->removed = sfti_arena_array(&p->arena, p->metadata_count, sizeof *r->removed);
    r->rewritten = sfti_arena_array(&p->arena, p->metadata_count, sizeof *r->rewritten);
    r->kept = sfti_arena_array(&p->arena, p->metadata_count, sizeof *r->kept);
    bool fine = r->pairs && r->used && r->exact && r->removed && r->rewritten && r->kept;
    if (!fine) return sfti_fail_memory(err, most * sizeof *r->pairs);
    memset(r->used, 0, ask->count * sizeof *r->used);
    for (size_t i = 0; i < ask->count; i++) {
        r->exact[i] = false;
        for (size_t k = 0; k < p->metadata_count && !r->exact[i]; k++)
            r->exact[i] = sft_span_equal(cli_parts_pair(p, k).key, ask->pairs[i].key);
    }
    for (size_t i = 0; i < p->metadata_count; i++) {
        sft_code code = change_pair(r, cli_parts_pair(p, i), err);
        if (code) return code;
    }
    size_t before = r->count;
    for (size_t i = 0; i < ask->count; i++)
        if (!r->used[i] && ask->pairs[i].value.data) add_pair(r, before, ask->pairs[i]);
    /* digests of the old data, but those that are set */
    size_t kept = 0;
    r->stale |= cli_parts_stale(p, true);
    for (size_t i = 0; i < r->count; i++) {
        sft_span key = r->pairs[i].key;
        bool is_set = false;
        for (size_t k = 0; k < ask->count; k++)
            is_set = is_set || (ask->pairs[k].value.data && sft_span_equal(ask->pairs[k].key, key));
        unsigned digest = is_set ? 0 : sfti_digest_key_of(key) & r->stale;
        r->c->dropped |= digest;
        if (!digest) r->pairs[kept++] = r->pairs[i];
    }
    r->count = kept;
    r->changed = kept != p->metadata_count;
    for (size_t i = 0; i < kept && !r->changed; i++) {
        sft_pair was = cli_parts_pair(p, i);
        r->changed = !sft_span_equal(r->pairs[i].key, was.key)
                     || !sft_span_equal(r->pairs[i].value, was.value);
    }
    p->pairs = r->pairs;
    p->metadata_count = r->count;
    p->has_metadata = p->has_metadata || r->count > 0;
    return SFT_OK;
}

/* A stream in words is told as other results are that are written. */
static void say_copy(cli *c, const stream_run *r) {
    cli_edit_result result = { .path = r->parts.path, .changed = true };
    c->same = !r->changed;
    if (cli_is_json(c) && (r->ask->is_scrub || r->removed_count > 0)) {
        result.what = "removed";
        result.listed = r->removed;
        result.listed_count = r->removed_count;
    }
    if (cli_is_json(c) && r->ask->is_scrub) {
        result.rewritten = r->rewritten;
        result.rewritten_count = r->rewritten_count;
        result.kept = r->kept;
        result.kept_count = r->kept_count;
    }
    if (r->parts.untold) cli_edit_say(c, &result);
}

static sft_code write_stream(stream_run *r, const char *operand, sft_error *err) {
    cli *c = r->c;
    cli_output out;
    c->no_imports = true;
    sft_code code = cli_output_begin(&out, c, operand, CLI_TARGET_NEW, err);
    if (!code) code = cli_parts_open_one(c, operand, false, &r->parts, err);
    if (code) return code;
    if (sft_set_index_path(r->parts.sets[0])) {
        cli_usage_error(err, "expected a model in one file for -o %s, found an index",
                        out.stream ? "-" : "of a URL");
        if (!out.stream) cli_hint(err, CLI_HINT_URL_INDEX);
        return SFT_BAD_ARGUMENT;
    }
    code = cli_check_adapter_config(c, r->parts.opened, 1, out.stream ? NULL : out.path, err);
    if (!code && !out.stream) code = cli_check_quantiser(c, &r->parts, out.path, err);
    if (!code) code = change_pairs(r, err);
    r->parts.untold = !out.stream || cli_is_json(c);
    if (!code) code = cli_output_parts(&out, c, &r->parts, err);
    if (code) return code;
    say_copy(c, r);
    for (size_t i = 0; r->ask->is_rm && i < r->ask->count; i++) {
        if (r->used[i]) continue;
        meta_tell_missing(c, r->parts.path, r->parts.files[r->parts.only], r->ask->pairs[i].key);
        break;
    }
    return SFT_OK;
}

void meta_stream(cli *c, const char *operand, const meta_request *ask) {
    sft_error err = SFT_ERROR_INIT;
    stream_run r = { .c = c, .ask = ask, .parts = { .arena = { .alloc = c->alloc } } };
    if (write_stream(&r, operand, &err)) cli_fail_input(c, operand, &err);
    cli_parts_free(&r.parts);
}
