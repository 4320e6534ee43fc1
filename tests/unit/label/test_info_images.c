/* The prompts in PNG text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "label/info.h"
#include "label/reads.h"

static sft_info info;

static sft_span s(const char *text) { return sft_span_cstr(text); }

static int fresh(void **state) {
    (void)state;
    memset(&info, 0, sizeof info);
    info.arena.alloc = sfti_allocator(NULL);
    info.records = sfti_records_built_in();
    return 0;
}

static int done(void **state) {
    (void)state;
    sfti_arena_free(&info.arena);
    return info.code != SFT_OK;
}

#define SAME(span, text) do { \
        sft_span got_ = (span); \
        if (!sft_span_equal(got_, s(text))) \
            fail_msg("line %d: expected \"%s\", got \"%.*s\"", __LINE__, text, \
                     (int)got_.len, got_.data ? got_.data : ""); \
    } while (0)

/* ── PNG text ── */

typedef struct png { char bytes[8192]; size_t len; } png;

static void png_begin(png *p) {
    memcpy(p->bytes, "\x89PNG\r\n\x1A\n", 8);
    p->len = 8;
}

static void png_chunk(png *p, const char *type, const char *data, size_t len) {
    char head[8] = { 0, 0, (char)(len >> 8), (char)len, type[0], type[1], type[2], type[3] };
    memcpy(p->bytes + p->len, head, 8);
    memcpy(p->bytes + p->len + 8, data, len);
    memset(p->bytes + p->len + 8 + len, 0, 4);
    p->len += len + 12;
}

#define CHUNK(p, type, text) png_chunk(p, type, text, sizeof(text) - 1)

static sft_span whole(const png *p) { return (sft_span){ p->bytes, p->len }; }

static void parameters(void **state) {
    png p;
    (void)state;
    png_begin(&p);
    CHUNK(&p, "IHDR", "\0\0\1\0\0\0\2\0\x08\2\0\0\0");
    CHUNK(&p, "tEXt", "parameters\0caf\xE9, girl\n<lora:x:1>\nNegative prompt: bad,\nworse\n"
                      "Steps: 20, Sampler: Euler a, CFG scale: 7.5, Seed: 42, Size: 1x1");
    CHUNK(&p, "IEND", "");
    sfti_info_png_text(&info, whole(&p), s("sidecar:x.png"));
    const sfti_prompt *prompt = info.prompts.first;
    assert_int_equal(info.prompts.count, 1);
    SAME(prompt->positive, "caf\xC3\xA9, girl\n<lora:x:1>");
    SAME(prompt->negative, "bad,\nworse");
    SAME(prompt->seed, "42");
    SAME(prompt->steps, "20");
    SAME(prompt->sampler, "Euler a");
    SAME(prompt->cfg, "7.5");
    SAME(prompt->source, "sidecar:x.png");
}

#define GRAPH "{\"3\":{\"class_type\":\"KSampler\",\"inputs\":{\"seed\":5,\"steps\":20,\"cfg\":" \
    "8.0,\"sampler_name\":\"euler\",\"positive\":[\"9\",0],\"negative\":[\"7\",0]}}," \
    "\"9\":{\"class_type\":\"FluxGuidance\",\"inputs\":{\"conditioning\":[\"6\",0]}}," \
    "\"6\":{\"class_type\":\"CLIPTextEncode\",\"inputs\":{\"text\":\"a cat\"}}," \
    "\"7\":{\"class_type\":\"CLIPTextEncode\",\"inputs\":{\"text\":[\"8\",0]}}," \
    "\"8\":{\"class_type\":\"String\",\"inputs\":{\"string\":\"ugly\"}}}"

static void graphs(void **state) {
    png p;
    (void)state;
    png_begin(&p);
    CHUNK(&p, "iTXt", "prompt\0\0\0\0\0" GRAPH);
    CHUNK(&p, "iTXt", "workflow\0\0\0\0\0{\"nodes\":[]}");
    sfti_info_png_text(&info, whole(&p), s("x"));
    const sfti_prompt *prompt = info.prompts.first;
    assert_int_equal(info.prompts.count, 1);
    SAME(prompt->positive, "a cat");
    SAME(prompt->negative, "ugly");
    SAME(prompt->seed, "5");
    SAME(prompt->sampler, "euler");
    SAME(prompt->cfg, "8.0");
}

