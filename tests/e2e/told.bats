#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# told.bats - events that are told to others: --exec-on and --on-event.
#
# Takes long, so it begins early.

load helper

# --- commands -----------------------------------------------------------------

@test "--exec-on: a command at an event, which it has as variables and as JSON" {
	need jq
	need_schemas
	job --job one --exec-on 'rank.exit:cat >event.json; env | grep ^XRUN_ | sort >vars' \
		-n 1 sh -c 'exit 3'
	assert_eq "$status" 3
	fits event event.json
	assert_eq "$(jq -c '[.event, .rank, .exit]' event.json)" '["rank.exit",0,3]'
	assert_eq "$(grep -vE '_(TIME|MONO_NS|PID|SEQ|V)=' vars)" 'XRUN_EVENT=rank.exit
XRUN_EVENT_EXIT=3
XRUN_EVENT_RANK=0
XRUN_EVENT_STOPPED=false
XRUN_JOB=one'
}

@test "commands run in the order of events, also that of the end, and of --no-logs" {
	job --no-logs --exec-on 'all:echo "$XRUN_EVENT" >>told' -n 2 true
	assert_eq "$status" 0
	assert_eq "$(cat told)" 'job.start
rank.start
rank.start
rank.exit
rank.exit
job.end'
	XRUN_EXEC_ON=$'job.end:echo $XRUN_EVENT_EXIT >end\njob.start:echo "$XRUN_EVENT_RANKS" >start' \
		job -n 3 sh -c 'exit 5'
	assert_eq "$status: $(cat start end)" $'5: 3\n5'
}

@test "what a command writes is seen on standard error, and ranks know nothing of it" {
	job --exec-on 'job.start:echo word' --exec-on 'job.end:echo last' -n 1 \
		sh -c 'env | grep XRUN_EXEC; ls -l /proc/self/fd | grep -c memfd; exit 0'
	assert_eq "$status: $output" '0: 0'
	assert_has "$stderr" '^word$'
	assert_has "$stderr" '^last$'
}

# bats test_tags=sanitize
@test "rel-148 a command that hangs is ended and named, with what it started" {
	job --exec-on 'job.start:trap "" TERM; sleep 70 & sleep 71' -n 1 true
	assert_eq "$status" 0
	assert_eq "$stderr" "xrun: --exec-on job.start: 'trap \"\" TERM; sleep 70 & sleep 71' took longer than 5 s, and was ended"
	job --exec-on 'job.end:setsid sleep 72 & sleep 0.3' -n 1 true
	assert_eq "$status" 0
	assert_has "$stderr" '^xrun: --exec-on: ended what a command left behind: sleep \(pid [0-9]+\)$'
	job --exec-on 'job.start:setsid sleep 73 & sleep 0.1' --report r.json -n 1 sleep 0.5
	assert_eq "$status" 0
	assert_has "$stderr" '^xrun: --exec-on: ended what a command left behind: sleep \(pid [0-9]+\)$'
	[[ $stderr != *outlived* && $stderr != *'not mounted'* ]]
	grep -q '"left_behind": *0' r.json
}

# bats test_tags=sanitize
@test "xrun in a command of --exec-on takes nothing of its event for a setting" {
	job --exec-on "job.end:'$XRUN' --no-logs sh -c 'env | grep -c ^XRUN_EVENT >&2; :'" -n 1 true
	assert_eq "$status: $stderr" '0: 0'
}

@test "-d does not wait for what a command leaves behind" {
	need jq
	SECONDS=0
	id=$("$XRUN" -d --exec-on 'job.start:setsid sleep 30 & sleep 0.1' -n 1 sleep 60)
	[ "$SECONDS" -lt 20 ]
	pid=$(jq .pid "$XDG_STATE_HOME/xrun/$id/job.json")
	"$XRUN" stop "$id"
	"$XRUN" wait "$id" || [ $? -eq 143 ]
	wait_for 10 is_gone "$pid"
}

# is_gone PID - or a zombie, whose parent is whoever takes orphans here.
is_gone()
{
	! grep -q '^State:.[^Z]' "/proc/$1/status" 2>/dev/null
}

@test "the end of the job is told, however many events wait before it" {
	job --exec-on 'rank.exit:sleep 0.02' --exec-on 'job.end:echo END-TOLD' -n 120 true
	assert_eq "$status" 0
	assert_has "$stderr" '^END-TOLD$'
}

