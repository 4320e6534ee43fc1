#include "remote/stores/ini.h"

#include "remote/http/text.h"

#include <string.h>

void sfti_ini_begin(sfti_ini *ini, sft_span text) {
    *ini = (sfti_ini){ .rest = text };
    if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        ini->rest = sfti_span_from(text, 3);
}

/* Trimmed; *indented: blanks stood before it. */
static sft_span ini_line(sfti_ini *ini, bool *indented) {
    size_t len = sfti_text_find(ini->rest, '\n');
    sft_span line = { ini->rest.data, len };
    ini->rest = sfti_span_from(ini->rest, len < ini->rest.len ? len + 1 : len);
    *indented = len > 0 && (*line.data == ' ' || *line.data == '\t');
    if (len > 0 && line.data[len - 1] == '\r') line.len--;
    return sfti_text_trim(line);
}

/* A key with its value behind the first '=' or ':'. */
static bool ini_pair(sfti_ini *ini, sft_span line) {
    size_t at = 0;
    while (at < line.len && line.data[at] != '=' && line.data[at] != ':') at++;
    if (at == 0 || at == line.len) return false;
    ini->key = sfti_text_trim((sft_span){ line.data, at });
    ini->value = sfti_text_trim(sfti_span_from(line, at + 1));
    return true;
}

bool sfti_ini_next(sfti_ini *ini) {
    bool indented;
    while (ini->rest.len > 0) {
        sft_span line = ini_line(ini, &indented);
        if (line.len == 0 || *line.data == '#' || *line.data == ';') continue;
        if (*line.data == '[' && !indented) {
            size_t end = sfti_text_find(line, ']');
            ini->section = sfti_text_trim((sft_span){ line.data + 1, end - 1 });
            ini->last = (sft_span){ NULL, 0 };
        } else if (ini_pair(ini, line)) {
            ini->parent = indented ? ini->last : (sft_span){ NULL, 0 };
            if (!indented) ini->last = ini->value.len == 0 ? ini->key : (sft_span){ NULL, 0 };
            /* An indented line below a value continues it, and says nothing here. */
            if (!indented || ini->parent.data) return true;
        }
    }
    return false;
}
