# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads attr snapshots by their documentation, attr-snapshot(5), without the program under test."""
import struct


class Snapshot:
    """A snapshot that has been read whole.

    facts: what the header says. chunks: {tag: bytes}. entries: {path: attributes}, paths as bytes, the root as b".".
    """

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        magic, version, count, size, _ = struct.unpack_from("<8sIIQQ", data)
        assert (magic, version, size) == (b"attrsnap", 1, len(data))
        self.chunks = {}
        for i in range(count):
            tag, offset, length = struct.unpack_from("<8sQQ", data, 32 + 40 * i)
            self.chunks[tag.rstrip(b"\0").decode()] = data[offset:offset + length]
        self._read_facts()
        self._read_entries()

    def _read_facts(self):
        names = ("generation", "made", "made_nsec", "flags", "root_dev", "root_ino", "entry_count", "content_bytes", "dir_count",
                 "io_error")
        chunk = self.chunks["facts"]
        *values, root, version, options, _ = struct.unpack_from("<QqIIQQQQIIHHHH", chunk)
        self.facts = dict(zip(names, values))
        at = 72
        for name, length in ("root", root), ("version", version), ("options", options):
            self.facts[name] = chunk[at:at + length]
            at += length + 1

    def _text(self, at):
        names = self.chunks["names"]
        return names[at:names.index(b"\0", at)]

    def _read_entries(self):
        dirs = [struct.unpack_from("<QQqIIIIIIIHH", self.chunks["dirs"], at) for at in range(0, len(self.chunks["dirs"]), 56)]
        devices = struct.unpack(f"<{len(self.chunks['devices']) // 8}Q", self.chunks["devices"])
        paths = [b""] * len(dirs)
        self.entries = {b".": self._entry(0, 0, 0, 0)[1]}
        self.errors = {}
        for number, directory in enumerate(dirs):
            names, _, _, first, count, _, _, _, _, first_side, device, error = directory
            if error:
                self.errors[paths[number] or b"."] = error
            for index in range(first, first + count):
                name, entry, child = self._entry(index, names, first_side, devices[device])
                path = paths[number] + b"/" + name if paths[number] else name
                self.entries[path] = entry
                if child:
                    paths[child] = path

    def _entry(self, index, names, first_side, device):
        values = struct.unpack_from("<QqIHHIIIHHII", self.chunks["entries"], 48 * index)
        size, mtime, nsec, mode, flags, uid, gid, name, length, _, side, child = values
        entry = {"mode": mode, "mtime": mtime * 10 ** 9 + nsec, "owner": (uid, gid), "size": size}
        if side:
            a, b, inode = struct.unpack_from("<IIQ", self.chunks["sides"], 16 * (first_side + side - 1))
            if mode & 0o170000 == 0o120000:
                entry["target"] = self._text(names + a)
                assert len(entry["target"]) == b
            elif mode & 0o170000 in (0o020000, 0o060000):
                entry["device"] = (a, b)
            if flags & 0x08:
                entry["links"] = (device, inode)
        for tag in "xxh128", "md5":
            if tag in self.chunks and self._digest_bits(index) & {"xxh128": 1, "md5": 2}[tag]:
                entry[tag] = self.chunks[tag][16 * index:16 * index + 16]
        if "atimes" in self.chunks:
            entry["atime"] = struct.unpack_from("<q", self.chunks["atimes"], 8 * index)[0]
        text = self._text(names + name)
        assert len(text) == length
        return text, entry, child

    def _digest_bits(self, index):
        return struct.unpack_from("<I", self.chunks["origins"], 24 * index + 20)[0]

    def owners(self):
        """{(id, is_group): name}"""
        result, chunk, at = {}, self.chunks.get("owners", b""), 0
        while at < len(chunk):
            number, is_group, length = struct.unpack_from("<IHH", chunk, at)
            result[number, bool(is_group)] = chunk[at + 8:at + 8 + length]
            at += (8 + length + 1 + 3) // 4 * 4
        return result

    def same_list(self, other, tags=("atimes",)):
        """Byte for byte the same entries?"""
        return all(self.chunks.get(tag) == other.chunks.get(tag) for tag in ("entries", "sides", "names", "owners", *tags))
