/* One model opened: standard input with its first bytes kept, anything else by its path. */
#include "base/mem.h"
#include "support/cli.h"
#include "support/models.h"

#include <string.h>

sft_set_options cli_set_options(const cli *c) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    options.open = &c->open;
    return options;
}

/* ── Standard input: the first bytes stay readable, to be diagnosed ── */

#define KEPT_HEAD 4096

/* Lives as long as the file over it, and until opening has been judged. */
typedef struct kept_input {
    sft_allocator alloc;
    sft_source inner;
    uint32_t users;
    size_t have;
    bool ended;
    char head[KEPT_HEAD];
} kept_input;

static void kept_close(void *ctx) {
    kept_input *k = ctx;
    sft_allocator alloc = k->alloc;
    if (--k->users) return;
    sft_source_close(&k->inner);
    sfti_release(&alloc, k, sizeof *k);
}

static sft_code head_read(kept_input *k, size_t at, void *into, size_t len, size_t *got,
                          sft_error *err) {
    size_t end = len < KEPT_HEAD - at ? at + len : KEPT_HEAD;
    while (k->have < end && !k->ended) { /* read on until they are there, or the pipe ends */
        size_t more = 0;
        sft_code code = sft_source_read(&k->inner, k->have, k->head + k->have, end - k->have, &more,
                                        err);
        if (code) return code;
        k->have += more;
        k->ended = more == 0;
    }
    if (end > k->have) end = k->have;
    *got = end > at ? end - at : 0;
    if (*got) memcpy(into, k->head + at, *got);
    return SFT_OK;
}

static sft_code kept_read_at(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                             sft_error *err) {
    kept_input *k = ctx;
    size_t first = 0, more = 0;
    *got = 0;
    if (offset < KEPT_HEAD) {
        sft_code code = head_read(k, (size_t)offset, into, len, &first, err);
        if (code) return code;
    }
    *got = first;
    if (first == len || k->ended) return SFT_OK;
    sft_code code = sft_source_read(&k->inner, offset + first, (char *)into + first,
                                    len - first, &more, err);
    *got += more;
    return code;
}

static uint32_t kept_mode(void *ctx) {
    return sft_source_mode(&((const kept_input *)ctx)->inner);
}

static const sft_source_vtable kept_source_vtable = {
    sizeof(sft_source_vtable), kept_read_at, kept_close, NULL, kept_mode
};

static sft_code open_stdin(cli *c, sft_set **out, sft_error *err) {
    sft_file *file = NULL;
    kept_input *k = sfti_take(&c->alloc, sizeof *k);
    if (!k) return sfti_fail_memory(err, sizeof *k);
    memset(k, 0, sizeof *k);
    k->alloc = c->alloc;
    k->users = 2; /* the file, and this function */
    sft_code code = sft_source_fd(0, &c->alloc, &k->inner, err);
    if (code) {
        sfti_release(&c->alloc, k, sizeof *k);
        return code;
    }
    sft_source source = { k, &kept_source_vtable, k->inner.size, NULL, false };
    code = sft_open_source(source, &c->open, &file, err);
    if (code >= 100 && code < 180) sft_diagnose(&source, err);
    kept_close(k);
    return file ? sft_set_from_file(file, "-", out, err) : err->code;
}

/* ── Any input ── */

sft_code cli_open_model(cli *c, const cli_input *input, sft_set **out, sft_error *err) {
    sft_set_options options = cli_set_options(c);
    c->import = NULL;
    if (input->kind == CLI_STDIN) return open_stdin(c, out, err);
    return cli_open_path(c, input->path, &options, out, &c->import, err);
}
