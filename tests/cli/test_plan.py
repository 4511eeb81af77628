"""`headway plan`: what it prints, what it refuses, and that the pages show what it prints."""

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from headway.cli import app
from headway.cli.plan import _bytes
from headway.data.encoding import EncodedChunk, PairCounts
from headway.data.packing import Joined
from headway.data.shards import ShardsWriter
from headway.errors import UserError
from headway.recipe.planning import HARDWARE
from headway.recipe.reading import make_recipe
from headway.recipe.recipe import Recipe
from headway.text.tokenizer import CONTROL_PIECES
from headway.text.words import WordTokenizer
from headway.training.run_directory import write_recipe

DOCS = Path(__file__).parents[2] / "docs"


def run(command: str) -> str:
    """What `headway ...` prints."""
    done = CliRunner().invoke(app, shlex.split(command.replace("\\\n", " "))[1:])
    assert done.exit_code == 0, done.exception
    return done.stdout


def found(command: str):
    return json.loads(run(f"{command} --json"))


def refusal(command: str) -> str:
    """Its one line; the program ends with 2 by it (`headway.cli._run`)."""
    error = CliRunner().invoke(app, shlex.split(command)[1:], standalone_mode=False).exception
    assert isinstance(error, UserError) or hasattr(error, "format_message"), error
    text = str(error) if isinstance(error, UserError) else error.format_message()
    assert "\n" not in text
    return text


