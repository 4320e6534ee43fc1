/* Which columns of an Arrow schema are written, and as what. Tests: test_dataset_columns.c. */
#include "base/error.h"
#include "base/order.h"
#include "base/utf8.h"
#include "dataset/arrow/arrow.h"
#include "dataset/dataset.h"
#include "safetensors_convert.h"

#include <stdio.h>
#include <string.h>

typedef struct column_resolver {
    const sft_dataset_options *options;
    const struct ArrowSchema *schema;
    sfti_arena *arena;
    size_t n;         /* columns of the schema */
    uint32_t *sorted; /* by name */
    sft_error *err;
} column_resolver;

/* ── Names ── */

static sft_span resolve_name(const struct ArrowSchema *schema, size_t child) {
    return sft_span_cstr(schema->children[child]->name);
}

static int resolve_order(const void *ctx, uint32_t a, uint32_t b) {
    return sfti_bytes_compare(resolve_name(ctx, a), resolve_name(ctx, b));
}

static sft_code resolve_type_fail(sft_error *err, sft_span name, const char *what) {
    return sfti_fail(err, SFT_COLUMN_TYPE, "column \"%.*s\": %s", SFTI_CLIP(name, 100), what);
}

static sft_code resolve_names(column_resolver *s) {
    if (!s->schema->format || strcmp(s->schema->format, "+s") != 0 || s->schema->n_children < 0 ||
        s->schema->n_children >= UINT32_MAX / 2)
        return sfti_fail(s->err, SFT_COLUMN_TYPE,
                         "expected a struct of columns, found Arrow format \"%s\"",
                         s->schema->format ? s->schema->format : "");
    s->n = (size_t)s->schema->n_children;
    for (size_t i = 0; i < s->n; i++) {
        const struct ArrowSchema *child = s->schema->children ? s->schema->children[i] : NULL;
        if (!child || !child->name || !child->format)
            return sfti_misuse(s->err, "expected columns with names and types, found one without");
        sft_span name = sft_span_cstr(child->name);
        if (sfti_utf8_check(name.data, name.len) != name.len)
            return resolve_type_fail(s->err, name, "expected a name in UTF-8");
    }
    s->sorted = sfti_arena_sorted(s->arena, s->n, resolve_order, s->schema);
    if (!s->sorted) return sfti_fail_memory(s->err, s->n * sizeof *s->sorted);
    for (size_t i = 1; i < s->n; i++) {
        sft_span name = resolve_name(s->schema, s->sorted[i]);
        if (sft_span_equal(resolve_name(s->schema, s->sorted[i - 1]), name))
            return resolve_type_fail(s->err, name, "expected each name once, found it twice");
    }
    return SFT_OK;
}

/* Index of the column, or s->n. */
static size_t resolve_find(const column_resolver *s, sft_span name) {
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = sfti_bytes_compare(resolve_name(s->schema, s->sorted[middle]), name);
        if (order == 0) return s->sorted[middle];
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return s->n;
}

static sft_code resolve_unknown(const column_resolver *s, const char *option, sft_span name) {
    char list[320];
    int at = 0;
    list[0] = '\0';
    for (size_t i = 0; i < s->n && at < 300; i++) {
        sft_span one = resolve_name(s->schema, i);
        at += snprintf(list + at, sizeof list - (size_t)at, "%s%.*s", i ? ", " : "",
                       SFTI_CLIP(one, 60));
        if (at >= 240 && i + 1 < s->n) {
            at = 240;
            (void)snprintf(list + at, sizeof list - (size_t)at, ", …");
            break;
        }
    }
    return sfti_fail(s->err, SFT_COLUMN_UNKNOWN,
                     "option %s: expected one of the columns (%s), found \"%.*s\"", option, list,
                     SFTI_CLIP(name, 60));
}

/* ── Which columns ── */

