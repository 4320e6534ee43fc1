/* Methods that are sums of the inputs with factors, which hang at most on products of the inputs:
 * norms and angles are in the matrix of all products (Gram's). Tests: tests/merge. */
#include "merge/work.h"

#include "base/error.h"
#include "base/number.h"

#include <string.h>

#define COLUMNS_MOST ((uint64_t)1 << 20)
#define COLLINEAR 1e-14 /* 1 - cosine squared: no more than rounding leaves */
#define T_MOST 1e5
#define OPPOSITE 1e-10 /* 1 + cosine, and */
#define LEAST_MEAN 1e-5 /* of directions: below them products do not tell the angle */

/* Products of the entries, or of their differences to the base. */
typedef struct mix_gram {
    const double *sums;
    size_t count;
} mix_gram;

static double dot_of(const mix_gram *g, size_t i, size_t k) {
    size_t a = i < k ? i : k, b = i < k ? k : i;
    return g->sums[a * g->count - a * (a - 1) / 2 + (b - a)];
}

static double norm_of(const mix_gram *g, size_t i) { return sfti_root(dot_of(g, i, i)); }
static double clamped(double x) { return x > 1 ? 1 : x < -1 ? -1 : x; }
static double size_of(double x) { return x < 0 ? -x : x; }

/* The square of the length of a sum with factors, of vectors that are divided by `sizes`. */
static double square_of(const mix_gram *g, const double *factors, const double *sizes) {
    double sum = 0;
    for (size_t i = 0; i < g->count; i++)
        for (size_t k = 0; k < g->count; k++)
            if (sizes[i] > 0 && sizes[k] > 0)
                sum += factors[i] * factors[k] * (dot_of(g, i, k) / sizes[i] / sizes[k]);
    return sum > 0 ? sum : 0;
}

/* ── Each method's factors ── */

/* Further away than T_MOST nothing is left of the sine's digits. */
static sft_code between(double t, double angle, double *out, sft_error *err) {
    double sine = sfti_merge_sine(angle);
    if (!(size_of(t) <= T_MOST))
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected t (of nuslerp: the second weight over "
                         "the sum of both) of -100000 to 100000, found %g", t);
    out[0] = sfti_merge_sine((1 - t) * angle) / sine;
    out[1] = sfti_merge_sine(t * angle) / sine;
    return SFT_OK;
}

/* The entry is the one the base turns to. */
static sft_code slerp(const sfti_merge_op *op, const mix_gram *g, double *out, sft_error *err) {
    double t = op->param[SFTI_MERGE_T], a = norm_of(g, 0), b = norm_of(g, 1);
    double cosine = clamped(dot_of(g, 0, 1) / (a > 1e-8 ? a : 1) / (b > 1e-8 ? b : 1));
    out[0] = 1 - t;
    out[1] = t;
    if (size_of(cosine) > 0.9995) return SFT_OK;
    return between(t, sfti_merge_arc_cosine(cosine), out, err);
}

static sft_code refuse_opposite(const sfti_merge_op *op, sft_error *err) {
    return sfti_fail_tensor(err, SFT_CAST_VALUE, SFT_NO_OFFSET, op->row->spec.name,
                            "expected vectors whose directions have a mean, found that they cancel "
                            "out: use other weights, or another method");
}

static sft_code nuslerp(const sfti_merge_op *op, const mix_gram *g, double *out, sft_error *err) {
    const double *weights = op->each[SFTI_MERGE_WEIGHT];
    double total = weights[0] + weights[1], a = norm_of(g, 0), b = norm_of(g, 1);
    double t = size_of(total) < 1e-6 ? 0.5 : weights[1] / total;
    double cosine = clamped(dot_of(g, 0, 1) / (a > 1e-7 ? a : 1e-7) / (b > 1e-7 ? b : 1e-7));
    out[0] = 1 - t;
    out[1] = t;
    if (1 - cosine * cosine <= COLLINEAR) return SFT_OK;
    if (1 + cosine < OPPOSITE) return refuse_opposite(op, err);
    return between(t, sfti_merge_arc_cosine(cosine), out, err);
}

