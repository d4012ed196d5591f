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
	job -n 2 python3 -m mpi4py script.py
	assert_eq "$status" 125
	assert_has "$stderr" 'python3 needs mpi4py'
	job -n 2 python3 -c 'pass'
	assert_eq "$status" 0
}
