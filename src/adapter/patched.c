/* Tensors of a model with adapters merged into them, as a source. */
#include "adapter/adapter.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/mem.h"
#include "safetensors_cast.h"
#include "safetensors_convert.h"
#include "safetensors_report.h"

#include <string.h>

#define BLOCK_ELEMENTS ((uint64_t)1 << 18) /* of rows that are computed at once */
#define ROW_MOST (UINT64_C(1) << 26)       /* elements of a row */
#define READ_SIZE ((size_t)256 << 10)

/* One module's change of one tensor, in the order of the adapters. */
typedef struct merge_step {
    uint32_t next; /* + 1 */
    uint32_t input;
    sfti_lora_target target;
} merge_step;

typedef struct merge_row {
    uint32_t tensor;
    uint32_t first, last; /* steps + 1 */
    bool all;             /* its rows are computed together */
    uint64_t begin;       /* in the source */
    uint64_t rows, cols, row_bytes;
} merge_row;

struct sfti_patched {
    sft_allocator alloc;
    sfti_arena arena;
    const sft_set *model;
    const sfti_patched_input *inputs;
    sfti_dora dora;
    uint32_t *row_of; /* of the model's tensors, + 1 */
    merge_row *rows;
    size_t count, capacity;
    merge_step *steps;
    size_t step_count, step_capacity;
    sft_source source;
    size_t blames;
    /* the tensor that is read: */
    const merge_row *now;
    sfti_arena work;
    sfti_lora_op *ops;
    size_t op_count;
    uint8_t *raw;
    float *values;
    uint8_t *bytes;
    uint64_t block, block_rows, most_rows; /* rows [block, block + block_rows) are in bytes */
};

/* ── The plan ── */

static bool can_hold(sft_dtype dtype) {
    switch ((int)dtype) {
    case SFT_F32: case SFT_F16: case SFT_BF16: case SFT_F8_E4M3: case SFT_F8_E5M2:
    case SFT_F8_E4M3FNUZ: case SFT_F8_E5M2FNUZ:
        return true;
    default: return false;
    }
}

static sft_code check_changed(const sfti_patched *merge, const sft_conversion *scales, uint32_t i,
                             sft_error *err) {
    const sft_tensor *tensor = sft_set_tensor_at(merge->model, i);
    sft_convert_action action = sft_conversion_action(scales, i, NULL);
    uint64_t rows = 0, cols = 0;
    if (action == SFT_CONVERT_SCALED || action == SFT_CONVERT_SCALE || !can_hold(tensor->dtype))
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected a tensor of at most 32-bit floats without scales, to "
                                "merge into, found %s%s",
                                sft_dtype_describe(tensor->dtype)->name,
                                can_hold(tensor->dtype) ? " with a scale" : "");
    if (!sfti_lora_shape(tensor, &rows, &cols) || cols > ROW_MOST)
        return sfti_fail_tensor(err, SFT_ADDRESS_SPACE, tensor->offset, tensor->name,
                                "expected rows of at most %llu elements, found longer ones",
                                (unsigned long long)ROW_MOST);
    return SFT_OK;
}

static sft_code add_step(sfti_patched *merge, uint32_t input, const sfti_lora_target *target,
                         sft_error *err) {
    const sfti_lora *lora = merge->inputs[input].lora;
    const sft_tensor *tensor = sft_set_tensor_at(merge->model, target->tensor);
    merge_step *steps = sfti_arena_grow(&merge->arena, merge->steps, merge->step_count, 1,
                                        &merge->step_capacity, sizeof *steps);
    if (!steps) return sfti_fail_memory(err, sizeof *steps);
    merge->steps = steps;
    steps[merge->step_count++] = (merge_step){ 0, input, *target };
    uint32_t number = (uint32_t)merge->step_count;
    if (!merge->row_of[target->tensor]) {
        merge_row *rows = sfti_arena_grow(&merge->arena, merge->rows, merge->count, 1,
                                          &merge->capacity, sizeof *rows);
        if (!rows) return sfti_fail_memory(err, sizeof *rows);
        merge->rows = rows;
        rows[merge->count++] = (merge_row){ .tensor = target->tensor, .first = number };
        merge->row_of[target->tensor] = (uint32_t)merge->count;
    }
    merge_row *row = &merge->rows[merge->row_of[target->tensor] - 1];
    if (row->last) steps[row->last - 1].next = number;
    row->last = number;
    if (sfti_lora_needs_all(lora, &lora->modules[target->module], tensor, target->bias))
        row->all = true;
    return SFT_OK;
}