/* What is summed to the mean of the directions. */
static sft_code direct(const sfti_merge_op *op, const mix_gram *g, double *weights, double *out,
                       sft_error *err) {
    double total = 0;
    for (size_t i = 0; i < g->count; i++) total += op->each[SFTI_MERGE_WEIGHT][i];
    if (!(op->param[SFTI_MERGE_NORMALIZE_WEIGHTS] > 0)) total = 1;
    if (!(size_of(total) > 0))
        return sfti_fail(err, SFT_BAD_ARGUMENT,
                         "expected weights whose sum is not 0 for multislerp, found a sum of 0");
    for (size_t i = 0; i < g->count; i++) {
        weights[i] = op->each[SFTI_MERGE_WEIGHT][i] / total;
        out[i] = weights[i] / (norm_of(g, i) + op->param[SFTI_MERGE_EPS]);
    }
    return SFT_OK;
}

/* What the tangent vectors add is 0 but for rounding: the result is the mean's direction. The
 * mean's square is in g->sums[1]: products do not tell it where directions cancel out. */
static sft_code multislerp(const sfti_merge_op *op, const mix_gram *g, double *out,
                           sft_error *err) {
    double eps = op->param[SFTI_MERGE_EPS], length = 0, weights[SFTI_MERGE_MODELS];
    out[0] = 1;
    if (g->count == 1) return SFT_OK;
    sft_code code = direct(op, g, weights, out, err);
    if (code) return code;
    double mean = sfti_root(g->sums[1]), cosine = sfti_merge_cosine(eps);
    if (mean < eps && g->count > 2) return refuse_opposite(op, err);
    for (size_t i = 0; i < g->count; i++) length += norm_of(g, i) * weights[i];
    for (size_t i = 0; i < g->count; i++)
        out[i] = mean < eps ? weights[i] : out[i] / mean * cosine * length;
    return SFT_OK;
}

/* The mean on the sphere, step by step, as a sum of the unit vectors with factors. */
static sft_code karcher(const sfti_merge_op *op, const mix_gram *g, double *out, sft_error *err) {
    double tol = op->param[SFTI_MERGE_TOL], scale = 0, share = 0;
    double sizes[SFTI_MERGE_MODELS], tangent[SFTI_MERGE_MODELS];
    size_t first = g->count;
    out[0] = 1; /* of one model, however short */
    if (g->count == 1) return SFT_OK;
    for (size_t i = 0; i < g->count; i++) {
        sizes[i] = norm_of(g, i);
        scale += sizes[i] / (double)g->count;
        if (!(sizes[i] > tol)) sizes[i] = 0;
        else if (first == g->count) first = i;
        share += sizes[i] > 0;
        out[i] = sizes[i] > 0;
    }
    if (first == g->count) return SFT_OK;
    double length = sfti_root(square_of(g, out, sizes)) / share;
    if (length >= tol && length < LEAST_MEAN) return refuse_opposite(op, err);
    for (size_t i = 0; i < g->count; i++)
        out[i] = length < tol ? (double)(i == first) : out[i] / share / length;
    for (int step = 0; step < (int)op->param[SFTI_MERGE_MAX_ITER]; step++) {
        double along = 0;
        for (size_t i = 0; i < g->count; i++) {
            double cosine = 0;
            tangent[i] = 0;
            for (size_t k = 0; k < g->count && sizes[i] > 0; k++)
                if (sizes[k] > 0) cosine += out[k] * (dot_of(g, i, k) / sizes[i] / sizes[k]);
            cosine = clamped(cosine);
            double angle = sfti_merge_arc_cosine(cosine);
            if (!(sizes[i] > 0) || angle < tol || 1 + cosine < COLLINEAR) continue;
            if (1 + cosine < OPPOSITE) return refuse_opposite(op, err);
            tangent[i] = angle / sfti_merge_sine(angle) / share;
            along += tangent[i] * cosine;
        }
        for (size_t i = 0; i < g->count; i++) tangent[i] -= along * out[i];
        length = sfti_root(square_of(g, tangent, sizes));
        if (length < tol) break;
        double cosine = sfti_merge_cosine(length), sine = sfti_merge_sine(length) / length;
        for (size_t i = 0; i < g->count; i++) out[i] = cosine * out[i] + sine * tangent[i];
        length = sfti_root(square_of(g, out, sizes));
        for (size_t i = 0; i < g->count && length > tol; i++) out[i] /= length;
    }
    for (size_t i = 0; i < g->count; i++) out[i] = sizes[i] > 0 ? out[i] * scale / sizes[i] : 0;
    return SFT_OK;
}

