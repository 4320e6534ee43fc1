/* What is collected about one model while its tensors, header and sidecars are read, and what the
 * label is rendered from. Inside src/label only.
 *
 * Order of work (open.c): tensors/, header/, CivitAI's answer, sidecars/, the file's name,
 * then sfti_info_resolve (decide/: precedence and conflicts; words/: trigger words), then render/.
 *
 * Everything collected lives in the arena. A function that can run out of memory records it
 * in `code` and does nothing from then on; the caller looks once, at the end.
 */
#ifndef SFTI_INFO_H
#define SFTI_INFO_H

#include "label/records.h"
#include "text/derived.h"
#include "text/stems.h"
#include "text/text.h"
#include "base/json.h"
#include "base/mem.h"
#include "safetensors_hash.h"
#include "safetensors_info.h"

#include <string.h>

/* ── Values ── */

typedef enum sfti_value_type {
    SFTI_TEXT = 0, /* text, unescaped UTF-8 */
    SFTI_NUMBER,   /* text is a JSON number as spelled */
    SFTI_BOOL,     /* text is "true" or "false" */
    SFTI_LIST      /* items, texts */
} sfti_value_type;

typedef struct sfti_fact_value {
    sfti_value_type type;
    sft_span text;
    const sft_span *items;
    size_t count;
} sfti_fact_value;

/* One candidate for a field. Candidates of a field stand in order of trust after
 * sfti_info_resolve; the first is the value, the next at most 16 are its others. */
typedef struct sfti_fact {
    sfti_fact_value value;
    sft_span source; /* "header:ss_output_name", "sidecar:x.json:/description", "tensors" */
    int trust;       /* 0 to 100 */
    struct sfti_fact *next;
    bool as_written; /* an architecture that is not in our words */
    bool excluded;   /* declared, of tensors that no such model has */
    const sft_span *by; /* "records:FILE": by a row of a user's; or NULL */
} sfti_fact;

/* A growing list of records of one type, in chunks; see sfti_info_push. */
typedef struct sfti_list {
    void *first, *last;
    size_t count;
} sfti_list;

/* ── Records ── */

typedef struct sfti_trigger {
    struct sfti_trigger *next;
    sft_span text;   /* one declared element, or one inferred word */
    sft_span source;
    sft_span folder; /* of the data set, or empty */
    int trust;
    int group;       /* index within its source, or -1 */
    double coverage; /* 0 to 1, or -1 */
    sft_span prompt; /* text as it is pasted; from sfti_info_words on */
    struct sfti_trigger *others; /* equal words from elsewhere, merged into this one */
} sfti_trigger;

typedef struct sfti_tag {
    struct sfti_tag *next;
    sft_span text;
    uint64_t count;
    double coverage;
} sfti_tag;

typedef struct sfti_claim { /* a recorded hash of this file */
    struct sfti_claim *next;
    const char *algo; /* "sha256", "autov1", "autov2", "autov3", "sshs_model", "sshs_legacy",
                         "crc32", "crc32_civitai", "blake3" */
    sft_span value;   /* lower-case hex, without 0x */
    sft_span source;
    const char *known; /* why a mismatch is expected ("LyCORIS module order"), or NULL */
} sfti_claim;

typedef struct sfti_link {
    struct sfti_link *next;
    sft_span url, source;
    uint64_t model_id, version_id; /* 0 = none */
    bool only_link; /* never an id: from a workflow, or after "trained on" and the like */
} sfti_link;

typedef struct sfti_civitai { /* one claim of ids; 0 = not told */
    struct sfti_civitai *next;
    uint64_t model_id, version_id;
    sft_span source, air, published_at;
    int trust;
} sfti_civitai;

typedef struct sfti_prompt {
    struct sfti_prompt *next;
    sft_span positive, negative, seed, steps, sampler, cfg, source; /* empty = null */
} sfti_prompt;

typedef struct sfti_preview {
    struct sfti_preview *next;
    sft_span path;    /* of a file in the folder; empty for an embedded one */
    sft_span source;  /* "header:ssmd_cover_images:/0", "sidecar:x.png" */
    const char *media_type;
    uint64_t bytes;
    uint32_t width, height; /* 0 = unknown */
    uint32_t nsfw_level;    /* CivitAI's bits, 0 = unknown */
    sft_span data;    /* decoded bytes of an embedded one, else empty */
} sfti_preview;

