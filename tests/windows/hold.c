/* Keeps a file as another program might have it, until standard input ends.
 *
 *   hold HOW FILE
 *
 * HOW: open (for reading, as we open), shut (no FILE_SHARE_DELETE, as most programs open),
 * map, map-shut (the same, mapped), alone (nobody else may open it), lock (a locked byte of the
 * data). Says "held"; at the end the first bytes that it still sees, in hexadecimal.
 *
 *   hold identity FILE
 *
 * prints the two numbers by which os_info tells the file from others. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

static const struct how {
    const char *name;
    DWORD share;
    bool map, lock;
} hows[] = {
    { "open", FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, false, false },
    { "shut", FILE_SHARE_READ | FILE_SHARE_WRITE, false, false },
    { "map", FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, true, false },
    { "map-shut", FILE_SHARE_READ | FILE_SHARE_WRITE, true, false },
    { "alone", 0, false, false },
    { "identity", FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, false, false },
    { "lock", FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, false, true },
};

/* As info_identity of src/core/os/os_win32.c has them. */
static bool identity(HANDLE file) {
    FILE_ID_INFO id;
    BY_HANDLE_FILE_INFORMATION old;
    uint64_t device, half[2];
    if (GetFileInformationByHandleEx(file, FileIdInfo, &id, sizeof id)) {
        memcpy(half, &id.FileId, sizeof half);
        device = id.VolumeSerialNumber;
        half[0] ^= half[1] * UINT64_C(0x9E3779B97F4A7C15);
    } else if (GetFileInformationByHandle(file, &old)) {
        device = old.dwVolumeSerialNumber;
        half[0] = (uint64_t)old.nFileIndexHigh << 32 | old.nFileIndexLow;
    } else return false;
    return printf("%" PRIu64 " %" PRIu64 "\n", device, half[0]) > 0;
}

static int fails(const char *what) {
    fprintf(stderr, "hold: %s: error %lu\n", what, GetLastError());
    return 1;
}

int main(int argc, char **argv) {
    unsigned char bytes[16] = { 0 };
    wchar_t path[4096];
    const struct how *how = hows, *end = hows + sizeof hows / sizeof *hows;
    void *view = NULL;
    DWORD got;
    while (argc == 3 && how < end && strcmp(how->name, argv[1]) != 0) how++;
    if (argc != 3 || how == end) return fails("usage: hold HOW FILE");
    if (!MultiByteToWideChar(CP_UTF8, 0, argv[2], -1, path, 4096)) return fails("name");
    HANDLE file = CreateFileW(path, GENERIC_READ, how->share, NULL, OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE) return fails("open");
    if (strcmp(how->name, "identity") == 0) return identity(file) ? 0 : fails("identity");
    if (how->lock && !LockFile(file, 8, 0, 1, 0)) return fails("lock");
    if (how->map) {
        HANDLE section = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
        view = section ? MapViewOfFile(section, FILE_MAP_READ, 0, 0, 0) : NULL;
        if (!view) return fails("map");
        CloseHandle(section);
    }
    puts("held");
    fflush(stdout);
    (void)getchar();
    if (view) memcpy(bytes, view, sizeof bytes);
    else if (!ReadFile(file, bytes, sizeof bytes, &got, NULL) && !how->lock) return fails("read");
    for (size_t i = 0; i < sizeof bytes; i++) printf("%02x", bytes[i]);
    puts("");
    return 0;
}
