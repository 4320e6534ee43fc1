/* The table of codes, and how an error gets its text. Tests: test_error.c. */
#include "base/error.h"

#include "base/utf8.h"
#include "safetensors_codes.h"

#include <stdio.h>
#include <string.h>

#define INV SFT_CLASS_INVALID
#define UNS SFT_CLASS_UNSUPPORTED
#define LIM SFT_CLASS_LIMIT
#define IO_ SFT_CLASS_IO
#define USE SFT_CLASS_USAGE
#define STA SFT_CLASS_STATE
#define ALL SFT_LEVEL_COMPAT
#define DEF SFT_LEVEL_DEFAULT
#define STR SFT_LEVEL_STRICT
#define NO_HINT SFT_HINT_NONE

static const sft_code_info code_table[] = {
    { SFT_OK, "ok", "no error",
      SFT_CLASS_NONE, NULL, ALL, NO_HINT },
    { SFT_HEADER_TOO_SMALL, "header_too_small",
      "the file is shorter than the 8 bytes of the header length",
      INV, "R1", ALL, SFT_HINT_DOWNLOAD_AGAIN },
    { SFT_HEADER_TOO_LARGE, "header_too_large", "the header length is over the limit",
      LIM, "R2", ALL, SFT_HINT_HEADER_LIMIT },
    { SFT_HEADER_TRUNCATED, "header_truncated", "the file ends inside the header",
      INV, "R3", ALL, SFT_HINT_DOWNLOAD_AGAIN },
    { SFT_HEADER_UTF8, "header_utf8", "the header is not UTF-8",
      INV, "R4", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_JSON_SYNTAX, "json_syntax", "the header breaks the grammar of JSON",
      INV, "R5", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_JSON_STRING, "json_string",
      "a string holds a bad escape, a lone surrogate or a control character",
      INV, "R6", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_JSON_NUMBER, "json_number", "a number is malformed or beyond the range of a double",
      INV, "R7", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_JSON_DEPTH, "json_depth", "objects and arrays are nested more than 127 deep",
      INV, "R8", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_JSON_TRAILING, "json_trailing",
      "something other than white space follows the header object",
      INV, "R9", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_HEADER_NOT_OBJECT, "header_not_object", "the header is not a JSON object",
      INV, "R10", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_ENTRY_TYPE, "entry_type", "a tensor entry is not an object",
      INV, "R11", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_FIELD_MISSING, "field_missing", "a tensor entry lacks dtype, shape or data_offsets",
      INV, "R12", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_FIELD_DUPLICATE, "field_duplicate", "a tensor entry has a field twice",
      INV, "R13", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_DTYPE_TYPE, "dtype_type", "a dtype is not a name",
      INV, "R14", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_DTYPE_UNKNOWN, "dtype_unknown", "a dtype is none of the known names",
      UNS, "R15", ALL, SFT_HINT_NEWER_VERSION },
    { SFT_SHAPE_TYPE, "shape_type", "a shape is not an array of integers from 0 to 2^64 - 1",
      INV, "R16", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_OFFSETS_TYPE, "offsets_type",
      "data_offsets is not a pair of integers from 0 to 2^64 - 1",
      INV, "R17", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_METADATA_TYPE, "metadata_type", "__metadata__ is not an object",
      INV, "R18", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_METADATA_VALUE, "metadata_value", "a metadata value is not a string",
      INV, "R19", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_METADATA_DUPLICATE, "metadata_duplicate", "the header has __metadata__ twice",
      INV, "R20", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_LEGACY_LAYOUT, "legacy_layout",
      "the header has the layout of 2022 (offsets, float16)",
      UNS, "R21", ALL, SFT_HINT_LEGACY },
    { SFT_TENSOR_DUPLICATE, "tensor_duplicate", "two tensors have the same name",
      INV, "R22", DEF, SFT_HINT_LEVEL_COMPAT },
    { SFT_METADATA_KEY_DUPLICATE, "metadata_key_duplicate", "a metadata key occurs twice",
      INV, "R23", DEF, SFT_HINT_LEVEL_COMPAT },
    { SFT_ENTRY_NOT_OBJECT, "entry_not_object", "a tensor entry is an array",
      INV, "R24", DEF, SFT_HINT_LEVEL_COMPAT },
    { SFT_DTYPE_NOT_STRING, "dtype_not_string", "a dtype is an object",
      INV, "R25", DEF, SFT_HINT_LEVEL_COMPAT },
    { SFT_RANK_TOO_LARGE, "rank_too_large", "a shape has more than 64 dimensions",
      LIM, "R26", DEF, SFT_HINT_LEVEL_COMPAT },
    { SFT_STRICT_FIRST_BYTE, "strict_first_byte", "the header does not begin with {",
      INV, "R27", STR, SFT_HINT_LEVEL_STRICT },
    { SFT_STRICT_PADDING, "strict_padding",
      "the header is padded with something other than spaces",
      INV, "R28", STR, SFT_HINT_LEVEL_STRICT },
    { SFT_STRICT_FIELD, "strict_field", "a tensor entry has an unknown field",
      INV, "R29", STR, SFT_HINT_LEVEL_STRICT },
    { SFT_STRICT_NAME, "strict_name", "a tensor name holds a control character",
      INV, "R30", STR, SFT_HINT_LEVEL_STRICT },
    { SFT_STRICT_METADATA, "strict_metadata", "__metadata__ is null",
      INV, "R31", STR, SFT_HINT_LEVEL_STRICT },
    { SFT_OFFSETS_REVERSED, "offsets_reversed", "a tensor ends before it begins",
      INV, "R32", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_OFFSETS_GAP, "offsets_gap", "bytes between two tensors belong to none",
      INV, "R33", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_OFFSETS_OVERLAP, "offsets_overlap", "two tensors share bytes",
      INV, "R34", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_SIZE_OVERFLOW, "size_overflow", "the size of a tensor exceeds 2^64 bits",
      INV, "R35", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_SIZE_PARTIAL_BYTE, "size_partial_byte", "a tensor does not fill whole bytes",
      INV, "R36", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_SIZE_MISMATCH, "size_mismatch",
      "shape and dtype need a different number of bytes than data_offsets give",
      INV, "R37", ALL, SFT_HINT_BROKEN_WRITER },
    { SFT_DATA_TRUNCATED, "data_truncated", "the file ends before its last tensor does",
      INV, "R38", ALL, SFT_HINT_DOWNLOAD_AGAIN },
    { SFT_DATA_TRAILING, "data_trailing", "bytes follow the last tensor",
      INV, "R39", ALL, SFT_HINT_REPAIR },
    { SFT_INDEX_TYPE, "index_type", "the index is not an object with a weight_map of strings",
      INV, "R40", ALL, NO_HINT },
    { SFT_INDEX_PATH, "index_path", "the index names a shard outside its own folder",
      INV, "R41", ALL, SFT_HINT_DO_NOT_TRUST },
    { SFT_INDEX_SHARD_MISSING, "index_shard_missing", "a shard of the model does not exist",
      INV, "R42", ALL, SFT_HINT_DOWNLOAD_SHARD },
    { SFT_INDEX_TENSOR_MISSING, "index_tensor_missing",
      "a tensor named by the index is in no shard",
      INV, "R43", ALL, SFT_HINT_VERSIONS_DIFFER },
    { SFT_INDEX_TENSOR_MISPLACED, "index_tensor_misplaced",
      "a tensor is not in the shard that the index gives for it",
      INV, "R44", ALL, SFT_HINT_VERSIONS_DIFFER },
    { SFT_INDEX_TENSOR_DUPLICATE, "index_tensor_duplicate",
      "two shards hold a tensor of the same name",
      INV, "R45", ALL, SFT_HINT_VERSIONS_DIFFER },
    { SFT_MANIFEST_MISSING, "manifest_missing", "the folder has no dataset_manifest.json",
      INV, NULL, ALL, SFT_HINT_NO_MANIFEST },
    { SFT_MANIFEST_TYPE, "manifest_type", "the manifest is not as docs/dataset.md says",
      INV, NULL, ALL, NO_HINT },
    { SFT_DATASET_SHARD, "dataset_shard", "a shard is missing or is not what was recorded of it",
      INV, NULL, ALL, SFT_HINT_VERIFY_DATASET },
    { SFT_DATASET_DUPLICATE, "dataset_duplicate", "two rows give a tensor of the same name",
      INV, NULL, ALL, SFT_HINT_LAST_WINS },
    { SFT_DATASET_RECEIPT, "dataset_receipt", "a receipt is not one of this job's",
      INV, NULL, ALL, NO_HINT },
    { SFT_FOUND_GIT_LFS, "found_git_lfs", "this is a Git LFS pointer, not the model",
      UNS, NULL, ALL, SFT_HINT_GIT_LFS },
    { SFT_FOUND_XET, "found_xet", "this is a Xet pointer, not the model",
      UNS, NULL, ALL, SFT_HINT_XET },
    { SFT_FOUND_HTML, "found_html", "this is an HTML page",
      UNS, NULL, ALL, SFT_HINT_WEB_PAGE },
    { SFT_FOUND_ZIP, "found_zip", "this is a ZIP archive",
      UNS, NULL, ALL, SFT_HINT_UNPACK },
    { SFT_FOUND_TORCH, "found_torch", "this is a PyTorch checkpoint",
      UNS, NULL, ALL, SFT_HINT_CONVERT_CHECKPOINT },
    { SFT_FOUND_PICKLE, "found_pickle", "this is a Python pickle",
      UNS, NULL, ALL, SFT_HINT_PICKLE },
    { SFT_FOUND_GGUF, "found_gguf", "this is a GGUF model",
      UNS, NULL, ALL, SFT_HINT_USE_GGUF },
    { SFT_FOUND_HDF5, "found_hdf5", "this is an HDF5 file",
      UNS, NULL, ALL, SFT_HINT_USE_HDF5 },
    { SFT_FOUND_GZIP, "found_gzip", "this is gzip data",
      UNS, NULL, ALL, SFT_HINT_GUNZIP },
    { SFT_FOUND_ZSTD, "found_zstd", "this is zstd data",
      UNS, NULL, ALL, SFT_HINT_UNZSTD },
    { SFT_FOUND_NPY, "found_npy", "this is a file of NumPy arrays",
      UNS, NULL, ALL, SFT_HINT_USE_NUMPY },
    { SFT_FOUND_INDEX, "found_index", "this is the index of a sharded model",
      UNS, NULL, ALL, SFT_HINT_NAME_INDEX },
    { SFT_FOREIGN_SYNTAX, "foreign_syntax", "the file breaks a rule of its own format",
      INV, NULL, ALL, SFT_HINT_DOWNLOAD_AGAIN },
    { SFT_FOREIGN_TRUNCATED, "foreign_truncated", "the file ends too early for its own format",
      INV, NULL, ALL, SFT_HINT_DOWNLOAD_AGAIN },
    { SFT_FOREIGN_AMBIGUOUS, "foreign_ambiguous", "two readers could see two different files",
      INV, NULL, ALL, SFT_HINT_DO_NOT_TRUST },
    { SFT_FOREIGN_CHECKSUM, "foreign_checksum",
      "the bytes do not have the checksum recorded for them",
      INV, NULL, ALL, SFT_HINT_DOWNLOAD_AGAIN },
    { SFT_FOREIGN_SIZE, "foreign_size",
      "the stored bytes do not have the size that the tensor needs",
      INV, NULL, ALL, NO_HINT },
    { SFT_FOREIGN_OPCODE, "foreign_opcode",
      "a pickle has an opcode that is not read, or uses one wrongly",
      INV, NULL, ALL, SFT_HINT_DO_NOT_TRUST },
    { SFT_FOREIGN_OBJECT, "foreign_object", "a foreign object stands where a tensor should be",
      UNS, NULL, ALL, SFT_HINT_IMPORT_SKIP },
    { SFT_FOREIGN_DTYPE, "foreign_dtype", "an element type has no dtype of safetensors",
      UNS, NULL, ALL, SFT_HINT_IMPORT_SKIP },
    { SFT_FOREIGN_NAME, "foreign_name", "a name cannot be that of a tensor, or occurs twice",
      INV, NULL, ALL, SFT_HINT_IMPORT_SKIP },
    { SFT_FOREIGN_SHARED, "foreign_shared", "tensors share their bytes",
      STA, NULL, ALL, SFT_HINT_IMPORT_SHARED },
    { SFT_FOREIGN_PATH, "foreign_path", "a file that the model names lies outside its folder",
      INV, NULL, ALL, NO_HINT },
    { SFT_FOREIGN_KIND, "foreign_kind", "this variant of the format is not read",
      UNS, NULL, ALL, NO_HINT },
    { SFT_FOREIGN_BRANCH, "foreign_branch", "there is no such branch, or no branch was chosen",
      USE, NULL, ALL, SFT_HINT_IMPORT_BRANCH },
    { SFT_FOREIGN_OPAQUE, "foreign_opaque", "the file does not tell the dtype of a tensor",
      UNS, NULL, ALL, SFT_HINT_IMPORT_AS },
    { SFT_OUT_OF_MEMORY, "out_of_memory", "memory ran out",
      LIM, NULL, ALL, NO_HINT },
    { SFT_ADDRESS_SPACE, "address_space", "a size is too big for this machine's address space",
      LIM, NULL, ALL, SFT_HINT_BUILD_64_BIT },
    { SFT_TOO_MANY_TENSORS, "too_many_tensors", "there are more tensors than the options allow",
      LIM, NULL, ALL, NO_HINT },
    { SFT_TOO_MANY_METADATA, "too_many_metadata",
      "there are more metadata pairs than the options allow",
      LIM, NULL, ALL, NO_HINT },
    { SFT_NAME_TOO_LONG, "name_too_long", "a name is longer than the options allow",
      LIM, NULL, ALL, NO_HINT },
    { SFT_FILE_TOO_LARGE, "file_too_large", "a file is larger than the options allow",
      LIM, NULL, ALL, NO_HINT },
    { SFT_FOREIGN_OUTPUT, "foreign_output",
      "the tensors are far larger than the file that they come from",
      LIM, NULL, ALL, SFT_HINT_MAX_OUTPUT },
    { SFT_FOREIGN_TABLE, "foreign_table", "a table of contents is over a limit",
      LIM, NULL, ALL, NO_HINT },
    { SFT_FOREIGN_NESTING, "foreign_nesting", "values are nested too deep",
      LIM, NULL, ALL, NO_HINT },
    { SFT_NOT_FOUND, "not_found", "there is no such file",
      IO_, NULL, ALL, NO_HINT },
    { SFT_IO_OPEN, "io_open", "the file cannot be opened",
      IO_, NULL, ALL, NO_HINT },
    { SFT_IO_READ, "io_read", "reading failed",
      IO_, NULL, ALL, NO_HINT },
    { SFT_IO_WRITE, "io_write", "writing failed",
      IO_, NULL, ALL, NO_HINT },
    { SFT_IO_SYNC, "io_sync", "the data did not reach the disk",
      IO_, NULL, ALL, NO_HINT },
    { SFT_IO_PUBLISH, "io_publish", "the finished file could not be given its name",
      IO_, NULL, ALL, NO_HINT },
    { SFT_IO_MAP, "io_map", "the file cannot be mapped",
      IO_, NULL, ALL, SFT_HINT_READ_NOT_MAP },
    { SFT_IO_SHRUNK, "io_shrunk", "the file became shorter while it was open",
      IO_, NULL, ALL, SFT_HINT_FILE_CHANGES },
    { SFT_IO_NOT_FILE, "io_not_file", "the path is not a file",
      IO_, NULL, ALL, NO_HINT },
    { SFT_REMOTE_NETWORK, "remote_network",
      "the server cannot be reached, or the connection was lost",
      IO_, NULL, ALL, SFT_HINT_REMOTE_PROXY },
    { SFT_REMOTE_TLS, "remote_tls", "the server's certificate is not accepted",
      IO_, NULL, ALL, SFT_HINT_REMOTE_CA },
    { SFT_REMOTE_STATUS, "remote_status", "the server's answer is not the file",
      IO_, NULL, ALL, NO_HINT },
    { SFT_REMOTE_DENIED, "remote_denied", "the server does not give this file without more rights",
      IO_, NULL, ALL, SFT_HINT_REMOTE_TOKEN },
    { SFT_REMOTE_BUSY, "remote_busy", "the server is busy, or asks for too long a wait",
      IO_, NULL, ALL, SFT_HINT_REMOTE_WAIT },
    { SFT_REMOTE_RANGE, "remote_range", "the server does not give parts of files as it should",
      IO_, NULL, ALL, SFT_HINT_REMOTE_DOWNLOAD },
    { SFT_REMOTE_CHANGED, "remote_changed", "the file changed while it was read",
      IO_, NULL, ALL, SFT_HINT_REMOTE_AGAIN },
    { SFT_REMOTE_REDIRECT, "remote_redirect", "the server redirects to a URL that is not followed",
      IO_, NULL, ALL, NO_HINT },
    { SFT_REMOTE_OFFLINE, "remote_offline", "the file is not cached, and the network is not used",
      IO_, NULL, ALL, SFT_HINT_REMOTE_OFFLINE },
    { SFT_REMOTE_PRIVATE, "remote_private", "the address is not a public one",
      IO_, NULL, ALL, SFT_HINT_REMOTE_PUBLIC },
    { SFT_REMOTE_TRANSPORT, "remote_transport", "nothing on this machine can make requests",
      IO_, NULL, ALL, SFT_HINT_REMOTE_CURL },
    { SFT_BAD_ARGUMENT, "bad_argument", "an argument is not valid",
      USE, NULL, ALL, NO_HINT },
    { SFT_TENSOR_NOT_FOUND, "tensor_not_found", "there is no tensor of that name",
      USE, NULL, ALL, SFT_HINT_LIST_TENSORS },
    { SFT_BUFFER_SIZE, "buffer_size", "the buffer is not as long as the data",
      USE, NULL, ALL, NO_HINT },
    { SFT_NOT_MAPPED, "not_mapped", "the file is not mapped in that way",
      USE, NULL, ALL, SFT_HINT_BORROW_OR_COPY },
    { SFT_SLICE_SYNTAX, "slice_syntax", "the text is not an index expression",
      USE, NULL, ALL, SFT_HINT_SLICE_EXAMPLE },
    { SFT_SLICE_RANK, "slice_rank", "the index has more parts than the tensor has dimensions",
      USE, NULL, ALL, NO_HINT },
    { SFT_SLICE_BOUNDS, "slice_bounds", "an index is outside its dimension",
      USE, NULL, ALL, NO_HINT },
    { SFT_SLICE_STEP, "slice_step", "a step is zero",
      USE, NULL, ALL, NO_HINT },
    { SFT_SLICE_PARTIAL_BYTE, "slice_partial_byte",
      "a slice of a dtype under 8 bits does not fall on whole bytes",
      USE, NULL, ALL, SFT_HINT_SLICE_BYTES },
    { SFT_NAME_RESERVED, "name_reserved", "a tensor may not be called __metadata__",
      USE, NULL, ALL, NO_HINT },
    { SFT_CAST_DTYPE, "cast_dtype", "there is no cast between these dtypes",
      USE, NULL, ALL, NO_HINT },
    { SFT_CAST_VALUE, "cast_value", "a value does not fit the requested dtype",
      USE, NULL, ALL, SFT_HINT_SATURATE },
    { SFT_OPTION_UNKNOWN, "option_unknown", "there is no such option",
      USE, NULL, ALL, NO_HINT },
    { SFT_OPTION_VALUE, "option_value", "an option cannot have this value",
      USE, NULL, ALL, NO_HINT },
    { SFT_COLUMN_UNKNOWN, "column_unknown", "there is no such column",
      USE, NULL, ALL, NO_HINT },
    { SFT_COLUMN_TYPE, "column_type", "a column of this type cannot be written",
      USE, NULL, ALL, NO_HINT },
    { SFT_ROW_VALUE, "row_value", "a value does not fit the dtype of its column",
      USE, NULL, ALL, NO_HINT },
    { SFT_ROW_SHAPE, "row_shape", "a row's shape or dtype is not that of its column",
      USE, NULL, ALL, NO_HINT },
    { SFT_ROW_NULL, "row_null", "a value is null",
      USE, NULL, ALL, NO_HINT },
    { SFT_ROW_KEY, "row_key", "a key cannot name a tensor",
      USE, NULL, ALL, NO_HINT },
    { SFT_REMOTE_URL, "remote_url", "this is not a URL that can be read",
      USE, NULL, ALL, SFT_HINT_REMOTE_NAME },
    { SFT_OUT_OF_ORDER, "out_of_order", "this sink takes tensors in file order only",
      STA, NULL, ALL, NO_HINT },
    { SFT_INCOMPLETE, "incomplete", "a planned tensor did not get all its bytes",
      STA, NULL, ALL, NO_HINT },
    { SFT_EXISTS, "exists", "the target already exists",
      STA, NULL, ALL, SFT_HINT_REPLACE },
    { SFT_IS_LINK, "is_link", "the target is a symbolic link",
      STA, NULL, ALL, SFT_HINT_FOLLOW_LINK },
    { SFT_WRITER_FAILED, "writer_failed", "an earlier failure ended this writer",
      STA, NULL, ALL, NO_HINT },
    { SFT_EDIT_INTERRUPTED, "edit_interrupted",
      "a change of the file was interrupted and is neither done nor undone",
      STA, NULL, ALL, SFT_HINT_RECOVER },
    { SFT_EDIT_BUSY, "edit_busy", "another program is changing the file",
      STA, NULL, ALL, SFT_HINT_TRY_LATER },
    { SFT_HARD_LINKS, "hard_links", "the file has several names (hard links)",
      STA, NULL, ALL, SFT_HINT_HARD_LINKS },
    { SFT_DATASET_BUSY, "dataset_busy", "another commit to the dataset is under way",
      STA, NULL, ALL, SFT_HINT_TRY_LATER },
    { SFT_DATASET_CHANGED, "dataset_changed", "the dataset's version has changed",
      STA, NULL, ALL, SFT_HINT_BEGIN_AGAIN },
    { SFT_DATASET_DISAGREES, "dataset_disagrees", "the rows do not fit the existing dataset",
      STA, NULL, ALL, SFT_HINT_OVERWRITE_DATASET },
    { SFT_DATASET_UNGUARDED, "dataset_unguarded", "the storage cannot keep two commits apart",
      STA, NULL, ALL, SFT_HINT_SINGLE_WRITER },
    { SFT_CANCELLED, "cancelled", "cancelled by the caller",
      SFT_CLASS_CANCELLED, NULL, ALL, NO_HINT },
};

