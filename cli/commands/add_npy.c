#include "commands/add_npy.h"

#include "base/checked.h"
#include "base/endian.h"
#include "os/io.h"
#include "support/hints.h"
#include "support/values.h"
#include "support/words.h"

#include <string.h>

#define NPY_HEADER_MOST 65536

static sft_code npy_fail(sft_error *err, sft_code code, const char *text, sft_span found) {
    sfti_fail(err, code, SFT_NO_OFFSET, "%s, found \"%.*s\"", text,
              found.len < 100 ? (int)found.len : 100, found.data);
    sfti_hint(err, SFT_HINT_NONE);
    return code;
}

static sft_code npy_broken(sft_error *err, const char *expected) {
    return cli_usage_error(err, "expected a .npy file with %s, found none", expected);
}

/* ── The header: a Python dictionary of three things ── */

typedef struct npy_text {
    const char *at, *end;
    sft_error *err;
} npy_text;

static void npy_space(npy_text *t) {
    while (t->at < t->end && strchr(" \t\r\n", *t->at)) t->at++;
}

static bool npy_take(npy_text *t, const char *word) {
    size_t len = strlen(word);
    npy_space(t);
    if ((size_t)(t->end - t->at) < len || memcmp(t->at, word, len) != 0) return false;
    t->at += len;
    return true;
}

static bool npy_string(npy_text *t, sft_span *out) {
    npy_space(t);
    if (t->at >= t->end || (*t->at != '\'' && *t->at != '"')) return false;
    const char *begin = t->at + 1, *quote = memchr(begin, *t->at, (size_t)(t->end - begin));
    if (!quote) return false;
    *out = (sft_span){ begin, (size_t)(quote - begin) };
    t->at = quote + 1;
    return true;
}

static bool npy_number(npy_text *t, uint64_t *out) {
    npy_space(t);
    const char *begin = t->at;
    *out = 0;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
        uint64_t digit = (uint64_t)(*t->at - '0');
        if (!sfti_mul(*out, 10, out) || !sfti_add(*out, digit, out)) return false;
    }
    (void)npy_take(t, "L"); /* of Python 2 */
    return t->at > begin;
}

static bool npy_shape(npy_text *t, cli_npy *out) {
    if (!npy_take(t, "(")) return false;
    for (out->rank = 0; !npy_take(t, ")");) {
        if (out->rank == SFT_MAX_RANK || !npy_number(t, &out->shape[out->rank++])) return false;
        if (npy_take(t, ",")) continue;
        return npy_take(t, ")");
    }
    return true;
}

/* numpy's code, whatever stands for the byte order where it is ours or does not matter. */
static sft_code npy_dtype(sft_span code, cli_npy *out, sft_error *err) {
    for (int d = 0; d < SFT_DTYPE_COUNT && code.len > 1; d++) {
        const char *known = cli_numpy_code((sft_dtype)d);
        if (!known || code.len != strlen(known) || memcmp(code.data + 1, known + 1, code.len - 1))
            continue;
        out->dtype = (sft_dtype)d;
        if (code.data[0] == known[0] || code.data[0] == '=' || *known == '|') return SFT_OK;
        sft_code failed = npy_fail(err, SFT_BAD_ARGUMENT,
                                   "expected little-endian values", code);
        cli_hint(err, CLI_HINT_NPY_ORDER);
        return failed;
    }
    return npy_fail(err, SFT_DTYPE_UNKNOWN, "expected a dtype that safetensors has", code);
}

/* One member; *seen gets its bit. */
static sft_code npy_member(npy_text *t, cli_npy *out, unsigned *seen, bool *fortran) {
    sft_span key, code;
    if (!npy_string(t, &key) || !npy_take(t, ":")) return npy_broken(t->err, "a header");
    if (cli_is(key, "descr")) {
        *seen |= 1;
        if (npy_string(t, &code)) return npy_dtype(code, out, t->err);
        return npy_broken(t->err, "plain values (no records)");
    }
    if (cli_is(key, "fortran_order")) {
        *seen |= 2;
        *fortran = npy_take(t, "True");
        return *fortran || npy_take(t, "False") ? SFT_OK : npy_broken(t->err, "an order");
    }
    if (!cli_is(key, "shape")) return npy_broken(t->err, "a header");
    *seen |= 4;
    return npy_shape(t, out) ? SFT_OK : npy_broken(t->err, "a shape");
}

