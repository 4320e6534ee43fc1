/* How keys ss_* of kohya's scripts are read. */
#include "label/header/header.h"
#include "text/formats.h"

#include <string.h>

/* ── Single keys ── */

static void take_time(sfti_cursor *at) {
    char text[SFTI_DATE_SIZE];
    double seconds;
    if (!sfti_parse_double(at->text, &seconds)) return;
    sft_span date = sfti_info_copy(at->info, (sft_span){ text, sfti_iso_of_epoch(seconds, text) });
    sfti_info_train(at->info, (sfti_training_key)at->row->field, sfti_text_value(date));
    if (at->row->field == TRAIN_FINISHED_AT)
        sfti_put_span(at, SFT_FACT_DATE, date);
}

static void take_base_version(sfti_cursor *at) {
    sft_span text = sfti_trim(at->text);
    sft_span prediction;
    const sfti_record *of = sfti_said(at->info->records, SFTI_MODEL, SFTI_SAYS_BASE_VERSION, text,
                                      true, &at->info->said);
    sfti_info_declared_base(at->info, of ? of->id : NULL, text, at->source, at->row->trust);
    if (of && sfti_row_has(at->info->said, "prediction", &prediction))
        sfti_put_span(at, SFT_FACT_PREDICTION_TYPE, prediction);
}

static void take_v2(sfti_cursor *at) {
    sfti_put_here(at, SFT_FACT_ARCHITECTURE,
                  sfti_said_model(at->info->records, SFTI_SAYS_V2, at->text, &at->info->said));
}

static void take_module(sfti_cursor *at) {
    sft_span module = sfti_trim(at->text), version;
    if (sfti_contains(module, "lllite") || sfti_contains(module, "control_net")) return;
    sfti_put_here(at, SFT_FACT_KIND, "adapter");
    if (!sfti_info_metadata(at->info, "ss_base_model_version", &version))
        sfti_put_here(at, SFT_FACT_ARCHITECTURE,
                      sfti_said_model(at->info->records, SFTI_SAYS_MODULE, module,
                                      &at->info->said));
}

/* A number, or a list of numbers as Python spells it. */
static void take_rates(sfti_cursor *at) {
    sft_span text = sfti_trim(at->text), piece, items[8];
    size_t count = 0;
    bool numbers = true; /* of "[None, 1e-05]" nobody knows whose the one is */
    if (text.len < 2 || (*text.data != '[' && *text.data != '(')) {
        sfti_take_train(at);
        return;
    }
    text = (sft_span){ text.data + 1, text.len - 2 };
    while (count < SFTI_COUNT(items) && sfti_next_piece(&text, ',', &piece)) {
        items[count++] = sfti_trim(piece);
        numbers = numbers && sfti_is_number(sfti_trim(piece));
    }
    sft_span *kept = count && numbers ? sfti_info_take(at->info, count * sizeof *kept) : NULL;
    if (!kept) return;
    memcpy(kept, items, count * sizeof *kept);
    sfti_info_train(at->info, (sfti_training_key)at->row->field,
                    (sfti_fact_value){ SFTI_LIST, { "", 0 }, kept, count });
}

/* trust: its digits */
static void take_hash(sfti_cursor *at) {
    sft_span hex;
    if (sfti_info_hash(at->info, at->text, (size_t)at->row->trust, &hex))
        sfti_info_train(at->info, (sfti_training_key)at->row->field, sfti_text_value(hex));
}

static void take_sentence(sfti_cursor *at) {
    sfti_info_trigger_sentence(at->info, at->text, at->source, at->row->trust);
}

/* The arguments as they stand, if they are an object. */
static void take_arguments(sfti_cursor *at) {
    if (at->json->type != SFTI_JSON_OBJECT) return;
    sft_span text = { at->json->begin, (size_t)(at->json->end - at->json->begin) };
    sfti_info_train(at->info, (sfti_training_key)at->row->field, sfti_text_value(text));
    sfti_json_skip(at->json);
}

static void take_tensor_hash(sfti_cursor *at) {
    sft_span text;
    const char *known = NULL;
    if (sfti_info_metadata(at->info, "ss_network_module", &text)
        && sfti_starts_with(text, "lycoris"))
        known = "LyCORIS module order";
    if (sfti_info_metadata(at->info, "software", &text) && sfti_contains(text, "ai-toolkit"))
        known = "ai-toolkit before conversion";
    sfti_info_claim(at->info, at->row->word, at->text, at->source, known);
}

static const sfti_key_take kohya_takes[] = {
    { "time", take_time, SFTI_TAKES_TRAINING, NULL },
    { "base_version", take_base_version, NULL, NULL },
    { "v2", take_v2, NULL, NULL },
    { "module", take_module, NULL, NULL },
    { "rates", take_rates, SFTI_TAKES_TRAINING, NULL },
    { "hash", take_hash, SFTI_TAKES_TRAINING, NULL },
    { "sentence", take_sentence, NULL, NULL },
    { "arguments", take_arguments, SFTI_TAKES_TRAINING, NULL },
    { "tensor_hash", take_tensor_hash, NULL, NULL },
};
SFTI_KEYS_OF(sfti_kohya_keys, "kohya", kohya_takes);

/* ── What needs several keys ── */

static void take_rslora(sfti_cursor *at) {
    sft_span text = sfti_trim(at->text);
    bool told = sfti_at_bool(at) == 1 || (sfti_at_text(at) && sfti_same_letters(text, "true"));
    at->info->adapter.rslora |= told;
    at->info->adapter.root_in_alpha |= told;
}

static const sfti_row rslora_rows[] = { { "/rs_lora", take_rslora, 0, 0, NULL } };

void sfti_kohya_finish(sft_info *info) {
    sft_span from, to, text;
    double started, finished;
    uint64_t device;
    char date[SFTI_DATE_SIZE];
    if (sfti_info_metadata(info, "ss_training_started_at", &from)
        && sfti_info_metadata(info, "ss_training_finished_at", &to)
        && sfti_parse_double(from, &started) && sfti_parse_double(to, &finished)
        && sfti_iso_of_epoch(started, date) && sfti_iso_of_epoch(finished, date)
        && finished >= started && finished - started <= 1e10)
        sfti_info_train_uint(info, TRAIN_DURATION_S, (uint64_t)(finished - started));
    if (sfti_info_metadata(info, "ss_batch_size_per_device", &text)
        && sfti_parse_uint(text, &device))
        sfti_kohya_batch(info, device);
    /* Only sd-scripts and musubi-tuner write ss_network_module while they train; musubi-tuner
     * counts items, and its base versions have names of their own. */
    if (sfti_info_metadata(info, "ss_network_module", &text)
        && (sfti_info_metadata(info, "ss_training_started_at", &text)
            || sfti_info_metadata(info, "ss_epoch", &text)
            || sfti_info_metadata(info, "ss_session_id", &text)
            || sfti_info_metadata(info, "ss_datasets", &text))) {
        bool musubi = sfti_info_metadata(info, "ss_num_train_items", &text);
        text = sft_span_cstr(musubi ? "musubi-tuner" : "sd-scripts");
        sfti_info_train(info, TRAIN_TOOL, sfti_text_value(text));
    }
    if (sfti_info_metadata(info, "ss_network_module", &text) && sfti_starts_with(text, "lycoris"))
        (void)sfti_walk_key(info, "ss_network_args", SFTI_ROWS(rslora_rows), info);
    sfti_kohya_datasets(info);
}
