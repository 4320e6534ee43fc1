/* Segments of a manifest are made and put. Tests: test_dataset_segments.c. */
#include "dataset/commit/swap.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"

#include <string.h>

size_t sfti_ds_segments_keep(const sfti_ds_segment *old, size_t count, uint64_t fresh) {
    size_t keep = count;
    uint64_t after = fresh;
    for (size_t i = count; i > 0 && old[i - 1].shards < SFTI_SEGMENT_SHARDS; i--) {
        if (old[i - 1].shards < after) keep = i - 1;
        sfti_total_add(&after, old[i - 1].shards);
    }
    return keep;
}

/* ── One segment ── */

typedef struct segment_writer {
    const sfti_ds_shard *shards;
    size_t count, names; /* names: bytes */
    sft_plan *plan;
    sft_writer *writer;
    char *work; /* of the longest column */
    sft_error *err;
} segment_writer;

#define DIGESTS SFTI_SEGMENT_NUMBERS
#define NAMES (SFTI_SEGMENT_NUMBERS + 1)
#define COLUMNS (SFTI_SEGMENT_NUMBERS + 2)

static sft_code segment_put(segment_writer *s, size_t column, size_t len) {
    return sft_writer_put(s->writer, sft_plan_position(s->plan, column), s->work, len, s->err);
}

