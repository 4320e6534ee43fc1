/* The files next to a model: finding them (find.c), reading them (read.c), comparing the hashes
 * they record (match.c). A kind of file is a row in by_stem.c (files named after the model) or
 * by_name.c (config.json and the like); common.c has what their readers share. */
#ifndef SFTI_SIDECARS_H
#define SFTI_SIDECARS_H

#include "label/cursor.h"
#include "os/os.h"
#include "os/path.h"

#include <stddef.h>

/* ── Folders (folder.c) ── */

typedef struct sfti_entry {
    sft_span name; /* NUL-terminated too */
    os_kind kind;  /* OS_FILE, OS_LINK or OS_DIR */
} sfti_entry;

struct sft_info_folder {
    sft_allocator alloc;
    sfti_arena arena;
    const sfti_entry *entries; /* by bytes of the name, of the name in lower case if it folds */
    size_t count;
    size_t files;     /* model files */
    bool many;        /* they belong to more than one model */
    sft_span name;    /* last component of the real path, or empty */
    sft_span repo;    /* of a Hub cache, "ORG/NAME", or empty */
    bool inner;       /* by a URL of the Hub: a folder in a repository */
    bool folds;       /* the file system finds names in any case */
    uint64_t listed_s; /* seconds since 1970; 0: the journal of an edit is among them */
};

/* sft_info_folder_open; list false: a folder that files claim is not listed, and has no entries. */
sft_code sfti_folder_open(const char *path, const sft_files *files, bool list,
                          const sft_allocator *alloc, sft_info_folder **out, sft_error *err);

/* The entry named stem + suffix, the suffix in any case but as spelled if there is one;
 * NULL when there is none. Folders are found only by sfti_folder_at. Where the file system finds
 * names in any case, these do. */
const sfti_entry *sfti_folder_find(const sft_info_folder *folder, sft_span stem,
                                   const char *suffix);
/* The entry of exactly that name, or NULL. */
const sfti_entry *sfti_folder_at(const sft_info_folder *folder, sft_span name);
/* One folder to look in: the path's own, or that of the link's target. */
typedef struct sfti_sidecar_place {
    const sft_info_folder *folder;
    sft_span path, stem;
    bool speaks; /* rule 7 */
} sfti_sidecar_place;

/* Whether a file that a mark names (text/derived.h) still tells something beside the model: under
 * its name, or as a sidecar of that kind, if the model has another name by now. What cannot be read
 * tells nothing, and one that the marked file (or "model") is apart from nothing of it. */
bool sfti_origin_there(sft_info *info, const sfti_sidecar_place *place, sft_span origin,
                       sft_span marked);
/* The stem of a model, no entry of whose name is there, as its folder spells it: the case, or the
 * composition of letters, may be another where the file system does not mind. */
sft_span sfti_folder_stem(const sft_info_folder *folder, sft_info *info);
/* Whether README, config.json and the like speak of this model (rule 7): its file's name is
 * generic, or the folder holds no other model. */
bool sfti_folder_speaks(const sft_info_folder *folder, const sft_info *info, sft_span stem);
/* ── Reading ── */

/* The first `most` bytes of a regular file into the arena, *size its whole length. path ends
 * with name, and through no link does it leave the folder before that. False
 * with *error (a text) when it cannot be read; out of memory is in info->code. */
bool sfti_sidecar_file(sft_info *info, sft_span path, sft_span name, uint64_t most, sft_span *out,
                      uint64_t *size, sft_span *error);

/* The whole of a text file, UTF-8, without a byte order mark. */
bool sfti_sidecar_text(sft_info *info, sft_span path, sft_span name, sft_span *out,
                      sft_span *error);
/* folder_path/name, NUL-terminated; name alone for the folder ".". */
sft_span sfti_sidecar_path(sft_info *info, sft_span folder_path, sft_span name);
/* Tell in *out what could not be done; false. */
bool sfti_sidecar_failed(sft_info *info, int error, const char *what, sft_span *out);

/* One kind of file. read is given its whole text, takes facts whose source begins as
 * sidecar->source, and sets sidecar->error (and takes none) when it is broken or a skeleton; it
 * may correct sidecar->kind. */
typedef void sfti_sidecar_reader(sft_info *info, sfti_sidecar *sidecar, sft_span text);
typedef struct sfti_sidecar_row {
    const char *stem;   /* NULL: the model's */
    const char *suffix; /* any case */
    const char *kind;
    sfti_sidecar_reader *read;
    const sfti_keys *keys; /* instead of read: all that it tells */
} sfti_sidecar_row;

extern const sfti_sidecar_row sfti_sidecar_rows[]; /* by_stem.c */
extern const size_t sfti_sidecar_row_count;
extern const sfti_sidecar_row sfti_hub_rows[];     /* by_name.c */
extern const size_t sfti_hub_row_count;

/* ── What a sidecar tells (common.c) ── */

