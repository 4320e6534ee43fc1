/* Which modules of an adapter change which tensors of a model. Every tensor of the model is looked
 * up by all names that an adapter may have for it; names of adapters are never parsed, but for how
 * they begin. */
#include "adapter/adapter.h"

#include "base/checked.h"
#include "base/error.h"
#include "os/io.h"
#include "packed/shapes.h"
#include "safetensors_codes.h"
#include "set/aliases.h"

#include <string.h>

/* ── Names of modules ── */

#define KEYS_A_MODULE 8 /* names with their prefixes less and less, folded and exact */
#define TARGETS_A_MODULE 64

/* Names with '_' for dots and without "processor.", a letter for the part before them; those with
 * dots also as they are, with a small letter: an exact name comes before what it folds to. */
typedef struct map_key {
    sft_span text;
    uint32_t module;
} map_key;

typedef struct map_names {
    sfti_lora *lora;
    sfti_lora_map *map;
    const sft_set *model;
    map_key *keys;
    size_t count;
    sfti_names names;
    bool *exact;             /* of modules: a tensor has exactly that name */
    sfti_lora_target *later; /* by folded names: of modules without an exact one */
    size_t later_count, later_capacity;
} map_names;

static sft_span key_text(const void *ctx, uint32_t entry) {
    return ((const map_names *)ctx)->keys[entry].text;
}

static bool is_processor(sft_span name, size_t i) {
    static const char word[] = "processor";
    size_t len = sizeof word - 1;
    bool begins = i == 0 || name.data[i - 1] == '.' || name.data[i - 1] == '_';
    return begins && name.len - i > len && memcmp(name.data + i, word, len) == 0
        && (name.data[i + len] == '.' || name.data[i + len] == '_');
}

/* At most 1 + name.len bytes. */
static size_t fold_name(sfti_part part, sft_span name, char *out) {
    size_t len = 0;
    out[len++] = (char)('A' + part);
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] == 'p' && is_processor(name, i)) {
            i += strlen("processor");
            continue;
        }
        out[len++] = name.data[i] == '.' ? '_' : name.data[i];
    }
    return len;
}

static size_t exact_name(sfti_part part, sft_span name, char *out) {
    out[0] = (char)('a' + part);
    memcpy(out + 1, name.data, name.len);
    return name.len + 1;
}

/* The name as it is, and after each of its prefixes; the first known part counts. */
static sft_code add_keys(map_names *names, uint32_t module, sft_error *err) {
    sft_span name = names->lora->modules[module].name;
    sfti_part part = SFTI_PART_MAIN;
    bool dotted = memchr(name.data, '.', name.len) != NULL;
    for (size_t i = 0; i < KEYS_A_MODULE / 2 && name.len > 0; i++) {
        for (int exact = 0; exact <= dotted; exact++) {
            char *text = sfti_arena_array(&names->lora->arena, name.len + 1, 1);
            if (!text) return sfti_fail_memory(err, name.len);
            size_t len = exact ? exact_name(part, name, text) : fold_name(part, name, text);
            names->keys[names->count] = (map_key){ { text, len }, module };
            (void)sfti_names_add(&names->names, (sft_span){ text, len }, (uint32_t)names->count++);
        }
        const sfti_name_layout *layout = sfti_layout_of(name);
        if (!layout || layout->own) break;
        if (layout->part != SFTI_PART_MAIN) part = layout->part;
        name = sfti_from(name, strlen(layout->prefix));
    }
    return SFT_OK;
}

sfti_part sfti_lora_part(sft_span name) {
    sfti_part part = SFTI_PART_MAIN;
    for (const sfti_name_layout *layout = sfti_layout_of(name); layout && !layout->own;
         layout = sfti_layout_of(name)) {
        if (layout->part != SFTI_PART_MAIN) part = layout->part;
        name = sfti_from(name, strlen(layout->prefix));
    }
    return part == SFTI_PART_TE ? SFTI_PART_TE1 : part;
}

/* ── Targets ── */

/* Tensors of a model that fold to one name, or that two spellings of a name mean. */
static sft_code refuse_two(const map_names *names, const sfti_lora_module *m,
                           const sfti_lora_target *a, const sfti_lora_target *b, sft_error *err) {
    const sft_tensor *first = sfti_lora_first(names->lora, m);
    sft_span one = sft_set_tensor_at(names->model, a->tensor)->name;
    sft_span other = sft_set_tensor_at(names->model, b->tensor)->name;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, first->offset, first->name,
                            "expected one tensor of the model for this module, found %.*s and %.*s",
                            SFTI_CLIP(other, 80), SFTI_CLIP(one, 80));
}

