"""A checkpoint whose scores are right and whose text is not: the checker reads the files between the two."""

import json
import shutil
import subprocess
import sys

import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, count, readout_integer
from verify.checker.check import check

LETTERS = ("a", "b", "0", "1", "2")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    alphabet = Alphabet.of(*LETTERS)
    tokens = Tokens(alphabet)
    since = readout_integer(count(tokens.is_in("a"), tokens.is_in("b")), alphabet, {"0": 0, "1": 1, "2": 2})
    made = {}
    for end in (None, "2"):
        made[end] = tmp_path_factory.mktemp("text") / "checkpoint"
        compile(Circuit("since", since, InputLanguage.everything(alphabet, 9), end=end)).save(made[end])
    return made


def edited(saved, tmp_path, file, edit, end="2"):
    """The verdict after one file was edited; the others are as saved."""
    directory = tmp_path / "edited"
    shutil.copytree(saved[end], directory)
    path = directory / file
    content = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps(edit(content) or content), "utf-8")
    return check(directory)


@pytest.mark.parametrize("end", [None, "2"])
def test_accepts_what_was_saved_and_the_text_files_that_transformers_writes(saved, tmp_path, end):
    from transformers import AutoTokenizer, GenerationConfig

    again = tmp_path / "again"
    shutil.copytree(saved[end], again)
    AutoTokenizer.from_pretrained(saved[end]).save_pretrained(again)
    GenerationConfig.from_pretrained(saved[end]).save_pretrained(again)
    assert (again / "generation_config.json").read_bytes() != (saved[end] / "generation_config.json").read_bytes()
    assert check(saved[end]).accepted
    assert check(again).reason is None


GENERATION = [
    {"do_sample": True},
    {"eos_token_id": 3},
    {"eos_token_id": 4.0},
    {"eos_token_id": [4, 3]},
    {"eos_token_id": None},
    {"pad_token_id": 0},
    {"pad_token_id": 10**300},
    {"pad_token_id": None, "bos_token_id": 0},
    {"suppress_tokens": [3]},
    {"bad_words_ids": [[3]]},
    {"sequence_bias": [[[3], -9.0]]},
    {"min_new_tokens": 5},
    {"max_new_tokens": 1},
    {"num_beams": 4},
    {"repetition_penalty": 9.0},
    {"no_repeat_ngram_size": 1},
    {"forced_bos_token_id": 1},
    {"guidance_scale": 3.0},
    {"stop_strings": ["1"]},
]


@pytest.mark.parametrize("entry", GENERATION, ids=str)
def test_a_generation_that_does_something_else_is_rejected(saved, tmp_path, entry):
    assert not edited(saved, tmp_path, "generation_config.json", lambda content: content.update(entry)).accepted


@pytest.mark.parametrize("key", ["eos_token_id", "pad_token_id", "bos_token_id"])
def test_an_entry_that_the_class_would_choose_is_needed(saved, tmp_path, key):
    """Left out, transformers 4 takes 0, which is a letter, and a generation ends with it."""
    left = lambda content: {name: value for name, value in content.items() if name != key}
    verdict = edited(saved, tmp_path, "config.json", left, None)
    assert f"config.json has no {key}" in str(verdict.reason)


@pytest.mark.parametrize(
    "entry", [{"eos_token_id": 3}, {"eos_token_id": None}, {"pad_token_id": 0}, {"bos_token_id": 0}]
)
def test_config_ends_where_the_circuit_does(saved, tmp_path, entry):
    verdict = edited(saved, tmp_path, "config.json", lambda content: content.update(entry))
    assert not verdict.accepted and next(iter(entry)) in verdict.reason


def test_without_an_end_no_letter_ends_a_generation(saved, tmp_path):
    def letter(content):
        content["eos_token_id"] = 4

    assert not edited(saved, tmp_path, "generation_config.json", letter, end=None).accepted


def swap(content):
    vocab = content["model"]["vocab"]
    vocab["a"], vocab["b"] = 1, 0


