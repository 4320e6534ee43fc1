/* Messages, results as JSON, the inputs that the operands name, and the progress of long jobs. */
#include "support/cli.h"

#include "base/result.h"
#include "os/os.h"
#include "support/hints.h"
#include "support/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

void cli_status(cli *c, int status) {
    if (status > c->status) c->status = status;
}

bool cli_is_over(const cli *c) {
    return c->out.error != 0 || sfti_os_stop_signal() != 0;
}

/* ── Messages ── */

/* A cancelled job is not reported, nor is a reader that closed the pipe; lost output is, once, at
 * the end. */
static bool is_quiet(const cli *c, const sft_error *err) {
    bool closed = err->code == SFT_IO_WRITE && err->os_errno == EPIPE;
    return err->code == SFT_CANCELLED || closed || c->out.error != 0;
}

void cli_warn(cli *c, const char *path, const sft_error *err) {
    cli_flush(&c->out);
    cli_styled(&c->err, CLI_RED, "safetensors:");
    cli_text(&c->err, " ");
    char shown[CLI_SHOWN_SIZE];
    if (path) cli_path(&c->err, cli_path_shown(path, shown), ": ");
    cli_error_text(&c->err, err);
    cli_text(&c->err, "\n");
    cli_flush(&c->err);
}

void cli_complain(cli *c, const char *path, const sft_error *err) {
    if (is_quiet(c, err)) return;
    cli_status(c, CLI_FAILED);
    cli_warn(c, path, err);
}

void cli_complain_memory(cli *c, uint64_t bytes) {
    sft_error err = SFT_ERROR_INIT;
    sfti_fail_memory(&err, bytes);
    cli_complain(c, NULL, &err);
}

static void error_object(cli *c, const char *path, const sft_error *err) {
    sft_error failed = SFT_ERROR_INIT;
    sft_sink sink = cli_result_sink(c);
    char shown[CLI_SHOWN_SIZE];
    if (is_quiet(c, err)) return;
    if (sft_error_json(err, cli_path_shown(path, shown), &sink, &failed))
        cli_complain(c, path, &failed);
}

static void error_result(cli *c, const char *path, const sft_error *err) {
    if (!cli_is_json(c) || is_quiet(c, err)) return;
    (void)cli_result_begin(c);
    error_object(c, path, err);
    char shown[CLI_SHOWN_SIZE];
    cli_result_end(c, cli_path_shown(path, shown), SFT_OK, NULL);
}

void cli_fail_result(cli *c, const char *path, const sft_error *err) {
    cli_complain(c, path, err);
    error_object(c, path, err);
}

bool cli_lacks_extension(const char *path) {
    static const char ending[] = ".safetensors";
    char whole[4096];
    os_info info;
    size_t len = strlen(path);
    if (len > sizeof whole - sizeof ending) return false;
    memcpy(whole, path, len);
    memcpy(whole + len, ending, sizeof ending);
    return sfti_os_info_path(whole, true, &info) == 0;
}

static sft_error with_hint(const cli *c, const char *path, const sft_error *err) {
    sft_error hinted = *err;
    if (err->code == SFT_OUT_OF_ORDER) cli_hint(&hinted, CLI_HINT_FORWARD);
    if (err->hint == SFT_HINT_REMOTE_DOWNLOAD && c->set.whole) /* which the hint advises */
        hinted.hint = SFT_HINT_NONE;
    bool written = c->set.output && path && strcmp(path, c->set.output) == 0;
    if (err->os_errno != ENOENT || err->hint || written || !path) return hinted;
    cli_remote_guess(path, &hinted);
    /* How it was quoted: no name on Windows has " or *, few begin with '. */
    if (!hinted.hint && SFTI_OS_PATHS == SFTI_PATHS_WINDOWS) {
        if (strchr(path, '"')) cli_hint(&hinted, CLI_HINT_QUOTE);
        else if (strchr(path, '*')) cli_hint(&hinted, CLI_HINT_PATTERN);
        else if (path[0] == '\'' || (path[0] && path[strlen(path) - 1] == '\''))
            cli_hint(&hinted, CLI_HINT_SINGLE_QUOTE);
    }
    if (!hinted.hint && cli_lacks_extension(path)) cli_hint(&hinted, CLI_HINT_EXTENSION);
    return hinted;
}

