/* Layers of an adapter told apart by what they are, not by their numbers: whose they are, in
 * what format, which blocks and which leaves. */
#include "label/tensors/fitting.h"

#include "base/json_lex.h"
#include "base/order.h"

#include <string.h>

#define FORM_TEXT 160
#define FORM_PROBES 24
#define FORM_TARGETS 64

/* ── Parts and formats, by how names begin ── */

typedef enum target_format {
    FORMAT_CLONEOFSIMO = 0, FORMAT_XLABS, FORMAT_ONETRAINER, FORMAT_KOHYA, FORMAT_LYCORIS,
    FORMAT_MLX, FORMAT_BFL, FORMAT_DIFFUSERS, FORMAT_PEFT, FORMATS
} target_format;

static const char *const format_names[FORMATS] = { "cloneofsimo", "xlabs", "onetrainer", "kohya",
                                                   "lycoris", "mlx", "bfl", "diffusers",
                                                   "peft" };

/* Longest first where one begins another. keep: the prefix belongs to the layer's name. */
static const struct part_row {
    const char *prefix;
    sfti_part part;
    target_format format;
    bool keep;
} part_rows[] = {
    { "unet:", SFTI_PART_MAIN, FORMAT_CLONEOFSIMO, false },
    { "text_encoder:", SFTI_PART_TE1, FORMAT_CLONEOFSIMO, false },
    { "lora_te1_", SFTI_PART_TE1, FORMAT_KOHYA, false },
    { "lora_te2_", SFTI_PART_TE2, FORMAT_KOHYA, false },
    { "lora_te3_", SFTI_PART_TE3, FORMAT_KOHYA, false },
    { "lora_te_", SFTI_PART_TE, FORMAT_KOHYA, false },
    { "lora_unet_", SFTI_PART_MAIN, FORMAT_KOHYA, false },
    { "oft_unet_", SFTI_PART_MAIN, FORMAT_KOHYA, false },
    { "lora_transformer_", SFTI_PART_MAIN, FORMAT_ONETRAINER, false },
    { "lora_prior_unet_", SFTI_PART_MAIN, FORMAT_ONETRAINER, false },
    { "lora_prior_te_", SFTI_PART_TE1, FORMAT_ONETRAINER, false },
    { "lycoris_text_encoder_2_", SFTI_PART_TE2, FORMAT_LYCORIS, false },
    { "lycoris_text_encoder_", SFTI_PART_TE1, FORMAT_LYCORIS, false },
    { "lycoris_", SFTI_PART_MAIN, FORMAT_LYCORIS, false },
    { "base_model.model.", SFTI_PART_MAIN, FORMAT_PEFT, false },
    { "base_model.", SFTI_PART_MAIN, FORMAT_PEFT, false },
    { "diffusion_model.", SFTI_PART_MAIN, FORMAT_BFL, false },
    { "model.diffusion_model.", SFTI_PART_MAIN, FORMAT_BFL, false },
    { "text_encoders.clip_l.", SFTI_PART_TE1, FORMAT_BFL, false },
    { "text_encoders.clip_g.", SFTI_PART_TE2, FORMAT_BFL, false },
    { "text_encoders.t5xxl.", SFTI_PART_TE2, FORMAT_BFL, false },
    { "text_encoders.", SFTI_PART_TE1, FORMAT_BFL, false },
    { "clip_l.", SFTI_PART_TE1, FORMAT_ONETRAINER, false },
    { "clip_g.", SFTI_PART_TE2, FORMAT_ONETRAINER, false },
    { "t5.", SFTI_PART_TE2, FORMAT_ONETRAINER, false },
    { "unet.unet.", SFTI_PART_MAIN, FORMAT_DIFFUSERS, false },
    { "unet.", SFTI_PART_MAIN, FORMAT_DIFFUSERS, false },
    { "text_encoder_3.", SFTI_PART_TE3, FORMAT_DIFFUSERS, false },
    { "text_encoder_2.", SFTI_PART_TE2, FORMAT_DIFFUSERS, false },
    { "text_encoder.", SFTI_PART_TE1, FORMAT_DIFFUSERS, false },
    { "transformer.h.", SFTI_PART_MAIN, FORMAT_PEFT, true },
    { "transformer.", SFTI_PART_MAIN, FORMAT_DIFFUSERS, false },
    { "prior.", SFTI_PART_MAIN, FORMAT_DIFFUSERS, false },
    { "down_blocks.", SFTI_PART_MAIN, FORMAT_DIFFUSERS, true },
    { "up_blocks.", SFTI_PART_MAIN, FORMAT_DIFFUSERS, true },
    { "mid_block.", SFTI_PART_MAIN, FORMAT_DIFFUSERS, true },
    { "transformer_blocks.", SFTI_PART_MAIN, FORMAT_DIFFUSERS, true },
    { "single_transformer_blocks.", SFTI_PART_MAIN, FORMAT_DIFFUSERS, true },
    { "double_blocks.", SFTI_PART_MAIN, FORMAT_BFL, true },
    { "single_blocks.", SFTI_PART_MAIN, FORMAT_BFL, true },
    { "img_in", SFTI_PART_MAIN, FORMAT_BFL, true },
};

