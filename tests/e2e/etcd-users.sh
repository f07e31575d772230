#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An etcd with TLS that asks for certificates and for users: a metaserver with a user's password and
# a certificate of `ops/certificates etcd-client=` keeps its store there, and one whose certificate
# has a common name is told why it does not. Certificates of another authority take their place
# while it runs.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/lib-metaservers.sh"
source "$(dirname "$0")/lib-etcd.sh"
for tool in etcdctl openssl; do
    command -v "$tool" >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
declare -A gid_number=([one]=0)
lease=10
trap 'cleanup; etcd_end' EXIT

cluster_directories
tls=$work/tls
"$(dirname "$0")/../../ops/certificates" "$tls" member=e1,127.0.0.1 etcd-client=store \
    client=named >"$work/made" 2>&1 || fail "$(cat "$work/made")"
port=$(free_port) peer=http://127.0.0.1:$(free_port)
client=https://127.0.0.1:$port
begin_etcd() {
    setsid etcd --name e1 --data-dir "$etcd_dir/e1" --log-level warn \
        --listen-client-urls "$client" --advertise-client-urls "$client" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
        --initial-cluster "e1=$peer" --cert-file "$tls/e1.pem" --key-file "$tls/e1-key.pem" \
        --trusted-ca-file "$tls/ca.pem" --client-cert-auth >>"$work/etcd-e1.log" 2>&1 </dev/null &
    etcd_pids[e1]=$!
}
begin_etcd
etcd_does() {
    ETCDCTL_API=3 timeout 20 etcdctl --endpoints "$client" --cacert "$tls/ca.pem" \
        --cert "$tls/store.pem" --key "$tls/store-key.pem" "$@" >"$work/said" 2>&1
}
answers() { if etcd_does endpoint health; then echo yes; fi; }
until_is yes "etcd takes the certificate" answers
(umask 077 && echo secret >"$work/password")
for command in "user add root:secret" "user grant-role root root" "user add kedge:secret" \
    "role add kedge" "role grant-permission kedge --prefix=true readwrite /kedge/" \
    "user grant-role kedge kedge" "auth enable"; do
    # shellcheck disable=SC2086
    etcd_does $command || fail "etcdctl $command: $(cat "$work/said")"
done

store_conf() { # certificate
    metad_conf one 127.0.0.1:0
    printf '%s\n' "[store]" "kind = etcd" "member = one" "endpoints = $client" "user = kedge" \
        "password_file = $work/password" "trusted_ca_file = $tls/ca.pem" \
        "cert_file = $tls/$1.pem" "key_file = $tls/$1-key.pem" >>"$work/one.conf"
}
store_conf named
! daemon_start one kedge-metad 2>"$work/said" || fail "a certificate with a common name is taken"
grep -q 'certificate without a common name' "$work/said" ||
    fail "one with a common name: $(cat "$work/said")"
ok "a certificate with a common name is refused, with a sentence that says why"
kill -KILL "${pids[one]}" 2>/dev/null || true
wait "${pids[one]}" 2>/dev/null || true
store_conf store
metad_start one
curl -sf --max-time 20 -o "$work/body" -X PUT -H 'Content-Type: application/json' \
    --data '{"uids":[7]}' "$(at one)/v1/tenants/web" || fail "a change is not stored"
ok "one without is taken, and a change is stored"

# An etcd that is begun anew, with certificates of another authority, which end within two weeks.
ends() { openssl x509 -in "$tls/store.pem" -noout -enddate | sed 's/notAfter=//'; }
shows_end() {
    curl -s --max-time 20 "$(at one)/metrics" | grep -x >/dev/null \
        "kedge_metad_store_certificate_expiry_timestamp_seconds $(date -d "$(ends)" +%s)" &&
        echo yes
}
until_is yes "the end of etcd's client certificate is in the metrics" shows_end
kill -KILL "${etcd_pids[e1]}"
wait "${etcd_pids[e1]}" 2>/dev/null || true
rm -r "$tls"
DAYS=10 "$(dirname "$0")/../../ops/certificates" "$tls" member=e1,127.0.0.1 etcd-client=store \
    >"$work/made" 2>&1 || fail "$(cat "$work/made")"
begin_etcd
until_is yes "etcd takes the new certificate" answers
is_stored() {
    curl -sf --max-time 20 -o "$work/body" -X PUT -H 'Content-Type: application/json' \
        --data '{"uids":[8]}' "$(at one)/v1/tenants/web" && echo yes
}
until_is yes "a change is stored with the new certificate" is_stored
until_is yes "the new certificate's end is in the metrics" shows_end
events() { curl -s --max-time 20 "$(at one)/v1/events?kind=certificate" >"$work/events"; }
are_told() {
    events
    if grep -q '"of":"etcd","state":"renewed"' "$work/events" &&
        grep -q '"of":"etcd","state":"expiring"' "$work/events"; then echo yes; fi
}
until_is yes "there is an event of the certificate" are_told
ok "etcd's certificates are changed without a restart: $(grep -o '"state":"[a-z]*"' "$work/events" |
    tr '\n' ' ')"
kill -TERM "${pids[one]}"
wait "${pids[one]}" || fail "the metaserver ended with $?"
unset "pids[one]"
etcd_end
trap - EXIT
cleanup
