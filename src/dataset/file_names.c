/* Names of files and folders of a dataset: made and recognised. */
#include "base/error.h"
#include "base/number.h"
#include "dataset/dataset.h"
#include "os/io.h"

#include <stdio.h>
#include <string.h>

#define UUID_LEN 36

static const char PART[] = "part-";
static const char ENDING[] = ".safetensors";
static const char JOB[] = "_job-";

void sfti_ds_shard_name(uint64_t file, uint64_t shard, const char *uuid,
                        char out[SFTI_DATASET_NAME]) {
    (void)snprintf(out, SFTI_DATASET_NAME, "%s%05llu-%04llu-%.36s%s", PART,
                   (unsigned long long)file, (unsigned long long)shard, uuid, ENDING);
}

static const char HEX[] = "0123456789abcdef";

static bool name_all_hex(sft_span text) {
    size_t i = 0;
    while (i < text.len && memchr(HEX, text.data[i], 16)) i++;
    return i == text.len;
}

static bool name_uuid(const char *text) {
    for (size_t i = 0; i < UUID_LEN; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !memchr(HEX, text[i], 16)) return false;
    }
    return true;
}

static bool name_starts(sft_span *text, const char *with) {
    size_t len = strlen(with);
    if (text->len < len || memcmp(text->data, with, len) != 0) return false;
    *text = (sft_span){ text->data + len, text->len - len };
    return true;
}

bool sfti_ds_shard_parse(sft_span name, uint64_t *file, uint64_t *shard) {
    return name_starts(&name, PART) && sfti_text_digits(&name, 5, file) &&
           name_starts(&name, "-") && sfti_text_digits(&name, 4, shard) &&
           name_starts(&name, "-") && name.len == UUID_LEN + sizeof ENDING - 1 &&
           name_uuid(name.data) && sfti_ds_ends(name, ENDING);
}

bool sfti_ds_is_job(sft_span name) {
    if (!name_starts(&name, JOB) || name.len < UUID_LEN || !name_uuid(name.data)) return false;
    sft_span rest = { name.data + UUID_LEN, name.len - UUID_LEN };
    return rest.len == 0 || sft_span_equal(rest, sft_span_cstr(SFTI_JOB_INDEX));
}

sft_code sfti_ds_uuid(char out[37], sft_error *err) {
    uint8_t b[16];
    int failed = sfti_os_random(b, sizeof b);
    if (failed) return sfti_io_fail(err, SFT_IO_READ, failed, "get random bytes");
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    (void)snprintf(out, 37,
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                   b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                   b[13], b[14], b[15]);
    return SFT_OK;
}

bool sfti_ds_ends(sft_span name, const char *with) {
    size_t len = strlen(with);
    return name.len >= len && memcmp(name.data + name.len - len, with, len) == 0;
}

const char *sfti_ds_mode_name(sft_dataset_mode mode) {
    return mode == SFT_DATASET_KV ? "kv" : mode == SFT_DATASET_BATCH ? "batch" : NULL;
}

void sfti_ds_job_folder(const char *uuid, char out[SFTI_JOB_FOLDER]) {
    (void)snprintf(out, SFTI_JOB_FOLDER, "%s%.36s", JOB, uuid);
}

void sfti_ds_stored_name(const char *folder, const char *name, char out[SFTI_STORED_NAME]) {
    (void)snprintf(out, SFTI_STORED_NAME, "%s%s%s", folder, *folder ? "/" : "", name);
}

/* "<uuid>:<number>", and ":<columns>" of a dataset that is appended to */
sft_code sfti_ds_job_parse(sft_span text, sfti_ds_job *out, sft_error *err) {
    uint64_t first = 0;
    sft_span rest = { NULL, 0 };
    bool good = text.len > UUID_LEN + 1 && name_uuid(text.data) && text.data[UUID_LEN] == ':';
    if (good) rest = (sft_span){ text.data + UUID_LEN + 1, text.len - UUID_LEN - 1 };
    if (!good || !sfti_text_digits(&rest, 1, &first) || (rest.len && rest.data[0] != ':'))
        return sfti_misuse(err, "expected the text of sft_commit_job, found \"%.*s\"",
                           SFTI_CLIP(text, 60));
    memcpy(out->uuid, text.data, UUID_LEN);
    out->uuid[UUID_LEN] = '\0';
    sfti_ds_job_folder(out->uuid, out->folder);
    out->first = first;
    out->id = (sft_span){ text.data, text.len - rest.len };
    out->columns = (sft_span){ rest.data + (rest.len > 0), rest.len - (rest.len > 0) };
    return SFT_OK;
}

void sfti_ds_addressed_name(const char *kind, const char *sha256,
                            char out[SFTI_SEGMENT_FILE_NAME]) {
    (void)snprintf(out, SFTI_SEGMENT_FILE_NAME, "%s%.64s", kind, sha256);
}

bool sfti_ds_is_segment(sft_span name) {
    return name_starts(&name, SFTI_SEGMENT_FILE) && name.len == 64 && name_all_hex(name);
}

bool sfti_ds_is_addressed(sft_span name) {
    if (sfti_ds_is_segment(name)) return true;
    if (!name_starts(&name, SFTI_MASKS_FILE) && !name_starts(&name, SFTI_PLACES_FILE)) return false;
    return name.len == 64 && name_all_hex(name);
}

bool sfti_ds_is_columns(sft_span name) {
    uint64_t file, shard;
    return name_starts(&name, ".") && sfti_ds_shard_parse(name, &file, &shard);
}

bool sfti_ds_is_part(sft_span name) {
    uint64_t file, shard;
    return sfti_ds_shard_parse(name, &file, &shard) || sfti_ds_is_columns(name);
}

void sfti_ds_version_name(uint64_t version, const char *history,
                          char out[SFTI_VERSION_FILE_NAME]) {
    (void)snprintf(out, SFTI_VERSION_FILE_NAME, SFTI_VERSION_FILE "%llu-%.36s",
                   (unsigned long long)version, history);
}

bool sfti_ds_is_version(sft_span name, uint64_t *version, sft_span *history) {
    const sft_span whole = name;
    char made[SFTI_VERSION_FILE_NAME];
    if (!name_starts(&name, SFTI_VERSION_FILE) || !sfti_text_digits(&name, 1, version) ||
        !name_starts(&name, "-") || name.len != UUID_LEN || !name_uuid(name.data))
        return false;
    *history = name;
    sfti_ds_version_name(*version, name.data, made); /* one name a version: no zeros before it */
    return sft_span_equal(whole, sft_span_cstr(made));
}

bool sfti_ds_is_bare(sft_span name) {
    return name.len && !memchr(name.data, '/', name.len) && !memchr(name.data, '\\', name.len) &&
           !memchr(name.data, '\0', name.len) && !sft_span_equal(name, sft_span_cstr(".")) &&
           !sft_span_equal(name, sft_span_cstr(".."));
}

bool sfti_ds_is_commit_file(sft_span name, uint64_t *number) {
    if (!name_starts(&name, SFTI_COMMIT_FILE) || !sfti_text_digits(&name, 1, number) ||
        !name_starts(&name, "-"))
        return false;
    if (sft_span_equal(name, sft_span_cstr("none"))) return true; /* else a digest's first digits */
    return name.len == SFTI_COMMIT_DIGITS && name_all_hex(name);
}
