/* Fused layers of LoRA and LoHa. Up is divided by rows, down repeated; those of several layers are
 * stacked: down below down, up block by block. Tests: tests/adapter/fused.py,
 * tests/layout/run.py. */
#include "adapter/convert_names.h"

#include "base/endian.h"
#include "base/error.h"
#include "safetensors_cast.h"

#include <string.h>

/* ── Fused layers ── */

/* Factors whose product has rows of its up alone: LoRA's, and LoHa's two. */
typedef struct factor_pair {
    sfti_adapter_slot up, down;
    const char *ends[2];
} factor_pair;

static unsigned factor_pairs_of(const sfti_convert_run *run, const sfti_lora_module *m,
                                factor_pair *pairs) {
    const factor_pair lora = { SFTI_SLOT_UP, SFTI_SLOT_DOWN,
                               { sfti_convert_ending(run, SFTI_END_UP),
                                 sfti_convert_ending(run, SFTI_END_DOWN) } };
    pairs[0] = lora;
    if (m->type != SFTI_TYPE_LOHA) return 1;
    pairs[0] = (factor_pair){ SFTI_SLOT_HADA_1A, SFTI_SLOT_HADA_1B,
                              { ".hada_w1_a", ".hada_w1_b" } };
    pairs[1] = (factor_pair){ SFTI_SLOT_HADA_2A, SFTI_SLOT_HADA_2B,
                              { ".hada_w2_a", ".hada_w2_b" } };
    return 2;
}

/* Also with DoRA's magnitudes or a bias. */
static bool is_of_pairs(const sfti_convert_run *run, const sfti_lora_module *m) {
    bool loha = m->type == SFTI_TYPE_LOHA && !sfti_convert_is_peft(run);
    return (m->type == SFTI_TYPE_LORA || loha) && !m->tucker && !m->slot[SFTI_SLOT_DIFF]
        && !m->slot[SFTI_SLOT_DIFF_BIAS];
}

/* What a module may have beside its factors that is one number for each row of the layer, and so is
 * divided and joined as the rows are. */
static const struct row_vector {
    sfti_adapter_slot slot;
    sfti_convert_end_kind end;
    const char *what;
} row_vectors[] = {
    { SFTI_SLOT_MAGNITUDE, SFTI_END_MAGNITUDE, "a magnitude for each row of all layers" },
    { SFTI_SLOT_BIAS, SFTI_END_BIAS, "a bias for each row of all layers" },
};

/* The module's tensor of that kind; slots of factors mean something else in other methods. */
static uint32_t vector_slot(const sfti_lora_module *m, const struct row_vector *vector) {
    bool has = m->type == SFTI_TYPE_LORA || vector->slot != SFTI_SLOT_BIAS;
    return has ? m->slot[vector->slot] : 0;
}

/* Numbers of `rows` rows: those of `from`, or composed of segments that the caller adds. */
static sft_code add_vector(sfti_convert_run *run, const struct row_vector *vector, sft_span name,
                           const sft_part *from, uint64_t rows, bool composed) {
    bool peft = sfti_convert_is_peft(run);
    const char *end = sfti_convert_ending(run, vector->end);
    const uint64_t shape[2] = { rows, 1 };
    uint32_t rank = vector->slot == SFTI_SLOT_BIAS || peft ? 1 : 2;
    return sfti_convert_add(run, name, end ? end : ".lora_B.bias", from, composed, rank, shape);
}

/* Whether the tensor has one number for each row. */
static bool has_rows(const sft_part *part, uint64_t rows) {
    uint64_t bits = sft_dtype_describe(part->spec.dtype)->bits;
    return bits >= 8 && part->spec.rank > 0 && part->spec.shape[0] == rows
        && sfti_layout_bytes(&part->spec) == rows * (bits / 8);
}

/* Which columns of an up matrix belong to each piece, if each belongs to one, those of a piece
 * stand together, and there are any: first[i] to first[i + 1]. */
