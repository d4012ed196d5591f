#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bootstrap.sh - from a bare Debian to xrun running, or tested, in one command.
#
#   ./bootstrap.sh demo          builds xrun and runs its example on 8 ranks
#   ./bootstrap.sh test          builds xrun and passes its tests
#   ./bootstrap.sh test --all    with the third-party programs that some tests
#                                run; without --all those tests are skipped
#
# Missing packages are installed with apt-get, as root or through sudo, without
# what they only recommend. Nothing else outside this directory is touched.
# Run again, it installs nothing and builds what has changed.
# shellcheck disable=SC2086 # lists of packages are split where they are used
set -eu
cd "$(dirname "$0")"

build_needs='gcc libc6-dev meson ninja-build pkg-config libevent-dev libcjson-dev scdoc'
archive_needs='patch xz-utils'
test_needs='libcriterion-dev bats jq gojq procps iproute2 socat e2fsprogs valgrind g++ clang-format-19 shellcheck locales gdb strace'
welcome_needs='clang-19 zsh fish mandoc python3-jsonschema elfutils curl libcurl4-openssl-dev gcc-multilib'
all_needs='python3-torch'

started=$(date +%s)
installed=
log=$(mktemp)
trap 'rm -f "$log"' EXIT

say()
{
	printf 'bootstrap: %s\n' "$*"
}

# die TEXT... - one line each: what happened, and what to do.
die()
{
	printf 'bootstrap: %s\n' "$@" >&2
	exit 1
}

usage()
{
	sed -n 's/^# \{0,1\}//; 4,8p' "$0" >&2
	exit 2
}

# missing PACKAGE... - those that are not installed.
missing()
{
	for package; do
		dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null |
			grep -qx installed || printf '%s ' "$package"
	done
}

# as_root COMMAND... - sudo may ask for a password only where somebody is.
as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif [ -t 0 ]; then
		sudo "$@"
	else
		sudo -n "$@"
	fi
}

apt()
{
	as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get \
		-o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 \
		-o Dpkg::Use-Pty=0 "$@"
}

# plan PACKAGE... - what apt would do, in $log; false if it could not.
plan()
{
	LC_ALL=C apt-get install --simulate --no-install-recommends "$@" >"$log" 2>&1
}

# update - the package lists, when they are missing or too old to be used.
update()
{
	say 'refreshing the package lists'
	apt update >"$log" 2>&1 || explain 'apt-get update'
	# Without a network apt-get only warns, and would fail later.
	! grep -q '^W: Failed to fetch' "$log" || explain 'apt-get update'
}

# explain COMMAND - ends with apt's own words and what to do about them.
explain()
{
	grep -E '^(E|W|Err)[: ]' "$log" | tail -n 5 | sed 's/^/    /' >&2
	if grep -qE 'Could not (resolve|connect)|Failed to fetch|Temporary failure' "$log"; then
		die "$1: the package server cannot be reached from here" \
			'try: check the network, or set http_proxy, and run this again'
	fi
	if grep -qE 'Permission denied|password is required|are you root' "$log"; then
		die "$1: not allowed for $(id -un)" \
			"try: as root: apt-get install --no-install-recommends $wanted"
	fi
	if grep -qE 'Unable to locate|no installation candidate' "$log"; then
		die "$1: this system does not offer all of: $wanted" \
			'try: Debian 12, or install what these packages hold by other means'
	fi
	die "$1 failed" \
		"try: apt-get install --no-install-recommends $wanted"
}

# download - "12.3 MB", apt's own figure, of the packages of $wanted.
download()
{
	LC_ALL=C apt-get install --assume-no --no-install-recommends $wanted 2>/dev/null |
		sed -n 's/^Need to get \(.*\) of archives\..*/\1/p'
}

