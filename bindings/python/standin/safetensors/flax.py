"""Forwards to libsafetensors.flax."""
from libsafetensors._install import forward
from libsafetensors.flax import *

forward(__name__, globals())
