/* Short cuts by which rows are found, beside the long way: what they leave out is never wanted. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/compose.h"
#include "label/tensors/adapters.h"

static sft_span s(const char *text) { return sft_span_cstr(text); }

/* ── Rows by the end of a name ── */

static const struct { int unused; sft_span end; } end_rows[] = {
    { 0, { ".a.weight", 9 } }, { 0, { "_a", 2 } },      { 0, { ".scale_a", 8 } },
    { 0, { ".b.weight", 9 } }, { 0, { ".xa.weight", 10 } }, { 0, { ".c", 2 } },
};

static void rows_by_their_ends(void **state) {
    static const struct { const char *name; size_t row; } cases[] = {
        { "x.a.weight", 1 },    { ".a.weight", 1 },    { "x.xa.weight", 5 },
        { "m.scale_a", 2 },  { "scale_a", 2 },      { "_a", 2 },
        { "x.b.weight", 4 },    { "x.c.weight", 0 },   { "x.c", 6 },
        { "c", 0 },             { "", 0 },             { ".weight", 0 },
        { "weight", 0 },        { "a.weight", 0 },     { "x_a.weight", 0 },
        { "x.A.weight", 0 },
    };
    sfti_suffixes suffixes;
    (void)state;
    sfti_suffixes_open(&suffixes, &end_rows[0].end, sizeof end_rows[0], SFTI_COUNT(end_rows));
    for (size_t i = 0; i < SFTI_COUNT(cases); i++)
        if (sfti_suffixes_find(&suffixes, s(cases[i].name)) != cases[i].row)
            fail_msg("\"%s\": expected row %zu", cases[i].name, cases[i].row);
}

/* ── Names ── */

static sfti_view view_of(composed *made) {
    sfti_view view;
    assert_true(sfti_view_open(&made->info, &view));
    return view;
}

static void near_is_found_as_far(void **state) {
    static const char *const ends[] = { ".a", ".down", ".e3", ".e19", ".e20", ".up", ".z", "",
                                        ".a.down", ".upper" };
    composed *made = compose("m.a[1] m.down[1] m.e{0-19}[1] m.up[1] m.down.x[1] m[1] ma.up[1] "
                             "n.up[1] l.z[1] m.a.b[1]");
    sfti_view view = view_of(made);
    (void)state;
    for (size_t i = 0; i < view.count; i++) {
        sft_span name = view.by_name[i]->name;
        if (!sfti_begins(name, "m")) continue;
        for (size_t k = 0; k < SFTI_COUNT(ends); k++) {
            sft_span begin = { name.data, 1 };
            assert_ptr_equal(sfti_view_near(&view, i, begin, ends[k]),
                             sfti_set_sibling(view.info->set, begin, ends[k]));
        }
    }
    compose_end(made);
}

static void first_prefix_of_each_name(void **state) {
    static const struct { const char *begin; } rows[] = { { "b.long." }, { "b." }, { "a" },
                                                          { "zz" } };
    composed *made = compose("a[1] ab.x[1] b[1] b.x[1] b.long.x[1] b.long[1] c[1]");
    sfti_view view = view_of(made);
    const uint8_t *row_of = sfti_view_rows(&view, rows, sizeof rows[0], SFTI_COUNT(rows));
    (void)state;
    assert_non_null(row_of);
    for (size_t i = 0; i < view.count; i++) {
        size_t row = 0;
        while (row < SFTI_COUNT(rows) && !sfti_begins(view.by_name[i]->name,
                                                      rows[row].begin))
            row++;
        assert_int_equal(row_of[i], row < SFTI_COUNT(rows) ? row + 1 : 0);
    }
    compose_end(made);
}

static void every_name_is_found(void **state) {
    static const char *const missing[] = { "short", "a.weight", "layers.1.attn.to_x.weight",
                                           "layers.1.attn.to_q.bias", "q.g_idx" };
    composed *made = compose("a[1] d.qweight[1] layers.{0-12}.attn.to_q.weight[1] "
                             "layers.{0-2}.attn.to_k.qweight[1] .weight[1] e.q.qweight[1]");
    sfti_view view = view_of(made);
    (void)state;
    for (size_t i = 0; i < view.count; i++) {
        sft_span name = view.by_name[i]->name;
        char text[160];
        snprintf(text, sizeof text, "%.*s", (int)name.len, name.data);
        assert_ptr_equal(sfti_view_find(&view, text), view.by_name[i]);
    }
    assert_non_null(sfti_view_find(&view, "layers.2.attn.to_k.weight"));
    assert_ptr_equal(sfti_view_find(&view, "layers.2.attn.to_k.weight"),
                     sfti_view_find(&view, "layers.2.attn.to_k.qweight"));
    assert_true(sfti_clauses_hold(&view, s("layers.#.attn.to_k.weight"), NULL, NULL));
    assert_true(sfti_clauses_hold(&view, s("layers.#.attn.to_q.weight\n  #.q.weight\n  | d.weight"),
                                  NULL, NULL));
    for (size_t i = 0; i < SFTI_COUNT(missing); i++)
        assert_null(sfti_view_find(&view, missing[i]));
    compose_end(made);
}

/* ── Forms ── */

static void forms_met_again(void **state) {
    composed *made = compose(
        "blocks.{0-120}.attn.to_q.weight[3,2] blocks.{0-120}.attn.to_k.weight[3,2] "
        "blocks.1000000.attn.to_q.weight[3,2] blocks.7.attn.to_q.bias[3] "
        "down.1.transformer_blocks.{0-9}.ff.weight[3,2] ");
    sfti_view view = view_of(made);
    const sfti_forms *forms = sfti_forms_of(&view, NULL);
    (void)state;
    assert_non_null(forms);
    const sfti_form *q = sfti_forms_find(forms, sft_span_cstr("^blocks_#_attn_to_q$[in=2,out=3]"));
    const sfti_form *k = sfti_forms_find(forms, sft_span_cstr("^blocks_#_attn_to_k$"));
    assert_non_null(q);
    assert_non_null(k);
    assert_int_equal(q->highest, 120);
    assert_int_equal(k->highest, 120);
    assert_int_equal(forms->count, 2 + 1);
    compose_end(made);
}

/* What a pattern may stand in has its pairs. */
static void pairs_of_letters(void **state) {
    sft_span whole = s("double_blocks_#_img_attn.to_out.0");
    uint64_t all = sfti_letter_pairs(whole);
    (void)state;
    for (size_t from = 0; from <= whole.len; from++)
        for (size_t to = from; to <= whole.len; to++) {
            sft_span part = { whole.data + from, to - from };
            assert_int_equal(sfti_letter_pairs(part) & ~all, 0);
        }
    assert_int_not_equal(sfti_letter_pairs(s("zqxj")) & ~all, 0);
    assert_int_equal(sfti_letter_pairs(s("^#_.$_0")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_by_their_ends),
        cmocka_unit_test(near_is_found_as_far),
        cmocka_unit_test(first_prefix_of_each_name),
        cmocka_unit_test(every_name_is_found),
        cmocka_unit_test(forms_met_again),
        cmocka_unit_test(pairs_of_letters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
