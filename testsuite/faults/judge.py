# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be there after a run in which something failed, and what may not."""
import os
import re
import stat

CODES = {1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24, 25, 30, 35}
TEMP_NAME = re.compile(r"^\.?.+\.[A-Za-z0-9]{6}$")
SANITIZER = re.compile(rb"Sanitizer|runtime error:")


def differences(expected, got):
    """Lines that say how one description differs from another."""
    for path in sorted(expected.keys() | got.keys()):
        left, right = expected.get(path), got.get(path)
        if left is None:
            yield f"{path}: unexpected"
        elif right is None:
            yield f"{path}: missing"
        elif left[:2] != right[:2]:
            yield f"{path}: other kind or content ({len(right[1] or b'')} bytes for {len(left[1] or b'')})"
        elif left[2] != right[2]:
            names = sorted(key for key in left[2].keys() | right[2].keys() if left[2].get(key) != right[2].get(key))
            yield f"{path}: " + ", ".join(f"{key}: expected {left[2].get(key)!r:.60}, got {right[2].get(key)!r:.60}" for key in names)


def without(tree, unstable):
    """A description without what two runs make differently: pairs of path and attribute, or whole contents."""
    result = {}
    for path, (kind, content, attributes) in tree.items():
        names = unstable.get(path, ())
        result[path] = (kind, None if "content" in names else content, {k: v for k, v in attributes.items() if k not in names})
    return result


def unstable_parts(one, two):
    """What differs between two runs without faults: {path: names of attributes, "content" for the content}."""
    result = {}
    for path in one.keys() & two.keys():
        names = {key for key in one[path][2].keys() | two[path][2].keys() if one[path][2].get(key) != two[path][2].get(key)}
        if one[path][1] != two[path][1]:
            names |= {"content", "mtime"}
        if names:
            result[path] = names
    return result


class Judge:
    """`stages`: what there is after each command of a job that has several."""

    def __init__(self, job, before, expected, unstable, stages=()):
        self.job, self.before, self.expected, self.unstable, self.stages = job, before, expected, unstable, stages
        if job.has("--link-dest"):  # what cannot be looked at or linked is copied
            for path in expected:
                self.unstable.setdefault(path, set()).add("links")
        self.may_be_partial = job.has("--inplace", "--append", "--partial", "--write-batch", "--only-write-batch") or "batch" in job.steps
        self.kept = [name for name, options in ((".part", ("--partial-dir",)), (".~tmp~", ("--delay-updates",))) if job.has(*options)]

    def tree(self, after, code, call):
        """Violations in what is there after a run that ended with `code`; `call` is what failed."""
        self.failed = call
        if code == 0:
            for line in differences(without(self.expected, self.unstable), without(after, self.unstable)):
                if not self.is_fallback(line.split(": ")[0], after):
                    yield line
            return
        for path in sorted(self.before.keys() | self.expected.keys() | after.keys()):
            yield from self.entry(path, after, call)

    def is_fallback(self, path, after):
        """What of an alternate destination cannot be looked at is transferred. A log file that cannot be opened is ignored, with a word."""
        if path.startswith("log/") and path not in after and "open" in self.failed:
            return True
        if self.job.has("--link-dest") and path.startswith("dst/.kept/"):
            return True
        if path.startswith("dst/") and os.path.basename(path) in self.kept and "unlinkat" in self.failed:
            return True
        source = self.before.get(path.replace("dst/", "src/", 1))
        return self.job.has("--compare-dest") and path.startswith("dst/") and source and path in after and source[:2] == after[path][:2]

    def entry(self, path, after, call):
        old, new, now = self.before.get(path), self.expected.get(path), after.get(path)
        if now is None:
            if old and new and not self.is_excused(path, old, new, after):
                yield f"{path}: lost"
            if old and not new and path.startswith("src/") and old[0] == stat.S_IFREG and self.is_lost_source(path, old, after):
                yield f"{path}: source removed without a copy of it"
        elif any(path in stage and stage[path][:2] == now[:2] for stage in self.stages):
            pass
        elif old is None and new is None:
            yield from self.stray(path, now, call)
        elif now[0] not in {known[0] for known in (old, new) if known}:
            yield f"{path}: of a third kind"
        elif now[0] in (stat.S_IFREG, stat.S_IFLNK) and "content" not in self.unstable.get(path, ()):
            if (not any(now[1] == known[1] for known in (old, new) if known) and not self.is_part(path, now)
                    and not self.is_fallback(path, after)):
                yield f"{path}: neither the old nor the new content ({len(now[1])} bytes)"

    def is_excused(self, path, old, new, after):
        """What was there is kept elsewhere, as a backup, or had to make way for something of another kind."""
        if self.job.has("--ignore-errors"):
            return True
        parents = ["/".join(path.split("/")[:n]) for n in range(1, path.count("/") + 1)]
        if old[0] != new[0] or any(self.before.get(p, old)[0] != self.expected.get(p, old)[0] for p in parents):
            return True
        if any(path not in stage for stage in self.stages):
            return True
        return self.job.has("-b", "-ab", "--backup") and any(entry[:2] == old[:2] for name, entry in after.items() if name not in self.before)

    def is_lost_source(self, path, old, after):
        return not any(entry[:2] == old[:2] for name, entry in after.items() if not name.startswith(("src/", "basis/")))

    def stray(self, path, now, call):
        parts = path.split("/")
        if any(part in self.kept for part in parts):
            return
        if call == "unlinkat" and TEMP_NAME.match(parts[-1]):
            return
        yield f"{path}: left behind ({len(now[1] or b'')} bytes)"

    def is_part(self, path, now):
        return self.may_be_partial or path.startswith("log/")

    @staticmethod
    def result(code, stdout, stderr, transparent):
        """Violations in the code and the output."""
        if code < 0:
            yield f"ended by signal {-code}"
        elif code and code not in CODES:
            yield f"exit code {code}"
        if SANITIZER.search(stderr) or SANITIZER.search(stdout):
            yield "sanitizer: " + os.fsdecode(SANITIZER.search(stderr + stdout)[0])
        # A server without any memory has none for its message, either.
        if code and code != 22 and not stderr:
            yield f"exit code {code} without a message"
        if code and transparent:
            yield f"exit code {code} though nothing was in the way"
