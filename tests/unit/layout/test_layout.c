/* Layouts of models: the text, what is wrong in one, names, tensors. What diffusers' converters
 * make is in tests/layout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layout/layout.h"

#include <stdlib.h>
#include <string.h>

#define LONG_65 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LONG_260 LONG_65 LONG_65 LONG_65 LONG_65
#define MANY_13 "a,a,a,a,a,a,a,a,a,a,a,a,a"
#define MANY_65 MANY_13 "," MANY_13 "," MANY_13 "," MANY_13 "," MANY_13

static sft_span span(const char *text) {
    return (sft_span){ text, strlen(text) };
}

static sft_code reads(const char *text, sfti_arena *arena, sfti_layout_text *out) {
    sft_error err = SFT_ERROR_INIT;
    return sfti_layouts_of_text(arena, span(text), out, &err);
}

/* ── The text ── */

static void reads_its_own(void **unused) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_layout_text layouts;
    (void)unused;
    assert_int_equal(sfti_layouts_built_in(&arena, &layouts, NULL), SFT_OK);
    assert_true(layouts.part_count > 20 && layouts.model_count > 15 && layouts.hold_count > 10);
    for (size_t i = 0; i < layouts.part_count; i++) {
        const sfti_naming_part *part = &layouts.parts[i];
        assert_true(part->marks[SFTI_ORIGINAL].len > 0 && part->marks[SFTI_DIFFUSERS].len > 0);
        assert_true(part->count > 0 || part->like);
        assert_ptr_equal(sfti_layout_part_named(&layouts, part->id), part);
    }
    for (size_t i = 1; i < layouts.prefix_count; i++)
        assert_true(layouts.prefixes[i - 1].len >= layouts.prefixes[i].len);
    for (size_t i = 0; i < layouts.model_count; i++)
        assert_true(layouts.models[i].count > 0);
    sfti_arena_free(&arena);
}

static void refuses_texts(void **unused) {
    static const char *const texts[] = {
        "part\n", "part a\n", "word a\n", "part a b other=c\n", "part a b like=z\n",
        " a = b\n", "part a b\n x = \n", "part a b\n {a,b} = c\n", "part a b\n {a,b} = {c}\n",
        "part a b\n {a} = {c,d}\n", "part a b\n a = b odd\n", "part a b\n a = b fold=0\n",
        "part a b\n a = [b,c] sizes=x\n", "part a b\n a = {b,c}\n", "model m\n",
        "model m P\n unet nothing x.\n", "part a b\nmodel m P\n unet a\n", "holds\n",
        "part a b\n a = [a,b,c,d,e,f,g,h,i]\n", "part a b\n a = [b,c] sizes=65,*\n",
        "part a b\n config\n", "part a b\n keep\n", "part a b\n a = b fold=x\n",
        "part a b\n a = b fold=65536\n", "part a b\n class\n", "part a b\n published\n",
        "part a b\n published x\n", "part a b\n class A x\n class B x\n class C x\n",
        "model\n", "model m P\n config\n", "model m P\n config c\n", "model m P\n unet\n",
        "part a b\nmodel m P\n unet a x. y\n", "part a b\n {a = {b\n",
        "part a b\n {a,b}{c,d} = {e,f}g\n", " a b\n", "part a b\n {a,b = {c,d}\n",
        "model m P\n config a b c\n config a b c\n config a b c\n config a b c\n config a b c\n",
        "part a b\nmodel m P\n a a -\n b a -\n c a -\n d a -\n e a -\n f a -\n g a -\n"
        " h a -\n i a -\n",
        /* too many combinations, and a name too long */
        "part a b\n {a,b,c,d,e,f}{a,b,c,d,e,f}{a,b,c,d,e,f}{a,b,c,d,e,f} = "
        "{a,b,c,d,e,f}{a,b,c,d,e,f}{a,b,c,d,e,f}{a,b,c,d,e,f}\n",
        "part a b\n " LONG_260 " = b\n", "part a b\n a = " LONG_260 LONG_260 "\n",
        "part a b\n {" MANY_65 "," MANY_65 "} = {" MANY_65 "," MANY_65 "}\n",
    };
    (void)unused;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_layout_text layouts;
        sft_error err = SFT_ERROR_INIT;
        sft_code code = sfti_layouts_of_text(&arena, span(texts[i]), &layouts, &err);
        if (code != SFT_BAD_ARGUMENT) print_error("accepted: %s\n", texts[i]);
        assert_int_equal(code, SFT_BAD_ARGUMENT);
        assert_non_null(strstr(err.message, "line "));
        sfti_arena_free(&arena);
    }
}