static const sft_code_info unknown_code = {
    SFT_OK, "unknown", "a code of another version", SFT_CLASS_USAGE, NULL, ALL, NO_HINT
};

const sft_code_info *sft_code_at(size_t i) {
    return i < sizeof code_table / sizeof *code_table ? &code_table[i] : NULL;
}

const sft_code_info *sft_code_describe(sft_code code) {
    for (size_t i = 0; i < sizeof code_table / sizeof *code_table; i++)
        if (code_table[i].code == code) return &code_table[i];
    return &unknown_code;
}

void sfti_error_clear(sft_error *err) {
    if (!err) return;
    memset(err, 0, sizeof *err);
    err->offset = SFT_NO_OFFSET;
    err->tensor_len = SFT_NO_TENSOR;
}

void sfti_error_tensor(sft_error *err, sft_span tensor) {
    if (!err) return;
    size_t len = sfti_utf8_cut(tensor, sizeof err->tensor);
    if (len > 0) memcpy(err->tensor, tensor.data, len);
    err->tensor_len = (uint32_t)len;
}

static void fill_text(sft_error *err, const char *format, va_list args) {
    char raw[sizeof err->message];
    size_t used, len;
    int wanted = vsnprintf(raw, sizeof raw, format, args);
    len = wanted < 0 ? 0 : (size_t)wanted < sizeof raw ? (size_t)wanted : sizeof raw - 1;
    len = sfti_escape(raw, len, err->message, sizeof err->message - 1, &used);
    err->message[len] = '\0';
}

