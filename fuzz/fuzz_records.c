/* Any text as a user's file of records: read after a few that are known, or refused with a place;
 * then all that is asked of records, and labels of an adapter and of a model by them. */
#include "planned.h"

#include "label/records/read.h"
#include "label/tensors/adapters.h"
#include "lint/lint.h"

#include <string.h>

static const char known[] =
    "several\n prefixes denoiser \"\" model.\n prefixes vae \"\"\n prefixes special \"\"\n"
    " says task Edit\nkind vae\n says civitai VAE\nkind diffusion_model\n class *Model !*Net\n"
    "kind adapter\nfamily vit\n structure - 90\n  blocks_#_attn\nprediction v\n says any v\n"
    "quantisation int8\nvariant edit \"Edit\"\n"
    "model base \"Base\"\n says civitai Base\n says use base variant=edit\n"
    " tensors diffusion_model 100\n  blocks.#.attn.weight[8,*]\n  !head.*\n"
    " adapter 60\n  ^blocks_#_attn$[in=8]\n variant edit: head.weight\n spare head.*\n";

static sft_set *set_of(bool adapter) {
    static const char *const model[] = { "blocks.0.attn.weight", "blocks.7.attn.weight",
                                         "model.img_in.weight", "head.weight" };
    static const char *const lora[] = { "lora_unet_blocks_0_attn.lora_down.weight",
                                        "lora_unet_blocks_0_attn.lora_up.weight",
                                        "lora_te2_x_self_attn_q_proj.lora_down.weight",
                                        "lora_te2_x_self_attn_q_proj.lora_up.weight" };
    static const uint64_t dims[2] = { 8, 8 };
    static const sft_pair pairs[] = { { { "modelspec.architecture", 22 }, { "base/lora", 9 } },
                                      { { "ss_base_model_version", 21 }, { "base", 4 } },
                                      { { "config", 6 }, { "{\"a\":{\"b\":[1,\"x\"]}}", 19 } } };
    sft_spec specs[4];
    sft_plan *plan;
    for (size_t i = 0; i < 4; i++)
        specs[i] = (sft_spec){ sft_span_cstr(adapter ? lora[i] : model[i]), SFT_F16, 2, dims };
    FUZZ_CHECK(!sft_plan_new(specs, 4, pairs, 3, NULL, &plan, NULL));
    return open_planned(plan); /* the plan is kept with it */
}

static void ask_rows(const sfti_records *records) {
    for (uint16_t i = 0; i < records->row_count; i++) {
        const sfti_record_row *row = &records->rows[i];
        sft_span rest = sfti_row_text(row), why, clauses;
        size_t line, column;
        uint64_t left = 1u << 20;
        if (row->text == 0) continue;
        FUZZ_CHECK(sfti_row_source(records, row));
        FUZZ_CHECK(sfti_records_place(records, row->at, &line, &column));
        FUZZ_CHECK(sfti_row_written(records, row).len > 0);
        for (sfti_record_item item; sfti_next_item(&rest, &item);)
            FUZZ_CHECK(item.value.data >= row->at && item.value.data <= row->at + row->len);
        (void)sfti_row_name(row, &clauses);
        (void)sfti_row_never_holds(row, &left, &why);
        sfti_slip slips[4];
        size_t count = sfti_row_slips(records, row, slips, 4);
        FUZZ_CHECK(count <= 4);
        for (size_t k = 0; k < count; k++)
            FUZZ_CHECK(sfti_records_place(records, slips[k].at.data, &line, &column));
        for (uint16_t k = 0; k < records->row_count && k < 64; k++)
            (void)sfti_rows_overlap(records, row, &records->rows[k], &left, &why);
    }
}

