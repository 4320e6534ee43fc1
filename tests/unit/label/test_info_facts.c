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

/* ── Several candidates of several facts ── */

typedef struct candidate { sft_fact field; const char *value, *source; int trust; } candidate;

#define ARCH SFT_FACT_ARCHITECTURE
#define VAR SFT_FACT_VARIANT
#define BASE SFT_FACT_BASE_MODEL
#define KIND SFT_FACT_KIND
#define FAMILY SFT_FACT_FAMILY

/* What becomes of them: "FACT=VALUE@TRUST…" in order, then the fields of conflicts. */
static const struct { candidate told[5]; const char *resolved; } resolved_cases[] = {
    { { { ARCH, "flux.1", "tensors", 100 }, { ARCH, "flux.1-dev", "header:x", 75 } },
      "architecture=flux.1-dev@75 flux.1@100; !" },
    { { { ARCH, "flux.1", "tensors", 100 }, { ARCH, "flux.1-dev", "header:x", 40 } },
      "architecture=flux.1@100 flux.1-dev@40; !" },
    { { { ARCH, "flux.1", "tensors", 100 }, { ARCH, "sdxl", "header:y", 90 }, { ARCH, "flux.1-dev",
        "header:x", 75 } },
      "architecture=flux.1-dev@75 flux.1@100 sdxl@90; !architecture" },
    { { { ARCH, "cosmos-predict2", "tensors", 70 }, { ARCH, "anima", "header:x", 60 } },
      "architecture=anima@60 cosmos-predict2@70; !" },
    { { { ARCH, "flux.1-schnell", "tensors", 70 }, { ARCH, "flux.1-dev", "header:x", 60 } },
      "architecture=flux.1-schnell@70 flux.1-dev@60; !" },
    { { { ARCH, "flux.1-schnell", "tensors", 100 }, { ARCH, "flux.1-dev", "header:x", 60 } },
      "architecture=flux.1-schnell@100 flux.1-dev@60; !architecture" },
    { { { ARCH, "flux.1", "header:a", 80 }, { ARCH, "flux.1-dev", "header:b", 80 } },
      "architecture=flux.1-dev@80 flux.1@80; !" },
    { { { ARCH, "flux.1", "own:x", 80 }, { ARCH, "flux.1-dev", "header:b", 80 } },
      "architecture=flux.1@80 flux.1-dev@80; !" },
    { { { ARCH, "wan", "tensors", 60 }, { VAR, "14b", "tensors", 100 } },
        "architecture=wan@60; variant=14b@60; !" },
    { { { ARCH, "wan", "tensors", 60 }, { VAR, "14b", "header:x", 80 } },
        "architecture=wan@60; variant=14b@80; !" },
    { { { ARCH, "sdxl", "header:x", 75 }, { ARCH, "wan", "tensors", 60 }, { VAR, "14b", "tensors",
        100 } },
      "architecture=sdxl@75 wan@60; !" },
    { { { ARCH, "sdxl", "header:x", 75 }, { ARCH, "wan", "header:y", 60 }, { VAR, "14b",
        "header:y", 60 },
        { VAR, "inpaint", "header:x", 50 } },
          "architecture=sdxl@75 wan@60; variant=inpaint@50 14b@60 inpaint@50; !architecture" },
    { { { ARCH, "sdxl", "header:x", 75 }, { ARCH, "wan", "header:y", 60 }, { VAR, "14b",
        "header:y", 60 } },
      "architecture=sdxl@75 wan@60; !architecture" },
    { { { VAR, "14b+ +i2v+", "header:x", 60 } }, "variant=14b+i2v@60 14b+ +i2v+@60; !" },
    { { { VAR, "14b", "header:x", 60 }, { VAR, "i2v", "header:y", 10 } },
        "variant=14b@60 i2v@10; !" },
    { { { BASE, "SDXL 1.0", "a", 70 }, { BASE, "SD 1.5", "b", 70 } },
        "base_model=SDXL 1.0@70 SD 1.5@70; !base_model" },
    { { { BASE, "Pony", "a", 70 }, { BASE, "Nobody", "b", 70 } },
        "base_model=Pony@70 Nobody@70; !" },
    { { { KIND, "adapter", "a", 70 }, { KIND, "control_lora", "b", 70 } },
        "kind=adapter@70 control_lora@70; !" },
    { { { KIND, "vision_model", "a", 70 }, { KIND, "detector", "b", 70 } },
        "kind=vision_model@70 detector@70; !" },
    { { { KIND, "detector", "a", 70 }, { KIND, "image_encoder", "b", 70 } },
        "kind=detector@70 image_encoder@70; !kind" },
    { { { KIND, "vae", "a", 70 }, { KIND, "unknown", "b", 70 } }, "kind=vae@70 unknown@70; !" },
    { { { FAMILY, "llama-like", "tensors", 100 }, { ARCH, "bert", "sidecar:c", 90 } },
      "family=llama-like@100; !architecture" },
    /* of another kind, or another kind of denoiser; VAEs are for some base */
    { { { KIND, "language_model", "tensors", 100 }, { ARCH, "llama", "tensors", 60 },
        { ARCH, "sdxl", "header:x", 80 } },
      "architecture=llama@60 sdxl@50; kind=language_model@100; !architecture" },
    { { { KIND, "language_model", "tensors", 100 }, { ARCH, "whisper", "sidecar:c", 90 } },
      "kind=language_model@100; !architecture" },
    { { { KIND, "language_model", "tensors", 60 }, { ARCH, "sdxl", "header:x", 80 } },
      "architecture=sdxl@80; kind=language_model@60; !" },
    { { { KIND, "language_model", "tensors", 100 }, { ARCH, "gemma-2", "sidecar:c", 90 } },
      "architecture=gemma-2@90; kind=language_model@100; !" },
    { { { KIND, "vae", "tensors", 100 }, { ARCH, "sdxl", "header:x", 75 },
        { BASE, "SDXL 1.0", "header:x", 75 } },
      "base_model=SDXL 1.0@75; kind=vae@100; !architecture" },
    { { { KIND, "diffusion_model", "tensors", 60 }, { FAMILY, "dit", "tensors", 100 },
        { ARCH, "sdxl", "header:x", 80 } },
      "kind=diffusion_model@60; family=dit@100; !architecture" },
    { { { KIND, "diffusion_model", "tensors", 60 }, { FAMILY, "unet", "tensors", 100 },
        { ARCH, "lotus", "header:x", 80 } },
      "architecture=lotus@80; kind=diffusion_model@60; family=unet@100; !" },
    { { { FAMILY, "llama-like", "tensors", 90 }, { ARCH, "bert", "sidecar:c", 90 } },
        "architecture=bert@90; family=llama-like@90; !" },
    { { { FAMILY, "llama-like", "header:x", 100 }, { ARCH, "bert", "sidecar:c", 40 } },
      "architecture=bert@40; family=llama-like@100; !" },
    { { { FAMILY, "llama-like", "tensors", 100 }, { ARCH, "bert", "sidecar:c", 10 } },
        "architecture=bert@10; family=llama-like@100; !" },
    { { { KIND, "diffusion_model", "tensors", 100 }, { ARCH, "sdxl", "tensors", 100 }, { ARCH,
        "sd-1", "header:x", 75 },
        { BASE, "SD 1.5", "header:x", 75 }, { VAR, "inpaint", "header:x", 75 } },
      "architecture=sdxl@100 sd-1@75; base_model=SD 1.5@10; kind=diffusion_model@100; !architectu"
      "re" },
    { { { KIND, "vae", "tensors", 100 }, { ARCH, "vae-sd", "tensors", 100 }, { ARCH, "sd-1",
        "header:x", 75 },
        { BASE, "SD 1.5", "header:x", 75 } },
      "architecture=vae-sd@100 sd-1@75; base_model=SD 1.5@75; kind=vae@100; !architecture" },
};

