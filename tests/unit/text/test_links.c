/* Links in prose, words that a sentence introduces, names of files and repositories. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "text/links.h"
#include "text/stems.h"

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
        { "A merge.\rhttps://civitai.com/models/9", "https://civitai.com/models/9", 9, 0, false,
          false, false },
        { "merge\\n https://civitai.com/models/9", "https://civitai.com/models/9", 9, 0, false,
          false,
          false },
        { "merge! Yes? <b>https://civitai.red/models/9", "https://civitai.red/models/9", 9, 0,
          false,
          false, false },
        { "merge.it \\ ?https://civitai.com/models/9\x7F", "https://civitai.com/models/9", 9, 0,
          false,
          false, true },
        { "submerge, debase: https://civitai.com/api/v1/models/7?x",
          "https://civitai.com/api/v1/models/7?x", 7, 0, false, false, false },
        { "https://en.wikipedia.org/wiki/Fox_(animal))",
          "https://en.wikipedia.org/wiki/Fox_(animal)",
          0, 0, false, false, false },
        { "http://www.civitai.com/api/v1/model-versions/8",
          "http://www.civitai.com/api/v1/model-versions/8", 0, 8, false, false, false },
        { "https://civitai.com/de/model-versions/8", "https://civitai.com/de/model-versions/8", 0,
          8,
          false, false, false },
        { "https://civitai.com/zh_CN/models/5", "https://civitai.com/zh_CN/models/5", 0, 0, false,
          false, false },
        /* "，…", "和…", "。" */
        { "https://civitai.com/models/9\xEF\xBC\x8C\xE8\xA7\x81", "https://civitai.com/models/9", 9,
          0, false, false, false },
        { "https://civitai.com/models/9\xE5\x92\x8C",
          "https://civitai.com/models/9\xE5\x92\x8C", 9, 0, false, false, false },
        { "urn:air:sd1:lora:civitai:1@23\xE3\x80\x82", "urn:air:sd1:lora:civitai:1@23", 1, 23,
          false, true, false },
        { "https://civitai.com/models/5x?modelVersionId=3",
          "https://civitai.com/models/5x?modelVersionId=3", 0, 0, false, false, false },
        { "https://civitai.com/models/99999999999999999999",
          "https://civitai.com/models/99999999999999999999", 0, 0, false, false, false },
        { "https://civitai.com/user/a", "https://civitai.com/user/a", 0, 0, false, false, false },
        { "air:sd_1.5-x:lora:CivitAI:7!", "air:sd_1.5-x:lora:CivitAI:7", 7, 0, false, true, false },
        { "http://example.org/a_b_ and more", "http://example.org/a_b", 0, 0, false, false, false },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(rows); i++) {
        sfti_text_link link;
        size_t at = 0;
        if (!sfti_next_link(s(rows[i].text), &at, &link)) fail_msg("%s", rows[i].text);
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
                                         "you@civitai.com/models/1", "urn:air:sdxl:lora:hf:1",
                                         "urn:air:a::civitai:1", "urn:air:a:b c:civitai:1",
                                         "urn:air:a:b:civitai", "urn:air:a:b:civitai:x",
                                         "air:a{b:c:civitai:1", "https://a", "http:////",
                                         "civitai.org/models/1", "www.civitai.com",
                                         "/civitai.com/models/1", "-civitai.com/models/1",
                                         "{ivitai.com", "xhttp://a.org/b" };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(texts); i++) {
        sfti_text_link link;
        size_t at = 0;
        if (sfti_next_link(s(texts[i]), &at, &link)) fail_msg("%s", texts[i]);
    }
}

/* What no name of an AIR is, and how much of an address is read. */
static void long_links(void **state) {
    char text[3000];
    sfti_text_link link;
    size_t at = 0;
    (void)state;
    snprintf(text, sizeof text, "air:%065d:lora:civitai:1", 0);
    assert_false(sfti_next_link(s(text), &at, &link));
    snprintf(text, sizeof text, "http://a.org/%02500d", 0);
    assert_true(sfti_next_link(s(text), &at, &link));
    assert_int_equal(link.text.len, 2048);
}