# may_install - ends the run where nobody may, with what to ask for.
may_install()
{
	command -v apt-get >/dev/null ||
		die "missing: $wanted" \
			'there is no apt-get here: this is not Debian' \
			'try: install what these packages hold, then: meson setup build && ninja -C build'
	[ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
		die "missing: $wanted" \
			"$(id -un) may not install packages, and there is no sudo" \
			"try: as root: apt-get install --no-install-recommends $wanted"
}

# need PACKAGE... - installs what is missing of them.
need()
{
	wanted=$(missing "$@")
	[ -n "$wanted" ] || return 0
	may_install
	plan $wanted || {
		update
		plan $wanted || explain 'apt-get install'
	}
	install_wanted
}

# welcome PACKAGE... - the same, but what this system does not offer is only
# told: its tests will be skipped.
welcome()
{
	offered=
	for package in $(missing "$@"); do
		if plan "$package" || { may_install; update; plan "$package"; }; then
			offered="$offered $package"
		else
			say "$package: not offered by this system; its tests will be skipped"
		fi
	done
	[ -z "$offered" ] || need $offered
}

install_wanted()
{
	since=$(date +%s)
	count=$(grep -c '^Inst ' "$log" || true)
	size=$(download)
	say "missing: $wanted"
	say "installing them and what they need: $count packages, ${size:-?} to download"
	apt install -y --no-install-recommends $wanted >"$log" 2>&1 || {
		# Lists that are a few weeks old name files that are gone.
		grep -q '404' "$log" || explain 'apt-get install'
		update
		apt install -y --no-install-recommends $wanted >"$log" 2>&1 ||
			explain 'apt-get install'
	}
	took=$(($(date +%s) - since))
	installed="$installed$took s to install $count packages (${size:-?}), "
}

# offered PACKAGE - "URL SUITE COMPONENT" of the server its version here is from.
offered()
{
	LC_ALL=C apt-cache policy "$1" | awk '
		/^ \*\*\* / { here = 1; next }
		here && $2 ~ /:/ { sub("/", " ", $3); print $2, $3; exit }'
}

# source_of SOURCE VERSION URL SUITE COMPONENT - fetched, checked by apt, into
# the current directory. Nothing of the system's own apt is touched.
source_of()
{
	mkdir -p lists/partial cache
	echo "deb-src $3 $4 $5" >sources.list
	for step in update "source --download-only $1=$2"; do
		LC_ALL=C apt-get -o Dir::Etc::SourceList="$PWD/sources.list" \
			-o Dir::Etc::SourceParts=- -o Dir::State::lists="$PWD/lists" \
			-o Dir::Cache="$PWD/cache" -o APT::Sandbox::User=root \
			-o Acquire::Retries=2 $step >>"$log" 2>&1 || return
	done
}

# make_archive VERSION URL SUITE COMPONENT - libcjson.a, of Debian's source with
# Debian's patches.
make_archive()
(
	cd build-archives/work && source_of cjson "$@" &&
		tar -xf cjson_*.orig.tar.* && cd cJSON-*/ &&
		tar -xf ../cjson_*.debian.tar.* || return
	while read -r change; do
		patch -p1 -s <"debian/patches/$change" || return
	done <debian/patches/series
	cc -O2 -fPIE -fstack-protector-strong -D_FORTIFY_SOURCE=2 -c cJSON.c &&
		ar rcs libcjson.a cJSON.o && mv libcjson.a ../..
)

# What xrun is linked with is in Debian as an archive but for one library. xrun
# works without: it only starts more slowly.
archives()
{
	[ ! -f build-archives/libcjson.a ] || return 0
	begun=$(date +%s)
	mkdir -p build-archives/work
	: >"$log"
	version=$(dpkg-query -W -f '${Version}' libcjson-dev 2>/dev/null || :)
	server=$(offered libcjson-dev)
	if need $archive_needs && [ -n "$version" ] &&
		make_archive "$version" $server >>"$log" 2>&1; then
		installed="$installed$(($(date +%s) - begun)) s to make an archive, "
	else
		tail -n 3 "$log" | sed 's/^/    /'
		say 'no libcjson.a could be made: xrun will start more slowly'
	fi
	rm -rf build-archives/work
}

build()
{
	say 'building in build/'
	begun=$(date +%s)
	if [ ! -f build/build.ninja ]; then
		meson setup build >"$log" 2>&1 || {
			tail -n 15 "$log" >&2
			die 'meson setup build failed; all of it: build/meson-logs/meson-log.txt'
		}
	fi
	ninja -C build >"$log" 2>&1 || {
		grep -m 15 -E 'error|FAILED|ninja:' "$log" >&2
		die 'ninja -C build failed' 'try: ninja -C build, to see all of it'
	}
	built="$(($(date +%s) - begun)) s to build"
}

demo()
{
	need $build_needs
	archives
	build
	say '$ build/xrun -n 8 build/examples/train'
	begun=$(date +%s)
	build/xrun -n 8 build/examples/train
	now=$(date +%s)
	say "$installed$built, $((now - begun)) s to run: $((now - started)) s in all"
}

# python_tests - the package with the tests of the system's Python, which meson needs.
python_tests()
{
	/usr/bin/python3 -c 'import sys; print("libpython%d.%d-testsuite" % sys.version_info[:2])'
}

# The last line belongs to the tests: how many passed, failed, were skipped.
test_all()
{
	need $build_needs $test_needs
	archives
	welcome "$@" "$(python_tests)"
	say "${installed:-nothing to install, }now tests/run"
	rm -f "$log"
	exec tests/run
}

case "$#:$*" in
1:demo) demo ;;
1:test) test_all $welcome_needs ;;
2:'test --all') test_all $welcome_needs $all_needs ;;
*) usage ;;
esac
