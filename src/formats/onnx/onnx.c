/* ONNX: a protocol buffer whose graph has tensors, inside the file or in files beside it. Fields
 * and types: onnx/onnx.proto, docs/ExternalData.md of the ONNX repository. */
#include "formats/onnx/onnx.h"

#include "base/number.h"
#include "os/io.h"

#include <string.h>

/* ── The model ── */

#define MODEL_GRAPH 7
#define MODEL_TRAINING 20
#define MODEL_FUNCTIONS 25
#define TRAINING_INITIALIZATION 1
#define TRAINING_ALGORITHM 2
#define GRAPH_NODE 1
#define GRAPH_INITIALIZER 5
#define GRAPH_SPARSE 15
#define NODE_OUTPUT 2
#define NODE_OPERATION 4
#define NODE_ATTRIBUTE 5
#define NODE_DOMAIN 7
#define FUNCTION_NODE 7
#define FUNCTION_DEFAULT 11
#define ATTRIBUTE_TENSOR 5
#define ATTRIBUTE_GRAPH 6
#define ATTRIBUTE_TENSORS 10
#define ATTRIBUTE_GRAPHS 11
#define ATTRIBUTE_SPARSE 22
#define ATTRIBUTE_SPARSES 23

#define ONNX_DEPTH 64
#define ONNX_NAME_MOST 65536
/* All paths together: the name of an outer node is in that of each tensor inside. */
#define ONNX_PATHS_MOST (UINT64_C(64) << 20)

/* A message that is read, and those around it. */
typedef enum onnx_kind {
    ONNX_MODEL, ONNX_GRAPH, ONNX_TRAINING, ONNX_FUNCTION, ONNX_NODE, ONNX_ATTRIBUTE
} onnx_kind;

typedef struct onnx_frame {
    onnx_kind kind;
    uint64_t at, end;
    sft_span name;    /* of an attribute, or of a node's first output */
    uint64_t tensors; /* of the attribute so far */
    bool is_constant; /* the node is ONNX's Constant */
    uint32_t seen;    /* a bit for each number of a message that it has once */
} onnx_frame;

/* What an item of the import is called if others have its name, too. */
typedef struct onnx_path {
    size_t item;
    sft_span name;
} onnx_path;

typedef struct onnx_walk {
    sfti_import *im;
    sfti_wire wire;
    onnx_frame frames[ONNX_DEPTH];
    size_t depth;
    bool all;             /* constants in nodes, subgraphs, functions and training, too */
    uint64_t nested;      /* that are left out otherwise */
    uint64_t nested_bytes;
    uint64_t nodes;
    onnx_path *paths;
    size_t path_count, path_cap;
    uint64_t path_bytes;
} onnx_walk;

/* What a field of a message is, if it is to be entered. */
static const struct onnx_inside {
    onnx_kind in;
    uint64_t number;
    onnx_kind kind;
} insides[] = {
    { ONNX_MODEL, MODEL_GRAPH, ONNX_GRAPH },
    { ONNX_MODEL, MODEL_FUNCTIONS, ONNX_FUNCTION },
    { ONNX_MODEL, MODEL_TRAINING, ONNX_TRAINING },
    { ONNX_TRAINING, TRAINING_INITIALIZATION, ONNX_GRAPH },
    { ONNX_TRAINING, TRAINING_ALGORITHM, ONNX_GRAPH },
    { ONNX_GRAPH, GRAPH_NODE, ONNX_NODE },
    { ONNX_FUNCTION, FUNCTION_NODE, ONNX_NODE },
    { ONNX_FUNCTION, FUNCTION_DEFAULT, ONNX_ATTRIBUTE },
    { ONNX_NODE, NODE_ATTRIBUTE, ONNX_ATTRIBUTE },
    { ONNX_ATTRIBUTE, ATTRIBUTE_GRAPH, ONNX_GRAPH },
    { ONNX_ATTRIBUTE, ATTRIBUTE_GRAPHS, ONNX_GRAPH },
};
#define INSIDES (sizeof insides / sizeof *insides)

/* What a field is: a tensor, a sparse one, an attribute that is a constant as numbers or text. */
typedef enum onnx_holds { HOLDS_NONE, HOLDS_TENSOR, HOLDS_SPARSE, HOLDS_VALUE } onnx_holds;