static sft_code add_target(map_names *names, sfti_lora_target target, sft_error *err) {
    sfti_lora_map *map = names->map;
    sfti_lora_module *m = &names->lora->modules[target.module];
    size_t count = 0;
    for (uint32_t at = m->targets; at; at = map->targets[at - 1].next) {
        const sfti_lora_target *other = &map->targets[at - 1];
        if (++count == TARGETS_A_MODULE) return refuse_two(names, m, other, &target, err);
        if (other->tensor == target.tensor && other->row == target.row
            && other->from == target.from && other->rows == target.rows)
            return SFT_OK; /* by another name */
    }
    sfti_lora_target *grown = sfti_arena_grow(&names->lora->arena, map->targets, map->count, 1,
                                              &map->capacity, sizeof *grown);
    if (!grown) return sfti_fail_memory(err, sizeof *grown);
    map->targets = grown;
    target.next = m->targets;
    grown[map->count++] = target;
    m->targets = (uint32_t)map->count;
    return SFT_OK;
}

/* ── Layers that are stored the other way round ── */

static bool is_told_turned(const map_names *names, const sfti_lora_module *m) {
    const sfti_lora_config *config = sfti_lora_config_of(names->lora, m->name);
    return config && config->fan_in_fan_out;
}

static bool is_turned(const map_names *names, const sfti_lora_module *m, uint32_t tensor) {
    const sft_tensor *up = sfti_lora_tensor(names->lora, m, SFTI_SLOT_UP);
    bool peft = m->slot[SFTI_SLOT_IA3_FACTOR] != 0
             || (up && sfti_begins(sfti_from(up->name, m->name.len), ".lora_B"));
    return is_told_turned(names, m)
        || (peft && sfti_lora_stored(names->model, sft_set_tensor_at(names->model, tensor))
                        == SFTI_STORED_TURNED);
}

/* How a layer is stored that a configuration with fan_in_fan_out is about, by its sizes alone. PEFT
 * ignores the flag for layers that have a row for each output, but saves it for all. */
static sfti_stored stored_by_size(const map_names *names, const sfti_lora_module *m,
                                  const sfti_lora_target *target) {
    const sft_tensor *tensor = sft_set_tensor_at(names->model, target->tensor);
    const sft_tensor *up = sfti_lora_tensor(names->lora, m, SFTI_SLOT_UP);
    const sft_tensor *factor = sfti_lora_tensor(names->lora, m, SFTI_SLOT_IA3_FACTOR);
    uint64_t rows = 0, cols = 0, out = m->out, in = m->in;
    (void)sfti_lora_shape(tensor, &rows, &cols);
    if (tensor->rank != 2 || target->rows != rows || target->from != 0) return SFTI_STORED_PLAIN;
    if (m->type == SFTI_TYPE_IA3 && factor && factor->rank == 2) {
        bool inner = factor->shape[0] == 1;
        uint64_t count = inner ? factor->shape[1] : factor->shape[0];
        out = inner ? (count == rows ? cols : rows) : count;
        in = inner ? count : (count == rows ? cols : rows);
    } else if (m->type != SFTI_TYPE_LORA || sfti_ends(up->name, ".lora_embedding_A")) {
        return SFTI_STORED_PLAIN;
    }
    if (rows == cols && out == rows && in == cols) return SFTI_STORED_UNKNOWN;
    return out == cols && in == rows ? SFTI_STORED_TURNED : SFTI_STORED_PLAIN;
}

static sft_span last_part(const map_names *names, const sfti_lora_target *target) {
    sft_span layer = sfti_lora_layer(sft_set_tensor_at(names->model, target->tensor)->name);
    sft_span above = sfti_lora_layer(layer);
    return sfti_from(layer, above.len + (above.len > 0));
}

typedef struct stored_parts {
    sft_span *parts; /* last parts of names, each once */
    bool (*seen)[2]; /* plain, turned */
    uint32_t count;
    sfti_names names;
} stored_parts;

static sft_span stored_part(const void *ctx, uint32_t entry) {
    return ((const stored_parts *)ctx)->parts[entry];
}

