/* ls --fold: layers that are alike, as one. */
#include "commands/ls/ls.h"

#include "base/error.h"

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

size_t ls_part_end(sft_span name, size_t at) {
    const char *dot = at < name.len ? memchr(name.data + at, '.', name.len - at) : NULL;
    return dot ? (size_t)(dot - name.data) : name.len;
}

size_t ls_shared_folders(sft_span before, sft_span name) {
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
        size_t end = ls_part_end(b->name, from);
        if (b->name.len <= from || memcmp(a->name.data, b->name.data, from) != 0) return false;
        if (!part_number(b->name, from, end, &number) || number != wanted) return false;
        if (b->name.len - end != a->name.len - to || a->dtype != b->dtype || a->rank != b->rank)
            return false;
        if (a->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0) return false;
        if (memcmp(a->name.data + to, b->name.data + end, a->name.len - to) != 0) return false;
    }
    size_t end = ls_part_end(ls_listed(l, other)->name, from);
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
        size_t shared = ls_shared_folders(before, name), end, from = 0;
        for (size_t d = 0; d < LS_TREE_DEPTH && (end = ls_part_end(name, from)) < name.len; d++) {
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

/* ── Names ── */

static sft_span fold_last(const ls_listing *l, const ls_fold *fold) {
    sft_span name = sft_set_tensor_at(l->set, fold->last)->name;
    return (sft_span){ name.data + fold->from, ls_part_end(name, fold->from) - fold->from };
}

void ls_name_part(const ls_listing *l, size_t i, size_t from, size_t to) {
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