static void addresses(void **state) {
    static const struct { const char *url; uint64_t model_id, version_id; } rows[] = {
        { " civitai.com/models/3?modelVersionId=4 ", 3, 4 }, { "https://civitai.com/models/x", 0,
          0 },
        { "civitai.green/api/download/models/5", 0, 5 }, { "https://example.org/models/3", 0, 0 },
        { "", 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(rows); i++) {
        uint64_t model_id, version_id;
        assert_int_equal(sfti_civitai_address(s(rows[i].url), &model_id, &version_id),
                         rows[i].model_id || rows[i].version_id);
        assert_int_equal(model_id, rows[i].model_id);
        assert_int_equal(version_id, rows[i].version_id);
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
        { "Triggers \xE2\x80\x9Cred fox\xE2\x80\x9D", NULL },
        { "Trigger: \xE2\x80\x9Cred fox\xE2\x80\x9D", "red fox" },
        { "trigger is isolated", "isolated" }, { "trigger isolated", NULL }, { "triggered: fox",
          NULL },
        { "trigger: \"fox", "\"fox" }, { "trigger: fox; snow", "fox" }, { "trigger: fox<br>",
          "fox" },
        { "trigger: fox\rsnow", "fox" }, { "trigger: v1.5 fox.", "v1.5 fox" },
        { "\xE8\xAF\x8Dtrigger word\xEF\xBC\x9A fox\xE3\x80\x82", "fox" },
        { "trigger: fox\xE3\x80\x82Use", "fox" }, { "(trigger: fox\xEF\xBC\x89", "fox" },
        { "trigger: fox. Use", "fox" }, { "trigger: ' , *`fox`*_", "' , *`fox" },
        { "trigger are **fox**", "fox" }, { "trigger:", NULL }, { "trigger: *`", NULL },
        { "trigger \xC3\xA9: fox", NULL }, { "use \"fox\" for fun", NULL },
        { "use fox to trigger", NULL }, { "used \"fox\" to trigger", NULL }, { "xtrigger: fox",
          NULL },
        { "trigger: \"none\"", "none" }, { "the trigger word was lost", NULL },
          { "Trigger: see http://x.org/a", NULL },
        { "No trigger word: works", NULL }, { "without any trigger: fox", NULL },
        { "**No** trigger word: fox", NULL }, { "Piano trigger: fox", "fox" },
        { "trigger: use the name", NULL },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(rows); i++) {
        sft_span words = { "", 0 };
        size_t at = 0;
        bool found = sfti_next_introduced(s(rows[i].text), &at, &words);
        if (found != (rows[i].words != NULL)
            || (found && !sft_span_equal(words, s(rows[i].words))))
            fail_msg("%s: %d, %.*s", rows[i].text, found, (int)words.len, words.data);
    }
}

/* Words that are too far for a sentence are none. */
static void long_words(void **state) {
    char text[700];
    sft_span words;
    (void)state;
    for (int of = 0; of < 2; of++)
        for (int len = 199; len < 203; len++) {
            size_t at = 0;
            snprintf(text, sizeof text, "trigger: %s%0*d%s.", of ? "'" : "", len, 0, of ? "'" : "");
            assert_int_equal(sfti_next_introduced(s(text), &at, &words), len < 201);
        }
    snprintf(text, sizeof text, "trigger: %0500d", 0);
    size_t at = 0;
    assert_false(sfti_next_introduced(s(text), &at, &words));
}

/* ── Names of files and repositories ── */

static void names_of_files(void **state) {
    static const struct { const char *name, *stem; } stems[] = {
        { "a.b.SAFETENSORS", "a.b" }, { "a.sft", "a" }, { "a.b.ckpt", "a.b" },
        { ".hidden", ".hidden" }, { "a", "a" }, { "", "" },
    };
    static const struct { const char *name, *base; } shards[] = {
        { "a-00001-of-00003.b", "a" }, { "a-1-of-2-of-3", "a" }, { "a-x-2-of-3", "a-x" },
        { "a-1-of-x", NULL }, { "a-1-to-2x", NULL }, { "a-1-of", NULL }, { "a1-of-00", NULL },
        { "abcdef-1", NULL }, { "-1-of-2", "" },
    };
    static const char *const generic[] = { "Model", "adapter_model.fp16",
        "pytorch_lora_weights_rank4",
                                           "checkpoint-500", "model-00001-of-00003", "lora_step10",
                                           "model-" };
    static const char *const telling[] = { "fox", "model_fox", "fox-500", "steps4", "model.fp16x" };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(stems); i++)
        assert_true(sft_span_equal(sfti_stem(s(stems[i].name)), s(stems[i].stem)));
    for (size_t i = 0; i < SFTI_COUNT(shards); i++) {
        size_t begin, total, end;
        bool found = sfti_shard_number(s(shards[i].name), &begin, &total, &end);
        if (found != (shards[i].base != NULL)) fail_msg("%s: %d", shards[i].name, found);
        if (found) assert_int_equal(begin, strlen(shards[i].base));
    }
    for (size_t i = 0; i < SFTI_COUNT(generic); i++)
        if (!sfti_generic_stem(s(generic[i]))) fail_msg("%s", generic[i]);
    for (size_t i = 0; i < SFTI_COUNT(telling); i++)
        if (sfti_generic_stem(s(telling[i])) || !sfti_telling_stem(s(telling[i])))
            fail_msg("%s", telling[i]);
    assert_false(sfti_telling_stem(s("x-1")) || sfti_telling_stem(s("model")));
}

