/* Replays the conformance corpus on any machine with a C compiler: no test framework, no
 * Python, no other library. The folder of a file is its verdict (see the corpus' README):
 *   accept      accepted at every level         not-strict   refused at strict
 *   compat-only accepted at compat only         refuse, legacy, foreign   refused at every level
 * usage: replay CORPUS. Prints "N passed, N failed". */
#include "safetensors.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static unsigned passed, failed;

/* The level from which on files of a folder are refused, or -1 for another folder. */
static int refused_from(const char *folder) {
    static const struct {
        const char *folder;
        int level;
    } verdicts[] = { { "refuse", 0 },  { "legacy", 0 },     { "foreign", 0 },
                     { "compat-only", 1 }, { "not-strict", 2 }, { "accept", 3 } };
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
        if (!strcmp(folder, verdicts[i].folder)) return verdicts[i].level;
    return -1;
}

static void judge(const char *path, int from, sft_level level) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    options.level = level;
    sft_file *file;
    sft_error error = SFT_ERROR_INIT;
    sft_code code = sft_open(path, &options, &file, &error);
    bool refused = code != SFT_OK;
    sft_close(file);
    if (refused != ((int)level >= from)) {
        printf("FAILED %s: level %d: %s\n", path, (int)level, refused ? error.message : "accepted");
        failed++;
    } else {
        passed++;
    }
}

static void replay_folder(const char *corpus, const char *folder) {
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/%s", corpus, folder);
    DIR *dir = len > 0 && (size_t)len < sizeof path ? opendir(path) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path + len, sizeof path - (size_t)len, "/%s", e->d_name);
        for (int level = SFT_LEVEL_COMPAT; level <= SFT_LEVEL_STRICT; level++)
            judge(path, refused_from(folder), (sft_level)level);
    }
    if (dir) closedir(dir);
}

int main(int argc, char **argv) {
    DIR *corpus = argc == 2 ? opendir(argv[1]) : NULL;
    if (!corpus) {
        fputs("usage: replay CORPUS\n", stderr);
        return 2;
    }
    for (struct dirent *e; (e = readdir(corpus));)
        if (refused_from(e->d_name) >= 0) replay_folder(argv[1], e->d_name);
    closedir(corpus);
    printf("%u passed, %u failed\n", passed, failed);
    return failed || !passed;
}
