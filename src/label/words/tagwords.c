/* Which tags of a training are trigger words, judged by how often they stand where. */
#include "label/words/triggers.h"

#include <string.h>

#define NEARLY_ALL 0.95
#define HARDLY_ANY 0.05
#define TRUST_EVERYWHERE 75
#define TRUST_FOLDER 65
#define TRUST_MOST 79
#define TRUST_LEAST 60
#define KEPT_MOST 16

/* ── What is told of a tag ── */

typedef struct tag_judge {
    sfti_tags *tags;
    uint64_t kept_least;    /* counts of the tags that keep_tokens protects */
    uint64_t *concept_sum;  /* of the tag looked at, by concept */
    uint64_t *concept_images;
    uint32_t *touched;      /* concepts with a sum */
    size_t touched_count, concepts, judged;
    sfti_candidates anonymous, named;
} tag_judge;

/* The least of the k highest counts, where k tokens are kept; UINT64_MAX for none. */
static uint64_t kept_least(const sfti_tags *tags) {
    uint64_t best[KEPT_MOST + 1] = { 0 }, count = 0;
    sft_span text;
    if (!sfti_info_metadata(tags->info, "ss_keep_tokens", &text)
        || !sfti_parse_uint(text, &count) || count == 0)
        return UINT64_MAX;
    size_t k = count < KEPT_MOST ? (size_t)count : KEPT_MOST;
    for (size_t i = 0; i < tags->row_count; i++) {
        size_t at = k;
        while (at > 0 && best[at - 1] < tags->rows[i].total) at--;
        if (at == k) continue;
        memmove(&best[at + 1], &best[at], (k - at) * sizeof *best);
        best[at] = tags->rows[i].total;
    }
    return best[k - 1] ? best[k - 1] : 1;
}

static int with_bonus(const tag_judge *judge, sfti_candidate *one, uint64_t total) {
    int trust = one->trust;
    one->named = sfti_is_declared(judge->tags->info, one->text);
    if (sfti_has_name(judge->tags, one->text)) {
        one->named = true;
        trust += 10;
    }
    if (!sfti_is_plain_word(one->text)) trust += 5;
    if (total >= judge->kept_least) trust += 5;
    return trust < TRUST_MOST ? trust : TRUST_MOST;
}

static void judge_candidate(tag_judge *judge, sfti_candidate *one, uint64_t total,
                            uint64_t images) {
    if (one->text.len > SFTI_WORD_MOST || judge->judged == SFTI_JUDGED_MOST) return;
    if (sfti_is_generic_tag(one->text)) return;
    judge->judged++;
    one->trust = with_bonus(judge, one, total);
    if (images < 3 && !one->named) return; /* all of two pictures is no custom */
    sfti_candidate_put(one->named || !one->everywhere ? &judge->named : &judge->anonymous, one);
}

/* ── Tags of all, tags of one concept ── */

static bool begin_judge(tag_judge *judge, sfti_tags *tags) {
    size_t n = tags->folder_count;
    memset(judge, 0, sizeof *judge);
    judge->tags = tags;
    judge->kept_least = kept_least(tags);
    judge->concept_sum = sfti_arena_take(&tags->arena, n * sizeof *judge->concept_sum);
    judge->concept_images = sfti_arena_take(&tags->arena, n * sizeof *judge->concept_images);
    judge->touched = sfti_arena_take(&tags->arena, n * sizeof *judge->touched);
    if (!judge->concept_sum || !judge->concept_images || !judge->touched) {
        tags->info->code = SFT_OUT_OF_MEMORY;
        return false;
    }
    memset(judge->concept_sum, 0, n * sizeof *judge->concept_sum);
    memset(judge->concept_images, 0, n * sizeof *judge->concept_images);
    for (size_t i = 0; i < n; i++) {
        const sfti_tag_folder *folder = &tags->folders[i];
        if (folder->regularisation || folder->tags == 0) continue;
        if (judge->concept_images[folder->concept] == 0) judge->concepts++;
        judge->concept_images[folder->concept] += folder->images;
    }
    return true;
}