void sfti_error_text(sft_error *err, const char *format, ...) {
    va_list args;
    if (!err) return;
    va_start(args, format);
    fill_text(err, format, args);
    va_end(args);
}

static void fill_code(sft_error *err, sft_code code, uint64_t offset) {
    *err = (sft_error)SFT_ERROR_INIT;
    err->code = code;
    err->offset = offset;
    err->hint = sft_code_describe(code)->hint;
    /* What breaks a rule at no byte of a file is the caller's own: no file is at fault, and no
     * level accepts it. */
    bool of_file = err->hint == SFT_HINT_BROKEN_WRITER || err->hint == SFT_HINT_LEVEL_COMPAT ||
                   err->hint == SFT_HINT_LEVEL_STRICT || err->hint == SFT_HINT_HEADER_LIMIT ||
                   err->hint == SFT_HINT_NEWER_VERSION;
    if (of_file && offset == SFT_NO_OFFSET) err->hint = SFT_HINT_NONE;
}

sft_code sfti_fail(sft_error *err, sft_code code, const char *format, ...) {
    va_list args;
    if (!err) return code;
    fill_code(err, code, SFT_NO_OFFSET);
    va_start(args, format);
    fill_text(err, format, args);
    va_end(args);
    return code;
}

sft_code sfti_fail_byte(sft_error *err, sft_code code, uint64_t offset, const char *format,
                        ...) {
    va_list args;
    if (!err) return code;
    fill_code(err, code, offset);
    va_start(args, format);
    fill_text(err, format, args);
    va_end(args);
    return code;
}

