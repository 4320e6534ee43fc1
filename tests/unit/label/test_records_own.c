/* Records of several texts, a user's behind the library's; what rows say of one another. */
#define _GNU_SOURCE
#include "unit/records_case.h"

#include <stdio.h>

/* ── Several texts ── */

static known read_two(const char *first, const char *second) {
    known k = { .arena = { .alloc = sfti_allocator(NULL) }, .err = SFT_ERROR_INIT };
    sfti_records_text two[] = { { s(first), "one", 0 }, { s(second), "two", 0 } };
    k.code = sfti_records_read(&k.arena, two, 2, &k.records, &k.err);
    return k;
}

static void refused_second(const char *first, const char *second, const char *where) {
    known k = read_two(first, second);
    if (k.code == SFT_OK || !strstr(k.err.message, where))
        fail_msg("expected \"%s\", got \"%s\"", where, k.err.message);
    sfti_arena_free(&k.arena);
}

static bool row_lists(const sfti_record_row *row, sft_span word) {
    sft_span rest = sfti_row_text(row), one;
    while (sfti_next_said(&rest, &one))
        if (sft_span_equal(one, word)) return true;
    return false;
}

static void users_texts(void **state) {
    static const char ours[] = "kind vae\nmodel a \"A\"\n members x\n tensors vae 100\n  p\n"
                               "model b\n parent a\n";
    (void)state;
    known k = read_two(ours, "\xEF\xBB\xBF# a mark of the byte order\r\n#\r\nmodel a\r\n"
                             "   #.x is no comment here\r\n members #.y\r\n");
    assert_true(strstr(k.err.message, "two: line 4, column 4: expected a word that such"));
    sfti_arena_free(&k.arena);
    k = read_two(ours, "\xEF\xBB\xBF# a mark of the byte order\r\n#\r\nmodel a\r\n"
                       " members\r\n\r\n # y\r\n   #\r\n   z #.y\r\nmodel c\n parent b\n"
                       " tensors vae 90\n  # q\n  q\n");
    if (k.code) fail_msg("%s", k.err.message);
    const sfti_record *a = sfti_record_find(k.records, SFTI_MODEL, s("a"));
    const sfti_record *c = sfti_record_find(k.records, SFTI_MODEL, s("c"));
    const sfti_record_row *row = sfti_record_row_of(k.records, a, SFTI_MEMBERS, NULL);
    assert_true(row && row_lists(row, s("x")));
    assert_int_equal(row->text, 0);
    row = sfti_record_row_of(k.records, a, SFTI_MEMBERS, row);
    assert_true(row && row_lists(row, s("z")) && row_lists(row, s("#.y")));
    assert_false(row_lists(row, s("#")) || row_lists(row, s("y")));
    assert_true(sfti_is(*sfti_row_source(k.records, row), "records:two"));
    assert_true(sfti_is(*sfti_record_source(k.records, c), "records:two"));
    assert_null(sfti_record_row_of(k.records, a, SFTI_MEMBERS, row));
    assert_true(sfti_architecture_within(k.records, s("c"), s("a")));
    assert_true(sfti_architecture_within(k.records, s("z"), s("a")));
    assert_non_null(sfti_table_row(k.records, SFTI_VAE_TABLE, 1));
    assert_null(sfti_table_row(k.records, SFTI_VAE_TABLE, 2));
    sfti_arena_free(&k.arena);
    refused_second(ours, "model b\n parent b\n",
                   "two: line 2, column 2: expected a word that this record does not have yet, "
                   "found \"parent b\", which one line 7 has as \"parent a\"");
    refused_second(ours, "model a \"B\"\n",
                   "two: line 1, column 10: expected no label, or that of the record that there "
                   "is, found \"B\", which has \"A\"");
    refused_second(ours, "model C\n", "two: line 1, column 7: expected an id in lower case");
    refused_second(ours, "model c\n tensors vae 1\n p.weight\n",
                   "two: line 3, column 2: expected a clause that is indented further");
    refused_second(ours, "model c\n tensors vae 1\n  p\n tensor vae 2\n  p\n",
                   "found \"tensor\": did you mean \"tensors\"?");
    refused_second(ours, "model c\nmodel c\n", "two: line 2, column 7: expected an id");
    static const char encoders[] = "several\n vectors l 768|9 a b\n vectors token * c\n";
    k = read_two(encoders, "model a\n embedding l\n embedding token 768 trust=60\n");
    if (k.code) fail_msg("%s", k.err.message);
    sfti_arena_free(&k.arena);
    refused_second(encoders, "model a\n embedding a\n",
                   "two: line 2, column 12: expected an encoder");
    refused_second(encoders, "several\n vectors g 9 g\n", "two: ");
    refused_second(ours, " members x\n", "two: line 1, column 2: expected a record before");
    refused_second(ours, "model a\n\n tensors vae\n  q\n", "two: line 3");
    refused_second(ours, "model a\n parent q\n", "two: line 2, column 9: expected the id of");
    refused_second(ours, "kind new\n", "two: line 1, column 6: expected a record that the library");
    refused_second(ours, "several\n", "a record that the library has");
    refused_second(ours, "model c\n sizes embed=x\n", "a word that a user's file may have");
    refused_second("model a\n parent b\nmodel b\n", "model b\n parent a\n", "no ring");
    refused_second("model a\n", "model a \"A\"\n", "that of the record that there is, found \"A\"");
    refused_second(ours, "model a\nkind vae\n tensors q 1\n", "a word that such a record may have");
    k = read_two(ours, "family f\nvariant v\nquantisation q\nmodel a \"A\"\nkind vae\n");
    if (k.code) fail_msg("%s", k.err.message);
    assert_int_equal(sfti_record_count(k.records), 6);
    sfti_arena_free(&k.arena);
}

