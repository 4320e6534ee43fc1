/* Hosts and addresses: which are public, and which no proxy serves. Tests: test_remote_url.c. */
#include "remote/http/text.h"
#include "remote/http/url.h"

#include <string.h>

/* ── Addresses as text ── */

/* A number as inet_aton() takes it: decimal, 0 for octal, 0x for hexadecimal. */
static bool parse_part(sft_span text, uint64_t *out) {
    unsigned base = 10;
    uint64_t value = 0;
    if (text.len > 1 && text.data[0] == '0') {
        base = sfti_lower(text.data[1]) == 'x' ? 16 : 8;
        text = sfti_span_from(text, base == 16 ? 2 : 1);
    }
    if (text.len == 0 && base != 16) return false; /* "0x" is taken for 0 */
    for (size_t i = 0; i < text.len; i++) {
        int digit = sfti_hex_digit(text.data[i]);
        if (digit < 0 || (unsigned)digit >= base) return false;
        value = value * base + (unsigned)digit;
        if (value > UINT32_MAX) return false;
    }
    *out = value;
    return true;
}

/* One to four numbers; the last one fills what is left of the four bytes. */
static bool parse_ipv4(sft_span text, uint8_t out[4]) {
    sft_span rest = text, part;
    uint64_t value, whole = 0;
    unsigned parts = 0;
    while (sfti_text_split(&rest, '.', &part)) {
        unsigned bits = rest.data ? 8 : 32 - 8 * parts;
        if (++parts > 4 || !parse_part(part, &value) || value >> bits) return false;
        whole |= value << (rest.data ? 32 - 8 * parts : 0);
    }
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(whole >> (24 - 8 * i));
    return parts > 0;
}

/* Up to four hexadecimal digits; their number. */
static size_t parse_group(sft_span text, uint8_t out[2]) {
    unsigned value = 0;
    size_t len = 0;
    for (; len < text.len && len < 4 && sfti_hex_digit(text.data[len]) >= 0; len++)
        value = value * 16 + (unsigned)sfti_hex_digit(text.data[len]);
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
    return len;
}

/* Without brackets and zone. */
static bool parse_ipv6(sft_span text, uint8_t out[16]) {
    size_t put = 0, gap = SIZE_MAX, len;
    memset(out, 0, 16);
    if (sfti_text_begins(text, "::")) gap = 0, text = sfti_span_from(text, 2);
    while (text.len > 0) {
        if (put > 14) return false;
        if (put <= 12 && sfti_text_find(text, ':') == text.len
            && sfti_text_find(text, '.') < text.len) {
            if (!parse_ipv4(text, out + put)) return false;
            put += 4;
            break;
        }
        len = parse_group(text, out + put);
        if (len == 0) return false;
        put += 2;
        text = sfti_span_from(text, len);
        if (text.len == 0) break;
        if (text.data[0] != ':' || text.len == 1) return false;
        text = sfti_span_from(text, 1);
        if (text.data[0] == ':') {
            if (gap != SIZE_MAX) return false;
            gap = put;
            text = sfti_span_from(text, 1);
        }
    }
    if (gap == SIZE_MAX) return put == 16;
    if (put > 14) return false;
    memmove(out + 16 - (put - gap), out + gap, put - gap);
    memset(out + gap, 0, 16 - put);
    return true;
}

/* Bytes of the address that a host is, brackets or not: 4, 16, or 0 for a name. */
static size_t parse_address(sft_span host, uint8_t out[16]) {
    if (host.len >= 2 && host.data[0] == '[' && host.data[host.len - 1] == ']')
        host = (sft_span){ host.data + 1, host.len - 2 };
    if (parse_ipv4(host, out)) return 4;
    return parse_ipv6(host, out) ? 16 : 0;
}

/* ── Public addresses ── */

typedef struct address_block {
    uint8_t bytes[4];
    uint8_t bits;
} address_block;

static bool is_in_block(const uint8_t *address, const uint8_t *block, size_t bits) {
    size_t whole = bits / 8, rest = bits % 8;
    return memcmp(address, block, whole) == 0
        && (rest == 0 || (address[whole] ^ block[whole]) >> (8 - rest) == 0);
}

