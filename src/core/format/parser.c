#include "format/header.h"

#include "base/error.h"
#include "base/never.h"

/* ── Reporting ── */

bool sfti_report(sfti_parser *r, const sft_error *error) {
    if (r->first == SFT_OK) {
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

static uint64_t file_offset(const sfti_parser *r, const char *at) {
    return SFTI_PREFIX + (uint64_t)(at - r->text.data);
}

bool sfti_report_at(sfti_parser *r, sft_code code, const char *at, const char *expected) {
    sft_error error;
    sfti_fail_at(&error, code, SFTI_PREFIX, r->text, (size_t)(at - r->text.data), expected);
    return sfti_report(r, &error);
}

bool sfti_report_entry(sfti_parser *r, sft_code code, const char *at, sft_span name,
                       const char *expected) {
    sft_error error;
    sfti_fail_at(&error, code, SFTI_PREFIX, r->text, (size_t)(at - r->text.data), expected);
    sfti_error_tensor(&error, name);
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
    error.offset = file_offset(r, at);
    if (name) sfti_error_tensor(&error, *name);
    sfti_error_text(&error, "%s", text);
    r->watch->note(r->watch->ctx, note, &error);
}

/* ── Records ── */

/* Records, shapes and names of real headers take six to seven tenths of their text: large
 * ones get most of it in one block, which the system backs with large pages. */
#define RESERVE_FROM ((size_t)1 << 20)

static void reserve_arena(sfti_arena *arena, size_t text_bytes) {
    if (text_bytes >= RESERVE_FROM) (void)sfti_arena_reserve(arena, text_bytes / 8 * 5);
}

static bool new_chunk(sfti_parser *r) {
    sfti_tensors *t = &r->model->tensors;
    if (t->count == SFTI_CHUNK) reserve_arena(r->arena, r->text.len);
    size_t left = r->cap - t->count, size = left < SFTI_CHUNK ? left : SFTI_CHUNK;
    sft_tensor *chunk = sfti_arena_take(r->arena, size * sizeof *chunk);
    if (!chunk) return sfti_report_memory(r, size * sizeof *chunk);
    t->chunk[t->count / SFTI_CHUNK] = chunk;
    return true;
}

sft_tensor *sfti_new_tensor(sfti_parser *r) {
    sfti_tensors *t = &r->model->tensors;
    uint64_t most = r->limits->max_tensors ? r->limits->max_tensors : UINT32_MAX - 1;
    /* cap counts entries of the shortest possible length */
    if (t->count >= most || sfti_never(t->count >= r->cap)) {
        sfti_report_at(r, SFT_TOO_MANY_TENSORS, r->lex.at, "no more tensors");
        r->fatal = true;
        return NULL;
    }
    if (t->count % SFTI_CHUNK == 0 && !new_chunk(r)) return NULL;
    return sfti_tensor_at(t, t->count++);
}

sft_span sfti_decoded(sfti_parser *r, sft_span text, bool escaped) {
    sft_span none = { NULL, 0 };
    if (!escaped) return text;
    char *into = sfti_arena_take(r->arena, text.len);
    if (!into) {
        sfti_report_memory(r, text.len);
        return none;
    }
    text.len = sfti_json_decode(text, into);
    text.data = into;
    return text;
}

void sfti_value_begin(const sfti_parser *r, sfti_json *json) {
    sfti_json_begin(json, r->text.data, r->text.len);
    json->at = r->lex.at;
    json->depth = 1;
    json->stack[0] = 1;
}
