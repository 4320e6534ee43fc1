/* A Parquet file without data: an index, of which verify reads the footer only. */
#ifndef PARQUET_FOOTER_H
#define PARQUET_FOOTER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct pf_file {
    uint8_t bytes[1024];
    size_t len;
} pf_file;

static inline void pf_put(pf_file *p, const void *bytes, size_t len) {
    if (len > sizeof p->bytes - p->len) abort();
    memcpy(p->bytes + p->len, bytes, len);
    p->len += len;
}
#define PF_PUT(p, text) pf_put(p, text, sizeof(text) - 1)

static inline void pf_text(pf_file *p, const char *text) {
    uint8_t len = (uint8_t)strlen(text);
    pf_put(p, &len, 1);
    pf_put(p, text, len);
}

/* rows, below 64; files: least and greatest, or NULL; commit, or NULL; the fourth column. */
static inline pf_file pf_index(uint8_t rows, const char *least, const char *most,
                               const char *of, const char *fourth) {
    pf_file p = { { 0 }, 0 };
    uint8_t twice = (uint8_t)(2 * rows), len[8] = { 0, 0, 0, 0, 'P', 'A', 'R', '1' };
    PF_PUT(&p, "PAR1\x16\x02\x19\x5c\x48\x06schema\x16\x08\x00\x48\x0atensor_key\x00"
            "\x48\x09" "file_name\x00\x48\x05shape\x00\x48");
    pf_text(&p, fourth);
    PF_PUT(&p, "\x00\x16");
    pf_put(&p, &twice, 1);
    PF_PUT(&p, "\x19\x1c\x19");
    if (least) {
        PF_PUT(&p, "\x1c\x26\x08\x1c\x16\x0c\x29\x18\x09" "file_name\x26\x06\x7c\x36\x00\x28");
        pf_text(&p, most);
        PF_PUT(&p, "\x18");
        pf_text(&p, least);
        PF_PUT(&p, "\x11\x12\x00\x00\x00");
    } else {
        PF_PUT(&p, "\x0c");
    }
    PF_PUT(&p, "\x16\x00\x16\x06\x00");
    if (of) {
        PF_PUT(&p, "\x19\x2c\x18\x05other\x18\x04text\x00\x18\x06" "commit\x18");
        pf_text(&p, of);
        PF_PUT(&p, "\x00");
    }
    PF_PUT(&p, "\x00");
    len[0] = (uint8_t)(p.len - 4);
    len[1] = (uint8_t)((p.len - 4) >> 8);
    pf_put(&p, len, 8);
    return p;
}

#endif
