/* Adapters under other names. A fused layer's up is divided by rows, its down repeated; those of
 * several layers are stacked: down below down, up block by block. Tests: tests/layout/run.py. */
#include "adapter/convert_names.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/number.h"
#include "label/info.h"
#include "os/io.h"
#include "safetensors_cast.h"

#include <string.h>

#define PEFT_ENDS \
    { ".lora_B.weight", ".lora_A.weight", NULL, NULL, ".lora_magnitude_vector", ".lora_B.bias" }

static const char *const ends_of[][6] = { /* by format: up, down, mid, alpha, magnitude, bias */
    [SFT_ADAPTER_KOHYA] = { ".lora_up.weight", ".lora_down.weight", ".lora_mid.weight", ".alpha",
                            ".dora_scale", NULL },
    [SFT_ADAPTER_PEFT] = PEFT_ENDS,
    [SFT_ADAPTER_DIFFUSERS] = PEFT_ENDS,
    [SFT_ADAPTER_COMFY] = { ".lora_B.weight", ".lora_A.weight", NULL, ".alpha", ".dora_scale",
                            NULL },
};
enum { END_UP, END_DOWN, END_MID, END_ALPHA, END_MAGNITUDE, END_BIAS };

/* ── Tensors ── */

static sft_code convert_refuse(const sfti_convert_run *run, const sfti_lora_module *m,
                               const char *what) {
    size_t i = 1;
    while (i < SFTI_SLOTS - 1 && !m->slot[i]) i++;
    const sft_tensor *first = sfti_lora_tensor(run->lora, m, (sfti_adapter_slot)i);
    return sfti_fail_tensor(run->err, SFT_CAST_DTYPE, SFT_NO_OFFSET, first ? first->name : m->name,
                            "expected %s", what);
}

static sft_part part_of(const sfti_convert_run *run, uint32_t slot) {
    const sft_tensor *tensor = sft_set_tensor_at(run->lora->set, slot - 1);
    size_t shard = sft_set_tensor_shard(run->lora->set, slot - 1);
    return sft_part_of(tensor, &run->out->sources[shard]);
}

static sft_code add_tensor(sfti_convert_run *run, sft_span module, const char *end,
                           const sft_part *from,
                           bool composed, uint32_t rank, const uint64_t *shape) {
    sft_spec spec = from->spec;
    spec.rank = rank, spec.shape = shape;
    return sfti_layout_out_add(&run->out->out, module, sft_span_cstr(end), &spec,
                               composed ? NULL : from, run->err);
}

/* A scalar; like: an alpha of the input, whose dtype it has if that holds the value. */
static sft_code add_alpha(sfti_convert_run *run, sft_span module, double value,
                          const sft_part *like) {
    uint8_t bytes[8], again[8];
    float wide = (float)value, back = 0;
    sft_spec spec = { .dtype = SFT_F32, .rank = 0 };
    uint64_t one[1] = { 1 };
    const char *end = ends_of[run->to][END_ALPHA];
    sft_dtype dtype = like ? like->spec.dtype : SFT_F32;
    sft_span word = run->alpha_form;
    for (int i = 0; !like && i < SFT_DTYPE_COUNT; i++) {
        const char *name = sft_dtype_describe((sft_dtype)i)->name;
        if (word.len == strlen(name) + 2 && memcmp(word.data, name, word.len - 2) == 0)
            dtype = (sft_dtype)i;
    }
    if (!end) return SFT_OK;
    spec.rank = like ? like->spec.rank : word.len > 0 && word.data[word.len - 1] == '1';
    if (spec.rank > 1) spec.rank = 0;
    spec.shape = one;
    sfti_floats_turn(&wide, 1);
    memcpy(bytes, &wide, 4);
    if (dtype != SFT_F32 && sft_dtype_describe(dtype)->kind == SFT_KIND_FLOAT
        && !sft_cast(SFT_F32, &wide, dtype, again, 1, NULL, NULL, NULL)
        && !sft_cast(dtype, again, SFT_F32, &back, 1, NULL, NULL, NULL)
        && memcmp(&back, &wide, 4) == 0) {
        spec.dtype = dtype;
        memcpy(bytes, again, 8);
    }
    char *kept = sfti_arena_copy(&run->out->out.arena, (const char *)bytes, 8);
    sft_source *source = sfti_arena_take(&run->out->out.arena, sizeof *source);
    if (!kept || !source) return sfti_fail_memory(run->err, sizeof *source);
    *source = sft_source_memory(kept, 8);
    sft_part part = { spec, source, 0 };
    return sfti_layout_out_add(&run->out->out, module, sft_span_cstr(end), &spec, &part, run->err);
}