/* Fortran's order and C's are one where at most one dimension is not 1. */
static bool npy_is_one_order(const cli_npy *npy) {
    uint32_t long_ones = 0;
    for (uint32_t d = 0; d < npy->rank; d++) long_ones += npy->shape[d] != 1;
    return long_ones <= 1;
}

static sft_code npy_header(const char *text, size_t len, cli_npy *out, sft_error *err) {
    npy_text t = { text, text + len, err };
    unsigned seen = 0;
    bool fortran = false;
    if (!npy_take(&t, "{")) return npy_broken(err, "a header");
    while (!npy_take(&t, "}")) {
        sft_code code = npy_member(&t, out, &seen, &fortran);
        if (code) return code;
        (void)npy_take(&t, ",");
    }
    if (seen != 7) return npy_broken(err, "dtype, order and shape");
    if (!fortran || npy_is_one_order(out)) return SFT_OK;
    sft_code code = cli_usage_error(err, "expected values in C order, found Fortran order");
    cli_hint(err, CLI_HINT_NPY_PACKED);
    return code;
}

/* ── The file ── */

/* Exactly len bytes at offset. */
static sft_code npy_read(const cli_npy *npy, uint64_t offset, void *into, size_t len,
                         sft_error *err) {
    size_t got = 0;
    if (npy->source.size < offset || npy->source.size - offset < len)
        return npy_broken(err, "a whole header");
    sft_code code = sft_source_read(&npy->source, offset, into, len, &got, err);
    if (code || got == len) return code;
    return npy_broken(err, "a whole header");
}

static sft_code npy_read_header(cli *c, cli_npy *out, sft_error *err) {
    uint8_t head[12];
    sft_code code = npy_read(out, 0, head, 10, err);
    if (code) return code;
    bool wide = head[6] >= 2;
    if (memcmp(head, "\x93NUMPY", 6) != 0 || head[6] < 1 || head[6] > 3)
        return npy_broken(err, "its first bytes, of version 1 to 3");
    if (wide) code = npy_read(out, 0, head, 12, err);
    if (code) return code;
    uint64_t at = wide ? 12 : 10, len = wide ? sfti_get_u32(head + 8) : sfti_get_u16(head + 8);
    if (len > NPY_HEADER_MOST) return npy_broken(err, "a header of at most 64 KiB");
    char *text = sfti_take(&c->alloc, (size_t)len + 1);
    if (!text) return sfti_fail_memory(err, len + 1);
    code = npy_read(out, at, text, (size_t)len, err);
    if (!code) code = npy_header(text, (size_t)len, out, err);
    sfti_release(&c->alloc, text, (size_t)len + 1);
    out->begin = at + len;
    return code;
}

static sft_code npy_check_size(const cli_npy *npy, sft_error *err) {
    uint64_t bytes;
    sft_code code = sft_shape_size(npy->dtype, npy->shape, npy->rank, NULL, &bytes, err);
    if (code || bytes == npy->source.size - npy->begin) return code;
    sfti_fail(err, SFT_SIZE_MISMATCH, SFT_NO_OFFSET,
              "expected %llu bytes by dtype and shape, found %llu", (unsigned long long)bytes,
              (unsigned long long)(npy->source.size - npy->begin));
    cli_hint(err, CLI_HINT_NPY_AGAIN);
    return SFT_SIZE_MISMATCH;
}

sft_code cli_npy_open(cli *c, const char *path, cli_npy *out, sft_error *err) {
    memset(out, 0, sizeof *out);
    int error = os_open_read(path, &out->fd);
    if (error) {
        out->fd = -1;
        return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    }
    sft_code code = sft_source_fd(out->fd, &c->alloc, &out->source, err);
    if (code) return code;
    os_info info;
    if (os_info_fd(out->fd, &info) == 0) out->mode = info.mode & 0777;
    if (out->source.size == SFT_SIZE_UNKNOWN)
        return sfti_fail(err, SFT_IO_NOT_FILE, SFT_NO_OFFSET, "expected a file, found a pipe");
    code = npy_read_header(c, out, err);
    return code ? code : npy_check_size(out, err);
}

void cli_npy_close(cli_npy *npy) {
    sft_source_close(&npy->source);
    if (npy->fd >= 0) (void)os_close(npy->fd);
    memset(npy, 0, sizeof *npy);
    npy->fd = -1;
}
