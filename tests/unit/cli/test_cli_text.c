/* Text for people: words, numbers, columns of a terminal; JSON text that is looked at in place. */
#define _GNU_SOURCE /* of fileno */
#include "unit/command_case.h"
#include "support/models.h"
#include "support/raw.h"
#include "support/values.h"
#include "support/words.h"

#define SPAN(text) ((sft_span){ text, sizeof text - 1 })
#define ACUTE "\xCC\x81" /* over the letter before it */
#define TIMES_40(text) TIMES_8(text) TIMES_8(text) TIMES_8(text) TIMES_8(text) TIMES_8(text)
#define TIMES_8(text) text text text text text text text text
#define ELLIPSIS "\xE2\x80\xA6"
#define HAN "\xE6\xBC\xA2"

static void expect(sft_span asked, const char *wanted, const char *found) {
    if (strcmp(wanted, found) != 0)
        fail_msg("%.*s: expected \"%s\", found \"%s\"", (int)asked.len, asked.data, wanted, found);
}

/* ── Words ── */

static int sign_of(int way) { return (way > 0) - (way < 0); }

static void words_of_names(void **state) {
    static const struct { const char *a, *b; int way; } orders[] = {
        { "a.10", "a.9", 1 }, { "a.2.b", "a.10.a", -1 }, { "a", "a.b", -1 }, { "a.b", "a", 1 },
        { "a.b", "a.b", 0 }, { "", "a", -1 }, { "", "", 0 }, { "a.", "a", 1 }, { "b.a", "a.b", 1 },
    };
    static const struct { const char *text, *word; bool has; } loose[] = {
        { "flux.1 dev", "flux1", true }, { "flux1", "Flux.1", true }, { "sd 1.5", "sd15", false },
        { "sd15", "1.5", false }, { "My_Model-v2", "my model v2", true }, { "ab-", "b-", true },
        { "-ab", "-ab", true }, { "a b", "-b", true }, { "ab", "b-", false }, { "ab", "-b", false },
        { "a--b", "a-b", true }, { "ab", "abc", false }, { "a.b", "ab.", false }, { "", "a",
      false },
    };
    static const struct { const char *text; uint64_t most; bool fits; uint64_t value; }
    numbers[] = {
        { "0", 9, true, 0 }, { "18446744073709551615", UINT64_MAX, true, UINT64_MAX },
        { "18446744073709551616", UINT64_MAX, false, 0 }, { "99999999999999999999", UINT64_MAX,
          false, 0 }, { "", 9, false, 0 }, { "5", 4, false, 0 }, { "50", 4, false, 0 },
        { "5x", 9, false, 0 }, { "-1", 9, false, 0 }, { " 1", 9, false, 0 }, { "/", 9, false, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        assert_int_equal(sign_of(cli_dotted_compare(sft_span_cstr(orders[i].a),
                                                    sft_span_cstr(orders[i].b))), orders[i].way);
    for (size_t i = 0; i < sizeof loose / sizeof *loose; i++)
        if (cli_loose_has(sft_span_cstr(loose[i].text), sft_span_cstr(loose[i].word))
            != loose[i].has)
            fail_msg("\"%s\" in \"%s\": expected %d", loose[i].word, loose[i].text, loose[i].has);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t value;
        assert_int_equal(cli_parse_number(numbers[i].text, numbers[i].most, &value),
                         numbers[i].fits);
        if (numbers[i].fits) assert_int_equal(value, numbers[i].value);
    }
    assert_int_equal(cli_upper('a'), 'A');
    assert_int_equal(cli_upper('z'), 'Z');
    assert_int_equal(cli_upper('`'), '`');
    assert_int_equal(cli_upper('{'), '{');
    assert_int_equal(cli_cut(sft_span_cstr("a" HAN), 3).len, 1);
    assert_int_equal(cli_cut(sft_span_cstr(HAN), 2).len, 0);
    assert_int_equal(cli_cut(sft_span_cstr("a" HAN), 4).len, 4);
}

static void names_of_shards(void **state) {
    static const struct { const char *path; bool is; uint64_t shard, of; const char *base; }
    cases[] = {
        { "d/m-00002-of-00003.safetensors", true, 2, 3, "d/m" }, { "m-1-of-1.gguf",
      true, 1, 1, "m" },
        { "m.v2-01-of-12.bin", true, 1, 12, "m.v2" }, { "m-000001-of-100000.x",
      true, 1, 100000, "m" },
        { "m-00000-of-00003.x", false, 0, 0, NULL }, { "m-00004-of-00003.x", false, 0, 0, NULL },
        { "m-0000001-of-0000002.x", false, 0, 0, NULL }, { "m-00001-of-002.x", false, 0, 0, NULL },
        { "m-00001-of-00002", false, 0, 0, NULL }, { "m00001-of-00002.x", false, 0, 0, NULL },
        { "-00001-of-00002.x", false, 0, 0, NULL }, { "00001-of-00002.x", false, 0, 0, NULL },
        { "m-of-00002.x", false, 0, 0, NULL }, { "m-00001-at-00002.x", false, 0, 0, NULL },
        { "of-2.x", false, 0, 0, NULL }, { "m.x", false, 0, 0, NULL }, { "m", false, 0, 0, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t shard, of;
        sft_span base;
        if (cli_shard_of(cases[i].path, &shard, &of, &base) != cases[i].is)
            fail_msg("%s: expected %d", cases[i].path, cases[i].is);
        if (!cases[i].is) continue;
        assert_true(shard == cases[i].shard && of == cases[i].of && cli_is(base, cases[i].base));
    }
}

/* ── Numbers ── */

static void numbers_for_people(void **state) {
    static const struct { uint64_t value; const char *size, *count; } cases[] = {
        { 0, "0 B", "0" }, { 999, "999 B", "999" }, { 1000, "1.00 KB", "1.00 K" },
        { 9994, "9.99 KB", "9.99 K" }, { 9995, "10.0 KB", "10.0 K" }, { 99949, "99.9 KB",
      "99.9 K" },
        { 99950, "100 KB", "100 K" }, { 999499, "999 KB", "999 K" }, { 999500, "1.00 MB",
      "1.00 M" },
        { 1234567890, "1.23 GB", "1.23 B" }, { UINT64_C(999500000000000), "1.00 PB", "1000 T" },
        { UINT64_MAX, "18.4 EB", "18446744 T" },
    };
    static const struct { const char *text; uint64_t bytes; } sizes[] = {
        { "5GB", UINT64_C(5000000000) }, { "4.5 gib", UINT64_C(4831838208) }, { "1000", 1000 },
        { "1.5", 1 }, { "0.000001TB", 1000000 }, { "18446744073709551615", UINT64_MAX },
        { "0", 0 }, { "0.1", 0 }, { "1.0000001MB", 0 }, { "1.", 0 }, { ".5GB", 0 }, { "5XB", 0 },
        { "5  GB", 0 }, { "", 0 }, { "99999999999999999999", 0 }, { "18446744073709551616", 0 },
        { "18446744073709551615KB", 0 }, { "18446744.999999TB", 0 }, { "-5", 0 },
    };
    char buffer[CLI_NUMBER_SIZE], shape[CLI_SHAPE_SIZE];
    uint64_t dims[100], bytes;
    uint32_t count;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(cli_size_text(cases[i].value, buffer), cases[i].size);
        assert_string_equal(cli_count_text(cases[i].value, buffer), cases[i].count);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) { /* 0: refused */
        sft_error err = SFT_ERROR_INIT;
        sft_code code = cli_parse_size(sizes[i].text, &bytes, &err);
        if ((code == SFT_OK) != (sizes[i].bytes > 0) || (!code && bytes != sizes[i].bytes))
            fail_msg("%s: %d, %llu", sizes[i].text, code, (unsigned long long)bytes);
        if (code) assert_non_null(strstr(err.message, "expected a size such as 5GB"));
    }
    assert_int_equal(cli_parse_count("4294967295", "shards", &count, NULL), SFT_OK);
    assert_int_equal(count, UINT32_MAX);
    assert_int_equal(cli_parse_count("4294967296", "shards", &count, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(cli_parse_count("0", "shards", &count, NULL), SFT_BAD_ARGUMENT);

    for (size_t d = 0; d < 100; d++) dims[d] = UINT64_MAX;
    assert_int_equal(cli_shape_text(dims, 0, shape), 2);
    assert_string_equal(shape, "[]");
    size_t len = cli_shape_text(dims, 64, shape);
    assert_int_equal(len, 64 * 21 + 1);
    assert_string_equal(shape + len - 22, ",18446744073709551615]");
    len = cli_shape_text(dims, 100, shape);
    assert_in_range(len, 64 * 21 + 1, CLI_SHAPE_SIZE - 1);
    assert_string_equal(shape + len - 6, "5,...]");
}

static void dtypes_by_name(void **state) {
    static const struct { const char *list; bool known; uint32_t set; const char *says; }
    cases[] = {
        { "bf16", true, 1u << SFT_BF16, NULL }, { "fp16,e4m3fn", true, 1u << SFT_F16
          | 1u << SFT_F8_E4M3, NULL }, { "torch.float32", true, 1u << SFT_F32, NULL },
        { "torch.", false, 0, "found torch." }, { "", false, 0, "found none" },
        { "f16,,f32", false, 0, "found none" }, { "f15", false, 0, "did you mean" },
        { "wholly-unlike", false, 0, "found wholly-unlike" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_dtypes set;
        sft_error err = SFT_ERROR_INIT;
        assert_int_equal(cli_dtypes_read(cases[i].list, &set, &err) == SFT_OK, cases[i].known);
        if (cases[i].known) assert_int_equal(set, cases[i].set);
        else assert_non_null(strstr(err.message, cases[i].says));
    }
    cli_dtypes all;
    assert_int_equal(cli_dtypes_read(NULL, &all, NULL), SFT_OK);
    assert_true(cli_dtypes_has(all, SFT_F64) && cli_dtypes_has(all, SFT_F4));
}

/* ── Columns ── */

typedef struct width_case {
    sft_span text;
    size_t columns, tail;
    const char *cut, *ends; /* what cli_escaped_cut and cli_escaped_ends show */
} width_case;

static const width_case width_cases[] = {
    { SPAN("abcdef"), 6, 2, "abcdef", "abcdef" },
    { SPAN("abcdefgh"), 6, 2, "abcde" ELLIPSIS, "abc" ELLIPSIS "gh" },
    { SPAN("abcdefgh"), 3, 9, "ab" ELLIPSIS, ELLIPSIS "gh" },
    { SPAN("abcdefgh"), 1, 2, ELLIPSIS, ELLIPSIS },
    { SPAN("abcdefgh"), 3, 0, "ab" ELLIPSIS, "ab" ELLIPSIS },
    { SPAN(HAN HAN HAN HAN), 6, 2, HAN HAN ELLIPSIS, HAN ELLIPSIS HAN },
    { SPAN("e" ACUTE "fghijk"), 4, 1, "e" ACUTE "fg" ELLIPSIS, "e" ACUTE "f" ELLIPSIS "k" },
    /* a mark goes with its letter */
    { SPAN("abcdefghe" ACUTE "f"), 4, 1, "abc" ELLIPSIS, "ab" ELLIPSIS "f" },
    { SPAN("a\x1b" "b\xff"), 20, 2, "a\\x1bb\\xff", "a\\x1bb\\xff" },
};

static void widths_are_kept(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof width_cases / sizeof *width_cases; i++) {
        const width_case *one = &width_cases[i];
        size_t width = cli_escaped_cut(&command.out, one->text, one->columns);
        expect(one->text, one->cut, text_of(&command.out));
        if (one->columns < 20)
            assert_int_equal(width, cli_escaped_width(sft_span_cstr(one->cut)));
        width = cli_escaped_ends(&command.out, one->text, one->columns, one->tail);
        expect(one->text, one->ends, text_of(&command.out));
        assert_in_range(width, 1, one->columns);
    }
    /* marks without end have no width */
    sft_span flood = SPAN("ab" TIMES_40(ACUTE) TIMES_40(ACUTE));
    assert_int_equal(cli_escaped_width(flood), 2);
    assert_int_equal(cli_escaped_cut(&command.out, flood, 4), 3);
    assert_in_range(strlen(text_of(&command.out)), 5, 16 * 4 + 3);
    assert_in_range(cli_escaped_ends(&command.out, flood, 4, 1), 1, 4);
    assert_in_range(strlen(text_of(&command.out)), 5, 16 * 4 + 3);
    sft_span back = SPAN("abcdefgh" "i" TIMES_40(ACUTE) TIMES_40(ACUTE));
    assert_int_equal(cli_escaped_ends(&command.out, back, 4, 1), 3);
    expect(back, "ab" ELLIPSIS, text_of(&command.out));
    assert_int_equal(cli_escaped_ends(&command.out, SPAN("ab"), 0, 1), 0);
    assert_string_equal(text_of(&command.out), "");
}

static void cells_are_guarded(void **state) {
    static const struct { sft_span text; const char *guard; } cases[] = {
        { SPAN("=1+1"), "'" }, { SPAN("@x"), "'" }, { SPAN("\tx"), "'" }, { SPAN("\"x"), "'" },
        { SPAN("x=1"), "" }, { SPAN(""), "" }, { SPAN("\0=1"), "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_cell_guard(&command.out, cases[i].text);
        expect(cases[i].text, cases[i].guard, text_of(&command.out));
    }
    assert_string_equal(cli_bar(0), " ");
    assert_string_equal(cli_bar(1), "\xe2\x96\x88");
}

/* ── Lines of a terminal ── */

typedef struct fit_case {
    size_t columns, indent;
    const char *text, *lines;
} fit_case;

static const fit_case fits[] = {
    { 10, 2, "abc defghi jkl\n", "abc defghi\n  jkl\n" },
    { 10, 2, "abc  defgh\n\nx", "abc  defgh\n\nx\n" },
    { 10, 10, "abcd efgh ijk", "abcd efgh\nijk\n" }, /* an indent that leaves nothing is none */
    { 8, 0, "abcdefghijkl\n", "abcd" ELLIPSIS "jkl\n" },
    { 8, 0, "ab   \n", "ab\n" },
    { 4, 0, "          ab\n", "   " ELLIPSIS "\n" },
    { 7, 0, HAN HAN HAN HAN HAN HAN "\n", HAN ELLIPSIS HAN "\n" },
    { 4, 0, "e" ACUTE "fghijk" ACUTE "\n", "e" ACUTE "f" ELLIPSIS "k" ACUTE "\n" },
    { 4, 0, "abcde" ACUTE "fghi\n", "ab" ELLIPSIS "i\n" },
    { 4, 0, "\xff\xff\xff\xff\xff\n", "\xff\xff" ELLIPSIS "\xff\n" },
    /* colours take no room, and stay */
    { 8, 0, "\x1b[1mabcdefgh\x1b[0m i\n", "\x1b[1mabcdefgh\x1b[0m\ni\n" },
    { 8, 0, "\x1b[1mabcd\x1b[2mefghijkl\x1b[0m\n", "\x1b[1mabcd\x1b[2m" ELLIPSIS "jkl\x1b[0m\n" },
    { 8, 0, "abcdef\x1b[2mghijkl\n", "abcd" ELLIPSIS "\x1b[2mjkl\n" },
    { 8, 0, "ab \x1b[1\n", "ab \x1b[1\n" },
};

static void lines_fit(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++) {
        char found[512] = "";
        cli_fit fit;
        FILE *file = tmpfile();
        assert_non_null(file);
        cli_out_begin(&command.out, fileno(file));
        command.out.measured = true;
        command.out.columns = fits[i].columns;
        cli_fit_begin(&fit, &command, fits[i].indent);
        cli_text(&command.out, fits[i].text);
        cli_fit_end(&fit);
        assert_int_equal(cli_flush(&command.out), 0);
        rewind(file);
        found[fread(found, 1, sizeof found - 1, file)] = '\0';
        expect(sft_span_cstr(fits[i].text), fits[i].lines, found);
        fclose(file);
    }
    cli_out_begin(&command.out, 1);
    cli_capture(&command.out, &printed);
    cli_fit fit; /* captured: as long as they are */
    cli_fit_begin(&fit, &command, 2);
    cli_text(&command.out, "abcdefgh ijkl");
    cli_fit_end(&fit);
    assert_string_equal(text_of(&command.out), "abcdefgh ijkl");
}

/* ── JSON in place ── */

static void texts_are_json(void **state) {
    static const struct { sft_span text; bool is, pretty; } cases[] = {
        { SPAN("{\"a\":1}"), true, true }, { SPAN(" [1, 2]\n"), true, true },
        { SPAN("5"), true, false }, { SPAN("\"x\""), true, false }, { SPAN(""), false, false },
        { SPAN("{"), false, false }, { SPAN("[1] 2"), false, false },
        { SPAN("[1,]"), false, false },
        { SPAN("[\"\xff\"]"), false, false }, { SPAN("\0[1]"), false, false },
        { SPAN("  "), false, false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(cli_raw_check(cases[i].text), cases[i].is);
        assert_int_equal(cli_is_pretty(cases[i].text), cases[i].pretty);
    }
}

static void texts_on_lines(void **state) {
    static const struct { const char *text, *lines; } cases[] = {
        { "{'a':1,'b':[ true , null],'c':{ },'d':[]}",
          "{\n    \"a\": 1,\n    \"b\": [\n      true,\n      null\n    ],\n    \"c\": {},\n"
          "    \"d\": []\n  }" },
        { "['a,\\\"]\\\\','b']", "[\n    \"a,\\\"]\\\\\",\n    \"b\"\n  ]" },
        { "-1.5e3", "-1.5e3" }, { "[[1],2]", "[\n    [\n      1\n    ],\n    2\n  ]" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_pretty(&command.out, json_of(cases[i].text), 2);
        expect(sft_span_cstr(cases[i].text), cases[i].lines, text_of(&command.out));
    }
}

static void members_are_found(void **state) {
    sfti_arena arena = { .alloc = command.alloc };
    sft_span value, object = json_of("{'n':12,'m':-1,'s':'x','e':'a\\nb','u':'\\u0041',"
      "'o':{'n':3}}");
    uint64_t number;
    (void)state;
    assert_true(cli_raw_uint(object, "n", &number));
    assert_int_equal(number, 12);
    assert_false(cli_raw_uint(object, "m", &number));
    assert_false(cli_raw_uint(object, "s", &number));
    assert_false(cli_raw_uint(object, "z", &number));
    assert_true(cli_raw_string(object, "s", &value));
    assert_true(cli_is(value, "x"));
    assert_false(cli_raw_string(object, "e", &value));
    assert_false(cli_raw_string(object, "n", &value));
    assert_false(cli_raw_string(object, "z", &value));
    assert_true(cli_raw_text(object, "e", &arena, &value));
    assert_true(cli_is(value, "a\nb"));
    assert_true(cli_raw_text(object, "u", &arena, &value));
    assert_true(cli_is(value, "A"));
    assert_false(cli_raw_text(object, "n", &arena, &value));
    assert_false(cli_raw_text(object, "z", &arena, &value));
    assert_false(cli_raw_member(sft_span_cstr("[1]"), "n", &value));
    assert_false(cli_raw_member(sft_span_cstr(""), "n", &value));
    assert_true(cli_raw_has(object, sft_span_cstr("n"), sft_span_cstr("12")));
    assert_false(cli_raw_has(object, sft_span_cstr("n"), sft_span_cstr("1")));
    assert_false(cli_raw_has(object, sft_span_cstr("z"), sft_span_cstr("1")));
    cli_raw raw;
    cli_raw_begin(&raw, sft_span_cstr("7")); /* nothing is in it */
    assert_false(cli_raw_next(&raw));
    sfti_arena_free(&arena);
}

static bool keep_none(sft_span key, sft_span value) {
    (void)value;
    return !cli_is(key, "x");
}

static void objects_are_merged(void **state) {
    static const struct { const char *under, *over, *merged; bool covers; } cases[] = {
        { "{'a':1,'b':2}", "{'b':3}", "{'b':3,'a':1}", false },
        { "{'a':1,'b':2}", "{'b':2}", "{'b':2,'a':1}", true },
        { "{'a':{'x':1,'y':2}}", "{'a':{'y':2}}", "{'a':{'y':2}}", true },
        { "{'a':{'z':1,'y':2}}", "{'a':{'y':3}}", "{'a':{'y':3,'z':1}}", false },
        { "{'a':{'z':1}}", "{'a':[1]}", "{'a':[1]}", false },
        { "{'a':7}", "{'a':{'b':1}}", "{'a':{'b':1}}", false },
        { "{'x':1}", "{'n':1}", "{'n':1}", false }, /* x is not kept */
        { "{'a':{'b':{'c':{'d':{'e':1,'f':2}}}}}", "{'a':{'b':{'c':{'d':{'e':1}}}}}",
          "{'a':{'b':{'c':{'d':{'e':1}}}}}", false }, /* deeper than the levels: one value */
        { "{'a':{'b':{'c':{'d':1,'e':2}}}}", "{'a':{'b':{'c':{'d':1}}}}",
          "{'a':{'b':{'c':{'d':1,'e':2}}}}", true },
    };
    char under[512], over[512], many[2048] = "{\"k0\":0";
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sft_sink sink = sft_sink_memory(&printed);
        sfti_json_writer w;
        printed.len = 0;
        strcpy(under, json_of(cases[i].under).data);
        strcpy(over, json_of(cases[i].over).data);
        sfti_json_write(&w, &sink, 0, NULL);
        cli_raw_merge(&w, sft_span_cstr(under), sft_span_cstr(over), keep_none);
        assert_int_equal(sfti_json_done(&w), SFT_OK);
        expect(sft_span_cstr(over), json_of(cases[i].merged).data, text_of(&command.out));
        assert_int_equal(cli_raw_covers(sft_span_cstr(under), sft_span_cstr(over)),
                         cases[i].covers);
    }
    for (int k = 1; k < 70; k++) sprintf(many + strlen(many), ",\"k%d\":%d", k, k);
    strcat(many, "}");
    sft_sink sink = sft_sink_memory(&printed);
    sfti_json_writer w;
    printed.len = 0;
    sfti_json_write(&w, &sink, 0, NULL);
    strcpy(under, "{\"k69\":1,\"new\":2}");
    cli_raw_merge(&w, sft_span_cstr(under), sft_span_cstr(many), NULL);
    assert_int_equal(sfti_json_done(&w), SFT_OK);
    const char *merged = text_of(&command.out);
    assert_string_equal(merged + strlen(many) - 1, ",\"new\":2}");
    assert_memory_equal(merged, many, strlen(many) - 1);
}

static int set_up(void **state) {
    (void)state;
    begin_command();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    end_command();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_names),    cmocka_unit_test(names_of_shards),
        cmocka_unit_test(numbers_for_people),
        cmocka_unit_test(dtypes_by_name),    cmocka_unit_test(widths_are_kept),
        cmocka_unit_test(cells_are_guarded), cmocka_unit_test(lines_fit),
        cmocka_unit_test(texts_are_json),    cmocka_unit_test(texts_on_lines),
        cmocka_unit_test(members_are_found), cmocka_unit_test(objects_are_merged),
    };
    return cmocka_run_group_tests_name("text of the command", tests, set_up, tear_down);
}
