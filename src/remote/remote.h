/* A remote: what all its files share. */
#ifndef SFTI_REMOTE_H
#define SFTI_REMOTE_H

#include "base/error.h"
#include "os/os.h"
#include "remote/scheme.h"
#include "safetensors_io.h"
#include "safetensors_remote.h"

struct sft_remote {
    sft_allocator alloc;
    uint64_t process; /* that opened it */
    sft_remote_options options; /* texts are the arena's; connections and times are filled in */
    sfti_arena arena;           /* guarded by mutex once the remote is open */
    os_mutex mutex;             /* of all below but transport and what is fixed when opened */
    os_mutex log;               /* one exchange is told at a time */
    sft_transport transport;    /* table NULL until it is needed */
    bool own_transport;
    const char *http_proxy, *https_proxy, *no_proxy, *ca_file; /* or NULL */
    sft_remote_sums sums;
    void *state[SFTI_SCHEME_COUNT];
    const sfti_scheme *schemes[SFTI_SCHEME_COUNT]; /* fixed when opened */
    struct sfti_named *named;   /* names.c */
    struct sfti_pool *pool;     /* pool.c: threads that fetch */
    struct sfti_blocks *blocks; /* blocks.c */
    struct sfti_opened *opened; /* opened.c: heads that were fetched ahead, claims */
    sft_files files;
};

/* A variable of the environment, or NULL; while the remote is opened. Empty ones are none. */
const char *sfti_remote_environment(const sft_remote *remote, const char *name);
/* The same as of yes-or-no variables: 1, on, yes, true in any case. */
bool sfti_remote_environment_is(const sft_remote *remote, const char *name);
/* A small text file (a token, a configuration), at most `most` bytes, in the arena; data NULL if
 * there is none or it cannot be read. */
sft_span sfti_remote_small_file(sfti_arena *arena, const char *path, size_t most);

/* What a name stands for: the URL with its secrets. Valid until the remote is closed; NULL when out
 * of memory. */
const char *sfti_remote_url(sft_remote *remote, const char *name);

/* SFT_BAD_ARGUMENT in a child of fork(): the threads that would wake it are its parent's, and
 * mutexes may be held for ever. So it is asked before any of them is locked. */
sft_code sfti_remote_check_process(const sft_remote *remote, sft_error *err);

sft_code sfti_named_new(sft_remote *remote, sft_error *err);

/* The scheme that a text begins with; false: none of ours. */
bool sfti_scheme_of(const char *text, sfti_scheme_id *out);
/* Its arena is the caller's to free, also after a failure. */
sft_code sfti_remote_target_open(sft_remote *remote, const char *name, sfti_target *out,
                                 sft_error *err);

#endif