/* The one concept that nearly always has the tag, while the others hardly have it. */
static bool concept_of(const tag_judge *judge, uint32_t *out) {
    size_t having = 0, always = 0;
    for (size_t i = 0; i < judge->touched_count; i++) {
        uint32_t concept = judge->touched[i];
        double p = sfti_share(judge->concept_sum[concept], judge->concept_images[concept]);
        having += p > HARDLY_ANY;
        if (p < NEARLY_ALL) continue;
        always++;
        *out = concept;
    }
    return always == 1 && having == 1;
}

static void judge_tag(tag_judge *judge, uint32_t row, size_t order) {
    sfti_tags *tags = judge->tags;
    uint64_t total = tags->rows[row].total;
    uint32_t concept = 0;
    sfti_candidate one = { tags->rows[row].text, { "", 0 }, TRUST_EVERYWHERE,
                           sfti_share(total, tags->images), order, true, false };
    if (one.coverage >= NEARLY_ALL) {
        judge_candidate(judge, &one, total, tags->images);
    } else if (judge->concepts > 1 && concept_of(judge, &concept)) {
        uint64_t images = judge->concept_images[concept];
        one.folder = tags->folders[concept].name;
        one.trust = TRUST_FOLDER;
        one.coverage = sfti_share(judge->concept_sum[concept], images);
        one.everywhere = false;
        judge_candidate(judge, &one, total, images);
    }
}

/* Pairs by tag: order[starts[t]..starts[t+1]) are those of tag t. */
static bool by_tag(sfti_tags *tags, uint32_t **starts, uint32_t **order) {
    size_t rows = tags->row_count, pairs = tags->pair_count;
    *starts = sfti_arena_take(&tags->arena, (rows + 2) * sizeof **starts);
    *order = sfti_arena_take(&tags->arena, (pairs + 1) * sizeof **order);
    if (!*starts || !*order) {
        tags->info->code = SFT_OUT_OF_MEMORY;
        return false;
    }
    memset(*starts, 0, (rows + 2) * sizeof **starts);
    for (size_t i = 0; i < pairs; i++) (*starts)[tags->pairs[i].tag + 2]++;
    for (size_t t = 2; t < rows + 2; t++) (*starts)[t] += (*starts)[t - 1];
    for (size_t i = 0; i < pairs; i++) (*order)[(*starts)[tags->pairs[i].tag + 1]++] = (uint32_t)i;
    return true;
}

static void judge_all(tag_judge *judge) {
    sfti_tags *tags = judge->tags;
    uint32_t *starts, *order;
    if (!by_tag(tags, &starts, &order)) return;
    for (uint32_t t = 0; t < tags->row_count; t++) {
        for (uint32_t i = starts[t]; i < starts[t + 1]; i++) {
            const sfti_tag_pair *pair = &tags->pairs[order[i]];
            const sfti_tag_folder *folder = &tags->folders[pair->folder];
            if (folder->regularisation) continue;
            if (judge->concept_sum[folder->concept] == 0)
                judge->touched[judge->touched_count++] = folder->concept;
            judge->concept_sum[folder->concept] += pair->count;
        }
        if (judge->touched_count > 0) judge_tag(judge, t, t);
        while (judge->touched_count > 0)
            judge->concept_sum[judge->touched[--judge->touched_count]] = 0;
    }
}

/* ── What comes of it ── */

void sfti_tag_words(sfti_tags *tags) {
    tag_judge judge;
    if (!begin_judge(&judge, tags)) return;
    judge_all(&judge);
    bool named = false; /* a tag that is everywhere steps back only where another has the name */
    for (size_t i = 0; i < judge.named.count; i++) named = named || judge.named.best[i].named;
    for (size_t i = 0; !named && i < judge.anonymous.count; i++)
        sfti_candidate_put(&judge.named, &judge.anonymous.best[i]);
    for (size_t i = 0; i < judge.named.count; i++)
        if (judge.named.best[i].trust >= TRUST_LEAST) sfti_list_word(tags, &judge.named.best[i]);
}
