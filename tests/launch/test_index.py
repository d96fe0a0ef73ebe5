import configparser
import os
import stat
import subprocess
import sys

import pytest

from jaxmeter.launch.index import read_index, write_secrets

SECRET = "https://me:hunter2@pypi.example.com/simple"


@pytest.fixture
def machine(tmp_path):
    """Writes pip's files and reads them: machine(variables, {file: text})."""
    root, home = tmp_path / "root", tmp_path / "home"
    places = {
        "system": root / "etc/pip.conf",
        "legacy": home / ".pip/pip.conf",
        "user": home / ".config/pip/pip.conf",
        "xdg": tmp_path / "xdg/pip/pip.conf",
        "own": tmp_path / "own.conf",
    }

    def read(variables=None, **files):
        for name, text in files.items():
            places[name].parent.mkdir(parents=True, exist_ok=True)
            places[name].write_text(text)
        given = {name: value.format(tmp=tmp_path) for name, value in (variables or {}).items()}
        return read_index(given, home=home, root=root)

    return read


def conf(value, section="global", name="index-url"):
    return f"[{section}]\n{name} = {value}\n"


@pytest.mark.parametrize(
    ("variables", "files", "expected"),
    [
        ({}, {}, "https://pypi.org/simple"),
        ({}, {"system": "system", "legacy": "legacy"}, "legacy"),
        ({}, {"legacy": "legacy", "user": "user"}, "user"),
        ({"XDG_CONFIG_HOME": "{tmp}/xdg"}, {"user": "user", "xdg": "xdg"}, "xdg"),
        ({"XDG_CONFIG_HOME": ""}, {"user": "user"}, "user"),
        ({"PIP_CONFIG_FILE": "{tmp}/own.conf"}, {"system": "system", "user": "user", "own": "own"}, "own"),
        ({"PIP_CONFIG_FILE": "{tmp}/own.conf"}, {"user": "user"}, "user"),
        ({"PIP_INDEX_URL": "", "PIP_CONFIG_FILE": "{tmp}/own.conf"}, {"own": "own"}, "own"),
        ({"PIP_CONFIG_FILE": "{tmp}/own.conf", "PIP_INDEX_URL": "variable"}, {"own": "own"}, "variable"),
    ],
    ids=str,
)
def test_later_files_are_over_earlier_ones_and_variables_over_all_files(machine, variables, files, expected):
    index = machine(variables, **{name: conf(url) for name, url in files.items()})

    assert index.url == expected


@pytest.mark.end_to_end
@pytest.mark.parametrize("variables", [{}, {"PIP_CONFIG_FILE": "{tmp}/own.conf"}], ids=str)
def test_the_file_that_counts_is_the_one_that_counts_for_pip(machine, tmp_path, variables):
    files = {name: conf(name) for name in ("legacy", "user", "xdg", "own")}
    given = {name: value.format(tmp=tmp_path) for name, value in variables.items()}
    others = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "XDG_"))}

    index = machine(variables, **files)
    of_pip = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        env={**others, "HOME": str(tmp_path / "home"), **given},
        capture_output=True,
        text=True,
        check=True,
    )

    assert index.url == of_pip.stdout.strip()


OWN, NO_FILE = {"PIP_CONFIG_FILE": "{tmp}/own.conf"}, {"PIP_CONFIG_FILE": os.devnull}
PERCENT = "https://me:p%40ss%2Fword@pypi.example.com/simple"
EXTRA = "\n  https://a.example/simple\n  file:///srv/simple\n  https://b.example/simple"
SETTINGS = {
    "what is set for installing is over what is set for all": (
        {},
        {"user": conf("global") + conf("install", "install")},
        {"index-url": "install"},
    ),
    "for installing is over what a later file says for all": (
        {},
        {"system": conf("install", "install"), "user": conf("global")},
        {"index-url": "install"},
    ),
    "a file that a variable names takes the place of the user's own": (
        OWN,
        {"system": conf("7", name="retries"), "user": conf("user"), "own": conf("90", name="timeout")},
        {"retries": "7", "timeout": "90"},
    ),
    "sections of other commands": ({}, {"user": conf("elsewhere", "download")}, {}),
    "underscores": ({}, {"user": conf("mirror", name="index_url")}, {"index-url": "mirror"}),
    "a percent sign": ({}, {"user": conf(PERCENT)}, {"index-url": PERCENT}),
    "variables where no file is read": (
        NO_FILE | {"PIP_INDEX_URL": "variable"},
        {"user": conf("7", name="retries"), "system": conf("system")},
        {"index-url": "variable"},
    ),
    "the other name of a timeout": ({"PIP_DEFAULT_TIMEOUT": "90"}, {}, {"timeout": "90"}),
    "an index in a folder of this machine": ({}, {"user": conf("file:///srv/simple")}, {}),
    "extra indexes, one in a folder of this machine": (
        {},
        {"user": conf(EXTRA, name="extra-index-url")},
        {"extra-index-url": "https://a.example/simple https://b.example/simple"},
    ),
    "extra indexes of this machine alone": ({"PIP_EXTRA_INDEX_URL": "file:///srv/simple"}, {}, {}),
}


