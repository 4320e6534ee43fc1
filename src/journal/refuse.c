#include "journal/journal.h"

/* What a person can do about a journal that we leave alone. */
void sfti_journal_hint(sft_error *err) {
    if (err)
        err->hint = "look at the file .NAME.sft-journal beside it; remove that when the model "
                    "is as it should be";
}

/* It says nothing that is followed; only its owner knows whether it is one. */
static sft_code journal_foreign(const sfti_journal_file *j, sft_error *err) {
    sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET,
              "expected a journal of an edit by this user or the file's owner, found %s (user "
              "%u); it is left alone", j->foreign, (unsigned)j->owner);
    if (err)
        err->hint = "nothing is written by its word: ask whose file .NAME.sft-journal is, and "
                    "have it removed if it is not the trace of an edit; -o OUT writes a changed "
                    "copy";
    return SFT_EDIT_INTERRUPTED;
}

sft_code sfti_journal_refuse(const sfti_journal_file *j, sft_error *err) {
    if (j->foreign) return journal_foreign(j, err);
    sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET, "expected the journal of an edit, "
              "found %s; it is left alone", j->wrong);
    sfti_journal_hint(err);
    return SFT_EDIT_INTERRUPTED;
}
