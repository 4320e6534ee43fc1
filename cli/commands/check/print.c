/* What check says to people. */
#include "commands/check/check.h"

#include <inttypes.h>
#include <string.h>

void cli_verdict_line(cli *c, const char *path, const sft_error *err) {
    cli_styled(&c->out, CLI_BOLD, path);
    cli_text(&c->out, ": ");
    cli_error_text(&c->out, err);
    cli_text(&c->out, "\n");
}

const char *const cli_level_names[] = { "compat", "default", "strict" };

void cli_explain_rule(cli *c, const sft_error *err) {
    const sft_code_info *row = sft_code_describe(err->code);
    const char *sentence = cli_rule_sentence(row->rule);
    cli_text(&c->out, "    ");
    if (row->rule) cli_printf(&c->out, "rule %s, ", row->rule);
    cli_text(&c->out, row->name);
    if (row->level != SFT_LEVEL_COMPAT)
        cli_printf(&c->out, " (from level %s on)", cli_level_names[row->level]);
    cli_printf(&c->out, ": %s\n", sentence ? sentence : row->sentence);
    const char *hint = sft_hint_text(err->hint);
    if (hint && err->hint != SFT_HINT_BROKEN_WRITER) /* which tells to ask for this rule */
        cli_printf(&c->out, "    next: %s\n", hint);
}

static void explain_error(cli *c, const sft_error *err) {
    sft_error bare = *err;
    bare.hint = SFT_HINT_NONE;
    cli_text(&c->out, "  ");
    cli_error_text(&c->out, &bare);
    cli_text(&c->out, "\n");
    cli_explain_rule(c, err);
}

void cli_explain(cli *c, const char *path, const sft_scan *scan) {
    const sft_error *err = sft_scan_error(scan);
    size_t count = sft_scan_finding_count(scan);
    cli_styled(&c->out, CLI_BOLD, path);
    cli_printf(&c->out, ": %s at level %s\n", err ? "not valid" : "valid",
               cli_level_names[sft_scan_level(scan)]);
    bool found = false; /* the error is among the findings */
    for (size_t i = 0; err && i < count; i++)
        found = found || sft_scan_finding_at(scan, i)->error.code == err->code;
    if (err && !found) explain_error(c, err);
    for (size_t i = 0; i < count; i++) explain_error(c, &sft_scan_finding_at(scan, i)->error);
    for (size_t i = 0; i < sft_scan_note_count(scan); i++) {
        const sft_note *note = sft_scan_note_at(scan, i);
        cli_printf(&c->out, "  note [%s]: ", note->name);
        cli_error_text(&c->out, &note->error);
        cli_text(&c->out, "\n");
    }
}

static void deep_count(cli *c, const sft_set *set, const char *what, uint64_t count,
                       uint64_t tensors, uint64_t first) {
    cli_printf(&c->out, "%" PRIu64 " %s", count, what);
    if (!count) return;
    cli_printf(&c->out, " in %" PRIu64 " tensor%s", tensors, tensors == 1 ? "" : "s");
    const sft_tensor *tensor = first < SIZE_MAX ? sft_set_tensor_at(set, (size_t)first) : NULL;
    if (!tensor) return;
    cli_text(&c->out, " (first ");
    cli_quoted(&c->out, tensor->name);
    cli_text(&c->out, ")");
}

void cli_deep_line(cli *c, const char *path, const sft_set *set, const sft_deep_counts *deep,
                   bool always) {
    if (!always && !deep->nan && !deep->inf) return;
    cli_styled(&c->out, CLI_BOLD, path);
    cli_printf(&c->out, ": among %" PRIu64 " value%s: ", deep->values,
               deep->values == 1 ? "" : "s");
    deep_count(c, set, "NaN", deep->nan, deep->tensors_with_nan, deep->first_nan_tensor);
    cli_text(&c->out, ", ");
    deep_count(c, set, "infinite", deep->inf, deep->tensors_with_inf, deep->first_inf_tensor);
    cli_text(&c->out, "\n");
}
