/* What of a model's metadata may be private. */
#ifndef CLI_META_SCRUB_H
#define CLI_META_SCRUB_H

#include "base/mem.h"
#include "safetensors.h"

/* What becomes of a pair. */
typedef struct cli_scrubbed {
    const char *reason; /* "a session id"; NULL: the pair stays */
    sft_span value;     /* what is left of it; data NULL: it goes */
} cli_scrubbed;

/* A pair that may identify a person or a machine goes; of tag counts only the names of folders
 * do. False when out of memory. */
bool cli_scrub(sft_span key, sft_span value, sfti_arena *arena, cli_scrubbed *out);

/* Why a text may be private, whatever its key is; or NULL. */
const char *cli_scrub_text(sft_span text);

/* JSON text without the names of folders: as keys they become numbers, as values they go. whole:
 * the object itself has them as keys. *out.data NULL: it is no such text. False when out of
 * memory. */
bool cli_scrub_folders(sft_span text, bool whole, sfti_arena *arena, sft_span *out);

/* A data: URL of a picture that carries more than the picture. False when out of memory. */
bool cli_scrub_picture(sft_span url, sfti_arena *arena, bool *found);

#endif