static const struct part_row *part_row_of(sft_span name) {
    for (size_t i = 0; i < SFTI_COUNT(part_rows); i++)
        if (sfti_begins(name, part_rows[i].prefix)) return &part_rows[i];
    return NULL;
}

const uint8_t *sfti_forms_prefixes(const sfti_view *view) {
    return sfti_view_rows(view, part_rows, sizeof part_rows[0], SFTI_COUNT(part_rows));
}

sfti_part sfti_forms_part(uint8_t prefix) {
    return prefix ? part_rows[prefix - 1].part : SFTI_PART_MAIN;
}

size_t sfti_forms_begins(sft_span name, sfti_part *part) {
    const struct part_row *row = part_row_of(name);
    *part = row ? row->part : SFTI_PART_MAIN;
    return row && !row->keep ? strlen(row->prefix) : 0;
}

/* The prefix of the tensor's name is the module's too, unless it reaches into what follows. */
static const struct part_row *module_row(const sfti_module *module) {
    const struct part_row *row = module->prefix ? &part_rows[module->prefix - 1] : NULL;
    return row && strlen(row->prefix) > module->name.len ? part_row_of(module->name) : row;
}

/* What names without a known prefix are, by the suffix of the pair. */
static int format_of(const struct part_row *row, sft_span tensor) {
    if (sfti_ends(tensor, "_lora1.down.weight") || sfti_ends(tensor, "_lora2.down.weight"))
        return FORMAT_XLABS;
    if (sfti_ends(tensor, ".lora_a")) return FORMAT_MLX;
    if (row) return (int)row->format;
    if (sfti_ends(tensor, ".lora_A.weight") || sfti_ends(tensor, ".lora_A.default.weight")
        || sfti_ends(tensor, ".lora_A"))
        return FORMAT_PEFT;
    return -1;
}

const char *sfti_forms_format(const sfti_forms *forms) {
    for (int i = 0; i < FORMATS; i++)
        if (forms->formats >> i & 1) return format_names[i];
    return NULL;
}

/* ── Forms ── */

typedef struct form_key {
    char text[FORM_TEXT];
    size_t len;
    sfti_numbers numbers;
    uint64_t values[SFTI_NUMBERS]; /* 0 for none */
} form_key;

static bool is_separator(char c) {
    return c == '.' || c == '_';
}

static size_t digits_from(sft_span name, size_t i) {
    size_t end = i;
    while (end < name.len && sfti_lex_digit(name.data[end])) end++;
    return end - i;
}

/* The length of the number that begins a part of the name at i, if the part is a number and not
 * the name's end (img_mlp.0: the layer's own name); 0 if it is not. */
static size_t lone_number(sft_span name, size_t i) {
    size_t len = digits_from(name, i), end = i + len;
    if (len == 0 || (end < name.len ? !is_separator(name.data[end]) : i > 0)) return 0;
    return len;
}

static uint64_t number_value(sft_span name, size_t at, size_t len) {
    uint64_t value = 0;
    for (size_t i = at; len <= 6 && i < at + len; i++)
        value = value * 10 + (uint64_t)(name.data[i] - '0');
    return value;
}

/* "processor." says nothing of the layer. */
static size_t silent_part(sft_span rest) {
    static const char *const silent[] = { "processor.", "processor_", "_orig_mod." };
    for (size_t k = 0; k < SFTI_COUNT(silent); k++)
        if (sfti_begins(rest, silent[k])) return strlen(silent[k]);
    return 0;
}

