/* libcrypto's block function, for processors whose SHA instructions are not supported here. The
 * library is loaded when something is first hashed, not when the program starts. The low-level call
 * is used because the state stays in our own struct. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "hash/hash.h"

#if defined(SFTI_FOUND_CRYPTO)
#include <openssl/opensslv.h>
#include <openssl/sha.h>
#include <string.h>

/* The library whose SHA256_CTX the header describes. */
#define CRYPTO_TEXT(x) CRYPTO_TEXT_(x)
#define CRYPTO_TEXT_(x) #x
#if defined(OPENSSL_SHLIB_VERSION)
#define CRYPTO_LIBRARY "libcrypto.so." CRYPTO_TEXT(OPENSSL_SHLIB_VERSION)
#elif defined(SHLIB_VERSION_NUMBER)
#define CRYPTO_LIBRARY "libcrypto.so." SHLIB_VERSION_NUMBER
#else
#define CRYPTO_LIBRARY "libcrypto.so"
#endif

typedef int (*crypto_update_fn)(SHA256_CTX *ctx, const void *data, size_t len);

static void crypto_blocks(const sfti_hash_impl *impl, uint32_t *const *states,
                          const uint8_t *const *data, size_t blocks, size_t count) {
    crypto_update_fn update = (crypto_update_fn)impl->crypto_update;
    for (size_t i = 0; i < count; i++) {
        SHA256_CTX ctx = { .md_len = SHA256_DIGEST_LENGTH };
        for (int j = 0; j < 8; j++) ctx.h[j] = states[i][j];
        (void)update(&ctx, data[i], 64 * blocks);
        for (int j = 0; j < 8; j++) states[i][j] = ctx.h[j];
    }
}

sfti_sha_blocks_fn sfti_sha_blocks_crypto(sfti_hash_impl *impl) {
    impl->crypto_update = sfti_os_library_function(CRYPTO_LIBRARY, "SHA256_Update");
    if (!impl->crypto_update) return NULL;
    /* Whether it computes what it should: a library found by its name may be another. */
    static const uint8_t zeros[64];
    const uint8_t *data[1] = { zeros };
    uint32_t plain[8] = { 0 }, found[8] = { 0 };
    uint32_t *to_plain[1] = { plain }, *to_found[1] = { found };
    sfti_sha_blocks_plain(impl, to_plain, data, 1, 1);
    crypto_blocks(impl, to_found, data, 1, 1);
    return memcmp(plain, found, sizeof plain) == 0 ? crypto_blocks : NULL;
}

#else

sfti_sha_blocks_fn sfti_sha_blocks_crypto(sfti_hash_impl *impl) {
    (void)impl;
    return NULL;
}

#endif
