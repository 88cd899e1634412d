"""Every short read is an error."""


def exactly(file, count):
    found = file.read(count)
    if len(found) != count:
        raise ValueError(f"the file is cut off: {count} bytes wanted, {len(found)} there")
    return found


def number(file, place):
    file.seek(place)
    return int.from_bytes(exactly(file, 8), "little")


def read_sample(path, index):
    with open(path, "rb") as file:
        count = number(file, 0)
        number(file, 8 + 8 * count)
        if not 0 <= index < count:
            raise IndexError(f"sample {index} of {count}")
        begin, end = number(file, 8 + 8 * index), number(file, 16 + 8 * index)
        file.seek(begin)
        return exactly(file, end - begin)
