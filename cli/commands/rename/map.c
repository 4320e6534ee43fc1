/* rename: old names and new ones, of --map and --map-file. */
#include "commands/rename/rename.h"

#include "base/order.h"
#include "commands/meta/meta.h"
#include "support/files.h"
#include "support/hints.h"

#include <string.h>

#define MAP_FILE_MOST ((uint64_t)64 << 20)

static sft_code bad_map(const char *expected, sft_span found, sft_error *err) {
    cli_usage_error(err, "expected %s, found \"%.*s\"", expected,
                    found.len < 160 ? (int)found.len : 160, found.data);
    cli_hint(err, CLI_HINT_HELP_RENAME);
    return SFT_BAD_ARGUMENT;
}

/* ── A file ── */

static sft_code lines_of(sft_span text, sfti_arena *arena, meta_json *out, sft_error *err) {
    size_t most = 1;
    for (size_t i = 0; i < text.len; i++) most += text.data[i] == '\n';
    out->pairs = sfti_arena_array(arena, most, sizeof *out->pairs);
    text.data = sfti_arena_copy(arena, text.data, text.len);
    if (!out->pairs || !text.data) return sfti_fail_memory(err, most * sizeof *out->pairs);
    while (text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        sft_span line = { text.data, end ? (size_t)(end - text.data) : text.len };
        size_t step = line.len + (end != NULL);
        text = (sft_span){ text.data + step, text.len - step };
        if (line.len > 0 && line.data[line.len - 1] == '\r') line.len--;
        if (line.len == 0) continue;
        const char *tab = memchr(line.data, '\t', line.len);
        if (!tab) return bad_map("lines OLD<tab>NEW or a JSON object", line, err);
        size_t old = (size_t)(tab - line.data);
        out->pairs[out->count++] = (sft_pair){ { line.data, old },
                                               { tab + 1, line.len - old - 1 } };
    }
    return SFT_OK;
}

static sft_code read_map_file(cli *c, const char *path, sfti_arena *arena, meta_json *out,
                              sft_error *err) {
    sft_code code = cli_read_file(c, path, MAP_FILE_MOST, &out->text, err);
    if (code) return code;
    sft_span text = cli_read_text(&out->text);
    size_t blank = 0;
    while (blank < text.len && memchr(" \t\r\n", text.data[blank], 4)) blank++;
    bool json = blank < text.len && text.data[blank] == '{';
    code = json ? meta_json_text(text, arena, out, err) : lines_of(text, arena, out, err);
    return code || !out->other.data ? code : bad_map("a string as the new name", out->other, err);
}

/* ── Both ── */

static int compare_old(const void *ctx, uint32_t a, uint32_t b) {
    const rename_maps *maps = ctx;
    return sfti_bytes_compare(maps->items[a].key, maps->items[b].key);
}

sft_code rename_maps_read(cli *c, sfti_arena *arena, rename_maps *out, const char **blame,
                          sft_error *err) {
    const cli_settings *set = &c->set;
    meta_json file = { .text = { .alloc = c->alloc } };
    sft_code code = SFT_OK;
    *blame = set->map_file;
    if (set->map_file) code = read_map_file(c, set->map_file, arena, &file, err);
    sft_buffer_free(&file.text);
    if (code) return code;
    *blame = NULL;
    uint64_t most = (uint64_t)set->map.count + file.count;
    out->items = sfti_arena_array(arena, most, sizeof *out->items);
    out->used = sfti_arena_array(arena, most, sizeof *out->used);
    out->order = sfti_arena_array(arena, 2 * most, sizeof *out->order);
    if (!out->items || !out->used || !out->order || most > UINT32_MAX / 4)
        return sfti_fail_memory(err, most * sizeof *out->items);
    for (size_t i = 0; i < set->map.count; i++) { /* OLD=NEW */
        const char *text = set->map.items[i], *equals = strchr(text, '=');
        if (!equals) return bad_map("--map OLD=NEW", sft_span_cstr(text), err);
        out->items[out->count++] = (sft_pair){ { text, (size_t)(equals - text) },
                                               sft_span_cstr(equals + 1) };
    }
    for (size_t i = 0; i < file.count; i++) out->items[out->count++] = file.pairs[i];
    for (size_t i = 0; i < out->count; i++) {
        out->order[i] = (uint32_t)i;
        out->used[i] = false;
    }
    sfti_sort(out->order, out->order + out->count, out->count, compare_old, out);
    for (size_t i = 1; i < out->count; i++)
        if (compare_old(out, out->order[i - 1], out->order[i]) == 0)
            return bad_map("each old name once", out->items[out->order[i]].key, err);
    return SFT_OK;
}

const sft_pair *rename_maps_find(rename_maps *maps, sft_span name) {
    size_t low = 0, high = maps->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t at = maps->order[middle];
        int way = sfti_bytes_compare(maps->items[at].key, name);
        if (way == 0) {
            maps->used[at] = true;
            return &maps->items[at];
        }
        if (way < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}
