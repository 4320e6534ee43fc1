/* records check: what is wrong with files of records, what overlaps, what is surely not meant.
 * Tests: tests/cli/records. */
#include "commands/records/records.h"
#include "support/remote.h"

#include <stdlib.h>
#include <string.h>

#define FINDINGS_MOST 1000 /* of a file */
#define SLIPS_MOST 100     /* of a row */
#define FAULTS_MOST 100    /* of a file that cannot be read as records */

/* ── Findings ── */

static void tell(check_run *run, sft_span at, const char *what, sft_span detail,
                 const sfti_record *other) {
    size_t line, column;
    if (strcmp(what, "limit") != 0 && ++run->findings > FINDINGS_MOST) return;
    (void)sfti_records_place(run->records, at.data, &line, &column);
    const char *stop = at.len > 0 ? memchr(detail.data, '\n', detail.len) : NULL;
    if (stop) detail.len = (size_t)(stop - detail.data);
    if (run->w) {
        sfti_json_open(run->w, '{');
        sfti_json_put_cstr(run->w, "finding", what);
        sfti_json_put_uint(run->w, "line", line);
        sfti_json_put_uint(run->w, "column", column);
        sfti_json_put_text(run->w, "text", detail);
        sfti_json_put_cstr(run->w, "other", other ? other->id : NULL);
        sfti_json_close(run->w, '}');
        return;
    }
    static const struct { const char *what, *says; } words[] = {
        { "never", "this row never holds: % is impossible" },
        { "same", "holds exactly where a row of % does: %" },
        { "within", "where it holds a row of % holds, too: %" },
        { "around", "holds wherever a row of % does: %" },
        { "word", "% says this word, too: %" },
        { "prefix", "begins with %, which is taken off names: leave it out, or put ^ before it" },
        { "weight", "a module is named without .weight: %" },
        { "layout", "begins with %, which only one layout of adapters has: leave it out" },
        { "extension", "names of files are compared without %" },
        { "variant", "note: no record has this variant yet: %" },
        { "empty", "nothing but comments" },
        { "limit", "not all rows were compared, there are too many" },
    };
    cli_path(&run->c->out, run->name, ": line %zu, column %zu: ", line, column);
    sft_span id = sft_span_cstr(other ? other->id : "");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(what, words[i].what) == 0 && other)
            cli_fill(&run->c->out, words[i].says, id, detail);
        else if (strcmp(what, words[i].what) == 0) cli_fill(&run->c->out, words[i].says, detail);
    cli_text(&run->c->out, "\n");
}

static void check_row(check_run *run, const sfti_record_row *row) {
    static const char *const names[] = { "", "same", "within", "around", "word" };
    static const char *const slip_names[] = { "prefix", "weight", "layout", "extension",
                                              "variant" };
    sfti_slip slips[SLIPS_MOST];
    sft_span why;
    size_t count = run->findings > FINDINGS_MOST
                 ? 0 : sfti_row_slips(run->records, row, slips, SLIPS_MOST);
    for (size_t i = 0; i < count; i++) {
        run->wrong = run->wrong || slips[i].kind != SFTI_SLIP_VARIANT;
        tell(run, slips[i].at, slip_names[slips[i].kind], slips[i].detail, NULL);
    }
    if (sfti_row_never_holds(row, &run->left, &why)) {
        run->wrong = true;
        tell(run, why, "never", why, NULL);
        return;
    }
    if (!sfti_rows_may_overlap((sfti_word)row->word)) return;
    for (const sfti_record_row *other = sfti_rows(run->records, (sfti_word)row->word,
                                                  row->word == SFTI_SAYS ? row->sub : 0);
         other && run->left > 0 && !cli_is_over(run->c);
         other = sfti_rows_next(run->records, other)) {
        bool later = other->text > row->text || (other->text == row->text && other > row);
        sfti_overlap overlap = later ? SFTI_OVERLAP_NONE
                                     : sfti_rows_overlap(run->records, row, other, &run->left,
                                                         &why);
        if (overlap)
            tell(run, why, names[overlap], why, sfti_row_record(run->records, other));
    }
}

