/* Whether a sidecar is this file's: what it records against what was computed, and what
 * becomes of the trust in what it told. */
#include "label/sidecars/sidecars.h"

#include <string.h>

/* ── Matching ── */

bool sfti_same_crc(sft_span a, sft_span b) {
    if (a.len != 8 || b.len != 8) return false;
    if (sft_span_equal(a, b)) return true;
    for (size_t i = 0; i < 8; i += 2)
        if (memcmp(a.data + i, b.data + 6 - i, 2) != 0) return false;
    return true;
}

/* What a recorded hash is compared with: the digest of its algorithm, or a longer one of which
 * that is the beginning. Empty: not computed. */
static sft_span digest_for(const sfti_digests *digests, const char *algo) {
    static const struct { const char *algo; sft_hash_algo from[2]; size_t digits; } rows[] = {
        { "sha256", { SFT_HASH_SHA256, SFT_HASH_SHA256 }, 64 },
        { "autov2", { SFT_HASH_SHA256, SFT_HASH_AUTOV2 }, 10 },
        { "autov3", { SFT_HASH_AUTOV3, SFT_HASH_SSHS_MODEL }, 12 },
        { "sshs_model", { SFT_HASH_AUTOV3, SFT_HASH_SSHS_MODEL }, 12 },
        { "crc32_civitai", { SFT_HASH_CRC32, SFT_HASH_CRC32_CIVITAI }, 8 },
        { "blake3", { SFT_HASH_BLAKE3, SFT_HASH_BLAKE3 }, 64 },
    };
    sft_span text = { NULL, 0 };
    for (size_t i = 0; i < SFTI_COUNT(rows); i++) {
        if (strcmp(rows[i].algo, algo) != 0) continue;
        text = digests->text[rows[i].from[0]];
        if (text.len == 0) text = digests->text[rows[i].from[1]];
        if (text.len > rows[i].digits) text.len = rows[i].digits;
    }
    return text;
}

static const char *verdict_of(const sft_info *info, const sfti_sidecar *sidecar,
                              const sfti_digests *digests) {
    /* by whether a hash is of the weights alone: one equals, was compared, is recorded */
    bool same[2] = { false, false }, compared[2] = { false, false }, recorded[2] = { false, false };
    for (const sfti_claim *claim = sidecar->hashes.first; claim; claim = claim->next) {
        sft_span value = claim->value, mine = digest_for(digests, claim->algo);
        bool weights = strcmp(claim->algo, "autov3") == 0
                    || strcmp(claim->algo, "sshs_model") == 0;
        recorded[weights] = true;
        if (mine.len == 0) continue;
        if (weights && value.len > mine.len) value.len = mine.len;
        bool crc = strcmp(claim->algo, "crc32_civitai") == 0;
        bool equal = crc ? sfti_same_crc(value, mine) : sft_span_equal(value, mine);
        compared[weights] = true;
        same[weights] = same[weights] || equal;
    }
    if (same[0]) return "sha256";
    if (same[1]) return "weights";
    if (compared[0] && (compared[1] || !recorded[1])) return "differs";
    if (compared[0] || compared[1]) return NULL;
    if (sidecar->size_claim == 0 || sfti_sidecar_file_size(info) == 0) return NULL;
    return sfti_sidecar_size_fits(info, sidecar->size_claim) ? "size" : "size-differs";
}

/* ── Demoting ── */

typedef struct demotion {
    struct demotion *next;
    int *trust;
    int was;
} demotion;

/* What comes from a sidecar: its name, and a place in it or nothing. */
static bool comes_from(sft_span source, sft_span sidecar) {
    sft_span head = { source.data, sidecar.len };
    return source.len >= sidecar.len && sft_span_equal(head, sidecar)
        && (source.len == sidecar.len || source.data[sidecar.len] == ':');
}

static void demote(sft_info *info, sfti_sidecar *sidecar, sft_span source, int *trust,
                   bool differs) {
    int now = differs ? (*trust < 10 ? *trust : 10) : (*trust > 30 ? *trust - 30 : 0);
    if (now == *trust || !comes_from(source, sidecar->source)) return;
    if (SFTI_PUSH(info, &sidecar->demoted, demotion, .trust = trust, .was = *trust)) *trust = now;
}

static void demote_all(sft_info *info, sfti_sidecar *sidecar, bool differs) {
    for (size_t i = 0; i < SFT_FACT_COUNT; i++)
        for (sfti_fact *fact = info->facts[i]; fact; fact = fact->next)
            demote(info, sidecar, fact->source, &fact->trust, differs);
    for (size_t i = 0; i < SFTI_COUNT(info->weight_bounds); i++)
        for (sfti_fact *fact = info->weight_bounds[i]; fact; fact = fact->next)
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
                          const sfti_digests *digests) {
    for (const demotion *d = sidecar->demoted.first; d; d = d->next) *d->trust = d->was;
    memset(&sidecar->demoted, 0, sizeof sidecar->demoted);
    if (!is_matched(sidecar)) return;
    sidecar->match = verdict_of(info, sidecar, digests);
    int lower = lowering(sidecar->match);
    if (lower) demote_all(info, sidecar, lower == 2);
}

/* A digest of the whole file changes with the metadata. */
static bool of_whole_file(const char *algo) {
    return strcmp(algo, "autov3") != 0 && strncmp(algo, "sshs_", 5) != 0;
}

const char *sfti_claim_known(const sft_info *info, const sfti_claim *claim) {
    const sfti_sidecar *one = info->online ? info->online : info->sidecars.first;
    if (claim->known || !of_whole_file(claim->algo)) return claim->known;
    for (; one; one = one == info->online ? info->sidecars.first : one->next)
        if (one->match && strcmp(one->match, "weights") == 0
            && comes_from(claim->source, one->source))
            return "same weights, different metadata";
    return NULL;
}

void sfti_info_match_sidecars(sft_info *info, const sfti_digests *digests) {
    if (info->online) match_sidecar(info, info->online, digests);
    for (sfti_sidecar *sidecar = info->sidecars.first; sidecar; sidecar = sidecar->next)
        match_sidecar(info, sidecar, digests);
    sfti_info_preview_levels(info);
}

bool sfti_info_match_again(sft_info *info, const sfti_digests *digests) {
    if (info->online) return false;
    for (const sfti_sidecar *one = info->sidecars.first; one; one = one->next)
        if (is_matched(one) && lowering(verdict_of(info, one, digests)) != lowering(one->match))
            return false;
    for (sfti_sidecar *one = info->sidecars.first; one; one = one->next)
        if (is_matched(one)) one->match = verdict_of(info, one, digests);
    return true;
}
