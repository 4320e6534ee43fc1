/* Removes what interrupted saves left in a folder. Tests: test_sink.c. */
#include "bytes/replaced.h"
#include "bytes/source.h"
#include "os/path.h"
#include "safetensors_io.h"

#include <errno.h>
#include <string.h>

/* One pass over a folder: names are shown, or the first is kept to be removed. */
typedef struct sweep_pass {
    const char *folder;
    bool show;
    sft_sweep_fn each;
    void *ctx;
    size_t count;
    size_t seen, stays; /* names that were found, and that are listed although removed */
    char name[256], before[256];
} sweep_pass;

#define SWEEP_PATH (4096 + 2 + 256)
#define SWEEP_FOUND (-1)
#define SWEEP_STOPPED (-2)

/* "folder/name"; false if it does not fit. */
static bool sweep_path(const char *folder, sft_span name, char *out, size_t cap) {
    size_t len = strlen(folder);
    char joint = sfti_path_joint(sft_span_cstr(folder));
    if (len + 1 + name.len >= cap) return false;
    memcpy(out, folder, len);
    if (joint) out[len++] = joint;
    memcpy(out + len, name.data, name.len);
    out[len + name.len] = '\0';
    return true;
}

static int sweep_entry(void *ctx, const char *name, os_kind kind) {
    sweep_pass *pass = ctx;
    size_t len = strlen(name);
    sft_span of;
    if (kind != OS_FILE || len >= sizeof pass->name) return 0;
    bool goes = sfti_temporary_name(sft_span_cstr(name), &of);
    if (!goes) {
        /* A file that was replaced, whose successor is there; else, and where something else has
         * taken its name, it is the only one. */
        char path[SWEEP_PATH];
        os_info info;
        goes = sfti_old_name(sft_span_cstr(name), &of)
               && sweep_path(pass->folder, of, path, sizeof path)
               && sfti_os_info_path(path, false, &info) == 0 && info.kind == OS_FILE;
    }
    if (!goes) return 0;
    if (!pass->show) {
        if (pass->seen++ < pass->stays) return 0;
        memcpy(pass->name, name, len + 1);
        return SWEEP_FOUND;
    }
    pass->count++;
    return pass->each && !pass->each(pass->ctx, name) ? SWEEP_STOPPED : 0;
}

/* What is listed does not change while it is listed: one is found, removed, and so on. One that is
 * open somewhere may stay listed until it is closed. */
static sft_code sweep_all(const char *folder, sweep_pass *pass, sft_error *err) {
    for (;;) {
        char path[SWEEP_PATH];
        pass->seen = 0;
        int result = sfti_os_list(folder, sweep_entry, pass);
        if (result == SWEEP_STOPPED) return sfti_fail_cancelled(err);
        if (result == 0) return SFT_OK;
        if (result != SWEEP_FOUND) return sfti_io_fail(err, SFT_IO_OPEN, result, "list the folder");
        if (strcmp(pass->name, pass->before) == 0) {
            pass->stays++;
            continue;
        }
        memcpy(pass->before, pass->name, sizeof pass->name);
        bool fits = sweep_path(folder, sft_span_cstr(pass->name), path, sizeof path);
        int error = fits ? sfti_os_unlink(path) : ENAMETOOLONG;
        if (error && error != ENOENT)
            return sfti_io_fail(err, SFT_IO_WRITE, error,
                                "remove a file that an interrupted save left");
        pass->count++;
        if (pass->each && !pass->each(pass->ctx, pass->name)) return sfti_fail_cancelled(err);
    }
}

sft_code sft_sweep(const char *folder, bool dry_run, sft_sweep_fn each, void *ctx, size_t *count,
                   sft_error *err) {
    sweep_pass pass = { .folder = folder, .show = dry_run, .each = each, .ctx = ctx };
    if (count) *count = 0;
    if (!folder || strlen(folder) > 4096)
        return sfti_misuse(err, "expected the path of a folder, found %s",
                           folder ? "too long a one" : "NULL");
    sft_code code = sweep_all(folder, &pass, err);
    if (count) *count = pass.count;
    return code;
}
