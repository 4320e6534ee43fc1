/* Writes the tensors of an import, and compares the checksums that an archive states for its
 * records. A part that is a whole record is compared while it is copied; other
 * records of which parts are made are read once before. */
#include "base/announce.h"
#include "base/crc32.h"
#include "base/job.h"
#include "base/options.h"
#include "base/order.h"
#include "formats/parts/state.h"
#include "safetensors_io.h"

#include <string.h>

#define VERIFY_BYTES ((size_t)1 << 20)

/* A record that is copied: bytes go by in order, and the last one brings the verdict. */
typedef struct checked {
    const sfti_checksum *record;
    const sfti_crc32_table *table;
    uint64_t next;
    uint32_t crc;
    sft_span name;
} checked;

static sft_code fail_checksum(const sfti_checksum *record, sft_span name, uint32_t found,
                              sft_error *err) {
    return sfti_fail_tensor(err, SFT_FOREIGN_CHECKSUM, record->begin, name,
                            "expected bytes with the recorded CRC-32%s %08x, found %08x",
                            record->castagnoli ? "C" : "", record->crc, found);
}

static sft_code read_checked(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                             sft_error *err) {
    checked *c = ctx;
    *got = 0;
    sft_code code = sfti_import_exact(c->record->source, c->record->begin + offset, into, len,
                                      err);
    if (code) return code;
    *got = len;
    if (offset != c->next) return SFT_OK; /* again, or in another order: saving never does */
    c->crc = sfti_crc32_add(c->table, c->crc, into, len);
    c->next += len;
    if (c->next < c->record->len || c->crc == c->record->crc) return SFT_OK;
    return fail_checksum(c->record, c->name, c->crc, err);
}

static void expect_checked(void *ctx, const sft_run *runs, size_t count) {
    const sfti_checksum *record = ((const checked *)ctx)->record;
    sfti_announcement all = { .count = 0 };
    for (size_t i = 0; i < count; i++)
        sfti_announce(&all, record->source, record->begin + runs[i].offset, runs[i].len);
    sfti_announce_end(&all);
}

static uint32_t mode_checked(void *ctx) {
    return sft_source_mode(((const checked *)ctx)->record->source);
}

static const sft_source_vtable checked_source_vtable = {
    sizeof(sft_source_vtable), read_checked, NULL, expect_checked, mode_checked
};

/* ── Which records ── */

static int compare_records(const void *ctx, uint32_t x, uint32_t y) {
    const sfti_checksum *list = ctx, *a = &list[x], *b = &list[y];
    if (a->source != b->source) return (uintptr_t)a->source < (uintptr_t)b->source ? -1 : 1;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

typedef struct saving {
    sfti_arena arena;
    const sft_import *im;
    const uint32_t *order; /* records by source and beginning */
    sfti_crc32_table tables[2]; /* CRC-32, CRC-32C */
    sft_part *parts;
    sft_source *sources;
    bool *done; /* records that need no reading */
    uint8_t *buffer;
    uint64_t total, at;
} saving;

/* The record with the item's first byte; SIZE_MAX: none. */
static size_t record_of(const saving *s, const sfti_item *item) {
    size_t low = 0, high = s->im->records.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const sfti_checksum *record = &s->im->records.at[s->order[middle]];
        bool before = record->source != item->source
                          ? (uintptr_t)record->source < (uintptr_t)item->source
                          : record->begin <= item->begin;
        if (before) low = middle + 1;
        else high = middle;
    }
    if (low == 0) return SIZE_MAX;
    const sfti_checksum *record = &s->im->records.at[s->order[low - 1]];
    bool inside = record->source == item->source && item->begin - record->begin < record->len;
    return inside ? s->order[low - 1] : SIZE_MAX;
}

