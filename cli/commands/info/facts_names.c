/* What other programs call our ids. Only what follows for certain: an SDXL file may be Pony's, so
 * that no CivitAI label follows from its tensors. The reverse of src/label/maps.c and declared.c;
 * tests/cli/info/save-as-names.txt reads each row back. */
#include "commands/info/facts.h"
#include "support/models.h"
#include "support/words.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* A value for finding rows: it is not written itself. */
static sft_span peek(cli_saving *saving, const char *fact) {
    size_t count = saving->count;
    sft_span text = cli_known_text(saving, fact);
    saving->count = count;
    return text;
}

/* ── CivitAI ── */

/* variant NULL: any. Architectures to which CivitAI gives one label only. */
static const struct base_label { const char *architecture, *variant, *label; } base_labels[] = {
    { "flux.1-schnell", NULL, "Flux.1 S" }, { "flux.2-dev", NULL, "Flux.2 D" },
    { "chroma", NULL, "Chroma" }, { "anima", NULL, "Anima" },
    { "sd-3.5-medium", NULL, "SD 3.5 Medium" }, { "pixart-alpha", NULL, "PixArt a" },
    { "pixart-sigma", NULL, "PixArt E" }, { "kolors", NULL, "Kolors" },
    { "hunyuan-dit", NULL, "Hunyuan 1" }, { "hunyuan-video", NULL, "Hunyuan Video" },
    { "hidream-i1", NULL, "HiDream" }, { "hidream-o1", NULL, "HiDream-O1" },
    { "lumina-2", NULL, "Lumina" }, { "ltx-video", NULL, "LTXV" },
    { "cogvideox", NULL, "CogVideoX" }, { "mochi", NULL, "Mochi" },
    { "ideogram-4", NULL, "Ideogram 4.0" }, { "krea-2", NULL, "Krea 2" },
    { "lens", NULL, "Lens" }, { "boogu", NULL, "Boogu" }, { "minimax-h3", NULL, "MiniMax H3" },
    { "wan-2.1", "1.3b+t2v", "Wan Video 1.3B t2v" },
    { "wan-2.1", "14b+t2v", "Wan Video 14B t2v" },
    { "wan-2.2", "5b+ti2v", "Wan Video 2.2 TI2V-5B" },
    { "wan-2.2", "14b+i2v", "Wan Video 2.2 I2V-A14B" },
    { "wan-2.2", "14b+t2v", "Wan Video 2.2 T2V-A14B" },
};

/* A label that is told, even if it is not trusted, is more than what the tensors show. */
sft_span cli_civitai_base(cli_saving *saving) {
    sft_span label = cli_known_text(saving, "model.base_model"), none = { "", 0 };
    const sft_node *told = sft_node_find(saving->root, "model.base_model");
    if (label.len > 0 || (told && told->type != SFT_NODE_NULL)) return label;
    sft_span architecture = peek(saving, "model.architecture");
    sft_span variant = peek(saving, "model.variant");
    for (size_t i = 0; i < COUNT(base_labels); i++) {
        const struct base_label *row = &base_labels[i];
        if (!cli_is(architecture, row->architecture)) continue;
        if (row->variant && !cli_is(variant, row->variant)) continue;
        saving->count++;
        return sft_span_cstr(row->label);
    }
    return none;
}

static const char *const civitai_types[][2] = {
    { "checkpoint", "Checkpoint" }, { "diffusion_model", "Checkpoint" },
    { "embedding", "TextualInversion" }, { "controlnet", "Controlnet" }, { "vae", "VAE" },
    { "upscaler", "Upscaler" }, { "motion_module", "MotionModule" },
    { "text_encoder", "TextEncoder" }, { "image_encoder", "CLIPVision" },
    { "detector", "Detection" }, { "language_model", "LLM" },
};

const char *cli_civitai_type(cli_saving *saving) {
    sft_span kind = peek(saving, "model.kind");
    const sft_node *adapter = sft_node_get(saving->root, "adapter");
    if (cli_is(kind, "adapter")) {
        if (!cli_is(sft_node_text(adapter, "type"), "lora")) return "LoCon";
        return sft_node_true(adapter, "dora") ? "DoRA" : "LORA";
    }
    for (size_t i = 0; i < COUNT(civitai_types); i++)
        if (cli_is(kind, civitai_types[i][0])) return civitai_types[i][1];
    return NULL;
}

/* ── A1111 ── */

const char *cli_a1111_version(cli_saving *saving) {
    static const char *const versions[][2] = {
        { "sd-1", "SD1" }, { "sd-2", "SD2" }, { "sdxl", "SDXL" }, { "sd-3", "SD3" },
        { "sd-3-medium", "SD3" }, { "sd-3.5-medium", "SD3" }, { "sd-3.5-large", "SD3" },
    };
    sft_span architecture = peek(saving, "model.architecture");
    for (size_t i = 0; i < COUNT(versions); i++)
        if (cli_is(architecture, versions[i][0])) return cli_known(saving, "model.architecture")
                                                             ? versions[i][1] : NULL;
    return NULL;
}

/* ── ModelSpec ── */

