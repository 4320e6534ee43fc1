/* Every command, in process, over a system of which the nth allocation or call fails: the
 * same output as ever, or exit status 2 and a message; never half an answer with a good
 * status. */
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void from_file(const fault_scene *scene) {
    size_t len;
    const void *bytes = fault_model(&len);
    (void)scene;
    os_fake_set_input(OS_FILE, bytes, len);
}

static void from_pipe(const fault_scene *scene) {
    size_t len;
    const void *bytes = fault_model(&len);
    (void)scene;
    os_fake_set_input(OS_PIPE, bytes, len);
}

static void page_from_pipe(const fault_scene *scene) {
    (void)scene;
    os_fake_set_input(OS_PIPE, "<!DOCTYPE html><html>", 21);
}

#define LINE(text) { .command = true, .run = fault_run, .line = "safetensors " text }
/* With a bad file, of which a failure may hide what it really is. */
#define BAD(text) \
    { .command = true, .run = fault_run, .refused = true, .line = "safetensors " text }
#define FED(how, text) \
    { .command = true, .run = fault_run, .set = how, .line = "safetensors " text }

static const fault_scene infos[] = {
    LINE("info /m/a.safetensors"),
    LINE("/m/a.safetensors"),
    LINE("info -v /m/many.safetensors"),
    LINE("info --json /m/a.safetensors"),
    LINE("info --jsonl /m/a.safetensors /m/big.safetensors"),
    BAD("info --json /m/a.safetensors /m/bad.safetensors /m/page.safetensors /m/none"),
    BAD("info /m/a.safetensors /m/bad.safetensors /m/page.safetensors /m/none /m/cut.safetensors"),
    LINE("info /set"),
    LINE("info /set/m.safetensors.index.json"),
    LINE("info --json /set/m.safetensors.index.json"),
    LINE("info --jsonl /set/plain.json"),
    LINE("info /gap/m.safetensors.index.json"),
    LINE("info --json /odd/m.safetensors.index.json"),
    BAD("info /m"),
    LINE("info -r /tree"),
    LINE("info -r --json /tree"),
    LINE("info -r --jsonl --level strict /tree"),
    LINE("info /m/pipe"),
    FED(from_file, "info -"),
    FED(from_pipe, "info -"),
    FED(from_pipe, "info --json -"),
    FED(page_from_pipe, "info -"),
};

static const fault_scene digests[] = {
    LINE("info --hash all /m/a.safetensors"),
    LINE("info --hash sha256 --json --threads 1 /m/a.safetensors"),
    LINE("info --verify --json /m/a.safetensors"),
    LINE("info --hash content,sha256 --json /set/m.safetensors.index.json"),
    LINE("info --hash autov2 -r /tree"),
    LINE("info --hash sha256 --cache /m/cache --json /m/a.safetensors"),
    BAD("info --hash sha256 /m/a.safetensors /m/bad.safetensors /m/none"),
    LINE("find --compute 0123456789 /m/a.safetensors"),
    LINE("find --compute --cache /m/cache --json 0123456789 /set"),
    LINE("find --compute --json 00 /m/a.safetensors"),
};

static const fault_scene lists[] = {
    LINE("ls /m/a.safetensors"),
    LINE("ls -v --color always /m/a.safetensors"),
    LINE("ls --json /m/a.safetensors"),
    LINE("ls --json --sort name /m/many.safetensors"),
    LINE("ls --jsonl /m/many.safetensors"),
    LINE("ls --tsv --sort name /m/many.safetensors"),
    LINE("ls --sort size /m/many.safetensors"),
    LINE("ls --tree /m/many.safetensors"),
    LINE("ls --match *.half /m/a.safetensors /m/big.safetensors"),
    LINE("ls --match nothing /m/a.safetensors"),
    LINE("ls --tsv /set/m.safetensors.index.json"),
    LINE("ls --json --sort name /set/m.safetensors.index.json"),
    LINE("ls --tree /set"),
    LINE("ls -r /tree"),
    LINE("ls -r --tsv /tree"),
    LINE("ls -r --json /tree"),
    LINE("ls -r --jsonl --sort name /tree"),
    LINE("ls /m/twice.safetensors /m/none"),
    LINE("ls --level compat /m/twice.safetensors"),
    FED(from_file, "ls --tsv -"),
    FED(from_pipe, "ls -"),
    FED(from_pipe, "ls --json -"),
    FED(page_from_pipe, "ls --json -"),
};

