/* Under which names adapters know a layer of a model: as the model names it, as the other layouts
 * of data/layouts do, and rows of what one of them fuses. */
#include "adapter/adapter.h"

#include "base/error.h"
#include "layout/layout.h"

#include <string.h>

#define OF(part) (1u << SFTI_PART_##part)

/* ── Ways ── */

static void add_way(sfti_lora_ways *ways, sft_span path, sfti_lora_way way) {
    if (path.len == 0 || path.len > sizeof ways->text - ways->used || ways->count == SFTI_LORA_WAYS)
        return;
    for (size_t i = 0; i < ways->count; i++) {
        const sfti_lora_way *other = &ways->ways[i];
        if (other->parts == way.parts && other->row == way.row && other->from == way.from
            && other->rows == way.rows && sft_span_equal(other->path, path))
            return;
    }
    memcpy(ways->text + ways->used, path.data, path.len);
    way.path = (sft_span){ ways->text + ways->used, path.len };
    ways->used += path.len;
    ways->ways[ways->count++] = way;
    if (!sfti_ends(path, ".to_out.0") || ways->count == SFTI_LORA_WAYS) return;
    way.path.len -= strlen(".0");
    ways->ways[ways->count++] = way;
}

/* Halves of the rows, the other way round. */
static void add_swapped(sfti_lora_ways *ways, sft_span path, sfti_lora_way way, uint64_t rows) {
    for (uint64_t half = 0; rows % 2 == 0 && half < 2; half++) {
        way.rows = rows / 2;
        way.row = half * way.rows;
        way.from = (1 - half) * way.rows;
        add_way(ways, path, way);
    }
}

/* ── Rules ── */

typedef struct way_shape {
    uint64_t rows, cols;
} way_shape;

static bool is_swapped(const sfti_layout_rule *rule, way_shape shape) {
    return rule->op == SFTI_OP_SWAP
        || (rule->op == SFTI_OP_SWAP_PAIR && shape.rows == 2 * shape.cols);
}

/* The model has the original layer, an adapter the others. */
static void add_pieces(sfti_lora_ways *ways, const sfti_layout_rule *rule,
                       const sfti_layout_match *match, unsigned parts, way_shape shape) {
    char name[SFTI_LORA_NAME];
    uint64_t rows[SFTI_LAYOUT_PIECES] = { 0 };
    sfti_lora_way way = { .parts = parts, .transposed = rule->op == SFTI_OP_TRANSPOSE };
    if (rule->count > 1 && !sfti_layout_divide(rule, shape.rows, shape.cols, rows)) return;
    for (unsigned i = 0; i < rule->count; i++) {
        size_t len = sfti_layout_make(rule->pieces[i], match, name, sizeof name);
        way.rows = rows[i];
        if (is_swapped(rule, shape)) add_swapped(ways, (sft_span){ name, len }, way, shape.rows);
        else if (!sfti_is(rule->pieces[i], "-")) add_way(ways, (sft_span){ name, len }, way);
        if (sfti_layout_layer(rule, i).len < rule->pieces[i].len && len > 0)
            add_way(ways, (sft_span){ name, len - strlen(".weight") }, way);
        way.row += rows[i];
    }
}

/* The model has piece i, an adapter the original layer. */
static void add_whole(sfti_lora_ways *ways, const sfti_layout_rule *rule, unsigned piece,
                      const sfti_layout_match *match, unsigned parts, way_shape shape) {
    char name[SFTI_LORA_NAME];
    sfti_lora_way way = { .parts = parts, .rows = rule->count > 1 ? shape.rows : 0 };
    size_t len = sfti_layout_make(rule->original, match, name, sizeof name);
    for (unsigned i = 0; i < piece; i++) {
        if (rule->sizes[i] == 0 && rule->sizes[piece] != 0) return;
        way.from += rule->sizes[i] ? rule->sizes[i] * shape.cols : shape.rows;
    }
    if (is_swapped(rule, shape)) add_swapped(ways, (sft_span){ name, len }, way, shape.rows);
    else add_way(ways, (sft_span){ name, len }, way);
}

/* transposed: the tensor is one that is_transpose knows. */
static void add_layouts(sfti_lora_ways *ways, const sfti_lora_naming *naming, size_t hold,
                        unsigned parts, sft_span path, bool transposed, way_shape shape) {
    const sfti_layout_text *layouts = &naming->layouts;
    sfti_layout_match match;
    for (size_t p = 0; p < layouts->part_count; p++) {
        const sfti_naming_part *part = &layouts->parts[p];
        bool main = part->adapters.len == 0;
        bool back = naming->diffusers[hold * layouts->part_count + p];
        if (main != ((parts & OF(MAIN)) != 0)) continue;
        for (size_t i = part->first; i < part->first + part->count; i++) {
            const sfti_layout_rule *rule = &layouts->rules[i];
            if (rule->op == SFTI_OP_FOLD || (rule->op == SFTI_OP_TRANSPOSE) != transposed)
                continue;
            if (sfti_layout_matches(rule->original, path, false, &match) && match.rest.len == 0)
                add_pieces(ways, rule, &match, parts, shape);
            for (unsigned k = 0; back && !rule->adapters && !transposed && k < rule->count; k++)
                if (sfti_layout_matches(rule->pieces[k], path, false, &match)
                    && match.rest.len == 0)
                    add_whole(ways, rule, k, &match, parts, shape);
        }
    }
}

