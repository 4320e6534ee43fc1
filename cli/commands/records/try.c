/* records check --model: rows tried on a model, clause by clause. Tests: tests/cli/records. */
#include "commands/records/records.h"

#include <inttypes.h>

static const char *const holds_names[] = { "no", "-", "yes" };

static void put_shape(sfti_json_writer *w, const sft_tensor *tensor) {
    if (!tensor) {
        sfti_json_put_null(w, "tensor");
        sfti_json_put_null(w, "shape");
        return;
    }
    sfti_json_put_text(w, "tensor", tensor->name);
    sfti_json_put_open(w, "shape", '[');
    for (uint32_t i = 0; i < tensor->rank; i++) sfti_json_uint(w, tensor->shape[i]);
    sfti_json_close(w, ']');
}

static void put_holds(sfti_json_writer *w, sfti_holds holds) {
    if (holds == SFTI_HOLDS_HIDDEN) sfti_json_put_null(w, "holds");
    else sfti_json_put_bool(w, "holds", holds == SFTI_HOLDS_YES);
}

static void put_tried(const check_run *run, const sfti_tried *tried) {
    sfti_json_writer *w = run->w;
    size_t line, column;
    (void)sfti_records_place(run->records, tried->text.data, &line, &column);
    sfti_json_open(w, '{');
    sfti_json_put_uint(w, "line", line);
    sfti_json_put_uint(w, "column", column);
    sfti_json_put_text(w, "text", tried->text);
    put_holds(w, tried->holds);
    put_shape(w, tried->tensor);
    if (tried->of > 0) {
        sfti_json_put_text(w, "behind", tried->begin);
        sfti_json_put_uint(w, "found", tried->had);
        sfti_json_put_uint(w, "of", tried->of);
        sfti_json_put_cstr(w, "missing", *tried->missing ? tried->missing : NULL);
    }
    sfti_json_close(w, '}');
}

static void say_clause(cli_out *out, sft_span text) {
    sft_span line;
    for (bool first = true; cli_row_line(&text, &line); first = false) {
        if (!first) cli_text(out, " ");
        cli_escaped(out, line);
    }
}

static void say_tensor(cli_out *out, const sfti_tried *tried, const char *link) {
    const sft_tensor *tensor = tried->tensor;
    cli_escaped(out, tensor->name);
    cli_text(out, link);
    if (tried->in + tried->out > 0) {
        cli_printf(out, "%" PRIu64 " x %" PRIu64, tried->out, tried->in);
        return;
    }
    cli_text(out, "[");
    for (uint32_t i = 0; i < tensor->rank; i++)
        cli_printf(out, "%s%" PRIu64, i > 0 ? "," : "", tensor->shape[i]);
    cli_text(out, "]");
}

/* "  no   name[3,4]: name is [3,5]" */
static void say_tried(void *ctx, const sfti_tried *tried) {
    const check_run *run = ctx;
    cli_out *out = &run->c->out;
    if (run->w) {
        put_tried(run, tried);
        return;
    }
    cli_printf(out, "  %-4s ", holds_names[tried->holds]);
    if (tried->begin.len > 0) cli_fill(out, "% ", tried->begin);
    say_clause(out, tried->text);
    bool no = tried->holds == SFTI_HOLDS_NO, denied = *tried->text.data == '!';
    if (tried->of > 0) cli_printf(out, ": %" PRIu64 " of %" PRIu64, tried->had, tried->of);
    if (tried->of > 0 && no && *tried->missing)
        cli_fill(out, ", without %", sft_span_cstr(tried->missing));
    if (tried->tensor && (tried->of == 0 || (no && tried->had < tried->of && !*tried->missing))) {
        cli_text(out, tried->of > 0 ? ", " : ": ");
        say_tensor(out, tried, no && !denied ? " is " : " ");
    }
    cli_text(out, "\n");
}

