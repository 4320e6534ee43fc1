foreign training run.ckpt; foreign gguf small.gguf
$SFT cat run.ckpt module.encoder.bias
$SFT cat small.gguf blk.0.attn_q.weight'[1,:3]'
