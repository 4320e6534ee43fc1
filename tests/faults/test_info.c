/* Labels, digests, copies and finds, in process, over a system of which the nth allocation
 * or call fails; and how often a model file is opened and read for its label. */
#include "faults.h"
#include "unit/make_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static size_t files_before;

/* ── The models ── */

#define UNET "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_"
#define PAIR(name, at, then, end) \
    "\"" name ".lora_down.weight\":{\"dtype\":\"F16\",\"shape\":[4,32]," \
    "\"data_offsets\":[" at "," then "]}," \
    "\"" name ".lora_up.weight\":{\"dtype\":\"F16\",\"shape\":[32,4],\"data_offsets\":[" then \
    "," end "]}"
#define ALPHA(name, at, end) \
    ",\"" name ".alpha\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[" at "," end "]}"
#define KOHYA "\"ss_output_name\":\"neon\",\"ss_network_dim\":\"4\"," \
    "\"ss_network_alpha\":\"4\",\"ss_network_module\":\"networks.lora\"," \
    "\"ss_base_model_version\":\"sdxl_base_v1-0\",\"sshs_model_hash\":\"" HASH "\"," \
    "\"ss_sd_model_name\":\"ponyV6.safetensors\"," \
    "\"ss_tag_frequency\":\"{\\\"10_neon city\\\":{\\\"neon city\\\":20,\\\"night\\\":9}}\"," \
    "\"workflow\":\"{\\\"nodes\\\":[]}\"," \
    "\"modelspec.thumbnail\":\"data:image/png;base64," PICTURE "\"," \
    "\"modelspec.description\":\"of civitai.com/models/12?modelVersionId=34\""
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define PICTURE "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAAElFTkSuQmCC"

static test_file lora, plain_lora, unet, vae, shard;

static void make_models(void) {
    static const float alpha = 4;
    if (lora.bytes) return;
    lora = make_file("{\"__metadata__\":{" KOHYA "}," PAIR(UNET "q", "0", "256", "512")
                     "," PAIR(UNET "k", "512", "768", "1024") ALPHA(UNET "q", "1024", "1028")
                     ALPHA(UNET "k", "1028", "1032") "}", NULL, 1032);
    memcpy(lora.bytes + lora.data + 1024, &alpha, 4);
    memcpy(lora.bytes + lora.data + 1028, &alpha, 4);
    plain_lora = make_file("{" PAIR(UNET "v", "0", "256", "512") "}", NULL, 512);
    unet = make_file("{\"conv_in.weight\":{\"dtype\":\"U8\",\"shape\":[32,4,3,3],"
                     "\"data_offsets\":[0,1152]}}", NULL, 1152);
    vae = make_file("{\"decoder.conv_in.weight\":{\"dtype\":\"U8\",\"shape\":[5,4,3,3],"
                    "\"data_offsets\":[0,180]}}", NULL, 180);
    shard = make_file("{\"a\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[0,9]}}", NULL, 9);
}

static void add(const char *path, const test_file *f) {
    os_fake_add_file(path, f->bytes, f->len);
}

static void add_text(const char *path, const char *text) {
    os_fake_add_file(path, text, strlen(text));
}

/* A length that the text shows, the four bytes of the kind, the data, no sum. */
static void add_picture(const char *path) {
    static const char text[] = "parameters\0a city\nNegative prompt: day\nSteps: 9, Seed: 1";
    unsigned char png[160] = "\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\0\2\0\0\0\2\x08\2\0\0\0----";
    size_t at = 33, len = sizeof text - 1;
    png[at + 3] = (unsigned char)len;
    memcpy(png + at + 4, "tEXt", 4);
    memcpy(png + at + 8, text, len);
    os_fake_add_file(path, png, at + 8 + len + 4);
}

#define CIVITAI "{\"id\":34,\"modelId\":12,\"name\":\"v1\",\"baseModel\":\"Pony\"," \
    "\"trainedWords\":[\"neon\"],\"model\":{\"name\":\"Neon\",\"type\":\"LORA\"}," \
    "\"files\":[{\"sizeKB\":2," \
    "\"hashes\":{\"SHA256\":\"" HASH "\"}}]," \
    "\"images\":[{\"width\":4,\"height\":4,\"nsfwLevel\":2}]}"