static sft_code find_held(onnx_walk *w, const sfti_wire_field *field, onnx_holds *out) {
    const onnx_frame *frame = &w->frames[w->depth - 1];
    uint64_t number = field->number;
    bool is_value = false;
    *out = HOLDS_NONE;
    if (frame->kind == ONNX_GRAPH) {
        if (number == GRAPH_INITIALIZER) *out = HOLDS_TENSOR;
        if (number == GRAPH_SPARSE) *out = HOLDS_SPARSE;
    } else if (frame->kind == ONNX_ATTRIBUTE) {
        if (number == ATTRIBUTE_TENSOR || number == ATTRIBUTE_TENSORS) *out = HOLDS_TENSOR;
        if (number == ATTRIBUTE_SPARSE || number == ATTRIBUTE_SPARSES) *out = HOLDS_SPARSE;
    } else if (frame->is_constant && number == NODE_ATTRIBUTE) {
        sft_code code = sfti_onnx_is_value(w->im, &w->wire, field, &is_value);
        if (is_value) *out = HOLDS_VALUE;
        return code;
    }
    return SFT_OK;
}

/* The name of a node's constant is that of its output, for the tensor has none, or one that others
 * have, too. Data NULL: it is in no node. */
static sft_span output_name(const onnx_walk *w) {
    size_t d = w->depth;
    if (w->frames[d - 1].kind == ONNX_GRAPH) return (sft_span){ NULL, 0 };
    while (d > 0 && w->frames[d - 1].kind != ONNX_NODE) d--;
    return d > 0 ? w->frames[d - 1].name : (sft_span){ NULL, 0 };
}

/* Outputs and attributes that lead to a tensor, its number among several of an attribute, and its
 * own name in a graph, joined by dots. */
static sft_code add_path(onnx_walk *w, sft_span own) {
    const onnx_frame *last = &w->frames[w->depth - 1];
    char number[SFTI_UINT_SIZE];
    sft_span pieces[ONNX_DEPTH + 1];
    size_t count = 0, len = 0, at = 0;
    for (size_t d = 0; d < w->depth; d++)
        if (w->frames[d].name.len > 0) pieces[count++] = w->frames[d].name;
    if (last->kind == ONNX_GRAPH) pieces[count++] = own;
    else if (last->tensors > 1)
        pieces[count++] = (sft_span){ number, sfti_uint_text(last->tensors - 1, 0, number) };
    for (size_t i = 0; i < count; i++) len += pieces[i].len + 1;
    w->path_bytes += len;
    if (len == 0 || len > ONNX_NAME_MOST || w->path_bytes > ONNX_PATHS_MOST) return SFT_OK;
    char *text = sfti_arena_take(&w->im->arena, len);
    onnx_path *paths = sfti_arena_grow(&w->im->arena, w->paths, w->path_count, 1, &w->path_cap,
                                       sizeof *paths);
    if (!text || !paths) return sfti_fail_memory(w->im->err, len);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + at, pieces[i].data, pieces[i].len);
        at += pieces[i].len;
        text[at++] = '.';
    }
    w->paths = paths;
    paths[w->path_count++] = (onnx_path){ w->im->items.count - 1, { text, len - 1 } };
    return SFT_OK;
}

/* Names that several have (of constants of one node, or in both branches of an If) become paths; a
 * tensor of the model's own graph keeps its name. */
static sft_code tell_apart(onnx_walk *w) {
    sfti_import *im = w->im;
    size_t count = im->items.count;
    sfti_names names;
    bool *shared = sfti_arena_array(&im->arena, count, sizeof *shared);
    if (!shared || !sfti_names_draw(&names, count, sfti_item_name, im->items.at, &im->arena))
        return sfti_fail_memory(im->err, count);
    memset(shared, 0, count * sizeof *shared);
    for (size_t i = 0; i < count; i++) {
        uint32_t first = sfti_names_add(&names, im->items.at[i].name, (uint32_t)i);
        if (first != i) shared[i] = shared[first] = true;
    }
    for (size_t i = 0; i < w->path_count; i++)
        if (shared[w->paths[i].item]) im->items.at[w->paths[i].item].name = w->paths[i].name;
    return SFT_OK;
}

/* The first graph is the model; tensors of other places only with `all`. */
static sft_code take_held(onnx_walk *w, const sfti_wire_field *field, onnx_holds what) {
    bool outer = w->depth == 2 && w->frames[1].kind == ONNX_GRAPH;
    if (!outer && !w->all) {
        w->nested++;
        sfti_total_add(&w->nested_bytes, field->end - field->begin);
        return SFT_OK;
    }
    sft_span name = output_name(w);
    size_t items = w->im->items.count;
    w->frames[w->depth - 1].tensors += field->number == ATTRIBUTE_TENSORS;
    sft_code code = what == HOLDS_TENSOR ? sfti_onnx_tensor(w->im, &w->wire, field, name)
                  : what == HOLDS_SPARSE ? sfti_onnx_sparse(w->im, &w->wire, field, name)
                                         : sfti_onnx_value(w->im, &w->wire, field, name);
    if (code || outer || w->im->items.count == items) return code;
    return add_path(w, w->im->items.at[items].name);
}

