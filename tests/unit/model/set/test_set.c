/* Sets: one file, an index, a list; every named error of an index; look-up and order. */
#define _GNU_SOURCE
#include "safetensors_index.h"
#include "safetensors_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/resource.h>

#include "unit/temp_model.h"

#define U8(name, begin, end) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #end "],\"data_offsets\":[" #begin "," #end "]}"

static temp_folder temp;

static int set_up(void **state) {
    (void)state;
    temp_begin(&temp);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    temp_end(&temp);
    return 0;
}

static const char *one_tensor(const char *file, const char *tensor) {
    char header[256];
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", tensor);
    return temp_model(&temp, file, header, "xy", 2);
}

/* Opens an index of this text and expects the failure. */
static void refuses(const char *text, sft_code code, uint64_t offset, const char *message) {
    sft_error err = SFT_ERROR_INIT;
    sft_set *set = (sft_set *)&err;
    const char *path = temp_text(&temp, "x.safetensors.index.json", text);
    assert_int_equal(sft_set_open(path, NULL, &set, &err), code);
    assert_null(set);
    assert_int_equal(err.code, code);
    assert_true(err.offset == offset);
    if (!strstr(err.message, message)) fail_msg("%s: %s", text, err.message);
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), code);
}

static sft_span name_of(const char *text) { return sft_span_cstr(text); }

/* ── One file ── */

static void one_file_is_a_set(void **state) {
    const char *path = one_tensor("one.safetensors", "a");
    size_t shard = 9;
    sft_set *set;
    (void)state;
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
    assert_int_equal(sft_set_shard_count(set), 1);
    assert_int_equal(sft_set_tensor_count(set), 1);
    assert_string_equal(sft_set_shard_path(set, 0), path);
    assert_null(sft_set_shard_path(set, 1));
    assert_null(sft_set_shard_at(set, 1));
    assert_null(sft_set_index_path(set));
    assert_int_equal(sft_set_index_metadata(set).len, 0);
    assert_ptr_equal(sft_set_find(set, name_of("a"), &shard), sft_set_tensor_at(set, 0));
    assert_int_equal(shard, 0);
    assert_null(sft_set_find(set, name_of("b"), NULL));
    assert_null(sft_set_tensor_at(set, 1));
    assert_int_equal(sft_set_tensor_shard(set, 0), 0);
    sft_set_close(set);
}

