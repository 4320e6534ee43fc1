/* Sidecars that info writes: what is there is merged with what is known, never lost. */
#ifndef CLI_INFO_SIDECAR_H
#define CLI_INFO_SIDECAR_H

#include "support/models.h"
#include "support/raw.h"

typedef struct cli_sidecar {
    char *path;      /* in the caller's arena */
    bool exists;
    sft_span object; /* the JSON object that is there; empty: there is none */
    sft_buffer text; /* of what is there */
} cli_sidecar;

/* The model's path with another suffix; NULL when out of memory. */
char *cli_path_beside(const cli_model *model, sfti_arena *arena, const char *suffix);

/* Read what stands at the model's path with that suffix, through no link that leaves the folder.
 * Fails for what is there and cannot be read. Close it in any case. */
sft_code cli_sidecar_open(cli *c, const cli_model *model, sfti_arena *arena, const char *suffix,
                          cli_sidecar *out, sft_error *err);
void cli_sidecar_close(cli_sidecar *sidecar);

/* Of a .civitai.info: what a writer that knew no such model left in it is dropped. */
bool cli_keep_civitai(sft_span key, sft_span value);
/* Members of `over`, then of `under`, as cli_raw_merge writes them. */
sft_code cli_merge_text(sft_span under, sft_span over, cli_raw_keep *keep,
                        sft_buffer *out, sft_error *err);

#endif
