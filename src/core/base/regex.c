/* Regular expressions: a pattern into a program, and the program run on a text. Tests:
 * tests/compat/regex.py. */
#include "base/regex.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

/* ── The program ── */

typedef enum rx_op {
    RX_CHAR,   /* the character a */
    RX_ANY,    /* any one */
    RX_SET,    /* one of the b ranges from a */
    RX_NOT_SET,
    RX_SPLIT,  /* on at a and, of lower rank, at b */
    RX_JUMP,   /* on at a */
    RX_SAVE,   /* the place, in slot a */
    RX_BEGIN, RX_END, RX_WORD, RX_NOT_WORD, RX_WORD_BEGIN, RX_WORD_END, /* conditions of a place */
    RX_MATCH
} rx_op;

/* a and b of splits and jumps count from the step itself, so that steps can be moved and copied. */
typedef struct rx_step { rx_op op; int32_t a, b; } rx_step;
typedef struct rx_range { uint32_t first, last; } rx_range;

#define RX_SLOTS ((size_t)2 * SFTI_REGEX_GROUPS)

typedef struct rx_program {
    rx_step *steps;
    size_t count, cap;
    rx_range *ranges;
    size_t range_count, range_cap;
    sft_allocator alloc;
} rx_program;

#define RX_BYTE 0x110000u /* a byte that is no UTF-8: this and the byte */

/* ── A pattern, as it is read ── */

typedef struct rx_group {
    size_t open;   /* its first step */
    size_t branch; /* first step of its last alternative */
    size_t jumps;  /* the last of its jumps behind alternatives, chained in a; 0: none */
    uint32_t number;
} rx_group;

typedef struct rx_parse {
    rx_program *to;
    sft_span text;
    size_t at;
    rx_group groups[SFTI_REGEX_DEPTH + 1];
    size_t depth;
    uint32_t group_count;
    size_t atom;   /* first step of what a repetition would repeat */
    bool has_atom;
    const char *why;
    bool memory;
} rx_parse;

/* One character of a text: a byte that is no UTF-8 stands behind the last code point. */
static uint32_t rx_char(sft_span text, size_t *at) {
    const uint8_t *p = (const uint8_t *)text.data;
    uint32_t code = 0;
    size_t len = sfti_utf8_decode(p + *at, p + text.len, &code);
    if (!len) code = RX_BYTE + p[*at];
    *at += len ? len : 1;
    return code;
}

static bool rx_fail(rx_parse *x, const char *why) {
    if (!x->why) x->why = why;
    return false;
}

/* ── Steps ── */

/* Room for `more` steps, which do not count yet. */
static bool rx_room(rx_parse *x, size_t more) {
    rx_program *to = x->to;
    if (more > SFTI_REGEX_STEPS - to->count) return rx_fail(x, "it is too large");
    rx_step *steps = sfti_grow(&to->alloc, to->steps, to->count, more, &to->cap, sizeof *steps);
    if (!steps) return !(x->memory = true);
    to->steps = steps;
    return true;
}

static bool rx_put(rx_parse *x, rx_op op, int32_t a, int32_t b) {
    if (!rx_room(x, 1)) return false;
    x->to->steps[x->to->count++] = (rx_step){ op, a, b };
    return true;
}

/* Before the steps from `at` on, which are one construct: none of theirs leads out of it. */
static bool rx_insert(rx_parse *x, size_t at, rx_op op, int32_t a, int32_t b) {
    rx_program *to = x->to;
    if (!rx_room(x, 1)) return false;
    memmove(to->steps + at + 1, to->steps + at, (to->count - at) * sizeof *to->steps);
    to->steps[at] = (rx_step){ op, a, b };
    to->count++;
    return true;
}

static bool rx_put_range(rx_parse *x, uint32_t first, uint32_t last) {
    rx_program *to = x->to;
    rx_range *ranges = sfti_grow(&to->alloc, to->ranges, to->range_count, 1, &to->range_cap,
                                 sizeof *ranges);
    if (!ranges) return !(x->memory = true);
    to->ranges = ranges;
    to->ranges[to->range_count++] = (rx_range){ first, last };
    return true;
}

