/* Layers of an adapter told apart by what they are, not by their numbers: whose they are, in
 * what format, which blocks and which leaves. */
#include "label/tensors/fitting.h"

#include "base/json_lex.h"
#include "base/order.h"

#include <string.h>

#define FORM_TEXT 160
#define FORM_PROBES 24
#define FORM_TARGETS 64

/* ── Formats, by how names begin ── */

/* The format that a tensor's name shows: by its prefix, or the suffix of the pair. */
static void note_format(sfti_forms *forms, const sfti_name_layout *row, const sft_tensor *tensor) {
    sft_span name = tensor->name;
    int format = row ? (int)row->format : -1;
    if (sfti_ends(name, "_lora1.down.weight") || sfti_ends(name, "_lora2.down.weight"))
        format = SFTI_FORMAT_XLABS;
    else if (sfti_ends(name, ".lora_a")) format = SFTI_FORMAT_MLX;
    else if (!row && (sfti_ends(name, ".lora_A.weight") || sfti_ends(name, ".lora_A")
                      || sfti_ends(name, ".lora_A.default.weight")))
        format = SFTI_FORMAT_PEFT;
    if (format >= 0) forms->formats |= 1u << format;
    if (!forms->first) forms->first = tensor;
}

const char *sfti_forms_format(const sfti_forms *forms) {
    for (int i = 0; i < SFTI_FORMATS; i++)
        if (forms->formats >> i & 1) return sfti_format_names[i];
    return NULL;
}

/* ── Forms ── */

typedef struct form_key {
    char text[FORM_TEXT];
    size_t len;
    sfti_numbers numbers;
    uint64_t values[SFTI_NUMBERS]; /* 0 for none */
} form_key;

#define IS_SEPARATOR(c) ((c) == '.' || (c) == '_')

/* Where the word that ends there begins. */
static size_t word_before(sft_span name, size_t end, char separator) {
    while (end > 0 && name.data[end - 1] != separator) end--;
    return end;
}

static size_t digits_from(sft_span name, size_t i) {
    size_t end = i;
    while (end < name.len && sfti_lex_digit(name.data[end])) end++;
    return end - i;
}

static uint64_t number_value(sft_span name, size_t at, size_t len) {
    uint64_t value = 0;
    for (size_t i = at; len <= 6 && i < at + len; i++)
        value = value * 10 + (uint64_t)(name.data[i] - '0');
    return value;
}

/* Takes in a number that is the part of the name at i; its length, or 0. At the name's end it is
 * the layer's own name (img_mlp.0). */