void cli_fail_input(cli *c, const char *path, const sft_error *err) {
    sft_error hinted = with_hint(c, path, err);
    cli_complain(c, path, &hinted);
    error_result(c, path, &hinted);
}

void cli_complain_found(cli *c, const cli_input *input, const char *path, const sft_error *err) {
    bool counts = c->counts_unread && input->is_found && !cli_is_remote(c, path)
               && err->code != SFT_OUT_OF_MEMORY && err->code != SFT_EDIT_INTERRUPTED
               && err->os_errno != EMFILE && err->os_errno != ENFILE;
    if (!counts) cli_complain(c, path, err);
    if (!counts || is_quiet(c, err)) return;
    size_t size = strlen(path) + 1;
    c->unread++;
    if (c->unread == 1 && !c->set.verbose) c->unread_path = sfti_take(&c->alloc, size);
    if (c->unread == 1) c->unread_err = *err;
    if (c->unread == 1 && c->unread_path) memcpy(c->unread_path, path, size);
    if (c->set.verbose) cli_warn(c, path, err);
}

void cli_fail_found(cli *c, const cli_input *input, const char *path, const sft_error *err) {
    sft_error hinted = with_hint(c, path, err);
    cli_complain_found(c, input, path, &hinted);
    error_result(c, path, &hinted);
}

void cli_tell_unread(cli *c) {
    if (c->unread >= c->tried) cli_status(c, CLI_FAILED);
    if (c->unread == 1 && c->unread_path && !cli_is_over(c)) {
        cli_warn(c, c->unread_path, &c->unread_err);
    } else if (!c->set.verbose && !cli_is_over(c)) {
        cli_flush(&c->out);
        cli_styled(&c->err, CLI_RED, "safetensors:");
        cli_printf(&c->err, " %zu of %zu model%s could not be read (-v lists them)\n", c->unread,
                   c->tried, c->tried == 1 ? "" : "s");
    }
    if (c->unread_path) sfti_release(&c->alloc, c->unread_path, strlen(c->unread_path) + 1);
    c->unread_path = NULL;
}

void cli_refuse(cli *c, const char *path, const sft_error *err) {
    if (is_quiet(c, err)) return;
    cli_status(c, CLI_NO);
    cli_warn(c, path, err);
    error_result(c, path, err);
}

void cli_fail_usage(cli *c, const sft_error *err) {
    c->no_results = err->code != SFT_OUT_OF_MEMORY;
    cli_complain(c, c->command ? c->command->name : NULL, err);
}

void cli_refuse_usage(cli *c, const sft_error *err) {
    cli_fail_usage(c, err);
    cli_printf(&c->err, "try: safetensors help%s%s\n", c->command ? " " : "",
               c->command ? c->command->name : "");
}

/* ── Results as JSON ── */

bool cli_is_json(const cli *c) {
    return c->set.format == CLI_JSON || c->set.format == CLI_JSONL;
}

static void schema_head(cli *c) {
    cli_printf(&c->out, "{\"schema\":1,\"command\":\"%s\",", c->command->name);
}

static sft_code result_write_at(void *ctx, uint64_t offset, const void *bytes, size_t len,
                                sft_error *err) {
    cli *c = ctx;
    sft_sink out = cli_out_sink(&c->out);
    const char *text = bytes;
    bool begins = offset == 0 && len > 0 && c->set.format == CLI_JSONL;
    if (begins) schema_head(c);
    if (c->held && len > 0) cli_text(&c->out, "}");
    if (len > 0) c->held = c->in_result && (c->remote || c->more) && text[len - 1] == '}';
    return sft_sink_write(&out, offset, text + begins, len - begins - (len > 0 && c->held), err);
}

static const sft_sink_vtable result_sink_vtable = { .size = sizeof(sft_sink_vtable),
                                                    .write = result_write_at,
                                                    .words = cli_sink_words };

sft_sink cli_result_sink(cli *c) { return (sft_sink){ c, &result_sink_vtable, false }; }

void cli_results_begin(cli *c) {
    if (c->set.format != CLI_JSON || c->wrapped) return;
    c->wrapped = true;
    schema_head(c);
    cli_text(&c->out, "\"results\":[");
}

