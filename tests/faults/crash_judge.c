#include "crash.h"
#include "safetensors_edit.h"
#include "safetensors_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOT_FILES 64
#define SHOT_PATH 128

/* All files at one time. */
typedef struct crash_shot {
    size_t count;
    struct shot_file {
        char path[SHOT_PATH];
        unsigned char *bytes;
        size_t len;
    } files[SHOT_FILES];
} crash_shot;

static crash_shot old, fresh;

static void shoot_file(void *ctx, const char *path, uint64_t inode) {
    crash_shot *shot = ctx;
    (void)inode;
    fault_need(shot->count < SHOT_FILES && strlen(path) < SHOT_PATH);
    struct shot_file *file = &shot->files[shot->count++];
    memcpy(file->path, path, strlen(path) + 1);
    const void *bytes = os_fake_file(path, &file->len);
    file->bytes = malloc(file->len + 1);
    fault_need(file->bytes);
    memcpy(file->bytes, bytes, file->len);
}

void crash_keep(const crash_scene *scene, bool after) {
    crash_shot *shot = after ? &fresh : &old;
    (void)scene;
    for (size_t i = 0; i < shot->count; i++) free(shot->files[i].bytes);
    shot->count = 0;
    os_fake_each(shoot_file, shot);
}

static const struct shot_file *shot_find(const crash_shot *shot, const char *path) {
    for (size_t i = 0; i < shot->count; i++)
        if (strcmp(shot->files[i].path, path) == 0) return &shot->files[i];
    return NULL;
}

/* Does the disk have the file as it is in the shot? */
static bool is_as_in(const crash_shot *shot, const char *path) {
    const struct shot_file *file = shot_find(shot, path);
    size_t len;
    const void *bytes = os_fake_file(path, &len);
    return file && bytes && len == file->len && memcmp(bytes, file->bytes, len) == 0;
}

static bool is_whole(const char *path) {
    return is_as_in(&old, path) || is_as_in(&fresh, path);
}

/* ── What there is now ── */

static char paths[SHOT_FILES][SHOT_PATH];
static size_t path_count;

static void list_path(void *ctx, const char *path, uint64_t inode) {
    (void)ctx, (void)inode;
    fault_need(path_count < SHOT_FILES && strlen(path) < SHOT_PATH);
    memcpy(paths[path_count++], path, strlen(path) + 1);
}

static void list_paths(void) {
    path_count = 0;
    os_fake_each(list_path, NULL);
}

static bool ends_in(const char *path, const char *end) {
    size_t len = strlen(path), tail = strlen(end);
    return len >= tail && strcmp(path + len - tail, end) == 0;
}

static bool is_hidden(const char *path) {
    return strstr(path, "/.") != NULL;
}

static const char *complaint(const char *what, const char *path) {
    static char buffer[256];
    (void)snprintf(buffer, sizeof buffer, "%.*s: %s", SHOT_PATH, path, what);
    return buffer;
}

/* Who only reads sees a whole file, or is told. */
static const char *judge_readers(void) {
    for (size_t i = 0; i < path_count; i++) {
        sft_file *file = NULL;
        if (is_hidden(paths[i]) || !ends_in(paths[i], ".safetensors")) continue;
        if (is_whole(paths[i])) continue;
        sft_code code = sft_open(paths[i], NULL, &file, NULL);
        sft_close(file);
        if (code == SFT_EDIT_INTERRUPTED) continue;
        return complaint(code ? "a reader finds it broken and is not told why"
                              : "a reader takes a mixture for a model", paths[i]);
    }
    return NULL;
}

/* Whose journal is it? */
static bool journal_target(const char *path, char *out) {
    const char *name = strrchr(path, '/') + 1;
    size_t folder = (size_t)(name - path), len = strlen(name);
    if (name[0] != '.' || !ends_in(name, ".sft-journal")) return false;
    memcpy(out, path, folder);
    memcpy(out + folder, name + 1, len - 13);
    out[folder + len - 13] = '\0';
    return true;
}

static const char *recover_all(void) {
    char target[SHOT_PATH];
    for (size_t i = 0; i < path_count; i++) {
        if (!journal_target(paths[i], target)) continue;
        if (sft_edit_recover(target, NULL, NULL, NULL))
            return complaint("cannot be recovered", target);
        if (os_fake_exists(paths[i])) return complaint("is still there", paths[i]);
    }
    return NULL;
}

/* ── Files ── */

static bool in_folder_of(const char *path, const char *other) {
    size_t len = (size_t)(strrchr(other, '/') - other) + 1;
    return strncmp(path, other, len) == 0 && !strchr(path + len, '/');
}

/* All files that stood beside the index then. */
static bool has_all(const crash_shot *shot, const char *index) {
    bool all = true;
    for (size_t i = 0; i < shot->count; i++)
        if (in_folder_of(shot->files[i].path, index))
            all = all && is_as_in(shot, shot->files[i].path);
    return all;
}

static const char *judge_indexes(void) {
    for (size_t i = 0; i < path_count; i++) {
        const char *path = paths[i];
        if (is_hidden(path) || !ends_in(path, ".index.json")) continue;
        bool was = is_as_in(&old, path), is = is_as_in(&fresh, path);
        if (was && is) continue; /* its files are changed one by one */
        if (was ? !has_all(&old, path) : !has_all(&fresh, path))
            return complaint("names what is not there", path);
    }
    return NULL;
}

static const char *judge_present(size_t *leftovers) {
    *leftovers = 0;
    for (size_t i = 0; i < path_count; i++) {
        if (is_hidden(paths[i]) && !shot_find(&old, paths[i])) ++*leftovers;
        else if (!is_whole(paths[i])) return complaint("neither the old nor the new", paths[i]);
    }
    return *leftovers > 1 ? "more than one hidden file" : NULL;
}

static const char *judge_absent(bool done) {
    for (size_t i = 0; i < old.count; i++) {
        const char *path = old.files[i].path;
        if (shot_find(&fresh, path) && !os_fake_exists(path)) return complaint("is gone", path);
    }
    for (size_t i = 0; i < fresh.count && done; i++) {
        const char *path = fresh.files[i].path;
        if (!is_as_in(&fresh, path)) return complaint("was done, and is not there", path);
    }
    return NULL;
}

/* What is hidden is ours to sweep. */
static void sweep_one(void *ctx, const char *path) {
    size_t count = 0, *all = ctx;
    if (!sft_sweep(path, false, NULL, NULL, &count, NULL)) *all += count;
}

static void sweep_folder(void *ctx, const char *path) {
    size_t len = strlen(path);
    (void)ctx;
    fault_need(path_count < SHOT_FILES && len < SHOT_PATH);
    memcpy(paths[path_count++], path, len + 1);
}

static const char *judge_leftovers(size_t leftovers) {
    size_t swept = 0;
    if (leftovers == 0) return NULL;
    path_count = 0;
    os_fake_each_folder(sweep_folder, NULL);
    for (size_t i = 0; i < path_count; i++) sweep_one(&swept, paths[i]);
    return swept == leftovers ? NULL : "a hidden file that nobody removes";
}

const char *crash_judge(const crash_scene *scene, bool done) {
    size_t leftovers = 0;
    (void)scene;
    list_paths();
    const char *wrong = judge_readers();
    if (!wrong) wrong = recover_all();
    list_paths();
    if (!wrong) wrong = judge_present(&leftovers);
    if (!wrong) wrong = judge_absent(done);
    if (!wrong) wrong = judge_indexes();
    return wrong ? wrong : judge_leftovers(leftovers);
}