/* A step that may be repeated. */
static bool rx_put_atom(rx_parse *x, rx_op op, int32_t a, int32_t b) {
    x->atom = x->to->count;
    x->has_atom = true;
    return rx_put(x, op, a, b);
}

/* ── Sets ── */

typedef struct rx_class { const char *name; const char *ranges; } rx_class;

/* Classes by name, in ASCII: pairs of first and last. */
static const rx_class rx_classes[] = {
    { "alnum", "09AZaz" }, { "alpha", "AZaz" }, { "blank", "\t\t  " }, { "cntrl", "\1\37\177\177" },
    { "digit", "09" }, { "graph", "!~" }, { "lower", "az" }, { "print", " ~" },
    { "punct", "!/:@[`{~" }, { "space", "\t\r  " }, { "upper", "AZ" }, { "word", "09AZ__az" },
    { "xdigit", "09AFaf" },
};

static bool rx_put_class(rx_parse *x, const char *name, size_t len) {
    for (size_t i = 0; i < sizeof rx_classes / sizeof *rx_classes; i++) {
        const rx_class *row = &rx_classes[i];
        if (strlen(row->name) != len || memcmp(row->name, name, len) != 0) continue;
        for (const char *r = row->ranges; *r; r += 2)
            if (!rx_put_range(x, (uint8_t)r[0], (uint8_t)r[1])) return false;
        return true;
    }
    return rx_fail(x, "[: :] holds no class of characters");
}

static bool rx_set_of_class(rx_parse *x, bool negated, const char *name) {
    size_t begin = x->to->range_count;
    return rx_put_class(x, name, strlen(name)) &&
           rx_put_atom(x, negated ? RX_NOT_SET : RX_SET, (int32_t)begin,
                       (int32_t)(x->to->range_count - begin));
}

/* The next is c, and is taken. */
static bool rx_take(rx_parse *x, char c) {
    bool is = x->at < x->text.len && x->text.data[x->at] == c;
    x->at += is;
    return is;
}

/* One character or range; a first ] and a last - stand for themselves, a backslash always does. */
static bool rx_set_item(rx_parse *x) {
    sft_span rest = { x->text.data + x->at, x->text.len - x->at };
    if (rest.len > 1 && rest.data[0] == '[' && (rest.data[1] == '.' || rest.data[1] == '='))
        return rx_fail(x, "[. and [= are not known");
    if (rest.len > 1 && rest.data[0] == '[' && rest.data[1] == ':') {
        size_t begin = x->at += 2;
        while (x->at + 1 < x->text.len && memcmp(x->text.data + x->at, ":]", 2) != 0) x->at++;
        if (x->at + 1 >= x->text.len) return rx_fail(x, "[: is not closed");
        x->at += 2;
        return rx_put_class(x, x->text.data + begin, x->at - 2 - begin);
    }
    uint32_t first = rx_char(x->text, &x->at), last = first;
    bool range = x->at + 1 < x->text.len && x->text.data[x->at] == '-' &&
                 x->text.data[x->at + 1] != ']';
    if (range) {
        x->at++;
        last = rx_char(x->text, &x->at);
    }
    if (last < first) return rx_fail(x, "a range in [] ends before it begins");
    return rx_put_range(x, first, last);
}

/* Behind "[". */
static bool rx_set(rx_parse *x) {
    size_t begin = x->to->range_count;
    rx_op op = rx_take(x, '^') ? RX_NOT_SET : RX_SET;
    for (bool first = true;; first = false) {
        if (x->at == x->text.len) return rx_fail(x, "[ is not closed");
        if (!first && rx_take(x, ']')) break;
        if (!rx_set_item(x)) return false;
    }
    return rx_put_atom(x, op, (int32_t)begin, (int32_t)(x->to->range_count - begin));
}

/* ── Repetition ── */

static bool rx_number(rx_parse *x, uint32_t *out) {
    size_t begin = x->at;
    for (*out = 0; x->at < x->text.len; x->at++) {
        char c = x->text.data[x->at];
        if (c < '0' || c > '9') break;
        if (*out <= SFTI_REGEX_TIMES) *out = *out * 10 + (uint32_t)(c - '0');
    }
    return x->at > begin;
}

