/* Reading tensors and slices of many files into memory of the caller's, by several threads: into
 * its final place, or through a few reused blocks of memory (slots) from which the caller copies
 * on, to a device for instance.
 *
 *   sft_read_plan_new     which tensors and slices go where
 *   sft_read_plan_run     destinations in memory: read everything, return when it is there
 *   sft_reader_start …    other destinations: take filled slots one after another
 *
 * A destination is a block: bytes numbered from 0, of which each part of the plan fills a piece.
 * The library never touches memory of a device and knows no framework.
 *
 * STABLE: docs/abi.md says what that promises.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_READ_H
#define SFT_SAFETENSORS_READ_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor, or a slice of it, and where its bytes go: packed, in the order of the result, from
 * byte `at` of a block. Parts of a block must not overlap (SFT_BAD_ARGUMENT). Never grows.
 * @since 0.2 */
typedef struct sft_read_part {
    const sft_file *file;     /* must stay open until the plan and its readers are freed */
    const sft_tensor *tensor; /* of that file */
    const sft_slice *slice;   /* NULL: all of it; copied by sft_read_plan_new */
    size_t block;             /* index of the destination */
    uint64_t at;
} sft_read_part;

/* A destination. Never grows. @since 0.2 */
typedef struct sft_read_block {
    void *base;     /* NULL: filled by the caller, from slots */
    uint64_t bytes; /* its size */
} sft_read_block;

/* Whether reads bypass the page cache (O_DIRECT; F_NOCACHE on macOS). @since 0.2 */
typedef enum sft_read_direct {
    SFT_READ_DIRECT_AUTO = 0, /* a file of which less than 90 % of what is wanted is in the page
                               * cache, on a disk that can, if at least 64 MiB of it is wanted */
    SFT_READ_DIRECT_NEVER = 1,
    SFT_READ_DIRECT_ALWAYS = 2 /* where the file system can; else through the cache */
} sft_read_direct;

/* @since 0.2 */
typedef struct sft_read_plan_options {
    size_t size;
    const sft_allocator *alloc; /* NULL = libc */
    /* Bytes between two pieces of a file that are read along rather than making two reads. 0 =
     * 64 KiB. What one read covers is at most max_over_read times what is wanted of it, in 1/100;
     * 0 = 125. Gaps of at most 4 KiB, the page that the disk reads anyway, are always read along
     * and not counted. */
    uint32_t max_gap;
    uint32_t max_over_read;
    sft_read_direct direct;
    uint64_t slot_bytes; /* size of a slot: a multiple of 4096, at least 64 KiB; 0 = 8 MiB, or
                          * 16 MiB for plans of more than 8 GiB */
    /* The blocks' memory was never written, all `bytes` of it: sft_read_plan_run asks the system
     * for huge pages while it fills it, as long as these are quicker than small ones. Blocks that
     * begin at a multiple of 2 MiB gain most. Linux; no difference elsewhere. */
    bool fresh;
    const sft_wait *wait; /* NULL, or who is asked while sft_reader_next waits. Must outlive the
                           * plan. @since 0.2 */
} sft_read_plan_options;

#define SFT_READ_PLAN_OPTIONS_INIT                                                            \
    { sizeof(sft_read_plan_options), NULL, 0, 0, SFT_READ_DIRECT_AUTO, 0, false, NULL }

/* What to read, sorted by file and offset. Immutable; may be used by several threads and several
 * readers at once. @since 0.2 */
typedef struct sft_read_plan sft_read_plan;

/* Make a plan. Opens and reads nothing; costs O(count log count), and O(1) for each part, also
 * for slices. The arrays may be freed afterwards. Free it with sft_read_plan_free.
 * SFT_BAD_ARGUMENT: a tensor that is not the file's, a part that leaves its block or overlaps
 * another; SFT_DATA_TRUNCATED: a part lies beyond the end of a file that was opened with
 * header_only; SFT_OUT_OF_MEMORY; errors of sft_slice_size. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_read_plan_new(const sft_read_part *parts, size_t count,
                                                 const sft_read_block *blocks,
                                                 size_t block_count,
                                                 const sft_read_plan_options *options,
                                                 sft_read_plan **out, sft_error *err);
/* Free a plan. NULL is ignored. @since 0.2 */
SFT_API void sft_read_plan_free(sft_read_plan *plan);

/* Bytes of all parts, and bytes that reads through the page cache take for them. Direct reads add
 * to these: at both ends to be aligned, and in between, as they cover more pieces each (within
 * max_gap and max_over_read). The plan may not be NULL. @since 0.2 */
