/* Links in prose, and words that a sentence introduces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "text/links.h"

static sft_span s(const char *text) {
    return sft_span_cstr(text);
}

static void next_links(void **state) {
    static const struct {
        const char *text, *link;
        uint64_t model_id, version_id;
        bool bare, air, of_another;
    } rows[] = {
        { "see (https://civitai.com/models/12/fox?modelVersionId=34).",
          "https://civitai.com/models/12/fox?modelVersionId=34", 12, 34, false, false, false },
        { "at www.civitai.com/api/download/models/77, free",
          "www.civitai.com/api/download/models/77", 0, 77, true, false, false },
        { "https://civitai.com/zh-CN/models/5 there", "https://civitai.com/zh-CN/models/5", 5, 0,
          false, false, false },
        { "trained on https://civitai.com/models/9", "https://civitai.com/models/9", 9, 0, false,
          false, true },
        { "A merge. Now https://civitai.com/models/9", "https://civitai.com/models/9", 9, 0, false,
          false, false },
        { "urn:air:sdxl:lora:civitai:123@456 is it", "urn:air:sdxl:lora:civitai:123@456", 123, 456,
          false, true, false },
        { "http://example.org/a_b_ and more", "http://example.org/a_b", 0, 0, false, false, false },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(rows); i++) {
        sfti_text_link link;
        size_t at = 0;
        assert_true(sfti_next_link(s(rows[i].text), &at, &link));
        assert_int_equal(link.text.len, strlen(rows[i].link));
        assert_memory_equal(link.text.data, rows[i].link, link.text.len);
        assert_int_equal(link.model_id, rows[i].model_id);
        assert_int_equal(link.version_id, rows[i].version_id);
        assert_int_equal(link.bare, rows[i].bare);
        assert_int_equal(link.type.len > 0, rows[i].air);
        assert_int_equal(link.of_another, rows[i].of_another);
        assert_false(sfti_next_link(s(rows[i].text), &at, &link));
    }
}

static void no_links(void **state) {
    static const char *const texts[] = { "", "http://", "air:a:b:c", "mycivitai.com/models/1",
                                         "you@civitai.com/models/1", "urn:air:sdxl:lora:hf:1" };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(texts); i++) {
        sfti_text_link link;
        size_t at = 0;
        assert_false(sfti_next_link(s(texts[i]), &at, &link));
    }
}

static void several_links(void **state) {
    sft_span text = s("https://a.org/x https://b.org/y civitai.com/models/3 air:x:lora:civitai:4");
    sfti_text_link link;
    size_t at = 0, count = 0;
    (void)state;
    for (; sfti_next_link(text, &at, &link); count++) assert_true(at <= text.len);
    assert_int_equal(count, 4);
    assert_int_equal(link.model_id, 4);
}

static void introduced_words(void **state) {
    static const struct { const char *text, *words; } rows[] = {
        { "Trigger words: fox, snow.", "fox, snow" }, { "trigger word is \"red fox\"!", "red fox" },
        { "use `sks dog` to trigger it", "sks dog" }, { "activation tag = neon", "neon" },
        { "trigger words: none needed", NULL }, { "no triggers here", NULL },
        { "the trigger word was lost", NULL }, { "Trigger: see http://x.org/a", NULL },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(rows); i++) {
        sft_span words = { "", 0 };
        size_t at = 0;
        bool found = sfti_next_introduced(s(rows[i].text), &at, &words);
        assert_int_equal(found, rows[i].words != NULL);
        if (found) assert_int_equal(words.len, strlen(rows[i].words));
        if (found) assert_memory_equal(words.data, rows[i].words, words.len);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_links), cmocka_unit_test(no_links), cmocka_unit_test(several_links),
        cmocka_unit_test(introduced_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
