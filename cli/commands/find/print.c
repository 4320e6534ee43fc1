/* find: how what was found is shown. */
#include "commands/find/find.h"
#include "support/fields.h"
#include "support/print.h"

#include <string.h>

#define FIT_COLUMNS 9

/* ── JSON ── */

/* A text, or null where there is none. */
static void put_some(sfti_json_writer *w, const char *key, sft_span text) {
    sfti_json_put_text(w, key, text.len ? text : (sft_span){ NULL, 0 });
}

static void show_json(cli *c, const find_found *found) {
    cli_object object;
    sfti_json_writer *w = cli_object_begin(&object, c, found->path);
    put_some(w, "name", found->name);
    if (found->reason) {
        sfti_json_put_cstr(w, "fit", sft_fit_name(found->fit));
        sfti_json_put_cstr(w, "reason", found->reason);
    }
    sfti_json_put_open(w, "matches", '[');
    for (size_t i = 0; i < found->hit_count; i++) {
        const find_hit *hit = &found->hits[i];
        sfti_json_open(w, '{');
        sfti_json_put_cstr(w, "field", hit->field);
        sfti_json_put_cstr(w, "algo", hit->algo);
        sfti_json_put_text(w, "value", hit->value);
        put_some(w, "source", hit->source);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    cli_object_end(&object);
}

/* ── A table ── */

static void put_cell(cli *c, bool first, sft_span text) {
    if (!first) cli_text(&c->out, "\t");
    if (c->set.csv_safe) cli_cell_guard(&c->out, text);
    cli_field_text(&c->out, text);
}

void find_header(cli *c, bool has_word) {
    cli_text(&c->out, "path\tname");
    if (c->set.fits) cli_text(&c->out, "\tfit\treason");
    cli_text(&c->out, has_word ? "\tfield\tvalue\tsource\n" : "\n");
}

static void show_row(cli *c, const find_found *found) {
    put_cell(c, true, sft_span_cstr(found->path));
    put_cell(c, false, found->name);
    if (found->reason) {
        put_cell(c, false, sft_span_cstr(sft_fit_name(found->fit)));
        put_cell(c, false, sft_span_cstr(found->reason));
    }
    if (found->hit_count > 0) {
        put_cell(c, false, sft_span_cstr(found->hits[0].field));
        put_cell(c, false, found->hits[0].value);
        put_cell(c, false, found->hits[0].source);
    }
    cli_text(&c->out, "\n");
}

/* ── A line ── */

static void show_line(cli *c, const find_found *found) {
    bool fits = found->reason && !c->set.paths_only;
    cli_fit fit;
    cli_fit_begin(&fit, c, 4);
    if (fits) {
        cli_styled(&c->out, CLI_BOLD, sft_fit_name(found->fit));
        cli_pad(&c->out, FIT_COLUMNS - strlen(sft_fit_name(found->fit)));
    }
    cli_path_text(&c->out, sft_span_cstr(found->path));
    if (!c->set.paths_only) {
        cli_text(&c->out, "  ");
        cli_escaped_cut(&c->out, found->name, 40);
    }
    if (!c->set.paths_only && found->hit_count > 0) {
        bool name = strcmp(found->hits[0].field, "name") == 0;
        cli_printf(&c->out, "  (%s%s", found->hits[0].field, name ? "" : " ");
        if (!name) cli_escaped_cut(&c->out, found->hits[0].value, 64);
        cli_text(&c->out, ")");
    }
    if (fits) cli_fill(&c->out, "  (%)", sft_span_cstr(found->reason));
    cli_text(&c->out, "\n");
    cli_fit_end(&fit);
}

void find_show(cli *c, const find_found *found) {
    if (cli_is_json(c)) show_json(c, found);
    else if (c->set.nul) cli_put(&c->out, found->path, strlen(found->path) + 1);
    else if (c->set.format == CLI_TSV) show_row(c, found);
    else show_line(c, found);
}
