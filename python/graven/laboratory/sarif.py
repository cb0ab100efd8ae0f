"""Findings as SARIF 2.1.0, the format in which services for code show what analyses find."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graven import _engine
from graven.laboratory.hygiene import Hygiene, where
from graven.laboratory.powerfail import Powerfail

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"bug": "error", "waste": "warning"}


def to_sarif(found: Hygiene) -> dict[str, Any]:
    """Returns the log of one run: a rule for each class, a result for each finding."""
    rules = {
        finding["class"]: {
            "id": finding["class"],
            "shortDescription": {
                "text": f"{finding['problem'][0].upper()}{finding['problem'][1:]}"
            },
            "help": {"text": f"{finding['repair'][0].upper()}{finding['repair'][1:]}."},
            "defaultConfiguration": {"level": LEVELS[finding["severity"]]},
        }
        for finding in found.findings
    }
    driver = {
        "name": "graven hygiene",
        "semanticVersion": _engine.__version__,
        "rules": list(rules.values()),
    }
    results = [_result(finding, list(rules).index(finding["class"])) for finding in found.findings]
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def violations_to_sarif(found: Powerfail) -> dict[str, Any]:
    """Returns the log of one run: a result for each violation, at the store that is missing."""
    rules = [
        {
            "id": "power-failure",
            "shortDescription": {"text": "A power failure leaves what the program refuses"},
            "help": {"text": "Make the missing store durable before the one that is left."},
            "defaultConfiguration": {"level": "error"},
        }
    ]
    driver = {"name": "graven powerfail", "semanticVersion": _engine.__version__, "rules": rules}
    results = [_violation(violation) for violation in found.violations]
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _violation(violation: Mapping[str, Any]) -> dict[str, Any]:
    words = [violation["edge"], violation["said"], violation["mend"]]
    text = "; ".join(word for word in words if word)
    stores = [*violation["missing"], *violation["present"]]
    frames = [store["place"] for store in stores] or [violation["after"] or {}]
    return {
        "ruleId": "power-failure",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": f"{text[0].upper()}{text[1:]}."},
        "occurrenceCount": violation["count"],
        "locations": [_location(frames[0])],
        "stacks": [
            {"frames": [{"location": _location(frame)} for frame in store["calls"]]}
            for store in violation["missing"]
        ],
        "relatedLocations": [
            {**_location(store["place"]), "message": {"text": label}}
            for key, label in (("missing", "is missing"), ("present", "is left"))
            for store in violation[key]
        ],
    }


def _result(finding: Mapping[str, Any], rule: int) -> dict[str, Any]:
    text = f"{finding['problem']}; {finding['repair']}"
    result: dict[str, Any] = {
        "ruleId": finding["class"],
        "ruleIndex": rule,
        "level": LEVELS[finding["severity"]],
        "message": {"text": f"{text[0].upper()}{text[1:]}."},
        "occurrenceCount": finding["count"],
        "locations": [_location(finding["place"])],
        "stacks": [
            {"frames": [{"location": _location(frame)} for frame in finding["calls"]]},
        ],
        "relatedLocations": [
            {**_location(partner["place"]), "message": {"text": partner["is"]}}
            for partner in finding["partners"]
        ],
    }
    return result


def _location(frame: Mapping[str, Any]) -> dict[str, Any]:
    location: dict[str, Any] = {"message": {"text": where(frame)}}
    if frame.get("function"):
        location["logicalLocations"] = [{"name": frame["function"], "kind": "function"}]
    path = frame.get("file") or frame.get("module")
    if path is None:
        return location
    name = Path(path)
    uri = name.as_uri() if name.is_absolute() else name.as_posix()
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if frame.get("line"):
        physical["region"] = {"startLine": frame["line"]}
    return {**location, "physicalLocation": physical}
