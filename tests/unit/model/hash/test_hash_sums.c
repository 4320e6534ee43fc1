/* Digests over bytes: published vectors, every way to compute them, every way to cut the
 * bytes into pieces. Reference values: hashlib, zlib, b3sum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "hash/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 700000

static uint8_t bytes[MOST];

static int fill(void **state) {
    (void)state;
    for (size_t i = 0; i < MOST; i++) bytes[i] = (uint8_t)(i % 251);
    return 0;
}

static void assert_digest(const uint8_t digest[32], const char *hex) {
    char text[65];
    for (size_t i = 0; i < 32; i++) (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, hex);
}

typedef struct vector {
    size_t len;
    const char *hex;
} vector;

static const unsigned ways[] = {
    0,
    SFTI_HASH_NO_SHA | SFTI_HASH_NO_WIDE | SFTI_HASH_NO_CLMUL,
    SFTI_HASH_NO_SHA | SFTI_HASH_NO_CRYPTO | SFTI_HASH_NO_LANES | SFTI_HASH_NO_CLMUL
        | SFTI_HASH_NO_ZLIB,
};
#define WAYS (sizeof ways / sizeof *ways)

/* ── SHA-256 ── */

static const vector sha_vectors[] = {
    { 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { 55, "463eb28e72f82e0a96c0a4cc53690c571281131f672aa229e0d45ae59b598b59" },
    { 56, "da2ae4d6b36748f2a318f23e7ab1dfdf45acdc9d049bd80e59de82a60895f562" },
    { 64, "fdeab9acf3710362bd2658cdc9a29e8f9c757fcf9811603a8c447cd1d9151108" },
    { 119, "da18797ed7c3a777f0847f429724a2d8cd5138e6ed2895c3fa1a6d39d18f7ec6" },
    { 120, "f52b23db1fbb6ded89ef42a23ce0c8922c45f25c50b568a93bf1c075420bbb7c" },
    { 1000, "4e4c294b331f7a2099a379bec34b9f9fc03dc46ab465d998f4d683da53487e6d" },
    { 70000, "9dc177c2fde29dea8e7c29f7ddf147b7c449c99d049c62f3aac0a5933ecf76a3" },
};
#define SHA_VECTORS (sizeof sha_vectors / sizeof *sha_vectors)

static void sha_of_vectors(void **state) {
    sfti_hash_impl impl;
    uint8_t digest[32];
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        sfti_hash_impl_fill(&impl, ways[w]);
        for (size_t v = 0; v < SHA_VECTORS; v++) {
            sfti_sha256 sum;
            sfti_sha256_begin(&sum);
            sfti_sha256_update(&impl, &sum, bytes, sha_vectors[v].len);
            sfti_sha256_end(&impl, &sum, digest);
            assert_digest(digest, sha_vectors[v].hex);
        }
    }
}

/* Where it was found by the build, libcrypto is loaded when SHA instructions are not to be had. */
static void sha_by_libcrypto(void **state) {
    sfti_hash_impl impl;
    (void)state;
    const char *told = strstr(sft_build_info(), "libcrypto: ");
    bool found = strncmp(told + 11, "no\n", 3) != 0 &&
                 strncmp(told + strcspn(told, "\n") - 8, "not used", 8) != 0;
    sfti_hash_impl_fill(&impl, SFTI_HASH_NO_SHA);
    assert_int_equal(impl.sha_blocks != sfti_sha_blocks_plain, found);
    sfti_hash_impl_fill(&impl, SFTI_HASH_NO_SHA | SFTI_HASH_NO_CRYPTO);
    assert_true(impl.sha_blocks == sfti_sha_blocks_plain);
}

