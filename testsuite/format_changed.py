#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""clang-format on the lines that are new: since the merge base with origin/main, or, where that is HEAD, in the last commit.

Usage: format_changed.py [--fix] SOURCE_DIRECTORY

Prints what clang-format would make of them and exits 1 if it would change anything that counts; --fix makes the changes in the
tree. Without clang-format 14 or the history there is nothing to compare, and a line says so. What does not count:

- initialisers in braces, which stand as they read best, several members to a line;
- the `? :` of a long expression, attributes of functions, and comments behind the code of a line;
- lines that were moved: they stand in the same change as removed ones.
"""
import difflib
import os
import re
import shutil
import subprocess
import sys

NAMES = ("clang-format-14", "clang-format")
# Others make other things of the same settings.
VERSION = 14
# clang-format 14 takes the name for the operator of C++.
NEW_CALL = re.compile(r"\bnew \(")
TRAILING_COMMENT = re.compile(r"\s+(/\*.*\*/)?(\s*\\)?$")


def is_usable(program):
    return f"version {VERSION}." in subprocess.run([program, "--version"], capture_output=True, text=True).stdout


def git(root, *words):
    result = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)
    return result.stdout if result.returncode == 0 else None


def base_of(root):
    """The commit that the lines are compared with; None: there is no history."""
    base, head = git(root, "merge-base", "HEAD", "origin/main"), git(root, "rev-parse", "HEAD")
    if base and base != head:
        return base.strip()
    before = git(root, "rev-parse", "--verify", "--quiet", "HEAD~1")
    return before.strip() if before else None


def changed_lines(root, base):
    """For each C file the numbers of its new lines, without those that only moved."""
    diff = git(root, "diff", "--unified=0", "--no-color", "--no-ext-diff", "--find-renames", base, "--", "*.c", "*.h") or ""
    moved = {line[1:].strip() for line in diff.split("\n") if line.startswith("-") and not line.startswith("---")}
    changed, path, number = {}, None, 0
    for line in diff.split("\n"):
        if line.startswith("+++ "):
            path = line[6:] if line.startswith("+++ b/") else None
        elif line.startswith("@@"):
            number = int(re.search(r"\+(\d+)", line)[1])
        elif line.startswith("+"):
            if path and line[1:].strip() not in moved:
                changed.setdefault(path, []).append(number)
            number += 1
    return changed


def initialisers(lines):
    """The numbers of lines that lie in an initialiser in braces, or hold a whole one."""
    inside, stack, found, last = 0, [], set(), ""
    for number, line in enumerate(lines, 1):
        code = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'|/\*.*?(\*/|$)', "0", line)
        if inside:
            found.add(number)
        for at, character in enumerate(code):
            if character == "{":
                before = code[:at]
                stack.append(bool(inside) or bool(re.search(r"(=\s*|[(,{]\s*|\))$", before or last)) and before.strip() != "")
                inside += stack[-1]
                if inside or "}" in code[at:]:
                    found.add(number)
            elif character == "}" and stack:
                inside -= stack.pop()
        last = code.rstrip() or last
    return found


def counts(old, new, numbers, free):
    """Does a difference between what stands there and what clang-format makes of it count?"""
    if any(number in free for number in numbers):
        return False
    text = " ".join(old)
    if " ? " in text and len(old) + len(new) > 2 or "__attribute__" in text:
        return False

    def bare(lines):
        return [NEW_CALL.sub("new(", TRAILING_COMMENT.sub("", line)) for line in lines]
    return bare(old) != bare(new)


def formatted(program, root, path, numbers):
    ranges = [f"--lines={number}:{number}" for number in numbers]
    return subprocess.run([program, "--style=file", *ranges, path], cwd=root, capture_output=True, text=True, check=True).stdout


def check(program, root, path, numbers, fix):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        lines = file.read().split("\n")
    wanted = formatted(program, root, path, numbers).split("\n")
    free = initialisers(lines)
    result, found = [], 0
    for kind, a, b, c, d in difflib.SequenceMatcher(None, lines, wanted, autojunk=False).get_opcodes():
        if kind != "equal" and counts(lines[a:b], wanted[c:d], range(a + 1, max(b, a + 1) + 1), free):
            found += 1
            result += wanted[c:d]
            if not fix:
                print(f"{path}:{a + 1}: clang-format makes this of it (format_changed.py --fix):")
                print("\n".join([f"  -{line}" for line in lines[a:b]] + [f"  +{line}" for line in wanted[c:d]]))
        else:
            result += lines[a:b]
    if fix and found:
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write("\n".join(result))
    return found


def main(arguments):
    root = next((word for word in arguments if not word.startswith("--")), ".")
    program = next(filter(is_usable, filter(None, map(shutil.which, NAMES))), None)
    if not program:
        print(f"changed lines not compared with clang-format: version {VERSION} is not installed")
        return 0
    base = base_of(root)
    if not base:
        print("changed lines not compared with clang-format: there is no history to compare with")
        return 0
    changed = changed_lines(root, base)
    found = sum(check(program, root, path, numbers, "--fix" in arguments) for path, numbers in sorted(changed.items()))
    print(f"{found} places that clang-format would change, in the changed lines of {len(changed)} files")
    return found != 0 and "--fix" not in arguments


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
