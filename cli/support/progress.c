/* How far a long job is, on a terminal. */
#include "support/cli.h"

#include "os/os.h"

#include <inttypes.h>

#define SECOND UINT64_C(1000000000)

static void show_progress(cli_progress *p, uint64_t done, uint64_t total, uint64_t elapsed) {
    cli_out *err = &p->c->err;
    char a[CLI_NUMBER_SIZE], b[CLI_NUMBER_SIZE], r[CLI_NUMBER_SIZE];
    uint64_t rate = done / (elapsed / (SECOND / 1000)) * 1000;
    cli_text(err, "\r\x1b[K");
    cli_escaped_cut(err, sft_span_cstr(p->path), 40);
    cli_printf(err, ": %s", cli_size_text(done, a));
    if (total != SFT_SIZE_UNKNOWN) cli_printf(err, " of %s", cli_size_text(total, b));
    cli_printf(err, ", %s/s", cli_size_text(rate, r));
    if (total != SFT_SIZE_UNKNOWN && rate && done <= total) {
        cli_printf(err, ", %" PRIu64 " s left", (total - done) / rate);
    }
    cli_flush(err);
}

/* Whether it is time for a new line; *now is what it is. */
static bool is_due(cli_progress *p, uint64_t *now) {
    *now = sfti_os_now_ns();
    if (*now - p->started < SECOND || *now - p->shown < SECOND / 5 || !sfti_os_terminal_escapes(2))
        return false;
    p->shown = *now;
    return true;
}

static bool on_tick(void *ctx, uint64_t done, uint64_t total) {
    cli_progress *p = ctx;
    uint64_t now;
    if (p->all) {
        done += p->before;
        total = p->all;
    }
    if (is_due(p, &now)) show_progress(p, done, total, now - p->started);
    return sfti_os_stop_signal() == 0;
}

void cli_progress_count(cli_progress *p, size_t count, size_t of) {
    uint64_t now;
    if (!is_due(p, &now)) return;
    cli_printf(&p->c->err, "\r\x1b[K%zu", count);
    if (of) cli_printf(&p->c->err, " of %zu", of);
    cli_text(&p->c->err, " models");
    cli_flush(&p->c->err);
}

sft_job cli_progress_begin(cli_progress *p, cli *c, const char *path) {
    sft_job job = SFT_JOB_INIT;
    *p = (cli_progress){ c, path, sfti_os_now_ns(), 0, 0, 0 };
    job.tick = on_tick;
    job.ctx = p;
    return job;
}

void cli_progress_end(cli_progress *p) {
    if (!p->shown) return;
    cli_text(&p->c->err, "\r\x1b[K");
    cli_flush(&p->c->err);
}
