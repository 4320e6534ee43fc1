#include "support/where.h"

#include "base/error.h"
#include "support/fields.h"
#include "support/words.h"

#include <stdlib.h>
#include <string.h>

static int compare_letters(sft_span a, sft_span b) {
    size_t n = a.len < b.len ? a.len : b.len;
    for (size_t i = 0; i < n; i++) {
        unsigned char x = (unsigned char)cli_lower(a.data[i]);
        unsigned char y = (unsigned char)cli_lower(b.data[i]);
        if (x != y) return x < y ? -1 : 1;
    }
    return a.len < b.len ? -1 : a.len > b.len;
}

bool cli_text_has(sft_span text, sft_span word) {
    for (size_t i = 0; i + word.len <= text.len; i++) {
        if (compare_letters((sft_span){ text.data + i, word.len }, word) == 0) return true;
    }
    return false;
}

/* The whole of a text as a number. */
static bool number_of(sft_span text, double *out) {
    char buffer[64], *end;
    if (text.len == 0 || text.len >= sizeof buffer) return false;
    if (!strchr("+-.0123456789", text.data[0]) || !text.data[0]) return false;
    memcpy(buffer, text.data, text.len);
    buffer[text.len] = 0;
    *out = strtod(buffer, &end);
    return end == buffer + text.len && *out - *out == 0;
}

static sft_code parse_where(const char *text, cli_where *out, sft_error *err) {
    size_t len = strcspn(text, "=~<>");
    out->field = (sft_span){ text, len };
    out->op = text[len];
    out->value = text[len] ? sft_span_cstr(text + len + 1) : (sft_span){ "", 0 };
    if (out->op && cli_field_known(out->field)) return SFT_OK;
    return cli_usage_error(err, "expected --where FIELD=VALUE (or ~, <, >) of a known field, "
                                "found \"%s\"", text);
}

typedef struct where_take {
    const cli_where *where;
    bool fits;
} where_take;

static bool fits(const cli_where *where, sft_span text) {
    double a, b;
    if (where->op == '~') return cli_text_has(text, where->value);
    bool numbers = number_of(text, &a) && number_of(where->value, &b);
    int way = numbers ? (a > b) - (a < b) : compare_letters(text, where->value);
    return where->op == '=' ? way == 0 : where->op == '<' ? way < 0 : way > 0;
}

static bool take_where(void *ctx, sft_span text) {
    where_take *take = ctx;
    take->fits = fits(take->where, text);
    return !take->fits;
}

bool cli_where_fits(cli *c, const cli_where *where, const sft_node *root) {
    where_take take = { where, false };
    cli_field_values(c, root, where->field, take_where, &take);
    return take.fits;
}

sft_code cli_where_read(cli *c, cli_wheres *out, sft_error *err) {
    for (out->count = 0; out->count < c->set.where.count; out->count++) {
        cli_where *where = &out->items[out->count];
        sft_code code = parse_where(c->set.where.items[out->count], where, err);
        if (code) return code;
        c->wants_metadata = c->wants_metadata || cli_field_is_metadata(where->field);
    }
    return SFT_OK;
}

bool cli_wheres_fit(cli *c, const cli_wheres *wheres, const sft_node *root) {
    for (size_t i = 0; i < wheres->count; i++)
        if (!cli_where_fits(c, &wheres->items[i], root)) return false;
    return true;
}
