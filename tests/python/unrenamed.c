/* LD_PRELOAD: a file system that renames and links no file, as mounted object stores. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

int rename(const char *from, const char *to) {
    (void)from, (void)to;
    errno = EOPNOTSUPP;
    return -1;
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    (void)from_folder, (void)from, (void)to_folder, (void)to, (void)flags;
    errno = EOPNOTSUPP;
    return -1;
}

/* renameat2 is called by its number. */
long syscall(long number, ...) {
    long value[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) value[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_renameat2) {
        errno = EOPNOTSUPP;
        return -1;
    }
    register long r10 __asm__("r10") = value[3];
    register long r8 __asm__("r8") = value[4];
    register long r9 __asm__("r9") = value[5];
    long done;
    __asm__ volatile("syscall" : "=a"(done) : "a"(number), "D"(value[0]), "S"(value[1]),
                     "d"(value[2]), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    if (done >= 0 || done < -4095) return done;
    errno = (int)-done;
    return -1;
}
