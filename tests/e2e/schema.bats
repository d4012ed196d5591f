#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# schema.bats - every machine-readable output fits its schema in share/schema,
# whatever became of the job. A member that a schema does not name fails here:
# name it there, in the change that makes xrun write it.
#
# Takes long, so it begins early.

load helper

# fit COUNT - each report, job.json and line of events that the jobs of this
# test left fits, and there are at least COUNT accounts and COUNT lines.
fit()
{
	local accounts events

	mapfile -t accounts < <(find . -name '*.report' -o -name job.json)
	mapfile -t events < <(find . -name '*.jsonl')
	[ "${#accounts[@]}" -ge "$1" ]
	[ "$(cat "${events[@]}" | wc -l)" -ge "$1" ]
	fits job "${accounts[@]}"
	fits event "${events[@]}"
}

# account NAME ARG... - a job with its account and events in files.
account()
{
	local name=$1

	shift
	job --report "$name.report" --events "$name.jsonl" "$@"
}

# reason FILE - exit status and reason.
reason()
{
	jq -r '"\(.exit) \(.reason)"' "$1"
}

@test "every schema is a schema, and names all that it lets through" {
	need_schemas
	"$XRUN" config schema >config.json
	"$here/fits.py" --strict "$root"/share/schema/*.json config.json
}

@test "a misfit is found: too much, too little, of another kind" {
	need_schemas
	account ok -n 2 true
	fits job ok.report
	jq '. + {more: 1}' ok.report >more.report
	jq 'del(.rank[1].device)' ok.report >less.report
	jq '.rank[0].seconds = "1"' ok.report >kind.report
	jq '.reason = "refused"' ok.report >other.report
	sed '2s/"pid"/"id"/' ok.jsonl >wrong.jsonl
	try fits job {more,less,kind,other}.report
	assert_eq "$status" 1
	for name in more less kind other; do
		assert_has "$stderr" "^$name.report: "
	done
	try fits event wrong.jsonl
	assert_eq "$stderr" \
		"wrong.jsonl:2: \$: 'pid' is a required property"
}

@test "accounts and events of jobs that went well" {
	need_schemas
	account one true
	account four -n 4 sh -c 'echo out; echo err >&2'
	account quiet --no-logs -n 2 echo hi
	account dir --log-dir logs -n 2 echo hi
	account bound --bind core -n 1 echo hi
	account parts -n 1 echo a : -n 2 --chdir / echo b
	account odd printf '%s' "$(printf '\377\001 "\\ \n')"
	fit 10
	assert_eq "$(reason four.report)" '0 ok'
	assert_eq "$(jq -c '[.rank[].stdout_bytes]' four.report)" '[4,4,4,4]'
}

@test "accounts and events of jobs that failed" {
	need_schemas
	account code -n 3 sh -c 'exit $RANK'
	account signal -n 2 "$PROG/die" --rank 1 --signal SEGV
	account real -n 2 sh -c 'kill -RTMIN+1 $$'
	account go-on --on-failure continue -n 3 sh -c 'echo x; exit $RANK'
	account worst --exit-code max -n 3 sh -c 'exit $RANK'
	fit 5
	assert_eq "$(reason signal.report)" '139 failure'
	assert_eq "$(jq .culprit signal.report)" 1
	[ "$(jq -s 'map(select(.event == "rank.exit" and .signal == "SIGSEGV")) |
		length' signal.jsonl)" = 1 ]
}

@test "accounts and events of jobs that were stopped" {
	need_schemas
	account late --timeout 100ms -n 2 sleep 100
	account deaf --timeout 100ms --grace 100ms -n 2 "$PROG/deaf"
	assert_eq "$(reason late.report)" '124 timeout'
	for signal in TERM INT HUP; do
		spawn $signal "$XRUN" --report $signal.report \
			--events $signal.jsonl -n 2 sh -c 'echo up; exec sleep 100'
		await_line $signal.out up 10
		kill -s $signal "$pid"
		wait "$pid" || true
		assert_has "$(reason $signal.report)" ' signal$'
	done
	"$XRUN" --no-logs --report closed.report --events closed.jsonl -n 1 \
		yes | head -n 1 || true
	assert_eq "$(reason closed.report)" '141 stdout closed'
	"$XRUN" --report closed.report --events closed.jsonl -n 1 timeout 60 yes | head -n 1 || true
	assert_eq "$(reason closed.report)" '141 stdout closed'
	fit 10
}

@test "accounts of jobs that were refused" {
	need_schemas
	account option --ranks 0 true
	account program ./no/such/program
	account script ./.
	account folder --chdir /no/such/folder true
	account limit -n 900000 true
	account show --show 9 -n 2 true
	account file --config missing true
	XRUN_GRACE=x account variable true
	for file in *.report; do
		assert_eq "$(jq -r .reason "$file")" refused
	done
	assert_eq "$(find . -name '*.report' | wc -l)" 8
	fits job ./*.report
}

# bats test_tags=sanitize
@test "accounts and events of jobs whose ranks could not be started" {
	need_schemas
	for point in spawn.before spawn.child spawn.watch spawn.pipe; do
		XRUN_FAULT="$point:fail=ENOMEM;rank=1" account $point --debug-faults \
			-n 3 sh -c 'echo x'
		[ "$status" -ne 0 ]
	done
	cp "$(type -P true)" busy
	exec 5<>busy
	account busy -n 2 ./busy 5>&-
	exec 5>&-
	assert_eq "$(jq -r '.rank[0].step' busy.report)" exec
	[ "$(jq -s 'map(select(.event == "rank.error")) | length' busy.jsonl)" -gt 0 ]
	fit 5
}

@test "accounts of jobs that xrun could not bring to their end" {
	need_schemas
	job --report lost.report --events /dev/full -n 2 echo hi
	assert_eq "$(reason lost.report)" '125 xrun'
	XRUN_FAULT=end:kill account killed --debug-faults -n 2 echo hi
	XRUN_FAULT=super.start:kill account early --debug-faults -n 2 echo hi
	XRUN_FAULT=deliver:kill account late --debug-faults -n 2 echo hi
	fits job ./*.report
	fit 2
}

@test "job.json of a job whose xrun was killed" {
	need_schemas
	for point in super.start deliver; do
		XRUN_FAULT=$point:kill account $point --debug-faults -n 2 \
			sh -c 'echo hi; sleep 0.2'
	done
	job sh -c 'echo next'
	[ "$(cat "$XDG_STATE_HOME"/xrun/????/job.json |
		jq -s 'map(select(.reason == "supervisor lost")) | length')" -ge 1 ]
	fits job "$XDG_STATE_HOME"/xrun/????/job.json
}

@test "job.json of a job that runs" {
	need_schemas
	mkfifo gate
	spawn run "$XRUN" -n 2 sh -c 'echo up; read -r line <gate'
	await_line run.out up 10
	wait_for 10 test -e "$XDG_STATE_HOME/xrun/latest/job.json"
	cp "$XDG_STATE_HOME/xrun/latest/job.json" running.json
	assert_eq "$(jq 'has("exit")' running.json)" false
	fits job running.json
	exec 4<>gate
	printf 'a\nb\n' >&4
	wait "$pid"
	exec 4>&-
	fits job "$XDG_STATE_HOME/xrun/latest/job.json"
}

@test "events of a full disk" {
	need_schemas
	need_mounts -m
	mkdir disk
	cat >script <<-'END'
		mount -t tmpfs -o size=2m none disk
		head -c 1500000 /dev/zero >disk/filler
		mkfifo words
		timeout -s KILL 15 "$XRUN" -n 1 --log-dir disk/job --timeout 10s \
			--events full.jsonl --report full.report \
			head -c 1000000 /dev/zero >out 2>words &
		exec 3<words
		while IFS= read -r line <&3; do
			case $line in *'file system full'*) break ;; esac
		done
		rm disk/filler
		cat <&3 >>err &
		wait %1
	END
	try unshare -m bash script
	assert_eq "$status" 0
	fits event full.jsonl
	fits job full.report
	[ "$(jq -s 'map(select(.event == "log.full" or .event == "log.room")) |
		length' full.jsonl)" = 2 ]
}

# bats test_tags=sanitize
@test "answers: --dry-run, --show-env, config show, version" {
	need_schemas
	"$XRUN" --dry-run --json -n 3 true >dry.1
	"$XRUN" --dry-run --json --bind core -n 1 true >dry.2
	"$XRUN" --dry-run --json --buffer full true a 'b c' >dry.3
	"$XRUN" --dry-run --json -n 1 true : -n 2 --chdir / true a >dry.4
	fits dry-run dry.?
	"$XRUN" --show-env --json true >env.1
	RANK=7 XRUN_QUIET=1 "$XRUN" -n 3 --show-env=2 --json --env A=b \
		--env HOME=/ --env-profile torch,pjrt true >env.2
	fits show-env env.?
	echo '{ "ranks": 2, "env": { "A": "b" } }' >f
	XRUN_NO_PREFIX=1 "$XRUN" config show --json --config f --grace 1s >show.1
	"$XRUN" config show --json >show.2
	fits config-show show.?
	"$XRUN" version --json | fits version -
}

@test "files of settings: the schema and xrun agree" {
	need_schemas
	"$XRUN" config schema >config.json
	cat >good <<-'END'
	{}
	{ "$schema": "x", "ranks": 8, "grace": "1.5s", "timeout": 0 }
	{ "logs": false, "quiet": true, "on-failure": "stop" }
	{ "env": ["A=b"], "show": 0, "stop-signal": "INT" }
	{ "env": { "A": "b", "N": 1 }, "stop-signal": 15 }
	{ "grace": "1h30m", "timeout": "1m0.5s250ms" }
	{ "prefix": false }
	{ "ranks": 2.0, "job": "a.b", "log-rotate": 65536 }
	{ "stop-signal": "sigusr1", "log-rotate": "64k,2" }
	{ "prefix": "{rank}> " }
	{ "platform": "cpu", "show-env": true, "report": "x" }
	END
	cat >bad <<-'END'
	[]
	{ "rank": 8 }
	{ "ranks": 0 }
	{ "ranks": 1000001 }
	{ "ranks": 1.5 }
	{ "grace": 1 }
	{ "grace": "1 s" }
	{ "grace": "1s1m" }
	{ "grace": "" }
	{ "logs": null }
	{ "logs": "maybe" }
	{ "on-failure": "panic" }
	{ "env": "A=b" }
	{ "env": ["A"] }
	{ "env": { "A=": 1 } }
	{ "env": { "A": true } }
	{ "report": "" }
	{ "prefix": true }
	{ "config": "x" }
	{ "ranks": "8" }
	{ "show-env": "1" }
	{ "quiet": 1 }
	{ "quiet": "yes" }
	{ "job": "a b" }
	{ "job": "latest" }
	{ "log-rotate": 100 }
	{ "log-rotate": "63k" }
	{ "stop-signal": "FOO" }
	{ "stop-signal": 99 }
	{ "hosts": "x" }
	END
	split -l 1 -a 3 good good.
	for one in good.*; do
		"$XRUN" config check "$one"
	done
	"$here/fits.py" config.json good.*
	split -l 1 -a 3 bad bad.
	for one in bad.*; do
		try "$XRUN" config check "$one"
		assert_eq "$(cat "$one"): $status" "$(cat "$one"): 125"
	done
	try "$here/fits.py" config.json bad.*
	for one in bad.*; do
		grep -q "^$one: " <<<"$stderr" || cat "$one"
	done >fitting
	assert_eq "$(cat fitting)" ''
}

# each_value - of lines KEY VALUE... on standard input, {"KEY": VALUE} a line.
each_value()
{
	python3 -c '
import json, sys
for line in sys.stdin:
    key, rest = line.strip().split(" ", 1)
    while rest:
        _, end = json.JSONDecoder().raw_decode(rest)
        print(json.dumps({key: 0})[:-2] + rest[:end] + "}")
        rest = rest[end:].lstrip()
'
}

# bats test_tags=sanitize
@test "files of settings: the schema and xrun agree about the form of values" {
	local n=1000 key

	need_schemas
	"$XRUN" config schema >config.json
	mkdir v
	each_value >values <<-'END'
	show "all" "auto" "first" "none" "0" "-1" "0-3" "0,4-7,-1" "-3--1"
	show "0--1" "007" "-0" "-00" "" "," "0," ",0" "0-" "--1" "all,0" "x"
	show "1 " "0-1-2" "99999999999" 0 -1 3 1.5 2.0 true [0]
	bind "auto" "none" "core" "0" "0-3,8" "8191" "08191" "8192" "0-8192"
	bind "-1" "" "0," "cores" "0-3:2" 0 8191 8192 -1 1.5 2.0
	devices "auto" "none" "0,2-3" " 0 , 1\t" "1000000" "1000001" "0-" "-1"
	devices "" "0,,1" "GPU-1b5c" "GPU-" "G" "GPX" "MIG-a/1/0" "MIG_"
	devices "GPU-é" "cuda:0"
	devices "GPU-0123456789012345678901234567890123456789012345678901234567x"
	devices "GPU-0123456789012345678901234567890123456789012345678901234567xy"
	devices "GPU-0123456789012345678901234567890123456789012345678901234567xyz"
	devices 0 1000000 1000001 -1 0.5
	stdin "all" "none" "0" "0007" "999999" "1000000" "-1" "" "0,1" "first"
	stdin 0 999999 1000000 -1 1.5 2.0
	prefix "auto" "none" "{rank}> "
	prefix "{time} {host}:{local_rank}/{size}{job}{part}{stream}"
	prefix "{{rank}}" "{{{rank}}}" "}}{{" "{rank" "rank}" "{}" "{foo}"
	prefix "{ rank}" "{time}{time}" "{{time}}{{time}}" "{{time}}{time}"
	prefix "{{{time}{time}" "a\tb" "a\u001bb" "a\u007fb" "é│" ""
	prefix "{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{"
	prefix "{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{"
	prefix "x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x{{x"
	prefix false true 3
	log-dir "/tmp/a" "logs/{job}.{host}" "a{{b}}" "{rank}" "{" "}" "{{"
	log-dir "{{job}" "{job}}" "" "a b\né" 3 1.5 false
	env-profile "auto" "none" "torch,pjrt" "xla" "xrt" "xrun,none"
	env-profile "torch," ",torch" "torch, pjrt" "jax" "" "auto,auto" 0 1
	env ["A=b"] ["A="] ["=b"] ["A"] [] ["A b=c"] ["A\tb=c"] ["A\u007f=c"]
	env ["é=x"] ["RANK=1"] ["WORLD_SIZE=1"] ["RANKS=1"] ["WORLD_SIZE_X=1"]
	env ["XRUN_X=1"] ["XRUN=1"] ["LOCAL_RANK=1"] ["LOCAL=1"] ["XRT_X=1"]
	env ["OMP_NUM_THREADS=1","B=c=d"] [1] {"A":"b"} {"A":1.5} {"A":true}
	env {"":"b"} {"A=":"b"} {"A b":"c"} {"RANK":1} {"RANKS":1}
	env {"XRUN_JOB":"x"} {"LOCAL_":"x"} {"WORLD_SIZE":"x"} {"A":""} "A=b"
	env-pass ["A*"] ["A=b"] [""] ["A,B"] [1] [] ["é"] "A*" {"A":"b"}
	job "a.b" "_x" "-x" ".x" "latest" "latest1" "a b" ""
	job "0123456789012345678901234567890123456789012345678901234567890123"
	job "01234567890123456789012345678901234567890123456789012345678901234"
	job 7 4711 -1 1.5 2.0
	log-rotate "64k" "65536" "65535" "64K,2" "64k,1" "1M,5" "1 M" "" 65536
	log-rotate 65535 1048576 1.5 "63k" 65536.0
	chdir "/" "" 3 true
	report "r.json" "" 3 1.5 []
	END
	while IFS= read -r line; do
		n=$((n + 1))
		printf '%s\n' "$line" >"v/$n.json"
	done <values
	[ "$n" -gt 1200 ]
	try "$XRUN" config check v/*
	printf '%s\n' "$stderr" | sed -n 's/^xrun: \(v[^:]*\):.*/\1/p' |
		sort -u >xrun.says
	try "$here/fits.py" config.json v/*
	printf '%s\n' "$stderr" | cut -d: -f1 | sort -u >schema.says
	for file in $(comm -3 xrun.says schema.says); do
		echo "not agreed: $(cat "$file")"
	done >differ
	assert_eq "$(cat differ)" ''
	cut -d'"' -f2 values | sort -u >keys
	while read -r key; do
		# Neither takes all, nor refuses all.
		[ "$(xargs cat <xrun.says | grep -c "^{\"$key\"")" -lt \
			"$(grep -c "^{\"$key\"" values)" ]
	done <keys
}

@test "files of settings: a range that runs backwards is xrun's to find" {
	need_schemas
	"$XRUN" config schema >config.json
	for line in '{"show": "3-1"}' '{"bind": "3-1"}' '{"devices": "3-1"}'; do
		echo "$line" >one.json
		"$here/fits.py" config.json one.json
		try "$XRUN" config check one.json
		assert_eq "$status" 125
	done
}

@test "xrun ps --json, and what a job says of itself" {
	need_schemas
	need socat
	job -n 2 sh -c 'echo x; exit $RANK'
	spawn one "$XRUN" --job runs -n 3 bash -c '
		[ $RANK = 2 ] || echo "{\"type\":\"progress\",\"step\":1,\"metrics\":{\"a\":1.5}}" >&97
		[ $RANK = 0 ] || exec sleep 60'
	local socket=$XDG_RUNTIME_DIR/xrun/runs/control
	wait_for 5 [ -e "$socket" ]
	wait_for 5 told
	echo '{"type":"status"}' | socat -t 2 - "UNIX-CONNECT:$socket" |
		tail -n 1 | jq .status >now.json
	fits status now.json
	"$XRUN" ps --json -a >all.json
	json_holds 'length == 2' all.json
	"$XRUN" ps --json runs >one.json
	json_holds '.rank[1].progress.metrics.a == 1.5 and .rank[1].processes == 1' one.json
	"$XRUN" stop
	wait "$pid" || true
	"$XRUN" ps --json runs >ended.json
	fits ps all.json one.json ended.json
	jq '.rank[0].more = 1' one.json >more.json
	try fits ps more.json
	assert_eq "$status" 1
}

told()
{
	"$XRUN" ps --json runs | json_holds '.rank[1].progress.step == 1 and
		.rank[0].state == "done"'
}
