# INT in the middle of a long look: nothing is said, and the status tells.
st f.safetensors '{"w":{"dtype":"F32","shape":[10000000000],"data_offsets":[0,40000000000]}}'
truncate -s +40000000000 f.safetensors
python3 - <<'P'
import os, signal, subprocess, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    child = subprocess.Popen([os.environ["SFT"], "check", "--deep", "f.safetensors"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.5)
    child.send_signal(number)
    out, err = child.communicate(timeout=120)
    print(child.returncode, out, err)
P
