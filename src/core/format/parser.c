/* Findings of the header parts, and the records they fill. Tests: test_header.c. */
#include "format/header.h"

#include "base/checked.h"
#include "base/error.h"

/* ── Reporting ── */

bool sfti_report(sfti_parser *r, const sft_error *error) {
    if (!r->first) {
        r->first = error->code;
        if (r->err) *r->err = *error;
    }
    if (!r->watch) {
        r->fatal = true;
        return false;
    }
    r->watch->finding(r->watch->ctx, error);
    return true;
}

bool sfti_report_at(sfti_parser *r, sft_code code, const char *at, const sft_span *name,
                    const char *expected) {
    sft_error error;
    sfti_fail_at(&error, code, SFTI_PREFIX, r->text, (size_t)(at - r->text.data), expected);
    if (name) sfti_error_tensor(&error, *name);
    return sfti_report(r, &error);
}

bool sfti_report_limit(sfti_parser *r, sft_code code, const char *at, const sft_span *name,
                       const char *what, uint64_t most, uint64_t found) {
    sft_error error;
    sfti_fail_byte(&error, code, SFTI_PREFIX + (uint64_t)(at - r->text.data),
                   "expected %s of at most %llu, found %s%llu", what, (unsigned long long)most,
                   found > most ? "" : "more than ", (unsigned long long)found);
    if (name) sfti_error_tensor(&error, *name);
    return sfti_report(r, &error);
}

bool sfti_report_memory(sfti_parser *r, uint64_t bytes) {
    sft_error error;
    sfti_fail_memory(&error, bytes);
    sfti_report(r, &error);
    r->first = SFT_OUT_OF_MEMORY;
    if (r->err) *r->err = error;
    r->fatal = true;
    return false;
}

void sfti_remark(sfti_parser *r, const char *note, const char *at, const sft_span *name,
                 const char *text) {
    sft_error error;
    if (!r->watch) return;
    sfti_error_clear(&error);
    error.offset = SFTI_PREFIX + (uint64_t)(at - r->text.data);
    if (name) sfti_error_tensor(&error, *name);
    sfti_error_text(&error, "%s", text);
    r->watch->note(r->watch->ctx, note, &error);
}

/* ── Records ── */

#define RESERVE_FROM ((size_t)1 << 20) /* bytes of a header */

bool sfti_keep(sfti_parser *r, const sft_tensor *tensor, sft_span name) {
    sfti_tensors *all = &r->model->tensors;
    uint64_t most = r->limits->max_tensors ? r->limits->max_tensors : UINT32_MAX - 1;
    /* cap counts entries of the shortest possible length */
    if (all->count >= most || sfti_never(all->count >= r->cap)) {
        sfti_report_limit(r, SFT_TOO_MANY_TENSORS, r->lex.at, NULL, "a tensor count", most,
                          all->count);
        r->fatal = true;
        return false;
    }
    if (all->count % SFTI_CHUNK == 0) {
        /* Records, shapes and names of real headers take six to seven tenths of their text: large
         * ones get most of it in one block, which the system backs with large pages. */
        if (all->count == SFTI_CHUNK && r->text.len >= RESERVE_FROM)
            (void)sfti_arena_reserve(r->arena, r->text.len / 8 * 5);
        size_t left = r->cap - all->count, size = left < SFTI_CHUNK ? left : SFTI_CHUNK;
        sft_tensor *chunk = sfti_arena_array(r->arena, size, sizeof *chunk);
        if (!chunk) return sfti_report_memory(r, size * sizeof *chunk);
        all->chunk[all->count / SFTI_CHUNK] = chunk;
    }
    sft_tensor *t = sfti_tensor_at(all, all->count++);
    *t = *tensor;
    t->name = name;
    t->offset = sfti_names_hash(name, r->seed);
    if (t->begin < r->before.begin || (t->begin == r->before.begin && t->end < r->before.end))
        r->unsorted = true;
    if (t->begin != r->before.end || t->end < t->begin || !sfti_plain_size(t)) r->apart = true;
    r->before.begin = t->begin;
    r->before.end = t->end;
    return true;
}

void sfti_value_begin(const sfti_parser *r, uint32_t depth, sfti_json *json) {
    sfti_json_begin(json, r->text.data, r->text.len);
    json->at = r->lex.at;
    json->depth = depth;
    json->stack[0] = 3; /* the first two levels are objects */
}
