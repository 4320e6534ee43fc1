/* The opcodes of pickles. Tests: test_import_pickle.c. */
#include "formats/pickle/globals.h"
#include "formats/pickle/pickle_stack.h"

#include <string.h>

/* ── Plain values ── */

static sft_code run_none(sfti_machine *m) {
    if (!m->none && !(m->none = sfti_machine_value(m, SFTI_VALUE_NONE))) return m->err->code;
    return sfti_machine_push(m, m->none);
}

static sft_code push_bool(sfti_machine *m, bool truth) {
    sfti_value **one = &m->truth[truth];
    if (!*one) {
        if (!(*one = sfti_machine_value(m, SFTI_VALUE_BOOL))) return m->err->code;
        (*one)->u.truth = truth;
    }
    return sfti_machine_push(m, *one);
}

static sft_code run_bool(sfti_machine *m) {
    return push_bool(m, m->op->detail != 0);
}

static sft_code push_int(sfti_machine *m, int64_t integer) {
    sfti_value **small = integer >= 0 && integer < 256 ? &m->small[integer] : NULL;
    sfti_value *value = small ? *small : NULL;
    if (!value) {
        if (!(value = sfti_machine_value(m, SFTI_VALUE_INT))) return m->err->code;
        value->u.integer = integer;
        if (small) *small = value;
    }
    return sfti_machine_push(m, value);
}

static sft_code run_int(sfti_machine *m) {
    return push_int(m, (int64_t)m->number);
}

static sft_code run_number(sfti_machine *m) {
    return sfti_machine_push(m, sfti_machine_value(m, SFTI_VALUE_NUMBER));
}

/* LONG1 and LONG4: the argument is the length. */
static sft_code run_long(sfti_machine *m) {
    int64_t integer = 0;
    if (m->number > INT32_MAX)
        return sfti_machine_fail(m, SFT_FOREIGN_SYNTAX, "a length", "a negative number");
    if (m->number > 255) { /* far wider than 64 bits, if it is not padded */
        sft_code code = sfti_scan_skip(&m->scan, m->number, NULL);
        return code ? code : run_number(m);
    }
    const uint8_t *bytes = sfti_scan_take(&m->scan, (size_t)m->number);
    if (!bytes) return m->err->code;
    return sfti_pickle_long(bytes, (size_t)m->number, &integer) ? push_int(m, integer)
                                                               : run_number(m);
}

/* INT and LONG of protocol 0; I00 and I01 are booleans. */
static sft_code run_decimal(sfti_machine *m) {
    int64_t integer = 0;
    if (m->op->detail && m->text.len == 2 && m->text.data[0] == '0' &&
        (m->text.data[1] == '0' || m->text.data[1] == '1'))
        return push_bool(m, m->text.data[1] == '1');
    int is = sfti_pickle_decimal(m->text, &integer);
    if (is < 0) return sfti_machine_fail(m, SFT_FOREIGN_SYNTAX, "digits", "other text");
    return is > 0 ? push_int(m, integer) : run_number(m);
}

static sft_code run_float(sfti_machine *m) {
    sfti_value *value = sfti_machine_value(m, SFTI_VALUE_FLOAT);
    if (value) value->u.real = m->real;
    return sfti_machine_push(m, value);
}

static sft_code push_text(sfti_machine *m, const char *text, uint64_t len, bool raw) {
    if (len > UINT32_MAX)
        return sfti_machine_fail(m, SFT_FOREIGN_TABLE, "text of less than 4 GiB", "more");
    sfti_value *value = sfti_machine_value(m, SFTI_VALUE_TEXT);
    if (!value) return m->err->code;
    value->u.text = text;
    value->count = (uint32_t)len;
    value->raw = raw;
    value->at = m->text_at;
    return sfti_machine_push(m, value);
}

static sft_code run_counted_text(sfti_machine *m) {
    return push_text(m, m->text.data, m->number, m->op->detail != 0);
}

