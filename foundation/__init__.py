"""What every room stands on: one error, files by path, settings, the frame of a script. Imports no TensorFlow."""

from foundation import quiet

quiet.install()
