/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stdio_exec.c - programs that cannot load the agent, and what they are executed with
 * instead (worker/job/stdio_exec.c). The hook of which it is part is the test's.
 */
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/unit/folder.h"
#include "tests/unit/forked.h"
#include "worker/job/stdio_exec.h"
#include "worker/job/stdio_hook.h"

TestSuite(stdio_exec, .init = folder_make, .fini = folder_remove,
	.timeout = 60);

#define GONE     "/there/is/none/libxrun-agent.so" /* where no file is */
#define AGENT    "LD_PRELOAD=" GONE
#define RESULT   4711
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

extern char **environ;

/* --- the hook ------------------------------------------------------------------------ */

static const char *self = GONE;
static const char *looked_for; /* by stdio_hook_find() */

const char *
stdio_hook_path(void)
{
	return self;
}

/* What the function that starts a program was called with. */
static uint64_t called_with[6];
static unsigned called;
static char env_text[512], list_text[512], environ_text[512];
static char **environ_after; /* if not NULL, environ becomes this */
static int list_at, env_at;  /* which arguments are copied; -1: none */

/* All texts of @list, with a | behind each. */
static void
copy(char *out, size_t cap, char *const *list)
{
	size_t len = 0;

	out[0] = '\0';
	for (; list != NULL && *list != NULL && len < cap; list++)
		len += (size_t)snprintf(out + len, cap - len, "%s|", *list);
}

static uint64_t
function(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	const uint64_t all[] = { a, b, c, d, e, f };

	memcpy(called_with, all, sizeof(all));
	called++;
	if (list_at >= 0)
		copy(list_text, sizeof(list_text), (char **)all[list_at]);
	if (env_at >= 0)
		copy(env_text, sizeof(env_text), (char **)all[env_at]);
	copy(environ_text, sizeof(environ_text), environ);
	if (environ_after != NULL)
		environ = environ_after;
	errno = ENOEXEC;
	return RESULT;
}

void *
stdio_hook_find(const char *name)
{
	looked_for = name;
	return (void *)function;
}

/* --- calls ---------------------------------------------------------------------------- */

static union {
	struct stdio_hook_frame frame;
	uint64_t words[10 + 16];
} call;

static struct stdio_exec run;

/* Argument @i of the next call. */
static void
set_arg(size_t i, const void *value)
{
	call.words[i < 6 ? i : 10 + i - 6] = (uint64_t)value;
}

static void
set_all(const void *const all[6])
{
	memset(&call, 0, sizeof(call));
	for (size_t i = 0; i < 6; i++)
		set_arg(i, all[i]);
}

#define SET_ARGS(...) set_all((const void *const[6]){ __VA_ARGS__ })

static bool
execs(enum stdio_exec_way way, int env)
{
	bool done;

	run = (struct stdio_exec){
		.way = (int)way,
		.env_at = env,
		.frame = &call.frame,
	};
	called = 0;
	looked_for = NULL;
	env_text[0] = list_text[0] = '\0';
	memset(called_with, 0xff, sizeof(called_with));
	done = stdio_exec_run(&run, (void *)function);
	EXPECT_EQ(called, done);
	if (done)
		EXPECT_EQ(call.words[0], RESULT);
	return done;
}

static void
expect_all(const uint64_t want[6])
{
	for (int i = 0; i < 6; i++)
		if (i != env_at && i != list_at)
			EXPECT_EQ(called_with[i], want[i]);
}

#define EXPECT_CALLED(...) expect_all((const uint64_t[6]){ __VA_ARGS__ })

static void
expect_unmapped(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	unsigned char there;

	NEED(run.map != NULL);
	errno = 0;
	EXPECT_EQ(mincore(run.map, 1, &there), -1);
	EXPECT_EQ(errno, ENOMEM);
	close(fd);
}

/* --- the environment -------------------------------------------------------------------- */

#define DIR "/there/is/none/"