void cli_results_end(cli *c) {
    cli_results_begin(c);
    cli_text(&c->out, c->results ? "\n]}\n" : "]}\n");
}

sft_sink cli_result_begin(cli *c) {
    cli_results_begin(c);
    if (c->set.format == CLI_JSON) cli_text(&c->out, c->results ? ",\n" : "\n");
    c->results++;
    c->in_result = true;
    return cli_result_sink(c);
}

void cli_result_end(cli *c, const char *path, sft_code code, const sft_error *err) {
    sft_sink sink = cli_out_sink(&c->out);
    sfti_json_writer w;
    c->in_result = false;
    if (c->held) { /* what comes before the last brace */
        c->held = false;
        sfti_json_write(&w, &sink, 0, NULL);
        w.comma = true;
        if (c->remote) cli_put_remote(c, &w, path);
        if (c->more) c->more(c->more_ctx, &w);
        (void)sfti_json_done(&w);
        cli_text(&c->out, "}");
    }
    c->more = NULL;
    if (code) cli_complain(c, path, err);
    if (c->set.format != CLI_JSONL) return;
    cli_text(&c->out, "\n");
    cli_flush(&c->out);
}

static sfti_json_writer *begin_object(cli_object *object, cli *c, const char *path, bool ok) {
    sfti_json_writer *w = &object->w;
    object->c = c;
    object->path = path;
    object->err = (sft_error)SFT_ERROR_INIT;
    object->sink = cli_result_begin(c);
    sfti_json_write(w, &object->sink, 0, &object->err);
    sfti_json_open(w, '{');
    sfti_json_path(w, path);
    sfti_json_put_bool(w, "ok", ok);
    return w;
}

sfti_json_writer *cli_object_begin(cli_object *object, cli *c, const char *path) {
    return begin_object(object, c, path, true);
}

sfti_json_writer *cli_failed_begin(cli_object *object, cli *c, const char *path,
                                   const sft_error *err) {
    sfti_json_writer *w = begin_object(object, c, path, false);
    sfti_result_error(w, "error", err);
    return w;
}

void cli_object_end(cli_object *object) {
    sfti_json_close(&object->w, '}');
    sft_code code = sfti_json_done(&object->w);
    cli_result_end(object->c, object->path, code, &object->err);
}

/* ── Tables of tabs ── */

void cli_cell(cli *c, sft_span text) {
    if (c->set.csv_safe) cli_cell_guard(&c->out, text);
    cli_escaped(&c->out, text);
}

/* ── Inputs ── */

void cli_report_input(cli *c, const cli_input *input) {
    sft_error err = SFT_ERROR_INIT;
    sfti_fail(&err, SFT_NOT_FOUND,
              "expected models (*.safetensors, *.sft or an index) in this folder, found none");
    if (!c->set.recursive) cli_hint(&err, CLI_HINT_RECURSIVE);
    cli_fail_found(c, input, input->path, input->err ? input->err : &err);
}

void cli_count_passed(cli *c, const cli_inputs *inputs) {
    for (size_t i = 0; i < CLI_OTHER_FORMATS; i++) c->passed[i] += inputs->passed[i];
}

void cli_passed_line(const cli *c, cli_out *out) {
    size_t all = 0, told = 0;
    for (size_t i = 0; i < CLI_OTHER_FORMATS; i++) all += c->passed[i];
    if (!all) return;
    cli_printf(out, "%zu file%s in other formats passed over:", all, all == 1 ? "" : "s");
    for (size_t i = 0; i < CLI_OTHER_FORMATS; i++)
        if (c->passed[i])
            cli_printf(out, "%s %s %zu", told++ ? "," : "", cli_other_formats[i], c->passed[i]);
    cli_text(out, "\n");
}

