/* Files that are not the system's: what sft_open_options.files opens, alone and in sets. */
#define _GNU_SOURCE
#include "unit/files_case.h"
#include "safetensors_diff.h"
#include "safetensors_edit.h"
#include "safetensors_report.h"
#include "safetensors_scan.h"

/* ── One file ── */

static void opened(void **state) {
    sft_file *file;
    char bytes[8];
    (void)state;
    add_model("mem://m/a.safetensors", HEADER("t"));
    assert_int_equal(sft_open("mem://m/a.safetensors", &how, &file, &err), SFT_OK);
    const sft_tensor *t = sft_file_find_cstr(file, "t");
    assert_int_equal(sft_read_into(file, t, bytes, 8, &err), SFT_OK);
    assert_memory_equal(bytes, "abcdefgh", 8);
    assert_false(sft_file_is_mapped(file));
    sft_close(file);
    assert_int_equal(mem.open, 0);
    assert_log("open mem://m/a.safetensors\n");
    assert_int_equal(sft_open("mem://m/b.safetensors", &how, &file, &err), SFT_NOT_FOUND);
    assert_null(file);
    /* Others are the system's. */
    assert_int_equal(sft_open("/no/such/file", &how, &file, &err), SFT_NOT_FOUND);
    assert_log("open mem://m/b.safetensors\n");
    how.files = NULL;
    assert_int_equal(sft_open("mem://m/a.safetensors", &how, &file, &err), SFT_NOT_FOUND);
    assert_log("");
}

/* A file that changed while it was opened is opened again, once. */
static void changed_once(void **state) {
    sft_file *file;
    (void)state;
    add_model("mem://m/a.safetensors", HEADER("t"));
    mem.changes = 1;
    assert_int_equal(sft_open("mem://m/a.safetensors", &how, &file, &err), SFT_OK);
    sft_close(file);
    mem.changes = 2;
    assert_int_equal(sft_open("mem://m/a.safetensors", &how, &file, &err), SFT_REMOTE_CHANGED);
    assert_null(file);
    assert_int_equal(mem.open, 0);
    mem.log[0] = '\0';
}

