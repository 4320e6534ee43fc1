/* What a quantization_config tells of some modules: config_groups of compressed-tensors, where it
 * has several, and "dynamic" of GPTQModel. Tests: test_quant_declared.c. */
#include "quant/declared.h"

#include "base/error.h"
#include "base/json.h"
#include "base/regex.h"

#include <string.h>

/* What matching all modules may take: scopes and targets looked at, and characters of expressions
 * times those of names. Half a minute. */
#define WORK_MOST (UINT64_C(1) << 30)
#define PATTERN_MEMORY (UINT64_C(1) << 28) /* of expressions; those behind it are not understood */

/* ── Targets ── */

typedef enum target_match { TARGET_NO, TARGET_YES, TARGET_OPEN } target_match;

/* A module's name, an expression that the name begins with, or its class. */
enum { TARGET_NAME, TARGET_PATTERN, TARGET_CLASS, TARGET_KINDS };

struct sfti_declared_target {
    sft_span text;
    sft_span part; /* that is in every text which a pattern matches; NULL: not looked for */
    sft_span head; /* that it begins with */
    uint8_t kind;
    sfti_regex *regex; /* of a pattern; NULL: it is not understood */
};

/* Memory of expressions lives as long as the declaration. */
static void *resize_in_arena(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    sfti_scopes_matching *matching = ctx;
    if (new_size > matching->memory) matching->memory = 0; /* and so for all that follow */
    if (new_size == 0 || matching->memory == 0) return NULL;
    matching->memory -= new_size;
    void *made = sfti_arena_take(matching->arena, new_size);
    if (made && ptr) memcpy(made, ptr, old_size < new_size ? old_size : new_size);
    return made;
}

/* A range of characters, which has the same meaning in Python's expressions if nothing in it is
 * escaped; 0: it has another. */
static size_t range_length(sft_span text, size_t at) {
    size_t end = at + 1;
    if (end < text.len && text.data[end] == '^') end++;
    if (end < text.len && text.data[end] == ']') return 0;
    for (; end < text.len && text.data[end] != ']'; end++)
        if (text.data[end] == '\\' || text.data[end] == '[') return 0;
    return end < text.len ? end + 1 - at : 0;
}

/* An expression of Python's as POSIX spells it, where that tells the same of whether one matches:
 * groups that only group, digits, and repetitions that take as few as they can. out has room for
 * five bytes for each. 0: it is another. */
static size_t translate_pattern(sft_span text, char *out) {
    size_t len = 0;
    bool repeats = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i], next = i + 1 < text.len ? text.data[i + 1] : 0;
        bool again = repeats;
        repeats = c == '*' || c == '+' || c == '?' || c == '}';
        if (again && c == '+') return 0;
        if (again && c == '?') continue;
        if (c == '(' && next == '?') {
            if (i + 2 >= text.len || text.data[i + 2] != ':') return 0;
            out[len++] = c, i += 2;
        } else if (c == '[') {
            size_t some = range_length(text, i);
            if (some == 0) return 0;
            memcpy(out + len, text.data + i, some);
            len += some, i += some - 1;
        } else if (c != '\\') {
            out[len++] = c;
        } else if (next == 'd') {
            memcpy(out + len, "[0-9]", 5);
            len += 5, i++;
        } else if (next == '<' || next == '>') {
            out[len++] = next, i++;
        } else {
            bool word = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z')
                     || (next >= '0' && next <= '9') || next == 0;
            if (word && !strchr("wWsSbB", next ? next : '0')) return 0;
            out[len++] = c, out[len++] = next, i++;
        }
    }
    return len;
}

/* The longest run of plain characters that has to be in what a pattern matches, or NULL where it
 * has alternatives; out has room for it. */
static sft_span required_part(sft_span text, char *out) {
    size_t best = 0, most = 0, begin = 0, len = 0, depth = 0;
    for (size_t i = 0; i <= text.len; i++) {
        char c = i < text.len ? text.data[i] : 0, next = i + 1 < text.len ? text.data[i + 1] : 0;
        bool escaped = c == '\\' && next && strchr(".-_/:", next);
        if (c == '|' && depth == 0) return (sft_span){ NULL, 0 };
        bool ascii = c > 0 && (unsigned char)c < 0x80;
        bool plain = depth == 0 && (escaped || (ascii && !strchr("\\.^$*+?{}[]()", c)));
        if (plain) {
            out[len++] = escaped ? next : c;
            i += escaped;
            continue;
        }
        if (c && strchr("*+?{", c) && len > begin) len--; /* it may be missing */
        if (len - begin > most) best = begin, most = len - begin;
        begin = len;
        if (c == '(') depth++;
        if (c == ')' && depth > 0) depth--;
        if (c == '\\') i++;
        if (c == '[') i += range_length(text, i) - 1;
        if (c == '{')
            while (i + 1 < text.len && text.data[i] != '}') i++;
    }
    return (sft_span){ out + best, most };
}

