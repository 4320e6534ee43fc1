/* What one module adds to rows of one tensor. Tests: tests/adapter. */
#include "adapter/adapter.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/number.h"
#include "safetensors_codes.h"

#include <string.h>

/* ── Loading ── */

static sft_code load(const sfti_lora_op *op, int slot, sfti_arena *arena, sfti_matrix *out,
                     sft_error *err) {
    const sft_tensor *tensor = sfti_lora_tensor(op->lora, op->module, (sfti_adapter_slot)slot);
    *out = (sfti_matrix){ 0, 0, NULL };
    return tensor ? sfti_lora_load(op->lora->set, tensor, arena, out, err) : SFT_OK;
}

static void copy_turned(const sfti_matrix *m, float *out) {
    for (uint64_t i = 0; i < m->rows; i++)
        for (uint64_t j = 0; j < m->cols; j++) out[j * m->rows + i] = m->at[i * m->cols + j];
}

static sft_code turn(sfti_matrix *m, sfti_arena *arena, sft_error *err) {
    sfti_matrix old = *m;
    sft_code code = sfti_matrix_new(arena, old.cols, old.rows, m, err);
    if (!code) copy_turned(&old, m->at);
    return code;
}

/* A core t[m, n, k] with its second side put in: [m, i, k] = sum over n of t[m, n, k] d[n, i]. */
static sft_code put_side(const sfti_lora_op *op, int slot, const sfti_matrix *side,
                         sfti_arena *arena, sfti_matrix *out, sft_error *err) {
    sfti_matrix core;
    sft_code code = load(op, slot, arena, &core, err);
    uint64_t kernel = code ? 1 : core.cols / side->rows;
    uint64_t width = side->cols * kernel; /* checked when the adapter was read */
    if (!code) code = sfti_matrix_new(arena, core.rows, width, out, err);
    for (uint64_t m = 0; !code && m < core.rows; m++)
        for (uint64_t n = 0; n < side->rows; n++)
            for (uint64_t i = 0; i < side->cols; i++)
                for (uint64_t k = 0; k < kernel; k++)
                    out->at[m * width + i * kernel + k] +=
                        core.at[m * core.cols + n * kernel + k] * side->at[n * side->cols + i];
    return code;
}

static sft_code load_lora(sfti_lora_op *op, sfti_arena *arena, sft_error *err) {
    const sft_tensor *up_tensor = sfti_lora_tensor(op->lora, op->module, SFTI_SLOT_UP);
    sft_code code = load(op, SFTI_SLOT_UP, arena, &op->a, err);
    if (!code) code = load(op, SFTI_SLOT_DOWN, arena, &op->b, err);
    if (code) return code;
    if (op->module->tucker) {
        sfti_matrix down = op->b;
        return put_side(op, SFTI_SLOT_MID, &down, arena, &op->b, err);
    }
    uint64_t rows = 0, cols = 0;
    (void)sfti_lora_shape(op->tensor, &rows, &cols);
    bool turned = op->turned && op->module->out == cols && op->module->in == rows;
    if (op->module->slot[SFTI_SLOT_MAGNITUDE]
        && (turned || sfti_ends(up_tensor->name, ".lora_embedding_A")))
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, up_tensor->offset, up_tensor->name,
                                "expected DoRA of a layer with a row for each output, found one "
                                "that is stored the other way round");
    if (!turned) return SFT_OK;
    sfti_matrix up = op->a;
    op->a = op->b;
    op->b = up;
    code = turn(&op->a, arena, err);
    return code ? code : turn(&op->b, arena, err);
}

