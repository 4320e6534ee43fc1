"""Repairs each file of the corpus for which check promises it: prints whether it then is valid."""
import glob, json, os, subprocess, sys
sft, corpus = os.environ["SFT"], sys.argv[1]
files = sorted(p for d in ("refuse", "compat-only", "not-strict", "legacy", "foreign", "sets/*")
               for p in glob.glob(os.path.join(corpus, d, "**"), recursive=True)
               if os.path.isfile(p) and not p.endswith((".md", ".py")))
promised = kept = named = silent = 0
OTHER = ("--level compat", "--level strict", "--legacy", "different versions")
for level in ("compat", "default", "strict"):
    results = []
    for part in range(0, len(files), 100):  # the words of a command have a limit
        out = subprocess.run([sft, "check", "--json", "--level", level, *files[part:part + 100]],
                             capture_output=True)
        results += json.loads(out.stdout)["results"]
    for result in results:
        error = result.get("error")
        if not error:
            continue
        if error["code"] == "metadata_key_duplicate" and error.get("tensor") is not None:
            print("a tensor:", os.path.relpath(result["path"], corpus))
        hint = error.get("hint") or ""
        if "safetensors repair" not in hint:
            # What a repair would correct is not blamed on a writer, or left without a word.
            if not any(other in hint for other in OTHER):
                silent += 1
                made = "silent%d" % silent
                done = subprocess.run([sft, "repair", "--level", level, result["path"], "-o", made],
                                      capture_output=True)
                if done.returncode == 0:
                    print("no promise:", level, os.path.relpath(result["path"], corpus), hint)
            continue
        promised += 1
        named += error["code"] == "json_trailing"
        index = result["path"].endswith(".json")
        target = "out%d" % promised if index else "out%d.safetensors" % promised
        done = subprocess.run([sft, "repair", "--level", level, result["path"], "-o", target],
                              capture_output=True, text=True)
        if done.returncode == 0 and subprocess.run([sft, "check", "--level", level, target],
                                                   capture_output=True).returncode == 0:
            kept += 1
        else:
            print(level, os.path.relpath(result["path"], corpus), error["hint"], done.stderr)
print(len(files) > 500, promised > 10, named > 3, promised == kept, silent > 500)
