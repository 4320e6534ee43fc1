/* libsafetensors: open, check, slice and write .safetensors files.
 *
 * The format: 8 bytes of header length N (little-endian), N bytes of a JSON
 * object, then the tensors' bytes; see docs/format.md for every rule.
 *
 * Conventions, true of every function unless it says otherwise:
 *   - Functions that can fail return an sft_code: SFT_OK (0) or what went wrong.
 *     The last argument is the caller's sft_error, filled on failure only;
 *     NULL is allowed everywhere. Results are set to NULL or zero on failure.
 *   - Strings from a file are spans (pointer and length): they may hold NUL.
 *   - Option structs begin with their own size. Fill them from the _INIT macro,
 *     then set what differs; NULL means all defaults. They are read during the call
 *     only, and options within options are pointers, NULL for their defaults too.
 *     A program built with an older header may be shorter there (what it lacks has its
 *     default), one built with a newer header longer: what this library does not know
 *     must be zero then, else SFT_BAD_ARGUMENT. Clear the whole struct, or use _INIT.
 *   - Nothing here prints, exits, aborts, reads the environment, handles signals
 *     or keeps global state.
 *   - An open sft_file is immutable: any number of threads may use it at once.
 *     A writer, a sink, a run iterator belong to one thread at a time.
 *   - All sizes and offsets are bytes in uint64_t on every host.
 */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(SFT_SHARED)
#ifdef SFT_BUILDING
#define SFT_API __declspec(dllexport)
#else
#define SFT_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define SFT_API __attribute__((visibility("default")))
#else
#define SFT_API
#endif

#if defined(__GNUC__)
#define SFT_NODISCARD __attribute__((warn_unused_result))
#else
#define SFT_NODISCARD
#endif

/* ── Version ─────────────────────────────────────────────────────────────── */

#define SFT_VERSION_MAJOR 0
#define SFT_VERSION_MINOR 2
#define SFT_VERSION_PATCH 0
#define SFT_VERSION_STRING "0.2.0"

/* Version of the library that is running, "major.minor.patch". Static.
 * @since 0.1 */
SFT_API const char *sft_version(void);

/* One line per fact of how the library was built: compiler, optional libraries,
 * threads, limits. Static, ends with a newline. @since 0.1 */
SFT_API const char *sft_build_info(void);

/* ── Spans ───────────────────────────────────────────────────────────────── */

/* Bytes that belong to something else, passed by value. data may be NULL when
 * len is 0. Not NUL-terminated. @since 0.1 */
typedef struct sft_span {
    const char *data;
    size_t len;
} sft_span;

/* The span of a C string, without its NUL; NULL gives the empty span. @since 0.1 */
SFT_API sft_span sft_span_cstr(const char *text);

/* Same length and same bytes. @since 0.1 */
SFT_API bool sft_span_equal(sft_span a, sft_span b);

/* ── Errors ──────────────────────────────────────────────────────────────── */

/* What kind of failure a code is; exit statuses and exceptions follow from it. */
typedef enum sft_class {
    SFT_CLASS_NONE = 0,
    SFT_CLASS_INVALID = 1,     /* the bytes break a rule of the format */
    SFT_CLASS_UNSUPPORTED = 2, /* well-formed, but nothing we read (another format) */
    SFT_CLASS_LIMIT = 3,       /* over a limit of the options, memory or host */
    SFT_CLASS_IO = 4,          /* the operating system said no; see os_errno */
    SFT_CLASS_USAGE = 5,       /* the call's arguments are wrong */
    SFT_CLASS_STATE = 6,       /* right arguments at the wrong moment */
    SFT_CLASS_CANCELLED = 7    /* the caller's own tick or callback said stop */
} sft_class;

/* Numbers are fixed for ever; docs/errors.md has a row for each. The hundreds are
 * families: 1xx file contents, 2xx other formats, 3xx limits, 4xx system,
 * 5xx usage, 6xx state, 7xx cancelled. */
typedef enum sft_code {
    SFT_OK = 0,

    /* framing */
    SFT_HEADER_TOO_SMALL = 100,
    SFT_HEADER_TOO_LARGE = 101,
    SFT_HEADER_TRUNCATED = 102,
    SFT_HEADER_UTF8 = 103,
    /* JSON grammar */
    SFT_JSON_SYNTAX = 110,
    SFT_JSON_STRING = 111,
    SFT_JSON_NUMBER = 112,
    SFT_JSON_DEPTH = 113,
    SFT_JSON_TRAILING = 114,
    /* shape of the header */
    SFT_HEADER_NOT_OBJECT = 120,
    SFT_ENTRY_TYPE = 121,
    SFT_FIELD_MISSING = 122,
    SFT_FIELD_DUPLICATE = 123,
    SFT_DTYPE_TYPE = 124,
    SFT_DTYPE_UNKNOWN = 125,
    SFT_SHAPE_TYPE = 126,
    SFT_OFFSETS_TYPE = 127,
    SFT_METADATA_TYPE = 128,
    SFT_METADATA_VALUE = 129,
    SFT_METADATA_DUPLICATE = 130,
    SFT_LEGACY_LAYOUT = 131,
    /* refused from level default on */
    SFT_TENSOR_DUPLICATE = 140,
    SFT_METADATA_KEY_DUPLICATE = 141,
    SFT_ENTRY_NOT_OBJECT = 142,
    SFT_DTYPE_NOT_STRING = 143,
    SFT_RANK_TOO_LARGE = 144,
    /* refused at level strict only */
    SFT_STRICT_FIRST_BYTE = 150,
    SFT_STRICT_PADDING = 151,
    SFT_STRICT_FIELD = 152,
    SFT_STRICT_NAME = 153,
    SFT_STRICT_METADATA = 154,
    /* offsets and sizes */
    SFT_OFFSETS_REVERSED = 160,
    SFT_OFFSETS_GAP = 161,
    SFT_OFFSETS_OVERLAP = 162,
    SFT_SIZE_OVERFLOW = 163,
    SFT_SIZE_PARTIAL_BYTE = 164,
    SFT_SIZE_MISMATCH = 165,
    SFT_DATA_TRUNCATED = 166,
    SFT_DATA_TRAILING = 167,
    /* one model in many files */
    SFT_INDEX_TYPE = 180,
    SFT_INDEX_PATH = 181,
    SFT_INDEX_SHARD_MISSING = 182,
    SFT_INDEX_TENSOR_MISSING = 183,
    SFT_INDEX_TENSOR_MISPLACED = 184,
    SFT_INDEX_TENSOR_DUPLICATE = 185,
    /* datasets: safetensors_dataset.h */
    SFT_MANIFEST_MISSING = 190,
    SFT_MANIFEST_TYPE = 191,
    SFT_DATASET_SHARD = 192,
    SFT_DATASET_DUPLICATE = 193,
    SFT_DATASET_RECEIPT = 194,

    /* recognised as something else */
    SFT_FOUND_GIT_LFS = 200,
    SFT_FOUND_XET = 201,
    SFT_FOUND_HTML = 202,
    SFT_FOUND_ZIP = 203,
    SFT_FOUND_TORCH = 204,
    SFT_FOUND_PICKLE = 205,
    SFT_FOUND_GGUF = 206,
    SFT_FOUND_HDF5 = 207,
    SFT_FOUND_GZIP = 208,
    SFT_FOUND_ZSTD = 209,
    SFT_FOUND_NPY = 210,
    SFT_FOUND_INDEX = 211,

    SFT_OUT_OF_MEMORY = 300,
    SFT_ADDRESS_SPACE = 301,
    SFT_TOO_MANY_TENSORS = 302,
    SFT_TOO_MANY_METADATA = 303,
    SFT_NAME_TOO_LONG = 304,
    SFT_FILE_TOO_LARGE = 305,

    SFT_NOT_FOUND = 400,
    SFT_IO_OPEN = 401,
    SFT_IO_READ = 402,
    SFT_IO_WRITE = 403,
    SFT_IO_SYNC = 404,
    SFT_IO_PUBLISH = 405,
    SFT_IO_MAP = 406,
    SFT_IO_SHRUNK = 407,
    SFT_IO_NOT_FILE = 408,

    SFT_BAD_ARGUMENT = 500,
    SFT_TENSOR_NOT_FOUND = 501,
    SFT_BUFFER_SIZE = 502,
    SFT_NOT_MAPPED = 503,
    SFT_SLICE_SYNTAX = 504,
    SFT_SLICE_RANK = 505,
    SFT_SLICE_BOUNDS = 506,
    SFT_SLICE_STEP = 507,
    SFT_SLICE_PARTIAL_BYTE = 508,
    SFT_NAME_RESERVED = 509,
    SFT_CAST_DTYPE = 510,
    SFT_CAST_VALUE = 511,
    SFT_OPTION_UNKNOWN = 520,
    SFT_OPTION_VALUE = 521,
    SFT_COLUMN_UNKNOWN = 522,
    SFT_COLUMN_TYPE = 523,
    SFT_ROW_VALUE = 524,
    SFT_ROW_SHAPE = 525,
    SFT_ROW_NULL = 526,
    SFT_ROW_KEY = 527,

    SFT_OUT_OF_ORDER = 600,
    SFT_INCOMPLETE = 601,
    SFT_EXISTS = 602,
    SFT_IS_LINK = 603,
    SFT_WRITER_FAILED = 604,
    SFT_EDIT_INTERRUPTED = 605,
    SFT_EDIT_BUSY = 606,
    SFT_HARD_LINKS = 607,
    SFT_DATASET_BUSY = 610,
    SFT_DATASET_CHANGED = 611,
    SFT_DATASET_DISAGREES = 612,
    SFT_DATASET_UNGUARDED = 613,

    SFT_CANCELLED = 700
} sft_code;