/* The plain characters that a pattern without alternatives begins with, 0 for one of any kind; out
 * has room for them. */
static sft_span fixed_head(sft_span text, char *out) {
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool escaped = text.data[i] == '\\' && i + 1 < text.len
                    && strchr(".-_/:", text.data[i + 1]);
        i += escaped;
        char c = text.data[i], next = i + 1 < text.len ? text.data[i + 1] : ' ';
        bool any = c == '.' && !escaped, ascii = (unsigned char)c < 0x80;
        if (strchr("*+?{", next) || !ascii || (!escaped && strchr("\\^$*+?{}[]()", c))) break;
        out[len++] = any ? 0 : c;
    }
    return (sft_span){ out, len };
}

/* False when out of memory. */
static bool read_pattern(sft_span text, sfti_scopes_matching *matching, sfti_arena *arena,
                         sfti_declared_target *out) {
    const sft_allocator alloc = { resize_in_arena, matching };
    *out = (sfti_declared_target){ .text = text, .kind = TARGET_PATTERN };
    if (matching->memory == 0) return true;
    char *made = sfti_arena_array(arena, (uint64_t)text.len + 1, 5);
    size_t len = made ? translate_pattern(text, made) : 0;
    char *part = sfti_arena_array(arena, (uint64_t)text.len + 1, 2);
    if (!made || !part) return false;
    if (len > 0 && sfti_regex_new((sft_span){ made, len }, &alloc, &out->regex, NULL)
                   == SFT_OUT_OF_MEMORY && matching->memory > 0)
        return false;
    if (out->regex) out->part = required_part(text, part);
    if (out->part.data) out->head = fixed_head(text, part + text.len + 1);
    return true;
}

/* A text of "targets". */
static bool read_target(sft_span text, sfti_scopes_matching *matching, sfti_arena *arena,
                        sfti_declared_target *out) {
    bool pattern = text.len >= 3 && memcmp(text.data, "re:", 3) == 0;
    if (pattern)
        return read_pattern((sft_span){ text.data + 3, text.len - 3 }, matching, arena, out);
    bool is_class = text.len > 0 && *text.data >= 'A' && *text.data <= 'Z'
                 && !memchr(text.data, '.', text.len);
    *out = (sfti_declared_target){ .text = text, .kind = is_class ? TARGET_CLASS : TARGET_NAME };
    return true;
}

static bool holds_part(sft_span text, sft_span part, uint64_t *work) {
    for (size_t i = 0; part.len > 0 && i + part.len <= text.len; i++) {
        if (text.data[i] != *part.data) continue;
        *work += 1 + part.len / 32;
        if (memcmp(text.data + i, part.data, part.len) == 0) return true;
    }
    return part.len == 0;
}

/* Whether a text may begin as the head tells. */
static bool has_head(sft_span head, sft_span text) {
    for (size_t i = 0; i < head.len; i++) {
        if (i == text.len) return false;
        if ((unsigned char)text.data[i] >= 0x80) return true; /* one character of several bytes */
        if (head.data[i] && head.data[i] != text.data[i]) return false;
    }
    return true;
}

/* Steps of expressions are counted as their characters; those of {m,n} may be as many as all. */
static uint64_t work_of(const sfti_declared_target *target, sft_span module) {
    bool times = memchr(target->text.data, '{', target->text.len) != NULL;
    return ((times ? SFTI_REGEX_STEPS : 0) + (uint64_t)target->text.len + 1) * (module.len + 1);
}

/* Python's \w and the like know letters beyond ASCII. */
static bool is_foreign(const sfti_declared_target *target, sft_span module) {
    bool wide = false;
    for (size_t i = 0; i < module.len; i++) wide = wide || (unsigned char)module.data[i] >= 0x80;
    return wide && memchr(target->text.data, '\\', target->text.len);
}

static void spend_work(uint64_t *work, uint64_t more) { *work = *work > more ? *work - more : 0; }

