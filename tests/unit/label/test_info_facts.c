/* Precedence, joined variants, conflicts, each beside what must not be one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "label/info.h"

static sft_info info;

static void begin(void) {
    memset(&info, 0, sizeof info);
    info.arena.alloc = sfti_allocator(NULL);
    info.records = sfti_records_built_in();
    info.adapter.scale = -1;
}

static void end(void) {
    assert_int_equal(info.code, SFT_OK);
    sfti_arena_free(&info.arena);
}

static void add(sft_fact field, const char *value, const char *source, int trust) {
    sfti_info_add_text(&info, field, sft_span_cstr(value), sft_span_cstr(source), trust);
}

static bool best_is(sft_fact field, const char *value, const char *source, int trust) {
    const sfti_fact *fact = info.facts[field];
    return fact && sft_span_equal(fact->value.text, sft_span_cstr(value))
        && sft_span_equal(fact->source, sft_span_cstr(source)) && fact->trust == trust;
}

/* ── Vocabularies ── */

static bool count_value(void *ctx, const char *value) {
    size_t *left = ctx;
    assert_true(value[0] != 0);
    return --*left > 0;
}

static void values_of_facts(void **state) {
    size_t left = 1000;
    (void)state;
    assert_true(sft_fact_values(SFT_FACT_KIND, count_value, &left)); /* there are no others */
    assert_true(left < 1000);
    left = 1;
    (void)sft_fact_values(SFT_FACT_KIND, count_value, &left);
    assert_int_equal(left, 0); /* one, and no more were asked for */
    assert_false(sft_fact_values(SFT_FACT_NAME, count_value, &left));
    assert_int_equal(left, 0);
}

/* ── Order ── */

static void best_first_and_stable(void **state) {
    (void)state;
    begin();
    add(SFT_FACT_NAME, "stem", "filename", 30);
    add(SFT_FACT_NAME, "first", "header:a", 85);
    add(SFT_FACT_NAME, "second", "header:b", 85);
    add(SFT_FACT_NAME, "best", "sidecar:x", 95);
    sfti_info_resolve(&info);
    assert_true(best_is(SFT_FACT_NAME, "best", "sidecar:x", 95));
    const sfti_fact *fact = info.facts[SFT_FACT_NAME]->next;
    assert_true(sft_span_equal(fact->value.text, sft_span_cstr("first")));
    assert_true(sft_span_equal(fact->next->value.text, sft_span_cstr("second")));
    assert_int_equal(fact->next->next->trust, 30);
    assert_int_equal(info.conflicts.count, 0); /* names never conflict */
    end();
}

/* ── Variants: candidates "word@trust@source", ';' between, and the joined value ── */

typedef struct variant_case {
    const char *words[4];
    int trust[4];
    const char *joined;
    int joined_trust;
} variant_case;

static const variant_case variant_cases[] = {
    { { "kontext" }, { 75 }, "kontext", 75 },
    { { "i2v", "14b" }, { 100, 100 }, "14b+i2v", 100 },
    { { "14b+i2v" }, { 100 }, "14b+i2v", 100 },
    { { "i2v", "14b", "high-noise" }, { 100, 100, 20 }, "14b+high-noise+i2v", 20 },
    { { "i2v", "t2v" }, { 100, 70 }, "i2v", 100 },
    { { "t2v", "i2v" }, { 70, 100 }, "i2v", 100 },
    { { "14b", "5b" }, { 100, 80 }, "14b", 100 },
    { { "high-noise", "low-noise" }, { 80, 20 }, "high-noise", 80 },
    { { "inpaint", "depth" }, { 100, 100 }, "depth+inpaint", 100 },
    { { "kontext", "kontext" }, { 75, 70 }, "kontext", 75 },
    { { "inpaint", "edit" }, { 100, 10 }, "inpaint", 100 },
};

