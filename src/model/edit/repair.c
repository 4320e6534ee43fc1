/* Repairs: a damaged file as a valid one. Tests: test_repair.c. */
#include "keys/digest_keys.h"
#include "base/json.h"
#include "base/options.h"
#include "base/order.h"
#include "edit/dropped.h"
#include "file/file.h"

#include <string.h>

struct sft_repair {
    sft_allocator alloc;
    sfti_arena arena; /* holds all below but source and scan */
    sft_source source;
    sft_scan *scan;
    sft_fix *fixes;
    size_t fix_count;
    sft_part *parts;
    size_t count;
    sft_pair *pairs; /* NULL: those of the scan's model, which are sound */
    size_t *kept;    /* numbers of those that are written; NULL: all */
    size_t pair_count;
    unsigned dropped; /* digests */
    bool has_metadata;
    sft_level level;
};

/* ── What is found ── */

static void put_fix(sft_repair *r, const sfti_repair_row *row, const sft_error *found) {
    r->fixes[r->fix_count++] = (sft_fix){ row->name, row->done, *found };
}

/* A hint to repair the file is of no use here. */
static sft_code refuse_finding(const sft_error *found, sft_error *err) {
    if (!err) return found->code;
    *err = *found;
    if (sfti_repair_of_code(found->code)) err->hint = SFT_HINT_NONE;
    return found->code;
}

static sft_code take_fixes(sft_repair *r, sft_error *err) {
    size_t count = sft_scan_finding_count(r->scan), most = count + sft_scan_note_count(r->scan);
    if (count >= SFTI_FINDINGS_MANY)
        return refuse_finding(&sft_scan_finding_at(r->scan, 0)->error, err);
    r->fixes = sfti_arena_array(&r->arena, most, sizeof *r->fixes);
    if (!r->fixes) return sfti_fail_memory(err, most * sizeof *r->fixes);
    for (size_t i = 0; i < count; i++) {
        const sft_error *found = &sft_scan_finding_at(r->scan, i)->error;
        const sfti_repair_row *row = sfti_repair_of_finding(sfti_scan_model(r->scan), found);
        if (!row) return refuse_finding(found, err);
        put_fix(r, row, found);
    }
    const sft_error *verdict = sft_scan_error(r->scan);
    if (verdict && !sfti_repair_of_code(verdict->code)) return refuse_finding(verdict, err);
    for (size_t i = 0; i < sft_scan_note_count(r->scan); i++) {
        const sft_note *note = sft_scan_note_at(r->scan, i);
        const sfti_repair_row *row = sfti_repair_of_note(note->name);
        if (row) put_fix(r, row, &note->error);
    }
    return SFT_OK;
}

/* ── Tensors ── */

static sft_code take_parts(sft_repair *r, sft_error *err) {
    const sfti_model *model = sfti_scan_model(r->scan);
    r->count = model->tensors.count;
    r->parts = sfti_arena_array(&r->arena, r->count, sizeof *r->parts);
    if (!r->parts) return sfti_fail_memory(err, r->count * sizeof *r->parts);
    for (size_t i = 0; i < r->count; i++) {
        const sft_tensor *tensor = sfti_model_tensor(model, i);
        sft_code code = sfti_repair_check(model, r->source.size, tensor, err);
        if (code) return code;
        r->parts[i] = sft_part_of(tensor, &r->source);
        r->parts[i].begin = model->data_offset + tensor->begin;
    }
    return SFT_OK;
}

/* ── Metadata, also where it is no object of strings ── */

typedef struct pair_list {
    sft_repair *r;
    sfti_json json;
    size_t count; /* told of a first pass */
} pair_list;

/* One __metadata__, its opening brace read; false when out of memory. */
static bool repair_object(pair_list *p) {
    while (sfti_json_next(&p->json) == SFTI_JSON_KEY) {
        sft_pair pair = { sfti_json_string(&p->json, &p->r->arena), { NULL, 0 } };
        sfti_json_type type = sfti_json_next(&p->json);
        const char *begin = p->json.begin + p->json.start;
        if (type == SFTI_JSON_STRING) {
            pair.value = sfti_json_string(&p->json, &p->r->arena);
        } else { /* as it is spelled */
            if (type == SFTI_JSON_OBJECT || type == SFTI_JSON_ARRAY) (void)sfti_json_skip(&p->json);
            pair.value = (sft_span){ begin, (size_t)(p->json.at - begin) };
        }
        if (!pair.key.data || !pair.value.data) return false;
        if (p->r->pairs) p->r->pairs[p->count] = pair;
        p->count++;
    }
    p->r->has_metadata = true;
    return true;
}

