/* SPDX-License-Identifier: Apache-2.0 */
/* test_guild.c - which names a group may have; see xrun/group.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <xrun/rpc.h>
#include <xrun/world.h>

#include "worker/group/guild.h"

TestSuite(guild, .timeout = 60);

Test(guild, a_name_has_between_one_byte_and_the_maximum)
{
	char name[XR_GROUP_NAME_MAX + 2];

	memset(name, 'a', sizeof(name));
	name[XR_GROUP_NAME_MAX + 1] = '\0';
	cr_expect_not(guild_name_is(name));
	name[XR_GROUP_NAME_MAX] = '\0';
	cr_expect(guild_name_is(name));
	name[1] = '\0';
	cr_expect(guild_name_is(name));
	name[0] = '\0';
	cr_expect_not(guild_name_is(name));
	cr_expect_not(guild_name_is(NULL));
}

Test(guild, a_name_has_letters_digits_and_four_signs)
{
	static const char fine[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";
	char name[] = "a?b";

	for (int c = 1; c < 256; c++) {
		name[1] = (char)c;
		cr_expect_eq(guild_name_is(name), strchr(fine, c) != NULL,
			"byte %d", c);
	}
}

/* --- locks ----------------------------------------------------------------------------- */

static _Thread_local unsigned held; /* locks of this thread */
static _Atomic unsigned unmatched;  /* unlocks of threads without a lock */

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

int
__wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	int sys = __real_pthread_mutex_lock(lock);

	held += sys == 0;
	return sys;
}

int
__wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
	int sys = __real_pthread_mutex_trylock(lock);

	held += sys == 0;
	return sys;
}

int
__wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	if (held == 0)
		atomic_fetch_add(&unmatched, 1);
	else
		held--;
	return __real_pthread_mutex_unlock(lock);
}

static struct xr_error err;

/* Of one worker, this process. */
static struct xr_world *
new_world(void)
{
	char path[] = "/tmp/xrun-world-XXXXXX", method[64];
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_world *world = NULL;
	int fd = mkstemp(path);

	cr_assert_neq(fd, -1);
	close(fd);
	unlink(path);
	snprintf(method, sizeof(method), "file://%s", path);
	cr_assert_eq(xr_rpc_opts_init(0, &rpc, NULL), XR_OK);
	rpc.init_method = method;
	opts.name = "self";
	opts.rank = 0;
	opts.world_size = 1;
	opts.rpc = &rpc;
	cr_assert_eq(xr_world_new(&opts, &world, &err), XR_OK, "%s", err.text);
	unlink(path);
	return world;
}

Test(guild, a_group_is_opened_and_closed_under_its_locks)
{
	const struct xr_group_opts opts = { .size = sizeof(opts),
		.name = "all" };
	struct xr_world *world = new_world();
	struct xr_group *group = NULL, *second = NULL;

	cr_assert_eq(xr_group_new(world, &opts, &group, &err), XR_OK, "%s",
		err.text);
	cr_expect_eq(xr_group_new(world, &opts, &second, &err), XR_E_EXISTS);
	xr_group_free(group);
	cr_assert_eq(xr_group_new(world, &opts, &group, &err), XR_OK, "%s",
		err.text);
	xr_group_close(group);
	xr_group_free(group);
	cr_expect_eq(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
			     &err),
		XR_OK, "%s", err.text);
	xr_world_free(world);
	cr_expect_eq(held, 0);
	cr_expect_eq(atomic_load(&unmatched), 0);
}
