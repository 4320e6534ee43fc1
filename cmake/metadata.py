"""Write the metadata of the Python package, from pyproject.toml, for an installation without pip.
usage: metadata.py VERSION FOLDER.dist-info      Needs Python 3.11 (tomllib)."""
import os
import re
import sys
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def extra_requirement(text, extra):
    """A requirement that holds for one extra: "numpy>=1.22" to 'numpy>=1.22; extra == "numpy"'."""
    requirement, _, marker = (part.strip() for part in text.partition(";"))
    return f'{requirement}; ' + (f"({marker}) and " if marker else "") + f'extra == "{extra}"'


def metadata(project, version):
    rows = [("Metadata-Version", "2.1"), ("Name", project["name"]), ("Version", version),
            ("Summary", project["description"]), ("Author", project["authors"][0]["name"]),
            ("License", project["license"]), ("Keywords", ",".join(project["keywords"])),
            ("Requires-Python", project["requires-python"])]
    rows += [("Classifier", one) for one in project["classifiers"]]
    rows += [("Requires-Dist", one) for one in project["dependencies"]]
    for extra, needs in sorted(project["optional-dependencies"].items()):
        # Names of extras are normalised in metadata.
        name = re.sub(r"[-_.]+", "-", extra).lower()
        rows += [("Provides-Extra", name)]
        rows += [("Requires-Dist", extra_requirement(one, name)) for one in needs]
    return "".join(f"{key}: {value}\n" for key, value in rows)


def main():
    version, folder = sys.argv[1:]
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)["project"]
    os.makedirs(folder, exist_ok=True)
    for name, text in (("METADATA", metadata(project, version)), ("INSTALLER", "cmake\n")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


main()
