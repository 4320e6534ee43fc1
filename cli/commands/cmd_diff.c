/* diff: compare two models. Tests: tests/cli/diff. */
#include "commands/commands.h"
#include "support/models.h"
#include "support/print.h"
#include "support/remote.h"
#include "safetensors_diff.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ── Usage ── */

static sft_code parse_tolerance(const char *option, const char *text, sft_diff_options *options,
                                double *out, sft_error *err) {
    char *end;
    bool plain = text && strpbrk(text, "0123456789") && *text != '-' && *text != '+';
    if (!text) return SFT_OK;
    options->has_tolerance = true;
    /* digits, a point, digits, and a power of ten; nothing else that strtod takes */
    plain = plain && text[strspn(text, "0123456789.eE+-")] == '\0';
    *out = plain ? strtod(text, &end) : -1;
    if (*out >= 0 && *out - *out == 0 && !*end) return SFT_OK;
    return cli_usage_error(err, "expected a number such as 1e-5 for --%s, found \"%s\"", option,
                           text);
}

/* Refuses options that contradict each other. */
static sft_code check_usage(const cli_settings *set, size_t count, sft_error *err) {
    const struct { bool clash; const char *with, *without; } rules[] = {
        { set->merge_of && cli_is_matching(set), "--merge-of", "--match and --exclude" },
        { set->merge_of && set->header_only, "--merge-of", "--header" },
        { set->merge_of && (set->atol || set->rtol), "--merge-of", "--atol and --rtol" },
        { set->merge_of && set->no_metadata, "--merge-of", "--no-metadata" },
        { set->merge_of && set->format == CLI_TSV, "--merge-of", "--tsv" },
        { set->header_only && (set->atol || set->rtol), "--header", "--atol and --rtol" },
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].clash)
            return cli_usage_error(err, "expected %s without %s, found both", rules[i].with,
                                   rules[i].without);
    if (set->merge_of || count <= 2) return SFT_OK;
    return cli_usage_error(err, "expected two models, found %zu; --merge-of takes more", count);
}

static bool is_compared(void *ctx, const sft_tensor *tensor) {
    const cli *c = ctx;
    return cli_is_matched(&c->set, tensor->name);
}

/* ── For people ── */

static void diff_form(cli_out *out, const sft_tensor *tensor) {
    char shape[CLI_SHAPE_SIZE];
    size_t len = cli_shape_text(tensor->shape, tensor->rank, shape);
    cli_printf(out, " %s ", sft_dtype_describe(tensor->dtype)->name);
    cli_put(out, shape, len);
}

static void diff_values(cli_out *out, const sft_diff_tensor *t, bool tolerance) {
    if (!t->compared) return;
    if (t->differing == 0) {
        cli_text(out, t->what & SFT_DIFF_DTYPE ? ": values equal" : ": bytes differ, values equal");
        return;
    }
    cli_printf(out, ": %" PRIu64 " of %" PRIu64 " value%s differ%s", t->differing, t->values,
               t->values == 1 ? "" : "s", t->differing == 1 ? "s" : "");
    if (tolerance) cli_printf(out, ", %" PRIu64 " beyond the tolerance", t->beyond);
    if (t->nan) cli_printf(out, ", %" PRIu64 " by NaN", t->nan);
    cli_printf(out, ", max abs %.6g, max rel %.6g", t->max_abs, t->max_rel);
    if (t->rms == t->rms) cli_printf(out, ", RMS %.6g", t->rms);
    if (t->cosine == t->cosine) cli_printf(out, ", cosine %.9g", t->cosine);
}

static void print_tensor(cli *c, const sft_diff_tensor *t) {
    cli_out *out = &c->out;
    cli_style style = !t->a ? CLI_GREEN : !t->b ? CLI_RED : CLI_PLAIN;
    cli_styled(out, style, !t->a ? "+ " : !t->b ? "- " : "~ ");
    cli_escaped(out, t->name);
    diff_form(out, t->a ? t->a : t->b);
    if (t->a && t->b && t->what & (SFT_DIFF_DTYPE | SFT_DIFF_SHAPE)) {
        cli_text(out, " ->");
        diff_form(out, t->b);
    }
    if (t->a && t->b) {
        diff_values(out, t, c->set.atol || c->set.rtol);
        if (t->what & SFT_DIFF_DATA && !t->compared) cli_text(out, ": bytes differ");
    }
    cli_text(out, "\n");
}

