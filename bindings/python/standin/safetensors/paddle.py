"""Forwards to libsafetensors.paddle."""
from libsafetensors._install import forward
from libsafetensors.paddle import *

forward(__name__, globals())
