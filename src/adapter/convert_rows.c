/* Layers that are divided and fused by rows of some of a module's tensors, whose others stay as
 * they are. Tests: tests/adapter/fused.py. */
#include "adapter/convert_names.h"

#include "base/checked.h"
#include "base/error.h"

#include <string.h>

/* ── What several modules have ── */

sft_code sfti_convert_load(sfti_convert_run *run, const sft_part *part, sfti_arena *work,
                           uint8_t **out) {
    uint64_t len = sfti_layout_bytes(&part->spec), at = 0;
    *out = len > (1u << 30) ? NULL : sfti_arena_array(work, len, 1);
    if (!*out) return sfti_fail_memory(run->err, len);
    while (at < len) {
        size_t got;
        sft_code code = sft_source_read(part->source, part->begin + at, *out + at,
                                        (size_t)(len - at), &got, run->err);
        if (code || got == 0) return code ? code : sfti_fail(run->err, SFT_IO_SHRUNK,
                                                             "expected a tensor, found the end");
        at += got;
    }
    return SFT_OK;
}

bool sfti_convert_is_zero(const uint8_t *bytes, uint64_t len) {
    while (len > 0 && *bytes == 0) bytes++, len--;
    return len == 0;
}

sft_code sfti_convert_same_tensors(sfti_convert_run *run, sfti_convert_layer *const *pieces,
                                   unsigned count, sfti_adapter_slot slot, bool *out) {
    uint8_t *one, *other;
    uint32_t first = pieces[0]->module->slot[slot];
    sft_code code = SFT_OK;
    sfti_arena work = { .alloc = run->out->out.arena.alloc };
    sft_part part = { .source = NULL };
    *out = true;
    if (first) part = sfti_convert_part(run, first);
    if (first) code = sfti_convert_load(run, &part, &work, &one);
    for (unsigned i = 1; !code && *out && i < count; i++) {
        uint32_t number = pieces[i]->module->slot[slot];
        *out = !number == !first;
        if (!number || !*out) continue;
        sft_part next = sfti_convert_part(run, number);
        *out = next.spec.dtype == part.spec.dtype && next.spec.rank == part.spec.rank
            && (part.spec.rank == 0
                || memcmp(next.spec.shape, part.spec.shape,
                          part.spec.rank * sizeof *part.spec.shape) == 0);
        if (*out) code = sfti_convert_load(run, &next, &work, &other);
        if (!code && *out) *out = memcmp(one, other, (size_t)sfti_layout_bytes(&part.spec)) == 0;
    }
    sfti_arena_free(&work);
    return code;
}

bool sfti_convert_same_scales(sfti_convert_layer *const *pieces, unsigned count) {
    unsigned i = 1;
    while (i < count && pieces[i]->module->rank == pieces[0]->module->rank
           && pieces[i]->module->scale == pieces[0]->module->scale)
        i++;
    return i == count;
}

sft_code sfti_convert_settle_rows(const sfti_convert_run *run, const sfti_layout_rule *rule,
                                  const sfti_lora_module *m, sfti_convert_fused *f) {
    uint64_t share = 0, check[SFTI_LAYOUT_PIECES];
    for (unsigned k = 0; k < rule->count; k++) {
        if (f->at[k] && rule->sizes[k] == 0) share = f->rows[k];
        if (f->at[k] && rule->sizes[k] && f->cols == 0) f->cols = f->rows[k] / rule->sizes[k];
    }
    for (unsigned k = 0; k < rule->count; k++) {
        if (!f->at[k]) f->rows[k] = rule->sizes[k] ? rule->sizes[k] * f->cols : share;
        if (f->rows[k] == 0 || !sfti_add(f->total, f->rows[k], &f->total))
            return sfti_convert_refuse(run, m,
                                       "all layers that the other layout fuses, for the rows of "
                                       "those that are missing are not known");
    }
    if (!sfti_layout_divide(rule, f->total, f->cols, check)
        || memcmp(check, f->rows, rule->count * 8) != 0)
        return sfti_convert_refuse(run, m, "rows as the other layout divides them");
    return SFT_OK;
}

