/* The array documents of both Zarr versions, and what they have in common. Private to this folder, its tests and its fuzzer. */
#ifndef SQ_FORMAT_ZARR_METADATA_H
#define SQ_FORMAT_ZARR_METADATA_H

#include "format/zarr/types.h"
#include "format/zarr/zarr.h"

/*
 * Read a document into *a, which is zero but for name and folder; the caller calls sq_zarr_array_done whatever comes of
 * it. What squall does not read is no error: a->unsupported names it. SQUALL_ECORRUPT: what is wrong, without the path.
 */
int sq_zarr_parse_v3(const struct sq_json *document, struct sq_zarr_array *a, struct squall_error *err) SQUALL_CHECK;
/* attributes: .zattrs; NULL: none */
int sq_zarr_parse_v2(const struct sq_json *document, const struct sq_json *attributes, struct sq_zarr_array *a,
                     struct squall_error *err) SQUALL_CHECK;
void sq_zarr_array_done(struct sq_zarr_array *a);

/* Shared by the two parsers. */
__attribute__((format(printf, 3, 4))) int sq_zarr_unsupported(struct sq_zarr_array *a, struct squall_error *err, const char *format, ...);
int sq_zarr_parse_lengths(const struct sq_json *list, const char *what, unsigned *ret_rank, uint64_t ret[SQUALL_RANK_MAX],
                          struct squall_error *err) SQUALL_CHECK;
int sq_zarr_set_attributes(struct sq_zarr_array *a, const struct sq_json *attributes, struct squall_error *err) SQUALL_CHECK;
/* Take what the document says under these names, ended by NULL: how the array is stored. */
int sq_zarr_set_storage(struct sq_zarr_array *a, const struct sq_json *document, const char *const *names,
                        struct squall_error *err) SQUALL_CHECK;
int sq_zarr_set_dims(struct sq_zarr_array *a, const struct sq_json *names, struct squall_error *err) SQUALL_CHECK; /* NULL: none */
/*
 * Take the type and the fill value. status, reason: what parsing the type said; an unsupported one is the array's reason, and leaves its fill value
 * unread.
 */
int sq_zarr_set_type(struct sq_zarr_array *a, int status, const struct sq_zarr_type *type, const struct squall_error *reason,
                     struct squall_error *err) SQUALL_CHECK;
int sq_zarr_set_fill(struct sq_zarr_array *a, const struct sq_zarr_type *type, const struct sq_json *value,
                     struct squall_error *err) SQUALL_CHECK;
/* v3's chunk_grid: chunks, and edges where it is rectilinear. */
int sq_zarr_parse_grid(const struct sq_json *grid, struct sq_zarr_array *a, struct squall_error *err) SQUALL_CHECK;
/* Chunk lengths checked against the shape, and the size of a chunk against what can be. */
int sq_zarr_check_chunks(struct sq_zarr_array *a, struct squall_error *err) SQUALL_CHECK;
/* What the array's codecs encode; points into a. */
struct sq_codec_chunk sq_zarr_codec_chunk(const struct sq_zarr_array *a);
/* Take the outcome of binding the codecs: the chain, or the status with its reason. Unsupported ones are the array's reason. */
int sq_zarr_set_codecs(struct sq_zarr_array *a, int status, struct sq_codec_chain *chain, const struct squall_error *reason,
                       struct squall_error *err) SQUALL_CHECK;

/* May a node of a Zarr v3 store have the name? None that begins with a dot: it would be a hidden file. */
bool sq_zarr_is_node_name(const char *name);

#endif
