#!/usr/bin/env python3
"""Copies the licences and notices of every crate that is linked into the program, as their authors wrote them.

Usage: licences.py FOLDER. Creates one folder for each crate, with the licence files of the crate and of the folders directly below it
(where a bundled C library has its own). For a crate without such a file it writes one with its licence, authors and repository.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

SPEAKS_OF_LICENCES = re.compile(r"(un)?licen[cs]e|copying|copyright|notice|authors", re.IGNORECASE)
CARGO = ["cargo", "--locked", "--offline"]


def linked() -> set[tuple[str, str]]:
    """Name and version of each crate that is linked into the program, without build and test dependencies."""
    tree = ["tree", "--package", "fairground", "--edges", "normal", "--prefix", "none", "--format", "{p}"]
    lines = subprocess.run([*CARGO, *tree], check=True, capture_output=True, text=True).stdout.splitlines()
    words = [line.split() for line in lines if line]
    return {(word[0], word[1].removeprefix("v")) for word in words}


def main() -> None:
    to = Path(sys.argv[1])
    # Crates for other platforms may be missing from an offline registry.
    metadata = ["metadata", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]
    metadata = subprocess.run([*CARGO, *metadata], check=True, capture_output=True, text=True).stdout
    wanted = linked()
    for package in json.loads(metadata)["packages"]:
        if package["source"] is None or (package["name"], package["version"]) not in wanted:
            continue
        crate = Path(package["manifest_path"]).parent
        folder = to / f"{package['name']}-{package['version']}"
        folder.mkdir(parents=True)
        found = [path for path in [*crate.glob("*"), *crate.glob("*/*")] if path.is_file() and SPEAKS_OF_LICENCES.match(path.name)]
        for path in sorted(found):
            shutil.copyfile(path, folder / "-".join(path.relative_to(crate).parts))
        if not found:
            (folder / "LICENCE").write_text(f"{package['license']}\n{', '.join(package['authors'])}\n{package['repository']}\n")


if __name__ == "__main__":
    main()
