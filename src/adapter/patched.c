/* Tensors of a model with adapters merged into them, as a source. Tests: tests/adapter. */
#include "adapter/adapter.h"

#include "base/endian.h"
#include "base/error.h"
#include "base/files.h"
#include "base/mem.h"
#include "os/os.h"
#include "safetensors_cast.h"
#include "safetensors_report.h"

#include <string.h>

#define BLOCK_ELEMENTS ((uint64_t)1 << 18) /* of rows that are computed at once */
#define ROW_MOST (UINT64_C(1) << 26)       /* elements of a row */
#define READ_SIZE ((size_t)256 << 10)
#define THREADS_MOST 64

/* One module's change of one tensor, in the order of the adapters. */
typedef struct merge_step {
    uint32_t next; /* + 1 */
    uint32_t input;
    double strength;
    sfti_lora_target target;
} merge_step;

typedef struct merge_row {
    uint32_t tensor;
    uint32_t first, last; /* steps + 1 */
    bool all;             /* its rows are computed together */
    bool light;           /* without more memory: a thread of our own may do it */
    uint64_t begin;       /* in the source */
    uint64_t rows, cols, row_bytes;
} merge_row;

/* A tensor whose modules' matrices are in memory. */
typedef struct merge_open {
    const merge_row *row;
    size_t users; /* blocks */
    sfti_arena arena;
    sfti_lora_op *ops;
    size_t *inputs; /* that the ops are of */
    size_t op_count;
    sfti_stochastic stochastic;
    bool rounds; /* by that */
} merge_open;

/* Rows [first, first + rows) of one. */
typedef struct merge_block {
    sfti_patched *of;
    merge_open *open;
    uint64_t first, rows;
    uint8_t *raw, *bytes;
    float *values;
    size_t values_size, bytes_size;
    sft_code code;
    sft_error err;
    size_t blames;
    uint64_t changed, lost;
    os_thread thread;
    bool running;
} merge_block;

struct sfti_patched {
    sft_allocator alloc;
    sfti_arena arena;
    const sft_set *model;
    const sfti_patched_input *inputs;
    size_t input_count;
    sfti_patched_options options;
    uint32_t *row_of; /* of the model's tensors, + 1 */
    merge_row *rows;
    size_t count, capacity;
    merge_step *steps;
    size_t step_count, step_capacity;
    sft_source source;
    size_t blames;
    uint64_t changed, lost;
    /* blocks in the order in which they are asked for, `used` of them from `head` on: */
    merge_block *ring;
    merge_open *opens; /* one more than blocks */
    size_t ring_count, head, used;
    const merge_row *next; /* what comes behind them; NULL: is not known */
    uint64_t next_line;
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

static sft_code check_changed(const sfti_patched *merge, uint32_t i, sft_error *err) {
    const sft_tensor *tensor = sft_set_tensor_at(merge->model, i);
    uint64_t rows = 0, cols = 0;
    if (!can_hold(tensor->dtype))
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected a tensor of at most 32-bit floats to merge into, found "
                                "%s", sft_dtype_describe(tensor->dtype)->name);
    if (!sfti_lora_shape(tensor, &rows, &cols) || cols > ROW_MOST)
        return sfti_fail_tensor(err, SFT_ADDRESS_SPACE, tensor->offset, tensor->name,
                                "expected rows of at most %llu elements, found longer ones",
                                (unsigned long long)ROW_MOST);
    return SFT_OK;
}

/* Whether nothing would change: then the tensor is left as it is. Rotations are never, for their
 * rescale does not depend on the strength. DoRA's magnitudes count whatever alpha is. */
static bool leaves_alone(const sfti_lora_module *m, double strength, bool bias) {
    bool none = !(m->scale < 0) && !(m->scale > 0); /* alpha is 0 */
    if (none && m->has_alpha && !bias && !m->slot[SFTI_SLOT_MAGNITUDE]) return true;
    bool turns = m->type == SFTI_TYPE_OFT || m->type == SFTI_TYPE_BOFT;
    return !(strength < 0) && !(strength > 0) && !turns;
}

