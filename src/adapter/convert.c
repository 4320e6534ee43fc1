/* Adapters under other names. Tests: tests/layout/run.py, tests/adapter/fused.py. */
#include "adapter/convert_names.h"

#include "base/error.h"
#include "os/io.h"

#include <string.h>

/* Magnitudes of rows: [out, 1...]; of PEFT [out], of a convolution [1, out, 1...]. Those of columns
 * are [1, in...], which PEFT has not. */
static sft_code add_magnitude(sfti_convert_run *run, const sfti_lora_module *m, sft_span name,
                              const char *end, const sft_part *part) {
    const sft_spec *spec = &part->spec;
    const sft_tensor *down = sfti_lora_tensor(run->lora, m, SFTI_SLOT_DOWN);
    bool to_peft = sfti_convert_is_peft(run), from_peft = !sfti_ends(spec->name, ".dora_scale");
    uint64_t count = 1, shape[SFT_MAX_RANK];
    uint32_t rank = m->type == SFTI_TYPE_LORA && down->rank > 2 ? down->rank : 2;
    for (uint32_t i = 0; i < spec->rank; i++) count *= spec->shape[i];
    bool of_rows = from_peft || spec->rank < 2 || spec->shape[0] == count;
    if (to_peft && (!of_rows || rank > SFT_MAX_RANK))
        return sfti_convert_refuse(run, m, "a magnitude for each row");
    if (!to_peft && ((!from_peft && spec->rank != 1) || rank > SFT_MAX_RANK))
        return sfti_convert_add(run, name, end, part, false, spec->rank, spec->shape);
    for (uint32_t i = 0; i < rank; i++) shape[i] = 1;
    shape[to_peft && rank > 2] = count;
    return sfti_convert_add(run, name, end, part, false, to_peft && rank == 2 ? 1 : rank, shape);
}

/* A module as it is, under another name; swapped: with the halves of its rows exchanged. */
static sft_code rename_module(sfti_convert_run *run, const sfti_convert_layer *layer,
                              sft_span pattern) {
    const sfti_lora_module *m = layer->module;
    bool swapped = layer->rule->op == SFTI_OP_SWAP && sfti_convert_side(run, layer) != layer->side;
    sft_span name;
    bool peft = sfti_convert_is_peft(run);
    if (m->type != SFTI_TYPE_LORA && (peft || swapped))
        return sfti_convert_refuse(run, m, "LoRA only, which the other format has a place for");
    if (layer->rule->op == SFTI_OP_SWAP_PAIR && sfti_convert_side(run, layer) != layer->side)
        return sfti_convert_refuse(run, m, "a layer that is the same in both layouts");
    if (m->type == SFTI_TYPE_LORA && m->slot[SFTI_SLOT_MAGNITUDE] && swapped)
        return sfti_convert_refuse(run, m, "a layer without DoRA, for its rows change places");
    sft_code code = sfti_convert_take_name(run, layer, pattern, &name);
    bool kept = m->rank == 0; /* of OFT alpha is no scale */
    for (unsigned i = 1; !code && i < SFTI_SLOTS; i++) {
        if (!m->slot[i] || (i == SFTI_SLOT_ALPHA && !kept)) continue;
        sft_part part = sfti_convert_part(run, m->slot[i]);
        const uint64_t *shape = part.spec.shape;
        const char *end = sfti_convert_leaf(run, m, (sfti_adapter_slot)i);
        bool copied = !peft && (m->type != SFTI_TYPE_LORA || i != SFTI_SLOT_MID);
        if (!end && !copied) /* else there is no memory, which sfti_convert_add says */
            return sfti_convert_refuse(run, m,
                                       "matrices that the other format has a place for");
        /* of LoRA, that has a number, or a row, for each row of the layer */
        if (swapped && (i == SFTI_SLOT_UP || i == SFTI_SLOT_BIAS || i == SFTI_SLOT_DIFF_BIAS)) {
            uint64_t rows = part.spec.rank ? shape[0] : 1, all = sfti_layout_bytes(&part.spec);
            uint64_t bytes = all / 2;
            if (rows % 2 || all % 2)
                return sfti_convert_refuse(run, m, "an even number of rows, of whole bytes");
            code = sfti_convert_add(run, name, end, &part, true, part.spec.rank, shape);
            for (uint64_t k = 2; !code && k-- > 0;)
                code = sfti_layout_segment_add(&run->out->out, (sfti_layout_segment){
                    .len = bytes, .source = part.source, .begin = part.begin + k * bytes },
                    run->err);
            continue;
        }
        if (i == SFTI_SLOT_MAGNITUDE) code = add_magnitude(run, m, name, end, &part);
        else code = sfti_convert_add(run, name, end, &part, false, part.spec.rank, shape);
    }
    if (code) return code;
    return m->rank ? sfti_convert_add_scale(run, name, layer, m->rank,
                                            m->scale * (double)m->rank) : SFT_OK;
}

