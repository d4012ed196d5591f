#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# http.bats - --http: who is answered, and what others can do to the job, which
# is nothing.

load helper

# up ARG... - a job called web that answers HTTP; where is in $at, its token, if
# it has one, in $token.
up()
{
	spawn web "$XRUN" --job web "$@"
	wait_for 10 answers
	at=$(jq -r .http ps.json)
	token=$(jq -r '.http_token // empty' ps.json)
	[ -z "$token" ] || token=$(cat "$token")
}

# answers - the job says where it does, and the process is there.
answers()
{
	"$XRUN" ps --json web >ps.json && json_holds 'has("http")' ps.json && find_aide
}

# find_aide - who answers is $aide.
find_aide()
{
	aide=$(pgrep -P "$(supervisor)" -x xrun-http)
}

# get PATH [CURL-ARG...] - $output is what is at PATH, $status HTTP's.
get()
{
	local path=$1 to=()

	shift
	case $at in
	unix:*) to=(--unix-socket "${at#unix:}" "http://localhost$path") ;;
	*) to=("$at$path") ;;
	esac
	status=$(curl -s -o got -w '%{http_code}' --max-time 20 "$@" "${to[@]}") || true
	output=$(cat got 2>/dev/null) || true
}

client()
{
	try "$here/http_client.py" "$at" "$@"
}

over()
{
	kill "$pid"
	await_exit "$pid" 10
	[ ! -e "/proc/$aide" ]
}

