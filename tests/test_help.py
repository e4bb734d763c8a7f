"""`--help` of every script at the root: flags by group, the release's marked, printed without TensorFlow."""

import itertools
import re

import pytest

from foundation.settings import GROUPS
from tests.light_start import run_light

TPU = "use_tpu tpu_name tpu_zone gcp_project master num_tpu_cores"
RUN = f"bert_config_file output_dir init_checkpoint max_seq_length do_train train_batch_size learning_rate " \
      f"save_checkpoints_steps iterations_per_loop {TPU}"
FINE_TUNING = f"{RUN} vocab_file do_lower_case do_predict predict_batch_size num_train_epochs warmup_proportion"
# The flags of the original release (google-research/bert, commit eedf571).
RELEASE = {
    "run_pretraining.py": f"{RUN} input_file max_predictions_per_seq do_eval eval_batch_size num_train_steps "
                          f"num_warmup_steps max_eval_steps",
    "run_classifier.py": f"{FINE_TUNING} data_dir task_name do_eval eval_batch_size",
    "run_squad.py": f"{FINE_TUNING} train_file predict_file doc_stride max_query_length n_best_size max_answer_length "
                    f"verbose_logging version_2_with_negative null_score_diff_threshold",
    "run_ner.py": "",
    "run_multiple_choice.py": "",
    "extract_features.py": "input_file output_file layers bert_config_file max_seq_length init_checkpoint vocab_file "
                           "do_lower_case batch_size use_tpu master num_tpu_cores use_one_hot_embeddings",
    "run_search.py": "",
    "convert_checkpoint.py": "",
}
ALL_RELEASED = {name for names in RELEASE.values() for name in names.split()}
REQUIRED = {
    "run_pretraining.py": "input_file output_dir",
    "extract_features.py": "input_file init_checkpoint output_file",
    "convert_checkpoint.py": "input output format",
}
FLAG = re.compile(r"  --(?P<name>\w+)(?P<released>\*?)(  \((?P<notes>[^;)]*)[^)]*\)?)?")


def groups_of(lines):
    """Heading to the flags below it, as regular expression matches."""
    groups, members = {}, None
    for line in lines:
        if line.removesuffix(":") in GROUPS:
            members = groups.setdefault(line.removesuffix(":"), [])
        elif line.startswith("  --"):
            assert members is not None, line
            members.append(FLAG.fullmatch(line))
    return groups


@pytest.mark.parametrize("script", RELEASE)
def test_help_lists_the_flags_by_group(repository, tmp_path, script):
    code, output, error = run_light(repository / script, "--help", cwd=tmp_path)
    lines = output.splitlines()
    assert (code, error) == (0, "")
    assert all(len(line) <= 120 for line in lines)

    groups = groups_of(lines)
    assert list(groups) == [each for each in GROUPS if each in groups]
    found = [flag for members in groups.values() for flag in members]
    assert len(found) == len({flag["name"] for flag in found}) > 2
    required = {flag["name"] for flag in found if flag["notes"] == "required"}
    assert required == set(REQUIRED.get(script, "output_dir").split())
    released = {flag["name"] for flag in found if flag["released"]}
    assert set(RELEASE[script].split()) <= released <= ALL_RELEASED
    for members in groups.values():
        order = [(flag["name"] not in required, flag["name"] not in released) for flag in members]
        assert order == sorted(order)
    # Every flag is followed by its explanation.
    assert all(after.startswith("      ") for flag, after in itertools.pairwise(lines) if flag.startswith("  --"))
    assert ("* also a flag of the original release." in lines) == bool(released)
