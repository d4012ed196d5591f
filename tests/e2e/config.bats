#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# config.bats - settings from files: which are read, which win, which are
# refused, and what xrun config says of them.

load helper

# user_file - stdin becomes the user's file.
user_file()
{
	mkdir -p "$XDG_CONFIG_HOME/xrun"
	cat >"$XDG_CONFIG_HOME/xrun/config.json"
}

# refused TEXT... - the job before this was not started, for these reasons.
refused()
{
	assert_eq "$stderr" "$(printf 'xrun: %s\n' "$@")"
	assert_eq "$status" 125
	assert_eq "$output" ''
	[ ! -e ran ]
}

# --- which files -------------------------------------------------------------

@test "a file may hold comments, last commas, an object of variables" {
	cat >job.json <<-'END'
	{
		// who
		"ranks": 2, "prefix": false, /* no bars */
		"env": { "GREETING": "hi", "COUNT": 3, },
		"timeout": "1m",
	}
	END
	job --config job.json sh -c 'echo "$GREETING $COUNT of $WORLD_SIZE"'
	assert_eq "$status" 0
	assert_eq "$stderr" ''
	assert_eq "$output" $'hi 3 of 2\nhi 3 of 2'
}

@test "command line, variables, --config, the user's file: the first wins" {
	user_file <<<'{ "ranks": 2, "platform": "cpu", "env": { "A": "user" } }'
	job sh -c 'echo $A'
	assert_eq "$(sort <<<"$output")" $'[0] user\n[1] user'
	echo '{ "ranks": 1, "env": ["A=file"] }' >job.json
	job --config job.json sh -c 'echo $A'
	assert_eq "$output" 'file'
	try env XRUN_CONFIG=job.json XRUN_ENV=A=variable "$XRUN" sh -c 'echo $A'
	assert_eq "$output" 'variable'
	job --config job.json --env A=line sh -c 'echo $A'
	assert_eq "$output" 'line'
	job --config none sh -c 'echo $A$WORLD_SIZE'
	assert_eq "$output" '1'
}

@test "the machine's file is the weakest" {
	need_mounts -m
	mkdir -p etc/xrun
	cp /etc/passwd /etc/group /etc/ld.so.cache etc/
	echo '{ "ranks": 3, "env": { "A": "machine" }, "prefix": false }' \
		>etc/xrun/config.json
	user_file <<<'{ "ranks": 1 }'
	try unshare -m sh -c 'mount --bind etc /etc && exec "$0" "$@"' \
		"$XRUN" sh -c 'echo "$A $WORLD_SIZE"'
	assert_eq "$stderr" ''
	assert_eq "$output" 'machine 1'
}

@test "nothing is read from the current directory unasked" {
	mkdir xrun .xrun
	for name in xrun.json config.json .xrun.json xrun/config.json; do
		echo '{ "ranks": 3 }' >$name
	done
	job sh -c 'echo $WORLD_SIZE'
	assert_eq "$output" 1
	assert_eq "$stderr" ''
}

@test "without files, xrun looks for two and reads none" {
	unsanitized 'strace sees what the sanitizer does'
	need strace
	strace -f -o trace -e trace=open,openat "$XRUN" -n 1 true
	assert_eq "$(grep -c 'config\.json' trace)" 2
	assert_eq "$(grep 'config\.json' trace | grep -c ENOENT)" 2
}

@test "a rank's own xrun does not inherit --config by variable" {
	echo '{ "ranks": 2, "prefix": false }' >job.json
	try env XRUN_CONFIG="$PWD/job.json" "$XRUN" "$XRUN" -q sh -c 'echo $WORLD_SIZE'
	assert_eq "$output" $'1\n1'
}

