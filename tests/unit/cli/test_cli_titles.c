/* What models are in a line, and what they derive from, by the facts of their results. */
#include "unit/command_case.h"
#include "support/titles.h"

#define DOUBT(value) "{'value':'" value "','trust':60}"
#define LONG "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

typedef struct title_case {
    const char *result, *title, *base; /* base NULL: not looked at */
} title_case;

static const title_case titles[] = {
    /* nothing is known, or little */
    { "{}", "unknown kind", "" },
    { "{'model':{'kind':'unknown'}}", "unknown kind", "" },
    { "{'model':{'family':'llama-like'}}", "Llama-like of unknown kind", "" },
    { "{'model':{'architecture':'sdxl'}}", "SDXL of unknown kind", "SDXL" },
    { "{'model':{'quantization':" DOUBT("gptq-4bit") "}}", "unknown kind, GPTQ 4-bit?", "" },
    { "{'import':{'title':'PyTorch checkpoint'}}", "PyTorch checkpoint, unknown kind", "" },
    { "{'model':{'family':'bert-like'},'import':{'title':'PyTorch checkpoint'}}",
      "BERT-like of unknown kind (PyTorch)", "" },
    { "{'model':{'kind':'vae'},'import':{'title':'GGUF'}}", "VAE (GGUF)", "" },
    /* what stands for itself */
    { "{'model':{'kind':'checkpoint','architecture':'sdxl'}}", "SDXL", "SDXL" },
    { "{'model':{'kind':'checkpoint','architecture':'flux.1'}}", "Flux.1, all in one", "Flux.1" },
    { "{'model':{'kind':'diffusion_model','architecture':'sdxl'}}", "SDXL, U-Net only", "SDXL" },
    { "{'model':{'kind':'diffusion_model','architecture':'flux.1'}}", "Flux.1", "Flux.1" },
    { "{'model':{'kind':'pipeline','architecture':'sdxl'}}", "SDXL, pipeline", "SDXL" },
    { "{'model':{'kind':" DOUBT("pipeline") "}}", "pipeline?", "" },
    { "{'model':{'kind':'language_model','family':" DOUBT("llama-like") ",'parameters':7000000}}",
      "Llama-like? language model 7M", "" },
    { "{'model':{'kind':'checkpoint','architecture':'never-heard-of'}}",
      "never-heard-of, all in one", "never-heard-of" },
    /* sizes: as a name states them, else rounded */
    { "{'model':{'kind':'language_model','architecture':'llama','parameters':999999}}", "Llama",
      NULL },
    { "{'model':{'kind':'language_model','architecture':'llama','parameters':8240000000}}",
      "Llama 8.2B", "Llama" },
    { "{'model':{'kind':'language_model','architecture':'llama','parameters':8030000000}}",
      "Llama 8B", NULL },
    { "{'model':{'kind':'language_model','architecture':'llama','parameters':14770000000}}",
      "Llama 15B", NULL },
    { "{'model':{'kind':'language_model','architecture':'llama','parameters':12450000000}}",
      "Llama 12B", NULL },
    { "{'model':{'kind':'language_model','architecture':'llama','parameters':999499999}}",
      "Llama 999M", NULL },
    { "{'model':{'kind':'language_model','architecture':'llama','parameters':999500000}}",
      "Llama 1B", NULL },
    { "{'model':{'kind':'language_model','architecture':'llama','parameters':14770000000,"
      "'name':'Some 14B b xB 1x4b 15c'}}", "Llama 14B", NULL },
    { "{'model':{'kind':'language_model','architecture':'llama','parameters':1240000000,"
      "'name':'70B of 123456789012345678b'},'path':'d/Small-1.3b.safetensors'}", "Llama 1.3B",
      NULL },
    { "{'model':{'kind':'language_model','parameters':2000000,'name':'3b'}}",
      "language model 2M", NULL },
    { "{'model':{'kind':'pipeline','llm':{'layers':2},'parameters':2000000}}", "pipeline 2M",
      NULL },
    { "{'model':{'kind':'pipeline','llm':null,'parameters':2000000}}", "pipeline", NULL },
    /* variants */
    { "{'model':{'kind':'checkpoint','architecture':'wan','variant':'14b+high-noise+i2v'}}",
      "Wan I2V 14B, high noise, all in one", NULL },
    { "{'model':{'kind':'diffusion_model','architecture':'wan','variant':" DOUBT("high-noise") "}}",
      "Wan, high noise?", NULL },
    { "{'model':{'kind':'diffusion_model','architecture':'wan','variant':'low-noise+own'}}",
      "Wan, low noise own", NULL },
    { "{'model':{'kind':'diffusion_model','architecture':'flux.1-dev','variant':'dev'}}",
      "Flux.1 dev", NULL },
    /* bases that say more than the architecture, or the same */
    { "{'model':{'kind':'checkpoint','architecture':'sdxl','base_model':'SDXL 1.0'}}", "SDXL",
      "SDXL" },
    { "{'model':{'kind':'checkpoint','architecture':'sdxl','base_model':'Pony'}}", "SDXL (Pony)",
      "Pony" },
    { "{'model':{'kind':'checkpoint','architecture':'sdxl','base_model':" DOUBT("Pony") "}}",
      "SDXL (Pony?)", "Pony?" },
    { "{'model':{'kind':'checkpoint','architecture':'sdxl','base_model':'Other'}}", "SDXL",
      "SDXL" },
    { "{'model':{'kind':'checkpoint','architecture':'wan','base_model':'Wan Video 2.2 T2V-A14B'}}",
      "Wan 2.2 T2V 14B, all in one", "Wan 2.2 T2V 14B" },
    { "{'model':{'kind':'checkpoint','architecture':'wan','base_model':"
      DOUBT("Wan Video 2.2 T2V-A14B") "}}", "Wan 2.2 T2V 14B?, all in one", "Wan 2.2 T2V 14B?" },
    { "{'model':{'kind':'checkpoint','architecture':" DOUBT("sdxl") ",'base_model':'x/y" LONG "'}}",
      "SDXL? (y0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\xE2\x80\xA6)",
      NULL },
    /* "1" is also said by "1.5" */
    { "{'model':{'kind':'checkpoint','architecture':'sd-1','base_model':'SD 1.5 inpaint'}}",
      "SD 1.5 inpaint", "SD 1.5 inpaint" },
    { "{'model':{'kind':'checkpoint','architecture':'sd-1','base_model':'SD v1'}}",
      "SD 1 (SD v1)", "SD v1" },
    /* predictions: what is usual is not told */
    { "{'model':{'kind':'checkpoint','architecture':'sdxl','prediction_type':'epsilon'}}",
      "SDXL", NULL },
    { "{'model':{'kind':'checkpoint','architecture':'sdxl','prediction_type':" DOUBT("v") "}}",
      "SDXL v-pred?", NULL },
    { "{'model':{'kind':'checkpoint','architecture':'sdxl','prediction_type':'flow'}}",
      "SDXL flow", NULL },
    { "{'model':{'kind':'checkpoint','architecture':'kolors','prediction_type':'flow'}}",
      "Kolors flow, all in one", NULL },
    { "{'model':{'kind':'checkpoint','architecture':'flux.1','prediction_type':'flow'}}",
      "Flux.1, all in one", NULL },
    { "{'model':{'kind':'checkpoint','prediction_type':'flow'}}", "checkpoint", NULL },
    /* what is made for something */
    { "{'model':{'kind':'adapter'}}", "adapter", "" },
    { "{'model':{'kind':'adapter','architecture':'sdxl'},'adapter':{'type':'lora','rank':"
      "{'min':4,'max':16}}}", "LoRA r4-16 for SDXL", "SDXL" },
    { "{'model':{'kind':'adapter','architecture':'sdxl','base_model':'Pony'},'adapter':"
      "{'type':'lora','dora':true,'rank':{'min':8,'max':8}}}", "DoRA r8 for SDXL (Pony)", "Pony" },
    { "{'model':{'kind':'adapter','negative':true},'adapter':{'type':'lokr','dora':true}}",
      "negative LoKr (DoRA)", "" },
    { "{'model':{'kind':'adapter'},'adapter':{'type':'mixed','rank':{'min':8,'max':8}}}",
      "mixed adapter r8", "" },
    { "{'model':{'kind':'control_lora','architecture':'sdxl'},'adapter':{'type':'lora'}}",
      "Control-LoRA for SDXL", "SDXL" },
    { "{'model':{'kind':'control_lora','variant':'control'},'adapter':{'type':'lora'}}",
      "Control-LoRA", "" },
    { "{'model':{'kind':" DOUBT("controlnet") ",'architecture':'sdxl','variant':" DOUBT("canny")
      ",'base_model':'NoobAI'}}", "ControlNet? for SDXL (canny?, NoobAI)", "NoobAI" },
    { "{'model':{'kind':'controlnet','architecture':'sdxl','variant':'canny'}}",
      "ControlNet for SDXL (canny)", "SDXL" },
    { "{'model':{'kind':'embedding','family':'llama-like'}}", "embedding for a Llama-like model",
      "" },
    { "{'model':{'kind':'embedding','family':" DOUBT("vit") "}}", "embedding for a ViT?", "" },
    { "{'model':{'kind':'adapter','variant':'i2v','quantization':'fp8'}}", "adapter, FP8 (I2V)",
      "" },
    /* what is a part of something */
    { "{'model':{'kind':'vae','architecture':'vae-wan'}}", "VAE (Wan)", "Wan" },
    { "{'model':{'kind':'vae','architecture':'vae-own'}}", "VAE (own)", "own" },
    { "{'model':{'kind':'vae','architecture':'vae'}}", "VAE (vae)", "vae" },
    { "{'model':{'kind':'vae','family':'autoencoder'}}", "VAE", "" },
    { "{'model':{'kind':'vae','family':'autoencoder','base_model':'Pony'}}", "VAE (Pony)", "Pony" },
    { "{'model':{'kind':'vae','family':'own','base_model':" DOUBT("Pony") "}}", "VAE (own, Pony?)",
      "Pony?" },
    { "{'model':{'kind':" DOUBT("text_encoder") ",'architecture':'clip-l','base_model':'Pony'}}",
      "text encoder? (CLIP-L, Pony)", "Pony" },
    { "{'model':{'kind':'text_encoder','architecture':'clip-l'}}", "text encoder (CLIP-L)", "" },
    { "{'model':{'kind':'upscaler','quantization':'own-int8'}}", "upscaler, own-int8", "" },
    /* a base's file that tells nothing of it */
    { "{'model':{'kind':'checkpoint','architecture':'sdxl',"
      "'base_checkpoint':'a/model.safetensors'}}",
      "SDXL", "SDXL" },
    { "{'model':{'kind':'checkpoint','architecture':'sdxl','base_model':'Other','base_checkpoint':"
      "'C:\\\\m\\\\animefull.ckpt'}}", "SDXL", "animefull" },
    { "{'model':{'base_model':'C:\\\\\\\\m\\\\\\\\own.safetensors'}}", "unknown kind", "own" },
    { "{'model':{'base_model':'own//thing'}}", "unknown kind", "thing" },
    { "{'model':{'base_model':'own\\\\'}}", "unknown kind", "own" },
    { "{'model':{'base_model':'/'}}", "unknown kind", "/" },
    { "{'model':{'kind':'checkpoint','architecture':'sdxl','base_model':'own/thing/'}}",
      "SDXL (thing)", NULL },
};