/* More parts than there is room for, and more lines. */
static void refuses_long_texts(void **unused) {
    static const struct { const char *line; size_t most; const char *says; } texts[] = {
        { "part a b\n", 128, "line 129 of the layouts: expected fewer parts" },
        { "\n", 20000, "line 20001 of the layouts: expected fewer lines" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_layout_text layouts;
        sft_error err = SFT_ERROR_INIT;
        size_t each = strlen(texts[i].line), most = texts[i].most;
        char *text = malloc(each * (most + 1));
        assert_non_null(text);
        for (size_t k = 0; k <= most; k++) memcpy(text + k * each, texts[i].line, each);
        assert_int_equal(sfti_layouts_of_text(&arena, (sft_span){ text, each * most }, &layouts,
                                              NULL), SFT_OK);
        assert_int_equal(sfti_layouts_of_text(&arena, (sft_span){ text, each * (most + 1) },
                                              &layouts, &err), SFT_BAD_ARGUMENT);
        assert_non_null(strstr(err.message, texts[i].says));
        free(text);
        sfti_arena_free(&arena);
    }
}

static void expands_braces(void **unused) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_layout_text layouts;
    (void)unused;
    assert_int_equal(reads("part a b\n {x,y}.#.{1,2} = {p,q}.#.[k,v].{r,s}\n keep z\n", &arena,
                           &layouts), SFT_OK);
    assert_int_equal(layouts.rule_count, 5);
    assert_true(sft_span_equal(layouts.rules[1].original, span("x.#.2")));
    assert_true(sft_span_equal(layouts.rules[1].pieces[1], span("p.#.v.s")));
    assert_int_equal(layouts.rules[1].count, 2);
    assert_true(layouts.rules[4].kept);
    sfti_arena_free(&arena);
    assert_int_equal(reads("part a b old\r\n x = y\r\n[v = w\n", &arena, &layouts),
                     SFT_BAD_ARGUMENT);
    sfti_arena_free(&arena);
    assert_int_equal(reads("\r\npart a b old\r\n x = y\r\n [v = [w\nprefixes p. longer. p.\n"
                           "holds - main\nstray loss* a.#\nmarkers v_pred", &arena, &layouts),
                     SFT_OK);
    assert_true(layouts.parts[0].old && layouts.rule_count == 2 && layouts.rules[1].count == 1);
    assert_true(sft_span_equal(layouts.rules[0].pieces[0], span("y")));
    assert_true(sft_span_equal(layouts.rules[1].pieces[0], span("[w")));
    assert_true(layouts.prefix_count == 2 && layouts.prefixes[0].len == 7);
    assert_true(layouts.hold_count == 1 && layouts.holds[0].prefix.len == 0);
    static const struct { const char *name; bool stray; } strays[] = {
        { "loss", false }, { "loss.a", true }, { "loss_x", true }, { "a.1", true },
        { "a.1.weight", false }, { "b", false },
    };
    for (size_t i = 0; i < sizeof strays / sizeof *strays; i++)
        assert_int_equal(sfti_layout_is_stray(&layouts, span(strays[i].name)), strays[i].stray);
    sfti_arena_free(&arena);
}

/* Bytes of the library's own text changed: an error or tables, never more. */
static void survives_mutations(void **unused) {
    extern const unsigned char sfti_names_text[];
    extern const size_t sfti_names_size;
    char *text = malloc(sfti_names_size);
    uint64_t state = 1;
    (void)unused;
    assert_non_null(text);
    for (int round = 0; round < 300; round++) {
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_layout_text layouts;
        memcpy(text, sfti_names_text, sfti_names_size);
        for (int k = 0; k < 1 + round % 8; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            text[(state >> 20) % sfti_names_size] = "{}[],=# \n*!-.x"[(state >> 8) % 14];
        }
        size_t len = (state >> 40) % 3 ? sfti_names_size : (state >> 20) % sfti_names_size;
        sft_code code = sfti_layouts_of_text(&arena, (sft_span){ text, len }, &layouts, NULL);
        assert_true(code == SFT_OK || code == SFT_BAD_ARGUMENT);
        sfti_arena_free(&arena);
    }
    free(text);
}