FORKED_TEST(stdio_exec, agents_are_taken_out_and_nothing_else)
{
	static const struct {
		const char *from, *to; /* NULL: it is not changed */
	} row[] = {
		{ DIR "libxrun-agent.so", "" },
		{ DIR "libxrun-", "" },
		{ DIR "libxrun-a.so:" DIR "libxrun-b.so", "" },
		{ DIR "libxrun-a.so:/x/y.so", "/x/y.so" },
		{ "/x/y.so:" DIR "libxrun-a.so", "/x/y.so" },
		{ "/x.so " DIR "libxrun-a.so  ::/y.so z.so ",
			"/x.so:/y.so:z.so" },
		{ ":" DIR "libxrun-a.so:a", "a" },
		{ DIR "libxrun", NULL },
		{ DIR "libyrun-agent.so:/x/y.so", NULL },
		{ DIR, NULL },
		{ "/there/is/non", NULL },
		{ "/there/is/all/libxrun-agent.so", NULL },
		{ "libxrun-agent.so", NULL },
		{ "", NULL },
	};
	char entry[256], want[300];
	char *env[] = { "A=1", "LD_PRELOA=x", entry, "LD_PRELOAD=second",
		NULL };
	char *argv[] = { "program", NULL };

	env_at = 2;
	list_at = 1;
	for (size_t i = 0; i < COUNT(row); i++) {
		snprintf(entry, sizeof(entry), "LD_PRELOAD=%s", row[i].from);
		SET_ARGS("/no/file", argv, env, NULL, NULL, NULL);
		if (execs(STDIO_EXEC_PATH, 2) != (row[i].to != NULL))
			forked_note(__LINE__, "row %zu", i);
		/* Four entries, a NULL, and all of the variable. */
		EXPECT_EQ(run.size, 5 * 8 + strlen(entry) + 1);
		expect_unmapped();
		if (row[i].to == NULL) {
			EXPECT_STR((char *)call.words[0], "/no/file");
			continue;
		}
		snprintf(want, sizeof(want),
			"A=1|LD_PRELOA=x|LD_PRELOAD=%s|LD_PRELOAD=second|",
			row[i].to);
		EXPECT_STR(env_text, want);
		EXPECT_STR(list_text, "program|");
	}
	snprintf(want, sizeof(want), "LD_PRELOAD=%s", "");
	EXPECT_STR(env[2], want); /* the caller's stays */
}

FORKED_TEST(stdio_exec, without_an_agent_or_its_path_nothing_is_done)
{
	char *none[] = { "A=1", NULL }, *agent[] = { AGENT, NULL };

	env_at = list_at = -1;
	SET_ARGS("/no/file", NULL, none, NULL, NULL, NULL);
	EXPECT(!execs(STDIO_EXEC_PATH, 2));
	SET_ARGS("/no/file", NULL, NULL, NULL, NULL, NULL);
	EXPECT(!execs(STDIO_EXEC_PATH, 2));
	EXPECT(run.map == NULL);
	SET_ARGS("/no/file", NULL, agent, NULL, NULL, NULL);
	EXPECT(execs(STDIO_EXEC_PATH, 2));
	self = "";
	SET_ARGS("/no/file", NULL, agent, NULL, NULL, NULL);
	EXPECT(!execs(STDIO_EXEC_PATH, 2));
	self = "there/is/none/libxrun-agent.so";
	EXPECT(!execs(STDIO_EXEC_PATH, 2));
	EXPECT(run.map == NULL);
}

FORKED_TEST(stdio_exec, without_memory_nothing_is_done)
{
	char *agent[] = { AGENT, NULL };
	const struct rlimit none = { 0, 0 };

	env_at = list_at = -1;
	SET_ARGS("/no/file", NULL, agent, NULL, NULL, NULL);
	NEED(setrlimit(RLIMIT_AS, &none) == 0);
	EXPECT(!execs(STDIO_EXEC_PATH, 2));
	EXPECT(run.map == NULL);
}

/* --- functions ---------------------------------------------------------------------------- */

#define ARG(n) ((const void *)(uintptr_t)(n))

