/* repair: what was found, for people. Tests: tests/cli/repair. */
#include "commands/repair/repair.h"

#include "support/cli.h"

#include <string.h>

/* The first few of many fixes of one kind are shown. */
#define REPAIR_SHOWN 5

/* sft_fix.done in the conditional, for a dry run, by the name of the fix. */
static const struct { const char *name, *would; } plans[] = {
    { "header_nul", "the NULs after the header would become spaces" },
    { "legacy_layout", "the header would be written in today's layout" },
    { "duplicate_name", "the last tensor of the name would be kept" },
    { "duplicate_key", "the last value of the key would be kept" },
    { "duplicate_metadata", "the pairs would be put together, the last value of a key kept" },
    { "metadata_value", "the value would become a string of its text" },
    { "metadata_type", "it would be left out" },
    { "entry_spelling", "the entry would become an object" },
    { "dtype_spelling", "the dtype would become a string" },
    { "hole", "bytes that belong to no tensor would be left out" },
    { "overlap", "shared bytes would be written for each tensor" },
    { "trailing_bytes", "the bytes after the last tensor would be left out" },
    { "first_byte", "the header would begin with its object" },
    { "padding", "the header would be padded with spaces" },
    { "unknown_field", "the field would be left out" },
    { "metadata_null", "it would be left out" },
    { "unaligned", "tensors would be put in order of their dtypes' size" },
};

static const char *planned(const sft_fix *fix) {
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (strcmp(plans[i].name, fix->name) == 0) return plans[i].would;
    return fix->done;
}

size_t cli_print_fixes(cli *c, const char *path, const sft_repair *repair) {
    size_t count = sft_repair_fix_count(repair);
    for (size_t i = 0; i < count;) {
        const char *name = sft_repair_fix_at(repair, i)->name;
        size_t end = i;
        while (end < count && strcmp(sft_repair_fix_at(repair, end)->name, name) == 0) end++;
        size_t shown = c->set.verbose || end - i <= REPAIR_SHOWN ? end : i + REPAIR_SHOWN - 1;
        for (size_t j = i; j < shown; j++) {
            const sft_fix *fix = sft_repair_fix_at(repair, j);
            sft_error found = fix->found;
            found.hint = SFT_HINT_NONE;
            cli_path(&c->out, path, ": %s: ", fix->name);
            cli_error_text(&c->out, &found);
            cli_text(&c->out, ": ");
            cli_text(&c->out, c->set.dry_run ? planned(fix) : fix->done);
            cli_text(&c->out, "\n");
        }
        if (shown < end)
            cli_path(&c->out, path, ": %s: %zu more, -v shows them\n", name, end - shown);
        i = end;
    }
    return count;
}
