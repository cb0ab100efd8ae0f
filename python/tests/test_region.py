"""Regions in steady state, from options to tables.

The class of bug: a count of one region beside that of a longer one; a result that is of no steady
state and does not say so; an option that is heard and changes nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import ENVIRONMENT

import graven
from graven.region import in_steady_state

COMPARED = """
import json, graven
small = {
    "workload.footprint_bytes": "2 MB",
    "llc.bytes": "256 KB",
    "region.fast_forward_transactions": 500,
    "region.warm_up_transactions": 200,
}
result = graven.compare(
    "base,fwb", "hash", steady=True, transactions=400, store=None, settings=small
)
result.save("r.json")
stats = ["media_write_requests", "throughput_tx_per_s", "write_energy_pj", "peak_wear"]
print(json.dumps({
    "transactions": [record.transactions for record in result],
    "counted": {stat: result.records[0].stats[stat] for stat in stats},
    "shown": {stat: result.number(stat, "base", "hash", 8) for stat in stats},
    "interval": vars(result.interval(stats[0], "base", "hash", 8)),
    "why": [record.why_not_steady for record in result],
    "estimates": [record.estimate(stats[0]) for record in result],
    "loaded": [record.estimate(stats[0]) for record in graven.load("r.json")],
}))
"""


@pytest.mark.usefixtures("real_engine")
def test_a_region_in_steady_state_is_measured_and_shown_per_transaction(tmp_path):
    command = [sys.executable, "-c", COMPARED]
    text = subprocess.check_output(command, cwd=tmp_path, env=ENVIRONMENT, text=True)
    found = json.loads(text)
    assert found["transactions"] == [400, 400]
    interval = found["interval"]
    assert interval["kind"] == "windows"
    assert interval["half_width"] > 0
    counted, shown = found["counted"], found["shown"]
    # But for what is pending at the ends of the region.
    for stat in ("media_write_requests", "write_energy_pj"):
        assert shown[stat] == pytest.approx(counted[stat] / 400, rel=0.1)
    assert shown["throughput_tx_per_s"] == pytest.approx(counted["throughput_tx_per_s"], rel=0.1)
    assert shown["peak_wear"] == counted["peak_wear"], "it does not add up"
    assert any("scans" in reason for reason in found["why"][1])
    assert found["loaded"] == found["estimates"]


def test_a_whole_run_is_asked_for_by_default():
    assert in_steady_state({"pm.read_ns": "60"}, asked=False) == {"pm.read_ns": "60"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"region.kind": "whole"}, "steady: a region in steady state is asked for"),
        ({"recovery.points": "3"}, "steady: recovery (recovery.points) is timed"),
    ],
)
def test_what_does_not_go_with_it_is_refused(settings, said):
    with pytest.raises(graven.ConfigError) as refused:
        in_steady_state(settings, asked=True)
    assert str(refused.value).startswith(said)
