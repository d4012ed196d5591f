#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mpi.bats - programs that are linked with an MPI library.

load helper

# mpi_program NAME SONAME - a program that needs a library of that name.
mpi_program()
{
	need cc
	mkdir -p lib
	printf 'int MPI_Init(void) { return 0; }\n' >"lib.$1.c"
	cc -shared -fPIC -Wl,-soname,"$2" "lib.$1.c" -o "lib/$2"
	printf '#include <stdio.h>\nint MPI_Init(void);\nint main(void) { puts("ran"); return MPI_Init(); }\n' >"$1.c"
	cc "$1.c" -o "$1" "lib/$2"
	export LD_LIBRARY_PATH=$PWD/lib
}

# agent_refuses NAME FUNCTION COMMAND... - two ranks of the command end with 125 and the
# message of the preloaded agent; one rank runs, and so do two with --mpi singletons.
agent_refuses()
{
	job -n 2 "${@:3}"
	assert_eq "$status: $output" '125: '
	assert_has "$stderr" "^\\[[01]\\]!xrun: ($1) calls $2, and xrun does not serve MPI: each of 2 ranks would be an MPI job of its own   try: mpiexec -n 2 instead of xrun, or --mpi singletons\$"
	job -n 1 "${@:3}"
	assert_eq "$status: $output" '0: ran'
	job --mpi singletons -n 2 "${@:3}"
	assert_eq "$status" 0
	assert_eq "$(sort <<<"$output")" $'[0] ran\n[1] ran'
}

# needs_agent - skips the test where the agent defines no functions.
needs_agent()
{
	[ "$(uname -m)" = x86_64 ] || skip 'the agent defines no functions here'
	[ -e "$BUILD/worker/libxrun-preload.so" ] || skip 'there is no agent'
}

# refused MESSAGE - 125, one line, and nothing ran.
refused()
{
	assert_eq "$status" 125
	assert_eq "$output" ''
	assert_eq "$stderr" "xrun: $1"
}

@test "several ranks of an MPI program are refused, one rank runs" {
	local name
	for name in libmpi.so.40 libmpich.so.12 libmpi_mpifh.so.40 libmpicxx.so.12; do
		mpi_program ring "$name"
		job -n 2 ./ring
		refused "./ring needs $name, and xrun does not serve MPI: each of 2 ranks would be an MPI job of its own   try: mpiexec -n 2 ./ring, or --mpi singletons"
		job -n 1 ./ring
		assert_eq "$status: $output" '0: ran'
	done
	mpi_program other libmpiseq.so.5
	job -n 2 ./other
	assert_eq "$status" 0
}

@test "MPI programs of two parts are refused together, one beside others runs" {
	mpi_program ring libmpi.so.40
	job -n 1 ./ring : -n 1 ./ring
	refused "./ring needs libmpi.so.40, and xrun does not serve MPI: each of 2 ranks would be an MPI job of its own   try: mpiexec -n 2 ./ring, or --mpi singletons"
	job -n 1 ./ring : -n 2 true
	assert_eq "$status" 0
}

# bats test_tags=sanitize
@test "--mpi singletons runs each rank of an MPI program by itself" {
	mpi_program ring libmpi.so.40
	job --mpi singletons -n 2 ./ring
	assert_eq "$status" 0
	assert_eq "$(sort <<<"$output")" '[0] ran
[1] ran'
	XRUN_MPI=singletons job -n 2 ./ring
	assert_eq "$status" 0
}

@test "the interpreter of a script is an MPI program, too, and python3 -m mpi4py is" {
	mpi_program ring libmpi.so.40
	printf '#!%s\n' "$PWD/ring" >script
	chmod +x script
	job -n 2 ./script
	assert_eq "$status" 125
	assert_has "$stderr" './script needs libmpi.so.40'
	need python3
	local options
	for options in '-m mpi4py' '-u -m mpi4py' '-um mpi4py.run' '-X dev -Wall -W all -mmpi4py'; do
		# shellcheck disable=SC2086 # the options are words
		job -n 2 python3 $options script.py
		assert_eq "$status" 125
		assert_has "$stderr" '^xrun: python3 needs mpi4py'
	done
	for options in '-c pass -m mpi4py' '-u -W ignore -m this'; do
		# shellcheck disable=SC2086 # the options are words
		job -n 2 python3 $options
		assert_eq "$status" 0
	done
	job -n 2 python3 -c 'pass'
	assert_eq "$status" 0
}

