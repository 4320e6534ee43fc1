/* A name that is walked part by part beneath a folder, links followed as text: for systems that
 * cannot be asked to stay beneath one. */
#ifndef SFTI_BENEATH_H
#define SFTI_BENEATH_H

#include <stddef.h>

#define SFTI_WALK_PATH 4096
#define SFTI_WALK_LINKS 40

/* What is before `at` are folders, none of them a link. */
typedef struct sfti_walk {
    char text[SFTI_WALK_PATH];
    char *at; /* the part to open next */
    size_t links;
} sfti_walk;

/* ENOENT: no name; EXDEV: it leads out; EISDIR: it is the folder itself. */
int sfti_walk_begin(sfti_walk *w, const char *name);
/* The part at `at` is a link to target, with rest behind it. text becomes the walked folders, the
 * target and the rest, without "." and ".."; what was walked stays walked in text only, and is
 * opened again. ELOOP: there were too many. */
int sfti_walk_splice(sfti_walk *w, const char *target, const char *rest);

/* "a/b", the first bytes of a, which may be out. */
int sfti_walk_join(const char *a, size_t len, const char *b, char *out, size_t cap);

#endif
