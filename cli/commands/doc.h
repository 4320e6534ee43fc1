/* A result object of the library as a tree: what info and find pick their facts from. */
#ifndef CLI_DOC_H
#define CLI_DOC_H

#include "base/json.h"

typedef enum cli_keep { CLI_DROP = 0, CLI_KEEP_SOME, CLI_KEEP_ALL } cli_keep;

typedef struct cli_node {
    struct cli_node *parent, *first, *last, *next;
    sfti_json_type type; /* OBJECT, ARRAY, or of a scalar */
    sft_span key;        /* in an object */
    sft_span text;       /* strings unescaped; else as spelled, objects and arrays whole */
    cli_keep keep;
    size_t at;          /* of the value in the text */
    /* Not NULL: the members are not read yet, for there may be millions of them. Those that
     * are asked for come into this arena, and stay. */
    sfti_arena *unread;
} cli_node;

/* The tree of a JSON text, which must live as long, as must the arena; NULL when memory ran out
 * (or it is no JSON). Of metadata only the members that are asked for get nodes. */
cli_node *cli_doc_parse(sft_span json, sfti_arena *arena);
/* Member of an object; NULL when there is none, or node is NULL or no object. */
const cli_node *cli_doc_get(const cli_node *node, const char *key);
const cli_node *cli_doc_member(const cli_node *node, sft_span key);
/* The same along "training.base.file". */
const cli_node *cli_doc_at(const cli_node *node, const char *path);
/* Text of a scalar at that path; empty for null, containers and what is not there. A fact
 * ({"value":...}) stands for its value. */
sft_span cli_doc_text(const cli_node *node, const char *path);
/* A whole number; false if it is none. */
bool cli_doc_uint(const cli_node *node, const char *path, uint64_t *out);
/* Members or elements. */
size_t cli_doc_count(const cli_node *node);

/* Keep the node with all in it, and so much of what it is in. */
void cli_doc_keep(cli_node *node);
/* What is kept, as compact JSON. */
void cli_doc_write(const cli_node *node, sfti_json_writer *w);

#endif