#define SFT_NO_OFFSET UINT64_MAX
#define SFT_NO_TENSOR UINT32_MAX

/* Everything known about one failure. The caller owns it; it owns all it holds, so
 * it may be copied and outlives the file. The caller adds the path when printing.
 * message reads "expected X, found Y", is UTF-8, escaped (no control characters)
 * and NUL-terminated. @since 0.1 */
typedef struct sft_error {
    sft_code code;
    int32_t os_errno;    /* errno of the failed system call, or 0 */
    uint64_t offset;     /* absolute byte in the file, or SFT_NO_OFFSET */
    uint32_t tensor_len; /* bytes in tensor[], or SFT_NO_TENSOR */
    char tensor[256];    /* first bytes of the name, whole characters, not escaped */
    char message[512];
    const char *hint; /* static sentence: what to try next; or NULL */
    uint64_t needed;  /* of a file cut short: the bytes it should have; else 0 */
    uint64_t reserved[3];
} sft_error;

#define SFT_ERROR_INIT \
    { SFT_OK, 0, SFT_NO_OFFSET, SFT_NO_TENSOR, { 0 }, { 0 }, NULL, 0, { 0 } }

/* Acceptance, least to most demanding. COMPAT is the official package's verdict on
 * every input. DEFAULT also refuses duplicate tensor names and metadata keys,
 * entries that are not JSON objects, a dtype that is not a string, rank over 64.
 * STRICT is every MUST of the written format. @since 0.1 */
typedef enum sft_level {
    SFT_LEVEL_COMPAT = 0,
    SFT_LEVEL_DEFAULT = 1,
    SFT_LEVEL_STRICT = 2
} sft_level;

/* One row of the error table. @since 0.1 */
typedef struct sft_code_info {
    sft_code code;
    const char *name;      /* "data_truncated": JSON and docs */
    const char *sentence;  /* what it means, no full stop */
    sft_class cls;
    const char *exception; /* Python exception class */
    const char *rule;      /* rule of docs/format.md, "R12", or NULL */
    sft_level level;       /* for rules: refused from this level on */
    const char *hint;      /* what to try next, or NULL */
} sft_code_info;

/* Row of a code; never NULL (an unknown number gives a row named "unknown").
 * Static. @since 0.1 */
SFT_API const sft_code_info *sft_code_describe(sft_code code);

/* Row by position, for tables and tests; NULL past the last. @since 0.1 */
SFT_API const sft_code_info *sft_code_at(size_t i);

/* Fill an error from a callback (source, sink, tick): code and a plain sentence.
 * text is cut to fit and control characters are escaped. Returns code.
 * err may be NULL. @since 0.1 */
SFT_API sft_code sft_error_set(sft_error *err, sft_code code, int32_t os_errno,
                               const char *text);

/* ── Memory, progress ────────────────────────────────────────────────────── */

/* One function for all: ptr NULL allocates new_size bytes, new_size 0 releases ptr
 * and returns NULL, otherwise resizes. old_size is the size given before (0 with
 * ptr NULL). Returns NULL when it can't; memory is aligned for any type. Called on
 * the thread that calls the library, never on its workers. @since 0.1 */
typedef struct sft_allocator {
    void *(*resize)(void *ctx, void *ptr, size_t old_size, size_t new_size);
    void *ctx;
} sft_allocator;

/* What is asked while the library waits for bytes of a pipe, terminal or socket: every tenth of
 * a second, and when a signal came, on the thread that waits. False ends the read with
 * SFT_IO_READ (EINTR). For programs and bindings whose signal handlers take a note only; without
 * it such waits end by bytes alone. One for the process, set before other threads use the
 * library; NULL: none. @since 0.1 */
SFT_API void sft_on_wait(bool (*go_on)(void *ctx), void *ctx);

/* Progress, cancelling and threads of a long call; NULL = none, none, one thread.
 * tick is called on the calling thread at least every 8 MiB (with more threads: of its
 * own share); done and total in bytes (total SFT_SIZE_UNKNOWN if so); false stops the
 * call, and all its threads, with SFT_CANCELLED.
 * @since 0.1 */
typedef struct sft_job {
    size_t size;
    bool (*tick)(void *ctx, uint64_t done, uint64_t total); /* NULL: never asked */
    void *ctx;
    uint32_t threads; /* 0 = one per processor */
} sft_job;

#define SFT_JOB_INIT { sizeof(sft_job), NULL, NULL, 1 }

/* ── dtypes ──────────────────────────────────────────────────────────────── */

/* Numbers are names only; the order in which files are sorted is a column of the table.
 * @since 0.1 */
