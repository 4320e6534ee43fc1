/* libsafetensors: open, check, slice and write .safetensors files.
 *
 * The format: 8 bytes of header length N (little-endian), N bytes of JSON, then the tensors'
 * bytes. docs/format.md lists every rule.
 *
 * STABLE: docs/abi.md says what that promises.
 *
 * Conventions, which hold for every function unless it says otherwise:
 *   - Functions that can fail return an sft_code: SFT_OK (0), or what went wrong. Their last
 *     argument is the caller's sft_error, which is filled on failure only and may be NULL. On
 *     failure, results are set to NULL or zero.
 *   - A comment names the codes that need explaining. Besides those, a function that allocates
 *     may return SFT_OUT_OF_MEMORY, one that reads a file SFT_NOT_FOUND, SFT_IO_OPEN,
 *     SFT_IO_READ or SFT_IO_SHRUNK, one that writes SFT_IO_WRITE, SFT_IO_SYNC or
 *     SFT_IO_PUBLISH, one that takes a job SFT_CANCELLED, and any function SFT_BAD_ARGUMENT.
 *   - Pointers must not be NULL, except those to options, jobs, allocators and errors.
 *     Functions that close, free or abandon something ignore NULL. Those whose first argument is
 *     a path refuse NULL (SFT_BAD_ARGUMENT). All others may crash.
 *   - Callbacks (of jobs, sources, sinks, allocators and others) return: they neither throw C++
 *     exceptions nor longjmp out of the library, whose locks and memory would stay behind.
 *   - Strings from a file are spans (pointer and length): they may contain NUL. What an
 *     accessor returns belongs to its object and lives as long as that.
 *   - Options structs begin with their own size. Initialise them with the _INIT macro, then set
 *     what differs; NULL means all defaults. They are read during the call only. Options inside
 *     options are pointers; NULL means their defaults, too. A program built with an older header
 *     may pass a shorter struct: what it lacks has its default. One built with a newer header
 *     may pass a longer one: members this library does not know must be zero, else the call
 *     fails with SFT_BAD_ARGUMENT. So clear the whole struct, or use _INIT.
 *   - Structs without a size never grow, unless only the library allocates them; those are
 *     reached by call, never by stride, and may get members at their end.
 *   - Enumerators keep their numbers for ever. A newer library may return new ones.
 *   - Nothing here prints, exits, aborts, reads the environment or handles signals. There is
 *     no global state but what two deprecated functions of safetensors_io.h set.
 *   - An open sft_file is immutable: any number of threads may use it at once. So are a plan,
 *     a scan and a repair. A writer, a sink, a source, an edit and a run iterator belong to one
 *     thread at a time, unless its comment says otherwise.
 *   - Accessors cost O(1). Sizes and offsets are bytes, in uint64_t on every host. */
#ifndef SFT_SAFETENSORS_H
#define SFT_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef SFT_PREFIX
#include "safetensors_prefix.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What stands before every function. A program may define it itself. SFT_SHARED: the library is a
 * shared one. SFT_STATIC_API: every function is local to the file that includes the two-file
 * form's safetensors.c. SFT_PREFIX: sft_open is called SFT_PREFIX followed by sft_open, and so is
 * every other function; library and program are compiled with the same prefix. docs/install.md
 * says which of them a vendored copy needs. */
#ifndef SFT_API
#if defined(SFT_STATIC_API)
#define SFT_API static
#elif !defined(SFT_SHARED)
#define SFT_API
#elif defined(_WIN32) && defined(SFT_BUILDING)
#define SFT_API __declspec(dllexport)
#elif defined(_WIN32)
#define SFT_API __declspec(dllimport)
#elif defined(__GNUC__)
#define SFT_API __attribute__((visibility("default")))
#else
#define SFT_API
#endif
#endif

#if defined(__GNUC__)
#define SFT_NODISCARD __attribute__((warn_unused_result))
#else
#define SFT_NODISCARD
#endif

/* ── Version ─────────────────────────────────────────────────────────────── */

#define SFT_VERSION_MAJOR 0
#define SFT_VERSION_MINOR 3
#define SFT_VERSION_PATCH 0
#define SFT_VERSION_STRING "0.3.0"

/* The version of the running library, "major.minor.patch". Static. @since 0.1 */
SFT_API const char *sft_version(void);

/* How the library was built, one fact a line: compiler, optional libraries, limits, and which
 * headers are stable. Static; ends with a newline. @since 0.1 */
SFT_API const char *sft_build_info(void);

/* ── Spans ───────────────────────────────────────────────────────────────── */

/* Bytes owned by something else, passed by value. data may be NULL if len is 0. Not
 * NUL-terminated (sft_span_copy). Never grows. @since 0.1 */
typedef struct sft_span {
    const char *data;
    size_t len;
} sft_span;

/* Initialises a span with a string literal, also in C++. @since 0.3 */
#define SFT_SPAN_INIT(literal) { "" literal, sizeof(literal) - 1 }

/* A span for printf: printf("name " SFT_FMT "\n", SFT_ARG(tensor->name)). Prints it as it is, up
 * to a NUL. Texts of files may hold escape sequences of terminals: do not print to a person what
 * you do not trust, or use sft_error_text for errors. @since 0.3 */
#define SFT_FMT "%.*s"
#define SFT_ARG(span) (int)(span).len, (span).data

/* The span of a C string without its NUL; NULL gives an empty span. The bytes are not copied.
 * @since 0.1 */
SFT_API sft_span sft_span_cstr(const char *text);

/* Whether two spans have the same length and the same bytes. @since 0.1 */
SFT_API bool sft_span_equal(sft_span a, sft_span b);

/* Copy a span into `into`, which has room for cap bytes, and end it with NUL; what does not fit is
 * cut off after a whole character. Returns the span's length: it was cut if that is cap or more.
 * into may be NULL if cap is 0. Texts of files may hold NUL themselves. @since 0.3 */
SFT_API size_t sft_span_copy(sft_span span, char *into, size_t cap);

/* The same, safe for a terminal and on one line: control characters, what has no glyph and bytes
 * that are not UTF-8 become \n, \xHH or \u{HHHH}, and a backslash is doubled. Returns the length
 * of the whole text; what does not fit is cut off after a whole escape or character. @since 0.3 */
SFT_API size_t sft_span_escape(sft_span span, char *into, size_t cap);

/* ── Errors ──────────────────────────────────────────────────────────────── */

/* The kind of failure. The command's exit status and Python's exceptions follow from it.
 * @since 0.1 */
typedef enum sft_class {
    SFT_CLASS_NONE = 0,
    SFT_CLASS_INVALID = 1,     /* the bytes break a rule of the format */
    SFT_CLASS_UNSUPPORTED = 2, /* another format, which is not read here */
    SFT_CLASS_LIMIT = 3,       /* over a limit of the options, memory or host */
    SFT_CLASS_IO = 4,          /* a system call failed; see os_errno */
    SFT_CLASS_USAGE = 5,       /* the call's arguments are wrong */
    SFT_CLASS_STATE = 6,       /* valid arguments, but not now */
    SFT_CLASS_CANCELLED = 7    /* a callback of the caller asked to stop */
} sft_class;

