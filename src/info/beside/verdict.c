/* Whether a sidecar is this file's: what it records against what was computed, and what
 * becomes of the trust in what it told. */
#include "info/beside/beside.h"

#include <stddef.h>
#include <string.h>

/* ── Matching ── */

typedef struct beside_digests {
    sft_span sha256, autov2, autov3, crc32, crc32_civitai, blake3; /* empty: not computed */
} beside_digests;

static void take_digest(sfti_cursor *at, const sfti_row *row) {
    sft_span *slot = (sft_span *)(void *)((char *)at->ctx + row->field);
    sft_span hex;
    if (at->json.type != SFTI_JSON_STRING || slot->len > 0) return;
    size_t digits = (size_t)row->trust;
    sft_span text = sfti_trim(at->text);
    if (text.len > digits && row->word) text.len = digits;
    if (sfti_info_hash(at->info, text, digits, &hex)) *slot = hex;
}

#define DIGEST_ROW(pattern, member, digits, word) \
    { pattern, take_digest, (int)offsetof(beside_digests, member), digits, word }

static void parse_digests(sft_info *info, sft_span computed, beside_digests *out) {
    static const sfti_row rows[] = {
        DIGEST_ROW("/sha256", sha256, 64, NULL),
        DIGEST_ROW("/sha256", autov2, 10, "cut"),
        DIGEST_ROW("/autov2", autov2, 10, NULL),
        DIGEST_ROW("/autov3", autov3, 12, NULL),
        DIGEST_ROW("/sshs_model", autov3, 12, "cut"),
        DIGEST_ROW("/crc32", crc32, 8, NULL),
        DIGEST_ROW("/crc32_civitai", crc32_civitai, 8, NULL),
        DIGEST_ROW("/blake3", blake3, 64, NULL),
    };
    memset(out, 0, sizeof *out);
    if (computed.len > 0)
        (void)sfti_info_walk(info, sfti_info_copy(info, computed), sft_span_cstr("computed"),
                             SFTI_ROWS(rows), out);
}

bool sfti_same_crc(sft_span a, sft_span b) {
    if (a.len != 8 || b.len != 8) return false;
    if (sft_span_equal(a, b)) return true;
    for (size_t i = 0; i < 8; i += 2)
        if (memcmp(a.data + i, b.data + 6 - i, 2) != 0) return false;
    return true;
}

typedef struct beside_verdict {
    bool same, same_weights;   /* a recorded hash equals */
    bool whole, weights;       /* one was compared */
    bool weights_recorded;
} beside_verdict;

static void weigh_hash(const sfti_claim *claim, const beside_digests *digests,
                       beside_verdict *verdict) {
    sft_span value = claim->value, mine = { NULL, 0 };
    bool weights = strcmp(claim->algo, "autov3") == 0 || strcmp(claim->algo, "sshs_model") == 0;
    bool crc = strcmp(claim->algo, "crc32_civitai") == 0, equal;
    if (weights) mine = digests->autov3;
    else if (crc) mine = digests->crc32.len > 0 ? digests->crc32 : digests->crc32_civitai;
    else if (strcmp(claim->algo, "autov2") == 0) mine = digests->autov2;
    else if (strcmp(claim->algo, "blake3") == 0) mine = digests->blake3;
    else mine = digests->sha256;
    if (weights) verdict->weights_recorded = true;
    if (mine.len == 0) return;
    if (weights && value.len > mine.len) value.len = mine.len;
    equal = crc ? sfti_same_crc(value, mine) : sft_span_equal(value, mine);
    if (weights) {
        verdict->weights = true;
        verdict->same_weights = verdict->same_weights || equal;
    } else {
        verdict->whole = true;
        verdict->same = verdict->same || equal;
    }
}

