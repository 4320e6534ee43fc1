/* Collecting facts, the text helpers, HTML to plain text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "label/info.h"

static sft_span s(const char *text) { return sft_span_cstr(text); }

static sft_info *fresh(void) {
    static sft_info info;
    memset(&info, 0, sizeof info);
    info.arena.alloc = sfti_allocator(NULL);
    info.records = sfti_records_built_in();
    return &info;
}

static void done(sft_info *info) {
    assert_int_equal(info->code, SFT_OK);
    sfti_arena_free(&info->arena);
}

#define SAME(span, text) do { \
        sft_span got_ = (span); \
        if (!sft_span_equal(got_, s(text))) \
            fail_msg("expected \"%s\", got \"%.*s\"", text, (int)got_.len, got_.data); \
    } while (0)

/* ── Text ── */

static void pieces_and_letters(void **state) {
    sft_span rest = s("a,,b,"), piece;
    (void)state;
    SAME(sfti_trim(s(" \t a b\r\n")), "a b");
    assert_true(sfti_next_piece(&rest, ',', &piece));
    SAME(piece, "a");
    assert_true(sfti_next_piece(&rest, ',', &piece));
    SAME(piece, "");
    assert_true(sfti_next_piece(&rest, ',', &piece));
    SAME(piece, "b");
    assert_false(sfti_next_piece(&rest, ',', &piece));
    assert_true(sfti_same_letters(s("SdXL"), "sdxl"));
    assert_false(sfti_same_letters(s("sdxl1"), "sdxl"));
    assert_true(sfti_contains(s("the ILLUStrious one"), "illustrious"));
    assert_false(sfti_contains(s("illustriou"), "illustrious"));
    assert_true(sfti_starts_with(s("Flux.1"), "flux"));
    assert_true(sfti_ends_with(s("a.SafeTensors"), ".safetensors"));
    assert_false(sfti_ends_with(s("tensors"), ".safetensors"));
}

static void numbers(void **state) {
    uint64_t n = 7;
    double d = 7;
    (void)state;
    assert_true(sfti_parse_uint(s(" 18446744073709551615 "), &n) && n == UINT64_MAX);
    assert_false(sfti_parse_uint(s("18446744073709551616"), &n));
    assert_false(sfti_parse_uint(s("-1"), &n) || sfti_parse_uint(s(""), &n));
    assert_true(sfti_parse_double(s("5e-05"), &d) && d == 5e-05);
    assert_true(sfti_parse_double(s("1690000000.123456"), &d) && d == 1690000000.123456);
    assert_true(sfti_parse_double(s("-0.5"), &d) && d == -0.5);
    assert_true(sfti_parse_double(s("1."), &d) && d == 1);
    assert_true(sfti_parse_double(s(".25"), &d) && d == 0.25);
    assert_true(sfti_parse_double(s("1e-400"), &d) && d == 0);
    assert_true(sfti_parse_double(s("3e-310"), &d) && d > 0 && d < 1e-300);
    assert_false(sfti_parse_double(s("inf"), &d) || sfti_parse_double(s("nan"), &d));
    assert_false(sfti_parse_double(s("1e999"), &d) || sfti_parse_double(s("."), &d));
    assert_false(sfti_parse_double(s("1 2"), &d));
    assert_true(sfti_is_number(s("-1.5e3")) && sfti_is_number(s("0")));
    assert_false(sfti_is_number(s("01")) || sfti_is_number(s("1.")) || sfti_is_number(s("")));
}

/* ── Collecting ── */

static void facts_keep_what_is_one(void **state) {
    static const char *const nothing[] = { "", "  ", "None", "null", "NONE", "NOFILE", "nan",
                                           "undefined", "IsADirectory", "(unknown)" };
    sft_info *info = fresh();
    (void)state;
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        sfti_info_add_text(info, SFT_FACT_NAME, s(nothing[i]), s("x"), 50);
    assert_null(info->facts[SFT_FACT_NAME]);
    sfti_info_add_text(info, SFT_FACT_NAME, s(" Nona "), s("a"), 50);
    sfti_info_add_text(info, SFT_FACT_NAME, s("Nona"), s("a"), 50);
    sfti_info_add_text(info, SFT_FACT_NAME, s("Nona"), s("b"), 60);
    SAME(info->facts[SFT_FACT_NAME]->value.text, "Nona");
    assert_non_null(info->facts[SFT_FACT_NAME]->next);
    assert_null(info->facts[SFT_FACT_NAME]->next->next);
    assert_int_equal(sfti_info_best(info, SFT_FACT_NAME)->trust, 60);
    assert_null(sfti_info_best(info, SFT_FACT_DATE));
    assert_string_equal(sft_fact_name(SFT_FACT_QUANTIZATION), "quantization");
    assert_string_equal(sft_fact_name(SFT_FACT_FAMILY), "family");
    assert_null(sft_fact_name((sft_fact)SFT_FACT_COUNT));
    done(info);
}

