/* Model cards: README.md with YAML at its top. */
#include "label/sidecars/sidecars.h"

#include "base/utf8.h"
#include "text/formats.h"

#include <string.h>

#define README_BASES 16
#define README_WORDS 16
#define README_IMAGES 10
#define README_TEXT ((size_t)64 << 10)

enum { CARD_LICENSE, CARD_LICENSE_NAME };

typedef struct readme_card {
    sfti_sidecar_walked side; /* its prompts */
    sft_span license[2], license_source[2];
    sft_span bases[README_BASES], base_source;
    size_t base_count;
    sft_span image[README_IMAGES];
    size_t images;
} readme_card;

/* ── Front matter ── */

static void card_license(sfti_cursor *at) {
    readme_card *card = at->ctx;
    if (sfti_is_placeholder(at->text)) return;
    card->license[at->row->field] = at->text;
    card->license_source[at->row->field] = sfti_cursor_source(at);
}

static void card_base(sfti_cursor *at) {
    readme_card *card = at->ctx;
    if (card->base_count == README_BASES || sfti_is_placeholder(at->text)) return;
    if (card->base_count == 0)
        card->base_source = sfti_info_text(at->info, "%.*s:/base_model", (int)at->source.len,
                                           at->source.data);
    card->bases[card->base_count++] = sfti_trim(at->text);
}

/* A tag that says what the file is. */
static void card_tag(sfti_cursor *at) {
    if (!sfti_same_letters(at->text, at->row->word)) return;
    sfti_put_span(at, SFT_FACT_KIND, sft_span_cstr("adapter"));
}

/* "base_model:adapter:acme/fox-xl", as the Hub shows what base_model says. */
static void card_base_tag(sfti_cursor *at) {
    static const char *const relations[] = { "adapter:", "finetune:", "quantized:", "merge:" };
    sft_span base = sfti_trim(at->text);
    if (!sfti_skip(&base, at->row->word)) return;
    for (size_t i = 0; i < SFTI_COUNT(relations); i++) (void)sfti_skip(&base, relations[i]);
    sfti_info_base_checkpoint(at->info, base, sfti_cursor_source(at), at->row->trust);
}

/* A tag that names a model; many are loose, so that it counts only where nothing else tells. */
static void card_model_tag(sfti_cursor *at) {
    const sfti_fact *best = sfti_info_best(at->info, SFT_FACT_ARCHITECTURE);
    if (best && best->trust >= at->row->trust) return;
    sft_span label;
    const sfti_record *of = sfti_said(at->info->records, SFTI_MODEL, SFTI_SAYS_TAG, at->text, true,
                                      &at->info->said);
    if (!of) return;
    sfti_put_here(at, SFT_FACT_ARCHITECTURE, of->id);
    if (sfti_row_has(at->info->said, "label", &label))
        sfti_put_span(at, SFT_FACT_BASE_MODEL, label);
}

static void card_widget(sfti_cursor *at) {
    static const char *const none[] = { "-", "unconditional (blank prompt)" }; /* SimpleTuner's */
    if (!SFTI_ONE_OF(sfti_trim(at->text), none, sfti_same_letters)) sfti_sidecar_take_prompt(at);
}

static void card_image(sfti_cursor *at) {
    readme_card *card = at->ctx;
    sft_span name = sfti_trim(at->text);
    (void)sfti_skip(&name, "./");
    if (card->images == README_IMAGES || sfti_is_placeholder(name)) return;
    card->image[card->images++] = name;
}

static void card_tool(sfti_cursor *at) {
    if (sfti_same_letters(at->text, at->row->word))
        sfti_info_train(at->info, TRAIN_TOOL, sfti_text_value(sft_span_cstr(at->row->word)));
}

static const sfti_key_take card_takes[] = {
    { "license", card_license, "id name", NULL },
    { "base_model", card_base, NULL, NULL },
    { "tag", card_tag, NULL, NULL }, { "tool", card_tool, NULL, NULL },
    { "base_tag", card_base_tag, NULL, NULL },
    { "model_tag", card_model_tag, NULL, NULL },
    { "widget", card_widget, SFTI_PROMPT_NAMES, NULL },
    { "image_file", card_image, NULL, NULL },
};
SFTI_SIDECAR_KEYS(sfti_readme_keys, "readme", card_takes);

static void card_finish(sft_info *info, const readme_card *card) {
    bool other = card->license[CARD_LICENSE].len == 0
              || sfti_same_letters(sfti_trim(card->license[CARD_LICENSE]), "other");
    int which = other && card->license[CARD_LICENSE_NAME].len > 0 ? CARD_LICENSE_NAME
                                                                  : CARD_LICENSE;
    if (card->license[which].len > 0)
        sfti_info_add_text(info, SFT_FACT_LICENSE, card->license[which],
                           card->license_source[which], 70);
    if (card->base_count == 1 && sfti_map_civitai_base(info->records, card->bases[0], NULL))
        sfti_info_declared_label(info, card->bases[0], card->base_source, 60);
    else if (card->base_count == 1) {
        sfti_info_base_checkpoint(info, card->bases[0], card->base_source, 70);
        sfti_info_declared_repository(info, card->bases[0], card->base_source);
    }
    for (size_t i = 0; card->base_count > 1 && i < card->base_count; i++)
        sfti_info_add_item(info, SFT_FACT_BASE_CHECKPOINT, card->bases[i], card->base_source,
                           70);
}

/* ── Body ── */

typedef struct readme_words {
    sft_info *info;
    sft_span source;
    int group;
} readme_words;

