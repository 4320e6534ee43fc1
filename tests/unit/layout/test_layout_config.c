/* The config.json of a component, by what its part says of tensors: each form of a value, and what
 * leaves it unwritten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layout/layout.h"

#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
/* 4 x 3, 2 and 5 elements: 19. */
#define KNOWN "class C\npublished 19\n"
#define CLASS "{\"_class_name\":\"C\""

static const uint64_t shapes[] = { 4, 3, 2, 5 };
static const sft_part made[] = {
    { { { "y.weight", 8 }, SFT_F32, 2, shapes }, NULL, 0 },
    { { { "z.0.w", 5 }, SFT_F32, 1, shapes + 2 }, NULL, 0 },
    { { { "z.1.w", 5 }, SFT_F32, 1, shapes + 3 }, NULL, 0 },
};

/* Lines of the part, and of the model "m" behind an empty line; says: the text, or NULL: none. */
static const struct { const char *lines, *says; } cases[] = {
    { KNOWN "config a 1", CLASS ",\"a\":1}" },
    { KNOWN "config a \"x y\"\nconfig b true\nconfig c null\nconfig d -1.5\nconfig e .5",
      CLASS ",\"a\":\"x y\",\"b\":true,\"c\":null,\"d\":-1.5,\"e\":.5}" },
    { KNOWN "config a false", CLASS ",\"a\":false}" },
    { KNOWN "config a", NULL },
    { KNOWN "config a abc", NULL },
    { KNOWN "config a 5[0]", NULL },
    { KNOWN "config a has(y.weight)\nconfig b has(q)", CLASS ",\"a\":true,\"b\":false}" },
    { KNOWN "config a has(y.weight", NULL },
    { KNOWN "config a has", NULL },
    { KNOWN "config a hat(y.weight)", NULL },
    { KNOWN "config a count(z.#.w)", CLASS ",\"a\":2}" },
    { KNOWN "config a count(y)", NULL }, /* y.weight is no y */
    { KNOWN "config a count(q.#)", NULL },
    { KNOWN "config a y.weight[0]\nconfig b y.weight[1]", CLASS ",\"a\":4,\"b\":3}" },
    { KNOWN "config a y.weight[2]", NULL },
    { KNOWN "config a y.weight[x]", NULL },
    { KNOWN "config a y.weight[]", NULL },
    { KNOWN "config a q.weight[0]", NULL },
    { KNOWN "config a [0]", CLASS ",\"a\":[0]}" },
    { KNOWN "config a y.weight[0]/z.0.w[0]", CLASS ",\"a\":2}" },
    { KNOWN "config a y.weight[0]/y.weight[1]", NULL }, /* 4 by 3 */
    { KNOWN "config a y.weight[0]/q[0]", NULL },
    { KNOWN "config a y.weight[0]/", NULL },
    { KNOWN "config a q[0]/y.weight[0]", NULL },
    { KNOWN "config a [y.weight[0],1,\"x\"]", CLASS ",\"a\":[4,1,\"x\"]}" },
    { KNOWN "config a [y.weight[0],q[0],1]", NULL },
    { KNOWN "config a []", CLASS ",\"a\":[]}" },
    { KNOWN "config a [", NULL },
    { KNOWN "config? a y.weight[0]\nconfig? b q[0]\nconfig c 1", CLASS ",\"a\":4,\"c\":1}" },
    /* of a model */
    { KNOWN "config a model\nconfig b 2\n\nmodel m P\nconfig unet a 7\nconfig vae a 8",
      CLASS ",\"a\":7,\"b\":2}" },
    { KNOWN "config a model\n\nmodel m P\nconfig unet c 9\nconfig unet a 7",
      CLASS ",\"c\":9,\"a\":7}" },
    { KNOWN "config a model\n\nmodel m P\nconfig unet c 9", NULL },
    { KNOWN "config a model\n\nmodel m P\nconfig vae a 8", NULL },
    { KNOWN "config a model", NULL },
    /* of models that are not known */
    { "class C\npublished 20\nconfig a 1", NULL },
    { "class C\nconfig a 1", NULL },
    { "class C\npublished 18\npublished 19 y.weight[4,3]\nconfig a 1", CLASS ",\"a\":1}" },
    { "class C\npublished 19 y.weight[3,4]\nconfig a 1", NULL },
    { KNOWN, NULL },
    { KNOWN "class D y.weight[4,3]\nconfig a 1", NULL },
    { KNOWN "class D y.weight[4,4]\nconfig a 1", CLASS ",\"a\":1}" },
};

