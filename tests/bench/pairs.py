#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is a build slower than another? kedge-perf of both in turns, figure by figure.

    pairs.py BUILD OTHER [--rounds N] [--only TEXT]...

BUILD and OTHER are build directories with a bin/. Each round runs a test once with each, \
the order swapped from round
to round; a figure's ratio is BUILD's value by OTHER's of the same round. \
Printed are the median of the ratios, the
interval in which it lies in 95 of 100 cases \
(of 2,000 samples with replacement, always the same ones), and the medians
of both. What is not about Kedge at all, `cores`, is measured too: \
its ratio should be 1, and what it differs by is the
machine. "slower" and "faster" mark intervals that do not hold 1. \
Meant for a machine where nothing else runs; on one
with fewer processors than the test wants, pairs agree less.

Exits 1 if a test could not be run."""
import argparse
import json
import random
import statistics
import subprocess
import sys

SMALLER, LARGER = "smaller is better", "larger is better"
TESTS = (
    ("cores", {"mean_ns": SMALLER}),
    ("attach", {"p50_ns": SMALLER, "mean_ns": SMALLER}),
    ("connect --cached", {"p50_ns": SMALLER, "mean_ns": SMALLER}),
    ("connect --uncached", {"p50_ns": SMALLER, "p99_ns": SMALLER}),
    ("read", {"p50_ns": SMALLER, "p99_ns": SMALLER, "per_second": LARGER}),
    ("read --transport rc", {"p50_ns": SMALLER, "p99_ns": SMALLER}),
    ("read --depth 64", {"p50_ns": SMALLER, "per_second": LARGER}),
    ("read --size 65536", {"p50_ns": SMALLER}),
    ("write", {"p50_ns": SMALLER, "p99_ns": SMALLER}),
    ("mesh --workers 8", {"elapsed_ns": SMALLER}),
    ("storm --workers 32", {"p50_ns": SMALLER, "elapsed_ns": SMALLER}),
    ("isolation", {"p50_ns": SMALLER, "p99_ns": SMALLER}),
    ("fairness --workers 8", {"per_second": LARGER}),
    ("fairness --workers 8 --size 4096", {"per_second": LARGER}),
    ("memory", {"bytes_with": SMALLER}),
)


def measure(build, test):
    """What kedge-perf prints of this test, or None."""
    run = subprocess.run([f"{build}/bin/kedge-perf", *test.split(), "--local", "--json"],
                         capture_output=True, text=True, timeout=300, check=False)
    if run.returncode != 0:
        print(f"FAILED   {build}: {test}: {run.stderr.strip()[-300:]}")
        return None
    return json.loads(run.stdout.strip().splitlines()[-1])


def interval(ratios):
    """Where the median lies in 95 of 100 cases."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[1949]


def verdict(low, high, better):
    if low <= 1 <= high:
        return ""
    return "slower" if (low > 1) == (better == SMALLER) else "faster"


def report(test, figure, better, pairs):
    ratios = [mine / max(other, 1) for mine, other in pairs]
    low, high = interval(ratios)
    mine, other = (statistics.median(side) for side in zip(*pairs))
    print(f"{test:32} {figure:11} {statistics.median(ratios):6.3f} [{low:.3f}, {high:.3f}] "
          f"{mine:14.0f} {other:14.0f} {verdict(low, high, better)}".rstrip(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("other")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", action="append", help="tests whose words hold this text (all)")
    options = parser.parse_args()
    chosen = [t for t in TESTS if not options.only or any(text in t[0] for text in options.only)]
    if not chosen or options.rounds < 1:
        parser.error("no test has such a name, or there is no round")
    print(f"{'test':32} {'figure':11}  ratio [interval]       "
          f"{options.build[-14:]:>14} {options.other[-14:]:>14}")
    failed = False
    for test, figures in chosen:
        pairs = []
        for i in range(options.rounds):
            order = (options.build, options.other) if i % 2 == 0 else (options.other, options.build)
            results = [measure(build, test) for build in order]
            if None not in results:
                pairs.append(results if i % 2 == 0 else results[::-1])
        failed = failed or len(pairs) < options.rounds
        for figure, better in figures.items() if pairs else ():
            report(test, figure, better, [(mine[figure], other[figure]) for mine, other in pairs])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