/* All vectors at once, in pieces of a size that differs from stream to stream. */
static void sha_side_by_side(void **state) {
    sfti_hash_impl impl;
    sfti_sha256 sums[SHA_VECTORS];
    uint8_t digest[32];
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        size_t at[SHA_VECTORS] = { 0 }, left = 1;
        sfti_hash_impl_fill(&impl, ways[w]);
        for (size_t v = 0; v < SHA_VECTORS; v++) sfti_sha256_begin(&sums[v]);
        for (size_t round = 0; left > 0; round++) {
            sfti_sha_job jobs[SHA_VECTORS];
            left = 0;
            for (size_t v = 0; v < SHA_VECTORS; v++) {
                size_t rest = sha_vectors[v].len - at[v], part = (round * 37 + v * 101) % 1500;
                if (part > rest) part = rest;
                jobs[v] = (sfti_sha_job){ &sums[v], bytes + at[v], part };
                at[v] += part;
                left += rest - part;
            }
            sfti_sha256_run(&impl, jobs, SHA_VECTORS);
        }
        for (size_t v = 0; v < SHA_VECTORS; v++) {
            sfti_sha256_end(&impl, &sums[v], digest);
            assert_digest(digest, sha_vectors[v].hex);
        }
    }
}

/* Each kernel that this processor has, and those that the other ways leave, used for as many
 * streams as it takes. */
static bool force_kernel(sfti_hash_impl *impl, size_t w, size_t kernel) {
    sfti_hash_impl_fill(impl, ways[w]);
    if (!impl->sha[kernel].blocks) return false;
    for (size_t i = 0; i < SFTI_SHA_KERNELS; i++) impl->sha[i].cost = i == kernel ? 1 : 1000;
    sfti_sha_choose(impl);
    assert_int_equal(impl->sha_for[SFTI_SHA_LANES], kernel);
    assert_int_equal(impl->sha_streams, impl->sha[kernel].streams);
    return true;
}

/* hashlib: the digest of the digests of the first 0 to 300 bytes. */
static void sha_kernels_at_every_length(void **state) {
    enum { LENGTHS = 301 };
    static sfti_sha256 sums[LENGTHS];
    static sfti_sha_job jobs[LENGTHS];
    static uint8_t digests[LENGTHS][32];
    sfti_hash_impl impl;
    uint8_t digest[32];
    size_t seen = 0;
    (void)state;
    for (size_t n = 0; n < WAYS * SFTI_SHA_KERNELS; n++) {
        if (!force_kernel(&impl, n / SFTI_SHA_KERNELS, n % SFTI_SHA_KERNELS)) continue;
        for (size_t len = 0; len < LENGTHS; len++) {
            sfti_sha256_begin(&sums[len]);
            jobs[len] = (sfti_sha_job){ &sums[len], bytes, len };
        }
        sfti_sha256_run(&impl, jobs, LENGTHS);
        for (size_t len = 0; len < LENGTHS; len++)
            sfti_sha256_end(&impl, &sums[len], digests[len]);
        sfti_sha256_begin(&sums[0]);
        sfti_sha256_update(&impl, &sums[0], digests, sizeof digests);
        sfti_sha256_end(&impl, &sums[0], digest);
        assert_digest(digest, "b90e35153500e9a471591550ee25a954527c6b4448afff95f7949a2ca93300ce");
        seen++;
    }
    assert_true(seen >= WAYS);
}

static uint32_t dice;

static size_t roll(size_t below) {
    dice = dice * 1664525 + 1013904223;
    return (dice >> 8) % below;
}

/* One stream of a schedule: where it begins, how long it is, how much of it was fed. */
typedef struct lane {
    size_t from, len, fed;
    sfti_sha256 sum;
} lane;

/* Streams of different lengths in pieces of different lengths, up to 40 at a time: they begin and
 * end at different times. */
