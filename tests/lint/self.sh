#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# self.sh - the project speaks of itself only: no path of the machine it was
# written on, no word about who or what wrote it.
#
# Bracketed letters keep the patterns from finding this file.
. "$(dirname "$0")/common.bash"

patterns='(^|[^A-Za-z0-9_.-])/(work|root|home/[a-z]+)/[m]ain|/[w]ork/(main|shared)|/tmp/[b]rief'
patterns+='|[s]ub-?agent|[h]elper (agent|session)|([l]anguage|AI) [m]odel wrote'
patterns+='|[C]hatGPT|[C]opilot|[A]nthropic|[C]laude'
patterns+='|[p]kg\.dev'

problems_from < <(tracked "*" | grep -v "^LICENSE$" |
	xargs -r -d '\n' grep -InE "$patterns" |
	cut -c1-120)
finish
