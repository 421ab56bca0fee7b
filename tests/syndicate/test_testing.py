# mypy: disable-error-code="func-returns-value, misc"
# (a tuple in a lambda joins what is done in one turn; mypy cannot infer lambdas with defaults)

from __future__ import annotations

import inspect
import textwrap

import pytest

from syndicate import Record, assert_, capture, dataspace, react, send, stop, testing
from syndicate.testing import settled, watch

pytest_plugins = ["pytester"]


def test_the_example_of_the_module(pytester: pytest.Pytester) -> None:
    """What the documentation tells a newcomer to write runs as it stands, in no time."""
    text = inspect.getdoc(testing) or ""
    conftest, example = text.split("::\n\n")[1:]
    pytester.makeconftest(textwrap.dedent(conftest.partition("\n\nand")[0]))
    body = example.partition("\n\nWhat needs")[0]
    pytester.makepyfile("import pytest, trio\n" + textwrap.dedent(body))
    pytester.makeini("[pytest]\ntrio_mode = true\n")
    result = pytester.runpytest_subprocess("-q")
    result.assert_outcomes(passed=1)


def test_the_fixtures_need_no_trio_mode(pytester: pytest.Pytester) -> None:
    """A test marked as trio's gets them too; ``logs`` and ``trace`` tell what happened."""
    pytester.makeconftest('pytest_plugins = ["syndicate.testing"]')
    pytester.makepyfile(
        """
        import pytest, trio
        from syndicate import after

        @pytest.mark.trio
        async def test_a_crash(system, settle, trace, logs, clock):
            start = trio.current_time()
            system.spawn(lambda: after(1000, lambda: 1 / 0), name="late")
            await trio.sleep(1001)
            await settle()
            assert trio.current_time() - start < 1002
            assert [entry["actor"] for entry in logs] == ["late"]
            assert [type(entry.item).__name__ for entry in trace] == ["Started", "Turned", "Turned", "Stopped"]
        """
    )
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1)


def test_watch_marks_events() -> None:
    """``+``, ``-`` and ``!`` with the captures, for as long as its facet lives."""
    seen = []

    def boot() -> None:
        ds = dataspace()
        seen.append(watch(ds, Record("r", [capture(), capture()])))
        stop(react(lambda: assert_(ds, Record("r", [1, 2]))))
        send(ds, Record("r", [3, 4, 5]))

    settled(boot)
    assert seen == [[("+", 1, 2), ("!", 3, 4), ("-", 1, 2)]]


def test_settled_raises_what_boot_raised() -> None:
    """So that an assertion in a boot function is seen by the test."""
    with pytest.raises(ZeroDivisionError):
        settled(lambda: 1 / 0)