static void variants_join(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof variant_cases / sizeof *variant_cases; i++) {
        const variant_case *one = &variant_cases[i];
        begin();
        for (size_t k = 0; k < 4 && one->words[k]; k++) {
            char source[] = { 's', (char)('0' + k), 0 };
            sfti_info_add_text(&info, SFT_FACT_VARIANT, sft_span_cstr(one->words[k]),
                               sfti_info_text(&info, "%s", source), one->trust[k]);
        }
        sfti_info_resolve(&info);
        const sfti_fact *fact = info.facts[SFT_FACT_VARIANT];
        if (!sft_span_equal(fact->value.text, sft_span_cstr(one->joined))
            || fact->trust != one->joined_trust) {
            print_error("case %zu: expected %s, found %.*s:%d\n", i, one->joined,
                        (int)fact->value.text.len, fact->value.text.data, fact->trust);
            fail();
        }
        end();
    }
}

/* ── Conflicts between two candidates ── */

typedef struct conflict_case {
    sft_fact field;
    const char *a, *b;
    int trust_b;
    const char *source_b;
    bool conflict;
} conflict_case;

static const conflict_case conflict_cases[] = {
    { SFT_FACT_ARCHITECTURE, "sdxl", "sd-1", 75, "header:x", true },
    { SFT_FACT_ARCHITECTURE, "sdxl", "sdxl", 75, "header:x", false },
    { SFT_FACT_ARCHITECTURE, "flux.1", "flux.1-dev", 80, "header:x", false },
    { SFT_FACT_ARCHITECTURE, "flux.1-dev", "flux.1-schnell", 80, "header:x", true },
    { SFT_FACT_ARCHITECTURE, "flux.1", "flux.2", 80, "header:x", true },
    { SFT_FACT_ARCHITECTURE, "wan", "wan-2.2", 80, "header:x", false },
    { SFT_FACT_ARCHITECTURE, "sdxl", "sd-1", 10, "sidecar:x", false },
    { SFT_FACT_ARCHITECTURE, "sdxl", "sd-1", 20, "filename", false },
    { SFT_FACT_BASE_MODEL, "Pony", "SDXL 1.0", 70, "sidecar:x", false },
    { SFT_FACT_BASE_MODEL, "Pony", "Illustrious", 70, "sidecar:x", true },
    { SFT_FACT_BASE_MODEL, "Pony", "SD 1.5", 70, "sidecar:x", true },
    { SFT_FACT_BASE_MODEL, "Pony", "Pony", 40, "header:x", false },
    { SFT_FACT_BASE_MODEL, "Pony", "my own thing", 70, "sidecar:x", false },
    { SFT_FACT_BASE_MODEL, "Flux.1 Kontext", "Flux.1 D", 70, "sidecar:x", false },
    { SFT_FACT_KIND, "adapter", "checkpoint", 80, "header:x", true },
    { SFT_FACT_KIND, "diffusion_model", "checkpoint", 80, "header:x", false },
    { SFT_FACT_KIND, "unknown", "checkpoint", 80, "header:x", false },
    { SFT_FACT_PREDICTION_TYPE, "v", "epsilon", 85, "header:x", true },
    { SFT_FACT_PREDICTION_TYPE, "v", "v", 85, "header:x", false },
    { SFT_FACT_AUTHOR, "one", "another", 85, "header:x", false },
    { SFT_FACT_DATE, "2024-01-01", "2025-01-01", 85, "header:x", false },
};

static void what_is_a_conflict(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof conflict_cases / sizeof *conflict_cases; i++) {
        const conflict_case *one = &conflict_cases[i];
        begin();
        add(one->field, one->a, "tensors", 100);
        add(one->field, one->b, one->source_b, one->trust_b);
        sfti_info_resolve(&info);
        if ((info.conflicts.count == 1) != one->conflict) {
            print_error("case %zu: %s and %s\n", i, one->a, one->b);
            fail();
        }
        if (one->conflict) {
            const sfti_conflict *conflict = info.conflicts.first;
            assert_string_equal(conflict->field, sft_fact_name(one->field));
            assert_true(sft_span_equal(conflict->facts->value.text, sft_span_cstr(one->a)));
        }
        end();
    }
}