static const fault_scene checks[] = {
    LINE("check /m/a.safetensors"),
    LINE("check --json /m/a.safetensors"),
    LINE("check --explain /m/a.safetensors"),
    LINE("check --level strict --jsonl /m/many.safetensors"),
    LINE("check --deep /m/a.safetensors"),
    LINE("check --deep --json /m/a.safetensors"),
    LINE("check --deep --explain /m/big.safetensors"),
    LINE("check /m/bad.safetensors"),
    LINE("check --explain /m/bad.safetensors /m/twice.safetensors"),
    LINE("check --json /m/bad.safetensors /m/a.safetensors /m/none /m/page.safetensors"),
    LINE("check --level compat /m/twice.safetensors /m/cut.safetensors"),
    LINE("check /set/m.safetensors.index.json"),
    LINE("check /set/plain.json"),
    LINE("check --deep /set/m.safetensors.index.json"),
    LINE("check --deep --json /set/m.safetensors.index.json"),
    LINE("check --explain /set/m.safetensors.index.json"),
    LINE("check /gap/m.safetensors.index.json"),
    LINE("check --json /gap/m.safetensors.index.json"),
    LINE("check --json /odd/m.safetensors.index.json"),
    LINE("check -r /tree"),
    LINE("check -r --json /tree"),
    LINE("check -r --jsonl --deep /tree"),
    LINE("check -r --explain /tree"),
    FED(from_file, "check -"),
    FED(from_file, "check --deep --json -"),
    FED(from_pipe, "check -"),
    FED(from_pipe, "check --jsonl -"),
    FED(from_pipe, "check --deep -"),
    FED(page_from_pipe, "check -"),
};

static const fault_scene others[] = {
    LINE("cat /m/a.safetensors w"),
    LINE("cat /m/a.safetensors w[::-1,1:]"),
    LINE("cat --as raw /m/a.safetensors w"),
    LINE("cat --as npy /m/a.safetensors b.half"),
    LINE("cat --as npy /m/big.safetensors p[::7,::3]"),
    LINE("cat --as json /m/a.safetensors w"),
    LINE("cat --as json /m/a.safetensors none"),
    LINE("cat --as raw /m/big.safetensors p"),
    LINE("cat /m/a.safetensors nothing"),
    LINE("cat /m/a.safetensors w[9]"),
    LINE("cat /set/m.safetensors.index.json s2.a"),
    LINE("cat /set s1.b"),
    LINE("cat --as json /set/plain.json s0.b"),
    BAD("cat /m/page.safetensors w"),
    LINE("cat - w"),
    LINE("help"),
    LINE("help ls"),
    LINE("help lls"),
    LINE("check --help"),
    LINE("--version"),
    LINE("--help"),
    LINE("__man check"),
    LINE("__completion bash"),
    LINE("nonsense"),
    LINE("ls --tre /m/a.safetensors"),
};

static const fault_scene folders[] = {
    LINE("info /wide"),
    LINE("info --json /wide"),
    LINE("ls --tsv /wide"),
    LINE("ls --json --sort name --match [bw]* /wide"),
    LINE("check /wide"),
    LINE("check --json /wide"),
    LINE("check --deep --level strict /wide"),
    LINE("check --jsonl --deep /wide"),
    LINE("check --explain --level compat /wide"),
    LINE("check --legacy /wide /wide"),
};

static void play_folders(void **state) {
    (void)state;
    assert_true(fault_play(folders, sizeof folders / sizeof *folders, 3400, 2600));
}

static void play_infos(void **state) {
    (void)state;
    assert_true(fault_play(infos, sizeof infos / sizeof *infos, 350, 600));
}

static void play_digests(void **state) {
    (void)state;
    assert_true(fault_play(digests, sizeof digests / sizeof *digests, 200, 200));
}

static void play_lists(void **state) {
    (void)state;
    assert_true(fault_play(lists, sizeof lists / sizeof *lists, 350, 550));
}

static void play_checks(void **state) {
    (void)state;
    assert_true(fault_play(checks, sizeof checks / sizeof *checks, 800, 1000));
}

static void play_others(void **state) {
    (void)state;
    assert_true(fault_play(others, sizeof others / sizeof *others, 120, 300));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_infos),
        cmocka_unit_test(play_digests),
        cmocka_unit_test(play_lists),
        cmocka_unit_test(play_checks),
        cmocka_unit_test(play_others),
        cmocka_unit_test(play_folders),
    };
    return cmocka_run_group_tests_name("commands over a failing system", tests, NULL, NULL);
}
