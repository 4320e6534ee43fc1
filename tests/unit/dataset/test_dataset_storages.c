/* Storages whose table is short or has gaps: all that a dataset is asked works, or is refused
 * before anything is written. And what a commit concludes from a put that failed. */
#define _GNU_SOURCE
#include "unit/maintain_case.h"
#include "dataset/commit/swap.h"

#include <stddef.h>

/* ── Functions of object stores ── */

static sft_code tag_of(sft_span bytes, char tag[SFT_STORED_TAG]) {
    const sft_allocator alloc = sfti_allocator(NULL);
    return sfti_ds_digest(bytes, &alloc, tag, &err);
}

static sft_storage under; /* all of it */

static sft_code fetch(void *ctx, const char *name, uint64_t most, sft_buffer *bytes,
                      char tag[SFT_STORED_TAG], sft_error *e) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sft_span text = { NULL, 0 };
    (void)ctx;
    sft_code code = sfti_ds_read_all(&under, name, most, &arena, &text, e);
    if (!code) assert_true(sfti_buffer_put(bytes, text.data, text.len));
    if (!code) code = tag_of(text, tag);
    sfti_arena_free(&arena);
    return code;
}

static sft_code put_if(void *ctx, const char *name, const char *tag, sft_span bytes, sft_error *e) {
    sft_buffer now = { .alloc = sfti_allocator(NULL) };
    char is[SFT_STORED_TAG] = { 0 };
    (void)fetch(ctx, name, UINT64_MAX, &now, is, NULL);
    sft_buffer_free(&now);
    if (strcmp(is, tag) != 0) return sft_error_set(e, SFT_DATASET_CHANGED, 0, "another");
    return sfti_ds_put(&under, name, bytes, e);
}

static int locks;

static sft_code lock_alone(void *ctx, uint64_t wait_ms, sft_error *e) {
    (void)ctx, (void)wait_ms, (void)e;
    locks++;
    return SFT_OK;
}

/* ── Every verb ── */

static void commits(sft_commit_mode how, uint64_t shards, const char *old) {
    sft_dataset_options *o = ds_options("batch_size=4", old, NULL);
    sft_commit *c = ds_begin(o, how);
    for (uint64_t i = 0; i < shards; i++) ds_batch(c, i, 0, 4, 3);
    ds_end(c);
    sft_dataset_options_free(o);
}

static void deletes(sft_span key) {
    static const sft_row_range range = { 1, 3 };
    sft_delete_options how = SFT_DELETE_OPTIONS_INIT;
    sft_sink sink = sft_sink_memory(&out);
    if (key.len) how.keys = &key, how.key_count = 1;
    else how.rows = &range, how.row_count = 1;
    finish(&sink, sft_dataset_delete_json(&ds_storage, &how, "d", &sink, NULL, &err));
}

static void compacts(void) {
    sft_compact_options how = SFT_COMPACT_OPTIONS_INIT;
    how.target_bytes = UINT64_MAX;
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_compact_json(&ds_storage, &how, "d", &sink, NULL, &err));
}

static void adds(uint64_t rows) {
    sft_storage values, kept = ds_storage;
    ds_storage = under; /* where the values are */
    ds_values(rows, 4, &values);
    ds_storage = kept;
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_add_json(&ds_storage, &values, NULL, "d", &sink, NULL, &err));
    sft_storage_close(&values);
}

static void rows_are(uint64_t samples) {
    verify_whole(true);
    sft_dataset *d = ds_open();
    if (sft_dataset_samples(d) != samples)
        fail_msg("expected %" PRIu64 ", found %" PRIu64, samples, sft_dataset_samples(d));
    sft_dataset_close(d);
}

static void every_verb(void) {
    commits(SFT_COMMIT_OVERWRITE, 2, NULL);
    commits(SFT_COMMIT_APPEND, 1, NULL);
    rows_are(12); /* with three of padding */
    deletes((sft_span){ NULL, 0 });
    rows_are(10);
    adds(7);
    rows_are(10);
    commits(SFT_COMMIT_APPEND, 0, "keep_old=all");
    compacts();
    rows_are(7);
    commits(SFT_COMMIT_OVERWRITE, 2, "keep_old=all"); /* of other columns */
    gc(0, true);
    rows_are(8);
    make_kv();
    rows_are(6);
    deletes(sft_span_cstr("a"));
    rows_are(5);
    compacts();
    gc(0, true);
    rows_are(5);
    has("\"orphan_count\":0");
}

