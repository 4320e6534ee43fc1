/* What to try next, in the words of the command: one table for the hints of the library and for
 * those that only the command gives. */
#ifndef CLI_HINTS_H
#define CLI_HINTS_H

#include "base/error.h"

enum {
    CLI_HINT_RECURSIVE = SFT_HINT_PROGRAM,
    CLI_HINT_NEW_FOLDER,
    CLI_HINT_ONE_NAME,
    CLI_HINT_DASH_FILE,
    CLI_HINT_EACH_FILE,
    CLI_HINT_DROP_ONE,
    CLI_HINT_LIST_KEYS,
    CLI_HINT_ALGO,
    CLI_HINT_STDIN,
    CLI_HINT_FORWARD,
    CLI_HINT_REDIRECT,
    CLI_HINT_AS_RAW,
    CLI_HINT_EXPORT_DTYPE,
    CLI_HINT_EXPORT_NAME,
    CLI_HINT_ONLINE_OVER,
    CLI_HINT_MERGE,
    CLI_HINT_MOVE_AWAY,
    CLI_HINT_URL_READ_ONLY,
    CLI_HINT_URL_COPY,
    CLI_HINT_URL_UPLOAD,
    CLI_HINT_URL_INDEX,
    CLI_HINT_HUB_URL,
    CLI_HINT_WEB_URL,
    CLI_HINT_URL_READ,
    CLI_HINT_PATTERN,
    CLI_HINT_SINGLE_QUOTE,
    CLI_HINT_EXTENSION,
    CLI_HINT_QUOTE,
    CLI_HINT_HELP,
    CLI_HINT_HELP_RENAME,
    CLI_HINT_HELP_META,
    CLI_HINT_HELP_DATASET,
    CLI_HINT_HELP_DTYPES
};

/* hint: of the command or of the library; err may be NULL. */
void cli_hint(sft_error *err, int hint);

/* For sft_on_hint. */
const char *cli_hint_words(sft_hint hint);

#endif
