/* Digests for tests, written as JSON text: {"sha256":"..","autov3":null}. */
#ifndef TEST_DIGESTS_H
#define TEST_DIGESTS_H

#include <stdio.h>
#include <string.h>

#include "hash/hash.h"

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
        size_t len = strcspn(++at, "\""), most = sft_hash_digits((sft_hash_algo)i);
        snprintf(sfti_hashes_add(&out, (sft_hash_algo)i), most + 1, "%.*s", (int)len, at);
    }
    return out;
}

#endif
