# Users, passwords and queries are shown nowhere.
export HF_TOKEN=hf_SECRET AWS_ACCESS_KEY_ID=SECRET AWS_SECRET_ACCESS_KEY=SECRET
for url in 'https://user:SECRET@host/m.safetensors' 'https://host/m.safetensors?token=SECRET' \
    'https://host/api/download/models/1?token=SECRET#SECRET' 'ftp://user:SECRET@host/x?SECRET' \
    'https://user:SECRET@ho st/x' 's3://SECRET:SECRET@bucket/key'; do
    for words in info "info --json" "ls --jsonl -v" "check --log-requests" "hash" "cat --offline" \
        "select --keep a -o out/" "meta set -o out/"; do
        $SFT $words --offline "$url" a b
    done
    $SFT diff --offline "$url" "$url"
    $SFT select --offline a -o "$url"
done >said 2>&1
grep -c SECRET said
grep 'https://host/m' said | head -n 3
