/* Files in memory under mem://, which write down what is asked of them. */
#ifndef TEST_MEM_FILES_H
#define TEST_MEM_FILES_H

#include "safetensors.h"
#include "safetensors_codes.h"
#include "safetensors_io.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEM_MOST 32

typedef struct mem_file {
    struct mem_files *of;
    const char *path;
    void *bytes;
    size_t len;
} mem_file;

typedef struct mem_files {
    mem_file at[MEM_MOST];
    size_t count, open; /* open: sources that are not closed yet */
    size_t changes;     /* so many openings fail with SFT_REMOTE_CHANGED */
    char log[8192];     /* a line each: "open PATH", "expect PATH…", "list PATH", "runs A+N…" */
    bool quiet;         /* do not write down reads: "read A+N" */
    bool sums;          /* only add up runs: in all, the most of one call, their bytes */
    size_t runs, run_most, run_bytes;
    sft_files files;
} mem_files;

static inline void mem_note(mem_files *m, const char *format, ...) {
    size_t len = strlen(m->log);
    va_list args;
    va_start(args, format);
    int more = vsnprintf(m->log + len, sizeof m->log - len, format, args);
    va_end(args);
    if (more < 0 || (size_t)more >= sizeof m->log - len) abort();
}

static inline sft_code mem_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                                sft_error *err) {
    mem_file *f = ctx;
    (void)err;
    *got = offset >= f->len ? 0 : f->len - offset < len ? (size_t)(f->len - offset) : len;
    if (*got) memcpy(into, (char *)f->bytes + offset, *got);
    if (!f->of->quiet) mem_note(f->of, "read %llu+%zu\n", (unsigned long long)offset, *got);
    return SFT_OK;
}

static inline void mem_close(void *ctx) {
    ((mem_file *)ctx)->of->open--;
}

static inline void mem_runs(void *ctx, const sft_run *runs, size_t count) {
    mem_files *m = ((mem_file *)ctx)->of;
    for (size_t i = 0; i < count; i++) m->run_bytes += (size_t)runs[i].len;
    m->runs += count;
    if (count > m->run_most) m->run_most = count;
    if (m->sums) return;
    mem_note(m, "runs");
    for (size_t i = 0; i < count; i++)
        mem_note(m, " %llu+%llu", (unsigned long long)runs[i].offset,
                 (unsigned long long)runs[i].len);
    mem_note(m, "\n");
}

static const sft_source_vtable mem_source_vtable = {
    sizeof(sft_source_vtable), mem_read, mem_close, mem_runs, NULL
};

static inline bool mem_claims(void *ctx, const char *path) {
    (void)ctx;
    return strncmp(path, "mem://", 6) == 0 || strncmp(path, "hf://", 5) == 0;
}

static inline bool mem_is_folder(const mem_files *m, const char *path) {
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] == '/') len--;
    for (size_t i = 0; i < m->count; i++)
        if (strncmp(m->at[i].path, path, len) == 0 && m->at[i].path[len] == '/') return true;
    return false;
}

static inline sft_code mem_open(void *ctx, const char *path, const char *beneath, sft_source *out,
                                sft_error *err) {
    mem_files *m = ctx;
    if (beneath) mem_note(m, "open %s beneath %s\n", path, beneath);
    else mem_note(m, "open %s\n", path);
    if (m->changes > 0) {
        m->changes--;
        return sft_error_set(err, SFT_REMOTE_CHANGED, 0, "expected one file, found another");
    }
    for (size_t i = 0; i < m->count; i++) {
        if (strcmp(m->at[i].path, path) != 0) continue;
        *out = (sft_source){ &m->at[i], &mem_source_vtable, m->at[i].len, NULL, false };
        m->open++;
        return SFT_OK;
    }
    if (mem_is_folder(m, path))
        return sft_error_set(err, SFT_IO_NOT_FILE, 0, "expected a file, found a folder");
    return sft_error_set(err, SFT_NOT_FOUND, 0, "expected a file, found none");
}

static inline void mem_expect(void *ctx, const char *const *paths, size_t count,
                              const char *beneath) {
    mem_files *m = ctx;
    mem_note(m, "expect");
    for (size_t i = 0; i < count; i++) mem_note(m, " %s", paths[i]);
    mem_note(m, beneath ? " beneath %s\n" : "\n", beneath);
}

/* Folders come once for each file in them. */
static inline sft_code mem_list(void *ctx, const char *folder, sft_listed_fn each, void *each_ctx,
                                sft_error *err) {
    mem_files *m = ctx;
    size_t len = strlen(folder);
    mem_note(m, "list %s\n", folder);
    if (!mem_is_folder(m, folder))
        return sft_error_set(err, SFT_NOT_FOUND, 0, "expected a folder, found none");
    while (len > 0 && folder[len - 1] == '/') len--;
    for (size_t i = 0; i < m->count; i++) {
        const char *path = m->at[i].path, *name = path + len + 1;
        if (strncmp(path, folder, len) != 0 || path[len] != '/') continue;
        size_t part = strcspn(name, "/");
        char *copy = strndup(name, part);
        sft_listed entry = { copy, name[part] == '/', m->at[i].len };
        bool more = each(each_ctx, &entry);
        free(copy);
        if (!more) break;
    }
    return SFT_OK;
}

static const sft_files_vtable mem_files_vtable = {
    sizeof(sft_files_vtable), mem_claims, mem_open, mem_expect, mem_list
};

static inline void mem_begin(mem_files *m) {
    memset(m, 0, sizeof *m);
    m->quiet = true;
    m->files = (sft_files){ m, &mem_files_vtable };
}

/* The bytes are copied. */
static inline void mem_add(mem_files *m, const char *path, const void *bytes, size_t len) {
    if (m->count == MEM_MOST) abort();
    mem_file *f = &m->at[m->count++];
    *f = (mem_file){ m, path, malloc(len + 1), len };
    if (!f->bytes) abort();
    memcpy(f->bytes, bytes, len);
}

static inline void mem_text(mem_files *m, const char *path, const char *text) {
    mem_add(m, path, text, strlen(text));
}

static inline void mem_end(mem_files *m) {
    for (size_t i = 0; i < m->count; i++) free(m->at[i].bytes);
}

#endif
