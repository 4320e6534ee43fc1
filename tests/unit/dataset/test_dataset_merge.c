/* All headers as one sorted list: the same by windows, in memory and by sorting. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"
#include "base/endian.h"
#include "dataset/read/merge.h"

static sft_error err;

/* ── The expected rows ── */

typedef struct want_row {
    const ds_tensor *tensor;
    uint32_t source, winner;
    const char *name;
} want_row;

static int want_order(const void *a, const void *b) {
    const want_row *x = a, *y = b;
    int order = strcmp(x->tensor->key, y->tensor->key);
    return order ? order : strcmp(x->name, y->name);
}

static uint64_t tensor_bytes(const ds_tensor *t) {
    uint64_t bits = sft_dtype_describe(t->dtype)->bits;
    for (uint32_t i = 0; i < t->rank; i++) bits *= t->shape[i];
    return bits / 8;
}

/* ── Shards of tensors, in one storage ── */

#define SHARDS_MOST 96

typedef struct world {
    size_t shards;
    size_t count[SHARDS_MOST];
    ds_tensor *tensors[SHARDS_MOST];
    char names[SHARDS_MOST][32];
    sfti_ds_source sources[SHARDS_MOST];
} world;

static ds_tensor *world_shard(world *w, const char *name, size_t most) {
    (void)snprintf(w->names[w->shards], sizeof w->names[0], "%.31s", name);
    w->sources[w->shards] = (sfti_ds_source){ w->names[w->shards], w->names[w->shards], NULL };
    ds_tensor *tensors = calloc(most + 1, sizeof *tensors);
    assert_non_null(tensors);
    return w->tensors[w->shards++] = tensors;
}

static void world_add(world *w, const char *key, sft_dtype dtype, uint32_t rank, uint64_t a,
                      uint64_t b) {
    size_t i = w->shards - 1;
    char *copy = strdup(key);
    assert_non_null(copy);
    w->tensors[i][w->count[i]++] = (ds_tensor){ copy, dtype, rank, { a, b }, 1 };
}

static void world_free(world *w) {
    for (size_t i = 0; i < w->shards; i++) {
        for (size_t k = 0; k < w->count[i]; k++) free((void *)(uintptr_t)w->tensors[i][k].key);
        free(w->tensors[i]);
    }
}

static void world_write(const world *w, bool marked) {
    for (size_t i = 0; i < w->shards; i++)
        ds_put(&ds_storage, w->names[i], w->tensors[i], w->count[i], "kv", marked ? "1" : NULL,
               NULL);
}

static size_t world_rows(const world *w, want_row **out) {
    size_t total = 0, n = 0;
    for (size_t i = 0; i < w->shards; i++) total += w->count[i];
    want_row *rows = calloc(total + 1, sizeof *rows);
    assert_non_null(rows);
    for (size_t i = 0; i < w->shards; i++)
        for (size_t k = 0; k < w->count[i]; k++)
            rows[n++] = (want_row){ &w->tensors[i][k], (uint32_t)i, 0, w->names[i] };
    qsort(rows, n, sizeof *rows, want_order);
    for (size_t i = 0, end; i < n; i = end) {
        uint32_t winner = 0;
        for (end = i; end < n && strcmp(rows[end].tensor->key, rows[i].tensor->key) == 0; end++)
            if (rows[end].source > winner) winner = rows[end].source;
        for (size_t k = i; k < end; k++) rows[k].winner = winner;
    }
    *out = rows;
    return n;
}

/* A row's range in the file is that of its tensor. */
static void row_is(const sfti_ds_row *row, const want_row *want, sft_file *const *files) {
    const ds_tensor *t = want->tensor;
    if (row->key.len != strlen(t->key) || memcmp(row->key.data, t->key, row->key.len) != 0)
        fail_msg("expected %.60s, found %.*s", t->key, (int)row->key.len, row->key.data);
    assert_int_equal(row->source, want->source);
    assert_int_equal(row->winner, want->winner);
    assert_int_equal(row->shadowed, want->source != want->winner);
    assert_int_equal(row->dtype, t->dtype);
    assert_int_equal(row->rank, t->rank);
    assert_memory_equal(row->shape, t->shape, t->rank * sizeof *t->shape);
    assert_int_equal(row->end - row->begin, tensor_bytes(t));
    if (!files) return;
    const sft_tensor *there = sft_file_find(files[row->source], row->key);
    assert_non_null(there);
    assert_int_equal(row->begin, there->offset);
}