static void ask_words(const sfti_records *records) {
    const sfti_record_row *row;
    sft_span text = sft_span_cstr("Base Edit-1.0 XModel"), variant, label;
    const char *architecture, *kind;
    for (int producer = 0; producer < SFTI_PRODUCERS; producer++)
        for (int type = 0; type < SFTI_RECORD_TYPES; type++)
            (void)sfti_said(records, (sfti_record_type)type, (sfti_producer)producer, text,
                            type & 1, &row);
    (void)sfti_map_class_name(records, sft_span_cstr("BaseEditPipeline"), &architecture, &kind,
                              &row);
    (void)sfti_map_class_name(records, sft_span_cstr("BaseModel"), &architecture, &kind, &row);
    (void)sfti_map_derivative(records, text, &variant, &label, &row);
    for (size_t i = 0; i < sfti_record_count(records); i++) {
        const sfti_record *record = sfti_record_at(records, i);
        if (!record->id) continue;
        sft_span id = sft_span_cstr(record->id);
        (void)sfti_architecture_kin(records, id, sft_span_cstr("base"));
        (void)sfti_kin_of_part(records, id, SFTI_VAES, id);
        (void)sfti_common_architecture(records, record->id, "base");
        (void)sfti_spared(records, id, text, &label);
        FUZZ_CHECK(sfti_record_find(records, record->type, id) == record);
    }
}

static void take_tried(void *ctx, const sfti_tried *tried) {
    FUZZ_CHECK(tried->had <= tried->of || tried->of == 0);
    FUZZ_CHECK(tried->text.len > 0 && !ctx);
}

static void try_rows(sft_info *info) {
    const sfti_records *records = info->records;
    sfti_trial *trial = sfti_trial_new(info);
    sfti_row_tried all;
    FUZZ_CHECK(trial);
    for (uint16_t i = 0; i < records->row_count; i++)
        (void)sfti_trial_row(trial, &records->rows[i], take_tried, NULL, &all);
}

static void label_by(const sfti_records *records, const sft_set *set) {
    sft_info info = { .records = records, .set = set, .options = SFT_INFO_OPTIONS_INIT,
                      .folder = { ".", 1 }, .stem = { "base-Edit_v1 high", 17 } };
    info.arena.alloc = sfti_allocator(NULL);
    info.adapter.scale = info.negative = -1;
    sfti_info_tensors(&info);
    sfti_info_header(&info);
    sfti_info_file_name(&info);
    sfti_info_resolve(&info);
    FUZZ_CHECK(!info.code);
    try_rows(&info);
    for (int i = 0; i < SFT_FACT_COUNT; i++)
        for (const sfti_fact *fact = info.facts[i]; fact; fact = fact->next)
            FUZZ_CHECK(fact->trust >= 0 && fact->trust <= 100);
    sfti_arena_free(&info.arena);
}

/* Going on behind what is wrong tells the same first. */
static void all_faults(const sfti_records_text texts[2], const sft_error *first) {
    static sfti_records_fault items[100];
    sfti_records_faults faults = { items, 100, 0 };
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    const sfti_records *records;
    sft_error err = SFT_ERROR_INIT;
    FUZZ_CHECK(sfti_records_read_all(&arena, texts, 2, &faults, &records, &err));
    FUZZ_CHECK(!records && strcmp(err.message, first->message) == 0);
    for (size_t i = 0; i < faults.count && i < faults.room; i++)
        FUZZ_CHECK(items[i].text == 1 && items[i].line > 0 && items[i].column > 0);
    sfti_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sft_set *sets[2];
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_records_text texts[] = { { { known, sizeof known - 1 }, "known", 0 },
                                  { { (const char *)data, size }, "fuzz", 0 } };
    const sfti_records *records;
    sft_error err = SFT_ERROR_INIT;
    for (int i = 0; i < 2; i++)
        if (!sets[i]) sets[i] = set_of(i == 1);
    if (sfti_records_read(&arena, texts, 2, &records, &err)) {
        FUZZ_CHECK(err.code == SFT_BAD_ARGUMENT && !records);
        FUZZ_CHECK(strncmp(err.message, "fuzz: ", 6) == 0);
        all_faults(texts, &err);
    } else {
        ask_rows(records);
        ask_words(records);
        for (int i = 0; i < 2; i++) label_by(records, sets[i]);
    }
    sfti_arena_free(&arena);
    return 0;
}
