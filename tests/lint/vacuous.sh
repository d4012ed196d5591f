#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# vacuous.sh - no e2e test passes although xrun does nothing; tests/vacuous runs them.
BUILD=$(readlink -f "${1:-build}") exec "$(dirname "$0")/../vacuous"
