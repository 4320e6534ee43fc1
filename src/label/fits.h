/* Whether two models are used together. fits.c decides; kin.c knows which architectures take each
 * other's adapters, VAEs and text encoders; layers.c compares the sizes of layers. */
#ifndef SFTI_FITS_H
#define SFTI_FITS_H

#include "label/info.h"

/* ── Architectures (kin.c) ── */

typedef enum sfti_kin {
    SFTI_KIN_NONE,    /* different models */
    SFTI_KIN_UNSURE,  /* one name stands for several, which differ in their layers */
    SFTI_KIN_DERIVED, /* the same layers, trained to other ends */
    SFTI_KIN_MEMBER,  /* one name stands for the other too */
    SFTI_KIN_SAME
} sfti_kin;

sfti_kin sfti_architecture_kin(sft_span a, sft_span b);

/* Whether a model of that architecture uses that VAE or text encoder. UNSURE: it is not known what
 * the model uses; DERIVED: what has the same layers. */
sfti_kin sfti_kin_of_vae(sft_span architecture, sft_span vae);
sfti_kin sfti_kin_of_encoder(sft_span architecture, sft_span encoder);

/* What a label of a base model ("Pony", "SDXL 1.0") names beyond the architecture: "pony", or ""
 * for the plain one. */
const char *sfti_base_branch(sft_span label);
/* Whether models of that architecture have such branches. */
bool sfti_has_branches(sft_span architecture);

/* ── Layers (layers.c) ── */

typedef struct sfti_layer_match {
    uint64_t same;    /* layers of the adapter that the model has, of the same size */
    uint64_t missing; /* that it lacks, but has others */
    sft_span other;   /* one of another size, or empty */
    uint64_t in, out, model_in, model_out; /* its sizes */
} sfti_layer_match;

/* Adapted layers that are named as in the model. Nothing is found where the names differ. */
sfti_layer_match sfti_match_layers(const sft_info *model, const sft_info *adapter);

#endif
