$SFT ls --color always --match '*.f4' every-dtype.safetensors | cat -v
NO_COLOR=1 CLICOLOR_FORCE=1 $SFT ls --match '*.f4' every-dtype.safetensors | cat -v
CLICOLOR_FORCE=1 $SFT ls --match '*.f4' every-dtype.safetensors | cat -v
NO_COLOR=1 $SFT ls --color=always --match '*.f4' every-dtype.safetensors | cat -v
CLICOLOR_FORCE=1 $SFT nosuch.safetensors 2>&1 | cat -v
