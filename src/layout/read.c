/* Reads the text of layouts. Tests: test_layout.c. */
#include "layout/layout.h"

#include "base/error.h"
#include "base/number.h"

#include <string.h>

/* data/layouts (cmake/embed.cmake) */
extern const unsigned char sfti_names_text[];
extern const size_t sfti_names_size;

#define LAYOUT_LINES 20000
#define LAYOUT_ALTERNATIVES 64
#define LAYOUT_PATTERN 256

typedef struct layout_reader {
    sfti_arena *arena;
    sfti_layout_text *out;
    sfti_naming_part *part;
    sfti_layout_model *model;
    size_t line;
    sft_error *err;
} layout_reader;

static bool span_is(sft_span span, const char *text) {
    return sft_span_equal(span, sft_span_cstr(text));
}

static sft_code wrong(const layout_reader *r, const char *expected, sft_span found) {
    return sfti_fail(r->err, SFT_BAD_ARGUMENT, "line %zu of the layouts: expected %s, found %.*s",
                     r->line, expected, SFTI_CLIP(found, 80));
}

bool sfti_layout_next(sft_span *rest, sft_span *word) {
    while (rest->len > 0 && *rest->data == ' ') rest->data++, rest->len--;
    size_t len = 0;
    *word = (sft_span){ "", 0 };
    if (rest->len == 0) return false; /* whose data may be NULL */
    while (len < rest->len && rest->data[len] != ' ') len++;
    *word = (sft_span){ rest->data, len };
    rest->data += len;
    rest->len -= len;
    return len > 0;
}

static sft_span trimmed(sft_span text) {
    while (text.len > 0 && *text.data == ' ') text.data++, text.len--;
    while (text.len > 0 && text.data[text.len - 1] == ' ') text.len--;
    return text;
}

/* Room for one more of a table, zeroed; NULL when out of memory. */
#define GROW(r, items, count, room) \
    grow_table(r, (void **)&(r)->out->items, &(r)->out->count, &(r)->out->room, \
               sizeof *(r)->out->items)
static void *grow_table(layout_reader *r, void **items, size_t *count, size_t *room, size_t each) {
    void *grown = sfti_arena_grow(r->arena, *items, *count, 1, room, each);
    if (!grown) return NULL;
    *items = grown;
    char *at = (char *)grown + (*count)++ * each;
    memset(at, 0, each);
    return at;
}

/* ── Rules ── */

/* What stands between brackets, as alternative `which`: text before, the choice, text behind. */
static bool pick(sft_span text, char open, char close, size_t which, sft_span *before,
                 sft_span *choice, sft_span *behind) {
    const char *begin = memchr(text.data, open, text.len);
    if (!begin) return false;
    size_t at = (size_t)(begin - text.data);
    const char *end = memchr(begin, close, text.len - at);
    if (!end) return false;
    *before = (sft_span){ text.data, at };
    *behind = (sft_span){ end + 1, text.len - (size_t)(end + 1 - text.data) };
    const char *from = begin + 1;
    for (; which > 0 && from <= end; which--) {
        const char *comma = memchr(from, ',', (size_t)(end - from));
        if (!comma) return false;
        from = comma + 1;
    }
    const char *comma = memchr(from, ',', (size_t)(end - from));
    *choice = (sft_span){ from, (size_t)((comma ? comma : end) - from) };
    return true;
}

static sft_span layout_joined(layout_reader *r, sft_span a, sft_span b, sft_span c) {
    char *text = sfti_arena_array(r->arena, a.len + b.len + c.len + 1, 1);
    if (!text) return (sft_span){ NULL, 0 };
    memcpy(text, a.data, a.len);
    memcpy(text + a.len, b.data, b.len);
    memcpy(text + a.len + b.len, c.data, c.len);
    return (sft_span){ text, a.len + b.len + c.len };
}

static sft_code add_rule(layout_reader *r, sft_span original, sft_span other,
                         const sfti_layout_rule *how, sft_span sizes) {
    sft_span before, choice, behind;
    sfti_layout_rule *rule = GROW(r, rules, rule_count, rule_room);
    if (!rule) return sfti_fail_memory(r->err, sizeof *rule);
    *rule = *how;
    rule->original = original;
    r->part->count++;
    if (!pick(other, '[', ']', 0, &before, &choice, &behind)) {
        rule->pieces[rule->count++] = other;
        return SFT_OK;
    }
    while (pick(other, '[', ']', rule->count, &before, &choice, &behind)) {
        if (rule->count == SFTI_LAYOUT_PIECES) return wrong(r, "fewer pieces", other);
        bool none = span_is(choice, "-");
        sft_span piece = none ? choice : layout_joined(r, before, choice, behind);
        if (!piece.data) return sfti_fail_memory(r->err, other.len);
        rule->pieces[rule->count++] = piece;
    }
    for (unsigned i = 0; i < rule->count && sizes.len > 0; i++) {
        size_t len = 0;
        while (len < sizes.len && sizes.data[len] != ',') len++;
        sft_span one = { sizes.data, len };
        if (!span_is(one, "*") && (!sfti_text_uint(one, &rule->sizes[i]) || rule->sizes[i] > 64))
            return wrong(r, "sizes as 1,1,*", sizes);
        sizes.data += len < sizes.len ? len + 1 : len;
        sizes.len -= len < sizes.len ? len + 1 : len;
    }
    return SFT_OK;
}