static bool blocks_of(const uint8_t *up, const uint64_t *rows, unsigned count, uint64_t rank,
                      uint64_t each, uint64_t *first) {
    unsigned piece = 0;
    first[0] = 0;
    for (uint64_t c = 0; c < rank; c++) {
        unsigned owner = count, owners = 0;
        const uint8_t *at = up;
        for (unsigned i = 0; i < count; i++) {
            bool any = false;
            for (uint64_t r = 0; r < rows[i]; r++, at += rank * each)
                any = any || !sfti_convert_is_zero(at + c * each, each);
            if (any) owner = i, owners++;
        }
        if (owners != 1 || owner < piece) return false;
        while (piece < owner) first[++piece] = c;
    }
    while (piece < count) first[++piece] = rank;
    return rank > 0;
}

/* The two matrices of a linear layer. */
static bool pair_parts(const sfti_convert_run *run, const sfti_lora_module *m,
                       const factor_pair *pair, sft_part *up, sft_part *down) {
    *up = sfti_convert_part(run, m->slot[pair->up]);
    *down = sfti_convert_part(run, m->slot[pair->down]);
    return up->spec.rank == 2 && down->spec.rank == 2 && up->spec.shape[1] == down->spec.shape[0]
        && sft_dtype_describe(up->spec.dtype)->bits >= 8
        && sft_dtype_describe(down->spec.dtype)->bits >= 8;
}

static uint64_t width_of(const sft_part *part) {
    return sft_dtype_describe(part->spec.dtype)->bits / 8;
}

/* Piece i of a pair; of its columns those of [from, from + rank). */
static sft_code split_pair(sfti_convert_run *run, sft_span name, const factor_pair *pair,
                           const sft_part *up, const sft_part *down, uint64_t row, uint64_t rows,
                           uint64_t from, uint64_t rank) {
    uint64_t all = up->spec.shape[1], each = width_of(up), cols = down->spec.shape[1];
    uint64_t shape[2] = { rows, rank };
    sft_part piece = *up;
    piece.begin += row * all * each;
    sft_code code = sfti_convert_add(run, name, pair->ends[0], &piece, rank < all, 2, shape);
    for (uint64_t r = 0; rank < all && !code && r < rows; r++)
        code = sfti_layout_segment_add(&run->out->out, (sfti_layout_segment){
            .len = rank * each, .source = up->source,
            .begin = up->begin + ((row + r) * all + from) * each }, run->err);
    piece = *down;
    piece.begin += from * cols * width_of(down);
    shape[0] = rank, shape[1] = cols;
    return code ? code : sfti_convert_add(run, name, pair->ends[1], &piece, false, 2, shape);
}

