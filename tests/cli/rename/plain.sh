m=every-dtype.safetensors; cp $m keep
names() { $SFT ls --tsv ${1:-$m} | cut -f 2 | sort | head -3; }
$SFT rename $m --map tensor.05.i8=x --dry-run
$SFT rename $m --map tensor.05.i8=a --map tensor.04.u8=tensor.05.i8; names; $SFT check $m
$SFT rename $m --strip-prefix tensor. | sed 's/; [0-9]*/; N/'; names
$SFT rename $m --add-prefix p. --match '*f8*' -o out.safetensors | sed 's/; [0-9]*/; N/'; names out.safetensors
cp keep $m; $SFT rename $m --regex 's/\.([0-9]+)\.(.*)/[&|\1|\2]/' --regex 's,[.],/,g' --dry-run | head -2
for s in 's/x*/-/g' 's/[0-9]*/-/g' 's/tensor[.]/&&/' 's/$/z/g' 's|r|/|' 's/\./\//' 's/[.](.).*/\1/'; do $SFT rename $m --map tensor.21.u64=x --regex "$s" --dry-run | sed -n 2p; echo tensor.20.i64 | sed -E "$s"; done
$SFT rename $m --regex 's/^t/T/' --strip-prefix tensor. --add-prefix A --dry-run | head -2
$SFT rename $m --regex 's/nosuch/x/'
cmp $m keep