/* Numbers never change; docs/errors.md has a row for each. The hundreds are families: 1xx file
 * contents, 2xx other formats, 3xx limits, 4xx system, 5xx usage, 6xx state, 7xx cancelled.
 * safetensors_codes.h has those of datasets, servers and other formats. @since 0.1 */
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

    SFT_OUT_OF_ORDER = 600,
    SFT_INCOMPLETE = 601,
    SFT_EXISTS = 602,
    SFT_IS_LINK = 603,
    SFT_WRITER_FAILED = 604,
    SFT_EDIT_INTERRUPTED = 605,
    SFT_EDIT_BUSY = 606,
    SFT_HARD_LINKS = 607,

    SFT_CANCELLED = 700
} sft_code;

/* What to try next, as a number that never moves: a program words it in terms of its own options.
 * More are in safetensors_codes.h. @since 0.1 */
typedef enum sft_hint {
    SFT_HINT_NONE = 0,
    SFT_HINT_DOWNLOAD_AGAIN = 1,
    SFT_HINT_BROKEN_WRITER = 2,
    SFT_HINT_REPAIR = 3,
    SFT_HINT_REPAIR_PADDING = 4,
    SFT_HINT_LEVEL_COMPAT = 5,
    SFT_HINT_LEVEL_STRICT = 6,
    SFT_HINT_LEGACY = 7,
    SFT_HINT_HEADER_LIMIT = 8,
    SFT_HINT_NEWER_VERSION = 9,
    SFT_HINT_DO_NOT_TRUST = 10,
    SFT_HINT_DOWNLOAD_SHARD = 11,
    SFT_HINT_VERSIONS_DIFFER = 12,
    SFT_HINT_READ_AS_TEXT = 13,
    SFT_HINT_GIT_LFS = 14,
    SFT_HINT_XET = 15,
    SFT_HINT_WEB_PAGE = 16,
    SFT_HINT_UNPACK = 17,
    SFT_HINT_CONVERT_CHECKPOINT = 18,
    SFT_HINT_PICKLE = 19,
    SFT_HINT_USE_GGUF = 20,
    SFT_HINT_USE_HDF5 = 21,
    SFT_HINT_GUNZIP = 22,
    SFT_HINT_UNZSTD = 23,
    SFT_HINT_USE_NUMPY = 24,
    SFT_HINT_NAME_INDEX = 25,
    SFT_HINT_BUILD_64_BIT = 26,
    SFT_HINT_READ_NOT_MAP = 27,
    SFT_HINT_FILE_CHANGES = 28,
    SFT_HINT_OPEN_FILES = 29,
    SFT_HINT_LINK_LEAVES = 30,
    SFT_HINT_LINK_NAMED = 31,
    SFT_HINT_LIST_TENSORS = 32,
    SFT_HINT_BORROW_OR_COPY = 33,
    SFT_HINT_SLICE_EXAMPLE = 34,
    SFT_HINT_SLICE_BYTES = 35,
    SFT_HINT_CHOOSE_TENSORS = 36,
    SFT_HINT_SATURATE = 37,
    SFT_HINT_REPLACE = 38,
    SFT_HINT_NEW_FOLDER = 39,
    SFT_HINT_FOLLOW_LINK = 40,
    SFT_HINT_HUB_CACHE = 41,
    SFT_HINT_HARD_LINKS = 42,
    SFT_HINT_OBJECT_STORE = 43,
    SFT_HINT_TRY_LATER = 44,
    SFT_HINT_RECOVER = 45,
    SFT_HINT_RECOVER_COPY = 46,
    SFT_HINT_RECOVER_OR_REMOVE = 47,
    SFT_HINT_RECOVER_UNLOCKED = 48,
    SFT_HINT_RECOVER_HOLE = 49,
    SFT_HINT_JOURNAL_REMOVE = 50,
    SFT_HINT_JOURNAL_OWNER = 51,
    SFT_HINT_TENSOR_SHARD = 92,
    SFT_HINT_FOLDER = 93,

    SFT_HINT_PROGRAM = 0x10000 /* from here on a program's own numbers; the library sets none */
} sft_hint;

#define SFT_NO_OFFSET UINT64_MAX
#define SFT_NO_TENSOR UINT32_MAX

/* Everything known about one failure. Allocated by the caller; it owns all it holds, so it may
 * be copied and outlives the file. It does not contain the path, which the caller knows, unless
 * the failure is of another file than the caller named, of a shard: then message begins with that
 * file's path and ": ". message reads "expected X, found Y"; it is UTF-8, escaped (no control
 * characters) and NUL-terminated. Never grows: new members take reserved space. @since 0.1 */
typedef struct sft_error {
    sft_code code;
    int32_t os_errno;    /* errno of the failed system call, or 0 */
    uint64_t offset;     /* absolute byte in the file (in path_len's), or SFT_NO_OFFSET */
    uint32_t tensor_len; /* bytes in tensor[], or SFT_NO_TENSOR */
    char tensor[256];    /* first bytes of the name, whole characters, not escaped */
    char message[512];
    sft_hint hint;   /* what to try next, or SFT_HINT_NONE */
    uint64_t needed; /* of a file cut short: the bytes it should have; else 0 */
    uint64_t path_len; /* bytes of the path that message begins with, or 0. @since 0.3 */
    uint64_t reserved[2];
} sft_error;

#define SFT_ERROR_INIT \
    { SFT_OK, 0, SFT_NO_OFFSET, SFT_NO_TENSOR, { 0 }, { 0 }, SFT_HINT_NONE, 0, 0, { 0 } }

/* How much is accepted, from most to least. COMPAT gives the official package's verdict on every
 * input. DEFAULT also refuses duplicate tensor names and metadata keys, entries that are not
 * JSON objects, a dtype that is not a string, and more than 64 dimensions. STRICT enforces every
 * MUST of the written format. @since 0.1 */
typedef enum sft_level {
    SFT_LEVEL_COMPAT = 0,
    SFT_LEVEL_DEFAULT = 1,
    SFT_LEVEL_STRICT = 2
} sft_level;

/* A row of the error table. Allocated by the library only. @since 0.1 */
typedef struct sft_code_info {
    sft_code code;
    const char *name;     /* "data_truncated": JSON and docs */
    const char *sentence; /* what it means, without a full stop */
    sft_class cls;
    const char *rule;     /* rule of docs/format.md, "R12", or NULL */
    sft_level level;      /* for rules: refused from this level on */
    sft_hint hint;        /* of its errors, where they have no other */
} sft_code_info;