static void titles_of_results(void **state) {
    char buffer[CLI_TITLE_SIZE], shown[CLI_TITLE_SIZE + 1];
    size_t wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        sft_tree *tree = tree_of(titles[i].result);
        const sft_node *root = sft_tree_root(tree);
        for (int base = 0; base < 2; base++) {
            const char *wanted = base ? titles[i].base : titles[i].title;
            sft_span text = base ? cli_base_words(root, buffer) : cli_title(root, buffer);
            memcpy(shown, text.data, text.len);
            shown[text.len] = '\0';
            if (!wanted || strcmp(shown, wanted) == 0) continue;
            print_error("%s of %s: expected \"%s\", found \"%s\"\n", base ? "base" : "title",
                        titles[i].result, wanted, shown);
            wrong++;
        }
        sft_tree_free(tree);
    }
    assert_int_equal(wrong, 0);
}

/* A text out of a file, however long, leaves a title in its buffer. */
static void titles_of_long_texts(void **state) {
    char buffer[CLI_TITLE_SIZE], json[4096], name[3000];
    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(json, sizeof json, "{'model':{'kind':'checkpoint','architecture':'%.1100s',"
             "'base_model':'%.1100s y','variant':'%.500s'}}", name, name, name);
    sft_tree *tree = tree_of(json);
    sft_span text = cli_title(sft_tree_root(tree), buffer);
    assert_int_equal(text.len, CLI_TITLE_SIZE);
    assert_memory_equal(text.data, name, CLI_TITLE_SIZE);
    sft_tree_free(tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(titles_of_results),
        cmocka_unit_test(titles_of_long_texts),
    };
    return cmocka_run_group_tests_name("titles of models", tests, NULL, NULL);
}