#define RX_NO_MOST UINT32_MAX

/* Behind "{". */
static bool rx_bounds(rx_parse *x, uint32_t *least, uint32_t *most) {
    static const char form[] = "{ is not followed by a number and }; \\{ is the character";
    if (!rx_number(x, least)) return rx_fail(x, form);
    *most = *least;
    if (rx_take(x, ',') && !rx_number(x, most)) *most = RX_NO_MOST;
    if (!rx_take(x, '}')) return rx_fail(x, form);
    if (*most < *least) return rx_fail(x, "the second number in {} is less than the first");
    if (*least > SFTI_REGEX_TIMES || (*most > SFTI_REGEX_TIMES && *most != RX_NO_MOST))
        return rx_fail(x, "a number in {} is over 1000");
    return true;
}

/* The last construct again, as it was in `len` steps from `from`. */
static bool rx_copy(rx_parse *x, size_t from, size_t len) {
    rx_program *to = x->to;
    if (!rx_room(x, len)) return false;
    memcpy(to->steps + to->count, to->steps + from, len * sizeof *to->steps);
    to->count += len;
    return true;
}

/* x{2,4} is xx(x(x)?)?; x{2,} is xx+. */
static bool rx_repeat(rx_parse *x, uint32_t least, uint32_t most) {
    size_t at = x->atom, len = x->to->count - at;
    if (most == 0) return x->to->count = at, true;
    /* As often as wanted: before the run a split behind it, and behind it a jump back. */
    if (most == RX_NO_MOST && least == 0)
        return rx_insert(x, at, RX_SPLIT, 1, (int32_t)len + 2)
            && rx_put(x, RX_JUMP, -((int32_t)len + 1), 0);
    for (uint32_t i = 1; i < least; i++)
        if (!rx_copy(x, at, len)) return false;
    if (most == RX_NO_MOST) return rx_put(x, RX_SPLIT, -(int32_t)len, 1);
    uint32_t optional = most - least;
    int32_t ahead = (int32_t)optional * ((int32_t)len + 1);
    if (optional && (uint64_t)optional * (len + 1) > SFTI_REGEX_STEPS)
        return rx_fail(x, "it is too large");
    if (least == 0) {
        if (!rx_insert(x, at, RX_SPLIT, 1, ahead)) return false;
        at++, optional--, ahead -= (int32_t)len + 1;
    }
    for (; optional > 0; optional--, ahead -= (int32_t)len + 1)
        if (!rx_put(x, RX_SPLIT, 1, ahead) || !rx_copy(x, at, len)) return false;
    return true;
}

/* ── Groups ── */

static bool rx_open(rx_parse *x) {
    if (x->depth == SFTI_REGEX_DEPTH) return rx_fail(x, "groups are nested too deeply");
    rx_group *group = &x->groups[++x->depth];
    *group = (rx_group){ .open = x->to->count, .number = ++x->group_count };
    if (group->number < SFTI_REGEX_GROUPS && !rx_put(x, RX_SAVE, (int32_t)group->number * 2, 0))
        return false;
    group->branch = x->to->count;
    x->has_atom = false;
    return true;
}

/* An alternative has ended: a split before it, to the next one, and a jump behind all. */
static bool rx_alternative(rx_parse *x) {
    rx_group *group = &x->groups[x->depth];
    int32_t len = (int32_t)(x->to->count - group->branch);
    if (!rx_insert(x, group->branch, RX_SPLIT, 1, len + 2)) return false;
    if (!rx_put(x, RX_JUMP, (int32_t)group->jumps, 0)) return false;
    group->jumps = x->to->count - 1;
    group->branch = x->to->count;
    x->has_atom = false;
    return true;
}

static void rx_end_alternatives(rx_parse *x) {
    rx_step *steps = x->to->steps;
    for (size_t at = x->groups[x->depth].jumps, next; at > 0; at = next) {
        next = (size_t)steps[at].a;
        steps[at].a = (int32_t)(x->to->count - at);
    }
}

