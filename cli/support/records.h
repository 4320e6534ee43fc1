/* What is known of models in this run: the records of the library, of the user's folder and of
 * --records. */
#ifndef CLI_RECORDS_H
#define CLI_RECORDS_H

#include "label/records.h"
#include "safetensors_info.h"
#include "support/cli.h"

extern const cli_option cli_records_options[]; /* --records --no-user-records */

/* Files of records, read whole. */
typedef struct cli_record_files {
    sfti_arena arena;
    sft_records_text *texts;
    size_t count, cap;
} cli_record_files;

/* The files that a path names: itself, or those of a folder that end in .txt, in order of name.
 * *failed: the file or folder that cannot be read. */
sft_code cli_record_files_add(cli *c, cli_record_files *files, const char *path,
                              const char **failed, sft_error *err);
void cli_record_files_free(cli_record_files *files);

/* Before a command with those options runs: read all, once. False after a failure, which was told.
 * Each begin has an end. */
bool cli_records_begin(cli *c);
void cli_records_end(cli *c);
/* What was read, or what comes with the library. */
const sfti_records *cli_records(void);

#endif