@test "--http auto: metrics and JSON on a socket beside the control socket" {
	need curl jq
	need_schemas
	up --http auto -n 2 sleep 60
	assert_eq "$at" "unix:$XDG_RUNTIME_DIR/xrun/web/http"
	assert_eq "$(stat -c %a "${at#unix:}")" 600
	get /metrics
	assert_eq "$status" 200
	assert_has "$output" '^xrun_job_ranks\{job="web"\} 2$'
	assert_has "$output" '^xrun_rank_processes\{job="web",rank="1"\} 1$'
	get /api/v1/job
	assert_eq "$status" 200
	jq '. + {running: true}' <<<"$output" | fits ps -
	assert_eq "$(jq -r '.rank[1].pid' <<<"$output")" "$(jq -r '.rank[1].pid' ps.json)"
	get /
	assert_eq "$status" 200
	get /nothing
	assert_eq "$status" 404
	over
	[ ! -e "$XDG_RUNTIME_DIR/xrun/web" ]
}

@test "--http ADDRESS:PORT asks for a token, and for a Host that is this machine" {
	need curl jq
	up --http 127.0.0.1:0 -n 1 sleep 60
	assert_has "$at" '^http://127\.0\.0\.1:[0-9]+$'
	assert_has "$(cat web.err)" "^xrun: $at/metrics, token in $XDG_RUNTIME_DIR/xrun/web/http-token\$"
	assert_eq "$(stat -c %a "$XDG_RUNTIME_DIR/xrun/web/http-token")" 600
	assert_has "$token" '^[0-9a-f]{32}$'
	get /metrics
	assert_eq "$status" 401
	assert_eq "$output" '401 Unauthorized'
	get /metrics -H "Authorization: Bearer $token"
	assert_eq "$status" 200
	get /metrics -H "Authorization: Bearer $token" -H 'Host: evil.example'
	assert_eq "$status" 421
	get /metrics -H "Authorization: Bearer $token" -X POST
	assert_eq "$status" 405
	# Nobody can read it elsewhere.
	try grep -rl "$token" /proc/"$pid"/{cmdline,environ} \
		/proc/"$aide"/{cmdline,environ} "$XDG_STATE_HOME" web.out web.err
	assert_eq "$output" ''
	over
}

# bats test_tags=sanitize
@test "a port that is taken is a refusal, before any rank" {
	need curl jq
	up --http 127.0.0.1:0 -n 1 sleep 60
	job --http "${at#http://}" touch started
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: --http: ${at#http://}: Address already in use   try: another port, or 0 for any that is free"
	[ ! -e started ]
	over
}

# bats test_tags=sanitize
@test "--http unix:PATH: its own place, taken while somebody listens there" {
	need curl jq
	up --http unix:web.sock -n 1 sleep 60
	assert_eq "$at" "unix:$PWD/web.sock"
	assert_eq "$(stat -c %a web.sock)" 600
	get /metrics
	assert_eq "$status" 200
	job --http unix:web.sock touch started
	assert_eq "$status" 125
	assert_eq "$stderr" 'xrun: --http: web.sock: Address already in use'
	over
	[ ! -e web.sock ]
	# What a killed job left is taken over; what is no socket is not.
	"$here/http_client.py" unix:none odd 2>/dev/null || true
	python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("web.sock")'
	job --http unix:web.sock true
	assert_eq "$status" 0
	echo mine >web.sock
	job --http unix:web.sock true
	assert_eq "$status" 125
	assert_eq "$(cat web.sock)" mine
}

# bats test_tags=sanitize
@test "an address that is none is refused with what would be one" {
	local address

	for address in 9400 :9400 nowhere:9400 127.0.0.1 127.0.0.1:65536 '[::1:9400' 1.2.3.4.5:1 'unix:'; do
		job --http "$address" touch started
		assert_eq "$address $status" "$address 125"
		assert_has "$stderr" '^xrun: --http: '
	done
	job --http auto --dry-run true
	assert_has "$stderr" '^xrun: --http does nothing with --dry-run: nothing is started$'
	[ ! -e started ]
}

# bats test_tags=sanitize
@test "--http-token: a file for Prometheus, which nobody else may read" {
	need curl jq
	printf 'a token of one line\nand another\n' >token
	chmod 600 token
	up --http '[::1]:0' --http-token token -n 1 sleep 60
	assert_eq "$(jq -r .http_token ps.json)" "$PWD/token"
	get /metrics -H 'Authorization: Bearer a token of one line'
	assert_eq "$status" 200
	get /metrics -H 'Authorization: Bearer a token of one lime'
	assert_eq "$status" 401
	over
	[ -e token ]
	chmod 640 token
	job --http 127.0.0.1:0 --http-token token true
	assert_eq "$status" 125
	assert_has "$stderr" '^xrun: --http-token: token: others may read it'
	echo short >token
	chmod 600 token
	job --http 127.0.0.1:0 --http-token token true
	assert_eq "$status" 125
	assert_has "$stderr" 'its first line has less than 16 characters'
	printf 'sixteen and more\0 of a token\n' >token
	job --http 127.0.0.1:0 --http-token token true
	assert_eq "$status" 125
	assert_eq "$stderr" 'xrun: --http-token: token: it is no text: byte 17 is a NUL'
	job --http 127.0.0.1:0 --http-token nowhere true
	assert_eq "$status" 125
	assert_eq "$stderr" 'xrun: --http-token: nowhere: No such file or directory'
}

# bats test_tags=sanitize
@test "a token that is no text any more is nobody's: no part of it opens" {
	need curl jq
	echo 'sixteen and more of a token' >token
	chmod 600 token
	up --http 127.0.0.1:0 --http-token token -n 1 sleep 60
	printf 'sixteen and more\0 of a token\n' >token
	kill -KILL "$aide"
	await_line web.err 'xrun-http ended 3 times, and is not started again' 10
	refused "$at/metrics"
	over
}

@test "rel-95 what is no request is answered by 4xx, and nothing else happens" {
	need curl jq python3
	up --http auto -n 1 sleep 60
	client odd
	assert_eq "$output" 'huge header: 431
many headers: 431
huge line: 431
post: 405
body: 413
chunks: 400
dots: 404
nul: 404
bare nul: 400
two hosts: 400
control: 400
noise: 400'
	client head
	assert_eq "$output" '200 True False'
	client pipelined
	assert_eq "$output" '200 1'
	get /metrics
	assert_eq "$status" 200
	over
}

# bats test_tags=sanitize
@test "rel-91 300 connections that say nothing shut nobody out, nor do the deaf" {
	need curl jq python3
	up --http auto -n 1 sleep 60
	client crowd
	assert_eq "$output" 200
	client deaf
	assert_eq "$output" 200
	try "$XRUN" ps -q
	assert_eq "$output" web
	over
}

@test "rel-87 a request that comes byte by byte has ten seconds" {
	need curl jq python3
	up --http auto -n 1 sleep 60
	client slow
	assert_eq "$output" '408 True'
	over
}

@test "a flood is not the job's: its ps answers, its events are the same" {
	local flood=()

	need curl jq python3
	up --http auto -n 2 sh -c 'while :; do echo line; sleep 0.1; done'
	for _ in 1 2 3; do
		"$here/http_client.py" "$at" flood 3 >>flood.out 3>&- &
		flood+=($!)
	done
	for _ in {1..5}; do
		try timeout 2 "$XRUN" ps -q
		assert_eq "$output" web
	done
	wait "${flood[@]}"
	assert_eq "$(sort -u flood.out)" True
	over
	assert_eq "$(jq -r .event "$XDG_STATE_HOME"/xrun/web/events.jsonl | sort | uniq -c | paste -sd ' ' | tr -s ' ')" \
		' 1 job.end 1 job.start 1 job.stop 2 rank.exit 2 rank.start'
}

@test "who answers may die: the job goes on, and another takes its place" {
	need curl jq
	up -v --http auto -n 1 sleep 60
	kill -KILL "$aide"
	wait_for 10 another
	get /metrics
	assert_eq "$status" 200
	given_up
	refused --unix-socket "${at#unix:}" http://localhost/metrics
	try "$XRUN" ps -q
	assert_eq "$output" web
	over
	assert_eq "$(jq .exit "$XDG_STATE_HOME"/xrun/web/job.json)" 143
}

# bats test_tags=sanitize
@test "where it died too often nobody is made to wait, in no later attempt either" {
	need curl jq
	up -v --http 127.0.0.1:0 -n 1 sleep 60
	kill -KILL "$aide"
	wait_for 10 another
	given_up
	refused "$at/metrics"
	"$XRUN" restart web
	wait_for 10 in_attempt 1
	assert_eq "$(pgrep -P "$(supervisor)" -x xrun-http)" ''
	assert_eq "$(jq -c '[.http, .http_token]' ps.json)" '[null,null]'
	refused "$at/metrics"
	over
}

# given_up - it died once, and does twice more.
given_up()
{
	kill -KILL "$aide"
	wait_for 10 another
	kill -KILL "$aide"
	await_line web.err 'xrun-http ended 3 times, and is not started again; the job goes on' 10
}

# refused CURL-ARG... - at once, as where nobody listens.
refused()
{
	try curl -s --max-time 10 "$@"
	assert_eq "$status" 7
}

in_attempt()
{
	"$XRUN" ps --json web >ps.json && [ "$(jq .attempt ps.json)" = "$1" ]
}

another()
{
	local was=$aide

	if find_aide && [ "$aide" != "$was" ]; then
		return
	fi
	aide=$was
	return 1
}

# bats test_tags=sanitize
@test "it is no leftover of the ranks, and does not outlive xrun" {
	need curl jq
	mkfifo go
	up -v --http auto -n 1 sh -c 'read -r x <go'
	echo >go
	await_exit "$pid" 10
	assert_eq "$(grep outlived web.err)" ''
	[ ! -e "/proc/$aide" ]
	up --http auto -n 1 sleep 60
	kill -KILL "$(supervisor)"
	await_exit "$pid" 10
	[ ! -e "/proc/$aide" ]
	up --http auto -n 1 sleep 60
	kill -KILL "$pid"
	wait_for 10 gone
}

gone()
{
	[ ! -e "/proc/$aide" ]
}

@test "a job that is stopped is waited for, and its clients are answered then" {
	need curl jq
	up --http auto -n 1 sleep 60
	kill -STOP "$(supervisor)"
	curl -s -o later -w '%{http_code}' --unix-socket "${at#unix:}" \
		http://localhost/metrics >code 3>&- &
	asked=$!
	get / -m 0.3
	assert_eq "$status" 000
	kill -CONT "$(supervisor)"
	wait "$asked"
	assert_eq "$(cat code)" 200
	over
}

# bats test_tags=sanitize
@test "a restart has the same address and the same token" {
	need curl jq
	up --http 127.0.0.1:0 --restarts 3 -n 1 sh -c 'sleep 60; exit 1'
	was=$at:$token
	get /metrics -H "Authorization: Bearer $token"
	assert_has "$output" '^xrun_job_attempt\{job="web"\} 0$'
	pkill -KILL -P "$(supervisor)" -x sh
	wait_for 10 restarted
	at=$(jq -r .http ps.json)
	token=$(cat "$(jq -r .http_token ps.json)")
	assert_eq "$at:$token" "$was"
	get /metrics -H "Authorization: Bearer $token"
	assert_has "$output" '^xrun_job_attempt\{job="web"\} 1$'
	assert_has "$output" '^xrun_job_restarts_total\{job="web"\} 1$'
	over
	up --http auto --restarts 3 -n 1 sh -c 'sleep 60; exit 1'
	was=$at
	pkill -KILL -P "$(supervisor)" -x sh
	wait_for 10 restarted
	assert_eq "$(jq -r .http ps.json)" "$was"
	get /metrics
	assert_has "$output" '^xrun_job_restarts_total\{job="web"\} 1$'
	over
}

restarted()
{
	answers && [ "$(jq .restarts ps.json)" = 1 ] &&
		[ "$(jq -r .phase ps.json)" = running ]
}

# bats test_tags=sanitize
@test "xrun-http, started by hand, says who starts it" {
	run "$BUILD/launcher/xrun-http" web
	assert_eq "$status:$output" '1:xrun-http: only xrun --http starts this program'
	run "$BUILD/launcher/xrun-http" web - more
	assert_eq "$status:$output" '1:xrun-http: only xrun --http starts this program'
}
