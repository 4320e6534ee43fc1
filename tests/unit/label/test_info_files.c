/* Labels of models in files that are not the system's, and what lies beside them there. */
#define _GNU_SOURCE
#include "base/mem.h"
#include "safetensors_info.h"
#include "unit/files_case.h"

static sft_info *info_of(const char *path, const sft_info_folder *folder, sft_set **set) {
    sft_info_options options = SFT_INFO_OPTIONS_INIT;
    sft_info *info;
    options.files = &mem.files;
    assert_int_equal(open_set(path, set), SFT_OK);
    mem.log[0] = '\0';
    assert_int_equal(sft_info_open(*set, path, folder, &options, &info, &err), SFT_OK);
    return info;
}

static void assert_fact(const sft_info *info, sft_fact fact, const char *want) {
    sft_span value = { "", 0 };
    bool known = sft_info_fact(info, fact, &value, NULL, NULL);
    assert_int_equal(known, want != NULL);
    if (want) assert_int_equal(sft_span_equal(value, sft_span_cstr(want)), true);
}

static void label_without_folder(void **state) {
    sft_set *set;
    (void)state;
    add_model("hf://ns/name@main/model.safetensors", HEADER("a"));
    mem_text(&mem, "hf://ns/name@main/README.md", "---\nlicense: mit\n---\n");
    sft_info *info = info_of("hf://ns/name@main/model.safetensors", NULL, &set);
    assert_fact(info, SFT_FACT_REPO, "ns/name");
    assert_fact(info, SFT_FACT_LICENSE, NULL);
    assert_log("");
    sft_info_close(info);
    sft_set_close(set);
}

static void label_with_sidecars(void **state) {
    sft_info_folder *folder;
    sft_set *set;
    (void)state;
    add_model("mem://h/m/x.safetensors", HEADER("a"));
    mem_text(&mem, "mem://h/m/README.md", "---\nlicense: mit\n---\n");
    mem_text(&mem, "mem://h/m/x.civitai.info", "{\"id\":5,\"trainedWords\":[\"neon\"]}");
    mem_text(&mem, "mem://h/m/sub/x.txt", "other");
    assert_int_equal(sft_info_folder_open("mem://h/m/", &mem.files, NULL, &folder, &err), SFT_OK);
    assert_int_equal(sft_info_folder_listed(folder, "mem://h/m/x.safetensors"), 0);
    assert_log("list mem://h/m/\n");
    sft_info *info = info_of("mem://h/m/x.safetensors", folder, &set);
    assert_fact(info, SFT_FACT_LICENSE, "mit");
    assert_int_equal(sft_info_trigger_count(info), 1);
    assert_log("expect mem://h/m/x.civitai.info mem://h/m/README.md beneath mem://h/m/\n"
               "open mem://h/m/x.civitai.info beneath mem://h/m/\n"
               "open mem://h/m/README.md beneath mem://h/m/\n");
    sft_info_close(info);
    sft_set_close(set);
    sft_info_folder_close(folder);
    assert_int_equal(sft_info_folder_open("mem://none", &mem.files, NULL, &folder, &err),
                     SFT_NOT_FOUND);
}

/* Slashes of URLs count: nothing is looked for in "mem:". */
static void label_at_the_top(void **state) {
    sft_info_folder *folder;
    sft_set *set;
    (void)state;
    add_model("mem://a//x.safetensors", HEADER("a"));
    mem_text(&mem, "mem://a//x.txt", "neon");
    assert_int_equal(sft_info_folder_open("mem://a//", &mem.files, NULL, &folder, &err), SFT_OK);
    sft_info *info = info_of("mem://a//x.safetensors", folder, &set);
    sft_info_close(info);
    sft_set_close(set);
    sft_info_folder_close(folder);
}

static void label_without_list(void **state) {
    sft_files_vtable table = mem_files_vtable;
    sft_files files = { &mem, &table };
    sft_info_folder *folder;
    (void)state;
    table.list = NULL;
    add_model("mem://h/model.safetensors", HEADER("a"));
    mem_text(&mem, "mem://h/README.md", "---\nlicense: mit\n---\n");
    assert_int_equal(sft_info_folder_open("mem://h", &files, NULL, &folder, &err), SFT_OK);
    sft_set *set;
    sft_info *info = info_of("mem://h/model.safetensors", folder, &set);
    assert_fact(info, SFT_FACT_LICENSE, NULL);
    sft_info_close(info);
    sft_set_close(set);
    sft_info_folder_close(folder);
    assert_log("");
}