/* *work: what it may take; 0 after that which it may not. */
static target_match match_target(const sfti_declared_target *target, sft_span module,
                                 uint64_t *work) {
    if (*work == 0) return TARGET_OPEN;
    uint64_t more = target->kind == TARGET_PATTERN ? 1 + module.len / 32 : 1;
    bool same = sft_span_equal(target->text, module), runs = false;
    if (!same && target->regex
        && (!target->part.data
            || (has_head(target->head, module) && holds_part(module, target->part, &more))))
        runs = true, more += work_of(target, module);
    spend_work(work, more);
    if (target->kind == TARGET_NAME || same) return same ? TARGET_YES : TARGET_NO;
    bool open = target->kind == TARGET_CLASS || !target->regex || *work == 0;
    if (open || is_foreign(target, module))
        return TARGET_OPEN;
    return runs && sfti_regex_begins(target->regex, module) ? TARGET_YES : TARGET_NO;
}

/* The best match of a scope's targets of one kind. */
static target_match match_scope(const sfti_declared_scope *scope, uint8_t kind, sft_span module,
                                uint64_t *work) {
    target_match best = TARGET_NO;
    spend_work(work, scope->count / 8);
    for (size_t i = 0; i < scope->count && best != TARGET_YES; i++) {
        const sfti_declared_target *target = &scope->targets[i];
        bool named = kind == TARGET_NAME && target->kind == TARGET_CLASS
                  && sft_span_equal(target->text, module); /* it is a module's name */
        if (target->kind != kind && !named) continue;
        target_match one = match_target(target, module, work);
        if (one != TARGET_NO) best = one;
    }
    return best;
}

/* ── Reading ── */

/* The reader is inside of an array: to its end. */
static void end_array(sfti_json *json) {
    while (json->type != SFTI_JSON_ARRAY_END && json->type != SFTI_JSON_ERROR) {
        (void)sfti_json_skip(json);
        (void)sfti_json_next(json);
    }
}

/* The reader is at a list of targets, or at another value. */
static bool read_targets(sfti_json *json, sfti_scopes_matching *matching, sfti_arena *arena,
                         sfti_declared_scope *out) {
    size_t most = 0;
    out->count = 0; /* of a repeated key the last counts */
    if (json->type != SFTI_JSON_ARRAY) return true;
    for (sfti_json ahead = *json; sfti_json_next(&ahead) == SFTI_JSON_STRING;) most++;
    out->targets = sfti_arena_array(arena, most, sizeof *out->targets);
    if (!out->targets) return false;
    while (sfti_json_next(json) == SFTI_JSON_STRING) {
        sft_span text = sfti_json_string(json, arena);
        if (!text.data || !read_target(text, matching, arena, &out->targets[out->count++]))
            return false;
    }
    end_array(json);
    return true;
}

static bool told_strategy(const sfti_json *json, uint32_t *shares) {
    static const struct { const char *name; uint32_t shares; } strategies[] = {
        { "tensor", SFTI_SHARE_ALL }, { "channel", SFTI_SHARE_ROW }, { "group", SFTI_SHARE_GROUP },
        { "tensor_group", SFTI_SHARE_GROUP }, { "block", SFTI_SHARE_BLOCK },
    };
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
        if (sfti_json_is(json, strategies[i].name)) *shares = strategies[i].shares;
    return *shares != 0;
}

/* What the member tells whose value the reader is at. */
static void read_scope_member(sfti_json *json, sft_span key, sfti_declared_scope *out) {
    bool number = json->type == SFTI_JSON_UINT;
    if (number && json->value <= 8 && (sft_span_equal(key, sft_span_cstr("num_bits"))
                                       || sft_span_equal(key, sft_span_cstr("bits"))))
        out->widths = 1u << json->value;
    else if (sft_span_equal(key, sft_span_cstr("group_size")) && json->type != SFTI_JSON_NULL) {
        out->group = number ? json->value : 0;
        if (!out->strategy) out->shares = number ? SFTI_SHARE_GROUP : SFTI_SHARE_ROW;
    } else if (sft_span_equal(key, sft_span_cstr("strategy")) && json->type != SFTI_JSON_NULL) {
        out->shares = 0;
        out->strategy = told_strategy(json, &out->shares);
    } else if (sft_span_equal(key, sft_span_cstr("type"))) {
        out->kinds = sfti_json_is(json, "int") ? 1u << SFT_KIND_INT
                   : sfti_json_is(json, "float") ? 1u << SFT_KIND_FLOAT : 0;
    } else if (sft_span_equal(key, sft_span_cstr("actorder"))
               || sft_span_equal(key, sft_span_cstr("desc_act"))) {
        out->disordered = json->type == SFTI_JSON_TRUE || sfti_json_is(json, "group")
                       || sfti_json_is(json, "dynamic");
    } else if (sft_span_equal(key, sft_span_cstr("symmetric"))) {
        out->asymmetric = json->type == SFTI_JSON_FALSE;
    } else if (sft_span_equal(key, sft_span_cstr("block_structure"))
               && json->type == SFTI_JSON_ARRAY) {
        for (size_t i = 0; i < 2 && sfti_json_next(json) == SFTI_JSON_UINT; i++)
            out->blocks[i] = json->value;
        end_array(json);
    }
}

