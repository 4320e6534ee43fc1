/* Orthogonal rotations: OFT and BOFT of LyCORIS and kohya over a layer's rows, OFT of PEFT over its
 * columns. op->a: the rotations at the strength, block by block; op->b: the rescale. */
#include "adapter/adapter.h"

#include "base/error.h"
#include "base/number.h"

#include <string.h>

#define ROTATION_MOST 2048

/* x = y^-1 of n x n by Gauss-Jordan with pivots; false: y is singular. work: n x 2n. */
static bool invert(const double *y, size_t n, double *work, double *x) {
    size_t width = 2 * n;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < width; j++)
            work[i * width + j] = j < n ? y[i * n + j] : j - n == i ? 1 : 0;
    for (size_t c = 0; c < n; c++) {
        size_t best = c;
        for (size_t i = c + 1; i < n; i++) {
            double a = work[i * width + c], b = work[best * width + c];
            if ((a < 0 ? -a : a) > (b < 0 ? -b : b)) best = i;
        }
        double pivot = work[best * width + c];
        if (!(pivot < 0) && !(pivot > 0)) return false;
        for (size_t j = 0; j < width; j++) {
            double swap = work[best * width + j];
            work[best * width + j] = work[c * width + j];
            work[c * width + j] = swap / pivot;
        }
        for (size_t i = 0; i < n; i++) {
            double factor = work[i * width + c];
            if (i == c || (!(factor < 0) && !(factor > 0))) continue;
            for (size_t j = c; j < width; j++)
                work[i * width + j] -= factor * work[c * width + j];
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) x[i * n + j] = work[i * width + n + j];
    return true;
}

static void square_product(const double *a, const double *b, size_t n, double *out) {
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) out[i * n + j] = 0;
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < n; j++) out[i * n + j] += a[i * n + k] * b[k * n + j];
    }
}

/* Four matrices of n x n, and one of n x 2n. */
typedef struct rotation_work {
    size_t n;
    double *q, *left, *inverse, *product, *wide;
} rotation_work;

static sft_code work_begin(rotation_work *work, size_t n, sfti_arena *arena, sft_error *err) {
    double *all = sfti_arena_array(arena, (uint64_t)n * n * 6, sizeof *all);
    if (!all) return sfti_fail_memory(err, (uint64_t)n * n * 6 * sizeof *all);
    size_t each = n * n;
    *work = (rotation_work){ n, all, all + each, all + 2 * each, all + 3 * each, all + 4 * each };
    return SFT_OK;
}

/* product = (1 + Q)(1 - Q)^-1; with `turned` (1 - Q)(1 + Q)^-1. A skew Q always has one. */
static bool cayley(rotation_work *work, bool turned) {
    size_t n = work->n;
    double sign = turned ? -1 : 1;
    for (size_t i = 0; i < n * n; i++) work->product[i] = -sign * work->q[i];
    for (size_t i = 0; i < n; i++) work->product[i * n + i] += 1;
    if (!invert(work->product, n, work->wide, work->inverse)) return false;
    for (size_t i = 0; i < n * n; i++) work->left[i] = sign * work->q[i];
    for (size_t i = 0; i < n; i++) work->left[i * n + i] += 1;
    square_product(work->left, work->inverse, n, work->product);
    return true;
}

/* product = 1 + 2 Q + 2 Q^2 + … + Q^(terms - 1), PEFT's series; three terms are as four. */
static void series(rotation_work *work, uint64_t terms) {
    size_t n = work->n, all = n * n;
    if (terms == 3) terms = 4;
    memset(work->product, 0, all * sizeof *work->product);
    for (size_t i = 0; i < n; i++) work->product[i * n + i] = 1;
    if (terms < 2) return;
    memcpy(work->left, work->q, all * sizeof *work->q);
    for (size_t i = 0; i < all; i++) work->product[i] += 2 * work->q[i];
    for (uint64_t power = 2; power < terms; power++) {
        double by = power + 1 == terms ? 1 : 2;
        square_product(work->left, work->q, n, work->inverse);
        memcpy(work->left, work->inverse, all * sizeof *work->q);
        for (size_t i = 0; i < all; i++) work->product[i] += by * work->left[i];
    }
}

/* ── Loading ── */

static sft_code refuse_blocks(const sfti_lora_op *op, const sft_tensor *tensor, sft_error *err) {
    return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, tensor->offset, tensor->name,
                            "expected blocks that divide a layer of %llu x %llu, of at most %u, "
                            "found others", (unsigned long long)op->rows,
                            (unsigned long long)op->cols, (unsigned)ROTATION_MOST);
}