static sft_code load_loha(sfti_lora_op *op, sfti_arena *arena, sft_error *err) {
    sft_code code = load(op, SFTI_SLOT_HADA_1A, arena, &op->a, err);
    if (!code) code = load(op, SFTI_SLOT_HADA_1B, arena, &op->b, err);
    if (!code) code = load(op, SFTI_SLOT_HADA_2A, arena, &op->c, err);
    if (!code) code = load(op, SFTI_SLOT_HADA_2B, arena, &op->d, err);
    if (code || !op->module->tucker) return code;
    sfti_matrix b = op->b, d = op->d;
    code = put_side(op, SFTI_SLOT_HADA_T1, &b, arena, &op->b, err);
    if (!code) code = put_side(op, SFTI_SLOT_HADA_T2, &d, arena, &op->d, err);
    if (!code) code = turn(&op->a, arena, err);
    return code ? code : turn(&op->c, arena, err);
}

sft_code sfti_lora_kron(const sfti_lora_op *op, bool second, sfti_arena *arena, sfti_matrix *a,
                        sfti_matrix *b, sft_error *err) {
    int base = second ? SFTI_SLOT_KRON_2 : SFTI_SLOT_KRON_1;
    sft_code code = load(op, base, arena, a, err);
    *b = (sfti_matrix){ 0, 0, NULL };
    if (code || a->at) return code;
    code = load(op, base + 1, arena, a, err);
    if (!code) code = load(op, base + 2, arena, b, err);
    if (code || !second || !op->module->tucker) return code;
    sfti_matrix side = *b;
    code = put_side(op, SFTI_SLOT_KRON_T2, &side, arena, b, err);
    return code ? code : turn(a, arena, err);
}

/* w1 or w2 whole, w2 flat over its kernel. */
static sft_code load_kron(const sfti_lora_op *op, bool second, sfti_arena *arena, sfti_matrix *out,
                          sft_error *err) {
    sfti_matrix a, b;
    sft_code code = sfti_lora_kron(op, second, arena, &a, &b, err);
    if (!code && !b.at) *out = a;
    if (code || !b.at) return code;
    code = sfti_matrix_new(arena, a.rows, b.cols, out, err);
    if (!code)
        sfti_matrix_add_product(a.at, a.cols, b.at, a.rows, a.cols,
                                b.cols, 1, out->at);
    return code;
}

/* Old files have all factors the other way round; where both ways fit, the new one is meant only
 * if the layer is no square of the rank's size. */
static sft_code load_glora(sfti_lora_op *op, sfti_arena *arena, sft_error *err) {
    sft_code code = load(op, SFTI_SLOT_GLORA_A1, arena, &op->a, err);
    if (!code) code = load(op, SFTI_SLOT_GLORA_A2, arena, &op->b, err);
    if (!code) code = load(op, SFTI_SLOT_GLORA_B1, arena, &op->c, err);
    if (!code) code = load(op, SFTI_SLOT_GLORA_B2, arena, &op->d, err);
    if (code) return code;
    bool fits = op->a.cols == op->b.rows && op->b.rows == op->c.cols && op->c.cols == op->d.rows
             && op->a.rows == op->channels && op->b.cols == op->channels
             && op->c.rows == op->rows && op->d.cols == op->cols && op->from == 0;
    op->old_glora = !fits && op->a.rows == op->b.cols && op->b.cols == op->c.rows
                 && op->c.rows == op->d.cols;
    sfti_matrix swap;
    if (op->old_glora) { /* a2 a1 and b2 b1 */
        swap = op->a, op->a = op->b, op->b = swap;
        swap = op->c, op->c = op->d, op->d = swap;
        fits = op->a.cols == op->b.rows && op->c.cols == op->d.rows
            && op->a.rows == op->channels && op->b.cols == op->channels
            && op->c.rows == op->rows && op->d.cols == op->cols && op->from == 0;
    }
    /* the rank is seen beside the layer, which may have fewer channels than that */
    op->scale *= op->module->has_alpha ? (double)op->module->rank / (double)op->a.cols : 1;
    if (fits) return SFT_OK;
    const sft_tensor *tensor = sfti_lora_tensor(op->lora, op->module, SFTI_SLOT_GLORA_A1);
    return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, tensor->offset, tensor->name,
                            "expected factors for a layer of %llu x %llu, found others",
                            (unsigned long long)op->rows, (unsigned long long)op->cols);
}

