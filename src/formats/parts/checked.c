/* Parts compare the records that an archive states checksums for. A part that is a whole record is
 * compared while it is read from its beginning to its end; any other reading compares the whole
 * record first. Tests: test_import_zip.c, tests/cli/select, tests/cli/convert. */
#include "base/announce.h"
#include "base/crc32.h"
#include "base/order.h"
#include "formats/parts/state.h"
#include "os/io.h"
#include "safetensors_io.h"

#include <string.h>

#define COMPARE_BYTES ((size_t)1 << 20)

/* What was read of a record: `crc` is of its first `next` bytes. */
typedef struct record_state {
    uint64_t next;
    uint32_t crc;
    bool right;
} record_state;

struct sfti_checks {
    const sfti_import *im;
    const uint32_t *order; /* records by source and beginning */
    sfti_crc32_table tables[2]; /* CRC-32, CRC-32C */
    os_mutex mutex; /* guards the states */
    record_state *states;
    size_t *record_of; /* of each part; SIZE_MAX: none */
};

typedef struct checked {
    sfti_checks *checks;
    size_t record;
    sft_part part;     /* as it was */
    bool whole;        /* it is the record */
    sft_source source; /* that takes its place */
} checked;

/* ── Comparing; the mutex is held ── */

static sft_code record_end(const sfti_checks *c, size_t record, sft_span name, uint32_t found,
                           sft_error *err) {
    const sfti_checksum *r = &c->im->records.at[record];
    record_state *state = &c->states[record];
    state->next = 0;
    state->right = found == r->crc;
    if (state->right) return SFT_OK;
    return sfti_fail_tensor(err, SFT_FOREIGN_CHECKSUM, r->begin, name,
                            "expected bytes with the recorded CRC-32%s %08x, found %08x",
                            r->castagnoli ? "C" : "", r->crc, found);
}

static sft_code record_compare(const sfti_checks *c, size_t record, sft_span name, sft_error *err) {
    const sfti_checksum *r = &c->im->records.at[record];
    size_t most = r->len < COMPARE_BYTES ? (size_t)r->len : COMPARE_BYTES;
    uint8_t *buffer = sfti_take(&c->im->alloc, most);
    uint32_t crc = 0;
    sft_code code = buffer || most == 0 ? SFT_OK : sfti_fail_memory(err, most);
    for (uint64_t at = 0; !code && at < r->len;) {
        size_t some = r->len - at < most ? (size_t)(r->len - at) : most;
        code = sfti_import_exact(r->source, r->begin + at, buffer, some, err);
        if (!code) crc = sfti_crc32_add(&c->tables[r->castagnoli], crc, buffer, some);
        at += some;
    }
    sfti_release(&c->im->alloc, buffer, most);
    return code ? code : record_end(c, record, name, crc, err);
}

/* Bytes of a part were read. */
static sft_code part_compare(const checked *p, uint64_t offset, const void *bytes, size_t len,
                             sft_error *err) {
    sfti_checks *c = p->checks;
    record_state *state = &c->states[p->record];
    const sfti_checksum *r = &c->im->records.at[p->record];
    if (state->right || len == 0) return SFT_OK;
    if (!p->whole || (offset != 0 && offset != state->next))
        return record_compare(c, p->record, p->part.spec.name, err);
    if (offset == 0) state->crc = 0;
    state->crc = sfti_crc32_add(&c->tables[r->castagnoli], state->crc, bytes, len);
    state->next = offset + len;
    if (state->next < r->len) return SFT_OK;
    return record_end(c, p->record, p->part.spec.name, state->crc, err);
}

/* ── The sources ── */

static sft_code read_checked(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                             sft_error *err) {
    const checked *p = ctx;
    *got = 0;
    sft_code code = sfti_import_exact(p->part.source, p->part.begin + offset, into, len, err);
    if (code) return code;
    sfti_os_mutex_lock(&p->checks->mutex);
    code = part_compare(p, offset, into, len, err);
    sfti_os_mutex_unlock(&p->checks->mutex);
    if (!code) *got = len;
    return code;
}

static void expect_checked(void *ctx, const sft_run *runs, size_t count) {
    const sft_part *part = &((const checked *)ctx)->part;
    sfti_announcement all = { .count = 0 };
    for (size_t i = 0; i < count; i++)
        sfti_announce(&all, part->source, part->begin + runs[i].offset, runs[i].len);
    sfti_announce_end(&all);
}

