/* Norms of what modules add. */
#include "adapter/tall.h"

#include "base/error.h"
#include "base/number.h"

#include <string.h>

#define NORM_ELEMENTS ((uint64_t)1 << 18)
#define NORM_WORK 8e9 /* multiplications for factors that may be of a file of a few KB: seconds */
#define HADAMARD_MOST 1024

static double size_of_scale(double scale) { return scale < 0 ? -scale : scale; }

static double sum_of_squares(const float *at, uint64_t count) {
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += (double)at[i] * (double)at[i];
    return sum;
}

/* The trace of (U^T U)(D D^T), of rank x rank. */
static sft_code norm_of_product(const sfti_matrix *up, const sfti_matrix *down, sfti_arena *arena,
                                double *out, sft_error *err) {
    uint64_t rank = up->cols;
    sfti_tall left = { up->at, up->rows, rank, false };
    sfti_tall right = { down->at, down->cols, rank, true };
    double sum = 0, *block = sfti_tall_numbers(arena, 64, rank, err);
    double *grams = sfti_tall_numbers(arena, 2 * rank, rank, err);
    if (!block || !grams) return SFT_OUT_OF_MEMORY;
    sfti_tall_gram(&left, block, grams);
    sfti_tall_gram(&right, block, grams + rank * rank);
    for (uint64_t i = 0; i < rank * rank; i++) sum += grams[i] * grams[rank * rank + i];
    *out = sfti_root(sum > 0 ? sum : 0);
    return SFT_OK;
}

/* Adds the Gram matrix, of n x n below its diagonal, of the matrix whose rows are all products of
 * an element of x's row and one of y's; across: of columns. row: n. */
static void add_gram(const sfti_matrix *x, const sfti_matrix *y, bool across, double *row,
                     double *gram) {
    uint64_t count = across ? x->cols : x->rows, step = across ? x->cols : 1;
    uint64_t first = across ? x->rows : x->cols, second = across ? y->rows : y->cols;
    uint64_t n = first * second;
    for (uint64_t r = 0; r < count; r++) {
        const float *one = x->at + (across ? r : r * first);
        const float *other = y->at + (across ? r : r * second);
        for (uint64_t i = 0; i < n; i++)
            row[i] = (double)one[i / second * step] * (double)other[i % second * step];
        for (uint64_t i = 0; i < n; i++)
            for (uint64_t j = 0; j <= i; j++) gram[i * n + j] += row[i] * row[j];
    }
}

/* (A1 B1) o (A2 B2) is a product, too: of the rank of one by that of the other. */
static sft_code norm_of_hadamard(const sfti_lora_op *op, sfti_arena *arena, double *out,
                                 sft_error *err) {
    uint64_t n = op->a.cols * op->c.cols;
    double sum = 0, *row = sfti_arena_array(arena, n, sizeof *row);
    double *grams = sfti_arena_array(arena, 2 * n * n, sizeof *grams);
    if (!row || !grams) return sfti_fail_memory(err, 2 * n * n * sizeof *grams);
    memset(grams, 0, (size_t)(2 * n * n) * sizeof *grams);
    add_gram(&op->a, &op->c, false, row, grams);
    add_gram(&op->b, &op->d, true, row, grams + n * n);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j <= i; j++)
            sum += grams[i * n + j] * grams[n * n + i * n + j] * (i == j ? 1 : 2);
    *out = sfti_root(sum > 0 ? sum : 0) * size_of_scale(op->scale);
    return SFT_OK;
}

static sft_code norm_of_rows(const sfti_lora_op *op, sfti_arena *arena, double *out,
                             sft_error *err) {
    uint64_t each = NORM_ELEMENTS / op->cols + 1;
    sfti_matrix block;
    double sum = 0;
    sft_code code = sfti_matrix_new(arena, each, op->cols, &block, err);
    for (uint64_t row = 0; !code && row < op->rows; row += each) {
        uint64_t n = op->rows - row < each ? op->rows - row : each;
        memset(block.at, 0, (size_t)(n * op->cols) * sizeof(float));
        code = sfti_lora_op_delta(op, row, n, NULL, block.at, err);
        if (!code) sum += sum_of_squares(block.at, n * op->cols);
    }
    *out = sfti_root(sum);
    return code;
}