/* variant NULL: of those that have no row. */
static const struct spec_id { const char *architecture, *variant, *id; } spec_ids[] = {
    { "sd-1", "inpaint", "stable-diffusion-v1-inpainting" },
    { "sd-1", NULL, "stable-diffusion-v1" },
    { "sd-2", "inpaint", "stable-diffusion-v2-inpainting" },
    { "sd-2", "depth", "stable-diffusion-v2-depth" },
    { "sdxl", "edit", "stable-diffusion-xl-v1-edit" },
    { "sdxl", NULL, "stable-diffusion-xl-v1-base" },
    { "sdxl-refiner", NULL, "stable-diffusion-xl-v1-refiner" },
    { "ssd-1b", NULL, "segmind-stable-diffusion-1b" },
    { "sd-3-medium", NULL, "stable-diffusion-v3-medium" },
    { "sd-3.5-medium", NULL, "stable-diffusion-3-5-medium" },
    { "sd-3.5-large", NULL, "stable-diffusion-3-5-large" },
    { "stable-cascade-a", NULL, "stable-cascade-v1-stage-a" },
    { "stable-cascade-b", NULL, "stable-cascade-v1-stage-b" },
    { "stable-cascade-c", NULL, "stable-cascade-v1-stage-c" },
    { "flux.1", NULL, "flux-1" }, { "flux.1-dev", "fill", "flux-1-dev-fill" },
    { "flux.1-dev", NULL, "flux-1-dev" }, { "flux.1-schnell", NULL, "flux-1-schnell" },
    { "flux.2", NULL, "flux-2" }, { "flux.2-dev", NULL, "Flux.2-dev" },
    { "flux.2-klein-4b", NULL, "Flux.2-klein-4b" },
    { "flux.2-klein-9b", NULL, "Flux.2-klein-9b" }, { "chroma", NULL, "chroma" },
    { "chroma-radiance", NULL, "chroma-radiance" }, { "lumina-2", NULL, "lumina-2" },
    { "hunyuan-image-2.1", NULL, "hunyuan-image-2.1" },
    { "hunyuan-video", NULL, "hunyuan-video" },
    { "hunyuan-video-1.5", NULL, "hunyuan-video-1.5" }, { "wan-2.1", NULL, "wan2.1" },
    { "wan-2.2", "5b+ti2v", "wan-22-5b" }, { "qwen-image", "edit", "Qwen-Image-Edit" },
    { "qwen-image", "layered", "Qwen-Image-Layered" }, { "qwen-image", NULL, "Qwen-Image" },
    { "kandinsky-5", NULL, "Kandinsky-5" }, { "z-image", NULL, "Z-Image" },
    { "hidream-i1", NULL, "hidream-i1" }, { "hidream-o1", NULL, "HiDream-O1-Image" },
    { "ideogram-4", NULL, "Ideogram-4" }, { "krea-2", NULL, "Krea-2" },
    { "ltx-video", NULL, "lightricks-ltx-video" }, { "ltx-2", NULL, "lightricks-ltx-video-2" },
    { "auraflow", NULL, "auraflow-v1" }, { "omnigen-2", NULL, "omnigen-2" },
    { "cosmos-1", NULL, "nvidia-cosmos-1" }, { "pixart-sigma", NULL, "pixart-ms-sigma-xl-2" },
    { "mochi", NULL, "genmo-mochi-1" }, { "ovis-image", NULL, "ovis" },
    { "longcat-image", NULL, "longcat-image" },
};

/* An empty suffix: none; no row: the spec has no id for such a file. */
static const char *const spec_suffixes[][2] = {
    { "checkpoint", "" }, { "diffusion_model", "" }, { "adapter", "/lora" },
    { "embedding", "/textual-inversion" }, { "controlnet", "/controlnet" },
    { "control_lora", "/control-lora" },
};

static const char *spec_id(cli_saving *saving, sft_span architecture) {
    sft_span variant = peek(saving, "model.variant");
    const char *id = NULL;
    for (size_t i = 0; i < COUNT(spec_ids) && !id; i++) {
        const struct spec_id *row = &spec_ids[i];
        if (!cli_is(architecture, row->architecture)) continue;
        if (!row->variant || cli_is(variant, row->variant)) id = row->id;
    }
    if (id || !cli_is(architecture, "sd-2")) return id;
    sft_span prediction = peek(saving, "model.prediction_type");
    if (cli_is(prediction, "v")) return "stable-diffusion-v2-768-v";
    return cli_is(prediction, "epsilon") ? "stable-diffusion-v2-512" : NULL;
}

sft_span cli_modelspec_architecture(cli_saving *saving) {
    sft_span none = { "", 0 }, kind = peek(saving, "model.kind");
    const char *id = spec_id(saving, peek(saving, "model.architecture")), *suffix = NULL;
    for (size_t i = 0; i < COUNT(spec_suffixes); i++)
        if (cli_is(kind, spec_suffixes[i][0])) suffix = spec_suffixes[i][1];
    if (!id || !suffix) return none;
    size_t len = strlen(id), more = strlen(suffix);
    char *text = sfti_arena_take(&saving->arena, len + more + 1);
    saving->is_full = saving->is_full || !text;
    if (!text) return none;
    memcpy(text, id, len);
    memcpy(text + len, suffix, more + 1);
    saving->count++;
    return (sft_span){ text, len + more };
}

/* How its tensors are named. */
const char *cli_modelspec_implementation(cli_saving *saving) {
    static const char *const sgm[] = { "sd-1", "sd-2", "sdxl", "sdxl-refiner" };
    static const char prefix[] = "model.diffusion_model.";
    sft_span architecture = peek(saving, "model.architecture");
    const sft_node *evidence = cli_first(saving->root, "model.evidence");
    if (cli_is(sft_node_text(saving->root, "adapter.format"), "diffusers")) return "diffusers";
    bool is_sgm = false, is_known = false;
    for (; evidence; evidence = evidence->next)
        is_sgm = is_sgm || (evidence->text.len > sizeof prefix
                            && memcmp(evidence->text.data, prefix, sizeof prefix - 1) == 0);
    for (size_t i = 0; i < COUNT(sgm); i++) is_known = is_known || cli_is(architecture, sgm[i]);
    return is_sgm && is_known ? "sgm" : NULL;
}
