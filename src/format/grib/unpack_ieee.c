/* IEEE floating point (data representation template 5.4): the numbers themselves, big-endian, not scaled. */
#include "format/grib/unpack.h"

int sq_grib_unpack_ieee(const struct sq_grib_packed *packed, struct sq_grib_scratch *scratch, struct sq_grib_sink *sink,
                        struct squall_error *err)
{
    (void)scratch, (void)err; /* the values were found to lie inside the section when it was parsed */
    enum sq_grib_source source = packed->packing.is_float64 ? SQ_GRIB_BIG_FLOAT64 : SQ_GRIB_BIG_FLOAT32;
    sq_grib_sink_put(sink, source, packed->data, packed->value_count);
    return 0;
}