static sft_code plan_rows(sfti_patched *merge, const sft_conversion *scales, sft_error *err) {
    sft_code code = SFT_OK;
    uint64_t at = 0;
    for (size_t k = 0; !code && k < merge->count; k++) {
        merge_row *row = &merge->rows[k];
        const sft_tensor *tensor = sft_set_tensor_at(merge->model, row->tensor);
        code = check_changed(merge, scales, row->tensor, err);
        if (code) break;
        (void)sfti_lora_shape(tensor, &row->rows, &row->cols);
        row->row_bytes = row->cols * (sft_dtype_describe(tensor->dtype)->bits / 8);
        row->begin = at;
        at += tensor->end - tensor->begin;
        if (row->all && row->rows * row->cols > SFTI_LORA_ELEMENTS)
            code = sfti_fail_tensor(err, SFT_ADDRESS_SPACE, tensor->offset, tensor->name,
                                    "expected at most %llu elements where all rows are turned at "
                                    "once, found more", (unsigned long long)SFTI_LORA_ELEMENTS);
    }
    merge->source.size = at;
    return code;
}

size_t sfti_patched_count(const sfti_patched *merge) {
    return merge->count;
}

bool sfti_patched_changes(const sfti_patched *merge, size_t i, uint64_t *begin) {
    uint32_t row = i < sft_set_tensor_count(merge->model) ? merge->row_of[i] : 0;
    if (row) *begin = merge->rows[row - 1].begin;
    return row != 0;
}

const sft_source *sfti_patched_source(sfti_patched *merge) {
    return &merge->source;
}

size_t sfti_patched_blames(const sfti_patched *merge) {
    return merge->blames;
}

/* ── Computing ── */

static const merge_row *changed_at(const sfti_patched *merge, uint64_t offset) {
    size_t from = 0, to = merge->count;
    while (to - from > 1) {
        size_t mid = from + (to - from) / 2;
        if (merge->rows[mid].begin <= offset) from = mid;
        else to = mid;
    }
    return &merge->rows[from];
}

static sft_code open_row(sfti_patched *merge, const merge_row *row, sft_error *err) {
    const sft_tensor *tensor = sft_set_tensor_at(merge->model, row->tensor);
    size_t count = 0;
    merge->now = NULL;
    sfti_arena_free(&merge->work);
    merge->work = (sfti_arena){ .alloc = merge->alloc };
    uint64_t most = row->all ? row->rows : BLOCK_ELEMENTS / row->cols & ~UINT64_C(3);
    if (most == 0) most = 1;
    if (most > row->rows) most = row->rows;
    for (uint32_t at = row->first; at; at = merge->steps[at - 1].next) count++;
    merge->ops = sfti_arena_array(&merge->work, count, sizeof *merge->ops);
    merge->raw = sfti_arena_array(&merge->work, READ_SIZE, 1);
    merge->values = sfti_arena_array(&merge->work, most * row->cols, sizeof *merge->values);
    merge->bytes = sfti_arena_array(&merge->work, most * row->row_bytes, 1);
    if (!merge->ops || !merge->raw || !merge->values || !merge->bytes)
        return sfti_fail_memory(err, most * row->cols * sizeof *merge->values);
    merge->op_count = 0;
    sft_code code = SFT_OK;
    for (uint32_t at = row->first; !code && at; at = merge->steps[at - 1].next) {
        const merge_step *step = &merge->steps[at - 1];
        const sfti_patched_input *input = &merge->inputs[step->input];
        sfti_lora_op *op = &merge->ops[merge->op_count];
        const sfti_lora_module *module = &input->lora->modules[step->target.module];
        double scale = module->scale;
        bool idle = !(scale < 0) && !(scale > 0); /* alpha is 0 */
        if (idle && module->has_alpha && !step->target.bias) continue;
        *op = (sfti_lora_op){ .module = module, .lora = input->lora, .tensor = tensor,
                              .dora = merge->dora, .strength = input->strength,
                              .bias = step->target.bias, .row = step->target.row,
                              .from = step->target.from, .rows = step->target.rows };
        merge->blames = step->input;
        code = sfti_lora_op_open(op, &merge->work, err);
        merge->op_count++;
    }
    if (code) return code;
    merge->most_rows = most;
    merge->block = merge->block_rows = 0;
    merge->now = row;
    return SFT_OK;
}