static void an_open_file_is_a_set(void **state) {
    const char *path = one_tensor("one.safetensors", "a");
    sft_file *file;
    sft_set *set;
    (void)state;
    assert_int_equal(sft_open(path, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
    assert_ptr_equal(sft_set_shard_at(set, 0), file);
    assert_null(sft_set_shard_path(set, 0));
    sft_set_close(set);
    assert_int_equal(sft_open(path, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, "shown", &set, NULL), SFT_OK);
    assert_string_equal(sft_set_shard_path(set, 0), "shown");
    sft_set_close(set);
    sft_set_close(NULL);
}

static void a_missing_file_is_not_found(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_set *set;
    (void)state;
    assert_int_equal(sft_set_open(temp_path(&temp, "none"), NULL, &set, &err), SFT_NOT_FOUND);
    assert_int_equal(err.os_errno, ENOENT);
    const char *index = temp_path(&temp, "none.safetensors.index.json");
    assert_int_equal(sft_set_open(index, NULL, &set, &err), SFT_NOT_FOUND);
    assert_int_equal(err.os_errno, ENOENT);
    assert_int_equal(sft_set_open(NULL, NULL, &set, &err), SFT_BAD_ARGUMENT);
}

static void a_pointer_is_told_apart(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_set *set;
    const char *path = temp_text(&temp, "p.safetensors",
                                 "version https://git-lfs.github.com/spec/v1\n"
                                 "oid sha256:00\nsize 5\n");
    (void)state;
    assert_int_equal(sft_set_open(path, NULL, &set, &err), SFT_FOUND_GIT_LFS);
    assert_int_equal(err.code, SFT_FOUND_GIT_LFS);
    const char *list[] = { path };
    assert_int_equal(sft_set_open_list(list, 1, NULL, &set, &err), SFT_FOUND_GIT_LFS);
    assert_memory_equal(err.message, path, strlen(path));
}

static void options_are_checked(void **state) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    const char *path = one_tensor("one.safetensors", "a");
    sft_set *set;
    (void)state;
    options.size = 0;
    assert_int_equal(sft_set_open(path, &options, &set, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_set_open_list(&path, 1, &options, &set, NULL), SFT_BAD_ARGUMENT);
    options.size = sizeof options;
    options.open = &open;
    open.max_tensors = 1;
    const sft_allocator none = { NULL, NULL };
    open.alloc = &none; /* the system's */
    assert_int_equal(sft_set_open(path, &options, &set, NULL), SFT_OK);
    assert_int_equal(sft_set_tensor_shard(set, 0), 0);
    assert_int_equal(sft_set_tensor_shard(set, 1), 0);
    assert_non_null(sft_set_find(set, name_of("a"), NULL));
    sft_set_close(set);
    options.max_shards = 1;
    const char *two[] = { path, path };
    assert_int_equal(sft_set_open_list(two, 2, &options, &set, NULL), SFT_BAD_ARGUMENT);
}

/* A newer caller's longer options: what is not known in them must be zero. */
static void options_may_be_longer(void **state) {
    struct {
        sft_set_options known;
        unsigned char more[16];
    } options = { SFT_SET_OPTIONS_INIT, { 0 } };
    const char *path = one_tensor("one.safetensors", "a");
    sft_set *set;
    (void)state;
    options.known.size = sizeof options;
    assert_int_equal(sft_set_open(path, &options.known, &set, NULL), SFT_OK);
    sft_set_close(set);
    options.more[15] = 1;
    assert_int_equal(sft_set_open(path, &options.known, &set, NULL), SFT_BAD_ARGUMENT);
}

/* ── Index ── */

static const char *two_shards(void) {
    temp_model(&temp, "m-2.safetensors", "{" U8("b", 0, 1) "}", "b", 1);
    temp_model(&temp, "m-10.safetensors",
               "{\"c10\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
               "\"c9\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
               "\"extra\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}", "cde", 3);
    return temp_text(&temp, "m.safetensors.index.json",
                     "{\"other\":[1,{\"x\":null}],\"metadata\": {\"total_size\": 4} ,"
                     "\"weight_map\":{\"c10\":\"m-10.safetensors\",\"b\":\"m-2.safetensors\","
                     "\"c\\u0039\":\"m-10.safetensor\\u0073\"}}");
}

static void an_index_joins_shards(void **state) {
    const char *path = two_shards();
    sft_error err = SFT_ERROR_INIT;
    size_t shard = 9;
    sft_set *set;
    (void)state;
    assert_int_equal(sft_set_open(path, NULL, &set, &err), SFT_OK);
    assert_int_equal(sft_set_shard_count(set), 2);
    assert_non_null(strstr(sft_set_shard_path(set, 0), "/m-2.safetensors"));
    assert_non_null(strstr(sft_set_shard_path(set, 1), "/m-10.safetensors"));
    assert_string_equal(sft_set_index_path(set), path);
    assert_true(sft_span_equal(sft_set_index_metadata(set), name_of("{\"total_size\": 4}")));
    assert_int_equal(sft_set_tensor_count(set), 4);
    assert_true(sft_span_equal(sft_set_tensor_at(set, 0)->name, name_of("b")));
    assert_true(sft_span_equal(sft_set_tensor_at(set, 3)->name, name_of("extra")));
    assert_int_equal(sft_set_tensor_shard(set, 0), 0);
    assert_int_equal(sft_set_tensor_shard(set, 3), 1);
    assert_ptr_equal(sft_set_find(set, name_of("c9"), &shard), sft_set_tensor_at(set, 2));
    assert_int_equal(shard, 1);
    assert_null(sft_set_find(set, name_of("nothing"), &shard));
    assert_null(sft_set_tensor_at(set, 4));
    sft_set_close(set);
}

static void orders_over_the_set(void **state) {
    static const uint32_t want[][4] = {
        [SFT_ORDER_OFFSET] = { 0, 1, 2, 3 },
        [SFT_ORDER_NAME] = { 0, 1, 2, 3 },    /* b c10 c9 extra */
        [SFT_ORDER_NATURAL] = { 0, 2, 1, 3 }, /* b c9 c10 extra */
        [SFT_ORDER_HEADER] = { 0, 1, 2, 3 },
    };
    sft_set *set;
    uint32_t order[4];
    (void)state;
    assert_int_equal(sft_set_open(two_shards(), NULL, &set, NULL), SFT_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(sft_set_order(set, (sft_order)i, order, NULL), SFT_OK);
        assert_memory_equal(order, want[i], sizeof order);
    }
    sft_set_close(set);
}

static void index_by_content(void **state) {
    sft_set *set;
    (void)state;
    two_shards();
    const char *path = temp_text(&temp, "weights.json",
                                 "\n { \"weight_map\" : { \"b\" : \"m-2.safetensors\" } }");
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
    assert_int_equal(sft_set_shard_count(set), 1);
    assert_string_equal(sft_set_index_path(set), path);
    sft_set_close(set);
    path = temp_text(&temp, "config.json", "{\"model_type\":\"llama\",\"hidden_size\":4096}");
    sft_code code = sft_set_open(path, NULL, &set, NULL);
    assert_int_not_equal(code, SFT_OK);
    assert_int_not_equal(code, SFT_INDEX_TYPE);
}

static void index_in_a_subfolder(void **state) {
    sft_set *set;
    (void)state;
    temp_subfolder(&temp, "unet");
    one_tensor("unet/a b.safetensors", "a");
    const char *path = temp_text(&temp, "m.safetensors.index.json",
                                 "{\"weight_map\":{\"a\":\"unet/a b.safetensors\"}}");
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
    assert_int_equal(sft_set_shard_count(set), 1);
    sft_set_close(set);
    temp_must(chdir(temp.path) == 0, "chdir");
    assert_int_equal(sft_set_open("m.safetensors.index.json", NULL, &set, NULL), SFT_OK);
    assert_string_equal(sft_set_shard_path(set, 0), "unet/a b.safetensors");
    sft_set_close(set);
    temp_must(chdir("/") == 0, "chdir");
}

static void index_names(void **state) {
    static const struct { const char *path; bool is; } rows[] = {
        { "model.safetensors.index.json", true },
        { "a/b/model.safetensors.index.json", true },
        { "diffusion_pytorch_model.safetensors.index.fp16.json", true },
        { "model.safetensors.index", false },
        { "model.safetensors.indexjson", false },
        { "model.safetensors.index.js", false },
        { "model.safetensors.index.yaml", false },
        { "model.safetensors", false },
        { "model.index.json", false },
        { "model.safetensors.index.json.safetensors", false },
        { "x.safetensors.index.json/model.safetensors", false },
        { "pytorch_model.bin.index.json", false },
        { "", false },
        { NULL, false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (sft_path_is_index(rows[i].path) != rows[i].is) fail_msg("%s", rows[i].path);
}

/* ── Errors of an index ── */

static void index_shapes_refused(void **state) {
    (void)state;
    refuses("[]", SFT_INDEX_TYPE, 0, "expected an object, found an array");
    refuses("{}", SFT_INDEX_TYPE, SFT_NO_OFFSET, "\"weight_map\", found none");
    refuses("{\"weight_map\":[]}", SFT_INDEX_TYPE, 14, "to be an object, found an array");
    refuses("{\"weight_map\":{}}", SFT_INDEX_TYPE, 1, "to name tensors, found none");
    refuses("{\"weight_map\":null}", SFT_INDEX_TYPE, 14, "found null");
    refuses("{\"weight_map\":{\"a\":1}}", SFT_INDEX_TYPE, 19, "as a string, found 1");
    refuses("{\"weight_map\":{\"a\":{\"b\":\"c\"}}}", SFT_INDEX_TYPE, 19, "found an object");
    refuses("{\"weight_map\":{\"a\":\"x\",\"b\":\"x\",\"\\u0061\":\"x\"}}", SFT_INDEX_TYPE, 31,
            "expected each tensor once");
    refuses("{\"weight_map\":{\"a\":\"x\"},\"weight_map\":{}}", SFT_INDEX_TYPE, 24,
            "expected \"weight_map\" once");
    refuses("{\"metadata\":1,\"metadata\":{}}", SFT_INDEX_TYPE, 14, "expected \"metadata\" once");
}

static void index_grammar_refused(void **state) {
    (void)state;
    refuses("", SFT_JSON_SYNTAX, 0, "a JSON value");
    refuses("{\"weight_map\":{\"a\":\"x\"}", SFT_JSON_SYNTAX, 23, "',' or '}'");
    refuses("{\"weight_map\":{\"a\":\"x\"}} x", SFT_JSON_TRAILING, 25, "nothing but white space");
    refuses("{\"x\":1e999}", SFT_JSON_NUMBER, 5, "double");
    refuses("{\"x\":\"\\ud800\"}", SFT_JSON_STRING, 6, "surrogate");
    refuses("{\"x\":\"\xff\"}", SFT_JSON_STRING, 6, "expected UTF-8, found byte 0xff");
}

static void paths_refused(void **state) {
    static const char *const names[] = {
        "../x", "/x", "a/../x", "a/..", "..", ".", "./x", "a/./x", "", "a//x", "x/", "a\\\\x",
        "..\\\\x", "C:x", "c:/x", "x\\u0000y", "\\u002e./x", "//host/x",
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", names[i]);
        refuses(text, SFT_INDEX_PATH, 19, "expected a plain path beneath the index's folder");
    }
}

/* At level strict, before any shard is looked for. */
static void names_for_every_system(void **state) {
    static const struct { const char *first, *second, *words; } rows[] = {
        { "nul.safetensors", "b", "device of Windows" },
        { "ab:stream", "b", "one of : *" },
        { "b", "sub/com1.x", "device of Windows" },
        { "a. ", "b", "dot or a blank" },
        { "sub/A.safetensors", "sub/a.safetensors", "differ by more than case" },
    };
    sft_open_options strict = SFT_OPEN_OPTIONS_INIT;
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    (void)state;
    strict.level = SFT_LEVEL_STRICT;
    options.open = &strict;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[128];
        sft_error err = SFT_ERROR_INIT;
        sft_set *set;
        snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\",\"b\":\"%s\"}}", rows[i].first,
                 rows[i].second);
        const char *path = temp_text(&temp, "x.safetensors.index.json", text);
        assert_int_equal(sft_set_open(path, &options, &set, &err), SFT_INDEX_PATH);
        if (!strstr(err.message, rows[i].words)) fail_msg("%s: %s", text, err.message);
        assert_int_equal(err.hint, SFT_HINT_LEVEL_STRICT);
        refuses(text, SFT_INDEX_SHARD_MISSING, SFT_NO_OFFSET, "No such file");
    }
}

static void paths_that_only_look_bad(void **state) {
    (void)state;
    refuses("{\"weight_map\":{\"a\":\"...\"}}", SFT_INDEX_SHARD_MISSING, SFT_NO_OFFSET, "...: ");
    refuses("{\"weight_map\":{\"a\":\"a..b\"}}", SFT_INDEX_SHARD_MISSING, SFT_NO_OFFSET, "a..b");
    refuses("{\"weight_map\":{\"a\":\".x\"}}", SFT_INDEX_SHARD_MISSING, SFT_NO_OFFSET, ".x");
    refuses("{\"weight_map\":{\"a\":\"\\n\"}}", SFT_INDEX_SHARD_MISSING, SFT_NO_OFFSET, "/\\n: ");
}

static void shards_and_tensors_missing(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_set *set;
    (void)state;
    two_shards();
    refuses("{\"weight_map\":{\"b\":\"m-2.safetensors\",\"z\":\"gone.safetensors\"}}",
            SFT_INDEX_SHARD_MISSING, SFT_NO_OFFSET, "/gone.safetensors: ");
    refuses("{\"weight_map\":{\"b\":\"m-2.safetensors\",\"z\":\"m-10.safetensors\"}}",
            SFT_INDEX_TENSOR_MISSING, 37, "in shard m-10.safetensors, found it in none");
    refuses("{\"weight_map\":{\"b\":\"m-10.safetensors\",\"c9\":\"m-2.safetensors\"}}",
            SFT_INDEX_TENSOR_MISPLACED, 15,
            "in shard m-10.safetensors, found it in m-2.safetensors");
    refuses("{\"weight_map\":{\"z\":\"m-2.safetensors\"}}", SFT_INDEX_TENSOR_MISSING, 15, "none");
    temp_text(&temp, "bad.safetensors", "\x08\0\0\0");
    const char *path = temp_text(&temp, "y.safetensors.index.json",
                                 "{\"weight_map\":{\"b\":\"bad.safetensors\"}}");
    assert_int_equal(sft_set_open(path, NULL, &set, &err), SFT_HEADER_TOO_SMALL);
    assert_non_null(strstr(err.message, "/bad.safetensors: "));
}

/* Of a missing shard the set says so; not each open, which would list the folder for each name. */
static void a_shard_whose_replacement_was_interrupted(void **state) {
    static const char text[] = "{\"weight_map\":{\"z\":\"gone.safetensors\"}}";
    sft_error err = SFT_ERROR_INIT;
    sft_open_options beneath = SFT_OPEN_OPTIONS_INIT;
    sft_source source;
    sft_set *set;
    char shard[sizeof temp.path + 32];
    (void)state;
    (void)temp_text(&temp, ".gone.safetensors.sft-0123abcv.old", "x");
    const char *path = temp_text(&temp, "x.safetensors.index.json", text);
    assert_int_equal(sft_set_open(path, NULL, &set, &err), SFT_INDEX_SHARD_MISSING);
    assert_int_equal(err.hint, SFT_HINT_RECOVER);
    assert_non_null(strstr(err.message, ".gone.safetensors.sft-0123abcv.old"));
    (void)snprintf(shard, sizeof shard, "%s/gone.safetensors", temp.path);
    assert_int_equal(sft_source_path(shard, NULL, &source, &err), SFT_NOT_FOUND);
    assert_int_equal(err.hint, SFT_HINT_RECOVER);
    beneath.beneath = temp.path;
    assert_int_equal(sft_source_path(shard, &beneath, &source, &err), SFT_NOT_FOUND);
    assert_null(strstr(err.message, ".old"));
}

static void a_tensor_in_two_shards(void **state) {
    sft_error err = SFT_ERROR_INIT;
    const char *list[] = { one_tensor("1.safetensors", "a"), one_tensor("2.safetensors", "a") };
    sft_set *set;
    (void)state;
    refuses("{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}",
            SFT_INDEX_TENSOR_DUPLICATE, SFT_NO_OFFSET, "2.safetensors");
    assert_int_equal(sft_set_open_list(list, 2, NULL, &set, &err), SFT_INDEX_TENSOR_DUPLICATE);
    assert_int_equal(err.tensor_len, 1);
    assert_int_equal(err.tensor[0], 'a');
}

static void limits_of_an_index(void **state) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    const char *path = two_shards();
    sft_index *names;
    sft_set *set;
    (void)state;
    options.max_shards = 1;
    assert_int_equal(sft_set_open(path, &options, &set, NULL), SFT_TOO_MANY_TENSORS);
    options.max_shards = 2;
    assert_int_equal(sft_index_open(path, &options, &names, NULL), SFT_OK);
    sft_index_close(names);
    options.max_index_bytes = 100;
    assert_int_equal(sft_set_open(path, &options, &set, NULL), SFT_FILE_TOO_LARGE);
    assert_int_equal(sft_index_open(path, &options, &names, NULL), SFT_FILE_TOO_LARGE);
    const char *folder = temp_subfolder(&temp, "d.safetensors.index.json");
    assert_int_equal(sft_set_open(folder, NULL, &set, NULL), SFT_IO_NOT_FILE);
}

static void reads_the_names_only(void **state) {
    sft_index *names;
    const char *path = temp_text(&temp, "n.safetensors.index.json",
                                 "{\"weight_map\":{\"a\":\"s10\",\"b\":\"s9\",\"c\":\"s10\","
                                 "\"d\":\"s1\"}}");
    (void)state;
    assert_int_equal(sft_index_open(path, NULL, &names, NULL), SFT_OK);
    assert_int_equal(sft_index_shard_count(names), 3);
    assert_string_equal(sft_index_shard_at(names, 0), "s1");
    assert_string_equal(sft_index_shard_at(names, 1), "s9");
    assert_string_equal(sft_index_shard_at(names, 2), "s10");
    assert_null(sft_index_shard_at(names, 3));
    size_t len = strlen(path) - strlen("n.safetensors.index.json");
    assert_int_equal(strlen(sft_index_folder(names)), len);
    assert_memory_equal(sft_index_folder(names), path, len);
    sft_index_close(names);
    sft_index_close(NULL);
    path = temp_text(&temp, "o.safetensors.index.json", "{\"weight_map\":{\"a\":\"../s\"}}");
    assert_int_equal(sft_index_open(path, NULL, &names, NULL), SFT_INDEX_PATH);
    assert_null(names);
    assert_int_equal(sft_index_open(NULL, NULL, &names, NULL), SFT_BAD_ARGUMENT);
}

/* ── Lists, limits, memory ── */

static void a_list_keeps_its_order(void **state) {
    const char *list[] = { one_tensor("2.safetensors", "b"), one_tensor("1.safetensors", "a") };
    sft_set *set;
    (void)state;
    assert_int_equal(sft_set_open_list(list, 2, NULL, &set, NULL), SFT_OK);
    assert_string_equal(sft_set_shard_path(set, 0), list[0]);
    assert_true(sft_span_equal(sft_set_tensor_at(set, 1)->name, name_of("a")));
    assert_int_equal(sft_set_tensor_shard(set, 1), 1);
    assert_int_equal(sft_set_tensor_shard(set, 2), 0);
    assert_non_null(sft_set_find(set, name_of("a"), NULL));
    assert_null(sft_set_index_path(set));
    sft_set_close(set);
    assert_int_equal(sft_set_open_list(list, 0, NULL, &set, NULL), SFT_BAD_ARGUMENT);
    const char *holes[] = { list[0], NULL };
    assert_int_equal(sft_set_open_list(holes, 2, NULL, &set, NULL), SFT_BAD_ARGUMENT);
    const char *gone[] = { list[0], temp_path(&temp, "gone") };
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_set_open_list(gone, 2, NULL, &set, &err), SFT_NOT_FOUND);
    assert_memory_equal(err.message, gone[1], strlen(gone[1]));
}

