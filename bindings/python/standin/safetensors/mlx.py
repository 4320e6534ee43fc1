"""Forwards to libsafetensors.mlx."""
from libsafetensors._install import forward
from libsafetensors.mlx import *

forward(__name__, globals())