/* {a,b} on both sides, in order, go together. A line stands for all of their combinations. */
static sft_code expand(layout_reader *r, sft_span original, sft_span other,
                       const sfti_layout_rule *how, sft_span sizes) {
    struct { sft_span original, other; } todo[LAYOUT_ALTERNATIVES * 2];
    size_t count = 0, made = 0;
    todo[count].original = original, todo[count++].other = other;
    while (count > 0) {
        sft_span a = todo[--count].original, b = todo[count].other;
        sft_span before, choice, behind, before_b, choice_b, behind_b;
        if (!memchr(a.data, '{', a.len)) {
            if (memchr(b.data, '{', b.len)) return wrong(r, "as many {} on both sides", other);
            if (a.len > LAYOUT_PATTERN || b.len > LAYOUT_PATTERN * 2 || ++made > 1024)
                return wrong(r, "shorter names", original);
            sft_code code = add_rule(r, a, b, how, sizes);
            if (code) return code;
            continue;
        }
        size_t all = 0;
        while (pick(a, '{', '}', all, &before, &choice, &behind)) all++;
        if (all == 0 || pick(b, '{', '}', all, &before_b, &choice_b, &behind_b))
            return wrong(r, "as many alternatives on both sides", other);
        for (size_t i = all; i-- > 0;) { /* so that they come out in order */
            (void)pick(a, '{', '}', i, &before, &choice, &behind);
            if (!pick(b, '{', '}', i, &before_b, &choice_b, &behind_b))
                return wrong(r, "as many alternatives on both sides", other);
            if (count == LAYOUT_ALTERNATIVES * 2) return wrong(r, "fewer alternatives", original);
            todo[count].original = layout_joined(r, before, choice, behind);
            todo[count].other = layout_joined(r, before_b, choice_b, behind_b);
            if (!todo[count].original.data || !todo[count].other.data)
                return sfti_fail_memory(r->err, a.len + b.len);
            count++;
        }
    }
    return SFT_OK;
}

static bool layout_word_has(sft_span word, const char *name, sft_span *value) {
    size_t len = strlen(name);
    if (word.len <= len || memcmp(word.data, name, len) != 0) return false;
    *value = (sft_span){ word.data + len, word.len - len };
    return true;
}

static const struct { const char *word; sfti_layout_op op; } op_words[] = {
    { "swap", SFTI_OP_SWAP }, { "swap-pair", SFTI_OP_SWAP_PAIR },
    { "transpose", SFTI_OP_TRANSPOSE }, { "squeeze", SFTI_OP_SQUEEZE }, { "flat", SFTI_OP_FLAT },
};

/* ORIGINAL [= OTHER] words */
static sft_code read_rule(layout_reader *r, sft_span rest, bool kept) {
    sfti_layout_rule rule = { .kept = kept };
    sft_span original, other, word, sizes = { NULL, 0 }, value;
    if (!sfti_layout_next(&rest, &original)) return wrong(r, "a name", rest);
    other = original;
    sft_span at = rest;
    if (sfti_layout_next(&at, &word) && span_is(word, "=")) {
        rest = at;
        if (!sfti_layout_next(&rest, &other)) return wrong(r, "a name behind =", original);
    }
    while (sfti_layout_next(&rest, &word)) {
        bool known = false;
        for (size_t i = 0; i < sizeof op_words / sizeof *op_words && !known; i++)
            if ((known = span_is(word, op_words[i].word))) rule.op = op_words[i].op;
        if (layout_word_has(word, "fold=", &value)) {
            rule.op = SFTI_OP_FOLD;
            known = sfti_text_uint(value, &rule.number) && rule.number > 0 && rule.number < 65536;
        } else if (layout_word_has(word, "sizes=", &value)) {
            sizes = value, known = true;
        } else if (layout_word_has(word, "when=", &value)) {
            rule.when = value, known = true;
        } else if (span_is(word, "adapters")) {
            rule.adapters = known = true;
        }
        if (!known) return wrong(r, "what a rule does", word);
    }
    return expand(r, original, other, &rule, sizes);
}