static void lists(void **state) {
    sft_info *info = fresh();
    (void)state;
    sfti_info_add_commas(info, SFT_FACT_TAGS, s("style, city,,style, cyberpunk "), s("a"), 85);
    assert_int_equal(info->facts[SFT_FACT_TAGS]->value.count, 3);
    SAME(info->facts[SFT_FACT_TAGS]->value.items[2], "cyberpunk");
    sfti_info_add_commas(info, SFT_FACT_LANGUAGE, s(", ,"), s("a"), 85);
    assert_null(info->facts[SFT_FACT_LANGUAGE]);
    for (int i = 0; i < 40; i++)
        sfti_info_add_item(info, SFT_FACT_TAGS, sfti_info_text(info, "tag %d", i), s("b"), 95);
    assert_int_equal(info->facts[SFT_FACT_TAGS]->next->value.count, 40);
    SAME(info->facts[SFT_FACT_TAGS]->next->value.items[39], "tag 39");
    assert_null(info->facts[SFT_FACT_TAGS]->next->next);
    done(info);
}

static void training_is_set_once(void **state) {
    sft_info *info = fresh();
    (void)state;
    sfti_info_train(info, TRAIN_EPOCH, sfti_text_value(s("None")));
    sfti_info_train(info, TRAIN_SEED, sfti_text_value(s("many")));
    assert_false(info->has_training);
    sfti_info_train(info, TRAIN_EPOCH, sfti_text_value(s("10")));
    sfti_info_train(info, TRAIN_EPOCH, sfti_text_value(s("11")));
    sfti_info_train(info, TRAIN_COMMENT, sfti_number_value(s("12")));
    assert_true(info->has_training);
    assert_int_equal(info->training[TRAIN_EPOCH].type, SFTI_NUMBER);
    SAME(info->training[TRAIN_EPOCH].text, "10");
    assert_int_equal(info->training[TRAIN_COMMENT].type, SFTI_TEXT);
    done(info);
}

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SHA "0xAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static void claims_are_hashes(void **state) {
    sft_info *info = fresh();
    (void)state;
    sfti_info_claim(info, "sshs_model", s(EMPTY), s("x"), NULL);
    sfti_info_claim(info, "sshs_legacy", s("e3b0c442"), s("x"), NULL);
    sfti_info_claim(info, "autov1", s("00000000"), s("x"), NULL);
    sfti_info_claim(info, "autov1", s("1234567g"), s("x"), NULL);
    sfti_info_claim(info, "autov1", s("123456789"), s("x"), NULL);
    sfti_info_claim(info, "sha512", s("12345678"), s("x"), NULL);
    assert_int_equal(info->claims.count, 0);
    sfti_info_claim(info, "sshs_model", s(SHA), s("x"), "why");
    sfti_info_claim(info, "sshs_model", s(SHA), s("x"), "why");
    assert_int_equal(info->claims.count, 1);
    const sfti_claim *claim = info->claims.first;
    assert_int_equal(claim->value.len, 64);
    assert_int_equal(claim->value.data[0], 'a');
    assert_string_equal(claim->known, "why");
    done(info);
}

static void long_texts(void **state) {
    char long_text[1000];
    sft_info *info = fresh();
    (void)state;
    memset(long_text, 'x', sizeof long_text);
    sft_span made = sfti_info_text(info, "%.*s!", (int)sizeof long_text, long_text);
    assert_int_equal(made.len, 1001);
    assert_int_equal(made.data[1000], '!');
    SAME(sfti_info_join(info, "header:", s("k")), "header:k");
    done(info);
}

