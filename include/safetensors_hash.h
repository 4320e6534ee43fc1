/* Digests of models: of whole files, of their data, of their content.
 *
 * In what follows a file is 8 length bytes, N header bytes, and the data D to its end;
 * F[a, b) are bytes of the file, cut where it ends. All digests are lower-case hex.
 *
 *   sha256          SHA-256 of the file
 *   autov1          8 digits of SHA-256(F[1 MiB, 1 MiB + 64 KiB)): the old webui "model hash"
 *   autov1_civitai  the same; unknown for files under 2 MiB, as CivitAI has it
 *   autov2          the first 10 digits of sha256
 *   autov3          12 digits of SHA-256(D), as CivitAI, webui and their helpers count; with
 *                   a header of 16 MiB or more, of SHA-256(F[8, end)), as CivitAI does
 *   sshs_model      SHA-256(D): sd-scripts' sshs_model_hash, ModelSpec's hash_sha256
 *   sshs_legacy     8 digits: sd-scripts' sshs_legacy_hash, autov1 of the file as it would be
 *                   had it only the metadata that begin with "ss_". Computed, nothing is
 *                   rewritten. Unknown when that header would pass 1 MiB or the tensors are
 *                   not in the order of the official writer
 *   crc32           as zlib, 8 digits; crc32_civitai: its bytes reversed
 *   blake3          BLAKE3 of the file, 256 bits
 *   content         SHA-256 over, for each tensor in byte order of its name: u32 length of
 *                   the name, name, u32 length of the dtype, dtype, u32 rank, u64 dims (all
 *                   little-endian), SHA-256 of the tensor's bytes (32 bytes). The same for
 *                   one file and for any way to split it into shards
 *
 * autov3, sshs_model, sshs_legacy and content need a valid model; the others take any file.
 * However many algorithms are asked for, the bytes are read once by each thread. SHA-256 streams
 * are hashed side by side, up to sixteen as the processor gains by it: autov3 beside sha256, or
 * more files, cost less than they would alone.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md).
 * SFT_EXPERIMENTAL_HASH is defined while that is so.
 *
 * Conventions as in safetensors.h.
 */
#ifndef SFT_SAFETENSORS_HASH_H
#define SFT_SAFETENSORS_HASH_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif
#include "safetensors_codes.h"
#include "safetensors_set.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_HASH 1

/* ── Algorithms ──────────────────────────────────────────────────────────── */

/* New ones are appended. @since 0.1 */
typedef enum sft_hash_algo {
    SFT_HASH_SHA256 = 0,
    SFT_HASH_AUTOV1,
    SFT_HASH_AUTOV1_CIVITAI,
    SFT_HASH_AUTOV2,
    SFT_HASH_AUTOV3,
    SFT_HASH_SSHS_MODEL,
    SFT_HASH_SSHS_LEGACY,
    SFT_HASH_CRC32,
    SFT_HASH_CRC32_CIVITAI,
    SFT_HASH_BLAKE3,
    SFT_HASH_CONTENT
} sft_hash_algo;

#define SFT_HASH_COUNT 11
#define SFT_HASH_TEXT_SIZE 72 /* of a digest as text, with its NUL */

/* A set of algorithms is the bitwise OR of their bits. */
#define SFT_HASH_BIT(algo) (UINT32_C(1) << (algo))
#define SFT_HASH_ALL ((UINT32_C(1) << SFT_HASH_COUNT) - 1)
/* The algorithms that need a valid model. */
#define SFT_HASH_OF_MODEL                                              \
    (SFT_HASH_BIT(SFT_HASH_AUTOV3) | SFT_HASH_BIT(SFT_HASH_SSHS_MODEL) \
     | SFT_HASH_BIT(SFT_HASH_SSHS_LEGACY) | SFT_HASH_BIT(SFT_HASH_CONTENT))

/* The name of an algorithm, as above and in JSON ("sha256"); NULL for a value outside the enum.
 * Static. @since 0.1 */
SFT_API const char *sft_hash_name(sft_hash_algo algo);
/* Number of hexadecimal digits of its digests; 0 for a value outside the enum. @since 0.1 */
SFT_API size_t sft_hash_digits(sft_hash_algo algo);
/* Parse a list such as "sha256,autov3", or "all", into bits; the case of letters does not matter.
 * SFT_BAD_ARGUMENT names the word that is not an algorithm. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_hash_parse(sft_span list, uint32_t *algos, sft_error *err);

/* Digests of one file or model: which were requested, and the text of those that are known. A
 * plain value of 1 KiB, however many algorithms there are, which may be copied. Members are
 * private. Never grows. @since 0.2 */