static void model_stock(const mix_gram *g, double *out) {
    double sum = 0, count = (double)g->count, pairs = count * (count - 1) / 2;
    for (size_t i = 0; i < g->count; i++)
        for (size_t k = i + 1; k < g->count; k++) {
            double sizes = norm_of(g, i) * norm_of(g, k);
            sum += clamped(dot_of(g, i, k) / (sizes > 1e-6 ? sizes : 1e-6));
        }
    double cosine = sum / pairs, below = 1 + (count - 1) * cosine;
    double t = size_of(below) < 1e-6 ? 0 : count * cosine / below;
    for (size_t i = 0; i < g->count; i++) out[i] = t / count;
}

static sft_code told(const sfti_merge_op *op, double *out, sft_error *err) {
    const double *weights = op->each[SFTI_MERGE_WEIGHT];
    bool task = op->method->kind == SFTI_MERGE_TASK;
    double total = 0;
    for (size_t i = 0; i < op->count; i++) total += weights[i];
    if (!(op->param[SFTI_MERGE_NORMALIZE] > 0) || (task && size_of(total) < 1e-8)) total = 1;
    if (!(size_of(total) > 0))
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected weights whose sum is not 0, found a "
                         "sum of 0: normalize=false takes them as they are");
    for (size_t i = 0; i < op->count; i++)
        out[i] = weights[i] / total * (task ? op->param[SFTI_MERGE_LAMBDA] : 1);
    return SFT_OK;
}

/* ── All of them ── */

bool sfti_mix_is(const sfti_merge_method *method) {
    return method->kind < SFTI_MERGE_SPARSE;
}

static bool needs_products(const sfti_merge_op *op) {
    return op->method->kind >= SFTI_MERGE_SLERP;
}

/* Whether the products are of differences to the base. */
static bool takes_differences(const sfti_merge_op *op) {
    bool alone = op->method->kind == SFTI_MERGE_MULTISLERP && op->count == 1; /* it is taken */
    return op->has_base && op->method->kind != SFTI_MERGE_SLERP && !alone;
}

static size_t product_count(const sfti_merge_op *op) {
    size_t n = op->count + (op->has_base && !takes_differences(op));
    return n * (n + 1) / 2;
}

