from __future__ import annotations

import pytest

from benchmarks.__main__ import BENCHMARKS, main


def test_a_name_that_is_no_benchmark_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["rules", "nothing"])

    assert ended.value.code == 2
    assert capsys.readouterr().err == f"There is no benchmark nothing. There are: {', '.join(BENCHMARKS)}.\n"
