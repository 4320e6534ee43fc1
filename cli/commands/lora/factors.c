/* lora resize, stack, extract, simplify: operands, options, and what is told of the result. Tests:
 * tests/adapter/factors.py, tests/cli/lora/factors. */
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "commands/lora/lora.h"
#include "keys/digest_keys.h"
#include "os/os.h"
#include "safetensors_adapter.h"
#include "set/aliases.h"
#include "support/adapters.h"
#include "support/files.h"
#include "support/hash.h"
#include "support/hints.h"
#include "support/output.h"
#include "support/parts.h"
#include "support/values.h"
#include "support/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RANK_LIMIT UINT64_C(65536)
#define WORST_MOST 10
#define NAMED_MOST 10

typedef struct factors_run {
    cli *c;
    sft_adapter_verb verb;
    sft_adapter_factors_options options;
    sft_adapter_factors *factors;
    sfti_arena arena;
    cli_parts parts;       /* of the inputs, then what is written */
    lora_adapter *adapters;
    size_t adapter_count;
    const char **paths;    /* of all inputs */
    const char *blame;     /* path that an error is about; NULL: how the command was called */
} factors_run;

static const char *const verb_words[] = { "resize", "stack", "extract", "simplify" };

/* ── Options ── */

static sft_code read_positive(const char *text, const char *option, double most, double *out,
                              sft_error *err) {
    char *end = NULL;
    if (!text) return SFT_OK;
    bool plain = strspn(text, "0123456789.") > 0 && text[strspn(text, "0123456789.eE+-")] == '\0';
    *out = plain ? strtod(text, &end) : 0;
    if (!plain || *end || !(*out > 0) || *out - *out != 0)
        return cli_usage_hint(err, CLI_HINT_HELP_LORA, "expected a positive number for --%s, found "
                              "\"%s\"", option, text);
    if (*out > most)
        return cli_usage_hint(err, CLI_HINT_HELP_LORA, "expected a number up to %g for --%s, found "
                              "\"%s\"", most, option, text);
    return SFT_OK;
}

static sft_code read_rank(const char *text, const char *option, uint64_t *out, sft_error *err) {
    if (!text || (cli_parse_number(text, RANK_LIMIT, out) && *out > 0)) return SFT_OK;
    return cli_usage_hint(err, CLI_HINT_HELP_LORA, "expected a rank from 1 to 65536 for --%s, "
                          "found \"%s\"", option, text);
}

static sft_code read_rules(const cli_settings *set, sft_adapter_factors_options *out,
                           sft_error *err) {
    const struct { const char *option, *text; sft_adapter_rule rule; double most; } rules[] = {
        { "sv-ratio", set->sv_ratio, SFT_ADAPTER_RATIO, 1e30 },
        { "sv-fro", set->sv_fro, SFT_ADAPTER_FRO, 1 },
        { "sv-cumulative", set->sv_cumulative, SFT_ADAPTER_CUMULATIVE, 1 },
        { "error", set->error, SFT_ADAPTER_ERROR, 1 },
    };
    sft_code code = SFT_OK;
    if (set->rank && strcmp(set->rank, "exact") == 0) out->rule = SFT_ADAPTER_EXACT;
    else code = read_rank(set->rank, "rank", &out->rank, err);
    if (!code) code = read_rank(set->conv_rank, "conv-rank", &out->conv_rank, err);
    for (size_t i = 0; !code && i < SFTI_COUNT(rules); i++) {
        if (!rules[i].text) continue;
        if (out->rule != SFT_ADAPTER_RANK)
            return cli_usage_hint(err, CLI_HINT_HELP_LORA, "expected one rule for the rank, found "
                                  "two");
        out->rule = rules[i].rule;
        code = read_positive(rules[i].text, rules[i].option, rules[i].most, &out->value, err);
    }
    return code;
}