static sft_code note_module(sfti_convert_run *run, sft_span name, const sfti_convert_layer *layer,
                            uint64_t rank, double alpha) {
    sfti_lora_converted *out = run->out;
    sfti_lora_written *grown = sfti_arena_grow(&out->out.arena, out->modules, out->count, 1,
                                               &out->room, sizeof *grown);
    char text[96];
    if (!grown) return sfti_fail_memory(run->err, sizeof *grown);
    out->modules = grown;
    sft_span prefix = sfti_convert_prefix(run, layer, text);
    grown[out->count++] = (sfti_lora_written){ sfti_from(name, prefix.len), layer->component->name,
                                               rank, alpha };
    return SFT_OK;
}

/* Alpha, and what the configuration says of the module. */
static sft_code add_scale(sfti_convert_run *run, sft_span name, const sfti_convert_layer *layer,
                          uint64_t rank, double alpha) {
    const sfti_lora_module *m = layer->module;
    sft_part like = { .source = NULL };
    bool tensor = m->slot[SFTI_SLOT_ALPHA] != 0;
    if (tensor) like = part_of(run, m->slot[SFTI_SLOT_ALPHA]);
    bool writes = tensor || (m->has_alpha && !sfti_is(run->alpha_form, "none"))
               || alpha != (double)rank;
    sft_code code = writes ? add_alpha(run, name, alpha, tensor ? &like : NULL) : SFT_OK;
    return code ? code : note_module(run, name, layer, rank, alpha);
}

