/* libcurl, by its binary interface: the numbers below have not changed since 7.54, which has the
 * last of them. Older ones do without those that they do not know. */
#ifndef SFTI_REMOTE_CURL_H
#define SFTI_REMOTE_CURL_H

#include "safetensors_remote.h"

/* What we use of <curl/curl.h>, for a build without it; with it the numbers are compared. */
#define CURL_NUMBERS(X)                                                                           \
    X(CURLOPT_HTTPGET, 80)                                                                        \
    X(CURLOPT_NOPROGRESS, 43)                                                                     \
    X(CURLOPT_POST, 47)                                                                           \
    X(CURLOPT_POSTFIELDSIZE, 60)                                                                  \
    X(CURLOPT_HTTP_VERSION, 84)                                                                   \
    X(CURLOPT_BUFFERSIZE, 98)                                                                     \
    X(CURLOPT_NOSIGNAL, 99)                                                                       \
    X(CURLOPT_TIMEOUT_MS, 155)                                                                    \
    X(CURLOPT_CONNECTTIMEOUT_MS, 156)                                                             \
    X(CURLOPT_PROTOCOLS, 181)                                                                     \
    X(CURLOPT_SSL_OPTIONS, 216)                                                                   \
    X(CURLOPT_PATH_AS_IS, 234)                                                                    \
    X(CURLOPT_SUPPRESS_CONNECT_HEADERS, 265)                                                      \
    X(CURLOPT_WRITEDATA, 10001)                                                                   \
    X(CURLOPT_URL, 10002)                                                                         \
    X(CURLOPT_PROXY, 10004)                                                                       \
    X(CURLOPT_ERRORBUFFER, 10010)                                                                 \
    X(CURLOPT_POSTFIELDS, 10015)                                                                  \
    X(CURLOPT_HTTPHEADER, 10023)                                                                  \
    X(CURLOPT_HEADERDATA, 10029)                                                                  \
    X(CURLOPT_XFERINFODATA, 10057)                                                                \
    X(CURLOPT_CAINFO, 10065)                                                                      \
    X(CURLOPT_CAPATH, 10097)                                                                      \
    X(CURLOPT_OPENSOCKETDATA, 10164)                                                              \
    X(CURLOPT_NOPROXY, 10177)                                                                     \
    X(CURLOPT_WRITEFUNCTION, 20011)                                                               \
    X(CURLOPT_HEADERFUNCTION, 20079)                                                              \
    X(CURLOPT_OPENSOCKETFUNCTION, 20163)                                                          \
    X(CURLOPT_XFERINFOFUNCTION, 20219)                                                            \
    X(CURLINFO_PRETRANSFER_TIME, 0x300006)                                                        \
    X(CURLINFO_SSL_VERIFYRESULT, 0x20000d)                                                        \
    X(CURLINFO_HTTP_CONNECTCODE, 0x200016)                                                        \
    X(CURLINFO_OS_ERRNO, 0x200019)                                                                \
    X(CURLPROTO_HTTP, 1)                                                                          \
    X(CURLPROTO_HTTPS, 2)                                                                         \
    X(CURL_HTTP_VERSION_1_1, 2)                                                                   \
    X(CURL_GLOBAL_ALL, 3)                                                                         \
    X(CURL_ERROR_SIZE, 256)                                                                       \
    X(CURLE_OK, 0)                                                                                \
    X(CURLE_UNSUPPORTED_PROTOCOL, 1)                                                              \
    X(CURLE_URL_MALFORMAT, 3)                                                                     \
    X(CURLE_COULDNT_RESOLVE_PROXY, 5)                                                             \
    X(CURLE_COULDNT_RESOLVE_HOST, 6)                                                              \
    X(CURLE_COULDNT_CONNECT, 7)                                                                   \
    X(CURLE_WEIRD_SERVER_REPLY, 8)                                                                \
    X(CURLE_PARTIAL_FILE, 18)                                                                     \
    X(CURLE_OUT_OF_MEMORY, 27)                                                                    \
    X(CURLE_OPERATION_TIMEDOUT, 28)                                                               \
    X(CURLE_SSL_CONNECT_ERROR, 35)                                                                \
    X(CURLE_GOT_NOTHING, 52)                                                                      \
    X(CURLE_SEND_ERROR, 55)                                                                       \
    X(CURLE_RECV_ERROR, 56)                                                                       \
    X(CURLE_SSL_CERTPROBLEM, 58)                                                                  \
    X(CURLE_SSL_CIPHER, 59)                                                                       \
    X(CURLE_PEER_FAILED_VERIFICATION, 60)                                                         \
    X(CURLE_SSL_CACERT_BADFILE, 77)                                                               \
    X(CURLE_SSL_CRL_BADFILE, 82)                                                                  \
    X(CURLE_SSL_ISSUER_ERROR, 83)                                                                 \
    X(CURLE_SSL_INVALIDCERTSTATUS, 91)

#ifdef SFT_CURL_HEADER
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#else
#define CURL_DEFINE(name, number) name = number,
enum { CURL_NUMBERS(CURL_DEFINE) };
#endif

typedef struct sfti_curl {
    int (*global_init)(long flags);
    const char *(*version)(void);
    void *(*easy_init)(void);
    int (*easy_setopt)(void *easy, int option, ...);
    int (*easy_perform)(void *easy);
    int (*easy_getinfo)(void *easy, int what, ...);
    void (*easy_reset)(void *easy);
    void (*easy_cleanup)(void *easy);
    const char *(*easy_strerror)(int code);
    void *(*slist_append)(void *list, const char *text);
    void (*slist_free_all)(void *list);
} sfti_curl;

/* Loaded at the first call; NULL: there is none that works. */
const sfti_curl *sfti_curl_load(void);

/* How a transfer ended other than well. */
typedef struct sfti_curl_failure {
    const sft_http_request *request;
    const char *strerror; /* of the code: without secrets */
    const char *text;     /* libcurl's own words: searched, never shown */
    int code;             /* CURLE_... */
    long verified, connect_status, os_error;
    uint64_t received;    /* bytes of the body */
    bool connected, stalled;
} sfti_curl_failure;

sft_code sfti_curl_fail(const sfti_curl_failure *failure, sft_error *err);

#endif