FORKED_TEST(stdio_exec, each_function_has_its_arguments_and_the_environment)
{
	char *env[] = { AGENT, "B=2", NULL }, *list[] = { "l", NULL };
	char **saved = environ;

	list_at = -1;
	env_at = 2; /* execve() */
	SET_ARGS("/f", list, env, ARG(3), ARG(4), ARG(5));
	EXPECT(execs(STDIO_EXEC_PATH, 2));
	EXPECT_CALLED((uint64_t)"/f", (uint64_t)list, 0, 0, 0, 0);
	EXPECT_STR(env_text, "LD_PRELOAD=|B=2|");
	env_at = 3; /* execveat() */
	SET_ARGS(ARG(9), "/f", list, env, ARG(4), ARG(5));
	EXPECT(execs(STDIO_EXEC_AT, 3));
	EXPECT_CALLED(9, (uint64_t)"/f", (uint64_t)list, 0, 4, 0);
	EXPECT_STR(env_text, "LD_PRELOAD=|B=2|");
	env_at = 5; /* posix_spawn() */
	SET_ARGS(ARG(1), "/f", ARG(2), ARG(3), list, env);
	EXPECT(execs(STDIO_EXEC_PATH, 5));
	EXPECT_CALLED(1, (uint64_t)"/f", 2, 3, (uint64_t)list, 0);
	EXPECT_STR(env_text, "LD_PRELOAD=|B=2|");
	EXPECT(looked_for == NULL);
	environ = env;
	env_at = 2; /* execv(), execvp() */
	SET_ARGS("/f", list, ARG(2), ARG(3), ARG(4), ARG(5));
	EXPECT(execs(STDIO_EXEC_PATH, HOOK_ENVIRON));
	EXPECT_CALLED((uint64_t)"/f", (uint64_t)list, 0, 0, 0, 0);
	EXPECT_STR(env_text, "LD_PRELOAD=|B=2|");
	EXPECT_STR(looked_for, "execve");
	SET_ARGS("/f", list, ARG(2), ARG(3), ARG(4), ARG(5));
	EXPECT(execs(STDIO_EXEC_NAME, HOOK_ENVIRON));
	EXPECT_STR(looked_for, "execvpe");
	EXPECT(environ == env);
	environ = saved;
}

/* The list of execl() with @count arguments, and an environment behind it if any. */
static void
expect_list(enum stdio_exec_way way, size_t count, char **env)
{
	static const char *const words[] = { "a", "b", "c", "d", "e", "f", "g",
		"h" };
	char want[64] = "";
	size_t len = 0;

	memset(&call, 0, sizeof(call));
	set_arg(0, "/f");
	for (size_t i = 0; i < count; i++) {
		set_arg(1 + i, words[i]);
		len += (size_t)snprintf(want + len, sizeof(want) - len, "%s|",
			words[i]);
	}
	if (env != NULL)
		set_arg(2 + count, env);
	EXPECT(execs(way, env != NULL ? HOOK_LIST_ENV : HOOK_LIST));
	EXPECT_CALLED((uint64_t)"/f", 0, 0, 0, 0, 0);
	EXPECT_STR(list_text, want);
	EXPECT_STR(env_text, "LD_PRELOAD=|B=2|");
	EXPECT_STR(looked_for, way == STDIO_EXEC_NAME ? "execvpe" : "execve");
	/* Three of the environment, the list with its NULL, and the variable. */
	EXPECT_EQ(run.size, (3 + count + 1) * 8 + sizeof(AGENT));
	expect_unmapped();
}

FORKED_TEST(stdio_exec, a_list_of_arguments_is_copied)
{
	char *env[] = { AGENT, "B=2", NULL }, *none[] = { NULL };
	char **saved = environ;

	list_at = 1;
	env_at = 2;
	for (size_t count = 0; count < 9; count++) {
		environ = env;
		expect_list(STDIO_EXEC_PATH, count, NULL);
		expect_list(STDIO_EXEC_NAME, count, NULL);
		environ = none;
		expect_list(STDIO_EXEC_PATH, count, env);
	}
	environ = saved;
}

FORKED_TEST(stdio_exec, a_shell_has_another_environ_while_it_is_called)
{
	char *env[] = { AGENT, "B=2", NULL }, *other[] = { "C=3", NULL };
	char **saved = environ;

	list_at = env_at = -1;
	environ = env;
	SET_ARGS(ARG(1), ARG(2), ARG(3), ARG(4), ARG(5), ARG(6));
	EXPECT(execs(STDIO_EXEC_SHELL, HOOK_ENVIRON));
	EXPECT_CALLED(1, 2, 3, 4, 5, 6);
	EXPECT_STR(environ_text, "LD_PRELOAD=|B=2|");
	EXPECT(environ == env);
	environ_after = other; /* as it may have been changed meanwhile */
	EXPECT(execs(STDIO_EXEC_SHELL, HOOK_ENVIRON));
	EXPECT(environ == other);
	environ = saved;
}

/* --- programs ------------------------------------------------------------------------------- */

/* A file of @len bytes of @data, which has a path and a descriptor. */
struct file {
	int fd;
	char path[32];
};