static sft_code settle_square(map_names *names, const stored_parts *all, sfti_lora_target *target,
                              sft_error *err) {
    const sfti_lora_module *m = &names->lora->modules[target->module];
    const sft_tensor *tensor = sft_set_tensor_at(names->model, target->tensor);
    sft_span part = last_part(names, target);
    sfti_stored stored = sfti_lora_stored(names->model, tensor);
    uint32_t at = sfti_names_find(&all->names, part);
    bool plain = stored == SFTI_STORED_PLAIN && sfti_lora_is_conv1d(part);
    bool turned = stored == SFTI_STORED_TURNED;
    if (!plain && !turned && at != SFTI_NO_NAME) {
        plain = all->seen[at][0];
        turned = all->seen[at][1];
    }
    if (!plain && !turned) turned = sfti_lora_is_conv1d(part);
    target->turned = turned;
    if (plain != turned) return SFT_OK;
    const sft_tensor *first = sfti_lora_first(names->lora, m);
    sft_code code = sfti_fail_tensor(err, SFT_CAST_DTYPE, first->offset, first->name,
                                     "expected a layer whose sizes or name tell whether "
                                     "\"fan_in_fan_out\" of the configuration is meant for it, "
                                     "found %.*s of %llu x %llu: PEFT ignores it for nn.Linear, "
                                     "and which of the two this was is not known",
                                     SFTI_CLIP(tensor->name, 120),
                                     (unsigned long long)tensor->shape[0],
                                     (unsigned long long)tensor->shape[1]);
    return sfti_lora_hint(code, SFT_HINT_ADAPTER_CONFIG, err);
}

/* Square layers, by what others of the same last part are. */
static sft_code settle_turned(map_names *names, sft_error *err) {
    sfti_lora_map *map = names->map;
    sfti_arena *arena = &names->lora->arena;
    stored_parts all = { .count = 0 };
    bool any = false;
    sft_code code = SFT_OK;
    for (size_t i = 0; !any && i < names->lora->config_count; i++)
        any = names->lora->configs[i].fan_in_fan_out;
    if (!any || map->count == 0) return SFT_OK;
    all.parts = sfti_arena_array(arena, map->count, sizeof *all.parts);
    all.seen = sfti_arena_array(arena, map->count, sizeof *all.seen);
    if (!all.parts || !all.seen
        || !sfti_names_draw(&all.names, map->count, stored_part, &all, arena))
        return sfti_fail_memory(err, map->count * sizeof *all.parts);
    for (size_t i = 0; i < map->count; i++) {
        const sfti_lora_module *m = &names->lora->modules[map->targets[i].module];
        sfti_stored stored = stored_by_size(names, m, &map->targets[i]);
        if (!is_told_turned(names, m) || stored == SFTI_STORED_UNKNOWN) continue;
        all.parts[all.count] = last_part(names, &map->targets[i]);
        all.seen[all.count][0] = all.seen[all.count][1] = false;
        uint32_t at = sfti_names_add(&all.names, all.parts[all.count], all.count);
        if (at == all.count) all.count++;
        all.seen[at][stored == SFTI_STORED_TURNED] = true;
    }
    for (size_t i = 0; !code && i < map->count; i++) {
        sfti_lora_target *target = &map->targets[i];
        const sfti_lora_module *m = &names->lora->modules[target->module];
        if (!is_told_turned(names, m)) continue;
        sfti_stored stored = stored_by_size(names, m, target);
        if (stored == SFTI_STORED_UNKNOWN) code = settle_square(names, &all, target, err);
        else target->turned = stored == SFTI_STORED_TURNED;
    }
    return code;
}

static bool changes_bias(const sfti_lora *lora, const sfti_lora_module *m) {
    const sft_tensor *factor = sfti_lora_tensor(lora, m, SFTI_SLOT_IA3_FACTOR);
    if (m->slot[SFTI_SLOT_DIFF_BIAS]) return true;
    if (m->type == SFTI_TYPE_LORA) return m->slot[SFTI_SLOT_BIAS] != 0;
    /* of PEFT: one for each row; of a convolution the weight tells */
    return m->type == SFTI_TYPE_IA3 && factor
        && (factor->rank > 2 || (factor->rank == 2 && factor->shape[1] == 1));
}

/* What the way is to the tensor: CODES: it is in a layer that the module changes, and is not its
 * weights; OTHER: one of another name of it. */
typedef enum map_as { AS_NAMED, AS_CODES, AS_OTHER } map_as;

