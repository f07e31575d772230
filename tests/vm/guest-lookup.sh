#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In the guest: what names cost by READ on SoftRoCE and over HTTP. Nothing is asserted but that
# each way finds them: under emulation the figures are for their ratio alone.
#
#   guest-lookup.sh BUILD_DIRECTORY
set -euo pipefail
for workers in 1 8; do
    "$1/bin/kedge-perf" lookup --local --device rxe0 --gids 10.0.1.1,10.0.1.2,10.0.1.3 \
        --transport rc --workers $workers
done