static void run_schedule(const sfti_hash_impl *impl, const sfti_hash_impl *plain, lane *lanes,
                         size_t count) {
    sfti_sha_job jobs[40];
    uint8_t found[32], want[32];
    for (size_t left = count; left > 0;) {
        size_t used = 0;
        for (size_t i = 0; i < count; i++) {
            lane *l = &lanes[i];
            size_t part = roll(3) ? roll(4000) : roll(130), rest = l->len - l->fed;
            if (rest == 0 || roll(4) == 0) continue;
            if (part > rest) part = rest;
            jobs[used++] = (sfti_sha_job){ &l->sum, bytes + l->from + l->fed, part };
            l->fed += part;
            if (part == rest) left--;
        }
        sfti_sha256_run(impl, jobs, used);
    }
    for (size_t i = 0; i < count; i++) {
        sfti_sha256_end(impl, &lanes[i].sum, found);
        sfti_sha256_begin(&lanes[i].sum);
        sfti_sha256_update(plain, &lanes[i].sum, bytes + lanes[i].from, lanes[i].len);
        sfti_sha256_end(plain, &lanes[i].sum, want);
        assert_memory_equal(found, want, 32);
    }
}

static void sha_kernels_in_any_schedule(void **state) {
    static lane lanes[40];
    sfti_hash_impl impl, plain;
    (void)state;
    sfti_hash_impl_fill(&plain, ways[WAYS - 1]);
    for (uint32_t seed = 1; seed <= 20; seed++) {
        for (size_t kernel = 0; kernel < SFTI_SHA_KERNELS; kernel++) {
            size_t count = 1 + seed * 2 % 40;
            if (!force_kernel(&impl, 0, kernel)) continue;
            dice = seed;
            for (size_t i = 0; i < count; i++) {
                lanes[i] = (lane){ .from = roll(1000), .len = 1 + roll(roll(5) ? 20000 : 70) };
                sfti_sha256_begin(&lanes[i].sum);
            }
            run_schedule(&impl, &plain, lanes, count);
        }
    }
}

/* The fastest by the costs, for as many streams as there are. */
static void kernels_are_chosen_by_cost(void **state) {
    sfti_hash_impl impl;
    (void)state;
    sfti_hash_impl_fill(&impl, 0);
    for (uint32_t i = 0; i < SFTI_SHA_KERNELS; i++)
        impl.sha[i] = (sfti_sha_kernel){ impl.sha_blocks, UINT32_C(1) << i, 100 };
    sfti_sha_choose(&impl);
    assert_int_equal(impl.sha_for[1], SFTI_SHA_ONE);
    assert_int_equal(impl.sha_for[2], SFTI_SHA_TWO);
    assert_int_equal(impl.sha_for[3], SFTI_SHA_FOUR);
    assert_int_equal(impl.sha_for[16], SFTI_SHA_SIXTEEN);
    assert_int_equal(impl.sha_streams, 16);
    impl.sha[SFTI_SHA_TWO].cost = 131;
    impl.sha[SFTI_SHA_FOUR].cost = 218;
    impl.sha[SFTI_SHA_EIGHT].cost = 840;
    impl.sha[SFTI_SHA_SIXTEEN].cost = 516;
    sfti_sha_choose(&impl);
    assert_int_equal(impl.sha_for[2], SFTI_SHA_TWO);
    assert_int_equal(impl.sha_for[9], SFTI_SHA_FOUR);
    assert_int_equal(impl.sha_for[10], SFTI_SHA_SIXTEEN);
    impl.sha[SFTI_SHA_SIXTEEN].cost = 900;
    sfti_sha_choose(&impl);
    assert_int_equal(impl.sha_for[16], SFTI_SHA_FOUR);
    assert_int_equal(impl.sha_streams, 4);
    impl.sha[SFTI_SHA_SIXTEEN].blocks = impl.sha[SFTI_SHA_TWO].blocks = NULL;
    impl.sha[SFTI_SHA_FOUR].blocks = NULL;
    sfti_sha_choose(&impl);
    assert_int_equal(impl.sha_for[7], SFTI_SHA_ONE);
    assert_int_equal(impl.sha_streams, 1);
}