static sft_code load_ia3(sfti_lora_op *op, sfti_arena *arena, sft_error *err) {
    bool peft = op->module->slot[SFTI_SLOT_IA3_FACTOR] != 0;
    int slot = peft ? SFTI_SLOT_IA3_FACTOR : SFTI_SLOT_IA3_WEIGHT;
    const sft_tensor *tensor = sfti_lora_tensor(op->lora, op->module, (sfti_adapter_slot)slot);
    sfti_matrix input;
    sft_code code = load(op, slot, arena, &op->a, err);
    if (code) return code;
    uint64_t count = op->a.rows * op->a.cols;
    op->by_column = peft && tensor->rank == 2 && tensor->shape[0] == 1;
    bool turned = peft && op->turned && tensor->rank == 2 && op->tensor->rank == 2
               && count == (op->by_column ? op->rows : op->channels);
    if (turned) op->by_column = !op->by_column; /* the layer is stored the other way round */
    if (peft && tensor->rank > 2 && !op->bias) { /* of a convolution: [1, n, 1...] for both */
        /* columns are inputs of a group, and how many groups there are is not told */
        int inputs = sfti_lora_on_inputs(op->lora, op->module->name);
        if (inputs < 0 && count == op->rows && op->channels && op->rows % op->channels == 0) {
            code = sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                    "expected factors that can only be of a layer's rows or of "
                                    "its columns, or a configuration whose "
                                    "\"feedforward_modules\" tells, found those of a convolution "
                                    "that may have as many of both, by its groups");
            return sfti_lora_hint(code, SFT_HINT_ADAPTER_CONFIG, err);
        }
        op->by_column = inputs < 0 ? count == op->channels : inputs > 0;
    }
    if (!peft && op->module->slot[SFTI_SLOT_IA3_ON_INPUT]) {
        code = load(op, SFTI_SLOT_IA3_ON_INPUT, arena, &input, err);
        if (code) return code;
        op->by_column = (double)input.at[0] != 0;
    }
    if (op->bias) op->by_column = false;
    if (count == (op->by_column ? op->channels : op->rows) && op->from == 0) return SFT_OK;
    return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, tensor->offset, tensor->name,
                            "expected a factor for each %s of the layer, %llu x %llu, found %llu",
                            op->by_column ? "column" : "row", (unsigned long long)op->rows,
                            (unsigned long long)op->cols, (unsigned long long)count);
}

/* One magnitude for each row, or, in LyCORIS's old form, for each input channel. */
static sft_code load_magnitude(sfti_lora_op *op, sfti_arena *arena, sft_error *err) {
    const sft_tensor *tensor = sfti_lora_tensor(op->lora, op->module, SFTI_SLOT_MAGNITUDE);
    sft_code code = load(op, SFTI_SLOT_MAGNITUDE, arena, &op->magnitude, err);
    if (code || !tensor) return code;
    bool peft = !sfti_ends(tensor->name, ".dora_scale");
    uint64_t count = op->magnitude.rows * op->magnitude.cols;
    uint64_t rows = op->module->out ? op->module->out : op->rows; /* GLoRA is of all of them */
    op->by_column = !peft && tensor->rank > 1 && tensor->shape[0] == 1 && rows > 1;
    if (op->by_column ? count == op->channels && op->rows == rows : count == rows) return SFT_OK;
    return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, tensor->offset, tensor->name,
                            "expected a magnitude for each row or column of a layer of %llu x "
                            "%llu, found %llu", (unsigned long long)rows,
                            (unsigned long long)op->cols, (unsigned long long)count);
}

bool sfti_lora_needs_all(const sfti_lora *lora, const sfti_lora_module *m, bool bias) {
    if (bias) return false;
    if (m->type == SFTI_TYPE_BOFT || (m->type == SFTI_TYPE_OFT && m->slot[SFTI_SLOT_OFT_BLOCKS]))
        return true;
    const sft_tensor *magnitude = sfti_lora_tensor(lora, m, SFTI_SLOT_MAGNITUDE);
    return magnitude && magnitude->rank > 1 && magnitude->shape[0] == 1
        && sfti_ends(magnitude->name, ".dora_scale");
}

