"""What all commands share: exit statuses, messages, what reaches a terminal, pipes, Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import signal

import command
import pytest
from command import run, start, tensor_record, write_dump, write_rank
from support import REPOSITORY


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path / "dump", {"step0/rank0": {"x.0.debug": tensor_record()}})


WRONG_USAGE = {
    "no command": [],
    "unknown command": ["frobnicate", "DUMP"],
    "unknown option": ["show", "DUMP", "--frobnicate"],
    "no path": ["show"],
    "one path": ["compare", "DUMP"],
    "three paths": ["compare", "DUMP", "DUMP", "DUMP"],
    "show: missing path": ["show", "DUMP/none"],
    "verify: missing path": ["verify", "DUMP/none"],
    "compare: missing golden": ["compare", "DUMP/none", "DUMP", "-o", "OUT"],
    "compare: missing target": ["compare", "DUMP", "DUMP/none", "-o", "OUT"],
    "show: no dump": ["show", "OUT"],
    "verify: no dump": ["verify", "OUT"],
    "compare: no dump": ["compare", "DUMP", "OUT", "-o", "OUT"],
    "show: no tensor file": ["show", "OUT/text.pt"],
    "dump against step": ["compare", "DUMP", "DUMP/step0", "-o", "OUT"],
    "step against rank": ["compare", "DUMP/step0", "DUMP/step0/rank0", "-o", "OUT"],
    "dump against file": ["compare", "DUMP", "OUT/text.pt", "-o", "OUT"],
    "show: bad step": ["show", "DUMP", "--step", "first"],
    "show: bad range": ["show", "DUMP", "--step", "4-2"],
    "verify: bad rank": ["verify", "DUMP", "--rank", "-1"],
    "compare: bad rank": ["compare", "DUMP", "DUMP", "-o", "OUT", "--rank", "1.5"],
    "show: bad regex": ["show", "DUMP", "--name", "(x"],
    "compare: bad regex": ["compare", "DUMP", "DUMP", "-o", "OUT", "--name", "(x"],
    "compare: bad ignore": ["compare", "DUMP", "DUMP", "-o", "OUT", "--ignore", "[x"],
    "compare: no map": ["compare", "DUMP", "DUMP", "-o", "OUT", "--map", "OUT/none.json"],
    "compare: map no JSON": ["compare", "DUMP", "DUMP", "-o", "OUT", "--map", "OUT/text.pt"],
    "compare: negative rtol": ["compare", "DUMP", "DUMP", "-o", "OUT", "--rtol", "-1"],
    "compare: NaN rtol": ["compare", "DUMP", "DUMP", "-o", "OUT", "--rtol", "nan"],
    "compare: infinite atol": ["compare", "DUMP", "DUMP", "-o", "OUT", "--atol", "inf"],
    "compare: rtol no number": ["compare", "DUMP", "DUMP", "-o", "OUT", "--rtol", "small"],
    "compare: cosine above 1": ["compare", "DUMP", "DUMP", "-o", "OUT", "--cosine", "1.5"],
    "compare: NaN cosine": ["compare", "DUMP", "DUMP", "-o", "OUT", "--cosine", "nan"],
    "compare: out is a file": ["compare", "DUMP", "DUMP", "-o", "OUT/text.pt"],
    "compare: no such step": ["compare", "DUMP", "DUMP", "-o", "OUT", "--step", "7"],
    "verify: no such step": ["verify", "DUMP", "--step", "7"],
}


@pytest.mark.parametrize("arguments", WRONG_USAGE.values(), ids=WRONG_USAGE.keys())
def test_wrong_usage_and_unreadable_input_exit_with_2_and_say_why(tmp_path, dump, arguments):
    out = tmp_path / "out"
    out.mkdir()
    (out / "text.pt").write_text("no tensor")
    given = [a.replace("DUMP", str(dump)).replace("OUT", str(out)) for a in arguments]
    finished = run(*given, expect=2)
    assert finished.stderr
    assert len(finished.stderr) < 1000
    assert "Traceback" not in finished.stderr
    assert sorted(path.name for path in out.iterdir() if path.suffix != ".csv") == ["text.pt"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "DUMP", "--frobnicate"], "--frobnicate"),
        (["show", "DUMP/none"], "No such file or directory"),
        (["compare", "DUMP", "DUMP/step0", "-o", "OUT"], "one step of a dump"),
        (["compare", "DUMP", "DUMP", "-o", "OUT", "--rtol", "-1"], "--rtol"),
        (["compare", "DUMP", "DUMP", "-o", "OUT", "--name", "(x"], "missing )"),
        (["show", "DUMP", "--step", "4-2"], "--step"),
    ],
)
def test_messages_name_what_is_wrong(tmp_path, dump, arguments, said):
    out = str(tmp_path / "out")
    given = [a.replace("DUMP", str(dump)).replace("OUT", out) for a in arguments]
    assert said in run(*given, expect=2).stderr


def test_help_and_version_exit_with_0(tmp_path):
    assert "show" in run("--help").stdout
    for name in ["show", "compare", "verify"]:
        assert "PATH" in run(name, "--help").stdout or name == "compare"
    assert run("--version").stdout.strip().count(".") == 2


def test_a_damaged_rank_does_not_hide_the_others_and_exits_with_2(tmp_path):
    x = {"x.0.debug": tensor_record()}
    dump = write_dump(tmp_path / "dump", {"step0/rank0": x, "step0/rank1": x, "step0/rank2": x})
    (dump / "step0/rank1/debug.json").write_text('{"data": {"x.0.debug"')
    shown = run("show", dump, expect=2)
    assert "rank0" in shown.stdout
    assert "rank2" in shown.stdout
    assert "rank1/debug.json" in shown.stderr
    compared = command.compare(dump, dump, tmp_path / "out", expect=2)
    assert [row["Rank"] for row in compared.rows] == ["rank0", "rank2"]
    assert "rank1/debug.json" in compared.stderr
    assert "rank1/debug.json" in run("verify", dump, expect=1).stdout


# A name that would clear the screen, colour, set the title and ring, and bytes that are no text.
EVIL = "a\x1b[2J\x1b]0;t\x07\x9b31m\r\n\t\x00\x7f\u202eb"


def test_control_characters_of_a_dump_do_not_reach_the_terminal(tmp_path):
    evil = tensor_record(Max=5.0, type=EVIL, dtype=EVIL, md5=EVIL)
    records = {f"{EVIL}.0.debug": evil, "s.0.debug": {"type": EVIL, "value": EVIL}}
    golden = write_dump(tmp_path / "golden", {"step0/rank0": records})
    records = {f"{EVIL}.0.debug": evil | {"Max": 7.0, "md5": "1"}, f"{EVIL}2.0.debug": evil}
    records["s.0.debug"] = {"type": EVIL, "value": EVIL + "!"}
    target = write_dump(tmp_path / "target", {"step0/rank0": records})
    (golden / "step0/rank0/dump_tensor_data" / EVIL.replace("\x00", "")).write_bytes(b"")
    outputs = [
        run("show", golden),
        run("show", golden, "--diff-steps"),
        run("show", golden, "--json"),
        run("compare", golden, target, "-o", tmp_path / "out", "--all", expect=1),
        run("verify", golden),
        run("show", tmp_path / EVIL.replace("\x00", ""), expect=2),
    ]
    for output in outputs:
        for letter in output.stdout + output.stderr:
            assert letter == "\n" or letter.isprintable(), ascii(letter)


def test_colours_are_for_terminals_only(tmp_path):
    records = {"x.0.debug": tensor_record(Max=float("nan"), nan_count=1)}
    dump = write_dump(tmp_path / "dump", {"step0/rank0": records})
    assert "\x1b" not in run("show", dump).stdout

    def on_terminal(**changes: str) -> str:
        ours, theirs = pty.openpty()
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        process = command.subprocess.Popen(
            [*command.command(), "show", str(dump)],
            stdout=theirs,
            env=environment | {"TERM": "xterm"} | changes,
        )
        os.close(theirs)
        text = b""
        while True:
            try:
                block = os.read(ours, 65536)
            except OSError:  # EIO: the other end is closed
                break
            if not block:
                break
            text += block
        os.close(ours)
        assert process.wait() == 0
        return text.decode()

    assert "\x1b[31m" in on_terminal()
    assert "\x1b" not in on_terminal(NO_COLOR="1")
    assert "\x1b" not in on_terminal(TERM="dumb")


@pytest.fixture
def long_dump(tmp_path):
    """A dump of which every command would print more than a pipe holds."""
    records = {f"{'layer' * 20}{i}.0.debug": tensor_record() for i in range(3000)}
    write_dump(tmp_path / "long", {"step0/rank0": records})
    return tmp_path / "long"


def test_a_closed_pipe_ends_the_command_quietly(long_dump):
    with start("show", long_dump) as process:
        assert process.stdout.readline().startswith(b"step 0")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode in (2, -signal.SIGPIPE)


def test_ctrl_c_ends_the_command_at_once_and_quietly(long_dump):
    with start("show", long_dump, "--json") as process:
        process.stdout.read(1)  # the pipe is too small for the rest: the command waits there
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGINT


def test_the_program_without_python_does_the_same(tmp_path, dump):
    program = REPOSITORY / "build" / "core" / "msprobe"
    if not program.exists():
        pytest.skip(f"not built: {program}")
    write_rank(dump / "step0" / "rank1", {"x.0.debug": tensor_record(Max=2.0)})
    other = write_dump(tmp_path / "other", {"step0/rank0": {"x.0.debug": tensor_record(Min=0.0)}})
    out = tmp_path / "out"
    for arguments, status in [
        (["show", dump], 0),
        (["show", dump, "--json"], 0),
        (["verify", dump], 0),
        (["compare", dump, other, "-o", out], 1),
        (["compare", dump, dump, "-o", out], 0),
        (["show", dump / "none"], 2),
        (["--version"], 0),
    ]:
        ours = run(*arguments, expect=status)
        assert run(*arguments, expect=status, program=[str(program)]) == ours


def test_show_json_is_json_whatever_the_names(tmp_path):
    records = {f"{EVIL}.0.debug": tensor_record(), '"\\.0.debug': None}
    dump = write_dump(tmp_path / "dump", {"step0/rank0": records})
    assert [r["name"] for r in json.loads(run("show", dump, "--json").stdout)] == [EVIL, '"\\']


def test_compare_names_the_only_folder_when_it_is_damaged(tmp_path, dump):
    damaged = write_dump(tmp_path / "damaged", {"step0/rank0": {}})
    (damaged / "step0/rank0/debug.json").write_text("{")
    compared = command.compare(dump, damaged, tmp_path / "out", expect=2)
    assert "damaged/step0/rank0/debug.json" in compared.stderr
    assert "no differences\n" not in compared.stdout
