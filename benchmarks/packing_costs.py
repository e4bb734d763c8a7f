"""Operations of XLA programs by XLA's own cost analysis: `python benchmarks/packing_costs.py program.hlo ...`.

Run by `benchmarks.packing` with an interpreter that has jax, whose jaxlib holds the analysis. Prints a JSON list with
the operations of each serialised HLO module, as traced and before XLA's optimisations for a device.
"""

import json
import sys

import jax
from jaxlib import xla_client


def operations(path: str) -> float:
    """The floating-point operations of one run of a program."""
    with open(path, "rb") as file:
        module = xla_client.XlaComputation(file.read()).get_hlo_module()
    return xla_client._xla.hlo_module_cost_analysis(jax.devices("cpu")[0].client, module)["flops"]


if __name__ == "__main__":
    print(json.dumps([operations(path) for path in sys.argv[1:]]))