bool sfti_lora_is_light(const sfti_lora_module *m, bool bias) {
    bool plain = m->type == SFTI_TYPE_LORA && !m->slot[SFTI_SLOT_MAGNITUDE]
              && !m->slot[SFTI_SLOT_DIFF];
    return bias || plain || (m->type == SFTI_TYPE_IA3 && !m->slot[SFTI_SLOT_DIFF]);
}

/* The map tells it, and what reads rows relies on it. */
static sft_code check_bounds(const sfti_lora_op *op, sft_error *err) {
    const sfti_lora_module *m = op->module;
    uint64_t has = op->bias ? op->a.rows * op->a.cols : m->type == SFTI_TYPE_LORA ? op->a.rows
                                                                                  : m->out;
    bool known = has && m->type != SFTI_TYPE_IA3 && m->type != SFTI_TYPE_GLORA;
    if (!known || !sfti_never(op->from > has || op->rows > has - op->from)) return SFT_OK;
    const sft_tensor *first = sfti_lora_first(op->lora, m);
    return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, first->offset, first->name,
                            "expected %llu rows from row %llu on, found %llu",
                            (unsigned long long)op->rows, (unsigned long long)op->from,
                            (unsigned long long)has);
}

sft_code sfti_lora_op_open(sfti_lora_op *op, sfti_arena *arena, sft_error *err) {
    const sfti_lora_module *m = op->module;
    uint64_t rows = 1, cols = 1;
    (void)sfti_lora_shape(op->tensor, &rows, &cols);
    op->cols = op->transposed ? rows : cols;
    op->channels = op->transposed ? rows : op->tensor->rank > 1 ? op->tensor->shape[1] : 1;
    op->kernel = op->cols / op->channels;
    op->scale = m->scale;
    sft_code code = SFT_OK;
    if (op->bias) {
        if (m->type == SFTI_TYPE_IA3 && !m->slot[SFTI_SLOT_DIFF_BIAS])
            return load_ia3(op, arena, err);
        int slot = m->slot[SFTI_SLOT_DIFF_BIAS] ? SFTI_SLOT_DIFF_BIAS : SFTI_SLOT_BIAS;
        code = load(op, slot, arena, &op->a, err);
        if (code) return code;
        if (op->a.rows * op->a.cols == m->out) return check_bounds(op, err);
        const sft_tensor *tensor = sfti_lora_tensor(op->lora, m, (sfti_adapter_slot)slot);
        return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, tensor->offset, tensor->name,
                                "expected %llu elements, as the layer has rows, found %llu",
                                (unsigned long long)m->out,
                                (unsigned long long)(op->a.rows * op->a.cols));
    }
    if (m->type == SFTI_TYPE_LORA || m->type == SFTI_TYPE_LOHA || m->type == SFTI_TYPE_LOKR)
        code = sfti_lora_alike(op->lora, m, err);
    if (code) return code;
    switch (m->type) {
    case SFTI_TYPE_LORA: code = load_lora(op, arena, err); break;
    case SFTI_TYPE_LOHA: code = load_loha(op, arena, err); break;
    case SFTI_TYPE_LOKR:
        code = load_kron(op, false, arena, &op->a, err);
        if (!code) code = load_kron(op, true, arena, &op->b, err);
        break;
    case SFTI_TYPE_GLORA: code = load_glora(op, arena, err); break;
    case SFTI_TYPE_IA3: code = load_ia3(op, arena, err); break;
    case SFTI_TYPE_OFT: case SFTI_TYPE_BOFT: code = sfti_rotation_load(op, arena, err); break;
    case SFTI_TYPE_FULL: case SFTI_TYPE_OTHER: case SFTI_ADAPTER_TYPES: break;
    }
    if (!code && m->slot[SFTI_SLOT_MAGNITUDE]) code = load_magnitude(op, arena, err);
    return code ? code : check_bounds(op, err);
}