static sft_code add_later(map_names *names, sfti_lora_target target, sft_error *err) {
    sfti_lora_target *grown = sfti_arena_grow(&names->lora->arena, names->later,
                                              names->later_count, 1, &names->later_capacity,
                                              sizeof *grown);
    if (!grown) return sfti_fail_memory(err, sizeof *grown);
    names->later = grown;
    grown[names->later_count++] = target;
    return SFT_OK;
}

static sft_code match_module(map_names *names, uint32_t module, bool exact,
                             const sfti_lora_way *way, uint32_t tensor, map_as as, sft_error *err) {
    sfti_lora_module *m = &names->lora->modules[module];
    uint64_t rows = 0, cols = 0;
    if (as == AS_CODES) m->codes = tensor + 1;
    if (as == AS_CODES || (as == AS_OTHER && changes_bias(names->lora, m))) return SFT_OK;
    if (!sfti_lora_shape(sft_set_tensor_at(names->model, tensor), &rows, &cols)) return SFT_OK;
    sfti_lora_target target = { .module = module, .tensor = tensor, .row = way->row,
                                .from = way->from, .transposed = way->transposed };
    target.rows = way->rows ? way->rows : way->transposed ? cols : rows;
    target.turned = !way->transposed && is_turned(names, m, tensor);
    names->exact[module] = names->exact[module] || exact;
    return exact ? add_target(names, target, err) : add_later(names, target, err);
}

static sft_code look_up(map_names *names, const sfti_lora_way *way, uint32_t tensor, map_as as,
                        sft_error *err) {
    char text[SFTI_LORA_NAME + 64];
    sft_code code = SFT_OK;
    for (int part = 0; !code && part < SFTI_ADAPTER_PARTS; part++) {
        /* a way is the end of a tensor's name, or made in as much room */
        if (!(way->parts >> part & 1) || sfti_never(way->path.len > SFTI_LORA_NAME)) continue;
        for (int exact = 1; !code && exact >= 0; exact--) {
            size_t len = exact ? exact_name((sfti_part)part, way->path, text)
                               : fold_name((sfti_part)part, way->path, text);
            uint32_t key = sfti_names_find(&names->names, (sft_span){ text, len });
            if (key == SFTI_NO_NAME) continue;
            code = match_module(names, names->keys[key].module, exact, way, tensor, as, err);
        }
    }
    return code;
}

/* ── Checks ── */

static sft_code check_shape(const map_names *names, const sfti_lora_module *m, uint64_t covered,
                            const sfti_lora_target *target, sft_error *err) {
    const sft_tensor *tensor = sft_set_tensor_at(names->model, target->tensor);
    const sft_tensor *first = sfti_lora_first(names->lora, m);
    uint64_t rows = 0, cols = 0;
    (void)sfti_lora_shape(tensor, target->transposed ? &cols : &rows,
                          target->transposed ? &rows : &cols);
    bool turned = target->turned && m->type == SFTI_TYPE_LORA && m->out == cols && m->in == rows;
    if (target->from > covered || target->rows > covered - target->from)
        return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, first->offset, first->name,
                                "expected layers of the model for each row of this module, found "
                                "none for some before row %llu, where %.*s begins",
                                (unsigned long long)target->from, SFTI_CLIP(tensor->name, 120));
    /* rows of a target are all of its tensor's, or what a rule divides those into */
    if (sfti_never(target->row + target->rows > rows || target->row + target->rows < target->row)
        || (m->out && m->out != covered && !turned) || (m->in && m->in != cols && !turned))
        return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, first->offset, first->name,
                                "expected a layer of %llu x %llu, as %.*s of the model, found %llu "
                                "x %llu: an adapter of another model?",
                                (unsigned long long)covered, (unsigned long long)cols,
                                SFTI_CLIP(tensor->name, 120), (unsigned long long)m->out,
                                (unsigned long long)m->in);
    return SFT_OK;
}

/* ── Biases ── */

static const sft_tensor *bias_of(const sft_set *model, const sft_tensor *weight, char *text) {
    static const struct { const char *weight, *bias; } ends[] = {
        { ".weight", ".bias" }, { ".in_proj_weight", ".in_proj_bias" },
    };
    for (size_t i = 0; i < SFTI_COUNT(ends); i++) {
        if (!sfti_ends(weight->name, ends[i].weight)) continue;
        size_t len = weight->name.len - strlen(ends[i].weight), more = strlen(ends[i].bias);
        memcpy(text, weight->name.data, len);
        memcpy(text + len, ends[i].bias, more);
        return sft_set_find(model, (sft_span){ text, len + more }, NULL);
    }
    return NULL;
}

