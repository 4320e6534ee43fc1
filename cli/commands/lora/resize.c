/* lora resize, lora stack. Tests: tests/adapter/factors.py, tests/cli/lora/factors. */
#include "base/error.h"
#include "commands/lora/factored.h"
#include "os/io.h"
#include "support/hints.h"

#include <string.h>

#define PREFIXES_MOST 64

/* ── Resize ── */

static sft_code resize_layer(lora_factoring *f, lora_layer *layer, const sfti_rank_rule *rule,
                             sfti_arena *arena, sfti_lowrank *out, sft_error *err) {
    const sfti_lora *lora = &f->adapters[0].lora;
    sfti_matrix up, down;
    sft_code code = sfti_lora_factors(lora, &lora->modules[layer->number], arena, &up, &down, err);
    return code ? code : sfti_lowrank_of_product(&up, &down, rule, arena, out, err);
}

/* What is written as it is: all but the factors and alphas of LoRA modules. */
static sft_code keep_others(lora_factoring *f, const sfti_lora *lora, sft_error *err) {
    static const sfti_adapter_slot replaced[] = { SFTI_SLOT_UP, SFTI_SLOT_DOWN, SFTI_SLOT_MID,
                                                  SFTI_SLOT_ALPHA };
    size_t count = sft_set_tensor_count(lora->set);
    bool *gone = sfti_arena_array(&f->arena, count, sizeof *gone);
    sft_source *sources = sfti_arena_array(&f->arena, sft_set_shard_count(lora->set),
                                           sizeof *sources);
    if (!gone || !sources) return sfti_fail_memory(err, count);
    memset(gone, 0, count);
    for (size_t s = 0; s < sft_set_shard_count(lora->set); s++)
        sources[s] = sft_file_source(sft_set_shard_at(lora->set, s));
    for (size_t i = 0; i < lora->count; i++)
        for (size_t k = 0; k < SFTI_COUNT(replaced); k++) {
            uint32_t slot = lora->modules[i].slot[replaced[k]];
            if (slot && lora->modules[i].type == SFTI_TYPE_LORA) gone[slot - 1] = true;
        }
    for (size_t i = 0; i < count; i++)
        if (!gone[i] && !lora_keep(f, sft_part_of(sft_set_tensor_at(lora->set, i),
                                                  &sources[sft_set_tensor_shard(lora->set, i)])))
            return sfti_fail_memory(err, sizeof *f->kept);
    return SFT_OK;
}

static void note(const lora_factoring *f, size_t count, const char *what) {
    cli *c = f->c;
    if (count == 0) return;
    cli_flush(&c->out);
    cli_text(&c->err, "safetensors: ");
    cli_path(&c->err, f->input, ": %zu %s\n", count, what);
    cli_flush(&c->err);
}