/* Whether it holds. */
static bool try_row(check_run *run, const sfti_record *record, const sfti_record_row *row) {
    static const sfti_word words[] = { SFTI_TENSORS, SFTI_VARIANT_ROW, SFTI_ADAPTER_ROW,
                                       SFTI_ADAPTER_VARIANT, SFTI_MODULES };
    cli *c = run->c;
    sft_span written = sfti_row_written(run->records, row), head;
    size_t line, column;
    const char *about;
    bool known = false;
    sfti_row_tried all = { SFTI_HOLDS_NO, 0, { "", 0 } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        known = known || words[i] == row->word;
    if (!known || !record->id) return false;
    (void)sfti_records_place(run->records, written.data, &line, &column);
    head = sfti_row_word_name((sfti_word)row->word, &about);
    if (run->w) {
        sfti_json_open(run->w, '{');
        sfti_json_put_cstr(run->w, "record", record->id);
        sfti_json_put_text(run->w, "word", head);
        sfti_json_put_uint(run->w, "line", line);
        sfti_json_put_open(run->w, "clauses", '[');
    } else {
        cli_path(&c->out, run->name, ": line %zu: ", line);
        cli_fill(&c->out, "% of %", head, sft_span_cstr(record->id));
        cli_text(&c->out, "\n");
    }
    bool tried = sfti_trial_row(run->trial, row, say_tried, run, &all);
    if (tried && all.holds == SFTI_HOLDS_YES) run->holds = true;
    if (run->w) {
        sfti_json_close(run->w, ']');
        if (tried) put_holds(run->w, all.holds);
        else sfti_json_put_null(run->w, "holds");
        sfti_json_put_bool(run->w, "tried", tried);
        sfti_json_put_uint(run->w, "others", all.others);
        sfti_json_close(run->w, '}');
    } else if (!tried) {
        cli_text(&c->out, row->word == SFTI_TENSORS || row->word == SFTI_VARIANT_ROW
                              ? "  not tried: it is about models, this is an adapter\n"
                              : "  not tried: it is about adapters, this is none\n");
    } else {
        if (all.others > 0)
            cli_fill(&c->out, "  no   the row does not have %\n", all.other);
        if (all.others > 1)
            cli_printf(&c->out, "       and %" PRIu64 " layers more of the adapter\n",
                       all.others - 1);
        cli_text(&c->out, all.holds == SFTI_HOLDS_YES ? "  holds for " : all.holds == SFTI_HOLDS_NO
                              ? "  does not hold for " : "  may hold for ");
        cli_path(&c->out, run->model, "\n");
    }
    return tried && all.holds == SFTI_HOLDS_YES;
}

static void pass_over(void *ctx, const sfti_tried *tried) {
    (void)ctx, (void)tried;
}

/* What a record is not told for, though a row "tensors" of it holds: of other records, too, which
 * are neither what it descends from nor what it is over. */
static void say_told(check_run *run, const sfti_record *held) {
    const sfti_records *records = run->records;
    cli_out *out = &run->c->out;
    sft_span told = { "", 0 };
    bool any = false;
    (void)sft_info_fact(run->info, SFT_FACT_ARCHITECTURE, &told, NULL, NULL);
    if (run->w || !held || sft_span_equal(told, sft_span_cstr(held->id))) return;
    cli_fill(out, "  % is told as %", sft_span_cstr(held->id),
             told.len > 0 ? told : sft_span_cstr("none"));
    for (size_t i = 0; i < sfti_record_count(records); i++) {
        const sfti_record *other = sfti_record_at(records, i);
        const sfti_record_row *row = NULL;
        sfti_row_tried all = { SFTI_HOLDS_NO, 0, { "", 0 } };
        if (other->type != SFTI_MODEL || sfti_record_over(records, held, other) || other == held)
            continue;
        while (all.holds != SFTI_HOLDS_YES
               && (row = sfti_record_row_of(records, other, SFTI_TENSORS, row)))
            (void)sfti_trial_row(run->trial, row, pass_over, NULL, &all);
        if (all.holds != SFTI_HOLDS_YES) continue;
        cli_fill(out, any ? " %" : "; where it is more particular, write: over %",
                 sft_span_cstr(other->id));
        any = true;
    }
    cli_text(out, "\n");
}

/* The rows of a file in any record. */
void cli_try_rows(check_run *run, size_t text) {
    if (run->w) sfti_json_put_cstr(run->w, "model", run->model);
    if (run->w) sfti_json_put_open(run->w, "tried", '[');
    const sfti_record *held = NULL;
    for (size_t i = 0; i < sfti_record_count(run->records) && !cli_is_over(run->c); i++) {
        const sfti_record *record = sfti_record_at(run->records, i);
        for (const sfti_record_row *row = NULL; (row = cli_next_row(run->records, record, row));)
            if (row->text == text && try_row(run, record, row) && row->word == SFTI_TENSORS)
                held = record;
    }
    if (run->w) sfti_json_close(run->w, ']');
    say_told(run, held);
}
