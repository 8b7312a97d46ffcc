"""Model files: what is read, and how what is wrong with them is said."""

import json
from pathlib import Path

import numpy as np
import pytest

import driftbandit as db
from driftbandit import LGDS, InvalidInput
from driftbandit.io import model_file

EXAMPLES = Path(__file__).parents[2] / "examples"
GOOD = {
    "transition": [[0.5, 0.0], [0.0, 0.5]],
    "process_cov": [[1.0, 0.0], [0.0, 1.0]],
    "reward_std": 1.0,
    "arms": [[1.0, 0.0], [0.0, 1.0]],
}


def changed(without=None, **changes):
    document = GOOD | changes
    document.pop(without, None)
    return document


def toml(**changes):
    """The good file as TOML, some fields replaced by texts of their own."""
    fields = {key: json.dumps(value) for key, value in GOOD.items()} | changes
    return "\n".join(f"{key} = {value}" for key, value in fields.items())


def read(tmp_path, content, name="model.json"):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return model_file.load_model(path)


def test_both_examples_hold_the_same_system():
    one, other = (model_file.load_model(EXAMPLES / name) for name in ("plant.json", "plant.toml"))
    assert one.names == ("left", "right", "both")
    assert model_file.to_document(one) == model_file.to_document(other)


@pytest.mark.parametrize("name", ["model.json", "model.toml", "MODEL.TOML", "model"])
def test_every_field_is_read(tmp_path, name):
    content = changed(initial_cov=[[2, 0], [0, 3]])
    text = toml(initial_cov="[[2, 0], [0, 3]]") if "toml" in name.lower() else json.dumps(content)
    system = read(tmp_path, text, name)
    assert model_file.to_document(system.model, system.arms) == content


def test_written_and_read_again(tmp_path):
    rng = np.random.default_rng(0)
    model = LGDS(rng.normal(size=(3, 3)), np.eye(3), 0.1, initial_cov=np.eye(3) / 3)
    arms = rng.normal(size=(4, 3))
    again = read(tmp_path, model_file.to_document(model, arms))
    assert np.array_equal(again.model.transition, model.transition)
    assert np.array_equal(again.model.initial_cov, model.initial_cov)
    assert np.array_equal(again.arms, arms)
    assert again.names == (0, 1, 2, 3)


def test_contexts_are_written_and_read_again(tmp_path):
    rng = np.random.default_rng(0)
    arms, read_outs = rng.normal(size=(2, 2)), rng.normal(size=(2, 2, 2))
    contexts = {"x_price": read_outs[0], "x_é\n": read_outs[1]}
    system = db.System(LGDS(0.5 * np.eye(2), np.eye(2), 0.1), arms, ["a", 7], contexts)
    model_file.save_model(system, tmp_path / "model.json")
    assert model_file.load_model(tmp_path / "model.json") == system
    text = toml(contexts="{ x_b = [[1, 0], [0, 1]], x_a = [[0, 0], [0, 2]] }")
    assert list(read(tmp_path, text, "model.toml").contexts) == ["x_b", "x_a"]


@pytest.mark.parametrize("contexts", [None, {}])
def test_a_file_without_contexts_is_as_before(tmp_path, contexts):
    system = read(tmp_path, changed(contexts=contexts))
    assert system == read(tmp_path, GOOD)
    assert "contexts" not in model_file.to_document(system)


