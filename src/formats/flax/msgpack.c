/* Values of MessagePack are read one by one. */
#include "formats/flax/msgpack.h"

/* Codes from c0 on: what they begin, and the bytes of the number behind them (a length, or the
 * value itself). */
static const struct msgpack_code {
    uint8_t kind, bytes;
    bool is_signed;
} msgpack_codes[0x20] = {
    [0x00] = { SFTI_MSGPACK_NIL, 0, false },   [0x02] = { SFTI_MSGPACK_BOOL, 0, false },
    [0x03] = { SFTI_MSGPACK_BOOL, 0, false },  [0x04] = { SFTI_MSGPACK_BYTES, 1, false },
    [0x05] = { SFTI_MSGPACK_BYTES, 2, false }, [0x06] = { SFTI_MSGPACK_BYTES, 4, false },
    [0x07] = { SFTI_MSGPACK_EXT, 1, false },   [0x08] = { SFTI_MSGPACK_EXT, 2, false },
    [0x09] = { SFTI_MSGPACK_EXT, 4, false },   [0x0a] = { SFTI_MSGPACK_FLOAT, 4, false },
    [0x0b] = { SFTI_MSGPACK_FLOAT, 8, false }, [0x0c] = { SFTI_MSGPACK_INT, 1, false },
    [0x0d] = { SFTI_MSGPACK_INT, 2, false },   [0x0e] = { SFTI_MSGPACK_INT, 4, false },
    [0x0f] = { SFTI_MSGPACK_INT, 8, false },   [0x10] = { SFTI_MSGPACK_INT, 1, true },
    [0x11] = { SFTI_MSGPACK_INT, 2, true },    [0x12] = { SFTI_MSGPACK_INT, 4, true },
    [0x13] = { SFTI_MSGPACK_INT, 8, true },    [0x14] = { SFTI_MSGPACK_EXT, 0, false },
    [0x15] = { SFTI_MSGPACK_EXT, 0, false },   [0x16] = { SFTI_MSGPACK_EXT, 0, false },
    [0x17] = { SFTI_MSGPACK_EXT, 0, false },   [0x18] = { SFTI_MSGPACK_EXT, 0, false },
    [0x19] = { SFTI_MSGPACK_TEXT, 1, false },  [0x1a] = { SFTI_MSGPACK_TEXT, 2, false },
    [0x1b] = { SFTI_MSGPACK_TEXT, 4, false },  [0x1c] = { SFTI_MSGPACK_LIST, 2, false },
    [0x1d] = { SFTI_MSGPACK_LIST, 4, false },  [0x1e] = { SFTI_MSGPACK_MAP, 2, false },
    [0x1f] = { SFTI_MSGPACK_MAP, 4, false },
};

static sft_code msgpack_fail(const sfti_wire *wire, uint64_t at, const char *expected) {
    return sfti_fail_byte(wire->im->err, SFT_FOREIGN_SYNTAX, at,
                          "expected %s, found something else", expected);
}

static sft_code take_byte(sfti_wire *wire, uint64_t at, uint8_t *out) {
    if (wire->at >= wire->end) return msgpack_fail(wire, at, "a whole value");
    return sfti_wire_byte(wire, out);
}

static sft_code take_big(sfti_wire *wire, sfti_msgpack *out, uint8_t bytes) {
    out->number = 0;
    for (uint8_t i = 0; i < bytes; i++) {
        uint8_t byte;
        sft_code code = take_byte(wire, out->at, &byte);
        if (code) return code;
        out->number = out->number << 8 | byte;
    }
    return SFT_OK;
}

/* Codes that have their value or length in them. */
static void take_short(uint8_t code, sfti_msgpack *out) {
    out->kind = code < 0x80   ? SFTI_MSGPACK_INT
                : code < 0x90 ? SFTI_MSGPACK_MAP
                : code < 0xa0 ? SFTI_MSGPACK_LIST
                : code < 0xc0 ? SFTI_MSGPACK_TEXT
                              : SFTI_MSGPACK_INT;
    out->number = code < 0x80 ? code : code >= 0xe0 ? (uint64_t)(int64_t)(int8_t)code : 0;
    out->negative = code >= 0xe0;
    out->len = code >= 0xa0 ? code & 0x1f : code & 0x0f;
}

static sft_code take_long(sfti_wire *wire, uint8_t code, sfti_msgpack *out) {
    const struct msgpack_code *row = &msgpack_codes[code - 0xc0];
    if (code == 0xc1) return msgpack_fail(wire, out->at, "a value");
    sft_code failed = take_big(wire, out, row->bytes);
    if (failed) return failed;
    out->kind = (sfti_msgpack_kind)row->kind;
    out->len = out->number;
    if (code >= 0xd4 && code <= 0xd8) out->len = UINT64_C(1) << (code - 0xd4);
    if (out->kind == SFTI_MSGPACK_BOOL) out->number = code == 0xc3;
    if (!row->is_signed) return SFT_OK;
    unsigned unused = 64 - 8u * row->bytes;
    out->negative = out->number >> (8 * row->bytes - 1) & 1;
    if (out->negative && unused) out->number |= UINT64_MAX << (64 - unused);
    return SFT_OK;
}

sft_code sfti_msgpack_next(sfti_wire *wire, sfti_msgpack *out) {
    uint8_t code, ext = 0;
    *out = (sfti_msgpack){ .at = wire->at };
    sft_code failed = take_byte(wire, out->at, &code);
    if (failed) return failed;
    if (code >= 0xc0 && code < 0xe0) failed = take_long(wire, code, out);
    else take_short(code, out);
    if (failed) return failed;
    if (out->kind == SFTI_MSGPACK_EXT) failed = take_byte(wire, out->at, &ext);
    if (failed) return failed;
    out->ext = (int8_t)ext;
    out->begin = wire->at;
    if (out->kind != SFTI_MSGPACK_TEXT && out->kind != SFTI_MSGPACK_BYTES
        && out->kind != SFTI_MSGPACK_EXT)
        return SFT_OK;
    if (out->len > wire->end - wire->at)
        return msgpack_fail(wire, out->at, "bytes before the end of the file");
    wire->at += out->len;
    return SFT_OK;
}
