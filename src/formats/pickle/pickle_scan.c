/* Bytes of a pickle, read forward. Tests: test_import_pickle.c. */
#include "formats/pickle/pickle_scan.h"

#include <string.h>

sft_code sfti_scan_begin(sfti_scan *scan, const sfti_pickle_input *input, sfti_arena *arena,
                         sft_error *err) {
    *scan = (sfti_scan){ .input = *input, .arena = arena, .err = err, .base = input->begin };
    if (input->bytes) {
        scan->bytes = input->bytes;
        scan->len = (size_t)(input->end - input->begin);
        return SFT_OK;
    }
    scan->bytes = scan->window = sfti_take(&arena->alloc, SFTI_SCAN_WINDOW);
    return scan->window ? SFT_OK : sfti_fail_memory(err, SFTI_SCAN_WINDOW);
}

void sfti_scan_end(sfti_scan *scan) {
    sfti_release(&scan->arena->alloc, scan->window, SFTI_SCAN_WINDOW);
    scan->window = NULL;
}

static sft_code scan_truncated(sfti_scan *scan) {
    return sfti_fail_byte(scan->err, SFT_FOREIGN_TRUNCATED, scan->input.end,
                          "expected more of a pickle, found its end: no STOP");
}

/* Move the rest to the window's begin and fill it. */
static sft_code scan_fill(sfti_scan *scan) {
    size_t rest = scan->len - scan->at;
    uint64_t from = scan->base + scan->len;
    memmove(scan->window, scan->bytes + scan->at, rest);
    scan->base += scan->at;
    scan->at = 0;
    scan->len = rest;
    uint64_t left = scan->input.end - from;
    size_t want = SFTI_SCAN_WINDOW - rest, got = 0;
    if (want > left) want = (size_t)left;
    sft_code code = want == 0 ? SFT_OK
                              : sft_source_read(scan->input.source, from, scan->window + rest,
                                                want, &got, scan->err);
    if (!code && got < want)
        code = sfti_fail_byte(scan->err, SFT_FOREIGN_TRUNCATED, from + got,
                              "expected %zu more bytes, found the end of the file", want - got);
    if (!code) scan->len += got;
    return code;
}

const uint8_t *sfti_scan_more(sfti_scan *scan, size_t n) {
    if (n <= scan->len - scan->at) return sfti_scan_take(scan, n);
    if (scan->window && n <= SFTI_SCAN_WINDOW && scan_fill(scan)) return NULL;
    if (n > scan->len - scan->at) {
        (void)scan_truncated(scan);
        return NULL;
    }
    return sfti_scan_take(scan, n);
}

sft_code sfti_scan_skip(sfti_scan *scan, uint64_t n, const char **kept) {
    uint64_t here = sfti_scan_offset(scan);
    if (kept) *kept = NULL;
    if (n > scan->input.end - here)
        return sfti_fail_byte(scan->err, SFT_FOREIGN_TRUNCATED, here,
                              "expected %llu bytes, found %llu before the end",
                              (unsigned long long)n, (unsigned long long)(scan->input.end - here));
    if (!scan->window) {
        if (kept) *kept = (const char *)scan->bytes + scan->at;
        scan->at += (size_t)n;
        return SFT_OK;
    }
    if (kept && n <= SFTI_SCAN_TEXT) {
        const uint8_t *text = sfti_scan_take(scan, (size_t)n);
        if (!text) return scan->err ? scan->err->code : SFT_FOREIGN_TRUNCATED;
        *kept = sfti_arena_copy(scan->arena, text, (size_t)n);
        return *kept ? SFT_OK : sfti_fail_memory(scan->err, n);
    }
    if (n <= scan->len - scan->at) {
        scan->at += (size_t)n;
        return SFT_OK;
    }
    scan->base = here + n;
    scan->at = scan->len = 0;
    return SFT_OK;
}

sft_code sfti_scan_line(sfti_scan *scan, sft_span *out) {
    size_t rest = scan->len - scan->at;
    const uint8_t *line = scan->bytes + scan->at;
    const uint8_t *end = rest > 0 ? memchr(line, '\n', rest) : NULL;
    if (!end && scan->window) {
        sft_code code = scan_fill(scan);
        if (code) return code;
        line = scan->bytes;
        end = scan->len > 0 ? memchr(line, '\n', scan->len) : NULL;
        rest = scan->len;
    }
    if (!end && (!scan->window || rest < SFTI_SCAN_WINDOW)) return scan_truncated(scan);
    if (!end)
        return sfti_fail_byte(scan->err, SFT_FOREIGN_TABLE, sfti_scan_offset(scan),
                              "expected a line of at most %zu bytes, found a longer one",
                              SFTI_SCAN_WINDOW);
    size_t len = (size_t)(end - line);
    scan->at += len + 1;
    *out = (sft_span){ (const char *)line, len };
    if (scan->window) out->data = sfti_arena_copy(scan->arena, line, len);
    return out->data ? SFT_OK : sfti_fail_memory(scan->err, len);
}