static bool rx_close(rx_parse *x) {
    if (x->depth == 0) return rx_fail(x, ") has no ( before it");
    rx_end_alternatives(x);
    rx_group *group = &x->groups[x->depth--];
    x->atom = group->open;
    x->has_atom = true;
    return group->number >= SFTI_REGEX_GROUPS ||
           rx_put(x, RX_SAVE, (int32_t)group->number * 2 + 1, 0);
}

/* ── A pattern ── */

static bool rx_place(rx_parse *x, rx_op op) {
    x->has_atom = false;
    return rx_put(x, op, 0, 0);
}

static bool rx_escape(rx_parse *x) {
    if (x->at == x->text.len) return rx_fail(x, "a backslash ends it");
    size_t begin = x->at;
    uint32_t code = rx_char(x->text, &x->at);
    switch (x->text.data[begin]) {
    case 'w': return rx_set_of_class(x, false, "word");
    case 'W': return rx_set_of_class(x, true, "word");
    case 's': return rx_set_of_class(x, false, "space");
    case 'S': return rx_set_of_class(x, true, "space");
    case 'b': return rx_place(x, RX_WORD);
    case 'B': return rx_place(x, RX_NOT_WORD);
    case '<': return rx_place(x, RX_WORD_BEGIN);
    case '>': return rx_place(x, RX_WORD_END);
    }
    if (code >= '0' && code <= '9') return rx_fail(x, "\\1 to \\9 are not known in a pattern");
    if ((code | 0x20) >= 'a' && (code | 0x20) <= 'z')
        return rx_fail(x, "a backslash stands before a letter other than w W s S b B");
    return rx_put_atom(x, RX_CHAR, (int32_t)code, 0);
}

static bool rx_item(rx_parse *x) {
    uint32_t code = rx_char(x->text, &x->at);
    uint32_t least = code == '+', most = code == '?' ? 1 : RX_NO_MOST;
    switch (code) {
    case '(': return rx_open(x);
    case ')': return rx_close(x);
    case '|': return rx_alternative(x);
    case '*': case '+': case '?': case '{':
        if (!x->has_atom) return rx_fail(x, "there is nothing to repeat before * + ? or {");
        return (code != '{' || rx_bounds(x, &least, &most)) && rx_repeat(x, least, most);
    case '[': return rx_set(x);
    case '^': return rx_place(x, RX_BEGIN);
    case '$': return rx_place(x, RX_END);
    case '\\': return rx_escape(x);
    case '.': return rx_put_atom(x, RX_ANY, 0, 0);
    default: return rx_put_atom(x, RX_CHAR, (int32_t)code, 0);
    }
}

/* NULL, or what is wrong with the pattern; *memory: instead, there is too little of it. */
static const char *rx_compile(rx_program *program, sft_span pattern, bool *memory) {
    rx_parse x = { .to = program, .text = pattern };
    bool fine = rx_put(&x, RX_SAVE, 0, 0);
    x.groups[0].branch = program->count;
    while (fine && x.at < pattern.len) fine = rx_item(&x);
    if (fine && x.depth > 0) fine = rx_fail(&x, "( is not closed");
    if (fine) rx_end_alternatives(&x);
    if (fine) fine = rx_put(&x, RX_SAVE, 1, 0) && rx_put(&x, RX_MATCH, 0, 0);
    *memory = x.memory;
    return x.why;
}

/* ── Running it: all threads of the program at once (Pike, after Thompson). A text is read once,
 * and at each character a step has one thread at most, that of the highest rank ── */

#define RX_NONE SIZE_MAX

typedef struct rx_threads {
    uint32_t *steps; /* in order of rank */
    size_t count;
    size_t *slots; /* of the thread at each step */
} rx_threads;

/* What is still to be followed: a step, or the former value of a slot that comes back. */
typedef struct rx_todo { uint32_t step; int32_t slot; size_t value; } rx_todo;

struct sfti_regex {
    rx_program program;
    sfti_arena arena;
    rx_threads now, next;
    uint64_t *seen; /* the round in which a step was last followed */
    uint64_t round;
    rx_todo *todo;
    size_t used; /* slots that the program saves to */
};

/* ── Making ── */

