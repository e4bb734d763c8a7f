"""Keras without the libraries that it has no use for here; in processes of their own, since imports happen once."""

import subprocess
import sys

_LOADED = "print(*(name for name in ('matplotlib', 'sklearn', 'scipy.stats') if name in sys.modules))"


def loaded(code):
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_keras_is_imported_without_scikit_learn_and_matplotlib():
    assert loaded(f"import sys; from foundation import imports; imports.shorten(); import keras; {_LOADED}") == []


def test_both_are_there_afterwards_and_keras_works():
    code = ("import sys; from foundation import imports; imports.shorten(); imports.shorten(); import keras; "
            "import matplotlib.pyplot, sklearn.metrics; assert keras.ops.add(1, 1) == 2; "
            f"assert sys.meta_path.count(imports._Refusal) == 1; {_LOADED}")
    assert {"matplotlib", "sklearn"} <= set(loaded(code))