/* Takes in a number that begins at i; its length, or 0. */
static size_t key_number(form_key *key, sft_span name, size_t i) {
    sfti_numbers *numbers = &key->numbers;
    size_t digits = lone_number(name, i);
    if (digits == 0) return 0;
    if (numbers->count < SFTI_NUMBERS) {
        key->values[numbers->count] = number_value(name, i, digits);
        numbers->places[numbers->count].at = (uint32_t)i; /* a header is shorter */
        numbers->places[numbers->count].len = (uint32_t)digits;
    }
    if (numbers->count <= SFTI_NUMBERS) numbers->count++;
    if (numbers->count <= SFTI_NUMBERS
        && sfti_ends((sft_span){ key->text, key->len }, "transformer_blocks_"))
        numbers->inner = numbers->count;
    key->text[key->len++] = '#';
    return digits;
}

/* From one separator to the next: what a part of the name is, if it is no number and not silent. */
static void make_key(form_key *key, sft_span name) {
    const char *at = name.data, *end = at + name.len;
    key->len = key->numbers.count = key->numbers.inner = 0;
    key->values[0] = 0;
    while (at < end && key->len < FORM_TEXT - 1) {
        size_t i = (size_t)(at - name.data), skip = 0;
        bool begins = i == 0 || is_separator(at[-1]);
        if (begins && (*at == 'p' || *at == '_')) skip = silent_part(sfti_from(name, i));
        else if (begins && sfti_lex_digit(*at)) skip = key_number(key, name, i);
        if (skip > 0) {
            at += skip;
            continue;
        }
        char *to = key->text + key->len, *most = key->text + (FORM_TEXT - 1), c;
        do {
            c = *at++;
            *to++ = c == '.' ? '_' : c == '#' ? '?' : c; /* "#" is a number */
        } while (!is_separator(c) && at < end && to < most);
        key->len = (size_t)(to - key->text);
    }
}

