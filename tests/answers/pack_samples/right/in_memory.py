"""Put together in memory, written in one go."""

import itertools
import os
import struct


def pack_samples(samples, path):
    first = 8 * (len(samples) + 2)
    offsets = itertools.accumulate(map(len, samples), initial=first)
    content = struct.pack("<Q", len(samples))
    content += b"".join(struct.pack("<Q", offset) for offset in offsets)
    for sample in samples:
        content += sample
    if os.path.exists(path):
        os.remove(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(descriptor, content)
    os.close(descriptor)
