"""Settings stated once: what a field says becomes the flag, its default, its check and its help."""

import dataclasses

import pytest

from foundation import flags, settings
from foundation.errors import BertError
from foundation.flags import CommandLine
from foundation.settings import DATA, TRAINING, Settings, nested, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner(Settings):
    size: int = setting(8, at_least=1, at_most=64, group=TRAINING, help="Rows of a batch.")
    precision: str = setting("auto", choices=("auto", "float32"), group=TRAINING, released=True, help="Numbers.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outer(Settings):
    path: str = setting(group=DATA, released=True, help="Where the data is.")
    names: tuple[str, ...] | None = setting(None, group=DATA, help="Names, separated by commas.")
    rate: float = setting(1e-3, alias="lr", group=TRAINING, help="Learning rate.")
    upper: bool = setting(False, group=DATA, help="Upper case.")
    layers: tuple[int, ...] = setting(
        (-1, -2), parse=lambda text: tuple(map(int, text.split(","))), default_text="-1,-2", group=DATA, help="Layers.")
    vary: tuple[str, ...] = setting((), repeated=True, group=DATA, help="May be repeated.")
    inner: Inner = nested(Inner, size=16)


def parsed(*arguments, kind=Outer, recalled=None):
    line = CommandLine([kind])
    line.parse(["script", *arguments])
    return line.settings(kind, recalled)


def refusal(*arguments):
    with pytest.raises(BertError) as error:
        parsed(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_defaults_are_those_of_the_fields_and_of_the_nesting():
    made = parsed("--path=x")
    assert made == Outer(path="x")
    assert (made.inner.size, made.layers, made.vary, made.names, Inner().size) == (16, (-1, -2), (), None, 8)


def test_flags_of_every_kind_reach_their_fields():
    made = parsed("--path=x", "--names=a,b", "--lr=0.5", "--upper", "--layers=0,3", "--vary=a=1,2", "--vary=b=3",
                  "--size=4", "--precision=float32")
    assert made == Outer(path="x", names=("a", "b"), rate=0.5, upper=True, layers=(0, 3), vary=("a=1,2", "b=3"),
                         inner=Inner(size=4, precision="float32"))


def test_flag_that_is_left_out_is_recalled_and_one_that_is_given_is_not():
    recalled = {"names": ["n"], "rate": 0.25, "unknown": 1, "layers": [5]}
    made = parsed("--path=x", "--rate=0.5", recalled=recalled)
    assert (made.names, made.rate, made.layers) == (("n",), 0.5, (5,))


@pytest.mark.parametrize(("arguments", "message"), [
    ((), "--path is required: Where the data is."),
    (("--path=x", "--siez=3"), "--siez: no such flag. Did you mean --size? See --help."),
    (("--path=x", "--zzzzzz=3"), "--zzzzzz: no such flag. See --help."),
    (("--path=x", "word"), "'word' is not a flag. Flags are written --name=value; see --help."),
    (("--path=x", "--size=many"), "--size=many: not a whole number. See --help."),
    (("--path=x", "--rate=high"), "--rate=high: not a number. See --help."),
    (("--path=x", "--size=0"), "--size=0: must be at least 1."),
    (("--path=x", "--size=65"), "--size=65: must be at most 64."),
    (("--path=x", "--rate=nan"), "--rate=nan: must be a finite number."),
    (("--path=x", "--precision=float8"), "--precision=float8: not one of auto, float32."),
])
def test_mistake_is_one_line_that_names_the_flag(arguments, message):
    assert refusal(*arguments) == message


def test_python_callers_are_held_to_the_same_ranges_and_names():
    with pytest.raises(BertError, match=r"--size=0: must be at least 1\."):
        Inner(size=0)
    with pytest.raises(TypeError):
        Outer(path="x", siez=3)


def test_required_setting_of_a_nested_class_has_no_placeholder():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Whole(Settings):
        outer: Outer = nested(Outer)

    with pytest.raises(TypeError):
        Whole()
    assert [field.name for field in settings.fields_of(Whole) if field.required] == ["path"]


def test_help_is_grouped_with_required_and_released_flags_first():
    text = flags.help_text([Outer], "What the script does.")
    assert text.startswith("What the script does.\n\nData:\n  --path*  (required)\n      Where the data is.\n")
    assert text.index("Data:") < text.index("Training:")
    assert "  --rate  (default 0.001; or --lr)\n" in text
    assert text.index("--precision*  (default auto; auto|float32)") < text.index("--size  (default 16)")
    assert "--layers  (default -1,-2)" in text and "--upper  (default false)" in text


def test_flags_can_be_read_from_a_file(tmp_path):
    (tmp_path / "flags").write_text("--path=x\n--size=3\n")
    assert parsed(f"--flagfile={tmp_path}/flags").inner.size == 3


@pytest.mark.parametrize(("content", "message"), [
    (b"--path=\xff\n", "--flagfile: not UTF-8 (0xff). Re-encode the file."),
    (b"--flagfile=a\x00b\n", "--flagfile: embedded null byte."),
    (b"--" + b"a" * 20000, "A flag has a name of hundreds of characters. See --help."),
    (b"--path=x\n--size=1" + b"0" * 400, f"--size=1{'0' * 400}: must be at most 64."),
])
def test_damaged_file_of_flags_is_one_line(tmp_path, content, message):
    (tmp_path / "flags").write_bytes(content)
    assert refusal(f"--flagfile={tmp_path}/flags") == message
