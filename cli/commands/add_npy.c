#include "commands/add_npy.h"

#include "base/error.h"
#include "os/os.h"

#include <string.h>

/* It is one array, and all that the file holds. */
static sft_code npy_take(cli_npy *out, sft_error *err) {
    sft_import_format format = sft_import_format_of(out->import);
    if (format != SFT_IMPORT_NPY)
        return sfti_fail(err, SFT_FOREIGN_KIND, SFT_NO_OFFSET,
                         "expected a .npy file of one array, found a %s",
                         sft_import_format_describe(format)->title);
    const sft_import_left *left = sft_import_left_at(out->import, 0);
    if (left)
        return sfti_fail(err, SFT_FOREIGN_SIZE, SFT_NO_OFFSET,
                         "expected the array to end the file, found %llu more byte%s",
                         (unsigned long long)left->bytes, left->bytes == 1 ? "" : "s");
    out->part = sft_import_part(out->import, 0);
    return SFT_OK;
}

sft_code cli_npy_open(cli *c, const char *path, cli_npy *out, sft_error *err) {
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    os_info info;
    memset(out, 0, sizeof *out);
    options.alloc = &c->alloc;
    sft_code code = sft_import_open(path, &options, &out->import, err);
    if (code && (err->hint == SFT_HINT_IMPORT_SKIP || err->hint == SFT_HINT_IMPORT_AS))
        err->hint = SFT_HINT_NONE; /* options of convert */
    if (code) return code;
    if (sfti_os_info_path(path, true, &info) == 0) out->mode = info.mode & 0777;
    return npy_take(out, err);
}

void cli_npy_close(cli_npy *npy) {
    sft_import_close(npy->import);
    memset(npy, 0, sizeof *npy);
}
