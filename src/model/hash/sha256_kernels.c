/* Which kernel hashes how many streams. */
#include "hash/hash.h"

#define TRIAL_NS UINT64_C(10000000)
#define TRIAL_ROUNDS 64
#define TRIAL_BLOCKS 64 /* of each stream in a round */

/* Costs before a trial, in hundredths of what one block costs with SHA instructions; measured on
 * Zen 5. Without them libcrypto or plain C hashes one stream. */
static const uint32_t kernel_costs[SFTI_SHA_KERNELS] = { 100, 131, 218, 840, 516 };
enum { KERNEL_CRYPTO_COST = 290, KERNEL_PLAIN_COST = 525 };

static void kernel_set(sfti_hash_impl *impl, size_t i, sfti_sha_blocks_fn blocks, uint32_t cost) {
    impl->sha[i] = (sfti_sha_kernel){ blocks, UINT32_C(1) << i, cost };
}

void sfti_sha_kernels_fill(sfti_hash_impl *impl, unsigned forbid) {
    unsigned no_eight = SFTI_HASH_NO_LANES, no_sixteen = SFTI_HASH_NO_LANES | SFTI_HASH_NO_WIDE;
    sfti_sha_blocks_fn sha = forbid & SFTI_HASH_NO_SHA ? NULL : sfti_sha_blocks_x86();
    if (!sha && !(forbid & SFTI_HASH_NO_SHA)) sha = sfti_sha_blocks_arm();
    sfti_sha_blocks_fn eight = forbid & no_eight ? NULL : sfti_sha_blocks_wide(8);
    sfti_sha_blocks_fn sixteen = forbid & no_sixteen ? NULL : sfti_sha_blocks_wide(16);
    uint32_t cost = kernel_costs[SFTI_SHA_ONE];
    kernel_set(impl, SFTI_SHA_TWO, sha, kernel_costs[SFTI_SHA_TWO]);
    kernel_set(impl, SFTI_SHA_FOUR, sha, kernel_costs[SFTI_SHA_FOUR]);
    kernel_set(impl, SFTI_SHA_EIGHT, eight, kernel_costs[SFTI_SHA_EIGHT]);
    kernel_set(impl, SFTI_SHA_SIXTEEN, sixteen, kernel_costs[SFTI_SHA_SIXTEEN]);
    if (!sha && !(forbid & SFTI_HASH_NO_CRYPTO)) {
        sha = sfti_sha_blocks_crypto(impl);
        cost = KERNEL_CRYPTO_COST;
    }
    if (!sha) {
        sha = sfti_sha_blocks_plain;
        cost = KERNEL_PLAIN_COST;
    }
    impl->sha_blocks = sha;
    kernel_set(impl, SFTI_SHA_ONE, sha, cost);
    sfti_sha_choose(impl);
}

/* Whether kernel `a` hashes `count` streams faster than `b` does `other`. */
static bool kernel_is_faster(const sfti_sha_kernel *a, size_t count, const sfti_sha_kernel *b,
                             size_t other) {
    uint64_t done = count < a->streams ? count : a->streams;
    uint64_t done_other = other < b->streams ? other : b->streams;
    return done * b->cost > done_other * a->cost;
}

void sfti_sha_choose(sfti_hash_impl *impl) {
    impl->sha_for[0] = SFTI_SHA_ONE;
    impl->sha_streams = 1;
    for (size_t n = 1; n <= SFTI_SHA_LANES; n++) {
        size_t best = SFTI_SHA_ONE, most = impl->sha_streams;
        for (size_t i = SFTI_SHA_TWO; i < SFTI_SHA_KERNELS; i++)
            if (impl->sha[i].blocks && kernel_is_faster(&impl->sha[i], n, &impl->sha[best], n))
                best = i;
        impl->sha_for[n] = (uint8_t)best;
        if (kernel_is_faster(&impl->sha[best], n, &impl->sha[impl->sha_for[most]], most))
            impl->sha_streams = n;
    }
}

/* ── The trial ── */

static uint64_t trial_run(const sfti_hash_impl *impl, const sfti_sha_kernel *kernel) {
    static uint8_t zeros[64 * TRIAL_BLOCKS]; /* never written; const, it would be in the file */
    uint32_t words[SFTI_SHA_LANES][8] = { { 0 } }, *states[SFTI_SHA_LANES] = { NULL };
    const uint8_t *data[SFTI_SHA_LANES] = { NULL };
    for (size_t i = 0; i < kernel->streams; i++) {
        states[i] = words[i];
        data[i] = zeros;
    }
    uint64_t begin = sfti_os_now_ns();
    kernel->blocks(impl, states, data, TRIAL_BLOCKS, kernel->streams);
    return sfti_os_now_ns() - begin;
}

/* The kernels take turns, so that a change of the clock's rate meets all of them; the best time
 * counts, since whatever else the machine does makes times longer. */
static void trial_measure(const sfti_hash_impl *impl, uint32_t *costs) {
    uint64_t begin = sfti_os_now_ns();
    for (int round = 0; round < TRIAL_ROUNDS; round++) {
        if (round > 0 && sfti_os_now_ns() - begin >= TRIAL_NS) return;
        for (size_t i = 0; i < SFTI_SHA_KERNELS; i++) {
            if (!impl->sha[i].blocks) continue;
            uint64_t time = trial_run(impl, &impl->sha[i]);
            if (time == 0) time = 1; /* a coarse clock */
            if (time > UINT32_MAX) time = UINT32_MAX;
            if (round == 0 || time < costs[i]) costs[i] = (uint32_t)time;
        }
    }
}

void sfti_sha_trial(sfti_hash_impl *impl) {
    /* 1. the costs, 2. that they are there: who sees 2 sees 1. Two threads may measure at once. */
    static _Atomic uint32_t trial_costs[SFTI_SHA_KERNELS];
    static _Atomic bool trial_is_over;
    uint32_t costs[SFTI_SHA_KERNELS] = { 0 };
    if (!impl->sha[SFTI_SHA_EIGHT].blocks && !impl->sha[SFTI_SHA_SIXTEEN].blocks) return;
    if (!trial_is_over) {
        trial_measure(impl, costs);
        for (size_t i = 0; i < SFTI_SHA_KERNELS; i++) trial_costs[i] = costs[i];
        trial_is_over = true;
    }
    for (size_t i = 0; i < SFTI_SHA_KERNELS; i++) impl->sha[i].cost = trial_costs[i];
    sfti_sha_choose(impl);
}
