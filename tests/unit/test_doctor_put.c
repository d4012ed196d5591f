/* SPDX-License-Identifier: Apache-2.0 */
/* test_doctor_put.c - xrun doctor: how its findings and leftovers are printed. */
#include "base/host.h"
#include "launcher/doctor/checks.h"
#include "launcher/keeper/remains.h"
#include "tests/unit/verb_rig.h"

void __wrap_facts_read(struct facts *out, char *const *vars);
void __wrap_facts_fini(struct facts *f);
void __wrap_remains_look(struct remains *out);
void __wrap_remains_end(void);
void __wrap_remains_fini(struct remains *r);
const char *__wrap_host_name(char *out, size_t cap);
int __wrap_isatty(int fd);
bool __wrap_utf8_narrow(int fd);

/* In place of the real ones. */
extern const struct check __wrap_checks[];

static enum verdict first = VERDICT_OK;
static struct remains now, later; /* and after --clean */
static bool tty, narrow, ended;

static void
judge_first(const struct facts *f, struct finding *out)
{
	(void)f;
	find_is(out, first, "it is so");
	if (first != VERDICT_OK)
		find_todo(out, "do\tthis");
}

void
__wrap_facts_read(struct facts *out, char *const *vars)
{
	(void)vars;
	*out = (struct facts){ .remains = now };
}

void
__wrap_facts_fini(struct facts *f)
{
	(void)f;
}

void
__wrap_remains_look(struct remains *out)
{
	*out = ended ? later : now;
}

void
__wrap_remains_end(void)
{
	ended = true;
}

void
__wrap_remains_fini(struct remains *r)
{
	(void)r;
}

const char *
__wrap_host_name(char *out, size_t cap)
{
	snprintf(out, cap, "here");
	return out;
}

int
__wrap_isatty(int fd)
{
	return fd == STDOUT_FILENO && tty;
}

bool
__wrap_utf8_narrow(int fd)
{
	return fd == STDOUT_FILENO && narrow;
}

const struct check __wrap_checks[] = {
	{ "first", "what is first", judge_first },
	{ "leftovers", "what is left", judge_leftovers },
	{ 0 },
};

static void
begin(void)
{
	verb_rig_make();
	setenv("TERM", "xterm", 1);
}

TestSuite(doctor_put, .init = begin, .fini = folder_remove, .timeout = 60);

static struct remain_process many[] = { { 11, "a" }, { 12, "b\nc" },
	{ 13, "c" }, { 14, "d" }, { 15, "e" }, { 16, "f" } };

Test(doctor_put, each_check_has_a_line)
{
	CALL("doctor");
	EXPECT_SAID(0,
		"ok    first       it is so\nok    leftovers   none\n"
		"ready: nothing bad, 0 warnings\n",
		"");
	first = VERDICT_WARN;
	CALL("doctor");
	cr_expect_eq(said.status, 0);
	cr_expect_eq(
		strncmp(said.out,
			"warn  first       it is so\n                  try: do?this\nok    left",
			68),
		0, "%s", said.out);
	cr_expect(strstr(said.out, "\nready: nothing bad, 1 warning\n") != NULL,
		"%s", said.out);
	first = VERDICT_BAD;
	CALL("doctor");
	cr_expect_eq(said.status, 1);
	cr_expect(strstr(said.out, "\nnot ready: 1 bad, 0 warnings\n") != NULL,
		"%s", said.out);
	CALL("doctor", "x");
	EXPECT_SAID(125, "",
		"xrun: doctor: 'x' is one word too many   try: xrun doctor -h\n");
}

Test(doctor_put, verdicts_have_colours_on_a_terminal)
{
	tty = true;
	CALL("doctor");
	cr_expect(strstr(said.out, "\x1b[32mok  \x1b[0m  first") != NULL, "%s",
		said.out);
	setenv("NO_COLOR", "1", 1);
	CALL("doctor");
	cr_expect_eq(strncmp(said.out, "ok    first", 11), 0, "%s", said.out);
	unsetenv("NO_COLOR");
	first = VERDICT_NOTE;
	CALL("doctor");
	cr_expect_eq(strncmp(said.out, "note  first", 11), 0, "%s", said.out);
	first = VERDICT_WARN;
	CALL("doctor");
	cr_expect(strstr(said.out, "\x1b[33mwarn\x1b[0m  first") != NULL, "%s",
		said.out);
	first = VERDICT_BAD;
	CALL("doctor");
	cr_expect(strstr(said.out, "\x1b[1;31mbad \x1b[0m  first") != NULL,
		"%s", said.out);
}

/* What is printed of leftovers, without the lines around it. */
static const char *
leftovers(void)
{
	static char text[4096];
	char *at = strstr(said.out, "leftovers"), *end;

	cr_assert_not_null(at);
	at = strchr(at, '\n') + 1;
	end = strstr(at, "                  try: ");
	if (end == NULL)
		end = strstr(at, "ready: ");
	if (end > at && strncmp(end - 4, "not ", 4) == 0)
		end -= 4;
	snprintf(text, sizeof(text), "%.*s", (int)(end - at), at);
	return text;
}