@test "a command that fails, or cannot be run, changes nothing" {
	job --exec-on 'job.start:exit 7' -n 1 true
	assert_eq "$status: $stderr" '0: '
	job -v --exec-on 'job.start:exit 7' -n 1 true
	assert_eq "$status" 0
	assert_has "$stderr" "^xrun: --exec-on job.start: 'exit 7' ended with status 7\$"
}

@test "more events than a slow command can take: some are left out, and it is said" {
	job --exec-on 'all:sleep 0.2' -n 40 true
	assert_eq "$status" 0
	assert_has "$stderr" "^xrun: --exec-on rank.(start|exit): 'sleep 0.2' is too slow: it is not run for each event any more\$"
	assert_has "$stderr" "is not run: the job is over\$"
}

@test "an aide is no rank: it is not waited for, not signalled, and no leftover" {
	spawn one "$XRUN" --exec-on 'job.start:trap "echo got >got" USR1; echo up >&2; sleep 3' \
		--job one -n 1 sleep 60
	await_line one.err '^up$' 10
	wait_for 5 "$XRUN" signal USR1 one
	await_exit "$pid" 10
	[ ! -e got ]
	assert_eq "$(grep outlived one.err)" ''
}

@test "what is no event or has no command is refused with what would be one" {
	job --exec-on 'job.ends:true' true
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: --exec-on: 'job.ends' is not one of job.start, .*job.end, all\$"
	job --exec-on 'job.end:' true
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: --exec-on: nothing behind 'job.end:'"
	job --exec-on true true
	assert_eq "$status" 125
	job --on-event 'job.end:ftp://127.0.0.1/' true
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: --on-event: 'ftp://127.0.0.1/' is not http://... or https://..."
	job --dry-run --exec-on job.end:true --on-event all:http://a/ true
	assert_has "$stderr" '^xrun: --exec-on does nothing with --dry-run: nothing is started$'
	assert_has "$stderr" '^xrun: --on-event does nothing with --dry-run: nothing is started$'
}

# --- web hooks ----------------------------------------------------------------

# sink [STATUS...] - somebody takes posts at $url; what comes is in sink.log.
sink()
{
	local port

	need python3 jq
	[ -x "$BUILD/launcher/xrun-notify" ] || skip 'xrun was built without libcurl'
	: >sink.log
	"$here/http_sink.py" "$@" >sink.log 3>&- &
	sink=$!
	await_line sink.log '^[0-9]+$' 10
	port=$line
	url=http://127.0.0.1:$port
}

unsink()
{
	kill "$sink"
	wait "$sink" 2>/dev/null || true
}

# posts - what came, "PATH EVENT" each.
posts()
{
	sed 1d sink.log | while read -r path body; do
		printf '%s %s\n' "$path" "$(jq -r .event <<<"$body")"
	done
}

@test "--on-event: events as JSON, with job and host, in their order" {
	sink
	job --job web --on-event "all:$url/a" --on-event "job.end:$url/b" -n 1 sh -c 'exit 4'
	assert_eq "$status" 4
	unsink
	assert_eq "$(posts | grep '^/a')" '/a job.start
/a rank.start
/a rank.exit
/a job.stop
/a job.end'
	assert_eq "$(posts | grep '^/b')" '/b job.end'
	sed -n 's,^/a ,,p' sink.log | json_holds -s --arg host "$(hostname)" \
		'all(.[]; .job == "web" and .host == $host) and .[4].exit == 4'
}

@test "--on-event: events that come at once go out one after the other, without a pause" {
	sink
	SECONDS=0
	job --on-event "all:$url/a" -n 16 true
	[ "$SECONDS" -lt 5 ]
	unsink
	assert_eq "$status: $stderr" '0: '
	assert_eq "$(posts | wc -l)" 34
	assert_eq "$(posts | tail -n 1)" '/a job.end'
}

@test "who is told to end, twice, does not wait for a web hook" {
	sink hang
	spawn one "$XRUN" --on-event "job.end:$url/x" -n 1 true
	wait_for 10 grep -q job.end sink.log
	SECONDS=0
	kill "$pid"
	kill -INT "$pid"
	await_exit "$pid" 8
	[ "$SECONDS" -lt 5 ]
	unsink
	assert_has "$(cat one.err)" '^xrun: --on-event: not all web hooks were told: xrun was told to end$'
}