typedef enum sft_dtype {
    SFT_BOOL = 0,
    SFT_F4,
    SFT_F6_E2M3,
    SFT_F6_E3M2,
    SFT_U8,
    SFT_I8,
    SFT_F8_E5M2,
    SFT_F8_E4M3,
    SFT_F8_E8M0,
    SFT_F8_E4M3FNUZ,
    SFT_F8_E5M2FNUZ,
    SFT_I16,
    SFT_U16,
    SFT_F16,
    SFT_BF16,
    SFT_I32,
    SFT_U32,
    SFT_F32,
    SFT_C64,
    SFT_F64,
    SFT_I64,
    SFT_U64
} sft_dtype;

#define SFT_DTYPE_COUNT 22 /* that this header knows; a newer library may know more */

typedef enum sft_kind {
    SFT_KIND_BOOL = 0,
    SFT_KIND_UINT,
    SFT_KIND_INT,
    SFT_KIND_FLOAT,
    SFT_KIND_COMPLEX
} sft_kind;

/* One row of the table of dtypes. Allocated by the library only; fields may be appended.
 * @since 0.1 */
typedef struct sft_dtype_info {
    const char *name; /* as in the header, "BF16" */
    uint32_t bits;    /* per element: 4, 6, 8, 16, 32 or 64 */
    sft_kind kind;
    sft_dtype dtype;
    uint32_t order; /* from 0: its place in the official sort order, ascending */
} sft_dtype_info;

/* Row of a dtype; NULL for a value outside the enum. Static. @since 0.1 */
SFT_API const sft_dtype_info *sft_dtype_describe(sft_dtype dtype);

/* Row by its place in the official sort order, ascending; NULL past the last. Static.
 * @since 0.2 */
SFT_API const sft_dtype_info *sft_dtype_at(size_t order);

/* dtype of a header name (case matters). False, *out untouched, when unknown. @since 0.1 */
SFT_API bool sft_dtype_parse(sft_span name, sft_dtype *out);

/* Elements and bytes of a shape, both checked: SFT_SIZE_OVERFLOW when the product
 * of dims (left to right) or the count of bits passes 2^64 - 1,
 * SFT_SIZE_PARTIAL_BYTE when the bits are no whole bytes. Either result may be NULL.
 * rank 0 (shape may be NULL) is one element. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_shape_size(sft_dtype dtype, const uint64_t *shape,
                                              uint32_t rank, uint64_t *elements,
                                              uint64_t *bytes, sft_error *err);

/* ── Sources: where bytes come from ──────────────────────────────────────── */

#define SFT_SIZE_UNKNOWN UINT64_MAX

/* Tables of functions begin with their size, as the program that has them knows it. Members
 * that are NULL, or beyond that size, are not supported; which ones must be there is told at
 * each. Tables are static, or live as long as what they are the table of.
 * @since 0.2 */
typedef struct sft_source_vtable {
    size_t size; /* sizeof(sft_source_vtable) */
    /* Up to len bytes at offset into `into`; *got says how many and is less than len
     * only at the end. Never asked for bytes beyond a known size. Must be thread-safe
     * if a job with threads > 1 is used. A source of unknown size is read at ascending
     * offsets only. Text put into err passes to the caller unchanged. Must be there. */
    sft_code (*read)(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                        sft_error *err);
    void (*close)(void *ctx); /* once, by whom the source was given to */
} sft_source_vtable;

/* Passed by value; never grows, its table does. size is the whole length or SFT_SIZE_UNKNOWN
 * (pipe, range request): then coverage of the data is not checked. Read it by sft_source_read,
 * not by its table. @since 0.1 */
typedef struct sft_source {
    void *ctx;
    const sft_source_vtable *vtable;
    uint64_t size;
    const void *base; /* all bytes in memory for as long as the source lives, or NULL */
    bool borrowed;    /* of another source: closing this one does nothing */
} sft_source;

/* Up to len bytes at offset: *got of them, less only at the end. SFT_BAD_ARGUMENT if its table
 * cannot read. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_source_read(const sft_source *source, uint64_t offset,
                                               void *into, size_t len, size_t *got,
                                               sft_error *err);

/* Close a source, unless it is borrowed, and zero it. One that is zero, and NULL, are ignored.
 * @since 0.2 */
SFT_API void sft_source_close(sft_source *source);

/* Source over caller's memory, which must stay unchanged while it is used.
 * No allocation. @since 0.1 */
SFT_API sft_source sft_source_memory(const void *bytes, size_t len);

/* Source over a descriptor opened for reading. It stays the caller's and must stay
 * open. A regular file is read by position (the descriptor's own offset does not
 * move) and has a known size; a pipe is read forward and has none. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_source_fd(int fd, const sft_allocator *alloc,
                                             sft_source *out, sft_error *err);

/* Source of a tensor's packed bytes over elements that lie in the caller's memory at byte
 * distances (negative ones and 0 too): element (i, j, …) at base + i * strides[0] + j *
 * strides[1] + …. Packed as they are read, so that no copy of all of it is needed. The memory
 * must stay unchanged while it is used; shape and strides are copied. Elements lie as in a
 * file: little-endian, of whole bytes (F4 and F6 are SFT_BAD_ARGUMENT). Close it. For
 * sft_writer_copy and sft_part; thread-safe. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_source_strided(sft_dtype dtype, const uint64_t *shape,
                                                  uint32_t rank, const void *base,
                                                  const int64_t *strides,
                                                  const sft_allocator *alloc, sft_source *out,
                                                  sft_error *err);

/* ── Sinks: where bytes go ───────────────────────────────────────────────── */

/* As sft_source_vtable. Exactly one of finish and abandon ends a sink and releases ctx; after a
 * failed finish nothing remains to be called. @since 0.2 */
typedef struct sft_sink_vtable {
    size_t size; /* sizeof(sft_sink_vtable) */
    /* Total length, told once before the first byte when known. */
    sft_code (*expect)(void *ctx, uint64_t total, sft_error *err);
    /* Must be there. */
    sft_code (*write)(void *ctx, uint64_t offset, const void *bytes, size_t len,
                         sft_error *err);
    sft_code (*finish)(void *ctx, sft_error *err); /* all written: publish */
    void (*abandon)(void *ctx);                    /* leave nothing behind */
} sft_sink_vtable;

/* Passed by value; never grows, its table does. Used by the calls below, not by its table.
 * @since 0.1 */
typedef struct sft_sink {
    void *ctx;
    const sft_sink_vtable *vtable;
    bool seekable; /* takes any offset; else only that of the next byte */
} sft_sink;

/* The calls of a sink; sft_sink_write of one whose table cannot is SFT_BAD_ARGUMENT, the others
 * then do nothing. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_sink_expect(const sft_sink *sink, uint64_t total,
                                               sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_sink_write(const sft_sink *sink, uint64_t offset,
                                              const void *bytes, size_t len, sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_sink_finish(const sft_sink *sink, sft_error *err);
SFT_API void sft_sink_abandon(const sft_sink *sink);

/* Bytes owned by the caller, from a memory sink. Release with sft_buffer_free.
 * A zeroed struct is an empty buffer with the libc allocator. @since 0.1 */
typedef struct sft_buffer {
    char *data; /* NULL when empty; not NUL-terminated */
    size_t len;
    size_t cap;
    sft_allocator alloc; /* resize NULL = libc */
} sft_buffer;

SFT_API void sft_buffer_free(sft_buffer *buffer);

/* Sink that fills *buffer (emptied first), which must outlive it. abandon empties it
 * again. Seekable. @since 0.1 */
