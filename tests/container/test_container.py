"""The image of deploy/Dockerfile, as far as it can be made without Docker: a Debian root in place of the base image, in
which its steps run one after the other, and its start as its user. `make test-container`, as root."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from headway.storage import load_model, save_model

ROOT = Path(__file__).parents[2]
USER = 10001
pytestmark = pytest.mark.container


def steps() -> list[tuple[str, str]]:
    """Instructions of the Dockerfile with their arguments."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8"), flags=re.M)
    lines = re.sub(r"\\\n", " ", text).splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines if line.strip())]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The root and the environment of the container, and its command."""
    root = tmp_path_factory.mktemp("image") / "root"
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    packages = "--include=python3,python3-venv,ca-certificates"
    subprocess.run(["debootstrap", "--variant=minbase", packages, release["VERSION_CODENAME"], str(root)], check=True)
    for file in ("etc/resolv.conf", "etc/pip.conf", "etc/ssl/certs/ca-certificates.crt"):
        if Path("/", file).exists():
            shutil.copy(Path("/", file), root / file)
    (root / "usr/bin/python").symlink_to("python3")
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    environment |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    folder, command = "/", []
    for name, rest in steps():
        if name == "WORKDIR":
            folder = rest
        elif name in ("ARG", "ENV"):
            for one in re.findall(r"(\w+)=(\S*)", rest):
                environment[one[0]] = one[1].replace("$PATH", environment["PATH"])
        elif name == "COPY" and not rest.startswith("--from"):
            *sources, target = rest.split()
            for source in sources:
                copied = root / target.lstrip("/")
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, copied, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    copied.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / source, copied)
        elif name == "RUN":
            inside = ["chroot", str(root), "sh", "-c", f"cd {folder} && {rest}"]
            subprocess.run(inside, env=environment, check=True)
        elif name in ("ENTRYPOINT", "CMD"):
            command += json.loads(rest)
    return root, environment, command


@pytest.fixture
def model(image):
    """A model in the image, made by root."""
    stored = load_model(ROOT / "tests" / "golden" / "model")
    before = os.umask(0o022)
    try:
        save_model(image[0] / "model", stored)
    finally:
        os.umask(before)


def test_it_translates_as_its_user_without_torch(image, model, tmp_path):
    root, environment, command = image
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    no_torch = ["chroot", str(root), "/opt/headway/bin/python", "-c", "import torch"]
    assert b"No module named 'torch'" in subprocess.run(no_torch, check=False, capture_output=True).stderr
    started = ["chroot", f"--userspec={USER}:{USER}", str(root), *command, "--port", str(port)]
    log = tmp_path / "log"
    with log.open("w") as stderr:
        process = subprocess.Popen(started, env=environment, stderr=stderr)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            assert process.poll() is None, log.read_text()
            try:
                with urllib.request.urlopen(f"{url}/ready", timeout=5):
                    break
            except OSError:
                time.sleep(0.2)
        else:
            pytest.fail("it was never ready")
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert re.search(rf"^Uid:\s+{USER}\s", status, re.M)
        assert re.search(r"^CapEff:\s+0+$", status, re.M)
        body = json.dumps({"q": "Ein Hund", "source": "de", "target": "en"}).encode()
        request = urllib.request.Request(f"{url}/translate", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert isinstance(json.load(answer)["translatedText"], str)
    finally:
        process.terminate()
        assert process.wait(40) == 0