static struct file
file_of(const void *data, size_t len)
{
	struct file f = { .fd = memfd_create("program", MFD_CLOEXEC) };

	NEED(f.fd != -1);
	NEED(write(f.fd, data, len) == (ssize_t)len);
	snprintf(f.path, sizeof(f.path), "/proc/self/fd/%d", f.fd);
	return f;
}

static struct file
script_of(const char *fmt, const char *path)
{
	char text[600];
	int n = snprintf(text, sizeof(text), "#!");

	for (; *fmt != '\0'; fmt++)
		n += *fmt == '@' ? snprintf(text + n, sizeof(text) - (size_t)n,
					   "%s", path) :
				   snprintf(text + n, sizeof(text) - (size_t)n,
					   "%c", *fmt);
	return file_of(text, (size_t)n);
}

static const unsigned char of_32_bits[EI_NIDENT] = { 0x7f, 'E', 'L', 'F',
	ELFCLASS32 };
static const unsigned char of_64_bits[EI_NIDENT] = { 0x7f, 'E', 'L', 'F',
	ELFCLASS64 };
static const unsigned char no_elf[EI_NIDENT] = { 0x7f, 'E', 'L', 'G',
	ELFCLASS32 };

static char *agent_here[] = { "LD_PRELOAD=/proc/self/libxrun-agent.so", NULL };

/* The agent's file can be read. */
static void
be_here(void)
{
	self = "/proc/self/exe";
	env_at = list_at = -1;
}

static bool
runs(const char *path)
{
	SET_ARGS(path, NULL, agent_here, NULL, NULL, NULL);
	return execs(STDIO_EXEC_PATH, 2);
}

FORKED_TEST(stdio_exec, a_program_of_another_class_cannot_load_it)
{
	struct file foreign = file_of(of_32_bits, sizeof(of_32_bits));
	struct file ours = file_of(of_64_bits, sizeof(of_64_bits));
	struct file other = file_of(no_elf, sizeof(no_elf));
	struct file cut = file_of(of_32_bits, sizeof(of_32_bits) - 1);
	struct file empty = file_of("", 0);

	be_here();
	EXPECT(runs(foreign.path));
	EXPECT(!runs(ours.path));
	EXPECT(!runs(other.path));
	EXPECT(!runs(cut.path));
	EXPECT(!runs(empty.path));
	EXPECT(!runs("/no/file"));
	EXPECT(!runs(NULL));
	self = GONE;
	agent_here[0] = AGENT;
	EXPECT(runs(ours.path)); /* none can load it */
}

FORKED_TEST(stdio_exec, the_interpreter_of_a_script_counts)
{
	struct file foreign = file_of(of_32_bits, sizeof(of_32_bits));
	struct file ours = file_of(of_64_bits, sizeof(of_64_bits));
	const char *const with[] = { "@", "@\n", " \t @ -x\n", "@\targ\n" };
	const char *const without[] = { "\n@", "x@", "", " " };
	struct file second;
	int before, after;

	be_here();
	for (size_t i = 0; i < COUNT(with); i++) {
		if (!runs(script_of(with[i], foreign.path).path))
			forked_note(__LINE__, "%zu", i);
		EXPECT(!runs(script_of(with[i], ours.path).path));
	}
	for (size_t i = 0; i < COUNT(without); i++)
		EXPECT(!runs(script_of(without[i], foreign.path).path));
	second = script_of("@", foreign.path);
	EXPECT(!runs(script_of("@", second.path).path));
	before = dup(0);
	close(before);
	EXPECT(runs(second.path));
	after = dup(0);
	EXPECT_EQ(after, before);
}

/* A path of the interpreter whose bytes are above 127. */
FORKED_TEST(stdio_exec, an_interpreter_may_have_any_bytes_in_its_path)
{
	const char path[] = "\xc3\xa4\xff";
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	be_here();
	NEED(fd != -1);
	NEED(write(fd, of_32_bits, sizeof(of_32_bits)) == EI_NIDENT);
	EXPECT(runs(script_of("@", path).path));
	close(fd);
}

FORKED_TEST(stdio_exec, a_script_longer_than_the_kernel_reads_is_cut)
{
	struct file foreign = file_of(of_32_bits, sizeof(of_32_bits));
	char blanks[256], fmt[260];
	size_t len = 255 - 2 - strlen(foreign.path);

	be_here();
	memset(blanks, ' ', sizeof(blanks));
	snprintf(fmt, sizeof(fmt), "%.*s@", (int)len, blanks);
	EXPECT(runs(script_of(fmt, foreign.path).path));
	snprintf(fmt, sizeof(fmt), "%.*s@", (int)len + 1, blanks);
	EXPECT(!runs(script_of(fmt, foreign.path).path));
}