SFT_API sft_sink sft_sink_memory(sft_buffer *buffer);

/* Sink over a descriptor, which stays the caller's. Seekable if it is a regular file
 * not opened for appending (bytes then land at the offset, from 0). finish does not
 * sync; abandon takes nothing back. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_sink_fd(int fd, const sft_allocator *alloc,
                                           sft_sink *out, sft_error *err);

/* Forward sink that hands each piece to write(ctx, bytes, len, err); another code than
 * SFT_OK ends the work. finish and abandon call nothing. No allocation beyond one
 * small block. @since 0.1 */
typedef sft_code (*sft_write_fn)(void *ctx, const void *bytes, size_t len, sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_sink_callback(sft_write_fn write, void *ctx,
                                                 const sft_allocator *alloc, sft_sink *out,
                                                 sft_error *err);

/* Forward sink that gives the same bytes to both; owns both from here on, also on
 * failure. finish finishes first, then second. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_sink_tee(sft_sink first, sft_sink second,
                                            const sft_allocator *alloc, sft_sink *out,
                                            sft_error *err);

typedef enum sft_link_policy {
    SFT_LINK_REPLACE = 0, /* the link becomes a file of its own */
    SFT_LINK_FOLLOW = 1,  /* its target is replaced */
    SFT_LINK_REFUSE = 2   /* SFT_IS_LINK */
} sft_link_policy;

/* @since 0.1 */
typedef struct sft_path_options {
    size_t size;
    bool no_sync;    /* skip fsync of file and folder */
    bool no_clobber; /* SFT_EXISTS if the target is there at publication */
    sft_link_policy link;
    uint32_t mode;              /* permission bits; 0 = the old file's, else by umask */
    const sft_allocator *alloc; /* NULL = libc */
    bool has_mtime;             /* the file gets mtime_ns as time of the last change */
    int64_t mtime_ns;           /* since 1970 */
    bool direct;                /* past the page cache where that can be: for large files that
                                   nobody reads next. The sink then takes bytes in order only.
                                   Never by itself: it was measured to be slower */
    /* Where the file system gives no file another's name (object stores that are mounted),
     * publishing fails with SFT_IO_PUBLISH. With this the old file is then removed and a new
     * one written in its place, from the finished one beside it (which is always a named one).
     * What is lost: who looks meanwhile, or after a crash, finds no file or one cut short. If
     * that writing fails, the hidden .NAME.sft-XXXXXX stays, for it is whole; the message names
     * it. Where files can be renamed nothing changes. */
    bool in_place_unsafe;
    bool no_sync_folder; /* the bytes are synced, the name is not: a power cut may lose it. For
                            many files whose folder is synced once, when all are there */
} sft_path_options;

#define SFT_PATH_OPTIONS_INIT                                                                  \
    { sizeof(sft_path_options), false, false, SFT_LINK_REPLACE, 0, NULL, false, 0, false, false, \
      false }

/* Sink of a file that appears whole or not at all: an unnamed (else a hidden) file
 * beside the target, preallocated, written, synced, renamed over it, folder synced.
 * Until finish the old file is untouched; abandon leaves nothing. When finish fails, what was
 * there is there: after the renaming nothing is a failure any more (a new name whose folder
 * cannot be synced is taken back). @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_sink_path(const char *path, const sft_path_options *options,
                                             sft_sink *out, sft_error *err);

/* Copy [begin, end) of a source to the sink's start and finish it; abandons it on any
 * failure. end SFT_SIZE_UNKNOWN = to the end of the source. Ticks the job.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_copy(const sft_source *from, uint64_t begin, uint64_t end,
                                        sft_sink to, const sft_job *job, sft_error *err);

/* ── Files ───────────────────────────────────────────────────────────────── */

typedef struct sft_file sft_file;

/* How tensor bytes are reached. @since 0.1 */
typedef enum sft_mode {
    SFT_READ = 0,    /* positioned reads: a shrinking file is an error, never a signal */
    SFT_MAP = 1,     /* shared read-only map; another process cutting the file short
                        raises SIGBUS in whoever touches the lost pages */
    SFT_MAP_COW = 2, /* private writable map: the file is never touched */
    SFT_AUTO = 3     /* map if the system lets us, else read */
} sft_mode;

#define SFT_MAX_HEADER_BYTES UINT64_C(100000000) /* the official cap */
#define SFT_MAX_RANK 64                          /* of level default, and of slices */

/* 0 in a limit means its default. Defaults refuse nothing the official package
 * accepts, but by level. @since 0.1 */
typedef struct sft_open_options {
    size_t size;
    sft_level level;
    sft_mode mode;
    bool legacy;                 /* read the layout of 2022 (`offsets`, "float16") */
    bool header_only;            /* data need not be there: coverage is not checked */
    uint64_t max_header_bytes;   /* default SFT_MAX_HEADER_BYTES, at most 2^31 - 1 */
    uint64_t max_tensors;        /* default none */
    uint64_t max_name_bytes;     /* default none; tensor names and metadata keys */
    uint64_t max_metadata;       /* pairs; default none */
    const sft_allocator *alloc;  /* NULL = libc; copied, its ctx must outlive the file */
    uint64_t listed_s;          /* seconds since 1970 when the caller listed the folder, and saw
                                    this file, no link, and no journal; 0: did not (sft_open) */
    const char *beneath;         /* NULL, or the folder the path begins with ("" is the current
                                    one) where the rest was named by a file (sft_open) */
} sft_open_options;

#define SFT_OPEN_OPTIONS_INIT \
    { sizeof(sft_open_options), SFT_LEVEL_DEFAULT, SFT_READ, false, false, 0, 0, 0, 0, NULL, 0, \
      NULL }

/* Open and validate. On success *out must be closed with sft_close. Cost: one pass
 * over the header; memory at most twice the header for real headers, six times for
 * the worst legal one; no allocation per tensor. Tensor bytes are not read.
 * SFT_MAP and SFT_MAP_COW fail with SFT_IO_MAP where the system refuses to map.
 * SFT_EDIT_INTERRUPTED if the journal of an edit is beside the file, or beside what a link
 * leads to, and the file is neither the old nor the new one; every function that is given a
 * model's path looks for it. With listed_s that costs no look at a name, for a file
 * that was last changed a day or more before.
 * With beneath, for names from an index or the like: what is opened lies beneath that folder,
 * whoever changes its contents meanwhile, and is a regular file (SFT_IO_NOT_FILE). Links are
 * followed that stay beneath it, and those from a snapshot of a Hub cache to its blobs; any
 * other is SFT_INDEX_PATH. The same for sft_scan_open and sft_repair_open; sft_edit_open and
 * sft_edit_recover follow none (SFT_IS_LINK), but that the last part may be a link which
 * SFT_LINK_REPLACE turns into a file of its own. sft_set_open sets it for each shard.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_open(const char *path, const sft_open_options *options,
                                        sft_file **out, sft_error *err);

/* The same from a descriptor (see sft_source_fd), mapped if the mode says so. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_open_fd(int fd, const sft_open_options *options,
                                           sft_file **out, sft_error *err);

/* The same over memory, used in place: it must stay unchanged until sft_close. Views
 * work in every mode but SFT_MAP_COW (SFT_BAD_ARGUMENT). @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_open_memory(const void *bytes, size_t len,
                                               const sft_open_options *options,
                                               sft_file **out, sft_error *err);

/* The same over the caller's source, closed by sft_close, or before return on
 * failure. Modes other than SFT_READ and SFT_AUTO are SFT_BAD_ARGUMENT. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_open_source(sft_source source,
                                               const sft_open_options *options,
                                               sft_file **out, sft_error *err);

/* Release all, views and spans included. NULL is ignored. @since 0.1 */
SFT_API void sft_close(sft_file *file);