/* A module as it is, under another name; swapped: with the halves of its rows exchanged. */
static sft_code rename_module(sfti_convert_run *run, const sfti_convert_layer *layer,
                              sft_span pattern) {
    const sfti_lora_module *m = layer->module;
    bool swapped = layer->rule->op == SFTI_OP_SWAP && sfti_convert_side(run, layer) != layer->side;
    sft_span name = sfti_convert_name(run, layer, pattern);
    if (name.len == 0) return sfti_fail_memory(run->err, SFTI_LAYOUT_NAME);
    bool peft = run->to == SFT_ADAPTER_PEFT || run->to == SFT_ADAPTER_DIFFUSERS;
    if (m->type != SFTI_TYPE_LORA && (peft || swapped))
        return convert_refuse(run, m, "LoRA only, which the other format has a place for");
    if (layer->rule->op == SFTI_OP_SWAP_PAIR && sfti_convert_side(run, layer) != layer->side)
        return convert_refuse(run, m, "a layer that is the same in both layouts");
    if (m->type == SFTI_TYPE_LORA && m->slot[SFTI_SLOT_MAGNITUDE] && swapped)
        return convert_refuse(run, m, "a layer without DoRA, for its rows change places");
    sft_code code = SFT_OK;
    bool kept = m->rank == 0; /* of OFT alpha is no scale */
    for (unsigned i = 1; !code && i < SFTI_SLOTS; i++) {
        if (!m->slot[i] || (i == SFTI_SLOT_ALPHA && !kept)) continue;
        sft_part part = part_of(run, m->slot[i]);
        const uint64_t *shape = part.spec.shape;
        bool lora = m->type == SFTI_TYPE_LORA;
        const char *end = NULL;
        sft_span own = sfti_from(part.spec.name, m->name.len);
        if (lora && i == SFTI_SLOT_UP) end = ends_of[run->to][END_UP];
        else if (lora && i == SFTI_SLOT_DOWN) end = ends_of[run->to][END_DOWN];
        else if (lora && i == SFTI_SLOT_MID) end = ends_of[run->to][END_MID];
        else if (i == SFTI_SLOT_MAGNITUDE) end = ends_of[run->to][END_MAGNITUDE];
        else if (!peft) end = sfti_arena_copy(&run->out->out.arena, own.data, own.len);
        else if (lora && i == SFTI_SLOT_BIAS) end = ends_of[run->to][END_BIAS];
        if (!end) return convert_refuse(run, m, "matrices that the other format has a place for");
        if (swapped && i == SFTI_SLOT_UP) {
            uint64_t half = part.spec.rank ? shape[0] / 2 : 0;
            uint64_t bytes = sfti_layout_bytes(&part.spec) / 2;
            if (part.spec.rank < 2 || half * 2 != shape[0])
                return convert_refuse(run, m, "an even number of rows");
            code = add_tensor(run, name, end, &part, true, part.spec.rank, shape);
            for (uint64_t k = 2; !code && k-- > 0;)
                code = sfti_layout_segment_add(&run->out->out, (sfti_layout_segment){
                    .len = bytes, .source = part.source, .begin = part.begin + k * bytes },
                    run->err);
            continue;
        }
        bool vector = peft && i == SFTI_SLOT_MAGNITUDE && part.spec.rank > 1;
        bool column = !peft && i == SFTI_SLOT_MAGNITUDE && part.spec.rank == 1;
        if (vector && sfti_layout_bytes(&part.spec)
            != shape[0] * (sft_dtype_describe(part.spec.dtype)->bits / 8))
            return convert_refuse(run, m, "a magnitude for each row");
        uint64_t tall[2] = { part.spec.rank ? shape[0] : 1, 1 };
        code = column || vector ? add_tensor(run, name, end, &part, false, column ? 2 : 1, tall)
                                : add_tensor(run, name, end, &part, false, part.spec.rank, shape);
    }
    if (code) return code;
    return m->rank ? add_scale(run, name, layer, m->rank, m->scale * (double)m->rank) : SFT_OK;
}

/* ── Fused layers ── */

/* Also with DoRA's magnitudes or a bias. */
static bool is_plain_lora(const sfti_lora_module *m) {
    return m->type == SFTI_TYPE_LORA && m->slot[SFTI_SLOT_UP] && m->slot[SFTI_SLOT_DOWN]
        && !m->slot[SFTI_SLOT_MID] && !m->slot[SFTI_SLOT_DIFF] && !m->slot[SFTI_SLOT_DIFF_BIAS];
}

/* What a module may have beside its factors that is one number for each row of the layer, and so is
 * divided and joined as the rows are. */
static const struct row_vector {
    sfti_adapter_slot slot;
    int end;
    const char *what;
} row_vectors[] = {
    { SFTI_SLOT_MAGNITUDE, END_MAGNITUDE, "a magnitude for each row of all layers" },
    { SFTI_SLOT_BIAS, END_BIAS, "a bias for each row of all layers" },
};

/* Numbers of `rows` rows: those of `from`, or composed of segments that the caller adds. */
static sft_code add_vector(sfti_convert_run *run, const struct row_vector *vector, sft_span name,
                           const sft_part *from, uint64_t rows, bool composed) {
    bool peft = run->to == SFT_ADAPTER_PEFT || run->to == SFT_ADAPTER_DIFFUSERS;
    const char *end = ends_of[run->to][vector->end];
    const uint64_t shape[2] = { rows, 1 };
    uint32_t rank = vector->slot == SFTI_SLOT_BIAS || peft ? 1 : 2;
    return add_tensor(run, name, end ? end : ".lora_B.bias", from, composed, rank, shape);
}