FORKED_TEST(stdio_exec, descriptors_and_folders_name_programs_too)
{
	struct file foreign = file_of(of_32_bits, sizeof(of_32_bits));
	struct file ours = file_of(of_64_bits, sizeof(of_64_bits));
	int dir = open("/proc/self/fd", O_RDONLY | O_CLOEXEC | O_DIRECTORY);

	NEED(dir != -1);
	be_here();
	for (int i = 0; i < 2; i++) {
		struct file *f = i == 0 ? &ours : &foreign;

		SET_ARGS(ARG(f->fd), NULL, agent_here, NULL, NULL, NULL);
		EXPECT_EQ(execs(STDIO_EXEC_FD, 2), i); /* fexecve() */
		SET_ARGS(ARG(f->fd), "", NULL, agent_here, NULL, NULL);
		EXPECT_EQ(execs(STDIO_EXEC_AT, 3), i);
		SET_ARGS(ARG(-1), f->path, NULL, agent_here, NULL, NULL);
		EXPECT_EQ(execs(STDIO_EXEC_AT, 3), i);
		SET_ARGS(ARG(dir), strrchr(f->path, '/') + 1, NULL, agent_here,
			NULL, NULL);
		EXPECT_EQ(execs(STDIO_EXEC_AT, 3), i);
		SET_ARGS(NULL, f->path, NULL, NULL, NULL, agent_here);
		EXPECT_EQ(execs(STDIO_EXEC_PATH, 5), i); /* posix_spawn() */
	}
	SET_ARGS(ARG(-1), NULL, agent_here, NULL, NULL, NULL);
	EXPECT(!execs(STDIO_EXEC_FD, 2));
	SET_ARGS(ARG(-1), NULL, NULL, agent_here, NULL, NULL);
	EXPECT(!execs(STDIO_EXEC_AT, 3));
	environ = agent_here;
	SET_ARGS(foreign.path, foreign.path, NULL, NULL, NULL, NULL);
	EXPECT(!execs(STDIO_EXEC_SHELL, HOOK_ENVIRON));
}

/* Is a program of that name looked for in PATH, and foreign? */
static bool
finds(const char *name, const char *path)
{
	static char entry[3 * 4096];
	char *env[] = { "PAT=x", entry, "PATH=/second", NULL };

	snprintf(entry, sizeof(entry), "PATH=%s", path);
	environ = path != NULL ? env : NULL;
	SET_ARGS(name, NULL, agent_here, NULL, NULL, NULL);
	return execs(STDIO_EXEC_NAME, 2);
}

FORKED_TEST(stdio_exec, a_name_is_looked_for_in_path)
{
	struct file foreign = file_of(of_32_bits, sizeof(of_32_bits));
	const char *name = strrchr(foreign.path, '/') + 1;
	static char longest[2 * 4096];
	size_t len;

	be_here();
	EXPECT(finds(name, "/proc/self/fd"));
	EXPECT(finds(name, "/no:/proc/self/fd:/none"));
	EXPECT(finds(name, "::/proc/self/fd"));
	EXPECT(!finds(name, "/proc/self"));
	EXPECT(!finds(name, "/proc/self/fdx"));
	EXPECT(!finds(name, ""));
	EXPECT(!finds(name, NULL));
	EXPECT(!finds("none", "/proc/self/fd"));
	EXPECT(finds(foreign.path, "/no")); /* with a slash it is a path */
	EXPECT(finds(foreign.path, NULL));
	/* "." where a folder has no name. */
	NEED(chdir("/proc/self/fd") == 0);
	EXPECT(finds(name, ""));
	EXPECT(finds(name, ":/no"));
	EXPECT(finds(name, "/no:"));
	EXPECT(finds(name, "/no::/no"));
	/* One that is too long is not looked at. */
	len = 4095 - 1 - strlen(name);
	for (size_t i = 0; i < len - 13; i++)
		longest[i] = '/';
	memcpy(longest + len - 13, "/proc/self/fd", 13);
	EXPECT(finds(name, longest));
	memmove(longest + 1, longest, len);
	EXPECT(!finds(name, longest));
	NEED(fchmod(foreign.fd, 0600) == 0);
	EXPECT(!finds(name, "/proc/self/fd"));
}
