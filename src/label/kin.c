/* Tables: which architectures take each other's adapters, VAEs and text encoders. */
#include "label/fits.h"

#include <string.h>

/* ── Architectures ── */

/* Children (families.c) that are more than a name for their parent; others are members of it.
 * DERIVED: the same layers, UNSURE: other layers. */
static const struct kin_row { const char *child; sfti_kin kin; } kin_rows[] = {
    { "chroma", SFTI_KIN_DERIVED }, { "chroma-radiance", SFTI_KIN_DERIVED },
    { "playground-2.5", SFTI_KIN_DERIVED }, { "kolors", SFTI_KIN_DERIVED },
    { "skyreels-v2", SFTI_KIN_DERIVED }, { "chronoedit", SFTI_KIN_DERIVED },
    { "anyflow", SFTI_KIN_DERIVED }, { "helios", SFTI_KIN_DERIVED },
    { "wan-animate-2", SFTI_KIN_DERIVED }, { "framepack", SFTI_KIN_DERIVED },
    { "consisid", SFTI_KIN_DERIVED }, { "newbie", SFTI_KIN_DERIVED },
    { "anima", SFTI_KIN_DERIVED }, { "qwen-image-2.1", SFTI_KIN_DERIVED },
    { "pixart-sigma", SFTI_KIN_DERIVED },
    { "sd-3-medium", SFTI_KIN_UNSURE }, { "sd-3.5-medium", SFTI_KIN_UNSURE },
    { "sd-3.5-large", SFTI_KIN_UNSURE }, { "flux.2-dev", SFTI_KIN_UNSURE },
    { "flux.2-klein-4b", SFTI_KIN_UNSURE }, { "flux.2-klein-9b", SFTI_KIN_UNSURE },
    { "stable-cascade-a", SFTI_KIN_UNSURE }, { "stable-cascade-b", SFTI_KIN_UNSURE },
    { "stable-cascade-c", SFTI_KIN_UNSURE }, { "ssd-1b", SFTI_KIN_UNSURE },
    { "segmind-vega", SFTI_KIN_UNSURE }, { "koala", SFTI_KIN_UNSURE },
    { "ltx-2", SFTI_KIN_UNSURE }, { "cosmos-1", SFTI_KIN_UNSURE },
    { "cosmos-3", SFTI_KIN_UNSURE }, { "bria-fibo", SFTI_KIN_UNSURE },
    { "bria-fibo-2", SFTI_KIN_UNSURE }, { "stable-audio-3", SFTI_KIN_UNSURE },
    { "clip-l", SFTI_KIN_UNSURE }, { "clip-g", SFTI_KIN_UNSURE }, { "clip-h", SFTI_KIN_UNSURE },
    { "t5-xxl", SFTI_KIN_UNSURE }, { "t5-seq2seq", SFTI_KIN_UNSURE },
    { "umt5", SFTI_KIN_UNSURE },
};

static sfti_kin kin_of_child(sft_span child) {
    for (size_t i = 0; i < SFTI_COUNT(kin_rows); i++)
        if (sfti_is(child, kin_rows[i].child)) return kin_rows[i].kin;
    return SFTI_KIN_MEMBER;
}

/* Two children of one parent are never the same. */
static sfti_kin kin_of_siblings(sft_span a, sft_span b) {
    sfti_kin x = kin_of_child(a), y = kin_of_child(b);
    return x == SFTI_KIN_UNSURE || y == SFTI_KIN_UNSURE ? SFTI_KIN_NONE : SFTI_KIN_DERIVED;
}

static bool has_common_parent(sft_span a, sft_span b) {
    const char *parent = sfti_architecture_parent(a);
    while (parent && !sfti_architecture_within(b, sft_span_cstr(parent)))
        parent = sfti_architecture_parent(sft_span_cstr(parent));
    return parent != NULL;
}

sfti_kin sfti_architecture_kin(sft_span a, sft_span b) {
    if (sft_span_equal(a, b)) return SFTI_KIN_SAME;
    if (sfti_architecture_within(a, b)) return kin_of_child(a);
    if (sfti_architecture_within(b, a)) return kin_of_child(b);
    return has_common_parent(a, b) ? kin_of_siblings(a, b) : SFTI_KIN_NONE;
}