static uint32_t hash_key(const form_key *key, sfti_part part) {
    uint64_t hash = (uint64_t)part + key->len;
    for (size_t i = 0; i < key->len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, key->text + i, key->len - i < 8 ? key->len - i : 8);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

/* The form of a key, made when it is new; NULL when the table has no place. */
static sfti_form *form_of(sfti_forms *forms, const form_key *key, sfti_part part) {
    size_t size = SFTI_FORMS * 2, at = hash_key(key, part) % size;
    for (int i = 0; i < FORM_PROBES; i++, at = (at + 1) % size) {
        if (forms->slots[at] == 0) break;
        sfti_form *form = &forms->forms[forms->slots[at] - 1];
        if (form->part == part && sft_span_equal(form->text, (sft_span){ key->text, key->len }))
            return form;
    }
    if (forms->slots[at] != 0 || forms->count == SFTI_FORMS) return NULL;
    sft_span text = sfti_info_copy(forms->info, (sft_span){ key->text, key->len });
    if (forms->info->code) return NULL;
    forms->slots[at] = (uint16_t)(forms->count + 1);
    sfti_form *form = &forms->forms[forms->count++];
    *form = (sfti_form){ .text = text, .part = part };
    return form;
}

/* Whether a name differs from the form's in its numbers only; their values, then, in the key. */
static bool key_again(form_key *key, const sfti_form *form, sft_span name) {
    const sfti_numbers *of = &form->numbers;
    size_t from = 0, at = 0; /* in the form's name, and in this */
    if (of->count > SFTI_NUMBERS) return false;
    key->numbers.count = of->count;
    key->numbers.inner = of->inner;
    key->values[0] = 0;
    for (size_t n = 0; n < of->count; n++) {
        size_t len = of->places[n].at - from;
        if (name.len - at < len || memcmp(name.data + at, form->raw.data + from, len) != 0)
            return false;
        from += len + of->places[n].len;
        at += len;
        size_t digits = digits_from(name, at);
        if (digits == 0) return false;
        key->values[n] = number_value(name, at, digits);
        if (n == 0) key->numbers.places[0].at = (uint32_t)at;
        at += digits;
    }
    size_t rest = form->raw.len - from;
    return name.len - at == rest && memcmp(name.data + at, form->raw.data + from, rest) == 0;
}

/* The form of a name: mostly the one that came after the last one before; NULL when the table has
 * no place. */
static sfti_form *meet_form(sfti_forms *forms, form_key *key, sft_span name, sfti_part part) {
    sfti_form *last = forms->last;
    sfti_form *form = last && last->next ? &forms->forms[last->next - 1] : NULL;
    if (!form || form->part != part || !key_again(key, form, name)) {
        make_key(key, name);
        form = form_of(forms, key, part);
        if (form && !form->tensor) form->raw = name, form->numbers = key->numbers;
    }
    if (last && form) last->next = (uint16_t)(form - forms->forms + 1);
    forms->last = form;
    return form;
}

/* Blocks: the word before the first number. */
static sft_span family_name(const form_key *key, sft_span layer) {
    size_t at = key->numbers.places[0].at;
    sft_span name = { layer.data, at > 0 ? at - 1 : 0 };
    if (sfti_begins(name, "mid_block")) return (sft_span){ name.data, strlen("mid_block") };
    for (size_t i = name.len; i > 0; i--)
        if (name.data[i - 1] == '.') return (sft_span){ name.data + i, name.len - i };
    return name;
}

static void put_block(sfti_forms *forms, const form_key *key, sft_span layer) {
    if (key->numbers.count == 0 || key->values[0] >= SFTI_FAMILY_NUMBERS) return;
    sft_span name = family_name(key, layer);
    if (name.len == 0) return;
    size_t i = 0;
    while (i < forms->families && !sft_span_equal(forms->family[i].name, name)) i++;
    if (i == SFTI_FAMILIES) return;
    sfti_blocks *family = &forms->family[i];
    if (i == forms->families) {
        forms->families++;
        *family = (sfti_blocks){ .name = name, .numbered = !sfti_is(name, "mid_block") };
    }
    family->bits[key->values[0] / 64] |= UINT64_C(1) << key->values[0] % 64;
}

static void note_format(sfti_forms *forms, const struct part_row *row, const sft_tensor *tensor) {
    int format = format_of(row, tensor->name);
    if (format >= 0) forms->formats |= 1u << format;
    if (!forms->first) forms->first = tensor;
}

void sfti_forms_begin(sfti_forms *forms, const sft_tensor *tensor) {
    note_format(forms, part_row_of(tensor->name), tensor);
}

/* A new form is what its first layer is. */
static void form_begin(sfti_form *form, const sft_tensor *tensor, uint64_t in, uint64_t out) {
    form->in = in;
    form->out = out;
    form->tensor = tensor;
    form->lowest = UINT64_MAX;
    form->letters = sfti_letter_pairs(form->text) | sfti_letter_pairs(form->raw);
}

static void form_number(sfti_form *form, const form_key *key) {
    form->times++;
    if (key->values[0] > form->highest) form->highest = key->values[0];
    if (key->values[0] < form->lowest) form->lowest = key->values[0];
}

void sfti_forms_put(sfti_forms *forms, const sfti_module *module) {
    form_key key;
    const struct part_row *row = module_row(module);
    sfti_part part = row ? row->part : SFTI_PART_MAIN;
    sft_span rest = row && !row->keep ? sfti_from(module->name, strlen(row->prefix))
                                      : module->name;
    note_format(forms, row, module->tensor);
    sfti_form *form = meet_form(forms, &key, rest, part);
    if (part == SFTI_PART_MAIN && !sfti_begins(module->name, "unet:"))
        put_block(forms, &key, rest);
    if (!form) {
        forms->beyond += part == SFTI_PART_MAIN && module->in > 0 && module->out > 0;
        return;
    }
    if (!form->tensor) form_begin(form, module->tensor, module->in, module->out);
    form_number(form, &key);
    uint64_t inner = key.numbers.inner ? key.values[key.numbers.inner - 1] : 0;
    if (inner > form->inner) form->inner = inner;
    if (part != SFTI_PART_MAIN) return;
    if (key.numbers.count > SFTI_NUMBERS) forms->beyond += module->in > 0 && module->out > 0;
    else sfti_fitting_put(forms, form, module, key.values, key.numbers.count);
}

/* A layer's name, without what its weight is called; false for a bias, whose layer has one. */
static bool layer_of(sft_span name, sft_span *layer) {
    static const char *const ends[] = { ".weight", ".qweight", ".weight_packed", ".W_q" };
    *layer = name;
    if (sfti_ends(name, ".bias")) return false;
    for (size_t i = 0; i < SFTI_COUNT(ends); i++)
        if (sfti_ends(name, ends[i])) {
            layer->len -= strlen(ends[i]);
            break;
        }
    return true;
}

static void forms_put_tensor(sfti_forms *forms, const sft_tensor *tensor) {
    form_key key;
    sft_span name;
    if (!layer_of(tensor->name, &name)) return;
    sfti_form *form = meet_form(forms, &key, name, SFTI_PART_MAIN);
    if (!form) return;
    if (!form->tensor)
        form_begin(form, tensor, sfti_size_of(forms->info->set, tensor, 1),
                   sfti_size_of(forms->info->set, tensor, 0));
    form_number(form, &key);
}

sfti_forms *sfti_forms_new(sft_info *info) {
    sfti_forms *forms = sfti_info_take(info, sizeof *forms);
    if (!forms) return NULL;
    memset(forms, 0, offsetof(sfti_forms, family));
    forms->info = info;
    return forms;
}

sfti_forms *sfti_forms_of(const sfti_view *view) {
    sfti_forms *forms = sfti_forms_new(view->info);
    for (size_t i = 0; forms && i < view->count; i++)
        forms_put_tensor(forms, sfti_view_at(view, i));
    return view->info->code ? NULL : forms;
}

/* ── Lists ── */

/* Ends of names whose dots became '_', and the leaf that they are. Longest first where one
 * ends another. */
static const char *const leaf_rows[][2] = {
    { "_img_mlp_0", "img_mlp.0" }, { "_img_mlp_2", "img_mlp.2" }, { "_txt_mlp_0", "txt_mlp.0" },
    { "_txt_mlp_2", "txt_mlp.2" }, { "_img_mod_1", "img_mod.1" }, { "_txt_mod_1", "txt_mod.1" },
    { "_adaln_modulation_cross_attn_1", "adaln_modulation_cross_attn.1" },
    { "_adaln_modulation_cross_attn_2", "adaln_modulation_cross_attn.2" },
    { "_adaln_modulation_self_attn_1", "adaln_modulation_self_attn.1" },
    { "_adaln_modulation_self_attn_2", "adaln_modulation_self_attn.2" },
    { "_adaln_modulation_mlp_1", "adaln_modulation_mlp.1" },
    { "_adaln_modulation_mlp_2", "adaln_modulation_mlp.2" }, { "_mlp_layer1", "layer1" },
    { "_mlp_layer2", "layer2" }, { "_mlp_down", "down" }, { "_mlp_up", "up" },
    { "_mlp_gate", "gate" },
    { "_attn_gate", "gate" }, { "_attn_wq", "wq" }, { "_attn_wk", "wk" }, { "_attn_wv", "wv" },
    { "_emb_layers_1", "emb_layers.1" }, { "_in_layers_2", "in_layers.2" },
    { "_out_layers_3", "out_layers.3" }, { "_adaLN_modulation_0", "adaLN_modulation.0" },
    { "_adaLN_modulation_1", "adaLN_modulation.1" }, { "_to_out_0", "to_out.0" }, {
      "_to_add_out", "to_add_out" },
    { "_add_q_proj", "add_q_proj" }, { "_add_k_proj", "add_k_proj" },
    { "_add_v_proj", "add_v_proj" }, { "_q_proj", "q_proj" }, { "_k_proj", "k_proj" },
    { "_v_proj", "v_proj" }, { "_o_proj", "o_proj" }, { "_out_proj", "out_proj" },
    { "_time_emb_proj", "time_emb_proj" }, { "_to_q", "to_q" }, { "_to_k", "to_k" },
    { "_to_v", "to_v" }, { "_to_out", "to_out" }, { "_fc1", "fc1" }, { "_fc2", "fc2" },
    { "_proj_in", "proj_in" }, { "_proj_out", "proj_out" }, { "_proj_mlp", "proj_mlp" },
    { "_conv_shortcut", "conv_shortcut" }, { "_conv_in", "conv_in" },
    { "_conv_out", "conv_out" }, { "_conv1", "conv1" }, { "_conv2", "conv2" },
    { "_conv", "conv" }, { "_linear1", "linear1" }, { "_linear2", "linear2" },
    { "_attn_qkv", "qkv" }, { "_qkv", "qkv" }, { "_attn_proj", "proj" }, { "_proj", "proj" },
    { "_mod_lin", "lin" }, { "_modulation_lin", "lin" }, { "_wi_0", "wi_0" },
    { "_wi_1", "wi_1" }, { "_wo", "wo" }, { "_k_img", "k_img" }, { "_v_img", "v_img" },
    { "_attn_q", "q" }, { "_attn_k", "k" }, { "_attn_v", "v" }, { "_attn_o", "o" },
    { "_SelfAttention_q", "q" }, { "_SelfAttention_k", "k" }, { "_SelfAttention_v", "v" },
    { "_SelfAttention_o", "o" }, { "_op", "op" }, { "_skip_connection", "skip_connection" },
};

static size_t word_before(sft_span name, size_t end, char separator) {
    while (end > 0 && name.data[end - 1] != separator) end--;
    return end;
}

/* The last part of a dotted name; with the one before where it is a number. */
static sft_span dotted_leaf(sft_span name) {
    size_t at = word_before(name, name.len, '.');
    sft_span leaf = { name.data + at, name.len - at };
    uint64_t number;
    if (leaf.len == 0 || leaf.len > 6 || !sfti_parse_uint(leaf, &number) || at == 0) return leaf;
    at = word_before(name, at - 1, '.');
    return (sft_span){ name.data + at, name.len - at };
}

static sft_span flat_leaf(sft_info *info, const sfti_form *form) {
    sft_span name = form->raw;
    uint64_t number;
    for (size_t i = 0; i < SFTI_COUNT(leaf_rows); i++)
        if (sfti_ends(name, leaf_rows[i][0])) return sft_span_cstr(leaf_rows[i][1]);
    size_t at = word_before(name, name.len, '_');
    sft_span last = { name.data + at, name.len - at };
    if (at > 1 && last.len > 0 && last.len < 4 && sfti_parse_uint(last, &number)) {
        size_t word = word_before(name, at - 1, '_');
        return sfti_info_text(info, "%.*s.%.*s", (int)(at - 1 - word), name.data + word,
                              (int)last.len, last.data);
    }
    for (size_t i = form->text.len; i > 1; i--) /* what follows the last number */
        if (form->text.data[i - 1] == '_' && form->text.data[i - 2] == '#') {
            size_t len = form->text.len - i;
            return (sft_span){ name.data + name.len - len, len };
        }
    return name;
}

static sft_span leaf_of(sft_info *info, const sfti_form *form) {
    sft_span none = { NULL, 0 };
    if (memchr(form->raw.data, '.', form->raw.len)) return dotted_leaf(form->raw);
    if (form->text.len == 1 && *form->text.data == '#') return none; /* numbers for names */
    return flat_leaf(info, form);
}

static int compare_leaves(const void *ctx, uint32_t a, uint32_t b) {
    const sft_span *leaves = ctx;
    return sfti_bytes_compare(leaves[a], leaves[b]);
}

static void list_targets(const sfti_forms *forms) {
    sft_info *info = forms->info;
    sft_span *leaves = sfti_info_take(info, SFTI_FORMS * sizeof *leaves);
    size_t count = 0;
    for (size_t i = 0; i < forms->count && !info->code; i++) {
        sft_span leaf = leaf_of(info, &forms->forms[i]);
        if (leaf.len > 0 && leaf.len <= 128) leaves[count++] = leaf;
    }
    const uint32_t *order = sfti_arena_sorted(&info->arena, count, compare_leaves, leaves);
    if (!order) info->code = SFT_OUT_OF_MEMORY;
    for (size_t i = 0; !info->code && i < count && info->adapter.targets.count < FORM_TARGETS; i++)
        if (i == 0 || !sft_span_equal(leaves[order[i]], leaves[order[i - 1]]))
            SFTI_PUSH(info, &info->adapter.targets, sfti_note, .text = leaves[order[i]]);
}

static bool has_block(const sfti_blocks *family, unsigned n) {
    return n < SFTI_FAMILY_NUMBERS && (family->bits[n / 64] >> n % 64 & 1);
}

static void push_block(sft_info *info, const sfti_blocks *family, unsigned from, unsigned to) {
    int len = (int)(family->name.len < 128 ? family->name.len : 128);
    const char *name = family->name.data;
    sft_span text = !family->numbered ? sfti_info_text(info, "%.*s", len, name)
                  : from == to ? sfti_info_text(info, "%.*s.%u", len, name, from)
                               : sfti_info_text(info, "%.*s.%u-%u", len, name, from, to);
    SFTI_PUSH(info, &info->adapter.blocks, sfti_note, .text = text);
}

static void list_blocks(const sfti_forms *forms) {
    for (size_t i = 0; i < forms->families; i++) {
        const sfti_blocks *family = &forms->family[i];
        if (!family->numbered) {
            push_block(forms->info, family, 0, 0);
            continue;
        }
        for (unsigned n = 0; n < SFTI_FAMILY_NUMBERS; n++) {
            unsigned from = n;
            if (!has_block(family, n)) continue;
            while (has_block(family, n + 1)) n++;
            push_block(forms->info, family, from, n);
        }
    }
}

void sfti_forms_lists(const sfti_forms *forms) {
    list_targets(forms);
    list_blocks(forms);
}
