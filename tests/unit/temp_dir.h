/* A folder of its own for each test: made before, removed with all in it after. */
#ifndef TEMP_DIR_H
#define TEMP_DIR_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char temp_dir[256];

/* Path of a name in the folder; eight may be held at a time. */
static inline const char *temp_path(const char *name) {
    static char buffers[8][512];
    static int next;
    char *buffer = buffers[next++ % 8];
    int len = snprintf(buffer, sizeof buffers[0], "%s/%s", temp_dir, name);
    if (len < 0 || (size_t)len >= sizeof buffers[0]) abort();
    return buffer;
}

static inline int temp_dir_make(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    (void)snprintf(temp_dir, sizeof temp_dir, "%s/sft-test-XXXXXX", base ? base : "/tmp");
    return mkdtemp(temp_dir) ? 0 : -1;
}

/* Entries of the folder but "." and "..". */
static inline int temp_dir_count(void) {
    int count = 0;
    DIR *folder = opendir(temp_dir);
    if (!folder) return -1;
    while (readdir(folder)) count++;
    closedir(folder);
    return count - 2;
}

static inline int temp_dir_remove(void **state) {
    const struct dirent *entry;
    DIR *folder = opendir(temp_dir);
    (void)state;
    if (!folder) return -1;
    while ((entry = readdir(folder)) != NULL) {
        const char *path = temp_path(entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (unlink(path) != 0) (void)rmdir(path);
    }
    closedir(folder);
    return rmdir(temp_dir);
}

static inline void temp_write(const char *name, const void *bytes, size_t len) {
    FILE *file = fopen(temp_path(name), "wb");
    if (!file || fwrite(bytes, 1, len, file) != len || fclose(file) != 0) abort();
}

/* Length of the file, up to `cap` bytes of it into out; -1 when it is not there. */
static inline long temp_read(const char *name, void *out, size_t cap) {
    FILE *file = fopen(temp_path(name), "rb");
    if (!file) return -1;
    size_t got = fread(out, 1, cap, file);
    fclose(file);
    return (long)got;
}

static inline int temp_mode(const char *name) {
    struct stat st;
    return stat(temp_path(name), &st) == 0 ? (int)(st.st_mode & 07777) : -1;
}

#endif