@test "rel-71 a pipe, a device, a folder, a loop of links, a huge file" {
	mkfifo pipe
	ln -s loop loop
	ulimit -S -f "$(ulimit -H -f)"
	truncate -s 1T huge
	for name in pipe /dev/zero .; do
		job --config "$name" touch ran
		refused "--config: $name: not a regular file"
	done
	job --config loop touch ran
	refused '--config: loop: Too many levels of symbolic links'
	job --config missing touch ran
	refused '--config: missing: No such file or directory'
	job --config huge touch ran
	refused '--config: huge: larger than 1048576 bytes'
	mkdir -p "$XDG_CONFIG_HOME/xrun/config.json"
	job touch ran
	refused "$XDG_CONFIG_HOME/xrun/config.json: not a regular file"
}

# bats test_tags=sanitize
@test "a file that may not be read is told of, one in another's home is not" {
	local nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)

	for_user 65534
	chmod 700 "$XDG_CONFIG_HOME"
	user_file <<<'{ "ranks": 2 }'
	try "${nobody[@]}" "$XRUN" --no-logs true
	assert_eq "$stderr" ''
	assert_eq "$status" 0
	chmod 755 "$XDG_CONFIG_HOME" "$XDG_CONFIG_HOME/xrun"
	chmod 600 "$XDG_CONFIG_HOME/xrun/config.json"
	try "${nobody[@]}" "$XRUN" --no-logs true
	assert_eq "$stderr" "xrun: $XDG_CONFIG_HOME/xrun/config.json: Permission denied; it was not read"
	assert_eq "$status" 0
}

# bats test_tags=sanitize
@test "a file that others may write, or own, is refused" {
	local file=$XDG_CONFIG_HOME/xrun/config.json

	user_file <<<'{ "ranks": 2 }'
	chmod 646 "$file"
	job touch ran
	refused "$file: others may write it (mode 646)   try: chmod go-w $file"
	chmod 644 "$file"
	chown 12345 "$file" 2>/dev/null || skip 'only root gives files away'
	job touch ran
	refused "$file: belongs to user 12345, who is not trusted   try: chown root $file"
}

# --- what is wrong in them ---------------------------------------------------

@test "rel-68 all errors at once, each with file, line and column" {
	cat >xrun.json <<-'END'
	{
	  "rank": 2, "stop_signal": "INT",
	  "ranks": 0, "np": 3, "no-logs": true,
	  "env": ["A=b", "C", null], "timeout": true,
	  "config": "x", "color": "red", "frobnicate": 1
	}
	END
	job --config xrun.json touch ran
	refused 'xrun.json:2:3: unknown key "rank" (did you mean "ranks"?)' \
		'xrun.json:2:14: unknown key "stop_signal" (did you mean "stop-signal"?)' \
		"xrun.json:3:12: ranks: '0' is too small; 1 to 1000000" \
		'xrun.json:3:15: unknown key "np" (did you mean "ranks"?)' \
		'xrun.json:3:24: "no-logs" is written "logs": false' \
		"xrun.json:4:18: env: 'C' is not a NAME=VALUE" \
		'xrun.json:4:23: env: expected a text or a number' \
		"xrun.json:4:41: timeout: 'true' is not a time such as 250ms, 30s, 10m or 1h30m" \
		'xrun.json:5:3: "config" cannot stand in a file' \
		"xrun.json:5:27: color: 'red' is not one of auto|always|never" \
		'xrun.json:5:34: unknown key "frobnicate"'
}

# forms FILE - words of all the values of FILE that no job can have.
forms()
{
	refused "$1:2:13: prefix: byte 0: '{foo}' is not one of {rank} {local_rank} {size} {host} {job} {part} {stream} {time}; a brace of the text is doubled" \
		"$1:2:30: bind: 'foo' is not auto, none, core or a list of CPUs such as 0-3,8" \
		"$1:3:11: show: 'a' is not a rank or a range such as 0,3-7,-1" \
		"$1:3:25: stdin: 'foo' is not all, none or a rank" \
		"$1:4:14: devices: 'x-y' (byte 0) is neither an index nor GPU-... nor MIG-..." \
		"$1:4:36: env-profile: 'foo' is not one of auto|none|torch|xla|xrt|pjrt|xrun" \
		"$1:5:20: env: RANK is what xrun tells its ranks and cannot be set" \
		"$1:6:17: log-rotate: '1k': the size is too small or too large; 64k to 4194303T" \
		"$1:7:10: job: 'latest' is what xrun calls the newest job; another name"
}

