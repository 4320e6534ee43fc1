# Links, pipes and folders planted in a dataset: nothing outside its folder is read, changed or
# removed, and nothing waits.
mkdir home
dataset kv base
shard=$(ls base | grep '^part-00000')
job=_job-01234567-89ab-4def-8123-456789abcdef
cp base/$shard home/$shard
cp base/dataset_manifest.json home
touch home/lock
sed 's/"shard_path":"/"shard_path":"w\//' base/dataset_manifest.json >through.json
grep -c '"shard_path":"w/' through.json
touch -d '3 days ago' home/*
(cd home && md5sum * && stat -c '%n %Y' *) >before

# plant HOW: a dataset d with that in it.
plant() {
    rm -rf d && cp -r base d
    case $1 in
    shard) ln -sf ../home/$shard d/$shard ;;
    shard-absolute) ln -sf "$PWD/home/$shard" d/$shard ;;
    shard-loop) ln -sf $shard d/$shard ;;
    shard-dangling) ln -sf ../none d/$shard ;;
    shard-pipe) rm d/$shard; mkfifo d/$shard ;;
    shard-folder) rm d/$shard; mkdir d/$shard ;;
    linked-folder) ln -s ../home d/w; cp through.json d/dataset_manifest.json ;;
    manifest) ln -sf ../home/dataset_manifest.json d/dataset_manifest.json ;;
    manifest-pipe) rm d/dataset_manifest.json; mkfifo d/dataset_manifest.json ;;
    lock) ln -s ../home/lock d/.dataset.lock ;;
    lock-new) ln -s ../home/fresh d/.dataset.lock ;;
    lock-loop) ln -s .dataset.lock d/.dataset.lock ;;
    lock-pipe) mkfifo d/.dataset.lock ;;
    lock-folder) mkdir d/.dataset.lock ;;
    job) ln -s ../home d/$job ;;
    job-inside) mkdir d/$job; ln -s ../../home d/$job/x; ln -s ../../home/$shard d/$job/$shard ;;
    esac
    touch -hd '3 days ago' d/*
}
for how in shard shard-absolute shard-loop shard-dangling shard-pipe shard-folder linked-folder \
    manifest manifest-pipe lock lock-new lock-loop lock-pipe lock-folder job job-inside; do
    said=
    for command in info ls "verify --deep" gc "gc --delete --grace 0" compact; do
        plant $how
        timeout -s KILL 20 $SFT dataset $command d </dev/null >out 2>&1
        said="$said $?"
        (cd home && md5sum * && stat -c '%n %Y' *) | diff before - >/dev/null \
            || echo "$how: $command: home changed"
        ls home | grep fresh
    done
    echo "$how:$said"
done
# A dataset of a Hub cache is read through its links; changed it is not.
repo=hub/datasets--some--thing
mkdir -p $repo/snapshots/0123
cp -r base $repo/blobs
for name in $(ls base); do ln -s ../../blobs/$name $repo/snapshots/0123/$name; done
$SFT dataset verify $repo/snapshots/0123; echo $?
(cd $repo/snapshots/0123 && $SFT dataset ls . | wc -l)
md5sum $repo/blobs/* >before
$SFT dataset compact $repo/snapshots/0123 >/dev/null 2>&1
md5sum $repo/blobs/* | diff before - && echo as it was
