"""Forwards to libsafetensors.torch."""
from libsafetensors._install import forward
from libsafetensors.torch import *

forward(__name__, globals())