# hidden_mpi_program [CALL] - ./d makes the call, MPI_Init, in libsolver.so, which needs
# libmpi.so.40, and prints "ran".
hidden_mpi_program()
{
	local call=${1:-MPI_Init(0, 0)}

	need cc
	mkdir -p lib
	printf '%s\n' 'int MPI_Init(int *c, char ***v) { return c != v; }' \
		'int PMPI_Init(int *c, char ***v) { return c != v; }' \
		'int MPI_Init_thread(int *c, char ***v, int w, int *p) { *p = w; return c != v; }' \
		'void mpi_init_(int *e) { *e = 0; }' >mpi.c
	cc -w -shared -fPIC -Wl,-soname,libmpi.so.40 mpi.c -o lib/libmpi.so.40
	printf 'int %s(); int solver(void) { int p[1]; %s; return 0; }\n' "${call%%(*}" "$call" >solver.c
	cc -w -shared -fPIC -Wl,-soname,libsolver.so solver.c -o lib/libsolver.so lib/libmpi.so.40
	printf '#include <stdio.h>\nint solver(void);\nint main(void) { int e = solver(); e || puts("ran"); return e; }\n' >d.c
	cc d.c -o d lib/libsolver.so -Wl,-rpath-link,lib
	export LD_LIBRARY_PATH=$PWD/lib
}

@test "the agent refuses MPI behind a library, a shell, env, timeout and nice" {
	needs_agent
	hidden_mpi_program
	agent_refuses d MPI_Init ./d
	agent_refuses d MPI_Init sh -c './d'
	agent_refuses d MPI_Init sh -c './d; exit $?'
	agent_refuses d MPI_Init env ./d
	agent_refuses d MPI_Init timeout 20 ./d
	agent_refuses d MPI_Init nice ./d
}

@test "the agent refuses MPI_Init_thread, PMPI_Init and mpi_init_" {
	local call

	needs_agent
	for call in 'MPI_Init_thread(0, 0, 3, p)' 'PMPI_Init(0, 0)' 'mpi_init_(p)'; do
		hidden_mpi_program "$call"
		agent_refuses d "${call%%(*}" ./d
	done
}

@test "the agent refuses MPI that Python loads, and its lines so far are kept" {
	needs_agent
	need python3
	hidden_mpi_program
	unset LD_LIBRARY_PATH
	printf '%s\n' '#!/usr/bin/env python3' 'import ctypes' \
		'ctypes.CDLL("./lib/libmpi.so.40")' \
		'assert ctypes.CDLL(None).MPI_Init(None, None) == 0' \
		'print("ran")' >u.py
	chmod +x u.py
	agent_refuses 'python3?[0-9.]*' MPI_Init python3 u.py
	agent_refuses 'u.py|python3?[0-9.]*' MPI_Init ./u.py
	export LD_LIBRARY_PATH=$PWD/lib
	printf '#include <stdio.h>\nint solver(void);\nint main(void) { setvbuf(stdout, NULL, _IOFBF, 4096); puts("before"); return solver(); }\n' >d.c
	cc d.c -o d lib/libsolver.so -Wl,-rpath-link,lib
	job -n 2 --prefix none ./d
	assert_eq "$status" 125
	assert_has "$output" '^before'
}

@test "a process that mpiexec starts within a rank may initialise MPI" {
	needs_agent
	hidden_mpi_program
	job --report report -n 2 env PMI_RANK=0 ./d
	assert_eq "$status" 0
	ranks_exited_0 2
	job --report report -n 2 env PMIX_RANK=0 ./d
	assert_eq "$status" 0
	ranks_exited_0 2
}

@test "a program that looks for MPI and has none gets an error from MPI_Init" {
	needs_agent
	need cc
	printf '#include <stdio.h>\nextern int MPI_Init(void *, void *) __attribute__((weak));\nint main(void) { puts(!MPI_Init || MPI_Init(0, 0) ? "no MPI" : "MPI"); return 0; }\n' >probe.c
	cc -fPIC -pie probe.c -o probe
	job -n 2 ./probe
	assert_eq "$status" 0
	assert_eq "$(sort -u <<<"${output//\[1\]/[0]}")" '[0] no MPI'
}
