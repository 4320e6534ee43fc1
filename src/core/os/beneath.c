/* A name walked part by part beneath a folder, links followed as text. Tests: test_beneath.c. */
#include "os/beneath.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

int sfti_walk_join(const char *a, size_t len, const char *b, char *out, size_t cap) {
    size_t rest = strlen(b) + 1;
    if (len >= cap || rest >= cap - len) return ENAMETOOLONG;
    memmove(out, a, len);
    out[len] = '/';
    memcpy(out + len + 1, b, rest);
    return 0;
}

/* Append the parts of a path to text, of which len bytes stay. */
static int walk_append(sfti_walk *w, size_t len, const char *path) {
    for (const char *part = path; *part; part += strspn(part, "/")) {
        size_t part_len = strcspn(part, "/");
        bool dot = part_len == 1 && part[0] == '.';
        bool up = part_len == 2 && part[0] == '.' && part[1] == '.';
        if (up && len == 0) return EXDEV;
        if (up) {
            for (len--; len > 0 && w->text[len - 1] != '/';) len--;
        } else if (!dot && part_len > 0) {
            if (len + part_len + 2 > sizeof w->text) return ENAMETOOLONG;
            memcpy(w->text + len, part, part_len);
            len += part_len;
            w->text[len++] = '/';
        }
        part += part_len;
    }
    if (len > 0) len--;
    w->text[len] = '\0';
    return len > 0 ? 0 : EISDIR;
}

int sfti_walk_begin(sfti_walk *w, const char *name) {
    size_t len = strlen(name);
    w->links = 0;
    w->at = w->text;
    w->text[0] = '\0';
    if (len == 0) return ENOENT;
    if (len >= sizeof w->text) return ENAMETOOLONG;
    return name[0] == '/' ? EXDEV : walk_append(w, 0, name);
}

int sfti_walk_splice(sfti_walk *w, const char *target, const char *rest) {
    char joined[SFTI_WALK_PATH];
    int error = sfti_walk_join(target, strlen(target), rest, joined, sizeof joined);
    if (error) return error;
    if (target[0] == '/') return EXDEV;
    if (++w->links > SFTI_WALK_LINKS) return ELOOP;
    return walk_append(w, (size_t)(w->at - w->text), joined);
}