/* A copy of a record, or of a file: what may stand once is left out, however it is spaced. */
static void copied_records(void **state) {
    static const char ours[] = "model b\n parent  a\nmodel a\n text b\n  none\n"
                               "quantisation q\n marks x\n marks y bits=4\n";
    (void)state;
    known k = read_two(ours, "quantisation q\n marks y  bits=4\nmodel a\n text b none\n"
                             " file w\n"
                             "model b\n parent a\n file z\n");
    if (k.code) fail_msg("%s", k.err.message);
    static const struct { const char *id; sfti_record_type type; unsigned rows; } records[] = {
        { "a", SFTI_MODEL, 2 }, { "b", SFTI_MODEL, 2 }, { "q", SFTI_QUANTISATION, 2 },
    };
    for (size_t i = 0; i < SFTI_COUNT(records); i++)
        assert_int_equal(sfti_record_find(k.records, records[i].type, s(records[i].id))->count,
                         records[i].rows);
    const sfti_record *b = sfti_record_find(k.records, SFTI_MODEL, s("b"));
    const sfti_record_row *row = sfti_record_row_of(k.records, b, SFTI_FILE_WORDS, NULL);
    assert_true(sfti_is(sfti_row_word(row), "z"));
    assert_true(sfti_rows(k.records, SFTI_FILE_WORDS, 0) != NULL);
    sfti_arena_free(&k.arena);
    refused_second(ours, "quantisation q\n marks z\n", "a word that a user's file may have");
    refused_second(ours, "model a\n text none b\n", "which one line 4 has as \"text b\"");
}