typedef struct sfti_image { /* of a site, as a sidecar lists it; 0 = not told */
    struct sfti_image *next;
    uint32_t width, height, level, old_level;
    bool video;
} sfti_image;

typedef struct sfti_sidecar {
    struct sfti_sidecar *next;
    sft_span path;      /* as found, folder included */
    const char *kind;   /* "civitai.info", "metadata.json", "a1111.json", … (docs/json-info.md) */
    const char *match;  /* "sha256", "weights", "differs", "size", "size-differs" or NULL */
    sft_span error;     /* why it could not be used, or empty */
    uint64_t size_claim; /* recorded size of the model in bytes, 0 = none */
    sft_span source;     /* "sidecar:NAME": what begins the sources of all it told */
    sfti_list hashes;    /* sfti_claim: of every file it tells of */
    sfti_list demoted;   /* match.c: trusts before the match lowered them */
    bool gave_permissions, gave_level;
    sft_span mark;       /* of ours: what is as it was written is no fact; data NULL: none */
    sfti_list images;      /* sfti_image */
    sft_span preview_name; /* a preview it names, or empty, and its level */
    uint32_t preview_level;
} sfti_sidecar;

typedef struct sfti_note { struct sfti_note *next; sft_span text, source; } sfti_note;
typedef struct sfti_private {
    struct sfti_private *next;
    sft_span key;
    const char *what;
} sfti_private;

/* How many weights some tensors hold, packed ones counted as what they stand for. */
#define SFTI_WEIGHTS_HIDDEN UINT64_MAX /* nobody can tell */
typedef struct sfti_weights {
    uint64_t known;     /* once the facts are resolved: all of them, or SFTI_WEIGHTS_HIDDEN */
    uint64_t undecided; /* bits of packed ones whose width only declarations tell */
    bool hidden;        /* of some nothing tells */
} sfti_weights;

typedef struct sfti_component {
    struct sfti_component *next;
    const char *part; /* "unet", "transformer", "text_encoder", "vae", … */
    const char *architecture; /* or NULL */
    int trust;                /* of the architecture; negative = null */
    const char *dtype;        /* name, or "mixed" */
    uint64_t bytes;
    sfti_weights weights;
} sfti_component;

typedef struct sfti_dataset {
    struct sfti_dataset *next;
    sft_span folder, class_tokens, resolution; /* empty = null */
    uint64_t images, repeats;                  /* UINT64_MAX = null */
    int regularisation;                        /* 0, 1, or -1 = null */
    size_t set;                                /* which entry of ss_datasets; 0 = none */
} sfti_dataset;

typedef struct sfti_bucket {
    struct sfti_bucket *next;
    sft_span resolution;
    uint64_t count;
} sfti_bucket;
typedef struct sfti_merge_source {
    struct sfti_merge_source *next;
    sft_span name, sha256, autov1, weight; /* empty = null */
    sft_span recipe;      /* JSON text: how it was merged itself */
    sft_span method, made_from; /* of that: names with commas */
    bool direct, ancestor; /* the recipe names it; it is one of those that those were made of */
} sfti_merge_source;
typedef struct sfti_loader {
    struct sfti_loader *next;
    sft_span type, name, strength_model, strength_clip;
} sfti_loader;

/* ── Training: one slot per key of the JSON, the first to be set wins ── */