static sft_code verify_part(saving *s, size_t i, bool copying, const sft_job *job,
                            sft_error *err) {
    const sft_part *part = &s->im->parts.at[i];
    const sfti_item *item = &s->im->items.at[s->im->item_of[i]];
    size_t at = record_of(s, item);
    if (at == SIZE_MAX || s->done[at]) return SFT_OK;
    const sfti_checksum *record = &s->im->records.at[at];
    const sfti_crc32_table *table = &s->tables[record->castagnoli];
    uint64_t bytes;
    s->done[at] = true;
    sft_code code = sft_shape_size(part->spec.dtype, part->spec.shape, part->spec.rank, NULL,
                                   &bytes, err);
    if (code) return code;
    if (copying && part->source == record->source && part->begin == record->begin
        && bytes == record->len) {
        checked *c = sfti_arena_take(&s->arena, sizeof *c);
        if (!c) return sfti_fail_memory(err, sizeof *c);
        *c = (checked){ record, table, 0, 0, part->spec.name };
        s->sources[i] = (sft_source){ c, &checked_source_vtable, record->len, NULL, false };
        s->parts[i].source = &s->sources[i];
        s->parts[i].begin = 0;
        return SFT_OK;
    }
    code = sfti_job_tick(job, s->at, s->total, err);
    if (code) return code;
    sfti_total_add(&s->at, record->len);

    uint32_t crc = 0;
    for (uint64_t at = 0; at < record->len;) {
        size_t some = record->len - at < VERIFY_BYTES ? (size_t)(record->len - at) : VERIFY_BYTES;
        sft_code code = sfti_import_exact(record->source, record->begin + at, s->buffer, some, err);
        if (code) return code;
        crc = sfti_crc32_add(table, crc, s->buffer, some);
        at += some;
    }
    return crc == record->crc ? SFT_OK : fail_checksum(record, part->spec.name, crc, err);
}

/* Announces records that are read for their checksum alone. */
static void announce_records(const saving *s) {
    sfti_announcement all = { .count = 0 };
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < s->im->parts.count; i++) {
        size_t at = record_of(s, &s->im->items.at[s->im->item_of[i]]);
        if (at == SIZE_MAX || at == last) continue;
        const sfti_checksum *record = &s->im->records.at[at];
        sfti_announce(&all, record->source, record->begin, record->len);
        last = at;
    }
    sfti_announce_end(&all);
}

static sft_code verify_parts(saving *s, bool copying, const sft_job *job, sft_error *err) {
    size_t count = s->im->parts.count, records = s->im->records.count;
    s->parts = sfti_arena_array(&s->arena, count, sizeof *s->parts);
    s->sources = sfti_arena_array(&s->arena, count, sizeof *s->sources);
    s->done = sfti_arena_array(&s->arena, records, sizeof *s->done);
    s->buffer = sfti_arena_take(&s->arena, VERIFY_BYTES);
    s->order = sfti_arena_sorted(&s->arena, records, compare_records, s->im->records.at);
    if (!s->parts || !s->sources || !s->done || !s->buffer || !s->order)
        return sfti_fail_memory(err, VERIFY_BYTES);
    memset(s->done, 0, records * sizeof *s->done);
    if (count > 0) memcpy(s->parts, s->im->parts.at, count * sizeof *s->parts);
    sfti_crc32_begin(&s->tables[0], false);
    sfti_crc32_begin(&s->tables[1], true);
    for (size_t i = 0; i < records; i++) sfti_total_add(&s->total, s->im->records.at[i].len);
    if (!copying && records > 0) announce_records(s);
    for (size_t i = 0; records > 0 && i < count; i++) {
        sft_code code = verify_part(s, i, copying, job, err);
        if (code) return code;
    }
    return SFT_OK;
}

static saving *saving_begin(const sft_import *import, sft_error *err) {
    saving *s = sfti_take(&import->alloc, sizeof *s);
    if (!s) return (void)sfti_fail_memory(err, sizeof *s), NULL;
    *s = (saving){ .arena = { .alloc = import->alloc }, .im = import };
    return s;
}

static void saving_end(const sft_import *import, saving *s) {
    sfti_arena_free(&s->arena);
    sfti_release(&import->alloc, s, sizeof *s);
}

sft_code sft_import_verify(const sft_import *import, const sft_job *job, sft_error *err) {
    sft_job own;
    sft_code code = sfti_take_job(job, &own, err);
    if (code) return code;
    saving *s = saving_begin(import, err);
    if (!s) return SFT_OUT_OF_MEMORY;
    code = verify_parts(s, false, &own, err);
    saving_end(import, s);
    return code;
}

sft_code sft_import_save(const sft_import *import, sft_sink sink, const sft_plan_options *plan,
                         const sft_job *job, sft_error *err) {
    saving *s = saving_begin(import, err);
    if (!s) {
        sft_sink_abandon(&sink);
        return SFT_OUT_OF_MEMORY;
    }
    sft_code code = sft_sink_limit_mode(&sink, sfti_import_mode(import), err);
    if (!code) code = verify_parts(s, true, NULL, err);
    if (code) sft_sink_abandon(&sink);
    else
        code = sft_save_parts(s->parts, import->parts.count, import->metadata.at,
                              import->metadata.count, plan, sink, job, err);
    saving_end(import, s);
    return code;
}
