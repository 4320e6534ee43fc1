/* Editing in process: bench_edit FILE, which is changed. Each run opens the file, sets one key
 * of its metadata and applies that, durably. Modes:
 *   place     a value of the same length, into the spare bytes of the header
 *   grow      a value longer than all spare bytes; the file's pages are cached
 *   uncached  the same after the pages were dropped
 *   copy      grow by a copy of the file (options.safe, where no blocks can be shared)
 * The sum is the method that was taken (sft_edit_method). */
#include "worker.h" /* first: it asks for POSIX */

#include "safetensors.h"
#include "safetensors_edit.h"

#include <fcntl.h>
#include <unistd.h>

#define ROOM_LEFT (16u << 10) /* more than an edit leaves spare, rounded up to blocks */

typedef struct editing {
    const char *path;
    char *value;
    size_t len, most;
} editing;

static uint64_t set_value(const editing *e, bool safe) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_edit_report report;
    sft_edit *edit;
    options.safe = safe;
    if (sft_edit_open(e->path, &options, &edit, &err)
        || sft_edit_set(edit, sft_span_cstr("modelspec.title"),
                        (sft_span){ e->value, e->len }, &err)
        || sft_edit_apply(edit, NULL, &report, &err))
        bench_die(e->path, err.message);
    sft_edit_close(edit);
    return (uint64_t)report.method;
}

static uint64_t run_edit(void *ctx) {
    return set_value(ctx, false);
}

static uint64_t run_copy(void *ctx) {
    return set_value(ctx, true);
}

/* What others wrote before is not ours to wait for; a disk goes on for a while after a sync. */
static void let_rest(void) {
    sync();
    (void)sleep(2);
}

static uint64_t next_value(void *ctx) {
    editing *e = ctx;
    e->value[0] = e->value[0] == 'a' ? 'b' : 'a';
    let_rest();
    return 0;
}

static uint64_t longer_value(void *ctx) {
    editing *e = ctx;
    if (e->len + ROOM_LEFT > e->most) bench_die(e->path, "enough");
    e->len += ROOM_LEFT;
    return 0;
}

static void touch_pages(const editing *e, bool keep) {
    static char page[1 << 20];
    int fd = open(e->path, O_RDONLY);
    if (fd < 0) bench_die(e->path, "cannot read");
    let_rest();
    while (keep && read(fd, page, sizeof page) > 0) {}
    if (!keep && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)) bench_die(e->path, "fadvise");
    (void)close(fd);
}

static uint64_t longer_cached(void *ctx) {
    touch_pages(ctx, true);
    return longer_value(ctx);
}

static uint64_t longer_uncached(void *ctx) {
    touch_pages(ctx, false);
    return longer_value(ctx);
}

int main(int argc, char **argv) {
    static const bench_mode modes[] = {
        { "place", next_value, run_edit }, { "grow", longer_cached, run_edit },
        { "uncached", longer_uncached, run_edit }, { "copy", longer_cached, run_copy },
    };
    editing e = { .path = argc > 1 ? argv[1] : NULL, .len = 40, .most = 8u << 20 };
    if (!e.path) bench_die("usage", "bench_edit FILE");
    e.value = malloc(e.most);
    if (!e.value) bench_die("bench_edit", "out of memory");
    memset(e.value, 'a', e.most);
    (void)set_value(&e, false);
    bench_serve_modes(modes, sizeof modes / sizeof *modes, &e);
    free(e.value);
    return 0;
}
