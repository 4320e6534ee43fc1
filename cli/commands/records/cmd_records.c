/* records: what is known of models, as it is in force, and what is wrong with records of one's own.
 * Tests: tests/cli/records. */
#include "commands/commands.h"
#include "commands/records/records.h"
#include "support/hints.h"
#include "support/remote.h"
#include "support/words.h"

#include <string.h>


/* ── One record ── */

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
    for (const sfti_record_row *row = NULL; (row = cli_next_row(records, record, row));) {
        sft_span rest = sfti_row_written(records, row), line, word;
        source = sfti_row_source(records, row);
        if (source && source != last) cli_fill(&c->out, "    # %\n", *source);
        last = source;
        if (!cli_row_line(&rest, &line)) continue;
        sft_span left = line;
        (void)cli_next_part(&left, ' ', &word);
        while (left.len > 0 && *left.data == ' ') left = (sft_span){ left.data + 1, left.len - 1 };
        cli_text(&c->out, "    ");
        cli_put(&c->out, word.data, word.len);
        if (left.len > 0) cli_pad(&c->out, word.len < 11 ? 12 - word.len : 1);
        cli_escaped(&c->out, left);
        cli_text(&c->out, "\n");
        while (cli_row_line(&rest, &line)) {
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
    while (cli_row_line(&rest, &line)) sfti_json_span(w, line);
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
        for (const sfti_record_row *row = NULL; (row = cli_next_row(records, record, row));)
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

/* words takes no operands, check stands first, and only check has --model. */
static sft_code operands_agree(const cli *c, char **operands, size_t count, sft_error *err) {
    bool checks = count > 0 && strcmp(operands[0], "check") == 0;
    if (c->set.model && !checks)
        return cli_usage_error(err, "expected check FILE... with --model, found %s%s%s",
                               count ? "\"" : "", count ? operands[0] : "none",
                               count ? "\"" : "");
    for (size_t i = 0; i < count && !checks; i++) {
        if (count > 1 && strcmp(operands[i], "words") == 0)
            return cli_usage_error(err, "expected no other operand with words, found \"%s\"",
                                   operands[i == 0]);
        if (strcmp(operands[i], "check") == 0)
            return cli_usage_error(err, "expected check as the first operand, found \"%s\"",
                                   operands[0]);
    }
    return SFT_OK;
}

static void run_records(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    if (operands_agree(c, operands, count, &err)) {
        cli_fail_usage(c, &err);
    } else if (count == 0) {
        list_records(c);
    } else if (count == 1 && strcmp(operands[0], "words") == 0 && !cli_is_json(c)) {
        list_words(c);
    } else if (strcmp(operands[0], "check") != 0) {
        for (size_t i = 0; i < count; i++) show_records(c, operands[i]);
    } else if (count == 1) {
        cli_usage_error(&err, "expected FILE... behind check, found none");
        cli_fail_usage(c, &err);
    } else {
        cli_check_records(c, operands + 1, count - 1);
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
    "Files are given with --records to info, find, catalog and other commands; those in the folder "
    "~/.config/safetensors/records ($XDG_CONFIG_HOME, on Windows %APPDATA%) that end in .txt are "
    "always read, if the folder and the files are yours and nobody else may write to them. What "
    "they tell has the source records:FILE; of an id that comes with the library its trust is at "
    "most 79.\n"
    "check reads files and tells, with line and column, all that is wrong; which rows can never "
    "hold, because their clauses contradict one another; which hold wherever a row of an unrelated "
    "record holds, or the other way round; and words that another record says, too. It compares "
    "names and sizes as they are written, so that what it tells is certain, and more may overlap. "
    "The files are read together, and without those of your folder.\n"
    "It also tells what is surely not meant: names with a prefix that is taken off "
    "(model.diffusion_model.), modules that end in .weight, layers with the word of one layout "
    "(lora_unet_), words of files' names with an extension. A variant that is new is noted.\n"
    "With --model it then tries the rows on a model, which may be an adapter: for each clause "
    "whether it holds, and the tensor that shows it or whose shape differs; of modules how many "
    "are there.",
    CLI_EXAMPLES(
        { "safetensors records", "all ids" },
        { "safetensors records flux.1", "what is known of a model" },
        { "safetensors records check my.txt", "is it right, and does it overlap?" },
        { "safetensors records check my.txt --model model.safetensors", "which clauses hold?" },
        { "safetensors info --records my.txt model.safetensors", "use it" }),
    { CLI_OPTIONS(
        CLI_TAKES(0, "model", "MODEL", model,
          "with check: try the rows of the files on this model or adapter")),
      cli_json_options, cli_records_options, cli_remote_options, cli_network_options,
      cli_common_options },
    { "the records were printed, or the files are right",
      "no record has that id; with check, a file cannot be read as records, has a row that can "
      "never hold or what is surely not meant, or no row holds for the model of --model",
      "a file could not be read, or a usage error" },
    0, SIZE_MAX, run_records, CLI_URLS_NONE,
};