static sft_code resolve_key(const column_resolver *s, size_t *child) {
    char type[SFTI_ARROW_TEXT];
    *child = resolve_find(s, s->options->name_col);
    if (*child == s->n) return resolve_unknown(s, "name_col", s->options->name_col);
    const struct ArrowSchema *schema = s->schema->children[*child];
    if (sfti_arrow_has_format(schema, sfti_arrow_texts)) return SFT_OK;
    sfti_arrow_type_text(schema, type);
    return sfti_fail(s->err, SFT_COLUMN_TYPE,
                     "column \"%.*s\": expected strings for name_col, found %s",
                     SFTI_CLIP(s->options->name_col, 100), type);
}

static sft_code resolve_selection(const column_resolver *s, size_t key, bool *chosen) {
    const sft_dataset_options *o = s->options;
    memset(chosen, o->column_count == 0, s->n);
    if (o->column_count == 0 && key < s->n) chosen[key] = false;
    for (size_t i = 0; i < o->column_count; i++) {
        size_t child = resolve_find(s, o->columns[i]);
        if (child == s->n) return resolve_unknown(s, "columns", o->columns[i]);
        chosen[child] = true;
    }
    return SFT_OK;
}

/* ── One column ── */

static sft_code resolve_refused(sft_error *err, sft_span name, const char *type,
                                const sft_error *inner) {
    return sfti_fail(err, SFT_COLUMN_TYPE, "column \"%.*s\" (%s): %s", SFTI_CLIP(name, 100), type,
                     inner->message);
}

static bool resolve_product(const uint64_t *shape, uint32_t rank, uint64_t *out) {
    return !sft_shape_size(SFT_U8, shape, rank, out, NULL, NULL);
}

/* A requested shape has as many elements as the type's own; rows of TENSOR must have it. */
static sft_code resolve_override_shape(const column_resolver *s, const sfti_ds_override *override,
                                  sfti_ds_column *c) {
    uint64_t want, have;
    if (!resolve_product(override->shape, override->rank, &want))
        return resolve_type_fail(s->err, c->name, "expected a shape within 64 bits, found more");
    if (c->has_shape && resolve_product(c->shape, c->rank, &have) && have != want)
        return sfti_fail(s->err, SFT_COLUMN_TYPE,
                         "column \"%.*s\": expected a shape of %llu elements, found one of %llu",
                         SFTI_CLIP(c->name, 100), (unsigned long long)have,
                         (unsigned long long)want);
    c->has_shape = true;
    c->rank = override->rank;
    c->shape = override->shape;
    return SFT_OK;
}

/* Numbers without their point, in lists, too: no cast and no shape keeps what they mean. */
static bool resolve_is_decimal(const struct ArrowSchema *at) {
    sfti_arrow_list list;
    while (!at->dictionary && sfti_arrow_list_read(at->format, &list)) at = at->children[0];
    return strncmp(at->dictionary ? at->dictionary->format : at->format, "d:", 2) == 0;
}

static sft_code resolve_override(const column_resolver *s, const struct ArrowSchema *child,
                            sfti_ds_column *c) {
    const sft_dataset_options *o = s->options;
    char type[SFTI_ARROW_TEXT];
    for (size_t i = 0; i < o->override_count; i++) {
        const sfti_ds_override *override = &o->overrides[i];
        if (override->column.data && !sft_span_equal(override->column, c->name)) continue;
        if (c->encoding || c->opaque || resolve_is_decimal(child))
            return resolve_type_fail(s->err, c->name, "text, bytes, decimals, structs and lists of "
                                     "them take no dtype and no shape (options for single columns "
                                     "name the others)");
        if (override->has_dtype) c->has_dtype = true, c->dtype = override->dtype;
        sft_code code = override->has_shape ? resolve_override_shape(s, override, c) : SFT_OK;
        if (code) return code;
    }
    if (c->form == SFTI_FORM_TENSOR || c->encoding || sft_cast_exists(c->from, c->dtype))
        return SFT_OK;
    sfti_arrow_type_text(child, type);
    return sfti_fail(s->err, SFT_COLUMN_TYPE, "column \"%.*s\": there is no cast from %s to %s",
                     SFTI_CLIP(c->name, 100), type, sft_dtype_describe(c->dtype)->name);
}