/* ── Methods of which some tensors have the rows ── */

#define FORM_TENSORS 3

/* The tensors that have the layer's rows; all others of the module are the same for every row. */
typedef struct rows_form {
    unsigned count;
    sfti_adapter_slot slots[FORM_TENSORS];
    uint64_t each[FORM_TENSORS]; /* rows of the layer that one of theirs stands for */
    bool idle;                /* zeros change nothing */
} rows_form;

static sft_code refuse_method(const sfti_convert_run *run, const sfti_lora_module *m) {
    return sfti_convert_refuse(run, m,
                               "a layer that the other layout neither divides nor fuses, which "
                               "this module cannot follow exactly (lora simplify makes plain "
                               "LoRA)");
}

static void form_add(rows_form *form, const sfti_lora_module *m, sfti_adapter_slot slot,
                     uint64_t each) {
    if (!m->slot[slot]) return;
    form->slots[form->count] = slot;
    form->each[form->count++] = each;
}

/* Without any where the module cannot be divided by rows. */
static sft_code rows_form_of(const sfti_convert_run *run, const sfti_lora_module *m,
                             rows_form *form) {
    const sft_tensor *tensor;
    float columns = 1;
    *form = (rows_form){ .idle = true };
    if (sfti_convert_is_peft(run) || (m->type == SFTI_TYPE_LORA && m->slot[SFTI_SLOT_BIAS]))
        return SFT_OK;
    switch (m->type) {
    case SFTI_TYPE_LORA:
        if (m->slot[SFTI_SLOT_MID] && !sfti_convert_ending(run, SFTI_END_MID)) return SFT_OK;
        form_add(form, m, SFTI_SLOT_UP, 1);
        break;
    case SFTI_TYPE_FULL: form_add(form, m, SFTI_SLOT_DIFF, 1); break;
    case SFTI_TYPE_LOKR: /* each row of w1 is by all of w2 */
        for (int slot = SFTI_SLOT_KRON_1; slot <= SFTI_SLOT_KRON_1 + 1; slot++)
            if ((tensor = sfti_lora_tensor(run->lora, m, (sfti_adapter_slot)slot))
                && tensor->rank > 0)
                form_add(form, m, (sfti_adapter_slot)slot, m->out / tensor->shape[0]);
        break;
    case SFTI_TYPE_OFT: /* a cap is of all blocks together */
        tensor = sfti_lora_tensor(run->lora, m, SFTI_SLOT_OFT_BLOCKS);
        if (!tensor || m->alpha > 0 || m->alpha < 0) return SFT_OK;
        form_add(form, m, SFTI_SLOT_OFT_BLOCKS, tensor->shape[1]);
        form_add(form, m, SFTI_SLOT_OFT_RESCALE, 1);
        break;
    case SFTI_TYPE_IA3:
        tensor = sfti_lora_tensor(run->lora, m, SFTI_SLOT_IA3_ON_INPUT);
        if (!tensor) return SFT_OK;
        sft_code code = sfti_lora_read(run->lora->set, tensor, 0, 1, &columns, run->err);
        if (code) return code;
        if (!((double)columns != 0)) form_add(form, m, SFTI_SLOT_IA3_WEIGHT, 1);
        break;
    case SFTI_TYPE_LOHA: case SFTI_TYPE_GLORA: case SFTI_TYPE_BOFT: case SFTI_TYPE_OTHER:
    case SFTI_ADAPTER_TYPES: return SFT_OK;
    }
    bool rescaled = m->type == SFTI_TYPE_OFT && m->slot[SFTI_SLOT_OFT_RESCALE];
    form->idle = !rescaled && !m->slot[SFTI_SLOT_MAGNITUDE];
    if (m->slot[SFTI_SLOT_DIFF_BIAS] && m->slot[SFTI_SLOT_MAGNITUDE]) form->count = 0;
    else form_add(form, m, SFTI_SLOT_DIFF_BIAS, 1);
    if (form->count) form_add(form, m, SFTI_SLOT_MAGNITUDE, 1);
    return SFT_OK;
}