def commands_of(page: Path) -> list[tuple[str, str]]:
    """Each `headway plan` of a page with the output that is shown below it."""
    blocks = re.findall(r"```\n(headway plan.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    commands = [re.match(r"(?:.*\\\n)*.*\n", block)[0] for block in blocks]
    return [(command, block.removeprefix(command)) for command, block in zip(commands, blocks, strict=True)]


@pytest.mark.parametrize("page", ["scaling.md", "scaling.ko.md"])
def test_pages_show_what_is_printed(page, monkeypatch):
    monkeypatch.chdir(DOCS.parent)
    shown = commands_of(DOCS / page)
    assert len(shown) >= 6
    for command, output in shown:
        assert run(command) == output, command


def test_both_pages_show_the_same():
    assert commands_of(DOCS / "scaling.md") == commands_of(DOCS / "scaling.ko.md")


def test_without_a_model_it_shows_devices_and_the_paper():
    text = run("headway plan")
    assert all(re.search(rf"^{name} ", text, flags=re.MULTILINE) for name in HARDWARE)
    assert "28.8%" in text
    assert "41.9%" in text


def test_options_name_all_hardware():
    [option] = [one for one in app_options() if one.name == "hardware"]
    assert re.findall(r"\b(?:cpu|[a-z]\d+)\b", option.help) == list(HARDWARE)


def app_options():
    import typer

    return typer.main.get_command(app).commands["plan"].params


def test_json_has_the_same_figures():
    command = "headway plan base tokenizer.vocab_size=37000 --pairs 4.5e6 --devices 8 --hardware a100"
    document = found(command)
    assert document["parameters"] == 63_082_496
    assert "63,082,496 parameters" in run(command)
    assert f"{document['tokens_per_second']:,.0f} target tokens/s" in run(command)
    assert document["efficiency"] == 0.3
    assert "a guess" in run(command)
    assert "a guess" not in run(f"{command} --efficiency 0.3")


def test_changes_and_recipes_are_those_of_training():
    """A shipped recipe has the model, the steps and the batch that a preset may be given."""
    by_name = found("headway plan wmt14-en-de-base --pairs 4.5e6 --hardware p100 --devices 8")
    changes = "tokenizer.vocab_size=37000 training.max_steps=100000 training.tokens_per_batch=50000"
    changes += " training.tokens_per_micro_batch=25000"
    assert found(f"headway plan base {changes} --pairs 4.5e6 --hardware p100 --devices 8") == by_name


def test_efficiency_and_measured_speed_lead_to_each_other():
    command = "headway plan base --pairs 1e6 --hardware h100 training.max_steps=1000"
    one = found(f"{command} --efficiency 0.4")
    other = found(f"{command} --measured {one['tokens_per_second']}")
    assert other["efficiency"] == pytest.approx(0.4)
    assert other["hours"] == pytest.approx(one["hours"])


def write_prepared(folder: Path, *sizes: int, dtype: str = "<u2", vocab_size: tuple[int, int] = (100, 100)) -> None:
    """Corpora of so many pairs, each of 2 + 1 tokens, with vocabularies of so many words."""
    writer = ShardsWriter(folder / "train", np.dtype(dtype), len(sizes))
    for corpus, size in enumerate(sizes):
        ids, ones = np.arange(2 * size), np.ones(size, dtype=np.int64)
        sides = Joined(ids, 2 * ones), Joined(ids[:size], ones)
        no_hashes = np.empty((0, size), dtype=np.uint64)
        writer.add(EncodedChunk(corpus, 1, PairCounts(), *sides, [], no_hashes))
    writer.finish()
    for side, size in zip(("source", "target"), vocab_size, strict=True):
        words = WordTokenizer([f"w{number}" for number in range(size - len(CONTROL_PIECES))])
        (folder / f"{side}{words.suffix}").write_bytes(words.to_bytes())


@pytest.mark.parametrize(("dtype", "vocab_size"), [("<u2", 2**16), ("<i4", 2**16 + 1)])
def test_prepared_data_is_counted(dtype, vocab_size, tmp_path):
    """Three pairs, in a folder and as a run's; they are as large as options would have told."""
    write_prepared(tmp_path / "run" / "data", 3, dtype=dtype, vocab_size=(vocab_size, vocab_size))
    on_cpu = "--hardware cpu --peak 0.1"
    described = f"tokenizer.vocab_size={vocab_size} --pairs 3 --source-tokens 2 --target-tokens 1"
    told = run(f"headway plan tiny {described} {on_cpu}")
    for data in (tmp_path / "run", tmp_path / "run" / "data"):
        assert run(f"headway plan tiny --data {data} {on_cpu}") == told
    files = (tmp_path / "run" / "data" / "train").rglob("*.*")
    written = sum(file.stat().st_size for file in files if file.suffix in (".ids", ".offsets"))
    assert f" {written} B when prepared" in told


def test_prepared_data_has_its_own_vocabularies(tmp_path):
    """Whatever the recipe asks for; a preset that shares the embeddings of both sides doesn't fit them."""
    write_prepared(tmp_path, 3, vocab_size=(300, 200))
    on_cpu = "--hardware cpu --peak 0.1"
    separate = found(f"headway plan tiny model.share_embeddings=none --data {tmp_path} {on_cpu}")
    smaller = found(f"headway plan tiny model.share_embeddings=none tokenizer.vocab_size=200 --pairs 3 {on_cpu}")
    assert separate["parameters"] - smaller["parameters"] == 100 * 128
    assert "differ; use 'decoder' or 'none'" in refusal(f"headway plan tiny --data {tmp_path} {on_cpu}")


def recipe_of(folder: Path, *weights: float, prepared: Path | None = None) -> Recipe:
    text = {"source": str(folder / "a.de"), "target": str(folder / "a.en")}
    data = {"train": [{**text, "weight": weight} for weight in weights or (1.0,)], "valid": text}
    if prepared is not None:
        data["prepared"] = str(prepared)
    return make_recipe({"data": data, "model": {"preset": "tiny"}, "training": {"max_epochs": 1}})


def test_a_run_that_trains_on_a_prepared_folder_is_counted_there(tmp_path):
    write_prepared(tmp_path / "prepared", 3)
    (tmp_path / "run").mkdir()
    write_recipe(tmp_path / "run", recipe_of(tmp_path, prepared=tmp_path / "prepared"))
    command = "headway plan tiny --hardware cpu --peak 0.1 --data"
    assert run(f"{command} {tmp_path / 'run'}") == run(f"{command} {tmp_path / 'prepared'}")
    shutil.rmtree(tmp_path / "prepared")
    assert f"its data.prepared, {tmp_path / 'prepared'}, is gone" in refusal(f"{command} {tmp_path / 'run'}")


def test_weights_are_of_the_epoch_not_of_the_corpus(tmp_path):
    """7,000 pairs and half of 5,000 more."""
    write_prepared(tmp_path / "prepared", 7000, 5000)
    (tmp_path / "half.yaml").write_text(recipe_of(tmp_path, 1, 0.5).to_yaml())
    (tmp_path / "twice.yaml").write_text(recipe_of(tmp_path, 1, 2).to_yaml())
    (tmp_path / "all.yaml").write_text(recipe_of(tmp_path, 1, 1).to_yaml())
    half, twice, whole = (
        run(f"headway plan {tmp_path}/{name}.yaml --data {tmp_path}/prepared --hardware cpu --peak 0.1")
        for name in ("half", "twice", "all")
    )
    [corpus] = [line for line in whole.splitlines() if line.startswith("corpus")]
    assert corpus.split()[1:3] == ["12,000", "pairs"]
    assert corpus in half
    assert corpus in twice
    assert "an epoch has 9,500 of 12,000 pairs\n" in half
    assert "an epoch has 17,000 of 12,000 pairs, some more than once\n" in twice
    assert "by its weights" not in whole


def test_one_is_singular():
    command = "headway plan tiny --hardware cpu --source-tokens 5 --target-tokens 5"
    text = run(f"{command} --peak 0.001 --pairs 1")
    assert "corpus    1 pair of" in text
    assert "an epoch has 1\n" in text
    assert "1 sentence a minute" in run(f"{command} --serve 1 --measured 1")
    text = run(f"{command} --translate 3600 --measured 1")
    assert "1 hour on 1 device; 1 hour of a device" in text


def test_precision_is_what_the_hardware_has():
    command = "headway plan base --pairs 1e6"
    assert "in bf16" in run(f"{command} --hardware a100")
    assert "312 in bf16" in run(f"{command} --hardware a100")
    assert "19.5 in fp32" in run(f"{command} --hardware a100 training.precision=fp32")
    assert "9.5 in fp32" in run(f"{command} --hardware p100")


def test_a_model_that_does_not_fit_is_told():
    command = "headway plan big model.d_model=4096 model.d_ff=16384 --pairs 1e9 --devices 64 --hardware l4"
    assert "More than its 24 GB" in run(command)
    assert "More than" not in run(command.replace("l4", "h200"))


def test_translating_and_serving():
    translating = found("headway plan small --translate 1e9 --measured 100 --hours 24")
    assert translating["devices"] == 116
    assert "116 devices" in run("headway plan small --translate 1e9 --measured 100 --hours 24")
    assert found("headway plan small --serve 1e6 --measured 100")["devices"] == 239


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("headway plan nosuch --pairs 1", "nosuch: no such file, and no preset or recipe of that name"),
        ("headway plan base big --pairs 1", "not base and big"),
        ("headway plan model.d_model=512 --pairs 1", "give one preset"),
        ("headway plan base --hardware h100", "--pairs is missing"),
        ("headway plan base --pairs 1e6", "how fast is a device?"),
        ("headway plan base --pairs 1e6 --hardware cpu", "how fast is a device?"),
        ("headway plan base --pairs 1e6 --hardware z9", "--hardware z9: unknown; choose one of cpu, p100"),
        ("headway plan base --pairs 1e6 --hardware p100 training.precision=bf16", "the peak of p100 in it is unknown"),
        ("headway plan base --pairs 1e6 --hardware h100 model.d_modl=3", "did you mean model.d_model?"),
        ("headway plan base --pairs 1e6 --hardware h100 model.num_heads=7", "not divisible"),
        ("headway plan base --pairs 1e6 --hardware h100 --efficiency 30", "should be less than or equal to 1"),
        (
            "headway plan base --pairs 1e6 --hardware h100 --efficiency 0.3 --measured 5",
            "--efficiency can't be used with --measured",
        ),
        ("headway plan base --pairs 1e6 --hardware h100 --devices 0", "--devices"),
        ("headway plan base --pairs 1e6 --hardware h100 --hours 3", "--hours is for --translate"),
        ("headway plan base --translate 1e6 --serve 3 --measured 5", "--serve can't be used with --translate, which"),
        ("headway plan base --translate 1e6 --hardware h100", "--measured is missing"),
        (
            "headway plan base --pairs 1e6 --data {here} --hardware h100",
            "--pairs can't be used with --data, which counts",
        ),
        ("headway plan base --pairs 0.5 --hardware h100", "'--pairs': Input should be greater than or equal to 1"),
        ("headway plan base --translate 0.5 --measured 5", "'--translate': Input should be greater than or equal to 1"),
        ("headway plan --pairs 10", "--pairs needs a model"),
        (
            "headway plan base --data {here} --source-tokens 20 --hardware h100",
            "--source-tokens can't be used with --data",
        ),
        (
            "headway plan base tokenizer.vocab_size=99 --data {here} --hardware h100",
            "tokenizer.vocab_size=99 can't be used with --data",
        ),
        (
            "headway plan base --translate 1e6 --measured 5 --hours 3 --devices 1",
            "--devices can't be used with --hours",
        ),
        ("headway plan base --serve 1e6 --measured 5 --devices 2", "--devices can't be used with --serve"),
        ("headway plan base --translate 1e6 --measured 5 --pairs 9", "--pairs can't be used with --translate"),
        ("headway plan base --serve 1e6 --measured 5 --pairs 9", "--pairs can't be used with --serve"),
        ("headway plan base --pairs 1e6 --hardware h100 --beam-size 5", "--beam-size is only for --translate"),
        (
            "headway plan base --pairs 1e6 --hardware h100 --measured 1e9",
            "--measured 1e+09: is 29,550% of the peak of one device",
        ),
        ("headway plan base --translate 1e6 --peak 0.001 --measured 1e9", "the speed of all devices together?"),
        ("headway plan base --pairs 1e6 --hardware h100 training.tokens_per_batch=61", "training.tokens_per_batch=61:"),
        ("headway plan base --data {here} --hardware h100", "neither a run directory nor prepared data"),
    ],
)
def test_a_slip_is_one_line(command, says, tmp_path):
    assert says in refusal(command.format(here=tmp_path))