static void *no_memory(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx, (void)ptr, (void)old_size, (void)new_size;
    return NULL;
}

static void memory_runs_out(void **state) {
    sft_info info;
    (void)state;
    memset(&info, 0, sizeof info);
    info.arena.alloc.resize = no_memory;
    sfti_info_add_text(&info, SFT_FACT_NAME, s("n"), s("x"), 1);
    assert_int_equal(info.code, SFT_OUT_OF_MEMORY);
    sfti_info_note(&info, s("n"), s("x"));
    sfti_info_trigger(&info, s("n"), s("x"), 1, -1);
    SAME(sfti_plain_text(&info, s("<p>a</p>")), "");
    SAME(sfti_info_text(&info, "%d", 1), "");
    assert_null(info.facts[SFT_FACT_NAME]);
}

/* ── HTML ── */

static const struct { const char *html, *plain; } pages[] = {
    { "", "" },
    { "plain\ntext <3 & more\n\n\n\nend", "plain\ntext <3 & more\n\nend" },
    { "a &amp; b &lt;c&gt; &#65;&#x42; &eacute;&hellip; &bogus; &", "a & b <c> AB é… &bogus; &" },
    { "<p>First</p><p>Second</p>", "First\n\nSecond" },
    { "<p>First</p>\n\n  <p>Second\nline</p>", "First\n\nSecond line" },
    { "a<br>b<br/>c<br><br><br><br>d", "a\nb\nc\n\nd" },
    { "<ul><li>one</li><li>two</li></ul>x", "- one\n- two\nx" },
    { "<p>see</p><ul><li><p>one</p></li></ul>", "see\n- one" },
    { "<a href=\"https://x.org/?a=1&amp;b=2\">here</a>!", "here (https://x.org/?a=1&b=2)!" },
    { "<a href='https://x.org'>https://x.org</a>", "https://x.org" },
    { "<a href=\"https://x.org/?a&amp;b\">https://x.org/?a&amp;b</a>", "https://x.org/?a&b" },
    { "<a name=x>no</a> <a href=\"#top\">up</a>", "no up" },
    { "a<script>alert('<p>x</p>')</script>b<style>p{}</style>c", "abc" },
    { "a<script>never ends", "a" },
    { "<b>bold</b> <i>x</i><img src=\"a>b\">y", "bold xy" },
    { "a<!-- <p>no</p> -->b", "ab" },
    { "1 < 2 <b>and</b> 3 > 2", "1 < 2 and 3 > 2" },
    { "<p>open <a href=\"https://x.org", "open <a href=\"https://x.org" },
    { "&#0;&#xD800;&#99999999;", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" },
    { "<div>a</div><div>b</div>", "a\nb" },
    { "<h1>T</h1><p>x&nbsp;y</p>", "T\n\nx y" },
};

static void html(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        sft_info *info = fresh();
        SAME(sfti_plain_text(info, s(pages[i].html)), pages[i].plain);
        done(info);
    }
}

static void html_is_bounded(void **state) {
    size_t len = (size_t)8 << 20;
    char *big = malloc(len);
    sft_info *info = fresh();
    (void)state;
    assert_non_null(big);
    for (size_t i = 0; i < len; i++) big[i] = "\xC3\xA9"[i % 2];
    sft_span plain = sfti_plain_text(info, (sft_span){ big, len });
    assert_int_equal(plain.len, 65536 + 3);
    assert_memory_equal(plain.data + 65536, "\xE2\x80\xA6", 3);
    for (size_t i = 0; i < len; i++) big[i] = "<a"[i % 2];
    assert_int_equal(sfti_plain_text(info, (sft_span){ big, len }).len, 65536 + 3);
    big[len - 1] = '>';
    sfti_plain_text(info, (sft_span){ big, len });
    for (size_t i = 0; i < len; i++) big[i] = "<b=\"\">"[i % 6];
    SAME(sfti_plain_text(info, (sft_span){ big, (size_t)3 << 20 }), "");
    free(big);
    done(info);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_and_letters), cmocka_unit_test(numbers),
        cmocka_unit_test(facts_keep_what_is_one), cmocka_unit_test(lists),
        cmocka_unit_test(training_is_set_once), cmocka_unit_test(claims_are_hashes),
        cmocka_unit_test(long_texts), cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(html), cmocka_unit_test(html_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
