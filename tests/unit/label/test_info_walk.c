/* Walking JSON by tables: patterns, order, what a row reads on, Python's NaN, hostile text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "label/cursor.h"
#include "text/walk.h"

static sft_info info;
static char seen[4096]; /* "pointer=text;" of all that was taken */

static void see(sfti_cursor *walk) {
    size_t at = strlen(seen);
    const char *word = walk->row->word ? walk->row->word : "";
    snprintf(seen + at, sizeof seen - at, "%s%s[%lld]%.*s=%.*s;", word, walk->pointer,
             (long long)walk->index, (int)walk->key.len, walk->key.data, (int)walk->text.len,
             walk->text.data);
}

static void read_on(sfti_cursor *walk) {
    see(walk);
    sfti_json_skip(walk->json);
}

static void read_some(sfti_cursor *walk) {
    see(walk);
    sfti_json_next(walk->json);
    sfti_json_next(walk->json);
}

static bool walk(const char *text, const sfti_row *rows, size_t count) {
    memset(&info, 0, sizeof info);
    info.arena.alloc = sfti_allocator(NULL);
    info.records = sfti_records_built_in();
    memset(seen, 0, sizeof seen);
    return sfti_info_walk(&info, sft_span_cstr(text), sft_span_cstr("sidecar:x"), rows, count,
                          NULL);
}

static void end(void) {
    assert_int_equal(info.code, SFT_OK);
    sfti_arena_free(&info.arena);
}

#define WALK(text, rows) walk(text, rows, sizeof(rows) / sizeof *(rows))

static const sfti_row some_rows[] = {
    { "/a/b", see, 0, 0, NULL },
    { "/list/*", see, 0, 0, NULL },
    { "/files/*/hashes/SHA256", see, 0, 0, NULL },
    { "/a/b", see, 0, 0, "again" },
    { "/x~y/m", see, 0, 0, NULL },
};

static void patterns(void **state) {
    (void)state;
    assert_true(WALK("{\"z\":{\"b\":0},\"list\":[1,[2],\"t\\u00e9\",null],\"a\":{\"c\":9,"
                     "\"b\":true},\"files\":[{},{\"hashes\":{\"SHA256\":\"ab\","
                     "\"SHA2567\":1}}],\"A\":3,\"x~y\":{\"m\":1}}", some_rows));
    assert_string_equal(seen,
        "/list/0[0]0=1;/list/1[1]1=[;/list/2[2]2=t\xC3\xA9;/list/3[3]3=null;"
        "/a/b[-1]b=true;again/a/b[-1]b=true;"
        "/files/1/hashes/SHA256[1]SHA256=ab;/x~0y/m[-1]m=1;");
    end();
}

/* Of members with one key Python has the last, whatever it is and however the key is spelled. */
static void the_last_of_a_key(void **state) {
    static const sfti_row rows[] = { { "/*", see, 0, 0, NULL }, { "/a/b", see, 0, 0, NULL } };
    (void)state;
    assert_true(WALK("{\"a\":{\"b\":1},\"b\":2,\"\\u0062\":[3],\"c\":4,"
                     "\"a\":{\"b\":5,\"b\":6},\"b\":7}", rows));
    assert_string_equal(seen, "/c[-1]c=4;/a[-1]a={;/a/b[-1]b=6;/b[-1]b=7;");
    end();
    assert_true(WALK("[{\"b\":1},{\"b\":2}]", rows));
    end();
    char text[4096] = "{";
    for (int i = 0; i < 60; i++)
        snprintf(text + strlen(text), 64, "\"k%d\":%d,", i % 20, i);
    strcat(text, "\"a\":0}");
    assert_true(walk(text, rows, 2));
    assert_ptr_equal(strstr(seen, "k"), strstr(seen, "k0[-1]k0=40;"));
    assert_non_null(strstr(seen, "/k19[-1]k19=59;/a[-1]a=0;"));
    end();
}