/* ── Records ── */

static sft_code layout_part(layout_reader *r, sft_span rest) {
    sft_span word, value;
    sfti_naming_part part = { .first = r->out->rule_count, .first_value = r->out->value_count,
                              .first_published = r->out->published_count };
    if (!sfti_layout_next(&rest, &part.id) || !sfti_layout_next(&rest, &part.folder))
        return wrong(r, "a part's name and folder", rest);
    while (sfti_layout_next(&rest, &word)) {
        if (layout_word_has(word, "comfy=", &value)) part.comfy = value;
        else if (layout_word_has(word, "like=", &value))
            part.like = sfti_layout_part_named(r->out, value);
        else if (layout_word_has(word, "adapters=", &value)) part.adapters = value;
        else if (layout_word_has(word, "key=", &value)) part.key = value;
        else if (layout_word_has(word, "seen=", &value)) part.seen = value;
        else if (span_is(word, "old")) part.old = true;
        else return wrong(r, "comfy=, like=, adapters=, key=, seen= or old", word);
        if (layout_word_has(word, "like=", &value) && !part.like)
            return wrong(r, "a part above", value);
    }
    if (r->out->part_count == r->out->part_room) return wrong(r, "fewer parts", part.id);
    r->part = &r->out->parts[r->out->part_count++];
    *r->part = part;
    r->model = NULL;
    return SFT_OK;
}

static sft_code layout_model(layout_reader *r, sft_span rest) {
    sfti_layout_model *model = GROW(r, models, model_count, model_room);
    if (!model) return sfti_fail_memory(r->err, sizeof *model);
    if (!sfti_layout_next(&rest, &model->id) || !sfti_layout_next(&rest, &model->pipeline))
        return wrong(r, "a model's id and pipeline", rest);
    r->model = model;
    r->part = NULL;
    return SFT_OK;
}

static sft_code add_prefix(layout_reader *r, sft_span prefix) {
    for (size_t i = 0; i < r->out->prefix_count; i++)
        if (sft_span_equal(r->out->prefixes[i], prefix)) return SFT_OK;
    sft_span *last = GROW(r, prefixes, prefix_count, prefix_room);
    if (!last) return sfti_fail_memory(r->err, sizeof *last);
    for (; last > r->out->prefixes && last[-1].len < prefix.len; last--) last[0] = last[-1];
    *last = prefix;
    return SFT_OK;
}

static sft_code read_model_line(layout_reader *r, sft_span word, sft_span rest) {
    sfti_layout_model *model = r->model;
    sft_span part, prefix, extra;
    if (span_is(word, "serves")) model->serves = trimmed(rest);
    else if (span_is(word, "lacks")) model->lacks = trimmed(rest);
    else if (span_is(word, "kohya")) model->kohya = trimmed(rest);
    else if (span_is(word, "only")) model->only = trimmed(rest);
    else if (span_is(word, "alike")) model->alike = trimmed(rest);
    else if (span_is(word, "markers")) model->markers = trimmed(rest);
    else if (span_is(word, "config")) {
        if (model->value_count == SFTI_LAYOUT_VALUES) return wrong(r, "fewer values", rest);
        sfti_layout_value *value = &model->values[model->value_count++];
        if (!sfti_layout_next(&rest, &value->component) || !sfti_layout_next(&rest, &value->key))
            return wrong(r, "a component and a key", rest);
        value->value = trimmed(rest);
    } else {
        if (model->count == SFTI_LAYOUT_COMPONENTS || !sfti_layout_next(&rest, &part)
            || !sfti_layout_next(&rest, &prefix) || sfti_layout_next(&rest, &extra))
            return wrong(r, "a component, its part and prefix", word);
        sfti_layout_component *one = &model->components[model->count++];
        *one = (sfti_layout_component){ word, prefix, sfti_layout_part_named(r->out, part) };
        if (!one->part) return wrong(r, "a part above", part);
        return add_prefix(r, prefix);
    }
    return SFT_OK;
}

/* NAME, or NAME MARK... */
static sft_code read_class(layout_reader *r, sft_span line) {
    sft_span rest = line, name, mark;
    if (!sfti_layout_next(&rest, &name)) return wrong(r, "a class", line);
    if (!sfti_layout_next(&rest, &mark)) r->part->class = name;
    else if (r->part->class_count == SFTI_LAYOUT_CLASSES) return wrong(r, "fewer classes", line);
    else r->part->classes[r->part->class_count++] = line;
    return SFT_OK;
}

