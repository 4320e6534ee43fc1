/* Conventions of __metadata__ as tables: one row a key, one table a family of producers.
 * Inside src/info only. */
#ifndef SFTI_INFO_HEADER_H
#define SFTI_INFO_HEADER_H

#include "info/info.h"

/* The pair at hand. */
typedef struct sfti_header {
    sft_info *info;
    const sft_file *file;
    sft_span key, value, source; /* source: "header:KEY" */
    bool spec;                   /* modelspec's keys stand without their prefix */
} sfti_header;

typedef struct sfti_header_row {
    const char *key;
    void (*take)(sfti_header *header, const struct sfti_header_row *row);
    int field; /* sft_fact, sfti_training_key or what take makes of it */
    int trust;
    const char *word;                /* for take */
    const sfti_walk_row *rows;       /* for sfti_header_walk */
    size_t row_count;
} sfti_header_row;

#define SFTI_COUNT(table) (sizeof(table) / sizeof *(table))
#define SFTI_WALK(table) (table), SFTI_COUNT(table)

/* One family: rows of a prefix, which is cut off before comparing. */
typedef struct sfti_header_family {
    const char *prefix;
    const sfti_header_row *rows;
    size_t count;
    bool any_case;
} sfti_header_family;

sfti_header_family sfti_kohya_family(void);     /* ss_, and sshs_ */
sfti_header_family sfti_modelspec_family(void); /* modelspec. */
sfti_header_family sfti_bare_family(void);      /* the same keys without prefix */
sfti_header_family sfti_trainers_family(void);
sfti_header_family sfti_ssmd_family(void);
sfti_header_family sfti_merges_family(void);
sfti_header_family sfti_provenance_family(void);
void sfti_kohya_finish(sfti_header *header);
void sfti_kohya_datasets(sfti_header *header); /* datasets.c: data sets and buckets */
/* When all pairs were seen: what needs several. */
void sfti_merges_finish(sfti_header *header);

/* Another key's value; false when it is not there or a placeholder. */
bool sfti_header_get(const sfti_header *header, const char *key, sft_span *value);
/* Run with key, value and source set to another key of the header; false if not there. */
bool sfti_header_at(sfti_header *header, const char *key);

/* Ready-made takes. */
void sfti_header_fact(sfti_header *header, const sfti_header_row *row);
void sfti_header_number(sfti_header *header, const sfti_header_row *row); /* fact, a number */
void sfti_header_commas(sfti_header *header, const sfti_header_row *row);
void sfti_header_prose(sfti_header *header, const sfti_header_row *row); /* fact and links */
void sfti_header_train(sfti_header *header, const sfti_header_row *row);
void sfti_header_trigger(sfti_header *header, const sfti_header_row *row);
void sfti_header_claim(sfti_header *header, const sfti_header_row *row); /* word: algo */
void sfti_header_links(sfti_header *header, const sfti_header_row *row);
void sfti_header_date(sfti_header *header, const sfti_header_row *row);
void sfti_header_size(sfti_header *header, const sfti_header_row *row); /* resolution */
void sfti_header_prediction(sfti_header *header, const sfti_header_row *row);
void sfti_header_preview(sfti_header *header, const sfti_header_row *row);
void sfti_header_spec(sfti_header *header, const sfti_header_row *row); /* architecture id */
void sfti_header_walk(sfti_header *header, const sfti_header_row *row);
void sfti_header_private(sfti_header *header, const sfti_header_row *row); /* word: what */

/* A preview of base64 text, "header:KEY" or "header:KEY:/0". */
void sfti_info_preview(sft_info *info, sft_span base64, sft_span source);
/* What a declared architecture of trainers says: architecture, variant, base_model. */
void sfti_info_declared_base(sft_info *info, const char *architecture, sft_span text,
                             sft_span source, int trust);
/* The last part of a path ("a/b.safetensors"), for texts that are absolute paths. */
sft_span sfti_leaf_name(sft_span text);

#endif