static void merge_is(const world *w) {
    want_row *rows;
    size_t n = world_rows(w, &rows);
    sft_file *files[SHARDS_MOST];
    sfti_ds_merge *merge;
    const sfti_ds_row *row;
    for (size_t i = 0; i < w->shards; i++)
        assert_int_equal(sft_open(temp_path(w->names[i]), NULL, &files[i], &err), SFT_OK);
    if (sfti_ds_merge_open(&ds_storage, w->sources, w->shards, NULL, NULL, NULL, &merge, &err))
        fail_msg("%s", err.message);
    for (int turn = 0; turn < 3; turn++) { /* again from the middle, and from the end */
        if (turn && sfti_ds_merge_rewind(merge, &err)) fail_msg("%s", err.message);
        for (size_t i = 0; i < (turn ? n : n / 2); i++) {
            if (sfti_ds_merge_next(merge, &row, &err)) fail_msg("%s", err.message);
            assert_non_null(row);
            row_is(row, &rows[i], files);
        }
    }
    for (int again = 0; again < 2; again++) {
        assert_int_equal(sfti_ds_merge_next(merge, &row, &err), SFT_OK);
        assert_null(row);
    }
    sfti_ds_merge_close(merge);
    for (size_t i = 0; i < w->shards; i++) sft_close(files[i]);
    free(rows);
}

static void both_ways(world *w) {
    world_write(w, true);
    merge_is(w);
    world_write(w, false);
    merge_is(w);
    world_free(w);
}

/* ── Tests ── */

static void nothing(void **state) {
    world w = { 0 };
    sfti_ds_merge *merge;
    const sfti_ds_row *row;
    (void)state;
    assert_int_equal(sfti_ds_merge_open(&ds_storage, NULL, 0, NULL, NULL, NULL, &merge, &err),
                     SFT_OK);
    assert_int_equal(sfti_ds_merge_next(merge, &row, &err), SFT_OK);
    assert_null(row);
    sfti_ds_merge_close(merge);
    sfti_ds_merge_close(NULL);
    (void)world_shard(&w, "none", 1);
    (void)world_shard(&w, "one", 1);
    world_add(&w, "x", SFT_F32, 0, 0, 0);
    (void)world_shard(&w, "none too", 1);
    both_ways(&w);
}

static void spellings(void **state) {
    static const char *const keys[] = { "\"",      "\\",     "\n",           "\t__v",
                                        "\x01",    "\x7f",   "\xc3\xa9",     "\xe2\x80\xa8",
                                        "a\"b\\c", "",       "\xf0\x9f\x98\x80", "a/b",
                                        "}],{:",   "__meta", "data_offsets", "dtype" };
    world w = { 0 };
    (void)state;
    for (size_t shard = 0; shard < 3; shard++) {
        char name[8];
        (void)snprintf(name, sizeof name, "s%zu", shard);
        (void)world_shard(&w, name, 64);
        for (size_t i = shard; i < sizeof keys / sizeof *keys; i += shard + 1)
            world_add(&w, keys[i], i % 3 ? SFT_F32 : SFT_U8, (uint32_t)(i % 3), 2, 4);
    }
    both_ways(&w);
}

/* Each dtype is a run of ascending keys. */
static void many_dtypes(void **state) {
    world w = { 0 };
    char text[40];
    (void)state;
    for (size_t shard = 0; shard < 4; shard++) {
        (void)snprintf(text, sizeof text, "shard %zu", shard);
        (void)world_shard(&w, text, 1000);
        for (size_t i = 0; i < 900; i++) {
            (void)snprintf(text, sizeof text, "key %zu", i * (shard + 1));
            world_add(&w, text, (sft_dtype)(i * 7 % SFT_DTYPE_COUNT), 2, 4, i % 5 * 2);
        }
    }
    both_ways(&w);
}