static sft_code mix_factors(const sfti_merge_op *op, const double *sums, double *out,
                             sft_error *err) {
    mix_gram g = { sums, op->count + (op->has_base && op->method->kind == SFTI_MERGE_SLERP) };
    double other;
    sft_code code = SFT_OK;
    for (size_t i = 0; needs_products(op) && i < product_count(op); i++)
        if (!(sums[i] - sums[i] >= 0))
            return sfti_fail_tensor(err, SFT_CAST_VALUE, SFT_NO_OFFSET, op->row->spec.name,
                                    "expected values whose squares F64 can sum, found larger ones");
    switch ((sfti_merge_kind)op->method->kind) {
    case SFTI_MERGE_ADD:
        out[0] = 1;
        out[1] = op->param[SFTI_MERGE_ALPHA];
        out[2] = 0;
        return SFT_OK;
    case SFTI_MERGE_PASS: out[0] = op->each[SFTI_MERGE_SCALE][0]; return SFT_OK;
    case SFTI_MERGE_SLERP: /* the base is the last of the values */
        code = slerp(op, &g, out, err);
        other = out[0];
        out[0] = out[1];
        out[1] = other;
        return code;
    case SFTI_MERGE_NUSLERP: code = nuslerp(op, &g, out, err); break;
    case SFTI_MERGE_MULTISLERP: code = multislerp(op, &g, out, err); break;
    case SFTI_MERGE_KARCHER: code = karcher(op, &g, out, err); break;
    case SFTI_MERGE_STOCK: model_stock(&g, out); break;
    case SFTI_MERGE_LINEAR: case SFTI_MERGE_TASK: code = told(op, out, err); break;
    case SFTI_MERGE_SPARSE: case SFTI_MERGE_SCE: case SFTI_MERGE_NEAR: break;
    }
    if (op->has_base) out[op->count] = takes_differences(op);
    return code;
}

/* The first model of add_difference is itself. */
static void subtract_base(const sfti_merge_op *op, const sfti_merge_work *work) {
    if (!takes_differences(op)) return;
    for (size_t e = op->method->kind == SFTI_MERGE_ADD; e < op->count; e++)
        sfti_merge_loops_best()->subtract(work->x[e], work->x[op->count], (size_t)work->count);
}

static sft_code add_products(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    (void)err;
    subtract_base(op, work);
    sfti_merge_products(work->x, op->count + (op->has_base && !takes_differences(op)), 0,
                        work->count, work->sums);
    return SFT_OK;
}

/* In pieces, so that sums stay near. */
static void combine(const sfti_merge_op *op, const sfti_merge_work *work, const double *factors,
                    uint64_t first, uint64_t count) {
    const sfti_merge_loops *loops = sfti_merge_loops_best();
    for (uint64_t at = first, n; at < first + count; at += n) {
        n = first + count - at < SFTI_MERGE_PIECE ? first + count - at : SFTI_MERGE_PIECE;
        loops->multiply(work->x[0] + at, factors[0], (size_t)n, work->out + at);
        for (size_t e = 1; e < op->count + op->has_base; e++)
            loops->add(work->x[e] + at, factors[e], (size_t)n, work->out + at);
    }
}

static sft_code add_mean(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    (void)err;
    subtract_base(op, work);
    combine(op, work, op->factors, 0, work->count);
    sfti_merge_products(&work->out, 1, 0, work->count, work->sums);
    return SFT_OK;
}

/* Two entries a column: chunks one after the other. */
static sft_code add_columns(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    uint64_t columns = op->row->elements / op->row->spec.shape[0], at = work->first % columns;
    (void)err;
    subtract_base(op, work);
    for (uint64_t i = 0; i < work->count; i++) {
        double a = work->x[0][i], b = work->x[1][i], *sums = op->factors + 3 * at;
        sums[0] += a * a;
        sums[1] += a * b;
        sums[2] += b * b;
        if (++at == columns) at = 0;
    }
    return SFT_OK;
}

static sft_code prepare_columns(sfti_merge_op *op, sft_error *err) {
    uint64_t columns = op->row->elements / op->row->spec.shape[0];
    double factors[3];
    sft_code code = SFT_OK;
    if (columns > COLUMNS_MOST) {
        code = sfti_fail_tensor(err, SFT_ADDRESS_SPACE, SFT_NO_OFFSET, op->row->spec.name,
                                "expected at most %llu columns for nuslerp_row_wise, found %llu",
                                (unsigned long long)COLUMNS_MOST, (unsigned long long)columns);
        sfti_hint(err, SFT_HINT_NONE);
        return code;
    }
    op->factors = sfti_arena_array(op->arena, columns * 3, sizeof *op->factors);
    if (!op->factors) return sfti_fail_memory(err, columns * 3 * sizeof *op->factors);
    for (uint64_t i = 0; i < columns * 3; i++) op->factors[i] = 0;
    for (uint64_t k = 0; !code && k < op->chunks; k++)
        code = sfti_merge_pass(op, k, 1, add_columns, false, err);
    for (uint64_t i = 0; !code && i < columns; i++) {
        code = mix_factors(op, op->factors + 3 * i, factors, err);
        memcpy(op->factors + 3 * i, factors, (op->count + op->has_base) * sizeof *factors);
    }
    return code;
}

