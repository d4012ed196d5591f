#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# frames.sh [BUILD] - no function of the API that can wait ends with a jump to an inner
# function: the hang report names the function of the API that a rank waits in, which
# has to have a frame. Functions that never wait may end with a jump to one of the
# functions listed here. BUILD is the build folder, "build".
. "$(dirname "$0")/common.bash"

build=${1:-build}
lib=$build/worker/libxrun.so.0
[ -e "$lib" ] || cannot "frames.sh: $lib is not there; build first"
command -v objdump nm >/dev/null || cannot "frames.sh: needs objdump and nm"

# Inner functions that never wait for another process or thread, but for a lock that
# is held for a moment.
quick='fail|free|pthread_mutex_unlock|xr_value_ref|xr_value_object|xr_value_new_opaque'
quick+='|xr_module_static|xr_reply|xr_reply_error|storage_unref|call_unref|team_unref'
quick+='|guild_unref|agent_leave|new|func_new|alloc_future|stock_stow|failure_status'
quick+='|number_of|slot_let_go|give_up|release|killed|wake_slow|refuse|answer_with_null'
quick+='|call_refuse|same_bytes|tensor_equal|bytes_new|worker_new|hold_refused'
quick+='|node_release|xr_pool_repopulate'

# jumps - "FUNCTION TARGET" of each jump out of a function of the API.
jumps()
{
	objdump -d --no-show-raw-insn "$lib" | awk '
		NR == FNR { shown[$1] = 1; next }
		/^[0-9a-f]+ <.*>:$/ {
			name = substr($2, 2, length($2) - 3)
			next
		}
		name in shown && $2 ~ /^jmp/ && $4 ~ /^<[^+]*>$/ {
			target = substr($4, 2, length($4) - 2)
			sub(/@plt$/, "", target)
			sub(/\.(part|constprop|isra|cold)(\.[0-9]+)*/, "", target)
			if (target != name)
				print name, target
		}' <(nm -D --defined-only "$lib" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }') -
}

found=$(jumps)
problems_from < <(echo "$found" | grep -Ev " ($quick)$" |
	sed 's/^\(.*\) \(.*\)$/\1() ends with a jump to \2(): XR_KEEP_FRAME() where that can wait, else add it to frames.sh/')
finish
