/* Names of algorithms, and digests as text. Tests: test_hash.c. */
#include "base/error.h"
#include "base/guess.h"
#include "base/number.h"
#include "base/portable.h"
#include "hash/hash.h"

#include <string.h>

/* ── What the processor is best at ── */

void sfti_hash_impl_fill(sfti_hash_impl *impl, unsigned forbid) {
    sfti_blake3_lanes_fn blake3 = NULL;
    sfti_sha_kernels_fill(impl, forbid);
    if (!(forbid & SFTI_HASH_NO_LANES)) {
        blake3 = sfti_blake3_lanes_x86(!(forbid & SFTI_HASH_NO_WIDE), &impl->lanes);
        if (!blake3) blake3 = sfti_blake3_lanes_neon(&impl->lanes);
    }
    impl->blake3_lanes = blake3 ? blake3 : sfti_blake3_lanes_plain;
    if (!blake3) impl->lanes = 1;
    impl->zlib = !(forbid & SFTI_HASH_NO_ZLIB);
    sfti_crc32_begin(&impl->crc_table, false);
    if (forbid & SFTI_HASH_NO_CLMUL) {
        impl->crc_table.folds = false;
        impl->crc_table.words = NULL;
    }
}

/* ── Algorithms ── */

typedef struct algo_row {
    const char *name;
    size_t digits;
    size_t at; /* of its text in sft_hashes: behind those of the rows before */
} algo_row;

static const algo_row algo_rows[SFT_HASH_COUNT] = {
    [SFT_HASH_SHA256] = { "sha256", 64, 0 },
    [SFT_HASH_AUTOV1] = { "autov1", 8, 65 },
    [SFT_HASH_AUTOV1_CIVITAI] = { "autov1_civitai", 8, 74 },
    [SFT_HASH_AUTOV2] = { "autov2", 10, 83 },
    [SFT_HASH_AUTOV3] = { "autov3", 12, 94 },
    [SFT_HASH_SSHS_MODEL] = { "sshs_model", 64, 107 },
    [SFT_HASH_SSHS_LEGACY] = { "sshs_legacy", 8, 172 },
    [SFT_HASH_CRC32] = { "crc32", 8, 181 },
    [SFT_HASH_CRC32_CIVITAI] = { "crc32_civitai", 8, 190 },
    [SFT_HASH_BLAKE3] = { "blake3", 64, 199 },
    [SFT_HASH_CONTENT] = { "content", 64, 264 },
};

const char *sft_hash_name(sft_hash_algo algo) {
    return (unsigned)algo < SFT_HASH_COUNT ? algo_rows[algo].name : NULL;
}

size_t sft_hash_digits(sft_hash_algo algo) {
    return (unsigned)algo < SFT_HASH_COUNT ? algo_rows[algo].digits : 0;
}

static sft_code algo_word(sft_span word, uint32_t *algos, sft_error *err) {
    sfti_guess guess = sfti_guess_begin(word);
    for (unsigned i = 0; i <= SFT_HASH_COUNT; i++) {
        const char *name = i < SFT_HASH_COUNT ? algo_rows[i].name : "all";
        sfti_guess_try(&guess, sft_span_cstr(name));
        /* In any case: people write SHA256 and AutoV2. */
        if (sfti_name_compare_folded(word, sft_span_cstr(name)) != 0) continue;
        *algos |= i < SFT_HASH_COUNT ? SFT_HASH_BIT(i) : SFT_HASH_ALL;
        return SFT_OK;
    }
    return sfti_misuse(err, "expected algorithms (sha256, autov1, autov1_civitai, autov2, autov3, "
                       "sshs_model, sshs_legacy, crc32, crc32_civitai, blake3, content, all), "
                       "found \"%.*s\"%s", word.len < 64 ? (int)word.len : 64,
                       word.len > 0 ? word.data : "", sfti_guess_text(&guess, "\"", "\""));
}

sft_code sft_hash_parse(sft_span list, uint32_t *algos, sft_error *err) {
    uint32_t found = 0;
    sft_code code = SFT_OK;
    *algos = 0;
    for (size_t at = 0; !code && at <= list.len;) {
        const char *word = list.len > 0 ? list.data + at : NULL;
        const char *comma = at < list.len ? memchr(word, ',', list.len - at) : NULL;
        size_t len = comma ? (size_t)(comma - word) : list.len - at;
        code = algo_word((sft_span){ word, len }, &found, err);
        at += len + 1;
    }
    if (!code) *algos = found;
    return code;
}

/* ── Digests as text ── */

uint32_t sft_hashes_asked(const sft_hashes *hashes) { return hashes->asked; }

uint32_t sft_hashes_known(const sft_hashes *hashes) { return hashes->known; }

const char *sft_hashes_get(const sft_hashes *hashes, sft_hash_algo algo) {
    bool known = (unsigned)algo < SFT_HASH_COUNT && hashes->known & SFT_HASH_BIT(algo);
    return known ? hashes->text + algo_rows[algo].at : NULL;
}

char *sfti_hashes_add(sft_hashes *hashes, sft_hash_algo algo) {
    hashes->known |= SFT_HASH_BIT(algo);
    return hashes->text + algo_rows[algo].at;
}

void sfti_hashes_put(sft_hashes *hashes, sft_hash_algo algo, const uint8_t *bytes) {
    char *text = sfti_hashes_add(hashes, algo);
    for (size_t i = 0; i < algo_rows[algo].digits; i += 2)
        sfti_hex_text(bytes[i / 2], 2, text + i);
    text[algo_rows[algo].digits] = '\0';
}

void sfti_hashes_merge(sft_hashes *to, const sft_hashes *from) {
    uint32_t more = from->known & to->asked & ~to->known;
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++) {
        const algo_row *row = &algo_rows[i];
        if (more & SFT_HASH_BIT(i))
            memcpy(to->text + row->at, from->text + row->at, row->digits + 1);
    }
    to->known |= more;
}

bool sft_hash_agrees(const sft_hashes *hashes, const sft_hash_claim *claim) {
    sft_span text = claim->text;
    const char *known = sft_hashes_get(hashes, claim->algo);
    if (!known) return false;
    if (text.len > 2 && text.data[0] == '0' && (text.data[1] | 0x20) == 'x') {
        text.data += 2;
        text.len -= 2;
    }
    if (text.len != sft_hash_digits(claim->algo)) return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c >= 'A' && c <= 'F') c = (char)(c + ('a' - 'A'));
        if (c != known[i]) return false;
    }
    return true;
}