typedef enum sfti_training_key {
    TRAIN_TOOL, TRAIN_TOOL_VERSION, TRAIN_STARTED_AT, TRAIN_FINISHED_AT, TRAIN_DURATION_S,
    TRAIN_EPOCH, TRAIN_EPOCHS, TRAIN_STEP, TRAIN_STEPS, TRAIN_IMAGES,
    TRAIN_IMAGES_WITH_REPEATS, TRAIN_REGULARISATION_IMAGES, TRAIN_BATCH_SIZE,
    TRAIN_LEARNING_RATE, TRAIN_UNET_LR, TRAIN_TEXT_ENCODER_LR, TRAIN_OPTIMIZER,
    TRAIN_SCHEDULER, TRAIN_RESOLUTION, TRAIN_NETWORK_MODULE, TRAIN_NETWORK_ARGS, TRAIN_SEED,
    TRAIN_CLIP_SKIP, TRAIN_MIXED_PRECISION, TRAIN_NOISE_OFFSET, TRAIN_COMMENT,
    TRAIN_SESSION_ID, TRAIN_BASE_FILE, TRAIN_BASE_SHA256, TRAIN_BASE_AUTOV1, TRAIN_VAE_FILE,
    TRAIN_VAE_SHA256, TRAIN_VAE_AUTOV1, TRAIN_KEYS
} sfti_training_key; /* NETWORK_ARGS: text is the JSON object as it stands */

/* Name in the JSON and type of each (collect.c); those from BASE_FILE and VAE_FILE on are members
 * of "base" and "vae". */
typedef struct sfti_training_slot { const char *name; sfti_value_type type; } sfti_training_slot;
extern const sfti_training_slot sfti_training_slots[TRAIN_KEYS];

/* ── What tensors say of an adapter ── */

typedef struct sfti_bounds {
    bool known;
    double min, max, mode;
} sfti_bounds;

typedef struct sfti_adapter {
    bool present;
    const char *type, *format; /* docs/json-info.md; NULL = unknown */
    bool dora, rslora;
    bool root_in_alpha; /* rslora that LyCORIS wrote: alpha is times the root of the rank */
    sfti_bounds rank, alpha;
    bool alpha_sampled;
    double scale;              /* negative = null */
    uint64_t conv_rank;        /* 0 = null */
    uint64_t modules;          /* UINT64_MAX = null */
    sfti_list components;      /* sfti_component */
    sfti_list targets;         /* sfti_note.text: leaf module names, sorted, at most 64 */
    sfti_list blocks;          /* sfti_note.text: "double_blocks.0-18" */
    bool alpha_assumed;        /* no alpha tensor: the rank, until somebody says more */
    double alpha_pattern[2];   /* least and most that is declared of some modules; 0 = none */
} sfti_adapter;

/* Digests that were computed: of `asked` (bits) those that could be told, else empty. */
typedef struct sfti_digests {
    uint32_t asked;
    sft_span text[SFT_HASH_COUNT];
} sfti_digests;

/* ── The collection ── */

#define SFTI_SIZES_DIFFER UINT64_MAX /* by layer */

typedef struct sfti_conflict {
    struct sfti_conflict *next;
    const char *field;
    const sfti_fact *facts;
} sfti_conflict;

struct sft_info {
    sfti_arena arena;
    sft_code code; /* of the first failure that ends the work (memory, cancelled) */
    const sft_set *set;
    const sfti_records *records; /* what is known of models */
    const sfti_record_row *said; /* the row by which facts that are added now are known, or NULL */
    sft_info_options options;
    /* folder without its last slash, "." if none; stem without suffix */
    sft_span path, folder, stem;
    bool one_model;              /* files of the folder speak for this model (rule 7) */
    uint32_t mode;               /* common to the files beside the model; 0: none was read */