/* Entries that end at, before and behind every border of a window. */
static void long_keys(void **state) {
    static const size_t lengths[] = { 65500, 65536, 65535, 40000, 131072, 200000, 1, 65473, 300 };
    world w = { 0 };
    char *key = malloc(300000);
    (void)state;
    assert_non_null(key);
    (void)world_shard(&w, "long", 100);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memset(key, (char)('a' + i), lengths[i]);
        key[lengths[i]] = '\0';
        world_add(&w, key, SFT_F32, 1, i, 0);
    }
    (void)world_shard(&w, "also", 4000);
    for (size_t i = 0; i < 3000; i++) {
        int len = (int)(i % 97);
        (void)snprintf(key, 300, "%zu%.*s", i, len,
                       "------------------------------------------------------------------------"
                       "------------------------------");
        world_add(&w, key, i % 2 ? SFT_F16 : SFT_F32, 1, 2, 0);
    }
    free(key);
    both_ways(&w);
}

static void precedence(void **state) {
    world w = { 0 };
    char text[40];
    (void)state;
    /* Names sort differently from the sources. */
    for (size_t shard = 0; shard < 60; shard++) {
        (void)snprintf(text, sizeof text, "s%zu", shard * 37 % 60);
        (void)world_shard(&w, text, 40);
        for (size_t i = 0; i < 30; i++) {
            (void)snprintf(text, sizeof text, "k%zu", (i * i + shard * i) % 300);
            bool there = false;
            for (size_t k = 0; k < w.count[shard]; k++)
                there = there || strcmp(w.tensors[shard][k].key, text) == 0;
            if (!there) world_add(&w, text, (sft_dtype)(SFT_F32), 1, shard, 0);
        }
    }
    both_ways(&w);
}

static void large(void **state) {
    world w = { 0 };
    char text[64];
    (void)state;
    for (size_t shard = 0; shard < 32; shard++) {
        (void)snprintf(text, sizeof text, "shard%02zu", shard);
        (void)world_shard(&w, text, 4000);
        for (size_t i = 0; i < 4000; i++) {
            (void)snprintf(text, sizeof text, "user_%zu__embedding",
                           (i * 32 + shard) * 2654435761u % 1000003);
            world_add(&w, text, SFT_F32, 1, i % 3 + 1, 0);
        }
    }
    both_ways(&w);
}

/* ── Headers with our mark that others wrote: rows are as opening the file says ── */

#define MARK "\"__metadata__\":{\"" SFTI_DATASET_MARK "\":\"1\"}"
#define ENTRY(key, begin, end) \
    "\"" key "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" begin "," end "]}"

static void put_header(const char *name, const char *header) {
    char bytes[4096] = { 0 };
    const size_t len = strlen(header), padded = (len + 7) / 8 * 8;
    assert_true(8 + padded + 64 <= sizeof bytes);
    sfti_put_u64(bytes, padded);
    memset(bytes + 8, ' ', padded);
    memcpy(bytes + 8, header, len);
    temp_write(name, bytes, 8 + padded + 16);
}