/* Each target of the weight gets one of its bias beside it, or is turned into that. */
static sft_code add_biases(map_names *names, sfti_lora_module *m, const uint32_t *index,
                           sft_error *err) {
    char text[SFTI_LORA_NAME + 16];
    sfti_lora_map *map = names->map;
    uint32_t at = m->targets;
    bool required = m->slot[SFTI_SLOT_DIFF_BIAS]
                 || (m->type == SFTI_TYPE_LORA && m->slot[SFTI_SLOT_BIAS]);
    if (m->type == SFTI_TYPE_FULL && !m->slot[SFTI_SLOT_DIFF]) m->targets = 0; /* bias alone */
    while (at) {
        sfti_lora_target target = map->targets[at - 1];
        const sft_tensor *weight = sft_set_tensor_at(names->model, target.tensor);
        const sft_tensor *bias = bias_of(names->model, weight, text);
        uint64_t rows = 0, cols = 0;
        at = target.next;
        uint64_t all = 0, across = 0;
        (void)sfti_lora_shape(weight, &all, &across);
        if (bias) (void)sfti_lora_shape(bias, &rows, &cols);
        if (target.turned && target.rows == all && rows == across) target.rows = rows;
        bool fits = bias && cols == 1 && target.row + target.rows <= rows;
        const sft_tensor *factor = sfti_lora_tensor(names->lora, m, SFTI_SLOT_IA3_FACTOR);
        int inputs = factor && factor->rank > 2 ? sfti_lora_on_inputs(names->lora, m->name) : 0;
        bool columns = inputs < 0 ? sft_tensor_elements(factor) != all : inputs > 0;
        if (columns && !required) continue;
        if (!fits && required) {
            const sft_tensor *first = sfti_lora_first(names->lora, m);
            return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, first->offset, first->name,
                                    "expected a bias beside %.*s of the model, found %s",
                                    SFTI_CLIP(weight->name, 120),
                                    bias ? "one of another size" : "none");
        }
        if (!fits) continue;
        size_t shard;
        const sft_tensor *found = sft_set_find(names->model, bias->name, &shard);
        const sft_file *file = sft_set_shard_at(names->model, shard);
        target.tensor = index[shard] + (uint32_t)sft_file_tensor_index(file, found);
        target.bias = true;
        target.transposed = false;
        sft_code code = add_target(names, target, err);
        if (code) return code;
    }
    return SFT_OK;
}

/* Where the tensors of each shard begin among those of the set. */
static uint32_t *shard_index(const map_names *names) {
    size_t shards = sft_set_shard_count(names->model), sum = 0;
    uint32_t *index = sfti_arena_array(&names->lora->arena, shards, sizeof *index);
    for (size_t s = 0; index && s < shards; s++) {
        index[s] = (uint32_t)sum;
        sum += sft_file_tensor_count(sft_set_shard_at(names->model, s));
    }
    return index;
}

/* A layer that two modules of an adapter mean, by names of two programs, would be changed twice. */
static sft_code check_modules(const map_names *names, sft_error *err) {
    const sfti_lora_map *map = names->map;
    sfti_lora *lora = names->lora;
    size_t tensors = sft_set_tensor_count(names->model);
    uint32_t *last = sfti_arena_array(&lora->arena, tensors, sizeof *last);
    uint32_t *before = sfti_arena_array(&lora->arena, map->count, sizeof *before);
    if (!last || !before) return sfti_fail_memory(err, (tensors + map->count) * sizeof *last);
    memset(last, 0, tensors * sizeof *last);
    for (size_t i = 0; i < map->count; i++) {
        const sfti_lora_target *one = &map->targets[i];
        for (uint32_t at = last[one->tensor]; at; at = before[at - 1]) {
            const sfti_lora_target *other = &map->targets[at - 1];
            if (one->module == other->module || one->row >= other->row + other->rows
                || other->row >= one->row + one->rows)
                continue;
            const sft_tensor *first = sfti_lora_first(lora, &lora->modules[one->module]);
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, first->offset, first->name,
                                    "expected one module for %.*s of the model, found %.*s, too",
                                    SFTI_CLIP(sft_set_tensor_at(names->model, one->tensor)->name,
                                              80),
                                    SFTI_CLIP(lora->modules[other->module].name, 80));
        }
        before[i] = last[one->tensor];
        last[one->tensor] = (uint32_t)i + 1;
    }
    return SFT_OK;
}

