"""Flags of data that several fine-tuning scripts have, each defined once, and a family's settings from its flags."""

from absl import flags

from finetuning import driver
from inputs import tables
from training import flags as training_flags


def define_files(data_dir):
    """Flags of the files of a data set.

    Args:
        data_dir: str, what --help says of --data_dir.
    """
    flags.DEFINE_string("data_dir", None, data_dir)
    flags.DEFINE_string("train_file", None, "Training set, in place of the one in --data_dir.")
    flags.DEFINE_string("dev_file", None, "Dev set, in place of the one in --data_dir.")
    flags.DEFINE_string("test_file", None, "What to predict, in place of the test set in --data_dir.")


def define_table():
    """Flags of the layout of tables (`inputs.tables`): TSV, CSV, JSONL."""
    flags.DEFINE_string("label_column", None, "Column of the label: its name, its number from 1, or its key in JSON.")
    flags.DEFINE_bool("header", None, "The first line names the columns; true where not given, or as the task has it.")
    flags.DEFINE_enum("file_format", "auto", tables.FORMATS, "How files are written. auto: by the ending of the name.")
    flags.DEFINE_bool("quoting", None, "Fields may stand in quotes; true in CSV and false in TSV where not given.")


def settings(kind, values):
    """A family's settings from the flags of its fields' names.

    Where nothing is trained, flags that the command line leaves out have the values of the run in --output_dir.

    Args:
        kind: dataclass.
        values: parsed flag values.
    """
    if not values.do_train:
        training_flags.recall(values, driver.description(values.output_dir))
    return training_flags.pick(kind, values)
