/* Segments of a manifest are read. Tests: test_dataset_segments.c. */
#include "dataset/read/masks.h"
#include "dataset/read/places.h"
#include "dataset/read/segment.h"

#include "base/endian.h"
#include "base/error.h"
#include "base/utf8.h"

#include <string.h>

const sfti_segment_column sfti_segment_numbers[SFTI_SEGMENT_NUMBERS] = {
    { "bytes", offsetof(sft_dataset_shard, bytes) },
    { "samples", offsetof(sft_dataset_shard, samples) },
    { "valid_samples", offsetof(sft_dataset_shard, valid_samples) },
    { "first_sample", offsetof(sft_dataset_shard, first_sample) },
    { "tensors", offsetof(sft_dataset_shard, tensors) },
    { "shadowed", offsetof(sft_dataset_shard, shadowed) },
};

typedef struct segment_reader {
    const sfti_ds_segment *segment;
    sft_file *file;
    const char *bytes; /* of the file */
    size_t count;
    sfti_ds_shard *shards;
    sfti_arena *texts;
    sft_error *err;
} segment_reader;

static sft_code segment_wrong(const sfti_ds_segment *segment, const char *expected,
                              const char *found, sft_error *err) {
    return sfti_fail(err, SFT_DATASET_SHARD, SFTI_SEGMENT_FILE "%s: expected %s, found %s",
                     segment->sha256, expected, found);
}

/* ── The file ── */

/* The bytes that the manifest's digest names. */
static sft_code segment_bytes(const sft_storage *storage, const sfti_ds_segment *segment,
                              sfti_arena *arena, sft_span *out, sft_error *err) {
    char name[SFTI_SEGMENT_FILE_NAME], digest[65];
    sft_error what = SFT_ERROR_INIT;
    static const char named[] = "the segment that the manifest names";
    sfti_ds_addressed_name(SFTI_SEGMENT_FILE, segment->sha256, name);
    if (segment->bytes > SFTI_SEGMENT_MOST || segment->shards > SFTI_SEGMENT_SHARDS)
        return segment_wrong(segment, "at most 65,536 shards in a segment", "more", err);
    sft_code code = sfti_ds_read_all(storage, name, segment->bytes, arena, out, &what);
    if (code == SFT_NOT_FOUND) return segment_wrong(segment, named, "none", err);
    if (code == SFT_FILE_TOO_LARGE) return segment_wrong(segment, named, "another size", err);
    if (code) return sfti_fail_as(err, code, &what);
    if (out->len != segment->bytes) return segment_wrong(segment, named, "another size", err);
    code = sfti_ds_digest(*out, &arena->alloc, digest, err);
    if (code || memcmp(digest, segment->sha256, 64) == 0) return code;
    return segment_wrong(segment, named, "another digest", err);
}

/* The data of a tensor; NULL unless it has this dtype and shape (rows 0: any). */
static const char *segment_column(const segment_reader *r, const char *name, sft_dtype dtype,
                                  uint32_t rank, uint64_t rows, uint64_t width) {
    const sft_tensor *t = sft_file_find_cstr(r->file, name);
    if (!t || t->dtype != dtype || t->rank != rank) return NULL;
    if (t->shape[0] != rows || (rank > 1 && t->shape[1] != width)) return NULL;
    return r->bytes + t->offset;
}

/* ── The shards ── */

static sft_code segment_numbers(const segment_reader *r) {
    for (size_t k = 0; k < SFTI_SEGMENT_NUMBERS; k++) {
        const sfti_segment_column *column = &sfti_segment_numbers[k];
        const char *at = segment_column(r, column->name, SFT_U64, 1, r->count, 0);
        if (!at) return segment_wrong(r->segment, "its numbers", "others", r->err);
        for (size_t i = 0; i < r->count; i++) {
            uint64_t number = sfti_get_u64(at + 8 * i);
            memcpy((char *)&r->shards[i].facts + column->offset, &number, sizeof number);
        }
    }
    return SFT_OK;
}

static sft_code segment_digests(const segment_reader *r) {
    static const char zeros[SFTI_SEGMENT_DIGEST], digits[] = "0123456789abcdef";
    const char *at = segment_column(r, "sha256", SFT_U8, 2, r->count, SFTI_SEGMENT_DIGEST);
    if (!at) return segment_wrong(r->segment, "its digests", "others", r->err);
    char *text = sfti_arena_array(r->texts, r->count, 2 * SFTI_SEGMENT_DIGEST + 1);
    if (!text) return sfti_fail_memory(r->err, r->count);
    for (size_t i = 0; i < r->count; i++, at += SFTI_SEGMENT_DIGEST) {
        if (memcmp(at, zeros, sizeof zeros) == 0) continue;
        r->shards[i].facts.sha256 = text;
        for (size_t k = 0; k < SFTI_SEGMENT_DIGEST; k++) {
            *text++ = digits[(uint8_t)at[k] >> 4];
            *text++ = digits[at[k] & 15];
        }
        *text++ = '\0';
    }
    return SFT_OK;
}