static void tables(void **state) {
    static const struct {
        size_t size;
        bool moves, tags, single, no_lock, no_move_new, no_unlock, no_put_if;
    } all[] = {
        { sizeof(sft_storage_vtable), .moves = true, .no_unlock = true },
        { sizeof(sft_storage_vtable), .moves = true, .no_move_new = true },
        { sizeof(sft_storage_vtable), .tags = true, .no_lock = true, .no_move_new = true,
          .no_put_if = true, .single = true },
        { sizeof(sft_storage_vtable), .moves = true },
        { sizeof(sft_storage_vtable), .moves = true, .no_lock = true },
        { sizeof(sft_storage_vtable), .tags = true, .no_lock = true, .no_move_new = true },
        { offsetof(sft_storage_vtable, put_if), .moves = true },
        { offsetof(sft_storage_vtable, put_if), .tags = true, .no_lock = true, .no_move_new = true,
          .single = true }, /* a fetch is nothing without a put_if */
        { offsetof(sft_storage_vtable, fetch), .moves = true },
        { offsetof(sft_storage_vtable, move_new), .moves = true },
        { offsetof(sft_storage_vtable, close), .moves = true },
        { offsetof(sft_storage_vtable, unlock), .moves = true },
        { offsetof(sft_storage_vtable, lock), .moves = true, .single = true },
        { offsetof(sft_storage_vtable, lock), .single = true },
    };
    const sft_storage kept = ds_storage;
    (void)state;
    under = kept;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ds_storage = kept;
        sft_storage_vtable *own = storage_own(&ds_storage);
        own->size = all[i].size;
        if (!all[i].moves) own->move = NULL, own->sync_folder = NULL;
        if (all[i].tags) own->fetch = fetch, own->put_if = put_if;
        if (all[i].no_lock) own->lock = NULL, own->unlock = NULL;
        if (all[i].no_move_new) own->move_new = NULL;
        if (all[i].no_put_if) own->put_if = NULL;
        if (all[i].no_unlock) own->unlock = NULL;
        if (all[i].no_unlock || all[i].size == offsetof(sft_storage_vtable, unlock))
            own->lock = lock_alone;
        ds_storage.single_writer = all[i].single;
        locks = 0;
        every_verb();
        if (own->lock == lock_alone) assert_true(locks > 5);
        ds_storage.single_writer = false;
        assert_int_equal(sfti_ds_guard_check(&ds_storage, false, &err),
                         all[i].single ? SFT_DATASET_UNGUARDED : SFT_OK);
        ds_storage = kept;
        gc(0, true);
    }
}

