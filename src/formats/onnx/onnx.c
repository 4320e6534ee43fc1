/* ONNX: a protocol buffer whose graph has tensors, inside the file or in files beside it. Fields
 * and types: onnx/onnx.proto, docs/ExternalData.md of the ONNX repository. */
#include "formats/onnx/onnx.h"

#include <string.h>

/* ── The model ── */

#define MODEL_GRAPH 7
#define MODEL_FUNCTIONS 25
#define GRAPH_NODE 1
#define GRAPH_INITIALIZER 5
#define GRAPH_SPARSE 15
#define NODE_OUTPUT 2
#define NODE_ATTRIBUTE 5
#define FUNCTION_NODE 7
#define ATTRIBUTE_TENSOR 5
#define ATTRIBUTE_GRAPH 6
#define ATTRIBUTE_TENSORS 10
#define ATTRIBUTE_GRAPHS 11

#define ONNX_DEPTH 64
#define ONNX_NAME_MOST 65536

/* A message that is read, and those around it. */
typedef enum onnx_kind {
    ONNX_MODEL, ONNX_GRAPH, ONNX_FUNCTION, ONNX_NODE, ONNX_ATTRIBUTE
} onnx_kind;

typedef struct onnx_frame {
    onnx_kind kind;
    uint64_t at, end;
    sft_span output; /* of the node */
    uint32_t seen;   /* a bit for each number of a message that it has once */
} onnx_frame;

typedef struct onnx_walk {
    sfti_import *im;
    sfti_wire wire;
    onnx_frame frames[ONNX_DEPTH];
    size_t depth;
    bool all;             /* constants in nodes, subgraphs and functions, too */
    uint64_t nested;      /* that are left out otherwise */
    uint64_t nested_bytes;
} onnx_walk;

/* What a field of a message is, if it is to be entered. */
static const struct onnx_inside {
    onnx_kind in;
    uint64_t number;
    onnx_kind kind;
} insides[] = {
    { ONNX_MODEL, MODEL_GRAPH, ONNX_GRAPH },
    { ONNX_MODEL, MODEL_FUNCTIONS, ONNX_FUNCTION },
    { ONNX_GRAPH, GRAPH_NODE, ONNX_NODE },
    { ONNX_FUNCTION, FUNCTION_NODE, ONNX_NODE },
    { ONNX_NODE, NODE_ATTRIBUTE, ONNX_ATTRIBUTE },
    { ONNX_ATTRIBUTE, ATTRIBUTE_GRAPH, ONNX_GRAPH },
    { ONNX_ATTRIBUTE, ATTRIBUTE_GRAPHS, ONNX_GRAPH },
};
#define INSIDES (sizeof insides / sizeof *insides)

static sft_code take_field(onnx_walk *w, const sfti_wire_field *field) {
    onnx_frame *frame = &w->frames[w->depth - 1];
    const bool attribute = frame->kind == ONNX_ATTRIBUTE;
    uint64_t number = field->number;
    if (field->type != SFTI_WIRE_BYTES) return SFT_OK; /* of no message that is entered */

    /* A message that is there twice is one to the readers of protocol buffers, with the fields of
     * both. */
    if ((frame->kind == ONNX_MODEL && number == MODEL_GRAPH)
        || (attribute && (number == ATTRIBUTE_TENSOR || number == ATTRIBUTE_GRAPH))) {
        if (frame->seen >> number & 1)
            return sfti_fail_byte(w->im->err, SFT_FOREIGN_AMBIGUOUS, field->at,
                                  "expected a graph or tensor once, found it again");
        frame->seen |= UINT32_C(1) << number;
    }

    /* The first graph is the model; tensors of other places only with `all`. The name of a node's
     * constant is that of its output, for the tensor has none, or one that others have, too. */
    if ((frame->kind == ONNX_GRAPH && number == GRAPH_INITIALIZER)
        || (attribute && (number == ATTRIBUTE_TENSOR || number == ATTRIBUTE_TENSORS))) {
        bool outer = w->depth == 2 && frame->kind == ONNX_GRAPH;
        sft_span name = { NULL, 0 };
        size_t d = attribute ? w->depth : 0;
        while (d > 0 && w->frames[d - 1].kind != ONNX_NODE) d--;
        if (d > 0) name = w->frames[d - 1].output;
        if (outer || w->all) return sfti_onnx_tensor(w->im, &w->wire, field, name);
        w->nested++;
        sfti_total_add(&w->nested_bytes, field->end - field->begin);
        return SFT_OK;
    }
    if (frame->kind == ONNX_GRAPH && number == GRAPH_SPARSE)
        return sfti_import_refuse(w->im, (sft_span){ "sparse_initializer", 18 },
                                  field->end - field->begin, SFT_FOREIGN_OBJECT, field->at,
                                  "expected dense tensors, found a sparse one");
    if (frame->kind == ONNX_NODE && number == NODE_OUTPUT && !frame->output.data)
        return sfti_wire_text(&w->wire, field, ONNX_NAME_MOST, &frame->output);

    size_t i = 0;
    while (i < INSIDES && (insides[i].in != frame->kind || insides[i].number != number)) i++;
    if (i == INSIDES) return SFT_OK;
    if (w->depth == ONNX_DEPTH)
        return sfti_fail_byte(w->im->err, SFT_FOREIGN_NESTING, field->at,
                              "expected at most %d levels of messages, found more", ONNX_DEPTH);
    w->frames[w->depth++] =
        (onnx_frame){ .kind = insides[i].kind, .at = field->begin, .end = field->end };
    return SFT_OK;
}