sft_code sfti_fail_tensor(sft_error *err, sft_code code, uint64_t offset, sft_span tensor,
                          const char *format, ...) {
    va_list args;
    if (!err) return code;
    fill_code(err, code, offset);
    sfti_error_tensor(err, tensor);
    va_start(args, format);
    fill_text(err, format, args);
    va_end(args);
    return code;
}

sft_code sfti_misuse(sft_error *err, const char *format, ...) {
    va_list args;
    if (!err) return SFT_BAD_ARGUMENT;
    fill_code(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET);
    va_start(args, format);
    fill_text(err, format, args);
    va_end(args);
    return SFT_BAD_ARGUMENT;
}

sft_code sfti_fail_cancelled(sft_error *err) {
    return sfti_fail(err, SFT_CANCELLED, "%s", sft_code_describe(SFT_CANCELLED)->sentence);
}

sft_code sfti_fail_as(sft_error *err, sft_code code, const sft_error *what) {
    if (what->code != code) return sft_error_set(err, code, 0, NULL);
    if (err) *err = *what;
    return code;
}

#define EXCERPT 40 /* bytes of a text that a message shows */

/* Length of the JSON token a text begins with: a string with its quotes, a word, a mark. */
static size_t token_length(sft_span text) {
    size_t i = 1;
    if (text.data[0] == '"') {
        while (i < text.len && text.data[i] != '"') i++;
        return i < text.len ? i + 1 : i;
    }
    if (strchr(",:[]{} \t\r\n", text.data[0])) return 1;
    while (i < text.len && !strchr(",:[]{}\" \t\r\n", text.data[i])) i++;
    return i;
}

