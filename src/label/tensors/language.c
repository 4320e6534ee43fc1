/* Language models: the sizes that shapes tell. */
#include "label/tensors/signatures.h"

#include "base/number.h"

#include <string.h>

/* ── Layers ── */

/* Names in order, behind what stands before the number of a layer. */
typedef struct number_walk {
    sfti_view behind;
    size_t at, to;
    sft_span digits; /* of the layer at hand */
    uint64_t number;
} number_walk;

static number_walk numbers_behind(const sfti_view *view, sft_span begin) {
    number_walk walk = { .behind = sfti_view_after(view, view->prefix, begin) };
    if (!sfti_view_range(&walk.behind, "", &walk.at, &walk.to)) walk.at = walk.to = 0;
    return walk;
}

/* Names of one layer stand together. */
static bool next_layer_number(number_walk *walk) {
    const size_t skip = strlen(walk->behind.prefix);
    const sft_span last = walk->digits;
    while (walk->at < walk->to) {
        sft_span rest = sfti_from(walk->behind.by_name[walk->at++]->name, skip), digits;
        if (!sfti_next_piece(&rest, '.', &digits) || digits.len >= 6
            || sft_span_equal(digits, last) || (digits.len > 1 && *digits.data == '0')
            || !sfti_parse_uint(digits, &walk->number))
            continue;
        walk->digits = digits;
        return true;
    }
    return false;
}

/* How many there are, 0 if numbers are left out; *least: the highest number, and 1. Without layers
 * at the end that have a tensor called as beyond, as heads have that predict more tokens. */
static uint64_t layers_after(const sfti_view *view, sft_span begin, sft_span beyond,
                             uint64_t *least) {
    number_walk walk = numbers_behind(view, begin);
    uint64_t layers = 0, count = 0, all;
    for (; next_layer_number(&walk); count++)
        if (walk.number + 1 > layers) layers = walk.number + 1;
    all = layers;
    while (layers > 0 && beyond.len > 0) {
        sft_span last_one = sfti_info_text(view->info, "%llu.%.*s",
                                           (unsigned long long)(layers - 1), (int)beyond.len,
                                           beyond.data);
        if (!last_one.len || !sfti_view_any(&walk.behind, last_one.data)) break;
        layers--;
    }
    *least = layers;
    return count == all ? layers : 0;
}

/* ── Sizes of tensors ── */

/* A tensor by a name with "#", or NULL. */
static const sft_tensor *language_tensor(const sfti_view *view, sft_span name) {
    sfti_evidence found;
    bool packed;
    if (name.len == 0 || !sfti_clauses_hold(view, name, &found, &packed)) return NULL;
    return found.count > 0 ? found.tensors[0] : NULL;
}

/* A size of the tensors by a name with "#", in all layers that have one; 0: it is not to be seen,
 * SFTI_SIZES_DIFFER: they do not all have it. */
static uint64_t size_in_all(const sfti_view *view, sft_span name, uint32_t rank, uint32_t axis) {
    const char *hash = name.len > 0 ? memchr(name.data, '#', name.len) : NULL;
    char own[256];
    uint64_t all = 0;
    if (!hash || name.len + SFTI_UINT_SIZE > sizeof own) return 0;
    sft_span after = sfti_from(name, (size_t)(hash - name.data) + 1);
    number_walk walk = numbers_behind(view, (sft_span){ name.data, (size_t)(hash - name.data) });
    while (next_layer_number(&walk)) {
        memcpy(own, walk.digits.data, walk.digits.len);
        memcpy(own + walk.digits.len, after.data, after.len);
        own[walk.digits.len + after.len] = '\0';
        const sft_tensor *tensor = sfti_view_find(&walk.behind, own);
        if (!tensor) continue;
        uint64_t size = tensor->rank == rank ? sfti_size_of(view->info->set, tensor, axis) : 0;
        if (size == 0) return 0;
        if (all > 0 && size != all) return SFTI_SIZES_DIFFER;
        all = size;
    }
    return all;
}

/* ── Heads ── */

typedef struct language_sizes {
    sft_span layers, beyond, embed, q, k, o;
    sft_span heads; /* a tensor with a number for each head */
    bool fused; /* q names query, key and value in one */
} language_sizes;

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

