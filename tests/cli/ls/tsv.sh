$SFT ls --tsv quantised.safetensors every-dtype.safetensors | awk -F '\t' 'NF != 7 { print "columns", NF } NR < 4 || /f4/'