/* a block, mixed with 1 by the strength, into op->a. */
static void keep_block(const sfti_lora_op *op, const rotation_work *work, float *into) {
    size_t n = work->n;
    for (size_t i = 0; i < n * n; i++) {
        double one = i / n == i % n ? 1 : 0;
        into[i] = (float)(one + op->strength * (work->product[i] - one));
    }
}

static sft_code load_blocks(sfti_lora_op *op, const sft_tensor *tensor, sfti_arena *arena,
                            sft_error *err) {
    const sfti_lora_module *m = op->module;
    uint32_t rank = tensor->rank;
    uint64_t size = tensor->shape[rank - 1], blocks, stages = rank == 4 ? tensor->shape[0] : 1;
    const sft_tensor *rescale = sfti_lora_tensor(op->lora, m, SFTI_SLOT_OFT_RESCALE);
    sfti_matrix stored;
    rotation_work work = { .n = 0 };
    if (size > ROTATION_MOST || m->out != op->rows || op->from != 0)
        return refuse_blocks(op, tensor, err);
    if (rank == 4) { /* each stage regroups rows in runs of 2^stage * size */
        if (size % 2 || stages > 40 || op->rows % (size << (stages - 1)))
            return refuse_blocks(op, tensor, err);
    }
    blocks = stages * (op->rows / size);
    sft_code code = sfti_lora_load(op->lora->set, tensor, arena, &stored, err);
    if (!code) code = sfti_matrix_new(arena, blocks * size, size, &op->a, err);
    if (!code) code = work_begin(&work, (size_t)size, arena, err);
    if (!code && rescale) code = sfti_lora_load(op->lora->set, rescale, arena, &op->b, err);
    if (code) return code;
    double cap = m->alpha * (double)op->rows, sum = 0;
    size_t n = (size_t)size;
    for (uint64_t k = 0; k < blocks; k++)
        for (size_t i = 0; i < n * n; i++) {
            const float *block = stored.at + k * n * n;
            double q = (double)block[i] - (double)block[i % n * n + i / n];
            sum += q * q;
        }
    double norm = sfti_root(sum) + 1e-8;
    double by = cap > 0 && norm > cap ? cap / norm : 1;
    for (uint64_t k = 0; k < blocks; k++) {
        const float *block = stored.at + k * n * n;
        for (size_t i = 0; i < n * n; i++)
            work.q[i] = by * ((double)block[i] - (double)block[i % n * n + i / n]);
        if (!cayley(&work, false)) return refuse_blocks(op, tensor, err);
        keep_block(op, &work, op->a.at + k * n * n);
    }
    return SFT_OK;
}

/* Rows of n (n - 1) / 2 values above the diagonal; one row may serve all blocks. */
static sft_code load_packed(sfti_lora_op *op, const sft_tensor *tensor, sfti_arena *arena,
                            sft_error *err) {
    const sfti_lora_config *config = sfti_lora_config_of(op->lora, op->module->name);
    sfti_matrix stored;
    rotation_work work = { .n = 0 };
    uint64_t rows = 0, cols = 0, size = 1;
    (void)sfti_lora_shape(tensor, &rows, &cols);
    while (size < ROTATION_MOST && size * (size - 1) / 2 < cols) size++;
    if (size * (size - 1) / 2 != cols || op->kernel != 1 || op->channels % size
        || (rows != 1 && rows != op->channels / size))
        return refuse_blocks(op, tensor, err);
    sft_code code = sfti_lora_alike(op->lora, op->module, err);
    if (code) return code;
    code = sfti_lora_load(op->lora->set, tensor, arena, &stored, err);
    if (!code) code = sfti_matrix_new(arena, rows * size, size, &op->a, err);
    if (!code) code = work_begin(&work, (size_t)size, arena, err);
    size_t n = (size_t)size;
    for (uint64_t k = 0; !code && k < rows; k++) {
        const float *value = stored.at + k * cols;
        for (size_t i = 0; i < n; i++) {
            work.q[i * n + i] = 0;
            for (size_t j = i + 1; j < n; j++) {
                work.q[i * n + j] = (double)*value;
                work.q[j * n + i] = -(double)*value++;
            }
        }
        if (!config || !config->cayley) series(&work, config ? config->terms : 5);
        else if (!cayley(&work, true)) return refuse_blocks(op, tensor, err);
        keep_block(op, &work, op->a.at + k * n * n);
    }
    return code;
}