static void tell_facts(char *out, size_t size) {
    static const sft_fact fields[] = { ARCH, VAR, BASE, KIND, FAMILY };
    size_t len = 0;
    for (size_t i = 0; i < SFTI_COUNT(fields); i++) {
        const sfti_fact *fact = info.facts[fields[i]];
        if (fact) len += (size_t)snprintf(out + len, size - len, "%s=", sft_fact_name(fields[i]));
        for (; fact; fact = fact->next)
            len += (size_t)snprintf(out + len, size - len, "%.*s@%d%s", (int)fact->value.text.len,
                    fact->value.text.data,
                                    fact->trust, fact->next ? " " : "; ");
    }
    len += (size_t)snprintf(out + len, size - len, "!");
    for (const sfti_conflict *one = info.conflicts.first; one; one = one->next)
        len += (size_t)snprintf(out + len, size - len, "%s", one->field);
}

static void several_candidates(void **state) {
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(resolved_cases); i++) {
        char got[512];
        begin();
        for (size_t k = 0; k < 5 && resolved_cases[i].told[k].value; k++) {
            const candidate *one = &resolved_cases[i].told[k];
            add(one->field, one->value, one->source, one->trust);
        }
        sfti_info_resolve(&info);
        tell_facts(got, sizeof got);
        if (strcmp(got, resolved_cases[i].resolved) != 0) {
            print_error("case %zu: expected %s\n         found    %s\n", i,
                        resolved_cases[i].resolved, got);
            wrong++;
        }
        end();
    }
    assert_int_equal(wrong, 0);
}