void cli_each_input(cli *c, char **operands, size_t count, cli_each_fn each) {
    cli_depth depth = c->set.recursive ? CLI_ALL_LEVELS : CLI_ONE_LEVEL;
    for (size_t k = 0; k < count && !cli_is_over(c); k++) {
        sft_error err = SFT_ERROR_INIT;
        cli_inputs in;
        cli_depth how = (cli_depth)((int)depth | c->others);
        if (cli_inputs_expand(operands[k], how, NULL, &c->open, &in, &err))
            cli_fail_input(c, operands[k], &err);
        else
            cli_count_passed(c, &in);
        for (size_t i = 0; !err.code && i < in.count && !cli_is_over(c); i++) {
            const cli_input *input = in.items[i];
            c->tried++;
            bool is_model = input->kind != CLI_EMPTY && input->kind != CLI_BLOCKED;
            (is_model ? each : cli_report_input)(c, input);
        }
        cli_inputs_free(&in);
    }
}

/* ── Progress ── */

#define SECOND UINT64_C(1000000000)

/* A program that shows progress itself (the Python package) reads it from lines of stderr. */
static bool is_read_by_program(void) {
    const char *how = sfti_os_env("LIBSAFETENSORS_PROGRESS");
    return how && strcmp(how, "lines") == 0;
}

/* Whether it is time for a new line; *now is what it is. */
static bool is_due(cli_progress *p, uint64_t *now) {
    *now = sfti_os_now_ns();
    if (*now - p->told < SECOND / 5) return false;
    p->told = *now;
    if (is_read_by_program()) return true;
    if (*now - p->started < SECOND || !sfti_os_terminal_escapes(2)) return false;
    p->shown = *now;
    return true;
}

/* False, unless it is a program that reads them. */
static bool tell_program(cli_progress *p, uint64_t done, uint64_t total) {
    if (!is_read_by_program()) return false;
    cli_printf(&p->c->err, "progress: %" PRIu64, done);
    if (total == SFT_SIZE_UNKNOWN) cli_text(&p->c->err, " -\n");
    else cli_printf(&p->c->err, " %" PRIu64 "\n", total);
    cli_flush(&p->c->err);
    return true;
}

/* By a signal, or because the program that was told no longer listens. */
static bool is_stopped(cli *c) {
    bool unread = c->err.error && is_read_by_program();
    if (unread) cli_status(c, CLI_FAILED);
    return unread || sfti_os_stop_signal() != 0;
}

static bool on_tick(void *ctx, uint64_t done, uint64_t total) {
    cli_progress *p = ctx;
    uint64_t now;
    if (p->holds && !p->holds(p->ctx, done == total)) return false;
    if (p->all) {
        done += p->before;
        total = p->all;
    }
    cli_out *err = &p->c->err;
    if (!is_due(p, &now) || tell_program(p, done, total)) return !is_stopped(p->c);
    char a[CLI_NUMBER_SIZE], b[CLI_NUMBER_SIZE], r[CLI_NUMBER_SIZE];
    uint64_t rate = done / ((now - p->started) / (SECOND / 1000)) * 1000;
    cli_text(err, "\r\x1b[K");
    cli_escaped_cut(err, sft_span_cstr(p->path), 40);
    cli_printf(err, ": %s", cli_size_text(done, a));
    if (total != SFT_SIZE_UNKNOWN) cli_printf(err, " of %s", cli_size_text(total, b));
    cli_printf(err, ", %s/s", cli_size_text(rate, r));
    if (total != SFT_SIZE_UNKNOWN && rate && done <= total)
        cli_printf(err, ", %" PRIu64 " s left", (total - done) / rate);
    cli_flush(err);
    return !is_stopped(p->c);
}

void cli_progress_count(cli_progress *p, size_t count, size_t of) {
    uint64_t now;
    if (!is_due(p, &now) || tell_program(p, count, of ? of : SFT_SIZE_UNKNOWN)) return;
    cli_printf(&p->c->err, "\r\x1b[K%zu", count);
    if (of) cli_printf(&p->c->err, " of %zu", of);
    cli_text(&p->c->err, " models");
    cli_flush(&p->c->err);
}

sft_job cli_progress_begin(cli_progress *p, cli *c, const char *path) {
    sft_job job = SFT_JOB_INIT;
    *p = (cli_progress){ .c = c, .path = path, .started = sfti_os_now_ns() };
    job.tick = on_tick;
    job.ctx = p;
    return job;
}

void cli_progress_end(cli_progress *p) {
    if (!p->shown) return;
    cli_text(&p->c->err, "\r\x1b[K");
    cli_flush(&p->c->err);
}