static uint8_t segment_nibble(char digit) {
    return (uint8_t)(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
}

static sft_code segment_columns(segment_writer *s) {
    sft_code code = SFT_OK;
    char *at;
    for (size_t k = 0; !code && k < SFTI_SEGMENT_NUMBERS; k++) {
        for (size_t i = 0; i < s->count; i++) {
            uint64_t number;
            memcpy(&number, (const char *)&s->shards[i].facts + sfti_segment_numbers[k].offset, 8);
            sfti_put_u64(s->work + 8 * i, number);
        }
        code = segment_put(s, k, 8 * s->count);
    }
    if (code) return code;
    memset(s->work, 0, SFTI_SEGMENT_DIGEST * s->count);
    for (size_t i = 0; i < s->count; i++) {
        const char *hex = s->shards[i].facts.sha256;
        at = s->work + SFTI_SEGMENT_DIGEST * i;
        for (size_t k = 0; hex && k < SFTI_SEGMENT_DIGEST; k++)
            at[k] = (char)(segment_nibble(hex[2 * k]) << 4 | segment_nibble(hex[2 * k + 1]));
    }
    code = segment_put(s, DIGESTS, SFTI_SEGMENT_DIGEST * s->count);
    at = s->work;
    for (size_t i = 0; i < s->count; i++) {
        size_t len = strlen(s->shards[i].facts.name) + 1;
        memcpy(at, s->shards[i].facts.name, len);
        at += len;
    }
    return code ? code : segment_put(s, NAMES, s->names);
}

static sft_code segment_measure(segment_writer *s, const sfti_ds_segments *all) {
    for (size_t i = 0; i < s->count; i++) {
        size_t len = strlen(s->shards[i].facts.name);
        if (len > SFTI_SEGMENT_NAME)
            return sfti_fail(s->err, SFT_OPTION_VALUE, "option manifest: expected names of at most "
                             "%d bytes in segments, found %zu", SFTI_SEGMENT_NAME, len);
        s->names += len + 1;
    }
    size_t most = SFTI_SEGMENT_DIGEST * s->count + s->names;
    s->work = sfti_take(&all->alloc, most);
    return s->work ? SFT_OK : sfti_fail_memory(s->err, most);
}

static sft_code segment_make(const sfti_ds_segments *all, const sfti_ds_shard *shards,
                             size_t count, sft_buffer *bytes, sft_error *err) {
    segment_writer s = { .shards = shards, .count = count, .err = err };
    sft_spec specs[COLUMNS];
    const sft_pair metadata[] = {
        { sft_span_cstr(SFTI_DATASET_MARK), sft_span_cstr("1") },
        { sft_span_cstr("attempt"), sft_span_cstr(all->attempt) },
        { sft_span_cstr("commit"), sft_span_cstr(all->commit) },
        { sft_span_cstr("mode"), sft_span_cstr("segment") },
    };
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    options.alloc = &all->alloc;
    sft_code code = segment_measure(&s, all);
    const uint64_t shapes[2] = { count, SFTI_SEGMENT_DIGEST }, names[1] = { s.names };
    for (size_t i = 0; i < SFTI_SEGMENT_NUMBERS; i++)
        specs[i] = (sft_spec){ .name = sft_span_cstr(sfti_segment_numbers[i].name),
                               .dtype = SFT_U64, .rank = 1, .shape = shapes };
    specs[DIGESTS] = (sft_spec){ .name = sft_span_cstr("sha256"), .dtype = SFT_U8, .rank = 2,
                                 .shape = shapes };
    specs[NAMES] = (sft_spec){ .name = sft_span_cstr("names"), .dtype = SFT_U8, .rank = 1,
                               .shape = names };
    if (!code) code = sft_plan_new(specs, COLUMNS, metadata, 4, &options, &s.plan, err);
    if (!code) code = sft_writer_begin(s.plan, sft_sink_memory(bytes), &s.writer, err);
    if (!code) {
        code = segment_columns(&s);
        if (code) sft_writer_abandon(s.writer);
        else code = sft_writer_finish(s.writer, err);
    }
    sft_plan_free(s.plan);
    sfti_release(&all->alloc, s.work, SFTI_SEGMENT_DIGEST * count + s.names);
    return code;
}

/* ── All of them ── */

sft_code sfti_ds_segments_make(sfti_ds_segments *all, const sfti_ds_shard *shards, size_t count,
                               sfti_arena *arena, sft_error *err) {
    size_t most = count / SFTI_SEGMENT_SHARDS + 1;
    sft_code code = SFT_OK;
    all->segment = sfti_arena_array(arena, most, sizeof *all->segment);
    all->bytes = sfti_arena_array(arena, most, sizeof *all->bytes);
    if (!all->segment || !all->bytes) return sfti_fail_memory(err, most * sizeof *all->segment);
    for (size_t i = 0; !code && i < count;) {
        size_t n = count - i < SFTI_SEGMENT_SHARDS ? count - i : SFTI_SEGMENT_SHARDS;
        sfti_ds_segment *segment = &all->segment[all->count];
        sft_buffer *bytes = &all->bytes[all->count];
        *bytes = (sft_buffer){ .alloc = all->alloc };
        all->count++;
        code = segment_make(all, &shards[i], n, bytes, err);
        *segment = (sfti_ds_segment){ .bytes = bytes->len, .shards = n };
        if (!code)
            code = sfti_ds_digest((sft_span){ bytes->data, bytes->len }, &all->alloc,
                                  segment->sha256, err);
        i += n;
    }
    return code;
}

sft_code sfti_ds_segments_put(const sfti_ds_segments *all, const sft_storage *storage,
                              const char *folder, sft_error *err) {
    bool moves = *folder && sfti_can(storage, move);
    for (size_t i = 0; i < all->count; i++) {
        char name[SFTI_SEGMENT_FILE_NAME], stored[SFTI_STORED_NAME];
        sfti_ds_addressed_name(SFTI_SEGMENT_FILE, all->segment[i].sha256, name);
        sfti_ds_stored_name(moves ? folder : "", name, stored);
        sft_span bytes = { all->bytes[i].data, all->bytes[i].len };
        sft_code code = sfti_ds_put(storage, stored, bytes, err);
        if (!code && moves) code = sfti_call(storage, move, stored, name, err);
        if (code) return code;
    }
    return SFT_OK;
}

void sfti_ds_segments_remove(const sfti_ds_segments *all, const sft_storage *storage) {
    sft_error ignored;
    for (size_t i = 0; i < all->count; i++) {
        char name[SFTI_SEGMENT_FILE_NAME];
        sfti_ds_addressed_name(SFTI_SEGMENT_FILE, all->segment[i].sha256, name);
        (void)sfti_call(storage, remove, name, false, &ignored);
    }
}

void sfti_ds_segments_free(sfti_ds_segments *all) {
    for (size_t i = 0; i < all->count; i++) sft_buffer_free(&all->bytes[i]);
    all->count = 0;
}