static void put_card_word(readme_words *words, sft_span text) {
    text = sfti_trim(text);
    while (text.len > 1 && strchr("*\"'`", *text.data)
           && text.data[text.len - 1] == *text.data)
        text = sfti_trim((sft_span){ text.data + 1, text.len - 2 });
    if (text.len == 0 || text.len > 200 || words->group == README_WORDS) return;
    sfti_info_trigger(words->info, text, words->source, 70, words->group++);
}

/* Every `word` in a text; false if there is none. */
static bool backquoted_words(readme_words *words, sft_span text) {
    int before = words->group;
    while (text.len > 0) {
        sft_span begin = sfti_find_byte(text, '`');
        if (!begin.data) break;
        sft_span rest = { begin.data + 1, begin.len - 1 };
        sft_span end = sfti_find_byte(rest, '`');
        if (!end.data) break;
        put_card_word(words, (sft_span){ rest.data, rest.len - end.len });
        text = (sft_span){ end.data + 1, end.len - 1 };
    }
    return words->group > before;
}

#define NO_WORD_MOST 120 /* bytes: more may name words and say that others are not needed */

static bool no_word(sft_span text) {
    static const char *const in[] = { "no trigger", "not need", "no specific" };
    static const char *const in_short[] = {
        "no need", "not require", "n't need", "n't require", "not necessary", "not applicable",
        "without trigger", "without a trigger", "without any trigger", "have any trigger",
        "none needed", "none required",
    };
    static const char *const whole[] = { "n/a", "no", "nothing", "\xE6\x97\xA0",
                                         "\xE6\xB2\xA1\xE6\x9C\x89",
                                         "\xE3\x81\xAA\xE3\x81\x97" };
    while (text.len > 0 && strchr("*_.`", *text.data)) text = sfti_from(text, 1);
    while (text.len > 0 && strchr("*_.`", text.data[text.len - 1])) text.len--;
    return SFTI_ONE_OF(text, in, sfti_contains) || SFTI_ONE_OF(text, whole, sfti_same_letters)
        || (text.len <= NO_WORD_MOST && SFTI_ONE_OF(text, in_short, sfti_contains))
        || sfti_is_placeholder(text);
}

/* "You should use X to trigger the image generation." in one line. */
static bool standard_sentence(readme_words *words, sft_span line) {
    sft_span use = sfti_find_letters(line, "you should use ");
    if (!use.data) return false;
    use = (sft_span){ use.data + 15, use.len - 15 };
    sft_span to = sfti_find_letters(use, " to trigger");
    if (!to.data) return false;
    sft_span text = { use.data, use.len - to.len };
    if (!backquoted_words(words, text) && !no_word(sfti_trim(text))) put_card_word(words, text);
    return true;
}

/* A section that names its words without the sentence: in backquotes, as a list, or as one
 * short line that is no sentence. */
static void trigger_section(readme_words *words, sft_span text) {
    sft_span rest, line, item, only = { "", 0 };
    sft_span code = sfti_find_letters(text, "```");
    size_t lines = 0;
    bool any = false;
    if (code.data) text.len -= code.len;
    rest = text;
    while (sfti_next_piece(&rest, '\n', &line)) any = standard_sentence(words, line) || any;
    if (any || no_word(sfti_trim(text)) || backquoted_words(words, text)) return;
    while (sfti_next_piece(&text, '\n', &line)) {
        line = sfti_trim(line);
        if (sfti_list_item(line, &item)) {
            put_card_word(words, item);
            any = true;
        } else if (line.len > 0) {
            only = line;
            lines++;
        }
    }
    if (!any && lines == 1 && only.len <= 60 && only.data[only.len - 1] != '.'
        && *only.data != '<' && *only.data != '!')
        put_card_word(words, only);
}

static void readme_body(sft_info *info, sft_span body, sft_span source) {
    static const char *const triggers[] = { "trigger words", "trigger word", "triggers",
                                            "trigger phrase", "trigger phrases" };
    static const char *const about[] = { "model description", "description" };
    readme_words words = { info, source, 0 };
    sft_span line, rest = body;
    sft_span text = sfti_markdown_section(body, triggers, SFTI_COUNT(triggers));
    if (text.len > 0) trigger_section(&words, text);
    while (words.group == 0 && text.len == 0 && sfti_next_piece(&rest, '\n', &line))
        (void)standard_sentence(&words, line);
    text = sfti_trim(sfti_markdown_section(body, about, SFTI_COUNT(about)));
    if (text.len > README_TEXT) text.len = README_TEXT;
    while (text.len > 0 && sfti_utf8_check(text.data, text.len) != text.len) text.len--;
    if (text.len > 0 && !sfti_contains(text, "[more information needed]"))
        sfti_info_add_text(info, SFT_FACT_DESCRIPTION, sfti_plain_text(info, text), source, 70);
    sfti_info_scan_text(info, body, source, false);
}

void sfti_read_readme(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    readme_card card;
    sft_span body;
    memset(&card, 0, sizeof card);
    sft_span front = sfti_front_matter(text, &body);
    sfti_info_yaml(info, front, sidecar->source, SFTI_KEY_ROWS(sfti_readme_keys), &card);
    card_finish(info, &card);
    sft_span path = sidecar->path, file = sfti_path_name(path);
    path.len -= file.len + (path.len > file.len);
    for (size_t i = 0; i < card.images && !info->code; i++)
        sfti_info_preview_at(info, path, card.image[i]);
    readme_body(info, body, sidecar->source);
}
