/* What the hashing sources share: digests over bytes, the processor's help, one file being
 * read for all that is asked of it. */
#ifndef SFTI_HASH_H
#define SFTI_HASH_H

#include "base/crc32.h"
#include "os/os.h"
#include "safetensors_hash.h"

/* ── What the processor is best at ── */

typedef struct sfti_hash_impl sfti_hash_impl;

/* `blocks` blocks of 64 bytes of each of count streams (1 to those of its kernel). */
#define SFTI_SHA_LANES 16
typedef void (*sfti_sha_blocks_fn)(const sfti_hash_impl *impl, uint32_t *const *states,
                                   const uint8_t *const *data, size_t blocks, size_t count);

/* A way to hash several streams at once. cost is the time of one block of each of them, and only
 * its ratio to the other kernels' costs counts. */
typedef struct sfti_sha_kernel {
    sfti_sha_blocks_fn blocks;
    uint32_t streams, cost;
} sfti_sha_kernel;

enum { SFTI_SHA_ONE, SFTI_SHA_TWO, SFTI_SHA_FOUR, SFTI_SHA_EIGHT, SFTI_SHA_SIXTEEN,
       SFTI_SHA_KERNELS };

/* Chaining values of count inputs (1 to impl->lanes) of `blocks` blocks each, stride
 * bytes apart, one behind the other into out. counter grows by step from input to input. */
typedef struct sfti_blake3_call {
    const uint8_t *in;
    size_t stride, blocks, count;
    uint64_t counter, step;
    uint32_t flags, first, last; /* of every, the first, the last block */
    uint8_t *out;
} sfti_blake3_call;
typedef void (*sfti_blake3_lanes_fn)(const sfti_blake3_call *call);

/* Variants a test can disable. */
enum {
    SFTI_HASH_NO_SHA = 1,    /* SHA instructions */
    SFTI_HASH_NO_CRYPTO = 2, /* libcrypto */
    SFTI_HASH_NO_WIDE = 4,   /* 16 lanes */
    SFTI_HASH_NO_LANES = 8,  /* lanes at all */
    SFTI_HASH_NO_CLMUL = 16, /* carry-less multiplication, CRC instructions */
    SFTI_HASH_NO_ZLIB = 32
};

struct sfti_hash_impl {
    sfti_sha_blocks_fn sha_blocks; /* of one stream */
    sfti_sha_kernel sha[SFTI_SHA_KERNELS]; /* blocks NULL: not on this processor */
    uint8_t sha_for[SFTI_SHA_LANES + 1];   /* the kernel for so many streams */
    size_t sha_streams;                    /* as many as are hashed fastest */
    os_function crypto_update; /* SHA256_Update, if libcrypto is in use */
    sfti_blake3_lanes_fn blake3_lanes;
    size_t lanes;
    bool zlib;
    sfti_crc32_table crc_table;
};

void sfti_hash_impl_fill(sfti_hash_impl *impl, unsigned forbid);

/* Fills sha, with costs as measured on a few processors, and what follows from them. */
void sfti_sha_kernels_fill(sfti_hash_impl *impl, unsigned forbid);
/* Fills sha_for and sha_streams from the costs. */
void sfti_sha_choose(sfti_hash_impl *impl);
/* Chooses by costs measured here: at most 10 ms, once per process. impl forbids nothing. */
void sfti_sha_trial(sfti_hash_impl *impl);

/* NULL if the processor or the compiler does not support it. */
sfti_sha_blocks_fn sfti_sha_blocks_x86(void);
sfti_sha_blocks_fn sfti_sha_blocks_wide(size_t lanes); /* 8 or 16 */
sfti_sha_blocks_fn sfti_sha_blocks_arm(void);
sfti_sha_blocks_fn sfti_sha_blocks_crypto(sfti_hash_impl *impl);
void sfti_sha_blocks_plain(const sfti_hash_impl *impl, uint32_t *const *states,
                           const uint8_t *const *data, size_t blocks, size_t count);