#define DIFF_VALUE_COLUMNS 60

static void print_diff(cli *c, const sft_diff *diff) {
    cli_out *out = &c->out;
    cli_fit fit;
    cli_fit_begin(&fit, c, 4);
    for (size_t i = 0; i < sft_diff_tensor_count(diff); i++)
        print_tensor(c, sft_diff_tensor_at(diff, i));
    for (size_t i = 0; i < sft_diff_pair_count(diff); i++) {
        sft_diff_pair pair = sft_diff_pair_at(diff, i);
        cli_styled(out, !pair.a.data ? CLI_GREEN : !pair.b.data ? CLI_RED : CLI_PLAIN,
                   !pair.a.data ? "+ " : !pair.b.data ? "- " : "~ ");
        cli_text(out, c->set.no_metadata ? "other name " : "metadata ");
        cli_escaped_cut(out, pair.key, DIFF_VALUE_COLUMNS);
        cli_text(out, ": ");
        cli_escaped_cut(out, pair.a.data ? pair.a : pair.b, DIFF_VALUE_COLUMNS);
        if (pair.a.data && pair.b.data) cli_text(out, " -> ");
        if (pair.a.data && pair.b.data) cli_escaped_cut(out, pair.b, DIFF_VALUE_COLUMNS);
        cli_text(out, "\n");
    }
    uint64_t within = sft_diff_within_tolerance_count(diff);
    if (within > 0 && c->set.verbose)
        cli_printf(&c->out, "%" PRIu64 " tensor%s equal within the tolerance, max abs %.6g, "
                            "max rel %.6g\n",
                   within, within == 1 ? " is" : "s are", sft_diff_max_abs(diff),
                   sft_diff_max_rel(diff));
    if (!sft_diff_same(diff) || c->set.verbose) {
        cli_printf(&c->out, "%" PRIu64 " equal, %" PRIu64 " changed, %" PRIu64 " added, %" PRIu64
                            " removed; ", sft_diff_equal_count(diff) + within,
                   sft_diff_changed_count(diff), sft_diff_added_count(diff),
                   sft_diff_removed_count(diff));
        cli_printf(&c->out, "%.3g %% of all elements are in tensors that differ\n",
                   100 * sft_diff_share(diff));
    }
    cli_fit_end(&fit);
}

/* ── TSV ── */

static void tsv_form(cli_out *out, const sft_tensor *tensor) {
    char shape[CLI_SHAPE_SIZE];
    cli_printf(out, "\t%s\t", tensor ? sft_dtype_describe(tensor->dtype)->name : "");
    if (tensor) cli_put(out, shape, cli_shape_text(tensor->shape, tensor->rank, shape));
}

static void tsv_number(cli_out *out, double value) {
    cli_text(out, "\t");
    if (value == value) cli_printf(out, "%.17g", value);
}

static void tsv_begin_row(cli *c, const char *what, bool in_a, bool in_b, sft_span name) {
    cli_printf(&c->out, "%s\t%s\t", what, !in_a ? "added" : !in_b ? "removed" : "changed");
    cli_cell(c, name);
}

