# SPDX-License-Identifier: Apache-2.0
"""Holds alert rules and a dashboard to what daemons print.

    alerts.py RULES DASHBOARD METRICS...

Of each expression the names of metrics, and the labels that it chooses or groups by, have to be in
one of the METRICS (texts of Prometheus' format). A rule says how bad it is, what is the matter and
what to do; a panel has a title and expressions, and panels do not lie over each other. Prints each
offence; exits 1 if there is one.
"""
import json
import re
import sys

import yaml

# What Prometheus adds, or writes itself.
GIVEN_LABELS = {"instance", "job", "le"}
GIVEN_METRICS = {"up"}
offences = []


def offence(where, what):
    offences.append(f"{where}: {what}")


def read_metrics(paths):
    """Series name -> label -> the values that it has."""
    metrics = {}
    for path in paths:
        for line in open(path, encoding="utf-8"):
            found = re.match(r'([a-z0-9_]+)(?:\{(.*)\})? \S+$', line)
            if line.startswith("# TYPE"):
                metrics.setdefault(line.split()[2], {})
            elif found:
                labels = metrics.setdefault(found[1], {})
                for name, value in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or ""):
                    labels.setdefault(name, set()).add(value)
    return metrics


def check_matcher(where, metrics, name, matcher):
    label, relation, value = matcher
    if label in GIVEN_LABELS:
        return
    values = metrics[name].get(label)
    if values is None:
        offence(where, f"{name} has no label {label}")
    elif relation == "=" and value not in values and "$" not in value:
        offence(where, f"{name} has no {label}=\"{value}\"")


def check_expression(where, expression, metrics):
    names = []
    for name, chosen in re.findall(r'\b([a-z_]\w*)\b(?!\s*\()(?:\{([^}]*)\})?',
                                   re.sub(r'(\b(?:by|on|ignoring)\s*)\([^)]*\)|\[[^]]*\]', "",
                                          expression)):
        if not name.startswith("kedge_"):
            continue
        names.append(name)
        if name not in metrics:
            offence(where, f"no daemon has {name}")
            continue
        for matcher in re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', chosen):
            check_matcher(where, metrics, name, matcher)
    if not names and not any(word in expression for word in GIVEN_METRICS):
        offence(where, f"no metric is in: {expression}")
    for group in re.findall(r'\b(?:by|on|ignoring)\s*\(([^)]*)\)', expression):
        for label in re.findall(r'\w+', group):
            known = any(label in metrics.get(name, {}) for name in names)
            if label not in GIVEN_LABELS and not known:
                offence(where, f"none of {names} has a label {label}")
    if expression.count("(") != expression.count(")"):
        offence(where, f"parentheses do not match: {expression}")


def check_rule(rule, metrics):
    where = rule.get("alert", "a rule without a name")
    if not re.fullmatch(r'Kedge([A-Z][a-z]+)+', where):
        offence(where, "names are Kedge and words")
    check_expression(where, str(rule.get("expr", "")), metrics)
    if not re.fullmatch(r'[0-9]+[smh]', rule.get("for", "")):
        offence(where, "it says not for how long: for is a number and s, m or h")
    if rule.get("labels", {}).get("severity") not in ("critical", "warning"):
        offence(where, "labels.severity is critical or warning")
    for what in ("summary", "description"):
        if len(rule.get("annotations", {}).get(what, "")) < 20:
            offence(where, f"annotations.{what} says nothing")
    for text in rule.get("annotations", {}).values():
        for label in re.findall(r'\$labels\.(\w+)', text):
            if label not in GIVEN_LABELS and label not in rule["expr"] and not any(
                    label in metrics.get(name, {})
                    for name in re.findall(r'kedge_\w+', rule["expr"])):
                offence(where, f"an annotation names a label {label} that it has not")
    unknown = set(rule) - {"alert", "expr", "for", "labels", "annotations"}
    if unknown:
        offence(where, f"rules have no {unknown}")


def check_rules(path, metrics):
    rules = [rule for group in yaml.safe_load(open(path, encoding="utf-8"))["groups"]
             for rule in group["rules"]]
    names = [rule.get("alert") for rule in rules]
    for name in {name for name in names if names.count(name) > 1}:
        offence(name, "it is there twice")
    for rule in rules:
        check_rule(rule, metrics)
    return len(rules)


def overlap(a, b):
    return (a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and
            a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"])


def check_panel(panel, metrics, variables):
    where = f"panel {panel.get('title')}"
    if not panel.get("title") or not panel.get("targets"):
        offence(where, "it has no title or no expressions")
    if panel["gridPos"]["x"] + panel["gridPos"]["w"] > 24:
        offence(where, "it is out of the grid")
    for target in panel.get("targets", []):
        check_expression(where, target["expr"], metrics)
        for variable in re.findall(r'\$(\w+)', target["expr"]):
            if variable not in variables | {"__rate_interval"}:
                offence(where, f"there is no variable {variable}")
        for label in re.findall(r'\{\{(\w+)\}\}', target["legendFormat"]):
            if label not in GIVEN_LABELS and label not in target["expr"] and not any(
                    label in metrics.get(name, {})
                    for name in re.findall(r'kedge_\w+', target["expr"])):
                offence(where, f"the legend names a label {label} that it has not")


def check_dashboard(path, metrics):
    board = json.load(open(path, encoding="utf-8"))
    variables = {variable["name"] for variable in board["templating"]["list"]}
    panels = board["panels"]
    ids = [panel["id"] for panel in panels]
    if len(set(ids)) != len(ids):
        offence("dashboard", "two panels have one id")
    for i, panel in enumerate(panels):
        for other in panels[:i]:
            if overlap(panel["gridPos"], other["gridPos"]):
                offence(f"panel {panel['title']}", f"it lies over {other['title']}")
        if panel["type"] != "row":
            check_panel(panel, metrics, variables)
    return sum(panel["type"] != "row" for panel in panels)


def main():
    metrics = read_metrics(sys.argv[3:])
    rules = check_rules(sys.argv[1], metrics)
    panels = check_dashboard(sys.argv[2], metrics)
    print("\n".join(offences) if offences else f"{rules} alerts and {panels} panels")
    sys.exit(1 if offences else 0)


main()