static sft_code add_step(sfti_patched *merge, uint32_t input, uint32_t number, sft_error *err) {
    const sfti_patched_input *of = &merge->inputs[input];
    const sfti_lora_target *target = &of->map->targets[number];
    const sfti_lora_module *module = &of->lora->modules[target->module];
    double strength = of->strengths ? of->strengths[number] : of->strength;
    if (leaves_alone(module, strength, target->bias)) return SFT_OK;
    merge_step *steps = sfti_arena_grow(&merge->arena, merge->steps, merge->step_count, 1,
                                        &merge->step_capacity, sizeof *steps);
    if (!steps) return sfti_fail_memory(err, sizeof *steps);
    merge->steps = steps;
    steps[merge->step_count++] = (merge_step){ 0, input, strength, *target };
    uint32_t step = (uint32_t)merge->step_count;
    if (!merge->row_of[target->tensor]) {
        merge_row *rows = sfti_arena_grow(&merge->arena, merge->rows, merge->count, 1,
                                          &merge->capacity, sizeof *rows);
        if (!rows) return sfti_fail_memory(err, sizeof *rows);
        merge->rows = rows;
        rows[merge->count++] = (merge_row){ .tensor = target->tensor, .first = step,
                                            .light = true };
        merge->row_of[target->tensor] = (uint32_t)merge->count;
    }
    merge_row *row = &merge->rows[merge->row_of[target->tensor] - 1];
    if (row->last) steps[row->last - 1].next = step;
    row->last = step;
    bool turns = target->transposed;
    if (turns || sfti_lora_needs_all(of->lora, module, target->bias)) row->all = true;
    if (turns || !sfti_lora_is_light(module, target->bias)) row->light = false;
    return SFT_OK;
}

/* In the model's order, in which files are written. */
static sft_code plan_rows(sfti_patched *merge, sft_error *err) {
    size_t tensors = sft_set_tensor_count(merge->model), count = 0;
    merge_row *rows = sfti_arena_array(&merge->arena, merge->count, sizeof *rows);
    uint64_t at = 0;
    if (!rows) return sfti_fail_memory(err, merge->count * sizeof *rows);
    for (uint32_t i = 0; i < tensors; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(merge->model, i);
        if (!merge->row_of[i]) continue;
        merge_row *row = &rows[count++];
        *row = merge->rows[merge->row_of[i] - 1];
        merge->row_of[i] = (uint32_t)count;
        sft_code code = check_changed(merge, i, err);
        if (code) return code;
        (void)sfti_lora_shape(tensor, &row->rows, &row->cols);
        row->row_bytes = row->cols * (sft_dtype_describe(tensor->dtype)->bits / 8);
        row->begin = at;
        at += tensor->end - tensor->begin;
        if (row->all && row->rows * row->cols > SFTI_LORA_ELEMENTS)
            return sfti_fail_tensor(err, SFT_ADDRESS_SPACE, tensor->offset, tensor->name,
                                    "expected at most %llu elements where all rows are turned at "
                                    "once, found more", (unsigned long long)SFTI_LORA_ELEMENTS);
    }
    merge->rows = rows;
    merge->source.size = at;
    return SFT_OK;
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

void sfti_patched_lost(const sfti_patched *merge, uint64_t *changed, uint64_t *lost) {
    *changed = merge->changed;
    *lost = merge->lost;
}

/* ── Computing ── */

/* Loads what changes a row. */
static sft_code open_row(sfti_patched *merge, const merge_row *row, merge_open *open,
                         sft_error *err) {
    const sft_tensor *tensor = sft_set_tensor_at(merge->model, row->tensor);
    size_t count = 0;
    sfti_arena_free(&open->arena);
    *open = (merge_open){ .arena = { .alloc = merge->alloc } };
    for (uint32_t at = row->first; at; at = merge->steps[at - 1].next) count++;
    open->ops = sfti_arena_array(&open->arena, count, sizeof *open->ops);
    open->inputs = sfti_arena_array(&open->arena, count, sizeof *open->inputs);
    if (!open->ops || !open->inputs) return sfti_fail_memory(err, count * sizeof *open->ops);
    for (uint32_t at = row->first; at; at = merge->steps[at - 1].next) {
        const merge_step *step = &merge->steps[at - 1];
        const sfti_patched_input *input = &merge->inputs[step->input];
        sfti_lora_op *op = &open->ops[open->op_count];
        *op = (sfti_lora_op){ .module = &input->lora->modules[step->target.module],
                              .lora = input->lora, .tensor = tensor, .dora = merge->options.dora,
                              .strength = step->strength, .bias = step->target.bias,
                              .turned = step->target.turned,
                              .transposed = step->target.transposed,
                              .row = step->target.row, .from = step->target.from,
                              .rows = step->target.rows };
        open->inputs[open->op_count++] = merge->blames = step->input;
        sft_code code = sfti_lora_op_open(op, &open->arena, err);
        if (code) return code;
    }
    open->rounds = merge->options.stochastic
                && sfti_stochastic_begin(&open->stochastic, merge->options.seed, tensor->name,
                                         tensor->dtype);
    open->row = row;
    return SFT_OK;
}

static sft_code read_model_rows(const merge_block *block, const sft_tensor *tensor,
                                sft_error *err) {
    const sfti_patched *merge = block->of;
    const merge_row *row = block->open->row;
    uint64_t count = block->rows * row->cols, each = READ_SIZE / sfti_lora_width(tensor);
    uint64_t first = block->first * row->cols;
    size_t shard = sft_set_tensor_shard(merge->model, row->tensor);
    const sft_file *file = sft_set_shard_at(merge->model, shard);
    bool keeps = row->row_bytes == row->cols; /* to tell what is lost */
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < each ? count - done : each;
        uint8_t *raw = keeps ? block->bytes + done : block->raw;
        sft_code code = sfti_lora_elements(merge->model, file, tensor, first + done, n, raw,
                                           block->values + done, err);
        if (code) return code;
        done += n;
    }
    return SFT_OK;
}

