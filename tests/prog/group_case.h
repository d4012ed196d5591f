/* SPDX-License-Identifier: Apache-2.0 */
/* group_case.h - what the cases of group.c have in common. */
#ifndef TESTS_PROG_GROUP_CASE_H
#define TESTS_PROG_GROUP_CASE_H

#include <stdint.h>

#include <xrun/group.h>

#include "tests/prog/expect.h"

struct group_case {
	const char *name;
	void (*run)(void);
};

/* Until a NULL. */
extern const struct group_case key_cases[], round_cases[];

extern struct xr_world *world;
extern struct xr_group *all; /* of all ranks */

/* make_group() - xr_group_new(), of all with NULL. */
enum xr_status make_group(const char *name, const char *const *members,
	size_t count, struct xr_group **g);
void meet_all(void);     /* by no group */
int64_t bytes_out(void); /* of messages that this process sent */
struct xr_value *list_of(int64_t a, int64_t b);
int64_t number_of(struct xr_value *v); /* and releases it */

#endif /* TESTS_PROG_GROUP_CASE_H */