/* Plain facts of one tensor. Allocated by the library only, valid until sft_close;
 * fields are only ever appended, so copy fields, not the struct. @since 0.1 */
typedef struct sft_tensor {
    sft_span name; /* UTF-8, unescaped; may be empty, may hold NUL */
    const uint64_t *shape;
    uint32_t rank;
    sft_dtype dtype;
    uint64_t begin, end; /* in the data region, as data_offsets */
    uint64_t offset;     /* of the first byte in the file: 8 + N + begin */
} sft_tensor;

/* Index i is offset order everywhere (ties in header order). O(1). */
SFT_API size_t sft_file_tensor_count(const sft_file *file);
/* NULL when i is out of range. @since 0.1 */
SFT_API const sft_tensor *sft_file_tensor_at(const sft_file *file, size_t i);
/* By exact name, O(1); NULL when there is none. @since 0.1 */
SFT_API const sft_tensor *sft_file_find(const sft_file *file, sft_span name);
SFT_API const sft_tensor *sft_file_find_cstr(const sft_file *file, const char *name);

/* NAME: by bytes. NATURAL: numbers inside names by value ("layer.2" < "layer.10").
 * HEADER: as the entries stand in the header text. @since 0.1 */
typedef enum sft_order {
    SFT_ORDER_OFFSET = 0,
    SFT_ORDER_NAME = 1,
    SFT_ORDER_NATURAL = 2,
    SFT_ORDER_HEADER = 3
} sft_order;

/* Fill out[sft_file_tensor_count] with indexes in that order. Needs scratch of the same
 * size from the file's allocator. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_file_order(const sft_file *file, sft_order order,
                                              uint32_t *out, sft_error *err);

/* Whole length, or SFT_SIZE_UNKNOWN. */
SFT_API uint64_t sft_file_size(const sft_file *file);
/* N, the header length as stored; data begins at 8 + N. */
SFT_API uint64_t sft_file_header_bytes(const sft_file *file);
SFT_API uint64_t sft_file_data_offset(const sft_file *file);
/* Bytes of all tensors = end of the last. */
SFT_API uint64_t sft_file_data_bytes(const sft_file *file);
/* The N header bytes, exactly as stored. */
SFT_API sft_span sft_file_header(const sft_file *file);
/* Whether the presence of all data was checked (known size, not header_only). */
SFT_API bool sft_file_complete(const sft_file *file);
SFT_API bool sft_file_is_mapped(const sft_file *file);
SFT_API sft_level sft_file_level(const sft_file *file);
/* Largest power of two, at most 4096, that divides the data's start. */
SFT_API uint32_t sft_file_alignment(const sft_file *file);
/* Whether tensor data is aligned for its dtype in the file, and so in a map. */
SFT_API bool sft_tensor_aligned(const sft_tensor *tensor);

/* One pair of __metadata__. @since 0.1 */
typedef struct sft_pair {
    sft_span key, value;
} sft_pair;

/* Whether __metadata__ is there and not null (it may still be empty). */
SFT_API bool sft_file_has_metadata(const sft_file *file);
SFT_API size_t sft_file_metadata_count(const sft_file *file);
/* In file order; both spans empty with data NULL when i is out of range. */
SFT_API sft_pair sft_file_metadata_at(const sft_file *file, size_t i);
/* Value of a key, O(1). False, *value untouched, when absent. @since 0.1 */
SFT_API bool sft_file_metadata_get(const sft_file *file, sft_span key, sft_span *value);
SFT_API bool sft_file_metadata_get_cstr(const sft_file *file, const char *key, sft_span *value);

/* ── Reading tensors ─────────────────────────────────────────────────────── */

/* Lend the tensor's bytes (tensor->end - begin of them, little-endian as stored, may
 * be unaligned) until sft_close. SFT_NOT_MAPPED when the file is read by position.
 * A tensor without bytes gives a non-NULL pointer not to be read. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_view(const sft_file *file, const sft_tensor *tensor,
                                        const void **out, sft_error *err);

/* The same, writable, for SFT_MAP_COW only (else SFT_NOT_MAPPED). Changes stay in
 * this file handle; two threads must not write the same tensor. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_view_writable(const sft_file *file,
                                                 const sft_tensor *tensor, void **out,
                                                 sft_error *err);

/* Bytes lent by sft_borrow. */
typedef struct sft_loan {
    const void *data;
    size_t len;
    void *owned; /* the copy to be released, or NULL for a view */
} sft_loan;

/* A view where there is one, else a copy: always works. Give back with sft_return
 * before sft_close. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_borrow(const sft_file *file, const sft_tensor *tensor,
                                          sft_loan *out, sft_error *err);
SFT_API void sft_return(const sft_file *file, sft_loan *loan);

/* Copy the tensor to dst of exactly len = end - begin bytes (SFT_BUFFER_SIZE
 * otherwise). A file cut short since opening is SFT_IO_SHRUNK. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_read_into(const sft_file *file, const sft_tensor *tensor,
                                             void *dst, size_t len, sft_error *err);

typedef struct sft_read {
    const sft_tensor *tensor;
    void *dst; /* tensor->end - tensor->begin bytes */
    size_t len;
} sft_read;

/* Copy many tensors in as few reads as sensible, by job->threads threads. On failure
 * the buffers' contents are unspecified. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_read_many(const sft_file *file, const sft_read *reads,
                                             size_t count, const sft_job *job,
                                             sft_error *err);

/* Any bytes of the file: len at absolute offset, all or SFT_IO_SHRUNK. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_read_bytes(const sft_file *file, uint64_t offset, void *dst,
                                           size_t len, sft_error *err);

/* The file's bytes as a source for sft_copy; valid until sft_close, borrowed. @since 0.1 */
SFT_API sft_source sft_file_source(const sft_file *file);

/* ── Slices ──────────────────────────────────────────────────────────────── */

/* One dimension, resolved: elements start, start + step, … (count of them), all
 * inside the dimension. step may be negative. */
typedef struct sft_range {
    uint64_t start;
    uint64_t count;
    int64_t step;
} sft_range;

/* A resolved selection of a tensor of rank <= SFT_MAX_RANK. Bit d of dropped: the
 * dimension was indexed by an integer and is absent from the result's shape.
 * @since 0.1 */
typedef struct sft_slice {
    uint32_t rank;
    uint64_t dropped;
    sft_range range[SFT_MAX_RANK];
} sft_slice;

typedef enum sft_slice_part_kind {
    SFT_SLICE_PART_INDEX = 0,     /* one element: value, negative from the end */
    SFT_SLICE_PART_RANGE = 1,   /* start:stop:step as numpy has it, clamped */
    SFT_SLICE_PART_ELLIPSIS = 2 /* as many whole dimensions as are missing; at most once */
} sft_slice_part_kind;