/* 0: not told. A norm of queries has the size of a head, a row for each, or it is one over all
 * heads at once, as in OLMo 2. Rotary frequencies tell nothing: some models turn a part of a head
 * only. */
static uint64_t head_size(const sfti_view *view, const sfti_record *of,
                          const language_sizes *sizes) {
    static const char *const norms[] = {
        "layers.#.self_attn.q_norm.weight", "layers.#.self_attn.q_layernorm.weight",
        "layers.#.self_attn.q_layernorm.norms.0.weight",
    };
    const uint64_t queries = view->info->llm.queries;
    const sft_tensor *each = language_tensor(view, sizes->heads);
    uint64_t count = each && each->rank > 0 ? each->shape[each->rank - 1] : 0;
    if (count > 0) return queries % count == 0 ? queries / count : 0;
    for (size_t i = 0; i < SFTI_COUNT(norms); i++) {
        sft_span name = sft_span_cstr(norms[i]);
        const sft_tensor *norm = language_tensor(view, name);
        uint64_t size = norm ? size_in_all(view, name, norm->rank, norm->rank - 1) : 0;
        if (norm) return norm->rank <= 2 && size < queries ? size : 0;
    }
    return declared_head(view->info->records, of, view->info->llm.hidden);
}

/* What all heads have: columns of the layer behind them, and rows of keys. Queries may have a gate
 * of as many rows; if they have others, values are not as wide as they are. */
static void read_queries(const sfti_view *view, const language_sizes *sizes, uint64_t embedded) {
    sft_info *info = view->info;
    uint64_t q = size_in_all(view, sizes->q, 2, 0), in = size_in_all(view, sizes->q, 2, 1);
    uint64_t o = size_in_all(view, sizes->o, 2, 1), k = size_in_all(view, sizes->k, 2, 0);
    bool turned = sizes->fused && q == embedded && in != embedded;
    bool told = o > 0 && o != SFTI_SIZES_DIFFER;
    if (in > 0 && in != SFTI_SIZES_DIFFER && !turned) info->llm.hidden = in;
    if (sizes->fused) {
        uint64_t rows = turned ? in : q;
        k = rows == SFTI_SIZES_DIFFER ? rows : told && rows > o ? (rows - o) / 2 : 0;
        if (told && rows > o && (rows - o) % 2 != 0) told = false;
    } else if (told) {
        told = q == o || q == 2 * o;
    }
    info->llm.queries = told ? o : sizes->fused ? 0 : q;
    info->llm.keys = k;
    info->llm.heads_told = told;
}

/* Queries share keys evenly, or nothing is told. One shard has not all layers. */
static void tell_heads(sft_info *info, uint64_t head) {
    uint64_t k = info->llm.keys;
    if (head == 0 || !info->llm.heads_told || info->llm.queries % head || info->shard_of > 1)
        return;
    uint64_t heads = info->llm.queries / head;
    bool seen = k > 0 && k != SFTI_SIZES_DIFFER;
    if (seen && (k % head || heads % (k / head))) return;
    info->llm.heads = heads;
    if (seen) info->llm.kv_heads = k / head;
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
    (void)sfti_row_has(row, "o", &sizes.o);
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
    uint64_t normed = norm && norm->rank == 1 ? norm->shape[0] : 0, embedded = 0;
    info->has_llm = true;
    uint64_t layers = layers_after(at, sizes.layers, sizes.beyond, &info->llm.least_layers);
    if (info->shard_of <= 1) info->llm.layers = layers;
    if (embed && embed->rank == 2) {
        info->llm.vocab = sfti_size_of(info->set, embed, 0);
        embedded = sfti_size_of(info->set, embed, 1);
    }
    read_queries(at, &sizes, embedded);
    /* Embeddings may be narrower than the layers, so they tell nothing where these hide theirs. */
    bool hides = info->llm.hidden == 0 && !sizes.fused && language_tensor(at, sizes.q) != NULL;
    if (info->llm.hidden == 0 && embedded > 0 && !hides) info->llm.hidden = embedded;
    if (info->llm.hidden == 0) info->llm.hidden = normed;
    tell_heads(info, head_size(at, of, &sizes));
}
