/* The pickle machine's stack, memo and globals. Tests: test_import_pickle.c. */
#include "formats/pickle/pickle_stack.h"

#include "base/names.h"
#include "base/utf8.h"
#include "formats/pickle/globals.h"

#include <string.h>

sft_code sfti_machine_fail(sfti_machine *m, sft_code code, const char *expected,
                           const char *found) {
    return sfti_fail_byte(m->err, code, m->op_at, "%s: expected %s, found %s",
                          m->op->name ? m->op->name : "pickle", expected, found);
}

sfti_value *sfti_machine_value(sfti_machine *m, sfti_value_kind kind) {
    if (m->values++ >= SFTI_PICKLE_VALUES) {
        (void)sfti_machine_fail(m, SFT_FOREIGN_TABLE, "at most 67108864 values in a pickle",
                                "more");
        return NULL;
    }
    sfti_value *value = sfti_arena_take(m->arena, sizeof *value);
    if (!value) {
        (void)sfti_fail_memory(m->err, sizeof *value);
        return NULL;
    }
    *value = (sfti_value){ .kind = (uint8_t)kind, .at = m->op_at };
    return value;
}

/* ── Stack ── */

sft_code sfti_machine_push(sfti_machine *m, sfti_value *value) {
    if (!value) return m->err->code;
    if (m->depth == m->stack_cap) {
        sfti_value **grown = sfti_grow(&m->arena->alloc, m->stack, m->depth, 1, &m->stack_cap,
                                       sizeof *grown);
        if (!grown) return sfti_fail_memory(m->err, m->depth * sizeof *grown);
        m->stack = grown;
    }
    if (m->depth >= SFTI_PICKLE_STACK)
        return sfti_machine_fail(m, SFT_FOREIGN_TABLE, "at most 10000000 values on the stack",
                                 "more");
    m->stack[m->depth++] = value;
    return SFT_OK;
}

sfti_value *sfti_machine_top(sfti_machine *m) {
    size_t floor = m->mark_count > 0 ? m->marks[m->mark_count - 1] : 0;
    if (m->depth > floor) return m->stack[m->depth - 1];
    (void)sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "a value on the stack",
                            m->mark_count > 0 ? "a mark" : "none");
    return NULL;
}

sfti_value *sfti_machine_pop(sfti_machine *m) {
    sfti_value *top = sfti_machine_top(m);
    if (top) m->depth--;
    return top;
}

sft_code sfti_machine_mark(sfti_machine *m) {
    if (m->mark_count >= SFTI_PICKLE_STACK)
        return sfti_machine_fail(m, SFT_FOREIGN_TABLE, "at most 10000000 marks", "more");
    size_t *grown = sfti_grow(&m->arena->alloc, m->marks, m->mark_count, 1, &m->mark_cap,
                              sizeof *grown);
    if (!grown) return sfti_fail_memory(m->err, m->mark_count * sizeof *grown);
    m->marks = grown;
    m->marks[m->mark_count++] = m->depth;
    return SFT_OK;
}

sft_code sfti_machine_since(sfti_machine *m, sfti_value ***items, size_t *count) {
    if (m->mark_count == 0) return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "a mark", "none");
    size_t mark = m->marks[--m->mark_count];
    *items = m->stack ? m->stack + mark : NULL;
    *count = m->depth - mark;
    m->depth = mark;
    return SFT_OK;
}

/* ── Memo ── */

/* Writers number what they put from 0 on. So a number far beyond the count of what was put is
 * refused, and the memo is never larger than the pickle accounts for. */
sft_code sfti_machine_put(sfti_machine *m, uint64_t at) {
    sfti_value *top = sfti_machine_top(m);
    if (!top) return m->err->code;
    m->puts++;
    if (at >= m->memo_cap) {
        if (at > 2 * m->puts + 1024)
            return sfti_machine_fail(m, SFT_FOREIGN_TABLE, "a memo numbered from 0 on",
                                     "a number far beyond");
        sfti_value **grown = sfti_arena_grow(m->arena, m->memo, m->memo_len,
                                             (size_t)at + 1 - m->memo_len, &m->memo_cap,
                                             sizeof *grown);
        if (!grown) return sfti_fail_memory(m->err, at * sizeof *grown);
        m->memo = grown;
    }
    while (m->memo_len <= at) m->memo[m->memo_len++] = NULL;
    if (!m->memo[at]) m->memo_count++;
    m->memo[at] = top;
    return SFT_OK;
}

sft_code sfti_machine_get(sfti_machine *m, uint64_t at) {
    sfti_value *value = at < m->memo_len ? m->memo[at] : NULL;
    if (!value)
        return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "a number that was put in the memo",
                                 "another");
    return sfti_machine_push(m, value);
}