/* The rows that this file has, in any record. */
static void check_rows(check_run *run, size_t text) {
    for (int word = 0; word < SFTI_ROW_WORDS; word++) {
        unsigned subs = word == SFTI_SAYS ? SFTI_PRODUCERS
                      : word == SFTI_PREFIXES ? (unsigned)SFTI_TENSOR_TABLES : 1;
        for (unsigned sub = 0; sub < subs; sub++)
            for (const sfti_record_row *row = sfti_rows(run->records, (sfti_word)word, sub); row;
                 row = sfti_rows_next(run->records, row))
                if (row->text == text) check_row(run, row);
    }
}

/* Nothing but comments and lines that are empty. */
static bool is_empty_text(sft_span text) {
    sft_span line;
    if (text.len >= 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0)
        text = (sft_span){ text.data + 3, text.len - 3 };
    while (cli_row_line(&text, &line))
        if (*line.data != '#' || (line.len > 1 && (uint8_t)line.data[1] > ' ')) return false;
    return true;
}

static void check_file(check_run *run, size_t i) {
    cli *c = run->c;
    cli_object object;
    run->name = run->files.texts[i].name;
    run->findings = 0;
    run->wrong = false;
    run->w = NULL;
    if (cli_is_json(c)) {
        run->w = cli_object_begin(&object, c, run->name);
        sfti_json_put_open(run->w, "findings", '[');
    }
    check_rows(run, i + 1);
    if (is_empty_text(run->files.texts[i].text)) {
        run->wrong = true;
        tell(run, (sft_span){ "", 0 }, "empty", (sft_span){ "", 0 }, NULL);
    } else if (run->left == 0) {
        tell(run, (sft_span){ "", 0 }, "limit", (sft_span){ "", 0 }, NULL);
    }
    if (run->w) {
        sfti_json_close(run->w, ']');
    } else if (run->findings == 0 && run->left > 0) {
        cli_path(&c->out, run->name, ": fine\n");
    } else if (run->findings > FINDINGS_MOST) {
        cli_path(&c->out, run->name, ": %zu findings more\n", run->findings - FINDINGS_MOST);
    }
    if (run->trial) cli_try_rows(run, i + 1);
    if (run->w) cli_object_end(&object);
    if (run->wrong) cli_status(c, CLI_NO);
}

