/* info --save-as over a system of which the nth allocation or call fails: what stands next to a
 * model is as it was, or whole and with all that its owner wrote; nothing else is left. */
#include "faults.h"
#include "unit/make_file.h"
#include "safetensors_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define LORA "lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k"
#define MINE "{\"description\":\"mine\",\"rating\":[5],\"activation text\":\"\"}"
#define SITE "{\"id\":7,\"modelId\":70,\"name\":\"v2\",\"trainedWords\":[\"neon\",\"city\"]," \
    "\"model\":{\"name\":\"Neon\",\"description\":\"<p>site</p>\",\"tags\":[\"a\",\"b\"]}," \
    "\"rating\":[5],\"creator\":{\"username\":\"lamp\"}}"

static size_t files_before, hidden;
static uint64_t data_sum;

static uint64_t sum_of(const void *bytes, size_t len) {
    const unsigned char *at = bytes;
    uint64_t sum = 1;
    for (size_t i = 0; i < len; i++) sum = (sum ^ at[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* The sum of the tensors' bytes; 0 when the model does not open. */
static uint64_t model_sum(void) {
    sft_file *file = NULL;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_loan loan;
    uint64_t sum = 0;
    open.alloc = &fault_alloc;
    if (sft_open("/s/neon.safetensors", &open, &file, NULL)) return 0;
    const sft_tensor *t = sft_file_tensor_at(file, 0);
    if (sft_borrow(file, t, &loan, NULL) == SFT_OK) {
        sum = sum_of(loan.data, loan.len);
        sft_return(file, &loan);
    }
    sft_close(file);
    return sum;
}

static void set_world(const fault_scene *scene) {
    static test_file lora;
    if (!lora.bytes)
        lora = make_file("{\"__metadata__\":{\"ss_output_name\":\"neon\","
                         "\"modelspec.title\":\"Mine\"},"
                         "\"" LORA ".lora_down.weight\":{\"dtype\":\"U8\",\"shape\":[4,2048],"
                         "\"data_offsets\":[0,8192]},"
                         "\"" LORA ".lora_up.weight\":{\"dtype\":\"U8\",\"shape\":[640,4],"
                         "\"data_offsets\":[8192,10752]}}", NULL, 10752);
    os_fake_add_file("/s/neon.safetensors", lora.bytes, lora.len);
    os_fake_add_file("/s/neon.civitai.info", SITE, sizeof SITE - 1);
    if (scene->way) os_fake_add_file("/s/neon.json", MINE, sizeof MINE - 1);
    files_before = os_fake_count_files();
    data_sum = model_sum();
    os_fake_fail(0, 0, false);
}

static void count_hidden(void *ctx, const char *path, uint64_t inode) {
    (void)ctx, (void)inode;
    hidden += strstr(path, ".sft-") != NULL;
}

static bool has(const char *path, const char *text) {
    size_t len, want = strlen(text);
    const char *bytes = os_fake_file(path, &len);
    for (size_t i = 0; bytes && i + want <= len; i++)
        if (memcmp(bytes + i, text, want) == 0) return true;
    return false;
}

static bool is_whole(const char *path) {
    size_t len;
    const char *bytes = os_fake_file(path, &len);
    return !bytes || (len > 2 && bytes[0] == '{' && bytes[len - 1] == '}');
}

static const char *judge(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    os_fake_heal();
    options.open = &open;
    open.alloc = &fault_alloc;
    if (sft_edit_recover("/s/neon.safetensors", &options, NULL, NULL))
        return "the model cannot be recovered";
    if (model_sum() != data_sum) return "the tensors are not as they were";
    if (scene->way && !(has("/s/neon.json", "\"mine\"") && has("/s/neon.json", "\"rating\":[5]")))
        return "the owner's keys are lost";
    if (!has("/s/neon.civitai.info", "\"rating\":[5]")) return "another sidecar was changed";
    if (!is_whole("/s/neon.json") || !is_whole("/s/neon.metadata.json"))
        return "half a sidecar";
    if (scene->path && seen->status == 0 && !os_fake_failed() && !os_fake_exists(scene->path))
        return "nothing was written";
    hidden = 0;
    os_fake_each(count_hidden, NULL);
    if (hidden > lasting) return "a hidden file is left";
    return os_fake_count_files() > files_before + 1 && !lasting ? "a file is left" : NULL;
}

#define SCENE(old, makes, text) \
    { .command = true, .run = fault_run, .line = "safetensors info " text " /s/neon.safetensors", \
      .writes = true, .beside = true, .set = set_world, .after = judge, .way = old, .path = makes }

static const fault_scene sidecars[] = {
    SCENE(0, "/s/neon.json", "--save-as a1111"),
    SCENE(0, NULL, "--save-as a1111 --dry-run --json"),
    SCENE(1, NULL, "--save-as a1111 --force"),
    SCENE(1, NULL, "--save-as a1111 --force --jsonl"),
    SCENE(1, NULL, "--save-as civitai --force"),
    SCENE(0, "/s/neon.metadata.json", "--save-as lora-manager"),
    SCENE(0, "/s/neon.metadata.json", "--save-as lora-manager --hash sha256 --json"),
};

static const fault_scene headers[] = {
    SCENE(1, NULL, "--save-as modelspec"),
    SCENE(1, NULL, "--save-as modelspec --force --json"),
    SCENE(1, NULL, "--save-as modelspec --force --dry-run"),
};

static void play_sidecars(void **state) {
    (void)state;
    assert_true(fault_play(sidecars, sizeof sidecars / sizeof *sidecars, 200, 300));
}

static void play_headers(void **state) {
    (void)state;
    assert_true(fault_play(headers, sizeof headers / sizeof *headers, 80, 150));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_sidecars),
        cmocka_unit_test(play_headers),
    };
    return cmocka_run_group_tests_name("sidecars over a failing system", tests, NULL, NULL);
}
