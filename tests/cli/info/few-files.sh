# More models than files may be open at once.
mkdir many && for ((i = 0; i < 150; i++)); do st many/m$i.safetensors "$one" 8; done
ulimit -n 48
$SFT info many | tail -n 1
$SFT info --hash crc32 --json many | pyjson '[len(j["results"]), len({r["hashes"]["computed"]["crc32"] for r in j["results"]})]'
