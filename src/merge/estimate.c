/* Which sum of other models a model is: least squares over each block. Tests: tests/merge. */
#include "merge/work.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/job.h"
#include "base/number.h"

#include <string.h>

#define SOLVE_LEAST 1e-14 /* of a pivot's share of what it was */
#define NOISE_SLACK 2     /* times the error that rounding explains; more where elements are few */
#define SUMS_SLACK 1e-7
#define SQUARES_LEAST 1e-280
#define SQUARES_MOST 1e280

/* Unknowns: shares of the differences of all models but the first to it, and of the first itself;
 * what is to be explained is the difference of the result to the first. */
typedef struct mix_sums {
    double *products; /* of all pairs of the unknowns and the result's difference, upper triangle */
    double noise;     /* squares of half a step of the result's dtype, over 3 */
    uint64_t elements;
    size_t tensors, block;
} mix_sums;

typedef struct mix_run {
    const sfti_merge_rows *rows;
    const sfti_merge_plan *plan;
    size_t count;     /* unknowns */
    mix_sums *sums;   /* of each tensor */
    size_t tensors;
    sft_span *names;
    size_t blocks;
    sfti_names table;
    uint8_t *raw;
    float *floats;
    double **x;
} mix_run;

static sft_span block_name(const void *ctx, uint32_t entry) {
    return ((const mix_run *)ctx)->names[entry];
}

/* The layer that a tensor is in, or the part before its last two names. */
static sft_span mixture_block_of(sft_span name) {
    sft_span stack;
    uint64_t layer;
    if (!sfti_merge_layer(name, &stack, &layer)) return (sft_span){ name.data, 0 };
    size_t end = stack.len + 1;
    while (end < name.len && name.data[end] != '.') end++;
    return (sft_span){ name.data, end };
}

/* The square of half the distance of a value's neighbours in the dtype, over 3: what rounding adds
 * to a mean square. */
static double rounding_noise(const sfti_float_form *form, double value) {
    uint64_t word;
    double step;
    memcpy(&word, &value, sizeof word);
    int exponent = (int)(word >> 52 & 0x7ff) - 1023, /* -0 is 0 */
        least = 1 - form->bias;
    if (exponent < least) exponent = least;
    exponent -= form->mantissa;
    if (exponent < -500) return 0;
    word = (uint64_t)(exponent + 1023) << 52;
    memcpy(&step, &word, sizeof step);
    return step * step / 12;
}

/* Whether this is the sum of squares, which those of F64 may be too large or too small for. */
static bool is_summed(double square, const double *x, uint64_t n) {
    bool any = !(square > SQUARES_LEAST && square < SQUARES_MOST);
    for (uint64_t i = 0; any && i < n; i++)
        if (x[i] < 0 || x[i] > 0) return false;
    return true;
}

/* x: the result first, then the models. false: of one, which *blame is, squares are no numbers. */
static bool add_chunk(const mix_run *run, mix_sums *sums, sft_dtype dtype, uint64_t n,
                      size_t *blame) {
    size_t k = run->count;
    const sfti_float_form *form = sfti_float_form_of(dtype);
    double products[(SFTI_MERGE_MODELS + 1) * (SFTI_MERGE_MODELS + 2) / 2], noise = 0;
    double *order[SFTI_MERGE_MODELS + 1];
    for (uint64_t i = 0; i < n; i++) noise += rounding_noise(form, run->x[0][i]);
    for (size_t m = 0; m <= k; m++) {
        if (m == 1) continue;
        for (uint64_t i = 0; i < n; i++) run->x[m][i] -= run->x[1][i];
    }
    for (size_t m = 0; m < k; m++) order[m] = run->x[m + 1];
    order[k] = run->x[0];
    sfti_merge_products(order, k + 1, 0, n, products);
    for (size_t m = 0, at = 0; m <= k; at += k + 1 - m++) {
        *blame = m < k ? m + 1 : 0;
        if (!is_summed(products[at], order[m], n)) return false;
    }
    for (size_t i = 0; i < (k + 1) * (k + 2) / 2; i++) sums->products[i] += products[i];
    sums->noise += noise;
    sums->elements += n;
    return true;
}

