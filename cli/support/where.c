/* --where: conditions read, and compared with the fields of a model. Tests: tests/cli/find. */
#include "support/where.h"

#include "safetensors_info.h"
#include "support/fields.h"
#include "support/words.h"

#include <stdlib.h>
#include <string.h>

/* ── Texts ── */

bool cli_text_has(sft_span text, sft_span word) {
    for (size_t i = 0; i + word.len <= text.len; i++) {
        if (cli_same_letters((sft_span){ text.data + i, word.len }, word)) return true;
    }
    return false;
}

static sft_span trimmed(sft_span text) {
    while (text.len > 0 && *text.data == ' ') text.data++, text.len--;
    while (text.len > 0 && text.data[text.len - 1] == ' ') text.len--;
    return text;
}

/* "i2v" and "14b+i2v" are in "14b+i2v". */
static bool has_joined(sft_span all, sft_span words) {
    sft_span want, have;
    while (cli_next_part(&words, '+', &want)) {
        sft_span rest = all;
        bool found = false;
        while (!found && cli_next_part(&rest, '+', &have)) found = cli_same_letters(have, want);
        if (!found) return false;
    }
    return true;
}

/* ── Numbers ── */

static const struct where_unit { const char *name; double factor; bool bytes; } where_units[] = {
    { "K", 1e3, false }, { "M", 1e6, false }, { "B", 1e9, false }, { "T", 1e12, false },
    { "B", 1, true }, { "K", 1e3, true }, { "KB", 1e3, true }, { "M", 1e6, true },
    { "MB", 1e6, true }, { "G", 1e9, true }, { "GB", 1e9, true }, { "T", 1e12, true },
    { "TB", 1e12, true }, { "P", 1e15, true }, { "PB", 1e15, true }, { "EB", 1e18, true },
    { "Ki", 0x1p10, true }, { "KiB", 0x1p10, true }, { "Mi", 0x1p20, true },
    { "MiB", 0x1p20, true }, { "Gi", 0x1p30, true }, { "GiB", 0x1p30, true },
    { "Ti", 0x1p40, true }, { "TiB", 0x1p40, true }, { "Pi", 0x1p50, true },
    { "PiB", 0x1p50, true }, { "EiB", 0x1p60, true },
};

static size_t digits_at(sft_span text, size_t i) {
    size_t n = 0;
    while (i + n < text.len && text.data[i + n] >= '0' && text.data[i + n] <= '9') n++;
    return n;
}

/* Length of the number a text begins with, as in JSON but for its plus; 0 for none. *decimals:
 * digits behind the point. */
static size_t number_length(sft_span text, size_t *decimals) {
    size_t sign = text.len > 0 && (*text.data == '-' || *text.data == '+');
    size_t whole = digits_at(text, sign), end = sign + whole;
    *decimals = 0;
    if (end < text.len && text.data[end] == '.') {
        *decimals = digits_at(text, end + 1);
        end += 1 + *decimals;
    }
    if (whole + *decimals == 0) return 0;
    if (end < text.len && (text.data[end] | 0x20) == 'e') {
        size_t more = end + 1;
        more += more < text.len && (text.data[more] == '-' || text.data[more] == '+');
        size_t digits = digits_at(text, more);
        if (digits > 0) end = more + digits;
    }
    return end;
}

/* A number without a unit, the whole of a text. */
static bool plain_number(sft_span text, double *out) {
    char buffer[64];
    size_t decimals, len = number_length(text, &decimals);
    if (len == 0 || len != text.len || len >= sizeof buffer) return false;
    memcpy(buffer, text.data, len);
    buffer[len] = 0;
    *out = strtod(buffer, NULL);
    return *out - *out == 0;
}

static bool read_number(cli_where *where, bool bytes) {
    sft_span text = where->value;
    size_t decimals, len = number_length(text, &decimals);
    double number;
    if (!plain_number((sft_span){ text.data, len }, &number)) return false;
    sft_span unit = trimmed((sft_span){ text.data + len, text.len - len });
    double factor = unit.len ? 0 : 1;
    for (size_t i = 0; factor == 0 && i < sizeof where_units / sizeof *where_units; i++)
        if (where_units[i].bytes == bytes
            && cli_same_letters(unit, sft_span_cstr(where_units[i].name)))
            factor = where_units[i].factor;
    where->number = number * factor;
    if (unit.len && factor > 1) {
        where->half = factor / 2;
        for (size_t i = 0; i < decimals; i++) where->half /= 10;
    }
    return factor > 0 && where->number - where->number == 0;
}

/* ── Dates ── */

/* "2024-05-31T12:30:00Z", or its beginning: how much of it there is, without fractions and zone;
 * 0 for what is no date. A blank may stand for the T. */
