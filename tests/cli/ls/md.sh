st f.safetensors '{"a|b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"`c`*d*":{"dtype":"U8","shape":[],"data_offsets":[1,2]},"":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"\u001b[31mé|":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}' 4
$SFT ls --md f.safetensors
$SFT ls --md --stats --dtype f32 every-dtype.safetensors
$SFT ls --md --dtype f32 f.safetensors every-dtype.safetensors