/* The sums of a tensor to those of several, by how exact it is. */
static void join_sums(const mix_sums *s, size_t pairs, mix_sums *plain, mix_sums *exact) {
    double by = s->noise > 0 ? (double)s->elements / s->noise : 1;
    for (size_t i = 0; i < pairs; i++) {
        plain->products[i] += s->products[i];
        exact->products[i] += s->products[i] * by;
    }
    plain->noise += s->noise;
    plain->elements += s->elements;
    plain->tensors += s->tensors;
}

static double entry_of(const mix_sums *s, size_t count, size_t i, size_t k) {
    size_t a = i < k ? i : k, b = i < k ? k : i;
    return s->products[a * (count + 1) - a * (a + 1) / 2 + b];
}

/* Solves for the unknowns, pivots on the diagonal, largest first; columns that hang on others stay
 * 0 and are marked. */
static void solve_sums(const mix_sums *s, size_t count, double *out, bool *unsure) {
    double a[SFTI_MERGE_MODELS][SFTI_MERGE_MODELS + 1], before[SFTI_MERGE_MODELS];
    size_t order[SFTI_MERGE_MODELS], rank = 0;
    bool used[SFTI_MERGE_MODELS] = { false };
    for (size_t i = 0; i < count; i++) {
        before[i] = entry_of(s, count, i, i);
        out[i] = 0;
        unsure[i] = true;
        for (size_t k = 0; k <= count; k++) a[i][k] = entry_of(s, count, i, k);
    }
    for (; rank < count; rank++) {
        size_t best = count;
        for (size_t i = 0; i < count; i++) {
            if (used[i] || !(a[i][i] > SOLVE_LEAST * before[i])) continue;
            if (best == count || a[i][i] / before[i] > a[best][best] / before[best]) best = i;
        }
        if (best == count) break;
        used[best] = true;
        order[rank] = best;
        unsure[best] = false;
        for (size_t i = 0; i < count; i++) {
            if (i == best) continue;
            double factor = a[i][best] / a[best][best];
            for (size_t k = 0; k <= count; k++) a[i][k] -= factor * a[best][k];
        }
    }
    for (size_t r = 0; r < rank; r++) out[order[r]] = a[order[r]][count] / a[order[r]][order[r]];
}

/* The root of the mean square that shares leave unexplained; whether rounding explains it. */
static double residual_of(const mix_sums *s, size_t count, const double *shares, bool *fits) {
    double left = entry_of(s, count, count, count), elements = (double)s->elements;
    double change = left;
    for (size_t i = 0; i < count; i++) {
        left -= 2 * shares[i] * entry_of(s, count, i, count);
        for (size_t k = 0; k < count; k++) left += shares[i] * shares[k] * entry_of(s, count, i, k);
    }
    if (!(elements > 0)) elements = 1;
    left = sfti_root(left > 0 ? left / elements : 0);
    /* and what rounding of the sums themselves leaves */
    *fits = left <= NOISE_SLACK * (1 + 2 / sfti_root(elements)) * sfti_root(s->noise / elements)
                    + SUMS_SLACK * sfti_root(change / elements);
    return left;
}

/* The share of the first model is what is left of 1 once the others have theirs; it is not known
 * where one of theirs is not, or where that model is 0. */
static void settle_block(const mix_run *run, const mix_sums *s, const double *shares,
                         const bool *unsure, double *weights, sft_mixture_block *block) {
    size_t k = run->count;
    double elements = s->elements ? (double)s->elements : 1, not_known, rest = 1 + shares[0];
    uint64_t word = UINT64_C(0x7FF8) << 48;
    bool sure = !unsure[0];
    memcpy(&not_known, &word, sizeof not_known);
    for (size_t i = 1; i < k; i++) {
        rest -= shares[i];
        sure = sure && !unsure[i];
        weights[i] = unsure[i] ? not_known : shares[i];
    }
    weights[0] = sure ? rest : not_known;
    block->tensors = s->tensors;
    block->elements = s->elements;
    block->residual = residual_of(s, k, shares, &block->fits);
    block->rounding = sfti_root(s->noise / elements);
    block->change = sfti_root(entry_of(s, k, k, k) / elements);
}