static sft_code segment_names(const segment_reader *r) {
    const sft_tensor *t = sft_file_find_cstr(r->file, "names");
    static const char expected[] = "names of files in this folder";
    if (!t || t->dtype != SFT_U8 || t->rank != 1)
        return segment_wrong(r->segment, expected, "none", r->err);
    size_t len = (size_t)t->shape[0];
    const char *at = sfti_arena_copy(r->texts, r->bytes + t->offset, len);
    if (!at) return sfti_fail_memory(r->err, len);
    const char *end = at + len;
    bool good = sfti_utf8_check(at, len) == len;
    for (size_t i = 0; good && i < r->count; i++) {
        const char *nul = memchr(at, '\0', (size_t)(end - at));
        sft_span name = { at, nul ? (size_t)(nul - at) : 0 };
        good = nul && name.len <= SFTI_SEGMENT_NAME && sfti_ds_is_bare(name);
        r->shards[i].facts.name = at;
        at = nul ? nul + 1 : end;
    }
    return good && at == end ? SFT_OK : segment_wrong(r->segment, expected, "others", r->err);
}

static sft_code segment_parse(segment_reader *r, sft_span bytes) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_error what = SFT_ERROR_INIT;
    options.alloc = &r->texts->alloc;
    sft_code code = sft_open_memory(bytes.data, bytes.len, &options, &r->file, &what);
    if (code == SFT_OUT_OF_MEMORY) return sfti_fail_as(r->err, code, &what);
    if (code) return segment_wrong(r->segment, "a safetensors file", what.message, r->err);
    r->bytes = bytes.data;
    code = segment_numbers(r);
    if (!code) code = segment_digests(r);
    if (!code) code = segment_names(r);
    sft_close(r->file);
    return code;
}

sft_code sfti_ds_segment_read(const sft_storage *storage, const sfti_ds_segment *segment,
                              sfti_arena *texts, sfti_arena *array, sfti_ds_shard **out,
                              sft_error *err) {
    sfti_arena work = { .alloc = texts->alloc };
    segment_reader r = { .segment = segment, .texts = texts, .err = err };
    sft_span bytes = { NULL, 0 };
    sft_code code = segment_bytes(storage, segment, &work, &bytes, err);
    if (code) goto done;
    r.count = (size_t)segment->shards;
    r.shards = sfti_arena_array(array, r.count, sizeof *r.shards);
    if (!r.shards) {
        code = sfti_fail_memory(err, r.count * sizeof *r.shards);
        goto done;
    }
    memset(r.shards, 0, r.count * sizeof *r.shards);
    for (size_t i = 0; i < r.count; i++) r.shards[i].known = true;
    code = segment_parse(&r, bytes);
    *out = r.shards;
done:
    sfti_arena_free(&work);
    return code;
}

/* ── All segments of a manifest ── */

/* What is known of its shards in files beside them. */
static sft_code load_beside(const sft_storage *storage, sfti_arena *arena, sfti_ds_manifest *m,
                            sft_error *err) {
    sft_code code = sfti_ds_masks_load(storage, arena, m, err);
    return code ? code : sfti_ds_places_load(storage, arena, m, err);
}

/* The newest segments first: those are merged, and removed, before the others. */
sft_code sfti_ds_manifest_load(const sft_storage *storage, sfti_arena *arena,
                               sfti_ds_manifest *m, sft_error *err) {
    if (!m->segmented) return load_beside(storage, arena, m, err);
    sfti_arena work = { .alloc = arena->alloc };
    sfti_ds_shard **parts = sfti_arena_array(&work, m->segment_count, sizeof *parts), *all = NULL;
    sft_code code = parts ? SFT_OK : sfti_fail_memory(err, m->segment_count * sizeof *parts);
    for (size_t i = m->segment_count; !code && i-- > 0;)
        code = sfti_ds_segment_read(storage, &m->segments[i], arena, &work, &parts[i], err);
    if (!code) all = sfti_arena_array(arena, m->sums.shards, sizeof *all);
    if (!code && !all) code = sfti_fail_memory(err, m->sums.shards);
    for (size_t i = 0, at = 0; !code && i < m->segment_count; i++)
        for (size_t k = 0; k < m->segments[i].shards; k++) {
            all[at] = parts[i][k];
            all[at++].segment = (uint32_t)i;
        }
    sfti_arena_free(&work);

    if (code) return code;
    /* Samples are numbered in the order of segments, and sums are those of the manifest. */
    const sfti_ds_sums told = m->sums;
    for (size_t i = 1; i < told.shards; i++)
        if (all[i - 1].facts.first_sample > all[i].facts.first_sample)
            return sfti_ds_order_fail(all[i].facts.name, err);
    code = sfti_ds_manifest_take(m, all, (size_t)told.shards, arena, err);
    if (code) return code;
    if (m->sums.next_file < told.next_file) m->sums.next_file = told.next_file;
    code = sfti_ds_sums_check(&m->sums, &told, err);
    return code ? code : load_beside(storage, arena, m, err);
}