/* All pieces of one layer, which stand anywhere: group_pieces has made a list of them. */
static sft_code join_at(sfti_convert_run *run, size_t first) {
    sfti_convert_layer *pieces[SFTI_LAYOUT_PIECES];
    unsigned count = 0;
    for (size_t i = first + 1; i > 0; i = run->layers[i - 1].next) {
        sfti_convert_layer *one = &run->layers[i - 1];
        if (count == one->rule->count)
            return sfti_convert_refuse(run, one->module, "one module for each layer");
        one->done = true;
        pieces[count++] = one;
    }
    return sfti_convert_stack(run, pieces, count);
}

/* Whether the layer is one of several that the other layout fuses. */
static bool is_piece(const sfti_convert_run *run, const sfti_convert_layer *layer) {
    return layer->rule && layer->rule->count > 1 && layer->side == SFTI_DIFFUSERS
        && sfti_convert_side(run, layer) == SFTI_ORIGINAL;
}

static sft_span joined_name(const void *layers, uint32_t i) {
    return ((const sfti_convert_layer *)layers)[i].joined;
}

/* Pieces of one layer become a list, by the name of what they are fused into. */
static sft_code group_pieces(sfti_convert_run *run) {
    size_t count = run->lora->count;
    sfti_arena *arena = &run->out->out.arena;
    sfti_names names;
    if (!sfti_names_draw(&names, count, joined_name, run->layers, arena))
        return sfti_fail_memory(run->err, count);
    for (size_t i = 0; i < count; i++) {
        sfti_convert_layer *layer = &run->layers[i];
        layer->last = i + 1;
        if (!is_piece(run, layer)) continue;
        layer->joined = sfti_convert_name(run, layer, layer->rule->original);
        if (layer->joined.len == 0) return sfti_fail_memory(run->err, SFTI_LAYOUT_NAME);
        uint32_t first = sfti_names_find(&names, layer->joined);
        if (first == SFTI_NO_NAME) {
            (void)sfti_names_add(&names, layer->joined, (uint32_t)i);
            continue;
        }
        run->layers[run->layers[first].last - 1].next = i + 1;
        run->layers[first].last = i + 1;
    }
    return SFT_OK;
}

/* Whether the level of a U-Net that a rule asks for has attention, by the adapter's other modules:
 * 1 yes, 0 no, -1 not to be seen. Asked for few names, which have no numbers of their own. */
static int asked_level(const sfti_convert_run *run, sft_span when) {
    bool any = false;
    size_t len = 0;
    while (len < when.len && memcmp(when.data + len, "attentions", 10) != 0) len++;
    for (size_t i = 0; i < run->lora->count; i++) {
        const sfti_convert_layer *one = &run->layers[i];
        if (!one->rule) continue;
        sft_span piece = one->rule->pieces[0];
        bool attention = sfti_begins(piece, "up_blocks.") && piece.len > len + 10
                      && memcmp(piece.data + len, "attentions", 10) == 0;
        any = any || attention;
        if (attention && memcmp(piece.data, when.data, len) == 0) return 1;
    }
    return any ? 0 : -1;
}