static sft_code resize_all(lora_factoring *f, char **operands, sft_error *err) {
    const char *operand = operands[0];
    lora_adapter *adapter = sfti_arena_array(&f->arena, 1, sizeof *adapter);
    if (!adapter) return sfti_fail_memory(err, sizeof *adapter);
    memset(adapter, 0, sizeof *adapter);
    f->adapters = adapter;
    f->adapter_count = 1;
    sft_code code = lora_open(f->c, operands[0], false, adapter, err);
    f->blame = f->input = adapter->path;
    if (!code) code = cli_parts_open(f->c, &operand, 1, &f->parts, err);
    if (code) return code;
    const sfti_lora *lora = &adapter->lora;
    size_t magnitudes = 0, whole = 0, folded = 0, unknown = 0;
    f->keeps_metadata = true;
    f->compute = resize_layer;
    for (size_t i = 0; !code && i < lora->count; i++) {
        const sfti_lora_module *m = &lora->modules[i];
        if (m->type == SFTI_TYPE_FULL || (m->type == SFTI_TYPE_IA3 && m->rank == 0)) {
            whole++;
            continue;
        }
        const sft_tensor *bias = sfti_lora_tensor(lora, m, SFTI_SLOT_BIAS);
        lora_layer *layer = lora_layer_add(f);
        if (!layer) return sfti_fail_memory(err, sizeof *layer);
        if (m->type != SFTI_TYPE_LORA)
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, m->name,
                                    "expected LoRA modules, found %s: lora simplify makes them",
                                    sfti_lora_method(lora, m));
        code = lora_layer_like(f, layer, lora, m, err);
        layer->number = i;
        bool plain = !(m->scale < 1) && !(m->scale > 1);
        folded += !layer->alpha && !plain;
        unknown += !m->has_alpha && sfti_begins(m->name, "base_model.");
        magnitudes += m->slot[SFTI_SLOT_MAGNITUDE] != 0;
        if (!code && bias && !plain)
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, bias->offset, bias->name,
                                    "expected factors without a bias, or a scale of 1, found a "
                                    "bias that is scaled with them");
    }
    if (!code && f->count == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected LoRA modules, found none");
    if (!code) code = keep_others(f, lora, err);
    if (!code) code = lora_factor(f, err);
    if (code) return code;
    note(f, whole, "modules of differences, or of factors without a rank, are kept as they are");
    note(f, magnitudes, "magnitudes of DoRA are kept; the error is that of the products");
    note(f, folded, "alphas of its configuration are in the factors now: OUT needs an "
                    "adapter_config.json whose lora_alpha is its r");
    note(f, unknown, "modules have no alpha, and no configuration says it: OUT needs one whose "
                     "lora_alpha / r is as it was");
    return SFT_OK;
}

void lora_resize(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    lora_factoring f;
    sft_code code = lora_factoring_begin(&f, c, "resize", true, &err);
    if (!code && (f.exact || count > 1))
        code = cli_usage_hint(&err, CLI_HINT_HELP_LORA, count > 1 ? "expected one adapter, found "
                              "more" : "expected a number for --rank, found exact");
    if (!code) code = resize_all(&f, operands, &err);
    lora_factoring_finish(&f, code, &err);
}

/* ── Stack ── */

/* One layer of the sum: which module of each adapter. */
typedef struct stack {
    uint32_t *modules; /* of layer i in adapter k: + 1, at i * adapters + k */
} stack;

static double weight_of(const lora_factoring *f, size_t k, const sfti_lora_module *m) {
    return m->scale * f->adapters[k].strength;
}

static sft_code stack_layer(lora_factoring *f, lora_layer *layer, const sfti_rank_rule *rule,
                            sfti_arena *arena, sfti_lowrank *out, sft_error *err) {
    const uint32_t *modules = ((const stack *)f->ctx)->modules + layer->number * f->adapter_count;
    sfti_matrix ups, downs, up, down;
    uint64_t at = 0, rank = layer->rank_before, rows = 0, cols = 0;
    sft_code code = SFT_OK;
    for (size_t k = 0; !code && k < f->adapter_count; k++) {
        if (!modules[k]) continue;
        const sfti_lora *lora = &f->adapters[k].lora;
        const sfti_lora_module *m = &lora->modules[modules[k] - 1];
        code = sfti_lora_factors(lora, m, arena, &up, &down, err);
        if (!code && at == 0) {
            rows = up.rows, cols = down.cols;
            code = sfti_matrix_new(arena, rows, rank, &ups, err);
            if (!code) code = sfti_matrix_new(arena, rank, cols, &downs, err);
        }
        if (code) return code;
        /* the first one's factors stay as they are */
        double by = weight_of(f, k, m) / layer->scale;
        for (uint64_t i = 0; i < rows; i++)
            for (uint64_t j = 0; j < up.cols; j++)
                ups.at[i * rank + at + j] = (float)(by * (double)up.at[i * up.cols + j]);
        memcpy(downs.at + at * cols, down.at, (size_t)(down.rows * cols) * sizeof(float));
        at += up.cols;
    }
    if (rule) return sfti_lowrank_of_product(&ups, &downs, rule, arena, out, err);
    out->up = ups;
    out->down = downs;
    return SFT_OK;
}

