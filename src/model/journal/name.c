#include "base/number.h"
#include "base/siphash.h"
#include "base/utf8.h"
#include "journal/journal.h"
#include "os/path.h"

#include <errno.h>
#include <string.h>

#define JOURNAL_NAME_MOST 200 /* of NAME in the journal's name */
#define JOURNAL_DIGEST ((size_t)17) /* "-" and 16 digits */

/* Behind the first bytes of a long name: no two such names share a journal, and none is that of
 * a short name, which is shorter. */
static size_t journal_digest(const char *name, size_t *len, char out[JOURNAL_DIGEST]) {
    static const uint64_t key[2] = { 0, 0 };
    uint64_t hash = sfti_siphash(key, name, *len);
    size_t cut = sfti_utf8_cut(name, JOURNAL_NAME_MOST);
    *len = cut < JOURNAL_NAME_MOST - 3 ? JOURNAL_NAME_MOST - 3 : cut;
    out[0] = '-';
    sfti_hex_text(hash, 16, out + 1);
    return JOURNAL_DIGEST;
}

bool sfti_journal_path(const char *path, char out[SFTI_JOURNAL_PATH]) {
    static const char tail[] = ".sft-journal";
    size_t folder = sfti_folder_len(path), name = strlen(path + folder), more = 0;
    char digest[JOURNAL_DIGEST];
    if (name > JOURNAL_NAME_MOST) more = journal_digest(path + folder, &name, digest);
    if (folder + 1 + name + more + sizeof tail > SFTI_JOURNAL_PATH) return false;
    memcpy(out, path, folder);
    out[folder] = '.';
    memcpy(out + folder + 1, path + folder, name);
    memcpy(out + folder + 1 + name, digest, more);
    memcpy(out + folder + 1 + name + more, tail, sizeof tail);
    return true;
}

/* What stands where the journal would; the errno. */
int sfti_journal_there(const char *path, os_info *there) {
    char name[SFTI_JOURNAL_PATH];
    return sfti_journal_path(path, name) ? sfti_os_info_path(name, false, there) : ENOENT;
}

int sfti_journal_remove(const char *path) {
    char name[SFTI_JOURNAL_PATH];
    return sfti_journal_path(path, name) ? sfti_os_unlink(name) : 0;
}
