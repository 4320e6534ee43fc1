/* Which models are used together, and how surely. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/compose.h"

#include "base/utf8.h"

/* ── Facts ── */

static bool take_word(sft_info *info, const char *key, sft_span value, int trust) {
    if (strcmp(key, "stem") == 0) info->stem = value;
    else if (strcmp(key, "sha256") == 0)
        sfti_info_claim(info, "sha256", value, sft_span_cstr("header:x"), NULL);
    else if (strcmp(key, "trained") == 0)
        sfti_info_train(info, TRAIN_BASE_SHA256, sfti_text_value(value));
    else {
        for (int i = 0; i < SFT_FACT_COUNT; i++)
            if (strcmp(sft_fact_name((sft_fact)i), key) == 0) {
                sfti_info_add_text(info, (sft_fact)i, value, sft_span_cstr("tensors"), trust);
                return true;
            }
        return false;
    }
    return true;
}

/* "kind=adapter;architecture=sdxl@60;stem=x": facts, of trust 100 unless told. */
static composed *told(const char *facts, const char *tensors) {
    composed *made = compose_with(tensors ? tensors : "a[1]", NULL, 0, NULL, 0, NULL);
    sft_span rest = sft_span_cstr(facts), word;
    while (sfti_next_piece(&rest, ';', &word)) {
        char key[32];
        sft_span value = sfti_find_byte(word, '='), at = sfti_find_byte(word, '@');
        int trust = at.len ? atoi(at.data + 1) : 100;
        snprintf(key, sizeof key, "%.*s", (int)(value.data - word.data), word.data);
        value = (sft_span){ value.data + 1, value.len - 1 - at.len };
        assert_true(take_word(&made->info, key, value, trust));
    }
    sfti_info_resolve(&made->info);
    assert_int_equal(made->info.code, SFT_OK);
    return made;
}

typedef struct fit_row {
    const char *part, *model, *part_tensors, *model_tensors, *fit, *reason;
} fit_row;

static void check_row(const fit_row *row) {
    char reason[256], turned[256];
    composed *part = told(row->part, row->part_tensors);
    composed *model = told(row->model, row->model_tensors);
    sft_fit fit = sft_info_fits(&model->info, &part->info, reason, sizeof reason);
    if (strcmp(sft_fit_name(fit), row->fit) != 0 || !strstr(reason, row->reason)) {
        print_error("%s | %s\n  %s: %s\n", row->part, row->model, sft_fit_name(fit), reason);
        fail();
    }
    assert_int_equal(sft_info_fits(&part->info, &model->info, turned, sizeof turned), fit);
    assert_string_equal(turned, reason);
    assert_int_equal(sft_info_fits(&part->info, &model->info, NULL, 0), fit);
    compose_end(part);
    compose_end(model);
}

#define ROWS(rows) \
    for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++) check_row(&(rows)[i])
#define ADAPTER "kind=adapter;architecture="
#define MODEL "kind=diffusion_model;architecture="
#define CHECKPOINT "kind=checkpoint;architecture="

static void by_kind(void **state) {
    static const fit_row rows[] = {
        { "kind=adapter", "kind=adapter", NULL, NULL, "none", "" },
        { "kind=checkpoint", "kind=diffusion_model", NULL, NULL, "none", "" },
        { "kind=vae", "kind=text_encoder", NULL, NULL, "none", "" },
        { "kind=upscaler", CHECKPOINT "sdxl", NULL, NULL, "none", "" },
        { "kind=embedding", "kind=language_model;architecture=llama", NULL, NULL, "none", "" },
        { "kind=vae", "kind=language_model", NULL, NULL, "none", "" },
        { "kind=dataset", CHECKPOINT "sdxl", NULL, NULL, "none", "" },
        { "kind=unknown", CHECKPOINT "sdxl", NULL, NULL, "unknown", "the kind of one is" },
        { "name=x", "kind=unknown", NULL, NULL, "unknown", "the kind of both is" },
        { "kind=adapter", CHECKPOINT "sdxl", NULL, NULL, "unknown",
          "the architecture of the adapter is not known" },
        { ADAPTER "sdxl", "kind=checkpoint", NULL, NULL, "unknown",
          "the architecture of the model is not known" },
        { "kind=adapter", "kind=checkpoint", NULL, NULL, "unknown", "nor that of the model" },
    };
    (void)state;
    ROWS(rows);
}

