/* Takes paths apart by the rule of a system. Tests: test_path.c. */
#include "base/path.h"

static size_t root_part(sfti_path_rule rule, sft_span path, size_t at) {
    while (at < path.len && !sfti_rule_separates(rule, path.data[at])) at++;
    return at < path.len ? at + 1 : at;
}

static bool begins_with_drive(sft_span path) {
    char letter = (char)(path.len > 1 ? path.data[0] | 0x20 : 0);
    return letter >= 'a' && letter <= 'z' && path.data[1] == ':';
}

size_t sfti_rule_root(sfti_path_rule rule, sft_span path) {
    if (rule == SFTI_PATHS_POSIX) return path.len > 0 && path.data[0] == '/';
    size_t at = 0;
    while (at < path.len && at < 2 && sfti_rule_separates(rule, path.data[at])) at++;
    if (at == 2) {
        /* Server and share, or ? or . and what follows. */
        at = root_part(rule, path, at);
        sft_span rest = { path.data + at, path.len - at };
        bool unc = rest.len > 3 && memcmp(rest.data, "UNC", 3) == 0 && path.data[2] == '?' &&
                   sfti_rule_separates(rule, rest.data[3]);
        if (unc) at = root_part(rule, path, at + 4);
        return root_part(rule, path, at);
    }
    if (at == 0 && begins_with_drive(path))
        at = path.len > 2 && sfti_rule_separates(rule, path.data[2]) ? 3 : 2;
    return at;
}

size_t sfti_rule_folder(sfti_path_rule rule, sft_span path) {
    size_t root = sfti_rule_root(rule, path), at = path.len;
    while (at > root && !sfti_rule_separates(rule, path.data[at - 1])) at--;
    return at;
}

size_t sfti_rule_trimmed(sfti_path_rule rule, sft_span path) {
    size_t root = sfti_rule_root(rule, path), at = path.len;
    while (at > root && sfti_rule_separates(rule, path.data[at - 1])) at--;
    return at;
}

char sfti_rule_joint(sfti_path_rule rule, sft_span folder) {
    if (folder.len == 0 || sfti_rule_separates(rule, folder.data[folder.len - 1])) return 0;
    if (rule == SFTI_PATHS_WINDOWS && folder.len == 2 && begins_with_drive(folder)) return 0;
    bool back = rule == SFTI_PATHS_WINDOWS && memchr(folder.data, '\\', folder.len) &&
                !memchr(folder.data, '/', folder.len);
    return back ? '\\' : '/';
}
