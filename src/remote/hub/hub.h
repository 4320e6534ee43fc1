/* The Hugging Face Hub: names, what the environment says, repositories, the local cache. */
#ifndef SFTI_REMOTE_HUB_H
#define SFTI_REMOTE_HUB_H

#include "base/mem.h"
#include "safetensors.h"

/* ── Texts ── */

/* For a URL: all but letters, digits, "-_.~" and those in keep as %XX. NULL when out of memory. */
const char *sfti_hub_encode(sfti_arena *arena, const char *text, const char *keep);

/* ── Names: hf://[TYPE/]OWNER/NAME[@REVISION][/PATH], as huggingface_hub reads them ── */

typedef enum sfti_hub_type {
    SFTI_HUB_MODEL = 0,
    SFTI_HUB_DATASET,
    SFTI_HUB_SPACE,
    SFTI_HUB_KERNEL,
    SFTI_HUB_BUCKET
} sfti_hub_type;

typedef struct sfti_hub_name {
    sfti_hub_type type;
    const char *id;       /* "OWNER/NAME" */
    const char *revision; /* with its %XX undone; NULL if none is given, and of buckets */
    const char *path;     /* plain parts; "": the repository itself */
} sfti_hub_name;

/* "models", "datasets", ... */
const char *sfti_hub_type_text(sfti_hub_type type);
/* Texts of the arena. SFT_REMOTE_URL says what is wrong with it. */
sft_code sfti_hub_read_name(const char *text, sfti_arena *arena, sfti_hub_name *out,
                            sft_error *err);
/* Whether a file of a repository can be named: without empty, "." and ".." parts, '?', '#' and
 * controls. */
bool sfti_hub_is_path(sft_span path);
/* As hf:// again; models without their type. NULL when out of memory. */
const char *sfti_hub_write_name(const sfti_hub_name *name, sfti_arena *arena);

/* A web page of a repository, folder or file (/blob, resolve, raw, tree, blame/REVISION/PATH) of
 * huggingface.co, hf.co or the endpoint as hf://, its query left out: *name is of the arena. NULL:
 * the URL is no such page. SFT_REMOTE_URL: it is one of a file that cannot be named. */
sft_code sfti_hub_from_web(const char *endpoint, const char *url, sfti_arena *arena,
                           const char **name, sft_error *err);

#endif
