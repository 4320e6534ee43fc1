/* Changes of an index: what becomes of its text, byte for byte, and what is refused. */
#define _GNU_SOURCE
#include "safetensors_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"

#define INDEX "model.safetensors.index.json"
#define MAP "\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-2.safetensors\"}"
#define BASE "{\"metadata\":{\"total_size\":5}," MAP "}"

/* Which kind of change a pair is; no value: NULL. */
typedef enum change_kind { METADATA, TENSORS, SHARDS, PLACES } change_kind;

typedef struct row {
    const char *text;
    struct {
        change_kind kind;
        const char *key, *value;
    } pairs[3];
    uint64_t total; /* 0: none */
    const char *wanted; /* NULL: as it was */
    sft_code code;
} row;

static const row rows[] = {
    { BASE, { { METADATA, "k", "v" } }, 0,
      "{\"metadata\":{\"total_size\":5,\"k\":\"v\"}," MAP "}", SFT_OK },
    { BASE, { { METADATA, NULL, NULL } }, 7, "{\"metadata\":{\"total_size\":7}," MAP "}", SFT_OK },
    { BASE, { { METADATA, "total_size", NULL } }, 0, "{\"metadata\":{}," MAP "}", SFT_OK },
    { BASE, { { METADATA, "k", NULL } }, 0, NULL, SFT_OK },
    { "{" MAP "}", { { METADATA, "k\"", "v\n" } }, 0,
      "{\"metadata\":{\"k\\\"\":\"v\\n\"}," MAP "}", SFT_OK },
    { "{" MAP "}", { { METADATA, "k", NULL } }, 0, NULL, SFT_OK },
    { "{" MAP "}", { { METADATA, NULL, NULL } }, 9, "{\"metadata\":{\"total_size\":9}," MAP "}",
      SFT_OK },
    { "{\"metadata\":7," MAP "}", { { METADATA, "k", "v" } }, 0,
      "{\"metadata\":{\"k\":\"v\"}," MAP "}", SFT_OK },
    { "{\"metadata\":[1, 2]," MAP "}", { { METADATA, "k", NULL } }, 0, NULL, SFT_OK },
    { "{\"metadata\":{\"j\":1,\"k\":2,\"l\":3}," MAP "}",
      { { METADATA, "j", NULL }, { METADATA, "l", "x" } }, 0,
      "{\"metadata\":{\"k\":2,\"l\":\"x\"}," MAP "}", SFT_OK },
    { BASE, { { METADATA, "k", "1" }, { METADATA, "k", "2" } }, 0,
      "{\"metadata\":{\"total_size\":5,\"k\":\"2\"}," MAP "}", SFT_OK },
    { BASE, { { METADATA, "k", "\xff" } }, 0, NULL, SFT_HEADER_UTF8 },
    { BASE, { { METADATA, "\xff", "v" } }, 0, NULL, SFT_HEADER_UTF8 },
    { BASE, { { TENSORS, "a", "\xff" } }, 0, NULL, SFT_HEADER_UTF8 },
    { BASE, { { TENSORS, "a", "c" } }, 0, "{\"metadata\":{\"total_size\":5},\"weight_map\":"
      "{\"c\":\"m-1.safetensors\",\"b\":\"m-2.safetensors\"}}", SFT_OK },
    { BASE, { { TENSORS, "a", "b" }, { TENSORS, "b", "a" } }, 0, "{\"metadata\":{\"total_size\":5},"
      "\"weight_map\":{\"b\":\"m-1.safetensors\",\"a\":\"m-2.safetensors\"}}", SFT_OK },
    { BASE, { { TENSORS, "a", "b" } }, 0, NULL, SFT_TENSOR_DUPLICATE },
    { BASE, { { TENSORS, "a", "a" } }, 0, NULL, SFT_OK },
    { BASE, { { TENSORS, "none", "c" } }, 0, NULL, SFT_OK },
    { " { \"x\" : [1] , \"weight_map\" : { \"\\u0061\" : \"m-1.safetensors\" } } ",
      { { TENSORS, "a", "c" } }, 0,
      " { \"x\" : [1] , \"weight_map\" : { \"c\" : \"m-1.safetensors\" } } ", SFT_OK },
    { BASE, { { SHARDS, "m-1.safetensors", "n.safetensors" } }, 0, "{\"metadata\":{\"total_size\":"
      "5},\"weight_map\":{\"a\":\"n.safetensors\",\"b\":\"m-2.safetensors\"}}", SFT_OK },
    { BASE, { { SHARDS, "m-1.safetensors", "m-2.safetensors" } }, 0, "{\"metadata\":{\"total_size\""
      ":5},\"weight_map\":{\"a\":\"m-2.safetensors\",\"b\":\"m-2.safetensors\"}}", SFT_OK },
    { BASE, { { SHARDS, "m-1.safetensors", "con" } }, 0, NULL, SFT_INDEX_PATH },
    { BASE, { { SHARDS, "m-1.safetensors", "M-2.safetensors" } }, 0, NULL, SFT_INDEX_PATH },
    { BASE, { { SHARDS, "m-1.safetensors", "../x" } }, 0, NULL, SFT_INDEX_PATH },
    { BASE, { { PLACES, "a", "m-2.safetensors" }, { PLACES, "b", NULL },
              { PLACES, "c", "m-1.safetensors" } }, 0, "{\"metadata\":{\"total_size\":5},"
      "\"weight_map\":{\"a\":\"m-2.safetensors\",\"c\":\"m-1.safetensors\"}}", SFT_OK },
    { BASE, { { PLACES, "a", "con" } }, 0, NULL, SFT_INDEX_PATH },
    { BASE, { { PLACES, "none", NULL } }, 0, NULL, SFT_OK },
    { "{\"weight_map\":[]}", { { PLACES, "none", NULL } }, 0, NULL, SFT_INDEX_TYPE },
};

