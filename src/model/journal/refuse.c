#include "journal/journal.h"

/* It says nothing that is followed; only its owner knows whether it is one. */
static sft_code journal_foreign(const sfti_journal_file *j, sft_error *err) {
    sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET,
              "expected a journal of an edit by this user or the file's owner, found %s (user "
              "%u); it is left alone", j->foreign, (unsigned)j->owner);
    sfti_hint(err, SFT_HINT_JOURNAL_OWNER);
    return SFT_EDIT_INTERRUPTED;
}

sft_code sfti_journal_refuse(const sfti_journal_file *j, sft_error *err) {
    if (j->foreign) return journal_foreign(j, err);
    sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET, "expected the journal of an edit, "
              "found %s; it is left alone", j->wrong);
    sfti_hint(err, SFT_HINT_JOURNAL_REMOVE);
    return SFT_EDIT_INTERRUPTED;
}
