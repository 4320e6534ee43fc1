/* Fields of protocol buffers are read one by one. */
#include "formats/parts/wire.h"

sft_code sfti_wire_open(sfti_import *im, const sft_source *source, uint64_t begin, uint64_t end,
                        sfti_wire *out) {
    *out = (sfti_wire){ im, source, begin, end, NULL };
    out->buffer = sfti_arena_take(&im->arena, sizeof *out->buffer);
    if (!out->buffer) return sfti_fail_memory(im->err, sizeof *out->buffer);
    out->buffer->have = 0;
    out->buffer->len = 0;
    return SFT_OK;
}

sfti_wire sfti_wire_inside(const sfti_wire *wire, uint64_t begin, uint64_t end) {
    sfti_wire inside = *wire;
    inside.at = begin;
    inside.end = end;
    return inside;
}

sft_code sfti_wire_byte(sfti_wire *wire, uint8_t *out) {
    sfti_wire_buffer *buffer = wire->buffer;
    if (wire->at < buffer->have || wire->at - buffer->have >= buffer->len) {
        uint64_t left = wire->source->size - wire->at;
        size_t some = left < SFTI_WIRE_BUFFER ? (size_t)left : SFTI_WIRE_BUFFER;
        buffer->len = 0;
        sft_code code = sfti_import_read(wire->im, wire->source, wire->at, buffer->bytes, some);
        if (code) return code;
        buffer->have = wire->at;
        buffer->len = some;
    }
    *out = buffer->bytes[wire->at++ - buffer->have];
    return SFT_OK;
}

static sft_code wire_short(sfti_wire *wire, uint64_t at, const char *expected) {
    return sfti_fail_byte(wire->im->err, SFT_FOREIGN_SYNTAX, at,
                          "expected %s, found the end of what it is in at byte %llu", expected,
                          (unsigned long long)wire->end);
}

sft_code sfti_wire_varint(sfti_wire *wire, uint64_t *out) {
    uint64_t begin = wire->at;
    uint8_t byte = 0x80;
    *out = 0;
    for (unsigned shift = 0; byte & 0x80; shift += 7) {
        if (wire->at >= wire->end) return wire_short(wire, begin, "a number");
        sft_code code = sfti_wire_byte(wire, &byte);
        if (code) return code;
        if (shift > 63 || (shift == 63 && (byte & 0x7f) > 1))
            return sfti_fail_byte(wire->im->err, SFT_FOREIGN_SYNTAX, begin,
                                  "expected a number of at most 64 bits, found a longer one");
        *out |= (uint64_t)(byte & 0x7f) << shift;
    }
    return SFT_OK;
}

static sft_code wire_fixed(sfti_wire *wire, size_t len, uint64_t *out) {
    uint64_t begin = wire->at;
    uint8_t byte;
    *out = 0;
    if (wire->end - wire->at < len) return wire_short(wire, begin, "a number");
    for (size_t i = 0; i < len; i++) {
        sft_code code = sfti_wire_byte(wire, &byte);
        if (code) return code;
        *out |= (uint64_t)byte << 8 * i;
    }
    return SFT_OK;
}

sft_code sfti_wire_number(sfti_wire *wire, sfti_wire_type type, uint64_t *out) {
    if (type == SFTI_WIRE_VARINT) return sfti_wire_varint(wire, out);
    return wire_fixed(wire, type == SFTI_WIRE_64 ? 8 : 4, out);
}

/* Readers differ in what they make of a tag or length in more bytes than 32 bits need. */
static sft_code wire_varint32(sfti_wire *wire, uint64_t *out) {
    uint64_t begin = wire->at;
    sft_code code = sfti_wire_varint(wire, out);
    if (code || wire->at - begin <= 5) return code;
    return sfti_fail_byte(wire->im->err, SFT_FOREIGN_SYNTAX, begin,
                          "expected a tag or length of at most 5 bytes, found a longer one");
}

sft_code sfti_wire_next(sfti_wire *wire, sfti_wire_field *out, bool *more) {
    uint64_t tag;
    *out = (sfti_wire_field){ .at = wire->at };
    *more = wire->at < wire->end;
    if (!*more) return SFT_OK;
    sft_code code = wire_varint32(wire, &tag);
    if (code) return code;
    out->number = tag >> 3;
    out->type = (sfti_wire_type)(tag & 7);
    if (out->number == 0 || out->number >= UINT64_C(1) << 29) out->type = (sfti_wire_type)7;
    switch (out->type) {
    case SFTI_WIRE_VARINT:
    case SFTI_WIRE_64:
    case SFTI_WIRE_32: return sfti_wire_number(wire, out->type, &out->value);
    case SFTI_WIRE_BYTES:
        code = wire_varint32(wire, &out->value);
        if (code) return code;
        if (out->value > wire->end - wire->at) return wire_short(wire, out->at, "a field's bytes");
        out->begin = wire->at;
        out->end = wire->at += out->value;
        return SFT_OK;
    }
    return sfti_fail_byte(wire->im->err, SFT_FOREIGN_SYNTAX, out->at,
                          "expected a field of a protocol buffer, found tag %llu",
                          (unsigned long long)tag);
}

sft_code sfti_wire_text(sfti_wire *wire, const sfti_wire_field *field, uint64_t most,
                        sft_span *out) {
    uint8_t *bytes;
    uint64_t len = field->end - field->begin;
    if (field->type != SFTI_WIRE_BYTES || len > most)
        return sfti_fail_byte(wire->im->err, SFT_FOREIGN_SYNTAX, field->at,
                              "expected text of at most %llu bytes, found %llu",
                              (unsigned long long)most, (unsigned long long)len);
    sft_code code = sfti_import_load(wire->im, wire->source, field->begin, len, &bytes);
    if (!code) *out = (sft_span){ (const char *)bytes, (size_t)len };
    return code;
}
