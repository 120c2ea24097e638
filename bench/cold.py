#!/usr/bin/env python3
"""How near reading a store that is in no cache comes to reading its files: a line of JSON for each store.

The files are read as dd reads them, 256 KiB at a time into one buffer (larger blocks are slower), one file after another and by two
threads; squall reads and decodes the array into memory that is there already. Each in turn, after the files were dropped from the page
cache; the best time of each counts.

  PYTHONPATH=build/python bench/cold.py STORE …
"""

import json
import os
import pathlib
import sys
import threading
import time

import numpy as np
import squall

ROUNDS = 5
BLOCK_BYTES = 256 << 10


def drop(files):
    for file in files:
        fd = os.open(file, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def read_files(files, threads):
    left, lock = iter(files), threading.Lock()

    def work():
        block = bytearray(BLOCK_BYTES)
        while True:
            with lock:
                file = next(left, None)
            if file is None:
                return
            fd = os.open(file, os.O_RDONLY)
            while os.readv(fd, [block]) == BLOCK_BYTES:
                pass
            os.close(fd)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def measure(store):
    files = sorted(file for file in (store / "c").rglob("*") if file.is_file())
    stored_bytes = sum(file.stat().st_size for file in files)
    array = squall.open_array(store)
    out = np.ones(array.shape, array.dtype)
    ways = {
        "files_s": lambda: read_files(files, 1),
        "files_by_two_s": lambda: read_files(files, 2),
        "squall_s": lambda: array.read(out=out),
    }
    best = dict.fromkeys(ways, float("inf"))
    os.sync()  # what is yet to be written cannot be dropped
    for _ in range(ROUNDS):
        for name, way in ways.items():
            drop(files)
            begin = time.perf_counter()
            way()
            best[name] = min(best[name], time.perf_counter() - begin)
    begin = time.perf_counter()
    array.read(out=out)
    warm = time.perf_counter() - begin
    row = {"bench": "cold", "store": store.name, "stored_mib": stored_bytes >> 20, **best, "squall_warm_s": warm}
    row["share"] = min(best["files_s"], best["files_by_two_s"]) / best["squall_s"]
    print(json.dumps({name: round(x, 4) if isinstance(x, float) else x for name, x in row.items()}), flush=True)


for argument in sys.argv[1:]:
    measure(pathlib.Path(argument))
