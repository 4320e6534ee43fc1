"""What is this file, is it sound, has it changed?

usage: facts.py MODEL
"""
import os
import sys

import libsafetensors as st

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "models", "lora",
                     "neon-city.safetensors")


def main(path: str) -> None:
    facts = st.info(path)
    print("model:", facts["model"])
    verdict = st.check(path, deep=True)
    print("sound:", verdict["ok"], "- findings:", len(verdict["findings"]))
    for name, digest in st.hash(path, ["sha256", "autov3"])["computed"].items():
        print(name, digest)
    print("same as itself:", st.diff(path, path)["same"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else MODEL)
