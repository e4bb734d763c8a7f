"""What an HDF5 file holds and where, read in a process of its own: libhdf5 may hang or crash on a damaged file.

The values are then read without libhdf5, from their places in the file.

    python hdf5_structure.py model.weights.h5        # in that process: prints the structure as JSON
"""

import dataclasses
import json
import resource
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import h5py

# Far more than the structure of any model takes.
_SECONDS = 60
_BYTES_OF_MEMORY = 8 << 30


@dataclasses.dataclass(frozen=True)
class Dataset:
    """An array in a file, stored in one piece.

    Attributes:
        path: its name in the file.
        name: its attribute `name`, or None.
        shape: its sizes.
        dtype: of its numbers, as NumPy writes it.
        offset: where in the file it begins.
    """

    path: str
    name: str | None
    shape: tuple[int, ...]
    dtype: str
    offset: int


def read(path: str) -> list[Dataset]:
    """The datasets of a local file.

    Raises:
        BertError: the file is damaged, or holds what Keras does not write: values elsewhere than in the file, in
            pieces or compressed, or other things than plain numbers.
    """
    from foundation.errors import BertError  # here: the process of its own is without this project's modules

    try:
        done = subprocess.run([sys.executable, "-P", __file__, path], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise BertError(f"{path}: the file is damaged (the HDF5 library does not finish reading it).") from None
    if done.returncode:
        errors = done.stderr.decode(errors="replace").splitlines()
        raise BertError(f"{path}: the file is damaged (the HDF5 library crashes: {(errors or ['no message'])[-1]}).")
    found = json.loads(done.stdout)
    if isinstance(found, str):
        raise BertError(f"{path}: {found}")
    return [Dataset(**{**each, "shape": tuple(each["shape"])}) for each in found]


def _described(path: str) -> list[dict[str, Any]] | str:
    """The datasets as JSON has them, or why the file is refused."""
    import h5py

    try:
        file = h5py.File(path, "r")
    except OSError as error:
        return f"damaged, or not an HDF5 file ({_first_line(error)})."
    try:
        datasets: dict[str, h5py.Dataset] = {}
        problem = file.visititems_links(_problem_of_link)
        problem = problem or file.visititems(lambda name, item: _problem_of_item(name, item, datasets))
        return problem or [_description(name, dataset) for name, dataset in datasets.items()]
    # h5py raises SystemError where HDF5 fails in the middle of a callback.
    except (OSError, KeyError, RuntimeError, ValueError, TypeError, OverflowError, MemoryError, SystemError) as error:
        return f"the file is damaged ({_first_line(error)})."


def _problem_of_link(name: str, link: Any) -> str | None:
    import h5py

    if isinstance(link, h5py.HardLink):
        return None
    return f"{name} is a {type(link).__name__}; links to other places are not followed."


def _problem_of_item(name: str, item: Any, datasets: "dict[str, h5py.Dataset]") -> str | None:
    """What is wrong with a dataset; one with which nothing is joins the datasets."""
    import h5py

    if not isinstance(item, h5py.Dataset):
        return None
    if item.external or item.is_virtual:
        return f"the values of {name} are in another file, which is not read."
    if item.dtype.kind not in "fiu" or item.shape is None:
        return f"{name} holds {item.dtype}, not numbers."
    if item.chunks or item.id.get_storage_size() != item.nbytes or (item.nbytes and item.id.get_offset() is None):
        return f"{name} is not stored as Keras stores it, whole and not compressed."
    if not item.id.get_type().equal(h5py.h5t.py_create(item.dtype)):
        return f"{name} holds numbers that are not NumPy's {item.dtype}."
    datasets[name] = item
    return None


def _description(path: str, dataset: "h5py.Dataset") -> dict[str, Any]:
    name = dataset.attrs.get("name")
    return {"path": path, "name": name if isinstance(name, str) and name else None, "shape": dataset.shape,
            "dtype": dataset.dtype.str, "offset": dataset.id.get_offset() or 0}


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


if __name__ == "__main__":
    _soft, _hard = resource.getrlimit(resource.RLIMIT_AS)
    if _soft == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES_OF_MEMORY, _hard))
    print(json.dumps(_described(sys.argv[1])))
