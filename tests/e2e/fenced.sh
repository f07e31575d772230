#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Regions with registrations of their own (KEDGE_MR_FENCED), on a device that keeps no deadlines:
# what their owner got back stays its own, however long the remote agent's lane stands still; it
# waits for no lease; they have a bound; the operator sees and revokes them; and whoever is killed
# leaves nothing. An ordinary one waits for its lease first, and has a registration of its own as
# well. (That with the lease alone late WRITEs do arrive on such a device,
# tests/unit/agent/lane/test_own.c shows, where the moment can be chosen.)
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-leases.sh"
ms=${LEASES_MS:-8000}
[[ $provider != soft ]] || more_fabric='fault = deadlines=off'
more_pool=$'mr_lease = 60s\nfenced_regions = 16'
start

probe() { KEDGE_SOCKET=$work/$1.sock timeout 60 "$bin/kedge-probe" "${@:2}"; }
metric() { agent_metric a "fenced_$1"; }
waits_for() { # metric value sentence
    for _ in $(seq 1200); do
        [[ $(metric "$1") == "$2" ]] && { ok "$3"; return; }
        sleep 0.05
    done
    fail "$3: $1 is $(metric "$1"), not $2"
}
fenced() { # how many: a worker of a's that keeps them until it is killed; sets $owner
    rm -f "$work/tokens"
    KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" fenced "$1" >"$work/tokens" 2>&1 &
    owner=$!
    worker_pids+=("$owner")
    for _ in $(seq 1200); do
        grep -q ', then: ' "$work/tokens" && return
        sleep 0.05
    done
    fail "no fenced regions: $(cat "$work/tokens")"
}
read_until_refused() { # token: a worker of b's; sets $reader
    : >"$work/reader"
    KEDGE_SOCKET=$work/b.sock timeout 120 "$bin/kedge-probe" reader "$1" fenced >>"$work/reader" &
    reader=$!
    worker_pids+=("$reader")
}

# ---- no lease is waited for: this one is longer than a worker waits for anything
is "$(probe a fenced-back)" back "a fenced region is given back while its lease has long to go"
is "$(probe a back)" ETIMEDOUT "an ordinary one is not"

# ---- ordinary ones have registrations of their own here, drawn from those that were made ahead,
# and no bound but max_mrs
own=$(agent_metric a own_registrations) # of who was not given his back, and waits for its lease
KEDGE_SOCKET=$work/a.sock "$bin/kedge-probe" regions 40 >"$work/tokens" 2>&1 &
owner=$!
worker_pids+=("$owner")
for _ in $(seq 1200); do ! grep -q ', then: ' "$work/tokens" || break; sleep 0.05; done
grep -q '^40, then: enough' "$work/tokens" || fail "ordinary regions: $(cat "$work/tokens")"
is "$(agent_metric a own_registrations)" $((own + 40)) "each has a registration of its own"
is "$(metric regions)" 0 "and counts to no bound of fenced ones"
(($(agent_metric a registrations_drawn_total) > 0)) || fail "none was made ahead"
is "$(ctl lease list -o json | jq -c '[.leases[] | select(.state == "live").kind] | unique')" \
    '["own"]' "their kind is told"
ctl lease revoke --force \
    --worker "$(ctl worker list -o json | jq -r ".workers[] | select(.pid == $owner).id")" \
    -o json >"$work/said" ||
    fail "they are not forced: $(cat "$work/said")"
is "$(jq -c '[.over, ([.leases[].state] | unique)]' "$work/said")" '[true,["revoked"]]' \
    "force waits for no lease"
is "$(agent_metric a own_registrations)" "$own" "and their registrations are gone"
kill -KILL "$owner"

# ---- the bound, and what the operator sees
fenced 20
grep -q '^16, then: .*fenced_regions in \[pool\]' "$work/tokens" ||
    fail "the bound says $(tail -n 1 "$work/tokens")"
is "$(metric regions) $(metric refused_total)" "16 1" \
    "the seventeenth is refused, by a sentence that names the bound"
