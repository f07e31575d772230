# SPDX-License-Identifier: Apache-2.0
# What tests with several metaservers share, beside lib.sh: each has a name, settings and a store of
# its own. The test says $lease, in seconds, and which of the host's GIDs each has:
# declare -A gid_number=([NAME]=NUMBER ...).
metad_conf() { # name address
    mkdir -p "$work/data-$1"
    {
        printf '%s\n' "[metaserver]" "listen = $2" "data_dir = $work/data-$1" \
            "node_lease = ${lease}s" "admin_socket = $work/$1.metad.sock" "access = open"
        fabric_settings "${gid_number[$1]}"
    } >"$work/$1.conf"
}
# Then $port_NAME is its port.
metad_start() { # name
    daemon_start "$1" kedge-metad || fail "the metaserver $1 did not start"
    declare -g "port_$1=$(sed -n 's/.*ready, port //p' "$work/$1.out")"
}
declare -A metad_host=() # where it is not 127.0.0.1
at() { local port=port_$1; echo "http://${metad_host[$1]:-127.0.0.1}:${!port}"; } # name