    sfti_fact *facts[SFT_FACT_COUNT];
    sfti_list triggers, tags, claims, links, civitai, prompts, previews, sidecars, notes;
    sfti_list privates;
    sfti_list components, conflicts, datasets, buckets, merge_sources, loaders;
    sfti_fact_value training[TRAIN_KEYS];
    bool has_training, has_merge, has_provenance, has_workflow, has_prompt_graph;
    bool of_sources; /* a merge whose other metadata is of what was merged */
    sft_span no_variant; /* that tensors disprove, or empty */
    sft_span merge_tool, merge_method, merge_recipe; /* recipe: JSON text */
    sfti_adapter adapter;
    sfti_fact *declared_rank, *declared_alpha; /* NUMBERs that header and files tell */
    sfti_fact *weight_bounds[2]; /* the same: least and most preferred weight */
    sft_span a1111, comfy;  /* lines for a prompt; empty = null */
    double rating;          /* negative = null */
    int favourite;          /* the same */
    int64_t nsfw_level;     /* -1 = null */
    sfti_weights weights;
    const char *precision;  /* "fp16", …, or NULL */
    bool guesses_bits;      /* tensors are packed, and do not tell in how many bits */
    bool is_plain;          /* no tensor has a dtype of codes */
    const char *size;       /* "full", "pruned" or NULL */
    uint64_t vectors;       /* of an embedding, 0 = null */
    int negative;           /* embedding: 0, 1, or -1 = null */
    bool has_llm;
    struct {
        uint64_t layers, hidden, heads, kv_heads, vocab; /* 0 = null */
        /* What tensors tell, for what a configuration says: the highest number of a layer, and 1;
         * columns and rows of all heads together, 0: not to be seen, or they differ by layer. */
        uint64_t least_layers, queries, keys;
        bool heads_told; /* queries are those of the layer behind the heads */
    } llm;
    sfti_derived derived;   /* of the text that is being read */
    struct sfti_asked_text *asked; /* texts that clauses asked (tensors/predicates.c) */
    struct sfti_fitting *fitting; /* of an adapter: whose its modules are; NULL: not known */
    sfti_list evidence;     /* sfti_note.text: "name [3072,64]", at most 8 */
    struct { int credit, derivatives, relicense; sfti_list commercial; bool known; } permissions;

    const sfti_trigger **ordered; /* triggers.count of them, best first */
    sft_info_folder *own_folder;  /* listed by sft_info_open; NULL: the caller's, or none */
    uint64_t shard, shard_of;     /* of a shard opened alone ("…-00001-of-00003"), else 0 */
    sft_span shard_index;         /* the index in its folder, or empty */
    const struct sft_info_component *parts; /* of a folder of components */
    size_t part_count;
    sfti_digests computed;
    const sft_info_folder *listed; /* the folder that was looked into, or NULL */
    struct sfti_origin *marked; /* files that marks name, which were looked at */
    sft_info *older; /* what was collected before digests were computed; owns texts */
    sft_span answer; /* of CivitAI, JSON text; empty: not asked */
    struct sfti_sidecar *online; /* the answer as a sidecar, or NULL */
};

/* A value of __metadata__, of the first shard that has it; false when there is none or it is a
 * placeholder. */
bool sfti_info_metadata(const sft_info *info, const char *key, sft_span *out);

/* ── Collecting (collect.c) ── */

/* A copy of a record at the end of a list; its first member is the link. NULL when out of memory.
 * SFTI_PUSH(info, &info->notes, sfti_note, .text = text) */
void *sfti_info_push(sft_info *info, sfti_list *list, const void *record, size_t bytes);
#define SFTI_PUSH(info, list, type, ...) \
    ((type *)sfti_info_push(info, list, &(type){ __VA_ARGS__ }, sizeof(type)))
/* Memory of the arena; NULL when out of memory, which info->code then says. */
void *sfti_info_take(sft_info *info, size_t bytes);
void *sfti_info_take_zeroed(sft_info *info, size_t bytes);
/* printf into the arena; empty span when out of memory. */
sft_span sfti_info_text(sft_info *info, const char *format, ...);
sft_span sfti_info_copy(sft_info *info, sft_span text);
/* A copy with a NUL behind it; "" when out of memory. */
const char *sfti_info_cstr(sft_info *info, sft_span text);
/* Words with a text between them. */
sft_span sfti_info_joined(sft_info *info, const sft_span *words, size_t count, const char *between);
sfti_fact_value sfti_text_value(sft_span text);
sfti_fact_value sfti_number_value(sft_span text);
sfti_fact_value sfti_bool_value(bool value);
/* before and text, joined in the arena ("header:" and a key). */
sft_span sfti_info_join(sft_info *info, const char *before, sft_span text);

/* Takes out of a list what that source told. */
void sfti_drop_facts(sfti_fact **link, sft_span source);
/* Add a candidate; placeholders ("", None, null, NOFILE, … FM §1.0) are no facts. The same
 * value from the same source is kept once. What info->said, a row of a user's, says of a model that
 * the library knows has a trust of 79 at most. */
sfti_fact *sfti_info_add(sft_info *info, sft_fact field, sfti_fact_value value, sft_span source,
                         int trust);
void sfti_info_add_text(sft_info *info, sft_fact field, sft_span text, sft_span source,
                        int trust);