static void by_architecture(void **state) {
    static const fit_row rows[] = {
        { ADAPTER "sd-1", CHECKPOINT "sd-1", NULL, NULL, "yes", "same architecture, sd-1" },
        { ADAPTER "sd-1", CHECKPOINT "sdxl", NULL, NULL, "no", "for sd-1, not for sdxl" },
        { ADAPTER "sd-1", CHECKPOINT "sd-2", NULL, NULL, "no", "for sd-1, not for sd-2" },
        { ADAPTER "sd-1@60", CHECKPOINT "sdxl", NULL, NULL, "unknown", "which is not sure" },
        { ADAPTER "sd-1@60", CHECKPOINT "sd-1", NULL, NULL, "likely", "which is not sure" },
        { ADAPTER "sd-1@20", CHECKPOINT "sd-1", NULL, NULL, "unknown", "which is not sure" },
        { ADAPTER "sdxl;architecture=sd-1@90", CHECKPOINT "sd-1", NULL, NULL, "unknown",
          "other sources disagree" },
        { ADAPTER "flux.1", MODEL "flux.1-dev", NULL, NULL, "likely", "this is flux.1-dev" },
        { ADAPTER "flux.1-dev", MODEL "flux.1", NULL, NULL, "likely", "this is flux.1" },
        { ADAPTER "flux.1-dev", MODEL "flux.1-schnell", NULL, NULL, "loads", "same layers" },
        { ADAPTER "flux.1", MODEL "chroma", NULL, NULL, "unknown", "not known" },
        { ADAPTER "flux.1-dev", MODEL "chroma", NULL, NULL, "loads", "another model" },
        { ADAPTER "flux.1", MODEL "flux.2-dev", NULL, NULL, "no", "not for flux.2-dev" },
        { ADAPTER "flux.2-dev", MODEL "flux.2-klein-4b", NULL, NULL, "no", "" },
        { ADAPTER "flux.2", MODEL "flux.2-klein-4b", NULL, NULL, "unknown", "is not known" },
        { ADAPTER "sd-3", MODEL "sd-3.5-large", NULL, NULL, "unknown", "is not known" },
        { ADAPTER "sd-3-medium", MODEL "sd-3.5-medium", NULL, NULL, "no", "" },
        { ADAPTER "wan", MODEL "wan-2.2", NULL, NULL, "likely", "" },
        { ADAPTER "wan-2.1", MODEL "wan-2.2", NULL, NULL, "loads", "" },
        { ADAPTER "sdxl", MODEL "ssd-1b", NULL, NULL, "unknown", "" },
        { ADAPTER "sdxl", MODEL "kolors", NULL, NULL, "loads", "" },
        { ADAPTER "own-model", MODEL "own-model", NULL, NULL, "yes", "" },
        { ADAPTER "own-model", MODEL "other-model", NULL, NULL, "no", "" },
        { "kind=controlnet;architecture=sdxl", "kind=pipeline;architecture=sd-1", NULL, NULL, "no",
          "" },
        { "kind=motion_module;architecture=sd-1", CHECKPOINT "sd-1", NULL, NULL, "yes", "" },
        { "kind=embedding;architecture=sd-2", CHECKPOINT "sd-2", NULL, NULL, "yes", "" },
    };
    (void)state;
    ROWS(rows);
}

/* A reason that is cut is a beginning of it, and text. */
static void reasons_are_cut_between_characters(void **state) {
    char whole[256], cut[256];
    composed *part = told(ADAPTER "sd-1@60;name=x", NULL),
                          *model = told(CHECKPOINT "caf\xC3\xA9-\xE2\x82\xAC", NULL);
    (void)state;
    sft_fit fit = sft_info_fits(&model->info, &part->info, whole, sizeof whole);
    assert_true(strstr(whole, "caf\xC3\xA9-\xE2\x82\xAC; which is not sure") != NULL);
    for (size_t size = 1; size <= strlen(whole) + 1; size++) {
        memset(cut, 'x', sizeof cut);
        assert_int_equal(sft_info_fits(&model->info, &part->info, cut, size), fit);
        size_t len = strlen(cut);
        assert_true(len < size && len + 5 >= size);
        assert_memory_equal(cut, whole, len);
        assert_int_equal(sfti_utf8_check(cut, len), len);
        assert_int_equal(cut[size], 'x');
    }
    compose_end(part);
    compose_end(model);
}