/* Whether an encoder has a tensor of that name which is the transpose of a layer: then names of
 * adapters mean the layer. */
static bool is_transpose(const sfti_lora_naming *naming, sft_span path) {
    const sfti_layout_text *layouts = &naming->layouts;
    sfti_layout_match match;
    for (size_t p = 0; p < layouts->part_count; p++) {
        const sfti_naming_part *part = &layouts->parts[p];
        for (size_t i = part->first; i < part->first + part->count && part->adapters.len; i++)
            if (layouts->rules[i].op == SFTI_OP_TRANSPOSE
                && sfti_layout_matches(layouts->rules[i].original, path, false, &match)
                && match.rest.len == 0)
                return true;
    }
    return false;
}

/* ── Models ── */

static unsigned ways_parts(sft_span words, char separator) {
    unsigned parts = 0;
    sft_span word;
    while (sfti_next_piece(&words, separator, &word)) {
        int part = sfti_number_among("main te te1 te2 te3", word);
        if (part >= 0) parts |= 1u << part;
    }
    return parts;
}

/* Whether the tensors behind a prefix have a mark of that part in that layout. */
static bool ways_have_mark(const sft_set *model, sft_span prefix, sft_span marks) {
    char name[SFTI_LORA_NAME];
    sft_span mark;
    bool any = false;
    while (sfti_layout_next(&marks, &mark)) {
        bool denied = *mark.data == '!';
        const char *bracket = memchr(mark.data, '[', mark.len);
        size_t len = bracket ? (size_t)(bracket - mark.data) : mark.len;
        if (prefix.len + len > sizeof name) return false;
        memcpy(name, prefix.data, prefix.len);
        memcpy(name + prefix.len, mark.data + denied, len - denied);
        const sft_tensor *found = sft_set_find(
            model, (sft_span){ name, prefix.len + len - denied }, NULL);
        any = any || (found && !denied);
        if (!found != denied) return false;
    }
    return any;
}

/* The parts of an encoder in a file of its own, by its width. */
static unsigned lone_encoder(const sft_set *model) {
    const sft_tensor *wide = sft_set_find(
        model, sft_span_cstr("text_model.embeddings.position_embedding.weight"), NULL);
    if (sft_set_find(model, sft_span_cstr("encoder.block.0.layer.0.SelfAttention.q.weight"), NULL))
        return OF(TE2) | OF(TE3);
    if (!wide || wide->rank != 2) return 0;
    return wide->shape[1] == 1280 ? OF(TE2) : OF(TE) | OF(TE1);
}

sft_code sfti_lora_naming_open(sfti_arena *arena, const sft_set *model, sfti_lora_naming *out,
                               sft_error *err) {
    sft_code code = sfti_layouts_built_in(arena, &out->layouts, err);
    const sfti_layout_text *layouts = &out->layouts;
    if (code) return code;
    uint64_t most = (uint64_t)layouts->hold_count * layouts->part_count;
    out->diffusers = sfti_arena_array(arena, most, sizeof *out->diffusers);
    if (!out->diffusers) return sfti_fail_memory(err, most);
    for (size_t h = 0; h < layouts->hold_count; h++) {
        bool *is = &out->diffusers[h * layouts->part_count];
        for (size_t p = 0; p < layouts->part_count; p++) {
            const sfti_naming_part *part = &layouts->parts[p];
            sft_span marks = part->seen.len ? part->seen : part->marks[SFTI_DIFFUSERS];
            is[p] = sfti_is(marks, "-") || ways_have_mark(model, layouts->holds[h].prefix, marks);
            for (const sfti_naming_part *like = part->like; is[p] && like; like = like->like)
                is[like - layouts->parts] = true;
        }
    }
    out->lone = lone_encoder(model);
    return SFT_OK;
}

void sfti_lora_ways_of(const sfti_lora_naming *naming, const sft_tensor *tensor,
                       sfti_lora_ways *out) {
    sft_span name = tensor->name;
    way_shape shape;
    out->count = out->used = 0;
    if (name.len == 0 || name.len > SFTI_LORA_NAME || sfti_ends(name, ".bias")
        || sfti_ends(name, ".in_proj_bias"))
        return;
    if (!sfti_lora_shape(tensor, &shape.rows, &shape.cols) || shape.cols > UINT64_MAX / 128
        || shape.rows > UINT64_MAX / 128)
        return;
    bool bare = !sfti_ends(name, ".weight");
    if (!bare) name.len -= strlen(".weight");
    for (size_t i = 0; i < naming->layouts.hold_count; i++) {
        const sfti_layout_holds *hold = &naming->layouts.holds[i];
        if (!sfti_begins_with(name, hold->prefix) || name.len == hold->prefix.len) continue;
        sft_span path = sfti_from(name, hold->prefix.len);
        unsigned parts = ways_parts(hold->parts, ' ');
        bool encoder = sfti_begins(path, "text_model.") || sfti_begins(path, "encoder.block.");
        if (hold->prefix.len == 0 && encoder) parts |= naming->lone;
        /* in a file of its own, too: a name that is also the layer's tells nothing */
        bool transposed = bare && is_transpose(naming, path);
        if (!transposed) add_way(out, path, (sfti_lora_way){ .parts = parts });
        if (parts & OF(MAIN)) add_layouts(out, naming, i, OF(MAIN), path, false, shape);
        if (parts & ~OF(MAIN))
            add_layouts(out, naming, i, parts & ~OF(MAIN), path, transposed, shape);
    }
}