/* Without what is required nothing is asked of a storage. */
static void required(void **state) {
    static const char why[] = "expected a storage with create, open, list and remove, found ";
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_storage lacking[7];
    (void)state;
    for (int i = 0; i < 7; i++) {
        lacking[i] = ds_storage;
        sft_storage_vtable *own = storage_own(&lacking[i]);
        if (i == 0) own->create = NULL;
        if (i == 1) own->open = NULL;
        if (i == 2) own->list = NULL;
        if (i == 3) own->remove = NULL;
        if (i == 4) own->size = offsetof(sft_storage_vtable, remove);
        if (i == 5) own->size = sizeof own->size;
        if (i == 6) lacking[i].vtable = NULL;
    }
    for (int i = 0; i < 8; i++) {
        const sft_storage *s = i < 7 ? &lacking[i] : NULL;
        const sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
        sft_commit *c = NULL;
        sft_dataset *d = NULL;
        assert_int_equal(sft_commit_open(o, s, NULL, &how, &c, &err), SFT_BAD_ARGUMENT);
        assert_int_equal(strncmp(err.message, why, sizeof why - 1), 0);
        assert_string_equal(err.message + sizeof why - 1, s ? "one without" : "NULL");
        assert_int_equal(sft_dataset_open(s, NULL, NULL, NULL, &d, &err), SFT_BAD_ARGUMENT);
        assert_int_equal(sft_commit_renew(s, sft_span_cstr(UUID ":0"), &err), SFT_BAD_ARGUMENT);
        sft_sink sink = sft_sink_memory(&out);
        assert_int_equal(sft_dataset_gc_json(s, NULL, "d", &sink, &err), SFT_BAD_ARGUMENT);
        assert_int_equal(sft_dataset_verify_json(s, false, NULL, "d", &sink, &whole, NULL, &err),
                         SFT_BAD_ARGUMENT);
        assert_int_equal(sft_dataset_compact_json(s, NULL, "d", &sink, NULL, &err),
                         SFT_BAD_ARGUMENT);
        assert_int_equal(sft_dataset_delete_json(s, NULL, "d", &sink, NULL, &err),
                         SFT_BAD_ARGUMENT);
        assert_int_equal(sft_dataset_add_json(s, &ds_storage, NULL, "d", &sink, NULL, &err),
                         SFT_BAD_ARGUMENT);
        assert_int_equal(sft_dataset_versions_json(s, "d", &sink, &err), SFT_BAD_ARGUMENT);
        sft_sink_abandon(&sink);
    }
    assert_int_equal(temp_dir_count(), 0);
    sft_dataset_options_free(o);
    /* Places for results. */
    sft_storage none;
    const sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    assert_int_equal(sft_dataset_open(&ds_storage, NULL, NULL, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "expected a place for the dataset, found NULL");
    assert_int_equal(sft_storage_local(NULL, true, NULL, &none, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_storage_local("", true, NULL, &none, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_storage_local("x", true, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "expected a folder and a place for the storage, found none");
    o = ds_options("batch_size=4", NULL);
    assert_int_equal(sft_commit_open(o, &ds_storage, NULL, &how, NULL, &err), SFT_BAD_ARGUMENT);
    sft_commit *c = NULL;
    assert_int_equal(sft_commit_open(NULL, &ds_storage, NULL, &how, &c, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message,
                        "expected options and a place for the commit, found NULL");
    sft_dataset_options_free(o);
    sft_storage zeroed = { NULL, NULL, false };
    sft_storage_close(&zeroed);
    sft_storage_close(NULL);
}

/* ── What a put that failed has done ── */

#define MINE "aaaaaaaa-89ab-4def-8123-456789abcdef"
#define OTHERS "bbbbbbbb-89ab-4def-8123-456789abcdef"
#define BEFORE "cccccccc-89ab-4def-8123-456789abcdef"
#define MANIFEST(commit, version, shards) "{\"format_version\":\"1.0\"," \
    "\"safetensors_version\":\"1.0\",\"total_samples\":0,\"total_bytes\":0," \
    "\"generator\":\"libsafetensors 0\",\"version\":" version "," \
    "\"history\":\"" UUID "\",\"commit\":\"" commit "\",\"shards\":[" shards "]}"
#define SHARD_ROW "{\"shard_path\":\"" ORPHAN "\",\"samples_count\":1,\"bytes\":1}"

static sft_code no_open(void *ctx, const char *name, sft_source *source, sft_error *e) {
    (void)ctx, (void)name, (void)source;
    return sft_error_set(e, SFT_IO_READ, 5, "it failed");
}

static void outcomes(void **state) {
    static const char before[] = MANIFEST(BEFORE, "1", "");
    static const struct {
        const char *now;  /* the manifest; NULL: none */
        const char *kept; /* the file of version 2; NULL: none */
        sfti_ds_outcome changed, otherwise; /* after SFT_DATASET_CHANGED, or another failure */
    } all[] = {
        { MANIFEST(MINE, "2", ""), NULL, SFTI_SWAP_DONE, SFTI_SWAP_DONE },
        { MANIFEST(OTHERS, "3", SHARD_ROW), NULL, SFTI_SWAP_DONE, SFTI_SWAP_DONE },
        { MANIFEST(OTHERS, "3", ""), MANIFEST(MINE, "2", ""), SFTI_SWAP_DONE, SFTI_SWAP_DONE },
        { MANIFEST(OTHERS, "3", ""), MANIFEST(OTHERS, "2", ""), SFTI_SWAP_FAILED,
          SFTI_SWAP_UNKNOWN },
        { MANIFEST(OTHERS, "3", ""), NULL, SFTI_SWAP_FAILED, SFTI_SWAP_UNKNOWN },
        { before, NULL, SFTI_SWAP_FAILED, SFTI_SWAP_FAILED },
        { NULL, NULL, SFTI_SWAP_UNKNOWN, SFTI_SWAP_FAILED },
        { "{", NULL, SFTI_SWAP_UNKNOWN, SFTI_SWAP_FAILED },
    };
    char name[SFTI_VERSION_FILE_NAME];
    sfti_ds_swap w = { .storage = &ds_storage, .alloc = sfti_allocator(NULL), .commit = MINE,
                       .old = sft_span_cstr(before), .old_version = 1, .shard = ORPHAN,
                       .history = UUID, .folder = "" };
    (void)state;
    sfti_ds_version_name(2, UUID, name);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        (void)unlink(temp_path(SFTI_DATASET_MANIFEST));
        (void)unlink(temp_path(name));
        if (all[i].now) temp_write(SFTI_DATASET_MANIFEST, all[i].now, strlen(all[i].now));
        if (all[i].kept) temp_write(name, all[i].kept, strlen(all[i].kept));
        if (sfti_ds_swap_check(&w, SFT_DATASET_CHANGED) != all[i].changed ||
            sfti_ds_swap_check(&w, SFT_IO_WRITE) != all[i].otherwise)
            fail_msg("case %zu", i);
    }
    /* A manifest of segments that are gone does not say what it names. */
    static const char segments[] =
        "{\"format_version\":\"2.0\",\"safetensors_version\":\"1.0\",\"total_samples\":0,"
        "\"total_bytes\":0,\"commit\":\"" OTHERS "\",\"total_shards\":1,\"segments\":[{\"sha256\":"
        "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\"bytes\":1,"
        "\"shards\":1}]}";
    temp_write(SFTI_DATASET_MANIFEST, segments, sizeof segments - 1);
    assert_int_equal(sfti_ds_swap_check(&w, SFT_DATASET_CHANGED), SFTI_SWAP_UNKNOWN);
    assert_int_equal(sfti_ds_swap_check(&w, SFT_IO_WRITE), SFTI_SWAP_UNKNOWN);
    /* Without a history, and where no version can follow, it is not looked for. */
    temp_write(SFTI_DATASET_MANIFEST, all[2].now, strlen(all[2].now));
    temp_write(name, all[2].kept, strlen(all[2].kept));
    assert_int_equal(sfti_ds_swap_check(&w, SFT_IO_WRITE), SFTI_SWAP_DONE);
    w.history = NULL;
    assert_int_equal(sfti_ds_swap_check(&w, SFT_IO_WRITE), SFTI_SWAP_UNKNOWN);
    w.history = UUID;
    w.old_version = UINT64_MAX;
    assert_int_equal(sfti_ds_swap_check(&w, SFT_IO_WRITE), SFTI_SWAP_UNKNOWN);
    w.old_version = 1;
    w.shard = NULL;
    temp_write(SFTI_DATASET_MANIFEST, all[1].now, strlen(all[1].now));
    (void)unlink(temp_path(name));
    assert_int_equal(sfti_ds_swap_check(&w, SFT_IO_WRITE), SFTI_SWAP_UNKNOWN);
    sft_storage dead = ds_storage;
    storage_own(&dead)->open = no_open;
    w.storage = &dead;
    assert_int_equal(sfti_ds_swap_check(&w, SFT_DATASET_CHANGED), SFTI_SWAP_UNKNOWN);
    assert_int_equal(sfti_ds_swap_check(&w, SFT_IO_WRITE), SFTI_SWAP_UNKNOWN);
}

/* A move that never replaces, and what it says: it is done, or not, whatever it says. */
static sft_code move_says;
static bool move_does;
static const char *move_then; /* the manifest after it */

static sft_code told_move(void *ctx, const char *from, const char *to, sft_error *e) {
    if (move_does) {
        sft_code code = under.vtable->move_new(ctx, from, to, e);
        if (code) return code;
    }
    if (move_then) temp_write(SFTI_DATASET_MANIFEST, move_then, strlen(move_then));
    return move_says ? sft_error_set(e, move_says, 0, "it failed") : SFT_OK;
}

static void says_changed(sfti_ds_swap *w, sfti_ds_outcome *outcome) {
    assert_int_equal(sfti_ds_swap_claim(w, outcome, &err), SFT_DATASET_CHANGED);
    assert_string_equal(err.message, "expected the dataset as it was read, found another commit");
}

static void claims(void **state) {
    static const struct {
        sft_code says, code;
        bool does;
        sfti_ds_outcome outcome;
    } all[] = {
        { SFT_OK, SFT_OK, true, SFTI_SWAP_DONE },
        { SFT_IO_WRITE, SFT_OK, true, SFTI_SWAP_DONE }, /* done, and reported otherwise */
        { SFT_EXISTS, SFT_OK, true, SFTI_SWAP_DONE },
        { SFT_IO_WRITE, SFT_IO_WRITE, false, SFTI_SWAP_FAILED },
        { SFT_EXISTS, SFT_DATASET_CHANGED, false, SFTI_SWAP_FAILED },
        { SFT_DATASET_UNGUARDED, SFT_DATASET_UNGUARDED, false, SFTI_SWAP_FAILED },
    };
    static const char before[] = MANIFEST(BEFORE, "1", ""), mine[] = MANIFEST(MINE, "2", "");
    sft_storage s = ds_storage;
    (void)state;
    under = ds_storage;
    storage_own(&s)->move_new = told_move;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sfti_ds_swap w = { .storage = &s, .alloc = sfti_allocator(NULL), .commit = MINE,
                           .guard = SFTI_GUARD_NUMBER, .old = sft_span_cstr(before),
                           .old_version = 1, .text = sft_span_cstr(mine), .folder = "_job-" UUID };
        sfti_ds_outcome outcome = SFTI_SWAP_UNKNOWN;
        move_says = all[i].says;
        move_does = all[i].does;
        temp_write(SFTI_DATASET_MANIFEST, before, sizeof before - 1);
        if (sfti_ds_swap_claim(&w, &outcome, &err) != all[i].code || outcome != all[i].outcome)
            fail_msg("case %zu: %d %s", i, (int)outcome, err.message);
        (void)unlink(temp_path(w.file));
    }
    /* Others followed before this one looked: their file says that it was in force. */
    char next[SFTI_COMMIT_FILE_NAME];
    const sft_allocator alloc = sfti_allocator(NULL);
    const char third[] = MANIFEST(OTHERS, "3", "");
    sfti_ds_swap w = { .storage = &s, .alloc = alloc, .commit = MINE, .guard = SFTI_GUARD_NUMBER,
                       .old = sft_span_cstr(before), .old_version = 1,
                       .text = sft_span_cstr(mine), .folder = "_job-" UUID };
    sfti_ds_outcome outcome = SFTI_SWAP_FAILED;
    /* Another's is in force by then, and none of the files says that this one ever was. */
    move_says = SFT_OK;
    move_does = true;
    move_then = third;
    temp_write(SFTI_DATASET_MANIFEST, before, sizeof before - 1);
    says_changed(&w, &outcome);
    assert_int_equal(outcome, SFTI_SWAP_FAILED);
    assert_false(ds_exists(w.file));
    /* The same with the file of the commit behind it, which followed this one. */
    temp_write(SFTI_DATASET_MANIFEST, before, sizeof before - 1);
    assert_int_equal(sfti_ds_commit_file(w.text, 2, &alloc, next, &err), SFT_OK);
    temp_write(next, third, sizeof third - 1);
    assert_int_equal(sfti_ds_swap_claim(&w, &outcome, &err), SFT_OK);
    assert_int_equal(outcome, SFTI_SWAP_DONE);
    (void)unlink(temp_path(w.file));
    (void)unlink(temp_path(next));
    move_then = NULL;
    /* A storage that cannot do it after all: by the lock, or alone. */
    move_says = SFT_DATASET_UNGUARDED;
    move_does = false;
    for (int locked = 0; locked < 2; locked++) {
        sfti_ds_swap other = w;
        other.single = !locked;
        other.locked = locked;
        temp_write(SFTI_DATASET_MANIFEST, before, sizeof before - 1);
        assert_int_equal(sfti_ds_swap_claim(&other, &outcome, &err), SFT_OK);
        assert_int_equal(other.guard, locked ? SFTI_GUARD_LOCK : SFTI_GUARD_NOTHING);
    }
    /* Whether it is tried again: only if another came first, and not for ever. */
    temp_write(SFTI_DATASET_MANIFEST, third, sizeof third - 1);
    assert_true(sfti_ds_swap_again(&w, SFT_DATASET_CHANGED, w.old, 0));
    assert_true(sfti_ds_swap_again(&w, SFT_DATASET_CHANGED, w.old, 7));
    assert_false(sfti_ds_swap_again(&w, SFT_DATASET_CHANGED, w.old, 99));
    assert_false(sfti_ds_swap_again(&w, SFT_IO_WRITE, w.old, 0));
    assert_false(sfti_ds_swap_again(&w, SFT_DATASET_CHANGED, sft_span_cstr(third), 0));
    move_says = SFT_OK;
    move_does = true;
    temp_write(SFTI_DATASET_MANIFEST, before, sizeof before - 1);
    assert_int_equal(sfti_ds_commit_file(w.text, 2, &alloc, next, &err), SFT_OK);
    temp_write(next, third, sizeof third - 1);
    assert_int_equal(sfti_ds_swap_claim(&w, &outcome, &err), SFT_OK);
    assert_int_equal(outcome, SFTI_SWAP_DONE);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(tables), FOLDER_TEST(required), FOLDER_TEST(outcomes), FOLDER_TEST(claims),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sft_buffer_free(&out);
    return failed;
}