static uint32_t mode_checked(void *ctx) {
    return sft_source_mode(((const checked *)ctx)->part.source);
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

/* The record with the item's first byte; SIZE_MAX: none. */
static size_t find_record(const sfti_checks *c, const sfti_item *item) {
    size_t low = 0, high = c->im->records.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const sfti_checksum *record = &c->im->records.at[c->order[middle]];
        bool before = record->source != item->source
                          ? (uintptr_t)record->source < (uintptr_t)item->source
                          : record->begin <= item->begin;
        if (before) low = middle + 1;
        else high = middle;
    }
    if (low == 0) return SIZE_MAX;
    const sfti_checksum *record = &c->im->records.at[c->order[low - 1]];
    bool inside = record->source == item->source && item->begin - record->begin < record->len;
    return inside ? c->order[low - 1] : SIZE_MAX;
}

/* What was already read to compute an item. */
static sft_code check_loaded(const sfti_checks *c, const sfti_item *item) {
    sft_code code = SFT_OK;
    for (size_t k = 1; !code && item->from && item->from[k]; k++) {
        size_t record = find_record(c, item->from[k]);
        if (record != SIZE_MAX && !c->states[record].right)
            code = record_compare(c, record, item->name, c->im->err);
    }
    return code;
}

static sft_code check_part(sfti_import *im, size_t i) {
    sfti_checks *c = im->checks;
    sft_part *part = &im->parts.at[i];
    const sfti_item *item = &im->items.at[im->item_of[i]];
    size_t record = find_record(c, item->from ? item->from[0] : item);
    uint64_t bytes;
    c->record_of[i] = record;
    if (record == SIZE_MAX) return SFT_OK;
    const sfti_checksum *r = &im->records.at[record];
    sft_code code = sft_shape_size(part->spec.dtype, part->spec.shape, part->spec.rank, NULL,
                                   &bytes, im->err);
    if (code || bytes == 0) return code;
    checked *p = sfti_arena_take(&im->arena, sizeof *p);
    if (!p) return sfti_fail_memory(im->err, sizeof *p);
    bool whole = part->source == r->source && part->begin == r->begin && bytes == r->len;
    *p = (checked){ c, record, *part, whole, { p, &checked_source_vtable, bytes, NULL, false } };
    part->source = &p->source;
    part->begin = 0;
    return SFT_OK;
}

sft_code sfti_checks_begin(sfti_import *im) {
    size_t records = im->records.count;
    if (records == 0) return SFT_OK;
    sfti_checks *c = sfti_arena_take(&im->arena, sizeof *c);
    if (!c) return sfti_fail_memory(im->err, sizeof *c);
    *c = (sfti_checks){ .im = im };
    c->order = sfti_arena_sorted(&im->arena, records, compare_records, im->records.at);
    c->states = sfti_arena_array(&im->arena, records, sizeof *c->states);
    c->record_of = sfti_arena_array(&im->arena, im->parts.count, sizeof *c->record_of);
    if (!c->order || !c->states || !c->record_of)
        return sfti_fail_memory(im->err, records * sizeof *c->states);
    memset(c->states, 0, records * sizeof *c->states);
    sfti_crc32_begin(&c->tables[0], false);
    sfti_crc32_begin(&c->tables[1], true);
    int error = sfti_os_mutex_init(&c->mutex);
    if (error) return sfti_io_fail(im->err, SFT_OUT_OF_MEMORY, error, "create a mutex");
    im->checks = c;
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < im->parts.count; i++) {
        code = check_loaded(c, &im->items.at[im->item_of[i]]);
        if (!code) code = check_part(im, i);
    }
    return code;
}

void sfti_checks_end(sfti_import *im) {
    if (im->checks) sfti_os_mutex_free(&im->checks->mutex);
    im->checks = NULL;
}

/* ── All of them ── */

const sfti_checksum *sfti_checks_left(const sfti_import *im, size_t i) {
    sfti_checks *c = im->checks;
    size_t record = c ? c->record_of[i] : SIZE_MAX;
    if (record == SIZE_MAX) return NULL;
    sfti_os_mutex_lock(&c->mutex);
    bool right = c->states[record].right;
    sfti_os_mutex_unlock(&c->mutex);
    return right ? NULL : &im->records.at[record];
}

sft_code sfti_checks_compare(const sfti_import *im, size_t i, sft_error *err) {
    sfti_checks *c = im->checks;
    sfti_os_mutex_lock(&c->mutex);
    sft_code code = record_compare(c, c->record_of[i], im->parts.at[i].spec.name, err);
    sfti_os_mutex_unlock(&c->mutex);
    return code;
}
