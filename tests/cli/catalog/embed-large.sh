# Large pictures are written one by one: all of them at a time would take 128 MB of memory.
mkdir m; export ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=1
for i in $(seq 16); do cp quantised.safetensors m/$i.safetensors; png m/$i.png 9 9 6000000; done
python3 - $SFT catalog m --embed=6000 -o c.html --no-sync <<'PY'
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
print(status, os.path.getsize("c.html") > 128e6, used.ru_maxrss <= 90e3 or used.ru_maxrss)
PY
