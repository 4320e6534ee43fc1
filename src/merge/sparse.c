/* Sums of differences to the base of which some are left out: TIES, DARE, breadcrumbs, DELLA, SCE.
 * Tests: tests/merge. */
#include "merge/work.h"

#include "base/error.h"

#include <float.h>
#include <string.h>

#define LEAST_NORM 1e-7 /* below it a mask changes no scale */

static double density_of(const sfti_merge_op *op, size_t entry) {
    if (op->method->kind == SFTI_MERGE_SCE) return op->param[SFTI_MERGE_SELECT_TOPK];
    return op->each[SFTI_MERGE_DENSITY][entry];
}

/* ── Numbers that are cut ── */

static uint32_t key_bits(double value) {
    float single = (float)(value < 0 ? -value : value);
    uint32_t word;
    memcpy(&word, &single, sizeof word);
    return word & 0x7fffffffu;
}

static void magnitudes(const sfti_merge_op *op, size_t stream, const sfti_merge_work *work,
                       uint32_t *keys) {
    sfti_merge_loops_best()->keys(work->x[stream], work->x[op->count], (size_t)work->count, keys);
}

static void variances(const sfti_merge_op *op, size_t stream, const sfti_merge_work *work,
                      uint32_t *keys) {
    (void)stream;
    sfti_merge_loops_best()->variances(work->x, op->count, work->x[op->count],
                                       (size_t)work->count, keys);
}

/* TIES keeps one at least; breadcrumbs leave out the largest, fewer of them where both do not
 * fit. */
static void set_tops(sfti_merge_op *op, size_t stream, uint64_t zeros) {
    sfti_merge_cut *outer = &op->cuts[2 * stream], *inner = outer + 1;
    uint64_t all = op->row->elements;
    double density = density_of(op, stream);
    uint64_t kept = density > 0 ? (uint64_t)(density * (double)all) : 0;
    if (op->method->kind == SFTI_MERGE_SCE) {
        outer->top = density > 0 ? (uint64_t)(density * (double)(all - zeros)) : 0;
    } else if (op->method->mask == SFTI_MASK_LARGEST) {
        outer->top = density >= 1 ? all : density > 0 && kept == 0 ? 1 : kept;
    } else {
        uint64_t top = (uint64_t)(op->each[SFTI_MERGE_GAMMA][stream] * (double)all);
        if (density >= 1) outer->top = all;
        else if (kept > 0) inner->top = top < all - kept ? top : all - kept;
        if (density < 1) outer->top = kept + inner->top;
        if (kept == 0 && density < 1) outer->top = 0;
    }
}

/* ── Random masks ── */

#define RANK_LONG 1024 /* lines that are worth more counters */

/* Sorts numbers of a line by their keys, equal ones by their place: *order becomes the places. */
static uint32_t *rank(const sfti_merge_work *work, uint32_t n) {
    const uint32_t *keys = work->keys;
    uint32_t *order = work->order, *spare = work->spare, *starts = work->starts;
    unsigned bits = n < RANK_LONG ? 8 : SFTI_RANK_BITS, digits = (31 + bits - 1) / bits;
    uint32_t size = UINT32_C(1) << bits;
    memset(starts, 0, digits * size * sizeof *starts);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
        for (unsigned d = 0; d < digits; d++)
            starts[d * size + (keys[i] >> d * bits & (size - 1))]++;
    }
    for (unsigned d = 0; d < digits; d++) {
        uint32_t *places = starts + d * size, shift = d * bits, sum = 0;
        if (places[keys[0] >> shift & (size - 1)] == n) continue;
        for (uint32_t k = 0, here; k < size; k++, sum += here) {
            here = places[k];
            places[k] = sum;
        }
        for (uint32_t i = 0; i < n; i++)
            spare[places[keys[order[i]] >> shift & (size - 1)]++] = order[i];
        uint32_t *other = order;
        order = spare;
        spare = other;
    }
    return order;
}

/* Larger differences of a line are likelier to stay. Numbers of a line stand op->inner apart. */
static void draw_ranked(const sfti_merge_op *op, size_t entry, const sfti_merge_work *work,
                        uint8_t *kept) {
    uint64_t inner = op->inner, n = op->line / inner;
    double low = density_of(op, entry) - op->each[SFTI_MERGE_EPSILON][entry];
    double span = 2 * op->each[SFTI_MERGE_EPSILON][entry];
    const double *x = work->x[entry], *base = work->x[op->count];
    for (uint64_t at = 0; at < work->count; at += op->line)
        for (uint64_t k = 0; k < inner; k++) {
            for (uint64_t i = 0; i < n; i++) {
                uint64_t place = at + i * inner + k;
                work->keys[i] = key_bits(x[place] - base[place]);
            }
            const uint32_t *order = rank(work, (uint32_t)n);
            for (uint64_t i = 0; i < n; i++) {
                uint64_t place = at + order[i] * inner + k;
                double chance = low + (n > 1 ? (double)i / (double)(n - 1) : 0) * span;
                uint64_t limit = (uint64_t)(chance * 0x1p53);
                kept[place] = sfti_merge_random(op->seeds[entry], work->first + place) >> 11
                            < limit;
            }
        }
}

