/* The manifest of a dataset, a segment of one and the receipts of its tasks, as any bytes: the
 * first byte chooses. A manifest that is read is written and read again; what both say is the
 * same, shards stand in order and only name files of the folder itself. A segment is one that a
 * manifest names, with as many shards as the second byte says. */
#include "base/utf8.h"
#include "dataset/read/segment.h"
#include "fuzz.h"

#include <string.h>

#define JOB "11111111-2222-4333-8444-555555555555:0"

static bool is_same_text(const char *a, const char *b) {
    return !a || !b ? a == b : strcmp(a, b) == 0;
}

static void check_shard(const sfti_ds_shard *s, const char *before) {
    size_t len = strlen(s->facts.name);
    FUZZ_CHECK(len > 0 && !strchr(s->facts.name, '/') && strcmp(s->facts.name, "..") != 0);
    FUZZ_CHECK(sfti_utf8_check(s->facts.name, len) == len);
    FUZZ_CHECK(s->facts.valid_samples <= s->facts.samples);
    FUZZ_CHECK(!before || strcmp(before, s->facts.name) < 0);
}

static void check_shards(const sfti_ds_manifest *m) {
    const char *before = NULL;
    for (size_t i = 0; i < m->shard_count; i++) {
        check_shard(&m->shards[i], before);
        before = m->shards[i].facts.name;
        FUZZ_CHECK(sfti_ds_manifest_names(m, before));
    }
    FUZZ_CHECK(!sfti_ds_manifest_names(m, "no such shard"));
}

static void check_same(const sfti_ds_manifest *a, const sfti_ds_manifest *b) {
    FUZZ_CHECK(strcmp(a->commit, b->commit) == 0 && a->version == b->version);
    FUZZ_CHECK(a->mode == b->mode && a->batch_size == b->batch_size);
    FUZZ_CHECK(sft_span_equal(a->index, b->index) && a->keep_until == b->keep_until);
    FUZZ_CHECK(a->total_samples == b->total_samples && a->total_bytes == b->total_bytes);
    FUZZ_CHECK(a->total_valid == b->total_valid && a->dropped == b->dropped);
    FUZZ_CHECK(a->entry_count == b->entry_count && a->column_count == b->column_count);
    FUZZ_CHECK(a->segmented == b->segmented && a->numbered == b->numbered);
    FUZZ_CHECK(a->segment_count == b->segment_count && a->sums.rows == b->sums.rows);
    for (size_t i = 0; i < a->segment_count; i++)
        FUZZ_CHECK(is_same_text(a->segments[i].sha256, b->segments[i].sha256) &&
                   a->segments[i].shards == b->segments[i].shards);
    FUZZ_CHECK(a->shard_count == b->shard_count);
    for (size_t i = 0; i < a->shard_count; i++) {
        const sft_dataset_shard *x = &a->shards[i].facts, *y = &b->shards[i].facts;
        FUZZ_CHECK(is_same_text(x->name, y->name) && is_same_text(x->sha256, y->sha256));
        FUZZ_CHECK(x->samples == y->samples && x->bytes == y->bytes);
        FUZZ_CHECK(x->tensors == y->tensors && x->first_sample == y->first_sample);
    }
}

/* Only what we wrote ourselves, with a commit as always, tells all that we write. */
static void write_again(const sfti_ds_manifest *m, sfti_arena *arena) {
    sft_buffer text = { NULL, 0, 0, { NULL, NULL } };
    sfti_ds_manifest again;
    FUZZ_CHECK(!sfti_ds_manifest_write(m, &text, NULL));
    FUZZ_CHECK(!sfti_ds_manifest_parse((sft_span){ text.data, text.len }, arena, &again, NULL));
    check_same(m, &again);
    sft_buffer_free(&text);
}