/* What is written as it stands, lists, and more candidates than are kept. */
static void other_candidates(void **state) {
    (void)state;
    begin();
    sfti_info_add_written(&info, sft_span_cstr("my-own"), sft_span_cstr("header:x"), 80);
    add(ARCH, "sdxl", "header:y", 80);
    add(VAR, "inpaint", "header:x", 70);
    sfti_info_add_written(&info, sft_span_cstr(" Unknown"), sft_span_cstr("header:z"), 80);
    sfti_info_resolve(&info);
    assert_true(best_is(ARCH, "sdxl", "header:y", 80));
    assert_true(info.facts[ARCH]->next->as_written && !info.facts[ARCH]->next->next);
    end();
    begin();
    sfti_info_add_commas(&info, VAR, sft_span_cstr("a, b"), sft_span_cstr("x"), 70);
    sfti_info_add_commas(&info, BASE, sft_span_cstr("SDXL 1.0, Pony"), sft_span_cstr("x"), 70);
    add(BASE, "SD 1.5", "y", 60);
    sfti_info_resolve(&info);
    assert_true(best_is(VAR, "a, b", "x", 70) && best_is(BASE, "SDXL 1.0, Pony", "x", 70));
    assert_int_equal(info.conflicts.count, 0);
    end();
    begin();
    char name[30][8];
    for (int i = 0; i < 30; i++) {
        snprintf(name[i], sizeof name[i], "n%d", i);
        add(SFT_FACT_NAME, name[i], "x", 50);
    }
    sfti_info_resolve(&info);
    size_t count = 0;
    for (const sfti_fact *fact = info.facts[SFT_FACT_NAME]; fact; fact = fact->next) count++;
    assert_int_equal(count, 17); /* the best and sixteen others */
    end();
}

/* The alpha of a configuration, where no tensor has one. */
static void alphas(void **state) {
    static const struct { const char *source, *value; bool known,
        assumed; double alpha; } rows[] = {
        { "sidecar:adapter_config.json", "16", false, false, 16 },
          { "header:lora_adapter_metadata:/r", "16", false, false, 16 },
        { "sidecar:adapter_config.json", "x", false, false, 0 }, { "sidecar:adapter_config.json",
          "-1", false, false, 0 },
        { "header:ss_network_alpha", "16", false, false, 0 }, { "sidecar:adapter_config.json",
          "16", true, false, 8 },
        { "sidecar:adapter_config.json", "16", true, true, 16 },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(rows); i++)
        for (int ranked = 0; ranked < 2; ranked++) {
            begin();
            info.adapter = (sfti_adapter){ .present = true, .type = "lora", .scale = -1 };
            if (ranked) info.adapter.rank = (sfti_bounds){ true, 32, 32, 32 };
            if (rows[i].known) info.adapter.alpha = (sfti_bounds){ true, 8, 8, 8 };
            info.adapter.alpha_assumed = rows[i].assumed;
            sfti_info_declare(&info, &info.declared_alpha, sft_span_cstr(rows[i].value),
                              sft_span_cstr(rows[i].source), 90);
            sfti_info_resolve(&info);
            double want = ranked || !rows[i].known ? rows[i].alpha : 8;
            if (!ranked && !rows[i].known) want = 0;
            assert_true(info.adapter.alpha.mode == want);
            assert_true(info.adapter.alpha.known == (want > 0));
            end();
        }
}

