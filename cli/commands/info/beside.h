/* What info writes beside models: sidecars, pictures and workflows. */
#ifndef CLI_INFO_BESIDE_H
#define CLI_INFO_BESIDE_H

#include "support/models.h"
#include "support/raw.h"

/* ── Sidecars: what is there is merged with what is known, never lost ── */

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

/* Whether a member of a .civitai.info stays: what a writer that knew no such model left in it is
 * dropped. */
bool cli_keep_civitai(sft_span key, sft_span value);
/* Members of `over`, then of `under`, as cli_raw_merge writes them. */
sft_code cli_merge_text(sft_span under, sft_span over, cli_raw_keep *keep,
                        sft_buffer *out, sft_error *err);

/* ── Previews and workflows, under names that cannot leave the folder ── */

/* The pictures of a model into a folder: "<stem>.png", "<stem>.2.png", … Complains about
 * what cannot be written. Returns how many it wrote. */
size_t cli_export_previews(cli *c, const cli_model *model, const char *folder);
/* Bytes to a file, whole or not at all; one that is there only if it may be replaced, for which
 * cli_write_file takes --force. It is readable
 * by those who may read the model, and the file beside it that the bytes come from (or NULL).
 * cli_write_file complains, and returns false, when it fails. */
sft_code cli_write_beside(cli *c, const cli_model *model, const char *beside, const char *path,
                          sft_span bytes, bool replace, sft_error *err);
bool cli_write_file(cli *c, const cli_model *model, const char *beside, const char *path,
                    sft_span bytes);
/* "png" of "image/png"; NULL for a type that is no picture's or film's. */
const char *cli_picture_suffix(const char *media_type);
/* The model's workflow (else its prompt graph) to a file; false, after a complaint, when
 * there is none or it cannot be written. */
bool cli_export_workflow(cli *c, const cli_model *model, const char *path);

#endif