/* What two rows of clauses say of one another; the second may be one that never holds. */
static void rows_compared(void **state) {
    static const struct { const char *a, *b; sfti_overlap overlap; } cases[] = {
        { "x.weight", "x.weight", SFTI_OVERLAP_SAME },
        { "x.weight[3,4]", "x.weight", SFTI_OVERLAP_WITHIN },
        { "x.weight[3,4]", "x.weight[*,4]", SFTI_OVERLAP_WITHIN },
        { "x.weight[3]", "x.weight[3|4]", SFTI_OVERLAP_WITHIN },
        { "x.weight[3,4]", "x.weight[3]", SFTI_OVERLAP_NONE },
        { "x.weight[3]", "x.weight[4]", SFTI_OVERLAP_NONE },
        { "x.*", "x.y.*", SFTI_OVERLAP_AROUND },
        { "x.#.weight", "x.*", SFTI_OVERLAP_WITHIN },
        { "^x.weight", "x.weight", SFTI_OVERLAP_NONE },
        { "x | y", "x | y | z", SFTI_OVERLAP_WITHIN },
        { "x | y", "x | z", SFTI_OVERLAP_NONE },
        { "x\n  y", "x", SFTI_OVERLAP_WITHIN },
        { "x\n  !y", "x\n  !y | z", SFTI_OVERLAP_AROUND },
        { "x\n  !y.*", "x\n  !y.z", SFTI_OVERLAP_WITHIN },
        { "x\n  !y", "x\n  y", SFTI_OVERLAP_NONE },
    };
    static const struct { const char *clauses; bool never; } nevers[] = {
        { "x\n  !x", true }, { "x[3]\n  !x", true }, { "x\n  !x[3]", false },
        { "x.y\n  !x.*", true }, { "x | y\n  !x", false }, { "x | y\n  !x\n  !y", true },
        { "x[3]\n  x[4]", true }, { "x[3]\n  x[*]", false }, { "x[3]\n  x[3,4]", true },
        { "x.#.y[3]\n  x.#.y[4]", false }, { "x[3|4]\n  x[4]", false }, { "!x\n  !x", false },
    };
    sft_span why;
    uint64_t left = SFTI_COMPARE_STEPS;
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(cases); i++) {
        char text[256];
        snprintf(text, sizeof text, "kind vae\nmodel a\n tensors vae 1\n  %s\n"
                 "model b\n tensors vae 1\n  %s\n", cases[i].a, cases[i].b);
        known k = read_text(text);
        if (k.code) fail_msg("%s", k.err.message);
        const sfti_record_row *a = sfti_rows(k.records, SFTI_TENSORS, 0);
        sfti_overlap got = sfti_rows_overlap(k.records, a, sfti_rows_next(k.records, a), &left,
                                             &why);
        if (got != cases[i].overlap) fail_msg("%s: got %d", text, (int)got);
        assert_int_equal(sfti_rows_overlap(k.records, a, a, &left, &why), SFTI_OVERLAP_NONE);
        sfti_arena_free(&k.arena);
    }
    for (size_t i = 0; i < SFTI_COUNT(nevers); i++) {
        char text[256];
        snprintf(text, sizeof text, "kind vae\nmodel a\n tensors vae 1\n  %s\n",
                 nevers[i].clauses);
        known k = read_text(text);
        if (k.code) fail_msg("%s", k.err.message);
        if (sfti_row_never_holds(sfti_rows(k.records, SFTI_TENSORS, 0), &left, &why)
            != nevers[i].never)
            fail_msg("%s", text);
        sfti_arena_free(&k.arena);
    }
    known k = read_text("model a\n says civitai One Two\nmodel b\n parent a\n says civitai two\n"
                        "model c\n says civitai TWO*\n says civitai two\n says tag two\n");
    const sfti_record_row *a = sfti_rows(k.records, SFTI_SAYS, SFTI_SAYS_CIVITAI);
    const sfti_record_row *b = sfti_rows_next(k.records, a), *c = sfti_rows_next(k.records, b);
    /* b is of its child */
    assert_int_equal(sfti_rows_overlap(k.records, a, b, &left, &why), SFTI_OVERLAP_NONE);
    assert_int_equal(sfti_rows_overlap(k.records, a, c, &left, &why), SFTI_OVERLAP_NONE);
    assert_int_equal(sfti_rows_overlap(k.records, a, sfti_rows_next(k.records, c), &left, &why),
                     SFTI_OVERLAP_WORD);
    assert_true(sfti_is(why, "Two"));
    left = 6; /* for the first pair of words, not for the second */
    assert_int_equal(sfti_rows_overlap(k.records, a, sfti_rows_next(k.records, c), &left, &why),
                     SFTI_OVERLAP_NONE);
    assert_int_equal(left, 0);
    assert_true(sfti_is(sfti_row_written(k.records, c), "says civitai TWO*"));
    sfti_arena_free(&k.arena);
}

