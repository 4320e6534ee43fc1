/* A folder of small models for one test program: made, filled with raw bytes, removed.
 * Define _GNU_SOURCE before the first include. */
#ifndef TEMP_MODEL_H
#define TEMP_MODEL_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMP_MOST 4096

typedef struct temp_folder {
    char path[64];
    char *made[TEMP_MOST]; /* files and folders, in the order of making */
    size_t count;
} temp_folder;

/* Fails loudly: a test without its files is no test. */
static inline void temp_must(int ok, const char *what) {
    if (ok) return;
    perror(what);
    abort();
}

static inline void temp_begin(temp_folder *t) {
    memset(t, 0, sizeof *t);
    strncpy(t->path, "/tmp/sft-unit-XXXXXX", sizeof t->path - 1);
    temp_must(mkdtemp(t->path) != NULL, "mkdtemp");
}

static inline void temp_end(temp_folder *t) {
    while (t->count > 0) {
        remove(t->made[--t->count]);
        free(t->made[t->count]);
    }
    temp_must(rmdir(t->path) == 0, t->path);
}

/* Full path of a name in the folder; valid until temp_end. The file need not exist. */
static inline const char *temp_path(temp_folder *t, const char *name) {
    size_t cap = strlen(t->path) + strlen(name) + 2;
    char *path = malloc(cap);
    temp_must(path && t->count < TEMP_MOST, "temp_path");
    snprintf(path, cap, "%s/%s", t->path, name);
    t->made[t->count++] = path;
    return path;
}

static inline const char *temp_file(temp_folder *t, const char *name, const void *bytes,
                                    size_t len) {
    const char *path = temp_path(t, name);
    FILE *f = fopen(path, "wb");
    temp_must(f && fwrite(bytes, 1, len, f) == len && fclose(f) == 0, path);
    return path;
}

static inline const char *temp_text(temp_folder *t, const char *name, const char *text) {
    return temp_file(t, name, text, strlen(text));
}

static inline const char *temp_subfolder(temp_folder *t, const char *name) {
    const char *path = temp_path(t, name);
    temp_must(mkdir(path, 0700) == 0, path);
    return path;
}

/* 8 bytes of length, the header as given, the data. */
static inline const char *temp_model(temp_folder *t, const char *name, const char *header,
                                     const void *data, size_t len) {
    size_t n = strlen(header);
    char *bytes = malloc(8 + n + len);
    temp_must(bytes != NULL, "temp_model");
    for (size_t i = 0; i < 8; i++) bytes[i] = (char)((uint64_t)n >> (8 * i));
    memcpy(bytes + 8, header, n);
    if (len > 0) memcpy(bytes + 8 + n, data, len);
    const char *path = temp_file(t, name, bytes, 8 + n + len);
    free(bytes);
    return path;
}

#endif