/* NaN, infinities, and values that the dtype has no room for. What is not finite in the model is
 * not after the merge either, so that one look is enough until something is found. */
static sft_code check_values(const merge_block *block, const sft_tensor *tensor, sft_error *err) {
    uint64_t count = block->rows * block->open->row->cols;
    uint32_t most = sfti_floats_greatest(block->values, count);
    uint8_t code_of[4];
    float value = 0;
    if (most < 0x7f800000) {
        sfti_put_u32(&value, most);
        if (!sft_cast(SFT_F32, &value, tensor->dtype, code_of, 1, NULL, NULL, NULL)
            && !sft_cast(tensor->dtype, code_of, SFT_F32, &value, 1, NULL, NULL, NULL))
            most = sfti_get_u32(&value) & 0x7fffffff;
        if (most < 0x7f800000) return SFT_OK;
        return sfti_fail_tensor(err, SFT_CAST_VALUE, tensor->offset, tensor->name,
                                "expected values that %s can hold, found larger ones after the "
                                "merge", sft_dtype_describe(tensor->dtype)->name);
    }
    sft_code code = read_model_rows(block, tensor, err);
    if (code) return code;
    bool before = sfti_floats_greatest(block->values, count) >= 0x7f800000;
    return sfti_fail_tensor(err, SFT_CAST_VALUE, tensor->offset, tensor->name,
                            "expected finite values, found NaN or an infinity %s",
                            before ? "in the model" : "after the merge");
}

/* Casts, and counts the values that differ from those of `bytes` and would get the same code. */
static sft_code store_narrow(merge_block *block, const sft_tensor *tensor, uint64_t count,
                             sft_error *err) {
    float old[512];
    uint8_t codes[512];
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < 512 ? count - done : 512;
        sft_code code = sft_cast(tensor->dtype, block->bytes + done, SFT_F32, old, n, NULL, NULL,
                                 err);
        if (!code)
            code = sft_cast(SFT_F32, block->values + done, tensor->dtype, codes, n, NULL, NULL,
                            err);
        if (code) return code;
        for (uint64_t i = 0; i < n; i++) {
            bool changed = memcmp(&old[i], &block->values[done + i], sizeof *old) != 0;
            block->changed += changed;
            block->lost += changed && codes[i] == block->bytes[done + i];
        }
        memcpy(block->bytes + done, codes, (size_t)n);
        done += n;
    }
    return SFT_OK;
}

static sft_code compute_block(merge_block *block, sft_error *err) {
    const merge_open *open = block->open;
    const merge_row *row = open->row;
    const sft_tensor *tensor = sft_set_tensor_at(block->of->model, row->tensor);
    uint64_t count = block->rows * row->cols, first = block->first * row->cols;
    block->changed = block->lost = 0;
    block->blames = SIZE_MAX;
    sft_code code = read_model_rows(block, tensor, err);
    for (size_t i = 0; !code && i < open->op_count; i++) {
        block->blames = open->inputs[i];
        code = sfti_lora_op_apply(&open->ops[i], block->first, block->rows, block->values, err);
    }
    if (code) return code;
    block->blames = SIZE_MAX;
    if (open->rounds)
        sfti_stochastic_round(&open->stochastic, first, block->values, (size_t)count);
    code = check_values(block, tensor, err);
    if (code) return code;
    sfti_floats_turn(block->values, count);
    if (row->row_bytes == row->cols) return store_narrow(block, tensor, count, err);
    return sft_cast(SFT_F32, block->values, tensor->dtype, block->bytes, count, NULL, NULL, err);
}