sfti_blake3_lanes_fn sfti_blake3_lanes_x86(bool wide, size_t *lanes);
sfti_blake3_lanes_fn sfti_blake3_lanes_neon(size_t *lanes);
void sfti_blake3_lanes_plain(const sfti_blake3_call *call);

/* ── SHA-256 ── */

extern const uint32_t sfti_sha256_k[64]; /* of the rounds */

typedef struct sfti_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t tail[64];
} sfti_sha256;

typedef struct sfti_sha_job {
    sfti_sha256 *sum;
    const uint8_t *data;
    size_t len;
} sfti_sha_job;

void sfti_sha256_begin(sfti_sha256 *sum);
/* Runs all jobs, several at a time; each has its own sum. Changes the jobs. */
void sfti_sha256_run(const sfti_hash_impl *impl, sfti_sha_job *jobs, size_t count);
void sfti_sha256_update(const sfti_hash_impl *impl, sfti_sha256 *sum, const void *data,
                        size_t len);
/* The sum can be updated further. */
void sfti_sha256_end(const sfti_hash_impl *impl, const sfti_sha256 *sum, uint8_t out[32]);

/* ── CRC-32, BLAKE3 ── */

/* As zlib's crc32: begin with 0. */
uint32_t sfti_crc32(const sfti_hash_impl *impl, uint32_t crc, const uint8_t *data, size_t len);

#define SFTI_BLAKE3_CHUNK 1024
#define SFTI_BLAKE3_DEPTH 55 /* 2^54 chunks of 1 KiB hold 2^64 bytes */

typedef struct sfti_blake3 {
    uint64_t begin;  /* chunks before the first byte */
    uint64_t chunks; /* before the current one */
    uint32_t cv[8];  /* of the current chunk */
    uint8_t block[64];
    uint32_t block_len, blocks; /* blocks of it that are in cv */
    uint32_t depth;
    uint8_t stack[SFTI_BLAKE3_DEPTH][32];
} sfti_blake3;

/* chunk: 0, or where the segment begins that this is the sum of. */
void sfti_blake3_begin(sfti_blake3 *sum, uint64_t chunk);
void sfti_blake3_update(const sfti_hash_impl *impl, sfti_blake3 *sum, const uint8_t *data,
                        size_t len);
void sfti_blake3_end(const sfti_blake3 *sum, uint8_t out[32]);

/* BLAKE3 of one input by several threads, each of which feeds whole segments. */
typedef struct sfti_blake3_segments {
    uint64_t bytes; /* of a segment: a power of two, at least 2 KiB */
    size_t count;   /* whole ones; at least one, and more input than one */
    uint8_t (*values)[32];
    sfti_blake3 rest; /* of the bytes after the last whole one */
} sfti_blake3_segments;

/* Feeds bytes from offset `at` on to a sum that began at a segment, and keeps the value of every
 * segment that ends. */
void sfti_segments_feed(sfti_blake3_segments *segments, const sfti_hash_impl *impl,
                        sfti_blake3 *sum, uint64_t at, const uint8_t *data, size_t len);
/* The digest, when all values and the rest are there. */
void sfti_segments_end(const sfti_blake3_segments *segments, uint8_t out[32]);

/* ── SHA-256 streams waiting to be run together ── */

#define SFTI_QUEUE_MOST 32

typedef struct sfti_sha_queue {
    const sfti_hash_impl *impl;
    size_t count;
    sfti_sha_job jobs[SFTI_QUEUE_MOST];
    uint8_t *ends[SFTI_QUEUE_MOST]; /* where the digest of a sum that ends goes, or NULL */
    sfti_sha256 *sums[SFTI_QUEUE_MOST];
    sfti_sha256 own[SFTI_QUEUE_MOST]; /* sums that begin and end in one job */
} sfti_sha_queue;

/* sum NULL: one of the queue's own, from its beginning. A sum waits at most once. */
void sfti_queue_put(sfti_sha_queue *queue, sfti_sha256 *sum, const uint8_t *data, size_t len,
                    uint8_t *end);