/* What a declaration tells of bits that tensors make guess. */
static void guessed_bits(void **state) {
    static const struct { const char *quantization, *precision; } rows[] = {
        { "compressed-tensors-w8a16", "int8" }, { "compressed-tensors-w4a8", "int4" },
        { "compressed-tensors-w16a16", NULL }, { "compressed-tensors-w", NULL },
          { "compressed-tensors", NULL },
        { "compressed-tensorz-w8a16", NULL }, { "nvfp4", "fp4" }, { NULL, NULL },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(rows); i++) {
        begin();
        info.guesses_bits = true;
        if (rows[i].quantization) add(SFT_FACT_QUANTIZATION, rows[i].quantization,
            "sidecar:config.json", 90);
        sfti_info_resolve(&info);
        if (!info.precision != !rows[i].precision
            || (info.precision && strcmp(info.precision, rows[i].precision) != 0))
            fail_msg("%s: %s", rows[i].quantization, info.precision);
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
    assert_int_equal(rank_conflicts("lora", 16, 16, 16, 0, "many"), 0);
    assert_int_equal(rank_conflicts("lora", 16, 16, 16, 8, "9"), 1);
    assert_int_equal(rank_conflicts("mixed", 16, 16, 0, 0, "8"), 1);
    assert_int_equal(rank_conflicts(NULL, 16, 16, 16, 0, "8"), 0);
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
    begin(); /* what the best lacks, of those that mean the same version, or the same model */
    sfti_info_civitai(&info, 0, 22, sft_span_cstr("sidecar:y"), 90);
    sfti_info_civitai(&info, 5, 22, sft_span_cstr("sidecar:z"), 80)->air = sft_span_cstr("air");
    sfti_info_civitai(&info, 5, 24, sft_span_cstr("sidecar:x"), /* another version's */
                      70)->published_at = sft_span_cstr("2023-01-01");
    sfti_info_civitai(&info, 5, 0, sft_span_cstr("header:a"),
                      60)->published_at = sft_span_cstr("2024-05-01");
    sfti_info_civitai(&info, 6, 0, sft_span_cstr("header:b"),
                      60)->published_at = sft_span_cstr("2020-01-01");
    sfti_info_civitai(&info, 0, 23, sft_span_cstr("header:c"), 60);
    sfti_info_resolve(&info);
    best = info.civitai.first;
    assert_true(best->model_id == 5 && best->version_id == 22);
    assert_true(sft_span_equal(best->air, sft_span_cstr("air")));
    assert_true(sft_span_equal(best->published_at, sft_span_cstr("2024-05-01")));
    end();
    begin();
    sfti_info_civitai(&info, 5, 0, sft_span_cstr("sidecar:y"), 90);
    sfti_info_civitai(&info, 5, 22, sft_span_cstr("sidecar:z"), 10);
    sfti_info_civitai(&info, 0, 9, sft_span_cstr("sidecar:w"), 60);
    sfti_info_resolve(&info);
    assert_int_equal(((sfti_civitai *)info.civitai.first)->version_id, 0);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_first_and_stable), cmocka_unit_test(variants_join),
        cmocka_unit_test(what_is_a_conflict),    cmocka_unit_test(ranks),
        cmocka_unit_test(several_candidates),    cmocka_unit_test(other_candidates),
        cmocka_unit_test(alphas),                cmocka_unit_test(guessed_bits),
        cmocka_unit_test(ids),                   cmocka_unit_test(values_of_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