@test "check, show and a job tell all values that no job can have" {
	cat >g <<-'END'
	{
	  "prefix": "{foo}", "bind": "foo",
	  "show": "a", "stdin": "foo",
	  "devices": "x-y", "env-profile": "foo",
	  "env": { "RANK": "1" },
	  "log-rotate": "1k",
	  "job": "latest"
	}
	END
	job config check g
	forms g
	job config show --config g
	assert_has "$stderr" 'xrun: g:7:10: job: '
	assert_eq "$(wc -l <<<"$stderr")" 9
	job --config g touch ran
	forms g
	cat >g <<-'END'
	{ "prefix": "{{{rank}", "bind": "0-3,8", "show": "0,4-7,-1",
	  "stdin": 3, "devices": "0-2,GPU-1,GP", "env-profile": "torch,pjrt",
	  "log-rotate": "64k,2", "job": "a.b" }
	END
	job config check g
	assert_eq "$output" 'g: 8 settings, nothing wrong'
	echo '{ "show": [0, 1] }' >g
	job config check g
	refused 'g:1:11: show: expected one text, with commas in it, and no list'
}

@test "what is wrong in a file is found although a stronger source says it, too" {
	user_file <<<'{ "ranks": "many" }'
	job -n 2 touch ran
	refused "$XDG_CONFIG_HOME/xrun/config.json:1:12: ranks: expected a number, without quotes"
	job -h
	assert_eq "$status" 0
	job --config none true
	assert_eq "$status" 0
}

@test "what is found out about a value later names its place, too" {
	user_file <<<'{ "show": "9", "quiet": true }'
	job -n 2 touch ran
	refused "$XDG_CONFIG_HOME/xrun/config.json:1:11: show: '9': the ranks are 0 to 1"
	job -n 2 --show 8 touch ran
	refused "--show: '8': the ranks are 0 to 1"
	try env XRUN_SHOW=7 "$XRUN" -n 2 touch ran
	refused "XRUN_SHOW: '7': the ranks are 0 to 1"
	rm "$XDG_CONFIG_HOME/xrun/config.json"
	echo '{ "env": { "RANK": 1 } }' >f
	job --config f touch ran
	assert_has "$stderr" '^xrun: f:1:20: env: '
	echo '{ "report": "/no/such/folder/report" }' >f
	job --config f touch ran
	refused 'f:1:13: report: /no/such/folder/report: No such file or directory'
	echo '{ "show": "1", "env": ["A=2"] }' >f
	job -n 1 --config f touch ran
	assert_has "$stderr" '^xrun: f:1:11: show: '
}

