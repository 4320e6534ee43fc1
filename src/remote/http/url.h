/* URLs of http and https: RFC 3986, as far as requests need it. */
#ifndef SFTI_REMOTE_URL_H
#define SFTI_REMOTE_URL_H

#include "base/mem.h"
#include "safetensors.h"

#define SFTI_URL_MOST ((size_t)16 << 10) /* bytes of a URL, signed ones included */

/* Parts of a URL, pointing into it. */
typedef struct sfti_url {
    bool https;
    sft_span user;  /* before the @, as spelt; data NULL if there is none */
    sft_span host;  /* as spelt; IPv6 with its brackets */
    uint32_t port;  /* the scheme's own if none is given */
    sft_span origin; /* "https://host:port" as spelt, user left out: valid if user.data is NULL */
    sft_span path;  /* from the slash on; empty, or without query and fragment */
    sft_span query; /* after the question mark; data NULL if there is none */
} sfti_url;

/* Strict: no controls, blanks or backslashes, no bracket in the user, a host of letters, digits,
 * `-._` or brackets, a port from 1 to 65535. False for anything else, and for other schemes. A
 * fragment is left out. */
bool sfti_url_parse(const char *url, sfti_url *out);
/* Scheme, host (in any case) and port are the same. Never told by parts of texts. */
bool sfti_url_same_origin(const char *a, const char *b);
/* Whether a site at `site` may have files at `url`: same origin, or by https on another host of the
 * same domain (the last two labels). */
bool sfti_url_same_site(const char *site, const char *url);
/* What a Location header means at a URL. Of the arena; NULL: no URL that is followed, or no
 * memory. */
const char *sfti_url_join(sfti_arena *arena, const char *base, sft_span location);
/* To show: without user; the query as "?[...]". Cut to fit. Also of texts that are no URLs; of
 * malformed ones scheme and host with "[...]", or "a URL that cannot be shown". */
void sfti_url_show(const char *url, char *out, size_t cap);
/* Append text, every byte but letters, digits, `-_.~` and those in keep as %XX (upper case). */
bool sfti_url_encode(sft_buffer *out, sft_span text, const char *keep);
/* Undo %XX; false if it is malformed. */
bool sfti_url_decode(sft_buffer *out, sft_span text);

/* Whether a host may be reached with public_only, as far as its spelling tells: no literal address
 * (in any notation that resolvers take: decimal, octal, hexadecimal, IPv4 in IPv6) that is
 * loopback, private, link-local, shared, multicast, unspecified or reserved, not "localhost", not
 * *.local or *.internal. */
bool sfti_host_is_public(sft_span host);
/* The same of an address: 4 or 16 bytes in network order. */
bool sfti_address_is_public(const uint8_t *address, size_t len);

/* Whether no_proxy ("host, .domain, *, 10.0.0.0/8") covers a host and port, as curl reads it. */
bool sfti_no_proxy(const char *list, sft_span host, uint32_t port);

#endif