static void headers(void **state) {
    static const char *const all[] = {
        "{" MARK "," ENTRY("a", "0", "8") "," ENTRY("b", "8", "16") "}",
        "{" MARK "," ENTRY("b", "8", "16") "," ENTRY("a", "0", "8") "}",
        "{" ENTRY("a", "0", "8") "," ENTRY("b", "8", "16") "," MARK "}",
        "{" ENTRY("a", "0", "8") "," MARK "," ENTRY("b", "8", "16") "}",
        "{" MARK "\t,\r\n \"a\" : {\"dtype\":\"F32\" , \"shape\": [ 2 ],\"data_offsets\":[0,8] }\n,"
        ENTRY("b", "8", "16") "\n}\n",
        "{" MARK ",\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        ENTRY("b", "8", "16") "}",
        "{" MARK "," ENTRY("a", "0", "8") ",\"b\":{\"d\\u0074ype\":\"F\\u00316\","
        "\"sha\\u0070e\":[4],"
        "\"\\u0064ata\\u005foffsets\":[8,16]}}",
        "{" MARK "," ENTRY("a", "0", "8") ",\"b\":{\"data_offsets\":[8,16],\"more\":[{\"a\":[1]}],"
        "\"also, with a \\\"long\\\" name that is no word of an entry, as such names go here\":1,"
        "\"shape\":[1,2],\"dtype\":\"F32\"}}",
        "{" MARK ",\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[0,3],\"data_offsets\":[4,4]},"
        "\"c\":{\"dtype\":\"U8\",\"shape\":[12],\"data_offsets\":[4,16]}}",
    };
    const sfti_ds_source source = { "one", "one", NULL };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sfti_ds_merge *merge = NULL;
        const sfti_ds_row *row = NULL;
        sft_file *file = NULL;
        uint32_t order[3];
        put_header("one", all[i]);
        if (sft_open(temp_path("one"), NULL, &file, &err)) fail_msg("%zu: %s", i, err.message);
        assert_int_equal(sft_file_order(file, SFT_ORDER_NAME, order, &err), SFT_OK);
        assert_int_equal(sfti_ds_merge_open(&ds_storage, &source, 1, NULL, NULL, NULL, &merge,
                                            &err), SFT_OK);
        for (size_t k = 0; k < sft_file_tensor_count(file); k++) {
            const sft_tensor *t = sft_file_tensor_at(file, order[k]);
            if (sfti_ds_merge_next(merge, &row, &err) || !row) fail_msg("%zu: %s", i, err.message);
            if (!sft_span_equal(row->key, t->name) || row->dtype != t->dtype ||
                !sfti_ds_shape_same(row->shape, row->rank, t->shape, t->rank) ||
                row->begin != t->offset || row->end - row->begin != t->end - t->begin)
                fail_msg("another row than the tensor %.*s of %s", (int)t->name.len, t->name.data,
                         all[i]);
        }
        assert_int_equal(sfti_ds_merge_next(merge, &row, &err), SFT_OK);
        assert_null(row);
        sfti_ds_merge_close(merge);
        sft_close(file);
    }
}

/* Headers with more runs of ascending keys than are read at once, and a mark that is spelled with
 * escapes. */
static void many_runs(void **state) {
    static char text[1 << 13];
    static const char *const marks[] = { MARK, "\"__metadata__\":{\"" SFTI_DATASET_MARK "\":"
                                               "\"\\u0031\"}" };
    const sfti_ds_source source = { "one", "one", NULL };
    (void)state;
    for (int way = 0; way < 4; way++) {
        const int count = way < 2 ? 70 : 3;
        sfti_ds_merge *merge = NULL;
        const sfti_ds_row *row = NULL;
        int at = snprintf(text, sizeof text, "{%s", marks[way % 2]);
        for (int i = 0; i < count; i++)
            at += snprintf(text + at, sizeof text - (size_t)at,
                           ",\"k%02d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                           count - i);
        text[at++] = '}';
        text[at] = '\0';
        const size_t padded = ((size_t)at + 7) / 8 * 8;
        char *bytes = calloc(1, 8 + padded);
        assert_non_null(bytes);
        sfti_put_u64(bytes, padded);
        memset(bytes + 8, ' ', padded);
        memcpy(bytes + 8, text, (size_t)at);
        temp_write("one", bytes, 8 + padded);
        free(bytes);
        if (sfti_ds_merge_open(&ds_storage, &source, 1, NULL, NULL, NULL, &merge, &err))
            fail_msg("%s", err.message);
        for (int i = 1; i <= count; i++) {
            char key[8];
            (void)snprintf(key, sizeof key, "k%02d", i);
            if (sfti_ds_merge_next(merge, &row, &err) || !row) fail_msg("%d: %s", i, err.message);
            assert_true(sft_span_equal(row->key, sft_span_cstr(key)));
        }
        assert_int_equal(sfti_ds_merge_next(merge, &row, &err), SFT_OK);
        assert_null(row);
        sfti_ds_merge_close(merge);
    }
}

/* A header that was rewritten, at the same length, after it was looked at. */
static void rewritten(void **state) {
    static const char good[] = "{" MARK "," ENTRY("a", "0", "8") "," ENTRY("b", "8", "16") "}";
    static const struct {
        const char *from, *to;
    } all[] = {
        { "\"b\":{", "[b]:{" }, { "\"b\":{", "\"b\" {" }, { "\"b\":{", "\"b\":[" },
        { "F32\",\"shape\":[2],\"data_offsets\":[8", "F33\",\"shape\":[2],\"data_offsets\":[8" },
        { "\"F32\",\"shape\":[2],\"data_offsets\":[8", "12345,\"shape\":[2],\"data_offsets\":[8" },
        { "[2],\"data_offsets\":[8", "{2],\"data_offsets\":[8" },
        { "[2],\"data_offsets\":[8", "[-],\"data_offsets\":[8" },
        { ":[8,16]", ":{8,16]" }, { ":[8,16]", ":[-,16]" }, { ":[8,16]", ":[8,-6]" },
        { ":[8,16]", ":[8,16," },
    };
    const sfti_ds_source source = { "one", "one", NULL };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[sizeof good];
        sfti_ds_merge *merge = NULL;
        const sfti_ds_row *row = NULL;
        put_header("one", good);
        assert_int_equal(sfti_ds_merge_open(&ds_storage, &source, 1, NULL, NULL, NULL, &merge,
                                            &err), SFT_OK);
        assert_int_equal(strlen(all[i].from), strlen(all[i].to));
        memcpy(text, good, sizeof good);
        char *at = strstr(text, all[i].from);
        assert_non_null(at);
        memcpy(at, all[i].to, strlen(all[i].to));
        put_header("one", text);
        assert_int_equal(sfti_ds_merge_rewind(merge, &err), SFT_OK);
        sft_code code = sfti_ds_merge_next(merge, &row, &err);
        if (!code) code = sfti_ds_merge_next(merge, &row, &err);
        if (code != SFT_DATASET_SHARD || strcmp(err.message, "one changed while it was read"))
            fail_msg("%zu: %s", i, err.message);
        sfti_ds_merge_close(merge);
    }
}

