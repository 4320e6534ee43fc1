/* convert: models written in other formats. */
#include "commands/convert/convert.h"

#include "support/cli.h"
#include "support/hints.h"

#include <string.h>

typedef struct export_kind {
    const char *ending;
    sft_code (*write)(const sft_part *parts, size_t count, const sft_export_options *options,
                      sft_sink sink, const sft_job *job, sft_error *err);
} export_kind;

static const export_kind export_kinds[] = {
    { ".npz", sft_export_npz },
    { ".pt", sft_export_pt },
    { ".pth", sft_export_pt },
};

static const export_kind *export_kind_of(const cli *c) {
    size_t len = c->set.output ? strlen(c->set.output) : 0;
    for (size_t i = 0; i < sizeof export_kinds / sizeof *export_kinds; i++) {
        size_t ending = strlen(export_kinds[i].ending);
        if (len > ending && strcmp(c->set.output + len - ending, export_kinds[i].ending) == 0)
            return &export_kinds[i];
    }
    return NULL;
}

bool convert_is_export(const cli *c) {
    return export_kind_of(c) != NULL;
}

sft_code convert_export(cli *c, const cli_output *out, const sft_part *parts, size_t count,
                        sft_error *err) {
    sft_export_options options = SFT_EXPORT_OPTIONS_INIT;
    cli_progress progress;
    sft_sink sink;
    options.alloc = &c->alloc;
    options.opaque = c->set.opaque != 0;
    if (c->set.dry_run) return SFT_OK;
    sft_code code = cli_output_sink(out, &sink, err);
    if (code) return code;
    sft_job job = cli_progress_begin(&progress, c, out->path);
    code = export_kind_of(c)->write(parts, count, &options, sink, &job, err);
    cli_progress_end(&progress);
    if (code == SFT_CAST_DTYPE) cli_hint(err, CLI_HINT_EXPORT_DTYPE);
    if (code == SFT_FOREIGN_NAME) cli_hint(err, CLI_HINT_EXPORT_NAME);
    return code;
}
