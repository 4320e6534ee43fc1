"""orbax-checkpoint: load of version 1 of its interface, with the layout of safetensors."""
import os

os.environ.update(JAX_PLATFORMS="cpu", JAX_ENABLE_X64="1")
import dtypes
import numpy
from orbax.checkpoint import v1


def read(path):
    context = v1.Context()
    context.checkpoint_layout = v1.options.CheckpointLayout.SAFETENSORS
    with context:
        arrays = v1.load(path)
    return {"tensors": [(name, dtypes.name(array.dtype), array.shape,
                         numpy.asarray(array).tobytes()) for name, array in arrays.items()]}