static void info_world(const fault_scene *scene) {
    (void)scene;
    make_models();
    add("/l/neon.safetensors", &lora);
    add_text("/l/neon.civitai.info", CIVITAI);
    add_text("/l/neon.json", "{\"activation text\":\"neon city\",\"notes\":\"n\"}");
    add_text("/l/neon.txt", "neon at night");
    add_text("/l/README.md", "---\nlicense: mit\ninstance_prompt: neon\n---\n# Neon\nSome city.\n");
    add_picture("/l/neon.preview.png");
    add("/lib/a.safetensors", &lora);
    add_text("/lib/a.json", "{\"description\":\"of /lib\"}");
    add("/lib/b.safetensors", &plain_lora);
    os_fake_add_link("/lib/c.safetensors", "../l/neon.safetensors");
    add("/lib/deep/b.safetensors", &plain_lora);
    add("/lib/deep/._b.safetensors", &shard);
    add_text("/pipe/model_index.json", "{\"_class_name\":\"StableDiffusionPipeline\","
             "\"unet\":[\"diffusers\",\"UNet2DConditionModel\"]}");
    add("/pipe/unet/diffusion_pytorch_model.safetensors", &unet);
    add("/pipe/vae/diffusion_pytorch_model.safetensors", &vae);
    add("/cut/m-00001-of-00002.safetensors", &shard);
    add("/plain/d.safetensors", &plain_lora);
    add_picture("/plain/d.png");
    add_text("/sums", HASH "  /l/neon.safetensors\n");
    os_fake_add_dir("/out");
}

/* ── One command ── */

#define LINE(text) \
    { .command = true, .run = fault_run, .set = info_world, .line = "safetensors " text }

/* Facts alone: what could not be read beside the model is told in labels and JSON only. (What
 * the system does not let one see at all, like a model_index.json, is told by nobody.) */
#define FACTS(text) \
    { .command = true, .run = fault_run, .set = info_world, .beside = true, \
      .line = "safetensors " text }

static const fault_scene labels[] = {
    LINE("info /l/neon.safetensors"),
    FACTS("info -v /l/neon.safetensors"), /* or an alpha in it */
    FACTS("info --json --full --deep /l/neon.safetensors"), /* the same */
    FACTS("info -f name,rank,trigger_words /l/neon.safetensors"),
    FACTS("info -f prompt --json /l/neon.safetensors"),
    FACTS("info -f license /lib/b.safetensors"),
    FACTS("info /pipe"),
    FACTS("info --json /pipe"),
    { .command = true, .run = fault_run, .set = info_world, .refused = true,
      .line = "safetensors info --json /cut" },
};

static const fault_scene folders[] = {
    FACTS("info /lib"),
    FACTS("info -r /lib"),
    FACTS("info -r --tsv /lib"),
    FACTS("info -r --jsonl /lib"),
    FACTS("info -r --where rank=4 -f path,rank /lib"),
    LINE("info --long /lib"),
    FACTS("info -r --sort name --group-by folder /lib"),
    FACTS("info -r --long --sort date --reverse /lib"),
    FACTS("info -r --tsv --sort size /lib"),
};

/* A file of /out is whole or not there, and nothing else is. */
static const char *whole_or_none(const fault_scene *scene, const fault_seen *seen,
                                 bool lasting) {
    size_t len, files = os_fake_count_files(), exported = 0;
    exported += os_fake_exists("/out/neon.png") + os_fake_exists("/out/d.png");
    exported += os_fake_exists("/out/w.json");
    if (os_fake_exists("/out/w.json")) {
        const char *text = os_fake_file("/out/w.json", &len);
        if (len != 12 || memcmp(text, "{\"nodes\":[]}", 12) != 0) return "half a workflow";
    }
    /* (A picture beside the model may not have been seen.) */
    if (seen->status == 0 && exported == 0 && scene->way == 0) return "nothing was exported";
    return files == files_before + exported || lasting ? NULL : "a file is left";
}

static void export_world(const fault_scene *scene) {
    info_world(scene);
    files_before = os_fake_count_files();
}

#define EXPORT(text, hidden) \
    { .command = true, .run = fault_run, .set = export_world, .after = whole_or_none, \
      .beside = true, .writes = true, .way = hidden, .line = "safetensors " text }

static const fault_scene exports[] = {
    EXPORT("info --export-preview /out /plain/d.safetensors", 1),
    EXPORT("info --export-preview /out /l/neon.safetensors", 0),
    EXPORT("info --export-workflow /out/w.json /l/neon.safetensors", 0),
};

static const fault_scene digests[] = {
    FACTS("info --verify /l/neon.safetensors"),
    FACTS("info --json --hash sha256,autov3 /l/neon.safetensors"),
    LINE("hash /l/neon.safetensors"),
    LINE("hash --algo all --json /l/neon.safetensors"),
    LINE("hash -r --algo autov3 /lib"),
    LINE("hash -c /sums"),
    LINE("dup -r /lib"),
    LINE("dup --json /lib /l"),
    FACTS("find 0123456789 /lib"),
    FACTS("find -l neon -r /lib"),
    FACTS("find --json --where kind=adapter neon /lib"),
};

