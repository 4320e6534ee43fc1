/* What the harnesses share: a check that stops the process, and where the JSON library
 * renders goes. */
#ifndef SFT_FUZZ_H
#define SFT_FUZZ_H

#include "safetensors.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition)                                                       \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                \
        }                                                                           \
    } while (0)

#endif