static sft_code read_options(factors_run *run, size_t count, sft_error *err) {
    const cli_settings *set = &run->c->set;
    sft_adapter_factors_options *o = &run->options;
    sft_dtype dtype = SFT_F32;
    sft_code code = read_rules(set, o, err);
    if (code) return code;
    bool alone = run->verb == SFT_ADAPTER_RESIZE || run->verb == SFT_ADAPTER_SIMPLIFY;
    bool two = run->verb == SFT_ADAPTER_EXTRACT;
    if (run->verb != SFT_ADAPTER_STACK && o->rule == SFT_ADAPTER_RANK && !o->rank && !o->conv_rank)
        return cli_usage_hint(err, CLI_HINT_HELP_LORA, "expected --rank, --sv-ratio, --sv-fro, "
                              "--sv-cumulative or --error, found none");
    if ((alone && count > 1) || (two && count != 2))
        return cli_usage_hint(err, CLI_HINT_HELP_LORA, two ? "expected TUNED and BASE, found "
                              "another number of operands" : "expected one adapter, found more");
    if (o->rule == SFT_ADAPTER_EXACT && (two || run->verb == SFT_ADAPTER_RESIZE))
        return cli_usage_hint(err, CLI_HINT_HELP_LORA,
                              "expected a number for --rank, found exact");
    if (two && set->to == SFT_ADAPTER_DIFFUSERS)
        return cli_usage_error(err, "expected --to kohya, peft or comfy with extract, found "
                               "diffusers");
    o->names = (uint32_t)set->to;
    if (run->verb == SFT_ADAPTER_STACK && !o->names && (set->architecture || set->model))
        o->names = SFT_ADAPTER_KOHYA;
    if (two) code = read_positive(set->min_diff, "min-diff", 1e30, &o->min_diff, err);
    if (!code && two)
        code = read_positive(set->clamp_quantile, "clamp-quantile", 1, &o->clamp_quantile, err);
    if (!code && set->dtype) code = cli_dtype_read(sft_span_cstr(set->dtype), &dtype, err);
    if (!code && dtype != SFT_F32 && dtype != SFT_F16 && dtype != SFT_BF16)
        code = cli_usage_error(err, "expected F32, F16 or BF16 for --dtype, found %s", set->dtype);
    if (set->dtype) o->dtype = dtype;
    o->kohya = set->compat != 0;
    o->ignore_unmatched = set->ignore_unmatched != 0;
    o->norms = set->norms != 0;
    o->measure = set->dry_run != 0;
    o->alloc = &run->c->alloc;
    return code;
}

/* ── Inputs ── */

static sft_code add_input(factors_run *run, size_t k, const sft_set *set, const char *path,
                          sft_adapter_use use, sft_error *err) {
    sft_span name = cli_name_of(path);
    use.name = sfti_arena_copy(&run->arena, name.data, name.len);
    run->blame = run->paths[k] = path;
    return use.name ? sft_adapter_factors_add(run->factors, set, &use, err)
                    : sfti_fail_memory(err, name.len);
}

static sft_code add_adapter(factors_run *run, size_t k, double strength, sft_error *err) {
    lora_adapter *adapter = &run->adapters[run->adapter_count++];
    sft_adapter_use use = SFT_ADAPTER_USE_INIT;
    const char *path = run->parts.opened[k];
    run->blame = path;
    sft_code code = lora_borrow(run->c, run->parts.sets[k], path, adapter, err);
    if (code) return code;
    use.strength = strength;
    use.config = cli_read_text(&adapter->config);
    return add_input(run, k, adapter->set, path, use, err);
}

static sft_code add_inputs(factors_run *run, char **operands, size_t count, sft_error *err) {
    cli *c = run->c;
    sfti_arena *arena = &run->arena;
    bool extracts = run->verb == SFT_ADAPTER_EXTRACT;
    size_t adapters = extracts ? 0 : count, all = count + 1;
    const char **names = sfti_arena_array(arena, all, sizeof *names), *number;
    double *strengths = sfti_arena_array(arena, all, sizeof *strengths);
    run->paths = sfti_arena_array(arena, all, sizeof *run->paths);
    run->adapters = sfti_arena_array(arena, all, sizeof *run->adapters);
    if (!names || !strengths || !run->paths || !run->adapters)
        return sfti_fail_memory(err, all * sizeof *names);
    memset(run->adapters, 0, all * sizeof *run->adapters);
    sft_code code = SFT_OK;
    for (size_t k = 0; !code && k < count; k++) {
        run->blame = names[k] = operands[k]; /* without strengths */
        strengths[k] = 1;
        if (run->verb == SFT_ADAPTER_STACK)
            code = cli_cut_number(c, operands[k], &number, &strengths[k], err);
    }
    if (code) return code;
    if (run->verb == SFT_ADAPTER_SIMPLIFY && c->set.model) names[count++] = c->set.model;
    code = cli_parts_open_each(c, names, count, &run->parts, err);
    if (code && run->parts.path) run->blame = run->parts.path;
    for (size_t k = 0; !code && k < adapters; k++) code = add_adapter(run, k, strengths[k], err);
    for (size_t k = adapters; !code && k < count; k++)
        code = add_input(run, k, run->parts.sets[k], names[k],
                         (sft_adapter_use)SFT_ADAPTER_USE_INIT, err);
    return code;
}

