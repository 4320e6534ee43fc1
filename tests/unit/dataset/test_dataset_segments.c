/* Manifests of segments: the files, the rule of merging, commits, conversions, damage. */
#define _GNU_SOURCE
#include "dataset/commit/swap.h"
#include "unit/dataset_case.h"
#include "unit/make_file.h"
#include "unit/storage_table.h"

static sfti_arena arena;

static int seg_make(void **state) {
    arena = (sfti_arena){ .alloc = sfti_allocator(NULL) };
    return ds_make(state);
}

static int seg_remove(void **state) {
    sfti_arena_free(&arena);
    return ds_remove(state);
}

static sfti_ds_manifest head(void) {
    sfti_ds_manifest m;
    sft_error err = SFT_ERROR_INIT;
    if (sfti_ds_manifest_read(&ds_storage, &arena, &m, &err)) fail_msg("%s", err.message);
    return m;
}

static const char *text(void) { return head().text.data; }

/* One append (or new dataset) of `shards` batch shards with 4 rows each. */
static void put(const char *form, sft_commit_mode how, int shards) {
    char option[40];
    (void)snprintf(option, sizeof option, "manifest=%s", form ? form : "");
    sft_dataset_options *o = ds_options("batch_size=4", form ? option : NULL, NULL);
    sft_commit *c = ds_begin(o, how);
    for (int i = 0; i < shards; i++) ds_batch(c, (uint64_t)i, 0, 4, 4);
    ds_end(c);
    sft_dataset_options_free(o);
}

