#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make a page of the standard input: what stands between two lines of ``` is shown as
# it is, also its backslashes, which scdoc would take for its own.
# usage: code.sh SCDOC <PAGE.scd
set -eu

# shellcheck disable=SC2016 # those are no commands
sed '/^```/,/^```/ s/\\/\\\\/g' | "$1"