static bool is_of_rows(const rows_form *form, int slot) {
    unsigned v = 0;
    while (v < form->count && form->slots[v] != (sfti_adapter_slot)slot) v++;
    return v < form->count;
}

/* What the rows have in common, as it is, and alpha. */
static sft_code add_common(sfti_convert_run *run, const sfti_convert_layer *layer, sft_span name,
                           const rows_form *form) {
    const sfti_lora_module *m = layer->module;
    sft_code code = SFT_OK;
    for (int i = 1; !code && i < SFTI_SLOTS; i++) {
        if (!m->slot[i] || is_of_rows(form, i) || (i == SFTI_SLOT_ALPHA && m->rank)) continue;
        sft_part part = sfti_convert_part(run, m->slot[i]);
        code = sfti_convert_add(run, name, sfti_convert_leaf(run, m, (sfti_adapter_slot)i), &part,
                                false, part.spec.rank, part.spec.shape);
    }
    return !code && m->rank ? sfti_convert_add_scale(run, name, layer, m->rank,
                                                     m->scale * (double)m->rank)
                            : code;
}

sft_code sfti_convert_split_rows(sfti_convert_run *run, const sfti_convert_layer *layer) {
    const sfti_lora_module *m = layer->module;
    const sfti_layout_rule *rule = layer->rule;
    uint64_t rows[SFTI_LAYOUT_PIECES], row = 0;
    rows_form form;
    sft_code code = rows_form_of(run, m, &form);
    if (!code && form.count == 0) code = refuse_method(run, m);
    if (code) return code;
    sft_part parts[FORM_TENSORS];
    uint8_t *bytes[FORM_TENSORS];
    uint64_t sizes[FORM_TENSORS]; /* of one of their rows */
    sfti_arena work = { .alloc = run->out->out.arena.alloc };
    for (unsigned v = 0; !code && v < form.count; v++) {
        parts[v] = sfti_convert_part(run, m->slot[form.slots[v]]);
        bool tall = parts[v].spec.rank > 0 && parts[v].spec.rank <= SFT_MAX_RANK;
        uint64_t count = tall ? parts[v].spec.shape[0] : 0;
        sizes[v] = count ? sfti_layout_bytes(&parts[v].spec) / count : 0;
        if (v == 0 && !sfti_layout_divide(rule, count * form.each[0], m->in, rows))
            code = sfti_convert_refuse(run, m,
                                       "rows that divide into those of the layers it stands for");
        uint64_t total = 0;
        for (unsigned i = 0; !code && i < rule->count; total += rows[i++])
            if (rows[i] % form.each[v]) code = refuse_method(run, m);
        if (!code && (count * form.each[v] != total || sizes[v] * count
                      != sfti_layout_bytes(&parts[v].spec)))
            code = refuse_method(run, m);
        if (!code) code = sfti_convert_load(run, &parts[v], &work, &bytes[v]);
    }
    for (unsigned i = 0; !code && i < rule->count; row += rows[i++]) {
        bool idle = form.idle;
        for (unsigned v = 0; idle && v < form.count; v++)
            idle = sfti_convert_is_zero(bytes[v] + row / form.each[v] * sizes[v],
                                        rows[i] / form.each[v] * sizes[v]);
        if (idle) continue;
        sft_span name;
        code = sfti_convert_take_name(run, layer, rule->pieces[i], &name);
        for (unsigned v = 0; !code && v < form.count; v++) {
            sft_part piece = parts[v];
            uint64_t shape[SFT_MAX_RANK];
            memcpy(shape, piece.spec.shape, piece.spec.rank * sizeof *shape);
            shape[0] = rows[i] / form.each[v];
            piece.begin += row / form.each[v] * sizes[v];
            code = sfti_convert_add(run, name, sfti_convert_leaf(run, m, form.slots[v]), &piece,
                                    false, piece.spec.rank, shape);
        }
        if (!code) code = add_common(run, layer, name, &form);
    }
    sfti_arena_free(&work);
    run->out->split++;
    return code;
}

