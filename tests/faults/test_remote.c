/* Remote files over a system of which the nth allocation or call fails. Requests are answered from
 * memory. What is fetched ahead runs to its end when its thread is started. */
#include "faults.h"
#include "unit/remote_web.h"
#include "safetensors_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define FILE_BYTES ((size_t)15 << 20)
#define URL "https://files.test/model.bin"

static unsigned char file_bytes[FILE_BYTES], buffer[FILE_BYTES];
static web server;

enum { READS, ANNOUNCES, EXPECTS, NAMES, CACHES };

static sft_code open_remote(const fault_scene *scene, sft_remote **out, sft_error *err) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_transport transport = { &server, &web_transport_vtable };
    memset(&server, 0, sizeof server);
    server.bytes = file_bytes;
    server.size = FILE_BYTES;
    server.etag = "\"one\"";
    server.redirects = scene->mode;
    options.transport = &transport;
    options.alloc = &fault_alloc;
    options.retries = UINT32_MAX;
    options.connections = 3;
    if (scene->way == CACHES) options.cache = "/dir/cache";
    return sft_remote_open(&options, out, err);
}

static sft_code see_range(fault_seen *seen, const sft_source *source, uint64_t offset,
                          size_t len) {
    size_t got = 0;
    sft_code code = sft_source_read(source, offset, buffer, len, &got, &seen->err);
    if (code) return code;
    fault_see(seen, "%zu %d\n", got, memcmp(buffer, file_bytes + offset, got) == 0);
    return SFT_OK;
}

static sft_code see_source(fault_seen *seen, const sft_source *source) {
    static const sft_run ranges[] = { { 0, 1000 }, { 131072, 500 }, { 1 << 20, 100 },
                                      { 2 << 20, 300000 }, { 5 << 20, 9 << 20 } };
    sft_code code = SFT_OK;
    fault_see(seen, "%llu\n", (unsigned long long)source->size);
    for (size_t i = 0; !code && i < sizeof ranges / sizeof *ranges; i++)
        code = see_range(seen, source, ranges[i].offset, (size_t)ranges[i].len);
    return code;
}

static sft_code see_file(fault_seen *seen, sft_remote *remote, const char *name, bool announces) {
    static const sft_run runs[] = { { 1 << 20, 100 }, { 2 << 20, 300000 }, { 5 << 20, 9 << 20 } };
    const sft_files *files = sft_remote_files(remote);
    sft_remote_claim claim;
    sft_source source;
    sft_code code = files->vtable->open(files->ctx, name, NULL, &source, &seen->err);
    if (code) return code;
    if (announces) sft_source_expect(&source, runs, 3);
    code = see_source(seen, &source);
    if (!code && sft_remote_claims(remote, name, &claim)) fault_see(seen, "%s\n", claim.etag);
    sft_source_close(&source);
    return code;
}

static sft_code see_expected(fault_seen *seen, sft_remote *remote) {
    static const char *const names[] = { "https://files.test/a", "https://files.test/b",
                                         "https://files.test/c" };
    const sft_files *files = sft_remote_files(remote);
    sft_code code = SFT_OK;
    files->vtable->expect(files->ctx, names, 3, NULL);
    for (size_t i = 0; !code && i < 2; i++) code = see_file(seen, remote, names[i], false);
    return code;
}

static sft_code see_names(fault_seen *seen, sft_remote *remote) {
    static const char *const urls[] = { "https://h.test/a?sig=1", "https://h.test/a?sig=2",
                                        "https://u:p@h.test/b", "hf://ns/m/a", "s3://b/k",
                                        "https://huggingface.co/ns/m/blob/main/a" };
    const char *name;
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < sizeof urls / sizeof *urls; i++) {
        code = sft_remote_name(remote, urls[i], &name, &seen->err);
        if (!code) fault_see(seen, "%s\n", name);
    }
    if (!code) code = see_file(seen, remote, "https://h.test/other", false);
    return code;
}

static void run_remote(const fault_scene *scene, fault_seen *seen) {
    sft_remote *remote;
    sft_code code = open_remote(scene, &remote, &seen->err);
    if (!code) {
        if (scene->way == EXPECTS) code = see_expected(seen, remote);
        else if (scene->way == NAMES) code = see_names(seen, remote);
        else code = see_file(seen, remote, URL, scene->way == ANNOUNCES);
        sft_remote_close(remote);
    }
    seen->status = (int)code;
}

static void make_cache(const fault_scene *scene) {
    (void)scene;
    os_fake_add_dir("/dir/cache");
    os_fake_set_mode("/dir/cache", 0700);
}

/* A header that an earlier run has kept. */
static void keep_header(const fault_scene *scene) {
    static fault_seen ignored;
    make_cache(scene);
    ignored.len = 0;
    run_remote(scene, &ignored);
    if (ignored.status) fail();
}

#define SCENE(text, how, redirects, before)                                                 \
    { .name = text, .run = run_remote, .path = URL, .mode = redirects, .way = how,          \
      .imports = true, .set = before }

static const fault_scene scenes[] = {
    SCENE("reads", READS, 0, NULL),
    SCENE("reads by a signed URL", READS, 1, NULL),
    SCENE("announced reads", ANNOUNCES, 0, NULL),
    SCENE("files opened ahead", EXPECTS, 1, NULL),
    SCENE("names", NAMES, 0, NULL),
    SCENE("a header is cached", CACHES, 0, make_cache),
    SCENE("a cached header", CACHES, 0, keep_header),
};

static void test_remote(void **state) {
    (void)state;
    for (size_t i = 0; i < FILE_BYTES; i++) file_bytes[i] = web_byte(i);
    assert_true(fault_play(scenes, sizeof scenes / sizeof *scenes, 100, 20));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_remote) };
    return cmocka_run_group_tests_name("remote", tests, NULL, NULL);
}