def rename(content):
    content["model"]["vocab"] = {{"a": "b", "b": "a"}.get(k, k): i for k, i in content["model"]["vocab"].items()}


def unknown_letter(content):
    content["model"]["unk_token"] = "a"


def added(name, at, **other):
    mark = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}

    def edit(content):
        content["added_tokens"].append({"id": at, "content": name, **mark, **other})

    return edit


def entry(key, value):
    return lambda content: content.update({key: value})


def template(*pair, kinds=(0, 1)):
    """A post-processor that leaves one text as it is, and puts two together as `pair` says."""
    parts = {name: [{"Sequence": {"id": i, "type_id": kinds[k]}} for k, i in enumerate(ids)] for name, ids in pair}
    return entry("post_processor", {"type": "TemplateProcessing", "special_tokens": {}, **parts})


TOKENIZER = {
    "swapped ids": swap,
    "swapped names": rename,
    "unknown words are letters": unknown_letter,
    "another word": added("a a", 7),
    "a letter": added("b", 1),
    "another id": added("<pad>", 1),
    "no special": lambda content: content["added_tokens"][0].pop("special"),
    "another entry": lambda content: content["added_tokens"][0].update(other=1),
    "special is a list": lambda content: content["added_tokens"][0].update(special=[[]]),
    "eats blanks": added("<pad>", 6, lstrip=True),
    "normalizer": entry("normalizer", {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}),
    "truncation": entry("truncation", {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}),
    "padding": entry("padding", {"strategy": "BatchLongest"}),
    "decoder": entry("decoder", {"type": "Replace", "pattern": {"String": "1"}, "content": "2"}),
    "whole text": entry("pre_tokenizer", None),
    "post": entry("post_processor", {"type": "TemplateProcessing"}),
    "second text first": template(("single", "A"), ("pair", "BA")),
    "first text alone": template(("single", "A"), ("pair", "A")),
    "no pair": template(("single", "A")),
    "true for 1": template(("single", "A"), ("pair", "AB"), kinds=(0, True)),
    "0.0 for 0": template(("single", "A"), ("pair", "AB"), kinds=(0.0, 1)),
}


@pytest.mark.parametrize("name", TOKENIZER)
def test_a_tokenizer_that_reads_or_writes_otherwise_is_rejected(saved, tmp_path, name):
    assert not edited(saved, tmp_path, "tokenizer.json", TOKENIZER[name]).accepted


def named(saved, directory, end, name, listed):
    """The checkpoint where the letter "a" bears another name, in all its files."""
    shutil.copytree(saved[end], directory)
    for file in ("circuit.json", "tokenizer.json"):
        text = (directory / file).read_text("utf-8").replace('"a"', json.dumps(name))
        content = json.loads(text)
        if "added_tokens" in content and not listed:
            content["added_tokens"] = []
        (directory / file).write_text(json.dumps(content), "utf-8")
    return directory


@pytest.mark.parametrize("end, name", [(None, "a<pad>"), (None, "<unk>a"), (None, "a<eos>s"), ("2", "a2"), ("2", "2a")])
@pytest.mark.parametrize("listed", [True, False])
def test_no_letter_holds_a_special_token_whether_tokenizer_json_adds_it_or_not(saved, tmp_path, end, name, listed):
    """transformers adds those that tokenizer_config.json names by itself, and then reads the letter as several."""
    from transformers import AutoTokenizer

    directory = named(saved, tmp_path / "named", end, name, listed)
    assert len(AutoTokenizer.from_pretrained(directory)(name).input_ids) > 1
    assert f"out of words, such as the letter {name!r}" in check(directory).reason


@pytest.mark.parametrize("name", ["a<pa", "<pad", "<eos"])
def test_a_letter_may_hold_a_part_of_a_special_token(saved, tmp_path, name):
    from transformers import AutoTokenizer

    directory = named(saved, tmp_path / "named", None, name, listed=False)
    assert AutoTokenizer.from_pretrained(directory)(name).input_ids == [0]
    assert check(directory).accepted


