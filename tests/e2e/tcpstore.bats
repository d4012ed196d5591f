#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tcpstore.bats - the store of PyTorch's process groups at MASTER_PORT.
load helper

client=$BATS_TEST_DIRNAME/tcpstore.py
python=/usr/bin/python3

# store OPTION... -- ACTION... -- ACTION...: two ranks of Python
store()
{
	local options=()

	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	job -n 2 "${options[@]}" "$python" "$client" "$@"
}

@test "tcpstore: the store outlives rank 0" {
	store -- set=key:value -- get=key add=n:5 add=n:-2
	assert_eq "$status" 0
	assert_eq "$output" '[1] key value
[1] n 5
[1] n 3'
	# Rank 0 need not take part at all.
	store -- -- set=own:1 get=own
	assert_eq "$status" 0
	assert_eq "$output" '[1] own 1'
}

@test "tcpstore: a rank waits for a key and for an item of a queue" {
	store -- get=second queue=q:item -- set=second:2 pop=q
	assert_eq "$status" 0
	assert_has "$output" '^\[0\] second 2$'
	assert_has "$output" '^\[1\] q item$'
}

@test "tcpstore: it is served for Python, and as --port-hold says" {
	local agent='import os; print(os.environ["TORCHELASTIC_USE_AGENT_STORE"])'

	job "$python" -c "$agent"
	assert_eq "$output" True
	printf '#!/usr/bin/env python3\n%s\n' "$agent" >script
	chmod +x script
	job ./script
	assert_eq "$output" True
	job --port-hold always ./script
	assert_eq "$output" False
	job --port-hold never ./script
	assert_eq "$output" False
	# shellcheck disable=SC2016 # for the inner shell
	job sh -c 'echo "$TORCHELASTIC_USE_AGENT_STORE"'
	assert_eq "$output" False
	# shellcheck disable=SC2016 # for the inner shell
	job --port-hold serve sh -c 'echo "$TORCHELASTIC_USE_AGENT_STORE"'
	assert_eq "$output" True
	job --show-env "$python" -c pass
	assert_has "$output" ' TORCHELASTIC_USE_AGENT_STORE=True$'
}

@test "tcpstore: each attempt has an empty store" {
	job --restarts 1 -n 2 "$python" -c 'import os, sys
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
# Neither exits before both have printed n: the exit of one stops the other.
sys.argv[1:] = ["add=n:1", "set=r0:0", "get=r1", "--", "get=n", "set=r1:0", "get=r0"]
exec(open("'"$client"'").read())
sys.exit(1 - attempt)'
	assert_eq "$status" 0
	assert_eq "$(grep -c '^\[[01]\] n 1$' <<<"$output")" 4
}

# bats test_tags=sanitize,keep
@test "tcpstore: a bad request ends its connection only, and is reported once" {
	store -- bad get=key -- set=key:1 bad
	assert_eq "$status" 0
	assert_eq "$(grep -c 'closed$' <<<"$output")" 2
	assert_eq "$(grep -c '^xrun: the store at MASTER_PORT closed a connection of a rank: unknown request 99$' <<<"$stderr")" 1
}

@test "tcpstore: another user is refused" {
	[ "$(id -u)" -eq 0 ] || skip 'needs another user'
	store -- set=key:1 -- uid=12345 get=key
	assert_eq "$status" 0
	assert_eq "$output" '[1] refused'
}

@test "tcpstore: it listens on the loopback only" {
	job "$python" -c 'import os, socket
port = int(os.environ["MASTER_PORT"])
for line in open("/proc/net/tcp").readlines() + open("/proc/net/tcp6").readlines():
    words = line.split()
    if words[1].endswith(":%04X" % port) and words[3] == "0A":
        print(words[1].split(":")[0])'
	assert_eq "$status" 0
	assert_eq "$output" 0100007F
}

@test "tcpstore: a rank that listens at MASTER_PORT itself is told what to do" {
	job -n 2 "$python" -c 'import os, socket, time
if os.environ["RANK"] != "0": time.sleep(60)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("", int(os.environ["MASTER_PORT"])))
s.listen()'
	assert_eq "$status" 1
	assert_has "$stderr" "^  xrun serves PyTorch's store at MASTER_PORT   try: --port-hold always"
}