/* The dataset has so many shards of 4 rows, in order, and verifies. */
static void holds(size_t shards) {
    sft_dataset *d = ds_open();
    sft_buffer out = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&out);
    sft_error err = SFT_ERROR_INIT;
    bool whole = false;
    assert_int_equal(sft_dataset_shard_count(d), shards);
    assert_int_equal(sft_dataset_samples(d), 4 * shards);
    for (size_t i = 0; i < shards; i++)
        assert_int_equal(sft_dataset_shard_at(d, i)->first_sample, 4 * i);
    sft_dataset_close(d);
    if (sft_dataset_verify_json(&ds_storage, true, NULL, "d", &sink, &whole, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    if (!whole) fail_msg("%.*s", (int)out.len, out.data);
    sft_buffer_free(&out);
}

/* ── The rule of merging ── */

static void rule(void **state) {
    (void)state;
    enum { APPENDS = 200000 };
    sfti_ds_segment *s = calloc(64, sizeof *s);
    uint64_t written = 0, all = 0;
    size_t count = 0, most = 0;
    assert_non_null(s);
    for (uint64_t i = 0; i < APPENDS; i++) {
        uint64_t fresh = 1 + i % 3, total = fresh;
        size_t keep = sfti_ds_segments_keep(s, count, fresh);
        for (size_t k = keep; k < count; k++) {
            assert_true(s[k].shards < SFTI_SEGMENT_SHARDS);
            total += s[k].shards;
        }
        written += total;
        all += fresh;
        for (count = keep; total; count++) {
            s[count].shards = total < SFTI_SEGMENT_SHARDS ? total : SFTI_SEGMENT_SHARDS;
            total -= s[count].shards;
        }
        if (count > most) most = count;
    }
    uint64_t sum = 0;
    for (size_t k = 0; k < count; k++) sum += s[k].shards;
    assert_int_equal(sum, all);
    assert_true(written <= all * 18);           /* log2(65536) + 2 */
    assert_true(most <= all / SFTI_SEGMENT_SHARDS + 19);
    free(s);
}

/* ── Commits ── */

static void appends(void **state) {
    (void)state;
    put("segments", SFT_COMMIT_NEW, 1);
    assert_non_null(strstr(text(), "\"format_version\":\"2.0\""));
    assert_null(strstr(text(), "\"shards\":["));
    assert_int_equal(ds_count(SFTI_SEGMENT_FILE), 1);
    holds(1);
    for (size_t i = 2; i <= 40; i++) {
        put(NULL, SFT_COMMIT_APPEND, 1);
        sfti_ds_manifest m = head();
        assert_true(m.segmented && !m.numbered);
        assert_int_equal(m.version, i);
        assert_int_equal(m.sums.shards, i);
        assert_int_equal(m.sums.next_file, i);
        assert_int_equal(m.sums.rows, 4 * i);
        assert_int_equal(ds_count(SFTI_SEGMENT_FILE), m.segment_count); /* old ones are removed */
        assert_true(m.segment_count <= 7);
    }
    holds(40);
    put(NULL, SFT_COMMIT_APPEND, 100);
    holds(140);
    put(NULL, SFT_COMMIT_APPEND, 0);
    assert_int_equal(head().version, 42);
    holds(140);
    assert_string_equal(ds_warned, "");
}

static void empty(void **state) {
    (void)state;
    put("segments", SFT_COMMIT_NEW, 0);
    assert_int_equal(ds_count(SFTI_SEGMENT_FILE), 0);
    holds(0);
    put(NULL, SFT_COMMIT_APPEND, 2);
    holds(2);
}

static void forms(void **state) {
    (void)state;
    put(NULL, SFT_COMMIT_NEW, 3);
    assert_false(head().segmented);
    put("segments", SFT_COMMIT_APPEND, 2);
    assert_true(head().segmented);
    assert_int_equal(head().segment_count, 1);
    holds(5);
    put("whole", SFT_COMMIT_APPEND, 1);
    assert_false(head().segmented);
    assert_int_equal(ds_count(SFTI_SEGMENT_FILE), 0);
    holds(6);
    put("segments", SFT_COMMIT_OVERWRITE, 2);
    holds(2);
    put(NULL, SFT_COMMIT_OVERWRITE, 1); /* begins anew */
    assert_false(head().segmented);
    assert_int_equal(ds_count(SFTI_SEGMENT_FILE), 0);
    assert_int_equal(ds_count("part-"), 1);
    holds(1);
}

/* Shards of older segments that a later one shadows: their segments are written again. */
static void shadowed(void **state) {
    (void)state;
    sft_dataset_options *o = ds_options("name_col=id", "duplicatesStrategy=lastWin",
                                        "manifest=segments", NULL);
    static const char *const names[] = { "a,b,c,d", "e,f", "g", "b,h", "e" };
    for (size_t i = 0; i < 5; i++) {
        sft_commit *c = ds_begin(o, i ? SFT_COMMIT_APPEND : SFT_COMMIT_NEW);
        sft_error err = SFT_ERROR_INIT;
        ds_kv(c, 0, 0, names[i]);
        if (sft_commit_prepare(c, NULL, &err)) fail_msg("%s", err.message);
        if (sft_commit_publish(c, NULL, ds_warn, NULL, NULL, &err)) fail_msg("%s", err.message);
        sft_commit_close(c);
    }
    sft_dataset *d = ds_open();
    static const uint64_t expected[] = { 1, 1, 0, 0, 0 };
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(sft_dataset_shard_at(d, i)->shadowed, expected[i]);
    assert_int_equal(sft_dataset_samples(d), 8);
    sft_dataset_close(d);
    assert_int_equal(head().sums.shadowed, 2);
    assert_null(strstr(text(), "\"schema\""));
    assert_int_equal(ds_count(SFTI_SEGMENT_FILE), head().segment_count);
    sft_dataset_options_free(o);
    o = ds_options("name_col=id", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND);
    sft_error err = SFT_ERROR_INIT;
    ds_kv(c, 0, 0, "a");
    assert_int_equal(sft_commit_prepare(c, NULL, &err), SFT_DATASET_DUPLICATE);
    sft_commit_close(c);
    sft_dataset_options_free(o);
}

/* ── Compaction ── */

static void compact(sft_manifest_form form, bool dry_run, const char *find) {
    sft_compact_options options = SFT_COMPACT_OPTIONS_INIT;
    options.drop_old = true;
    sft_buffer out = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&out);
    sft_error err = SFT_ERROR_INIT;
    options.form = form;
    options.dry_run = dry_run;
    options.warn = ds_warn;
    if (sft_dataset_compact_json(&ds_storage, &options, "d", &sink, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_true(sfti_buffer_put(&out, "", 1));
    if (!strstr(out.data, find)) fail_msg("%s", out.data);
    sft_buffer_free(&out);
}

static void compacts(void **state) {
    (void)state;
    put("segments", SFT_COMMIT_NEW, 4);
    put(NULL, SFT_COMMIT_APPEND, 2);
    put(NULL, SFT_COMMIT_APPEND, 1);
    assert_int_equal(head().segment_count, 3);
    compact(SFT_FORM_SAME, true, "\"segments_before\":3,\"segments_after\":1");
    assert_int_equal(head().segment_count, 3);
    compact(SFT_FORM_SAME, false, "\"segments_before\":3,\"segments_after\":1");
    assert_int_equal(head().segment_count, 1);
    assert_int_equal(head().version, 4);
    assert_int_equal(ds_count(SFTI_SEGMENT_FILE), 1);
    holds(7);
    compact(SFT_FORM_SAME, false, "\"segments_after\":1");
    assert_int_equal(head().version, 4); /* nothing to do */
    compact(SFT_FORM_WHOLE, false, "\"segments_before\":1,\"segments_after\":null");
    assert_false(head().segmented);
    assert_int_equal(ds_count(SFTI_SEGMENT_FILE), 0);
    holds(7);
    compact(SFT_FORM_SEGMENTS, false, "\"segments_before\":null,\"segments_after\":1");
    holds(7);
    put(NULL, SFT_COMMIT_APPEND, 1);
    holds(8);
    assert_string_equal(ds_warned, "");
}

/* ── Memory, by docs/dataset.md ── */

typedef struct peaks {
    size_t append, open;
} peaks;

/* Of one append to a new dataset of so many shards, and of opening it. */
static peaks peaks_of(const char *form, int shards) {
    test_memory memory = { 0, 0, 0, 0 };
    const sft_allocator counted = { resize_test_memory, &memory };
    const sft_pair four = { sft_span_cstr("batch_size"), sft_span_cstr("4") };
    sft_dataset_options *o = NULL;
    sft_dataset *d = NULL;
    sft_error err = SFT_ERROR_INIT;
    peaks got;
    put(form, SFT_COMMIT_OVERWRITE, shards);
    if (sft_dataset_options_new(&four, 1, &counted, &o, &err)) fail_msg("%s", err.message);
    sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND);
    ds_batch(c, 0, 0, 4, 4);
    ds_end(c);
    got.append = memory.peak;
    sft_dataset_options_free(o);
    assert_int_equal(memory.held, 0);
    memory.peak = 0;
    if (sft_dataset_open(&ds_storage, &counted, ds_warn, NULL, &d, &err))
        fail_msg("%s", err.message);
    assert_int_equal(sft_dataset_shard_count(d), (size_t)shards + 1);
    sft_dataset_close(d);
    got.open = memory.peak;
    return got;
}

/* An append to segments takes no more memory where there is more; that of a whole manifest, and
 * opening, take the bytes a shard that are promised, and a fifth for tables that grow by steps. */
static void memory_grows(void **state) {
    enum { FEW = 100, MANY = 500, MORE = (MANY - FEW) * 6 / 5 };
    (void)state;
    put("whole", SFT_COMMIT_NEW, 1);
    peaks whole[] = { peaks_of("whole", FEW), peaks_of("whole", MANY) };
    peaks segments[] = { peaks_of("segments", FEW), peaks_of("segments", MANY) };
    assert_in_range(whole[1].append - whole[0].append, MORE * 1000, MORE * 2100);
    assert_in_range(whole[1].open - whole[0].open, MORE * 200, MORE * 530);
    assert_in_range(segments[1].append, 1, segments[0].append + 4096);
    assert_in_range(segments[1].open - segments[0].open, MORE * 100, MORE * 340);
}

/* ── Damage ── */

static char *segment_file(size_t i) {
    static char name[SFTI_SEGMENT_FILE_NAME];
    sfti_ds_addressed_name(SFTI_SEGMENT_FILE, head().segments[i].sha256, name);
    return name;
}

static void fails(sft_code code, const char *find) {
    sft_dataset *d = NULL;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_dataset_open(&ds_storage, NULL, NULL, NULL, &d, &err), code);
    if (!strstr(err.message, find)) fail_msg("%s", err.message);
}

