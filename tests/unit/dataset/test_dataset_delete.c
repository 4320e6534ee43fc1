/* Rows are deleted: masks of strangers, commits that come first, what stays. */
#define _GNU_SOURCE
#include "unit/maintain_case.h"

#include "dataset/commit/addressed.h"
#include "dataset/maintain/results.h"

#include <unistd.h>

static sft_code delete_on(const sft_storage *storage, const sft_delete_options *how) {
    sft_sink sink = sft_sink_memory(&out);
    out.len = 0;
    sft_code code = sft_dataset_delete_json(storage, how, "d", &sink, NULL, &err);
    if (code) sft_sink_abandon(&sink);
    else assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    assert_true(sfti_buffer_put(&out, "", 1));
    return code;
}

static sft_delete_options rows_from(uint64_t first, uint64_t end) {
    static sft_row_range range;
    sft_delete_options how = SFT_DELETE_OPTIONS_INIT;
    range = (sft_row_range){ first, end };
    how.rows = &range;
    how.row_count = 1;
    return how;
}

static void deletes(uint64_t first, uint64_t end) {
    const sft_delete_options how = rows_from(first, end);
    if (delete_on(&ds_storage, &how)) fail_msg("%s", err.message);
}

static uint64_t deleted_of(size_t i) {
    sft_dataset *d = ds_open();
    uint64_t count = sft_dataset_shard_at(d, i)->deleted;
    sft_dataset_close(d);
    return count;
}

/* ── What it does ── */

static void ranges_in_any_order(void **state) {
    static const sft_row_range some[] = { { 5, 7 }, { 1, 2 }, { 0, 0 }, { 6, 7 }, { 1, 2 } };
    sft_delete_options how = SFT_DELETE_OPTIONS_INIT;
    (void)state;
    make_batch(); /* rows 0 to 3, 4 to 6 and one of padding */
    how.rows = some;
    how.row_count = 5;
    assert_int_equal(delete_on(&ds_storage, &how), SFT_OK);
    has("\"rows_before\":7,\"deleted\":3,\"rows_after\":4,\"shards\":2,");
    sft_dataset *d = ds_open();
    const sft_span first = sft_dataset_shard_mask(d, 0), second = sft_dataset_shard_mask(d, 1);
    assert_true(first.len == 1 && first.data[0] == 1 << 1);
    assert_true(second.len == 1 && second.data[0] == (1 << 1 | 1 << 2));
    assert_true(sft_dataset_shard_mask(d, 2).len == 0);
    assert_int_equal(sft_dataset_samples(d), 5);
    sft_dataset_close(d);
    verify_whole(true);
    deletes(3, 4); /* of what is left */
    assert_int_equal(deleted_of(1), 3);
    verify_whole(true);
}

static void numbers_and_names(void **state) {
    const sft_span names[] = { sft_span_cstr("a"), sft_span_cstr("b") };
    sft_delete_options how = rows_from(0, 1), named = SFT_DELETE_OPTIONS_INIT;
    (void)state;
    named.keys = names;
    named.key_count = 2;
    make_batch();
    assert_int_equal(delete_on(&ds_storage, &named), SFT_BAD_ARGUMENT);
    how.rows = &(sft_row_range){ 6, 8 };
    assert_int_equal(delete_on(&ds_storage, &how), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected rows from 0 to 7, found 6 to 8"));
    how.keys = names;
    how.key_count = 1;
    assert_int_equal(delete_on(&ds_storage, &how), SFT_BAD_ARGUMENT);
    make_kv();
    how = rows_from(0, 1);
    assert_int_equal(delete_on(&ds_storage, &how), SFT_BAD_ARGUMENT);
    named.version = 1; /* of another one than is in force */
    assert_int_equal(delete_on(&ds_storage, &named), SFT_MANIFEST_MISSING);
    named.version = 0;
    assert_int_equal(delete_on(&ds_storage, &named), SFT_OK);
    has("\"rows_before\":6,\"deleted\":2,\"rows_after\":4,");
    assert_int_equal(deleted_of(0), 1); /* b of this shard was replaced */
    assert_int_equal(deleted_of(1), 1);
    verify_whole(true);
    sft_dataset *d = ds_open();
    sft_dataset_replaced *hidden = NULL;
    size_t gone = 0, replaced = 0;
    assert_int_equal(sft_dataset_find_replaced(d, NULL, &hidden, &err), SFT_OK);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < sft_dataset_shard_at(d, i)->tensors; k++) {
            gone += sft_dataset_is_deleted(hidden, i, k);
            replaced += sft_dataset_is_replaced(hidden, i, k);
        }
    assert_int_equal(gone, 2);
    assert_int_equal(replaced, 1);
    sft_dataset_replaced_free(hidden);
    sft_dataset_close(d);
    assert_int_equal(delete_on(&ds_storage, &named), SFT_TENSOR_NOT_FOUND);
    assert_non_null(strstr(err.message, "found \"a\", which none has"));
    read_manifest();
    assert_null(strstr(manifest, "\"a__v\"")); /* the schema lists what can be seen */
    assert_non_null(strstr(manifest, "\"c__v\""));
    assert_non_null(strstr(manifest, "\"total_samples\":4,"));
}

