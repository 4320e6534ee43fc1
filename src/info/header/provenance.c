#include "info/header/header.h"

#include <string.h>

#define LOADERS_MOST 256
#define LOADER_NAMES 4

/* One node of a graph: what it loads. */
typedef struct loader_node {
    sft_span type, names[LOADER_NAMES], model, clip;
    size_t count;
    size_t numbers; /* widgets after the name */
} loader_node;

typedef enum loader_field { LOADER_BEGIN, LOADER_TYPE, LOADER_INPUT, LOADER_MODEL, LOADER_CLIP,
                            LOADER_WIDGET } loader_field;

static bool names_model(sft_span text) {
    static const char *const ends[] = { ".safetensors", ".sft", ".ckpt", ".pt", ".pth", ".bin",
                                        ".gguf" };
    if (text.len > 1024) return false;
    for (size_t i = 0; i < SFTI_COUNT(ends); i++)
        if (sfti_ends_with(text, ends[i])) return true;
    return false;
}

/* Nodes of ComfyUI that merge models; their names tell the way. */
static void note_merge(sft_info *info, sft_span type) {
    if (!sfti_starts_with(type, "ModelMerge") || info->merge_method.len > 0) return;
    info->has_merge = true;
    info->merge_method = type;
    info->merge_tool = sft_span_cstr("comfyui");
}

static void put_loader(sft_info *info, loader_node *node) {
    if (node->type.len > 0) note_merge(info, node->type);
    for (size_t i = 0; i < node->count && info->loaders.count < LOADERS_MOST; i++) {
        sfti_loader *loader = sfti_info_push(info, &info->loaders, sizeof *loader);
        if (!loader) return;
        loader->type = node->type;
        loader->name = node->names[i];
        loader->strength_model = node->model;
        loader->strength_clip = node->clip;
    }
    memset(node, 0, sizeof *node);
}

static void widget_number(loader_node *node, sft_span text) {
    if (node->count == 0 || !sfti_contains(node->type, "lora")) return;
    if (node->numbers == 0) node->model = text;
    if (node->numbers == 1) node->clip = text;
    node->numbers++;
}

static void take_loader(sfti_walk *walk, const sfti_walk_row *row) {
    loader_node *node = walk->ctx;
    bool text = walk->json.type == SFTI_JSON_STRING;
    bool number = walk->json.type == SFTI_JSON_UINT || walk->json.type == SFTI_JSON_NUMBER;
    switch (row->field) {
    case LOADER_BEGIN: put_loader(walk->info, node); break;
    case LOADER_TYPE:
        if (text) node->type = walk->text;
        break;
    case LOADER_MODEL:
        if (number) node->model = walk->text;
        break;
    case LOADER_CLIP:
        if (number) node->clip = walk->text;
        break;
    default:
        if (row->field == LOADER_WIDGET && number) widget_number(node, walk->text);
        if (text && node->count < LOADER_NAMES && names_model(walk->text))
            node->names[node->count++] = walk->text;
    }
}

static const sfti_walk_row prompt_rows[] = {
    { "/*", take_loader, LOADER_BEGIN, 0, NULL },
    { "/*/class_type", take_loader, LOADER_TYPE, 0, NULL },
    { "/*/inputs/strength_model", take_loader, LOADER_MODEL, 0, NULL },
    { "/*/inputs/strength_clip", take_loader, LOADER_CLIP, 0, NULL },
    { "/*/inputs/*", take_loader, LOADER_INPUT, 0, NULL },
    { "/*/inputs/*/lora", take_loader, LOADER_INPUT, 0, NULL },
};

static const sfti_walk_row workflow_rows[] = {
    { "/nodes/*", take_loader, LOADER_BEGIN, 0, NULL },
    { "/nodes/*/type", take_loader, LOADER_TYPE, 0, NULL },
    { "/nodes/*/widgets_values/*", take_loader, LOADER_WIDGET, 0, NULL },
};

static bool walk_graph(sfti_header *header, const sfti_walk_row *rows, size_t count) {
    loader_node node;
    sft_span text = sfti_trim(header->value);
    memset(&node, 0, sizeof node);
    if (text.len == 0 || *text.data != '{') return false;
    if (!sfti_info_walk(header->info, text, header->source, rows, count, &node)) return false;
    put_loader(header->info, &node);
    return true;
}

static void found_graph(sfti_header *header, bool *flag) {
    *flag = true;
    header->info->has_provenance = true;
    sfti_info_private(header->info, header->key, "workflow");
    sfti_info_scan_text(header->info, header->value, header->source, true);
}

static void prompt_graph(sfti_header *header, const sfti_header_row *row) {
    (void)row;
    if (walk_graph(header, SFTI_WALK(prompt_rows)))
        found_graph(header, &header->info->has_prompt_graph);
}

/* The same nodes as the prompt's, so loaders only where there is no prompt. */
static void workflow_graph(sfti_header *header, const sfti_header_row *row) {
    sft_span prompt;
    (void)row;
    bool alone = !sfti_header_get(header, "prompt", &prompt);
    size_t count = alone ? SFTI_COUNT(workflow_rows) : 0;
    if (walk_graph(header, workflow_rows, count))
        found_graph(header, &header->info->has_workflow);
}

static const sfti_header_row provenance_rows[] = {
    { "prompt", prompt_graph, 0, 0, NULL, NULL, 0 },
    { "workflow", workflow_graph, 0, 0, NULL, NULL, 0 },
};

sfti_header_family sfti_provenance_family(void) {
    return (sfti_header_family){ "", provenance_rows, SFTI_COUNT(provenance_rows), false };
}
