/* What the files of the command records share: cmd_records.c shows records, check.c checks files of
 * them, try.c tries them on a model. */
#ifndef CLI_COMMAND_RECORDS_H
#define CLI_COMMAND_RECORDS_H

#include "lint/lint.h"
#include "support/models.h"
#include "support/records.h"

typedef struct check_run {
    cli *c;
    cli_record_files files;  /* all that can be read */
    const sfti_records *records;
    sfti_json_writer *w;     /* of the result object, or NULL */
    const char *name;        /* of the file at hand */
    size_t findings;
    uint64_t left; /* steps of comparisons, of all files together */
    bool wrong; /* one of them is surely not meant */
    /* with --model */
    sfti_trial *trial;       /* NULL: none */
    const char *model;       /* its path, as it is shown */
    const sft_info *info;    /* its label, by these records, too */
    size_t models;
    bool refused;            /* --model is not one model */
    bool holds;              /* a row does */
} check_run;

/* The lines of a row without those that are empty, each trimmed. */
static inline bool cli_row_line(sft_span *rest, sft_span *line) {
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

/* The row of a record behind another, in the order of the texts; NULL: there is none. */
static inline const sfti_record_row *cli_next_row(const sfti_records *records,
                                                  const sfti_record *record,
                                                  const sfti_record_row *row) {
    const sfti_record_row *next = NULL;
    for (int word = 0; word < SFTI_ROW_WORDS; word++) {
        const sfti_record_row *one = sfti_record_row_of(records, record, (sfti_word)word, row);
        if (one && (!next || one < next)) next = one;
    }
    return next;
}

/* The rows of a file in any record, tried on the model of the run. */
void cli_try_rows(check_run *run, size_t text);
/* check FILE... */
void cli_check_records(cli *c, char **paths, size_t count);

#endif
