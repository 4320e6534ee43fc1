#include_next <fcntl.h>

#ifndef SHIM_FCNTL
#define SHIM_FCNTL

#undef O_PATH
#undef O_TMPFILE
#undef O_DIRECT
#define F_PREALLOCATE 42
#define F_RDADVISE 44
#define F_RDAHEAD 45
#define F_NOCACHE 48
#define F_FULLFSYNC 51
#define F_ALLOCATECONTIG 2
#define F_ALLOCATEALL 4
#define F_PEOFPOSMODE 3

typedef struct fstore {
    unsigned fst_flags;
    int fst_posmode;
    off_t fst_offset, fst_length, fst_bytesalloc;
} fstore_t;

struct radvisory {
    off_t ra_offset;
    int ra_count;
};

int shim_fcntl(int fd, int command, ...);
#define fcntl shim_fcntl

#endif
