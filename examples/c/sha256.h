/* SHA-256 (FIPS 180-4), so that digest.c needs no other library. */
#ifndef SHA256_H
#define SHA256_H

#include <stdint.h>
#include <string.h>

typedef struct {
    uint32_t state[8];
    uint64_t length_bytes;
    uint8_t block[64];
} sha256;

static inline uint32_t sha256_rotate(uint32_t word, int by) {
    return word >> by | word << (32 - by);
}

static inline void sha256_begin(sha256 *digest) {
    static const uint32_t first[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    memcpy(digest->state, first, sizeof first);
    digest->length_bytes = 0;
}

static inline void sha256_take_block(sha256 *digest) {
    static const uint32_t constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
    };
    uint32_t words[64], now[8];
    for (int i = 0; i < 16; i++) {
        const uint8_t *at = digest->block + 4 * i;
        words[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        words[i] = words[i - 16] + words[i - 7] + (sha256_rotate(a, 7) ^ sha256_rotate(a, 18) ^ a >> 3)
                   + (sha256_rotate(b, 17) ^ sha256_rotate(b, 19) ^ b >> 10);
    }
    memcpy(now, digest->state, sizeof now);
    for (int i = 0; i < 64; i++) {
        uint32_t e = now[4], a = now[0];
        uint32_t one = now[7] + (sha256_rotate(e, 6) ^ sha256_rotate(e, 11) ^ sha256_rotate(e, 25))
                       + ((e & now[5]) ^ (~e & now[6])) + constants[i] + words[i];
        uint32_t two = (sha256_rotate(a, 2) ^ sha256_rotate(a, 13) ^ sha256_rotate(a, 22))
                       + ((a & now[1]) ^ (a & now[2]) ^ (now[1] & now[2]));
        memmove(now + 1, now, 7 * sizeof now[0]);
        now[4] += one;
        now[0] = one + two;
    }
    for (int i = 0; i < 8; i++) {
        digest->state[i] += now[i];
    }
}

static inline void sha256_take(sha256 *digest, const void *data, size_t length_bytes) {
    const uint8_t *bytes = (const uint8_t *)data;
    for (size_t i = 0; i < length_bytes; i++) {
        digest->block[digest->length_bytes++ % 64] = bytes[i];
        if (digest->length_bytes % 64 == 0) {
            sha256_take_block(digest);
        }
    }
}

static inline void sha256_end(sha256 *digest, uint8_t result[32]) {
    static const uint8_t mark = 0x80, zero = 0;
    uint64_t length_bits = digest->length_bytes * 8;
    uint8_t length[8];
    sha256_take(digest, &mark, 1);
    while (digest->length_bytes % 64 != 56) {
        sha256_take(digest, &zero, 1);
    }
    for (int i = 0; i < 8; i++) {
        length[i] = (uint8_t)(length_bits >> (56 - 8 * i));
    }
    sha256_take(digest, length, 8);
    for (int i = 0; i < 32; i++) {
        result[i] = (uint8_t)(digest->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

#endif
