/* Parts of checkpoints, markers, folders, embeddings, evidence, and what hostile names do. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/compose.h"

#define LDM "model.diffusion_model."
#define K ".transformer_blocks.0.attn2.to_k.weight"
#define SDXL_LDM(ch) \
    "input_blocks.0.0.weight[320," ch ",3,3] label_emb.0.0.weight[1280,2816] " \
    "input_blocks.4.1" K "[640,2048] middle_block.1.proj_in.weight[1280,1280] "
#define SD1_LDM(ch) \
    "input_blocks.0.0.weight[320," ch ",3,3] input_blocks.1.1" K "[320,768] "
#define SD1_CKPT(ch) \
    LDM "input_blocks.0.0.weight[320," ch ",3,3] " LDM "input_blocks.1.1" K "[320,768] " \
    "first_stage_model.decoder.conv_in.weight[512,4,3,3] first_stage_model.decoder.up.3.x[1] " \
    "first_stage_model.decoder.conv_out.weight[3,128,3,3] " \
    "first_stage_model.decoder.mid.block_1.norm1.weight[512] " \
    "cond_stage_model.transformer.text_model.embeddings.position_embedding.weight[77,768] " \
    "cond_stage_model.transformer.text_model.encoder.layers.{0-11}.mlp.fc1.weight[3072,768] "
#define FLUX(img) \
    "double_blocks.{0-18}.img_attn.norm.key_norm.scale[128] " \
    "single_blocks.{0-37}.linear1.weight[21504,3072] img_in.weight[3072," img "] " \
    "vector_in.in_layer.weight[3072,768] txt_in.weight[3072,4096] "
#define GUIDED "guidance_in.in_layer.weight[3072,256] "
#define LLAMA(l) \
    "model.layers.{0-" l "}.self_attn.q_proj.weight[4096,4096] " \
    "model.layers.{0-" l "}.self_attn.k_proj.weight[1024,4096] " \
    "model.layers.{0-" l "}.mlp.gate_proj.weight[14336,4096] " \
    "model.layers.{0-" l "}.input_layernorm.weight[4096] " \
    "model.embed_tokens.weight[128256,4096] model.norm.weight[4096] "
#define T5 "text_encoders.t5xxl.transformer."
#define QWEN "text_encoders.qwen3_4b.transformer.model.layers.0."

#define RECORDS sfti_records_built_in()

/* ── Components, sizes, precision ── */

static const sfti_component *component_at(const sfti_list *list, size_t i) {
    const sfti_component *c = list->first;
    while (c && i-- > 0) c = c->next;
    return c;
}

static void checkpoints_fall_into_parts(void **state) {
    (void)state;
    composed *made = compose(SD1_CKPT("4") "model_ema.x[3]");
    const sfti_list *list = &made->info.components;
    assert_int_equal(list->count, 4);
    assert_string_equal(component_at(list, 0)->part, "unet");
    assert_string_equal(component_at(list, 0)->architecture, "sd-1");
    assert_int_equal(component_at(list, 0)->weights.known, 320 * 4 * 9 + 320 * 768);
    assert_string_equal(component_at(list, 1)->part, "ema");
    assert_string_equal(component_at(list, 2)->part, "vae");
    assert_string_equal(component_at(list, 2)->architecture, "vae-sd");
    assert_int_equal(component_at(list, 0)->trust, 100);
    assert_int_equal(component_at(list, 1)->trust, -1);
    assert_string_equal(component_at(list, 3)->part, "text_encoder");
    assert_string_equal(component_at(list, 3)->architecture, "clip-l");
    assert_string_equal(component_at(list, 3)->dtype, "F16");
    assert_string_equal(made->info.size, "full");
    assert_string_equal(made->info.precision, "fp16");
    compose_end(made);
    made = compose(SD1_CKPT("4"));
    assert_string_equal(made->info.size, "pruned");
    compose_end(made);
    made = compose(SD1_LDM("4"));
    assert_null(made->info.size);
    assert_int_equal(made->info.components.count, 1);
    compose_end(made);
}

