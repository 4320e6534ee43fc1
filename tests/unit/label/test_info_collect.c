/* Collecting facts. */
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

/* Lists that are one, that are none, and more than is kept of anything. */
static void no_more_than_is_kept(void **state) {
    sft_info *info = fresh();
    sft_span items[2] = { s("a"), s("b") };
    const sfti_fact_value list = { SFTI_LIST, { "", 0 }, items, 2 }, one = { SFTI_LIST, { "", 0 },
        items, 1 },
                     other = { SFTI_LIST, { "", 0 }, items + 1, 1 }, none = { SFTI_LIST, { "", 0 },
                         NULL, 0 };
    (void)state;
    assert_null(sfti_info_add(info, SFT_FACT_TAGS, none, s("x"), 50));
    assert_non_null(sfti_info_add(info, SFT_FACT_TAGS, list, s("x"), 50));
    assert_null(sfti_info_add(info, SFT_FACT_TAGS, list, s("x"), 50));
    assert_non_null(sfti_info_add(info, SFT_FACT_TAGS, one, s("x"), 50));
    assert_non_null(sfti_info_add(info, SFT_FACT_TAGS, other, s("x"), 50));
    assert_non_null(sfti_info_add(info, SFT_FACT_TAGS, sfti_text_value(s("a")), s("x"), 50));
    sfti_info_train(info, TRAIN_TEXT_ENCODER_LR, none);
    assert_false(info->has_training);
    sfti_info_train(info, TRAIN_TEXT_ENCODER_LR, list);
    sfti_info_train(info, TRAIN_TEXT_ENCODER_LR, sfti_number_value(s("1")));
    assert_int_equal(info->training[TRAIN_TEXT_ENCODER_LR].count, 2);
    size_t facts = 0, items_kept = 0;
    for (int i = 0; i < 5000; i++) {
        sft_span n = sfti_info_text(info, "%d", i);
        facts += sfti_info_add(info, SFT_FACT_NAME, sfti_text_value(n), s("x"), 50) != NULL;
        sfti_info_add_item(info, SFT_FACT_LANGUAGE, n, s("x"), 50);
    }
    items_kept = info->facts[SFT_FACT_LANGUAGE]->value.count;
    assert_true(facts > 1 && facts < 5000 && items_kept > 40 && items_kept < 5000);
    sfti_info_note(info, s(" None "), s("x"));
    assert_int_equal(info->notes.count, 0);
    sft_span hex;
    assert_false(sfti_info_hash(info, s("12345678"), 0, &hex) || sfti_info_hash(info, s("12"), 65,
                 &hex));
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_keep_what_is_one), cmocka_unit_test(lists),
        cmocka_unit_test(no_more_than_is_kept), cmocka_unit_test(training_is_set_once),
                         cmocka_unit_test(claims_are_hashes),
        cmocka_unit_test(long_texts), cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
