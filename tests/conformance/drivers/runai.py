"""runai-model-streamer: SafetensorsStreamer of one local file."""
import os

os.environ.setdefault("RUNAI_STREAMER_CONCURRENCY", "1")
import dtypes
import tensor_bytes
from runai_model_streamer import SafetensorsStreamer


def read(path):
    with SafetensorsStreamer() as streamer:
        streamer.stream_file(path)
        return {"tensors": [(name, dtypes.name(tensor.dtype), tensor.shape, tensor_bytes.of(tensor))
                            for name, tensor in streamer.get_tensors()]}
