/* What few programs need of sources and sinks: strided memory, announcements of reads, permission
 * bits, two sinks as one, files that stand elsewhere than in the system's folders, and what
 * interrupted writes leave behind.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_IO is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_IO_H
#define SFT_SAFETENSORS_IO_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_IO 1

/* ── Sources ────────────────────────────────────────────────────────────── */

/* Tell a source which bytes will be read soon, in the order of reading. Does nothing if its table
 * lacks expect. @since 0.2 */
SFT_API void sft_source_expect(const sft_source *source, const sft_run *runs, size_t count);

/* Permission bits of the file that the bytes come from, when it was opened; of several files the
 * common ones, 0600 if there are none. 0: not known (memory, a pipe, a server), or the table lacks
 * mode. For sft_sink_limit_mode. Thread-safe. @since 0.3 */
SFT_API uint32_t sft_source_mode(const sft_source *source);

/* A source that packs a strided tensor while it is read, so that no packed copy of the whole is
 * needed. Element (i, j, …) lies at base + i * strides[0] + j * strides[1] + …; strides are
 * bytes and may be negative or 0. Elements are stored as in a file: little-endian, whole bytes
 * (F4 and F6 are SFT_BAD_ARGUMENT). The memory must stay unchanged while the source is used;
 * shape and strides are copied. For sft_writer_copy and sft_part. Thread-safe. Close it with
 * sft_source_close. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_source_strided(sft_dtype dtype, const uint64_t *shape,
                                                  uint32_t rank, const void *base,
                                                  const int64_t *strides,
                                                  const sft_allocator *alloc, sft_source *out,
                                                  sft_error *err);

/* ── Own files: not the system's ─────────────────────────────────────────── */

/* An entry of a folder. Valid during the call. Never grows. @since 0.2 */
typedef struct sft_listed {
    const char *name; /* its last part */
    bool folder;
    uint64_t bytes;   /* SFT_SIZE_UNKNOWN if it is not told */
} sft_listed;

/* False ends the listing. @since 0.2 */
typedef bool (*sft_listed_fn)(void *ctx, const sft_listed *entry);

/* The functions of files that stand elsewhere than in the system's folders: on a server, in an
 * archive (safetensors_remote.h has those of URLs). See sft_source_vtable for tables. All may be
 * called by several threads at once. @since 0.2 */
typedef struct sft_files_vtable {
    size_t size; /* sizeof(sft_files_vtable) */
    /* Whether these functions serve this path, rather than the system: told by its first bytes.
     * Costs nothing. Required. */
    bool (*claims)(void *ctx, const char *path);
    /* A source of known size, thread-safe, that the caller closes. beneath: as in
     * sft_open_options. SFT_NOT_FOUND if there is none. Required. */
    sft_code (*open)(void *ctx, const char *path, const char *beneath, sft_source *out,
                     sft_error *err);
    /* These will be opened next: fetch what opening needs, several at once. Failures are told by
     * open. */
    void (*expect)(void *ctx, const char *const *paths, size_t count, const char *beneath);
    /* What lies directly in a folder, whose path may end in a slash. SFT_NOT_FOUND if there is no
     * such folder, SFT_IO_NOT_FILE if the path is a file's. */
    sft_code (*list)(void *ctx, const char *folder, sft_listed_fn each, void *each_ctx,
                     sft_error *err);
} sft_files_vtable;

/* Such files. Never grows; its table does. @since 0.2 */
struct sft_files {
    void *ctx;
    const sft_files_vtable *vtable;
};

/* ── Opening files of a folder that was listed ───────────────────────────── */

/* Says in sft_open_options that the caller listed the folder, `seconds` after 1970, and saw there
 * this file, not a link, and no journal. sft_open then saves its look for a journal where the file
 * was last changed a day or more before that time. @since 0.3 */
#define SFT_OPEN_LISTED(options, seconds) ((void)((options)->reserved = (seconds)))

/* sft_slice_read, except that a slice of several runs of a local file opened with SFT_READ is
 * copied from a map, where the system allows one: many times as fast for short runs. The file
 * keeps the map until it is closed; on Windows nobody can shorten it as long. A file that is too
 * short by then is an error, as always; one that is truncated during the copy raises SIGBUS, as
 * with SFT_MAP. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_slice_read_mapped(const sft_file *file,
                                                     const sft_tensor *tensor,
                                                     const sft_slice *slice, void *dst, size_t len,
                                                     sft_error *err);

/* ── Sinks ──────────────────────────────────────────────────────────────── */

/* Let nobody but the owner do with the result what mode does not allow: what a private file holds
 * stays private. mode is that of what is written (sft_source_mode); 0 limits nothing. sft_copy,
 * sft_writer_copy, sft_save_parts and all that is written from open models and imports does this by
 * itself. Nothing happens, and SFT_OK is returned, if the table lacks limit_mode or the file system
 * has no modes. Call it before sft_sink_finish. SFT_IO_WRITE if the mode cannot be set: then a sink
 * of a path publishes nothing. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_sink_limit_mode(const sft_sink *sink, uint32_t mode,
                                                   sft_error *err);

/* A forward sink that writes the same bytes to two others. It owns both from here on, even if
 * this call fails. sft_sink_finish finishes first, then second. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_sink_tee(sft_sink first, sft_sink second,
                                            const sft_allocator *alloc, sft_sink *out,
                                            sft_error *err);

/* Remove the hidden files that interrupted sft_sink_path calls left in a folder: regular files
 * named .NAME.sft-XXXXXX. each, which may be NULL, is called with each name; if it returns false
 * the call ends with SFT_CANCELLED. With dry_run nothing is removed. *count, which may be NULL,
 * is the number of such files. Must not run while anything writes in that folder. @since 0.1 */
typedef bool (*sft_sweep_fn)(void *ctx, const char *name);
SFT_API SFT_NODISCARD sft_code sft_sweep(const char *folder, bool dry_run, sft_sweep_fn each,
                                         void *ctx, size_t *count, sft_error *err);

/* Check whether a file is in the middle of an edit: SFT_EDIT_INTERRUPTED as from sft_open, for
 * programs that read its bytes without opening it as a model. Cost: three lookups of names.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_check(const char *path, const sft_allocator *alloc,
                                              sft_error *err);

/* ── For the whole process ───────────────────────────────────────────────── */

/* Deprecated, for two parts of a program would take them from one another; 0.2 had them in
 * safetensors.h. Set them before other threads use the library. */

/* Words for hints, where none are given (sft_error_text_as, sft_sink_vtable.words); NULL for none.
 * @since 0.2 */
SFT_API void sft_on_hint(sft_words_fn words);

/* Who is asked whether to go on waiting (sft_wait), where options give none: also for descriptors
 * that were not opened with options and for writes to pipes. NULL for none. @since 0.2 */
SFT_API void sft_on_wait(bool (*go_on)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