static void damage(void **state) {
    (void)state;
    static char bytes[1 << 16];
    put("segments", SFT_COMMIT_NEW, 3);
    const char *name = segment_file(0);
    long len = temp_read(name, bytes, sizeof bytes);
    assert_true(len > 0 && len == (long)head().segments[0].bytes);
    bytes[len - 1] ^= 1;
    temp_write(name, bytes, (size_t)len);
    fails(SFT_DATASET_SHARD, "expected the segment that the manifest names, found another digest");
    temp_write(name, bytes, (size_t)len - 1);
    fails(SFT_DATASET_SHARD, "found another size");
    temp_write(name, bytes, (size_t)len + 1);
    fails(SFT_DATASET_SHARD, "found another size");
    assert_int_equal(unlink(temp_path(name)), 0);
    fails(SFT_DATASET_SHARD, "expected the segment that the manifest names, found none");
    /* A finding, no failure; and gc takes nothing for garbage. */
    sft_buffer out = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&out);
    sft_error err = SFT_ERROR_INIT;
    bool whole = true;
    assert_int_equal(
        sft_dataset_verify_json(&ds_storage, false, NULL, "d", &sink, &whole, NULL, &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_false(whole);
    sink = sft_sink_memory(&out);
    assert_int_equal(sft_dataset_gc_json(&ds_storage, gc_how(0, true), "d", &sink, &err),
                     SFT_DATASET_SHARD);
    sft_sink_abandon(&sink);
    sft_buffer_free(&out);
    assert_int_equal(ds_count("part-"), 3);
    /* An append does not need the old segment unless it merges it; an overwrite never does. */
    put(NULL, SFT_COMMIT_APPEND, 1);
    fails(SFT_DATASET_SHARD, "found none");
    put("segments", SFT_COMMIT_OVERWRITE, 1);
    holds(1);
}

static void links(void **state) {
    (void)state;
    char outside[300], inside[300];
    put("segments", SFT_COMMIT_NEW, 1);
    const char *name = segment_file(0);
    (void)snprintf(inside, sizeof inside, "%s", temp_path(name));
    (void)snprintf(outside, sizeof outside, "%s.outside", temp_dir);
    assert_int_equal(rename(inside, outside), 0);
    assert_int_equal(symlink(outside, inside), 0);
    fails(SFT_INDEX_PATH, "link");
    assert_int_equal(unlink(outside), 0);
}

/* ── Segments of strangers ── */

typedef struct stranger {
    const char *what, *names; /* '|' for NUL */
    size_t count;             /* of the manifest */
    uint64_t first[2];
    const char *message;
} stranger;

/* A segment of two shards that a stranger wrote, with a manifest that names it. */
static void seg_put(const stranger *s, const char *total) {
    static const uint64_t two[2] = { 2, 32 };
    char names[400], file[SFTI_SEGMENT_FILE_NAME], json[2000], digest[65];
    uint64_t numbers[SFTI_SEGMENT_NUMBERS][2] = { { 8, 8 }, { 4, 4 }, { 4, 4 },
                                                  { s->first[0], s->first[1] }, { 1, 1 },
                                                  { 0, 0 } };
    uint8_t zeros[64] = { 0 };
    const uint64_t len[1] = { strlen(s->names) };
    sft_spec specs[8];
    sft_plan *plan = NULL;
    sft_writer *writer = NULL;
    sft_buffer bytes = { .alloc = sfti_allocator(NULL) };
    sft_error err = SFT_ERROR_INIT;
    (void)snprintf(names, sizeof names, "%s", s->names);
    for (char *at = names; *at; at++)
        if (*at == '|') *at = '\0';
    for (size_t i = 0; i < SFTI_SEGMENT_NUMBERS; i++)
        specs[i] = (sft_spec){ .name = sft_span_cstr(sfti_segment_numbers[i].name),
                               .dtype = SFT_U64, .rank = 1, .shape = two };
    specs[6] = (sft_spec){ .name = sft_span_cstr("sha256"), .dtype = SFT_U8, .rank = 2,
                           .shape = two };
    specs[7] = (sft_spec){ .name = sft_span_cstr("names"), .dtype = SFT_U8, .rank = 1,
                           .shape = len };
    if (s->what && strcmp(s->what, "dtype") == 0) specs[0].dtype = SFT_I64;
    size_t columns = s->what && strcmp(s->what, "column") == 0 ? 7 : 8;
    assert_int_equal(sft_plan_new(specs, columns, NULL, 0, NULL, &plan, &err), SFT_OK);
    assert_int_equal(sft_writer_begin(plan, sft_sink_memory(&bytes), &writer, &err), SFT_OK);
    for (size_t i = 0; i < columns; i++) {
        const void *from = i < 6 ? (const void *)numbers[i] : i == 6 ? (void *)zeros : names;
        size_t size = i < 6 ? 16 : i == 6 ? 64 : (size_t)len[0];
        assert_int_equal(sft_writer_put(writer, sft_plan_position(plan, i), from, size, &err),
                         SFT_OK);
    }
    assert_int_equal(sft_writer_finish(writer, &err), SFT_OK);
    sft_plan_free(plan);
    assert_int_equal(
        sfti_ds_digest((sft_span){ bytes.data, bytes.len }, &bytes.alloc, digest, &err), SFT_OK);
    sfti_ds_addressed_name(SFTI_SEGMENT_FILE, digest, file);
    temp_write(file, bytes.data, bytes.len);
    (void)snprintf(json, sizeof json,
                   "{\"format_version\":\"2.0\",\"safetensors_version\":\"1.0\","
                   "\"commit\":\"01234567-89ab-4def-8123-456789abcdef\",\"mode\":\"batch\","
                   "\"total_samples\":8,\"total_bytes\":16,%s\"total_shards\":%zu,"
                   "\"segments\":[{\"sha256\":\"%s\",\"bytes\":%zu,\"shards\":%zu}]}",
                   total, s->count, digest, bytes.len, s->count);
    temp_write(SFTI_DATASET_MANIFEST, json, strlen(json));
    sft_buffer_free(&bytes);
}

#define TOTALS "\"total_rows\":8,\"total_tensors\":2,"

/* What verify and gc say, which read segment by segment. */
static void streamed(const char *message) {
    char begin[25];
    sft_buffer out = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&out);
    sft_error err = SFT_ERROR_INIT;
    bool whole = true;
    (void)snprintf(begin, sizeof begin, "%s", message);
    if (sft_dataset_verify_json(&ds_storage, false, NULL, "d", &sink, &whole, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_true(sfti_buffer_put(&out, "", 1));
    if (whole || !strstr(out.data, begin)) fail_msg("%s", out.data);
    sink = sft_sink_memory(&out);
    assert_int_not_equal(sft_dataset_gc_json(&ds_storage, gc_how(0, false), "d", &sink, &err),
                         SFT_OK);
    sft_sink_abandon(&sink);
    if (!strstr(err.message, begin)) fail_msg("%s", err.message);
    sft_buffer_free(&out);
}

static void strangers(void **state) {
    (void)state;
    static const char expected[] = "expected names of files in this folder, found others";
    static const stranger bad[] = {
        { NULL, "../a|b|", 2, { 0, 4 }, expected },
        { NULL, "a|..|", 2, { 0, 4 }, expected },
        { NULL, "a|c\\b|", 2, { 0, 4 }, expected },
        { NULL, "a||", 2, { 0, 4 }, expected },
        { NULL, "a|b", 2, { 0, 4 }, expected },
        { NULL, "a|b|c|", 2, { 0, 4 }, expected },
        { NULL, "a|\xff|", 2, { 0, 4 }, expected },
        { NULL, "a|a|", 2, { 0, 4 }, "expected each shard once, found a again" },
        { NULL, "a|b|", 2, { 4, 0 }, "expected shards in the order of samples" },
        { NULL, "a|b|", 3, { 0, 4 }, "expected its numbers, found others" },
        { "dtype", "a|b|", 2, { 0, 4 }, "expected its numbers, found others" },
        { "column", "a|b|", 2, { 0, 4 }, "expected names of files in this folder, found none" },
        { NULL, "a|b|", 2, { 0, UINT64_MAX }, "samples_count" },
        { NULL, "a|b|", 70000, { 0, 4 }, "expected at most 65,536 shards in a segment" },
    };
    stranger good = { NULL, "a|b|", 2, { 0, 4 }, NULL };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sft_dataset *d = NULL;
        sft_error err = SFT_ERROR_INIT;
        seg_put(&bad[i], TOTALS);
        sft_code code = sft_dataset_open(&ds_storage, NULL, NULL, NULL, &d, &err);
        assert_true(code == SFT_DATASET_SHARD || code == SFT_MANIFEST_TYPE);
        if (!strstr(err.message, bad[i].message)) fail_msg("%zu: %s", i, err.message);
        streamed(bad[i].message);
    }
    seg_put(&good, "\"total_rows\":7,\"total_tensors\":2,");
    fails(SFT_MANIFEST_TYPE, "expected totals of the segments' shards, found others");
    streamed("expected totals of the segments' shards, found others");
    seg_put(&good, TOTALS);
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_shard_count(d), 2);
    assert_string_equal(sft_dataset_shard_at(d, 1)->name, "b");
    assert_null(sft_dataset_shard_at(d, 1)->sha256);
    sft_dataset_close(d);
}