static void read_manifest(sft_span text, sfti_arena *arena) {
    sft_error err = SFT_ERROR_INIT;
    sfti_ds_manifest m;
    sft_code code = sfti_ds_manifest_parse(text, arena, &m, &err);
    FUZZ_CHECK(code == err.code && (!code || err.message[0]));
    if (code) return;
    check_shards(&m);
    if (m.ours && m.commit[0]) write_again(&m, arena);
}

/* ── A segment, from a storage of one file ── */

static sft_code segment_bytes(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                              sft_error *err) {
    const sft_span *bytes = ctx;
    (void)err;
    if (len) memcpy(into, bytes->data + offset, len);
    *got = len;
    return SFT_OK;
}

static const sft_source_vtable segment_source = {
    .size = sizeof(sft_source_vtable), .read = segment_bytes
};

static sft_code segment_open(void *ctx, const char *name, sft_source *out, sft_error *err) {
    const sft_span *bytes = ctx;
    (void)err;
    FUZZ_CHECK(sfti_ds_is_segment(sft_span_cstr(name)));
    *out = (sft_source){ ctx, &segment_source, bytes->len, NULL, false };
    return SFT_OK;
}

static void read_segment(sft_span bytes, size_t shards, sfti_arena *arena) {
    static const sft_storage_vtable table = { .size = sizeof(sft_storage_vtable),
                                              .open = segment_open };
    const sft_storage storage = { &bytes, &table, false };
    sfti_ds_segment segment = { .bytes = bytes.len, .shards = shards };
    sfti_ds_shard *all = NULL;
    sft_error err = SFT_ERROR_INIT;
    FUZZ_CHECK(!sfti_ds_digest(bytes, &arena->alloc, segment.sha256, &err));
    sft_code code = sfti_ds_segment_read(&storage, &segment, arena, arena, &all, &err);
    FUZZ_CHECK(code == err.code && (!code || err.message[0]));
    for (size_t i = 0; !code && i < shards; i++) {
        sft_span name = sft_span_cstr(all[i].facts.name);
        FUZZ_CHECK(sfti_ds_is_bare(name) && sfti_utf8_check(name.data, name.len) == name.len);
        FUZZ_CHECK(!all[i].facts.sha256 || strlen(all[i].facts.sha256) == 64);
    }
}

/* What is read of a job's receipt stays in the folder, or in the job's own. */
static void check_receipt(const sfti_ds_receipt *r) {
    if (!r->name.data) return;
    sft_span tail = r->stored;
    if (tail.len > r->name.len) {
        tail.data += tail.len - r->name.len;
        tail.len = r->name.len;
    }
    FUZZ_CHECK(sft_span_equal(tail, r->name) && !memchr(r->name.data, '/', r->name.len));
    FUZZ_CHECK(r->stored.len == r->name.len || memcmp(r->stored.data, "_job-", 5) == 0);
    for (size_t i = 0; i < r->column_count; i++)
        FUZZ_CHECK(r->columns[i].rank <= SFT_MAX_RANK);
}

static void read_receipts(sft_span text, sfti_arena *arena) {
    sft_error err = SFT_ERROR_INIT;
    sfti_ds_receipt *all = NULL;
    size_t count = 0, cap = 0;
    sfti_ds_job job;
    FUZZ_CHECK(!sfti_ds_job_parse(sft_span_cstr(JOB), &job, NULL));
    sft_code code = sfti_ds_receipts_read(text, &job, arena, &all, &count, &cap, &err);
    FUZZ_CHECK(code == err.code && (!code || err.message[0]));
    for (size_t i = 0; !code && i < count; i++) check_receipt(&all[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sfti_arena arena;
    if (size == 0) return 0;
    memset(&arena, 0, sizeof arena);
    arena.alloc = sfti_allocator(NULL);
    sft_span text = { (const char *)data + 1, size - 1 };
    if (data[0] == 2 && size > 1)
        read_segment((sft_span){ text.data + 1, text.len - 1 }, data[1], &arena);
    else if (data[0] & 1) read_receipts(text, &arena);
    else read_manifest(text, &arena);
    sfti_arena_free(&arena);
    return 0;
}
