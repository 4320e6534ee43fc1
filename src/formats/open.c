/* sft_import_open: which format a file has, and the reader that opens it. Tests:
 * test_import_files.c. */
#include "base/files.h"
#include "base/options.h"
#include "formats/parts/state.h"
#include "formats/shards.h"
#include "formats/zip/zip.h"
#include "os/io.h"
#include "os/path.h"

#include <string.h>

/* ── The table of formats ── */

static bool never(sfti_import *im, const uint8_t *head, size_t len) {
    (void)im, (void)head, (void)len;
    return false;
}

static bool is_torch_index(sfti_import *im, const uint8_t *head, size_t len);
static sft_code read_torch_index(sfti_import *im);

/* In the order in which they are tried: those with a magic number first. */
static const sfti_format format_table[] = {
    { { SFT_IMPORT_TORCH_ZIP, "torch", "PyTorch checkpoint", true }, sfti_is_zip, sfti_read_zip },
    { { SFT_IMPORT_TORCHSCRIPT, "torchscript", "TorchScript model", true }, never, NULL },
    { { SFT_IMPORT_NPZ, "npz", "NumPy archive", false }, never, NULL },
    { { SFT_IMPORT_NPY, "npy", "NumPy array", false }, sfti_is_npy, sfti_read_npy },
    { { SFT_IMPORT_GGUF, "gguf", "GGUF model", false }, sfti_is_gguf, sfti_read_gguf },
    { { SFT_IMPORT_TORCH_LEGACY, "torch_legacy", "PyTorch checkpoint (before 1.6)", true },
      sfti_is_torch_legacy, sfti_read_torch_legacy },
    { { SFT_IMPORT_TORCH_TAR, "torch_tar", "PyTorch checkpoint (before 0.1.10)", true },
      sfti_is_torch_tar, sfti_read_torch_tar },
    { { SFT_IMPORT_TORCH_INDEX, "torch_index", "PyTorch checkpoint in shards", true },
      is_torch_index, read_torch_index },
    { { SFT_IMPORT_TF_BUNDLE, "tensorflow", "TensorFlow checkpoint", false }, sfti_is_tf_bundle,
      sfti_read_tf_bundle },
    { { SFT_IMPORT_PICKLE, "pickle", "pickle of arrays", true }, sfti_is_pickle,
      sfti_read_pickle },
    { { SFT_IMPORT_ONNX, "onnx", "ONNX model", false }, sfti_is_onnx, sfti_read_onnx },
    { { SFT_IMPORT_MSGPACK, "flax", "Flax checkpoint", false }, sfti_is_msgpack,
      sfti_read_msgpack },
};
#define FORMAT_COUNT (sizeof format_table / sizeof *format_table)

const sft_import_format_info *sft_import_format_describe(sft_import_format format) {
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (format_table[i].info.format == format) return &format_table[i].info;
    return NULL;
}

/* Whether "weight_map", whose text ends at i, is an object with an entry: else it names no shards,
 * and is an index of safetensors as much as of PyTorch's. */
static bool has_entry(const char *text, size_t len, size_t i) {
    for (const char *next = ":{"; *next; i++) {
        if (i >= len) return false;
        if (text[i] == *next) next++;
        else if (!text[i] || !strchr(" \t\r\n", text[i])) return false;
    }
    while (i < len && text[i] && strchr(" \t\r\n", text[i])) i++;
    return i < len && text[i] == '"';
}

/* A JSON object that speaks of a weight_map, and not of safetensors files. */
static bool is_torch_index(sfti_import *im, const uint8_t *head, size_t len) {
    char text[4096];
    size_t i = 0, some = im->input->size < sizeof text ? (size_t)im->input->size : sizeof text;
    while (i < len && strchr(" \t\r\n", head[i]) && head[i]) i++;
    if (i == len || head[i] != '{') return false;
    if (sfti_import_exact(im->input, 0, text, some, im->err)) return false;
    bool has_map = false, is_ours = false;
    for (i = 0; i + 12 <= some; i++) {
        has_map |= memcmp(text + i, "\"weight_map\"", 12) == 0 && has_entry(text, some, i + 12);
        is_ours |= memcmp(text + i, ".safetensors", 12) == 0;
    }
    return has_map && !is_ours;
}

