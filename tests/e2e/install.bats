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

@test "it needs libevent_core, libcjson and libc, and nothing else" {
	unsanitized 'their libraries are needed, too'
	assert_eq "$(objdump -p "$XRUN" | awk '/NEEDED/ { print $2 }' | sort)" \
		$'libc.so.6\nlibcjson.so.1\nlibevent_core-2.1.so.7'
}