static sft_code read_model_rows(sfti_patched *merge, const sft_tensor *tensor, uint64_t first,
                                uint64_t rows, sft_error *err) {
    uint64_t bytes = sft_dtype_describe(tensor->dtype)->bits / 8;
    uint64_t count = rows * merge->now->cols, each = READ_SIZE / bytes;
    size_t shard = sft_set_tensor_shard(merge->model, merge->now->tensor);
    const sft_file *file = sft_set_shard_at(merge->model, shard);
    uint64_t at = tensor->offset + first * merge->now->row_bytes;
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < each ? count - done : each;
        sft_code code = sft_read_bytes(file, at + done * bytes, merge->raw, (size_t)(n * bytes),
                                       err);
        if (!code)
            code = sft_cast(tensor->dtype, merge->raw, SFT_F32, merge->values + done, n, NULL, NULL,
                            err);
        if (code) {
            if (err) sfti_error_tensor(err, tensor->name);
            return code;
        }
        sfti_floats_turn(merge->values + done, n);
        done += n;
    }
    return SFT_OK;
}

/* NaN, infinities, and values that the dtype has no room for. */
static sft_code check_values(const sfti_patched *merge, const sft_tensor *tensor, uint64_t count,
                             bool before, sft_error *err) {
    uint32_t most = 0, word;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&word, merge->values + i, sizeof word);
        word &= 0x7fffffff;
        if (word > most) most = word;
    }
    uint8_t code_of[4];
    float value = 0;
    if (most < 0x7f800000 && !before) {
        sfti_put_u32(&value, most);
        if (!sft_cast(SFT_F32, &value, tensor->dtype, code_of, 1, NULL, NULL, NULL)
            && !sft_cast(tensor->dtype, code_of, SFT_F32, &value, 1, NULL, NULL, NULL))
            most = sfti_get_u32(&value);
        if ((most & 0x7fffffff) >= 0x7f800000)
            return sfti_fail_tensor(err, SFT_CAST_VALUE, tensor->offset, tensor->name,
                                    "expected values that %s can hold, found larger ones after the "
                                    "merge", sft_dtype_describe(tensor->dtype)->name);
    }
    if (most < 0x7f800000) return SFT_OK;
    return sfti_fail_tensor(err, SFT_CAST_VALUE, tensor->offset, tensor->name,
                            "expected finite values, found NaN or an infinity %s",
                            before ? "in the model" : "after the merge");
}

