/* ls --tree, --fold and --md: names by their parts, layers that are alike as one. */
#include "commands/ls/ls.h"

#include "base/checked.h"
#include "base/error.h"
#include "support/print.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

/* A fold that is open: rows up to `end` are shown, then those up to `skip` are passed over. */
typedef struct fold_open {
    ls_fold fold;
    size_t end, skip;
    uint32_t times;
} fold_open;

typedef struct fold_stack {
    size_t depth;
    fold_open open[LS_TREE_DEPTH];
} fold_stack;

/* End of the part of a name that begins at `at`: a dot or the end. */
static size_t part_end(sft_span name, size_t at) {
    const char *dot = at < name.len ? memchr(name.data + at, '.', name.len - at) : NULL;
    return dot ? (size_t)(dot - name.data) : name.len;
}

/* Bytes of the folders (parts with their dots) that name shares with the one before. */
static size_t shared_folders(sft_span before, sft_span name) {
    size_t shared = 0;
    for (size_t i = 0; i < before.len && i < name.len && before.data[i] == name.data[i]; i++) {
        if (name.data[i] == '.') shared = i + 1;
    }
    return shared;
}

/* Decimal digits without zeros before them. */
static bool part_number(sft_span name, size_t from, size_t to, uint64_t *out) {
    *out = 0;
    if (from >= to || to - from > 9 || (name.data[from] == '0' && to - from > 1)) return false;
    for (size_t i = from; i < to; i++) {
        if (name.data[i] < '0' || name.data[i] > '9') return false;
        *out = *out * 10 + (uint64_t)(name.data[i] - '0');
    }
    return true;
}

/* Rows from i on whose names begin with the first `len` bytes of i's. */
static size_t rows_below(const ls_listing *l, size_t i, size_t len) {
    const char *head = ls_listed(l, i)->name.data;
    size_t n = 1;
    for (; i + n < l->count; n++) {
        sft_span name = ls_listed(l, i + n)->name;
        if (name.len < len || memcmp(name.data, head, len) != 0) break;
    }
    return n;
}

/* Whether the n rows from `other` on are those from i on, but for the number [from, to) of their
 * names, which is `wanted`. */
static bool same_layer(const ls_listing *l, size_t i, size_t other, size_t n, size_t from,
                       size_t to, uint64_t wanted) {
    uint64_t number;
    if (other + n > l->count) return false;
    for (size_t k = 0; k < n; k++) {
        const sft_tensor *a = ls_listed(l, i + k), *b = ls_listed(l, other + k);
        size_t end = part_end(b->name, from);
        if (b->name.len <= from || memcmp(a->name.data, b->name.data, from) != 0) return false;
        if (!part_number(b->name, from, end, &number) || number != wanted) return false;
        if (b->name.len - end != a->name.len - to || a->dtype != b->dtype || a->rank != b->rank)
            return false;
        if (a->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0) return false;
        if (memcmp(a->name.data + to, b->name.data + end, a->name.len - to) != 0) return false;
    }
    size_t end = part_end(ls_listed(l, other)->name, from);
    return rows_below(l, other, end + 1) == n;
}

/* Opens a fold for part [from, to) of row i's name, if layers follow that are the same. */
static void try_fold(const ls_listing *l, fold_stack *stack, size_t i, size_t from, size_t to) {
    uint64_t number;
    sft_span name = ls_listed(l, i)->name;
    if (stack->depth == LS_TREE_DEPTH || to >= UINT32_MAX) return;
    if (!part_number(name, from, to, &number)) return;
    size_t n = rows_below(l, i, to + 1);
    uint32_t times = 1;
    while (same_layer(l, i, i + n * times, n, from, to, number + times)) times++;
    if (times == 1) return;
    stack->open[stack->depth++] = (fold_open){
        { (uint32_t)from, (uint32_t)to, l->order[i + n * (times - 1)] }, i + n, i + n * times,
        times };
}

sft_code ls_fold_rows(ls_listing *l, sft_error *err) {
    fold_stack stack = { .depth = 0 };
    sft_span before = { NULL, 0 };
    size_t rows = 0;
    sft_code code = SFT_OK;
    l->folds = sfti_arena_array(&l->arena, l->count, sizeof *l->folds);
    if (!l->folds) return sfti_fail_memory(err, l->count * sizeof *l->folds);
    for (size_t i = 0; !code; i++) {
        /* past the rows that open folds pass over and that begin here */
        while (stack.depth > 0 && stack.open[stack.depth - 1].end == i)
            i = stack.open[--stack.depth].skip;
        if (i >= l->count) break;
        sft_span name = ls_listed(l, i)->name;
        size_t shared = shared_folders(before, name), end, from = 0;
        for (size_t d = 0; d < LS_TREE_DEPTH && (end = part_end(name, from)) < name.len; d++) {
            if (from >= shared) try_fold(l, &stack, i, from, end);
            from = end + 1;
        }
        before = name;
        ls_folds *folds = &l->folds[rows];
        *folds = (ls_folds){ (uint32_t)stack.depth, 1, NULL };
        if (stack.depth > 0) {
            folds->items = sfti_arena_array(&l->arena, stack.depth, sizeof *folds->items);
            if (!folds->items) code = sfti_fail_memory(err, stack.depth * sizeof *folds->items);
        }
        for (size_t k = 0; !code && k < stack.depth; k++) {
            folds->items[k] = stack.open[k].fold;
            folds->times *= stack.open[k].times;
        }
        l->order[rows++] = l->order[i];
    }
    l->count = rows;
    return code;
}

/* ── Names of rows ── */

static sft_span fold_last(const ls_listing *l, const ls_fold *fold) {
    sft_span name = sft_set_tensor_at(l->set, fold->last)->name;
    return (sft_span){ name.data + fold->from, part_end(name, fold->from) - fold->from };
}

/* Part [from, to) of the name of row i, folded. */
static void put_part(const ls_listing *l, size_t i, size_t from, size_t to) {
    cli_out *out = &l->c->out;
    sft_span name = ls_listed(l, i)->name;
    for (size_t k = 0; l->folds && k < l->folds[i].count; k++) {
        const ls_fold *fold = &l->folds[i].items[k];
        if (fold->from < from || fold->to > to) continue;
        cli_escaped(out, (sft_span){ name.data + from, fold->from - from });
        cli_fill(out, "{%..%}", { name.data + fold->from, fold->to - fold->from },
                 fold_last(l, fold));
        from = fold->to;
    }
    if (to > from) cli_escaped(out, (sft_span){ name.data + from, to - from });
}

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
    if (to > from) put_part(l, i, from, to);
    else cli_text(&l->c->out, "\"\"");
}

/* How often the number [from, to) of row i's name is folded; 1: it is not. */
static uint64_t times_of(const ls_listing *l, size_t i, size_t from) {
    for (size_t k = 0; l->folds && k < l->folds[i].count; k++) {
        const ls_fold *fold = &l->folds[i].items[k];
        uint64_t first, last;
        if (fold->from != from) continue;
        sft_span a = ls_listed(l, i)->name, b = sft_set_tensor_at(l->set, fold->last)->name;
        (void)part_number(a, from, fold->to, &first);
        (void)part_number(b, from, part_end(b, from), &last);
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
        size_t shared = shared_folders(before, name), depth = 0, from = 0;
        for (size_t end; (end = part_end(name, from)) < name.len; from = end + 1, depth++) {
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
        put_part(l, i, 0, name.len);
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
