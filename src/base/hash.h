/* A 128-bit hash for fingerprints, layout ids and tables: fast, stable across machines and releases, not cryptographic. */
#ifndef SQ_BASE_HASH_H
#define SQ_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct sq_hash {
    uint64_t high, low;
};

enum { SQ_HASH_TEXT_BYTES = 33 }; /* 32 hexadecimal digits and NUL */

struct sq_hash sq_hash_bytes(const void *bytes, size_t count);
/* Continue: the hash of (what `before` stands for, then these bytes). */
struct sq_hash sq_hash_more(struct sq_hash before, const void *bytes, size_t count);
void sq_hash_text(struct sq_hash h, char ret[SQ_HASH_TEXT_BYTES]);

#endif
