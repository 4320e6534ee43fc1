/* catalog over a system of which the nth allocation or call fails: the page is there whole, or what
 * stood there stands there still; no hidden file is left, and the exit status tells. */
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define PAGE "/dir/c.html"
#define MOST 600000 /* bytes of a page here */

static const char old_page[] = "<!DOCTYPE html>old";

typedef struct page_seen {
    bool there, old;
    size_t len, files;
    uint64_t digest;
} page_seen;

static page_seen look(void) {
    page_seen seen = { .files = os_fake_count_files() };
    const unsigned char *bytes = os_fake_file(PAGE, &seen.len);
    seen.there = bytes != NULL;
    seen.digest = bytes ? fault_digest(bytes, seen.len) : 0;
    seen.old = bytes && seen.len == sizeof old_page - 1
        && memcmp(bytes, old_page, sizeof old_page - 1) == 0;
    return seen;
}

static page_seen before, done;
static const fault_scene *learned; /* of which `done` is the result */

/* A model with a preview beside it and one in its header. */
static void add_pictured(void) {
    static const char head[] =
        "{\"__metadata__\":{\"modelspec.title\":\"Neon\",\"modelspec.tags\":\"a,b\","
        "\"modelspec.trigger_phrase\":\"neon city\",\"modelspec.thumbnail\":"
        "\"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AA"
        "AAMBAQDJ/pLvAAAAAElFTkSuQmCC\"},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x04\0\0\0\x03\x08\x02\0\0\0";
    static char bytes[8 + sizeof head - 1 + 1];
    size_t len = sizeof head - 1;
    bytes[0] = (char)(len & 255);
    bytes[1] = (char)(len >> 8);
    memcpy(bytes + 8, head, len);
    os_fake_add_dir("/lib");
    os_fake_add_file("/lib/neon.safetensors", bytes, sizeof bytes);
    os_fake_add_file("/lib/neon.preview.png", png, sizeof png - 1);
}

/* A LoRA of one module, with an alpha. */
static void add_lora(void) {
    static const char head[] =
        "{\"lora_unet_down_blocks_0_attentions_0_proj_in.alpha\":{\"dtype\":\"F32\",\"shape\":[],"
        "\"data_offsets\":[0,4]},"
        "\"lora_unet_down_blocks_0_attentions_0_proj_in.lora_down.weight\":{\"dtype\":\"F32\","
        "\"shape\":[2,3],\"data_offsets\":[4,28]},"
        "\"lora_unet_down_blocks_0_attentions_0_proj_in.lora_up.weight\":{\"dtype\":\"F32\","
        "\"shape\":[3,2],\"data_offsets\":[28,52]}}";
    static char bytes[8 + sizeof head - 1 + 52];
    size_t len = sizeof head - 1;
    bytes[0] = (char)(len & 255);
    bytes[1] = (char)(len >> 8);
    memcpy(bytes + 8, head, len);
    for (size_t i = 8 + len + 3; i < sizeof bytes; i += 4) bytes[i] = 0x3f;
    os_fake_add_file("/lib/lora.safetensors", bytes, sizeof bytes);
}

static void set_library(const fault_scene *scene) {
    add_pictured();
    if (strstr(scene->line, "/lib/lora")) add_lora();
    if (strstr(scene->line, "--force")) os_fake_add_file(PAGE, old_page, sizeof old_page - 1);
    os_fake_no_unnamed(scene->way);
    os_fake_short_writes(30000);
    before = look();
}

static bool is_whole(void) {
    static const char end[] = "</script>\n</body>\n</html>\n";
    size_t len;
    const char *page = os_fake_file(PAGE, &len);
    return page && len > sizeof end && len < MOST && memcmp(page, "<!DOCTYPE html>\n", 16) == 0
        && memcmp(page + len - (sizeof end - 1), end, sizeof end - 1) == 0;
}

/* A call that fails may take away a picture or a date: the page is then another one, and whole. */
static const char *judge_page(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    page_seen now = look();
    if (learned != scene) {
        learned = scene;
        done = now;
        if (seen->status < 2 && !is_whole()) return "success, and no page";
    }
    bool old = now.there == before.there && now.digest == before.digest;
    if (seen->status < 2 && old) return "success, and no new page";
    if (!old && !is_whole()) return "neither the old page nor a whole one";
    if (lasting) return NULL;
    return now.files > (old ? before.files : done.files) ? "a hidden file is left" : NULL;
}

#define CATALOG(text, named, bad) \
    { .command = true, .run = fault_run, .line = "safetensors catalog " text, .writes = true, \
      .way = named, .refused = bad, .beside = true, .partial = true, .set = set_library, \
      .after = judge_page }
#define WRITES(text) CATALOG(text, false, false)
#define NAMED(text) CATALOG(text, true, false)
#define BROKEN(text) CATALOG(text, false, true)

static const fault_scene pages[] = {
    WRITES("/lib -o " PAGE " --json"),
    WRITES("/lib -o " PAGE " --embed --json"),
    NAMED("/lib -o " PAGE " --force --json"),
    WRITES("/tree /lib -o " PAGE " --no-sync --json"),
    WRITES("/lib /m/a.safetensors -o " PAGE " --hash content --json --where bytes>1"),
    BROKEN("/m/bad.safetensors /lib -o " PAGE " --json"),
    BROKEN("/gap /lib -o " PAGE " --json"),
};

static const fault_scene models[] = {
    WRITES("--model /lib/neon.safetensors -o " PAGE " --json"),
    NAMED("--model /m/many.safetensors -o " PAGE " --force --json"),
    WRITES("--model /m/a.safetensors --deep -o " PAGE " --json"),
    WRITES("--model /lib/lora.safetensors --deep -o " PAGE " --json"),
    WRITES("--model /set/m.safetensors.index.json --deep --threads 1 -o " PAGE " --json"),
};

static void play_pages(void **unused) {
    (void)unused;
    assert_true(fault_play(pages, sizeof pages / sizeof *pages, 300, 300));
}

static void play_models(void **unused) {
    (void)unused;
    assert_true(fault_play(models, sizeof models / sizeof *models, 100, 100));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_pages),
        cmocka_unit_test(play_models),
    };
    return cmocka_run_group_tests_name("catalogues over a failing system", tests, NULL, NULL);
}
