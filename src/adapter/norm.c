/* Norms of what modules add. */
#include "adapter/tall.h"

#include "base/number.h"

#include <string.h>

#define NORM_ELEMENTS ((uint64_t)1 << 18)

static double sum_of_squares(const float *at, uint64_t count) {
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += (double)at[i] * (double)at[i];
    return sum;
}

/* The trace of (U^T U)(D D^T), of rank x rank. */
static sft_code norm_of_product(const sfti_lora_op *op, sfti_arena *arena, double *out,
                                sft_error *err) {
    const sfti_matrix *up = &op->a, *down = &op->b;
    uint64_t rank = up->cols;
    sfti_tall left = { up->at, up->rows, rank, false };
    sfti_tall right = { down->at, down->cols, rank, true };
    double sum = 0, *block = sfti_tall_numbers(arena, 64, rank, err);
    double *grams = sfti_tall_numbers(arena, 2 * rank, rank, err);
    if (!block || !grams) return SFT_OUT_OF_MEMORY;
    sfti_tall_gram(&left, block, grams);
    sfti_tall_gram(&right, block, grams + rank * rank);
    for (uint64_t i = 0; i < rank * rank; i++) sum += grams[i] * grams[rank * rank + i];
    *out = sfti_root(sum > 0 ? sum : 0) * (op->scale < 0 ? -op->scale : op->scale);
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

sft_code sfti_lora_norm(const sfti_lora *lora, const sfti_lora_module *m, double *out,
                        sft_error *err) {
    bool adds = m->type == SFTI_TYPE_LORA || m->type == SFTI_TYPE_LOHA || m->type == SFTI_TYPE_LOKR
             || (m->type == SFTI_TYPE_FULL && m->slot[SFTI_SLOT_DIFF]);
    uint64_t shape[3] = { m->out, m->in / m->kernel, m->kernel };
    const sft_tensor layer = { .name = m->name, .shape = shape, .rank = 3, .dtype = SFT_F32 };
    sfti_lora_op op = { .module = m, .lora = lora, .tensor = &layer, .strength = 1,
                        .rows = m->out };
    sfti_arena arena = { .alloc = lora->arena.alloc };
    *out = -1;
    if (!adds || m->slot[SFTI_SLOT_MAGNITUDE]) return SFT_OK;
    sft_code code = sfti_lora_op_open(&op, &arena, err);
    if (!code && m->type == SFTI_TYPE_LORA && m->rank <= SFTI_TALL_MOST)
        code = norm_of_product(&op, &arena, out, err);
    else if (!code && m->type == SFTI_TYPE_LOKR)
        *out = sfti_root(sum_of_squares(op.a.at, op.a.rows * op.a.cols))
             * sfti_root(sum_of_squares(op.b.at, op.b.rows * op.b.cols))
             * (op.scale < 0 ? -op.scale : op.scale);
    else if (!code) code = norm_of_rows(&op, &arena, out, err);
    sfti_arena_free(&arena);
    return code;
}