static sft_code convert_layer_at(sfti_convert_run *run, size_t i) {
    sfti_convert_layer *layer = &run->layers[i];
    const sfti_lora_module *m = layer->module;
    const sft_tensor *up = sfti_lora_tensor(run->lora, m, SFTI_SLOT_UP);
    const sfti_lora_config *config = sfti_lora_config_of(run->lora, m->name);
    bool whole = sfti_lora_is_whole(run->lora, m);
    if (whole) up = sfti_lora_tensor(run->lora, m, SFTI_SLOT_KRON_1);
    bool factors = up || m->type == SFTI_TYPE_LOHA || m->type == SFTI_TYPE_LOKR;
    sft_code code = factors ? sfti_lora_alike(run->lora, m, run->err) : SFT_OK;
    if (code) return code;
    if (whole && (m->scale < 1 || m->scale > 1))
        return sfti_convert_refuse(run, m, "a scale of 1 of LoKr whose factors are whole, for the "
                                           "other format has no place for it (lora simplify makes "
                                           "plain LoRA)");
    bool told = config && ((m->type == SFTI_TYPE_OFT && m->slot[SFTI_SLOT_OFT_PACKED]
                            && (config->cayley || config->terms != 5))
                           || (m->type == SFTI_TYPE_IA3 && m->slot[SFTI_SLOT_IA3_FACTOR]
                               && config->fan_in_fan_out));
    if (told)
        return sfti_convert_refuse(run, m, "a module that is not computed as a configuration of "
                                           "PEFT tells, which the other format has no place for");
    if (up && ((config && config->fan_in_fan_out) || sfti_ends(up->name, ".lora_embedding_A")
               || sfti_ends(up->name, ".lora_embedding_B")))
        return sfti_convert_refuse(run, m,
                                   "a layer with a row for each output, for the other format "
                                   "has no place for one that is stored the other way round");
    sfti_side to = sfti_convert_side(run, layer);
    if (layer->rule->count > 1 && layer->side != to)
        return to == SFTI_DIFFUSERS ? sfti_convert_split(run, layer) : join_at(run, i);
    if (layer->side == SFTI_DIFFUSERS && to == SFTI_ORIGINAL && layer->rule->when.len > 0) {
        int level = asked_level(run, layer->rule->when);
        if (level < 0)
            return sfti_convert_refuse(run, layer->module,
                                       "other modules that tell whether this level of the U-Net "
                                       "has attention, for its name in the other layout depends "
                                       "on it");
        const sfti_layout_rule *end = run->layouts->rules + run->layouts->rule_count;
        for (const sfti_layout_rule *rule = layer->rule; level == 0 && rule < end; rule++)
            if (rule->when.len == 0 && sft_span_equal(rule->pieces[0], layer->rule->pieces[0])) {
                layer->rule = rule;
                break;
            }
    }
    return rename_module(run, layer, to == SFTI_ORIGINAL
                                         ? layer->rule->original
                                         : sfti_layout_layer(layer->rule, layer->piece));
}

static sft_span written_module(const void *run, uint32_t i) {
    return ((const sfti_convert_run *)run)->written[i];
}

sft_code sfti_lora_convert(const sfti_lora *lora, const sfti_layout_text *layouts,
                           const sfti_layout_model *model, sft_adapter_format to,
                           sft_span alpha_form, const sft_allocator *alloc,
                           sfti_lora_converted *out, sft_error *err) {
    sfti_convert_run run = { .lora = lora, .layouts = layouts, .model = model, .to = to,
                        .alpha_form = alpha_form, .out = out, .err = err };
    size_t shards = sft_set_shard_count(lora->set);
    *out = (sfti_lora_converted){ .count = 0 };
    sfti_layout_out_begin(&out->out, alloc);
    sfti_arena *arena = &out->out.arena;
    out->sources = sfti_arena_array(arena, shards, sizeof *out->sources);
    out->unmatched = sfti_arena_array(arena, lora->count, sizeof *out->unmatched);
    uint64_t most = (uint64_t)lora->count * SFTI_LAYOUT_PIECES;
    run.layers = sfti_arena_array(arena, lora->count, sizeof *run.layers);
    run.written = sfti_arena_array(arena, most, sizeof *run.written);
    if (!out->sources || !out->unmatched || !run.layers || !run.written
        || !sfti_names_draw(&run.names, (size_t)most, written_module, &run, arena))
        return sfti_fail_memory(err, lora->count * sizeof *run.layers);
    for (size_t s = 0; s < shards; s++)
        out->sources[s] = sft_file_source(sft_set_shard_at(lora->set, s));
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < lora->count; i++) {
        code = sfti_convert_layer_of(&run, &lora->modules[i], &run.layers[i]);
        if (!run.layers[i].rule) out->unmatched[out->unmatched_count++] = i;
    }
    if (!code) code = group_pieces(&run);
    for (size_t i = 0; !code && i < lora->count; i++)
        if (run.layers[i].rule && !run.layers[i].done) code = convert_layer_at(&run, i);
    return code;
}

void sfti_lora_converted_free(sfti_lora_converted *converted) {
    sfti_layout_out_free(&converted->out);
}