/* ── Names ── */

static void matches_names(void **unused) {
    static const struct { const char *pattern, *name; bool flat, is; const char *made; } cases[] = {
        { "a.#.b", "a.12.b.weight", false, true, "x.12.weight" },
        { "a.#.b", "a.12.b", false, true, "x.12" },
        { "a.#.b", "a.b.b", false, false, NULL },
        { "a.#.b", "a.1.bc", false, false, NULL },
        { "a.#.b", "a.1.b.0.weight", false, false, NULL },
        { "a.#.b", "a.1.b.0", false, false, NULL },
        { "a.#.b", "a.1.b.weight.absmax", false, true, "x.1.weight.absmax" },
        { "a.#.b", "a.1234567.b", false, false, NULL },
        { "a.#.b", "a_3_b", true, true, "x.3" },
        { "a.#.b", "a_3_b", false, false, NULL },
        { "a.#.b", "a_3_b_c", true, false, NULL },
        { "a.*", "a.b.c", false, true, NULL },
        { "a.*", "a.", false, false, NULL },
        { "a*b", "a*b", false, true, NULL },
        { "a*b", "acb", false, false, NULL },
        { "#.#.#.#", "1.2.3.4", false, true, "x.1" },
        { "#.#.#.#.#", "1.2.3.4.5", false, false, NULL },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sfti_layout_match match;
        char made[64];
        bool is = sfti_layout_matches(span(cases[i].pattern), span(cases[i].name), cases[i].flat,
                                      &match);
        if (is != cases[i].is) print_error("%s %s\n", cases[i].pattern, cases[i].name);
        assert_int_equal(is, cases[i].is);
        if (!cases[i].made) continue;
        size_t len = sfti_layout_make(span("x.#"), &match, made, sizeof made);
        assert_true(sft_span_equal((sft_span){ made, len }, span(cases[i].made)));
        assert_int_equal(sfti_layout_make(span("x.#"), &match, made, len - 1), 0);
    }
    sfti_layout_match none = { .rest = { ".weight", 7 } };
    char made[16];
    assert_int_equal(sfti_layout_make(span("a*b"), &none, made, sizeof made), 10);
    assert_memory_equal(made, "a*b.weight", 10);
    assert_int_equal(sfti_layout_make(span("a.#"), &none, made, sizeof made), 0);
}

static void divides_rows(void **unused) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_layout_text layouts;
    uint64_t rows[SFTI_LAYOUT_PIECES];
    (void)unused;
    assert_int_equal(reads("part a b\n x = [q,k,v,m] sizes=1,1,1,*\n y = [q,k,v]\n", &arena,
                           &layouts), SFT_OK);
    assert_true(sfti_layout_divide(&layouts.rules[0], 70, 10, rows));
    assert_true(rows[0] == 10 && rows[2] == 10 && rows[3] == 40);
    assert_false(sfti_layout_divide(&layouts.rules[0], 30, 10, rows)); /* nothing for the last */
    assert_false(sfti_layout_divide(&layouts.rules[0], 29, 10, rows));
    assert_false(sfti_layout_divide(&layouts.rules[0], 70, UINT64_MAX, rows));
    assert_false(sfti_layout_divide(&layouts.rules[0], 70, 0, rows));
    assert_true(sfti_layout_divide(&layouts.rules[1], 9, 0, rows) && rows[1] == 3);
    assert_false(sfti_layout_divide(&layouts.rules[1], 10, 0, rows));
    sfti_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_its_own), cmocka_unit_test(refuses_texts),
        cmocka_unit_test(refuses_long_texts),
        cmocka_unit_test(expands_braces), cmocka_unit_test(survives_mutations),
        cmocka_unit_test(matches_names), cmocka_unit_test(divides_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
