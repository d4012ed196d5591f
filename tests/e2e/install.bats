#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# install.bats - what meson installs, moved to another folder than it was made
# for.

bats_require_minimum_version 1.5.0
load helper

setup_file()
{
	meson install -C "$BUILD" --no-rebuild --quiet \
		--destdir "$BATS_FILE_TMPDIR" >"$BATS_FILE_TMPDIR/log" 2>&1
	XRUN=$(find "$BATS_FILE_TMPDIR" -path '*/bin/xrun')
	export XRUN
}

@test "a moved installation finds its own files: lines show when written" {
	try "$XRUN" -n 2 sh -c 'echo "$LD_PRELOAD"'
	assert_eq "$status" 0
	assert_eq "$(grep -c "$BATS_FILE_TMPDIR/.*/libxrun-preload.so\$" <<<"$output")" 2
}

# needed PROGRAM - the libraries that it names.
needed()
{
	objdump -p "$1" | awk '/NEEDED/ && $2 !~ /^ld-linux/ { print $2 }' | sort
}

@test "it needs libevent_core, libcjson and libc, and nothing else" {
	local all=$'libc.so.6\nlibcjson.so.1\nlibevent_core-2.1.so.7' dynamic

	unsanitized 'their libraries are needed, too'
	dynamic=$(find "$BATS_FILE_TMPDIR" -name xrun-dynamic)
	if [ -z "$dynamic" ]; then
		assert_eq "$(needed "$XRUN")" "$all"
	else
		assert_eq "$(needed "$dynamic")" "$all"
		assert_eq "$(needed "$XRUN")" ''
		assert_eq "$(objdump -p "$XRUN" | grep -c INTERP)" 0
	fi
}

@test "a driver is asked by the twin, which takes over before a rank starts" {
	local dynamic

	unsanitized 'it can open libraries itself'
	dynamic=$(find "$BATS_FILE_TMPDIR" -name xrun-dynamic)
	[ -n "$dynamic" ] || skip 'xrun is linked with shared libraries'
	mkdir -p root/dev
	: >root/dev/nvidiactl
	for i in 0 1 2; do
		: >root/dev/nvidia$i
	done
	export XRUN_CUDA_ROOT=$PWD/root LD_LIBRARY_PATH=$BUILD/tests/fake \
		FAKE_NVML_RECORD=$PWD/record FAKE_NVML_DEVICES=3
	try "$XRUN" --devices GPU-00000001 sh -c '
		echo "$CUDA_VISIBLE_DEVICES $(cat /proc/$PPID/comm) ${LD_PRELOAD##*/}"'
	assert_eq "$status: $stderr" '0: '
	assert_eq "$output" '1 xrun-super libxrun-preload.so'
	# Nobody else loads it.
	rm record
	try "$XRUN" --devices 1 true
	[ ! -e record ]
	mv "$dynamic" "$dynamic.away"
	try "$XRUN" --devices GPU-00000001 true
	mv "$dynamic.away" "$dynamic"
	assert_eq "$status" 125
	assert_has "$stderr" '--devices: the driver is asked by xrun-dynamic, which is not'
}

# with FLAG... - what the installed xrun.pc says of them.
with()
{
	PKG_CONFIG_SYSROOT_DIR=$BATS_FILE_TMPDIR PKG_CONFIG_PATH=$(dirname \
		"$(find "$BATS_FILE_TMPDIR" -name xrun.pc)") pkg-config "$@" xrun
}

@test "every public header is there, for C and for C++" {
	local header compiler flags

	need cc pkg-config
	flags=$(with --cflags)
	assert_eq "$(cd "$(find "$BATS_FILE_TMPDIR" -path '*/include/xrun')" && ls)" \
		"$(cd "$root/src/include/xrun" && ls)"
	for header in "$root"/src/include/xrun/*.h; do
		echo "#include <xrun/$(basename "$header")>"
	done >all.c
	# shellcheck disable=SC2086 # the flags are words
	cc -std=c11 -Wall -Wextra -Werror $flags -fsyntax-only all.c
	for compiler in c++ g++ clang++-19; do
		command -v "$compiler" >/dev/null || continue
		# shellcheck disable=SC2086
		"$compiler" -x c++ -std=c++17 -Wall -Wextra -Werror $flags \
			-fsyntax-only all.c
	done
}

@test "a program that calls others is built by pkg-config, and runs" {
	need cc pkg-config
	unsanitized 'a program that is not would have to load their runtime'
	# shellcheck disable=SC2046 # the flags are words
	cc -o echo "$root/examples/rpc_echo.c" $(with --cflags --libs)
	LD_LIBRARY_PATH=$(dirname "$(find "$BATS_FILE_TMPDIR" -name libxrun.so.0)")
	export LD_LIBRARY_PATH
	job -n 2 ./echo
	# shellcheck disable=SC2154 # of job
	assert_eq "$status" 0
	assert_has "$output" 'rank 1: hello from 0'
}

@test "a rank imports the Python module of a moved installation" {
	local py

	need python3
	echo 'import xrun; print(xrun.size(), xrun.__file__)' >where.py
	export PYTHONDONTWRITEBYTECODE=1
	python3 -m venv --without-pip venv
	for py in python3 venv/bin/python3; do
		job -n 2 "$py" where.py
		assert_eq "$status: $stderr" '0: '
		assert_eq "$(grep -c "2 $BATS_FILE_TMPDIR/.*/xrun/python/xrun.py\$" <<<"$output")" 2
	done
}

@test "modules of the user come before the Python module of xrun" {
	need python3
	mkdir mine
	echo 'mine = True' >mine/xrun.py
	PYTHONPATH=$PWD/mine job -n 1 python3 -c 'import xrun; print(xrun.mine)'
	assert_eq "$status: $output$stderr" '0: True'
	echo 'import xrun; print(xrun.mine)' >mine/main.py
	job -n 1 python3 mine/main.py
	assert_eq "$status: $output$stderr" '0: True'
}

@test "Debian's python3 imports the installed Python module outside of a job" {
	local folder prefix

	[ -x /usr/bin/python3 ] || skip 'there is no /usr/bin/python3'
	prefix=$(meson introspect "$BUILD" --buildoptions |
		python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
	folder=$(/usr/bin/python3 "$root/plugins/python/site_folder.py" "$prefix")
	[ -n "$folder" ] || skip "/usr/bin/python3 reads nothing below $prefix"
	PYTHONPATH=$BATS_FILE_TMPDIR$folder try /usr/bin/python3 -B -c 'import xrun
print(xrun.__file__)'
	assert_eq "$status: $output" "0: $BATS_FILE_TMPDIR$folder/xrun.py"
}

@test "the Python module is installed in /usr/lib for /usr, and in an active venv" {
	local script=$root/plugins/python/site_folder.py

	[ -x /usr/bin/python3 ] || skip 'there is no /usr/bin/python3'
	if [ -d /usr/lib/python3/dist-packages ]; then
		assert_eq "$(/usr/bin/python3 "$script" /usr)" /usr/lib/python3/dist-packages
	fi
	assert_eq "$(/usr/bin/python3 "$script" /nowhere)" ''
	/usr/bin/python3 -m venv --without-pip venv || skip 'there is no module venv'
	cp "$root/plugins/python/xrun.py" "$(venv/bin/python3 "$script" "$PWD/venv")"
	cd /
	try "$OLDPWD/venv/bin/python3" -B -c 'import xrun
print(xrun.__file__)'
	assert_eq "$status" 0
	assert_has "$output" "^$OLDPWD/venv/.*/xrun.py$"
}
