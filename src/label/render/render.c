/* sft_info_json and sft_info_tree: the whole label. Tests: test_info_render.c. */
#include "base/error.h"
#include "base/foreign.h"
#include "base/tree.h"
#include "label/render/render.h"
#include "safetensors_report.h"

#include <string.h>

#define VALUE_MOST 4096

/* ── The whole ── */

/* A sink that keeps the last byte back: what follows is put before it. */
typedef struct open_end {
    sft_sink *to;
    uint64_t offset; /* handed on */
    char last;
    bool has_last;
} open_end;

static sft_code open_end_put(open_end *end, const void *bytes, size_t len, sft_error *err) {
    sft_code code = sft_sink_write(end->to, end->offset, bytes, len, err);
    if (!code) end->offset += len;
    return code;
}

static sft_code open_end_write(void *ctx, uint64_t offset, const void *bytes, size_t len,
                               sft_error *err) {
    open_end *end = ctx;
    (void)offset;
    if (len == 0) return SFT_OK;
    sft_code code = end->has_last ? open_end_put(end, &end->last, 1, err) : SFT_OK;
    if (!code && len > 1) code = open_end_put(end, bytes, len - 1, err);
    end->last = ((const char *)bytes)[len - 1];
    end->has_last = true;
    return code;
}

/* The report of sft_import_json, which begins with path and ok; a tree takes its text as well. */
static void put_import(sfti_json_writer *w, const sft_info *info) {
    sft_buffer text = { .alloc = info->arena.alloc };
    sft_sink sink = sft_sink_memory(&text);
    sft_span path = info->path;
    const sfti_foreign *import = (const void *)info->options.import;
    if (!import->report || w->code) return;
    char *name = sfti_take(&text.alloc, path.len + 1);
    w->code = name ? SFT_OK : sfti_fail_memory(w->err, path.len);
    if (name && path.len) memcpy(name, path.data, path.len);
    if (name) name[path.len] = '\0';
    if (!w->code) w->code = import->report(info->options.import, name, &sink, w->err);
    sfti_json_key(w, "import");
    sfti_json_raw(w, (sft_span){ text.data, text.len });
    sfti_release(&text.alloc, name, path.len + 1);
    sft_buffer_free(&text);
}

/* Files, sums and metadata: of the model's set, or the sums of its parts'. Into the tree, or,
 * if it is NULL, as JSON into the sink. */
static sft_code put_header(const sft_info *info, const char *path, uint64_t cut, sft_tree *tree,
                           sft_sink *sink, sft_error *err) {
    sft_allocator alloc = info->arena.alloc;
    size_t count = info->set ? 1 : info->part_count, bytes = count * sizeof(sft_set *);
    const sft_set **sets = sfti_take(&alloc, bytes);
    if (!sets) return sfti_fail_memory(err, bytes);
    for (size_t i = 0; i < count; i++) sets[i] = info->set ? info->set : info->parts[i].set;
    sft_code code = tree ? sft_sets_tree(sets, count, path, cut, tree, err)
                  : info->set ? sft_set_json(info->set, path, cut, sink, err)
                              : sft_sets_json(sets, count, path, sink, err);
    sfti_release(&alloc, sets, bytes);
    return code;
}

static const sft_sink_vtable open_end_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, open_end_write, NULL, NULL, NULL, NULL
};

/* One result but its closing brace, from *offset on. */
static sft_code label_open(const sft_info *info, const char *path, bool full, sft_sink *sink,
                           uint64_t *offset, sft_error *err) {
    open_end end = { sink, *offset, 0, false };
    sft_sink kept = { &end, &open_end_sink_vtable, false };
    sfti_json_writer w;
    sft_code code = put_header(info, path, full ? UINT64_MAX : VALUE_MOST, NULL, &kept, err);
    if (code) return code;
    sfti_json_write(&w, sink, end.offset, err);
    w.comma = true;
    sfti_render_sections(&w, info);
    if (info->options.import) put_import(&w, info);
    code = sfti_json_done(&w);
    *offset = w.offset;
    return code;
}

static sft_code put_raw(sft_sink *sink, uint64_t *offset, const char *text, sft_error *err) {
    size_t len = strlen(text);
    sft_code code = sft_sink_write(sink, *offset, text, len, err);
    if (!code) *offset += len;
    return code;
}

static sft_code put_part_results(const sft_info *info, bool full, sft_sink *sink,
                                 uint64_t *offset, sft_error *err) {
    sft_code code = put_raw(sink, offset, ",\"parts\":[", err);
    for (size_t i = 0; !code && i < info->part_count; i++) {
        const sft_info_component *part = &info->parts[i];
        if (i > 0) code = put_raw(sink, offset, ",", err);
        if (!code) code = label_open(part->info, part->path, full, sink, offset, err);
        if (!code) code = put_raw(sink, offset, "}", err);
    }
    return code ? code : put_raw(sink, offset, "]", err);
}

sft_code sft_info_json(const sft_info *info, const char *path, bool full, sft_sink *sink,
                       sft_error *err) {
    uint64_t offset = 0;
    sft_code code = label_open(info, path, full, sink, &offset, err);
    if (!code && info->part_count > 0)
        code = put_part_results(info, full, sink, &offset, err);
    return code ? code : put_raw(sink, &offset, "}", err);
}

/* ── As a tree ── */

/* One model's facts, an object more in the tree. */
static sft_code label_into(const sft_info *info, const char *path, uint64_t cut, sft_tree *tree,
                           sft_error *err) {
    sfti_json_writer w;
    sft_code code = put_header(info, path, cut, tree, NULL, err);
    if (code) return code;
    sfti_tree_reopen(tree);
    sfti_json_write_tree(&w, tree, err);
    sfti_render_sections(&w, info);
    if (info->options.import) put_import(&w, info);
    return sfti_json_done(&w);
}

/* The parts of a pipeline, each an object of its own; the object they are in stays open. */
static sft_code parts_into(const sft_info *info, uint64_t cut, sft_tree *tree, sft_error *err) {
    sfti_json_writer w;
    sfti_json_write_tree(&w, tree, err);
    sfti_json_key(&w, "parts");
    sfti_json_open(&w, '[');
    sft_code code = sfti_json_done(&w);
    for (size_t i = 0; !code && i < info->part_count; i++) {
        const sft_info_component *part = &info->parts[i];
        code = label_into(part->info, part->path, cut, tree, err);
        if (!code) sfti_tree_close(tree);
    }
    if (!code) sfti_tree_close(tree);
    return code;
}

sft_code sft_info_tree(const sft_info *info, const char *path, uint64_t cut, sft_tree *tree,
                       sft_error *err) {
    sft_code code = label_into(info, path, cut, tree, err);
    if (!code && info->part_count > 0) code = parts_into(info, cut, tree, err);
    if (!code) sfti_tree_close(tree);
    return code;
}
