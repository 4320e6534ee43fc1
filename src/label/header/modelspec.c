/* How keys of Stability's model specification are read. */
#include "label/header/header.h"
#include "text/formats.h"

#include "base/json_lex.h"

#include <string.h>

/* ── Titles ── */

/* "prefix_00001_" and "prefix 1": how ComfyUI calls what it saves. */
static bool counted_title(sft_span title) {
    size_t digits = 0;
    if (sfti_ends_with(title, "_")) title.len--;
    while (digits < title.len && sfti_lex_digit(title.data[title.len - 1 - digits])) digits++;
    return digits > 0 && digits < title.len
        && strchr(" _", title.data[title.len - 1 - digits]) != NULL;
}

/* "SDXL", "FluxDev", "v1": nothing but names of bases and numbers. */
static bool names_base(const sfti_records *records, sft_span word) {
    const sfti_record_row *row = sfti_rows(records, SFTI_SAYS, SFTI_SAYS_TITLE);
    for (bool found = row != NULL; word.len > 0 && found;) {
        sft_span rest = sfti_row_text(row), base;
        found = false;
        while (!found && sfti_next_said(&rest, &base))
            found = base.len <= word.len && sfti_same_text((sft_span){ word.data, base.len }, base);
        if (found) word = sfti_from(word, base.len);
    }
    return word.len == 0 || sfti_lex_digit(word.data[word.len > 1 && (*word.data | 0x20) == 'v']);
}

/* "SDXL 1.0 LoRA": the base and what was trained, by a trainer that was told no title. */
static bool template_title(const sfti_records *records, sft_span title) {
    static const char *const made[] = { "lora", "lycoris", "lokr", "loha", "embedding",
                                        "checkpoint", "finetune" };
    sft_span word;
    bool last = false;
    while (sfti_next_word(&title, &word, sfti_word_byte)) {
        if (last) return false;
        last = SFTI_ONE_OF(word, made, sfti_same_letters);
        if (!last && !names_base(records, word)) return false;
    }
    return last;
}

static void spec_title(sfti_cursor *at) {
    static const char *const graphs[] = { "prompt", "workflow" };
    static const char *const stamps[] = { "LoRA@", "TextualInversion@", "Checkpoint@" };
    sft_span title = sfti_trim(at->text), graph;
    bool comfyui = sfti_info_metadata(at->info, "modelspec.predict_key", &graph);
    for (size_t i = 0; i < SFTI_COUNT(graphs) && !comfyui; i++)
        comfyui = sfti_info_metadata(at->info, graphs[i], &graph)
               && sfti_begins(sfti_trim(graph), "{");
    bool weak = sfti_by_onetrainer(at->info) || (comfyui && counted_title(title))
             || template_title(at->info->records, title);
    for (size_t i = 0; i < SFTI_COUNT(stamps); i++) /* "LoRA@1690000000": for want of one */
        if (sfti_begins(title, stamps[i]) && title.len > strlen(stamps[i])
            && sfti_lex_digit(title.data[strlen(stamps[i])]))
            return;
    sfti_info_add_text(at->info, SFT_FACT_NAME, title, at->source, weak ? 40 : at->row->trust);
}

/* ── Others ── */

static void spec_hash(sfti_cursor *at) {
    sfti_info_claim(at->info, at->row->word, at->text, at->source,
                    sfti_by_onetrainer(at->info) ? "OneTrainer name order" : NULL);
}

static void spec_quantization(sfti_cursor *at) {
    sfti_put_here(at, SFT_FACT_QUANTIZATION, sfti_map_format(at->info, at->text));
}

/* "sd-scripts/48d368fa…" */
static void spec_tool(sfti_cursor *at) {
    static const char *const tools[] = { "sd-scripts", "musubi-tuner", "ai-toolkit",
                                         "onetrainer", "simpletuner" };
    sft_span name = sfti_trim(at->text), version = sfti_find_byte(name, '/');
    if (!version.data) return;
    name.len -= version.len;
    version = sfti_from(version, 1);
    for (size_t i = 0; i < SFTI_COUNT(tools); i++) {
        if (!sfti_same_letters(name, tools[i])) continue;
        sfti_info_train(at->info, TRAIN_TOOL, sfti_text_value(sft_span_cstr(tools[i])));
        if (!sfti_same_letters(version, "unknown"))
            sfti_info_train(at->info, TRAIN_TOOL_VERSION, sfti_text_value(version));
    }
}

static void spec_merged(sfti_cursor *at) {
    sft_span rest = at->text, piece;
    sft_info *info = at->info;
    while (info->merge_sources.count < 64 && sfti_next_piece(&rest, ',', &piece)) {
        piece = sfti_trim(piece);
        if (sfti_is_placeholder(piece)) continue;
        SFTI_PUSH(info, &info->merge_sources, sfti_merge_source, .name = piece);
        info->has_merge = true;
    }
}

static const sfti_key_take spec_takes[] = {
    { "quantization", spec_quantization, NULL, NULL },
    { "title", spec_title, NULL, NULL },
    { "hash", spec_hash, NULL, NULL },
    { "tool", spec_tool, NULL, NULL },
    { "merged", spec_merged, NULL, NULL },
};
SFTI_KEYS_OF(sfti_modelspec_keys, "modelspec", spec_takes);
