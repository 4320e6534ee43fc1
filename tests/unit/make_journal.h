/* Journals of edits, made by hand from their description in docs/editing.md. */
#ifndef TEST_MAKE_JOURNAL_H
#define TEST_MAKE_JOURNAL_H

#include "unit/temp_dir.h"

#include <stdint.h>

/* One range of the data at most. */
typedef struct test_journal {
    const char *old, *new; /* headers */
    uint64_t version, size, device_more, inode_more;
    uint64_t at, len; /* len 0: no range */
    const void *old_bytes, *new_bytes;
} test_journal;

static inline uint32_t journal_crc(const unsigned char *p, size_t len) {
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static inline size_t journal_word(unsigned char *text, size_t at, uint64_t value) {
    for (int i = 0; i < 8; i++) text[at + (size_t)i] = (unsigned char)(value >> (8 * i));
    return at + 8;
}

static inline size_t journal_bytes(unsigned char *text, size_t at, const void *bytes, size_t len) {
    if (len > 0) memcpy(text + at, bytes, len);
    return at + len;
}

static inline size_t journal_head(unsigned char *text, size_t at, const char *header) {
    at = journal_word(text, at, strlen(header));
    return journal_bytes(text, at, header, strlen(header));
}

#define JOURNAL_SIZE ((size_t)1 << 21)

/* Of the file of that device and inode. Returns its length. */
static inline size_t journal_text(const test_journal *j, uint64_t device, uint64_t inode,
                                  unsigned char text[JOURNAL_SIZE]) {
    uint64_t before = strlen(j->old) + 8, after = strlen(j->new) + 8;
    size_t at = 0;
    const uint64_t words[] = { 0, j->version ? j->version : 2, after > before ? 3 : 1,
                               device + j->device_more, inode + j->inode_more, j->size,
                               after - before, before, after, j->len > 0, j->len };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        at = journal_word(text, at, words[i]);
    memcpy(text, "sft-edit", 8);
    if (j->len) at = journal_word(text, journal_word(text, at, j->at), j->len);
    at = journal_head(text, journal_head(text, at, j->old), j->new);
    at = journal_bytes(text, at, j->old_bytes, j->len);
    at = journal_bytes(text, at, j->new_bytes, j->len);
    return journal_word(text, at, journal_crc(text, at));
}

/* As `name`, of the file `of`. Returns its length. */
static inline size_t make_journal(const test_journal *j, const char *of, const char *name) {
    static unsigned char text[JOURNAL_SIZE];
    struct stat st;
    if (stat(temp_path(of), &st) != 0) abort();
    size_t len = journal_text(j, (uint64_t)st.st_dev, (uint64_t)st.st_ino, text);
    temp_write(name, text, len);
    return len;
}

#endif