@test "rel-149 a web hook that fails is tried three times, and said once, without its secrets" {
	sink 500,500,200
	job --on-event "job.start:$url/x" -n 1 true
	assert_eq "$status: $stderr" '0: '
	assert_eq "$(posts)" '/x job.start
/x job.start
/x job.start'
	unsink
	sink 404
	job --on-event "all:http://me:secret@${url#http://}/secret?token=secret" -n 1 true
	unsink
	assert_eq "$status" 0
	assert_eq "$stderr" "xrun: --on-event: $url: answered 404"
	assert_eq "$(posts | wc -l)" 4
}

# bats test_tags=sanitize
@test "rel-149 redirects are not followed" {
	sink 302
	job --on-event "job.end:$url/x" -n 1 true
	unsink
	assert_eq "$status" 0
	assert_eq "$stderr" "xrun: --on-event: $url: answered 302; redirects are not followed"
	assert_eq "$(posts)" '/x job.end'
}

# bats test_tags=sanitize
@test "no proxy is asked, whatever variables say" {
	sink
	http_proxy=http://127.0.0.1:1 HTTP_PROXY=http://127.0.0.1:1 all_proxy=http://127.0.0.1:1 \
		job --on-event "job.end:$url/x" -n 1 true
	unsink
	assert_eq "$(posts)" '/x job.end'
}

@test "rel-149 a web hook that never answers holds xrun for ten seconds at most" {
	local begun

	sink hang
	begun=$(now_ms)
	job --on-event "all:$url/x" -n 1 true
	assert_eq "$status" 0
	[ $(($(now_ms) - begun)) -lt 14000 ]
	unsink
	assert_has "$stderr" '^xrun: --on-event: not all web hooks were told within 10 s$'
}

# bats test_tags=sanitize
@test "nobody listens: it is said, and the job is as it was" {
	sink
	unsink
	job --on-event "job.start:$url" --on-event "job.start:http://$(printf 'a%.0s' {1..3000})/" \
		-n 1 echo hi
	assert_eq "$status: $output" '0: hi'
	assert_has "$stderr" "^xrun: --on-event: $url: Could(n't| not) connect to server\$"
	assert_has "$stderr" '^xrun: --on-event: http://a{253}: [A-Z]'
}

@test "xrun-notify is killed: the next event has another" {
	sink
	spawn one "$XRUN" --job one --on-event "all:$url/x" -n 1 sleep 60
	wait_for 10 grep -q rank.start sink.log
	kill -KILL "$(pgrep -P "$(supervisor)" -x xrun-notify)"
	await_line one.err 'xrun-notify ended' 10
	kill "$pid"
	await_exit "$pid" 15
	wait_for 5 grep -q job.end sink.log
	unsink
}

# bats test_tags=sanitize
@test "--on-event: an address that answers late keeps no other waiting" {
	need python3
	python3 - "$BUILD/launcher/xrun-notify" <<-'END'
		import http.server, json, socket, subprocess, sys, threading

		came, more, go = {"/slow": [], "/quick": []}, threading.Condition(), threading.Event()

		class Sink(http.server.BaseHTTPRequestHandler):
		    def do_POST(self):
		        body = self.rfile.read(int(self.headers["Content-Length"]))
		        with more:
		            came[self.path].append(json.loads(body))
		            more.notify()
		        if self.path == "/slow":
		            go.wait(10)
		        self.send_response(200)
		        self.end_headers()

		    def log_message(self, *words):
		        pass

		server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
		threading.Thread(target=server.serve_forever, daemon=True).start()
		url = "http://127.0.0.1:%d" % server.server_port
		here, there = socket.socketpair()
		notify = subprocess.Popen([sys.argv[1]], stdin=there)

		def tell(path, number):
		    here.sendall(b'%s%s {"number":%d}\n' % (url.encode(), path.encode(), number))

		def await_count(path, count):
		    with more:
		        assert more.wait_for(lambda: len(came[path]) >= count, 30)

		for number in range(5000):
		    tell("/slow", number)
		tell("/quick", 7)
		await_count("/quick", 1)
		assert len(came["/slow"]) == 1
		go.set()
		await_count("/slow", 2)
		assert came["/slow"][:2] == [{"number": 0}, {"dropped": 904, "number": 905}], came["/slow"][:2]
		assert here.recv(1000).decode() == url + ": does not take events as fast as they come\n"
		notify.kill()
		notify.wait()
	END
}
