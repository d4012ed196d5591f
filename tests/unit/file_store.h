/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_store.h - a store of one rank, in a file in a folder of the test: file_store_open()
 * at the beginning of a test, file_store_close() at its end. The test's working directory
 * is the folder.
 */
#ifndef TESTS_UNIT_FILE_STORE_H
#define TESTS_UNIT_FILE_STORE_H

#include <xrun/store.h>

#include "tests/unit/folder.h"

static inline struct xr_store *
file_store_open(void)
{
	char address[PATH_MAX + 64];
	struct xr_store *store = NULL;
	struct xr_error err = { 0 };

	folder_make();
	snprintf(address, sizeof(address),
		"file://%s/store?rank=0&world_size=1", folder);
	cr_assert_eq(xr_store_open(address, NULL, &store, &err), XR_OK, "%s",
		err.text);
	return store;
}

static inline void
file_store_close(struct xr_store *store)
{
	xr_store_free(store);
	folder_remove();
}

#endif /* TESTS_UNIT_FILE_STORE_H */