/* RFC 6890 and its register of special addresses. */
static const address_block special_ipv4[] = {
    { { 0, 0, 0, 0 }, 8 },       { { 10, 0, 0, 0 }, 8 },      { { 100, 64, 0, 0 }, 10 },
    { { 127, 0, 0, 0 }, 8 },     { { 169, 254, 0, 0 }, 16 },  { { 172, 16, 0, 0 }, 12 },
    { { 192, 0, 0, 0 }, 24 },    { { 192, 0, 2, 0 }, 24 },    { { 192, 88, 99, 0 }, 24 },
    { { 192, 168, 0, 0 }, 16 },  { { 198, 18, 0, 0 }, 15 },   { { 198, 51, 100, 0 }, 24 },
    { { 203, 0, 113, 0 }, 24 },  { { 224, 0, 0, 0 }, 4 },     { { 240, 0, 0, 0 }, 4 },
};
/* Inside 2000::/3, outside of which nothing is public: protocols, Teredo, documentation, 6to4. */
static const address_block special_ipv6[] = {
    { { 0x20, 0x01, 0, 0 }, 23 },       { { 0x20, 0x01, 0x0d, 0xb8 }, 32 },
    { { 0x20, 0x02, 0, 0 }, 16 },       { { 0x3f, 0xff, 0, 0 }, 20 },
};

static bool is_in_any(const uint8_t *address, const address_block *blocks, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (is_in_block(address, blocks[i].bytes, blocks[i].bits)) return true;
    return false;
}

#define BLOCKS(list) list, sizeof(list) / sizeof *(list)

bool sfti_address_is_public(const uint8_t *address, size_t len) {
    /* IPv4 in IPv6: mapped, and as NAT64 translates it. */
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    static const uint8_t nat64[12] = { 0, 0x64, 0xff, 0x9b };
    static const uint8_t global[1] = { 0x20 };
    if (len == 16 && (is_in_block(address, mapped, 96) || is_in_block(address, nat64, 96)))
        address += 12, len = 4;
    if (len == 4) return !is_in_any(address, BLOCKS(special_ipv4));
    return len == 16 && is_in_block(address, global, 3)
        && !is_in_any(address, BLOCKS(special_ipv6));
}

/* Whether a host is a domain, or lies in it. */
static bool is_in_domain(sft_span host, sft_span domain) {
    if (domain.len == 0 || host.len < domain.len) return false;
    size_t at = host.len - domain.len;
    return (at == 0 || host.data[at - 1] == '.')
        && sfti_text_same(sfti_span_from(host, at), domain);
}

bool sfti_host_is_public(sft_span host) {
    static const char *const local[] = { "localhost", "local", "internal" };
    uint8_t address[16];
    uint64_t value;
    while (host.len > 0 && host.data[host.len - 1] == '.') host.len--;
    if (host.len == 0) return false;
    size_t len = parse_address(host, address), at = host.len;
    if (len) return sfti_address_is_public(address, len);
    /* A resolver takes what ends in a number for an address, if it takes it at all. */
    while (at > 0 && host.data[at - 1] != '.') at--;
    sft_span last = sfti_span_from(host, at);
    bool number = sfti_is_digit(*last.data)
               && (parse_part(last, &value) || sfti_text_uint(last, &value));
    if (host.data[0] == '[' || number) return false;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (is_in_domain(host, sft_span_cstr(local[i]))) return false;
    return true;
}

/* ── no_proxy ── */

/* "10.0.0.0/8", "fd00::/8", or an address alone. */
static bool covers_address(sft_span entry, const uint8_t *address, size_t len) {
    uint8_t block[16];
    uint64_t bits = 8 * len;
    size_t slash = sfti_text_find(entry, '/');
    if (slash < entry.len && !sfti_text_uint(sfti_span_from(entry, slash + 1), &bits)) return false;
    entry.len = slash;
    return bits <= 8 * len && parse_address(entry, block) == len
        && is_in_block(address, block, (size_t)bits);
}

/* Cut ":80" off an entry; false: it is another port. */
static bool covers_port(sft_span *entry, uint32_t port) {
    uint64_t wanted;
    size_t colon = entry->len;
    while (colon > 0 && entry->data[colon - 1] != ':') colon--;
    bool address = colon > 1 && entry->data[0] != '['
                && sfti_text_find(*entry, ':') + 1 < colon; /* IPv6, without brackets */
    if (colon == 0 || address || !sfti_text_uint(sfti_span_from(*entry, colon), &wanted))
        return true;
    entry->len = colon - 1;
    return wanted == port;
}

bool sfti_no_proxy(const char *list, sft_span host, uint32_t port) {
    uint8_t address[16];
    size_t len = parse_address(host, address);
    while (host.len > 0 && host.data[host.len - 1] == '.') host.len--;
    for (const char *at = list ? list : ""; *at;) {
        at += strspn(at, ", \t");
        sft_span entry = { at, strcspn(at, ", \t") };
        at += entry.len;
        if (entry.len == 0) continue;
        if (sft_span_equal(entry, sft_span_cstr("*"))) return true;
        if (!covers_port(&entry, port)) continue;
        if (len && covers_address(entry, address, len)) return true;
        if (len) continue;
        while (entry.len > 0 && entry.data[0] == '.') entry = sfti_span_from(entry, 1);
        while (entry.len > 0 && entry.data[entry.len - 1] == '.') entry.len--;
        if (is_in_domain(host, entry)) return true;
    }
    return false;
}
