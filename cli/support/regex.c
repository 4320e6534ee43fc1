/* Runs a compiled regular expression on a text: all threads of the program at once (Pike, after
 * Thompson). A text is read once, and at each
 * character a step has one thread at most, that of the highest rank. */
#include "support/regex.h"
#include "base/error.h"
#include "base/mem.h"
#include "support/regex_steps.h"

#include <string.h>

#define RX_NONE SIZE_MAX

typedef struct rx_threads {
    uint32_t *steps; /* in order of rank */
    size_t count;
    size_t *slots; /* of the thread at each step */
} rx_threads;

/* What is still to be followed: a step, or the former value of a slot that comes back. */
typedef struct rx_todo { uint32_t step; int32_t slot; size_t value; } rx_todo;

struct cli_regex {
    rx_program program;
    sfti_arena arena;
    rx_threads now, next;
    uint64_t *seen; /* the round in which a step was last followed */
    uint64_t round;
    rx_todo *todo;
    size_t used; /* slots that the program saves to */
};

/* ── Making ── */

static bool rx_take_threads(cli_regex *regex, rx_threads *out) {
    out->steps = sfti_arena_array(&regex->arena, regex->program.count, sizeof *out->steps);
    out->slots = sfti_arena_array(&regex->arena, regex->program.count * regex->used,
                                  sizeof *out->slots);
    return out->steps && out->slots;
}

static bool rx_take_tables(cli_regex *regex) {
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

sft_code cli_regex_new(sft_span pattern, const sft_allocator *alloc, cli_regex **out,
                        sft_error *err) {
    cli_regex *regex = sfti_take(alloc, sizeof *regex);
    bool memory = false;
    *out = NULL;
    if (!regex) return sfti_fail_memory(err, sizeof *regex);
    memset(regex, 0, sizeof *regex);
    regex->arena.alloc = regex->program.alloc = *alloc;
    const char *why = cli_regex_compile(&regex->program, pattern, &memory);
    if (!why && !memory) memory = !rx_take_tables(regex);
    if (!why && !memory) {
        *out = regex;
        return SFT_OK;
    }
    cli_regex_free(regex);
    if (memory) return sfti_fail_memory(err, pattern.len);
    return sfti_misuse(err, "expected an extended regular expression, found \"%.*s\": %s",
                       (int)(pattern.len < 200 ? pattern.len : 200), pattern.data, why);
}

void cli_regex_free(cli_regex *regex) {
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

static bool rx_is_in(const rx_program *program, const rx_step *step, uint32_t c) {
    const rx_range *range = program->ranges + step->a;
    for (int32_t i = 0; i < step->b; i++)
        if (c >= range[i].first && c <= range[i].last) return true;
    return false;
}

static bool rx_takes(const rx_program *program, const rx_step *step, uint32_t c) {
    if (step->op == RX_CHAR) return (uint32_t)step->a == c;
    if (step->op == RX_ANY) return true;
    return rx_is_in(program, step, c) == (step->op == RX_SET);
}

/* ── Threads ── */

static uint32_t rx_by(uint32_t from, int32_t steps) {
    return (uint32_t)((int32_t)from + steps);
}

/* Follow a thread from a step to those that take a character, by rank, with its slots, which are
 * as they were at the end. */
static void rx_follow(cli_regex *regex, rx_threads *to, uint32_t first, size_t *slots,
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

/* The thread that has matched is kept if it began before the best one, or there and ended later:
 * it ends here, behind all that were kept. */
static bool rx_keep(const cli_regex *regex, const size_t *slots, size_t *best) {
    if (best[0] != RX_NONE && slots[0] > best[0]) return false;
    if (best[0] == slots[0] && best[1] >= slots[1]) return false;
    memcpy(best, slots, regex->used * sizeof *best);
    return true;
}

/* All threads over one character, from `now` to `next`; those that began behind the best match
 * end. */
static void rx_advance(cli_regex *regex, sft_span text, size_t at, size_t *best) {
    size_t behind = at;
    uint32_t c = at < text.len ? cli_regex_char(text, &behind) : 0;
    regex->round++;
    regex->next.count = 0;
    for (size_t i = 0; i < regex->now.count; i++) {
        uint32_t at_step = regex->now.steps[i];
        const rx_step *step = &regex->program.steps[at_step];
        size_t *slots = regex->now.slots + at_step * regex->used;
        if (step->op == RX_MATCH) (void)rx_keep(regex, slots, best);
        else if (at < text.len && (best[0] == RX_NONE || slots[0] <= best[0]) &&
                 rx_takes(&regex->program, step, c))
            rx_follow(regex, &regex->next, at_step + 1, slots, text, behind);
    }
}

bool cli_regex_find(cli_regex *regex, sft_span text, size_t from,
                     cli_regex_group groups[CLI_REGEX_GROUPS]) {
    size_t best[RX_SLOTS], fresh[RX_SLOTS];
    for (size_t i = 0; i < RX_SLOTS; i++) best[i] = fresh[i] = RX_NONE;
    regex->now.count = 0;
    regex->round++;
    for (size_t at = from;;) {
        /* A thread that begins here is of lower rank than those from before. */
        if (best[0] == RX_NONE) rx_follow(regex, &regex->now, 0, fresh, text, at);
        if (regex->now.count == 0 && best[0] != RX_NONE) break;
        rx_advance(regex, text, at, best);
        rx_threads done = regex->now;
        regex->now = regex->next;
        regex->next = done;
        if (at == text.len) break;
        (void)cli_regex_char(text, &at);
    }
    for (size_t i = 0; i < CLI_REGEX_GROUPS; i++)
        groups[i] = (cli_regex_group){ best[2 * i], best[2 * i + 1] };
    return best[0] != RX_NONE;
}
