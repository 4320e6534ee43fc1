#include "support/sizes.h"

#include "base/checked.h"
#include "base/error.h"
#include "support/options.h"
#include "support/words.h"

static sft_code bad_size(const char *text, sft_error *err) {
    return cli_usage_error(err, "expected a size such as 5GB, 512MiB or 1000, found \"%s\"", text);
}

/* Digits at *at, which moves past them; false when there are none or too many. */
static bool take_digits(const char **at, uint64_t *out) {
    const char *begin = *at;
    *out = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (!sfti_mul(*out, 10, out) || !sfti_add(*out, (uint64_t)(**at - '0'), out)) return false;
    }
    return *at > begin;
}

static const struct {
    const char *unit;
    uint64_t bytes;
} size_units[] = {
    { "", 1 },
    { "B", 1 },
    { "K", 1000 },
    { "KB", 1000 },
    { "KiB", UINT64_C(1) << 10 },
    { "M", 1000000 },
    { "MB", 1000000 },
    { "MiB", UINT64_C(1) << 20 },
    { "G", 1000000000 },
    { "GB", 1000000000 },
    { "GiB", UINT64_C(1) << 30 },
    { "T", UINT64_C(1000000000000) },
    { "TB", UINT64_C(1000000000000) },
    { "TiB", UINT64_C(1) << 40 },
};

/* whole + part / scale units, a fraction of a byte left out; 0: too many, or none. */
static uint64_t size_of(uint64_t whole, uint64_t part, uint64_t scale, uint64_t unit) {
    uint64_t bytes, more;
    if (!sfti_mul(whole, unit, &bytes) || !sfti_mul(part, unit, &more)) return 0;
    return sfti_add(bytes, more / scale, &bytes) ? bytes : 0;
}

sft_code cli_parse_size(const char *text, uint64_t *out, sft_error *err) {
    const char *at = text;
    uint64_t whole, part = 0, scale = 1;
    if (!take_digits(&at, &whole)) return bad_size(text, err);
    if (*at == '.') {
        const char *begin = ++at;
        if (!take_digits(&at, &part) || at - begin > 6) return bad_size(text, err);
        for (ptrdiff_t i = at - begin; i > 0; i--) scale *= 10;
    }
    if (*at == ' ') at++;
    for (size_t i = 0; i < sizeof size_units / sizeof *size_units; i++) {
        if (!cli_same_letters(sft_span_cstr(at), sft_span_cstr(size_units[i].unit))) continue;
        *out = size_of(whole, part, scale, size_units[i].bytes);
        return *out > 0 ? SFT_OK : bad_size(text, err);
    }
    return bad_size(text, err);
}

sft_code cli_parse_count(const char *text, const char *what, uint32_t *out, sft_error *err) {
    uint64_t value;
    if (cli_parse_number(text, UINT32_MAX, &value) && value > 0) {
        *out = (uint32_t)value;
        return SFT_OK;
    }
    return cli_usage_error(err, "expected a number of %s, found \"%s\"", what, text);
}
