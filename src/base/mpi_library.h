/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_library.h - recognises a library of MPI by its file name.
 *
 * Used by the launcher and by the preloaded agent, so it needs no function of
 * libc.
 */
#ifndef BASE_MPI_LIBRARY_H
#define BASE_MPI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* mpi_library_is() - Returns true if @name, without a folder, is a library of Open
 * MPI, MPICH or its relatives, also one for C++ or Fortran. */
static inline bool
mpi_library_is(const char *name)
{
	static const char begins[][14] = { "libmpi.so", "libmpi_", "libmpich",
		"libmpicxx.so", "libmpifort.so", "libmpigf.so" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		size_t k = 0;

		while (begins[i][k] != '\0' && begins[i][k] == name[k])
			k++;
		if (begins[i][k] == '\0')
			return true;
	}
	return false;
}

#endif /* BASE_MPI_LIBRARY_H */