static void manifests(void **state) {
    (void)state;
#define HEAD "{\"format_version\":\"2.0\",\"safetensors_version\":\"1.0\",\"total_samples\":0," \
             "\"total_bytes\":0,"
#define COMMIT "\"commit\":\"01234567-89ab-4def-8123-456789abcdef\""
#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ONE "{\"sha256\":\"" DIGEST "\",\"bytes\":1,\"shards\":0}"
    static const char *const bad[][2] = {
        { HEAD COMMIT "}", "expected the field \"segments\", found none" },
        { HEAD "\"segments\":[]}", "expected the field \"commit\", found none" },
        { HEAD COMMIT ",\"segments\":[],\"shards\":[]}", "expected no field \"shards\"" },
        { HEAD COMMIT ",\"segments\":[" ONE "," ONE "]}", "expected each segment once" },
        { HEAD COMMIT ",\"segments\":[" ONE "],\"total_shards\":3}", "expected 3 shards" },
        { HEAD COMMIT ",\"segments\":[],\"total_padding\":1}", "expected at most 0 rows of" },
        { HEAD COMMIT ",\"segments\":[{}]}", "expected the field \"sha256\"" },
        { HEAD COMMIT ",\"segments\":[{\"sha256\":\"../../../etc/passwd\"}]}", "64 hexadecimal" },
        { HEAD COMMIT ",\"segments\":[{\"sha256\":\"/123456789abcdef0123456789abcdef"
          "0123456789abcdef0123456789abcdef\",\"bytes\":1,\"shards\":0}]}", "64 hexadecimal" },
        { HEAD COMMIT ",\"segments\":{}}", "expected an array" },
        { HEAD COMMIT ",\"numbered_commits\":1,\"segments\":[]}", "expected true or false" },
        { "{\"format_version\":\"4.0\"}", "expected format_version 1.0, 2.0 or 3.0" },
        { "{\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\",\"total_samples\":0,"
          "\"total_bytes\":0,\"segments\":[]}", "expected the field \"shards\", found none" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sfti_ds_manifest m;
        sft_error err = SFT_ERROR_INIT;
        assert_int_equal(sfti_ds_manifest_parse(sft_span_cstr(bad[i][0]), &arena, &m, &err),
                         SFT_MANIFEST_TYPE);
        if (!strstr(err.message, bad[i][1])) fail_msg("%zu: %s", i, err.message);
    }
}

/* ── gc ── */

static void garbage(void **state) {
    (void)state;
    static char bytes[1 << 16];
    char name[SFTI_SEGMENT_FILE_NAME], foreign[SFTI_SEGMENT_FILE_NAME], temporary[120];
    put("segments", SFT_COMMIT_NEW, 2);
    long len = temp_read(segment_file(0), bytes, sizeof bytes);
    sfti_ds_addressed_name(SFTI_SEGMENT_FILE, DIGEST, name);
    temp_write(name, bytes, (size_t)len); /* of a killed commit: nothing names it */
    (void)snprintf(foreign, sizeof foreign, "%s", name);
    foreign[strlen(foreign) - 1] = '0';
    temp_write(foreign, "not ours", 8);
    (void)snprintf(temporary, sizeof temporary, ".%s.sft-abcdef", name);
    temp_write(temporary, "x", 1);
    sft_buffer out = { .alloc = sfti_allocator(NULL) };
    sft_error err = SFT_ERROR_INIT;
    for (int grace = 1; grace >= 0; grace--) {
        sft_sink sink = sft_sink_memory(&out);
        assert_int_equal(sft_dataset_gc_json(&ds_storage, gc_how(grace ? 3600 : 0, true), "d",
                                             &sink, &err), SFT_OK);
        assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
        assert_int_equal(ds_exists(name), grace);
        assert_int_equal(ds_exists(temporary), grace);
        assert_true(ds_exists(foreign));
    }
    sft_buffer_free(&out);
    holds(2);
}

/* ── Other writers' guards ── */

static sft_code no_lock(void *ctx, uint64_t wait_ms, sft_error *e) {
    (void)ctx, (void)wait_ms;
    return sft_error_set(e, SFT_DATASET_UNGUARDED, 0, "no locks here");
}

static size_t listed;

static sft_code count_list(void *ctx, const char *folder, sft_stored_fn each, void *each_ctx,
                           sft_error *e) {
    listed++;
    return ds_storage.vtable->list(ctx, folder, each, each_ctx, e);
}

static void put_on(const sft_storage *s) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *c = NULL;
    sft_error err = SFT_ERROR_INIT;
    how.mode = SFT_COMMIT_APPEND;
    if (sft_commit_open(o, s, NULL, &how, &c, &err)) fail_msg("%s", err.message);
    ds_batch(c, 0, 0, 4, 4);
    ds_end(c);
    sft_dataset_options_free(o);
}

