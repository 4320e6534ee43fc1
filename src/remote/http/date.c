/* Dates of HTTP: RFC 9110, 5.6.7. Tests: test_remote_answer.c. */
#include "base/calendar.h"
#include "remote/http/answer.h"
#include "remote/http/text.h"

#include <string.h>

/* A pattern's letters: D day, d the same with a blank for a zero, M month's name, Y year, y its
 * last two digits, h m s; w a name of a day in letters. Others stand for themselves. */
static const char *const date_forms[] = {
    "w, D M Y h:m:s GMT", /* Sun, 06 Nov 1994 08:49:37 GMT */
    "w, D-M-y h:m:s GMT", /* Sunday, 06-Nov-94 08:49:37 GMT */
    "w M d h:m:s Y",      /* Sun Nov  6 08:49:37 1994 */
};

typedef struct date_parts {
    uint64_t year, month, day, hour, minute, second;
} date_parts;

static bool take_digits(sft_span *text, size_t count, uint64_t *out) {
    if (text->len < count || !sfti_text_uint((sft_span){ text->data, count }, out)) return false;
    *text = sfti_span_from(*text, count);
    return true;
}

static bool take_month(sft_span *text, uint64_t *out) {
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (uint64_t i = 0; text->len >= 3 && i < 12; i++) {
        if (memcmp(text->data, names + 3 * i, 3) != 0) continue;
        *text = sfti_span_from(*text, 3);
        *out = i + 1;
        return true;
    }
    return false;
}

static bool take_part(sft_span *text, char what, date_parts *to) {
    size_t len = 0;
    switch (what) {
    case 'w':
        while (len < text->len && sfti_is_letter(text->data[len])) len++;
        *text = sfti_span_from(*text, len);
        return len >= 3;
    case 'd':
        if (text->len > 0 && *text->data == ' ') {
            *text = sfti_span_from(*text, 1);
            return take_digits(text, 1, &to->day);
        }
        return take_digits(text, 2, &to->day);
    case 'D': return take_digits(text, 2, &to->day);
    case 'M': return take_month(text, &to->month);
    case 'Y': return take_digits(text, 4, &to->year);
    case 'y':
        if (!take_digits(text, 2, &to->year)) return false;
        to->year += to->year < 70 ? 2000 : 1900;
        return true;
    case 'h': return take_digits(text, 2, &to->hour);
    case 'm': return take_digits(text, 2, &to->minute);
    case 's': return take_digits(text, 2, &to->second);
    default:
        if (text->len == 0 || *text->data != what) return false;
        *text = sfti_span_from(*text, 1);
        return true;
    }
}

/* A day that its month does not have becomes one of the next month. */
static bool date_value(const date_parts *d, int64_t *out) {
    int64_t year, days = sfti_days_of_date((int64_t)d->year, (unsigned)d->month, (unsigned)d->day);
    unsigned month, day;
    sfti_date_of_days(days, &year, &month, &day);
    if (d->year < 1970 || month != d->month || day != d->day || d->hour > 23 || d->minute > 59
        || d->second > 60)
        return false;
    *out = days * 86400 + (int64_t)(d->hour * 3600 + d->minute * 60 + d->second);
    return true;
}

bool sfti_http_date(sft_span text, int64_t *out) {
    for (size_t i = 0; i < sizeof date_forms / sizeof *date_forms; i++) {
        date_parts parts = { .month = 1 };
        sft_span rest = text;
        const char *form = date_forms[i];
        /* "GMT" holds a pattern's letter, and is compared as a word. */
        while (*form && *form != 'G' && take_part(&rest, *form, &parts)) form++;
        if (sft_span_equal(rest, sft_span_cstr(form))) return date_value(&parts, out);
    }
    return false;
}
