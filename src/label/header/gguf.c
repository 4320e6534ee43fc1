/* What a GGUF declares of itself: keys that were kept as gguf.KEY. */
#include "label/header/header.h"

#define GGUF_TRUST 80

/* general.architecture of llama.cpp and ComfyUI-GGUF. The first names code, not a model: what it
 * calls llama may be a Mistral, so that trust is low. An adapter names the architecture of its
 * base; a projector or a vocabulary that of its model. */
static void gguf_architecture(sfti_cursor *at) {
    sft_span type = { "model", 5 };
    (void)sfti_info_metadata(at->info, "gguf.general.type", &type);
    bool model = sfti_is(type, "model");
    if (!sfti_at_text(at) || (!model && !sfti_is(type, "adapter"))) return;
    const sfti_record *of = sfti_said(at->info->records, SFTI_MODEL, SFTI_SAYS_GGUF, at->text, true,
                                      &at->info->said);
    sft_span told, kind;
    uint64_t trust = GGUF_TRUST;
    if (!of) return;
    const sfti_record_row *said = at->info->said;
    if (sfti_row_has(said, "trust", &told)) (void)sfti_parse_uint(told, &trust);
    sfti_info_add_cstr(at->info, SFT_FACT_ARCHITECTURE, of->id, sfti_cursor_source(at),
                       trust < GGUF_TRUST ? (int)trust : GGUF_TRUST);
    (void)sfti_row_has(said, "kind", &kind);
    if (!model) kind = sft_span_cstr("adapter");
    if (kind.len > 0)
        sfti_info_add_text(at->info, SFT_FACT_KIND, kind, sfti_cursor_source(at), GGUF_TRUST);
}

static const sfti_key_take gguf_takes[] = {
    { "architecture", gguf_architecture, NULL, NULL },
};
SFTI_KEYS_OF(sfti_gguf_keys, "gguf", gguf_takes);
