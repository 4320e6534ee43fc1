/* Columns in columns: fields of structs, elements of lists. Tests: test_dataset_nested.c. */
#include "base/error.h"
#include "base/order.h"
#include "base/utf8.h"
#include "dataset/arrow/arrow.h"

#include <string.h>

/* ── What a row holds ── */

static sft_code form_values(const sfti_arrow_type *type, sfti_arena *arena, sfti_ds_column *c,
                            sft_error *err) {
    c->form = type->depth ? SFTI_FORM_ARRAY : SFTI_FORM_PLAIN;
    c->has_dtype = c->has_shape = true;
    c->from = c->dtype = type->dtype;
    c->opaque = type->opaque;
    c->rank = type->has_shape ? type->rank : type->opaque ? 1 : type->depth;
    c->shape = type->shape;
    if (type->has_shape) return SFT_OK;

    /* The shape that the type alone determines, if it does. */
    uint64_t *shape = sfti_arena_array(arena, c->rank, sizeof *shape);
    if (!shape) return sfti_fail_memory(err, c->rank * sizeof *shape);
    c->shape = shape;
    if (type->opaque) shape[0] = type->bytes;
    for (uint32_t i = 0; i < type->depth; i++) {
        c->has_shape = c->has_shape && type->list[i].fixed;
        shape[i] = type->list[i].length;
    }
    return SFT_OK;
}

/* Lists around something that is not a plain number. */
static bool form_is_list(const struct ArrowSchema *schema, sfti_arrow_list *list) {
    return !schema->dictionary && sfti_arrow_list_read(schema->format, list) &&
           schema->n_children == 1 && schema->children && schema->children[0];
}

sft_code sfti_ds_column_form(const struct ArrowSchema *schema, sft_dataset_mode mode, bool top,
                             sfti_arena *arena, sfti_ds_column *c, sft_error *err) {
    const bool batch = mode == SFT_DATASET_BATCH;
    sfti_arrow_tensor tensor;
    sfti_arrow_type type;
    sfti_arrow_list list;
    sft_code code = SFT_OK;
    if (strcmp(schema->format, "+s") == 0 && !schema->dictionary) {
        c->form = SFTI_FORM_TENSOR;
        if (top) code = sfti_arrow_tensor_read(schema, arena, &tensor, err);
        if (top && (code != SFT_COLUMN_TYPE || !batch)) return code;
        c->form = SFTI_FORM_STRUCT;
        c->encoding = SFTI_ENCODING_NESTED;
        if (schema->n_children > 0 && schema->children) return SFT_OK;
        return sfti_fail(err, SFT_COLUMN_TYPE, "a struct without fields has no tensors");
    }
    code = sfti_arrow_shapes_check(schema, err);
    if (code) return code;
    code = sfti_arrow_type_read(schema, arena, &type, err);
    type.has_shape = type.has_shape && top; /* below, types are told as their storage */
    if (code == SFT_COLUMN_TYPE && batch && form_is_list(schema, &list)) {
        c->form = SFTI_FORM_LIST;
        c->encoding = SFTI_ENCODING_NESTED;
        return SFT_OK;
    }
    if (code) return code;
    if (type.leaf == SFTI_LEAF_BYTES && batch) {
        c->form = SFTI_FORM_BYTES;
        c->encoding = sfti_arrow_has_format(schema, sfti_arrow_texts) ? SFTI_ENCODING_UTF8
                                                                      : SFTI_ENCODING_BINARY;
        c->has_dtype = true;
        c->from = c->dtype = SFT_U8;
        return SFT_OK;
    }
    if (type.leaf == SFTI_LEAF_BYTES)
        return sfti_fail(err, SFT_COLUMN_TYPE, "with name_col, text and bytes have no dtype (the "
                                               "option columns leaves them out)");
    return form_values(&type, arena, c, err);
}

/* ── The nodes of a column ── */

typedef struct node_builder {
    sfti_ds_columns *columns;
    size_t *cap;
    sfti_arena *arena;
    sft_error *err;
} node_builder;

static sft_code node_add(node_builder *b, const sfti_ds_node *node) {
    sfti_ds_columns *all = b->columns;
    sfti_ds_node *grown =
        sfti_arena_grow(b->arena, all->node, all->node_count, 1, b->cap, sizeof *grown);
    if (!grown) return sfti_fail_memory(b->err, sizeof *grown);
    all->node = grown;
    sfti_ds_node *added = &grown[all->node_count++];
    *added = *node;
    added->end = all->node_count;
    return SFT_OK;
}

