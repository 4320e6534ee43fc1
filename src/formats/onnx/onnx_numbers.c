/* Elements of a TensorProto that stand one by one in fields of their type, packed or not. In memory
 * they can be eight times as large as in the file, so they are made when they are read: of every
 * STEP elements it is known where the first one stands. */
#include "formats/onnx/onnx.h"
#include "formats/parts/state.h"

#define STEP 1024

/* Where an element stands: in the packed field [inner, inner_end), or, if that is at its end, in
 * the fields from `at` on. */
typedef struct onnx_place {
    uint64_t at, inner, inner_end;
} onnx_place;

typedef struct onnx_numbers {
    const sft_source *from; /* first: see sfti_mode_inner */
    sfti_import *im;
    uint64_t end; /* of the message */
    uint64_t field;
    sfti_wire_type type;
    unsigned width; /* bytes of an element: the lowest of its number */
    onnx_place *places;
} onnx_numbers;

/* The next number of the fields; *more is false at their end. */
static sft_code next_number(const onnx_numbers *n, sfti_wire *wire, onnx_place *place,
                            uint64_t *value, bool *more) {
    *more = true;
    while (place->inner == place->inner_end) {
        sfti_wire_field field;
        *wire = sfti_wire_inside(wire, place->at, n->end);
        sft_code code = sfti_wire_next(wire, &field, more);
        if (code || !*more) return code;
        place->at = wire->at;
        if (field.number != n->field) continue;
        *value = field.value;
        if (field.type != SFTI_WIRE_BYTES) return SFT_OK;
        place->inner = field.begin;
        place->inner_end = field.end;
    }
    *wire = sfti_wire_inside(wire, place->inner, place->inner_end);
    sft_code code = sfti_wire_number(wire, n->type, value);
    place->inner = wire->at;
    return code;
}

/* Bytes [offset, offset + len) from the place on of the element that has the first one, or is
 * before it. */
static sft_code copy_numbers(const onnx_numbers *n, sfti_wire *wire, uint64_t offset, uint8_t *into,
                             size_t len) {
    uint64_t element = offset / n->width / STEP * STEP, value;
    onnx_place place = n->places[element / STEP];
    for (size_t done = 0; done < len; element++) {
        bool more;
        sft_code code = next_number(n, wire, &place, &value, &more);
        if (code || !more) return code ? code : SFT_FOREIGN_TRUNCATED;
        for (unsigned i = 0; i < n->width && done < len; i++)
            if (element * n->width + i >= offset) into[done++] = (uint8_t)(value >> 8 * i);
    }
    return SFT_OK;
}

/* The workspace has the wire's buffer, and its lock the import's error. */
static sft_code read_numbers(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                             sft_error *err) {
    const onnx_numbers *n = ctx;
    *got = 0;
    sft_code code = sfti_work_begin(n->im, err);
    if (code) return code;
    sfti_wire wire = { n->im, n->from, 0, 0, (sfti_wire_buffer *)(void *)n->im->work.in };
    wire.buffer->have = wire.buffer->len = 0;
    n->im->err = err;
    code = copy_numbers(n, &wire, offset, into, len);
    n->im->err = NULL;
    sfti_work_end(n->im);
    if (!code) *got = len;
    return code;
}

static const sft_source_vtable onnx_numbers_vtable = {
    sizeof(sft_source_vtable), read_numbers, NULL, NULL, sfti_mode_inner
};

sft_code sfti_onnx_numbers(sfti_import *im, const sfti_wire *message, uint64_t field,
                           sfti_wire_type type, unsigned width, uint64_t most, uint64_t *count,
                           const sft_source **out) {
    sfti_arena *arena = &im->arena;
    onnx_numbers *n = sfti_arena_take(arena, sizeof *n);
    uint64_t steps = most / STEP + 1, value;
    sfti_wire wire = *message;
    onnx_place place = { message->at, 0, 0 };
    bool more = true;
    sft_code code = SFT_OK;
    if (!n) return sfti_fail_memory(im->err, sizeof *n);
    *n = (onnx_numbers){ message->source, im, message->end, field, type, width,
                         sfti_arena_array(arena, steps, sizeof *n->places) };
    if (!n->places) return sfti_fail_memory(im->err, steps);
    for (*count = 0;; ++*count) {
        if (*count % STEP == 0 && *count / STEP < steps) n->places[*count / STEP] = place;
        code = next_number(n, &wire, &place, &value, &more);
        if (code || !more) break;
    }
    if (code) return code;
    sft_source source = { n, &onnx_numbers_vtable, *count * width, NULL, false };
    return sfti_import_own(im, &source, out);
}
