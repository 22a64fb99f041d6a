"""Packages: the bill of materials names all that a build depends on or contains, and the recipe of
an image installs packages that exist."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from conftest import SOURCE

pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg here")


def make_package(folder: Path, name: str, depends: str) -> Path:
    control = folder / name / "DEBIAN/control"
    control.parent.mkdir(parents=True)
    control.write_text(f"Package: {name}\nVersion: 1.2\nArchitecture: all\nDepends: {depends}\n"
                       "Maintainer: none <none@example.org>\nDescription: a package of the test\n")
    file = folder / f"{name}_1.2_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", control.parents[1], file], check=True,
                   capture_output=True)
    return file


def bill(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SOURCE / "deploy/bill_of_materials", folder], text=True,
                          capture_output=True, check=False)


def version_here(name: str) -> str:
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], text=True, check=True,
                          capture_output=True).stdout


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Two packages, and a tarball with a shared library of this machine."""
    make_package(tmp_path, "quasi", "libc6 (>= 2.36), absent-one | zlib1g, python3:any")
    make_package(tmp_path, "quasi-worker", "quasi (= 1.2), libc6")
    library = tmp_path / "quasi-1.2-x86_64/lib/libz.so.1"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"any")
    with tarfile.open(tmp_path / "quasi-1.2-x86_64.tar.gz", "w:gz") as archive:
        archive.add(library.parents[1], "quasi-1.2-x86_64")
    return tmp_path


def test_the_document_is_whole_and_names_all_packages(built: Path) -> None:
    document: dict[str, Any] = json.loads(bill(built).stdout)
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    packages = {package["name"]: package for package in document["packages"]}
    assert set(packages) == {"quasi", "quasi-worker", "quasi-tarball", "libc6", "zlib1g", "python3"}
    ids = [package["SPDXID"] for package in document["packages"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", each) for each in ids)
    for name in ("libc6", "zlib1g", "python3"):
        assert packages[name]["versionInfo"] == version_here(name)
        (locator,) = packages[name]["externalRefs"]
        assert locator["referenceLocator"].startswith(f"pkg:deb/debian/{name}@")
    files = {"quasi": "quasi_1.2_all.deb", "quasi-tarball": "quasi-1.2-x86_64.tar.gz"}
    for name, file in files.items():
        (checksum,) = packages[name]["checksums"]
        assert checksum["checksumValue"] == hashlib.sha256((built / file).read_bytes()).hexdigest()
        assert packages[name]["versionInfo"] == "1.2"


def test_relations_lead_from_package_to_package(built: Path) -> None:
    document = json.loads(bill(built).stdout)
    known = {package["SPDXID"] for package in document["packages"]} | {document["SPDXID"]}
    found = set()
    for relation in document["relationships"]:
        one, other = relation["spdxElementId"], relation["relatedSpdxElement"]
        assert one in known and other in known
        found.add((one.removeprefix("SPDXRef-"), relation["relationshipType"],
                   other.removeprefix("SPDXRef-")))
    assert found == {
        ("DOCUMENT", "DESCRIBES", "quasi"), ("DOCUMENT", "DESCRIBES", "quasi-worker"),
        ("DOCUMENT", "DESCRIBES", "quasi-tarball"), ("quasi", "DEPENDS_ON", "libc6"),
        ("quasi", "DEPENDS_ON", "zlib1g"), ("quasi", "DEPENDS_ON", "python3"),
        ("quasi-worker", "DEPENDS_ON", "libc6"), ("quasi-tarball", "CONTAINS", "zlib1g"),
    }


def test_equal_packages_have_equal_bills(built: Path) -> None:
    first = bill(built).stdout
    assert first == bill(built).stdout
    make_package(built, "quasi-server", "libc6")
    other = json.loads(bill(built).stdout)
    assert other["documentNamespace"] != json.loads(first)["documentNamespace"]


def test_a_library_of_no_package_is_an_error(built: Path) -> None:
    stray = built / "libstray.so.7"
    stray.write_bytes(b"any")
    with tarfile.open(built / "quasi-1.2-aarch64.tar.gz", "w:gz") as archive:
        archive.add(stray, "quasi-1.2-aarch64/lib/libstray.so.7")
    answer = bill(built)
    assert answer.returncode != 0
    assert "no package owns libstray.so.7 of quasi-1.2-aarch64.tar.gz" in answer.stderr


def test_the_recipe_of_the_image_installs_packages_that_are_built() -> None:
    """`deploy/package --test` runs these steps; here they are read."""
    recipe = (SOURCE / "deploy/apptainer.def").read_text()
    control = (SOURCE / "deploy/debian/control").read_text()
    built = set(re.findall(r"^Package: (\S+)$", control, re.M))
    installed = set(re.findall(r"/packages/([a-z0-9-]+)_\*\.deb", recipe))
    assert {"quasi", "quasi-worker", "python3-quasi"} == installed <= built
    sections = dict(re.findall(r"^%(\w+)\n((?:(?!%).*\n)*)", recipe, re.M))
    assert set(sections) == {"files", "post", "environment", "runscript", "test", "help"}
    for name in ("post", "environment", "runscript", "test"):
        subprocess.run(["sh", "-n"], input=sections[name], text=True, check=True)