/* "<of>.<name>" */
static sft_code node_path(const node_builder *b, sft_span of, const char *name, sft_span *out) {
    size_t len = strlen(name);
    char *text = sfti_arena_take(b->arena, of.len + len + 2);
    if (!text) return sfti_fail_memory(b->err, of.len + len + 2);
    if (of.len) memcpy(text, of.data, of.len);
    text[of.len] = '.';
    memcpy(text + of.len + 1, name, len + 1);
    *out = (sft_span){ text, of.len + len + 1 };
    return SFT_OK;
}

/* The lists in an ARRAY, and its numbers. */
static sft_code node_chain(node_builder *b, const sfti_ds_node *array,
                           const sfti_arrow_type *type) {
    sfti_ds_node one = { .parent = b->columns->node_count - 1, .spare = true,
                         .schema = array->schema, .column = array->column };
    sft_code code = SFT_OK;
    for (uint32_t i = 1; !code && i <= type->depth; i++, one.parent++) {
        const bool leaf = i == type->depth;
        one.schema = one.schema->children[0];
        one.column.form = leaf ? SFTI_FORM_PLAIN : SFTI_FORM_LIST;
        one.column.child = 0;
        one.column.has_shape = leaf;
        one.column.rank = 0;
        one.depth = array->depth + i;
        if (!leaf) one.list = type->list[i];
        code = node_path(b, one.column.name, "item", &one.column.name);
        if (!code) code = node_add(b, &one);
    }
    return code;
}

static sft_code node_one(node_builder *b, sfti_ds_node *node) {
    sfti_arrow_type type;
    const bool batch = b->columns->mode == SFT_DATASET_BATCH;
    if (node->column.form == SFTI_FORM_LIST) {
        bool is = form_is_list(node->schema, &node->list);
        (void)is;
    }
    if (node->column.form != SFTI_FORM_ARRAY || !batch) return node_add(b, node);
    sft_code code = sfti_arrow_type_read(node->schema, b->arena, &type, b->err);
    /* A shape that was asked for is kept. */
    const bool shaped = type.has_shape && node->parent == SFTI_NO_NODE;
    bool same = node->column.rank == type.depth && !shaped;
    for (uint32_t i = 0; !code && same && node->column.has_shape && i < type.depth; i++)
        same = type.list[i].fixed && type.list[i].length == node->column.shape[i];
    if (code || !same) return code ? code : node_add(b, node);
    node->chain = type.depth;
    node->list = type.list[0];
    code = node_add(b, node);
    return code ? code : node_chain(b, node, &type);
}

/* A type that is still to be added. */
typedef struct node_frame {
    const struct ArrowSchema *schema;
    size_t parent, child;
} node_frame;

static sft_code node_open(node_builder *b, const node_frame *f, sfti_ds_node *node) {
    const sfti_ds_node *around = &b->columns->node[f->parent];
    const char *name = f->schema->name ? f->schema->name : "";
    *node = (sfti_ds_node){ .schema = f->schema, .parent = f->parent, .depth = around->depth + 1 };
    if (!f->schema->format)
        return sfti_misuse(b->err, "expected columns with names and types, found one without");
    if (node->depth == SFT_MAX_RANK)
        return sfti_fail(b->err, SFT_COLUMN_TYPE, "lists and structs are nested too deep");
    if (sfti_utf8_check(name, strlen(name)) != strlen(name))
        return sfti_fail(b->err, SFT_COLUMN_TYPE, "expected names in UTF-8");
    node->column.child = f->child;
    sft_code code = node_path(b, around->column.name,
                              around->column.form == SFTI_FORM_LIST ? "item" : name,
                              &node->column.name);
    sft_error inner = SFT_ERROR_INIT;
    if (!code)
        code = sfti_ds_column_form(f->schema, SFT_DATASET_BATCH, false, b->arena, &node->column,
                                   &inner);
    if (code != SFT_COLUMN_TYPE) return code ? sfti_fail_as(b->err, code, &inner) : SFT_OK;
    return sfti_fail(b->err, code, "in %.*s: %s", SFTI_CLIP(node->column.name, 100),
                     inner.message);
}

