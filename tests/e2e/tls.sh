#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kedge-metad, kedge-agentd and rdmactl over mutual TLS: an agent that its certificate alone makes
# known, certificates that are renewed and revoked without a restart, and what is refused.
source "$(dirname "$0")/lib-metad.sh"
source "$(dirname "$0")/lib-ctl.sh"
agentd=$1/bin/kedge-agentd
command -v openssl >/dev/null || { echo "skip: openssl is not installed"; exit 77; }
ca=$work/ca
make_certificates() {
    "$root/ops/certificates" "$ca" "$@" >"$work/made" 2>&1 || fail "$(cat "$work/made")"
}
local_ctl() { ctl --server "unix:$work/metad.sock" "$@"; }
until_true() { # sentence command...
    local sentence=$1
    shift
    for _ in $(seq 1200); do
        ! "$@" >/dev/null 2>&1 || { ok "$sentence"; return; }
        sleep 0.1
    done
    fail "not in time: $sentence; $(tail -n 5 "$work/agent.log")"
}
metad_says() { grep -qE -- "$1" "$work/stderr"; }
agent_says() { grep -qE -- "$1" "$work/agent.log"; }

gid=${gids[1]}
make_certificates server=meta,127.0.0.1 "node=n1,$gid" "node=n2,$gid" node=bare client=admin \
    client=guest
configure "access = tokens" "cert_file = $ca/meta.pem" "key_file = $ca/meta-key.pem" \
    "trusted_ca_file = $ca/ca.pem" "client_cert_auth = yes" "client_crl_file = $ca/crl.pem"
sed -i "s|^cert_file = .*|cert_file = $ca/n1.pem|" "$work/metad.conf"
"$metad" --config "$work/metad.conf" --check-config 2>"$work/err" && fail "no pair is taken"
grep -q 'meta-key.pem is not that of the certificate in' "$work/err" || fail "$(cat "$work/err")"
ok "a certificate and the key of another are no pair: $(cat "$work/err")"
sed -i "s|^cert_file = .*|cert_file = $ca/meta.pem|" "$work/metad.conf"
start
url=https://127.0.0.1:$port

# ---- rdmactl

local_ctl token create boss scope=admin --secret-out "$work/boss" || fail "$(cat "$work/err")"
tls=(--server "$url" --cacert "$ca/ca.pem" --token-file "$work/boss")
admin=(--cert "$ca/admin.pem" --key "$ca/admin-key.pem")
does "with a certificate and a token rdmactl is let in" "${tls[@]}" "${admin[@]}" node list
refuses 4 'wants a certificate of each client' "${tls[@]}" node list
refuses 7 'is not believed' --server "$url" "${admin[@]}" node list
refuses 7 'server with TLS is https://' --server "${url/https/http}" node list
refuses 4 'the token would cross the network' --server "http://0.0.0.0:1" \
    --token-file "$work/boss" node list
export XDG_CONFIG_HOME=$work/config
(cd "$ca" && does "a context has it all" context set bed "server=$url" \
    "token_file=$work/boss" cacert=ca.pem cert=admin.pem key=admin-key.pem)
does "and rdmactl goes by it" --context bed status
does "the admin socket stays plain" --server "unix:$work/metad.sock" node list

# ---- an agent, by its certificate alone

agent_conf() { # certificate
    cat <<END
[agent]
node = n1
socket = $work/agent.sock
admin_socket = $work/agent.admin
state_dir = $work/state
metaservers = $url
trusted_ca_file = $ca/ca.pem
cert_file = $ca/$1.pem
key_file = $ca/$1-key.pem
[fabric]
provider = $provider
device = $device
gid = $gid
END
}
agent_start() { # certificate
    mkdir -p -m 0700 "$work/state"
    agent_conf "$1" >"$work/agent.conf"
    : >"$work/agent.log"
    "$agentd" --config "$work/agent.conf" >"$work/agent.out" 2>"$work/agent.log" &
    agent=$!
    trap 'kill -KILL $agent 2>/dev/null || true; cleanup' EXIT
}
agent_stop() {
    kill -TERM "$agent"
    wait "$agent" || fail "the agent ended with $?: $(tail -n 5 "$work/agent.log")"
    trap cleanup EXIT
}
live() { local_ctl node get n1 && grep -q '^state *live' "$work/out"; }
checked() { # certificate: what --check-config says of it, behind "the settings are right"
    agent_conf "$1" >"$work/check.conf"
    "$agentd" --config "$work/check.conf" --check-config | tail -n +2
}
mkdir -p -m 0700 "$work/state"
[[ -z $(checked n1) ]] || fail "of the right certificate it is said: $(checked n1)"
[[ $(checked n2) == *"metaservers: the certificate in $ca/n2.pem is for node n2, and not"* ]] ||
    fail "of another node's certificate it is said: $(checked n2)"
ok "--check-config says: $(checked n2)"
agent_start n2
until_true "another node's certificate cannot speak for this one" \
    agent_says 'not registered.*403.*the certificate is for node n2'
agent_stop
agent_start bare
until_true "nor can one of another name" agent_says 'not registered.*for node bare'
agent_stop
make_certificates node=n1,fd00::1234
agent_start n1
until_true "nor its own for a GID that it does not list" \
    agent_says "not registered.*certificate does not list the GID $gid"
make_certificates "node=n1,$gid"
kill -HUP "$agent"
until_true "with a newer one, and no restart, it registers" live
until_true "and says that it has it" agent_says 'certificates are read again'
curl -sf --unix-socket "$work/agent.admin" http://a/metrics |
    grep >/dev/null '^kedge_agent_tls_certificate_expiry_timestamp_seconds [0-9]' ||
    fail "the end of the agent's certificate is no metric"

# ---- renewed, half renewed and revoked, while all runs

expiry() {
    curl -sf --unix-socket "$work/metad.sock" http://m/metrics |
        sed -n 's/^kedge_metad_tls_certificate_expiry_timestamp_seconds //p'
}
before=$(expiry)
[[ $before == [0-9]* ]] || fail "the end of the certificate is no metric"
cp "$ca/n1.pem" "$ca/meta.new" && mv "$ca/meta.new" "$ca/meta.pem"
kill -HUP "$metad_pid"
until_true "half of a new pair is refused" metad_says \
    'newer certificates are refused.*what was there before still holds'
does "and the former one goes on" --context bed node list
DAYS=5 make_certificates server=meta,127.0.0.1
kill -HUP "$metad_pid"
until_true "a whole one is taken" metad_says 'certificates are read again'
[[ $(expiry) != "$before" ]] || fail "the metric stays as it was"
until_true "and its end, which is near, is said" metad_says \
    'the certificate expires.*meta.pem expires at'
does "and rdmactl believes it" --context bed node list
live || fail "the agent is not live any more"
guest=(--cert "$ca/guest.pem" --key "$ca/guest-key.pem")
does "a certificate holds" "${tls[@]}" "${guest[@]}" node list
make_certificates revoke=guest
kill -HUP "$metad_pid"
is_revoked() { ! ctl "${tls[@]}" "${guest[@]}" node list; }
until_true "until it is revoked" is_revoked
refuses 4 '"guest" has been revoked' "${tls[@]}" "${guest[@]}" node list
metad_says 'a client was refused.*guest.*revoked' ||
    fail "the log does not say who was refused"
live || fail "the agent is not live any more"
make_certificates revoke=n1
kill -HUP "$metad_pid"
until_true "an agent whose certificate is revoked loses its registration" \
    agent_says '403.*n1. has been revoked'
agent_stop
stop
ok "mutual TLS"
