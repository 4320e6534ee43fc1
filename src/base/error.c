#include "base/error.h"

#include "base/utf8.h"

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
#define SAFETENSOR "SafetensorError"

static const char HINT_BROKEN_WRITER[] = "the program that wrote this file is at fault; "
                                         "\"safetensors check --explain\" shows the rule";
static const char HINT_DOWNLOAD[] = "download the file again";
static const char HINT_LEVEL[] = "--level compat accepts what the official package accepts";
static const char HINT_STRICT[] = "only --level strict refuses this";
static const char HINT_REPAIR[] = SFTI_PROMISE " writes a valid copy";

static const sft_code_info code_table[] = {
    { SFT_OK, "ok", "no error",
      SFT_CLASS_NONE, "", NULL, ALL, NULL },
    { SFT_HEADER_TOO_SMALL, "header_too_small",
      "the file is shorter than the 8 bytes of the header length",
      INV, SAFETENSOR, "R1", ALL, HINT_DOWNLOAD },
    { SFT_HEADER_TOO_LARGE, "header_too_large", "the header length is over the limit",
      LIM, SAFETENSOR, "R2", ALL,
      "this is probably no safetensors file; a larger header can be allowed by the "
      "open options" },
    { SFT_HEADER_TRUNCATED, "header_truncated", "the file ends inside the header",
      INV, SAFETENSOR, "R3", ALL, HINT_DOWNLOAD },
    { SFT_HEADER_UTF8, "header_utf8", "the header is not UTF-8",
      INV, SAFETENSOR, "R4", ALL, HINT_BROKEN_WRITER },
    { SFT_JSON_SYNTAX, "json_syntax", "the header breaks the grammar of JSON",
      INV, SAFETENSOR, "R5", ALL, HINT_BROKEN_WRITER },
    { SFT_JSON_STRING, "json_string",
      "a string holds a bad escape, a lone surrogate or a control character",
      INV, SAFETENSOR, "R6", ALL, HINT_BROKEN_WRITER },
    { SFT_JSON_NUMBER, "json_number", "a number is malformed or beyond the range of a double",
      INV, SAFETENSOR, "R7", ALL, HINT_BROKEN_WRITER },
    { SFT_JSON_DEPTH, "json_depth", "objects and arrays are nested more than 127 deep",
      INV, SAFETENSOR, "R8", ALL, HINT_BROKEN_WRITER },
    { SFT_JSON_TRAILING, "json_trailing",
      "something other than white space follows the header object",
      INV, SAFETENSOR, "R9", ALL, HINT_BROKEN_WRITER },
    { SFT_HEADER_NOT_OBJECT, "header_not_object", "the header is not a JSON object",
      INV, SAFETENSOR, "R10", ALL, HINT_BROKEN_WRITER },
    { SFT_ENTRY_TYPE, "entry_type", "a tensor entry is not an object",
      INV, SAFETENSOR, "R11", ALL, HINT_BROKEN_WRITER },
    { SFT_FIELD_MISSING, "field_missing", "a tensor entry lacks dtype, shape or data_offsets",
      INV, SAFETENSOR, "R12", ALL, HINT_BROKEN_WRITER },
    { SFT_FIELD_DUPLICATE, "field_duplicate", "a tensor entry has a field twice",
      INV, SAFETENSOR, "R13", ALL, HINT_BROKEN_WRITER },
    { SFT_DTYPE_TYPE, "dtype_type", "a dtype is not a name",
      INV, SAFETENSOR, "R14", ALL, HINT_BROKEN_WRITER },
    { SFT_DTYPE_UNKNOWN, "dtype_unknown", "a dtype is none of the known names",
      UNS, SAFETENSOR, "R15", ALL, "a newer version may know this dtype" },
    { SFT_SHAPE_TYPE, "shape_type", "a shape is not an array of integers from 0 to 2^64 - 1",
      INV, SAFETENSOR, "R16", ALL, HINT_BROKEN_WRITER },
    { SFT_OFFSETS_TYPE, "offsets_type",
      "data_offsets is not a pair of integers from 0 to 2^64 - 1",
      INV, SAFETENSOR, "R17", ALL, HINT_BROKEN_WRITER },
    { SFT_METADATA_TYPE, "metadata_type", "__metadata__ is not an object",
      INV, SAFETENSOR, "R18", ALL, HINT_BROKEN_WRITER },
    { SFT_METADATA_VALUE, "metadata_value", "a metadata value is not a string",
      INV, SAFETENSOR, "R19", ALL, HINT_BROKEN_WRITER },
    { SFT_METADATA_DUPLICATE, "metadata_duplicate", "__metadata__ is there twice",
      INV, SAFETENSOR, "R20", ALL, HINT_BROKEN_WRITER },
    { SFT_LEGACY_LAYOUT, "legacy_layout",
      "the header has the layout of 2022 (offsets, float16)",
      UNS, SAFETENSOR, "R21", ALL, "--legacy reads it" },
    { SFT_TENSOR_DUPLICATE, "tensor_duplicate", "two tensors have one name",
      INV, SAFETENSOR, "R22", DEF, HINT_LEVEL },
    { SFT_METADATA_KEY_DUPLICATE, "metadata_key_duplicate", "a metadata key is there twice",
      INV, SAFETENSOR, "R23", DEF, HINT_LEVEL },
    { SFT_ENTRY_NOT_OBJECT, "entry_not_object", "a tensor entry is an array",
      INV, SAFETENSOR, "R24", DEF, HINT_LEVEL },
    { SFT_DTYPE_NOT_STRING, "dtype_not_string", "a dtype is an object",
      INV, SAFETENSOR, "R25", DEF, HINT_LEVEL },
    { SFT_RANK_TOO_LARGE, "rank_too_large", "a shape has more than 64 dimensions",
      LIM, SAFETENSOR, "R26", DEF, HINT_LEVEL },
    { SFT_STRICT_FIRST_BYTE, "strict_first_byte", "the header does not begin with {",
      INV, SAFETENSOR, "R27", STR, HINT_STRICT },
    { SFT_STRICT_PADDING, "strict_padding",
      "the header is padded with something other than spaces",
      INV, SAFETENSOR, "R28", STR, HINT_STRICT },
    { SFT_STRICT_FIELD, "strict_field", "a tensor entry has an unknown field",
      INV, SAFETENSOR, "R29", STR, HINT_STRICT },
    { SFT_STRICT_NAME, "strict_name", "a tensor name holds a control character",
      INV, SAFETENSOR, "R30", STR, HINT_STRICT },
    { SFT_STRICT_METADATA, "strict_metadata", "__metadata__ is null",
      INV, SAFETENSOR, "R31", STR, HINT_STRICT },
    { SFT_OFFSETS_REVERSED, "offsets_reversed", "a tensor ends before it begins",
      INV, SAFETENSOR, "R32", ALL, HINT_BROKEN_WRITER },
    { SFT_OFFSETS_GAP, "offsets_gap", "bytes between two tensors belong to none",
      INV, SAFETENSOR, "R33", ALL, HINT_BROKEN_WRITER },
    { SFT_OFFSETS_OVERLAP, "offsets_overlap", "two tensors share bytes",
      INV, SAFETENSOR, "R34", ALL, HINT_BROKEN_WRITER },
    { SFT_SIZE_OVERFLOW, "size_overflow", "the size of a tensor passes 2^64 bits",
      INV, SAFETENSOR, "R35", ALL, HINT_BROKEN_WRITER },
    { SFT_SIZE_PARTIAL_BYTE, "size_partial_byte", "a tensor does not fill whole bytes",
      INV, SAFETENSOR, "R36", ALL, HINT_BROKEN_WRITER },
    { SFT_SIZE_MISMATCH, "size_mismatch",
      "shape and dtype ask for other bytes than data_offsets give",
      INV, SAFETENSOR, "R37", ALL, HINT_BROKEN_WRITER },
    { SFT_DATA_TRUNCATED, "data_truncated", "the file ends before its last tensor does",
      INV, SAFETENSOR, "R38", ALL, HINT_DOWNLOAD },
    { SFT_DATA_TRAILING, "data_trailing", "bytes follow the last tensor",
      INV, SAFETENSOR, "R39", ALL, HINT_REPAIR },
    { SFT_INDEX_TYPE, "index_type", "the index is not an object with a weight_map of strings",
      INV, SAFETENSOR, "R40", ALL, NULL },
    { SFT_INDEX_PATH, "index_path", "the index names a shard outside its own folder",
      INV, SAFETENSOR, "R41", ALL, "do not trust this model" },
    { SFT_INDEX_SHARD_MISSING, "index_shard_missing", "a shard named by the index is not there",
      INV, SAFETENSOR, "R42", ALL, "download the missing shard" },
    { SFT_INDEX_TENSOR_MISSING, "index_tensor_missing",
      "a tensor named by the index is in no shard",
      INV, SAFETENSOR, "R43", ALL, "index and shards are of different versions" },
    { SFT_INDEX_TENSOR_MISPLACED, "index_tensor_misplaced",
      "a tensor is in another shard than the index says",
      INV, SAFETENSOR, "R44", ALL, "index and shards are of different versions" },
    { SFT_INDEX_TENSOR_DUPLICATE, "index_tensor_duplicate",
      "two shards hold a tensor of one name",
      INV, SAFETENSOR, "R45", ALL, "index and shards are of different versions" },
    { SFT_MANIFEST_MISSING, "manifest_missing", "the folder has no dataset_manifest.json",
      INV, "FileNotFoundError", NULL, ALL,
      "an unfinished job has none; single files are read with use_manifest=false" },
    { SFT_MANIFEST_TYPE, "manifest_type", "the manifest is not as docs/dataset.md says",
      INV, SAFETENSOR, NULL, ALL, NULL },
    { SFT_DATASET_SHARD, "dataset_shard", "a shard is missing or is not what was recorded of it",
      INV, SAFETENSOR, NULL, ALL, "\"safetensors dataset verify\" looks at all of them" },
    { SFT_DATASET_DUPLICATE, "dataset_duplicate", "two rows give a tensor of one name",
      INV, SAFETENSOR, NULL, ALL, "duplicatesStrategy=lastWin keeps the last" },
    { SFT_DATASET_RECEIPT, "dataset_receipt", "a receipt is not one of this job's",
      INV, SAFETENSOR, NULL, ALL, NULL },
    { SFT_FOUND_GIT_LFS, "found_git_lfs", "this is a Git LFS pointer, not the model",
      UNS, SAFETENSOR, NULL, ALL, "run \"git lfs pull\"" },
    { SFT_FOUND_XET, "found_xet", "this is a Xet pointer, not the model",
      UNS, SAFETENSOR, NULL, ALL,
      "fetch the file with a client that knows Xet, or run \"git xet install\" and pull again" },
    { SFT_FOUND_HTML, "found_html", "this is an HTML page",
      UNS, SAFETENSOR, NULL, ALL,
      "the download was answered by a web page (login, error); open it in a browser, "
      "then download again" },
    { SFT_FOUND_ZIP, "found_zip", "this is a ZIP archive",
      UNS, SAFETENSOR, NULL, ALL, "unpack it first" },
    { SFT_FOUND_TORCH, "found_torch", "this is a PyTorch checkpoint",
      UNS, SAFETENSOR, NULL, ALL, "convert it with a tool that does not execute it" },
    { SFT_FOUND_PICKLE, "found_pickle", "this is a Python pickle",
      UNS, SAFETENSOR, NULL, ALL,
      "loading it can run code; do not load it unless you trust its maker" },
    { SFT_FOUND_GGUF, "found_gguf", "this is a GGUF model",
      UNS, SAFETENSOR, NULL, ALL, "use a program that reads GGUF" },
    { SFT_FOUND_HDF5, "found_hdf5", "this is an HDF5 file",
      UNS, SAFETENSOR, NULL, ALL, "use a program that reads HDF5" },
    { SFT_FOUND_GZIP, "found_gzip", "this is gzip data",
      UNS, SAFETENSOR, NULL, ALL, "run \"gunzip\" first" },
    { SFT_FOUND_ZSTD, "found_zstd", "this is zstd data",
      UNS, SAFETENSOR, NULL, ALL, "run \"unzstd\" first" },
    { SFT_FOUND_NPY, "found_npy", "this is a NumPy array file",
      UNS, SAFETENSOR, NULL, ALL, "numpy.load reads it" },
    { SFT_FOUND_INDEX, "found_index", "this is the index of a sharded model",
      UNS, SAFETENSOR, NULL, ALL, "name it *.safetensors.index.json beside its shards" },
    { SFT_OUT_OF_MEMORY, "out_of_memory", "memory ran out",
      LIM, "MemoryError", NULL, ALL, NULL },
    { SFT_ADDRESS_SPACE, "address_space", "a size is too big for this machine's address space",
      LIM, "MemoryError", NULL, ALL, "use a 64-bit build" },
    { SFT_TOO_MANY_TENSORS, "too_many_tensors", "there are more tensors than the options allow",
      LIM, SAFETENSOR, NULL, ALL, NULL },
    { SFT_TOO_MANY_METADATA, "too_many_metadata",
      "there are more metadata pairs than the options allow",
      LIM, SAFETENSOR, NULL, ALL, NULL },
    { SFT_NAME_TOO_LONG, "name_too_long", "a name is longer than the options allow",
      LIM, SAFETENSOR, NULL, ALL, NULL },
    { SFT_FILE_TOO_LARGE, "file_too_large", "a file is larger than the options allow",
      LIM, SAFETENSOR, NULL, ALL, NULL },
    { SFT_NOT_FOUND, "not_found", "there is no such file",
      IO_, "FileNotFoundError", NULL, ALL, NULL },
    { SFT_IO_OPEN, "io_open", "the file cannot be opened",
      IO_, "OSError", NULL, ALL, NULL },
    { SFT_IO_READ, "io_read", "reading failed",
      IO_, "OSError", NULL, ALL, NULL },
    { SFT_IO_WRITE, "io_write", "writing failed",
      IO_, "OSError", NULL, ALL, NULL },
    { SFT_IO_SYNC, "io_sync", "the data did not reach the disk",
      IO_, "OSError", NULL, ALL, NULL },
    { SFT_IO_PUBLISH, "io_publish", "the finished file could not be given its name",
      IO_, "OSError", NULL, ALL, NULL },
    { SFT_IO_MAP, "io_map", "the file cannot be mapped",
      IO_, "OSError", NULL, ALL, "open it for reading instead" },
    { SFT_IO_SHRUNK, "io_shrunk", "the file became shorter while it was open",
      IO_, "OSError", NULL, ALL, "another program is writing this file" },
    { SFT_IO_NOT_FILE, "io_not_file", "the path is not a file",
      IO_, "OSError", NULL, ALL, NULL },
    { SFT_BAD_ARGUMENT, "bad_argument", "an argument makes no sense",
      USE, "ValueError", NULL, ALL, NULL },
    { SFT_TENSOR_NOT_FOUND, "tensor_not_found", "there is no tensor of that name",
      USE, SAFETENSOR, NULL, ALL, "\"safetensors ls\" lists the names" },
    { SFT_BUFFER_SIZE, "buffer_size", "the buffer is not as long as the data",
      USE, "ValueError", NULL, ALL, NULL },
    { SFT_NOT_MAPPED, "not_mapped", "the file is not mapped in that way",
      USE, "ValueError", NULL, ALL, "borrow or copy the tensor instead" },
    { SFT_SLICE_SYNTAX, "slice_syntax", "the text is no index expression",
      USE, "ValueError", NULL, ALL, "for example [0, 2:8, ::-1, ...]" },
    { SFT_SLICE_RANK, "slice_rank", "the index has more parts than the tensor has dimensions",
      USE, "IndexError", NULL, ALL, NULL },
    { SFT_SLICE_BOUNDS, "slice_bounds", "an index is outside its dimension",
      USE, "IndexError", NULL, ALL, NULL },
    { SFT_SLICE_STEP, "slice_step", "a step is zero",
      USE, "ValueError", NULL, ALL, NULL },
    { SFT_SLICE_PARTIAL_BYTE, "slice_partial_byte",
      "a slice of a dtype under 8 bits does not fall on whole bytes",
      USE, SAFETENSOR, NULL, ALL, "slice outer dimensions, or in multiples that fill bytes" },
    { SFT_NAME_RESERVED, "name_reserved", "a tensor may not be called __metadata__",
      USE, SAFETENSOR, NULL, ALL, NULL },
    { SFT_CAST_DTYPE, "cast_dtype", "there is no cast between these dtypes",
      USE, "TypeError", NULL, ALL, NULL },
    { SFT_CAST_VALUE, "cast_value", "a value has no place in the dtype asked for",
      USE, "ValueError", NULL, ALL, "--saturate takes the nearest value there is" },
    { SFT_OPTION_UNKNOWN, "option_unknown", "there is no such option",
      USE, "ValueError", NULL, ALL, NULL },
    { SFT_OPTION_VALUE, "option_value", "an option cannot have this value",
      USE, "ValueError", NULL, ALL, NULL },
    { SFT_COLUMN_UNKNOWN, "column_unknown", "there is no such column",
      USE, "ValueError", NULL, ALL, NULL },
    { SFT_COLUMN_TYPE, "column_type", "a column's type cannot be written so",
      USE, "TypeError", NULL, ALL, NULL },
    { SFT_ROW_VALUE, "row_value", "a value has no place in the dtype of its column",
      USE, "ValueError", NULL, ALL, NULL },
    { SFT_ROW_SHAPE, "row_shape", "a row's shape or dtype is not that of its column",
      USE, "ValueError", NULL, ALL, NULL },
    { SFT_ROW_NULL, "row_null", "a value is null",
      USE, "ValueError", NULL, ALL, NULL },
    { SFT_ROW_KEY, "row_key", "a key cannot name a tensor",
      USE, "ValueError", NULL, ALL, NULL },
    { SFT_OUT_OF_ORDER, "out_of_order", "this sink takes tensors in file order only",
      STA, SAFETENSOR, NULL, ALL, NULL },
    { SFT_INCOMPLETE, "incomplete", "a planned tensor did not get all its bytes",
      STA, SAFETENSOR, NULL, ALL, NULL },
    { SFT_EXISTS, "exists", "the target is there already",
      STA, "FileExistsError", NULL, ALL, "--force replaces it" },
    { SFT_IS_LINK, "is_link", "the target is a symbolic link",
      STA, "OSError", NULL, ALL, "--follow writes to what it points to" },
    { SFT_WRITER_FAILED, "writer_failed", "an earlier failure ended this writer",
      STA, SAFETENSOR, NULL, ALL, NULL },
    { SFT_EDIT_INTERRUPTED, "edit_interrupted",
      "a change of the file was interrupted and is neither done nor undone",
      STA, "OSError", NULL, ALL, "\"safetensors meta recover FILE\" mends it" },
    { SFT_EDIT_BUSY, "edit_busy", "another program is changing the file",
      STA, "OSError", NULL, ALL, "try again when it is done" },
    { SFT_HARD_LINKS, "hard_links", "the file has several names (hard links)",
      STA, "OSError", NULL, ALL, "--force changes it all the same" },
    { SFT_DATASET_BUSY, "dataset_busy", "another commit to the dataset is under way",
      STA, "OSError", NULL, ALL, "try again when it is done" },
    { SFT_DATASET_CHANGED, "dataset_changed", "the dataset is of another version than before",
      STA, SAFETENSOR, NULL, ALL, "begin again" },
    { SFT_DATASET_DISAGREES, "dataset_disagrees", "the rows do not fit the dataset that is there",
      STA, "ValueError", NULL, ALL, "mode=overwrite replaces the dataset" },
    { SFT_DATASET_UNGUARDED, "dataset_unguarded", "the storage cannot keep two commits apart",
      STA, "OSError", NULL, ALL, "single_writer=true, if nobody else commits meanwhile" },
    { SFT_CANCELLED, "cancelled", "cancelled by the caller",
      SFT_CLASS_CANCELLED, "KeyboardInterrupt", NULL, ALL, NULL },
};