static sft_span prefix_of(sft_span name) {
    size_t i = 0, marks = 0;
    for (; i < name.len && name.data[i] != '.' && marks < 2; i++) marks += name.data[i] == '_';
    return (sft_span){ name.data, i };
}

static sft_span ending_of(const sfti_lora *lora, const sfti_lora_module *m) {
    const sft_tensor *up = sfti_lora_tensor(lora, m, SFTI_SLOT_UP);
    return (sft_span){ up->name.data + m->name.len, up->name.len - m->name.len };
}

static sft_span layer_name(const void *ctx, uint32_t entry) {
    return ((const lora_factoring *)ctx)->layers[entry].name;
}

/* Whether a part of the model, by how names begin, is in earlier adapters and in this one, but no
 * layer of it in both. */
static bool is_apart(const lora_factoring *f, const uint32_t *modules, size_t k, sft_span prefix) {
    bool both = false;
    for (size_t n = 0; n < f->count; n++) {
        if (!sft_span_equal(prefix_of(f->layers[n].name), prefix)) continue;
        bool other = false;
        for (size_t j = 0; j < k; j++) other = other || modules[n * f->adapter_count + j];
        both = both || other;
        if (other && modules[n * f->adapter_count + k]) return false;
    }
    return both;
}

/* Then their names may be two for the same layers. */
static sft_code check_names(const lora_factoring *f, const uint32_t *modules, size_t k,
                            sft_error *err) {
    const sfti_lora *lora = &f->adapters[k].lora;
    sft_span seen[PREFIXES_MOST];
    size_t count = 0;
    for (size_t i = 0; i < lora->count; i++) {
        sft_span prefix = prefix_of(lora->modules[i].name);
        size_t at = 0;
        while (at < count && !sft_span_equal(seen[at], prefix)) at++;
        if (at < count) continue;
        if (count == PREFIXES_MOST || is_apart(f, modules, k, prefix))
            return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET,
                                    lora->modules[i].name, "expected names of layers as the other "
                                    "adapters have, found none of theirs");
        seen[count++] = prefix;
    }
    return SFT_OK;
}

/* Kernels of 1 x 3 and 3 x 1 have as many elements. */
static bool same_kernel(const lora_layer *layer, const sfti_lora *lora, const sfti_lora_module *m) {
    const sft_tensor *kernel = sfti_lora_tensor(lora, m, m->tucker ? SFTI_SLOT_MID
                                                                   : SFTI_SLOT_DOWN);
    if (m->kernel <= 1) return true;
    return kernel->rank == layer->down_dims
        && memcmp(kernel->shape + 2, layer->down_shape + 2,
                  (kernel->rank - 2) * sizeof *kernel->shape) == 0;
}

static sft_code stack_module(lora_factoring *f, stack *all, sfti_names *names, size_t k, size_t i,
                             sft_error *err) {
    const sfti_lora *lora = &f->adapters[k].lora;
    const sfti_lora_module *m = &lora->modules[i];
    if (m->type != SFTI_TYPE_LORA || m->slot[SFTI_SLOT_MAGNITUDE] || m->slot[SFTI_SLOT_BIAS]
        || m->slot[SFTI_SLOT_DIFF_BIAS])
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, m->name,
                                "expected plain LoRA modules, found %s%s: lora simplify makes them",
                                sfti_lora_method(lora, m),
                                m->slot[SFTI_SLOT_MAGNITUDE] ? " with DoRA's magnitudes" : "");
    uint32_t found = sfti_names_find(names, m->name);
    double weight = weight_of(f, k, m);
    if (found == SFTI_NO_NAME) {
        lora_layer *layer = lora_layer_add(f);
        if (!layer) return sfti_fail_memory(err, sizeof *layer);
        found = (uint32_t)f->count - 1;
        layer->number = found;
        sft_code code = lora_layer_like(f, layer, lora, m, err);
        if (code) return code;
        layer->rank_before = 0;
        layer->scale = weight;
        (void)sfti_names_add(names, m->name, found);
    }
    lora_layer *layer = &f->layers[found];
    const sft_tensor *up = sfti_lora_tensor(lora, m, SFTI_SLOT_UP);
    if (layer->dtype != lora_dtype(f, up->dtype)) layer->dtype = lora_dtype(f, SFT_F32);
    for (size_t j = 0; j < k; j++) {
        uint32_t other = all->modules[found * f->adapter_count + j];
        const sfti_lora *before = &f->adapters[j].lora;
        if (!other) continue;
        const sfti_lora_module *o = &before->modules[other - 1];
        if (o->out != m->out || o->in != m->in || o->kernel != m->kernel)
            return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, up->offset, up->name,
                                    "expected a layer of %llu x %llu as in the other adapter, "
                                    "found %llu x %llu", (unsigned long long)o->out,
                                    (unsigned long long)o->in, (unsigned long long)m->out,
                                    (unsigned long long)m->in);
        if (!same_kernel(layer, lora, m))
            return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, up->offset, up->name,
                                    "expected a kernel as in the other adapter, found another");
        if (!sft_span_equal(ending_of(before, o), ending_of(lora, m)))
            return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, up->offset, up->name,
                                    "expected a name as the other adapter has, found another "
                                    "layout of names");
    }
    bool none = !(layer->scale < 0) && !(layer->scale > 0);
    if (none) layer->scale = weight;
    layer->rank_before += m->rank;
    all->modules[found * f->adapter_count + k] = (uint32_t)i + 1;
    return SFT_OK;
}

