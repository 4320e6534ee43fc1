/* Models in other formats over a system of which the nth allocation or call fails: an import opens
 * and is saved as it should be, or fails for that reason, and leaves nothing behind. The models are
 * seeds of fuzz_import: one of each format, and of each way to rebuild tensors. */
#include "faults.h"

#include "safetensors_import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SEEDS "fuzz/corpus/import/"

/* Without malloc, which the world counts. */
static size_t read_seed(const char *name, char *into, size_t most) {
    char path[256];
    fault_need(snprintf(path, sizeof path, SEEDS "%s", name) < (int)sizeof path);
    int fd = open(path, O_RDONLY);
    ssize_t len = fd < 0 ? -1 : read(fd, into, most);
    fault_need(len > 0 && (size_t)len < most);
    close(fd);
    return (size_t)len;
}

static void set_model(const fault_scene *scene) {
    static char bytes[1 << 16];
    size_t len = read_seed(scene->line, bytes, sizeof bytes);
    os_fake_add_file(scene->path, bytes, len);
    if (strncmp(scene->line, "tensorflow", 10) == 0)
        os_fake_add_file("/dir/m.data-00000-of-00001", "sixteen bytes ..", 16);
    if (strncmp(scene->line, "index", 5) != 0) return;
    len = read_seed("torch-zip-name-climbs", bytes, sizeof bytes);
    os_fake_add_file("/dir/pytorch_model-1.bin", bytes, len);
}

static sft_import_options options_of(int way) {
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    options.alloc = &fault_alloc;
    options.skip = options.all = options.scalars = way > 0;
    options.dequantised = SFT_F32;
    options.shared = way > 0 ? SFT_IMPORT_COPY : SFT_IMPORT_ALIAS;
    if (way > 0) options.quantised = options.sparse = SFT_IMPORT_SPECIAL_VALUES;
    return options;
}

static void see_import(fault_seen *seen, const sft_import *import) {
    fault_see(seen, "%d: %zu tensors, %zu branches, %zu aliases, %zu left, %zu globals\n",
              (int)sft_import_format_of(import), sft_import_tensor_count(import),
              sft_import_branch_count(import), sft_import_alias_count(import),
              sft_import_left_count(import), sft_import_global_count(import));
    for (size_t i = 0; i < sft_import_tensor_count(import); i++) {
        sft_part part = sft_import_part(import, i);
        const char *note = sft_import_note(import, i);
        fault_see(seen, "%.*s %u %s\n", (int)part.spec.name.len, part.spec.name.data,
                  part.spec.rank, note ? note : "");
    }
}

static sft_code see_saved(fault_seen *seen, const sft_import *import) {
    sft_buffer made = { .alloc = fault_alloc };
    sft_code code = sft_import_verify(import, NULL, &seen->err);
    if (!code)
        code = sft_import_save(import, sft_sink_memory(&made), NULL, NULL, &seen->err);
    if (!code) fault_see_bytes(seen, made.data, made.len);
    sft_buffer_free(&made);
    return code;
}

static void run_import(const fault_scene *scene, fault_seen *seen) {
    sft_import *import = NULL;
    sft_import_options options = options_of(scene->way);
    sft_code code = sft_import_open(scene->path, &options, &import, &seen->err);
    fault_need(!code == (import != NULL));
    if (!code) {
        see_import(seen, import);
        code = see_saved(seen, import);
    }
    sft_import_close(import);
    seen->status = code;
}

#define MODEL(seed, file, how, bad) { .name = seed, .line = seed, .path = "/dir/" file, \
                                      .way = how, .refused = bad, .run = run_import, \
                                      .set = set_model, .imports = true }
#define READS(seed) MODEL(seed, "m", 0, false)
#define READS_ALL(seed) MODEL(seed, "m", 1, false)
#define REFUSES(seed) MODEL(seed, "m", 0, true)

static const fault_scene torch[] = {
    READS("torch-zip-name-climbs"), READS("torch-cycle-with-tensor"),
    READS_ALL("torch-cycle-with-tensor"), READS("torch-stream-behind"),
    READS("torch-call-by-build-os.popen"), READS("torch-array-eval"),
    READS("torch-zip-torchscript-code"), READS("torch-nested-pickle-in-bytes"),
    READS("torch-rebuild-_rebuild_parameter-129"), READS("torch-laughs-10-60-nothings"),
    REFUSES("torch-view-4tb"), REFUSES("torch-stream-key-twice"),
    REFUSES("torch-zip-end64-disagrees"), REFUSES("torch-array-objects"),
};

static const fault_scene others[] = {
    READS("npy-good"), READS("gguf"), READS_ALL("gguf"), READS("gguf-big"),
    READS_ALL("gguf-blocks"), READS("onnx-good"), READS("flax-good"),
    MODEL("tensorflow-good", "m.index", 0, false),
    MODEL("index-good", "pytorch_model.bin.index.json", 0, false),
    REFUSES("npz-crc"), REFUSES("onnx-typed-two"), REFUSES("flax-chunks-too-few"),
    REFUSES("tar-cut-1600"), REFUSES("npy-record"), REFUSES("gguf-array-nested-300"),
};

static void play_torch(void **state) {
    (void)state;
    assert_true(fault_play(torch, sizeof torch / sizeof *torch, 100, 100));
}

static void play_others(void **state) {
    (void)state;
    assert_true(fault_play(others, sizeof others / sizeof *others, 100, 100));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_torch),
        cmocka_unit_test(play_others),
    };
    return cmocka_run_group_tests_name("importing over a failing system", tests, NULL, NULL);
}