sft_code sfti_rotation_load(sfti_lora_op *op, sfti_arena *arena, sft_error *err) {
    const sft_tensor *blocks = sfti_lora_tensor(op->lora, op->module, SFTI_SLOT_OFT_BLOCKS);
    const sft_tensor *packed = sfti_lora_tensor(op->lora, op->module, SFTI_SLOT_OFT_PACKED);
    return blocks ? load_blocks(op, blocks, arena, err) : load_packed(op, packed, arena, err);
}

/* ── Turning ── */

/* Row i of the regrouped matrix: (c, g, k) becomes (c, k, g), g of 2. */
static uint64_t regrouped(uint64_t i, uint64_t half) {
    uint64_t c = i / (2 * half), rest = i % (2 * half);
    return c * 2 * half + (rest % 2) * half + rest / 2;
}

static sft_code turn_rows(const sfti_lora_op *op, float *w, sft_error *err) {
    sfti_arena arena = { .alloc = op->lora->arena.alloc };
    uint64_t n = op->a.cols, cols = op->cols, count = op->rows / n;
    uint64_t stages = op->a.rows / op->rows;
    bool butterfly = op->module->type == SFTI_TYPE_BOFT;
    sfti_matrix in, out, turned;
    sft_code code = sfti_matrix_new(&arena, n, cols, &in, err);
    if (!code) code = sfti_matrix_new(&arena, butterfly ? op->rows : n, cols, &out, err);
    if (!code) code = sfti_matrix_new(&arena, n, n, &turned, err);
    for (uint64_t s = 0; !code && s < stages; s++) {
        uint64_t half = (n / 2) << s;
        if (butterfly) memset(out.at, 0, (size_t)(op->rows * cols) * sizeof(float));
        for (uint64_t k = 0; k < count; k++) {
            const float *block = op->a.at + (s * count + k) * n * n;
            float *to = butterfly ? out.at + k * n * cols : out.at;
            for (uint64_t i = 0; i < n; i++) {
                uint64_t row = butterfly ? regrouped(k * n + i, half) : k * n + i;
                memcpy(in.at + i * cols, w + row * cols, (size_t)cols * sizeof(float));
                for (uint64_t j = 0; j < n; j++) /* OFT turns by the transposed blocks */
                    turned.at[i * n + j] = butterfly ? block[i * n + j] : block[j * n + i];
            }
            if (!butterfly) memset(to, 0, (size_t)(n * cols) * sizeof(float));
            sfti_matrix_add_product(turned.at, n, in.at, n, n, cols,
                                    1, to);
            if (!butterfly) memcpy(w + k * n * cols, to, (size_t)(n * cols) * sizeof(float));
        }
        for (uint64_t i = 0; butterfly && i < op->rows; i++)
            memcpy(w + regrouped(i, half) * cols, out.at + i * cols, (size_t)cols * sizeof(float));
    }
    for (uint64_t i = 0; !code && op->b.at && i < op->rows * cols; i++) w[i] *= op->b.at[i / cols];
    sfti_arena_free(&arena);
    return code;
}

/* Each block of columns times the transposed block. */
static sft_code turn_columns(const sfti_lora_op *op, uint64_t rows, float *w, sft_error *err) {
    sfti_arena arena = { .alloc = op->lora->arena.alloc };
    uint64_t n = op->a.cols, blocks = op->a.rows / n;
    sfti_matrix out, turned;
    sft_code code = sfti_matrix_new(&arena, rows, n, &out, err);
    if (!code) code = sfti_matrix_new(&arena, n, n, &turned, err);
    for (uint64_t k = 0; !code && k < op->cols / n; k++) {
        const float *block = op->a.at + (blocks == 1 ? 0 : k) * n * n;
        for (uint64_t i = 0; i < n * n; i++) turned.at[i] = block[i % n * n + i / n];
        memset(out.at, 0, (size_t)(rows * n) * sizeof(float));
        sfti_matrix_add_product(w + k * n, op->cols, turned.at, rows, n,
                                n, 1, out.at);
        for (uint64_t r = 0; r < rows; r++)
            memcpy(w + r * op->cols + k * n, out.at + r * n, (size_t)n * sizeof(float));
    }
    sfti_arena_free(&arena);
    return code;
}

sft_code sfti_rotation_apply(const sfti_lora_op *op, uint64_t rows, float *w, sft_error *err) {
    return op->module->slot[SFTI_SLOT_OFT_BLOCKS] ? turn_rows(op, w, err)
                                                  : turn_columns(op, rows, w, err);
}
