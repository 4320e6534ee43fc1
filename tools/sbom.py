#!/usr/bin/env python3
"""Write the bill of materials (SPDX 2.3, JSON) of the source archive: its files with their hashes,
and the libraries that are used at run time where they are there.

usage: tools/sbom.py FILE.spdx.json
"""
import hashlib
import json
import os
import re
import sys
import time
import uuid

sys.dont_write_bytecode = True
import source_archive

# What tools/wheels.py compiles into the wheels; tools/wheels_env.sh fetches it.
ZLIB = os.path.join(source_archive.ROOT, "build", "release-files", "zlib", "zlib.h")
# name, package URL, licence, how it is used. Only zlib is included in something that is released.
LIBRARIES = [
    ("zlib", "pkg:generic/zlib", "Zlib", "OPTIONAL_DEPENDENCY_OF",
     "reads compressed workflows in PNG and compressed .npz; linked where it is there. Wheels "
     "contain it, built from Debian 12's source package (SFT_ZLIB_SOURCE); the version, if one "
     "is told, is theirs"),
    ("libcurl", "pkg:generic/curl", "curl", "OPTIONAL_DEPENDENCY_OF",
     "loaded when a URL is read, if it is there"),
    ("libcrypto", "pkg:generic/openssl", "Apache-2.0", "OPTIONAL_DEPENDENCY_OF",
     "loaded for SHA-256 on processors without SHA instructions, if it is there"),
]
OURS = "SPDXRef-Package-libsafetensors"
AUTHORS = "Organization: The libsafetensors authors"


def digest(algorithm, contents):
    value = hashlib.new(algorithm.lower(), contents, usedforsecurity=False).hexdigest()
    return {"algorithm": algorithm, "checksumValue": value}


def file_entries():
    for number, (path, _, contents) in enumerate(source_archive.files(), 1):
        yield {"SPDXID": f"SPDXRef-File-{number}", "fileName": "./" + path,
               "checksums": [digest("SHA1", contents), digest("SHA256", contents)],
               "licenseConcluded": "NOASSERTION", "licenseInfoInFiles": ["NOASSERTION"],
               "copyrightText": "NOASSERTION"}


def verification_code(files):
    """As SPDX 2.3, 7.9, defines it: SHA-1 of the sorted SHA-1s."""
    sums = sorted(file["checksums"][0]["checksumValue"] for file in files)
    return hashlib.sha1("".join(sums).encode(), usedforsecurity=False).hexdigest()


def bundled(header=ZLIB):
    """Versions of libraries that were compiled into wheels here: none before `make wheels`."""
    if not os.path.exists(header):
        return {}
    with open(header, encoding="ascii") as file:
        return {"zlib": re.search(r'^#define ZLIB_VERSION "([^"]+)"', file.read(), re.M).group(1)}


def package(name, version, licence, comment, url):
    entry = {"SPDXID": f"SPDXRef-Package-{name}", "name": name, "downloadLocation": "NOASSERTION",
             "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
             "copyrightText": "NOASSERTION", "comment": comment,
             "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                               "referenceLocator": url}]}
    return {**entry, **({"versionInfo": version} if version else {})}


def library(name, url, licence, _, comment):
    version = bundled().get(name)
    return package(name, version, licence, comment, f"{url}@{version}" if version else url)


def document():
    version = source_archive.version()
    files = list(file_entries())
    ours = package("libsafetensors", version, "Apache-2.0",
                   "C library, command and Python package", f"pkg:generic/libsafetensors@{version}")
    ours.update(filesAnalyzed=True, supplier=AUTHORS, licenseInfoFromFiles=["NOASSERTION"],
                copyrightText="Copyright The libsafetensors authors",
                packageVerificationCode={"packageVerificationCodeValue": verification_code(files)},
                hasFiles=[file["SPDXID"] for file in files])
    code = ours["packageVerificationCode"]["packageVerificationCodeValue"]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", OURS)]
    relations += [(f"SPDXRef-Package-{name}", kind, OURS) for name, _, _, kind, _ in LIBRARIES]
    return {
        "spdxVersion": "SPDX-2.3", "SPDXID": "SPDXRef-DOCUMENT", "dataLicense": "CC0-1.0",
        "name": f"libsafetensors-{version}",
        "documentNamespace": uuid.uuid5(uuid.NAMESPACE_OID, f"libsafetensors {code}").urn,
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(source_archive.timestamp())),
            "creators": [AUTHORS, f"Tool: libsafetensors-sbom-{version}"]},
        "packages": [ours] + [library(*row) for row in LIBRARIES],
        "files": files,
        "relationships": [{"spdxElementId": of, "relationshipType": kind, "relatedSpdxElement": to}
                          for of, kind, to in relations],
    }


def write(path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document(), file, indent=1)
        file.write("\n")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    write(sys.argv[1])


if __name__ == "__main__":
    main()