/* A graph's first sampler with a text, and what its links lead to. */
static void odd_graphs(void **state) {
#define SAMPLER(rest) "{\"1\":{\"inputs\":{\"sampler_name\":\"e\"," rest "}}"
    static const struct { const char *graph, *positive, *negative, *seed; } rows[] = {
        { SAMPLER("\"positive\":[\"2\",0],\"negative\":[\"9\",0],\"seed\":\"7\"") ",\"2\":{\"inpu"
          "ts\":{\"text\":\" a \","
          "\"text_g\":\"b\"}}}", "a", "", "7" },
        { SAMPLER("\"positive\":[2,0],\"seed\":true") ",\"2\":{\"inputs\":{\"text\":5,\"text_g\":"
          "\"b\"}}}", "b", "", "" },
        { SAMPLER("\"positive\":[\"9\",0]") "}", NULL, NULL, NULL },
        { SAMPLER("\"positive\":[\"2\",0]") ",\"2\":{\"inputs\":{}}}", NULL, NULL, NULL },
        { SAMPLER("\"positive\":[\"2\",0]") ",\"2\":7}", NULL, NULL, NULL },
        { SAMPLER("\"negative\":[\"2\",0]") ",\"2\":{\"inputs\":{\"text\":\"a\"}}}", NULL, NULL,
          NULL },
        { "{\"1\":{\"inputs\":{\"positive\":[\"2\",0]}},\"2\":{\"inputs\":{\"text\":\"a\"}}}",
          NULL, NULL, NULL },
        { SAMPLER("\"positive\":[\"2\",0],\"negative\":[\"2\",0]") ",\"2\":{\"inputs\":{\"positiv"
          "e\":[\"3\",0],"
          "\"negative\":[\"4\",0]}},\"3\":{\"inputs\":{\"text\":\"p\"}},\"4\":{\"inputs\":{\"text"
          "\":\"n\"}}}", "p", "n", "" },
        { SAMPLER("\"positive\":[\"2\",0]") ",\"2\":{\"inputs\":{\"text\":\"  \"}}}", NULL, NULL,
          NULL },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(rows); i++) {
        png p;
        size_t before = info.prompts.count;
        char text[1024];
        png_begin(&p);
        memcpy(text, "prompt", 7);
        strcpy(text + 7, rows[i].graph);
        png_chunk(&p, "tEXt", text, 7 + strlen(rows[i].graph));
        sfti_info_png_text(&info, whole(&p), s("x"));
        if (info.prompts.count != before + (rows[i].positive != NULL)) fail_msg("%s",
            rows[i].graph);
        if (!rows[i].positive) continue;
        const sfti_prompt *prompt = info.prompts.last;
        SAME(prompt->positive, rows[i].positive);
        SAME(prompt->negative, rows[i].negative);
        SAME(prompt->seed, rows[i].seed);
    }
}

/* No more nodes, steps along links, texts and pictures than there may be. */
static void large_graphs(void **state) {
    static char text[1 << 16];
    png p;
    (void)state;
    for (int far = 6; far < 9; far++) { /* links from the sampler to the text */
        size_t at = (size_t)snprintf(text, sizeof text,
                     "prompt%c{\"s\":{\"inputs\":{\"sampler_name\":\"e\","
                                     "\"positive\":[\"1\",0]}}", 0);
        for (int i = 1; i <= far; i++)
            at += (size_t)snprintf(text + at, sizeof text - at,
                   ",\"%d\":{\"inputs\":{\"conditioning\":[\"%d\",0]}}", i, i + 1);
        at += (size_t)snprintf(text + at, sizeof text - at,
               ",\"%d\":{\"inputs\":{\"text\":\"a\"}}}", far + 1);
        size_t before = info.prompts.count;
        png_begin(&p);
        png_chunk(&p, "tEXt", text, at);
        sfti_info_png_text(&info, whole(&p), s("x"));
        assert_int_equal(info.prompts.count, before + (far < 8));
    }
    sft_span picture = s("R0lGODlhAwAFAA==");
    for (int i = 0; i < 70; i++) sfti_info_preview(&info, picture, s("x"));
    size_t kept = info.previews.count;
    sfti_info_preview(&info, picture, s("x"));
    assert_true(kept > 0 && kept < 70);
    assert_int_equal(info.previews.count, kept);
}

