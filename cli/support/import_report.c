/* What is told of a model in another format: globals, aliases, what was left out. */
#include "support/models.h"

#include <inttypes.h>

#define LISTED_MOST 5 /* of a kind, unless all are asked for with -v */

static size_t most_lines(const cli *c) {
    return c->set.verbose ? SIZE_MAX : LISTED_MOST;
}

static void say_more(cli *c, size_t count, size_t shown, const char *what) {
    if (count > shown)
        cli_printf(&c->out, "  and %zu more %s (-v lists them)\n", count - shown, what);
}

/* ── Globals ── */

bool cli_say_globals(cli_out *out, const sft_import *import, size_t most) {
    size_t count = 0, shown = 0;
    const sft_import_global *global;
    for (size_t i = 0; (global = sft_import_global_at(import, i)) != NULL; i++) {
        if (global->calls == 0) continue;
        if (++count > most) continue;
        cli_text(out, shown++ ? ", " : "");
        cli_fill(out, "%.%", global->module, global->name);
        if (global->calls > 1) cli_printf(out, " (%" PRIu64 " times)", global->calls);
    }
    if (count > shown) cli_printf(out, " and %zu more", count - shown);
    return count > 0;
}

/* ── Branches, aliases, what was left out ── */

static void say_left(cli *c, const char *path, const sft_import *import) {
    char buffer[CLI_NUMBER_SIZE];
    const sft_import_left *left;
    size_t count = 0;
    uint64_t values = 0;
    for (size_t i = 0; (left = sft_import_left_at(import, i)) != NULL; i++) {
        if (left->reason == SFT_IMPORT_LEFT_VALUE && !c->set.verbose) {
            values += left->count > 0 ? left->count : 1;
            continue;
        }
        if (count++ >= most_lines(c)) continue;
        cli_path(&c->out, path, left->reason == SFT_IMPORT_LEFT_NOTE ? ": note: " : ": left out: ");
        if (left->path.len > 0) cli_escaped(&c->out, left->path);
        cli_text(&c->out, left->path.len > 0 ? ": " : "");
        cli_escaped(&c->out, sft_span_cstr(left->text));
        if (left->bytes > 0) cli_printf(&c->out, ", %s", cli_size_text(left->bytes, buffer));
        cli_text(&c->out, "\n");
    }
    say_more(c, count, count < most_lines(c) ? count : most_lines(c), "left out");
    if (values == 0) return;
    cli_path(&c->out, path, ": left out: ");
    cli_printf(&c->out, "%" PRIu64 " value%s other than tensors (-v lists %s)\n", values,
               values == 1 ? "" : "s", values == 1 ? "it" : "them");
}

static void say_aliases(cli *c, const char *path, const sft_import *import) {
    size_t count = sft_import_alias_count(import);
    for (size_t i = 0; i < count && i < most_lines(c); i++) {
        sft_import_alias alias = sft_import_alias_at(import, i);
        cli_path(&c->out, path, ": ");
        cli_escaped(&c->out, alias.name);
        cli_text(&c->out, alias.partial ? " shares bytes with " : " is the same tensor as ");
        cli_escaped(&c->out, alias.of);
        cli_text(&c->out, alias.copied ? "; both are written\n"
                                       : "; written once, recorded in the metadata\n");
    }
    say_more(c, count, count < most_lines(c) ? count : most_lines(c), "shared");
}

void cli_say_import(cli *c, const char *path, const sft_import *import) {
    const sft_import_global *one = sft_import_global_at(import, 0);
    for (size_t i = 1; one && one->calls == 0; i++) one = sft_import_global_at(import, i);
    if (one) {
        cli_path(&c->out, path, ": not run: ");
        (void)cli_say_globals(&c->out, import, most_lines(c));
        cli_text(&c->out, ", which a pickle loader would have called\n");
    }
    say_left(c, path, import);
    say_aliases(c, path, import);
}

void cli_put_import(cli *c, sfti_json_writer *w, const char *path, const sft_import *import) {
    sft_buffer text = { .alloc = c->alloc };
    sft_sink sink = sft_sink_memory(&text);
    sft_code code = sft_import_json(import, path, &sink, NULL);
    sfti_json_key(w, "import");
    if (code) sfti_json_null(w);
    else sfti_json_raw(w, (sft_span){ text.data, text.len });
    sft_buffer_free(&text);
}
