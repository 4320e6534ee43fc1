/* What prose about models tells: links, and words that a sentence introduces. Every function is
 * linear and bounded. Tests: test_links.c. */
#ifndef SFTI_TEXT_LINKS_H
#define SFTI_TEXT_LINKS_H

#include "text/text.h"

/* ── Links (links.c) ── */

/* An address of a web page, CivitAI's without a scheme, too, or an AIR
 * ("urn:air:sdxl:lora:civitai:123@456"). */
typedef struct sfti_text_link {
    sft_span text;
    bool bare;       /* a CivitAI address without a scheme */
    sft_span type;   /* of an AIR, else empty */
    uint64_t model_id, version_id; /* CivitAI's; 0: none */
    bool of_another; /* its sentence says so: "trained on …", "merge of …" */
} sfti_text_link;

/* The next link from byte *at on, which moves behind it; false at the end. */
bool sfti_next_link(sft_span text, size_t *at, sfti_text_link *link);
/* Model and version ids of a page's address, 0 for one it has not; false if it has none. */
bool sfti_civitai_address(sft_span url, uint64_t *model_id, uint64_t *version_id);

/* ── Sentences (sentences.c) ── */

/* The next words after "trigger word(s):", "trigger word is", "use `x` to trigger" from byte *at
 * on, which moves behind the introduction; false at the end. */
bool sfti_next_introduced(sft_span text, size_t *at, sft_span *words);

#endif