static void escaped_keys(void **state) {
    static const sfti_row rows[] = { { "/*/k", see, 0, 0, NULL } };
    (void)state;
    assert_true(WALK("{\"\\u0061/b~\":{\"\\u006b\":1,\"K\":2},\"\\u0000\":{\"k\":3}}", rows));
    assert_string_equal(seen, "/a~1b~0/k[-1]k=1;/?/k[-1]k=3;");
    end();
}

static void rows_that_read_on(void **state) {
    static const sfti_row whole[] = { { "/o", read_on, 0, 0, NULL },
                                           { "/o/x", see, 0, 0, NULL },
                                           { "/p", see, 0, 0, NULL } };
    static const sfti_row part[] = { { "/o", read_some, 0, 0, NULL },
                                          { "/o/x", see, 0, 0, NULL },
                                          { "/p", see, 0, 0, NULL } };
    const char *text = "{\"o\":{\"y\":[[1]],\"x\":2},\"p\":[3]}";
    (void)state;
    assert_true(WALK(text, whole));
    assert_string_equal(seen, "/o[-1]o={;/p[-1]p=[;");
    end();
    assert_true(WALK(text, part));
    assert_string_equal(seen, "/o[-1]o={;/p[-1]p=[;");
    end();
}

static void roots(void **state) {
    static const sfti_row rows[] = { { "", see, 0, 0, NULL }, { "/*", see, 0, 0, NULL } };
    (void)state;
    assert_true(WALK("[1,2]", rows));
    assert_string_equal(seen, "[-1]=[;/0[0]0=1;/1[1]1=2;");
    end();
    assert_true(WALK("\xEF\xBB\xBF \"x\" ", rows));
    assert_string_equal(seen, "[-1]=x;");
    end();
}

static void index_of_the_innermost_array(void **state) {
    static const sfti_row rows[] = { { "/*/a/*/b", see, 0, 0, NULL },
                                          { "/*/c", see, 0, 0, NULL } };
    (void)state;
    assert_true(WALK("[{},{\"a\":[{\"b\":1},{\"b\":2}],\"c\":3}]", rows));
    assert_string_equal(seen, "/1/a/0/b[0]b=1;/1/a/1/b[1]b=2;/1/c[1]c=3;");
    end();
}

static void python_writes_nan(void **state) {
    static const sfti_row rows[] = { { "/*", see, 0, 0, NULL } };
    (void)state;
    assert_true(WALK("{\"a\":NaN,\"b\":[-Infinity, Infinity],\"NaN\":\"NaN \\\" Infinity\","
                     "\"c\":-1}", rows));
    assert_string_equal(seen, "/a[-1]a=null;/b[-1]b=[;/NaN[-1]NaN=NaN \" Infinity;"
                              "/c[-1]c=-1;");
    end();
    assert_false(WALK("{\"a\":NaNa}", rows));
    end();
    assert_false(WALK("{\"a\":Inf}", rows));
    assert_string_equal(seen, "");
    end();
}

static void not_json(void **state) {
    static const char *const texts[] = { "", " ", "{", "{\"a\":1", "{\"a\":1}x", "{'a':1}",
                                         "{\"a\":1,}", "{\"a\":\"\xFF\"}", "<html>",
                                         "{\"a\":\"\\ud800\"}", "{\"a\":NaN,\"b\":\"x",
                                         "[NaN,\"x\\", "{\"a\":NaN,\"b\":\"x\\\"" };
    static const sfti_row rows[] = { { "/a", see, 0, 0, NULL } };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(WALK(texts[i], rows));
        assert_string_equal(seen, "");
        end();
    }
}

static sft_code count_values(sfti_walk *walk, size_t row) {
    ++*(size_t *)walk->ctx;
    return row > 0 ? SFT_CANCELLED : SFT_OK;
}

static bool passes_numbers(const sfti_walk *walk) {
    return walk->json.type == SFTI_JSON_UINT;
}