static sft_code walk_model(onnx_walk *w) {
    while (w->depth > 0) {
        onnx_frame *frame = &w->frames[w->depth - 1];
        sfti_wire_field field;
        bool more;
        w->wire = sfti_wire_inside(&w->wire, frame->at, frame->end);
        sft_code code = sfti_wire_next(&w->wire, &field, &more);
        frame->at = w->wire.at;
        if (!code && more) code = take_field(w, &field);
        else w->depth--;
        if (code) return code;
    }
    return SFT_OK;
}

sft_code sfti_read_onnx(sfti_import *im) {
    const sft_source *source = im->input;
    onnx_walk *w = sfti_arena_take(&im->arena, sizeof *w);
    if (!w) return sfti_fail_memory(im->err, sizeof *w);
    memset(w, 0, sizeof *w);
    w->im = im;
    w->all = im->options.all;
    w->frames[0] = (onnx_frame){ .kind = ONNX_MODEL, .end = source->size };
    w->depth = 1;
    sft_code code = sfti_wire_open(im, source, 0, source->size, &w->wire);
    if (!code) code = walk_model(w);
    if (code || w->nested == 0) return code;
    return sfti_import_leave(im, SFT_IMPORT_LEFT_BRANCH, sft_span_cstr("nodes"), w->nested,
                             w->nested_bytes, "constants of nodes and subgraphs");
}

/* ── Recognition: there is no magic number ── */

bool sfti_is_onnx(sfti_import *im, const uint8_t *head, size_t len) {
    /* Fields of a ModelProto that are messages or text. */
    static const uint64_t texts =
        1u << 2 | 1u << 3 | 1u << 4 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 14 | 1u << 20 | 1u << 25
        | 1u << 26;
    const sft_source *source = im->input;
    sfti_wire wire;
    sfti_wire_field field;
    bool more = true, has_graph = false, has_version = false;
    if (len < 8 || (head[0] & 7) == 3 || (head[0] & 7) == 4) return false;
    if (sfti_wire_open(im, source, 0, source->size, &wire)) return false;
    for (size_t fields = 0; fields < 100000; fields++) {
        if (sfti_wire_next(&wire, &field, &more) || !more) break;
        bool is_number = field.number == 1 || field.number == 5;
        if (field.number > 26) return false;
        if (is_number ? field.type != SFTI_WIRE_VARINT
                      : field.type != SFTI_WIRE_BYTES || !(texts >> field.number & 1))
            return false;
        has_graph |= field.number == MODEL_GRAPH;
        has_version |= field.number == 1 && field.value > 0 && field.value < 1000;
    }
    /* A cut file has the version and the beginning of the graph. */
    if (!more) return has_graph && has_version;
    return has_version && field.number == MODEL_GRAPH && field.type == SFTI_WIRE_BYTES;
}
