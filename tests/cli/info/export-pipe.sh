# A pipe that takes a preview's place after the folder was listed is not waited for.
mkdir m out; cp every-dtype.safetensors m/a.safetensors; mkfifo pipe
printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\10\0\0\0\0' >picture
sleep 60 >pipe & sleep 60 <pipe & # which keep it open
python3 - <<'P' &
import itertools, os
for name in itertools.cycle(("picture", "pipe")):
    os.path.exists("next") or os.link(name, "next")
    os.replace("next", "m/a.preview.png")
    if os.path.exists("stop"): break
P
for i in $(seq 300); do
    timeout 10 $SFT info --export-preview out --force m/a.safetensors >/dev/null 2>&1
    [ $? = 124 ] && echo "waits for a pipe" && break
done
touch stop; wait %3; kill %1 %2
echo done
