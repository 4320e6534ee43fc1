/* Texts of records, read or refused. */
#ifndef UNIT_RECORDS_CASE_H
#define UNIT_RECORDS_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "label/info.h"
#include "label/records/read.h"
#include "lint/lint.h"

static inline sft_span s(const char *text) { return sft_span_cstr(text); }

typedef struct known {
    sfti_arena arena;
    const sfti_records *records;
    sft_error err;
    sft_code code;
} known;

static inline known read_bytes(const char *text, size_t len) {
    known k = { .arena = { .alloc = sfti_allocator(NULL) }, .err = SFT_ERROR_INIT };
    sfti_records_text one = { { text, len }, "x.txt", 0 };
    k.code = sfti_records_read(&k.arena, &one, 1, &k.records, &k.err);
    return k;
}

static inline known read_text(const char *text) {
    return read_bytes(text, strlen(text));
}

static inline void refused(const char *text, const char *where) {
    known k = read_text(text);
    if (k.code == SFT_OK || !strstr(k.err.message, where))
        fail_msg("expected \"%s\" of \"%s\", got \"%s\"", where, text, k.err.message);
    assert_null(k.records);
    /* All that is wrong: the same is told first, and it never ends at that. */
    sfti_records_fault items[4];
    sfti_records_faults faults = { items, SFTI_COUNT(items), 99 };
    sfti_records_text one = { s(text), "x.txt", 0 };
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sfti_records_read_all(&k.arena, &one, 1, &faults, &k.records, &err), k.code);
    assert_null(k.records);
    assert_string_equal(err.message, k.err.message);
    for (size_t i = 0; i < faults.count && i < faults.room; i++) {
        assert_int_equal(items[i].text, 0);
        assert_true(items[i].line > 0 && items[i].column > 0 && items[i].expected);
    }
    sfti_arena_free(&k.arena);
}

#endif