typedef struct sft_hashes {
    uint32_t asked, known;
    char text[1016];
} sft_hashes;

/* Requests algos (bits) and knows none of them. */
#define SFT_HASHES_INIT(algos) { (algos), 0, { 0 } }

/* Bits of the algorithms requested, and of those among them that are known. @since 0.2 */
SFT_API uint32_t sft_hashes_asked(const sft_hashes *hashes);
SFT_API uint32_t sft_hashes_known(const sft_hashes *hashes);
/* A digest, NUL-terminated, valid as long as *hashes; NULL if it is not known. @since 0.2 */
SFT_API const char *sft_hashes_get(const sft_hashes *hashes, sft_hash_algo algo);

/* ── Bytes as they go by ─────────────────────────────────────────────────── */

/* Digests of a stream: for a sink that hashes what it forwards, or for a pipe. Algorithms of
 * models (SFT_HASH_OF_MODEL) stay unknown. One thread at a time. @since 0.1 */
typedef struct sft_hasher sft_hasher;
SFT_API SFT_NODISCARD sft_code sft_hasher_new(uint32_t algos, const sft_allocator *alloc,
                                              sft_hasher **out, sft_error *err);
SFT_API void sft_hasher_update(sft_hasher *hasher, const void *bytes, size_t len);
/* The digests of all bytes so far; more may follow. @since 0.1 */
SFT_API void sft_hasher_result(const sft_hasher *hasher, sft_hashes *out);
/* Free a hasher. NULL is ignored. @since 0.1 */
SFT_API void sft_hasher_free(sft_hasher *hasher);

/* ── Digests that were computed before ───────────────────────────────────── */

/* A cache of digests: a file of JSON lines, keyed by device, inode, size, and the times of the
 * last change of contents (mtime) and of anything (ctime, which nobody can set back). Cached
 * digests are not computed again, and no byte of the model is read. A change within the file
 * system's resolution of time that keeps the size goes unnoticed. The cache keeps up to 262,144
 * files and evicts those used longest ago. Memory: at most six times the size of the file. One
 * thread at a time. @since 0.1 */
typedef struct sft_hash_cache sft_hash_cache;

/* Open a cache. If the path does not exist, or the file is empty, the cache is empty. If a line
 * is damaged, the cache is empty, too, and sft_hash_cache_note says so (otherwise it is NULL).
 * The following are refused and never written to, since whoever writes a cache decides which
 * digests are believed: a file that does not begin as a cache does (SFT_EXISTS), a symbolic link
 * (SFT_IS_LINK), anything but a regular file (SFT_IO_NOT_FILE), and a file owned by another user
 * than the caller or root, or that others may write to (SFT_IO_OPEN). Of more than 256 MiB only
 * the end is read. Close with sft_hash_cache_close. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_hash_cache_open(const char *path, const sft_allocator *alloc,
                                                   sft_hash_cache **out, sft_error *err);
SFT_API const sft_error *sft_hash_cache_note(const sft_hash_cache *cache);
/* Number of files in the cache. @since 0.1 */
SFT_API size_t sft_hash_cache_count(const sft_hash_cache *cache);
/* Add to *hashes what it requests and the cache knows about the file at path in its present
 * state. Does not read the file. @since 0.1 */
SFT_API void sft_hash_cache_find(const sft_hash_cache *cache, const char *path,
                                 sft_hashes *hashes);
/* Attach a mark of the application's to the file at path in its present state: a name and a
 * time, such as when a service was asked and did not know it. A file has one mark, the last. A
 * name of SFT_HASH_MARK_SIZE bytes or more is ignored. The mark is saved with the cache, and
 * lost when the file changes or its entry is evicted. @since 0.1 */
#define SFT_HASH_MARK_SIZE 64
SFT_API void sft_hash_cache_mark(sft_hash_cache *cache, const char *path, const char *name,
                                 uint64_t time);
/* Whether the file, in its present state, has a mark of that name; *time becomes its time.
 * @since 0.1 */
SFT_API bool sft_hash_cache_marked(const sft_hash_cache *cache, const char *path,
                                   const char *name, uint64_t *time);