static sft_code blame_input(factors_run *run, sft_code code, sft_error *err) {
    size_t who = sft_adapter_factors_blames(run->factors);
    if (code && who != SIZE_MAX) run->blame = run->paths[who];
    bool model = run->verb == SFT_ADAPTER_EXTRACT || (who != SIZE_MAX && who >= run->adapter_count);
    if (code == SFT_CAST_DTYPE && model) cli_hint(err, CLI_HINT_DEQUANTIZE);
    return code;
}

/* ── What is told before it is written ── */

static sft_code check_unmatched(factors_run *run, sft_error *err) {
    cli *c = run->c;
    size_t count = sft_adapter_factors_unmatched(run->factors);
    size_t most = c->set.verbose ? count : NAMED_MOST;
    bool extracts = run->verb == SFT_ADAPTER_EXTRACT;
    if (count == 0) return SFT_OK;
    cli_flush(&c->out);
    for (size_t i = 0; i < count && i < most; i++) {
        cli_text(&c->err, "safetensors: ");
        cli_path(&c->err, run->paths[0], extracts ? ": not in BASE, or of another shape: "
                                                  : ": not known: ");
        cli_quoted(&c->err, sft_adapter_factors_unmatched_at(run->factors, i));
        cli_text(&c->err, "\n");
    }
    if (count > most) cli_printf(&c->err, "safetensors: and %zu more\n", count - most);
    cli_flush(&c->err);
    run->blame = run->paths[0];
    if (c->set.ignore_unmatched) return SFT_OK;
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND, extracts
                     ? "expected tensors of BASE for every layer, found none for %zu; "
                       "--ignore-unmatched leaves them out"
                     : "expected tensors of methods that are known, found %zu others; "
                       "--ignore-unmatched leaves them out", count);
}

/* Tensors of BASE that TUNED has under another name, which metadata of BASE record; NULL when out
 * of memory. */
static bool *find_named(const sft_set *tuned, const sft_set *base, sfti_arena *arena) {
    size_t count = sft_set_tensor_count(base), shard;
    bool *named = sfti_arena_array(arena, count, sizeof *named);
    if (!named) return NULL;
    memset(named, 0, count * sizeof *named);
    for (size_t s = 0; s < sft_set_shard_count(base); s++)
        for (size_t i = 0; i < sft_file_metadata_count(sft_set_shard_at(base, s)); i++) {
            sft_pair pair = sft_file_metadata_at(sft_set_shard_at(base, s), i);
            if (!sfti_set_is_alias(base, pair) || !sft_set_find(tuned, pair.key, NULL)) continue;
            const sft_tensor *of = sft_set_find(base, pair.value, &shard);
            size_t number = sft_file_tensor_index(sft_set_shard_at(base, shard), of);
            for (size_t k = 0; k < shard; k++)
                number += sft_file_tensor_count(sft_set_shard_at(base, k));
            named[number] = true;
        }
    return named;
}

/* extract: nothing tells how they would differ. */
static void say_lacking(factors_run *run) {
    cli *c = run->c;
    const sft_set *tuned = run->parts.sets[0], *base = run->parts.sets[1];
    size_t count = 0;
    sft_span first = { "", 0 };
    const bool *named = find_named(tuned, base, &run->arena);
    for (size_t i = 0; i < sft_set_tensor_count(base); i++) {
        if (named && named[i]) continue;
        sft_span name = sft_set_tensor_at(base, i)->name;
        if (sft_set_find(tuned, name, NULL) || sfti_set_alias_of(tuned, name).data) continue;
        if (count++ == 0) first = name;
    }
    if (count == 0) return;
    cli_flush(&c->out);
    cli_text(&c->err, "safetensors: ");
    cli_path(&c->err, run->paths[0], ": lacks %zu tensor%s of BASE, and OUT has no change for %s: ",
             count, count == 1 ? "" : "s", count == 1 ? "it" : "them");
    cli_quoted(&c->err, first);
    cli_text(&c->err, count == 1 ? "\n" : ", ...\n");
    cli_flush(&c->err);
}

