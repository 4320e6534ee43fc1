/* The cache of huggingface_hub:
 *
 *     CACHE/models--ORG--NAME/snapshots/REVISION/[FOLDERS/]FILE -> [../]../../blobs/ETAG
 *     CACHE/models--ORG--NAME/blobs/ETAG                        a file, or (shared blobs)
 *                                                               -> ../../blobs/HH/DIGEST
 */
#ifndef SFTI_HUB_H
#define SFTI_HUB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a link at `link` (absolute, no part of it a link, "." or "..") that says `target`
 * is one of those two arrows. Then out is the folder that holds "blobs", and out + *name what
 * lies beneath it: "blobs/ETAG" or "blobs/HH/DIGEST", of plain parts. */
bool sfti_hub_blob(const char *link, const char *target, char *out, size_t cap, size_t *name);

#endif
