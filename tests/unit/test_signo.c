/* SPDX-License-Identifier: Apache-2.0 */
/* test_signo.c - signals by name and by number. */
#include <signal.h>

#include <criterion/criterion.h>

#include "base/signo.h"

Test(signo, a_signal_has_many_spellings)
{
	cr_expect_eq(signo_parse("TERM"), SIGTERM);
	cr_expect_eq(signo_parse("SIGTERM"), SIGTERM);
	cr_expect_eq(signo_parse("sigterm"), SIGTERM);
	cr_expect_eq(signo_parse("15"), SIGTERM);
	cr_expect_eq(signo_parse("64"), 64);
}

Test(signo, what_is_no_signal_is_0)
{
	static const char *const words[] = { "", "SIG", "0", "65", "15x",
		"99999999999999999999", "TERMS", "-15", " 15", "SIGSIGTERM" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		cr_expect_eq(signo_parse(words[i]), 0, "%s", words[i]);
}

Test(signo, every_name_reads_back)
{
	char name[16];

	for (int i = 1; i < 32; i++)
		cr_expect_eq(signo_parse(signo_name(i, name, sizeof(name))), i,
			"%s", name);
	cr_expect_str_eq(signo_name(11, name, sizeof(name)), "SIGSEGV");
	cr_expect_str_eq(signo_name(42, name, sizeof(name)), "signal 42");
	cr_expect_str_eq(signo_name(0, name, sizeof(name)), "signal 0");
	cr_expect_str_eq(signo_short(11, name, sizeof(name)), "SEGV");
	cr_expect_str_eq(signo_short(42, name, sizeof(name)), "signal 42");
}
