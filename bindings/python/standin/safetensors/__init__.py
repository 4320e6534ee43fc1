"""Forwards to libsafetensors."""
from libsafetensors import *
from libsafetensors import _safe_open_handle as _safe_open_handle
from libsafetensors._install import forward

forward(__name__, globals())