static void graphs_that_go_nowhere(void **state) {
    png p;
    (void)state;
    png_begin(&p);
    CHUNK(&p, "tEXt", "prompt\0{\"1\":{\"inputs\":{\"sampler_name\":\"e\",\"positive\":"
                      "[\"1\",0]}}}");
    sfti_info_png_text(&info, whole(&p), s("x"));
    png_begin(&p);
    CHUNK(&p, "tEXt", "prompt\0no json");
    CHUNK(&p, "tEXt", "parameters\0just a text");
    CHUNK(&p, "tEXt", "Parameters\0a\nSteps: 2");
    CHUNK(&p, "tEXt", "parameters");
    CHUNK(&p, "iTXt", "parameters\0\0\0");
    CHUNK(&p, "IEND", "");
    CHUNK(&p, "tEXt", "parameters\0late\nSteps: 2");
    sfti_info_png_text(&info, whole(&p), s("x"));
    sfti_info_png_text(&info, s("not a PNG"), s("x"));
    assert_int_equal(info.prompts.count, 0);
}

static void cut_anywhere(void **state) {
    png p;
    (void)state;
    png_begin(&p);
    CHUNK(&p, "tEXt", "parameters\0a\nSteps: 2");
    CHUNK(&p, "zTXt", "prompt\0\0x\x9C\x03\0\0\0\0\1");
    CHUNK(&p, "iTXt", "prompt\0\1\0\0\0x\x9C\x03\0\0\0\0\1");
    CHUNK(&p, "tEXt", "prompt\0" GRAPH);
    for (size_t len = 0; len <= p.len; len++) {
        char *exact = malloc(len ? len : 1);
        memcpy(exact, p.bytes, len);
        sfti_info_png_text(&info, (sft_span){ exact, len }, s("x"));
        free(exact);
        assert_true(info.prompts.count <= 16);
    }
    p.bytes[8] = (char)0xFF; /* a length of 4 GiB */
    size_t before = info.prompts.count;
    sfti_info_png_text(&info, whole(&p), s("x"));
    assert_int_equal(info.prompts.count, before);
}

static void packed(void **state) {
    png p; /* zlib of "a dog\nSteps: 9, Seed: 1" */
    (void)state;
    if (strstr(sft_build_info(), "zlib: no")) skip();
    png_begin(&p);
    CHUNK(&p, "zTXt", "parameters\0\0"
          "\x78\x9c\x4b\x54\x48\xc9\x4f\xe7\x0a\x2e\x49\x2d\x28\xb6\x52\xb0\xd4\x51\x08\x4e"
          "\x4d\x4d\xb1\x52\x30\x04\x00\x55\x95\x06\xc0");
    sfti_info_png_text(&info, whole(&p), s("x"));
    const sfti_prompt *prompt = info.prompts.first;
    assert_int_equal(info.prompts.count, 1);
    SAME(prompt->positive, "a dog");
    SAME(prompt->seed, "1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parameters, fresh, done),
        cmocka_unit_test_setup_teardown(graphs, fresh, done),
        cmocka_unit_test_setup_teardown(odd_graphs, fresh, done),
        cmocka_unit_test_setup_teardown(large_graphs, fresh, done),
        cmocka_unit_test_setup_teardown(graphs_that_go_nowhere, fresh, done),
        cmocka_unit_test_setup_teardown(cut_anywhere, fresh, done),
        cmocka_unit_test_setup_teardown(packed, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