/* ── The change ── */

static void add_kron(const sfti_lora_op *op, uint64_t from, uint64_t rows, float *into) {
    const sfti_matrix *a = &op->a, *b = &op->b;
    for (uint64_t r = 0; r < rows; r++) {
        const float *first = a->at + (from + r) / b->rows * a->cols;
        const float *second = b->at + (from + r) % b->rows * b->cols;
        float *row = into + r * op->cols;
        for (uint64_t i = 0; i < a->cols; i++) {
            float one = first[i] * (float)op->scale;
            for (uint64_t k = 0; k < b->cols; k++) row[i * b->cols + k] += one * second[k];
        }
    }
}

static sft_code add_hadamard(const sfti_lora_op *op, uint64_t from, uint64_t rows, float *into,
                             sft_error *err) {
    sfti_arena arena = { .alloc = op->lora->arena.alloc };
    sfti_matrix x, y;
    sft_code code = sfti_matrix_new(&arena, rows, op->cols, &x, err);
    if (!code) code = sfti_matrix_new(&arena, rows, op->cols, &y, err);
    if (!code) {
        sfti_matrix_add_product(op->a.at + from * op->a.cols, op->a.cols, op->b.at, rows,
                                op->a.cols, op->cols, 1, x.at);
        sfti_matrix_add_product(op->c.at + from * op->c.cols, op->c.cols, op->d.at, rows,
                                op->c.cols, op->cols, 1, y.at);
        for (uint64_t i = 0; i < rows * op->cols; i++)
            into[i] += (float)op->scale * x.at[i] * y.at[i];
    }
    sfti_arena_free(&arena);
    return code;
}

/* scale (b1 b2 + W a1 a2); of a convolution W is contracted over its channels. */
static sft_code add_glora(const sfti_lora_op *op, uint64_t from, uint64_t rows, const float *w,
                          float *into, sft_error *err) {
    sfti_arena arena = { .alloc = op->lora->arena.alloc };
    uint64_t rank = op->a.cols, kernel = op->kernel;
    sfti_matrix inner, outer, one;
    sfti_matrix_add_product(op->c.at + from * op->c.cols, op->c.cols, op->d.at, rows,
                            op->c.cols, op->cols, (float)op->scale, into);
    sft_code code = sfti_matrix_new(&arena, rows, op->channels, &one, err);
    if (!code) code = sfti_matrix_new(&arena, rows, rank, &inner, err);
    if (!code) code = sfti_matrix_new(&arena, rows, op->channels, &outer, err);
    for (uint64_t k = 0; !code && k < kernel; k++) {
        for (uint64_t i = 0; i < rows * op->channels; i++) one.at[i] = w[i * kernel + k];
        memset(inner.at, 0, (size_t)(rows * rank) * sizeof(float));
        memset(outer.at, 0, (size_t)(rows * op->channels) * sizeof(float));
        sfti_matrix_add_product(one.at, op->channels, op->a.at, rows, op->channels,
                                rank, 1, inner.at);
        sfti_matrix_add_product(inner.at, rank, op->b.at, rows, rank,
                                op->channels, (float)op->scale, outer.at);
        for (uint64_t i = 0; i < rows * op->channels; i++) into[i * kernel + k] += outer.at[i];
    }
    sfti_arena_free(&arena);
    return code;
}

static sft_code add_stored(const sfti_lora_op *op, uint64_t from, uint64_t rows, float *into,
                           sft_error *err) {
    sfti_arena arena = { .alloc = op->lora->arena.alloc };
    const sft_tensor *tensor = sfti_lora_tensor(op->lora, op->module, SFTI_SLOT_DIFF);
    sfti_matrix stored;
    sft_code code = sfti_matrix_new(&arena, rows, op->cols, &stored, err);
    if (!code)
        code = sfti_lora_read(op->lora->set, tensor, from * op->cols, rows * op->cols, stored.at,
                              err);
    for (uint64_t i = 0; !code && i < rows * op->cols; i++) into[i] += stored.at[i];
    sfti_arena_free(&arena);
    return code;
}

