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

#define SFT_VERSION_MAJOR 0
#define SFT_VERSION_MINOR 2
#define SFT_VERSION_PATCH 0
#define SFT_VERSION_STRING "0.2.0"

SFT_API const char *sft_version(void);

SFT_API const char *sft_build_info(void);

typedef struct sft_span {
    const char *data;
    size_t len;
} sft_span;

SFT_API sft_span sft_span_cstr(const char *text);

SFT_API bool sft_span_equal(sft_span a, sft_span b);

typedef enum sft_class {
    SFT_CLASS_NONE = 0,
    SFT_CLASS_INVALID = 1,
    SFT_CLASS_UNSUPPORTED = 2,
    SFT_CLASS_LIMIT = 3,
    SFT_CLASS_IO = 4,
    SFT_CLASS_USAGE = 5,
    SFT_CLASS_STATE = 6,
    SFT_CLASS_CANCELLED = 7
} sft_class;

typedef enum sft_code {
    SFT_OK = 0,

    SFT_HEADER_TOO_SMALL = 100,
    SFT_HEADER_TOO_LARGE = 101,
    SFT_HEADER_TRUNCATED = 102,
    SFT_HEADER_UTF8 = 103,

    SFT_JSON_SYNTAX = 110,
    SFT_JSON_STRING = 111,
    SFT_JSON_NUMBER = 112,
    SFT_JSON_DEPTH = 113,
    SFT_JSON_TRAILING = 114,

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

    SFT_TENSOR_DUPLICATE = 140,
    SFT_METADATA_KEY_DUPLICATE = 141,
    SFT_ENTRY_NOT_OBJECT = 142,
    SFT_DTYPE_NOT_STRING = 143,
    SFT_RANK_TOO_LARGE = 144,

    SFT_STRICT_FIRST_BYTE = 150,
    SFT_STRICT_PADDING = 151,
    SFT_STRICT_FIELD = 152,
    SFT_STRICT_NAME = 153,
    SFT_STRICT_METADATA = 154,

    SFT_OFFSETS_REVERSED = 160,
    SFT_OFFSETS_GAP = 161,
    SFT_OFFSETS_OVERLAP = 162,
    SFT_SIZE_OVERFLOW = 163,
    SFT_SIZE_PARTIAL_BYTE = 164,
    SFT_SIZE_MISMATCH = 165,
    SFT_DATA_TRUNCATED = 166,
    SFT_DATA_TRAILING = 167,

    SFT_INDEX_TYPE = 180,
    SFT_INDEX_PATH = 181,
    SFT_INDEX_SHARD_MISSING = 182,
    SFT_INDEX_TENSOR_MISSING = 183,
    SFT_INDEX_TENSOR_MISPLACED = 184,
    SFT_INDEX_TENSOR_DUPLICATE = 185,

    SFT_MANIFEST_MISSING = 190,
    SFT_MANIFEST_TYPE = 191,
    SFT_DATASET_SHARD = 192,
    SFT_DATASET_DUPLICATE = 193,
    SFT_DATASET_RECEIPT = 194,

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
    SFT_HINT_CACHE_OTHER_FILE = 52,
    SFT_HINT_CACHE_OWNER = 53,
    SFT_HINT_CACHE_MODE = 54,
    SFT_HINT_CACHE_KEPT = 55,
    SFT_HINT_NO_MANIFEST = 56,
    SFT_HINT_VERIFY_DATASET = 57,
    SFT_HINT_LAST_WINS = 58,
    SFT_HINT_DATASET_EXISTS = 59,
    SFT_HINT_OVERWRITE_DATASET = 60,
    SFT_HINT_DATASET_BEGIN = 61,
    SFT_HINT_DATASET_LINKS = 62,
    SFT_HINT_ADOPT = 63,
    SFT_HINT_SINGLE_WRITER = 64,
    SFT_HINT_BEGIN_AGAIN = 65,

    SFT_HINT_PROGRAM = 0x10000
} sft_hint;

#define SFT_NO_OFFSET UINT64_MAX
#define SFT_NO_TENSOR UINT32_MAX

typedef struct sft_error {
    sft_code code;
    int32_t os_errno;
    uint64_t offset;
    uint32_t tensor_len;
    char tensor[256];
    char message[512];
    sft_hint hint;
    uint64_t needed;
    uint64_t reserved[3];
} sft_error;

#define SFT_ERROR_INIT \
    { SFT_OK, 0, SFT_NO_OFFSET, SFT_NO_TENSOR, { 0 }, { 0 }, SFT_HINT_NONE, 0, { 0 } }

typedef enum sft_level {
    SFT_LEVEL_COMPAT = 0,
    SFT_LEVEL_DEFAULT = 1,
    SFT_LEVEL_STRICT = 2
} sft_level;