static const sft_code_info unknown_code = {
    SFT_OK, "unknown", "a code of another version", SFT_CLASS_USAGE, SAFETENSOR, NULL, ALL, NULL
};

const sft_code_info *sft_code_at(size_t i) {
    return i < sizeof code_table / sizeof *code_table ? &code_table[i] : NULL;
}

const sft_code_info *sft_code_describe(sft_code code) {
    const sft_code_info *row;
    for (size_t i = 0; (row = sft_code_at(i)) != NULL; i++)
        if (row->code == code) return row;
    return &unknown_code;
}

void sfti_error_clear(sft_error *err) {
    if (!err) return;
    memset(err, 0, sizeof *err);
    err->offset = SFT_NO_OFFSET;
    err->tensor_len = SFT_NO_TENSOR;
}

/* Longest prefix of whole characters within cap bytes. */
static size_t whole_characters(sft_span text, size_t cap) {
    size_t len = text.len < cap ? text.len : cap;
    if (len == text.len) return len;
    while (len > 0 && ((unsigned char)text.data[len] & 0xC0) == 0x80) len--;
    return len;
}

void sfti_error_tensor(sft_error *err, sft_span tensor) {
    if (!err) return;
    size_t len = whole_characters(tensor, sizeof err->tensor);
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
    sfti_error_clear(err);
    err->code = code;
    err->offset = offset;
    err->hint = sft_code_describe(code)->hint;
}