/* A second trial is none: it has the costs of the first. */
static void a_trial_is_made_once(void **state) {
    sfti_hash_impl first, again;
    (void)state;
    sfti_hash_impl_fill(&first, 0);
    again = first;
    sfti_sha_trial(&first);
    sfti_sha_trial(&again);
    for (size_t i = 0; i < SFTI_SHA_KERNELS; i++) {
        if (!first.sha[i].blocks) continue;
        assert_int_equal(first.sha[i].cost, again.sha[i].cost);
        assert_true(first.sha[i].cost > 0);
    }
    assert_memory_equal(first.sha_for, again.sha_for, sizeof first.sha_for);
    assert_true(first.sha_streams >= 1 && first.sha_streams <= SFTI_SHA_LANES);
}

static void queue_runs_when_full(void **state) {
    static uint8_t digests[3 * SFTI_QUEUE_MOST][32];
    static sfti_sha_queue queue;
    sfti_hash_impl impl;
    (void)state;
    sfti_hash_impl_fill(&impl, 0);
    queue.impl = &impl;
    queue.count = 0;
    for (size_t i = 0; i < 3 * SFTI_QUEUE_MOST; i++)
        sfti_queue_put(&queue, NULL, bytes, sha_vectors[i % SHA_VECTORS].len, digests[i]);
    sfti_queue_run(&queue);
    assert_int_equal(queue.count, 0);
    for (size_t i = 0; i < 3 * SFTI_QUEUE_MOST; i++)
        assert_digest(digests[i], sha_vectors[i % SHA_VECTORS].hex);
}

/* ── BLAKE3 ── */

