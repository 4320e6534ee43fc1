#include "info/info.h"

#include <string.h>

#define FAMILY_DEPTH 4 /* steps up at most, so that no table can make a ring of it */

/* Child and parent: tensors of the child fit the parent, or one name stands for both where
 * nobody says more. */
static const char *const family_rows[][2] = {
    { "flux.1-dev", "flux.1" }, { "flux.1-schnell", "flux.1" }, { "chroma", "flux.1" },
    { "chroma-radiance", "chroma" }, { "flux.2-dev", "flux.2" },
    { "flux.2-klein-4b", "flux.2" }, { "flux.2-klein-9b", "flux.2" }, { "sd-3-medium", "sd-3" },
    { "sd-3.5-medium", "sd-3" }, { "sd-3.5-large", "sd-3" }, { "wan-2.1", "wan" },
    { "wan-2.2", "wan" }, { "playground-2.5", "sdxl" }, { "ssd-1b", "sdxl" },
    { "segmind-vega", "sdxl" }, { "koala", "sdxl" }, { "kolors", "sdxl" }, { "pony", "sdxl" },
    { "illustrious", "sdxl" }, { "noobai", "sdxl" }, { "anima", "cosmos-predict2" },
    { "newbie", "lumina-2" }, { "mistral", "llama" }, { "t5-xxl", "t5" },
};

static const char *family_parent(sft_span name) {
    return SFTI_MAPPED(name, family_rows, sfti_is);
}

/* Whether a is b, or b one of its parents. */
static bool family_within(sft_span a, sft_span b) {
    for (int i = 0; i < FAMILY_DEPTH; i++) {
        if (sft_span_equal(a, b)) return true;
        const char *parent = family_parent(a);
        if (!parent) return false;
        a = sft_span_cstr(parent);
    }
    return false;
}

bool sfti_related_architectures(sft_span a, sft_span b) {
    return family_within(a, b) || family_within(b, a);
}

const char *sfti_common_architecture(const char *a, const char *b) {
    if (!b) return NULL;
    for (int i = 0; a && i < FAMILY_DEPTH; i++) {
        if (family_within(sft_span_cstr(b), sft_span_cstr(a))) return a;
        a = family_parent(sft_span_cstr(a));
    }
    return NULL;
}