static sft_code run_bytes(sfti_machine *m) {
    sfti_value *value = sfti_machine_value(m, SFTI_VALUE_BYTES);
    if (!value) return m->err->code;
    value->u.length = m->number;
    value->at = m->text_at;
    return sfti_machine_push(m, value);
}

/* STRING and UNICODE of protocol 0. Of a STRING with escapes `at` is no place of its bytes. */
static sft_code run_escaped(sfti_machine *m) {
    bool quoted = m->op->detail != 0;
    char *text = sfti_arena_array(m->arena, (uint64_t)m->text.len + 1, 2);
    size_t len = 0;
    if (!text) return sfti_fail_memory(m->err, m->text.len);
    if (!(quoted ? sfti_pickle_quoted(m->text, text, &len)
                 : sfti_pickle_unicode(m->text, text, &len)))
        return sfti_machine_fail(m, SFT_FOREIGN_SYNTAX, "text with escapes of Python",
                                 "other text");
    sft_code code = push_text(m, text, len, quoted);
    if (!code) m->stack[m->depth - 1]->escaped = true;
    return code;
}

/* ── The stack and the memo ── */

static sft_code run_pop(sfti_machine *m) {
    if (m->mark_count > 0 && m->marks[m->mark_count - 1] == m->depth) {
        m->mark_count--;
        return SFT_OK;
    }
    return sfti_machine_pop(m) ? SFT_OK : m->err->code;
}

static sft_code run_pop_mark(sfti_machine *m) {
    sfti_value **items;
    size_t count;
    return sfti_machine_since(m, &items, &count);
}

static sft_code run_dup(sfti_machine *m) {
    sfti_value *top = sfti_machine_top(m);
    return top ? sfti_machine_push(m, top) : m->err->code;
}

static sft_code run_put(sfti_machine *m) {
    return sfti_machine_put(m, m->number);
}

static sft_code run_memoize(sfti_machine *m) {
    return sfti_machine_put(m, m->memo_count);
}

static sft_code run_get(sfti_machine *m) {
    return sfti_machine_get(m, m->number);
}

/* GET and PUT of protocol 0. */
static sft_code run_memo_line(sfti_machine *m) {
    int64_t at;
    if (sfti_pickle_decimal(m->text, &at) <= 0 || at < 0)
        return sfti_machine_fail(m, SFT_FOREIGN_SYNTAX, "a number of the memo", "other text");
    return m->op->detail ? sfti_machine_put(m, (uint64_t)at) : sfti_machine_get(m, (uint64_t)at);
}

/* ── Lists, tuples, sets, dicts ── */

/* detail: the kind, or minus the length of a tuple from the top of the stack. */
static sft_code run_empty(sfti_machine *m) {
    if (m->op->detail != SFTI_VALUE_TUPLE)
        return sfti_machine_push(m, sfti_machine_value(m, (sfti_value_kind)m->op->detail));
    if (!m->empty && !(m->empty = sfti_machine_value(m, SFTI_VALUE_TUPLE))) return m->err->code;
    return sfti_machine_push(m, m->empty);
}

static sft_code push_items(sfti_machine *m, sfti_value_kind kind, sfti_value **items,
                           size_t count) {
    sfti_value *value = sfti_machine_value(m, kind);
    if (!value) return m->err->code;
    if (count > 0) {
        value->u.items = sfti_arena_array(m->arena, count, sizeof *items);
        if (!value->u.items) return sfti_fail_memory(m->err, count * sizeof *items);
        memcpy(value->u.items, items, count * sizeof *items);
        value->count = value->cap = (uint32_t)count;
    }
    return sfti_machine_push(m, value);
}

static sft_code run_tuple(sfti_machine *m) {
    size_t count = (size_t)m->op->detail;
    for (size_t i = 0; i < count; i++)
        if (!sfti_machine_pop(m)) return m->err->code;
    return push_items(m, SFTI_VALUE_TUPLE, m->stack + m->depth, count);
}