static const vector blake3_vectors[] = {
    { 0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262" },
    { 1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213" },
    { 63, "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b" },
    { 64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98" },
    { 65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee" },
    { 1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11" },
    { 1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7" },
    { 1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444" },
    { 2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a" },
    { 2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030" },
    { 3072, "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2" },
    { 3073, "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3" },
    { 4096, "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969" },
    { 5120, "9cadc15fed8b5d854562b26a9536d9707cadeda9b143978f319ab34230535833" },
    { 8193, "bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b" },
    { 16384, "f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4" },
    { 16385, "1dabe216be2578830263b049de1639f39f05a4da616b9b78c7a5e4e41662fd1f" },
    { 31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47" },
    { 65536, "68d647e619a930e7b1082f74f334b0c65a315725569bdc123f0ee11881717bfe" },
    { 102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085" },
    { 131073, "f837d4254d24ba3d50fe3743d46e4af6db5f5d6ab0469197d94e7ba1e906c4d8" },
    { 262144, "d57dc906e20d3fd326ffaa85535500486f46a0979f5a323f028dcabfd381fd4a" },
    { 600001, "094db07406f89361acf386e0d9fee48ac91c9cde31859132d0c9b9d92d5c1c46" },
};
#define BLAKE3_VECTORS (sizeof blake3_vectors / sizeof *blake3_vectors)

static void blake3_in_pieces(const sfti_hash_impl *impl, const vector *v, size_t piece) {
    sfti_blake3 sum;
    uint8_t digest[32];
    sfti_blake3_begin(&sum, 0);
    for (size_t at = 0; at < v->len; at += piece) {
        size_t rest = v->len - at;
        sfti_blake3_update(impl, &sum, bytes + at, rest < piece ? rest : piece);
    }
    sfti_blake3_end(&sum, digest);
    assert_digest(digest, v->hex);
}

static void blake3_of_vectors(void **state) {
    static const size_t pieces[] = { 1, 61, 64, 1024, 1500, 4096, 65536, 262144, MOST };
    sfti_hash_impl impl;
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        sfti_hash_impl_fill(&impl, ways[w]);
        for (size_t v = 0; v < BLAKE3_VECTORS; v++)
            for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
                blake3_in_pieces(&impl, &blake3_vectors[v], pieces[p]);
    }
}

/* A digest in between does not disturb what follows. */
static void blake3_goes_on(void **state) {
    sfti_hash_impl impl;
    sfti_blake3 sum;
    uint8_t digest[32];
    size_t at = 0;
    (void)state;
    sfti_hash_impl_fill(&impl, 0);
    sfti_blake3_begin(&sum, 0);
    for (size_t v = 0; v < BLAKE3_VECTORS; v++) {
        sfti_blake3_update(&impl, &sum, bytes + at, blake3_vectors[v].len - at);
        at = blake3_vectors[v].len;
        sfti_blake3_end(&sum, digest);
        assert_digest(digest, blake3_vectors[v].hex);
    }
}

/* Segments in any order, by any number of sums, give the digest of the whole. */
static void blake3_in_segments(void **state) {
    static uint8_t values[64][32];
    sfti_hash_impl impl;
    (void)state;
    sfti_hash_impl_fill(&impl, 0);
    for (size_t v = 0; v < BLAKE3_VECTORS; v++) {
        size_t len = blake3_vectors[v].len;
        for (size_t size = 2048; size < len; size *= 2) {
            sfti_blake3_segments segments = { .bytes = size, .count = len / size,
                                              .values = values };
            uint8_t digest[32];
            if (segments.count > 64) continue;
            for (size_t i = segments.count + 1; i-- > 0;) {
                size_t at = i * size, rest = len - at < size ? len - at : size;
                sfti_blake3 sum;
                sfti_blake3_begin(&sum, at / SFTI_BLAKE3_CHUNK);
                sfti_segments_feed(&segments, &impl, &sum, at, bytes + at, rest / 3);
                at += rest / 3;
                sfti_segments_feed(&segments, &impl, &sum, at, bytes + at, rest - rest / 3);
                if (i == segments.count) segments.rest = sum;
            }
            sfti_segments_end(&segments, digest);
            assert_digest(digest, blake3_vectors[v].hex);
        }
    }
}

/* ── CRC-32 ── */

static void crc_same_at(const sfti_crc32_table *fast, const sfti_crc32_table *plain) {
    for (size_t at = 0; at < 9; at++)
        for (size_t len = 0; len < 300; len++)
            assert_int_equal(sfti_crc32_add(fast, (uint32_t)len, bytes + at, len),
                             sfti_crc32_add(plain, (uint32_t)len, bytes + at, len));
    assert_int_equal(sfti_crc32_add(fast, 7, bytes + 1, MOST - 1),
                     sfti_crc32_add(plain, 7, bytes + 1, MOST - 1));
}

/* Both polynomials, at every alignment: instructions and tables. */
static void crc_by_instructions(void **state) {
    sfti_crc32_table fast, plain;
    (void)state;
    sfti_crc32_begin(&fast, false);
    assert_ptr_equal(fast.words, sfti_crc32_words());
    plain = fast;
    plain.folds = false;
    plain.words = NULL;
    crc_same_at(&fast, &plain);
    sfti_crc32_begin(&fast, true);
    assert_int_equal(sfti_crc32_add(&fast, 0, "123456789", 9), 0xe3069283);
    assert_ptr_equal(fast.words, sfti_crc32c_words());
    plain = fast;
    plain.words = NULL;
    crc_same_at(&fast, &plain);
}

/* On ARM: what processors may lack is used where it is there, and not where it is forbidden. */
static void arm_instructions(void **state) {
    sfti_hash_impl impl;
    (void)state;
    assert_int_equal(sfti_sha_blocks_arm() != NULL, sfti_cpu_has(SFTI_CPU_ARM_SHA2));
    assert_int_equal(sfti_crc32_words() != NULL, sfti_cpu_has(SFTI_CPU_ARM_CRC32));
    assert_int_equal(sfti_crc32c_words() != NULL, sfti_cpu_has(SFTI_CPU_ARM_CRC32));
    sfti_hash_impl_fill(&impl, 0);
    if (sfti_sha_blocks_arm()) assert_true(impl.sha_blocks == sfti_sha_blocks_arm());
    sfti_hash_impl_fill(&impl, SFTI_HASH_NO_SHA | SFTI_HASH_NO_CRYPTO | SFTI_HASH_NO_CLMUL
                                   | SFTI_HASH_NO_LANES);
    assert_true(impl.sha_blocks == sfti_sha_blocks_plain);
    assert_true(impl.blake3_lanes == sfti_blake3_lanes_plain);
    assert_null(impl.crc_table.words);
}

static void crc_of_vectors(void **state) {
    sfti_hash_impl impl;
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        sfti_hash_impl_fill(&impl, ways[w]);
        assert_int_equal(sfti_crc32(&impl, 0, (const uint8_t *)"hello world", 11), 0x0d4a1185);
        assert_int_equal(sfti_crc32(&impl, 0, (const uint8_t *)"123456789", 9), 0xcbf43926);
        assert_int_equal(sfti_crc32(&impl, 0, bytes, 0), 0);
    }
}

/* Folding, tables and zlib agree at every length, from every beginning. */
static void crc_ways_agree(void **state) {
    sfti_hash_impl kits[WAYS];
    (void)state;
    for (size_t w = 0; w < WAYS; w++) sfti_hash_impl_fill(&kits[w], ways[w]);
    for (size_t len = 0; len < 400; len++) {
        uint32_t first = sfti_crc32(&kits[0], (uint32_t)(len * 77777), bytes + len % 7, len);
        for (size_t w = 1; w < WAYS; w++)
            assert_int_equal(sfti_crc32(&kits[w], (uint32_t)(len * 77777), bytes + len % 7, len),
                             first);
    }
}

/* ── The hasher ── */

static void hasher_of_a_stream(void **state) {
    sft_hasher *hasher;
    sft_hashes found;
    (void)state;
    assert_int_equal(sft_hasher_new(SFT_HASH_ALL, NULL, &hasher, NULL), SFT_OK);
    sft_hasher_update(hasher, "hello ", 6);
    sft_hasher_update(hasher, NULL, 0);
    sft_hasher_update(hasher, "world", 5);
    sft_hasher_result(hasher, &found);
    assert_int_equal(sft_hashes_asked(&found), SFT_HASH_ALL);
    assert_int_equal(sft_hashes_known(&found), SFT_HASH_ALL & ~SFT_HASH_OF_MODEL
                                      & ~SFT_HASH_BIT(SFT_HASH_AUTOV1_CIVITAI));
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_SHA256),
                        "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9");
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_BLAKE3),
                        "d74981efa70a0c880b8d8c1985d075dbcbf679b99a5f9914e5aaf96b831a9e24");
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_AUTOV2), "b94d27b993");
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_AUTOV1), "e3b0c442");
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_CRC32), "0d4a1185");
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_CRC32_CIVITAI), "85114a0d");
    assert_null(sft_hashes_get(&found, SFT_HASH_CONTENT));
    assert_null(sft_hashes_get(&found, (sft_hash_algo)SFT_HASH_COUNT));
    assert_null(sft_hashes_get(&found, (sft_hash_algo)-1));
    assert_int_equal(sizeof found, 1024);
    sft_hasher_update(hasher, "!", 1);
    sft_hasher_result(hasher, &found);
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_AUTOV2), "7509e5bda0");
    sft_hasher_free(hasher);
    sft_hasher_free(NULL);
}