static sft_index_changes changes_of(const row *r, sft_pair pairs[3]) {
    sft_index_changes c = SFT_INDEX_CHANGES_INIT;
    size_t count = 0;
    while (count < 3 && r->pairs[count].key) {
        const char *value = r->pairs[count].value;
        pairs[count].key = sft_span_cstr(r->pairs[count].key);
        pairs[count].value = value ? sft_span_cstr(value) : (sft_span){ NULL, 0 };
        count++;
    }
    change_kind kind = r->pairs[0].kind;
    *(kind == METADATA ? &c.metadata : kind == TENSORS ? &c.tensors
      : kind == SHARDS ? &c.shards : &c.places) = pairs;
    *(kind == METADATA ? &c.metadata_count : kind == TENSORS ? &c.tensor_count
      : kind == SHARDS ? &c.shard_count : &c.place_count) = count;
    c.has_total_size = r->total > 0;
    c.total_size = r->total;
    return c;
}

static void has_text(const char *name, const char *wanted) {
    char text[1024];
    long len = temp_read(name, text, sizeof text);
    if (len != (long)strlen(wanted) || memcmp(text, wanted, strlen(wanted)) != 0)
        fail_msg("%s: %.*s", name, (int)len, text);
}

/* In place, into another file, and as a dry run. */
static void test_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < 3 * sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i / 3];
        sft_pair pairs[3];
        sft_index_changes c = changes_of(r, pairs);
        sft_error err = SFT_ERROR_INIT;
        bool changed = !r->wanted, apart = i % 3 == 1;
        temp_write(INDEX, r->text, strlen(r->text));
        c.dry_run = i % 3 == 2;
        sft_code code = sft_index_rewrite(temp_path(INDEX), &c, apart ? temp_path("to.json") : NULL,
                                          NULL, &changed, &err);
        if (code != r->code) fail_msg("row %zu: %d, %s", i / 3, (int)code, err.message);
        if (changed != (r->wanted != NULL)) fail_msg("row %zu: changed %d", i / 3, changed);
        has_text(INDEX, r->wanted && i % 3 == 0 ? r->wanted : r->text);
        if (apart && !code) has_text("to.json", r->wanted ? r->wanted : r->text);
        assert_int_equal(temp_dir_count(), apart && !code ? 2 : 1);
        (void)unlink(temp_path("to.json"));
    }
}

/* A new file is as private as the index it is made from and the one it replaces. */
static void test_modes(void **state) {
    static const struct {
        int from, there, wanted; /* there 0: nothing */
    } modes[] = { { 0644, 0, 0644 }, { 0600, 0, 0600 }, { 0644, 0600, 0600 },
                  { 0600, 0644, 0600 } };
    const sft_pair pair = { sft_span_cstr("k"), sft_span_cstr("v") };
    sft_index_changes c = SFT_INDEX_CHANGES_INIT;
    (void)state;
    (void)umask(022);
    c.metadata = &pair;
    c.metadata_count = 1;
    for (size_t i = 0; i < 2 * sizeof modes / sizeof *modes; i++) {
        bool same = i % 2;
        int from = modes[i / 2].from;
        temp_write(INDEX, BASE, strlen(BASE));
        assert_int_equal(chmod(temp_path(INDEX), (mode_t)from), 0);
        if (modes[i / 2].there) {
            temp_write("to.json", "x", 1);
            assert_int_equal(chmod(temp_path("to.json"), (mode_t)modes[i / 2].there), 0);
        }
        assert_int_equal(sft_index_rewrite(temp_path(INDEX), &c,
                                           temp_path(same ? INDEX : "to.json"), NULL, NULL, NULL),
                         SFT_OK);
        assert_int_equal(temp_mode(same ? INDEX : "to.json"), same ? from : modes[i / 2].wanted);
        (void)unlink(temp_path("to.json"));
    }
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = { IN_DIR(test_rows), IN_DIR(test_modes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