static bool rx_take_threads(sfti_regex *regex, rx_threads *out) {
    out->steps = sfti_arena_array(&regex->arena, regex->program.count, sizeof *out->steps);
    out->slots = sfti_arena_array(&regex->arena, regex->program.count * regex->used,
                                  sizeof *out->slots);
    return out->steps && out->slots;
}

static bool rx_take_tables(sfti_regex *regex) {
    const rx_program *program = &regex->program;
    for (size_t i = 0; i < program->count; i++) {
        const rx_step *step = &program->steps[i];
        if (step->op == RX_SAVE && (size_t)step->a >= regex->used)
            regex->used = (size_t)step->a + 1;
    }
    /* Every step is followed once a round, and puts two at most. */
    regex->todo = sfti_arena_array(&regex->arena, 2 * program->count + 1, sizeof *regex->todo);
    regex->seen = sfti_arena_array(&regex->arena, program->count, sizeof *regex->seen);
    if (regex->seen) memset(regex->seen, 0, program->count * sizeof *regex->seen);
    return regex->todo && regex->seen && rx_take_threads(regex, &regex->now) &&
           rx_take_threads(regex, &regex->next);
}

sft_code sfti_regex_new(sft_span pattern, const sft_allocator *alloc, sfti_regex **out,
                        sft_error *err) {
    sfti_regex *regex = sfti_take(alloc, sizeof *regex);
    bool memory = false;
    *out = NULL;
    if (!regex) return sfti_fail_memory(err, sizeof *regex);
    memset(regex, 0, sizeof *regex);
    regex->arena.alloc = regex->program.alloc = *alloc;
    const char *why = rx_compile(&regex->program, pattern, &memory);
    if (!why && !memory) memory = !rx_take_tables(regex);
    if (!why && !memory) {
        *out = regex;
        return SFT_OK;
    }
    sfti_regex_free(regex);
    if (memory) return sfti_fail_memory(err, pattern.len);
    return sfti_misuse(err, "expected an extended regular expression, found \"%.*s\": %s",
                       SFTI_CLIP(pattern, 200), why);
}

void sfti_regex_free(sfti_regex *regex) {
    if (!regex) return;
    sft_allocator alloc = regex->arena.alloc;
    rx_program *program = &regex->program;
    sfti_release(&alloc, program->steps, program->cap * sizeof *program->steps);
    sfti_release(&alloc, program->ranges, program->range_cap * sizeof *program->ranges);
    sfti_arena_free(&regex->arena);
    sfti_release(&alloc, regex, sizeof *regex);
}

/* ── Conditions ── */

static bool rx_is_word(sft_span text, size_t at) {
    char c = at < text.len ? text.data[at] : ' ', low = (char)(c | 0x20);
    return (c >= '0' && c <= '9') || (low >= 'a' && low <= 'z') || c == '_';
}

static bool rx_holds(rx_op op, sft_span text, size_t at) {
    bool before = at > 0 && rx_is_word(text, at - 1), behind = rx_is_word(text, at);
    switch (op) {
    case RX_BEGIN: return at == 0;
    case RX_END: return at == text.len;
    case RX_WORD: return before != behind;
    case RX_NOT_WORD: return before == behind;
    case RX_WORD_BEGIN: return !before && behind;
    default: return before && !behind;
    }
}

static bool rx_takes(const rx_program *program, const rx_step *step, uint32_t c) {
    if (step->op == RX_CHAR) return (uint32_t)step->a == c;
    if (step->op == RX_ANY) return true;
    const rx_range *range = program->ranges + step->a;
    bool is_in = false;
    for (int32_t i = 0; !is_in && i < step->b; i++)
        is_in = c >= range[i].first && c <= range[i].last;
    return is_in == (step->op == RX_SET);
}

/* ── Threads ── */

static uint32_t rx_by(uint32_t from, int32_t steps) {
    return (uint32_t)((int32_t)from + steps);
}

/* Follow a thread from a step to those that take a character, by rank, with its slots, which are
 * as they were at the end. */