/* Whether the tensor has one number for each row. */
static bool has_rows(const sft_part *part, uint64_t rows) {
    uint64_t bits = sft_dtype_describe(part->spec.dtype)->bits;
    return bits >= 8 && part->spec.rank > 0 && part->spec.shape[0] == rows
        && sfti_layout_bytes(&part->spec) == rows * (bits / 8);
}

static sft_code load_tensor(sfti_convert_run *run, const sft_part *part, sfti_arena *work,
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

static bool is_zero(const uint8_t *bytes, uint64_t len) {
    while (len > 0 && *bytes == 0) bytes++, len--;
    return len == 0;
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
                any = any || !is_zero(at + c * each, each);
            if (any) owner = i, owners++;
        }
        if (owners != 1 || owner < piece) return false;
        while (piece < owner) first[++piece] = c;
    }
    while (piece < count) first[++piece] = rank;
    return rank > 0;
}

static sft_code split_module(sfti_convert_run *run, const sfti_convert_layer *layer) {
    const sfti_lora_module *m = layer->module;
    const sfti_layout_rule *rule = layer->rule;
    uint64_t rows[SFTI_LAYOUT_PIECES], first[SFTI_LAYOUT_PIECES + 1], shape[2];
    if (!is_plain_lora(m))
        return convert_refuse(run, m, "plain LoRA of a layer that the other layout divides");
    sft_part up = part_of(run, m->slot[SFTI_SLOT_UP]), down = part_of(run, m->slot[SFTI_SLOT_DOWN]);
    uint64_t each = sft_dtype_describe(up.spec.dtype)->bits / 8;
    uint64_t wide = sft_dtype_describe(down.spec.dtype)->bits / 8;
    if (up.spec.rank != 2 || down.spec.rank != 2 || each == 0 || wide == 0
        || up.spec.shape[1] != m->rank || down.spec.shape[0] != m->rank)
        return convert_refuse(run, m, "matrices of a linear layer");
    if (!sfti_layout_divide(rule, up.spec.shape[0], down.spec.shape[1], rows))
        return convert_refuse(run, m, "rows that divide into those of the layers it stands for");
    uint8_t *bytes;
    sfti_arena work = { .alloc = run->out->out.arena.alloc };
    sft_code code = load_tensor(run, &up, &work, &bytes);
    bool vectors = m->slot[SFTI_SLOT_MAGNITUDE] || m->slot[SFTI_SLOT_BIAS];
    bool blocks = !code && !vectors && blocks_of(bytes, rows, rule->count, m->rank, each, first);
    sfti_arena_free(&work);
    if (code) return code;
    uint64_t row = 0, cols = down.spec.shape[1];
    run->out->split++;
    for (unsigned i = 0; !code && i < rule->count; row += rows[i++]) {
        uint64_t from = blocks ? first[i] : 0, rank = blocks ? first[i + 1] - from : m->rank;
        if (rank == 0) continue;
        sft_span name = sfti_convert_name(run, layer, rule->pieces[i]);
        if (name.len == 0) return sfti_fail_memory(run->err, SFTI_LAYOUT_NAME);
        shape[0] = rows[i], shape[1] = rank;
        sft_part piece = up;
        piece.begin += row * m->rank * each;
        code = add_tensor(run, name, ends_of[run->to][END_UP], &piece, blocks, 2, shape);
        for (uint64_t r = 0; blocks && !code && r < rows[i]; r++)
            code = sfti_layout_segment_add(&run->out->out, (sfti_layout_segment){
                .len = rank * each, .source = up.source,
                .begin = up.begin + ((row + r) * m->rank + from) * each }, run->err);
        piece = down;
        piece.begin += from * cols * wide;
        shape[0] = rank, shape[1] = cols;
        if (!code)
            code = add_tensor(run, name, ends_of[run->to][END_DOWN], &piece, false, 2, shape);
        for (size_t v = 0; v < SFTI_COUNT(row_vectors) && !code; v++) {
            if (!m->slot[row_vectors[v].slot]) continue;
            piece = part_of(run, m->slot[row_vectors[v].slot]);
            if (!has_rows(&piece, up.spec.shape[0]))
                return convert_refuse(run, m, row_vectors[v].what);
            piece.begin += row * (sft_dtype_describe(piece.spec.dtype)->bits / 8);
            code = add_vector(run, &row_vectors[v], name, &piece, rows[i], false);
        }
        if (!code) code = add_scale(run, name, layer, rank, m->scale * (double)rank);
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
        uint32_t slot = pieces[i]->module->slot[vector->slot];
        if (!slot) continue;
        sft_part *part = &parts[pieces[i]->piece];
        *part = part_of(run, slot);
        if (!has_rows(part, rows[pieces[i]->piece])) return convert_refuse(run, m, vector->what);
        with++;
    }
    if (with == 0) return SFT_OK;
    for (unsigned k = 0; with == rule->count && k < rule->count; k++)
        if (parts[k].spec.dtype != parts[0].spec.dtype) with = 0;
    if (with != rule->count) return convert_refuse(run, m, vector->what);
    sft_code code = add_vector(run, vector, name, &parts[0], total, true);
    for (unsigned k = 0; !code && k < rule->count; k++)
        code = sfti_layout_segment_add(&run->out->out, (sfti_layout_segment){
            .len = sfti_layout_bytes(&parts[k].spec), .source = parts[k].source,
            .begin = parts[k].begin }, run->err);
    return code;
}