/* One part of an index expression, before it meets a shape. */
typedef struct sft_slice_part {
    sft_slice_part_kind kind;
    int64_t value; /* INT */
    int64_t start, stop, step;
    bool has_start, has_stop, has_step; /* RANGE: false = left out */
} sft_slice_part;

/* Resolve an index expression against a shape, by numpy's rules; missing trailing
 * dimensions are whole. SFT_SLICE_RANK (too many parts, rank over 64),
 * SFT_SLICE_BOUNDS (integer outside), SFT_SLICE_STEP (step 0). @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_slice_resolve(const uint64_t *shape, uint32_t rank,
                                                 const sft_slice_part *parts, size_t count,
                                                 sft_slice *out, sft_error *err);

/* The same from text with or without brackets: "[1:3, ::-1, ..., -1]". SFT_SLICE_SYNTAX
 * names the column in err->offset. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_slice_parse(const uint64_t *shape, uint32_t rank,
                                               sft_span text, sft_slice *out, sft_error *err);

/* Shape of the result into out[SFT_MAX_RANK]; returns its rank. @since 0.1 */
SFT_API uint32_t sft_slice_shape(const sft_slice *slice, uint64_t *out);

/* Elements and bytes of the result (either may be NULL). SFT_SLICE_PARTIAL_BYTE when
 * a dtype under 8 bits does not fall on whole bytes; SFT_SIZE_OVERFLOW. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_slice_size(const sft_slice *slice, sft_dtype dtype,
                                              uint64_t *elements, uint64_t *bytes,
                                              sft_error *err);

/* One stretch of bytes of the tensor, offset from its begin. */
typedef struct sft_run {
    uint64_t offset;
    uint64_t len;
} sft_run;

/* Walks a slice's bytes in result order; a plain value without allocation, so it may
 * be copied to remember a place. Members are private. @since 0.1 */
typedef struct sft_runs {
    uint32_t rank; /* outer dimensions still walked */
    uint64_t run_bytes;
    uint64_t left; /* runs to come */
    uint64_t position;
    uint64_t at[SFT_MAX_RANK];
    uint64_t count[SFT_MAX_RANK];
    int64_t stride[SFT_MAX_RANK]; /* bytes */
} sft_runs;

/* Begin walking. Runs are as long as possible: whole inner dimensions melt into one.
 * SFT_SLICE_PARTIAL_BYTE, SFT_SLICE_RANK (the slice is of another rank),
 * SFT_SLICE_BOUNDS (outside this shape). @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_runs_begin(const sft_tensor *tensor, const sft_slice *slice,
                                              sft_runs *out, sft_error *err);
/* Next run, or false at the end. O(1) amortised. @since 0.1 */
SFT_API bool sft_runs_next(sft_runs *runs, sft_run *out);

/* Copy the slice, packed, to dst of exactly its bytes. Reads only the bytes needed,
 * near runs in one read. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_slice_read(const sft_file *file, const sft_tensor *tensor,
                                              const sft_slice *slice, void *dst, size_t len,
                                              sft_error *err);

/* ── Scan: what is wrong with a file ─────────────────────────────────────── */

typedef struct sft_scan sft_scan;

/* One broken rule (or, as a note, something worth knowing). error.code names it,
 * sft_code_describe(error.code)->rule the rule of docs/format.md. @since 0.1 */
typedef struct sft_finding {
    sft_error error;
} sft_finding;

/* Remark that makes no file invalid. name: "unaligned", "unsorted", "header_unpadded",
 * "polyglot_zip", "polyglot_pdf", "polyglot_tar", "polyglot_magic", "name_control",
 * "unknown_field", "duplicate_name", "metadata_null", "foreign_journal"; docs/format.md lists
 * all. */
typedef struct sft_note {
    const char *name; /* static */
    sft_error error;  /* offset, tensor and message; code is SFT_OK */
} sft_note;

/* One top-level entry as spelled: raw header text with its quotes, and positions from
 * the start of the file. Fields absent from the entry have an empty span; of one that is
 * there twice it is the first. */
typedef struct sft_scan_entry {
    sft_span name, dtype, shape, offsets; /* raw JSON text */
    uint64_t name_begin, value_begin, value_end;
} sft_scan_entry;

/* Look at a file that may be bad: every finding at the given level, not only the
 * first (at most 1000 are kept), in file order of their offset. Recognises other
 * formats. Succeeds unless the bytes cannot be read or memory runs out. Lends no
 * tensor data. Close with sft_scan_close. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_scan_open(const char *path, const sft_open_options *options,
                                             sft_scan **out, sft_error *err);
/* source is closed before return. A source of unknown size is read to its end. */
SFT_API SFT_NODISCARD sft_code sft_scan_open_source(sft_source source,
                                                    const sft_open_options *options,
                                                    sft_scan **out, sft_error *err);
SFT_API void sft_scan_close(sft_scan *scan);

/* The verdict: SFT_OK, or the error sft_open gives for the same bytes (refined to
 * what the file really is where that is recognised). NULL if valid. @since 0.1 */
SFT_API const sft_error *sft_scan_error(const sft_scan *scan);
SFT_API size_t sft_scan_finding_count(const sft_scan *scan);
SFT_API const sft_finding *sft_scan_finding_at(const sft_scan *scan, size_t i);
SFT_API size_t sft_scan_note_count(const sft_scan *scan);
SFT_API const sft_note *sft_scan_note_at(const sft_scan *scan, size_t i);
SFT_API size_t sft_scan_entry_count(const sft_scan *scan);
/* Read anew from the header's text; all spans have data NULL when i is out of range. */
SFT_API sft_scan_entry sft_scan_entry_at(const sft_scan *scan, size_t i);
SFT_API sft_level sft_scan_level(const sft_scan *scan);

/* What a failed open really found: looks at the first bytes of the source (and
 * `error` from sft_open) and, where it recognises another format, a cut download or
 * NUL padding, rewrites code, message and hint. Reads at most 4 KiB. @since 0.1 */
SFT_API void sft_diagnose(const sft_source *source, sft_error *error);

/* ── Repair: a bad file written anew ─────────────────────────────────────── */

/* Something that was wrong, or odd, and becomes right when the file is written anew. */
typedef struct sft_fix {
    const char *name; /* "trailing_bytes", "duplicate_name", …; docs/repair.md lists all */
    const char *done; /* "the bytes after the last tensor are left out". Both static */
    sft_error found;  /* where and what, as in a finding or a note */
} sft_fix;

/* One tensor to be written. */
typedef struct sft_spec {
    sft_span name;
    sft_dtype dtype;
    uint32_t rank;
    const uint64_t *shape;
} sft_spec;

typedef struct sft_repair sft_repair;

/* Look at a file by sft_scan and see how it can be written anew as a valid one at the level
 * of the options: trailing bytes, NULs or no padding after the header, holes, tensors that
 * share bytes, names and metadata keys given twice (the last counts, as in the official
 * reader), metadata that are no strings, entries spelled oddly, the layout of 2022. What
 * cannot be made right without guessing (a file cut short, a shape that does not fit, broken
 * JSON) is refused with the error of the first such finding. A valid file is fine too and has
 * no fixes. Memory, the writing included: at most six times the header (nine times where its
 * metadata are what is wrong). Close with sft_repair_close. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_repair_open(const char *path, const sft_open_options *options,
                                               sft_repair **out, sft_error *err);
SFT_API size_t sft_repair_fix_count(const sft_repair *repair);
SFT_API const sft_fix *sft_repair_fix_at(const sft_repair *repair, size_t i);
/* The tensors that sft_repair_write writes; name, dtype and shape live as long as the repair.
 * Must be in range. @since 0.1 */