/* ── Differences ── */

static void mark(const sfti_merge_op *op, size_t entry, sfti_merge_work *work) {
    if (density_of(op, entry) >= 1) {
        memset(work->kept, 1, (size_t)work->count);
        return;
    }
    switch ((sfti_merge_mask)op->method->mask) {
    case SFTI_MASK_RANDOM:
        sfti_merge_loops_best()->draw(op->seeds[entry], work->first, op->chances[entry],
                                      (size_t)work->count, work->kept);
        return;
    case SFTI_MASK_RANKED:
        if (density_of(op, entry) > 0) draw_ranked(op, entry, work, work->kept);
        else memset(work->kept, 0, (size_t)work->count);
        return;
    case SFTI_MASK_LARGEST: case SFTI_MASK_INLIERS: case SFTI_MASK_ALL: break;
    }
    size_t stream = op->streams == 1 ? 0 : entry;
    op->keys(op, stream, work, work->keys);
    sfti_select_mark(op, stream, work, work->keys, work->kept);
}

/* Values become differences, 0 where the mask leaves them out. SCE has one mask, which is found
 * before any of them changes. */
static void cut_differences(const sfti_merge_op *op, sfti_merge_work *work) {
    bool sce = op->method->kind == SFTI_MERGE_SCE;
    if (sce) mark(op, 0, work);
    for (size_t e = 0; e < op->count; e++) {
        if (!sce) mark(op, e, work);
        sfti_merge_loops_best()->differences(work->x[e], work->x[op->count], work->kept,
                                             (size_t)work->count);
    }
}

/* Magnitudes before and after; for SCE squares of what is kept. */
static sft_code add_norms(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    bool sce = op->method->kind == SFTI_MERGE_SCE;
    (void)err;
    if (sce) cut_differences(op, work);
    for (size_t e = 0; e < op->count; e++) {
        double *x = work->x[e], squares = 0, sums[2] = { 0, 0 };
        for (uint64_t i = 0; sce && i < work->count; i++) squares += x[i] * x[i];
        if (sce) {
            work->sums[e] = squares;
            continue;
        }
        mark(op, e, work);
        sfti_merge_loops_best()->norms(x, work->x[op->count], work->kept, (size_t)work->count,
                                       sums);
        memcpy(work->sums + 2 * e, sums, sizeof sums);
    }
    return SFT_OK;
}

static sft_code check_entry(sfti_merge_op *op, size_t e, bool *cuts, bool *draws, sft_error *err) {
    double density = density_of(op, e), epsilon = op->each[SFTI_MERGE_EPSILON][e];
    double gamma = op->each[SFTI_MERGE_GAMMA][e];
    sfti_merge_mask how = (sfti_merge_mask)op->method->mask;
    if (!(density >= 0))
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a %s of 0 to 1, found a negative one",
                         sfti_merge_param_name(op->method->kind == SFTI_MERGE_SCE
                                                   ? SFTI_MERGE_SELECT_TOPK
                                                   : SFTI_MERGE_DENSITY));
    if (density >= 1) return SFT_OK;
    if (how == SFTI_MASK_INLIERS && !(gamma >= 0 && gamma <= 1))
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a gamma of 0 to 1, found another");
    if (how == SFTI_MASK_RANKED && density > 0
        && !(epsilon >= 0 && density + epsilon < 1 && density - epsilon > 0))
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected density - epsilon above 0 and density + "
                         "epsilon below 1, found others");
    op->chances[e] = (uint64_t)(density * 0x1p53);
    if (how == SFTI_MASK_LARGEST || how == SFTI_MASK_INLIERS) *cuts = true;
    if (how == SFTI_MASK_RANKED) *draws = true;
    return SFT_OK;
}