/* diffusers and others take factors without alphas as they are. */
static bool is_for_peft(const factors_run *run, const char *out) {
    const sft_adapter_factor *factor;
    bool peft = cli_is_adapter_model(out);
    for (size_t i = 0; !peft && (factor = sft_adapter_factors_at(run->factors, i)); i++)
        peft = factor->name.len > 11 && memcmp(factor->name.data, "base_model.", 11) == 0;
    return peft;
}

static void say_notes(const factors_run *run, const char *out) {
    static const struct { sft_adapter_note note; const char *what; } notes[] = {
        { SFT_ADAPTER_KEPT_WHOLE,
          "modules of differences, or of factors without a rank, are kept as they are" },
        { SFT_ADAPTER_KEPT_DORA,
          "magnitudes of DoRA are kept; the error is that of the products" },
        { SFT_ADAPTER_FOLDED, "alphas of its configuration are in the factors now: OUT needs an "
                              "adapter_config.json whose lora_alpha is its r" },
        { SFT_ADAPTER_UNTOLD, "modules have no alpha, and no configuration says it: OUT needs one "
                              "whose lora_alpha / r is as it was" },
        { SFT_ADAPTER_LEFT_CONVS, "convolutions differ and are not extracted (--conv-rank takes "
                                  "them)" },
        { SFT_ADAPTER_LEFT_OTHERS, "norms, biases and other tensors differ and are not extracted "
                                   "(--norms takes those that adapters can have)" },
        { SFT_ADAPTER_LEFT_BASES, "weights of the base model (base_layer) are left out" },
    };
    cli *c = run->c;
    for (size_t i = 0; i < SFTI_COUNT(notes); i++) {
        size_t count = sft_adapter_factors_note(run->factors, notes[i].note);
        if (count == 0 || (notes[i].note == SFT_ADAPTER_FOLDED && !is_for_peft(run, out))) continue;
        cli_flush(&c->out);
        cli_text(&c->err, "safetensors: ");
        cli_path(&c->err, run->paths[0], ": %zu %s\n", count, notes[i].what);
        cli_flush(&c->err);
    }
}

/* Without alphas of its own, a file of PEFT's name beside PEFT's configuration gets its alpha. */
static sft_code check_beside(const factors_run *run, const cli_output *out, sft_error *err) {
    bool any = false;
    const sft_adapter_factor *factor;
    for (size_t i = 0; (factor = sft_adapter_factors_at(run->factors, i)); i++)
        any = any || !factor->has_alpha;
    return any && !out->stream ? cli_check_adapter_config(run->c, NULL, 0, out->path, err) : SFT_OK;
}

/* ── Results ── */

typedef struct factor_sums {
    size_t written, left_out;
    uint64_t low, high; /* ranks */
    double norm, lost;  /* squares of those that were computed */
    bool computed;
} factor_sums;

static factor_sums sum_factors(const factors_run *run) {
    factor_sums sums = { 0, 0, UINT64_MAX, 0, 0, 0, false };
    const sft_adapter_factor *factor;
    for (size_t i = 0; (factor = sft_adapter_factors_at(run->factors, i)); i++) {
        sums.left_out += factor->left_out;
        if (factor->left_out) continue;
        sums.written++;
        if (factor->rank < sums.low) sums.low = factor->rank;
        if (factor->rank > sums.high) sums.high = factor->rank;
        if (factor->norm < 0) continue;
        sums.computed = true;
        sums.norm += factor->norm * factor->norm;
        sums.lost += factor->lost * factor->lost;
    }
    return sums;
}

static double part_of(double lost, double norm) {
    return norm > 0 ? lost / norm : 0;
}

static void put_double_or_null(sfti_json_writer *w, const char *key, bool known, double value) {
    if (known) sfti_json_put_double(w, key, value);
    else sfti_json_put_null(w, key);
}