static void compute_alone(void *ctx) {
    merge_block *block = ctx;
    block->code = compute_block(block, &block->err);
}

/* ── Blocks one after another ── */

static void drop_block(sfti_patched *merge) {
    merge_block *block = &merge->ring[merge->head];
    if (block->running) sfti_os_thread_join(&block->thread);
    block->running = false;
    block->open->users--;
    merge->head = (merge->head + 1) % merge->ring_count;
    merge->used--;
}

static sft_code block_room(const sfti_patched *merge, merge_block *block, uint64_t rows,
                           const merge_row *row, sft_error *err) {
    size_t values = (size_t)(rows * row->cols) * sizeof(float);
    size_t bytes = (size_t)(rows * row->row_bytes);
    if (!block->raw) block->raw = sfti_take(&merge->alloc, READ_SIZE);
    if (block->values_size < values) {
        sfti_release(&merge->alloc, block->values, block->values_size);
        block->values = sfti_take(&merge->alloc, values);
        block->values_size = block->values ? values : 0;
    }
    if (block->bytes_size < bytes) {
        sfti_release(&merge->alloc, block->bytes, block->bytes_size);
        block->bytes = sfti_take(&merge->alloc, bytes);
        block->bytes_size = block->bytes ? bytes : 0;
    }
    return block->raw && block->values && block->bytes ? SFT_OK : sfti_fail_memory(err, values);
}

/* Begins the block that comes behind the others. */
static sft_code begin_block(sfti_patched *merge, sft_error *err) {
    const merge_row *row = merge->next;
    merge_block *block = &merge->ring[(merge->head + merge->used) % merge->ring_count];
    merge_open *open = NULL, *idle = NULL;
    for (size_t i = 0; i <= merge->ring_count; i++) {
        if (merge->opens[i].row == row) open = &merge->opens[i];
        else if (merge->opens[i].users == 0) idle = &merge->opens[i];
    }
    uint64_t most = row->all ? row->rows : BLOCK_ELEMENTS / row->cols & ~UINT64_C(3);
    if (most == 0) most = 1;
    if (most > row->rows - merge->next_line) most = row->rows - merge->next_line;
    sft_code code = open ? SFT_OK : open_row(merge, row, idle, err);
    if (!code) code = block_room(merge, block, most, row, err);
    if (code) return code;
    block->of = merge;
    block->open = open ? open : idle;
    block->open->users++;
    block->first = merge->next_line;
    block->rows = most;
    block->err = (sft_error)SFT_ERROR_INIT;
    merge->used++;
    merge->next_line += most;
    if (merge->next_line == row->rows) {
        merge->next_line = 0;
        merge->next = row + 1 < merge->rows + merge->count ? row + 1 : NULL;
    }
    block->running = merge->ring_count > 1 && row->light
                  && sfti_os_thread_start(&block->thread, compute_alone, block) == 0;
    if (!block->running) compute_alone(block);
    return SFT_OK;
}

/* The block that has the row's line, computed. */
static sft_code take_block(sfti_patched *merge, const merge_row *row, uint64_t line,
                           const merge_block **out, sft_error *err) {
    for (; merge->used > 0; drop_block(merge)) {
        const merge_block *b = &merge->ring[merge->head];
        if (b->open->row == row && line >= b->first && line - b->first < b->rows) break;
    }
    sft_code code = SFT_OK;
    if (merge->used == 0) {
        merge->next = row;
        merge->next_line = row->all ? 0 : line;
        code = begin_block(merge, err);
    }
    while (!code && merge->used < merge->ring_count && merge->next && merge->next->light)
        code = begin_block(merge, err);
    if (code) return code;
    merge_block *block = &merge->ring[merge->head];
    if (block->running) sfti_os_thread_join(&block->thread);
    block->running = false;
    *out = block;
    merge->blames = block->blames;
    if (block->code) return sfti_fail_as(err, block->code, &block->err);
    merge->changed += block->changed;
    merge->lost += block->lost;
    block->changed = block->lost = 0;
    return SFT_OK;
}