static void by_variant_base_and_prediction(void **state) {
    static const fit_row rows[] = {
        { ADAPTER "wan;variant=14b", MODEL "wan;variant=14b+i2v", NULL, NULL, "yes", "" },
        { ADAPTER "wan;variant=1.3b", MODEL "wan;variant=14b+i2v", NULL, NULL, "no",
          "for 1.3b, this is 14b" },
        { ADAPTER "wan;variant=1.3b@20", MODEL "wan;variant=14b", NULL, NULL, "unknown", "" },
        { ADAPTER "wan;variant=i2v", MODEL "wan;variant=14b+t2v", NULL, NULL,
          "loads", "this is t2v" },
        { ADAPTER "wan;variant=high-noise", MODEL "wan;variant=14b+low-noise", NULL, NULL, "loads",
          "this is low-noise" },
        { ADAPTER "flux.1;variant=kontext", MODEL "flux.1", NULL, NULL, "loads", "for kontext" },
        { ADAPTER "sd-1;variant=inpaint", MODEL "sd-1", NULL, NULL, "yes", "" },
        { ADAPTER "sd-1;prediction_type=v", MODEL "sd-1;prediction_type=epsilon", NULL, NULL,
          "loads", "prediction v differs from epsilon" },
        { ADAPTER "sd-1;prediction_type=v", MODEL "sd-1", NULL, NULL, "yes", "" },
        { ADAPTER "sdxl;base_model=Pony", MODEL "sdxl;base_model=Pony", NULL, NULL, "yes",
          "base Pony" },
        { ADAPTER "sdxl;base_model=Pony", MODEL "sdxl;base_model=Illustrious", NULL, NULL, "loads",
          "base Pony differs from Illustrious: may look off" },
        { ADAPTER "sdxl;base_model=Pony", MODEL "sdxl", NULL, NULL, "likely",
          "the base model of the model is not known" },
        { ADAPTER "sdxl", MODEL "sdxl;base_model=Pony", NULL, NULL, "likely",
          "the base model of the adapter is not known" },
        { ADAPTER "sdxl;base_model=SDXL 1.0", MODEL "sdxl;base_model=SDXL 0.9", NULL, NULL, "yes",
          "" },
        { ADAPTER "sdxl;base_model=pony-v6", MODEL "sdxl;base_model=Pony", NULL, NULL, "yes", "" },
        { ADAPTER "sdxl;base_model=Pony@40", MODEL "sdxl;base_model=Pony", NULL, NULL, "likely",
          "base Pony, by its name" },
        { ADAPTER "sd-1;base_model=SD 1.4", MODEL "sd-1;base_model=SD 1.5", NULL, NULL, "yes", "" },
    };
    (void)state;
    ROWS(rows);
}

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

static void by_origin(void **state) {
    static const fit_row rows[] = {
        { ADAPTER "sdxl;base_model=Pony;trained=" DIGEST "0",
          CHECKPOINT "sdxl;base_model=Illustrious;sha256=" DIGEST "0", NULL, NULL, "yes",
          "trained on this very file" },
        { ADAPTER "sd-1;trained=" DIGEST "0", CHECKPOINT "sdxl;sha256=" DIGEST "1", NULL, NULL,
          "no", "" },
        { ADAPTER "sdxl;base_checkpoint=/models/Dream_XL.safetensors",
          CHECKPOINT "sdxl;stem=dream_xl", NULL, NULL, "yes", "trained on Dream_XL" },
        { ADAPTER "sdxl;base_checkpoint=model.safetensors", CHECKPOINT "sdxl;stem=model", NULL,
          NULL, "likely", "" },
        { ADAPTER "sd-1;base_checkpoint=dream_xl.ckpt", CHECKPOINT "sdxl;stem=dream_xl", NULL, NULL,
          "no", "" },
        { "kind=adapter;base_checkpoint=org/Some-8B", "kind=language_model;repo=org/Some-8B", NULL,
          NULL, "likely", "trained on Some-8B" },
        { ADAPTER "llama;base_checkpoint=org/Some-8B",
          "kind=language_model;architecture=llama;repo=org/Some-8B", NULL, NULL, "yes", "" },
    };
    (void)state;
    ROWS(rows);
}

/* ── Layers ── */

#define LLM "kind=language_model;architecture=llama@60"
#define PEFT(n, in, out) \
    "base_model.model.model.layers.{0-" n "}.self_attn.q_proj.lora_A.weight[8," in "] " \
    "base_model.model.model.layers.{0-" n "}.self_attn.q_proj.lora_B.weight[" out ",8] "
#define WEIGHTS(prefix, n, in, out) \
    prefix "layers.{0-" n "}.self_attn.q_proj.weight[" out "," in "] "

