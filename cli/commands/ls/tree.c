/* ls --tree and --md. */
#include "commands/ls/ls.h"
#include "support/print.h"

#include "base/checked.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

/* ── The tree: parts of names between dots ── */

typedef struct ls_sums {
    uint64_t tensors, parameters, bytes;
} ls_sums;

static void sums_row(const ls_listing *l, size_t i, ls_sums *sums) {
    const sft_tensor *t = ls_listed(l, i);
    uint64_t elements = 0, times = ls_times(l, i), all;
    sums->tensors += times;
    if (sft_shape_size(t->dtype, t->shape, t->rank, &elements, NULL, NULL)) elements = 0;
    if (!sfti_mul(elements, times, &all)) all = UINT64_MAX;
    sfti_total_add(&sums->parameters, all);
    sfti_total_add(&sums->bytes, (t->end - t->begin) * times);
}

static void part_words(const ls_listing *l, size_t i, size_t from, size_t to) {
    if (to > from) ls_name_part(l, i, from, to);
    else cli_text(&l->c->out, "\"\"");
}

/* How often the number [from, to) of row i's name is folded; 1: it is not. */
static uint64_t times_of(const ls_listing *l, size_t i, size_t from) {
    for (size_t k = 0; l->folds && k < l->folds[i].count; k++) {
        const ls_fold *fold = &l->folds[i].items[k];
        uint64_t first = 0, last = 0;
        if (fold->from != from) continue;
        sft_span a = ls_listed(l, i)->name, b = sft_set_tensor_at(l->set, fold->last)->name;
        for (size_t at = from; at < fold->to; at++)
            first = first * 10 + (uint64_t)(a.data[at] - '0');
        for (size_t at = from; at < ls_part_end(b, from); at++)
            last = last * 10 + (uint64_t)(b.data[at] - '0');
        return last - first + 1;
    }
    return 1;
}

static void sums_words(cli_out *out, const ls_sums *sums) {
    char count[CLI_NUMBER_SIZE], size[CLI_NUMBER_SIZE];
    cli_printf(out, "%" PRIu64 " tensor%s, %s parameter%s, %s\n", sums->tensors,
               sums->tensors == 1 ? "" : "s", cli_count_text(sums->parameters, count),
               sums->parameters == 1 ? "" : "s", cli_size_text(sums->bytes, size));
}

static void branch_line(const ls_listing *l, size_t i, size_t from, size_t to, size_t depth) {
    cli_out *out = &l->c->out;
    ls_sums sums = { 0, 0, 0 };
    sft_span head = { ls_listed(l, i)->name.data, to + 1 }; /* with the dot */
    for (size_t row = i; row < l->count; row++) {
        sft_span name = ls_listed(l, row)->name;
        if (name.len < head.len || memcmp(name.data, head.data, head.len) != 0) break;
        sums_row(l, row, &sums);
    }
    uint64_t times = times_of(l, i, from);
    cli_fit fit;
    cli_fit_begin(&fit, l->c, 2 * depth + 6);
    cli_pad(out, 2 * depth + 2);
    cli_style_on(out, CLI_BOLD);
    part_words(l, i, from, to);
    cli_style_off(out, CLI_BOLD);
    if (times > 1) cli_printf(out, " \xc3\x97%" PRIu64, times);
    cli_text(out, "  ");
    sums_words(out, &sums);
    cli_fit_end(&fit);
}

static void leaf_line(const ls_listing *l, size_t i, size_t from, size_t depth) {
    cli_out *out = &l->c->out;
    const sft_tensor *t = ls_listed(l, i);
    char shape[CLI_SHAPE_SIZE], size[CLI_NUMBER_SIZE];
    size_t len = cli_shape_text(t->shape, t->rank, shape);
    cli_fit fit;
    cli_fit_begin(&fit, l->c, 2 * depth + 6);
    cli_pad(out, 2 * depth + 2);
    part_words(l, i, from, t->name.len);
    cli_printf(out, "  %s ", sft_dtype_describe(t->dtype)->name);
    cli_put(out, shape, len);
    cli_printf(out, " %s\n", cli_size_text(t->end - t->begin, size));
    cli_fit_end(&fit);
}

void ls_tree(const ls_listing *l) {
    sft_span before = { NULL, 0 };
    uint64_t most = LS_TREE_DEPTH;
    if (l->c->set.depth && !cli_parse_number(l->c->set.depth, UINT32_MAX, &most)) most = 0;
    for (size_t i = 0; i < l->count && !cli_is_over(l->c); i++) {
        sft_span name = ls_listed(l, i)->name;
        size_t shared = ls_shared_folders(before, name), depth = 0, from = 0;
        for (size_t end; (end = ls_part_end(name, from)) < name.len; from = end + 1, depth++) {
            if (depth == LS_TREE_DEPTH || depth >= most) break;
            if (from >= shared) branch_line(l, i, from, end, depth);
        }
        bool hidden = l->c->set.depth && depth >= most;
        if (!hidden) leaf_line(l, i, from, depth);
        before = name;
    }
}

/* ── Markdown ── */

/* As code; where the name has a bar or a backtick, which end that, as text with references. */
static void md_name(const ls_listing *l, size_t i) {
    cli_out *out = &l->c->out;
    sft_span name = ls_listed(l, i)->name;
    size_t from = 0;
    bool plain = name.len > 0 && !memchr(name.data, '|', name.len) &&
                 !memchr(name.data, '`', name.len);
    if (plain) {
        cli_text(out, "`");
        ls_name_part(l, i, 0, name.len);
        cli_text(out, "`");
        return;
    }
    for (size_t k = 0; k < name.len; k++) {
        if (!name.data[k] || !strchr("|`<>&*_[]#~", name.data[k])) continue;
        cli_escaped(out, (sft_span){ name.data + from, k - from });
        cli_printf(out, "&#%d;", name.data[k]);
        from = k + 1;
    }
    if (from < name.len) cli_escaped(out, (sft_span){ name.data + from, name.len - from });
}

void ls_markdown(const ls_listing *l) {
    cli_out *out = &l->c->out;
    char shape[CLI_SHAPE_SIZE], size[CLI_NUMBER_SIZE];
    ls_sums sums = { 0, 0, 0 };
    cli_printf(out, "| Tensor | Dtype | Shape | Size |%s%s\n", l->folds ? " Count |" : "",
               l->stats ? ls_stats_md_head : "");
    cli_printf(out, "| --- | --- | --- | ---: |%s%s\n", l->folds ? " ---: |" : "",
               l->stats ? ls_stats_md_rule : "");
    for (size_t i = 0; i < l->count && !cli_is_over(l->c); i++) {
        const sft_tensor *t = ls_listed(l, i);
        size_t len = cli_shape_text(t->shape, t->rank, shape);
        cli_text(out, "| ");
        md_name(l, i);
        cli_printf(out, " | %s | ", sft_dtype_describe(t->dtype)->name);
        cli_put(out, shape, len);
        cli_printf(out, " | %s |", cli_size_text((t->end - t->begin) * ls_times(l, i), size));
        if (l->folds) cli_printf(out, " %" PRIu32 " |", ls_times(l, i));
        if (l->stats) ls_stats_md(l, i);
        cli_text(out, "\n");
        sums_row(l, i, &sums);
    }
    cli_text(out, "\n");
    sums_words(out, &sums);
}