/* ── All ── */

static sft_code settle_module(map_names *names, sfti_lora_module *m, const uint32_t *index,
                              sft_error *err) {
    const sfti_lora_map *map = names->map;
    uint64_t covered = 0;
    sft_code code = SFT_OK;
    for (uint32_t at = m->targets; at; at = map->targets[at - 1].next) {
        const sfti_lora_target *target = &map->targets[at - 1];
        for (uint32_t k = target->next; k; k = map->targets[k - 1].next) {
            const sfti_lora_target *other = &map->targets[k - 1];
            if (target->from < other->from + other->rows
                && other->from < target->from + target->rows)
                return refuse_two(names, m, target, other, err);
        }
        covered += target->rows; /* 64 at most, of less than 2^57 each */
    }
    /* targets that are apart, and that end where all their rows do, have no gap between them */
    for (uint32_t at = m->targets; !code && at; at = map->targets[at - 1].next)
        code = check_shape(names, m, covered, &map->targets[at - 1], err);
    if (!code && changes_bias(names->lora, m)) code = add_biases(names, m, index, err);
    return code;
}

/* ── PEFT's names of a model whose file has another prefix ── */

/* The tensor of a module if what its names begin with, drop bytes, gives way to add, or NULL. */
static const sft_tensor *tensor_beneath(const map_names *names, const sfti_lora_module *m,
                                        size_t drop, sft_span add, size_t *shard) {
    char text[2 * SFTI_LORA_NAME + sizeof ".weight"];
    sft_span rest = sfti_from(m->name, drop);
    if (m->name.len <= drop || rest.len > SFTI_LORA_NAME || add.len > SFTI_LORA_NAME) return NULL;
    memcpy(text, add.data, add.len);
    memcpy(text + add.len, rest.data, rest.len);
    memcpy(text + add.len + rest.len, ".weight", strlen(".weight"));
    sft_span name = { text, add.len + rest.len + strlen(".weight") };
    return sft_set_find(names->model, name, shard);
}

/* What the model's names have before those of the adapter: one part, of one tensor; or empty. */
static sft_span prefix_above(const map_names *names, sft_span rest) {
    sft_span found = { "", 0 };
    for (size_t i = 0; i < sft_set_tensor_count(names->model); i++) {
        sft_span name = sft_set_tensor_at(names->model, i)->name;
        if (!sfti_ends(name, ".weight")) continue;
        name.len -= strlen(".weight");
        size_t above = name.len > rest.len ? name.len - rest.len : 0;
        if (above < 2 || name.data[above - 1] != '.' || memchr(name.data, '.', above - 1)
            || !sft_span_equal(sfti_from(name, above), rest))
            continue;
        if (found.len) return (sft_span){ "", 0 };
        found = (sft_span){ name.data, above };
    }
    return found;
}

/* Adapters of a head model ("transformer.h.0") for a file without the head's prefix ("h.0", GPT-2
 * as published), or the other way round: if no name of the adapter is the model's, and with one
 * part less, or one more, the same for all, each of them is that of a tensor. */
static sft_code map_other_prefix(map_names *names, const uint32_t *index, sft_error *err) {
    static const char base[] = "base_model.model.";
    const sfti_lora *lora = names->lora;
    size_t drop = sizeof base - 1, shard;
    sft_span add = { "", 0 };
    sft_code code = SFT_OK;
    for (size_t i = 0; i < lora->count; i++)
        if (!sfti_begins(lora->modules[i].name, base)) return SFT_OK;
    if (names->map->count > 0 || lora->count == 0) return SFT_OK;
    sft_span first = lora->modules[0].name, rest = sfti_from(first, drop);
    const char *dot = rest.len ? memchr(rest.data, '.', rest.len) : NULL;
    size_t more = dot ? drop + (size_t)(dot - rest.data) + 1 : drop;
    if (dot && tensor_beneath(names, &lora->modules[0], more, add, &shard)) drop = more;
    else add = prefix_above(names, rest);
    for (size_t i = 0; i < lora->count; i++)
        if (!sfti_begins_with(lora->modules[i].name, (sft_span){ first.data, drop })
            || !tensor_beneath(names, &lora->modules[i], drop, add, &shard))
            return SFT_OK;
    for (uint32_t i = 0; !code && i < lora->count; i++) {
        const sft_tensor *found = tensor_beneath(names, &lora->modules[i], drop, add, &shard);
        const sft_file *file = sft_set_shard_at(names->model, shard);
        uint32_t tensor = index[shard] + (uint32_t)sft_file_tensor_index(file, found);
        sfti_lora_target target = { .module = i, .tensor = tensor };
        uint64_t cols;
        if (!sfti_lora_shape(found, &target.rows, &cols)) return SFT_OK;
        target.turned = is_turned(names, &lora->modules[i], tensor);
        code = add_target(names, target, err);
    }
    return code;
}

