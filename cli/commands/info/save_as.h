/* info --save-as: what is known of a model, written as another program's sidecar or into the
 * header. */
#ifndef CLI_INFO_SAVE_AS_H
#define CLI_INFO_SAVE_AS_H

#include "commands/info/facts.h"
#include "support/raw.h"

/* In the order of the option's words. */
enum {
    CLI_SAVE_NOTHING = 0,
    CLI_SAVE_CIVITAI,
    CLI_SAVE_LORA_MANAGER,
    CLI_SAVE_A1111,
    CLI_SAVE_MODELSPEC
};

extern const cli_option cli_save_options[];

/* SFT_BAD_ARGUMENT for options that do not go together; least: --min-trust. */
sft_code cli_save_read(cli *c, uint64_t *least, sft_error *err);
/* Write one model's facts, or with --dry-run print what would be written; print the result. */
void cli_save_model(cli *c, const cli_model *model, uint64_t least);

/* ── Renderings as JSON (save_json.c) ── */

typedef struct cli_sidecar_format {
    const char *suffix, *program, *kind; /* kind: as in `sidecars` */
    cli_raw_keep *keep;                  /* of what is there; NULL: all */
    /* What is known, and what the program expects where nothing is. */
    void (*known)(cli_saving *saving, sfti_json_writer *w);
    void (*defaults)(cli_saving *saving, sfti_json_writer *w);
} cli_sidecar_format;

const cli_sidecar_format *cli_sidecar_format_of(int save_as);

/* ── The header (save_spec.c) ── */

#define CLI_SPEC_MOST 25
typedef struct cli_spec {
    sft_pair pairs[CLI_SPEC_MOST]; /* to be set */
    sft_span kept[CLI_SPEC_MOST];  /* keys that have another value, which stays */
    size_t count, kept_count;
    sfti_derived was; /* what was written last: such values are ours to replace */
    sfti_derived silent; /* but what is from files whose length or digest is another model's */
    bool is_all;      /* pairs that the header has already, too */
    sft_span mark;    /* the origins of what is written and of what stays as it was written */
} cli_spec;

/* What is known as modelspec keys, against those that the header has, and the mark of it. */
sft_code cli_spec_begin(cli_saving *saving, cli_spec *spec, sft_error *err);

#endif