static sft_code run_since(sfti_machine *m) {
    sfti_value **items;
    size_t count;
    sft_code code = sfti_machine_since(m, &items, &count);
    if (code) return code;
    if (m->op->detail == SFTI_VALUE_MAP && count % 2 != 0)
        return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "keys with values", "a key without");
    return push_items(m, (sfti_value_kind)m->op->detail, items, count);
}

/* What a call takes the contents of may not change behind it: a loader, which runs the opcodes one
 * by one, has copied them. As deep as arguments are looked at; each container once a level. */
static void hold_contents(sfti_value *value, uint8_t levels) {
    bool items = value->kind >= SFTI_VALUE_LIST && value->kind <= SFTI_VALUE_MAP;
    if ((!items && value->kind != SFTI_VALUE_OBJECT) || value->held >= levels) return;
    value->held = levels;
    for (uint32_t i = 0; items && levels > 1 && i < value->count; i++)
        hold_contents(value->u.items[i], levels - 1);
}
#define HELD_LEVELS 4 /* ((size, …), …): the tuple, a list in it, a pair in that, its parts */

static sft_code check_unheld(sfti_machine *m, const sfti_value *value) {
    if (!value->held || value->kind == SFTI_VALUE_TUPLE) return SFT_OK;
    return sfti_machine_fail(m, SFT_FOREIGN_AMBIGUOUS, "a container or object of its own",
                             "one that a call has taken its contents from");
}

/* APPEND(S), SETITEM(S), ADDITEMS. Only what has items gets some: an opcode that sets items of
 * anything else has no meaning in a loader either. */
static sft_code add_items(sfti_machine *m, sfti_value_kind kind, sfti_value **items,
                          size_t count) {
    sfti_value *to = sfti_machine_top(m);
    if (!to) return m->err->code;
    sft_code code = check_unheld(m, to);
    if (code) return code;
    if (to->kind == SFTI_VALUE_OBJECT && kind != SFTI_VALUE_SET) {
        sfti_object *object = to->u.object;
        sfti_value **part = kind == SFTI_VALUE_MAP ? &object->pairs : &object->list;
        if (!*part) *part = sfti_machine_value(m, kind);
        if (!(to = *part)) return m->err->code;
    }
    if (to->kind != kind)
        return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, sfti_value_kind_name((uint8_t)kind),
                                 sfti_value_kind_name(to->kind));
    if (kind == SFTI_VALUE_MAP && count % 2 != 0)
        return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "keys with values", "a key without");
    return sfti_machine_append(m, to, items, count);
}

static sft_code run_add_one(sfti_machine *m) {
    sfti_value_kind kind = (sfti_value_kind)m->op->detail;
    size_t count = kind == SFTI_VALUE_MAP ? 2 : 1;
    for (size_t i = 0; i < count; i++)
        if (!sfti_machine_pop(m)) return m->err->code;
    return add_items(m, kind, m->stack + m->depth, count);
}

static sft_code run_add_since(sfti_machine *m) {
    sfti_value **items;
    size_t count;
    sft_code code = sfti_machine_since(m, &items, &count);
    return code ? code : add_items(m, (sfti_value_kind)m->op->detail, items, count);
}

/* ── Names and what would be called ── */

static sft_code run_global(sfti_machine *m) {
    return sfti_machine_global(m, m->text, m->other);
}

static sft_code run_stack_global(sfti_machine *m) {
    sfti_value *name = sfti_machine_pop(m), *module = name ? sfti_machine_pop(m) : NULL;
    if (!module) return m->err->code;
    if (name->kind != SFTI_VALUE_TEXT || module->kind != SFTI_VALUE_TEXT)
        return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "a module and a name",
                                 sfti_value_kind_name(name->kind != SFTI_VALUE_TEXT
                                                          ? name->kind : module->kind));
    if (!name->u.text || !module->u.text)
        return sfti_machine_fail(m, SFT_FOREIGN_TABLE, "a name of at most 4096 bytes",
                                 "a longer one");
    return sfti_machine_global(m, (sft_span){ module->u.text, module->count },
                               (sft_span){ name->u.text, name->count });
}

