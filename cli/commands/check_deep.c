/* check --deep: NaN and infinities. Tests: tests/cli/check. */
#include "commands/commands.h"
#include "support/models.h"

#include <inttypes.h>

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

void cli_deep_line(cli *c, const char *path, const sft_set *set, const sft_deep_counts *deep) {
    if (!c->set.explain && !deep->nan && !deep->inf) return;
    cli_path_bold(&c->out, path, ": among %" PRIu64 " value%s: ", deep->values,
                  deep->values == 1 ? "" : "s");
    deep_count(c, set, "NaN", deep->nan, deep->tensors_with_nan, deep->first_nan_tensor);
    cli_text(&c->out, ", ");
    deep_count(c, set, "infinite", deep->inf, deep->tensors_with_inf, deep->first_inf_tensor);
    cli_text(&c->out, "\n");
}

sft_code cli_check_values(cli *c, const char *path, const sft_set *set, sft_deep_counts *deep,
                          sft_error *err) {
    cli_progress progress;
    sft_job job = cli_progress_begin(&progress, c, path);
    sft_code code = sft_set_check_deep(set, deep, &job, err);
    cli_progress_end(&progress);
    if (!code && (deep->nan || deep->inf)) cli_status(c, CLI_NO);
    return code;
}
