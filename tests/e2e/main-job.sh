#!/usr/bin/env bash
# The main job: a worker of one node reads what a worker of another exported. The endpoint costs one
# READ, also while the metaserver is stopped, and nothing the second time.
source "$(dirname "$0")/lib.sh"
text="bytes of another node, $RANDOM"
more_metad="node_lease = 10m" # whose agents live, however long it stands still below
more_agent="prove_every = 0ms" # which looks up endpoints too
start
export_text b "$text"
before=$(agent_number a endpoint_reads) || fail "the agent's status has no endpoint_reads"

kill -STOP "${pids[metad]}"
begin=$SECONDS
out=$(read_text a "$token") || fail "reading while the metaserver is stopped"
[[ $(tail -n 1 <<<"$out") == "$text" ]] || fail "read back: $out"
ok "a worker reads another node's memory while kedge-metad is stopped"
# On a host that stands still for longer than a network loses packets a peer is silent meanwhile,
# and asked for again. And a record that is used is READ again when it is 6.7 s old (NODE_BELIEVED_S
# of agent/control/bounds.h), which has nothing to do with connecting.
read_once() { # sentence
    local again old=$(((SECONDS - begin + 1) / 6))
    reads=$(($(agent_number a endpoint_reads) - before))
    again=$(agent_number a lookups_again) || fail "the agent's status has no lookups_again"
    ((again == 0)) || skip "the peer was silent $again times: a lookup for each may have followed"
    ((old == 0)) || skip "the record is $((SECONDS - begin)) s old: it may have been READ again"
    ((reads >= 1 && reads <= 1 + again + old)) ||
        fail "$1: $reads READs of the endpoint table in $((SECONDS - begin)) s," \
            "and it was silent $again times"
}
read_once "an unknown endpoint"
ok "connecting to an unknown endpoint costs $reads READ"
first=$reads

out=$(read_text a "$token") || fail "reading a second time"
[[ $(tail -n 1 <<<"$out") == "$text" ]] || fail "read back: $out"
read_once "a known endpoint was looked up again"
ok "connecting to a known endpoint costs $((reads - first)) READs more"
kill -CONT "${pids[metad]}"

[[ $("$bin/rdmactl" --server "$url" node list -o json |
    jq '[.nodes[] | select(.state == "live")] | length') == 2 ]] ||
    fail "rdmactl does not list two live nodes"
ok "both nodes are alive after the metaserver goes on"
stop
ok "everything ends on SIGTERM"
