/* Keys of a header whose values are of other types than they should be, or say nothing. */
#include "unit/header_case.h"

static char told[16384];

static void say(const char *format, ...) {
    size_t at = strlen(told);
    va_list args;
    va_start(args, format);
    vsnprintf(told + at, sizeof told - at, format, args);
    va_end(args);
}

#define TEXT(span) (int)(span).len, (span).data ? (span).data : ""

static void tell_value(const char *name, const sfti_fact_value *value) {
    say("%s=%.*s", name, TEXT(value->text));
    for (size_t i = 0; i < value->count; i++) say("%s%.*s", i ? "+" : "", TEXT(value->items[i]));
}

static void tell_all(const model *m) {
    *told = 0;
    for (int f = 0; f < SFT_FACT_COUNT; f++)
        for (const sfti_fact *fact = m->info.facts[f]; fact; fact = fact->next) {
            tell_value(sft_fact_name((sft_fact)f), &fact->value);
            say("|%d|", fact->trust);
        }
    for (int k = 0; k < TRAIN_KEYS; k++)
        if (m->info.training[k].type || m->info.training[k].text.len || m->info.training[k].count) {
            tell_value(sfti_training_slots[k].name, &m->info.training[k]);
            say("|");
        }
    for (const sfti_loader *one = m->info.loaders.first; one; one = one->next)
        say("loader=%.*s %.*s %.*s %.*s|", TEXT(one->type), TEXT(one->name),
             TEXT(one->strength_model),
             TEXT(one->strength_clip));
    for (const sfti_trigger *one = m->info.triggers.first; one; one = one->next)
        say("trigger=%.*s %d|", TEXT(one->text), one->trust);
    for (const sfti_claim *one = m->info.claims.first; one; one = one->next)
        say("%s=%.*s %s|", one->algo, TEXT(one->value), one->known ? one->known : "-");
    for (const sfti_civitai *one = m->info.civitai.first; one; one = one->next)
        say("civitai=%llu/%llu|", (unsigned long long)one->model_id,
             (unsigned long long)one->version_id);
    for (const sfti_merge_source *one = m->info.merge_sources.first; one; one = one->next)
        say("merged=%.*s|", TEXT(one->name));
    for (const sfti_fact *one = m->info.declared_rank; one; one = one->next)
        say("rank=%.*s|", TEXT(one->value.text));
    for (const sfti_fact *one = m->info.declared_alpha; one; one = one->next)
        say("alpha=%.*s|", TEXT(one->value.text));
    say("method=%.*s %.*s|rating=%g|negative=%d|previews=%zu|", TEXT(m->info.merge_method),
         TEXT(m->info.merge_tool), m->info.rating, m->info.negative, m->info.previews.count);
}

#define NOTHING "method= |rating=-1|negative=-1|previews=0|"