static sft_code stack_all(lora_factoring *f, char **operands, size_t count, sft_error *err) {
    sfti_arena *arena = &f->arena;
    stack all = { NULL };
    sfti_names names;
    uint64_t modules = 0;
    sft_code code = SFT_OK;
    f->adapters = sfti_arena_array(arena, count, sizeof *f->adapters);
    if (!f->adapters) return sfti_fail_memory(err, count * sizeof *f->adapters);
    memset(f->adapters, 0, count * sizeof *f->adapters);
    f->adapter_count = count;
    for (size_t k = 0; !code && k < count; k++) {
        f->blame = operands[k];
        code = lora_open(f->c, operands[k], true, &f->adapters[k], err);
        if (!code) f->blame = f->adapters[k].path;
        if (!code && f->adapters[k].lora.unread_count)
            code = sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET,
                                    sft_set_tensor_at(f->adapters[k].set,
                                                      f->adapters[k].lora.unread[0])->name,
                                    "expected tensors of LoRA modules alone, found another one");
        modules += f->adapters[k].lora.count;
    }
    if (code) return code;
    code = cli_parts_open(f->c, (const char *const *)operands, count, &f->parts, err);
    if (code) return code;
    f->input = f->adapters[0].path;
    f->keeps_metadata = count == 1;
    all.modules = sfti_arena_array(arena, modules * count, sizeof *all.modules);
    if (!all.modules) return sfti_fail_memory(err, modules * count * sizeof *all.modules);
    memset(all.modules, 0, (size_t)(modules * count) * sizeof *all.modules);
    if (!sfti_names_draw(&names, modules, layer_name, f, arena))
        return sfti_fail_memory(err, modules * sizeof *names.slots);
    for (size_t k = 0; !code && k < count; k++) {
        f->blame = f->adapters[k].path;
        for (size_t i = 0; !code && i < f->adapters[k].lora.count; i++)
            code = stack_module(f, &all, &names, k, i, err);
        if (!code && k > 0) code = check_names(f, all.modules, k, err);
    }
    for (size_t i = 0; !code && i < f->count; i++) {
        bool none = !(f->layers[i].scale < 0) && !(f->layers[i].scale > 0);
        f->layers[i].left_out = none; /* no effect at all */
        if (none) f->layers[i].scale = 1;
    }
    f->ctx = &all;
    f->compute = stack_layer;
    return code ? code : lora_factor(f, err);
}

void lora_stack(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    lora_factoring f;
    sft_code code = lora_factoring_begin(&f, c, "stack", false, &err);
    if (!code && f.exact) f.has_rule = f.exact = false;
    if (!code) code = stack_all(&f, operands, count, &err);
    lora_factoring_finish(&f, code, &err);
}