/* Told by the system, not by the file: whoever asks again may hear another answer. */
static bool is_failure(sft_code code) {
    const sft_code_info *info = code ? sft_code_describe(code) : NULL;
    return info && (info->cls == SFT_CLASS_IO || code == SFT_OUT_OF_MEMORY);
}

/* *out NULL: none of them. A file that does not fit a format breaks its rules, which is no failure;
 * one that cannot be read is. */
static sft_code recognise(sfti_import *im, const sfti_format **out) {
    uint8_t head[64];
    size_t len = im->input->size < sizeof head ? (size_t)im->input->size : sizeof head;
    sft_error *err = im->err, tried = SFT_ERROR_INIT;
    *out = NULL;
    if (im->input->size == SFT_SIZE_UNKNOWN) return SFT_OK;
    sft_code code = sfti_import_exact(im->input, 0, head, len, err);
    if (code) return code;
    im->err = &tried;
    for (size_t i = 0; i < FORMAT_COUNT && !*out && !is_failure(tried.code); i++) {
        tried.code = SFT_OK;
        if (format_table[i].is(im, head, len)) *out = &format_table[i];
    }
    im->err = err;
    if (*out || !is_failure(tried.code)) return SFT_OK;
    if (err) *err = tried;
    return tried.code;
}

/* ── An import ── */

static SFTI_OPTIONS_TAKE(take_import, sft_import_options, SFT_IMPORT_OPTIONS_INIT, alloc)

static void *budget_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    sfti_budget *b = ctx;
    const sft_allocator *own = &b->own;
    if (b->most == 0) return own->resize(own->ctx, ptr, old_size, new_size);
    uint64_t rest = b->used > old_size ? b->used - old_size : 0;
    if (new_size > old_size && (rest > b->most || new_size > b->most - rest)) {
        b->is_full = true;
        return NULL;
    }
    void *at = own->resize(own->ctx, ptr, old_size, new_size);
    if (at || new_size == 0) b->used = rest + new_size;
    return at;
}

static sft_code import_new(const sft_import_options *options, sft_import **out, sft_error *err) {
    sft_import_options own;
    *out = NULL;
    sft_code code = take_import(options, &own, err);
    if (code) return code;
    if (own.dequantised == SFT_BOOL) own.dequantised = SFT_F16;
    if (own.dequantised != SFT_F16 && own.dequantised != SFT_BF16 && own.dequantised != SFT_F32)
        return sfti_fail(err, SFT_BAD_ARGUMENT,
                         "expected F16, BF16 or F32 for what is dequantised, found another dtype");
    sft_allocator alloc = sfti_allocator(own.alloc);
    sft_import *im = sfti_take(&alloc, sizeof *im);
    if (!im) return sfti_fail_memory(err, sizeof *im);
    *im = (sft_import){ .foreign = { sft_import_json, sfti_import_files },
                        .describe = sft_import_format_describe, .budget = { .own = alloc },
                        .options = own, .err = err, .shards = 1 };
    im->alloc = im->arena.alloc = (sft_allocator){ budget_resize, &im->budget };
    *out = im;
    return SFT_OK;
}

void sft_import_close(sft_import *import) {
    if (!import) return;
    sft_allocator alloc = import->budget.own;
    for (sfti_held *held = import->held; held; held = held->next) sft_source_close(&held->source);
    sfti_checks_end(import);
    if (import->work.in) (void)sfti_os_resize(NULL, import->work.in, 2 * SFTI_WORK_BYTES, 0);
    if (import->work.has_mutex) sfti_os_mutex_free(&import->work.mutex);
    sfti_arena_free(&import->arena);
    sfti_release(&alloc, import, sizeof *import);
}

static sft_code take_input(sft_import *im, sft_source source) {
    sft_code code = sfti_import_own(im, &source, &im->input);
    if (code) return code;
    im->input_bytes = im->input->size;
    sfti_import_allow(im);
    if (im->input->size != SFT_SIZE_UNKNOWN) return SFT_OK;
    return sfti_fail(im->err, SFT_FOREIGN_KIND,
                     "expected a file, whose end can be read first, found a pipe");
}