/* What ends a walk, what it passes over, and what it does not begin with. */
static void begun_and_ended(void **state) {
    static const sfti_row rows[257] = { { "/a", see, 0, 0, NULL }, { "/b", see, 0, 0, NULL } };
    static const struct {
        const char *text;
        size_t count;
        bool passes;
        size_t taken;
        sft_code code;
    } cases[] = {
        { "{\"a\":1,\"b\":\"x\"}", 1, false, 1, SFT_OK },
        { "{\"a\":1,\"b\":\"x\"}", 2, false, 2, SFT_CANCELLED },
        { "{\"a\":1,\"a\":\"x\"}", 1, true, 1, SFT_OK }, { "\"Infinity NaN\"", 1, false, 0,
          SFT_OK },
        { "[Infinity]", 1, false, 0, SFT_OK }, { "{\"a\":1}", 257, false, 0, SFT_CANCELLED }, { "",
          1, false, 0, SFT_CANCELLED },
    };
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(cases); i++) {
        size_t taken = 0;
        sft_code code = SFT_OK;
        sfti_walk one = { .arena = &arena, .rows = rows, .stride = sizeof *rows,
            .count = cases[i].count, .ctx = &taken,
                          .take = count_values, .passes_over = cases[i].passes ? passes_numbers
                              : NULL };
        bool done = sfti_walk_json(&one, sft_span_cstr(cases[i].text), &code);
        assert_int_equal(done, cases[i].code == SFT_OK);
        assert_int_equal(taken, cases[i].taken);
        if (taken > 0) assert_int_equal(code, cases[i].code);
        else assert_int_equal(code, SFT_OK);
        code = SFT_IO_READ; /* one that failed before goes on with nothing */
        assert_false(sfti_walk_json(&one, sft_span_cstr(cases[i].text), &code));
        assert_int_equal(taken, cases[i].taken);
    }
    sfti_arena_free(&arena);
}

/* A value that is no text, number or such is taken by none of the common ways. */
static void takes_of_other_types(void **state) {
    static const sfti_row rows[] = {
        { "/name", sfti_take_fact, SFT_FACT_NAME, 95, NULL }, { "/tags/*", sfti_take_item,
          SFT_FACT_TAGS, 95, NULL },
        { "/about", sfti_take_html, SFT_FACT_DESCRIPTION, 90, NULL }, { "/epoch", sfti_take_train,
          TRAIN_EPOCH, 0, NULL },
        { "/words/*", sfti_take_trigger, 0, 95, NULL }, { "/hash", sfti_take_claim, 0, 0,
          "autov3" },
        { "/note", sfti_take_note, 0, 0, NULL }, { "/prose", sfti_take_prose, SFT_FACT_DESCRIPTION,
          90, "words" },
        { "/prediction", sfti_take_prediction, 0, 90, NULL }, { "/base", sfti_take_base_file, 0,
          90, NULL },
    };
    (void)state;
    assert_true(WALK("{\"name\":[],\"tags\":[{},null],\"about\":1,\"epoch\":{},\"words\":[1,[\"w"
                "\"]],\"hash\":5,\"note\":true,"
                     "\"prose\":7,\"prediction\":8,\"base\":9}", rows));
    for (int i = 0; i < SFT_FACT_COUNT; i++) assert_null(info.facts[i]);
    assert_int_equal(info.triggers.count + info.claims.count + info.notes.count, 0);
    assert_false(info.has_training);
    end();
    assert_true(WALK("{\"prose\":\"Trigger word: fox\",\"prediction\":\"V_Prediction\",\"base\":"
                "\"a/fox.ckpt\"}", rows));
    assert_int_equal(info.triggers.count, 1);
    assert_true(sft_span_equal(info.facts[SFT_FACT_BASE_CHECKPOINT]->value.text,
                sft_span_cstr("a/fox.ckpt")));
    end();
}

