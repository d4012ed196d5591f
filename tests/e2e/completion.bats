#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# completion.bats - what real shells make of `xrun completion`. bash's is in
# help.bats, and word by word in tests/unit/test_options.c.

bats_require_minimum_version 1.5.0
load helper

# fish_offers LINE - what fish would complete LINE with, a word a line. fish 4 also offers
# words that have the last one of LINE elsewhere.
fish_offers()
{
	fish -c 'source (echo $argv[1] | psub); complete -C $argv[2]' \
		"$("$XRUN" completion fish)" "$1" | cut -f1 | sort |
		awk -v begin="${1##* }" 'index($0, begin) == 1'
}

# with_zsh - a home whose zsh has the completion; xrun there prints its words.
with_zsh()
{
	need zsh
	mkdir functions
	"$XRUN" completion zsh >functions/_xrun
	cat >"$HOME/.zshrc" <<-END
		PS1='READY '
		fpath=($PWD/functions \$fpath)
		autoload -U compinit
		compinit -u -D
		xrun() { print -r -- "<\${(j:,:)@}>" }
	END
}

# typed WORDS WANT - WORDS and a tab, typed at zsh and entered, run WANT.
typed()
{
	run in_pty -d 20 -w READY -s "$1\\t" -s ' \n' -w "<$2>" -w READY \
		-s 'exit 0\n' -- zsh -d -i
	assert_eq "$status" 0
}

# offered WORDS WANT... - WORDS and a tab show each WANT, in this order.
offered()
{
	local words=$1 want steps=()

	shift
	for want; do
		steps+=(-w "$want")
	done
	run in_pty -d 20 -w READY -s "$words\\t" "${steps[@]}" \
		-s '\025exit 0\n' -- zsh -d -i
	assert_eq "$status" 0
}

@test "zsh completes options and their values" {
	with_zsh
	typed 'xrun --timeo\t5s' '--timeout=5s'
	typed 'xrun -n 4 --stop-signal=K' '-n,4,--stop-signal=KILL'
	typed 'xrun -n 4 --no-lo' '-n,4,--no-logs'
	offered 'xrun --on-failure ' continue stop
}

@test "zsh completes verbs and what may stand behind them" {
	with_zsh
	typed 'xrun vers' version
	typed 'xrun help grac' help,grace
	offered 'xrun completion ' bash fish zsh
}

@test "zsh completes the program and its own words as it would without xrun" {
	with_zsh
	mkdir place
	touch place/program
	chmod +x place/program
	typed 'xrun -n 2 ./place/pro' '-n,2,./place/program'
	typed 'xrun -n 2 ls --almost' '-n,2,ls,--almost-all'
}

@test "zsh begins anew behind a ':' that parts programs" {
	with_zsh
	typed 'xrun ls : --buf\tfu' 'ls,:,--buffer=full'
	typed 'xrun -n 1 ls : --time' '-n,1,ls,:,--time'
	typed 'xrun ls : -n 2 ls --almost' 'ls,:,-n,2,ls,--almost-all'
	typed 'xrun ls a:b --almost' 'ls,a:b,--almost-all'
}

@test "zsh completes words that stand beside a form, and xrun config show" {
	with_zsh
	typed 'xrun --show fir' '--show,first'
	typed 'xrun config show --orig' config,show,--origin
	typed 'xrun config show --origin --timeo\t1s' 'config,show,--origin,--timeout=1s'
	touch settings.json
	typed 'xrun config check sett' config,check,settings.json
}

@test "fish completes options and their values" {
	need fish
	assert_eq "$(fish_offers 'xrun --timeo')" --timeout
	assert_eq "$(fish_offers 'xrun -n 4 --on-failure ')" $'continue\nstop'
	assert_eq "$(fish_offers 'xrun --stop-signal=K')" --stop-signal=KILL
	assert_eq "$(fish_offers 'xrun -n 4 --no-lo')" --no-logs
	assert_eq "$(fish_offers 'xrun ls --timeo')" ''
}

@test "fish completes verbs and what may stand behind them" {
	need fish
	assert_eq "$(fish_offers 'xrun versio')" version
	run ! grep -x version <(fish_offers 'xrun -q versio')
	assert_eq "$(fish_offers 'xrun help grac')" grace
	assert_eq "$(fish_offers 'xrun completion ')" $'bash\nfish\nzsh'
	assert_eq "$(fish_offers 'xrun version ')" --json
}

