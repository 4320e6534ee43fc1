/* Files that were opened, or will be next. */
#ifndef SFTI_REMOTE_OPENED_H
#define SFTI_REMOTE_OPENED_H

#include "remote/remote.h"

sft_code sfti_opened_new(sft_remote *remote, sft_error *err);
/* Ends what is under way; no other call is. NULL is ignored. */
void sfti_opened_free(struct sfti_opened *opened);

/* Of sft_files_vtable. */
sft_code sfti_opened_open(sft_remote *remote, const char *name, const char *beneath,
                          sft_source *out, sft_error *err);
void sfti_opened_expect(sft_remote *remote, const char *const *names, size_t count,
                        const char *beneath);

#endif
