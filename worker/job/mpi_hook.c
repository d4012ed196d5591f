/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_hook.c - see mpi_hook.h. Links with nothing: see preload.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/mpi_library.h"
#include "base/stdio_tag.h"
#include "worker/job/mpi_hook.h"
#include "worker/job/stdio_hook.h"

#pragma weak getenv
#pragma weak syscall

/* The compiler believes that what libc declares exists; this asks. */
#define HERE(symbol) (&(symbol) != NULL)

#define EXIT_REFUSED      125
#define MPI_HOOK_NO_MPI   16 /* MPI_ERR_OTHER of Open MPI; 15 of MPICH */
#define MPI_HOOK_LINE_MAX 320

typedef int mpi_hook_init_fn(int *argc, char ***argv);
typedef int mpi_hook_init_thread_fn(int *argc, char ***argv, int required,
	int *provided);
typedef int mpi_hook_session_fn(void *info, void *errhandler, void *session);
typedef void mpi_hook_fortran_fn(int *error);
typedef void mpi_hook_fortran_thread_fn(int *required, int *provided,
	int *error);

static char *
mpi_hook_put(char *out, const char *text)
{
	while (*text != '\0')
		*out++ = *text++;
	return out;
}

/* Returns true if another launcher of MPI started this process. xrun removes
 * these variables from the environment of its ranks. */
static bool
mpi_hook_is_served(void)
{
	static const char *const names[] = { "PMI_FD", "PMI_RANK", "PMI_PORT",
		"PMIX_RANK", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_SIZE",
		"MV2_COMM_WORLD_SIZE" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]) != NULL)
			return true;
	return false;
}

/* The number of ranks as XRUN_NO_MPI has it; NULL if MPI may be initialised. */
static const char *
mpi_hook_ranks(void)
{
	const char *text, *end;
	uint64_t number;

	if (!HERE(getenv) || !HERE(syscall))
		return NULL;
	text = getenv("XRUN_NO_MPI");
	end = text == NULL ? NULL : stdio_tag_number(text, &number);
	return end == NULL || *end != '\0' || mpi_hook_is_served() ? NULL :
								     text;
}

static size_t
mpi_hook_line(char line[MPI_HOOK_LINE_MAX], const char *function,
	const char *ranks)
{
	char name[16] = "", *out = line;

	syscall(SYS_prctl, PR_GET_NAME, name, 0L, 0L, 0L);
	out = mpi_hook_put(out, "xrun: ");
	out = mpi_hook_put(out, name);
	out = mpi_hook_put(out, " calls ");
	out = mpi_hook_put(out, function);
	out = mpi_hook_put(out, ", and xrun does not serve MPI: each of ");
	out = mpi_hook_put(out, ranks);
	out = mpi_hook_put(out, " ranks would be an MPI job of its own");
	out = mpi_hook_put(out, "   try: mpiexec -n ");
	out = mpi_hook_put(out, ranks);
	out = mpi_hook_put(out, " instead of xrun, or --mpi singletons\n");
	return (size_t)(out - line);
}

/* Ends the process without its atexit functions: those of a program that has not
 * initialised MPI may rely on MPI. */
static void
mpi_hook_refuse(const char *function, const char *ranks)
{
	int (*flush)(FILE *) = stdio_hook_find("fflush");
	char line[MPI_HOOK_LINE_MAX];
	size_t len = mpi_hook_line(line, function, ranks);

	if (flush != NULL)
		flush(NULL);
	syscall(SYS_write, STDERR_FILENO, line, len);
	syscall(SYS_exit_group, (long)EXIT_REFUSED);
}

/* Returns true for an MPI library, false for one that imitates MPI for one process,
 * as MUMPS's libmpiseq. */
static bool
mpi_hook_is_mpi(const char *file)
{
	const char *name = file;

	if (file == NULL)
		return false;
	for (; *file != '\0'; file++)
		if (*file == '/')
			name = file + 1;
	return mpi_library_is(name);
}

/* Returns the function of the library; NULL if no library has it: a program may look
 * for the name to find out whether there is MPI. */
static void *
mpi_hook_real(const char *function)
{
	const char *file = NULL, *ranks = NULL;
	void *real = stdio_hook_find_file(function, &file);

	if (real != NULL && mpi_hook_is_mpi(file))
		ranks = mpi_hook_ranks();
	if (ranks != NULL)
		mpi_hook_refuse(function, ranks);
	return real;
}

int
MPI_Init(int *argc, char ***argv)
{
	mpi_hook_init_fn *real = mpi_hook_real("MPI_Init");

	return real == NULL ? MPI_HOOK_NO_MPI : real(argc, argv);
}

int
MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	mpi_hook_init_thread_fn *real = mpi_hook_real("MPI_Init_thread");

	return real == NULL ? MPI_HOOK_NO_MPI :
			      real(argc, argv, required, provided);
}

int
MPI_Session_init(void *info, void *errhandler, void *session)
{
	mpi_hook_session_fn *real = mpi_hook_real("MPI_Session_init");

	return real == NULL ? MPI_HOOK_NO_MPI : real(info, errhandler, session);
}

int
PMPI_Init(int *argc, char ***argv)
{
	mpi_hook_init_fn *real = mpi_hook_real("PMPI_Init");

	return real == NULL ? MPI_HOOK_NO_MPI : real(argc, argv);
}

int
PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	mpi_hook_init_thread_fn *real = mpi_hook_real("PMPI_Init_thread");

	return real == NULL ? MPI_HOOK_NO_MPI :
			      real(argc, argv, required, provided);
}

void
mpi_init_(int *error)
{
	mpi_hook_fortran_fn *real = mpi_hook_real("mpi_init_");

	if (real == NULL)
		*error = MPI_HOOK_NO_MPI;
	else
		real(error);
}

void
mpi_init_thread_(int *required, int *provided, int *error)
{
	mpi_hook_fortran_thread_fn *real = mpi_hook_real("mpi_init_thread_");

	if (real == NULL)
		*error = MPI_HOOK_NO_MPI;
	else
		real(required, provided, error);
}
