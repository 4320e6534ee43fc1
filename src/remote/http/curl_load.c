/* libcurl is loaded, and stays: what it has loaded itself does not like to be unloaded. */
#include "os/io.h"
#include "remote/http/curl.h"

#include <string.h>

#ifdef SFT_CURL_HEADER
#define CURL_COMPARE(name, number) _Static_assert((int)(name) == (number), #name);
CURL_NUMBERS(CURL_COMPARE)
#endif

static const sfti_symbol curl_symbols[] = {
    { "curl_global_init", offsetof(sfti_curl, global_init) },
    { "curl_version", offsetof(sfti_curl, version) },
    { "curl_easy_init", offsetof(sfti_curl, easy_init) },
    { "curl_easy_setopt", offsetof(sfti_curl, easy_setopt) },
    { "curl_easy_perform", offsetof(sfti_curl, easy_perform) },
    { "curl_easy_getinfo", offsetof(sfti_curl, easy_getinfo) },
    { "curl_easy_reset", offsetof(sfti_curl, easy_reset) },
    { "curl_easy_cleanup", offsetof(sfti_curl, easy_cleanup) },
    { "curl_easy_strerror", offsetof(sfti_curl, easy_strerror) },
    { "curl_slist_append", offsetof(sfti_curl, slist_append) },
    { "curl_slist_free_all", offsetof(sfti_curl, slist_free_all) },
};

/* One for the process, filled by sfti_os_once(). */
static sfti_curl curl_functions;
static bool curl_is_loaded, curl_works;

static void load_curl(void) {
    /* The library of macOS first, by its path: a name would be looked for in the current folder
     * there. On Windows anybody may make a folder of that path. */
    static const struct {
        sfti_path_rule host;
        const char *library;
    } rows[] = {
        { SFTI_PATHS_POSIX, "/usr/lib/libcurl.4.dylib" },
        { SFTI_PATHS_POSIX, "libcurl.so.4" },
        { SFTI_PATHS_POSIX, "libcurl-gnutls.so.4" },
        { SFTI_PATHS_POSIX, "libcurl.so" },
        { SFTI_PATHS_WINDOWS, "libcurl-x64.dll" },
        { SFTI_PATHS_WINDOWS, "libcurl-arm64.dll" },
        { SFTI_PATHS_WINDOWS, "libcurl-4.dll" },
        { SFTI_PATHS_WINDOWS, "libcurl.dll" },
    };
    bool found = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !found; i++) {
        found = rows[i].host == SFTI_OS_PATHS
             && sfti_library_load(rows[i].library, curl_symbols,
                                  sizeof curl_symbols / sizeof *curl_symbols, &curl_functions);
    }
    curl_works = found && curl_functions.global_init(CURL_GLOBAL_ALL) == CURLE_OK;
}

const sfti_curl *sfti_curl_load(void) {
    sfti_os_once(&curl_is_loaded, load_curl);
    return curl_works ? &curl_functions : NULL;
}

const char *sft_transport_curl_version(char buffer[32]) {
    const sfti_curl *lib = sfti_curl_load();
    size_t len = 0;
    if (!lib) return NULL;
    const char *text = lib->version(); /* "libcurl/7.88.1 OpenSSL/3.0.9 ..." */
    const char *slash = strchr(text, '/');
    if (slash) text = slash + 1;
    while (len < 31 && text[len] && text[len] != ' ') len++;
    memcpy(buffer, text, len);
    buffer[len] = '\0';
    return buffer;
}