typedef struct sft_code_info {
    sft_code code;
    const char *name;
    const char *sentence;
    sft_class cls;
    const char *rule;
    sft_level level;
    sft_hint hint;
} sft_code_info;

SFT_API const sft_code_info *sft_code_describe(sft_code code);

SFT_API const sft_code_info *sft_code_at(size_t i);

SFT_API const char *sft_hint_text(sft_hint hint);

SFT_API void sft_on_hint(const char *(*words)(sft_hint hint));

SFT_API sft_code sft_error_set(sft_error *err, sft_code code, int32_t os_errno,
                               const char *text);

typedef struct sft_allocator {
    void *(*resize)(void *ctx, void *ptr, size_t old_size, size_t new_size);
    void *ctx;
} sft_allocator;

SFT_API void sft_on_wait(bool (*go_on)(void *ctx), void *ctx);

typedef struct sft_job {
    size_t size;
    bool (*tick)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
    uint32_t threads;
} sft_job;

#define SFT_JOB_INIT { sizeof(sft_job), NULL, NULL, 1 }

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

#define SFT_DTYPE_COUNT 22

typedef enum sft_kind {
    SFT_KIND_BOOL = 0,
    SFT_KIND_UINT,
    SFT_KIND_INT,
    SFT_KIND_FLOAT,
    SFT_KIND_COMPLEX
} sft_kind;

typedef struct sft_dtype_info {
    const char *name;
    uint32_t bits;
    sft_kind kind;
    sft_dtype dtype;
    uint32_t order;
} sft_dtype_info;

SFT_API const sft_dtype_info *sft_dtype_describe(sft_dtype dtype);

SFT_API const sft_dtype_info *sft_dtype_at(size_t order);

SFT_API bool sft_dtype_parse(sft_span name, sft_dtype *out);

SFT_API SFT_NODISCARD sft_code sft_shape_size(sft_dtype dtype, const uint64_t *shape,
                                              uint32_t rank, uint64_t *elements,
                                              uint64_t *bytes, sft_error *err);

#define SFT_SIZE_UNKNOWN UINT64_MAX

typedef struct sft_source_vtable {
    size_t size;

    sft_code (*read)(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                        sft_error *err);
    void (*close)(void *ctx);
} sft_source_vtable;

typedef struct sft_source {
    void *ctx;
    const sft_source_vtable *vtable;
    uint64_t size;
    const void *base;
    bool borrowed;
} sft_source;

SFT_API SFT_NODISCARD sft_code sft_source_read(const sft_source *source, uint64_t offset,
                                               void *into, size_t len, size_t *got,
                                               sft_error *err);

SFT_API void sft_source_close(sft_source *source);

SFT_API sft_source sft_source_memory(const void *bytes, size_t len);