/* All that is told of a header. */
static const struct { const char *pairs[9], *told; } cases[] = {
    { { "ss_training_started_at", "x", "ss_training_finished_at", "soon" }, NOTHING },
    { { "ss_training_started_at", "0.5", "ss_training_finished_at", "9" },
        "date=1970-01-01T00:00:09Z|80|finished_at=1970-01-01T00:00:09Z|" NOTHING },
    { { "ss_training_started_at", "9", "ss_training_finished_at", "8" },
      "date=1970-01-01T00:00:08Z|80|started_at=1970-01-01T00:00:09Z|finished_at=1970-01-01T00:00:"
      "08Z|" NOTHING },
    { { "ss_training_started_at", "9", "ss_training_finished_at", "2e10" },
      "date=2603-10-11T11:33:20Z|80|started_at=1970-01-01T00:00:09Z|finished_at=2603-10-11T11:33:"
      "20Z|" NOTHING },
    { { "ss_text_encoder_lr", "[1e-5, x,2e-5 ,]" }, NOTHING },
    { { "ss_text_encoder_lr", "(x)" }, NOTHING }, { { "ss_text_encoder_lr", "[" }, NOTHING },
    { { "ss_text_encoder_lr", "[1,2,3,4,5,6,7,8,9]" }, "text_encoder_lr=1+2+3+4+5+6+7+8|" NOTHING },
    { { "ss_text_encoder_lr", "5e-5" }, "text_encoder_lr=5e-5|" NOTHING },
    { { "ss_network_args", "[1]" }, NOTHING }, { { "ss_network_args", "{\"a\": 1}" },
        "network_args={\"a\": 1}|" NOTHING },
    { { "ss_sd_model_hash", "123", "ss_vae_hash", "12345678" }, "autov1=12345678|" NOTHING },
    { { "ss_network_module", "networks.control_net_lllite" },
        "network_module=networks.control_net_lllite|" NOTHING },
    { { "ss_network_module", "networks.lora", "ss_session_id", "5" },
      "kind=adapter|75|tool=sd-scripts|network_module=networks.lora|session_id=5|" NOTHING },
    { { "ss_network_module", "networks.lora", "ss_epoch", "x", "ss_num_train_items", "5" },
      "kind=adapter|75|tool=musubi-tuner|images_with_repeats=5|network_module=networks.lora|"
      "" NOTHING },
    { { "ss_batch_size_per_device", "2000000" }, NOTHING }, { { "ss_batch_size_per_device", "x" },
        NOTHING },
    { { "ss_batch_size_per_device", "2", "ss_gradient_accumulation_steps", "x" },
        NOTHING },
    { { "ss_batch_size_per_device", "2", "ss_gradient_accumulation_steps", "3" },
        "batch_size=6|" NOTHING },
    { { "sshs_model_hash", AAA, "ss_network_module", "lycoris.kohya" },
      "kind=adapter|75|network_module=lycoris.kohya|sshs_model=" AAA " LyCORIS module order|"
      "" NOTHING },
    { { "sshs_model_hash", AAA, "software", "{\"name\":\"AI-Toolkit\",\"version\":5}" },
      "tool=ai-toolkit|tool_version=5|sshs_model=" AAA " ai-toolkit before conversion|" NOTHING },
    { { "software", "{\"name\":5}" }, NOTHING }, { { "software", "{\"name\":\"mine\"}" },
        "tool=mine|" NOTHING },
    { { "modelspec.title", "x_1_", "prompt", "no" }, "name=x_1_|85|" NOTHING },
    { { "modelspec.title", "x_1_", "modelspec.predict_key", "v" },
        "name=x_1_|40|prediction_type=v|85|" NOTHING },
    { { "modelspec.title", "12", "modelspec.predict_key", "v" },
        "name=12|85|prediction_type=v|85|" NOTHING },
    { { "modelspec.title", "x1", "modelspec.predict_key", "v" },
        "name=x1|85|prediction_type=v|85|" NOTHING },
    { { "modelspec.title", "LoRA@1690000000" }, NOTHING }, { { "modelspec.title", "LoRA@x" },
        "name=LoRA@x|85|" NOTHING },
    { { "modelspec.title", "LoRA@" }, "name=LoRA@|40|" NOTHING }, { { "modelspec.title",
        "SDXL 1.0 LoRA" }, "name=SDXL 1.0 LoRA|40|" NOTHING },
    { { "modelspec.title", "SDXL LoRA fox" }, "name=SDXL LoRA fox|85|" NOTHING },
    { { "modelspec.title", "t", "ot_revision", "r" },
        "name=t|40|tool=onetrainer|tool_version=r|" NOTHING },
    { { "modelspec.title", "t", "ot_branch", "r" }, "name=t|40|tool=onetrainer|" NOTHING },
    { { "modelspec.hash_sha256", "0x" AAA, "ot_config", "{" },
        "tool=onetrainer|sshs_model=" AAA " OneTrainer name order|" NOTHING },
    { { "modelspec.implementation_version", "sd-scripts" }, NOTHING },
    { { "modelspec.implementation_version", "SD-Scripts/unknown" }, "tool=sd-scripts|" NOTHING },
    { { "modelspec.implementation_version", "mine/1" }, NOTHING },
    { { "modelspec.merged_from", "a, None,, b" }, "merged=a|merged=b|" NOTHING },
    { { "modelspec.date", "yesterday" }, NOTHING },
    { { "modelspec.is_negative_embedding", "yes" }, NOTHING },
    { { "modelspec.is_negative_embedding", " True" }, "method= |rating=-1|negative=1|previews=0|" },
    { { "modelspec.thumbnail", "data:image/png;base64,R0lGODlhAwAFAA==" },
        "method= |rating=-1|negative=-1|previews=1|" },
    { { "modelspec.thumbnail", "aGVsbG8=" }, NOTHING }, { { "modelspec.lora_default_weight", "0" },
        NOTHING },
    { { "modelspec.encoder_layer", "x" }, NOTHING }, { { "modelspec.resolution", "wide" },
        NOTHING },
    { { "ssmd_rating", "0" }, NOTHING }, { { "ssmd_rating", "x" }, NOTHING },
    { { "ssmd_rating", "9" }, "method= |rating=4.5|negative=-1|previews=0|" },
    { { "ss_text_encoder_lr", "(1e-5, 2e-5 ,)" }, "text_encoder_lr=1e-5+2e-5|" NOTHING },
    { { "ssmd_rating", "11" }, NOTHING },
    { { "trigger_words", "[\"fox\", \"red, wolf\"]" },
        "trigger=fox 90|trigger=red, wolf 90|" NOTHING },
    { { "trained_words", "['fox', \"fox's den\"]" },
        "trigger=fox 90|trigger=fox's den 90|" NOTHING },
    { { "keywords", "[]", "tags", "[]" }, NOTHING },
    { { "keywords", "[fox|wolf], red]" }, "trigger=[fox|wolf], red] 90|" NOTHING },
    { { "modelspec.trigger_phrase", "N/A" }, NOTHING },
    { { "modelspec.tags", "['a', \"b\"]" }, "tags=a+b|85|" NOTHING },
    { { "ssmd_source", "https://civitai.com/models/9?modelVersionId=8" }, "civitai=9/8|" NOTHING },
    { { "ssmd_tags", "a, b,a", "ssmd_keywords", "None" }, "tags=a+b|90|" NOTHING },
    { { "lora_adapter_metadata",
        "{\"unet.r\":8,\"unet.lora_alpha\":\"x\",\"unet.use_dora\":true}" },
        "kind=adapter|90|rank=8|" NOTHING },
    { { "ot_config", "{\"model_type\":5,\"base_model_name\":6,\"lora_rank\":\"x\",\"seed\":true,"
        "\"epochs\":2}" },
      "tool=onetrainer|epochs=2|" NOTHING },
    { { "_quantization_metadata",
        "{\"layers\":{\"a\":{\"format\":\"float8_e4m3fn\"},\"b\":{\"format\":\"nvfp4\"},\"c\":{\""
        "format\":"
        "\"nvfp4\"},\"d\":{\"format\":\"mine\"},\"e\":{}}}" }, "quantization=nvfp4|90|" NOTHING },
    { { "_quantization_metadata", "{\"layers\":[]}" }, NOTHING },
    { { "prompt", "{\"1\":{\"class_type\":\"ModelMergeSimple\",\"inputs\":{}},\"2\":{\"class_type"
        "\":\"ModelMergeBlocks\",\"inputs\":{}},"
        "\"3\":{\"class_type\":5,\"inputs\":{\"a\":\"x.ckpt\",\"b\":\"y.pt\",\"c\":\"z.pth\",\"d"
        "\":\"v.bin\",\"e\":\"w.gguf\",\"f\":\"no\"}}}" },
      "loader= x.ckpt  |loader= y.pt  |loader= z.pth  |loader= v.bin  |method=ModelMergeSimple co"
      "mfyui|rating=-1|negative=-1|previews=0|" },
    { { "prompt", " " }, NOTHING }, { { "prompt", "{" }, NOTHING },
    { { "workflow", "{\"nodes\":[{\"type\":\"LoraLoader\",\"widgets_values\":[0.5,\"a.sft\",0.6,0"
        ".7,0.8]},{\"type\":\"VAELoader\","
        "\"widgets_values\":[\"b.sft\",0.9]}]}" },
        "loader=LoraLoader a.sft 0.6 0.7|loader=VAELoader b.sft  |" NOTHING },
    { { "prompt", "{\"1\":{\"class_type\":\"LoraLoader\",\"inputs\":{\"lora\":{\"lora\":\"a.sft\""
        "},\"strength_model\":\"x\",\"strength_clip\":"
        "0.5}}}" }, "loader=LoraLoader a.sft  0.5|" NOTHING },
};

static void every_case(void **state) {
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(cases); i++) {
        model m;
        sft_pair pairs[4];
        size_t count = 0;
        for (; cases[i].pairs[2 * count]; count++)
            pairs[count] = (sft_pair){ s(cases[i].pairs[2 * count]),
                            s(cases[i].pairs[2 * count + 1]) };
        open_pairs(&m, pairs, count);
        read_header(&m);
        tell_all(&m);
        if (strcmp(told, cases[i].told) != 0) {
            print_error("%s=%s:\n  expected %s\n  found    %s\n", cases[i].pairs[0],
                        cases[i].pairs[1], cases[i].told, told);
            wrong++;
        }
        done(&m);
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_case) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
