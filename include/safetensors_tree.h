/* Results as trees: the facts of a model, and what verification, garbage collection, compaction
 * or comparison found. The JSON of docs/json.md is a rendering of the same tree, with the same
 * members under the same keys, so that a program need not parse text.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_TREE is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. A tree that has been filled is immutable. */
#ifndef SFT_SAFETENSORS_TREE_H
#define SFT_SAFETENSORS_TREE_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_TREE 1

typedef enum sft_node_type {
    SFT_NODE_NULL = 0, /* not known */
    SFT_NODE_BOOL,
    SFT_NODE_NUMBER,
    SFT_NODE_TEXT,
    SFT_NODE_LIST,
    SFT_NODE_OBJECT
} sft_node_type;

/* A value. Allocated by the library only; lives as long as its tree. Members may be appended.
 * @since 0.2 */
typedef struct sft_node {
    const struct sft_node *parent, *first, *next; /* NULL: none */
    sft_node_type type;
    sft_span key;  /* in an object; else empty */
    sft_span text; /* TEXT: as it is, not escaped; NUMBER and BOOL: as JSON spells them;
                      else empty */
} sft_node;

typedef struct sft_tree sft_tree;

/* Create an empty tree, for a function that fills it. *alloc is copied; its ctx must outlive the
 * tree. Free with sft_tree_free. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_tree_new(const sft_allocator *alloc, sft_tree **out,
                                            sft_error *err);
/* The outermost value, an object; NULL if the tree is empty. @since 0.2 */
SFT_API const sft_node *sft_tree_root(const sft_tree *tree);
/* Free a tree and its nodes. NULL is ignored. @since 0.2 */
SFT_API void sft_tree_free(sft_tree *tree);

/* A member of an object; NULL if there is none, or if node is NULL or not an object. Cost: one
 * comparison a member. @since 0.2 */
SFT_API const sft_node *sft_node_get(const sft_node *node, const char *key);
/* The same along keys separated by dots: "training.base.file". @since 0.2 */
SFT_API const sft_node *sft_node_find(const sft_node *node, const char *path);
/* The text of the scalar at that path ("" is the node itself); empty for null, lists, objects
 * and what is absent. A fact, which is an object with the member "value", stands for its value.
 * @since 0.2 */
SFT_API sft_span sft_node_text(const sft_node *node, const char *path);
/* The same as a whole number of at most 19 digits; if it is not one, false, and *out is 0.
 * @since 0.2 */
SFT_API bool sft_node_uint(const sft_node *node, const char *path, uint64_t *out);
/* Whether the value there is true; false for everything else. @since 0.2 */
SFT_API bool sft_node_true(const sft_node *node, const char *path);
/* Number of values directly inside a list or object; 0 for anything else and for NULL.
 * @since 0.2 */
SFT_API size_t sft_node_count(const sft_node *node);

/* Whether a node is written, omitted, or written with some of its contents. @since 0.2 */
typedef enum sft_node_keep { SFT_NODE_DROP = 0, SFT_NODE_SOME, SFT_NODE_ALL } sft_node_keep;

/* Write a node and its contents as compact JSON to the sink, which stays open, from offset on;
 * *end, if not NULL, is the offset after the last byte. keep(ctx, node) decides for each node
 * that is reached; NULL keeps all. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_node_json(const sft_node *node,
                                             sft_node_keep (*keep)(void *ctx,
                                                                   const sft_node *node),
                                             void *ctx, sft_sink *sink, uint64_t offset,
                                             uint64_t *end, sft_error *err);

/* Fill an empty tree with the facts of the headers, as in sft_set_json: all of those of one set,
 * sums for several. Metadata values longer than cut bytes are cut; 0 cuts none. With
 * SFT_NO_METADATA `metadata` is omitted, whose nodes would take more memory than the header. The
 * tree does not refer to the sets. After a failure it can only be freed. @since 0.2 */
#define SFT_NO_METADATA (UINT64_MAX - 1)
typedef struct sft_set sft_set; /* safetensors_set.h */
SFT_API SFT_NODISCARD sft_code sft_sets_tree(const sft_set *const *sets, size_t count,
                                             const char *path, uint64_t cut, sft_tree *tree,
                                             sft_error *err);
/* Fill an empty tree with what sft_diff_json writes. The tree does not refer to the comparison.
 * @since 0.2 */
typedef struct sft_diff sft_diff; /* safetensors_diff.h */
SFT_API SFT_NODISCARD sft_code sft_diff_tree(const sft_diff *diff, const char *path,
                                             const char *other, sft_tree *tree, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