/* ── Commits that come first ── */

static int firsts; /* deletions by another, before each of the next calls of lock */

static sft_code late_lock(void *ctx, uint64_t wait_ms, sft_error *e) {
    if (firsts) {
        firsts--;
        deletes(0, 1);
    }
    return ds_storage.vtable->lock(ctx, wait_ms, e);
}

static void joined(void **state) {
    sft_storage late = ds_storage;
    const sft_delete_options other = rows_from(0, 1);
    sft_delete_options how = other;
    const sft_row_range last = { 6, 7 };
    (void)state;
    make_batch();
    how.rows = &last; /* of the rows before the other deletion */
    storage_own(&late)->lock = late_lock;
    firsts = 1;
    assert_int_equal(delete_on(&late, &how), SFT_OK);
    has("\"version\":3,\"rows_before\":6,\"deleted\":1,\"rows_after\":5,");
    assert_int_equal(deleted_of(0), 1);
    assert_int_equal(deleted_of(1), 1);
    verify_whole(true);
}

static sft_code compact_lock(void *ctx, uint64_t wait_ms, sft_error *e) {
    sft_compact_options how = SFT_COMPACT_OPTIONS_INIT;
    sft_sink sink = sft_sink_memory(&out);
    how.batch_size = 3;
    if (firsts-- > 0)
        finish(&sink, sft_dataset_compact_json(&ds_storage, &how, "d", &sink, NULL, &err));
    return ds_storage.vtable->lock(ctx, wait_ms, e);
}

static void replaced(void **state) {
    sft_storage late = ds_storage;
    const sft_delete_options how = rows_from(2, 3);
    (void)state;
    make_batch();
    storage_own(&late)->lock = compact_lock;
    firsts = 1;
    assert_int_equal(delete_on(&late, &how), SFT_DATASET_CHANGED);
    assert_non_null(strstr(err.message, "expected the shards of version 1, whose rows are to be "
                                        "deleted, found version 2, which replaced some"));
    assert_int_equal(ds_count(".dataset_masks-"), 0);
    assert_int_equal(ds_count("_job-"), 0);
    verify_whole(true);
}

/* ── What stays ── */

static void index_stays(void **state) {
    (void)state;
    make_batch();
    edit("\"index\":null", "\"index\":\"_tensor_index.parquet\"");
    temp_write(SFTI_DATASET_INDEX, "x", 1);
    read_manifest();
    char whose[64];
    memcpy(whose, strstr(manifest, "\"commit\":"), 47);
    whose[47] = '\0';
    deletes(0, 1);
    deletes(0, 1);
    read_manifest();
    char told[80];
    (void)snprintf(told, sizeof told, "\"index_%s", whose + 1);
    assert_non_null(strstr(manifest, told));
    assert_true(ds_exists(SFTI_DATASET_INDEX));
}

/* Where rows cannot be put together, deleted ones stay so. */
static void left(void **state) {
    sft_compact_options how = SFT_COMPACT_OPTIONS_INIT;
    sft_sink sink = sft_sink_memory(&out);
    (void)state;
    make_batch();
    deletes(0, 2);
    edit("\"dtype\":\"F32\",\"shape\":[3]", "\"dtype\":null,\"shape\":[3]");
    out.len = 0;
    finish(&sink, sft_dataset_compact_json(&ds_storage, &how, "d", &sink, NULL, &err));
    has("\"rewritten\":0,\"tensors_dropped\":0,\"deleted_dropped\":0,");
    has("\"left\":\"dtype or shape of the column x varies");
    assert_int_equal(deleted_of(0), 2);
    how.form = SFT_FORM_SEGMENTS; /* the masks are those that there were */
    how.drop_old = true;
    sink = sft_sink_memory(&out);
    out.len = 0;
    finish(&sink, sft_dataset_compact_json(&ds_storage, &how, "d", &sink, NULL, &err));
    assert_int_equal(deleted_of(0), 2);
    read_manifest();
    assert_non_null(strstr(manifest, "\"format_version\":\"3.0\""));
    assert_non_null(strstr(manifest, "\"segments\":["));
    verify_whole(true);
}

static void no_garbage(void **state) {
    sft_gc_options how = SFT_GC_OPTIONS_INIT;
    (void)state;
    make_batch();
    deletes(0, 1);
    deletes(0, 1);
    temp_write(".dataset_masks-0000000000000000000000000000000000000000000000000000000000000000",
               "not masks", 9);
    assert_int_equal(ds_count(".dataset_masks-"), 3);
    how.grace_s = 0;
    how.remove = true;
    for (uint64_t keep = 0; keep < 2; keep++) {
        sft_sink sink = sft_sink_memory(&out);
        how.keep = keep;
        finish(&sink, sft_dataset_gc_json(&ds_storage, &how, "d", &sink, &err));
        assert_int_equal(ds_count(".dataset_masks-"), 3 - keep); /* without our mark it stays */
    }
    assert_int_equal(deleted_of(0), 2);
}