static void tsv_diff(cli *c, const sft_diff *diff) {
    cli_out *out = &c->out;
    cli_text(out, "what\tchange\tname\tdtype_a\tshape_a\tdtype_b\tshape_b\tvalues\t"
                      "differing\tbeyond\tnan\tmax_abs\tmax_rel\trms\tcosine\n");
    for (size_t i = 0; i < sft_diff_tensor_count(diff) && !cli_is_over(c); i++) {
        const sft_diff_tensor *t = sft_diff_tensor_at(diff, i);
        tsv_begin_row(c, "tensor", t->a != NULL, t->b != NULL, t->name);
        tsv_form(out, t->a);
        tsv_form(out, t->b);
        if (t->compared) { /* else without its numbers */
            cli_printf(out, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64, t->values,
                       t->differing, t->beyond, t->nan);
            tsv_number(out, t->max_abs);
            tsv_number(out, t->max_rel);
            tsv_number(out, t->rms);
            tsv_number(out, t->cosine);
        }
        cli_text(out, t->compared ? "\n" : "\t\t\t\t\t\t\t\t\n");
    }
    for (size_t i = 0; i < sft_diff_pair_count(diff) && !cli_is_over(c); i++) {
        sft_diff_pair pair = sft_diff_pair_at(diff, i);
        tsv_begin_row(c, "metadata", pair.a.data != NULL, pair.b.data != NULL, pair.key);
        cli_text(&c->out, "\t\t\t\t\t\t\t\t\t\t\t\t\n");
    }
}

/* ── The command ── */

static sft_code diff_models(cli *c, char **operands, sft_set *const sets[2],
                            const sft_diff_options *options, sft_error *err) {
    cli_progress progress;
    sft_diff *diff = NULL;
    sft_job job = cli_progress_begin(&progress, c, operands[0]);
    sft_code code = sft_diff_new(sets[0], sets[1], options, &job, &diff, err);
    cli_progress_end(&progress);
    if (!code && cli_is_matching(&c->set) && sft_diff_compared_count(diff) == 0)
        code = cli_no_match(&c->set, err);
    if (!code && !sft_diff_same(diff)) cli_status(c, CLI_NO);
    if (!code && cli_is_json(c)) {
        sft_sink sink = cli_result_begin(c);
        sft_code written = sft_diff_json(diff, operands[0], operands[1], &sink, err);
        cli_result_end(c, operands[0], written, err);
    } else if (!code && c->set.format == CLI_TSV) {
        tsv_diff(c, diff);
    } else if (!code) {
        print_diff(c, diff);
    }
    sft_diff_free(diff);
    return code;
}

/* In which of the two files a tensor cannot be read. */
static size_t find_unread(sft_set *const sets[2], const sft_error *err) {
    char byte;
    if (err->tensor_len == SFT_NO_TENSOR) return 0;
    for (size_t i = 0; i < 2; i++) {
        size_t shard;
        sft_span name = { err->tensor, err->tensor_len };
        const sft_tensor *tensor = sft_set_find(sets[i], name, &shard);
        if (tensor && tensor->begin < tensor->end
            && sft_read_bytes(sft_set_shard_at(sets[i], shard), tensor->offset, &byte, 1, NULL))
            return i;
    }
    return 0;
}

static void run_diff(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    cli_inputs inputs[2];
    sft_set *sets[2] = { NULL, NULL };
    sft_diff_options options = SFT_DIFF_OPTIONS_INIT;
    size_t at = 0;
    c->imports_whole = true;
    if (check_usage(&c->set, count, &err)) {
        cli_fail_usage(c, &err);
        return;
    }
    if (c->set.merge_of) {
        cli_diff_mixture(c, operands, count);
        return;
    }
    options.header_only = c->set.header_only != 0;
    options.no_metadata = c->set.no_metadata != 0;
    options.by_value = c->set.values != 0;
    options.alloc = &c->alloc;
    if (cli_is_matching(&c->set)) options.match = is_compared;
    options.match_ctx = c;
    sft_code code = parse_tolerance("atol", c->set.atol, &options, &options.atol, &err);
    if (!code) code = parse_tolerance("rtol", c->set.rtol, &options, &options.rtol, &err);
    if (code) {
        cli_fail_usage(c, &err);
        return;
    }
    memset(inputs, 0, sizeof inputs);
    for (; !code && at < 2; at += !code) {
        const cli_input *input;
        code = cli_open_operand(c, operands[at], &inputs[at], &input, &sets[at], &err);
    }
    if (!code) code = diff_models(c, operands, sets, &options, &err);
    if (code) cli_fail_input(c, operands[at < 2 ? at : find_unread(sets, &err)], &err);
    for (size_t i = 0; i < 2; i++) {
        sft_set_close(sets[i]);
        cli_inputs_free(&inputs[i]);
    }
}

