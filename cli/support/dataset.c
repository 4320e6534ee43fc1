/* The result object of a dataset: its facts under `dataset`, told as those of a model are. */
#include "support/models.h"

#include "base/result.h"
#include "base/tree.h"
#include "os/path.h"
#include "safetensors_dataset.h"
#include "support/words.h"

static void put_fact(sfti_json_writer *w, const char *key, sft_span value, uint64_t trust) {
    sfti_json_put_open(w, key, '{');
    sfti_json_put_text(w, "value", value);
    sfti_json_put_cstr(w, "source", "folder");
    sfti_json_put_uint(w, "trust", trust);
    sfti_json_put_open(w, "others", '[');
    sfti_json_close(w, ']');
    sfti_json_close(w, '}');
}

/* What every result has is told once. */
static sft_node_keep keep_own(void *ctx, const sft_node *node) {
    (void)ctx;
    if (!node->parent) return SFT_NODE_SOME;
    bool common = !node->parent->parent && (cli_is(node->key, "path") || cli_is(node->key, "ok")
                                            || cli_is(node->key, "path_bytes"));
    return common ? SFT_NODE_DROP : SFT_NODE_ALL;
}

static sft_code put_dataset(const char *folder, const sft_node *from, sft_tree *tree,
                            sft_error *err) {
    sft_span name = sfti_path_name(sfti_path_trimmed(sft_span_cstr(folder)));
    bool dots = cli_is(name, ".") || cli_is(name, "..");
    sfti_json_writer w;
    sft_buffer own = { .len = 0 };
    sft_sink sink = sft_sink_memory(&own);
    sft_code code = sft_node_json(from, keep_own, NULL, &sink, 0, NULL, err);
    sfti_json_write_tree(&w, tree, err);
    sfti_result_begin(&w, folder);
    sfti_json_put_bool(&w, "ok", true);
    sfti_json_put_open(&w, "file", '{');
    sfti_json_key(&w, "bytes");
    sfti_json_text(&w, sft_node_text(from, "bytes"));
    sfti_json_close(&w, '}');
    sfti_json_put_open(&w, "model", '{');
    put_fact(&w, "kind", sft_span_cstr("dataset"), 100);
    put_fact(&w, "name", dots ? (sft_span){ NULL, 0 } : name, 30);
    sfti_json_close(&w, '}');
    sfti_json_key(&w, "dataset");
    sfti_json_text(&w, (sft_span){ own.data, own.len });
    if (!code) code = sfti_result_end(&w);
    sft_buffer_free(&own);
    return code;
}

sft_code cli_dataset_tree(cli *c, const char *folder, sft_tree **out, sft_error *err) {
    sft_tree *facts = NULL, *tree = NULL;
    sft_storage storage = { NULL, NULL, false };
    sft_dataset *dataset = NULL;
    sft_code code = sft_tree_new(&c->alloc, &facts, err);
    if (!code) code = sft_storage_local(folder, true, &c->alloc, &storage, err);
    if (!code) code = sft_dataset_open(&storage, &c->alloc, NULL, NULL, &dataset, err);
    if (!code) code = sft_dataset_info_tree(dataset, folder, facts, err);
    sft_dataset_close(dataset);
    sft_storage_close(&storage);
    if (!code) code = sft_tree_new(&c->alloc, &tree, err);
    if (!code) code = put_dataset(folder, sft_tree_root(facts), tree, err);
    sft_tree_free(facts);
    if (!code) *out = tree;
    else sft_tree_free(tree);
    return code;
}