sft_code sfti_lora_op_delta(const sfti_lora_op *op, uint64_t from, uint64_t rows, const float *w,
                            float *into, sft_error *err) {
    sft_code code = SFT_OK;
    switch (op->module->type) {
    case SFTI_TYPE_LORA:
        sfti_matrix_add_product(op->a.at + from * op->a.cols, op->a.cols, op->b.at,
                                rows, op->a.cols, op->cols,
                                (float)op->scale, into);
        break;
    case SFTI_TYPE_LOHA: code = add_hadamard(op, from, rows, into, err); break;
    case SFTI_TYPE_LOKR: add_kron(op, from, rows, into); break;
    case SFTI_TYPE_GLORA: code = add_glora(op, from, rows, w, into, err); break;
    case SFTI_TYPE_IA3: case SFTI_TYPE_OFT: case SFTI_TYPE_BOFT: case SFTI_TYPE_FULL:
    case SFTI_TYPE_OTHER: case SFTI_ADAPTER_TYPES: break;
    }
    if (!code && op->module->slot[SFTI_SLOT_DIFF]) code = add_stored(op, from, rows, into, err);
    return code;
}

/* ── Into the tensor ── */

/* magnitude / norm. Without a direction there is nothing to scale, but to a magnitude of 0. */
static sft_code norm_factor(const sfti_lora_op *op, uint64_t at, double sum, double *out,
                            sft_error *err) {
    const sft_tensor *tensor = sfti_lora_tensor(op->lora, op->module, SFTI_SLOT_MAGNITUDE);
    double magnitude = (double)op->magnitude.at[at];
    *out = sum > 0 ? magnitude / sfti_root(sum) : 0;
    if (sum > 0 || (!(magnitude < 0) && !(magnitude > 0))) return SFT_OK;
    return sfti_fail_tensor(err, SFT_CAST_VALUE, tensor->offset, tensor->name,
                            "expected a norm above 0 to divide by (or a magnitude of 0), found 0 "
                            "for %s %llu of the layer", op->by_column ? "column" : "row",
                            (unsigned long long)at);
}

/* Rows of W' = magnitude * (W + delta) / norm; then w becomes W + strength (W' - W). */
static sft_code decompose_rows(const sfti_lora_op *op, uint64_t from, uint64_t rows, float *w,
                               const float *delta, sft_error *err) {
    for (uint64_t r = 0; r < rows; r++) {
        float *row = w + r * op->cols;
        const float *change = delta + r * op->cols;
        double sum = 0, factor;
        for (uint64_t j = 0; j < op->cols; j++) {
            double one = (double)row[j] + (op->dora == SFTI_DORA_COMFY ? 0 : (double)change[j]);
            sum += one * one;
        }
        sft_code code = norm_factor(op, from + r, sum, &factor, err);
        if (code) return code;
        for (uint64_t j = 0; j < op->cols; j++) {
            double was = row[j], now = factor * (was + (double)change[j]);
            row[j] = (float)(was + op->strength * (now - was));
        }
    }
    return SFT_OK;
}

/* The same with norms over all rows, for each input channel. */
static sft_code decompose_columns(const sfti_lora_op *op, float *w, const float *delta,
                                  sft_error *err) {
    sfti_arena arena = { .alloc = op->lora->arena.alloc };
    double *sums = sfti_arena_array(&arena, op->channels, sizeof *sums);
    if (!sums) return sfti_fail_memory(err, op->channels * sizeof *sums);
    for (uint64_t i = 0; i < op->channels; i++) sums[i] = 0;
    uint64_t all = op->rows * op->cols;
    for (uint64_t i = 0; i < all; i++) {
        double one = (double)w[i] + (double)delta[i];
        sums[i / op->kernel % op->channels] += one * one;
    }
    sft_code code = SFT_OK;
    for (uint64_t i = 0; !code && i < op->channels; i++)
        code = norm_factor(op, i, sums[i], &sums[i], err);
    for (uint64_t i = 0; !code && i < all; i++) {
        double was = w[i], now = sums[i / op->kernel % op->channels] * (was + (double)delta[i]);
        w[i] = (float)(was + op->strength * (now - was));
    }
    sfti_arena_free(&arena);
    return code;
}

