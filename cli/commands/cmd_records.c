/* records: what is known of models, as it is in force, and what is wrong with records of one's own.
 * Tests: tests/cli/records. */
#include "commands/commands.h"
#include "support/hints.h"
#include "support/records.h"
#include "support/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FINDINGS_MOST 1000 /* of a file */
#define SLIPS_MOST 100     /* of a row */
#define FAULTS_MOST 100    /* of a file that cannot be read as records */

/* ── One record ── */

/* The lines of a row without those that are empty, each trimmed. */
static bool next_line(sft_span *rest, sft_span *line) {
    while (rest->len > 0) {
        const char *at = rest->data, *end = at + rest->len, *stop = at;
        while (stop < end && *stop != '\n' && *stop != '\v') stop++;
        *rest = (sft_span){ stop + (stop < end), (size_t)(end - stop) - (stop < end) };
        while (at < stop && (uint8_t)*at <= ' ') at++;
        while (stop > at && (uint8_t)stop[-1] <= ' ') stop--;
        *line = (sft_span){ at, (size_t)(stop - at) };
        if (line->len > 0) return true;
    }
    return false;
}

static const sfti_record_row *next_row(const sfti_records *records, const sfti_record *record,
                                       const sfti_record_row *row) {
    const sfti_record_row *next = NULL;
    for (int word = 0; word < SFTI_ROW_WORDS; word++) {
        const sfti_record_row *one = sfti_record_row_of(records, record, (sfti_word)word, row);
        if (one && (!next || one < next)) next = one;
    }
    return next;
}

static void print_head(cli *c, const sfti_record *record) {
    sft_span type = sfti_record_type_name(record->type);
    cli_put(&c->out, type.data, type.len);
    if (record->id) cli_fill(&c->out, " %", sft_span_cstr(record->id));
    if (record->label.len > 0) cli_fill(&c->out, " \"%\"", record->label);
}

/* As it may be written again, with a comment where rows are a user's. */
static void print_record(cli *c, const sfti_records *records, const sfti_record *record) {
    const sft_span *source = sfti_record_source(records, record), *last = source;
    if (source) cli_fill(&c->out, "# %\n", *source);
    print_head(c, record);
    cli_text(&c->out, "\n");
    for (const sfti_record_row *row = NULL; (row = next_row(records, record, row));) {
        sft_span rest = sfti_row_written(records, row), line, word;
        source = sfti_row_source(records, row);
        if (source && source != last) cli_fill(&c->out, "    # %\n", *source);
        last = source;
        if (!next_line(&rest, &line)) continue;
        sft_span left = line;
        (void)cli_next_part(&left, ' ', &word);
        while (left.len > 0 && *left.data == ' ') left = (sft_span){ left.data + 1, left.len - 1 };
        cli_text(&c->out, "    ");
        cli_put(&c->out, word.data, word.len);
        if (left.len > 0) cli_pad(&c->out, word.len < 11 ? 12 - word.len : 1);
        cli_escaped(&c->out, left);
        cli_text(&c->out, "\n");
        while (next_line(&rest, &line)) {
            cli_text(&c->out, "        ");
            cli_escaped(&c->out, line);
            cli_text(&c->out, "\n");
        }
    }
}

static void put_source(sfti_json_writer *w, const sft_span *source) {
    sfti_json_put_text(w, "source", source ? *source : sft_span_cstr("library"));
}

static void put_row(sfti_json_writer *w, const sfti_records *records, const sfti_record_row *row) {
    sft_span rest = sfti_row_written(records, row), line;
    const char *about;
    sfti_json_open(w, '{');
    sfti_json_put_text(w, "word", sfti_row_word_name((sfti_word)row->word, &about));
    sfti_json_put_open(w, "lines", '[');
    while (next_line(&rest, &line)) sfti_json_span(w, line);
    sfti_json_close(w, ']');
    put_source(w, sfti_row_source(records, row));
    sfti_json_close(w, '}');
}

static void put_record(cli *c, const sfti_records *records, const sfti_record *record, bool rows) {
    cli_object object;
    sfti_json_writer *w = cli_object_begin(&object, c, record->id ? record->id : "several");
    sfti_json_put_text(w, "type", sfti_record_type_name(record->type));
    sfti_json_put_text(w, "label", record->label);
    sfti_json_put_cstr(w, "parent", record->parent ? record->parent->id : NULL);
    put_source(w, sfti_record_source(records, record));
    if (rows) {
        sfti_json_put_open(w, "rows", '[');
        for (const sfti_record_row *row = NULL; (row = next_row(records, record, row));)
            put_row(w, records, row);
        sfti_json_close(w, ']');
    }
    cli_object_end(&object);
}