/* The same of a literal; NULL is no fact. */
void sfti_info_add_cstr(sft_info *info, sft_fact field, const char *text, sft_span source,
                        int trust);
/* An architecture in words that are not ours. */
void sfti_info_add_written(sft_info *info, sft_span text, sft_span source, int trust);
/* A comma list as a LIST fact, blanks stripped. */
void sfti_info_add_commas(sft_info *info, sft_fact field, sft_span text, sft_span source,
                          int trust);
/* One more item of the LIST fact of that source; no item twice. */
void sfti_info_add_item(sft_info *info, sft_fact field, sft_span text, sft_span source,
                        int trust);
/* The first value of a slot stays. Numbers are taken from texts too (Python writes all as
 * text); what is no number is none for a slot of numbers. */
void sfti_info_train(sft_info *info, sfti_training_key key, sfti_fact_value value);
void sfti_info_train_uint(sft_info *info, sfti_training_key key, uint64_t value);
void sfti_info_trigger(sft_info *info, sft_span text, sft_span source, int trust, int group);
/* The same with the data set's folder; NULL when it is no word, or out of memory. */
sfti_trigger *sfti_info_trigger_in(sft_info *info, sft_span text, sft_span source, int trust,
                                   int group, sft_span folder);
/* Hex of that many digits, lower case, without 0x, copied; false for anything else and for
 * placeholders (a hash of nothing, zeros). */
bool sfti_info_hash(sft_info *info, sft_span text, size_t digits, sft_span *out);
/* Hex digits of an algorithm's hash; 0 for what is none. */
size_t sfti_claim_digits(const char *algo);
/* Lower-cases, strips 0x, refuses what is no hash of that algorithm or a placeholder. */
void sfti_info_claim(sft_info *info, const char *algo, sft_span value, sft_span source,
                     const char *known);
void sfti_info_private(sft_info *info, sft_span key, const char *what);
/* Rank, alpha or a bound of the weight as told (&info->declared_rank); no number, no effect. */
void sfti_info_declare(sft_info *info, sfti_fact **list, sft_span number, sft_span source,
                       int trust);
/* A preview whose bytes are base64 text, and what a PNG's text chunks tell; at most 16. */
void sfti_info_preview(sft_info *info, sft_span base64, sft_span source);
/* The file or repo it was trained on; "pony", "illustrious", "noobai" in it are a base_model
 * of trust 40. */
void sfti_info_base_checkpoint(sft_info *info, sft_span text, sft_span source, int trust);
/* What a declared architecture of trainers says: architecture (or NULL), variant, base_model; a
 * text that is not known is the base_model as written. */
void sfti_info_declared_base(sft_info *info, const char *architecture, sft_span text,
                             sft_span source, int trust);
/* A class of diffusers or transformers, as written where it is not known. One that stands for many
 * architectures counts only where nothing else tells. */
void sfti_info_declared_class(sft_info *info, sft_span name, sft_span source, int trust);
/* What is trained on a repository, by the repository's name, where nothing better is told. */
void sfti_info_declared_repository(sft_info *info, sft_span text, sft_span source);
/* CivitAI's label of a base model, and its type of a model. */
void sfti_info_declared_label(sft_info *info, sft_span label, sft_span source, int trust);
void sfti_info_declared_kind(sft_info *info, sft_span type, sft_span source, int trust);
/* Words after "trigger word(s):", "trigger word is", "use `x` to trigger" in a text. */
void sfti_info_trigger_sentence(sft_info *info, sft_span text, sft_span source, int trust);
/* What sfti_info_scan_text found, made a claim of trust 50 if all texts name one model. */
void sfti_info_civitai_links(sft_info *info);
void sfti_info_note(sft_info *info, sft_span text, sft_span source);
bool sfti_is_placeholder(sft_span text);
/* The best candidate so far, or NULL. */
static inline sft_span sfti_fact_source(const sfti_fact *fact) {
    return fact->by ? *fact->by : fact->source;
}
const sfti_fact *sfti_info_best(const sft_info *info, sft_fact field);
/* HTML to plain text (text/formats.h). */
sft_span sfti_plain_text(sft_info *info, sft_span html);

