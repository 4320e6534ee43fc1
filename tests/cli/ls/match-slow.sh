# A glob of many stars against a long name is no way to spend a day.
name=$(printf 'a%.0s' {1..20000})
st f.safetensors "{\"$name\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}" 1
timeout 10 $SFT ls --match '*a*a*a*a*a*a*a*a*a*a*a*a*b' f.safetensors | wc -l | tr -d ' '
exit ${PIPESTATUS[0]}
