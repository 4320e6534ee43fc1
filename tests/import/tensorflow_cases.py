"""TensorFlow checkpoints and SavedModels, made by TensorFlow where it is installed (it is not among
the tests' requirements, being larger than all of them: pip install tensorflow-cpu)."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import files  # noqa: E402

END = "/.ATTRIBUTES/VARIABLE_VALUE"


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.random.default_rng(1).standard_normal((7, 9)).astype("f4"))
        self.h = tf.Variable(tf.cast(np.arange(5.0), tf.bfloat16))
        self.i = tf.Variable(np.arange(4))
        self.b = tf.Variable([True, False])
        self.c = tf.Variable(np.array([1 + 2j], "c8"))
        self.sub = [tf.Variable(np.float16([1, 2, 3])), tf.Variable(7, dtype=tf.int8)]

    @tf.function(input_signature=[])
    def f(self):
        return self.w


def stored(prefix):
    reader = tf.train.load_checkpoint(prefix)
    names = [n for n in reader.get_variable_to_shape_map() if n != "_CHECKPOINTABLE_OBJECT_GRAPH"]
    arrays = {name.removesuffix(END): np.asarray(reader.get_tensor(name)) for name in names}
    return {name: (list(array.shape), array.tobytes()) for name, array in arrays.items()}


def checkpoint(ctx):
    saved = tf.train.Checkpoint(model=Model(), opt=tf.Variable(3.0))
    prefix = saved.save(os.path.join(ctx.folder, "ck"))
    found, _ = files.convert_raw(ctx, prefix + ".index", "--all")
    assert found == stored(prefix)


def saved_model(ctx):
    folder = os.path.join(ctx.folder, "saved")
    tf.saved_model.save(Model(), folder)
    found, _ = files.convert_raw(ctx, folder, "--all")
    assert found == stored(os.path.join(folder, "variables", "variables"))


def cases(ctx):
    yield "tensorflow: checkpoint", lambda: checkpoint(ctx)
    yield "tensorflow: SavedModel", lambda: saved_model(ctx)