/* Modules that are called after other names of tensors, which the model's metadata record: what
 * one name changes is changed for all, as in programs, where they are one tensor. A bias beside
 * them is that of one name. */
static sft_code map_other_names(map_names *names, const sfti_lora_naming *naming,
                                sfti_lora_ways *ways, const uint32_t *index, sft_error *err) {
    const sft_set *model = names->model;
    sft_code code = SFT_OK;
    for (size_t s = 0; s < sft_set_shard_count(model); s++) {
        const sft_file *file = sft_set_shard_at(model, s);
        for (size_t i = 0; !code && i < sft_file_metadata_count(file); i++) {
            sft_pair pair = sft_file_metadata_at(file, i);
            size_t shard;
            if (!sfti_set_is_alias(model, pair)) continue;
            const sft_tensor *of = sft_set_find(model, pair.value, &shard);
            size_t number = sft_file_tensor_index(sft_set_shard_at(model, shard), of);
            sft_tensor tensor = *of;
            tensor.name = pair.key;
            sfti_lora_ways_of(naming, &tensor, ways);
            for (size_t k = 0; !code && k < ways->count; k++)
                code = look_up(names, &ways->ways[k], index[shard] + (uint32_t)number, AS_OTHER,
                               err);
        }
    }
    return code;
}

sft_code sfti_lora_map_model(sfti_lora *lora, const sft_set *model, sfti_lora_map *out,
                             sft_error *err) {
    map_names names = { .lora = lora, .map = out, .model = model };
    uint64_t most = (uint64_t)lora->count * KEYS_A_MODULE;
    sfti_lora_ways ways;
    sfti_lora_naming naming;
    *out = (sfti_lora_map){ .count = 0 };
    names.keys = sfti_arena_array(&lora->arena, most, sizeof *names.keys);
    names.exact = sfti_arena_array(&lora->arena, lora->count, sizeof *names.exact);
    uint32_t *index = shard_index(&names);
    if (!names.keys || !names.exact || !index
        || !sfti_names_draw(&names.names, most, key_text, &names, &lora->arena))
        return sfti_fail_memory(err, most * sizeof *names.keys);
    sft_code code = sfti_lora_naming_open(&lora->arena, model, &naming, err);
    for (uint32_t i = 0; !code && i < lora->count; i++) {
        lora->modules[i].targets = lora->modules[i].codes = 0;
        names.exact[i] = false;
        code = add_keys(&names, i, err);
    }
    for (uint32_t i = 0; !code && i < sft_set_tensor_count(model); i++) {
        sft_tensor tensor = *sft_set_tensor_at(model, i);
        sfti_lora_ways_of(&naming, &tensor, &ways);
        for (size_t k = 0; !code && k < ways.count; k++)
            code = look_up(&names, &ways.ways[k], i, AS_NAMED, err);
        if (!sfti_may_be_packed(&tensor)) continue;
        tensor.name = sfti_lora_layer(tensor.name);
        sfti_lora_ways_of(&naming, &tensor, &ways);
        for (size_t k = 0; !code && k < ways.count; k++)
            code = look_up(&names, &ways.ways[k], i, AS_CODES, err);
    }
    if (!code) code = map_other_names(&names, &naming, &ways, index, err);
    for (size_t i = 0; !code && i < names.later_count; i++)
        if (!names.exact[names.later[i].module]) code = add_target(&names, names.later[i], err);
    if (!code) code = map_other_prefix(&names, index, err);
    if (!code) code = settle_turned(&names, err);
    for (size_t i = 0; !code && i < lora->count; i++) {
        code = settle_module(&names, &lora->modules[i], index, err);
        out->matched += lora->modules[i].targets != 0;
    }
    return code ? code : check_modules(&names, err);
}