worker=$(ctl worker list -o json | jq -r ".workers[] | select(.pid == $owner).id")
is "$(ctl lease list --worker "$worker" -o json | jq -c '[.leases[].kind] | unique')" \
    '["fenced"]' "their kind is told"
ctl lease list --worker "$worker" | grep -E >/dev/null "^$worker-3 .* fenced " ||
    fail "and shown: $(ctl lease list)"

# ---- revoked: by the rule and by force alike the registration goes, and nobody waits for the lease
read_until_refused "$(sed -n 3p "$work/tokens")"
for _ in $(seq 1200); do grep -q served "$work/reader" && break; sleep 0.05; done
ctl lease revoke "$worker-3" -o json >"$work/said" || fail "it is not revoked: $(cat "$work/said")"
is "$(jq -c '[.forced, .over, [.leases[] | .id, .kind, .state]]' "$work/said")" \
    "[false,true,[\"$worker-3\",\"fenced\",\"revoked\"]]" "one is revoked, while others stay"
jq -r .breaks "$work/said" | grep >/dev/null IBV_WC_REM_ACCESS_ERR ||
    fail "it does not say what breaks"
wait "$reader" || fail "the reader: $(cat "$work/reader")"
grep -q 'served' "$work/reader" && tail -n 1 "$work/reader" | grep >/dev/null 'REM_ACCESS_ERR' ||
    fail "the reader: $(cat "$work/reader")"
ok "who had its key hears so"
ctl lease revoke --force "$worker-4" -o json >"$work/said" ||
    fail "it is not forced: $(cat "$work/said")"
is "$(jq -c '[.forced, .over, (.leases | length)]' "$work/said")" '[false,true,1]' \
    "force takes no more than that"
is "$(metric regions)" 14 "two registrations are gone"
ctl lease revoke --force --worker "$worker" -o json >"$work/said" ||
    fail "all of them: $(cat "$work/said")"
is "$(jq -c '[.over, ([.leases[].state] | unique)]' "$work/said")" '[true,["revoked"]]' \
    "all of a worker are revoked"
is "$(metric regions)" 0 "and none is left"
kill -KILL "$owner"

# ---- who is killed leaves nothing
fenced 16
kill -KILL "$owner"
waits_for regions 0 "a worker that is killed leaves no registration"
fenced 16
kill -KILL "${pids[a]}"
wait "${pids[a]}" 2>/dev/null || true
kill -KILL "$owner"
daemon_start a kedge-agentd || fail "the agent does not start again"
agent_wait a || fail "the agent does not register again"
fenced 16
for _ in $(seq 100); do # b still believes in a's former life, perhaps
    read_until_refused "$(sed -n 16p "$work/tokens")"
    for _ in $(seq 1200); do
        ! grep -q served "$work/reader" && kill -0 "$reader" 2>/dev/null || break
        sleep 0.05
    done
    ! grep -q served "$work/reader" || break
done
grep -q served "$work/reader" || fail "after a restart: $(cat "$work/reader")"
ok "an agent that was killed comes back, and fenced regions with it"
kill -KILL "$owner"
waits_for regions 0 "they go with their worker"
wait "$reader" || fail "the reader: $(cat "$work/reader")"
cluster_stop || fail "the cluster did not stop"

# ---- memory that was given back, under remote readers and writers whose lane stands still
more_pool=$shortest$'\nfenced_regions = 64'
start
keeps() { # what, ms, options
    timeout 300 "$bin/kedge-stress" leases "${@:3}" --socket "$work/a.sock" \
        --peer "$work/b.sock" --seed "$LEASES_SEED" --ms "$2" >"$work/leases.out" 2>&1 &
    stress=$!
    worker_pids+=("$stress")
    stop_lanes_while "$stress" a
    wait "$stress" || fail "$1: $(cat "$work/leases.out")"
    ok "$1: $(cat "$work/leases.out"); the remote lane was stopped $stops times"
    (($(agent_metric b registrations_drawn_total) +
        $(agent_metric b fenced_registered_total) > 0)) ||
        fail "$1: no region had a registration of its own"
}
keeps "fenced regions" "$((ms / 2))" --fenced
keeps "ordinary regions" "$((ms / 2))"
stop
