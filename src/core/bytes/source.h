/* Sources the library opens itself, and what reader, sinks and sources share. */
#ifndef SFTI_SOURCE_H
#define SFTI_SOURCE_H

#include "os/io.h"
#include "safetensors.h"

/* A descriptor of a path. beneath NULL: sfti_os_open_read or, unless `how` follows links,
 * sfti_os_open_no_link. Else the path
 * begins with that folder, and the rest is opened beneath it: SFT_INDEX_PATH or, of a link
 * that `how` does not follow, SFT_IS_LINK. info, if given, becomes what was opened. */
sft_code sfti_open_beneath(const char *path, const char *beneath, os_beneath how, int *fd,
                           os_info *info, sft_error *err);

/* Reads of a path's file begin apart, as sfti_os_read_apart has it: a header and what is picked by
 * it are read exactly. From a long read on, or several that follow one another, the system reads
 * ahead as it does by itself. */
#define SFTI_READ_LONG ((uint64_t)128 << 10)

/* What is read next is small and lies apart again. Of no use to other sources. */
void sfti_source_apart(const sft_source *source);

/* Open a path as a source that owns its descriptor (close closes it and frees), by the alloc,
 * which is not NULL, beneath, files and wait of how.
 *   regular file              positioned reads, size known, safe for many threads
 *   pipe, character device    forward reads, SFT_SIZE_UNKNOWN; beneath: SFT_IO_NOT_FILE
 *   folder                    SFT_IO_NOT_FILE
 *   missing                   SFT_NOT_FOUND
 *   anything else the system refuses: SFT_IO_OPEN
 *   claimed by files          as files opens it; of *info only kind OS_OTHER and size are set
 * *fd is the descriptor, for mapping, or -1; it stays the source's. *info is what it is.
 * Either may be NULL. alloc is copied. On failure *out is zeroed. */
sft_code sfti_source_open(const char *path, const sft_open_options *how, sft_source *out, int *fd,
                          os_info *info, sft_error *err);
/* sft_source_fd, whose reads ask wait (NULL: none of their own) while they wait. */
sft_code sfti_source_fd(int fd, const sft_allocator *alloc, const sft_wait *wait, sft_source *out,
                        sft_error *err);

/* Map the first `size` bytes of a descriptor: a source with base set, of a file with that mode
 * (0: not known). Writing through
 * base is allowed if writable_private, and stays in this map. close unmaps and frees;
 * the descriptor stays the caller's and may be closed at once. size 0 gives a source
 * with a non-NULL base and no map. SFT_IO_MAP when the system refuses,
 * SFT_ADDRESS_SPACE when this host cannot address so much. */
sft_code sfti_source_map(int fd, uint64_t size, bool writable_private, uint32_t mode,
                         const sft_allocator *alloc, sft_source *out, sft_error *err);

/* Exactly len bytes, or SFT_IO_SHRUNK. This and sft_source_read are the ways to read any source:
 * they use base where there is one and ask read for nothing beyond a known size, on which the
 * memory source relies. */
sft_code sfti_source_all(const sft_source *source, uint64_t offset, void *into, size_t len,
                         sft_error *err);

/* Whether it is of sft_source_memory: a map also has a base, but its file may shrink. */
bool sfti_source_is_memory(const sft_source *source);
/* Copies bytes of memory past the processor's caches, which saves reading what is overwritten:
 * for more than the caches hold. False, and nothing is copied: not memory (a map is not), or
 * this processor has no way. */
bool sfti_source_stream(const sft_source *source, uint64_t offset, void *into, size_t len);

/* Whether it can be read. */
bool sfti_source_usable(const sft_source *source);

/* Copy count runs of len bytes at those offsets, packed: by the system, out of a map that nobody
 * else reads, for less than a read each. Returns how many, from the first on: fewer, and no signal,
 * if the file has become shorter; 0 if this source or system cannot. */
size_t sfti_source_gather(const sft_source *source, const uint64_t *offsets, size_t count,
                          size_t len, void *into);

/* The file in memory, in a map that it keeps, if it has `end` bytes now; NULL if not, or if this
 * source or system cannot. Whoever reads there is killed by SIGBUS if the file is cut meanwhile. */
const char *sfti_source_mapped(const sft_source *source, uint64_t end);

/* To be called before pages of sfti_source_gather that lie apart: those that are not in memory are
 * brought in together, and no others. Offsets rise. */
void sfti_source_soon(const sft_source *source, const uint64_t *offsets, size_t count, size_t len);

/* The descriptor behind a source that is read by position, or -1. */
int sfti_source_descriptor(const sft_source *source);
/* The same, for long reads. */
int sfti_source_streamed(const sft_source *source);

/* Hand bytes [begin, begin + len) of a descriptor to a sink at `at` within the system, up to
 * *put of them. False, and nothing is done, where the sink has no descriptor of its own or
 * the system does not copy; whatever the reason, reading and writing then tells. */
bool sfti_path_pass(const sft_sink *sink, uint64_t at, int from, uint64_t begin, uint64_t len,
                    uint64_t *put);
/* The same by sharing blocks, all of len or nothing; only of a path sink, before its bytes
 * are written there. */
bool sfti_path_clone(const sft_sink *sink, uint64_t at, int from, uint64_t begin, uint64_t len);
bool sfti_fd_pass(const sft_sink *sink, uint64_t at, int from, uint64_t begin, uint64_t len,
                  uint64_t *put);

/* Copy [begin, end) of a source into a sink at `at`, neither of which is finished or closed;
 * end SFT_SIZE_UNKNOWN: to the end of the source. Within the system where it can be, else
 * through memory from alloc. Ticks the job: done of end - begin. */
sft_code sfti_copy_into(const sft_source *from, uint64_t begin, uint64_t end,
                        const sft_sink *to, uint64_t at, const sft_allocator *alloc,
                        const sft_job *job, sft_error *err);

#endif
