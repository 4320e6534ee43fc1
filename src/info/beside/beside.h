/* The files beside a model: finding them, reading them, and the tables of their kinds.
 * Between folder.c, beside.c, sidecars.c, civitai_api.c, hub.c, readme.c, yaml.c and
 * previews.c only.
 */
#ifndef SFTI_BESIDE_H
#define SFTI_BESIDE_H

#include "info/info.h"
#include "os/os.h"

/* ── Folders (folder.c) ── */

typedef struct sfti_entry {
    sft_span name; /* NUL-terminated too */
    os_kind kind;  /* OS_FILE, OS_LINK or OS_DIR */
} sfti_entry;

struct sft_info_folder {
    sft_allocator alloc;
    sfti_arena arena;
    const sfti_entry *entries; /* by bytes of the name */
    size_t count;
    size_t files;     /* model files */
    bool many;        /* they belong to more than one model */
    sft_span name;    /* last component of the real path, or empty */
    sft_span repo;    /* of a Hub cache, "ORG/NAME", or empty */
    uint64_t listed_at; /* seconds since 1970; 0: the journal of an edit is among them */
};

/* The entry named stem + suffix, the suffix in any case but as spelled if there is one;
 * NULL when there is none. Folders are found only by sfti_folder_at. */
const sfti_entry *sfti_folder_find(const sft_info_folder *folder, sft_span stem,
                                   const char *suffix);
/* The entry of exactly that name, or NULL. */
const sfti_entry *sfti_folder_at(const sft_info_folder *folder, sft_span name);
/* Whether README, config.json and the like speak of this model (rule 7): its file's name is
 * generic, or the folder holds no other model. */
bool sfti_folder_speaks(const sft_info_folder *folder, const sft_info *info, sft_span stem);
/* "ORG/NAME" from "…/models--ORG--NAME/snapshots/REV…"; empty if it is no such path. */
sft_span sfti_hub_repo(sfti_arena *arena, sft_span path);
/* File name of a path, and a file name without .safetensors or .sft (else its last suffix). */
sft_span sfti_base_name(sft_span path);
sft_span sfti_stem(sft_span name);

/* ── Reading ── */

/* The first `most` bytes of a regular file into the arena, *size its whole length. path ends
 * with name, and through no link does it leave the folder before that. False
 * with *error (a text) when it cannot be read; out of memory is in info->code. */
bool sfti_beside_read(sft_info *info, sft_span path, sft_span name, uint64_t most, sft_span *out,
                      uint64_t *size, sft_span *error);

/* One kind of file. read is given its whole text and "sidecar:NAME", and sets
 * sidecar->error (and takes no facts) when it is broken or a skeleton; it may correct
 * sidecar->kind. */
typedef struct sfti_side_row {
    const char *stem;   /* NULL: the model's */
    const char *suffix; /* any case */
    const char *kind;
    void (*read)(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source);
} sfti_side_row;

extern const sfti_side_row sfti_sidecar_rows[]; /* sidecars.c: named by the model's stem */
extern const size_t sfti_sidecar_row_count;
extern const sfti_side_row sfti_hub_rows[];     /* hub.c, readme.c: named by themselves */
extern const size_t sfti_hub_row_count;

/* Readers of what other programs write (managers.c). */
void sfti_read_a1111(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source);
void sfti_read_lora_manager(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                            sft_span source);
void sfti_read_stability_matrix(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                                sft_span source);
void sfti_read_swarm(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source);
void sfti_read_rgthree(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source);
void sfti_read_recipe(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source);

/* A number above 0, also one in a string; 0 for anything else. */
uint64_t sfti_walk_uint(const sfti_walk *walk);
/* A string that is no placeholder. */
bool sfti_walk_is_text(const sfti_walk *walk);
void sfti_take_prediction(sfti_walk *walk, const sfti_walk_row *row);
/* sfti_take_trigger and sfti_take_item for the first few hundred elements: no list of a
 * hostile file is long. */
void sfti_take_side_word(sfti_walk *walk, const sfti_walk_row *row);
void sfti_take_side_item(sfti_walk *walk, const sfti_walk_row *row);

void sfti_side_fail(sft_info *info, sfti_sidecar *sidecar, const char *why);
void sfti_side_not_json(sft_info *info, sfti_sidecar *sidecar);
/* A hash this sidecar records, for its match; algo as sfti_claim's. */
void sfti_side_hash(sft_info *info, sfti_sidecar *sidecar, const char *algo, sft_span value,
                    sft_span source);
/* A size it records: of several, one that fits stays. */
void sfti_side_size(const sft_info *info, sfti_sidecar *sidecar, uint64_t bytes);
/* Bytes of the one file, or 0 for a set of many or a file of unknown size. */
uint64_t sfti_side_file_size(const sft_info *info);
bool sfti_side_size_fits(const sft_info *info, uint64_t bytes);
/* A file name in a sidecar that is the model's. */
bool sfti_side_own_name(const sft_info *info, sft_span name);

/* A declared base model (a CivitAI label) and kind (a CivitAI type). */
void sfti_side_base(sft_info *info, sft_span label, sft_span source);
void sfti_side_kind(sft_info *info, sft_span type, sft_span source);

/* Readers of sidecars that are CivitAI's answers (civitai_api.c). prefix: JSON pointer of
 * the object within the text ("" or "/civitai"). */
void sfti_read_civitai_version(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                               sft_span source, const char *prefix);
void sfti_read_civitai_model(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                             sft_span source);
/* Model and version ids of a page's address; false if it is none. */
bool sfti_civitai_address(sft_span url, uint64_t *model_id, uint64_t *version_id);

void sfti_read_readme(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source);

/* ── YAML (yaml.c) ── */

/* Hand every scalar of a small, plain YAML text to the rows whose pattern fits its place,
 * as the event SFTI_JSON_STRING: nested maps and lists, plain, quoted and block scalars,
 * lists in brackets. What it does not know (anchors, tags, maps in braces) is passed over.
 * Linear, at most 16 deep. */
void sfti_info_yaml(sft_info *info, sft_span text, sft_span source, const sfti_walk_row *rows,
                    size_t row_count, void *ctx);

/* ── Previews (previews.c) ── */

/* Images and films named after the model. found: bits of patterns already met. */
void sfti_info_previews(sft_info *info, const sft_info_folder *folder, sft_span folder_path,
                        sft_span stem, uint64_t *found);
/* folder_path/name, NUL-terminated; name alone for the folder ".". */
sft_span sfti_beside_path(sft_info *info, sft_span folder_path, sft_span name);

#endif