/* ── Ranks and alphas ── */

static size_t rank_conflicts(const char *type, double min, double max, double mode,
                             uint64_t conv, const char *told) {
    begin();
    info.adapter.present = true;
    info.adapter.type = type;
    info.adapter.rank = (sfti_bounds){ true, min, max, mode };
    info.adapter.conv_rank = conv;
    sfti_info_declare(&info, &info.declared_rank, sft_span_cstr(told),
                      sft_span_cstr("header:ss_network_dim"), 75);
    sfti_info_resolve(&info);
    size_t count = info.conflicts.count;
    const sfti_conflict *conflict = info.conflicts.first;
    if (conflict) {
        assert_string_equal(conflict->field, "adapter.rank");
        assert_true(sft_span_equal(conflict->facts->source, sft_span_cstr("tensors")));
        assert_true(sft_span_equal(conflict->facts->next->value.text, sft_span_cstr(told)));
    }
    end();
    return count;
}

static void ranks(void **state) {
    (void)state;
    assert_int_equal(rank_conflicts("lora", 16, 16, 16, 0, "32"), 1);
    assert_int_equal(rank_conflicts("lora", 16, 16, 16, 0, "16"), 0);
    assert_int_equal(rank_conflicts("lora", 16, 16, 16, 0, "16.0"), 0);
    assert_int_equal(rank_conflicts("lora", 4, 32, 16, 0, "32"), 0);
    assert_int_equal(rank_conflicts("locon", 16, 16, 16, 8, "8"), 0);
    assert_int_equal(rank_conflicts("lokr", 16, 16, 16, 0, "100000"), 0);
    assert_int_equal(rank_conflicts("lora", 16, 16, 16, 0, "0"), 0);
}

/* ── CivitAI ── */

static void ids(void **state) {
    (void)state;
    begin();
    sfti_info_civitai(&info, 1, 0, sft_span_cstr("header:ssmd_source"), 60);
    sfti_info_civitai(&info, 1, 22, sft_span_cstr("sidecar:x"), 90);
    sfti_info_resolve(&info);
    assert_int_equal(info.conflicts.count, 0);
    const sfti_civitai *best = info.civitai.first;
    assert_int_equal(best->trust, 90);
    assert_int_equal(best->version_id, 22);
    end();
    begin();
    sfti_info_civitai(&info, 1, 0, sft_span_cstr("sidecar:y"), 90);
    sfti_info_civitai(&info, 1, 22, sft_span_cstr("header:ssmd_source"), 60);
    sfti_info_resolve(&info);
    assert_int_equal(((sfti_civitai *)info.civitai.first)->version_id, 22);
    end();
    begin();
    sfti_info_civitai(&info, 1, 21, sft_span_cstr("sidecar:y"), 90);
    sfti_info_civitai(&info, 2, 22, sft_span_cstr("header:ssmd_source"), 60);
    sfti_info_resolve(&info);
    assert_int_equal(info.conflicts.count, 2);
    assert_string_equal(((sfti_conflict *)info.conflicts.first)->field, "civitai.model_id");
    end();
    begin();
    sfti_info_civitai(&info, 1, 21, sft_span_cstr("sidecar:y"), 90);
    sfti_info_civitai(&info, 2, 22, sft_span_cstr("sidecar:z"), 10);
    sfti_info_resolve(&info);
    assert_int_equal(info.conflicts.count, 0); /* another file's */
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_first_and_stable), cmocka_unit_test(variants_join),
        cmocka_unit_test(what_is_a_conflict),    cmocka_unit_test(ranks),
        cmocka_unit_test(ids),                   cmocka_unit_test(values_of_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
