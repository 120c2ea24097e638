/*
 * The filters that only HDF5 has, each a stage in a file of its own. Their settings come as the file's 32-bit values, so each has a
 * function that binds it to them in place of a table of options.
 */
#ifndef SQ_CODEC_HDF5_STAGES_H
#define SQ_CODEC_HDF5_STAGES_H

#include "codec/codec_internal.h"
#include "codec/hdf5_filters.h"

extern const struct sq_stage_ops sq_stage_hdf5_lz4, sq_stage_hdf5_bitshuffle, sq_stage_hdf5_scaleoffset, sq_stage_lzf, sq_stage_nbit,
    sq_stage_szip;

int sq_hdf5_bitshuffle_bind(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err) SQUALL_CHECK;
int sq_hdf5_scaleoffset_bind(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err) SQUALL_CHECK;
int sq_nbit_bind(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err) SQUALL_CHECK;
int sq_szip_bind(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err) SQUALL_CHECK;

#endif
