# Conditions: equal, contained, less, more; letters of any case; null never fits.
w() { $SFT info -r -f path --where "$1" ${2:+--where "$2"} .; echo "$1 $2: $?"; }
w architecture=SDXL
w architecture=sdx
w name~NEON
w 'trigger_words~street level'
w 'bytes>50000'
w 'bytes<50000'
w 'bytes<50000' kind=unknown
w rank=4
w rank=4.0
w merge=x
w nosuch=x
w kind