/* How the factors are divided over the tensor. */
static void find_lines(sfti_merge_op *op) {
    const sft_spec *spec = &op->row->spec;
    bool flat = spec->rank < 2;
    if (op->method->kind == SFTI_MERGE_NUSLERP)
        flat = flat || op->param[SFTI_MERGE_FLATTEN] > 0;
    else
        flat = flat || op->method->kind != SFTI_MERGE_STOCK
            || op->param[SFTI_MERGE_FILTER_WISE] <= 0;
    if (flat) return;
    op->by_column = op->method->kind == SFTI_MERGE_NUSLERP && op->param[SFTI_MERGE_ROW_WISE] > 0;
    if (!op->by_column) op->line = spec->shape[spec->rank - 1];
}

sft_code sfti_mix_prepare(sfti_merge_op *op, sft_error *err) {
    find_lines(op);
    size_t sums = needs_products(op) ? product_count(op) : 0, all = op->count + op->has_base;
    sft_code code = sfti_merge_passes_begin(op, 0, op->line || op->by_column ? 0 : sums, err);
    if (code || op->line) return code;
    if (op->by_column) return prepare_columns(op, err);
    double *gram = sfti_arena_array(op->arena, sums, sizeof *gram);
    op->factors = sfti_arena_array(op->arena, all, sizeof *op->factors);
    if (!gram || !op->factors) return sfti_fail_memory(err, sums * sizeof *gram);
    if (sums > 0) code = sfti_merge_sum(op, add_products, sums, NULL, gram, err);
    if (!code && op->method->kind == SFTI_MERGE_MULTISLERP && op->count > 1) {
        double weights[SFTI_MERGE_MODELS];
        code = direct(op, &(mix_gram){ gram, op->count }, weights, op->factors, err);
        if (op->has_base) op->factors[op->count] = 0;
        if (!code) code = sfti_merge_sum(op, add_mean, 1, NULL, &gram[1], err);
    }
    return code ? code : mix_factors(op, gram, op->factors, err);
}

/* Factors of each line, by its products alone. */
static sft_code combine_lines(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    double sums[SFTI_MERGE_MODELS * (SFTI_MERGE_MODELS + 1) / 2], factors[SFTI_MERGE_MODELS + 1];
    sft_code code = SFT_OK;
    for (uint64_t at = 0; !code && at < work->count; at += op->line) {
        sfti_merge_products(work->x, op->count, at, op->line, sums);
        code = mix_factors(op, sums, factors, err);
        if (!code) combine(op, work, factors, at, op->line);
    }
    return code;
}

sft_code sfti_mix_step(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    subtract_base(op, work);
    if (op->line) return combine_lines(op, work, err);
    if (!op->by_column) {
        combine(op, work, op->factors, 0, work->count);
        return SFT_OK;
    }
    uint64_t columns = op->row->elements / op->row->spec.shape[0], at = work->first % columns;
    for (uint64_t i = 0; i < work->count; i++) {
        const double *factors = op->factors + 3 * at;
        work->out[i] = factors[0] * work->x[0][i];
        for (size_t e = 1; e < op->count + op->has_base; e++)
            work->out[i] += factors[e] * work->x[e][i];
        if (++at == columns) at = 0;
    }
    return SFT_OK;
}