static size_t key_number(form_key *key, sft_span name, size_t i) {
    sfti_numbers *numbers = &key->numbers;
    size_t digits = digits_from(name, i), end = i + digits;
    if (digits == 0 || (end < name.len ? !IS_SEPARATOR(name.data[end]) : i > 0)) return 0;
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

/* From one separator to the next: what a part of the name is, if it is no number, nor says nothing
 * of the layer. */
static void make_key(form_key *key, sft_span name) {
    static const char *const silent[] = { "processor.", "processor_", "_orig_mod." };
    const char *at = name.data, *end = at + name.len;
    key->len = key->numbers.count = key->numbers.inner = 0;
    key->values[0] = 0;
    while (at < end && key->len < FORM_TEXT - 1) {
        size_t i = (size_t)(at - name.data), skip = 0;
        bool begins = i == 0 || IS_SEPARATOR(at[-1]);
        for (size_t k = 0; k < SFTI_COUNT(silent) && begins && (*at == 'p' || *at == '_'); k++)
            if (sfti_begins(sfti_from(name, i), silent[k])) skip = strlen(silent[k]);
        if (begins && sfti_lex_digit(*at)) skip = key_number(key, name, i);
        if (skip > 0) {
            at += skip;
            continue;
        }
        char *to = key->text + key->len, *most = key->text + (FORM_TEXT - 1), c;
        do {
            c = *at++;
            *to++ = c == '.' ? '_' : c == '#' ? '?' : c; /* "#" is a number */
        } while (!IS_SEPARATOR(c) && at < end && to < most);
        key->len = (size_t)(to - key->text);
    }
}

/* The form of a key, made when it is new; NULL when the table has no place. */
static sfti_form *form_of(sfti_forms *forms, const form_key *key, sfti_part part) {
    uint64_t hash = (uint64_t)part + key->len;
    for (size_t i = 0; i < key->len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, key->text + i, key->len - i < 8 ? key->len - i : 8);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    size_t size = SFTI_FORMS * 2, at = (uint32_t)hash % size;
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

static void put_block(sfti_forms *forms, const form_key *key, sft_span layer) {
    if (key->numbers.count == 0 || key->values[0] >= SFTI_FAMILY_NUMBERS) return;
    size_t before = key->numbers.places[0].at;
    sft_span name = { layer.data, before > 0 ? before - 1 : 0 }; /* before the first number */
    if (sfti_begins(name, "mid_block")) name.len = strlen("mid_block");
    else name = sfti_from(name, word_before(name, name.len, '.'));
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


void sfti_forms_begin(sfti_forms *forms, const sft_tensor *tensor) {
    note_format(forms, sfti_layout_of(tensor->name), tensor);
}

/* One more layer; a new form is what its first is. */
static void count_layer(sfti_form *form, const form_key *key, const sft_tensor *tensor, uint64_t in,
                        uint64_t out) {
    if (!form->tensor) {
        form->in = in;
        form->out = out;
        form->tensor = tensor;
        form->lowest = UINT64_MAX;
        form->letters = sfti_letter_pairs(form->text) | sfti_letter_pairs(form->raw);
    }
    form->times++;
    if (key->values[0] > form->highest) form->highest = key->values[0];
    if (key->values[0] < form->lowest) form->lowest = key->values[0];
}

void sfti_forms_put(sfti_forms *forms, const sfti_module *module) {
    form_key key;
    size_t count;
    /* The prefix of the tensor's name is the module's too, unless it reaches into what follows. */
    const sfti_name_layout *row =
        module->prefix ? &sfti_layout_rows(&count)[module->prefix - 1] : NULL;
    if (row && strlen(row->prefix) > module->name.len) row = sfti_layout_of(module->name);
    sfti_part part = row ? row->part : SFTI_PART_MAIN;
    sft_span rest = row && !row->own ? sfti_from(module->name, strlen(row->prefix))
                                      : module->name;
    note_format(forms, row, module->tensor);
    sfti_form *form = meet_form(forms, &key, rest, part);
    if (part == SFTI_PART_MAIN && !sfti_begins(module->name, "unet:"))
        put_block(forms, &key, rest);
    if (!form) {
        forms->beyond += part == SFTI_PART_MAIN && module->in > 0 && module->out > 0;
        return;
    }
    count_layer(form, &key, module->tensor, module->in, module->out);
    uint64_t inner = key.numbers.inner ? key.values[key.numbers.inner - 1] : 0;
    if (inner > form->inner) form->inner = inner;
    if (part != SFTI_PART_MAIN) return;
    if (key.numbers.count > SFTI_NUMBERS) forms->beyond += module->in > 0 && module->out > 0;
    else sfti_fitting_put(forms, form, module, key.values, key.numbers.count);
}

sfti_forms *sfti_forms_new(sft_info *info) {
    sfti_forms *forms = sfti_info_take(info, sizeof *forms);
    if (!forms) return NULL;
    memset(forms, 0, offsetof(sfti_forms, family));
    forms->info = info;
    return forms;
}

sfti_forms *sfti_forms_of(const sfti_view *view, const uint8_t *others) {
    static const char *const ends[] = { ".weight", ".qweight", ".weight_packed", ".W_q" };
    const sft_set *set = view->info->set;
    sfti_forms *forms = sfti_forms_new(view->info);
    for (size_t i = 0; forms && i < view->count; i++) {
        const sft_tensor *tensor = view->by_name[i];
        sft_span layer = tensor->name; /* without what its weight is called */
        form_key key;
        if (others && others[i]) continue;
        if (sfti_ends(layer, ".bias")) continue; /* its layer has a weight, too */
        for (size_t e = 0; e < SFTI_COUNT(ends) && layer.len == tensor->name.len; e++)
            if (sfti_ends(layer, ends[e])) layer.len -= strlen(ends[e]);
        (void)sfti_skip(&layer, view->prefix);
        sfti_form *form = meet_form(forms, &key, layer, SFTI_PART_MAIN);
        bool first = form && !form->tensor;
        if (form)
            count_layer(form, &key, tensor, first ? sfti_size_of(set, tensor, 1) : 0,
                        first ? sfti_size_of(set, tensor, 0) : 0);
    }
    return view->info->code ? NULL : forms;
}

/* ── Lists ── */

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
    sft_span leaf = sfti_flat_leaf(name);
    if (leaf.len > 0) return leaf;
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

static int compare_leaves(const void *ctx, uint32_t a, uint32_t b) {
    const sft_span *leaves = ctx;
    return sfti_bytes_compare(leaves[a], leaves[b]);
}

static bool has_block(const sfti_blocks *family, unsigned n) {
    return n < SFTI_FAMILY_NUMBERS && (family->bits[n / 64] >> n % 64 & 1);
}

void sfti_forms_lists(const sfti_forms *forms) {
    sft_info *info = forms->info;
    sft_span *leaves = sfti_info_take(info, SFTI_FORMS * sizeof *leaves);
    size_t count = 0;
    for (size_t i = 0; i < forms->count && !info->code; i++) {
        const sfti_form *form = &forms->forms[i];
        if (sfti_is(form->text, "#")) continue; /* numbers for names */
        sft_span leaf = memchr(form->raw.data, '.', form->raw.len) ? dotted_leaf(form->raw)
                                                                   : flat_leaf(info, form);
        if (leaf.len > 0 && leaf.len <= 128) leaves[count++] = leaf;
    }
    const uint32_t *order = sfti_arena_sorted(&info->arena, count, compare_leaves, leaves);
    if (!order) info->code = SFT_OUT_OF_MEMORY;
    for (size_t i = 0; !info->code && i < count && info->adapter.targets.count < FORM_TARGETS; i++)
        if (i == 0 || !sft_span_equal(leaves[order[i]], leaves[order[i - 1]]))
            SFTI_PUSH(info, &info->adapter.targets, sfti_note, .text = leaves[order[i]]);

    for (size_t i = 0; i < forms->families; i++) {
        const sfti_blocks *family = &forms->family[i];
        int len = (int)(family->name.len < 128 ? family->name.len : 128);
        const char *name = family->name.data;
        for (unsigned n = 0; n < (family->numbered ? SFTI_FAMILY_NUMBERS : 1u); n++) {
            unsigned from = n;
            if (family->numbered && !has_block(family, n)) continue;
            while (has_block(family, n + 1)) n++;
            sft_span text = !family->numbered ? sfti_info_text(info, "%.*s", len, name)
                          : from == n ? sfti_info_text(info, "%.*s.%u", len, name, from)
                                      : sfti_info_text(info, "%.*s.%u-%u", len, name, from, n);
            SFTI_PUSH(info, &info->adapter.blocks, sfti_note, .text = text);
        }
    }
}