/* After OBJECT: its members. False when out of memory. */
static bool read_members(sfti_json *json, sfti_arena *arena, sfti_declared_scope *out) {
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(json, arena);
        if (!key.data) return false;
        (void)sfti_json_next(json);
        read_scope_member(json, key, out);
        (void)sfti_json_skip(json);
    }
    return true;
}

/* The reader is at the value of a group. */
static bool read_group(sfti_json *json, sfti_scopes_matching *matching, sfti_arena *arena,
                       sfti_declared_scope *out) {
    if (json->type != SFTI_JSON_OBJECT)
        return read_targets(json, matching, arena, out); /* a preset's */
    out->excludes = true;
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(json, arena);
        if (!key.data) return false;
        bool targets = sft_span_equal(key, sft_span_cstr("targets"));
        bool weights = sft_span_equal(key, sft_span_cstr("weights"));
        sfti_json_type type = sfti_json_next(json);
        if (targets && !read_targets(json, matching, arena, out)) return false;
        if (weights && type == SFTI_JSON_OBJECT) {
            out->excludes = false;
            if (!read_members(json, arena, out)) return false;
        }
        (void)sfti_json_skip(json);
    }
    return true;
}

/* The next one, which tells nothing. */
static sfti_declared_scope *next_scope(sfti_declared *d, sfti_arena *arena, size_t *cap) {
    if (!d->matching && (d->matching = sfti_arena_take(arena, sizeof *d->matching)))
        *d->matching = (sfti_scopes_matching){ .arena = arena, .work = WORK_MOST,
                                               .memory = PATTERN_MEMORY };
    sfti_declared_scope *more = sfti_arena_grow(arena, d->scopes, d->scope_count, 1, cap,
                                                sizeof *more);
    if (!more || !d->matching) return NULL;
    d->scopes = more;
    more[d->scope_count] = (sfti_declared_scope){ .count = 0 };
    return &more[d->scope_count++];
}

bool sfti_scopes_groups(sfti_declared *d, sft_span groups, sfti_arena *arena) {
    sfti_json json;
    size_t cap = d->scope_count, before = d->scope_count;
    if (!groups.data) return true;
    sfti_json_begin(&json, groups.data, groups.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return true;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        sfti_declared_scope *one = next_scope(d, arena, &cap);
        (void)sfti_json_next(&json);
        if (!one || !read_group(&json, d->matching, arena, one)) return false;
    }
    if (before == 0 && d->scope_count == 1) d->scope_count = 0; /* that counts for all */
    return true;
}

bool sfti_scopes_dynamic(sfti_declared *d, sft_span dynamic, const sfti_declared_scope *all,
                         sfti_arena *arena) {
    sfti_json json;
    size_t cap = d->scope_count;
    if (!dynamic.data) return true;
    sfti_json_begin(&json, dynamic.data, dynamic.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return true;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        sfti_declared_scope *one = next_scope(d, arena, &cap);
        sft_span key = sfti_json_string(&json, arena);
        if (!one || !key.data) return false;
        *one = *all;
        bool marked = key.len > 2 && key.data[1] == ':' && (*key.data == '+' || *key.data == '-');
        one->excludes = marked && *key.data == '-';
        if (marked) key.data += 2, key.len -= 2;
        one->targets = sfti_arena_take(arena, sizeof *one->targets);
        if (!one->targets || !read_pattern(key, d->matching, arena, one->targets)) return false;
        one->count = 1;
        if (sfti_json_next(&json) == SFTI_JSON_OBJECT && !read_members(&json, arena, one))
            return false;
        if (json.type == SFTI_JSON_FALSE) one->excludes = true;
        (void)sfti_json_skip(&json);
    }
    sfti_declared_scope *rest = d->scope_count > 0 ? next_scope(d, arena, &cap) : NULL;
    if (rest) *rest = *all;
    d->ordered = rest != NULL;
    return d->scope_count == 0 || rest;
}

