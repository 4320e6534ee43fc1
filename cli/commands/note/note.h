/* note: one's own facts of models, in NAME.own.json. */
#ifndef CLI_NOTE_H
#define CLI_NOTE_H

#include "support/models.h"

#define NOTE_SUFFIX ".own.json"
#define NOTE_WEIGHTS "weights" /* the digest of the model's tensors, and how many bytes they have */
#define NOTE_BYTES "weights_bytes"
#define NOTE_TEXT_MOST ((uint64_t)1 << 20)
#define NOTE_WORDS_MOST 256 /* of one list */

/* Which facts there are, and how they are given. */
typedef enum note_kind { NOTE_TEXT, NOTE_LIST, NOTE_NUMBER, NOTE_FLAG } note_kind;
typedef struct note_field {
    const char *name;
    note_kind kind;
    double least, most;       /* of a number */
    const char *fact, *items; /* what is known from others, for += of a list: a path of the
                                 result, and the member of its items or NULL */
} note_field;
#define NOTE_FIELDS 8
extern const note_field note_fields[NOTE_FIELDS];

/* One of the words behind the models: words=a,b tags+=c rating=4 favourite weight= . */
typedef struct note_change {
    const note_field *field;
    char how;       /* '=', '+' or '-' */
    sft_span value; /* empty with '=': the fact goes */
} note_change;

/* Whether a word is one, or was to be; an error then. */
bool note_is_change(const char *word);
sft_code note_change_read(const char *word, note_change *out, sft_error *err);

/* The object that a note becomes: `old` is what is there, or empty; root what is known of the
 * model; digest of its weights, which have so many bytes, or NULL. What others wrote stays. */
sft_code note_text(cli *c, sft_span old, const sft_node *root, const note_change *changes,
                   size_t count, const char *digest, uint64_t bytes, sft_buffer *out,
                   sft_error *err);

/* --adopt: notes without a model go to the models of the same weights. */
void note_adopt(cli *c, char **operands, size_t count);

#endif
