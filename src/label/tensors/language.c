/* Language models: the sizes that shapes tell. */
#include "label/tensors/signatures.h"

#include <string.h>

/* Highest number after the text, and 1; without layers at the end that have a tensor so called, as
 * heads have that predict more tokens. */
static uint64_t layers_after(const sfti_view *view, sft_span begin, sft_span beyond) {
    sfti_view behind = sfti_view_after(view, view->prefix, begin);
    size_t from, to, skip = strlen(behind.prefix);
    uint64_t layers = 0;
    sft_span last = { NULL, 0 }; /* the same of many */
    if (!sfti_view_range(&behind, "", &from, &to)) return 0;
    for (size_t i = from; i < to; i++) {
        sft_span rest = sfti_from(view->by_name[i]->name, skip), digits;
        uint64_t number;
        if (!sfti_next_piece(&rest, '.', &digits) || digits.len >= 6
            || sft_span_equal(digits, last))
            continue;
        last = digits;
        if (sfti_parse_uint(digits, &number) && number + 1 > layers) layers = number + 1;
    }
    while (layers > 0 && beyond.len > 0) {
        sft_span last_one = sfti_info_text(view->info, "%llu.%.*s",
                                           (unsigned long long)(layers - 1), (int)beyond.len,
                                           beyond.data);
        if (!last_one.len || !sfti_view_any(&behind, last_one.data)) break;
        layers--;
    }
    return layers;
}

/* A tensor by a name with "#", or NULL. */
static const sft_tensor *language_tensor(const sfti_view *view, sft_span name) {
    sfti_evidence found;
    bool packed;
    if (name.len == 0 || !sfti_clauses_hold(view, name, &found, &packed)) return NULL;
    return found.count > 0 ? found.tensors[0] : NULL;
}

static const sft_tensor *named_tensor(const sfti_view *view, const char *name) {
    return language_tensor(view, sft_span_cstr(name));
}

/* A size of a linear layer, 0 if it is not to be seen. */
static uint64_t layer_size(const sfti_view *view, const sft_tensor *tensor, uint32_t axis) {
    return tensor && tensor->rank == 2 ? sfti_size_of(view->info->set, tensor, axis) : 0;
}

static uint64_t rows_of(const sfti_view *view, const sft_tensor *tensor) {
    return layer_size(view, tensor, 0);
}

/* Where an architecture and its hidden size settle it: "64", or "2304:256 3584:256". */
static uint64_t declared_head(const sfti_records *records, const sfti_record *of, uint64_t hidden) {
    const sfti_record_row *row = sfti_record_row_of(records, of, SFTI_HEAD, NULL);
    sft_span rest = sfti_row_text(row), pair;
    while (sfti_next_said(&rest, &pair)) {
        uint64_t width = hidden, size;
        sft_span after = sfti_find_byte(pair, ':');
        if (after.data && !sfti_parse_uint((sft_span){ pair.data, pair.len - after.len }, &width))
            continue;
        if (after.data) pair = sfti_from(after, 1);
        if (width == hidden && sfti_parse_uint(pair, &size)) return size;
    }
    return 0;
}

/* A norm over all heads at once, as in OLMo 2, is as wide as the query; rotary frequencies are half
 * a head, but of models that turn only a part of it. */
static uint64_t head_size(const sfti_view *view, const sfti_record *of, bool fused) {
    const sft_tensor *norm = named_tensor(view, "layers.#.self_attn.q_norm.weight");
    uint64_t q = rows_of(view, named_tensor(view, "layers.#.self_attn.q_proj.weight"));
    if (norm && norm->rank == 1) return norm->shape[0] != q ? norm->shape[0] : 0;
    const sft_tensor *rotary = named_tensor(view, fused
        ? "layers.#.self_attn.rotary_emb.inv_freq"
        : "layers.#.self_attn.rotary_emb.inv_freq | layers.#.attention.rotary_emb.inv_freq");
    if (rotary && rotary->rank == 1 && rotary->shape[0] < UINT32_MAX) return rotary->shape[0] * 2;
    return declared_head(view->info->records, of, view->info->llm.hidden);
}