def test_two_texts_in_their_order_are_plain(saved, tmp_path):
    assert edited(saved, tmp_path, "tokenizer.json", template(("single", "A"), ("pair", "AB"))).reason is None


@pytest.mark.parametrize("key", ["pad_token", "unk_token", None])
def test_no_word_has_an_id_behind_the_rows_of_the_embedding(saved, tmp_path, key):
    """Whether anything names it or not: the model looks its row up, and there is none."""
    directory = tmp_path / "edited"
    shutil.copytree(saved[None], directory)
    files = {name: json.loads((directory / name).read_text()) for name in ("tokenizer.json", "tokenizer_config.json")}
    model = files["tokenizer.json"]["model"]
    rows = json.loads((directory / "config.json").read_text())["vocab_size"]
    model["vocab"] |= {f"<x{i}>": i for i in range(len(model["vocab"]), rows + 1)}
    if key is not None:
        files["tokenizer_config.json"][key] = f"<x{rows}>"
    if key == "unk_token":
        model[key] = f"<x{rows}>"
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content))
    assert check(directory).reason == (
        f"tokenizer.json has the word '<x{rows}>' with id {rows}, and the embedding has {rows} rows"
    )


@pytest.mark.parametrize("name", ["\ud800", "a\udc00"])
def test_a_letter_is_no_half_of_a_character(saved, tmp_path, name):
    """Also where no task is stated: no tokenizer can open such a file."""
    reason = check(named(saved, tmp_path / "named", None, name, listed=True)).reason
    assert reason == f"the letter {name!r} holds half a character, which no text does"


SETTINGS = [
    {"tokenizer_class": "BertTokenizer"},
    {"tokenizer_class": None},
    {"model_max_length": 2},
    {"model_max_length": 1 << 64},
    {"model_max_length": 10**20},
    {"model_max_length": 2.0**50},
    {"bos_token": "a"},
    {"eos_token": "1"},
    {"add_bos_token": True},
    {"do_lower_case": True},
    {"clean_up_tokenization_spaces": True},
    {"extra_special_tokens": ["1"]},
    {"added_tokens_decoder": {"0": {"content": "b"}}},
    {"fast_tokenizer_files": ["tokenizer.4.0.0.json"]},
    {"padding_side": "right"},
    {"model_input_names": ["input_ids"]},
    {"model_input_names": ["input_ids", "attention_mask", "token_type_ids"]},
    {"model_input_names": "input_ids"},
]


@pytest.mark.parametrize("entry", SETTINGS, ids=str)
def test_settings_that_change_the_tokenizer_are_rejected(saved, tmp_path, entry):
    assert not edited(saved, tmp_path, "tokenizer_config.json", lambda content: content.update(entry)).accepted


@pytest.mark.parametrize("most", [1 << 40, (1 << 64) - 1, 10**20 + 1, int(1e30), 1e30])
def test_a_length_that_no_text_has_is_accepted_where_the_tokenizer_can_truncate(saved, tmp_path, most):
    assert edited(saved, tmp_path, "tokenizer_config.json", lambda c: c.update(model_max_length=most)).accepted
    from transformers import PreTrainedTokenizerFast

    directory = next(tmp_path.rglob("tokenizer_config.json")).parent
    assert len(PreTrainedTokenizerFast.from_pretrained(directory)("a b", truncation=True).input_ids) == 2


def test_a_tokenizer_must_name_a_token_of_padding(saved, tmp_path):
    unsaid = lambda content: {key: value for key, value in content.items() if key != "pad_token"}
    verdict = edited(saved, tmp_path, "tokenizer_config.json", unsaid)
    assert verdict.reason == "tokenizer_config.json has no pad_token, without which texts of two lengths are no batch"


def without(saved, tmp_path, gone, listed=True):
    """The checkpoint without these files, which construction.json lists or not."""
    directory = tmp_path / "without"
    shutil.copytree(saved["2"], directory)
    manifest = json.loads((directory / "construction.json").read_text("utf-8"))
    for name in gone:
        (directory / name).unlink()
        if not listed:
            del manifest["files"][name]
    (directory / "construction.json").write_text(json.dumps(manifest), "utf-8")
    return check(directory)