static void by_layers(void **state) {
    static const fit_row rows[] = {
        { ADAPTER "llama@60", LLM, PEFT("31", "4096", "4096"),
          WEIGHTS("model.", "31", "4096", "4096"),
          "likely", "32 layers of the same size" },
        { ADAPTER "llama@60", LLM, PEFT("31", "4096", "4096"),
          WEIGHTS("model.", "79", "8192", "8192"),
          "no", "self_attn.q_proj is 4096 x 4096, in the model 8192 x 8192" },
        { ADAPTER "llama", "kind=language_model;architecture=llama", PEFT("3", "64", "64"),
          WEIGHTS("model.", "3", "64", "64"), "yes", "4 layers" },
        { ADAPTER "llama", "kind=language_model;architecture=llama", PEFT("3", "64", "64"),
          WEIGHTS("model.", "1", "64", "64"), "loads", "2 that the model lacks" },
        { "kind=adapter", "kind=language_model", PEFT("3", "64", "32"),
          WEIGHTS("language_model.model.", "3", "64", "32"), "likely", "4 layers" },
        { "kind=adapter", "kind=language_model", PEFT("3", "64", "32"),
          WEIGHTS("", "3", "64", "33"),
          "no", "is 32 x 64, in the model 33 x 64" },
        { ADAPTER "gpt-2", "kind=language_model;architecture=gpt-2",
          "base_model.model.transformer.h.0.attn.c_attn.lora_A.weight[8,64] "
          "base_model.model.transformer.h.0.attn.c_attn.lora_B.weight[192,8]",
          "transformer.h.0.attn.c_attn.weight[64,192]", "yes", "1 layer of" },
        { ADAPTER "llama", "kind=language_model;architecture=llama", PEFT("3", "64", "64"),
          "model.layers.{0-3}.self_attn.q_proj.weight:U8[2048,1]", "unknown",
          "cannot be compared" },
        { ADAPTER "llama", "kind=language_model;architecture=llama", NULL, NULL, "unknown",
          "cannot be compared" },
        { ADAPTER "flux.1", MODEL "flux.1-dev",
          "transformer.x.{0-3}.q.lora_A.weight[4,8] transformer.x.{0-3}.q.lora_B.weight[8,4]",
          "x.{0-3}.q.weight[8,16]", "no", "is 8 x 8, in the model 8 x 16" },
        { ADAPTER "sd-1", MODEL "sd-1",
          "lora_unet_x_0_q.lora_down.weight[4,8] lora_unet_x_0_q.lora_up.weight[8,4]",
          "model.diffusion_model.x.0.q.weight[9,9]", "no", "is 8 x 8, in the model 9 x 9" },
        { ADAPTER "flux.1", MODEL "flux.1",
          "lora_unet_x_{0-3}_q_proj.lora_down.weight[4,8] "
          "lora_unet_x_{0-3}_q_proj.lora_up.weight[8,4] "
          "lora_te1_x_{0-3}_q_proj.lora_down.weight[4,6] "
          "lora_te1_x_{0-3}_q_proj.lora_up.weight[6,4]",
          "diffusion_model.x.{0-1}.q_proj.weight[8,8]",
          "loads", "2 layers of the same size; 2 that the model lacks" },
        { ADAPTER "flux.1", MODEL "flux.1",
          "lycoris_x_{0-3}_c.hada_w1_a[8,4] lycoris_x_{0-3}_c.hada_w1_b[4,72] "
          "lycoris_x_{0-3}_c.hada_w2_a[8,4] lycoris_x_{0-3}_c.hada_w2_b[4,72] "
          "lycoris_text_encoder_y.hada_w1_a[8,4] lycoris_text_encoder_y.hada_w1_b[4,72]",
          "x.{0-3}.c.weight[8,8,3,3]", "yes", "4 layers of the same size" },
        { ADAPTER "flux.1", MODEL "flux.1",
          "lora_unet_x_{0-3}_q.lora_down.weight[4,8] lora_unet_x_{0-3}_q.lora_up.weight[8,4]",
          "y.{0-3}.q.weight[8,8]", "yes", "same architecture, flux.1" },
        { ADAPTER "sd-1;trained=" DIGEST "0", MODEL "sd-1;sha256=" DIGEST "0",
          PEFT("0", "4", "4"), WEIGHTS("model.", "0", "5", "5"), "yes", "very file" },
    };
    (void)state;
    ROWS(rows);
}

/* ── VAEs and text encoders ── */

