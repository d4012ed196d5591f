#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# core.bats - core files do not contain the secret of the job.

bats_require_minimum_version 1.5.0
load helper

# holds FILE CORE... - each core that contains the secret in FILE, or half of it.
holds()
{
	python3 - "$@" <<'END'
import sys
with open(sys.argv[1], "rb") as file:
    secret = file.read()
assert len(secret) == 32 and any(secret)
for name in sys.argv[2:]:
    with open(name, "rb") as file:
        core = file.read()
    assert core[:4] == b"\x7fELF", name
    if secret[:16] in core or secret[16:] in core:
        print(name)
END
}

# dumped TRANSPORT - a rank that knows the secret dumps core, and so does gdb for
# the rank and for both processes of xrun.
dumped()
{
	local rank super go

	mkfifo secret.go
	spawn job bash -c 'ulimit -c unlimited; exec "$@"' - "$XRUN" -n 2 \
		"$BUILD/tests/e2e/core_secret" "$PWD/secret" "$1"
	await_line job.out '^\[0\] process ' 30
	rank=${line##* }
	super=$(ps -o ppid= -p "$rank" | tr -d ' ')
	gdb -nx -batch -p "$rank" -ex "generate-core-file core.rank" >gdb.out 2>&1
	gdb -nx -batch -p "$super" -ex "generate-core-file core.super" >>gdb.out 2>&1
	gdb -nx -batch -p "$pid" -ex "generate-core-file core.keeper" >>gdb.out 2>&1
	exec {go}<>secret.go
	echo >&"$go"
	wait "$pid" || :
	cores=(core.rank core.super core.keeper)
	# The kernel names its core as /proc/sys/kernel/core_pattern says.
	case $(cat /proc/sys/kernel/core_pattern) in
	core) cores+=(core core.[0-9]*) ;;
	esac
	for core in "${cores[@]}"; do
		[ ! -e "$core" ] || found+=("$core")
	done
}

@test "core files contain no secret of the job, whatever transport is used" {
	need gdb python3
	unsanitized 'cores are too large'
	local transport found cores core

	for transport in shm tcp; do
		found=()
		rm -rf secret* core*
		dumped "$transport"
		[ "${#found[@]}" -ge 3 ] || {
			cat gdb.out
			skip 'gdb may not attach here'
		}
		assert_eq "$(holds secret "${found[@]}")" ''
	done
}

@test "error.json is readable by its user alone, whoever wrote it" {
	local umask

	job --log-dir logs -n 1 bash -c 'umask 022
		echo "{\"message\":{\"message\":\"boo\"}}" >"$TORCHELASTIC_ERROR_FILE"; exit 3'
	assert_eq "$status" 3
	assert_has "$stderr" '^  error.json: boo$'
	assert_eq "$(stat -c %a logs/0/rank-0000.error.json)" 600
}

@test "error.json is readable by its user alone, of each rank, also if the job is stopped" {
	# shellcheck disable=SC2016 # the ranks' shell
	local write='umask 022; echo "{\"message\":\"boo\"}" >"$TORCHELASTIC_ERROR_FILE"'

	job --log-dir logs -n 3 --on-failure continue bash -c "$write; exit 3"
	assert_eq "$status" 3
	assert_eq "$(stat -c %a logs/0/rank-000?.error.json)" $'600\n600\n600'
	spawn stopped "$XRUN" --job stopped -n 2 bash -c "trap '$write; exit 4' TERM
		echo up; while :; do sleep 0.1; done"
	wait_for 20 eval '[ "$(grep -c up stopped.out)" = 2 ]'
	try "$XRUN" stop stopped
	wait "$pid" || true
	assert_eq "$(stat -c %a "$XDG_STATE_HOME"/xrun/stopped/0/rank-000?.error.json)" $'600\n600'
}

@test "xrun.record writes error.json for its user alone" {
	need python3
	umask 022
	PYTHONPATH=$BUILD/plugins/python job --log-dir logs -n 1 python3 -c '
import os, stat, xrun
@xrun.record
def main():
    raise ValueError("boo")
try:
    main()
except ValueError:
    mode = os.stat(os.environ["TORCHELASTIC_ERROR_FILE"]).st_mode
    print(oct(stat.S_IMODE(mode)))'
	assert_eq "$output" 0o600
}