SFT_API size_t sft_repair_tensor_count(const sft_repair *repair);
SFT_API sft_spec sft_repair_tensor_at(const sft_repair *repair, size_t i);
/* Write the file anew; takes the sink in every case. Tensor bytes are copied as they are.
 * Ticks the job with the bytes of all tensors. */
SFT_API SFT_NODISCARD sft_code sft_repair_write(const sft_repair *repair, sft_sink sink,
                                                const sft_job *job, sft_error *err);
/* NULL is ignored. */
SFT_API void sft_repair_close(sft_repair *repair);

/* Call each(ctx, name, removed) for every hidden file in the folder that an interrupted
 * sft_sink_path left: regular files named .NAME.sft-XXXXXX, which are removed unless dry_run.
 * To be run while nothing writes there. each may be NULL; false ends the work.
 * *count how many (may be NULL). @since 0.1 */
typedef bool (*sft_sweep_fn)(void *ctx, const char *name);
SFT_API SFT_NODISCARD sft_code sft_sweep(const char *folder, bool dry_run, sft_sweep_fn each,
                                         void *ctx, size_t *count, sft_error *err);

/* ── Writing ─────────────────────────────────────────────────────────────── */

/* @since 0.1 */
typedef struct sft_plan_options {
    size_t size;
    bool keep_order;           /* as given; default: dtype descending, then name */
    bool has_metadata;         /* write __metadata__ even with no pairs */
    uint32_t align;            /* of the data's start: 8 (default), 64, 256, 4096, … */
    uint64_t max_header_bytes; /* default SFT_MAX_HEADER_BYTES */
    const sft_allocator *alloc;
    uint64_t spare; /* spaces left at the header's end, at least, for later edits */
    uint64_t min_header_bytes; /* bytes the header has at least, the spaces counted */
    sft_level level; /* at which the file can be read: DEFAULT refuses rank over SFT_MAX_RANK
                        (SFT_RANK_TOO_LARGE), STRICT also names with control characters */
    sft_pair (*pair_at)(const void *ctx, size_t i); /* metadata by call, i < metadata_count;
                                                       the array of pairs is not looked at */
    const void *pair_ctx;
} sft_plan_options;

#define SFT_PLAN_OPTIONS_INIT \
    { sizeof(sft_plan_options), false, false, 8, 0, NULL, 0, 0, SFT_LEVEL_DEFAULT, NULL, NULL }

/* Names, dtypes and shapes turned into order, offsets, header text and total.
 * Holds copies of all it needs. @since 0.1 */
typedef struct sft_plan sft_plan;

/* Metadata is written sorted by key. Refuses a tensor named __metadata__
 * (SFT_NAME_RESERVED), duplicates, sizes that overflow or end inside a byte, names
 * or metadata that are not UTF-8 (SFT_HEADER_UTF8). @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_plan_new(const sft_spec *specs, size_t count,
                                            const sft_pair *metadata, size_t metadata_count,
                                            const sft_plan_options *options, sft_plan **out,
                                            sft_error *err);
SFT_API void sft_plan_free(sft_plan *plan);
/* Bytes of the whole file. */
SFT_API uint64_t sft_plan_total(const sft_plan *plan);
/* The 8 length bytes and the header: what the file begins with. */
SFT_API sft_span sft_plan_head(const sft_plan *plan);
SFT_API size_t sft_plan_tensor_count(const sft_plan *plan);
/* In file order; name and shape live as long as the plan. NULL when out of range. */
SFT_API const sft_tensor *sft_plan_tensor_at(const sft_plan *plan, size_t i);
/* Position in file order of the i-th spec given. */
SFT_API size_t sft_plan_position(const sft_plan *plan, size_t spec);

/* A file being written. The first failure is remembered and returned by every later
 * call; nothing is published then. @since 0.1 */
typedef struct sft_writer sft_writer;

/* Takes the sink in every case (abandons it on failure); the plan must outlive the
 * writer. The header is written at once. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_writer_begin(const sft_plan *plan, sft_sink sink,
                                              sft_writer **out, sft_error *err);
/* The second way, without a plan: the header is written last, into room that is kept for it,
 * and tensors are added one after another. @since 0.1 */
typedef struct sft_writer_options {
    size_t size;
    uint64_t header_bytes; /* N; 0 = 64 KiB. About 110 bytes a tensor and those of the names */
    uint32_t align;       /* of the data's start, as in the plan's options */
    const sft_pair *metadata; /* copied */
    size_t metadata_count;
    const sft_allocator *alloc;
} sft_writer_options;

#define SFT_WRITER_OPTIONS_INIT { sizeof(sft_writer_options), 0, 8, NULL, 0, NULL }

/* Takes the sink in every case, as sft_writer_begin; it must be able to seek (else
 * SFT_OUT_OF_ORDER). Until sft_writer_finish the file has no header. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_writer_begin_unplanned(const sft_writer_options *options,
                                                          sft_sink sink, sft_writer **out,
                                                          sft_error *err);
/* One tensor more, behind the others: *i is its number for the calls below. At once refused
 * are what a plan refuses, a name that is there, and a tensor whose entry finds no room in the
 * header (SFT_HEADER_TOO_LARGE); the writer goes on without it. Only of a writer from
 * sft_writer_begin_unplanned. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_writer_add(sft_writer *writer, const sft_spec *spec,
                                              size_t *i, sft_error *err);
/* Next piece of tensor i (file order). Pieces of one tensor ascend; tensors may come
 * in any order if the sink is seekable, else in file order (SFT_OUT_OF_ORDER).
 * More bytes than planned: SFT_BUFFER_SIZE. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_writer_put(sft_writer *writer, size_t i, const void *bytes,
                                              size_t len, sft_error *err);
/* The same with the next len bytes of tensor i from `begin` of a source, which stays the
 * caller's. Copied within the system, without going through memory, where source and sink
 * are files and it can do that; else piece by piece. Ticks the job: of len. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_writer_copy(sft_writer *writer, size_t i,
                                               const sft_source *from, uint64_t begin,
                                               uint64_t len, const sft_job *job,
                                               sft_error *err);
/* Publish and free the writer, also on failure. SFT_INCOMPLETE names a tensor that
 * lacks bytes. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_writer_finish(sft_writer *writer, sft_error *err);
/* Leave nothing behind and free the writer. NULL is ignored. */
SFT_API void sft_writer_abandon(sft_writer *writer);

/* A tensor to be written whose bytes stand in a source, from `begin` on: as many as dtype and
 * shape ask for. What it points to must outlive the writing. @since 0.1 */
typedef struct sft_part {
    sft_spec spec;
    const sft_source *source;
    uint64_t begin;
} sft_part;

/* A tensor of an open file as it is; source: what sft_file_source gave for that file, kept
 * by the caller. @since 0.1 */
SFT_API sft_part sft_part_of(const sft_tensor *tensor, const sft_source *source);