static void hasher_refuses_other_bits(void **state) {
    sft_hasher *hasher = (sft_hasher *)1;
    (void)state;
    assert_int_equal(sft_hasher_new(SFT_HASH_ALL + 1, NULL, &hasher, NULL), SFT_BAD_ARGUMENT);
    assert_null(hasher);
}

/* ── Names ── */

static void lists_are_parsed(void **state) {
    uint32_t algos = 99;
    (void)state;
    assert_int_equal(sft_hash_parse(sft_span_cstr("sha256"), &algos, NULL), SFT_OK);
    assert_int_equal(algos, SFT_HASH_BIT(SFT_HASH_SHA256));
    assert_int_equal(sft_hash_parse(sft_span_cstr("crc32,content,crc32"), &algos, NULL), SFT_OK);
    assert_int_equal(algos, SFT_HASH_BIT(SFT_HASH_CRC32) | SFT_HASH_BIT(SFT_HASH_CONTENT));
    assert_int_equal(sft_hash_parse(sft_span_cstr("SHA256,AutoV2"), &algos, NULL), SFT_OK);
    assert_int_equal(algos, SFT_HASH_BIT(SFT_HASH_SHA256) | SFT_HASH_BIT(SFT_HASH_AUTOV2));
    assert_int_equal(sft_hash_parse(sft_span_cstr("all"), &algos, NULL), SFT_OK);
    assert_int_equal(algos, SFT_HASH_ALL);
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++) {
        sft_hash_algo algo = (sft_hash_algo)i;
        assert_int_equal(sft_hash_parse(sft_span_cstr(sft_hash_name(algo)), &algos, NULL), SFT_OK);
        assert_int_equal(algos, SFT_HASH_BIT(i));
        assert_true(sft_hash_digits(algo) < SFT_HASH_TEXT_SIZE);
    }
    assert_null(sft_hash_name((sft_hash_algo)SFT_HASH_COUNT));
    assert_int_equal(sft_hash_digits((sft_hash_algo)SFT_HASH_COUNT), 0);
}