static sft_code sum_row(mix_run *run, const sfti_merge_row *row, mix_sums *sums, size_t *blame,
                        sft_error *err) {
    const sft_tensor *result = sft_set_tensor_at(run->plan->models[0].set, row->tensor);
    sft_code code = SFT_OK;
    sums->tensors++;
    for (uint64_t at = 0; !code && at < row->elements; at += SFTI_MERGE_CHUNK) {
        uint64_t n = row->elements - at < SFTI_MERGE_CHUNK ? row->elements - at : SFTI_MERGE_CHUNK;
        for (size_t m = 0; !code && m <= run->count; m++) {
            *blame = m;
            code = sfti_merge_read(&run->plan->models[m], row->of[m], at, n, run->raw, run->floats,
                                   run->x[m], err);
        }
        if (!code && !add_chunk(run, sums, result->dtype, n, blame)) {
            code = sfti_fail_tensor(err, SFT_CAST_VALUE, result->offset, result->name,
                                    "expected differences from 1e-140 to 1e140, or 0, found "
                                    "others");
            sfti_hint(err, SFT_HINT_NONE);
        }
    }
    return code;
}

/* The sums of another tensor, of the block of that name. */
static sft_code begin_sums(mix_run *run, sfti_arena *arena, sft_span name, mix_sums **out,
                           sft_error *err) {
    size_t pairs = (run->count + 1) * (run->count + 2) / 2;
    uint32_t at = sfti_names_find(&run->table, name);
    double *products = sfti_arena_array(arena, pairs, sizeof *products);
    if (!products) return sfti_fail_memory(err, pairs * sizeof *products);
    memset(products, 0, pairs * sizeof *products);
    if (at == SFTI_NO_NAME) {
        at = (uint32_t)run->blocks++;
        run->names[at] = name;
        (void)sfti_names_add(&run->table, name, at);
    }
    *out = &run->sums[run->tensors++];
    **out = (mix_sums){ .products = products, .block = at };
    return SFT_OK;
}

static sft_code mixture_memory(mix_run *run, sfti_arena *arena, sft_error *err) {
    size_t rows = run->rows->count;
    run->sums = sfti_arena_array(arena, (uint64_t)rows + 1, sizeof *run->sums);
    run->names = sfti_arena_array(arena, (uint64_t)rows + 1, sizeof *run->names);
    run->raw = sfti_arena_array(arena, SFTI_MERGE_CHUNK, 8);
    run->floats = sfti_arena_array(arena, SFTI_MERGE_CHUNK * 2, sizeof *run->floats);
    run->x = sfti_arena_array(arena, run->count + 1, sizeof *run->x);
    bool fine = run->sums && run->names && run->raw && run->floats && run->x
             && sfti_names_draw(&run->table, (uint64_t)rows + 1, block_name, run, arena);
    for (size_t m = 0; fine && m <= run->count; m++) {
        run->x[m] = sfti_arena_array(arena, SFTI_MERGE_CHUNK, sizeof(double));
        fine = run->x[m] != NULL;
    }
    return fine ? SFT_OK : sfti_fail_memory(err, rows * sizeof *run->sums);
}

/* Blocks in the order of their first tensors; the last is of all. What is estimated fits if it fits
 * each tensor: large ones would hide small ones. */
