/* What a card says of a model that could not be read, in two words. */
#ifndef CATALOG_FAULTS_H
#define CATALOG_FAULTS_H

#include "safetensors.h"

typedef struct catalog_fault {
    const char *id;    /* an icon's name (page/icons.js) */
    const char *label;
} catalog_fault;

/* bytes: of the file, UINT64_MAX if unknown. Static. */
const catalog_fault *catalog_fault_of(const sft_error *err, uint64_t bytes);

#endif
