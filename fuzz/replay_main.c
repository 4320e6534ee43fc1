/* Runs a harness over files and folders without libFuzzer: any compiler, any machine. */
#include "fuzz.h"

#include <dirent.h>
#include <string.h>

static unsigned long replayed;

static int replay_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return 1;
    size_t cap = 1 << 16, len = 0, got;
    uint8_t *data = malloc(cap);
    while (data && (got = fread(data + len, 1, cap - len, f)) > 0) {
        len += got;
        if (len < cap) continue;
        uint8_t *more = realloc(data, cap *= 2);
        if (!more) free(data);
        data = more;
    }
    fclose(f);
    if (!data) return 1;
    /* Exactly len bytes, so that a read past the end is seen by the tools. */
    uint8_t *exact = malloc(len ? len : 1);
    if (exact) {
        memcpy(exact, data, len);
        LLVMFuzzerTestOneInput(exact, len);
        replayed++;
    }
    free(exact);
    free(data);
    return !exact;
}

static int replay_path(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return replay_file(path);
    int bad = 0;
    for (struct dirent *e; (e = readdir(folder));) {
        char below[4096];
        if (e->d_name[0] == '.') continue;
        int n = snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        bad |= n < 0 || (size_t)n >= sizeof below || replay_path(below);
    }
    closedir(folder);
    return bad;
}

int main(int count, char **arguments) {
    int bad = 0;
    for (int i = 1; i < count; i++) {
        if (replay_path(arguments[i])) {
            fprintf(stderr, "%s: cannot read\n", arguments[i]);
            bad = 1;
        }
    }
    printf("%lu inputs replayed\n", replayed);
    return bad;
}