static void descriptors_run_out_clearly(void **state) {
    struct rlimit old, low;
    const char *paths[40];
    sft_error err = SFT_ERROR_INIT;
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_set *set;
    (void)state;
    for (int i = 0; i < 40; i++) {
        char file[32], tensor[32];
        snprintf(file, sizeof file, "%d.safetensors", i);
        snprintf(tensor, sizeof tensor, "t%d", i);
        paths[i] = one_tensor(file, tensor);
    }
    temp_must(getrlimit(RLIMIT_NOFILE, &old) == 0, "getrlimit");
    low = old;
    low.rlim_cur = 30;
    temp_must(setrlimit(RLIMIT_NOFILE, &low) == 0, "setrlimit");
    sft_code code = sft_set_open_list(paths, 40, NULL, &set, &err);
    options.open = &open;
    open.mode = SFT_MAP;
    sft_code mapped = sft_set_open_list(paths, 40, &options, &set, NULL);
    temp_must(setrlimit(RLIMIT_NOFILE, &old) == 0, "setrlimit");
    assert_int_equal(code, SFT_IO_OPEN);
    assert_int_equal(err.os_errno, EMFILE);
    assert_int_equal(err.hint, SFT_HINT_OPEN_FILES);
    assert_int_equal(mapped, SFT_OK); /* a map keeps no descriptor */
    assert_int_equal(sft_set_tensor_count(set), 40);
    sft_set_close(set);
}

