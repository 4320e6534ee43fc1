/* A remote file as a source. */
#ifndef SFTI_REMOTE_SOURCE_H
#define SFTI_REMOTE_SOURCE_H

#include "remote/remote.h"

/* Ask for the beginning of the file of a name; or open it on this machine, if it is there. go_on:
 * see sfti_fetch. */
sft_code sfti_remote_source(sft_remote *remote, const char *name, bool (*go_on)(void *ctx),
                            void *go_on_ctx, sft_source *out, sft_remote_claim *claim,
                            sft_error *err);

#endif
