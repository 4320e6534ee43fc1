/* Texts in a PNG: prompts and settings that generators write. Tests: test_info_images.c. */
#include "label/cursor.h"

#include "base/utf8.h"
#include "os/os.h"

#include <stddef.h>
#include <string.h>
#if defined(SFTI_FOUND_ZLIB)
#include <zlib.h>
#endif

#define PNG_TEXT_MOST ((size_t)4 << 20) /* of one inflated text */
#define PNG_TEXTS 16
#define PROMPTS_MOST 16

/* ── Chunks to texts ── */

static uint32_t png_be32(const char *at) {
    const uint8_t *p = (const uint8_t *)at;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

#if defined(SFTI_FOUND_ZLIB)
/* At most PNG_TEXT_MOST bytes; what is longer is none. */
static bool png_inflate(sft_info *info, sft_span packed, sft_span *out) {
    z_stream stream;
    uint64_t cap = packed.len >= PNG_TEXT_MOST / 64 ? PNG_TEXT_MOST : packed.len * 32 + 65536;
    memset(&stream, 0, sizeof stream);
    if (packed.len > PNG_TEXT_MOST || inflateInit(&stream) != Z_OK) return false;
    char *bytes = sfti_arena_take(&info->arena, (size_t)cap);
    int result = Z_MEM_ERROR;
    if (bytes) {
        stream.next_in = (Bytef *)(uintptr_t)packed.data;
        stream.avail_in = (uInt)packed.len;
        stream.next_out = (Bytef *)bytes;
        stream.avail_out = (uInt)cap;
        result = inflate(&stream, Z_FINISH);
        *out = (sft_span){ bytes, (size_t)stream.total_out };
    } else {
        info->code = SFT_OUT_OF_MEMORY;
    }
    inflateEnd(&stream);
    return result == Z_STREAM_END;
}
#else
static bool png_inflate(sft_info *info, sft_span packed, sft_span *out) {
    (void)info, (void)packed, (void)out;
    return false;
}
#endif

/* Latin-1, as tEXt is by its standard, unless it is UTF-8 already. */
static sft_span png_utf8(sft_info *info, sft_span text) {
    sft_span none = { "", 0 };
    if (sfti_utf8_check(text.data, text.len) == text.len) return text;
    char *out = text.len > PNG_TEXT_MOST ? NULL : sfti_arena_take(&info->arena, text.len * 2);
    size_t len = 0;
    if (!out) return none;
    for (size_t i = 0; i < text.len; i++)
        len += sfti_utf8_encode((uint8_t)text.data[i], out + len);
    return (sft_span){ out, len };
}

/* Cut off up to a NUL; false when there is none. */
static bool png_field(sft_span *rest, sft_span *field) {
    const char *end = rest->len > 0 ? memchr(rest->data, '\0', rest->len) : NULL;
    if (!end) return false;
    *field = (sft_span){ rest->data, (size_t)(end - rest->data) };
    *rest = sfti_from(*rest, field->len + 1);
    return true;
}

/* A chunk's keyword and text as UTF-8. */
static bool png_text(sft_info *info, const char *type, sft_span chunk, sft_span *keyword,
                     sft_span *text) {
    sft_span skipped;
    bool packed = memcmp(type, "zTXt", 4) == 0;
    if (!png_field(&chunk, keyword)) return false;
    if (memcmp(type, "iTXt", 4) == 0) {
        if (chunk.len < 2) return false;
        packed = chunk.data[0] == 1;
        chunk = sfti_from(chunk, 2);
        if (!png_field(&chunk, &skipped) || !png_field(&chunk, &skipped)) return false;
    } else if (packed) {
        if (chunk.len < 1) return false;
        chunk = sfti_from(chunk, 1);
    }
    if (packed && !png_inflate(info, chunk, &chunk)) return false;
    *text = png_utf8(info, chunk);
    return text->len > 0;
}

/* ── "parameters" of the webuis ── */

static bool line_begins(sft_span text, size_t at, const char *word) {
    sft_span rest = { text.data + at, text.len - at };
    return (at == 0 || text.data[at - 1] == '\n') && sfti_starts_with(rest, word);
}

/* The value after "key: " among comma-separated settings. */
static sft_span setting(sft_span settings, const char *key) {
    sft_span none = { "", 0 }, piece;
    size_t len = strlen(key);
    while (sfti_next_piece(&settings, ',', &piece)) {
        piece = sfti_trim(piece);
        if (!sfti_starts_with(piece, key) || piece.len <= len || piece.data[len] != ':') continue;
        return sfti_trim((sft_span){ piece.data + len + 1, piece.len - len - 1 });
    }
    return none;
}

static void take_parameters(sft_info *info, sft_span text, sft_span source) {
    size_t negative = text.len, steps = text.len;
    for (size_t i = 0; i < text.len; i++) {
        if (line_begins(text, i, "Negative prompt:") && negative == text.len) negative = i;
        if (line_begins(text, i, "Steps: ")) steps = i;
    }
    if (negative > steps) negative = steps;
    if (steps == text.len && negative == text.len) return;
    sft_span settings = sfti_from(text, steps), unwanted = { "", 0 };
    if (steps - negative > 16)
        unwanted = (sft_span){ text.data + negative + 16, steps - negative - 16 };
    SFTI_PUSH(info, &info->prompts, sfti_prompt,
              .positive = sfti_trim((sft_span){ text.data, negative }),
              .negative = sfti_trim(unwanted), .seed = setting(settings, "Seed"),
              .steps = setting(settings, "Steps"), .sampler = setting(settings, "Sampler"),
              .cfg = setting(settings, "CFG scale"), .source = source);
}

/* ── "prompt" of ComfyUI: a graph of nodes ── */

typedef struct graph_node {
    struct graph_node *next;
    sft_span id, text, positive, negative, from; /* the last three: ids of other nodes */
    sft_span seed, steps, sampler, cfg;
} graph_node;

typedef struct graph { sfti_list nodes; } graph;

#define GRAPH_NODES 512

static void graph_begin(sfti_cursor *at, const sfti_row *row) {
    graph *all = at->ctx;
    (void)row;
    if (at->json.type == SFTI_JSON_OBJECT && all->nodes.count < GRAPH_NODES)
        SFTI_PUSH(at->info, &all->nodes, graph_node, .id = sfti_info_copy(at->info, at->key));
}

/* The first text; row->field: where in a node what else is told goes. */
static void graph_text(sfti_cursor *at, const sfti_row *row) {
    graph_node *node = ((graph *)at->ctx)->nodes.last;
    (void)row;
    if (node && at->json.type == SFTI_JSON_STRING && node->text.len == 0) node->text = at->text;
}

static void graph_value(sfti_cursor *at, const sfti_row *row) {
    char *node = ((graph *)at->ctx)->nodes.last;
    if (node && (at->json.type == SFTI_JSON_STRING || sfti_at_number(at)))
        *(sft_span *)(void *)(node + row->field) = at->text;
}

static const size_t graph_places[] = {
    offsetof(graph_node, positive), offsetof(graph_node, negative), offsetof(graph_node, from),
    offsetof(graph_node, seed), offsetof(graph_node, steps), offsetof(graph_node, sampler),
    offsetof(graph_node, cfg),
};
static const sfti_key_take graph_node_takes[] = {
    { "node", graph_begin, NULL, NULL }, { "text", graph_text, NULL, NULL },
    { "value", graph_value, "positive negative from seed steps sampler cfg", graph_places },
};
const sfti_keys sfti_png_keys = SFTI_KEYS_OF("png-prompt", graph_node_takes);

/* The text a condition comes from: along the links between nodes, a few steps at most. */
static sft_span text_of_node(const graph *all, sft_span id, bool negative) {
    sft_span none = { "", 0 };
    for (int step = 0; step < 8 && id.len > 0; step++) {
        const graph_node *node = all->nodes.first;
        while (node && !sft_span_equal(node->id, id)) node = node->next;
        if (!node) return none;
        if (node->text.len > 0) return sfti_trim(node->text);
        id = node->from.len > 0 ? node->from : negative ? node->negative : node->positive;
    }
    return none;
}

static void read_png_keys(void) {
    sfti_keys_read(&sfti_png_keys, NULL);
}

static void take_graph(sft_info *info, sft_span text, sft_span source) {
    static bool ready;
    graph all = { { NULL, NULL, 0 } };
    (void)sfti_records_built_in();
    sfti_os_once(&ready, read_png_keys);
    sfti_info_walk(info, text, source, SFTI_KEY_ROWS(sfti_png_keys), &all);
    for (const graph_node *node = all.nodes.first; node; node = node->next) {
        if (node->sampler.len == 0 || node->positive.len == 0) continue;
        sft_span positive = text_of_node(&all, node->positive, false);
        if (positive.len == 0 || info->prompts.count >= PROMPTS_MOST) continue;
        SFTI_PUSH(info, &info->prompts, sfti_prompt, .positive = positive,
                  .negative = text_of_node(&all, node->negative, true), .seed = node->seed,
                  .steps = node->steps, .sampler = node->sampler, .cfg = node->cfg,
                  .source = source);
        return; /* the first sampler; later ones refine its picture */
    }
}

/* ── The file ── */

static bool is_text_chunk(const char *type) {
    return memcmp(type, "tEXt", 4) == 0 || memcmp(type, "zTXt", 4) == 0
        || memcmp(type, "iTXt", 4) == 0;
}

/* The texts with a meaning; "parameters" speaks for itself, and a graph only without it. */
static void take_texts(sft_info *info, sft_span parameters, sft_span prompt, sft_span source) {
    size_t before = info->prompts.count;
    if (before >= PROMPTS_MOST) return;
    if (parameters.len > 0) take_parameters(info, parameters, source);
    if (prompt.len > 0 && info->prompts.count == before) take_graph(info, prompt, source);
}

void sfti_info_png_text(sft_info *info, sft_span png, sft_span source) {
    sft_span parameters = { "", 0 }, prompt = { "", 0 }, keyword, text;
    size_t at = 8, texts = 0;
    if (info->code || png.len < 8 || memcmp(png.data, "\x89PNG\r\n\x1A\n", 8) != 0) return;
    while (png.len - at >= 12 && texts < PNG_TEXTS && !info->code) {
        size_t len = png_be32(png.data + at);
        const char *type = png.data + at + 4;
        if (len > png.len - at - 12 || memcmp(type, "IEND", 4) == 0) break;
        sft_span chunk = { type + 4, len };
        at += len + 12;
        if (!is_text_chunk(type)) continue;
        texts++;
        if (!png_text(info, type, chunk, &keyword, &text)) continue;
        if (sfti_is(keyword, "parameters")) parameters = text;
        if (sfti_is(keyword, "prompt")) prompt = text;
    }
    take_texts(info, parameters, prompt, source);
}