/* Rows one after the other, where all else is the same. */
sft_code sfti_convert_join_rows(sfti_convert_run *run, sfti_convert_layer *const *pieces,
                                unsigned count, sfti_convert_fused *f) {
    const sfti_convert_layer *layer = pieces[0];
    const sfti_layout_rule *rule = layer->rule;
    const sfti_lora_module *m = layer->module;
    sft_part parts[FORM_TENSORS][SFTI_LAYOUT_PIECES];
    rows_form form, other;
    sft_code code = rows_form_of(run, m, &form);
    bool same = form.count > 0 && sfti_convert_same_scales(pieces, count)
             && (form.idle || count == rule->count);
    for (unsigned i = 0; !code && same && i < count; i++) {
        unsigned k = pieces[i]->piece;
        code = rows_form_of(run, pieces[i]->module, &other);
        same = other.count == form.count;
        for (unsigned v = 0; !code && same && v < form.count; v++) {
            sft_part *part = &parts[v][k], *first = &parts[v][layer->piece];
            if (other.slots[v] != form.slots[v] || other.each[v] != form.each[v]) same = false;
            if (!same) break;
            *part = sfti_convert_part(run, pieces[i]->module->slot[form.slots[v]]);
            bool tall = part->spec.rank > 0 && part->spec.rank <= SFT_MAX_RANK
                     && sft_dtype_describe(part->spec.dtype)->bits >= 8;
            uint64_t rows = tall ? part->spec.shape[0] * form.each[v] : 0;
            if (v == 0) f->rows[k] = rows;
            same = rows == f->rows[k] && part->spec.dtype == first->spec.dtype
                && part->spec.rank == first->spec.rank && rows > 0
                && memcmp(part->spec.shape + 1, first->spec.shape + 1,
                          (part->spec.rank - 1) * sizeof *part->spec.shape) == 0;
        }
        if (same && pieces[i]->module->in != m->in) same = false;
    }
    for (int i = 1; !code && same && i < SFTI_SLOTS; i++)
        if (!is_of_rows(&form, i) && (i != SFTI_SLOT_ALPHA || m->rank == 0))
            code = sfti_convert_same_tensors(run, pieces, count, (sfti_adapter_slot)i, &same);
    if (!code && !same) return refuse_method(run, m);
    f->cols = m->in;
    if (!code) code = sfti_convert_settle_rows(run, rule, m, f);
    for (unsigned k = 0; !code && k < rule->count; k++)
        for (unsigned v = 0; v < form.count; v++)
            if (f->rows[k] % form.each[v]) return refuse_method(run, m);
    sft_span name;
    if (!code) code = sfti_convert_take_name(run, layer, rule->original, &name);
    if (code) return code;
    run->out->joined++;
    for (unsigned v = 0; !code && v < form.count; v++) {
        const sft_part *first = &parts[v][layer->piece];
        uint64_t shape[SFT_MAX_RANK];
        uint64_t size = sfti_layout_bytes(&first->spec) / first->spec.shape[0];
        memcpy(shape, first->spec.shape, first->spec.rank * sizeof *shape);
        shape[0] = f->total / form.each[v];
        code = sfti_convert_add(run, name, sfti_convert_leaf(run, m, form.slots[v]), first, true,
                                first->spec.rank, shape);
        for (unsigned k = 0; !code && k < rule->count; k++)
            code = sfti_layout_segment_add(&run->out->out, (sfti_layout_segment){
                .len = f->rows[k] / form.each[v] * size,
                .source = f->at[k] ? parts[v][k].source : NULL,
                .begin = f->at[k] ? parts[v][k].begin : 0 }, run->err);
    }
    return code ? code : add_common(run, layer, name, &form);
}