static size_t date_length(sft_span text) {
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";
    static const struct { size_t at; char most[3]; } limits[] = {
        { 5, "12" }, { 8, "31" }, { 11, "24" }, { 14, "59" }, { 17, "60" },
    };
    size_t n = 0;
    for (; n < text.len && shape[n]; n++) {
        char c = text.data[n];
        bool fits = shape[n] == 'd' ? c >= '0' && c <= '9'
                                    : c == shape[n] || (shape[n] == 'T' && c == ' ');
        if (!fits) break;
    }
    if (n != 4 && n != 7 && n != 10 && n != 16 && n != 19) return 0;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (n <= limits[i].at) break;
        if (memcmp(text.data + limits[i].at, limits[i].most, 2) > 0) return 0;
        if (limits[i].at < 11 && memcmp(text.data + limits[i].at, "00", 2) == 0) return 0;
    }
    return n;
}

static bool read_date(const cli_where *where) {
    size_t len = date_length(where->value);
    sft_span rest = { where->value.data + len, where->value.len - len };
    return len > 0 && (rest.len == 0 || (len >= 16 && cli_is(rest, "Z")));
}

/* ── Comparing ── */

typedef enum where_order { WHERE_LESS, WHERE_EQUAL, WHERE_MORE, WHERE_APART } where_order;

static where_order order_of(int way) {
    return way < 0 ? WHERE_LESS : way > 0 ? WHERE_MORE : WHERE_EQUAL;
}

/* A date that is less exact than what is asked cannot be told apart from it. */
static where_order compare_date(sft_span text, sft_span asked) {
    size_t have = date_length(text), want = date_length(asked);
    for (size_t i = 0; i < have && i < want; i++) {
        char a = text.data[i] == ' ' ? 'T' : text.data[i];
        char b = asked.data[i] == ' ' ? 'T' : asked.data[i];
        if (a != b) return order_of(a < b ? -1 : 1);
    }
    return have >= want && have > 0 ? WHERE_EQUAL : WHERE_APART;
}

static where_order compare_number(sft_span text, const cli_where *where) {
    double value;
    if (sft_span_equal(text, where->value)) return WHERE_EQUAL; /* of any size */
    if (!plain_number(text, &value)) return WHERE_APART;
    return order_of((value > where->number) - (value < where->number));
}

static bool is_equal(const cli_where *where, sft_span text) {
    double value;
    switch (where->type) {
    case CLI_FIELD_NUMBER: case CLI_FIELD_BYTES:
        if (compare_number(text, where) == WHERE_EQUAL) return true;
        return where->half > 0 && plain_number(text, &value)
            && value >= where->number - where->half && value < where->number + where->half;
    case CLI_FIELD_DATE: return compare_date(text, where->value) == WHERE_EQUAL;
    case CLI_FIELD_TEXT: case CLI_FIELD_BOOL: case CLI_FIELD_ANY: break;
    }
    if (where->joined && has_joined(text, where->value)) return true;
    return cli_same_letters(text, where->value);
}

static where_order compare(const cli_where *where, sft_span text) {
    return where->type == CLI_FIELD_DATE ? compare_date(text, where->value)
                                         : compare_number(text, where);
}

static bool fits(const cli_where *where, sft_span text) {
    switch (where->op) {
    case CLI_WHERE_EQUAL: case CLI_WHERE_OTHER: return is_equal(where, text);
    case CLI_WHERE_HAS: return cli_text_has(text, where->value);
    case CLI_WHERE_LESS: return compare(where, text) == WHERE_LESS;
    case CLI_WHERE_MORE: return compare(where, text) == WHERE_MORE;
    case CLI_WHERE_MOST: return compare(where, text) == WHERE_LESS || is_equal(where, text);
    case CLI_WHERE_LEAST: break;
    }
    return compare(where, text) == WHERE_MORE || is_equal(where, text);
}

/* ── Reading ── */

static const struct where_op { const char *text; cli_where_op op; } where_ops[] = {
    { "!=", CLI_WHERE_OTHER }, { "<=", CLI_WHERE_MOST }, { ">=", CLI_WHERE_LEAST },
    { "==", CLI_WHERE_EQUAL }, { "=", CLI_WHERE_EQUAL }, { "~", CLI_WHERE_HAS },
    { "<", CLI_WHERE_LESS }, { ">", CLI_WHERE_MORE },
};

static bool is_order(cli_where_op op) {
    return op >= CLI_WHERE_LESS;
}

static sft_code refuse_op(const cli_where *where, const char *op, sft_error *err) {
    static const char *const names[] = { "text", "a number", "a size", "a date",
                                         "true or false", "text" };
    bool order = is_order(where->op), logic = where->type == CLI_FIELD_BOOL;
    bool size = cli_is(where->field, "size"); /* full or pruned */
    return cli_usage_error(err, "expected %s after %.*s, which is %s, found \"%s\"%s",
                           logic ? "= or !=" : order ? "=, != or ~" : "=, !=, <, <=, > or >=",
                           (int)where->field.len, where->field.data, names[where->type], op,
                           size ? ": did you mean bytes?" : "");
}

static sft_code refuse_value(const cli_where *where, const char *expected, sft_error *err) {
    return cli_usage_error(err, "expected %s as value of %.*s, found \"%.*s\"", expected,
                           (int)where->field.len, where->field.data, (int)where->value.len,
                           where->value.data);
}