static void writes_values(void **unused) {
    size_t failed = 0;
    (void)unused;
    for (size_t i = 0; i < COUNT(cases); i++) {
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_layout_text layouts;
        sfti_layout_out out;
        sft_buffer text = { 0 };
        char lines[1024];
        bool certain = false;
        size_t at = (size_t)snprintf(lines, sizeof lines, "part a b\n ");
        for (const char *c = cases[i].lines; *c; c++) {
            lines[at++] = *c;
            if (*c == '\n' && c[1] && c[1] != '\n' && strncmp(c + 1, "model", 5) != 0)
                lines[at++] = ' ';
        }
        assert_int_equal(sfti_layouts_of_text(&arena, (sft_span){ lines, at }, &layouts, NULL),
                         SFT_OK);
        sfti_layout_out_begin(&out, NULL);
        for (size_t k = 0; k < COUNT(made); k++)
            assert_int_equal(sfti_layout_out_add(&out, (sft_span){ "", 0 }, made[k].spec.name,
                                                 &made[k].spec, &made[k], NULL), SFT_OK);
        sfti_layout_group one = { .part = layouts.parts, .name = { "unet", 4 },
                                  .made = COUNT(made) };
        assert_int_equal(sfti_layout_config(&layouts,
                                            layouts.model_count ? layouts.models : NULL, &one, &out,
                                            &text, &certain, NULL), SFT_OK);
        sft_span says = sft_span_cstr(cases[i].says ? cases[i].says : "");
        sft_span found = { text.data ? text.data : "", text.len };
        bool fine = cases[i].says ? certain && sft_span_equal(found, says) : !certain;
        if (!fine)
            print_error("%s\n  expected %s\n  found %d %.*s\n", cases[i].lines, says.data, certain,
                        (int)found.len, found.data);
        failed += !fine;
        one.made = 0;
        assert_int_equal(sfti_layout_config(&layouts, NULL, &one, &out, &text, &certain, NULL),
                         SFT_OK);
        assert_false(certain);
        sft_buffer_free(&text);
        sfti_layout_out_free(&out);
        sfti_arena_free(&arena);
    }
    assert_int_equal(failed, 0);
}

/* A size whose product no 64 bits hold is no known model's. */
static void refuses_a_great_size(void **unused) {
    static const char lines[] = "part a b\n class C\n published 0\n config a 1\n";
    static const uint64_t great[] = { 0, UINT64_C(1) << 63, 2, UINT64_MAX };
    static const struct { uint32_t rank, first; size_t count; bool certain; } sizes[] = {
        { 3, 0, 1, true }, { 2, 1, 1, false }, { 1, 3, 2, false },
    };
    (void)unused;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_layout_text layouts;
        sfti_layout_out out;
        sft_buffer text = { 0 };
        bool certain = true;
        assert_int_equal(sfti_layouts_of_text(&arena, sft_span_cstr(lines), &layouts, NULL),
        SFT_OK);
        sfti_layout_out_begin(&out, NULL);
        sft_spec spec = { { "w", 1 }, SFT_F32, sizes[i].rank, great + sizes[i].first };
        for (size_t k = 0; k < sizes[i].count; k++)
            assert_int_equal(sfti_layout_out_add(&out, (sft_span){ "", 0 }, spec.name, &spec, NULL,
                                                 NULL), SFT_OK);
        sfti_layout_group one = { .part = layouts.parts, .name = { "unet", 4 },
                                  .made = sizes[i].count };
        assert_int_equal(sfti_layout_config(&layouts, NULL, &one, &out, &text, &certain, NULL),
                         SFT_OK);
        assert_int_equal(certain, sizes[i].certain);
        sft_buffer_free(&text);
        sfti_layout_out_free(&out);
        sfti_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_values), cmocka_unit_test(refuses_a_great_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