/* The row of a code. Never NULL: an unknown number gives a row named "unknown". Static.
 * @since 0.1 */
SFT_API const sft_code_info *sft_code_describe(sft_code code);

/* The rows by position; NULL past the last. Static. @since 0.1 */
SFT_API const sft_code_info *sft_code_at(size_t i);

/* The text of a hint, without a full stop, in the library's words, which name no option. NULL
 * for SFT_HINT_NONE and for numbers that it does not know. Static.
 * @since 0.2 */
SFT_API const char *sft_hint_text(sft_hint hint);

/* A program's words for hints: a static sentence, or NULL for the library's own. They are given to
 * sft_error_text_as, and for JSON that the library writes by sft_sink_vtable.words. @since 0.3 */
typedef const char *(*sft_words_fn)(sft_hint hint);

/* Write an error as one line of text, without a newline, as the command prints it:
 *     PATH: byte 17: tensor "fc.weight": expected …, found …; HINT
 * of which path, byte, tensor and hint are there if they are known. path is what the program gave
 * to the call that failed, also where that was an index: that of the shard follows, and byte and
 * tensor after it. path may be NULL, err too (no error). All of it is safe for a terminal: control
 * characters and bytes that are not UTF-8 are escaped. Writes at most cap bytes, NUL included, cut
 * after a whole character; into may be NULL if cap is 0. Returns the length of the whole line,
 * without NUL. @since 0.3 */
SFT_API size_t sft_error_text(const sft_error *err, const char *path, char *into, size_t cap);

/* The same, with the hint in the program's words. words may be NULL. @since 0.3 */
SFT_API size_t sft_error_text_as(const sft_error *err, const char *path, sft_words_fn words,
                                 char *into, size_t cap);

/* Fill an error from a callback (source, sink, tick) and return code. text is a plain sentence,
 * cut to fit; control characters are escaped. os_errno is 0 if no system call failed. @since 0.1 */
SFT_API sft_code sft_error_set(sft_error *err, sft_code code, int32_t os_errno,
                               const char *text);

/* ── Memory, progress ────────────────────────────────────────────────────── */

/* A memory allocator. resize(ctx, NULL, 0, n) allocates n bytes; with new_size 0 it releases ptr
 * and returns NULL; otherwise it resizes ptr. old_size is the size requested before. It returns
 * NULL on failure; memory must be aligned for any type. It is called only on threads that call
 * the library, never on the library's own. ctx must outlive every object made with it. Never
 * grows. @since 0.1 */
typedef struct sft_allocator {
    void *(*resize)(void *ctx, void *ptr, size_t old_size, size_t new_size);
    void *ctx;
} sft_allocator;

/* Who is asked whether to go on waiting: while the library waits for bytes from a pipe, terminal
 * or socket, or for another program to let go of a file, it calls go_on every tenth of a second,
 * and after a signal, on the waiting thread. If go_on returns false the call fails with
 * SFT_IO_READ or SFT_IO_OPEN (EINTR). Meant for programs and bindings whose signal handlers only
 * set a flag. Without it, such a wait ends only when what is waited for comes. See
 * sft_open_options.wait. Never grows. @since 0.3 */
typedef struct sft_wait {
    bool (*go_on)(void *ctx);
    void *ctx;
} sft_wait;

/* Progress, cancelling and threads of a long call; NULL means none of them and one thread. tick
 * is called on the calling thread, at least once every 8 MiB of that thread's work. done and
 * total are bytes; total is SFT_SIZE_UNKNOWN if it is not known. If tick returns false, the call
 * stops all its threads and fails with SFT_CANCELLED. @since 0.1 */
typedef struct sft_job {
    size_t size;
    bool (*tick)(void *ctx, uint64_t done, uint64_t total); /* may be NULL */
    void *ctx;
    uint32_t threads; /* 0 = one per processor */
} sft_job;

#define SFT_JOB_INIT { sizeof(sft_job), NULL, NULL, 1 }

/* ── dtypes ──────────────────────────────────────────────────────────────── */

/* Numbers are names only. The order in which files are sorted is a column of the table
 * (sft_dtype_info). @since 0.1 */
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

/* A row of the table of dtypes. Allocated by the library only. @since 0.1 */
typedef struct sft_dtype_info {
    const char *name; /* as in the header, "BF16" */
    uint32_t bits;    /* per element: 4, 6, 8, 16, 32 or 64 */
    sft_kind kind;
    sft_dtype dtype;
    uint32_t order; /* from 0: its place in the official sort order, ascending */
} sft_dtype_info;

/* The row of a dtype; NULL for a value outside the enum. Static. @since 0.1 */
SFT_API const sft_dtype_info *sft_dtype_describe(sft_dtype dtype);

/* The rows in the official sort order, ascending; NULL past the last. Static. @since 0.2 */
SFT_API const sft_dtype_info *sft_dtype_at(size_t order);

/* The dtype that a header calls name (case matters). Returns false and leaves *out alone if the
 * name is unknown. @since 0.1 */
SFT_API bool sft_dtype_parse(sft_span name, sft_dtype *out);

/* Number of elements and bytes of a shape; either result may be NULL. shape may be NULL if rank
 * is 0, which is one element. SFT_SIZE_OVERFLOW if the product of the dimensions (from left to
 * right) or the number of bits exceeds 2^64 - 1; SFT_SIZE_PARTIAL_BYTE if the bits are not a
 * whole number of bytes. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_shape_size(sft_dtype dtype, const uint64_t *shape,
                                              uint32_t rank, uint64_t *elements,
                                              uint64_t *bytes, sft_error *err);

/* Write a shape as "[2, 3]", for people; "[]" if rank is 0. Writes at most cap bytes, NUL included,
 * and cuts what does not fit; into may be NULL if cap is 0. Returns the length of the whole text,
 * at most 22 bytes a dimension. @since 0.3 */
SFT_API size_t sft_shape_text(const uint64_t *shape, uint32_t rank, char *into, size_t cap);

/* ── Sources: where bytes come from ──────────────────────────────────────── */

#define SFT_SIZE_UNKNOWN UINT64_MAX

/* A contiguous run of bytes: of a source, from its first byte, or of a tensor, from its begin.
 * Never grows. @since 0.1 */
typedef struct sft_run {
    uint64_t offset;
    uint64_t len;
} sft_run;

/* The functions of a source. Tables of functions begin with their size, as the program that
 * defines them knows it. A member that is NULL or beyond that size is not supported; comments
 * say which are required. A table is static, or outlives every object that uses it. @since 0.2 */
