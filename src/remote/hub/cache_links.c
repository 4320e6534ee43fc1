/* Links of a Hub cache that lead out of their folder and may be followed. Tests: test_beneath.c.
 *
 *     CACHE/models--ORG--NAME/snapshots/REVISION/[FOLDERS/]FILE -> [../]../../blobs/ETAG
 *     CACHE/models--ORG--NAME/blobs/ETAG                        a file, or (shared blobs)
 *                                                               -> ../../blobs/HH/DIGEST
 */
#include "os/os.h"

#include <string.h>

/* ── Paths as text ── */

/* Append the parts of a path to an absolute one, ".." taking the last away. */
static bool append_parts(char *at, size_t cap, const char *path) {
    size_t len = strlen(at);
    for (const char *part = path + strspn(path, "/"); *part; part += strspn(part, "/")) {
        size_t n = strcspn(part, "/");
        bool dots = part[0] == '.' && (n == 1 || (n == 2 && part[1] == '.'));
        if (dots && n == 2) {
            if (len == 0) return false;
            while (at[len - 1] != '/') len--;
            len--;
        } else if (!dots) {
            if (len + n + 2 > cap) return false;
            at[len] = '/';
            memcpy(at + len + 1, part, n);
            len += n + 1;
        }
        at[len] = '\0';
        part += n;
    }
    return true;
}

/* The absolute path that a link leads to, by its words alone. */
static bool link_leads_to(const char *link, const char *target, char *out, size_t cap) {
    out[0] = '\0';
    if (target[0] != '/') {
        if (!append_parts(out, cap, link)) return false;
        char *slash = strrchr(out, '/');
        if (!slash) return false;
        *slash = '\0';
    }
    return append_parts(out, cap, target);
}

/* ── The shape ── */

static bool is_repo_name(const char *part, size_t len) {
    static const char *const kinds[] = { "models--", "datasets--", "spaces--", "kernels--" };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i]);
        if (len > n && memcmp(part, kinds[i], n) == 0) return true;
    }
    return false;
}

/* Bytes of the path up to and with the last part that names a repository, followed by `next`
 * and `more` parts at least behind that; 0: there is none. */
static size_t repo_end(const char *path, const char *next) {
    size_t found = 0, n = strlen(next);
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t len = strcspn(slash + 1, "/");
        const char *behind = slash + 1 + len;
        if (is_repo_name(slash + 1, len) && strncmp(behind, next, n) == 0)
            found = (size_t)(behind - path);
    }
    return found;
}

static size_t count_slashes(const char *path) {
    size_t count = 0;
    for (; *path; path++) count += *path == '/';
    return count;
}

/* Whether path is folder_len bytes of folder, "/blobs" and as many parts behind. */
static bool is_blob_of(const char *path, const char *folder, size_t folder_len, size_t parts) {
    static const char blobs[] = "/blobs/";
    if (strncmp(path, folder, folder_len) != 0) return false;
    if (strncmp(path + folder_len, blobs, sizeof blobs - 1) != 0) return false;
    return count_slashes(path + folder_len) == parts + 1;
}

/* out + *name is "blobs/ETAG" or "blobs/HH/DIGEST". */
static bool is_hub_blob(const char *link, const char *target, char *out, size_t cap,
                        size_t *name) {
    size_t repo = repo_end(link, "/snapshots/"), folder = repo;
    bool fits = link_leads_to(link, target, out, cap);
    if (fits && repo > 0) {
        fits = count_slashes(link + repo) >= 3 && is_blob_of(out, link, repo, 1);
    } else if (fits) {
        repo = repo_end(link, "/blobs/");
        folder = repo;
        while (folder > 0 && link[folder - 1] != '/') folder--;
        fits = folder > 1 && is_blob_of(link, link, repo, 1) && is_blob_of(out, link, --folder, 2);
    }
    if (!fits) return false;
    out[folder] = '\0';
    *name = folder + 1;
    return true;
}

os_link_rule *const sfti_hook_link = is_hub_blob;
