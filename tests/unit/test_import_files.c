/* Imports and digests of files that are not the system's. */
#define _GNU_SOURCE
#include "safetensors_hash.h"
#include "safetensors_import.h"
#include "unit/files_case.h"

/* ── Imports ── */

static sft_part part_of(const char *name, const sft_source *bytes) {
    static const uint64_t shape[] = { 8 };
    sft_part part = { { sft_span_cstr(name), SFT_U8, 1, shape }, bytes, 0 };
    return part;
}

/* A checkpoint of one tensor. */
static void add_export(const char *path, const char *name, bool torch) {
    sft_source bytes = sft_source_memory("abcdefgh", 8);
    sft_part part = part_of(name, &bytes);
    sft_buffer out = { 0 };
    sft_code code = torch ? sft_export_pt(&part, 1, NULL, sft_sink_memory(&out), NULL, &err)
                          : sft_export_npz(&part, 1, NULL, sft_sink_memory(&out), NULL, &err);
    assert_int_equal(code, SFT_OK);
    mem_add(&mem, path, out.data, out.len);
    sft_buffer_free(&out);
}

static sft_code open_import(const char *path, sft_import **out) {
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    options.files = &mem.files;
    return sft_import_open(path, &options, out, &err);
}

static void imported(void **state) {
    sft_import_format format;
    sft_import *import;
    char bytes[8];
    size_t got;
    (void)state;
    add_export("mem://a.npz", "t", false);
    assert_int_equal(sft_import_recognise("mem://a.npz", &mem.files, &format, &err), SFT_OK);
    assert_int_equal(format, SFT_IMPORT_NPZ);
    assert_int_equal(sft_import_recognise("mem://a.npz", NULL, &format, &err), SFT_NOT_FOUND);
    assert_int_equal(open_import("mem://a.npz", &import), SFT_OK);
    assert_int_equal(sft_import_tensor_count(import), 1);
    sft_part part = sft_import_part(import, 0);
    assert_int_equal(sft_source_read(part.source, part.begin, bytes, 8, &got, &err), SFT_OK);
    assert_memory_equal(bytes, "abcdefgh", 8);
    sft_import_close(import);
}

#define TORCH_INDEX "{\"weight_map\":{\"a\":\"1.bin\",\"b\":\"s/2.bin\"}}"

static void imported_shards(void **state) {
    sft_import_format format;
    sft_import *import;
    (void)state;
    mem_text(&mem, "mem://m/pytorch_model.bin.index.json", TORCH_INDEX);
    add_export("mem://m/1.bin", "a", true);
    add_export("mem://m/s/2.bin", "b", true);
    mem_text(&mem, "mem://m/pytorch_model.bin", "not this");
    assert_int_equal(open_import("mem://m/pytorch_model.bin.index.json", &import), SFT_OK);
    assert_int_equal(sft_import_tensor_count(import), 2);
    sft_import_close(import);
    for (char *at; (at = strstr(mem.log, "runs")) != NULL;)
        memmove(at, strchr(at, '\n') + 1, strlen(strchr(at, '\n')));
    assert_log("open mem://m/pytorch_model.bin.index.json\n"
               "expect mem://m/1.bin mem://m/s/2.bin beneath mem://m/\n"
               "open mem://m/1.bin beneath mem://m/\n"
               "open mem://m/s/2.bin beneath mem://m/\n");
    assert_int_equal(open_import("mem://m", &import), SFT_OK);
    assert_int_equal(sft_import_shard_count(import), 2);
    sft_import_close(import);
    assert_int_equal(sft_import_recognise("mem://m/", &mem.files, &format, &err), SFT_OK);
    assert_int_equal(format, SFT_IMPORT_TORCH_INDEX);
    assert_int_equal(open_import("mem://m/s", &import), SFT_IO_NOT_FILE);
    assert_int_equal(open_import("mem://none", &import), SFT_NOT_FOUND);
}

static void import_names(void **state) {
    static const char *const names[] = { "../1.bin", "https://evil/1.bin", "1.bin?x", "%2e/1.bin",
                                         "http:1.bin", "/1.bin" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[200];
        sft_import *import;
        (void)snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", names[i]);
        mem_text(&mem, "mem://m/x.bin.index.json", text);
        mem.log[0] = '\0';
        assert_int_equal(open_import("mem://m/x.bin.index.json", &import), SFT_FOREIGN_PATH);
        assert_log("open mem://m/x.bin.index.json\n");
        mem.count--;
        free(mem.at[mem.count].bytes);
    }
}

/* ── Digests ── */

static sft_hashes hash_of(const char *path, uint32_t algos) {
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    sft_job job = SFT_JOB_INIT;
    sft_hashes found;
    job.threads = 1;
    options.open = &how;
    mem.log[0] = '\0';
    if (sft_hash_path(path, algos, &options, &found, &job, &err)) fail_msg("%s", err.message);
    return found;
}

static void hashed(void **state) {
    const uint32_t all = SFT_HASH_BIT(SFT_HASH_SHA256) | SFT_HASH_BIT(SFT_HASH_CONTENT)
                         | SFT_HASH_BIT(SFT_HASH_AUTOV3);
    test_file f = make_file(HEADER("t"), "abcdefgh", 8);
    sft_hashes here, there;
    (void)state;
    mem_add(&mem, "mem://a", f.bytes, f.len);
    temp_write("a", f.bytes, f.len);
    free_file(&f);
    here = hash_of(temp_path("a"), all);
    there = hash_of("mem://a", all);
    for (int i = 0; i < SFT_HASH_COUNT; i++)
        if (all & SFT_HASH_BIT(i))
            assert_string_equal(sft_hashes_get(&there, (sft_hash_algo)i),
                                sft_hashes_get(&here, (sft_hash_algo)i));
    add_export("mem://a.npz", "t", false);
    there = hash_of("mem://a.npz", SFT_HASH_BIT(SFT_HASH_CONTENT));
    assert_string_equal(sft_hashes_get(&there, SFT_HASH_CONTENT),
                        sft_hashes_get(&here, SFT_HASH_CONTENT));
}

static void hashed_set(void **state) {
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    sft_hashes found;
    (void)state;
    mem_text(&mem, "mem://m/x.safetensors.index.json", INDEX("1", "2"));
    add_model("mem://m/1", HEADER("a"));
    add_model("mem://m/2", HEADER("b"));
    found = hash_of("mem://m/x.safetensors.index.json", SFT_HASH_BIT(SFT_HASH_CONTENT));
    assert_int_equal(strlen(sft_hashes_get(&found, SFT_HASH_CONTENT)), 64);
    options.open = &how;
    options.only_cached = true;
    mem.log[0] = '\0';
    assert_int_equal(sft_hash_path("mem://m/1", SFT_HASH_BIT(SFT_HASH_SHA256), &options, &found,
                                   NULL, &err), SFT_OK);
    assert_int_equal(sft_hashes_known(&found), 0);
    assert_log("");
    options.only_cached = false;
    assert_int_equal(sft_hash_path("mem://none", SFT_HASH_BIT(SFT_HASH_SHA256), &options, &found,
                                   NULL, &err), SFT_NOT_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(imported), TEST(imported_shards), TEST(import_names), TEST(hashed), TEST(hashed_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