Test(doctor_put, no_name_steers_the_terminal)
{
	struct remain one = { .id = "k\033[2J\303\244",
		.known = true,
		.socket = true };

	now = (struct remains){ &one, 1 };
	tty = true;
	CALL("doctor");
	cr_expect(strstr(said.out, "  k?[2J\303\244: a control socket\n") !=
			NULL,
		"%s", said.out);
	narrow = true;
	CALL("doctor");
	cr_expect(strstr(said.out, "  k?[2J\303?: a") != NULL ||
			strstr(said.out, "  k?[2J??: a") != NULL ||
			strstr(said.out, "  k?[2J\303\244: a") != NULL,
		"%s", said.out);
	tty = false;
	CALL("doctor");
	cr_expect(strstr(said.out, "  k\033[2J\303\244: a control") != NULL,
		"%s", said.out);
}

#define M "                  "

Test(doctor_put, what_jobs_left)
{
	struct remain some[] = {
		{ .id = "k1", .known = true, .unclosed = true },
		{ .id = "k2",
			.known = true,
			.count = 1,
			.process = many,
			.groups = true,
			.socket = true },
		{ .id = "k3", .count = 6, .process = many },
		{ .id = "k4", .known = true, .count = 5, .process = many },
		{ .id = "k5", .known = true, .socket = true },
	};

	now = (struct remains){ some, 5 };
	CALL("doctor");
	cr_expect_str_eq(leftovers(),
		M
		"k1: a record without an end\n" M
		"k2: 1 process: a (pid 11); control groups; a control socket\n" M
		"k3: 6 processes: a (pid 11), b?c (pid 12), c (pid 13), d (pid 14), e (pid 15), ...; not known to be of that job, and left alone\n" M
		"k4: 5 processes: a (pid 11), b?c (pid 12), c (pid 13), d (pid 14), e (pid 15)\n" M
		"k5: a control socket\n");
	now.count = 2;
	CALL("doctor", "--json");
	cr_expect(
		strstr(said.out,
			"\"leftovers\":[{\"job\":\"k1\",\"known\":true,\"unclosed\":true,\"groups\":false,\"socket\":false,\"processes\":[]},"
			"{\"job\":\"k2\",\"known\":true,\"unclosed\":false,\"groups\":true,\"socket\":true,\"processes\":[{\"pid\":11,\"name\":\"a\"}]}],\"ready\":") !=
			NULL,
		"%s", said.out);
}

Test(doctor_put, what_was_cleaned)
{
	struct remain before[] = {
		{ .id = "k1", .known = true, .unclosed = true },
		{ .id = "k2",
			.known = true,
			.count = 2,
			.process = many,
			.groups = true,
			.socket = true,
			.unclosed = true },
		{ .id = "k3",
			.known = true,
			.count = 3,
			.process = many,
			.socket = true },
		{ .id = "k4", .count = 1, .process = many },
	};
	struct remain after[] = {
		{ .id = "k3", .known = true, .count = 2, .process = many },
		{ .id = "k4", .count = 1, .process = many },
	};

	now = (struct remains){ before, 4 };
	later = (struct remains){ after, 2 };
	CALL("doctor", "--clean");
	cr_expect_str_eq(leftovers(),
		M
		"k1: record closed\n" M
		"k2: 2 processes ended; record closed; control groups removed; control socket removed\n" M
		"k3: 1 process ended; control socket removed\n" M
		"k3: 2 processes: a (pid 11), b?c (pid 12)\n" M
		"k4: 1 process: a (pid 11); not known to be of that job, and left alone\n");
	CALL("doctor", "--clean", "--json");
	cr_expect(
		strstr(said.out,
			",\"cleaned\":[{\"job\":\"k1\",\"ended\":0,\"closed\":true,\"groups\":false,\"socket\":false},"
			"{\"job\":\"k2\",\"ended\":2,\"closed\":true,\"groups\":true,\"socket\":true},"
			"{\"job\":\"k3\",\"ended\":1,\"closed\":false,\"groups\":false,\"socket\":true},"
			"{\"job\":\"k4\",\"ended\":0,\"closed\":false,\"groups\":false,\"socket\":false}],\"ready\":") !=
			NULL,
		"%s", said.out);
	/* More than there were. */
	after[0].count = 4;
	after[0].socket = true;
	CALL("doctor", "--clean", "--json");
	cr_expect(
		strstr(said.out,
			"{\"job\":\"k3\",\"ended\":0,\"closed\":false,\"groups\":false,\"socket\":false}") !=
			NULL,
		"%s", said.out);
}

Test(doctor_put, as_json)
{
	static const char begins[] = "{\"v\":1,\"xrun\":\"";
	static const char checks_[] =
		"\",\"host\":\"here\",\"checks\":[{\"name\":\"first\",\"about\":\"what is first\",\"verdict\":\"ok\",\"what\":\"it is so\"},{\"name\":\"leftovers\",\"about\":\"what is left\",\"verdict\":\"ok\",\"what\":\"";

	CALL("doctor", "--json");
	cr_expect_eq(said.status, 0);
	cr_expect_eq(strncmp(said.out, begins, strlen(begins)), 0);
	cr_expect(strstr(said.out, checks_) != NULL, "%s", said.out);
	cr_expect(strstr(said.out, "\"}],\"leftovers\":[],\"ready\":true}\n") !=
			NULL,
		"%s", said.out);
	first = VERDICT_BAD;
	CALL("doctor", "--json");
	cr_expect_eq(said.status, 1);
	cr_expect(
		strstr(said.out,
			"\"verdict\":\"bad\",\"what\":\"it is so\",\"todo\":\"do\\tthis\"}") !=
			NULL,
		"%s", said.out);
	cr_expect(strstr(said.out, "\"ready\":false}\n") != NULL, "%s",
		said.out);
}
