#!/usr/bin/env python3
"""The dev presets, where warnings are errors, build everything with gcc and clang."""
import subprocess
import sys

failed = 0
for preset in ("dev", "dev-clang"):
    script = (f"cmake --preset {preset} --log-level=WARNING && "
              f"cmake --build --preset {preset} --target all tests examples benches")
    failed += subprocess.run(["bash", "-c", script], check=False).returncode != 0
print(f"{2 - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
