#include "support/cli.h"
#include "faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MOST 32

_Noreturn void fault_die(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

static size_t keep_output(int fd, char *buffer, size_t size, bool *overflow) {
    size_t len;
    const void *bytes = os_fake_output(fd, &len);
    if (len > size) {
        *overflow = true;
        return 0;
    }
    memcpy(buffer, bytes, len);
    return len;
}

int fault_command(const char *line) {
    static char words[512];
    char *argv[WORDS_MOST + 1] = { 0 };
    int argc = 0;
    fault_need(strlen(line) < sizeof words);
    memcpy(words, line, strlen(line) + 1);
    for (char *at = words; at && argc < WORDS_MOST; argc++) {
        argv[argc] = at;
        at = strchr(at, ' ');
        if (at) *at++ = '\0';
    }
    return sft_cli_main(argc, argv);
}

void fault_run(const fault_scene *scene, fault_seen *seen) {
    seen->status = fault_command(scene->line);
    seen->len = keep_output(1, seen->text, sizeof seen->text - 1, &seen->overflow);
    seen->text[seen->len] = '\0';
    seen->err_len = keep_output(2, seen->err_text, sizeof seen->err_text - 1, &seen->overflow);
    seen->err_text[seen->err_len] = '\0';
}