/* Of VAEs with the same layers. */
static void a_checkpoint_has_its_own_vae(void **state) {
    static const char vae[] = "first_stage_model.decoder.conv_in.weight[512,16,3,3] "
                              "first_stage_model.decoder.up.3.x[1] "
                              "first_stage_model.decoder.conv_out.weight[3,128,3,3]";
    static const struct { const char *denoiser, *id; } cases[] = {
        { "joint_blocks.{0-37}.context_block.attn.qkv.weight[7296,2432] "
          "joint_blocks.{0-37}.x_block.attn.qkv.weight[7296,2432] "
          "x_embedder.proj.weight[2432,16,2,2] ", "vae-sd-3" },
        { FLUX("64"), "vae-flux" },
        { "double_stream_modulation_img.lin.weight[36864,6144] ", "vae-flux" },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(cases); i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", cases[i].denoiser, vae);
        composed *made = compose(text);
        const sfti_list *list = &made->info.components;
        assert_int_equal(list->count, 2);
        assert_string_equal(component_at(list, 1)->part, "vae");
        assert_string_equal(component_at(list, 1)->architecture, cases[i].id);
        assert_int_equal(component_at(list, 1)->trust, 60);
        compose_end(made);
    }
}

static void encoders_are_numbered(void **state) {
    static const struct { const char *tensors, *part; } cases[] = {
        { "text_encoders.clip_l.transformer.x[1] ", "text_encoder_2" },
        { "text_encoders.clip_l.transformer.x[1] text_encoders.clip_g.transformer.x[1] ",
          "text_encoder_3" },
        { "", "text_encoder" },
    };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char text[2048];
        snprintf(text, sizeof text,
                 "%s" LDM "x[1] " T5 "shared.weight[32128,4096] "
                 T5 "encoder.block.{0-23}.layer.0.SelfAttention.k.weight[4096,4096] "
                 T5 "encoder.block.{0-23}.layer.1.DenseReluDense.wi_1.weight[10240,4096]",
                 cases[i].tensors);
        composed *made = compose(text);
        const sfti_component *last = component_at(&made->info.components,
                                                  made->info.components.count - 1);
        assert_string_equal(last->part, cases[i].part);
        assert_string_equal(last->architecture, "t5-xxl");
        compose_end(made);
    }
}

static void a_named_encoder_is_recognised(void **state) {
    (void)state;
    composed *made = compose(LDM FLUX("64") QWEN "self_attn.q_norm.weight[128] "
                             QWEN "self_attn.q_proj.weight[8,8] "
                             QWEN "mlp.gate_proj.weight[8,8] "
                             QWEN "input_layernorm.weight[8]");
    const sfti_component *te = component_at(&made->info.components, 1);
    assert_string_equal(te->part, "text_encoder");
    assert_string_equal(te->architecture, "qwen3");
    assert_false(made->info.has_llm);
    compose_end(made);
}

/* ── Markers ── */