def test_stages_are_planned_one_by_one_and_together():
    """One as it is planned alone; the work of all is about what runs have counted, 0.766 PFLOP (docs/results.md)."""
    options = "--pairs 29000 --source-tokens 14.89 --target-tokens 14.32 --hardware cpu --measured 5000"
    together = found(f"headway plan multi30k-de-en-fast {options}")
    parts = together["stages"]
    assert list(parts) == ["both", "direction", "risk", "student"]
    for key in ("steps", "hours"):
        assert together[key] == pytest.approx(sum(one[key] for one in parts.values()))
    assert together["memory_peak"] == max(one["memory_peak"] for one in parts.values())
    assert sum(together["work"].values()) == pytest.approx(0.766e15, rel=0.15)
    alone = found(f"headway plan multi30k-de-en-fast stages=null training.max_steps=21000 {options}")
    assert parts["direction"]["work"] == alone["work"]
    assert parts["direction"]["hours"] == pytest.approx(alone["hours"], rel=0.02)  # `both` has other mean lengths
    assert parts["both"]["epochs"] == pytest.approx(parts["direction"]["epochs"] / 6, rel=0.01)
    lines = run(f"headway plan multi30k-de-en-fast {options}").splitlines()
    assert [line.split()[0] for line in lines] == ["stage", *parts, "all", "at"]


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (0, "0 B"),
        (999.6, "1 kB"),
        (999_600_000_000, "1 TB"),
        (1.36e12, "1.36 TB"),
        (1.36e17, "136 PB"),
        (6e19, "60 EB"),
    ],
)
def test_bytes_have_three_digits(size, said):
    assert _bytes(size) == said
