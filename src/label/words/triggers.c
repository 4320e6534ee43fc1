/* The trigger words of a label, cleaned, ordered and cut. Tests: test_info_triggers.c. */
#include "label/words/triggers.h"

#include "base/order.h"

#include <string.h>

#define DECLARED_MOST 500
#define TAGS_MOST 200
#define DEMOTED_TRUST 10
#define MARKER_TRUST 88
#define FOLDER_TRUST 40

/* ── Declared words: made clean ── */

/* Length of "<lora:name:0.8>" at i, or 0. */
static size_t chunk_length(sft_span text, size_t i) {
    bool colon = false;
    if (text.data[i] != '<') return 0;
    for (size_t j = i + 1; j < text.len && text.data[j] != '<' && text.data[j] != '\n'; j++) {
        colon = colon || text.data[j] == ':';
        if (text.data[j] == '>') return colon ? j + 1 - i : 0;
    }
    return 0;
}

/* Without chunks, line ends and backslashes before brackets; into out, as long at most. */
static sft_span without_chunks(sft_span text, char *out, bool *changed) {
    size_t len = 0;
    for (size_t i = 0; i < text.len;) {
        size_t chunk = chunk_length(text, i);
        char c = text.data[i];
        if (chunk > 0) {
            i += chunk;
            *changed = true;
            continue;
        }
        if (sfti_frees_bracket(text, i) && text.data[i + 1] != '\\') c = text.data[++i];
        out[len++] = c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
        i++;
    }
    return sfti_trim((sft_span){ out, len });
}

/* Its parts joined by ", "; out holds twice its length. */
static sft_span joined_parts(sft_span text, char *out) {
    sft_span piece;
    size_t len = 0;
    while (sfti_next_piece(&text, ',', &piece)) {
        piece = sfti_trim(piece);
        if (piece.len == 0) continue;
        if (len > 0) {
            memcpy(out + len, ", ", 2);
            len += 2;
        }
        memcpy(out + len, piece.data, piece.len);
        len += piece.len;
    }
    return (sft_span){ out, len };
}

static void clean_trigger(sft_info *info, sfti_trigger *trigger) {
    size_t len = trigger->text.len;
    bool changed = false;
    if (len > ((size_t)1 << 20)) len = trigger->text.len = (size_t)1 << 20;
    char *buffer = sfti_info_take(info, len + 1);
    if (!buffer) return;
    sft_span text = without_chunks(trigger->text, buffer, &changed);
    for (sft_span rest = text, piece; !changed && sfti_next_piece(&rest, ',', &piece);)
        changed = sfti_trim(piece).len == 0;
    if (text.len > 0 && changed) {
        char *twice = sfti_info_take(info, 2 * text.len + 1);
        if (twice) text = joined_parts(text, twice);
    }
    trigger->text = text;
}

/* ── The form to paste ── */

/* "(word:1.2)" is a prompt already: its brackets say how strong. */
static bool has_weight(sft_span text) {
    for (size_t i = 0; i + 2 < text.len; i++) {
        size_t j = i + 1;
        if (text.data[i] != ':') continue;
        while (j < text.len && ((text.data[j] >= '0' && text.data[j] <= '9')
                                || text.data[j] == '.'))
            j++;
        if (j > i + 1 && j < text.len && text.data[j] == ')') return true;
    }
    return false;
}

sft_span sfti_prompt_of(sft_info *info, sft_span text) {
    size_t brackets = 0, len = 0;
    for (size_t i = 0; i < text.len; i++) brackets += text.data[i] == '(' || text.data[i] == ')';
    if (brackets == 0 || has_weight(text)) return text;
    char *out = sfti_info_take(info, text.len + brackets);
    if (!out) return text;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '(' || text.data[i] == ')') out[len++] = '\\';
        out[len++] = text.data[i];
    }
    return (sft_span){ out, len };
}

/* ── Inferred words ── */

/* What ai-toolkit writes for a configured word: {"1_x":{"x":1}}. */
static bool is_marker(const sfti_tags *tags) {
    if (tags->folder_count != 1 || tags->pair_count != 1 || tags->row_count != 1) return false;
    const sfti_tag_folder *folder = &tags->folders[0];
    return folder->repeats == 1 && tags->pairs[0].count == 1 && !folder->regularisation
        && sfti_same_word(folder->rest, tags->rows[0].text);
}

/* Every folder has one tag, its own name: there were no captions. */
static bool no_captions(const sfti_tags *tags) {
    for (size_t i = 0; i < tags->pair_count; i++) {
        const sfti_tag_folder *folder = &tags->folders[tags->pairs[i].folder];
        if (folder->regularisation) continue;
        if (folder->tags != 1 || !sfti_same_word(folder->rest, tags->rows[tags->pairs[i].tag].text))
            return false;
    }
    return true;
}