@test "rel-67 rel-70 syntax errors are named with their place" {
	local text want

	while IFS='|' read -r text want; do
		printf '%b' "$text" >f
		job --config f touch ran
		refused "f:$want"
	done <<-'END'
	{"ranks": 2|1:12: the text ends too early
	{"ranks": 02}|1:11: a number with a leading 0
	{"ranks": 1e999}|1:11: a number beyond 1.8e308
	{"ranks": 9007199254740993}|1:11: an integer beyond 2^53
	{"ranks": 2}}|1:13: more text after the value
	{"ranks": 2 "prefix": true}|1:13: expected ',' or '}'
	{ranks: 2}|1:2: expected a key in double quotes
	{"ranks" 2}|1:10: expected ':'
	{"ranks": 2,\n "ranks": 3}|2:2: the key "ranks" again
	{"report": "\\u0000"}|1:13: an escape that means nothing, or no character
	{"report": "\\ud800"}|1:13: an escape that means nothing, or no character
	{"report": "\0377"}|1:13: not UTF-8
	{"report": "a\nb"}|1:14: a control character in a string
	\0357\0273\0277{}|1:1: a byte order mark
	{} /* never ends|1:4: a comment that does not end, or is not plain UTF-8
	[]|1:1: expected an object, {"NAME": ...}
	|1:1: the text ends too early
	END
}

# bats test_tags=sanitize,keep
@test "rel-69 deep nesting and many numbers are refused" {
	printf '[%.0s' {1..100000} >f
	job --config f touch ran
	refused 'f:1:33: nested deeper than 32'
	{ echo '{ "ranks": ['; yes 1, | head -n 100000; echo '1] }'; } >f
	job --config f touch ran
	assert_eq "$status" 125
	assert_has "$stderr" "^xrun: f:1:12: ranks: '\[\?1,.*' is not a number"
}

@test "a job that is refused for its file has that in its report" {
	echo '{ "rank": 2 }' >f
	job --report report.json --config f true
	assert_eq "$(jq -r .error report.json)" \
		'f:1:3: unknown key "rank" (did you mean "ranks"?)'
}

# --- xrun config -------------------------------------------------------------

# setting NAME - its object in the JSON of config show.
setting()
{
	jq_sorted --arg name "$1" '.settings[] | select(.name == $name) | del(.name)' \
		<<<"$output"
}

# bats test_tags=sanitize
@test "config show tells every setting, and where it comes from" {
	local file=$XDG_CONFIG_HOME/xrun/config.json

	user_file <<<'{ "grace": "1.5s", "quiet": true, "env": ["A=1", "B=2"] }'
	echo '{ "show": "0", "stop-signal": "INT" }' >job.json
	try env XRUN_NO_PREFIX=1 XRUN_TIMEOUT=1h "$XRUN" config show --origin \
		--config job.json -n 4 --buffer=none
	assert_eq "$status" 0
	assert_eq "$stderr" ''
	assert_has "$output" '^ranks +4 +command line$'
	assert_has "$output" '^buffer +none +command line$'
	assert_has "$output" '^prefix +none +XRUN_NO_PREFIX$'
	assert_has "$output" '^timeout +1h +XRUN_TIMEOUT$'
	assert_has "$output" '^stop-signal +INT +job.json:1:31$'
	assert_has "$output" "^grace +1500ms +$file:1:12\$"
	assert_has "$output" "^env +B=2 +$file:1:42\$"
	assert_has "$output" '^logs +yes +default$'
	assert_has "$output" '^report +- +default$'
	assert_eq "$(grep -cE '^(config|help|debug-faults) ' <<<"$output")" 0
	job config show
	assert_has "$output" '^grace +1500ms$'
}

@test "--show-env says where a variable of --env was said" {
	echo '{ "env": { "A": "file" } }' >f
	job --config f --show-env true
	assert_has "$output" '^f:1:10 +A=file$'
	try env XRUN_ENV=A=variable "$XRUN" --show-env true
	assert_has "$output" '^XRUN_ENV +A=variable$'
	job --config f --show-env --env A=line true
	assert_has "$output" '^--env +A=line$'
	job --config f --show-env=1 -n 1 true : -n 1 --env A=line true
	assert_has "$output" '^--env +A=line$'
}

@test "config show --json has values of their own kind" {
	user_file <<<'{ "env": { "A": "1" }, "logs": false }'
	try env XRUN_GRACE=2s "$XRUN" config show --json -n 3
	assert_eq "$status" 0
	assert_eq "$(setting ranks)" '{"source":"command line","value":3}'
	assert_eq "$(setting grace)" \
		'{"source":"environment","value":"2s","variable":"XRUN_GRACE"}'
	assert_eq "$(setting logs)" \
		"{\"column\":32,\"file\":\"$XDG_CONFIG_HOME/xrun/config.json\",\"line\":1,\"source\":\"user\",\"value\":false}"
	assert_eq "$(setting env | jq -c .value)" '["A=1"]'
	assert_eq "$(setting report)" '{"source":"default","value":null}'
	assert_eq "$(jq -c '.files[].source' <<<"$output")" '"user"'
}

@test "what config show prints can be a file again" {
	user_file <<<'{ "env": ["A=1", "B=x y"], "show": "0,2", "prefix": false }'
	try env XRUN_GRACE=2s "$XRUN" config show --json -n 3 --timeout 90s
	assert_has "$output" '"name":"timeout","value":'
	jq '[.settings[] | select(.value != null) | {key: .name, value}] |
		from_entries' <<<"$output" >again.json
	jq -c '[.settings[] | {name, value}]' <<<"$output" >before
	rm "$XDG_CONFIG_HOME/xrun/config.json"
	job config check again.json
	assert_eq "$status" 0
	job config show --json --config again.json
	jq -c '[.settings[] | {name, value}]' <<<"$output" | diff before -
}

@test "config show says what is wrong instead" {
	user_file <<<'{ "rank": 1, "grace": 1 }'
	job config show
	assert_eq "$status" 125
	assert_eq "$output" ''
	assert_eq "$(wc -l <<<"$stderr")" 2
	job config show --config none ./train
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: config show: takes options, not './train'"
}

@test "config check reads a file and nothing else" {
	user_file <<<'rubbish'
	echo '{ "ranks": 2, "$schema": "x" }' >good.json
	echo '{ "rank": 2, "ranks": 0 }' >bad.json
	job config check good.json
	assert_eq "$output" 'good.json: 1 setting, nothing wrong'
	assert_eq "$status" 0
	job config check bad.json good.json missing.json
	assert_eq "$status" 125
	assert_eq "$output" 'good.json: 1 setting, nothing wrong'
	assert_eq "$stderr" "xrun: bad.json:1:3: unknown key \"rank\" (did you mean \"ranks\"?)
xrun: bad.json:1:23: ranks: '0' is too small; 1 to 1000000
xrun: missing.json: No such file or directory"
	job config check
	assert_eq "$stderr" 'xrun: config check: which file?'
	assert_eq "$status" 125
}

@test "config alone, or with another word, says what there is" {
	for word in '' set; do
		job config $word
		assert_eq "$status" 125
		assert_has "$stderr" '^xrun: config: show .*check FILE.*schema$'
	done
	job config schema now
	assert_eq "$status" 125
	job config -h
	assert_has "$output" '^usage: xrun config show\|check\|schema'
	job config show -n 2 -h
	assert_has "$output" '^usage: xrun config show'
	assert_eq "$status" 0
	job help config
	assert_has "$output" '^  --config=FILE +XRUN_CONFIG$'
	assert_has "$output" '^  xrun config show\|check\|schema$'
}

# bats test_tags=sanitize
@test "config schema has every key, with its kind and limits" {
	job config schema
	assert_eq "$status" 0
	cp .out schema.json
	assert_eq "$(jq -c '.properties.ranks | [.type, .minimum, .maximum]' schema.json)" \
		'["integer",1,1000000]'
	assert_eq "$(jq -c '.properties["on-failure"].enum' schema.json)" \
		'["stop","continue"]'
	assert_eq "$(jq -r '.properties.logs.description' schema.json)" \
		'false: keep no files of output'
	assert_eq "$(jq '.properties | has("config") or has("help")' schema.json)" false
	"$XRUN" config show --json | jq -r '.settings[].name' | sort >shown
	jq -r '.properties | keys[]' schema.json | grep -v '^\$' | sort | diff shown -
	"$XRUN" help keys | sed -n 's/^  "\(.*\)":.*/\1/p' | sort | diff shown -
}

@test "what config show prints can be typed again" {
	run env XRUN_TIMEOUT=1.0000005s XRUN_GRACE=90s "$XRUN" config show
	assert_has "$output" '^timeout +1000\.000500ms$'
	assert_has "$output" '^grace +90s$'
	run env XRUN_TIMEOUT=1000.000500ms "$XRUN" config show
	assert_has "$output" '^timeout +1000\.000500ms$'
}

@test "a file that a variable names and that is not there: the variable is named" {
	XRUN_CONFIG=$PWD/none.json job true
	assert_eq "$status" 125
	assert_eq "$stderr" "xrun: XRUN_CONFIG: $PWD/none.json: No such file or directory"
	job --config none.json true
	assert_eq "$stderr" 'xrun: --config: none.json: No such file or directory'
}