/* All of the header; what is broken was refused before. */
static bool repair_header(pair_list *p) {
    sft_span text = sfti_scan_model(p->r->scan)->text;
    sfti_json_begin(&p->json, text.data, text.len);
    p->count = 0;
    if (sfti_json_next(&p->json) != SFTI_JSON_OBJECT) return true;
    while (sfti_json_next(&p->json) == SFTI_JSON_KEY) {
        sft_span name = sfti_json_string(&p->json, &p->r->arena);
        if (!name.data) return false;
        if (!sft_span_equal(name, sft_span_cstr("__metadata__"))) {
            (void)sfti_json_skip(&p->json);
            continue;
        }
        sfti_json_type type = sfti_json_next(&p->json);
        if (type == SFTI_JSON_OBJECT && !repair_object(p)) return false;
        if (type == SFTI_JSON_ARRAY) (void)sfti_json_skip(&p->json);
    }
    return true;
}

static int compare_repair_keys(const void *ctx, uint32_t a, uint32_t b) {
    const sft_pair *pairs = ctx;
    return sfti_bytes_compare(pairs[a].key, pairs[b].key);
}

static bool is_metadata_sound(const sft_scan *scan) {
    for (size_t i = 0; i < sft_scan_finding_count(scan); i++) {
        sft_code code = sft_scan_finding_at(scan, i)->error.code;
        if ((code >= SFT_METADATA_TYPE && code <= SFT_METADATA_DUPLICATE)
            || code == SFT_METADATA_KEY_DUPLICATE)
            return false;
    }
    return true;
}

static sft_pair repair_pair(const void *ctx, size_t i) {
    const sft_repair *r = ctx;
    if (r->kept) i = r->kept[i];
    return r->pairs ? r->pairs[i] : sfti_model_pair(sfti_scan_model(r->scan), i);
}

static sft_code take_metadata(sft_repair *r, sft_error *err) {
    if (is_metadata_sound(r->scan)) {
        r->has_metadata = sfti_scan_model(r->scan)->has_metadata;
        r->pair_count = sfti_scan_model(r->scan)->metadata_count;
        return SFT_OK;
    }
    pair_list p = { .r = r };
    bool fine = repair_header(&p);
    size_t count = p.count;
    if (fine) {
        r->pairs = sfti_arena_array(&r->arena, count, sizeof *r->pairs);
        fine = r->pairs && repair_header(&p);
    }
    /* Keeps the last pair of each key, in the order of the text. */
    sfti_arena work = { .alloc = r->alloc };
    const uint32_t *order = fine ? sfti_arena_sorted(&work, count, compare_repair_keys, r->pairs)
                                 : NULL;
    for (size_t i = 1; order && i < count; i++) {
        sft_pair *before = &r->pairs[order[i - 1]];
        if (sft_span_equal(before->key, r->pairs[order[i]].key)) before->value.data = NULL;
    }
    for (size_t i = 0; order && i < count; i++)
        if (r->pairs[i].value.data) r->pairs[r->pair_count++] = r->pairs[i];
    fine = order != NULL;
    sfti_arena_free(&work);
    return fine ? SFT_OK : sfti_fail_memory(err, count * sizeof *r->pairs);
}

/* ── Digests of the file as it was ── */

static sft_code drop_digests(sft_repair *r, sft_error *err) {
    const sfti_model *model = sfti_scan_model(r->scan);
    sfti_layout layout = SFTI_LAYOUT_INIT;
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++) sfti_layout_add(&layout, sfti_model_tensor(model, i));
    bool same = sfti_layout_is_official(&layout, r->source.size - model->data_offset);
    unsigned stale = same ? 0 : SFTI_DIGESTS_OF_DATA;
    /* Metadata that were read in another way may be other keys of training. */
    if (!is_metadata_sound(r->scan)) stale |= SFTI_DIGESTS_OF_NAMES;
    for (size_t i = 0; i < r->pair_count; i++)
        r->dropped |= sfti_digest_key_of(repair_pair(r, i).key) & stale;
    if (!r->dropped) return SFT_OK;
    size_t *kept = sfti_arena_array(&r->arena, r->pair_count, sizeof *kept);
    if (!kept) return sfti_fail_memory(err, r->pair_count * sizeof *kept);
    for (size_t i = 0; i < r->pair_count; i++)
        if (!(sfti_digest_key_of(repair_pair(r, i).key) & stale)) kept[count++] = i;
    r->kept = kept;
    r->pair_count = count;
    return SFT_OK;
}

unsigned sfti_repair_dropped(const sft_repair *repair) { return repair->dropped; }