static sft_code same_downs(sfti_convert_run *run, sfti_convert_layer *const *pieces, unsigned count,
                           bool *out) {
    uint8_t *one, *other;
    sft_part first = part_of(run, pieces[0]->module->slot[SFTI_SLOT_DOWN]);
    sfti_arena work = { .alloc = run->out->out.arena.alloc };
    sft_code code = load_tensor(run, &first, &work, &one);
    *out = true;
    for (unsigned i = 1; !code && *out && i < count; i++) {
        sft_part next = part_of(run, pieces[i]->module->slot[SFTI_SLOT_DOWN]);
        *out = sfti_layout_bytes(&next.spec) == sfti_layout_bytes(&first.spec)
            && pieces[i]->module->rank == pieces[0]->module->rank
            && pieces[i]->module->scale == pieces[0]->module->scale;
        if (*out) code = load_tensor(run, &next, &work, &other);
        if (!code && *out) *out = memcmp(one, other, (size_t)sfti_layout_bytes(&first.spec)) == 0;
    }
    sfti_arena_free(&work);
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
    for (uint64_t i = 0; i < count; i++) wide[i] = (float)(wide[i] * factor);
    float most = 0;
    sfti_put_u32(&most, sfti_floats_greatest(wide, count));
    if (!code) code = sft_cast(SFT_F32, &most, up->spec.dtype, bytes, 1, NULL, NULL, run->err);
    if (!code) code = sft_cast(up->spec.dtype, bytes, SFT_F32, &most, 1, NULL, NULL, run->err);
    if (!code && (sfti_get_u32(&most) & 0x7f800000) == 0x7f800000)
        return sfti_fail_tensor(run->err, SFT_CAST_VALUE, tensor->offset, tensor->name,
                                "expected values that %s can hold, found larger ones when alphas "
                                "are made equal", sft_dtype_describe(up->spec.dtype)->name);
    sfti_floats_turn(wide, count);
    if (!code) code = sft_cast(SFT_F32, wide, up->spec.dtype, bytes, count, NULL, NULL, run->err);
    *source = sft_source_memory(bytes, (size_t)sfti_layout_bytes(&up->spec));
    up->source = source;
    up->begin = 0;
    return code;
}