FILES = ["tokenizer.json", "tokenizer_config.json"]


@pytest.mark.parametrize("gone, listed", [(FILES, True), (FILES[:1], True), (FILES[1:], True), (FILES[:1], False)])
def test_a_tokenizer_that_is_gone_is_told(saved, tmp_path, gone, listed):
    """transformers builds another one in its place, and says nothing."""
    assert without(saved, tmp_path, gone, listed).reason.startswith(f"{gone[0]} is missing")


def test_of_a_checkpoint_that_never_had_a_tokenizer_the_verdict_is_by_ids(saved, tmp_path):
    verdict = without(saved, tmp_path, FILES, listed=False)
    assert verdict.accepted and "by ids: no tokenizer is there, so nothing is said of text" in verdict.lines()[0]
    assert "by ids" not in check(saved["2"]).domain


@pytest.mark.parametrize(
    "file, entry",
    [
        ("tokenizer_config.json", {"transformers_version": 5}),
        ("tokenizer_config.json", {"is_local": "no"}),
        ("generation_config.json", {"use_cache": 1}),
        ("generation_config.json", {"transformers_version": []}),
    ],
    ids=str,
)
def test_what_says_nothing_has_its_type_nevertheless(saved, tmp_path, file, entry):
    assert f"{file} has {next(iter(entry))}" in edited(saved, tmp_path, file, lambda c: c.update(entry)).reason


def test_a_tokenizer_must_say_that_it_pads_in_front(saved, tmp_path):
    unsaid = lambda content: {key: value for key, value in content.items() if key != "padding_side"}
    verdict = edited(saved, tmp_path, "tokenizer_config.json", unsaid)
    assert verdict.reason == "tokenizer_config.json has no padding_side, which is then the right one"


FOREIGN = ["added_tokens.json", "special_tokens_map.json", "adapter_config.json", "adapter_model.safetensors"]
FOREIGN += [
    "pytorch_model.bin",
    "model.safetensors.index.json",
    "modeling_mamba.py",
    "chat_template.jinja",
    "vocab.txt",
]


@pytest.mark.parametrize("file", FOREIGN)
def test_files_that_a_loader_may_read_beside_ours_are_rejected(saved, tmp_path, file):
    reason = edited(saved, tmp_path, file, lambda content: {"bos_token": "a"}).reason
    assert reason == f"{file} is none of the files of a checkpoint, and may change what a program loads"


def test_text_and_pictures_for_people_may_stand_there(saved, tmp_path):
    for name in ("LICENSE", "notes.md", "graph.svg"):
        assert edited(saved, tmp_path / name, name, lambda content: {"text": "x"}).accepted


def test_a_promise_that_ends_elsewhere_or_speaks_of_nothing_is_rejected(saved, tmp_path):
    def ends(content):
        content["promise"]["stop"] = "b"

    def starts_nowhere(content):
        content["promise"]["language"]["start"] = "nowhere"

    wrong = "the promise ends a generation with 'b', and circuit.json with '2'"
    assert edited(saved, tmp_path / "ends", "construction.json", ends).reason == wrong
    nothing = "no letter leads from the language's start 'nowhere': it holds nothing to be right on"
    assert edited(saved, tmp_path / "starts", "construction.json", starts_nowhere).reason == nothing


@pytest.mark.parametrize("file", ["generation_config.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("value", [[], "x", 3, {}], ids=str)
def test_other_json_is_one_sentence(saved, tmp_path, file, value):
    directory = tmp_path / "edited"
    shutil.copytree(saved["2"], directory)
    (directory / file).write_text(json.dumps(value))
    verdict = check(directory)
    assert not verdict.accepted and "\n" not in verdict.reason


def test_a_closed_pipe_is_no_error(saved):
    run = [sys.executable, "-m", "verify.checker", str(saved["2"])]
    process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", 0)
