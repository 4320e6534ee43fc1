$SFT info --json nosuch | pyjson 'len(j["results"])'
$SFT info --jsonl nosuch
