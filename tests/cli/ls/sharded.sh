$SFT ls sharded | head -n 12