/* All records of an id: a model and a variant may share it. */
static void show_records(cli *c, const char *id) {
    const sfti_records *records = cli_records();
    sft_span wanted = sft_span_cstr(id);
    bool found = false;
    for (int type = SFTI_MODEL; type < SFTI_RECORD_TYPES; type++) {
        const sfti_record *record = sfti_record_find(records, (sfti_record_type)type, wanted);
        if (!record) continue;
        if (cli_is_json(c)) put_record(c, records, record, true);
        else if (c->several || found) cli_text(&c->out, "\n");
        if (!cli_is_json(c)) print_record(c, records, record);
        found = c->several = true;
    }
    if (found) return;
    sft_error err = SFT_ERROR_INIT;
    sfti_guess guess = sfti_guess_begin(wanted);
    sfti_guess_try(&guess, sft_span_cstr("check"));
    if (!cli_is_json(c)) sfti_guess_try(&guess, sft_span_cstr("words"));
    for (size_t i = 0; i < sfti_record_count(records); i++)
        if (sfti_record_at(records, i)->id)
            sfti_guess_try(&guess, sft_span_cstr(sfti_record_at(records, i)->id));
    sfti_fail(&err, SFT_NOT_FOUND, "expected the id of a record, found none%s",
              sfti_guess_text(&guess, "\"", "\""));
    if (cli_ends_with(wanted, ".txt") || strchr(id, '/')) cli_hint(&err, CLI_HINT_CHECK_RECORDS);
    cli_refuse(c, id, &err);
}

/* By type; with the label, and the source of a user's. */
static void list_records(cli *c) {
    const sfti_records *records = cli_records();
    for (int type = SFTI_MODEL; type < SFTI_RECORD_TYPES; type++) {
        sft_span name = sfti_record_type_name((sfti_record_type)type);
        if (c->set.format == CLI_HUMAN)
            cli_fill(&c->out, type > SFTI_MODEL ? "\n%\n" : "%\n", name);
        for (size_t i = 0; i < sfti_record_count(records); i++) {
            const sfti_record *record = sfti_record_at(records, i);
            const sft_span *source = sfti_record_source(records, record);
            if ((int)record->type != type) continue;
            if (cli_is_json(c)) {
                put_record(c, records, record, false);
                continue;
            }
            cli_fill(&c->out, "  %", sft_span_cstr(record->id));
            size_t width = strlen(record->id);
            if (record->label.len > 0) cli_pad(&c->out, width < 26 ? 28 - width : 2);
            cli_escaped(&c->out, record->label);
            if (source) cli_fill(&c->out, "  [%]", *source);
            cli_text(&c->out, "\n");
        }
    }
}

/* ── Checking ── */

typedef struct check_run {
    cli *c;
    cli_record_files files;  /* all that can be read */
    const sfti_records *records;
    sfti_json_writer *w;     /* of the result object, or NULL */
    const char *name;        /* of the file at hand */
    size_t findings;
    bool wrong; /* one of them is surely not meant */
} check_run;