static sft_code read_part_line(layout_reader *r, sft_span word, sft_span line, sft_span rest) {
    if (span_is(word, "original")) r->part->marks[SFTI_ORIGINAL] = trimmed(rest);
    else if (span_is(word, "diffusers")) r->part->marks[SFTI_DIFFUSERS] = trimmed(rest);
    else if (span_is(word, "class")) return read_class(r, trimmed(rest));
    else if (span_is(word, "keep")) return read_rule(r, rest, true);
    else if (span_is(word, "published")) {
        sfti_layout_published *one = GROW(r, published, published_count, published_room);
        if (!one) return sfti_fail_memory(r->err, sizeof *one);
        if (!sfti_layout_next(&rest, &word) || !sfti_text_uint(word, &one->elements))
            return wrong(r, "a number of elements", word);
        one->marks = trimmed(rest);
        r->part->published_count++;
    } else if (span_is(word, "config") || span_is(word, "config?")) {
        sfti_layout_value *value = GROW(r, values, value_count, value_room);
        if (!value) return sfti_fail_memory(r->err, sizeof *value);
        value->optional = span_is(word, "config?");
        if (!sfti_layout_next(&rest, &value->key)) return wrong(r, "a key", rest);
        value->value = trimmed(rest);
        r->part->value_count++;
    } else {
        return read_rule(r, line, false);
    }
    return SFT_OK;
}

static sft_code read_names_line(layout_reader *r, sft_span line) {
    sft_span rest = line, word;
    bool indented = line.len > 0 && *line.data == ' ';
    if (!sfti_layout_next(&rest, &word) || span_is(word, "#")) return SFT_OK;
    if (!indented && span_is(word, "part")) return layout_part(r, rest);
    if (!indented && span_is(word, "model")) return layout_model(r, rest);
    if (!indented && span_is(word, "prefixes")) {
        sft_code code = SFT_OK;
        while (!code && sfti_layout_next(&rest, &word)) code = add_prefix(r, word);
        return code;
    }
    if (!indented && span_is(word, "holds")) {
        sfti_layout_holds *one = GROW(r, holds, hold_count, hold_room);
        if (!one) return sfti_fail_memory(r->err, sizeof *one);
        if (!sfti_layout_next(&rest, &one->prefix)) return wrong(r, "a prefix or -", rest);
        if (span_is(one->prefix, "-")) one->prefix.len = 0;
        one->parts = trimmed(rest);
        return SFT_OK;
    }
    if (!indented && (span_is(word, "stray") || span_is(word, "markers"))) {
        *(span_is(word, "stray") ? &r->out->stray : &r->out->markers) = trimmed(rest);
        return SFT_OK;
    }
    if (indented && r->part) return read_part_line(r, word, line, rest);
    if (indented && r->model) return read_model_line(r, word, rest);
    return wrong(r, "part, model, prefixes, holds, stray or markers", word);
}

sft_code sfti_layouts_of_text(sfti_arena *arena, sft_span text, sfti_layout_text *out,
                              sft_error *err) {
    layout_reader r = { .arena = arena, .out = out, .err = err };
    sft_code code = SFT_OK;
    *out = (sfti_layout_text){ .part_room = 128 }; /* others point to them */
    out->parts = sfti_arena_array(arena, out->part_room, sizeof *out->parts);
    if (!out->parts) return sfti_fail_memory(err, sizeof *out->parts);
    while (!code && text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;
        sft_span line = { text.data, len };
        if (++r.line > LAYOUT_LINES) return wrong(&r, "fewer lines", line);
        if (len > 0 && line.data[len - 1] == '\r') line.len--;
        code = read_names_line(&r, line);
        text.data += end ? len + 1 : len;
        text.len -= end ? len + 1 : len;
    }
    return code;
}

sft_code sfti_layouts_built_in(sfti_arena *arena, sfti_layout_text *out, sft_error *err) {
    sft_span text = { (const char *)sfti_names_text, sfti_names_size };
    return sfti_layouts_of_text(arena, text, out, err);
}

/* ── Asking ── */

const sfti_naming_part *sfti_layout_part_named(const sfti_layout_text *layouts, sft_span id) {
    for (size_t i = 0; i < layouts->part_count; i++)
        if (sft_span_equal(layouts->parts[i].id, id)) return &layouts->parts[i];
    return NULL;
}

const sfti_layout_model *sfti_layout_model_of(const sfti_layout_text *layouts,
                                              sft_span architecture) {
    sft_span word;
    for (size_t i = 0; i < layouts->model_count; i++) {
        const sfti_layout_model *model = &layouts->models[i];
        if (sft_span_equal(model->id, architecture)) return model;
        for (sft_span rest = model->serves; sfti_layout_next(&rest, &word);)
            if (sft_span_equal(word, architecture)) return model;
    }
    return NULL;
}