/* What one walk gathers: ctx of the takes below. */
typedef struct sfti_sidecar_walked {
    sfti_sidecar *sidecar;
    uint64_t model_id, version_id;
    sft_span id_source, air, published_at;
    sft_span origin;      /* where the ids are from: "Civitai", … or empty, which is the same */
    sfti_prompt *prompt;  /* at hand */
    int64_t prompt_index;
    size_t prompts;
    sfti_image *image;    /* at hand */
    int64_t image_index;
} sfti_sidecar_walked;

/* A record of a file, told with its error if it cannot be used. */
sfti_sidecar *sfti_sidecar_new(sft_info *info, sft_span path, const char *kind);
void sfti_sidecar_fail(sft_info *info, sfti_sidecar *sidecar, const char *why);
/* sfti_info_walk; text that is not JSON is the sidecar's error. */
bool sfti_sidecar_walk(sft_info *info, sfti_sidecar *sidecar, sft_span text, const sfti_row *rows,
                    size_t row_count, void *ctx);
/* A hash this sidecar records, for its match; algo as sfti_claim's. */
void sfti_sidecar_hash(sft_info *info, sfti_sidecar *sidecar, const char *algo, sft_span value,
                    sft_span source);
/* A size it records: of several, one that fits stays. */
void sfti_sidecar_size(const sft_info *info, sfti_sidecar *sidecar, uint64_t bytes);
/* Bytes of the one file, or 0 for a set of many or a file of unknown size. */
uint64_t sfti_sidecar_file_size(const sft_info *info);
bool sfti_sidecar_size_fits(const sft_info *info, uint64_t bytes);
/* A file name in a sidecar that is the model's. */
bool sfti_sidecar_own_name(const sft_info *info, sft_span name);
/* All that these keys tell. */
void sfti_sidecar_read(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                       const sfti_keys *keys);
/* After the walk: the ids are a claim. */
void sfti_sidecar_ids(sft_info *info, const sfti_sidecar_walked *side);

/* Takes of several sidecars: id base kind hash bytes told prompt image preview_file. */
#define SFTI_SIDECAR_TAKES 9
extern const sfti_key_take sfti_sidecar_takes[SFTI_SIDECAR_TAKES];
/* One of SFTI_PROMPT_NAMES; trust: how many steps below the prompt's place it stands. */
#define SFTI_PROMPT_NAMES "positive negative seed steps sampler cfg"
void sfti_sidecar_take_prompt(sfti_cursor *at);

/* Records "keys" of data/keys/sidecars.txt. */
#define SFTI_SIDECAR_KEYS(name, id_, takes) \
    static sfti_key_rows name##_made; \
    const sfti_keys name = { .id = id_, .own = (takes), .own_count = SFTI_COUNT(takes), \
                             .shared = sfti_sidecar_takes, .shared_count = SFTI_SIDECAR_TAKES, \
                             .made = &name##_made }
extern const sfti_keys sfti_own_keys, sfti_a1111_keys, sfti_tips_keys, sfti_lora_manager_keys,
    sfti_matrix_keys, sfti_swarm_keys, sfti_rgthree_keys, sfti_recipe_file_keys,
    sfti_civitai_model_keys, sfti_civitai_version_keys, sfti_civitai_choice_keys, sfti_readme_keys,
    sfti_json_keys, sfti_adapter_config_keys, sfti_config_keys;
/* Before the first of them is used; by_stem.c. */
void sfti_sidecar_keys_ready(void);

/* ── Content levels (levels.c) ── */

enum { SFTI_IMAGE_TYPE, SFTI_IMAGE_WIDTH, SFTI_IMAGE_HEIGHT, SFTI_IMAGE_LEVEL, SFTI_IMAGE_OLD };
#define SFTI_IMAGE_NAMES "type width height level old"

void sfti_sidecar_take_image(sfti_cursor *at);
/* field: SFTI_IMAGE_LEVEL of the preview it names, else the path of that. */
void sfti_sidecar_take_preview(sfti_cursor *at);
/* After matching: of sidecars that are not of another file. */
void sfti_info_preview_levels(sft_info *info);

/* ── Readers ── */

/* Readers of what CivitAI answers (civitai_api.c): a version, which stands at a JSON pointer within
 * the text ("" or "/civitai"), or a model with its versions. */
void sfti_read_civitai_version(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                               const char *place);
sfti_sidecar_reader sfti_read_civitai_model;
/* Readers of what other programs write (managers.c). */
sfti_sidecar_reader sfti_read_lora_manager, sfti_read_rgthree;
sfti_sidecar_reader sfti_read_readme, sfti_read_adapter_config;

/* ── Previews (previews.c) ── */

/* Images and films named after the model. found: bits of patterns already met. */
void sfti_info_previews(sft_info *info, const sft_info_folder *folder, sft_span folder_path,
                        sft_span stem, uint64_t *found);
/* One that a sidecar names, by its path within the folder; nothing where it is not there. */
void sfti_info_preview_at(sft_info *info, sft_span folder_path, sft_span name);

#endif
