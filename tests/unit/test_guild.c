/* SPDX-License-Identifier: Apache-2.0 */
/* test_guild.c - which names a group may have; see xrun/group.h. */
#include <string.h>

#include <criterion/criterion.h>

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
