/* Embedded images, and prompts and settings that generators write into a PNG. Tests:
 * test_info_images.c. */
#include "label/cursor.h"
#include "text/formats.h"

#include "os/os.h"

#include <stddef.h>
#include <string.h>

#define IMAGE_MOST ((uint64_t)16 << 20)
#define EMBEDDED_MOST 16
#define PNG_TEXTS 16
#define PROMPTS_MOST 16

/* ── "prompt" of ComfyUI: a graph of nodes ── */

typedef struct graph_node {
    struct graph_node *next;
    sft_span id, text, positive, negative, from; /* the last three: ids of other nodes */
    sft_span seed, steps, sampler, cfg;
} graph_node;

typedef struct graph { sfti_list nodes; } graph;

#define GRAPH_NODES 512

static void graph_begin(sfti_cursor *at) {
    graph *all = at->ctx;
    if (at->json->type == SFTI_JSON_OBJECT && all->nodes.count < GRAPH_NODES)
        SFTI_PUSH(at->info, &all->nodes, graph_node, .id = sfti_info_copy(at->info, at->key));
}

/* The first text; row->field: where in a node what else is told goes. */
static void graph_text(sfti_cursor *at) {
    graph_node *node = ((graph *)at->ctx)->nodes.last;
    if (node && at->json->type == SFTI_JSON_STRING && node->text.len == 0) node->text = at->text;
}

static void graph_value(sfti_cursor *at) {
    char *node = ((graph *)at->ctx)->nodes.last;
    if (node && (at->json->type == SFTI_JSON_STRING || sfti_at_number(at)))
        *(sft_span *)(void *)(node + at->row->field) = at->text;
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
SFTI_KEYS_OF(sfti_png_keys, "png-prompt", graph_node_takes);

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

/* The texts with a meaning; "parameters" speaks for itself, and a graph only without it. */
static void take_texts(sft_info *info, sft_span parameters, sft_span prompt, sft_span source) {
    size_t before = info->prompts.count;
    if (before >= PROMPTS_MOST) return;
    sfti_parameters told;
    if (parameters.len > 0 && sfti_parameters_read(parameters, &told))
        SFTI_PUSH(info, &info->prompts, sfti_prompt, .positive = told.positive,
                  .negative = told.negative, .seed = told.seed, .steps = told.steps,
                  .sampler = told.sampler, .cfg = told.cfg, .source = source);
    if (prompt.len > 0 && info->prompts.count == before) take_graph(info, prompt, source);
}

void sfti_info_png_text(sft_info *info, sft_span png, sft_span source) {
    sft_span parameters = { "", 0 }, prompt = { "", 0 }, keyword, text;
    size_t at = 0;
    for (size_t texts = 0; texts < PNG_TEXTS && !info->code; texts++) {
        if (!sfti_png_text(&info->arena, png, &at, &keyword, &text, &info->code)) break;
        if (text.len > 0 && sfti_is(keyword, "parameters")) parameters = text;
        if (text.len > 0 && sfti_is(keyword, "prompt")) prompt = text;
    }
    take_texts(info, parameters, prompt, source);
}

void sfti_info_preview(sft_info *info, sft_span base64, sft_span source) {
    sft_span data;
    uint32_t width, height;
    if (info->previews.count >= EMBEDDED_MOST
        || !sfti_base64(&info->arena, base64, IMAGE_MOST, &data, &info->code))
        return;
    const char *type = sfti_image_type(data, &width, &height);
    if (!type) return;
    SFTI_PUSH(info, &info->previews, sfti_preview, .source = source, .media_type = type,
              .bytes = data.len, .width = width, .height = height, .data = data);
    if (strcmp(type, "image/png") == 0) sfti_info_png_text(info, data, source);
}