static sft_code compute_block(sfti_patched *merge, uint64_t first, sft_error *err) {
    const merge_row *row = merge->now;
    const sft_tensor *tensor = sft_set_tensor_at(merge->model, row->tensor);
    uint64_t rows = row->rows - first < merge->most_rows ? row->rows - first : merge->most_rows;
    uint64_t count = rows * row->cols;
    merge->block_rows = 0;
    merge->blames = SIZE_MAX;
    sft_code code = read_model_rows(merge, tensor, first, rows, err);
    if (!code) code = check_values(merge, tensor, count, true, err);
    for (size_t i = 0; !code && i < merge->op_count; i++) {
        const sfti_lora_op *op = &merge->ops[i];
        for (merge->blames = 0; merge->inputs[merge->blames].lora != op->lora;) merge->blames++;
        code = sfti_lora_op_apply(op, first, rows, merge->values, err);
    }
    if (code) return code;
    merge->blames = SIZE_MAX;
    code = check_values(merge, tensor, count, false, err);
    if (code) return code;
    sfti_floats_turn(merge->values, count);
    code = sft_cast(SFT_F32, merge->values, tensor->dtype, merge->bytes, count, NULL, NULL, err);
    if (code) return code;
    merge->block = first;
    merge->block_rows = rows;
    return SFT_OK;
}

static sft_code merge_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    sfti_patched *merge = ctx;
    uint8_t *out = into;
    *got = 0;
    while (len > 0 && offset < merge->source.size) {
        const merge_row *row = changed_at(merge, offset);
        sft_code code = merge->now == row ? SFT_OK : open_row(merge, row, err);
        uint64_t at = offset - row->begin, line = at / row->row_bytes;
        bool have = line >= merge->block && line - merge->block < merge->block_rows;
        if (!code && !have) code = compute_block(merge, line, err);
        if (code) return code;
        uint64_t begin = at - merge->block * row->row_bytes;
        uint64_t left = merge->block_rows * row->row_bytes - begin;
        size_t n = left < len ? (size_t)left : len;
        memcpy(out, merge->bytes + begin, n);
        out += n, offset += n, len -= n, *got += n;
    }
    return SFT_OK;
}

static uint32_t merge_mode(void *ctx) {
    return sft_set_output_mode(((const sfti_patched *)ctx)->model, NULL);
}

static const sft_source_vtable merge_vtable = {
    sizeof(sft_source_vtable), merge_read, NULL, NULL, merge_mode
};

/* ── Beginning and end ── */

sft_code sfti_patched_new(const sft_set *model, const sfti_patched_input *inputs, size_t count,
                        sfti_dora dora, const sft_allocator *alloc, sfti_patched **out,
                        sft_error *err) {
    sft_allocator own = sfti_allocator(alloc);
    size_t tensors = sft_set_tensor_count(model);
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_conversion *scales = NULL;
    sfti_patched *merge = sfti_take(&own, sizeof *merge);
    if (!merge) return sfti_fail_memory(err, sizeof *merge);
    memset(merge, 0, sizeof *merge);
    merge->alloc = merge->arena.alloc = merge->work.alloc = own;
    merge->model = model;
    merge->inputs = inputs;
    merge->dora = dora;
    merge->blames = SIZE_MAX;
    merge->source = (sft_source){ merge, &merge_vtable, 0, NULL, true };
    merge->row_of = sfti_arena_array(&merge->arena, tensors, sizeof *merge->row_of);
    options.alloc = alloc;
    sft_code code = merge->row_of ? sft_conversion_new(model, SFT_F32, &options, &scales, err)
                                  : sfti_fail_memory(err, tensors * sizeof *merge->row_of);
    if (merge->row_of) memset(merge->row_of, 0, tensors * sizeof *merge->row_of);
    for (uint32_t i = 0; !code && i < count; i++)
        for (size_t k = 0; !code && k < inputs[i].lora->count; k++)
            for (uint32_t at = inputs[i].lora->modules[k].targets; !code && at;
                 at = inputs[i].map->targets[at - 1].next)
                code = add_step(merge, i, &inputs[i].map->targets[at - 1], err);
    if (!code) code = plan_rows(merge, scales, err);
    sft_conversion_free(scales);
    if (code) sfti_patched_free(merge);
    else *out = merge;
    return code;
}

void sfti_patched_free(sfti_patched *merge) {
    if (!merge) return;
    sft_allocator own = merge->alloc;
    sfti_arena_free(&merge->work);
    sfti_arena_free(&merge->arena);
    sfti_release(&own, merge, sizeof *merge);
}