static void rx_follow(sfti_regex *regex, rx_threads *to, uint32_t first, size_t *slots,
                      sft_span text, size_t at) {
    rx_todo *todo = regex->todo;
    size_t count = 0;
    todo[count++] = (rx_todo){ first, -1, 0 };
    while (count > 0) {
        rx_todo one = todo[--count];
        if (one.slot >= 0) {
            slots[one.slot] = one.value;
            continue;
        }
        if (regex->seen[one.step] == regex->round) continue;
        regex->seen[one.step] = regex->round;
        const rx_step *step = &regex->program.steps[one.step];
        switch (step->op) {
        case RX_SPLIT:
            todo[count++] = (rx_todo){ rx_by(one.step, step->b), -1, 0 };
            todo[count++] = (rx_todo){ rx_by(one.step, step->a), -1, 0 };
            break;
        case RX_JUMP: todo[count++] = (rx_todo){ rx_by(one.step, step->a), -1, 0 }; break;
        case RX_SAVE:
            todo[count++] = (rx_todo){ 0, step->a, slots[step->a] };
            todo[count++] = (rx_todo){ one.step + 1, -1, 0 };
            slots[step->a] = at;
            break;
        case RX_CHAR: case RX_ANY: case RX_SET: case RX_NOT_SET: case RX_MATCH:
            to->steps[to->count++] = one.step;
            memcpy(to->slots + one.step * regex->used, slots, regex->used * sizeof *slots);
            break;
        default:
            if (rx_holds(step->op, text, at)) todo[count++] = (rx_todo){ one.step + 1, -1, 0 };
        }
    }
}

/* All threads over one character, from `now` to `next`; those that began behind the best match
 * end. */
static void rx_advance(sfti_regex *regex, sft_span text, size_t at, size_t *best) {
    size_t behind = at;
    uint32_t c = at < text.len ? rx_char(text, &behind) : 0;
    regex->round++;
    regex->next.count = 0;
    for (size_t i = 0; i < regex->now.count; i++) {
        uint32_t at_step = regex->now.steps[i];
        const rx_step *step = &regex->program.steps[at_step];
        size_t *slots = regex->now.slots + at_step * regex->used;
        if (step->op == RX_MATCH) {
            /* It is kept if it began before the best one, or there and ended later: it ends here,
             * behind all that were kept. */
            bool worse = best[0] != RX_NONE && slots[0] > best[0];
            if (!worse && (best[0] != slots[0] || best[1] < slots[1]))
                memcpy(best, slots, regex->used * sizeof *best);
        } else if (at < text.len && (best[0] == RX_NONE || slots[0] <= best[0]) &&
                   rx_takes(&regex->program, step, c)) {
            rx_follow(regex, &regex->next, at_step + 1, slots, text, behind);
        }
    }
}

/* The best match; here: that begins at `from`, and the first is enough. */
static void rx_run(sfti_regex *regex, sft_span text, size_t from, bool here,
                   size_t best[RX_SLOTS]) {
    size_t fresh[RX_SLOTS];
    for (size_t i = 0; i < RX_SLOTS; i++) best[i] = fresh[i] = RX_NONE;
    regex->now.count = 0;
    regex->round++;
    for (size_t at = from;;) {
        /* A thread that begins here is of lower rank than those from before. */
        if (best[0] == RX_NONE && (at == from || !here))
            rx_follow(regex, &regex->now, 0, fresh, text, at);
        if (here ? best[0] != RX_NONE || regex->now.count == 0
                 : best[0] != RX_NONE && regex->now.count == 0)
            break;
        rx_advance(regex, text, at, best);
        rx_threads done = regex->now;
        regex->now = regex->next;
        regex->next = done;
        if (at == text.len) break;
        (void)rx_char(text, &at);
    }
}

bool sfti_regex_begins(sfti_regex *regex, sft_span text) {
    size_t best[RX_SLOTS];
    rx_run(regex, text, 0, true, best);
    return best[0] != RX_NONE;
}

bool sfti_regex_find(sfti_regex *regex, sft_span text, size_t from,
                     sfti_regex_group groups[SFTI_REGEX_GROUPS]) {
    size_t best[RX_SLOTS];
    rx_run(regex, text, from, false, best);
    for (size_t i = 0; i < SFTI_REGEX_GROUPS; i++)
        groups[i] = (sfti_regex_group){ best[2 * i], best[2 * i + 1] };
    return best[0] != RX_NONE;
}