/* Through the public header: with what the library knows, and a place where it is wrong. */
static void opened(void **state) {
    sft_records_text texts[] = { { s("model mine\n    parent flux.1\n    tensors vae 90\n"
                                     "        a.weight\n"), "one.txt" },
                                 { s("model mine\n    file mine\n"), "two.txt" },
                                 { s("model sdxl\n    tensors vae\n        b\n"), "three.txt" } };
    sft_error err = SFT_ERROR_INIT;
    sft_records *records;
    size_t line, column;
    (void)state;
    assert_int_equal(sft_records_open(NULL, 0, NULL, &records, &err), SFT_OK);
    assert_int_equal(sfti_record_count(sfti_records_of(records)),
                     sfti_record_count(sfti_records_built_in()));
    sft_records_close(records);
    sft_records_close(NULL);
    assert_int_equal(sft_records_open(texts, 2, NULL, &records, &err), SFT_OK);
    const sfti_records *known = sfti_records_of(records);
    const sfti_record *mine = sfti_record_find(known, SFTI_MODEL, s("mine"));
    const sfti_record_row *row = sfti_record_row_of(known, mine, SFTI_TENSORS, NULL);
    assert_string_equal(sfti_records_place(known, row->at, &line, &column), "one.txt");
    assert_string_equal(sfti_row_kind(known, row), "vae");
    assert_true(sfti_begins(sfti_row_written(known, row), "tensors vae 90"));
    row = sfti_record_row_of(known, mine, SFTI_FILE_WORDS, NULL);
    assert_true(sfti_is(*sfti_row_source(known, row), "records:two.txt"));
    assert_true(sfti_is(*sfti_record_source(known, mine), "records:one.txt"));
    row = sfti_record_row_of(known, mine->parent, SFTI_VAES, NULL);
    assert_null(sfti_row_source(known, row));
    assert_true(sfti_begins(sfti_row_written(known, row), "vae "));
    sft_records_close(records);
    assert_int_equal(sft_records_open(texts, 3, NULL, &records, &err), SFT_BAD_ARGUMENT);
    assert_null(records);
    if (!strstr(err.message, "three.txt: line 2")) fail_msg("%s", err.message);
    static char name[100001];
    memset(name, 'n', sizeof name - 1);
    texts[2].name = name;
    assert_int_equal(sft_records_open(texts, 3, NULL, &records, &err), SFT_BAD_ARGUMENT);
    if (!strstr(err.message, "n: line 2, column 16: expected")) fail_msg("%s", err.message);
    sft_records_text many[300];
    for (size_t i = 0; i < 300; i++) many[i] = (sft_records_text){ s(""), "x" };
    assert_int_equal(sft_records_open(many, 300, NULL, &records, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_records_open(many, 254, NULL, &records, &err), SFT_OK);
    sft_records_close(records);
    /* What the library says itself, and how little of it may be said again. */
    texts[0].text = s("model flux.1\n vae none\n");
    assert_int_equal(sft_records_open(texts, 1, NULL, &records, &err), SFT_BAD_ARGUMENT);
    if (!strstr(err.message, "found \"vae none\", which the library has as \"vae ")) fail_msg("%s",
        err.message);
    static char much[(4 << 20) + 2];
    memset(much, '#', sizeof much - 1);
    texts[0].text = s(much);
    assert_int_equal(sft_records_open(texts, 1, NULL, &records, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "one.txt: expected records of at most 4 MiB in all files");
}

/* All that is wrong: once a line or row, and what stands below a record that was refused is passed
 * over; only so many are kept. */
static void all_faults(void **state) {
    (void)state;
    static const char bad[] = "modle x\n says any q\nkind vae\n teaches z\n  more\n class *A *A*B\n"
                              "model b\n vae nobody\n vae none\n tensors vae 101\n  x\n"
                              " tensors vae 100\n  x |\n  y\n file\nmodel p\n parent q\nmodel q\n"
                              " parent p\nmodel r\n parent p\n over r nobody nothing\n";
    static const struct { size_t line, column; const char *found; } told[] = {
        { 1, 1, "modle" }, { 4, 2, "teaches" }, { 9, 2, "vae none" }, { 10, 14, "101" },
        { 6, 11, "*A*B" }, { 8, 6, "nobody" }, { 13, 3, "x |" }, { 15, 6, "" },
        { 22, 9, "nobody" }, { 17, 9, "p > q > p" }, { 21, 9, "p" },
    };
    sfti_records_fault items[SFTI_COUNT(told)];
    for (size_t room = 0; room <= SFTI_COUNT(told); room++) {
        sfti_records_faults faults = { items, room, 0 };
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_records_text texts[] = { { s("kind vae\n"), "one", 0 }, { s(bad), "two", 0 } };
        const sfti_records *records;
        sft_error err = SFT_ERROR_INIT;
        assert_int_equal(sfti_records_read_all(&arena, texts, 2, &faults, &records, &err),
                         SFT_BAD_ARGUMENT);
        assert_int_equal(faults.count, SFTI_COUNT(told));
        assert_true(strstr(err.message, "two: line 1, column 1: expected a type of records"));
        for (size_t i = 0; i < room; i++) {
            assert_int_equal(items[i].text, 1);
            if (items[i].line != told[i].line || items[i].column != told[i].column
                || strcmp(items[i].found, told[i].found) != 0)
                fail_msg("%zu: line %zu, column %zu: \"%s\"", i, items[i].line, items[i].column,
                         items[i].found);
        }
        sfti_arena_free(&arena);
    }
    sft_records_text mine = { s("model b\n vae a b c nobody\nmodel c\n file\n"), "mine" };
    sfti_records_faults faults = { items, SFTI_COUNT(items), 0 };
    sft_records *opened;
    assert_int_equal(sfti_records_open_all(&mine, 1, NULL, &faults, &opened, NULL),
                     SFT_BAD_ARGUMENT);
    assert_null(opened);
    assert_int_equal(faults.count, 2);
    assert_int_equal(items[0].text, 0);
    assert_int_equal(items[1].line, 4);
    mine.text = s("model b\n file q\n");
    assert_int_equal(sfti_records_open_all(&mine, 1, NULL, &faults, &opened, NULL), SFT_OK);
    assert_int_equal(faults.count, 0);
    sft_records_close(opened);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_texts),
        cmocka_unit_test(copied_records),
        cmocka_unit_test(rows_compared),
        cmocka_unit_test(opened),
        cmocka_unit_test(all_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
