/* libcrypto's block function, for processors whose SHA instructions we do not know. The
 * state is ours; its own interface would keep it in memory of its own. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "hash/hash.h"

#if defined(SFTI_FOUND_CRYPTO)
#include <openssl/sha.h>
#include <string.h>

static void crypto_blocks(uint32_t *const *states, const uint8_t *const *data, size_t blocks,
                          size_t count) {
    for (size_t i = 0; i < count; i++) {
        SHA256_CTX ctx;
        (void)SHA256_Init(&ctx);
        for (int j = 0; j < 8; j++) ctx.h[j] = states[i][j];
        (void)SHA256_Update(&ctx, data[i], 64 * blocks);
        for (int j = 0; j < 8; j++) states[i][j] = ctx.h[j];
    }
}

sfti_sha_blocks_fn sfti_sha_blocks_crypto(void) {
    return crypto_blocks;
}

#else

sfti_sha_blocks_fn sfti_sha_blocks_crypto(void) {
    return NULL;
}

#endif