/* ── All together ── */

/* The fix that the second scan, which reads the layout of 2022, knows nothing of. */
static sft_code scan_legacy(sft_repair *r, sft_open_options *options, sft_error *err) {
    sft_source borrowed = r->source;
    sft_error found = *sft_scan_error(r->scan);
    borrowed.borrowed = true;
    options->legacy = true;
    sft_scan_close(r->scan);
    r->scan = NULL;
    sft_code code = sft_scan_open_source(borrowed, options, &r->scan, err);
    if (!code) code = take_fixes(r, err);
    if (code) return code;
    sft_fix *fixes = sfti_arena_array(&r->arena, r->fix_count + 1, sizeof *fixes);
    if (!fixes) return sfti_fail_memory(err, sizeof *fixes);
    if (r->fix_count > 0) memcpy(fixes + 1, r->fixes, r->fix_count * sizeof *fixes);
    const sfti_repair_row *row = sfti_repair_of_code(SFT_LEGACY_LAYOUT);
    fixes[0] = (sft_fix){ row->name, row->done, found };
    r->fixes = fixes;
    r->fix_count++;
    return SFT_OK;
}

static sft_code repair_open(sft_repair *r, const char *path, const sft_open_options *options,
                            const sft_open_options *taken, sft_error *err) {
    os_info info;
    sft_code code = sfti_source_open(path, taken, &r->source, NULL, &info, err);
    if (code) return code;
    if (r->source.size == SFT_SIZE_UNKNOWN) {
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a file, found a pipe");
    }
    sft_open_options own;
    sft_source borrowed = r->source;
    bool legacy = false;
    code = sfti_take_open(options, &own, err);
    own.header_only = false;
    borrowed.borrowed = true;
    if (!code) code = sft_scan_open_source(borrowed, &own, &r->scan, err);
    for (size_t i = 0; !code && !legacy && i < sft_scan_finding_count(r->scan); i++)
        legacy = sft_scan_finding_at(r->scan, i)->error.code == SFT_LEGACY_LAYOUT;
    if (!code) code = legacy ? scan_legacy(r, &own, err) : take_fixes(r, err);
    if (r->scan && info.kind == OS_FILE) { /* why it is refused, or seems whole, may be an edit */
        sft_error found = SFT_ERROR_INIT;
        sft_code edited = sfti_scan_check(r->scan, path, &info, NULL, &found);
        if (edited && err) *err = found;
        if (edited) return edited;
    }
    if (!code) code = take_parts(r, err);
    if (!code) code = take_metadata(r, err);
    if (!code) code = drop_digests(r, err);
    return code;
}

sft_code sft_repair_open(const char *path, const sft_open_options *options, sft_repair **out,
                         sft_error *err) {
    if (!path || !out) {
        return sfti_misuse(err, "expected a path and a place for the repair, found NULL");
    }
    sfti_open how;
    *out = NULL;
    sft_code code = sfti_open_settle(NULL, options, &how, err);
    if (code) return code;
    sft_repair *r = sfti_take(&how.alloc, sizeof *r);
    if (!r) return sfti_fail_memory(err, sizeof *r);
    memset(r, 0, sizeof *r);
    r->alloc = r->arena.alloc = how.alloc;
    r->level = how.options.level;
    code = repair_open(r, path, options, &how.options, err);
    if (!code) *out = r;
    else sft_repair_close(r);
    return code;
}

size_t sft_repair_fix_count(const sft_repair *repair) {
    return repair->fix_count;
}

const sft_fix *sft_repair_fix_at(const sft_repair *repair, size_t i) {
    return i < repair->fix_count ? &repair->fixes[i] : NULL;
}

size_t sft_repair_tensor_count(const sft_repair *repair) {
    return repair->count;
}

sft_spec sft_repair_tensor_at(const sft_repair *repair, size_t i) {
    return repair->parts[i].spec;
}

sft_code sft_repair_write(const sft_repair *repair, sft_sink sink, const sft_job *job,
                          sft_error *err) {
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    options.has_metadata = repair->has_metadata;
    options.level = repair->level;
    options.alloc = &repair->alloc;
    options.pair_at = repair_pair;
    options.pair_ctx = repair;
    return sft_save_parts(repair->parts, repair->count, NULL, repair->pair_count, &options, sink,
                          job, err);
}

void sft_repair_close(sft_repair *repair) {
    if (!repair) return;
    sft_allocator alloc = repair->alloc;
    sft_scan_close(repair->scan);
    sft_source_close(&repair->source);
    sfti_arena_free(&repair->arena);
    sfti_release(&alloc, repair, sizeof *repair);
}