static sft_code stack_modules(sfti_convert_run *run, sfti_convert_layer *const *pieces,
                              unsigned count) {
    const sfti_convert_layer *layer = pieces[0];
    const sfti_layout_rule *rule = layer->rule;
    uint64_t rows[SFTI_LAYOUT_PIECES] = { 0 }, shape[2] = { 0, 0 }, rank = 0, cols = 0;
    sft_part ups[SFTI_LAYOUT_PIECES], downs[SFTI_LAYOUT_PIECES];
    const sfti_convert_layer *at[SFTI_LAYOUT_PIECES] = { NULL };
    uint64_t share = 0, total = 0;
    for (unsigned i = 0; i < count; i++) {
        const sfti_lora_module *m = pieces[i]->module;
        unsigned k = pieces[i]->piece;
        if (!is_plain_lora(m))
            return convert_refuse(run, m, "plain LoRA of a layer that the other layout fuses");
        if (at[k]) return convert_refuse(run, m, "one module for each layer");
        at[k] = pieces[i];
        ups[k] = part_of(run, m->slot[SFTI_SLOT_UP]);
        downs[k] = part_of(run, m->slot[SFTI_SLOT_DOWN]);
        if (ups[k].spec.rank != 2 || downs[k].spec.rank != 2 || ups[k].spec.shape[1] != m->rank
            || downs[k].spec.shape[0] != m->rank || (cols && downs[k].spec.shape[1] != cols)
            || ups[k].spec.dtype != ups[layer->piece].spec.dtype
            || downs[k].spec.dtype != downs[layer->piece].spec.dtype)
            return convert_refuse(run, m, "matrices of linear layers of one input, of one dtype");
        cols = downs[k].spec.shape[1];
        rows[k] = ups[k].spec.shape[0];
        if (rule->sizes[k] == 0) share = rows[k];
        rank += m->rank;
    }
    for (unsigned k = 0; k < rule->count; k++) {
        if (!at[k]) rows[k] = rule->sizes[k] ? rule->sizes[k] * cols : share;
        if (rows[k] == 0 || !sfti_add(total, rows[k], &total))
            return convert_refuse(run, layer->module,
                                  "all layers that the other layout fuses, for the "
                          "rows of those that are missing are not known");
    }
    uint64_t check[SFTI_LAYOUT_PIECES];
    if (!sfti_layout_divide(rule, total, cols, check) || memcmp(check, rows, rule->count * 8) != 0)
        return convert_refuse(run, layer->module, "rows as the other layout divides them");
    sft_span name = sfti_convert_name(run, layer, rule->original);
    if (name.len == 0) return sfti_fail_memory(run->err, SFTI_LAYOUT_NAME);
    bool same = false;
    sft_code code = count == rule->count ? same_downs(run, pieces, count, &same) : SFT_OK;
    uint64_t each = sft_dtype_describe(ups[layer->piece].spec.dtype)->bits / 8;
    double scale = layer->module->scale;
    for (unsigned k = 0; !code && !same && k < rule->count; k++) {
        if (!at[k] || at[k]->module->scale == scale) continue;
        if (at[k]->module->slot[SFTI_SLOT_BIAS])
            return convert_refuse(run, at[k]->module, "biases of one scale, which is theirs, too");
        sft_source *source = sfti_arena_take(&run->out->out.arena, sizeof *source);
        if (scale == 0 || !source)
            return source ? convert_refuse(run, at[k]->module, "an alpha that is not 0")
                          : sfti_fail_memory(run->err, sizeof *source);
        code = scale_up_matrix(run, &ups[k], at[k]->module->scale / scale, source);
        run->out->folded++;
    }
    if (code) return code;
    run->out->joined++;
    if (same) rank = layer->module->rank;
    shape[0] = total, shape[1] = rank;
    code = add_tensor(run, name, ends_of[run->to][END_UP], &ups[layer->piece], true, 2, shape);
    uint64_t before = 0;
    for (unsigned k = 0; !code && k < rule->count; k++) {
        uint64_t own = !at[k] ? 0 : at[k]->module->rank;
        uint64_t rest = rank - before - own;
        if (same || !at[k])
            code = sfti_layout_segment_add(&run->out->out, (sfti_layout_segment){
                .len = rows[k] * rank * each, .source = at[k] ? ups[k].source : NULL,
                .begin = at[k] ? ups[k].begin : 0 }, run->err);
        for (uint64_t r = 0; !same && at[k] && !code && r < rows[k]; r++) {
            const sfti_layout_segment row[3] = {
                { .len = before * each }, { .len = own * each, .source = ups[k].source,
                                            .begin = ups[k].begin + r * own * each },
                { .len = rest * each } };
            for (int i = 0; !code && i < 3; i++)
                code = sfti_layout_segment_add(&run->out->out, row[i], run->err);
        }
        if (!same) before += own;
    }
    shape[0] = rank, shape[1] = cols;
    if (!code)
        code = add_tensor(run, name, ends_of[run->to][END_DOWN], &downs[layer->piece], !same, 2,
                          shape);
    for (unsigned k = 0; !code && !same && k < rule->count; k++)
        if (at[k])
            code = sfti_layout_segment_add(&run->out->out, (sfti_layout_segment){
                .len = sfti_layout_bytes(&downs[k].spec), .source = downs[k].source,
                .begin = downs[k].begin }, run->err);
    for (size_t v = 0; v < SFTI_COUNT(row_vectors) && !code; v++)
        code = join_vector(run, &row_vectors[v], pieces, count, name, rows, total);
    return code ? code : add_scale(run, name, layer, rank, scale * (double)rank);
}