/* Commit files once used stay in use, without a listing; a commit with the lock lists no folder. */
static void numbered(void **state) {
    (void)state;
    sft_storage lockless = ds_storage, locked = ds_storage;
    storage_own(&lockless)->lock = no_lock;
    put("segments", SFT_COMMIT_NEW, 4);
    storage_own(&locked)->list = count_list;
    listed = 0;
    put_on(&locked);
    assert_int_equal(listed, 0);
    assert_false(head().numbered);
    put_on(&lockless);
    assert_true(head().numbered);
    assert_int_equal(ds_count(SFTI_COMMIT_FILE), 1);
    put_on(&locked);
    assert_true(head().numbered);
    assert_int_equal(ds_count(SFTI_COMMIT_FILE), 2);
    holds(7);
    compact(SFT_FORM_SAME, false, "\"segments_after\":1");
    assert_true(head().numbered);
    assert_int_equal(ds_count(SFTI_COMMIT_FILE), 3);
    put("whole", SFT_COMMIT_APPEND, 1);
    assert_int_equal(ds_count(SFTI_COMMIT_FILE), 4);
    holds(8);
}

/* Two processes continue one job without a lock: the one that fails removes nothing of the
 * other's. */
static void one_job_twice(void **state) {
    (void)state;
    sft_storage s = ds_storage;
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *both[2];
    sft_buffer receipts = { .alloc = sfti_allocator(NULL) };
    static const uint64_t three[1] = { 3 };
    const sfti_ds_column column = { .name = { "x", 1 }, .has_dtype = true, .dtype = SFT_F32,
                                    .has_shape = true, .rank = 1, .shape = three };
    const ds_tensor tensor = { "x", SFT_F32, 2, { 4, 3 }, 7 };
    sft_error err = SFT_ERROR_INIT;
    char job[80];
    storage_own(&s)->lock = no_lock;
    put("segments", SFT_COMMIT_NEW, 4);
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    how.mode = SFT_COMMIT_APPEND;
    assert_int_equal(sft_commit_open(o, &s, NULL, &how, &both[0], &err), SFT_OK);
    ds_task(both[0], &s, 0, 0, &tensor, 1, 4, 4, false, &column, 1, &receipts);
    (void)snprintf(job, sizeof job, "%s", sft_commit_job(both[0]).data);
    how.job = sft_span_cstr(job);
    assert_int_equal(sft_commit_open(o, &s, NULL, &how, &both[1], &err), SFT_OK);
    for (int i = 0; i < 2; i++) {
        sft_span text = { receipts.data, receipts.len };
        assert_int_equal(sft_commit_add(both[i], text, &err), SFT_OK);
        if (sft_commit_prepare(both[i], NULL, &err)) fail_msg("%s", err.message);
    }
    if (sft_commit_publish(both[0], NULL, ds_warn, NULL, NULL, &err)) fail_msg("%s", err.message);
    assert_int_not_equal(sft_commit_publish(both[1], NULL, ds_warn, NULL, NULL, &err), SFT_OK);
    holds(5);
    assert_int_equal(sft_commit_abort(both[1], &err), SFT_OK);
    holds(5);
    for (int i = 0; i < 2; i++) sft_commit_close(both[i]);
    sft_buffer_free(&receipts);
    sft_dataset_options_free(o);
}

