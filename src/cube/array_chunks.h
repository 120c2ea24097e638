/* Chunk lengths of arrays, where nobody asks for others: the sources' own, joined where they are small and cut where they are large. */
#ifndef SQ_CUBE_ARRAY_CHUNKS_H
#define SQ_CUBE_ARRAY_CHUNKS_H

#include "cube/cube.h"

/*
 * Sets default_chunks of variables that have a source. Along the append dimension, which has `length` places now, all get the same: where that is more
 * than a source file has, whole files.
 */
void sq_array_default_chunks(struct sq_cube_variable *variables, size_t count, uint64_t length, uint64_t file_length);

#endif