static bool read_bool(cli_where *where) {
    static const char *const words[][2] = { { "true", "true" }, { "yes", "true" },
                                            { "1", "true" }, { "false", "false" },
                                            { "no", "false" }, { "0", "false" } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!cli_same_letters(where->value, sft_span_cstr(words[i][0]))) continue;
        where->value = sft_span_cstr(words[i][1]);
        return true;
    }
    return false;
}

static sft_code check_value(cli *c, cli_where *where, const cli_field_place *place,
                            sft_error *err) {
    bool bytes = where->type == CLI_FIELD_BYTES;
    switch (where->type) {
    case CLI_FIELD_NUMBER: case CLI_FIELD_BYTES:
        if (!read_number(where, bytes))
            return refuse_value(where, bytes ? "a size such as 500MB or 1.5GiB"
                                             : "a number such as 12, 1.5K or 7B", err);
        /* No field of a result has a greater number. */
        if (where->number > 0x1p64 || where->number < -0x1p64)
            return refuse_value(where, "a number below 2^64", err);
        return SFT_OK;
    case CLI_FIELD_DATE:
        if (read_date(where)) return SFT_OK;
        return refuse_value(where, "a date such as 2024, 2024-05 or 2024-05-31", err);
    case CLI_FIELD_BOOL:
        return read_bool(where) ? SFT_OK : refuse_value(where, "true or false", err);
    case CLI_FIELD_TEXT: case CLI_FIELD_ANY: break;
    }
    return cli_field_check(c, place, where->value, err);
}

static sft_code check_where(cli *c, cli_where *where, const cli_field_place *place,
                            const char *op, sft_error *err) {
    bool empty = where->value.len == 0;
    /* What each value says itself is taken for what is asked: a number, a date, else text. */
    if (where->type == CLI_FIELD_ANY) {
        if (where->op == CLI_WHERE_HAS) where->type = CLI_FIELD_TEXT;
        else if (read_number(where, false)) where->type = CLI_FIELD_NUMBER;
        else where->type = read_date(where) ? CLI_FIELD_DATE : CLI_FIELD_TEXT;
    }
    bool text = where->type == CLI_FIELD_TEXT, logic = where->type == CLI_FIELD_BOOL;
    bool number = where->type == CLI_FIELD_NUMBER || where->type == CLI_FIELD_BYTES;
    if (is_order(where->op) ? text || logic : where->op == CLI_WHERE_HAS && (number || logic))
        return refuse_op(where, op, err);
    if (where->op == CLI_WHERE_HAS)
        return empty ? refuse_value(where, "a part of a text", err) : SFT_OK;
    if (empty && !is_order(where->op)) return SFT_OK;
    return check_value(c, where, place, err);
}

static sft_code parse_where(cli *c, const char *text, cli_where *out, sft_error *err) {
    const struct where_op *op = NULL;
    size_t at = 0;
    for (; text[at]; at++) {
        for (size_t i = 0; !op && i < sizeof where_ops / sizeof *where_ops; i++)
            if (strncmp(text + at, where_ops[i].text, strlen(where_ops[i].text)) == 0)
                op = &where_ops[i];
        if (op) break;
    }
    sft_span field = trimmed((sft_span){ text, at });
    cli_field_place place;
    bool known = cli_field_place_of(field, &place);
    if (!op && known)
        return cli_usage_error(err, "expected FIELD=VALUE (or !=, ~, <, <=, >, >=, in quotes), "
                                    "found \"%s\"", text);
    if (!known) return cli_field_unknown(field, err);
    *out = (cli_where){ .field = field, .op = op->op, .type = place.type,
                        .joined = place.fact == SFT_FACT_VARIANT,
                        .value = trimmed(sft_span_cstr(text + at + strlen(op->text))) };
    return check_where(c, out, &place, op->text, err);
}

sft_code cli_where_read(cli *c, cli_wheres *out, sft_error *err) {
    for (out->count = 0; out->count < c->set.where.count; out->count++) {
        cli_where *where = &out->items[out->count];
        sft_code code = parse_where(c, c->set.where.items[out->count], where, err);
        if (code) return code;
        c->wants_metadata = c->wants_metadata || cli_field_is_metadata(where->field);
    }
    return SFT_OK;
}

/* ── Models ── */

typedef struct where_take {
    const cli_where *where;
    bool any, fits; /* whether there is a value, and one that fits */
} where_take;

static bool take_where(void *ctx, sft_span text) {
    where_take *take = ctx;
    take->any = true;
    take->fits = fits(take->where, text);
    return !take->fits;
}

bool cli_where_fits(cli *c, const cli_where *where, const sft_node *root) {
    where_take take = { where, false, false };
    cli_field_values(c, root, where->field, take_where, &take);
    bool yes = where->value.len == 0 ? !take.any : take.fits;
    return where->op == CLI_WHERE_OTHER ? !yes : yes;
}

bool cli_wheres_fit(cli *c, const cli_wheres *wheres, const sft_node *root) {
    for (size_t i = 0; i < wheres->count; i++)
        if (!cli_where_fits(c, &wheres->items[i], root)) return false;
    return true;
}