@test "fish completes the program and its own words as it would without xrun" {
	need fish
	mkdir place
	touch place/program
	chmod +x place/program
	assert_eq "$(fish_offers 'xrun -n 2 ./place/pro')" ./place/program
	assert_eq "$(fish_offers 'xrun -n 2 ls --almost')" --almost-all
	assert_eq "$(fish_offers 'xrun -- ls --almost')" --almost-all
	assert_eq "$(fish_offers 'xrun -q sh ./pla')" ./place/
}

@test "fish begins anew behind a ':' that parts programs" {
	need fish
	assert_eq "$(fish_offers 'xrun ls : --buf')" --buffer
	assert_eq "$(fish_offers 'xrun ls : --buffer ')" $'full\nline\nnone'
	assert_eq "$(fish_offers 'xrun ls : --time')" ''
	assert_eq "$(fish_offers 'xrun ls : -n 2 ls --almost')" --almost-all
	assert_eq "$(fish_offers 'xrun -- ls : --almost')" --almost-all
}

@test "fish completes words that stand beside a form, and xrun config show" {
	need fish
	assert_eq "$(fish_offers 'xrun --show ')" $'all\nauto\nfirst\nnone'
	assert_eq "$(fish_offers 'xrun config show --ori')" --origin
	assert_eq "$(fish_offers 'xrun config show --origin --timeo')" --timeout
	touch settings.json
	assert_eq "$(fish_offers 'xrun config check sett')" settings.json
}

@test "what is no shell that xrun knows is refused" {
	run --separate-stderr -125 "$XRUN" completion tcsh
	assert_eq "$stderr" "xrun: completion: 'tcsh' is not one of bash|zsh|fish"
	run --separate-stderr -125 "$XRUN" completion
	assert_eq "$stderr" 'xrun: completion: the shell is missing: bash, zsh or fish'
}

# --- jobs --------------------------------------------------------------------

# with_jobs - two that have ended, and xrun in PATH.
with_jobs()
{
	job --job alpha echo
	job --job beta echo
	mkdir -p bin
	ln -s "$XRUN" bin/xrun
	PATH=$PWD/bin:$PATH
}

# bash_offers WORD... - what bash would complete the last WORD with.
bash_offers()
{
	bash -c 'source <(xrun completion bash)
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_xrun
		printf "%s\n" "${COMPREPLY[@]}"' - "$@"
}

@test "shells complete jobs, signals and a verb's own options" {
	need fish
	with_jobs
	assert_eq "$(bash_offers xrun ps al)" alpha
	assert_eq "$(bash_offers xrun ps --j)" --json
	assert_eq "$(bash_offers xrun signal US)" $'USR1\nUSR2'
	spawn gamma "$XRUN" --job gamma sleep 60
	wait_for 10 "$XRUN" ps gamma
	assert_eq "$(bash_offers xrun signal USR1 '' | grep -x -e alpha -e beta -e gamma)" gamma
	kill "$pid"
	wait "$pid" || true
	assert_eq "$(bash_offers xrun wait --json a)" alpha
	assert_eq "$(fish_offers 'xrun ps al')" alpha
	assert_eq "$(fish_offers 'xrun logs ' | grep -c -e alpha -e beta)" 2
	assert_eq "$(fish_offers 'xrun stop --j')" --json
	assert_eq "$(bash_offers xrun logs --color a)" $'auto\nalways'
	assert_eq "$(bash_offers xrun logs --color =)" $'auto\nalways\nnever'
	assert_eq "$(bash_offers xrun logs --color = n)" never
	assert_eq "$(bash_offers xrun logs --no-p)" --no-prefix
	assert_eq "$(bash_offers xrun logs --grep a)" ''
	assert_eq "$(fish_offers 'xrun logs --color a')" $'always\nauto'
	try "$XRUN" completion words train
	assert_eq "$status: $output" '0: '
}

@test "zsh completes jobs, too" {
	with_jobs
	with_zsh
	typed 'xrun ps al' 'ps,alpha'
	typed 'xrun events be' 'events,beta'
	typed 'xrun logs --color ne' 'logs,--color,never'
	typed 'xrun wait --js' 'wait,--json'
}