static void put_factors(void *ctx, sfti_json_writer *w) {
    const factors_run *run = ctx;
    const sft_adapter_factor *factor;
    factor_sums sums = sum_factors(run);
    sfti_json_put_cstr(w, "verb", verb_words[run->verb]);
    sfti_json_put_uint(w, "modules_written", sums.written);
    sfti_json_put_uint(w, "modules_left_out", sums.left_out);
    put_double_or_null(w, "error", sums.computed,
                       part_of(sfti_root(sums.lost), sfti_root(sums.norm)));
    sfti_json_put_open(w, "modules", '[');
    for (size_t i = 0; (factor = sft_adapter_factors_at(run->factors, i)); i++) {
        bool known = factor->norm >= 0;
        if (factor->left_out) continue;
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", factor->name);
        sfti_json_put_known(w, "rank_before",
                            factor->rank_before ? factor->rank_before : UINT64_MAX);
        sfti_json_put_uint(w, "rank", factor->rank);
        put_double_or_null(w, "alpha", factor->has_alpha, factor->alpha);
        put_double_or_null(w, "norm", known, factor->norm);
        put_double_or_null(w, "error", known, part_of(factor->lost, factor->norm));
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void say_factor(cli *c, const sft_adapter_factor *factor) {
    cli_text(&c->out, "  ");
    cli_escaped(&c->out, factor->name);
    if (factor->rank_before)
        cli_printf(&c->out, ": rank %" PRIu64 " to %" PRIu64, factor->rank_before, factor->rank);
    else cli_printf(&c->out, ": rank %" PRIu64, factor->rank);
    if (factor->norm >= 0)
        cli_printf(&c->out, ", error %.2g %%", 100 * part_of(factor->lost, factor->norm));
    cli_text(&c->out, "\n");
}

/* All with -v, else those of the greatest errors. */
static void say_factors(const factors_run *run) {
    cli *c = run->c;
    const sft_adapter_factor *factor;
    factor_sums sums = sum_factors(run);
    if (cli_is_json(c)) return;
    cli_printf(&c->out, "%zu module%s", sums.written, sums.written == 1 ? "" : "s");
    if (sums.low < sums.high)
        cli_printf(&c->out, ", rank %" PRIu64 " to %" PRIu64, sums.low, sums.high);
    else if (sums.written) cli_printf(&c->out, ", rank %" PRIu64, sums.low);
    if (sums.computed)
        cli_printf(&c->out, ", error %.2g %% of the whole",
                   100 * part_of(sfti_root(sums.lost), sfti_root(sums.norm)));
    if (sums.left_out) cli_printf(&c->out, "; %zu without a change left out", sums.left_out);
    cli_text(&c->out, "\n");
    if (c->set.verbose) {
        for (size_t i = 0; (factor = sft_adapter_factors_at(run->factors, i)); i++)
            if (!factor->left_out) say_factor(c, factor);
        return;
    }
    double before = 2;
    size_t last = SIZE_MAX;
    for (size_t n = 0; sums.computed && sums.lost > 0 && n < WORST_MOST; n++) {
        size_t worst = SIZE_MAX;
        double most = -1;
        for (size_t i = 0; (factor = sft_adapter_factors_at(run->factors, i)); i++) {
            double one = part_of(factor->lost, factor->norm);
            bool later = one < before || (!(one > before) && last != SIZE_MAX && i > last);
            if (factor->left_out || factor->norm < 0 || !later || !(one > most)) continue;
            worst = i;
            most = one;
        }
        if (worst == SIZE_MAX || !(most > 1e-6)) break;
        say_factor(c, sft_adapter_factors_at(run->factors, worst));
        before = most;
        last = worst;
    }
}

/* ── All ── */

/* Which digests of the first adapter's metadata are not in OUT. */
static void note_dropped(factors_run *run) {
    bool keeps = run->verb == SFT_ADAPTER_RESIZE || run->verb == SFT_ADAPTER_SIMPLIFY
              || (run->verb == SFT_ADAPTER_STACK && run->adapter_count == 1);
    const sft_file *file = keeps ? sft_set_shard_at(run->adapters[0].set, 0) : NULL;
    for (size_t i = 0; file && i < sft_file_metadata_count(file); i++)
        run->c->dropped |= sfti_digest_key_of(sft_file_metadata_at(file, i).key)
                         & SFTI_DIGESTS_OF_DATA;
}

static sft_code write_factors(factors_run *run, cli_output *out, sft_error *err) {
    cli *c = run->c;
    cli_parts *p = &run->parts;
    size_t count, pairs;
    note_dropped(run);
    const sft_part *parts = sft_adapter_factors_parts(run->factors, &count);
    p->parts = sfti_arena_array(&p->arena, count, sizeof *p->parts);
    if (!p->parts) return sfti_fail_memory(err, count * sizeof *p->parts);
    memcpy(p->parts, parts, count * sizeof *parts);
    p->count = count;
    p->pairs = sft_adapter_factors_pairs(run->factors, &pairs);
    p->metadata_count = pairs;
    p->has_metadata = p->changed = p->untold = true;
    run->blame = out->path;
    sft_code code = cli_output_parts(out, c, p, err);
    if (code) return code;
    cli_say_parts(c, p, out->path,
                  (cli_written){ .input = run->paths[0], .dtype = SFT_DTYPE_COUNT,
                                 .more = put_factors, .ctx = run });
    say_factors(run);
    return SFT_OK;
}

static sft_code factor_all(factors_run *run, char **operands, size_t count, sft_error *err) {
    cli *c = run->c;
    cli_output out;
    cli_progress progress;
    uint32_t threads;
    sft_code code = read_options(run, count, err);
    if (!code) code = cli_output_agrees(c, err);
    if (code) return code;
    if (!cli_parse_threads(c, &threads)) return SFT_OK;
    sft_span folder = c->set.output ? cli_folder_of(c->set.output) : (sft_span){ NULL, 0 };
    if (c->set.output && !cli_output_is_stream(c)) {
        run->options.scratch = sfti_arena_copy(&run->arena, folder.data, folder.len);
        if (!run->options.scratch) return sfti_fail_memory(err, folder.len);
    }
    if (run->verb == SFT_ADAPTER_STACK && (c->set.architecture || c->set.model))
        code = lora_architecture(c, &run->arena, NULL, &run->blame,
                                 &run->options.architecture, err);
    if (!code)
        code = sft_adapter_factors_new(run->verb, &run->options, &run->factors, err);
    if (code) return code;
    run->blame = operands[0];
    code = add_inputs(run, operands, count, err);
    if (code) return code;
    code = blame_input(run, sft_adapter_factors_plan(run->factors, err), err);
    if (code == SFT_TENSOR_NOT_FOUND && run->verb == SFT_ADAPTER_STACK)
        cli_hint(err, run->options.names ? CLI_HINT_TELL_MODEL : CLI_HINT_STACK_NAMES);
    if (!code) code = check_unmatched(run, err);
    if (code) return code;
    code = cli_output_begin(&out, c, run->paths[0], CLI_TARGET_NEW, err);
    if (code) run->blame = out.blame;
    run->parts.configured = true;
    if (!code) code = cli_output_sources(c, &run->parts, &out, err);
    if (!code && (code = check_beside(run, &out, err)) != SFT_OK) run->blame = out.path;
    if (code) return code;
    sft_job job = cli_progress_begin(&progress, c, out.path);
    job.threads = threads;
    code = sft_adapter_factors_compute(run->factors, &job, err);
    cli_progress_end(&progress);
    if (code == SFT_IO_WRITE) run->blame = out.path;
    if (code) return blame_input(run, code, err);
    code = write_factors(run, &out, err);
    if (!code) say_notes(run, out.path);
    if (!code && run->verb == SFT_ADAPTER_EXTRACT) say_lacking(run);
    return code;
}

static void factor_verb(cli *c, sft_adapter_verb verb, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    factors_run run = { .c = c, .verb = verb, .options = SFT_ADAPTER_FACTORS_OPTIONS_INIT,
                        .arena = { .alloc = c->alloc } };
    sft_code code = factor_all(&run, operands, count, &err);
    if (code) run.blame = cli_parts_blame(&run.parts, code, NULL, run.blame);
    if (code == SFT_BAD_ARGUMENT && !run.blame) cli_fail_usage(c, &err);
    else if (code) lora_fail(c, run.blame, &err);
    sft_adapter_factors_free(run.factors);
    for (size_t i = 0; i < run.adapter_count; i++) lora_close(&run.adapters[i]);
    cli_parts_free(&run.parts);
    sfti_arena_free(&run.arena);
}

void lora_resize(cli *c, char **operands, size_t count) {
    factor_verb(c, SFT_ADAPTER_RESIZE, operands, count);
}

void lora_stack(cli *c, char **operands, size_t count) {
    factor_verb(c, SFT_ADAPTER_STACK, operands, count);
}

void lora_extract(cli *c, char **operands, size_t count) {
    factor_verb(c, SFT_ADAPTER_EXTRACT, operands, count);
}

void lora_simplify(cli *c, char **operands, size_t count) {
    factor_verb(c, SFT_ADAPTER_SIMPLIFY, operands, count);
}