static void depth_and_size(void **state) {
    static const sfti_row rows[] = { { "/*", see, 0, 0, NULL },
                                          { "/*/*/*/*/end", see, 0, 0, NULL } };
    char deep[600];
    (void)state;
    for (size_t depth = 120; depth <= 140; depth++) {
        memset(deep, '[', depth);
        memset(deep + depth, ']', depth);
        deep[2 * depth] = '\0';
        assert_int_equal(WALK(deep, rows), depth <= 127);
        end();
    }
    size_t len = (size_t)20 << 20;
    char *big = malloc(len);
    assert_non_null(big);
    memset(big, 'k', len);
    memcpy(big, "{\"a\":{\"", 7);
    memcpy(big + len - 5, "\":1}}", 5);
    memset(&info, 0, sizeof info);
    info.arena.alloc = sfti_allocator(NULL);
    info.records = sfti_records_built_in();
    static const sfti_row one[] = { { "/a/*", see, 0, 0, "k" } };
    memset(seen, 0, sizeof seen);
    assert_true(sfti_info_walk(&info, (sft_span){ big, len }, sft_span_cstr("h"), one, 1, NULL));
    assert_true(strlen(seen) > 200);
    assert_memory_equal(seen, "k/a/k", 5);
    free(big);
    end();
}

static void ready_made_takes(void **state) {
    static const sfti_row rows[] = {
        { "/name", sfti_take_fact, SFT_FACT_NAME, 95, NULL },
        { "/nsfw", sfti_take_fact, SFT_FACT_NSFW, 95, NULL },
        { "/tags/*", sfti_take_item, SFT_FACT_TAGS, 95, NULL },
        { "/about", sfti_take_html, SFT_FACT_DESCRIPTION, 90, NULL },
        { "/epoch", sfti_take_train, TRAIN_EPOCH, 0, NULL },
        { "/words/*", sfti_take_trigger, 0, 95, NULL },
        { "/hash", sfti_take_claim, 0, 0, "autov3" },
        { "/note", sfti_take_note, 0, 0, NULL },
    };
    (void)state;
    assert_true(WALK("{\"name\":\"N\",\"nsfw\":false,\"tags\":[\"a\",1,\"b\"],"
                     "\"about\":\"<p>x</p>\",\"epoch\":4,\"words\":[\"w\",\"\",\"v, u\"],"
                     "\"hash\":\"0123456789AB\",\"note\":\"n\"}", rows));
    const sfti_fact *fact = info.facts[SFT_FACT_NAME];
    assert_true(sft_span_equal(fact->source, sft_span_cstr("sidecar:x:/name")));
    assert_int_equal(fact->trust, 95);
    assert_int_equal(info.facts[SFT_FACT_NSFW]->value.type, SFTI_BOOL);
    fact = info.facts[SFT_FACT_TAGS];
    assert_int_equal(fact->value.count, 2);
    assert_true(sft_span_equal(fact->source, sft_span_cstr("sidecar:x:/tags")));
    assert_true(sft_span_equal(info.facts[SFT_FACT_DESCRIPTION]->value.text,
                               sft_span_cstr("x")));
    assert_int_equal(info.training[TRAIN_EPOCH].type, SFTI_NUMBER);
    const sfti_trigger *word = info.triggers.first;
    assert_int_equal(info.triggers.count, 2);
    assert_int_equal(word->group, 0);
    assert_int_equal(word->next->group, 2);
    assert_true(sft_span_equal(word->next->source, sft_span_cstr("sidecar:x:/words/2")));
    assert_int_equal(info.claims.count, 1);
    assert_int_equal(info.notes.count, 1);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns), cmocka_unit_test(escaped_keys),
        cmocka_unit_test(the_last_of_a_key),
        cmocka_unit_test(rows_that_read_on), cmocka_unit_test(roots),
        cmocka_unit_test(index_of_the_innermost_array), cmocka_unit_test(python_writes_nan),
        cmocka_unit_test(not_json), cmocka_unit_test(depth_and_size),
        cmocka_unit_test(ready_made_takes), cmocka_unit_test(begun_and_ended),
        cmocka_unit_test(takes_of_other_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