/* A job that was committed is continued where shards are not moved: nothing is listed twice, or
 * removed as replaced. */
static void one_job_again(void **state) {
    static const char *const forms[] = { "manifest=whole", "manifest=segments" };
    static const uint64_t three[1] = { 3 };
    const sfti_ds_column column = { .name = { "x", 1 }, .has_dtype = true, .dtype = SFT_F32,
                                    .has_shape = true, .rank = 1, .shape = three };
    const ds_tensor tensor = { "x", SFT_F32, 2, { 4, 3 }, 7 };
    sft_storage s = ds_storage;
    sft_buffer receipts = { .alloc = sfti_allocator(NULL) };
    (void)state;
    storage_own(&s)->move = NULL;
    put("segments", SFT_COMMIT_NEW, 4);
    for (int i = 0; i < 4; i++) {
        sft_dataset_options *o = ds_options("batch_size=4", forms[i % 2], NULL);
        sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
        sft_error err = SFT_ERROR_INIT;
        sft_commit *c;
        char job[80];
        how.mode = i < 2 ? SFT_COMMIT_APPEND : SFT_COMMIT_OVERWRITE;
        assert_int_equal(sft_commit_open(o, &s, NULL, &how, &c, &err), SFT_OK);
        ds_task(c, &s, 0, 0, &tensor, 1, 4, 4, false, &column, 1, &receipts);
        const sft_span text = { receipts.data, receipts.len };
        (void)snprintf(job, sizeof job, "%s", sft_commit_job(c).data);
        assert_int_equal(sft_commit_add(c, text, &err), SFT_OK);
        ds_end(c);
        how.job = sft_span_cstr(job);
        assert_int_equal(sft_commit_open(o, &s, NULL, &how, &c, &err), SFT_OK);
        assert_int_equal(sft_commit_add(c, text, &err), SFT_OK);
        assert_int_equal(sft_commit_prepare(c, NULL, &err), SFT_EXISTS);
        assert_non_null(strstr(err.message, "this job was committed before"));
        sft_commit_close(c);
        holds(i < 2 ? 5 + (size_t)i : 1);
        sft_dataset_options_free(o);
    }
    sft_buffer_free(&receipts);
}

