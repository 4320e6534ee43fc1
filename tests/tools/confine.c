/* Run a command that may compute and read, and not much else.
 *
 *     confine FOLDER SECONDS MEGABYTES COMMAND...
 *
 * It is killed by SIGSYS if it starts a program or a process, opens a socket, or, where FOLDER is
 * "-", opens a file for writing; elsewhere it can write beneath FOLDER only (Landlock, where the
 * kernel has it). SECONDS limit its processor time, MEGABYTES its address space. Exits with 125 if
 * that cannot be set up; its last line on standard error is "confine: N ms", of the processor. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif

#define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, what))
#define LOAD_HIGH(n)                                                                        \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, args[n]) + 4)
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define HAS(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (yes), (no))
/* The system call is the one that was loaded: killed. */
#define NEVER(number) IS((uint32_t)(number), 0, 1), RETURN(SECCOMP_RET_KILL_PROCESS)
/* Of an open, argument n has a bit that means writing: killed. */
#define NO_WRITING(number, n)                                                               \
    IS((uint32_t)(number), 0, 4), LOAD(args[n]), HAS(O_WRONLY | O_RDWR | O_CREAT, 0, 1),    \
        RETURN(SECCOMP_RET_KILL_PROCESS), RETURN(SECCOMP_RET_ALLOW)

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "confine: %s: %s\n", what, strerror(errno));
    _exit(125);
}

/* The one execve that is allowed has its arguments at this address, where nothing is afterwards. */
static void filter(const char **arguments, int writes) {
    uint64_t at = (uint64_t)(uintptr_t)arguments;
    struct sock_filter rules[] = {
        LOAD(arch), IS(ARCH, 1, 0), RETURN(SECCOMP_RET_KILL_PROCESS), LOAD(nr),
        IS(SYS_execve, 0, 6),
        LOAD(args[1]), IS((uint32_t)at, 0, 3), LOAD_HIGH(1), IS((uint32_t)(at >> 32), 0, 1),
        RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_KILL_PROCESS),
        IS(SYS_clone, 0, 4), LOAD(args[0]), HAS(CLONE_THREAD, 1, 0),
        RETURN(SECCOMP_RET_KILL_PROCESS), RETURN(SECCOMP_RET_ALLOW),
#ifdef SYS_clone3
        IS(SYS_clone3, 0, 1), RETURN(SECCOMP_RET_ERRNO | ENOSYS), /* its flags are in memory */
#endif
#ifdef SYS_fork
        NEVER(SYS_fork), NEVER(SYS_vfork),
#endif
        NEVER(SYS_execveat), NEVER(SYS_socket), NEVER(SYS_socketpair), NEVER(SYS_connect),
        NEVER(SYS_bind), NEVER(SYS_ptrace), NEVER(SYS_memfd_create), NEVER(SYS_io_uring_setup),
        NEVER(SYS_mount), NEVER(SYS_kill), NEVER(SYS_process_vm_writev),
        BPF_JUMP(BPF_JMP | BPF_JA, (uint32_t)(writes ? 0 : 1), 0, 0),
        RETURN(SECCOMP_RET_ALLOW),
#ifdef SYS_open
        NO_WRITING(SYS_open, 1), NEVER(SYS_creat), NEVER(SYS_rename), NEVER(SYS_mkdir),
        NEVER(SYS_link), NEVER(SYS_symlink), NEVER(SYS_unlink),
#endif
        NO_WRITING(SYS_openat, 2), NEVER(SYS_renameat2), NEVER(SYS_mkdirat), NEVER(SYS_linkat),
        NEVER(SYS_symlinkat), NEVER(SYS_unlinkat), NEVER(SYS_truncate),
        RETURN(SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { (unsigned short)(sizeof rules / sizeof *rules), rules };
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) fail("seccomp");
}

/* As in <linux/landlock.h>, which older systems lack: all rights to change files. */
#define LANDLOCK_CREATE 444
#define LANDLOCK_ADD 445
#define LANDLOCK_RESTRICT 446
#define CHANGES UINT64_C(0x1ff2) /* but for executing and reading */

struct beneath {
    uint64_t allowed;
    int32_t folder;
} __attribute__((packed));

static void only_beneath(const char *folder) {
    uint64_t handled = CHANGES;
    int rules = (int)syscall(LANDLOCK_CREATE, &handled, sizeof handled, 0);
    if (rules < 0 && (errno == ENOSYS || errno == EOPNOTSUPP)) return;
    if (rules < 0) fail("landlock");
    if (strcmp(folder, "-") != 0) {
        struct beneath beneath = { CHANGES, open(folder, O_PATH | O_CLOEXEC) };
        if (beneath.folder < 0 || syscall(LANDLOCK_ADD, rules, 1, &beneath, 0) != 0) fail(folder);
        close(beneath.folder);
    }
    if (syscall(LANDLOCK_RESTRICT, rules, 0) != 0) fail("landlock");
    close(rules);
}

static void limit(int what, rlim_t most) {
    struct rlimit limits = { most, most };
    if (setrlimit((__rlimit_resource_t)what, &limits) != 0) fail("setrlimit");
}

static void start(char **words) {
    size_t page = 4096, count = 0;
    const char **arguments = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arguments == MAP_FAILED) fail("mmap");
    while (words[4 + count] && count < page / sizeof *arguments) {
        arguments[count] = words[4 + count];
        count++;
    }
    limit(RLIMIT_CPU, (rlim_t)atol(words[2]));
    limit(RLIMIT_CORE, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("prctl");
    only_beneath(words[1]);
    limit(RLIMIT_AS, (rlim_t)atol(words[3]) << 20);
    filter(arguments, strcmp(words[1], "-") != 0);
    syscall(SYS_execve, words[4], arguments, environ);
    fail(words[4]);
}

int main(int argc, char **argv) {
    int status;
    struct rusage used;
    if (argc < 5 || ARCH == 0) {
        fputs("usage: confine FOLDER SECONDS MEGABYTES COMMAND...\n", stderr);
        return 125;
    }
    pid_t child = fork();
    if (child == 0) start(argv);
    if (child < 0 || wait4(child, &status, 0, &used) != child) fail("wait");
    long ms = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000
              + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
    fprintf(stderr, "\nconfine: %ld ms\n", ms);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