/* ── Items ── */

sft_code sfti_machine_append(sfti_machine *m, sfti_value *to, sfti_value *const *items,
                             size_t count) {
    if (count > UINT32_MAX - to->count)
        return sfti_machine_fail(m, SFT_FOREIGN_TABLE, "at most 4294967295 items", "more");
    size_t cap = to->cap;
    if (count == 0) return SFT_OK;
    if (cap == 0) { /* often all that it will have; of many small ones room is most of all */
        cap = count < 2 ? 2 : count;
        to->u.items = sfti_arena_array(m->arena, cap, sizeof *items);
    } else {
        to->u.items = sfti_arena_grow(m->arena, to->u.items, to->count, count, &cap,
                                      sizeof *items);
    }
    if (!to->u.items) {
        to->count = 0;
        return sfti_fail_memory(m->err, count * sizeof *items);
    }
    to->cap = cap > UINT32_MAX ? UINT32_MAX : (uint32_t)cap;
    memcpy(to->u.items + to->count, items, count * sizeof *items);
    to->count += (uint32_t)count;
    return SFT_OK;
}

/* ── Globals ── */

static uint64_t global_hash(const sfti_machine *m, sft_span module, sft_span name) {
    return sfti_names_hash(module, m->seed) * 3 + sfti_names_hash(name, m->seed);
}

static void slot_put(sfti_machine *m, uint32_t index) {
    const sfti_global *global = m->out.globals[index];
    size_t slot = (size_t)global_hash(m, global->module, global->name) & (m->slot_count - 1);
    while (m->slots[slot] != 0) slot = (slot + 1) & (m->slot_count - 1);
    m->slots[slot] = index + 1;
}

/* Twice as many slots as globals at least. */
static sft_code slots_grow(sfti_machine *m) {
    if (m->slot_count >= 2 * (m->out.global_count + 1)) return SFT_OK;
    size_t count = m->slot_count ? m->slot_count * 2 : 64;
    m->slots = sfti_arena_array(m->arena, count, sizeof *m->slots);
    if (!m->slots) return sfti_fail_memory(m->err, count * sizeof *m->slots);
    memset(m->slots, 0, count * sizeof *m->slots);
    m->slot_count = count;
    for (size_t i = 0; i < m->out.global_count; i++) slot_put(m, (uint32_t)i);
    return SFT_OK;
}

static sfti_global *global_find(const sfti_machine *m, sft_span module, sft_span name) {
    if (m->slot_count == 0) return NULL;
    size_t slot = (size_t)global_hash(m, module, name) & (m->slot_count - 1);
    for (; m->slots[slot] != 0; slot = (slot + 1) & (m->slot_count - 1)) {
        sfti_global *global = m->out.globals[m->slots[slot] - 1];
        if (sft_span_equal(global->module, module) && sft_span_equal(global->name, name))
            return global;
    }
    return NULL;
}

static sft_code global_make(sfti_machine *m, sft_span module, sft_span name,
                            sfti_global **out) {
    if (module.len == 0 || name.len == 0)
        return sfti_machine_fail(m, SFT_FOREIGN_SYNTAX, "a module and a name", "an empty one");
    if (sfti_utf8_check(module.data, module.len) < module.len ||
        sfti_utf8_check(name.data, name.len) < name.len)
        return sfti_machine_fail(m, SFT_FOREIGN_SYNTAX, "UTF-8", "other bytes");
    if (m->out.global_count >= SFTI_PICKLE_GLOBALS)
        return sfti_machine_fail(m, SFT_FOREIGN_TABLE, "at most 65536 different globals",
                                 "more");
    sft_code code = slots_grow(m);
    if (code) return code;
    sfti_global **grown = sfti_arena_grow(m->arena, m->out.globals, m->out.global_count, 1,
                                          &m->global_cap, sizeof *grown);
    if (grown) m->out.globals = grown;
    sfti_global *global = sfti_arena_take(m->arena, sizeof *global);
    if (!grown || !global) return sfti_fail_memory(m->err, sizeof *global);
    *global = (sfti_global){ .module = module, .name = name };
    global->value = (sfti_value){ .kind = SFTI_VALUE_GLOBAL, .at = m->op_at };
    global->value.u.global = global;
    sfti_global_settle(global);
    grown[m->out.global_count++] = global;
    slot_put(m, (uint32_t)m->out.global_count - 1);
    *out = global;
    return SFT_OK;
}

sft_code sfti_machine_global(sfti_machine *m, sft_span module, sft_span name) {
    module = sfti_global_module(module);
    sfti_global *global = global_find(m, module, name);
    sft_code code = global ? SFT_OK : global_make(m, module, name, &global);
    if (code) return code;
    global->named++;
    return sfti_machine_push(m, &global->value);
}
