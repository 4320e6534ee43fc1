/* The files beside a model, as any bytes: the first byte chooses what reads the rest, one of
 * the sidecars, README.md and config.json and the like, a picture, base64 of one, or the
 * tags of a training. Then the label is made, and must be JSON. No file is opened. */
#include "label/reads.h"
#include "label/sidecars/sidecars.h"
#include "text/formats.h"
#include "planned.h"

static sft_span copy_text(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    FUZZ_CHECK(text);
    memcpy(text, data, size);
    for (size_t at; (at = sfti_utf8_check(text, size)) < size;) text[at] = '?';
    text[size] = '\0';
    return (sft_span){ text, size };
}

#define LAYER "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q"

/* A LoRA of one layer with that metadata. */
static sft_plan *plan_model(const char *key, sft_span value) {
    static const uint64_t down[] = { 4, 320 }, up[] = { 320, 4 };
    sft_spec specs[] = { { sft_span_cstr(LAYER ".lora_down.weight"), SFT_F16, 2, down },
                         { sft_span_cstr(LAYER ".lora_up.weight"), SFT_F16, 2, up } };
    sft_pair pair = { sft_span_cstr(key), value };
    sft_plan *plan = NULL;
    FUZZ_CHECK(!sft_plan_new(specs, 2, &pair, 1, NULL, &plan, NULL));
    return plan;
}

enum { PICTURE, BASE64, TAGS, OTHERS };

static void read_row(sft_info *info, const sfti_sidecar_row *row, sft_span text) {
    sfti_sidecar *sidecar = sfti_sidecar_new(info, sft_span_cstr("x.json"), row->kind);
    FUZZ_CHECK(sidecar);
    sidecar->source = sft_span_cstr("sidecar:x.json");
    if (row->keys) sfti_sidecar_read(info, sidecar, text, row->keys);
    else row->read(info, sidecar, text);
}

static void read_other(sft_info *info, size_t which, sft_span bytes) {
    sft_span decoded;
    uint32_t width, height;
    if (which == PICTURE) {
        (void)sfti_image_type(bytes, &width, &height);
        sfti_info_png_text(info, bytes, sft_span_cstr("sidecar:x.png"));
    } else if (which == BASE64
               && sfti_base64(&info->arena, bytes, 1 << 20, &decoded, &info->code)) {
        FUZZ_CHECK(decoded.len <= bytes.len);
        (void)sfti_image_type(decoded, &width, &height);
    }
}

static void read_any(sft_info *info, size_t which, sft_span bytes, sft_span text) {
    size_t hub = sfti_hub_row_count;
    if (which < OTHERS) read_other(info, which, bytes);
    else if (which < OTHERS + hub) read_row(info, &sfti_hub_rows[which - OTHERS], text);
    else read_row(info, &sfti_sidecar_rows[which - OTHERS - hub], text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    (void)sfti_header_reads(sft_span_cstr("x")); /* keys are read before files */
    sfti_sidecar_keys_ready();
    if (size == 0) return 0;
    size_t which = data[0] % (OTHERS + sfti_hub_row_count + sfti_sidecar_row_count);
    sft_span bytes = { (const char *)data + 1, size - 1 }, text = copy_text(data + 1, size - 1);
    sft_info_options options = SFT_INFO_OPTIONS_INIT;
    options.header_only = true;
    sft_info *info;
    bool tags = which == TAGS;
    sft_plan *plan = tags ? plan_model("ss_tag_frequency", text)
                          : plan_model("format", sft_span_cstr("pt"));
    sft_set *set = open_planned(plan);
    FUZZ_CHECK(!sft_info_open(set, "x.safetensors", NULL, &options, &info, NULL));
    read_any(info, which, bytes, text);
    sfti_info_match_sidecars(info, &(sfti_digests){ 0 });
    sfti_info_resolve(info);
    FUZZ_CHECK(!info->code);
    check_label(info, true);
    sft_info_close(info);
    sft_set_close(set);
    sft_plan_free(plan);
    free((void *)(uintptr_t)text.data);
    return 0;
}