/* ── Those that may be meant ── */

sft_span sfti_declared_module(sft_span tensor) {
    while (tensor.len > 0 && tensor.data[tensor.len - 1] != '.') tensor.len--;
    if (tensor.len > 0) tensor.len--;
    return tensor;
}

/* Marks those of an ordered list. False: none is certain. */
static bool choose_first(const sfti_declared *d, sft_span module) {
    for (size_t i = 0; i < d->scope_count; i++) {
        sfti_declared_scope *one = &d->scopes[i];
        target_match match = one->count == 0 ? TARGET_YES
                           : match_scope(one, TARGET_PATTERN, module, &d->matching->work);
        one->meant = match == TARGET_YES || (match == TARGET_OPEN && !one->excludes);
        if (match == TARGET_YES) return true;
    }
    return false;
}

/* Marks those that exclude modules, or the others. False: none is certain; some: one is marked. */
static bool choose_best(const sfti_declared *d, sft_span module, bool excludes, bool *some) {
    for (uint8_t kind = 0; kind < TARGET_KINDS; kind++) {
        bool sure = false;
        for (size_t i = 0; i < d->scope_count; i++) {
            sfti_declared_scope *one = &d->scopes[i];
            if (one->excludes != excludes) continue;
            target_match match = match_scope(one, kind, module, &d->matching->work);
            if (match == TARGET_NO || (match == TARGET_OPEN && excludes)) continue;
            one->meant = *some = true;
            sure = sure || match == TARGET_YES;
        }
        if (sure) return true;
    }
    return false;
}

static void mark_meant(const sfti_declared *d, sft_span module) {
    bool some = false, *sure = &d->matching->sure;
    spend_work(&d->matching->work, d->scope_count); /* here, and where they are compared */
    for (size_t i = 0; i < d->scope_count; i++) d->scopes[i].meant = false;
    *sure = d->ordered ? choose_first(d, module) : choose_best(d, module, false, &some);
    if (!d->ordered && !some) *sure = choose_best(d, module, true, &some);
    for (size_t i = 0; !d->ordered && !some && i < d->scope_count; i++)
        d->scopes[i].meant = !d->scopes[i].excludes;
}

sft_code sfti_scopes_choose(const sfti_declared *d, sft_span tensor, sft_error *err) {
    sft_span module = sfti_declared_module(tensor);
    sfti_scopes_matching *m = d->matching;
    if (m->module.data == module.data && m->module.len == module.len) return SFT_OK;
    m->module = (sft_span){ NULL, 0 };
    if (m->work > 0) mark_meant(d, module);
    if (m->work == 0)
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor,
                                "expected a quantization_config whose expressions (%s) are matched "
                                "in %llu steps, found more", d->ordered ? "dynamic"
                                                             : "config_groups",
                                (unsigned long long)WORK_MOST);
    m->module = module;
    return SFT_OK;
}

uint64_t sfti_scopes_group(const sfti_declared *d, uint64_t columns, uint64_t numbers) {
    uint64_t found = 0;
    for (size_t i = 0; i < d->scope_count; i++) {
        uint64_t group = d->scopes[i].meant ? d->scopes[i].group : 0;
        if (group == 0 || columns / group + (columns % group != 0) != numbers) continue;
        if (found && found != group) return 0;
        found = group;
    }
    return found;
}

bool sfti_scopes_alike(const sfti_declared *a, const sfti_declared *b) {
    if (a->scope_count != b->scope_count || a->ordered != b->ordered) return false;
    for (size_t i = 0; i < a->scope_count; i++) {
        const sfti_declared_scope *x = &a->scopes[i], *y = &b->scopes[i];
        if (x->count != y->count || x->widths != y->widths || x->kinds != y->kinds
            || x->shares != y->shares || x->group != y->group || x->blocks[0] != y->blocks[0]
            || x->blocks[1] != y->blocks[1] || x->asymmetric != y->asymmetric
            || x->disordered != y->disordered || x->excludes != y->excludes)
            return false;
        for (size_t k = 0; k < x->count; k++)
            if (x->targets[k].kind != y->targets[k].kind
                || !sft_span_equal(x->targets[k].text, y->targets[k].text))
                return false;
    }
    return true;
}