static void markers_tell_the_prediction(void **state) {
    static const struct { const char *tensors, *expected; } cases[] = {
        { SDXL_LDM("4") "v_pred[0]", "v@95" },
        { SDXL_LDM("4") "vpred[0]", "-" },
        { SDXL_LDM("4") "edm_mean[4] edm_std[4]", "edm@95" },
        { SDXL_LDM("4") "edm_mean[4]", "-" },
        { SDXL_LDM("4") "edm_vpred.sigma_max[]", "edm-v@95" },
        { "distilled_guidance_layer.x[1] nerf_blocks.0.norm.scale[1] __x0__[0]", "x0@95" },
        { "v_pred[0]", "-" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[64];
        composed *made = compose(cases[i].tensors);
        compose_fact(&made->info, SFT_FACT_PREDICTION_TYPE, got, sizeof got);
        assert_string_equal(got, cases[i].expected);
        compose_end(made);
    }
}

/* ── Folders ── */

static void a_folder_makes_an_encoder(void **state) {
    static const struct { const char *path, *kind; } cases[] = {
        { "m/text_encoder/model", "text_encoder" }, { "m/clip/model", "text_encoder" },
        { "m/text_encoder_2/model", "text_encoder" }, { "m/textencoder/model", "language_model" },
        { "m/clips/model", "language_model" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[64];
        composed *made = compose_with(LLAMA("1") "lm_head.weight[1,1]", NULL, 0, NULL, 0,
                                      cases[i].path);
        sfti_info_tensors(&made->info);
        compose_fact(&made->info, SFT_FACT_KIND, got, sizeof got);
        assert_string_equal(got, cases[i].kind);
        compose_end(made);
    }
}

/* ── Embeddings, evidence, families ── */

static void an_embedding_is_called_by_its_stem(void **state) {
    (void)state;
    composed *made = compose_with("emb_params:F32[5,768]", NULL, 0, NULL, 0, "x/easy_hands");
    sfti_info_tensors(&made->info);
    const sfti_trigger *trigger = made->info.triggers.first;
    assert_int_equal(made->info.vectors, 5);
    assert_non_null(trigger);
    assert_true(sft_span_equal(trigger->text, sft_span_cstr("easy_hands")));
    assert_true(sft_span_equal(trigger->source, sft_span_cstr("filename")));
    assert_int_equal(trigger->trust, 85);
    compose_end(made);
    made = compose("emb_params:F32[5,768]");
    assert_int_equal(made->info.triggers.count, 0);
    compose_end(made);
    made = compose_with("hello:F32[3,768]", NULL, 0, NULL, 0, "hello");
    sfti_info_tensors(&made->info);
    char got[128];
    assert_string_equal(compose_facts(&made->info, got, sizeof got), "embedding@70 sd-1@70 -");
    compose_end(made);
    made = compose("<cat>:F32[2,768]");
    trigger = made->info.triggers.first;
    assert_true(sft_span_equal(trigger->text, sft_span_cstr("<cat>")));
    assert_int_equal(trigger->trust, 90);
    compose_end(made);
}

static void evidence_names_what_decided(void **state) {
    (void)state;
    composed *made = compose(FLUX("64") GUIDED);
    const sfti_note *first = made->info.evidence.first;
    assert_int_equal(made->info.evidence.count, 6);
    assert_true(sft_span_equal(
        first->text, sft_span_cstr("double_blocks.0.img_attn.norm.key_norm.scale [128]")));
    assert_true(sft_span_equal(first->next->text, sft_span_cstr("img_in.weight [3072,64]")));
    compose_end(made);
}

static void families(void **state) {
    static const struct { const char *a, *b; bool related; } cases[] = {
        { "flux.1", "flux.1-dev", true },      { "flux.1-dev", "flux.1-schnell", false },
        { "flux.1", "flux.2", false },         { "chroma", "flux.1", true },
        { "chroma-radiance", "flux.1", true }, { "sdxl", "pony", true },
        { "sdxl", "sdxl-refiner", false },     { "sd-1", "sd-1", true },
        { "sd-1", "sd-2", false },             { "wan", "wan-2.2", true },
        { "llama", "mistral", true },          { "sd-3", "sd-3.5-large", true },
        { "", "sdxl", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sft_span a = sft_span_cstr(cases[i].a), b = sft_span_cstr(cases[i].b);
        assert_int_equal(sfti_related_architectures(RECORDS, a, b), cases[i].related);
        assert_int_equal(sfti_related_architectures(RECORDS, b, a), cases[i].related);
    }
}

/* ── What no file should do ── */

static void hostile_names(void **state) {
    char huge[140];
    (void)state;
    memset(huge, 'a', sizeof huge);
    memcpy(huge + 120, ".lora_A[2]", 11);
    static const char *const cases[] = {
        "text_encoders.[1]", "text_encoders.x[1]", "[1]", "model.[1]", "conv_in.weight[] "
        "up_blocks.[0]",
        "layers.99999999999999999999.self_attn.q_proj.weight[1,1]", "bundle_emb.[1] "
        "bundle_emb..[1]",
        "model.layers.{0-2000}.x[0]", ".lora_A[1]", ".lora_A.weight[0,0] .lora_B.weight[0,0]",
        "x.lokr_w1[] x.lokr_w2[]", "x.hada_w1_b[] x.hada_w1_a[]", "x.alpha[1,1] y.alpha[]",
        "a.qweight:I32[] a.qzeros:I32[] a.scales[] a.g_idx:I32[]",
        "a.qweight:I32[0,0] a.qzeros:I32[0] a.scales[0,0]", "unet:0:down[] unet:0:up[]",
        "<>[768]", "<a>[]", "a.weight:U32[] a.scales[] a.biases[]",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) compose_end(compose(cases[i]));
    compose_end(compose(huge));
}

/* ── Memory ── */

/* Counts down; fails from then on. */
typedef struct failing {
    size_t left;
} failing;

static void *failing_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    failing *f = ctx;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    if (f->left == 0) return NULL;
    f->left--;
    return realloc(ptr, new_size);
}

/* Whether it went well when so many allocations do. */
static bool with_allocations(const char *tensors, size_t left) {
    failing f = { left };
    composed *made = compose_with(tensors, NULL, 0, NULL, 0, "x/lora");
    made->info.arena.alloc = (sft_allocator){ failing_resize, &f };
    sfti_info_tensors(&made->info);
    sft_code code = made->info.code;
    assert_true(code == SFT_OK || code == SFT_OUT_OF_MEMORY);
    compose_end(made);
    return code == SFT_OK;
}

static void memory_that_runs_out(void **state) {
    static const char *const cases[] = {
        SD1_CKPT("4"), LLAMA("3"), "emb_params:F32[5,768]",
        "lora_unet_a.lora_down.weight[4,9] lora_unet_a.lora_up.weight[9,4] lora_unet_a.alpha[]",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t left = 0;
        while (!with_allocations(cases[i], left)) assert_true(left++ < 1000);
        assert_true(left > 0);
    }
}

/* ── Real files ── */

static const struct { const char *path, *facts; } samples[] = {
    { "KohakuBlueleaf_LyCORIS/result/smart_falcon_4_lokr", "adapter sd-1 -" },
    { "cloneofsimo_lora/example_loras/lora_disney_inpainting", "adapter sd-1 -" },
    { "huggingface_peft/results_glue/adapter_ckpt/adapter_model", "adapter - -" },
    { "invoke-ai_InvokeAI/test_embedding", "embedding sd-1 -" },
    { "snakers4_silero-vad/src/silero_vad/data/silero_vad_16k", "audio_model silero-vad -" },
    { "huggingface_candle/candle-examples/examples/whisper/mel_filters", "unknown - -" },
    { "huggingface_candle/candle-examples/examples/csm/voices", "unknown - -" },
    { "mlverse_safetensors/tests/testthat/safetensors/hello", "unknown - -" },
    { "FluxML_SafeTensors.jl/test/torch", "unknown - -" },
};

static void real_files(void **state) {
    const char *shared = getenv("SFT_SHARED");
    size_t seen = 0;
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        char path[512], got[256];
        sft_set *set;
        sft_info info = { .options = SFT_INFO_OPTIONS_INIT, .folder = { ".", 1 } };
        snprintf(path, sizeof path, "%s/samples/%s.safetensors", shared ? shared : "../shared",
                 samples[i].path);
        if (sft_set_open(path, NULL, &set, NULL) != SFT_OK) continue;
        info.arena.alloc = sfti_allocator(NULL);
        info.records = sfti_records_built_in();
        info.set = set;
        sfti_info_tensors(&info);
        assert_int_equal(info.code, SFT_OK);
        if (strcmp(compose_facts(&info, got, sizeof got), samples[i].facts) != 0)
            fail_msg("%s: expected %s, found %s", path, samples[i].facts, got);
        sfti_arena_free(&info.arena);
        sft_set_close(set);
        seen++;
    }
    if (seen == 0) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_fall_into_parts),
        cmocka_unit_test(a_checkpoint_has_its_own_vae),
        cmocka_unit_test(encoders_are_numbered),
        cmocka_unit_test(a_named_encoder_is_recognised),
        cmocka_unit_test(markers_tell_the_prediction),
        cmocka_unit_test(a_folder_makes_an_encoder),
        cmocka_unit_test(an_embedding_is_called_by_its_stem),
        cmocka_unit_test(evidence_names_what_decided),
        cmocka_unit_test(families),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(memory_that_runs_out),
        cmocka_unit_test(real_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