/* Write the cache's file, complete or not at all; nothing if nothing was added. A new file is
 * readable by its owner only. What is at the path now is checked as by sft_hash_cache_open.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_hash_cache_save(sft_hash_cache *cache, sft_error *err);
/* Close a cache without saving it. NULL is ignored. @since 0.1 */
SFT_API void sft_hash_cache_close(sft_hash_cache *cache);

/* ── Files ───────────────────────────────────────────────────────────────── */

/* Opens a file of another format as a set, as sft_import_open_set (safetensors_import.h) does.
 * @since 0.2 */
typedef sft_code (*sft_open_other_fn)(const char *path, const sft_open_options *options,
                                      sft_set **out, sft_error *err);

/* @since 0.1 */
typedef struct sft_hash_options {
    size_t size;
    const sft_open_options *open; /* for the header, NULL = defaults; with more than one thread
                                     its alloc is not used */
    sft_hash_cache *cache; /* used and added to; NULL = none */
    bool only_cached;      /* nothing is computed: known is what the cache knows */
    sft_open_other_fn open_other; /* for content; NULL: it is known of safetensors files only.
                                     @since 0.3 */
} sft_hash_options;

#define SFT_HASH_OPTIONS_INIT { sizeof(sft_hash_options), NULL, NULL, false, NULL }

/* A request: a file, or the index of a model in several files, and the algorithms (bits). Never
 * grows. @since 0.2 */
typedef struct sft_hash_request {
    const char *path;
    uint32_t algos;
} sft_hash_request;

/* A result. It belongs to the library and is valid during the call that reports it. Of a model
 * in several files only content is known; shards has the other digests of each file. Allocated
 * by the library only. @since 0.1 */
typedef struct sft_hash_result {
    size_t index; /* among the requests */
    const char *path;
    const sft_error *error;       /* NULL: the digests are there */
    const sft_error *model_error; /* why it is no valid model, or NULL; whole files' digests
                                     are there all the same */
    uint64_t bytes;               /* of the file, or of all shards */
    bool is_remembered;           /* from the cache; no data was read */
    sft_hashes hashes;
    size_t shard_count; /* 0: a single file */
    const char *const *shard_paths;
    const sft_hashes *shards;
} sft_hash_result;

/* Called on the calling thread, in the order of the requests; false stops (SFT_CANCELLED). */
typedef bool (*sft_hash_each_fn)(void *ctx, const sft_hash_result *result);

/* Hash many files, with job->threads threads and several files at a time on each, which is
 * faster even on one thread. A file that cannot be read is a result with an error, not a failure
 * of the call. SFT_IO_SHRUNK: a file shrank while it was read. Ticks the job with bytes of all
 * files; the total is what is known so far. Memory: 2 MiB a thread, and the headers of the files
 * being read. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_hash_paths(const sft_hash_request *requests, size_t count,
                                              const sft_hash_options *options,
                                              sft_hash_each_fn each, void *ctx,
                                              const sft_job *job, sft_error *err);

/* Hash one file. On failure *out knows nothing; that a file is not a model is not a failure.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_hash_path(const char *path, uint32_t algos,
                                             const sft_hash_options *options, sft_hashes *out,
                                             const sft_job *job, sft_error *err);

/* Hash an open model. All algorithms are known for a set of one file, only content for a larger
 * one. SFT_INCOMPLETE for a file of unknown size. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_hash_set(const sft_set *set, uint32_t algos, sft_hashes *out,
                                            const sft_job *job, sft_error *err);

/* ── Results as JSON (docs/json.md) ──────────────────────────────────────── */

/* A digest that the file is claimed to have; text in either case, with or without "0x". */
typedef struct sft_hash_claim {
    sft_hash_algo algo;
    sft_span text;
} sft_hash_claim;

/* Whether a digest equals a claim; false if the digest is not known. @since 0.1 */
SFT_API bool sft_hash_agrees(const sft_hashes *hashes, const sft_hash_claim *claim);

/* Write the result object of one result, as the other sft_…_json functions do; a result with an
 * error becomes {"path","ok":false,"error"}. claims become "verified"; NULL omits it. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_hash_json(const sft_hash_result *result, const char *path,
                                             const sft_hash_claim *claims, size_t claim_count,
                                             sft_sink *sink, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
