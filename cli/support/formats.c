/* Files of other formats in a folder: which are models, by their names and contents. */
#include "support/input.h"

#include "base/files.h"
#include "base/glob.h"
#include "os/os.h"
#include "os/path.h"
#include "safetensors_import.h"
#include "safetensors_scan.h"
#include "support/files.h"
#include "support/words.h"

#include <string.h>

const char *const cli_other_formats[CLI_OTHER_FORMATS] = {
    ".ckpt", ".pt", ".pth", ".bin", ".gguf", ".onnx", ".npz", ".msgpack", ".pdparams", ".h5",
    ".pkl", ".index", ".keras", ".pt2",
};

/* What only models are called; .bin, .npz, .h5 and the others may be anything. */
static const char *const model_names[] = {
    "*.ckpt", "*.pt", "*.pth", "*.gguf", "*.onnx", "*.pdparams", "*pytorch_model*.bin",
    "adapter_model*.bin", "*.bin.index.json", "flax_model*.msgpack", "tf_model*.h5",
};

size_t cli_other_format(sft_span name) {
    size_t i = 0;
    while (i < CLI_OTHER_FORMATS && !cli_ends_with(name, cli_other_formats[i])) i++;
    return i;
}

bool cli_is_model_name(sft_span name) {
    char small[1024]; /* no name of a file is longer */
    if (name.len > sizeof small) return false;
    for (size_t i = 0; i < name.len; i++) small[i] = cli_lower(name.data[i]);
    name.data = small;
    for (size_t i = 0; i < sizeof model_names / sizeof *model_names; i++)
        if (sfti_glob_match(sft_span_cstr(model_names[i]), name)) return true;
    return false;
}

/* What is in no format that is imported: safetensors by another name, a download that failed, or
 * for such a name anything but a sound file of another kind. other: of its import. */
static bool is_lost_model(const char *path, const sft_open_options *open, sft_code other) {
    bool sure = cli_is_model_name(cli_name_of(path));
    sft_scan *scan = NULL;
    if (sft_scan_open(path, open, &scan, NULL)) return sure;
    const sft_error *err = sft_scan_error(scan);
    sft_code code = err ? err->code : SFT_OK;
    sft_scan_close(scan);
    switch (code) {
    case SFT_OK:
    case SFT_FOUND_GIT_LFS:
    case SFT_FOUND_XET:
    case SFT_FOUND_HTML: return true;
    case SFT_FOUND_ZIP:
    case SFT_FOUND_TORCH:
    case SFT_FOUND_NPY:
    case SFT_FOUND_PICKLE: return sure && other != SFT_FOREIGN_KIND;
    case SFT_FOUND_HDF5: return false;
    default: return sure;
    }
}

bool cli_is_other_model(const char *path, const sft_open_options *open) {
    sft_import_format format;
    sft_import *import = NULL;
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    sft_span name = cli_name_of(path);
    options.alloc = open->alloc;
    options.files = open->files;
    options.skip = true;
    /* Lists of folders, which Python reads there. */
    sft_span folder = sfti_path_name(cli_folder_of(path));
    if (cli_ends_with(sft_span_cstr(path), ".pth")
        && (cli_is(folder, "site-packages") || cli_is(folder, "dist-packages")))
        return false;
    if (sft_import_recognise(path, open->files, &format, NULL)) return cli_is_model_name(name);
    if (format != SFT_IMPORT_NONE && format != SFT_IMPORT_PICKLE) return true;
    sft_code code = sft_import_open(path, &options, &import, NULL);
    sft_import_close(import);
    if (format == SFT_IMPORT_NONE) return is_lost_model(path, open, code);
    /* pickles hold anything: only opening tells whether there are tensors */
    return !code || (code != SFT_FOREIGN_KIND && !cli_ends_with(name, ".pkl"));
}

bool cli_is_later_part(const char *path, const sft_open_options *open) {
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    sft_import *import = NULL;
    char first[4096];
    const char *of = NULL;
    os_info info;
    size_t len = strlen(path);
    if (!cli_ends_with(sft_span_cstr(path), ".gguf") || len >= sizeof first) return false;
    for (size_t i = 0; i + 4 < len; i++)
        if (memcmp(path + i, "-of-", 4) == 0) of = path + i;
    if (!of || of - path < 5 || memcmp(of - 5, "00001", 5) == 0) return false;
    memcpy(first, path, len + 1);
    memcpy(first + (of - path) - 5, "00001", 5);
    if (sfti_files_claim(open->files, path, NULL)) return true;
    if (sfti_os_info_path(first, true, &info)) return false;
    if (sfti_os_info_path(path, true, &info) || info.kind != OS_FILE) return true;
    options.alloc = open->alloc;
    options.skip = true;
    sft_code code = sft_import_open(path, &options, &import, NULL); /* a part fails */
    sft_import_close(import);
    return code && code != SFT_OUT_OF_MEMORY;
}
