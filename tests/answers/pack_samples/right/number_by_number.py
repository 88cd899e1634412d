"""Everything with write, a number at a time."""


def pack_samples(samples, path):
    with open(path, "wb") as file:
        file.write(len(samples).to_bytes(8, "little"))
        place = 8 + 8 * (len(samples) + 1)
        file.write(place.to_bytes(8, "little"))
        for sample in samples:
            place += len(sample)
            file.write(place.to_bytes(8, "little"))
        for sample in samples:
            file.write(sample)
