/* Paths that tell of somebody's machine. Tests: test_text.c. */
#include "text/formats.h"
#include "text/text.h"

/* Behind "\n" of JSON too; behind text that is not ASCII, of which \uXXXX may be, if sure. */
static bool path_start(sft_span text, size_t at, bool sure) {
    char before = at > 0 ? text.data[at - 1] : ' ';
    if (at > 1 && text.data[at - 2] == '\\' && strchr("nrt", before)) return true;
    if (sure && (before & 0x80 || strchr(")]}*!?&#+^", before)
                 || (at > 5 && memcmp(text.data + at - 6, "\\u", 2) == 0)))
        return true;
    return before == '\0' || !!strchr(" \t\r\n\"'=,;([{<>|`", before);
}

/* A name after "home/" and the like that stands for a person. */
static bool names_user(sft_span rest, const char *folder) {
    static const char *const nobody[] = { "public", "shared", "user", "default" };
    size_t len = 0;
    if (!sfti_skip(&rest, folder)) return false;
    while (rest.len > 0 && (*rest.data == '/' || *rest.data == '\\')) rest = sfti_from(rest, 1);
    while (len < rest.len && !strchr("/\\\" \t\r\n',", rest.data[len])) len++;
    rest.len = len;
    return len > 0 && !SFTI_ONE_OF(rest, nobody, sfti_same_letters);
}

#define SURE_ROOTS 5 /* the first of the roots: in no text but paths */

static bool unix_path(sft_span text, size_t at, bool *user) {
    static const char *const roots[] = { "/home/", "/users/", "/root/", "/mnt/", "/media/",
                                         "/data/", "/workspace/", "/content/", "/kaggle/",
                                         "/opt/", "/tmp/", "/var/", "/srv/", "/volumes/",
                                         "/app/", "/storage/" };
    sft_span rest = sfti_from(text, at);
    for (size_t i = 0; i < SFTI_COUNT(roots); i++) {
        if (!sfti_starts_with(rest, roots[i])) continue;
        if (!path_start(text, at, i < SURE_ROOTS)) return false;
        *user = *user || (i < 2 && names_user(rest, roots[i]));
        return true;
    }
    return false;
}

static bool drive_path(sft_span rest, bool *user) {
    char drive = (char)(*rest.data | 0x20);
    if (drive < 'a' || drive > 'z' || (rest.data[2] != '\\' && rest.data[2] != '/')) return false;
    size_t skip = rest.data[2] == rest.data[3] ? 4 : 3;
    *user = *user || names_user(sfti_from(rest, skip), "users");
    return rest.data[2] == '\\' || skip == 3;
}

/* From byte i on, which may be behind the end. */
static size_t next_byte(sft_span text, size_t i, char byte) {
    return i < text.len ? text.len - sfti_find_byte(sfti_from(text, i), byte).len : text.len;
}

bool sfti_private_path(sft_span text, bool *user) {
    bool path = false;
    size_t slash = next_byte(text, 0, '/'), colon = next_byte(text, 1, ':');
    *user = false;
    while (!*user) {
        size_t i = slash < colon ? slash : colon - 1; /* a path's first byte */
        if (text.len < 4 || i + 3 >= text.len) break;
        if (i == slash ? unix_path(text, i, user)
                       : path_start(text, i, true) && drive_path(sfti_from(text, i), user))
            path = true;
        if (slash == i) slash = next_byte(text, i + 1, '/');
        if (colon == i + 1) colon = next_byte(text, i + 2, ':');
    }
    return path;
}