/* ── VAEs and text encoders ── */

/* The VAEs and text encoders of an architecture and its children. A child with a row of its own
 * stands before; an architecture without a row is not known. */
static const struct kin_parts { const char *architecture, *vaes, *encoders; } kin_parts[] = {
    { "sd-1", "vae-sd", "clip-l" }, { "sd-2", "vae-sd", "clip-h" },
    { "kolors", "vae-sd", NULL }, { "playground-2.5", "vae-sd", "clip-l clip-g" },
    { "sdxl-refiner", "vae-sd", "clip-g" }, { "sdxl", "vae-sd", "clip-l clip-g" },
    { "svd", "vae-svd", NULL }, { "sd-3", "vae-flux", "clip-l clip-g t5-xxl" },
    { "chroma-radiance", "", "t5-xxl" }, { "chroma", "vae-flux", "t5-xxl" },
    { "flux.1", "vae-flux", "clip-l t5-xxl" }, { "flux.2", "vae-flux.2", NULL },
    { "pixart-alpha", "vae-sd", "t5-xxl" }, { "hunyuan-dit", "vae-sd", NULL },
    { "auraflow", "vae-sd", NULL }, { "z-image", "vae-flux", NULL },
    { "lumina-2", "vae-flux", NULL }, { "hidream-i1", "vae-flux", NULL },
    { "omnigen-2", "vae-flux", NULL }, { "wan", "vae-wan", "umt5" },
    { "qwen-image-2.1", "vae-qwen-image-2.1", NULL }, { "qwen-image", "vae-qwen-image", NULL },
    { "hunyuan-video-1.5", "vae-hunyuan-video-1.5", NULL },
    { "hunyuan-video", "vae-hunyuan-video", NULL },
    { "hunyuan-image-2.1", "vae-hunyuan-image", NULL }, { "ltx-2", "vae-ltx-2", NULL },
    { "ltx-video", "vae-ltx", "t5-xxl" }, { "mochi", "vae-mochi", "t5-xxl" },
    { "cogvideox", "vae-cogvideox", "t5-xxl" }, { "cosmos-1", "vae-cosmos", NULL },
    { "anima", "vae-qwen-image", NULL }, { "cosmos-predict2", "vae-wan", NULL },
    { "sana", "dc-ae", NULL }, { "stable-audio", "vae-stable-audio", NULL },
};

static const struct kin_parts *parts_of(sft_span architecture) {
    for (size_t i = 0; i < SFTI_COUNT(kin_parts); i++)
        if (sfti_architecture_within(architecture, sft_span_cstr(kin_parts[i].architecture)))
            return &kin_parts[i];
    return NULL;
}

/* The best kin among words; wanted NULL: not known. */
static sfti_kin best_kin(const char *wanted, sft_span part) {
    sft_span rest = sft_span_cstr(wanted ? wanted : ""), word;
    sfti_kin best = wanted ? SFTI_KIN_NONE : SFTI_KIN_UNSURE;
    while (sfti_next_piece(&rest, ' ', &word)) {
        sfti_kin kin = word.len ? sfti_architecture_kin(word, part) : SFTI_KIN_NONE;
        if (kin > best) best = kin;
    }
    return best;
}

sfti_kin sfti_kin_of_vae(sft_span architecture, sft_span vae) {
    const struct kin_parts *parts = parts_of(architecture);
    sfti_kin kin = best_kin(parts ? parts->vaes : NULL, vae);
    return kin == SFTI_KIN_MEMBER ? SFTI_KIN_DERIVED : kin; /* trained anew, all of them */
}

sfti_kin sfti_kin_of_encoder(sft_span architecture, sft_span encoder) {
    const struct kin_parts *parts = parts_of(architecture);
    return best_kin(parts ? parts->encoders : NULL, encoder);
}

/* ── Branches of SDXL ── */

static const char *const kin_branches[] = { "pony", "illustrious", "noobai", "animagine" };

const char *sfti_base_branch(sft_span label) {
    for (size_t i = 0; i < SFTI_COUNT(kin_branches); i++)
        if (sfti_contains(label, kin_branches[i])) return kin_branches[i];
    return "";
}

bool sfti_has_branches(sft_span architecture) {
    return sfti_is(architecture, "sdxl");
}