SFT_API uint64_t sft_read_plan_wanted(const sft_read_plan *plan);
SFT_API uint64_t sft_read_plan_total(const sft_read_plan *plan);
/* Size of the slots that its readers take. @since 0.2 */
SFT_API size_t sft_read_plan_slot_bytes(const sft_read_plan *plan);

/* Read everything into blocks that all have a base (else SFT_BAD_ARGUMENT), with job->threads
 * threads (at least 4 if that is 0 and files are read past the page cache), the caller's among
 * them; they end before the call does. Memory that was never touched gets its pages from these
 * threads (options.fresh). Ticks the job with bytes. On failure, the contents
 * of the blocks are unspecified; the error names the tensor and the byte of the file.
 * SFT_IO_SHRUNK: the file was cut short since it was opened. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_read_plan_run(const sft_read_plan *plan, const sft_job *job,
                                                 sft_error *err);

/* ── Through slots ───────────────────────────────────────────────────────── */

/* Threads that fill slots with what a plan wants. One thread at a time may call its functions.
 *
 *   start, add slots → next → copy from the slot → give_back → next … → next says done → close
 *
 * A slot belongs to the reader from sft_reader_add or sft_reader_give_back until sft_reader_next
 * returns it, and to the caller after that. @since 0.2 */
typedef struct sft_reader sft_reader;

/* Bytes of a slot to copy to a block; parts that lie in a block and in the slot at the same
 * distance are one copy. Never grows. @since 0.2 */
typedef struct sft_read_copy {
    size_t block;
    uint64_t at; /* in the block */
    size_t from; /* in the slot; equal to `at` modulo 64 */
    size_t len;
} sft_read_copy;

#define SFT_SLOT_NONE (SIZE_MAX - 1)
#define SFT_SLOT_END SIZE_MAX

/* A filled slot. Its copies stay valid until it is given back. Between two parts that are one
 * copy lie bytes that no part wants; their content is unspecified but never that of memory
 * outside the slot. Never grows. @since 0.2 */
typedef struct sft_filled {
    void *memory; /* as added */
    size_t slot;  /* its number, in the order of sft_reader_add; or SFT_SLOT_NONE, SFT_SLOT_END */
    const sft_read_copy *copies;
    size_t copy_count;
} sft_filled;

/* A reader of that many threads; 0 = as many as processors, at least 4 and at most 12. A thread
 * starts when there is a slot for it. Threads run with signals blocked and never call anything of
 * the caller's but the read of a file's source, which must be thread-safe; if none can be started,
 * sft_reader_next reads. A source of unknown size is read by one thread. Blocks with a base are
 * SFT_BAD_ARGUMENT. Close with sft_reader_close, before the plan is freed. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_reader_start(const sft_read_plan *plan, uint32_t threads,
                                                sft_reader **out, sft_error *err);

/* Add a slot: sft_read_plan_slot_bytes bytes, aligned to 4096 (else SFT_BAD_ARGUMENT). Threads
 * that wait use it at once. Slots may be added at any time; the caller frees their memory, after
 * sft_reader_close. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_reader_add(sft_reader *reader, void *memory, sft_error *err);

/* Whether another slot would be used at once: bytes are left to be read, fewer slots are being
 * filled than there are threads, and no slot is free. @since 0.2 */
SFT_API bool sft_reader_starved(const sft_reader *reader);

/* Wait for a filled slot, at most `milliseconds` (-1: without limit). Slots come in the order in
 * which they are full, not in that of the plan. out->slot says SFT_SLOT_NONE if the time is over,
 * options.wait ended it, or nothing is read because the caller holds every
 * slot (or has added none), and SFT_SLOT_END once everything was handed out.
 * The first error of any thread is returned by this and every later call; no slot that was filled
 * after it is handed out. It names the tensor and the byte of the file. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_reader_next(sft_reader *reader, int32_t milliseconds,
                                               sft_filled *out, sft_error *err);

/* Give a slot back once nothing reads it any more, by the number that sft_reader_next said.
 * @since 0.2 */
SFT_API void sft_reader_give_back(sft_reader *reader, size_t slot);

/* Stop and join the threads, at the latest when their current read ends, and free the reader.
 * Afterwards no memory of a slot is touched. NULL is allowed. In a child of fork() only this may be
 * done with a reader of the parent's (else SFT_BAD_ARGUMENT). @since 0.2 */
SFT_API void sft_reader_close(sft_reader *reader);

#ifdef __cplusplus
}
#endif
#endif