static void modes(void **state) {
    static const struct { sft_mode mode; sft_code code; } cases[] = {
        { SFT_READ, SFT_OK }, { SFT_AUTO, SFT_OK }, { SFT_MAP, SFT_IO_MAP },
        { SFT_MAP_COW, SFT_IO_MAP },
    };
    (void)state;
    add_model("mem://a", HEADER("t"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sft_file *file;
        sft_scan *scan;
        how.mode = cases[i].mode;
        assert_int_equal(sft_open("mem://a", &how, &file, &err), cases[i].code);
        sft_close(file);
        assert_int_equal(sft_scan_open("mem://a", &how, &scan, &err), cases[i].code);
        if (cases[i].code == SFT_OK) {
            assert_null(sft_scan_error(scan));
            sft_scan_close(scan);
        } else {
            assert_int_equal(err.hint, SFT_HINT_READ_NOT_MAP);
        }
        assert_string_equal(mem.log, cases[i].code ? "" : "open mem://a\nopen mem://a\n");
        mem.log[0] = '\0';
    }
}

static void repaired(void **state) {
    sft_repair *repair;
    sft_buffer out = { 0 };
    (void)state;
    test_file f = make_file(HEADER("t") " ", "abcdefgh", 8);
    f.bytes[f.data - 1] = '\0'; /* padding */
    mem_add(&mem, "mem://bad", f.bytes, f.len);
    free_file(&f);
    assert_int_equal(sft_repair_open("mem://bad", &how, &repair, &err), SFT_OK);
    assert_true(sft_repair_fix_count(repair) > 0);
    assert_int_equal(sft_repair_write(repair, sft_sink_memory(&out), NULL, &err), SFT_OK);
    assert_memory_equal(out.data + out.len - 8, "abcdefgh", 8);
    sft_repair_close(repair);
    sft_buffer_free(&out);
    mem.log[strcspn(mem.log, "\n") + 1] = '\0';
    assert_log("open mem://bad\n");
}

/* Nothing is written where files are only read, and no file is called "mem:". */
static void refused_writes(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_edit *edit;
    sft_edit_found found;
    sft_sink sink;
    (void)state;
    add_model("mem://a", HEADER("t"));
    options.open = &how;
    assert_int_equal(sft_edit_open("mem://a", &options, &edit, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_edit_recover("mem://a", &options, &found, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(chdir(temp_dir), 0);
    assert_int_equal(mkdir("mem:", 0777), 0);
    assert_int_equal(sft_sink_path("mem://a", NULL, &sink, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_sink_path("a://b", NULL, &sink, &err), SFT_NOT_FOUND);
    assert_int_equal(rmdir("mem:"), 0);
    assert_int_equal(temp_dir_count(), 0);
    assert_int_equal(chdir("/"), 0);
    assert_log("");
}

static sft_code open_badly(void *ctx, const char *path, const char *beneath, sft_source *out,
                           sft_error *error) {
    (void)ctx, (void)path, (void)beneath, (void)error;
    *out = sft_source_memory("abc", 3);
    out->size = SFT_SIZE_UNKNOWN;
    return SFT_OK;
}

/* Tables of programs are not believed, and older ones lack what they lack. */
static void tables(void **state) {
    sft_files_vtable table = mem_files_vtable;
    sft_files files = { &mem, &table };
    sft_source source;
    (void)state;
    mem_text(&mem, "mem://a", "abc");
    how.files = &files;
    table.open = open_badly;
    assert_int_equal(sft_source_path("mem://a", &how, &source, &err), SFT_BAD_ARGUMENT);
    assert_null(source.vtable);
    table = mem_files_vtable;
    table.size = offsetof(sft_files_vtable, open);
    assert_int_equal(sft_source_path("mem://a", &how, &source, &err), SFT_BAD_ARGUMENT);
    table.size = offsetof(sft_files_vtable, claims);
    assert_int_equal(sft_source_path("mem://a", &how, &source, &err), SFT_NOT_FOUND);
    files.vtable = NULL;
    assert_int_equal(sft_source_path("mem://a", &how, &source, &err), SFT_NOT_FOUND);
    assert_log("");
    assert_int_equal(sft_source_path(NULL, &how, &source, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_source_path("x", &how, NULL, &err), SFT_BAD_ARGUMENT);
}

static void any_bytes(void **state) {
    sft_source source;
    char bytes[8];
    size_t got;
    (void)state;
    mem_text(&mem, "mem://f/a", "abcdef");
    temp_write("local", "0123", 4);
    assert_int_equal(sft_source_path("mem://f/a", &how, &source, &err), SFT_OK);
    assert_int_equal(source.size, 6);
    assert_int_equal(sft_source_read(&source, 4, bytes, 8, &got, &err), SFT_OK);
    assert_int_equal(got, 2);
    sft_source_close(&source);
    how.beneath = "mem://f/";
    assert_int_equal(sft_source_path("mem://f/a", &how, &source, &err), SFT_OK);
    sft_source_close(&source);
    how.beneath = "mem://g/";
    assert_int_equal(sft_source_path("mem://f/a", &how, &source, &err), SFT_BAD_ARGUMENT);
    how.beneath = ""; /* of the current folder a file named the rest */
    assert_int_equal(sft_source_path("mem://f/a", &how, &source, &err), SFT_NOT_FOUND);
    assert_log("open mem://f/a\nopen mem://f/a beneath mem://f/\n");
    assert_int_equal(sft_source_path(temp_path("local"), NULL, &source, &err), SFT_OK);
    assert_int_equal(source.size, 4);
    sft_source_close(&source);
    assert_int_equal(sft_source_path(temp_dir, NULL, &source, &err), SFT_IO_NOT_FILE);
}

/* ── Sets ── */

static void set_by_index(void **state) {
    sft_set *set;
    size_t shard;
    (void)state;
    mem_text(&mem, "mem://m/x.safetensors.index.json", INDEX("1.safetensors", "s/2.safetensors"));
    add_model("mem://m/1.safetensors", HEADER("a"));
    add_model("mem://m/s/2.safetensors", HEADER("b"));
    assert_int_equal(open_set("mem://m/x.safetensors.index.json", &set), SFT_OK);
    assert_non_null(sft_set_find(set, sft_span_cstr("b"), &shard));
    assert_int_equal(shard, 1);
    assert_int_equal(sft_set_output_mode(set, NULL), 0);
    sft_set_close(set);
    assert_log("open mem://m/x.safetensors.index.json\n"
               "expect mem://m/1.safetensors mem://m/s/2.safetensors beneath mem://m/\n"
               "open mem://m/1.safetensors beneath mem://m/\n"
               "open mem://m/s/2.safetensors beneath mem://m/\n");
    mem.count--; /* of the second shard */
    free(mem.at[mem.count].bytes);
    assert_int_equal(open_set("mem://m/x.safetensors.index.json", &set), SFT_INDEX_SHARD_MISSING);
}

static void index_too_large(void **state) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_set *set;
    (void)state;
    mem_text(&mem, "mem://x.safetensors.index.json", INDEX("1", "2"));
    options.open = &how;
    options.max_index_bytes = 10;
    assert_int_equal(sft_set_open("mem://x.safetensors.index.json", &options, &set, &err),
                     SFT_FILE_TOO_LARGE);
}

static void hostile_shard_names(void **state) {
    static const char *const names[] = {
        "../x", "/etc/x", "https://evil/x", "x?y", "x#y", "%2e%2e/x", "http:x", "a\\b", "a//b",
        "mem://m/x", "a\\u000ab", "a\\u007f", "s3:b",
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[200];
        sft_set *set;
        (void)snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", names[i]);
        mem_text(&mem, "mem://m/x.safetensors.index.json", text);
        mem.log[0] = '\0';
        sft_code code = open_set("mem://m/x.safetensors.index.json", &set);
        if (code == SFT_OK) sft_set_close(set);
        if (strcmp(names[i], "a\\b") == 0) assert_int_not_equal(code, SFT_OK); /* no JSON */
        else if (code != SFT_INDEX_PATH) fail_msg("%s: %d", names[i], (int)code);
        assert_log("open mem://m/x.safetensors.index.json\n");
        mem.count--;
        free(mem.at[mem.count].bytes);
    }
}

/* What is strange in a URL is a name on a disk; what names files elsewhere is none. */
static void local_shard_names(void **state) {
    static const struct { const char *name; sft_code code; } cases[] = {
        { "50%.safetensors", SFT_OK }, { "a?b#c", SFT_OK }, { "s:x", SFT_INDEX_PATH },
        { "st:x", SFT_OK }, { "mem://m/1.safetensors", SFT_INDEX_PATH },
    };
    (void)state;
    add_model("mem://m/1.safetensors", HEADER("a"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        sft_set *set;
        test_file f = make_file(HEADER("a"), "abcdefgh", 8);
        (void)snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", cases[i].name);
        temp_write("x.safetensors.index.json", text, strlen(text));
        if (cases[i].code == SFT_OK) temp_write(cases[i].name, f.bytes, f.len);
        free_file(&f);
        sft_code code = open_set(temp_path("x.safetensors.index.json"), &set);
        if (code == SFT_OK) sft_set_close(set);
        if (code != cases[i].code) fail_msg("%s: %d", cases[i].name, (int)code);
    }
    assert_log("");
}

static void set_of_list(void **state) {
    const char *paths[4] = { "mem://1", NULL, "mem://2", "mem://3" };
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    test_file f = make_file(HEADER("d"), "abcdefgh", 8);
    sft_set *set;
    (void)state;
    add_model("mem://1", HEADER("a"));
    add_model("mem://2", HEADER("b"));
    add_model("mem://3", HEADER("c"));
    temp_write("here", f.bytes, f.len);
    free_file(&f);
    paths[1] = temp_path("here");
    options.open = &how;
    assert_int_equal(sft_set_open_list(paths, 4, &options, &set, &err), SFT_OK);
    assert_int_equal(sft_set_output_mode(set, NULL) & 0600, 0600); /* that of the file here */
    sft_set_close(set);
    assert_log("expect mem://1\nexpect mem://2 mem://3\n"
               "open mem://1\nopen mem://2\nopen mem://3\n");
}

/* A file that is no model is looked at again: is it an index, or what else? */
static void other_files(void **state) {
    sft_set *set;
    (void)state;
    mem_text(&mem, "mem://page.safetensors", "<!DOCTYPE html><html><body>log in</body></html>");
    mem_text(&mem, "mem://index.json", INDEX("a", "b"));
    add_model("mem://a", HEADER("a"));
    add_model("mem://b", HEADER("b"));
    assert_int_not_equal(open_set("mem://page.safetensors", &set), SFT_OK);
    assert_non_null(strstr(err.message, "HTML"));
    assert_int_equal(open_set("mem://index.json", &set), SFT_OK);
    assert_int_equal(sft_set_shard_count(set), 2);
    sft_set_close(set);
}

/* ── What is read is announced ── */

static sft_file *open_three(void) {
    sft_file *file;
    if (mem.count == 0) add_three("mem://three", "0123456789abcdef");
    assert_int_equal(sft_open("mem://three", &how, &file, &err), SFT_OK);
    mem.log[0] = '\0';
    return file;
}

/* In the file's order, as one run where they touch. */
static void reads_announced(void **state) {
    sft_file *file = open_three();
    char a[4], b[4], c[8];
    const sft_read reads[] = { { sft_file_find_cstr(file, "c"), c, 8 },
                               { sft_file_find_cstr(file, "a"), a, 4 } };
    (void)state;
    assert_int_equal(sft_read_many(file, reads, 2, NULL, &err), SFT_OK);
    RUNS({ 0, 4 }, { 8, 8 });
    const sft_read more[] = { { sft_file_find_cstr(file, "b"), b, 4 }, reads[0], reads[1] };
    assert_int_equal(sft_read_many(file, more, 3, NULL, &err), SFT_OK);
    RUNS({ 0, 16 });
    assert_memory_equal(c, "89abcdef", 8);
    sft_close(file);
}

static void slices_announced(void **state) {
    sft_file *file = open_three();
    const sft_tensor *c = sft_file_find_cstr(file, "c");
    sft_slice slice;
    char column[4];
    (void)state;
    assert_int_equal(sft_slice_parse(c->shape, c->rank, sft_span_cstr("[:,1]"), &slice, &err),
                     SFT_OK);
    assert_int_equal(sft_slice_read(file, c, &slice, column, 4, &err), SFT_OK);
    assert_memory_equal(column, "9bdf", 4);
    RUNS({ 9, 7 });
    sft_close(file);
}

/* More runs apart than are announced at once: rows of 16 KiB, of which a byte each. */
static void far_slices_announced(void **state) {
    static const char header[] =
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[3000,8192],\"data_offsets\":[0,24576000]}}";
    test_file f = make_file(header, NULL, 24576000);
    sft_slice slice;
    sft_file *file;
    char *column = malloc(3000);
    (void)state;
    mem_add(&mem, "mem://far", f.bytes, f.len);
    assert_int_equal(sft_open("mem://far", &how, &file, &err), SFT_OK);
    const sft_tensor *t = sft_file_find_cstr(file, "t");
    assert_int_equal(sft_slice_parse(t->shape, t->rank, sft_span_cstr("[:,5]"), &slice, &err),
                     SFT_OK);
    mem.sums = true;
    assert_int_equal(sft_slice_read(file, t, &slice, column, 3000, &err), SFT_OK);
    for (size_t i = 0; i < 3000; i++)
        assert_int_equal((unsigned char)column[i], f.bytes[f.data + i * 8192 + 5]);
    assert_int_equal(mem.runs, 3000);
    assert_int_equal(mem.run_bytes, 3000);
    assert_true(mem.run_most <= 1024);
    sft_close(file);
    free(column);
    free_file(&f);
}

/* Of several sources, in the order of the new file. */
static void saves_announced(void **state) {
    sft_buffer out = { 0 };
    sft_source sources[2];
    sft_file *files[2];
    sft_part parts[4];
    (void)state;
    add_three("mem://three", "0123456789abcdef");
    add_three("mem://four", "ghijklmnopqrstuv");
    for (int k = 0; k < 2; k++) {
        assert_int_equal(sft_open(k ? "mem://four" : "mem://three", &how, &files[k], &err), SFT_OK);
        sources[k] = sft_file_source(files[k]);
    }
    parts[0] = sft_part_of(sft_file_find_cstr(files[0], "c"), &sources[0]);
    parts[1] = sft_part_of(sft_file_find_cstr(files[0], "a"), &sources[0]);
    parts[2] = sft_part_of(sft_file_find_cstr(files[0], "b"), &sources[0]);
    parts[3] = sft_part_of(sft_file_find_cstr(files[1], "c"), &sources[1]);
    parts[3].spec.name = sft_span_cstr("d");
    mem.log[0] = '\0';
    assert_int_equal(sft_save_parts(parts, 3, NULL, 0, NULL, sft_sink_memory(&out), NULL, &err),
                     SFT_OK);
    RUNS({ 0, 16 });
    assert_int_equal(sft_save_parts(parts, 4, NULL, 0, NULL, sft_sink_memory(&out), NULL, &err),
                     SFT_OK);
    assert_non_null(strstr(mem.log, "runs"));
    assert_memory_equal(out.data + out.len - 8, "opqrstuv", 8);
    mem.log[0] = '\0';
    assert_int_equal(sft_copy(&sources[0], 3, 9, sft_sink_memory(&out), NULL, &err), SFT_OK);
    assert_log("runs 3+6\n");
    sft_buffer_free(&out);
    sft_close(files[0]);
    sft_close(files[1]);
}

static sft_set *set_of(const char *path, const char *data) {
    sft_set *set;
    add_three(path, data);
    assert_int_equal(open_set(path, &set), SFT_OK);
    mem.log[0] = '\0';
    return set;
}

/* Of slow files a scan reads the header alone. */
static void scanned(void **state) {
    sft_scan *scan;
    (void)state;
    test_file f = make_file("{\"t\":{\"dtype\":\"U8\",\"shape\":[90000],"
                            "\"data_offsets\":[0,90000]}}", NULL, 90000);
    mem_add(&mem, "mem://a", f.bytes, f.len);
    mem.quiet = false;
    assert_int_equal(sft_scan_open("mem://a", &how, &scan, &err), SFT_OK);
    assert_null(sft_scan_error(scan));
    sft_scan_close(scan);
    assert_log("open mem://a\nread 0+3072\n");
    free_file(&f);
}

static void checks_announced(void **state) {
    sft_set *set = set_of("mem://three", "0123456789abcdef");
    sft_deep_counts counts;
    (void)state;
    assert_int_equal(sft_set_check_deep(set, &counts, NULL, &err), SFT_OK);
    RUNS({ 0, 16 });
    sft_set_close(set);
}

static bool not_b(void *ctx, const sft_tensor *tensor) {
    (void)ctx;
    return !sft_span_equal(tensor->name, sft_span_cstr("b"));
}

static void comparisons_announced(void **state) {
    sft_set *a = set_of("mem://three", "0123456789abcdef");
    sft_set *b = set_of("mem://four", "0123456789abcdeg");
    sft_diff_options options = SFT_DIFF_OPTIONS_INIT;
    sft_diff *diff;
    (void)state;
    assert_int_equal(sft_diff_new(a, b, NULL, NULL, &diff, &err), SFT_OK);
    assert_int_equal(sft_diff_changed_count(diff), 1);
    sft_diff_free(diff);
    char *second = strstr(mem.log + 1, "runs"); /* the same of the other side */
    assert_non_null(second);
    memmove(mem.log, second, strlen(second) + 1);
    RUNS({ 0, 16 });
    options.match = not_b;
    assert_int_equal(sft_diff_new(a, b, &options, NULL, &diff, &err), SFT_OK);
    sft_diff_free(diff);
    memmove(mem.log, strstr(mem.log + 1, "runs"), strlen(strstr(mem.log + 1, "runs")) + 1);
    RUNS({ 0, 4 }, { 8, 8 });
    options.header_only = true;
    assert_int_equal(sft_diff_new(a, b, &options, NULL, &diff, &err), SFT_OK);
    sft_diff_free(diff);
    assert_log("");
    sft_set_close(a);
    sft_set_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(opened), TEST(changed_once),
        TEST(modes), TEST(repaired), TEST(refused_writes), TEST(tables),
        TEST(any_bytes), TEST(set_by_index), TEST(index_too_large), TEST(hostile_shard_names),
        TEST(local_shard_names), TEST(set_of_list), TEST(other_files), TEST(scanned),
        TEST(reads_announced), TEST(slices_announced), TEST(far_slices_announced),
        TEST(saves_announced), TEST(checks_announced), TEST(comparisons_announced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