static void tell(check_run *run, sft_span at, const char *what, sft_span detail,
                 const sfti_record *other) {
    size_t line, column;
    (void)sfti_records_place(run->records, at.data, &line, &column);
    const char *stop = at.len > 0 ? memchr(detail.data, '\n', detail.len) : NULL;
    if (stop) detail.len = (size_t)(stop - detail.data);
    if (++run->findings > FINDINGS_MOST) return;
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
        { "never", "never holds: % cannot be" },
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
    if (sfti_row_never_holds(row, &why)) {
        run->wrong = true;
        tell(run, why, "never", why, NULL);
        return;
    }
    for (const sfti_record_row *other = sfti_rows(run->records, (sfti_word)row->word,
                                                  row->word == SFTI_SAYS ? row->sub : 0);
         other && !cli_is_over(run->c); other = sfti_rows_next(run->records, other)) {
        bool later = other->text > row->text || (other->text == row->text && other > row);
        sfti_overlap overlap = later ? SFTI_OVERLAP_NONE
                                     : sfti_rows_overlap(run->records, row, other, &why);
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
    while (next_line(&text, &line))
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
    }
    if (run->w) {
        sfti_json_close(run->w, ']');
        cli_object_end(&object);
    } else if (run->findings == 0) {
        cli_path(&c->out, run->name, ": fine\n");
    } else if (run->findings > FINDINGS_MOST) {
        cli_path(&c->out, run->name, ": %zu findings more\n", run->findings - FINDINGS_MOST);
    }
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
    size_t len = strlen(name);
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

static void check_records(cli *c, char **paths, size_t count) {
    check_run run = { .c = c };
    for (size_t i = 0; i < count; i++) {
        sft_error err = SFT_ERROR_INIT;
        const char *failed;
        if (cli_record_files_add(c, &run.files, paths[i], &failed, &err))
            cli_fail_input(c, failed, &err);
    }
    sft_records *opened = open_right(&run);
    if (opened) run.records = sfti_records_of(opened);
    for (size_t i = 0; opened && i < run.files.count && !cli_is_over(c); i++) check_file(&run, i);
    sft_records_close(opened);
    cli_record_files_free(&run.files);
}

/* First words of rows, as their table has them. */
static void list_words(cli *c) {
    for (int i = 0; i < SFTI_ROW_WORDS; i++) {
        const char *about;
        sft_span word = sfti_row_word_name((sfti_word)i, &about);
        cli_put(&c->out, word.data, word.len);
        cli_pad(&c->out, word.len < 16 ? 17 - word.len : 1);
        cli_text(&c->out, about);
        cli_text(&c->out, "\n");
    }
}

static void run_records(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    if (count == 0) {
        list_records(c);
    } else if (count == 1 && strcmp(operands[0], "words") == 0 && !cli_is_json(c)) {
        list_words(c);
    } else if (strcmp(operands[0], "check") != 0) {
        for (size_t i = 0; i < count; i++) show_records(c, operands[i]);
    } else if (count == 1) {
        cli_usage_error(&err, "expected FILE... behind check, found none");
        cli_fail_usage(c, &err);
    } else {
        check_records(c, operands + 1, count - 1);
    }
}

const cli_command cli_records_command = {
    "records", "[ID...|words|check FILE...]",
    "show what is known of models, and check records of your own",
    "Without an operand, lists the ids of all records by type. With ids, prints those records as "
    "they are in force: rows that files of yours add stand behind a comment that names the file.\n"
    "A record is text, and a file of yours teaches the commands a model that they do not know: "
    "a line TYPE ID \"Label\" and below it, indented by four blanks, what is known: says, file, "
    "class, vae, text, parent, tensors. The clauses of tensors, one to a line and indented by "
    "eight, are names of tensors that such a model has: name[16,*] with sizes, # for any number, "
    "name.* for any that begins so, a | b for either, !a for none. \"safetensors records words\" "
    "lists all words, docs/records.md is a tutorial, and the record of a model that is alike is "
    "the best beginning: safetensors records flux.1\n"
    "Files are given with --records to info, find and catalog; those in the folder "
    "~/.config/safetensors/records ($XDG_CONFIG_HOME, on Windows %APPDATA%) that end in .txt are "
    "always read, if the folder and the files are yours and nobody else may write to them. What "
    "they tell has the source records:FILE; of an id that comes with the library its trust is at "
    "most 79.\n"
    "check reads files and tells, with line and column, all that is wrong; which rows can never "
    "hold, because their clauses contradict one another; which hold wherever a row of an unrelated "
    "record holds, or the other way round; and words that another record says, too. It compares "
    "names and sizes as they are written, so that what it tells is certain, and more may overlap. "
    "The files are read together, and without those of your folder.",
    CLI_EXAMPLES(
        { "safetensors records", "all ids" },
        { "safetensors records flux.1", "what is known of a model" },
        { "safetensors records check my.txt", "is it right, and does it overlap?" },
        { "safetensors info --records my.txt model.safetensors", "use it" }),
    { cli_json_options, cli_records_options, cli_common_options },
    { "the records were printed, or the files are right",
      "no record has that id; with check, a file cannot be read as records, or has a row that can "
      "never hold",
      "a file could not be read, or a usage error" },
    0, SIZE_MAX, run_records, CLI_URLS_NONE,
};
