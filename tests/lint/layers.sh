#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# layers.sh - the include rule: a file includes what lies below it, never
# beside or above. The table is the house as xrun-hacking(7) tells it.
. "$(dirname "$0")/common.bash"

# folder | what of ours it may include | third-party headers it may include
rules='
src/include/xrun|xrun
src/base|xrun base|cjson
src/proc|xrun base proc
src/event|xrun base proc event|event2
src/place|xrun base place
src/wire/value|xrun base wire/value
src/wire|xrun base wire
src/store|xrun base wire store
src/segment|xrun base segment
launcher/host|xrun base proc place launcher/host
launcher/state|xrun base launcher/state|cjson
launcher/log|xrun base launcher/log
launcher/job|xrun base proc event place launcher/host launcher/state launcher/log launcher/job
launcher/ctl|xrun base event wire launcher/state launcher/ctl
launcher/keeper|xrun base proc launcher/host launcher/state launcher/log launcher/job launcher/ctl launcher/keeper|cjson
launcher/stat|xrun base proc launcher/state launcher/stat|cjson
launcher/http|xrun base event wire launcher/ctl launcher/stat launcher/http|cjson
launcher/notify|xrun base launcher/notify|curl
launcher/tcpstore|xrun base event store launcher/tcpstore
launcher/doctor|xrun base proc place launcher/host launcher/state launcher/job launcher/ctl launcher/keeper launcher/doctor
launcher/stacks|xrun base proc launcher/stacks
launcher/tell|xrun base proc event place segment launcher/host launcher/state launcher/log launcher/job launcher/ctl launcher/stat launcher/keeper launcher/tell|cjson
launcher/sup|xrun base proc event place wire store segment launcher/host launcher/state launcher/log launcher/job launcher/ctl launcher/stat launcher/keeper launcher/tell launcher/tcpstore launcher/sup
launcher/cmd|xrun base proc event place wire store segment launcher/host launcher/state launcher/log launcher/job launcher/ctl launcher/stat launcher/keeper launcher/doctor launcher/stacks launcher/tell launcher/tcpstore launcher/sup launcher/cmd|cjson event2 curl
launcher|xrun base launcher/host launcher/state launcher/job launcher/cmd
worker/shm|BELOW worker/shm
worker/net|BELOW worker/net
worker/job|BELOW worker/shm worker/job
worker/store|BELOW worker/net worker/job worker/store
worker/rpc|BELOW worker/shm worker/net worker/job worker/store worker/rpc
worker/gang|BELOW worker/shm worker/rpc worker/gang
worker/world|BELOW worker/rpc worker/world
worker/coll|BELOW worker/rpc worker/world worker/coll
worker/group|BELOW worker/rpc worker/world worker/group
worker/proc|BELOW worker/job worker/proc
worker/queue|BELOW worker/shm worker/rpc worker/queue
worker/pool|BELOW worker/shm worker/job worker/rpc worker/gang worker/proc worker/queue worker/pool
plugins|plugin
examples|xrun
tests/prog|xrun base tests
'

# What all of worker/ stands on.
rules=${rules//BELOW/xrun base proc place wire wire/value store segment}

# rule_of FILE - sets own and outside to what FILE may include; false if no
# rule speaks of it.
rule_of()
{
	local folder

	while IFS='|' read -r folder own outside; do
		[ -n "$folder" ] || continue
		case $1 in "$folder"/*) return 0 ;; esac
	done <<<"$rules"
	return 1
}

# owner_of HEADER - sets owner to the folder of ours that HEADER names, or to nothing.
owner_of()
{
	owner=
	case $1 in
	src/*) owner=src ;;
	launcher/*/*) owner=${1%/*} ;;
	worker/*/*)
		owner=${1#worker/}
		owner=worker/${owner%%/*}
		;;
	wire/value/*) owner=wire/value ;;
	xrun/* | base/* | proc/* | event/* | place/* | wire/* | store/* | \
		segment/* | launcher/* | worker/* | tests/* | plugins/*)
		owner=${1%%/*}
		;;
	esac
}

# plugin_allowed FILE HEADER - a plug-in sees the plug-in header and the files
# of its own folder.
plugin_allowed()
{
	[ "$2" = xrun/plugin.h ] || [ "${1%/*}" = "${2%/*}" ]
}

check()
{
	local file=$1 line=$2 header=$3 owner

	owner_of "$header"
	if [ "$quoted" = yes ] && [ -z "$owner" ]; then
		# Examples are compiled as they are, each in its folder.
		case $file$header in examples/*/*) ;; examples/*) return ;; esac
		problem "$file:$line: includes \"$header\", which is no header of ours, by its name from the root or src/"
		return
	fi
	if [ "$own" = plugin ]; then
		if [ -n "$owner" ] && ! plugin_allowed "$file" "$header"; then
			problem "$file:$line: includes $header; a plug-in sees <xrun/plugin.h> only"
		fi
		return
	fi
	if [ -n "$owner" ]; then
		case " $own " in
		*" $owner "*) ;;
		*) problem "$file:$line: includes $header; ${file%/*} may see: $own" ;;
		esac
		return
	fi
	case $header in
	event2/* | cjson/* | curl/* | openssl/* | criterion/*)
		case " $outside " in
		*" ${header%%/*} "*) ;;
		*) problem "$file:$line: includes <$header>, which is not for this folder" ;;
		esac
		;;
	esac
}

before='' has_rule=''
while IFS=: read -r file line text; do
	if [ "$file" != "$before" ]; then
		before=$file
		rule_of "$file" && has_rule=yes || has_rule=
	fi
	if [ -z "$has_rule" ]; then
		case $file in
		src/* | launcher/* | worker/* | plugins/*)
			problem "$file:$line: no rule says what its folder may include"
			;;
		esac
		continue
	fi
	header=${text#*[\"<]}
	case $text in *\"*) quoted=yes ;; *) quoted=no ;; esac
	check "$file" "$line" "${header%%[\">]*}"
done < <(tracked '*.c' '*.h' '*.def' |
	xargs -r grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]')
finish
