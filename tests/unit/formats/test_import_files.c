/* Imports, digests, statistics and conversions of files that are not the system's. */
#define _GNU_SOURCE
#include "safetensors_convert.h"
#include "safetensors_hash.h"
#include "safetensors_import.h"
#include "safetensors_report.h"
#include "safetensors_stats.h"
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
    options.open_other = sft_import_open_set;
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

/* ── What is read is announced ── */

/* The first run of each "runs" of the log, in order; how many. */
static size_t first_runs(sft_run *out, size_t most) {
    size_t count = 0;
    for (const char *at = mem.log; (at = strstr(at, "runs ")) != NULL && count < most; at++) {
        unsigned long long offset, len;
        assert_int_equal(sscanf(at, "runs %llu+%llu", &offset, &len), 2);
        out[count++] = (sft_run){ offset, len };
    }
    return count;
}

/* Every read lies in a run that was announced before it, but for the head and tail of the file. */
static void assert_reads_announced(uint64_t head, uint64_t tail) {
    sft_run runs[200];
    size_t count = 0;
    for (char *line = strtok(mem.log, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned long long offset, len;
        int used;
        if (sscanf(line, "read %llu+%llu", &offset, &len) == 2) {
            bool inside = offset + len <= head || offset >= tail;
            for (size_t i = 0; i < count && !inside; i++)
                inside = offset >= runs[i].offset && offset + len <= runs[i].offset + runs[i].len;
            if (!inside) fail_msg("%s: not announced", line);
        } else if (strncmp(line, "runs", 4) == 0) {
            for (line += 4; sscanf(line, " %llu+%llu%n", &offset, &len, &used) == 2; line += used)
                runs[count++] = (sft_run){ offset, len };
        }
    }
    assert_true(count > 0);
    mem.log[0] = '\0';
}

#define ARRAYS 40

/* Arrays that are far from one another. */
static void add_arrays(const char *path, bool torch) {
    static const uint64_t shape[] = { 9000 };
    static char bytes[9000], names[ARRAYS][8];
    sft_source source = sft_source_memory(bytes, sizeof bytes);
    sft_part parts[ARRAYS];
    sft_buffer out = { 0 };
    for (int i = 0; i < ARRAYS; i++) {
        (void)snprintf(names[i], sizeof names[i], "t%d", i);
        parts[i] = (sft_part){ { sft_span_cstr(names[i]), SFT_U8, 1, shape }, &source, 0 };
    }
    sft_sink sink = sft_sink_memory(&out);
    sft_code code = torch ? sft_export_pt(parts, ARRAYS, NULL, sink, NULL, &err)
                          : sft_export_npz(parts, ARRAYS, NULL, sink, NULL, &err);
    assert_int_equal(code, SFT_OK);
    mem_add(&mem, path, out.data, out.len);
    sft_buffer_free(&out);
}

static void archives_announced(void **state) {
    (void)state;
    for (int torch = 0; torch < 2; torch++) {
        const char *path = torch ? "mem://a.pt" : "mem://a.npz";
        sft_buffer out = { 0 };
        sft_import *import;
        add_arrays(path, torch);
        uint64_t size = mem.at[mem.count - 1].len, tail = size - 65557;
        mem.quiet = false;
        assert_int_equal(open_import(path, &import), SFT_OK);
        assert_reads_announced(64, tail);
        assert_int_equal(sft_import_verify(import, NULL, &err), SFT_OK);
        assert_reads_announced(0, size);
        assert_int_equal(sft_import_save(import, sft_sink_memory(&out), NULL, NULL, &err), SFT_OK);
        assert_reads_announced(0, size);
        sft_buffer_free(&out);
        sft_import_close(import);
        mem.quiet = true;
    }
}

/* A set made of an import announces to the import's file. */
static void imported_sets_announced(void **state) {
    sft_deep_counts counts;
    sft_import *import;
    sft_set *set;
    (void)state;
    add_arrays("mem://a.npz", false);
    assert_int_equal(open_import("mem://a.npz", &import), SFT_OK);
    assert_int_equal(sft_import_set(import, "mem://a.npz", &set, &err), SFT_OK);
    mem.log[0] = '\0';
    mem.quiet = false;
    assert_int_equal(sft_set_check_deep(set, &counts, NULL, &err), SFT_OK);
    assert_reads_announced(0, mem.at[0].len);
    sft_set_close(set);
}

static void digests_announced(void **state) {
    sft_run runs[4];
    (void)state;
    add_three("mem://three", "0123456789abcdef");
    (void)hash_of("mem://three", SFT_HASH_BIT(SFT_HASH_SHA256));
    assert_int_equal(first_runs(runs, 4), 1);
    assert_int_equal(runs[0].offset, 0);
    assert_int_equal(runs[0].len, THREE_DATA + 16);
    (void)hash_of("mem://three", SFT_HASH_BIT(SFT_HASH_CONTENT));
    RUNS({ 0, 16 });
}

static void statistics_announced(void **state) {
    sft_statistics *statistics;
    sft_part parts[2];
    sft_set *set;
    (void)state;
    add_three("mem://three", "0123456789abcdef");
    assert_int_equal(open_set("mem://three", &set), SFT_OK);
    const sft_file *file = sft_set_shard_at(set, 0);
    sft_source source = sft_file_source(file);
    parts[0] = sft_part_of(sft_file_find_cstr(file, "c"), &source);
    parts[1] = sft_part_of(sft_file_find_cstr(file, "a"), &source);
    mem.log[0] = '\0';
    assert_int_equal(sft_statistics_new(parts, 2, NULL, NULL, &statistics, &err), SFT_OK);
    RUNS({ 8, 8 }, { 0, 4 });
    sft_statistics_free(statistics);
    sft_set_close(set);
}

#define CAST_HEADER \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}," \
    "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[8,12]}," \
    "\"c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}}"

/* Those that are cast, and those that are carried as they are. */
static void conversions_announced(void **state) {
    sft_conversion *conversion;
    sft_buffer out = { 0 };
    sft_set *set;
    (void)state;
    test_file f = make_file(CAST_HEADER, "\0\0\0\0\0\0\0\0abcd\0\0\0\0", 16);
    mem_add(&mem, "mem://f", f.bytes, f.len);
    assert_int_equal(open_set("mem://f", &set), SFT_OK);
    assert_int_equal(sft_conversion_new(set, SFT_F16, NULL, &conversion, &err), SFT_OK);
    mem.log[0] = '\0';
    mem.quiet = false;
    assert_int_equal(sft_conversion_save(conversion, sft_sink_memory(&out), NULL, &err), SFT_OK);
    assert_reads_announced(0, f.len);
    sft_buffer_free(&out);
    sft_conversion_free(conversion);
    sft_set_close(set);
    free_file(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(imported), TEST(imported_shards), TEST(import_names), TEST(hashed), TEST(hashed_set),
        TEST(archives_announced), TEST(imported_sets_announced), TEST(digests_announced),
        TEST(statistics_announced), TEST(conversions_announced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
