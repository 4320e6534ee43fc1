/* Finds what an interrupted replacement of a file left. Tests: test_os_files.c. */
#include "bytes/replaced.h"
#include "os/path.h"

#include <errno.h>
#include <string.h>

/* .NAME.sft-, so many drawn letters, and the end. */
static bool drawn_name(sft_span name, size_t drawn, const char *end, sft_span *of) {
    static const char mark[] = ".sft-", letters[] = "0123456789abcdefghijklmnopqrstuv";
    const size_t ending = strlen(end), tail = sizeof mark - 1 + drawn + ending;
    if (name.len <= 1 + tail || name.data[0] != '.') return false;
    const char *at = name.data + name.len - tail;
    if (memcmp(at, mark, sizeof mark - 1) != 0) return false;
    at += sizeof mark - 1;
    for (size_t i = 0; i < drawn; i++)
        if (!memchr(letters, at[i], sizeof letters - 1)) return false;
    *of = (sft_span){ name.data + 1, name.len - 1 - tail };
    return memcmp(at + drawn, end, ending) == 0;
}

bool sfti_old_name(sft_span name, sft_span *of) { return drawn_name(name, 8, ".old", of); }

bool sfti_temporary_name(sft_span name, sft_span *of) { return drawn_name(name, 6, "", of); }

typedef struct old_pass {
    sft_span name; /* of the file that is not there */
    char *out;     /* where the name goes */
    size_t room, count;
} old_pass;

static int old_entry(void *ctx, const char *name, os_kind kind) {
    old_pass *pass = ctx;
    sft_span of;
    size_t len = strlen(name);
    if (kind != OS_FILE || len >= pass->room || !sfti_old_name(sft_span_cstr(name), &of)) return 0;
    if (!sft_span_equal(of, pass->name)) return 0;
    memcpy(pass->out, name, len + 1);
    pass->count++;
    return 0;
}

size_t sfti_old_find(const char *path, char out[SFTI_OLD_PATH]) {
    os_info info;
    size_t folder = sfti_folder_len(path);
    old_pass pass = { .name = sft_span_cstr(path + folder), .out = out + folder };
    if (folder + 1 >= SFTI_OLD_PATH || !pass.name.len) return 0;
    if (sfti_os_info_path(path, false, &info) != ENOENT) return 0;
    pass.room = SFTI_OLD_PATH - folder;
    memcpy(out, folder ? path : ".", folder ? folder : 1);
    out[folder ? folder : 1] = '\0';
    if (sfti_os_list(out, old_entry, &pass) != 0) return 0;
    memcpy(out, path, folder);
    return pass.count;
}

bool sfti_old_fail(const char *path, sft_error *err) {
    char old[SFTI_OLD_PATH];
    if (sfti_old_find(path, old) == 0) return false;
    sfti_fail(err, SFT_NOT_FOUND,
              "expected a file, found none: its replacement was interrupted and left it as %s",
              old + sfti_folder_len(old));
    if (err) err->os_errno = ENOENT;
    sfti_hint(err, SFT_HINT_RECOVER);
    return true;
}