static int by_place(const void *a, const void *b) {
    const sfti_records_fault *x = a, *y = b;
    if (x->text != y->text) return x->text < y->text ? -1 : 1;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

/* All that is wrong, on stderr by its place; of a JSON result `error` is what the reader met
 * first. */
static void tell_faults(check_run *run, const char *name, const sft_error *err,
                        sfti_records_faults *faults) {
    cli *c = run->c;
    size_t count = faults->count < faults->room ? faults->count : faults->room;
    cli_object object;
    if (count > 0) qsort(faults->items, count, sizeof *faults->items, by_place);
    sfti_json_writer *w = cli_is_json(c) ? cli_failed_begin(&object, c, name, err) : NULL;
    if (w) sfti_json_put_open(w, "findings", '[');
    for (size_t i = 0; i < count; i++) {
        const sfti_records_fault *one = &faults->items[i];
        const char *of = run->files.texts[one->text].name;
        sft_error said = SFT_ERROR_INIT;
        sfti_fail(&said, SFT_BAD_ARGUMENT, "line %zu, column %zu: expected %s, found \"%s\"%s",
                  one->line, one->column, one->expected, one->found, one->more);
        cli_complain(c, of, &said);
        if (!w) continue;
        sfti_json_open(w, '{');
        sfti_json_put_cstr(w, "finding", "wrong");
        sfti_json_put_uint(w, "line", one->line);
        sfti_json_put_uint(w, "column", one->column);
        sfti_json_put_cstr(w, "text", one->found);
        sfti_json_put_cstr(w, "expected", one->expected);
        sfti_json_put_cstr(w, "hint", *one->more ? one->more + 2 : NULL);
        sfti_json_put_null(w, "other");
        sfti_json_close(w, '}');
    }
    if (faults->count > count) {
        sft_error more = SFT_ERROR_INIT;
        sfti_fail(&more, SFT_BAD_ARGUMENT, "%zu lines and rows more are wrong",
                  faults->count - count);
        cli_complain(c, name, &more);
    }
    if (!w) return;
    sfti_json_close(w, ']');
    cli_object_end(&object);
}

/* It is named once: before what is wrong. A file that is wrong is an answer, not a failure. */
static void wrong_file(check_run *run, const char *name, sft_error *err,
                       sfti_records_faults *faults) {
    cli *c = run->c;
    size_t len = strlen(name) < SFTI_RECORDS_NAME ? strlen(name) : SFTI_RECORDS_NAME;
    int before = c->status;
    if (strncmp(err->message, name, len) == 0 && memcmp(err->message + len, ": ", 2) == 0)
        memmove(err->message, err->message + len + 2, strlen(err->message + len + 2) + 1);
    if (faults->count > 0) tell_faults(run, name, err, faults);
    else cli_fail_input(c, name, err);
    if (err->code != SFT_BAD_ARGUMENT) return;
    c->status = before;
    cli_status(c, CLI_NO);
}

/* Those that can be read, with those before them; the others are told. */
static sft_records *open_right(check_run *run) {
    sft_records *opened = NULL;
    size_t right = 0, count = run->files.count, bytes = FAULTS_MOST * sizeof(sfti_records_fault);
    sfti_records_faults faults = { sfti_take(&run->c->alloc, bytes), FAULTS_MOST, 0 };
    if (!faults.items) faults.room = 0;
    for (size_t i = 0; i < count; i++) {
        sft_error err = SFT_ERROR_INIT;
        sft_records *more = NULL;
        run->files.texts[right] = run->files.texts[i];
        if (sfti_records_open_all(run->files.texts, right + 1, &run->c->alloc, &faults, &more,
                                  &err)) {
            wrong_file(run, run->files.texts[right].name, &err, &faults);
            continue;
        }
        sft_records_close(opened);
        opened = more;
        right++;
    }
    run->files.count = right;
    if (faults.items) sfti_release(&run->c->alloc, faults.items, bytes);
    return opened;
}

static void check_files(check_run *run) {
    for (size_t i = 0; i < run->files.count && !cli_is_over(run->c); i++) check_file(run, i);
}

/* The model of --model, which was labelled by the records that are checked. */
static void each_trial(void *ctx, cli_model *model) {
    check_run *run = ctx;
    sft_error err = SFT_ERROR_INIT;
    if (run->refused) return;
    if (run->models == 1 && model->err.code) {
        cli_fail_model(run->c, model);
    } else if (run->models != 1 || !model->info || !model->set) {
        run->refused = true;
        cli_usage_error(&err, "expected one model in a file or in shards for --model, found %s",
                        run->models != 1 ? "several" : "a folder of components");
        cli_fail_usage(run->c, &err);
    } else if (!(run->trial = sfti_trial_new(model->info))) {
        sfti_fail_memory(&err, 1);
        cli_fail_input(run->c, model->path, &err);
    } else {
        run->model = model->path;
        run->info = model->info;
        check_files(run);
        if (!run->holds) cli_status(run->c, CLI_NO);
    }
}

void cli_check_records(cli *c, char **paths, size_t count) {
    check_run run = { .c = c, .left = SFTI_COMPARE_STEPS };
    char *with = (char *)(uintptr_t)c->set.model;
    sft_error err = SFT_ERROR_INIT;
    if (with && cli_remote_take(c, &with, 1, CLI_URLS_ALL, "records", &err)) {
        cli_fail_usage(c, &err);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const char *failed;
        err = (sft_error)SFT_ERROR_INIT;
        if (cli_record_files_add(c, &run.files, paths[i], &failed, &err))
            cli_fail_input(c, failed, &err);
    }
    sft_records *opened = open_right(&run), *in_force = c->records;
    if (opened) run.records = sfti_records_of(opened);
    c->records = opened;
    if (opened && with) cli_each_model(c, &with, 1, &run.models, NULL, each_trial, &run);
    else if (opened) check_files(&run);
    c->records = in_force;
    sft_records_close(opened);
    cli_record_files_free(&run.files);
}
