/* What commands take of memory for hostile headers: the peak of the process beyond that for a
 * model of one tensor, over the bytes of the headers it reads. Takes the command and the size in
 * MB (default 12); prints a row for each command, then "N passed, N failed". */
#define _GNU_SOURCE
#include "headers.h"

#include <stdbool.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 12
#define SLACK 2.0 /* MB: blocks and windows of a fixed size, and what malloc keeps */
#define LABEL_SLACK 67.1

static unsigned passed, failed;
static char folder[64] = "/tmp/sft-memory-XXXXXX";

/* ── Headers ── */

typedef struct memory_header {
    const char *name;
    header_maker make;
    bool compat; /* valid at that level only */
} memory_header;

static const memory_header headers[] = {
    { "objects", make_empty_objects, false }, { "reversed", make_reversed, false },
    { "escapes", make_escaped_names, false }, { "pairs", make_pairs, false },
    { "same key", make_same_key, true },      { "value", make_value, false },
    { "modules", make_modules, false },       { "long names", make_long_names, false },
    { "tags", make_tag_counts, false },             { "fields", make_fields, false },
    { "arrays", make_empty_arrays, true },    { "same name", make_same_name, true },
    { "dims", make_dims, true },              { "no entries", make_no_entries, true },
};
#define HEADERS (sizeof headers / sizeof *headers)

static void write_model(const char *name, const text *t) {
    char path[128];
    unsigned char length[8];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)t->len >> 8 * i);
    bool fine = file && fwrite(length, 1, 8, file) == 8
                && fwrite(t->at, 1, t->len, file) == t->len && fclose(file) == 0
                && truncate(path, (off_t)(8 + t->len + t->data)) == 0;
    if (fine) return;
    perror(path);
    exit(3);
}

static void make_small(text *t, size_t bytes) {
    (void)bytes;
    text_str(t, "{\"s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}");
    t->data = 1;
}

/* What this program itself had would count for the commands too. Returns the header's MB. */
static double write_in_child(header_maker make, const char *name, size_t bytes) {
    char path[128];
    unsigned char length[8];
    int status = 0;
    uint64_t len = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        text t = { NULL, 0, 0, 0 };
        make(&t, bytes);
        while (t.len % 8) text_str(&t, " ");
        write_model(name, &t);
        _exit(0);
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status) exit(3);
    FILE *file = fopen(path, "rb");
    if (!file || fread(length, 1, 8, file) != 8) exit(3);
    fclose(file);
    for (int i = 8; i-- > 0;) len = len << 8 | length[i];
    return (double)len / 1e6;
}

/* ── Commands ── */

/* docs/design.md tells the bound. A label may also take LABEL_SLACK for tables of words.
 *
 * The words after the program; "M" is the model, "S" a small one, "O" a path to be written, and
 * "C" a copy of the model. times: the header's bytes that may be taken for each file. */
typedef struct memory_command {
    double times;
    const char *words[WORDS];
} memory_command;

static const memory_command commands[] = {
    { 6, { "info", "M" } },
    { 6, { "info", "--json", "M" } },
    { 6, { "info", "--full", "--json", "M" } },
    { 6, { "ls", "M" } },
    { 6, { "ls", "--json", "M" } },
    { 6, { "ls", "--sort", "name", "M" } },
    { 6, { "check", "--level", "compat", "M" } },
    { 6, { "check", "M" } },
    { 6, { "check", "--level", "strict", "M" } },
    { 6, { "check", "--level", "strict", "--explain", "M" } },
    { 6, { "check", "--level", "strict", "--json", "M" } },
    { 6, { "repair", "M", "-o", "O" } },
    { 6, { "diff", "M", "S" } },
    { 6, { "diff", "M", "C" } },
    { 6, { "diff", "--json", "M", "S" } },
    { 6, { "meta", "list", "M" } },
    { 6, { "meta", "list", "--json", "M" } },
    { 6, { "meta", "set", "C", "a key", "a value" } },
    { 6, { "meta", "set", "M", "a key", "a value", "-o", "O" } },
    { 6, { "meta", "scrub", "C" } },
    { 6, { "rename", "C", "--regex", "s/^a/qq/" } },
    { 6, { "rename", "C", "--add-prefix", "q" } },
    { 6, { "hash", "--algo", "all", "M" } },
    { 6, { "convert", "M", "--dtype", "F16", "-o", "O" } },
    { 6, { "select", "M", "--keep", "*", "--copy", "-o", "O" } },
    { 6, { "split", "M", "-o", "O" } },
    { 6, { "split", "M", "--count", "2", "-o", "O" } },
    { 6, { "merge", "M", "S", "-o", "O" } },
    { 6, { "dup", "M", "S" } },
    { 6, { "find", "kind=lora", "M" } },
    { 6, { "cat", "M", "a" } },
    { 6, { "catalog", "--model", "M", "-o", "O" } },
    { 6, { "catalog", "--model", "M", "--deep", "-o", "O" } },
};
#define COMMANDS (sizeof commands / sizeof *commands)