static sft_code settle(mix_run *run, sfti_mixture *out, sft_error *err) {
    size_t k = run->count, pairs = (k + 1) * (k + 2) / 2, blocks = run->blocks + 1;
    double *weights = sfti_arena_array(&out->arena, (uint64_t)blocks * k, sizeof *weights);
    double *products = sfti_arena_array(&out->arena, (uint64_t)blocks * 2 * pairs,
                                        sizeof *products);
    double *shares = sfti_arena_array(&out->arena, (uint64_t)blocks * k, sizeof *shares);
    mix_sums *sums = sfti_arena_array(&out->arena, (uint64_t)blocks * 2, sizeof *sums);
    bool unsure[SFTI_MERGE_MODELS], fits;
    out->blocks = sfti_arena_array(&out->arena, blocks, sizeof *out->blocks);
    if (!out->blocks || !weights || !products || !shares || !sums)
        return sfti_fail_memory(err, blocks * pairs * sizeof *products);
    memset(products, 0, blocks * pairs * 2 * sizeof *products);
    for (size_t b = 0; b < 2 * blocks; b++)
        sums[b] = (mix_sums){ .products = products + b * pairs };
    for (size_t i = 0; i < run->tensors; i++) {
        size_t b = run->sums[i].block;
        join_sums(&run->sums[i], pairs, &sums[2 * b], &sums[2 * b + 1]);
        join_sums(&run->sums[i], pairs, &sums[2 * blocks - 2], &sums[2 * blocks - 1]);
    }
    for (size_t b = 0;; b++) { /* the last is of all */
        sft_mixture_block *block = &out->blocks[b];
        *block = (sft_mixture_block){ .name = { NULL, 0 }, .weights = weights + b * k };
        solve_sums(&sums[2 * b + 1], k, shares + b * k, unsure);
        settle_block(run, &sums[2 * b], shares + b * k, unsure, weights + b * k, block);
        if (b == run->blocks) break;
        /* Names of the models end with them. */
        sft_span name = run->names[b];
        block->name = (sft_span){ sfti_arena_copy(&out->arena, name.data, name.len), name.len };
        if (!block->name.data) return sfti_fail_memory(err, name.len);
    }
    out->count = blocks;
    for (size_t i = 0; i < run->tensors; i++)
        for (size_t last = 0; last < 2; last++) {
            size_t b = last ? run->blocks : run->sums[i].block;
            (void)residual_of(&run->sums[i], k, shares + b * k, &fits);
            out->blocks[b].fits = out->blocks[b].fits && fits;
        }
    return SFT_OK;
}

sft_code sfti_mixture_new(const sfti_merge_model *result, const sfti_merge_model *models,
                          size_t count, const sft_job *job, const sft_allocator *alloc,
                          sfti_mixture *out, size_t *blame, sft_error *err) {
    sfti_merge_model all[SFTI_MERGE_MODELS];
    sfti_merge_settings none = { .count = 0 };
    sfti_merge_rows rows;
    uint64_t done = 0, total = 0;
    *out = (sfti_mixture){ .arena = { .alloc = sfti_allocator(alloc) }, .models = count };
    if (count == 0 || count >= SFTI_MERGE_MODELS)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected 1 to %d models, found %zu",
                         SFTI_MERGE_MODELS - 1, count);
    all[0] = *result;
    memcpy(all + 1, models, count * sizeof *models);
    sfti_merge_plan plan = { .method = sfti_merge_method_of(sft_span_cstr("linear")),
                             .models = all, .count = count + 1, .base = SIZE_MAX,
                             .settings = &none, .dtype = SFT_F32, .ignore_missing = true };
    mix_run run = { .rows = &rows, .plan = &plan, .count = count };
    sft_code code = sfti_merge_rows_find(&plan, &out->arena, &rows, blame, err);
    if (!code) code = mixture_memory(&run, &out->arena, err);
    for (size_t i = 0; !code && i < rows.count; i++) sfti_total_add(&total, rows.rows[i].elements);
    for (size_t i = 0; !code && i < rows.count; i++) {
        const sfti_merge_row *row = &rows.rows[i];
        const sft_tensor *tensor = sft_set_tensor_at(result->set, row->tensor);
        bool there = sfti_merge_takes(tensor->dtype) && !row->is_mixed;
        mix_sums *sums = NULL;
        for (size_t m = 0; m <= count; m++) there = there && row->of[m] != SFTI_MERGE_ALL;
        done += row->elements;
        if (!there) {
            out->left_out++;
            continue;
        }
        code = begin_sums(&run, &out->arena, mixture_block_of(row->spec.name), &sums, err);
        if (!code) code = sum_row(&run, row, sums, blame, err);
        if (!code) code = sfti_job_tick(job, done, total, err);
    }
    if (!code) *blame = SIZE_MAX;
    return code ? code : settle(&run, out, err);
}

void sfti_mixture_free(sfti_mixture *mixture) {
    sfti_arena_free(&mixture->arena);
}
