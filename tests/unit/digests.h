/* Digests for tests, written as JSON text: {"sha256":"..","autov3":null}. */
#ifndef TEST_DIGESTS_H
#define TEST_DIGESTS_H

#include <stdio.h>
#include <string.h>

#include "safetensors_hash.h"

static inline sft_hashes digests_of(const char *json) {
    sft_hashes out;
    memset(&out, 0, sizeof out);
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++) {
        char key[64];
        snprintf(key, sizeof key, "\"%s\":", sft_hash_name((sft_hash_algo)i));
        const char *at = strstr(json, key);
        if (!at) continue;
        out.asked |= SFT_HASH_BIT(i);
        at += strlen(key);
        if (*at != '"') continue;
        out.known |= SFT_HASH_BIT(i);
        snprintf(out.text[i], sizeof out.text[i], "%.*s", (int)strcspn(at + 1, "\""), at + 1);
    }
    return out;
}

#endif
