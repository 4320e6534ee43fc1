/* Whether two models are used together. fits.c decides; layers.c compares the sizes of layers. */
#ifndef SFTI_FITS_H
#define SFTI_FITS_H

#include "label/info.h"

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
