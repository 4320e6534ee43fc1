/* Files of URLs: what they are opened by, and the Remote object over it. */
#ifndef PYSFT_REMOTE_H
#define PYSFT_REMOTE_H

#include "core.h"

#include "safetensors_remote.h"

/* What a Remote is made of. References are borrowed; NULL: none. */
typedef struct pysft_remote_options {
    sft_remote_options options; /* without transport and callbacks */
    PyObject *token;            /* str: of the Hub, instead of the environment's */
    PyObject *on_exchange;
} pysft_remote_options;
pysft_remote *pysft_remote_new(pysft_state *state, const pysft_remote_options *given);
sft_remote *pysft_remote_of(const pysft_remote *remote);
/* Whether this process made it, rather than its parent. */
bool pysft_remote_is_ours(const pysft_remote *remote);
/* Calls a function without the GIL, to close what uses a remote; not in a child of the process
 * that made it, whose threads and connections are not the child's, nor once the interpreter has
 * ended. */
void pysft_remote_run(const pysft_remote *remote, void (*function)(void *), void *ctx);
/* For tp_traverse of the one holder. */
int pysft_remote_visit(const pysft_remote *remote, visitproc visit, void *arg);

/* That by which paths are opened: given to use(), or made now; a new hold. NULL with an
 * exception. */
pysft_remote *pysft_remote_default(pysft_state *state);

/* New dict of a claim. */
PyObject *pysft_claim_dict(const sft_remote_claim *claim);

/* A transport written in Python (_remote.Transport, transport.c). Close it with its table. 0 or
 * -1. */
int pysft_transport_python(sft_transport *out);

#endif
