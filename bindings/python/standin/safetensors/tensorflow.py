"""Forwards to libsafetensors.tensorflow."""
from libsafetensors._install import forward
from libsafetensors.tensorflow import *

forward(__name__, globals())