/* ── Masks of strangers ── */

typedef struct stranger {
    uint64_t bits, deleted;
    uint8_t mask;
    const char *other; /* name of the shard; NULL: of the first one */
    uint64_t count;    /* by the manifest */
    const char *says;
} stranger;

static void put_masks(const stranger *s) {
    const sfti_ds_mask one = { s->other ? s->other : shard[0], s->bits, s->deleted, &s->mask };
    sft_buffer bytes = { .alloc = sfti_allocator(NULL) };
    sfti_ds_masks made;
    char from[300];
    assert_int_equal(sfti_ds_masks_make(&one, 1, UUID, &bytes.alloc, &bytes, &made, &err), SFT_OK);
    assert_int_equal(
        sfti_ds_addressed_put(&ds_storage, SFTI_MASKS_FILE, made.sha256, &bytes, &err), SFT_OK);
    (void)snprintf(from, sizeof from, "\"format_version\":\"3.0\",\"features\":[\"deleted\"],"
                   "\"deleted\":{\"sha256\":\"%s\",\"bytes\":%zu,\"shards\":1,"
                   "\"count\":%" PRIu64 "}", made.sha256, bytes.len, s->count);
    edit("\"format_version\":\"1.0\"", from);
    sft_buffer_free(&bytes);
}

static void masks_of_strangers(void **state) {
    static const stranger bad[] = {
        { 4, 2, 1, NULL, 2, "masks of as many rows" },      /* another number of bits */
        { 4, 1, 1, NULL, 2, "masks of as many rows" },      /* another sum */
        { 4, 0, 0, NULL, 0, "masks of as many rows" },      /* none */
        { 3, 1, 8, NULL, 1, "masks of as many rows" },      /* behind the last bit */
        { 3, 1, 1, NULL, 1, "expected a mask of 4 rows, found another of 3" },
        { 4, 1, 1, "part-00009-0000-" UUID ".safetensors", 1, "expected masks of its shards" },
        { 4, 1, 1, "a/b", 1, "masks of as many rows" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sft_dataset *d = NULL;
        make_batch();
        put_masks(&bad[i]);
        assert_int_equal(sft_dataset_open(&ds_storage, NULL, NULL, NULL, &d, &err),
                         SFT_DATASET_SHARD);
        if (!strstr(err.message, bad[i].says)) fail_msg("%zu: %s", i, err.message);
        out.len = 0;
        verify(false);
        assert_false(whole);
    }
    make_batch(); /* padding is not deleted */
    put_masks(&(stranger){ 4, 1, 8, shard[1], 1, NULL });
    sft_dataset *d = NULL;
    assert_int_equal(sft_dataset_open(&ds_storage, NULL, NULL, NULL, &d, &err), SFT_DATASET_SHARD);
    assert_non_null(strstr(err.message, "expected a mask of 3 rows, found another of 4"));
}

static void manifests_of_strangers(void **state) {
    static const char *const bad[][3] = {
        { "\"1.0\",\"safet", "\"3.0\",\"safet", "\"features\" in format_version 3.0 alone" },
        { "\"1.0\",\"safet", "\"1.0\",\"features\":[],\"safet", "\"features\" in format_version" },
        { "\"1.0\",\"safet", "\"3.0\",\"features\":[\"more\"],\"safet", "newer version" },
        { "\"1.0\",\"safet", "\"3.0\",\"features\":{},\"safet", "an array" },
        { "\"1.0\",\"safet", "\"1.0\",\"deleted\":{\"sha256\":\"0123456789abcdef0123456789abcdef"
          "0123456789abcdef0123456789abcdef\",\"bytes\":1,\"shards\":1,\"count\":1},\"safet",
          "\"places\" there" },
        { "\"1.0\",\"safet", "\"1.0\",\"places\":{\"sha256\":\"0123456789abcdef0123456789abcdef"
          "0123456789abcdef0123456789abcdef\",\"bytes\":1,\"count\":1},\"safet",
          "\"places\" there" },
        { "\"1.0\",\"safet",
          "\"3.0\",\"features\":[\"deleted\"],\"deleted\":{\"sha256\":\"../../../..56789abc"
          "def0123456789abcdef0123456789abcdef0123456789abcdef\"},\"safet",
          "64 hexadecimal digits" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sft_dataset *d = NULL;
        make_batch();
        edit(bad[i][0], bad[i][1]);
        assert_int_equal(sft_dataset_open(&ds_storage, NULL, NULL, NULL, &d, &err),
                         SFT_MANIFEST_TYPE);
        if (!strstr(err.message, bad[i][2])) fail_msg("%zu: %s", i, err.message);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(ranges_in_any_order), FOLDER_TEST(numbers_and_names), FOLDER_TEST(joined),
        FOLDER_TEST(replaced), FOLDER_TEST(index_stays), FOLDER_TEST(left),
        FOLDER_TEST(no_garbage), FOLDER_TEST(masks_of_strangers),
        FOLDER_TEST(manifests_of_strangers),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sft_buffer_free(&out);
    return failed;
}
