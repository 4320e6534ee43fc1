"""Forwards to libsafetensors."""
from libsafetensors._install import forward
from libsafetensors._official import *

forward(__name__, globals())