/* The type's text, unless dtype and shape say all: of tensors, and of shapes asked for. */
static sft_code resolve_type(const column_resolver *s, const struct ArrowSchema *child,
                             const sfti_ds_column *own, sfti_ds_column *c) {
    char unused[1];
    sfti_arrow_type type;
    const bool shaped = c->has_shape && c->shape != own->shape;
    const bool number = c->form == SFTI_FORM_PLAIN || c->form == SFTI_FORM_ARRAY;
    const char *leaf = number && (c->dtype != own->from || c->dtype == SFT_BOOL)
                           ? sfti_ds_type_name(c->dtype) : NULL;
    if (c->form == SFTI_FORM_TENSOR || shaped) return SFT_OK;
    if (c->form == SFTI_FORM_ARRAY) {
        sft_code code = sfti_arrow_type_read(child, s->arena, &type, s->err);
        if (code) return code;
        if (type.has_shape) {
            c->type = sft_span_cstr("fixed_shape_tensor");
            return SFT_OK;
        }
    }
    size_t len = sfti_arrow_type_put(child, false, leaf, unused, 1);
    char *text = sfti_arena_take(s->arena, len + 1);
    if (!text) return sfti_fail_memory(s->err, len + 1);
    (void)sfti_arrow_type_put(child, false, leaf, text, len + 1);
    c->type = (sft_span){ text, len };
    return SFT_OK;
}

static sft_code resolve_column(const column_resolver *s, size_t i, sfti_ds_column *c) {
    const struct ArrowSchema *child = s->schema->children[i];
    sft_error inner = SFT_ERROR_INIT;
    char type[SFTI_ARROW_TEXT];
    const char *name = sfti_arena_copy(s->arena, child->name, strlen(child->name));
    if (!name) return sfti_fail_memory(s->err, strlen(child->name) + 1);
    memset(c, 0, sizeof *c);
    c->name = sft_span_cstr(name);
    c->child = i;
    if (s->options->mode == SFT_DATASET_BATCH && strcmp(name, "__metadata__") == 0)
        return resolve_type_fail(s->err, c->name, "no tensor can have this name");
    if (s->options->mode == SFT_DATASET_KV && !*name)
        return resolve_type_fail(s->err, c->name, "expected a name in KV mode, found none");
    sft_code code = sfti_ds_column_form(child, s->options->mode, true, s->arena, c, &inner);
    const sfti_ds_column own = *c;
    if (!code) {
        code = resolve_override(s, child, c);
        return code ? code : resolve_type(s, child, &own, c);
    }
    if (code == SFT_OUT_OF_MEMORY) return sfti_fail_memory(s->err, 0);
    sfti_arrow_type_text(child, type);
    return resolve_refused(s->err, c->name, type, &inner);
}

static sft_code resolve_nodes(const column_resolver *s, sfti_ds_columns *out) {
    size_t cap = 0;
    char type[SFTI_ARROW_TEXT];
    sft_error inner = SFT_ERROR_INIT;
    for (size_t k = 0; k < out->count; k++) {
        const sfti_ds_column *c = &out->column[k];
        const struct ArrowSchema *child = s->schema->children[c->child];
        sft_code code = sfti_ds_nodes_add(out, &cap, c, child, s->arena, &inner);
        if (code == SFT_OUT_OF_MEMORY) return sfti_fail_memory(s->err, 0);
        sfti_arrow_type_text(child, type);
        if (code) return resolve_refused(s->err, c->name, type, &inner);
    }
    return s->options->mode == SFT_DATASET_BATCH ? sfti_ds_nodes_check(out, s->arena, s->err)
                                                 : SFT_OK;
}

/* ── compat=upstream ── */

bool sfti_ds_upstream_knows(sft_dtype dtype) {
    static const sft_dtype known[] = { SFT_U8, SFT_I8, SFT_I16, SFT_U16, SFT_F16, SFT_BF16, SFT_I32,
                                       SFT_U32, SFT_F32, SFT_F64, SFT_I64, SFT_U64 };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == dtype) return true;
    return false;
}

