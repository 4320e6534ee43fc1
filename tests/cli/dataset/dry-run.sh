# compact --dry-run says what would be done, does nothing, and is right about it.
dataset kv kv; dataset batch batch; dataset connector connector
state() { (cd "$1" && find . -type f -exec sha256sum {} + | sort | sha256sum); }
numbers='[j["results"][0][k] for k in ("dry_run", "shards_before", "shards_after", "rewritten", "tensors_dropped")], len(j["results"][0]["groups"])'
for way in kv "--target 1MB kv" "--target 1GB batch"; do
    for d in kv batch; do state $d; done >before
    $SFT dataset compact --dry-run $way; echo $?
    $SFT dataset compact --dry-run --json $way | pyjson "$numbers"
    for d in kv batch; do state $d; done | cmp - before
done
chmod a-w kv; $SFT dataset compact --dry-run --target 1MB kv | tail -1; chmod u+w kv
$SFT dataset compact --json --target 1MB kv | pyjson "$numbers"
$SFT dataset compact --dry-run --target 1MB kv; echo $?
$SFT dataset compact --dry-run connector; echo $?