static sft_code read_input(sft_import *im) {
    const sfti_format *format;
    sft_code code = recognise(im, &format);
    if (code) return code;
    if (!format)
        return sfti_fail_byte(im->err, SFT_FOREIGN_KIND, 0, "expected a format of tensors that is "
                              "read here, found something else");
    im->format = format->info.format;
    return format->read(im);
}

/* A shard is not an index again. */
static sft_code read_shard(sfti_import *im) {
    const sfti_format *format;
    sft_code code = recognise(im, &format);
    if (code) return code;
    if (format && format->info.format != SFT_IMPORT_TORCH_INDEX) return format->read(im);
    return sfti_fail_byte(im->err, SFT_FOREIGN_KIND, 0,
                          "expected a PyTorch checkpoint as shard, found something else");
}

static sft_code read_torch_index(sfti_import *im) {
    return sfti_read_torch_index(im, read_shard);
}

/* The shards that no index names. */
static sft_code read_more(sft_import *im) {
    const sft_source *first = im->input;
    sft_import_format format = im->format;
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < im->more_count; i++) {
        sft_span name = sfti_path_name(sft_span_cstr(im->more[i]));
        sfti_import_begin_shard(im, (uint32_t)i + 1);
        code = sfti_import_file(im, name, &im->input);
        if (!code) code = read_shard(im);
        if (code && im->err && im->err->offset != SFT_NO_OFFSET) {
            sft_error found = *im->err; /* its offset is that of a byte in this shard */
            sfti_error_text(im->err, "%s, in %.*s", found.message, SFTI_CLIP(name, 200));
        }
    }
    im->input = first;
    im->format = format;
    return code;
}

static sft_code open_input(sft_import *im, sft_import **out) {
    int error = sfti_os_mutex_init(&im->work.mutex);
    im->work.has_mutex = error == 0;
    if (error) return sfti_io_fail(im->err, SFT_OUT_OF_MEMORY, error, "create a mutex");
    sft_code code = read_input(im);
    if (!code) code = read_more(im);
    const char *root = im->options.root;
    if (!code && root && *root && im->branches.count == 0) /* of a format that has none */
        code = sfti_fail(im->err, SFT_FOREIGN_BRANCH,
                         "expected a branch with tensors, found none at \"%.*s\"",
                         SFTI_CLIP(sft_span_cstr(root), 200));
    if (!code) code = sfti_import_settle(im);
    if (code == SFT_OUT_OF_MEMORY && im->budget.is_full)
        code = sfti_fail(im->err, SFT_FOREIGN_TABLE, "expected a table of contents that needs at "
                         "most %llu bytes of memory, for %llu of input, found one that needs more",
                         (unsigned long long)im->budget.most, (unsigned long long)im->input_bytes);
    im->err = NULL;
    im->budget.most = 0;
    if (!code) *out = im;
    return code;
}

sft_code sft_import_open_source(sft_source source, const sft_import_options *options,
                                sft_import **out, sft_error *err) {
    sft_import *im;
    *out = NULL;
    sft_code code = import_new(options, &im, err);
    if (code) sft_source_close(&source);
    else code = take_input(im, source);
    if (!code) code = open_input(im, out);
    if (code) sft_import_close(im);
    return code;
}

/* ── Paths ── */

/* What a folder has that stands for the model in it. */
static const char *const folder_files[] = {
    "pytorch_model.bin.index.json", "variables/variables.index", "pytorch_model.bin",
};
#define FOLDER_FILES (sizeof folder_files / sizeof *folder_files)

static const char *join(sft_import *im, const char *folder, const char *name) {
    size_t len = strlen(folder);
    char joint = sfti_path_joint(sft_span_cstr(folder));
    char *path = sfti_arena_array(&im->arena, len + 1 + strlen(name) + 1, 1);
    if (!path) return (void)sfti_fail_memory(im->err, len), NULL;
    memcpy(path, folder, len);
    if (joint) path[len++] = joint;
    memcpy(path + len, name, strlen(name) + 1);
    return path;
}

static sft_code fail_folder(const sft_import *im) {
    return sfti_fail(im->err, SFT_IO_NOT_FILE, "expected a file, or a folder with a SavedModel or "
                     "an index of PyTorch shards, found another folder");
}

