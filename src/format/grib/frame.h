/*
 * The frame of a GRIB message, editions 1 and 2: which sections it has and where they lie (WMO FM 92 GRIB). Edition 1's sections
 * are numbered by edition 2's roles, so that what reads them can be shared: 1 product (PDS), 3 grid (GDS), 6 bitmap (BMS), 7 data (BDS).
 * Nothing here knows what a field means.
 */
#ifndef SQ_FORMAT_GRIB_FRAME_H
#define SQ_FORMAT_GRIB_FRAME_H

#include "squall/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SQ_GRIB_SECTION_COUNT = 8 };

struct sq_grib_section {
    uint64_t offset;     /* from the start of the message */
    uint64_t size_bytes; /* with the section's own head; 0: not there */
};

/* The sections that describe one field; repeated sections of edition 2 give one of these per field. */
struct sq_grib_frame {
    uint8_t edition;
    uint8_t discipline;  /* edition 2 */
    uint16_t in_message; /* which field of the message, from 0 */
    /*
     * [6] is the section that holds the bitmap: where a field says "as before" (254), that of the field before.
     * [7] of a long edition 1 message is longer than the section's own length field can say.
     */
    struct sq_grib_section section[SQ_GRIB_SECTION_COUNT];
};

/*
 * The frame of the in_message-th field of a message, from "GRIB" on. Sections behind the field are not looked at.
 * size: the bytes of the message as the file has them (edition 1's rule for more than 8 MiB already applied).
 * Errors: SQUALL_ECORRUPT with the byte offset inside the message; SQUALL_ENOTFOUND where it has fewer fields.
 */
int sq_grib_frame_of(const uint8_t *message, size_t size, unsigned in_message, struct sq_grib_frame *ret,
                     struct squall_error *err) SQUALL_CHECK;

/*
 * The walk section by section, for those who hold only the heads of sections: begin with the message's first bytes, then give next the first
 * SQ_GRIB_HEAD_BYTES at `at` (fewer where the source ends), until it says SQ_GRIB_END.
 */
enum { SQ_GRIB_HEAD_BYTES = 16, SQ_GRIB_END = 8 };

struct sq_grib_walker {
    struct sq_grib_frame frame;    /* complete for a field after next said 7 */
    uint64_t size_bytes;           /* of the message, as it says itself; of a long edition 1 message an upper bound until its section 7 */
    uint64_t at;                   /* where the next section's head lies in the message */
    unsigned last;                 /* number of the last section */
    unsigned field_count;          /* fields complete */
    struct sq_grib_section bitmap; /* the last one that holds bits; size 0: none yet */
    uint8_t present;               /* edition 1: flags of optional sections (PDS octet 8) */
    bool long_message;             /* edition 1, > 8 MiB: sizes are known at section 7 only */
};

/* head: the first head_bytes of the message. SQUALL_ECORRUPT where they are no head of a message. */
int sq_grib_walk_begin(struct sq_grib_walker *w, const uint8_t *head, size_t head_bytes, struct squall_error *err) SQUALL_CHECK;
/* Take the section at w->at. *ret_number: its number, or SQ_GRIB_END at the end mark. */
int sq_grib_walk_next(struct sq_grib_walker *w, const uint8_t *head, size_t head_bytes, unsigned *ret_number,
                      struct squall_error *err) SQUALL_CHECK;

#endif