static void remove_output(void) {
    char text[160];
    snprintf(text, sizeof text, "rm -rf '%s/O' '%s/O.safetensors'", folder, folder);
    if (system(text)) perror(text);
}

static void copy_model(const char *name) {
    char text[256];
    snprintf(text, sizeof text, "cp --sparse=always '%s/%s' '%s/C'", folder, name, folder);
    if (system(text)) perror(text);
}

typedef struct run_result {
    double megabytes;
    int status;
} run_result;

static void in_child(const char *program, const memory_command *c, const char *model) {
    static char paths[WORDS][160];
    char *words[WORDS + 2] = { (char *)(uintptr_t)program };
    int null = open("/dev/null", O_RDWR);
    for (size_t i = 0; i < WORDS && c->words[i]; i++) {
        const char *word = c->words[i], *name = word;
        bool is_path = strlen(word) == 1 && strchr("MSOC", *word);
        if (strcmp(word, "M") == 0) name = model;
        bool folder_out = strcmp(c->words[0], "split") == 0;
        snprintf(paths[i], sizeof paths[i], is_path ? "%s/%s%s" : "%.0s%s%s", folder, name,
                 strcmp(word, "O") == 0 && !folder_out ? ".safetensors" : "");
        words[i + 1] = paths[i];
    }
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    execv(program, words);
    _exit(127);
}

static run_result run_command(const char *program, const memory_command *c, const char *model) {
    struct rusage used;
    int status = 0;
    remove_output();
    for (size_t i = 0; i < WORDS && c->words[i]; i++)
        if (strcmp(c->words[i], "C") == 0) copy_model(model);
    pid_t pid = fork();
    if (pid == 0) in_child(program, c, model);
    if (pid < 0 || wait4(pid, &status, 0, &used) != pid) exit(3);
    run_result r = { (double)used.ru_maxrss / 1024 * 1.048576,
                     WIFEXITED(status) ? WEXITSTATUS(status) : 128 };
    return r;
}

/* ── All ── */

static size_t model_operands(const memory_command *c) {
    size_t count = 0;
    for (size_t i = 0; i < WORDS && c->words[i]; i++)
        count += strcmp(c->words[i], "M") == 0 || strcmp(c->words[i], "C") == 0;
    return count;
}

static bool is_label(const memory_command *c) {
    const char *name = c->words[0];
    return strcmp(name, "info") == 0 || strcmp(name, "find") == 0 || strcmp(name, "catalog") == 0;
}

/* meta set and scrub look at the label when the edit is closed: what info takes is enough. */
static double label_alone(const char *program, const memory_command *c, const char *model) {
    static const memory_command info = { 6, { "info", "M" } };
    if (strcmp(c->words[0], "meta") != 0 || strcmp(c->words[1], "list") == 0) return 0;
    run_result r = run_command(program, &info, model), small = run_command(program, &info, "S");
    return r.megabytes - small.megabytes;
}

static void run_row(const char *program, const memory_command *c, const double *sizes) {
    char title[128] = "";
    double base = run_command(program, c, "S").megabytes;
    for (size_t i = 0; i < WORDS && c->words[i]; i++) {
        strncat(title, c->words[i], sizeof title - strlen(title) - 2);
        strcat(title, " ");
    }
    printf("%-36s %4.1f", title, base);
    for (size_t h = 0; h < HEADERS; h++) {
        run_result r = run_command(program, c, headers[h].name);
        double all = sizes[h] * (double)model_operands(c);
        double cap = c->times * all + (is_label(c) ? LABEL_SLACK : SLACK);
        double alone = label_alone(program, c, headers[h].name) + SLACK;
        if (cap < alone) cap = alone;
        /* What the system keeps varies a little: a second time must fit, or it does not. */
        if (r.status <= 2 && r.megabytes - base > cap) r = run_command(program, c, headers[h].name);
        bool fine = r.status <= 2 && r.megabytes - base <= cap;
        double times = (r.megabytes - base) / all;
        printf(" %6.2f%c%d", times, fine ? '/' : '!', r.status);
        fflush(stdout);
        if (fine) passed++;
        else failed++;
    }
    printf("\n");
}

int main(int argc, char **argv) {
    double sizes[HEADERS];
    size_t bytes = (size_t)(argc > 2 ? strtol(argv[2], NULL, 10) : 12) * 1000000;
    if (argc < 2 || bytes == 0 || !mkdtemp(folder)) return 3;
    write_in_child(make_small, "S", 0);
    printf("%-36s base", "");
    for (size_t h = 0; h < HEADERS; h++) {
        sizes[h] = write_in_child(headers[h].make, headers[h].name, bytes);
        printf(" %-8.8s", headers[h].name);
    }
    printf("\n");
    for (size_t i = 0; i < COMMANDS; i++)
        if (argc < 4 || strcmp(argv[3], commands[i].words[0]) == 0)
            run_row(argv[1], &commands[i], sizes);
    char text[128];
    snprintf(text, sizeof text, "rm -rf '%s'", folder);
    if (system(text)) perror(text);
    printf("%u passed, %u failed\n", passed, failed);
    return failed ? 1 : 0;
}