static void node_ends(sfti_ds_columns *columns, size_t first) {
    for (size_t i = columns->node_count; i-- > first;) {
        const sfti_ds_node *node = &columns->node[i];
        if (node->parent == SFTI_NO_NODE) continue;
        sfti_ds_node *around = &columns->node[node->parent];
        if (around->end < node->end) around->end = node->end;
    }
}

sft_code sfti_ds_nodes_add(sfti_ds_columns *columns, size_t *cap, const sfti_ds_column *column,
                           const struct ArrowSchema *schema, sfti_arena *arena, sft_error *err) {
    node_builder b = { columns, cap, arena, err };
    const size_t first = columns->node_count;
    node_frame *stack = NULL;
    size_t depth = 0, room = 0;
    sfti_ds_node node = { .column = *column, .schema = schema, .parent = SFTI_NO_NODE };
    sft_code code = SFT_OK;
    for (;;) {
        const size_t at = columns->node_count;
        code = node_one(&b, &node);
        if (code) return code;
        const sfti_ds_form form = node.column.form;
        size_t fields = form == SFTI_FORM_STRUCT ? (size_t)node.schema->n_children
                                                 : form == SFTI_FORM_LIST;
        columns->node[at].fields = fields;
        if (fields) {
            node_frame *grown = sfti_arena_grow(arena, stack, depth, fields, &room, sizeof *grown);
            if (!grown) return sfti_fail_memory(err, fields * sizeof *grown);
            stack = grown;
        }
        for (size_t i = fields; i-- > 0;) {
            if (!node.schema->children[i])
                return sfti_misuse(err, "expected a type with its children, found none");
            stack[depth++] = (node_frame){ node.schema->children[i], at, i };
        }
        if (!depth) break;
        depth--;
        code = node_open(&b, &stack[depth], &node);
        if (code) return code;
    }
    node_ends(columns, first);
    return SFT_OK;
}

/* ── Names of tensors ── */

static int node_order(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_ds_node *nodes = ctx;
    return sfti_bytes_compare(nodes[a].column.name, nodes[b].column.name);
}

static const sfti_ds_node *node_find(const sfti_ds_columns *columns, const uint32_t *sorted,
                                     sft_span name) {
    size_t low = 0, high = columns->node_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const sfti_ds_node *node = &columns->node[sorted[middle]];
        int order = sfti_bytes_compare(node->column.name, name);
        if (order == 0) return node;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

static sft_code node_taken(sft_error *err, sft_span name, sft_span by) {
    return sfti_fail(err, SFT_COLUMN_TYPE,
                     "column \"%.*s\": expected another name, found that of a tensor of the "
                     "column \"%.*s\"", SFTI_CLIP(name, 100), SFTI_CLIP(by, 100));
}

/* The column around a node. */
static sft_span node_column(const sfti_ds_columns *columns, const sfti_ds_node *node) {
    while (node->parent != SFTI_NO_NODE) node = &columns->node[node->parent];
    return node->column.name;
}

sft_code sfti_ds_nodes_check(const sfti_ds_columns *columns, sfti_arena *arena, sft_error *err) {
    const uint32_t *sorted =
        columns->node_count < UINT32_MAX
            ? sfti_arena_sorted(arena, columns->node_count, node_order, columns->node) : NULL;
    if (!sorted) return sfti_fail_memory(err, columns->node_count * sizeof *sorted);
    for (size_t i = 1; i < columns->node_count; i++) {
        const sfti_ds_node *a = &columns->node[sorted[i - 1]], *b = &columns->node[sorted[i]];
        if (sft_span_equal(a->column.name, b->column.name))
            return node_taken(err, a->column.name,
                              node_column(columns, a->parent == SFTI_NO_NODE ? b : a));
    }
    for (size_t i = 0; i < columns->node_count; i++) {
        const sft_span name = columns->node[i].column.name;
        for (int part = SFTI_PART_OFFSETS; part <= SFTI_PART_VALID; part++) {
            const char *suffix = sfti_ds_part_suffix((sfti_ds_part)part);
            if (!sfti_ds_ends(name, suffix)) continue;
            const sfti_ds_node *of =
                node_find(columns, sorted, (sft_span){ name.data, name.len - strlen(suffix) });
            if (of && (part == SFTI_PART_VALID || of->column.form != SFTI_FORM_STRUCT))
                return node_taken(err, name, of->column.name);
        }
    }
    return SFT_OK;
}
