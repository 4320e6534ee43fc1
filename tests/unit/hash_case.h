/* What tests of digests share: the vectors, and one file or set to hash. */
#ifndef HASH_CASE_H
#define HASH_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors_hash.h"
#include "unit/make_file.h"
#include "unit/stat_times.h"
#include "unit/temp_model.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/time.h>
#include <time.h>

static temp_folder folder;

static inline int begin(void **state) {
    (void)state;
    (void)umask(022);
    temp_begin(&folder);
    return 0;
}

static inline int end(void **state) {
    (void)state;
    temp_end(&folder);
    return 0;
}

/* ── The vectors: one tensor of n bytes, byte i is i * i mod 251 ── */

#define OTHER_KEYS "\"__metadata__\":{\"format\":\"pt\",\"ss_output_name\":\"demo\"," \
                   "\"modelspec.title\":\"Demo\"},"

static inline unsigned char *squares(size_t n) {
    unsigned char *data = malloc(n + 1);
    temp_must(data != NULL, "malloc");
    for (size_t i = 0; i < n; i++) data[i] = (unsigned char)(i * i % 251);
    return data;
}

/* The header is padded with spaces to a multiple of `align`. */
static inline const char *vector_file(const char *name, const char *before, size_t n,
                                      size_t align) {
    char *header = malloc(align + 1024);
    temp_must(header != NULL, "malloc");
    int len = snprintf(header, 1024,
                       "{%s\"a\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}",
                       before, n, n);
    size_t used = (size_t)len;
    while (used % align) header[used++] = ' ';
    header[used] = '\0';
    unsigned char *data = squares(n);
    const char *path = temp_model(&folder, name, header, data, n);
    free(header);
    free(data);
    return path;
}

static inline sft_hashes hash_one(const char *path, uint32_t algos, uint32_t threads) {
    sft_hashes found;
    sft_error err = SFT_ERROR_INIT;
    sft_job job = SFT_JOB_INIT;
    job.threads = threads;
    if (sft_hash_path(path, algos, NULL, &found, &job, &err)) fail_msg("%s", err.message);
    return found;
}

static const char *const v1[SFT_HASH_COUNT] = {
    "828de05c575b149095271ba9859e9d1f805a06364837209f24f5478d0338aa8f", "e3b0c442", "",
    "828de05c57", "455cf5fc5bd6",
    "455cf5fc5bd6c6f54676a2052bf9d30645d70370d3acfdb354b2b379703d8643", "e3b0c442", "9b34ae49",
    "49ae349b", "ddac3206a5d4c82b6f51a864b6f87bb3649185c4cd7a235b2ac6ff4da7e6d31b",
    "edc69b51e3a6b756d209bd182aec3067f168538676f5aef013be59414602504e",
};
static const char *const v2[SFT_HASH_COUNT] = {
    "4eb6f1ccc64e245df7aeda7199dabfecc5b8580505dca9929d411ad47ee207f2", "e3b0c442", "",
    "4eb6f1ccc6", "455cf5fc5bd6",
    "455cf5fc5bd6c6f54676a2052bf9d30645d70370d3acfdb354b2b379703d8643", "e3b0c442", "2e312ecc",
    "cc2e312e", "bba06825fe98dd0fb7a1193360d115b3c12198677ac8ac5bc8d769353447b0bd",
    "edc69b51e3a6b756d209bd182aec3067f168538676f5aef013be59414602504e",
};
static const char *const v3[SFT_HASH_COUNT] = {
    "0620185eba547298f495192e73d47ea171742baf447f83c78c87d3b91c2377d2", "cac931a0", "",
    "0620185eba", "6ba0b67666c1",
    "6ba0b67666c12868e9c23b1eb1e193c9e2c62eb5eba40386537389731c92e8f7", "ab516657", "25aea3dc",
    "dca3ae25", "f5655b5283bba5faf238697858c37d0a37222246985f3a7ea52166374c65a53c",
    "428a32ae425860671fa5a5167404ef521ded7de195a3737109e68e7f558ee8a1",
};
static const char *const v4[SFT_HASH_COUNT] = {
    "44349cf314b856eaac42ac46807df3da5fe8d8519ad6a3682f46ad0a8f2db6e8", "67ce82a9", "67ce82a9",
    "44349cf314", "6081a84ba410",
    "6081a84ba410f8a1dfd810e85dd20885a8047ce10633f57cc6be4bd01ebd83a7", "3b45b403", "6c30e932",
    "32e9306c", "4af010407ad12632e91cf3bdacdb9aad1ef350c49643710786c96eb6bab169d9",
    "585e54f56668b5ddd48f68292a019b9c2e4e4594722d2d065f388716754e17e5",
};

