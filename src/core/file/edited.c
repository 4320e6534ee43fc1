/* Whether a file is in the middle of an edit: a look for its journal. Tests: test_torn.c,
 * test_edit_journal.c. */
#include "file/edited.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/siphash.h"
#include "base/utf8.h"
#include "os/io.h"
#include "os/path.h"
#include "safetensors_io.h"

#include <errno.h>
#include <string.h>

#define JOURNAL_NAME_MOST 200 /* of NAME in the journal's name */
#define JOURNAL_DIGEST ((size_t)17) /* "-" and 16 digits */

bool sfti_journal_path(const char *path, char out[SFTI_JOURNAL_PATH]) {
    static const char tail[] = ".sft-journal";
    static const uint64_t key[2] = { 0, 0 };
    size_t len = strlen(path), folder = sfti_rule_folder(SFTI_OS_PATHS, (sft_span){ path, len });
    size_t name = len - folder, more = 0;
    char digest[JOURNAL_DIGEST];
    if (name > JOURNAL_NAME_MOST) {
        /* Behind the first bytes of a long name: no two such names share a journal, and none is
         * that of a short name, which is shorter. */
        size_t cut = sfti_utf8_cut((sft_span){ path + folder, name }, JOURNAL_NAME_MOST);
        digest[0] = '-';
        sfti_hex_text(sfti_siphash(key, path + folder, name), 16, digest + 1);
        name = cut < JOURNAL_NAME_MOST - 3 ? JOURNAL_NAME_MOST - 3 : cut;
        more = JOURNAL_DIGEST;
    }
    if (folder + 1 + name + more + sizeof tail > SFTI_JOURNAL_PATH) return false;
    memcpy(out, path, folder);
    out[folder] = '.';
    memcpy(out + folder + 1, path + folder, name);
    memcpy(out + folder + 1 + name, digest, more);
    memcpy(out + folder + 1 + name + more, tail, sizeof tail);
    return true;
}

/* Usually there is no journal, and nothing else is done than to look for it next to the path and,
 * if the path is a link, next to its target. */
sft_code sfti_file_edited(const char *path, const os_info *fd_info, sft_span header,
                          bool is_broken, const sft_allocator *alloc, bool *foreign,
                          sft_error *err) {
    char real[4096], name[SFTI_JOURNAL_PATH];
    os_info there;
    for (const char *at = path;; at = real) {
        sft_code code = SFT_OK;
        int error = sfti_journal_path(at, name) ? sfti_os_info_path(name, false, &there) : ENOENT;
        switch (error) {
        case 0:
            if (sfti_hook_journal)
                code = sfti_hook_journal(at, fd_info, header, is_broken, alloc, foreign, err);
            else
                code = sfti_fail(err, SFT_EDIT_INTERRUPTED, "expected a file without the journal "
                                 "of an edit beside it, found one");
            break;
        /* Without permission to look for the journal the file cannot be opened either, and a
         * journal's name is never too long. */
        case ENOENT: case ENOTDIR: case ENAMETOOLONG: case EACCES: case EPERM: break;
        default: return sfti_io_fail(err, SFT_IO_READ, error, "look for the journal of an edit");
        }
        if (code || fd_info->is_no_link || at == real) return code;
        if (sfti_os_info_path(path, false, &there) || there.kind != OS_LINK) return SFT_OK;
        if (sfti_os_real_path(path, real, sizeof real)) return SFT_OK;
    }
}

sft_code sft_edit_check(const char *path, const sft_allocator *alloc, sft_error *err) {
    static const sft_span none = { NULL, 0 };
    sft_allocator own = sfti_allocator(alloc);
    os_info info;
    if (!path)
        return sfti_misuse(err, "expected a path, found NULL");
    int error = sfti_os_info_path(path, true, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "look at the file");
    if (info.kind != OS_FILE) return SFT_OK;
    return sfti_file_edited(path, &info, none, false, &own, NULL, err);
}