typedef struct budget {
    size_t left, live;
} budget;

static void *budget_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    budget *b = ctx;
    if (new_size == 0) {
        free(ptr);
        b->live -= old_size;
        return NULL;
    }
    if (b->left == 0) return NULL;
    b->left--;
    void *at = realloc(ptr, new_size);
    b->live += new_size - old_size;
    return at;
}

static void every_allocation_may_fail(void **state) {
    budget b = { 0, 0 };
    sft_allocator alloc = { budget_resize, &b };
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    const char *path = two_shards();
    (void)state;
    options.open = &open;
    open.alloc = &alloc;
    for (size_t n = 0;; n++) {
        sft_error err = SFT_ERROR_INIT;
        uint32_t order[4];
        sft_set *set;
        b.left = n;
        sft_code code = sft_set_open(path, &options, &set, &err);
        if (!code) {
            code = sft_set_order(set, SFT_ORDER_NATURAL, order, &err);
            sft_set_close(set);
        }
        assert_int_equal(b.live, 0);
        if (!code) break;
        assert_int_equal(code, SFT_OUT_OF_MEMORY);
        assert_true(n < 1000);
    }
}

static void a_big_set_stays_quick(void **state) {
    enum { EACH = 20000, SHARDS = 5 };
    char *header = malloc(EACH * 80 + 16), name[32];
    const char *paths[SHARDS];
    sft_set *set;
    (void)state;
    for (int s = 0; s < SHARDS; s++) {
        size_t at = 0;
        header[at++] = '{';
        for (int i = 0; i < EACH; i++)
            at += (size_t)sprintf(header + at,
                                  "%s\"t.%d.%d\":{\"dtype\":\"U8\",\"shape\":[0],"
                                  "\"data_offsets\":[0,0]}", i ? "," : "", s, i);
        header[at++] = '}';
        header[at] = '\0';
        snprintf(name, sizeof name, "big-%d.safetensors", s);
        paths[s] = temp_model(&temp, name, header, NULL, 0);
    }
    free(header);
    assert_int_equal(sft_set_open_list(paths, SHARDS, NULL, &set, NULL), SFT_OK);
    assert_int_equal(sft_set_tensor_count(set), EACH * SHARDS);
    for (size_t i = 0; i < EACH * SHARDS; i += 7) {
        size_t shard;
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        assert_ptr_equal(sft_set_find(set, tensor->name, &shard), tensor);
        assert_int_equal(shard, i / EACH);
    }
    sft_set_close(set);
}

#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        ROW(one_file_is_a_set),
        ROW(an_open_file_is_a_set),
        ROW(a_missing_file_is_not_found),
        ROW(a_pointer_is_told_apart),
        ROW(options_are_checked),
        ROW(options_may_be_longer),
        ROW(an_index_joins_shards),
        ROW(orders_over_the_set),
        ROW(index_by_content),
        ROW(index_in_a_subfolder),
        ROW(index_names),
        ROW(index_shapes_refused),
        ROW(index_grammar_refused),
        ROW(paths_refused),
        ROW(names_for_every_system),
        ROW(paths_that_only_look_bad),
        ROW(shards_and_tensors_missing),
        ROW(a_shard_whose_replacement_was_interrupted),
        ROW(a_tensor_in_two_shards),
        ROW(limits_of_an_index),
        ROW(reads_the_names_only),
        ROW(a_list_keeps_its_order),
        ROW(descriptors_run_out_clearly),
        ROW(every_allocation_may_fail),
        ROW(a_big_set_stays_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