static void play_labels(void **state) {
    (void)state;
    assert_true(fault_play(labels, sizeof labels / sizeof *labels, 220, 350));
}

static void play_folders(void **state) {
    (void)state;
    assert_true(fault_play(folders, sizeof folders / sizeof *folders, 420, 330));
}

static void play_exports(void **state) {
    (void)state;
    assert_true(fault_play(exports, sizeof exports / sizeof *exports, 60, 100));
}

static void play_digests(void **state) {
    (void)state;
    assert_true(fault_play(digests, sizeof digests / sizeof *digests, 360, 600));
}

/* ── How often the model is read ── */

static size_t calls_named(const char *name) {
    size_t count = 0;
    const char *call;
    for (size_t n = 1; (call = os_fake_call_name(n)); n++) count += strcmp(call, name) == 0;
    return count;
}

/* A LoRA of so many layers, each with its alpha, and metadata of so many bytes. */
static test_file make_long_lora(size_t layers, size_t metadata) {
    static char header[1 << 20], filling[1 << 19];
    size_t len = 0, data = 0;
    assert_true(metadata < sizeof filling);
    memset(filling, 'x', metadata);
    len += (size_t)snprintf(header, sizeof header, "{\"__metadata__\":{\"ss_network_dim\":\"2\","
                            "\"notes\":\"%s\"}", filling);
    for (size_t i = 0; i < layers; i++, data += 20) {
        len += (size_t)snprintf(
            header + len, sizeof header - len,
            ",\"lora_unet_%zu.alpha\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[%zu,%zu]}"
            ",\"lora_unet_%zu.lora_down.weight\":{\"dtype\":\"F16\",\"shape\":[2,2],"
            "\"data_offsets\":[%zu,%zu]},\"lora_unet_%zu.lora_up.weight\":{\"dtype\":\"F16\","
            "\"shape\":[2,2],\"data_offsets\":[%zu,%zu]}", i, data, data + 4, i, data + 4,
            data + 12, i, data + 12, data + 20);
        assert_true(len < sizeof header - 512);
    }
    memcpy(header + len, "}", 2);
    return make_file(header, NULL, data);
}

/* Runs a command and checks what it did: opens and reads of files, folders listed. */
static void count_calls(const char *line, size_t opens, size_t reads, size_t lists) {
    static fault_seen seen;
    fault_scene scene = { .line = line };
    seen.overflow = false;
    os_fake_fail(0, 0, false);
    fault_run(&scene, &seen);
    assert_int_equal(seen.status, 0);
    assert_true(seen.len > 0);
    size_t read = calls_named("sfti_os_pread") + calls_named("sfti_os_read");
    printf("# %s: %zu opens, %zu reads, %zu lists\n", line, calls_named("sfti_os_open_read"), read,
           calls_named("sfti_os_list"));
    assert_true(calls_named("sfti_os_open_read") <= opens);
    assert_true(read <= reads);
    assert_true(calls_named("sfti_os_list") <= lists);
}

#define OPENS 2
#define READS 12

static void reads_little(void **state) {
    (void)state;
    test_file large = make_long_lora(1500, 300000);
    fault_world();
    add("/one/m.safetensors", &large);
    count_calls("safetensors info /one/m.safetensors", OPENS, READS, 1);
    fault_world();
    add("/one/m.safetensors", &large);
    count_calls("safetensors info --json --full /one/m.safetensors", OPENS, READS, 1);
    free_file(&large);
}

/* Files beside a model are opened if they are there, and not looked for one by one. */
static void probes_nothing(void **state) {
    (void)state;
    fault_world();
    info_world(NULL);
    count_calls("safetensors info /l/neon.safetensors", OPENS + 5, READS + 10, 1);
    assert_true(calls_named("sfti_os_info_path") <= 3);
}

static void lists_folders_once(void **state) {
    char path[64];
    (void)state;
    fault_world();
    info_world(NULL);
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof path, "/many/m%d.safetensors", i);
        add(path, i % 2 ? &lora : &plain_lora);
    }
    count_calls("safetensors info /many", 50 * OPENS, 50 * READS, 2);
    assert_true(calls_named("sfti_os_info_path") <= 5); /* the list has no journal */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_labels),
        cmocka_unit_test(play_folders),
        cmocka_unit_test(play_exports),
        cmocka_unit_test(play_digests),
        cmocka_unit_test(reads_little),
        cmocka_unit_test(probes_nothing),
        cmocka_unit_test(lists_folders_once),
    };
    return cmocka_run_group_tests_name("labels over a failing system", tests, NULL, NULL);
}
