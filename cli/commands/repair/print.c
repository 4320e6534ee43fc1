/* repair: what was found, for people and as JSON. */
#include "commands/repair/repair.h"

#include <string.h>

/* The first few of many fixes of one kind are shown. */
#define REPAIR_SHOWN 5

size_t cli_print_fixes(cli *c, const char *path, const sft_repair *repair) {
    size_t count = sft_repair_fix_count(repair);
    for (size_t i = 0; i < count;) {
        const char *name = sft_repair_fix_at(repair, i)->name;
        size_t end = i;
        while (end < count && strcmp(sft_repair_fix_at(repair, end)->name, name) == 0) end++;
        size_t shown = c->set.verbose || end - i <= REPAIR_SHOWN ? end : i + REPAIR_SHOWN - 1;
        for (size_t j = i; j < shown; j++) {
            const sft_fix *fix = sft_repair_fix_at(repair, j);
            sft_error found = fix->found;
            found.hint = SFT_HINT_NONE;
            cli_path(&c->out, path, ": %s: ", fix->name);
            cli_error_text(&c->out, &found);
            cli_text(&c->out, ": ");
            cli_text(&c->out, fix->done);
            cli_text(&c->out, "\n");
        }
        if (shown < end)
            cli_path(&c->out, path, ": %s: %zu more, -v shows them\n", name, end - shown);
        i = end;
    }
    return count;
}

void cli_put_fix(sfti_json_writer *w, const char *path, const char *fix, const sft_error *found,
                 const char *done) {
    sfti_json_open(w, '{');
    sfti_json_path(w, path);
    sfti_json_put_cstr(w, "fix", fix);
    sfti_json_key(w, "offset");
    if (found->offset == SFT_NO_OFFSET) sfti_json_null(w);
    else sfti_json_uint(w, found->offset);
    sfti_json_key(w, "tensor");
    if (found->tensor_len == SFT_NO_TENSOR) sfti_json_null(w);
    else sfti_json_span(w, (sft_span){ found->tensor, found->tensor_len });
    sfti_json_put_cstr(w, "message", found->message);
    sfti_json_put_cstr(w, "done", done);
    sfti_json_close(w, '}');
}

void cli_put_fixes(sfti_json_writer *w, const char *path, const sft_repair *repair) {
    for (size_t i = 0; i < sft_repair_fix_count(repair); i++) {
        const sft_fix *fix = sft_repair_fix_at(repair, i);
        cli_put_fix(w, path, fix->name, &fix->found, fix->done);
    }
}

cli_written_file cli_repaired_file(const char *path, const sft_repair *repair) {
    cli_written_file file = { path, sft_repair_tensor_count(repair), 0 };
    for (size_t i = 0; i < file.tensors; i++) {
        sft_spec spec = sft_repair_tensor_at(repair, i);
        file.bytes += cli_spec_bytes(&spec);
    }
    return file;
}
