# What is known as the sidecars of other programs, read back as these with equal facts.
lib=$(dirname "$BASH_ENV")/info/save_as.py
only() { mkdir "$1" && cp lora/neon-city.safetensors "$1"; }
facts() { $SFT info --json "$1"/neon-city.safetensors | python3 "$lib" facts; }
for as in civitai lora-manager a1111; do
    echo "== $as"
    only $as; cp lora/neon-city.{civitai.info,json,preview.png} $as
    mkdir keep-$as; mv $as/*.json $as/*.info keep-$as
    case $as in
    civitai) cp keep-$as/*.json $as;;
    a1111) cp keep-$as/*.info $as;;
    *) cp keep-$as/* $as;;
    esac
    facts $as >before
    $SFT info --save-as $as --hash sha256 $as; echo $?
    python3 "$lib" check $as $as/neon-city
    # Alone it tells the same, and is that kind of sidecar.
    case $as in
    civitai) rm $as/neon-city.json;;
    a1111) rm $as/neon-city.civitai.info;;
    *) rm $as/neon-city.json $as/neon-city.civitai.info;;
    esac
    case $as in
    civitai) python3 "$lib" unmarked $as/neon-city.civitai.info;;
    a1111) python3 "$lib" unmarked $as/neon-city.json;;
    *) python3 "$lib" unmarked $as/neon-city.metadata.json;;
    esac
    $SFT info --json $as/neon-city.safetensors | pyjson '[(s["path"], s["kind"], s["error"]) for s in j["results"][0]["sidecars"]]'
    facts $as >after
    python3 "$lib" same $as before after
    $SFT info --save-as $as $as; echo $?
done