/* REDUCE, NEWOBJ and NEWOBJ_EX: an object that names what a loader would call. */
static sft_code run_object(sfti_machine *m) {
    bool has_keywords = m->op->detail > 1;
    sfti_value *keywords = has_keywords ? sfti_machine_pop(m) : NULL;
    if (has_keywords && !keywords) return m->err->code;
    sfti_value *args = sfti_machine_pop(m), *callee = args ? sfti_machine_pop(m) : NULL;
    if (!callee) return m->err->code;
    if (args->kind != SFTI_VALUE_TUPLE)
        return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "a tuple of arguments",
                                 sfti_value_kind_name(args->kind));
    if (keywords && keywords->kind != SFTI_VALUE_MAP)
        return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "a dict of arguments",
                                 sfti_value_kind_name(keywords->kind));
    if (callee->kind != SFTI_VALUE_GLOBAL && callee->kind != SFTI_VALUE_OBJECT &&
        callee->kind != SFTI_VALUE_OUTSIDE)
        return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "a global",
                                 sfti_value_kind_name(callee->kind));
    sfti_value *value = sfti_machine_value(m, SFTI_VALUE_OBJECT);
    sfti_object *object = value ? sfti_arena_take(m->arena, sizeof *object) : NULL;
    if (!object) return value ? sfti_fail_memory(m->err, sizeof *object) : m->err->code;
    *object = (sfti_object){ .callee = callee, .args = args, .keywords = keywords,
                             .value = value };
    value->u.object = object;
    value->raw = m->op->detail > 0;
    if (callee->kind == SFTI_VALUE_GLOBAL) callee->u.global->calls++;
    uint8_t meaning = sfti_value_meaning(callee);
    if ((meaning >= SFTI_MEANS_MAP && meaning <= SFTI_MEANS_TAGGED) ||
        (meaning >= SFTI_MEANS_ARRAY && meaning <= SFTI_MEANS_NO_BYTES))
        hold_contents(args, HELD_LEVELS);
    if (m->last) m->last->next = object;
    else m->out.first = object;
    m->last = object;
    return sfti_machine_push(m, value);
}

static sft_code run_build(sfti_machine *m) {
    sfti_value *state = sfti_machine_pop(m), *to = state ? sfti_machine_top(m) : NULL;
    if (!to) return m->err->code;
    if (to->kind != SFTI_VALUE_OBJECT)
        return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "an object",
                                 sfti_value_kind_name(to->kind));
    if (to->u.object->state)
        return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "an object without a state",
                                 "one that has one");
    sft_code code = check_unheld(m, to);
    if (code) return code;
    hold_contents(state, 1);
    to->u.object->state = state;
    return SFT_OK;
}

static sft_code push_outside(sfti_machine *m, sfti_value *id) {
    sfti_value *value = sfti_machine_value(m, SFTI_VALUE_OUTSIDE);
    sfti_value **all = sfti_arena_grow(m->arena, m->out.outside, m->out.outside_count, 1,
                                       &m->outside_cap, sizeof *all);
    if (all) m->out.outside = all;
    if (!value || !all) return sfti_fail_memory(m->err, sizeof *value);
    value->u.outside = id;
    all[m->out.outside_count++] = value;
    return sfti_machine_push(m, value);
}

static sft_code run_outside(sfti_machine *m) {
    sfti_value *id = sfti_machine_pop(m);
    return id ? push_outside(m, id) : m->err->code;
}

static sft_code run_outside_line(sfti_machine *m) {
    sft_code code = push_text(m, m->text.data, m->text.len, true);
    return code ? code : run_outside(m);
}

/* ── Frames ── */