/* The file is replaced before its second window is read. */
static void changed(void **state) {
    world w = { 0 };
    sfti_ds_merge *merge;
    const sfti_ds_row *row;
    char text[200];
    (void)state;
    (void)world_shard(&w, "shard", 3000);
    for (size_t i = 0; i < 3000; i++) {
        (void)snprintf(text, sizeof text, "a rather long name of a key, so that windows fill %zu",
                       i);
        world_add(&w, text, SFT_F32, 1, 2, 0);
    }
    world_write(&w, true);
    for (int way = 0; way < 2; way++) {
        assert_int_equal(sfti_ds_merge_open(&ds_storage, w.sources, 1, NULL, NULL, NULL, &merge,
                                            &err),
                         SFT_OK);
        if (way == 0) temp_write("shard", "x", 1);
        else assert_int_equal(unlink(temp_path("shard")), 0);
        sft_code code = SFT_OK;
        do code = sfti_ds_merge_next(merge, &row, &err);
        while (code == SFT_OK && row);
        assert_int_equal(code, way == 0 ? SFT_DATASET_SHARD : SFT_NOT_FOUND);
        if (way == 0) assert_string_equal(err.message, "shard changed while it was read");
        sfti_ds_merge_close(merge);
        world_write(&w, true);
    }
    world_free(&w);
}

static bool stop(void *ctx, uint64_t done, uint64_t total) {
    (void)total;
    *(uint64_t *)ctx = done;
    return false;
}

static void refusals(void **state) {
    static const sfti_ds_source none[] = { { "none", "none", NULL } };
    sfti_ds_merge *merge;
    uint64_t done = 0;
    sft_job job = SFT_JOB_INIT;
    (void)state;
    assert_int_equal(sfti_ds_merge_open(&ds_storage, none, 1, NULL, NULL, NULL, &merge, &err),
                     SFT_NOT_FOUND);
    assert_null(merge);
    temp_write("none", "not a safetensors file", 22);
    assert_int_not_equal(sfti_ds_merge_open(&ds_storage, none, 1, NULL, NULL, NULL, &merge, &err),
                         SFT_OK);
    ds_put(&ds_storage, "none", NULL, 0, "kv", "0", NULL);
    job.tick = stop;
    job.ctx = &done;
    assert_int_equal(sfti_ds_merge_open(&ds_storage, none, 1, NULL, NULL, &job, &merge, &err),
                     SFT_CANCELLED);
    assert_true(done > 8);
}

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, ds_make, ds_remove)

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(nothing),    FOLDER_TEST(spellings),   FOLDER_TEST(many_dtypes),
        FOLDER_TEST(long_keys),  FOLDER_TEST(precedence),  FOLDER_TEST(large),
        FOLDER_TEST(changed),    FOLDER_TEST(refusals),    FOLDER_TEST(headers),
        FOLDER_TEST(rewritten),  FOLDER_TEST(many_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
