/* pytorch_model.bin.index.json: {"metadata": …, "weight_map": {tensor: shard}}. Each tensor must
 * be in the shard that the map says, and in no other. */
#include "base/json.h"
#include "base/names.h"
#include "base/order.h"
#include "formats/parts/state.h"
#include "os/io.h"

#define MOST_INDEX_BYTES (UINT64_C(256) << 20)

typedef struct mapped {
    sft_span tensor, file;
    bool found;
} mapped;

typedef struct shard_map {
    sfti_import *im;
    mapped *rows;
    size_t count, cap;
    sfti_names names;
} shard_map;

static sft_code index_syntax(shard_map *m, const sfti_json *json, const char *expected) {
    return sfti_fail_byte(m->im->err, SFT_INDEX_TYPE, json->start,
                          "expected %s, found something else", expected);
}

static sft_code read_map_entry(shard_map *m, sfti_json *json) {
    sfti_arena *arena = &m->im->arena;
    sft_span tensor = sfti_json_string(json, arena);
    sfti_json_type type = sfti_json_next(json);
    if (type == SFTI_JSON_ERROR) return sfti_json_fail(json, 0, m->im->err);
    if (type != SFTI_JSON_STRING) return index_syntax(m, json, "the name of a shard");
    sft_span file = sfti_json_string(json, arena);
    mapped *rows = sfti_arena_grow(arena, m->rows, m->count, 1, &m->cap, sizeof *rows);
    if (rows) m->rows = rows;
    if (!tensor.data || !file.data || !rows) return sfti_fail_memory(m->im->err, sizeof *rows);
    rows[m->count++] = (mapped){ tensor, file, false };
    return SFT_OK;
}

static sft_code read_weight_map(shard_map *m, sfti_json *json) {
    if (sfti_json_next(json) != SFTI_JSON_OBJECT)
        return json->type == SFTI_JSON_ERROR ? sfti_json_fail(json, 0, m->im->err)
                                             : index_syntax(m, json, "an object as weight_map");
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        sft_code code = read_map_entry(m, json);
        if (code) return code;
    }
    return json->type == SFTI_JSON_ERROR ? sfti_json_fail(json, 0, m->im->err) : SFT_OK;
}

static sft_code load_index(shard_map *m) {
    const sft_source *input = m->im->input;
    sfti_json json;
    uint8_t *text;
    if (input->size > MOST_INDEX_BYTES)
        return sfti_fail(m->im->err, SFT_FOREIGN_TABLE,
                         "expected an index of at most %llu bytes, found %llu",
                         (unsigned long long)MOST_INDEX_BYTES, (unsigned long long)input->size);
    sft_code code = sfti_import_load(m->im, input, 0, input->size, &text);
    if (code) return code;
    sfti_json_begin(&json, (const char *)text, (size_t)input->size);
    bool has_map = false;
    (void)sfti_json_next(&json); /* the object by which the index is known */
    while (!code && sfti_json_next(&json) == SFTI_JSON_KEY) {
        if (!sfti_json_is(&json, "weight_map")) (void)sfti_json_skip(&json);
        else if (has_map) code = index_syntax(m, &json, "\"weight_map\" once");
        else code = read_weight_map(m, &json);
        has_map |= m->count > 0;
    }
    if (!code && json.type == SFTI_JSON_OBJECT_END) (void)sfti_json_next(&json);
    if (!code && json.type == SFTI_JSON_ERROR) code = sfti_json_fail(&json, 0, m->im->err);
    return code;
}

/* ── Names ── */

static sft_span mapped_name(const void *ctx, uint32_t entry) {
    return ((const shard_map *)ctx)->rows[entry].tensor;
}

static sft_code name_mapped(shard_map *m) {
    if (!sfti_names_draw(&m->names, m->count, mapped_name, m, &m->im->arena))
        return sfti_fail_memory(m->im->err, m->count);
    for (uint32_t i = 0; i < m->count; i++) {
        sft_span name = m->rows[i].tensor;
        if (sfti_names_add(&m->names, name, i) != i)
            return sfti_fail_tensor(m->im->err, SFT_INDEX_TENSOR_DUPLICATE, SFT_NO_OFFSET, name,
                                    "expected each tensor once in weight_map, found it twice");
    }
    return SFT_OK;
}

static int compare_files(const void *ctx, uint32_t a, uint32_t b) {
    const mapped *rows = ctx;
    return sfti_natural_compare(rows[a].file, rows[b].file);
}

/* ── Shards ── */

static sft_code read_shard_named(shard_map *m, sft_span file,
                                 sft_code (*read)(sfti_import *im)) {
    const sft_source *shard, *index = m->im->input;
    sft_import_format format = m->im->format;
    size_t first = m->im->items.count;
    sft_code code = sfti_import_file(m->im, file, &shard);
    if (code) return code;
    m->im->input = shard;
    code = read(m->im);
    m->im->input = index;
    m->im->format = format;

    if (code) return code;
    /* Items [first, count) came from this file. */
    for (size_t i = first; i < m->im->items.count; i++) {
        sft_span name = m->im->items.at[i].name;
        uint32_t row = sfti_names_find(&m->names, name);
        if (row == SFTI_NO_NAME)
            return sfti_fail_tensor(m->im->err, SFT_INDEX_TENSOR_MISPLACED, SFT_NO_OFFSET, name,
                                    "expected a tensor that weight_map names, found another in "
                                    "%.*s", SFTI_CLIP(file, 200));
        if (!sft_span_equal(m->rows[row].file, file))
            return sfti_fail_tensor(m->im->err, SFT_INDEX_TENSOR_MISPLACED, SFT_NO_OFFSET, name,
                                    "expected this tensor in %.*s, found it in %.*s",
                                    SFTI_CLIP(m->rows[row].file, 150), SFTI_CLIP(file, 150));
        m->rows[row].found = true;
    }
    return SFT_OK;
}

sft_code sfti_read_torch_index(sfti_import *im, sft_code (*read)(sfti_import *im)) {
    shard_map m = { .im = im };
    sft_code code = load_index(&m);
    if (!code) code = name_mapped(&m);
    if (code) return code;
    uint32_t *order = sfti_arena_sorted(&im->arena, m.count, compare_files, m.rows);
    if (!order) return sfti_fail_memory(im->err, m.count * sizeof *order);

    sft_span *files = sfti_arena_array(&m.im->arena, m.count, sizeof *files);
    size_t count = 0;
    if (!files) return sfti_fail_memory(m.im->err, m.count * sizeof *files);
    for (size_t i = 0; i < m.count; i++) {
        sft_span file = m.rows[order[i]].file;
        if (count == 0 || !sft_span_equal(file, files[count - 1])) files[count++] = file;
    }
    sfti_import_announce(m.im, files, count);

    im->shards = 0;
    for (size_t i = 0; !code && i < m.count; i++) {
        sft_span file = m.rows[order[i]].file;
        if (i > 0 && sft_span_equal(file, m.rows[order[i - 1]].file)) continue;
        im->shard = im->shards++;
        code = read_shard_named(&m, file, read);
    }
    for (size_t i = 0; !code && !im->options.skip && i < m.count; i++)
        if (!m.rows[i].found)
            code = sfti_fail_tensor(im->err, SFT_INDEX_TENSOR_MISSING, SFT_NO_OFFSET,
                                    m.rows[i].tensor, "expected this tensor in %.*s, found none",
                                    SFTI_CLIP(m.rows[i].file, 200));
    return code;
}
