/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_hook.h - XRUN_NO_MPI, and the entry points of MPI that the agent defines.
 *
 * xrun does not serve MPI: in a job of several ranks each rank would initialise
 * as an MPI job of its own. The launcher refuses a program that is linked with
 * an MPI library. It does not see the library behind a shell, an interpreter or
 * another library, so the agent defines the functions that initialise MPI. If
 * XRUN_NO_MPI holds a number of ranks, the function prints one line and ends the
 * process with status 125. Otherwise it calls the function of the MPI library.
 *
 * A process that another MPI launcher started within the rank is not refused, nor
 * is a library with these functions that is not named as a library of MPI.
 * A program that defines these functions itself, as one that is linked
 * statically with MPI, does not call those of the agent.
 */
#ifndef WORKER_JOB_MPI_HOOK_H
#define WORKER_JOB_MPI_HOOK_H

#pragma GCC visibility push(default)

/* C: MPI_Init, MPI_Init_thread and MPI_Session_init; PMPI_Init and
 * PMPI_Init_thread, which the Fortran bindings of Open MPI call. */
int MPI_Init(int *argc, char ***argv);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Session_init(void *info, void *errhandler, void *session);
int PMPI_Init(int *argc, char ***argv);
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided);

/* Fortran: MPI_INIT and MPI_INIT_THREAD of mpif.h. */
void mpi_init_(int *error);
void mpi_init_thread_(int *required, int *provided, int *error);

#pragma GCC visibility pop

#endif /* WORKER_JOB_MPI_HOOK_H */