sft_code sfti_convert_split(sfti_convert_run *run, const sfti_convert_layer *layer) {
    const sfti_lora_module *m = layer->module;
    const sfti_layout_rule *rule = layer->rule;
    uint64_t rows[SFTI_LAYOUT_PIECES], first[2][SFTI_LAYOUT_PIECES + 1];
    factor_pair pairs[2];
    sft_part ups[2], downs[2];
    if (!is_of_pairs(run, m)) return sfti_convert_split_rows(run, layer);
    unsigned of = factor_pairs_of(run, m, pairs);
    for (unsigned p = 0; p < of; p++)
        if (!pair_parts(run, m, &pairs[p], &ups[p], &downs[p]))
            return sfti_convert_refuse(run, m, "matrices of a linear layer");
    uint64_t total = ups[0].spec.shape[0];
    if (!sfti_layout_divide(rule, total, downs[0].spec.shape[1], rows))
        return sfti_convert_refuse(run, m,
                                   "rows that divide into those of the layers it stands for");
    bool blocks = true; /* a layer without them would lose what a vector says of it */
    for (size_t v = 0; v < SFTI_COUNT(row_vectors); v++)
        blocks = blocks && !vector_slot(m, &row_vectors[v]);
    for (unsigned p = 0; blocks && p < of; p++) {
        uint8_t *bytes;
        sfti_arena work = { .alloc = run->out->out.arena.alloc };
        sft_code code = sfti_convert_load(run, &ups[p], &work, &bytes);
        blocks = !code && blocks_of(bytes, rows, rule->count, ups[p].spec.shape[1],
                                    width_of(&ups[p]), first[p]);
        sfti_arena_free(&work);
        if (code) return code;
    }
    sft_code code = SFT_OK;
    uint64_t row = 0;
    run->out->split++;
    for (unsigned i = 0; !code && i < rule->count; row += rows[i++]) {
        uint64_t from[2] = { 0, 0 }, rank[2] = { 0, 0 };
        for (unsigned p = 0; p < of; p++) {
            from[p] = blocks ? first[p][i] : 0;
            rank[p] = blocks ? first[p][i + 1] - from[p] : ups[p].spec.shape[1];
        }
        if (rank[0] == 0 || rank[of - 1] == 0) continue;
        sft_span name;
        code = sfti_convert_take_name(run, layer, rule->pieces[i], &name);
        for (unsigned p = 0; !code && p < of; p++)
            code = split_pair(run, name, &pairs[p], &ups[p], &downs[p], row, rows[i], from[p],
                              rank[p]);
        for (size_t v = 0; v < SFTI_COUNT(row_vectors) && !code; v++) {
            uint32_t slot = vector_slot(m, &row_vectors[v]);
            if (!slot) continue;
            sft_part piece = sfti_convert_part(run, slot);
            if (!has_rows(&piece, total)) return sfti_convert_refuse(run, m, row_vectors[v].what);
            piece.begin += row * width_of(&piece);
            code = add_vector(run, &row_vectors[v], name, &piece, rows[i], false);
        }
        if (!code) code = sfti_convert_add_scale(run, name, layer, rank[0],
                                                 m->scale * (double)rank[0]);
    }
    return code;
}

/* The numbers of all pieces, one after the other. */
static sft_code join_vector(sfti_convert_run *run, const struct row_vector *vector,
                            sfti_convert_layer *const *pieces, unsigned count, sft_span name,
                            const uint64_t *rows, uint64_t total) {
    const sfti_layout_rule *rule = pieces[0]->rule;
    const sfti_lora_module *m = pieces[0]->module;
    sft_part parts[SFTI_LAYOUT_PIECES];
    unsigned with = 0;
    for (unsigned i = 0; i < count; i++) {
        uint32_t slot = vector_slot(pieces[i]->module, vector);
        if (!slot) continue;
        sft_part *part = &parts[pieces[i]->piece];
        *part = sfti_convert_part(run, slot);
        if (!has_rows(part, rows[pieces[i]->piece]))
            return sfti_convert_refuse(run, m, vector->what);
        with++;
    }
    if (with == 0) return SFT_OK;
    for (unsigned k = 0; with == rule->count && k < rule->count; k++)
        if (parts[k].spec.dtype != parts[0].spec.dtype) with = 0;
    if (with != rule->count) return sfti_convert_refuse(run, m, vector->what);
    sft_code code = add_vector(run, vector, name, &parts[0], total, true);
    for (unsigned k = 0; !code && k < rule->count; k++)
        code = sfti_layout_segment_add(&run->out->out, (sfti_layout_segment){
            .len = sfti_layout_bytes(&parts[k].spec), .source = parts[k].source,
            .begin = parts[k].begin }, run->err);
    return code;
}

