/* Finds what an interrupted replacement of a file left. Tests: test_os_files.c. */
#include "bytes/replaced.h"
#include "os/path.h"

#include <errno.h>
#include <string.h>

static const char old_mark[] = ".sft-", old_end[] = ".old";
#define LEFT_LETTERS ((size_t)8)
#define FRESH_LETTERS ((size_t)6)
#define LEFT_TAIL (sizeof old_mark - 1 + LEFT_LETTERS + sizeof old_end - 1)

static const char letters[] = "0123456789abcdefghijklmnopqrstuv";

bool sfti_temporary_name(sft_span name, sft_span *of) {
    const size_t tail = sizeof old_mark - 1 + FRESH_LETTERS;
    if (name.len <= 1 + tail || name.data[0] != '.') return false;
    const char *mark = name.data + name.len - tail;
    if (memcmp(mark, old_mark, sizeof old_mark - 1) != 0) return false;
    for (size_t i = sizeof old_mark - 1; i < tail; i++)
        if (!memchr(letters, mark[i], sizeof letters - 1)) return false;
    *of = (sft_span){ name.data + 1, name.len - 1 - tail };
    return true;
}

bool sfti_old_name(sft_span name, sft_span *of) {
    if (name.len <= 1 + LEFT_TAIL || name.data[0] != '.') return false;
    const char *tail = name.data + name.len - LEFT_TAIL, *drawn = tail + sizeof old_mark - 1;
    if (memcmp(tail, old_mark, sizeof old_mark - 1) != 0) return false;
    for (size_t i = 0; i < LEFT_LETTERS; i++)
        if (!memchr(letters, drawn[i], sizeof letters - 1)) return false;
    *of = (sft_span){ name.data + 1, name.len - 1 - LEFT_TAIL };
    return memcmp(drawn + LEFT_LETTERS, old_end, sizeof old_end - 1) == 0;
}

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