static sft_code run_proto(sfti_machine *m) {
    if (m->op_at != m->scan.input.begin)
        return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "it at the start only", "it within");
    if (m->number > 5)
        return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "a protocol up to 5", "a newer one");
    return SFT_OK;
}

static sft_code run_frame(sfti_machine *m) {
    if (m->number <= m->scan.input.end - sfti_scan_offset(&m->scan)) return SFT_OK;
    return sfti_machine_fail(m, SFT_FOREIGN_TRUNCATED, "a frame within the file",
                             "one that goes beyond");
}

static sft_code run_stop(sfti_machine *m) {
    if (m->depth == 1 && m->mark_count == 0) return SFT_OK;
    return sfti_machine_fail(m, SFT_FOREIGN_OPCODE, "exactly one value on the stack",
                             m->depth == 0 ? "none" : "more, or a mark");
}

const sfti_opcode sfti_opcodes[256] = {
    [0x80] = { "PROTO", run_proto, SFTI_ARG_U1, 0 },
    [0x95] = { "FRAME", run_frame, SFTI_ARG_U8, 0 },
    [SFTI_STOP] = { "STOP", run_stop, SFTI_ARG_NONE, 0 },
    [0x28] = { "MARK", sfti_machine_mark, SFTI_ARG_NONE, 0 },
    [0x30] = { "POP", run_pop, SFTI_ARG_NONE, 0 },
    [0x31] = { "POP_MARK", run_pop_mark, SFTI_ARG_NONE, 0 },
    [0x32] = { "DUP", run_dup, SFTI_ARG_NONE, 0 },
    [0x4e] = { "NONE", run_none, SFTI_ARG_NONE, 0 },
    [0x88] = { "NEWTRUE", run_bool, SFTI_ARG_NONE, 1 },
    [0x89] = { "NEWFALSE", run_bool, SFTI_ARG_NONE, 0 },
    [0x4a] = { "BININT", run_int, SFTI_ARG_I4, 0 },
    [0x4b] = { "BININT1", run_int, SFTI_ARG_U1, 0 },
    [0x4d] = { "BININT2", run_int, SFTI_ARG_U2, 0 },
    [0x8a] = { "LONG1", run_long, SFTI_ARG_U1, 0 },
    [0x8b] = { "LONG4", run_long, SFTI_ARG_I4, 0 },
    [0x47] = { "BINFLOAT", run_float, SFTI_ARG_F8, 0 },
    [0x49] = { "INT", run_decimal, SFTI_ARG_LINE, 1 },
    [0x4c] = { "LONG", run_decimal, SFTI_ARG_LINE, 0 },
    [0x46] = { "FLOAT", run_number, SFTI_ARG_LINE, 0 },
    [0x53] = { "STRING", run_escaped, SFTI_ARG_LINE, 1 },
    [0x56] = { "UNICODE", run_escaped, SFTI_ARG_LINE, 0 },
    [0x54] = { "BINSTRING", run_counted_text, SFTI_ARG_TEXTI4, 1 },
    [0x55] = { "SHORT_BINSTRING", run_counted_text, SFTI_ARG_TEXT1, 1 },
    [0x58] = { "BINUNICODE", run_counted_text, SFTI_ARG_TEXT4, 0 },
    [0x8c] = { "SHORT_BINUNICODE", run_counted_text, SFTI_ARG_TEXT1, 0 },
    [0x8d] = { "BINUNICODE8", run_counted_text, SFTI_ARG_TEXT8, 0 },
    [0x42] = { "BINBYTES", run_bytes, SFTI_ARG_BYTES4, 0 },
    [0x43] = { "SHORT_BINBYTES", run_bytes, SFTI_ARG_BYTES1, 0 },
    [0x8e] = { "BINBYTES8", run_bytes, SFTI_ARG_BYTES8, 0 },
    [0x96] = { "BYTEARRAY8", run_bytes, SFTI_ARG_BYTES8, 0 },
    [0x29] = { "EMPTY_TUPLE", run_empty, SFTI_ARG_NONE, SFTI_VALUE_TUPLE },
    [0x85] = { "TUPLE1", run_tuple, SFTI_ARG_NONE, 1 },
    [0x86] = { "TUPLE2", run_tuple, SFTI_ARG_NONE, 2 },
    [0x87] = { "TUPLE3", run_tuple, SFTI_ARG_NONE, 3 },
    [0x74] = { "TUPLE", run_since, SFTI_ARG_NONE, SFTI_VALUE_TUPLE },
    [0x5d] = { "EMPTY_LIST", run_empty, SFTI_ARG_NONE, SFTI_VALUE_LIST },
    [0x61] = { "APPEND", run_add_one, SFTI_ARG_NONE, SFTI_VALUE_LIST },
    [0x65] = { "APPENDS", run_add_since, SFTI_ARG_NONE, SFTI_VALUE_LIST },
    [0x6c] = { "LIST", run_since, SFTI_ARG_NONE, SFTI_VALUE_LIST },
    [0x7d] = { "EMPTY_DICT", run_empty, SFTI_ARG_NONE, SFTI_VALUE_MAP },
    [0x73] = { "SETITEM", run_add_one, SFTI_ARG_NONE, SFTI_VALUE_MAP },
    [0x75] = { "SETITEMS", run_add_since, SFTI_ARG_NONE, SFTI_VALUE_MAP },
    [0x64] = { "DICT", run_since, SFTI_ARG_NONE, SFTI_VALUE_MAP },
    [0x8f] = { "EMPTY_SET", run_empty, SFTI_ARG_NONE, SFTI_VALUE_SET },
    [0x90] = { "ADDITEMS", run_add_since, SFTI_ARG_NONE, SFTI_VALUE_SET },
    [0x91] = { "FROZENSET", run_since, SFTI_ARG_NONE, SFTI_VALUE_SET },
    [0x63] = { "GLOBAL", run_global, SFTI_ARG_LINES, 0 },
    [0x93] = { "STACK_GLOBAL", run_stack_global, SFTI_ARG_NONE, 0 },
    [0x52] = { "REDUCE", run_object, SFTI_ARG_NONE, 0 },
    [0x81] = { "NEWOBJ", run_object, SFTI_ARG_NONE, 1 },
    [0x92] = { "NEWOBJ_EX", run_object, SFTI_ARG_NONE, 2 },
    [0x62] = { "BUILD", run_build, SFTI_ARG_NONE, 0 },
    [0x51] = { "BINPERSID", run_outside, SFTI_ARG_NONE, 0 },
    [0x50] = { "PERSID", run_outside_line, SFTI_ARG_LINE, 0 },
    [0x67] = { "GET", run_memo_line, SFTI_ARG_LINE, 0 },
    [0x68] = { "BINGET", run_get, SFTI_ARG_U1, 0 },
    [0x6a] = { "LONG_BINGET", run_get, SFTI_ARG_U4, 0 },
    [0x70] = { "PUT", run_memo_line, SFTI_ARG_LINE, 1 },
    [0x71] = { "BINPUT", run_put, SFTI_ARG_U1, 0 },
    [0x72] = { "LONG_BINPUT", run_put, SFTI_ARG_U4, 0 },
    [0x94] = { "MEMOIZE", run_memoize, SFTI_ARG_NONE, 0 },
    [0x69] = { "INST", NULL, SFTI_ARG_NONE, 0 },
    [0x6f] = { "OBJ", NULL, SFTI_ARG_NONE, 0 },
    [0x82] = { "EXT1", NULL, SFTI_ARG_NONE, 0 },
    [0x83] = { "EXT2", NULL, SFTI_ARG_NONE, 0 },
    [0x84] = { "EXT4", NULL, SFTI_ARG_NONE, 0 },
    [0x97] = { "NEXT_BUFFER", NULL, SFTI_ARG_NONE, 0 },
    [0x98] = { "READONLY_BUFFER", NULL, SFTI_ARG_NONE, 0 },
};