/* An up matrix times a factor, in memory. */
static sft_code scale_up_matrix(sfti_convert_run *run, sft_part *up, double factor,
                                sft_source *source) {
    uint64_t count = up->spec.shape[0] * up->spec.shape[1];
    float *wide = sfti_arena_array(&run->out->out.arena, count, sizeof *wide);
    char *bytes = sfti_arena_array(&run->out->out.arena, sfti_layout_bytes(&up->spec), 1);
    const sft_tensor *tensor = sft_set_find(run->lora->set, up->spec.name, NULL);
    if (!wide || !bytes || !tensor) return sfti_fail_memory(run->err, count);
    sft_code code = sfti_lora_read(run->lora->set, tensor, 0, count, wide, run->err);
    for (uint64_t i = 0; !code && i < count; i++) wide[i] = (float)(wide[i] * factor);
    float most = 0;
    uint32_t bits = sfti_floats_greatest(wide, count);
    sfti_put_u32(&most, bits);
    if (!code) code = sft_cast(SFT_F32, &most, up->spec.dtype, bytes, 1, NULL, NULL, run->err);
    if (!code) code = sft_cast(up->spec.dtype, bytes, SFT_F32, &most, 1, NULL, NULL, run->err);
    bool large = (sfti_get_u32(&most) & 0x7f800000) == 0x7f800000;
    bool gone = bits > 0 && (sfti_get_u32(&most) & 0x7fffffff) == 0;
    if (!code && (large || gone))
        return sfti_fail_tensor(run->err, SFT_CAST_VALUE, tensor->offset, tensor->name,
                                "expected values that %s can hold, found %s ones when alphas are "
                                "made equal", sft_dtype_describe(up->spec.dtype)->name,
                                large ? "larger" : "only smaller");
    sfti_floats_turn(wide, count);
    if (!code) code = sft_cast(SFT_F32, wide, up->spec.dtype, bytes, count, NULL, NULL, run->err);
    *source = sft_source_memory(bytes, (size_t)sfti_layout_bytes(&up->spec));
    up->source = source;
    up->begin = 0;
    return code;
}

static sft_code join_pair(sfti_convert_run *run, sft_span name, const factor_pair *pair,
                          const sfti_convert_fused *f, const sft_part *ups, const sft_part *downs,
                          unsigned count) {
    uint64_t rank = 0, before = 0, shape[2] = { f->total, 0 };
    const sft_part *up = NULL, *down = NULL;
    for (unsigned k = 0; k < count; k++) {
        if (!f->at[k]) continue;
        if (!up) up = &ups[k], down = &downs[k];
        if (!f->same || rank == 0) rank += downs[k].spec.shape[0];
    }
    uint64_t each = width_of(up);
    shape[1] = rank;
    sft_code code = sfti_convert_add(run, name, pair->ends[0], up, true, 2, shape);
    for (unsigned k = 0; !code && k < count; k++) {
        uint64_t own = f->at[k] ? downs[k].spec.shape[0] : 0, rest = rank - before - own;
        if (f->same || !f->at[k])
            code = sfti_layout_segment_add(&run->out->out, (sfti_layout_segment){
                .len = f->rows[k] * rank * each, .source = f->at[k] ? ups[k].source : NULL,
                .begin = f->at[k] ? ups[k].begin : 0 }, run->err);
        for (uint64_t r = 0; !f->same && f->at[k] && !code && r < f->rows[k]; r++) {
            const sfti_layout_segment row[3] = {
                { .len = before * each }, { .len = own * each, .source = ups[k].source,
                                            .begin = ups[k].begin + r * own * each },
                { .len = rest * each } };
            for (int i = 0; !code && i < 3; i++)
                code = sfti_layout_segment_add(&run->out->out, row[i], run->err);
        }
        if (!f->same) before += own;
    }
    shape[0] = rank, shape[1] = f->cols;
    if (!code) code = sfti_convert_add(run, name, pair->ends[1], down, !f->same, 2, shape);
    for (unsigned k = 0; !code && !f->same && k < count; k++)
        if (f->at[k])
            code = sfti_layout_segment_add(&run->out->out, (sfti_layout_segment){
                .len = sfti_layout_bytes(&downs[k].spec), .source = downs[k].source,
                .begin = downs[k].begin }, run->err);
    return code;
}

