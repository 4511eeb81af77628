"""Models of ours where other tools run them, and back, through the command line."""

import pytest

from tests.system.running import complaint, run_headway


def test_to_hugging_face_and_back(corpus, trained, tmp_path):
    transformers = pytest.importorskip("transformers")
    outcome = run_headway("export", trained, "--to", "huggingface", "--output", tmp_path / "hf")
    assert outcome.code == 0, outcome.err
    assert outcome.err.splitlines() == [
        f"{trained}: exporting, and checking that the result translates as the model does",
        f"{tmp_path / 'hf'}: written and checked",
    ]
    lines = corpus.file("test.src").read_text().splitlines()[:20]
    with pytest.warns(UserWarning, match="sacremoses"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf")
    batch = tokenizer(lines, return_tensors="pt", padding=True)
    found = tokenizer.batch_decode(model.generate(**batch, length_penalty=0.0), skip_special_tokens=True)
    text = "".join(f"{line}\n" for line in lines)
    wanted = run_headway("translate", trained, "--length-penalty", 0, input_=text)
    assert found == wanted.out.splitlines()

    outcome = run_headway("import", tmp_path / "hf", "--output", tmp_path / "back")
    assert (outcome.code, outcome.out) == (0, ""), outcome.err
    for options in (["--beam-size", 1], ["--json"]):
        ours, back = (
            run_headway("translate", one, corpus.file("test.src"), *options) for one in (trained, tmp_path / "back")
        )
        assert (back.code, back.out) == (0, ours.out)


def test_what_is_wrong_is_one_line(trained, tmp_path):
    (tmp_path / "there").mkdir()
    assert "is there already" in complaint("import", tmp_path, "--output", tmp_path / "there")
    assert "config.json: is missing" in complaint("import", tmp_path / "there", "--output", tmp_path / "out")
    (tmp_path / "there" / "config.json").write_text('{"model_type": "bart"}')
    assert "model_type 'bart'" in complaint("import", tmp_path / "there", "--output", tmp_path / "out")
    refused = complaint(
        "export", trained, "--to", "huggingface", "--output", tmp_path / "out", "--quantization", "int8"
    )
    assert "--quantization is of ctranslate2 and argos alone" in refused
    assert not (tmp_path / "out").exists()