/* ── The parts ── */

/* What a quantisation is told as ("int4"), by its row "precision", or NULL (quantisation.c). */
const char *sfti_told_precision(sft_info *info, sft_span id);
/* scale again, after rank, alpha or rslora changed. */
void sfti_adapter_scale(sft_info *info);
/* What the file's name hints at (filename.c): its name, last of all candidates. */
void sfti_info_file_name(sft_info *info);
void sfti_info_tensors(sft_info *info); /* kind, architecture, adapter, components, … */
void sfti_info_header(sft_info *info);  /* __metadata__ */
void sfti_copied_previews_last(sft_info *info); /* for they are a source's */
void sfti_info_online(sft_info *info);  /* CivitAI's answer, before the sidecars */
bool sfti_is_given_claim(const sft_info *info, const sfti_claim *claim);
void sfti_info_sidecars(sft_info *info, const sft_info_folder *folder); /* sidecars, README, … */
/* Match the sidecars again, now that digests are computed, and lower or restore the trust of what
 * they told. sfti_info_resolve must follow. */
void sfti_info_match_sidecars(sft_info *info, const sfti_digests *digests);
/* The same, if the trust of all that sidecars told stays; else false, and nothing is done. */
bool sfti_info_match_again(sft_info *info, const sfti_digests *digests);
/* Why a digest may be another than the claim says; NULL: nobody knows. */
const char *sfti_claim_known(const sft_info *info, const sfti_claim *claim);
/* Whether a CRC-32 of eight digits is another, or its bytes in the other order: CivitAI has
 * written both. */
bool sfti_same_crc(sft_span a, sft_span b);
void sfti_info_resolve(sft_info *info); /* precedence, conflicts, triggers */
void sfti_info_words(sft_info *info);   /* trigger words from ss_tag_frequency and merging */
void sfti_info_prompts(sft_info *info); /* a1111 and comfy, after the words */
/* URLs, AIRs and ids in a text; only_link for texts that never claim ids. */
void sfti_info_scan_text(sft_info *info, sft_span text, sft_span source, bool only_link);
/* A claim of ids, once per source; NULL when it is not new, or there are too many. */
sfti_civitai *sfti_info_civitai(sft_info *info, uint64_t model_id, uint64_t version_id,
                                sft_span source, int trust);
/* Text chunks of a PNG (parameters, prompt, workflow) as example prompts. */
void sfti_info_png_text(sft_info *info, sft_span png, sft_span source);
/* Maps of vocabularies (maps.c): what producers call architectures, to ours; NULL unknown. *row is
 * the row that says so, where one does (often &info->said). */
const char *sfti_map_modelspec(const sfti_records *records, sft_span architecture,
                               const char **kind, sft_span *variant, const sfti_record_row **row);
const char *sfti_map_civitai_base(const sfti_records *records, sft_span base_model,
                                  const sfti_record_row **row);
/* A class of diffusers or transformers: the kind that its name tells, and whether it is known;
 * a known class of many architectures has none. */
bool sfti_map_class_name(const sfti_records *records, sft_span name, const char **architecture,
                         const char **kind, const sfti_record_row **row);
const char *sfti_map_onetrainer(const sfti_records *records, sft_span model_type,
                                sft_span *variant, const sfti_record_row **row);
/* model_type of config.json, the kind NULL where it tells none, and *row where none but the id
 * does; false for one that is not known. */
bool sfti_map_model_type(const sfti_records *records, sft_span type, const char **architecture,
                         const char **kind, const sfti_record_row **row);
/* "v_prediction" -> "v"; NULL unknown. */
const char *sfti_map_prediction(const sfti_records *records, sft_span text,
                                const sfti_record_row **row);
/* What a base version or architecture of trainers changes in use ("kontext", "edit"), and
 * the label of it ("Flux.1 Kontext", or empty: the text as it stands); false for none. */
bool sfti_map_derivative(const sfti_records *records, sft_span text, sft_span *variant,
                         sft_span *label, const sfti_record_row **row);
/* Whether an adapter's modules are some that no model of this architecture has (fitting.c). */
bool sfti_fitting_excludes(const sft_info *info, sft_span architecture);

#endif