sft_code sfti_fail(sft_error *err, sft_code code, uint64_t offset, const char *format, ...) {
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

sft_code sfti_fail_cancelled(sft_error *err) {
    return sfti_fail(err, SFT_CANCELLED, SFT_NO_OFFSET, "%s",
                     sft_code_describe(SFT_CANCELLED)->sentence);
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
        return sfti_fail(err, code, base + at, "expected %s, found the end of the text",
                         expected);
    char c = rest.data[0];
    bool white = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    const char *kind = c == '{' ? "an object" : c == '[' ? "an array"
                       : white ? "white space" : c == '\0' ? "a NUL byte" : NULL;
    if (kind)
        return sfti_fail(err, code, base + at, "expected %s, found %s", expected, kind);
    size_t token = token_length(rest), shown = whole_characters(rest, EXCERPT);
    if (shown > token) shown = token;
    return sfti_fail(err, code, base + at, "expected %s, found %.*s%s", expected, (int)shown,
                     rest.data, shown < token ? "..." : "");
}

sft_code sfti_fail_memory(sft_error *err, uint64_t bytes) {
    return sfti_fail(err, SFT_OUT_OF_MEMORY, SFT_NO_OFFSET,
                     "expected %llu bytes of memory, found none", (unsigned long long)bytes);
}

sft_code sft_error_set(sft_error *err, sft_code code, int32_t os_errno, const char *text) {
    sfti_fail(err, code, SFT_NO_OFFSET, "%s", text ? text : sft_code_describe(code)->sentence);
    if (err) err->os_errno = os_errno;
    return code;
}

/* ── Escaping ── */

/* The escape (or the character itself) at p into out; bytes written, *used read. */
static size_t escape_one(const uint8_t *p, const uint8_t *end, char out[12], size_t *used) {
    uint32_t c = 0;
    size_t n = sfti_utf8_decode(p, end, &c);
    *used = n ? n : 1;
    if (n == 0) return (size_t)snprintf(out, 12, "\\x%02x", *p);
    if (c == '\\') return (size_t)snprintf(out, 12, "\\\\");
    if (c == '\n') return (size_t)snprintf(out, 12, "\\n");
    if (c == '\t') return (size_t)snprintf(out, 12, "\\t");
    if (c == '\r') return (size_t)snprintf(out, 12, "\\r");
    if (sfti_utf8_unsafe(c))
        return (size_t)snprintf(out, 12, c < 0x80 ? "\\x%02x" : "\\u{%04x}", c);
    memcpy(out, p, n);
    return n;
}

size_t sfti_escape(const char *from, size_t len, char *into, size_t cap, size_t *used) {
    const uint8_t *p = (const uint8_t *)from, *end = p + len;
    size_t put = 0;
    while (p < end) {
        char one[12];
        size_t read, n = escape_one(p, end, one, &read);
        if (n > cap - put) break;
        memcpy(into + put, one, n);
        put += n;
        p += read;
    }
    *used = len - (size_t)(end - p);
    return put;
}
