"""Forwards to libsafetensors.numpy."""
from libsafetensors._install import forward
from libsafetensors.numpy import *

forward(__name__, globals())
