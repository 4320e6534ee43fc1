#include_next <unistd.h>

#ifndef SHIM_UNISTD
#define SHIM_UNISTD

int shim_fsync(int fd);
off_t shim_lseek(int fd, off_t at, int whence);
#define fsync shim_fsync
#define lseek shim_lseek
/* Elsewhere or not at all on macOS. */
#define fdatasync shim_has_no_fdatasync
#define copy_file_range shim_has_no_copy_file_range
#define syscall shim_has_no_syscall

#endif