/* An append reads and writes its own segment, and those that it merges. */
static size_t opened;

static sft_code count_open(void *ctx, const char *name, sft_source *out, sft_error *e) {
    opened += strncmp(name, SFTI_SEGMENT_FILE, sizeof SFTI_SEGMENT_FILE - 1) == 0;
    return ds_storage.vtable->open(ctx, name, out, e);
}

static void reads_little(void **state) {
    (void)state;
    sft_storage s = ds_storage;
    storage_own(&s)->open = count_open;
    put("segments", SFT_COMMIT_NEW, 8);
    char kept[80];
    (void)snprintf(kept, sizeof kept, "%s", head().segments[0].sha256);
    static const size_t reads[] = { 0, 0, 1, 0 }; /* 8 1, 8 1 1, 8 3, 8 3 1 */
    opened = 0;
    for (size_t i = 0; i < 4; i++) {
        size_t before = opened;
        put_on(&s);
        assert_int_equal(opened - before, reads[i] + 3 * (i == 2)); /* two are removed, too */
        assert_string_equal(head().segments[0].sha256, kept);
    }
    holds(12);
}

static int others; /* shards that another commit adds */

/* A segment is gone once the manifest was read: another commit has merged it. */
static sft_code merge_open(void *ctx, const char *name, sft_source *out, sft_error *e) {
    if (strncmp(name, SFTI_SEGMENT_FILE, sizeof SFTI_SEGMENT_FILE - 1) == 0 && opened++ == 0)
        put(NULL, SFT_COMMIT_APPEND, others);
    return ds_storage.vtable->open(ctx, name, out, e);
}

