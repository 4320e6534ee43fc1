# Results of a folder have names that every system takes, whatever the inputs are called.
mkdir in
for name in nul.safetensors COM1.sft 'x:y.safetensors' 'a<b>|"?*.safetensors' 'end .safetensors' 'trail.' \
            '[fine], é & co.safetensors' con.npy 'x\\y.safetensors'; do
    case $name in
    *.npy) python3 -c 'import sys; sys.stdout.buffer.write(b"\x93NUMPY\1\0\x76\0" + b"{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (1,), }".ljust(117) + b"\n" + bytes(4))' >"in/$name" ;;
    *) cp every-dtype.safetensors "in/$name" ;;
    esac
done
$SFT convert -r in -o out/ --dtype F32 | tail -1
ls out
mkdir one
$SFT convert 'in/nul.safetensors' -o one --dtype F32 | tail -1
ls one
