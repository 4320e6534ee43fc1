/* Dates as ISO 8601: from seconds and days, and checked where they come as text. Tests:
 * test_text.c. */
#include "text/formats.h"
#include "text/text.h"

#include "base/calendar.h"
#include "base/json_lex.h"

#include <stdio.h>
#include <string.h>

#define DATE_LAST 253402300799.0 /* 9999-12-31T23:59:59 */

/* ── Times ── */

static size_t iso_text(int64_t seconds, char out[SFTI_DATE_SIZE]) {
    int64_t days = seconds / 86400, rest = seconds % 86400, year;
    unsigned month, day;
    if (rest < 0) days--, rest += 86400;
    sfti_date_of_days(days, &year, &month, &day);
    if (year < 0 || year > 9999) return 0;
    return (size_t)snprintf(out, SFTI_DATE_SIZE, "%04d-%02u-%02uT%02d:%02d:%02dZ", (int)year, month,
                            day, (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
}

size_t sfti_iso_of_epoch(double seconds, char out[SFTI_DATE_SIZE]) {
    return seconds >= 1 && seconds <= DATE_LAST ? iso_text((int64_t)seconds, out) : 0;
}

/* Exactly count digits at the cursor. */
static bool date_digits(sft_span *text, size_t count, unsigned *out) {
    unsigned value = 0;
    if (text->len < count) return false;
    for (size_t i = 0; i < count; i++) {
        if (!sfti_lex_digit(text->data[i])) return false;
        value = value * 10 + (unsigned)(text->data[i] - '0');
    }
    text->data += count;
    text->len -= count;
    *out = value;
    return true;
}

static bool date_char(sft_span *text, const char *any_of) {
    if (text->len == 0 || *text->data == '\0' || !strchr(any_of, *text->data)) return false;
    text->data++;
    text->len--;
    return true;
}

typedef struct iso_parts { unsigned year, month, day, hour, minute, second; } iso_parts;

static bool iso_day(sft_span *text, iso_parts *parts) {
    int64_t year;
    unsigned month, day;
    bool fine = date_digits(text, 4, &parts->year) && date_char(text, "-/")
        && date_digits(text, 2, &parts->month) && date_char(text, "-/")
        && date_digits(text, 2, &parts->day) && parts->month >= 1 && parts->month <= 12
        && parts->day >= 1 && parts->day <= 31;
    if (!fine) return false;
    /* the 31st of February is a day of March */
    sfti_date_of_days(sfti_days_of_date(parts->year, parts->month, parts->day), &year, &month,
                      &day);
    return day == parts->day;
}

static bool iso_time(sft_span *text, iso_parts *parts) {
    unsigned ignored;
    if (!date_digits(text, 2, &parts->hour) || !date_char(text, ":")
        || !date_digits(text, 2, &parts->minute) || parts->hour > 23 || parts->minute > 59)
        return false;
    if (!date_char(text, ":")) return true;
    if (!date_digits(text, 2, &parts->second) || parts->second > 60) return false;
    if (date_char(text, ".,"))
        while (date_digits(text, 1, &ignored)) {}
    return true;
}

/* Minutes east of UTC; false when there is no zone. */
static bool iso_zone(sft_span *text, int *minutes) {
    unsigned hour, minute = 0;
    date_char(text, " ");
    *minutes = 0;
    if (date_char(text, "Zz")) return true;
    int sign = text->len > 0 && *text->data == '-' ? -1 : 1;
    if (!date_char(text, "+-") || !date_digits(text, 2, &hour)) return false;
    date_char(text, ":");
    if (text->len > 0 && !date_digits(text, 2, &minute)) return false;
    *minutes = sign * (int)(hour * 60 + minute);
    return hour < 24 && minute < 60;
}

size_t sfti_iso_date(sft_span text, char out[SFTI_DATE_SIZE]) {
    iso_parts parts = { 0, 0, 0, 0, 0, 0 };
    int minutes;
    text = sfti_trim(text);
    if (!iso_day(&text, &parts)) return 0;
    if (text.len == 0)
        return (size_t)snprintf(out, SFTI_DATE_SIZE, "%04u-%02u-%02u", parts.year, parts.month,
                                parts.day);
    if (!date_char(&text, "Tt ") || !iso_time(&text, &parts)) return 0;
    if (text.len == 0)
        return (size_t)snprintf(out, SFTI_DATE_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u", parts.year,
                                parts.month, parts.day, parts.hour, parts.minute, parts.second);
    if (!iso_zone(&text, &minutes) || text.len > 0) return 0;
    return iso_text(sfti_days_of_date(parts.year, parts.month, parts.day) * 86400
                        + parts.hour * 3600 + parts.minute * 60 + parts.second
                        - (int64_t)minutes * 60, out);
}

/* ── Resolutions ── */

size_t sfti_resolution(sft_span text, char out[SFTI_DATE_SIZE]) {
    unsigned long sides[2] = { 0, 0 };
    size_t count = 0;
    text = sfti_trim(text);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool digit = sfti_lex_digit(c);
        if (digit && (i == 0 || !sfti_lex_digit(text.data[i - 1])) && ++count > 2) return 0;
        if (digit && sides[count - 1] < 1000000)
            sides[count - 1] = sides[count - 1] * 10 + (unsigned)(c - '0');
        if (!digit && (c == '\0' || !strchr("xX*,()[] ", c))) return 0;
    }
    if (count == 0 || sides[0] == 0 || sides[0] >= 1000000) return 0;
    if (count == 1) sides[1] = sides[0];
    if (sides[1] == 0 || sides[1] >= 1000000) return 0;
    return (size_t)snprintf(out, SFTI_DATE_SIZE, "%lux%lu", sides[0], sides[1]);
}