SFT_API SFT_NODISCARD sft_code sft_source_fd(int fd, const sft_allocator *alloc,
                                             sft_source *out, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_source_strided(sft_dtype dtype, const uint64_t *shape,
                                                  uint32_t rank, const void *base,
                                                  const int64_t *strides,
                                                  const sft_allocator *alloc, sft_source *out,
                                                  sft_error *err);

typedef struct sft_sink_vtable {
    size_t size;

    sft_code (*expect)(void *ctx, uint64_t total, sft_error *err);

    sft_code (*write)(void *ctx, uint64_t offset, const void *bytes, size_t len,
                         sft_error *err);
    sft_code (*finish)(void *ctx, sft_error *err);
    void (*abandon)(void *ctx);
} sft_sink_vtable;

typedef struct sft_sink {
    void *ctx;
    const sft_sink_vtable *vtable;
    bool seekable;
} sft_sink;

SFT_API SFT_NODISCARD sft_code sft_sink_expect(const sft_sink *sink, uint64_t total,
                                               sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_sink_write(const sft_sink *sink, uint64_t offset,
                                              const void *bytes, size_t len, sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_sink_finish(const sft_sink *sink, sft_error *err);
SFT_API void sft_sink_abandon(const sft_sink *sink);

typedef struct sft_buffer {
    char *data;
    size_t len;
    size_t cap;
    sft_allocator alloc;
} sft_buffer;

SFT_API void sft_buffer_free(sft_buffer *buffer);

SFT_API sft_sink sft_sink_memory(sft_buffer *buffer);

SFT_API SFT_NODISCARD sft_code sft_sink_fd(int fd, const sft_allocator *alloc,
                                           sft_sink *out, sft_error *err);

typedef sft_code (*sft_write_fn)(void *ctx, const void *bytes, size_t len, sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_sink_callback(sft_write_fn write, void *ctx,
                                                 const sft_allocator *alloc, sft_sink *out,
                                                 sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_sink_tee(sft_sink first, sft_sink second,
                                            const sft_allocator *alloc, sft_sink *out,
                                            sft_error *err);

typedef enum sft_link_policy {
    SFT_LINK_REPLACE = 0,
    SFT_LINK_FOLLOW = 1,
    SFT_LINK_REFUSE = 2
} sft_link_policy;

typedef struct sft_path_options {
    size_t size;
    bool no_sync;
    bool no_clobber;
    sft_link_policy link;
    uint32_t mode;
    const sft_allocator *alloc;
    bool has_mtime;
    int64_t mtime_ns;
    bool direct;

    bool in_place_unsafe;
    bool no_sync_folder;
} sft_path_options;

#define SFT_PATH_OPTIONS_INIT                                                                  \
    { sizeof(sft_path_options), false, false, SFT_LINK_REPLACE, 0, NULL, false, 0, false, false, \
      false }

SFT_API SFT_NODISCARD sft_code sft_sink_path(const char *path, const sft_path_options *options,
                                             sft_sink *out, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_copy(const sft_source *from, uint64_t begin, uint64_t end,
                                        sft_sink to, const sft_job *job, sft_error *err);

typedef struct sft_file sft_file;

typedef enum sft_mode {
    SFT_READ = 0,
    SFT_MAP = 1,
    SFT_MAP_COW = 2,
    SFT_AUTO = 3
} sft_mode;

#define SFT_MAX_HEADER_BYTES UINT64_C(100000000)
#define SFT_MAX_RANK 64

typedef struct sft_open_options {
    size_t size;
    sft_level level;
    sft_mode mode;
    bool legacy;
    bool header_only;
    uint64_t max_header_bytes;
    uint64_t max_tensors;
    uint64_t max_name_bytes;
    uint64_t max_metadata;
    const sft_allocator *alloc;
    uint64_t listed_s;
    const char *beneath;
} sft_open_options;

#define SFT_OPEN_OPTIONS_INIT \
    { sizeof(sft_open_options), SFT_LEVEL_DEFAULT, SFT_READ, false, false, 0, 0, 0, 0, NULL, 0, \
      NULL }

SFT_API SFT_NODISCARD sft_code sft_open(const char *path, const sft_open_options *options,
                                        sft_file **out, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_open_fd(int fd, const sft_open_options *options,
                                           sft_file **out, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_open_memory(const void *bytes, size_t len,
                                               const sft_open_options *options,
                                               sft_file **out, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_open_source(sft_source source,
                                               const sft_open_options *options,
                                               sft_file **out, sft_error *err);

SFT_API void sft_close(sft_file *file);

typedef struct sft_tensor {
    sft_span name;
    const uint64_t *shape;
    uint32_t rank;
    sft_dtype dtype;
    uint64_t begin, end;
    uint64_t offset;
} sft_tensor;

SFT_API size_t sft_file_tensor_count(const sft_file *file);

SFT_API const sft_tensor *sft_file_tensor_at(const sft_file *file, size_t i);

SFT_API const sft_tensor *sft_file_find(const sft_file *file, sft_span name);
SFT_API const sft_tensor *sft_file_find_cstr(const sft_file *file, const char *name);

typedef enum sft_order {
    SFT_ORDER_OFFSET = 0,
    SFT_ORDER_NAME = 1,
    SFT_ORDER_NATURAL = 2,
    SFT_ORDER_HEADER = 3
} sft_order;

SFT_API SFT_NODISCARD sft_code sft_file_order(const sft_file *file, sft_order order,
                                              uint32_t *out, sft_error *err);

SFT_API uint64_t sft_file_size(const sft_file *file);

SFT_API uint64_t sft_file_header_bytes(const sft_file *file);
SFT_API uint64_t sft_file_data_offset(const sft_file *file);

SFT_API uint64_t sft_file_data_bytes(const sft_file *file);

SFT_API sft_span sft_file_header(const sft_file *file);

SFT_API bool sft_file_complete(const sft_file *file);
SFT_API bool sft_file_is_mapped(const sft_file *file);
SFT_API sft_level sft_file_level(const sft_file *file);

SFT_API uint32_t sft_file_alignment(const sft_file *file);

SFT_API bool sft_tensor_aligned(const sft_tensor *tensor);

typedef struct sft_pair {
    sft_span key, value;
} sft_pair;

SFT_API bool sft_file_has_metadata(const sft_file *file);
SFT_API size_t sft_file_metadata_count(const sft_file *file);

SFT_API sft_pair sft_file_metadata_at(const sft_file *file, size_t i);

SFT_API bool sft_file_metadata_get(const sft_file *file, sft_span key, sft_span *value);
SFT_API bool sft_file_metadata_get_cstr(const sft_file *file, const char *key, sft_span *value);

SFT_API SFT_NODISCARD sft_code sft_view(const sft_file *file, const sft_tensor *tensor,
                                        const void **out, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_view_writable(const sft_file *file,
                                                 const sft_tensor *tensor, void **out,
                                                 sft_error *err);

typedef struct sft_loan {
    const void *data;
    size_t len;
    void *owned;
} sft_loan;

SFT_API SFT_NODISCARD sft_code sft_borrow(const sft_file *file, const sft_tensor *tensor,
                                          sft_loan *out, sft_error *err);
SFT_API void sft_return(const sft_file *file, sft_loan *loan);

SFT_API SFT_NODISCARD sft_code sft_read_into(const sft_file *file, const sft_tensor *tensor,
                                             void *dst, size_t len, sft_error *err);

typedef struct sft_read {
    const sft_tensor *tensor;
    void *dst;
    size_t len;
} sft_read;

SFT_API SFT_NODISCARD sft_code sft_read_many(const sft_file *file, const sft_read *reads,
                                             size_t count, const sft_job *job,
                                             sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_read_bytes(const sft_file *file, uint64_t offset, void *dst,
                                           size_t len, sft_error *err);

SFT_API sft_source sft_file_source(const sft_file *file);

typedef struct sft_range {
    uint64_t start;
    uint64_t count;
    int64_t step;
} sft_range;

typedef struct sft_slice {
    uint32_t rank;
    uint64_t dropped;
    sft_range range[SFT_MAX_RANK];
} sft_slice;

typedef enum sft_slice_part_kind {
    SFT_SLICE_PART_INDEX = 0,
    SFT_SLICE_PART_RANGE = 1,
    SFT_SLICE_PART_ELLIPSIS = 2
} sft_slice_part_kind;

typedef struct sft_slice_part {
    sft_slice_part_kind kind;
    int64_t value;
    int64_t start, stop, step;
    bool has_start, has_stop, has_step;
} sft_slice_part;

SFT_API SFT_NODISCARD sft_code sft_slice_resolve(const uint64_t *shape, uint32_t rank,
                                                 const sft_slice_part *parts, size_t count,
                                                 sft_slice *out, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_slice_parse(const uint64_t *shape, uint32_t rank,
                                               sft_span text, sft_slice *out, sft_error *err);

SFT_API uint32_t sft_slice_shape(const sft_slice *slice, uint64_t *out);

SFT_API SFT_NODISCARD sft_code sft_slice_size(const sft_slice *slice, sft_dtype dtype,
                                              uint64_t *elements, uint64_t *bytes,
                                              sft_error *err);

typedef struct sft_run {
    uint64_t offset;
    uint64_t len;
} sft_run;

typedef struct sft_runs {
    uint32_t rank;
    uint64_t run_bytes;
    uint64_t left;
    uint64_t position;
    uint64_t at[SFT_MAX_RANK];
    uint64_t count[SFT_MAX_RANK];
    int64_t stride[SFT_MAX_RANK];
} sft_runs;

SFT_API SFT_NODISCARD sft_code sft_runs_begin(const sft_tensor *tensor, const sft_slice *slice,
                                              sft_runs *out, sft_error *err);

SFT_API bool sft_runs_next(sft_runs *runs, sft_run *out);

SFT_API SFT_NODISCARD sft_code sft_slice_read(const sft_file *file, const sft_tensor *tensor,
                                              const sft_slice *slice, void *dst, size_t len,
                                              sft_error *err);

typedef struct sft_scan sft_scan;

typedef struct sft_finding {
    sft_error error;
} sft_finding;

typedef struct sft_note {
    const char *name;
    sft_error error;
} sft_note;

typedef struct sft_scan_entry {
    sft_span name, dtype, shape, offsets;
    uint64_t name_begin, value_begin, value_end;
} sft_scan_entry;

SFT_API SFT_NODISCARD sft_code sft_scan_open(const char *path, const sft_open_options *options,
                                             sft_scan **out, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_scan_open_source(sft_source source,
                                                    const sft_open_options *options,
                                                    sft_scan **out, sft_error *err);
SFT_API void sft_scan_close(sft_scan *scan);

SFT_API const sft_error *sft_scan_error(const sft_scan *scan);

SFT_API size_t sft_scan_finding_count(const sft_scan *scan);
SFT_API const sft_finding *sft_scan_finding_at(const sft_scan *scan, size_t i);
SFT_API size_t sft_scan_note_count(const sft_scan *scan);
SFT_API const sft_note *sft_scan_note_at(const sft_scan *scan, size_t i);
SFT_API size_t sft_scan_entry_count(const sft_scan *scan);

SFT_API sft_scan_entry sft_scan_entry_at(const sft_scan *scan, size_t i);
SFT_API sft_level sft_scan_level(const sft_scan *scan);

SFT_API void sft_diagnose(const sft_source *source, sft_error *error);

typedef struct sft_fix {
    const char *name;
    const char *done;
    sft_error found;
} sft_fix;

typedef struct sft_spec {
    sft_span name;
    sft_dtype dtype;
    uint32_t rank;
    const uint64_t *shape;
} sft_spec;

typedef struct sft_repair sft_repair;

SFT_API SFT_NODISCARD sft_code sft_repair_open(const char *path, const sft_open_options *options,
                                               sft_repair **out, sft_error *err);
SFT_API size_t sft_repair_fix_count(const sft_repair *repair);
SFT_API const sft_fix *sft_repair_fix_at(const sft_repair *repair, size_t i);

SFT_API size_t sft_repair_tensor_count(const sft_repair *repair);
SFT_API sft_spec sft_repair_tensor_at(const sft_repair *repair, size_t i);

SFT_API SFT_NODISCARD sft_code sft_repair_write(const sft_repair *repair, sft_sink sink,
                                                const sft_job *job, sft_error *err);

SFT_API void sft_repair_close(sft_repair *repair);

typedef bool (*sft_sweep_fn)(void *ctx, const char *name);
SFT_API SFT_NODISCARD sft_code sft_sweep(const char *folder, bool dry_run, sft_sweep_fn each,
                                         void *ctx, size_t *count, sft_error *err);

typedef struct sft_plan_options {
    size_t size;
    bool keep_order;
    bool has_metadata;
    uint32_t align;
    uint64_t max_header_bytes;
    const sft_allocator *alloc;
    uint64_t spare;
    uint64_t min_header_bytes;
    sft_level level;
    sft_pair (*pair_at)(const void *ctx, size_t i);
    const void *pair_ctx;
} sft_plan_options;

#define SFT_PLAN_OPTIONS_INIT \
    { sizeof(sft_plan_options), false, false, 8, 0, NULL, 0, 0, SFT_LEVEL_DEFAULT, NULL, NULL }

typedef struct sft_plan sft_plan;

SFT_API SFT_NODISCARD sft_code sft_plan_new(const sft_spec *specs, size_t count,
                                            const sft_pair *metadata, size_t metadata_count,
                                            const sft_plan_options *options, sft_plan **out,
                                            sft_error *err);
SFT_API void sft_plan_free(sft_plan *plan);

SFT_API uint64_t sft_plan_total(const sft_plan *plan);

SFT_API sft_span sft_plan_head(const sft_plan *plan);
SFT_API size_t sft_plan_tensor_count(const sft_plan *plan);

SFT_API const sft_tensor *sft_plan_tensor_at(const sft_plan *plan, size_t i);

SFT_API size_t sft_plan_position(const sft_plan *plan, size_t spec);

typedef struct sft_writer sft_writer;

SFT_API SFT_NODISCARD sft_code sft_writer_begin(const sft_plan *plan, sft_sink sink,
                                              sft_writer **out, sft_error *err);

typedef struct sft_writer_options {
    size_t size;
    uint64_t header_bytes;
    uint32_t align;
    const sft_pair *metadata;
    size_t metadata_count;
    const sft_allocator *alloc;
} sft_writer_options;

#define SFT_WRITER_OPTIONS_INIT { sizeof(sft_writer_options), 0, 8, NULL, 0, NULL }

SFT_API SFT_NODISCARD sft_code sft_writer_begin_unplanned(const sft_writer_options *options,
                                                          sft_sink sink, sft_writer **out,
                                                          sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_writer_add(sft_writer *writer, const sft_spec *spec,
                                              size_t *i, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_writer_put(sft_writer *writer, size_t i, const void *bytes,
                                              size_t len, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_writer_copy(sft_writer *writer, size_t i,
                                               const sft_source *from, uint64_t begin,
                                               uint64_t len, const sft_job *job,
                                               sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_writer_finish(sft_writer *writer, sft_error *err);

SFT_API void sft_writer_abandon(sft_writer *writer);

typedef struct sft_part {
    sft_spec spec;
    const sft_source *source;
    uint64_t begin;
} sft_part;

SFT_API sft_part sft_part_of(const sft_tensor *tensor, const sft_source *source);

SFT_API SFT_NODISCARD sft_code sft_save_parts(const sft_part *parts, size_t count,
                                              const sft_pair *metadata, size_t metadata_count,
                                              const sft_plan_options *options, sft_sink sink,
                                              const sft_job *job, sft_error *err);

typedef struct sft_edit sft_edit;

typedef enum sft_edit_method {
    SFT_EDIT_NONE = 0,
    SFT_EDIT_PLACE = 1,
    SFT_EDIT_REFLINK = 2,
    SFT_EDIT_INSERT = 3,
    SFT_EDIT_COPY = 4
} sft_edit_method;

SFT_API const char *sft_edit_method_name(sft_edit_method method);

typedef struct sft_edit_options {
    size_t size;
    bool safe;
    bool no_sync;
    bool keep_mtime;
    bool force;
    bool no_recover;
    sft_link_policy link;
    uint64_t spare;
    uint64_t min_insert_bytes;
    uint64_t max_place_bytes;
    bool in_place_unsafe;
    const sft_open_options *open;
} sft_edit_options;

#define SFT_EDIT_OPTIONS_INIT \
    { sizeof(sft_edit_options), false, false, false, false, false, SFT_LINK_REPLACE, 0, 0, 0, \
      false, NULL }

typedef struct sft_edit_report {
    sft_edit_method method;
    uint64_t header_before, header_after;
    uint64_t spare;
    uint64_t file_after;
} sft_edit_report;

SFT_API SFT_NODISCARD sft_code sft_edit_open(const char *path, const sft_edit_options *options,
                                             sft_edit **out, sft_error *err);
SFT_API void sft_edit_close(sft_edit *edit);

SFT_API const sft_file *sft_edit_file(const sft_edit *edit);

SFT_API SFT_NODISCARD sft_code sft_edit_set(sft_edit *edit, sft_span key, sft_span value,
                                            sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_edit_remove(sft_edit *edit, sft_span key, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_edit_rename(sft_edit *edit, sft_span from, sft_span to,
                                               sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_edit_put(sft_edit *edit, sft_span tensor,
                                            const sft_source *source, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_edit_plan(sft_edit *edit, sft_edit_report *out,
                                             sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_edit_apply(sft_edit *edit, const sft_job *job,
                                              sft_edit_report *report, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_edit_save(sft_edit *edit, const char *path,
                                             const sft_path_options *options,
                                             const sft_job *job, sft_edit_report *report,
                                             sft_error *err);

typedef enum sft_edit_found {
    SFT_EDIT_CLEAN = 0,
    SFT_EDIT_OLD = 1,
    SFT_EDIT_NEW = 2
} sft_edit_found;

SFT_API SFT_NODISCARD sft_code sft_edit_check(const char *path, const sft_allocator *alloc,
                                              sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_edit_recover(const char *path,
                                                const sft_edit_options *options,
                                                sft_edit_found *found, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif

#ifndef SAFETENSORS_SET_H
#define SAFETENSORS_SET_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sft_set sft_set;

#define SFT_MAX_INDEX_BYTES UINT64_C(1000000000)
#define SFT_MAX_SHARDS 100000

typedef struct sft_set_options {
    size_t size;
    uint64_t max_index_bytes;
    uint32_t max_shards;
    const sft_open_options *open;
} sft_set_options;

#define SFT_SET_OPTIONS_INIT { sizeof(sft_set_options), 0, 0, NULL }

SFT_API SFT_NODISCARD sft_code sft_set_open(const char *path, const sft_set_options *options,
                                            sft_set **out, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_set_open_list(const char *const *paths, size_t count,
                                                 const sft_set_options *options,
                                                 sft_set **out, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_set_from_file(sft_file *file, const char *path,
                                                 sft_set **out, sft_error *err);

SFT_API void sft_set_close(sft_set *set);

SFT_API bool sft_path_is_index(const char *path);

typedef struct sft_index sft_index;
SFT_API SFT_NODISCARD sft_code sft_index_open(const char *path, const sft_set_options *options,
                                              sft_index **out, sft_error *err);
SFT_API size_t sft_index_shard_count(const sft_index *index);
SFT_API const char *sft_index_shard_at(const sft_index *index, size_t i);

SFT_API const char *sft_index_folder(const sft_index *index);
SFT_API void sft_index_close(sft_index *index);

SFT_API size_t sft_set_shard_count(const sft_set *set);
SFT_API const sft_file *sft_set_shard_at(const sft_set *set, size_t i);

SFT_API const char *sft_set_shard_path(const sft_set *set, size_t i);

SFT_API const char *sft_set_index_path(const sft_set *set);

SFT_API sft_span sft_set_index_metadata(const sft_set *set);

SFT_API size_t sft_set_tensor_count(const sft_set *set);
SFT_API const sft_tensor *sft_set_tensor_at(const sft_set *set, size_t i);

SFT_API size_t sft_set_tensor_shard(const sft_set *set, size_t i);

SFT_API const sft_tensor *sft_set_find(const sft_set *set, sft_span name, size_t *shard);

SFT_API SFT_NODISCARD sft_code sft_set_order(const sft_set *set, sft_order order,
                                             uint32_t *out, sft_error *err);

SFT_API uint64_t sft_set_file_bytes(const sft_set *set);
SFT_API uint64_t sft_set_header_bytes(const sft_set *set);
SFT_API uint64_t sft_set_data_bytes(const sft_set *set);
SFT_API uint32_t sft_set_alignment(const sft_set *set);

SFT_API uint64_t sft_set_parameters(const sft_set *set);
SFT_API uint64_t sft_set_unaligned_count(const sft_set *set);

typedef struct sft_dtype_sum {
    sft_dtype dtype;
    uint64_t tensors, parameters, bytes;
} sft_dtype_sum;

SFT_API size_t sft_set_dtypes(const sft_set *set, sft_dtype_sum *out, size_t cap);

SFT_API SFT_NODISCARD sft_code sft_set_json(const sft_set *set, const char *path, uint64_t cut,
                                             sft_sink *sink, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_sets_json(const sft_set *const *sets, size_t count,
                                                  const char *path, sft_sink *sink,
                                                  sft_error *err);

typedef bool (*sft_match_fn)(void *ctx, const sft_tensor *tensor);
SFT_API SFT_NODISCARD sft_code sft_set_ls_json(const sft_set *set, const char *path,
                                           sft_order order, sft_match_fn match, void *ctx,
                                           sft_sink *sink, sft_error *err);

typedef struct sft_deep_counts sft_deep_counts;
SFT_API SFT_NODISCARD sft_code sft_scan_json(const sft_scan *scan, const char *path,
                                              const sft_deep_counts *deep, sft_sink *sink,
                                              sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_set_check_json(const sft_error *verdict, sft_level level,
                                                  sft_span shards, const char *path,
                                                  const sft_deep_counts *deep, sft_sink *sink,
                                                  sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_error_json(const sft_error *error, const char *path,
                                              sft_sink *sink, sft_error *err);

SFT_API uint32_t sft_set_output_mode(const sft_set *set, const char *path);

SFT_API SFT_NODISCARD sft_code sft_cut_parts(const sft_part *parts, size_t count,
                                             uint64_t max_bytes, uint32_t *shard_of,
                                             uint32_t *shards, sft_error *err);

typedef struct sft_save_set_options {
    size_t size;
    const char *stem;
    bool no_sync;
    bool in_place_unsafe;

    sft_span index_metadata;

    const int64_t *mtimes_ns;
    const sft_plan_options *plan;
    uint32_t mode;
} sft_save_set_options;

#define SFT_SAVE_SET_OPTIONS_INIT \
    { sizeof(sft_save_set_options), NULL, false, false, { NULL, 0 }, NULL, NULL, 0 }

SFT_API size_t sft_shard_name(const char *stem, uint32_t i, uint32_t n, char *out, size_t cap);

SFT_API SFT_NODISCARD sft_code sft_save_set(const char *folder, const sft_part *parts,
                                            const uint32_t *shard_of, size_t count,
                                            uint32_t shards, const sft_pair *metadata,
                                            size_t metadata_count,
                                            const sft_save_set_options *options,
                                            const sft_job *job, sft_error *err);

typedef struct sft_index_changes {
    size_t size;
    const sft_pair *metadata;
    size_t metadata_count;
    const sft_pair *tensors;
    size_t tensor_count;
    const sft_pair *shards;
    size_t shard_count;
    bool dry_run;
    const sft_pair *places;
    size_t place_count;
    bool has_total_size;
    uint64_t total_size;
} sft_index_changes;

#define SFT_INDEX_CHANGES_INIT \
    { sizeof(sft_index_changes), NULL, 0, NULL, 0, NULL, 0, false, NULL, 0, false, 0 }

SFT_API SFT_NODISCARD sft_code sft_index_rewrite(const char *path,
                                                 const sft_index_changes *changes,
                                                 const char *to,
                                                 const sft_path_options *options,
                                                 bool *changed, sft_error *err);

typedef struct sft_diff_options {
    size_t size;
    bool header_only;
    bool no_metadata;

    bool has_tolerance;
    double atol, rtol;
    const sft_allocator *alloc;
} sft_diff_options;

#define SFT_DIFF_OPTIONS_INIT { sizeof(sft_diff_options), false, false, false, 0, 0, NULL }

#define SFT_DIFF_ADDED 1u
#define SFT_DIFF_REMOVED 2u
#define SFT_DIFF_DTYPE 4u
#define SFT_DIFF_SHAPE 8u
#define SFT_DIFF_DATA 16u

typedef struct sft_diff_tensor {
    sft_span name;
    const sft_tensor *a, *b;
    uint32_t what;
    bool compared;
    uint64_t values;
    uint64_t differing;
    uint64_t beyond;
    uint64_t nan;
    uint64_t first;
    double max_abs;
    double max_rel;
} sft_diff_tensor;

typedef struct sft_diff_pair {
    sft_span key, a, b;
} sft_diff_pair;

typedef struct sft_diff sft_diff;

SFT_API SFT_NODISCARD sft_code sft_diff_new(const sft_set *a, const sft_set *b,
                                             const sft_diff_options *options, const sft_job *job,
                                             sft_diff **out, sft_error *err);

SFT_API void sft_diff_free(sft_diff *diff);

SFT_API bool sft_diff_same(const sft_diff *diff);

SFT_API size_t sft_diff_tensor_count(const sft_diff *diff);
SFT_API const sft_diff_tensor *sft_diff_tensor_at(const sft_diff *diff, size_t i);

SFT_API uint64_t sft_diff_equal_count(const sft_diff *diff);
SFT_API uint64_t sft_diff_within_tolerance_count(const sft_diff *diff);

SFT_API double sft_diff_max_abs(const sft_diff *diff);
SFT_API double sft_diff_max_rel(const sft_diff *diff);

SFT_API size_t sft_diff_pair_count(const sft_diff *diff);
SFT_API sft_diff_pair sft_diff_pair_at(const sft_diff *diff, size_t i);

SFT_API SFT_NODISCARD sft_code sft_diff_json(const sft_diff *diff, const char *path,
                                             const char *other, sft_sink *sink, sft_error *err);

struct sft_deep_counts {
    uint64_t tensors;
    uint64_t values;
    uint64_t nan, inf;
    uint64_t tensors_with_nan;
    uint64_t tensors_with_inf;
    uint64_t first_nan_tensor;
    uint64_t first_inf_tensor;
};

SFT_API SFT_NODISCARD sft_code sft_set_check_deep(const sft_set *set, sft_deep_counts *out,
                                              const sft_job *job, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif

#ifndef SAFETENSORS_CONVERT_H
#define SAFETENSORS_CONVERT_H

#ifdef __cplusplus
extern "C" {
#endif

SFT_API bool sft_cast_exists(sft_dtype from, sft_dtype to);

typedef struct sft_cast_options {
    size_t size;
    bool saturate;
} sft_cast_options;

#define SFT_CAST_OPTIONS_INIT { sizeof(sft_cast_options), false }

SFT_API SFT_NODISCARD sft_code sft_cast(sft_dtype from, const void *in, sft_dtype to, void *out,
                                        uint64_t count, const sft_cast_options *options,
                                        uint64_t *element, sft_error *err);

typedef struct sft_convert_options {
    size_t size;
    bool saturate;

    bool scaled;

    sft_match_fn match;
    void *match_ctx;
    uint32_t align;
    const sft_allocator *alloc;
} sft_convert_options;

#define SFT_CONVERT_OPTIONS_INIT \
    { sizeof(sft_convert_options), false, false, NULL, NULL, 0, NULL }

typedef enum sft_convert_action {
    SFT_CONVERT_CAST = 0,
    SFT_CONVERT_SAME = 1,
    SFT_CONVERT_OTHER = 2,
    SFT_CONVERT_SCALED = 3,
    SFT_CONVERT_SCALE = 4
} sft_convert_action;

typedef struct sft_conversion sft_conversion;

SFT_API SFT_NODISCARD sft_code sft_conversion_new(const sft_set *set, sft_dtype to,
                                                  const sft_convert_options *options,
                                                  sft_conversion **out, sft_error *err);

SFT_API void sft_conversion_free(sft_conversion *conversion);

SFT_API sft_convert_action sft_conversion_action(const sft_conversion *conversion, size_t i,
                                             const sft_tensor **scale);

SFT_API uint64_t sft_conversion_bytes(const sft_conversion *conversion, size_t i);

SFT_API bool sft_conversion_overrules(const sft_conversion *conversion, size_t i);

SFT_API uint64_t sft_conversion_count(const sft_conversion *conversion, sft_convert_action action);

SFT_API uint64_t sft_conversion_bytes_before(const sft_conversion *conversion);
SFT_API uint64_t sft_conversion_bytes_after(const sft_conversion *conversion);

SFT_API SFT_NODISCARD sft_code sft_conversion_save(sft_conversion *conversion, sft_sink sink,
                                                   const sft_job *job, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_conversion_save_set(sft_conversion *conversion,
                                                       const char *folder,
                                                       const sft_save_set_options *options,
                                                       const sft_job *job, sft_error *err);

SFT_API SFT_NODISCARD sft_code sft_conversion_save_shard(sft_conversion *conversion, size_t shard,
                                                         sft_sink sink, const sft_job *job,
                                                         sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
