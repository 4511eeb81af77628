"""A calibration in a model directory: what is written is read back, what a stranger wrote is checked."""

import json
from dataclasses import replace

import pytest
from tests.storage.test_model_directory import stored

from headway.errors import UserError
from headway.storage import Calibration, load_model, save_model
from headway.storage.checksums import checksum
from headway.text.domain import Domain

CALIBRATION = Calibration(
    (1.5, -0.25, 3.0, 0.0, 1e-3), -2.5, Domain({5: 7, 289: 1}, 290, (-1.25, 6.5), (2.0, -0.5, 3.0), 2.75)
)


def test_round_trip(tmp_path):
    save_model(tmp_path / "m", replace(stored(), calibration=CALIBRATION))
    assert load_model(tmp_path / "m").calibration == CALIBRATION
    save_model(tmp_path / "n", stored())
    assert load_model(tmp_path / "n").calibration is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 2}, "newer"),
        ({"weights": {"mean_entropy": 1}}, "weights must be of"),
        ({"weights": [1, 2, 3, 4, 5]}, "weights must be of"),
        ({"bias": True}, "bias.*: must be a valid number"),
        ({"bias": None}, "bias.*: must be a valid number"),
        ({"bias": 10**400}, "bias.*: must be a finite number"),
        ({"domain": {}}, "domain.counts is missing"),
        ({"domain.mean": [1]}, "domain.mean.1 is missing"),
        ({"domain.mean": 1}, "domain.mean.*: must be a valid array"),
        ({"domain.precision": [1, 2, "3"]}, "domain.precision.2.*: must be a valid number"),
        ({"domain.farthest": 0}, "domain.farthest must be above 0"),
        ({"domain.farthest": 1e-308}, "domain.farthest must be above 0"),
        ({"domain.precision": [1e308, 0.0, 1.0]}, "has a number beyond 1e[+]50"),
        ({"bias": -1e308}, "has a number beyond 1e[+]50"),
        ({"domain.counts": {"290": 1}}, "in the vocabulary"),
        ({"domain.counts": {"-1": 1}}, "in the vocabulary"),
        ({"domain.counts": {"5": 0}}, "must be whole numbers"),
        ({"domain.counts": {"5": 1.5}}, "domain.counts.5.*: must be a valid integer"),
        ({"domain.counts": {"five": 1}}, "domain.counts.five.*: must be a valid integer"),
        ({"domain.counts": [1]}, "domain.counts=.*: must be"),
    ],
)
def test_a_strangers_calibration_is_refused_in_a_line(tmp_path, change, message):
    save_model(tmp_path / "m", replace(stored(), calibration=CALIBRATION))
    file, config_file = tmp_path / "m" / "calibration.json", tmp_path / "m" / "config.json"
    document = json.loads(file.read_text())
    [(path, value)] = change.items()
    *outer, name = path.split(".")
    (document[outer[0]] if outer else document)[name] = value
    file.write_text(json.dumps(document))
    with pytest.raises(UserError, match="checksum"):
        load_model(tmp_path / "m")
    config = json.loads(config_file.read_text())
    config["sha256"][file.name] = checksum(file)
    config_file.write_text(json.dumps(config))
    with pytest.raises(UserError, match=message) as error:
        load_model(tmp_path / "m")
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)
