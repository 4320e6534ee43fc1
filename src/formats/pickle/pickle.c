/* A pickle is run, opcode by opcode. Tests: test_import_pickle.c. */
#include "formats/pickle/pickle.h"

#include "base/endian.h"
#include "formats/pickle/pickle_stack.h"
#include "os/io.h"

#include <string.h>

/* The length of a counted argument, and its bytes. */
static sft_code counted_argument(sfti_machine *m, size_t width, bool sign, bool text) {
    const uint8_t *bytes = sfti_scan_take(&m->scan, width);
    if (!bytes) return m->err->code;
    m->number = width == 1 ? bytes[0] : width == 4 ? sfti_get_u32(bytes) : sfti_get_u64(bytes);
    if (sign && m->number > INT32_MAX)
        return sfti_machine_fail(m, SFT_FOREIGN_SYNTAX, "a length", "a negative number");
    m->text_at = sfti_scan_offset(&m->scan);
    m->text = (sft_span){ NULL, 0 };
    if (!text || m->number > SFTI_SCAN_TEXT) m->skipped += m->number;
    return sfti_scan_skip(&m->scan, m->number, text ? &m->text.data : NULL);
}

static sft_code fixed(sfti_machine *m, size_t width) {
    const uint8_t *bytes = sfti_scan_take(&m->scan, width);
    if (!bytes) return m->err->code;
    m->number = width == 1 ? bytes[0] : width == 2 ? sfti_get_u16(bytes)
              : width == 4 ? sfti_get_u32(bytes) : sfti_get_u64(bytes);
    return SFT_OK;
}

static sft_code line(sfti_machine *m, sft_span *out) {
    m->text_at = sfti_scan_offset(&m->scan);
    return sfti_scan_line(&m->scan, out);
}

static sft_code argument(sfti_machine *m) {
    const uint8_t *bytes;
    uint64_t bits = 0;
    sft_code code;
    switch ((sfti_argument)m->op->argument) {
    case SFTI_ARG_NONE: return SFT_OK;
    case SFTI_ARG_U1: return fixed(m, 1);
    case SFTI_ARG_U2: return fixed(m, 2);
    case SFTI_ARG_U4: return fixed(m, 4);
    case SFTI_ARG_U8: return fixed(m, 8);
    case SFTI_ARG_I4:
        code = fixed(m, 4);
        if (m->number > INT32_MAX) m->number |= (uint64_t)UINT32_MAX << 32;
        return code;
    case SFTI_ARG_F8: /* big-endian */
        if (!(bytes = sfti_scan_take(&m->scan, 8))) return m->err->code;
        for (size_t i = 0; i < 8; i++) bits = bits << 8 | bytes[i];
        memcpy(&m->real, &bits, sizeof bits);
        return SFT_OK;
    case SFTI_ARG_LINE: return line(m, &m->text);
    case SFTI_ARG_LINES:
        code = line(m, &m->text);
        return code ? code : line(m, &m->other);
    case SFTI_ARG_TEXT1: return counted_argument(m, 1, false, true);
    case SFTI_ARG_TEXT4: return counted_argument(m, 4, false, true);
    case SFTI_ARG_TEXTI4: return counted_argument(m, 4, true, true);
    case SFTI_ARG_TEXT8: return counted_argument(m, 8, false, true);
    case SFTI_ARG_BYTES1: return counted_argument(m, 1, false, false);
    case SFTI_ARG_BYTES4: return counted_argument(m, 4, false, false);
    case SFTI_ARG_BYTES8: return counted_argument(m, 8, false, false);
    }
    return SFT_OK;
}

static sft_code step(sfti_machine *m) {
    m->op_at = sfti_scan_offset(&m->scan);
    m->op = &sfti_opcodes[0];
    const uint8_t *byte = sfti_scan_take(&m->scan, 1);
    if (!byte) return m->err->code;
    m->op = &sfti_opcodes[*byte];
    if (!m->op->run) {
        if (m->op->name)
            return sfti_fail_byte(m->err, SFT_FOREIGN_OPCODE, m->op_at,
                                  "expected an opcode that checkpoints have, found %s",
                                  m->op->name);
        return sfti_fail_byte(m->err, SFT_FOREIGN_OPCODE, m->op_at,
                              "expected an opcode, found byte 0x%02x", *byte);
    }
    sft_code code = argument(m);
    return code ? code : m->op->run(m);
}

sft_code sfti_pickle_read(const sfti_pickle_input *input, sfti_arena *arena, sfti_pickle *out,
                          sft_error *err) {
    sft_error own = SFT_ERROR_INIT;
    sfti_machine *m = sfti_take(&arena->alloc, sizeof *m);
    if (!m) return sfti_fail_memory(err, sizeof *m);
    *m = (sfti_machine){ .arena = arena, .err = err ? err : &own, .op = &sfti_opcodes[0] };
    sfti_seed_draw(m, m->seed);
    sft_code code = sfti_scan_begin(&m->scan, input, arena, m->err);
    while (!code) {
        code = step(m);
        uint64_t read = sfti_scan_offset(&m->scan) - m->scan.input.begin - m->skipped;
        if (!code && read > SFTI_PICKLE_OPS)
            code = sfti_machine_fail(m, SFT_FOREIGN_TABLE, "at most 1 GiB of opcodes", "more");
        if (m->op == &sfti_opcodes[SFTI_STOP]) break;
    }
    if (!code) {
        *out = m->out;
        out->root = m->stack[0];
        out->end = sfti_scan_offset(&m->scan);
    }
    sfti_scan_end(&m->scan);
    sfti_release(&arena->alloc, m->stack, m->stack_cap * sizeof *m->stack);
    sfti_release(&arena->alloc, m->marks, m->mark_cap * sizeof *m->marks);
    sfti_release(&arena->alloc, m, sizeof *m);
    return code;
}