static void multiply_rows(const sfti_lora_op *op, uint64_t from, uint64_t rows, float *w) {
    bool peft = op->module->slot[SFTI_SLOT_IA3_FACTOR] != 0; /* its factors hold the 1 */
    for (uint64_t i = 0; i < rows * op->cols; i++) {
        uint64_t at = op->by_column ? i / op->kernel % op->channels : from + i / op->cols;
        double change = (double)op->a.at[at] - (peft ? 1 : 0);
        w[i] = (float)((double)w[i] * (1 + op->strength * change));
    }
}

static sft_code apply_rows(const sfti_lora_op *op, uint64_t from, uint64_t rows, float *w,
                           sft_error *err) {
    const sfti_lora_module *m = op->module;
    if (m->type == SFTI_TYPE_IA3 && !(op->bias && m->slot[SFTI_SLOT_DIFF_BIAS])) {
        multiply_rows(op, from, rows, w);
        return SFT_OK;
    }
    if (op->bias) {
        double by = op->strength
                  * (m->type == SFTI_TYPE_LORA && !m->slot[SFTI_SLOT_DIFF_BIAS] ? op->scale : 1);
        for (uint64_t i = 0; i < rows; i++)
            w[i] = (float)((double)w[i] + by * (double)op->a.at[from + i]);
        return SFT_OK;
    }
    if (m->type == SFTI_TYPE_OFT || m->type == SFTI_TYPE_BOFT)
        return sfti_rotation_apply(op, rows, w, err);
    if (m->type == SFTI_TYPE_LORA && !op->magnitude.at && !m->slot[SFTI_SLOT_DIFF]) {
        sfti_matrix_add_product(op->a.at + from * op->a.cols, op->a.cols, op->b.at,
                                rows, op->a.cols, op->cols,
                                (float)(op->scale * op->strength), w);
        return SFT_OK;
    }
    sfti_arena arena = { .alloc = op->lora->arena.alloc };
    sfti_matrix delta;
    sft_code code = sfti_matrix_new(&arena, rows, op->cols, &delta, err);
    if (!code) code = sfti_lora_op_delta(op, from, rows, w, delta.at, err);
    if (!code && op->magnitude.at) {
        if (op->by_column) code = decompose_columns(op, w, delta.at, err);
        else code = decompose_rows(op, from, rows, w, delta.at, err);
    } else if (!code) {
        for (uint64_t i = 0; i < rows * op->cols; i++)
            w[i] += (float)op->strength * delta.at[i];
    }
    sfti_arena_free(&arena);
    return code;
}

/* w is all of the tensor, the layer's columns being its rows. */
static sft_code apply_transposed(const sfti_lora_op *op, float *w, sft_error *err) {
    sfti_arena arena = { .alloc = op->lora->arena.alloc };
    sfti_matrix layer, tensor = { op->cols, op->rows, w };
    sft_code code = sfti_matrix_take(&arena, op->rows, op->cols, &layer, err);
    if (!code) {
        copy_turned(&tensor, layer.at);
        code = apply_rows(op, 0, op->rows, layer.at, err);
    }
    if (!code) copy_turned(&layer, w);
    sfti_arena_free(&arena);
    return code;
}

sft_code sfti_lora_op_apply(const sfti_lora_op *op, uint64_t begin, uint64_t count, float *w,
                            sft_error *err) {
    if (op->transposed) return apply_transposed(op, w, err);
    uint64_t first = begin > op->row ? begin : op->row;
    uint64_t last = begin + count < op->row + op->rows ? begin + count : op->row + op->rows;
    if (first >= last) return SFT_OK;
    return apply_rows(op, op->from + (first - op->row), last - first,
                      w + (first - begin) * op->cols, err);
}