static bool are_sentences(const sfti_tags *tags) {
    uint64_t sum = 0, letters = 0, rows = 0;
    if (no_captions(tags)) return false;
    for (size_t i = 0; i < tags->row_count; i++) {
        if (tags->rows[i].total == 0) continue;
        rows++;
        sum += tags->rows[i].total;
        for (size_t k = 0; k < tags->rows[i].text.len; k++) /* characters */
            letters += ((unsigned char)tags->rows[i].text.data[k] & 0xC0) != 0x80;
    }
    if (rows == 0) return false;
    if (rows > 1 && rows == sum && rows == tags->images) return true;
    return letters >= 16 * rows || (letters >= 12 * rows && 10 * rows > 6 * sum);
}

/* ── Frequent tags ── */

/* The largest count that TAGS_MOST rows or more reach; 1 if there are not as many. */
static uint64_t listed_least(const sfti_tags *tags) {
    uint64_t low = 1, high = 1;
    for (size_t i = 0; i < tags->row_count; i++)
        if (tags->rows[i].total > high) high = tags->rows[i].total;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2 + 1;
        size_t reached = 0;
        for (size_t i = 0; i < tags->row_count && reached < TAGS_MOST; i++)
            reached += tags->rows[i].total >= middle;
        if (reached >= TAGS_MOST) low = middle;
        else high = middle - 1;
    }
    return low;
}

static int compare_rows(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_tags *tags = ctx;
    uint64_t x = tags->rows[a].total, y = tags->rows[b].total;
    return x > y ? -1 : x < y;
}

static void list_tag(sfti_tags *tags, const sfti_tag_row *row) {
    sft_info *info = tags->info;
    char *buffer = row->text.len > 4 * SFTI_WORD_MOST ? NULL
                                                      : sfti_info_take(info, row->text.len + 1);
    bool changed = false;
    if (!buffer) return;
    sft_span text = without_chunks(row->text, buffer, &changed);
    if (text.len == 0) return; /* "<lora:x:1>" */
    SFTI_PUSH(info, &info->tags, sfti_tag, .text = text, .count = row->total,
              .coverage = sfti_share(row->total, tags->images));
}

static void list_tags(sfti_tags *tags) {
    uint32_t order[2 * TAGS_MOST];
    uint64_t least = listed_least(tags);
    size_t count = 0;
    for (size_t i = 0; i < tags->row_count && count < TAGS_MOST; i++)
        if (tags->rows[i].total > least) order[count++] = (uint32_t)i;
    for (size_t i = 0; i < tags->row_count && count < TAGS_MOST; i++)
        if (tags->rows[i].total == least) order[count++] = (uint32_t)i;
    sfti_sort(order, order + TAGS_MOST, count, compare_rows, tags);
    for (size_t i = 0; i < count; i++) list_tag(tags, &tags->rows[order[i]]);
}

static void infer_words(sft_info *info) {
    sfti_tags tags = { .info = info };
    if (sfti_tags_read(&tags)) {
        if (is_marker(&tags)) {
            sft_span text = sfti_info_copy(info, tags.folders[0].rest);
            sfti_info_trigger(info, text, sft_span_cstr("header:ss_tag_frequency"),
                              MARKER_TRUST, -1);
        } else {
            if (are_sentences(&tags)) sfti_sentence_words(&tags);
            else sfti_tag_words(&tags);
            list_tags(&tags);
        }
    }
    sfti_arena_free(&tags.arena);
}

/* ── Merging ── */

typedef struct word_list {
    sfti_trigger **items;
    sft_span *keys;
    size_t count;
    sfti_names names;
} word_list;

static sft_span word_key_at(const void *ctx, uint32_t entry) {
    return ((const word_list *)ctx)->keys[entry];
}

static bool is_listed(const sfti_trigger *trigger) {
    if (trigger->text.len == 0) return false;
    if (trigger->trust >= SFTI_WORD_TRUST) return true;
    return trigger->trust == DEMOTED_TRUST && sfti_starts_with(trigger->source, "sidecar:");
}

/* One's own words go before those of others, and stand in their place. */
static bool is_own_word(const sfti_trigger *trigger) {
    return sfti_starts_with(trigger->source, "own:");
}

static int word_rank(const sfti_trigger *trigger) {
    return trigger->trust * 2 + is_own_word(trigger);
}

/* In the order that they have in the note, whoever else says them. */
static void put_own_first(sfti_list *list) {
    sfti_trigger *heads[2] = { NULL, NULL }, *lasts[2] = { NULL, NULL }, *next;
    for (sfti_trigger *t = list->first; t; t = next) {
        bool other = !is_own_word(t);
        next = t->next;
        t->next = NULL;
        if (lasts[other]) lasts[other]->next = t;
        else heads[other] = t;
        lasts[other] = t;
    }
    if (!heads[0] || !heads[1]) return;
    lasts[0]->next = heads[1];
    *list = (sfti_list){ heads[0], lasts[1], list->count };
}