/* Before its attributes are read, whatever the order of its fields: what a node is called after. */
static sft_code read_node(onnx_walk *w, onnx_frame *node) {
    bool is_constant = false, is_ours = true;
    for (uint64_t at = node->at;;) {
        sfti_wire_field field;
        sft_span text = { NULL, 0 };
        bool more;
        w->wire = sfti_wire_inside(&w->wire, at, node->end);
        sft_code code = sfti_wire_next(&w->wire, &field, &more);
        node->is_constant = is_constant && is_ours;
        if (code || !more) return code;
        at = w->wire.at;
        bool is_output = field.number == NODE_OUTPUT && !node->name.data;
        bool is_kind = field.number == NODE_OPERATION || field.number == NODE_DOMAIN;
        if (field.type != SFTI_WIRE_BYTES || !(is_output || is_kind)) continue;
        if (is_output || field.end - field.begin <= 8) /* no longer than those compared below */
            code = sfti_wire_text(&w->wire, &field, ONNX_NAME_MOST, &text);
        if (code) return code;
        if (is_output) node->name = text;
        if (field.number == NODE_OPERATION)
            is_constant = text.data && sft_span_equal(text, sft_span_cstr("Constant"));
        if (field.number == NODE_DOMAIN)
            is_ours = text.data && (!text.len || sft_span_equal(text, sft_span_cstr("ai.onnx")));
    }
}

/* The same for an attribute's name. */
static sft_code read_attribute(onnx_walk *w, onnx_frame *attribute) {
    for (uint64_t at = attribute->at;;) {
        sfti_wire_field field;
        bool more;
        w->wire = sfti_wire_inside(&w->wire, at, attribute->end);
        sft_code code = sfti_wire_next(&w->wire, &field, &more);
        if (code || !more) return code;
        at = w->wire.at;
        if (field.type == SFTI_WIRE_BYTES && field.number == SFTI_ONNX_ATTRIBUTE_NAME)
            return sfti_wire_text(&w->wire, &field, ONNX_NAME_MOST, &attribute->name);
    }
}

static sft_code enter(onnx_walk *w, const sfti_wire_field *field, onnx_kind kind) {
    if (w->depth == ONNX_DEPTH)
        return sfti_fail_byte(w->im->err, SFT_FOREIGN_NESTING, field->at,
                              "expected at most %d levels of messages, found more", ONNX_DEPTH);
    onnx_frame *frame = &w->frames[w->depth++];
    *frame = (onnx_frame){ .kind = kind, .at = field->begin, .end = field->end };
    w->nodes += kind == ONNX_NODE;
    if (kind == ONNX_NODE) return read_node(w, frame);
    return kind == ONNX_ATTRIBUTE && w->all ? read_attribute(w, frame) : SFT_OK;
}

static sft_code take_field(onnx_walk *w, const sfti_wire_field *field) {
    onnx_frame *frame = &w->frames[w->depth - 1];
    const bool attribute = frame->kind == ONNX_ATTRIBUTE;
    uint64_t number = field->number;
    onnx_holds what;
    if (field->type != SFTI_WIRE_BYTES) return SFT_OK; /* of no message that is entered */

    /* A message that is there twice is one to the readers of protocol buffers, with the fields of
     * both. */
    if ((frame->kind == ONNX_MODEL && number == MODEL_GRAPH)
        || (attribute && (number == ATTRIBUTE_TENSOR || number == ATTRIBUTE_GRAPH
                          || number == ATTRIBUTE_SPARSE))) {
        if (frame->seen >> number & 1)
            return sfti_fail_byte(w->im->err, SFT_FOREIGN_AMBIGUOUS, field->at,
                                  "expected a graph or tensor once, found it again");
        frame->seen |= UINT32_C(1) << number;
    }
    sft_code code = find_held(w, field, &what);
    if (code || what != HOLDS_NONE) return code ? code : take_held(w, field, what);

    size_t i = 0;
    while (i < INSIDES && (insides[i].in != frame->kind || insides[i].number != number)) i++;
    return i < INSIDES ? enter(w, field, insides[i].kind) : SFT_OK;
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
    if (!code && w->path_count > 0) code = tell_apart(w);
    if (!code && w->nested > 0)
        code = sfti_import_leave(im, SFT_IMPORT_LEFT_BRANCH, sft_span_cstr("nodes"), w->nested,
                                 w->nested_bytes,
                                 "constants of nodes, subgraphs, functions and training");
    if (!code && w->nodes > 0)
        code = sfti_import_leave(im, SFT_IMPORT_LEFT_VALUE, sft_span_cstr("graph"), w->nodes, 0,
                                 "nodes, which say what is computed");
    return code;
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
