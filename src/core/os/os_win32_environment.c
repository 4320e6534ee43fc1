/* os.h on Windows: the environment, random bytes, processors. */
#include "os/os_win32.h"

#include <bcrypt.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ── The environment ── */

/* What is asked for stays: a program reads few variables, and the answer must outlive the call. */
typedef struct variable {
    struct variable *next;
    char *value; /* behind the name */
    char name[];
} variable;

static SRWLOCK variable_lock = SRWLOCK_INIT;
static variable *variables;

/* One per name and value. */
static const char *variable_keep(const char *name, const wchar_t *wide) {
    size_t name_len = strlen(name) + 1, len = sfti_os_win_narrow(wide, wcslen(wide), NULL, 0) + 1;
    variable *made = malloc(sizeof *made + name_len + len);
    if (!made) return NULL;
    made->value = made->name + name_len;
    memcpy(made->name, name, name_len);
    (void)sfti_os_win_narrow(wide, wcslen(wide), made->value, len);
    for (const variable *v = variables; v; v = v->next) {
        if (strcmp(v->name, name) != 0 || strcmp(v->value, made->value) != 0) continue;
        free(made);
        return v->value;
    }
    made->next = variables;
    variables = made;
    return made->value;
}

const char *sfti_os_env(const char *name) {
    wchar_t *wide, *text = NULL;
    if (sfti_os_win_wide(name, &wide)) return NULL;
    DWORD room = GetEnvironmentVariableW(wide, NULL, 0);
    if (room > 0) text = malloc(room * sizeof *text);
    DWORD got = text ? GetEnvironmentVariableW(wide, text, room) : 0;
    free(wide);
    if (!text) return NULL;
    text[got < room ? got : 0] = 0; /* it may have grown meanwhile */
    AcquireSRWLockExclusive(&variable_lock);
    const char *value = variable_keep(name, text);
    ReleaseSRWLockExclusive(&variable_lock);
    free(text);
    return value;
}

/* ── The machine ── */

typedef NTSTATUS(WINAPI *random_call)(BCRYPT_ALG_HANDLE algorithm, PUCHAR into, ULONG len,
                                      ULONG flags);

static random_call random_bytes;
static INIT_ONCE random_once = INIT_ONCE_STATIC_INIT;

/* Not linked: of the libraries used it alone is none that Windows takes from its own folder
 * always (KnownDLLs), and one beside the program would be taken. */
static BOOL CALLBACK find_random(PINIT_ONCE once, PVOID ctx, PVOID *out) {
    (void)once, (void)ctx, (void)out;
    HMODULE module = LoadLibraryExW(L"bcrypt.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
    FARPROC found = module ? GetProcAddress(module, "BCryptGenRandom") : NULL;
    if (found) memcpy(&random_bytes, &found, sizeof found);
    return TRUE;
}

int sfti_os_random(void *into, size_t len) {
    (void)InitOnceExecuteOnce(&random_once, find_random, NULL, NULL);
    if (!random_bytes) return EIO;
    NTSTATUS status = random_bytes(NULL, into, (ULONG)len, BCRYPT_USE_SYSTEM_PREFERRED_RNG);
    return status >= 0 ? 0 : EIO;
}

/* The processors of the group that the process runs in, unless it may run in all of several. */
uint32_t sfti_os_cpu_count(void) {
    DWORD_PTR own = 0, all = 0;
    uint32_t count = 0;
    if (GetActiveProcessorGroupCount() > 1) return GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    if (!GetProcessAffinityMask(GetCurrentProcess(), &own, &all)) return 1;
    for (; own; own &= own - 1) count++;
    return count > 0 ? count : 1;
}
