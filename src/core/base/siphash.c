/* SipHash-2-4. Tests: test_edit_journal.c. */
#include "base/siphash.h"

#include "base/endian.h"

typedef struct sip {
    uint64_t v[4];
} sip;

static uint64_t sip_turn(uint64_t x, unsigned by) {
    return x << by | x >> (64 - by);
}

static void sip_round(sip *s) {
    uint64_t *v = s->v;
    v[0] += v[1], v[2] += v[3];
    v[1] = sip_turn(v[1], 13) ^ v[0], v[3] = sip_turn(v[3], 16) ^ v[2];
    v[0] = sip_turn(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = sip_turn(v[1], 17) ^ v[2], v[3] = sip_turn(v[3], 21) ^ v[0];
    v[2] = sip_turn(v[2], 32);
}

static void sip_word(sip *s, uint64_t word) {
    s->v[3] ^= word;
    sip_round(s);
    sip_round(s);
    s->v[0] ^= word;
}

uint64_t sfti_siphash(const uint64_t key[2], const void *bytes, size_t len) {
    const uint8_t *p = bytes;
    uint64_t last = (uint64_t)len << 56;
    sip s = { { key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573) } };
    for (; len >= 8; len -= 8, p += 8) sip_word(&s, sfti_get_u64(p));
    for (size_t i = 0; i < len; i++) last |= (uint64_t)p[i] << (8 * i);
    sip_word(&s, last);
    s.v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) sip_round(&s);
    return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}