@pytest.mark.parametrize("names", [("left", "right"), (5, 10), ("5", 10), ("é\n", '"')])
def test_a_saved_system_is_loaded_with_its_names(tmp_path, names):
    system = db.System(LGDS(0.5 * np.eye(2), np.eye(2), 0.1), np.eye(2), names)
    path = tmp_path / "model.json"
    path.write_text("the model of yesterday")
    db.save_model(system, path)
    again = db.load_model(path)
    assert again.names == names
    assert list(map(type, again.names)) == list(map(type, names))
    assert model_file.to_document(again) == model_file.to_document(system)
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_saved_is_refused(tmp_path):
    system = db.System(LGDS(0.5 * np.eye(2), np.eye(2), 0.1), np.eye(2))
    with pytest.raises(InvalidInput, match=r"path: is .*model\.txt; end it in \.json"):
        db.save_model(system, tmp_path / "model.txt")
    with pytest.raises(InvalidInput, match="system: has type LGDS; give a System"):
        db.save_model(system.model, tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("start", [None, "absent"])
def test_a_start_that_is_null_or_absent_is_stationary(tmp_path, start):
    system = read(tmp_path, changed(initial_cov=start, without=start and "initial_cov"))
    assert system.model.initial_cov is None


def test_whole_numbers_of_any_size_and_a_byte_order_mark(tmp_path):
    text = json.dumps(changed(arms=[[10**20, 0], [0, 1]]))
    arms = read(tmp_path, b"\xef\xbb\xbf" + text.encode()).arms
    assert arms.tolist() == [[1e20, 0], [0, 1]]


HUGE = "1" + "0" * 400
BAD = {
    "misspelled": (changed(transitions=1, without="transition"), "did you mean 'transition'?"),
    "lacks two": ({"arms": [[1]], "reward_std": 1}, "lacks 'transition', 'process_cov'"),
    "not an object": ([1, 2], "holds the list [1, 2]; write an object"),
    "a number": (3, "holds 3"),
    "null": ("null", "holds null"),
    "twice": ('{"arms": [[1]], "arms": [[2]]}', 'holds "arms" twice'),
    "not JSON": ("{arms", "model.json is not JSON (Expecting property name"),
    "empty": ("", "model.json is not JSON"),
    "not UTF-8": (b'{"arms": "\xff"}', "is not JSON ('utf-8' codec can't decode byte 0xff"),
    "deep": ("[" * 100_000, "nested too deep"),
    "deep field": ('{"arms": ' + "[" * 50_000 + "]" * 50_000 + "}", "nested too deep"),
    "not square": (changed(transition=[[1, 2]]), " transition: has shape (1, 2)"),
    "ragged": (changed(transition=[[1, 2], [3]]), "transition: row 1 has 1 entries, row 0 has 2"),
    "flat": (changed(arms=[1, 2]), "model file arms: row 0 is 1; give a list of rows"),
    "number for matrix": (changed(process_cov=1), "process_cov: is 1; give a list of rows"),
    "null matrix": (changed(transition=None), "transition: is null"),
    "empty matrix": (changed(arms=[]), "arms: has shape (0,)"),
    "empty row": (changed(transition=[[]]), "transition: is empty, shape (1, 0)"),
    "text": (changed(arms=[[1, "x"], [0, 1]]), 'arms: entry [0, 1] is "x"; every entry'),
    "null entry": (changed(arms=[[1, 0], [None, 1]]), "arms: entry [1, 0] is null"),
    "true": (changed(arms=[[1, 0], [0, True]]), "arms: entry [1, 1] is true"),
    "nested": (changed(arms=[[1, 0], [0, [1]]]), "arms: entry [1, 1] is [1]"),
    "true for a number": (changed(reward_std=True), "reward_std: True is not a real number"),
    "text for a number": (changed(reward_std="1"), "reward_std: '1' is not a real number"),
    "null for a number": (changed(reward_std=None), "reward_std: None is not a real number"),
    "negative": (changed(reward_std=-1), "reward_std: is -1"),
    "NaN": (changed(arms=[[float("nan"), 0], [0, 1]]), "arms: entry [0, 0] is NaN"),
    "infinite": (changed(process_cov=[[float("inf"), 0], [0, 1]]), "entry [0, 0] is Infinity"),
    "1e400": (json.dumps(GOOD).replace("0.5", "1e400", 1), "transition: entry [0, 0] is Infinity"),
    "400 digits": (json.dumps(GOOD).replace("0.5", HUGE, 1), "transition: entry [0, 0] is 1000"),
    "5000 digits": (json.dumps(GOOD).replace("0.5", "1" * 5000, 1), "is not JSON"),
    "asymmetric": (changed(process_cov=[[1, 1], [0, 1]]), "process_cov: is not symmetric"),
    "indefinite": (changed(initial_cov=[[1, 2], [2, 1]]), "initial_cov: is indefinite"),
    "wrong size": (changed(initial_cov=[[1]]), "initial_cov: has shape (1, 1); give shape (2, 2)"),
    "arms too wide": (changed(arms=[[1, 2, 3]]), "arms: has shape (1, 3)"),
    "zero arm": (changed(arms=[[1, 0], [0, 0]]), "arms: row 1 is the zero vector"),
    "contexts list": (changed(contexts=[[1]]), "contexts: is [[1]]; give an object"),
    "contexts name": (changed(context={}), "did you mean 'contexts'?"),
    "blank context": (changed(contexts={"": GOOD["arms"]}), "contexts: has a feature named ''"),
    "flat context": (changed(contexts={"x_a": [1]}), "model file contexts x_a: row 0 is 1"),
    "null context": (changed(contexts={"x_a": None}), "contexts x_a: is null; give a list of rows"),
    "ragged context": (changed(contexts={"x_a": [[1, 2], [3]]}), "contexts x_a: row 1 has 1"),
    "small context": (changed(contexts={"x_a": [[1, 2]]}), "contexts x_a: has shape (1, 2)"),
    "text in context": (changed(contexts={"x_a": [["?", 2]]}), 'contexts x_a: entry [0, 0] is "?"'),
    "long context": (changed(contexts={"x" * 5000: 3}), "contexts xxxxx"),
    "context twice": (
        json.dumps(changed(contexts={"x": 1}))[:-2] + ', "x": 2}}',
        'holds "x" twice',
    ),
    "zero with context": (
        changed(arms=[[0, 0], [0, 1]], contexts={"x_a": [[0, 0], [1, 1]]}),
        "arms: row 0 is the zero vector, and no context changes it",
    ),
}
BAD_TOML = {
    "not TOML": ("arms = [[1", "model.toml is not TOML"),
    "twice": ("arms = 1\narms = 2", "is not TOML (Cannot overwrite a value"),
    "empty": ("", "lacks 'transition', 'process_cov', 'reward_std', 'arms'"),
    "table": ("[model]\nreward_std = 1", "unknown name 'model'"),
    "nan": (toml(reward_std="nan"), "reward_std: is nan"),
    "true": (toml(arms="[[true, 0], [0, 1]]"), "arms: entry [0, 0] is true"),
    "date": (toml(arms="[[1979-05-27, 0], [0, 1]]"), "arms: entry [0, 0] is 1979-05-27"),
    "deep": ("arms = " + "[" * 20_000, "nested too deep"),
    "control character": ('arms = "\x1b[31m"', "is not TOML"),
}


@pytest.mark.parametrize("name", [*BAD, *(f"{name}.toml" for name in BAD_TOML)])
def test_what_is_wrong_is_said_in_one_line(tmp_path, name):
    kind = "model.toml" if name.endswith(".toml") else "model.json"
    content, words = BAD_TOML[name[:-5]] if kind.endswith("toml") else BAD[name]
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, content, kind)
    message = str(caught.value)
    assert message.startswith("model file")
    assert words in message
    assert message.isprintable()
    assert len(message) < 300 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/no/such/model.json", "cannot read /no/such/model.json (No such file or directory)"),
        ("/", "cannot read / (Is a directory)"),
        ("a\0b", "cannot read 'a\\x00b' ("),  # the rest depends on the version of Python
        ("two\nlines", "cannot read 'two\\nlines' (No such file"),
        (None, "cannot read None"),
        ("/dev/zero", "/dev/zero has more than 67,108,864 bytes; give a smaller file"),
    ],
)
def test_what_cannot_be_read_is_named(path, words):
    with pytest.raises(InvalidInput, match="model file") as caught:
        model_file.load_model(path)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("name", "most"), [("huge.json", "67,108,864 bytes"), ("huge.toml", "8,388,608 bytes")]
)
def test_a_huge_file_is_refused_after_its_start(tmp_path, name, most):
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse: reading it would end the process
    with pytest.raises(InvalidInput, match=f"has more than {most}; give a smaller file"):
        model_file.load_model(path)