static void merged_while_reading(void **state) {
    (void)state;
    sft_storage s = ds_storage;
    sft_dataset *d = NULL;
    sft_error err = SFT_ERROR_INIT;
    storage_own(&s)->open = merge_open;
    put("segments", SFT_COMMIT_NEW, 2);
    put(NULL, SFT_COMMIT_APPEND, 1);
    opened = 0;
    others = 9;
    if (sft_dataset_open(&s, NULL, NULL, NULL, &d, &err)) fail_msg("%s", err.message);
    assert_int_equal(sft_dataset_shard_count(d), 12);
    sft_dataset_close(d);
    /* The same in a commit without a lock. */
    storage_own(&s)->lock = no_lock;
    opened = 0;
    others = 13;
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *c = NULL;
    how.mode = SFT_COMMIT_APPEND;
    if (sft_commit_open(o, &s, NULL, &how, &c, &err)) fail_msg("%s", err.message);
    for (uint64_t i = 0; i < 20; i++) ds_batch(c, i, 0, 4, 4);
    ds_end(c);
    sft_dataset_options_free(o);
    holds(12 + 13 + 20);
}

#define SEG_TEST(name) cmocka_unit_test_setup_teardown(name, seg_make, seg_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        SEG_TEST(rule),   SEG_TEST(appends),   SEG_TEST(empty),     SEG_TEST(forms),
        SEG_TEST(shadowed), SEG_TEST(compacts), SEG_TEST(memory_grows),
        SEG_TEST(damage), SEG_TEST(links),
        SEG_TEST(strangers), SEG_TEST(manifests), SEG_TEST(garbage),
        SEG_TEST(numbered), SEG_TEST(one_job_twice), SEG_TEST(one_job_again),
        SEG_TEST(reads_little), SEG_TEST(merged_while_reading),
    };
    return cmocka_run_group_tests_name("segments of manifests", tests, NULL, NULL);
}