static inline void assert_hashes(const sft_hashes *found, const char *const want[SFT_HASH_COUNT]) {
    for (int i = 0; i < SFT_HASH_COUNT; i++) {
        bool known = (sft_hashes_known(found) & SFT_HASH_BIT(i)) != 0;
        const char *text = sft_hashes_get(found, (sft_hash_algo)i);
        assert_string_equal(text ? text : "",
                            sft_hashes_asked(found) & SFT_HASH_BIT(i) ? want[i] : "");
        assert_int_equal(known, text != NULL);
    }
}

static const char *const *const vectors[] = { v1, v2, v3, v4 };

static inline const char *nth_vector(int i) {
    static const size_t sizes[] = { 1000, 1000, 1100000, 2200000 };
    char name[8];
    (void)snprintf(name, sizeof name, "v%d", i + 1);
    return vector_file(name, i ? OTHER_KEYS : "", sizes[i], 8);
}

/* ── content ── */

static const char three_in_one[] =
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
    "\"b\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[3,7]},"
    "\"c\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[7,7]}}";
static const char three_turned[] =
    "{\"__metadata__\":{\"x\":\"y\"},"
    "\"c\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
    "\"b\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]},"
    "\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[4,7]}}";

#define CONTENT SFT_HASH_BIT(SFT_HASH_CONTENT)

static inline const char *content_of(const char *header, const char *data, size_t len) {
    static char text[SFT_HASH_TEXT_SIZE];
    sft_hashes found = hash_one(temp_model(&folder, "c", header, data, len), CONTENT, 1);
    assert_int_equal(sft_hashes_known(&found), CONTENT);
    memcpy(text, sft_hashes_get(&found, SFT_HASH_CONTENT), 65);
    return text;
}

static inline const char *make_set(void) {
    (void)temp_model(&folder, "m-1.safetensors",
                     "{\"b\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]}}", "abcd",
                     4);
    (void)temp_model(&folder, "m-2.safetensors",
                     "{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
                     "\"c\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[3,3]}}", "123", 3);
    return temp_text(&folder, "m.safetensors.index.json",
                     "{\"weight_map\":{\"a\":\"m-2.safetensors\",\"b\":\"m-1.safetensors\","
                     "\"c\":\"m-2.safetensors\"}}");
}

typedef struct seen {
    size_t count, stop_at;
    sft_hash_result last;
    char text[8][SFT_HASH_TEXT_SIZE];
    char shards[8][SFT_HASH_TEXT_SIZE];
    sft_code codes[8];
} seen;

static inline void take_sha256(const sft_hashes *hashes, char out[SFT_HASH_TEXT_SIZE]) {
    const char *text = sft_hashes_get(hashes, SFT_HASH_SHA256);
    memcpy(out, text ? text : "", text ? 65 : 1);
}

static inline bool keep(void *ctx, const sft_hash_result *result) {
    seen *s = ctx;
    assert_int_equal(result->index, s->count);
    s->last = *result;
    s->codes[s->count] = result->error ? result->error->code : SFT_OK;
    take_sha256(&result->hashes, s->text[s->count]);
    for (size_t i = 0; i < result->shard_count; i++)
        take_sha256(&result->shards[i], s->shards[i]);
    return ++s->count != s->stop_at;
}

#endif
