# Results for programs.
dataset kv kv; dataset connector connector
$SFT dataset info --json kv connector /nowhere
$SFT dataset ls --jsonl --match 'ada*' kv
$SFT dataset verify --jsonl --deep kv
$SFT dataset gc --jsonl kv
$SFT dataset compact --jsonl kv
$SFT dataset compact --jsonl connector; echo $?