static void bad_lists_are_refused(void **state) {
    static const char *const bad[] = { "", ",", "sha256,", ",sha256", "SHA-256", "sha", "sha256 " };
    uint32_t algos;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sft_error err = SFT_ERROR_INIT;
        assert_int_equal(sft_hash_parse(sft_span_cstr(bad[i]), &algos, &err), SFT_BAD_ARGUMENT);
        assert_int_equal(algos, 0);
        assert_non_null(strstr(err.message, "autov3"));
    }
}

static bool agrees(const sft_hashes *hashes, sft_hash_algo algo, const char *text) {
    sft_hash_claim claim = { algo, sft_span_cstr(text) };
    return sft_hash_agrees(hashes, &claim);
}

static void claims_are_compared(void **state) {
    sft_hashes hashes;
    sft_hasher *hasher;
    (void)state;
    assert_int_equal(sft_hasher_new(SFT_HASH_BIT(SFT_HASH_CRC32), NULL, &hasher, NULL), SFT_OK);
    sft_hasher_update(hasher, "hello world", 11);
    sft_hasher_result(hasher, &hashes);
    sft_hasher_free(hasher);
    assert_true(agrees(&hashes, SFT_HASH_CRC32, "0d4a1185"));
    assert_true(agrees(&hashes, SFT_HASH_CRC32, "0D4A1185"));
    assert_true(agrees(&hashes, SFT_HASH_CRC32, "0x0d4a1185"));
    assert_false(agrees(&hashes, SFT_HASH_CRC32, "0d4a1186"));
    assert_false(agrees(&hashes, SFT_HASH_CRC32, "0d4a118"));
    assert_false(agrees(&hashes, SFT_HASH_CRC32, "0d4a11855"));
    assert_false(agrees(&hashes, SFT_HASH_CRC32, ""));
    assert_false(agrees(&hashes, SFT_HASH_AUTOV1, ""));
    assert_false(agrees(&hashes, (sft_hash_algo)99, ""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha_of_vectors),
        cmocka_unit_test(sha_by_libcrypto),
        cmocka_unit_test(sha_side_by_side),
        cmocka_unit_test(sha_kernels_at_every_length),
        cmocka_unit_test(sha_kernels_in_any_schedule),
        cmocka_unit_test(kernels_are_chosen_by_cost),
        cmocka_unit_test(a_trial_is_made_once),
        cmocka_unit_test(queue_runs_when_full),
        cmocka_unit_test(blake3_of_vectors),
        cmocka_unit_test(blake3_goes_on),
        cmocka_unit_test(blake3_in_segments),
        cmocka_unit_test(crc_by_instructions),
        cmocka_unit_test(arm_instructions),
        cmocka_unit_test(crc_of_vectors),
        cmocka_unit_test(crc_ways_agree),
        cmocka_unit_test(hasher_of_a_stream),
        cmocka_unit_test(hasher_refuses_other_bits),
        cmocka_unit_test(lists_are_parsed),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(claims_are_compared),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