@pytest.mark.parametrize("value", ["no", {"a": 1}, [[1.0, 2.0]], [1.0, True], [1.0, None], [1.0]])
def test_a_bad_initial_mean_is_named(value):
    document = model_file.to_document(LGDS(0.5 * np.eye(2), np.eye(2), 1.0), np.eye(2))
    with pytest.raises(InvalidInput, match=r"^model file initial_mean: "):
        model_file.from_document(document | {"initial_mean": value})


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("left", 'names: is "left"; give a list, one text or whole number for each arm'),
        (["left"], "names: has 1 entries for 2 arms"),
        (["left", 3.5], "names: entry [1] is 3.5"),
        (["left", True], "names: entry [1] is True"),
        (["left", " "], "names: entry [1] is ' '"),
        (["left", "left"], "names: has 'left' twice"),
        ([3, "3"], "names: has '3' twice"),
    ],
)
def test_bad_names_are_named(tmp_path, names, words):
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, changed(names=names))
    assert words in str(caught.value)


def test_names_are_kept(tmp_path):
    content = changed(names=["left", 7])
    system = read(tmp_path, content)
    assert system.names == ("left", 7)
    assert model_file.to_document(system) == content
    assert model_file.to_document(system.model, system.arms) == GOOD
    assert model_file.to_document(system.model, system.arms, ["a", "b"]) == changed(
        names=["a", "b"]
    )
    assert read(tmp_path, changed(names=None)).names == (0, 1)


def test_an_initial_mean_comes_back():
    model = LGDS(np.eye(2), np.eye(2), 1.0, np.eye(2), [1.0, -2.0])
    again = model_file.from_document(model_file.to_document(model, np.eye(2))).model
    assert again.initial_mean.tolist() == [1.0, -2.0]


def test_what_could_not_be_read_back_is_not_written(tmp_path, monkeypatch):
    system = db.System(db.LGDS([[0.5]], [[1.0]], 1.0), [[1.0]], ["lone \ud800"])
    path = tmp_path / "model.json"
    db.save_model(system, path)
    assert db.load_model(path) == system
    before = path.read_bytes()
    monkeypatch.setitem(model_file.LARGEST, "JSON", len(before) - 1)
    with pytest.raises(db.InvalidInput, match=r"system: takes \d+ bytes as a file; give fewer"):
        db.save_model(system, path)
    assert path.read_bytes() == before


def test_the_first_round_is_stored_and_older_files_have_none(tmp_path):
    system = db.System(db.LGDS([[0.5]], [[1.0]], 1.0), [[1.0]], first_round=899)
    path = tmp_path / "model.json"
    db.save_model(system, path)
    assert json.loads(path.read_text())["first_round"] == 899
    assert db.load_model(path) == system
    older = json.loads(path.read_text())
    del older["first_round"]
    path.write_text(json.dumps(older))
    assert db.load_model(path).first_round is None
    assert "first_round" not in model_file.to_document(db.load_model(path))
    path.write_text(json.dumps(older | {"first_round": "soon"}))
    with pytest.raises(db.InvalidInput, match=r"^model file first_round: "):
        db.load_model(path)
