/* Operands that look like URLs and are none that is read: each fails when it is opened. */
#include "support/remote.h"

#include "base/error.h"
#include "base/files.h"
#include "base/mem.h"
#include "remote/http/url.h"

#include <string.h>

#define SHOWN_SIZE 2048

typedef struct bad_url {
    struct bad_url *next;
    const char *name;
    sft_error err;
} bad_url;

typedef struct cli_bad_urls {
    sfti_arena arena;
    bad_url *first;
    const sft_files *files; /* of all others */
    sft_files these;
} cli_bad_urls;

static const bad_url *bad_url_called(const cli_bad_urls *all, const char *path) {
    const bad_url *url = all->first;
    while (url && strcmp(url->name, path) != 0) url = url->next;
    return url;
}

static sft_code bad_url_fail(const bad_url *url, sft_error *err) {
    if (err) *err = url->err;
    return url->err.code;
}

/* ── As files ── */

static bool bad_claims(void *ctx, const char *path) {
    const cli_bad_urls *all = ctx;
    return bad_url_called(all, path) || sfti_files_claim(all->files, path);
}

static sft_code bad_open(void *ctx, const char *path, const char *beneath, sft_source *out,
                         sft_error *err) {
    const cli_bad_urls *all = ctx;
    const bad_url *url = bad_url_called(all, path);
    if (url) return bad_url_fail(url, err);
    return all->files->vtable->open(all->files->ctx, path, beneath, out, err);
}

static void bad_expect(void *ctx, const char *const *paths, size_t count, const char *beneath) {
    const cli_bad_urls *all = ctx;
    for (size_t i = 0; i < count; i++)
        if (bad_url_called(all, paths[i])) return; /* a hint that is not worth a list */
    sfti_files_expect(all->files, paths, count, beneath);
}

static sft_code bad_list(void *ctx, const char *folder, sft_listed_fn each, void *each_ctx,
                         sft_error *err) {
    const cli_bad_urls *all = ctx;
    const bad_url *url = bad_url_called(all, folder);
    return url ? bad_url_fail(url, err)
               : sfti_files_list(all->files, folder, each, each_ctx, err);
}

static const sft_files_vtable bad_files_vtable = { sizeof(sft_files_vtable), bad_claims, bad_open,
                                                   bad_expect, bad_list };

/* ── All ── */

sft_code cli_bad_url_add(cli *c, const char *url, sft_error *err, const char **name) {
    char shown[SHOWN_SIZE];
    sfti_url_show(url, shown, sizeof shown);
    cli_bad_urls *all = c->bad_urls ? c->bad_urls : sfti_take(&c->alloc, sizeof *all);
    if (all && !c->bad_urls) {
        memset(all, 0, sizeof *all);
        all->arena.alloc = c->alloc;
        all->these = (sft_files){ all, &bad_files_vtable };
        c->bad_urls = all;
    }
    bad_url *added = all ? sfti_arena_take(&all->arena, sizeof *added) : NULL;
    *name = added ? sfti_arena_copy(&all->arena, shown, strlen(shown)) : NULL;
    if (!*name) return sfti_fail_memory(err, strlen(shown));
    *added = (bad_url){ all->first, *name, *err };
    all->first = added;
    *err = (sft_error)SFT_ERROR_INIT;
    return SFT_OK;
}

const sft_files *cli_bad_urls_files(cli *c, const sft_files *files) {
    c->bad_urls->files = files;
    return &c->bad_urls->these;
}

void cli_bad_urls_free(cli *c) {
    if (!c->bad_urls) return;
    sfti_arena_free(&c->bad_urls->arena);
    sfti_release(&c->alloc, c->bad_urls, sizeof *c->bad_urls);
    c->bad_urls = NULL;
}