static sft_code merge_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    sfti_patched *merge = ctx;
    uint8_t *out = into;
    *got = 0;
    while (len > 0 && offset < merge->source.size) {
        size_t from = 0, to = merge->count;
        while (to - from > 1) {
            size_t mid = from + (to - from) / 2;
            if (merge->rows[mid].begin <= offset) from = mid;
            else to = mid;
        }
        const merge_row *row = &merge->rows[from];
        const merge_block *block = NULL;
        uint64_t at = offset - row->begin;
        sft_code code = take_block(merge, row, at / row->row_bytes, &block, err);
        if (code) return sfti_lora_told(code, err);
        uint64_t begin = at - block->first * row->row_bytes;
        uint64_t left = block->rows * row->row_bytes - begin;
        size_t n = left < len ? (size_t)left : len;
        memcpy(out, block->bytes + begin, n);
        out += n, offset += n, len -= n, *got += n;
    }
    return SFT_OK;
}

static uint32_t merge_mode(void *ctx) {
    const sfti_patched *merge = ctx;
    uint32_t mode = sft_set_output_mode(merge->model, NULL);
    for (size_t i = 0; i < merge->input_count; i++)
        sfti_mode_common(&mode, sft_set_output_mode(merge->inputs[i].lora->set, NULL));
    return mode;
}

static const sft_source_vtable merge_vtable = {
    sizeof(sft_source_vtable), merge_read, NULL, NULL, merge_mode
};

/* ── Beginning and end ── */

static sft_code patched_begin(sfti_patched *merge, size_t count, sft_error *err) {
    size_t tensors = sft_set_tensor_count(merge->model);
    uint32_t threads = merge->options.threads;
    if (threads > THREADS_MOST) threads = THREADS_MOST;
    merge->ring_count = threads > 1 ? (size_t)threads + 1 : 1;
    merge->row_of = sfti_arena_array(&merge->arena, tensors, sizeof *merge->row_of);
    merge->ring = sfti_arena_array(&merge->arena, merge->ring_count, sizeof *merge->ring);
    merge->opens = sfti_arena_array(&merge->arena, merge->ring_count + 1, sizeof *merge->opens);
    if (!merge->row_of || !merge->opens) merge->ring = NULL; /* of which nothing is filled in */
    if (!merge->ring)
        return sfti_fail_memory(err, tensors * sizeof *merge->row_of);
    memset(merge->row_of, 0, tensors * sizeof *merge->row_of);
    memset(merge->ring, 0, merge->ring_count * sizeof *merge->ring);
    memset(merge->opens, 0, (merge->ring_count + 1) * sizeof *merge->opens);
    sft_code code = SFT_OK;
    for (uint32_t i = 0; !code && i < count; i++) {
        const sfti_patched_input *input = &merge->inputs[i];
        for (size_t k = 0; !code && k < input->lora->count; k++) {
            uint32_t at = input->lora->modules[k].targets;
            for (; !code && at; at = input->map->targets[at - 1].next)
                code = add_step(merge, i, at - 1, err);
        }
    }
    return code ? code : plan_rows(merge, err);
}

sft_code sfti_patched_new(const sft_set *model, const sfti_patched_input *inputs, size_t count,
                          const sfti_patched_options *options, sfti_patched **out,
                          sft_error *err) {
    sfti_patched *merge = sfti_take(&options->alloc, sizeof *merge);
    if (!merge) return sfti_fail_memory(err, sizeof *merge);
    memset(merge, 0, sizeof *merge);
    merge->alloc = merge->arena.alloc = options->alloc;
    merge->model = model;
    merge->inputs = inputs;
    merge->input_count = count;
    merge->options = *options;
    merge->blames = SIZE_MAX;
    merge->source = (sft_source){ merge, &merge_vtable, 0, NULL, true };
    sft_code code = patched_begin(merge, count, err);
    if (code) sfti_patched_free(merge);
    else *out = merge;
    return code;
}

void sfti_patched_free(sfti_patched *merge) {
    if (!merge) return;
    sft_allocator own = merge->alloc;
    while (merge->used > 0) drop_block(merge);
    for (size_t i = 0; merge->ring && i < merge->ring_count; i++) {
        sfti_release(&own, merge->ring[i].raw, READ_SIZE);
        sfti_release(&own, merge->ring[i].values, merge->ring[i].values_size);
        sfti_release(&own, merge->ring[i].bytes, merge->ring[i].bytes_size);
    }
    for (size_t i = 0; merge->ring && i <= merge->ring_count; i++)
        sfti_arena_free(&merge->opens[i].arena);
    sfti_arena_free(&merge->arena);
    sfti_release(&own, merge, sizeof *merge);
}