/* *path becomes the file that stands for a folder. */
static sft_code enter_folder(sft_import *im, const char **path) {
    os_info info;
    if (im->is_claimed || sfti_os_info_path(*path, true, &info) != 0 || info.kind != OS_DIR)
        return SFT_OK;
    for (size_t i = 0; i < FOLDER_FILES; i++) {
        const char *file = join(im, *path, folder_files[i]);
        if (!file) return SFT_OUT_OF_MEMORY;
        if (sfti_os_info_path(file, true, &info) != 0 || info.kind != OS_FILE) continue;
        *path = file;
        return SFT_OK;
    }
    return fail_folder(im);
}

/* The same of a folder that options.files list. */
typedef struct folder_found {
    bool is_there[FOLDER_FILES];
} folder_found;

static bool find_file(void *ctx, const sft_listed *entry) {
    folder_found *found = ctx;
    size_t len = strlen(entry->name);
    for (size_t i = 0; i < FOLDER_FILES; i++) {
        char next = strncmp(folder_files[i], entry->name, len) ? 'x' : folder_files[i][len];
        if (next == (entry->folder ? '/' : '\0')) found->is_there[i] = true;
    }
    return true;
}

static sft_code enter_claimed(sft_import *im, const char **path) {
    folder_found found = { { false } };
    if (!sfti_files_can_list(im->options.files)) return fail_folder(im);
    sft_code code = sfti_files_list(im->options.files, *path, find_file, &found, im->err);
    if (code) return code;
    for (size_t i = 0; i < FOLDER_FILES; i++) {
        if (!found.is_there[i]) continue;
        *path = join(im, *path, folder_files[i]);
        return *path ? SFT_OK : SFT_OUT_OF_MEMORY;
    }
    return fail_folder(im);
}

static sft_code open_path(sft_import *im, const char *path) {
    sft_source source;
    im->is_claimed = sfti_files_claim(im->options.files, path, NULL);
    sft_code code = enter_folder(im, &path);
    if (!code) code = sfti_import_path(im, path, NULL, &source);
    if (code == SFT_IO_NOT_FILE && im->is_claimed) {
        code = enter_claimed(im, &path);
        if (!code) code = sfti_import_path(im, path, NULL, &source);
    }
    if (code) return code;
    const char *name = path + sfti_folder_len(path);
    im->folder = sfti_arena_copy(&im->arena, path, (size_t)(name - path));
    im->name = sft_span_cstr(sfti_arena_copy(&im->arena, name, strlen(name)));
    if (im->folder && im->name.data) return take_input(im, source);
    sft_source_close(&source);
    return sfti_fail_memory(im->err, strlen(path));
}

sft_code sft_import_open(const char *path, const sft_import_options *options, sft_import **out,
                         sft_error *err) {
    return sfti_import_open_list(&path, 1, options, out, err);
}

sft_code sfti_import_open_list(const char *const *paths, size_t count,
                               const sft_import_options *options, sft_import **out,
                               sft_error *err) {
    sft_import *im;
    *out = NULL;
    if (!*paths)
        return sfti_misuse(err, "expected a path, found NULL");
    sft_code code = import_new(options, &im, err);
    if (!code) im->more = paths + 1;
    if (!code) im->more_count = count - 1;
    if (!code) code = open_path(im, *paths);
    if (!code) code = open_input(im, out);
    if (code) sft_import_close(im);
    return code;
}

/* The format of an archive; of one that breaks a rule, what opening it would complain about. */
static sft_import_format zip_format(sft_import *im) {
    sfti_zip zip;
    im->err = NULL;
    sft_code code = sfti_zip_open(im, im->input, &zip);
    if (is_failure(code)) return SFT_IMPORT_TORCH_ZIP;
    return code ? sfti_zip_guess(im, &zip) : sfti_zip_tell(&zip, NULL);
}

sft_code sft_import_recognise(const char *path, const sft_files *files, sft_import_format *out,
                              sft_error *err) {
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    sft_import *im;
    options.files = files;
    *out = SFT_IMPORT_NONE;
    sft_code code = import_new(&options, &im, err);
    if (!code) code = open_path(im, path);
    const sfti_format *format = NULL;
    if (!code) code = recognise(im, &format);
    if (format) *out = format->info.format;
    if (*out == SFT_IMPORT_TORCH_ZIP) *out = zip_format(im);
    sft_import_close(im);
    return code;
}
