#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bats.sh - no assertion of a bats test is without effect: no jq -e, no "!" whose status the
# shell ignores. tests/lint/bats.pl has the rules.
. "$(dirname "$0")/common.bash"

problems_from < <(tracked 'tests/e2e/*.bats' 'tests/e2e/*.bash' 'tests/real/*.bats' \
	'tests/real/*.bash' | xargs -r perl "$here/bats.pl" 2>&1)
finish
