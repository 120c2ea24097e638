#!/usr/bin/env python3
"""What Zstandard alone takes to compress what a write of `weather` and of `cube_sharded` does: a loop of ZSTD_compressCCtx on one
thread. No writer that makes the bytes of this libzstd takes less of the processors.

  bench/zstd_alone.py DIR [LIBZSTD]      DIR: the stores of bench/run.py zarr; LIBZSTD: a file, else the one that the linker finds
"""

import ctypes
import ctypes.util
import itertools
import sys
import time

import numpy as np
import squall

BLOCK_BYTES = 128 << 10  # c-blosc's, for level 3


def shuffled_blocks(array):
    for t in range(array.shape[0]):
        field = array[t].view(np.uint8).reshape(-1)
        for at in range(0, len(field), BLOCK_BYTES):
            yield np.ascontiguousarray(field[at : at + BLOCK_BYTES].reshape(-1, 4).T)


def inner_chunks(array):
    for corner in itertools.product(*(range(0, n, c) for n, c in zip(array.shape, array.chunks, strict=True))):
        yield array[tuple(slice(at, at + c) for at, c in zip(corner, array.chunks, strict=True))]


def compress_seconds(lib, pieces, level):
    lib.ZSTD_createCCtx.restype = ctypes.c_void_p
    lib.ZSTD_compressCCtx.restype = ctypes.c_size_t
    context, room = ctypes.c_void_p(lib.ZSTD_createCCtx()), np.empty(1 << 20, np.uint8)
    seconds = 0.0
    for piece in pieces:
        begin = time.thread_time()
        lib.ZSTD_compressCCtx(
            context,
            ctypes.c_void_p(room.ctypes.data),
            ctypes.c_size_t(room.nbytes),
            ctypes.c_void_p(piece.ctypes.data),
            ctypes.c_size_t(piece.nbytes),
            level,
        )
        seconds += time.thread_time() - begin
    lib.ZSTD_freeCCtx(context)
    return seconds


def main():
    folder = sys.argv[1]
    lib = ctypes.CDLL(sys.argv[2] if len(sys.argv) > 2 else ctypes.util.find_library("zstd"))
    lib.ZSTD_versionString.restype = ctypes.c_char_p
    for store, pieces, level in (("weather", shuffled_blocks, 5), ("cube_sharded", inner_chunks, 3)):
        seconds = compress_seconds(lib, pieces(squall.open_array(f"{folder}/{store}")), level)
        print(f"{store:<14}{seconds:6.2f} s by zstd {lib.ZSTD_versionString().decode()}")


if __name__ == "__main__":
    main()