/* What the schema tells; the rest is told by the first file that has it. */
static sft_code resolve_upstream(const sfti_ds_columns *columns, sft_error *err) {
    for (size_t i = 0; i < columns->count; i++) {
        const sfti_ds_column *c = &columns->column[i];
        if (c->form > SFTI_FORM_TENSOR)
            return resolve_type_fail(err, c->name,
                                     "option compat: expected numbers or tensors, found text, "
                                     "bytes, a struct, or lists of them");
        if (c->has_dtype && !sfti_ds_upstream_knows(c->dtype))
            return sfti_fail(err, SFT_COLUMN_TYPE, "column \"%.*s\": option compat: expected "
                             SFTI_UPSTREAM_DTYPES ", found %s", SFTI_CLIP(c->name, 100),
                             sft_dtype_describe(c->dtype)->name);
    }
    return SFT_OK;
}

/* ── All ── */

sft_code sfti_ds_columns_resolve(const sft_dataset_options *options,
                                const struct ArrowSchema *schema, sfti_arena *arena,
                                sfti_ds_columns *out, sft_error *err) {
    column_resolver s = { options, schema, arena, 0, NULL, err };
    *out = (sfti_ds_columns){ .mode = options->mode };
    if (!schema || !schema->release)
        return sfti_misuse(err, "expected a schema, found none");
    sft_code code = resolve_names(&s);
    for (size_t i = 0; !code && i < options->override_count; i++) {
        const sfti_ds_override *override = &options->overrides[i];
        if (!override->column.data || resolve_find(&s, override->column) < s.n) continue;
        code = resolve_unknown(&s, override->has_dtype ? "dtype" : "shapes", override->column);
    }
    if (code) return code;

    bool *chosen = sfti_arena_array(arena, s.n, sizeof *chosen);
    out->column = sfti_arena_array(arena, s.n, sizeof *out->column);
    if (!chosen || !out->column) return sfti_fail_memory(err, s.n * sizeof *out->column);
    size_t key = s.n;
    if (out->mode == SFT_DATASET_KV) code = resolve_key(&s, &key);
    out->name_child = key;
    if (!code) code = resolve_selection(&s, key, chosen);
    for (size_t i = 0; !code && i < s.n; i++)
        if (chosen[i]) code = resolve_column(&s, i, &out->column[out->count++]);
    if (!code && options->upstream) code = resolve_upstream(out, err);
    if (!code) code = resolve_nodes(&s, out);
    if (!code && out->count == 0)
        code = sfti_fail(err, SFT_COLUMN_UNKNOWN, "expected a column to write, found none");
    return code;
}

/* ── What a schema becomes, as JSON ── */

sft_code sft_dataset_check_schema(const sft_dataset_options *options,
                                  const struct ArrowSchema *schema, sft_sink *sink,
                                  sft_error *err) {
    static const sft_span none = { NULL, 0 };
    sfti_ds_columns columns;
    sfti_json_writer w;
    char type[SFTI_ARROW_TEXT];
    if (!options)
        return sfti_misuse(err, "expected options, found NULL");
    sfti_arena arena = { .alloc = options->alloc };
    sft_code code = sfti_ds_columns_resolve(options, schema, &arena, &columns, err);
    if (code || !sink) goto done;
    sfti_json_write(&w, sink, 0, err);
    sfti_json_open(&w, '{');
    sfti_json_put_cstr(&w, "mode", sfti_ds_mode_name(columns.mode));
    sfti_json_put_text(&w, "name_col", columns.mode == SFT_DATASET_KV ? options->name_col : none);
    sfti_json_put_open(&w, "columns", '[');
    for (size_t i = 0; i < columns.count; i++) {
        const sfti_ds_column *c = &columns.column[i];
        sfti_arrow_type_text(schema->children[c->child], type);
        sfti_json_open(&w, '{');
        sfti_json_put_text(&w, "name", c->name);
        sfti_ds_put_column(&w, c);
        sfti_json_put_cstr(&w, "arrow", type);
        sfti_json_close(&w, '}');
    }
    sfti_json_close(&w, ']');
    sfti_json_close(&w, '}');
    code = sfti_json_done(&w);
done:
    sfti_arena_free(&arena);
    return code;
}