sft_code sfti_fail_at(sft_error *err, sft_code code, uint64_t base, sft_span text, size_t at,
                      const char *expected) {
    sft_span rest = { text.data + at, text.len - at };
    if (rest.len == 0)
        return sfti_fail_byte(err, code, base + at, "expected %s, found the end of the text",
                              expected);
    char c = rest.data[0];
    bool white = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    const char *kind = c == '{' ? "an object" : c == '[' ? "an array"
                       : white ? "white space" : c == '\0' ? "a NUL byte" : NULL;
    if (kind)
        return sfti_fail_byte(err, code, base + at, "expected %s, found %s", expected, kind);
    size_t token = token_length(rest), shown = sfti_utf8_cut(rest, EXCERPT);
    if (shown > token) shown = token;
    return sfti_fail_byte(err, code, base + at, "expected %s, found %.*s%s", expected, (int)shown,
                          rest.data, shown < token ? "..." : "");
}

sft_code sfti_fail_memory(sft_error *err, uint64_t bytes) {
    return sfti_fail(err, SFT_OUT_OF_MEMORY, "expected %llu bytes of memory, found none",
                     (unsigned long long)bytes);
}

sft_code sft_error_set(sft_error *err, sft_code code, int32_t os_errno, const char *text) {
    sfti_fail(err, code, "%s", text ? text : sft_code_describe(code)->sentence);
    if (err) err->os_errno = os_errno;
    return code;
}