/* Write a whole file of parts: plan, copy, publish. Takes the sink in every case. A source
 * that is read forward must have its parts in file order. Ticks the job with the bytes of all
 * tensors. Memory: the plan, and 256 KiB where bytes go through memory. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_save_parts(const sft_part *parts, size_t count,
                                              const sft_pair *metadata, size_t metadata_count,
                                              const sft_plan_options *options, sft_sink sink,
                                              const sft_job *job, sft_error *err);

/* ── Editing ─────────────────────────────────────────────────────────────── */

/* A change of metadata, of tensors' names or of tensors' bytes in a file that is there. Only
 * what is meant changes: every other byte of the header's text (order, spelling, unknown
 * fields, escapes) and of the data stays. docs/editing.md has the pictures. */
typedef struct sft_edit sft_edit;

/* How the change reaches the file; which one is the library's choice, in this order.
 * @since 0.1 */
typedef enum sft_edit_method {
    SFT_EDIT_NONE = 0,    /* there is nothing to change: nothing is written */
    SFT_EDIT_PLACE = 1,   /* written over the old bytes, under a journal beside the file */
    SFT_EDIT_REFLINK = 2, /* a new file that shares the data's blocks takes its name */
    SFT_EDIT_INSERT = 3,  /* blocks come in before the data, under the journal */
    SFT_EDIT_COPY = 4     /* a new file with a copy of the data takes its name */
} sft_edit_method;

/* "none", "in place", "reflink", "insert", "copy". Static. */
SFT_API const char *sft_edit_method_name(sft_edit_method method);

/* @since 0.1 */
typedef struct sft_edit_options {
    size_t size;
    bool safe;            /* only methods that are atomic: reflink and copy */
    bool no_sync;         /* skip every fsync: a power cut may then tear the file */
    bool keep_mtime;      /* the time of the last change stays */
    bool force;           /* also a file with several names (else SFT_HARD_LINKS), and mend a
                             file whose journal says another device or inode (a copy), if
                             its length and every byte fit */
    bool no_recover;      /* SFT_EDIT_INTERRUPTED instead of mending what was interrupted */
    sft_link_policy link; /* REPLACE: the link becomes a file of its own */
    uint64_t spare;       /* bytes left for later edits when a header grows; 0 = 4096 */
    uint64_t min_insert_bytes; /* bytes a file must have for `insert`; 0 = 16 MiB */
    uint64_t max_place_bytes;  /* bytes of tensors that change in place, else by a new file: the
                             journal holds them twice; 0 = 64 MiB */
    bool in_place_unsafe; /* of a new file: as in sft_path_options */
    const sft_open_options *open; /* NULL = defaults; mode and header_only are not used */
} sft_edit_options;

#define SFT_EDIT_OPTIONS_INIT \
    { sizeof(sft_edit_options), false, false, false, false, false, SFT_LINK_REPLACE, 0, 0, 0, \
      false, NULL }

/* What a change does to the file, or did. @since 0.1 */
typedef struct sft_edit_report {
    sft_edit_method method;
    uint64_t header_before, header_after; /* N */
    uint64_t spare;                       /* spaces at the header's end, afterwards */
    uint64_t file_after;                  /* bytes of the file, afterwards */
} sft_edit_report;

/* Open a file to change it; nothing is written until sft_edit_apply, but that an
 * interrupted edit is mended first (see sft_edit_recover). Close with sft_edit_close.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_open(const char *path, const sft_edit_options *options,
                                             sft_edit **out, sft_error *err);
SFT_API void sft_edit_close(sft_edit *edit);
/* The file as it was opened; its tensors' bytes can be read until sft_edit_apply. */
SFT_API const sft_file *sft_edit_file(const sft_edit *edit);

/* Ask for changes; copies are kept. What comes later goes before what came earlier. A key
 * that is there keeps its place, a new one goes last; removing a key that is not there
 * changes nothing. SFT_HEADER_UTF8. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_set(sft_edit *edit, sft_span key, sft_span value,
                                            sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_edit_remove(sft_edit *edit, sft_span key, sft_error *err);
/* Renamings are all done at once: from is a name the file has now, so that two tensors can
 * change names. SFT_TENSOR_NOT_FOUND, SFT_NAME_RESERVED, SFT_HEADER_UTF8; two tensors of
 * one name in the end are SFT_TENSOR_DUPLICATE, told by the calls below. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_rename(sft_edit *edit, sft_span from, sft_span to,
                                               sft_error *err);
/* Other bytes for a tensor (by the name it has now), as many as it has, as stored: packed,
 * little-endian. May be asked together with the changes above: all of them are done or none.
 * The bytes are not kept here: what source reads from must stay until the edit is applied or
 * closed; it is read from its first byte, forward, once by each apply and save, not by a
 * plan, and is not closed. Sources of several tensors are read one after another, in file
 * order. SFT_TENSOR_NOT_FOUND; SFT_BUFFER_SIZE for more or fewer bytes, told by the calls
 * below where size is SFT_SIZE_UNKNOWN: then nothing was changed. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_put(sft_edit *edit, sft_span tensor,
                                            const sft_source *source, sft_error *err);

/* What sft_edit_apply would do; nothing is changed. Whether blocks can be shared or come in
 * is tried with an unnamed file in the folder; SFT_EDIT_INSERT turns into SFT_EDIT_COPY if
 * somebody has the file open by then. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_plan(sft_edit *edit, sft_edit_report *out,
                                             sft_error *err);

/* Change the file; report may be NULL. Done or not done: on failure the file is as it was,
 * but where even putting it back failed; then the journal stays, and err->hint tells how to
 * mend the file. SFT_EDIT_BUSY when another program is changing the file or has changed it
 * since it was opened. Only copies and the bytes of sft_edit_put tick the job; the rest takes
 * milliseconds. An edit is applied once. Who has the file open sees bytes that change in
 * place while they change; `safe` keeps the old file for them. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_apply(sft_edit *edit, const sft_job *job,
                                              sft_edit_report *report, sft_error *err);

/* Write the changed file to another path; the file itself stays as it is. The header keeps
 * its room, or grows as it would in place. Method: SFT_EDIT_REFLINK or SFT_EDIT_COPY.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_save(sft_edit *edit, const char *path,
                                             const sft_path_options *options,
                                             const sft_job *job, sft_edit_report *report,
                                             sft_error *err);

/* What sft_edit_recover found. */
typedef enum sft_edit_found {
    SFT_EDIT_CLEAN = 0, /* no edit was interrupted */
    SFT_EDIT_OLD = 1,   /* one was, before it changed anything: the file is as before it */
    SFT_EDIT_NEW = 2    /* one was; it is done now */
} sft_edit_found;

/* Whether a file is in the middle of an edit: SFT_EDIT_INTERRUPTED as from sft_open, for who
 * reads its bytes without opening it as a model. alloc may be NULL. Costs three looks at names.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_check(const char *path, const sft_allocator *alloc,
                                              sft_error *err);

/* Mend a file whose editing was interrupted: its journal, .NAME.sft-journal beside it, is
 * brought to an end and removed. Only if it is this file's and every byte of the header, and
 * of what it says of the data, is the old or the new one; else SFT_EDIT_INTERRUPTED, and both
 * are left alone. So is the journal of another user than the effective one and the file's
 * owner, or one that others may write to, also with force. *found may be NULL. Of the options
 * open, force, no_sync and link are used.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_edit_recover(const char *path,
                                                const sft_edit_options *options,
                                                sft_edit_found *found, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
