/* info and ls of datasets; results of maintenance as trees. */
#define _GNU_SOURCE
#include "unit/maintain_case.h"

/* ── info and ls ── */

static bool named_b(void *ctx, const sft_tensor *t) {
    (void)ctx;
    return t->name.len == 4 && t->name.data[0] == 'b';
}

static void shown(void **state) {
    (void)state;
    make_kv();
    sft_dataset *d = ds_open();
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_info_json(d, "d", &sink, &err));
    has("{\"path\":\"d\",\"ok\":true,\"mode\":\"kv\",");
    has("\"name_col\":\"id\",\"kv_separator\":\"__\",\"tail_strategy\":null,\"index\":null,"
        "\"segments\":null,"
        "\"samples\":6,\"valid_samples\":6,\"padded_samples\":0,");
    has("\"shards\":3,\"tensors\":7,\"shadowed\":1,"
        "\"columns\":{\"v\":{\"dtype\":\"F32\",\"shape\":[2]}}}");
    sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_ls_json(d, NULL, "d", named_b, NULL, &sink, &err));
    has("\"name\":\"b__v\"");
    has("\"replaced\":true");
    has("\"replaced\":false");
    has(shard[1]);
    has("\"dtype\":\"F32\",\"shape\":[2],\"bytes\":8,\"begin\":");
    has_not("a__v");
    sft_dataset_replaced *replaced;
    size_t count = 0;
    assert_int_equal(sft_dataset_find_replaced(d, NULL, &replaced, &err), SFT_OK);
    for (size_t i = 0; i < sft_dataset_shard_count(d); i++)
        for (size_t tensor = 0; tensor < sft_dataset_shard_at(d, i)->tensors; tensor++)
            count += sft_dataset_is_replaced(replaced, i, tensor);
    assert_int_equal(count, 1);
    sft_dataset_replaced_free(replaced);
    sft_dataset_close(d);
    make_batch();
    d = ds_open();
    sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_info_json(d, "d", &sink, &err));
    has("\"mode\":\"batch\"");
    has("\"batch_size\":4,");
    has("\"samples\":8,\"valid_samples\":7,\"padded_samples\":1,");
    sft_dataset_close(d);
}

/* ── As trees ── */

static sft_tree *tree_new(void) {
    sft_tree *tree;
    assert_int_equal(sft_tree_new(NULL, &tree, &err), SFT_OK);
    return tree;
}

static const char *text_at(const sft_node *node, const char *path) {
    static char buffer[300];
    sft_span text = sft_node_text(node, path);
    (void)snprintf(buffer, sizeof buffer, "%.*s", (int)text.len, text.data);
    return buffer;
}

/* The tree has the contents of the last JSON; it is freed. */
static void as_before(sft_tree *tree) {
    sft_buffer text = { 0 };
    sft_sink sink = sft_sink_memory(&text);
    assert_int_equal(sft_node_json(sft_tree_root(tree), NULL, NULL, &sink, 0, NULL, &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_int_equal(text.len, strlen(out.data));
    assert_memory_equal(text.data, out.data, text.len);
    sft_buffer_free(&text);
    sft_tree_free(tree);
}

static void trees(void **state) {
    sft_compact_options how = SFT_COMPACT_OPTIONS_INIT;
    how.drop_old = true;
    how.target_bytes = UINT64_MAX;
    uint64_t number;
    (void)state;
    make_kv();
    sft_dataset *d = ds_open();
    sft_tree *tree = tree_new();
    assert_int_equal(sft_dataset_info_tree(d, "d", tree, &err), SFT_OK);
    assert_string_equal(text_at(sft_tree_root(tree), "columns.v.dtype"), "F32");
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_info_json(d, "d", &sink, &err));
    as_before(tree);
    sft_dataset_close(d);

    assert_int_equal(unlink(temp_path(shard[1])), 0);
    orphan(ORPHAN, true);
    verify(false);
    tree = tree_new();
    assert_int_equal(sft_dataset_verify_tree(&ds_storage, false, NULL, "d", tree, &whole, NULL,
                                             &err),
                     SFT_OK);
    assert_false(whole);
    const sft_node *root = sft_tree_root(tree);
    const sft_node *finding = sft_node_get(root, "findings")->first;
    assert_string_equal(text_at(finding, "shard"), shard[1]);
    assert_string_equal(text_at(finding, "code"), "dataset_shard");
    assert_string_equal(text_at(sft_node_get(root, "orphans")->first, "shard"), ORPHAN);
    as_before(tree);

    gc(0, false);
    tree = tree_new();
    assert_int_equal(sft_dataset_gc_tree(&ds_storage, gc_how(0, false), "d", tree, &err),
                     SFT_OK);
    const sft_node *item = sft_node_get(sft_tree_root(tree), "garbage")->first;
    assert_string_equal(text_at(item, "name"), ORPHAN);
    assert_false(sft_node_true(item, "removed"));
    as_before(tree);
    tree = tree_new();
    assert_int_equal(sft_dataset_gc_tree(&ds_storage, gc_how(0, true), "d", tree, &err), SFT_OK);
    assert_true(sft_node_true(sft_node_get(sft_tree_root(tree), "garbage")->first, "removed"));
    assert_false(ds_exists(ORPHAN));
    sft_tree_free(tree);

    make_kv();
    tree = tree_new();
    assert_int_equal(sft_dataset_compact_tree(&ds_storage, &how, "d", tree, NULL, &err),
                     SFT_OK);
    assert_true(sft_node_uint(sft_tree_root(tree), "shards_after", &number));
    assert_int_equal(number, 1);
    sft_tree_free(tree);
    verify_whole(true);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(shown), FOLDER_TEST(trees),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sft_buffer_free(&out);
    return failed;
}