static const char *verdict_of(const sft_info *info, const sfti_sidecar *sidecar,
                            const beside_digests *digests) {
    beside_verdict verdict = { false, false, false, false, false };
    for (const sfti_claim *claim = sidecar->hashes.first; claim; claim = claim->next)
        weigh_hash(claim, digests, &verdict);
    if (verdict.same) return "sha256";
    if (verdict.same_weights) return "weights";
    if (verdict.whole && (verdict.weights || !verdict.weights_recorded)) return "differs";
    if (verdict.whole || verdict.weights) return NULL;
    if (sidecar->size_claim == 0 || sfti_side_file_size(info) == 0) return NULL;
    return sfti_side_size_fits(info, sidecar->size_claim) ? "size" : "size-differs";
}

/* ── Demoting ── */

typedef struct beside_demotion {
    struct beside_demotion *next;
    int *trust;
    int was;
} beside_demotion;

static void restore_trust(sfti_sidecar *sidecar) {
    for (const beside_demotion *d = sidecar->demoted.first; d; d = d->next) *d->trust = d->was;
    memset(&sidecar->demoted, 0, sizeof sidecar->demoted);
}

/* What comes from a sidecar: its name, and a place in it or nothing. */
static bool comes_from(sft_span source, sft_span sidecar) {
    if (source.len < sidecar.len || memcmp(source.data, sidecar.data, sidecar.len) != 0)
        return false;
    return source.len == sidecar.len || source.data[sidecar.len] == ':';
}

static void demote(sft_info *info, sfti_sidecar *sidecar, sft_span source, int *trust,
                   bool differs) {
    int now = differs ? (*trust < 10 ? *trust : 10) : (*trust > 30 ? *trust - 30 : 0);
    if (now == *trust || !comes_from(source, sidecar->source)) return;
    beside_demotion *d = sfti_info_push(info, &sidecar->demoted, sizeof *d);
    if (!d) return;
    d->trust = trust;
    d->was = *trust;
    *trust = now;
}

static void demote_all(sft_info *info, sfti_sidecar *sidecar, bool differs) {
    for (size_t i = 0; i < SFT_FACT_COUNT; i++)
        for (sfti_fact *fact = info->facts[i]; fact; fact = fact->next)
            demote(info, sidecar, fact->source, &fact->trust, differs);
    for (sfti_trigger *word = info->triggers.first; word; word = word->next)
        demote(info, sidecar, word->source, &word->trust, differs);
    for (sfti_civitai *claim = info->civitai.first; claim; claim = claim->next)
        demote(info, sidecar, claim->source, &claim->trust, differs);
    if (differs && sidecar->gave_permissions)
        memset(&info->permissions, 0, sizeof info->permissions);
    if (differs && sidecar->gave_level) info->nsfw_level = -1;
}

/* How much a match lowers what the sidecar told. */
static int lowering(const char *match) {
    if (!match) return 0;
    return strcmp(match, "differs") == 0 ? 2 : strcmp(match, "size-differs") == 0;
}

static bool is_matched(const sfti_sidecar *sidecar) {
    return sidecar->error.len == 0 && sidecar->source.len > 0;
}

static void match_sidecar(sft_info *info, sfti_sidecar *sidecar,
                          const beside_digests *digests) {
    restore_trust(sidecar);
    if (!is_matched(sidecar)) return;
    sidecar->match = verdict_of(info, sidecar, digests);
    int lower = lowering(sidecar->match);
    if (lower) demote_all(info, sidecar, lower == 2);
}

void sfti_info_match_sidecars(sft_info *info, sft_span computed) {
    beside_digests digests;
    parse_digests(info, computed, &digests);
    if (info->online) match_sidecar(info, info->online, &digests);
    for (sfti_sidecar *sidecar = info->sidecars.first; sidecar; sidecar = sidecar->next)
        match_sidecar(info, sidecar, &digests);
}

bool sfti_info_match_again(sft_info *info, sft_span computed) {
    beside_digests digests;
    parse_digests(info, computed, &digests);
    if (info->code || info->online) return false;
    for (const sfti_sidecar *one = info->sidecars.first; one; one = one->next)
        if (is_matched(one) && lowering(verdict_of(info, one, &digests)) != lowering(one->match))
            return false;
    for (sfti_sidecar *one = info->sidecars.first; one; one = one->next)
        if (is_matched(one)) one->match = verdict_of(info, one, &digests);
    return true;
}