/* By the factors, or by the rows that they make: what is less work. */
static sft_code norm_of_factors(const sfti_lora_op *op, sfti_arena *arena, double *out,
                                sft_error *err) {
    bool loha = op->module->type == SFTI_TYPE_LOHA;
    double rows = (double)op->rows, cols = (double)op->cols;
    double n = (double)op->a.cols * (double)(loha ? op->c.cols : 1);
    double grams = loha && n <= HADAMARD_MOST ? (rows + cols) * n * n : NORM_WORK + 1;
    double inner = (double)op->a.cols + (double)(loha ? op->c.cols : 0);
    double direct = rows * cols * (16 + inner / 8);
    if (grams <= direct && grams <= NORM_WORK) return norm_of_hadamard(op, arena, out, err);
    return direct <= NORM_WORK ? norm_of_rows(op, arena, out, err) : SFT_OK;
}

/* The norms of w1 and w2, by factors where they have some. */
static sft_code norm_of_kron(const sfti_lora_op *op, sfti_arena *arena, double *out,
                             sft_error *err) {
    double all = size_of_scale(op->scale), one = 0;
    for (int second = 0; second < 2; second++) {
        sfti_matrix a, b;
        sft_code code = sfti_lora_kron(op, second == 1, arena, &a, &b, err);
        if (!code && b.at && a.cols > SFTI_TALL_MOST) return SFT_OK;
        if (!code && b.at) code = norm_of_product(&a, &b, arena, &one, err);
        else if (!code) one = sfti_root(sum_of_squares(a.at, a.rows * a.cols));
        if (code) return code;
        all *= one;
    }
    *out = all;
    return SFT_OK;
}

sft_code sfti_lora_norm(const sfti_lora *lora, const sfti_lora_module *m, double *out,
                        sft_error *err) {
    bool adds = m->type == SFTI_TYPE_LORA || m->type == SFTI_TYPE_LOHA || m->type == SFTI_TYPE_LOKR
             || (m->type == SFTI_TYPE_FULL && m->slot[SFTI_SLOT_DIFF]);
    uint64_t shape[3] = { m->out, m->in / m->kernel, m->kernel };
    const sft_tensor layer = { .name = m->name, .shape = shape, .rank = 3, .dtype = SFT_F32 };
    sfti_lora_op op = { .module = m, .lora = lora, .tensor = &layer, .strength = 1,
                        .rows = m->out, .scale = m->scale };
    sfti_arena arena = { .alloc = lora->arena.alloc };
    double norm = -1;
    *out = -1;
    if (!adds || m->slot[SFTI_SLOT_MAGNITUDE]) return SFT_OK;
    sft_code code = m->type == SFTI_TYPE_LOKR ? sfti_lora_alike(lora, m, err)
                                              : sfti_lora_op_open(&op, &arena, err);
    if (!code && m->type == SFTI_TYPE_LORA && m->rank <= SFTI_TALL_MOST) {
        code = norm_of_product(&op.a, &op.b, &arena, &norm, err);
        norm *= size_of_scale(op.scale);
    } else if (!code && m->type == SFTI_TYPE_LOKR) {
        code = norm_of_kron(&op, &arena, &norm, err);
    } else if (!code && m->type == SFTI_TYPE_FULL) {
        code = norm_of_rows(&op, &arena, &norm, err);
    } else if (!code) {
        code = norm_of_factors(&op, &arena, &norm, err);
    }
    if (norm - norm <= 0) *out = norm;
    sfti_arena_free(&arena);
    return code;
}
