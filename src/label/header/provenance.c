/* A ComfyUI workflow in a header: the models that its loaders name. */
#include "label/header/header.h"

#include <stddef.h>
#include <string.h>

#define LOADERS_MOST 256
#define LOADER_NAMES 4

/* One node of a graph: what it loads. */
typedef struct loader_node {
    sft_span type, names[LOADER_NAMES], model, clip;
    size_t count;
    size_t numbers; /* widgets after the name */
} loader_node;

static void put_loader(sft_info *info, loader_node *node) {
    /* Nodes of ComfyUI that merge models; their names tell the way. */
    if (sfti_starts_with(node->type, "ModelMerge") && info->merge_method.len == 0) {
        info->has_merge = true;
        info->merge_method = node->type;
        info->merge_tool = sft_span_cstr("comfyui");
    }
    for (size_t i = 0; i < node->count && info->loaders.count < LOADERS_MOST; i++)
        SFTI_PUSH(info, &info->loaders, sfti_loader, .type = node->type, .name = node->names[i],
                  .strength_model = node->model, .strength_clip = node->clip);
    memset(node, 0, sizeof *node);
}

static void node_begin(sfti_cursor *at) {
    put_loader(at->info, at->ctx);
}

/* row->field: where in a node */
static void node_text(sfti_cursor *at) {
    if (at->json->type == SFTI_JSON_STRING)
        *(sft_span *)(void *)((char *)at->ctx + at->row->field) = at->text;
}

static void node_number(sfti_cursor *at) {
    if (sfti_at_number(at)) *(sft_span *)(void *)((char *)at->ctx + at->row->field) = at->text;
}

static void node_name(sfti_cursor *at) {
    static const char *const ends[] = { ".safetensors", ".sft", ".ckpt", ".pt", ".pth", ".bin",
                                        ".gguf" };
    loader_node *node = at->ctx;
    if (at->json->type == SFTI_JSON_STRING && node->count < LOADER_NAMES && at->text.len <= 1024
        && SFTI_ONE_OF(at->text, ends, sfti_ends_with))
        node->names[node->count++] = at->text;
}

/* Widgets have no names: after a LoRA's come its strengths. */
static void node_widget(sfti_cursor *at) {
    loader_node *node = at->ctx;
    node_name(at);
    if (!sfti_at_number(at) || node->count == 0 || !sfti_contains(node->type, "lora")) return;
    if (node->numbers == 0) node->model = at->text;
    if (node->numbers == 1) node->clip = at->text;
    node->numbers++;
}

static const size_t node_places[] = { offsetof(loader_node, type), offsetof(loader_node, model),
                                      offsetof(loader_node, clip) };
static const sfti_key_take node_takes[] = {
    { "node", node_begin, NULL, NULL }, { "text", node_text, "type", node_places },
    { "number", node_number, "- strength_model strength_clip", node_places },
    { "name", node_name, NULL, NULL }, { "widget", node_widget, NULL, NULL },
};
SFTI_KEYS_OF(sfti_prompt_keys, "prompt", node_takes);
SFTI_KEYS_OF(sfti_workflow_keys, "workflow", node_takes);

static void loaders_of(sfti_cursor *at, const sfti_row *rows, size_t count, bool *found) {
    loader_node node;
    sft_span text = sfti_trim(at->text);
    memset(&node, 0, sizeof node);
    if (text.len == 0 || *text.data != '{') return;
    if (!sfti_info_walk(at->info, text, at->source, rows, count, &node)) return;
    put_loader(at->info, &node);
    *found = at->info->has_provenance = true;
    sfti_info_private(at->info, at->key, "workflow");
    sfti_info_scan_text(at->info, at->text, at->source, true);
}

static void prompt_graph(sfti_cursor *at) {
    loaders_of(at, SFTI_KEY_ROWS(sfti_prompt_keys), &at->info->has_prompt_graph);
}

/* The same nodes as the prompt's, so loaders only where there is no prompt. */
static void workflow_graph(sfti_cursor *at) {
    sft_span prompt;
    bool alone = !sfti_info_metadata(at->info, "prompt", &prompt);
    loaders_of(at, sfti_workflow_keys.made->rows, alone ? sfti_workflow_keys.made->row_count : 0,
               &at->info->has_workflow);
}

static const sfti_key_take graph_takes[] = {
    { "prompt", prompt_graph, NULL, NULL },
    { "workflow", workflow_graph, NULL, NULL },
};
SFTI_KEYS_OF(sfti_graph_keys, "graphs", graph_takes);
