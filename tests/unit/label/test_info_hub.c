/* Files of a folder that speak for its one model: model cards and configurations; and the
 * small YAML they are written in. */
#define _GNU_SOURCE
#include "unit/beside_case.h"

#define CARD(text) { { "README.md", "---\n" text "---\n" } }
#define BODY(text) { { "README.md", "# Title\n\n" text } }
#define CONFIG(text) { { "config.json", text } }
#define NOTHING { NULL }

static const beside_case cases[] = {
    /* ── Front matter ── */
    { "a whole card", NULL,
      CARD("license: mit\nbase_model: black-forest-labs/FLUX.1-dev\ntags:\n- "
      "text-to-image\n- lora\n"
           "- diffusers\nlanguage: en\ninstance_prompt: \"p3rs0n\"\nmodel_name: 'It''s'\n"
           "widget:\n- text: p3rs0n in a hat\n  output:\n    url: a.png\n- text: >-\n    two\n"
           "    lines\n  parameters:\n    negative_prompt: blur\n") ,
      { "license=mit|70|sidecar:README.md:/license",
        "base_checkpoint=black-forest-labs/FLUX.1-dev|70|sidecar:README.md:/base_model",
        "tags=text-to-image + lora + diffusers|70|", "language=en|70|",
        "trigger=p3rs0n|85|", "name=It's|80|", "kind=adapter|60|sidecar:README.md:/tags/1",
        "prompt=p3rs0n in a hat||||||sidecar:README.md:/widget/0",
        "prompt=two lines|blur|||||sidecar:README.md:/widget/1", "sidecar=readme|null||" },
      NOTHING, NULL, false },
    { "no front matter", NULL, { { "README.md", "license: mit\ninstance_prompt: x\n" } },
      { "sidecar=readme|" }, { "license=", "trigger=" }, NULL, false },
    { "front matter that never ends", NULL, { { "README.md", "---\nlicense: mit\n" } },
      { "sidecar=readme|" }, { "license=" }, NULL, false },
    { "no instance prompt", NULL, CARD("instance_prompt: null\n"), { "sidecar=readme|" },
      { "trigger=" }, NULL, false },
    { "an instance prompt elsewhere", NULL, CARD("other:\n  instance_prompt: no\n"),
      { "sidecar=readme|" }, { "trigger=" }, NULL, false },
    { "another licence by name", NULL, CARD("license: other\nlicense_name: flux-1-dev\n"),
      { "license=flux-1-dev|70|sidecar:README.md:/license_name" }, { "license=other" }, NULL,
      false },
    { "a licence and a name", NULL, CARD("license: mit\nlicense_name: nice\n"),
      { "license=mit|70|" }, { "nice" }, NULL, false },
    { "base models", NULL, CARD("base_model:\n- org/a\n- org/b\n"),
      { "base_checkpoint=org/a + org/b|70|" }, NOTHING, NULL, false },
    { "one base model in a list", NULL, CARD("base_model: [org/a]\n"),
      { "base_checkpoint=org/a|70|sidecar:README.md:/base_model" }, NOTHING, NULL, false },
    { "an adapter by relation", NULL, CARD("base_model_relation: adapter\n"),
      { "kind=adapter|60|" }, NOTHING, NULL, false },
    { "no adapter by relation", NULL, CARD("base_model_relation: finetune\ntags: [flora]\n"),
      { "tags=flora|70|" }, { "kind=" }, NULL, false },
    { "carriage returns", NULL, { { "README.md",
    "---\r\nlicense: mit\r\ntags:\r\n- a\r\n---\r\n" } },
      { "license=mit|70|", "tags=a|70|" }, NOTHING, NULL, false },
    { "lower case name", NULL, { { "readme.md", "---\nlicense: mit\n---\n" } },
      { "license=mit|70|sidecar:readme.md:/license" }, NOTHING, NULL, false },

    /* ── YAML ── */
    { "comments, quotes, brackets", NULL,
      CARD("# license: no\nlicense: mit # yes\n\"tags\": [ 'a, b', \"c\\u00e9\\n\", d ]\n"
           "language: [en, de,]\n"),
      { "license=mit|70|", "tags=a, b + c\xC3\xA9 + d|70|", "language=en + de|70|" },
      { "license=no" }, NULL, false },
    { "blocks", NULL, CARD("description: |\n  one\n\n   two\nlicense: mit\n"),
      { "description=one\n\n two|70|", "license=mit" }, NOTHING, NULL, false },
    { "continued lines", NULL, CARD("description: one\n  two # no\n  three\nlicense: mit\n"),
      { "description=one two three|70|", "license=mit" }, NOTHING, NULL, false },
    { "a quote over lines", NULL, CARD("description: \"one\n  two\"\nlicense: mit\n"),
      { "description=one two|70|", "license=mit" }, NOTHING, NULL, false },
    { "a quote that never ends", NULL, CARD("tags: [a]\ndescription: \"one\nlicense: mit\n"),
      { "tags=a|70|" }, { "description=", "license=" }, NULL, false },
    { "maps in braces and anchors", NULL,
      CARD("widget: {text: no}\nmodel_name: &x no\ninstance_prompt: !!str no\nlicense: mit\n"),
      { "license=mit" }, { "=no", "name=&" }, NULL, false },
    { "lists in lists", NULL, CARD("tags:\n  - - no\n  - yes it is\nlicense: mit\n"),
      { "tags=yes it is|70|", "license=mit" }, { "=no" }, NULL, false },
    { "a key with a slash", NULL, CARD("a/b:\n  license: no\nx:\n  license: no\n"),
      { "sidecar=readme|" }, { "license=" }, NULL, false },
    { "surrogates and escapes", NULL, CARD("model_name: \"\\ud83d\\ude00 \\x \\ud83d\"\n"),
      { "name=\xF0\x9F\x98\x80 x ud83d|80|" }, NOTHING, NULL, false },

    /* ── Body ── */
    { "the sentence with quotes", NULL,
      BODY("## Trigger words\n\nYou should use `ohwx man` to trigger the image generation.\n"),
      { "trigger=ohwx man|70|0|sidecar:README.md" }, NOTHING, NULL, false },
    { "the sentence without quotes", NULL,
      BODY("## Trigger words\n\nYou should use a photo of sks dog to trigger the image "
      "generation.\n"),
      { "trigger=a photo of sks dog|70|0|" }, NOTHING, NULL, false },
    { "the sentence with two", NULL,
      BODY("## Trigger words\nYou should use `a`, `b` to trigger the image generation.\n## "
      "Next\n`c`\n"),
      { "trigger=a|70|0|", "trigger=b|70|1|" }, { "trigger=c" }, NULL, false },
    { "the sentence in no section", NULL,
      BODY("You should use `w` to trigger the image generation.\nUse `x` well.\n"),
      { "trigger=w|70|0|" }, { "trigger=x" }, NULL, false },
    { "no trigger words", NULL, BODY("## Trigger words\n\nNo trigger words defined.\n"),
      { "sidecar=readme|" }, { "trigger=" }, NULL, false },
    { "none required", NULL, BODY("## Trigger words\n\n*Not required*\n"),
      { "sidecar=readme|" }, { "trigger=" }, NULL, false },
    { "no need", NULL, BODY("## Trigger words\n\nNo need for one\n"),
      { "sidecar=readme|" }, { "trigger=" }, NULL, false },
    { "none in Chinese", NULL, BODY("## Trigger words\n\n\xE6\x97\xA0\n"),
      { "sidecar=readme|" }, { "trigger=" }, NULL, false },
    { "a word, and no need of more", NULL,
      BODY("## Trigger words\n\n`neon`, and there is no need for anything else, but what you like "
           "to see in the picture, as in every other prompt of such a model.\n"),
      { "trigger=neon|70|0|" }, NOTHING, NULL, false },
    { "none at all", NULL, BODY("## Trigger words\n\nNone\n\n## Usage\n`pip`\n"),
      { "sidecar=readme|" }, { "trigger=" }, NULL, false },
    { "a list", NULL, BODY("### Trigger Words:\n- **neon**\n- \"rain\"\n"),
      { "trigger=neon|70|0|", "trigger=rain|70|1|" }, NOTHING, NULL, false },
    { "a line", NULL, BODY("## Trigger word\nneon city\n"), { "trigger=neon city|70|0|" },
      NOTHING, NULL, false },
    { "a sentence", NULL, BODY("## Trigger word\nThis model was made on a rainy day.\n"),
      { "sidecar=readme|" }, { "trigger=" }, NULL, false },
    { "code in the section", NULL, BODY("## Trigger words\n- neon\n```py\n`no`\n```\n"),
      { "trigger=neon|70|0|" }, { "trigger=no" }, NULL, false },
    { "a description", NULL, BODY("## Model description\n\nA city.\n\n## More\nno\n"),
      { "description=A city.|70|sidecar:README.md" }, { "no|70" }, NULL, false },
    { "no description yet", NULL, BODY("## Model Description\n\n[More Information Needed]\n"),
      { "sidecar=readme|" }, { "description=" }, NULL, false },

    /* ── config.json ── */
    { "a language model", NULL,
      CONFIG("{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\","
      "\"hidden_size\":4096,"
             "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,"
             "\"vocab_size\":128256}"),
      { "architecture=llama|90|sidecar:config.json:/architectures/0", "kind=language_model|90|",
        "llm=32/4096/32/8/128256" }, { "quantization" }, NULL, false },
    { "heads by other names", NULL,
      CONFIG("{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":64,\"n_head\":8,"
             "\"tie_word_embeddings\":true}"),
      { "llm=2/64/8/0/0" }, NOTHING, NULL, false },
    { "one head for keys and values", NULL,
      CONFIG("{\"model_type\":\"falcon\",\"num_hidden_layers\":2,\"hidden_size\":64,"
             "\"num_attention_heads\":8,\"num_kv_heads\":8,\"multi_query\":true,"
             "\"new_decoder_architecture\":false,\"tie_word_embeddings\":true}"),
      { "llm=2/64/8/1/0" }, NOTHING, NULL, false },
    { "groups of them", NULL,
      CONFIG("{\"model_type\":\"falcon\",\"num_hidden_layers\":2,\"hidden_size\":64,"
             "\"num_attention_heads\":8,\"num_kv_heads\":2,\"multi_query\":true,"
             "\"new_decoder_architecture\":true,\"tie_word_embeddings\":true}"),
      { "llm=2/64/8/2/0" }, NOTHING, NULL, false },
    { "of its text model", NULL,
      CONFIG("{\"model_type\":\"llama\",\"tie_word_embeddings\":true,\"text_config\":{"
             "\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":8,"
             "\"num_key_value_heads\":null,\"vocab_size\":9}}"),
      { "llm=2/64/8/0/9" }, NOTHING, NULL, false },
    { "beside an adapter", NULL,
      CONFIG("{\"architectures\":[\"LlamaForCausalLM\"],\"num_hidden_layers\":32,\"hidden_size\":8,"
             "\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4}}"),
      { "architecture=llama|90|" }, { "kind=", "llm=", "quantization=" }, NULL, true },
    { "by type, tied", NULL, CONFIG("{\"model_type\":\"qwen3\",\"tie_word_embeddings\":true}"),
      { "architecture=qwen3|90|sidecar:config.json:/model_type", "kind=language_model|90|" },
      NOTHING, NULL, false },
    { "by type, not tied", NULL, CONFIG("{\"model_type\":\"qwen3\",\"tie_word_embeddings\":false}"),
      { "architecture=qwen3|90|" }, { "kind=" }, NULL, false },
    { "gptq", NULL,
      CONFIG("{\"model_type\":\"llama\","
      "\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}}"),
      { "quantization=gptq-4bit|90|sidecar:config.json:/quantization_config" }, NOTHING, NULL,
      false },
    { "gptq without bits", NULL,
      CONFIG("{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"gptq\"}}"),
      { "architecture=llama" }, { "quantization=" }, NULL, false },
    { "bitsandbytes", NULL,
      CONFIG("{\"quantization_config\":{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true,"
             "\"load_in_8bit\":false,\"bnb_4bit_quant_type\":\"nf4\"}}"),
      { "quantization=bnb-nf4|90|" }, NOTHING, NULL, false },
    { "bitsandbytes of eight bits", NULL,
      CONFIG("{\"quantization_config\":{\"load_in_8bit\":true,\"bnb_4bit_quant_type\":\"nf4\"}}"),
      { "quantization=bnb-int8|90|" }, NOTHING, NULL, false },
    { "fp8 in blocks", NULL,
      CONFIG("{\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128,"
      "128]}}"),
      { "quantization=fp8-block|90|" }, NOTHING, NULL, false },
    { "fp8", NULL, CONFIG("{\"quantization_config\":{\"quant_method\":\"fp8\"}}"),
      { "quantization=fp8|90|" }, NOTHING, NULL, false },
    { "mlx", NULL, CONFIG("{\"quantization\":{\"group_size\":64,\"bits\":4}}"),
      { "quantization=mlx-4bit|90|" }, NOTHING, NULL, false },
    { "mlx, told twice, of several widths", NULL,
      CONFIG("{\"quantization\":{\"group_size\":64,\"bits\":4,\"a.b\":{\"bits\":4},"
             "\"lm_head\":{\"bits\":6}},"
             "\"quantization_config\":{\"group_size\":64,\"bits\":4,\"lm_head\":{\"bits\":6}}}"),
      { "quantization=mlx|90|" }, { "-4bit" }, NULL, false },
    { "mlx, layers of the same width", NULL,
      CONFIG("{\"quantization\":{\"bits\":4,\"lm_head\":{\"bits\":4}}}"),
      { "quantization=mlx-4bit|90|" }, NOTHING, NULL, false },
    { "gptq, some layers wider", NULL,
      CONFIG("{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,"
             "\"dynamic\":{\"+:.*down_proj\":{\"bits\":8}}}}"),
      { "quantization=gptq|90|" }, { "-4bit" }, NULL, false },
    { "compressed-tensors, one group", NULL,
      CONFIG("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\","
             "\"format\":\"pack-quantized\",\"config_groups\":{\"group_0\":{\"weights\":{"
             "\"num_bits\":4},\"input_activations\":{\"num_bits\":8}}}}}"),
      { "quantization=compressed-tensors-w4a8|90|" }, NOTHING, NULL, false },
    { "compressed-tensors, groups of two widths", NULL,
      CONFIG("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\","
             "\"format\":\"mixed-precision\",\"config_groups\":{\"group_0\":{\"weights\":{"
             "\"num_bits\":4}},\"group_1\":{\"weights\":{\"num_bits\":8}}}}}"),
      { "quantization=compressed-tensors|90|" }, { "-w8a16", "-w4a16" }, NULL, false },
    { "compressed-tensors, activations of one group", NULL,
      CONFIG("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\","
             "\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":8},"
             "\"input_activations\":{\"num_bits\":8}},\"group_1\":{\"weights\":{"
             "\"num_bits\":8},\"input_activations\":null}}}}"),
      { "quantization=compressed-tensors|90|" }, { "-w8a8" }, NULL, false },
    { "a UNet of SDXL", NULL,
      CONFIG("{\"_class_name\":\"UNet2DConditionModel\",\"cross_attention_dim\":2048,"
      "\"in_channels\":4}"),
      { "architecture=sdxl|90|sidecar:config.json:/_class_name", "kind=diffusion_model|90|" },
      { "variant=" }, NULL, false },
    { "an inpainting UNet of SD 1", NULL,
      CONFIG("{\"_class_name\":\"UNet2DConditionModel\",\"cross_attention_dim\":768,"
      "\"in_channels\":9}"),
      { "architecture=sd-1|90|", "variant=inpaint|90|" }, NOTHING, NULL, false },
    { "a UNet of no known width", NULL,
      CONFIG("{\"_class_name\":\"UNet2DConditionModel\",\"cross_attention_dim\":512}"),
      { "kind=diffusion_model|90|", "architecture=UNet2DConditionModel|90|" }, NOTHING, NULL,
      false },
    { "FLUX.1 dev", NULL,
      CONFIG("{\"_class_name\":\"FluxTransformer2DModel\",\"guidance_embeds\":true}"),
      { "architecture=flux.1-dev|90|" }, NOTHING, NULL, false },
    { "FLUX.1 without guidance: schnell, or distilled no more", NULL,
      CONFIG("{\"_class_name\":\"FluxTransformer2DModel\",\"guidance_embeds\":false}"),
      { "architecture=flux.1|90|" }, NOTHING, NULL, false },
    { "a VAE of 16 channels", NULL,
      CONFIG("{\"_class_name\":\"AutoencoderKL\",\"latent_channels\":16,"
             "\"scaling_factor\":0.3611}"),
      { "architecture=vae-flux|90|", "kind=vae|90|" }, NOTHING, NULL, false },
    { "SD 3's", NULL,
      CONFIG("{\"_class_name\":\"AutoencoderKL\",\"latent_channels\":16,"
             "\"scaling_factor\":1.5305}"),
      { "architecture=vae-sd-3|90|", "kind=vae|90|" }, NOTHING, NULL, false },
    { "one of them, or another", NULL,
      CONFIG("{\"_class_name\":\"AutoencoderKL\",\"latent_channels\":16,"
             "\"scaling_factor\":1}"),
      { "architecture=AutoencoderKL|90|", "kind=vae|90|" }, NOTHING, NULL, false },
    { "a class that is not known", NULL, CONFIG("{\"_class_name\":\"Nonsense\"}"),
      { "architecture=Nonsense|90|sidecar:config.json:/_class_name" }, { "kind=" }, NULL,
      false },
    { "a broken config", NULL, CONFIG("{\"model_type\":\"llama\""),
      { "expected JSON" }, { "architecture=" }, NULL, false },

    /* ── Others ── */
    { "adapter_config", "adapter_model.safetensors",
      { { "adapter_config.json",
          "{\"peft_type\":\"LORA\","
          "\"base_model_name_or_path\":\"meta-llama/Llama-3.1-8B-Instruct\","
          "\"r\":16,\"lora_alpha\":32,\"use_dora\":false,\"use_rslora\":true,"
          "\"auto_mapping\":{\"base_model_class\":\"LlamaForCausalLM\"}}" } },
      { "kind=adapter|90|", "rank=16|90", "alpha=32|90", "rslora\n", "architecture=llama|90|",
        "base_checkpoint=meta-llama/Llama-3.1-8B-Instruct|90|sidecar:adapter_config.json:"
        "/base_model_name_or_path" }, { "\ndora" }, NULL, false },
    { "adapter_config of others", NULL,
      { { "adapter_config.json", "{\"peft_type\":\"LORA\",\"r\":16}" }, { "y.safetensors", NULL } },
      { "one_model=0" }, { "kind=", "rank=" }, NULL, false },
    { "model_index", NULL,
      { { "model_index.json", "{\"_class_name\":\"StableDiffusionXLPipeline\"}" } },
      { "architecture=sdxl|90|sidecar:model_index.json:/_class_name" }, { "kind=" }, NULL, false },
    { "a scheduler", NULL,
      { { "scheduler/", NULL },
        { "scheduler/scheduler_config.json", "{\"_class_name\":\"EulerDiscreteScheduler\","
                                             "\"prediction_type\":\"v_prediction\"}" } },
      { "prediction_type=v|90|sidecar:scheduler/scheduler_config.json:/prediction_type" },
      NOTHING, NULL, false },
    { "a scheduler by class", NULL,
      { { "scheduler_config.json", "{\"_class_name\":\"FlowMatchEulerDiscreteScheduler\"}" } },
      { "prediction_type=flow|90|" }, NOTHING, NULL, false },
    { "a scheduler that says nothing", NULL,
      { { "scheduler_config.json", "{\"_class_name\":\"EulerDiscreteScheduler\"}" } },
      { "sidecar=scheduler_config.json|" }, { "prediction_type=" }, NULL, false },
    { "nunchaku's folder", "transformer_blocks.safetensors",
      { { "unquantized_layers.safetensors", NULL },
        { "comfy_config.json", "{\"model_class\":\"Flux\",\"model_config\":{}}" } },
      { "one_model=1", "architecture=flux.1|90|sidecar:comfy_config.json:/model_class" },
      NOTHING, NULL, false },
    { "half of nunchaku's folder", "transformer_blocks.safetensors",
      { { "y.safetensors", NULL }, { "comfy_config.json", "{\"model_class\":\"Flux\"}" } },
      { "one_model=0" }, { "architecture=" }, NULL, false },
};

