/* Prompts and settings as the webuis write them into pictures. Tests: test_info_images.c. */
#include "text/formats.h"
#include "text/text.h"

static bool line_begins(sft_span text, size_t at, const char *word) {
    sft_span rest = { text.data + at, text.len - at };
    return (at == 0 || text.data[at - 1] == '\n') && sfti_starts_with(rest, word);
}

/* The value after "key: " among comma-separated settings. */
static sft_span setting(sft_span settings, const char *key) {
    sft_span none = { "", 0 }, piece;
    size_t len = strlen(key);
    while (sfti_next_piece(&settings, ',', &piece)) {
        piece = sfti_trim(piece);
        if (!sfti_starts_with(piece, key) || piece.len <= len || piece.data[len] != ':') continue;
        return sfti_trim((sft_span){ piece.data + len + 1, piece.len - len - 1 });
    }
    return none;
}

bool sfti_parameters_read(sft_span text, sfti_parameters *out) {
    size_t negative = text.len, steps = text.len;
    for (size_t i = 0; i < text.len; i++) {
        if (line_begins(text, i, "Negative prompt:") && negative == text.len) negative = i;
        if (line_begins(text, i, "Steps: ")) steps = i;
    }
    if (negative > steps) negative = steps;
    if (steps == text.len && negative == text.len) return false;
    sft_span settings = sfti_from(text, steps), unwanted = { "", 0 };
    if (steps - negative > 16)
        unwanted = (sft_span){ text.data + negative + 16, steps - negative - 16 };
    *out = (sfti_parameters){ sfti_trim((sft_span){ text.data, negative }), sfti_trim(unwanted),
                              setting(settings, "Seed"), setting(settings, "Steps"),
                              setting(settings, "Sampler"), setting(settings, "CFG scale") };
    return true;
}