static void names_of_repositories(void **state) {
    static const struct { const char *path, *repo; } caches[] = {
        { "/hub/models--a--b/snapshots/1f", "a/b" }, { "models--a--b--c//snapshots", "a/b--c" },
        { "models--gpt2/snapshots/x", "gpt2" }, { "models--/snapshots/x", "" },
        { "models--a--b/refs/main", "" }, { "datasets--a--b/snapshots/x", "" },
        { "snapshots/models--a--b", "" }, { "", "" },
    };
    static const struct { const char *url, *repo; bool inner; } urls[] = {
        { "hf://a/b", "a/b", false }, { "hf://models/a/b@main", "a/b", false },
        { "HF://a/b/c.sft", "a/b", true }, { "hf://a/b@refs/pr/1", "a/b", false },
        { "hf://a", "", false }, { "hf://", "", false }, { "hf:///b", "", false },
        { "hf://a/@x", "", false }, { "hf://datasets/a/b", "", true }, { "https://a/b", "", false },
    };
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(caches); i++) {
        sft_span repo = sfti_repo_of_cache(&arena, s(caches[i].path));
        if (!sft_span_equal(repo, s(caches[i].repo)))
            fail_msg("%s: %.*s", caches[i].path, (int)repo.len, repo.data);
    }
    for (size_t i = 0; i < SFTI_COUNT(urls); i++) {
        bool inner;
        sft_span repo = sfti_repo_of_url(s(urls[i].url), &inner);
        if (!sft_span_equal(repo, s(urls[i].repo)) || (repo.len > 0 && inner != urls[i].inner))
            fail_msg("%s: %.*s, %d", urls[i].url, (int)repo.len, repo.data, inner);
    }
    sfti_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_links), cmocka_unit_test(no_links), cmocka_unit_test(several_links),
        cmocka_unit_test(introduced_words), cmocka_unit_test(long_words),
        cmocka_unit_test(long_links), cmocka_unit_test(addresses),
        cmocka_unit_test(names_of_files), cmocka_unit_test(names_of_repositories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
