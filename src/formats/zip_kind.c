/* What a zip archive holds: PyTorch's checkpoints, NumPy's arrays, or something else. */
#include "base/endian.h"
#include "formats/zip/zip.h"
#include "formats/zip/zip_format.h"

#include <string.h>

#define FIRST_NAME 256 /* bytes of it that are looked at */

/* Names of entries that tell an archive that is not read; '*' stands for anything. The first row
 * that matches an entry decides. */
typedef struct zip_mark {
    const char *name;
    const char *what;
} zip_mark;

static const zip_mark zip_marks[] = {
    { "*/archive_format", "a torch.export archive (.pt2)" },
    { "archive_format", "a torch.export archive (.pt2)" },
    { "*models/*.json", "a torch.export archive (.pt2)" },
    { "serialized_exported_program.json", "a torch.export archive (.pt2)" },
    { "*.data/extern_modules", "a torch.package archive" },
    { "MAR-INF/MANIFEST.json", "a TorchServe archive (.mar)" },
    { "model.weights.h5", "a Keras archive (.keras)" },
    { "model.weights.npz", "a Keras archive (.keras)" },
    { "pytorch_variables.pth", "a Stable-Baselines3 archive" },
    { "*/saved_model.pb", "a zip archive of a SavedModel folder" },
    { "saved_model.pb", "a zip archive of a SavedModel folder" },
    { "*.safetensors", "a zip archive of model files" },
    { "*.ckpt", "a zip archive of model files" },
    { "*.pt", "a zip archive of model files" },
    { "*.pth", "a zip archive of model files" },
    { "*.gguf", "a zip archive of model files" },
    { "*.onnx", "a zip archive of model files" },
    { "*.bin", "a zip archive of model files" },
    { "*.distcp", "a zip archive of a distributed checkpoint" },
    { "[Content_Types].xml", "an Office document" },
    { "META-INF/MANIFEST.MF", "a Java archive" },
    { "*.npy", "a zip archive of NumPy arrays and other files" },
};

/* Each '*' takes as much as it must: enough for the patterns above. */
static bool matches(const char *pattern, sft_span name) {
    size_t at = 0, back_at = 0;
    const char *back = NULL;
    while (at < name.len) {
        if (*pattern == '*') {
            back = ++pattern;
            back_at = at;
        } else if (*pattern && *pattern == name.data[at]) { /* a NUL ends no name */
            pattern++;
            at++;
        } else if (back) {
            pattern = back;
            at = ++back_at;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

/* Whether a name ends with "/data.pkl", in any case of the letters. */
static bool is_data_pkl(sft_span name, size_t *folder) {
    static const char wanted[] = "/data.pkl";
    size_t len = sizeof wanted - 1;
    if (name.len <= len) return false;
    *folder = name.len - len;
    for (size_t i = 0; i < len; i++) {
        char c = name.data[*folder + i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c) != wanted[i]) return false;
    }
    return !memchr(name.data, '/', *folder);
}

/* The first entry that PyTorch would take for the pickle, or NULL. */
static const sfti_zip_entry *find_data_pkl(const sfti_zip *zip) {
    size_t folder;
    for (size_t i = 0; i < zip->count; i++)
        if (is_data_pkl(zip->entries[i].name, &folder)) return &zip->entries[i];
    return NULL;
}

sft_import_format sfti_zip_tell(const sfti_zip *zip, const char **what) {
    bool all_npy = zip->count > 0;
    for (size_t i = 0; i < zip->count && all_npy; i++)
        all_npy = matches("*.npy", zip->entries[i].name);
    if (all_npy) return SFT_IMPORT_NPZ;
    if (find_data_pkl(zip)) return SFT_IMPORT_TORCH_ZIP;
    if (!what) return SFT_IMPORT_NONE;
    *what = zip->count == 0 ? "an empty zip archive" : NULL;
    for (size_t m = 0; m < sizeof zip_marks / sizeof *zip_marks; m++)
        for (size_t i = 0; i < zip->count && !*what; i++)
            if (matches(zip_marks[m].name, zip->entries[i].name)) *what = zip_marks[m].what;
    if (!*what) *what = "a zip archive of other files";
    return SFT_IMPORT_NONE;
}

/* The name in the local header at the file's begin, of which `name` holds a part. */
static sft_span first_name(sfti_import *im, char name[FIRST_NAME]) {
    const sft_source *source = im->input;
    uint8_t head[ZIP_LOCAL_LEN];
    sft_span none = { "", 0 };
    if (source->size < ZIP_LOCAL_LEN || sfti_import_read(im, source, 0, head, sizeof head))
        return none;
    uint64_t left = source->size - ZIP_LOCAL_LEN;
    size_t len = sfti_get_u16(head + 26);
    if (len > FIRST_NAME) len = FIRST_NAME;
    if (len > left) len = (size_t)left;
    if (sfti_import_read(im, source, ZIP_LOCAL_LEN, name, len)) return none;
    return (sft_span){ name, len };
}

sft_import_format sfti_zip_guess(sfti_import *im, const sfti_zip *zip) {
    static const char *const torch[] = {
        "*/data.pkl", "*/data/*", "*/version", "*/constants*", "*/code/*", "*/tensors/*",
    };
    char buffer[FIRST_NAME];
    sft_span name = first_name(im, buffer);
    if (find_data_pkl(zip)) return SFT_IMPORT_TORCH_ZIP;
    for (size_t i = 0; i < sizeof torch / sizeof *torch; i++)
        if (matches(torch[i], name)) return SFT_IMPORT_TORCH_ZIP;
    return matches("*.npy", name) ? SFT_IMPORT_NPZ : SFT_IMPORT_NONE;
}

/* ── The reader ── */

bool sfti_is_zip(sfti_import *im, const uint8_t *head, size_t len) {
    (void)im;
    return len >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0);
}

/* What PyTorch would take for NAME/data.pkl must be that, in the one folder that there is. */
static sft_code read_torch(sfti_import *im, const sfti_zip *zip) {
    const sfti_zip_entry *pickle = find_data_pkl(zip);
    sft_span name = pickle->name;
    if (zip->folder.len == 0)
        return sfti_fail(im->err, SFT_FOREIGN_AMBIGUOUS,
                         "expected all entries in one folder, as \"%.*s\" is, found others",
                         SFTI_CLIP(name, 200));
    if (memcmp(name.data + zip->folder.len, "/data.pkl", 9) != 0)
        return sfti_fail_byte(im->err, SFT_FOREIGN_AMBIGUOUS, pickle->begin, "expected "
                              "\"%.*s/data.pkl\", found \"%.*s\", which only some readers take for "
                              "it", SFTI_CLIP(zip->folder, 100), SFTI_CLIP(name, 100));
    return sfti_read_torch_zip(im, zip);
}

sft_code sfti_read_zip(sfti_import *im) {
    sfti_zip zip;
    const char *what = NULL;
    sft_code code = sfti_zip_open(im, im->input, &zip);
    if (code) return code;
    sft_import_format format = sfti_zip_tell(&zip, &what);
    if (format == SFT_IMPORT_NONE)
        return sfti_fail(im->err, SFT_FOREIGN_KIND,
                         "expected a PyTorch checkpoint or NumPy arrays, found %s", what);
    im->format = format;
    if (zip.unused > 0) {
        code = sfti_import_leave(im, SFT_IMPORT_LEFT_RECORD, (sft_span){ "", 0 }, 1, zip.unused,
                                 "bytes between the entries of the zip archive");
        if (code) return code;
    }
    return format == SFT_IMPORT_NPZ ? sfti_read_npz(im, &zip) : read_torch(im, &zip);
}
