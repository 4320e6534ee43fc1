/* Which versions of CivitAI the files of a folder are, for --updates. */
#ifndef CLI_INFO_HAVE_H
#define CLI_INFO_HAVE_H

#include "commands/info/online.h"

/* The path of another file in the model's folder that is this version (as the server tells of it):
 * by the ids or the SHA-256 that a sidecar records, else, of one of its size, by its own SHA-256.
 * In the model's arena; empty: none is known. */
sft_span cli_have_version(cli_online *online, cli_model *model, uint64_t id, sft_span version);
void cli_have_free(cli_online *online);

#endif