typedef struct sft_source_vtable {
    size_t size; /* sizeof(sft_source_vtable) */
    /* Up to len bytes at offset into `into`; *got says how many and is less than len
     * only at the end. Never asked for bytes beyond a known size. Must be thread-safe
     * if a job with threads > 1 is used. A source of unknown size is read at ascending
     * offsets only. What it stores in err reaches the caller unchanged. Required. */
    sft_code (*read)(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                        sft_error *err);
    void (*close)(void *ctx); /* called once, by whoever owns the source */
    /* Bytes [offset, offset + len) of each run will be read soon and once, in this order: a hint
     * for sources whose reads take long. Several announcements follow one another. May be called
     * by any thread if read may. @since 0.2 */
    void (*expect)(void *ctx, const sft_run *runs, size_t count);
    /* Permission bits of the file that the bytes come from, of several those common to all;
     * 0: not known, as of memory and servers. @since 0.2 */
    uint32_t (*mode)(void *ctx);
} sft_source_vtable;

/* A source of bytes, passed by value. Never grows; its table does. size is the whole length, or
 * SFT_SIZE_UNKNOWN (a pipe, a range request), in which case nothing checks that all data is
 * there. Read it with sft_source_read rather than through its table. @since 0.2 */
typedef struct sft_source {
    void *ctx;
    const sft_source_vtable *vtable;
    uint64_t size;
    const void *base; /* all bytes in memory for as long as the source lives, or NULL */
    bool borrowed;    /* another source owns it: closing this one does nothing */
} sft_source;

/* Read up to len bytes at offset. *got is the number read, which is less than len only at the
 * end. SFT_BAD_ARGUMENT if the table cannot read. Thread-safe if the source's own function is.
 * @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_source_read(const sft_source *source, uint64_t offset,
                                               void *into, size_t len, size_t *got,
                                               sft_error *err);

/* Close a source, unless it is borrowed, and zero it. A zeroed source is ignored. @since 0.2 */
SFT_API void sft_source_close(sft_source *source);

/* A source over the caller's memory, which must stay unchanged while the source is used. Does
 * not allocate; thread-safe. @since 0.1 */
SFT_API sft_source sft_source_memory(const void *bytes, size_t len);

/* A source over a descriptor opened for reading, which stays the caller's and must stay open. A
 * regular file is read by position (the descriptor's own offset does not move), has a known size
 * and is thread-safe; a pipe is read forward and its size is unknown. Close it with
 * sft_source_close. On Windows descriptors are those of the C runtime that this library is linked
 * with, here and in sft_sink_fd and sft_open_fd. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_source_fd(int fd, const sft_allocator *alloc,
                                             sft_source *out, sft_error *err);

/* ── Sinks: where bytes go ───────────────────────────────────────────────── */

/* The functions of a sink; see sft_source_vtable for tables. Exactly one of finish and abandon
 * ends a sink and releases ctx: after a failed finish nothing else may be called. @since 0.2 */
typedef struct sft_sink_vtable {
    size_t size; /* sizeof(sft_sink_vtable) */
    /* The total length, if it is known: called once, before the first byte. */
    sft_code (*expect)(void *ctx, uint64_t total, sft_error *err);
    /* Required. */
    sft_code (*write)(void *ctx, uint64_t offset, const void *bytes, size_t len,
                         sft_error *err);
    sft_code (*finish)(void *ctx, sft_error *err); /* all written: publish */
    void (*abandon)(void *ctx);                    /* leave nothing behind */
    /* The result gets no permission bits for others than its owner that mode lacks. May be called
     * several times, until finish. @since 0.2 */
    sft_code (*limit_mode)(void *ctx, uint32_t mode, sft_error *err);
    /* The words for hints in JSON that the library writes here; see sft_words_fn. @since 0.2 */
    const char *(*words)(void *ctx, sft_hint hint);
} sft_sink_vtable;

/* A sink of bytes, passed by value. Never grows; its table does. Use the functions below rather
 * than the table. @since 0.2 */
typedef struct sft_sink {
    void *ctx;
    const sft_sink_vtable *vtable;
    bool seekable; /* accepts any offset; else only that of the next byte */
} sft_sink;

/* Tell a sink the total length before the first byte, write at an offset, and end it in one of
 * two ways: sft_sink_finish publishes, sft_sink_abandon leaves nothing behind. sft_sink_write
 * returns SFT_BAD_ARGUMENT if the table cannot write, and SFT_OUT_OF_ORDER for an offset that a
 * forward sink cannot take. The other functions do nothing if the table lacks them. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_sink_expect(const sft_sink *sink, uint64_t total,
                                               sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_sink_write(const sft_sink *sink, uint64_t offset,
                                              const void *bytes, size_t len, sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_sink_finish(const sft_sink *sink, sft_error *err);
SFT_API void sft_sink_abandon(const sft_sink *sink);
/* Bytes from a memory sink, owned by the caller. Free them with sft_buffer_free. A zeroed struct
 * is an empty buffer that uses libc's allocator. Never grows. @since 0.1 */
typedef struct sft_buffer {
    char *data; /* NULL when empty; not NUL-terminated */
    size_t len;
    size_t cap;
    sft_allocator alloc; /* resize NULL = libc */
} sft_buffer;

/* Free a buffer's bytes and empty it. @since 0.1 */
SFT_API void sft_buffer_free(sft_buffer *buffer);

/* A seekable sink that fills *buffer, which is emptied first and must outlive the sink.
 * Abandoning it empties the buffer again. @since 0.1 */
SFT_API sft_sink sft_sink_memory(sft_buffer *buffer);

/* A sink over a descriptor, which stays the caller's. It is seekable if the descriptor is a
 * regular file not opened for appending; offset 0 is then the start of the file. (On Windows one
 * whose offset is not 0 counts as opened for appending.) sft_sink_finish does not sync;
 * sft_sink_abandon takes nothing back. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_sink_fd(int fd, const sft_allocator *alloc,
                                           sft_sink *out, sft_error *err);

/* A forward sink that passes each piece to write(ctx, bytes, len, err). Any code other than
 * SFT_OK ends the work and is returned. write is not told of the end. Allocates one small block.
 * @since 0.1 */