static void repositories(void **state) {
    static const struct { const char *folder, *repo; } cases[] = {
        { "hf://ns/name", "ns/name" }, { "hf://ns/name@refs/pr/1/unet", "ns/name" },
        { "hf://models/ns/name/", "ns/name" }, { "hf://datasets/ns/name", NULL },
        { "hf://ns", NULL }, { "mem://ns/name", NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[100];
        sft_set *set;
        (void)snprintf(path, sizeof path, "%s/model.safetensors", cases[i].folder);
        add_model(path, HEADER("a"));
        sft_info *info = info_of(path, NULL, &set);
        assert_fact(info, SFT_FACT_REPO, cases[i].repo);
        sft_info_close(info);
        sft_set_close(set);
        mem.count--;
        free(mem.at[mem.count].bytes);
    }
}

/* What a server claims is recorded, and serves look-ups as a sidecar's digest does. */
static void claims_of_a_server(void **state) {
    static const char hex[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    const sft_info_claim given = { "sha256", sft_span_cstr(hex), sft_span_cstr("hub"), NULL };
    sft_info_options options = SFT_INFO_OPTIONS_INIT;
    sft_info_claim claim;
    sft_info *info;
    sft_set *set;
    sft_span value;
    sft_buffer text = { 0 };
    sft_sink sink = sft_sink_memory(&text);
    (void)state;
    add_model("mem://h/m/x.safetensors", HEADER("a"));
    info = info_of("mem://h/m/x.safetensors", NULL, &set);
    assert_false(sft_info_sized_hash(info, "sha256", &value));
    sft_info_close(info);
    options.files = &mem.files;
    options.claims = &given;
    options.claim_count = 1;
    assert_int_equal(sft_info_open(set, "mem://h/m/x.safetensors", NULL, &options, &info, &err),
                     SFT_OK);
    assert_int_equal(sft_info_claim_count(info), 1);
    assert_true(sft_info_claim_at(info, 0, &claim));
    assert_true(sft_span_equal(claim.source, given.source));
    assert_true(sft_info_sized_hash(info, "sha256", &value));
    assert_true(sft_span_equal(value, given.value));
    assert_int_equal(sft_info_json(info, "x", false, &sink, &err), SFT_OK);
    assert_int_equal(sfti_buffer_put(&text, "", 1), true);
    assert_non_null(strstr(text.data, "by-hash/00112233445566778899"));
    sft_buffer_free(&text);
    sft_info_close(info);
    sft_set_close(set);
}

/* Alphas are data. */
static void label_without_data(void **state) {
    static const char header[] =
        "{\"lora_unet_a.alpha\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
        "\"lora_unet_a.lora_down.weight\":{\"dtype\":\"F32\",\"shape\":[4,1],"
        "\"data_offsets\":[4,20]},"
        "\"lora_unet_a.lora_up.weight\":{\"dtype\":\"F32\",\"shape\":[1,4],"
        "\"data_offsets\":[20,36]}}";
    static const float data[9] = { 2 };
    (void)state;
    for (int no_data = 0; no_data < 2; no_data++) {
        sft_info_options options = SFT_INFO_OPTIONS_INIT;
        sft_info *info;
        sft_set *set;
        sft_tree *tree;
        test_file f = make_file(header, data, sizeof data);
        mem_add(&mem, "mem://h/m/lora.safetensors", f.bytes, f.len);
        free_file(&f);
        assert_int_equal(open_set("mem://h/m/lora.safetensors", &set), SFT_OK);
        options.files = &mem.files;
        options.no_data = no_data;
        assert_int_equal(sft_info_open(set, "mem://h/m/lora.safetensors", NULL, &options, &info,
                                       &err), SFT_OK);
        assert_int_equal(sft_tree_new(NULL, &tree, &err), SFT_OK);
        assert_int_equal(sft_info_tree(info, "x", SFT_NO_METADATA, tree, &err), SFT_OK);
        sft_span alpha = sft_node_text(sft_tree_root(tree), "adapter.alpha.mode");
        assert_int_equal(alpha.len > 0, !no_data);
        sft_tree_free(tree);
        sft_info_close(info);
        sft_set_close(set);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(label_without_folder), TEST(label_with_sidecars), TEST(label_at_the_top),
        TEST(label_without_list), TEST(repositories),
        TEST(claims_of_a_server), TEST(label_without_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