/* What stays of two equal words is the better trusted; the other is told under it. */
static sfti_trigger *merged(sfti_trigger *kept, sfti_trigger *other) {
    if (word_rank(other) > word_rank(kept)) {
        sfti_trigger *better = other;
        other = kept;
        kept = better;
        kept->others = other->others;
        other->others = NULL;
    }
    if (kept->coverage < 0) kept->coverage = other->coverage;
    sfti_trigger **link = &kept->others;
    for (size_t n = 0; *link && n < 16 && (*link)->trust >= other->trust; n++)
        link = &(*link)->next;
    other->next = *link;
    *link = other;
    return kept;
}

static void list_trigger(sft_info *info, word_list *list, sfti_trigger *trigger) {
    uint32_t entry = (uint32_t)list->count;
    char *buffer = sfti_info_take(info, trigger->text.len + 1);
    if (!buffer) return;
    sft_span key = { buffer, sfti_word_key(trigger->text, buffer) };
    list->keys[entry] = key;
    uint32_t at = sfti_names_put(&list->names, key, sfti_names_hash(key, list->names.seed),
                                 entry);
    if (at != entry) list->items[at] = merged(list->items[at], trigger);
    else list->items[list->count++] = trigger;
}

static int compare_trust(const void *ctx, uint32_t a, uint32_t b) {
    const word_list *list = ctx;
    return word_rank(list->items[b]) - word_rank(list->items[a]);
}

static void keep_ordered(sft_info *info, const word_list *list) {
    size_t n = list->count;
    const uint32_t *order = sfti_arena_sorted(&info->arena, n, compare_trust, list);
    info->ordered = sfti_info_take(info, (n + 1) * sizeof(sfti_trigger *));
    info->triggers = (sfti_list){ NULL, NULL, 0 };
    if (!order) info->code = SFT_OUT_OF_MEMORY;
    if (info->code) return;
    bool own = n > 0 && is_own_word(list->items[order[0]]);
    for (size_t i = 0; i < n && i < DECLARED_MOST; i++) {
        sfti_trigger *trigger = list->items[order[i]];
        if (own && !is_own_word(trigger)) break;
        trigger->next = NULL;
        if (info->triggers.last) ((sfti_trigger *)info->triggers.last)->next = trigger;
        else info->triggers.first = trigger;
        info->triggers.last = trigger;
        info->ordered[info->triggers.count++] = trigger;
        trigger->prompt = sfti_prompt_of(info, trigger->text);
    }
}

/* An inferred word that stands among the words of a declared entry adds nothing. */
static bool is_part_of_declared(const sft_info *info, const sfti_trigger *word) {
    for (const sfti_trigger *t = info->triggers.first; t && t != word; t = t->next)
        if (t->trust >= SFTI_WORD_TRUST && !sfti_same_word(t->text, word->text)
            && sfti_lists_word(t->text, word->text))
            return true;
    return false;
}

/* "img", "1girl", "style": what folders of a data set are called for want of a word. */
static bool names_folder(sft_span text) {
    sft_span piece;
    while (sfti_next_piece(&text, ',', &piece)) {
        piece = sfti_trim(piece);
        if (piece.len > 0 && !sfti_is_generic_tag(piece) && !sfti_is_weak_name(piece)) return false;
    }
    return true;
}

void sfti_info_words(sft_info *info) {
    const uint64_t seed[2] = { 1, 1 };
    word_list list = { .count = 0 };
    sft_span text;
    for (sfti_trigger *t = info->triggers.first; t && !info->code; t = t->next)
        clean_trigger(info, t);
    for (sfti_trigger *t = info->triggers.first; t; t = t->next)
        if (sfti_starts_with(t->source, "header:ss_datasets") && t->trust > FOLDER_TRUST
            && names_folder(t->text))
            t->trust = FOLDER_TRUST;
    put_own_first(&info->triggers);
    sfti_trigger *declared = info->triggers.last;
    if (!info->of_sources && (sfti_info_metadata(info, "ss_tag_frequency", &text)
                              || sfti_info_metadata(info, "ss_datasets", &text)))
        infer_words(info);
    if (!info->triggers.first) return;
    sfti_trigger *inferred = declared ? declared->next : info->triggers.first;
    for (sfti_trigger *t = inferred; t && !info->code; t = t->next) {
        clean_trigger(info, t);
        if (is_part_of_declared(info, t)) t->text.len = 0;
    }
    size_t count = info->triggers.count + 1;
    list.items = sfti_info_take(info, count * sizeof(sfti_trigger *));
    list.keys = sfti_info_take(info, count * sizeof *list.keys);
    if (info->code) return;
    if (!sfti_names_begin(&list.names, count, seed, word_key_at, &list, &info->arena))
        info->code = SFT_OUT_OF_MEMORY;
    for (sfti_trigger *t = info->triggers.first, *next; t && !info->code; t = next) {
        next = t->next;
        if (is_listed(t)) list_trigger(info, &list, t);
    }
    keep_ordered(info, &list);
}