/* All pieces of one layer, which stand anywhere: group_pieces has made a list of them. */
static sft_code join_at(sfti_convert_run *run, size_t first) {
    sfti_convert_layer *pieces[SFTI_LAYOUT_PIECES];
    unsigned count = 0;
    for (size_t i = first + 1; i > 0; i = run->layers[i - 1].next) {
        sfti_convert_layer *one = &run->layers[i - 1];
        if (count == one->rule->count)
            return convert_refuse(run, one->module, "one module for each layer");
        one->done = true;
        pieces[count++] = one;
    }
    return stack_modules(run, pieces, count);
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
    sft_code code = up ? sfti_lora_alike(run->lora, m, up, run->err) : SFT_OK;
    if (code) return code;
    if (up && ((config && config->fan_in_fan_out) || sfti_ends(up->name, ".lora_embedding_A")
               || sfti_ends(up->name, ".lora_embedding_B")))
        return convert_refuse(run, m, "a layer with a row for each output, for the other format "
                              "has no place for one that is stored the other way round");
    sfti_side to = sfti_convert_side(run, layer);
    if (layer->rule->count > 1 && layer->side != to)
        return to == SFTI_DIFFUSERS ? split_module(run, layer) : join_at(run, i);
    if (layer->side == SFTI_DIFFUSERS && to == SFTI_ORIGINAL && layer->rule->when.len > 0) {
        int level = asked_level(run, layer->rule->when);
        if (level < 0)
            return convert_refuse(run, layer->module,
                                  "other modules that tell whether this level of the "
                          "U-Net has attention, for its name in the other layout depends on it");
        const sfti_layout_rule *end = run->layouts->rules + run->layouts->rule_count;
        for (const sfti_layout_rule *rule = layer->rule; level == 0 && rule < end; rule++)
            if (rule->when.len == 0 && sft_span_equal(rule->pieces[0], layer->rule->pieces[0])) {
                layer->rule = rule;
                break;
            }
    }
    return rename_module(run, layer, to == SFTI_ORIGINAL ? layer->rule->original
                                                         : layer->rule->pieces[layer->piece]);
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
    run.layers = sfti_arena_array(arena, lora->count, sizeof *run.layers);
    if (!out->sources || !out->unmatched || !run.layers)
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
