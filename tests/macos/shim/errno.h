#include_next <errno.h>

/* Another number than EOPNOTSUPP, as on macOS. */
#undef ENOTSUP
#define ENOTSUP 45