typedef sft_code (*sft_write_fn)(void *ctx, const void *bytes, size_t len, sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_sink_callback(sft_write_fn write, void *ctx,
                                                 const sft_allocator *alloc, sft_sink *out,
                                                 sft_error *err);

/* What to do if the path to be written is a symbolic link. @since 0.1 */
typedef enum sft_link_policy {
    SFT_LINK_REPLACE = 0, /* the link becomes a file of its own */
    SFT_LINK_FOLLOW = 1,  /* its target is replaced */
    SFT_LINK_REFUSE = 2   /* SFT_IS_LINK */
} sft_link_policy;

/* @since 0.1 */
typedef struct sft_path_options {
    size_t size;
    bool no_sync;    /* skip fsync of file and folder */
    bool no_clobber; /* SFT_EXISTS if the target exists when it is published */
    sft_link_policy link;
    uint32_t mode;              /* permission bits; 0 = the old file's, else by umask */
    const sft_allocator *alloc; /* NULL = libc */
    bool has_mtime;             /* set the file's modification time to mtime_ns */
    int64_t mtime_ns;           /* nanoseconds since 1970 */
    bool direct;                /* bypass the page cache where possible, for large files that
                                   nobody reads soon. The sink then takes bytes in order only; a
                                   thread of its own writes 8 MiB while the next are taken, so
                                   that an error may be that of bytes given before. Not the
                                   default: it was measured to be slower */
    /* Some file systems (mounted object stores) cannot rename a file, and publishing fails with
     * SFT_IO_PUBLISH. With this, the old file is then removed and a new one written in its
     * place, copied from the finished hidden file in the same folder. Meanwhile, or after a
     * crash, readers find no file or an incomplete one. If that copy fails, the hidden
     * .NAME.sft-XXXXXX stays, because it is complete; the message names it. No effect where
     * files can be renamed. */
    bool in_place_unsafe;
    bool no_sync_folder; /* sync the bytes but not the name, which a power failure may then lose:
                            for many files whose folder is synced once at the end */
} sft_path_options;

#define SFT_PATH_OPTIONS_INIT                                                                  \
    { sizeof(sft_path_options), false, false, SFT_LINK_REPLACE, 0, NULL, false, 0, false, false, \
      false }

/* A sink for a file that appears complete or not at all. It writes an unnamed (or, where that is
 * not supported, hidden) file in the target's folder, preallocates, syncs, renames it over the
 * target and syncs the folder. Until sft_sink_finish the old file is untouched; sft_sink_abandon
 * leaves nothing behind. If sft_sink_finish fails, the old state is still there. After the
 * rename nothing is reported as a failure; a new file whose folder cannot be synced is removed
 * again. SFT_EXISTS, SFT_IS_LINK: see the options. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_sink_path(const char *path, const sft_path_options *options,
                                             sft_sink *out, sft_error *err);

/* Copy bytes [begin, end) of a source to the start of the sink and finish the sink; abandon it
 * on failure. end may be SFT_SIZE_UNKNOWN: to the end of the source. Ticks the job with bytes.
 * SFT_BUFFER_SIZE: a source in memory that ends before end. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_copy(const sft_source *from, uint64_t begin, uint64_t end,
                                        sft_sink to, const sft_job *job, sft_error *err);

/* ── Files ───────────────────────────────────────────────────────────────── */

/* An open, validated file. @since 0.1 */
typedef struct sft_file sft_file;

/* How tensor data is accessed. @since 0.1 */
typedef enum sft_mode {
    SFT_READ = 0,    /* positioned reads: a file that shrinks gives an error, never a signal */
    SFT_MAP = 1,     /* shared read-only map; if another process truncates the file,
                        touching the lost pages raises SIGBUS */
    SFT_MAP_COW = 2, /* private writable map: the file is never touched */
    SFT_AUTO = 3     /* map if the system allows it, else read */
} sft_mode;

#define SFT_MAX_HEADER_BYTES UINT64_C(100000000) /* the official cap */
#define SFT_MAX_RANK 64                          /* of level default, and of slices */

/* Files that stand elsewhere than in the system's folders: safetensors_io.h. @since 0.2 */
typedef struct sft_files sft_files;

/* A limit of 0 means its default. With defaults, nothing that the official package accepts is
 * refused, except by level. @since 0.1 */
typedef struct sft_open_options {
    size_t size;
    sft_level level;
    sft_mode mode;
    bool legacy;                 /* read the layout of 2022 (`offsets`, "float16") */
    bool header_only;            /* do not check that all data is there */
    uint64_t max_header_bytes;   /* default SFT_MAX_HEADER_BYTES, at most 2^31 - 1 */
    uint64_t max_tensors;        /* default none */
    uint64_t max_name_bytes;     /* default none; tensor names and metadata keys */
    uint64_t max_metadata;       /* pairs; default none */
    const sft_allocator *alloc;  /* NULL = libc; copied, its ctx must outlive the file */
    uint64_t reserved;           /* 0 */
    const char *beneath;         /* NULL, or the folder that the path begins with ("": the current
                                    one), if a file named the rest of the path (sft_open) */
    const sft_files *files;      /* NULL, or where the paths that it claims are opened: by sft_open,
                                    sft_scan_open and sft_source_path, and so by sets, labels and
                                    imports. Must outlive what is opened. @since 0.2 */
    const sft_wait *wait;        /* NULL, or who is asked while opening waits, and reading from what
                                    was opened, which it must outlive. @since 0.2 */
} sft_open_options;

#define SFT_OPEN_OPTIONS_INIT \
    { sizeof(sft_open_options), SFT_LEVEL_DEFAULT, SFT_READ, false, false, 0, 0, 0, 0, NULL, 0, \
      NULL, NULL, NULL }

/* Open a file and validate its header. On success close *out with sft_close. Tensor data is not
 * read. A file that breaks a rule gives the code of the first rule it breaks, as sft_diagnose then
 * has it: SFT_FOUND_* if it is something else. A pipe cannot be looked at again.
 *
 * SFT_IO_MAP: the system refuses to map the file (SFT_MAP, SFT_MAP_COW). SFT_EDIT_INTERRUPTED:
 * the journal of an edit lies beside the file (or beside the target of a link), and the file is
 * neither in the old nor in the new state; see sft_edit_recover. Every function that takes a
 * model's path checks this.
 *
 * With beneath, for names that come from an index or another file: what is opened must lie
 * beneath that folder, even if others change it meanwhile, and must be a regular file
 * (SFT_IO_NOT_FILE). Links that stay beneath it are followed, and so are those from a snapshot
 * of a Hugging Face cache to its blobs; any other link is SFT_INDEX_PATH. The same holds for
 * sft_scan_open and sft_repair_open. sft_edit_open and sft_edit_recover follow no links
 * (SFT_IS_LINK), except that with SFT_LINK_REPLACE the last part may be one. sft_set_open sets
 * beneath for each shard.
 *
 * Cost: one pass over the header. Memory: at most twice the header for real headers, six times
 * for the worst legal one; no allocation per tensor. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_open(const char *path, const sft_open_options *options,
                                        sft_file **out, sft_error *err);

/* Open from a descriptor (see sft_source_fd), which stays the caller's; mapped if the mode says
 * so. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_open_fd(int fd, const sft_open_options *options,
                                           sft_file **out, sft_error *err);

/* Open over memory, which is used in place and must stay unchanged until sft_close. Views work
 * in every mode except SFT_MAP_COW (SFT_BAD_ARGUMENT). @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_open_memory(const void *bytes, size_t len,
                                               const sft_open_options *options,
                                               sft_file **out, sft_error *err);

/* Open over the caller's source, which sft_close closes, or this function does on failure. Modes
 * other than SFT_READ and SFT_AUTO are SFT_BAD_ARGUMENT. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_open_source(sft_source source,
                                               const sft_open_options *options,
                                               sft_file **out, sft_error *err);

/* A source over the whole file at path, by the alloc, beneath, files and wait of options alone
 * (NULL: the system's file): any bytes, not only a model's. A pipe is read forward and its size
 * unknown. Thread-safe if it is not a pipe. Errors as of sft_open, without those of contents and
 * of edits. Close it with sft_source_close. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_source_path(const char *path, const sft_open_options *options,
                                               sft_source *out, sft_error *err);

/* Close a file. Its views, spans and tensors end with it. @since 0.1 */
SFT_API void sft_close(sft_file *file);

/* One tensor. Allocated by the library only, valid until sft_close; members may be appended, so
 * copy members rather than the struct. @since 0.1 */
typedef struct sft_tensor {
    sft_span name; /* UTF-8, unescaped; may be empty, may hold NUL */
    const uint64_t *shape;
    uint32_t rank;
    sft_dtype dtype;
    uint64_t begin, end; /* in the data region, as data_offsets */
    uint64_t offset;     /* of the first byte in the file: 8 + N + begin */
} sft_tensor;

/* Tensors. Index i counts in offset order everywhere (ties in header order). Costs O(1).
 * @since 0.2 */
SFT_API size_t sft_file_tensor_count(const sft_file *file);
/* The i-th tensor; NULL if i is out of range. @since 0.2 */
SFT_API const sft_tensor *sft_file_tensor_at(const sft_file *file, size_t i);
/* The index of a tensor of this file, for arrays of your own beside its tensors; SIZE_MAX if it is
 * not one. O(1) where the entries of the header stand in offset order, else O(log n). @since 0.3 */
SFT_API size_t sft_file_tensor_index(const sft_file *file, const sft_tensor *tensor);
/* The tensor of exactly that name, in O(1); NULL if there is none. @since 0.1 */
SFT_API const sft_tensor *sft_file_find(const sft_file *file, sft_span name);
SFT_API const sft_tensor *sft_file_find_cstr(const sft_file *file, const char *name);

/* An order of tensors. NAME compares bytes. NATURAL compares numbers inside names by value
 * ("layer.2" before "layer.10"). HEADER is the order of the entries in the header. @since 0.1 */
typedef enum sft_order {
    SFT_ORDER_OFFSET = 0,
    SFT_ORDER_NAME = 1,
    SFT_ORDER_NATURAL = 2,
    SFT_ORDER_HEADER = 3
} sft_order;

/* Fill out[sft_file_tensor_count(file)] with indexes in that order. Allocates as much again
 * while it sorts: O(n log n). @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_file_order(const sft_file *file, sft_order order,
                                              uint32_t *out, sft_error *err);

/* Selects tensors: false omits one. @since 0.2 */
typedef bool (*sft_match_fn)(void *ctx, const sft_tensor *tensor);

/* Length of the whole file, or SFT_SIZE_UNKNOWN. @since 0.1 */
SFT_API uint64_t sft_file_size(const sft_file *file);
/* N, the header's length as stored; data begins at 8 + N (sft_file_data_offset). @since 0.1 */
SFT_API uint64_t sft_file_header_bytes(const sft_file *file);
SFT_API uint64_t sft_file_data_offset(const sft_file *file);
/* Bytes of the data region: the end of its last tensor. @since 0.1 */
SFT_API uint64_t sft_file_data_bytes(const sft_file *file);
/* The N bytes of the header, exactly as stored. @since 0.1 */
SFT_API sft_span sft_file_header(const sft_file *file);
/* Whether all data was found to be there (known size, not header_only). @since 0.1 */
SFT_API bool sft_file_complete(const sft_file *file);
SFT_API bool sft_file_is_mapped(const sft_file *file);
SFT_API sft_level sft_file_level(const sft_file *file);
/* Largest power of two, at most 4096, that divides the offset of the data region. @since 0.1 */
SFT_API uint32_t sft_file_alignment(const sft_file *file);
/* Whether the tensor's data is aligned for its dtype in the file, and so in a map. @since 0.1 */
SFT_API bool sft_tensor_aligned(const sft_tensor *tensor);
/* Bytes of the tensor's data, end - begin, and its elements: 1 if the rank is 0. @since 0.3 */
SFT_API uint64_t sft_tensor_bytes(const sft_tensor *tensor);
SFT_API uint64_t sft_tensor_elements(const sft_tensor *tensor);

/* A pair of __metadata__. Never grows. @since 0.1 */
typedef struct sft_pair {
    sft_span key, value;
} sft_pair;

/* Whether the header has a __metadata__ that is not null; it may still be empty. @since 0.1 */
SFT_API bool sft_file_has_metadata(const sft_file *file);
SFT_API size_t sft_file_metadata_count(const sft_file *file);
/* The i-th pair, in file order; two empty spans with data NULL if i is out of range. @since 0.1 */
SFT_API sft_pair sft_file_metadata_at(const sft_file *file, size_t i);
/* The value of a key, in O(1). Returns false and leaves *value alone if the key is absent.
 * @since 0.1 */
SFT_API bool sft_file_metadata_get(const sft_file *file, sft_span key, sft_span *value);
SFT_API bool sft_file_metadata_get_cstr(const sft_file *file, const char *key, sft_span *value);

/* ── Reading tensors ─────────────────────────────────────────────────────── */

/* The tensor must be one of that file, here and below: of a set, that of its shard
 * (sft_set_shard_at). Another's is SFT_BAD_ARGUMENT.
 *
 * Get a pointer to the tensor's bytes in the map or memory, valid until sft_close: end - begin
 * bytes, little-endian as stored, possibly unaligned. SFT_NOT_MAPPED if the file is read by
 * position. A tensor without bytes gives a non-NULL pointer that must not be read. No copy, no
 * allocation. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_view(const sft_file *file, const sft_tensor *tensor,
                                        const void **out, sft_error *err);

/* The same, writable, for SFT_MAP_COW only (else SFT_NOT_MAPPED). Changes are visible through
 * this sft_file only. Threads must not write the same tensor at once. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_view_writable(const sft_file *file,
                                                 const sft_tensor *tensor, void **out,
                                                 sft_error *err);

/* Bytes obtained from sft_borrow. Never grows. @since 0.1 */
typedef struct sft_loan {
    const void *data;
    size_t len;
    void *owned; /* the copy to be released, or NULL for a view */
} sft_loan;

/* Get the tensor's bytes whatever the mode: a view if there is one, else a copy. Give them back
 * with sft_return before sft_close. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_borrow(const sft_file *file, const sft_tensor *tensor,
                                          sft_loan *out, sft_error *err);
SFT_API void sft_return(const sft_file *file, sft_loan *loan);

/* Copy the tensor to dst, which must have exactly len = end - begin bytes (else
 * SFT_BUFFER_SIZE). SFT_IO_SHRUNK if the file was cut short since it was opened. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_read_into(const sft_file *file, const sft_tensor *tensor,
                                             void *dst, size_t len, sft_error *err);

/* A tensor and where to copy it. Never grows. @since 0.1 */
typedef struct sft_read {
    const sft_tensor *tensor;
    void *dst; /* tensor->end - tensor->begin bytes */
    size_t len;
} sft_read;

/* Copy many tensors, merging reads that are close together, with job->threads threads. On
 * failure the contents of the buffers are unspecified. Ticks the job with bytes. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_read_many(const sft_file *file, const sft_read *reads,
                                             size_t count, const sft_job *job,
                                             sft_error *err);

/* Read len bytes at an absolute offset of the file: all of them, or SFT_IO_SHRUNK; beyond the end
 * of memory SFT_BAD_ARGUMENT. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_read_bytes(const sft_file *file, uint64_t offset, void *dst,
                                           size_t len, sft_error *err);

/* The file's bytes as a source, for sft_copy and parts; borrowed, valid until sft_close.
 * @since 0.1 */
SFT_API sft_source sft_file_source(const sft_file *file);

/* ── Slices ──────────────────────────────────────────────────────────────── */

/* A resolved dimension: count elements start, start + step, …, all inside the dimension. step
 * may be negative. Never grows. @since 0.1 */
typedef struct sft_range {
    uint64_t start;
    uint64_t count;
    int64_t step;
} sft_range;

/* A resolved selection of a tensor of at most SFT_MAX_RANK dimensions. If bit d of dropped is
 * set, dimension d was indexed by an integer and is absent from the result's shape. Never grows.
 * @since 0.1 */
typedef struct sft_slice {
    uint32_t rank;
    uint64_t dropped;
    sft_range range[SFT_MAX_RANK];
} sft_slice;

/* Kinds of parts of an index expression. @since 0.2 */
typedef enum sft_slice_part_kind {
    SFT_SLICE_PART_INDEX = 0,   /* one element; a negative value counts from the end */
    SFT_SLICE_PART_RANGE = 1,   /* start:stop:step, clamped as in numpy */
    SFT_SLICE_PART_ELLIPSIS = 2 /* all dimensions that are missing, whole; at most once */
} sft_slice_part_kind;

/* One part of an index expression, before it is applied to a shape. Never grows. @since 0.2 */
typedef struct sft_slice_part {
    sft_slice_part_kind kind;
    int64_t value; /* INDEX */
    int64_t start, stop, step;
    bool has_start, has_stop, has_step; /* RANGE; false: omitted */
} sft_slice_part;

/* Apply an index expression to a shape, by numpy's rules; missing trailing dimensions are taken
 * whole. SFT_SLICE_RANK: too many parts, or rank over 64. SFT_SLICE_BOUNDS: an integer out of
 * range. SFT_SLICE_STEP: step 0. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_slice_resolve(const uint64_t *shape, uint32_t rank,
                                                 const sft_slice_part *parts, size_t count,
                                                 sft_slice *out, sft_error *err);

/* The same from text, with or without brackets: "[1:3, ::-1, ..., -1]". SFT_SLICE_SYNTAX:
 * err->offset is the position in the text. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_slice_parse(const uint64_t *shape, uint32_t rank,
                                               sft_span text, sft_slice *out, sft_error *err);

/* Store the result's shape in out[SFT_MAX_RANK] and return its rank. @since 0.1 */
SFT_API uint32_t sft_slice_shape(const sft_slice *slice, uint64_t *out);

/* Number of elements and bytes of the result; either may be NULL. SFT_SLICE_PARTIAL_BYTE if the
 * elements of a dtype of less than 8 bits fill no whole number of bytes; whether each run of them
 * starts and ends on whole bytes is up to sft_runs_begin. SFT_SIZE_OVERFLOW. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_slice_size(const sft_slice *slice, sft_dtype dtype,
                                              uint64_t *elements, uint64_t *bytes,
                                              sft_error *err);

/* An iterator over a slice's bytes, in the order of the result. A plain value without
 * allocation, which may be copied to remember a position. Members are private. Never grows.
 * @since 0.1 */
typedef struct sft_runs {
    uint32_t rank; /* outer dimensions still walked */
    uint64_t run_bytes;
    uint64_t left; /* runs to come */
    uint64_t position;
    uint64_t at[SFT_MAX_RANK];
    uint64_t count[SFT_MAX_RANK];
    int64_t stride[SFT_MAX_RANK]; /* bytes */
} sft_runs;

/* Begin to iterate. Runs are as long as possible: whole inner dimensions become one run.
 * SFT_SLICE_PARTIAL_BYTE; SFT_SLICE_RANK: the slice has another rank; SFT_SLICE_BOUNDS: it does
 * not fit this shape. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_runs_begin(const sft_tensor *tensor, const sft_slice *slice,
                                              sft_runs *out, sft_error *err);
/* Get the next run; false at the end. Amortised O(1). @since 0.1 */
SFT_API bool sft_runs_next(sft_runs *runs, sft_run *out);

/* Copy the slice, packed, to dst, which must have exactly its size (else SFT_BUFFER_SIZE). Reads
 * only the bytes needed, and runs that are close together at once. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_slice_read(const sft_file *file, const sft_tensor *tensor,
                                              const sft_slice *slice, void *dst, size_t len,
                                              sft_error *err);

/* ── Writing ─────────────────────────────────────────────────────────────── */

/* The description of a tensor to be written. Never grows. @since 0.1 */
typedef struct sft_spec {
    sft_span name;
    sft_dtype dtype;
    uint32_t rank;
    const uint64_t *shape;
} sft_spec;

/* @since 0.1 */
typedef struct sft_plan_options {
    size_t size;
    bool keep_order;           /* keep the order given; default: by dtype, descending, then name */
    bool has_metadata;         /* write __metadata__ even with no pairs */
    uint32_t align;            /* of the data's start: 8 (default), 64, 256, 4096, … */
    uint64_t max_header_bytes; /* default SFT_MAX_HEADER_BYTES */
    const sft_allocator *alloc;
    uint64_t spare; /* least number of spaces at the header's end, for later edits */
    uint64_t min_header_bytes; /* least size of the header, including spaces */
    sft_level level; /* the file must be readable at this level: DEFAULT refuses rank over
                        SFT_MAX_RANK (SFT_RANK_TOO_LARGE), STRICT control characters in names */
    sft_pair (*pair_at)(const void *ctx, size_t i); /* gives the metadata, i < metadata_count,
                                                       in place of the array */
    const void *pair_ctx;
} sft_plan_options;

#define SFT_PLAN_OPTIONS_INIT \
    { sizeof(sft_plan_options), false, false, 8, 0, NULL, 0, 0, SFT_LEVEL_DEFAULT, NULL, NULL }

/* A plan of a file: order, offsets, header text and total size, computed from names, dtypes and
 * shapes. Holds copies of all it needs. @since 0.1 */
typedef struct sft_plan sft_plan;

/* Plan a file. Metadata is sorted by key. SFT_NAME_RESERVED: a tensor named __metadata__.
 * SFT_TENSOR_DUPLICATE, SFT_METADATA_KEY_DUPLICATE, SFT_SIZE_OVERFLOW, SFT_SIZE_PARTIAL_BYTE.
 * SFT_HEADER_UTF8: a name or metadata that is not UTF-8. SFT_HEADER_TOO_LARGE,
 * SFT_RANK_TOO_LARGE: see the options. Free with sft_plan_free. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_plan_new(const sft_spec *specs, size_t count,
                                            const sft_pair *metadata, size_t metadata_count,
                                            const sft_plan_options *options, sft_plan **out,
                                            sft_error *err);
SFT_API void sft_plan_free(sft_plan *plan);
/* Size of the whole file. @since 0.1 */
SFT_API uint64_t sft_plan_total(const sft_plan *plan);
/* What the file begins with: the 8 bytes of the length, and the header. @since 0.1 */
SFT_API sft_span sft_plan_head(const sft_plan *plan);
/* Number of tensors. @since 0.2 */
SFT_API size_t sft_plan_tensor_count(const sft_plan *plan);
/* The tensors in file order; name and shape live as long as the plan. NULL if i is out of range.
 * @since 0.2 */
SFT_API const sft_tensor *sft_plan_tensor_at(const sft_plan *plan, size_t i);
/* The index in file order of the i-th spec given to sft_plan_new. @since 0.1 */
SFT_API size_t sft_plan_position(const sft_plan *plan, size_t spec);

/* A file being written. The first failure is remembered: every later call returns it, and
 * nothing is published. @since 0.1 */
typedef struct sft_writer sft_writer;

/* Begin to write a planned file; the header is written at once. The sink belongs to the writer,
 * and is abandoned if this fails. The plan must outlive the writer. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_writer_begin(const sft_plan *plan, sft_sink sink,
                                              sft_writer **out, sft_error *err);
/* Options of a writer without a plan, which adds tensors one after another and writes the header
 * last, into space reserved for it. @since 0.1 */
typedef struct sft_writer_options {
    size_t size;
    uint64_t header_bytes; /* N; 0 = 64 KiB. A tensor takes about 110 bytes and its name */
    uint32_t align;       /* of the data's start, as in the plan's options */
    const sft_pair *metadata; /* copied */
    size_t metadata_count;
    const sft_allocator *alloc;
} sft_writer_options;

#define SFT_WRITER_OPTIONS_INIT { sizeof(sft_writer_options), 0, 8, NULL, 0, NULL }

/* Begin to write without a plan. The sink belongs to the writer, as above, and must be seekable
 * (else SFT_OUT_OF_ORDER). Until sft_writer_finish the file has no header. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_writer_begin_unplanned(const sft_writer_options *options,
                                                          sft_sink sink, sft_writer **out,
                                                          sft_error *err);
/* Add a tensor after the others; *i is its index for the functions below. What a plan refuses, a
 * name already used, and an entry for which the header has no space left (SFT_HEADER_TOO_LARGE)
 * are refused at once, and the writer continues without that tensor. For
 * sft_writer_begin_unplanned only. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_writer_add(sft_writer *writer, const sft_spec *spec,
                                              size_t *i, sft_error *err);
/* Write the next piece of tensor i (file order). The pieces of a tensor must be in order.
 * Tensors may come in any order if the sink is seekable, else in file order (SFT_OUT_OF_ORDER).
 * SFT_BUFFER_SIZE: more bytes than planned. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_writer_put(sft_writer *writer, size_t i, const void *bytes,
                                              size_t len, sft_error *err);
/* The same with the next len bytes of tensor i from offset begin of a source, which stays the
 * caller's. If source and sink are files and the system can, it copies them without passing them
 * through memory. Ticks the job with bytes, of len. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_writer_copy(sft_writer *writer, size_t i,
                                               const sft_source *from, uint64_t begin,
                                               uint64_t len, const sft_job *job,
                                               sft_error *err);
/* Publish the file and free the writer, which is freed on failure, too. SFT_INCOMPLETE names a
 * tensor that lacks bytes. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_writer_finish(sft_writer *writer, sft_error *err);
/* Leave nothing behind and free the writer. NULL is ignored. @since 0.1 */
SFT_API void sft_writer_abandon(sft_writer *writer);

/* A tensor to be written from a source: as many bytes from begin on as dtype and shape require.
 * What it points to must outlive the call that writes it. Never grows. @since 0.1 */
typedef struct sft_part {
    sft_spec spec;
    const sft_source *source;
    uint64_t begin;
} sft_part;

/* A tensor of an open file, unchanged. source is what sft_file_source returned for that file,
 * kept by the caller. @since 0.1 */
SFT_API sft_part sft_part_of(const sft_tensor *tensor, const sft_source *source);

/* Write a whole file of parts: plan, copy, publish. The sink is finished, or abandoned on
 * failure. SFT_BUFFER_SIZE: memory that is shorter than a part. Parts of a source that can only
 * be read forward must be in file order. Ticks the job with the bytes of all tensors. Memory: the
 * plan, and 256 KiB if bytes pass through memory.
 * Errors: those of sft_plan_new and of the sources. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_save_parts(const sft_part *parts, size_t count,
                                              const sft_pair *metadata, size_t metadata_count,
                                              const sft_plan_options *options, sft_sink sink,
                                              const sft_job *job, sft_error *err);

/* An array in memory, to be saved as a tensor: len bytes at data, which dtype and shape must
 * require, packed and little-endian as in a file. Never grows. @since 0.3 */
typedef struct sft_array {
    sft_spec spec;
    const void *data; /* may be NULL if len is 0 */
    size_t len;
} sft_array;

/* Save arrays as the file at path, complete or not at all: sft_sink_path by the options, and
 * sft_save_parts. Nothing of what the arguments point to is needed after the call, which copies no
 * data. Ticks the job with bytes. SFT_BUFFER_SIZE: an array's len is not what its dtype and shape
 * require; errors of arrays have their name. Others as of sft_plan_new.
 *
 *     const uint64_t shape[] = { 2, 3 };
 *     const float w[6] = { 1, 2, 3, 4, 5, 6 };
 *     const sft_array all[] = { { { SFT_SPAN_INIT("w"), SFT_F32, 2, shape }, w, sizeof w } };
 *     const sft_pair format = { SFT_SPAN_INIT("format"), SFT_SPAN_INIT("pt") };
 *     sft_code code = sft_save_arrays("w.safetensors", all, 1, &format, 1, NULL, NULL, &err);
 * @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_save_arrays(const char *path, const sft_array *arrays,
                                               size_t count, const sft_pair *metadata,
                                               size_t metadata_count,
                                               const sft_path_options *options,
                                               const sft_job *job, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