sft_code sfti_sparse_prepare(sfti_merge_op *op, sft_error *err) {
    bool cuts = false, ranks = false, sce = op->method->kind == SFTI_MERGE_SCE;
    const sft_spec *spec = &op->row->spec;
    sft_code code = SFT_OK;
    size_t sums = sce ? op->count : 2 * op->count;
    op->streams = sce ? 1 : op->count;
    for (size_t e = 0; !code && e < op->streams && op->method->kind != SFTI_MERGE_NEAR; e++)
        code = check_entry(op, e, &cuts, &ranks, err);
    if (code) return code;
    if (ranks) { /* of numbers along the second dimension */
        op->inner = 1;
        for (uint32_t d = 2; d < spec->rank; d++) op->inner *= spec->shape[d];
        op->line = spec->rank < 2 ? op->row->elements : spec->shape[1] * op->inner;
    }
    size_t at_once = op->streams < SFTI_SELECT_STREAMS ? op->streams : SFTI_SELECT_STREAMS;
    code = sfti_merge_passes_begin(op, cuts ? at_once * SFTI_SELECT_COUNTERS : 0, sums, err);
    if (!code && cuts) code = sfti_select(op, sce ? variances : magnitudes, set_tops, err);
    bool scales = !sce && op->method->kind == SFTI_MERGE_SPARSE
               && op->param[SFTI_MERGE_RESCALE] > 0;
    if (code || (!scales && !sce)) return code;
    double *norms = sfti_arena_array(op->arena, sums, sizeof *norms), total = 0;
    op->shares = sfti_arena_array(op->arena, op->count, sizeof *op->shares);
    if (!norms || !op->shares) return sfti_fail_memory(err, sums * sizeof *norms);
    code = sfti_merge_sum(op, add_norms, sums, cuts ? sfti_select_window : NULL, norms, err);
    for (size_t e = 0; e < op->count; e++) {
        double before = norms[sce ? e : 2 * e], after = norms[sce ? e : 2 * e + 1];
        if (sce) op->shares[e] = before / (double)op->row->elements;
        else op->shares[e] = before < LEAST_NORM || after < LEAST_NORM
                          || density_of(op, e) >= 1 ? 1 : before / after;
        total += op->shares[e];
    }
    for (size_t e = 0; sce && e < op->count; e++)
        op->shares[e] = total < 1e-6 ? 1 / (double)op->count : op->shares[e] / total;
    return code;
}

/* ── The result ── */

static double near_swap(double t, double base, double other) {
    double apart = other < base ? base - other : other - base;
    double weight = t / (apart > 1e-6 ? apart : 1e-6);
    weight = weight < 0 ? 0 : weight > 1 ? 1 : weight;
    return weight * other + (1 - weight) * base;
}

#define JOINED 512

/* weights: what differences are multiplied with before their signs are compared; shares: after
 * that; all: their sum. A sum of divisors that is 0 divides nothing. */
static void join_block(const sfti_merge_op *op, const sfti_merge_work *work, uint64_t at, size_t n,
                       const double *weights, const double *shares, double all) {
    const sfti_merge_loops *loops = sfti_merge_loops_best();
    double signs[JOINED] = { 0 }, sums[JOINED] = { 0 }, divisors[JOINED] = { 0 };
    bool sce = op->method->kind == SFTI_MERGE_SCE;
    bool divides = sce || op->param[SFTI_MERGE_NORMALIZE] > 0;
    double lambda = sce ? 1 : op->param[SFTI_MERGE_LAMBDA];
    const double *base = work->x[op->count] + at;
    double *out = work->out + at;
    for (size_t e = 0; e < op->count; e++)
        loops->add(work->x[e] + at, weights[e], n, op->method->signs ? signs : sums);
    for (size_t e = 0; op->method->signs && e < op->count; e++)
        loops->agree(work->x[e] + at, signs, weights[e], sce ? shares[e] : 1, shares[e], n, sums,
                     divisors);
    double whole = all < 1e-8 && all > -1e-8 ? 1 : all;
    for (size_t i = 0; divides && !op->method->signs && i < n; i++) divisors[i] = whole;
    if (divides) {
        loops->finish(base, sums, divisors, sce ? 1e-6 : -DBL_MAX, lambda, n, out);
    } else {
        memcpy(out, base, n * sizeof *out);
        loops->add(sums, lambda, n, out);
    }
}

sft_code sfti_sparse_step(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    const double *base = work->x[op->count];
    bool sce = op->method->kind == SFTI_MERGE_SCE;
    double weights[SFTI_MERGE_MODELS], shares[SFTI_MERGE_MODELS], all = 0;
    (void)err;
    if (op->method->kind == SFTI_MERGE_NEAR) {
        for (uint64_t i = 0; i < work->count; i++)
            work->out[i] = near_swap(op->param[SFTI_MERGE_T], base[i], work->x[0][i]);
        return SFT_OK;
    }
    cut_differences(op, work);
    for (size_t e = 0; e < op->count; e++) {
        shares[e] = sce ? op->shares[e] : op->each[SFTI_MERGE_WEIGHT][e];
        weights[e] = sce ? 1 : shares[e] * (op->shares ? op->shares[e] : 1);
        all += shares[e];
    }
    for (uint64_t at = 0; at < work->count; at += JOINED)
        join_block(op, work, at, work->count - at < JOINED ? (size_t)(work->count - at) : JOINED,
                   weights, shares, all);
    return SFT_OK;
}
