/* Which of the rows that hold tells: relations of records, trust, what hides. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "label/tensors/signatures.h"

#define ROW(kind, trust) " tensors " kind " " trust "\n  a\n"

static const char text[] =
    "kind vae\nkind controlnet\n"
    "several\n" ROW("vae", "100")
    "model top\n" ROW("vae", "100")
    "model child\n parent top\n" ROW("vae", "60")
    "model grand\n parent child derived\n over far\n" ROW("vae", "100") ROW("vae", "60")
    "model sister\n parent top other-layers\n" ROW("vae", "100")
    "model far\n" ROW("vae", "100")
    "model guess\n" ROW("vae", "60")
    "model control\n" ROW("controlnet", "100")
    "model ring-a\n over ring-b\n" ROW("vae", "100")
    "model ring-b\n over ring-a\n" ROW("vae", "100")
    "model under\n parent far\n" ROW("vae", "100");

/* Records by name; "?" before one: it may hide. What is told, and at which trust, or "a/b" for two
 * that rival. */
static const struct { const char *held, *told; } cases[] = {
    { "", "-" },
    { "top", "top 100" },
    { "top child", "child 60" },
    { "child top grand", "grand 100" },
    { "top several", "top 100" },
    { "several guess", "guess 60" },
    { "top guess", "top 100" },
    { "child guess", "child/guess" },
    { "child top guess", "child 60" },   /* it is surely the top or a child */
    { "child top far", "child/far" },    /* and so no guess beside what is as sure */
    { "grand far", "grand 100" },
    { "grand under", "grand/under" },    /* over far, not over its children */
    { "grand sister", "top 60" },
    { "top far", "top/far" },
    { "ring-a ring-b", "ring-a/ring-b" },
    { "?child top", "top 60" },
    { "?top", "top 60" },
    { "top ?far", "- 60" },
    { "grand ?far", "grand 100" },
    { "top ?guess", "top 100" },
    { "top control", "kinds" },
};

static void told(const sfti_records *records, const sfti_held_rows *held, char *out, size_t size) {
    sfti_chosen chosen = sfti_held_choose(records, held);
    const char *kind = sfti_held_kind(records, held);
    if (chosen.row)
        snprintf(out, size, "%s %d", sfti_row_record(records, chosen.row)->id, chosen.row->trust);
    else if (held->count > 0 && !kind) snprintf(out, size, "kinds");
    else if (chosen.common || !chosen.tops[0])
        snprintf(out, size, held->count ? "%s 60" : "-", chosen.common ? chosen.common->id : "-");
    else
        snprintf(out, size, "%s/%s", sfti_row_record(records, chosen.tops[0])->id,
                 sfti_row_record(records, chosen.tops[1])->id);
}

static const sfti_record_row *row_called(const sfti_records *records, const char *name) {
    bool several = strcmp(name, "several") == 0;
    for (const sfti_record_row *row = sfti_rows(records, SFTI_TENSORS, 0); row;
         row = sfti_rows_next(records, row)) {
        const char *id = sfti_row_record(records, row)->id;
        if (several ? !id : id && strcmp(id, name) == 0) return row;
    }
    fail_msg("no record %s", name);
    return NULL;
}

static void the_most_particular(void **state) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_records_text one = { { text, sizeof text - 1 }, "x.txt", 0 };
    const sfti_records *records;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    if (sfti_records_read(&arena, &one, 1, &records, &err)) fail_msg("%s", err.message);
    for (size_t i = 0; i < SFTI_COUNT(cases); i++) {
        sfti_held_rows held = { .count = 0 };
        char words[64], got[64];
        snprintf(words, sizeof words, "%s", cases[i].held);
        for (char *rest = words, *word; (word = strtok_r(rest, " ", &rest));)
            sfti_held_add(&held, row_called(records, word + (*word == '?')), *word == '?');
        told(records, &held, got, sizeof got);
        if (strcmp(got, cases[i].told) != 0)
            fail_msg("\"%s\": expected %s, found %s", cases[i].held, cases[i].told, got);
    }
    sfti_arena_free(&arena);
}

/* Of one record the surer row tells, then the one that stands first; more rows than are taken in
 * tell nothing. */
static void rows_of_one_record(void **state) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_records_text one = { { text, sizeof text - 1 }, "x.txt", 0 };
    const sfti_records *records;
    (void)state;
    assert_int_equal(sfti_records_read(&arena, &one, 1, &records, NULL), SFT_OK);
    const sfti_record *grand = sfti_record_find(records, SFTI_MODEL, sft_span_cstr("grand"));
    const sfti_record_row *sure = sfti_record_row_of(records, grand, SFTI_TENSORS, NULL);
    const sfti_record_row *guess = sfti_record_row_of(records, grand, SFTI_TENSORS, sure);
    sfti_held_rows held = { .count = 0 };
    sfti_held_add(&held, guess, false);
    assert_ptr_equal(sfti_held_choose(records, &held).row, guess);
    sfti_held_add(&held, sure, false);
    assert_ptr_equal(sfti_held_choose(records, &held).row, sure);
    assert_string_equal(sfti_held_kind(records, &held), "vae");
    while (held.count <= SFTI_HELD) sfti_held_add(&held, sure, false);
    sfti_chosen chosen = sfti_held_choose(records, &held);
    assert_null(chosen.row);
    assert_null(chosen.common);
    assert_null(sfti_held_kind(records, &held));
    sfti_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_particular),
        cmocka_unit_test(rows_of_one_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