static void components(void **state) {
    static const fit_row rows[] = {
        { "kind=vae;architecture=vae-sd", CHECKPOINT "sdxl", NULL, NULL, "loads", "same layers" },
        { "kind=vae;architecture=vae-sd;base_model=SDXL 1.0", CHECKPOINT "sdxl", NULL, NULL,
          "likely", "made for SDXL 1.0" },
        { "kind=vae;architecture=vae-sd;base_model=SD 1.5", CHECKPOINT "sdxl", NULL, NULL, "loads",
          "made for SD 1.5" },
        { "kind=vae;architecture=vae-sd", MODEL "flux.1-dev", NULL, NULL, "no",
          "flux.1-dev does not use vae-sd" },
        { "kind=vae;architecture=vae-flux", MODEL "flux.1-dev", NULL, NULL, "likely", "uses" },
        { "kind=vae;architecture=vae-flux", MODEL "chroma", NULL, NULL, "likely", "uses" },
        { "kind=vae;architecture=vae-flux", MODEL "chroma-radiance", NULL, NULL, "no", "" },
        { "kind=vae;architecture=vae-flux", MODEL "sd-3.5-large", NULL, NULL, "loads", "" },
        { "kind=vae;architecture=vae-wan", MODEL "wan-2.1", NULL, NULL, "likely", "" },
        { "kind=vae;architecture=vae-wan", MODEL "qwen-image", NULL, NULL, "loads", "" },
        { "kind=vae;architecture=vae-flux@60", MODEL "wan-2.1", NULL, NULL, "unknown", "" },
        { "kind=vae;architecture=vae-ltx", MODEL "ltx-2", NULL, NULL, "loads", "" },
        { "kind=vae;architecture=vae-flux", MODEL "own-model", NULL, NULL, "unknown",
          "whether own-model uses vae-flux is not known" },
        { "kind=vae", MODEL "wan", NULL, NULL, "unknown", "the architecture of the vae" },
        { "kind=text_encoder;architecture=clip-l", CHECKPOINT "sdxl", NULL, NULL, "likely", "" },
        { "kind=text_encoder;architecture=clip-h", CHECKPOINT "sdxl", NULL, NULL, "no", "" },
        { "kind=text_encoder;architecture=t5-xxl", MODEL "flux.1", NULL, NULL, "likely", "" },
        { "kind=text_encoder;architecture=t5", MODEL "flux.1", NULL, NULL, "unknown", "" },
        { "kind=text_encoder;architecture=umt5", MODEL "flux.1", NULL, NULL, "no", "" },
        { "kind=text_encoder;architecture=umt5", MODEL "wan-2.2", NULL, NULL, "likely", "" },
        { "kind=text_encoder;architecture=qwen3", MODEL "z-image", NULL, NULL, "unknown", "" },
        { ADAPTER "clip-l", "kind=text_encoder;architecture=clip-l", NULL, NULL, "unknown",
          "cannot be compared" },
    };
    (void)state;
    ROWS(rows);
}

/* ── Texts ── */

static void reasons_are_cut(void **state) {
    char long_name[600], facts[700], reason[256], small[24];
    (void)state;
    for (size_t i = 0; i + 2 < sizeof long_name; i += 2) memcpy(long_name + i, "\xC3\xA9", 3);
    snprintf(facts, sizeof facts, "kind=adapter;architecture=%s", long_name);
    composed *part = told(facts, NULL), *model = told("kind=checkpoint;architecture=sdxl", NULL);
    assert_int_equal(sft_info_fits(&part->info, &model->info, reason, sizeof reason), SFT_FIT_NO);
    assert_non_null(strstr(reason, "\xC3\xA9..., not for sdxl"));
    assert_int_equal(sft_info_fits(&part->info, &model->info, small, sizeof small), SFT_FIT_NO);
    assert_true(strlen(small) < sizeof small && strlen(small) > 20);
    assert_int_equal(strlen(small) % 2, 0); /* "for ", whole characters */
    compose_end(part);
    part = told("kind=adapter;architecture=\xFF\xFE", NULL);
    assert_int_equal(sft_info_fits(&part->info, &model->info, reason, sizeof reason), SFT_FIT_NO);
    for (size_t cap = 0; cap < 4; cap++)
        assert_int_equal(sft_info_fits(&part->info, &model->info, small, cap), SFT_FIT_NO);
    assert_null(sft_fit_name((sft_fit)(SFT_FIT_YES + 1)));
    compose_end(part);
    compose_end(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_kind),
        cmocka_unit_test(reasons_are_cut_between_characters), cmocka_unit_test(by_architecture),
        cmocka_unit_test(by_variant_base_and_prediction),
        cmocka_unit_test(by_origin),
        cmocka_unit_test(by_layers),
        cmocka_unit_test(components),
        cmocka_unit_test(reasons_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