static void every_case(void **state) {
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) wrong += case_run(&cases[i]);
    assert_int_equal(wrong, 0);
}

/* ── Time ── */

/* Front matter a megabyte long, made of one piece again and again. */
static void long_front_matter(void **state) {
    static const char *const pieces[] = {
        "a: \"\n", "a: [\n", "a: |\n", "- - - - - - - - - - - - - - - - - - - -\n", "a:\n", "'",
        "- [\"", "a: {", " ", "#", "\\", "- a: b\n", "\xC3\xA9", "x: >\n y\n",
    };
    const size_t most = (size_t)1 << 20;
    char *text = malloc(most + 64);
    (void)state;
    assert_non_null(text);
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        temp_folder temp;
        size_t len = 4, step = strlen(pieces[p]);
        memcpy(text, "---\n", 4);
        for (; len + step < most; len += step) memcpy(text + len, pieces[p], step);
        memcpy(text + len, "\n---\n## Trigger words\n`w`\n", 27);
        temp_begin(&temp);
        (void)temp_text(&temp, "README.md", text);
        case_write(&temp, &(case_file){ "x.safetensors", NULL });
        sft_info info;
        sft_set *set;
        const char *path = temp_path(&temp, "x.safetensors");
        assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
        case_begin(&info, set, path, false);
        sfti_info_sidecars(&info, NULL);
        assert_int_equal(info.code, SFT_OK);
        assert_true(info.arena.bytes < most * 64);
        assert_int_equal(info.triggers.count, 1);
        sfti_arena_free(&info.arena);
        sft_set_close(set);
        temp_end(&temp);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case),
        cmocka_unit_test(long_front_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