@pytest.mark.parametrize(("variables", "files", "expected"), SETTINGS.values(), ids=SETTINGS)
def test_settings_are_those_that_pip_would_use_and_a_build_can(machine, variables, files, expected):
    assert machine(variables, **files).settings == expected


@pytest.mark.parametrize("broken", [b"index-url = x\n", b"[global]\nnonsense\n", b"[global]\nindex-url = \xff\xfe\n"])
def test_a_broken_file_is_left_for_pip_to_complain_about(machine, tmp_path, broken):
    (tmp_path / "own.conf").write_bytes(broken)

    assert machine(OWN, system=conf("system")).url == "system"


MEANING_THE_SAME = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")
OF_THIS_MACHINE = ("find-links", "no-index", "cache-dir", "target", "require-virtualenv")


def test_settings_that_mean_the_same_in_a_build_are_taken_and_those_about_this_machine_stay_here(machine):
    names = (*MEANING_THE_SAME, *OF_THIS_MACHINE)
    variables = {f"PIP_{name.upper().replace('-', '_')}": "6" for name in names}

    assert machine(user="".join(conf("5", name=name) for name in names)).settings == dict.fromkeys(
        MEANING_THE_SAME, "5"
    )
    assert machine(variables).settings == dict.fromkeys(MEANING_THE_SAME, "6")


@pytest.mark.parametrize(
    ("variables", "is_on_loopback"),
    [
        ({}, False),
        ({"PIP_INDEX_URL": "http://[bad/simple"}, False),
        ({"PIP_INDEX_URL": "http://localhost:3141/root/pypi"}, True),
        ({"PIP_INDEX_URL": "http://127.0.0.1:3141/root/pypi"}, True),
        ({"PIP_INDEX_URL": "http://me:hunter2@[::1]:3141/root/pypi"}, True),
        ({"PIP_INDEX_URL": "https://localhost.example.com/simple"}, False),
        ({"PIP_INDEX_URL": "https://pypi.example.com/localhost"}, False),
        ({"PIP_PROXY": "localhost:3128"}, True),
        ({"PIP_PROXY": "http://proxy.example.com:3128"}, False),
        ({"PIP_EXTRA_INDEX_URL": "https://a.example/simple http://localhost:3141/simple"}, True),
    ],
    ids=str,
)
def test_an_index_or_proxy_on_this_machine_itself_needs_the_machines_own_network(machine, variables, is_on_loopback):
    assert machine(variables).is_on_loopback is is_on_loopback


CA_ORDER = ("PIP_CERT", "install", "global", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")


@pytest.mark.parametrize("first", range(len(CA_ORDER)))
def test_certificates_are_those_that_pip_would_take_first(machine, tmp_path, first):
    bundles = {name: tmp_path / f"{name}.pem" for name in CA_ORDER[first:]}
    for path in bundles.values():
        path.touch()
    in_files = "".join(
        conf(bundles[section], section, "cert") for section in ("global", "install") if section in bundles
    )

    given = {name: str(path) for name, path in bundles.items() if name.isupper()}
    absent = {name: str(tmp_path / "gone.pem") for name in CA_ORDER if name.isupper()}  # passed over
    index = machine({**absent, **given} if first > 2 else given, user=in_files)

    assert index.ca_bundle == bundles[CA_ORDER[first]]


def test_a_pip_conf_of_a_build_says_what_pip_says_here(machine):
    with write_secrets(machine()) as secrets:
        assert secrets.files == {}
    index = machine(user=conf(SECRET) + "trusted-host = a.example\n  b.example\n" + "timeout = 90\n")

    with write_secrets(index) as secrets:
        parser = configparser.RawConfigParser()
        parser.read(secrets.files["pip_conf"])

    assert dict(parser["global"]) == {"index-url": SECRET, "trusted-host": "a.example b.example", "timeout": "90"}


def test_credentials_are_in_a_file_of_this_user_alone_and_gone_even_after_a_build_that_failed(machine):
    seen = []

    def build(secrets):
        path = secrets.files["pip_conf"]
        seen.extend([path, str(secrets), *(stat.S_IMODE(place.stat().st_mode) for place in (path, path.parent))])
        raise RuntimeError("the build failed")

    before = os.umask(0)
    try:
        with pytest.raises(RuntimeError), write_secrets(machine({"PIP_INDEX_URL": SECRET})) as secrets:
            build(secrets)
    finally:
        os.umask(before)

    path, shown, *modes = seen
    assert "hunter2" not in shown
    assert modes == [0o600, 0o700]
    assert not path.parent.exists()


def test_certificates_are_handed_on_as_a_copy_whose_path_holds_no_comma(machine, tmp_path):
    bundle = tmp_path / "ca,company.pem"
    bundle.write_text("certificates")

    with write_secrets(machine({"PIP_CERT": str(bundle)})) as secrets:
        copy = secrets.files["ca_bundle"]
        assert (copy.read_text(), "," in str(copy)) == ("certificates", False)

    assert (copy.exists(), bundle.exists()) == (False, True)