typedef struct language_sizes {
    sft_span layers, beyond, embed, q, k;
    sft_span heads; /* a tensor with a number for each head */
    bool fused; /* q names query, key and value in one */
} language_sizes;

static void language_heads_of(const sfti_view *view, const language_sizes *sizes, uint64_t head) {
    sft_info *info = view->info;
    uint64_t hidden = info->llm.hidden, q = rows_of(view, language_tensor(view, sizes->q));
    if (head == 0) return;
    if (sizes->q.len == 0 && hidden % head == 0) { /* as wide as the model */
        if (sizes->fused) info->llm.heads = info->llm.kv_heads = hidden / head;
        return;
    }
    if (sizes->fused) {
        if (q == 0 || hidden % head || q % head || q < hidden || (q - hidden) % (2 * head)) return;
        info->llm.heads = hidden / head;
        info->llm.kv_heads = (q - hidden) / head / 2;
        return;
    }
    uint64_t k = rows_of(view, language_tensor(view, sizes->k));
    if (q % head == 0) info->llm.heads = q / head;
    if (k % head == 0) info->llm.kv_heads = k / head;
}

/* What its own row "sizes" says, else that of several models. */
static language_sizes read_sizes(const sfti_records *records, const sfti_record *of) {
    language_sizes sizes = { .fused = false };
    const sfti_record_row *row = sfti_record_row_of(records, of, SFTI_SIZES, NULL);
    for (const sfti_record_row *any = sfti_rows(records, SFTI_SIZES, 0); any && !row;
         any = sfti_rows_next(records, any))
        if (sfti_row_record(records, any)->type == SFTI_SEVERAL) row = any;
    if (!row) return sizes;
    (void)sfti_row_has(row, "layers", &sizes.layers);
    (void)sfti_row_has(row, "beyond", &sizes.beyond);
    (void)sfti_row_has(row, "heads", &sizes.heads);
    (void)sfti_row_has(row, "embed", &sizes.embed);
    (void)sfti_row_has(row, "q", &sizes.q);
    (void)sfti_row_has(row, "k", &sizes.k);
    sizes.fused = sfti_row_has(row, "fused", NULL);
    return sizes;
}

void sfti_language_sizes(const sfti_view *at, const char *architecture) {
    sft_info *info = at->info;
    const sfti_records *records = info->records;
    const sfti_record *of = sfti_model_record(records, architecture);
    language_sizes sizes = read_sizes(records, of);
    const sft_tensor *embed = language_tensor(at, sizes.embed);
    const sft_tensor *norm = sfti_view_find(at, "norm.weight");
    info->has_llm = true;
    const sft_tensor *query = language_tensor(at, sizes.q);
    const sft_tensor *each = language_tensor(at, sizes.heads);
    if (info->shard_of <= 1) info->llm.layers = layers_after(at, sizes.layers, sizes.beyond);
    if (embed && embed->rank == 2) {
        info->llm.vocab = sfti_size_of(info->set, embed, 0);
        info->llm.hidden = sfti_size_of(info->set, embed, 1);
    }
    /* Embeddings may be narrower than the layers. */
    if (layer_size(at, query, 1) > 0) info->llm.hidden = layer_size(at, query, 1);
    if (info->llm.hidden == 0 && norm && norm->rank == 1) info->llm.hidden = norm->shape[0];
    uint64_t head = head_size(at, of, sizes.fused), rows = rows_of(at, query);
    uint64_t count = each && each->rank > 0 ? each->shape[each->rank - 1] : 0;
    if (count > 0) head = rows % count == 0 ? rows / count : 0;
    language_heads_of(at, &sizes, head);
}