/* ── Escaping ── */

size_t sfti_escape(const char *from, size_t len, char *into, size_t cap, size_t *used) {
    static const char marks[] = "\\\n\t\r", letters[] = "\\ntr";
    const uint8_t *p = (const uint8_t *)from, *end = p + len;
    size_t put = 0;
    while (p < end) {
        char escape[12];
        uint32_t c = 0;
        const void *text = escape;
        bool plain = *p >= ' ' && *p < 0x7F && *p != '\\';
        size_t read = plain ? 1 : sfti_utf8_decode(p, end, &c), n = read;
        const char *mark = c && c < 0x80 ? strchr(marks, (int)c) : NULL;
        if (plain) text = p;
        else if (!read) n = (size_t)snprintf(escape, sizeof escape, "\\x%02x", *p);
        else if (mark) n = (size_t)snprintf(escape, sizeof escape, "\\%c", letters[mark - marks]);
        else if (sfti_utf8_unsafe(c))
            n = (size_t)snprintf(escape, sizeof escape, c < 0x80 ? "\\x%02x" : "\\u{%04x}", c);
        else text = p;
        if (n > cap - put) break;
        memcpy(into + put, text, n);
        put += n;
        p += read ? read : 1;
    }
    *used = len - (size_t)(end - p);
    return put;
}
