/* What stands before the names that rows tell of, a table each, in the order of trying. */
#include "label/tensors/signatures.h"

static const char *const special_prefixes[] = { "", "control_model.", "module." };

static const char *const denoiser_prefixes[] = {
    "model.diffusion_model.", "diffusion_model.", "", "net.", "transformer.", "unet.",
    "model.model.", "model.", "base_model.model.", "dit.", "module.",
};

/* What the names of a component that stands alone may begin with. */
static const char *const alone_prefixes[] = {
    "", "model.", "first_stage_model.", "vae.", "text_encoder.", "cond_stage_model.",
    "conditioner.embedders.0.", "image_encoder.", "module.", "vit.", "dinov2.", "swin.",
    "wav2vec2.", "hubert.", "params_ema.", "params.", "encoder.",
};

/* What the names of a model that is no part of a diffusion model may begin with. */
static const char *const other_prefixes[] = {
    "", "model.", "module.", "vit.", "dinov2.", "swin.", "wav2vec2.", "hubert.", "params_ema.",
    "params.", "encoder.", "convnext.", "convnextv2.", "dinov2_with_registers.", "efficientnet.",
    "deit.", "swinv2.", "hiera.", "focalnet.", "poolformer.", "levit.", "mobilevit.",
    "mobilevitv2.", "mobilenet_v2.", "regnet.", "bit.", "pvt.", "pvt_v2.", "cvt.", "depth_pro.",
    "wavlm.", "speecht5.",
};

static const char *const language_prefixes[] = {
    "", "model.", "language_model.model.", "model.language_model.", "language_model.",
    "transformer.", "transformer.model.", "gpt_neox.", "backbone.", "bert.", "roberta.",
    "distilbert.", "deberta.", "rwkv.", "llm.", "llm.model.", "mpnet.", "albert.", "electra.",
    "mobilebert.", "longformer.", "convbert.", "nomic_bert.", "gte.", "esm.", "roformer.", "fnet.",
    "funnel.", "luke.", "layoutlmv3.", "prophetnet.", "led.",
};

#define AFTER(prefixes) prefixes, SFTI_COUNT(prefixes)

const sfti_table sfti_tables[SFTI_TABLES] = {
    [SFTI_SPECIAL] = { sfti_special_rows, AFTER(special_prefixes) },
    [SFTI_DENOISERS] = { sfti_denoiser_rows, AFTER(denoiser_prefixes) },
    [SFTI_VAES] = { sfti_vae_rows, AFTER(alone_prefixes) },
    [SFTI_IMAGES] = { sfti_image_rows, AFTER(alone_prefixes) },
    [SFTI_ENCODERS] = { sfti_encoder_rows, AFTER(alone_prefixes) },
    [SFTI_OTHERS] = { sfti_other_rows, AFTER(other_prefixes) },
    [SFTI_LANGUAGE] = { sfti_language_rows, AFTER(language_prefixes) },
};

bool sfti_match_table(const sfti_view *view, const char *before, sfti_table_id id,
                      sfti_matched *out, sfti_view *at) {
    const sfti_table *table = &sfti_tables[id];
    return sfti_match_after(view, before, table->prefixes, table->prefix_count, table->rows, out,
                            at);
}