void sfti_queue_run(sfti_sha_queue *queue);

/* ── One file, read from its front to its end ── */

/* SHA-256 streams over a part of the file. */
enum { SFTI_OF_FILE, SFTI_OF_DATA, SFTI_OF_AUTOV3, SFTI_OF_AUTOV1, SFTI_OF_LEGACY, SFTI_PARTS };

typedef struct sfti_part {
    bool on;
    uint64_t begin, end;
    sfti_sha256 sum;
} sfti_part;

typedef struct sfti_pass {
    const sfti_hash_impl *impl;
    uint32_t algos;
    uint64_t at, size; /* SFT_SIZE_UNKNOWN: a stream */
    sfti_part parts[SFTI_PARTS];
    bool legacy_is_autov1, crc_on, blake3_on;
    uint32_t crc;
    sfti_blake3 blake3;
    uint64_t blake3_begin, blake3_end;
    sfti_blake3_segments *segments; /* NULL: of the whole file */
    /* content: digests of the tensors, in order of the data */
    const sft_file *file;
    size_t tensor;
    uint8_t (*digests)[32];
    sfti_sha256 open[2]; /* of the tensor that continues in the next piece, alternating */
    unsigned turn;
} sfti_pass;

/* file NULL: no model, and what needs one stays unknown. digests: 32 bytes for each tensor
 * if content is asked for. Fails only when memory (of alloc) runs out. */
sft_code sfti_pass_begin(sfti_pass *pass, const sfti_hash_impl *impl, uint32_t algos,
                            uint64_t size, const sft_file *file, uint8_t (*digests)[32],
                            const sft_allocator *alloc, sft_error *err);
/* BLAKE3 of these bytes only, which begin at a segment. They are all that is asked of this pass. */
void sfti_pass_share(sfti_pass *pass, sfti_blake3_segments *segments, uint64_t begin,
                     uint64_t end);
/* The next bytes needed, at most `most`; 0 if there are none. */
size_t sfti_pass_next(const sfti_pass *pass, size_t most, uint64_t *at);
/* The bytes at offset `at`, which sfti_pass_next gave (in a stream: where the last piece ended).
 * They must stay valid until the queue has run, and it must run before the next piece. */
void sfti_pass_feed(sfti_pass *pass, sfti_sha_queue *queue, uint64_t at,
                       const uint8_t *data, size_t len);
/* Every hash but the content hash and BLAKE3 in segments, of which the last pass keeps the rest. */
void sfti_pass_result(const sfti_pass *pass, sft_hashes *out);

/* The content hash of a set from its tensors' digests, in the set's order. */
sft_code sfti_hash_content(const sfti_hash_impl *impl, const sft_set *set, const sft_file *file,
                           uint8_t (*digests)[32], const sft_allocator *alloc, sft_hashes *out,
                           sft_error *err);

/* ── Digests as text ── */

/* Where the text of a digest goes, with its NUL; it is known from now on. */
char *sfti_hashes_add(sft_hashes *hashes, sft_hash_algo algo);
/* bytes: as many as it has digits, halved. */
void sfti_hashes_put(sft_hashes *hashes, sft_hash_algo algo, const uint8_t *bytes);
/* Copies the hashes of `from` that `to` was asked for and does not have yet. */
void sfti_hashes_merge(sft_hashes *to, const sft_hashes *from);

/* ── The cache ── */

typedef struct sfti_hash_key {
    uint64_t device, inode, size, mtime, ctime; /* ctime: nobody can set it back */
} sfti_hash_key;

sfti_hash_key sfti_hash_key_of(const os_info *info);

/* Add what is remembered and asked for. */
void sfti_hash_cache_get(sft_hash_cache *cache, const sfti_hash_key *key, sft_hashes *hashes);
/* If memory runs out, the hashes are just not cached. */
void sfti_hash_cache_put(sft_hash_cache *cache, const sfti_hash_key *key,
                         const sft_hashes *hashes);

#endif