const cli_command cli_diff_command = {
    "diff", "A B | --merge-of RESULT A B...", "compare two models",
    "Prints one line for each tensor that only B has (+), that only A has (-), or that differs "
    "(~): another dtype, shape or other bytes, with the number of values that differ, the "
    "greatest difference, the greatest relative to B, the root of the mean square (RMS) of the "
    "differences, and the cosine of the angle between the two tensors as vectors; the last two "
    "over values that are finite in both. Then the metadata likewise, and a summary: how many "
    "tensors are equal, changed, added, removed, and which share of all elements is in tensors "
    "that differ. A and B are files, indexes or folders with one model; a model in one file and "
    "the same model in shards do not differ. What a file in another format holds beyond tensors "
    "and metadata (an epoch, the nodes of a graph) is not compared, nor are tensors of other "
    "branches and those without names (attributes, keys, constants of code): each is named on "
    "standard error, and \"same\" in --json is null if nothing else differs.\n"
    "NaN equals NaN, and 0 equals -0, although their bytes differ; without --atol and --rtol, "
    "bytes decide. Each half of a complex number counts as a value. Tensors of different dtypes "
    "and equal shape are compared by value.\n"
    "--tsv prints a row for each tensor that differs, then for each metadata key: the columns "
    "what (tensor or metadata), change (added, removed or changed), name, dtype and shape in A "
    "and in B, and the numbers named in the first paragraph, empty if values were not compared.\n"
    CLI_VALUES_TEXT " Tensors of different dtypes do not differ then if their values do not.\n"
    "With --merge-of estimates of RESULT which weighted sum of the other models it is, by least "
    "squares over all tensors and in each block (layer): a weight for each model (? where it "
    "cannot be told, as models are equal there), the root of the mean square of what differs from "
    "A, of what the sum leaves unexplained, and of what rounding to the dtype of RESULT leaves. "
    "It is such a sum, in all or in each block, if no more is left than rounding explains; else "
    "the exit status is 1. -v prints all blocks.",
    CLI_EXAMPLES(
        { "safetensors diff old.safetensors new.safetensors",
          "silent, and exit status 0, if nothing differs" },
        { "safetensors diff model.safetensors model.safetensors.index.json",
          "is the merged file the same model as the shards?" },
        { "safetensors diff a.safetensors b.safetensors --atol 1e-6 --rtol 1e-3",
          "ignore small differences" },
        { "safetensors diff a.safetensors b.safetensors --match \"*.bias\"", "only the biases" },
        { "safetensors diff --tsv a.safetensors b.safetensors | sort -t$'\\t' -gk12",
          "the greatest differences last" },
        { "safetensors diff --values original.safetensors quantised.safetensors",
          "what quantising cost, tensor by tensor" },
        { "safetensors diff --merge-of merged.safetensors a.safetensors b.safetensors",
          "which mixture of A and B it is" },
        { "safetensors diff --header a.safetensors b.safetensors", "fast, whatever the size" }),
    { CLI_OPTIONS(
        CLI_TAKES(0, "atol", "NUMBER", atol,
          "values are equal if |a-b| is at most atol + rtol*|b|, whatever their bytes"),
        CLI_TAKES(0, "rtol", "NUMBER", rtol, "see --atol"),
        CLI_VALUES,
        CLI_ON(0, "header", header_only, "names, dtypes, shapes and metadata only; reads no data"),
        CLI_ON(0, "no-metadata", no_metadata, "ignore metadata, except other names of tensors"),
        CLI_ON(0, "merge-of", merge_of,
          "estimate which weighted sum of the other models the first one is"),
        CLI_ON('v', "verbose", verbose,
          "also report tensors that are equal within the tolerance, and the summary if nothing "
          "differs")),
      cli_match_options, cli_json_options, cli_table_options, cli_reading_options,
      cli_remote_options, cli_network_options, cli_common_options },
    { "nothing that was compared differs (beyond the tolerance); --merge-of: the first model is a "
      "weighted sum of the others",
      "something differs; --merge-of: the first model is not a weighted sum of the others",
      "a model could not be read, or a usage error" },
    2, SIZE_MAX, run_diff, CLI_URLS_ALL,
};