sft_code sfti_convert_stack(sfti_convert_run *run, sfti_convert_layer *const *pieces,
                            unsigned count) {
    const sfti_convert_layer *layer = pieces[0];
    const sfti_layout_rule *rule = layer->rule;
    sfti_convert_fused f = { .total = 0 };
    factor_pair pairs[2];
    sft_part ups[2][SFTI_LAYOUT_PIECES], downs[2][SFTI_LAYOUT_PIECES];
    uint64_t rank = 0;
    unsigned of = factor_pairs_of(run, layer->module, pairs);
    for (unsigned i = 0; i < count; i++) {
        const sfti_lora_module *m = pieces[i]->module;
        unsigned k = pieces[i]->piece;
        if (m->type != layer->module->type)
            return sfti_convert_refuse(run, m,
                                       "one method in the layers that the other layout fuses");
        if (f.at[k]) return sfti_convert_refuse(run, m, "one module for each layer");
        f.at[k] = pieces[i];
    }
    for (unsigned i = 0; i < count; i++)
        if (!is_of_pairs(run, pieces[i]->module))
            return sfti_convert_join_rows(run, pieces, count, &f);
    for (unsigned i = 0; i < count; i++) {
        const sfti_lora_module *m = pieces[i]->module;
        unsigned k = pieces[i]->piece;
        for (unsigned p = 0; p < of; p++) {
            sft_part *up = &ups[p][k], *down = &downs[p][k];
            if (!pair_parts(run, m, &pairs[p], up, down)
                || (f.cols && down->spec.shape[1] != f.cols)
                || up->spec.dtype != ups[p][layer->piece].spec.dtype
                || down->spec.dtype != downs[p][layer->piece].spec.dtype)
                return sfti_convert_refuse(run, m, "matrices of linear layers of one input, of one "
                                      "dtype");
            f.cols = down->spec.shape[1];
            f.rows[k] = up->spec.shape[0];
        }
        rank += m->rank;
    }
    sft_code code = sfti_convert_settle_rows(run, rule, layer->module, &f);
    sft_span name;
    if (!code) code = sfti_convert_take_name(run, layer, rule->original, &name);
    if (code) return code;
    f.same = count == rule->count && sfti_convert_same_scales(pieces, count);
    for (unsigned p = 0; f.same && !code && p < of; p++)
        code = sfti_convert_same_tensors(run, pieces, count, pairs[p].down, &f.same);
    double scale = 0; /* of the first that has an effect */
    for (unsigned i = 0; i < count && !(scale < 0) && !(scale > 0); i++)
        scale = pieces[i]->module->scale;
    for (unsigned k = 0; !code && !f.same && k < rule->count; k++) {
        if (!f.at[k] || f.at[k]->module->scale == scale) continue;
        const sfti_lora_module *m = f.at[k]->module;
        if (m->type == SFTI_TYPE_LORA && m->slot[SFTI_SLOT_BIAS])
            return sfti_convert_refuse(run, m, "biases of one scale, which is theirs, too");
        sft_source *source = sfti_arena_take(&run->out->out.arena, sizeof *source);
        if (!source) return sfti_fail_memory(run->err, sizeof *source);
        code = scale_up_matrix(run, &ups[0][k], m->scale / scale, source);
        run->out->folded++;
    }
    if (code) return code;
    run->out->joined++;
    if (f.same) rank = layer->module->rank;
    for (unsigned p = 0; !code && p < of; p++)
        code = join_pair(run, name, &pairs[p], &f, ups[p], downs[p], rule->count);
    for (size_t v = 0; v < SFTI_COUNT(row_vectors) && !code; v++)
        code = join_vector(run, &row_vectors[v], pieces, count, name, f.rows, f.total);
    return code ? code : sfti_convert_add_scale(run, name, layer, rank, scale * (double)rank);
}
